"""Which trigrams a text holds, any case, as one small bitmap: what cannot match is told without reading the text.

A trigram is three UTF-16 units in a row, hashed to 16 bits; a bitmap has as many of them as its text needs. Two ways
make the same one: numpy's, and another for the few texts of a process that would load numpy only for this.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy import uint16
    from numpy.typing import NDArray

_FACTORS = 0x9E3779B1, 0x85EBCA6B, 0xC2B2AE35
_HASHES = 1 << 16
_LEAST = 64  # bits
_ROOM = 8  # a bitmap has at most so many bits for each that is set, and more than half as many
_LARGE = 300_000  # bytes of a text for which loading numpy pays


def fold(char: str) -> int:
    """The same for all characters that a search without case takes for each other, the odd ones included."""
    return ord(char.lower()[0].upper()[0])


def load() -> None:
    """What many texts are worth."""
    _load_folds()


def make_trigrams(text: bytes) -> bytes:
    return _make_quickly(text) if "numpy" in sys.modules or len(text) > _LARGE else _make_alone(text)


def find_bits(literal: str, most: int = 16) -> list[tuple[int, int]]:
    """(byte, bit) of trigrams that every text with the literal holds; bytes are modulo the length of the bitmap."""
    found: set[int] = set()
    for line in literal.split("\n"):
        # Of what needs two units case is not known.
        units = [fold(char) if char < "\U00010000" else -1 for char in line]
        found |= {_hash(*three) for three in zip(units, units[1:], units[2:], strict=False) if min(three) >= 0}
    return [(number >> 3, number & 7) for number in sorted(found)[:most]]


def _hash(first: int, second: int, third: int) -> int:
    a, b, c = _FACTORS
    return (((first * a ^ second * b) + third * c) * a >> 16) % _HASHES


def _make_alone(text: bytes) -> bytes:
    if text.isascii():
        units = text.upper()
    else:
        folded = text.decode("utf-8", "replace").translate(_FOLDS)
        units = memoryview(folded.encode("utf-16-le", "surrogatepass")).cast("H").tolist()
    hashes = {_hash(*three) for three in set(zip(units, units[1:], units[2:], strict=False))}
    size = _choose_size(len(hashes))
    bits = bytearray(size >> 3)
    for number in hashes:
        bits[number % size >> 3] |= 1 << (number & 7)
    return bytes(bits)


def _make_quickly(text: bytes) -> bytes:
    import numpy as np

    if text.isascii():
        units = np.frombuffer(text.upper(), np.uint8).astype(np.uint32)
    else:
        wide = np.frombuffer(text.decode("utf-8", "replace").encode("utf-16-le"), np.uint16)
        units = _load_folds()[wide].astype(np.uint32)
    seen = np.zeros(_HASHES, np.bool_)
    if len(units) > 2:
        a, b, c = map(np.uint32, _FACTORS)
        hashes = units[:-2] * a
        hashes ^= units[1:-1] * b
        hashes += units[2:] * c
        hashes *= a
        hashes >>= np.uint32(16)
        seen[hashes] = True
    size = _choose_size(int(np.count_nonzero(seen)))
    return np.packbits(seen.reshape(-1, size).any(axis=0), bitorder="little").tobytes()


def _choose_size(count: int) -> int:
    return min(max(_LEAST, 1 << (count * _ROOM | 1).bit_length() - 1), _HASHES)


class _Folds(dict[int, int]):
    def __missing__(self, key: int) -> int:
        self[key] = found = fold(chr(key)) if key < 0x10000 else key
        return found


_FOLDS = _Folds()


@cache
def _load_folds() -> NDArray[uint16]:
    import numpy as np

    return np.fromiter((fold(chr(key)) for key in range(0x10000)), np.uint16, 0x10000)
