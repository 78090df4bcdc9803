"""Which spans of a document do not run when it is loaded: bodies of functions, and what stands under a guard for
programs (`if __name__ == "__main__"`) or for type checkers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import msgspec

from cq.language import load_table
from cq.languages.registry import get_language
from cq.syntax.tree import (
    Ancestors,
    Node,
    Query,
    all_children_of,
    end_of,
    field_of,
    kind_of,
    root_of,
    start_of,
    text_of,
)

_PROGRAM = re.compile(
    rb"""\(?\s*(?:__name__\s*==\s*['"]__main__['"]|['"]__main__['"]\s*==\s*__name__|(?:\w+\.)?TYPE_CHECKING
    |require\.main\s*===?\s*module|module\s*===?\s*require\.main|import\.meta\.(?:main|vitest))\s*\)?\s*\Z""",
    re.VERBOSE,
)


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `loading` of a language. Where it has words, a text without any has only functions that wait."""

    query: str = ""
    words: tuple[str, ...] = ()


def find_late(text: bytes, language: str, ranges: tuple[tuple[int, int], ...] = ()) -> list[tuple[int, int]]:
    """By start, without those inside another. Total: what cannot be parsed in time has none."""
    spoken = get_language(language)
    table = load_table(language, "loading", Table)
    needed = not table.words or any(word.encode() in text for word in table.words)
    tree = spoken.parse(text, ranges) if spoken is not None and table.query and needed else None
    if tree is None:
        return []
    root = root_of(tree)
    found, _ = _query(language).find_captures(root)
    late = list(found.get("late", ()))
    ancestors = Ancestors(root)
    bodies = sorted(found.get("called", ()), key=start_of)
    late += [body for body in bodies if not _is_called(body, ancestors.above(body))]
    late += [
        node
        for node in found.get("field", ())
        if not any(kind_of(child) == "static" for child in all_children_of(node))
    ]
    for node in found.get("if", ()):
        condition = field_of(node, "condition")
        if condition is not None and _PROGRAM.match(text[start_of(condition) : end_of(condition)][:200]):
            late += [body] if (body := field_of(node, "consequence")) is not None else []
    spans: list[tuple[int, int]] = []
    for start, end in sorted({(start_of(node), end_of(node)) for node in late}, key=lambda span: (span[0], -span[1])):
        if not spans or start >= spans[-1][1]:
            spans.append((start, end))
    return spans


@cache
def _query(language: str) -> Query:
    spoken = get_language(language)
    assert spoken is not None
    return spoken.grammar.compile(load_table(language, "loading", Table).query)


def _is_called(body: Node, around: Iterator[Node]) -> bool:
    """`(function () { … })()`, `(() => { … }).call(this)`"""
    function, at = next(around, None), next(around, None)
    while at is not None and kind_of(at) == "parenthesized_expression":
        at = next(around, None)
    if at is not None and kind_of(at) == "member_expression":
        name = field_of(at, "property")
        at = next(around, None) if name is not None and text_of(name) in (b"call", b"apply") else None
    callee = field_of(at, "function") if at is not None and kind_of(at) == "call_expression" else None
    return callee is not None and function is not None and start_of(callee) <= start_of(function) < end_of(callee)
