"""Scores of several kinds as one of 0 to 1: the chance that this candidate is what was asked for.

The order of candidates comes from their scores stretched over the candidates; how good all of them are, from the best
one's own scores. Both were fitted on packages that no model was trained on (training/blend.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Blend(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Weights of the columns: always lexical, body, signature; then the late interaction, then the reranker. And, where
    passages were read, of what they are (`cq.embed.traits`)."""

    order: tuple[float, ...]  # of the stretched scores
    own: tuple[float, ...]  # of the best candidate's scores as they are
    slope: float
    bias: float
    traits: tuple[float, ...] = ()

    def join(self, columns: NDArray[np.float64], traits: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """One score for each candidate; only what it is among these candidates means something."""
        joined = stretch(columns) @ np.array(self.order)
        return joined if traits is None else joined + traits @ np.array(self.traits)

    def score(
        self,
        columns: NDArray[np.float64],
        priors: NDArray[np.float64] | None = None,
        traits: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """One row for each candidate: the share of the question's words (0 to 1), the cosines of body and signature,
        what the late interaction and the reranker say. Row by row the chance, in the same order as the joined scores.
        `priors` say how much of its joined score each candidate keeps."""
        if not len(columns):
            return np.zeros(0)
        joined = self.join(columns, traits)
        if priors is not None:
            joined = joined * priors
        own = columns[np.argmax(joined)] @ np.array(self.own)
        return 1 / (1 + np.exp(-(joined * self.slope + own + self.bias)))

    def without_words(self) -> Blend:
        """For questions that ask vectors alone: the other columns have the weight of the words among them. Not fitted
        again, but of what it says .2–.4 on the tuning sets .21 was right, .4–.6 .42, .6–.8 .81."""
        more = sum(self.order) / sum(self.order[1:])
        order = (0.0, *(weight * more for weight in self.order[1:]))
        return msgspec.structs.replace(self, order=order, own=(0.0, *self.own[1:]))


class Blends(msgspec.Struct, frozen=True):
    first: Blend  # of words and vectors, of all candidates
    late: Blend  # and the late interaction, of the best
    final: Blend  # and the reranker

    def without_words(self) -> Blends:
        return Blends(self.first.without_words(), self.late.without_words(), self.final.without_words())


def stretch(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each column to 0..1 over its rows; one that says nothing is 0. One row alone has all that it has anything of."""
    if len(columns) == 1:
        return (columns > 0).astype(np.float64)
    least, most = columns.min(axis=0), columns.max(axis=0)
    return (columns - least) / np.where(most > least, most - least, 1)
