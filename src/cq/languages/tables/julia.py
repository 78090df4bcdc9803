"""Julia: modules, types with their fields, methods in both of their forms, macros, constants, imports, calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cq.syntax.language import Draft, Language
from cq.syntax.tree import Captures, Node, child_at, child_count_of, children_of, end_of, kind_of, start_of

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

_AROUND_NAME = frozenset({
    "signature", "where_expression", "typed_expression", "call_expression", "parametrized_type_expression", "type_head",
    "binary_expression", "parenthesized_expression", "named_argument", "splat_expression",
})  # fmt: skip
_HEADS = frozenset({"signature", "where_expression", "typed_expression"})
_METHODS = ("function", "macro")
_OPENING = (*_METHODS, "struct", "namespace")


class Julia(Language):
    def on_symbol(self, collector: Collector, kind: str, node: Node, captures: Captures) -> Draft | None:
        head = captures["name"][0]
        name = _find_name(head)
        if name is None or end_of(name) <= start_of(name):
            return None
        start, end = start_of(node), end_of(node)
        call = _find_call(head) if kind in _METHODS else None
        if call is not None:
            collector.targets.add((start_of(call), end_of(call)))  # the head of a definition calls nothing
        elif kind_of(node) == "assignment" and kind == "function":
            return None  # `x::T where T = 1`
        draft = Draft(kind, collector.write(name), start, end, start_of(name), end_of(name))
        inner = end
        if kind in _OPENING:
            # Of `f(x) = value` the body is the value.
            value = child_at(node, child_count_of(node) - 1) if kind_of(node) == "assignment" else None
            draft.body_start, draft.body_end = end_of(head) if value is None else start_of(value), end
            draft.scope_start, inner = start, end_of(head)
        draft.signature = self.trim_signature(collector.fold(start, inner))
        draft.modifiers = self.find_modifiers(collector.text[start : start_of(name)])
        draft.bases = _find_bases(collector, head)
        collector.symbols.append(draft)
        for parameters in children_of(call)[1:2] if call is not None else ():
            self.on_parameters(collector, parameters)
        return draft

    def on_parameters(self, collector: Collector, node: Node) -> None:
        for child in children_of(node):
            name = _find_name(child)
            if name is not None and kind_of(name) == "identifier" and end_of(name) > start_of(name):
                start, end = start_of(child), end_of(child)
                draft = Draft("parameter", collector.write(name), start, end, start_of(name), end_of(name))
                draft.signature = collector.fold(start, end)
                collector.symbols.append(draft)

    def on_doc(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        content = child_at(captures["value"][0], 0)
        if content is not None:
            collector.remarks.append((start_of(node), collector.write(content), "doc"))

    def on_import(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """`using M` takes all that a module exports, `import M` its name, and both take what stands behind a colon."""
        start, end = start_of(node), end_of(node)
        for child in children_of(node):
            parts = children_of(child)
            if kind_of(child) == "selected_import" and parts:
                bindings = [_bind(collector, part) for part in parts[1:]]
                collector.add_import("from", collector.write(parts[0]), start, end, bindings)
            elif kind_of(child) == "import_alias" and parts:
                local = parts[-1]
                binding = (collector.write(local), "*", start_of(local), end_of(local), False)
                collector.add_import("import", collector.write(parts[0]), start, end, [binding])
            elif kind_of(child) in ("identifier", "scoped_identifier", "import_path"):
                last = parts[-1] if parts else child
                binding = (collector.write(last), "*", start_of(last), end_of(last), False)
                word = "star" if kind_of(node) == "using_statement" else "import"
                collector.add_import(word, collector.write(child), start, end, [binding])

    def finish(self, collector: Collector) -> None:
        heads = collector.targets
        collector.calls = [call for call in collector.calls if (call[0], call[1]) not in heads]
        exported = {name for _, name, *_ in collector.exports}
        for draft in collector.symbols:
            draft.exported = draft.kind != "parameter" and draft.name in exported

    def finish_nested(self, collector: Collector) -> None:
        docs = {offset: text for offset, text, _ in collector.remarks}
        for draft in collector.symbols:
            if draft.kind not in ("parameter", "field") and draft.start in docs:
                draft.doc = "\n".join(line.strip() for line in docs[draft.start].splitlines()).strip()


def _find_name(head: Node) -> Node | None:
    """Of `f`, `f(x)`, `M.f(x)::T where T`, `(+)(a, b)`, `Point{T} <: Shape`, `x::T`, `x = 1`, `x...`."""
    while kind_of(head) in _AROUND_NAME:
        inner = child_at(head, 0)
        if inner is None:
            return None
        head = inner
    if kind_of(head) == "field_expression":
        return child_at(head, child_count_of(head) - 1)
    return head if kind_of(head) in ("identifier", "operator") else None


def _find_call(head: Node) -> Node | None:
    """Of the head of a method, its name with its parameters; None where there are no parameters."""
    while kind_of(head) in _HEADS:
        inner = child_at(head, 0)
        if inner is None:
            return None
        head = inner
    return head if kind_of(head) == "call_expression" else None


def _find_bases(collector: Collector, head: Node) -> tuple[str, ...]:
    """Of `Point{T} <: Shape`."""
    inner = child_at(head, 0) if kind_of(head) == "type_head" else None
    if inner is None or kind_of(inner) != "binary_expression" or child_count_of(inner) < 3:
        return ()
    return (collector.write(children_of(inner)[-1]),)


def _bind(collector: Collector, part: Node) -> tuple[str, str, int, int, bool]:
    names = children_of(part) if kind_of(part) == "import_alias" else [part]
    local = names[-1] if names else part
    return collector.write(local), collector.write(names[0] if names else part), start_of(local), end_of(local), False
