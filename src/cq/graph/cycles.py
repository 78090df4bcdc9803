"""The fewest links of a group of nodes that all reach each other, without which no cycle is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

MOST_EXACT = 14  # nodes of a group for which every order is weighed: the cost doubles with each
_MOST_STEPS = 8_000_000
_Costs = list[dict[int, int]]  # of every node: what its links cost, by target


def find_breaks(nodes: Sequence[str], links: Mapping[str, Mapping[str, int]]) -> tuple[list[tuple[str, str]], bool]:
    """The links to be cut, as (source, target), in order; and whether no fewer would do. `links` says of every target
    how many sites a link has: of as many links, those with the fewest sites are cut."""
    numbers = {name: number for number, name in enumerate(nodes)}
    most = 1 + sum(sum(links.get(name, {}).values()) for name in nodes)
    out = [
        {numbers[t]: most + sites for t, sites in links.get(name, {}).items() if t in numbers and t != name}
        for name in nodes
    ]
    is_exact = len(nodes) <= MOST_EXACT
    order = _order_exactly(out) if is_exact else _order_greedily(out)
    place = {number: at for at, number in enumerate(order)}
    cut = [
        (nodes[source], nodes[target])
        for source, targets in enumerate(out)
        for target in sorted(targets)
        if place[source] > place[target]
    ]
    return cut, is_exact


def _order_exactly(out: _Costs) -> list[int]:
    """The order whose backward links cost least: the best of every set of first nodes is that of one node less, with
    that one behind it."""
    count = len(out)
    best, last = [0] * (1 << count), [0] * (1 << count)
    for chosen in range(1, 1 << count):
        least = -1
        for node in range(count):
            if chosen >> node & 1:
                before = chosen & ~(1 << node)
                cost = best[before] + sum(cost for other, cost in out[node].items() if before >> other & 1)
                if least < 0 or cost < least:
                    least, last[chosen] = cost, node
        best[chosen] = least
    order: list[int] = []
    chosen = (1 << count) - 1
    while chosen:
        order.append(last[chosen])
        chosen &= ~(1 << last[chosen])
    return order[::-1]


def _order_greedily(out: _Costs) -> list[int]:
    """Those first that have most going out beside what comes in; then every node goes where it costs least, until none
    moves any more or enough steps were made."""
    count = len(out)
    into: list[dict[int, int]] = [{} for _ in out]
    for source, targets in enumerate(out):
        for target, cost in targets.items():
            into[target][source] = cost
    gains = {node: sum(out[node].values()) - sum(into[node].values()) for node in range(count)}
    order: list[int] = []
    while gains:
        first = max(gains, key=lambda node: (gains[node], -node))
        order.append(first)
        del gains[first]
        for other, cost in out[first].items():
            if other in gains:
                gains[other] += cost
        for other, cost in into[first].items():
            if other in gains:
                gains[other] -= cost
    for _ in range(min(20, _MOST_STEPS // (count * count))):
        moved = False
        for node in range(count):
            at = order.index(node)
            rest = order[:at] + order[at + 1 :]
            cost = least = sum(into[node].values())  # in front of all: what leads to it goes back
            best = 0
            for place, other in enumerate(rest, 1):
                cost += out[node].get(other, 0) - into[node].get(other, 0)
                if cost < least or (cost == least and place == at):
                    least, best = cost, place
            if best != at:
                order, moved = [*rest[:best], node, *rest[best:]], True
        if not moved:
            break
    return order
