"""Names that last: of segments, chunks, symbols and call sites. Pure functions of text, paths and facts."""

from __future__ import annotations

from hashlib import sha1

import msgspec
from xxhash import xxh64_hexdigest

from cq.model.facts import FileFacts
from cq.model.location import Location

NAMESPACE = "repo"
TOOL_ROOT = ".cq-vfs/"


class Identity(msgspec.Struct, frozen=True):
    """The names in one document, beside its facts: `chunk_uids[i]` is that of `facts.chunks[i]`, and so on."""

    virtual_path: str
    segment_uid: str  # "" for the file itself
    chunk_uids: tuple[str, ...]
    symbol_ids: tuple[str, ...]
    embedded: tuple[Identity, ...] = ()


def identify(path: str, text: bytes, facts: FileFacts, *, namespace: str = NAMESPACE) -> Identity:
    """Every name in a file, embedded documents included. `text` is the file's, whose offsets the facts have."""
    return _identify(path, text, facts, namespace, "", {})


def segment_uid(container: str, kind: str, language: str, text: bytes, parent_uid: str = "") -> str:
    """Stays the same when lines outside the segment move; `\\r\\n` counts as `\\n`."""
    content = text.replace(b"\r\n", b"\n")
    fields = (_utf8(container), _utf8(kind), _utf8(language), content, _utf8(parent_uid))
    return "seg1:" + xxh64_hexdigest(b"\0".join(fields))


def virtual_path(path: str, segment: str = "") -> str:
    return f"{path}#seg:{segment}" if segment else path


def tool_path(path: str, segment: str = "", extension: str = "") -> str:
    """The path under which a document is shown to other tools; `extension` is that of its effective language."""
    encoded = TOOL_ROOT + path.replace("%", "%25").replace("#", "%23")
    return f"{encoded}#seg:{segment}{extension}" if segment else encoded


def chunk_uid(document: str, suffix: str, *, language: str | None = None, namespace: str = NAMESPACE) -> str:
    """`document` is a virtual path, `language` that of its segment, None for a file of its own."""
    return ":".join(("ck64:v1", namespace, document, *((language,) if language else ()), suffix))


def symbol_key(document: str, qualified_name: str, kind_group: str) -> str:
    return f"{document}::{qualified_name}::{kind_group}"


def signature_key(qualified_name: str, signature: str) -> str | None:
    return f"{qualified_name}::{' '.join(signature.split())}" if signature else None


def scoped_id(document: str, qualified_name: str, kind_group: str, signature: str, uid: str) -> str:
    """`uid` is that of the chunk the symbol belongs to."""
    key = symbol_key(document, qualified_name, kind_group)
    return f"{kind_group}|{key}|{signature_key(qualified_name, signature) or ''}|{uid}"


def symbol_id(scoped: str, scheme: str = "heur") -> str:
    """`heur` is ours; scip, lsif and ctags are kept for symbols that were imported."""
    return f"sym1:{scheme}:{_sha1(scoped)}"


def module_symbol_id(document: str, uid: str) -> str:
    """Of a document itself, whose qualified name is empty; `uid` is that of its module chunk."""
    return symbol_id(scoped_id(document, "", "module", "", uid))


def call_site_id(location: Location, callee: str) -> str:
    """`callee` as written in the source."""
    where = f"{location.start_line}:{location.start_col}:{location.end_line}:{location.end_col}"
    return f"sha1:{_sha1(f'{location.path}:{where}:{callee}')}"


def snippet_hash(snippet: str) -> str | None:
    """Of a call's source with white space folded; None for nothing."""
    folded = " ".join(snippet.split())
    return f"sha1:{_sha1(folded)}" if folded else None


def breadcrumb(path: str, facts: FileFacts, index: int) -> str:
    """`file > parent > … > name`; the module chunk is the file itself."""
    names: list[str] = []
    while index > 0:
        names.append(facts.chunks[index].name)
        index = facts.chunks[index].parent
    return " > ".join([path, *reversed(names)])


def _identify(
    path: str, text: bytes, facts: FileFacts, namespace: str, parent_uid: str, seen: dict[str, int]
) -> Identity:
    uid, language = "", None
    if facts.segment is not None:
        language = facts.language
        uid = segment_uid(path, facts.segment.kind, language, facts.segment.text(text), parent_uid)
        # Two equal fences in one file: the first keeps the plain uid, so that a copy further down renames nothing.
        count = seen[uid] = seen.get(uid, 0) + 1
        if count > 1:
            uid = f"{uid}:ord{count}"
    document = virtual_path(path, uid)
    uids = tuple(
        chunk_uid(document, chunk.uid_suffix, language=language, namespace=namespace) for chunk in facts.chunks
    )
    ids = tuple(
        symbol_id(scoped_id(document, symbol.identity_name, symbol.kind_group, symbol.signature, uids[symbol.chunk]))
        for symbol in facts.symbols
    )
    embedded = tuple(_identify(path, text, inner, namespace, uid, seen) for inner in facts.embedded)
    return Identity(document, uid, uids, ids, embedded)


def _sha1(text: str) -> str:
    return sha1(_utf8(text), usedforsecurity=False).hexdigest()


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
