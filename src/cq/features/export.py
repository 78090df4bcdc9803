"""The index as artifacts: what other programs read. One pass over the files in path order, one file in memory."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import msgspec
from xxhash import xxh64_hexdigest

from cq.identity import (
    Identity,
    breadcrumb,
    call_site_id,
    chunk_uid,
    identify,
    scoped_id,
    signature_key,
    snippet_hash,
    symbol_key,
    tool_path,
)
from cq.model.artifact import (
    ARTIFACTS,
    MAX_ARG_CHARS,
    MAX_ARGS,
    MAX_ARGS_SUMMARY,
    ROWS,
    SCHEMA_VERSION,
    CallArgument,
    CallSiteRow,
    ChunkIdentity,
    ChunkRow,
    Embeddings,
    ExportedArtifact,
    ExportRelation,
    ExportReport,
    Feature,
    FileRelationsRow,
    ImportBinding,
    ImportRelation,
    IndexState,
    Piece,
    Provenance,
    Range,
    Row,
    SymbolRow,
    VirtualDocumentRow,
)
from cq.model.errors import UsageError
from cq.model.facts import Argument, Call, FileFacts
from cq.model.location import LineTable
from cq.source.git import find_common_dir
from cq.source.language import EXTENSIONS
from cq.store.artifacts import ELLIPSIS, ArtifactWriter, Caps, replace_export, write_json, write_manifest
from cq.store.database import SCHEMA
from cq.store.read import Reader, StoredFile, Tree

# A call that the syntax shows is one; whom it calls is for the graph to say.
_SYNTAX_CONFIDENCE, _SYNTAX_EVIDENCE = 0.85, ("syntax",)
# Bindings per import and bytes per row of file_relations: far enough below the cap that every row fits.
_BINDINGS, _RELATION_BYTES = 100, 24_000
_NOT_YET = "not in this version"
_ENCODE = msgspec.json.Encoder().encode


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
) -> ExportReport:
    """Writes the tree's artifacts to the directory `out`, which appears or is replaced at the end. Call it inside
    `with reader:`, so that all of it is of one generation. `version` is ours. UsageError when `out` holds anything
    but an export."""
    names = select_artifacts(only)
    if compress not in (None, "zstd"):
        raise UsageError(f"unknown compression {compress!r}", hint="zstd is the one there is")
    generated_at = generated_at or _now()
    out = Path(out)
    with replace_export(out, ignored=out.resolve().is_relative_to(tree.root)) as folder:
        writers = {
            name: ArtifactWriter(folder, kind, caps or Caps(), compress) for name, kind in ROWS.items() if name in names
        }
        try:
            languages = _write_rows(reader, tree, writers)
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
        if "index_state" in names:
            records = {name: writer.records for name, writer in writers.items()}
            state = _describe_state(reader, tree, languages, records, version, generated_at)
            piece = write_json(folder, "index_state.json", state, "index_state", "state")
            pieces.append(piece)
            done.append(ExportedArtifact("index_state", 1, piece.bytes, 1))
        write_manifest(folder, pieces, generated_at)
    return ExportReport(os.fspath(out), tuple(done), sum(piece.bytes for piece in pieces))


def select_artifacts(only: Sequence[str]) -> frozenset[str]:
    """All of them for none; UsageError with the nearest name for one that does not exist."""
    for name in only:
        if name not in ARTIFACTS:
            close = get_close_matches(name, ARTIFACTS, n=1)
            hint = (f"did you mean {close[0]!r}? " if close else "") + f"there are {', '.join(ARTIFACTS)}"
            raise UsageError(f"unknown artifact {name!r}", hint=hint)
    return frozenset(only or ARTIFACTS)


def _now() -> str:
    """SOURCE_DATE_EPOCH, where it is set, makes two exports equal to the last byte."""
    moment = time.time()
    with suppress(ValueError):
        moment = int(os.environ.get("SOURCE_DATE_EPOCH", ""))
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment))


def _write_rows(reader: Reader, tree: Tree, writers: dict[str, ArtifactWriter]) -> Counter[str]:
    languages: Counter[str] = Counter()
    for file in reader.files(tree.id):
        languages[file.language] += 1
        if not writers:
            continue
        documents = _load_documents(reader, file)
        for name, writer in writers.items():
            rows = [row for document in documents for row in _MAKERS[name](document)]
            rows.sort(key=_key)
            for row in rows:
                writer.add(row)
    return languages


def _key(row: Row) -> tuple[object, ...]:
    return row.key()


class _Document(NamedTuple):
    """The file itself or a document embedded in it, with its names."""

    file: StoredFile
    text: bytes
    lines: LineTable
    facts: FileFacts
    identity: Identity

    @property
    def segment_uid(self) -> str | None:
        return self.identity.segment_uid or None

    def chunk_of(self, scope: int) -> str:
        """Whose code stands in a scope; root-level code is the module's."""
        return self.identity.chunk_uids[self.facts.symbols[scope].chunk if scope >= 0 else 0]

    def slice(self, start: int, end: int) -> str:
        return self.text[start:end].decode("utf-8", "replace")


def _load_documents(reader: Reader, file: StoredFile) -> list[_Document]:
    text, facts = reader.text(file.content), reader.facts(file.content)
    lines, found = LineTable(text), list[_Document]()
    todo = [(facts, identify(file.path, text, facts))]
    while todo:
        document, identity = todo.pop()
        found.append(_Document(file, text, lines, document, identity))
        todo += zip(document.embedded, identity.embedded, strict=True)
    return found


def _virtual_document_rows(document: _Document) -> Iterator[Row]:
    file, facts, text = document.file, document.facts, document.text
    segment = facts.segment
    ranges = segment.ranges if segment else ((0, len(text)),)
    start, end = ranges[0][0], ranges[-1][1]
    extension = PurePosixPath(file.path).suffix
    effective = EXTENSIONS.get(facts.language, "") if segment else extension
    yield VirtualDocumentRow(
        schema_version=SCHEMA_VERSION,
        virtual_path=document.identity.virtual_path,
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


def _symbol_rows(document: _Document) -> Iterator[Row]:
    identity, file, path = document.identity, document.file, document.identity.virtual_path
    for symbol, symbol_id in zip(document.facts.symbols, identity.symbol_ids, strict=True):
        uid, group = identity.chunk_uids[symbol.chunk], symbol.kind_group
        yield SymbolRow(
            schema_version=SCHEMA_VERSION,
            symbol_id=symbol_id,
            scoped_id=scoped_id(path, symbol.qualified_name, group, symbol.signature, uid),
            scheme="heur",
            symbol_key=symbol_key(path, symbol.qualified_name, group),
            signature_key=signature_key(symbol.qualified_name, symbol.signature),
            chunk_uid=uid,
            virtual_path=path,
            segment_uid=document.segment_uid,
            file=file.path,
            lang=document.facts.language,
            kind=symbol.kind,
            kind_group=group,  # pyright: ignore[reportArgumentType]
            name=symbol.name,
            qualified_name=symbol.qualified_name,
            signature=symbol.signature or None,
        )


def _chunk_rows(document: _Document) -> Iterator[Row]:
    facts, identity, lines = document.facts, document.identity, document.lines
    uids, language = identity.chunk_uids, facts.language if facts.segment else None
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
            file=document.file.path,
            lang=facts.language,
            kind=chunk.kind,
            kind_group=group,  # pyright: ignore[reportArgumentType]
            name=chunk.name,
            qualified_name=symbol.qualified_name if symbol else "",
            symbol_id=identity.symbol_ids[chunk.symbol] if symbol else None,
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
            breadcrumb=breadcrumb(document.file.path, facts, index),
            relevant_imports=tuple([document.slice(*statement) for statement in statements]),
            identity=ChunkIdentity(1, chunk.span_hash, chunk.pre_hash, chunk.post_hash, twin or None),
            risk=None,
        )


def _call_rows(document: _Document) -> Iterator[Row]:
    path, language, uid = document.file.path, document.facts.language, document.segment_uid
    for call in document.facts.calls:
        where = document.lines.location(path, call.start, call.end)
        yield CallSiteRow(
            schema_version=SCHEMA_VERSION,
            call_site_id=call_site_id(where, call.callee),
            caller_chunk_uid=document.chunk_of(call.scope),
            callee_chunk_uid=None,
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
            confidence=_SYNTAX_CONFIDENCE,
            evidence=_SYNTAX_EVIDENCE,
            target_candidates=None,
            snippet_hash=snippet_hash(document.slice(call.start, call.end)),
        )


def _summarize(call: Call) -> tuple[str, ...]:
    return tuple([_summarize_argument(argument) for argument in call.args[:MAX_ARGS_SUMMARY]])


def _summarize_argument(argument: Argument) -> str:
    text = f"{argument.name}={argument.text}" if argument.name else argument.text
    return text if len(text) <= MAX_ARG_CHARS else text[: MAX_ARG_CHARS - 1] + ELLIPSIS


def _relation_rows(document: _Document) -> Iterator[Row]:
    items = [*_import_relations(document), *_export_relations(document)]
    parts, room = list[list[ImportRelation | ExportRelation]](), 0
    for item in items:
        size = len(_ENCODE(item)) + 1
        if size > room:
            parts.append([])
            room = _RELATION_BYTES
        parts[-1].append(item)
        room -= size
    for number, part in enumerate(parts):
        yield FileRelationsRow(
            schema_version=SCHEMA_VERSION,
            file=document.file.path,
            virtual_path=document.identity.virtual_path,
            segment_uid=document.segment_uid,
            language_id=document.facts.language,
            part=number,
            imports=tuple([item for item in part if isinstance(item, ImportRelation)]),
            exports=tuple([item for item in part if isinstance(item, ExportRelation)]),
            import_links=None,
        )


def _import_relations(document: _Document) -> Iterator[ImportRelation]:
    """In source order; an import of very many names is said in several."""
    for item in document.facts.imports:
        bindings = [ImportBinding(b.local, b.imported, b.type_only) for b in item.bindings]
        for at in range(0, max(len(bindings), 1), _BINDINGS):
            yield ImportRelation(
                item.kind, item.module, item.level, item.type_only, document.chunk_of(item.scope), item.start, item.end,
                document.lines.line(item.start), tuple(bindings[at : at + _BINDINGS]),
            )  # fmt: skip


def _export_relations(document: _Document) -> Iterator[ExportRelation]:
    for item in document.facts.exports:
        yield ExportRelation(
            item.name, item.exported, item.module or None, item.type_only, item.start, item.end,
            document.lines.line(item.start),
        )  # fmt: skip


_MAKERS: dict[str, Callable[[_Document], Iterator[Row]]] = {
    "vfs_manifest": _virtual_document_rows, "symbols": _symbol_rows, "chunks": _chunk_rows, "call_sites": _call_rows,
    "file_relations": _relation_rows,
}  # fmt: skip


def _describe_state(
    reader: Reader, tree: Tree, languages: Counter[str], records: dict[str, int], version: str, generated_at: str
) -> IndexState:
    """The generation is left out: it says how often the index was refreshed, not what it holds."""
    skipped = Counter(skip.reason for skip, _, _ in reader.skips(tree.id).values())
    absent = Feature(enabled=False, reason=_NOT_YET)
    return IndexState(
        schema_version=SCHEMA_VERSION,
        artifact="index_state",
        generated_at=generated_at,
        profile="default",
        features={"facts": Feature(enabled=True, reason=None), "graph": absent, "risk": absent},
        embeddings=Embeddings(ready=False, pending=False, reason=_NOT_YET, backends={}),
        providers={},
        provenance=Provenance("cq", version, SCHEMA, _find_head(tree.root), tree.config),
        files=languages.total(),
        languages=dict(sorted(languages.items())),
        skipped=dict(sorted(skipped.items())),
        records=records,
    )


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


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""
