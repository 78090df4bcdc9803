"""Scores of several kinds as one of 0 to 1, so that a threshold means the same for every question."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from cq.model.find import ScoreParts

if TYPE_CHECKING:
    from numpy import float64, int64
    from numpy.typing import NDArray

    from cq.features.find.candidates import Catalog, Lexical

# Of words, body vectors and signature vectors in the first stage, as fitted (embed/weights/manifest.toml).
WEIGHTS = (0.29, 0.4, 0.31)
# Where a share of the question's words reads as an even chance; fitted on the questions of the bench (docs/find.md).
_EVEN = 0.2


class Vectors(msgspec.Struct, frozen=True):
    """Chunks by their vectors, each with the likeness to the question of its body and of its signature; cosines."""

    chunks: NDArray[int64]
    body: NDArray[float64]
    signature: NDArray[float64]


class Ranked(msgspec.Struct, frozen=True):
    chunk: int  # of the catalog
    score: float
    parts: ScoreParts


def calibrate(share: float) -> float:
    """A share of what a question's words could be worth, as a score: half at `_EVEN`, towards 1 from there."""
    return 1 - math.exp(-share * math.log(2) / _EVEN)


def blend(
    catalog: Catalog, lexical: Lexical | None, vectors: Vectors | None, count: int, weights: tuple[float, ...] = WEIGHTS
) -> list[Ranked]:
    """The best `count` chunks by words and vectors together; ties in the order of paths and places.

    Each kind of score is stretched to 0 to 1 over the candidates and weighed; the whole is then scaled by how good the
    best candidate is by itself, so that the best of a bad lot does not pass for good.
    """
    import numpy as np

    pool: dict[int, list[float]] = {}
    top = 0.0
    wide = max(count * 5, 200)
    if lexical is not None and len(lexical.chunks):
        scores = lexical.scores * catalog.priors[lexical.chunks]
        order = np.lexsort((lexical.chunks, -scores))[:wide]
        top = calibrate(float(lexical.scores[order[0]]))
        for at in order.tolist():
            pool.setdefault(int(lexical.chunks[at]), [0.0, 0.0, 0.0])[0] = float(lexical.scores[at])
    if vectors is not None and len(vectors.chunks):
        for at, chunk in enumerate(vectors.chunks.tolist()):
            row = pool.setdefault(chunk, [0.0, 0.0, 0.0])
            row[1], row[2] = float(vectors.body[at]), float(vectors.signature[at])
        best = max(float(vectors.body.max()), float(vectors.signature.max()))
        top = max(top, min(max(best, 0.0) * 1.25, 1.0))
    if not pool:
        return []
    chunks = np.array(sorted(pool), np.int64)
    table = np.array([pool[chunk] for chunk in chunks.tolist()])
    priors = catalog.priors[chunks]
    if vectors is None:
        final = np.array([calibrate(share) for share in table[:, 0].tolist()]) * priors
        parts = table.copy()
    else:
        parts = np.column_stack([_stretch(table[:, at]) for at in range(3)])
        weighed = parts @ np.array(weights[:3]) * priors
        final = weighed / max(float(weighed.max()), 1e-9) * top
    order = np.lexsort((chunks, -final))[:count]
    return [
        Ranked(
            int(chunks[at]),
            round(float(final[at]), 6),
            ScoreParts(*(round(float(parts[at, kind]), 4) for kind in range(3)), prior=float(priors[at])),
        )
        for at in order.tolist()
    ]


def _stretch(column: NDArray[float64]) -> NDArray[float64]:
    least, most = float(column.min()), float(column.max())
    return (column - least) / (most - least) if most > least else column * 0
