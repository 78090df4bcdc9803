"""A step of a plan as the question it stands for: which one is asked, and with what options."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from cq.answers.page import Page
from cq.model.answer import Answer, Finding, NodeDetails, Section
from cq.model.find import FindAnswer
from cq.model.plan import (
    AnyStep,
    BytecodeStep,
    CallsStep,
    ContextStep,
    EffectsStep,
    ExceptionsStep,
    FindStep,
    ImpactStep,
    ImportsStep,
    NeighborhoodStep,
    QueryStep,
    ScopesStep,
    SearchStep,
    SignatureStep,
)

if TYPE_CHECKING:
    from cq.snapshot.relations import Relations

_AROUND = 3000  # tokens without which a neighborhood shows next to nothing of its slices, a search by idea no source


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


def make_question(
    step: AnyStep, page: Page, place: tuple[str, ...], get_language: Callable[[str], str]
) -> msgspec.Struct | None:
    """The options of the question, None for one that is not there yet. Imports what the question needs and no more."""
    languages = tuple(map(get_language, getattr(step, "lang", ())))
    match step:
        case SearchStep():
            from cq.questions.search import SearchOptions

            options = SearchOptions(
                step.text, step.mode, languages=languages, inside=step.inside, include=step.include,
                exclude=step.exclude, kinds=step.kind, include_strings=step.include_strings, page=page,
                servers=False, place=place,
            )  # fmt: skip
            options.check()
            return options
        case QueryStep():
            from cq.questions.q import QueryOptions

            return QueryOptions(step.query, step.include, step.exclude, languages, step.limit, budget=page.budget)
        case CallsStep():
            from cq.questions.calls import CallsOptions

            return CallsOptions(
                step.target, languages, step.inside, step.include, step.exclude, step.family, step.certain, page,
                servers=False, place=place, receiver=step.receiver, why=step.why,
            )  # fmt: skip
        case NeighborhoodStep():
            from cq.questions.neighborhood import NeighborhoodOptions
            from cq.questions.neighborhood.bundle import parse_expand

            expand = parse_expand(",".join(step.expand)) if step.expand else ()
            page = Page(0, max(page.budget, _AROUND), measure=page.measure)
            return NeighborhoodOptions(
                step.target, step.top_k, languages, not step.no_lsp, step.slices, step.depth, expand, page, place=place
            )  # fmt: skip
        case ImpactStep():
            from cq.questions.impact import ImpactOptions
            from cq.snapshot.relations import KINDS

            edges = step.edges or KINDS
            return ImpactOptions((step.target,), {}, step.depth, edges, step.min_confidence, page)
        case SignatureStep():
            from cq.questions.sig_impact import SignatureOptions

            return SignatureOptions(step.target, step.to, page)
        case ImportsStep():
            from cq.questions.imports import ImportsOptions

            return ImportsOptions(step.module, step.cycles, page)
        case ExceptionsStep():
            from cq.questions.exceptions import ExceptionsOptions

            return ExceptionsOptions(step.target, step.depth, page)
        case EffectsStep():
            from cq.questions.side_effects import EffectsOptions

            return EffectsOptions(step.path, step.pure, page)
        case ScopesStep():
            from cq.questions.scopes import ScopesOptions

            return ScopesOptions(step.target, page)
        case BytecodeStep():
            from cq.questions.bytecode import BytecodeOptions

            return BytecodeOptions(step.target, page)
        case FindStep():
            from cq.questions.find import FindOptions

            budget = max(page.budget, _AROUND)
            return FindOptions(
                step.query, step.path, languages, step.kind, step.limit, budget, mode=step.mode
            )  # fmt: skip
        case ContextStep():
            return None
