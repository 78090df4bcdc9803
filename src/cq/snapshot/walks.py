"""Bounded walks over the links from definitions, and what they passed as edges of an answer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from cq.graph.walk import Link, Walk, walk
from cq.model.answer import GraphEdge
from cq.model.edge import Candidate
from cq.snapshot.relations import Relations
from cq.snapshot.target import Definition

MAX_REACHED = 500


def walk_from(
    relations: Relations,
    centers: Sequence[Candidate],
    direction: str,
    depth: int,
    edges: Sequence[str],
    least: float,
    beside: Sequence[Link[Candidate]] = (),
) -> Walk[Candidate]:
    """`beside` are links into the centers that are known already."""
    forward = direction == "dependencies"
    ask = relations.dependencies(edges, least) if forward else relations.dependents(edges, least)
    room = MAX_REACHED + len(centers)  # a class comes with its methods: they must not use it up

    def ask_all(nodes: Collection[Candidate]) -> Iterable[Link[Candidate]]:
        return [*ask(nodes), *(beside if nodes == centers else ())]

    return walk(centers, ask_all, depth=depth, forward=forward, order=relations.order, max_nodes=room)


def find_centers(relations: Relations, rows: Sequence[Definition]) -> list[Candidate]:
    """What stands for the targets: a class with its methods, since whoever uses one of them uses the class."""
    found: dict[Candidate, None] = {}
    for row in rows:
        node = relations.center(row)
        found[node] = None
        if row.symbol.kind_group in ("class", "type"):
            found |= dict.fromkeys(relations.members(node))
    return list(found)


def describe_links(relations: Relations, links: Iterable[Link[Candidate]]) -> tuple[GraphEdge, ...]:
    """Those of two calls on one line once."""
    found: dict[GraphEdge, None] = {}
    for link in links:
        source, target = relations.label(link.source), relations.label(link.target)
        edge = GraphEdge(source, target, link.kind, link.confidence, link.status, relations.place(link))
        found[edge] = None
    return tuple(found)
