"""Kotlin: read as Java is; properties, extensions, companions and trailing lambdas are its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from cq.languages.tables.java import IMPORT, Java, Span
from cq.model.facts import Argument
from cq.syntax.collect import DEFINED
from cq.syntax.excerpt import clip
from cq.syntax.language import ARG_TEXT, MAX_ARGS, Captures, Draft, first_child

if TYPE_CHECKING:
    from tree_sitter import Node

    from cq.syntax.collect import Collector

# The grammar reads these as names.
_LITERALS = re.compile(rb"\b(?:true|false|null)\b")
_GENERIC = re.compile(rb"((?:[\w\x80-\xff]+\??\.)*[\w\x80-\xff]+)<[ \w\x80-\xff.,?*<>]+>\Z")
_LITERAL_KINDS = {b"true": "boolean", b"false": "boolean", b"null": "null"}
_HOLDERS = frozenset({"class", "interface", "enum", "object", "annotation_type", "enum_member"})


class Kotlin(Java):
    id = "kotlin"
    label = "Kotlin"
    grammar_module = "tree_sitter_kotlin"
    argument_kinds = {
        "string_literal": "string", "multiline_string_literal": "string", "character_literal": "string",
        "number_literal": "number", "float_literal": "number", "unary_expression": "number", "identifier": "name",
        "this_expression": "name", "navigation_expression": "attribute", "call_expression": "call",
        "collection_literal": "array", "object_literal": "object", "lambda_literal": "function",
        "annotated_lambda": "function", "anonymous_function": "function", "callable_reference": "function",
        "spread_expression": "spread",
    }  # fmt: skip
    root_kinds = {"import": "import", "call_expression": "expression"}
    modifier_words = frozenset(
        {"public", "protected", "private", "internal", "open", "abstract", "final", "sealed", "data", "inner", "value",
         "enum", "annotation", "companion", "override", "lateinit", "suspend", "tailrec", "operator", "infix", "inline",
         "external", "const", "vararg", "noinline", "crossinline", "reified", "expect", "actual"}
    )  # fmt: skip
    base_clauses = frozenset({"delegation_specifiers"})
    wrapped_argument = True
    method_owners = _HOLDERS

    def on_symbol(self, collector: Collector, kind: str, node: Node, captures: Captures) -> Draft | None:
        if kind == "property":
            self._add_property(collector, node)
            return None
        name: Node | Span | None = captures["name"][0] if "name" in captures else node.child_by_field_name("name")
        parts = {child.type: child for child in reversed(node.named_children)}  # the first of each kind
        if kind == "constructor" or (kind == "object" and name is None):
            word = b"constructor" if kind == "constructor" else b"object"
            at = collector.text.find(word, node.start_byte, node.end_byte)
            name = Span(at, at + len(word)) if at >= 0 else None
        if name is not None and name.end_byte <= name.start_byte:
            # `fun String.ext()` in broken code: the whole path was taken for the receiver's type.
            path = parts.get("user_type")
            name = path.named_children[-1] if path is not None and path.named_child_count else None
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
        for parameters in constructor.named_children:
            if parameters.type != "class_parameters":
                continue
            for child in parameters.named_children:
                name = self.parameter_name(child)
                if name is not None:
                    draft = self.define(collector, "parameter", child, name)
                    if any(word.type in ("val", "var") for word in child.children):
                        draft.kind = "property"

    def _add_property(self, collector: Collector, node: Node) -> None:
        names: list[Node] = []
        value = body = None
        for child in node.named_children:
            if child.type == "variable_declaration":
                names = [child]
            elif child.type == "multi_variable_declaration":
                names = [part for part in child.named_children if part.type == "variable_declaration"]
            elif child.type in ("getter", "setter"):
                body = body or child
            elif names:
                value = child
        for declaration in names:
            name = next((part for part in declaration.named_children if part.type == "identifier"), None)
            if name is None:
                continue
            kind = "property"
            if body is not None:
                # Accessors are the body of a property, up to its end.
                held: Node | Span | None = Span(body.start_byte, node.end_byte)
            elif len(names) == 1 and value is not None and value.type in ("lambda_literal", "anonymous_function"):
                # `val f = { x: Int -> x + 1 }`: the parameters are part of the signature.
                inner = value.named_children
                head = [part for part in inner if part.type not in ("function_body", "line_comment", "block_comment")]
                cut = value.start_byte + 1
                if value.type == "anonymous_function" and head:
                    cut = head[-1].end_byte
                elif inner and inner[0].type == "lambda_parameters":
                    cut = inner[0].end_byte
                held, kind = Span(cut, value.end_byte), "function"
            else:
                held = None
            draft = self.define(collector, kind, node, name, held, names[0].start_byte)
            if kind == "function" and "{" in draft.signature:
                draft.signature += " -> }"

    def find_bases(self, collector: Collector, node: Node) -> tuple[str, ...]:
        """`Base<T>(x)` is the base `Base<T>`, `Face by impl` the base `Face`."""
        bases = []
        for clause in node.named_children:
            if clause.type in self.base_clauses:
                for specifier in clause.named_children:
                    inner = first_child(specifier)
                    if inner is not None and inner.type in ("constructor_invocation", "explicit_delegation"):
                        inner = first_child(inner)
                    if inner is not None:
                        bases.append(collector.fold(inner.start_byte, inner.end_byte))
        return tuple(bases)

    def parameter_name(self, node: Node) -> Node | None:
        if node.type not in ("parameter", "class_parameter", "type_parameter"):
            return None
        return next((child for child in node.named_children if child.type == "identifier"), None)

    # -- calls and imports -------------------------------------------------------------------------

    def on_call(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        start, end = node.start_byte, node.end_byte
        if kind == "delegate":  # `constructor() : this(1)`
            collector.add_call(self, "super", start, end, Span(start, start + len(b"this")), captures["args"][0])  # type: ignore[arg-type]
            return
        if kind:  # `class A : Base(1)`
            collector.add_call(self, kind, start, end, captures["callee"][0], captures["args"][0])
            return
        kind = "super" if collector.text.startswith(b"super.", start) else "call"
        callee = captures["callee"][0]
        if callee.type == "call_expression" and (inner := first_child(callee)) is not None and _is_lambda_call(node):
            # `f(1) { it }` is a call of a call in the tree; `finish` drops the inner one.
            callee = inner
        collector.add_call(self, kind, start, end, callee, node)

    def on_generic(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        start, text = node.start_byte, collector.text
        before = text[max(0, start - 120) : start].rstrip(b" ")
        if before.endswith(b">") and (found := _GENERIC.search(before)) is not None:
            shift = max(0, start - 120)
            callee = Span(shift + found.start(1), shift + found.end(1))
            collector.add_call(self, "call", callee.start_byte, node.end_byte, callee, node)  # type: ignore[arg-type]

    def callee_name(self, collector: Collector, callee: Node) -> Node | None:
        """`Base<T>(x)` in a class's head"""
        name = first_child(callee) if callee.type == "user_type" else None
        return None if name is None or name.is_missing else name

    def summarize_arguments(
        self, collector: Collector, node: Node
    ) -> tuple[tuple[Argument, ...], int, tuple[str, ...]]:
        """`f(1) { it }`: a lambda behind the parentheses is the last argument."""
        if node.type == "lambda_literal":
            return (Argument("function", clip(collector.text, node.start_byte, node.end_byte, ARG_TEXT)),), 1, ()
        if node.type == "parenthesized_expression" and (inner := first_child(node)) is not None:
            text = clip(collector.text, inner.start_byte, inner.end_byte, ARG_TEXT)
            return (Argument(self.value_kind(inner), text),), 1, ()
        if node.type != "call_expression":
            return super().summarize_arguments(collector, node)
        summaries: tuple[Argument, ...] = ()
        keywords: tuple[str, ...] = ()
        count = 0
        parts = node.named_children
        if _is_lambda_call(node) and parts[0].type == "call_expression":
            parts = [*parts[0].named_children, *parts[1:]]
        for child in parts[1:]:
            if child.type == "value_arguments":
                summaries, count, keywords = super().summarize_arguments(collector, child)
            elif child.type == "annotated_lambda":
                count += 1
                if len(summaries) < MAX_ARGS:
                    text = clip(collector.text, child.start_byte, child.end_byte, ARG_TEXT)
                    summaries += (Argument("function", text),)
        fixed = [_LITERAL_KINDS.get(argument.text.encode()) for argument in summaries]
        if any(fixed):
            summaries = tuple(
                Argument(kind or argument.kind, argument.text, argument.name, argument.depth, argument.spread)
                for kind, argument in zip(fixed, summaries, strict=True)
            )
        return summaries, count, keywords

    def unwrap_argument(self, collector: Collector, node: Node) -> tuple[str, Node | None]:
        children = node.named_children
        if len(children) > 1 and children[0].type == "identifier":
            return collector.slice(children[0].start_byte, children[0].end_byte), children[-1]
        return "", children[-1] if children else None

    def on_import(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        start, end = node.start_byte, node.end_byte
        collector.spans.append((start, end, IMPORT))
        children = [child for child in node.named_children if not child.is_extra]
        if not children:
            return
        path = collector.slice(children[0].start_byte, children[0].end_byte)
        if collector.text[children[-1].end_byte : end].rstrip(b"; \t\r\n").endswith(b"*"):
            collector.add_import("star", path, start, end, [])
            return
        module, _, imported = path.rpartition(".")
        last = children[-1]
        local = imported if len(children) == 1 else collector.slice(last.start_byte, last.end_byte)
        binding = (local, imported, last.end_byte - len(local.encode()), last.end_byte, False)
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
    return node.named_child_count == 2 and node.named_children[1].type == "annotated_lambda"


def _class_kind(draft: Draft, node: Node) -> str:
    if any(child.type == "interface" for child in node.children):
        return "interface"
    if "enum" in draft.modifiers:
        return "enum"
    return "annotation_type" if "annotation" in draft.modifiers else "class"
