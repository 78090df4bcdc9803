"""Python's bytecode as a provider: what the compiled code does with names. Compiles; never runs what it compiled."""

from __future__ import annotations

import dis
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from types import CodeType
from typing import Any

from cq.model.provider import Code, Operation, Protected, Reply
from cq.providers.answers import Target
from cq.providers.programs import Detection
from cq.providers.registry import Provider, Site
from cq.providers.session import Budget
from cq.providers.symtables import answer, detect

# The instruction → what it does, over the versions of Python: `LOAD_METHOD` is 3.11, `CALL_KW` 3.13.
_KINDS = {
    "LOAD_GLOBAL": "load_global", "LOAD_NAME": "load_name", "LOAD_DEREF": "load_closure",
    "LOAD_CLASSDEREF": "load_closure", "LOAD_FROM_DICT_OR_DEREF": "load_closure",
    "LOAD_FROM_DICT_OR_GLOBALS": "load_name",
    "STORE_GLOBAL": "store_global", "STORE_NAME": "store_name", "STORE_DEREF": "store_closure",
    "DELETE_GLOBAL": "delete_global", "DELETE_NAME": "delete_name",
    "LOAD_ATTR": "attribute", "LOAD_METHOD": "attribute", "LOAD_SUPER_ATTR": "attribute",
    "STORE_ATTR": "store_attribute", "DELETE_ATTR": "delete_attribute",
    "IMPORT_NAME": "import", "IMPORT_FROM": "import_from",
    "CALL": "call", "CALL_KW": "call", "CALL_FUNCTION_EX": "call",
    "RAISE_VARARGS": "raise", "YIELD_VALUE": "yield", "GET_AWAITABLE": "await",
}  # fmt: skip

_LONG = 80  # characters of a constant that are shown


def run(site: Site, detection: Detection, plane: str, targets: Sequence[Target], budget: Budget) -> list[Reply[Any]]:
    del site, detection, budget
    return [answer("bytecode", plane, target, find_codes) for target in targets]


def find_codes(target: Target) -> tuple[Code, ...]:
    """Every code object in the order of the source, outer before inner."""
    module = compile(target.document.text.decode(), "<cq>", "exec", dont_inherit=True, optimize=0)
    found: list[Code] = []
    waiting = [module]
    while waiting:
        code = waiting.pop()
        name = "" if code is module else code.co_name
        qualified = "" if code is module else code.co_qualname
        found.append(
            Code(
                name,
                qualified,
                code.co_firstlineno,
                tuple(_find_operations(code, target)),
                code.co_varnames,
                code.co_cellvars,
                code.co_freevars,
                tuple(_find_constants(code)),
                tuple(_find_protected(code)),
            )
        )
        inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        waiting += reversed(inner)
    return tuple(found)


def _find_operations(code: CodeType, target: Target) -> Iterator[Operation]:
    document = target.document
    for instruction in dis.get_instructions(code):
        kind = _KINDS.get(instruction.opname)
        if kind is None:
            continue
        value = instruction.argval
        argument = "" if value is None or kind in ("raise", "yield", "await") else str(value)
        spot = instruction.positions
        start = end = -1
        # Lines are from 1 and columns are bytes of UTF-8; code the compiler made up has none.
        if spot and spot.lineno and spot.end_lineno and spot.col_offset is not None and spot.end_col_offset is not None:
            starts = document.table.starts
            if spot.end_lineno <= len(starts):
                start = document.outer(starts[spot.lineno - 1] + spot.col_offset)
                end = document.outer(starts[spot.end_lineno - 1] + spot.end_col_offset, end=True)
        yield Operation(kind, argument, start, end)


def _find_constants(code: CodeType) -> Iterator[str]:
    for value in code.co_consts:
        if isinstance(value, str | bytes | int | float | complex) and not isinstance(value, bool):
            yield repr(value if not isinstance(value, str | bytes) else value[:_LONG])


def _find_protected(code: CodeType) -> Iterator[Protected]:
    """The exception table: numbers of six bits a byte, the largest first, in units of an instruction."""
    spans = list(code.co_lines())

    def line_at(offset: int, step: int) -> int:
        """Instructions that the compiler adds have no line: that of the next one with a line in the direction."""
        at = bisect_right(spans, offset, key=lambda span: span[0]) - 1
        while 0 <= at < len(spans):
            line = spans[at][2]
            if line is not None:
                return line
            at += step
        return code.co_firstlineno

    numbers: list[int] = []
    value, fresh = 0, True
    for byte in code.co_exceptiontable:
        value = (0 if fresh else value << 6) | (byte & 63)
        fresh = not byte & 64
        if fresh:
            numbers.append(value)
    for start, length, target, depth in zip(*(iter(numbers),) * 4, strict=False):
        inside = {line_at(start * 2, 1), line_at((start + length) * 2 - 1, -1)}
        yield Protected(min(inside), max(inside), line_at(target * 2, 1), depth >> 1)


PROVIDER = Provider("bytecode", "bytecode (Python)", 50, ("python",), ("bytecode",), "dis", detect, run)
