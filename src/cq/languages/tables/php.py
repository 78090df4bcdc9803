"""PHP: read as Java is; variables keep their `$`, properties lose it; a function defines each variable once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cq.languages.tables.java import IMPORT, TYPES, VALUE_TEXT, Java, split_list
from cq.syntax.collect import DEFINED
from cq.syntax.excerpt import clip
from cq.syntax.language import CALLEE_TEXT, ROLE_NUMBER, Draft
from cq.syntax.tree import Captures, Node, Span, child_count_of, children_of, end_of, field_of, kind_of, start_of

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

_ASSIGNMENT = ROLE_NUMBER["assignment"]
_ATTRIBUTE = ROLE_NUMBER["attribute"]
_MEMBER = re.compile(rb"(?:->|::\s*(\$)|::)\s*([A-Za-z_\x80-\xff][\w\x80-\xff]*)")
_CLASSES = frozenset({"class", "interface", "trait", "enum"})


class Php(Java):
    def on_symbol(self, collector: Collector, kind: str, node: Node, captures: Captures) -> Draft | None:
        draft = super().on_symbol(collector, kind, node, captures)
        if draft is None:
            return None
        if kind == "namespace":
            # The qualified name is built from this; `finish_nested` gives the last part back.
            draft.name = draft.name.replace("\\", ".")
            draft.name_start = draft.name_end - len(draft.name.rpartition(".")[2].encode())
        elif kind == "enum_member":
            draft.signature = draft.signature.removesuffix(";")
        elif kind == "method" and draft.name == "__construct":
            draft.kind = "constructor"
        elif kind == "method" and draft.name == "__destruct":
            draft.kind = "destructor"
        if kind in TYPES:
            body = field_of(node, "body")
            used = [] if body is None else [child for child in children_of(body) if kind_of(child) == "use_declaration"]
            draft.bases += tuple(
                collector.fold(start_of(name), end_of(name))
                for use in used
                for name in children_of(use)
                if kind_of(name) in ("name", "qualified_name")
            )
        return draft

    def split_attribute(self, attribute: str) -> list[str]:
        return split_list(attribute.removeprefix("#"))

    def add_parameters(self, collector: Collector, node: Node, kind: str) -> None:
        for child in children_of(node):
            name = field_of(child, "name")
            if name is None:
                continue
            if kind_of(name) == "by_ref":
                name = children_of(name)[-1] if child_count_of(name) else name
            self.define(collector, kind, child, name)
            if kind_of(child) == "property_promotion_parameter":
                self._add_property(collector, child, name).owner = 0

    def _add_property(self, collector: Collector, node: Node, name: Node, lead: int = -1) -> Draft:
        """`$x` declares the property `x`."""
        collector.marks[start_of(name)] = DEFINED
        return self.define(collector, "property", node, Span(start_of(name) + 1, end_of(name)), None, lead)

    def on_properties(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        elements = [child for child in children_of(node) if kind_of(child) == "property_element"]
        hooks = next((child for child in children_of(node) if kind_of(child) == "property_hook_list"), None)
        for element in elements:
            name = field_of(element, "name")
            if name is None:
                continue
            draft = self._add_property(collector, node, name, start_of(elements[0]))
            if hooks is not None:
                draft.body_start, draft.body_end, draft.scope_start = start_of(hooks), end_of(hooks), draft.head
                draft.signature = self.trim_signature(collector.fold(draft.head, start_of(hooks)))
            elif len(elements) > 1:
                draft.signature = _own_signature(collector, draft.head, elements[0], element)

    def on_constants(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        elements = [child for child in children_of(node) if kind_of(child) == "const_element"]
        for element in elements:
            name = children_of(element)[0] if child_count_of(element) else None
            if name is not None:
                draft = self.define(collector, "constant", node, name, None, start_of(elements[0]))
                if len(elements) > 1:
                    draft.signature = _own_signature(collector, draft.head, elements[0], element)

    def on_assign(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """The first assignment in a function or at root level defines; `finish` drops the later ones."""
        if "names" in captures:
            for name in children_of(captures["names"][0]):
                if kind_of(name) == "variable_name":
                    self.define(collector, "variable", node, name)
            return
        name, value = captures["name"][0], captures["value"][0]
        body = field_of(value, "body") if kind_of(value) in ("anonymous_function", "arrow_function") else None
        self.define(collector, "variable" if body is None else "function", node, name, body)

    # -- calls and imports -------------------------------------------------------------------------

    def on_call(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        start, end = start_of(node), end_of(node)
        if kind == "new":
            callee = captures["callee"][0]
            if kind_of(callee) == "anonymous_class":
                return
            args = next((child for child in children_of(node) if kind_of(child) == "arguments"), None)
            collector.add_call(self, kind, start, end, callee, args)
        else:
            callee = field_of(node, "name") or field_of(node, "function")
            if callee is None:
                return
            kind = "super" if collector.text.startswith(b"parent::", start) else "call"
            last = end_of(callee) + collector.text.startswith(b"}", end_of(callee))  # `A::{$name}()`
            collector.add_call(self, kind, start, end, Span(start, last), field_of(node, "arguments"))
        call = collector.calls[-1]
        if call[6].endswith("\\"):  # `\a\f()`
            collector.calls[-1] = (*call[:6], call[6].rstrip("\\"), *call[7:])

    def on_import(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        start, end = start_of(node), end_of(node)
        if kind != "use":
            module = captures["module"][0]
            text = clip(collector.text, start_of(module), end_of(module), CALLEE_TEXT)
            if kind_of(module) == "parenthesized_expression":
                text = text.removeprefix("(").removesuffix(")").strip()
            plain = kind_of(module) == "string" or text[:1] + text[-1:] in ("''", '""')
            collector.add_import(kind, text[1:-1] if plain else text, start, end, [])
            return
        collector.spans.append((start, end, IMPORT))
        group = field_of(node, "body")
        prefix, clauses = "", children_of(node)
        if group is not None:
            first = clauses[0]
            prefix = collector.slice(start_of(first), end_of(first)) if kind_of(first) == "namespace_name" else ""
            clauses = children_of(group)
        bound: dict[str, list[tuple[str, str, int, int, bool]]] = {}
        for clause in clauses:
            path = next((child for child in children_of(clause) if kind_of(child) in ("name", "qualified_name")), None)
            if kind_of(clause) != "namespace_use_clause" or path is None:
                continue
            module, _, imported = f"{prefix}\\{collector.slice(start_of(path), end_of(path))}".rpartition("\\")
            name = field_of(clause, "alias") or path
            local = imported if name is path else collector.slice(start_of(name), end_of(name))
            binding = (local, imported, end_of(name) - len(local.encode()), end_of(name), False)
            bound.setdefault(module.lstrip("\\"), []).append(binding)
        for module, bindings in bound.items():
            collector.add_import("use", module, start, end, bindings)

    # -- the whole document ------------------------------------------------------------------------

    def finish(self, collector: Collector) -> None:
        """Keeps the first assignment of every variable and gives promoted parameters their class."""
        self._mark_members(collector)
        scopes = sorted((d.start, -d.end, i) for i, d in enumerate(collector.symbols) if d.body_start >= 0)
        kept: list[Draft] = []
        bound: set[tuple[int, str]] = set()
        stack: list[Draft] = []
        opened = 0
        # A function bound to a variable is seen before what stands in it, and does not hold its own name.
        for draft in sorted(collector.symbols, key=lambda d: (d.name_start, d.start)):
            at = draft.name_start
            while opened < len(scopes) and scopes[opened][0] <= at:
                holder = collector.symbols[scopes[opened][2]]
                while stack and stack[-1].end <= holder.start:
                    stack.pop()
                stack.append(holder)
                opened += 1
            while stack and stack[-1].end <= at:
                stack.pop()
            if draft.owner >= 0:
                owner = next((held for held in reversed(stack[-8:]) if held.kind in _CLASSES), None)
                draft.owner = -1 if owner is None else owner.head
            elif draft.kind == "variable" or draft.kind == "parameter":
                scope = next(
                    (held.start for held in reversed(stack[-8:]) if held.kind not in ("namespace", "enum")), -1
                )
                if (scope, draft.name) in bound and draft.kind == "variable":
                    collector.marks.setdefault(at, _ASSIGNMENT)
                    continue
                bound.add((scope, draft.name))
            kept.append(draft)
        collector.symbols = kept

    def _mark_members(self, collector: Collector) -> None:
        """`->x`, `?->x`, `::X`; `::$x` names the property x."""
        marks = collector.marks
        for match in _MEMBER.finditer(collector.text, *collector.span):
            if match[1]:
                if match.start(1) not in marks:
                    marks[match.start(1)] = DEFINED
                    marks[match.start(2)] = _ATTRIBUTE
            else:
                marks.setdefault(match.start(2), _ATTRIBUTE)

    def finish_nested(self, collector: Collector) -> None:
        for draft in collector.symbols:
            if draft.kind == "namespace":
                draft.name = draft.name.rpartition(".")[2]
        super().finish_nested(collector)

    def is_visible(self, draft: Draft, holder: Draft | None) -> bool:
        if draft.kind == "variable" or draft.name.startswith("$"):
            return False
        if holder is not None and holder.kind not in (*_CLASSES, "namespace"):
            return holder.exported and draft.kind in ("function", "class", "interface", "trait")
        return "private" not in draft.modifiers and "protected" not in draft.modifiers


def _own_signature(collector: Collector, head: int, first: Node, element: Node) -> str:
    """`public $a = 1, $b` -> `public $b`"""
    lead = clip(collector.text, head, start_of(first), VALUE_TEXT)
    return f"{lead} {clip(collector.text, start_of(element), end_of(element), VALUE_TEXT)}"
