"""Who calls and uses whom, as queries ask it: by the resolved links of the index. A link is `certain` where resolution
leaves one meaning, `possible` where several remain or, in code that is not resolved, only the name fits."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from cq.model.edge import Candidate, Certainty, Edge, SymbolRef
from cq.model.facts import Call, FileFacts, Symbol
from cq.questions.q.documents import OpenFile, owner_of
from cq.semantics.tree import open_semantics
from cq.store.codec import flatten
from cq.store.read import Reader, StoredFile, Tree


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
    status: Certainty
    of: int = 1  # how many definitions the call may mean


class Uses(NamedTuple):
    """What some definitions use: definitions by how sure that is, and names of which nothing more is known."""

    places: dict[Candidate, Certainty]
    names: set[str]


class Links:
    def __init__(self, reader: Reader, tree: Tree, files: dict[str, StoredFile]) -> None:
        self._reader, self._tree, self._files = reader, tree, files
        self._semantics = open_semantics(reader, tree.id)
        self._open = lru_cache(maxsize=64)(lambda path: OpenFile(reader, files[path]))
        self._sites = lru_cache(maxsize=1024)(self._find_sites)

    def find_callers(self, target: Definition) -> list[Link]:
        """By path and place."""
        place = self._semantics.documents.find_place(target.path, target.document, target.number)
        if place is None:
            return [self._link(*site, target, "possible", 1) for site in self._sites(target.name)]
        found: dict[tuple[str, int, int], Link] = {}
        for edge in self._semantics.referrers.find_callers(place):
            key = edge.source.path, edge.source.document, edge.call
            if key[0] in self._files and (key not in found or edge.ref.certainty == "certain"):
                call = self._open(key[0]).documents[key[1]].calls[edge.call]
                found[key] = self._link(key[0], key[1], call, target, edge.ref.certainty, edge.ref.count)
        return [found[key] for key in sorted(found)]

    def find_callees(self, source: Definition) -> list[Link]:
        """In the order of the calls; a call that may mean several definitions is several links."""
        place = self._semantics.documents.find_place(source.path, source.document, source.number)
        if place is None:
            return []
        calls, links = self._open(source.path).documents[source.document].calls, dict[tuple[int, Definition], Link]()
        for edge in self._semantics.referrers.find_out(place):
            if edge.call >= 0:
                call = calls[edge.call]
                for target in self._find_targets(edge):
                    link = Link(source, target, source.path, call.start, call.end, edge.ref.certainty, edge.ref.count)
                    links.setdefault((edge.call, target), link)
        return list(links.values())

    def count_callers(self, target: Definition) -> int:
        return len(self.find_callers(target))

    def find_uses(self, path: str, document: int, symbols: list[int]) -> Uses:
        """What the code of these definitions of a document, and of those inside them, refers to; themselves apart."""
        opened = self._open(path).documents[document]
        spans = [(opened.symbols[number].head, opened.symbols[number].end) for number in symbols]
        own = {self._semantics.documents.find_place(path, document, number) for number in symbols}
        inside = [r for r in opened.references if any(start <= r.start < end for start, end in spans)]
        if not self._semantics.documents.is_linked(path, document):
            names = {opened.symbols[number].name for number in symbols}
            return Uses({}, {r.name for r in inside} - names)
        refs: list[SymbolRef] = []
        known = {call.name_start for call in opened.calls}
        for reference, _, ref in self._semantics.meanings.find_names(path, document, self._facts(path, document)):
            if any(start <= reference.start < end for start, end in spans):
                refs.append(ref)
                # What is imported may be a value, of which only the type is known.
                if ref.candidates or not ref.module.startswith("builtins"):
                    known.add(reference.start)
        for number, symbol in enumerate(opened.symbols):
            if any(start <= symbol.head and symbol.end <= end for start, end in spans):
                place = self._semantics.documents.find_place(path, document, number)
                refs += [edge.ref for edge in self._semantics.referrers.find_out(place)] if place else []
        places: dict[Candidate, Certainty] = {}
        for ref in refs:
            for candidate in ref.candidates:
                if candidate not in own and places.get(candidate) != "certain":
                    places[candidate] = ref.certainty
        return Uses(places, {r.name for r in inside if r.start not in known})

    def find_place(self, path: str, document: int, symbol: int) -> Candidate:
        """As Uses names it."""
        return self._semantics.meanings.find_own(path, document, symbol)

    def _facts(self, path: str, document: int) -> FileFacts:
        return flatten(self._reader.facts(self._files[path].content))[document][0]

    def _link(self, path: str, document: int, call: Call, target: Definition, status: Certainty, of: int) -> Link:
        symbols = self._open(path).documents[document].symbols
        source = define(path, document, symbols, owner_of(symbols, call.scope))
        return Link(source, target, path, call.start, call.end, status, of)

    def _find_targets(self, edge: Edge) -> list[Definition]:
        found: list[Definition] = []
        for place in edge.ref.candidates:
            number = self._semantics.documents.find_symbol(place)
            if number is not None and number >= 0 and place.path in self._files:
                symbols = self._open(place.path).documents[place.document].symbols
                found.append(define(place.path, place.document, symbols, number))
        return found

    def _find_sites(self, name: str) -> list[tuple[str, int, Call]]:
        """Calls of a name, by path and place."""
        contents = self._reader.find_names(name, "called") if name else []
        found: list[tuple[str, int, Call]] = []
        for paths in self._reader.paths(self._tree.id, contents).values():
            for path in paths:
                for document, calls in enumerate(self._open(path).part("calls")):
                    found += [(path, document, call) for call in calls if call.name == name]
        return sorted(found, key=lambda site: (site[0], site[1], site[2].start, site[2].end))


def define(path: str, document: int, symbols: tuple[Symbol, ...], number: int) -> Definition:
    if number < 0:
        return Definition(path, document, -1, path.rpartition("/")[2], "module", 0, 0)
    symbol = symbols[number]
    return Definition(path, document, number, symbol.name, symbol.kind, symbol.head, symbol.end)
