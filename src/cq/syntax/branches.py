"""Reads branches, in the same forms for every language: which code runs on a condition, and which is protected."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cq.model.code import Operated, Value
from cq.syntax.code import MAX_NESTED
from cq.syntax.tree import (
    Node,
    all_children_of,
    child_at,
    child_count_of,
    children_of,
    field_of,
    kind_of,
    start_of,
)

if TYPE_CHECKING:
    from cq.syntax.code import CodeDraft

_NOT = ("not", "!")
_JOINED = {"and": "and", "or": "or", "&&": "and", "||": "or"}
_COMPARED = frozenset({
    "==", "!=", "===", "!==", "<", ">", "<=", ">=", "in", "not in", "is", "is not", "instanceof",
})  # fmt: skip
_NOTHING = frozenset({"pass_statement", "comment", "empty_statement"})


def read_condition(node: Node, read: Callable[[Node, int], Value], depth: int = 0) -> Value:
    """What must be true; `read` reads an expression that is no condition of others, at its depth."""
    if depth > MAX_NESTED:
        return None
    parts = all_children_of(node)
    if kind_of(node) == "parenthesized_expression" and len(parts) == 3:
        return read_condition(parts[1], read, depth + 1)
    if len(parts) == 2 and kind_of(parts[0]) in _NOT:
        return Operated("not", read_condition(parts[1], read, depth + 1), None)
    sign = kind_of(parts[1]) if len(parts) == 3 else ""  # not `a < b < c`
    if sign in _JOINED:
        left, right = (read_condition(part, read, depth + 1) for part in parts[::2])
        return Operated(_JOINED[sign], left, right)
    return Operated(sign, *(read(part, depth + 1) for part in parts[::2])) if sign in _COMPARED else read(node, depth)


def add_if(code: CodeDraft, node: Node, condition: Value) -> None:
    """What runs where a condition holds, and where it does not; another `if` behind `else` says what it asks."""
    code.add_branch("if", field_of(node, "consequence"), condition)
    clause = field_of(node, "alternative")
    other = None if clause is None else child_at(clause, 0)
    if other is not None and kind_of(other) != kind_of(node):
        code.add_branch("if", other, Operated("not", condition, None))


def add_try(code: CodeDraft, node: Node, read_caught: Callable[[Node], Value]) -> None:
    """What a `try` protects, and each of its clauses; `read_caught` reads the class that a clause catches."""
    body = field_of(node, "body")
    tried = -1 if body is None else start_of(body)
    code.add_branch("try", body)
    for clause in children_of(node):
        if kind_of(clause) == "finally_clause":
            code.add_branch("finally", clause, tried=tried)
        elif kind_of(clause) in ("except_clause", "catch_clause"):
            kind = "except*" if any(kind_of(part) == "*" for part in all_children_of(clause)[:2]) else "except"
            block = child_at(clause, -1)
            is_empty = block is None or all(map(_is_nothing, children_of(block)))
            code.add_branch(kind, clause, read_caught(clause), tried, is_empty=is_empty)


def _is_nothing(node: Node) -> bool:
    """`pass`, `...`, a comment, a lone string."""
    if kind_of(node) == "expression_statement" and child_count_of(node) == 1:
        return kind_of(children_of(node)[0]) in ("ellipsis", "string")
    return kind_of(node) in _NOTHING
