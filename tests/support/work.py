"""Counts what a piece of work costs, the same on every machine: steps, not seconds.

Calls of Python functions alone say little: a loop makes none, `text[a:b]` copies. So lines are counted (a loop runs its
line again), every question to a node (the verbs of `cq.syntax.tree`) counts what the binding goes through for it, such
as its children, every slice and search of the text the bytes it goes over, every method
of a list or a string that goes through all of it its length. What the grammars and the query engine do inside is not
seen: both have budgets of their own (`PARSE_MICROS`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from cq.syntax import tree

# Methods of lists, tuples, strings and sets that go through all of what they belong to.
_LONG = frozenset(
    ["sort", "index", "remove", "insert", "count", "copy", "split", "splitlines", "replace", "strip", "rstrip",
     "lstrip", "join", "translate", "decode", "encode", "partition", "rpartition"]
)  # fmt: skip
_MODULES = ("cq.syntax", "cq.languages", "cq.source.segments", "cq.graph")
_steps = 0


def count_steps(action: Callable[[], object]) -> int:
    """What an action costs; it ends in the same state, so an action that remembers costs less the second time."""
    global _steps
    with _watching():
        _steps = 0
        sys.setprofile(_note)
        sys.settrace(_trace)
        try:
            action()
        finally:
            sys.settrace(None)
            sys.setprofile(None)
    return _steps


def _trace(frame: FrameType, event: str, arg: object) -> Any:
    global _steps
    del arg
    if frame.f_code.co_filename == __file__:
        return None
    if event == "line":
        _steps += 1
    return _trace


def _note(frame: FrameType, event: str, arg: Any) -> None:
    global _steps
    if frame.f_code.co_filename == __file__:
        return
    if event == "call":
        _steps += 1
    elif event == "c_call":
        _steps += 1
        if arg.__name__ in _LONG:
            holder = arg.__self__
            if isinstance(holder, (list, tuple, str, bytes, bytearray)):
                _steps += len(holder) // 8


class CountedText(bytes):
    """A text of which every slice and every search counts its bytes."""

    def __getitem__(self, key: Any) -> Any:
        global _steps
        found = super().__getitem__(key)
        if isinstance(key, slice):
            _steps += len(found) // 8
        return found

    def find(self, *args: Any) -> int:
        return self._search(super().find(*args), *args)

    def rfind(self, *args: Any) -> int:
        global _steps
        found = super().rfind(*args)
        since, end = (*args[1:], *(0, len(self))[len(args[1:]) :])[:2]
        _steps += (end - max(found, since)) // 8
        return found

    def count(self, *args: Any) -> int:
        global _steps
        _steps += ((args[2] if len(args) > 2 else len(self)) - (args[1] if len(args) > 1 else 0)) // 8
        return super().count(*args)

    def _search(self, found: int, *args: Any) -> int:
        global _steps
        since = args[1] if len(args) > 1 else 0
        end = found if found >= 0 else args[2] if len(args) > 2 else len(self)
        _steps += max(0, end - since) // 8
        return found


class _Pattern:
    """A regular expression that counts what it goes over."""

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        self._pattern = pattern

    def __getattr__(self, name: str) -> Any:
        global _steps
        found = getattr(self._pattern, name)
        if name not in ("search", "match", "fullmatch", "finditer", "findall", "sub", "split"):
            return found

        def run(*args: Any, **options: Any) -> Any:
            global _steps
            result = found(*args, **options)
            text = args[1] if name == "sub" else args[0]
            since, end = (*args[1:], *(0, len(text))[len(args[1:]) :])[:2] if name != "sub" else (0, len(text))
            if isinstance(result, re.Match):
                end = result.end()
            elif name in ("match", "fullmatch"):
                end = since
            _steps += max(0, min(end, len(text)) - since) // 8
            return result

        return run


_COUNT, _TEXT = tree.all_child_count_of, tree.text_of
# What the verbs of cq.syntax.tree go through; one that is not here goes through a single node.
_COSTS: dict[str, Callable[..., int]] = {
    **dict.fromkeys(
        ("start_of", "end_of", "kind_of", "kind_id_of", "is_named", "has_error", "is_missing", "is_error", "is_extra"),
        lambda node: 1,
    ),
    **dict.fromkeys(("children_of", "all_children_of"), lambda node: 1 + _COUNT(node)),
    **dict.fromkeys(("field_of", "fields_of", "child_field_of"), lambda node, _: 1 + _COUNT(node)),
    "child_at": lambda node, at: 1 + abs(at),
    "text_of": lambda node: 1 + len(_TEXT(node) or b"") // 8,
}  # fmt: skip


def _watch(cost: Callable[..., int], verb: Any) -> Any:
    def ask(*args: Any) -> Any:
        global _steps
        _steps += cost(*args)
        return verb(*args)

    return ask


@contextmanager
def _watching() -> Iterator[None]:
    modules = [module for title, module in list(sys.modules.items()) if title.startswith(_MODULES)]
    known = [(module, name, value) for module in modules for name, value in list(vars(module).items())]
    verbs = {id(getattr(tree, name)): _watch(cost, getattr(tree, name)) for name, cost in _COSTS.items()}
    watched = [(module, name, value) for module, name, value in known if isinstance(value, re.Pattern)]
    asked = [(module, name, value) for module, name, value in known if id(value) in verbs]
    for module, name, value in watched:
        setattr(module, name, _Pattern(value))
    for module, name, value in asked:
        setattr(module, name, verbs[id(value)])
    try:
        yield
    finally:
        for module, name, value in (*watched, *asked):
            setattr(module, name, value)
