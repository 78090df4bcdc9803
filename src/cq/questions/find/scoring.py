"""Scores of several kinds as one of 0 to 1, so that a threshold means the same for every question."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

from cq.model.find import ScoreParts
from cq.questions.find.evidence import WORDS

if TYPE_CHECKING:
    from numpy import float64, int64
    from numpy.typing import NDArray

    from cq.embed.blend import Blend
    from cq.questions.find.candidates import Catalog, Lexical
    from cq.questions.find.evidence import Evidence
    from cq.store.read import Reader

# What scores one half by words: a share of the question's words together with what speaks for the file. .5 then shows
# what is right to nine in ten questions, and nothing to one in three about something else (bench/find.md).
_EVEN = 0.45
# Least scores where nobody set one. A chance is small for many right answers: .005 keeps nearly all of those among the
# first ten, and hardly ever says that there is nothing.
LEAST, LEAST_CHANCE = 0.5, 0.005
# How much surer the best candidate is by what speaks for its file beyond what some file always has, and how far apart
# the others are from it. Chosen so that the tuning half of the public questions shows what is right (bench/find.md).
LIFT, USUAL, APART = 4.0, 0.5, 0.6
# Chances were fitted over hundreds of candidates: to be the best of a handful says little.
FEW = 40
# How like a question something must be for the question to be about this code at all: more, the larger the share of its
# words that nothing here has. Chosen on half of the repositories in bench/find.md.
ABOUT, ABSENT = 0.12, 0.4
# What has this share of the best one's own scores is as like the question as that one.
TWIN = 0.75
# What the second chunk of a file loses, the third twice, of all that a chunk can have (bench/find.md).
SPREAD = 0.1
# What the file has whose chunks are the best together, and how much worse than the best of all a chunk is that counts a
# third of it: one very good chunk, or several good ones.
TOGETHER, GOOD = 0.2, 0.15
# What a file has whose chunks, all of them together, are as like the question as can be.
ALIKE = 0.5


class Vectors(msgspec.Struct, frozen=True):
    """Chunks by their vectors, each with the likeness to the question of its body and of its signature, and every file
    of the catalog with that of all its bodies together; cosines."""

    chunks: NDArray[int64]
    body: NDArray[float64]
    signature: NDArray[float64]
    files: NDArray[float64]


class Ranked(msgspec.Struct, frozen=True):
    chunk: int  # of the catalog
    file: int
    score: float
    parts: ScoreParts
    own: tuple[float, ...] = ()  # words, body and signature as they are, not compared with other candidates
    is_chance: bool = False


def calibrate(value: float) -> float:
    """What words and their file are worth, as a score: half at `_EVEN`, towards 1 from there."""
    return 1 - math.exp(-value * math.log(2) / _EVEN)


def calibrate_alone(share: float) -> float:
    """The same of a chunk whose file is not known: one that has as much, and is the best."""
    return calibrate(share + WORDS * share + TOGETHER)


def is_elsewhere(lexical: Lexical, vectors: Vectors) -> bool:
    """Whether a question is about something that is not here: words of it are nowhere, and nothing is like it."""
    if not lexical.absent or not len(vectors.chunks):
        return False
    likeness = max(float(vectors.body.max()), float(vectors.signature.max()))
    return likeness < ABOUT + ABSENT * len(lexical.absent) / lexical.asked


def best_by_words(lexical: Lexical, priors: NDArray[float64], count: int) -> NDArray[int64]:
    """Places in `lexical`, the best first."""
    import numpy as np

    return np.lexsort((lexical.chunks, -lexical.scores * priors[lexical.chunks]))[: max(count * 5, 200)]


def blend(
    reader: Reader,
    catalog: Catalog,
    text: str,
    lexical: Lexical | None,
    vectors: Vectors | None,
    evidence: Evidence | None,
    count: int,
    fitted: Blend | None = None,
) -> list[Ranked]:
    """The best `count` chunks by words, vectors and what speaks for their files; ties in the order of paths and places.

    With vectors the score is the chance that was fitted for the models. Where none was, each kind of score is stretched
    to 0 to 1 over the candidates and weighed; the whole is then scaled by how good the best candidate is by itself, so
    that the best of a bad lot does not pass for good.
    """
    import numpy as np

    every = catalog.weigh(text)
    pool: dict[int, list[float]] = {}
    top = 0.0
    if vectors is not None and len(vectors.chunks):
        for at, chunk in enumerate(vectors.chunks.tolist()):
            pool[chunk] = [0.0, float(vectors.body[at]), float(vectors.signature[at])]
        best = max(float(vectors.body.max()), float(vectors.signature.max()))
        top = min(max(best, 0.0) * 1.25, 1.0)
    if evidence is not None:
        for chunk in evidence.best.tolist():
            pool.setdefault(chunk, [0.0, 0.0, 0.0])
    if lexical is not None and len(lexical.chunks):
        order = best_by_words(lexical, every, count)
        top = max(top, calibrate_alone(float(lexical.scores[order[0]])))
        known = np.flatnonzero(np.isin(lexical.chunks, list(pool)))
        for at in {*order.tolist(), *known.tolist()}:
            pool.setdefault(int(lexical.chunks[at]), [0.0, 0.0, 0.0])[0] = float(lexical.scores[at])
    if not pool:
        return []
    chunks = np.array(sorted(pool), np.int64)
    table = np.array([pool[chunk] for chunk in chunks.tolist()])
    priors, files = every[chunks] * catalog.find_inline_tests(reader, chunks, text), catalog.files[chunks]
    parts, joined = table, table[:, 0]
    if vectors is not None:
        from cq.embed.blend import stretch
        from cq.embed.weights import load_manifest

        weights = (fitted or load_manifest().first).order
        parts = stretch(table)
        joined = parts @ np.array(weights) / sum(weights)
    more = np.zeros(len(chunks))
    if evidence is not None:
        more = evidence.of(catalog, chunks) + TOGETHER * gather(joined * priors, files)
        if vectors is not None:
            more += ALIKE * vectors.files[files]
    if vectors is not None and fitted is not None:
        final = find_chances(fitted, table, priors, more, files)
    else:
        final = spread((joined + more) * priors, files)
        if vectors is None:
            final = np.array([calibrate(value) for value in final.tolist()])
        else:
            final = final / max(float(final.max()), 1e-9) * top
    order = np.lexsort((chunks, -final))[:count]
    return [
        Ranked(
            int(chunks[at]),
            int(files[at]),
            max(round(float(final[at]), 6), 0.0),
            ScoreParts(
                *(round(float(parts[at, kind]), 4) for kind in range(3)),
                file=round(float(more[at]), 4),
                prior=float(priors[at]),
            ),
            tuple(table[at].tolist()),
            fitted is not None and vectors is not None,
        )
        for at in order.tolist()
    ]


def find_chances(
    fitted: Blend,
    table: NDArray[float64],
    priors: NDArray[float64],
    more: NDArray[float64],
    files: NDArray[int64],
    traits: NDArray[float64] | None = None,
) -> NDArray[float64]:
    """The chance of each candidate. It was fitted without what speaks for files: that decides the order with the
    models, and the more of it the best one has, the surer it is."""
    import numpy as np

    if not more.any():
        return fitted.score(table, priors, traits)
    weight = sum(fitted.order)
    joined = fitted.join(table, traits)
    sure = int(np.argmax(joined * priors))
    value = spread((joined / weight + more) * priors, files)
    best = joined[sure] * priors[sure] * fitted.slope + table[sure] @ np.array(fitted.own) + fitted.bias
    best += LIFT * max(float(more[np.argmax(value)]) - USUAL, 0.0)
    return 1 / (1 + np.exp(-(best + (value - value.max()) * weight * fitted.slope * APART)))


def gather(scores: NDArray[float64], files: NDArray[int64]) -> NDArray[float64]:
    """How good all chunks of its file are together, for each chunk; 1 for the best file. A file that a question is
    about has several chunks that are, where one that happens to share its words has one."""
    import numpy as np

    sums = np.bincount(files, np.exp((scores - scores.max()) / GOOD))
    return sums[files] / sums.max()


def spread(scores: NDArray[float64], files: NDArray[int64]) -> NDArray[float64]:
    """Each further chunk of a file a little lower, so that the first ones are of several files."""
    import numpy as np

    found = scores.copy()
    counts: dict[int, int] = {}
    for at in np.lexsort((np.arange(len(scores)), -scores)).tolist():
        nth = counts.get(int(files[at]), 0)
        counts[int(files[at])] = nth + 1
        found[at] -= SPREAD * nth
    return found
