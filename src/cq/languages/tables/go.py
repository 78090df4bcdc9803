"""Go: a method belongs to the type of its receiver, and what begins with a capital is exported."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cq.model.facts import Argument
from cq.syntax.excerpt import clip
from cq.syntax.language import ARG_TEXT, ROLE_NUMBER, Captures, Draft, Language, first_child

if TYPE_CHECKING:
    from tree_sitter import Node

    from cq.syntax.collect import Collector

_IMPORT = ROLE_NUMBER["import"]
_VALUE_TEXT = 120
# `(s *Store[K, V])` -> Store
_RECEIVER = re.compile(rb"([\w\x80-\xff]+)\s*(?:\[[^()]*\])?[\s,)]*\Z")
_VERSION = re.compile(r"[/.]v\d+$")


class Go(Language):
    id = "go"
    label = "Go"
    grammar_module = "tree_sitter_go"
    argument_kinds = {
        "interpreted_string_literal": "string", "raw_string_literal": "string", "rune_literal": "string",
        "int_literal": "number", "float_literal": "number", "imaginary_literal": "number", "true": "boolean",
        "false": "boolean", "nil": "null", "identifier": "name", "selector_expression": "attribute",
        "call_expression": "call", "composite_literal": "object", "func_literal": "function",
        "variadic_argument": "spread",
    }  # fmt: skip
    root_kinds = {"import_declaration": "import"}
    doc_prefixes = (b"//", b"/*")

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
        name = captures["name"][0] if "name" in captures else node.child_by_field_name("name")
        if name is None:
            return None
        body = node.child_by_field_name("body")
        kind = kind.removesuffix("_element")
        draft = self._define(
            collector, kind, node, name, (body.start_byte, body.end_byte) if body is not None else None
        )
        receiver = node.child_by_field_name("receiver")
        if receiver is not None:
            last = receiver.end_byte
            owner = _RECEIVER.search(collector.text, max(receiver.start_byte, last - 400), last)
            if owner is not None:
                # The qualified name is built from this; `finish_nested` takes the owner off again.
                draft.name = f"{owner[1].decode('utf-8', 'replace')}.{draft.name}"
        if body is not None:
            for field in ("receiver", "type_parameters", "parameters", "result"):
                parameters = node.child_by_field_name(field)
                if parameters is not None:
                    self.on_parameters(collector, parameters)
        return draft

    def on_parameters(self, collector: Collector, node: Node) -> None:
        kind = "type_parameter" if node.type == "type_parameter_list" else "parameter"
        for child in node.named_children:
            for name in _names(child):
                self._define(collector, kind, child, name)

    def on_lambda(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        self.on_parameters(collector, captures["params"][0])

    def _define(
        self, collector: Collector, kind: str, node: Node, name: Node, body: tuple[int, int] | None = None,
        spec: Node | None = None, word: str = "",
    ) -> Draft:  # fmt: skip
        """`spec` and `word` make the signature where the node does not: `const ( A = 1 )` reads `const A = 1`."""
        start, end = node.start_byte, node.end_byte
        draft = Draft(kind, collector.slice(name.start_byte, name.end_byte), start, end, name.start_byte, name.end_byte)
        written = spec or node
        if body is not None:
            draft.body_start, draft.body_end = body
            draft.scope_start = start
            draft.signature = word + self.trim_signature(collector.fold(written.start_byte, body[0]))
        elif kind in ("function", "method"):
            draft.signature = self.trim_signature(collector.fold(start, end))
        else:
            draft.signature = word + clip(collector.text, written.start_byte, written.end_byte, _VALUE_TEXT)
        if draft.name:  # a name the parser only supposes is empty
            collector.symbols.append(draft)
        return draft

    def _add_specs(self, collector: Collector, kind: str, node: Node) -> None:
        """`const A = 1` is one statement; in `const ( A = 1; B )` each spec stands for itself."""
        specs = [child for child in node.named_children if child.type != "comment"]
        if len(specs) == 1 and specs[0].type == "var_spec_list":
            specs = [child for child in specs[0].named_children if child.type != "comment"]
        for spec in specs:
            whole = node if len(specs) == 1 else spec
            if kind == "type":
                self._add_type(collector, whole, spec)
            else:
                self._add_names(collector, kind, whole, spec)

    def _add_type(self, collector: Collector, whole: Node, spec: Node) -> None:
        name, shape = spec.child_by_field_name("name"), spec.child_by_field_name("type")
        if name is None or shape is None:
            return
        kind = {"struct_type": "struct", "interface_type": "interface"}.get(shape.type, "type")
        draft = self._define(collector, kind, whole, name, _braces(collector, shape), spec, "type ")
        if kind == "struct":
            draft.bases = tuple(
                collector.fold(base.start_byte, base.end_byte)
                for fields in shape.named_children
                for field in fields.named_children
                if field.type == "field_declaration" and field.child_by_field_name("name") is None
                and (base := field.child_by_field_name("type")) is not None
            )  # fmt: skip
        elif kind == "interface":
            bases = [collector.fold(b.start_byte, b.end_byte) for b in shape.named_children if b.type == "type_elem"]
            draft.bases = tuple(base for base in bases if "|" not in base and "~" not in base)
        parameters = spec.child_by_field_name("type_parameters")
        if parameters is not None and draft.body_start >= 0:
            self.on_parameters(collector, parameters)

    def _add_names(self, collector: Collector, kind: str, whole: Node, spec: Node) -> None:
        """Every name of `a, b := f()` and `var a, b int`; a function literal bound to one name is a function."""
        left = spec.child_by_field_name("left")
        names = left.named_children if left is not None else spec.children_by_field_name("name")
        names = [n for n in names if n.type == "identifier" and collector.text[n.start_byte : n.end_byte] != b"_"]
        values = spec.child_by_field_name("right" if left is not None else "value")
        value = first_child(values) if values is not None and len(names) == 1 else None
        body = value.child_by_field_name("body") if value is not None and value.type == "func_literal" else None
        word = "" if left is not None else "const " if kind == "constant" else "var "
        for name in names:
            if body is not None:
                self._define(collector, "function", whole, name, (body.start_byte, body.end_byte), spec, word)
            else:
                self._define(collector, kind, whole, name, None, spec, word)

    def _add_fields(self, collector: Collector, node: Node) -> None:
        names, shape = _names(node), node.child_by_field_name("type")
        body = _braces(collector, shape) if shape is not None and len(names) == 1 else None
        for name in names:
            self._define(collector, "field", node, name, body)

    # -- calls and imports -------------------------------------------------------------------------

    def on_call(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        args = node.child_by_field_name("arguments") or node
        collector.add_call(self, "call", node.start_byte, node.end_byte, captures["callee"][0], args)

    def summarize_arguments(
        self, collector: Collector, node: Node
    ) -> tuple[tuple[Argument, ...], int, tuple[str, ...]]:
        operand = node.child_by_field_name("operand") if node.type == "type_conversion_expression" else None
        if operand is None:
            return super().summarize_arguments(collector, node)
        text = clip(collector.text, operand.start_byte, operand.end_byte, ARG_TEXT)
        return (Argument(self.value_kind(operand), text),), 1, ()

    def callee_name(self, collector: Collector, callee: Node) -> Node | None:
        """`Map[int](x)`, `pkg.Map[K, V](x)`"""
        inner = callee.child_by_field_name("operand") or callee.child_by_field_name("type")
        if callee.type == "index_expression" or callee.type == "type_instantiation_expression":
            inner = inner or first_child(callee)
        elif callee.type != "generic_type":
            return None
        if inner is not None and inner.type in ("selector_expression", "qualified_type"):
            return inner.child_by_field_name("field") or inner.child_by_field_name("name")
        return inner if inner is not None and inner.type in ("identifier", "type_identifier") else None

    def on_import(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        specs = [child for child in node.named_children if child.type == "import_spec"]
        if not specs and (group := first_child(node)) is not None:
            specs = [child for child in group.named_children if child.type == "import_spec"]
        collector.spans.append((node.start_byte, node.end_byte, _IMPORT))
        for spec in specs:
            path, name = spec.child_by_field_name("path"), spec.child_by_field_name("name")
            if path is None:
                continue
            module = collector.slice(path.start_byte, path.end_byte).strip('"`')
            # `gopkg.in/yaml.v3` and `a/b/v2` are called yaml and b.
            local = _VERSION.sub("", module).rpartition("/")[2]
            bound = path if name is None else name
            if name is not None:
                local = collector.slice(name.start_byte, name.end_byte)
            kind = {".": "star", "_": "side_effect"}.get(local, "import")
            bindings = [(local, "*", bound.start_byte, bound.end_byte, False)] if kind == "import" else []
            collector.add_import(kind, module, node.start_byte, node.end_byte, bindings)

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
    return [name for name in node.children_by_field_name("name") if name.is_named]


def _braces(collector: Collector, shape: Node) -> tuple[int, int] | None:
    """The `{…}` of a struct or interface type."""
    if shape.type not in ("struct_type", "interface_type"):
        return None
    brace = collector.text.find(b"{", shape.start_byte, shape.end_byte)
    return (brace, shape.end_byte) if brace >= 0 else None
