"""Patterns of Rust: the names that they bind, and until where."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from cq.languages.rust.paths import read_path
from cq.model.code import Choice, Iterated, PartOf, TuplePart, Value
from cq.syntax.code import MAX_NESTED
from cq.syntax.tree import Node, children_of, end_of, field_of, kind_of, start_of

if TYPE_CHECKING:
    from cq.syntax.collect import Collector


def find_names(collector: Collector, pattern: Node) -> list[Node]:
    """Every name that the pattern of a parameter binds, in source order."""
    found, todo = [], [pattern]
    while todo:
        node = todo.pop()
        kind = kind_of(node)
        if kind == "identifier" or kind == "shorthand_field_identifier":
            if kind != "identifier" or not 65 <= collector.text[start_of(node)] <= 90:
                found.append(node)
        elif kind == "tuple_struct_pattern":
            todo += reversed(children_of(node)[1:])
        elif kind in _PATTERNS:
            todo += reversed(children_of(node))
    return found


_PATTERNS = frozenset(
    {"tuple_pattern", "slice_pattern", "struct_pattern", "field_pattern", "ref_pattern", "mut_pattern", "or_pattern",
     "reference_pattern", "captured_pattern"}
)  # fmt: skip
IN_BLOCK = -2  # Bind.end until blocks are known: the end of the block around it
IN_NEXT_BLOCK = -3  # the end of the block that opens behind it: `if let`
_MAX_NAMES = 64  # of one pattern
_SIMPLE_PATTERN = re.compile(rb"(?:&|ref\b|mut\b|\s)*((?:r#)?[a-z_]\w*)")
_ONE_INSIDE = re.compile(rb"([A-Za-z_][\w:]*)\(\s*(?:&|ref\b|mut\b|\s)*([a-z_]\w*)\s*\)")
_NO_NAMES = frozenset({b"_", b"true", b"false", b"self", b"crate", b"super"})


def bind_pattern(collector: Collector, node: Node, value: Value, start: int, statement: int, end: int) -> None:
    """Binds every name of a pattern to its part of the value, from `start` to `end`."""
    text, binds = collector.text, collector.code.binds
    first, last = start_of(node), end_of(node)
    if last - first < 100:
        found = _SIMPLE_PATTERN.fullmatch(text, first, last)
        if found is not None:
            if found[1] not in _NO_NAMES:
                binds.append((start, statement, found[1].decode().removeprefix("r#"), value, end))
            return
        found = _ONE_INSIDE.fullmatch(text, first, last)
        if found is not None:
            if found[2] not in _NO_NAMES:
                part = PartOf(value, found[1].decode(), "0")
                binds.append((start, statement, found[2].decode(), part, end))
            return
    names: dict[str, list[Value]] = {}
    todo: list[tuple[Node, Value, int]] = [(node, value, 0)]
    while todo and len(names) < _MAX_NAMES:
        inner, part, depth = todo.pop()
        if depth <= MAX_NESTED:
            todo += reversed(
                [(child, what, depth + 1) for child, what in _split_pattern(collector, inner, part, names)]
            )
    for name, values in names.items():
        binds.append((start, statement, name, values[0] if len(values) == 1 else Choice(tuple(values)), end))


def _split_pattern(
    collector: Collector, node: Node, value: Value, names: dict[str, list[Value]]
) -> Iterable[tuple[Node, Value]]:
    kind, text = kind_of(node), collector.text
    if kind == "identifier" or kind == "shorthand_field_identifier":
        word = text[start_of(node) : end_of(node)]
        if word and not 65 <= word[0] <= 90 and word not in _NO_NAMES:
            names.setdefault(word.decode("utf-8", "replace").removeprefix("r#"), []).append(value)
        return ()
    children = [child for child in children_of(node) if not kind_of(child).endswith("comment")]
    if kind in ("match_pattern", "or_pattern", "ref_pattern", "mut_pattern", "reference_pattern", "captured_pattern"):
        # A guard stands beside the pattern; `x @ P` binds x to the whole.
        kept = children[:1] if kind == "match_pattern" else children
        return [(child, value) for child in kept if kind_of(child) != "mutable_specifier"]
    if kind == "tuple_pattern":
        open_end = any(kind_of(child) == "remaining_field_pattern" for child in children)
        return [(c, None if open_end else TuplePart(value, n)) for n, c in enumerate(children)]
    if kind == "slice_pattern":
        return [(child, value if kind_of(child) == "captured_pattern" else Iterated(value)) for child in children]
    path = field_of(node, "type")
    if path is None:
        return ()
    written = read_path(text[start_of(path) : end_of(path)])
    if kind == "tuple_struct_pattern":
        rest = children[1:]
        cut = next((n for n, c in enumerate(rest) if kind_of(c) == "remaining_field_pattern"), len(rest))
        return [(c, PartOf(value, written, str(n)) if n < cut else None) for n, c in enumerate(rest)]
    if kind == "struct_pattern":
        found: list[tuple[Node, Value]] = []
        for child in children[1:]:
            name = field_of(child, "name") if kind_of(child) == "field_pattern" else None
            if name is not None:
                key = collector.slice(start_of(name), end_of(name)).removeprefix("r#")
                inner = field_of(child, "pattern") or name
                found.append((inner, PartOf(value, written, key)))
        return found
    return ()


def close_binds(collector: Collector) -> None:
    """Gives the bindings of `let` and `if let` the end of their block, in one pass over the braces."""
    binds, text = collector.code.binds, collector.text
    waiting = sorted((bind[0], number) for number, bind in enumerate(binds) if bind[4] <= IN_BLOCK)
    if not waiting:
        return
    finish = collector.span[1]
    blocks: list[list[int]] = [[]]
    following: list[int] = []
    ends: dict[int, int] = {}
    at, (coming, _) = 0, waiting[0]
    offset = collector.span[0] - 1
    # A search for one byte is ten times as fast as a pattern.
    for piece in collector.paint().replace(b"}", b"{").split(b"{")[:-1]:
        offset += len(piece) + 1
        while coming <= offset:
            number = waiting[at][1]
            (blocks[-1] if binds[number][4] == IN_BLOCK else following).append(number)
            at += 1
            coming = waiting[at][0] if at < len(waiting) else finish + 1
        if text[offset] == 123:
            blocks.append(following)
            following = []
        elif len(blocks) > 1:
            ends.update(dict.fromkeys(blocks.pop(), offset))
    for number, bind in enumerate(binds):
        if bind[4] <= IN_BLOCK:
            binds[number] = (*bind[:4], ends.get(number, finish))
