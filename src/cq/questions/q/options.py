"""The options of `cq q`."""

from __future__ import annotations

import msgspec


class QueryOptions(msgspec.Struct, frozen=True):
    """`query` is the text of a query, or words to search for. `include`, `exclude` and `languages` are globs=, exclude=
    and lang= beside it. A page holds at most `limit` matches (0: as fit 100 lines) and about `budget` tokens (0: any
    number); `everything` is one page."""

    query: str
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    limit: int = 0
    page: int = 1
    budget: int = 8000
    everything: bool = False
