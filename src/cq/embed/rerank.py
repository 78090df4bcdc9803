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
_BLOCK = 256  # tokens that go through the wide matrices at once: what lies between these stays in the cache


class CrossEncoder:
    weights = (0.5, 0.5)  # as fitted (weights/manifest.toml)
    even: float | None = -3.0  # where likely right and wrong ones part (bench/find.md)
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
        layers = [f"layers.{n}." for n in range(sum(name.endswith("look.weight") for name in self._weights))]
        for layer in layers:
            # What a norm weighs and adds, the matrix behind it can do as well; so can it scale what looks.
            for norm, matrix in (("before", "look"), ("between", "widen")):
                gain, add = self._weights.pop(f"{layer}{norm}.weight"), self._weights.pop(f"{layer}{norm}.bias")
                weight = self._weights[f"{layer}{matrix}.weight"]
                self._weights[f"{layer}{matrix}.bias"] += (weight @ add).astype(np.float32)
                self._weights[f"{layer}{matrix}.weight"] = weight * gain
            dims = len(self._weights[layer + "join.weight"])
            for kind in ("weight", "bias"):
                self._weights[f"{layer}look.{kind}"][:dims] *= np.float32((dims // _HEADS) ** -0.5)
        late = int(self._weights.pop("late"))
        self._layers, self._late = layers[: len(layers) - late], layers[len(layers) - late :]

    def score(self, query: str, passages: Sequence[Passage]) -> Array:
        """What a word says depends on how many of the other passages have it too: all candidates come at once."""
        if not passages:
            return np.zeros(0, np.float32)
        asked = np.array([0, *(token + 1 for token in self._vocabulary.encode(query, _ASKED - 1))])
        own, others, sizes = self._read(asked, passages)
        long, dims = len(asked), others.shape[1]
        # The tokens of a passage behind its question, one passage behind the other.
        starts = np.cumsum(sizes + long) - sizes - long
        mine = (starts[:, None] + np.arange(long)).ravel()
        x = np.empty((len(mine) + len(others), dims), np.float32)
        theirs = np.ones(len(x), bool)
        theirs[mine] = False
        x[mine], x[theirs] = own.reshape(-1, dims), others
        for layer in self._layers:
            x = self._attend(x, np.cumsum(sizes + long), layer)
        own, seen, ends = x[mine], _normed(x), np.cumsum(sizes + long)
        for layer in self._late:
            seen[mine] = _normed(own)
            own = self._ask(own, seen, mine, ends, layer)
        own = _normed(own) * self._weights["last.weight"] + self._weights["last.bias"]
        own = own.reshape(len(sizes), long, dims)
        sense = np.tanh(self._linear(np.concatenate([own.mean(axis=1), own[:, 0]], axis=1), "sense"))
        # What differs between machines is the last bits of a sum; they shall not decide an order.
        return np.round(self._linear(sense, "score")[:, 0], 3)

    def _read(self, asked: NDArray[np.int64], passages: Sequence[Passage]) -> tuple[Array, Array, NDArray[np.int64]]:
        """As vectors: the question once for each passage, the tokens of all passages one behind the other, and how many
        each has. A token of a passage counts once, in its first field."""
        found: list[dict[int, int]] = []
        for passage in passages:
            read: dict[int, int] = {}
            texts = (passage.path, passage.name, passage.signature, passage.body)
            for place, (text, limit) in enumerate(zip(texts, _LIMITS, strict=True), 1):
                for token in self._vocabulary.encode(text, limit):
                    if len(read) < _READ:
                        read.setdefault(token + 1, place)
            found.append(read)
        sizes = np.array([len(read) for read in found])
        tokens = np.array([token for row in found for token in row], np.int64)
        places = np.array([place for row in found for place in row.values()], np.int64)
        owners = np.repeat(np.arange(len(found)), sizes)
        words, met = self._stems[asked], self._stems[tokens]
        same = (words[:, None] == met) & (words[:, None] > 0)
        best = np.zeros((len(found), len(words)), np.int64)
        word, at = np.nonzero(same)
        np.maximum.at(best, (owners[at], word), _MET[places[at]])
        more = max(len(found) - 1, 1)
        shares = np.stack([_others(best > 0) / more, _others(best == _MET.max()) / more], 2).astype(np.float32)
        # Of how many passages a stem is in, once for each of them.
        pairs = np.unique(owners * len(self._stems) + met)
        often = np.bincount(pairs % len(self._stems), minlength=len(self._stems))
        common = np.where(met > 0, (often[met] - 1) / more, 0).astype(np.float32)
        weights, position = self._weights, _ASKED + np.arange(len(tokens)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        own = self._rows[asked] * self._scales[asked, None] + weights["position"][: len(asked)] + weights["place"][0]
        own = own + weights["meeting"][best] + shares @ weights["share"][:2]
        others = self._rows[tokens] * self._scales[tokens, None] + weights["position"][position]
        others += weights["place"][places] + weights["meeting"][same.any(axis=0) * _MET_IN_PASSAGE]
        others += common[:, None] * weights["share"][2]
        return own.astype(np.float32), others.astype(np.float32), sizes

    def _attend(self, x: Array, ends: NDArray[np.int64], layer: str) -> Array:
        """Question and passage look at themselves and at each other."""
        length, dims = x.shape
        looks = self._linear(_normed(x), layer + "look").reshape(length, 3, _HEADS, -1).transpose(1, 2, 0, 3)
        seen = np.empty((length, _HEADS, dims // _HEADS), np.float32)
        start = 0
        for end in ends.tolist():
            queries, keys, values = looks[:, :, start:end]
            seen[start:end] = _mix(queries, keys, values).transpose(1, 0, 2)
            start = end
        return self._think(x, seen.reshape(length, dims), layer)

    def _ask(self, own: Array, seen: Array, mine: NDArray[np.int64], ends: NDArray[np.int64], layer: str) -> Array:
        """The question alone looks, at itself and at the passage, which stays what it is. So few look at so many that
        keys and values are not made: the queries are turned to where the tokens lie, and what they saw is turned back.
        """
        length, dims = own.shape
        weight, bias = self._weights[layer + "look.weight"], self._weights[layer + "look.bias"]
        asks, keys, values = weight.reshape(3, _HEADS, -1, dims)
        turned = np.empty((len(ends), _HEADS, length // len(ends), dims), np.float32)
        for head, add in enumerate(bias[:dims].reshape(_HEADS, -1)):
            queries = seen[mine] @ asks[head].T + add
            turned[:, head] = (queries @ keys[head]).reshape(len(ends), -1, dims)
        start = 0
        for rows, end in zip(turned.reshape(len(ends), -1, dims), ends.tolist(), strict=True):
            rows[:] = _mix(rows, seen[start:end], seen[start:end])
            start = end
        back = [turned[:, head].reshape(length, dims) @ values[head].T for head in range(_HEADS)]
        return self._think(own, np.concatenate(back, axis=1) + bias[2 * dims :], layer)

    def _think(self, x: Array, seen: Array, layer: str) -> Array:
        for at in range(0, len(x), _BLOCK):
            rows = x[at : at + _BLOCK]
            rows += self._linear(seen[at : at + _BLOCK], layer + "join")
            inner = self._linear(_normed(rows), layer + "widen")
            rows += self._linear(np.maximum(inner, 0, out=inner), layer + "narrow")
        return x

    def _linear(self, x: Array, name: str) -> Array:
        found = x @ self._weights[name + ".weight"].T
        found += self._weights[name + ".bias"]
        return found


def _mix(queries: Array, keys: Array, values: Array) -> Array:
    """The values, by how much each query likes their keys."""
    scores = queries @ keys.swapaxes(-1, -2)
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    totals = scores.sum(axis=-1, keepdims=True)
    mixed = scores @ values
    mixed /= totals
    return mixed


def _normed(x: Array) -> Array:
    size = x.shape[1]
    moved = x - (x @ np.full(size, 1 / size, np.float32))[:, None]
    moved *= (1 / np.sqrt(np.einsum("ij,ij->i", moved, moved) / size + 1e-5))[:, None].astype(np.float32)
    return moved.astype(np.float32, copy=False)


def _others(flags: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Of every passage, and of every word of the question: in how many of the other passages it is met."""
    return flags.sum(axis=0) - flags
