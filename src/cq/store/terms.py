"""Source words as search terms: identifiers split at case and underscore, and kept whole."""

from __future__ import annotations

import re

_WORD = bytes(byte if byte >= 128 or chr(byte).isalnum() or byte == 95 else 32 for byte in range(256))
_HUMP = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_A-Za-z]+")
_MAX_TERM = 64
_MAX_CACHE = 500_000
_LONG = 200  # words; with fewer, finding those that are said again costs more than it saves


class Terms:
    """Expands words with a memory: a repository says the same few thousand over and over."""

    def __init__(self) -> None:
        self._known: dict[bytes, str] = {}

    def expand(self, text: bytes) -> str:
        """`getUserName x_1` -> `get User Name getusername x 1 x1`; the tokenizer of the index lowers and stems."""
        return " ".join(self._find(text))

    def expand_body(self, text: bytes) -> tuple[str, int]:
        """What `expand` gives, of a long text each word once, and how many terms that were with all of them."""
        found = self._find(text)
        whole = " ".join(found)
        count = whole.count(" ") + 1
        # The index keeps whether a field has a term, not how often: once is enough, and an eighth cheaper to index.
        return " ".join(dict.fromkeys(found)) if len(found) > _LONG else whole, count

    def _find(self, text: bytes) -> list[str]:
        known = self._known
        words = text.translate(_WORD).split()
        try:
            return list(map(known.__getitem__, words))
        except KeyError:
            if len(known) > _MAX_CACHE:
                known.clear()
            known.update({word: _split(word.decode("utf-8", "replace")) for word in set(words).difference(known)})
            return list(map(known.__getitem__, words))


def _split(word: str) -> str:
    if len(word) > _MAX_TERM:
        return ""
    if word.islower() and "_" not in word:
        return word
    parts = _HUMP.findall(word)
    return word if len(parts) < 2 else " ".join([*parts, "".join(parts)])
