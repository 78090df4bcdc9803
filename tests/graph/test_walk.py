"""Walks, paths, ranks and cycles over small graphs, and over random ones beside a plain computation."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cq.graph.walk import Link, find_cycles, find_paths, rank, walk

GRAPH = {"a": "bc", "b": "d", "c": "d", "d": "e", "e": "a", "x": "a"}


def links(graph: dict[str, str]) -> Any:
    rows = [
        Link(source, target, "calls", 0.9 if target == "c" else 1.0) for source in graph for target in graph[source]
    ]

    def forward(nodes: Collection[str]) -> Iterable[Link[str]]:
        return [row for row in rows if row.source in nodes]

    def backward(nodes: Collection[str]) -> Iterable[Link[str]]:
        return [row for row in rows if row.target in nodes]

    return forward, backward


def test_a_walk_goes_outward_with_a_witness_for_each_node():
    forward, backward = links(GRAPH)
    found = walk(["a"], forward, depth=2, forward=True, order=str)
    assert [(item.node, item.distance) for item in found.nodes] == [("a", 0), ("b", 1), ("c", 1), ("d", 2)]
    assert [link.target for link in found.nodes[3].path] == ["b", "d"]
    assert found.nodes[2].confidence == 0.9
    dependents = walk(["d"], backward, depth=9, forward=False, order=str)
    assert {item.node for item in dependents.nodes} == {"d", "b", "c", "a", "e", "x"}


def test_a_cap_leaves_a_record():
    forward, _ = links({"a": "bcdef"})
    found = walk(["a"], forward, depth=1, forward=True, order=str, max_nodes=3)
    assert [item.node for item in found.nodes] == ["a", "b", "d"]
    assert [(cut.cap, cut.limit, cut.omitted) for cut in found.truncated] == [("nodes", 3, 3)]


def test_the_shortest_chains_are_found():
    forward, _ = links(GRAPH)
    chains, cut = find_paths(["x"], {"e"}, forward, order=str)
    assert [[link.target for link in chain] for chain in chains] == [["a", "b", "d", "e"], ["a", "c", "d", "e"]]
    assert not cut
    assert find_paths(["e"], {"x"}, forward, order=str) == ([], False)
    assert find_paths(["x"], {"e"}, forward, order=str, max_cost=2) == ([], True)


def test_a_way_over_one_of_many_candidates_is_longer_than_it_looks():
    rows = [Link("a", "z", "calls", 0.009, "ambiguous"), *(Link(*pair, "calls", 0.95) for pair in ("ab", "bc", "cz"))]

    def forward(nodes: Collection[str]) -> Iterable[Link[str]]:
        return [row for row in rows if row.source in nodes]

    chains, _ = find_paths(["a"], {"z"}, forward, order=str)
    assert [[link.target for link in chain] for chain in chains] == [["b", "c", "z"]]
    assert find_paths(["a"], {"z"}, forward, order=str, max_cost=2) == ([], True)


def test_what_many_depend_on_ranks_first():
    scores = rank(4, [(0, 3), (1, 3), (2, 3), (3, 0)])
    assert abs(sum(scores) - 1) < 1e-9
    assert sorted(range(4), key=lambda node: -scores[node])[:2] == [3, 0]


def test_a_cycle_is_made_of_links_that_exist():
    ((group, way),) = find_cycles(GRAPH, str)
    assert (group, way) == (["a", "b", "c", "d", "e"], ["a", "b", "d", "e"])
    assert all(after in GRAPH[before] for before, after in zip(way, [*way[1:], way[0]], strict=True))


@given(st.dictionaries(st.integers(0, 12), st.sets(st.integers(0, 12)), max_size=13))
def test_groups_are_the_nodes_that_reach_each_other(graph: dict[int, set[int]]):
    def reach(start: int) -> set[int]:
        seen: set[int] = set()
        todo = list(graph.get(start, ()))
        while todo:
            node = todo.pop()
            if node not in seen:
                seen.add(node)
                todo += graph.get(node, ())
        return seen

    expected = {frozenset(b for b in reach(a) if a in reach(b)) for a in graph if a in reach(a)}
    found = find_cycles(graph, int)
    assert {frozenset(group) for group, _ in found} == expected
    for _, way in found:
        assert all(after in graph[before] for before, after in zip(way, [*way[1:], way[0]], strict=True))


def test_a_round_that_finds_too_many_is_the_last():
    asked: list[list[str]] = []

    def ask(nodes: Collection[str]) -> list[Link[str]]:
        asked.append(sorted(nodes))
        return [Link(node, f"{node}{letter}", "calls") for node in nodes for letter in "abcd" for _ in range(2)]

    found = walk(["x"], ask, depth=4, forward=True, order=str, max_nodes=8)
    assert asked == [["x"], ["xa", "xb", "xc", "xd"]]
    assert len(found.nodes) == 8
    assert [(cut.cap, cut.limit, cut.observed) for cut in found.truncated] == [("depth", 2, 4), ("nodes", 8, 21)]


def test_a_way_begins_at_whichever_start_is_nearest():
    links = {"a": "b", "b": "z", "c": "z"}

    def ask(nodes: Collection[str]) -> list[Link[str]]:
        return [Link(node, links[node], "calls") for node in nodes if node in links]

    chains, cut = find_paths(["a", "c"], {"z"}, ask, order=str)
    assert ([[link.source for link in chain] for chain in chains], cut) == ([["c"]], False)
