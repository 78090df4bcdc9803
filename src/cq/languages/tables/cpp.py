"""C++: C with classes, namespaces and templates; `Foo::bar` is a member of Foo wherever it is written."""

from __future__ import annotations

from functools import cached_property
from importlib import resources
from typing import TYPE_CHECKING

from cq.languages.tables.c import FUNCTIONS, C, find_name
from cq.syntax.collect import DEFINED
from cq.syntax.excerpt import clip
from cq.syntax.language import ROLE_NUMBER, Captures, Draft, first_child

if TYPE_CHECKING:
    from tree_sitter import Node

    from cq.syntax.collect import Collector

_IMPORT = ROLE_NUMBER["import"]
_CLASSES = frozenset({"class", "struct", "union"})
_CASTS = (b"static_cast<", b"dynamic_cast<", b"reinterpret_cast<", b"const_cast<")


class Cpp(C):
    id = "cpp"
    label = "C++"
    grammar_module = "tree_sitter_cpp"
    argument_kinds = C.argument_kinds | {
        "raw_string_literal": "string", "this": "name", "qualified_identifier": "name", "new_expression": "call",
        "lambda_expression": "function", "parameter_pack_expansion": "spread",
    }  # fmt: skip
    root_kinds = C.root_kinds | {"using_declaration": "import", "namespace_alias_definition": "import"}
    method_owners = _CLASSES

    @cached_property
    def query_source(self) -> str:
        tables = resources.files(self.folder)
        return tables.joinpath("c.scm").read_text("utf-8") + tables.joinpath("cpp.scm").read_text("utf-8")

    # -- definitions -------------------------------------------------------------------------------

    def on_symbol(self, collector: Collector, kind: str, node: Node, captures: Captures) -> Draft | None:
        if kind == "loop":
            declarator = captures["declarator"][0]
            name, _ = find_name(declarator)
            parts = name.named_children if name is not None and name.type == "structured_binding_declarator" else [name]
            for part in parts:
                if part is not None:
                    self.define(collector, "variable", declarator, part)
            return None
        draft = super().on_symbol(collector, kind, node, captures)
        if draft is None and kind == "namespace":
            collector.remarks.append((node.start_byte, str(node.end_byte), "hidden"))
        if draft is not None and (draft.kind in _CLASSES or kind == "enum"):
            self._add_bases(collector, draft, node)
        return draft

    def _add_bases(self, collector: Collector, draft: Draft, node: Node) -> None:
        base = node.child_by_field_name("base")
        clause = next((child for child in node.named_children if child.type == "base_class_clause"), None)
        found = [base] if base is not None else [] if clause is None else clause.named_children
        draft.bases = tuple(
            collector.fold(base.start_byte, base.end_byte)
            for base in found
            if not base.is_extra and base.type not in ("access_specifier", "virtual", "attribute_declaration")
        )

    def rename(self, collector: Collector, draft: Draft, name: Node) -> None:
        """Takes `ns::Foo<T>::bar` apart; the dots of a name are taken off again when names are qualified."""
        owners: list[str] = []
        last: Node | None = name
        while last is not None and last.type == "qualified_identifier":
            scope = last.child_by_field_name("scope")
            if scope is not None:
                scope = scope.child_by_field_name("name") or scope
                owners.append(collector.slice(scope.start_byte, scope.end_byte))
            last = last.child_by_field_name("name")
        if last is None:
            return
        if last.type == "nested_namespace_specifier":
            parts = last.named_children
            owners += [collector.slice(part.start_byte, part.end_byte).replace("::", ".") for part in parts[:-1]]
            last = parts[-1] if parts else last
            while last.type == "nested_namespace_specifier" and last.named_child_count:
                parts = last.named_children
                owners += [collector.slice(part.start_byte, part.end_byte) for part in parts[:-1]]
                last = parts[-1]
        if last.type in ("template_function", "template_method", "template_type"):
            last = last.child_by_field_name("name") or last
        start, end = last.start_byte, last.end_byte
        if last.type == "destructor_name":
            draft.kind = "destructor"
            inner = first_child(last)
            if inner is not None:
                collector.marks[inner.start_byte] = DEFINED
        elif last.type == "operator_name":
            draft.kind = "operator"
        elif last.type == "operator_cast":
            draft.kind = "operator"
            behind = last.child_by_field_name("declarator")
            end = behind.start_byte if behind is not None else end
        elif owners and draft.kind == "function":
            draft.kind = "constructor" if owners[-1].encode() == collector.text[start:end] else "method"
        elif owners and draft.kind in ("variable", "constant"):
            draft.kind = "field"
        draft.name_start, draft.name_end = start, end
        draft.name = ".".join([*owners, clip(collector.text, start, end, 200)])

    def bind_lambda(self, collector: Collector, draft: Draft, declarator: Node) -> None:
        value = declarator.child_by_field_name("value")
        body = value.child_by_field_name("body") if value is not None and value.type == "lambda_expression" else None
        if body is not None:
            draft.kind = "function"
            draft.body_start, draft.body_end, draft.scope_start = body.start_byte, body.end_byte, draft.head
            draft.signature = self.trim_signature(collector.fold(draft.head, body.start_byte))

    def on_lambda(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        self.on_parameters(collector, captures["params"][0])

    def on_template(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """The definition begins with its `template <…>`; `finish` moves it there."""
        inner = node.named_children[-1]
        collector.decorated[inner.start_byte] = node.start_byte
        if inner.child_by_field_name("body") is None:
            return
        for parameter in captures["params"][0].named_children:
            name, _ = find_name(parameter.child_by_field_name("declarator"))
            name = name or parameter.child_by_field_name("name") or first_child(parameter)
            if name is not None and name.type in ("type_identifier", "identifier"):
                self.define(collector, "type_parameter", parameter, name)

    def on_access(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        collector.remarks.append((node.start_byte, collector.slice(node.start_byte, node.end_byte), "section"))

    # -- calls and imports -------------------------------------------------------------------------

    def on_call(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        callee = captures["callee"][0]
        if callee.type == "primitive_type":  # `int(x)`, `new int[3]`
            return
        if kind:
            args = node.child_by_field_name("arguments")
            collector.add_call(self, kind, node.start_byte, node.end_byte, callee, args)
        elif not collector.text.startswith(_CASTS, node.start_byte):
            super().on_call(collector, kind, node, captures)

    def callee_name(self, collector: Collector, callee: Node) -> Node | None:
        """`f<int>(x)`, `std::make_unique<T>(x)`, `a.get<0>()`"""
        node: Node | None = callee
        while node is not None and node.type not in ("identifier", "field_identifier", "type_identifier"):
            if node.type == "dependent_name":
                node = first_child(node)
            else:
                node = node.child_by_field_name("field") or node.child_by_field_name("name")
        if node is None:
            return super().callee_name(collector, callee)
        return None if node.is_missing else node

    def on_import(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        if kind == "include":
            super().on_import(collector, kind, node, captures)
            return
        start, end = node.start_byte, node.end_byte
        collector.spans.append((start, end, _IMPORT))
        target = node.named_children[-1] if node.named_child_count else None
        if target is None:
            return
        path = collector.slice(target.start_byte, target.end_byte)
        if kind == "alias":
            name = captures["name"][0]
            first, last = name.start_byte, name.end_byte
            collector.add_import("import", path, start, end, [(collector.slice(first, last), "*", first, last, False)])
        elif b"namespace" in collector.text[start : target.start_byte]:
            collector.add_import("star", path, start, end, [])
        else:
            module, _, name = path.rpartition("::")
            last = target.end_byte
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
