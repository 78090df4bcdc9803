"""Everything around one symbol: structure → links → providers → merge → artifacts and layout.

`find_neighborhood` is the whole way; each step is a module. Nothing is written here: what is too long for the answer is
handed back as artifacts.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from cq.questions.neighborhood.bundle import Neighborhood, NeighborhoodOptions, Sources, find_neighborhood
from cq.questions.neighborhood.members import Found
from cq.snapshot.relations import linked

if TYPE_CHECKING:
    from collections.abc import Callable

    from cq.model.answer import Answer
    from cq.snapshot.snapshot import Snapshot
    from cq.snapshot.target import Definition

__all__ = ["Found", "Neighborhood", "NeighborhoodOptions", "Sources", "ask", "find_neighborhood"]


@linked
def ask(snapshot: Snapshot, options: NeighborhoodOptions) -> Answer:
    from cq.questions.neighborhood.bundle import keep_stored
    from cq.questions.neighborhood.layout import lay_out
    from cq.questions.neighborhood.reuse import find_again
    from cq.source.git import find_head

    order = options.order or snapshot.config.neighborhood.section_order.order
    options = msgspec.structs.replace(options, order=order)
    reader, tree, root = snapshot.reader, snapshot.tree, os.fspath(snapshot.root)
    on = snapshot.has_warm_servers() if options.lsp is None else options.lsp
    near = _find_near(snapshot)
    sources = Sources(snapshot.read_history, near, snapshot.open_servers() if on else None)
    place = (*snapshot.state[:3], root)  # of the index, whatever its generation
    head = f"{find_head(root)} {near and reader.last_vector(tree.id)}"
    kept, version = snapshot.index.kept, snapshot.version
    found, _ = find_again(reader, tree, place, options, sources, kept, head=head, version=version)
    saved = snapshot.save(found.overflow)
    answer = lay_out(snapshot.indexed, options, keep_stored(found, {ref.id for ref in saved}))
    return msgspec.structs.replace(answer, artifacts=saved)


def _find_near(snapshot: Snapshot) -> Callable[[Definition], Found] | None:
    """Asks the vectors that are there for definitions about the same; None where there are none."""
    reader, tree = snapshot.reader, snapshot.tree
    if snapshot.config.find.profile == "lexical_only" or not reader.last_vector(tree.id)[0]:
        return None

    def ask_near(subject: Definition) -> Found:
        from cq.indexing.embedding import get_embedder
        from cq.questions.neighborhood.near import find_near

        return find_near(snapshot, get_embedder(), subject)

    return ask_near
