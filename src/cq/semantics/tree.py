"""The links of one tree as readers ask them, all sides of it over one memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cq.semantics.calls import LinkedCalls
from cq.semantics.documents import Documents, Index
from cq.semantics.meanings import Meanings
from cq.semantics.memory import Memory, open_memory
from cq.semantics.referrers import Referrers
from cq.semantics.usages import Usages
from cq.store.read import LinkedTree, Reader


class Semantics:
    """Who is it (`documents`), what does it mean (`calls`, `meanings`), who refers to it (`referrers`, `usages`). All
    that is remembered is in the memory."""

    def __init__(self, index: Index, memory: Memory) -> None:
        self.memory = memory
        self.documents = Documents(index, memory)
        self.calls = LinkedCalls(self.documents, memory)
        self.meanings = Meanings(self.documents, self.calls, memory)
        self.referrers = Referrers(self.documents, self.calls, memory)
        self.usages = Usages(self.documents, self.meanings, self.referrers, memory)


def open_semantics(reader: Reader, tree: int, load: Callable[[str, str], Any] | None = None) -> Semantics:
    """`load` gives a part of a file that may be at hand already; see LinkedTree."""
    return Semantics(LinkedTree(reader, tree, load), open_memory(reader, tree))
