"""Words against words: BM25 over the fields of a passage, held in memory. What `cq find` asks its index for, the
models are trained beside and measured beside."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cq.embed import Passage
from cq.embed.words import split_words

STOP = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "been",
        "by",
        "can",
        "do",
        "does",
        "for",
        "from",
        "has",
        "have",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "of",
        "on",
        "or",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "this",
        "to",
        "was",
        "we",
        "when",
        "where",
        "which",
        "will",
        "with",
        "you",
        "your",
        "how",
        "what",
        "who",
        "why",
        "i",
    ]
)
WEIGHTS = {"name": 5.0, "qualifier": 2.0, "path": 2.0, "body": 1.0}
K1, B = 1.2, 0.75


def stem(word: str) -> str:
    """Light: plural, -ing, -ed, -er and -ly fall off what is long enough to stay a word."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    for ending in ("ing", "ed", "ly", "er", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)]
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def terms(text: str) -> list[str]:
    return [stem(word) for word in split_words(text) if word not in STOP]


class Fielded:
    """BM25F: counts are weighed by field before they saturate. `fields` off: plain BM25 of everything as one text."""

    def __init__(self, passages: Sequence[Passage], fields: bool = True):
        postings: dict[str, list[tuple[int, float]]] = defaultdict(list)
        sizes = np.zeros(len(passages))
        for number, passage in enumerate(passages):
            counts: Counter[str] = Counter()
            qualifier, _, name = passage.name.rpartition(".")
            for text, weight in (
                (passage.path, WEIGHTS["path"]),
                (qualifier, WEIGHTS["qualifier"]),
                (name, WEIGHTS["name"]),
                (passage.body, WEIGHTS["body"]),
            ):
                found = terms(text)
                sizes[number] += len(found)
                for term in found:
                    counts[term] += weight if fields else 1.0  # pyright: ignore
            for term, count in counts.items():
                postings[term].append((number, count))
        self._norms = K1 * (1 - B + B * sizes / max(sizes.mean(), 1))
        self._size = len(passages)
        self._postings = {
            term: (np.array([n for n, _ in rows]), np.array([c for _, c in rows])) for term, rows in postings.items()
        }

    def score(self, query: str) -> NDArray[np.float64]:
        """Of every passage, the share of what the words of the question could be worth: 0 to 1."""
        scores, worth = np.zeros(self._size), 0.0
        for term in set(terms(query)):
            if term in self._postings:
                numbers, counts = self._postings[term]
                idf = np.log(1 + (self._size - len(numbers) + 0.5) / (len(numbers) + 0.5))
                scores[numbers] += idf * counts / (counts + self._norms[numbers])
                worth += float(idf)
            else:
                worth += float(np.log(1 + (self._size + 0.5) / 0.5))
        return scores / max(worth, 1e-9)
