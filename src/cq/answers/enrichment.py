"""The target of an answer as language servers see it: its type, who calls it, what it calls, what is wrong at it.

They are asked while the answer is made, about the definition that its words most likely mean; should the answer be
about another, that one is asked about afterwards.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import msgspec

from cq.answers.page import count_tokens
from cq.model.answer import Answer, Finding, Section, Slice
from cq.model.errors import UsageError
from cq.model.provider import Diagnostic, Hover, Reply
from cq.providers.session import BUDGETS
from cq.snapshot.servers import Servers, find_definition
from cq.snapshot.target import Definition, find_targets

PLANES = ("hover", "incoming_calls", "outgoing_calls", "diagnostics")
PREVIEW = 5
MAX_DIAGNOSTICS = 5


class Enrichment:
    """Made before the answer, applied to it after."""

    def __init__(self, servers: Servers, text: str, mode: str, measure: str) -> None:
        self.servers, self._budget, self._measure = servers, BUDGETS[mode], measure
        self._pool = ThreadPoolExecutor(len(PLANES), "cq-enrich")
        self._row = _guess(servers, text)
        self._asked = self._ask(self._row) if self._row else []

    def apply(self, answer: Answer) -> Answer:
        insight = answer.insight
        row = self._find_row(answer)
        if insight is None or row is None:
            self._pool.shutdown(wait=False)
            return answer
        if self._row is None or row.key != self._row.key:
            self._asked = self._ask(row)
        replies = {reply.plane: reply for future in self._asked for reply in future.result()}
        self._pool.shutdown()
        self.servers.replies += replies.values()
        section = Section("Language Servers", "lsp", findings=tuple(self._describe(row, replies)))
        slices = {
            name: Slice(
                len(reply.items), _what(reply), tuple(item.name for item in reply.items[:PREVIEW]), reply.provider
            )
            for name, reply in (("incoming", replies["incoming_calls"]), ("outgoing", replies["outgoing_calls"]))
            if reply.answered
        }
        state = msgspec.structs.replace(insight.degradation, lsp=self.servers.status)
        budget = insight.budget
        if budget is not None:
            budget = msgspec.structs.replace(budget, used=budget.used + count_tokens([section], self._measure))
        # Behind the card and before the rest: at most ten lines.
        sections = (section, *answer.sections) if section.findings else answer.sections
        return msgspec.structs.replace(
            answer,
            insight=msgspec.structs.replace(
                insight, neighborhood={**insight.neighborhood, **slices}, degradation=state, budget=budget
            ),
            sections=sections,
            summary={**answer.summary, "lsp": msgspec.to_builtins(self.servers.telemetry())},
            degraded=(*answer.degraded, *self.servers.events()),
        )

    def _ask(self, row: Definition) -> list[Future[list[Reply[Any]]]]:
        """The target is made here: only servers may be asked in another thread, not the index."""
        target, registry = self.servers.target(row), self.servers.registry
        assert registry is not None
        return [self._pool.submit(registry.ask, plane, [target], self._budget) for plane in PLANES]

    def _find_row(self, answer: Answer) -> Definition | None:
        target = answer.insight.target if answer.insight else None
        held = self.servers.files.get(target.location.path) if target else None
        if target is None or held is None:
            return None
        row, named = find_definition(held, target.location.start)
        return row if named else None

    def _describe(self, row: Definition, replies: dict[str, Reply[Any]]) -> list[Finding]:
        said: list[Hover] = list(replies["hover"].items)
        rows = [Finding("type", hover.type or hover.signature or hover.text, row.location) for hover in said]
        for plane, words in (("incoming_calls", "called by"), ("outgoing_calls", "calls")):
            reply = replies[plane]
            if reply.answered:
                names = ", ".join(item.name for item in reply.items[:PREVIEW])
                more = f" and {len(reply.items) - PREVIEW} more" if len(reply.items) > PREVIEW else ""
                message = f"{words} {len(reply.items)}: {names}{more}" if reply.items else f"{words} none"
                rows.append(Finding(plane, message + _doubt(reply), count=len(reply.items)))
        symbol = row.symbol
        item: Diagnostic
        for item in replies["diagnostics"].items:
            inside = item.place.path == row.file.path and symbol.start <= item.place.start < symbol.end
            if (
                inside
                and item.severity in ("error", "warning")
                and len(rows) < MAX_DIAGNOSTICS + 3
                and (spot := self.servers.find(item.place))
            ):
                rows.append(Finding(item.severity, f"{item.severity}: {item.message}", spot.location))
        return rows


def _guess(servers: Servers, text: str) -> Definition | None:
    try:
        return next(iter(find_targets(servers.files, text)), None)
    except UsageError:  # not a name
        return None


def _what(reply: Reply[Any]) -> str:
    words = "callers" if reply.plane == "incoming_calls" else "callees"
    return f"{words} by {reply.source}{_doubt(reply)}"


def _doubt(reply: Reply[Any]) -> str:
    """Nothing that is partial reads as if it were all."""
    return "" if reply.coverage.state == "complete" else f", at least ({reply.coverage.reason})"
