"""What a mention is, by its position: from the facts, else from the syntax tree, else, without a grammar, by its line.

A mention is classed by the identifier it begins in, or else by the first one it holds.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections import OrderedDict
from functools import lru_cache
from typing import TYPE_CHECKING

from cq.language import describe
from cq.languages.registry import get_language
from cq.model.answer import EVIDENCE
from cq.model.facts import QUIET, ROLES, Import, Symbol
from cq.syntax.tree import (
    Node,
    Tree,
    all_child_count_of,
    child_count_of,
    children_of,
    find_path,
    is_named,
    kind_of,
    root_of,
    start_of,
)

if TYPE_CHECKING:
    from cq.snapshot.files import HeldFile
    from cq.store.codec import Document

# What a mention can be, with its weight in the ranking. The last four are not code.
WEIGHTS: dict[str, float] = {
    "definition": 1.0, "callsite": 0.8, "import": 0.7, "from_import": 0.7, "decorator": 0.7, "assignment": 0.6,
    "reference": 0.5, "parameter": 0.5, "annotation": 0.4, "type_use": 0.4, "keyword_argument": 0.4,
    "text": 0.3, "docstring": 0.2, "comment": 0.1, "string": 0.1,
}  # fmt: skip
NON_CODE = ("docstring", "comment", "string", "text")
ROLE_WEIGHTS = {"src": 1.0, "lib": 0.9, "test": 0.5, "doc": 0.3}
DEPTH_PENALTY = 0.05

_FROM = frozenset({"from", "star", "reexport", "use"})
_BY_ROLE = {
    "reference": "reference", "attribute": "reference", "label": "reference",
    "keyword": "keyword_argument", "assignment": "assignment",
}  # fmt: skip
# Up to a name: `@a.b.` where a statement begins, or, elsewhere than in Python, before a parameter.
_DECORATES = (re.compile(rb"(?:^|[\s(,])@[\w.]*\Z"), re.compile(rb"(?:^|\n)[ \t]*@[ \t]*[\w.]*\Z"))
_HOLDERS = frozenset({"function", "method"})
_PROSE = re.compile(r"\.(?:txt|text|rst|po|pot|csv|tsv|log|tex|adoc|org|svg|xml)$", re.IGNORECASE)


class Hit:
    """One mention. `symbol` and `scope` are places in the document's symbols, -1 for none. `anchor` decides its class:
    where it begins, and for a dotted name where the last of them does."""

    __slots__ = (
        "anchor",
        "category",
        "confidence",
        "depth",
        "document",
        "end",
        "file",
        "language",
        "scope",
        "score",
        "start",
        "symbol",
        "tier",
    )

    def __init__(self, file: HeldFile, document: int, start: int, end: int, anchor: int) -> None:
        self.anchor = anchor
        self.file = file
        self.document = document
        self.start = start
        self.end = end
        self.language = file.language
        self.category = "text"
        self.tier = "text"
        self.symbol = self.scope = -1
        self.depth = 0
        self.confidence = EVIDENCE["text"]
        self.score = 0.0

    @property
    def order(self) -> tuple[float, str, int]:
        """Best first; ties by path and position."""
        return -self.score, self.file.path, self.start


def classify(file: HeldFile, spans: list[tuple[int, int]], last: int = 0) -> list[Hit]:
    """One hit per span, in their order, with category, scope and score. `last` is the length of a last name."""
    documents = file.documents if file.counts.get("documents", 2) > 1 else None
    by_document: dict[int, list[Hit]] = {}
    hits: list[Hit] = []
    for start, end in spans:
        number = _find_document(documents, start) if documents else 0
        hit = Hit(file, number, start, end, end - last if last else start)
        if documents:
            hit.language = documents[number].language
        hits.append(hit)
        by_document.setdefault(number, []).append(hit)
    for number, group in by_document.items():
        if get_language(group[0].language) is None:
            for hit in group:
                _classify_line(hit)
        else:
            _classify_document(file, number, group)
    for hit in hits:
        weight = WEIGHTS[hit.category] * ROLE_WEIGHTS.get(file.role, 0.8) * hit.confidence
        hit.score = round(weight - hit.depth * DEPTH_PENALTY, 4)
    return hits


def _find_document(documents: list[Document], offset: int) -> int:
    """The innermost: documents are listed outer before inner."""
    found = 0
    for number, document in enumerate(documents):
        segment = document.segment
        if segment is not None and any(start <= offset < end for start, end in segment.ranges):
            found = number
    return found


def _classify_document(file: HeldFile, number: int, hits: list[Hit]) -> None:
    symbols = file.symbols[number]
    references = file.references[number]
    offsets, ids = array("I", references.offsets), array("I", references.name_ids)
    lengths = [len(name.encode()) for name in references.names]
    defined = {symbol.name_start: place for place, symbol in enumerate(symbols)}
    starts = sorted(defined)
    has_docstrings = describe(hits[0].language).has_docstrings
    imports: tuple[Import, ...] | None = None

    def classify_at(hit: Hit, first: int, last: int) -> bool:
        """By the first identifier that lies in [first, last) with at least one byte."""
        nonlocal imports
        at = bisect_right(starts, first) - 1
        for start in starts[max(at, 0) : at + 2]:
            symbol = symbols[defined[start]]
            if start < last and first < symbol.name_end:
                hit.symbol = defined[start]
                hit.category = _class_of(symbol, symbols)
                return True
        at = bisect_right(offsets, first) - 1
        if at < 0 or offsets[at] + lengths[ids[at]] <= first:
            at += 1  # the first one inside the match
        if at >= len(offsets) or offsets[at] >= last:
            return False
        role = ROLES[references.roles[at]]
        if role == "import":
            if imports is None:
                imports = file.imports[number][0]
            hit.category = _class_of_import(imports, offsets[at])
        elif role == "type":
            hit.category = "annotation" if has_docstrings else "type_use"
        elif role in ("call", "decorator"):
            # Of `@a.b(c)` only `b` decorates: `a` and `c` are looked up.
            start, end = offsets[at], offsets[at] + lengths[ids[at]]
            decorates = _DECORATES[has_docstrings].search(file.text, max(0, start - 200), start)
            if decorates and file.text[end : end + 1] != b".":
                hit.category = "decorator"
            else:
                hit.category = "callsite" if role == "call" else "reference"
        else:
            hit.category = _BY_ROLE[role]
        return True

    rest: list[Hit] = []
    for hit in hits:
        hit.confidence = EVIDENCE["syntax"]
        hit.tier = "facts"
        # A match may begin in a string and hold code further on; what it begins in decides.
        if not classify_at(hit, hit.anchor, hit.anchor + 1):
            rest.append(hit)
    if rest:
        quiet = references.quiet
        opens, closes = (array("I", quiet.starts), array("I", quiet.ends)) if quiet is not None else ((), ())
        tree = parse(file, number) if quiet is None else None
        for hit in rest:
            if quiet is not None:
                at = bisect_right(opens, hit.anchor) - 1
                category = QUIET[quiet.kinds[at]] if at >= 0 and hit.anchor < closes[at] else ""
                if category == "comment" and _is_doc_comment(file.text, opens[at]):
                    category = "docstring"
            else:
                hit.tier = "tree"
                category = "" if tree is None else _class_of_node(file, hit, tree)
            if category == "string":
                if imports is None:
                    imports = file.imports[number][0]
                category = _class_of_string(imports, file.text, hit)
            if category:
                hit.category = category
            elif classify_at(hit, hit.start, hit.end):
                hit.tier = "facts"
            elif tree is None and quiet is None:
                _classify_line(hit)
    _find_scopes(symbols, hits)


def _class_of(symbol: Symbol, symbols: tuple[Symbol, ...]) -> str:
    if symbol.kind in ("parameter", "type_parameter"):
        return "parameter"
    if symbol.kind in ("variable", "constant") and symbol.parent >= 0:
        holder = symbols[symbol.parent]
        if holder.kind_group in _HOLDERS:
            return "assignment"  # a local: bound here, visible nowhere else
    return "definition"


def _class_of_import(imports: tuple[Import, ...], offset: int) -> str:
    for item in imports:
        if item.start <= offset < item.end:
            return "from_import" if item.kind in _FROM else "import"
    return "import"


def _class_of_string(imports: tuple[Import, ...], text: bytes, hit: Hit) -> str:
    """The module's name is a string in some languages: `import x from "name"`, `require("name")`."""
    for item in imports:
        if item.start <= hit.start and hit.end <= item.end:
            match = text[hit.start : hit.end].decode("utf-8", "replace")
            if match in item.module:
                return "from_import" if item.kind in _FROM else "import"
    return "string"


_trees: OrderedDict[tuple[str, str, int], Tree | None] = OrderedDict()
_MAX_TREES = 64


def parse(file: HeldFile, document: int) -> Tree | None:
    """The syntax tree of a document, kept for the next question about the same text."""
    item = file.documents[document]
    key = (file.hash, item.language, document)
    if key in _trees:
        _trees.move_to_end(key)
        return _trees[key]
    language = get_language(item.language)
    tree = language.parse(file.text, item.segment.ranges if item.segment else ()) if language else None
    _trees[key] = tree
    while len(_trees) > _MAX_TREES:
        _trees.popitem(last=False)
    return tree


@lru_cache(maxsize=_MAX_TREES)
def parse_piece(name: str, piece: bytes) -> Tree | None:
    """The tree of a part of a document that can stand alone."""
    language = get_language(name)
    return language.parse(piece) if language else None


_STRINGS = re.compile(
    r"string|^literal$|heredoc|char_literal|character_literal|regex|rune_literal|_scalar$|^text$|attribute_value"
)
_HOLES = re.compile(
    r"interpolation|substitution|^interpolated_expression$|^expansion$|^command_substitution$|^format_expression$"
)


def _class_of_node(file: HeldFile, hit: Hit, tree: Tree) -> str:
    """Comment, docstring or string; text for a keyword or a sign; "" for code that the facts know better."""
    path = find_path(root_of(tree), hit.anchor, hit.anchor + 1)
    innermost = path[-1]
    while path:
        node = path.pop()
        kind = kind_of(node)
        if is_named(node):
            if "comment" in kind or kind == "marginalia":
                return "docstring" if _is_doc_comment(file.text, start_of(node)) else "comment"
            if _HOLES.search(kind):
                break
            if _STRINGS.search(kind) and kind != "string_interpolation":
                return "docstring" if describe(hit.language).has_docstrings and _is_docstring(path) else "string"
    if is_named(innermost) and "identifier" not in kind_of(innermost) and all_child_count_of(innermost):
        return ""
    return "reference" if "identifier" in kind_of(innermost) else ""


def _is_doc_comment(text: bytes, start: int) -> bool:
    """By its mark alone, in every language: `/** */`, `///` and Rust's `//!` and `/*!`."""
    head = text[start : start + 5]
    return head.startswith((b"/**", b"///", b"//!", b"/*!")) and not head.startswith((b"/**/", b"/***", b"////"))


def _is_docstring(around: list[Node]) -> bool:
    """Whether a string with these nodes around it, the root first, is the first statement of a module, class or
    function, and nothing but a string."""
    while around and kind_of(around[-1]) in ("string", "concatenated_string", "parenthesized_expression"):
        around.pop()
    if len(around) < 2:
        return False
    statement, block = around[-1], around[-2]
    if kind_of(statement) != "expression_statement" or child_count_of(statement) != 1:
        return False
    first = next((child for child in children_of(block) if kind_of(child) != "comment"), None)
    if first is None or start_of(first) != start_of(statement):
        return False
    if kind_of(block) == "module":
        return True
    owner = around[-3] if len(around) > 2 else None
    return (
        kind_of(block) == "block"
        and owner is not None
        and kind_of(owner) in ("function_definition", "class_definition")
    )


_COMMENT = re.compile(r"\s*(?:#|//|--|;|%|\*|/\*|<!--)")
_DEFINES = re.compile(
    r"(?:^|\s)(?:def|sub|func|fun|function|class|module|struct|trait|interface|defp|defmodule|proc)\s+$"
)
_IMPORTS = re.compile(r"\s*(?:import|from|use|require|include|using|#include)\b")


def _classify_line(hit: Hit) -> None:
    """For a file without a grammar: how the line looks. Prose is text, whatever it looks like."""
    hit.tier, hit.category, hit.confidence = "text", "text", EVIDENCE["text"]
    text = hit.file.text
    if hit.file.role == "doc" or _PROSE.search(hit.file.path):
        return
    start = text.rfind(b"\n", 0, hit.start) + 1
    before = text[start : hit.start].decode("utf-8", "replace")
    after = text[hit.end : hit.end + 40]
    if _COMMENT.match(before):
        category = "comment"
    elif _DEFINES.search(before):
        category = "definition"
    elif _IMPORTS.match(before):
        category = "import"
    elif after.lstrip(b" \t").startswith(b"("):
        category = "callsite"
    else:
        return
    hit.category, hit.confidence = category, EVIDENCE["heuristic"]


def _find_scopes(symbols: tuple[Symbol, ...], hits: list[Hit]) -> None:
    """The innermost definition whose text, decorators apart, holds each hit; its own name lies in its parent's."""
    opens = sorted((s.head, -s.end, place) for place, s in enumerate(symbols) if s.body_start >= 0)
    stack: list[tuple[int, int]] = []
    at = 0
    for hit in sorted(hits, key=lambda hit: hit.start):
        while at < len(opens) and opens[at][0] <= hit.start:
            head, end, place = opens[at]
            while stack and stack[-1][0] <= head:
                stack.pop()
            stack.append((-end, place))
            at += 1
        while stack and stack[-1][0] <= hit.start:
            stack.pop()
        if hit.symbol >= 0:
            hit.scope = symbols[hit.symbol].parent
            hit.depth = symbols[hit.symbol].depth
        elif stack:
            hit.scope = stack[-1][1]
            hit.depth = symbols[hit.scope].depth + 1
