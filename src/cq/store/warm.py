"""Readers that outlive a question, for a process that answers many: what one question decoded the next one has, while
nothing was written to the index."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cq.store import database
from cq.store.read import Reader

MOST_BYTES = 512_000_000  # of memory that is this process's own; beyond it half is forgotten, then all
READY_BYTES = 400_000_000  # nothing more is decoded beforehand
_MOST = 4  # indexes


Readers = dict[tuple[Path, str], Reader]  # that a process keeps, by index and root


@contextmanager
def open_reader(index: Path, root: str, kept: Readers | None = None) -> Iterator[Reader]:
    """Of an index that is one; StoreError with what is wrong with it otherwise. It is taken from `kept` and put back
    there, if that is given, which takes a process that asks in one thread."""
    reader = kept.pop((index, root), None) if kept is not None else None
    # While it is open its inode is no one else's: the same inode is the same file.
    if reader is not None and (database.identify(index) != reader.inode or database.damage(index, root)):
        reader.close()
        reader = None
    if reader is None:
        database.check(index, root)
        reader = Reader(database.connect(index), root)
        if kept is not None:
            reader.inode, reader.memory = database.identify(index), {}
    try:
        with reader:
            if reader.memory is not None:
                reader.check_memory()
            yield reader
    except BaseException:
        reader.close()
        raise
    if reader.memory is not None and measure() > MOST_BYTES:
        reader.forget_half()
    if kept is None or reader.memory is None or (index, root) in kept or measure() > MOST_BYTES:
        reader.close()  # the last, of two that were open at once
        return
    kept[index, root] = reader
    for key in list(kept)[:-_MOST]:
        kept.pop(key).close()


def measure() -> int:
    """Bytes of memory that are this process's own."""
    try:
        fields = Path("/proc/self/statm").read_text().split()
    except OSError:
        return 0
    return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")
