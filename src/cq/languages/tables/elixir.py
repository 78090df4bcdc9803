"""Elixir: modules, protocols, functions and macros with all their clauses, types, callbacks, imports, calls."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from cq.syntax.collect import DEFINED
from cq.syntax.excerpt import clip
from cq.syntax.language import Captures, Draft, Language

if TYPE_CHECKING:
    from tree_sitter import Node

    from cq.syntax.collect import Collector

_HOLDERS = {"defmodule": "namespace", "defprotocol": "protocol", "defimpl": "impl", "describe": "namespace"}
_FUNCTIONS = {
    "def": "function", "defp": "function", "defdelegate": "function", "defn": "function", "defnp": "function",
    "defmacro": "macro", "defmacrop": "macro", "defguard": "macro", "defguardp": "macro", "test": "function",
}  # fmt: skip
_TYPED = {"type": "type", "typep": "type", "opaque": "type", "callback": "function", "macrocallback": "macro"}
_PRIVATE = frozenset({"defp", "defmacrop", "defguardp", "defnp", "typep"})
_WORDS = frozenset({*_HOLDERS, *_FUNCTIONS, *_TYPED, "defstruct", "defexception", "alias", "import", "require", "use",
                    "doc", "typedoc", "moduledoc", "spec", "impl", "deprecated", "since", "dialyzer", "tag", "quote",
                    "unquote", "if", "unless", "case", "cond", "with", "for", "fn", "receive", "try"})  # fmt: skip


class Elixir(Language):
    id = "elixir"
    label = "Elixir"
    grammar_module = "tree_sitter_elixir"
    argument_kinds = {
        "string": "string", "charlist": "string", "atom": "string", "integer": "number", "float": "number",
        "boolean": "boolean", "nil": "null", "identifier": "name", "alias": "name", "dot": "attribute", "call": "call",
        "list": "array", "tuple": "array", "map": "object", "anonymous_function": "function", "keywords": "object",
    }  # fmt: skip
    root_kinds = {"call": "expression"}
    doc_prefixes = (b"#",)
    method_owners = frozenset()
    stub = ", do: …"

    def on_define(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        word_node = captures["word"][0]
        word = collector.slice(word_node.start_byte, word_node.end_byte)
        what = _HOLDERS.get(word) or _FUNCTIONS.get(word)
        arguments = next((child for child in node.named_children if child.type == "arguments"), None)
        if what is None or arguments is None or not arguments.named_child_count:
            return
        head = arguments.named_children[0]
        name = _find_name(head)
        if name is None:
            return
        body = next((child for child in node.named_children if child.type == "do_block"), None)
        start, end = node.start_byte, node.end_byte
        text = collector.slice(name.start_byte, name.end_byte).strip('"')
        draft = Draft(what, text, start, end, name.start_byte, name.end_byte)
        # `def f(x), do: x` has its body among the arguments.
        inner = body.start_byte if body is not None else head.end_byte
        draft.body_start, draft.body_end, draft.scope_start = inner, end, start
        draft.signature = clip(collector.text, start, inner, 200).rstrip(" ,")
        draft.modifiers = ("private",) if word in _PRIVATE else ()
        draft.exported = word not in _PRIVATE
        if what in ("function", "macro"):
            around = collector.ancestors.holder(name)
            collector.targets.add((-1 if around is None else around.start_byte, name.start_byte))
        collector.symbols.append(draft)

    def on_typed(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """`@type name :: …`, `@callback name(arg) :: result`, `@spec name(arg) :: result`: types, no calls."""
        word = collector.slice(captures["word"][0].start_byte, captures["word"][0].end_byte)
        name = _find_name(captures["value"][0])
        start, end = node.start_byte, node.end_byte
        collector.decorators.append((start, end))
        if name is None or word == "spec":
            return
        draft = Draft(
            _TYPED[word], collector.slice(name.start_byte, name.end_byte), start, end, name.start_byte, name.end_byte,
            signature=clip(collector.text, start, end, 200), exported=word not in _PRIVATE,
        )  # fmt: skip
        collector.symbols.append(draft)

    def on_doc(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        word, value = captures["word"][0], captures["value"][0]
        if value.type in ("string", "sigil"):
            content = " ".join(
                collector.slice(child.start_byte, child.end_byte)
                for child in value.named_children
                if child.type == "quoted_content"
            )
            where = "module" if collector.slice(word.start_byte, word.end_byte) == "moduledoc" else "definition"
            collector.remarks.append((node.start_byte, where, _clean(content)))

    def on_import(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        word, module = captures["word"][0], captures["module"][0]
        name = collector.slice(module.start_byte, module.end_byte)
        local = name.rpartition(".")[2]
        aliased = collector.slice(word.start_byte, word.end_byte) == "alias"
        bindings = [(local, "*", module.end_byte - len(local.encode()), module.end_byte, False)] if aliased else []
        collector.add_import("import", name, node.start_byte, node.end_byte, bindings)

    def on_call(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        callee = captures["callee"][0]
        name = collector.slice(callee.start_byte, callee.end_byte)
        if name in _WORDS or (node.start_byte, callee.start_byte) in collector.targets:
            return
        args = next((child for child in node.named_children if child.type == "arguments"), None)
        collector.add_call(self, "call", node.start_byte, node.end_byte, callee, args)

    def finish(self, collector: Collector) -> None:
        """Clauses of one function that follow each other are one definition."""
        typed = sorted(collector.decorators)
        starts = [start for start, _ in typed]
        collector.calls = [
            call for call in collector.calls if not (at := bisect_right(starts, call[0])) or call[0] >= typed[at - 1][1]
        ]
        kept: list[Draft] = []
        for draft in sorted(collector.symbols, key=lambda d: (d.start, -d.end)):
            last = kept[-1] if kept else None
            if (
                last is not None
                and draft.kind in ("function", "macro")
                and (last.kind, last.name, last.modifiers) == (draft.kind, draft.name, draft.modifiers)
                and last.body_start >= 0
                and last.end <= draft.start
                and not collector.fold(last.end, draft.start).strip()
            ):
                last.end = last.body_end = draft.end
                collector.marks[draft.name_start] = DEFINED
                continue
            kept.append(draft)
        collector.symbols = kept

    def finish_nested(self, collector: Collector) -> None:
        modules = [draft for draft in collector.symbols if draft.kind in _HOLDERS.values()]
        for offset, where, text in collector.remarks:
            if where == "module":
                around = [draft for draft in modules if draft.body_start <= offset < draft.body_end]
                if around:
                    around[-1].doc = text
        docs = {offset: text for offset, where, text in collector.remarks if where == "definition"}
        starts = sorted(docs)
        for draft in collector.symbols:
            draft.decorators = tuple(
                word for word in draft.decorators if not word.startswith(("doc ", "doc(", "typedoc", "spec"))
            )
            at = bisect_left(starts, draft.start)
            if draft.kind not in _HOLDERS.values() and at < len(starts) and starts[at] < draft.head:
                draft.doc = docs[starts[at]]

    def chunk_kind(self, node: Node) -> str:
        target = node.child_by_field_name("target") if node.type == "call" else None
        if target is not None and target.text in (b"alias", b"import", b"require", b"use"):
            return "import"
        return super().chunk_kind(node)


def _find_name(head: Node) -> Node | None:
    """Of `name`, `name(a, b)`, `name(a) when …`, `name :: type`, `Module`, a string."""
    while head.type == "binary_operator":
        left = head.child_by_field_name("left")
        if left is None:
            return None
        head = left
    if head.type == "call":
        target = head.child_by_field_name("target")
        return target if target is not None and target.type == "identifier" else None
    return head if head.type in ("identifier", "alias", "string") else None


def _clean(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines()).strip()
