"""Who calls whom. By name and scope, through the index: every definition of a called name is a candidate.

`Links` is all that expansions and fields know of a call graph; one that resolves can take the place of `NameLinks`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, Protocol

from cq.features.structural.documents import OpenFile, owner_of
from cq.model.facts import Call, Symbol
from cq.query.vocabulary import ENTITIES
from cq.store.read import Reader, StoredFile, Tree

_CALLED = frozenset({*ENTITIES["function"], *ENTITIES["method"], *ENTITIES["class"], "macro", "enum_member"})


class Definition(NamedTuple):
    """A definition of the tree; `number` of -1 is the module itself."""

    path: str
    document: int
    number: int
    name: str
    kind: str
    start: int
    end: int


class Link(NamedTuple):
    source: Definition
    target: Definition
    path: str
    start: int  # of the call
    end: int
    status: str  # resolved, ambiguous, or by name
    of: int = 1  # how many definitions the call may mean


class Links(Protocol):
    status: str

    def find_callers(self, target: Definition) -> list[Link]: ...
    def find_callees(self, source: Definition) -> list[Link]: ...
    def count_callers(self, target: Definition) -> int: ...


class NameLinks:
    status = "by name"

    def __init__(self, reader: Reader, tree: Tree, files: dict[str, StoredFile]) -> None:
        self._reader, self._tree, self._files = reader, tree, files
        self._open = lru_cache(maxsize=64)(lambda path: OpenFile(reader, files[path]))
        self._sites = lru_cache(maxsize=1024)(self._find_sites)

    def find_callers(self, target: Definition) -> list[Link]:
        name = self._called_name(target)
        links: list[Link] = []
        for path, document, call in self._sites(name):
            symbols = self._open(path).documents[document].symbols
            source = define(path, document, symbols, owner_of(symbols, call.scope))
            links.append(Link(source, target, path, call.start, call.end, self.status))
        return links

    def find_callees(self, source: Definition) -> list[Link]:
        document = self._open(source.path).documents[source.document]
        symbols = document.symbols
        links: list[Link] = []
        for call in document.calls:
            if owner_of(symbols, call.scope) == source.number and call.name and call.kind != "decorator":
                targets = self._definitions(call.name)
                links += [
                    Link(source, target, source.path, call.start, call.end, self.status, len(targets))
                    for target in targets
                ]
        return links

    def count_callers(self, target: Definition) -> int:
        return len(self._sites(self._called_name(target)))

    def _called_name(self, target: Definition) -> str:
        if target.kind == "constructor" and target.number >= 0:
            # A constructor is called by the name of its class.
            symbols = self._open(target.path).documents[target.document].symbols
            parent = symbols[target.number].parent
            return symbols[parent].name if parent >= 0 else target.name
        return target.name

    def _find_sites(self, name: str) -> list[tuple[str, int, Call]]:
        """Calls of a name, by path and place."""
        contents = self._reader.find_names(name, "called") if name else []
        found: list[tuple[str, int, Call]] = []
        for paths in self._reader.paths(self._tree.id, contents).values():
            for path in paths:
                for document, calls in enumerate(self._open(path).part("calls")):
                    found += [
                        (path, document, call) for call in calls if call.name == name and call.kind != "decorator"
                    ]
        return sorted(found, key=lambda site: (site[0], site[1], site[2].start, site[2].end))

    def _definitions(self, name: str) -> list[Definition]:
        found: list[Definition] = []
        for row in self._reader.find_symbols(self._tree.id, name):
            if row.kind in _CALLED and row.path in self._files:
                symbols = self._open(row.path).documents[row.document].symbols
                found.append(define(row.path, row.document, symbols, row.number))
        return found


def define(path: str, document: int, symbols: tuple[Symbol, ...], number: int) -> Definition:
    if number < 0:
        return Definition(path, document, -1, path.rpartition("/")[2], "module", 0, 0)
    symbol = symbols[number]
    return Definition(path, document, number, symbol.name, symbol.kind, symbol.head, symbol.end)
