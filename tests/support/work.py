"""Counts what a piece of work costs, the same on every machine: steps, not seconds.

Calls of Python functions alone say little: a loop makes none, `node.parent` is one and walks down from the root,
`text[a:b]` copies. So lines are counted (a loop runs its line again), every access to a node counts what the binding
goes through for it (its children, its depth), every slice and search of the text the bytes it goes over, every method
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

import tree_sitter

# Methods of lists, tuples, strings and sets that go through all of what they belong to.
_LONG = frozenset(
    ["sort", "index", "remove", "insert", "count", "copy", "split", "splitlines", "replace", "strip", "rstrip",
     "lstrip", "join", "translate", "decode", "encode", "partition", "rpartition"]
)  # fmt: skip
_MODULES = ("cq.syntax", "cq.source.segments", "cq.graph")
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
        _steps += ((args[2] if len(args) > 2 else len(self)) - max(found, 0)) // 8
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


def _depth(node: Any) -> int:
    count, parent = 0, _PARENT.__get__(node)
    while parent is not None and count < 1000:
        count, parent = count + 1, _PARENT.__get__(parent)
    return count


_PARENT = tree_sitter.Node.__dict__["parent"]
_CHILDREN = tree_sitter.Node.__dict__["child_count"]
_COSTS: dict[str, Callable[..., int]] = {
    **dict.fromkeys(("type", "kind_id", "start_byte", "end_byte", "is_named", "has_error"), lambda node: 1),
    **dict.fromkeys(("children", "named_children"), lambda node: 1 + _CHILDREN.__get__(node)),
    **dict.fromkeys(("child_by_field_name", "children_by_field_name"), lambda node, *_: 1 + _CHILDREN.__get__(node)),
    **dict.fromkeys(("child", "named_child"), lambda node, at: 1 + at),
    **dict.fromkeys(
        ("parent", "next_sibling", "prev_sibling", "next_named_sibling", "prev_named_sibling",
         "descendant_for_byte_range", "named_descendant_for_byte_range", "child_with_descendant"),
        lambda node, *_: 1 + _depth(node),
    ),
    "text": lambda node: 1 + len(_TEXT.__get__(node) or b"") // 8,
}  # fmt: skip
_TEXT = tree_sitter.Node.__dict__["text"]


def _watch(name: str, cost: Callable[..., int], known: Any) -> Any:
    if type(known).__name__ == "getset_descriptor":

        def get(node: Any) -> Any:
            global _steps
            _steps += cost(node)
            return known.__get__(node)

        return property(get)

    def call(node: Any, *args: Any) -> Any:
        global _steps
        _steps += cost(node, *args)
        return known(node, *args)

    return call


@contextmanager
def _watching() -> Iterator[None]:
    nodes: Any = tree_sitter.Node
    known = {name: nodes.__dict__[name] for name in _COSTS}
    patterns = [
        (module, name, value)
        for title, module in list(sys.modules.items())
        if title.startswith(_MODULES)
        for name, value in list(vars(module).items())
        if isinstance(value, re.Pattern)
    ]
    for name, cost in _COSTS.items():
        setattr(nodes, name, _watch(name, cost, known[name]))
    for module, name, value in patterns:
        setattr(module, name, _Pattern(value))
    try:
        yield
    finally:
        for name, value in known.items():
            setattr(nodes, name, value)
        for module, name, value in patterns:
            setattr(module, name, value)
