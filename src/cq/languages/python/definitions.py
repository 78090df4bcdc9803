"""What Python defines: functions, classes, lambdas, type aliases, with their parameters and docstrings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from cq.languages.python.calls import CallReader
from cq.model.code import Element, Entry, Parameter, ParameterOf
from cq.syntax.excerpt import clip
from cq.syntax.language import Draft
from cq.syntax.tree import (
    Captures,
    Node,
    child_at,
    child_count_of,
    children_of,
    end_of,
    field_of,
    kind_of,
    start_of,
    text_of,
)

if TYPE_CHECKING:
    from cq.syntax.collect import Collector

VALUE_TEXT = 120  # of an excerpt that shows what a name stands for
# `a`, `a: int = 1`, `*args`, `**kw: int`: the name leads, whatever the node is called.
_PARAMETER = re.compile(rb"[*\s]*([^\W\d][\w\x80-\xff]*|[\x80-\xff][\w\x80-\xff]*)")
_PLAIN_STRING = re.compile(rb"[rRuU]?[\"'(]")  # neither bytes nor formatted
_STRING_STARTS = tuple(bytes((byte,)) for byte in b"\"'rRuUbBfF#")  # a quote, a prefix, or a comment
# Names, and what may stand between them in a type: never a blank alone.
_FORWARD = re.compile(rb"""(["'])[ ]*(?:[^\W\d]\w*(?:[ ]*[][(),|."'][][(),|."' ]*|(?=\1)))+\1""")
_STAR, _SLASH = b"*/"


class DefinitionReader(CallReader):
    def on_symbol(self, collector: Collector, kind: str, node: Node, captures: Captures) -> Draft | None:
        if kind == "lambda":
            self._add_lambda(collector, node)
            return None
        if kind == "type":
            return self._add_type_alias(collector, node)
        name, body = field_of(node, "name"), field_of(node, "body")
        parameters = field_of(node, "parameters") if kind == "function" else None
        if name is None or body is None or (parameters is None and kind == "function"):
            return None
        start, end, name_start, name_end = start_of(node), end_of(node), start_of(name), end_of(name)
        body_start = start_of(body)
        text = collector.text
        draft = Draft(
            kind, text[name_start:name_end].decode("utf-8", "replace"), start, end, name_start, name_end,
            body_start, end_of(body), start, body_start,
        )  # fmt: skip
        head = text[start:body_start].rstrip()
        # The head ends with its colon, unless a comment stands between it and the body.
        head_end = start + len(head) - 1 if head.endswith(b":") else body_start
        draft.signature = collector.fold(start, head_end).removesuffix(":")
        if text[name_end : name_end + 1] == b"[":
            type_parameters = field_of(node, "type_parameters")
            if type_parameters is not None:
                self._add_type_parameters(collector, type_parameters)
        if kind == "class":
            given = field_of(node, "superclasses") if text[name_end : name_end + 1] != b":" else None
            values, keywords = ((), ()) if given is None else self.read_arguments(collector, given)[3:]
            written = () if given is None else children_of(given)
            named = (base for base in written if kind_of(base) not in ("keyword_argument", "comment"))
            draft.bases = tuple([collector.fold(start_of(base), end_of(base)) for base in named])
            collector.code.definitions[start] = ("class", (), None, values, keywords)
            for base in values:
                name = base.base if isinstance(base, Element) else base
                if isinstance(name, str):
                    collector.code.entries.append(Entry("heir", name.rpartition(".")[2], start))
            for word, value in keywords:
                if word == "metaclass" and isinstance(value, str):
                    collector.code.entries.append(Entry("instance", value.rpartition(".")[2], start))
        else:
            if text.startswith(b"async", start):
                draft.modifiers = ("async",)
            known = ()
            if parameters is not None and end_of(parameters) - start_of(parameters) > 2:
                known = self.on_parameters(collector, parameters)
            returned = self.value(collector, field_of(node, "return_type")) if b"->" in head else None
            collector.code.definitions[start] = ("function", known, returned, (), ())
        draft.doc = self.read_docstring(collector, body)
        collector.symbols.append(draft)
        return draft

    def on_parameters(self, collector: Collector, node: Node) -> tuple[Parameter, ...]:
        text, symbols = collector.text, collector.symbols
        parameters: list[Parameter] = []
        by_keyword = ""
        for child in children_of(node):
            start, end = start_of(child), end_of(child)
            found = _PARAMETER.match(text, start, end)
            if found is not None:
                name = found[1].decode("utf-8", "replace")
                is_bare = end - start == len(name)
                signature = name if is_bare else clip(text, start, end, VALUE_TEXT)
                symbols.append(
                    Draft("parameter", name, start, end, found.start(1), found.end(1), head=start, signature=signature)
                )
                if is_bare:
                    parameters.append(Parameter(name, by_keyword))
                    continue
                stars = text[start : found.start(1)].count(b"*")
                default = None if stars else field_of(child, "value")
                kind, value = self.value(collector, field_of(child, "type")), self.value(collector, default)
                parameters.append(Parameter(name, "*" * stars or by_keyword, kind, value, default is not None))
                if stars == 1:
                    by_keyword = "k"
            elif text[start] == _STAR:
                by_keyword = "k"
            elif text[start] == _SLASH:
                parameters = [msgspec.structs.replace(parameter, kind="/") for parameter in parameters]
        return tuple(parameters)

    def _add_lambda(self, collector: Collector, node: Node) -> None:
        written = field_of(node, "parameters")
        parameters = () if written is None else self.on_parameters(collector, written)
        body = field_of(node, "body")
        if body is None:
            return
        start, end, code = start_of(node), end_of(node), collector.code
        code.lambdas[start] = (end, start_of(body), parameters, self.value(collector, body))
        for number, parameter in enumerate(parameters):
            code.binds.append((start, start, parameter.name, ParameterOf(start, number), end))

    def _add_type_parameters(self, collector: Collector, node: Node) -> None:
        for child in children_of(node):
            inner: Node | None = child
            while inner is not None and kind_of(inner) != "identifier":
                inner = child_at(inner, 0)
            if inner is not None:
                start, end = start_of(child), end_of(child)
                collector.symbols.append(
                    Draft("type_parameter", collector.write(inner), start, end, start_of(inner), end_of(inner),
                          signature=collector.fold(start, end))
                )  # fmt: skip

    def _add_type_alias(self, collector: Collector, node: Node) -> Draft | None:
        name = field_of(node, "left")
        while name is not None and kind_of(name) != "identifier":
            for child in children_of(name):
                if kind_of(child) == "type_parameter":  # type P[T] = …
                    self._add_type_parameters(collector, child)
            name = child_at(name, 0)
        if name is None:
            return None
        start, end = start_of(node), end_of(node)
        draft = Draft("type", collector.write(name), start, end, start_of(name), end_of(name),
                      signature=collector.excerpt(node, VALUE_TEXT))  # fmt: skip
        collector.symbols.append(draft)
        right = field_of(node, "right")
        value = None if right is None else self.value(collector, child_at(right, 0))
        collector.code.binds.append((end, start, draft.name, value, -1))
        return draft

    def read_docstring(self, collector: Collector, body: Node) -> str:
        text = collector.text
        if not text.startswith(_STRING_STARTS, start_of(body)):  # a body that is not written yet begins with the end
            return ""
        first = child_at(body, 0)
        if first is not None and kind_of(first) == "comment":
            first = next((child for child in children_of(body) if kind_of(child) != "comment"), None)
        if first is None or kind_of(first) != "expression_statement":
            return ""
        string = child_at(first, 0)
        if string is None or kind_of(string) not in ("string", "concatenated_string"):
            return ""
        if _PLAIN_STRING.match(text, start_of(string)):
            collector.docs.append((start_of(string), end_of(string)))
        return _clean_docstring(collector.write(string))

    def on_root(self, collector: Collector, root: Node) -> None:
        """A module's own docstring is nobody's; only where it lies is kept."""
        if kind_of(root) == "module" and child_count_of(root):
            self.read_docstring(collector, root)

    def each_forward(self, collector: Collector, kind: str, nodes: list[Node]) -> None:
        """`x: "list[Node]"`: an annotation that is written as a string is code."""
        for node in nodes:
            raw = collector.text[start_of(node) : end_of(node)]
            if _FORWARD.fullmatch(raw) and not _is_text(collector, node):
                collector.opaque.append((start_of(node) + 1, 1 - end_of(node), True))


def _clean_docstring(literal: str) -> str:
    """The text of a string literal as people read it: quotes off, common indent off. Escapes stay as written."""
    body = literal.lstrip("rRuUbBfF")
    for quote in ('"""', "'''", '"', "'"):
        if body.startswith(quote):
            body = body[len(quote) :].removesuffix(quote)
            break
    lines = body.expandtabs().splitlines()
    if not lines:
        return ""
    margin = min((len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()), default=0)
    return "\n".join([lines[0].strip(), *(line[margin:].rstrip() for line in lines[1:])]).strip("\n").rstrip()


def _is_text(collector: Collector, string: Node) -> bool:
    """Whether a string in an annotation names no type: `Literal["open"]`, and what follows the type in
    `Annotated[int, "metres"]`."""
    inner = string
    for outer in collector.ancestors.above(string):
        if kind_of(outer) not in ("type", "binary_operator", "type_parameter", "generic_type"):
            break
        if kind_of(outer) == "generic_type" and (name := child_at(outer, 0)) is not None and inner != name:
            word = (text_of(name) or b"").rpartition(b".")[2]
            first = child_at(inner, 0)
            if word == b"Literal" or (word == b"Annotated" and (first is None or end_of(first) < end_of(string))):
                return True
        inner = outer
    return False
