"""What languages share that read the code of their documents: values of a list of nodes, conditions, decorators."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

from cq.model.code import Awaited, Lambda, Sent, Spread, Value
from cq.syntax.branches import read_condition
from cq.syntax.code import MAX_ELEMENTS
from cq.syntax.language import ROLE_NUMBER, Language
from cq.syntax.tree import Node, children_of, end_of, kind_id_of, start_of

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

_DECORATOR = ROLE_NUMBER["decorator"]


class CodeReader(Language):
    """A language that says what its expressions are, in the forms of cq.model.code."""

    has_code = True

    def value(self, collector: Collector, node: Node | None, depth: int = 0) -> Value:
        """An expression or a type; None where there is none. What nests too deeply is unknown."""
        raise NotImplementedError

    def values(self, collector: Collector, nodes: Sequence[Node], depth: int = 0) -> tuple[Value, ...]:
        kept = [node for node in nodes[:MAX_ELEMENTS] if kind_id_of(node) != self.comment_id]
        return tuple([self.value(collector, node, depth) for node in kept])

    def first_value(self, collector: Collector, node: Node, depth: int = 0) -> Value:
        """Of the first child that is no comment."""
        inner = next((child for child in children_of(node) if kind_id_of(child) != self.comment_id), None)
        return self.value(collector, inner, depth)

    def condition(self, collector: Collector, asked: Node | None) -> Value:
        """What a statement asks; None where it asks nothing."""
        return None if asked is None else read_condition(asked, partial(self.value, collector))

    @cached_property
    def comment_id(self) -> int | None:
        return self.grammar.find_kind("comment")

    def read_awaited(self, collector: Collector, node: Node, depth: int) -> Value:
        return Awaited(self.first_value(collector, node, depth))

    def read_spread(self, collector: Collector, node: Node, depth: int) -> Value:
        return Spread(self.first_value(collector, node, depth))

    def read_sent(self, collector: Collector, node: Node, depth: int) -> Value:
        return Sent()

    def read_lambda(self, collector: Collector, node: Node, depth: int) -> Value:
        return Lambda(start_of(node))

    def add_decorator(self, collector: Collector, node: Node, value: Node) -> None:
        """A decorator is a call of what it names; one that is written as a call already is told as such."""
        start, end = start_of(node), end_of(node)
        collector.spans.append((start, end, _DECORATOR))
        found, kind = self.value(collector, value), self.value_kind(value)
        collector.code.decorators.append((start, found))
        if kind == "call":
            collector.decorator_calls.add(start_of(value))
        elif kind in ("name", "attribute"):
            collector.add_call(self, "decorator", start_of(value), end_of(value), value, None, (found, (), ()))
