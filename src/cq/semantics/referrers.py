"""Who refers to a definition, and to what it refers: the edges that links make, asked from either end."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from cq.graph.links import target_key
from cq.model.edge import RELATIONS, Candidate, Edge, Links
from cq.semantics.calls import LinkedCalls
from cq.semantics.documents import Documents
from cq.semantics.memory import Memory, remembered


class Referrers:
    """`edge.ref.certainty` says how sure each is."""

    def __init__(self, documents: Documents, calls: LinkedCalls, memory: Memory) -> None:
        self._documents, self._calls, self.memory = documents, calls, memory

    def find_out(self, source: Candidate, *, possible: bool = True) -> list[Edge]:
        """Semantics out of a definition; those of the code inside it that is no definition of its own. Of a module too.
        Without `possible`, what only a name speaks for is left out, which is most of the cost."""
        links = self._documents.links_of(source.path, source.document)
        if links is None:
            return []
        calls, relations = self._find_outgoing(source.path, source.document)
        numbers = calls.get(source.name, ())
        found = [edge for number in numbers for edge in self._calls.find_edges(source, links, number, possible)]
        return found + relations.get(source.name, [])

    def find_all(self, path: str, document: int) -> Iterator[Edge]:
        """Every edge out of a document: its calls in order, then the rest by kind. Calls in a function without a name
        are its own here; elsewhere they are those of the definition around it too."""
        links = self._documents.links_of(path, document)
        if links is not None:
            for number, scope in enumerate(links.scopes):
                holder = Candidate(path, document, links.lambdas.get(number, scope))
                yield from self._calls.find_edges(holder, links, number, possible=True)
            yield from _find_relations(path, document, links)

    @remembered
    def find_into(self, target: Candidate, *, possible: bool = True) -> Sequence[Edge]:
        """Every edge that means, or may mean, a definition: certain ones and candidates, by path."""
        found = self.find_callers(target, possible=possible)
        for path, _ in self.find_files(target):
            for document, links in enumerate(self._documents.links(path)):
                if links is not None:
                    found += self._find_related(path, document, links, target)
        return tuple(sorted(found, key=lambda edge: (edge.source.path, edge.source.document)))

    def find_callers(self, target: Candidate, *, possible: bool = True) -> list[Edge]:
        """Calls that run a function, or make an instance of a class."""
        calls = {path: set(numbers) for path, numbers in self.find_files(target)}
        name = target.name.rpartition(".")[2].partition("#")[0]
        for path, call in self._calls.find_by_name(name).get(target, ()) if name and possible else ():
            calls.setdefault(path, set()).add(call)
        found: list[Edge] = []
        for path in sorted(calls):
            for call in sorted(calls[path]):
                document, number = call >> 24, call & 0xFFFFFF
                links = self._documents.links_of(path, document)
                if links is not None:
                    source = Candidate(path, document, links.scopes[number])
                    edges = self._calls.find_edges(source, links, number, possible)
                    found += [edge for edge in edges if target in edge.ref.candidates]
        return found

    @remembered
    def find_files(self, target: Candidate) -> Sequence[tuple[str, Sequence[int]]]:
        """(path, calls) of the files that link to a definition, or may; by path. Calls on unknown receivers apart."""
        return self._documents.index.find_referrers(target_key(target))

    def _find_related(self, path: str, document: int, links: Links, target: Candidate) -> Sequence[Edge]:
        """The edges of a document into a definition that are no calls. Most documents are asked about one definition;
        those that are asked about a second are sorted by what they refer to."""
        asked = self._asked(path, document)
        asked.add(target)
        if len(asked) > 1:
            return self._sort_relations(path, document).get(target, ())
        meant = {number for number, ref in enumerate(links.refs) if target in ref.candidates}
        return [*_find_relations(path, document, links, meant)] if meant else ()

    @remembered
    def _asked(self, path: str, document: int) -> set[Candidate]:
        del path, document
        return set()

    @remembered
    def _sort_relations(self, path: str, document: int) -> dict[Candidate, list[Edge]]:
        links, found = self._documents.links_of(path, document), dict[Candidate, list[Edge]]()
        for edge in () if links is None else _find_relations(path, document, links):
            for place in edge.ref.candidates:
                found.setdefault(place, []).append(edge)
        return found

    @remembered
    def _find_outgoing(self, path: str, document: int) -> tuple[dict[str, list[int]], dict[str, list[Edge]]]:
        """By name of a definition: the calls that it makes, and what else it refers to."""
        calls: dict[str, list[int]] = {}
        relations: dict[str, list[Edge]] = {}
        links = self._documents.links_of(path, document)
        if links is not None:
            for number, scope in enumerate(links.scopes):
                for name in {scope, links.lambdas.get(number, scope)}:
                    calls.setdefault(name, []).append(number)
            for edge in _find_relations(path, document, links):
                relations.setdefault(edge.source.name, []).append(edge)
        return calls, relations


def _find_relations(path: str, document: int, links: Links, meant: Collection[int] | None = None) -> Iterator[Edge]:
    """The edges of a document that are no calls, of all or of these references; what it imports is imported by the
    module."""
    for kind in ("implied", *RELATIONS):
        for name, number in getattr(links, kind):
            if meant is None or number in meant:
                source = Candidate(path, document, "" if kind == "imports" else name)
                yield Edge("calls" if kind == "implied" else kind, source, links.refs[number])
