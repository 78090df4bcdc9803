"""Documents as servers see them, files and embedded ones, and the way back to the offsets of the file itself."""

from __future__ import annotations

import os
import re
import threading
from bisect import bisect_right
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from cq.model.errors import CqError
from cq.model.location import LineTable
from cq.model.provider import Place
from cq.model.source import Segment, SourceFile
from cq.providers.positions import to_offset, to_position
from cq.source.files import stat_file
from cq.source.read import read_source

_KEPT = 512
# What stands before the part of a foreign path that says something to everyone.
_MARKERS = ("site-packages", "dist-packages", "node_modules", "typeshed", "stdlib", "rustlib", "registry", "lib")

_DOTTED = re.compile(rb"((?:\w+\.)+)\w+")
_MAX_NAME = 200
_INSTALLED = {"site-packages", "node_modules"}  # below the root, and yet someone else's code


class Document:
    """One text with one language. `path` and all offsets are those of the file that holds it.

    An embedded document is named by `tool_path` (identity.tool_path): a place below the root where no file is.
    """

    def __init__(
        self, path: str, language: str, container: bytes, segment: Segment | None = None, tool_path: str = ""
    ) -> None:
        self.path, self.language = path, language
        self.name = tool_path if segment else path
        self.text = segment.text(container) if segment else container
        self._ranges = segment.ranges if segment else ((0, len(container)),)
        self._starts: list[int] = []  # where each range begins in the document's own text
        total = 0
        for start, end in self._ranges:
            self._starts.append(total)
            total += end - start

    @classmethod
    def of(cls, source: SourceFile) -> Document:
        return cls(source.path, source.language, source.text)

    @cached_property
    def table(self) -> LineTable:
        return LineTable(self.text, lone_returns=True)

    def inner(self, offset: int) -> int | None:
        """An offset of the file → of the document; None outside of it."""
        at = bisect_right(self._ranges, offset, key=lambda part: part[0]) - 1
        if at < 0 or offset > self._ranges[at][1]:
            return None
        return self._starts[at] + offset - self._ranges[at][0]

    def outer(self, offset: int, *, end: bool = False) -> int:
        """An offset of the document → of the file. At a seam, an `end` belongs to what stands before it."""
        at = max(bisect_right(self._starts, offset - end) - 1, 0)
        return self._ranges[at][0] + offset - self._starts[at]

    def position(self, offset: int, encoding: str) -> dict[str, int] | None:
        inner = self.inner(offset)
        if inner is None:
            return None
        line, character = to_position(self.table, inner, encoding)
        return {"line": line, "character": character}

    def offset(self, position: Any, encoding: str, *, end: bool = False) -> int | None:
        """Of the file, for anything a server may have written as a position."""
        match position:
            case {"line": int(line), "character": int(character)}:
                inner = to_offset(self.table, line, character, encoding, clamp=end)
                return None if inner is None else self.outer(inner, end=end)
            case _:
                return None

    def span(self, span: Any, encoding: str) -> tuple[int, int] | None:
        match span:
            case {"start": start, "end": end}:
                first, last = self.offset(start, encoding), self.offset(end, encoding, end=True)
                # An empty span at a seam has its end before its start.
                return None if first is None or last is None else (first, max(first, last))
            case _:
                return None


class Texts:
    """Every text that places are mapped in: the open documents first, else the files of the root as they are now."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self.open: dict[str, Document] = {}  # by absolute path
        self._files: dict[str, tuple[tuple[int, int], Document | None]] = {}  # the one used longest ago first
        self._lock = threading.Lock()

    def absolute(self, document: Document) -> str:
        return os.path.normpath(self.root / document.name)

    def uri(self, document: Document) -> str:
        return make_uri(self.absolute(document))

    def is_outside(self, path: str) -> bool:
        """Someone else's code, wherever it lies."""
        inside = PurePath(path).is_relative_to(self.root)
        return not inside or not _INSTALLED.isdisjoint(PurePath(path).relative_to(self.root).parts)

    def find(self, path: str) -> Document | None:
        """By absolute path; None where it is no text of this root."""
        if path in self.open:
            return self.open[path]
        if self.is_outside(path):
            return None
        stamp = stat_file(path)
        with self._lock:
            kept = self._files.pop(path, None)
            if kept is None or kept[0] != stamp:
                try:
                    source = read_source(self.root, path)
                except CqError:
                    return None
                kept = stamp, Document.of(source) if isinstance(source, SourceFile) else None
            self._files[path] = kept  # last, as the one used last
            if len(self._files) > _KEPT:
                del self._files[next(iter(self._files))]
        return kept[1]

    def place(self, uri: Any, span: Any, encoding: str, *, name: bool = False) -> Place | None:
        """Where a server points to, in our terms; None if that cannot be said.

        With `name`, of `self.size` only `size`: some servers point to all of a target that is assigned to.
        """
        path = read_uri(uri)
        if path is None:
            return None
        if self.is_outside(path):
            match span:
                case {"start": {"line": int(line)}} if line >= 0:
                    return Place("", external=name_external(path), line=line + 1)
                case _:
                    return None
        document = self.find(path)
        found = document.span(span, encoding) if document else None
        if document is None or found is None:
            return None
        start, end = found
        if name and (inner := document.inner(start)) is not None and end - start < _MAX_NAME:
            dotted = _DOTTED.fullmatch(document.text, inner, inner + end - start)
            start += dotted.end(1) - inner if dotted else 0
        return Place(document.path, start, end)


def make_uri(path: str) -> str:
    """Of an absolute path. Servers on Windows write a drive as they like; what they send back is read alike."""
    forward = path.replace(os.sep, "/")
    return "file://" + ("" if forward.startswith("/") else "/") + quote(os.fsencode(forward))


def read_uri(uri: Any) -> str | None:
    """The absolute path of a URI, however it is escaped. Schemes of a server's own name nothing on the disk."""
    if not isinstance(uri, str) or ":" not in uri or len(uri) > 32 * 1024:
        return None
    if not uri.startswith("file:"):
        return "//" + uri.partition(":")[2].strip("/")
    try:
        path = unquote(urlsplit(uri).path, errors="surrogateescape")
    except ValueError:
        return None
    if not path.startswith("/") or "\0" in path:
        return None
    if os.sep != "/" and (drive := _DRIVE.match(path)):  # `/c:/x` is `C:\x`
        path = drive[1].upper() + path[2:]
    return os.path.normpath(path)


_DRIVE = re.compile(r"/([A-Za-z]):")


def name_external(path: str) -> str:
    """A file outside the root without the user's directories: `requests/api.py`, `lib.es5.d.ts`."""
    parts = PurePath(path).parts
    for at in range(len(parts) - 2, 0, -1):
        if parts[at] in _MARKERS or "typeshed_" in parts[at]:
            return "/".join(parts[at + 1 :])
    return parts[-1]
