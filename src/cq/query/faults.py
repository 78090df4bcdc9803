"""Everything that is wrong with a query, said at once: the place under a caret, what was expected, one example."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from cq.model.errors import QueryError

EXAMPLE = "entity=function name=~^get_ in=src/ has='await $X'"
_SHOWN = 100  # columns of the query beside a caret


class Fault(NamedTuple):
    start: int
    end: int
    message: str
    hint: str = ""
    example: str = ""


def fail(text: str, faults: Sequence[Fault], *, where: str = "") -> QueryError:
    """One error for all of them, in the order of the text."""
    ordered = sorted(dict.fromkeys(faults), key=lambda fault: (fault.start, fault.end, fault.message))
    first = ordered[0]
    count = len(ordered)
    message = first.message if count == 1 else f"{count} problems in the query"
    details: list[str] = []
    for fault in ordered[:20]:
        line, caret = show_place(text, fault)
        details += [f"  {line}", f"  {caret} {fault.message}" + (f" ({fault.hint})" if fault.hint else "")]
    if count > 20:
        details.append(f"  and {count - 20} more")
    details.append(f'  for example: cq q "{_double(first.example or EXAMPLE)}"')
    return QueryError(where + message, hint=first.hint if count == 1 else "", details=tuple(details))


def did_you_mean(word: str, known: Iterable[str]) -> str:
    folded: dict[str, str] = {}
    for name in known:
        folded.setdefault(name.lower(), name)
    close = get_close_matches(word.lower(), folded, n=1)
    return f"did you mean {folded[close[0]]!r}?" if close else ""


def show_place(text: str, fault: Fault) -> tuple[str, str]:
    """The line of the text that a fault is in, and a caret below it."""
    begin = text.rfind("\n", 0, fault.start) + 1
    end = text.find("\n", begin)
    line = text[begin : len(text) if end < 0 else end]
    column = fault.start - begin
    shift = max(0, column - _SHOWN // 2)
    width = max(1, min(fault.end - fault.start, len(line) - column, _SHOWN // 2))
    return line[shift : shift + _SHOWN].replace("\t", " "), " " * (column - shift) + "^" * width


def _double(example: str) -> str:
    return example.replace('"', "'").replace("$", "\\$")
