"""The bundle as an answer: its sections in their fixed order, what stands out, and what to ask next."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from cq.answers.page import count_tokens
from cq.answers.words import cut_signature
from cq.model.answer import (
    EVIDENCE,
    SCHEMA_VERSION,
    Answer,
    Budget,
    Confidence,
    Degradation,
    Finding,
    GraphEdge,
    Insight,
    Run,
    Section,
    Slice,
    Target,
    bucket,
)
from cq.model.facts import KIND_GROUPS
from cq.model.location import Location
from cq.model.neighborhood import SECTION_ORDER, SLICE_KINDS, Bundle, BundleEdge, NeighborhoodSlice, Node
from cq.model.status import Degraded
from cq.questions.neighborhood.bundle import COMMAND, Neighborhood, NeighborhoodOptions, find_sources
from cq.snapshot.target import CHOSEN, last_name

if TYPE_CHECKING:
    from cq.snapshot.files import Files

MARKERS = {"error": "❌", "warning": "⚠️", "info": "ⓘ"}
_OPEN = frozenset({"target_tldr", "neighborhood_summary", "suggested_followups"})
_ASIDE = frozenset({"neighborhood_summary", "suggested_followups", "provenance"})
_MANY = 10  # a relation with more is worth a question of its own
_CALLABLE = frozenset({"function", "method", "class", "constructor", "struct", "macro", "component"})
_UNDRAWN = frozenset({"parents", "siblings", "references", "imports", "importers", "lsp_deep_signals"})
_PREVIEW = 5
_UNTESTED = "no test is known to reach it"  # calls that nobody can follow may


def lay_out(files: Files, options: NeighborhoodOptions, found: Neighborhood) -> Answer:
    bundle = found.bundle
    run = Run(generation=files.generation)
    summary = {
        "query": options.target,
        "resolution_kind": bundle.meta.resolution_kind,
        "bundle_id": bundle.bundle_id,
        "top_k": options.top_k,
    }
    if bundle.subject is None:
        name = last_name(options.target)
        near = tuple(other for other in files.near_names(name) if other != name) if name else ()
        return Answer(
            SCHEMA_VERSION, COMMAND, run, summary, degraded=bundle.diagnostics, suggestions=near, bundle=bundle,
            sections=tuple(_arrange(options, _Layout(options, found).make())),
        )  # fmt: skip
    layout = _Layout(options, found)
    sections = tuple(_arrange(options, layout.make()))
    drawn = tuple(_draw(bundle))
    lean = options.page.measure == "json"
    if lean:  # what follows from the bundle is not said twice
        sections, drawn = tuple(map(_strip, sections)), ()
    shown = sum(len(part.preview) for part in bundle.slices)
    total = sum(part.total for part in bundle.slices)
    used = count_tokens(sections, options.page.measure) + 100
    if lean:
        used += len(msgspec.json.encode(bundle)) // 4 + 600
    score = min((edge.weight for part in bundle.slices for edge in part.edges), default=EVIDENCE["syntax"])
    evidence = "resolved" if score > EVIDENCE["heuristic"] else "heuristic"
    insight = Insight(
        _make_target(bundle, bundle.subject),
        {
            part.kind: Slice(
                part.total,
                part.title.lower(),
                () if lean else tuple(n.qualname or n.name for n in part.preview[:_PREVIEW]),
            )
            for part in bundle.slices
            if part.total
        },
        confidence=Confidence(evidence, score, bucket(score)),
        degradation=Degradation(lsp=_lsp_state(options, bundle)),
        budget=Budget(options.page.budget, used, shown, total, preview_per_slice=options.top_k),
    )
    return Answer(
        SCHEMA_VERSION,
        COMMAND,
        run,
        summary | {"nodes": bundle.graph.node_count, "edges": bundle.graph.edge_count},
        found=1,
        insight=insight,
        key_findings=tuple(layout.find_key_findings()),
        sections=sections,
        degraded=bundle.diagnostics,
        truncated=found.truncated,
        edges=drawn,
        bundle=bundle,
    )


def _strip(section: Section) -> Section:
    """Without the nodes of a slice, which the bundle has."""
    return msgspec.structs.replace(section, findings=()) if section.kind in SLICE_KINDS else section


def _arrange(options: NeighborhoodOptions, sections: dict[str, Section]) -> Iterator[Section]:
    for kind in dict.fromkeys((*options.order, *SECTION_ORDER)):
        if kind in sections:
            yield sections[kind]


class _Layout:
    def __init__(self, options: NeighborhoodOptions, found: Neighborhood) -> None:
        self.options = options
        self.found = found
        self.bundle = found.bundle
        self.slices = {part.kind: part for part in found.bundle.slices}

    def make(self) -> dict[str, Section]:
        """Every slot, also those that hold nothing."""
        rows: dict[str, tuple[str, list[Finding]]] = {
            "target_tldr": ("Target", list(self._tell_target())),
            "neighborhood_summary": ("Neighborhood", list(self._tell_summary())),
            "diagnostics": ("Diagnostics", [_tell_event(event) for event in self.bundle.diagnostics]),
            "suggested_followups": ("Suggested Follow-ups", list(self._follow_up())),
            "provenance": ("Provenance", list(self._tell_provenance())),
        }
        made = {
            kind: Section(
                title,
                kind,
                len(findings) if kind == "diagnostics" else 0,
                tuple(findings),
                kind not in _OPEN,
                aside=kind in _ASIDE,
            )
            for kind, (title, findings) in rows.items()
        }
        return made | {part.kind: self._make_section(part) for part in self.bundle.slices}

    def _make_section(self, part: NeighborhoodSlice) -> Section:
        edges: dict[str, BundleEdge] = {}
        for edge in part.edges:
            for end in (edge.source_node_id, edge.target_node_id):
                edges.setdefault(end, edge)
        # What words are to a server is for programs; people read the text.
        nodes = [node for node in part.preview if node.kind != "token"]
        rows = tuple(_tell_family(part, family, edges) for family in _find_families(part, nodes, edges))
        notes: list[str] = []
        if tokens := part.metadata.get("tokens"):
            notes.append("words: " + ", ".join(f"{count} {kind}" for kind, count in tokens.items()))
        pointer = next((p for p in self.bundle.artifacts if p.metadata.get("slice") == part.kind), None)
        if pointer is not None:
            where = [word for word in self.options.place if word != "--no-refresh"]
            notes.append(" ".join((f"the rest: cq artifact get {pointer.artifact_id}", *where)))
        if outside := part.metadata.get("external"):
            notes.append(f"from outside: {', '.join(outside[:8])}")
        total = part.total - len(nodes) + len(rows)  # what shares a line is counted once
        return Section(part.title, part.kind, total, rows, part.collapsed, "; ".join(notes))

    def find_key_findings(self) -> Iterator[Finding]:
        """What a reader wants to know first, in one line each."""
        for kind, what in (("callers", "called by"), ("callees", "calls"), ("references", "used at")):
            part = self.slices.get(kind)
            if part is not None and part.total:
                unit = "place" if kind == "references" else "definition"
                possible = part.metadata.get("possible", 0)
                doubt = f", {possible} of them only possibly" if possible else ""
                files = f" in {_count(part.metadata['files'], 'file')}" if "files" in part.metadata else ""
                yield Finding(kind, f"{what} {_count(part.total, unit)}{files}{doubt}", count=part.total)
        for kind, what in (
            ("type_supertypes", "above it"), ("type_subtypes", "below it"), ("implementations", "that implement it"),
        ):  # fmt: skip
            part = self.slices.get(kind)
            if part is not None and part.total:
                yield Finding(
                    kind, f"{_count(part.total, 'type or method', 'types or methods')} {what}", count=part.total
                )
        tests = self.slices.get("tests")
        if tests is not None and self.bundle.subject is not None and self.bundle.subject.kind in _CALLABLE:
            text = f"{_count(tests.total, 'test reaches', 'tests reach')} it" if tests.total else _UNTESTED
            yield Finding("tests", text, count=tests.total)
        if any(edge.edge_kind == "ffi" for part in self.bundle.slices for edge in part.edges):
            yield Finding("ffi", "another language stands on the other side")
        callees, subject = self.slices.get("callees"), self.bundle.subject
        is_type = subject is not None and KIND_GROUPS.get(subject.kind) in ("class", "type")  # makes its like
        if callees is not None and callees.metadata.get("recursive") and not is_type:
            yield Finding("callees", "it calls itself")

    def _tell_target(self) -> Iterator[Finding]:
        subject, meta = self.bundle.subject, self.bundle.meta
        if subject is None:
            yield Finding("target", f"{self.options.target}: {meta.resolution_kind}")
            return
        of = f" (1 of {meta.of})" if meta.of > 1 else ""
        yield Finding("symbol", f"{subject.kind} {subject.qualname or subject.name}{of}", locate(subject))
        yield Finding("signature", subject.signature)
        for number, node in enumerate(meta.others, 2):
            yield Finding("other", f"{number} of {meta.of}: {node.kind} {node.qualname}", locate(node))

    def _tell_summary(self) -> Iterator[Finding]:
        graph = self.bundle.graph
        yield Finding("graph", f"{_count(graph.node_count, 'node')}, {_count(graph.edge_count, 'edge')}")
        counts = [f"{part.title.lower()} {part.total}" for part in self.bundle.slices if part.total]
        if counts:
            yield Finding("slices", ", ".join(counts))
        events = Counter(event.severity for event in self.bundle.diagnostics)
        if events:
            told = ", ".join(_count(events[name], name) for name in MARKERS if events[name])
            yield Finding("diagnostics", f"diagnostics: {told}")

    def _follow_up(self) -> Iterator[Finding]:
        """Commands that can be pasted."""
        subject = self.bundle.subject
        if subject is None:
            return
        target = shlex.quote(subject.node_id)
        asked = {kind: part.total for kind, part in self.slices.items()}
        commands = [f"cq read {target}"] if subject.kind != "module" else [f"cq read {shlex.quote(subject.file_path)}"]
        if subject.kind in _CALLABLE and asked.get("callers"):
            commands.append(f"cq calls {target}")
            commands.append(f"cq impact {target}")
        if asked.get("type_subtypes", 0) + asked.get("type_supertypes", 0) > 1 and subject.kind in (
            "class",
            "interface",
        ):
            commands.append(f"cq types {target}")
        for kind in ("callers", "callees"):
            part = self.slices.get(kind)
            if part is not None and 0 < part.total <= _MANY and self.options.find_depth(kind) == 1:
                commands.append(f"cq neighborhood {target} --expand '{kind}(depth=2)'")
        holder = self.slices.get("enclosing_context")
        if holder is not None and holder.preview and holder.preview[0].kind != "module":
            commands.append(f"cq neighborhood {shlex.quote(holder.preview[0].node_id)}")
        for command in commands:
            yield Finding("follow_up", " ".join((command, *self.options.place)))

    def _tell_provenance(self) -> Iterator[Finding]:
        meta, bundle = self.bundle.meta, self.bundle
        yield Finding("bundle", f"{bundle.bundle_id}, schema {bundle.schema_version}, cq {meta.tool_version}")
        sources = list(find_sources(bundle.slices))
        if sources:
            yield Finding("evidence", f"evidence: {', '.join(sources)}")
        for server in meta.lsp_servers:
            yield Finding(
                "lsp", f"{server.get('provider')}: {server.get('state')} for {', '.join(server.get('planes', ()))}"
            )


def _find_families(part: NeighborhoodSlice, nodes: list[Node], edges: dict[str, BundleEdge]) -> list[list[Node]]:
    """Nodes in their order, those together of which the same calls may run any."""
    found: dict[tuple[object, ...], list[Node]] = {}
    for node in nodes:
        metadata = edges[node.node_id].metadata if node.node_id in edges else {}
        is_one_of = part.kind == "callees" and metadata.get("status") == "possible"
        key = (node.name, *metadata.get("sites", ())) if is_one_of else (node.node_id,)
        found.setdefault(key, []).append(node)
    return list(found.values())


def _tell_family(part: NeighborhoodSlice, family: list[Node], edges: dict[str, BundleEdge]) -> Finding:
    told = _tell_node(part, family[0], edges.get(family[0].node_id))
    others = ", ".join(f"{node.qualname or node.name} {node.file_path}:{node.line}" for node in family[1:])
    return msgspec.structs.replace(told, message=f"{told.message}, or {others}") if others else told


def _tell_node(part: NeighborhoodSlice, node: Node, edge: BundleEdge | None) -> Finding:
    metadata = edge.metadata if edge is not None else {}
    words: list[str] = []
    if metadata.get("status"):
        words.append(metadata["status"])
    if metadata.get("depth", 1) > 1 and edge is not None:
        words.append(f"step {metadata['depth']}")
    if metadata.get("cycle"):
        words.append("in a cycle")
    if edge is not None and edge.edge_kind == "ffi":
        words.append(edge.evidence_source)
    if sites := metadata.get("sites"):
        count = metadata.get("site_count", len(sites))
        here = sites[0].startswith(f"{node.file_path}:")
        words.append(
            (f"in line {sites[0].removeprefix(f'{node.file_path}:')}" if here else f"at {sites[0]}")
            + (f" and {count - 1} more" if count > 1 else "")
        )
    if metadata.get("note"):
        words.append(str(metadata["note"]))
    if part.kind in ("references", "importers", "imports") and node.display_label:
        words.append(node.display_label)
    said = f" ({', '.join(words)})" if words else ""
    return Finding(part.kind, f"{cut_signature(node.signature)}{said}", locate(node), stable_id=node.node_id)


def _tell_event(event: Degraded) -> Finding:
    text = f"{MARKERS.get(event.severity, '•')} {event.stage} ({event.category})"
    return Finding(event.severity, f"{text}: {event.message}" if event.message else text)


def locate(node: Node) -> Location:
    """Of its first line; where a node ends is in its span."""
    start, end = node.byte_span or (0, 0)
    return Location(node.file_path, start, end, node.line, node.col, node.line, node.col + len(node.name))


def _make_target(bundle: Bundle, subject: Node) -> Target:
    meta = bundle.meta
    reason = "the only one that fits" if meta.of == 1 else CHOSEN
    name = subject.qualname or subject.name
    return Target(name, subject.kind, locate(subject), subject.signature, reason, meta.index, meta.of)


def _lsp_state(options: NeighborhoodOptions, bundle: Bundle) -> str:
    if options.lsp is False or not bundle.meta.lsp_servers:
        return "skipped"
    return "ok" if all(server.get("state") == "ok" for server in bundle.meta.lsp_servers) else "partial"


def _draw(bundle: Bundle) -> Iterator[GraphEdge]:
    """The arrows of a picture: links between definitions, never the mere company of siblings."""
    for part in bundle.slices:
        if part.kind not in _UNDRAWN:
            for edge in part.edges:
                status = edge.metadata.get("status", "resolved")
                yield GraphEdge(edge.source_node_id, edge.target_node_id, edge.edge_kind, edge.weight, status)


def _count(number: int, what: str, plural: str = "") -> str:
    return f"{number:,} {what if number == 1 else plural or what + 's'}"
