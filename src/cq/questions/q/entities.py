"""Entities of a document from its facts, and what facts alone say about them: names, decorators, raises, sizes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from cq.model.facts import Call, Import, Symbol
from cq.query.tree import Token
from cq.query.vocabulary import ENTITIES
from cq.questions.q.documents import Document
from cq.questions.q.matches import Match


class MatchMaker:
    """Facts → matches, in one document."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def _make(self, start: int, end: int, kind: str, name: str, qualified: str, symbol: int = -1) -> Match:
        document = self._document
        return Match(document.file.path, start, end, document.number, document.language, kind, name, qualified, symbol)

    def symbol(self, number: int, symbol: Symbol) -> Match:
        return self._make(symbol.head, symbol.end, symbol.kind, symbol.name, symbol.qualified_name, number)

    def module(self) -> Match:
        path = self._document.file.path
        stem = re.sub(r"(/__init__|/mod|/index)?\.\w+$", "", path)
        return self._make(*self._document.span, "module", stem.rpartition("/")[2], stem.replace("/", "."))

    def call(self, call: Call) -> Match:
        dotted = re.sub(r"\?\.|::", ".", call.callee).rstrip("!")
        return self._make(call.start, call.end, call.kind, call.name, dotted)

    def imported(self, item: Import) -> Match:
        module = "." * item.level + item.module
        return self._make(item.start, item.end, item.kind, module, module)

    def decorators(self, number: int, symbol: Symbol) -> Iterator[Match]:
        text, at = self._document.file.text, symbol.start
        for decorator in symbol.decorators:
            name, qualified = decorator_name(decorator)
            # Its text is folded; its name stands as it is.
            found = text.find(qualified.encode(), at, symbol.name_start)
            at = found + len(qualified.encode()) if found >= 0 else at
            start = found if found >= 0 else symbol.start
            whole = text[start : start + len(decorator.encode())] == decorator.encode()
            yield self._make(
                start,
                start + len(decorator.encode()) if whole else max(at, start),
                "decorator",
                name,
                qualified,
                number,
            )


def find_raised(document: Document, number: int) -> list[str]:
    """What a definition raises itself: not what a function inside it does, unless it is a class or a module."""
    symbols, raised = document.symbols, document.raised
    if number < 0:
        return [value for _, value in raised]
    if symbols[number].kind_group in ("class", "type"):
        return [value for owner, value in raised if _is_below(symbols, owner, number)]
    return [value for owner, value in raised if owner == number]


def _is_below(symbols: tuple[Symbol, ...], number: int, above: int) -> bool:
    while number >= 0 and number != above:
        number = symbols[number].parent
    return number == above


def match_name(token: Token, name: str, qualified: str) -> bool:
    """Exact, or qualified from the right, or a regular expression that is found in the name."""
    if token.op == "=~":
        return re.search(token.text, name) is not None
    wanted = token.text.replace("::", ".")
    if "." in wanted:
        return qualified == wanted or qualified.endswith(f".{wanted}")
    return name == wanted


def find_last_name(text: str) -> str:
    """The name without what qualifies it: `Session.get`, `Session::get`."""
    return text.replace("::", ".").rpartition(".")[2]


def match_entity_name(token: Token, match: Match, document: Document) -> bool:
    if match.kind in ("decorator",) or match.symbol >= 0 or match.kind == "module":
        return match_name(token, match.name, match.qualified_name)
    imported = next(
        (
            i
            for i in document.imports
            if (i.start, i.end) == (match.start, match.end) and "." * i.level + i.module == match.name
        ),
        None,
    )
    if imported is None:
        return match_name(token, match.name, match.qualified_name)
    if token.op == "=" and token.text == match.name:
        return True
    names = [
        match.name,
        *(binding.imported for binding in imported.bindings),
        *(binding.local for binding in imported.bindings),
    ]
    return any(match_name(token, name, f"{match.name}.{name}") for name in names if name and name != "*")


def decorator_name(text: str) -> tuple[str, str]:
    dotted = re.match(r"[\w.:$]*", text)
    qualified = dotted[0].replace("::", ".") if dotted else ""
    return qualified.rpartition(".")[2], qualified


def raised_name(text: str) -> tuple[str, str]:
    qualified = text.replace("::", ".").rstrip("!").removeprefix("new ")
    return qualified.rpartition(".")[2], qualified


def measure(match: Match, document: Document, wanted: frozenset[str]) -> dict[str, Any]:
    lines, symbols = document.file.lines, document.symbols
    first = lines.line(match.start)
    found: dict[str, Any] = {
        "line": first,
        "lines": lines.line(max(match.end - 1, match.start)) - first + 1,
        "bytes": match.end - match.start,
    }
    children = [s for s in symbols if s.parent == match.symbol and s.kind not in ("parameter", "type_parameter")]
    found["members"] = len(children)
    found["methods"] = sum(child.kind in ENTITIES["method"] for child in children)
    if "parameters" in wanted:
        found["parameters"] = sum(s.parent == match.symbol and s.kind == "parameter" for s in symbols)
    if "calls" in wanted:
        found["calls"] = sum(
            match.start <= call.start and call.end <= match.end and call.kind != "decorator" for call in document.calls
        )
    if "arguments" in wanted:
        call = next((c for c in document.calls if (c.start, c.end) == (match.start, match.end)), None)
        found["arguments"] = call.arg_count + len(call.keywords) if call else 0
    if "decorators" in wanted and match.symbol >= 0:
        found["decorators"] = len(symbols[match.symbol].decorators)
    return found
