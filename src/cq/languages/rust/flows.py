"""What Rust assigns, returns and raises, its branches and what its loops and matches bind."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cq.languages.rust.arguments import read_text
from cq.languages.rust.patterns import IN_NEXT_BLOCK, bind_pattern
from cq.languages.rust.tokens import TokenReader
from cq.languages.rust.values import read_asked, read_value
from cq.model.code import Iterated
from cq.syntax.branches import add_if
from cq.syntax.language import ROLE_NUMBER
from cq.syntax.tree import (
    Captures,
    Node,
    child_at,
    child_count_of,
    children_of,
    end_of,
    field_of,
    kind_id_of,
    kind_of,
    start_of,
)

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

ASSIGNMENT = ROLE_NUMBER["assignment"]
_STATEMENTS = frozenset(
    {"let_declaration", "expression_statement", "empty_statement", "attribute_item", "inner_attribute_item",
     "line_comment", "block_comment"}
)  # fmt: skip
_VALUE_FIELDS = {"assign": "value", "result": "return_type"}
_BINDS = re.compile(rb"(?<![\w:.'\"])[a-z_]\w*(?!\w*(?:::|!|\())")


class FlowReader(TokenReader):
    def add_tail(self, collector: Collector, body: Node) -> None:
        """The last expression of a body is what it returns; a loop has no value."""
        for index in range(child_count_of(body) - 1, max(child_count_of(body) - 4, -1), -1):
            value = child_at(body, index)
            kind = "" if value is None else kind_of(value)
            if value is None or kind in ("line_comment", "block_comment"):
                continue
            if kind == "expression_statement":
                if collector.text[end_of(value) - 1 : end_of(value)] != b"}":
                    return
                value = child_at(value, 0) or value
            elif kind in _STATEMENTS or kind.endswith(("_item", "_definition", "_declaration")):
                return
            if kind_of(value) not in ("while_expression", "for_expression", "loop_expression"):
                self.add_return(collector, value, value)
            return

    def on_flow(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        if kind == "return":
            value = child_at(node, 0)
            if value is None:
                collector.add_flow(self, "return", node, None, None)
            else:
                self.add_return(collector, node, value)
            return
        if kind == "augment" or kind == "store":
            target, value = field_of(node, "left"), field_of(node, "right")
            if target is None:
                return
            written = field_of(target, "field") if kind_of(target) == "field_expression" else target
            if written is not None and kind_of(written) in ("identifier", "field_identifier"):
                collector.marks[start_of(written)] = ASSIGNMENT
            if kind == "store" and value is not None:
                self.add_assignment(collector, node, read_text(collector, target), value)
            return
        field = _VALUE_FIELDS.get(kind)
        value = child_at(node, 0) if field is None else field_of(node, field)
        if value is None:
            return
        if kind == "assign":
            target = field_of(node, "pattern")
            if target is not None:
                self.add_assignment(collector, node, read_text(collector, target), value)
                found = read_value(collector, value)
                bind_pattern(collector, target, found, end_of(node), start_of(node), IN_NEXT_BLOCK)
        elif kind == "result":
            self.add_annotation(collector, start_of(value), end_of(value), "return", value)
        else:
            # `f()?` may end the function with the error of f: a raise whose target is `?`.
            self.append_flow(collector, "raise" if kind == "try" else kind, node, "?" if kind == "try" else "", value)

    def each_branch(self, collector: Collector, kind: str, nodes: list[Node]) -> None:
        for node in nodes:
            condition = field_of(node, "condition")
            value = None if condition is None else read_asked(collector, condition)
            if kind == "loop":
                collector.code.add_branch("loop", node, value)
            else:
                add_if(collector.code, node, value)

    def on_loop(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """`for x in v`: x is an item of v."""
        body, value = field_of(node, "body"), field_of(node, "value")
        target = field_of(node, "pattern")
        if body is not None and value is not None and target is not None:
            item = Iterated(read_value(collector, value))
            bind_pattern(collector, target, item, start_of(body), start_of(node), end_of(body))

    def on_match(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        matched, body = field_of(node, "value"), field_of(node, "body")
        if matched is None or body is None:
            return
        value = read_value(collector, matched)
        for arm in children_of(body):
            pattern = field_of(arm, "pattern") if kind_of(arm) == "match_arm" else None
            if pattern is not None:
                collector.code.add_branch("case", arm, value)
            if pattern is not None and _BINDS.search(collector.text, start_of(pattern), end_of(pattern)):
                bind_pattern(collector, pattern, value, start_of(pattern), start_of(arm), end_of(arm))

    def add_assignment(self, collector: Collector, node: Node, target: str, value: Node) -> None:
        self.append_flow(collector, "assign", node, target, value)

    def append_flow(self, collector: Collector, kind: str, node: Node, target: str, value: Node) -> None:
        value_kind, text = self.value_ids.get(kind_id_of(value)), ""
        if value_kind is None:
            value = self.unwrap(value)
            value_kind = self.value_ids.get(kind_id_of(value), "other")
        if value_kind == "call":
            text = self.call_target(collector, value)
        elif value_kind == "name" or value_kind == "attribute":
            text = read_text(collector, value)
        collector.flows.append((start_of(node), end_of(node), kind, target, text, value_kind, start_of(value)))

    def add_annotation(self, collector: Collector, start: int, end: int, target: str, kind: Node) -> None:
        collector.flows.append((start, end, "annotate", target, read_text(collector, kind), "type", start_of(kind)))

    def add_return(self, collector: Collector, node: Node, value: Node) -> None:
        """`return Err(e)` and a last `Err(e)` return and raise e."""
        self.append_flow(collector, "return", node, "", value)
        if kind_of(value) == "call_expression" and collector.text.startswith(b"Err(", start_of(value)):
            args = field_of(value, "arguments")
            error = None if args is None else child_at(args, 0)
            if error is not None:
                self.append_flow(collector, "raise", node, "", error)
