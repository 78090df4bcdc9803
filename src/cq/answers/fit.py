"""What a program gets of an answer as JSON: no more than its budget holds. What is left out is counted. Text has
its own ways to be short."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from cq.model.answer import Answer, Insight, Truncation
from cq.model.find import ConnectionGraph, FindAnswer, Node

_LISTS = ("references", "calls", "callers", "types_in", "types_out", "types", "subtypes", "members", "uses")
_SHORTER = (20, 5, 1, 0)  # of each of the lists of a result
_ROOM = 120  # bytes, to say what was left out


def fit_json(answer: Answer) -> Answer:
    """Leaves out what stands beside the findings, until the rest fits: of the results of `find` callers and the like,
    edges and snapshots from the end, then suggestions, then the card; at last findings of the page that cost more than
    was thought, but for the first: a smaller --limit pages through them."""
    budget = sum(_read_budget(part) for part in answer.parts)
    for shorten in (_shorten_nodes, _cut_edges, _cut_snapshots, _drop_asides, _drop_card, _cut_findings):
        if not budget or _count(answer) <= budget * 4:
            break
        answer = shorten(answer, budget * 4)
    return answer


def _read_budget(answer: Answer) -> int:
    """In tokens; 0 where there is none."""
    if isinstance(answer, FindAnswer):
        return int(answer.summary.get("budget", 0))
    return answer.insight.budget.tokens if answer.insight and answer.insight.budget else 0


def _count(value: object) -> int:
    return len(msgspec.json.encode(value))


def _cut_edges(answer: Answer, size: int) -> Answer:
    kept = _count_fitting(answer.edges, size - _count(msgspec.structs.replace(answer, edges=())))
    return _replace(answer, "edges", kept, len(answer.edges), edges=answer.edges[:kept])


def _shorten_nodes(answer: Answer, size: int) -> Answer:
    if not isinstance(answer, FindAnswer) or answer.graph is None:
        return answer
    graph, shorter = answer.graph, answer
    longest = max((len(getattr(node, name)) for node in graph.nodes for name in _LISTS), default=0)
    for most in _SHORTER:
        nodes = tuple(_shorten_node(node, most) for node in graph.nodes)
        less = ConnectionGraph(graph.query, graph.call_depth, nodes, graph.patterns)
        shorter = _replace(answer, "graph", most, longest, graph=less)
        if most < longest and _count(shorter) <= size:
            break
    return shorter


def _shorten_node(node: Node, most: int) -> Node:
    shorter = {name: getattr(node, name)[:most] for name in _LISTS if name != "references"}
    return msgspec.structs.replace(node, references=dict(list(node.references.items())[:most]), **shorter)


def _cut_snapshots(answer: Answer, size: int) -> Answer:
    if not isinstance(answer, FindAnswer):
        return answer
    kept = _count_fitting(answer.snapshots, size - _count(msgspec.structs.replace(answer, snapshots=())))
    return _replace(answer, "snapshots", kept, len(answer.snapshots), snapshots=answer.snapshots[:kept])


def _drop_asides(answer: Answer, _size: int) -> Answer:
    if not isinstance(answer.answers, msgspec.UnsetType):
        return msgspec.structs.replace(answer, answers=tuple(_drop_asides(part, _size) for part in answer.answers))
    kept = tuple(section for section in answer.sections if not section.aside)
    return _replace(answer, "sections", len(kept), len(answer.sections), sections=kept)


def _drop_card(answer: Answer, _size: int) -> Answer:
    """But the target and the pages."""
    if not isinstance(answer.answers, msgspec.UnsetType):
        return msgspec.structs.replace(answer, answers=tuple(_drop_card(part, _size) for part in answer.answers))
    card = answer.insight
    if card is None:
        return answer
    less = Insight(card.target, degradation=card.degradation, budget=card.budget)
    return _replace(answer, "insight", 0, len(card.neighborhood) + 1, insight=less)


def _cut_findings(answer: Answer, size: int) -> Answer:
    sections, shown = list(answer.sections), sum(len(section.findings) for section in answer.sections)
    over, kept = _count(answer) + _ROOM - size, shown
    for at in reversed(range(len(sections))):
        findings = list(sections[at].findings)
        while findings and over > 0 and kept > 1:
            over -= _count(findings.pop()) + 1
            kept -= 1
        sections[at] = msgspec.structs.replace(sections[at], findings=tuple(findings))
    return _replace(answer, "findings", kept, shown, sections=tuple(sections))


def _count_fitting(rows: Sequence[object], room: int) -> int:
    """How many of the first of them fit into so many bytes."""
    left = room - _ROOM
    for at, row in enumerate(rows):
        left -= _count(row) + 1
        if left < 0:
            return at
    return len(rows)


def _replace(answer: Answer, scope: str, kept: int, of: int, **change: object) -> Answer:
    if kept >= of:
        return answer
    cut = Truncation(scope, "budget", kept, of, of - kept)
    return msgspec.structs.replace(answer, truncated=(*answer.truncated, cut), **change)
