"""Rows that the facts of a document give: what it is, defines, calls, imports and exports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

import msgspec
from xxhash import xxh64_hexdigest

from cq.identity import (
    breadcrumb,
    chunk_uid,
    module_symbol_id,
    scoped_id,
    signature_key,
    snippet_hash,
    symbol_key,
    tool_path,
)
from cq.identity import symbol_id as symbol_id_of
from cq.language import describe
from cq.model.artifact import (
    MAX_ARG_CHARS,
    MAX_ARGS,
    MAX_ARGS_SUMMARY,
    SCHEMA_VERSION,
    CallArgument,
    CallSiteRow,
    ChunkIdentity,
    ChunkRow,
    ExportRelation,
    FileRelationsRow,
    ImportBinding,
    ImportRelation,
    Range,
    Row,
    SymbolRow,
    VirtualDocumentRow,
)
from cq.model.edge import SymbolRef
from cq.model.facts import Argument, Call
from cq.questions.export.document import Document, is_too_many
from cq.store.artifacts import ELLIPSIS

# Bindings per import and bytes per row of file_relations: far enough below the cap that every row fits.
_BINDINGS, _RELATION_BYTES = 100, 24_000
_ENCODE = msgspec.json.Encoder().encode


def make_virtual_document_rows(document: Document) -> Iterator[Row]:
    file, facts, text = document.file, document.facts, document.text
    segment = facts.segment
    ranges = segment.ranges if segment else ((0, len(text)),)
    start, end = ranges[0][0], ranges[-1][1]
    extension = PurePosixPath(file.path).suffix
    effective = describe(facts.language).suffix if segment else extension
    yield VirtualDocumentRow(
        schema_version=SCHEMA_VERSION,
        virtual_path=document.virtual_path,
        tool_path=tool_path(file.path, document.identity.segment_uid, effective),
        doc_hash=f"xxh64:{xxh64_hexdigest(segment.text(text) if segment else text)}",
        container_path=file.path,
        container_ext=extension,
        container_language_id=file.language,
        language_id=facts.language,
        effective_ext=effective,
        segment_uid=document.segment_uid,
        segment_start=start,
        segment_end=end,
        line_start=document.lines.line(start),
        line_end=document.lines.line(max(start, end - 1)),
        ranges=ranges,
    )


def make_symbol_rows(document: Document) -> Iterator[Row]:
    """Every definition, and the document itself: what a name means may be a module."""
    facts, identity, path = document.facts, document.identity, document.virtual_path
    uid = identity.chunk_uids[0]
    name = PurePosixPath(document.path).name
    yield _make_symbol(document, module_symbol_id(path, uid), uid, "module", "module", name, "", "")
    named = document.targets.find_named(document.path, document.number)
    for number, (symbol, symbol_id) in enumerate(zip(facts.symbols, identity.symbol_ids, strict=True)):
        row = _make_symbol(
            document, symbol_id, identity.chunk_uids[symbol.chunk], symbol.kind, symbol.kind_group, symbol.name,
            symbol.identity_name, symbol.signature,
        )  # fmt: skip
        yield row
        place = document.semantics.documents.find_place(document.path, document.number, number) if named else None
        if place is not None and place.name in named:
            # Another indexer knows it too: the same definition, by a second id.
            yield msgspec.structs.replace(row, symbol_id=symbol_id_of(row.scoped_id, "scip"), scheme="scip")


def _make_symbol(
    document: Document, symbol_id: str, uid: str, kind: str, group: str, name: str, qualified_name: str, signature: str
) -> SymbolRow:
    path = document.virtual_path
    return SymbolRow(
        schema_version=SCHEMA_VERSION,
        symbol_id=symbol_id,
        scoped_id=scoped_id(path, qualified_name, group, signature, uid),
        scheme="heur",
        symbol_key=symbol_key(path, qualified_name, group),
        signature_key=signature_key(qualified_name, signature),
        chunk_uid=uid,
        virtual_path=path,
        segment_uid=document.segment_uid,
        file=document.path,
        lang=document.facts.language,
        kind=kind,
        kind_group=group,  # pyright: ignore[reportArgumentType]
        name=name,
        qualified_name=qualified_name,
        signature=signature or None,
    )


def make_chunk_rows(document: Document) -> Iterator[Row]:
    facts, identity, lines = document.facts, document.identity, document.lines
    uids, language = identity.chunk_uids, facts.language if facts.segment else None
    module = module_symbol_id(identity.virtual_path, uids[0])
    for index, chunk in enumerate(facts.chunks):
        symbol = facts.symbols[chunk.symbol] if chunk.symbol >= 0 else None
        statements = dict.fromkeys((facts.imports[number].start, facts.imports[number].end) for number in chunk.imports)
        twin = chunk.collision_of and chunk_uid(identity.virtual_path, chunk.collision_of, language=language)
        start_line, start_col = lines.position(chunk.start)
        end_line, end_col = lines.position(chunk.end)
        group = symbol.kind_group if symbol else None if index else "module"
        yield ChunkRow(
            schema_version=SCHEMA_VERSION,
            chunk_uid=uids[index],
            segment_uid=document.segment_uid,
            virtual_path=identity.virtual_path,
            file=document.path,
            lang=facts.language,
            kind=chunk.kind,
            kind_group=group,  # pyright: ignore[reportArgumentType]
            name=chunk.name,
            qualified_name=symbol.qualified_name if symbol else "",
            symbol_id=identity.symbol_ids[chunk.symbol] if symbol else None if index else module,
            parent_chunk_uid=uids[chunk.parent] if chunk.parent >= 0 else None,
            child_chunk_uids=tuple([uids[child] for child in chunk.children]),
            depth=chunk.depth,
            exported=symbol.exported if symbol else False,
            modifiers=symbol.modifiers if symbol else (),
            signature=symbol.signature if symbol else "",
            doc=symbol.doc if symbol else "",
            range=Range(chunk.start, chunk.end),
            start_line=start_line,
            start_col=start_col,
            end_line=end_line,
            end_col=end_col,
            breadcrumb=breadcrumb(document.path, facts, index),
            relevant_imports=tuple([document.slice(*statement) for statement in statements]),
            identity=ChunkIdentity(1, chunk.span_hash, chunk.pre_hash, chunk.post_hash, twin or None),
            risk=None,
        )


def make_call_rows(document: Document) -> Iterator[Row]:
    path, language, uid, linked = document.path, document.facts.language, document.segment_uid, document.is_linked
    for number, call in enumerate(document.facts.calls):
        where, call_id = document.locate(call)
        ref = document.semantics.calls.find_call(path, document.number, number)
        candidates = document.find_candidates(ref)
        imported = document.semantics.meanings.find_import(path, document.number, number) is not None
        events = {"imported": imported, "capped": ref.omitted > 0, "too_many": is_too_many(ref)}
        evidence = ["syntax", *filter(None, [ref.evidence]), *(event for event, is_so in events.items() if is_so)]
        yield CallSiteRow(
            schema_version=SCHEMA_VERSION,
            call_site_id=call_id,
            caller_chunk_uid=document.chunk_of(call.scope),
            callee_chunk_uid=candidates[0].chunk_uid if ref.status == "resolved" and candidates else None,
            file=path,
            language_id=language,
            segment_uid=uid,
            start=call.start,
            end=call.end,
            start_line=where.start_line,
            start_col=where.start_col,
            end_line=where.end_line,
            end_col=where.end_col,
            kind=call.kind,
            callee_raw=call.callee,
            callee_normalized=call.name,
            receiver=call.receiver or None,
            args=tuple([CallArgument(a.kind, a.text, a.depth, a.spread, a.name or None) for a in call.args[:MAX_ARGS]]),
            arg_count=call.arg_count,
            kwargs=call.keywords,
            args_summary=_summarize(call),
            status=ref.status,  # pyright: ignore[reportArgumentType]
            confidence=ref.confidence,
            evidence=tuple(evidence),
            target_candidates=candidates if linked else None,
            snippet_hash=snippet_hash(document.slice(call.start, call.end)),
        )


def _summarize(call: Call) -> tuple[str, ...]:
    return tuple([_summarize_argument(argument) for argument in call.args[:MAX_ARGS_SUMMARY]])


def _summarize_argument(argument: Argument) -> str:
    text = f"{argument.name}={argument.text}" if argument.name else argument.text
    return text if len(text) <= MAX_ARG_CHARS else text[: MAX_ARG_CHARS - 1] + ELLIPSIS


def make_relation_rows(document: Document) -> Iterator[Row]:
    items = [*_import_relations(document), *_export_relations(document)]
    parts, room = list[list[ImportRelation | ExportRelation]](), 0
    for item in items:
        size = len(_ENCODE(item)) + 1
        if size > room:
            parts.append([])
            room = _RELATION_BYTES
        parts[-1].append(item)
        room -= size
    linked, targets = document.is_linked, document.semantics.documents.find_imports(document.path, document.number)
    for number, part in enumerate(parts):
        yield FileRelationsRow(
            schema_version=SCHEMA_VERSION,
            file=document.path,
            virtual_path=document.virtual_path,
            segment_uid=document.segment_uid,
            language_id=document.facts.language,
            part=number,
            imports=tuple([item for item in part if isinstance(item, ImportRelation)]),
            exports=tuple([item for item in part if isinstance(item, ExportRelation)]),
            import_links=_find_links(part, targets) if linked else None,
        )


def _find_links(part: list[ImportRelation | ExportRelation], targets: list[tuple[str, SymbolRef]]) -> tuple[str, ...]:
    """The files that the imports of a row lead to."""
    items = [item for item in part if isinstance(item, ImportRelation)]
    names = {binding.local for item in items for binding in item.bindings}
    names |= {"*" for item in items if item.kind == "star"}
    return tuple(sorted({place.path for name, ref in targets if name in names for place in ref.candidates}))


def _import_relations(document: Document) -> Iterator[ImportRelation]:
    """In source order; an import of very many names is said in several."""
    for item in document.facts.imports:
        bindings = [ImportBinding(b.local, b.imported, b.type_only) for b in item.bindings]
        for at in range(0, max(len(bindings), 1), _BINDINGS):
            yield ImportRelation(
                item.kind, item.module, item.level, item.type_only, document.chunk_of(item.scope), item.start, item.end,
                document.lines.line(item.start), tuple(bindings[at : at + _BINDINGS]),
            )  # fmt: skip


def _export_relations(document: Document) -> Iterator[ExportRelation]:
    for item in document.facts.exports:
        yield ExportRelation(
            item.name, item.exported, item.module or None, item.type_only, item.start, item.end,
            document.lines.line(item.start),
        )  # fmt: skip
