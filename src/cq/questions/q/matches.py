"""What a search finds, and what it has to say about how it went."""

from __future__ import annotations

from typing import Any

import msgspec

from cq.query.plan import Plan


class Capture(msgspec.Struct, frozen=True, gc=False):
    name: str
    text: str
    start: int
    end: int


class Match(msgspec.Struct, gc=False):
    """One finding. Its identity is where it stands: sets of results are joined on it."""

    path: str
    start: int
    end: int
    document: int
    language: str
    kind: str  # of the symbol, the call, the import or the node
    name: str = ""
    qualified_name: str = ""
    symbol: int = -1
    captures: tuple[Capture, ...] = ()
    attributes: dict[str, Any] = {}
    is_code: bool = False  # of a pattern
    evidence: str = "syntax"

    @property
    def key(self) -> tuple[str, int, int]:
        return self.path, self.start, self.end


class Partition(msgspec.Struct):
    """What happened in one language."""

    files: int = 0  # in reach of in=, globs= and the like
    candidates: int = 0  # of these, after the lookups in the index
    opened: int = 0  # documents looked at
    parsed: int = 0
    matches: int = 0
    reason: str = ""  # why the language was left out
    skipped: dict[str, int] = {}  # what was not looked at -> how many

    def skip(self, what: str, count: int = 1) -> None:
        if count:
            self.skipped[what] = self.skipped.get(what, 0) + count


class Statistics(msgspec.Struct):
    """Of one selection; `estimated` is what the index said beforehand."""

    selection: str
    prefilter: str = ""
    names: str = ""
    estimated: int = 0
    languages: dict[str, Partition] = {}
    read_in_part: dict[str, str] = {}  # languages in which the pattern does not parse and is taken as it is, and why


class Result(msgspec.Struct):
    plan: Plan
    matches: list[Match]
    total: int  # before limit=
    statistics: list[Statistics]
    dropped: int = 0  # matches over the bound of one group
