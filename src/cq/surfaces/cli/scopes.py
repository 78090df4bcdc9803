"""`cq scopes TARGET`: which names a definition captures, shares and owns."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from cq.questions.scopes import ScopesOptions
from cq.surfaces.cli.options import add_question_options, ask, find_part, read_page

_EXAMPLES = """\
examples:
  cq scopes QuerySet.get_or_create        a method, with the functions inside it
  cq scopes src/app.py                    every scope of a file
  cq scopes make_handler --format json    all names, by what they are to it"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("target", metavar="TARGET|PATH", help="a definition, or the path of a file")
    add_question_options(parser, formats=("md", "json", "jsonl", "plain"), limit=40)


def run(args: Namespace) -> int:
    return ask(
        args,
        lambda workspace: workspace.scopes(ScopesOptions(find_part(args.target, workspace.root), read_page(args, 40))),
    )
