"""Which definition's body holds a place of a document."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from cq.model.facts import Symbol
from cq.snapshot.target import Definition


class Bodies:
    """The bodies of one document. A symbol's parent does not tell: `self.x = f()` defines a member of the class, inside
    a method."""

    def __init__(self, symbols: Sequence[Symbol]) -> None:
        self._symbols = symbols
        self._numbers: list[int] = []
        self._starts: list[int] = []
        self._parents: list[int] = []
        bodied = [number for number, symbol in enumerate(symbols) if symbol.body_start >= 0]
        for number in sorted(bodied, key=lambda at: (symbols[at].body_start, -symbols[at].body_end)):
            above = len(self._numbers) - 1
            while above >= 0 and symbols[self._numbers[above]].body_end <= symbols[number].body_start:
                above = self._parents[above]
            self._numbers.append(number)
            self._starts.append(symbols[number].body_start)
            self._parents.append(above)

    def around(self, offset: int) -> Iterator[int]:
        """The numbers of the symbols whose bodies hold an offset, innermost first."""
        at = bisect_right(self._starts, offset) - 1
        while at >= 0:
            number = self._numbers[at]
            if offset < self._symbols[number].body_end:
                yield number
            at = self._parents[at]


def find_holder(row: Definition) -> Definition:
    """The definition itself where it bears a body, else the one whose body it stands in; itself at root level."""
    symbols = row.file.symbols[row.document]
    if symbols[row.number].body_start >= 0:
        return row
    around = next(Bodies(symbols).around(row.symbol.name_start), row.number)
    return Definition(row.file, row.document, around)
