"""Takes a SCIP index that another indexer made as evidence of what calls mean (cq.model.evidence)."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec

from cq.indexing.evidence import Said, put_evidence
from cq.model.edge import Candidate
from cq.model.errors import StoreError, UsageError
from cq.model.evidence import Conflict, Statement
from cq.model.location import LineTable
from cq.opening import read_file
from cq.semantics.tree import open_semantics
from cq.store import database
from cq.store.read import Reader, StoredFile
from cq.store.scip import BYTES, CHARACTERS, DEFINITION, Occurrence, ScipDocument, decode_index, last_name

SOURCE = "scip"
MAX_BYTES = 1 << 30
MAX_CONFLICTS = 100
# Of a document's definitions, those whose name stands where it should: constructors and such bear other names.
_FRESH = 0.8
_CONSTRUCTORS = ("__init__", "__new__", "constructor")


class SaidOtherwise(msgspec.Struct, frozen=True):
    """A call of which cq is sure and the index says something else; what the index says counts."""

    place: str
    ours: str
    theirs: str


class IngestReport(msgspec.Struct, frozen=True):
    documents: int = 0
    taken: int = 0
    stale: int = 0  # the text is not the one that was indexed
    unknown: int = 0  # no file of this repository
    definitions: int = 0  # symbols that are definitions here
    calls: int = 0  # that the index says the meaning of
    conflicts: int = 0
    first_conflicts: tuple[SaidOtherwise, ...] = ()


def ingest_scip(index: Path, root: Path, file: Path | None) -> IngestReport:
    """In place of what was taken before; None forgets that. Documents are taken one by one: those whose text differs
    from the file's, and those of other files, are counted and left out. What was taken holds while the texts stay."""
    data = b"" if file is None else _read(file)
    with closing(Reader(database.connect(index), os.fspath(root))) as reader, reader:
        tree = reader.tree()
        ingest = None if tree is None or file is None else _Ingest(reader, tree.id, data)
        said = [] if ingest is None else ingest.run()
    named = () if ingest is None else ingest.symbols.values()
    put_evidence(index, root, SOURCE, "", said, named, replace=True)
    if ingest is None:
        return IngestReport()
    conflicts = _find_conflicts(index, root, [path for path, _, _ in said])
    counts = {name: ingest.counts.get(name, 0) for name in ("documents", "taken", "stale", "unknown", "calls")}
    return IngestReport(
        **counts, definitions=len(ingest.symbols), conflicts=len(conflicts),
        first_conflicts=tuple(conflicts[:MAX_CONFLICTS]),
    )  # fmt: skip


def _read(file: Path) -> bytes:
    try:
        data = read_file(file, MAX_BYTES + 1)
    except OSError as error:
        raise StoreError(f"{file.name}: {error.strerror}", hint="give a file that a SCIP indexer wrote") from None
    if len(data) > MAX_BYTES:
        raise UsageError(f"{file.name} is larger than {MAX_BYTES:,} bytes", hint="index a part of the repository")
    return data


def _find_conflicts(index: Path, root: Path, paths: list[str]) -> list[SaidOtherwise]:
    found: list[SaidOtherwise] = []
    with closing(Reader(database.connect(index), os.fspath(root))) as reader, reader:
        tree = reader.tree()
        for path in paths if tree else ():
            for number, evaluated in enumerate(reader.evaluate(tree.id, path)):  # pyright: ignore[reportOptionalMemberAccess]
                own = [each for each in evaluated[1] if each.source == SOURCE] if evaluated else []
                if own:
                    found += _describe(reader, tree.id, path, number, own)  # pyright: ignore[reportOptionalMemberAccess]
    return found


def _describe(
    reader: Reader, tree: int, path: str, document: int, conflicts: list[Conflict]
) -> Iterator[SaidOtherwise]:
    content = reader.contents(tree, [path])[path]
    lines, calls = LineTable(reader.text(content)), reader.calls(content)[document]
    for each in conflicts:
        yield SaidOtherwise(f"{path}:{lines.line(calls[each.call].start)}", each.ours, each.theirs)


class _Ingest:
    def __init__(self, reader: Reader, tree: int, data: bytes) -> None:
        self._reader, self._tree, self._data = reader, tree, data
        self._semantics = open_semantics(reader, tree)
        self.symbols: dict[str, Candidate] = {}
        self.counts: dict[str, int] = {}

    def run(self) -> list[Said]:
        """Twice over the file: what is called may be defined further down."""
        fresh: dict[str, StoredFile] = {}
        for document in decode_index(self._data):
            file = self._reader.file(self._tree, document.path)
            outcome = "unknown" if file is None or document.path in fresh else "stale"
            if file is not None and document.path not in fresh and self._define(document, file):
                fresh[document.path], outcome = file, "taken"
            for name in ("documents", outcome):
                self.counts[name] = self.counts.get(name, 0) + 1
        said: list[Said] = []
        for document in decode_index(self._data):
            file = fresh.pop(document.path, None)
            if file is not None:
                statements = self._refer(document, file)
                self.counts["calls"] = self.counts.get("calls", 0) + len(statements)
                said.append((file.path, file.hash, statements))
        return said

    def _define(self, document: ScipDocument, file: StoredFile) -> bool:
        """Notes what the document defines; False where it was made from another text."""
        text = self._reader.text(file.content)
        if document.text and document.text.encode() != text:
            return False
        places = {
            symbol.name_start: (inner, number)
            for inner, symbols in enumerate(self._reader.symbols(file.content))
            for number, symbol in enumerate(symbols)
        }
        positions = _Positions(text, document.encoding)
        found: dict[str, Candidate] = {}
        named = right = 0
        for occurrence in document.occurrences:
            span = positions.find(occurrence)
            if span is None:
                return False
            if occurrence.roles & DEFINITION and not occurrence.symbol.startswith("local "):
                start, end = span
                name = last_name(occurrence.symbol)
                # A name that ends in a colon is made up: `value0:`.
                if end > start and name.isidentifier() and not occurrence.symbol.endswith(":"):
                    named += 1
                    right += text[start:end].decode("utf-8", "replace") == name
                place = places.get(start)
                node = self._semantics.documents.find_place(document.path, *place) if place else None
                if node is not None:
                    found[occurrence.symbol] = node
        if named and right < _FRESH * named:
            return False
        for symbol, node in found.items():
            self.symbols.setdefault(symbol, node)
        self._semantics.documents.forget(document.path)
        return True

    def _refer(self, document: ScipDocument, file: StoredFile) -> list[Statement]:
        calls = {
            call.name_start: (inner, number, call.name)
            for inner, each in enumerate(self._reader.calls(file.content))
            for number, call in enumerate(each)
            if call.name_start >= 0
        }
        positions = _Positions(self._reader.text(file.content), document.encoding)
        found: dict[tuple[int, int], Statement | None] = {}
        for occurrence in document.occurrences:
            target = None if occurrence.roles & DEFINITION else self.symbols.get(occurrence.symbol)
            span = positions.find(occurrence) if target is not None else None
            call = calls.get(span[0]) if span else None
            if call is None or target is None:
                continue
            inner, number, name = call
            statement = Statement(inner, number, target)
            owner, _, last = target.name.rpartition(".")
            if owner and last in _CONSTRUCTORS and name not in (last, *_DELEGATING):
                statement = Statement(inner, number, Candidate(target.path, target.document, owner), constructor=target)
            # Two things at one place are no evidence of either.
            key = inner, number
            found[key] = statement if found.get(key, statement) == statement else None
        return [statement for statement in found.values() if statement is not None]


# Calls of a constructor that make no instance of its class: `super(x)` runs it for an instance of a subclass.
_DELEGATING = ("super", "this", "self", "base")


class _Positions:
    """Byte offsets of the spans of one document."""

    def __init__(self, text: bytes, encoding: int) -> None:
        self._text, self._encoding, self._starts = text, encoding, LineTable(text).starts
        # A line is counted once, however many occurrences an index lays into it.
        self._columns: dict[int, array[int] | None] = {}

    def find(self, occurrence: Occurrence) -> tuple[int, int] | None:
        """None for a span that the text does not have."""
        first, start, last, end = occurrence.range
        found = self._offset(first, start), self._offset(last, end)
        return found if found[0] is not None and found[1] is not None else None  # pyright: ignore[reportReturnType]

    def _offset(self, line: int, column: int) -> int | None:
        if line >= len(self._starts):
            return None
        start = self._starts[line]
        end = self._starts[line + 1] if line + 1 < len(self._starts) else len(self._text)
        if line not in self._columns:
            self._columns[line] = self._find_columns(self._text[start:end])
        columns = self._columns[line]
        if columns is None:
            return start + column if column <= end - start else None
        return start + columns[column] if column < len(columns) else None

    def _find_columns(self, line: bytes) -> array[int] | None:
        """The byte where each column begins, the end of the line included; None where columns are bytes."""
        if self._encoding == BYTES or line.isascii():
            return None
        # What says nothing was made by an indexer of JavaScript or Python that counts as its language server does.
        pairs = self._encoding != CHARACTERS
        columns, at = array("I"), 0
        for char in line.decode("utf-8", "replace"):
            columns.append(at)
            if pairs and char > "\uffff":
                columns.append(at)
            at += len(char.encode())
        columns.append(at)
        return columns
