"""Python read in detail, for those who follow values along the statements of a function: what joins conditions and
choices, where code leaves its block, whole texts. The index keeps none of it; it is read again when somebody asks."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal

from cq.languages.python.facts import Python
from cq.model.code import (
    NULL,
    Choice,
    Constant,
    Dictionary,
    Each,
    Listing,
    Name,
    Operated,
    Seen,
    Text,
    Value,
)
from cq.syntax.branches import read_condition
from cq.syntax.code import MAX_NESTED
from cq.syntax.tree import (
    Captures,
    Node,
    all_children_of,
    child_at,
    children_of,
    end_of,
    field_of,
    kind_of,
    start_of,
)

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

MAX_TEXT = 4000  # bytes of a text whose characters are kept
_EXITS = """
(break_statement) @flow.break
(continue_statement) @flow.continue
"""


class DetailedPython(Python):
    is_detailed = True

    @cached_property
    def query_source(self) -> str:
        return f"{super().query_source}{_EXITS}"

    # -- statements ------------------------------------------------------------------------------

    def on_flow(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        exits, start, end = collector.code.exits, start_of(node), end_of(node)
        match kind:
            case "break" | "continue":
                exits.append((start, end, kind, None))
                return
            case "return":
                value = child_at(node, 0)
                given = NULL if value is None or kind_of(value) == "comment" else self.value(collector, value)
                exits.append((start, end, "return", given))
            case "raise" if child_at(node, 0) is None:
                collector.code.raises.append((start, NULL))
            case "augment":
                target, operator, right = (field_of(node, name) for name in ("left", "operator", "right"))
                if target is not None and operator is not None and right is not None:
                    self._augment_in_detail(collector, target, kind_of(operator).removesuffix("="), right, start, end)
            case _:
                pass
        super().on_flow(collector, kind, node, captures)

    def _augment_in_detail(
        self, collector: Collector, target: Node, operator: str, right: Node, start: int, end: int
    ) -> None:
        """`a += b` as `a = a + b`."""
        value = Operated(operator, self.value(collector, target), self.value(collector, right))
        match kind_of(target):
            case "identifier":
                collector.code.binds.append((end, start, collector.write(target), value, -1))
            case "attribute":
                base, name = field_of(target, "object"), field_of(target, "attribute")
                if name is not None:
                    held = self.value(collector, base)
                    collector.code.stores.append((start, held, collector.write(name), value, None, end))
            case "subscript":
                base, key = field_of(target, "value"), field_of(target, "subscript")
                held = self.value(collector, base)
                collector.code.stores.append((start, held, None, value, self.value(collector, key), end))
            case _:
                pass

    def each_branch(self, collector: Collector, kind: str, nodes: list[Node]) -> None:
        if kind != "match":
            super().each_branch(collector, kind, nodes)
            return
        for node in nodes:
            subject, body = self.value(collector, field_of(node, "subject")), field_of(node, "body")
            for clause in () if body is None else children_of(body):
                if kind_of(clause) == "case_clause":
                    parts = [part for part in children_of(clause) if kind_of(part) == "case_pattern"]
                    pattern = self._pattern(collector, parts[0]) if len(parts) == 1 else None
                    if field_of(clause, "guard") is not None:
                        pattern = None
                    value = Operated("case", subject, pattern)
                    collector.code.add_branch("case", clause, value, start_of(node))

    def _pattern(self, collector: Collector, node: Node, depth: int = 0) -> Value:
        """A constant, a Listing of those of which one fits, the name `_` for what always fits; None: who knows."""
        kind, children = kind_of(node), children_of(node)
        if depth > MAX_NESTED:
            return None
        match kind:
            case "case_pattern":
                if not children:
                    return Name("_") if collector.write(node) == "_" else None
                return self._pattern(collector, children[0], depth + 1)
            case "union_pattern":
                return Listing("set", tuple([self._pattern(collector, child, depth + 1) for child in children]))
            case "string" | "integer" | "true" | "false" | "none":
                return self.value(collector, node)
            case "dotted_name" if len(children) == 1:
                return Name("_")  # a capture
            case _:
                return None

    # -- values ------------------------------------------------------------------------------------

    def value(self, collector: Collector, node: Node | None, depth: int = 0) -> Value:
        walk = None if node is None else _DETAILED.get(kind_of(node))
        if walk is None or node is None:
            return super().value(collector, node, depth)
        return None if depth > MAX_NESTED else walk(self, collector, node, depth + 1)

    def read_written(self, raw: bytes) -> Value:
        if len(raw) > MAX_TEXT:
            return super().read_written(raw)
        try:
            said = ast.literal_eval(raw.decode())
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return super().read_written(raw)
        return Text(said) if isinstance(said, str) else Constant("bytes")

    def _asked(self, collector: Collector, node: Node, depth: int) -> Value:
        """`a == b`, `not a`, `a and b`: what cannot be read as one operation is unknown."""
        parts = [part for part in all_children_of(node) if kind_of(part) != "comment"]
        if len(parts) != (2 if kind_of(node) == "not_operator" else 3):
            return None
        return read_condition(node, partial(self.value, collector), depth)

    def _choose(self, collector: Collector, node: Node, depth: int) -> Value:
        values = self.values(collector, children_of(node), depth)
        return Choice((values[0], values[2]), values[1]) if len(values) == 3 else None

    def _joined_texts(self, collector: Collector, node: Node, depth: int) -> Value:
        found: Value = None
        for number, part in enumerate(self.values(collector, children_of(node), depth)):
            if not number:
                found = part
            elif isinstance(found, Text) and isinstance(part, Text):
                found = Text(found.value + part.value)
            else:
                found = Operated("+", found, part)
        return found

    def _each(self, collector: Collector, node: Node, depth: int) -> Value:
        """With what its elements must meet."""
        body = field_of(node, "body")
        if body is None:
            return None
        if kind_of(body) == "pair":
            key, value = (self.value(collector, field_of(body, name), depth) for name in ("key", "value"))
            made: Value = Dictionary((key,), (value,))
        else:
            made = self.value(collector, body, depth)
        asked: Value = None
        for clause in children_of(node):
            if kind_of(clause) == "if_clause":
                value = self.condition(collector, child_at(clause, 0))
                asked = value if asked is None else Operated("and", asked, value)
        if asked is not None:
            made = Choice((made,), asked)
        return Each(_EACH[kind_of(node)], Seen(start_of(body), made))


Walk = Callable[[DetailedPython, "Collector", Node, int], Value]
_EACH: dict[str, Literal["list", "set", "generator", "dict"]] = {
    "list_comprehension": "list", "set_comprehension": "set", "generator_expression": "generator",
    "dictionary_comprehension": "dict",
}  # fmt: skip
_DETAILED: dict[str, Walk] = {
    **dict.fromkeys(("comparison_operator", "not_operator", "boolean_operator"), DetailedPython._asked),
    "conditional_expression": DetailedPython._choose,
    "concatenated_string": DetailedPython._joined_texts,
    **dict.fromkeys(_EACH, DetailedPython._each),
}
