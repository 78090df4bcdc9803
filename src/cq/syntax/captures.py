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


def find_captures(symbols: Sequence[Symbol], references: References, text: bytes, *, items: bool = False) -> Captures:
    """Every use of a name is given to the nearest function around it that defines it. With `items`, as in Rust, `fn`,
    `const` and `static` inside a function are no variables of it, and a `fn` does not see the variables around it."""
    defined: dict[tuple[int, str], int] = {}
    for symbol in symbols:
        if symbol.kind_group in ("value", "function") and symbol.kind not in ("field", "property", "enum_member"):
            defined.setdefault((symbol.parent, symbol.name), symbol.name_start)
    fixed = {
        (symbol.parent, symbol.name) for symbol in symbols if items and symbol.parent >= 0 and _is_item(symbol, text)
    }
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
        closed = False
        for depth, number in enumerate(chain):
            if (number, name) not in defined or (closed and (number, name) not in fixed):
                closed |= items and is_function(symbols[number]) and _is_item(symbols[number], text)
                continue
            if (number, name) in fixed:
                break
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


def _is_item(symbol: Symbol, text: bytes) -> bool:
    """`fn f() {}`, `const N: u8 = 1;`, not `let f = || 1`."""
    return not {b"fn", b"const", b"static"}.isdisjoint(text[symbol.head : symbol.name_start].split())


def is_function(symbol: Symbol) -> bool:
    """Whether it is a scope of its own: functions without a name are parts of others."""
    return KIND_GROUPS.get(symbol.kind) in ("function", "method") and symbol.kind not in ("macro", "lambda")
