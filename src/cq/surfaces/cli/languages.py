"""`cq languages`: which languages are read, and what each offers."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from cq.surfaces.render import render_json
from cq.surfaces.render.languages import render_languages
from cq.workspace import Workspace


def configure(parser: ArgumentParser) -> None:
    parser.epilog = "examples:\n  cq languages\n  cq languages --format json"
    parser.add_argument("--format", choices=("md", "json"), default="md", help="md (default) or json")


def run(args: Namespace) -> int:
    with Workspace.open() as workspace:
        rows = workspace.languages()
    sys.stdout.write(render_json(rows) if args.format == "json" else render_languages(rows))
    return 0
