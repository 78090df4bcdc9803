"""`cq imports`: which file imports which, cycles, and what comes from outside."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from cq.questions.imports import ImportsOptions
from cq.surfaces.cli.options import add_question_options, ask, read_page

_EXAMPLES = """\
examples:
  cq imports                      the most imported files, cycles, packages from outside
  cq imports --cycles             only the cycles; nothing found is exit 1
  cq imports --module django.db   what one module imports, and who imports it"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("--module", metavar="M", default="", help="of one module: a path, or its dotted name")
    parser.add_argument("--cycles", action="store_true", help="only files that import each other")
    add_question_options(parser, formats=("md", "json", "jsonl", "plain", "mermaid", "dot", "svg"), limit=40)


def run(args: Namespace) -> int:
    return ask(args, lambda workspace: workspace.imports(ImportsOptions(args.module, args.cycles, read_page(args, 40))))
