"""The index as one SCIP file, for code browsers and other tools: definitions, references and relationships."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from cq.model.artifact import ExportedArtifact, ExportReport
from cq.model.edge import Candidate as Place
from cq.model.edge import SymbolRef
from cq.model.errors import UsageError
from cq.model.facts import Symbol, is_looked_up
from cq.model.location import LineTable
from cq.questions.export.document import Document, find_places, load_documents, open_links
from cq.snapshot.files import IndexedFiles
from cq.store.read import Reader, Tree
from cq.store.scip import (
    DEFINITION,
    IMPORT,
    KINDS,
    READ,
    WRITE,
    Information,
    Occurrence,
    Relationship,
    ScipDocument,
    descriptor,
    encode_index,
)

_ROLES = {"import": IMPORT, "assignment": WRITE}
_MAX_HELD = 150_000  # symbols whose names are kept at hand


def export_scip(reader: Reader, tree: Tree, out: str | Path, *, version: str) -> ExportReport:
    """Call it inside `with reader:`. The file appears, or is replaced, when all of it is written."""
    out = Path(out)
    if os.fspath(out) == "-":
        raise UsageError("--scip: it is written to a file, not to the output", hint="give a file, such as index.scip")
    if out.is_dir():
        raise UsageError(f"--scip: {out.name} is a directory", hint="give a file, such as index.scip")
    if not out.parent.is_dir():
        raise UsageError(f"--scip: there is no directory {out.parent}", hint="make it first")
    work = out.with_name(f".{out.name}.cq-{os.getpid()}")
    documents = Counter[str]()
    try:
        with work.open("xb") as file:
            # The root is wherever the reader has the files: an absolute path would be that of this machine.
            for piece in encode_index(
                _count(_make_documents(reader, tree), documents), version=version, root="file:///"
            ):
                file.write(piece)
        size = work.stat().st_size
        work.replace(out)
    finally:
        work.unlink(missing_ok=True)
    return ExportReport(os.fspath(out), (ExportedArtifact("scip", documents["documents"], size, 1),), size)


def _count(documents: Iterator[ScipDocument], counts: Counter[str]) -> Iterator[ScipDocument]:
    for document in documents:
        counts["documents"] += 1
        yield document


def _make_documents(reader: Reader, tree: Tree) -> Iterator[ScipDocument]:
    semantics, targets = open_links(reader, tree)
    names = _Names(reader, tree)
    for file in reader.files(tree.id):
        occurrences: dict[tuple[int, int, str], Occurrence] = {}
        symbols: list[Information] = []
        for document in load_documents(reader, file, semantics, targets):
            known = names.of_document(file.path, document.number)
            for occurrence, start, end in _find_occurrences(document, known, names):
                occurrences.setdefault((start, -end, occurrence.symbol), occurrence)
            symbols += _describe(document, known, names)
        semantics.documents.forget(file.path)
        if occurrences:
            ordered = tuple(occurrences[key] for key in sorted(occurrences))
            yield ScipDocument(file.path, file.language, ordered, tuple(symbols))


class _Names:
    """SCIP symbols by the place of a definition; the files that were named first are forgotten first."""

    def __init__(self, reader: Reader, tree: Tree) -> None:
        self._reader, self._tree, self._files = reader, tree, IndexedFiles(reader, tree)
        self._known: dict[str, tuple[list[list[str]], dict[tuple[int, str], str]]] = {}
        self._count = 0

    def of_document(self, path: str, document: int) -> list[str]:
        """Of every symbol of a document, in order; the last is that of the document itself."""
        return self._load(path)[0][document]

    def find(self, place: Place) -> str | None:
        return self._load(place.path)[1].get((place.document, place.name))

    def _load(self, path: str) -> tuple[list[list[str]], dict[tuple[int, str], str]]:
        found = self._known.get(path)
        if found is None:
            held = self._files.get(path)
            if held is None:
                return [], {}
            named = [_name_symbols(path, number, symbols) for number, symbols in enumerate(held.symbols)]
            places = {
                (document, name): named[document][number]
                for document, name, number in find_places(self._reader, self._tree, held)
            }
            found = self._known[path] = named, places
            self._count += sum(map(len, named))
            while self._count > _MAX_HELD and len(self._known) > 1:
                first = next(iter(self._known))
                self._count -= sum(map(len, self._known.pop(first)[0]))
        return found


def _name_symbols(path: str, document: int, symbols: Sequence[Symbol]) -> list[str]:
    """`cq . . . folder/`file.py`/Class#method().`; parameters and locals are known in their document only."""
    home = "cq . . . " + "".join(descriptor(part, "module") for part in path.split("/"))
    if document:
        home += descriptor(f"embedded {document}", "module")
    found: list[str] = []
    seen: Counter[str] = Counter()
    for number, symbol in enumerate(symbols):
        holder = found[symbol.parent] if symbol.parent >= 0 else home
        if holder.startswith("local ") or not is_looked_up(symbol, symbols):
            found.append(f"local {document}_{number}")
            continue
        plain = holder + descriptor(symbol.name, symbol.kind)
        count, name = seen[plain], plain
        seen[plain] += 1
        if count and plain.endswith(")."):
            name = holder + descriptor(symbol.name, symbol.kind, count)
        elif count and symbol.kind_group != "value":
            name = holder + descriptor(f"{symbol.name}#{count + 1}", symbol.kind)
        found.append(name)
    return [*found, home]


def _find_occurrences(document: Document, known: list[str], names: _Names) -> Iterator[tuple[Occurrence, int, int]]:
    facts, lines = document.facts, document.lines
    start = facts.segment.start if facts.segment else 0
    yield _occur(lines, start, start, known[-1], DEFINITION), start, start
    for number, symbol in enumerate(facts.symbols):
        whole = _span(lines, symbol.start, symbol.end)
        at = symbol.name_start, symbol.name_end
        yield Occurrence(_span(lines, *at), known[number], DEFINITION, whole), *at
    local: dict[str, str] = {}
    for number in range(len(facts.symbols)):
        if known[number].startswith("local "):
            own = document.semantics.meanings.find_own(document.path, document.number, number)
            local.setdefault(own.name, known[number])
    for number, call in enumerate(facts.calls):
        ref = (
            document.semantics.calls.find_call(document.path, document.number, number) if call.name_start >= 0 else None
        )
        target = _find_single(ref, names) if ref else None
        if target is not None:
            at = call.name_start, call.name_start + len(call.name.encode())
            yield _occur(lines, *at, target, READ), *at
    for reference, _, ref in document.semantics.meanings.find_names(document.path, document.number, facts):
        target = _find_single(ref, names)
        if target is None and ref.status == "resolved" and ref.candidates[0].path == document.path:
            target = local.get(ref.candidates[0].name)
        if target is not None:
            at = reference.start, reference.end
            yield _occur(lines, *at, target, _ROLES.get(reference.role, READ)), *at


def _find_single(ref: SymbolRef, names: _Names) -> str | None:
    """Only what is certain is written: SCIP has no word for doubt."""
    return names.find(ref.candidates[0]) if ref.status == "resolved" else None


def _describe(document: Document, known: list[str], names: _Names) -> Iterator[Information]:
    related: dict[str, list[Relationship]] = {}
    for edge in document.semantics.referrers.find_all(document.path, document.number):
        if edge.kind in ("inherits", "overrides"):
            source, target = names.find(edge.source), _find_single(edge.ref, names)
            if source and target:
                is_method = edge.kind == "overrides"
                row = Relationship(target, is_reference=is_method, is_implementation=True)
                related.setdefault(source, []).append(row)
    yield Information(known[-1], KINDS["module"], document.path.rpartition("/")[2])
    said: set[str] = set()
    for symbol, name in zip(document.facts.symbols, known, strict=False):
        if name not in said:
            said.add(name)
            yield Information(
                name, KINDS.get(symbol.kind, 0), symbol.name, symbol.doc, symbol.signature,
                tuple(dict.fromkeys(related.get(name, ()))),
            )  # fmt: skip


def _occur(lines: LineTable, start: int, end: int, symbol: str, roles: int) -> Occurrence:
    return Occurrence(_span(lines, start, end), symbol, roles)


def _span(lines: LineTable, start: int, end: int) -> tuple[int, int, int, int]:
    """Lines from 0, columns in bytes."""
    first, last = lines.line(start), lines.line(end)
    return first - 1, start - lines.starts[first - 1], last - 1, end - lines.starts[last - 1]
