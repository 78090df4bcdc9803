"""The rows of exported artifacts and what describes them. These structs are the schema: keys are camelCase, no
unknown key is taken, and an artifact that breaks a bound written here is not valid."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from cq.model.evidence import TraceReport

SCHEMA_VERSION = 1
MAX_ROW_BYTES = 32_768
MAX_ARGS, MAX_ARG_CHARS, MAX_ARG_DEPTH = 8, 80, 2
MAX_ARGS_SUMMARY = 5
MAX_EVIDENCE, MAX_EVIDENCE_CHARS = 6, 32
MAX_CANDIDATES = 25
MAX_NAME_MATCHES = 200  # more definitions than this behind one name are too many to mean anything

# Relative, POSIX, and it leads nowhere above the root.
RepoPath = Annotated[str, Meta(pattern=r"^(?!/)(?!(?:[\s\S]*/)?\.\.(?:/|$))[\s\S]+")]
ToolPath = Annotated[str, Meta(pattern=r"^\.cq-vfs/[\s\S]+")]
ChunkUid = Annotated[str, Meta(pattern=r"^ck64:v1:[\s\S]+:[0-9a-z]+$")]
SegmentUid = Annotated[str, Meta(pattern=r"^seg1:[0-9a-f]{16}(?::ord[0-9]+)?$")]
SymbolId = Annotated[str, Meta(pattern=r"^sym1:(?:heur|scip|lsif|ctags):[0-9a-f]{40}$")]
Sha1 = Annotated[str, Meta(pattern=r"^sha1:[0-9a-f]{40}$")]
Sha256 = Annotated[str, Meta(pattern=r"^sha256:[0-9a-f]{64}$")]
SpanHash = Annotated[str, Meta(pattern=r"^(?:[0-9a-f]{16})?$")]
DocHash = Annotated[str, Meta(pattern=r"^xxh64:[0-9a-f]{16}$")]
Time = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
Word = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=0)]
Line = Annotated[int, Meta(ge=1)]
Status = Literal["resolved", "ambiguous", "external", "unresolved"]
Share = Annotated[float, Meta(ge=0, le=1)]
KindGroup = Literal["function", "class", "method", "type", "value", "module", "other"]
Truncated = tuple[str, ...] | UnsetType


class Row(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel", forbid_unknown_fields=True):
    """One line of an artifact. A row over MAX_ROW_BYTES loses from TEXTS, then from LISTS, in that order, and names
    what it lost in `truncated`; one that is still too large is dropped and counted."""

    ARTIFACT: ClassVar[str] = ""
    ORDER: ClassVar[tuple[str, ...]] = ()  # the total order, `-` for descending
    TEXTS: ClassVar[tuple[str, ...]] = ()
    LISTS: ClassVar[tuple[str, ...]] = ()

    schema_version: Literal[1]

    def key(self) -> tuple[Any, ...]:
        """Compares as ORDER says."""
        raise NotImplementedError


class Part(msgspec.Struct, frozen=True, gc=False, rename="camel", forbid_unknown_fields=True):
    """An object inside a row."""


class Range(Part, frozen=True):
    start: Count
    end: Count


class ChunkIdentity(Part, frozen=True):
    v: Literal[1]
    span_hash: SpanHash
    pre_hash: SpanHash
    post_hash: SpanHash
    collision_of: ChunkUid | None


Severity = Literal["low", "medium", "high", "critical"]


class SignalCount(Part, frozen=True):
    count: Count
    top_categories: Annotated[tuple[str, ...], Meta(max_length=3)]


class SinkCount(Part, frozen=True):
    count: Count
    max_severity: Severity | None
    top_categories: Annotated[tuple[str, ...], Meta(max_length=3)]


class PlainCount(Part, frozen=True):
    count: Count


class Interprocedural(Part, frozen=True):
    enabled: bool
    summary_only: bool


class CompactRisk(Part, frozen=True):
    """What of risk stands in one chunk, without its places."""

    schema_version: Literal[1]
    sources: SignalCount
    sinks: SinkCount
    sanitizers: PlainCount
    local_flows: PlainCount
    interprocedural: Interprocedural


class ChunkRisk(Part, frozen=True):
    summary: CompactRisk


class ChunkRow(Row, frozen=True, kw_only=True):
    """A piece of code that can be found and read alone. The module chunk of a document owns its root-level code."""

    ARTIFACT = "chunks"
    ORDER = ("file", "range.start", "-range.end", "virtualPath", "chunkUid")
    TEXTS = ("doc", "signature", "breadcrumb", "qualified_name", "name")
    LISTS = ("relevant_imports", "modifiers", "child_chunk_uids")

    chunk_uid: ChunkUid
    segment_uid: SegmentUid | None
    virtual_path: RepoPath
    file: RepoPath
    lang: Word
    kind: Word
    kind_group: KindGroup | None  # null for what is no definition
    name: str
    qualified_name: str
    symbol_id: SymbolId | None
    parent_chunk_uid: ChunkUid | None
    child_chunk_uids: tuple[ChunkUid, ...]
    depth: Count
    exported: bool
    modifiers: tuple[str, ...]
    signature: str
    doc: str
    range: Range
    start_line: Line
    start_col: Line
    end_line: Line
    end_col: Line
    breadcrumb: str
    relevant_imports: tuple[str, ...]
    identity: ChunkIdentity
    risk: ChunkRisk | None  # null where nothing was seen, and where risk was not asked for
    truncated: Truncated = UNSET

    def key(self) -> tuple[Any, ...]:
        return self.file, self.range.start, -self.range.end, self.virtual_path, self.chunk_uid


class CallArgument(Part, frozen=True):
    kind: Word
    text: Annotated[str, Meta(max_length=MAX_ARG_CHARS)]
    depth: Annotated[int, Meta(ge=0, le=MAX_ARG_DEPTH)]
    spread: bool
    name: str | None  # of a keyword argument


class Candidate(Part, frozen=True):
    """A definition that a reference may mean; the module itself is one too, with an empty qualified name."""

    symbol_id: SymbolId
    chunk_uid: ChunkUid
    symbol_key: Word
    signature_key: str | None
    kind_group: KindGroup
    score: Share  # candidates stand by score, the best first, then by symbolKey, then by symbolId


Candidates = Annotated[tuple[Candidate, ...], Meta(max_length=MAX_CANDIDATES)]


class CallSiteRow(Row, frozen=True, kw_only=True):
    """One call in the source, and what it means as far as that is known."""

    ARTIFACT = "call_sites"
    ORDER = ("file", "start", "end", "callSiteId")
    LISTS = ("kwargs", "args_summary", "args", "target_candidates")

    call_site_id: Sha1
    caller_chunk_uid: ChunkUid
    callee_chunk_uid: ChunkUid | None  # where status is `resolved`
    file: RepoPath
    language_id: Word
    segment_uid: SegmentUid | None
    start: Count
    end: Count
    start_line: Line
    start_col: Line
    end_line: Line
    end_col: Line
    kind: Word
    callee_raw: str
    callee_normalized: str  # the last name; empty where the callee has none
    receiver: str | None
    args: Annotated[tuple[CallArgument, ...], Meta(max_length=MAX_ARGS)]
    arg_count: Count  # all positional ones
    kwargs: tuple[str, ...]  # the names of all keyword arguments
    args_summary: Annotated[
        tuple[Annotated[str, Meta(max_length=MAX_ARG_CHARS)], ...], Meta(max_length=MAX_ARGS_SUMMARY)
    ]
    status: Status
    confidence: Share  # of each candidate; 0 where there is none
    # `syntax`, how the target was found, `imported`, and what happened: `capped`, `too_many`, `conflict`
    evidence: Annotated[tuple[Annotated[str, Meta(max_length=MAX_EVIDENCE_CHARS)], ...], Meta(max_length=MAX_EVIDENCE)]
    target_candidates: Candidates | None  # null where the language is not resolved
    snippet_hash: Sha1 | None
    truncated: Truncated = UNSET

    def key(self) -> tuple[Any, ...]:
        return self.file, self.start, self.end, self.call_site_id


class SymbolRow(Row, frozen=True, kw_only=True):
    """One definition with everything it is joined by."""

    ARTIFACT = "symbols"
    ORDER = ("file", "virtualPath", "qualifiedName", "kindGroup", "chunkUid", "symbolId")
    TEXTS = ("signature", "signature_key", "scoped_id", "symbol_key", "name")

    symbol_id: SymbolId
    scoped_id: Word
    scheme: Literal["heur", "scip", "lsif", "ctags"]
    symbol_key: Word
    signature_key: str | None
    chunk_uid: ChunkUid
    virtual_path: RepoPath
    segment_uid: SegmentUid | None
    file: RepoPath
    lang: Word
    kind: Word
    kind_group: KindGroup
    name: Word
    qualified_name: str  # empty for the module itself
    signature: str | None
    truncated: Truncated = UNSET

    def key(self) -> tuple[Any, ...]:
        return (
            self.file, self.virtual_path, self.qualified_name, self.kind_group, self.chunk_uid, self.symbol_id,
        )  # fmt: skip


class ImportHint(Part, frozen=True):
    module_specifier: str | None  # as written
    resolved_file: RepoPath | None


class Resolved(Part, frozen=True):
    symbol_id: SymbolId
    chunk_uid: ChunkUid


class SymbolReference(Part, frozen=True):
    """What a name may mean, with the doubt kept."""

    v: Literal[1]
    target_name: str
    kind_hint: str | None
    import_hint: ImportHint | None
    candidates: Candidates
    status: Status
    resolved: Resolved | None
    omitted: Count  # candidates beyond the cap
    note: Literal["too_many"] | None


class SymbolOccurrenceRow(Row, frozen=True, kw_only=True):
    """One place where code refers to a definition: a call, or a name that the scopes around it bind."""

    ARTIFACT = "symbol_occurrences"
    ORDER = ("fromFile", "range.start", "range.end", "fromVirtualPath", "occurrenceKind", "callSiteId")
    LISTS = ("ref.candidates",)

    from_chunk_uid: ChunkUid
    from_file: RepoPath
    from_virtual_path: RepoPath
    language_id: Word
    occurrence_kind: Literal["call", "usage"]
    role: Word  # what the syntax says of it: call, import, type, decorator, …
    target_name: str
    range: Range
    call_site_id: Sha1 | None
    ref: SymbolReference
    truncated: Truncated = UNSET

    def key(self) -> tuple[Any, ...]:
        return (
            self.from_file, self.range.start, self.range.end, self.from_virtual_path, self.occurrence_kind,
            self.call_site_id or "",
        )  # fmt: skip


class EdgeEvidence(Part, frozen=True):
    how: str  # one of model.edge.CONFIDENCE; empty where nothing was found
    import_narrowed: bool
    matched_export: bool  # imported, and what it leads to leaves its file
    matched_signature: bool  # candidates by name, of which those that could not take the arguments were left out


class SymbolEdgeRow(Row, frozen=True, kw_only=True):
    """What one definition refers to, said once however often it does."""

    ARTIFACT = "symbol_edges"
    ORDER = ("file", "virtualPath", "number")
    LISTS = ("to.candidates",)

    file: RepoPath
    virtual_path: RepoPath
    language_id: Word
    number: Count  # in its document: calls in source order, then the other kinds
    edge_kind: Literal["call", "usage"]
    kind: Word  # one of model.edge.EDGE_KINDS
    from_chunk_uid: ChunkUid
    from_symbol_id: SymbolId | None
    to: SymbolReference
    occurrences: Line  # how often
    confidence: Share
    evidence: EdgeEvidence
    truncated: Truncated = UNSET

    def key(self) -> tuple[Any, ...]:
        return self.file, self.virtual_path, self.number


class GraphEdge(Part, frozen=True):
    id: ChunkUid
    kind: Word
    confidence: Share
    occurrences: Line


class GraphRow(Row, frozen=True, kw_only=True):
    """A node of a graph with the resolved edges out of it; one with more than a row can hold goes on in `part` 1, 2, …
    A node without such edges has no row: its chunk is in `chunks`."""

    ARTIFACT = "graph_relations"
    ORDER = ("file", "graph", "id", "part")

    version: Literal[2]
    file: RepoPath
    graph: Literal["calls", "imports", "inherits", "usages"]
    id: ChunkUid
    part: Count
    symbol_id: SymbolId | None
    out: tuple[GraphEdge, ...]  # by id and kind
    truncated: Truncated = UNSET

    def key(self) -> tuple[Any, ...]:
        return self.file, self.graph, self.id, self.part


class ImportBinding(Part, frozen=True):
    """`local` names `imported` of the module: `*` is the module itself, `default` its default export."""

    local: str
    imported: str
    type_only: bool


class ImportRelation(Part, frozen=True):
    kind: Word
    module: str
    level: Count
    type_only: bool
    chunk_uid: ChunkUid  # whose code imports
    start: Count
    end: Count
    start_line: Line
    bindings: tuple[ImportBinding, ...]


class ExportRelation(Part, frozen=True):
    name: str
    exported: str
    module: str | None
    type_only: bool
    start: Count
    end: Count
    start_line: Line


class FileRelationsRow(Row, frozen=True, kw_only=True):
    """What one document imports and exports; a document with more than one row can hold goes on in `part` 1, 2, …"""

    ARTIFACT = "file_relations"
    ORDER = ("file", "virtualPath", "part")

    file: RepoPath
    virtual_path: RepoPath
    segment_uid: SegmentUid | None
    language_id: Word
    part: Count
    imports: tuple[ImportRelation, ...]
    exports: tuple[ExportRelation, ...]
    import_links: tuple[RepoPath, ...] | None  # the files these imports lead to; null where they are not resolved
    truncated: Truncated = UNSET

    def key(self) -> tuple[Any, ...]:
        return self.file, self.virtual_path, self.part


class VirtualDocumentRow(Row, frozen=True, kw_only=True):
    """A file, or a document embedded in one, as other tools are shown it."""

    ARTIFACT = "vfs_manifest"
    ORDER = ("containerPath", "segmentStart", "-segmentEnd", "virtualPath")
    LISTS = ("ranges",)

    virtual_path: RepoPath
    tool_path: ToolPath
    doc_hash: DocHash
    container_path: RepoPath
    container_ext: str
    container_language_id: Word
    language_id: Word
    effective_ext: str
    segment_uid: SegmentUid | None
    segment_start: Count
    segment_end: Count
    line_start: Line
    line_end: Line
    ranges: tuple[tuple[Count, Count], ...]  # of the container; joined they are the document's text
    truncated: Truncated = UNSET

    def key(self) -> tuple[Any, ...]:
        return self.container_path, self.segment_start, -self.segment_end, self.virtual_path


class DenseVectorRow(Row, frozen=True, kw_only=True):
    """What an embedder made of one chunk: as a whole, and by its path, name and signature. Of every row `dims` bytes,
    each a level of the quantization in the meta file; times the row's scale they are the vector."""

    ARTIFACT = "dense_vectors"
    ORDER = ("file", "chunkUid")

    file: RepoPath
    chunk_uid: ChunkUid
    body: bytes  # base64
    body_scale: Annotated[float, Meta(ge=0)]
    signature: bytes
    signature_scale: Annotated[float, Meta(ge=0)]
    truncated: Truncated = UNSET

    def key(self) -> tuple[Any, ...]:
        return self.file, self.chunk_uid


class RiskEvidence(Part, frozen=True):
    file: RepoPath
    line: Line
    column: Line
    snippet_hash: Sha1 | None


class RiskSignal(Part, frozen=True):
    """A rule that a chunk holds something of, with the first places."""

    rule_id: Word
    rule_name: str
    rule_type: Literal["source", "sink", "sanitizer"]
    category: str | None
    severity: Severity | None
    confidence: Share | None
    tags: tuple[str, ...]
    evidence: Annotated[tuple[RiskEvidence, ...], Meta(max_length=3)]


RiskSignals = Annotated[tuple[RiskSignal, ...], Meta(max_length=50)]


class RulePair(Part, frozen=True):
    source_rule_id: Word
    sink_rule_id: Word


class LocalFlows(Part, frozen=True):
    count: Count
    has_any: bool
    rule_pairs: Annotated[tuple[RulePair, ...], Meta(max_length=50)]


class RiskLimits(Part, frozen=True):
    evidence_per_signal: Count
    max_signals_per_kind: Count
    truncated: bool
    dropped_fields: tuple[str, ...]


class RiskSymbol(Part, frozen=True):
    name: str
    kind: Word
    language: str | None


class RiskSummaryRow(Row, frozen=True, kw_only=True):
    """What of risk stands in one chunk. `chunkId` is the chunkUid."""

    ARTIFACT = "risk_summaries"
    ORDER = ("file", "chunkId")
    LISTS = ("sanitizers", "sinks", "sources")

    chunk_id: ChunkUid
    file: RepoPath
    symbol: RiskSymbol
    sources: RiskSignals
    sinks: RiskSignals
    sanitizers: RiskSignals
    local_flows: LocalFlows
    limits: RiskLimits
    truncated: Truncated = UNSET

    def key(self) -> tuple[Any, ...]:
        return self.file, self.chunk_id


class FlowEndpoint(Part, frozen=True):
    chunk_id: ChunkUid
    rule_id: Word
    rule_name: str
    rule_type: Literal["source", "sink"]
    category: str | None
    severity: Severity | None
    confidence: Share | None


class FlowPath(Part, frozen=True):
    chunk_ids: tuple[ChunkUid, ...]
    call_site_ids_by_step: tuple[tuple[Sha1, ...], ...]  # of each step from one chunk to the next


class FlowNotes(Part, frozen=True):
    strictness: Literal["conservative", "argAware"]
    sanitizer_policy: Literal["terminate", "weaken"]
    hop_count: Count
    sanitizer_barriers_hit: Count
    caps_hit: tuple[str, ...]


class RiskFlowRow(Row, frozen=True, kw_only=True):
    """Data from a source in one chunk to a sink in another. `fingerprint` is the id that `cq risk` shows, which stays
    when lines move; it is null where no data was followed (`conservative`)."""

    ARTIFACT = "risk_flows"
    ORDER = ("file", "source.chunkId", "source.ruleId", "sink.chunkId", "sink.ruleId", "path", "flowId")

    flow_id: Sha1
    file: RepoPath  # of the source
    source: FlowEndpoint
    sink: FlowEndpoint
    path: FlowPath
    confidence: Share
    notes: FlowNotes
    fingerprint: str | None
    truncated: Truncated = UNSET

    def key(self) -> tuple[Any, ...]:
        source, sink = self.source, self.sink
        return (
            self.file, source.chunk_id, source.rule_id, sink.chunk_id, sink.rule_id, self.path.chunk_ids, self.flow_id
        )  # fmt: skip


class RiskLocalFlowRow(Row, frozen=True, kw_only=True):
    """Data from a source to a sink of the same chunk."""

    ARTIFACT = "risk_local_flows"
    ORDER = ("file", "chunkId", "source.line", "sink.line", "sinkRuleId", "sourceRuleId", "fingerprint")

    chunk_id: ChunkUid
    file: RepoPath
    source_rule_id: Word
    sink_rule_id: Word
    category: Word
    severity: Severity
    confidence: Share
    source: RiskEvidence
    sink: RiskEvidence
    fingerprint: Word
    truncated: Truncated = UNSET

    def key(self) -> tuple[Any, ...]:
        return (
            self.file, self.chunk_id, self.source.line, self.sink.line, self.sink_rule_id, self.source_rule_id,
            self.fingerprint,
        )  # fmt: skip


class RiskPartialFlowRow(Row, frozen=True, kw_only=True):
    """Where data was followed no further, and why: a library call that no rule knows (it passes data on), a function
    that is too large, a flow deeper than the cap."""

    ARTIFACT = "risk_partial_flows"
    ORDER = ("file", "line", "column", "reason", "name", "sourceRuleId", "chunkId")

    chunk_id: ChunkUid
    file: RepoPath
    line: Line
    column: Line
    reason: Literal["unmodelled", "tooLarge", "maxDepth"]
    name: str
    source_rule_id: str | None
    truncated: Truncated = UNSET

    def key(self) -> tuple[Any, ...]:
        return self.file, self.line, self.column, self.reason, self.name, self.source_rule_id or "", self.chunk_id


# In the order in which they can be checked: what is referred to comes before what refers to it.
class TypedName(Part, frozen=True):
    """A parameter: of a function with its type, of a type with its constraint and default."""

    name: str
    type: str | None  # as written
    default: str | None  # of a parameter of a type
    optional: bool
    rest: bool
    called: bool  # in the body


class NarrowedName(Part, frozen=True):
    guard: Word
    subject: str
    narrowed_to: str
    line: Line


class HandedName(Part, frozen=True):
    name: Word  # as written
    callee: str
    index: Annotated[int, Meta(ge=-1)]  # -1 for an attribute of JSX
    bound: bool
    line: Line


class TypeFactsRow(Row, frozen=True, kw_only=True):
    """What a declaration says of types, as written; names in types are followed by `type_uses` of symbol_edges."""

    ARTIFACT = "type_facts"
    ORDER = ("file", "virtualPath", "line", "qualifiedName", "symbolId")
    TEXTS = ("returns", "type", "returned", "predicate", "value")
    LISTS = ("guards", "hands", "implements", "extends", "parameters", "type_parameters")

    symbol_id: SymbolId
    chunk_uid: ChunkUid
    virtual_path: RepoPath
    file: RepoPath
    lang: Word
    kind: Word
    qualified_name: str
    line: Line
    source: Literal["syntax"]
    abstract: bool
    ambient: bool
    type_parameters: tuple[TypedName, ...]
    extends: tuple[str, ...]
    implements: tuple[str, ...]
    parameters: tuple[TypedName, ...] | None  # null for what cannot be called
    returns: str | None
    returned: str | None  # the function that it returns
    predicate: str | None  # `x is User`, `asserts x`
    type: str | None
    type_kind: str | None  # of an alias
    value: str | None  # of a member of an enum
    computed: bool
    guards: tuple[NarrowedName, ...]
    hands: tuple[HandedName, ...]  # names that its calls are given
    truncated: Truncated = UNSET

    def key(self) -> tuple[Any, ...]:
        return self.file, self.virtual_path, self.line, self.qualified_name, self.symbol_id


class PathAlias(Part, frozen=True):
    pattern: str
    targets: tuple[RepoPath, ...]


class ProjectRow(Row, frozen=True, kw_only=True):
    """A project, at the file that configures it."""

    ARTIFACT = "projects"
    ORDER = ("file",)
    LISTS = ("files", "workspaces", "aliases", "problems")

    file: RepoPath
    name: Word
    kind: Literal["solution", "base", "composite", "plain"]
    composite: bool
    references: tuple[RepoPath, ...]
    referenced_by: tuple[RepoPath, ...]
    extends: tuple[RepoPath, ...]
    files: tuple[RepoPath, ...]
    file_count: Count
    out_dir: str | None
    root_dir: str | None
    root_dirs: tuple[str, ...]
    conditions: tuple[str, ...]
    aliases: tuple[PathAlias, ...]
    workspaces: tuple[RepoPath, ...]
    problems: tuple[str, ...]
    truncated: Truncated = UNSET

    def key(self) -> tuple[Any, ...]:
        return (self.file,)


ROWS: dict[str, type[Row]] = {
    row.ARTIFACT: row
    for row in (
        VirtualDocumentRow, SymbolRow, ChunkRow, CallSiteRow, FileRelationsRow, SymbolOccurrenceRow, SymbolEdgeRow,
        GraphRow, TypeFactsRow, ProjectRow, DenseVectorRow, RiskSummaryRow, RiskFlowRow, RiskLocalFlowRow,
        RiskPartialFlowRow,
    )
}  # fmt: skip


class Piece(Part, frozen=True):
    """One file of an export."""

    name: str
    type: Literal["rows", "meta", "state"]
    format: Literal["json", "jsonl", "jsonl+zstd"]
    path: RepoPath
    bytes: Count
    checksum: Sha256  # of the file's bytes; of a JSON file without its line `generatedAt`
    count: Count


class Manifest(Part, frozen=True):
    """Where a reader begins: what is not listed here is not part of the export."""

    schema_version: Literal[1]
    artifact: Literal["manifest"]
    generated_at: Time
    pieces: tuple[Piece, ...]  # by path


class PartFile(Part, frozen=True):
    path: RepoPath
    records: Count
    bytes: Count
    checksum: Sha256


class Truncation(Part, frozen=True):
    """A cap that fired."""

    scope: str
    cap: str
    limit: Count
    observed: Count
    omitted: Count


class Quantization(Part, frozen=True):
    """Level n of `levels` is `min + n * (max - min) / (levels - 1)`."""

    min: float
    max: float
    levels: Annotated[int, Meta(ge=2, le=256)]


class VectorFormat(Part, frozen=True):
    """What the bytes of `dense_vectors` are; rows of another model mean nothing beside them."""

    dims: Annotated[int, Meta(ge=1)]
    model: Word
    quantization: Quantization
    normalize: Literal["l2"]  # a row times its scale has length 1, or is zeros


class ArtifactMeta(Part, frozen=True):
    """What holds one artifact's rows, and in which order they stand."""

    schema_version: Literal[1]
    artifact: str
    format: Literal["jsonl", "jsonl-sharded"]
    generated_at: Time
    compression: Literal["zstd"] | None
    order: tuple[str, ...]
    total_records: Count
    total_bytes: Count
    max_part_records: Count  # of the largest part, and so with the bytes
    max_part_bytes: Count
    target_max_records: Count
    target_max_bytes: Count
    truncated_records: Count
    dropped_records: Count
    truncations: tuple[Truncation, ...]
    parts: tuple[PartFile, ...]
    vectors: VectorFormat | UnsetType = UNSET  # of dense_vectors


class Feature(Part, frozen=True):
    enabled: bool
    reason: str | None


class Embeddings(Part, frozen=True):
    """`reason` says what is missing; `identity` binds vectors to the embedder that made them."""

    enabled: bool
    ready: bool
    pending: bool
    mode: str
    reason: str | None
    identity: str | None
    dims: Count
    missing_rate: float
    backend: str | None
    backends: dict[str, Feature]


class Provenance(Part, frozen=True):
    tool: str
    version: str
    index_format: Count
    scm_head: str | None
    config_hash: str


class IndexState(Part, frozen=True):
    """What the index knows and what it does not, and what it was made from."""

    schema_version: Literal[1]
    artifact: Literal["index_state"]
    generated_at: Time
    profile: str
    features: dict[str, Feature]
    embeddings: Embeddings
    providers: dict[str, Feature]
    provenance: Provenance
    files: Count
    languages: dict[str, int]  # files of each
    skipped: dict[str, int]  # files by reason
    records: dict[str, int]  # rows of each artifact before any was dropped


class RiskCaps(Part, frozen=True):
    """The table `[risk.caps]`, and what held for an export."""

    max_depth: Count = 4
    max_paths_per_pair: Line = 200
    max_total_flows: Line = 500
    max_call_sites_per_edge: Line = 3
    max_ms: Line | None = None


class RiskSettings(Part, frozen=True):
    """What held for an export of risk."""

    enabled: bool
    summary_only: bool
    strictness: Literal["conservative", "argAware"]
    emit_artifacts: Literal["none", "jsonl"]
    sanitizer_policy: Literal["terminate", "weaken"]
    caps: RiskCaps


class RiskCounts(Part, frozen=True):
    chunks_considered: Count = 0
    summaries_emitted: Count = 0
    source_roots: Count = 0
    resolved_edges: Count = 0
    flows_emitted: Count = 0
    call_sites_emitted: Count = 0


class RiskTimings(Part, frozen=True):
    summaries: Count
    propagation: Count
    total: Count


class RiskArtifact(Part, frozen=True):
    name: Word
    format: Literal["jsonl"]
    sharded: bool
    entrypoint: RepoPath
    total_entries: Count


class DropReason(Part, frozen=True):
    reason: Word
    count: Count


class DroppedRecords(Part, frozen=True):
    artifact: Word
    count: Count
    reasons: tuple[DropReason, ...]


class RiskStats(Part, frozen=True):
    """How the flows of an export were found, and what kept others from being there."""

    schema_version: Literal[1]
    artifact: Literal["risk_interprocedural_stats"]
    generated_at: Time
    status: Literal["ok", "disabled", "timed_out", "error"]
    reason: str | None
    effective_config: RiskSettings
    counts: RiskCounts
    caps_hit: tuple[str, ...]
    timings_ms: RiskTimings  # 0 where SOURCE_DATE_EPOCH is set
    artifacts: dict[str, RiskArtifact]
    dropped_records: tuple[DroppedRecords, ...]


STATS = "risk_interprocedural_stats"
# What `cq export --only` takes.
ARTIFACTS = (*ROWS, STATS, "index_state")
# Every kind of file in an export, for `cq schema`.
FILES: dict[str, type[msgspec.Struct]] = {
    **ROWS, STATS: RiskStats, "index_state": IndexState, "meta": ArtifactMeta, "manifest": Manifest,
}  # fmt: skip


class ExportedArtifact(msgspec.Struct, frozen=True):
    name: str
    records: int
    bytes: int
    files: int
    truncated: int = 0
    dropped: int = 0


class ExportReport(msgspec.Struct, frozen=True):
    """What an export wrote."""

    out: str
    artifacts: tuple[ExportedArtifact, ...]
    bytes: int
    schema_version: int = SCHEMA_VERSION


class Finding(msgspec.Struct, frozen=True):
    """Something that is wrong: a stable code, the place, and what is the matter there."""

    code: str
    where: str
    what: str


class LanguageHealth(msgspec.Struct, frozen=True):
    language: str
    files: int
    problem_files: int
    problems: int


class Rate(msgspec.Struct, frozen=True):
    """How references of a language were resolved. `what` is calls, imports, or all references as edges."""

    language: str
    what: str
    total: int
    resolved: int = 0
    ambiguous: int = 0
    external: int = 0
    unresolved: int = 0
    import_narrowed: int = 0  # their first name comes from an import
    capped: int = 0  # more candidates than are kept


class Validation(msgspec.Struct, frozen=True):
    """The outcome of a check. `findings` are the first of each code; `counts` says how many there are of each.

    `conflicts` are no damage: calls of which a language server or another index says something else than we do.
    """

    findings: tuple[Finding, ...]
    counts: dict[str, int]
    checked: dict[str, int]  # what was looked at, and how many of it
    strict: bool = False
    languages: tuple[LanguageHealth, ...] = ()
    kind_groups: dict[str, int] = {}
    rates: tuple[Rate, ...] = ()
    conflicts: tuple[Finding, ...] = ()
    conflict_count: int = 0
    trace: TraceReport | None = None  # a recording of running programs beside the links, where one was given
    schema_version: int = SCHEMA_VERSION

    @property
    def ok(self) -> bool:
        return not self.counts
