"""`cq lsp PLANE [TARGET]`: what else a language server says."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from cq.questions.lsp import ABOUT, LspOptions
from cq.surfaces.cli.options import (
    add_question_options,
    add_server_options,
    ask,
    find_languages,
    find_target,
    read_page,
)

_EXAMPLES = """\
examples:
  cq lsp signature-help src/app.py:12:20       what the call there may be given
  cq lsp type-definition src/app.py:12:8       where the type of a value is defined
  cq lsp actions src/app.py:12                 changes that are offered; none is made
  cq lsp document-symbols src/app.py
  cq lsp workspace-symbols Store --lang python"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("plane", metavar="PLANE", help=", ".join(ABOUT))
    parser.add_argument("target", metavar="TARGET", nargs="?", default="", help="a TARGET, a file, or words")
    parser.add_argument("--lang", metavar="LANG,…", action="append", help="whose servers are asked about everything")
    add_server_options(parser)
    add_question_options(parser, formats=("md", "json", "jsonl", "plain"), limit=50)


def run(args: Namespace) -> int:
    words = args.plane in ABOUT and ABOUT[args.plane][1] == "words"
    return ask(
        args,
        lambda workspace: workspace.lsp(
            LspOptions(
                args.plane,
                args.target if words or not args.target else find_target(args.target, workspace.root),
                find_languages(args.lang),
                read_page(args, 50),
                args.lsp is not False,
            )
        ),
    )
