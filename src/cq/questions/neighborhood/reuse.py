"""Neighborhoods that were found before, in a process that lives on: the same generation of the index gives the same
bundle, and another one is asked again only for slices that read something which has changed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

import msgspec

from cq.model.neighborhood import SliceKind
from cq.questions.neighborhood.bundle import Collected, Neighborhood, NeighborhoodOptions, Sources, assemble, collect
from cq.questions.neighborhood.members import WholeSlice
from cq.snapshot.files import IndexedFiles
from cq.snapshot.relations import Relations
from cq.store.read import Reader, Tree
from cq.store.trace import Trace

KEPT = 32


class _Entry(msgspec.Struct, frozen=True):
    generation: int
    head: str
    trace: Trace
    collected: Collected
    result: Neighborhood


def find_again(
    reader: Reader,
    tree: Tree,
    place: Hashable,
    options: NeighborhoodOptions,
    sources: Sources,
    memory: dict[str, Any],
    *,
    head: str = "",
    version: str = "",
) -> tuple[Neighborhood, tuple[SliceKind, ...]]:
    """And the slices that were there already. `place` names the index, `memory` is what outlives a question, `head`
    the commit that histories end at and the vectors there are. What language servers say is not kept: only they know
    how long it holds."""
    key = (place, version, msgspec.structs.replace(options, order=(), place=()))
    entries: OrderedDict[Hashable, _Entry] = memory.setdefault("neighborhoods", OrderedDict())
    entry = entries.get(key) if sources.servers is None else None
    if entry is not None and (entry.generation, entry.head) == (tree.generation, head):
        return entry.result, tuple(entry.collected.slices)
    trace = Trace()
    kept: dict[SliceKind, tuple[WholeSlice, int]] = {}
    if entry is not None:
        standing, read = reader.check(entry.trace), entry.collected.read
        if standing >= read.get("", standing + 1):
            for kind, part in entry.collected.slices.items():
                # Of histories and vectors no trace tells whether they are as they were.
                if read[kind] <= standing and (kind != "related" or (entry.head == head and sources.near is None)):
                    kept[kind] = part, read[kind]
        if kept:
            trace = entry.trace
            trace.cut(max(count for _, count in kept.values()))
    traced = reader.traced(trace)
    relations = Relations(IndexedFiles(traced, tree))
    collected = collect(relations, options, sources, version=version, trace=trace, kept=kept)
    result = assemble(collected, options)
    if sources.servers is None:
        entries[key] = _Entry(tree.generation, head, trace, collected, result)
        entries.move_to_end(key)
        while len(entries) > KEPT:
            entries.popitem(last=False)
    return result, collected.reused
