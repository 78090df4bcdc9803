"""What was read from an index, as digests: while every one is the same, so is whatever was made of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from xxhash import xxh3_64_intdigest

from cq.store.database import Connection

# Rows of content never change under their number.
_FIXED = "FROM content WHERE id=?"


class Trace:
    """Questions in the order they were first asked, each with a digest of its answer."""

    def __init__(self) -> None:
        self._asked: dict[tuple[str, tuple[Any, ...]], int] = {}

    def __len__(self) -> int:
        return len(self._asked)

    def note(self, sql: str, values: tuple[Any, ...], rows: list[Any]) -> None:
        if (sql, values) not in self._asked:
            self._asked[sql, values] = _digest(rows)

    def cut(self, count: int) -> None:
        """Forgets all but the first."""
        for key in list(self._asked)[count:]:
            del self._asked[key]

    def check(self, connection: Connection) -> int:
        """How many of the questions have their old answers still, up to the first that has not."""
        for number, ((sql, values), digest) in enumerate(self._asked.items()):
            if _digest(connection.execute(sql, values).fetchall()) != digest:
                return number
        return len(self._asked)


class TracedConnection:
    """A connection that only reads, and remembers what."""

    def __init__(self, connection: Connection, trace: Trace) -> None:
        self._connection, self._trace = connection, trace

    def execute(self, sql: str, values: tuple[Any, ...] = ()) -> _Rows:
        rows = self._connection.execute(sql, values).fetchall()
        if _FIXED not in sql:
            self._trace.note(sql, tuple(values), rows)
        return _Rows(rows)

    def note(self, sql: str, values: tuple[Any, ...], rows: list[Any]) -> None:
        """As if it had been asked, for who has the rows already."""
        self._trace.note(sql, values, rows)


class _Rows:
    def __init__(self, rows: list[Any]) -> None:
        self._rows = rows

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows)

    def fetchone(self) -> Any:
        return self._rows[0] if self._rows else None

    def fetchall(self) -> list[Any]:
        return self._rows


def _digest(rows: list[Any]) -> int:
    return xxh3_64_intdigest(msgspec.msgpack.encode(rows))
