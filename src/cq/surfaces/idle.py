"""What a worker of the daemon does between questions, about the repository it was asked about last: it takes up what
changed once nothing moves, looks again before the kernel's word is not enough, and decodes what questions will ask for.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from cq.indexing.events import TRUST_SECONDS
from cq.model.errors import CqError
from cq.snapshot.snapshot import open_snapshot
from cq.store import warm

if TYPE_CHECKING:
    from cq.indexing.index import Index
    from cq.indexing.resident import Resident

READY_SECONDS = 600.0  # after a question, for the next one
QUIET_SECONDS = 1.0  # without a change, until what changed is taken up unasked


def stay_ready(resident: Resident) -> Generator[float, None, None]:
    """Piece by piece; yields how many seconds nothing has to be done."""
    if resident.last is None:
        return
    with suppress(CqError, OSError), closing(resident.last.renew()) as index:
        try:
            yield from _stay_ready(index, resident)
        except Exception:
            report = index.mend()
            if report is None or not report.rebuilt.startswith("damaged"):
                raise


def _stay_ready(index: Index, resident: Resident) -> Iterator[float]:
    watches, key = resident.watches, resident.find_key(index)
    until, due = time.monotonic() + READY_SECONDS, 0.0
    while time.monotonic() < until:
        if watches.has_news(key):
            yield QUIET_SECONDS
            continue
        started = time.monotonic()
        if not watches.is_unchanged(key) or started > due:
            if not index.refresh().busy:
                watches.note_refresh(key, index.find_watched())
            took = time.monotonic() - started
            due = started + max(TRUST_SECONDS * 2 / 3, 100 * took)
            yield 0.0
        with open_snapshot(index) as snapshot:
            memory = snapshot.reader.memory
            if memory is not None and "ready" not in memory:
                relations = snapshot.relations
                for path in relations.files.hold_all():
                    relations.documents.load(path)
                    if warm.measure() > warm.READY_BYTES:
                        break
                    yield 0.0
                memory["ready"] = True
        if key not in watches.kept:
            return
        yield QUIET_SECONDS
