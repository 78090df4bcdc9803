"""Python's own symbol tables as a provider: which names each scope binds, and how. Parses; runs nothing."""

from __future__ import annotations

import platform
import symtable
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from cq.model.provider import Coverage, Name, Reply, Scope
from cq.providers.answers import Target
from cq.providers.programs import Detection
from cq.providers.registry import Provider, Site
from cq.providers.session import Budget

MAX_BYTES = 2 * 1024 * 1024
_FLAGS = (
    "parameter", "local", "global", "declared_global", "nonlocal", "free", "imported", "annotated", "assigned",
    "referenced", "namespace",
)  # fmt: skip


def detect(site: Site) -> Detection:
    del site
    return Detection(True, f"Python {platform.python_version()}")


def run(site: Site, detection: Detection, plane: str, targets: Sequence[Target], budget: Budget) -> list[Reply[Any]]:
    del site, detection, budget
    return [answer("symtable", plane, target, find_scopes) for target in targets]


def answer(provider: str, plane: str, target: Target, find: Callable[[Target], tuple[Any, ...]]) -> Reply[Any]:
    """What `find` makes of the text, or why this Python cannot read it."""
    if len(target.document.text) > MAX_BYTES:
        return Reply(provider, plane, Coverage("unresolved", "the text is too large"))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Reply(provider, plane, Coverage("complete"), find(target))
    except SyntaxError as error:
        reason = f"Python {platform.python_version()} cannot read it: {error.msg} (line {error.lineno})"
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        reason = f"Python cannot read it: {type(error).__name__}"
    return Reply(provider, plane, Coverage("unresolved", reason))


def find_scopes(target: Target) -> tuple[Scope, ...]:
    """Every scope in the order of the source, outer before inner."""
    # A string, not bytes: a `coding` comment says nothing about a text that has been decoded.
    waiting = [(symtable.symtable(target.document.text.decode(), "<cq>", "exec"), "")]
    found: list[Scope] = []
    while waiting:
        table, above = waiting.pop()
        children = table.get_children()
        kind = str(getattr(table.get_type(), "value", table.get_type()))
        name = "" if kind == "module" else table.get_name()
        qualified = f"{above}.{name}" if above else name
        # What an inner scope takes from outside and this one binds lives in a cell.
        taken = {symbol.get_name() for child in children for symbol in child.get_symbols() if symbol.is_free()}
        names: list[Name] = []
        for symbol in sorted(table.get_symbols(), key=lambda symbol: symbol.get_name()):
            flags = [flag for flag in _FLAGS if getattr(symbol, f"is_{flag}")()]
            if symbol.get_name() in taken and symbol.is_local():
                flags.append("cell")
            if not symbol.get_name().startswith("."):  # the hidden argument of a comprehension
                names.append(Name(symbol.get_name(), tuple(flags)))
        found.append(Scope(kind, name, qualified, table.get_lineno(), tuple(names)))
        waiting += [(child, qualified) for child in reversed(children)]
    return tuple(found)


PROVIDER = Provider(
    "symtable", "symbol tables (Python)", 40, ("python",), ("scopes",), "symtable", detect, run
)  # fmt: skip
