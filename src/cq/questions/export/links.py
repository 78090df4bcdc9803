"""Rows that the graph gives: where a document refers to definitions, what each of its own refers to, and the graphs."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from cq.identity import module_symbol_id
from cq.languages.linking import find_dialect
from cq.model.artifact import (
    SCHEMA_VERSION,
    EdgeEvidence,
    GraphEdge,
    GraphRow,
    Range,
    Row,
    SymbolEdgeRow,
    SymbolOccurrenceRow,
)
from cq.model.edge import Edge
from cq.questions.export.document import Document

# What calls are called among edges, and in which graph edges stand. A kind that is not here is a usage.
_CALLS = ("calls", "instantiates", "decorates")
_GRAPHS = {**dict.fromkeys(_CALLS, "calls"), "imports": "imports", "inherits": "inherits", "overrides": "inherits"}
_KIND_HINTS = {
    "instantiates": "class", "inherits": "class", "raises": "class", "overrides": "method", "type_uses": "type",
}  # fmt: skip
_ROW_EDGES = 60  # edges of one row of graph_relations: far enough below the cap that every row fits


def make_occurrence_rows(document: Document) -> Iterator[Row]:
    facts, semantics, at = document.facts, document.semantics, (document.path, document.number)
    if not document.is_linked:
        return
    called: set[int] = set()
    for number, call in enumerate(facts.calls):
        ref = semantics.calls.find_call(*at, number)
        start, end = call.start, call.end
        if call.name_start >= 0:
            start, end = call.name_start, call.name_start + len(call.name.encode())
            called.add(start)
        role = call.kind if call.kind == "decorator" else "call"
        yield SymbolOccurrenceRow(
            schema_version=SCHEMA_VERSION,
            from_chunk_uid=document.chunk_of(call.scope),
            from_file=document.path,
            from_virtual_path=document.virtual_path,
            language_id=facts.language,
            occurrence_kind="call",
            role=role,
            target_name=call.name,
            range=Range(start, end),
            call_site_id=document.locate(call)[1],
            ref=document.refer(ref, call.name, None, document.hint(number, ref)),
        )
    own = find_dialect(facts.language)
    for reference, scope, ref in semantics.meanings.find_names(*at, facts, unknown=True):
        if reference.start in called:
            continue
        if ref.status == "unresolved" and reference.name in own.builtins:
            ref = msgspec.structs.replace(ref, status="external", module=f"{own.core}.{reference.name}")
        meaning = document.refer(ref, reference.name, None, document.hint(-1, ref))
        # A name that means a parameter or a local refers to no definition.
        if meaning.candidates or not ref.candidates:
            yield SymbolOccurrenceRow(
                schema_version=SCHEMA_VERSION,
                from_chunk_uid=document.chunk_of(scope),
                from_file=document.path,
                from_virtual_path=document.virtual_path,
                language_id=facts.language,
                occurrence_kind="usage",
                role=reference.role,
                target_name=reference.name,
                range=Range(reference.start, reference.end),
                call_site_id=None,
                ref=meaning,
            )


def make_edge_rows(document: Document) -> Iterator[Row]:
    for number, (edge, count) in enumerate(_find_edges(document)):
        ref, source = edge.ref, document.targets.find(edge.source)
        hint = document.hint(edge.call, ref)
        targets = [document.targets.find(place) for place in ref.candidates] if hint else []
        yield SymbolEdgeRow(
            schema_version=SCHEMA_VERSION,
            file=document.path,
            virtual_path=document.virtual_path,
            language_id=document.facts.language,
            number=number,
            edge_kind="call" if edge.kind in _CALLS else "usage",
            kind=edge.kind,
            from_chunk_uid=source.candidate.chunk_uid if source else document.chunk_of(-1),
            from_symbol_id=source.candidate.symbol_id if source else None,
            to=document.refer(ref, ref.name, _KIND_HINTS.get(edge.kind), hint),
            occurrences=count,
            confidence=ref.confidence,
            evidence=EdgeEvidence(
                ref.evidence, hint is not None, any(target.exported for target in targets if target),
                ref.evidence == "name",
            ),
        )  # fmt: skip


def _find_edges(document: Document) -> list[tuple[Edge, int]]:
    """Every edge once, at its first place, with how often it is there."""
    found: dict[object, tuple[Edge, int]] = {}
    for edge in document.semantics.referrers.find_all(document.path, document.number):
        key = (edge.kind, edge.source, edge.ref)
        first, count = found.get(key, (edge, 0))
        found[key] = first, count + 1
    return list(found.values())


def make_graph_rows(document: Document) -> Iterator[Row]:
    nodes: dict[tuple[str, str], dict[tuple[str, str], GraphEdge]] = {}
    identity, chunks = document.identity, document.facts.chunks
    for edge in document.semantics.referrers.find_all(document.path, document.number):
        source, place = document.targets.find(edge.source), edge.ref.resolved
        target = document.targets.find(place) if place else None
        if source is None or target is None:
            continue
        graph = _GRAPHS.get(edge.kind, "usages")
        out = nodes.setdefault((graph, source.candidate.chunk_uid), {})
        key = target.candidate.chunk_uid, edge.kind
        known = out.get(key)
        best, count = (known.confidence, known.occurrences) if known else (0.0, 0)
        out[key] = GraphEdge(*key, max(best, edge.ref.confidence), count + 1)
    module = module_symbol_id(document.virtual_path, document.chunk_of(-1))
    numbers = {uid: chunk.symbol for uid, chunk in zip(identity.chunk_uids, chunks, strict=True)}
    for (graph, uid), out in nodes.items():
        symbol = numbers[uid]
        edges = [out[key] for key in sorted(out)]
        for part in range(0, len(edges), _ROW_EDGES):
            yield GraphRow(
                schema_version=SCHEMA_VERSION,
                version=2,
                file=document.path,
                graph=graph,  # pyright: ignore[reportArgumentType]
                id=uid,
                part=part // _ROW_EDGES,
                # Of a statement that no definition holds: a function without a name may stand in it.
                symbol_id=identity.symbol_ids[symbol] if symbol >= 0 else module,
                out=tuple(edges[part : part + _ROW_EDGES]),
            )
