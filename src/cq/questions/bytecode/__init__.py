"""What a Python definition does with names once it is compiled, and which lines its handlers protect. Compiled, never
run."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, ClassVar

import msgspec

from cq.answers.options import CodeTarget, Options, Paged
from cq.answers.page import Page, count_tokens, take
from cq.language import describe
from cq.model.answer import SCHEMA_VERSION, Answer, FactDetails, Finding, Insight, Run, Section, Slice, Truncation
from cq.model.facts import Symbol
from cq.model.provider import Code
from cq.model.status import Degraded
from cq.providers.bytecode import find_codes
from cq.providers.symtables import answer
from cq.snapshot.code import find_code, list_names, open_document
from cq.snapshot.files import HeldFile
from cq.snapshot.target import describe_target, say_nothing

if TYPE_CHECKING:
    from cq.snapshot.snapshot import Snapshot

MAX_NAMES = 200  # of one kind, of one code object
_LISTS = {
    "load_global": "globals", "load_name": "names", "load_closure": "captures", "store_global": "stores_global",
    "store_name": "stores", "store_closure": "stores_captured", "delete_global": "deletes", "delete_name": "deletes",
    "attribute": "attributes", "store_attribute": "stores_attribute", "delete_attribute": "deletes",
    "import": "imports", "import_from": "imports",
}  # fmt: skip
_SHOWN = ("calls", "globals", "stores_global", "captures", "stores_attribute", "imports")


class BytecodeOptions(Options, frozen=True):
    """Of a definition with all inside it, or of a file."""

    examples: ClassVar[str] = """\
  cq bytecode QuerySet.get                names, calls, and what handlers protect
  cq bytecode src/app.py --format json    every code object of a file"""

    target: CodeTarget
    page: Paged = Page(40)


def ask(snapshot: Snapshot, options: BytecodeOptions) -> Answer:
    """One finding per code object, outer before inner."""
    files = snapshot.files
    options.page.check()
    held, targets = find_code(files, options.target)
    if held is None:
        return say_nothing(files, "bytecode", options.target)
    document = targets[0].document if targets else 0
    language = describe(held.documents[document].language)
    codes: tuple[Code, ...] = ()
    events: list[Degraded] = []
    if not language.is_host:
        message = f"bytecode is Python's: {language.id} is compiled by programs that cq does not run"
        events.append(Degraded("bytecode", "warning", "language", message, held.path))
    else:
        reply = answer("bytecode", "bytecode", open_document(held, document), find_codes)
        codes = reply.items if not targets else _narrow(reply.items, held, document, targets[0].number)
        if not reply.answered:
            events.append(Degraded("bytecode", "warning", "syntax", reply.coverage.reason, held.path))
    cut_names: list[int] = []
    shown, budget, cut = take(codes, options.page, lambda code: _describe(code, held, document, cut_names))
    if cut_names:
        cut.append(Truncation("bytecode", "names", MAX_NAMES, MAX_NAMES + max(cut_names), sum(cut_names)))
    section = Section("Code Objects", "bytecode", len(codes), tuple(shown))
    guarded = sum(len(code.protected) for code in codes)
    slices = {
        "codes": Slice(len(codes), "code objects"),
        "protected": Slice(guarded, "entries of their exception tables"),
    }
    budget = msgspec.structs.replace(budget, used=count_tokens((section,), options.page.measure) + 100)
    return Answer(
        SCHEMA_VERSION,
        "bytecode",
        Run(generation=files.generation),
        {"query": options.target, "codes": len(codes), "protected": guarded},
        found=len(codes),
        insight=Insight(describe_target(targets) if targets else None, slices, budget=budget)
        if targets or codes
        else None,
        sections=(section,) if codes else (),
        degraded=tuple(events),
        truncated=tuple(cut),
    )


def _narrow(codes: tuple[Code, ...], held: HeldFile, document: int, number: int) -> tuple[Code, ...]:
    """The code of one definition and of all inside it."""
    symbol = held.symbols[document][number]
    for at, code in enumerate(codes):
        if _is_of(code, symbol, held, document):
            inside = (f"{code.qualified_name}.", f"{code.qualified_name}.<locals>.")
            behind = at + 1
            while behind < len(codes) and codes[behind].qualified_name.startswith(inside):
                behind += 1
            return codes[at:behind]
    return ()


def _is_of(code: Code, symbol: Symbol, held: HeldFile, document: int) -> bool:
    """By the name and the line, which is the first decorator's where there is one."""
    line = code.line + _lines_above(held, document)
    first, last = held.lines.line(symbol.start), held.lines.line(symbol.name_start)
    return code.name in (symbol.name, "<lambda>") and first <= line <= last


def _lines_above(held: HeldFile, document: int) -> int:
    segment = held.documents[document].segment
    return held.lines.line(segment.start) - 1 if segment else 0


def _describe(code: Code, held: HeldFile, document: int, cut: list[int]) -> Finding:
    callees = {call.end: call.callee for call in held.calls[document]}
    found: dict[str, dict[str, None]] = {}
    for operation in code.operations:
        if operation.kind == "call":
            callee = callees.get(operation.end)
            if callee is not None:
                found.setdefault("calls", {})[callee] = None
        elif operation.kind in ("raise", "yield", "await"):
            found.setdefault("does", {})[operation.kind] = None
        elif operation.kind in _LISTS:
            kind = _LISTS[operation.kind]
            if kind == "globals" and hasattr(builtins, operation.argument):
                kind = "builtins"
            found.setdefault(kind, {})[operation.argument] = None
    names = {kind: tuple(sorted(values)) for kind, values in found.items()}
    names |= {"locals": code.local_names, "cells": code.cells, "constants": tuple(dict.fromkeys(code.constants))}
    above = _lines_above(held, document)
    table = [
        f"lines {row.first_line + above} to {row.last_line + above}, handled at line {row.handler_line + above}"
        for row in code.protected
    ]
    names["exception_table"] = tuple(dict.fromkeys(table))
    cut += [len(values) - MAX_NAMES for values in names.values() if len(values) > MAX_NAMES]
    names = {kind: values[:MAX_NAMES] for kind, values in sorted(names.items()) if values}
    parts = [f"{kind.replace('_', ' ')} {list_names(names[kind])}" for kind in _SHOWN if kind in names]
    handlers = {row.handler_line for row in code.protected}
    parts += [f"{len(code.protected)} protected spans, {len(handlers)} handlers"] if handlers else []
    name = code.qualified_name or "the module"
    symbol = next((symbol for symbol in held.symbols[document] if _is_of(code, symbol, held, document)), None)
    start = symbol.name_start if symbol else held.lines.offset(code.line + above)
    location = held.locate(start, symbol.name_end if symbol else start)
    message = name + (f": {'; '.join(parts)}" if parts else "")
    return Finding("code", message, location, details=FactDetails(code.qualified_name or held.path, names))
