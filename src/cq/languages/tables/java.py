"""Java, and what C#, Kotlin and PHP share with it: definitions that hold their annotations and modifiers."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from cq.model.facts import Argument
from cq.syntax.excerpt import clip
from cq.syntax.language import ARG_TEXT, MAX_ARGS, ROLE_NUMBER, Draft, Language
from cq.syntax.tree import (
    Captures,
    Node,
    Span,
    child_at,
    child_count_of,
    children_of,
    end_of,
    field_of,
    fields_of,
    is_extra,
    is_missing,
    kind_of,
    start_of,
)

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

VALUE_TEXT = 120
IMPORT = ROLE_NUMBER["import"]
TYPES = frozenset({"class", "interface", "enum", "record", "annotation_type", "struct", "trait", "object"})
VALUES = frozenset({"variable", "constant", "field", "property", "parameter", "type_parameter", "event"})


class Java(Language):
    # Where the names of extended and implemented types stand.

    # -- definitions -------------------------------------------------------------------------------

    def on_symbol(self, collector: Collector, kind: str, node: Node, captures: Captures) -> Draft | None:
        name = captures["name"][0] if "name" in captures else field_of(node, "name")
        if name is None or end_of(name) <= start_of(name):
            return None
        body = field_of(node, "body")
        draft = self.define(collector, kind, node, name, body)
        if kind in TYPES:
            draft.bases = self.find_bases(collector, node)
        if body is not None:
            members = kind if kind == "record" else "parameter"
            for field in ("type_parameters", "parameters"):
                held = field_of(node, field)
                if held is not None:
                    kind = "type_parameter" if field == "type_parameters" else members
                    self.add_parameters(collector, held, kind.replace("record", "field"))
        return draft

    def define(
        self, collector: Collector, kind: str, node: Node, name: Node | Span, body: Node | Span | None = None,
        lead: int = -1,
    ) -> Draft:  # fmt: skip
        """`lead` is where annotations and modifiers end, when that is before the name."""
        start, end = start_of(node), end_of(node)
        if lead < 0:
            lead = start_of(name)
        draft = Draft(kind, collector.slice(start_of(name), end_of(name)), start, end, start_of(name), end_of(name))
        draft.head, draft.decorators = self.read_attributes(collector, start, lead)
        if body is not None:
            draft.body_start, draft.body_end = start_of(body), end_of(body)
            draft.scope_start = draft.head
            draft.signature = self.trim_signature(collector.fold(draft.head, start_of(body)))
        elif kind in VALUES:
            draft.signature = clip(collector.text, draft.head, end, VALUE_TEXT).removesuffix(";")
        else:
            draft.signature = self.trim_signature(collector.fold(draft.head, end))
        draft.modifiers = self.find_modifiers(collector.text[draft.head : lead])
        if draft.name:  # a name the parser only supposes is empty
            collector.symbols.append(draft)
        return draft

    def read_attributes(self, collector: Collector, start: int, name_start: int) -> tuple[int, tuple[str, ...]]:
        """Where the definition goes on after the annotations it begins with, and all that stand before its name."""
        attributes, text = collector.attributes, collector.text
        head, last, found = start, start, []
        at = bisect_left(attributes, (start, 0))
        while at < len(attributes) and attributes[at][0] < name_start:
            first, end = attributes[at]
            at += 1
            if first < last:
                continue
            if not text[head:first].strip():
                head = end
            last = end
            found += self.split_attribute(collector.fold(first, end))
        while head > start and head < name_start and text[head : head + 1].isspace():
            head += 1
        return head, tuple(found)

    def split_attribute(self, attribute: str) -> list[str]:
        return [attribute.removeprefix("@")]

    def find_bases(self, collector: Collector, node: Node) -> tuple[str, ...]:
        found: list[Node] = []
        for clause in children_of(node):
            if kind_of(clause) in self.base_clauses:
                for base in children_of(clause):
                    found += children_of(base) if kind_of(base) == "type_list" else [base]
        return tuple(collector.fold(start_of(base), end_of(base)) for base in found if self.is_base(base))

    def is_base(self, node: Node) -> bool:
        return not is_extra(node)

    def add_parameters(self, collector: Collector, node: Node, kind: str) -> None:
        for child in children_of(node):
            name = self.parameter_name(child)
            if name is not None:
                self.define(collector, kind, child, name)

    def parameter_name(self, node: Node) -> Node | None:
        if kind_of(node) == "spread_parameter":
            declarator = next((child for child in children_of(node) if kind_of(child) == "variable_declarator"), None)
            return field_of(declarator, "name") if declarator is not None else None
        if kind_of(node) == "type_parameter":
            return next((child for child in children_of(node) if kind_of(child) == "type_identifier"), None)
        return node if kind_of(node) == "identifier" else field_of(node, "name")

    def on_lambda(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        parameters = captures["params"][0]
        if kind_of(parameters) == "identifier":
            self.define(collector, "parameter", parameters, parameters)
        else:
            self.add_parameters(collector, parameters, "parameter")

    def on_variables(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """All declarators of `int a = 1, b;`: each spans the statement, each has its own signature."""
        declarators = self.find_declarators(node, captures)
        for declarator in declarators:
            name = field_of(declarator, "name")
            if name is None:
                continue
            draft = self.define(collector, kind, node, name, None, start_of(declarators[0]))
            if self.is_constant(draft):
                draft.kind = "constant"
            if len(declarators) > 1:
                lead = clip(collector.text, draft.head, start_of(declarators[0]), VALUE_TEXT)
                draft.signature = f"{lead} {clip(collector.text, start_of(declarator), end_of(declarator), VALUE_TEXT)}"

    def find_declarators(self, node: Node, captures: Captures) -> list[Node]:
        return fields_of(node, "declarator")

    def is_constant(self, draft: Draft) -> bool:
        return draft.kind == "field" and "static" in draft.modifiers and "final" in draft.modifiers

    # -- calls and imports ---------------------------------------------------------------------------

    def on_call(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        args, start, end = field_of(node, "arguments"), start_of(node), end_of(node)
        if kind:
            collector.add_call(self, kind, start, end, captures["callee"][0], args)
            return
        callee = field_of(node, "name")
        if callee is None:
            return
        kind = "super" if collector.text.startswith(b"super.", start) else "call"
        collector.add_call(self, kind, start, end, Span(start, end_of(callee)), args)
        if collector.text[start_of(callee) - 1 : start_of(callee)] == b">":  # `a.<T>f()` is sent to `a`
            call = collector.calls[-1]
            collector.calls[-1] = (*call[:6], call[6].rpartition(".<")[0], *call[7:])

    def callee_name(self, collector: Collector, callee: Node) -> Node | None:
        """`new ArrayList<String>()`, `new a.Box<T>()`"""
        if kind_of(callee) != "generic_type":
            return None
        inner = child_at(callee, 0)
        if inner is not None and kind_of(inner) == "scoped_type_identifier":
            inner = children_of(inner)[-1] if child_count_of(inner) else None
        return None if inner is None or is_missing(inner) else inner

    def summarize_arguments(
        self, collector: Collector, node: Node
    ) -> tuple[tuple[Argument, ...], int, tuple[str, ...]]:
        summaries: list[Argument] = []
        keywords: list[str] = []
        positional = 0
        for child in children_of(node):
            if is_extra(child):
                continue
            name, value = self.unwrap_argument(collector, child) if self.wrapped_argument else ("", child)
            if name:
                keywords.append(name)
            else:
                positional += 1
            if value is not None and len(summaries) < MAX_ARGS:
                kind = self.value_kind(value)
                depth = self.shape_depth(value) if kind in ("call", "array", "object") else 0
                text = clip(collector.text, start_of(value), end_of(value), ARG_TEXT)
                summaries.append(Argument(kind, text, name, depth, kind == "spread"))
        return tuple(summaries), positional, tuple(keywords)

    def value_kind(self, node: Node) -> str:
        kind = super().value_kind(node)
        if kind == "number" and (operand := child_at(node, 0)) is not None:  # `-1` is a number, `!x` is not
            return "number" if super().value_kind(operand) == "number" else "other"
        return kind

    def unwrap_argument(self, collector: Collector, node: Node) -> tuple[str, Node | None]:
        """The keyword and the value of one wrapped argument."""
        name, children = field_of(node, "name"), children_of(node)
        return (
            "" if name is None else collector.slice(start_of(name), end_of(name)),
            children[-1] if len(children) > (name is not None) else None,
        )

    def on_import(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """`import a.B;` binds B of a; `import static a.B.c;` binds c of a.B."""
        start, end = start_of(node), end_of(node)
        collector.spans.append((start, end, IMPORT))
        children = [child for child in children_of(node) if not is_extra(child)]
        if not children:
            return
        path = collector.slice(start_of(children[0]), end_of(children[0]))
        if kind_of(children[-1]) == "asterisk":
            collector.add_import("star", path, start, end, [])
            return
        module, _, name = path.rpartition(".")
        last = end_of(children[0])
        collector.add_import("from", module, start, end, [(name, name, last - len(name.encode()), last, False)])

    # -- the whole document --------------------------------------------------------------------------

    def finish_nested(self, collector: Collector) -> None:
        drafts = collector.symbols
        for draft in drafts:
            holder = drafts[draft.parent] if draft.parent >= 0 else None
            if draft.kind == "method" and holder is None:
                draft.kind = "function"
            draft.exported = draft.kind not in ("parameter", "type_parameter") and self.is_visible(draft, holder)

    def is_visible(self, draft: Draft, holder: Draft | None) -> bool:
        if holder is not None:
            if draft.kind == "enum_member" or (
                holder.kind == "record" and draft.kind == "field" and not draft.modifiers
            ):
                return holder.exported
            if holder.kind in ("interface", "annotation_type"):
                return "private" not in draft.modifiers and holder.exported
        return "public" in draft.modifiers


def split_list(text: str) -> list[str]:
    """The items of a bracketed list: `[A, B(1, 2)]` holds two."""
    items, depth, start = [], 0, 1
    for at, char in enumerate(text):
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        if (char == "," and depth == 1) or at == len(text) - 1:
            items.append(text[start:at].strip())
            start = at + 1
    return [item for item in items if item]
