"""Which files changed together, by the newest commits; read from git once per commit and kept beside the index."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from cq.model.history import History
from cq.opening import read_file
from cq.source.checkout import GitError
from cq.source.git import GitLimitError, find_commits, find_head
from cq.source.read import content_hash
from cq.store.lock import write_file

if TYPE_CHECKING:
    from pathlib import Path

    from cq.indexing.location import Place

COMMITS = 500


def read_history(root: Path, place: Place) -> History:
    """Empty where there is no repository; `note` says why git could not be asked. Costs a file while no one commits."""
    head = find_head(os.fspath(root))
    if not head:
        return History()
    file = place.file.parent / f"history-{content_hash(os.fsencode(root))}.msgpack"
    with suppress(OSError, msgspec.MsgspecError):
        known = msgspec.msgpack.decode(read_file(file), type=History)
        if known.head == head and known.limit == COMMITS:
            return known
    try:
        found = History(head, COMMITS, tuple(find_commits(root, COMMITS)))
    except GitLimitError as error:
        found = History(head, COMMITS, note=str(error))
    except GitError as error:
        return History(head, COMMITS, note=str(error))
    with suppress(OSError):
        write_file(file, [msgspec.msgpack.encode(found)])
    return found
