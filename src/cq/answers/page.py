"""How much of an answer is shown: a page of the best, within a budget of tokens. What is left out is counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from cq.model.answer import Budget, Finding, PassedAt, Section, Truncation
from cq.model.errors import UsageError

# Tokens of one finding and of everything around the findings, about. Fixed, so that pages meet: what a budget
# leaves out of one page is on the next.
_COST = {"text": 75, "json": 240}
_AROUND = {"text": 1200, "json": 2000}
SMALL = 2000  # a budget below this has room for the findings and little else
_T = TypeVar("_T")


class Page(msgspec.Struct, frozen=True):
    """`limit` 0 and `budget` 0 are no limit. `measure` says what the budget counts: the answer as text, or as json."""

    limit: int = 30
    budget: int = 8000
    number: int = 1
    measure: str = "text"
    by: str = ""  # counts instead of findings: `count`, or by file, directory, kind or caller

    @property
    def size(self) -> int:
        """Findings on a page, 0 for all."""
        if self.by:
            return 0
        if not self.budget:
            return self.limit
        around = (
            _AROUND[self.measure] if self.budget >= SMALL else self.budget * 3 // 5 if self.measure == "json" else 0
        )
        room = self.budget - around
        fitting = max(room // _COST[self.measure], 1)
        return min(self.limit, fitting) if self.limit else fitting

    @property
    def is_small(self) -> bool:
        return 0 < self.budget < SMALL

    def flags(self) -> list[str]:
        """As options of a command."""
        default = Page()
        given = [
            ("limit", self.limit, default.limit),
            ("budget", self.budget, default.budget),
            ("page", self.number, 1),
        ]
        return [f"--{name} {value}" for name, value, usual in given if value and value != usual]

    def next(self) -> Page:
        return msgspec.structs.replace(self, number=self.number + 1)

    def check(self) -> None:
        for name, value, least in (("limit", self.limit, 0), ("budget", self.budget, 0), ("page", self.number, 1)):
            if value < least:
                raise UsageError(f"--{name} {value} is too small", hint=f"it is at least {least}")


def take(
    items: Sequence[_T], page: Page, make: Callable[[_T], Finding]
) -> tuple[list[Finding], Budget, list[Truncation]]:
    """The findings of the page, made only for what is shown; at least one, however small the budget."""
    size = page.size
    pages = max(-(-len(items) // size) if size else 1, 1)
    if page.number > pages and not page.by:
        raise UsageError(f"there is no page {page.number}", hint=f"the last one is --page {pages}")
    first = (page.number - 1) * size if size else 0
    shown = [make(item) for item in (items[first : first + size] if size else items)]
    cut: list[Truncation] = []
    if len(shown) < len(items):
        cap = "limit" if size == page.limit else "budget"
        cut.append(Truncation("answer", cap, size, len(items), len(items) - len(shown)))
    return shown, Budget(page.budget, 0, len(shown), len(items), page.number, pages), cut


def estimate(text: str) -> int:
    """Tokens of a text, the same everywhere in cq: one for four bytes."""
    return -(-len(text.encode("utf-8", "replace")) // 4)


def count_tokens(sections: Iterable[Section], measure: str) -> int:
    """What the sections cost, a quarter of their bytes; as text a line has its place and its scope beside it."""
    if measure == "json":
        return sum(len(msgspec.json.encode(section)) for section in sections) // 4
    total = 0
    for section in sections:
        total += len(section.title) + len(section.note) + 8
        for finding in section.findings:
            details = finding.details
            around = sum(map(len, getattr(details, "context", ()))) + len(getattr(details, "scope", ""))
            path = len(finding.location.path) + 12 if finding.location else 0
            witness = getattr(details, "witness", ())
            way = sum(len(step.says) + len(step.location.path) + 12 for step in witness if isinstance(step, PassedAt))
            total += len(finding.message.encode("utf-8", "replace")) + path + around + way + 5
    return total // 4
