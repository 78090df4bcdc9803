"""`cq status`: what is indexed, how fresh, where, how big, and what is degraded."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from cq.surfaces.cli.options import (
    add_freshness_options,
    add_place_options,
    add_progress_option,
    add_revision_option,
    open_workspace,
)
from cq.surfaces.render import render_json
from cq.surfaces.render.progress import ProgressLine
from cq.surfaces.render.status import render_config, render_status

_EXAMPLES = """\
examples:
  cq status                        indexes first where that was never done
  cq status --no-refresh           how stale the index is, without updating it
  cq status --config               every setting, and where it comes from
  cq status --format json"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("--config", action="store_true", help="the settings with their sources, instead of the status")
    add_progress_option(parser)
    parser.add_argument("--format", choices=("md", "json"), default="md", help="md (default) or json")
    add_revision_option(parser)
    add_freshness_options(parser)
    add_place_options(parser)


def run(args: Namespace) -> int:
    progress = ProgressLine(args.progress)
    with open_workspace(args, progress) as workspace:
        if args.config:
            config = workspace.config()
            sys.stdout.write(render_json(config) if args.format == "json" else render_config(config))
            return 0
        try:
            status = workspace.status(embeddings=True)
        finally:
            progress.clear()
    sys.stdout.write(render_json(status) if args.format == "json" else render_status(status))
    return 0
