"""`cq neighborhood TARGET`: everything around one symbol."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

import msgspec

from cq.answers.page import Page
from cq.model.errors import UsageError
from cq.questions.neighborhood import NeighborhoodOptions
from cq.questions.neighborhood.bundle import parse_expand
from cq.surfaces.cli.options import (
    add_freshness_options,
    add_look_options,
    add_measure_option,
    add_place_options,
    add_server_options,
    find_languages,
    find_target,
    note_servers,
    open_workspace,
    print_answer,
    read_count,
    read_measure,
    repeat_place,
)
from cq.surfaces.render.progress import MODES, ProgressLine

FORMATS = ("md", "json", "mermaid", "dot", "svg")
_EXAMPLES = """\
examples:
  cq neighborhood QuerySet.get_or_create                   everything around it
  cq nb django/db/models/query.py:938:9 --no-lsp           what is defined there, without language servers
  cq nb save --slices callers,tests --top-k 30             only these
  cq nb Parser --expand 'callers(depth=2)' --format dot    a picture, two steps far"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "target", metavar="TARGET", help="Name, Class.method, path:Name, path:line[:col], pkg.mod.Name, or a module"
    )
    parser.add_argument("--top-k", metavar="N", type=read_count, default=10, help="nodes per slice (default: 10)")
    parser.add_argument("--lang", metavar="LANG,…", action="append", help="languages of what TARGET may mean")
    parser.add_argument("--slices", metavar="KIND,…", action="append", help="only these: callers, callees, tests, …")
    parser.add_argument("--depth", metavar="N", type=read_count, default=1, help="steps of callers and callees (1)")
    parser.add_argument("--expand", metavar="KIND(depth=N),…", action="append", help="steps of one of them")
    parser.add_argument(
        "--budget", metavar="TOKENS", type=read_count, help="how long the answer may be (default: 8000)"
    )
    add_measure_option(parser)
    add_look_options(parser)
    default = os.environ.get("CQ_FORMAT", "")
    parser.add_argument(
        "--format", choices=FORMATS, default=default if default in FORMATS else "md", help="md (default), for people; …"
    )
    parser.add_argument("--progress", choices=MODES, default="auto", help="auto (default) draws a bar on a terminal")
    add_server_options(parser, default=False)
    add_freshness_options(parser)
    add_place_options(parser)


def run(args: Namespace) -> int:
    from cq.surfaces.render.neighborhood import render_neighborhood

    slices = [name.strip() for name in ",".join(args.slices or ()).split(",")]
    if args.slices and not all(slices):
        raise UsageError("--slices names an empty kind", hint="e.g. --slices callers,tests")
    options = NeighborhoodOptions(
        args.target,
        args.top_k,
        find_languages(args.lang),
        args.lsp,
        tuple(dict.fromkeys(filter(None, slices))),
        args.depth,
        parse_expand(",".join(args.expand)) if args.expand else (),
        Page(0, args.budget or Page().budget, measure=read_measure(args)),
        place=repeat_place(args),
    )
    options.check()
    progress = ProgressLine(args.progress)
    with open_workspace(args, progress) as workspace:
        try:
            target = find_target(args.target, workspace.root)
            answer = workspace.neighborhood(msgspec.structs.replace(options, target=target))
            note_servers(args, workspace)
        finally:
            progress.clear()
    if answer.summary["resolution_kind"] == "invalid":
        raise UsageError(answer.degraded[0].message, hint="give Name, Class.method, path:Name or path:line[:col]")
    return print_answer(answer, args, render_neighborhood)
