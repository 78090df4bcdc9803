"""Chunks: every symbol's content with its body-bearing children collapsed, and every root-level statement.

Order of the list: the module chunk, then by start, outer before inner. Chunks of one parent never
overlap; every byte of a document that is not blank lies in a root chunk.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from itertools import compress
from typing import TYPE_CHECKING

import msgspec
from xxhash import xxh64_hexdigest

from cq.model.facts import ROLES, Chunk, FileFacts, Import, References
from cq.syntax.code import ANONYMOUS
from cq.syntax.excerpt import ELLIPSIS, clip
from cq.syntax.language import Draft, Language
from cq.syntax.tree import Node, end_of, is_error, is_named, start_of

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

# 32,000 tokens at four characters each; a part stays well below, so that a small edit does not re-cut it.
MAX_CHARS = 128_000
PART_BYTES = 96_000
# The id of a chunk is a hash of its text, so a nest costs its square; what is deeper shares the chunk around it.
MAX_NEST = 500
SCREEN_BYTES = 1_500
_PARAGRAPH = re.compile(rb"\n[ \t\r]*\n(?=\S)")
NAME_CHARS = 60


class Piece(msgspec.Struct, gc=False):
    """A chunk in the making."""

    start: int
    end: int
    kind: str
    name: str
    symbol: int = -1
    parent: int = -1
    depth: int = 0


def full_source(text: bytes, chunk: Chunk) -> str:
    return text[chunk.start : chunk.end].decode("utf-8", "replace")


def embedding_text(text: bytes, facts: FileFacts, index: int, stub: str) -> str:
    """`stub` stands for the body of a child."""
    chunk = facts.chunks[index]
    if not chunk.children:
        return full_source(text, chunk)
    parts, at = [], chunk.start
    for child_index in chunk.children:
        child = facts.chunks[child_index]
        parts.append(text[at : child.start].decode("utf-8", "replace"))
        parts.append(facts.symbols[child.symbol].signature + stub if child.symbol >= 0 else ELLIPSIS)
        at = child.end
    parts.append(text[at : chunk.end].decode("utf-8", "replace"))
    return "".join(parts)


def build_chunks(
    text: bytes,
    span: tuple[int, int],
    drafts: list[Draft],
    imports: Sequence[Import],
    parsed: tuple[Language, Node, Collector] | None,
    references: References,
) -> tuple[Chunk, ...]:
    """Plans the chunks and tells every draft which one it belongs to."""
    if parsed is None:
        pieces = _find_paragraphs(text, span)
        stub = ";"
    else:
        language, root, _ = parsed
        stub = language.stub
        pieces = _fill_gaps(text, span, _root_pieces(text, language, root, drafts, imports))
        pieces = _add_nested(pieces, drafts)
    children = _split_large(text, pieces, drafts, stub)
    _assign_drafts(pieces, drafts)
    used = _used_imports(pieces, imports, references)
    hashes = _Hashes(text, *span)
    uids = _resolve_uids(hashes, [(span[0], span[1])] + [(piece.start, piece.end) for piece in pieces])
    chunks = [Chunk("module", "", -1, -1, (), 0, span[0], span[1], *uids[0])]
    for number, piece in enumerate(pieces):
        chunks.append(
            Chunk(
                piece.kind, piece.name, piece.symbol,
                -1 if piece.parent < 0 else piece.parent + 1,
                tuple(child + 1 for child in children[number]),
                piece.depth, piece.start, piece.end, *uids[number + 1], used[number],
            )
        )  # fmt: skip
    return tuple(chunks)


# -- root level ----------------------------------------------------------------------------------


def _root_pieces(
    text: bytes, language: Language, root: Node, drafts: list[Draft], imports: Sequence[Import]
) -> list[Piece]:
    pieces: list[Piece] = []
    tops = [index for index, draft in enumerate(drafts) if draft.parent < 0 and draft.kind != ANONYMOUS]
    modules = {item.start: item.module for item in reversed(imports)}
    at = 0
    for node in language.root_nodes(root):
        start, end = start_of(node), end_of(node)
        if end > start and text[end - 1] == 10:
            # Some grammars give line comments and headings their line end.
            end = start + len(text[start:end].rstrip())
        if end <= start or not text[start:end].strip():
            continue
        if pieces and end <= pieces[-1].end:
            continue
        kind = language.chunk_kind(node)
        while at < len(tops) and drafts[tops[at]].end <= start:
            at += 1
        inside = []
        scan = at
        while scan < len(tops) and drafts[tops[scan]].start < end:
            inside.append(tops[scan])
            scan += 1
        if kind == "comment" and not inside:
            _add_comment(text, pieces, start, end)
        elif not is_named(node) and pieces and not inside:
            if text.find(b"\n", pieces[-1].end, start) < 0:
                pieces[-1].end = end
            else:
                pieces.append(Piece(start, end, "statement", _title(text, start, end)))
        else:
            _add_statement(text, pieces, drafts, inside, kind, start, end, modules)
    for piece in pieces:
        if piece.kind == "attribute":
            piece.kind = "statement"
    return _join_rubble(text, pieces) if is_error(root) else pieces


def _join_rubble(text: bytes, pieces: list[Piece]) -> list[Piece]:
    """Where the parser found no statement at all, loose tokens of one line are one piece."""
    joined: list[Piece] = []
    for piece in pieces:
        last = joined[-1] if joined else piece
        loose = piece.kind == last.kind == "statement" and piece.symbol < 0 and last.symbol < 0
        if loose and last is not piece and text.find(b"\n", last.end, piece.start) < 0:
            last.end = piece.end
        else:
            joined.append(piece)
    for piece in joined:
        if piece.symbol < 0 and piece.kind == "statement":
            piece.name = _title(text, piece.start, piece.end)
    return joined


def _title(text: bytes, start: int, end: int) -> str:
    return clip(text, start, end, NAME_CHARS) or ELLIPSIS  # what is blank to Unicode is not to us


def _add_comment(text: bytes, pieces: list[Piece], start: int, end: int) -> None:
    if pieces:
        last = pieces[-1]
        lines = text.count(b"\n", last.end, start)
        if not text[last.end : start].strip() and (lines == 0 or (lines == 1 and last.kind == "comment")):
            # `x = 1  # why` is one piece, and so is a block of comment lines.
            last.end = end
            return
    pieces.append(Piece(start, end, "comment", _title(text, start, end)))


def _add_statement(
    text: bytes,
    pieces: list[Piece],
    drafts: list[Draft],
    inside: list[int],
    kind: str,
    start: int,
    end: int,
    modules: dict[int, str],
) -> None:
    whole = next((i for i in inside if drafts[i].start <= start and drafts[i].end >= end), -1)
    if whole >= 0:
        _add_symbol(text, pieces, drafts, whole, min(start, drafts[whole].start), max(end, drafts[whole].end))
    elif inside and kind in ("statement", "export"):
        # `const a = 1, b = 2`: one piece each; the first takes what stands before it, the last what stands behind.
        first = True
        for index in inside:
            if not first and drafts[index].start < pieces[-1].end:
                continue
            _add_symbol(text, pieces, drafts, index, min(start, drafts[index].start) if first else drafts[index].start,
                        drafts[index].end)  # fmt: skip
            first = False
        pieces[-1].end = max(pieces[-1].end, end)
    else:
        if pieces and start < pieces[-1].end:
            start = pieces[-1].end
        at = start
        while (
            kind != "attribute" and pieces and pieces[-1].kind == "attribute" and not text[pieces[-1].end : at].strip()
        ):
            at = pieces.pop().start
        if kind == "statement" and start in modules:
            kind = "import"  # const x = require("y")
        name = f"import:{modules[start]}" if kind == "import" and start in modules else ""
        pieces.append(Piece(at, end, kind, name or _title(text, start, end)))


def _add_symbol(text: bytes, pieces: list[Piece], drafts: list[Draft], index: int, start: int, end: int) -> None:
    # Comments and attributes that turned out to belong to this definition leave their own pieces.
    while pieces and pieces[-1].start >= start:
        pieces.pop()
    if pieces and pieces[-1].end > start:
        last = pieces[-1]
        if last.symbol >= 0:
            start = last.end
        else:
            last.end = last.start + len(text[last.start : start].rstrip())
    if start < end:
        pieces.append(Piece(start, end, drafts[index].kind, drafts[index].name, index))


def _find_paragraphs(text: bytes, span: tuple[int, int]) -> list[Piece]:
    """Text without a grammar, cut at empty lines before what is not indented, once there is a screen of it."""
    pieces: list[Piece] = []
    at = span[0]
    for gap in _PARAGRAPH.finditer(text, *span):
        if gap.end() - at >= SCREEN_BYTES:
            _add_gap(text, pieces, at, gap.end())
            at = gap.end()
    _add_gap(text, pieces, at, span[1])
    return pieces


def _fill_gaps(text: bytes, span: tuple[int, int], pieces: list[Piece]) -> list[Piece]:
    """What no statement covered becomes a statement of its own, so that nothing is lost."""
    filled: list[Piece] = []
    at = span[0]
    for piece in pieces:
        _add_gap(text, filled, at, piece.start)
        filled.append(piece)
        at = piece.end
    _add_gap(text, filled, at, span[1])
    return filled


def _add_gap(text: bytes, pieces: list[Piece], start: int, end: int) -> None:
    gap = text[start:end]
    stripped = gap.strip()
    if stripped:
        start += len(gap) - len(gap.lstrip())
        pieces.append(Piece(start, start + len(stripped), "statement", _title(stripped, 0, len(stripped))))


# -- below -----------------------------------------------------------------------------------------


def _add_nested(roots: list[Piece], drafts: list[Draft]) -> list[Piece]:
    """Adds every body-bearing definition inside a root piece, outer before inner."""
    taken = {piece.symbol for piece in roots}
    inner = [i for i, draft in enumerate(drafts) if draft.body_start >= 0 and i not in taken]
    if not inner:
        return roots
    pieces: list[Piece] = []
    stack: list[int] = []
    sibling_end: dict[int, int] = {}
    at = 0
    for number, root in enumerate(roots):
        pieces.append(root)
        stack = [len(pieces) - 1]
        limit = roots[number + 1].start if number + 1 < len(roots) else 1 << 62
        while at < len(inner) and drafts[inner[at]].start < limit:
            draft = drafts[inner[at]]
            while len(stack) > 1 and pieces[stack[-1]].end <= draft.start:
                stack.pop()
            parent = stack[-1]
            holder = pieces[parent]
            start = max(draft.start, sibling_end.get(parent, 0), holder.start)
            at += 1
            # Equal spans share a chunk; in broken code what leaves its holder, or stands in an import, has none.
            if draft.end > holder.end or start >= draft.end or holder.kind == "import":
                continue
            if (start, draft.end) == (holder.start, holder.end) or holder.depth >= MAX_NEST:
                continue
            pieces.append(Piece(start, draft.end, draft.kind, draft.name, inner[at - 1], parent, holder.depth + 1))
            sibling_end[parent] = draft.end
            stack.append(len(pieces) - 1)
    return pieces


def _split_large(text: bytes, pieces: list[Piece], drafts: list[Draft], stub: str) -> list[tuple[int, ...]]:
    """Cuts what is too long even with its children collapsed into parts; returns the children of every piece."""
    children: list[list[int]] = [[] for _ in pieces]
    for number, piece in enumerate(pieces):
        if piece.parent >= 0:
            children[piece.parent].append(number)
    number = 0
    grew = False
    while number < len(pieces):
        piece = pieces[number]
        if piece.end - piece.start > MAX_CHARS and piece.kind != "part":
            size = piece.end - piece.start
            for child in children[number]:
                size += _stub_size(pieces[child], drafts, stub) - (pieces[child].end - pieces[child].start)
            if size > MAX_CHARS:
                _cut(text, pieces, children, number, drafts, stub)
                grew = True
        number += 1
    if grew:
        _reorder(pieces, children)
    return [tuple(numbers) for numbers in children]


def _stub_size(piece: Piece, drafts: list[Draft], stub: str) -> int:
    return len(drafts[piece.symbol].signature) + len(stub) if piece.symbol >= 0 else 1


def _cut(
    text: bytes, pieces: list[Piece], children: list[list[int]], number: int, drafts: list[Draft], stub: str
) -> None:
    """Groups the children of `number` into parts of at most PART_BYTES; gaps between them are cut at line ends."""
    piece, old = pieces[number], children[number]
    start = piece.start
    if piece.symbol >= 0 and piece.start < drafts[piece.symbol].body_start < piece.end:
        # The head stays with the piece itself, unless the head is what is long.
        start = min(drafts[piece.symbol].body_start, piece.start + PART_BYTES // 2)
    runs: list[tuple[int, int, list[int]]] = []
    run_start, size, held = start, 0, []
    cursor = start
    for child in [*old, -1]:
        gap_end = piece.end if child < 0 else pieces[child].start
        while size + gap_end - cursor > PART_BYTES:
            cut = _line_end(text, cursor, min(gap_end, cursor + max(PART_BYTES - size, 1)))
            runs.append((run_start, cut, held))
            run_start = cursor = cut
            size, held = 0, []
        size += max(gap_end - cursor, 0)
        if child >= 0:
            size += _stub_size(pieces[child], drafts, stub)
            held.append(child)
            cursor = pieces[child].end
            if size > PART_BYTES:
                runs.append((run_start, cursor, held))
                run_start, size, held = cursor, 0, []
    if run_start < piece.end:
        runs.append((run_start, piece.end, held))
    children[number] = []
    for count, (run_start, run_end, held) in enumerate(runs, 1):
        part = Piece(run_start, run_end, "part", f"{piece.name} part {count}", -1, number, piece.depth + 1)
        pieces.append(part)
        children.append(held)
        children[number].append(len(pieces) - 1)
        for child in held:
            pieces[child].parent = len(pieces) - 1
            _deepen(pieces, children, child)


def _deepen(pieces: list[Piece], children: list[list[int]], number: int) -> None:
    todo = [number]
    while todo:
        number = todo.pop()
        pieces[number].depth += 1
        todo += children[number]


def _line_end(text: bytes, start: int, limit: int) -> int:
    """The last line end in (start, limit], or the limit moved back to the start of a character."""
    at = text.rfind(b"\n", start, limit)
    if at >= start and at + 1 > start:
        return at + 1
    while limit > start + 1 and limit < len(text) and text[limit] & 0xC0 == 0x80:
        limit -= 1
    return max(limit, start + 1)


def _reorder(pieces: list[Piece], children: list[list[int]]) -> None:
    """Parts were appended; brings pieces back into source order, outer before inner."""
    order = sorted(range(len(pieces)), key=lambda n: (pieces[n].start, -pieces[n].end, pieces[n].depth))
    place = {old: new for new, old in enumerate(order)}
    for piece in pieces:
        if piece.parent >= 0:
            piece.parent = place[piece.parent]
    pieces[:] = [pieces[old] for old in order]
    children[:] = [[place[child] for child in children[old]] for old in order]


# -- what belongs to which chunk -------------------------------------------------------------------


def _assign_drafts(pieces: list[Piece], drafts: list[Draft]) -> None:
    """Every draft's chunk: its own, else its parent's, else the innermost piece around its name."""
    for number, piece in enumerate(pieces):
        if piece.symbol >= 0:
            drafts[piece.symbol].chunk = number + 1
    split = any(piece.kind == "part" for piece in pieces)
    loose = []
    for draft in drafts:
        if draft.chunk:
            continue
        if draft.parent >= 0 and draft.owner == -1 and not split:
            draft.chunk = drafts[draft.parent].chunk
        else:
            loose.append(draft)
    loose.sort(key=lambda draft: draft.name_start)
    for draft, holder in zip(loose, _find_holders(pieces, [draft.name_start for draft in loose]), strict=True):
        draft.chunk = holder + 1


def _find_holders(pieces: list[Piece], offsets: list[int]) -> list[int]:
    """For ascending offsets the innermost piece of each, -1 outside all."""
    found: list[int] = []
    stack: list[int] = []
    at = 0
    for offset in offsets:
        while at < len(pieces) and pieces[at].start <= offset:
            start = pieces[at].start
            while stack and pieces[stack[-1]].end <= start:
                stack.pop()
            stack.append(at)
            at += 1
        while stack and pieces[stack[-1]].end <= offset:
            stack.pop()
        found.append(stack[-1] if stack else -1)
    return found


def _used_imports(pieces: list[Piece], imports: Sequence[Import], references: References) -> list[tuple[int, ...]]:
    """For every piece the imports whose names its code uses; an import itself uses none."""
    none: list[tuple[int, ...]] = [()] * len(pieces)
    bound: dict[str, list[int]] = {}
    for number, item in enumerate(imports):
        for binding in item.bindings:
            bound.setdefault(binding.local, []).append(number)
    wanted = {i: bound[name] for i, name in enumerate(references.names) if name in bound} if bound else {}
    if not wanted:
        return none
    ids, offsets, roles = array("I", references.name_ids), array("I", references.offsets), references.roles
    flags = bytes(number in wanted for number in range(len(references.names)))
    # A name inside an import statement is no use of it.
    places = [at for at in compress(range(len(ids)), map(flags.__getitem__, ids)) if roles[at] != _IMPORT]
    used: dict[int, set[int]] = {}
    for holder, at in zip(_find_holders(pieces, [offsets[at] for at in places]), places, strict=True):
        if holder >= 0:
            used.setdefault(holder, set()).update(wanted[ids[at]])
    # Children stand behind their parents, so one pass from the back carries everything upwards.
    for number in range(len(pieces) - 1, -1, -1):
        if number in used and pieces[number].parent >= 0:
            used.setdefault(pieces[number].parent, set()).update(used[number])
    for number, found in used.items():
        if pieces[number].kind not in ("import", "comment"):
            none[number] = tuple(sorted(found))
    return none


# -- identity --------------------------------------------------------------------------------------


_IMPORT = ROLES.index("import")


class _Hashes:
    """Span and context hashes of contracts.md §2 over text with `\\n` line ends."""

    def __init__(self, text: bytes, first: int, last: int) -> None:
        self._text = text
        self._first, self._last = first, last  # context ends where the document does, also inside a container
        self._crlf = b"\r" in text
        self._ascii = text.isascii()

    def span(self, start: int, end: int) -> str:
        piece = self._text[start:end]
        if self._crlf:
            piece = piece.replace(b"\r\n", b"\n")
        return xxh64_hexdigest(b"span\0" + piece)

    def context(self, start: int, end: int, window: int) -> tuple[str, str]:
        """Hashes of `window` characters before and behind; empty at the edge of the file."""
        text, first, last = self._text, self._first, self._last
        if self._ascii and not self._crlf:
            before, behind = text[max(first, start - window) : start], text[end : min(last, end + window)]
        else:
            # Characters, not bytes: four bytes each at most, and line ends may fold two into one.
            room = window * 8
            before = text[max(first, start - room) : start].decode("utf-8", "ignore")
            before = before.replace("\r\n", "\n")[-window:].encode()
            behind = text[end : min(last, end + room)].decode("utf-8", "ignore")
            behind = behind.replace("\r\n", "\n")[:window].encode()
        return (
            xxh64_hexdigest(b"pre\0" + before) if before else "",
            xxh64_hexdigest(b"post\0" + behind) if behind else "",
        )


def _resolve_uids(hashes: _Hashes, spans: list[tuple[int, int]]) -> list[tuple[str, str, str, str, str]]:
    """(span_hash, pre_hash, post_hash, uid_suffix, collision_of) of every span; spans[0] is the module's.

    Twins get context hashes, then a wider context, then their ordinal in source order.
    """
    span_hashes = [hashes.span(start, end) for start, end in spans]
    contexts = [hashes.context(start, end, 128) for start, end in spans]
    groups: dict[str, list[int]] = {}
    for number in range(1, len(spans)):
        groups.setdefault(span_hashes[number], []).append(number)
    suffixes = list(span_hashes)
    for twins in groups.values():
        if len(twins) == 1:
            continue
        for window in (128, 512):
            for number in twins:
                context = contexts[number] if window == 128 else hashes.context(*spans[number], window)
                suffixes[number] = ":".join(part for part in (span_hashes[number], *context) if part)
            again: dict[str, list[int]] = {}
            for number in twins:
                again.setdefault(suffixes[number], []).append(number)
            twins = [number for same in again.values() if len(same) > 1 for number in same]
            if not twins:
                break
        counts: dict[str, int] = {}
        for number in twins:
            base = suffixes[number]
            counts[base] = counts.get(base, 0) + 1
            suffixes[number] = f"{base}:ord{counts[base]}"
    # A file that is one statement: the module chunk gives way, so that the statement's uid survives an edit around it.
    if span_hashes[0] in groups:
        suffixes[0] = f"{span_hashes[0]}:ord0"
    return [
        (span_hash, *context, suffix, span_hash if suffix != span_hash else "")
        for span_hash, context, suffix in zip(span_hashes, contexts, suffixes, strict=True)
    ]
