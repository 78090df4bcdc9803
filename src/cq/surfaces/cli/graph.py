"""`cq graph TARGET`: what it depends on and what depends on it, some steps far."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from cq.questions.graph import DIRECTIONS, GraphOptions
from cq.surfaces.cli.edges import add_edge_options, read_edges
from cq.surfaces.cli.options import add_question_options, ask, find_target, read_page

_EXAMPLES = """\
examples:
  cq graph QuerySet.get --depth 2                         both ways, two steps
  cq graph save --direction dependents --edges calls      who calls it
  cq graph Parser --format mermaid                        a picture"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("target", metavar="TARGET", help="Name, Class.method, path:Name, path:line[:col], pkg.mod.Name")
    parser.add_argument("--depth", metavar="N", type=int, default=1, help="how many steps (default: 1)")
    parser.add_argument("--direction", choices=DIRECTIONS, default="both", help="both (default), or one way")
    add_edge_options(parser)
    add_question_options(parser, formats=("md", "json", "jsonl", "plain", "mermaid", "dot", "svg"), limit=40)


def run(args: Namespace) -> int:
    return ask(
        args,
        lambda workspace: workspace.graph(
            GraphOptions(
                find_target(args.target, workspace.root),
                args.depth,
                args.direction,
                *read_edges(args),
                read_page(args, 40),
            )
        ),
    )
