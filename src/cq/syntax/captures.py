"""Which functions use names of the functions around them, told from symbols and references alone: for languages whose
own compiler is not at hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cq.model.facts import KIND_GROUPS, References, Symbol


class Captures(NamedTuple):
    """By number of the function: `names` it takes from functions around it, `cells` of its own that functions inside it
    take, `tops` that it or what is inside it takes from the top of the document. `uses` are (name, where, the function
    that defines it, where that is)."""

    names: dict[int, set[str]]
    cells: dict[int, set[str]]
    tops: dict[int, set[str]]
    uses: list[tuple[str, int, int, int]]


def find_captures(symbols: Sequence[Symbol], references: References, text: bytes) -> Captures:
    """Every use of a name is given to the nearest function around it that defines it."""
    defined: dict[tuple[int, str], int] = {}
    for symbol in symbols:
        if symbol.kind_group in ("value", "function") and symbol.kind not in ("field", "property", "enum_member"):
            defined.setdefault((symbol.parent, symbol.name), symbol.name_start)
    top = {symbol.name for symbol in symbols if symbol.parent < 0}
    found = Captures({}, {}, {}, [])
    names = {name for _, name in defined} | top
    scopes = [(symbol.start, at) for at, symbol in enumerate(symbols) if symbol.body_start >= 0 or is_function(symbol)]
    stack: list[int] = []
    following = 0
    for name, at, _, role in references:
        while following < len(scopes) and scopes[following][0] <= at:
            number = scopes[following][1]
            while stack and symbols[stack[-1]].end <= symbols[number].start:
                stack.pop()
            stack.append(number)
            following += 1
        while stack and symbols[stack[-1]].end <= at:
            stack.pop()
        if name not in names or role in ("attribute", "keyword", "label", "import") or text[at - 1 : at] == b".":
            continue
        chain = [number for number in reversed(stack) if symbols[number].head <= at < symbols[number].end]
        # A local function is used by its name where it is defined, not captured by itself.
        functions = [n for n in chain if is_function(symbols[n]) and symbols[n].name_start != at]
        for depth, number in enumerate(chain):
            if (number, name) not in defined:
                continue
            if is_function(symbols[number]):
                inner = [inside for inside in functions if inside in chain[:depth]]
                for inside in inner:
                    found.names.setdefault(inside, set()).add(name)
                if inner:
                    found.cells.setdefault(number, set()).add(name)
                found.uses.append((name, at, number, defined[number, name]))
            break
        else:
            for number in functions if name in top else ():
                found.tops.setdefault(number, set()).add(name)
    return found


def is_function(symbol: Symbol) -> bool:
    """Whether it is a scope of its own: functions without a name are parts of others."""
    return KIND_GROUPS.get(symbol.kind) in ("function", "method") and symbol.kind not in ("macro", "lambda")
