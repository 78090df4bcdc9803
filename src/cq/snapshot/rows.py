"""Everything that an index holds, row by row: files, definitions, call sites, chunks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from cq.model.errors import SourceError
from cq.model.facts import Call, Chunk, FileFacts, Symbol
from cq.model.location import LineTable, Location
from cq.model.source import Problem, explain_skip

if TYPE_CHECKING:
    from cq.store.read import Reader, Tree


class IndexedFile(msgspec.Struct, frozen=True):
    path: str
    language: str
    size: int
    lines: int
    encoding: str
    hash: str  # xxh3-128 of the text
    counts: dict[str, int]  # of symbols, calls, imports, references, chunks, documents, problems
    problems: tuple[Problem, ...] = ()  # of decoding


class IndexedSymbol(msgspec.Struct, frozen=True):
    """A definition with its names that last. `document` is the path, or that of a document embedded in the file."""

    path: str
    document: str
    symbol_id: str
    chunk_uid: str
    symbol: Symbol


class IndexedCall(msgspec.Struct, frozen=True):
    path: str
    document: str
    call_site_id: str
    caller_chunk_uid: str
    location: Location
    call: Call


class IndexedChunk(msgspec.Struct, frozen=True):
    path: str
    document: str
    chunk_uid: str
    parent_chunk_uid: str  # "" at root level
    chunk: Chunk


class Completion(msgspec.Struct, frozen=True):
    """What a word may become; each in the order of its letters."""

    names: tuple[str, ...]
    paths: tuple[str, ...]


def get_text(reader: Reader, tree: Tree, path: str) -> bytes:
    """The text of an indexed file; SourceError for a path that is not in the index."""
    file = reader.file(tree.id, path)
    if file is None:
        skip = reader.skips(tree.id).get(path)
        why = f": {explain_skip(skip[0])}" if skip else ""
        raise SourceError(f"{path} is not indexed{why}", hint="paths are named from the root")
    return reader.text(file.content)


def find_files(reader: Reader, tree: Tree) -> Iterator[IndexedFile]:
    for file in reader.files(tree.id):
        yield IndexedFile(
            file.path, file.language, file.size, file.lines, file.encoding, file.hash, file.counts, file.problems
        )


def find_symbols(reader: Reader, tree: Tree) -> Iterator[IndexedSymbol]:
    for path, document, facts, uids, ids, _ in _find_documents(reader, tree):
        for symbol, symbol_id in zip(facts.symbols, ids, strict=True):
            yield IndexedSymbol(path, document, symbol_id, uids[symbol.chunk], symbol)


def find_calls(reader: Reader, tree: Tree) -> Iterator[IndexedCall]:
    from cq.identity import call_site_id

    text, lines = b"", LineTable(b"")
    for path, document, facts, uids, _, source in _find_documents(reader, tree):
        if source is not text:
            text, lines = source, LineTable(source)
        for call in facts.calls:
            # Code at root level belongs to the module chunk.
            caller = facts.symbols[call.scope].chunk if call.scope >= 0 else 0
            location = lines.location(path, call.start, call.end)
            yield IndexedCall(path, document, call_site_id(location, call.callee), uids[caller], location, call)


def find_chunks(reader: Reader, tree: Tree) -> Iterator[IndexedChunk]:
    for path, document, facts, uids, _, _ in _find_documents(reader, tree):
        for chunk, uid in zip(facts.chunks, uids, strict=True):
            yield IndexedChunk(path, document, uid, uids[chunk.parent] if chunk.parent >= 0 else "", chunk)


def _find_documents(
    reader: Reader, tree: Tree
) -> Iterator[tuple[str, str, FileFacts, tuple[str, ...], tuple[str, ...], bytes]]:
    """(path, virtual path, facts, chunk uids, symbol ids, the file's text), outer documents before inner ones."""
    from cq.identity import identify

    for file in reader.files(tree.id):
        text, facts = reader.text(file.content), reader.facts(file.content)
        todo = [(facts, identify(file.path, text, facts))]
        while todo:
            facts, identity = todo.pop()
            yield file.path, identity.virtual_path, facts, identity.chunk_uids, identity.symbol_ids, text
            todo += reversed(tuple(zip(facts.embedded, identity.embedded, strict=True)))
