"""The reranker that is always there: a small cross-encoder, question and passage read together. No more than numpy.

Passages are not padded: the matrices see the tokens of all of them at once, only attention goes one by one.
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

_HEADS = 4
_ASKED = 32  # tokens of a question, with the place of the answer before them
_READ = 96  # different tokens of a passage
# Of each field (path, name, signature, body): tokens considered, and how much it says that a word is met there.
_LIMITS = (10, 16, 40, 224)
_MET = np.array([0, 2, 4, 3, 1])
_MET_IN_PASSAGE = 5


class CrossEncoder:
    weights = (0.5, 0.5)  # as fitted (weights/manifest.toml)
    tokens = 0  # nothing is sent

    def __init__(self, identity: str, vocabulary: Vocabulary, folder: Path):
        self.identity = identity
        self._vocabulary = vocabulary
        self._rows: NDArray[np.int8] = np.load(folder / "reranker_rows.npy", mmap_mode="r")
        with np.load(folder / "reranker.npz") as stored:
            self._weights: dict[str, Array] = {
                name: stored[name] * stored[f"{name}.scale"][:, None] if f"{name}.scale" in stored else stored[name]
                for name in stored.files
                if not name.endswith(".scale")
            }
            self._scales: Array = stored["table.weight.scale"]
        # Token 0 is nothing, and its stem meets none.
        self._stems = np.concatenate([[0], self._weights.pop("stems")]).astype(np.int64)
        self._layers = sum(name.endswith("look.weight") for name in self._weights)

    def score(self, query: str, passages: Sequence[Passage]) -> Array:
        if not passages:
            return np.zeros(0, np.float32)
        asked = np.array([0, *(token + 1 for token in self._vocabulary.encode(query, _ASKED - 1))])
        inputs = [self._read(asked, passage) for passage in passages]
        ends = np.cumsum([len(x) for x in inputs])
        x = np.concatenate(inputs)
        for layer in range(self._layers):
            x = self._attend(x, ends, f"layers.{layer}.")
        x = self._norm(x, "last")
        starts = np.concatenate([[0], ends[:-1]])
        means = np.add.reduceat(x, starts, axis=0) / (ends - starts)[:, None]
        read = np.concatenate([means, x[starts]], axis=1).astype(np.float32)
        sense = np.tanh(self._linear(read, "sense"))
        # What differs between machines is the last bits of a sum; they shall not decide an order.
        return np.round(self._linear(sense, "score")[:, 0], 3)

    def _read(self, asked: NDArray[np.int64], passage: Passage) -> Array:
        """Question and passage as one sequence of vectors: each token of the passage once, in its first field."""
        found: dict[int, int] = {}
        texts = (passage.path, passage.name, passage.signature, passage.body)
        for place, (text, limit) in enumerate(zip(texts, _LIMITS, strict=True), 1):
            for token in self._vocabulary.encode(text, limit):
                if len(found) < _READ:
                    found.setdefault(token + 1, place)
        tokens, places = np.array(list(found), np.int64), np.array(list(found.values()), np.int64)
        words, met = self._stems[asked], self._stems[tokens]
        same = (words[:, None] == met) & (words[:, None] > 0)
        meeting = np.concatenate(
            [np.where(same, _MET[places], 0).max(axis=1, initial=0), same.any(axis=0) * _MET_IN_PASSAGE]
        )
        sequence = np.concatenate([asked, tokens])
        position = np.concatenate([np.arange(len(asked)), _ASKED + np.arange(len(tokens))])
        place = np.concatenate([np.zeros(len(asked), np.int64), places])
        weights = self._weights
        x = self._rows[sequence] * self._scales[sequence, None] + weights["position"][position]
        return x + weights["place"][place] + weights["meeting"][meeting]

    def _attend(self, x: Array, ends: NDArray[np.int64], layer: str) -> Array:
        wide = self._linear(self._norm(x, layer + "before"), layer + "look")
        length, dims = x.shape
        looks = wide.reshape(length, 3, _HEADS, dims // _HEADS).transpose(1, 2, 0, 3)
        looks[0] *= np.float32((dims // _HEADS) ** -0.5)
        seen = np.empty((_HEADS, length, dims // _HEADS), np.float32)
        start = 0
        for end in ends.tolist():
            queries, keys, values = looks[:, :, start:end]
            scores = queries @ keys.transpose(0, 2, 1)
            scores -= scores.max(axis=2, keepdims=True)
            np.exp(scores, out=scores)
            scores /= scores.sum(axis=2, keepdims=True)
            seen[:, start:end] = scores @ values
            start = end
        x = x + self._linear(seen.transpose(1, 0, 2).reshape(length, dims), layer + "join")
        inner = self._linear(self._norm(x, layer + "between"), layer + "widen")
        return x + self._linear(np.maximum(inner, 0, out=inner), layer + "narrow")

    def _linear(self, x: Array, name: str) -> Array:
        found = x @ self._weights[name + ".weight"].T
        found += self._weights[name + ".bias"]
        return found

    def _norm(self, x: Array, name: str) -> Array:
        x = x - x.mean(axis=1, keepdims=True)
        x *= 1 / np.sqrt(np.square(x).mean(axis=1, keepdims=True) + np.float32(1e-5))
        return x * self._weights[name + ".weight"] + self._weights[name + ".bias"]
