"""What makes facts, in a few letters. Apart from what makes them: a look that finds nothing new loads none of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from cq.source.read import content_hash

FACTS = 1  # raised when the same text gives other facts; older indexes are then made anew
_PACKAGE = Path(__file__).parents[1]


@cache
def producer() -> str:
    """Of our own code and every grammar. Another producer, another index."""
    stats: list[str] = [str(FACTS)]
    for file in list_sources():
        status = file.stat()
        stats.append(f"{file.name} {status.st_size} {status.st_mtime_ns}")
    return content_hash("\n".join(stats).encode())


def list_sources() -> Iterator[os.DirEntry[str]]:
    """Code, queries and data files of what makes facts and links, in one order."""
    todo = [_PACKAGE / folder for folder in ("languages", "model", "graph", "syntax")]
    while todo:
        for entry in sorted(os.scandir(todo.pop()), key=lambda entry: entry.name):
            if entry.name.endswith((".py", ".scm", ".toml")):
                yield entry
            elif entry.is_dir() and entry.name != "__pycache__":
                todo.append(Path(entry.path))
