"""What calls of Rust pass, in short and as values, and how a call is noted."""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from cq.languages.rust.paths import read_callee
from cq.languages.rust.signatures import Keywords
from cq.languages.rust.values import FORMATTING, join_format, read_literal
from cq.model.code import Name, Value
from cq.model.facts import Argument
from cq.syntax.excerpt import clip
from cq.syntax.language import ARG_TEXT, CALLEE_TEXT, MAX_ARGS, ROLE_NUMBER, Language
from cq.syntax.tree import Node, child_at, child_count_of, children_of, end_of, field_of, kind_id_of, kind_of, start_of

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

CALL = ROLE_NUMBER["call"]
MAX_WRAPS = 8  # `&(x.await?)`: so many layers are looked through, so that `x????…` stays linear
_PLAIN_ARGUMENT = re.compile(r"&?(?:mut )?(?:[A-Za-z_]\w*(?:(?:\.|::)(?!await\b)\w+)*|\d\w*)|\"[^\"\\\n]*\"", re.ASCII)
_PLAIN_ARGUMENTS = re.compile(rf"\((?:{_PLAIN_ARGUMENT.pattern})(?:, (?:{_PLAIN_ARGUMENT.pattern}))*\)".encode())
_WRAPPED = frozenset(
    {"try_expression", "await_expression", "reference_expression", "parenthesized_expression", "unary_expression"}
)
_Summary = tuple[tuple[Argument, ...], int, tuple[str, ...]]
_Values = tuple[Value, ...]
Arguments = tuple[_Summary, _Values, Keywords]  # what is written, values by position and by name
NESTED = frozenset({"call", "array", "object"})
NO_SUMMARY: _Summary = ((), 0, ())
NO_ARGUMENTS: Arguments = (NO_SUMMARY, (), ())
MAX_VALUES = 100  # of one call


class ArgumentReader(Language):
    argument_kinds = {
        "string_literal": "string", "raw_string_literal": "string", "char_literal": "string",
        "integer_literal": "number", "float_literal": "number", "negative_literal": "number",
        "boolean_literal": "boolean", "unit_expression": "null", "identifier": "name", "self": "name",
        "field_expression": "attribute", "scoped_identifier": "attribute", "call_expression": "call",
        "macro_invocation": "call", "array_expression": "array", "tuple_expression": "array",
        "struct_expression": "object", "closure_expression": "function",
    }  # fmt: skip

    @cached_property
    def wrapped_ids(self) -> frozenset[int]:
        return frozenset(number for name in _WRAPPED if (number := self.grammar.find_kind(name)))

    def call_target(self, collector: Collector, call: Node) -> str:
        callee = field_of(call, "function")
        if callee is not None:
            return read_text(collector, callee)
        callee = field_of(call, "macro")
        if callee is not None:
            return read_text(collector, callee) + "!"
        callee = field_of(call, "name")
        return "" if callee is None else read_text(collector, callee)

    @cached_property
    def value_ids(self) -> dict[int, str]:
        # A struct literal is a Call of kind `new`: as a value it is a call, which starts where that Call starts.
        return {number: "call" if kind == "object" else kind for number, kind in self.argument_ids.items()}

    def value_kind(self, node: Node) -> str:
        return self.value_ids.get(kind_id_of(node), "other")

    def summarize_arguments(self, collector: Collector, node: Node) -> _Summary:
        text, kinds = collector.text, self.argument_ids
        summaries: list[Argument] = []
        positional = 0
        for child in children_of(node):
            kind, value = kinds.get(kind_id_of(child)), child
            if kind is None:
                if kind_of(child) == "attribute_item":
                    continue
                value = self.unwrap(child)
                kind = kinds.get(kind_id_of(value), "other")
            elif kind == "comment":
                continue
            positional += 1
            if positional <= MAX_ARGS:
                start, end = start_of(child), end_of(child)
                depth = self.shape_depth(value) if kind in NESTED else 0
                summaries.append(Argument(kind, cut_excerpt(text, start, end, ARG_TEXT), "", depth))
        return tuple(summaries), positional, ()

    def unwrap(self, node: Node) -> Node:
        """`&mut f().await?` -> `f()`: the value that the wrappers are about."""
        wrapped = self.wrapped_ids
        for _ in range(MAX_WRAPS):
            if kind_id_of(node) not in wrapped:
                break
            inner = field_of(node, "value") or child_at(node, 0)
            if inner is None:
                break
            node = inner
        return node

    def last_of_path(self, path: Node) -> Node:
        """The node of the last name: `a::B::<T>` -> B."""
        for _ in range(MAX_WRAPS):
            if not child_count_of(path):
                break
            path = field_of(path, "name") or field_of(path, "type") or path
        return path

    def append_call(
        self, collector: Collector, kind: str, callee: Node, name: Node, end: int, given: Arguments, role: int = CALL
    ) -> None:
        self.append_span(collector, kind, start_of(callee), end_of(callee), name, end, given, role)

    def append_span(
        self, collector: Collector, kind: str, start: int, callee_end: int, name: Node, end: int, given: Arguments,
        role: int = CALL,
    ) -> None:  # fmt: skip
        name_start = start_of(name)
        receiver = read_receiver(collector, start, name_start)
        callee = cut_excerpt(collector.text, start, callee_end, CALLEE_TEXT - 1) + ("!" if kind == "macro" else "")
        word = collector.slice(name_start, end_of(name))
        if word.startswith("r#"):
            word, name_start = word[2:], name_start + 2
        if word:
            collector.marks[name_start] = role
        else:
            name_start, receiver = -1, ""  # the parser made up a name
        target = read_callee(collector.text, start, callee_end, word, name_start, kind)
        summary, args, keywords = given
        if kind == "macro" and word in FORMATTING:
            args = join_format(args, dict(keywords))
        collector.calls.append((start, end, name_start, kind, callee, word, receiver, *summary, target, args, keywords))


@lru_cache(maxsize=1 << 14)
def read_plain_arguments(source: bytes) -> Arguments | None:
    """Of `(a, &b.c, "d", 1)`; None for anything less plain."""
    if _PLAIN_ARGUMENTS.fullmatch(source) is None:
        return None
    args: list[Argument] = []
    values: list[Value] = []
    for found in _PLAIN_ARGUMENT.finditer(source.decode("utf-8", "replace")):
        argument = found[0]
        word = argument.removeprefix("&").removeprefix("mut ")
        if word[0] == '"':
            kind = "string"
        elif word[0].isdigit():
            kind = "number"
        elif word == "true" or word == "false":
            kind = "boolean"
        else:
            kind = "attribute" if "." in word or "::" in word else "name"
        args.append(Argument(kind, argument))
        values.append(Name(word) if kind in ("name", "attribute") else read_literal(word.encode()))
    return (tuple(args[:MAX_ARGS]), len(args), ()), tuple(values), ()


def read_text(collector: Collector, node: Node, limit: int = CALLEE_TEXT) -> str:
    return cut_excerpt(collector.text, start_of(node), end_of(node), limit)


def cut_excerpt(text: bytes, start: int, end: int, limit: int) -> str:
    """`clip`, less the folding where there is nothing to fold."""
    if end - start <= limit:
        piece = text[start:end]
        if b"\n" not in piece and b"  " not in piece and b"\t" not in piece:
            return piece.decode("utf-8", "replace")
    return clip(text, start, end, limit)


def read_receiver(collector: Collector, first: int, name_start: int) -> str:
    if name_start <= first:
        return ""
    return cut_excerpt(collector.text, first, name_start, CALLEE_TEXT).removesuffix("r#").rstrip(".:").rstrip()
