"""Where a program begins, as far as names say it: functions called `main` outside of tests, and `__main__` modules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cq.model.answer import Target
from cq.snapshot.target import Definition

if TYPE_CHECKING:
    from cq.snapshot.files import Files


def find_entry_points(files: Files, limit: int = 8) -> tuple[Target, ...]:
    """Nearest to the root first."""
    rows = [Definition(*row) for name in ("main", "Main") for row in files.definitions(name)]
    rows = [row for row in rows if row.file.role in ("src", "lib") and row.symbol.kind in ("function", "method")]
    rows.sort(key=lambda row: (row.file.path.count("/"), row.order))
    return tuple(
        Target(row.symbol.qualified_name, row.symbol.kind, row.location, row.symbol.signature) for row in rows[:limit]
    )
