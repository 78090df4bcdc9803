"""Lookups of Rust that lead to one another: each is made once, and none goes round in a circle."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple, cast

if TYPE_CHECKING:
    from cq.graph.engine.cells import Cells, Remembered

MAX_OPEN = 30  # lookups inside one another

_Answer = TypeVar("_Answer")
_Given = TypeVarTuple("_Given")


class Lookups:
    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._known: dict[Hashable, Remembered[object]] = {}
        self._open: set[Hashable] = set()
        self._cuts = 0  # how often a lookup met itself, or went too deep: what others found then is not remembered
        self._depth = 0

    def find(self, key: Hashable, missing: _Answer, find: Callable[[*_Given], _Answer], *given: *_Given) -> _Answer:
        """What `find` gives, once for a key; `missing` while that is being looked up, and too deep inside others."""
        known = self._known.get(key)
        if known is None:
            if key in self._open or len(self._open) > MAX_OPEN:
                self._cuts += 1
                return missing
            cuts = self._cuts
            self._open.add(key)
            try:
                known = cast("Remembered[object]", self._cells.remember(find, *given))
            finally:
                self._open.discard(key)
            if self._cuts == cuts:
                self._known[key] = known
        return cast("_Answer", self._cells.recall(known))

    def guard(self, key: Hashable, find: Callable[[*_Given], _Answer], *given: *_Given) -> _Answer | None:
        """What `find` gives anew; None while it is being found."""
        if key in self._open:
            return None
        self._open.add(key)
        try:
            return find(*given)
        finally:
            self._open.discard(key)

    def nest(self, find: Callable[[*_Given], _Answer], *given: *_Given) -> _Answer | None:
        """What `find` gives anew; None where it leads to itself too often: `type A = Self::A;`."""
        if self._depth > MAX_OPEN:
            self._cuts += 1
            return None
        self._depth += 1
        try:
            return find(*given)
        finally:
            self._depth -= 1
