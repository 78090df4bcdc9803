"""What the engine of risk is told of a repository: documents in detail, and what calls and imports mean by links."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from cq.graph.unit import Unit
from cq.languages.facts import extract_detailed_code, extract_facts
from cq.languages.linking import link_units
from cq.model.code import Bind, Code, Imported
from cq.model.edge import Candidate, Links, SymbolRef
from cq.risk.program import Callee, Document
from cq.source.role import find_role

if TYPE_CHECKING:
    from cq.snapshot.relations import Relations

_Bound = Mapping[tuple[int, str], Candidate]
_LEAST = 0.4  # of a single link; several candidates are followed whatever their confidence is
_SURE = 0.9


def find_callees(links: Links, number: int) -> list[Callee]:
    """What a call runs: the definition it means, or the constructor of the class, or what runs instead."""
    at = links.calls[number] if number < len(links.calls) else -1
    if number in links.constructors:
        at = links.constructors[number]
    elif number in links.runs and number in links.replaced:
        at = links.runs[number]
    if at < 0:
        return []
    ref = links.refs[at]
    if ref.evidence == "name" or ref.status not in ("resolved", "ambiguous"):
        return []
    doubt = 1.0 if ref.confidence >= _SURE else max(ref.confidence, _LEAST)
    return [Callee(place, doubt) for place in ref.candidates]


def _bind_imports(binds: Iterable[tuple[Bind, SymbolRef]]) -> dict[tuple[int, str], Candidate]:
    return {(bind.start, bind.name): ref.candidates[0] for bind, ref in binds if len(ref.candidates) == 1}


class IndexedProgram:
    """Over the index of a repository. Documents are parsed again, in detail, when they are asked for."""

    def __init__(self, relations: Relations, *, most: int = 4000) -> None:
        self._relations, self._most = relations, most
        self._documents: dict[tuple[str, int], Document | None] = {}
        self._callees: dict[tuple[str, int, int], list[Callee]] = {}
        self._bound: dict[tuple[str, int], _Bound] = {}

    def find_document(self, path: str, number: int) -> Document | None:
        key = (path, number)
        if key not in self._documents:
            self._documents[key] = self._load(path, number)
        return self._documents[key]

    def _load(self, path: str, number: int) -> Document | None:
        held = self._relations.hold(path)
        if held is None or number >= len(held.documents) or len(self._documents) > self._most:
            return None
        if self._relations.documents.links_of(path, number) is None:
            return None
        stored = held.documents[number]
        code = extract_detailed_code(held.text, stored.language, stored.segment)
        known = self._relations.documents.codes(path)[number]
        if code is None or known is None or len(code.sites) != len(known.sites):
            return None
        return Document(path, number, code, held.role)

    def find_callees(self, document: Document, call: int) -> Sequence[Callee]:
        key = (document.path, document.number, call)
        if key not in self._callees:
            links = self._relations.documents.links_of(document.path, document.number)
            self._callees[key] = [] if links is None else find_callees(links, call)
        return self._callees[key]

    def find_import(self, document: Document, bind: Bind) -> Candidate | None:
        key = (document.path, document.number)
        if key not in self._bound:
            bound = self._relations.documents.find_bound(*key)
            self._bound[key] = _bind_imports((bind, ref) for bind, _, ref in bound)
        return self._bound[key].get((bind.start, bind.name))


class TextProgram:
    """Over a few texts that stand in no index: the examples of rules."""

    def __init__(self, files: Mapping[str, tuple[str, bytes]]) -> None:
        """By path: the language and the text."""
        self._documents: dict[str, Document] = {}
        codes: dict[str, Code] = {}
        for path, (language, text) in files.items():
            code, detailed = extract_facts(text, language).code, extract_detailed_code(text, language)
            if code is not None and detailed is not None:
                codes[path] = code
                self._documents[path] = Document(path, 0, detailed, find_role(path))
        self._links = {unit.path: links for unit, links in link_units([Unit(*item) for item in codes.items()]).items()}
        self._bound: dict[str, _Bound] = {}
        for path, code in codes.items():
            links = self._links[path]
            refs = iter(links.imports)
            bound = [(bind, links.refs[next(refs)[1]]) for bind in code.binds if isinstance(bind.value, Imported)]
            self._bound[path] = _bind_imports(bound)

    @property
    def documents(self) -> list[Document]:
        return list(self._documents.values())

    def find_document(self, path: str, number: int) -> Document | None:
        return None if number else self._documents.get(path)

    def find_callees(self, document: Document, call: int) -> Sequence[Callee]:
        return find_callees(self._links[document.path], call)

    def find_import(self, document: Document, bind: Bind) -> Candidate | None:
        return self._bound[document.path].get((bind.start, bind.name))
