"""How many places there are, and where: by file, directory, kind or caller."""

from __future__ import annotations

from collections import Counter
from posixpath import dirname

import msgspec

from cq.answers.page import Page, count_tokens, take
from cq.answers.words import count_places
from cq.model.answer import (
    Answer,
    CallDetails,
    CountDetails,
    Finding,
    Insight,
    NodeDetails,
    QueryDetails,
    ReferenceDetails,
    Section,
)
from cq.model.errors import UsageError


def tally(answer: Answer, page: Page) -> Answer:
    """The same answer with counts instead of its places; made of an answer that holds all of them. UsageError for one
    that lists no places."""
    rows = [
        finding
        for section in answer.sections
        if not section.aside
        for finding in section.findings
        if finding.location is not None and finding.details is not None
    ]
    if not answer.found or answer.insight is None:
        return answer
    if not rows:
        raise UsageError(
            f"cq {answer.command} lists no places that could be counted", hint="leave --count and --by out"
        )
    insight: Insight = answer.insight
    if not insight.headline and not insight.neighborhood:
        paths = [finding.location.path for finding in rows if finding.location is not None]
        insight = msgspec.structs.replace(insight, headline=count_places(paths, "place"))
    if page.by == "count":
        return msgspec.structs.replace(answer, insight=msgspec.structs.replace(insight, budget=None), sections=())
    counts = Counter(_find_group(finding, page.by) for finding in rows)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))

    def make(item: tuple[str, int]) -> Finding:
        name, number = item
        return Finding("count", f"{number:,} {name}", details=CountDetails(number), count=number)

    shown, budget, cut = take(ranked, msgspec.structs.replace(page, by=""), make)
    section = Section(f"By {page.by.capitalize()}", "counts", len(ranked), tuple(shown))
    budget = msgspec.structs.replace(budget, used=count_tokens([section], page.measure) + 50)
    return msgspec.structs.replace(
        answer, insight=msgspec.structs.replace(insight, budget=budget), sections=(section,), truncated=tuple(cut)
    )


def _find_group(finding: Finding, by: str) -> str:
    path = finding.location.path if finding.location is not None else ""
    if by == "file":
        return path
    if by == "directory":
        return dirname(path) or "."
    return _find_kind(finding) if by == "kind" else _find_caller(finding, path)


def _find_kind(finding: Finding) -> str:
    details = finding.details
    if isinstance(details, CallDetails):
        return f"{details.status} {details.call_kind}"
    if isinstance(details, ReferenceDetails):
        return details.status
    if isinstance(details, NodeDetails):
        return details.verdict or details.symbol_kind
    return details.node if isinstance(details, QueryDetails) else finding.category


def _find_caller(finding: Finding, path: str) -> str:
    """The definition that a place stands in, or its file where it stands in none."""
    details = finding.details
    name = details.caller if isinstance(details, CallDetails) else getattr(details, "scope", "")
    return f"{path}:{name}" if name else path
