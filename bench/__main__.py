"""`python -m bench [PART…]`: runs the parts, prints their tables and goals, keeps the numbers in bench/results/.

A part is a module with `run(results)`. It fills the dict it is given:
    results["tables"]  {title: [row, …]}, a row being {column: text or number}
    results["goals"]   [{"goal": sentence, "measured": text or number, "met": bool}, …]
and whatever else should be kept in the JSON.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as `cq` has it (cq.surfaces.client), before numpy is there

import cq
from bench.corpora import CorpusError

PARTS = {
    name: f"bench.{name}"
    for name in (
        "syntax",
        "index",
        "search",
        "find",
        "questions",
        "query",
        "graph",
        "graph_typescript",
        "digests",
        "edits",
        "labels",
        "calls",
        "traces",
        "providers",
        "retrieval",
        "surfaces",
        "agent",
    )
}
RESULTS = Path(__file__).with_name("results")


def main(names: Sequence[str]) -> int:
    if unknown := [name for name in names if name not in PARTS]:
        print(f"bench: no part {unknown[0]!r}; there are: {', '.join(PARTS)}", file=sys.stderr)
        return 2
    report: dict[str, Any] = {"machine": _machine(), "parts": {}}
    for name in names or PARTS:
        results: dict[str, Any] = {}
        started = time.perf_counter()
        try:
            import_module(PARTS[name]).run(results)
        except CorpusError as error:
            print(f"bench: {name}: {error}", file=sys.stderr)
            return 2
        results["seconds"] = round(time.perf_counter() - started, 3)
        report["parts"][name] = results
        _print_part(name, results)
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
    print(f"kept in {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")
    return 0


def render_table(rows: Sequence[dict[str, Any]]) -> str:
    """Columns in the order in which rows first name them; numbers to the right."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    cells = [[_cell(row.get(column, "")) for column in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    numeric = [all(isinstance(row.get(column, 0), int | float) for row in rows) for column in columns]

    def line(values: Sequence[str]) -> str:
        parts = (
            value.rjust(width) if right else value.ljust(width)
            for value, width, right in zip(values, widths, numeric, strict=True)
        )
        return "  ".join(parts).rstrip()

    return "\n".join([line(columns), line(["-" * width for width in widths]), *map(line, cells)])


def _print_part(name: str, results: dict[str, Any]) -> None:
    print(f"== {name} ({results['seconds']:.1f} s)\n")
    for title, rows in results.get("tables", {}).items():
        print(f"{title}\n{render_table(rows)}\n")
    for goal in results.get("goals", []):
        print(f"{'met    ' if goal['met'] else 'NOT met'}  {goal['goal']}: {_cell(goal['measured'])}")
    print()


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _machine() -> dict[str, Any]:
    return {
        "cq": cq.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
    }


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
