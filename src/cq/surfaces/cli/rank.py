"""`cq rank`: the definitions that most of the repository depends on."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from cq.questions.rank import RankOptions
from cq.surfaces.cli.options import add_path_options, add_question_options, ask, find_folders, read_page

_EXAMPLES = """\
examples:
  cq rank                     where to start in a repository
  cq rank --in src/db         of one part of it
  cq rank --tests             what tests depend on counts too"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("--tests", action="store_true", help="count what tests depend on too")
    add_path_options(parser)
    add_question_options(parser, formats=("md", "json", "jsonl", "plain"), limit=20)


def run(args: Namespace) -> int:
    return ask(
        args,
        lambda workspace: workspace.rank(
            RankOptions(
                find_folders(args.inside, workspace.root),
                tuple(args.include or ()),
                tuple(args.exclude or ()),
                args.tests,
                read_page(args, 20),
            )
        ),
    )
