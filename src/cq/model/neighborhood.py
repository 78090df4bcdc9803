"""The neighborhood of one symbol as a document, schema `cq.snb.v1`: what stands around it, by kind of relation.

A node's id is a TARGET: `path:name` of a definition, `path:line:col` of a use, `path` of a module; behind it stands the
kind of what is none of these: `path:line:col:import`. Nothing here
depends on a clock or a machine: the same tree gives the same bytes.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import msgspec

from cq.model.status import Degraded

SCHEMA = "cq.snb.v1"

SliceKind = Literal[
    "enclosing_context", "parents", "children", "siblings", "callers", "callees", "references", "implementations",
    "type_supertypes", "type_subtypes", "imports", "importers", "related", "tests", "lsp_deep_signals",
]  # fmt: skip
SLICE_KINDS: tuple[SliceKind, ...] = get_args(SliceKind)

# The slots of the layout, in their order. `importers`, `related` and `tests` come behind the seventeen's slices.
Section = Literal[
    "target_tldr", "neighborhood_summary", "enclosing_context", "parents", "children", "siblings", "callers", "callees",
    "references", "implementations", "type_supertypes", "type_subtypes", "imports", "lsp_deep_signals", "importers",
    "related", "tests", "diagnostics", "suggested_followups", "provenance",
]  # fmt: skip
SECTION_ORDER: tuple[Section, ...] = get_args(Section)

ResolutionKind = Literal[
    "anchor", "file_symbol", "symbol_fallback", "file_anchor_unresolved", "unresolved", "invalid"
]  # fmt: skip


class Node(msgspec.Struct, frozen=True, omit_defaults=True):
    """`signature` of a mention is the line it stands on. `line` and `col` count from 1."""

    node_id: str
    kind: str
    name: str
    display_label: str = ""
    file_path: str = ""
    line: int = 0
    col: int = 0
    byte_span: tuple[int, int] | None = None
    signature: str = ""
    qualname: str = ""


class BundleEdge(msgspec.Struct, frozen=True, omit_defaults=True):
    """`source` refers to `target`, whichever of them the neighborhood is about. `metadata` holds `status`, `sites`,
    `depth` beyond 1, `cycle` where the way comes back, `confirmed_by` for every further source that says the same."""

    edge_id: str
    source_node_id: str
    target_node_id: str
    edge_kind: str
    weight: float = 1.0
    evidence_source: str = ""
    metadata: dict[str, Any] = {}


class NeighborhoodSlice(msgspec.Struct, frozen=True, omit_defaults=True):
    """`total` counts all members, `preview` shows the first of them; the rest is in the artifact of that kind."""

    kind: SliceKind
    title: str
    total: int = 0
    preview: tuple[Node, ...] = ()
    edges: tuple[BundleEdge, ...] = ()
    collapsed: bool = True
    metadata: dict[str, Any] = {}


class GraphSummary(msgspec.Struct, frozen=True):
    """Distinct nodes and edges of all slices, those of artifacts included."""

    node_count: int = 0
    edge_count: int = 0


class ArtifactPointer(msgspec.Struct, frozen=True, omit_defaults=True):
    """`cq artifact get ID` prints it; `deterministic_id` is the sha256 of its content, `storage_path` is where it
    lies, where that is not the id."""

    artifact_kind: str
    artifact_id: str
    deterministic_id: str
    byte_size: int = 0
    storage_path: str = ""
    metadata: dict[str, Any] = {}


class BundleMeta(msgspec.Struct, frozen=True, omit_defaults=True):
    """How it was made. `lsp_servers` are those that were asked, with what they answered, their position encoding, and
    as far as they say it their health and whether they have read everything (`quiescent`)."""

    tool: str = "cq"
    tool_version: str = ""
    query_text: str = ""
    resolution_kind: ResolutionKind = "unresolved"
    index: int = 1  # the chosen definition is number `index` of `of` that fit
    of: int = 1
    others: tuple[Node, ...] = ()
    limits: dict[str, int] = {}
    lsp_servers: tuple[dict[str, Any], ...] = ()


class Bundle(msgspec.Struct, frozen=True):
    """Slices come in the order of SLICE_KINDS; `bundle_id` is made of the target, the options and all that was found,
    whatever of it is shown. `node_index` has the nodes that edges lead to and no slice shows."""

    bundle_id: str
    subject: Node | None = None
    subject_label: str = ""
    meta: BundleMeta = BundleMeta()
    slices: tuple[NeighborhoodSlice, ...] = ()
    graph: GraphSummary = GraphSummary()
    node_index: dict[str, Node] = {}
    artifacts: tuple[ArtifactPointer, ...] = ()
    diagnostics: tuple[Degraded, ...] = ()
    schema_version: Literal["cq.snb.v1"] = SCHEMA


class BundleRef(msgspec.Struct, frozen=True):
    """A bundle that lies elsewhere."""

    bundle_id: str
    artifact_id: str = ""
    subject_label: str = ""


KINDS: dict[str, type[msgspec.Struct]] = {
    "cq.snb.bundle_ref.v1": BundleRef,
    "cq.snb.bundle.v1": Bundle,
    "cq.snb.node.v1": Node,
    "cq.snb.edge.v1": BundleEdge,
    "cq.snb.slice.v1": NeighborhoodSlice,
    "cq.snb.degrade.v1": Degraded,
    "cq.snb.bundle_meta.v1": BundleMeta,
    "cq.snb.graph_summary.v1": GraphSummary,
    "cq.snb.artifact.v1": ArtifactPointer,
}


def decode_kind(value: dict[str, Any]) -> msgspec.Struct | None:
    """A value of JSON as the struct that its `kind` or `schema` names; None where it is none of these."""
    kind = value.get("schema") or value.get("kind")
    found = KINDS.get(kind) if isinstance(kind, str) else None
    if found is None:
        return None
    try:
        return msgspec.convert({key: item for key, item in value.items() if key != "schema"}, found)
    except msgspec.ValidationError:
        return None
