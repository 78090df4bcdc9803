"""A structural snapshot of a file: some of its definitions in full, inside the headers that hold them, with what else
of the file they use and nothing more. Made of stretches of the source as they stand.

What a target uses and the file declares is shown: imports, values, fields and types as they stand (of an import list
over several lines only the lines that are used), functions and classes with methods by their header, whose body is
left out. Two things are written here: the mark of a body that is left out (`...` in Python, `/* ... */` between
braces), and how many lines of a long value, type or function are left out.
"""

from __future__ import annotations

import ast
import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING
from warnings import catch_warnings, simplefilter

import msgspec

from cq.language import describe
from cq.languages.registry import get_language
from cq.model.facts import QUIET, ROLES, Quiet
from cq.syntax.tree import Node, children_of, end_of, field_of, find_path, has_error, kind_of, root_of, start_of

if TYPE_CHECKING:
    from cq.model.facts import Chunk, Import, Symbol
    from cq.snapshot.files import HeldFile

_MEMBER = re.compile(rb"(?<!\.)\.\Z")
_RECEIVER = re.compile(rb"([A-Za-z_$\x80-\xff][\w$\x80-\xff]*)\s*(?:\?\.|\.|::|->)[ \t]*#?\Z")
_SELF = frozenset({b"self", b"this", b"cls", b"Self", b"super", b"static", b"parent"})
_COMMENT = re.compile(rb"\s*(?:/\*.*?\*/|//[^\n]*\n|#(?!\[)[^\n]*\n)", re.DOTALL)
_TYPE_BLOCK = re.compile(rb"if (?:\w+\.)?TYPE_CHECKING:\s*\n")
_BRACKETS = {b"{": b"}", b"[": b"]", b"(": b")"}
# The end of a first sentence, or of a first paragraph without one.
_SENTENCE = re.compile(rb"[.!?](?=\s)|[^\s/*#!](?=[ \t]*\n[ \t]*(?:\*|//[/!]?|#)?[ \t]*\r?\n)")
_SHORT_DOC = 80  # bytes of documentation that are not worth a mark
_BLANK_LINE = re.compile(rb"\n[ \t]*\r?\n")
_UNBOUND = frozenset(map(ROLES.index, ("keyword", "import", "label")))
_MAX_BASES = 20
_SHORT_LINES = 60  # a type or value up to this long is shown whole
_FIRST_LINES = 8  # of a value or type that is too long to be shown whole


class Piece(msgspec.Struct, frozen=True, gc=False, order=True):
    """A stretch of the source; with `text`, that in its place. `opens` and `closes`: the edges of a body."""

    start: int
    end: int
    text: bytes = b""
    opens: bool = False
    closes: bool = False


def take_snapshot(
    file: HeldFile, document: int, spans: Iterable[tuple[int, int]], collapsed: Iterable[tuple[int, int]] = (),
    statement_lines: int = 40, documented: Iterable[tuple[int, int]] | None = None,
) -> str:  # fmt: skip
    """The source of `spans` (definitions or statements) with what it needs; of those in `collapsed` only the headers
    of what they hold, or the first lines of a function. With `documented`, documentation outside of these spans is cut
    to its first sentence. Parses wherever the file does: what would not is shown with less left out."""
    view = _View(file, document, statement_lines)
    whole, short = sorted({view.complete(*span) for span in spans}), sorted(set(collapsed))
    for care in range(3):
        text = view.render(whole, short, care, None if care or documented is None else list(documented))
        if care == 2 or file.documents[document].problems or view.parses(text):
            return text.decode("utf-8", "replace")
    raise AssertionError


class _View:
    """One document and what its names mean inside it."""

    def __init__(self, file: HeldFile, document: int, statement_lines: int) -> None:
        self.statement_lines = statement_lines  # of a function that is too long to be shown whole
        self.text = file.text
        self.language = describe(file.documents[document].language)
        self.segment = file.documents[document].segment
        self.symbols: tuple[Symbol, ...] = file.symbols[document]
        self.chunks: tuple[Chunk, ...] = file.chunks[document]
        self.imports: tuple[Import, ...] = file.imports[document][0]
        references = file.references[document]
        self.offsets = array("I", references.offsets)
        self.names = references.names
        self.name_ids = array("I", references.name_ids)
        self.roles = references.roles
        self.quiet = references.quiet
        self.scopes = [number for number, symbol in enumerate(self.symbols) if symbol.body_start >= 0]
        self.scope_starts = [self.symbols[number].start for number in self.scopes]
        self.outer = self._find_outer()
        self.held: dict[tuple[int, str], list[int]] = {}
        self.holders: dict[str, list[int]] = {}
        for number, symbol in enumerate(self.symbols):
            self.held.setdefault((symbol.parent, symbol.name), []).append(number)
            if symbol.kind_group in ("class", "type", "module"):
                self.holders.setdefault(symbol.name, []).append(number)
        self.bound: dict[str, list[int]] = {}
        for number, item in enumerate(self.imports):
            for binding in item.bindings:
                self.bound.setdefault(binding.local, []).append(number)

    def _find_outer(self) -> dict[int, int]:
        """The definition with a body around each such definition, -1 at root level."""
        outer: dict[int, int] = {}
        stack: list[int] = []
        for number in self.scopes:
            while stack and self.symbols[stack[-1]].end <= self.symbols[number].start:
                stack.pop()
            outer[number] = stack[-1] if stack else -1
            stack.append(number)
        return outer

    def parses(self, text: bytes) -> bool:
        if self.language.is_host:
            # The grammar forgives what the language does not: a line that is indented under nothing.
            return _is_python(text) or not _is_python(self.text)
        language = get_language(self.language.id)
        tree = language.parse(text) if language else None
        return tree is None or not has_error(root_of(tree))

    # -- what is needed ----------------------------------------------------------------------------

    def render(
        self,
        whole: Sequence[tuple[int, int]],
        collapsed: Sequence[tuple[int, int]],
        care: int,
        documented: Sequence[tuple[int, int]] | None = None,
    ) -> bytes:
        values, shells = self._collapse(collapsed)
        full = [*whole, *values]
        pieces = [Piece(*self._widen(*span)) for span in whole]
        pieces += [piece for span in values for piece in self._show_value(*span, care)]
        spans = [(piece.start, piece.end) for piece in pieces]
        needed, imports = self._find_needed([*spans, *map(self._header, sorted(shells))])
        beside: list[tuple[int, int]] = []
        for number in sorted(needed):
            symbol = self.symbols[number]
            if not any(start <= symbol.start and symbol.end <= end for start, end in full):
                shown = self._declare(number, care)
                if isinstance(shown, int):
                    shells.add(shown)
                else:
                    beside.append(shown)
        # What stands beside the targets brings its imports: a field's type, a constant's maker.
        imports |= self._find_needed(beside)[1]
        used: dict[int, set[str]] = {}
        for item, name in imports:
            used.setdefault(item, set()).add(name)
        pieces += [piece for span in beside for piece in self._show_value(*span, care)]
        pieces += [piece for number, names in sorted(used.items()) for piece in self._show_import(number, names, care)]
        shown = self._assemble(_merge(pieces), shells, care)
        return self._join(shown if documented is None else self._cut_docs(shown, documented))

    def _collapse(self, targets: Sequence[tuple[int, int]]) -> tuple[list[tuple[int, int]], set[int]]:
        """The headers of each target and of what it holds, and its values. A function or a table is such a value
        itself: the headers of what it holds would say nothing of it."""
        full: list[tuple[int, int]] = []
        shells: set[int] = set()
        for start, end in targets:
            inside = [n for n, symbol in enumerate(self.symbols) if start <= symbol.start and symbol.end <= end]
            top = min(inside, key=lambda n: self.symbols[n].depth, default=-1)
            group = self.symbols[top].kind_group if top in self.outer else "value"
            is_object = top in self.outer and group == "value" and self._holds_functions(self.symbols[top])
            if group in ("function", "method") or (group == "value" and not is_object):
                full.append((start, end))
                continue
            held = [n for n in inside if self.symbols[n].parent == top]
            shells |= {top, *(n for n in held if n in self.outer)}
            values = [n for n in held if n not in self.outer and self.symbols[n].kind != "parameter"]
            full += [self._place_value(self.symbols[n]) for n in values]
            if is_object:  # `...spread` and `shorthand` are no definitions
                full += self._find_undefined(self.symbols[top], [self.symbols[n].start for n in held])
        return sorted(set(full)), shells

    def _header(self, number: int) -> tuple[int, int]:
        symbol = self.symbols[number]
        return symbol.start, symbol.body_start if symbol.body_start >= 0 else symbol.end

    def _find_needed(self, spans: Iterable[tuple[int, int]]) -> tuple[set[int], set[tuple[int, str]]]:
        """(symbols, imports with the name that is used) outside of the spans that code inside them names."""
        symbols: set[int] = set()
        imports: set[tuple[int, str]] = set()
        for start, end in spans:
            for at in range(bisect_left(self.offsets, start), bisect_left(self.offsets, end)):
                offset, name = self.offsets[at], self.names[self.name_ids[at]]
                role = self.roles[at]
                if role in _UNBOUND:
                    continue
                receiver = _RECEIVER.search(self.text[max(offset - 80, 0) : offset])
                if receiver is not None:
                    found = self._find_members(receiver[1], offset, name)
                elif _MEMBER.search(self.text[max(offset - 2, 0) : offset]):  # `...rest` and `0..LIMIT` are none
                    continue
                else:
                    found = self._find_name(offset, name, imports)
                symbols.update(n for n in found if not start <= self.symbols[n].start < end)
        return symbols, imports

    def _innermost(self, offset: int) -> int:
        at = bisect_right(self.scope_starts, offset) - 1
        number = self.scopes[at] if at >= 0 else -1
        while number >= 0 and self.symbols[number].end <= offset:
            number = self.outer[number]
        return number

    def _find_name(self, offset: int, name: str, imports: set[tuple[int, str]]) -> list[int]:
        scope = innermost = self._innermost(offset)
        while scope >= 0:
            group = self.symbols[scope].kind_group
            visible = group not in ("class", "type") or scope == innermost or self.language.has_implicit_members
            if visible and (found := self.held.get((scope, name))):
                # A name that is bound by an import inside a function is bound there too.
                return found
            for item in self.bound.get(name, ()):
                if self.imports[item].scope == scope:
                    imports.add((item, name))
                    return []
            scope = self.outer[scope]
        roots = self.held.get((-1, name), [])
        imports.update((item, name) for item in self.bound.get(name, ()) if self.imports[item].scope < 0)
        return roots

    def _find_members(self, receiver: bytes, offset: int, name: str) -> list[int]:
        if receiver in _SELF:
            holder = self._innermost(offset)
            while holder >= 0 and self.symbols[holder].kind_group not in ("class", "type"):
                holder = self.outer[holder]
            owners = [self.symbols[holder].name] if holder >= 0 else []
        else:
            owners = [receiver.decode("utf-8", "replace")]
        found: list[int] = []
        seen: set[str] = set()
        while owners and len(seen) < _MAX_BASES:
            owner = owners.pop(0)
            if owner in seen:
                continue
            seen.add(owner)
            for number in self.holders.get(owner, ()):
                symbol = self.symbols[number]
                found += self.held.get((number, name), [])
                owners += [base.rpartition(".")[2].partition("<")[0].partition("[")[0] for base in symbol.bases]
            if found:
                break  # what a class says itself hides what its bases say
        return found

    def _declare(self, number: int, care: int) -> tuple[int, int] | int:
        """The stretch that declares a symbol, or the definition whose header does."""
        symbol = self.symbols[number]
        if symbol.kind in ("parameter", "type_parameter"):
            number = max(self._innermost(symbol.start), 0)
        if number in self.outer and symbol.kind_group != "value":
            return number if self._is_known_by_header(number, care) else (symbol.start, symbol.end)
        chunk = self.chunks[symbol.chunk]
        if symbol.parent < 0 and chunk.symbol == number:
            return self.complete(chunk.start, chunk.end)
        return self._place_value(symbol)

    def _place_value(self, symbol: Symbol) -> tuple[int, int]:
        holder = self._innermost(symbol.start)
        if holder >= 0 and self.symbols[holder].kind_group in ("function", "method"):
            return self._find_statement(symbol, self.symbols[holder])
        return symbol.start, symbol.end

    def _is_known_by_header(self, number: int, care: int) -> bool:
        """A short type without methods is its own declaration."""
        symbol = self.symbols[number]
        if not self._is_shell(symbol) or (care and symbol.kind_group in ("function", "method")):
            return False
        if symbol.kind_group not in ("class", "type") or symbol.kind in ("impl", "trait", "extension"):
            return True
        has_code = any(outer == number for outer in self.outer.values())
        is_long = self.text.count(b"\n", symbol.start, symbol.end) >= _SHORT_LINES
        return has_code or (is_long and self.language.is_indented)

    def _holds_functions(self, symbol: Symbol) -> bool:
        at = bisect_right(self.scope_starts, symbol.start)
        inside = self.scopes[at : bisect_left(self.scope_starts, symbol.end)]
        return any(self.symbols[number].kind_group in ("function", "method", "class") for number in inside)

    def _find_undefined(self, symbol: Symbol, defined: Sequence[int]) -> list[tuple[int, int]]:
        """What stands in the body of an object and defines nothing there."""
        entries = self._find_entries(symbol.body_start)
        return [(start_of(node), end_of(node)) for node in entries if start_of(node) not in defined]

    def _find_entries(self, start: int) -> list[Node]:
        """What stands between the brackets that open at a byte, or in the block that begins there."""
        path = find_path(self.root, start, start + 1) if self.root else []
        while len(path) > 1 and not children_of(path[-1]):
            path.pop()
        while len(path) > 1 and start_of(path[-2]) == start == start_of(path[-1]):
            if self.text[start : start + 1] in _BRACKETS or kind_of(path[-1]) in ("block", "statement_block"):
                break  # the brackets' own node
            path.pop()
        return list(children_of(path[-1])) if path and start_of(path[-1]) == start else []

    def _find_statement(self, symbol: Symbol, holder: Symbol) -> tuple[int, int]:
        """The statement of the holder's body around a symbol: `self.x = 1` inside an `if` is nothing without it."""
        if self.language.is_indented and self._is_in_body(symbol.start, holder):
            return symbol.start, symbol.end
        node = self._find_child(symbol.start, symbol.end, holder)
        return (symbol.start, symbol.end) if node is None else (start_of(node), end_of(node))

    def _find_column(self, offset: int) -> int:
        return offset - self.text.rfind(b"\n", 0, offset) - 1

    def _is_in_body(self, offset: int, holder: Symbol) -> bool:
        """Whether what is there is a statement of the body itself, by the look of it."""
        return self._find_column(offset) == self._find_column(holder.body_start)

    def _find_child(self, start: int, end: int, holder: Symbol) -> Node | None:
        """The statement of the holder's body around a stretch."""
        body = (holder.body_start, holder.body_end)
        path = find_path(self.root, start, end) if self.root else []
        # The first, since a body of one statement is as long as that.
        return next((node for above, node in pairwise(path) if (start_of(above), end_of(above)) == body), None)

    @cached_property
    def root(self) -> Node | None:
        language = get_language(self.language.id)
        ranges = self.segment.ranges if self.segment else ()
        tree = language.parse(self.text, ranges) if language else None
        return root_of(tree) if tree else None

    def _is_shell(self, symbol: Symbol) -> bool:
        """Whether its body can be left out and leave code that parses."""
        if symbol.body_start < 0 or self.text.find(b"\n", symbol.head, symbol.body_end) < 0:
            return False
        if self.language.is_indented:
            return b"\n" in self.text[symbol.head : symbol.body_start]
        return self.text[symbol.body_start : symbol.body_start + 1] == b"{" and symbol.body_end - symbol.body_start >= 2

    def complete(self, start: int, end: int) -> tuple[int, int]:
        """`const a = 1, b = 2` is one statement and two chunks."""
        order = [(chunk.start, chunk.end) for chunk in self.chunks[1:] if chunk.parent < 0]
        at = bisect_left(order, (start, end))
        if at >= len(order) or order[at] != (start, end):
            return start, end
        first = last = at
        while first > 0 and self.text[order[first - 1][0] : order[first][0]].rstrip().endswith(b","):
            first -= 1
        while last + 1 < len(order) and self.text[order[last][0] : order[last + 1][0]].rstrip().endswith(b","):
            last += 1
        return order[first][0], order[last][1]

    # -- what is shown -----------------------------------------------------------------------------

    def _widen(self, start: int, end: int) -> tuple[int, int]:
        """With the mark that ends it, and a comment on the same line."""
        found = re.compile(rb"[ \t]*[;,]?(?:[ \t]*(?://|#)[^\n]*)?").match(self.text, end)
        tail = found[0] if found else b""
        rest = self.text.find(b"\n", end)
        line = self.text[end : rest if rest >= 0 else len(self.text)]
        # Only where the line ends there: else the mark belongs to what comes next.
        return (start, end + len(tail.rstrip())) if tail.strip() and not line[len(tail) :].strip() else (start, end)

    def _show_value(self, start: int, end: int, care: int) -> list[Piece]:
        """As it stands; the first lines of a long one, and how many more there are."""
        whole = [Piece(*self._widen(start, end))]
        mark = self.language.remark.encode()
        if care or not mark or self.text.count(b"\n", start, end) < _SHORT_LINES:
            return whole
        found = self._find_brackets(start, end)
        entries = self._find_entries(found[0]) if found else []
        if found is None or not entries:
            return whole
        opened, closed, most = found
        kept = self.text.find(b"\n", opened, end)
        for number, entry in enumerate(entries):
            stop = max(self._widen(start_of(entry), end_of(entry))[1], kept)
            if self.text.count(b"\n", opened, stop) > most and number:
                break
            kept = stop
            if self.text.count(b"\n", opened, stop) > most:
                break
        rest = next((start_of(entry) for entry in entries if start_of(entry) >= kept), -1)
        if rest < 0 or kept >= (closed or end):
            return whole
        left = mark % (b"... %d more lines" % (self.text.count(b"\n", rest, closed or end) + (not closed)))
        tail = [Piece(closed, whole[0].end, closes=True)] if closed else []
        return [Piece(start, kept, opens=True), Piece(rest, rest, left), *tail]

    def _find_brackets(self, start: int, end: int) -> tuple[int, int, int] | None:
        """Where the part of a stretch opens that may be cut and where it closes (0 where nothing does), and how many of
        its lines to show; None where nothing may be cut."""
        held = next((s for s in map(self.symbols.__getitem__, self.scopes) if (s.start, s.end) == (start, end)), None)
        if held is not None and held.kind_group in ("function", "method"):
            closed = 0 if self.language.is_indented else held.body_end - 1
            return (held.body_start, closed, self.statement_lines) if self._is_shell(held) else None
        first, last = self.text.find(b"\n", start, end), self.text.rfind(b"\n", start, end) + 1
        opened = start + len(self.text[start:first].rstrip()) - 1
        closed = last + len(self.text[last:end]) - len(self.text[last:end].lstrip())
        pair = _BRACKETS.get(self.text[opened : opened + 1])
        return (
            (opened, closed, min(_FIRST_LINES, self.statement_lines))
            if pair == self.text[closed : closed + 1]
            else None
        )

    def _show_import(self, number: int, names: set[str], care: int) -> list[Piece]:
        item = self.imports[number]
        start, end = item.start, item.end
        same = [other for other in self.imports if (other.start, other.end) == (start, end)]
        bindings = [binding for other in same for binding in other.bindings]
        if care or b"\n" not in self.text[start:end]:
            return [Piece(*self._widen(start, end))]
        kept: list[Piece] = []
        at, last = start, self.text.rfind(b"\n", start, end) + 1
        while at < end:
            stop = self.text.find(b"\n", at, end)
            stop = end if stop < 0 else stop
            here = [binding for binding in bindings if at <= binding.start < stop]
            line = self.text[at:stop].strip()
            unused = bool(here) and not any(binding.local in names for binding in here)
            if at == start or at >= last or not (unused or line[:1] == b"#" or line[:2] == b"//"):
                lead = len(self.text[at:stop]) - len(self.text[at:stop].lstrip())
                kept.append(Piece(at + lead, stop, opens=at == start, closes=at >= last))
            at = stop + 1
        return kept

    def _assemble(self, pieces: list[Piece], shells: set[int], care: int) -> list[Piece]:
        """Every piece inside the headers of what holds it; source order."""
        covered = [(piece.start, piece.end) for piece in pieces]

        def is_covered(symbol: Symbol) -> bool:
            at = bisect_right(covered, (symbol.start, 1 << 62)) - 1
            return at >= 0 and covered[at][1] >= symbol.end

        holders: set[int] = set()
        filled: set[int] = set()  # those with something inside
        for piece in pieces:
            inner, number = -1, self._innermost(piece.start)
            while number >= 0:
                if piece.start >= self.symbols[number].body_start or inner >= 0:
                    filled.add(number)
                if not is_covered(self.symbols[number]):
                    holders.add(number)
                inner, number = number, self.outer[number]
        for number in sorted(shells):
            inner = -1
            while number >= 0:
                if inner >= 0:
                    filled.add(number)
                if not is_covered(self.symbols[number]):
                    holders.add(number)
                inner, number = number, self.outer[number]
        shown = list(pieces)
        for number in sorted(holders):
            symbol = self.symbols[number]
            if self._is_shell(symbol):
                shown += self._show_holder(symbol, number not in filled)
            elif symbol.kind == "heading":
                title = self.text.find(b"\n", symbol.start, symbol.end)
                shown.append(Piece(symbol.start, title if title >= 0 else symbol.end))
            else:
                shown.append(Piece(*self._widen(symbol.start, symbol.end)))
        return _merge(self._close_blocks(_merge(shown), care))

    def _cut_docs(self, pieces: Sequence[Piece], but: Sequence[tuple[int, int]]) -> list[Piece]:
        """With the first sentence of each long documentation, except inside of some stretches."""
        docs = [doc for doc in self._find_docs() if not any(start <= doc[0] < end for start, end in but)]
        found: list[Piece] = []
        at = 0
        for piece in pieces:
            start = piece.start
            while at < len(docs) and docs[at][0] < start:
                at += 1
            while not piece.text and at < len(docs) and docs[at][1] <= piece.end:
                (first, last), at = docs[at], at + 1
                cut = self._find_cut(first, last)
                if cut is not None:
                    found += [Piece(start, cut[0], opens=start == piece.start and piece.opens), Piece(*cut)]
                    start = cut[1]
            found.append(piece if start == piece.start else msgspec.structs.replace(piece, start=start, opens=False))
        return found

    def _find_docs(self) -> list[tuple[int, int]]:
        """Where documentation of definitions stands: docstrings, and the comments in front, one after the other."""
        if self.language.has_docstrings:
            quiet = self.quiet or Quiet()
            rows = zip(array("I", quiet.starts), array("I", quiet.ends), quiet.kinds, strict=True)
            return [(start, end) for start, end, kind in rows if QUIET[kind] == "docstring"]
        found: list[tuple[int, int]] = []
        for symbol in self.symbols:
            end = symbol.start
            while end < symbol.head and (comment := _COMMENT.match(self.text, end, symbol.head)):
                end = comment.end()
            if end > symbol.start and (not found or symbol.start >= found[-1][1]):
                found.append((symbol.start, end))
        return found

    def _find_cut(self, start: int, end: int) -> tuple[int, int, bytes] | None:
        """What of a documentation to leave out, and what stands there instead; None for a short one."""
        end -= len(self.text[start:end]) - len(self.text[start:end].rstrip())
        sentence = _SENTENCE.search(self.text, start, end)
        if sentence is None or end - sentence.end() < _SHORT_DOC:
            return None
        closing = self.text[end - 3 : end] if self.language.has_docstrings else b""
        if self.language.has_docstrings and closing not in (b'"""', b"'''"):
            return None
        if self.text[end - 2 : end] == b"*/":
            closing = b" */"
        return sentence.end(), end, b"..." + closing

    def _close_blocks(self, pieces: list[Piece], care: int) -> list[Piece]:
        """What stands inside a statement that is no definition is shown with all of it: `try: import x`. Of
        `if TYPE_CHECKING:` the head is enough."""
        starts = [piece.start for piece in pieces]
        found = list(pieces)
        for chunk in self.chunks[1:]:
            if chunk.parent >= 0 or (not care and chunk.kind != "control") or (care == 1 and chunk.symbol >= 0):
                continue
            at = bisect_left(starts, chunk.start)
            if at >= len(pieces) or pieces[at].start >= chunk.end:
                continue
            if pieces[at].start == chunk.start and pieces[at].end >= chunk.end:
                continue
            head = _TYPE_BLOCK.match(self.text, chunk.start) if not care else None
            end = chunk.start + len(head[0].rstrip()) if head else chunk.end
            found.append(Piece(chunk.start, end, opens=bool(head)))
        if self.language.is_indented:
            for piece in pieces:
                found += self._find_block(piece)
        return found

    def _find_block(self, piece: Piece) -> list[Piece]:
        """The same of what stands in a statement of a class or function; of an `if` the head is enough here too."""
        number = self._innermost(piece.start)
        while number >= 0 and piece.start < self.symbols[number].body_start:
            number = self.outer[number]
        if number < 0 or self._is_in_body(piece.start, self.symbols[number]):
            return []
        holder = self.symbols[number]
        node = self._find_child(piece.start, piece.end, holder)
        if node is None:
            return []
        block = field_of(node, "consequence") if kind_of(node) == "if_statement" else None
        if (
            block is None
            or self._find_column(piece.start) != self._find_column(start_of(block))
            or piece.end > end_of(block)
        ):
            return [Piece(start_of(node), end_of(node))]
        head = self.text[start_of(node) : start_of(block)].rstrip()
        return [Piece(start_of(node), start_of(node) + len(head), opens=True)]

    def _show_holder(self, symbol: Symbol, empty: bool) -> list[Piece]:
        start = symbol.start
        while start < symbol.head and (found := _COMMENT.match(self.text, start, symbol.head)):
            start = found.end()
        start += len(self.text[start : symbol.head]) - len(self.text[start : symbol.head].lstrip())
        if self.language.is_indented:
            header = self.text[start : symbol.body_start].rstrip()
            pieces = [Piece(start, start + len(header), opens=True)]
            return [*pieces, Piece(symbol.body_start, symbol.body_start, b"...")] if empty else pieces
        opened, closed = symbol.body_start + 1, symbol.body_end - 1
        tail = self._widen(symbol.start, symbol.end)[1]
        mark = self.language.remark.encode()
        if empty and mark.endswith(b"*/"):
            return [
                Piece(start, opened, opens=True),
                Piece(opened, tail, mark % b"..." + b" " + self.text[closed:tail]),
            ]
        return [Piece(start, opened, opens=True), Piece(closed, tail, closes=True)]

    def _join(self, pieces: list[Piece]) -> bytes:
        out: list[bytes] = []
        before: Piece | None = None
        for piece in pieces:
            line = self.text.rfind(b"\n", 0, piece.start) + 1
            indent = self.text[line : piece.start]
            own_line = not indent.strip()
            if before is None:
                out.append(indent if own_line else b"")
            else:
                gap = self.text[before.end : piece.start]
                if not gap and not piece.text:
                    pass
                elif not gap.strip() and not piece.text:
                    out.append(gap if gap.count(b"\n") < 4 else b"\n\n\n" + indent)
                elif own_line:
                    blank = _BLANK_LINE.search(gap) and not before.opens and not piece.closes
                    out.append(b"\n\n" + indent if blank else b"\n" + indent)
                else:
                    out.append(b" " if b"\n" not in gap else b"\n")
            out.append(piece.text or self.text[piece.start : piece.end])
            before = piece
        return b"".join(out) + b"\n"


def _merge(pieces: Iterable[Piece]) -> list[Piece]:
    """Ascending; what lies in another is dropped."""
    kept: list[Piece] = []
    for piece in sorted(pieces, key=lambda piece: (piece.start, -piece.end)):
        if kept and piece.end <= kept[-1].end and (not piece.text or piece.end < kept[-1].end):
            continue
        kept.append(piece)
    return kept


def _is_python(text: bytes) -> bool:
    try:
        with catch_warnings():
            simplefilter("ignore")  # of strange escapes in what is only looked at
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
