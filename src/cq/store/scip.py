"""SCIP indexes, as far as cq speaks them: definitions, references, relationships. Protocol-buffer wire format, written
document by document and read without trusting a length. https://github.com/sourcegraph/scip has the schema."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from string import ascii_letters, digits
from typing import NamedTuple

import msgspec

from cq.model.errors import StoreError

DEFINITION, IMPORT, WRITE, READ = 1, 2, 4, 8  # bits of Occurrence.roles
BYTES, UTF16, CHARACTERS = 1, 2, 3  # what columns count; some indexers of JavaScript and Python leave it out
# kind of a symbol -> SymbolInformation.Kind
KINDS: dict[str, int] = {
    "function": 17, "lambda": 17, "macro": 25, "component": 17, "procedure": 17, "class": 7, "struct": 49,
    "object": 33, "record": 49, "union": 59, "method": 26, "constructor": 9, "destructor": 26, "accessor": 72,
    "operator": 34, "interface": 21, "type": 55, "enum": 11, "trait": 53, "protocol": 42, "variable": 61,
    "constant": 8, "field": 15, "property": 41, "parameter": 37, "enum_member": 12, "type_parameter": 58, "key": 22,
    "event": 13, "module": 29, "namespace": 30, "package": 35,
}  # fmt: skip
_TYPES = frozenset({
    "class", "struct", "interface", "trait", "enum", "type", "record", "union", "object", "protocol", "impl", "actor",
    "extension", "table", "view", "annotation_type",
})  # fmt: skip
_METHODS = frozenset({
    "function", "method", "constructor", "destructor", "accessor", "operator", "procedure", "component", "lambda",
})  # fmt: skip
_SIMPLE = re.compile(r"[\w+$-]+\Z", re.ASCII)


class Relationship(msgspec.Struct, frozen=True):
    symbol: str
    is_reference: bool = False
    is_implementation: bool = False
    is_type_definition: bool = False


class Occurrence(NamedTuple):
    """Spans of lines and columns from 0, the end exclusive; `whole` is what a definition extends over."""

    range: tuple[int, int, int, int]
    symbol: str
    roles: int = 0
    whole: tuple[int, int, int, int] | None = None


class Information(msgspec.Struct, frozen=True):
    symbol: str
    kind: int = 0
    display_name: str = ""
    documentation: str = ""
    signature: str = ""
    relationships: tuple[Relationship, ...] = ()


class ScipDocument(msgspec.Struct, frozen=True):
    path: str
    language: str
    occurrences: tuple[Occurrence, ...] = ()
    symbols: tuple[Information, ...] = ()
    encoding: int = BYTES
    text: str = ""  # where the indexer wrote it


def descriptor(name: str, kind: str, number: int = 0) -> str:
    """One step of a symbol's name; `number` tells apart functions that share one."""
    shown = name if _SIMPLE.match(name) else "`" + name.replace("`", "``") + "`"
    if kind in ("module", "namespace", "package"):
        return f"{shown}/"
    if kind in _TYPES:
        return f"{shown}#"
    if kind in _METHODS:
        return f"{shown}({f'+{number}' if number else ''})."
    if kind == "macro":
        return f"{shown}!"
    return f"[{shown}]" if kind == "type_parameter" else f"({shown})" if kind == "parameter" else f"{shown}."


def last_name(symbol: str) -> str:
    """The name in the last step of a symbol, "" where there is none. Costs as much as the symbol is long."""
    if not symbol.endswith(_ENDS):
        return ""
    steps = symbol[:-1]
    if steps.endswith(")"):  # `run(+1).` is the second that is called so
        start = steps.rfind("(")
        if start < 0 or steps[start + 1 : -1].strip(_PLAIN):
            return ""
        steps = steps[:start]
    if not steps.endswith("`"):
        return steps[len(steps.rstrip(_PLAIN)) :]
    at = end = len(steps) - 1
    while (at := steps.rfind("`", 0, at)) > 0 and steps[at - 1] == "`":
        at -= 1  # two of them are one that belongs to the name
    return steps[at + 1 : end].replace("``", "`") if at >= 0 else ""


_ENDS = tuple("/#.:!])")
_PLAIN = f"{ascii_letters}{digits}_+$-"  # what a name holds that stands in no backticks


def encode_index(documents: Iterable[ScipDocument], *, version: str, root: str) -> Iterator[bytes]:
    """The pieces of a file, in order: `metadata` first, as the format demands, then a document at a time."""
    tool = _text(1, "cq") + _text(2, version)
    yield _bytes(1, _bytes(2, tool) + _text(3, root) + _number(4, 1))
    for document in documents:
        yield _bytes(2, _encode_document(document))


def _encode_document(document: ScipDocument) -> bytes:
    parts = [_text(1, document.path)]
    for occurrence in document.occurrences:
        whole = _span(7, occurrence.whole) if occurrence.whole else b""
        body = _span(1, occurrence.range) + _text(2, occurrence.symbol) + _number(3, occurrence.roles) + whole
        parts.append(_bytes(2, body))
    for symbol in document.symbols:
        related = [
            _text(1, row.symbol)
            + _number(2, row.is_reference)
            + _number(3, row.is_implementation)
            + _number(4, row.is_type_definition)
            for row in symbol.relationships
        ]
        signature = _text(4, document.language) + _text(5, symbol.signature) if symbol.signature else b""
        parts.append(
            _bytes(
                3,
                _text(1, symbol.symbol)
                + _text(3, symbol.documentation)
                + b"".join(_bytes(4, row) for row in related)
                + _number(5, symbol.kind)
                + _text(6, symbol.display_name)
                + (_bytes(7, signature) if signature else b""),
            )
        )
    return b"".join([*parts, _text(4, document.language), _number(6, document.encoding)])


def _span(field: int, span: tuple[int, int, int, int]) -> bytes:
    start, first, end, last = span
    numbers = (start, first, last) if start == end else span
    return _bytes(field, b"".join(map(_varint, numbers)))


def decode_index(data: bytes) -> Iterator[ScipDocument]:
    """The documents of a file; StoreError for bytes that are no SCIP index."""
    for field, value in _fields(data):
        if field == 2 and isinstance(value, bytes):
            yield _decode_document(value)


def _decode_document(data: bytes) -> ScipDocument:
    path = language = text = ""
    encoding = 0
    occurrences: list[Occurrence] = []
    symbols: list[Information] = []
    for field, value in _fields(data):
        if field == 6 and isinstance(value, int):
            encoding = value
        if not isinstance(value, bytes):
            continue
        if field == 1:
            path = _string(value)
        elif field == 4:
            language = _string(value)
        elif field == 5:
            text = _string(value)
        elif field == 2:
            occurrences += _decode_occurrence(value)
        elif field == 3:
            symbols.append(_decode_symbol(value))
    return ScipDocument(path, language, tuple(occurrences), tuple(symbols), encoding, text)


def _decode_occurrence(data: bytes) -> list[Occurrence]:
    span: list[int] = []
    symbol, roles = "", 0
    for field, value in _fields(data):
        if field == 1:
            if isinstance(value, int):
                span.append(value)
            else:
                at = 0
                while at < len(value):
                    number, at = _read_varint(value, at)
                    span.append(number)
        elif field == 2 and isinstance(value, bytes):
            symbol = _string(value)
        elif field == 3 and isinstance(value, int):
            roles = value
    if len(span) == 3:
        return [Occurrence((span[0], span[1], span[0], span[2]), symbol, roles)]
    if len(span) == 4:
        return [Occurrence((span[0], span[1], span[2], span[3]), symbol, roles)]
    return []  # a place that is none is no evidence


def _decode_symbol(data: bytes) -> Information:
    symbol = name = signature = ""
    kind = 0
    docs: list[str] = []
    related: list[Relationship] = []
    for field, value in _fields(data):
        if field == 5 and isinstance(value, int):
            kind = value
        if not isinstance(value, bytes):
            continue
        if field == 1:
            symbol = _string(value)
        elif field == 3:
            docs.append(_string(value))
        elif field == 4:
            row = dict(_fields(value))
            target = row.get(1, b"")
            flags = [bool(row.get(number)) for number in (2, 3, 4)]
            related.append(Relationship(_string(target) if isinstance(target, bytes) else "", *flags))
        elif field == 6:
            name = _string(value)
        elif field == 7:
            text = dict(_fields(value)).get(5, b"")
            signature = _string(text) if isinstance(text, bytes) else ""
    return Information(symbol, kind, name, "\n".join(docs), signature, tuple(related))


# -- the wire ------------------------------------------------------------------------------------------


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(int(value)) if value else b""


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode("utf-8", "replace")) if value else b""


def _string(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _read_varint(data, at)
            yield key >> 3, value
            continue
        if kind == 2:
            length, at = _read_varint(data, at)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise StoreError("this is no SCIP index", hint="give a file that a SCIP indexer wrote")
        if length > len(data) - at:
            raise StoreError("the SCIP index ends too early", hint="it may not have been written to its end")
        yield key >> 3, data[at : at + length]
        at += length


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise StoreError("this is no SCIP index", hint="give a file that a SCIP indexer wrote")
