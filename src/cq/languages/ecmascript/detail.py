"""TypeScript and JavaScript read in detail, for those who follow values along the statements of a function: what joins
conditions and choices, where code leaves its block, whole texts. The index keeps none of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from cq.languages.ecmascript.facts import EcmaScript, JavaScript, TypeScript
from cq.model.code import (
    NULL,
    Boolean,
    Choice,
    Constant,
    Integer,
    Joined,
    Listing,
    Name,
    Operated,
    Text,
    Value,
)
from cq.syntax.code import MAX_NESTED
from cq.syntax.tree import (
    Captures,
    Node,
    child_at,
    children_of,
    end_of,
    field_of,
    kind_of,
    start_of,
)

if TYPE_CHECKING:
    from cq.syntax.code import CodeDraft
    from cq.syntax.collect import Collector

MAX_TEXT = 4000  # bytes of a text whose characters are kept
_EXITS = """
(break_statement) @flow.break
(continue_statement) @flow.continue
(augmented_assignment_expression) @flow.augment
(update_expression) @flow.update
"""
_ATTRIBUTES = "(jsx_attribute) @flow.attribute\n"
_ESCAPED = re.compile(r"\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(\r\n|[\s\S]))")
_SHORT = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": "", "\r\n": ""}
_OPERATORS = {"||": "or", "||=": "or", "&&": "and", "&&=": "and", "??": "??", "??=": "??"}


class Detail(EcmaScript):
    is_detailed = True

    @cached_property
    def query_source(self) -> str:
        has_pages = self.grammar.find_kind("jsx_attribute") is not None
        return f"{super().query_source}{_EXITS}{_ATTRIBUTES if has_pages else ''}"

    # -- statements ------------------------------------------------------------------------------

    def on_flow(self, collector: Collector, kind: str, node: Node, captures: Captures) -> None:
        exits, start, end = collector.code.exits, start_of(node), end_of(node)
        match kind:
            case "break" | "continue":
                exits.append((start, end, kind, None))
                return
            case "augment":
                self._augment(collector, node)
                return
            case "update":
                self._assign(collector, start, end, field_of(node, "argument") or node, None)
                return
            case "attribute":
                self._read_attribute(collector, node)
                return
            case "assign" if kind_of(node) == "augmented_assignment_expression":
                return
            case "return":
                value = child_at(node, 0)
                given = NULL if value is None or kind_of(value) == "comment" else self.value(collector, value)
                exits.append((start, end, "return", given))
            case _:
                pass
        super().on_flow(collector, kind, node, captures)

    def _augment(self, collector: Collector, node: Node) -> None:
        """`a += b` as `a = a + b`."""
        target, right = field_of(node, "left"), field_of(node, "right")
        if target is not None and right is not None:
            self._assign(collector, start_of(node), end_of(node), target, self.value(collector, node))

    def _read_attribute(self, collector: Collector, node: Node) -> None:
        """`<p title={value}>` as a store to the element."""
        name, value = child_at(node, 0), child_at(node, 1)
        if name is None or value is None or kind_of(value) != "jsx_expression":
            return
        given = self.value(collector, child_at(value, 0))
        collector.code.stores.append((start_of(node), Name("JSX"), collector.write(name), given, None, end_of(node)))

    def _read_loop(self, collector: Collector, node: Node) -> None:
        binds = collector.code.binds
        known = len(binds)
        super()._read_loop(collector, node)
        # Inside the loop that begins with them.
        binds[known:] = [(bind[0] + 1, *bind[1:]) for bind in binds[known:]]

    def each_branch(self, collector: Collector, kind: str, nodes: list[Node]) -> None:
        code = collector.code
        for node in nodes:
            start = start_of(node)
            match kind:
                case "if":
                    condition = self.condition(collector, field_of(node, "condition"))
                    code.add_branch("if", field_of(node, "consequence"), condition, start)
                    clause = field_of(node, "alternative")
                    other = None if clause is None else child_at(clause, -1)
                    code.add_branch("if", other, Operated("not", condition, None), start)
                case "loop":
                    self._add_loop(collector, node)
                case "try":
                    super().each_branch(collector, kind, [node])
                case _:
                    self._add_switch(collector, node)

    def _add_loop(self, collector: Collector, node: Node) -> None:
        """What runs more than once: not what a `for` begins with. The body of a `do` runs before anything is asked."""
        body, asked = field_of(node, "body"), field_of(node, "condition")
        condition = None if kind_of(node) == "do_statement" else self.condition(collector, asked)
        first = body if asked is None or kind_of(node) == "do_statement" else asked
        if first is not None:
            collector.code.branches.append((start_of(first), end_of(node), "loop", condition, -1, False))

    def _add_switch(self, collector: Collector, node: Node) -> None:
        subject, body = self.value(collector, field_of(node, "value")), field_of(node, "body")
        cases = [] if body is None else [case for case in children_of(body) if kind_of(case).startswith("switch_")]
        waiting: list[Value] = []
        for number, case in enumerate(cases):
            value = field_of(case, "value")
            pattern: Value = Name("_") if kind_of(case) == "switch_default" else self.value(collector, value)
            statements = [child for child in children_of(case) if child != value and kind_of(child) != "comment"]
            if not statements and number + 1 < len(cases):
                waiting.append(pattern)
                continue
            is_default = Name("_") in (*waiting, pattern)
            if is_default:
                # What stands behind it is asked first.
                pattern = Name("_") if number + 1 == len(cases) else None
            elif waiting:
                pattern = Listing("set", (*waiting, pattern))
            waiting = []
            collector.code.add_branch("case", case, Operated("case", subject, pattern), start_of(node))

    def finish(self, collector: Collector) -> None:
        _drop_breaks(collector.code)
        super().finish(collector)

    # -- values ------------------------------------------------------------------------------------

    def value(self, collector: Collector, node: Node | None, depth: int = 0) -> Value:
        walk = None if node is None else _DETAILED.get(kind_of(node))
        if walk is None or node is None:
            return super().value(collector, node, depth)
        return None if depth > MAX_NESTED else walk(self, collector, node, depth + 1)

    def _truth(self, collector: Collector, node: Node, depth: int) -> Value:
        return Boolean(kind_of(node) == "true")

    def _string(self, collector: Collector, node: Node, depth: int) -> Value:
        raw = collector.text[start_of(node) + 1 : end_of(node) - 1]
        return Constant("str") if len(raw) > MAX_TEXT else Text(_unescape(raw.decode("utf-8", "replace")))

    def _pattern(self, collector: Collector, node: Node, depth: int) -> Value:
        """The text of a regular expression."""
        inner = field_of(node, "pattern")
        return Text(collector.write(inner)) if inner is not None and end_of(node) - start_of(node) < MAX_TEXT else None

    def _template(self, collector: Collector, node: Node, depth: int) -> Value:
        parts: list[Value] = []
        at = start_of(node) + 1
        for child in children_of(node):
            if kind_of(child) != "template_substitution":
                continue
            if start_of(child) > at:
                parts.append(self._write(collector, at, start_of(child)))
            parts.append(self.value(collector, child_at(child, 0), depth))
            at = end_of(child)
        if end_of(node) - 1 > at or not parts:
            parts.append(self._write(collector, at, end_of(node) - 1))
        return parts[0] if len(parts) == 1 and isinstance(parts[0], Text) else Joined(tuple(parts))

    def _write(self, collector: Collector, start: int, end: int) -> Value:
        text = collector.text[start:end]
        return Constant("str") if len(text) > MAX_TEXT else Text(_unescape(text.decode("utf-8", "replace")))

    def _operation(self, collector: Collector, node: Node, depth: int) -> Value:
        left, operator, right = (field_of(node, name) for name in ("left", "operator", "right"))
        if left is None or operator is None or right is None:
            return None
        sign = kind_of(operator)
        if kind_of(node) != "binary_expression" and sign not in _OPERATORS:
            sign = sign.removesuffix("=")
        first, second = self.value(collector, left, depth), self.value(collector, right, depth)
        return Operated(_OPERATORS.get(sign, sign), first, second)

    def _single(self, collector: Collector, node: Node, depth: int) -> Value:
        operator, argument = field_of(node, "operator"), field_of(node, "argument")
        if operator is None or argument is None:
            return None
        value = self.value(collector, argument, depth)
        match kind_of(operator):
            case "!":
                return Operated("not", value, None)
            case "-" if isinstance(value, Integer):
                return Integer(-value.value)
            case "void":
                return NULL
            case sign:
                return Operated(sign, value, None)

    def _choose(self, collector: Collector, node: Node, depth: int) -> Value:
        asked, first, second = (field_of(node, name) for name in ("condition", "consequence", "alternative"))
        options = (self.value(collector, first, depth), self.value(collector, second, depth))
        return Choice(options, self.condition(collector, asked))

    def _page(self, collector: Collector, node: Node, depth: int) -> Value:
        """An element of a page escapes what it shows."""
        return Constant("str")


class DetailedTypeScript(Detail, TypeScript):
    pass


class DetailedJavaScript(Detail, JavaScript):
    pass


def _unescape(text: str) -> str:
    return _ESCAPED.sub(_replace, text) if "\\" in text else text


def _replace(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if code is not None:
        return chr(int(code, 16)) if int(code, 16) < 0x110000 else ""
    return _SHORT.get(match[4], match[4])


def _drop_breaks(code: CodeDraft) -> None:
    """`break` leaves the innermost loop or `switch`; behind a case nothing of its `switch` runs anyway."""
    places = [(start, end, kind) for start, end, kind, *_ in code.branches if kind in ("loop", "case")]
    marks = sorted([*((start, -end, kind) for start, end, kind in places), *((e[0], 1, e[2]) for e in code.exits)])
    open_: list[tuple[int, str]] = []
    dropped: set[int] = set()
    for start, end, kind in marks:
        while open_ and open_[-1][0] <= start:
            open_.pop()
        if end < 0:
            open_.append((-end, kind))
        elif kind == "break" and open_ and open_[-1][1] == "case":
            dropped.add(start)
    code.exits = [leave for leave in code.exits if leave[0] not in dropped or leave[2] != "break"]


Walk = Callable[[Detail, "Collector", Node, int], Value]
_DETAILED: dict[str, Walk] = {
    **dict.fromkeys(("true", "false"), Detail._truth),
    "string": Detail._string,
    "regex": Detail._pattern,
    "template_string": Detail._template,
    "binary_expression": Detail._operation,
    "augmented_assignment_expression": Detail._operation,
    "unary_expression": Detail._single,
    "ternary_expression": Detail._choose,
    **dict.fromkeys(("jsx_element", "jsx_self_closing_element", "jsx_fragment"), Detail._page),
}
