"""Spans that nest, and which of them hold a place."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

_Held = TypeVar("_Held")


class Spans(Generic[_Held]):
    """Each span stands for something: a start, an end, and what is found by a place inside."""

    def __init__(self, spans: Iterable[tuple[int, int, _Held]]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._above: list[int] = []  # by position: the position of the span around, -1 for none
        self._held: list[_Held] = []
        for start, end, held in sorted(spans, key=lambda span: (span[0], -span[1])):
            self._above.append(self._rise(len(self._ends) - 1, start))
            self._starts.append(start)
            self._ends.append(end)
            self._held.append(held)

    def around(self, place: int) -> Iterator[_Held]:
        """What stands for the spans that hold a place, innermost first."""
        at = self._rise(bisect_right(self._starts, place) - 1, place)
        while at >= 0:
            yield self._held[at]
            at = self._rise(self._above[at], place)

    def _rise(self, at: int, place: int) -> int:
        """The position of the first span, from there outwards, that does not end before a place."""
        while at >= 0 and self._ends[at] <= place:
            at = self._above[at]
        return at
