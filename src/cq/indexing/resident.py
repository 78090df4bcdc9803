"""What a process that answers many questions keeps from one to the next."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from cq.indexing.events import Key, Watches

if TYPE_CHECKING:
    from cq.indexing.index import Index
    from cq.store.warm import Readers


class Resident:
    """Readers with what they decoded, watches on the trees, and the index that was asked last. It is for a process that
    asks in one thread."""

    def __init__(self) -> None:
        self.readers: Readers = {}
        self.watches = Watches()
        self.kept: dict[str, Any] = {}  # what one question loaded for the next
        self.last: Index | None = None

    def is_unchanged(self, index: Index) -> bool:
        """True when it is known that a refresh would find nothing to do."""
        return self.watches.is_unchanged(self.find_key(index))

    def note_refresh(self, index: Index) -> None:
        """After a refresh that began after `is_unchanged` was asked."""
        self.watches.note_refresh(self.find_key(index), index.find_watched())
        self.last = None if index.place.temporary else index

    def find_key(self, index: Index) -> Key:
        return os.fspath(index.place.file), os.fspath(index.root), index.settings.key()
