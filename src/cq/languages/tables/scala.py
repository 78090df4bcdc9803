"""Scala: classes, objects, traits, enums, givens, extensions and their members."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cq.model.facts import Argument
from cq.syntax.collect import DEFINED, NO_SITE
from cq.syntax.excerpt import clip
from cq.syntax.language import ARG_TEXT, CALLEE_TEXT, ROLE_NUMBER, Captures, Draft, Language, first_child

if TYPE_CHECKING:
    from tree_sitter import Node

    from cq.syntax.collect import Collector

_CALL = ROLE_NUMBER["call"]
_IMPORT = ROLE_NUMBER["import"]
_TYPES = frozenset({"class", "object", "trait", "enum", "extension"})
_HIDDEN = frozenset({"private", "protected"})


class Scala(Language):
    id = "scala"
    label = "Scala"
    grammar_module = "tree_sitter_scala"
    argument_kinds = {
        "string": "string", "interpolated_string_expression": "string", "character_literal": "string",
        "integer_literal": "number", "floating_point_literal": "number", "boolean_literal": "boolean",
        "null_literal": "null", "identifier": "name", "field_expression": "attribute", "call_expression": "call",
        "instance_expression": "call", "tuple_expression": "array", "lambda_expression": "function",
        "block": "function", "assignment_expression": "keyword",
    }  # fmt: skip
    root_kinds = {
        "import_declaration": "import", "export_declaration": "export", "call_expression": "expression",
        "infix_expression": "expression", "assignment_expression": "expression", "if_expression": "control",
        "for_expression": "control", "while_expression": "control", "match_expression": "control",
        "try_expression": "control",
    }  # fmt: skip
    modifier_words = frozenset(
        {"abstract", "case", "final", "implicit", "inline", "infix", "lazy", "opaque", "open", "override", "private",
         "protected", "sealed", "transparent", "val", "var"}
    )  # fmt: skip
    doc_prefixes = (b"/**",)
    method_owners = _TYPES
    constructor_names = frozenset({"this"})
    dot_attributes = True

    def on_symbol(self, collector: Collector, kind: str, node: Node, captures: Captures) -> Draft | None:
        name = _extended_type(node) if kind == "extension" else captures["name"][0]
        if name is None or name.start_byte == name.end_byte:
            return None
        text, start, end = collector.text, node.start_byte, node.end_byte
        head = start
        decorators = []
        if text.startswith(b"@", start):
            for child in node.children:
                if child.type == "annotation":
                    decorators.append(collector.fold(child.start_byte + 1, child.end_byte))
                elif child.type not in ("comment", "block_comment"):
                    head = child.start_byte
                    break
        draft = Draft(
            kind, collector.fold(name.start_byte, name.end_byte), start, end, name.start_byte, name.end_byte, head=head,
            decorators=tuple(decorators), modifiers=self.find_modifiers(text[head : name.start_byte]),
        )  # fmt: skip
        body = node.child_by_field_name("body") if kind != "parameter" else None
        if body is not None:
            draft.body_start, draft.body_end, draft.scope_start = body.start_byte, body.end_byte, head
        elif kind in _TYPES:
            # `case class Point(x: Int)` holds its parameters, and has an empty body.
            draft.body_start, draft.body_end, draft.scope_start = end, end, head
        if kind in ("field", "constant", "variable", "parameter", "enum_member"):
            draft.signature = clip(text, head, end, 120)
            draft.body_start = draft.body_end = draft.scope_start = -1
        else:
            draft.signature = self.trim_signature(collector.fold(head, draft.body_start if body is not None else end))
        if kind in _TYPES or kind == "enum_member":
            extends = node.child_by_field_name("extend")
            if extends is not None:
                draft.bases = tuple(
                    collector.fold(base.start_byte, base.end_byte)
                    for base in extends.children_by_field_name("type")
                    if base.is_named
                )
        if kind in ("function", "extension") and body is not None:
            for parameters in node.children_by_field_name("parameters"):
                self.on_parameters(collector, parameters)
        if node.type == "class_parameter" and ("val" in draft.modifiers or "var" in draft.modifiers):
            draft.kind = "field"
        collector.symbols.append(draft)
        return draft

    def on_parameters(self, collector: Collector, node: Node) -> None:
        for child in node.named_children:
            name = child.child_by_field_name("name")
            if child.type == "parameter" and name is not None and name.start_byte < name.end_byte:
                start, end = child.start_byte, child.end_byte
                collector.symbols.append(
                    Draft("parameter", collector.slice(name.start_byte, name.end_byte), start, end, name.start_byte,
                          name.end_byte, signature=clip(collector.text, start, end, 120))
                )  # fmt: skip

    def trim_signature(self, signature: str) -> str:
        return super().trim_signature(signature).removesuffix(" with")

    # -- calls -------------------------------------------------------------------------------------

    def on_call(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        callee, args = captures["callee"][0], captures.get("args")
        if kind == "new":
            if callee.type == "template_body":
                return
            found = node.child_by_field_name("arguments")
            args = [found] if found is not None else None
        elif collector.text.startswith(b"super.", callee.start_byte):
            kind = "super"
        collector.add_call(self, kind or "call", node.start_byte, node.end_byte, callee, args[0] if args else None)

    def callee_name(self, collector: Collector, callee: Node) -> Node | None:
        """`f[Int]` and `new A[Int]` are named before their type arguments."""
        inner = callee.child_by_field_name("function") or callee.child_by_field_name("type")
        if inner is not None and inner.type in ("field_expression", "stable_type_identifier"):
            inner = inner.named_child(inner.named_child_count - 1) if inner.named_child_count else None
        return inner if inner is not None and inner.type in ("identifier", "type_identifier") else None

    def on_infix(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """`list map f` calls `map` of `list`; operators made of signs are no calls here."""
        operator = captures["operator"][0]
        if operator.is_missing:
            return
        start, name_start, last = node.start_byte, operator.start_byte, operator.end_byte
        collector.marks[name_start] = _CALL
        value = node.child_by_field_name("right")
        args: tuple[Argument, ...] = ()
        if value is not None:
            args = (Argument(self.value_kind(value), clip(collector.text, value.start_byte, value.end_byte, ARG_TEXT)),)
        collector.calls.append(
            (start, node.end_byte, name_start, "call", clip(collector.text, start, last, CALLEE_TEXT),
             collector.slice(name_start, last), clip(collector.text, start, name_start, CALLEE_TEXT),
             args, len(args), (), *NO_SITE)
        )  # fmt: skip

    def summarize_arguments(
        self, collector: Collector, node: Node
    ) -> tuple[tuple[Argument, ...], int, tuple[str, ...]]:
        if node.type == "arguments":
            return super().summarize_arguments(collector, node)
        # `list.foreach { x => … }`
        return (Argument("function", clip(collector.text, node.start_byte, node.end_byte, ARG_TEXT)),), 1, ()

    # -- imports -----------------------------------------------------------------------------------

    def on_import(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """`import a.b.C`, `import a.{B, C => D}`, `import a._`; several expressions after commas."""
        path: list[Node] = []
        selectors: Node | None = None
        collector.spans.append((node.start_byte, node.end_byte, _IMPORT))
        for child in [*node.children, None]:
            if child is not None and child.type != ",":
                if child.type in ("identifier", "operator_identifier"):
                    path.append(child)
                elif child.type in ("namespace_selectors", "namespace_wildcard", "as_renamed_identifier"):
                    selectors = child
            elif path or selectors is not None:
                self._add_import(collector, kind, node, path, selectors)
                path, selectors = [], None

    def _add_import(
        self, collector: Collector, kind: str, node: Node, path: list[Node], selectors: Node | None
    ) -> None:
        bindings = []
        star = False
        if selectors is None:
            last = path.pop()
            name = collector.slice(last.start_byte, last.end_byte)
            bindings.append((name, name, last.start_byte, last.end_byte, False))
        elif selectors.type == "namespace_wildcard":
            star = True
        else:
            for child in selectors.named_children if selectors.type == "namespace_selectors" else [selectors]:
                name, alias = child.child_by_field_name("name"), child.child_by_field_name("alias")
                star = star or child.type == "namespace_wildcard"
                if child.type == "identifier":
                    name = alias = child
                if name is not None and alias is not None and alias.type == "identifier":
                    bindings.append(
                        (collector.slice(alias.start_byte, alias.end_byte),
                         collector.slice(name.start_byte, name.end_byte), alias.start_byte, alias.end_byte, False)
                    )  # fmt: skip
        module = collector.slice(path[0].start_byte, path[-1].end_byte) if path else ""
        if kind == "reexport":
            for local, imported, start, end, _ in bindings:
                collector.exports.append((start, imported, local, end, module, False))
        if star:
            collector.add_import("star", module, node.start_byte, node.end_byte, [])
        if bindings or not star:
            collector.add_import(kind or "from", module, node.start_byte, node.end_byte, bindings)

    # -- the whole document --------------------------------------------------------------------------

    def finish(self, collector: Collector) -> None:
        # A name the parser only supposes is no reference.
        supposed = (start for start, end in zip(collector.ref_starts, collector.ref_ends, strict=True) if start == end)
        collector.marks.update(dict.fromkeys(supposed, DEFINED))

    def finish_nested(self, collector: Collector) -> None:
        drafts = collector.symbols
        for draft in drafts:
            holder = drafts[draft.parent] if draft.parent >= 0 else None
            if draft.kind == "parameter":
                if holder is None or holder.kind != "class" or "case" not in holder.modifiers:
                    continue
                draft.kind = "field"
            draft.exported = (
                draft.kind != "package"
                and not _HIDDEN.intersection(draft.modifiers)
                and (holder is None or (holder.exported and holder.kind in _TYPES) or holder.kind == "package")
            )


def _extended_type(node: Node) -> Node | None:
    """`extension (s: String)` goes by the name of the type it extends."""
    parameters = node.child_by_field_name("parameters")
    first = first_child(parameters) if parameters is not None else None
    return first.child_by_field_name("type") if first is not None else None
