"""The fewest links without which a group has no cycle, against every order of small groups."""

from __future__ import annotations

import itertools
import random
import time

import pytest

from cq.graph.cycles import MOST_EXACT, find_breaks


def make(seed: int, size: int, share: float) -> dict[str, dict[str, int]]:
    chance = random.Random(seed)
    names = [f"n{number}" for number in range(size)]
    return {a: {b: chance.randint(1, 5) for b in names if b != a and chance.random() < share} for a in names}


def has_cycle(links: dict[str, dict[str, int]], cut: list[tuple[str, str]]) -> bool:
    left = {source: {target for target in targets if (source, target) not in cut} for source, targets in links.items()}
    while ends := [name for name, targets in left.items() if not targets & left.keys()]:
        for name in ends:
            del left[name]
    return bool(left)


@pytest.mark.parametrize("seed", range(60))
def test_no_fewer_links_break_all_cycles_of_a_small_group(seed: int):
    links = make(seed, 2 + seed % 5, 0.5)
    names = list(links)

    def cost(order: tuple[str, ...]) -> tuple[int, int]:
        back = [links[a][b] for a in names for b in links[a] if order.index(a) > order.index(b)]
        return len(back), sum(back)

    cut, is_fewest = find_breaks(names, links)
    assert is_fewest
    assert not has_cycle(links, cut)
    assert (len(cut), sum(links[a][b] for a, b in cut)) == min(map(cost, itertools.permutations(names)))


def test_of_a_large_group_all_cycles_are_broken_and_doubt_is_said():
    links = make(1, 200, 0.05)
    cut, is_fewest = find_breaks(list(links), links)
    assert not is_fewest
    assert not has_cycle(links, cut)
    assert len(cut) < sum(map(len, links.values())) / 2
    assert (cut, False) == find_breaks(list(links), links)


def test_a_ring_is_broken_at_its_weakest_link():
    ring = {f"n{i:02}": {f"n{(i + 1) % 30:02}": 1 if i == 7 else 9} for i in range(30)}
    assert find_breaks(sorted(ring), ring)[0] == [("n07", "n08")]


def test_the_largest_group_that_is_weighed_in_full_costs_little():
    names = [f"n{number}" for number in range(MOST_EXACT)]
    began = time.process_time()
    cut, _ = find_breaks(names, {a: {b: 1 for b in names if b != a} for a in names})
    assert len(cut) == MOST_EXACT * (MOST_EXACT - 1) // 2
    assert time.process_time() - began < 5
