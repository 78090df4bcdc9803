"""A step of a plan and the question it stands for: what may be written of it, and what is asked."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Union

import msgspec

from cq.answers.options import Options, find_written, make_form, read_form
from cq.answers.page import Page
from cq.model.answer import Answer, Finding, NodeDetails, Section
from cq.model.find import FindAnswer
from cq.model.plan import Plan, Step, take_steps
from cq.questions.table import QUESTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cq.answers.options import Places, Written
    from cq.snapshot.relations import Relations

# What the plan says for all its steps, or none of them can be told: `limit` is every step's own.
_OF_PLAN = ("limit", "budget", "page", "all", "count", "by")


def list_results(answer: Answer, relations: Relations) -> Answer:
    """What `cq find` found as a section, like that of every other question; its results stand beside sections."""
    if not isinstance(answer, FindAnswer):
        return answer
    rows: list[Finding] = []
    for row in answer.results:
        held = relations.hold(row.file)
        if held is not None:
            start, name = held.lines.offset(row.start_line), row.qualified_name or row.name
            details = NodeDetails(name, row.kind, held.role, symbol_id=row.symbol_id)
            rows.append(Finding("result", f"{row.kind} {name}", held.locate(start, start), row.score, details=details))
    section = Section("Results", "results", len(answer.results), tuple(rows))
    return msgspec.structs.replace(answer, sections=(section, *answer.sections))


def find_step_names() -> tuple[str, ...]:
    """Every question but `run`: a plan has no plans."""
    return tuple(name for name in QUESTIONS if name != "run")


@cache
def find_step(name: str) -> type[Step]:
    """Imports the question and no other."""
    form = make_form(name, QUESTIONS[name].load_options(), Step, without=_OF_PLAN, tag=name)
    assert issubclass(form, Step)
    return form


@cache
def find_plan(names: tuple[str, ...]) -> type[Plan]:
    """What reads a plan of such steps."""
    return take_steps(Union[*(find_step(name) for name in names)])


def type_of(step: Step) -> str:
    return str(step.__struct_config__.tag)


def list_written(step: Step) -> Iterable[tuple[Written, Any]]:
    """What the step says, each with how it is written: arguments first."""
    for one in find_written(QUESTIONS[type_of(step)].load_options()):
        value = getattr(step, one.attribute, None) if one.key not in _OF_PLAN else None
        if value not in (None, False, (), "") or (value == "" and one.required):
            yield one, value


def get_subject(step: Step) -> str:
    """What the step is about."""
    value = next((value for one, value in list_written(step) if one.option.argument), "")
    return value if isinstance(value, str) else " ".join(value)


def make_question(step: Step, page: Page, places: Places, own: dict[str, Any]) -> Options:
    """The options of the question; what the plan leaves open is as in a plan of that question."""
    kind = QUESTIONS[type_of(step)].load_options()
    given = {one.key: value for one, value in list_written(step)}
    # Servers that run already are not the same at the next step.
    if any(field.name == "servers" and field.default is None for field in msgspec.structs.fields(kind)):
        own = {"servers": False, **own}
    options = read_form(kind, given, places, own={**own, **kind.in_plans})
    budget = max(page.budget, kind.least_tokens) if page.budget else 0
    changes: dict[str, Any] = {"limit": step.limit, "budget": budget}
    usual = getattr(options, "page", None)
    if isinstance(usual, Page):
        limit = step.limit if usual.limit else 0
        changes["page"] = Page(limit, budget, measure=page.measure)
    known = {name: value for name, value in changes.items() if name in kind.__struct_fields__}
    return msgspec.structs.replace(options, **known)
