"""Word by word: of every word of a question, how like it the most alike word of a passage is. No more than numpy.

A vector says what a passage is about as a whole; this says which of the words of the question it has, in which form.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cq.embed import Passage
from cq.embed.words import Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float32]

ASKED = 31  # tokens of a question
LIMITS = (10, 16, 40, 224)  # tokens of path, name, signature and body
BODY = 64  # different tokens of a body, of those


class LateInteraction:
    def __init__(self, vocabulary: Vocabulary, folder: Path):
        self._vocabulary = vocabulary
        self._rows: NDArray[np.int8] = np.load(folder / "late_rows.npy", mmap_mode="r")
        with np.load(folder / "late.npz") as stored:
            # What a token weighs in a question and in a passage, as logarithms; what it says to be met in each field,
            # and to be asked for there; how much less a word says that all of the passages have.
            self._asked, self._told = (stored[name].astype(np.float32) for name in ("asked", "told"))
            self._forth, self._back = stored["forth"], stored["back"]
            self._common = float(stored["common"])

    def score(self, query: str, passages: Sequence[Passage]) -> Array:
        """Higher is better. A word that all passages have says little: all candidates come at once."""
        words = np.array(self._vocabulary.encode(query, ASKED), np.int64)
        if not len(words) or not passages:
            return np.zeros(len(passages), np.float32)
        own, count = self._directions(words), len(passages)
        met = np.zeros((count, len(words), len(LIMITS)), np.float32)
        back = np.zeros(count)
        fields = list(zip(*(self._read(passage) for passage in passages), strict=True))
        for field, texts in enumerate(fields):
            # Before each text comes nothing, which is like nothing: no text is empty.
            tokens = np.array([token for text in texts for token in (-1, *text)], np.int64)
            sizes = np.array([len(text) + 1 for text in texts])
            starts, nothing = np.cumsum(sizes) - sizes, tokens < 0
            kinds, places = np.unique(tokens, return_inverse=True)
            like = np.maximum(own @ self._directions(kinds).T, 0)[:, places]
            like[:, nothing] = 0
            met[:, :, field] = np.maximum.reduceat(like, starts, axis=1).T
            if self._back[field]:
                heavy = np.where(nothing, 0, np.exp(self._told[tokens]))
                got = np.add.reduceat(like.max(axis=0) * heavy, starts)
                back += self._back[field] * got / (np.add.reduceat(heavy, starts) + 1e-6)
        heavy = np.exp(self._asked[words] - self._common * met.max(axis=2).mean(axis=0))
        forth = (met @ self._forth) @ (heavy / heavy.sum())
        # What differs between machines is the last bits of a sum; they shall not decide an order.
        return np.round(forth + back, 3).astype(np.float32)

    def _read(self, passage: Passage) -> list[list[int]]:
        texts = (passage.path, passage.name, passage.signature, passage.body)
        *heads, body = (self._vocabulary.encode(text, limit) for text, limit in zip(texts, LIMITS, strict=True))
        return [*heads, list(dict.fromkeys(body))[:BODY]]

    def _directions(self, tokens: NDArray[np.int64]) -> Array:
        rows = self._rows[tokens].astype(np.float32)
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
