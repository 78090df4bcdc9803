"""Kotlin: read as Java is; properties, extensions, companions and trailing lambdas are its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cq.languages.tables.java import IMPORT, Java
from cq.model.facts import Argument
from cq.syntax.collect import DEFINED
from cq.syntax.excerpt import clip
from cq.syntax.language import ARG_TEXT, MAX_ARGS, Draft
from cq.syntax.tree import (
    Captures,
    Node,
    Span,
    Tree,
    all_children_of,
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

# The grammar reads these as names.
_LITERALS = re.compile(rb"\b(?:true|false|null)\b")
_GENERIC = re.compile(rb"((?:[\w\x80-\xff]+\??\.)*[\w\x80-\xff]+)<[ \w\x80-\xff.,?*<>]+>\Z")
_ANNOTATION = re.compile(rb"(?<![\w\x80-\xff])@")
_BLANKS = (b" ", b"\t", b"\r", b"\n")
_LITERAL_KINDS = {b"true": "boolean", b"false": "boolean", b"null": "null"}
_HOLDERS = frozenset({"class", "interface", "enum", "object", "annotation_type", "enum_member"})


class Kotlin(Java):
    def parse(self, text: bytes, ranges: tuple[tuple[int, int], ...] = ()) -> Tree | None:
        """The grammar never ends where a text stops in an annotation (`@B` below `val a = 1`): that is blanked."""
        end = ranges[-1][1] if ranges else len(text)
        word = 1 + max(text.rfind(blank, 0, end) for blank in _BLANKS)
        if b"@" in text[word:end]:
            text = text[:word] + _ANNOTATION.sub(b" ", text[word:end]) + text[end:]
        return super().parse(text, ranges)

    def on_symbol(self, collector: Collector, kind: str, node: Node, captures: Captures) -> Draft | None:
        if kind == "property":
            self._add_property(collector, node)
            return None
        name: Node | Span | None = captures["name"][0] if "name" in captures else field_of(node, "name")
        parts = {kind_of(child): child for child in reversed(children_of(node))}  # the first of each kind
        if kind == "constructor" or (kind == "object" and name is None):
            word = b"constructor" if kind == "constructor" else b"object"
            at = collector.text.find(word, start_of(node), end_of(node))
            name = Span(at, at + len(word)) if at >= 0 else None
        if name is not None and end_of(name) <= start_of(name):
            # `fun String.ext()` in broken code: the whole path was taken for the receiver's type.
            path = parts.get("user_type")
            name = children_of(path)[-1] if path is not None and child_count_of(path) else None
        if name is None:
            return None
        body = (
            parts.get("function_body") or parts.get("block") or parts.get("class_body") or parts.get("enum_class_body")
        )
        draft = self.define(collector, kind, node, name, body)
        if isinstance(name, Span) and kind == "object":
            draft.name = "Companion"
        if kind in ("class", "object"):
            draft.kind = _class_kind(draft, node) if kind == "class" else kind
            draft.bases = self.find_bases(collector, node)
            self._add_class_parameters(collector, draft, parts.get("primary_constructor"))
        if draft.body_start >= 0:
            if (held := parts.get("type_parameters")) is not None:
                self.add_parameters(collector, held, "type_parameter")
            if (held := parts.get("function_value_parameters")) is not None:
                self.add_parameters(collector, held, "parameter")
        return draft

    def _add_class_parameters(self, collector: Collector, owner: Draft, constructor: Node | None) -> None:
        """`class P(val x: Int, y: Int)`: x is a property, y a parameter; the head alone can hold them."""
        if constructor is None:
            return
        if owner.body_start < 0:
            owner.body_start = owner.body_end = owner.end
            owner.scope_start = owner.head
        for parameters in children_of(constructor):
            if kind_of(parameters) != "class_parameters":
                continue
            for child in children_of(parameters):
                name = self.parameter_name(child)
                if name is not None:
                    draft = self.define(collector, "parameter", child, name)
                    if any(kind_of(word) in ("val", "var") for word in all_children_of(child)):
                        draft.kind = "property"

    def _add_property(self, collector: Collector, node: Node) -> None:
        names: list[Node] = []
        value = body = None
        for child in children_of(node):
            if kind_of(child) == "variable_declaration":
                names = [child]
            elif kind_of(child) == "multi_variable_declaration":
                names = [part for part in children_of(child) if kind_of(part) == "variable_declaration"]
            elif kind_of(child) in ("getter", "setter"):
                body = body or child
            elif names:
                value = child
        for declaration in names:
            name = next((part for part in children_of(declaration) if kind_of(part) == "identifier"), None)
            if name is None:
                continue
            kind = "property"
            if body is not None:
                # Accessors are the body of a property, up to its end.
                held: Node | Span | None = Span(start_of(body), end_of(node))
            elif len(names) == 1 and value is not None and kind_of(value) in ("lambda_literal", "anonymous_function"):
                # `val f = { x: Int -> x + 1 }`: the parameters are part of the signature.
                inner = children_of(value)
                head = [
                    part for part in inner if kind_of(part) not in ("function_body", "line_comment", "block_comment")
                ]
                cut = start_of(value) + 1
                if kind_of(value) == "anonymous_function" and head:
                    cut = end_of(head[-1])
                elif inner and kind_of(inner[0]) == "lambda_parameters":
                    cut = end_of(inner[0])
                held, kind = Span(cut, end_of(value)), "function"
            else:
                held = None
            draft = self.define(collector, kind, node, name, held, start_of(names[0]))
            if kind == "function" and "{" in draft.signature:
                draft.signature += " -> }"

    def find_bases(self, collector: Collector, node: Node) -> tuple[str, ...]:
        """`Base<T>(x)` is the base `Base<T>`, `Face by impl` the base `Face`."""
        bases = []
        for clause in children_of(node):
            if kind_of(clause) in self.base_clauses:
                for specifier in children_of(clause):
                    inner = child_at(specifier, 0)
                    if inner is not None and kind_of(inner) in ("constructor_invocation", "explicit_delegation"):
                        inner = child_at(inner, 0)
                    if inner is not None:
                        bases.append(collector.fold(start_of(inner), end_of(inner)))
        return tuple(bases)

    def parameter_name(self, node: Node) -> Node | None:
        if kind_of(node) not in ("parameter", "class_parameter", "type_parameter"):
            return None
        return next((child for child in children_of(node) if kind_of(child) == "identifier"), None)

    # -- calls and imports -------------------------------------------------------------------------

    def on_call(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        start, end = start_of(node), end_of(node)
        if kind == "delegate":  # `constructor() : this(1)`
            collector.add_call(self, "super", start, end, Span(start, start + len(b"this")), captures["args"][0])
            return
        if kind:  # `class A : Base(1)`
            collector.add_call(self, kind, start, end, captures["callee"][0], captures["args"][0])
            return
        kind = "super" if collector.text.startswith(b"super.", start) else "call"
        callee = captures["callee"][0]
        if (
            kind_of(callee) == "call_expression"
            and (inner := child_at(callee, 0)) is not None
            and _is_lambda_call(node)
        ):
            # `f(1) { it }` is a call of a call in the tree; `finish` drops the inner one.
            callee = inner
        collector.add_call(self, kind, start, end, callee, node)

    def on_generic(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        start, text = start_of(node), collector.text
        before = text[max(0, start - 120) : start].rstrip(b" ")
        if before.endswith(b">") and (found := _GENERIC.search(before)) is not None:
            shift = max(0, start - 120)
            callee = Span(shift + found.start(1), shift + found.end(1))
            collector.add_call(self, "call", start_of(callee), end_of(node), callee, node)

    def callee_name(self, collector: Collector, callee: Node) -> Node | None:
        """`Base<T>(x)` in a class's head"""
        name = child_at(callee, 0) if kind_of(callee) == "user_type" else None
        return None if name is None or is_missing(name) else name

    def summarize_arguments(
        self, collector: Collector, node: Node
    ) -> tuple[tuple[Argument, ...], int, tuple[str, ...]]:
        """`f(1) { it }`: a lambda behind the parentheses is the last argument."""
        if kind_of(node) == "lambda_literal":
            return (Argument("function", clip(collector.text, start_of(node), end_of(node), ARG_TEXT)),), 1, ()
        if kind_of(node) == "parenthesized_expression" and (inner := child_at(node, 0)) is not None:
            text = clip(collector.text, start_of(inner), end_of(inner), ARG_TEXT)
            return (Argument(self.value_kind(inner), text),), 1, ()
        if kind_of(node) != "call_expression":
            return super().summarize_arguments(collector, node)
        summaries: tuple[Argument, ...] = ()
        keywords: tuple[str, ...] = ()
        count = 0
        parts = children_of(node)
        if _is_lambda_call(node) and kind_of(parts[0]) == "call_expression":
            parts = [*children_of(parts[0]), *parts[1:]]
        for child in parts[1:]:
            if kind_of(child) == "value_arguments":
                summaries, count, keywords = super().summarize_arguments(collector, child)
            elif kind_of(child) == "annotated_lambda":
                count += 1
                if len(summaries) < MAX_ARGS:
                    text = clip(collector.text, start_of(child), end_of(child), ARG_TEXT)
                    summaries += (Argument("function", text),)
        fixed = [_LITERAL_KINDS.get(argument.text.encode()) for argument in summaries]
        if any(fixed):
            summaries = tuple(
                Argument(kind or argument.kind, argument.text, argument.name, argument.depth, argument.spread)
                for kind, argument in zip(fixed, summaries, strict=True)
            )
        return summaries, count, keywords

    def unwrap_argument(self, collector: Collector, node: Node) -> tuple[str, Node | None]:
        children = children_of(node)
        if len(children) > 1 and kind_of(children[0]) == "identifier":
            return collector.slice(start_of(children[0]), end_of(children[0])), children[-1]
        return "", children[-1] if children else None

    def on_import(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        start, end = start_of(node), end_of(node)
        collector.spans.append((start, end, IMPORT))
        children = [child for child in children_of(node) if not is_extra(child)]
        if not children:
            return
        path = collector.slice(start_of(children[0]), end_of(children[0]))
        if collector.text[end_of(children[-1]) : end].rstrip(b"; \t\r\n").endswith(b"*"):
            collector.add_import("star", path, start, end, [])
            return
        module, _, imported = path.rpartition(".")
        last = children[-1]
        local = imported if len(children) == 1 else collector.slice(start_of(last), end_of(last))
        binding = (local, imported, end_of(last) - len(local.encode()), end_of(last), False)
        collector.add_import("from", module, start, end, [binding])

    # -- the whole document ------------------------------------------------------------------------

    def finish(self, collector: Collector) -> None:
        collector.marks.update(
            (match.start(), DEFINED) for match in _LITERALS.finditer(collector.text, *collector.span)
        )
        widest = {(call[0], call[2]): call for call in sorted(collector.calls, key=lambda call: call[1])}
        collector.calls = [call for call in collector.calls if call[2] < 0 or widest[call[0], call[2]] is call]

    def finish_nested(self, collector: Collector) -> None:
        drafts = collector.symbols
        for draft in drafts:
            if draft.kind == "property":
                holder = drafts[draft.parent] if draft.parent >= 0 else None
                if "const" in draft.modifiers:
                    draft.kind = "constant"
                elif holder is not None and holder.kind not in _HOLDERS:
                    draft.kind = "variable"
        super().finish_nested(collector)

    def is_visible(self, draft: Draft, holder: Draft | None) -> bool:
        if draft.kind == "package" or (holder is not None and holder.kind not in _HOLDERS):
            return False
        return not {"private", "internal", "protected"} & set(draft.modifiers)


def _is_lambda_call(node: Node) -> bool:
    """`… { it }`: the call has no parentheses of its own."""
    return child_count_of(node) == 2 and kind_of(children_of(node)[1]) == "annotated_lambda"


def _class_kind(draft: Draft, node: Node) -> str:
    if any(kind_of(child) == "interface" for child in all_children_of(node)):
        return "interface"
    if "enum" in draft.modifiers:
        return "enum"
    return "annotation_type" if "annotation" in draft.modifiers else "class"
