"""`cq doctor`: what is installed, what is wrong, and what to do about it."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from cq.surfaces.cli.options import add_place_options, open_workspace
from cq.surfaces.render import render_json
from cq.surfaces.render.status import render_checks


def configure(parser: ArgumentParser) -> None:
    parser.epilog = "examples:\n  cq doctor\n  cq doctor --format json"
    parser.add_argument("--format", choices=("md", "json"), default="md", help="md (default) or json")
    add_place_options(parser)


def run(args: Namespace) -> int:
    """2 when something is broken that cq cannot do without."""
    with open_workspace(args) as workspace:
        checks = workspace.doctor()
    sys.stdout.write(render_json(checks) if args.format == "json" else render_checks(checks))
    return 2 if any(check.state == "error" for check in checks) else 0
