"""`cq impact TARGET…` or `cq impact --changed [REV]`: what depends on it, and so may break."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from cq.model.errors import UsageError
from cq.questions.impact import ImpactOptions
from cq.surfaces.cli.changes import read_changes
from cq.surfaces.cli.edges import add_edge_options, read_edges
from cq.surfaces.cli.options import add_question_options, ask, find_part, read_page

_EXAMPLES = """\
examples:
  cq impact QuerySet.get               who depends on it, three steps far
  cq impact --changed                  of what differs from the last commit
  cq impact --changed main --depth 5   of what differs from a branch"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("targets", metavar="TARGET", nargs="*", help="a definition, a path or a module")
    parser.add_argument(
        "--changed", metavar="REV", nargs="?", const="HEAD", help="what differs from REV (default: HEAD)"
    )
    parser.add_argument("--depth", metavar="N", type=int, default=3, help="how many steps (default: 3)")
    add_edge_options(parser)
    add_question_options(parser, formats=("md", "json", "jsonl", "plain", "mermaid", "dot", "svg"), limit=40)


def run(args: Namespace) -> int:
    if args.changed is None and not args.targets:
        raise UsageError("impact of what?", hint="give a TARGET, or --changed for what differs from the last commit")
    return ask(
        args,
        lambda workspace: workspace.impact(
            ImpactOptions(
                tuple(find_part(text, workspace.root) for text in args.targets),
                read_changes(args, workspace.root),
                args.depth,
                *read_edges(args),
                read_page(args, 40),
            )
        ),
    )
