"""`cq search TEXT`: every mention of a name or text, classed, ranked, the best first."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

import msgspec

from cq.model.errors import UsageError
from cq.questions.search import PROFILES, SearchOptions
from cq.questions.search.classify import WEIGHTS
from cq.questions.search.pattern import MODES
from cq.surfaces.cli.options import (
    add_answer_options,
    add_freshness_options,
    add_place_options,
    add_server_options,
    find_folders,
    find_languages,
    note_servers,
    open_workspace,
    print_answer,
    read_page,
    repeat_place,
)
from cq.surfaces.render.progress import MODES as PROGRESS
from cq.surfaces.render.progress import ProgressLine

_EXAMPLES = """\
examples:
  cq search get_or_create                                 a name: where it is defined, called, used
  cq search QuerySet.get_or_create                        of one class
  cq search 'handle_(request|response)' --mode regex      an expression, as Python writes them
  cq search "can't" --mode literal --include-strings      a text, strings and comments listed too
  cq search save --kind definition,call --in django/db    some kinds, in one directory
  cq search save --format plain | head                    path:line:col: text, best first"""

# Words people use for kinds.
_KINDS = {
    "call": ("callsite",), "calls": ("callsite",), "definitions": ("definition",), "def": ("definition",),
    "import": ("import", "from_import"), "imports": ("import", "from_import"), "references": ("reference",),
    "type": ("type_use", "annotation"), "keyword": ("keyword_argument",), "comments": ("comment",),
    "strings": ("string",),
}  # fmt: skip


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("text", metavar="TEXT", help="a name, a dotted name, or any text")
    parser.add_argument("--mode", choices=MODES, default="auto", help="auto (default): a name whole, else as text")
    case = parser.add_mutually_exclusive_group()
    case.add_argument("-i", "--ignore-case", action="store_true", help="any case (default: only without capitals)")
    case.add_argument("-s", "--case-sensitive", action="store_true", help="case as given")
    parser.add_argument("--kind", metavar="KIND,…", action="append", help=f"only these: {', '.join(WEIGHTS)}")
    parser.add_argument("--include-strings", action="store_true", help="list comments, strings and text as well")
    parser.add_argument("--context", metavar="N", type=int, default=0, help="N lines before and after each mention")
    parser.add_argument(
        "--profile", choices=PROFILES, help="how much is classed (default: interactive; audit for plain)"
    )
    parser.add_argument("--no-enrich", action="store_true", help="places and kinds only")
    add_server_options(parser, default=False)
    add_answer_options(parser, formats=("md", "json", "jsonl", "plain"), limit=30)
    parser.add_argument("--progress", choices=PROGRESS, default="auto", help="auto (default) draws a bar on a terminal")
    add_freshness_options(parser)
    add_place_options(parser)


def run(args: Namespace) -> int:
    plain = args.format == "plain"
    if plain and args.context:
        raise UsageError("--format plain has one line per mention, --context more", hint="give one or the other")
    if args.kind and args.include_strings:
        raise UsageError(
            "--kind says what is listed, and so does --include-strings", hint="add string,comment to --kind"
        )
    options = SearchOptions(
        args.text,
        mode=args.mode,
        case="ignore" if args.ignore_case else "respect" if args.case_sensitive else "smart",
        languages=find_languages(args.lang),
        include=tuple(args.include or ()),
        exclude=tuple(args.exclude or ()),
        kinds=_find_kinds(args.kind),
        include_strings=args.include_strings or plain,
        page=read_page(args, 30),
        place=repeat_place(args),
        context=args.context,
        profile=args.profile or ("audit" if plain else "interactive"),
        enrich=not args.no_enrich and not plain,
        servers=args.lsp if not plain and not args.no_enrich else bool(args.lsp),
        crosscheck=os.environ.get("CQ_PY_ENRICHMENT_CROSSCHECK") == "1",
    )
    options.check()  # a slip of the pen is told before the index is made
    progress = ProgressLine(args.progress)
    with open_workspace(args, progress) as workspace:
        options = msgspec.structs.replace(options, inside=find_folders(args.inside, workspace.root))
        try:
            answer = workspace.search(options)
            note_servers(args, workspace)
        finally:
            progress.clear()
    return print_answer(answer, args)


def _find_kinds(given: list[str] | None) -> tuple[str, ...]:
    kinds: list[str] = []
    for word in filter(None, (part.strip() for part in ",".join(given or ()).split(","))):
        if word not in WEIGHTS and word not in _KINDS:
            from difflib import get_close_matches

            close = get_close_matches(word, [*WEIGHTS, *_KINDS], n=1)
            hint = (f"did you mean {close[0]!r}? " if close else "") + f"kinds: {', '.join(WEIGHTS)}"
            raise UsageError(f"unknown kind {word!r}", hint=hint)
        kinds += _KINDS.get(word, (word,))
    if given is not None and not kinds:
        raise UsageError("--kind names no kind", hint=f"kinds: {', '.join(WEIGHTS)}")
    return tuple(dict.fromkeys(kinds))
