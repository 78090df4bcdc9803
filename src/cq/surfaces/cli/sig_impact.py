"""`cq sig-impact F --to 'f(a, *, b=1)'`: which call sites a new signature would break."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from cq.questions.sig_impact import SignatureOptions
from cq.surfaces.cli.options import add_question_options, ask, find_target, read_page

_EXAMPLES = """\
examples:
  cq sig-impact save --to 'save(row, *, deep=False)'
  cq sig-impact Store.save --to 'save(self, row)' --format json"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("target", metavar="TARGET", help="Name, Class.method, path:Name, path:line[:col], pkg.mod.Name")
    parser.add_argument("--to", metavar="SIGNATURE", required=True, help="the new one, as it would be written")
    add_question_options(parser, formats=("md", "json", "jsonl", "plain"), limit=40)


def run(args: Namespace) -> int:
    return ask(
        args,
        lambda workspace: workspace.sig_impact(
            SignatureOptions(find_target(args.target, workspace.root), args.to, read_page(args, 40))
        ),
    )
