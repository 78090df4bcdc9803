"""`cq validate`: whether an index, or an export of one, is whole. Exit status 2 when it is not."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from cq.model.errors import UsageError
from cq.surfaces.cli.options import (
    add_freshness_options,
    add_place_options,
    add_progress_option,
    add_revision_option,
    open_workspace,
)
from cq.surfaces.render import render_json
from cq.surfaces.render.progress import ProgressLine
from cq.surfaces.render.validate import render_validation

_EXAMPLES = """\
examples:
  cq validate                             the index of this repository
  cq validate --strict                    also what is no damage, but a promise
  cq validate --artifacts /tmp/app-index  what `cq export` wrote there
  cq validate --trace calls.jsonl         also which calls ran that links lack
  cq validate --format json"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("--strict", action="store_true", help="definitions of unknown kind and missing identity too")
    parser.add_argument("--artifacts", metavar="DIR", help="check the export in DIR instead of the index")
    parser.add_argument("--trace", metavar="FILE", help="also compare links with what ran: see `cq ingest trace`")
    add_progress_option(parser)
    parser.add_argument("--format", choices=("md", "json"), default="md", help="md (default) or json")
    add_revision_option(parser)
    add_freshness_options(parser)
    add_place_options(parser)


def run(args: Namespace) -> int:
    if args.artifacts is not None and args.trace is not None:
        raise UsageError("an export has no links to compare a trace with", hint="give --artifacts or --trace")
    progress = ProgressLine(args.progress)
    with open_workspace(args, progress) as workspace:
        try:
            validation = workspace.validate(strict=args.strict, artifacts=args.artifacts, trace=args.trace)
        finally:
            progress.clear()
    sys.stdout.write(render_json(validation) if args.format == "json" else render_validation(validation))
    return 0 if validation.ok else 2
