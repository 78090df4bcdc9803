"""`cq exceptions [TARGET|PATH]`: what is raised, what catches it, and what nobody catches."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from cq.questions.exceptions import ExceptionsOptions
from cq.surfaces.cli.options import add_question_options, ask, find_part, read_page

_EXAMPLES = """\
examples:
  cq exceptions                        of the whole repository
  cq exceptions src/app                of the files below a directory
  cq exceptions django.db.models       of a module or package
  cq exceptions QuerySet.get           what may leave a function, and who catches it"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "target", metavar="TARGET|PATH", nargs="?", default="", help="a definition, a path or a module (default: all)"
    )
    parser.add_argument("--depth", metavar="N", type=int, default=6, help="how many calls are followed (default: 6)")
    add_question_options(parser, formats=("md", "json", "jsonl", "plain"), limit=40)


def run(args: Namespace) -> int:
    return ask(
        args,
        lambda workspace: workspace.exceptions(
            ExceptionsOptions(find_part(args.target, workspace.root), args.depth, read_page(args, 40))
        ),
    )
