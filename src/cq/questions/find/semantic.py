"""What vectors and the reranker say about a question, where there are any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from cq.embed import Passage
from cq.indexing.vectors import Semantic
from cq.languages.facts import embedding_text
from cq.questions.find.scoring import Ranked, Vectors, find_chances
from cq.store.vectors import decode_rows

if TYPE_CHECKING:
    from numpy import bool_, float32, float64, int8, int64
    from numpy.typing import NDArray

    from cq.embed import Reranker, VectorIndex
    from cq.embed.blend import Blend, Blends
    from cq.model.config import FindConfig
    from cq.model.facts import FileFacts
    from cq.questions.find import FindOptions
    from cq.questions.find.candidates import Catalog
    from cq.store.read import Reader

READ, RERANKED = 40, 24  # candidates that are compared word by word, and by the reranker (training/README.md)


class Loaded(msgspec.Struct, frozen=True):
    """All vectors of a tree; rows are those of the matrices, `chunks` their numbers in the catalog, ascending."""

    chunks: NDArray[int64]
    body: NDArray[int8]
    body_scales: NDArray[float32]
    signature: NDArray[int8]
    signature_scales: NDArray[float32]
    body_index: VectorIndex
    signature_index: VectorIndex
    files: NDArray[float32]  # the direction of all bodies of a file together, for every file of the catalog
    backend: str  # that is asked: exact while the graphs of another are not there


def search_vectors(
    reader: Reader,
    catalog: Catalog,
    options: FindOptions,
    semantic: Semantic,
    allowed: NDArray[bool_],
    also: NDArray[int64] | None = None,
) -> Vectors | None:
    """The chunks most like the question, by body or by signature, and those of `also`, each with both; None where there
    are no vectors."""
    import numpy as np

    if semantic.embedder is None:
        return None
    loaded = load_vectors(reader, catalog, semantic)
    if loaded is None:
        return None
    query = semantic.embedder.embed_query(options.query)
    count = max((options.candidates or READ) * 2, 100)
    rows = None if bool(allowed[loaded.chunks].all()) else np.flatnonzero(allowed[loaded.chunks]).astype(np.int64)
    found = [index.search(query, count, rows)[0] for index in (loaded.body_index, loaded.signature_index)]
    if also is not None:
        found.append(np.flatnonzero(np.isin(loaded.chunks, also)).astype(np.int64))
    union = np.unique(np.concatenate(found))
    bodies = loaded.body[union].astype(np.float32) * loaded.body_scales[union, None]
    signatures = loaded.signature[union].astype(np.float32) * loaded.signature_scales[union, None]
    return Vectors(
        loaded.chunks[union],
        (bodies @ query).astype(np.float64),
        (signatures @ query).astype(np.float64),
        (loaded.files @ query).astype(np.float64),
    )


def load_vectors(reader: Reader, catalog: Catalog, semantic: Semantic) -> Loaded | None:
    """From the index, or as they were loaded for the question before this one."""
    import numpy as np

    from cq.embed.backend import open_graphs, read_graphs
    from cq.embed.exact import ExactIndex

    embedder, graphs = semantic.embedder, None
    if embedder is None:
        return None
    if semantic.graphs is not None and semantic.backend != "exact":
        graphs = read_graphs(semantic.graphs, catalog.tree, semantic.backend, embedder.identity)
    key = (*semantic.key, embedder.identity, reader.last_vector(catalog.tree), semantic.backend, graphs)
    kept: dict[tuple[object, ...], Loaded] = semantic.kept.setdefault("vectors", {})
    if semantic.key and key in kept:
        return kept[key]
    places = {path: number for number, path in enumerate(catalog.paths)}
    parts = [
        (rows, rows.chunks + catalog.starts[places[path]])
        for path, blob in reader.vectors(catalog.tree, embedder.identity)
        if path in places and (rows := decode_rows(blob, embedder.dimensions)) is not None
    ]
    if not parts:
        return None
    body = np.concatenate([rows.body for rows, _ in parts])
    body_scales = np.concatenate([rows.body_scales for rows, _ in parts])
    signature = np.concatenate([rows.signature for rows, _ in parts])
    signature_scales = np.concatenate([rows.signature_scales for rows, _ in parts])
    exact = {"body": ExactIndex(body, body_scales), "signature": ExactIndex(signature, signature_scales)}
    approximate = None
    if semantic.graphs is not None and graphs is not None:
        approximate = open_graphs(semantic.graphs, graphs, np.concatenate([rows.keys for rows, _ in parts]), exact)
    body_index, signature_index = approximate or exact.values()
    chunks = np.concatenate([chunks for _, chunks in parts])
    loaded = Loaded(
        chunks, body, body_scales, signature, signature_scales,
        body_index, signature_index, join_files(catalog, chunks, body), semantic.backend if approximate else "exact",
    )  # fmt: skip
    if semantic.key:
        kept.clear()
        kept[key] = loaded
    return loaded


def join_files(catalog: Catalog, chunks: NDArray[int64], body: NDArray[int8]) -> NDArray[float32]:
    """One direction for each file of the catalog. Codes are summed as they are: their scales differ little."""
    import numpy as np

    found = np.zeros((len(catalog.paths), body.shape[1]), np.float32)
    files, starts = np.unique(catalog.files[chunks], return_index=True)
    found[files] = np.add.reduceat(body, starts, axis=0, dtype=np.int32)
    return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-9)


def find_backend(reader: Reader, catalog: Catalog, semantic: Semantic) -> str:
    """The one that answers: exact while the graphs of another are not there."""
    loaded = load_vectors(reader, catalog, semantic)
    return loaded.backend if loaded is not None else "exact"


def rerank(
    reader: Reader,
    catalog: Catalog,
    options: FindOptions,
    config: FindConfig,
    semantic: Semantic,
    ranked: Sequence[Ranked],
    blends: Blends | None = None,
) -> list[Ranked]:
    """The best of the first stage in the order of all that is said of them, then the rest. Scores are the chance that
    was fitted for the models, the late interaction among them, or the reranker and the first stage as the user weighs
    them."""
    if semantic.reranker is None:
        return list(ranked)
    weights = find_weights(options, config, semantic)
    if weights is not None:
        return _weigh_as_said(reader, catalog, options.query, semantic.reranker, ranked, weights)
    if len(ranked) < 2:
        return list(ranked)
    first, rest = list(ranked[:READ]), ranked[READ:]
    chunks = [row.chunk for row in first]
    passages = dict(zip(chunks, read_passages(reader, catalog, chunks), strict=True))
    traits: dict[int, NDArray[float64]] = {}
    if blends is not None:
        from cq.embed.traits import find_traits
        from cq.embed.weights import load_late, load_verbs

        read = list(passages.values())
        traits = dict(zip(chunks, find_traits(options.query, read, load_verbs()), strict=True))
        first = _join(first, "late", load_late().score(options.query, read), blends.late, traits)
        first, rest = first[:RERANKED], [*first[RERANKED:], *rest]
    scores = semantic.reranker.score(options.query, [passages[row.chunk] for row in first])
    if blends is not None:
        first = _join(first, "rerank", scores, blends.final, traits)
    else:
        weights = semantic.reranker.weights
        first = _weigh(first, scores, weights[0] / sum(weights))
    return [*first, *(msgspec.structs.replace(row, score=min(row.score, first[-1].score)) for row in rest)]


def _weigh_as_said(
    reader: Reader,
    catalog: Catalog,
    query: str,
    reranker: Reranker,
    ranked: Sequence[Ranked],
    weights: tuple[float, float],
) -> list[Ranked]:
    """`rerank * weights[0] + vector * weights[1]` of every candidate and nothing else, each 0 to 1."""
    import numpy as np

    passages = read_passages(reader, catalog, [row.chunk for row in ranked])
    scores = np.asarray(reranker.score(query, passages), np.float64)
    if reranker.even is not None:
        scores = 1 / (1 + np.exp(reranker.even - scores))
    found: list[Ranked] = []
    for row, score in zip(ranked, np.clip(scores, 0, 1).round(4).tolist(), strict=True):
        vector = round(min(max(*row.own[1:3], 0.0), 1.0), 4)
        parts = msgspec.structs.replace(row.parts, rerank=score, vector=vector, prior=1.0, late=0.0)
        found.append(msgspec.structs.replace(row, parts=parts))
    return _sort(found, np.array([row.parts.rerank * weights[0] + row.parts.vector * weights[1] for row in found]))


def _join(
    rows: Sequence[Ranked],
    part: Literal["late", "rerank"],
    scores: NDArray[float32],
    fitted: Blend,
    traits: dict[int, NDArray[float64]],
) -> list[Ranked]:
    """Candidates of which one thing more is known, in the order of all of it."""
    import numpy as np

    table = np.column_stack([[row.own for row in rows], scores])
    priors, more = np.array([(row.parts.prior, row.parts.file) for row in rows]).T
    files = np.array([row.file for row in rows], np.int64)
    final = find_chances(fitted, table, priors, more, files, np.array([traits[row.chunk] for row in rows]))
    found = [
        msgspec.structs.replace(row, own=tuple(own))
        for row, own in zip(_with(rows, part, scores), table.tolist(), strict=True)
    ]
    return _sort(found, final)


def _weigh(rows: Sequence[Ranked], scores: NDArray[float32], share: float) -> list[Ranked]:
    """Candidates in the order of the reranker, which has this share of the score, and the first stage."""
    import numpy as np

    found = _with(rows, "rerank", scores)
    top = rows[0].score
    base = np.array([row.score for row in rows]) / max(top, 1e-9)
    said = np.array([row.parts.rerank * row.parts.prior for row in found])
    final = share * said + (1 - share) * base
    return _sort(found, final / max(float(final.max()), 1e-9) * top)


def _with(rows: Sequence[Ranked], part: Literal["late", "rerank"], scores: NDArray[float32]) -> list[Ranked]:
    import numpy as np

    from cq.embed.blend import stretch

    stretched = stretch(np.asarray(scores, np.float64)[:, None])[:, 0].round(4).tolist()
    return [
        msgspec.structs.replace(row, parts=msgspec.structs.replace(row.parts, **{part: value}))
        for row, value in zip(rows, stretched, strict=True)
    ]


def _sort(rows: Sequence[Ranked], final: NDArray[float64]) -> list[Ranked]:
    import numpy as np

    order = np.lexsort((np.arange(len(rows)), -final)).tolist()
    return [msgspec.structs.replace(rows[at], score=round(float(final[at]), 6)) for at in order]


def find_weights(options: FindOptions, config: FindConfig, semantic: Semantic) -> tuple[float, float] | None:
    """As the user has them; None where that is left to what was fitted."""
    if options.weights is not None or (config.rerank_weight, config.vector_weight) == (None, None):
        return options.weights
    given = (config.rerank_weight, config.vector_weight)
    defaults = semantic.reranker.weights if semantic.reranker else (0.5, 0.5)
    own, other = (default if value is None else value for value, default in zip(given, defaults, strict=True))
    return own, other


def read_passages(reader: Reader, catalog: Catalog, chunks: Sequence[int]) -> list[Passage]:
    """What a reranker reads of these chunks, each file decoded once."""
    held: dict[int, tuple[bytes, list[FileFacts]]] = {}
    found: list[Passage] = []
    for chunk in chunks:
        path, number = catalog.locate(chunk)
        content = catalog.contents[int(catalog.files[chunk])]
        if content not in held:
            held[content] = (reader.text(content), _flatten(reader.facts(content)))
        text, documents = held[content]
        for facts in documents:
            if number < len(facts.chunks):
                piece = facts.chunks[number]
                symbol = facts.symbols[piece.symbol] if piece.symbol >= 0 else None
                name, signature = (symbol.qualified_name, symbol.signature) if symbol else (piece.name, "")
                found.append(Passage(path, name, signature, embedding_text(text, facts, number)))
                break
            number -= len(facts.chunks)
    return found


def _flatten(facts: FileFacts) -> list[FileFacts]:
    found: list[FileFacts] = []
    todo = [facts]
    while todo:
        document = todo.pop()
        found.append(document)
        todo += reversed(document.embedded)
    return found
