"""Calls of Rust: functions, methods, macros, and literals of structs."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from cq.languages.rust.arguments import (
    CALL,
    MAX_VALUES,
    NESTED,
    NO_SUMMARY,
    read_plain_arguments,
    read_receiver,
    read_text,
)
from cq.languages.rust.flows import ASSIGNMENT, FlowReader
from cq.languages.rust.paths import read_callee
from cq.languages.rust.signatures import read_type
from cq.languages.rust.values import read_arguments, read_value
from cq.model.code import MethodOf, Typed, Value
from cq.model.facts import Argument
from cq.syntax.excerpt import clip
from cq.syntax.language import ARG_TEXT, CALLEE_TEXT, MAX_ARGS
from cq.syntax.tree import (
    Node,
    all_children_of,
    child_at,
    child_count_of,
    children_of,
    end_of,
    field_of,
    kind_id_of,
    kind_of,
    start_of,
)

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

_LAST_NAME = re.compile(rb"(?<![\w\x80-\xff])([A-Za-z_\x80-\xff][\w\x80-\xff]*)\Z")
_SHORT = 60
PLAIN_CALLEE = re.compile(rb"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*(?:\.[A-Za-z_]\w*)*")


class CallReader(FlowReader):
    def each_call(self, collector: Collector, kind: str, nodes: list[Node]) -> None:
        if kind == "macro":
            for node in nodes:
                callee = field_of(node, "macro")
                tree = next((child for child in children_of(node) if kind_of(child) == "token_tree"), None)
                if callee is not None and tree is not None:
                    self.add_macro(collector, node, callee, tree)
        elif kind == "new":
            for node in nodes:
                callee, body = field_of(node, "name"), field_of(node, "body")
                if callee is not None and body is not None:
                    self._add_literal(collector, node, callee, body)
        else:
            self._add_calls(collector, nodes)

    def _add_calls(self, collector: Collector, nodes: list[Node]) -> None:
        text, marks, calls = collector.text, collector.marks, collector.calls
        for node in nodes:
            # Fields are looked up here: a query that captures them costs the square of a chain's length.
            parts = all_children_of(node)
            if len(parts) == 2:
                callee, arguments = parts
            else:
                callee, arguments = field_of(node, "function"), field_of(node, "arguments")
                if callee is None or arguments is None:
                    continue
            first, last, end = start_of(callee), end_of(callee), end_of(node)
            known = _read_plain_callee(text[first:last]) if last - first < _SHORT else None
            if known is not None:
                raw, name, receiver, target = known
                name_start = last - len(name)
            else:
                raw, name, receiver, name_start = self._split_callee(collector, callee, first, last)
                target = read_callee(text, first, last, name, name_start, "call")
                if target is None:
                    target = self._callee_value(collector, callee, name)
            if name_start >= 0:
                marks[name_start] = CALL
            summary, args = NO_SUMMARY, ()
            if end - last > 2:
                # Most calls pass a few plain names and literals, and the same again: no nodes are needed for those.
                plain = read_plain_arguments(text[last:end]) if end - last < ARG_TEXT else None
                if plain is not None:
                    summary, args = plain[:2]
                else:
                    summary = self.summarize_arguments(collector, arguments)
                    args = read_arguments(collector, arguments, end)[:MAX_VALUES]
            elif name == "collect" and kind_of(callee) == "generic_function":
                kinds = field_of(callee, "type_arguments")
                if kinds is not None:
                    args = (Typed(read_type(text[start_of(kinds) + 1 : end_of(kinds) - 1]), None),)
            calls.append((first, end, name_start, "call", raw, name, receiver, *summary, target, args, ()))

    def _split_callee(self, collector: Collector, callee: Node, first: int, last: int) -> tuple[str, str, str, int]:
        """Its text, its last name, what stands before that, and where the name begins."""
        text = collector.text
        raw = name = receiver = ""
        if last - first <= CALLEE_TEXT:
            raw = text[first:last].decode("utf-8", "replace")
            if "\n" in raw:
                raw = " ".join(raw.split())
            receiver, _, name = raw.rpartition(".")
            if not name.isidentifier():
                receiver, _, name = raw.rpartition("::")
        if name.isidentifier() and name.isascii():
            return raw, name, receiver.rstrip(), last - len(name)
        raw = raw or clip(text, first, last, CALLEE_TEXT)
        name, name_start = self._last_name(collector, callee)
        return raw, name, read_receiver(collector, first, name_start), name_start

    def _callee_value(self, collector: Collector, callee: Node, name: str) -> Value:
        """A method on what is no plain name or call."""
        if kind_of(callee) == "generic_function":
            callee = field_of(callee, "function") or callee
        if kind_of(callee) != "field_expression":
            return read_value(collector, callee)
        base = field_of(callee, "value")
        value = None if base is None else read_value(collector, base)
        return None if value is None else MethodOf(value, name)

    def _last_name(self, collector: Collector, callee: Node) -> tuple[str, int]:
        """`a::b::<T>` and `a.b::<T>` are called b; `f(1)` and `a[0]` have no name."""
        if kind_of(callee) == "generic_function":
            callee = field_of(callee, "function") or callee
        found = _LAST_NAME.search(collector.text, max(start_of(callee), end_of(callee) - 256), end_of(callee))
        return ("", -1) if found is None else (found[1].decode("utf-8", "replace"), found.start(1))

    def _add_literal(self, collector: Collector, node: Node, callee: Node, body: Node) -> None:
        """`Point { x: 1, y }`: a `new` with its fields as keywords, each also an assignment to `Point.x`."""
        owner = read_text(collector, callee)
        text = collector.text
        args: list[Argument] = []
        keywords: list[tuple[str, Value]] = []
        for child in children_of(body):
            start, end = start_of(child), end_of(child)
            if kind_of(child) == "field_initializer":
                field, value = field_of(child, "field"), field_of(child, "value")
                if field is None or value is None:
                    continue
                name = collector.slice(start_of(field), end_of(field))
                collector.marks[start_of(field)] = ASSIGNMENT
            elif kind_of(child) == "shorthand_field_initializer":
                value = child_at(child, child_count_of(child) - 1) if child_count_of(child) else None
                if value is None:
                    continue
                name = collector.slice(start_of(value), end_of(value))
            elif kind_of(child) == "base_field_initializer":
                if len(args) < MAX_ARGS:
                    args.append(Argument("spread", clip(text, start, end, ARG_TEXT), "", 0, True))
                continue
            else:
                continue
            source = self.unwrap(value)
            self.add_assignment(collector, child, f"{owner}.{name}", value)
            keywords.append((name, read_value(collector, value)))
            if len(args) < MAX_ARGS:
                kind = self.argument_ids.get(kind_id_of(source), "other")
                depth = self.shape_depth(source) if kind in NESTED else 0
                args.append(Argument(kind, read_text(collector, value, ARG_TEXT), name, depth))
        summary = (tuple(args), 0, tuple([name for name, _ in keywords]))
        given = (summary, (), tuple(keywords))
        self.append_call(collector, "new", callee, self.last_of_path(callee), end_of(node), given)


@lru_cache(maxsize=1 << 14)
def _read_plain_callee(callee: bytes) -> tuple[str, str, str, Value] | None:
    """Text, name, receiver and value of `a::b`, `a.b.c`; None for anything less plain."""
    if PLAIN_CALLEE.fullmatch(callee) is None:
        return None
    raw = callee.decode()
    receiver, _, name = raw.rpartition("." if "." in raw else "::")
    return raw, name, receiver, read_callee(callee, 0, len(callee), name, len(callee) - len(name), "call")
