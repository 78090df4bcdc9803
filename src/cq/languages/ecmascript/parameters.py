"""Functions as they are written: their parameters, what those are and bind, and what is returned."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from cq.languages.ecmascript.modifiers import find_modifiers, take_decorators
from cq.languages.ecmascript.scopes import WrittenFunction
from cq.languages.ecmascript.values import VALUE_TEXT, BoundName, ValueReader, substitute
from cq.model.code import AliasOf, Name, Parameter, Value, label_type
from cq.syntax.collect import DEFINED
from cq.syntax.excerpt import clip
from cq.syntax.language import CALLEE_TEXT, Draft
from cq.syntax.tree import Captures, Node, child_at, children_of, end_of, field_of, is_missing, kind_of, start_of

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

IN_CLASS = 0  # `Draft.owner` of what belongs to the class around its constructor


class ReadParameter(NamedTuple):
    """A parameter with its pattern: its name, or what takes it apart."""

    parameter: Parameter
    node: Node
    pattern: Node
    bound: tuple[BoundName, ...]


class ParameterReader(ValueReader):
    all_optional = False  # parameters may be left out

    def on_nameless(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        body = field_of(node, "body")
        if body is not None:
            self.read_function(collector, node, body)

    def on_bodiless(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """Names that a type of functions gives to its parameters are no uses, and are known in it alone."""
        params, start, end = field_of(node, "parameters"), start_of(node), end_of(node)
        is_asked = _ASKING.search(collector.text, start, end) is not None
        binds = collector.code.binds
        for child in children_of(params) if params is not None else ():
            for bound in self.find_bound(collector, field_of(child, "pattern") or child):
                collector.marks[start_of(bound.name)] = DEFINED
                if is_asked:
                    binds.append((start, start, collector.write(bound.name), None, end))
        for name in self.find_constraints(collector, node):
            binds.append((start, start, label_type(name), AliasOf(None), end))

    def on_inferred(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """`infer U`."""
        name = child_at(node, 0)
        if name is not None:
            collector.marks[start_of(name)] = DEFINED
            self.notes(collector).inferred.append((start_of(name), collector.write(name)))

    def on_test(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """`T extends U ? A : B`."""
        right, consequence = field_of(node, "right"), field_of(node, "consequence")
        if right is not None and consequence is not None:
            self.notes(collector).tests.append((start_of(right), end_of(right), end_of(consequence)))

    def on_mapped(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """`[K in keyof T as …]: T[K]`."""
        clause = next((child for child in children_of(node) if kind_of(child) == "mapped_type_clause"), None)
        name = None if clause is None else field_of(clause, "name")
        if name is not None:
            start, end = start_of(node), end_of(node)
            collector.marks[start_of(name)] = DEFINED
            collector.code.binds.append((start, start, label_type(collector.write(name)), AliasOf(None), end))

    def read_function(self, collector: Collector, node: Node, body: Node, draft: Draft | None = None) -> None:
        start, body_start = start_of(node), start_of(body)
        params = field_of(node, "parameters")
        children = children_of(params) if params is not None else [field_of(node, "parameter")]  # of `x => …`
        taken = self.read_parameters(collector, children)
        has_this = bool(taken) and taken[0].parameter.name == "this"
        for number, read in enumerate(taken[has_this:]):
            self._add_parameter(collector, read, number)
        parameters = tuple([read.parameter for read in taken])
        gap = collector.text[start:body_start]
        annotation = field_of(node, "return_type") if b":" in gap else None
        kind = self.value(collector, annotation)
        if annotation is not None and draft is not None:
            self.annotate(collector, draft.name, annotation)
        if b"<" in gap:
            self.add_type_parameters(collector, node)
            parameters, kind = self._constrain(collector, node, parameters, kind)
        is_arrow = kind_of(node) == "arrow_function"
        is_expression = is_arrow and kind_of(body) != "statement_block"
        own = field_of(node, "name") if collector.text.startswith(b"function ", start) else None
        self.notes(collector).functions[start] = WrittenFunction(
            end_of(node),
            body_start,
            parameters[has_this:],
            tuple([
                (start_of(name), collector.write(name), value)
                for read in taken for name, value, _ in read.bound
            ]),
            kind,
            self.value(collector, body) if is_expression else None,
            is_arrow,
            parameters[0].type if has_this else None,
            "" if own is None else collector.write(own),
        )  # fmt: skip

    def read_signature(self, collector: Collector, draft: Draft, node: Node) -> None:
        """A method or function without a body: overloads, abstract methods, members of an interface."""
        params, annotation = field_of(node, "parameters"), field_of(node, "return_type") or field_of(node, "type")
        if annotation is not None:
            self.annotate(collector, draft.name, annotation)
        taken = self.read_parameters(collector, [] if params is None else children_of(params))
        parameters = tuple([read.parameter for read in taken if read.parameter.name != "this"])
        kind = self.value(collector, annotation)
        self.notes(collector).signatures[draft.name_start] = self._constrain(collector, node, parameters, kind)

    def _constrain(
        self, collector: Collector, node: Node, parameters: tuple[Parameter, ...], kind: Value
    ) -> tuple[tuple[Parameter, ...], Value]:
        """Parameters and the type of a result, with the constraints of a type parameter for its name."""
        mapping = self.find_constraints(collector, node)
        if not mapping:
            return parameters, kind
        replace = msgspec.structs.replace
        return tuple([replace(p, type=substitute(p.type, mapping)) for p in parameters]), substitute(kind, mapping)

    def read_parameters(self, collector: Collector, nodes: list[Node] | list[Node | None]) -> list[ReadParameter]:
        """A pattern keeps its place in the list: names that it binds are attributes of the parameter, called `(0)`."""
        found: list[ReadParameter] = []
        for node in nodes:
            if node is None or kind_of(node) in _NO_PARAMETERS:
                continue
            pattern: Node | None = field_of(node, "pattern") or node
            default, star = field_of(node, "value"), ""
            while pattern is not None and kind_of(pattern) in ("rest_pattern", "assignment_pattern"):
                if kind_of(pattern) == "rest_pattern":
                    star, pattern = "*", child_at(pattern, 0)
                else:
                    default, pattern = field_of(pattern, "right"), field_of(pattern, "left")
            if pattern is None:
                continue
            kind, value = self.value(collector, field_of(node, "type")), self.value(collector, default)
            optional = default is not None or self.all_optional or kind_of(node) == "optional_parameter"
            name, bound = collector.write(pattern), ()
            if kind_of(pattern) in ("object_pattern", "array_pattern"):
                name = f"({sum(read.parameter.name != 'this' for read in found)})"
                bound = tuple(self.find_bound(collector, pattern, Name(name)))
            found.append(ReadParameter(Parameter(name, star, kind, value, optional), node, pattern, bound))
        return found

    def _add_parameter(self, collector: Collector, read: ReadParameter, number: int) -> None:
        """As symbols: itself, the names it binds, and the field that `private name` makes of it."""
        text, node, pattern = collector.text, read.node, read.pattern
        if is_missing(pattern):
            return
        start, end, at, stop = start_of(node), end_of(node), start_of(pattern), end_of(pattern)
        is_named = kind_of(pattern) == "identifier"
        name = read.parameter.name if is_named else f"arg{number}"
        draft = Draft("parameter", name, start, end, at, stop, head=start)
        if text[start] == _AT:
            take_decorators(collector, draft, at)
        draft.signature = clip(text, draft.head, end, VALUE_TEXT)
        collector.symbols.append(draft)
        annotation = field_of(node, "type") if start < at or stop < end else None
        if annotation is not None:
            self.annotate(collector, name, annotation, node)
        for bound in read.bound:
            self.add_binding(collector, "parameter", bound.name)
        if is_named and draft.head < at and (words := find_modifiers(text[draft.head : at])):
            collector.symbols.append(
                Draft("field", name, start, end, at, stop, head=draft.head, signature=draft.signature,
                      modifiers=words, decorators=draft.decorators, owner=IN_CLASS)
            )  # fmt: skip
            collector.code.stores.append((start, Name("this"), name, Name(name), None, -1))
            if annotation is not None:
                collector.code.types[start] = read.parameter.type

    def add_type_parameters(self, collector: Collector, node: Node) -> None:
        parameters = field_of(node, "type_parameters")
        for child in children_of(parameters) if parameters is not None else ():
            name = field_of(child, "name")
            if name is not None and end_of(name) > start_of(name):
                start, end = start_of(child), end_of(child)
                collector.symbols.append(
                    Draft("type_parameter", collector.write(name), start, end,
                          start_of(name), end_of(name), head=start, signature=collector.fold(start, end))
                )  # fmt: skip

    def add_binding(self, collector: Collector, kind: str, name: Node) -> None:
        start, end = start_of(name), end_of(name)
        label = collector.slice(start, end)
        collector.symbols.append(Draft(kind, label, start, end, start, end, head=start, signature=label))

    def annotate(self, collector: Collector, name: str, annotation: Node, around: Node | None = None) -> None:
        """`name: Type`, of a parameter all of it; and `(…): Type`, what a function gives."""
        inner = child_at(annotation, 0)
        if inner is None:
            return
        at, end = start_of(inner), end_of(annotation)
        start, stop = (at, end) if around is None else (start_of(around), end_of(around))
        collector.flows.append((start, stop, "annotate", name, clip(collector.text, at, end, CALLEE_TEXT), "type", at))


_AT = ord("@")
_ASKING = re.compile(rb"\b(?:is|asserts|typeof)\b")  # what in a type asks for a parameter by its name
_NO_PARAMETERS = frozenset({"comment", "ERROR", "decorator"})
