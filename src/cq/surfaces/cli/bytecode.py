"""`cq bytecode TARGET`: what a Python definition does with names once compiled."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from cq.questions.bytecode import BytecodeOptions
from cq.surfaces.cli.options import add_question_options, ask, find_part, read_page

_EXAMPLES = """\
examples:
  cq bytecode QuerySet.get                names, calls, and what handlers protect
  cq bytecode src/app.py --format json    every code object of a file"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("target", metavar="TARGET|PATH", help="a definition, or the path of a file")
    add_question_options(parser, formats=("md", "json", "jsonl", "plain"), limit=40)


def run(args: Namespace) -> int:
    return ask(
        args,
        lambda workspace: workspace.bytecode(
            BytecodeOptions(find_part(args.target, workspace.root), read_page(args, 40))
        ),
    )
