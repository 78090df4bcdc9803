"""`cq side-effects [PATH|MODULE]`: what happens when modules are loaded."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from cq.questions.side_effects import EffectsOptions
from cq.surfaces.cli.options import add_question_options, ask, find_part, read_page

_EXAMPLES = """\
examples:
  cq side-effects                     of the whole repository, the strongest first
  cq side-effects src/app/config.py   of one file
  cq side-effects django.conf --pure  of a package, with calls that look pure"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "path", metavar="PATH|MODULE", nargs="?", default="", help="a file, a directory or a module (default: all)"
    )
    parser.add_argument("--pure", action="store_true", help="list what looks pure as well")
    add_question_options(parser, formats=("md", "json", "jsonl", "plain"), limit=40)


def run(args: Namespace) -> int:
    return ask(
        args,
        lambda workspace: workspace.side_effects(
            EffectsOptions(find_part(args.path, workspace.root), args.pure, read_page(args, 40))
        ),
    )
