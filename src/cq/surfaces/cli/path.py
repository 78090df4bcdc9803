"""`cq path A B`: how one definition reaches another."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from cq.model.errors import UsageError
from cq.questions.path import PathOptions
from cq.surfaces.cli.edges import add_edge_options, read_edges
from cq.surfaces.cli.options import add_question_options, ask, find_target

_EXAMPLES = """\
examples:
  cq path main save                         the shortest chains of calls
  cq path main save --min-confidence 0.5    over certain links only"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("source", metavar="A", help="where the way begins: a TARGET as for cq graph")
    parser.add_argument("target", metavar="B", help="where it ends")
    add_edge_options(parser, default="calls,instantiates,decorates")
    add_question_options(parser, formats=("md", "json", "jsonl", "plain", "mermaid", "dot", "svg"), limit=3)


def run(args: Namespace) -> int:
    if args.all or args.budget is not None or args.page != 1:
        raise UsageError("a path has no pages", hint="--limit says how many ways are shown")
    return ask(
        args,
        lambda workspace: workspace.path(
            PathOptions(
                find_target(args.source, workspace.root),
                find_target(args.target, workspace.root),
                *read_edges(args),
                args.limit or 3,
            )
        ),
    )
