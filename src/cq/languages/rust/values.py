"""Expressions of Rust, reduced to the values of cq.model.code."""

from __future__ import annotations

import re
from functools import partial, reduce
from typing import TYPE_CHECKING

from cq.languages.rust.paths import PLAIN_CALLEE, read_callee_path
from cq.languages.rust.patterns import bind_pattern
from cq.languages.rust.signatures import read_type
from cq.model.code import (
    Boolean,
    CallEnd,
    Choice,
    ClosureParameter,
    Constant,
    Indexed,
    Joined,
    Lambda,
    Listing,
    Name,
    Operated,
    OperatorMethod,
    Parameter,
    Seen,
    Text,
    Typed,
    Unwrapped,
    Value,
    read_attribute,
    read_integer,
)
from cq.syntax.branches import read_condition
from cq.syntax.code import MAX_NESTED
from cq.syntax.tree import (
    Node,
    all_children_of,
    child_at,
    child_count_of,
    children_of,
    end_of,
    field_of,
    kind_of,
    start_of,
)

if TYPE_CHECKING:
    from cq.syntax.collect import Collector


_MAX_ARMS = 40
_SAME = frozenset({"reference_expression", "parenthesized_expression", "unary_expression", "await_expression"})
_CALLS = frozenset({"call_expression", "macro_invocation", "struct_expression"})
_WRITTEN = frozenset({
    "string_literal", "raw_string_literal", "char_literal", "integer_literal", "float_literal", "boolean_literal",
    "negative_literal",
})  # fmt: skip
_STRING = re.compile(rb'[bc]?r?(#*)"(.*)"\1', re.DOTALL)
_STRING_TEXT = 120
# A place in a format string: `{}`, `{0}`, `{name:?}`; what is written twice is a brace.
_PLACE = re.compile(r"\{\{|\}\}|\{(\w*)\s*(?::[^{}]*)?\}")
# Macros whose first text is a format string.
FORMATTING = frozenset({
    "format", "print", "println", "eprint", "eprintln", "write", "writeln", "panic", "format_args", "assert",
    "assert_eq", "assert_ne", "debug_assert", "todo", "unreachable", "unimplemented", "bail", "anyhow", "ensure",
    "trace", "debug", "info", "warn", "error", "log",
})  # fmt: skip
_OPERATORS = {
    "+": "add", "-": "sub", "*": "mul", "/": "div", "%": "rem", "&": "bitand", "|": "bitor", "^": "bitxor",
    "<<": "shl", ">>": "shr",
}  # fmt: skip


def read_value(collector: Collector, node: Node, depth: int = 0) -> Value:
    """See cq.model.code. What nests too deeply is unknown."""
    kind = kind_of(node)
    if kind in _CALLS:
        return CallEnd(end_of(node))
    text, start, end = collector.text, start_of(node), end_of(node)
    if kind == "identifier" or kind == "self":
        return Name(text[start:end].decode("utf-8", "replace").removeprefix("r#"))
    if kind in _WRITTEN:
        return read_literal(text[start:end])
    if kind == "range_expression":
        return Constant("Range")
    if depth > MAX_NESTED:
        return None
    if kind in _SAME:
        inner = field_of(node, "value") or child_at(node, 0)
        if inner is not None and kind_of(inner) == "mutable_specifier":
            inner = child_at(node, child_count_of(node) - 1)
        return None if inner is None else read_value(collector, inner, depth + 1)
    if kind == "field_expression":
        if end - start < 100 and PLAIN_CALLEE.fullmatch(text, start, end):
            return Name(text[start:end].decode("utf-8", "replace"))
        base, name = field_of(node, "value"), field_of(node, "field")
        if base is None or name is None:
            return None
        return read_attribute(read_value(collector, base, depth + 1), collector.slice(start_of(name), end_of(name)))
    if kind in ("scoped_identifier", "generic_function"):
        return read_callee_path(text[start:end])
    if kind == "try_expression":
        inner = child_at(node, 0)
        return None if inner is None else Unwrapped(read_value(collector, inner, depth + 1))
    if kind == "closure_expression":
        return read_closure(collector, node, -1, 0, depth)
    if kind == "index_expression" and child_count_of(node) == 2:
        base, key = children_of(node)
        return Indexed(read_value(collector, base, depth + 1), kind_of(key) == "range_expression")
    if kind == "type_cast_expression":
        target = field_of(node, "type")
        return None if target is None else Typed(read_type(text[start_of(target) : end_of(target)]), None)
    if kind == "tuple_expression":
        return Listing("tuple", tuple([read_value(collector, child, depth + 1) for child in children_of(node)[:12]]))
    if kind == "array_expression":
        inner = child_at(node, 0)
        return Listing("list", (None if inner is None else read_value(collector, inner, depth + 1),))
    if kind == "binary_expression":
        left, operator = field_of(node, "left"), field_of(node, "operator")
        method = None if operator is None else _OPERATORS.get(kind_of(operator))
        if left is None or method is None:
            return Constant("bool")
        return OperatorMethod(method, read_value(collector, left, depth + 1))
    return _read_tail(collector, node, depth)


def read_literal(text: bytes) -> Value:
    """Short texts without escapes keep what they say."""
    first = text[:1]
    if text in (b"true", b"false"):
        return Boolean(text == b"true")
    if first.isdigit() or first == b"-":
        return read_integer(text) or Constant("float" if b"." in text else "int")
    if first == b"'":
        return Typed(Name("char"), None)
    found = _STRING.fullmatch(text) if len(text) < _STRING_TEXT else None
    if found is None or text[:1] == b"b" or (b"\\" in text and b"r" not in text[:2]):
        return Constant("str")
    return Text(found[2].decode("utf-8", "replace"))


def join_format(args: tuple[Value, ...], named: dict[str, Value]) -> tuple[Value, ...]:
    """The first text among the arguments is one with the values of its places: `format!("a{}{x}", y)`."""
    at = next((number for number, value in enumerate(args) if isinstance(value, Text)), -1)
    text = args[at] if at >= 0 else None
    if not isinstance(text, Text) or "{" not in text.value:
        return args
    parts: list[Value] = []
    places = iter(args[at + 1 :])
    last = 0
    for found in _PLACE.finditer(text.value):
        if found[1] is None:
            continue
        if found.start() > last:
            parts.append(Text(text.value[last : found.start()]))
        last, name = found.end(), found[1]
        if not name:
            parts.append(next(places, None))
        elif name.isdecimal():
            parts.append(args[at + 1 + int(name)] if len(name) < 4 and at + 1 + int(name) < len(args) else None)
        else:
            parts.append(named.get(name, Name(name)))
    if not parts:
        return args
    if last < len(text.value):
        parts.append(Text(text.value[last:]))
    return (*args[:at], Joined(tuple(parts)), *args[at + 1 :])


def read_asked(collector: Collector, node: Node) -> Value:
    """The condition of an `if`, a `while` or a guard: what must be true."""
    return read_condition(node, partial(_read_asked, collector))


def _read_asked(collector: Collector, node: Node, depth: int) -> Value:
    """`let pattern = value`, alone or in a chain; everything else is its value."""
    if kind_of(node) == "let_condition":
        value = field_of(node, "value")
        return None if value is None else Operated("matches", read_value(collector, value, depth + 1), None)
    if kind_of(node) == "let_chain":
        read, parts = partial(_read_asked, collector), all_children_of(node)[::2]
        asked = (read_condition(part, read, depth + 1) for part in parts)
        return reduce(lambda left, right: Operated("and", left, right), asked)
    return read_value(collector, node, depth)


def _read_tail(collector: Collector, node: Node, depth: int) -> Value:
    """Blocks and branches: what their last expressions are, each seen from where it stands."""
    kind = kind_of(node)
    if kind in ("unsafe_block", "async_block", "const_block", "labeled_block"):
        inner = child_at(node, child_count_of(node) - 1) if child_count_of(node) else None
        return None if inner is None else _read_tail(collector, inner, depth + 1)
    if kind == "block":
        tail = child_at(node, child_count_of(node) - 1) if child_count_of(node) else None
        if tail is not None and kind_of(tail) == "expression_statement":
            tail = child_at(tail, 0) if collector.text[end_of(tail) - 1] == 125 else None
        if tail is None or kind_of(tail).endswith(("_declaration", "_item", "comment", "_statement")):
            return None
        return Seen(start_of(tail), read_value(collector, tail, depth + 1))
    if kind == "if_expression":
        branches = [field_of(node, "consequence"), field_of(node, "alternative")]
        if branches[1] is None:
            return None
        inner = child_at(branches[1], 0) if kind_of(branches[1]) == "else_clause" else branches[1]
        values = [read_value(collector, b, depth + 1) for b in (branches[0], inner) if b is not None]
        return _choose(values)
    if kind == "match_expression":
        body = field_of(node, "body")
        values: list[Value] = []
        for arm in [] if body is None else children_of(body)[:_MAX_ARMS]:
            value = field_of(arm, "value") if kind_of(arm) == "match_arm" else None
            if value is not None:
                values.append(Seen(start_of(value), read_value(collector, value, depth + 1)))
        return _choose(values)
    return None


def _choose(values: list[Value]) -> Value:
    known = [v for v in values if v is not None and not (isinstance(v, Seen) and v.value is None)]
    return known[0] if len(known) == 1 else Choice(tuple(known)) if known else None


def read_closure(collector: Collector, node: Node, call_end: int, number: int, depth: int = 0) -> Value:
    """A closure, and what its parameters are where it is an argument of the call that ends at `call_end`."""
    start, end, code = start_of(node), end_of(node), collector.code
    body, patterns = field_of(node, "body"), field_of(node, "parameters")
    if body is None or patterns is None:
        return None
    if start not in code.lambdas:
        parameters: list[Parameter] = []
        for pattern in children_of(patterns):
            value: Value = ClosureParameter(CallEnd(call_end), number, len(parameters)) if call_end >= 0 else None
            if kind_of(pattern) == "parameter":
                kind, inner = field_of(pattern, "type"), field_of(pattern, "pattern")
                if kind is not None:
                    value = Typed(read_type(collector.text[start_of(kind) : end_of(kind)]), value)
                pattern = inner or pattern
            parameters.append(Parameter("_"))
            bind_pattern(collector, pattern, value, start, start, end)
        given = field_of(node, "return_type")
        if given is not None:
            value = Typed(read_type(collector.text[start_of(given) : end_of(given)]), None)
        else:
            value = Seen(start_of(body), read_value(collector, body, depth + 1))
        code.lambdas[start] = (end, start_of(body), tuple(parameters), value)
    return Lambda(start)


def read_arguments(collector: Collector, node: Node, end: int) -> tuple[Value, ...]:
    found: list[Value] = []
    for child in children_of(node):
        kind = kind_of(child)
        if kind == "closure_expression":
            found.append(read_closure(collector, child, end, len(found)))
        elif not kind.endswith("comment") and kind != "attribute_item":
            found.append(read_value(collector, child))
    return tuple(found)
