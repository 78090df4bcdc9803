"""The fixture language: a snippet of one or more files with a cursor and marked spans.

    #- db.py
    def ru$0n(sql): ...
    #- app.py
    from db import run as go
    def main():
        go(stop())
    #   ^^ ref ^^^^ not here
    #< statement

`#- path` begins a file (without one, the snippet is the file `main`), `$0` is the cursor, a comment line of
carets marks what stands above them, `#<` marks the whole line above without its indent (and so also what
begins under the `#`). The text after is the label. `//` serves as well as `#`. Marks and the cursor are byte
offsets of the cleaned text, which holds neither marker lines nor `$0`.
"""

from __future__ import annotations

import re
from textwrap import dedent
from typing import NamedTuple

CURSOR = "$0"
DEFAULT_PATH = "main"

_FILE = re.compile(r"\s*(?:#|//)-\s+(?P<path>\S.*?)\s*$")
_LINE = re.compile(r"\s*(?:#|//)<(?P<label>.*)$")
_CARETS = re.compile(r"\s*(?:#|//)\s*\^")
_SPAN = re.compile(r"(?P<carets>\^+)(?P<label>[^^]*)")


class FixtureError(ValueError):
    """A fixture that cannot mean anything; the message names the line of the snippet."""


class Mark(NamedTuple):
    path: str
    start: int
    end: int
    label: str


class Fixture(NamedTuple):
    files: dict[str, str]
    cursor: tuple[str, int] | None
    marks: list[Mark]

    def text(self, mark: Mark) -> str:
        return self.files[mark.path].encode()[mark.start : mark.end].decode()

    def marked(self, label: str) -> list[Mark]:
        return [mark for mark in self.marks if mark.label == label]


def parse_fixture(snippet: str) -> Fixture:
    """Marks come in source order; those of one comment line from left to right."""
    reader = _Reader()
    for number, line in enumerate(_lines(snippet), start=1):
        try:
            reader.read(line)
        except FixtureError as error:
            raise FixtureError(f"line {number} of the fixture: {error}: {line.strip()!r}") from None
    if not reader.files:
        raise FixtureError("the fixture is empty")
    return Fixture({path: "".join(lines) for path, lines in reader.files.items()}, reader.cursor, reader.marks)


def _lines(snippet: str) -> list[str]:
    """Without the newline after the opening quotes, the common indent, and the indent before the closing quotes."""
    return re.findall(r"[^\n]*\n|[^\n]+", dedent(snippet.removeprefix("\n")))


class _Reader:
    def __init__(self) -> None:
        self.files: dict[str, list[str]] = {}
        self.cursor: tuple[str, int] | None = None
        self.marks: list[Mark] = []
        self._path = ""
        self._unnamed = False  # the current file was not begun by a `#-` line
        self._size = 0  # bytes of the current file so far
        self._above = ""  # its last line of text, as it stands in the snippet
        self._shift: int | None = None  # column of the cursor in that line

    def read(self, line: str) -> None:
        if match := _FILE.match(line):
            self._open(match["path"])
        elif match := _LINE.match(line):
            text = self._marked_line()
            self._mark(len(text) - len(text.lstrip()), len(text.rstrip()), match["label"].strip())
        elif _CARETS.match(line):
            self._marked_line()
            for span in _SPAN.finditer(line.rstrip("\r\n")):
                self._mark(span.start("carets"), span.end("carets"), span["label"].strip())
        else:
            self._add(line)

    def _open(self, path: str) -> None:
        if path in self.files:
            raise FixtureError("this file has begun before")
        if self._unnamed and "".join(self.files.pop(DEFAULT_PATH)).strip():
            raise FixtureError("text stands before the first file")
        self._unnamed = False
        self.files[path] = []
        self._path, self._size, self._above, self._shift = path, 0, "", None

    def _add(self, line: str) -> None:
        if not self._path:
            self._open(DEFAULT_PATH)
            self._unnamed = True
        text, found, rest = line.partition(CURSOR)
        self._shift = len(text) if found else None
        if found:
            if self.cursor is not None or CURSOR in rest:
                raise FixtureError("there is a second cursor")
            self.cursor = (self._path, self._size + len(text.encode()))
        self.files[self._path].append(text + rest)
        self._size += len((text + rest).encode())
        self._above = line

    def _marked_line(self) -> str:
        if not self._above.strip():
            raise FixtureError("there is no line above to mark")
        return self._above

    def _mark(self, first: int, last: int, label: str) -> None:
        """Columns are those the eye sees: of the line above with its cursor still in it."""
        if not label:
            raise FixtureError("the mark has no label")
        if last > len(self._above.rstrip("\r\n")):
            raise FixtureError(f"the line above ends before column {last}")
        line_start = self._size - len(self._clean(self._above).encode())
        start, end = (line_start + len(self._clean(self._above[:column]).encode()) for column in (first, last))
        self.marks.append(Mark(self._path, start, end, label))

    def _clean(self, text: str) -> str:
        # A column inside the cursor's two characters is the cursor's own place.
        return text if self._shift is None else text[: self._shift] + text[self._shift + len(CURSOR) :]
