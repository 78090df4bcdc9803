"""The status of an index, with how fresh it is and what holds for every answer from it."""

from __future__ import annotations

import msgspec

from cq.indexing.index import Index
from cq.indexing.status import find_changes, read_status
from cq.model.status import Freshness, Status
from cq.snapshot.snapshot import open_snapshot


def find_status(index: Index, *, embeddings: bool = False) -> Status:
    """Brings the index up to date first, where the policy says so."""
    check = index.keep_fresh()
    with open_snapshot(index) as snapshot:
        reader, tree, busy = snapshot.reader, snapshot.tree, snapshot.busy
        if index.revision is not None:
            freshness = Freshness(tree.generation, "refreshed", 0, 0, 0, False)
        elif check == "compared" or (check == "refreshed" and busy):
            changes = find_changes(reader, tree, index.root, index.settings)
            freshness = Freshness(
                tree.generation, "compared", changes.added, changes.changed, changes.removed, bool(changes), busy=busy
            )
        elif check == "recent":
            freshness = Freshness(tree.generation, check, busy=busy)
        else:
            freshness = Freshness(tree.generation, check, 0, 0, 0, False, busy=busy)
        status = read_status(reader, tree, index.place, freshness, list(snapshot.find_degraded()))
        if revision := index.revision:
            status = msgspec.structs.replace(status, root=f"{index.root} at {revision.ref} ({revision.commit[:12]})")
        if not embeddings:
            return status
        from cq.indexing.vectors import describe

        return msgspec.structs.replace(status, embeddings=describe(index, reader, tree))
