"""Elixir: modules, protocols, functions and macros with all their clauses, types, callbacks, imports, calls."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from cq.syntax.collect import DEFINED
from cq.syntax.excerpt import clip
from cq.syntax.language import Draft, Language
from cq.syntax.tree import Captures, Node, child_count_of, children_of, end_of, field_of, kind_of, start_of, text_of

if TYPE_CHECKING:
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

_LONGEST = max(map(len, _WORDS))


class Elixir(Language):
    def on_define(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        word_node = captures["word"][0]
        word = collector.slice(start_of(word_node), end_of(word_node))
        what = _HOLDERS.get(word) or _FUNCTIONS.get(word)
        arguments = next((child for child in children_of(node) if kind_of(child) == "arguments"), None)
        if what is None or arguments is None or not child_count_of(arguments):
            return
        head = children_of(arguments)[0]
        name = _find_name(head)
        if name is None:
            return
        body = next((child for child in children_of(node) if kind_of(child) == "do_block"), None)
        start, end = start_of(node), end_of(node)
        text = collector.slice(start_of(name), end_of(name)).strip('"')
        draft = Draft(what, text, start, end, start_of(name), end_of(name))
        # `def f(x), do: x` has its body among the arguments.
        inner = start_of(body) if body is not None else end_of(head)
        draft.body_start, draft.body_end, draft.scope_start = inner, end, start
        draft.signature = clip(collector.text, start, inner, 200).rstrip(" ,")
        draft.modifiers = ("private",) if word in _PRIVATE else ()
        draft.exported = word not in _PRIVATE
        if what in ("function", "macro"):
            around = collector.ancestors.holder(name)
            collector.targets.add((-1 if around is None else start_of(around), start_of(name)))
        collector.symbols.append(draft)

    def on_typed(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        """`@type name :: …`, `@callback name(arg) :: result`, `@spec name(arg) :: result`: types, no calls."""
        word = collector.slice(start_of(captures["word"][0]), end_of(captures["word"][0]))
        name = _find_name(captures["value"][0])
        start, end = start_of(node), end_of(node)
        collector.decorators.append((start, end))
        if name is None or word == "spec":
            return
        draft = Draft(
            _TYPED[word], collector.slice(start_of(name), end_of(name)), start, end, start_of(name), end_of(name),
            signature=clip(collector.text, start, end, 200), exported=word not in _PRIVATE,
        )  # fmt: skip
        collector.symbols.append(draft)

    def on_doc(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        word, value = captures["word"][0], captures["value"][0]
        if kind_of(value) in ("string", "sigil"):
            content = " ".join(
                collector.slice(start_of(child), end_of(child))
                for child in children_of(value)
                if kind_of(child) == "quoted_content"
            )
            where = "module" if collector.slice(start_of(word), end_of(word)) == "moduledoc" else "definition"
            collector.remarks.append((start_of(node), where, _clean(content)))

    def on_import(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        word, module = captures["word"][0], captures["module"][0]
        name = collector.slice(start_of(module), end_of(module))
        local = name.rpartition(".")[2]
        aliased = collector.slice(start_of(word), end_of(word)) == "alias"
        bindings = [(local, "*", end_of(module) - len(local.encode()), end_of(module), False)] if aliased else []
        collector.add_import("import", name, start_of(node), end_of(node), bindings)

    def on_call(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        callee = captures["callee"][0]
        first, last = start_of(callee), end_of(callee)  # of a chain, all that stands before it
        if (last - first <= _LONGEST and collector.slice(first, last) in _WORDS) or (
            start_of(node),
            start_of(callee),
        ) in collector.targets:
            return
        args = next((child for child in children_of(node) if kind_of(child) == "arguments"), None)
        collector.add_call(self, "call", start_of(node), end_of(node), callee, args)

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
        target = field_of(node, "target") if kind_of(node) == "call" else None
        if target is not None and text_of(target) in (b"alias", b"import", b"require", b"use"):
            return "import"
        return super().chunk_kind(node)


def _find_name(head: Node) -> Node | None:
    """Of `name`, `name(a, b)`, `name(a) when …`, `name :: type`, `Module`, a string."""
    while kind_of(head) == "binary_operator":
        left = field_of(head, "left")
        if left is None:
            return None
        head = left
    if kind_of(head) == "call":
        target = field_of(head, "target")
        return target if target is not None and kind_of(target) == "identifier" else None
    return head if kind_of(head) in ("identifier", "alias", "string") else None


def _clean(text: str) -> str:
    return "\n".join(line.strip() for line in text.splitlines()).strip()
