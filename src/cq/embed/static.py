"""The embedder that is always there: one trained vector per token, summed. No network, no more than numpy.

Sums are of whole numbers, so that the same text gives the same bytes on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from cq.embed import Passage
from cq.embed.words import Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray

_BLOCK = 64  # passages summed at once: their rows stay in the cache
_UNIT = 4096  # what a token weight of one is, in whole numbers


class Fields(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many tokens of each field are read, and what one of them weighs."""

    path: tuple[int, float]
    name: tuple[int, float]
    signature: tuple[int, float]
    body: tuple[int, float]


class StaticEmbedder:
    batch, tokens = 2000, 0

    def __init__(self, identity: str, fields: Fields, vocabulary: Vocabulary, folder: Path):
        self.identity = identity
        self.vocabulary = vocabulary
        self._fields = fields
        self._rows: NDArray[np.int8] = np.load(folder / "static_rows.npy", mmap_mode="r")
        self._scales: NDArray[np.float64] = np.load(folder / "static_scales.npy").astype(np.float64)
        self.dimensions = int(self._rows.shape[1])

    def embed_query(self, text: str) -> NDArray[np.float32]:
        tokens = self.vocabulary.encode(text, self._fields.body[0])
        return self.sum([(tokens, [1.0] * len(tokens))])[0]

    def embed(self, passages: Sequence[Passage]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        wholes = np.zeros((len(passages), self.dimensions), np.float32)
        heads = np.zeros_like(wholes)
        fields, encode = self._fields, self.vocabulary.encode
        for at in range(0, len(passages), _BLOCK):
            whole: list[tuple[list[int], list[float]]] = []
            head: list[tuple[list[int], list[float]]] = []
            for passage in passages[at : at + _BLOCK]:
                tokens: list[int] = []
                weights: list[float] = []
                for text, (limit, weight) in (
                    (passage.path, fields.path),
                    (passage.name, fields.name),
                    (passage.signature, fields.signature),
                ):
                    found = encode(text, limit)
                    tokens += found
                    weights += [weight] * len(found)
                body = encode(passage.body, fields.body[0])
                head.append((tokens, weights))
                whole.append((tokens + body, weights + [fields.body[1]] * len(body)))
            wholes[at : at + _BLOCK] = self.sum(whole)
            heads[at : at + _BLOCK] = self.sum(head)
        return wholes, heads

    def sum(self, texts: Sequence[tuple[Sequence[int], Sequence[float]]]) -> NDArray[np.float32]:
        """Of every text the normalised sum of its tokens, each weighed down by the root of how often it occurs."""
        sums = np.zeros((len(texts), self.dimensions), np.int64)
        lengths = [len(tokens) for tokens, _ in texts]
        if sum(lengths):
            size = len(self._scales)
            owners = np.repeat(np.arange(len(texts)), lengths)
            tokens = np.concatenate([np.asarray(tokens, np.int64) for tokens, _ in texts])
            weights = np.concatenate([np.asarray(weights, np.float64) for _, weights in texts])
            keys, inverse, counts = np.unique(owners * size + tokens, return_inverse=True, return_counts=True)
            tokens = keys % size
            weights = np.bincount(inverse, weights) / np.sqrt(counts) * self._scales[tokens]
            whole = np.rint(weights * _UNIT).astype(np.int32)
            rows = self._rows[tokens] * whole[:, None]
            starts = np.flatnonzero(np.diff(keys // size, prepend=-1))
            sums[keys[starts] // size] = np.add.reduceat(rows, starts, axis=0)
        norms = np.sqrt((sums * sums).sum(axis=1, keepdims=True).astype(np.float64))
        return (sums / np.maximum(norms, 1)).astype(np.float32)
