"""How `cq run` takes its plan: from a file, or step by step from the command line."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import Any

import msgspec

from cq.model.answer import Answer
from cq.model.errors import UsageError
from cq.model.plan import Plan
from cq.opening import read_file
from cq.questions.run import RunOptions
from cq.questions.run.plan import MAX_BYTES, make_plan, parse_plan
from cq.surfaces.cli.options import print_answer, read_count


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("plan", metavar="PLAN.toml", nargs="?", help="a file of steps; - is standard input")
    parser.add_argument("--step", metavar="JSON", action="append", default=[], help="one more step; repeatable")
    parser.add_argument("--steps", metavar="JSON", help="a list of steps")
    parser.add_argument("--stop-on-error", action="store_true", help="leave out what stands behind a step that fails")
    parser.add_argument("--budget", metavar="TOKENS", type=_read_budget, help="of the whole answer (default: 8000)")


def make_options(args: Namespace, own: dict[str, Any]) -> RunOptions:
    plan = _read(args)
    if args.budget:
        plan = msgspec.structs.replace(plan, budget=args.budget)
    if args.stop_on_error:
        plan = msgspec.structs.replace(plan, stop_on_error=True)
    args.stop_on_error = plan.stop_on_error
    return RunOptions(plan, own["measure"], own["place"])


def write(answer: Answer, args: Namespace) -> int:
    """2 where a step failed and that was to stop it."""
    status = print_answer(answer, args)
    return 2 if args.stop_on_error and answer.summary["failed"] else status


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


def _read_budget(text: str) -> int:
    value = read_count(text)
    if not 500 <= value <= 1_000_000:
        raise ArgumentTypeError(f"{text!r} is not a number from 500 to 1,000,000")
    return value
