"""The index as artifacts: what other programs read. One pass over the files in path order, one file in memory.

`questions/export` goes over the files in path order and holds one at a time: `document` has its facts and names,
`facts` and `links` make the rows, `scip` the documents of a SCIP index (`store/scip` is the wire format). Definitions
that rows lead to are named when first led to and forgotten in turn, so memory does not grow with the repository. Kinds
of edges are the fields of `Links` (`RELATIONS`): a new one is in `find_all`, and so in every artifact. `cq ingest`
turns a SCIP index into statements about calls, kept as evidence beside those of language servers.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from cq.model.artifact import (
    ARTIFACTS,
    ROWS,
    SCHEMA_VERSION,
    STATS,
    ChunkRisk,
    ChunkRow,
    DenseVectorRow,
    DroppedRecords,
    DropReason,
    Embeddings,
    ExportedArtifact,
    ExportReport,
    Feature,
    IndexState,
    Piece,
    Provenance,
    RiskArtifact,
    RiskCounts,
    RiskSettings,
    RiskStats,
    RiskTimings,
    Row,
)
from cq.model.embedding import EmbeddingState
from cq.model.errors import UsageError, suggest
from cq.opening import read_file
from cq.questions.export.document import Document, load_documents, open_links
from cq.questions.export.facts import (
    make_call_rows,
    make_chunk_rows,
    make_relation_rows,
    make_symbol_rows,
    make_virtual_document_rows,
)
from cq.questions.export.links import make_edge_rows, make_graph_rows, make_occurrence_rows
from cq.questions.export.types import ProjectSource, make_type_rows
from cq.questions.export.vectors import VectorSource
from cq.source.repository import find_common_dir
from cq.store.artifacts import ArtifactWriter, Caps, replace_export, write_json, write_manifest
from cq.store.database import SCHEMA
from cq.store.read import Reader, Tree


def export_index(
    reader: Reader,
    tree: Tree,
    out: str | Path,
    *,
    version: str,
    only: Sequence[str] = (),
    compress: str | None = None,
    generated_at: str | None = None,
    caps: Caps | None = None,
    embeddings: EmbeddingState | None = None,
    risk: RiskSource | None = None,
    root: Path | None = None,
    commit: str | None = None,
) -> ExportReport:
    """Writes the tree's artifacts to the directory `out`, which appears or is replaced at the end. Call it inside
    `with reader:`, so that all of it is of one generation. `version` is ours. UsageError when `out` holds anything
    but an export. A tree that is no work tree comes with the `root` and the `commit` that it is of."""
    names = select_artifacts(only)
    if compress not in (None, "zstd"):
        raise UsageError(f"unknown compression {compress!r}", hint="zstd is the one there is")
    vectors = VectorSource(reader, tree, embeddings)
    projects = ProjectSource(reader, tree)
    form = vectors.describe() if "dense_vectors" in names else None
    if "dense_vectors" in only and form is None:
        raise UsageError("there are no vectors to export", hint="`cq index --embed` makes them")
    generated_at = generated_at or _now()
    out = Path(out)
    with replace_export(out, ignored=out.resolve().is_relative_to(root or tree.root)) as folder:
        writers = {
            name: ArtifactWriter(folder, kind, caps or Caps(), compress, form if kind is DenseVectorRow else None)
            for name, kind in ROWS.items()
            if name in names and (form is not None or kind is not DenseVectorRow)
        }
        try:
            makers = {**_MAKERS, "dense_vectors": vectors.make_rows, "projects": projects.make_rows, **_make_risk(risk)}
            languages = _write_rows(reader, tree, writers, makers)
            done: list[ExportedArtifact] = []
            pieces: list[Piece] = []
            for name, writer in writers.items():
                meta, of_artifact = writer.close(generated_at)
                pieces += of_artifact
                size, dropped = sum(piece.bytes for piece in of_artifact), meta.dropped_records
                done.append(
                    ExportedArtifact(name, meta.total_records, size, len(of_artifact), meta.truncated_records, dropped)
                )
        finally:
            for writer in writers.values():
                writer.abandon()
        if STATS in names and risk is not None:
            stats = _describe_risk(risk, done, {piece.path for piece in pieces}, generated_at)
            piece = write_json(folder, f"{STATS}.json", stats, STATS, "state")
            pieces.append(piece)
            done.append(ExportedArtifact(STATS, 1, piece.bytes, 1))
        if "index_state" in names:
            records = {name: writer.records for name, writer in writers.items()}
            commit = commit or _find_head(tree.root)
            state = _describe_state(reader, tree, languages, records, version, generated_at, embeddings, commit, risk)
            piece = write_json(folder, "index_state.json", state, "index_state", "state")
            pieces.append(piece)
            done.append(ExportedArtifact("index_state", 1, piece.bytes, 1))
        write_manifest(folder, pieces, generated_at)
    return ExportReport(os.fspath(out), tuple(done), sum(piece.bytes for piece in pieces))


def select_artifacts(only: Sequence[str]) -> frozenset[str]:
    """All of them for none; UsageError with the nearest name for one that does not exist."""
    for name in only:
        if name not in ARTIFACTS:
            hint = suggest(name, ARTIFACTS)
            raise UsageError(f"unknown artifact {name!r}", hint=hint)
    return frozenset(only or ARTIFACTS)


def _now() -> str:
    """SOURCE_DATE_EPOCH, where it is set, makes two exports equal to the last byte."""
    moment = time.time()
    with suppress(ValueError):
        moment = int(os.environ.get("SOURCE_DATE_EPOCH", ""))
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))


def _write_rows(
    reader: Reader,
    tree: Tree,
    writers: dict[str, ArtifactWriter],
    makers: dict[str, Callable[[Document], Iterator[Row]]],
) -> Counter[str]:
    languages: Counter[str] = Counter()
    semantics, targets = open_links(reader, tree)
    for file in reader.files(tree.id):
        languages[file.language] += 1
        if not writers:
            continue
        documents = load_documents(reader, file, semantics, targets)
        for name, writer in writers.items():
            rows = [row for document in documents for row in makers[name](document)]
            rows.sort(key=_key)
            for row in rows:
                writer.add(row)
        semantics.documents.forget(file.path)
    return languages


def _key(row: Row) -> tuple[object, ...]:
    return row.key()


_MAKERS: dict[str, Callable[[Document], Iterator[Row]]] = {
    "vfs_manifest": make_virtual_document_rows, "symbols": make_symbol_rows, "chunks": make_chunk_rows,
    "call_sites": make_call_rows, "file_relations": make_relation_rows, "symbol_occurrences": make_occurrence_rows,
    "symbol_edges": make_edge_rows, "graph_relations": make_graph_rows, "type_facts": make_type_rows,
}  # fmt: skip


class RiskSource(Protocol):
    """Rows about risk, by file and document."""

    settings: RiskSettings
    status: Literal["ok", "disabled", "timed_out"]
    reason: str | None
    caps_hit: dict[str, None]
    counts: RiskCounts
    seconds: tuple[float, float]

    def summarize(self, path: str, document: int) -> dict[str, ChunkRisk]: ...
    def make_summaries(self, path: str, document: int) -> Iterator[Row]: ...
    def make_flows(self, path: str, document: int) -> Iterator[Row]: ...
    def make_local_flows(self, path: str, document: int) -> Iterator[Row]: ...
    def make_partial_flows(self, path: str, document: int) -> Iterator[Row]: ...


def _make_risk(risk: RiskSource | None) -> dict[str, Callable[[Document], Iterator[Row]]]:
    """Of each artifact what makes its rows; chunks say what of risk stands in them."""
    if risk is None:
        return {name: lambda _: iter(()) for name in _RISK}

    def make_chunks(document: Document) -> Iterator[Row]:
        found = risk.summarize(document.path, document.number)
        for row in make_chunk_rows(document):
            own = found.get(row.chunk_uid) if isinstance(row, ChunkRow) else None
            yield row if own is None else msgspec.structs.replace(row, risk=own)

    makers = (risk.make_summaries, risk.make_flows, risk.make_local_flows, risk.make_partial_flows)
    rows = {name: partial(_make_of, make) for name, make in zip(_RISK, makers, strict=True)}
    return {"chunks": make_chunks, **rows}


def _make_of(make: Callable[[str, int], Iterator[Row]], document: Document) -> Iterator[Row]:
    return make(document.path, document.number)


def _describe_risk(
    risk: RiskSource, done: Sequence[ExportedArtifact], paths: set[str], generated_at: str
) -> RiskStats:  # fmt: skip
    """Times are left out where two exports are to be equal to the last byte."""
    is_timed = "SOURCE_DATE_EPOCH" not in os.environ
    summaries, propagation = (round(seconds * 1000) if is_timed else 0 for seconds in risk.seconds)
    artifacts: dict[str, RiskArtifact] = {}
    dropped: list[DroppedRecords] = []
    for one in done:
        key = _STATED.get(one.name)
        if key is None:
            continue
        if risk.settings.emit_artifacts == "jsonl" and risk.status == "ok":
            is_sharded = f"{one.name}.parts/00000.jsonl" in paths or f"{one.name}.parts/00000.jsonl.zst" in paths
            plain = f"{one.name}.jsonl" if f"{one.name}.jsonl" in paths else f"{one.name}.jsonl.zst"
            entry = f"{one.name}.meta.json" if is_sharded else plain
            artifacts[key] = RiskArtifact(one.name, "jsonl", is_sharded, entry, one.records)
        if one.dropped:
            dropped.append(DroppedRecords(one.name, one.dropped, (DropReason("recordTooLarge", one.dropped),)))
    timings = RiskTimings(summaries, propagation, summaries + propagation)
    return RiskStats(
        SCHEMA_VERSION, STATS, generated_at, risk.status, risk.reason, risk.settings, risk.counts,
        tuple(sorted(risk.caps_hit)), timings, artifacts, tuple(dropped),
    )  # fmt: skip


_RISK = ("risk_summaries", "risk_flows", "risk_local_flows", "risk_partial_flows")
_STATED = {"risk_summaries": "riskSummaries", "call_sites": "callSites", "risk_flows": "riskFlows"}


def _describe_state(
    reader: Reader, tree: Tree, languages: Counter[str], records: dict[str, int], version: str, generated_at: str,
    embeddings: EmbeddingState | None, commit: str | None, risk: RiskSource | None,
) -> IndexState:  # fmt: skip
    """The generation is left out: it says how often the index was refreshed, not what it holds."""
    skipped = Counter(skip.reason for skip, _, _ in reader.skips(tree.id).values())
    present = Feature(enabled=True, reason=None)
    is_followed = risk is not None and risk.status == "ok"
    reason = None if is_followed or risk is None else risk.reason or "no artifact of risk was asked for"
    return IndexState(
        schema_version=SCHEMA_VERSION,
        artifact="index_state",
        generated_at=generated_at,
        profile=embeddings.profile if embeddings else "default",
        features={"facts": present, "graph": present, "risk": Feature(enabled=is_followed, reason=reason)},
        embeddings=_describe_embeddings(embeddings),
        providers={},
        provenance=Provenance("cq", version, SCHEMA, commit, tree.config),
        files=languages.total(),
        languages=dict(sorted(languages.items())),
        skipped=dict(sorted(skipped.items())),
        records=records,
    )


def _describe_embeddings(state: EmbeddingState | None) -> Embeddings:
    if state is None:
        return Embeddings(False, False, False, "none", "nobody looked", None, 0, 1.0, None, {})
    backends = {
        name: Feature(enabled=there, reason=None if there else "not installed")
        for name, there in state.backends.items()
    }
    pending = state.enabled and state.missing_rate > 0
    return Embeddings(
        state.enabled, state.ready, pending, state.mode, state.reason or None, state.identity, state.dimensions,
        state.missing_rate, state.backend, backends,
    )  # fmt: skip


def _find_head(root: str) -> str | None:
    """The commit that is checked out, as git's own files say; no process, and nothing is read outside of them."""
    top = next((folder for folder in (Path(root), *Path(root).parents) if (folder / ".git").exists()), None)
    found = find_common_dir(os.fspath(top)) if top else None
    if not found:
        return None
    own, common = map(Path, found)
    head = _read(own / "HEAD")
    if ref := re.fullmatch(r"ref: (refs/[^\n]+)", head):
        if ".." in ref[1]:
            return None
        packed = re.search(rf"^(\w+) {re.escape(ref[1])}$", _read(common / "packed-refs"), re.MULTILINE)
        head = _read(own / ref[1]) or _read(common / ref[1]) or (packed[1] if packed else "")
    return head if re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", head) else None


_MAX_REFS = 64 * 1024 * 1024


def _read(path: Path) -> str:
    try:
        return read_file(path, _MAX_REFS).decode("utf-8", "replace").strip()
    except OSError:
        return ""
