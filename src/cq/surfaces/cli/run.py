"""`cq run PLAN.toml`: several questions over one generation of the index, answered together."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import Any

import msgspec

from cq.model.errors import UsageError
from cq.model.plan import Plan
from cq.opening import read_file
from cq.questions.run import RunOptions
from cq.questions.run.plan import MAX_BYTES, make_plan, parse_plan
from cq.surfaces.cli.options import (
    add_freshness_options,
    add_place_options,
    add_report_options,
    open_workspace,
    print_answer,
    repeat_place,
)
from cq.surfaces.render.progress import ProgressLine

_EXAMPLES = """\
examples:
  cq run review.toml                                             the steps of a file
  cq run --step '{"type": "calls", "target": "save"}' \\
         --step '{"type": "impact", "target": "{{s1.target}}"}'    of the command line
  cq run --steps '[{"type": "imports", "cycles": true}]'         the same, as one list
  cq schema plan                                                 what a plan may say"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("plan", metavar="PLAN.toml", nargs="?", help="a file of steps; - is standard input")
    parser.add_argument("--step", metavar="JSON", action="append", default=[], help="one more step; repeatable")
    parser.add_argument("--steps", metavar="JSON", help="a list of steps")
    parser.add_argument("--stop-on-error", action="store_true", help="leave out what stands behind a step that fails")
    add_report_options(parser)
    add_freshness_options(parser)
    add_place_options(parser)


def run(args: Namespace) -> int:
    """2 where a step failed and that was to stop it."""
    plan = _read(args)
    if args.budget:
        plan = msgspec.structs.replace(plan, budget=args.budget)
    if args.stop_on_error:
        plan = msgspec.structs.replace(plan, stop_on_error=True)
    progress = ProgressLine(args.progress)
    measure = "json" if args.format in ("json", "jsonl") else "text"
    with open_workspace(args, progress) as workspace:
        try:
            answer = workspace.run(RunOptions(plan, measure, repeat_place(args)))
        finally:
            progress.clear()
    status = print_answer(answer, args)
    return 2 if plan.stop_on_error and answer.summary["failed"] else status


def _read(args: Namespace) -> Plan:
    if args.plan is not None:
        if args.step or args.steps:
            raise UsageError("a plan has its own steps", hint="give PLAN.toml, or --step and --steps")
        return parse_plan(_read_file(args.plan), args.plan)
    if not args.step and args.steps is None:
        raise UsageError(
            "there is nothing to run", hint="give PLAN.toml, --step JSON or --steps JSON; see `cq run --help`"
        )
    steps: list[Any] = []
    if args.steps is not None:
        given = _decode(args.steps, "--steps")
        if not isinstance(given, list):
            raise UsageError("--steps is a list of steps", hint="""e.g. '[{"type": "imports"}]'""")
        steps += given
    steps += [_decode(text, "--step") for text in args.step]
    return make_plan({"steps": steps}, "the command line")


def _read_file(name: str) -> bytes:
    """At most what a plan may have, and a byte more; never from something that is no file."""
    if name == "-":
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    try:
        return read_file(name, MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}", hint="a plan is a TOML file") from None


def _decode(text: str, option: str) -> Any:
    try:
        return msgspec.json.decode(text.encode("utf-8", "surrogateescape"))
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UsageError(
            f"{option} is not JSON: {error}", hint="""e.g. '{"type": "calls", "target": "save"}'"""
        ) from None
