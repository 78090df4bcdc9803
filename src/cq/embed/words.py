"""Text into words, words into tokens: the same for training, for passages and for questions."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Identifiers fall apart at case and digits: `HTTPServer2` is http server 2. Marks are no words.
_WORD = re.compile(r"[A-Z]+(?![^\W\d_A-Z])|[A-Z]?[^\W\d_A-Z]+|[0-9]+")
_MAX_WORD = 24  # a longer one is data, not a word; its beginning stands for it
_MAX_KNOWN = 500_000  # words remembered: a stream of random ones must not fill the memory
_CHARS_PER_TOKEN = 40


def split_words(text: str) -> list[str]:
    """Lower-case, in order."""
    return [word.lower() for word in _WORD.findall(text)]


class Vocabulary:
    """Pieces by longest match: one that begins a word stands as it is, one inside a word behind `##`.

    What no piece matches is left out: it was too rare in training to mean anything.
    """

    def __init__(self, pieces: Sequence[str]):
        self._numbers = {piece: number for number, piece in enumerate(pieces)}
        self._longest = max(map(len, pieces), default=0)
        self._known: dict[str, tuple[int, ...]] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def encode(self, text: str, limit: int) -> list[int]:
        """At most `limit` tokens, and no more text read than they can need."""
        known = self._known
        found: list[int] = []
        for word in _WORD.findall(text, 0, limit * _CHARS_PER_TOKEN):
            tokens = known.get(word)
            if tokens is None:
                tokens = self._cut(word.lower()[:_MAX_WORD])
                if len(known) >= _MAX_KNOWN:
                    known.clear()
                known[word] = tokens
            found += tokens
            if len(found) >= limit:
                return found[:limit]
        return found

    def _cut(self, word: str) -> tuple[int, ...]:
        tokens: list[int] = []
        at, mark = 0, ""
        while at < len(word):
            for end in range(min(len(word), at + self._longest), at, -1):
                number = self._numbers.get(mark + word[at:end])
                if number is not None:
                    tokens.append(number)
                    at = end
                    break
            else:
                at += 1
            mark = "##"
        return tuple(tokens)
