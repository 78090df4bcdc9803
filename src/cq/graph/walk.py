"""Walks over a graph that is asked for its neighbours round by round: bounded, in a fixed order, with a witness for
every node that is reached. Pure; who calls decides where neighbours come from."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from cq.model.answer import Truncation

N = TypeVar("N", bound=Hashable)


class Link(msgspec.Struct, Generic[N], frozen=True):
    """`source` depends on `target`: it calls, imports, uses or inherits it. `call` tells by which of its calls."""

    source: N
    target: N
    kind: str
    confidence: float = 1.0
    status: str = "resolved"
    call: int = -1


Neighbors = Callable[[Collection[N]], Iterable[Link[N]]]


class Reached(msgspec.Struct, Generic[N], frozen=True):
    """A node, how far it is, and the links that lead from the centre to it."""

    node: N
    distance: int
    path: tuple[Link[N], ...]
    confidence: float  # of the weakest link on the path


class Walk(msgspec.Struct, Generic[N], frozen=True):
    nodes: tuple[Reached[N], ...]  # by distance, confidence and order of discovery; the centres first
    links: tuple[Link[N], ...]
    truncated: tuple[Truncation, ...] = ()


def walk(
    centers: Sequence[N],
    neighbors: Neighbors[N],
    *,
    depth: int,
    forward: bool,
    order: Callable[[N], Any],
    max_nodes: int = 500,
    max_links: int = 2000,
) -> Walk[N]:
    """Breadth first; each round is one batched question. `forward` follows links from source to target. A round that
    finds more nodes than there is room for is the last."""
    reached: dict[N, Reached[N]] = {center: Reached(center, 0, (), 1.0) for center in centers}
    kept: dict[tuple[N, N, str, int], Link[N]] = {}
    frontier: list[N] = list(reached)
    lost_nodes: set[N] = set()
    lost_links = 0
    truncated: list[Truncation] = []
    for distance in range(1, depth + 1):
        if not frontier:
            break
        ahead: dict[N, Reached[N]] = {}
        for link in _sort(neighbors(frontier), order):
            here, there = (link.source, link.target) if forward else (link.target, link.source)
            if here not in reached or here == there:
                continue
            key = (link.source, link.target, link.kind, link.call)
            if there not in reached and there not in ahead:
                if len(reached) + len(ahead) >= max_nodes:
                    lost_nodes.add(there)
                    continue
                base = reached[here]
                weakest = min(base.confidence, link.confidence)
                ahead[there] = Reached(there, distance, (*base.path, link), weakest)
            if len(kept) < max_links:
                kept.setdefault(key, link)
            elif key not in kept:
                lost_links += 1
        frontier = [] if lost_nodes else list(ahead)
        reached.update(ahead)
        if lost_nodes and distance < depth:
            truncated.append(Truncation("graph", "depth", distance, depth, depth - distance))
    if lost_nodes:
        truncated.append(Truncation("graph", "nodes", max_nodes, max_nodes + len(lost_nodes), len(lost_nodes)))
    if lost_links:
        truncated.append(Truncation("graph", "links", max_links, max_links + lost_links, lost_links))
    nodes = sorted(reached.values(), key=lambda item: (item.distance, -item.confidence))
    return Walk(tuple(nodes), tuple(kept.values()), tuple(truncated))


def find_paths(
    starts: Collection[N],
    goals: Collection[N],
    neighbors: Neighbors[N],
    *,
    order: Callable[[N], Any],
    max_cost: int = 16,
    max_nodes: int = 20_000,
    limit: int = 3,
) -> tuple[list[tuple[Link[N], ...]], bool]:
    """The cheapest chains of links from one of the starts to one of the goals, at most `limit` of that cost; whether
    the search was cut short, so that none found means nothing. Nodes of one cost are one batched question."""
    wanted = set(goals)
    parents: dict[N, list[Link[N]]] = {}
    ahead: dict[int, dict[N, list[Link[N]]]] = {0: {start: [] for start in starts}}
    for cost in range(max_cost + 1):
        fresh = {node: links for node, links in ahead.pop(cost, {}).items() if node not in parents}
        parents.update(fresh)
        hits = [node for node in fresh if node in wanted]
        if hits:
            found = [chain for node in hits for chain in _unwind(node, parents, limit)]
            return found[:limit], False
        if len(parents) > max_nodes:
            return [], True
        for link in _sort(neighbors(list(fresh)), order):
            if link.target not in parents:
                ahead.setdefault(cost + _cost(link), {}).setdefault(link.target, []).append(link)
        if not ahead:
            return [], False
    return [], True


def _sort(links: Iterable[Link[N]], order: Callable[[N], Any]) -> list[Link[N]]:
    """The surest first; of the same ends calls, which have a line of their own. The same few nodes are at the ends of
    many links."""
    known: dict[N, Any] = {}

    def place(node: N) -> Any:
        found = known.get(node)
        if found is None:
            found = known[node] = order(node)
        return found

    def rate(link: Link[N]) -> tuple[Any, ...]:
        return -link.confidence, place(link.source), place(link.target), link.call < 0, link.call

    return sorted(links, key=rate)


def _cost(link: Link[Any]) -> int:
    """One step, and one more for each time that confidence is halved: a way of three certain links comes before one of
    a single link that is one of many candidates."""
    return 1 + int(-math.log2(max(link.confidence, 0.001)))


def _unwind(node: N, parents: Mapping[N, list[Link[N]]], limit: int) -> list[tuple[Link[N], ...]]:
    chains: list[tuple[Link[N], ...]] = []
    todo: list[tuple[N, tuple[Link[N], ...]]] = [(node, ())]
    while todo and len(chains) < limit:
        here, chain = todo.pop()
        if not parents[here]:  # a start
            chains.append(chain)
            continue
        seen: set[N] = set()
        for link in reversed(parents[here]):
            if link.source not in seen:  # two call sites of one caller are one step
                seen.add(link.source)
                todo.append((link.source, (link, *chain)))
    return chains


def rank(count: int, links: Sequence[tuple[int, int]], *, damping: float = 0.85, rounds: int = 30) -> list[float]:
    """PageRank of nodes 0..count-1 over (source, target); the sum is 1. A fixed number of rounds: no clock decides."""
    if not count:
        return []
    targets: list[list[int]] = [[] for _ in range(count)]
    for source, target in sorted(set(links)):
        if source != target:
            targets[source].append(target)
    scores = [1.0 / count] * count
    linked = [(source, row) for source, row in enumerate(targets) if row]
    loose = [source for source, row in enumerate(targets) if not row]
    for _ in range(rounds):
        base = (1 - damping) / count + damping * sum(scores[source] for source in loose) / count
        ahead = [base] * count
        for source, row in linked:
            share = damping * scores[source] / len(row)
            for target in row:
                ahead[target] += share
        scores = ahead
    return scores


def find_cycles(links: Mapping[N, Collection[N]], order: Callable[[N], Any]) -> list[tuple[list[N], list[N]]]:
    """Groups of nodes that all reach each other, largest first, each with one closed way through links that exist."""
    groups = [group for group in _components(links, order) if len(group) > 1 or group[0] in links.get(group[0], ())]
    found = [(sorted(group, key=order), _close(group, links, order)) for group in groups]
    return sorted(found, key=lambda item: (-len(item[0]), order(item[0][0])))


def _components(links: Mapping[N, Collection[N]], order: Callable[[N], Any]) -> list[list[N]]:
    """Strongly connected components, without recursion."""
    number: dict[N, int] = {}
    low: dict[N, int] = {}
    stack: list[N] = []
    on_stack: set[N] = set()
    found: list[list[N]] = []
    for root in sorted(links, key=order):
        if root in number:
            continue
        work: list[tuple[N, list[N]]] = [(root, sorted(links.get(root, ()), key=order, reverse=True))]
        number[root] = low[root] = len(number)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, todo = work[-1]
            if todo:
                ahead = todo.pop()
                if ahead not in number:
                    number[ahead] = low[ahead] = len(number)
                    stack.append(ahead)
                    on_stack.add(ahead)
                    work.append((ahead, sorted(links.get(ahead, ()), key=order, reverse=True)))
                elif ahead in on_stack:
                    low[node] = min(low[node], number[ahead])
                continue
            work.pop()
            if work:
                low[work[-1][0]] = min(low[work[-1][0]], low[node])
            if low[node] == number[node]:
                group: list[N] = []
                while True:
                    member = stack.pop()
                    on_stack.discard(member)
                    group.append(member)
                    if member == node:
                        break
                found.append(group)
    return found


def _close(group: list[N], links: Mapping[N, Collection[N]], order: Callable[[N], Any]) -> list[N]:
    """The shortest closed way through the group's first node: every step is a link."""
    inside = set(group)
    first = min(group, key=order)
    parents: dict[N, N] = {}
    frontier = [first]
    while frontier:
        ahead: list[N] = []
        for node in frontier:
            for target in sorted(inside.intersection(links.get(node, ())), key=order):
                if target == first:
                    way = [node]
                    while way[-1] != first:
                        way.append(parents[way[-1]])
                    return way[::-1]
                if target not in parents:
                    parents[target] = node
                    ahead.append(target)
        frontier = ahead
    return [first]
