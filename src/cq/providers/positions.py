"""Byte offsets ↔ the lines and characters of the Language Server Protocol, in the encoding a server chose."""

from __future__ import annotations

from collections.abc import Sequence

from cq.model.location import LineTable

ENCODINGS = ("utf-8", "utf-16", "utf-32")
_CODECS = {"utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


def to_position(table: LineTable, offset: int, encoding: str) -> tuple[int, int]:
    """0-based line and character. The table counts lines as servers do: made with `lone_returns`."""
    line = table.line(offset)
    if table.is_ascii:
        return line - 1, offset - table.starts[line - 1]
    before = table.text(line)[: offset - table.starts[line - 1]]
    if encoding == "utf-8" or before.isascii():
        return line - 1, len(before)
    codec, size = _CODECS[encoding]
    return line - 1, len(before.decode("utf-8", "replace").encode(codec)) // size


def to_offset(table: LineTable, line: int, character: int, encoding: str, *, clamp: bool = False) -> int | None:
    """None for what is no place in the text: another text was meant. `clamp` allows an end past its line."""
    if line < 0 or character < 0 or line > len(table):
        return None
    if line == len(table):
        return table.starts[-1] + len(table.text(len(table))) if character == 0 else None
    text = table.text(line + 1).rstrip(b"\r\n")
    start = table.starts[line]
    if text.isascii() or encoding == "utf-8":
        if character > len(text):
            return start + len(text) if clamp else None
        inside = text[character : character + 1]
        return None if inside and 0x80 <= inside[0] < 0xC0 else start + character
    codec, size = _CODECS[encoding]
    units = text.decode("utf-8", "replace").encode(codec)
    if character * size > len(units):
        return start + len(text) if clamp else None
    try:
        return start + len(units[: character * size].decode(codec).encode())
    except UnicodeDecodeError:  # between the halves of a surrogate pair
        return None


def to_units(text: bytes, offsets: Sequence[int]) -> list[int]:
    """Byte offsets → UTF-16 offsets from the start of the text, all in one pass over it."""
    if text.isascii():
        return list(offsets)
    found: dict[int, int] = {}
    before = units = 0
    for offset in sorted(set(offsets)):
        units += len(text[before:offset].decode("utf-8", "replace").encode("utf-16-le")) // 2
        found[offset], before = units, offset
    return [found[offset] for offset in offsets]


def from_units(text: bytes, units: Sequence[int]) -> list[int]:
    """The inverse of `to_units`; what lies behind the text is its end."""
    if text.isascii():
        return [min(unit, len(text)) for unit in units]
    wide = text.decode("utf-8", "replace").encode("utf-16-le")
    found: dict[int, int] = {}
    before = offset = 0
    for unit in sorted(set(units)):
        offset += len(wide[before * 2 : unit * 2].decode("utf-16-le", "replace").encode())
        found[unit], before = offset, unit
    return [found[unit] for unit in units]
