"""SQL: tables, columns, views, types, indexes by the grammar; routines, and all that it does not know, by their words.

Dialects differ most in functions, procedures and triggers, and the grammar loses its way at the first
statement it does not know. So such statements are hidden from the parser behind a placeholder of the
same length, and their text is read for what they create, name and call.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cq.model.facts import Argument
from cq.syntax.collect import DEFINED, NO_SITE
from cq.syntax.excerpt import clip
from cq.syntax.language import ARG_TEXT, CALLEE_TEXT, MAX_ARGS, ROLE_NUMBER, Draft, Language
from cq.syntax.tree import (
    Captures,
    Node,
    Tree,
    all_children_of,
    child_at,
    children_of,
    end_of,
    fields_of,
    has_error,
    kind_id_of,
    kind_of,
    root_of,
    start_of,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cq.syntax.collect import Collector

_CALL = ROLE_NUMBER["call"]
_PLACEHOLDER = (b"SELECT", b" 1;")  # with blanks between them, as long as what it hides
_DECLARATIONS = 4000  # bytes between `AS` and `BEGIN` that are looked through

_SKIP = rb"--[^\n]*|/\*.*?(?:\*/|\Z)|'(?:[^'\\]|''|\\.)*+(?:'|\\?\Z)"
_PART = rb'(?:[\w$#@]+|"[^"\n]+"|`[^`\n]+`|\[[^\]\n]+\])'
_NAME = rb"(?P<name>%s(?:\s*\.\s*%s)*)" % (_PART, _PART)
_ROUTINE = re.compile(
    rb"(?is)\bcreate\s+(?:or\s+(?:replace|alter)\s+)?(?:definer\s*=\s*\S+\s+|(?:non)?editionable\s+|constraint\s+"
    rb"|aggregate\s+|temp(?:orary)?\s+){0,3}(?P<kind>function|procedure|proc|trigger|package(?:\s+body)?|event)\s+"
    rb"(?:if\s+not\s+exists\s+)?" + _NAME
)
_OBJECT = re.compile(
    rb"(?is)create\s+(?:\w+\s+){0,5}?(?P<kind>table|view|index|schema|type|domain|sequence|synonym)\s+"
    rb"(?:concurrently\s+)?(?:if\s+not\s+exists\s+)?" + _NAME
)
_KINDS = {
    b"function": "function", b"trigger": "trigger", b"event": "trigger", b"package": "module", b"view": "view",
    b"index": "index", b"schema": "schema", b"type": "type", b"domain": "type", b"table": "table",
    b"sequence": "variable", b"synonym": "table",
}  # fmt: skip
# Where a routine, a line for the client or the rows of a dump begin; and all in which such words would mean nothing.
_FIND = re.compile(
    rb"(?ims)%s|\$\w*\$|\bcreate\b|^[ \t]*(?P<cut>go|/)[ \t]*\r?$|^(?P<line>(?:delimiter\b|\\)[^\n]*)"
    rb"|^(?P<copy>copy)\b" % _SKIP
)
_FROM_STDIN = re.compile(rb"(?i)\bfrom\s+stdin\b")
_ROWS = re.compile(rb"(?ms).*?(?:^\\\.|\Z)")
_STEP = re.compile(
    rb"(?ims)%s|\$\w*\$|;|\bbegin\s+(?:tran\w*|work)\b|\b(?:begin|case|end(?:\s+(?:if|loop|while|repeat|case|for))?"
    rb"|as|is)\b|^[^\S\n]*(?:go|/)[ \t]*\r?$" % _SKIP
)
_BEGIN = re.compile(rb"(?is)%s|\b(?:begin|create)\b" % _SKIP)
_TAIL = re.compile(rb"[ \t]*+[\w$.\"]*+[ \t]*+(?:;|//|\$\$)")
_SPLIT = re.compile(
    rb"(?s)(?P<blank>--[^\n]*|/\*.*?(?:\*/|\Z)|\s+)|%s|\"[^\"]*\"|`[^`]*`|\$\w*\$|;|[^-/\s'\"`$;]+|." % _SKIP
)
_WORD = re.compile(rb"(?is)%s|(?P<word>[a-z_][\w$]*(?:\s*\.\s*[a-z_][\w$]*)*)(?P<open>\s*\()?" % _SKIP)
_RUN = re.compile(rb"(?is)%s|\b(?:call|exec(?:ute)?|perform)\s+%s(?!\s*[\w.(])" % (_SKIP, _NAME))
_INCLUDE = re.compile(rb"\\ir?[ \t]+(\S+)")
_PARAMETER = re.compile(rb"(?i)\s*(?:(?:in|out|inout|variadic)\s+)*(@?\w+)(?=\s+\S)")
_BRACKETS = re.compile(rb"(?s)%s|[(),]" % _SKIP)
# No names, whatever stands behind them.
_KEYWORDS = frozenset(
    b"""all alter and any array as asc before after begin between bigint boolean by call case cast char character check
    close column commit constraint create cross current cursor date decimal declare default delete desc distinct
    do drop each else elsif elseif end exception execute exec exists exit false fetch float for foreign found from full
    function go grant group having if immutable in index inner inout insert instead int integer interval into is join
    key language left like limit loop new not notice null number numeric of offset old on open or order out outer over
    partition perform plpgsql primary procedure raise record references repeat replace return returning returns revoke
    right rollback row rows select set setof sql stable statement table text then time timestamp to trigger true
    truncate type union unique unsigned update using values varchar varying view void volatile when where while with
    within varchar2 nvarchar security definer invoker variadic""".split()
)


class Sql(Language):
    # -- hiding ------------------------------------------------------------------------------------

    def parse(self, text: bytes, ranges: tuple[tuple[int, int], ...] = ()) -> Tree | None:
        spans = ranges or ((0, len(text)),)
        shown = _hide(text, [hidden for span in spans for hidden in _find_hidden(text, *span)])
        tree = super().parse(shown, ranges)
        if tree is None or not has_error(root_of(tree)):
            return tree
        # Each statement where it went wrong is tried alone; one that fails alone is hidden too.
        broken = [(start_of(node), end_of(node)) for node in all_children_of(root_of(tree)) if has_error(node)]
        unknown, at = [], 0
        for span in spans:
            for start, end in _split_statements(shown, *span):
                while at < len(broken) and broken[at][1] <= start:
                    at += 1
                if at == len(broken):
                    break
                if broken[at][0] < end:
                    unknown += self._find_unknown(shown, start, end)
        return super().parse(_hide(shown, unknown), ranges) if unknown else tree

    def _find_unknown(self, text: bytes, start: int, end: int) -> list[tuple[int, int, bytes, bytes]]:
        """What of a statement must be hidden: nothing, all of it, or an end that the grammar does not know."""
        tree = super().parse(text[start:end])
        nodes = (
            [node for node in all_children_of(root_of(tree)) if kind_of(node) not in self.comment_kinds] if tree else []
        )
        if not nodes or kind_of(nodes[0]) != "statement":
            return [(start, end, *_PLACEHOLDER)]
        if all(kind_of(node) == ";" for node in nodes[1:]):
            return []
        # `CREATE TABLE t (…) STRICT;`
        return [(start + end_of(nodes[0]), end, b"", b";")]

    def on_program(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        text, hidden = collector.text, -1
        for child in all_children_of(node):
            start = start_of(child)
            if kind_of(child) == "statement":
                # The tree knows the text that was parsed, which is not this one where something was hidden.
                hidden = start if text_of(child) != text[start : end_of(child)] else -1
            elif hidden >= 0 and kind_of(child) == ";":
                self._read_hidden(collector, hidden, end_of(child))
                hidden = -1

    def _read_hidden(self, collector: Collector, start: int, end: int) -> None:
        text = collector.text
        include = _INCLUDE.match(text, start, end)
        if include is not None:
            collector.add_import("include", include[1].decode("utf-8", "replace"), start, include.end(), [])
            return
        head = _ROUTINE.match(text, start, end)
        found = head or _OBJECT.match(text, start, end)
        if found is not None:
            kind = _KINDS.get(found["kind"].split()[0].lower(), "procedure")
            draft = self._draft(collector, kind, start, end, *found.span("name"))
            body = _body_start(text, found.end(), end)
            draft.signature = self.trim_signature(clip(text, start, body, 200)) or draft.name
            if body < end:
                draft.body_start, draft.body_end, draft.scope_start = body, end, start
            if head is not None:
                draft.body_start, draft.body_end, draft.scope_start = body, end, start
                if text[head.end() : head.end() + 64].lstrip()[:1] == b"(":
                    self._add_parameters(collector, text.index(b"(", head.end()), end)
        self._read_words(collector, found.end() if found else start, end)

    def _add_parameters(self, collector: Collector, start: int, end: int) -> None:
        """`(a int, OUT b numeric(10, 2) = 0)`: the first word of each that says no direction."""
        text, depth, piece = collector.text, 0, start + 1
        for token in _BRACKETS.finditer(text, start, end):
            at, mark = token.start(), token[0]
            depth += {b"(": 1, b")": -1}.get(mark, 0)
            if (mark == b"," and depth == 1) or (mark == b")" and depth == 0):
                found = _PARAMETER.match(text, piece, at)
                if found is not None:
                    first, last = found.span(1)
                    draft = Draft("parameter", collector.slice(first, last), first, at, first, last)
                    draft.signature = clip(text, first, at, 120)
                    collector.symbols.append(draft)
                piece = at + 1
                if depth == 0:
                    return

    def _read_words(self, collector: Collector, start: int, end: int) -> None:
        """Names and calls of a text no grammar was asked about."""
        text = collector.text
        for match in _WORD.finditer(text, start, end):
            if match["word"] is None:
                continue
            first, last = match.span("word")
            name = match["word"].rpartition(b".")[2].strip()
            if name.lower() not in _KEYWORDS:
                collector.ref_starts.append(last - len(name))
                collector.ref_ends.append(last)
                if match["open"]:
                    self._add_call(collector, first, match.end(), first, last)
        for match in _RUN.finditer(text, start, end):
            if match["name"] and match["name"].lower() not in _KEYWORDS:
                self._add_call(collector, match.start(), match.end(), *match.span("name"))

    def _add_call(self, collector: Collector, start: int, end: int, first: int, last: int) -> None:
        receiver, _, name = collector.slice(first, last).rpartition(".")
        name = name.strip().strip('"`[]')
        name_start = collector.text.rfind(name.encode(), first, last)
        collector.marks[name_start] = _CALL
        callee = clip(collector.text, first, last, CALLEE_TEXT)
        collector.calls.append((start, end, name_start, "call", callee, name, receiver.strip(), (), 0, (), *NO_SITE))

    # -- what the grammar knows --------------------------------------------------------------------

    def on_symbol(self, collector: Collector, kind: str, node: Node, captures: Captures) -> Draft | None:
        name, start, end = captures["name"][0], start_of(node), end_of(node)
        if start_of(name) == end_of(name):
            return None
        if kind == "enum_member":
            draft = Draft(kind, collector.slice(start, end).strip("'\""), start, end, start + 1, end - 1)
            draft.signature, draft.exported = collector.slice(start, end), True
            collector.symbols.append(draft)
            return draft
        draft = self._draft(collector, kind, start, end, start_of(name), end_of(name))
        if kind == "column":
            draft.signature = clip(collector.text, start, end, 120)
            table = captures.get("table")
            if table:
                # A column added later is named under its table, though it stands outside.
                draft.name = f"{_plain(collector.slice(start_of(table[0]), end_of(table[0])))}.{draft.name}"
            return draft
        if collector.text[end : end + 1] == b";":
            draft.end = end + 1
        body = next((child for child in children_of(node) if kind_of(child) in _BODIES), None)
        if body is not None:
            draft.body_start, draft.body_end, draft.scope_start = start_of(body), end_of(body), start
        signature = self.trim_signature(collector.fold(start, start_of(body) if body else end))
        draft.signature = signature[:200].removesuffix(" AS").removesuffix(" as")
        return draft

    def _draft(self, collector: Collector, kind: str, start: int, end: int, name_start: int, name_end: int) -> Draft:
        """`app.users` is named users under app; `finish_nested` keeps the last part of the name."""
        full = collector.slice(name_start, name_end)
        last = full.rpartition(".")[2].strip()
        draft = Draft(kind, _plain(full), start, end, name_end - len(last.encode()), name_end, exported=True)
        collector.symbols.append(draft)
        return draft

    def on_call(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        collector.add_call(self, "call", start_of(node), end_of(node), captures["callee"][0], node)

    def summarize_arguments(
        self, collector: Collector, node: Node
    ) -> tuple[tuple[Argument, ...], int, tuple[str, ...]]:
        terms = fields_of(node, "parameter")
        summaries = []
        for term in terms[:MAX_ARGS]:
            value = child_at(term, 0) or term
            piece = clip(collector.text, start_of(value), end_of(value), ARG_TEXT)
            kind = self.argument_ids.get(kind_id_of(value), "other")
            if kind == "string" and piece[:1] not in ("'", '"'):
                kind = {"null": "null", "true": "boolean", "false": "boolean"}.get(piece.lower(), "number")
            summaries.append(Argument(kind, piece))
        return tuple(summaries), len(terms), ()

    def finish(self, collector: Collector) -> None:
        # A name the parser only supposes is no reference.
        supposed = (start for start, end in zip(collector.ref_starts, collector.ref_ends, strict=True) if start == end)
        collector.marks.update(dict.fromkeys(supposed, DEFINED))

    def finish_nested(self, collector: Collector) -> None:
        for draft in collector.symbols:
            if draft.kind != "enum_member":
                draft.name = _plain(collector.slice(draft.name_start, draft.name_end))


_BODIES = ("column_definitions", "create_query", "enum_elements")


def _hide(text: bytes, hidden: list[tuple[int, int, bytes, bytes]]) -> bytes:
    parts, at = [], 0
    for start, end, head, tail in hidden:
        if end - start < len(head) + len(tail):
            head = tail = b""
        parts += (text[at:start], head, b" " * (end - start - len(head) - len(tail)), tail)
        at = end
    return b"".join((*parts, text[at:])) if parts else text


def _find_hidden(text: bytes, first: int, last: int) -> list[tuple[int, int, bytes, bytes]]:
    """(start, end, first and last bytes that stand there instead of it; the rest is blank)."""
    found: list[tuple[int, int, bytes, bytes]] = []
    at = stop = first
    while (match := _FIND.search(text, at, last)) is not None:
        at = match.end()
        word = match[0]
        if match["copy"] is not None:
            if at <= stop:  # this statement has been looked through from an earlier word
                continue
            stop = text.find(b";", at, last)
            stop = last if stop < 0 else stop
            rows = _ROWS.match(text, stop + 1, last) if _FROM_STDIN.search(text, at, stop) else None
            if rows is not None:
                at = rows.end()
                found.append((*rows.span(), b"", b""))
        elif match["cut"] is not None:
            # `GO` ends a statement that has no `;` of its own.
            start, end = match.span("cut")
            before = text[found[-1][1] if found else first : start].rstrip()
            found.append((start, end, b"", b";" if before and not before.endswith(b";") else b""))
        elif match["line"] is not None:
            head, tail = _PLACEHOLDER if _INCLUDE.match(match["line"]) else (b"", b"")
            found.append((*match.span("line"), head, tail))
        elif word[:1] == b"$":
            at = max(at, text.find(word, at, last) + len(word))
        elif word[:1] in b"cC" and (routine := _ROUTINE.match(text, match.start(), last)) is not None:
            at = _routine_end(text, routine, last)
            found.append((routine.start(), at, *_PLACEHOLDER))
    return found


def _split_statements(text: bytes, first: int, last: int) -> Iterator[tuple[int, int]]:
    """From the first word of each to behind its `;`; comments before it are left out."""
    start, at = -1, first
    while (match := _SPLIT.match(text, at, last)) is not None:
        at = match.end()
        if match["blank"] is not None:
            continue
        word = match[0]
        if word == b";":
            if start >= 0:
                yield start, at
            start = -1
        elif start < 0:
            start = match.start()
        if word[:1] == b"$" and word[-1:] == b"$" and len(word) > 1:
            at = max(at, text.find(word, at, last) + len(word))
    if start >= 0:
        yield start, start + len(text[start:last].rstrip())


def _routine_end(text: bytes, head: re.Match[bytes], limit: int) -> int:
    """Behind the statement's `;`, or behind the `END` of its block and what closes that."""
    depth, block, opened = 0, False, False
    package = head["kind"][:2].lower() == b"pa"
    at, begin = head.end(), -1
    while (step := _STEP.search(text, at, limit)) is not None:
        at, word = step.end(), step[0].strip().lower()
        if word[:1] == b"$":
            close = text.find(step[0], at, limit)
            at = close + len(step[0]) if close >= 0 else at
        elif word in (b"as", b"is"):
            # `AS $$ … $$` and `AS '…'` are values; anything else opens declarations whose `;` end nothing.
            if depth == 0 and not block and text[at : at + 64].lstrip()[:1] not in (b"$", b"'"):
                block = True
                depth, opened = int(package), package
                begin = _find_begin(text, at, limit)
        elif word == b"begin" or word == b"case":
            depth += 1
            opened = opened or word == b"begin"
        elif word == b"end" or word == b"end case":
            depth = max(0, depth - 1)
            if depth == 0 and opened:
                tail = _TAIL.match(text, at, limit)
                return tail.end() if tail is not None else at
        elif word in (b"go", b"/"):
            body = text[head.end() : step.start()].rstrip()
            return text.index(b"\n", head.end() + len(body)) + 1
        elif word == b";" and depth == 0 and (opened or at > begin):
            return at
    return limit


def _find_begin(text: bytes, start: int, limit: int) -> int:
    """Where the block begins whose declarations start here, -1 where another statement comes first."""
    for found in _BEGIN.finditer(text, start, min(limit, start + _DECLARATIONS)):
        if found[0][:1] in b"bB":
            return found.start()
        if found[0][:1] in b"cC":
            return -1
    return -1


def _body_start(text: bytes, start: int, end: int) -> int:
    for step in _STEP.finditer(text, start, end):
        if step[0].strip().lower() in (b"as", b"is", b"begin") or step[0][:1] == b"$":
            return step.start()
    return end


def _plain(name: str) -> str:
    """Quotes of every dialect off: `[dbo].[Users]`, `"Users"`, backticks."""
    return ".".join(part.strip().strip('"`[]') for part in name.split("."))
