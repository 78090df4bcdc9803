"""`cq read TARGET`: the exact source of a symbol or of lines, or the outline of a file."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from cq.answers.page import Page
from cq.questions.read import ReadOptions
from cq.surfaces.cli.options import (
    add_freshness_options,
    add_look_options,
    add_place_options,
    find_part,
    find_target,
    open_workspace,
    print_answer,
    read_count,
)
from cq.surfaces.render.answer import render_source
from cq.surfaces.render.progress import MODES, ProgressLine

_EXAMPLES = """\
examples:
  cq read QuerySet.get_or_create         a definition, as it stands
  cq read src/app.py                     the outline of a file
  cq read src/app.py:10-40               lines; `10-` reads to the end
  cq read main --format plain            nothing but the source"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("target", metavar="TARGET", help="Name, Class.method, path:Name, path:first-last, or a path")
    parser.add_argument("--budget", metavar="TOKENS", type=read_count, help="how much is shown (default: 8000)")
    parser.add_argument("--all", action="store_true", help="everything, however long")
    add_look_options(parser)
    parser.add_argument("--progress", choices=MODES, default="auto", help="auto (default) draws a bar on a terminal")
    parser.add_argument("--format", choices=("md", "json", "plain"), default="md", help="md (default), json or plain")
    add_freshness_options(parser)
    add_place_options(parser)


def run(args: Namespace) -> int:
    budget = 0 if args.all or (args.format == "plain" and not args.budget) else args.budget or Page().budget
    progress = ProgressLine(args.progress)
    with open_workspace(args, progress) as workspace:
        try:
            find = find_target if Path(args.target).is_dir() else find_part  # which a name may be called as well
            answer = workspace.read(ReadOptions(find(args.target, workspace.root), Page(0, budget)))
        finally:
            progress.clear()
    if args.format == "plain" and answer.found:
        sys.stdout.write(render_source(answer))
        return 0
    return print_answer(answer, args)
