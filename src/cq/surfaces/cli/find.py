"""How `cq find` shows its answer."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from cq.model.errors import UsageError
from cq.model.find import FindAnswer
from cq.surfaces.cli.options import print_answer
from cq.surfaces.render import render_json
from cq.surfaces.render.find import make_content, render_find, render_plain


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--explain", action="store_true", help="show what scores are made of")


def check(args: Namespace) -> None:
    if args.explain and args.format in ("plain", "mcp"):
        raise UsageError(f"--explain is not shown with --format {args.format}", hint="with md, or in the json")


def write(answer: FindAnswer, args: Namespace) -> int:
    if args.format == "json":
        return print_answer(answer, args)
    if args.format == "plain":
        text = render_plain(answer)
    else:
        text = render_json(make_content(answer)) if args.format == "mcp" else render_find(answer, explain=args.explain)
    sys.stdout.write(text)
    return 0 if answer.found else 1
