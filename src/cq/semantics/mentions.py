"""Names as they stand in the text of a document: where each is, and what it is read off."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left

from cq.model.facts import ROLES, Reference, References

BEHIND = ("attribute", "assignment", "call", "type")  # roles of names that may stand behind a dot
_THIS = re.compile(rb"(?<![\w$])this\.\Z")


class Mentions:
    """Only what is asked for is looked at: a question about one name concerns many documents, few places in each."""

    def __init__(self, references: References, text: bytes) -> None:
        self._references, self.text = references, text
        self._offsets, self._ids = array("I", references.offsets), array("I", references.name_ids)
        self._numbers: dict[str, int] | None = None

    def find(self, name: str) -> list[Reference]:
        """Every place of a name, one after the other."""
        if self._numbers is None:
            self._numbers = {each: number for number, each in enumerate(self._references.names)}
        number, at = self._numbers.get(name, -1), -1
        found: list[Reference] = []
        for _ in range(0 if number < 0 else self._ids.count(number)):
            at = self._ids.index(number, at + 1)
            found.append(self._get(at))
        return found

    def is_behind(self, place: Reference) -> bool:
        """Whether a name stands behind a dot: it is that of an attribute, whatever it is read off."""
        before = self.text[max(place.start - 2, 0) : place.start]
        return place.role in BEHIND and before[-1:] == b"." and before != b".."  # `[...Rest]`

    def find_receiver(self, place: Reference) -> str:
        """The names that a name is read off (`self.engine`), "" where that are no names alone."""
        parts: list[str] = []
        while self.is_behind(place):
            before = self._before(place.start)
            if before is None:  # a keyword is no reference
                if not self._is_this(place.start):
                    return ""
                parts.append("this")
                break
            parts.append(before.name)
            place = before
        return ".".join(reversed(parts))

    def find_first(self, start: int) -> int:
        """Where the chain `this.a.b` begins of which the name at a byte is a part."""
        while self.text[start - 1 : start] == b"." and (before := self._before(start)) is not None:
            start = before.start
        return start - 5 if self._is_this(start) else start

    def find_at(self, start: int) -> Reference | None:
        at = bisect_left(self._offsets, start)
        return self._get(at) if at < len(self._offsets) and self._offsets[at] == start else None

    def _is_this(self, start: int) -> bool:
        return _THIS.search(self.text, max(start - 6, 0), start) is not None

    def _before(self, start: int) -> Reference | None:
        """The name that ends in front of the dot in front of this one."""
        at = bisect_left(self._offsets, start) - 1
        last = self._get(at) if at >= 0 else None
        return last if last is not None and last.end + 1 == start else None

    def _get(self, at: int) -> Reference:
        name, start = self._references.names[self._ids[at]], self._offsets[at]
        return Reference(name, start, start + len(name.encode()), ROLES[self._references.roles[at]])
