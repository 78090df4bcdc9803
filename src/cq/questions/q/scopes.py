"""What a function takes from the functions around it: by `symtable` in Python, by our own facts elsewhere."""

from __future__ import annotations

import re
import symtable
import warnings
from functools import cached_property
from typing import NamedTuple

from cq.language import describe
from cq.model.facts import Symbol
from cq.questions.q.documents import Document
from cq.syntax.captures import Captures, find_captures, is_function


class Scope(NamedTuple):
    """`captures` are names of enclosing functions that it uses, `cells` its own that functions inside it use."""

    captures: frozenset[str]
    cells: frozenset[str]
    nested: bool
    locals: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        return "closure" if self.captures else "nested" if self.nested else "toplevel"

    def is_kind(self, kind: str) -> bool:
        return bool(self.captures) if kind == "closure" else self.nested is (kind == "nested")


class UnknownScopes(Exception):
    """The scopes of a document cannot be told, and why."""


class Scopes:
    """The functions of one document. UnknownScopes where Python cannot read its own file."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._tables = _read_tables(document) if describe(document.language).is_host else None

    def of_symbol(self, number: int) -> Scope | None:
        symbol = self._document.symbols[number]
        if self._tables is not None:
            return self._of_table(symbol)
        found = self._captured
        return Scope(
            frozenset(found.names.get(number, ())),
            frozenset(found.cells.get(number, ())),
            _function_around(self._document.symbols, symbol.parent) >= 0,
            tuple(sorted(s.name for s in self._document.symbols if s.parent == number and s.kind_group == "value")),
        )

    def of_span(self, start: int, end: int, kind: str) -> Scope | None:
        """Of a match: the function that it is, else the innermost one around it."""
        document = self._document
        own = any(word in kind for word in ("lambda", "closure", "arrow_function", "function"))
        for number, symbol in enumerate(document.symbols):
            close = symbol.head <= start and 0 <= symbol.end - end < 2 and is_function(symbol)
            if own and close and (symbol.body_end == end or not document.file.text[symbol.head : start].strip()):
                return self.of_symbol(number)
        if own and self._tables is not None:
            line = document.line_of(start)
            tables = [table for table in self._tables.get("lambda", ()) if table.get_lineno() == line]
            text = document.file.text
            before = len(re.findall(rb"\blambda\b", text[text.rfind(b"\n", 0, start) + 1 : start]))
            return _describe(tables[before]) if before < len(tables) else None
        around = document.enclosing(start, end)
        if own:
            names = frozenset(
                name for name, at, definer, place in self._captured.uses
                if start <= at < end and not start <= place < end and definer >= 0
            )  # fmt: skip
            return Scope(names, frozenset(), _function_around(document.symbols, around) >= 0)
        function = _function_around(document.symbols, around)
        return self.of_symbol(function) if function >= 0 else None

    def _of_table(self, symbol: Symbol) -> Scope | None:
        document = self._document
        line = document.line_of(symbol.head)
        assert self._tables is not None
        for name in (symbol.name, "lambda"):
            for table in self._tables.get(name, ()):
                if table.get_lineno() == line:
                    return _describe(table)
        return None

    @cached_property
    def _captured(self) -> Captures:
        document = self._document
        items = describe(document.language).has_sealed_functions
        return find_captures(document.symbols, document.references, document.file.text, items=items)


def _function_around(symbols: tuple[Symbol, ...], number: int) -> int:
    while number >= 0 and not is_function(symbols[number]):
        number = symbols[number].parent
    return number


def _read_tables(document: Document) -> dict[str, list[symtable.Function]]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            top = symtable.symtable(document.source, document.file.path, "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        raise UnknownScopes(f"documents that this Python cannot read ({type(error).__name__})") from None
    found: dict[str, list[symtable.Function]] = {}
    todo: list[symtable.SymbolTable] = [top]
    while todo:
        table = todo.pop()
        if isinstance(table, symtable.Function):
            found.setdefault(table.get_name(), []).append(table)
        todo += reversed(table.get_children())
    return found


def _describe(table: symtable.Function) -> Scope:
    own = set(table.get_locals())
    below: set[str] = set()
    todo: list[symtable.SymbolTable] = list(table.get_children())
    while todo:
        child = todo.pop()
        if isinstance(child, symtable.Function):
            below |= set(child.get_frees())
        else:
            todo += child.get_children()
            below |= {symbol.get_name() for symbol in child.get_symbols() if symbol.is_free()}
    # Every method with super() has a cell of the class, which no one wrote.
    captures = frozenset(table.get_frees()) - {"__class__"}
    return Scope(captures, frozenset(own & below), table.is_nested(), tuple(sorted(own)))
