"""Documents inside documents: scripts and styles of markup, fenced blocks of Markdown, frontmatter. A hand scanner over
bytes, pure and total, linear in the text whatever it holds."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cache
from typing import Literal, NamedTuple

import msgspec

from cq.language import all_languages, load_table
from cq.model.source import Segment
from cq.source.language import find_language

_MAX_DEPTH = 3


def find_segments(text: bytes, language: str) -> tuple[Segment, ...]:
    """Segments of a file in source order, blank ones left out, each with its own inside. Offsets are the file's."""
    return _find(text, language, 1)


class _Piece(NamedTuple):
    kind: str
    language: str
    ranges: tuple[tuple[int, int], ...]


def _find(text: bytes, language: str, depth: int) -> tuple[Segment, ...]:
    rules = load_table(language, "segments", Rules)
    if not rules.scanner:
        return ()
    scan = _scan_markup if rules.scanner == "markup" else _scan_markdown
    found: list[Segment] = []
    for kind, inner_language, ranges in scan(text, rules):
        segment = Segment(kind, inner_language, ranges)
        body = segment.text(text)
        if not body.strip():
            continue
        if depth < _MAX_DEPTH:
            inner = _find(body, inner_language, depth + 1)
            segment = Segment(kind, inner_language, ranges, _place(inner, ranges))
        found.append(segment)
    return tuple(found)


def _place(segments: tuple[Segment, ...], ranges: tuple[tuple[int, int], ...]) -> tuple[Segment, ...]:
    """Offsets of a segment's own text → offsets of what holds it."""
    if not segments:
        return ()
    starts: list[int] = []  # where each range begins in the joined text
    total = 0
    for start, end in ranges:
        starts.append(total)
        total += end - start

    def place(segment: Segment) -> Segment:
        placed: list[tuple[int, int]] = []
        for start, end in segment.ranges:
            at = bisect_right(starts, start) - 1
            while start < end:
                low, high = ranges[at]
                stop = min(end, starts[at] + high - low)
                _append(placed, low + start - starts[at], low + stop - starts[at])
                start, at = stop, at + 1
        inner = tuple(place(each) for each in segment.segments)
        return Segment(segment.kind, segment.language, tuple(placed), inner)

    return tuple(place(segment) for segment in segments)


def _append(ranges: list[tuple[int, int]], start: int, end: int) -> None:
    if ranges and ranges[-1][1] == start:
        ranges[-1] = (ranges[-1][0], end)
    elif start < end:
        ranges.append((start, end))


_ATTRIBUTE = re.compile(
    rb"""[\s/]*+(?:(?P<end>>)|(?P<name>[^\s/>][^\s/>=]*+)"""
    rb"""(?:\s*+=\s*+(?:"(?P<double>[^"]*+)(?P<unclosed>"|\Z)|'(?P<single>[^']*+)(?P<open>'|\Z)|(?P<bare>[^\s"'>][^\s>]*+)))?+)"""
)
_TAG = re.compile(rb"<(?:(!--)|([a-zA-Z][^\s/>]*+))")
# A string begins only behind what an expression puts before one, so that the apostrophe of prose is none.
_BRACE = re.compile(rb"""[{}]|(?<=[({\[,:=?+ ])(?:"(?:[^"\\\n]|\\.)*+"?+|'(?:[^'\\\n]|\\.)*+'?+)""", re.DOTALL)
_COMMENT_END = re.compile(rb"--!?>")
# What stands in these is text, not markup.
_RAW = {
    name: re.compile(rb"</%b(?=[\s/>])" % name, re.IGNORECASE)
    for name in (b"script", b"style", b"textarea", b"title", b"xmp", b"iframe", b"noembed", b"noframes", b"template")
}
_TEMPLATE = re.compile(rb"<(/?)template(?=[\s/>])")
_ASTRO_FENCE = re.compile(rb"\s*+---[^\n]*\n")
_ASTRO_CLOSE = re.compile(rb"^[ \t]*---", re.MULTILINE)


class Rules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the table `segments` of a language says of the documents inside its files."""

    scanner: Literal["", "markup", "fences"] = ""
    frontmatter: dict[str, str] = {}  # the fence around it -> its language
    style: str = ""
    script: str = ""
    inline_script: str = ""  # where a script says that it is to be left as it is
    has_components: bool = False  # `<Script>` is one, and no script; Markdown goes on inside a tag
    has_braces: bool = False  # attributes hold expressions
    has_template_language: bool = False  # `<template lang="pug">`


@cache
def _script_types() -> dict[str, str]:
    return {kind: name for name, each in all_languages().items() for kind in each.script_types}


def _scan_markup(text: bytes, rules: Rules) -> list[_Piece]:
    pieces: list[_Piece] = []
    at = 0
    if rules.frontmatter and (opened := _ASTRO_FENCE.match(text)):
        closed = _ASTRO_CLOSE.search(text, opened.end())
        if closed:
            pieces.append(_Piece("frontmatter", rules.frontmatter["---"], ((opened.end(), closed.start()),)))
            at = closed.end()
    braces = _match_braces(text) if rules.has_braces else {}
    while found := _TAG.search(text, at):
        at = found.end()
        if found[1]:
            at = _skip_comment(text, at)
            continue
        name = found[2] if rules.has_components else found[2].lower()
        at, attributes, closed_itself = _read_attributes(text, at, braces)
        if name not in _RAW or attributes is None:
            continue
        if rules.has_components and closed_itself:
            continue
        if name == b"template":
            if not rules.has_template_language or "lang" not in attributes:
                continue
            end, after = _find_template_end(text, at)
            language = find_language(attributes["lang"])
        else:
            close = _RAW[name].search(text, at)
            end = after = close.start() if close else len(text)
            language = _language_of(name, attributes, rules)
        if language and end > at:
            pieces.append(_Piece(name.decode(), language, ((at, end),)))
        at = after
    return pieces


def _skip_comment(text: bytes, at: int) -> int:
    for short in (b">", b"->"):
        if text.startswith(short, at):
            return at + len(short)
    end = _COMMENT_END.search(text, at)
    return end.end() if end else len(text)


def _match_braces(text: bytes) -> dict[int, int]:
    """Where each `{` is closed, strings inside left alone: `on:click={() => go("}")}` is one value."""
    ends: dict[int, int] = {}
    opened: list[int] = []
    for token in _BRACE.finditer(text):
        if token[0] == b"{":
            opened.append(token.start())
        elif token[0] == b"}" and opened:
            ends[opened.pop()] = token.end()
    return ends


def _read_attributes(text: bytes, at: int, braces: dict[int, int]) -> tuple[int, dict[str, str] | None, bool]:
    """From behind a tag's name: where the tag ends, its attributes, and whether it closes itself. None: no tag."""
    attributes: dict[str, str] = {}
    while found := _ATTRIBUTE.match(text, at):
        if found["end"]:
            return found.end(), attributes, text.endswith(b"/", at, found.end() - 1)
        if found["unclosed"] == b"" or found["open"] == b"":
            # Go on behind the lone quote: what was read before it is never read again.
            return found.start("double" if found["unclosed"] == b"" else "single"), None, False
        value = found["double"] or found["single"] or found["bare"] or b""
        name = found["name"].decode("utf-8", "replace").lower()
        attributes.setdefault(name, value.decode("utf-8", "replace").strip())
        expression = found.start("bare") if found["bare"] else found.start("name")
        at = max(found.end(), braces.get(expression, 0))
    return len(text), None, False


def _find_template_end(text: bytes, at: int) -> tuple[int, int]:
    depth = 1
    for tag in _TEMPLATE.finditer(text, at):
        depth += -1 if tag[1] else 1
        if not depth:
            return tag.start(), tag.end()
    return len(text), len(text)


def _language_of(name: bytes, attributes: dict[str, str], rules: Rules) -> str | None:
    kind = attributes.get("type", "").partition(";")[0].strip().lower()
    lang = attributes.get("lang", "")
    if name == b"style":
        return find_language(lang or kind.removeprefix("text/") or rules.style)
    if name != b"script":
        return None
    if lang:
        return find_language(lang)
    if kind.endswith("+json"):
        kind = "application/json"
    if not kind and "language" in attributes:
        return find_language(attributes["language"])
    if kind in ("", "module"):
        return rules.inline_script if "is:inline" in attributes else rules.script
    return _script_types().get(kind)


_FRONTMATTER = re.compile(rb"(---|\+\+\+)[ \t]*\r?\n")
_FRONTMATTER_CLOSE = {
    b"---": re.compile(rb"^(?:---|\.\.\.)[ \t]*\r?$", re.MULTILINE),
    b"+++": re.compile(rb"^\+\+\+[ \t]*\r?$", re.MULTILINE),
}
_FENCE = re.compile(rb"(`{3,}+)([^`\r\n]*)(?=\r?$)|(~{3,}+)([^\r\n]*)", re.MULTILINE)
_FENCE_CLOSE = re.compile(rb"^ {0,3}(`{3,}+|~{3,}+)[ \t]*+\r?$", re.MULTILINE)
_MARKER = re.compile(rb"(?:[-+*]|([0-9]{1,9})[.)])(?=[ \t\r\n]|\Z)")
# A thematic break or a heading; the underline of a heading is one only below a paragraph.
_BREAK = re.compile(
    rb"(?:(?:-[ \t]*+){3,}+|(?:_[ \t]*+){3,}+|(?:\*[ \t]*+){3,}+)\r?$|#{1,6}+(?=[ \t\r\n]|\Z)", re.MULTILINE
)
_NEWLINES = re.compile(rb"(?:\r?\n)*+")
_BLANKS = re.compile(rb"[ \t]*+")
_UNDERLINE = re.compile(rb"(?:=++|-++)[ \t]*+\r?$", re.MULTILINE)
_HTML_BLOCKS = (
    (
        re.compile(rb"<(?:script|pre|style|textarea)(?=[\s>]|\Z)", re.IGNORECASE),
        re.compile(rb"</(?:script|pre|style|textarea)>", re.IGNORECASE),
    ),
    (re.compile(rb"<!--"), re.compile(rb"-->")),
    (re.compile(rb"<\?"), re.compile(rb"\?>")),
    (re.compile(rb"<![a-zA-Z]"), re.compile(rb">")),
    (re.compile(rb"<!\[CDATA\["), re.compile(rb"\]\]>")),
    (
        re.compile(
            rb"</?(?:address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|"
            rb"dir|div|dl|dt|fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|"
            rb"legend|li|link|main|menu|menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|"
            rb"tbody|td|tfoot|th|thead|title|tr|track|ul)(?=[\s>]|/>|\Z)",
            re.IGNORECASE,
        ),
        None,
    ),
)
# A whole line of one tag of any other name; unlike those above it cannot interrupt a paragraph.
_HTML_LINE = re.compile(
    rb"""(?:<[a-zA-Z][a-zA-Z0-9-]*+"""
    rb"""(?:[ \t]++[a-zA-Z_:][\w.:-]*+(?:[ \t]*+=[ \t]*+(?:[^\s"'=<>`]++|'[^'\n]*+'|"[^"\n]*+"))?+)*+"""
    rb"""[ \t]*+/?>|</[a-zA-Z][a-zA-Z0-9-]*+[ \t]*+>)[ \t]*+\r?$""",
    re.MULTILINE,
)
_MAX_CONTAINERS = 64  # quotes and list items inside each other; deeper ones are read as plain text
_QUOTE = -1


class _Markdown:
    """CommonMark's block structure, as far as fences need it: which lines belong to which quote or list item."""

    def __init__(self, text: bytes, rules: Rules) -> None:
        self.text = text
        self.rules = rules
        self.pieces: list[_Piece] = []
        # Open containers, outermost first: _QUOTE, or the columns a list item's content is indented by.
        self.containers: list[int] = []
        self.paragraph = False
        self.empty_item = False  # the innermost item began with a blank line, and nothing followed yet
        # Where the line is read up to, and its first byte beyond that is no blank: a run of blanks is measured once.
        self.at = self.column = self.next_column = 0
        self.next_at = -1

    def scan(self) -> list[_Piece]:
        start = self._read_frontmatter()
        while start < len(self.text):
            start = self._read_line(start)
        return self.pieces

    def _read_frontmatter(self) -> int:
        opened = _FRONTMATTER.match(self.text)
        closed = opened and _FRONTMATTER_CLOSE[opened[1]].search(self.text, opened.end())
        if not opened or not closed:
            return 0
        language = self.rules.frontmatter.get(opened[1].decode())
        if language is None:
            return 0
        self.pieces.append(_Piece("frontmatter", language, ((opened.end(), closed.start()),)))
        return self._line_end(closed.start())

    def _line_end(self, start: int) -> int:
        return self.text.find(b"\n", start) + 1 or len(self.text)

    def _read_line(self, start: int) -> int:
        """One line outside a fence; returns where the next one begins, behind the fence if this line opens one."""
        text, end = self.text, self._line_end(start)
        self._start_line(start)
        matched = self._match_containers(end)
        all_matched = matched == len(self.containers)
        opened = False  # this line opens a container
        while True:
            at, indent = self._peek(end)
            if at >= end or text[at] in b"\r\n":
                self._close(matched, opened)
                self.paragraph = False
                # An item that begins with a blank line may hold no second one.
                if self.empty_item and all_matched and not opened:
                    self.containers.pop()
                self.empty_item = opened and self.containers[-1] != _QUOTE
                # More blank lines change nothing.
                return end if opened or not (more := _NEWLINES.match(text, end)) else more.end()
            if indent >= 4:
                break
            byte = text[at]
            continues = self.paragraph and all_matched and not opened
            deeper = len(self.containers) if opened else matched
            if byte == 0x3E and deeper < _MAX_CONTAINERS:  # >
                self._close(matched, opened)
                self.at, self.column = at + 1, self.column + indent + 1
                self._skip_columns(1, end)
                self.containers.append(_QUOTE)
                opened = True
            elif byte in b"`~" and (fence := _FENCE.match(text, at, end)):
                self._close(matched, opened)
                self.paragraph = self.empty_item = False
                return self._read_fence(fence, indent, end)
            elif (
                byte == 0x3C
                and not self.rules.has_components
                and (block := self._html_block(at, end, self.paragraph and not opened))
            ):
                self._close(matched, opened)
                self.paragraph = self.empty_item = False
                return self._read_html(block[0], at, end)
            elif _BREAK.match(text, at, end) or (continues and _UNDERLINE.match(text, at, end)):
                self._close(matched, opened)
                self.paragraph = self.empty_item = False
                return end
            elif (
                (byte in b"-+*" or 0x30 <= byte <= 0x39)
                and deeper < _MAX_CONTAINERS
                and (marker := _MARKER.match(text, at, end))
                and not (continues and self._cannot_interrupt(marker, end))
            ):
                self._close(matched, opened)
                self._open_item(marker, indent, end)
                opened = True
            else:
                break
        lazy = self.paragraph and not opened
        if not lazy:
            self._close(matched, opened)
        self.paragraph = indent < 4 or lazy
        self.empty_item = False
        return end

    def _match_containers(self, end: int) -> int:
        text, containers = self.text, self.containers
        for index, container in enumerate(containers):
            at, indent = self._peek(end)
            if container == _QUOTE:
                if indent > 3 or at >= end or text[at] != 0x3E:
                    return index
                self.at, self.column = at + 1, self.column + indent + 1
                self._skip_columns(1, end)
            elif indent >= container:
                self._skip_columns(container, end)
            elif at < end and text[at] not in b"\r\n":
                return index
            else:
                # A blank line belongs to every item, and ends every quote.
                self.at, self.column = at, self.column + indent
                return containers.index(_QUOTE, index) if _QUOTE in containers[index:] else len(containers)
        return len(containers)

    def _start_line(self, start: int) -> None:
        self.at, self.column, self.next_at = start, 0, -1

    def _peek(self, end: int) -> tuple[int, int]:
        """The next byte that is no blank, and the columns up to it."""
        if self.at > self.next_at:
            text, at, column = self.text, self.at, self.column
            if at < end and text[at] in b" \t" and (blanks := _BLANKS.match(text, at, end)):
                if b"\t" in blanks[0]:
                    for byte in blanks[0]:
                        column += 4 - column % 4 if byte == 0x09 else 1
                else:
                    column += len(blanks[0])
                at = blanks.end()
            self.next_at, self.next_column = at, column
        return self.next_at, self.next_column - self.column

    def _skip_columns(self, count: int, end: int) -> None:
        text, goal = self.text, self.column + count
        while self.at < end and self.column < goal:
            byte = text[self.at]
            if byte == 0x20:
                self.column += 1
            elif byte == 0x09:
                # A tab that reaches beyond the goal stays: its rest is indentation of the content.
                wide = 4 - self.column % 4
                if self.column + wide > goal:
                    self.column = goal
                    return
                self.column += wide
            else:
                return
            self.at += 1

    def _close(self, matched: int, opened: bool) -> None:
        if not opened:
            del self.containers[matched:]

    def _cannot_interrupt(self, marker: re.Match[bytes], end: int) -> bool:
        return not self.text[marker.end() : end].strip() or (marker[1] is not None and int(marker[1]) != 1)

    def _open_item(self, marker: re.Match[bytes], indent: int, end: int) -> None:
        width = indent + len(marker[0])
        self.at, self.column = marker.end(), self.column + width
        at, spaces = self._peek(end)
        blank = at >= end or self.text[at] in b"\r\n"
        if blank or spaces > 4:
            spaces = 1
        self._skip_columns(spaces, end)
        self.containers.append(width + spaces)

    def _html_block(self, at: int, end: int, in_paragraph: bool) -> tuple[re.Pattern[bytes] | None] | None:
        for starts, stops in _HTML_BLOCKS:
            if starts.match(self.text, at, end):
                return (stops,)
        if not in_paragraph and _HTML_LINE.match(self.text, at, end):
            return (None,)
        return None

    def _read_html(self, stops: re.Pattern[bytes] | None, at: int, end: int) -> int:
        text, size = self.text, len(self.text)
        depth = len(self.containers)
        while True:
            if stops and stops.search(text, at, end):
                return end
            if end >= size:
                return size
            start, end = end, self._line_end(end)
            self._start_line(start)
            if self._match_containers(end) < depth:
                return start
            at, _ = self._peek(end)
            if not stops and (at >= end or text[at] in b"\r\n"):
                return start

    def _read_fence(self, fence: re.Match[bytes], indent: int, end: int) -> int:
        text, size = self.text, len(self.text)
        bar, info = (fence[1], fence[2]) if fence[1] else (fence[3], fence[4])
        language = _language_of_info(info)
        ranges: list[tuple[int, int]] = []
        depth = len(self.containers)
        start = end
        if not depth and not indent:
            # Most fences stand at the margin: no line of theirs needs a look of its own.
            after = stop = size
            for close in _FENCE_CLOSE.finditer(text, end):
                if close[1][0] == bar[0] and len(close[1]) >= len(bar):
                    stop, after = close.start(), self._line_end(close.start())
                    break
            ranges = [(end, stop)] if end < stop else []
            start = after
        while (depth or indent) and start < size:
            end = self._line_end(start)
            self._start_line(start)
            if self._match_containers(end) < depth:
                break  # the container ends, and the fence with it; the line is read anew
            at, spaces = self._peek(end)
            start = end
            if spaces < 4 and self._closes(at, end, bar):
                break
            self._skip_columns(min(indent, spaces), end)
            _append(ranges, self.at, end)
        if language and ranges:
            self.pieces.append(_Piece("fence", language, tuple(ranges)))
        return start

    def _closes(self, at: int, end: int, bar: bytes) -> bool:
        if not self.text.startswith(bar, at, end):
            return False
        return not self.text[at:end].strip().strip(bar[:1])


def _scan_markdown(text: bytes, rules: Rules) -> list[_Piece]:
    return _Markdown(text, rules).scan()


_BRACES = re.compile(r"\{([^}]*)\}?(.*)", re.DOTALL)
_WORD = re.compile(r"[\w+#-]+")
_CLASS = re.compile(r"\.([\w+#-]+)")
_DIRECTIVES = frozenset({"code-cell", "code-block", "code", "sourcecode"})


def _language_of_info(info: bytes) -> str | None:
    """`py title="x"`, `ts{1,3}`, `rust,ignore`, `{.python .numberLines}`, `{python}`, `{code-block} python`."""
    words = info[:200].decode("utf-8", "replace").strip()
    if braces := _BRACES.match(words):
        inside, rest = braces[1].strip(), braces[2].strip()
        if inside in _DIRECTIVES:
            words = rest
        elif classes := _CLASS.findall(inside):
            return next((language for name in classes if (language := find_language(name))), None)
        else:
            words = inside
    word = _WORD.match(words.removeprefix("."))
    return find_language(word[0]) if word else None
