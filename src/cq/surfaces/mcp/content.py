"""An answer as the protocol's content: first what was asked and found, then the findings."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import msgspec

from cq.model.answer import Answer
from cq.model.find import FindAnswer
from cq.model.status import Status
from cq.questions.find.layout import render_graph
from cq.surfaces.render import find
from cq.surfaces.render.answer import render_body, render_head, render_notes, render_part
from cq.surfaces.render.neighborhood import render_one
from cq.surfaces.render.status import render_status

Piece = tuple[str, float]  # text, priority
_AROUND = 160  # bytes of the message around the content
_LONGEST = 80  # characters of a query that are said again


def make_content(pieces: list[Piece]) -> list[dict[str, Any]]:
    """As the protocol has them. Nothing else is sent: what says all as text would only be said twice."""
    return [{"type": "text", "text": text, "annotations": {"priority": priority}} for text, priority in pieces]


def count_sent(pieces: list[Piece]) -> int:
    """Tokens of the whole answer, as JSON."""
    return -(-(len(msgspec.json.encode(make_content(pieces))) + _AROUND) // 4)


def render_pieces(answer: Answer | Status, budget: int) -> list[Piece]:
    """The best file first; priorities never rise. The first line counts the tokens of all that is sent, which is never
    more than the budget: what a page still is too long for is left out from its end, and counted."""
    if isinstance(answer, Status):
        return _fit([], lambda _: render_status(answer), budget)
    if isinstance(answer, FindAnswer) and answer.results:
        _, *pieces = find.render_pieces(answer)
        notes = "\n".join(["", *render_notes(answer), f"answered by find, {_describe_age(answer)}"])
        return _fit(pieces, lambda tokens: render_graph(answer, tokens, budget) + notes, budget)
    render = render_one if answer.command == "neighborhood" else render_part
    if answer.parts == (answer,) and render is render_part:
        head, blocks = [*render_head(answer), *render_notes(answer)], render_body(answer)
    else:
        head, blocks = render_notes(answer), [block for part in answer.parts for block in render(part)]
    body = "\n\n".join("\n".join(block) for block in blocks if block)
    pieces = [(body, 0.9)] if body else []
    return _fit(pieces, lambda tokens: "\n".join([_render_top(answer, tokens, budget), *head]), budget)


def _fit(pieces: list[Piece], render: Callable[[int], str], budget: int) -> list[Piece]:
    """With a first piece that is told how much all cost together, itself included."""
    kept, lost, head = list(pieces), 0, sys.maxsize
    while True:
        whole = _count(kept, render, lost, head)
        over = count_sent(whole) - budget
        if over <= 0 or head <= 1:
            return whole
        if kept:
            lost += _drop_lines(kept, over)
        else:  # the card itself, without the note that says how much is lost
            lines = render(0).split("\n")[:head]
            lost += _drop_end(lines, over)
            head = max(len(lines), 1)


def _count(pieces: list[Piece], render: Callable[[int], str], lost: int, head: int) -> list[Piece]:
    note = f"{lost:,} lines are left out to keep the budget: a larger one shows them"
    tokens, used = -1, 0
    while True:
        first, *others = render(used).split("\n")[:head]
        whole = [("\n".join([first, *([note] if lost else []), *others]), 1.0), *pieces]
        tokens, used = used, count_sent(whole)
        if used <= tokens:  # one digit more may be one token more, and back
            return whole


def _drop_lines(pieces: list[Piece], tokens: int) -> int:
    """From the last pieces, until about so much is gone; returns how many. A block of source stays closed."""
    gone, bytes_left = 0, tokens * 4
    while pieces and bytes_left > 0:
        text, priority = pieces.pop()
        bytes_left -= len(msgspec.json.encode(text))
        gone += text.count("\n") + 1
        if bytes_left < 0:
            lines = text.split("\n")
            closing = lines.pop() if len(lines) > 1 and set(lines[-1]) == {"`"} else ""
            gone -= len(lines) + bool(closing)
            gone += _drop_end(lines, (len(msgspec.json.encode(text)) + bytes_left) // 4 + 1)
            if lines and closing and lines[-1].startswith(closing):
                lines.pop()
            if not any(line.startswith(closing) for line in lines):  # nothing is left of the block
                closing = ""
            if lines:
                pieces.append(("\n".join([*lines, closing] if closing else lines), priority))
    return gone


def _drop_end(lines: list[str], tokens: int) -> int:
    """At least one line; returns how many."""
    before, freed = len(lines), 0
    while lines and (freed < tokens * 4 or len(lines) == before):
        freed += len(msgspec.json.encode(lines.pop()))
    return before - len(lines)


def _render_top(answer: Answer, tokens: int, limit: int) -> str:
    query = answer.summary.get("query", "")
    query = query if len(query) <= _LONGEST else f"{query[:_LONGEST]}…"
    budget = answer.insight.budget if answer.insight else None
    page = f" | page {budget.page} of {budget.pages}" if budget and budget.pages > 1 else ""
    more = f", page={budget.page + 1} has more" if budget and budget.page < budget.pages else ""
    sections = [section for part in answer.parts for section in part.sections if not section.aside]
    files = len({row.location.path for section in sections for row in section.findings if row.location})
    shown = f"{answer.found} found, {files} files shown{page}{more}"
    said = f'{answer.command}: "{query}" | {shown} | {tokens:,}/{limit:,} tokens'
    return said if answer.run.generation else f"{said} | {_describe_age(answer)}"


def _describe_age(answer: Answer) -> str:
    generation = answer.run.generation
    return f"generation {generation}" if generation else "from files on disk, no index yet"
