"""What holds other definitions: classes, and objects and functions that are the value of a name."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

from cq.languages.ecmascript.modifiers import find_modifiers, take_decorators
from cq.languages.ecmascript.parameters import ParameterReader
from cq.languages.ecmascript.scopes import WrittenClass
from cq.languages.ecmascript.values import VALUE_TEXT, WORD, read_key
from cq.model.code import Value
from cq.syntax.excerpt import clip
from cq.syntax.language import Draft
from cq.syntax.tree import (
    Captures,
    Node,
    child_at,
    children_of,
    end_of,
    field_of,
    is_missing,
    kind_id_of,
    kind_of,
    start_of,
)

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

PLAIN_OBJECT = -2  # `Draft.owner` of an object without code and of its properties, until it is known where they stand
UNWRAP_DEPTH = 8
_OBJECT_DEPTH = 8  # properties deeper than this inside a named object are no symbols
_WRAPPER = re.compile(rb"(?:" + WORD + rb"\.)?(?:memo|forwardRef)\b")
_CODE = frozenset({"arrow", "function", "class"})


class HolderReader(ParameterReader):
    @cached_property
    def shapes(self) -> dict[int, str]:
        """What a value is, where that decides what its name means."""
        names = {
            "arrow_function": "arrow", "function_expression": "function", "generator_function": "function",
            "class": "class", "object": "object", "as_expression": "wrapped", "satisfies_expression": "wrapped",
            "non_null_expression": "wrapped", "parenthesized_expression": "wrapped", "type_assertion": "cast",
            "await_expression": "awaited", "call_expression": "call", "new_expression": "call",
        }  # fmt: skip
        numbers = ((self.grammar.find_kind(name), shape) for name, shape in names.items())
        return {number: shape for number, shape in numbers if number is not None}

    def shape(self, value: Node | None) -> str:
        return "" if value is None else self.shapes.get(kind_id_of(value), "")

    def add_draft(self, collector: Collector, kind: str, start: int, end: int, name: Node) -> Draft:
        """A draft with its name, its decorators and what stands before the name; more is up to the caller."""
        label, name_start, name_end = read_key(collector, name)
        draft = Draft(kind, label, start, end, name_start, name_end, head=start)
        prefix = collector.text[start:name_start]
        if prefix:
            if b"@" in prefix:
                prefix = take_decorators(collector, draft, name_start)
            draft.modifiers = find_modifiers(prefix)
        collector.symbols.append(draft)
        return draft

    def open(self, collector: Collector, draft: Draft, body: Node) -> None:
        draft.body_start, draft.body_end = start_of(body), end_of(body)
        draft.scope_start = draft.body_start
        draft.signature = self.trim_signature(collector.fold(draft.head, draft.body_start))

    def read_bases(self, collector: Collector, draft: Draft, node: Node) -> None:
        bases: list[str] = []
        values: list[Value] = []
        implemented: list[Value] = []

        def add(kinds: list[Value], base: Node, end: int = -1) -> None:
            if kind_of(base) != "comment":
                bases.append(collector.fold(start_of(base), max(end, end_of(base))))
                kinds.append(self.value(collector, base))

        for part in children_of(node):
            match kind_of(part):
                case "type_parameters":
                    self.add_type_parameters(collector, node)
                case "extends_type_clause":
                    for base in children_of(part):
                        add(values, base)
                case "class_heritage":
                    for clause in children_of(part):
                        if kind_of(clause) == "implements_clause":
                            for base in children_of(clause):
                                add(implemented, base)
                        elif kind_of(clause) != "extends_clause":
                            add(values, clause)
                        elif (base := child_at(clause, 0)) is not None:
                            add(values, base, end_of(clause))  # its type arguments stand beside it
                case _:
                    pass
        parameters = tuple(self.find_constraints(collector, node).items())
        kind = "interface" if draft.kind == "interface" else "class"
        self.notes(collector).classes[draft.body_start] = WrittenClass(
            kind, tuple(values), tuple(implemented), parameters
        )
        draft.bases = tuple(bases)

    # -- what a name stands for ------------------------------------------------------------------

    def bind_value(self, collector: Collector, draft: Draft, value: Node, kind: str) -> bool:
        """Makes the draft what its value is: a function, a class or an object that holds others. False for the rest."""
        shape, closing = self.shape(value), ""
        for _ in range(UNWRAP_DEPTH):
            inner: Node | None = None
            if shape == "wrapped":
                inner = child_at(value, 0)
            elif shape == "call" and _WRAPPER.match(collector.text, start_of(value)):
                # const Row = memo(forwardRef((props, ref) => …)): the function inside is what Row runs.
                arguments, closing = field_of(value, "arguments"), f"{closing})"
                inner = None if arguments is None else child_at(arguments, 0)
            if inner is None:
                break
            value, shape = inner, self.shape(inner)
        if shape == "object" and not closing:
            self._bind_object(collector, draft, value)
            return True
        body = field_of(value, "body") if shape in _CODE and not (closing and shape == "class") else None
        if body is None:
            return False
        start = start_of(value)
        draft.body_start, draft.body_end = start_of(body), end_of(body)
        draft.signature = self.trim_signature(collector.fold(draft.start, draft.body_start)) + closing
        draft.scope_start = start
        if shape != "arrow":
            collector.decorated[start] = -1
        if shape == "class":
            draft.kind, draft.scope_start = "class", draft.body_start
            self.read_bases(collector, draft, value)
            return True
        draft.kind = "component" if closing and draft.name[:1].isupper() else kind
        draft.modifiers += find_modifiers(collector.text[start : start + 16].partition(b"(")[0])
        result = field_of(value, "return_type")
        if result is not None:
            self.annotate(collector, draft.name, result)
        return True

    def _bind_object(self, collector: Collector, draft: Draft, value: Node) -> None:
        """A named object holds its properties. One without code is data: inside a function it stays a plain value."""
        draft.body_start, draft.body_end = start_of(value), end_of(value)
        is_plain = _is_data(collector.text, value)
        draft.signature = self.trim_signature(collector.fold(draft.start, draft.body_start))
        draft.owner = PLAIN_OBJECT if is_plain else -1
        self._add_properties(collector, value, is_plain)

    def _add_properties(self, collector: Collector, value: Node, is_plain: bool) -> None:
        """Properties that are no functions (those match a pattern of their own). Data inside data has dotted names."""
        todo = [(value, "", 0)]
        while todo:
            holder, path, depth = todo.pop()
            for pair in children_of(holder):
                name, inner = field_of(pair, "key"), field_of(pair, "value")
                shape = self.shape(inner)
                if kind_of(pair) != "pair" or name is None or inner is None or is_missing(name) or shape in _CODE:
                    continue
                draft = self.add_draft(collector, "property", start_of(pair), end_of(pair), name)
                draft.modifiers = ()
                draft.owner = PLAIN_OBJECT if is_plain else -1
                draft.signature = clip(collector.text, draft.start, draft.end, VALUE_TEXT)
                draft.name = path + draft.name
                if shape != "object" or depth >= _OBJECT_DEPTH:
                    continue
                if is_plain or _is_data(collector.text, inner):
                    todo.append((inner, f"{draft.name}.", depth + 1))
                else:
                    draft.body_start, draft.body_end = start_of(inner), end_of(inner)
                    draft.signature = self.trim_signature(collector.fold(draft.start, draft.body_start))
                    todo.append((inner, "", depth + 1))

    def on_pair(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """`{name: function}`."""
        name, value = field_of(node, "key"), field_of(node, "value")
        if name is not None and value is not None:
            draft = self.add_draft(collector, "method", start_of(node), end_of(node), name)
            draft.modifiers = ()
            if not self.bind_value(collector, draft, value, "method"):
                collector.symbols.pop()


def _is_data(text: bytes, value: Node) -> bool:
    """No function can stand in it: every one of them has a parenthesis or an arrow."""
    start, end = start_of(value), end_of(value)
    return text.find(b"(", start, end) < 0 and text.find(b"=>", start, end) < 0
