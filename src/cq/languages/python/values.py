"""What Python's expressions and types say, in the forms of cq.model.code: every kind of node has one handler."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from cq.model.code import (
    NULL,
    Boolean,
    CallEnd,
    Choice,
    Constant,
    Dictionary,
    Each,
    Element,
    Integer,
    Joined,
    Listing,
    Name,
    Operated,
    Seen,
    Slice,
    Text,
    Value,
    read_attribute,
    read_integer,
)
from cq.syntax.code import MAX_ELEMENTS, MAX_NESTED
from cq.syntax.reading import CodeReader
from cq.syntax.tree import Node, all_children_of, children_of, end_of, field_of, fields_of, kind_of, start_of

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

DOTTED = re.compile(rb"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_FORMATTED = re.compile(rb"[rR]?[fF]")
_STRING_TEXT = 120
_MINUS = ord("-")


class ValueReader(CodeReader):
    def value(self, collector: Collector, node: Node | None, depth: int = 0) -> Value:
        if node is None:
            return None
        kind = kind_of(node)
        if kind == "call":
            return CallEnd(end_of(node))
        if kind == "attribute" and DOTTED.fullmatch(collector.text, start_of(node), end_of(node)):
            # Matched in place: a chain of calls is looked at link by link, and is long.
            return Name(collector.text[start_of(node) : end_of(node)].decode("utf-8", "replace"))
        if kind in _WRITTEN:
            written = collector.text[start_of(node) : end_of(node)]
            if kind == "identifier":
                return Name(written.decode("utf-8", "replace")) if written else None  # the parser made up a name
            if kind == "string":
                return self._joined(collector, node, depth) if _FORMATTED.match(written) else self.read_written(written)
            if kind == "integer":
                return read_integer(written) or Constant("int")
        elif kind in _LITERALS:
            return _LITERALS[kind]
        walk = _WALKS.get(kind)
        return None if walk is None or depth > MAX_NESTED else walk(self, collector, node, depth + 1)

    def read_written(self, raw: bytes) -> Value:
        """A string as written."""
        return read_string(raw)

    def _joined(self, collector: Collector, node: Node, depth: int) -> Value:
        """`f"a{x}"`; one without a value in it is a plain text."""
        parts: list[Value] = []
        is_plain = True
        for part in children_of(node)[:MAX_ELEMENTS]:
            kind = kind_of(part)
            if kind == "string_content":
                piece = collector.text[start_of(part) : end_of(part)]
                parts.append(Text(piece.decode("utf-8", "replace")) if len(piece) < _STRING_TEXT else Constant("str"))
            elif kind == "interpolation":
                is_plain = False
                inner = field_of(part, "expression") if depth <= MAX_NESTED else None
                parts.append(self.value(collector, inner, depth + 1))
        return Constant("str") if is_plain else Joined(tuple(parts))

    def _concatenated(self, collector: Collector, node: Node, depth: int) -> Value:
        """`"a" f"{b}"`."""
        parts = self.values(collector, children_of(node), depth)
        if not any(isinstance(part, Joined) for part in parts):
            return Constant("str")
        return Joined(tuple(one for part in parts for one in (part.parts if isinstance(part, Joined) else (part,))))

    def _attribute(self, collector: Collector, node: Node, depth: int) -> Value:
        name = field_of(node, "attribute")
        base = self.value(collector, field_of(node, "object"), depth)
        return None if name is None else read_attribute(base, collector.write(name))

    def _sequence(self, collector: Collector, node: Node, depth: int) -> Value:
        return Listing(_LISTINGS.get(kind_of(node), "tuple"), self.values(collector, children_of(node), depth))

    def _dictionary(self, collector: Collector, node: Node, depth: int) -> Value:
        pairs: list[tuple[Value, Value]] = []
        for pair in children_of(node)[:MAX_ELEMENTS]:
            if kind_of(pair) == "pair":
                key, value = field_of(pair, "key"), field_of(pair, "value")
                if key is not None and value is not None:
                    pairs.append((self.value(collector, key, depth), self.value(collector, value, depth)))
            elif kind_of(pair) == "dictionary_splat":
                pairs.append((None, self.first_value(collector, pair, depth)))
        return Dictionary(tuple([key for key, _ in pairs]), tuple([value for _, value in pairs]))

    def _comprehension(self, collector: Collector, node: Node, depth: int) -> Value:
        """The variables of a comprehension are known inside it."""
        body = field_of(node, "body")
        if body is not None and kind_of(body) == "pair":
            body = field_of(body, "value")
        value = None if body is None else Seen(start_of(body), self.value(collector, body, depth))
        return Each(_COMPREHENSIONS[kind_of(node)], value)

    def _subscript(self, collector: Collector, node: Node, depth: int) -> Value:
        value, keys = self.value(collector, field_of(node, "value"), depth), fields_of(node, "subscript")
        if value is None or not keys:
            return None
        if kind_of(keys[0]) == "slice":
            return Slice(value, self._slice_bounds(collector, keys[0]))
        return Element(value, self.values(collector, keys, depth))

    def _slice_bounds(self, collector: Collector, node: Node) -> tuple[int | None, int | None] | None:
        """None in it for a bound that there is none of; None for all where one is no number."""
        bounds: list[int | None] = [None, None]
        at = 0
        for child in all_children_of(node):
            if kind_of(child) == ":":
                at += 1
            elif kind_of(child) != "comment":
                value = self.value(collector, child)
                if not isinstance(value, Integer) or at > 1:
                    return None
                bounds[at] = value.value
        return bounds[0], bounds[1]

    def _signed(self, collector: Collector, node: Node, depth: int) -> Value:
        """`-1` is a number; what else a sign gives is what its operand gives."""
        value, sign = self.first_value(collector, node, depth), collector.text[start_of(node)]
        if isinstance(value, Integer) and sign == _MINUS:
            return Integer(-value.value)
        return Operated(f"{chr(sign)}x", value, None)

    def _choice(self, collector: Collector, node: Node, depth: int) -> Value:
        """`a or b`, `a if c else b`, the type `a | b`; `a and b` is b or false."""
        values = self.values(collector, children_of(node), depth)
        if kind_of(node) == "conditional_expression" and len(values) == 3:
            values = (values[0], values[2])
        return Choice(values)

    def _operated(self, collector: Collector, node: Node, depth: int) -> Value:
        left, right, operator = (field_of(node, name) for name in ("left", "right", "operator"))
        if left is None or right is None or operator is None:
            return None
        return Operated(kind_of(operator), self.value(collector, left, depth), self.value(collector, right, depth))

    def _named(self, collector: Collector, node: Node, depth: int) -> Value:
        return self.value(collector, field_of(node, "value"), depth)

    def _generic(self, collector: Collector, node: Node, depth: int) -> Value:
        """`list[int]` in an annotation."""
        children = children_of(node)
        if len(children) < 2:
            return None
        inner = self.values(collector, children_of(children[1]), depth)
        return Element(self.value(collector, children[0], depth), inner)


def read_string(raw: bytes) -> Value:
    """Short plain strings keep their text: they are keys, names of attributes, modules and types."""
    quote = raw[:1]
    if quote in (b"'", b'"') and len(raw) < _STRING_TEXT and raw[:3] != quote * 3 and b"\\" not in raw:
        return Text(raw[1:-1].decode("utf-8", "replace"))
    return Constant("bytes" if raw[:1] in b"bB" else "str")


Walk = Callable[[ValueReader, "Collector", Node, int], Value]
_WRITTEN = frozenset({"identifier", "string", "integer"})
_LITERALS = {
    "float": Constant("float"),
    "true": Boolean(True), "false": Boolean(False), "none": NULL, "not_operator": Constant("bool"),
}  # fmt: skip
_LISTINGS: dict[str, Literal["list", "set"]] = {"list": "list", "set": "set"}
_COMPREHENSIONS: dict[str, Literal["list", "set", "generator", "dict"]] = {
    "list_comprehension": "list", "set_comprehension": "set", "generator_expression": "generator",
    "dictionary_comprehension": "dict",
}  # fmt: skip
_WALKS: dict[str, Walk] = {
    "concatenated_string": ValueReader._concatenated,
    "yield": ValueReader.read_sent,
    "attribute": ValueReader._attribute,
    "parenthesized_expression": ValueReader.first_value,
    "type": ValueReader.first_value,
    **dict.fromkeys(("list", "tuple", "set", "expression_list"), ValueReader._sequence),
    "dictionary": ValueReader._dictionary,
    **dict.fromkeys(_COMPREHENSIONS, ValueReader._comprehension),
    "subscript": ValueReader._subscript,
    **dict.fromkeys(("conditional_expression", "boolean_operator", "union_type"), ValueReader._choice),
    "binary_operator": ValueReader._operated,
    "unary_operator": ValueReader._signed,
    "await": ValueReader.read_awaited,
    "list_splat": ValueReader.read_spread,
    "lambda": ValueReader.read_lambda,
    "named_expression": ValueReader._named,
    "generic_type": ValueReader._generic,
}
