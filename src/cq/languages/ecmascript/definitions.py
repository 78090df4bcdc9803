"""What a document defines: functions, classes, types, variables, and the properties of objects that have a name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cq.languages.ecmascript.holders import UNWRAP_DEPTH, HolderReader
from cq.languages.ecmascript.modifiers import find_modifiers
from cq.languages.ecmascript.scopes import WrittenClass
from cq.languages.ecmascript.values import QUOTES, VALUE_TEXT, ModuleCall, read_dotted, substitute
from cq.model.code import NULL, AliasOf, Attribute, Choice, Dictionary, Imported, Lambda, Name, Typed, Value, label_type
from cq.syntax.excerpt import clip
from cq.syntax.language import CALLEE_TEXT, ROLE_NUMBER, Draft
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

_IMPORT = ROLE_NUMBER["import"]


class DefinitionReader(HolderReader):
    """A definition inside `export` or `declare` is widened when all of them are known."""

    def on_symbol(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        if kind == "unnamed":
            self._read_unnamed(collector, node)
            return
        name = field_of(node, "name") or field_of(node, "property")
        if name is None or end_of(name) == start_of(name):
            return
        body = field_of(node, "body") if kind in _BODIED else None
        if body is None and kind in _BODIED:
            return
        draft = self.add_draft(collector, kind, start_of(node), end_of(node), name)
        if body is not None:
            self.open(collector, draft, body)
        match kind:
            case "function" | "method" if body is not None:
                self._read_function(collector, draft, node, body)
            case "expression":  # `function name() {}` as a value; dropped later where it is bound to another name
                draft.kind, draft.scope_start = "function", draft.start
            case "class" | "class_expression":
                draft.kind, body = "class", field_of(node, "body")
                if body is None:
                    draft.signature = clip(collector.text, draft.head, draft.end, VALUE_TEXT)
                else:
                    self.open(collector, draft, body)
                    self.read_bases(collector, draft, node)
            case "interface":
                self.read_bases(collector, draft, node)
            case "type":
                self._read_type(collector, draft, node)
            case "enum" if body is not None:
                self._read_enum(collector, draft, body)
            case "namespace":
                self._read_namespace(collector, draft, node)
            case "field":
                self._read_field(collector, draft, node)
            case "property":
                known = self._annotate(collector, draft, node)
                draft.signature = clip(collector.text, draft.head, draft.end, VALUE_TEXT)
                self.bind(collector, draft.start, draft.end, draft.name, None, known)
            case "signature":
                draft.kind = "function" if kind_of(node) == "function_signature" else "method"
                draft.end = with_semicolon(collector.text, draft.end)
                draft.signature = self.trim_signature(collector.fold(draft.head, draft.end))
                if draft.kind == "method":
                    _name_method(draft)
                self.read_signature(collector, draft, node)
            case _:
                raise AssertionError(kind)

    def _read_function(self, collector: Collector, draft: Draft, node: Node, body: Node) -> None:
        params = field_of(node, "parameters")
        if params is None:
            collector.symbols.pop()
            return
        draft.scope_start = start_of(params)
        if draft.kind == "method":
            _name_method(draft)
        else:
            self.notes(collector).bound.add(draft.body_start)
        self.read_function(collector, node, body, draft)

    def _read_type(self, collector: Collector, draft: Draft, node: Node) -> None:
        """An alias holds its members and type parameters; one without either is a line like any other."""
        value = field_of(node, "value")
        if value is None:
            collector.symbols.pop()
            return
        draft.end = with_semicolon(collector.text, draft.end)
        self.add_type_parameters(collector, node)
        parameters = tuple(self.find_constraints(collector, node).items())
        if kind_of(value) == "object_type" and not _is_mapped(value):
            self.open(collector, draft, value)
            self.notes(collector).classes[draft.body_start] = WrittenClass("interface", parameters=parameters)
            return
        if parameters:
            draft.body_start, draft.body_end = start_of(value), end_of(value)
        draft.signature = clip(collector.text, draft.head, draft.end, 2 * VALUE_TEXT).removesuffix(";")
        known = substitute(self.value(collector, value), dict(parameters))
        self.bind(collector, draft.start, draft.end, label_type(draft.name), AliasOf(known))

    def _read_unnamed(self, collector: Collector, node: Node) -> None:
        """`(a: A): B` is called `()`, `new (a: A): B` is called `new ()`, and `[key: string]: A` by its brackets."""
        text, start, end = collector.text, start_of(node), end_of(node)
        index, params = field_of(node, "index_type"), field_of(node, "parameters")
        if index is not None:
            first, last = text.find(b"[", start, start_of(index)), text.find(b"]", end_of(index), end) + 1
            if first < 0 or not last:
                return
            draft = Draft("property", collector.fold(first, last), start, end, first, last, head=start)
            draft.modifiers = find_modifiers(text[start:first])
            draft.signature = clip(text, start, end, VALUE_TEXT)
            collector.symbols.append(draft)
            self.bind(collector, start, end, draft.name, None, self._annotate(collector, draft, node))
        elif params is not None and not is_missing(params):
            is_made = kind_of(node) == "construct_signature"
            first = start if is_made else start_of(params)
            draft = Draft("method", "new ()" if is_made else "()", start, with_semicolon(text, end), first, first + 1)
            draft.head = start
            draft.signature = self.trim_signature(collector.fold(start, draft.end))
            collector.symbols.append(draft)
            self.read_signature(collector, draft, node)

    def _read_enum(self, collector: Collector, draft: Draft, body: Node) -> None:
        if b"const" in collector.text[draft.start : draft.name_start]:
            draft.modifiers += ("const",)
        self.notes(collector).classes[draft.body_start] = WrittenClass("enum")
        for member in children_of(body):
            if kind_of(member) != "comment" and not is_missing(member):
                name = field_of(member, "name") or member
                entry = self.add_draft(collector, "enum_member", start_of(member), end_of(member), name)
                entry.signature = clip(collector.text, entry.start, entry.end, VALUE_TEXT)

    def _read_namespace(self, collector: Collector, draft: Draft, node: Node) -> None:
        body = field_of(node, "body")
        draft.end = with_semicolon(collector.text, draft.end)
        if body is None:
            draft.signature = self.trim_signature(collector.fold(draft.head, draft.end))
        else:
            self.open(collector, draft, body)
            self.notes(collector).classes[draft.body_start] = WrittenClass("namespace")
        if collector.text[draft.name_start - 1] not in QUOTES and "." in draft.name:
            # `namespace A.B`: called B, and A.B in full; `finish_nested` takes the path off the name.
            draft.name_start = draft.name_end - len(draft.name.rpartition(".")[2].strip().encode())

    def _read_field(self, collector: Collector, draft: Draft, node: Node) -> None:
        text, value = collector.text, field_of(node, "value")
        known = self._annotate(collector, draft, node)
        draft.end = with_semicolon(text, draft.end)
        is_holder = value is not None and self.bind_value(collector, draft, value, "method")
        if value is not None and not is_holder:
            self.add_assignment(collector, draft.start, draft.end, draft.name, value)
        if not is_holder or draft.scope_start < 0 or draft.kind == "class":
            found = NULL if value is None else self.value(collector, value)
            self.bind(collector, start_of(node), draft.end, draft.name, found, None if is_holder else known)
        draft.signature = draft.signature or clip(text, draft.head, draft.end, VALUE_TEXT).removesuffix(";")

    def _annotate(self, collector: Collector, draft: Draft, node: Node) -> Value:
        annotation = field_of(node, "type")
        if annotation is None:
            return None
        self.annotate(collector, draft.name, annotation)
        return self.value(collector, annotation)

    # -- variables -------------------------------------------------------------------------------

    def on_declare(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        text = collector.text
        start, end = start_of(node), end_of(node)
        declarators = [child for child in children_of(node) if kind_of(child) == "variable_declarator"]
        is_constant = text.startswith(b"const", start)
        for declarator in declarators:
            first, last = start_of(declarator), end_of(declarator)
            span = (start, end) if len(declarators) == 1 else (first, last + (text[last : last + 1] == b","))
            name, value = field_of(declarator, "name"), field_of(declarator, "value")
            if name is None:
                continue
            # `require`, `await import`, `import`: other values need no closer look.
            if value is not None and text[start_of(value)] in b"rai":
                required = self.find_required(collector, value)
                if required is not None:
                    self._require(collector, name, required, span)
                    continue
            if kind_of(name) != "identifier":
                self._take_apart(collector, declarator, name, span, start)
                continue
            label = collector.slice(first, end_of(name))
            draft = Draft("variable", label, *span, first, end_of(name), head=start)
            collector.symbols.append(draft)
            known = self._annotate(collector, draft, declarator)
            is_holder = value is not None and self.bind_value(collector, draft, value, "function")
            if not is_holder:
                draft.signature = clip(text, *span, VALUE_TEXT).rstrip(",;")
                is_literal = value is not None and self.add_assignment(collector, first, last, label, value)
                if is_constant and (is_literal or label.isupper()):
                    draft.kind = "constant"
            elif is_constant and draft.kind == "variable" and label.isupper():
                draft.kind = "constant"
            if draft.scope_start >= 0:
                self.notes(collector).bound.add(draft.body_start)
                continue
            found = NULL if value is None else self.value(collector, value)
            self.bind(collector, first, last, label, found, known)
            if isinstance(found, Dictionary):
                functions = [inner.start for inner in found.values if isinstance(inner, Lambda)]
                self.notes(collector).entries |= dict.fromkeys(functions, Name(label))

    def read_using(self, collector: Collector, node: Node, name: Node, value: Node) -> None:
        """`using name = value`, which the grammar of TypeScript takes for an assignment."""
        start, end, first, last = start_of(node), end_of(node), start_of(name), end_of(name)
        label = collector.write(name)
        draft = Draft("variable", label, start, with_semicolon(collector.text, end), first, last, head=start)
        draft.signature = clip(collector.text, start, end, VALUE_TEXT)
        collector.symbols.append(draft)
        self.add_assignment(collector, first, end, label, value)
        self.bind(collector, first, end, label, self.value(collector, value))

    def _take_apart(
        self, collector: Collector, declarator: Node, pattern: Node, span: tuple[int, int], head: int
    ) -> None:
        """`const {a: b} = value`."""
        text, value = collector.text, field_of(declarator, "value")
        kind, source = self.value(collector, field_of(declarator, "type")), self.value(collector, value)
        signature = clip(text, *span, VALUE_TEXT).rstrip(",;")
        path = "" if value is None else read_dotted(collector, value)
        for name, inner, key in self.find_bound(collector, pattern, source if kind is None else Typed(kind, source)):
            first, last = start_of(name), end_of(name)
            label = collector.slice(first, last)
            self.bind(collector, first, first, label, inner)
            collector.symbols.append(Draft("variable", label, *span, first, last, head=head, signature=signature))
            if path and key is not None and value is not None:
                path_of_key = f"{path}.{collector.write(key)}"
                collector.flows.append((first, last, "assign", label, path_of_key, "attribute", start_of(value)))
        if value is not None and not path:
            target = clip(text, start_of(pattern), end_of(pattern), CALLEE_TEXT)
            self.add_assignment(collector, start_of(declarator), end_of(declarator), target, value)

    def _require(self, collector: Collector, pattern: Node, required: ModuleCall, span: tuple[int, int]) -> None:
        """`const x = require("m")`, `const {a: b} = await import("m")`: bindings of an import and no variables."""
        whole = Imported(0, required.module, required.member or ("=" if required.kind == "require" else "*"))

        def name_import(value: Value) -> Value:
            match value:
                case Attribute(base=Imported(), path=path) if not required.member:
                    first, _, rest = path.partition(".")
                    named = Imported(0, required.module, first)
                    return Attribute(named, rest) if rest else named
                case Choice():
                    return Choice(tuple(map(name_import, value.options)))
                case _:
                    return value

        bindings: list[tuple[str, str, int, int, bool]] = []
        for name, value, key in self.find_bound(collector, pattern, whole):
            start, end = start_of(name), end_of(name)
            collector.marks[start] = _IMPORT
            path = [] if key is None else [collector.write(key)]
            imported = ".".join([required.member, *path] if required.member else path) or "*"
            bindings.append((collector.slice(start, end), imported, start, end, False))
            self.bind(collector, start, start, bindings[-1][0], name_import(value))
        self.notes(collector).required.add(required.start)
        kind = "require" if required.kind == "require" else "dynamic"
        collector.add_import(kind, required.module, *span, bindings)

    def on_alias(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """`import Short = Long.Name;` names what is there already."""
        name, value = child_at(node, 0), child_at(node, 1)
        if name is None or value is None or is_missing(name):
            return
        draft = self.add_draft(collector, "variable", start_of(node), end_of(node), name)
        draft.end = with_semicolon(collector.text, draft.end)
        draft.signature = clip(collector.text, draft.start, draft.end, VALUE_TEXT).removesuffix(";")
        self.bind(collector, draft.start, draft.end, draft.name, self.value(collector, value))
        target = clip(collector.text, start_of(value), end_of(value), CALLEE_TEXT)
        flow = (draft.start, draft.end, "assign", draft.name, target, "attribute", start_of(value))
        collector.flows.append(flow)

    def add_assignment(
        self, collector: Collector, start: int, end: int, target: str, value: Node, kind: str = "assign"
    ) -> bool:
        """One flow; True when the value is a literal. Casts, parentheses and `await` are looked through."""
        for _ in range(UNWRAP_DEPTH):
            inner = child_at(value, 0) if self.shape(value) in _LOOKED_THROUGH else None
            if inner is None:
                break
            value = inner
        value_kind = self.argument_ids.get(kind_id_of(value), "other")
        first, source = start_of(value), ""
        if value_kind == "name" or value_kind == "attribute":
            source = clip(collector.text, first, end_of(value), CALLEE_TEXT)
        elif value_kind == "call":
            source = self.call_target(collector, value)
        elif value_kind == "other" and collector.text[first : first + 1] == b"-":
            value_kind = "number"
        collector.flows.append((start, end, kind, target, source, value_kind, first))
        return value_kind in _LITERALS

    def bind(self, collector: Collector, start: int, end: int, name: str, value: Value, kind: Value = None) -> None:
        """A declaration: `start` is where it stands."""
        collector.code.binds.append((end, start, name, value, -1))
        if kind is not None:
            collector.code.types[start] = kind


def _is_mapped(value: Node) -> bool:
    """`{[K in keyof T]: …}`, which has no members of its own."""
    return any(
        kind_of(part) == "mapped_type_clause" for member in children_of(value)[:1] for part in children_of(member)
    )


def with_semicolon(text: bytes, end: int) -> int:
    return end + 1 if text[end : end + 1] == b";" else end


def _name_method(draft: Draft) -> None:
    if "get" in draft.modifiers or "set" in draft.modifiers:
        draft.kind = "accessor"
    elif draft.name == "constructor" and "static" not in draft.modifiers:
        draft.kind = "constructor"


_LOOKED_THROUGH = frozenset({"wrapped", "awaited"})
_LITERALS = frozenset({"string", "number", "boolean", "null"})
_BODIED = frozenset({"function", "method", "expression", "interface", "enum"})
