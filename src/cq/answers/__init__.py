"""What all answers are made with: pages, budgets, cards, and what language servers add to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from cq.answers.page import Page
    from cq.model.answer import Answer
    from cq.snapshot.snapshot import Snapshot


def ask_servers(snapshot: Snapshot, text: str, on: bool | None, page: Page) -> Callable[[Answer], Answer]:
    """Language servers are asked about the likely target from now on; what is returned adds what they say. Unless told
    to (`on`), only those that run already: to start one takes longer than the question."""
    waits = on is None and (page.is_small or not snapshot.has_warm_servers())
    if on is False or waits or not snapshot.is_indexed:
        return lambda answer: answer
    from cq.answers.enrichment import Enrichment

    return Enrichment(snapshot.open_servers(), text, "interactive" if on else "prefetch", page.measure).apply
