"""`cq find WORDS`: code about an idea, or one symbol: connected, and in full, within a budget of tokens."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace

from cq.model.errors import UsageError
from cq.questions.find import MODES, FindOptions
from cq.surfaces.cli.options import (
    add_freshness_options,
    add_place_options,
    find_languages,
    open_workspace,
    print_answer,
    read_count,
)
from cq.surfaces.render import render_json
from cq.surfaces.render.find import make_content, render_find, render_plain
from cq.surfaces.render.progress import MODES as PROGRESS
from cq.surfaces.render.progress import ProgressLine

_EXAMPLES = """\
examples:
  cq find 'how are passwords hashed'                 code about an idea
  cq find 'retry a request' --path 'src/' --lang py  only there
  cq find 'symbol = QuerySet > get_or_create'        one symbol, as exactly named
  cq find 'parse the header' --explain --limit 5     with what scores are made of"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "query", metavar="WORDS", nargs="+", help="a question in words, a name, or `symbol = [path >] [Parent >] name`"
    )
    parser.add_argument("--path", metavar="GLOB", action="append", help="only these files or folders, as in .gitignore")
    parser.add_argument("--lang", metavar="LANG,…", action="append", help="only these languages (default: auto, all)")
    parser.add_argument(
        "--kind", metavar="KIND,…", action="append", help="only these: function, class, method, type, …"
    )
    parser.add_argument("--limit", metavar="N", type=read_count, default=10, help="results at most (default: 10)")
    parser.add_argument(
        "--budget", metavar="TOKENS", type=read_count, help="how long the answer may be (default: 8000)"
    )
    parser.add_argument("--all", action="store_true", help="everything that is relevant, however long")
    least = "least score, 0 to 1 (default: 0.005 with vectors, else 0.5)"
    parser.add_argument("--threshold", metavar="SCORE", type=_read_share, help=least)
    parser.add_argument("--candidates", metavar="N", type=read_count, help="how many are ranked (default: 40)")
    parser.add_argument("--weights", metavar="R,V", type=_read_weights, help="of the reranker and of the first stage")
    parser.add_argument("--call-depth", metavar="N", type=int, help="steps of the call trees; -1: all (default: 1)")
    parser.add_argument("--type-depth", metavar="N", type=int, help="steps from types to their types (default: 1)")
    parser.add_argument("--mode", choices=MODES, default="auto", help="auto (default): names by words, else both")
    parser.add_argument("--explain", action="store_true", help="show what scores are made of")
    formats = ("md", "json", "plain", "mcp")
    parser.add_argument("--format", choices=formats, default="md", help="md (default), json, plain or mcp")
    parser.add_argument("--progress", choices=PROGRESS, default="auto", help="auto (default) draws a bar on a terminal")
    add_freshness_options(parser)
    add_place_options(parser)


def run(args: Namespace) -> int:
    if args.explain and args.format in ("plain", "mcp"):
        raise UsageError(f"--explain is not shown with --format {args.format}", hint="with md, or in the json")
    options = FindOptions(
        " ".join(args.query),
        paths=tuple(args.path or ()),
        languages=find_languages(args.lang),
        kinds=tuple(word for given in args.kind or () for word in given.split(",") if word),
        limit=0 if args.all else args.limit,
        budget=0 if args.all else args.budget,
        threshold=args.threshold,
        candidates=args.candidates,
        weights=args.weights,
        call_depth=args.call_depth,
        type_depth=args.type_depth,
        mode=args.mode,
        background=True,
    )
    progress = ProgressLine(args.progress)
    with open_workspace(args, progress) as workspace:
        try:
            answer = workspace.find(options)
        finally:
            progress.clear()
    if args.format == "json":
        return print_answer(answer, args)
    if args.format == "plain":
        text = render_plain(answer)
    else:
        text = render_json(make_content(answer)) if args.format == "mcp" else render_find(answer, explain=args.explain)
    sys.stdout.write(text)
    return 0 if answer.found else 1


def _read_share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise ArgumentTypeError(f"{text!r} is not a number from 0 to 1")
    return value


def _read_weights(text: str) -> tuple[float, float]:
    try:
        first, second = (float(part) for part in text.split(","))
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not two numbers, e.g. 0.65,0.35") from None
    if min(first, second) < 0 or first + second <= 0:
        raise ArgumentTypeError(f"{text!r} weighs nothing")
    return first, second
