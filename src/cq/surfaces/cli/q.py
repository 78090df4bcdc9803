"""`cq q 'QUERY'`: entities and code that match."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace

from cq.model.errors import UsageError
from cq.query.vocabulary import METAVARIABLE, TOKENS, TokenRule
from cq.questions.q import QueryOptions
from cq.surfaces.cli.options import add_freshness_options, add_place_options, open_workspace, print_answer
from cq.surfaces.render.progress import MODES, ProgressLine
from cq.surfaces.render.query import FORMATS, render_query

_EXAMPLES = """\
examples:
  cq q 'entity=function name=~^get_ in=src/ has="await $X"'
  cq q 'pattern="getattr($X, $Y)" inside="class $C" $Y=~^_'
  cq q 'entity=method decorated_by=property fields=def,callers'
  cq q 'entity=class | filter(methods > 20) | sort(methods desc) | limit 5'
  cq q 'entity=function name=main expand=callees(depth=2)' --format mermaid
  cq q '@deprecated - @tests'                            queries of cq.toml"""


def configure(parser: ArgumentParser) -> None:
    rules = [*TOKENS.items(), ("$X", METAVARIABLE)]
    width = max(len(rule.example) for _, rule in rules)
    lines = [f"  {rule.example:<{width}}  {_explain(key, rule)}" for key, rule in rules]
    parser.epilog = "\n".join([_EXAMPLES, "", "every key, with an example:", *lines])
    parser.add_argument(
        "query", metavar="QUERY", help="tokens: entity= name= pattern= inside= has= …; see docs/query.md"
    )
    parser.add_argument("--format", choices=FORMATS, default="md", help=f"md (default) or {', '.join(FORMATS[1:])}")
    parser.add_argument(
        "--limit", metavar="N", type=_number, default=0, help="N matches on a page (default: 100 lines)"
    )
    parser.add_argument("--page", metavar="N", type=_number, default=1, help="the Nth page")
    parser.add_argument(
        "--budget", metavar="TOKENS", type=int, default=8000, help="a page of about so many tokens; 0 is any"
    )
    parser.add_argument("--all", action="store_true", help="everything on one page")
    parser.add_argument("--include", metavar="GLOB", action="append", default=[], help="only these files: globs=")
    parser.add_argument("--exclude", metavar="GLOB", action="append", default=[], help="not these files: exclude=")
    parser.add_argument("--lang", metavar="NAME", action="append", default=[], help="only this language: lang=")
    parser.add_argument("--progress", choices=MODES, default="auto", help="auto (default) draws a bar on a terminal")
    add_freshness_options(parser)
    add_place_options(parser)


def _explain(key: str, rule: TokenRule) -> str:
    more = " ".join(f".{name}=" for name in rule.modifiers)
    return rule.meaning + (f"; {key}{more}" if more else "")


def run(args: Namespace) -> int:
    """1 when nothing matches."""
    if args.budget < 0:
        raise UsageError(f"--budget {args.budget}: it is a number from 0")
    progress = ProgressLine(args.progress)
    include, exclude, languages = map(tuple, (args.include, args.exclude, args.lang))
    options = QueryOptions(args.query, include, exclude, languages, args.limit, args.page, args.budget, args.all)
    narrowing = ("include", "exclude", "lang")
    place = Namespace(**{name: value for name, value in vars(args).items() if name not in narrowing})
    with open_workspace(place, progress) as workspace:
        try:
            answer = workspace.q(options)
        finally:
            progress.clear()
    if answer.command == "search":
        if args.format in ("mermaid", "dot"):
            raise UsageError(
                f"--format {args.format} draws what expand= finds, and there is no query",
                hint="a query has parts like entity=function",
            )
        return print_answer(answer, args)
    sys.stdout.write(render_query(answer, args.format))
    return 0 if answer.found else 1


def _number(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 1_000_000:
        raise ArgumentTypeError(f"{text!r} is not a number from 1 to 1,000,000")
    return int(text)
