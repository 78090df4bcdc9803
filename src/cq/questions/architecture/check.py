"""What breaks a rule: edges, ways and cycles over the files of a tree. Pure, but for the groups it is given."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from posixpath import dirname
from typing import NamedTuple

from cq.graph.walk import find_cycles
from cq.model.config import ArchitectureRule
from cq.model.errors import ConfigError
from cq.model.location import Location

MAX_EXACT = 14  # files of a cycle up to which the fewest arrows to cut are found; beyond, few


class Tie(NamedTuple):
    """An edge from file to file, or to a package from outside (`<name>`); the first of its kind that stands there."""

    source: str
    target: str
    kind: str
    location: Location
    says: str


Ties = Mapping[str, Mapping[str, Tie]]  # by source, then by target
Group = Callable[[str], frozenset[str]]


class Violation(NamedTuple):
    rule: ArchitectureRule
    way: tuple[Tie, ...]  # of a cycle all the way round
    says: str
    cut: tuple[Tie, ...] = ()
    size: int = 0  # files of a cycle


def check_rule(rule: ArchitectureRule, ties: Ties, group: Group) -> list[Violation]:
    """By place. ConfigError for a rule that contradicts itself or can match nothing."""
    match rule.kind:
        case "forbidden":
            found = _check_forbidden(rule, ties, group)
        case "layers":
            found = _check_layers(rule, ties, group)
        case "independent":
            found = _check_independent(rule, ties, group)
        case "only_through":
            found = _check_door(rule, ties, group)
        case "acyclic":
            return list(_check_acyclic(rule, ties, group))
    return sorted(dict.fromkeys(found), key=lambda each: (each.way[0].source, each.way[-1].target, len(each.way)))


def _check_forbidden(rule: ArchitectureRule, ties: Ties, group: Group) -> Iterator[Violation]:
    sources = frozenset().union(*map(group, rule.source))
    targets = frozenset().union(*map(group, rule.target))
    if sources & targets:
        both = min(sources & targets)
        raise ConfigError(f"rule {rule.id!r}: {both} is in `from` and in `to`", hint="no file can be kept from itself")
    for way in find_ways(ties, sources, targets, frozenset(), is_indirect=bool(rule.indirect)):
        yield Violation(rule, way, f"{', '.join(rule.source)} must not reach {', '.join(rule.target)}")


def _check_layers(rule: ArchitectureRule, ties: Ties, group: Group) -> Iterator[Violation]:
    layers = [[name.strip() for name in layer.split("|")] for layer in rule.layers]
    names = [name for layer in layers for name in layer]
    if len(names) < 2:
        raise ConfigError(f"rule {rule.id!r}: one layer alone can break nothing", hint="name two, the highest first")
    _check_apart(rule, names, group)
    for at, layer in enumerate(layers):
        for name in layer:
            for upper in (other for above in layers[:at] for other in above):
                says = f"{name} is below {upper}, and must not reach it"
                yield from _find_between(rule, ties, group, names, name, upper, says)
            for beside in layer:
                if beside != name:
                    says = f"{name} and {beside} stand side by side, and must not reach each other"
                    yield from _find_between(rule, ties, group, names, name, beside, says)


def _check_independent(rule: ArchitectureRule, ties: Ties, group: Group) -> Iterator[Violation]:
    if len(rule.groups) < 2:
        raise ConfigError(f"rule {rule.id!r}: one group alone can break nothing", hint="name two or more")
    _check_apart(rule, rule.groups, group)
    for name in rule.groups:
        for other in rule.groups:
            if name != other:
                says = f"{name} and {other} must not reach each other"
                yield from _find_between(rule, ties, group, rule.groups, name, other, says)


def _check_apart(rule: ArchitectureRule, names: Collection[str], group: Group) -> None:
    seen: dict[str, str] = {}
    for name in names:
        for path in sorted(group(name)):
            if seen.setdefault(path, name) != name:
                raise ConfigError(
                    f"rule {rule.id!r}: {path} is in {seen[path]!r} and in {name!r}", hint="groups of a rule are apart"
                )


def _find_between(
    rule: ArchitectureRule, ties: Ties, group: Group, names: Collection[str], source: str, target: str, says: str
) -> Iterator[Violation]:
    """A way through a third group of the rule breaks the rule elsewhere too, and is told there."""
    others = frozenset().union(*(group(name) for name in names if name not in (source, target)))
    indirect = rule.indirect is not False
    for way in find_ways(ties, group(source), group(target), others, is_indirect=indirect):
        yield Violation(rule, way, says)


def _check_door(rule: ArchitectureRule, ties: Ties, group: Group) -> Iterator[Violation]:
    inside = frozenset().union(*map(group, rule.target))
    doors = frozenset().union(*map(group, rule.door))
    sources = frozenset().union(*map(group, rule.source))
    if not doors & inside:
        raise ConfigError(
            f"rule {rule.id!r}: no door is in {', '.join(rule.target)}", hint="name a module of the group"
        )
    if inside <= doors:
        raise ConfigError(f"rule {rule.id!r}: everything in {', '.join(rule.target)} is a door")
    for source in sorted(ties):
        if source in inside or (sources and source not in sources):
            continue
        for target, tie in sorted(ties[source].items()):
            if target in inside and target not in doors:
                yield Violation(rule, (tie,), f"{', '.join(rule.target)} is entered through {', '.join(rule.door)}")


def _check_acyclic(rule: ArchitectureRule, ties: Ties, group: Group) -> Iterator[Violation]:
    inside = frozenset().union(*map(group, rule.groups)) if rule.groups else None
    lifted: dict[str, dict[str, Tie]] = defaultdict(dict)
    for source, targets in sorted(ties.items()):
        for target, tie in sorted(targets.items()):
            if target.startswith("<") or (inside is not None and not {source, target} <= inside):
                continue
            ends = (source, target) if rule.level == "file" else (dirname(source) or ".", dirname(target) or ".")
            if ends[0] != ends[1]:
                lifted[ends[0]].setdefault(ends[1], tie)
    for members, way in find_cycles(lifted, str):
        steps = tuple(lifted[one][two] for one, two in zip(way, [*way[1:], way[0]], strict=True))
        kept = {
            one: {two: lifted[one][two] for two in lifted[one] if two in members} for one in members if one in lifted
        }
        cut = tuple(kept[one][two] for one, two in find_cut(kept))
        what = "files" if rule.level == "file" else "directories"
        yield Violation(rule, steps, f"{len(members)} {what} depend on each other", cut, len(members))


def find_ways(
    ties: Ties, sources: frozenset[str], targets: frozenset[str], closed: frozenset[str], *, is_indirect: bool
) -> Iterator[tuple[Tie, ...]]:
    """The shortest way from the sources to each edge that enters the targets, through neither of them nor what is
    closed. Without `is_indirect` only edges from a source."""
    parents: dict[str, Tie | None] = dict.fromkeys(sorted(sources))
    frontier = list(parents)
    while frontier:
        ahead: list[str] = []
        for here in frontier:
            for target, tie in sorted(ties.get(here, {}).items()):
                if target in targets:
                    yield _unwind(tie, parents)
                elif is_indirect and target not in parents and target not in closed and not target.startswith("<"):
                    parents[target] = tie
                    ahead.append(target)
        frontier = ahead


def _unwind(last: Tie, parents: Mapping[str, Tie | None]) -> tuple[Tie, ...]:
    way = [last]
    while (tie := parents[way[-1].source]) is not None:
        way.append(tie)
    return tuple(reversed(way))


def find_cut(links: Mapping[str, Collection[str]]) -> list[tuple[str, str]]:
    """The fewest arrows without which a group has no cycle; of a large group few, not surely the fewest."""
    names = sorted({*links, *(target for targets in links.values() for target in targets)})
    order = _order_exactly(names, links) if len(names) <= MAX_EXACT else _order_greedily(names, links)
    place = {name: at for at, name in enumerate(order)}
    return [(one, two) for one in names for two in sorted(links.get(one, ())) if place[one] > place[two]]


def _order_exactly(names: list[str], links: Mapping[str, Collection[str]]) -> list[str]:
    """An order with the fewest arrows backwards, subset by subset."""
    number = {name: at for at, name in enumerate(names)}
    into = [0] * len(names)  # who has an arrow into each
    for one, targets in links.items():
        for two in targets:
            if one != two:
                into[number[two]] |= 1 << number[one]
    best: list[tuple[int, int]] = [(0, -1)] * (1 << len(names))
    for chosen in range(1, 1 << len(names)):
        found = (1 << 30, -1)
        for last in range(len(names)):
            if chosen >> last & 1:
                before = chosen & ~(1 << last)
                # What comes behind `last` and points at it goes backwards.
                cost = best[before][0] + (into[last] & ~chosen).bit_count()
                found = min(found, (cost, last))
        best[chosen] = found
    order: list[str] = []
    at = (1 << len(names)) - 1
    while at:
        last = best[at][1]
        order.append(names[last])
        at &= ~(1 << last)
    return order[::-1]


def _order_greedily(names: list[str], links: Mapping[str, Collection[str]]) -> list[str]:
    """Sources to the front, sinks to the back, else what points most where least points at (Eades, Lin and Smyth)."""
    out = {name: {two for two in links.get(name, ()) if two != name} for name in names}
    into: dict[str, set[str]] = {name: set() for name in names}
    for one in names:
        for two in out[one]:
            into[two].add(one)
    left, front, back = set(names), list[str](), list[str]()

    def take(name: str) -> None:
        left.discard(name)
        for two in out[name]:
            into[two].discard(name)
        for one in into[name]:
            out[one].discard(name)

    while left:
        sinks = sorted(name for name in left if not out[name])
        sources = sorted(name for name in left if not into[name] and out[name])
        for name in sinks:
            back.append(name)
            take(name)
        for name in sources:
            front.append(name)
            take(name)
        if not sinks and not sources:
            name = min(left, key=lambda each: (len(into[each]) - len(out[each]), each))
            front.append(name)
            take(name)
    return front + back[::-1]


def make_ties(every: Iterable[Tie]) -> dict[str, dict[str, Tie]]:
    """The first of each pair."""
    found: dict[str, dict[str, Tie]] = defaultdict(dict)
    for tie in every:
        if tie.source != tie.target:
            found[tie.source].setdefault(tie.target, tie)
    return found
