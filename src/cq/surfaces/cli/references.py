"""`cq references TARGET`: every mention that means a definition, by links, language servers and name."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from cq.questions.references import ReferencesOptions
from cq.surfaces.cli.options import (
    add_path_options,
    add_question_options,
    add_server_options,
    ask,
    find_folders,
    find_languages,
    find_target,
    read_page,
    repeat_place,
)

_EXAMPLES = """\
examples:
  cq references QuerySet
  cq references src/app.py:Config.load --certain   only what links or a server are sure of
  cq references save --in tests --no-lsp           by the index alone"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("target", metavar="TARGET", help="Name, Class.method, path:Name, path:line[:col], pkg.mod.Name")
    parser.add_argument("--certain", action="store_true", help="not those of which only the name fits")
    add_server_options(parser)
    add_path_options(parser)
    parser.add_argument("--lang", metavar="LANG,…", action="append", help="only these languages (default: auto, all)")
    add_question_options(parser, formats=("md", "json", "jsonl", "plain"), limit=30)


def run(args: Namespace) -> int:
    return ask(
        args,
        lambda workspace: workspace.references(
            ReferencesOptions(
                find_target(args.target, workspace.root),
                find_languages(args.lang),
                find_folders(args.inside, workspace.root),
                tuple(args.include or ()),
                tuple(args.exclude or ()),
                args.certain,
                read_page(args, 30),
                args.lsp is not False,
                repeat_place(args),
            )
        ),
    )
