"""Python's calls, with their arguments, and decorators. There are millions: what equal text says is read once."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from cq.languages.python.values import DOTTED, ValueReader
from cq.model.code import Name, Text, Value
from cq.model.facts import Argument
from cq.syntax.code import MAX_ELEMENTS
from cq.syntax.excerpt import clip
from cq.syntax.language import ARG_TEXT, CALLEE_TEXT, MAX_ARGS, NESTED, ROLE_NUMBER, KeptTexts
from cq.syntax.tree import (
    Captures,
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

_CALL = ROLE_NUMBER["call"]
_PARENTHESIS = ord("(")
_QUOTES = b"\"'"
_PUBLIC_CALLS = (b"__all__.extend", b"__all__.append")
_PLACED = re.compile(rb".\(|\b(?:lambda|for)\b", re.DOTALL)  # what in a list of arguments depends on its place


class Callee(NamedTuple):
    """What is called, as written and as a value."""

    way: str  # the kind of call
    written: str
    name: str
    receiver: str
    length: int  # bytes of the name, at the end of what is written; 0 where the callee does not end with a name
    value: Name | None  # None where the node must say it


class Arguments(NamedTuple):
    """The first of them as written, how many stand by position, the names of the others; and all as values."""

    written: tuple[Argument, ...]
    positional: int
    names: tuple[str, ...]
    values: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()


_NONE = Arguments((), 0, ())


class CallReader(ValueReader):
    def on_decorated(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        definition = field_of(node, "definition")
        if definition is not None:
            collector.decorated[start_of(definition)] = start_of(node)

    def on_decorator(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        value = child_at(node, 0)
        collector.decorators.append((start_of(node), end_of(node if value is None else value)))
        if value is not None:
            self.add_decorator(collector, node, value)

    def each_call(self, collector: Collector, kind: str, nodes: list[Node]) -> None:
        """A loop without a call in it, wherever what is written was read before."""
        text, marks, calls, clean = collector.text, collector.marks, collector.calls, collector.clean
        callees, lists = self.known_callees, self.known_lists
        for node in nodes:
            parts = all_children_of(node)
            start, end = start_of(node), end_of(node)
            is_odd = len(parts) != 2 or text[start] == _PARENTHESIS  # with comments or errors inside, in parentheses
            # Fields are looked up here: a query that captures them costs the square of a chain's length.
            callee, args = parts if not is_odd else (field_of(node, "function"), field_of(node, "arguments"))
            if callee is None or args is None:
                continue
            callee = _unwrap(callee) if is_odd else callee
            last, first = end_of(callee), start_of(args)
            written = b"" if is_odd or last - start > CALLEE_TEXT else text[start:last]
            known = callees.get(written)
            if known is None:
                known = self._read_callee(collector, callee, start)
                if written:
                    callees.keep(written, known)
            way, raw, name, receiver, length, target = known
            name_start = -1
            if length:
                name_start = last - length
                marks[name_start] = _CALL
            value: Value = target
            if target is None or not clean:
                value = self.value(collector, callee)
            if way == "public":
                way = "call"
                collector.public.append((start, end))
            elif written == b"setattr":
                self._add_attribute(collector, start, args)
            if end - first == 2:
                calls.append((start, end, name_start, way, raw, name, receiver, (), 0, (), value, (), ()))
                continue
            # What follows from the text alone is kept: the same few arguments are passed again and again. Around a
            # syntax error equal text may be parsed differently, and facts must not depend on what was read before.
            written = text[first:end] if clean and not is_odd and end - first <= ARG_TEXT else b""
            given = lists.get(written)
            if given is None:
                given = self.read_arguments(collector, args)
                # Only what holds no call, lambda or comprehension is the same wherever it stands.
                if written and not _PLACED.search(written):
                    lists.keep(written, given)
            calls.append((start, end, name_start, way, raw, name, receiver, *given[:3], value, *given[3:]))

    def _add_attribute(self, collector: Collector, start: int, args: Node) -> None:
        """`setattr(x, "name", value)` is `x.name = value`."""
        values = self.read_arguments(collector, args).values
        name = values[1] if len(values) == 3 else None
        if isinstance(name, Text) and name.value.isidentifier():
            collector.code.stores.append((start, values[0], name.value, values[2], None, -1))

    @cached_property
    def known_callees(self) -> KeptTexts[bytes, Callee]:
        """By their text."""
        return KeptTexts()

    @cached_property
    def known_lists(self) -> KeptTexts[bytes, Arguments]:
        """Argument lists by their text."""
        return KeptTexts()

    def _read_callee(self, collector: Collector, callee: Node, start: int) -> Callee:
        raw, name, receiver, name_start = collector.split_callee(self, callee)
        way = "call"
        if collector.text.startswith(b"super(", start) and end_of(callee) - start > 6:
            way = "super"
        elif collector.text.startswith(_PUBLIC_CALLS, start):
            way = "public"
        is_plain = kind_of(callee) in _NAMES and DOTTED.fullmatch(raw.encode())
        length = end_of(callee) - name_start if name_start >= 0 else 0
        return Callee(way, raw, name, receiver, length, Name(raw) if is_plain else None)

    def read_arguments(self, collector: Collector, node: Node) -> Arguments:
        """Of a call or a class statement."""
        text, kinds, ids = collector.text, self.argument_ids, self.ids
        if kind_id_of(node) == ids["generator_expression"]:  # any(x for x in y)
            written = Argument("array", collector.excerpt(node, ARG_TEXT), "", self.shape_depth(node))
            return Arguments((written,), 1, (), (self.value(collector, node),))
        string, splat = ids["string"], ids["dictionary_splat"]
        found: list[Argument] = []
        names: list[str] = []
        values: list[Value] = []
        keywords: list[tuple[str, Value]] = []
        positional = 0
        for place, child in enumerate(children_of(node)):
            number, name = kind_id_of(child), ""
            kind = kinds.get(number, "other")
            if kind == "comment":
                continue
            if kind == "keyword":
                pair = children_of(child)
                name = collector.write(pair[0]) if pair else ""
                names.append(name)
                child = pair[-1] if len(pair) > 1 else child
                number = kind_id_of(child)
                kind = kinds.get(number, "other")
            else:
                positional += 1
            start, end = start_of(child), end_of(child)
            piece = text[start:end] if end - start <= ARG_TEXT else b"\n"
            # Most arguments are short and on one line: no folding to do.
            folded = b"\n" in piece
            excerpt = clip(text, start, end, ARG_TEXT) if folded else piece.decode("utf-8", "replace")
            if len(found) < MAX_ARGS:
                depth = self.shape_depth(child) if kind in NESTED else 0
                found.append(Argument(kind, excerpt, name, depth, kind == "spread"))
            if place >= MAX_ELEMENTS or kind == "keyword":
                continue
            value: Value
            if kind == "name" and not folded:
                value = Name(excerpt) if excerpt else None
            elif number == string and not folded and piece[0] in _QUOTES:
                value = self.read_written(piece)
            elif number == splat and not name:
                keywords.append(("**", self.value(collector, child_at(child, 0))))
                continue
            else:
                value = self.value(collector, child)
            if name:
                keywords.append((name, value))
            else:
                values.append(value)
        return Arguments(tuple(found), positional, tuple(names), tuple(values), tuple(keywords))

    @cached_property
    def ids(self) -> dict[str, int | None]:
        names = ("string", "dictionary_splat", "generator_expression", "identifier", "assignment")
        return {name: self.grammar.find_kind(name) for name in names}


def _unwrap(callee: Node) -> Node:
    """`(a.f)(x)` calls f."""
    is_wrapped = kind_of(callee) == "parenthesized_expression" and child_count_of(callee) == 1
    inner = child_at(callee, 0) if is_wrapped else None
    return inner if inner is not None and kind_of(inner) in _NAMES else callee


_NAMES = ("identifier", "attribute")
