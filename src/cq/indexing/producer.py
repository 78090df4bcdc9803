"""What makes facts, in a few letters. Apart from what makes them: a look that finds nothing new loads none of it."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from cq.source.read import content_hash

FACTS = 1  # raised when the same text gives other facts; older indexes are then made anew
_PACKAGE = Path(__file__).parents[1]


@cache
def producer() -> str:
    """Of our own code and every grammar. Another producer, another index."""
    stats: list[str] = [str(FACTS)]
    for folder in ("syntax", "graph", "model", "languages", *_list_folders(_PACKAGE / "languages")):
        for file in sorted(os.scandir(_PACKAGE / folder), key=lambda entry: entry.name):
            if file.name.endswith((".py", ".scm")):
                status = file.stat()
                stats.append(f"{file.name} {status.st_size} {status.st_mtime_ns}")
    return content_hash("\n".join(stats).encode())


def _list_folders(parent: Path) -> list[str]:
    return sorted(f"{parent.name}/{entry.name}" for entry in os.scandir(parent) if entry.is_dir())
