"""Zig: functions, containers, what they declare, tests, `@import`, and calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cq.model.facts import Argument
from cq.syntax.excerpt import clip
from cq.syntax.language import Captures, Draft, Language

if TYPE_CHECKING:
    from tree_sitter import Node

    from cq.syntax.collect import Collector

_CONTAINERS = {
    "struct_declaration": "struct", "union_declaration": "union", "enum_declaration": "enum",
    "opaque_declaration": "struct", "error_set_declaration": "enum",
}  # fmt: skip


class Zig(Language):
    id = "zig"
    label = "Zig"
    grammar_module = "tree_sitter_zig"
    argument_kinds = {
        "string": "string", "multiline_string": "string", "character": "string", "integer": "number",
        "float": "number", "boolean": "boolean", "identifier": "name", "field_expression": "attribute",
        "call_expression": "call", "builtin_function": "call", "anonymous_struct_initializer": "object",
        "struct_initializer": "object",
    }  # fmt: skip
    root_kinds = {"comptime_declaration": "control"}
    doc_prefixes = (b"//",)
    modifier_words = frozenset({"pub", "export", "extern", "inline", "noinline", "threadlocal", "comptime", "var"})
    method_owners = frozenset({"struct", "union", "enum"})
    dot_attributes = True
    stub = " {}"

    def on_symbol(self, collector: Collector, kind: str, node: Node, captures: Captures) -> Draft | None:
        name, start, end = captures["name"][0], node.start_byte, node.end_byte
        draft = Draft(
            kind, collector.slice(name.start_byte, name.end_byte).strip('"'), start, end, name.start_byte, name.end_byte
        )
        body = node.child_by_field_name("body")
        if node.type == "test_declaration":
            body = node.named_children[-1]
        elif kind == "variable":
            body = self._find_container(node)
            draft.kind = "variable" if b"var" in collector.text[start : name.start_byte].split() else "constant"
            if body is not None:
                draft.kind = _CONTAINERS[body.type]
        elif kind == "field":
            around = collector.ancestors.holder(node)
            if around is not None and around.type == "enum_declaration":
                draft.kind = "enum_member"
        if body is None:
            draft.signature = clip(collector.text, start, end, 120).rstrip(" ;{")
        else:
            inner = body.start_byte
            if draft.kind in _CONTAINERS.values():
                # The words `packed struct(u32)` belong to the signature, what is between the braces does not.
                inner = max(collector.text.find(b"{", body.start_byte, end), body.start_byte)
            draft.body_start, draft.body_end, draft.scope_start = inner, body.end_byte, start
            draft.signature = self.trim_signature(collector.fold(start, inner))
        draft.modifiers = self.find_modifiers(collector.text[start : name.start_byte])
        draft.exported = "pub" in draft.modifiers or "export" in draft.modifiers
        collector.symbols.append(draft)
        return draft

    def _find_container(self, node: Node) -> Node | None:
        return next((child for child in node.named_children if child.type in _CONTAINERS), None)

    def on_import(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        local, module = captures["local"][0], captures["module"][0]
        name = collector.slice(local.start_byte, local.end_byte)
        binding = (name, "*", local.start_byte, local.end_byte, False)
        collector.add_import(
            "import", collector.slice(module.start_byte, module.end_byte), node.start_byte, node.end_byte, [binding]
        )

    def on_call(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        collector.add_call(self, "call", node.start_byte, node.end_byte, captures["callee"][0], node)

    def summarize_arguments(
        self, collector: Collector, node: Node
    ) -> tuple[tuple[Argument, ...], int, tuple[str, ...]]:
        """The arguments of a call have no node of their own: they stand behind the callee."""
        kinds, text = self.argument_ids, collector.text
        found = [
            (kinds.get(child.kind_id, "other"), child)
            for child in node.named_children[1:]
            if child.type not in self.comment_kinds
        ]
        summary = tuple(
            Argument(kind, clip(text, child.start_byte, child.end_byte, 80), "", int(kind in ("call", "object")))
            for kind, child in found[:8]
        )
        return summary, len(found), ()

    def finish(self, collector: Collector) -> None:
        """What only binds an import is no definition of its own."""
        bound = {binding[2] for item in collector.imports for binding in item[4]}
        collector.symbols = [draft for draft in collector.symbols if draft.name_start not in bound]

    def is_doc_comment(self, comment: bytes) -> bool:
        return comment.startswith(b"//") and not comment.startswith((b"//!", b"////"))
