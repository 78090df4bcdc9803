"""Which spans of a document do not run when it is loaded: bodies of functions, and what stands under a guard for
programs (`if __name__ == "__main__"`) or for type checkers."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

import msgspec
from tree_sitter import Query, QueryCursor

from cq.language import load_table
from cq.languages.registry import get_language
from cq.syntax.ancestors import Ancestors
from cq.syntax.language import PARSE_MICROS

if TYPE_CHECKING:
    from tree_sitter import Node

_PROGRAM = re.compile(
    rb"""\(?\s*(?:__name__\s*==\s*['"]__main__['"]|['"]__main__['"]\s*==\s*__name__|(?:\w+\.)?TYPE_CHECKING
    |require\.main\s*===?\s*module|module\s*===?\s*require\.main|import\.meta\.(?:main|vitest))\s*\)?\s*\Z""",
    re.VERBOSE,
)
_MAX_STATES = 1024


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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        cursor = QueryCursor(_query(language), match_limit=_MAX_STATES, timeout_micros=PARSE_MICROS)
    found = cursor.captures(tree.root_node)
    late = list(found.get("late", ()))
    ancestors = Ancestors(tree.root_node)
    bodies = sorted(found.get("called", ()), key=lambda body: body.start_byte)
    late += [body for body in bodies if not _is_called(body, ancestors.above(body))]
    late += [node for node in found.get("field", ()) if not any(child.type == "static" for child in node.children)]
    for node in found.get("if", ()):
        condition = node.child_by_field_name("condition")
        if condition is not None and _PROGRAM.match(text[condition.start_byte : condition.end_byte][:200]):
            late += [body] if (body := node.child_by_field_name("consequence")) is not None else []
    spans: list[tuple[int, int]] = []
    for start, end in sorted({(node.start_byte, node.end_byte) for node in late}, key=lambda span: (span[0], -span[1])):
        if not spans or start >= spans[-1][1]:
            spans.append((start, end))
    return spans


@cache
def _query(language: str) -> Query:
    spoken = get_language(language)
    assert spoken is not None
    return Query(spoken.grammar, load_table(language, "loading", Table).query)


def _is_called(body: Node, around: Iterator[Node]) -> bool:
    """`(function () { … })()`, `(() => { … }).call(this)`"""
    function, at = next(around, None), next(around, None)
    while at is not None and at.type == "parenthesized_expression":
        at = next(around, None)
    if at is not None and at.type == "member_expression":
        name = at.child_by_field_name("property")
        at = next(around, None) if name is not None and name.text in (b"call", b"apply") else None
    callee = at.child_by_field_name("function") if at is not None and at.type == "call_expression" else None
    return callee is not None and function is not None and callee.start_byte <= function.start_byte < callee.end_byte
