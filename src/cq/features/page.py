"""How much of an answer is shown: a page of the best, within a budget of tokens. What is left out is counted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import msgspec

from cq.model.answer import Budget, Finding, Truncation
from cq.model.errors import UsageError

OVERHEAD = 1200  # tokens of card, headings and counts, about
_T = TypeVar("_T")


class Page(msgspec.Struct, frozen=True):
    """`limit` 0 and `budget` 0 are no limit. `measure` says what the budget counts: the answer as text, or as json."""

    limit: int = 30
    budget: int = 8000
    number: int = 1
    measure: str = "text"

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
    pages = max(-(-len(items) // page.limit) if page.limit else 1, 1)
    if page.number > pages:
        raise UsageError(f"there is no page {page.number}", hint=f"the last one is --page {pages}")
    first = (page.number - 1) * page.limit
    chosen = items[first : first + page.limit] if page.limit else items
    overhead = min(OVERHEAD, page.budget // 2) if page.budget else OVERHEAD
    used, shown = overhead, list[Finding]()
    for item in chosen:
        finding = make(item)
        cost = _cost(finding, page.measure)
        if page.budget and shown and used + cost > page.budget:
            break
        used += cost
        shown.append(finding)
    budget = Budget(page.budget, used, len(shown), len(items), page.number, pages)
    cut: list[Truncation] = []
    if len(shown) < len(chosen):
        cut.append(Truncation("answer", "budget", page.budget, len(chosen), len(chosen) - len(shown)))
    if len(chosen) < len(items):
        cut.append(Truncation("answer", "limit", page.limit, len(items), len(items) - len(chosen)))
    return shown, budget, cut


def _cost(finding: Finding, measure: str) -> int:
    """Tokens, a quarter of the bytes: all of them as json; as text the line with its place and what stands around."""
    if measure == "json":
        return len(msgspec.json.encode(finding)) // 4 + 1
    details = finding.details
    around = sum(map(len, getattr(details, "context", ()))) + len(getattr(details, "scope", ""))
    path = len(finding.location.path) if finding.location else 0
    return (len(finding.message.encode("utf-8", "replace")) + path + around + 16) // 4 + 1
