"""Source as a reader sees it: which stretches are keywords, strings, comments, …, by the `highlights.scm` that the
wheel of a grammar brings; by the kinds of nodes where it brings none."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pkgutil import get_data
from typing import NamedTuple

import msgspec

from cq.language import describe, load_table
from cq.syntax.language import Language
from cq.syntax.tree import Node, Query, all_child_count_of, end_of, is_named, kind_of, root_of, start_of, walk

CLASSES = (
    "attribute", "comment", "constant", "escape", "function", "keyword", "label", "module", "number", "property",
    "string", "tag", "type",
)  # fmt: skip
# What queries call otherwise.
_NAMED = {
    "boolean": "constant", "character": "string", "conditional": "keyword", "constructor": "type",
    "exception": "keyword", "field": "property",
    "float": "number", "function_definition": "function", "include": "keyword", "method": "function",
    "namespace": "module", "preproc": "keyword", "repeat": "keyword", "storageclass": "keyword", "text": "string",
    "decorator": "attribute", "symbol": "constant",
}  # fmt: skip


class Token(NamedTuple):
    """A stretch of bytes and its class, one of CLASSES."""

    start: int
    end: int
    kind: str


class Highlights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `highlights` of a language: its queries, where those of its grammar build on others."""

    queries: tuple[str, ...] = ()  # package/file, below the folder `queries` of the package


def find_tokens(language: Language, text: bytes, ranges: tuple[tuple[int, int], ...] = ()) -> list[Token]:
    """In order; none lies in another. Of a text that cannot be parsed none."""
    tree = language.parse(language.respelled(text), ranges)
    if tree is None:
        return []
    query = _load_query(language)
    if query is None:
        return list(_find_plain(root_of(tree)))
    matches, _ = query.find_matches(root_of(tree))
    spans = [
        (start_of(node), -end_of(node), number, name)
        for number, captures in matches
        for name, nodes in captures.items()
        if name[0] != "_"
        for node in nodes
    ]
    return [token for token in _flatten(sorted(spans)) if token.kind]


def find_plain_tokens(language: Language, text: bytes) -> list[Token]:
    """Keywords, strings and comments alone, at a fraction of the cost."""
    tree = language.parse(text)
    return [] if tree is None else list(_find_plain(root_of(tree)))


def _find_plain(root: Node) -> Iterator[Token]:
    done = 0
    for node in walk(root, lambda node: not _find_class(node)):
        kind = _find_class(node)
        if kind and start_of(node) >= done:
            done = end_of(node)
            yield Token(start_of(node), done, kind)


def _find_class(node: Node) -> str:
    kind, leaf = kind_of(node), all_child_count_of(node) == 0
    if "comment" in kind:
        return "comment"
    if is_named(node):
        is_whole = leaf or kind in ("string", "string_literal", "raw_string_literal")
        return "string" if "string" in kind and is_whole else ""
    return "keyword" if leaf and kind.isalpha() else ""


def _flatten(spans: list[tuple[int, int, int, str]]) -> Iterator[Token]:
    """What lies inside another stretch cuts it; of several for one stretch the last pattern decides, as the queries are
    written for."""
    open_: list[tuple[int, str]] = []  # end and class of the stretches around a place
    at = 0
    for number, (start, negative_end, _, name) in enumerate(spans):
        following = spans[number + 1] if number + 1 < len(spans) else None
        if following is not None and following[:2] == (start, negative_end):
            continue
        while open_ and open_[-1][0] <= start:
            end, kind = open_.pop()
            if at < end:
                yield Token(at, end, kind)
                at = end
        if open_ and at < start:
            yield Token(at, start, open_[-1][1])
        at = max(at, start)
        end = min(-negative_end, open_[-1][0]) if open_ else -negative_end
        open_.append((end, _name_class(name)))
    while open_:
        end, kind = open_.pop()
        if at < end:
            yield Token(at, end, kind)
            at = end


def _name_class(name: str) -> str:
    first = name.partition(".")[0]
    first = _NAMED.get(first, first)
    return first if first in CLASSES else ""


@cache
def _load_query(language: Language) -> Query | None:
    named = load_table(language.id, "highlights", Highlights).queries
    named = named or (f"{describe(language.id).grammar}/highlights.scm",)
    sources: list[str] = []
    for name in named:
        package, _, file = name.partition("/")
        try:
            sources.append((get_data(package, f"queries/{file}") or b"").decode())
        except OSError:
            return None
    return language.grammar.compile("\n".join(sources))
