"""`cq index [PATH]`: bring the index up to date, and say what there is."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace

from cq.model.errors import UsageError
from cq.surfaces.cli.options import (
    add_file_options,
    add_place_options,
    add_progress_option,
    add_worker_options,
    open_workspace,
    read_count,
    read_seconds,
)
from cq.surfaces.render import render_json
from cq.surfaces.render.progress import ProgressLine
from cq.surfaces.render.status import Cost, render_precise, render_summary

_EXAMPLES = """\
examples:
  cq index                         the repository around the working directory
  cq index ~/work/app --full       read and parse everything again
  cq index --precise --budget-seconds 60   what calls mean, by language servers; goes on the next time
  cq index --exclude 'vendor/'     leave something out, this time (for good: cq.toml)
  cq index --embed                 also what cq find ranks by
  cq index --progress json         for a program that shows it"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("path", metavar="PATH", nargs="?", help="the directory that holds the code; the same as --root")
    parser.add_argument("--full", action="store_true", help="read and parse everything again")
    parser.add_argument("--embed", action="store_true", help="also make the vectors that cq find ranks by, now")
    parser.add_argument(
        "--precise", action="store_true", help="ask language servers about calls that the index leaves open"
    )
    parser.add_argument(
        "--budget-seconds",
        metavar="S",
        type=read_seconds,
        default=0.0,
        help="stop --precise after so long; go on later",
    )
    parser.add_argument(
        "--budget-calls", metavar="N", type=read_count, default=0, help="stop --precise after so many calls"
    )
    parser.add_argument(
        "--trust", action="store_true", help="let the repository say how servers run: that can run its code"
    )
    add_worker_options(parser)
    add_file_options(parser)
    add_progress_option(parser)
    parser.add_argument("--format", choices=("md", "json"), default="md", help="md (default) or json")
    add_place_options(parser)


def run(args: Namespace) -> int:
    if args.path and args.root:
        raise UsageError("PATH and --root are the same", hint="give one of them")
    if not args.precise and (args.budget_seconds or args.budget_calls):
        raise UsageError("a budget is for --precise", hint="add --precise, or leave it out")
    args.root = args.path or args.root
    progress = ProgressLine(args.progress)
    started = time.monotonic()
    # The status that is shown is that of the refresh just done; another look would only cost time.
    with open_workspace(args, max_stale=60.0) as workspace:
        try:
            report = workspace.refresh(full=args.full, verify=True, on_progress=progress)
            if report.busy:
                progress.clear()
                print("cq: another process is writing the index; waiting for it", file=sys.stderr, flush=True)
                report = workspace.refresh(full=args.full, wait=True, verify=True, on_progress=progress)
            precise = None
            if args.precise:
                precise = workspace.resolve(seconds=args.budget_seconds, most=args.budget_calls, on_progress=progress)
            embedded = workspace.embed(on_progress=progress) if args.embed else None
        except KeyboardInterrupt:
            progress.clear()
            what = "goes on where it was" if args.precise else "is as it was before"
            print(f"cq: interrupted; the index is valid and {what}", file=sys.stderr)
            return 130
        finally:
            progress.clear()
        cost = _measure_cost(started)
        status = workspace.status()
        on_build = workspace.config().providers.doctor_on_build
        checks = [check for check in workspace.doctor() if check.area == "providers"] if on_build else []
    for check in checks:
        print(f"cq: {check.name}: {check.state}, {check.detail}", file=sys.stderr)
    if args.format == "json":
        more = {"precise": precise} if precise else {}
        sys.stdout.write(render_json({"report": report, "cost": cost, "status": status, "embedded": embedded, **more}))
    else:
        sys.stdout.write(render_summary(report, status, cost))
        sys.stdout.write(render_precise(precise) if precise else "")
        if embedded is not None:
            sys.stdout.write(
                f"\nvectors: {embedded.embedded:,} made, {embedded.reused:,} kept, of {embedded.files:,} files"
                + (f"; graph of {embedded.graphs}" if embedded.graphs else "")
            )
            price = f", {embedded.cost:.4f} at the configured price" if embedded.cost is not None else ""
            sys.stdout.write((f"; {embedded.tokens:,} tokens sent{price}" if embedded.tokens else "") + "\n")
    return 0


def _measure_cost(started: float) -> Cost:
    from multiprocessing import active_children

    for child in active_children():
        child.join(1)  # a worker counts once it has ended
    try:
        import resource
    except ImportError:  # Windows
        return Cost(round(time.monotonic() - started, 3), 0, 0)
    unit = 1 if sys.platform == "darwin" else 1024
    own, workers = (
        resource.getrusage(who).ru_maxrss * unit for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return Cost(round(time.monotonic() - started, 3), own, workers)
