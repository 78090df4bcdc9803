"""Positions: half-open byte offsets into a file's UTF-8 text. Lines and columns exist only for people."""

from __future__ import annotations

import re
from bisect import bisect_right

import msgspec


class Location(msgspec.Struct, frozen=True):
    """A span of a file as people read it: 1-based lines, 1-based columns in characters, end exclusive."""

    path: str
    start: int
    end: int
    start_line: int
    start_col: int
    end_line: int
    end_col: int


class LineTable:
    """Byte offset → line and column, by one table per file. A line ends at `\\n`; `\\r\\n` therefore too.

    With `lone_returns` it also ends at a `\\r` of its own, as language servers count.
    """

    def __init__(self, text: bytes, *, lone_returns: bool = False) -> None:
        self._text = text
        self.is_ascii = text.isascii()
        if lone_returns and b"\r" in text:
            self.starts = [0, *(match.end() for match in re.finditer(rb"\r\n?|\n", text))]
            return
        starts = [0]
        find, at = text.find, text.find(b"\n")
        while at >= 0:
            starts.append(at + 1)
            at = find(b"\n", at + 1)
        self.starts = starts

    def __len__(self) -> int:
        return len(self.starts)

    def text(self, line: int) -> bytes:
        """A line, counted from 1, with its end."""
        return self._text[self.starts[line - 1] : self.starts[line] if line < len(self.starts) else None]

    def line(self, offset: int) -> int:
        return bisect_right(self.starts, offset)

    def position(self, offset: int) -> tuple[int, int]:
        """1-based line and column in characters."""
        line = bisect_right(self.starts, offset)
        start = self.starts[line - 1]
        if self.is_ascii:
            return line, offset - start + 1
        return line, len(self._text[start:offset].decode("utf-8", "replace")) + 1

    def offset(self, line: int, col: int = 1) -> int:
        """The inverse of `position`, clamped to the line and the file."""
        line = min(max(line, 1), len(self.starts))
        start = self.starts[line - 1]
        end = self.starts[line] if line < len(self.starts) else len(self._text)
        if self.is_ascii:
            return min(start + max(col, 1) - 1, end)
        return start + len(self._text[start:end].decode("utf-8", "replace")[: max(col, 1) - 1].encode())

    def location(self, path: str, start: int, end: int) -> Location:
        return Location(path, start, end, *self.position(start), *self.position(end))
