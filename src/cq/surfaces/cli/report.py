"""`cq report PRESET --target KIND:NAME`: a plan by its name."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from cq.questions.run import ReportOptions
from cq.questions.run.presets import PRESETS
from cq.surfaces.cli.options import (
    add_freshness_options,
    add_place_options,
    add_report_options,
    find_part,
    open_workspace,
    print_answer,
    repeat_place,
)
from cq.surfaces.render.progress import ProgressLine

_EXAMPLES = """\
examples:
  cq report refactor-impact --target function:QuerySet.get      before it is rewritten
  cq report safety-reliability --target path:src/app            what may go wrong there
  cq report change-propagation --target class:Store             how far a change goes
  cq report dependency-health --target module:app.db            imports, cycles, loading"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    words = "; ".join(f"{name}: {line}" for name, (_, line) in PRESETS.items())
    parser.add_argument("preset", metavar="PRESET", choices=tuple(PRESETS), help=words)
    parser.add_argument(
        "--target", metavar="KIND:NAME", required=True, help="function:NAME, class:NAME, module:NAME or path:PATH"
    )
    add_report_options(parser)
    add_freshness_options(parser)
    add_place_options(parser)


def run(args: Namespace) -> int:
    progress = ProgressLine(args.progress)
    measure = "json" if args.format in ("json", "jsonl") else "text"
    kind, colon, name = args.target.partition(":")
    with open_workspace(args, progress) as workspace:
        target = f"{kind}{colon}{find_part(name, workspace.root)}" if name else args.target
        try:
            answer = workspace.report(
                ReportOptions(args.preset, target, args.budget or 8000, measure, repeat_place(args))
            )
        finally:
            progress.clear()
    return print_answer(answer, args)
