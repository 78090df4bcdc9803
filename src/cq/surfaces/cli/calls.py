"""`cq calls TARGET`: every call site of a function or method, with what is passed and from where."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

import msgspec

from cq.questions.calls import CallsOptions
from cq.surfaces.cli.options import (
    add_answer_options,
    add_freshness_options,
    add_place_options,
    add_server_options,
    find_folders,
    find_languages,
    find_target,
    note_servers,
    open_workspace,
    print_answer,
    read_page,
    repeat_place,
)
from cq.surfaces.render.progress import MODES, ProgressLine

_EXAMPLES = """\
examples:
  cq calls get_or_create                     every definition of that name
  cq calls QuerySet.get_or_create            one of them
  cq calls django/db/models/query.py:938     what is defined there
  cq calls save --in django/contrib --all    only these callers, all of them
  cq calls QuerySet.filter --receiver objects   only those on something called so
  cq calls Field.clean --why                 by which definitions, imports and calls it got there"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("target", metavar="TARGET", help="Name, Class.method, path:Name, path:line[:col], pkg.mod.Name")
    parser.add_argument(
        "--family", action="store_true", help="with the methods that override it, and those it overrides"
    )
    parser.add_argument("--certain", action="store_true", help="only what resolution is sure of")
    parser.add_argument(
        "--receiver", metavar="NAME", default="", help="only what is called on this: objects, self, using()"
    )
    parser.add_argument("--why", action="store_true", help="how the target got to each call, place by place")
    add_server_options(parser, default=False)
    add_answer_options(parser, formats=("md", "json", "jsonl", "plain"), limit=30)
    parser.add_argument("--progress", choices=MODES, default="auto", help="auto (default) draws a bar on a terminal")
    add_freshness_options(parser)
    add_place_options(parser)


def run(args: Namespace) -> int:
    options = CallsOptions(
        args.target,
        languages=find_languages(args.lang),
        include=tuple(args.include or ()),
        exclude=tuple(args.exclude or ()),
        family=args.family,
        certain=args.certain,
        page=read_page(args, 30),
        servers=args.lsp if args.format != "plain" else bool(args.lsp),
        place=repeat_place(args),
        receiver=args.receiver,
        why=args.why,
    )
    progress = ProgressLine(args.progress)
    with open_workspace(args, progress) as workspace:
        options = msgspec.structs.replace(options, inside=find_folders(args.inside, workspace.root))
        try:
            options = msgspec.structs.replace(options, target=find_target(args.target, workspace.root))
            answer = workspace.calls(options)
            note_servers(args, workspace)
        finally:
            progress.clear()
    return print_answer(answer, args)
