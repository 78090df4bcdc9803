"""One text made ready to be stored. Runs in workers; pure, so that equal text is stored equally."""

from __future__ import annotations

from array import array

import msgspec

from cq.graph.corpus import MAX_EMBEDDED
from cq.graph.names import given_parameters
from cq.graph.unit import find_members, find_named
from cq.model.code import NAMED_KINDS, Parameter, qualify
from cq.model.embedding import find_kind
from cq.model.facts import CHUNK_KINDS, FileFacts, is_looked_up
from cq.model.source import LACKING, SourceFile
from cq.source.read import content_hash
from cq.store.codec import encode_facts, flatten, pack
from cq.store.terms import Terms
from cq.store.trigrams import make_trigrams
from cq.store.write import Content

_ENCODE = msgspec.msgpack.Encoder().encode
_TERMS = Terms()
_KIND_BYTES = {kind: number for number, kind in enumerate(CHUNK_KINDS)}


def prepare_content(source: SourceFile, facts: FileFacts, text_hash: str = "") -> Content:
    documents = [document for document, _ in flatten(facts)]
    defined: set[str] = set()
    called: set[str] = set()
    used: set[str] = set()
    symbols: list[tuple[int, int, str, str, str]] = []
    words: list[tuple[str, str, str, str, str]] = []
    sizes = array("H")
    named: set[tuple[str, int]] = set()
    methods: dict[str, list[tuple[int, str, tuple[Parameter, ...]]]] = {}
    for place, document in enumerate(documents):
        for number, symbol in enumerate(document.symbols):
            defined.add(symbol.name)
            if is_looked_up(symbol, document.symbols):
                symbols.append((place, number, symbol.name, symbol.qualified_name, symbol.kind))
        called.update(call.name for call in document.calls)
        used.update(document.references.names)
        rows, counts = _chunk_words(source.text, document)
        words += rows
        sizes.extend(counts)
        if document.code is not None and place < MAX_EMBEDDED:
            code = document.code
            named.update((name, NAMED_KINDS.index(kind)) for name, kind in find_named(code))
            members = find_members(code)
            names = qualify(code) if members else {}
            for member in members:
                methods.setdefault(member.name, []).append((place, names[member.symbol], given_parameters(member)))
    return Content(
        text_hash or content_hash(source.text),
        source.language,
        source.text.count(b"\n") + (not source.text.endswith(b"\n") and bool(source.text)),
        {
            "documents": len(documents),
            "symbols": sum(len(d.symbols) for d in documents),
            "calls": sum(len(d.calls) for d in documents),
            "imports": sum(len(d.imports) for d in documents),
            "references": sum(len(d.references) for d in documents),
            "chunks": sum(len(d.chunks) for d in documents),
            "problems": sum(len(d.problems) for d in documents),
            "code": sum(d.code is not None for d in documents),
        },
        pack(source.text),
        make_trigrams(source.text),
        encode_facts(facts),
        symbols,
        (" ".join(sorted(defined)), " ".join(sorted(called)), " ".join(sorted(used))),
        words,
        bytes(
            _KIND_BYTES.get(find_kind(source.text, d.chunks, d.symbols, number), len(CHUNK_KINDS) - 1)
            for d in documents
            for number in range(len(d.chunks))
        ),
        sizes.tobytes(),
        sorted(named),
        [(name, _ENCODE(found)) for name, found in sorted(methods.items())],
        [problem for document in documents for problem in document.problems if problem.code in LACKING],
    )


def _chunk_words(text: bytes, document: FileFacts) -> tuple[list[tuple[str, str, str, str, str]], list[int]]:
    """The fields of every chunk, and how many words its body has; the document as a whole has none of its own."""
    expand, expand_body = _TERMS.expand, _TERMS.expand_body
    rows: list[tuple[str, str, str, str, str]] = []
    sizes: list[int] = []
    for number, chunk in enumerate(document.chunks):
        if not number:
            rows.append(("", "", "", "", ""))
            sizes.append(1)
            continue
        at, pieces = chunk.start, []
        for child in chunk.children:
            pieces.append(text[at : document.chunks[child].start])
            at = document.chunks[child].end
        pieces.append(text[at : chunk.end])
        body, size = expand_body(b" ".join(pieces))
        sizes.append(min(size, 65535))
        if chunk.symbol < 0:
            # A comment that belongs to no definition says what one that does would.
            rows.append(("", "", "", expand(text[chunk.start : chunk.end]) if chunk.kind == "comment" else "", body))
            continue
        symbol = document.symbols[chunk.symbol]
        rows.append(
            (
                expand(symbol.name.encode()), expand(symbol.qualified_name.encode()), expand(symbol.signature.encode()),
                expand(symbol.doc.encode("utf-8", "replace")), body,
            )
        )  # fmt: skip
    return rows, sizes
