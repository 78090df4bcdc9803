"""What can be wrong with an export, and with the tables of an index. Facts and identity are checked in features."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
from array import array
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import zstandard

from cq.model.artifact import (
    MAX_CANDIDATES,
    MAX_ROW_BYTES,
    ROWS,
    STATS,
    ArtifactMeta,
    CallSiteRow,
    ChunkRow,
    DenseVectorRow,
    FileRelationsRow,
    Finding,
    GraphRow,
    IndexState,
    Manifest,
    Piece,
    ProjectRow,
    Rate,
    RiskFlowRow,
    RiskLocalFlowRow,
    RiskPartialFlowRow,
    RiskStats,
    RiskSummaryRow,
    Row,
    SymbolEdgeRow,
    SymbolOccurrenceRow,
    SymbolReference,
    SymbolRow,
    TypeFactsRow,
    Validation,
    VectorFormat,
    VirtualDocumentRow,
)
from cq.model.edge import Links
from cq.model.errors import StoreError
from cq.opening import open_file, read_file
from cq.store.artifacts import (
    MANIFEST,
    encode_json,
    find_strays,
    json_checksum,
    open_lines,
    read_json,
    row_piece,
)
from cq.store.read import Reader
from cq.store.vectors import from_levels

_SHOWN = 10  # of each code
MAX_LENGTH_ERROR = 0.02  # of a vector of length 1, after quantization
# What reading a damaged row or blob raises.
DAMAGE = (sqlite3.Error, msgspec.MsgspecError, StoreError, ValueError, IndexError)


class Findings:
    """Keeps the first of each code and counts them all."""

    def __init__(self) -> None:
        self.first: list[Finding] = []
        self.counts: Counter[str] = Counter()

    def add(self, code: str, where: str, what: str) -> None:
        self.counts[code] += 1
        if self.counts[code] <= _SHOWN:
            self.first.append(Finding(code, where, what))


class Rates:
    """Counts how references were resolved, by language and by what they are."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], Counter[str]] = {}

    def add(self, language: str, what: str, status: str, *, narrowed: bool, capped: bool, times: int = 1) -> None:
        counts = self._counts.setdefault((language, what), Counter())
        counts.update({"total": times, status: times, "import_narrowed": narrowed * times, "capped": capped * times})

    def rows(self) -> tuple[Rate, ...]:
        return tuple(Rate(*key, **counts) for key, counts in sorted(self._counts.items()))


def validate_artifacts(folder: str | Path) -> Validation:
    """Every byte of an export is accounted for: by the manifest, by a checksum, or by what it must agree with."""
    folder = Path(folder)
    if not folder.is_dir():
        raise StoreError(f"{folder} is not a directory", hint="give the directory that `cq export --out` wrote")
    return _Export(folder).check()


class _Export:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.found = Findings()
        self.pieces: dict[str, Piece] = {}
        self.metas: dict[str, ArtifactMeta] = {}
        self.checked: Counter[str] = Counter()
        self.truncated: Counter[str] = Counter()
        # Hashes of the names that rows bear, and of those that rows refer to before they were seen (with the place).
        self.known: dict[str, set[int]] = {name: set() for name in _BORNE_BY}
        self.awaited: dict[str, dict[int, str]] = {name: {} for name in self.known}
        self.rates = Rates()
        self.last_node: tuple[str, str, str, int] = ("", "", "", 0)  # of graph_relations

    def check(self) -> Validation:
        manifest = self._load(MANIFEST, Manifest)
        if manifest is not None:
            self._check_pieces(manifest)
            for path in find_strays(self.folder, manifest):
                self.found.add("extra_piece", path, "is not in the manifest")
            for name in ROWS:
                self._check_meta(name, manifest.generated_at)
            for name, meta in self.metas.items():
                self._check_rows(meta, ROWS[name])
            self._check_awaited()
            self._check_state(manifest.generated_at)
            self._check_stats(manifest.generated_at)
        found = self.found
        return Validation(tuple(found.first), dict(found.counts), dict(self.checked), rates=self.rates.rows())

    def _load(self, path: str, kind: type[Any]) -> Any:
        """None, with a finding, for what is not there or not of that kind."""
        try:
            value = read_json(self.folder / path, kind)
        except OSError as error:
            self.found.add("missing_piece", path, f"cannot be read: {error.strerror}")
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            self.found.add("schema", path, str(error))
        else:
            if encode_json(value) != read_file(self.folder / path):
                self.found.add("schema", path, "is not written as an export writes it")
            return value
        return None

    def _check_pieces(self, manifest: Manifest) -> None:
        paths = [piece.path for piece in manifest.pieces]
        if paths != sorted(set(paths)):
            self.found.add("manifest", MANIFEST, "the pieces are not listed once each and by path")
        for piece in manifest.pieces:
            self.checked["pieces"] += 1
            where = self.folder / piece.path
            try:
                status = os.lstat(where)
            except OSError as error:
                self.found.add("missing_piece", piece.path, f"named in the manifest, but {error.strerror}")
                continue
            if not stat.S_ISREG(status.st_mode):
                self.found.add("missing_piece", piece.path, "is no plain file")
                continue
            self.pieces[piece.path] = piece
            if status.st_size != piece.bytes:
                self.found.add("bytes", piece.path, f"{status.st_size:,} bytes, {piece.bytes:,} in the manifest")
            if piece.format == "json":
                checksum = json_checksum(read_file(where))
            else:
                with open_file(where) as file:
                    checksum = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
            if checksum != piece.checksum:
                self.found.add("checksum", piece.path, "the content is not what the manifest was written for")
            if piece.type != "rows" and piece not in _json_pieces(piece):
                self.found.add("manifest", piece.path, f"an export has no such piece of {piece.name}")
            elif piece.type != "state" and piece.name not in ROWS:
                self.found.add("manifest", piece.path, f"there is no artifact {piece.name!r}")

    def _check_meta(self, name: str, generated_at: str) -> None:
        listed = [piece for piece in self.pieces.values() if piece.name == name]
        if not listed:
            return
        path = f"{name}.meta.json"
        if path not in self.pieces:
            self.found.add("missing_piece", path, f"there are rows of {name}, but nothing that describes them")
            return
        meta: ArtifactMeta | None = self._load(path, ArtifactMeta)
        if meta is None:
            return
        parts, compressed = meta.parts, meta.compression is not None
        suffix = ".jsonl.zst" if compressed else ".jsonl"
        sharded = len(parts) != 1
        names = [f"{name}.parts/{number:05}{suffix}" for number in range(len(parts))] if sharded else [name + suffix]
        largest = max((part.records for part in parts), default=0), max((part.bytes for part in parts), default=0)
        for what, holds in {
            "names another artifact": meta.artifact == name,
            "was made at another time than the manifest": meta.generated_at == generated_at,
            "only dense_vectors has a format of vectors, and always": isinstance(meta.vectors, VectorFormat)
            == (name == DenseVectorRow.ARTIFACT),
            "names another order": meta.order == ROWS[name].ORDER,
            "totalRecords is not the sum of its parts": meta.total_records == sum(part.records for part in parts),
            "totalBytes is not the sum of its parts": meta.total_bytes == sum(part.bytes for part in parts),
            "does not know its largest part": (meta.max_part_records, meta.max_part_bytes) == largest,
            "format does not fit its parts": meta.format == ("jsonl-sharded" if sharded else "jsonl"),
            "has parts of other names": [part.path for part in parts] == names,
        }.items():
            if not holds:
                self.found.add("meta", path, what)
        expected = {part.path: row_piece(name, part, compressed=compressed) for part in parts}
        for piece in listed:
            if piece.type == "rows" and expected.pop(piece.path, None) != piece:
                self.found.add("manifest", piece.path, f"{path} says something else about it")
        for missing in expected:
            if missing not in self.pieces:
                self.found.add("missing_piece", missing, f"named in {path}, not in the manifest")
        self.metas[name] = meta

    def _check_rows(self, meta: ArtifactMeta, kind: type[Row]) -> None:
        decoder = msgspec.json.Decoder(kind)
        check = _CHECKS[kind]
        last: tuple[Any, ...] = ()
        siblings = _Siblings(self.found)
        for part in meta.parts:
            if part.path not in self.pieces:
                continue
            count = 0
            try:
                for number, line in self._read_lines(part.path, compressed=meta.compression is not None):
                    where = f"{part.path}:{number}"
                    count += 1
                    try:
                        row = decoder.decode(line)
                    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                        self.found.add("schema", where, str(error))
                        continue
                    key = row.key()
                    if last and key <= last:
                        self.found.add(
                            "order", where, f"must stand before the row above it, by {', '.join(kind.ORDER)}"
                        )
                    last = key
                    self.truncated[meta.artifact] += row_is_truncated(row)
                    check(self, row, where)
                    if isinstance(row, ChunkRow):
                        siblings.add(row, where)
            except (OSError, zstandard.ZstdError) as error:
                self.found.add("unreadable", part.path, str(error))
            if count != part.records:
                self.found.add("count", part.path, f"{count:,} rows, {part.records:,} in the manifest")
            self.checked[meta.artifact] += count
        siblings.end_file()
        if self.truncated[meta.artifact] != meta.truncated_records:
            told, seen = meta.truncated_records, self.truncated[meta.artifact]
            self.found.add("count", f"{meta.artifact}.meta.json", f"{told:,} rows said to be truncated, {seen:,} are")

    def _read_lines(self, path: str, *, compressed: bool) -> Iterator[tuple[int, bytes]]:
        limit, number = MAX_ROW_BYTES + 1, 0
        with open_lines(self.folder / path, compressed=compressed) as file:
            while line := file.readline(limit):
                number += 1
                if not line.endswith(b"\n"):
                    rest = line
                    while rest and not rest.endswith(b"\n"):
                        rest = file.readline(limit)
                    what = f"a row of more than {MAX_ROW_BYTES:,} bytes" if len(line) == limit else "no line end"
                    self.found.add("row_size", f"{path}:{number}", what)
                yield number, line

    def bear(self, kind: str, name: str, where: str) -> None:
        """A row gives this name, and no other row may."""
        digest = hash(name)
        if digest in self.known[kind]:
            self.found.add("identity", where, f"the {kind} {name} is there twice")
        self.known[kind].add(digest)

    def refer(self, kind: str, name: str | None, where: str) -> None:
        if name is not None and _BORNE_BY[kind] in self.metas:
            digest = hash(name)
            if digest not in self.known[kind]:
                self.awaited[kind].setdefault(digest, f"{where}\0{name}")

    def _check_awaited(self) -> None:
        for kind, awaited in self.awaited.items():
            missing = [place for digest, place in awaited.items() if digest not in self.known[kind]]
            # A row that was too large to be written is missed by those that name it.
            dropped = self.metas[_BORNE_BY[kind]].dropped_records if missing else 0
            for place in missing if len(missing) > dropped else ():
                where, _, name = place.partition("\0")
                self.found.add("dangling", where, f"there is no {kind} {name}")

    def _check_state(self, generated_at: str) -> None:
        if "index_state.json" not in self.pieces:
            return
        state: IndexState | None = self._load("index_state.json", IndexState)
        if state is None:
            return
        if state.generated_at != generated_at:
            self.found.add("meta", "index_state.json", "was made at another time than the manifest")
        written = {name: meta.total_records + meta.dropped_records for name, meta in self.metas.items()}
        for name in sorted({*written, *state.records}):
            if written.get(name) != state.records.get(name):
                told, seen = state.records.get(name, 0), written.get(name, 0)
                self.found.add("count", "index_state.json", f"{name}: {told:,} rows were made, {seen:,} are here")
        if "vfs_manifest" in self.metas and len(self.known["file"]) != state.files:
            self.found.add(
                "count", "index_state.json", f"{state.files:,} files, {len(self.known['file']):,} in vfs_manifest"
            )

    def _check_stats(self, generated_at: str) -> None:
        name = f"{STATS}.json"
        stats: RiskStats | None = self._load(name, RiskStats) if name in self.pieces else None
        if stats is None:
            return
        flows = self.metas.get("risk_flows")
        for what, holds in {
            "was made at another time than the manifest": stats.generated_at == generated_at,
            "flows although there was no time": stats.status != "timed_out"
            or (stats.counts.flows_emitted, stats.counts.call_sites_emitted) == (0, 0),
            "an error without a reason": stats.status != "error" or stats.reason is not None,
            "counts other flows than there are": flows is None
            or stats.effective_config.emit_artifacts == "none"
            or stats.counts.flows_emitted == flows.total_records + flows.dropped_records,
        }.items():
            if not holds:
                self.found.add("risk", name, what)


def _json_pieces(piece: Piece) -> tuple[Piece, ...]:
    """What a piece that is no rows may be, its size and checksum taken for granted."""
    return (
        Piece(piece.name, "meta", "json", f"{piece.name}.meta.json", piece.bytes, piece.checksum, 1),
        Piece("index_state", "state", "json", "index_state.json", piece.bytes, piece.checksum, 1),
        Piece(STATS, "state", "json", f"{STATS}.json", piece.bytes, piece.checksum, 1),
    )


class _Siblings:
    """Parents and children of one file at a time must name each other."""

    def __init__(self, found: Findings) -> None:
        self._found = found
        self._file = ""
        self._rows: dict[str, tuple[ChunkRow, str]] = {}

    def add(self, row: ChunkRow, where: str) -> None:
        if row.file != self._file:
            self.end_file()
            self._file = row.file
        self._rows[row.chunk_uid] = row, where

    def end_file(self) -> None:
        children: dict[str, set[str]] = {}
        for row, where in self._rows.values():
            if row.parent_chunk_uid is None:
                continue
            children.setdefault(row.parent_chunk_uid, set()).add(row.chunk_uid)
            parent = self._rows.get(row.parent_chunk_uid)
            if parent is None:
                self._found.add("dangling", where, f"there is no parent {row.parent_chunk_uid}")
            elif row.depth != parent[0].depth + 1:
                self._found.add("chunk_rule", where, f"depth {row.depth} under a parent of depth {parent[0].depth}")
        for uid, (row, where) in self._rows.items():
            named, actual = set(row.child_chunk_uids), children.get(uid, set())
            cut = row_is_truncated(row) and "childChunkUids" in row.truncated  # pyright: ignore[reportOperatorIssue]
            if not named <= actual or (named != actual and not cut):
                self._found.add("chunk_rule", where, "childChunkUids are not the chunks that name it as their parent")
        self._rows.clear()


def row_is_truncated(row: Row) -> bool:
    return getattr(row, "truncated", msgspec.UNSET) is not msgspec.UNSET


# Which artifact says that a thing exists.
_BORNE_BY = {
    "file": "vfs_manifest", "segment": "vfs_manifest", "symbol": "symbols", "chunk": "chunks",
    "call site": "call_sites", "resolved edge": "symbol_edges",
}  # fmt: skip


def _check_document(export: _Export, row: Any, where: str) -> None:
    if row.segment_uid is None:
        export.bear("file", row.container_path, where)
    else:
        export.bear("segment", row.segment_uid, where)
        export.refer("file", row.container_path, where)
    if row.segment_start > row.segment_end or row.line_start > row.line_end:
        export.found.add("span", where, "ends before it starts")


def _check_symbol(export: _Export, row: Any, where: str) -> None:
    export.bear("symbol", row.symbol_id, where)
    export.refer("chunk", row.chunk_uid, where)
    _check_home(export, row, where)


def _check_chunk(export: _Export, row: Any, where: str) -> None:
    export.bear("chunk", row.chunk_uid, where)
    export.refer("symbol", row.symbol_id, where)
    _check_home(export, row, where)
    if row.range.start > row.range.end or (row.start_line, row.start_col) > (row.end_line, row.end_col):
        export.found.add("span", where, "ends before it starts")


def _check_call(export: _Export, row: Any, where: str) -> None:
    export.bear("call site", row.call_site_id, where)
    span = f"{row.start_line}:{row.start_col}:{row.end_line}:{row.end_col}"
    name = f"{row.file}:{span}:{row.callee_raw}".encode("utf-8", "surrogateescape")
    if row.call_site_id != f"sha1:{hashlib.sha1(name, usedforsecurity=False).hexdigest()}":
        export.found.add("identity", where, "callSiteId is not the sha1 of the call's place and callee")
    export.refer("chunk", row.caller_chunk_uid, where)
    export.refer("chunk", row.callee_chunk_uid, where)
    _check_home(export, row, where)
    if row.start > row.end or (row.start_line, row.start_col) > (row.end_line, row.end_col):
        export.found.add("span", where, "ends before it starts")
    candidates = row.target_candidates
    if candidates is not None:
        _check_candidates(export, row, row.status, candidates, row.callee_chunk_uid, where)
        capped, narrowed = "capped" in row.evidence, "imported" in row.evidence
        export.rates.add(row.language_id, "calls", row.status, narrowed=narrowed, capped=capped)
    elif (row.status, row.callee_chunk_uid) != ("unresolved", None):
        export.found.add("resolution", where, "has a target, but no candidates")


def _check_candidates(
    export: _Export, row: Row, status: str, candidates: Any, resolved: str | None, where: str
) -> None:
    """`resolved` is the chunk that the row names as its target."""
    for candidate in candidates:
        export.refer("symbol", candidate.symbol_id, where)
        export.refer("chunk", candidate.chunk_uid, where)
    keys = [(-candidate.score, candidate.symbol_key, candidate.symbol_id) for candidate in candidates]
    if any(left >= right for left, right in pairwise(keys)):
        export.found.add("resolution", where, "the candidates do not stand once each, by score and symbolKey")
    if row_is_truncated(row):
        return
    if resolved != (candidates[0].chunk_uid if status == "resolved" and candidates else None):
        export.found.add("resolution", where, "its target is not its candidate")
    few, many = {"resolved": (1, 1), "ambiguous": (1, MAX_CANDIDATES)}.get(status, (0, 0))
    if not few <= len(candidates) <= many:
        export.found.add("resolution", where, f"{status}, with {len(candidates)} candidates")


def _check_reference(export: _Export, row: Row, ref: SymbolReference, where: str) -> None:
    uid = ref.resolved.chunk_uid if ref.resolved else None
    _check_candidates(export, row, ref.status, ref.candidates, uid, where)
    if ref.resolved and ref.candidates and ref.resolved.symbol_id != ref.candidates[0].symbol_id:
        export.found.add("resolution", where, "its target is not its candidate")
    export.refer("file", ref.import_hint.resolved_file if ref.import_hint else None, where)


def _check_occurrence(export: _Export, row: Any, where: str) -> None:
    export.refer("file", row.from_file, where)
    export.refer("chunk", row.from_chunk_uid, where)
    export.refer("call site", row.call_site_id, where)
    if (row.occurrence_kind == "call") != (row.call_site_id is not None):
        export.found.add("resolution", where, "a call has a call site, a usage has none")
    if row.range.start > row.range.end:
        export.found.add("span", where, "ends before it starts")
    _check_reference(export, row, row.ref, where)


def _check_edge(export: _Export, row: Any, where: str) -> None:
    export.refer("file", row.file, where)
    export.refer("chunk", row.from_chunk_uid, where)
    export.refer("symbol", row.from_symbol_id, where)
    _check_reference(export, row, row.to, where)
    if row.to.resolved:
        export.known["resolved edge"].add(hash(_edge_name(row.from_chunk_uid, row.to.resolved.chunk_uid, row.kind)))
    capped, narrowed = row.to.omitted > 0, row.evidence.import_narrowed
    for what in ("imports", "all") if row.kind == "imports" else ("all",):
        export.rates.add(row.language_id, what, row.to.status, narrowed=narrowed, capped=capped, times=row.occurrences)


def _check_node(export: _Export, row: Any, where: str) -> None:
    export.refer("file", row.file, where)
    export.refer("chunk", row.id, where)
    export.refer("symbol", row.symbol_id, where)
    *node, part = export.last_node
    expected = part + 1 if node == [row.file, row.graph, row.id] else 0
    export.last_node = row.file, row.graph, row.id, row.part
    if row.part != expected:
        export.found.add("order", where, f"part {row.part} of a node, where {expected} comes next")
    if any((left.id, left.kind) >= (right.id, right.kind) for left, right in pairwise(row.out)):
        export.found.add("order", where, "its edges do not stand once each, by id and kind")
    for edge in row.out:
        export.refer("chunk", edge.id, where)
        export.refer("resolved edge", _edge_name(row.id, edge.id, edge.kind), where)


def _edge_name(source: str, target: str, kind: str) -> str:
    return f"from {source} to {target} of kind {kind}"


def _check_relations(export: _Export, row: Any, where: str) -> None:
    _check_home(export, row, where)
    for item in row.imports:
        export.refer("chunk", item.chunk_uid, where)
    for path in row.import_links or ():
        export.refer("file", path, where)


def _check_vectors(export: _Export, row: Any, where: str) -> None:
    export.refer("file", row.file, where)
    export.refer("chunk", row.chunk_uid, where)
    form = export.metas[DenseVectorRow.ARTIFACT].vectors
    if not isinstance(form, VectorFormat):
        return
    for name, data, scale in (("body", row.body, row.body_scale), ("signature", row.signature, row.signature_scale)):
        if len(data) != form.dims or max(data, default=0) >= form.quantization.levels:
            export.found.add("vector", where, f"{name} is not {form.dims} of {form.quantization.levels} levels")
            continue
        values = from_levels(data, form.quantization) * scale
        length = float(values @ values) ** 0.5
        if length and abs(length - 1) > MAX_LENGTH_ERROR:
            export.found.add("vector", where, f"{name} has a length of {length:.3f}, not 1")


def _check_types(export: _Export, row: Any, where: str) -> None:
    export.refer("file", row.file, where)
    export.refer("symbol", row.symbol_id, where)
    export.refer("chunk", row.chunk_uid, where)


def _check_project(export: _Export, row: Any, where: str) -> None:
    for path in (row.file, *row.references, *row.referenced_by, *row.extends, *row.files, *row.workspaces):
        export.refer("file", path, where)
    if not row_is_truncated(row) and len(row.files) != row.file_count:
        export.found.add("count", where, f"{row.file_count} files were counted, {len(row.files)} are here")


def _check_summary(export: _Export, row: Any, where: str) -> None:
    export.refer("chunk", row.chunk_id, where)
    export.refer("file", row.file, where)
    for signals in (row.sources, row.sinks, row.sanitizers):
        for signal in signals:
            for at in signal.evidence:
                export.refer("file", at.file, where)


def _check_flow(export: _Export, row: Any, where: str) -> None:
    path, source, sink = row.path, row.source, row.sink
    told = "|".join((source.chunk_id, source.rule_id, sink.chunk_id, sink.rule_id, ">".join(path.chunk_ids)))
    if (
        row.flow_id
        != f"sha1:{hashlib.sha1(told.encode('utf-8', 'surrogateescape'), usedforsecurity=False).hexdigest()}"
    ):
        export.found.add("identity", where, "flowId is not the sha1 of its ends and its path")
    if len(path.chunk_ids) < 2 or len(path.call_site_ids_by_step) != len(path.chunk_ids) - 1:
        export.found.add("risk", where, "its path has not one step between each two chunks")
    elif (path.chunk_ids[0], path.chunk_ids[-1]) != (source.chunk_id, sink.chunk_id):
        export.found.add("risk", where, "its path does not lead from its source to its sink")
    for uid in path.chunk_ids:
        export.refer("chunk", uid, where)
    for step in path.call_site_ids_by_step:
        for site in step:
            export.refer("call site", site, where)


def _check_place(export: _Export, row: Any, where: str) -> None:
    export.refer("chunk", row.chunk_id, where)
    export.refer("file", row.file, where)


def _check_home(export: _Export, row: Any, where: str) -> None:
    export.refer("file", row.file, where)
    export.refer("segment", row.segment_uid, where)


_CHECKS: dict[type[Row], Any] = {
    VirtualDocumentRow: _check_document, SymbolRow: _check_symbol, ChunkRow: _check_chunk, CallSiteRow: _check_call,
    FileRelationsRow: _check_relations, SymbolOccurrenceRow: _check_occurrence, SymbolEdgeRow: _check_edge,
    TypeFactsRow: _check_types, ProjectRow: _check_project,
    GraphRow: _check_node, DenseVectorRow: _check_vectors, RiskSummaryRow: _check_summary, RiskFlowRow: _check_flow,
    RiskLocalFlowRow: _check_place, RiskPartialFlowRow: _check_place,
}  # fmt: skip


def check_tables(reader: Reader, tree: int, found: Findings) -> bool:
    """What SQLite itself says, and whether the tables agree with each other. False when they cannot be read."""
    connection = reader._db
    try:
        for problem in reader.integrity():
            found.add("sqlite", "index", problem)
        rows = connection.execute(
            "SELECT path FROM file WHERE tree=? AND content NOT IN (SELECT id FROM content) ORDER BY path", (tree,)
        )
        for (path,) in rows.fetchall():
            found.add("dangling", path, "the index has no content for this file")
        chunks = end = 0
        for number, base, counts in connection.execute(
            "SELECT id, chunk_base, counts FROM content ORDER BY chunk_base"
        ):
            if base < end:
                found.add("counts", f"content {number}", "its chunks overlap those of another in the word index")
            try:
                own = msgspec.msgpack.decode(counts, type=dict[str, int]).get("chunks", 0)
            except msgspec.MsgspecError as error:
                found.add("blob", f"content {number}", f"counts: {error}")
                continue
            chunks, end = chunks + own, base + own
        (words,) = connection.execute("SELECT count(*) FROM words_docsize").fetchone()
        if words != (chunks if reader.has_words() else 0):
            found.add("counts", "index", f"{words:,} chunks in the word index, {chunks:,} in the facts")
    except sqlite3.Error as error:
        found.add("sqlite", "index", str(error))
        return False
    return True


def load_symbol_table(reader: Reader, content: int) -> list[tuple[int, int, str, str, str]]:
    """(document, number, name, qualified_name, kind) of one content, in order."""
    return reader._db.execute(
        "SELECT document, number, name, qualified_name, kind FROM symbol WHERE content=? ORDER BY document, number",
        (content,),
    ).fetchall()


def load_links(reader: Reader, tree: int, path: str) -> tuple[list[Links | None], set[int]] | None:
    """What a file's code means, and under which keys others find it; None for a file that was not linked."""
    row = reader._db.execute(
        "SELECT l.id, l.targets FROM linked d JOIN link l ON l.id=d.link WHERE d.tree=? AND d.path=?", (tree, path)
    ).fetchone()
    if row is None:
        return None
    # The table has no index by file; every row of it that should be there is looked up.
    sql = "SELECT 1 FROM target WHERE key=? AND link=?"
    keys = {key for key in array("q", row[1]) if reader._db.execute(sql, (key, row[0])).fetchone()}
    return reader.own_links(tree, path), keys
