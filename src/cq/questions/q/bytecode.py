"""What a Python function touches when it runs, read off its compiled code. Compiled, never executed."""

from __future__ import annotations

import dis
import warnings
from types import CodeType
from typing import NamedTuple

from cq.model.facts import Symbol
from cq.questions.q.documents import Document

_INLINE = frozenset({"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>", "<lambda>"})
_GLOBAL = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL", "DELETE_GLOBAL"})
_ATTRIBUTE = frozenset({"LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR", "LOAD_SUPER_ATTR"})
_NAMED = _GLOBAL | _ATTRIBUTE | {"LOAD_FAST", "LOAD_DEREF", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_CLASSDEREF"}
MAX_NAMES = 200


class Surface(NamedTuple):
    globals: tuple[str, ...]
    attributes: tuple[str, ...]
    calls: tuple[str, ...]
    constants: tuple[str, ...]


class NotCompiled(Exception):
    """A file that this Python cannot compile, and why."""


def compile_document(document: Document) -> list[CodeType]:
    """Every code object of the file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            top = compile(document.source, document.file.path, "exec", dont_inherit=True, optimize=0)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise NotCompiled(f"this Python cannot compile it: {type(error).__name__}: {error}") from None
    found: list[CodeType] = []
    todo = [top]
    while todo:
        code = todo.pop()
        found.append(code)
        todo += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return found


def find_surface(document: Document, symbol: Symbol, codes: list[CodeType]) -> Surface | None:
    first, last = document.line_of(symbol.start), document.line_of(symbol.head)
    for code in codes:
        if code.co_name in (symbol.name, "<lambda>") and first <= code.co_firstlineno <= last:
            return _read_code(code, document.source.splitlines())
    return None


def _read_code(code: CodeType, lines: list[str]) -> Surface:
    names: dict[str, set[str]] = {"globals": set(), "attributes": set(), "calls": set(), "constants": set()}
    todo = [code]
    while todo:
        current = todo.pop()
        todo += [inner for inner in current.co_consts if isinstance(inner, CodeType) and inner.co_name in _INLINE]
        names["constants"] |= {
            repr(value)[:80] for value in current.co_consts if isinstance(value, (str, bytes, int, float))
        }
        starts: dict[tuple[int, int], tuple[int, int]] = {}  # where a name begins -> how far it goes
        for instruction in dis.get_instructions(current):
            if instruction.opname in _GLOBAL:
                names["globals"].add(str(instruction.argval))
            elif instruction.opname in _ATTRIBUTE:
                names["attributes"].add(str(instruction.argval))
            place = instruction.positions
            if (
                place is None
                or place.lineno is None
                or place.end_lineno is None
                or place.col_offset is None
                or place.end_col_offset is None
            ):
                continue
            start, end = (place.lineno, place.col_offset), (place.end_lineno, place.end_col_offset)
            if instruction.opname in _NAMED:
                starts[start] = max(end, starts.get(start, end))
            elif instruction.opname.startswith("CALL") and start in starts and place.lineno <= len(lines):
                # The callee is the name that begins where the call does.
                (row, column), (last_row, last_column) = start, starts[start]
                if row == last_row:
                    names["calls"].add(lines[row - 1].encode()[column:last_column].decode("utf-8", "replace"))
    return Surface(
        *(tuple(sorted(names[kind])[:MAX_NAMES]) for kind in ("globals", "attributes", "calls", "constants"))
    )
