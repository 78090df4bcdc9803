"""Zig: functions, containers, what they declare, tests, `@import`, and calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cq.syntax.excerpt import clip
from cq.syntax.language import Draft, Language
from cq.syntax.tree import Captures, Node, children_of, end_of, field_of, kind_of, start_of

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

_CONTAINERS = {
    "struct_declaration": "struct", "union_declaration": "union", "enum_declaration": "enum",
    "opaque_declaration": "struct", "error_set_declaration": "enum",
}  # fmt: skip


class Zig(Language):
    def on_symbol(self, collector: Collector, kind: str, node: Node, captures: Captures) -> Draft | None:
        name, start, end = captures["name"][0], start_of(node), end_of(node)
        draft = Draft(
            kind, collector.slice(start_of(name), end_of(name)).strip('"'), start, end, start_of(name), end_of(name)
        )
        body = field_of(node, "body")
        if kind_of(node) == "test_declaration":
            body = children_of(node)[-1]
        elif kind == "variable":
            body = self._find_container(node)
            draft.kind = "variable" if b"var" in collector.text[start : start_of(name)].split() else "constant"
            if body is not None:
                draft.kind = _CONTAINERS[kind_of(body)]
        elif kind == "field":
            around = collector.ancestors.holder(node)
            if around is not None and kind_of(around) == "enum_declaration":
                draft.kind = "enum_member"
        if body is None:
            draft.signature = clip(collector.text, start, end, 120).rstrip(" ;{")
        else:
            inner = start_of(body)
            if draft.kind in _CONTAINERS.values():
                # The words `packed struct(u32)` belong to the signature, what is between the braces does not.
                inner = max(collector.text.find(b"{", start_of(body), end), start_of(body))
            draft.body_start, draft.body_end, draft.scope_start = inner, end_of(body), start
            draft.signature = self.trim_signature(collector.fold(start, inner))
        draft.modifiers = self.find_modifiers(collector.text[start : start_of(name)])
        draft.exported = "pub" in draft.modifiers or "export" in draft.modifiers
        collector.symbols.append(draft)
        return draft

    def _find_container(self, node: Node) -> Node | None:
        return next((child for child in children_of(node) if kind_of(child) in _CONTAINERS), None)

    def on_import(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        local, module = captures["local"][0], captures["module"][0]
        name = collector.slice(start_of(local), end_of(local))
        binding = (name, "*", start_of(local), end_of(local), False)
        collector.add_import(
            "import", collector.slice(start_of(module), end_of(module)), start_of(node), end_of(node), [binding]
        )

    def finish(self, collector: Collector) -> None:
        """What only binds an import is no definition of its own."""
        bound = {binding[2] for item in collector.imports for binding in item[4]}
        collector.symbols = [draft for draft in collector.symbols if draft.name_start not in bound]

    def is_doc_comment(self, comment: bytes) -> bool:
        return comment.startswith(b"//") and not comment.startswith((b"//!", b"////"))
