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
    """Weights of the columns, always lexical, body, signature and, where it was asked, reranker."""

    order: tuple[float, ...]  # of the stretched scores
    own: tuple[float, ...]  # of the best candidate's scores as they are
    slope: float
    bias: float

    def score(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """One row for each candidate: the share of the question's words (0 to 1), the cosines of body and signature,
        the reranker's score. Row by row the chance, in the same order as the joined scores."""
        if not len(columns):
            return np.zeros(0)
        joined = stretch(columns) @ np.array(self.order)
        own = columns[np.argmax(joined)] @ np.array(self.own)
        return 1 / (1 + np.exp(-(joined * self.slope + own + self.bias)))


def stretch(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each column to 0..1 over its rows; one that says nothing is 0."""
    least, most = columns.min(axis=0), columns.max(axis=0)
    return (columns - least) / np.where(most > least, most - least, 1)
