"""Places that narrow what a name may be: tests of types, of discriminants and of null, calls that may be of a guard."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence

from cq.model.shape import Guard
from cq.syntax.excerpt import clip
from cq.syntax.tree import Node, child_at, children_of, end_of, field_of, kind_of, start_of

MAX_TEXT = 80
MAX_PARTS = 50  # of a logical expression
_EQUAL = frozenset({"===", "!==", "==", "!="})
_UNEQUAL = frozenset({"!==", "!="})
_LOGICAL = frozenset({"&&", "||"})
_LITERALS = frozenset({"string", "number", "true", "false"})
_SUBJECTS = frozenset({"identifier", "member_expression", "this", "subscript_expression"})
_KEYS = frozenset({"string", "private_property_identifier"})
_AROUND = frozenset({"parenthesized_expression", "non_null_expression", "as_expression", "satisfies_expression"})
_LEAVING = frozenset({"return_statement", "throw_statement", "continue_statement", "break_statement"})
_COUNTED = frozenset({"length", "size"})  # numbers that no union is told apart by


class GuardReader:
    def __init__(self, text: bytes, found: Mapping[str, Sequence[Node]]) -> None:
        self._text, self._found = text, found
        logical = (node for node in found.get("test", ()) if self._sign(node) in _LOGICAL)
        self._starts, self._ends = _merge((*found.get("condition", ()), *logical))

    def read(self) -> list[Guard]:
        """In no order; what a function declares itself to be is not among them."""
        guards: list[Guard] = []
        inside: list[int] = [-1]  # where the last logical expression ends that was looked at as a whole
        for node in self._found.get("test", ()):
            if self._sign(node) not in _LOGICAL:
                guards += self._read_test(node)
            elif start_of(node) >= inside[-1]:
                inside[-1] = end_of(node)
                guards += self._read_compound(node)
        for node in self._found.get("switch", ()):
            guards += self._read_switch(node)
        for node in self._found.get("if", ()):
            guards += self._read_early(node)
        for node in self._found.get("call", ()):
            guards += self._read_call(node)
        for node in (*self._found.get("value", ()), *self._found.get("satisfies", ())):
            guards += self._read_exhaustive(node)
        return guards

    def _read_test(self, node: Node, *, alone: bool = True) -> Iterator[Guard]:
        """Of two sides. Those that compare values narrow only where something depends on them."""
        sides = [field_of(node, name) for name in ("left", "right")]
        left, right = (_unwrap(side) if side is not None else None for side in sides)
        sign = self._sign(node)
        if left is None or right is None:
            return
        first, last = start_of(node), end_of(node)
        if sign == "instanceof":
            yield Guard("instanceof", first, last, self._write(left), self._write(right))
        elif sign == "in" and (kind_of(left) in _KEYS or (kind_of(left) == "identifier" and self._is_condition(first))):
            yield Guard("in", first, last, self._write(right), self._write(left))
        if sign not in _EQUAL:
            return
        if self._is_value(left) or (self._operand_of_typeof(right) and not self._operand_of_typeof(left)):
            left, right = right, left
        denied = "not " if sign in _UNEQUAL else ""
        operand = self._operand_of_typeof(left)
        if operand is not None:
            if kind_of(right) == "string":
                yield Guard("typeof", first, last, self._write(operand), denied + self._write(right).strip("\"'"))
        elif (alone and not self._is_condition(first)) or kind_of(left) not in _SUBJECTS:
            return
        elif self._is_nothing(right):
            both = "null or undefined" if len(sign) == 2 else self._write(right)
            yield Guard("nullish", first, last, self._write(left), denied + both)
        elif kind_of(right) in _LITERALS and kind_of(left) == "member_expression":
            key, holder = field_of(left, "property"), field_of(left, "object")
            if key is not None and holder is not None and self._write(key) not in _COUNTED:
                narrowed = f"{denied}{self._write(key)}: {self._write(right)}"
                yield Guard("discriminant", first, last, self._write(holder), narrowed)
        elif kind_of(right) in (_LITERALS | _SUBJECTS):
            yield Guard("equality", first, last, self._write(left), denied + self._write(right))

    def _read_compound(self, node: Node) -> Iterator[Guard]:
        """`typeof a === "string" || typeof a === "number"`: two guards or more, of one expression."""
        sign, parts = self._sign(node), self._split(node)
        found: list[Guard] = []
        for part in parts:
            found += self._read_part(part)
        if len(found) > 1:
            subjects = dict.fromkeys(guard.subject for guard in found)
            narrowed = f" {'|' if sign == '||' else '&'} ".join(
                dict.fromkeys(g.narrowed_to for g in found if g.narrowed_to)
            )
            yield Guard("compound", start_of(node), end_of(node), ", ".join(subjects), narrowed)

    def _split(self, node: Node) -> list[Node]:
        """What `&&` and `||` join, whatever their order."""
        todo, parts = [node], list[Node]()
        while todo and len(parts) < MAX_PARTS:
            each = _unwrap(todo.pop())
            if kind_of(each) == "binary_expression" and self._sign(each) in _LOGICAL:
                todo += [side for name in ("right", "left") if (side := field_of(each, name)) is not None]
            else:
                parts.append(each)
        return parts

    def _read_part(self, node: Node) -> Iterator[Guard]:
        node = _unwrap(node)
        while kind_of(node) == "unary_expression" and self._sign(node) == "!":
            node = _unwrap(field_of(node, "argument") or node)
        if kind_of(node) == "binary_expression":
            yield from self._read_test(node, alone=False)
        elif kind_of(node) == "call_expression":
            yield from self._read_call(node)

    def _read_switch(self, node: Node) -> Iterator[Guard]:
        value, body = field_of(node, "value"), field_of(node, "body")
        if value is None or body is None:
            return
        value = _unwrap(value)
        operand = self._operand_of_typeof(value)
        for case in children_of(body):
            tested = field_of(case, "value") if kind_of(case) == "switch_case" else None
            if tested is None or kind_of(_unwrap(tested)) not in _LITERALS:
                continue
            first, last, written = start_of(case), end_of(tested), self._write(tested)
            if operand is not None:
                yield Guard("typeof", first, last, self._write(operand), written.strip("\"'"))
            elif kind_of(value) == "member_expression":
                key, holder = field_of(value, "property"), field_of(value, "object")
                if key is not None and holder is not None and self._write(key) not in _COUNTED:
                    yield Guard("discriminant", first, last, self._write(holder), f"{self._write(key)}: {written}")
            elif kind_of(value) in _SUBJECTS:
                yield Guard("equality", first, last, self._write(value), written)

    def _read_early(self, node: Node) -> Iterator[Guard]:
        """`if (!user) return`: behind it the name is what the test denies."""
        condition, then = field_of(node, "condition"), field_of(node, "consequence")
        if condition is None or then is None or field_of(node, "alternative") is not None or not _leaves(then):
            return
        for part in self._split(condition):
            negative = self._read_negative(part)
            if negative is not None:
                subject, narrowed = negative
                yield Guard("early-return", start_of(node), end_of(condition), subject, narrowed)
                return

    def _read_negative(self, node: Node) -> tuple[str, str] | None:
        """What is tested, and what it is where the test fails; None for a test that denies nothing."""
        if kind_of(node) == "unary_expression" and self._sign(node) == "!":
            inner = _unwrap(field_of(node, "argument") or node)
            found = next(self._read_part(inner), None)
            if found is not None:
                return found.subject, found.narrowed_to
            return (self._write(inner), "truthy") if kind_of(inner) in _SUBJECTS else None
        if kind_of(node) != "binary_expression":
            return None
        guard = next(self._read_test(node, alone=False), None)
        if guard is None:
            return None
        denies = guard.narrowed_to.startswith("not ")
        if guard.kind == "nullish":
            return None if denies else (guard.subject, f"not {guard.narrowed_to}")
        return (guard.subject, guard.narrowed_to.removeprefix("not ")) if denies else None

    def _read_call(self, node: Node) -> Iterator[Guard]:
        callee, given = field_of(node, "function"), field_of(node, "arguments")
        if callee is None or given is None:
            return
        first, last = start_of(node), end_of(node)
        arguments = [_unwrap(each) for each in children_of(given) if kind_of(each) != "comment"]
        subject = self._write(arguments[0]) if arguments and kind_of(arguments[0]) in _SUBJECTS else ""
        name = field_of(callee, "property") if kind_of(callee) == "member_expression" else callee
        if self._write(callee) == "Array.isArray":
            if arguments:
                yield Guard("array", first, last, subject or self._write(arguments[0]), "array")
            return
        if name is None or kind_of(name) not in ("identifier", "property_identifier"):
            return
        is_statement = any(start_of(each) == first and end_of(each) == last for each in self._near_statements(first))
        if not is_statement and not self._is_condition(first):
            return
        holder = field_of(callee, "object") if not subject else None
        subject = subject or (self._write(holder) if holder is not None else "")
        if subject:
            yield Guard("call", first, last, subject, call=start_of(name))

    def _near_statements(self, start: int) -> list[Node]:
        nodes = self._found.get("statement", ())
        at = bisect_right(nodes, start, key=start_of)
        return [nodes[number] for number in range(at - 1, max(at - 3, -1), -1)]

    def _read_exhaustive(self, node: Node) -> Iterator[Guard]:
        """`const rest: never = shape` and `shape satisfies never`."""
        if kind_of(node) == "satisfies_expression":
            value, written = child_at(node, 0), child_at(node, 1)
        else:
            value, written = field_of(node, "value"), field_of(node, "type")
            written = None if written is None else child_at(written, 0)
        if value is not None and written is not None and self._write(written) == "never":
            yield Guard("exhaustive", start_of(node), end_of(node), self._write(value), "never")

    def _is_condition(self, place: int) -> bool:
        at = bisect_right(self._starts, place) - 1
        return at >= 0 and place < self._ends[at]

    def _operand_of_typeof(self, node: Node) -> Node | None:
        if kind_of(node) != "unary_expression" or self._sign(node) != "typeof":
            return None
        inner = field_of(node, "argument")
        return None if inner is None else _unwrap(inner)

    def _is_value(self, node: Node) -> bool:
        return kind_of(node) in _LITERALS or self._is_nothing(node)

    def _is_nothing(self, node: Node) -> bool:
        return kind_of(node) in ("null", "undefined") or self._write(node) in ("undefined", "void 0")

    def _sign(self, node: Node) -> str:
        sign = field_of(node, "operator")
        return "" if sign is None else kind_of(sign)

    def _write(self, node: Node) -> str:
        return clip(self._text, start_of(node), end_of(node), MAX_TEXT)


def _unwrap(node: Node) -> Node:
    while kind_of(node) in _AROUND and (inner := child_at(node, 0)) is not None:
        node = inner
    return node


def _leaves(node: Node) -> bool:
    """Whether a statement surely ends what it stands in."""
    if kind_of(node) == "statement_block":
        last = child_at(node, -1)
        return last is not None and kind_of(last) in _LEAVING
    return kind_of(node) in _LEAVING


def _merge(nodes: Iterable[Node]) -> tuple[list[int], list[int]]:
    """Disjoint spans that hold all of them."""
    starts: list[int] = []
    ends: list[int] = []
    for start, end in sorted((start_of(node), end_of(node)) for node in nodes):
        if ends and start < ends[-1]:
            ends[-1] = max(ends[-1], end)
        else:
            starts.append(start)
            ends.append(end)
    return starts, ends
