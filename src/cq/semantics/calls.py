"""What each call means; where nobody knows its receiver, by its name alone: the methods that could take it."""

from __future__ import annotations

from collections.abc import Iterator

from cq.graph.links import is_by_name, name_key
from cq.graph.names import Method, find_by_name, fits
from cq.model.edge import Candidate, Edge, Links, Shape, SymbolRef
from cq.semantics.documents import Documents
from cq.semantics.memory import Memory, remembered


class LinkedCalls:
    """Calls are known by their number in their document."""

    def __init__(self, documents: Documents, memory: Memory) -> None:
        self._documents, self.memory = documents, memory

    def find_call(self, path: str, document: int, number: int) -> SymbolRef:
        """What a call means, with candidates by name where nobody knows its receiver."""
        links = self._documents.links_of(path, document)
        return SymbolRef("", "unresolved") if links is None else self._fill(path, document, number, links)

    def find_constructor(self, path: str, document: int, number: int) -> SymbolRef | None:
        """The constructor that a call runs beside the class it means."""
        links = self._documents.links_of(path, document)
        at = None if links is None else links.constructors.get(number)
        return None if links is None or at is None else links.refs[at]

    def find_handed(self, path: str, document: int, number: int) -> SymbolRef | None:
        """What a call hands on to be called: `map(f, …)`."""
        links = self._documents.links_of(path, document)
        at = None if links is None else links.callbacks.get(number)
        return None if links is None or at is None else links.refs[at]

    def find_edges(self, source: Candidate, links: Links, number: int, possible: bool) -> Iterator[Edge]:
        """The edges of one call: what it runs or makes, the constructor, and what it hands on to be called. Without
        `possible`, methods of its name are not looked for."""
        ref = links.refs[links.calls[number]]
        if possible and number not in links.replaced:
            ref = self._fill(source.path, source.document, number, links)
        kind = "calls"
        if number in links.constructors:
            kind = "instantiates"
            yield Edge("calls", source, links.refs[links.constructors[number]], number)
        if number in links.decorators:
            kind = "decorates"
        elif number in links.replaced:
            kind = "usages"
        if kind != "usages" or not is_by_name(ref):  # what runs is known where the name alone says nothing
            yield Edge(kind, source, ref, number)
        if number in links.runs:
            yield Edge("calls", source, links.refs[links.runs[number]], number)
        if number in links.callbacks:
            yield Edge("calls", source, links.refs[links.callbacks[number]], number)

    @remembered
    def find_by_name(self, name: str) -> dict[Candidate, list[tuple[str, int]]]:
        """The calls on unknown receivers of a name, as (path, document and number), by the methods they may mean."""
        found: dict[Candidate, list[tuple[str, int]]] = {}
        for path, calls in self._documents.index.find_referrers(name_key(name)):
            for call in calls:
                document, number = call >> 24, call & 0xFFFFFF
                links = self._documents.links_of(path, document)
                if links is not None and number not in links.replaced:
                    ref = self._fill(path, document, number, links)
                    for place in ref.candidates if ref.evidence == "name" else ():
                        found.setdefault(place, []).append((path, call))
        return found

    def _fill(self, path: str, document: int, number: int, links: Links) -> SymbolRef:
        ref = links.refs[links.calls[number]]
        return self._find_methods(path, document, ref, links.shapes[number]) if is_by_name(ref) else ref

    @remembered
    def _find_methods(self, path: str, document: int, ref: SymbolRef, shape: Shape) -> SymbolRef:
        near = self._documents.find_near(path, document)
        return find_by_name(ref, path, self._fitting(ref.name, shape), near, self._documents.is_imported)

    @remembered
    def _fitting(self, name: str, shape: Shape) -> list[Method]:
        return [method for method in self._named(name) if fits(method.parameters, *shape)]

    @remembered
    def _named(self, name: str) -> list[Method]:
        return [
            Method(Candidate(path, document, full), parameters)
            for path, document, full, parameters in self._documents.index.find_methods(name)
        ]
