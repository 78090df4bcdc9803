"""The values of constant expressions, as members of enums have them."""

from __future__ import annotations

from collections.abc import Mapping

from cq.syntax.tree import Node, child_at, child_count_of, children_of, end_of, field_of, kind_of, start_of

MAX_DEPTH = 50
Constant = float | str | None


def evaluate(text: bytes, node: Node, known: Mapping[str, Constant], depth: int = 0) -> Constant:
    """None where it is not constant, or nobody knows. `known` are the members above."""
    written = text[start_of(node) : end_of(node)].decode("utf-8", "replace")
    if depth > MAX_DEPTH:
        return None
    match kind_of(node):
        case "number":
            return _read_number(written)
        case "string":
            return written[1:-1] if "\\" not in written else None
        case "template_string" if not child_count_of(node) or all(
            kind_of(child) == "string_fragment" for child in children_of(node)
        ):
            return written[1:-1] if "\\" not in written else None
        case "identifier":
            return known.get(written)
        case "member_expression":
            inner = field_of(node, "property")
            return None if inner is None else known.get(written.rpartition(".")[2])
        case "parenthesized_expression":
            inner = child_at(node, 0)
            return None if inner is None else evaluate(text, inner, known, depth + 1)
        case "unary_expression":
            inner = field_of(node, "argument")
            value = None if inner is None else evaluate(text, inner, known, depth + 1)
            sign = written[:1]
            if not isinstance(value, (int, float)):
                return None
            return {"-": -value, "+": value, "~": float(~_to_int(value))}.get(sign)
        case "binary_expression":
            sides = [field_of(node, side) for side in ("left", "right")]
            left, right = (None if side is None else evaluate(text, side, known, depth + 1) for side in sides)
            operator = field_of(node, "operator")
            sign = "" if operator is None else kind_of(operator)
            if isinstance(left, str) or isinstance(right, str):
                if sign != "+" or left is None or right is None:
                    return None
                return f"{_write(left)}{_write(right)}"
            return None if left is None or right is None else _operate(sign, left, right)
        case _:
            return None


def write_value(value: float | str) -> str:
    """As it would stand in the source."""
    return f'"{value}"' if isinstance(value, str) else _write(value)


def _write(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return str(int(value)) if value == int(value) else repr(value)


def _read_number(written: str) -> Constant:
    plain = written.replace("_", "").lower()
    try:
        return float(int(plain, 0)) if plain[:2] in ("0x", "0o", "0b") else float(plain)
    except (ValueError, OverflowError):
        return None


def _to_int(value: float) -> int:
    """As JavaScript makes 32 bits of a number."""
    whole = int(value) & 0xFFFFFFFF
    return whole - (1 << 32) if whole >= 1 << 31 else whole


def _operate(sign: str, left: float, right: float) -> Constant:
    first, second = _to_int(left), _to_int(right)
    try:
        found = {
            "+": lambda: left + right, "-": lambda: left - right, "*": lambda: left * right,
            "/": lambda: left / right, "%": lambda: left % right,
            "|": lambda: first | second, "&": lambda: first & second, "^": lambda: first ^ second,
            "<<": lambda: _to_int(first << (second & 31)), ">>": lambda: first >> (second & 31),
            ">>>": lambda: (first & 0xFFFFFFFF) >> (second & 31),
            "**": lambda: left**right if abs(right) < 64 else None,
        }.get(sign, lambda: None)()  # fmt: skip
    except (ZeroDivisionError, OverflowError):
        return None
    return float(found) if isinstance(found, (int, float)) else None
