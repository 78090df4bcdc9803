"""C++: C with classes, namespaces and templates; `Foo::bar` is a member of Foo wherever it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cq.languages.tables.c import FUNCTIONS, C, find_name
from cq.syntax.collect import DEFINED
from cq.syntax.excerpt import clip
from cq.syntax.language import ROLE_NUMBER, Draft
from cq.syntax.tree import (
    Captures,
    Node,
    child_at,
    child_count_of,
    children_of,
    end_of,
    field_of,
    is_extra,
    is_missing,
    kind_of,
    start_of,
)

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

_IMPORT = ROLE_NUMBER["import"]
_CLASSES = frozenset({"class", "struct", "union"})
_CASTS = (b"static_cast<", b"dynamic_cast<", b"reinterpret_cast<", b"const_cast<")


class Cpp(C):
    # -- definitions -------------------------------------------------------------------------------

    def on_symbol(self, collector: Collector, kind: str, node: Node, captures: Captures) -> Draft | None:
        if kind == "loop":
            declarator = captures["declarator"][0]
            name, _ = find_name(declarator)
            parts = (
                children_of(name) if name is not None and kind_of(name) == "structured_binding_declarator" else [name]
            )
            for part in parts:
                if part is not None:
                    self.define(collector, "variable", declarator, part)
            return None
        draft = super().on_symbol(collector, kind, node, captures)
        if draft is None and kind == "namespace":
            collector.remarks.append((start_of(node), str(end_of(node)), "hidden"))
        if draft is not None and (draft.kind in _CLASSES or kind == "enum"):
            self._add_bases(collector, draft, node)
        return draft

    def _add_bases(self, collector: Collector, draft: Draft, node: Node) -> None:
        base = field_of(node, "base")
        clause = next((child for child in children_of(node) if kind_of(child) == "base_class_clause"), None)
        found = [base] if base is not None else [] if clause is None else children_of(clause)
        draft.bases = tuple(
            collector.fold(start_of(base), end_of(base))
            for base in found
            if not is_extra(base) and kind_of(base) not in ("access_specifier", "virtual", "attribute_declaration")
        )

    def rename(self, collector: Collector, draft: Draft, name: Node) -> None:
        """Takes `ns::Foo<T>::bar` apart; the dots of a name are taken off again when names are qualified."""
        owners: list[str] = []
        last: Node | None = name
        while last is not None and kind_of(last) == "qualified_identifier":
            scope = field_of(last, "scope")
            if scope is not None:
                scope = field_of(scope, "name") or scope
                owners.append(collector.slice(start_of(scope), end_of(scope)))
            last = field_of(last, "name")
        if last is None:
            return
        if kind_of(last) == "nested_namespace_specifier":
            parts = children_of(last)
            owners += [collector.slice(start_of(part), end_of(part)).replace("::", ".") for part in parts[:-1]]
            last = parts[-1] if parts else last
            while kind_of(last) == "nested_namespace_specifier" and child_count_of(last):
                parts = children_of(last)
                owners += [collector.slice(start_of(part), end_of(part)) for part in parts[:-1]]
                last = parts[-1]
        if kind_of(last) in ("template_function", "template_method", "template_type"):
            last = field_of(last, "name") or last
        start, end = start_of(last), end_of(last)
        if kind_of(last) == "destructor_name":
            draft.kind = "destructor"
            inner = child_at(last, 0)
            if inner is not None:
                collector.marks[start_of(inner)] = DEFINED
        elif kind_of(last) == "operator_name":
            draft.kind = "operator"
        elif kind_of(last) == "operator_cast":
            draft.kind = "operator"
            behind = field_of(last, "declarator")
            end = start_of(behind) if behind is not None else end
        elif owners and draft.kind == "function":
            draft.kind = "constructor" if owners[-1].encode() == collector.text[start:end] else "method"
        elif owners and draft.kind in ("variable", "constant"):
            draft.kind = "field"
        draft.name_start, draft.name_end = start, end
        draft.name = ".".join([*owners, clip(collector.text, start, end, 200)])

    def bind_lambda(self, collector: Collector, draft: Draft, declarator: Node) -> None:
        value = field_of(declarator, "value")
        body = field_of(value, "body") if value is not None and kind_of(value) == "lambda_expression" else None
        if body is not None:
            draft.kind = "function"
            draft.body_start, draft.body_end, draft.scope_start = start_of(body), end_of(body), draft.head
            draft.signature = self.trim_signature(collector.fold(draft.head, start_of(body)))

    def on_lambda(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        self.on_parameters(collector, captures["params"][0])

    def on_template(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """The definition begins with its `template <…>`; `finish` moves it there."""
        inner = children_of(node)[-1]
        collector.decorated[start_of(inner)] = start_of(node)
        if field_of(inner, "body") is None:
            return
        for parameter in children_of(captures["params"][0]):
            name, _ = find_name(field_of(parameter, "declarator"))
            name = name or field_of(parameter, "name") or child_at(parameter, 0)
            if name is not None and kind_of(name) in ("type_identifier", "identifier"):
                self.define(collector, "type_parameter", parameter, name)

    def on_access(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        collector.remarks.append((start_of(node), collector.slice(start_of(node), end_of(node)), "section"))

    # -- calls and imports -------------------------------------------------------------------------

    def on_call(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        callee = captures["callee"][0]
        if kind_of(callee) == "primitive_type":  # `int(x)`, `new int[3]`
            return
        if kind:
            args = field_of(node, "arguments")
            collector.add_call(self, kind, start_of(node), end_of(node), callee, args)
        elif not collector.text.startswith(_CASTS, start_of(node)):
            super().on_call(collector, kind, node, captures)

    def callee_name(self, collector: Collector, callee: Node) -> Node | None:
        """`f<int>(x)`, `std::make_unique<T>(x)`, `a.get<0>()`"""
        node: Node | None = callee
        while node is not None and kind_of(node) not in ("identifier", "field_identifier", "type_identifier"):
            if kind_of(node) == "dependent_name":
                node = child_at(node, 0)
            else:
                node = field_of(node, "field") or field_of(node, "name")
        if node is None:
            return super().callee_name(collector, callee)
        return None if is_missing(node) else node

    def on_import(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        if kind == "include":
            super().on_import(collector, kind, node, captures)
            return
        start, end = start_of(node), end_of(node)
        collector.spans.append((start, end, _IMPORT))
        target = children_of(node)[-1] if child_count_of(node) else None
        if target is None:
            return
        path = collector.slice(start_of(target), end_of(target))
        if kind == "alias":
            name = captures["name"][0]
            first, last = start_of(name), end_of(name)
            collector.add_import("import", path, start, end, [(collector.slice(first, last), "*", first, last, False)])
        elif b"namespace" in collector.text[start : start_of(target)]:
            collector.add_import("star", path, start, end, [])
        else:
            module, _, name = path.rpartition("::")
            last = end_of(target)
            collector.add_import("from", module, start, end, [(name, name, last - len(name.encode()), last, False)])

    # -- the whole document ------------------------------------------------------------------------

    def finish(self, collector: Collector) -> None:
        text = collector.text
        for draft in collector.symbols:
            if (draft.kind in _CLASSES or draft.kind == "enum") and text.startswith(b";", draft.end):
                draft.end += 1
            whole = collector.decorated.get(draft.start)
            if whole is not None and draft.kind not in ("parameter", "type_parameter"):
                while (outer := collector.decorated.get(whole)) is not None and outer < whole:
                    whole = outer
                lead = collector.fold(whole, draft.start)
                draft.signature = f"{lead} {draft.signature}"
                draft.start = draft.head = whole
                if draft.scope_start >= 0:
                    draft.scope_start = whole

    def finish_nested(self, collector: Collector) -> None:
        drafts, text = collector.symbols, collector.text
        access = _member_access(collector)
        hidden = sorted((start, int(end)) for start, end, what in collector.remarks if what == "hidden")
        shut = 0
        for index, draft in enumerate(drafts):
            while hidden and hidden[0][0] <= draft.start:
                shut = max(shut, hidden.pop(0)[1])
            if draft.start < shut and draft.kind != "parameter":
                draft.modifiers += ("static",)  # what `namespace { … }` means
            if "." in draft.name:
                draft.name = draft.name.rpartition(".")[2]
            holder = drafts[draft.parent] if draft.parent >= 0 else None
            if holder is None or holder.kind not in _CLASSES:
                continue
            if text[max(0, draft.start - 8) : draft.start].strip() == b"friend":
                draft.kind = "function"
                draft.modifiers += ("friend",)
            elif draft.kind == "method" and draft.name == holder.name:
                draft.kind = "constructor"
            elif draft.kind == "variable":
                draft.kind = "field"
            word = access.get(index)
            if word is not None and draft.kind not in ("parameter", "type_parameter"):
                draft.modifiers += (word,)
        super().finish_nested(collector)

    def is_visible(self, draft: Draft, holder: Draft | None) -> bool:
        if draft.kind == "type_parameter":
            return False
        if holder is not None and holder.kind in _CLASSES:
            hidden = {"private", "protected"} & set(draft.modifiers)
            public = holder.kind != "class" or "public" in draft.modifiers or draft.kind == "enum_member"
            return holder.exported and not hidden and public
        if holder is not None and holder.kind in FUNCTIONS:
            return False
        return super().is_visible(draft, holder)


def _member_access(collector: Collector) -> dict[int, str]:
    """For every member of a class that stands under a `public:`, `private:` or `protected:` the word."""
    sections = sorted((start, word) for start, word, what in collector.remarks if what == "section")
    found: dict[int, str] = {}
    if not sections:
        return found
    drafts = collector.symbols
    current: dict[int, str] = {}
    stack: list[int] = []
    at = 0
    for index, draft in enumerate(drafts):
        while at < len(sections) and sections[at][0] < draft.start:
            offset, word = sections[at]
            while stack and drafts[stack[-1]].end <= offset:
                stack.pop()
            if stack:
                current[stack[-1]] = word
            at += 1
        if draft.parent in current:
            found[index] = current[draft.parent]
        if draft.kind in _CLASSES and draft.body_start >= 0:
            while stack and drafts[stack[-1]].end <= draft.start:
                stack.pop()
            stack.append(index)
    return found
