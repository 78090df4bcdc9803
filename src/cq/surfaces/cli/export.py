"""`cq export --out DIR`: the index as artifacts, for other programs; `--scip FILE`: as a SCIP index."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from cq.model.errors import UsageError
from cq.questions.export import select_artifacts
from cq.surfaces.cli.options import (
    add_freshness_options,
    add_place_options,
    add_progress_option,
    add_revision_option,
    open_workspace,
)
from cq.surfaces.render import render_json
from cq.surfaces.render.export import render_export
from cq.surfaces.render.progress import ProgressLine

_EXAMPLES = """\
examples:
  cq export --out /tmp/app-index                          everything
  cq export --out /tmp/app-index --compress zstd          a tenth of the size
  cq export --out /tmp/calls --only call_sites,chunks     some of it
  cq validate --artifacts /tmp/app-index                  is it whole?
  cq export --scip index.scip                             for tools that read SCIP"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--out", metavar="DIR", help="a new or empty directory, or an export to replace")
    target.add_argument("--scip", metavar="FILE", help="write definitions and certain references as a SCIP index")
    parser.add_argument("--only", metavar="NAME,…", default="", help="some artifacts, by comma; see `cq schema`")
    parser.add_argument("--compress", choices=("zstd",), help="compress the rows")
    add_progress_option(parser)
    parser.add_argument("--format", choices=("md", "json"), default="md", help="md (default) or json")
    add_revision_option(parser)
    add_freshness_options(parser)
    add_place_options(parser)


def run(args: Namespace) -> int:
    only = [word.strip() for word in args.only.split(",") if word.strip()]
    select_artifacts(only)  # a slip of the pen is told before the index is made
    if args.scip and (only or args.compress):
        raise UsageError("--scip writes one file of all that it can say", hint="leave out --only and --compress")
    progress = ProgressLine(args.progress)
    with open_workspace(args, progress) as workspace:
        try:
            if args.scip:
                report = workspace.export_scip(args.scip)
            else:
                report = workspace.export(args.out, only=only, compress=args.compress)
        finally:
            progress.clear()
    sys.stdout.write(render_json(report) if args.format == "json" else render_export(report))
    return 0
