"""Files of the index opened once per run: their parts when asked for, one syntax tree per document."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from ast_grep_py import SgNode, SgRoot

from cq.languages.registry import get_language
from cq.model.facts import Call, Export, Flow, Import, References, Symbol
from cq.model.location import LineTable
from cq.model.source import Segment
from cq.query.vocabulary import ENTITIES, LANGUAGES
from cq.questions.q.matches import Match
from cq.store.read import Reader, StoredFile
from cq.syntax.tree import is_deeper

# What the matcher gets to see. It holds the interpreter while it works and cannot be stopped: its cost on one line
# is the square of the line, on a nest the square of the depth, and a nest of 20,000 kills the process.
MAX_BYTES = 1024 * 1024
MAX_LINE = 20_000
MAX_DEPTH = 1_500
_STEP = 1024
_OWNERS = frozenset(
    {*ENTITIES["function"], *ENTITIES["method"], *ENTITIES["class"], "macro", "trait", "impl", "interface"}
)
_BEFORE = frozenset({b"export", b"default", b"const", b"let", b"var", b"declare"})  # an exported or bound function
_BRACKETS = bytes(byte for byte in range(256) if byte not in b"()[]{}")


class OpenFile:
    def __init__(self, reader: Reader, stored: StoredFile) -> None:
        self._reader = reader
        self.stored = stored
        self.path = stored.path

    @cached_property
    def text(self) -> bytes:
        return self._reader.text(self.stored.content)

    @cached_property
    def lines(self) -> LineTable:
        return LineTable(self.text)

    @cached_property
    def documents(self) -> tuple[Document, ...]:
        if self.stored.counts.get("documents", 1) <= 1:
            return (Document(self, 0, self.stored.language, None),)
        parts = self._reader.documents(self.stored.content)
        return tuple(Document(self, number, part.language, part.segment) for number, part in enumerate(parts))

    def part(self, name: str) -> list[Any]:
        """One kind of fact, an entry per document; decoded once."""
        parts: dict[str, list[Any]] = self.__dict__.setdefault("_parts", {})
        if name not in parts:
            parts[name] = self._reader.part(self.stored.content, name)
        return parts[name]


class Document:
    """The file itself, or one that is embedded in it. Offsets are the file's."""

    def __init__(self, file: OpenFile, number: int, language: str, segment: Segment | None) -> None:
        self.file = file
        self.number = number
        self.language = language
        self._segment = segment
        self.parses = 0

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        return self.file.part("symbols")[self.number]

    @property
    def calls(self) -> tuple[Call, ...]:
        return self.file.part("calls")[self.number]

    @property
    def imports(self) -> tuple[Import, ...]:
        return self.file.part("imports")[self.number][0]

    @property
    def exports(self) -> tuple[Export, ...]:
        return self.file.part("imports")[self.number][1]

    @property
    def flows(self) -> tuple[Flow, ...]:
        return self.file.part("flows")[self.number]

    @cached_property
    def raised(self) -> tuple[tuple[int, str], ...]:
        """(the definition it stands in, what is raised), in the order of the text."""
        return tuple((owner_of(self.symbols, flow.scope), flow.value) for flow in self.flows if flow.kind == "raise")

    @property
    def references(self) -> References:
        return self.file.part("refs")[self.number]

    @cached_property
    def text(self) -> bytes:
        return self._segment.text(self.file.text) if self._segment else self.file.text

    @property
    def span(self) -> tuple[int, int]:
        return (self._segment.start, self._segment.end) if self._segment else (0, len(self.file.text))

    def line_of(self, place: int) -> int:
        """The line of the document that a byte of the file is in, from 1; a prefix of lines makes no new ones."""
        return self.file.text.count(b"\n", self.span[0], place) + 1

    @cached_property
    def source(self) -> str:
        return self.text.decode("utf-8", "replace")

    @cached_property
    def gate(self) -> str:
        """Why the matcher is not let at it, "" when it is."""
        if not LANGUAGES.get(self.language):
            return "documents without a grammar for patterns"
        if len(self.text) > MAX_BYTES:
            return f"documents over {MAX_BYTES // 1024} KiB"
        if max(map(len, self.text.split(b"\n"))) > MAX_LINE:
            return f"documents with a line over {MAX_LINE:,} bytes"
        if _may_be_deep(self.text) and _is_deep(self.text, self.language):
            return f"documents nested over {MAX_DEPTH:,} deep"
        return ""

    @cached_property
    def root(self) -> SgNode:
        self.parses += 1
        return SgRoot(self.source, LANGUAGES[self.language]).root()

    @cached_property
    def _checkpoints(self) -> list[int]:
        """Bytes before every so many characters; empty where a character is a byte."""
        if self.text.isascii():
            return []
        found, total = [0], 0
        for at in range(0, len(self.source), _STEP):
            total += len(self.source[at : at + _STEP].encode())
            found.append(total)
        return found

    def to_file(self, index: int) -> int:
        """A character of the document → a byte of the file. The matcher counts characters."""
        if self._checkpoints:
            at = index // _STEP
            index = self._checkpoints[at] + len(self.source[at * _STEP : index].encode())
        if self._segment is None:
            return index
        for start, end in self._segment.ranges:
            if index <= end - start:
                return start + index
            index -= end - start
        return self._segment.end

    def span_of(self, node: SgNode) -> tuple[int, int]:
        found = node.range()
        return self.to_file(found.start.index), self.to_file(found.end.index)

    def locate(self, wanted: Iterable[tuple[int, int, int, int]]) -> dict[tuple[int, int, int, int], SgNode]:
        """(start, head, name_start, end) → the node of that definition: the innermost that begins at its head, else
        where its decorators do, else in between."""
        by_end: dict[int, list[tuple[int, int, int, int]]] = {}
        starts: list[int] = []
        for span in wanted:
            by_end.setdefault(span[3], []).append(span)
            starts.append(span[0])
        starts.sort()
        found: dict[tuple[int, int, int, int], tuple[int, SgNode]] = {}
        todo = [self.root]
        while todo:
            for child in todo.pop().children():
                start, end = self.span_of(child)
                for span in by_end.get(end, ()):
                    if span[0] <= start <= span[2]:
                        rank = 0 if start == span[1] else 1 if start == span[0] else 2
                        if span not in found or rank < found[span][0] or rank == found[span][0] < 2:
                            found[span] = (rank, child)
                # Something that begins in it, or whose decorators begin before it and end in it.
                at = bisect_left(starts, start)
                if (at < len(starts) and starts[at] < end) or end in by_end:
                    todo.append(child)
        return {span: _unwrap(node) for span, (_, node) in found.items()}

    def enclosing(self, start: int, end: int) -> int:
        """The innermost definition around a span, -1 at the top; what has the span itself is not around it."""
        best, symbols = -1, self.symbols
        for at in range(bisect_right(self._starts, start)):
            symbol = symbols[at]
            around = symbol.head <= start and end <= symbol.end and (symbol.head, symbol.end) != (start, end)
            if around and symbol.kind not in _NO_SCOPE:
                best = at
        return best

    def definition_of(self, match: Match) -> int:
        """The definition that a match of a pattern is, else the function, class or the like that it stands in, -1 at
        the top; of another match its own."""
        if not match.is_code:
            return match.symbol
        text = self.file.text
        for number in range(bisect_right(self._starts, match.end)):
            symbol = self.symbols[number]
            begins = match.start in (symbol.start, symbol.head) or (
                match.start < symbol.start and set(text[match.start : symbol.start].split()) <= _BEFORE
            )
            if begins and 0 <= match.end - symbol.end <= 1 and symbol.kind in _OWNERS:
                return number
        return owner_of(self.symbols, self.enclosing(match.start, match.end))

    @cached_property
    def _starts(self) -> list[int]:
        return [symbol.start for symbol in self.symbols]


_NO_SCOPE = frozenset({"parameter", "type_parameter", "variable", "constant", "field", "property", "enum_member"})


def owner_of(symbols: tuple[Symbol, ...], number: int) -> int:
    """The definition that code runs in: a local variable or field is none."""
    while number >= 0 and symbols[number].kind not in _OWNERS:
        number = symbols[number].parent
    return number


def _unwrap(node: SgNode) -> SgNode:
    """The definition itself, without the `export` around it."""
    return (node.field("declaration") or node) if node.kind() == "export_statement" else node


def _may_be_deep(text: bytes) -> bool:
    """Cheap and never wrong about a deep text: brackets in brackets, `else` on `else`, or one endless expression."""
    rest = text.translate(None, _BRACKETS)
    for _ in range(200):
        smaller = rest.replace(b"()", b"").replace(b"[]", b"").replace(b"{}", b"")
        if len(smaller) == len(rest):
            break
        rest = smaller
    return len(rest) > 1000 or text.count(b"else") > 400 or max(map(len, re.split(rb"[;{},]", text))) > 8000


def _is_deep(text: bytes, language: str) -> bool:
    own = get_language(language)
    tree = own.parse(text) if own is not None else None
    return tree is None or is_deeper(tree, MAX_DEPTH)
