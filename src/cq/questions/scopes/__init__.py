"""Which names a definition takes from outside, keeps for functions inside it, or owns: by Python's own symbol tables,
by our facts elsewhere."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

import msgspec

from cq.answers.options import CodeTarget, Options, Paged
from cq.answers.page import Page, count_tokens, take
from cq.language import describe
from cq.model.answer import SCHEMA_VERSION, Answer, FactDetails, Finding, Insight, Run, Section, Slice
from cq.model.location import Location
from cq.model.provider import Scope
from cq.model.status import Degraded
from cq.providers.answers import Target
from cq.providers.symtables import answer, find_scopes
from cq.snapshot.bodies import Bodies
from cq.snapshot.code import find_code, list_names, open_document
from cq.snapshot.files import HeldFile
from cq.snapshot.target import describe_target, say_nothing
from cq.syntax.captures import find_captures, is_function

if TYPE_CHECKING:
    from cq.snapshot.snapshot import Snapshot

_SHOWN = ("captures", "nonlocals", "cells", "declared_globals", "globals")


class ScopesOptions(Options, frozen=True):
    """Of a definition with all inside it, or of a file."""

    examples: ClassVar[str] = """\
  cq scopes QuerySet.get_or_create        a method, with the functions inside it
  cq scopes src/app.py                    every scope of a file
  cq scopes make_handler --format json    all names, by what they are to it"""

    target: CodeTarget
    page: Paged = Page(40)


class Row(msgspec.Struct, frozen=True):
    """One scope: its kind, its name, where it is, and its names by what they are to it."""

    kind: str
    name: str
    location: Location
    names: dict[str, tuple[str, ...]]


def ask(snapshot: Snapshot, options: ScopesOptions) -> Answer:
    """Outer scopes before inner ones, in the order of the source."""
    files = snapshot.files
    options.page.check()
    held, targets = find_code(files, options.target)
    if held is None:
        return say_nothing(files, "scopes", options.target)
    rows: list[Row] = []
    events: list[Degraded] = []
    places = [(targets[0].document, targets[0].number)] if targets else [(n, -1) for n in range(len(held.documents))]
    for document, number in places:
        language = describe(held.documents[document].language)
        if "scopes" not in language.offers:
            message = (
                f"the scopes of {language.label or language.id} are not known; `cq languages` lists those that are"
            )
            events.append(Degraded("scopes", "warning", "language", message, held.path))
        elif language.is_host:
            found = _read_tables(held, document, number)
            rows += found if not isinstance(found, str) else ()
            events += [Degraded("scopes", "warning", "syntax", found, held.path)] if isinstance(found, str) else []
        else:
            rows += _read_facts(held, document, number)
    shown, budget, cut = take(rows, options.page, _describe)
    closures = [row.name for row in rows if row.names.get("captures")]
    section = Section("Scopes", "scopes", len(rows), tuple(shown))
    slices = {
        "scopes": Slice(len(rows), "scopes"),
        "closures": Slice(len(closures), "that capture names", tuple(closures[:5])),
    }
    budget = msgspec.structs.replace(budget, used=count_tokens((section,), options.page.measure) + 100)
    return Answer(
        SCHEMA_VERSION,
        "scopes",
        Run(generation=files.generation),
        {"query": options.target, "scopes": len(rows), "closures": len(closures)},
        found=len(rows),
        insight=Insight(describe_target(targets) if targets else None, slices, budget=budget)
        if targets or rows
        else None,
        sections=(section,) if rows else (),
        degraded=tuple(events),
        truncated=tuple(cut),
    )


def _read_tables(held: HeldFile, document: int, number: int) -> list[Row] | str:
    """By symtable, which parses and runs nothing; else why it cannot."""
    target = open_document(held, document)
    reply = answer("symtable", "scopes", target, find_scopes)
    if not reply.answered:
        return reply.coverage.reason
    top = {name.name for scope in reply.items[:1] for name in scope.names if "local" in name.flags}
    rows = [_read_scope(scope, target, held, top) for scope in reply.items]
    if number < 0:
        return rows
    symbol = held.symbols[document][number]
    lines = {held.lines.line(symbol.start), held.lines.line(symbol.head), held.lines.line(symbol.name_start)}
    for at, scope in enumerate(reply.items):
        if scope.name in (symbol.name, "lambda") and rows[at].location.start_line in lines:
            inside = scope.qualified_name + "."
            behind = at + 1
            while behind < len(rows) and reply.items[behind].qualified_name.startswith(inside):
                behind += 1
            return rows[at:behind]
    return f"{symbol.qualified_name} is a {symbol.kind}: it has no scope of its own"


def _read_scope(scope: Scope, target: Target, held: HeldFile, top: set[str]) -> Row:
    flags = {name.name: frozenset(name.flags) for name in scope.names}
    outside = [name for name, said in flags.items() if "global" in said and "declared_global" not in said]
    names = {
        # Every method with super() has a cell of the class, which no one wrote.
        "captures": [n for n, f in flags.items() if "free" in f and "nonlocal" not in f and n != "__class__"],
        "nonlocals": [n for n, f in flags.items() if "nonlocal" in f],
        "cells": [n for n, f in flags.items() if "cell" in f],
        "declared_globals": [n for n, f in flags.items() if "declared_global" in f],
        "globals": [n for n in outside if n in top],
        "builtins": [n for n in outside if n not in top and hasattr(builtins, n)],
        "unknown": [n for n in outside if n not in top and not hasattr(builtins, n)],
        "parameters": [n for n, f in flags.items() if "parameter" in f],
        "locals": [n for n, f in flags.items() if "local" in f and "parameter" not in f],
    }
    if scope.kind == "module":
        names["globals"] = []
    starts = target.document.table.starts
    at = target.document.outer(starts[max(scope.line, 1) - 1]) if scope.line <= len(starts) else 0
    kept = {key: tuple(sorted(found)) for key, found in names.items() if found}
    return Row(scope.kind, scope.qualified_name, held.locate(at, at), kept)


def _read_facts(held: HeldFile, document: int, number: int) -> Iterator[Row]:
    """Named functions by what our facts say; a function without a name belongs to the one around it."""
    symbols = held.symbols[document]
    items = describe(held.documents[document].language).has_sealed_functions
    found = find_captures(symbols, held.references[document], held.text, items=items)
    bodies = Bodies(symbols)
    for at, symbol in enumerate(symbols):
        inside = number < 0 or at == number or number in bodies.around(symbol.start)
        if not inside or not is_function(symbol):
            continue
        own = [inner for inner in symbols if inner.parent == at]
        names = {
            "captures": found.names.get(at, ()),
            "cells": found.cells.get(at, ()),
            "globals": found.tops.get(at, ()),
            "parameters": [inner.name for inner in own if inner.kind == "parameter"],
            "locals": [inner.name for inner in own if inner.kind != "parameter"],
        }
        kept = {key: tuple(sorted(set(values))) for key, values in names.items() if values}
        yield Row("function", symbol.qualified_name, held.locate(symbol.name_start, symbol.name_end), kept)


def _describe(row: Row) -> Finding:
    parts = [f"{key.replace('_', ' ')} {list_names(row.names[key])}" for key in _SHOWN if row.names.get(key)]
    counts = [(len(row.names.get(f"{key}s", ())), key) for key in ("parameter", "local")]
    parts += [f"{count} {key}{'s' * (count > 1)}" for count, key in counts if count]
    message = f"{row.kind} {row.name}".rstrip() + (f": {'; '.join(parts)}" if parts else "")
    return Finding("scope", message, row.location, details=FactDetails(row.name or row.location.path, row.names))
