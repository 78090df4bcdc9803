"""`cq hover TARGET`: the signature, type and documentation of a name."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from cq.questions.hover import HoverOptions
from cq.surfaces.cli.options import add_question_options, add_server_options, ask, find_target, read_page

_EXAMPLES = """\
examples:
  cq hover QuerySet.get_or_create
  cq hover django/db/models/query.py:938:9     what stands there, a use as well
  cq hover QuerySet --no-lsp                   as it is written, without a language server"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("target", metavar="TARGET", help="Name, Class.method, path:Name, path:line[:col], pkg.mod.Name")
    add_server_options(parser)
    add_question_options(parser, formats=("md", "json", "jsonl", "plain"), limit=5)


def run(args: Namespace) -> int:
    return ask(
        args,
        lambda workspace: workspace.hover(
            HoverOptions(find_target(args.target, workspace.root), read_page(args, 5), args.lsp is not False)
        ),
    )
