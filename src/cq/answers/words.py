"""How answers say numbers and long things."""

from __future__ import annotations

from collections.abc import Iterable

from cq.source.role import find_role

MOST = 100  # characters of a signature that is shown beside others


def count(number: int, word: str, plural: str = "") -> str:
    """`1 file`, `1,200 files`, `2 matches`."""
    return f"{number:,} {word if number == 1 else plural or f'{word}s'}"


def count_first(number: int, words: str) -> str:
    """`1 definition within 3` of `definitions within 3`: the first word is the noun."""
    noun, space, rest = words.partition(" ")
    return f"{number:,} {noun.removesuffix('s') if number == 1 else noun}{space}{rest}"


def count_places(paths: Iterable[str], word: str, plural: str = "") -> str:
    """`135 call sites in 37 files (20 in 10 test files)`; a path for every place."""
    places = list(paths)
    tests = [path for path in places if find_role(path) == "test"]
    said = f"{count(len(places), word, plural)} in {count(len(set(places)), 'file')}"
    if not tests or len(tests) == len(places):
        return f"{said}{', all tests' if tests else ''}"
    return f"{said} ({len(tests):,} in {count(len(set(tests)), 'test file')})"


def cut_signature(signature: str, most: int = MOST) -> str:
    """A long one ends behind a parameter: `def save(self, row, …)`."""
    if len(signature) <= most:
        return signature
    head, bracket, rest = signature.partition("(")
    depth, end = 0, 0
    for at, letter in enumerate(rest[: most - len(head)]):
        if letter == "," and depth == 0:
            end = at + 1
        depth += (letter in "([{") - (letter in ")]}")
    return f"{head}{bracket}{rest[:end]} …)" if bracket and end else f"{signature[:most].rstrip()} …"
