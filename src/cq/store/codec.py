"""Facts as blobs: one per kind of fact, so that a question decodes only what it asks about."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

import msgspec
import zstandard

from cq.model.code import Code, Outline, qualify
from cq.model.edge import Links
from cq.model.errors import StoreError
from cq.model.facts import Call, Chunk, Export, FileFacts, Flow, Import, References, Symbol
from cq.model.source import Problem, Segment


class Document(msgspec.Struct, frozen=True, array_like=True):
    """The file itself or a document embedded in it; `parent` is its container's place in the list."""

    language: str
    segment: Segment | None
    parent: int
    problems: tuple[Problem, ...]


# part -> what one document contributes; a blob holds one entry per document.
_PARTS: dict[str, Any] = {
    "symbols": list[tuple[Symbol, ...]],
    "calls": list[tuple[Call, ...]],
    "imports": list[tuple[tuple[Import, ...], tuple[Export, ...]]],
    "flows": list[tuple[Flow, ...]],
    "refs": list[References],
    "chunks": list[tuple[Chunk, ...]],
    "code": list[Code | None],
    "documents": list[Document],
}
PARTS = tuple(_PARTS)
_DECODERS = {part: msgspec.msgpack.Decoder(kind) for part, kind in _PARTS.items()}
_ENCODER = msgspec.msgpack.Encoder()
_OUTLINES = msgspec.msgpack.Decoder(list[Outline | None])
_HOMES = msgspec.msgpack.Decoder(dict[int, bytes])
_LINKS = msgspec.msgpack.Decoder(list[Links | None])


def pack(data: bytes) -> bytes:
    return _compress(data) if len(data) > _SMALL else _compress_small(data)


def _compress(data: bytes) -> bytes:
    # Copied: what the compressor gives keeps the room of what went in.
    return bytes(memoryview(_tools()[0].compress(data)))


# More than half of all blobs say that there is nothing, or the same little: a compressor that starts costs more than
# finding them.
_SMALL = 32
_compress_small = lru_cache(_compress)


def unpack(blob: bytes) -> bytes:
    """StoreError for what `pack` did not make: the index is damaged."""
    try:
        return _tools()[1].decompress(blob)
    except zstandard.ZstdError as error:
        raise StoreError(f"the index is damaged ({error})", hint="`cq index` makes it anew") from None


def _tools() -> tuple[zstandard.ZstdCompressor, zstandard.ZstdDecompressor]:
    """One pair per thread: they are not safe to share, and making one costs more than a small blob."""
    tools = getattr(_threads, "tools", None)
    if tools is None:
        # A checksum of what went in, four bytes: what comes out is that, or an error.
        compressor = zstandard.ZstdCompressor(level=1, write_checksum=True)
        tools = _threads.tools = (compressor, zstandard.ZstdDecompressor())
    return tools


_threads = threading.local()


def flatten(facts: FileFacts) -> list[tuple[FileFacts, int]]:
    """The document and all that are embedded in it, outer before inner, each with its container's place."""
    found: list[tuple[FileFacts, int]] = []
    todo = [(facts, -1)]
    while todo:
        document, parent = todo.pop()
        found.append((document, parent))
        todo += [(inner, len(found) - 1) for inner in reversed(document.embedded)]
    return found


def as_parts(facts: FileFacts) -> dict[str, Any]:
    """What `decode_part` gives for each part, and the facts themselves."""
    documents = flatten(facts)
    return {
        "facts": facts,
        "symbols": [d.symbols for d, _ in documents],
        "calls": [d.calls for d, _ in documents],
        "imports": [(d.imports, d.exports) for d, _ in documents],
        "flows": [d.flows for d, _ in documents],
        "refs": [d.references for d, _ in documents],
        "chunks": [d.chunks for d, _ in documents],
        "code": [d.code for d, _ in documents],
        "documents": [Document(d.language, d.segment, parent, d.problems) for d, parent in documents],
    }


def encode_facts(facts: FileFacts) -> dict[str, bytes]:
    values = as_parts(facts)
    return {part: pack(_ENCODER.encode(values[part])) for part in PARTS}


def decode_part(part: str, blob: bytes) -> Any:
    return _DECODERS[part].decode(unpack(blob))


def decode_names(blob: bytes) -> list[dict[int, str]]:
    """Of the part `code` only what its definitions are called, by symbol."""
    return [{} if outline is None else qualify(outline) for outline in _OUTLINES.decode(unpack(blob))]


def encode_links(links: list[Links | None]) -> bytes:
    """Of every document of a file; None for one without code."""
    return pack(_ENCODER.encode(links))


def decode_links(blob: bytes) -> list[Links | None]:
    return _LINKS.decode(unpack(blob))


def encode_homes(homes: Mapping[int, Collection[int]]) -> tuple[bytes, bytes]:
    """What the parts of a file depend on: all keys, ascending (see the table `link`), and of each part which ones."""
    keys = sorted(set().union(*homes.values()))
    at = dict(zip(keys, range(len(keys)), strict=True)).__getitem__
    numbers = {home: array("I", sorted(map(at, found))).tobytes() for home, found in sorted(homes.items())}
    return array("Q", keys).tobytes(), pack(_ENCODER.encode(numbers))


def decode_homes(keys: bytes, blob: bytes) -> dict[int, list[int]]:
    """The inverse of encode_homes; keys are in order."""
    known = array("Q", keys).__getitem__
    return {home: list(map(known, array("I", numbers))) for home, numbers in _HOMES.decode(unpack(blob)).items()}


def decode_facts(parts: dict[str, bytes]) -> FileFacts:
    """The inverse of encode_facts."""
    decoded = {part: decode_part(part, parts[part]) for part in PARTS}
    documents: list[Document] = decoded["documents"]
    inner: list[list[FileFacts]] = [[] for _ in documents]
    facts: FileFacts | None = None
    for number in range(len(documents) - 1, -1, -1):
        document = documents[number]
        imports, exports = decoded["imports"][number]
        facts = FileFacts(
            document.language,
            decoded["symbols"][number],
            decoded["calls"][number],
            imports,
            exports,
            decoded["flows"][number],
            decoded["refs"][number],
            decoded["chunks"][number],
            document.problems,
            document.segment,
            tuple(reversed(inner[number])),
            decoded["code"][number],
        )
        if document.parent >= 0:
            inner[document.parent].append(facts)
    if facts is None:
        raise ValueError("no document")
    return facts
