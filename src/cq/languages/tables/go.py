"""Go: a method belongs to the type of its receiver, and what begins with a capital is exported."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cq.model.facts import Argument
from cq.syntax.excerpt import clip
from cq.syntax.language import ARG_TEXT, ROLE_NUMBER, Draft, Language
from cq.syntax.tree import (
    Captures,
    Node,
    child_at,
    children_of,
    end_of,
    field_of,
    fields_of,
    is_named,
    kind_of,
    start_of,
)

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

_IMPORT = ROLE_NUMBER["import"]
_VALUE_TEXT = 120
# `(s *Store[K, V])` -> Store
_RECEIVER = re.compile(rb"([\w\x80-\xff]+)\s*(?:\[[^()]*\])?[\s,)]*\Z")
_VERSION = re.compile(r"[/.]v\d+$")


class Go(Language):
    def on_symbol(self, collector: Collector, kind: str, node: Node, captures: Captures) -> Draft | None:
        if kind in ("constant", "variable", "type"):
            self._add_specs(collector, kind, node)
            return None
        if kind == "local":
            self._add_names(collector, "variable", node, node)
            return None
        if kind == "field":
            self._add_fields(collector, node)
            return None
        if kind == "name":
            return self._define(collector, "variable", node, node)
        name = captures["name"][0] if "name" in captures else field_of(node, "name")
        if name is None:
            return None
        body = field_of(node, "body")
        kind = kind.removesuffix("_element")
        draft = self._define(collector, kind, node, name, (start_of(body), end_of(body)) if body is not None else None)
        receiver = field_of(node, "receiver")
        if receiver is not None:
            last = end_of(receiver)
            owner = _RECEIVER.search(collector.text, max(start_of(receiver), last - 400), last)
            if owner is not None:
                # The qualified name is built from this; `finish_nested` takes the owner off again.
                draft.name = f"{owner[1].decode('utf-8', 'replace')}.{draft.name}"
        if body is not None:
            for field in ("receiver", "type_parameters", "parameters", "result"):
                parameters = field_of(node, field)
                if parameters is not None:
                    self.on_parameters(collector, parameters)
        return draft

    def on_parameters(self, collector: Collector, node: Node) -> None:
        kind = "type_parameter" if kind_of(node) == "type_parameter_list" else "parameter"
        for child in children_of(node):
            for name in _names(child):
                self._define(collector, kind, child, name)

    def on_lambda(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        self.on_parameters(collector, captures["params"][0])

    def _define(
        self, collector: Collector, kind: str, node: Node, name: Node, body: tuple[int, int] | None = None,
        spec: Node | None = None, word: str = "",
    ) -> Draft:  # fmt: skip
        """`spec` and `word` make the signature where the node does not: `const ( A = 1 )` reads `const A = 1`."""
        start, end = start_of(node), end_of(node)
        draft = Draft(kind, collector.slice(start_of(name), end_of(name)), start, end, start_of(name), end_of(name))
        written = spec or node
        if body is not None:
            draft.body_start, draft.body_end = body
            draft.scope_start = start
            draft.signature = word + self.trim_signature(collector.fold(start_of(written), body[0]))
        elif kind in ("function", "method"):
            draft.signature = self.trim_signature(collector.fold(start, end))
        else:
            draft.signature = word + clip(collector.text, start_of(written), end_of(written), _VALUE_TEXT)
        if draft.name:  # a name the parser only supposes is empty
            collector.symbols.append(draft)
        return draft

    def _add_specs(self, collector: Collector, kind: str, node: Node) -> None:
        """`const A = 1` is one statement; in `const ( A = 1; B )` each spec stands for itself."""
        specs = [child for child in children_of(node) if kind_of(child) != "comment"]
        if len(specs) == 1 and kind_of(specs[0]) == "var_spec_list":
            specs = [child for child in children_of(specs[0]) if kind_of(child) != "comment"]
        for spec in specs:
            whole = node if len(specs) == 1 else spec
            if kind == "type":
                self._add_type(collector, whole, spec)
            else:
                self._add_names(collector, kind, whole, spec)

    def _add_type(self, collector: Collector, whole: Node, spec: Node) -> None:
        name, shape = field_of(spec, "name"), field_of(spec, "type")
        if name is None or shape is None:
            return
        kind = {"struct_type": "struct", "interface_type": "interface"}.get(kind_of(shape), "type")
        draft = self._define(collector, kind, whole, name, _braces(collector, shape), spec, "type ")
        if kind == "struct":
            draft.bases = tuple(
                collector.fold(start_of(base), end_of(base))
                for fields in children_of(shape)
                for field in children_of(fields)
                if kind_of(field) == "field_declaration" and field_of(field, "name") is None
                and (base := field_of(field, "type")) is not None
            )  # fmt: skip
        elif kind == "interface":
            bases = [collector.fold(start_of(b), end_of(b)) for b in children_of(shape) if kind_of(b) == "type_elem"]
            draft.bases = tuple(base for base in bases if "|" not in base and "~" not in base)
        parameters = field_of(spec, "type_parameters")
        if parameters is not None and draft.body_start >= 0:
            self.on_parameters(collector, parameters)

    def _add_names(self, collector: Collector, kind: str, whole: Node, spec: Node) -> None:
        """Every name of `a, b := f()` and `var a, b int`; a function literal bound to one name is a function."""
        left = field_of(spec, "left")
        names = children_of(left) if left is not None else fields_of(spec, "name")
        names = [n for n in names if kind_of(n) == "identifier" and collector.text[start_of(n) : end_of(n)] != b"_"]
        values = field_of(spec, "right" if left is not None else "value")
        value = child_at(values, 0) if values is not None and len(names) == 1 else None
        body = field_of(value, "body") if value is not None and kind_of(value) == "func_literal" else None
        word = "" if left is not None else "const " if kind == "constant" else "var "
        for name in names:
            if body is not None:
                self._define(collector, "function", whole, name, (start_of(body), end_of(body)), spec, word)
            else:
                self._define(collector, kind, whole, name, None, spec, word)

    def _add_fields(self, collector: Collector, node: Node) -> None:
        names, shape = _names(node), field_of(node, "type")
        body = _braces(collector, shape) if shape is not None and len(names) == 1 else None
        for name in names:
            self._define(collector, "field", node, name, body)

    # -- calls and imports -------------------------------------------------------------------------

    def on_call(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        args = field_of(node, "arguments") or node
        collector.add_call(self, "call", start_of(node), end_of(node), captures["callee"][0], args)

    def summarize_arguments(
        self, collector: Collector, node: Node
    ) -> tuple[tuple[Argument, ...], int, tuple[str, ...]]:
        operand = field_of(node, "operand") if kind_of(node) == "type_conversion_expression" else None
        if operand is None:
            return super().summarize_arguments(collector, node)
        text = clip(collector.text, start_of(operand), end_of(operand), ARG_TEXT)
        return (Argument(self.value_kind(operand), text),), 1, ()

    def callee_name(self, collector: Collector, callee: Node) -> Node | None:
        """`Map[int](x)`, `pkg.Map[K, V](x)`"""
        inner = field_of(callee, "operand") or field_of(callee, "type")
        if kind_of(callee) == "index_expression" or kind_of(callee) == "type_instantiation_expression":
            inner = inner or child_at(callee, 0)
        elif kind_of(callee) != "generic_type":
            return None
        if inner is not None and kind_of(inner) in ("selector_expression", "qualified_type"):
            return field_of(inner, "field") or field_of(inner, "name")
        return inner if inner is not None and kind_of(inner) in ("identifier", "type_identifier") else None

    def on_import(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        specs = [child for child in children_of(node) if kind_of(child) == "import_spec"]
        if not specs and (group := child_at(node, 0)) is not None:
            specs = [child for child in children_of(group) if kind_of(child) == "import_spec"]
        collector.spans.append((start_of(node), end_of(node), _IMPORT))
        for spec in specs:
            path, name = field_of(spec, "path"), field_of(spec, "name")
            if path is None:
                continue
            module = collector.slice(start_of(path), end_of(path)).strip('"`')
            # `gopkg.in/yaml.v3` and `a/b/v2` are called yaml and b.
            local = _VERSION.sub("", module).rpartition("/")[2]
            bound = path if name is None else name
            if name is not None:
                local = collector.slice(start_of(name), end_of(name))
            kind = {".": "star", "_": "side_effect"}.get(local, "import")
            bindings = [(local, "*", start_of(bound), end_of(bound), False)] if kind == "import" else []
            collector.add_import(kind, module, start_of(node), end_of(node), bindings)

    # -- the whole document ------------------------------------------------------------------------

    def finish_nested(self, collector: Collector) -> None:
        drafts = collector.symbols
        for draft in drafts:
            if draft.kind == "method" and "." in draft.name:
                draft.name = draft.name.rpartition(".")[2]
            visible = draft.parent < 0 or drafts[draft.parent].kind in ("struct", "interface", "field")
            if visible and draft.kind not in ("parameter", "type_parameter", "package"):
                draft.exported = draft.name[:1].isupper()


def _names(node: Node) -> list[Node]:
    """The grammar gives the commas between names the same field."""
    return [name for name in fields_of(node, "name") if is_named(name)]


def _braces(collector: Collector, shape: Node) -> tuple[int, int] | None:
    """The `{…}` of a struct or interface type."""
    if kind_of(shape) not in ("struct_type", "interface_type"):
        return None
    brace = collector.text.find(b"{", start_of(shape), end_of(shape))
    return (brace, end_of(shape)) if brace >= 0 else None
