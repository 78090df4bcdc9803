"""Vectors as questions need them: what there is to rank with, what is missing, and who makes it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from cq.embed.backend import FOLDER, choose_backend
from cq.indexing.embedding import (
    FORMAT_VERSION,
    EmbeddingJob,
    describe_embeddings,
    embed_tree,
    enqueue,
    get_embedder,
    get_reranker,
    measure_coverage,
    read_failure,
)
from cq.model.errors import StoreError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cq.embed import Embedder, Reranker
    from cq.indexing.embedding import EmbedReport
    from cq.indexing.index import Index
    from cq.indexing.refresh import Progress
    from cq.model.embedding import Coverage, EmbeddingState
    from cq.store.read import Reader, Tree

INLINE = 600  # chunks that a question makes itself rather than answer without


class Semantic(msgspec.Struct, frozen=True):
    """What there is to rank with; `note` says what is missing, in a few words. Without an embedder there are no
    vectors for this question."""

    note: str = ""
    embedder: Embedder | None = None
    reranker: Reranker | None = None
    key: tuple[object, ...] = ()  # names this state of the tree, for what is kept between questions
    backend: str = "exact"
    graphs: Path | None = None  # the folder with those of an approximate backend
    kept: dict[str, Any] = {}  # what was loaded for the question before


def embed(index: Index, on_progress: Callable[[Progress], None] | None = None) -> EmbedReport:
    """Makes the vectors that are missing; UsageError in a profile without any."""
    config = index.config()
    if config.find.profile == "lexical_only":
        hint = "set profile in [find] of cq.toml to 'default'"
        raise UsageError("the profile 'lexical_only' has no vectors", hint=hint)
    models = config.models
    report = embed_tree(
        index.place.file, index.root, get_embedder(models), backend=config.find.backend, on_progress=on_progress
    )
    price = models.voyage.price_per_million if models.embedder == "voyage" else models.openai.price_per_million
    return msgspec.structs.replace(report, cost=report.tokens * price / 1e6) if report.tokens and price else report


def embed_few(index: Index) -> None:
    """Makes the vectors that are missing where a question hardly notices; never fails one. It is done before a snapshot
    is opened, which does not see what is written later."""
    models = index.config().models
    # No question waits for a service.
    if index.config().find.profile == "lexical_only" or models.embedder != "local":
        return
    embedder = get_embedder(models)
    with index.reading() as (reader, tree):
        coverage = _measure(index, reader, tree, embedder.identity)
    if 0 < coverage.missing <= INLINE:
        with suppress(OSError, StoreError):
            embed_tree(index.place.file, index.root, embedder, wait=False)


def find_semantic(index: Index, reader: Reader, tree: Tree, *, background: bool) -> Semantic:
    """What a question in words can be ranked with, and what is missing for it; with `background` a process of its own
    is told to make that."""
    key, config, place = index.name_state(tree), index.config(), index.place
    if config.find.profile == "lexical_only":
        return Semantic("ranked by words: the profile is lexical_only", key=key, kept=index.kept)
    embedder = get_embedder(config.models)
    coverage = _measure(index, reader, tree, embedder.identity)
    note = ""
    if coverage.missing and background and not place.temporary:
        why = enqueue_missing(index, tree)
        note = f"ranked by words: the vectors are being made ({why or f'{coverage.percent} % are there'})"
    elif coverage.missing:
        note = f"ranked by words: {coverage.percent} % of the vectors are there (`cq index --embed` makes the rest)"
    if coverage.missing and (failure := read_failure(place.file)):
        note += f"; the last attempt failed: {failure}"
    if coverage.others:
        note += "; those there are of another embedder"
    if not coverage.ready:
        return Semantic(note, key=key, kept=index.kept)
    backend = choose_backend(config.find.backend, coverage.total)
    return Semantic(note, embedder, get_reranker(config.models), key, backend, place.file.parent / FOLDER, index.kept)


def enqueue_missing(index: Index, tree: Tree) -> str:
    """Has a process of its own make what is missing, graphs included; says why not, "" if it is on its way."""
    place = index.place
    if place.temporary:
        return "the index is temporary"
    identity = get_embedder(index.config().models).identity
    job = EmbeddingJob(
        FORMAT_VERSION, os.fspath(place.file), os.fspath(index.root), tree.generation, tree.config, identity
    )
    return enqueue(place.file, job)


def describe(index: Index, reader: Reader, tree: Tree) -> EmbeddingState:
    """Whether questions in words have vectors, and why not."""
    return describe_embeddings(index.place.file, reader, tree.id, index.config().find, index.config().models)


def _measure(index: Index, reader: Reader, tree: Tree, identity: str) -> Coverage:
    """As it was measured for the question before, if nothing changed since."""
    kept: dict[tuple[object, ...], Coverage] = index.kept.setdefault("coverage", {})
    key = (*index.name_state(tree), identity, reader.last_vector(tree.id))
    if key not in kept:
        kept.clear()
        kept[key] = measure_coverage(reader, tree.id, identity)
    return kept[key]
