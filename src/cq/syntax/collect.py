"""Walks one tree's matches into loose facts; `extract` gives them nesting, scopes and chunks."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from itertools import repeat

from cq.model.code import Value
from cq.model.facts import Argument
from cq.model.source import Problem
from cq.syntax.code import CodeDraft
from cq.syntax.excerpt import clip, fold_lines
from cq.syntax.language import ARG_TEXT, CALLEE_TEXT, ROLE_NUMBER, Draft, Language
from cq.syntax.tree import Ancestors, Node, Span, child_count_of, children_of, end_of, has_error, kind_of, start_of

_GAP = 64  # bytes before a definition that are looked at first
_NEWLINE = ord("\n")
DEFINED = 255  # the mark of a definition's own name: no reference
_CALL = ROLE_NUMBER["call"]

# What the code of a call says: callee, arguments by position and by keyword.
LooseSite = tuple[Value, tuple[Value, ...], tuple[tuple[str, Value], ...]]
NO_SITE: LooseSite = (None, (), ())
# start, end, name_start, kind, callee, name, receiver, args, arg_count, keywords; then the site
LooseCall = tuple[
    int, int, int, str, str, str, str, tuple[Argument, ...], int, tuple[str, ...],
    Value, tuple[Value, ...], tuple[tuple[str, Value], ...],
]  # fmt: skip


class Collector:
    """What the matches of one document said, in no particular order."""

    def __init__(self, text: bytes, span: tuple[int, int], root: Node) -> None:
        self.text = text
        self.span = span  # the document; the text is the whole file's, also for an embedded one
        self.clean = not has_error(root)  # no syntax error anywhere
        self.ancestors = Ancestors(root)
        self.symbols: list[Draft] = []
        self.calls: list[LooseCall] = []
        # start, kind, module, end, bindings, level, type_only
        self.imports: list[tuple[int, str, str, int, list[tuple[str, str, int, int, bool]], int, bool]] = []
        self.exports: list[tuple[int, str, str, int, str, bool]] = []  # start, name, exported, end, module, type_only
        # start, end, kind, target, value, value_kind, value_start
        self.flows: list[tuple[int, int, str, str, str, str, int]] = []
        self.opaque: list[tuple[int, int, bool]] = []  # start, -end, is a hole: painted over the text in this order
        self.ref_starts: list[int] = []
        self.ref_ends: list[int] = []
        self.marks: dict[int, int] = {}  # offset of an identifier -> role, or DEFINED
        self.spans: list[tuple[int, int, int]] = []  # start, end, role of every identifier inside
        self.comments: list[tuple[int, int]] = []
        self.docs: list[tuple[int, int]] = []  # strings that are documentation
        self.attributes: list[tuple[int, int]] = []
        self.problems: list[Problem] = []
        # Start of a definition -> start of what stands around it: decorators, `export`.
        self.decorated: dict[int, int] = {}
        self.decorators: list[tuple[int, int]] = []
        self.decorator_calls: set[int] = set()
        self.remarks: list[tuple[int, str, str]] = []  # offset and two words that a language keeps for its `finish`
        self.targets: set[tuple[int, int]] = set()  # spans of what is assigned to, other than plain names
        self.public: list[tuple[int, int]] = []  # statements that say what the module exports
        self.code = CodeDraft()
        self._painted: bytes | None = None

    def paint(self) -> bytes:
        """The document with what is no code painted over; from now on `opaque` holds the comments too, and is sorted,
        outer before inner."""
        if self._painted is None:
            base, end = self.span
            text = self.text[base:end]
            spans = self.opaque
            spans += [(start, -end, False) for start, end in self.comments]
            spans.sort()
            painted = bytearray(text)
            for start, minus_end, hole in spans:
                start, end = start - base, -minus_end - base
                painted[start:end] = text[start:end] if hole else bytes(end - start)
            self._painted = bytes(painted)
        return self._painted

    def slice(self, start: int, end: int) -> str:
        return self.text[start:end].decode("utf-8", "replace")

    def write(self, node: Node) -> str:
        """A node as it is written."""
        return self.text[start_of(node) : end_of(node)].decode("utf-8", "replace")

    def excerpt(self, node: Node, limit: int = CALLEE_TEXT) -> str:
        """A node for people: on one line, and not too long."""
        return clip(self.text, start_of(node), end_of(node), limit)

    def fold(self, start: int, end: int) -> str:
        """The slice on one line, its comments taken out."""
        piece = self.text[start:end]
        if b"\n" not in piece:
            return piece.decode("utf-8", "replace").strip()
        comments = self.comments
        at = bisect_left(comments, (start, 0))
        pieces, cursor = [], start
        while at < len(comments) and comments[at][0] < end:
            pieces.append(self.slice(cursor, comments[at][0]))
            cursor = max(cursor, comments[at][1])
            # A line comment may hold its own line end.
            if self.text[cursor - 1 : cursor] == b"\n":
                cursor -= 1
            at += 1
        pieces.append(self.slice(cursor, max(cursor, end)))
        return fold_lines("".join(pieces))

    def add_call(
        self,
        language: Language,
        kind: str,
        start: int,
        end: int,
        callee: Node | Span,
        args: Node | None,
        site: LooseSite = NO_SITE,
    ) -> None:
        if (
            kind_of(callee) == "parenthesized_expression"
            and not isinstance(callee, Span)
            and child_count_of(callee) == 1
        ):
            inner = children_of(callee)[0]
            if kind_of(inner) in _NAMES:  # `(a.f)(x)` calls f
                callee = inner
        text, last = self.text, end_of(callee)
        raw, name, receiver, name_start = self.split_callee(language, callee)
        if name_start >= 0:
            self.marks[name_start] = _CALL
        if args is None or end - last == 2:
            self.calls.append((start, end, name_start, kind, raw, name, receiver, (), 0, (), *site))
        else:
            # The summary follows from the text alone, and the same few arguments are passed again and again. Around
            # a syntax error equal text may be parsed differently, and facts must not depend on what was read before.
            known, first, last = language.known_arguments, start_of(args), end_of(args)
            written = text[first:last] if self.clean and last - first <= ARG_TEXT else b""
            summary = known.get(written)
            if summary is None:
                summary = language.summarize_arguments(self, args)
                if written:
                    known.keep(written, summary)
            self.calls.append((start, end, name_start, kind, raw, name, receiver, *summary, *site))

    def split_callee(self, language: Language, callee: Node | Span) -> tuple[str, str, str, int]:
        """Its text, its last name, what stands before that, and where the name begins."""
        text, first, last = self.text, start_of(callee), end_of(callee)
        raw = text[first:last].decode("utf-8", "replace") if last - first <= CALLEE_TEXT else ""
        if not raw or "\n" in raw:
            raw = clip(text, first, last, CALLEE_TEXT)
        receiver, _, name = raw.rpartition(".")
        if name.isidentifier() and name.isascii():
            return raw, name, receiver.rstrip("?!& \t"), last - len(name)  # `a?.b`, `a!.b`, `a&.b`
        name, name_start = self._last_name(language, callee, first, last)
        receiver = ""
        if name_start > first:
            before = raw[: -len(name)] if raw.endswith(name) else clip(text, first, name_start, CALLEE_TEXT)
            receiver = _JOINT.sub("", before)
        return raw, name, receiver, name_start

    def _last_name(self, language: Language, callee: Node | Span, first: int, last: int) -> tuple[str, int]:
        """The identifier the callee ends with: `a.b` -> b, `a::b::<T>` -> by the language, `f()[0]` -> none."""
        found = _LAST_NAME.search(self.text, max(first, last - 256), last)
        if found is not None:
            return found[0].decode("utf-8", "replace"), found.start()
        node = None if isinstance(callee, Span) else language.callee_name(self, callee)
        if node is None or start_of(node) == end_of(node):  # nothing, or a name that the parser made up
            return "", -1
        return self.write(node), start_of(node)

    def add_import(
        self,
        kind: str,
        module: str,
        start: int,
        end: int,
        bindings: list[tuple[str, str, int, int, bool]],
        *,
        level: int = 0,
        type_only: bool = False,
    ) -> None:
        """Bindings are (local, imported, start, end, type_only)."""
        self.imports.append((start, kind, module, end, bindings, level, type_only))

    def add_flow(self, language: Language, kind: str, node: Node, target: Node | None, value: Node | None) -> None:
        value_kind, value_text, value_start = "", "", -1
        if value is not None:
            value_kind = language.value_kind(value)
            value_start = start_of(value)
            if value_kind in ("name", "attribute"):
                value_text = clip(self.text, value_start, end_of(value), CALLEE_TEXT)
            elif value_kind == "call":
                value_text = language.call_target(self, value)
        target_text = "" if target is None else clip(self.text, start_of(target), end_of(target), CALLEE_TEXT)
        self.flows.append((start_of(node), end_of(node), kind, target_text, value_text, value_kind, value_start))

    def find_leads(self) -> dict[int, tuple[int, int, bool]]:
        """Comments and attributes as (start, end, is a comment), by where their text ends."""
        text = self.text
        return {
            start + len(text[start:end].rstrip()): (start, end, is_comment)
            for spans, is_comment in ((self.comments, True), (self.attributes, False))
            for start, end in spans
        }

    def lead_before(self, language: Language, leads: dict[int, tuple[int, int, bool]], start: int) -> int:
        """Where the doc comments and attributes that stand directly before `start` begin."""
        text = self.text
        while True:
            room = _GAP
            gap = text[max(0, start - room) : start]
            while not (written := len(gap.rstrip())) and room < start:
                room *= 4
                gap = text[max(0, start - room) : start]
            lead = leads.get(start - len(gap) + written)
            if lead is None:
                return start
            lead_start, lead_end, is_comment = lead
            apart = text.count(b"\n", lead_end, start) - (text[lead_end - 1] != _NEWLINE)
            if apart > 1 or (apart == 1 and not (is_comment and _says_parameters(text[lead_start:lead_end]))):
                return start
            if is_comment and not (
                language.is_doc_comment(text[lead_start : lead_start + 8]) and self._begins_line(lead_start)
            ):
                return start
            start = lead_start

    def _begins_line(self, offset: int) -> bool:
        line = self.text.rfind(b"\n", 0, offset) + 1
        return not self.text[line:offset].strip()

    def doc_text(self, language: Language, start: int, end: int) -> str:
        """The text of the doc comments between two offsets."""
        at = bisect_left(self.comments, (start, 0))
        parts = []
        while at < len(self.comments) and self.comments[at][0] < end:
            comment_start, comment_end = self.comments[at]
            if language.is_doc_comment(self.text[comment_start : comment_start + 8]):
                parts.append(language.clean_doc(self.slice(comment_start, comment_end)))
            at += 1
        return "\n".join(parts)


def _says_parameters(comment: bytes) -> bool:
    """Whether a block is about the function below it even with an empty line between: it tells of parameters or a
    result, and names nothing of its own, as `@callback Done` would."""
    return comment.startswith(b"/**") and bool(_PARAMETERS.search(comment)) and not _OWN_NAME.search(comment)


_PARAMETERS = re.compile(rb"[@\\](?:param|returns?)\b")
_OWN_NAME = re.compile(rb"[@\\](?:callback|typedef|event|function|func|fn|method|name|overload|class|def)\b")
_NAMES = frozenset(
    {"identifier", "attribute", "member_expression", "field_expression", "scoped_identifier", "selector_expression"}
)
_JOINT = re.compile(r"\s*(?:[?!&]?\.|::|\??->|:|!)\s*\Z")  # what joins a receiver to a name
# ASCII letters, digits, `_`, `$` and every byte of a non-ASCII character, not beginning with a digit.
_LAST_NAME = re.compile(rb"(?<![\w$\x80-\xff])[A-Za-z_$\x80-\xff][\w$\x80-\xff]*\Z")


class DraftScopes:
    """Which definition's code an offset runs in."""

    def __init__(self, drafts: list[Draft]) -> None:
        opens = sorted((d.scope_start, -d.end, i) for i, d in enumerate(drafts) if d.scope_start >= 0)
        # What is innermost changes only where a scope begins or ends: it is worked out there, once, and looked up for
        # everything between. A document asks about a dozen lists of places.
        self._edges = sorted({edge for start, minus_end, _ in opens for edge in (start, -minus_end)})
        self._owners = [-1]  # before the first edge, then behind each
        stack: list[tuple[int, int]] = []
        at = 0
        for edge in self._edges:
            while at < len(opens) and opens[at][0] <= edge:
                start, minus_end, index = opens[at]
                while stack and stack[-1][0] <= start:
                    stack.pop()
                stack.append((-minus_end, index))
                at += 1
            while stack and stack[-1][0] <= edge:
                stack.pop()
            self._owners.append(stack[-1][1] if stack else -1)

    def find_unknown(self, known: Collection[int], others: Iterable[int], drafts: Sequence[Draft]) -> dict[int, int]:
        """Scopes, and others, that are not among those known -> the first around each that is."""
        lifted: dict[int, int] = {}
        for scope in {*self._owners, *others}.difference(known, (-1,)):
            above = drafts[scope].parent
            while above >= 0 and above not in known:
                above = drafts[above].parent
            lifted[scope] = above
        return lifted

    def lift(self, lifted: Mapping[int, int]) -> DraftScopes:
        """With what runs in these scopes in others."""
        found = copy(self)
        found._owners = [lifted.get(scope, scope) for scope in self._owners]
        return found

    def find(self, offsets: list[int]) -> list[int]:
        """The innermost scope of each, -1 at root level."""
        return list(map(self._owners.__getitem__, map(bisect_right, repeat(self._edges), offsets)))
