"""What operations on constants give, where that is bounded and certain."""

from __future__ import annotations

from typing import TypeVar

from cq.risk.values import UNKNOWN, Constant, Unknown, Value

MAX_TEXT = 4000
MAX_NUMBER = 1 << 40
_Ordered = TypeVar("_Ordered", str, float)
_EQUAL = {"==", "===", "is", "case"}
_UNEQUAL = {"!=", "!==", "is not"}


def fold(operator: str, left: Value, right: Value, is_single: bool) -> Constant | Unknown:
    """UNKNOWN for what nobody can say."""
    one, other = left.const, right.const
    if isinstance(one, Unknown) or (not is_single and isinstance(other, Unknown)):
        return UNKNOWN
    try:
        return _fold(operator.removesuffix("x"), one, None if isinstance(other, Unknown) else other, is_single)
    except (TypeError, ValueError, ZeroDivisionError, OverflowError):
        return UNKNOWN


def _fold(operator: str, one: Constant, other: Constant, is_single: bool) -> Constant | Unknown:
    if is_single:
        return (not one) if operator in ("not", "!") else UNKNOWN
    if operator in _EQUAL:
        return one == other
    if operator in _UNEQUAL:
        return one != other
    if isinstance(one, str) and isinstance(other, str):
        match operator:
            case "+":
                return one + other if len(one) + len(other) < MAX_TEXT else UNKNOWN
            case "in":
                return one in other
            case "not in":
                return one not in other
            case _:
                return _compare(operator, one, other)
    if not (isinstance(one, (int, float)) and isinstance(other, (int, float))):
        return UNKNOWN
    if abs(one) > MAX_NUMBER or abs(other) > MAX_NUMBER:
        return UNKNOWN
    match operator:
        case "+":
            return one + other
        case "-":
            return one - other
        case "*":
            return one * other
        case "/":
            return one / other
        case "//":
            return one // other
        case "%":
            return one % other
        case _:
            return _compare(operator, one, other)


def _compare(operator: str, one: _Ordered, other: _Ordered) -> Constant | Unknown:
    match operator:
        case "<":
            return one < other
        case ">":
            return one > other
        case "<=":
            return one <= other
        case ">=":
            return one >= other
        case _:
            return UNKNOWN
