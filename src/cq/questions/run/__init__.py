"""Several questions of a plan, asked over one snapshot and merged; plans by name are reports."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from cq.questions.run.options import ReportOptions, RunOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from cq.answers.page import Page
    from cq.indexing.index import Index
    from cq.model.answer import Answer
    from cq.model.plan import Step
    from cq.snapshot.snapshot import Snapshot

__all__ = ["ReportOptions", "RunOptions", "ask", "begin", "wants_vectors"]


def begin(index: Index, options: RunOptions | ReportOptions) -> None:
    """UsageError for a report about nothing that a report can be about."""
    del index
    if isinstance(options, ReportOptions):
        from cq.questions.run.presets import parse_subject

        parse_subject(options.target)


def ask(snapshot: Snapshot, options: RunOptions | ReportOptions) -> Answer:
    return _report(snapshot, options) if isinstance(options, ReportOptions) else _run(snapshot, options)


def wants_vectors(options: RunOptions | ReportOptions) -> bool:
    """Whether a step asks them."""
    from cq.questions.run.steps import type_of

    steps = options.plan.steps if isinstance(options, RunOptions) else ()
    return any(type_of(step) == "find" and getattr(step, "mode", "") != "lexical" for step in steps)


def _run(snapshot: Snapshot, options: RunOptions) -> Answer:
    from cq.questions.run.plan import run_plan

    _ = snapshot.relations  # a plan is about an index: without one no step is asked
    ask = _ask_step(snapshot, options.place)
    return run_plan(options.plan, ask, measure=options.measure, place=options.place)


def _report(snapshot: Snapshot, options: ReportOptions) -> Answer:
    from cq.questions.run.plan import run_plan
    from cq.questions.run.presets import find_subject, make_report, parse_subject
    from cq.snapshot.target import describe_target, say_nothing

    kind, name = parse_subject(options.target)
    relations, place = snapshot.relations, options.place
    about = find_subject(relations, kind, name)
    if about is None:
        return say_nothing(relations.files, "report", name, f"no {kind} is named {name!r} here")
    plan, target = make_report(options.preset, about, options.budget), None
    if about.rows:
        target = describe_target(about.rows)
    ask = _ask_step(snapshot, place)
    return run_plan(plan, ask, command="report", measure=options.measure, place=place, target=target)


def _ask_step(snapshot: Snapshot, place: tuple[str, ...]) -> Callable[[Step, Page], Answer]:
    """What answers the steps of a plan; their paths are named from the root."""
    from cq.questions.run.steps import list_results, make_question
    from cq.questions.table import find_question
    from cq.snapshot.places import Places

    places = Places(snapshot.root, snapshot.root)

    def ask(step: Step, page: Page) -> Answer:
        started = time.perf_counter()
        options = make_question(step, page, places, {"place": place})
        answer = find_question(options).ask(snapshot, options)
        elapsed = round((time.perf_counter() - started) * 1000, 1)
        answer = msgspec.structs.replace(answer, run=msgspec.structs.replace(answer.run, elapsed_ms=elapsed))
        return list_results(answer, snapshot.relations)

    return ask
