"""A document on its way out: its facts and names, and the names of the definitions that it refers to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from cq.graph.names import distance
from cq.identity import (
    Identity,
    call_site_id,
    identify,
    module_symbol_id,
    signature_key,
    symbol_key,
)
from cq.model.artifact import (
    MAX_NAME_MATCHES,
    Candidate,
    ImportHint,
    Resolved,
    SymbolReference,
)
from cq.model.code import qualify
from cq.model.edge import Candidate as Place
from cq.model.edge import SymbolRef
from cq.model.facts import Call, FileFacts, is_looked_up
from cq.model.location import LineTable, Location
from cq.semantics.tree import Semantics, open_semantics
from cq.snapshot.files import HeldFile, IndexedFiles
from cq.store.codec import flatten
from cq.store.read import Reader, StoredFile, Tree

_MAX_HELD = 150_000  # definitions whose names are kept at hand


class Target(NamedTuple):
    candidate: Candidate
    exported: bool


class Targets:
    """The names of definitions by their place. A file is named whole when it is first led to; the files that were
    named first are forgotten first, so that a repository of any size can be gone over."""

    def __init__(self, reader: Reader, tree: Tree) -> None:
        self._reader, self._files = reader, IndexedFiles(reader, tree)
        self._tree = tree
        self._known: dict[str, dict[tuple[int, str], Target]] = {}
        self._count = 0

    def find(self, place: Place) -> Target | None:
        """None for what is gone, and for parameters and locals."""
        known = self._known.get(place.path)
        if known is None:
            held = self._files.get(place.path)
            known = self._known[place.path] = {} if held is None else dict(self._name(held))
            self._count += len(known)
            while self._count > _MAX_HELD and len(self._known) > 1:
                self._count -= len(self._known.pop(next(iter(self._known))))
        return known.get((place.document, place.name))

    def _name(self, held: HeldFile) -> Iterator[tuple[tuple[int, str], Target]]:
        for document, name, number in find_places(self._reader, self._tree, held):
            path = held.identities[document].virtual_path if document else held.path
            if number < 0:
                uid, key = held.name_chunk(document, 0), symbol_key(path, "", "module")
                module = Candidate(module_symbol_id(path, uid), uid, key, None, "module", 1.0)
                yield (document, name), Target(module, True)
                continue
            symbol = held.symbols[document][number]
            symbol_id, uid = held.name_symbol(document, number)
            key, group = symbol_key(path, symbol.identity_name, symbol.kind_group), symbol.kind_group
            signature = signature_key(symbol.identity_name, symbol.signature)
            candidate = Candidate(symbol_id, uid, key, signature, group, 1.0)  # pyright: ignore[reportArgumentType]
            yield (document, name), Target(candidate, symbol.exported)

    def find_named(self, path: str, document: int) -> set[str]:
        """The definitions that an index which was handed over has names for (`cq ingest scip`)."""
        if not self._reader.has_evidence(self._tree.id):
            return set()
        return {name for at, name in self._reader.named(self._tree.id, path, "scip") if at == document}


def find_places(reader: Reader, tree: Tree, held: HeldFile) -> Iterator[tuple[int, str, int]]:
    """(document, name, number) of every definition of a file that links can lead to; -1 for the module itself."""
    codes = reader.code(tree.id, held.path)
    for document, symbols in enumerate(held.symbols):
        yield document, "", -1
        code = codes[document] if document < len(codes) else None
        names = {} if code is None else qualify(code)
        taken = set(names.values())
        for number, symbol in enumerate(symbols):
            name = names.get(number)
            if name is None:
                # A value: known by its dotted name, where the code has no other definition of that.
                name = symbol.qualified_name
                if name in taken or not is_looked_up(symbol, symbols):
                    continue
                taken.add(name)
            yield document, name, number


class Document(msgspec.Struct, frozen=True):
    """The file itself or a document embedded in it; `number` is its place among them."""

    file: StoredFile
    number: int
    text: bytes
    lines: LineTable
    facts: FileFacts
    identity: Identity
    semantics: Semantics
    targets: Targets

    @property
    def path(self) -> str:
        return self.file.path

    @property
    def virtual_path(self) -> str:
        return self.identity.virtual_path

    @property
    def segment_uid(self) -> str | None:
        return self.identity.segment_uid or None

    def chunk_of(self, scope: int) -> str:
        """Whose code stands in a scope; root-level code is the module's."""
        return self.identity.chunk_uids[self.facts.symbols[scope].chunk if scope >= 0 else 0]

    def slice(self, start: int, end: int) -> str:
        return self.text[start:end].decode("utf-8", "replace")

    def locate(self, call: Call) -> tuple[Location, str]:
        """Where a call stands, and its id."""
        where = self.lines.location(self.path, call.start, call.end)
        return where, call_site_id(where, call.callee)

    @property
    def is_linked(self) -> bool:
        return self.semantics.documents.is_linked(self.path, self.number)

    def hint(self, call: int, ref: SymbolRef) -> ImportHint | None:
        """Where the first name of a call comes from, if from an import; what a reference that is no call (-1) says."""
        found = self.semantics.meanings.find_import(self.path, self.number, call) if call >= 0 else None
        if found is not None:
            return ImportHint(found[0], found[1] or None)
        if ref.module:
            return ImportHint(ref.module, None)
        if ref.evidence == "import" and ref.resolved is not None:
            return ImportHint(None, ref.resolved.path)
        return None

    def find_candidates(self, ref: SymbolRef) -> tuple[Candidate, ...]:
        """By score, then by key. Only what fits by its name has scores that differ: the nearer is the likelier."""
        found: list[Candidate] = []
        near = self.semantics.documents.find_near(self.path, self.number) if ref.evidence == "name" else ()
        for place in ref.candidates:
            target = self.targets.find(place)
            if target is not None:
                score = 1 / (1 + distance(self.path, place.path, near)) if ref.evidence == "name" else 1.0
                candidate = target.candidate
                found.append(candidate if score == 1 else msgspec.structs.replace(candidate, score=round(score, 3)))
        return tuple(sorted(found, key=lambda row: (-row.score, row.symbol_key, row.symbol_id)))

    def refer(self, ref: SymbolRef, name: str, kind: str | None, hint: ImportHint | None) -> SymbolReference:
        candidates = self.find_candidates(ref)
        single = candidates[0] if ref.status == "resolved" and candidates else None
        return SymbolReference(
            1, name, kind, hint, candidates, ref.status,  # pyright: ignore[reportArgumentType]
            Resolved(single.symbol_id, single.chunk_uid) if single else None, ref.omitted,
            "too_many" if is_too_many(ref) else None,
        )  # fmt: skip


def is_too_many(ref: SymbolRef) -> bool:
    return ref.count > MAX_NAME_MATCHES


def load_documents(reader: Reader, file: StoredFile, semantics: Semantics, targets: Targets) -> list[Document]:
    """Outer before inner, as they are stored."""
    text, facts = reader.text(file.content), reader.facts(file.content)
    lines, names = LineTable(text), list[Identity]()
    todo = [identify(file.path, text, facts)]
    while todo:
        names.append(todo.pop())
        todo += reversed(names[-1].embedded)
    return [
        Document(file, number, text, lines, inner, names[number], semantics, targets)
        for number, (inner, _) in enumerate(flatten(facts))
    ]


def open_links(reader: Reader, tree: Tree) -> tuple[Semantics, Targets]:
    return open_semantics(reader, tree.id), Targets(reader, tree)
