"""Scala: classes, objects, traits, enums, givens, extensions and their members."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cq.model.facts import Argument
from cq.syntax.collect import DEFINED, NO_SITE
from cq.syntax.excerpt import clip
from cq.syntax.language import ARG_TEXT, CALLEE_TEXT, ROLE_NUMBER, Draft, Language
from cq.syntax.tree import (
    Captures,
    Node,
    all_children_of,
    child_at,
    child_count_of,
    children_of,
    end_of,
    field_of,
    fields_of,
    is_missing,
    is_named,
    kind_of,
    start_of,
)

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

_CALL = ROLE_NUMBER["call"]
_IMPORT = ROLE_NUMBER["import"]
_TYPES = frozenset({"class", "object", "trait", "enum", "extension"})
_HIDDEN = frozenset({"private", "protected"})


class Scala(Language):
    def on_symbol(self, collector: Collector, kind: str, node: Node, captures: Captures) -> Draft | None:
        name = _extended_type(node) if kind == "extension" else captures["name"][0]
        if name is None or start_of(name) == end_of(name):
            return None
        text, start, end = collector.text, start_of(node), end_of(node)
        head = start
        decorators = []
        if text.startswith(b"@", start):
            for child in all_children_of(node):
                if kind_of(child) == "annotation":
                    decorators.append(collector.fold(start_of(child) + 1, end_of(child)))
                elif kind_of(child) not in ("comment", "block_comment"):
                    head = start_of(child)
                    break
        draft = Draft(
            kind, collector.fold(start_of(name), end_of(name)), start, end, start_of(name), end_of(name), head=head,
            decorators=tuple(decorators), modifiers=self.find_modifiers(text[head : start_of(name)]),
        )  # fmt: skip
        body = field_of(node, "body") if kind != "parameter" else None
        if body is not None:
            draft.body_start, draft.body_end, draft.scope_start = start_of(body), end_of(body), head
        elif kind in _TYPES:
            # `case class Point(x: Int)` holds its parameters, and has an empty body.
            draft.body_start, draft.body_end, draft.scope_start = end, end, head
        if kind in ("field", "constant", "variable", "parameter", "enum_member"):
            draft.signature = clip(text, head, end, 120)
            draft.body_start = draft.body_end = draft.scope_start = -1
        else:
            draft.signature = self.trim_signature(collector.fold(head, draft.body_start if body is not None else end))
        if kind in _TYPES or kind == "enum_member":
            extends = field_of(node, "extend")
            if extends is not None:
                draft.bases = tuple(
                    collector.fold(start_of(base), end_of(base))
                    for base in fields_of(extends, "type")
                    if is_named(base)
                )
        if kind in ("function", "extension") and body is not None:
            for parameters in fields_of(node, "parameters"):
                self.on_parameters(collector, parameters)
        if kind_of(node) == "class_parameter" and ("val" in draft.modifiers or "var" in draft.modifiers):
            draft.kind = "field"
        collector.symbols.append(draft)
        return draft

    def on_parameters(self, collector: Collector, node: Node) -> None:
        for child in children_of(node):
            name = field_of(child, "name")
            if kind_of(child) == "parameter" and name is not None and start_of(name) < end_of(name):
                start, end = start_of(child), end_of(child)
                collector.symbols.append(
                    Draft("parameter", collector.slice(start_of(name), end_of(name)), start, end, start_of(name),
                          end_of(name), signature=clip(collector.text, start, end, 120))
                )  # fmt: skip

    def trim_signature(self, signature: str) -> str:
        return super().trim_signature(signature).removesuffix(" with")

    # -- calls -------------------------------------------------------------------------------------

    def on_call(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        callee, args = captures["callee"][0], captures.get("args")
        if kind == "new":
            if kind_of(callee) == "template_body":
                return
            found = field_of(node, "arguments")
            args = [found] if found is not None else None
        elif collector.text.startswith(b"super.", start_of(callee)):
            kind = "super"
        collector.add_call(self, kind or "call", start_of(node), end_of(node), callee, args[0] if args else None)

    def callee_name(self, collector: Collector, callee: Node) -> Node | None:
        """`f[Int]` and `new A[Int]` are named before their type arguments."""
        inner = field_of(callee, "function") or field_of(callee, "type")
        if inner is not None and kind_of(inner) in ("field_expression", "stable_type_identifier"):
            inner = child_at(inner, child_count_of(inner) - 1) if child_count_of(inner) else None
        return inner if inner is not None and kind_of(inner) in ("identifier", "type_identifier") else None

    def on_infix(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """`list map f` calls `map` of `list`; operators made of signs are no calls here."""
        operator = captures["operator"][0]
        if is_missing(operator):
            return
        start, name_start, last = start_of(node), start_of(operator), end_of(operator)
        collector.marks[name_start] = _CALL
        value = field_of(node, "right")
        args: tuple[Argument, ...] = ()
        if value is not None:
            args = (Argument(self.value_kind(value), clip(collector.text, start_of(value), end_of(value), ARG_TEXT)),)
        collector.calls.append(
            (start, end_of(node), name_start, "call", clip(collector.text, start, last, CALLEE_TEXT),
             collector.slice(name_start, last), clip(collector.text, start, name_start, CALLEE_TEXT),
             args, len(args), (), *NO_SITE)
        )  # fmt: skip

    def summarize_arguments(
        self, collector: Collector, node: Node
    ) -> tuple[tuple[Argument, ...], int, tuple[str, ...]]:
        if kind_of(node) == "arguments":
            return super().summarize_arguments(collector, node)
        # `list.foreach { x => … }`
        return (Argument("function", clip(collector.text, start_of(node), end_of(node), ARG_TEXT)),), 1, ()

    # -- imports -----------------------------------------------------------------------------------

    def on_import(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """`import a.b.C`, `import a.{B, C => D}`, `import a._`; several expressions after commas."""
        path: list[Node] = []
        selectors: Node | None = None
        collector.spans.append((start_of(node), end_of(node), _IMPORT))
        for child in [*all_children_of(node), None]:
            if child is not None and kind_of(child) != ",":
                if kind_of(child) in ("identifier", "operator_identifier"):
                    path.append(child)
                elif kind_of(child) in ("namespace_selectors", "namespace_wildcard", "as_renamed_identifier"):
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
            name = collector.slice(start_of(last), end_of(last))
            bindings.append((name, name, start_of(last), end_of(last), False))
        elif kind_of(selectors) == "namespace_wildcard":
            star = True
        else:
            for child in children_of(selectors) if kind_of(selectors) == "namespace_selectors" else [selectors]:
                name, alias = field_of(child, "name"), field_of(child, "alias")
                star = star or kind_of(child) == "namespace_wildcard"
                if kind_of(child) == "identifier":
                    name = alias = child
                if name is not None and alias is not None and kind_of(alias) == "identifier":
                    bindings.append(
                        (collector.slice(start_of(alias), end_of(alias)),
                         collector.slice(start_of(name), end_of(name)), start_of(alias), end_of(alias), False)
                    )  # fmt: skip
        module = collector.slice(start_of(path[0]), end_of(path[-1])) if path else ""
        if kind == "reexport":
            for local, imported, start, end, _ in bindings:
                collector.exports.append((start, imported, local, end, module, False))
        if star:
            collector.add_import("star", module, start_of(node), end_of(node), [])
        if bindings or not star:
            collector.add_import(kind or "from", module, start_of(node), end_of(node), bindings)

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
    parameters = field_of(node, "parameters")
    first = child_at(parameters, 0) if parameters is not None else None
    return field_of(first, "type") if first is not None else None
