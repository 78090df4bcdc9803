"""`cq ingest scip FILE`: what another indexer knows about calls, taken as evidence; `trace`: what was seen to run."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from cq.model.errors import UsageError
from cq.model.evidence import TraceReport
from cq.surfaces.cli.options import add_freshness_options, add_place_options, add_progress_option, open_workspace
from cq.surfaces.render import render_json
from cq.surfaces.render.ingest import render_ingest
from cq.surfaces.render.progress import ProgressLine

_EXAMPLES = """\
examples:
  scip-typescript index && cq ingest scip index.scip   an index made by a compiler
  cq ingest trace calls.jsonl                          what a program ran, as docs/ingest.md says
  cq ingest --clear                                    forget it again"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "format_name", metavar="scip|trace", nargs="?", choices=("scip", "trace"), help="what the file is"
    )
    parser.add_argument("file", metavar="FILE", nargs="?", help="what an indexer or a recorder wrote")
    parser.add_argument("--clear", action="store_true", help="forget what was taken")
    add_progress_option(parser)
    parser.add_argument("--format", choices=("md", "json"), default="md", help="md (default) or json")
    add_freshness_options(parser)
    add_place_options(parser)


def run(args: Namespace) -> int:
    if args.clear == (args.file is not None) or (args.clear and args.format_name):
        raise UsageError("there is nothing to take", hint="give `scip FILE`, `trace FILE`, or --clear")
    progress = ProgressLine(args.progress)
    with open_workspace(args, progress) as workspace:
        try:
            report = workspace.ingest(args.file, args.format_name or "scip")
        finally:
            progress.clear()
    if args.format == "json":
        sys.stdout.write(render_json(report))
    else:
        sys.stdout.write("Forgotten.\n" if args.clear else render_ingest(report))
    return 0 if args.clear or (report.calls if isinstance(report, TraceReport) else report.taken) else 1
