"""Syntax trees: the one module that knows tree-sitter. The rest holds nodes and asks about them by the verbs below; to
the type checker a Node has no attributes at all.

What it keeps to itself: positions are offsets in bytes, since `start_point` and its like crash; so does a cursor that
is asked for a first child where there is none, and `progress_callback`, which is why parses are bounded by a clock.
`parent` and the siblings of a node walk down from the root each time: a loop over them costs the square of the depth,
for every node the cube. So there is no such verb: `find_path` and `Ancestors` tell what stands around a place.

The verbs for plain attributes are getters written in C, and those for methods the methods themselves: there are
millions of such questions in a large repository, and a call of a Python function each would double their price.
"""

from __future__ import annotations

import importlib
import time
import warnings
from collections.abc import Callable, Collection, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, cast, final

import tree_sitter

# A parse is bounded by the size of its text; the clock only stops what no size explains: error recovery can
# cost the square of a text, and memory with it. A real file needs a tenth of this.
PARSE_MICROS = 10_000_000
SMALL_BYTES = 200_000
SMALL_MICROS = 2_000_000
MAX_STATES = 1024  # matches of one query that may be open at once; only pathological nesting needs more

if TYPE_CHECKING:

    @final
    class Node:
        """A node of a tree."""

    @final
    class Tree:
        """A tree; its nodes keep it alive."""

else:
    Node, Tree = tree_sitter.Node, tree_sitter.Tree


class Span(NamedTuple):
    """A place that no node of its own has: one can ask for its start and its end as if it were a node."""

    start_byte: int
    end_byte: int
    type: str = ""


_raw: Any = tree_sitter.Node

root_of: Callable[[Tree], Node] = attrgetter("root_node")
start_of: Callable[[Node | Span], int] = attrgetter("start_byte")
end_of: Callable[[Node | Span], int] = attrgetter("end_byte")
kind_of: Callable[[Node | Span], str] = attrgetter("type")
kind_id_of: Callable[[Node], int] = attrgetter("kind_id")  # the number of its kind: see Grammar.find_kind
text_of: Callable[[Node], bytes | None] = attrgetter("text")
children_of: Callable[[Node], list[Node]] = attrgetter("named_children")
child_count_of: Callable[[Node], int] = attrgetter("named_child_count")
all_children_of: Callable[[Node], list[Node]] = attrgetter("children")  # with words and signs
all_child_count_of: Callable[[Node], int] = attrgetter("child_count")
field_of = cast("Callable[[Node, str], Node | None]", _raw.child_by_field_name)
fields_of = cast("Callable[[Node, str], list[Node]]", _raw.children_by_field_name)
child_field_of = cast("Callable[[Node, int], str | None]", _raw.field_name_for_named_child)
is_named: Callable[[Node], bool] = attrgetter("is_named")
is_extra: Callable[[Node], bool] = attrgetter("is_extra")
is_missing: Callable[[Node], bool] = attrgetter("is_missing")  # the parser made it up
is_error: Callable[[Node], bool] = attrgetter("is_error")
has_error: Callable[[Node], bool] = attrgetter("has_error")  # in it or below it


def child_at(node: Node, number: int) -> Node | None:
    """The named child of a number from 0 on; a negative one counts from the end. The binding raises where it is not."""
    count = child_count_of(node)
    if number < 0:
        number += count
    return _raw.named_child(node, number) if 0 <= number < count else None


def find_path(root: Node, start: int, end: int) -> list[Node]:
    """From the root to the smallest node, a word or a sign too, that holds a span."""
    raw = cast("Any", root)
    last: Node | None = raw.descendant_for_byte_range(start, end)
    path = [root]
    while last is not None and path[-1] != last:
        inner: Node | None = _raw.child_with_descendant(path[-1], last)
        if inner is None:
            break
        path.append(inner)
    return path


def walk(root: Node, enters: Callable[[Node], bool] = lambda _: True) -> Iterator[Node]:
    """All nodes in the order of the text, outer before inner, words and signs too; below a node only if `enters` says
    so of it, which is asked after the node was looked at. No recursion: a text may nest by the ten thousand."""
    cursor: Any = cast("Any", root).walk()
    while True:
        node: Node = cursor.node
        yield node
        if enters(node) and cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return


def find_errors(root: Node) -> Iterator[Node]:
    """What the parser made up and what it did not understand, in the order of the text."""
    # Only nodes that hold an error are entered, so the walk is short.
    nodes = walk(root, lambda node: has_error(node) and not _is_fault(node)) if has_error(root) else iter(())
    return filter(_is_fault, nodes)


def _is_fault(node: Node) -> bool:
    return is_missing(node) or is_error(node)


def is_deeper(tree: Tree, limit: int) -> bool:
    """Whether any node lies deeper than that below the root."""
    cursor: Any = cast("Any", tree).walk()
    depth = 0
    while True:
        if cursor.goto_first_child():
            depth += 1
            if depth > limit:
                return True
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return False
            depth -= 1


class Ancestors:
    """The nodes around a place. Goes on from the place it was asked for last: for places in the order of the text every
    node is entered once."""

    def __init__(self, root: Node) -> None:
        self.root = root
        # Stands on the last of the path; first_child_for_byte crashes where there is none.
        self._cursor: Any = cast("Any", root).walk()
        self._path = [root]
        self.kept = 1  # how many nodes of the last answer were in the one before

    def around(self, place: int) -> list[Node]:
        """The named nodes that hold a byte, the root first. Good until the next question."""
        path, cursor = self._path, self._cursor
        while len(path) > 1 and not start_of(path[-1]) <= place < end_of(path[-1]):
            path.pop()
            cursor.goto_parent()
        self.kept = len(path)
        while cursor.goto_first_child_for_byte(place) is not None:
            child: Node | None = cursor.node
            if child is None or not is_named(child) or not start_of(child) <= place < end_of(child):
                cursor.goto_parent()
                break
            path.append(child)
        return path

    def above(self, node: Node) -> Iterator[Node]:
        """What holds a node, from the inside out."""
        path = self.around(start_of(node))
        at = len(path) - 1
        while at > 0 and path[at] != node:
            at -= 1
        return map(path.__getitem__, range(at - 1, -1, -1))

    def holder(self, node: Node) -> Node | None:
        return next(self.above(node), None)


Captures = dict[str, list[Node]]


class Grammar:
    """The grammar of a language, from the wheel that brings it."""

    def __init__(self, module: str, function: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # a few grammars hand over an int
            self._grammar = tree_sitter.Language(getattr(importlib.import_module(module), function)())
        # For small and for large texts. Never given ranges: threads may share them, since a parse is one step.
        self._parsers = self._make_parser(SMALL_MICROS), self._make_parser(PARSE_MICROS)

    def find_kind(self, name: str) -> int | None:
        """The number of a kind of named nodes."""
        return self._grammar.id_for_node_kind(name, True)

    def find_sign(self, text: str) -> int | None:
        """The number of a word or a sign."""
        return self._grammar.id_for_node_kind(text, False)

    def compile(self, source: str) -> Query:
        return Query(tree_sitter.Query(self._grammar, source), source)

    def _make_parser(self, micros: int) -> tree_sitter.Parser:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return tree_sitter.Parser(self._grammar, timeout_micros=micros)

    def parse(self, text: bytes, ranges: Collection[tuple[int, int]] = ()) -> Tree | None:
        """The tree, or None when the parse had to be stopped. With ranges, only those are read, at the same offsets."""
        small = len(text) <= SMALL_BYTES
        micros = SMALL_MICROS if small else PARSE_MICROS
        began = time.thread_time()
        if not ranges:
            parser = self._parsers[not small]
            try:
                return cast("Tree", parser.parse(text))
            except ValueError:
                # Without this the next parse would go on with this one's text.
                parser.reset()
                if _is_spent(began, micros):
                    return None
        # The binding's clock is that of the wall. On a machine that does something else it stops what costs little,
        # and the same text would have other facts: a parse ends when it has used the processor for that long.
        own = self._make_parser(micros)
        if ranges:
            own.included_ranges = [tree_sitter.Range((0, start), (0, end), start, end) for start, end in ranges]
        while True:
            try:
                return cast("Tree", own.parse(text))  # after a stop it goes on where it was
            except ValueError:
                if _is_spent(began, micros):
                    return None


def _is_spent(began: float, micros: int) -> bool:
    """Whether this thread has used about as much of the processor as the clock has counted."""
    return (time.thread_time() - began) * 1_000_000 >= micros * 0.9


class Query:
    """Patterns over nodes. Unknown predicates filter nothing in this binding: use none but `#eq?`, `#match?` and
    `#any-of?`."""

    def __init__(self, query: tree_sitter.Query, source: str) -> None:
        self._query = query
        self._source = source.encode()
        self._cursors: list[tree_sitter.QueryCursor] = []  # that no thread uses

    def list_patterns(self) -> list[bytes]:
        """The text of every pattern, by number."""
        query: Any = self._query
        return [
            self._source[query.start_byte_for_pattern(number) : query.end_byte_for_pattern(number)]
            for number in range(query.pattern_count)
        ]

    def find_captures(self, root: Node) -> tuple[Captures, str]:
        """The nodes of every capture, in no order; and why some are left out, "" where none is."""
        return self._run(lambda cursor: cursor.captures(root))

    def find_matches(self, root: Node) -> tuple[list[tuple[int, Captures]], str]:
        """Number of the pattern and captures of every match; and as above."""
        return self._run(lambda cursor: cursor.matches(root))

    def _run(self, ask: Callable[[Any], Any]) -> tuple[Any, str]:
        try:
            cursor = self._cursors.pop()
        except IndexError:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                cursor = tree_sitter.QueryCursor(self._query, match_limit=MAX_STATES, timeout_micros=PARSE_MICROS)
        began = time.monotonic()
        found = ask(cursor)
        left_out = ""
        if cursor.did_exceed_match_limit:
            left_out = "nested too deeply"
        elif (time.monotonic() - began) * 1_000_000 >= PARSE_MICROS:
            left_out = "it takes too long to read"  # the cursor stops without a word
        self._cursors.append(cursor)
        return found, left_out
