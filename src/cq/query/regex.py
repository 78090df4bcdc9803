"""Whether a regular expression is one, and cannot take forever: it may come with a stranger's repository."""

from __future__ import annotations

import re

_MAX_LENGTH = 500
_TOKEN = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?:\?(?:P<\w+>|[:=!#>]|<[=!]|[a-zA-Z-]+[:)]?))?|\)|\||[*+?]|\{\d*,?\d*\}|.",
    re.DOTALL,
)


def find_fault(pattern: str) -> str:
    """Why a pattern cannot be taken, "" when it can."""
    if len(pattern) > _MAX_LENGTH:
        return f"the regular expression has more than {_MAX_LENGTH} characters"
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"not a regular expression: {error}"
    if _repeats_a_choice(pattern):
        # `(a+)+$` needs 2^n steps on n letters that do not match.
        return "a repeat of something that itself repeats or branches can take forever"
    return ""


def _repeats_a_choice(pattern: str) -> bool:
    groups: list[bool] = [False]  # whether the open group holds a repeat or a branch
    closed = False  # whether what stands before is a group that does
    for token in _TOKEN.findall(pattern):
        unbounded = token in ("*", "+") or (token[0] == "{" and token.endswith(",}"))
        if unbounded and closed:
            return True
        closed = False
        if token[0] == "(" and not token.endswith(")"):
            groups.append(False)
        elif token == ")" and len(groups) > 1:
            closed = groups.pop()
            groups[-1] |= closed
        elif unbounded or token == "|":
            groups[-1] = True
    return False
