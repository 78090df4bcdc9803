"""Takes what ran in a program, as a recorder wrote it, as evidence of what calls run, and compares it with the links.

A file has one JSON object a line: `path` and `line` of a call, what it ran as `callee` (`path`, `line` and `name` of
the function), and where the recorder knows them `column`, `end_line` and `end_column` of the call. Lines and columns
count from 1, columns in bytes of UTF-8, the end exclusive. The line of a callee is that of its first decorator or of
its name.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from contextlib import closing
from pathlib import Path

import msgspec

from cq.indexing.evidence import put_evidence
from cq.model.edge import Candidate, SymbolRef
from cq.model.errors import StoreError, UsageError
from cq.model.evidence import RAN, Ran, Statement, TraceReport
from cq.model.facts import Call
from cq.model.location import LineTable
from cq.opening import read_file
from cq.semantics.tree import open_semantics
from cq.store import database
from cq.store.read import Reader

MAX_BYTES = 1 << 28
MAX_LACKING = 200
_KINDS = ("calls", "instantiates", "decorates")


class _Callee(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    line: int
    name: str


class _Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    line: int
    callee: _Callee
    column: int = 0
    end_line: int = 0
    end_column: int = 0


class _Edge(msgspec.Struct, frozen=True, order=True):
    caller: Candidate
    callee: Candidate


def ingest_trace(index: Path, root: Path, file: Path | None) -> TraceReport:
    """In place of what was taken before; None forgets that. What was taken holds while the texts stay."""
    with closing(Reader(database.connect(index), os.fspath(root))) as reader, reader:
        tree = reader.tree()
        placing = None if tree is None or file is None else _Placing(reader, tree.id)
        report = TraceReport() if placing is None or file is None else placing.run(read_rows(file))
        said = [] if placing is None else placing.list_statements()
    put_evidence(index, root, RAN, "", said, replace=True)
    return report


def compare_trace(reader: Reader, tree: int, file: Path) -> TraceReport:
    """What ran and links lack. Call it inside `with reader:`."""
    return _Placing(reader, tree).run(read_rows(file))


def read_rows(file: Path) -> list[_Row]:
    hint = "`docs/ingest.md` says what a line is"
    try:
        data = read_file(file, MAX_BYTES + 1)
    except OSError as error:
        raise StoreError(f"{file.name}: {error.strerror}", hint="give a file that a recorder wrote") from None
    if len(data) > MAX_BYTES:
        raise UsageError(f"{file.name} is larger than {MAX_BYTES:,} bytes", hint="write each edge once")
    decoder = msgspec.json.Decoder(_Row)
    rows: dict[_Row, None] = {}
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            try:
                rows[decoder.decode(line)] = None
            except (msgspec.MsgspecError, RecursionError):
                raise UsageError(f"{file.name}, line {number} is no line of a trace", hint=hint) from None
    return list(rows)


class _File:
    """Where the calls and functions of a file stand."""

    def __init__(self, reader: Reader, path: str, content: int, text_hash: str) -> None:
        self.path, self.hash = path, text_hash
        text = reader.text(content)
        self._starts, self._length = LineTable(text).starts, len(text)
        self.calls = reader.calls(content)
        self._functions: dict[tuple[int, str], list[tuple[int, int]]] = {}
        for document, symbols in enumerate(reader.symbols(content)):
            for number, symbol in enumerate(symbols):
                if symbol.kind_group in ("function", "method"):
                    name = symbol.name if symbol.name.isidentifier() else ""
                    for line in range(self.line(symbol.start), self.line(max(symbol.start, symbol.name_start)) + 1):
                        self._functions.setdefault((line, name), []).append((document, number))

    def line(self, offset: int) -> int:
        return bisect_right(self._starts, offset)

    def offset(self, line: int, column: int) -> int | None:
        """None for what is not in the file."""
        if not 0 < line <= len(self._starts) or column < 1:
            return None
        offset = self._starts[line - 1] + column - 1
        return offset if offset <= self._length else None

    def find_function(self, line: int, name: str) -> tuple[int, int] | None:
        """(document, number of the symbol); None for none, and where there are two."""
        found = self._functions.get((line, name if name.isidentifier() else ""), ())
        return found[0] if len(found) == 1 else None

    def find_call(self, row: _Row, name: str) -> tuple[int, int] | None:
        """(document, number) of the call that a row is about; without a column the only one on the line, or the only
        one there of the callee's name."""
        start, end = self.offset(row.line, row.column), self.offset(row.end_line, row.end_column)
        every = [(at, number, call) for at, calls in enumerate(self.calls) for number, call in enumerate(calls)]
        if start is not None:
            fitting = [each for each in every if each[2].start == start and end in (None, each[2].end)]
        else:
            fitting = [each for each in every if self._is_on(each[2], row.line)]
        if len(fitting) > 1:
            fitting = [each for each in fitting if each[2].name == name]
        return fitting[0][:2] if len(fitting) == 1 else None

    def _is_on(self, call: Call, line: int) -> bool:
        return self.line(call.start) <= line <= self.line(call.end)


class _Placing:
    def __init__(self, reader: Reader, tree: int) -> None:
        self._reader, self._tree = reader, tree
        self._semantics = open_semantics(reader, tree)
        self._files: dict[str, _File | None] = {}
        self._statements: dict[str, dict[Statement, None]] = {}

    def list_statements(self) -> list[tuple[str, str, list[Statement]]]:
        found = sorted(self._statements.items())
        return [(path, file.hash, list(said)) for path, said in found if (file := self._files[path]) is not None]

    def run(self, rows: list[_Row]) -> TraceReport:
        unknown = unplaced = elsewhere = 0
        edges: dict[_Edge, str] = {}
        for row in rows:
            file, other = self._open(row.path), self._open(row.callee.path)
            if file is None or other is None:
                unknown += 1
                continue
            at = other.find_function(row.callee.line, row.callee.name)
            callee = None if at is None else self._semantics.documents.find_place(other.path, *at)
            start = file.offset(row.line, row.column or 1)
            if callee is None or start is None:
                unplaced += 1
                continue
            call = file.find_call(row, callee.name.rpartition(".")[2])
            elsewhere += call is None
            if call is not None:
                said = self._statements.setdefault(file.path, {})
                said[Statement(*call, callee, ran=True)] = None
            caller = self._find_caller(file, call, start)
            edges.setdefault(_Edge(caller, callee), f"{file.path}:{row.line}")
        return self._compare(edges, len(rows), unknown, unplaced, elsewhere)

    def _find_caller(self, file: _File, call: tuple[int, int] | None, start: int) -> Candidate:
        documents, document = self._semantics.documents, 0
        if call is not None:
            document, start = call[0], file.calls[call[0]][call[1]].start
        return documents.find_around(file.path, document, documents.find_scope(file.path, document, start))

    def _compare(self, edges: dict[_Edge, str], rows: int, unknown: int, unplaced: int, elsewhere: int) -> TraceReport:
        certain, possible = self._find_linked({edge.caller.path for edge in edges})
        possible |= {edge for edge in edges if edge not in certain and self._is_read(edge)}
        lacking = [edge for edge in sorted(edges) if edge not in certain and edge not in possible]
        return TraceReport(
            rows, unknown, unplaced, elsewhere, sum(len({(s.document, s.call) for s in said}) for said in
            self._statements.values()), len(edges), sum(edge in certain for edge in edges),
            sum(edge in possible and edge not in certain for edge in edges), len(lacking),
            tuple(Ran(edges[edge], edge.caller.shown_name, f"{edge.callee.path}:{edge.callee.shown_name}")
                  for edge in lacking[:MAX_LACKING]),
        )  # fmt: skip

    def _find_linked(self, paths: set[str]) -> tuple[set[_Edge], set[_Edge]]:
        certain: set[_Edge] = set()
        possible: set[_Edge] = set()
        for path in sorted(paths):
            for document in range(len(self._semantics.documents.links(path))):
                for edge in self._semantics.referrers.find_all(path, document):
                    ref = edge.ref if edge.ref.evidence != RAN else self._find_own(path, document, edge.call)
                    if edge.kind in _KINDS and ref is not None:
                        into = certain if ref.certainty == "certain" else possible
                        into.update(_Edge(edge.source, target) for target in ref.candidates)
        return certain, possible

    def _is_read(self, edge: _Edge) -> bool:
        """Whether the caller reads an attribute that the callee gives."""
        symbol = self._semantics.documents.symbol(edge.callee)
        if symbol is None or symbol.kind != "accessor":
            return False
        return any(read.source == edge.caller for read in self._semantics.usages.find_reads(edge.callee))

    def _find_own(self, path: str, document: int, call: int) -> SymbolRef | None:
        """What links themselves say that a call runs, where an earlier trace is shown beside it."""
        links = self._reader.own_links(self._tree, path)[document]
        number = None if links is None else links.runs.get(call)
        return None if links is None or number is None else links.refs[number]

    def _open(self, path: str) -> _File | None:
        if path not in self._files:
            file = self._reader.file(self._tree, path)
            known = None if file is None else _File(self._reader, file.path, file.content, file.hash)
            self._files[path] = known
        return self._files[path]
