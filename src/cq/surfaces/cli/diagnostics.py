"""`cq diagnostics [PATH…]`: what is wrong with code: its syntax, and what type checkers say."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from cq.questions.diagnostics import SEVERITIES, DiagnosticsOptions
from cq.surfaces.cli.options import (
    add_question_options,
    add_server_options,
    ask,
    find_folders,
    find_languages,
    read_page,
)

_EXAMPLES = """\
examples:
  cq diagnostics src/app.py
  cq diagnostics src tests --severity error
  cq diagnostics --no-lsp                      syntax errors of the whole repository"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("paths", metavar="PATH", nargs="*", help="files or directories (default: the repository)")
    parser.add_argument(
        "--severity", choices=SEVERITIES, default="warning", help="the least that is shown (default: warning)"
    )
    parser.add_argument("--lang", metavar="LANG,…", action="append", help="only these languages (default: auto, all)")
    add_server_options(parser)
    add_question_options(parser, formats=("md", "json", "jsonl", "plain"), limit=50)


def run(args: Namespace) -> int:
    return ask(
        args,
        lambda workspace: workspace.diagnostics(
            DiagnosticsOptions(
                find_folders(args.paths, workspace.root, "PATH"),
                args.severity,
                find_languages(args.lang),
                read_page(args, 50),
                args.lsp is not False,
            )
        ),
    )
