"""How results are connected: who calls whom, what several of them use, and what patterns that makes. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from cq.model.find import CallNode, ConnectionGraph, Node, Pattern

MAX_PATTERNS = 20


def connect(query: str, call_depth: int, nodes: Sequence[Node]) -> ConnectionGraph:
    """Marks what is a result (★) and what several results use and is none (◆), and finds the patterns."""
    ranks = {key_of(node.file, node.name): node.rank for node in nodes}
    users: dict[str, set[int]] = {}
    names: dict[str, tuple[str, str]] = {}
    for node in nodes:
        for call in _each(node.calls):
            if call.file:
                names.setdefault(key_of(call.file, call.name), (call.name, call.file))
                users.setdefault(key_of(call.file, call.name), set()).add(node.rank)
        for key in node.uses:
            file, _, name = key.rpartition(":")
            names.setdefault(key, (name, file))
            users.setdefault(key, set()).add(node.rank)
    shared = {key for key, ranks_of in users.items() if len(ranks_of) > 1 and not _rank_of(ranks, *names[key])}

    def mark(call: CallNode) -> CallNode:
        rank = _rank_of(ranks, call.name, call.file) if call.file else 0
        sign = "" if call.cycle else "★" if rank else "◆" if key_of(call.file, call.name) in shared else ""
        return msgspec.structs.replace(call, result=rank, mark=sign, calls=tuple(map(mark, call.calls)))

    marked = tuple(
        msgspec.structs.replace(node, calls=tuple(map(mark, node.calls)), callers=tuple(map(mark, node.callers)))
        for node in nodes
    )
    found = [*_find_hubs(marked), *_find_shared(marked, users, names, ranks), *_find_shared_types(marked)]
    found += [*_find_diamonds(marked), *_find_cycles(marked)]
    return ConnectionGraph(query, call_depth, marked, tuple(found[:MAX_PATTERNS]))


def key_of(file: str, name: str) -> str:
    return f"{file}:{name}"


def _rank_of(ranks: dict[str, int], name: str, file: str) -> int:
    """A member of a class that is a result belongs to that result."""
    while name:
        if rank := ranks.get(key_of(file, name)):
            return rank
        name = name.rpartition(".")[0]
    return 0


def _each(calls: Sequence[CallNode]) -> Iterator[CallNode]:
    todo = list(calls)
    while todo:
        call = todo.pop()
        yield call
        todo += call.calls


def _find_hubs(nodes: Sequence[Node]) -> Iterator[Pattern]:
    callers: dict[int, dict[int, str]] = {}
    for node in nodes:
        for call in node.calls:
            if call.result and call.result != node.rank:
                callers.setdefault(call.result, {})[node.rank] = call.name
    for rank, by in sorted(callers.items()):
        if len(by) > 1:
            node = nodes[rank - 1]
            yield Pattern("hub", node.name, node.file, rank, tuple(sorted(by)))


def _find_shared(
    nodes: Sequence[Node], users: dict[str, set[int]], names: dict[str, tuple[str, str]], ranks: dict[str, int]
) -> Iterator[Pattern]:
    """What several results use, called or not; a hub says it already."""
    hubs = {(pattern.file, pattern.name) for pattern in _find_hubs(nodes)}
    types = {(pattern.file, pattern.name) for pattern in _find_shared_types(nodes)}
    for key in sorted(users, key=lambda key: (-len(users[key]), key)):
        name, file = names[key]
        rank = _rank_of(ranks, name, file)
        by = users[key] - {rank}
        if len(by) > 1 and (file, name) not in hubs and (file, name) not in types:
            yield Pattern("shared_dep", name, file, rank, tuple(sorted(by)))


def _find_shared_types(nodes: Sequence[Node]) -> Iterator[Pattern]:
    users: dict[tuple[str, str], set[int]] = {}
    for node in nodes:
        for use in (*node.types_in, *node.types_out, *node.types):
            if use.origin:
                users.setdefault((use.type, use.origin), set()).add(node.rank)
    for (name, origin), by in sorted(users.items(), key=lambda item: (-len(item[1]), item[0])):
        if len(by) > 1:
            yield Pattern("shared_type", name, origin, by=tuple(sorted(by)), of=len(nodes))


def _find_diamonds(nodes: Sequence[Node]) -> Iterator[Pattern]:
    """Two ways from a result to the same definition, by two of its own calls."""
    for node in nodes:
        through: dict[str, dict[str, CallNode]] = {}
        for call in node.calls:
            for below in _each(call.calls):
                if below.file and not below.cycle:
                    through.setdefault(key_of(below.file, below.name), {})[call.name] = below
        for _, ways in sorted(through.items()):
            if len(ways) > 1:
                end = next(iter(ways.values()))
                yield Pattern("diamond", node.name, node.file, node.rank, path=(*sorted(ways), end.name))


def _find_cycles(nodes: Sequence[Node]) -> Iterator[Pattern]:
    seen: set[frozenset[str]] = set()
    for node in nodes:
        todo: list[tuple[tuple[str, ...], CallNode]] = [((node.name,), call) for call in reversed(node.calls)]
        while todo:
            way, call = todo.pop()
            if call.cycle:
                start = max((at for at, name in enumerate(way) if name == call.name), default=0)
                names = frozenset(way[start:])
                if names not in seen:
                    seen.add(names)
                    yield Pattern("cycle", call.name, call.file, path=(*way[start:], call.name))
            todo += [((*way, call.name), below) for below in reversed(call.calls)]
