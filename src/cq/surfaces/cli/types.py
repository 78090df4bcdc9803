"""`cq types T`: supertypes, subtypes, members, and what overrides what."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from cq.questions.types import TypesOptions
from cq.surfaces.cli.options import add_question_options, ask, find_target, read_page

_EXAMPLES = """\
examples:
  cq types QuerySet
  cq types django/db/models/query.py:QuerySet --format json"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("target", metavar="TARGET", help="Name, Class.method, path:Name, path:line[:col], pkg.mod.Name")
    add_question_options(parser, formats=("md", "json", "jsonl", "plain"), limit=60)


def run(args: Namespace) -> int:
    return ask(
        args,
        lambda workspace: workspace.types(TypesOptions(find_target(args.target, workspace.root), read_page(args, 60))),
    )
