"""Which files can match at all: by path and language, and by the words that a text index knows."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from cq.query.plan import Literals
from cq.query.tree import Token
from cq.query.vocabulary import LANGUAGE_NAMES
from cq.source.files import parse_globs
from cq.store.read import Reader


@lru_cache(maxsize=128)
def file_test(token: Token) -> Callable[[str, str], bool]:
    if token.key == "lang":
        names = {name for value in token.values if value != "auto" for name in LANGUAGE_NAMES[value]}
        return lambda _, language: not names or language in names
    if token.key == "in":
        folder = token.text.removeprefix("./").strip("/")
        return lambda path, _: folder in ("", ".") or path == folder or path.startswith(f"{folder}/")
    rules = parse_globs(token.key, token.values)

    def matches(path: str) -> bool:
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            verdict = rules.match("/".join(parts[:depth]), parts[depth - 1], depth < len(parts))
            if verdict:
                return True
        return False

    return (lambda path, _: not matches(path)) if token.key == "exclude" else (lambda path, _: matches(path))


def look_up(reader: Reader, literals: Literals) -> set[int] | None:
    """Contents that may hold the texts; None is all of them."""
    if literals is None:
        return None
    if isinstance(literals, str):
        found = reader.find_trigram(literals)
        return None if found is None else set(found)
    parts = [look_up(reader, part) for part in literals[1]]
    if literals[0] == "any":
        return None if None in parts else set().union(*(part for part in parts if part is not None))
    known = [part for part in parts if part is not None]
    return set.intersection(*known) if known else None


def has_words(literals: Literals, text: bytes) -> bool:
    """What the trigrams only made likely, in this very document."""
    if literals is None or isinstance(literals, str):
        return literals is None or literals.encode() in text
    return (all if literals[0] == "all" else any)(has_words(part, text) for part in literals[1])


def describe_words(literals: Literals) -> str:
    if literals is None:
        return ""
    if isinstance(literals, str):
        return literals
    joined = (" and " if literals[0] == "all" else " or ").join(describe_words(part) for part in literals[1])
    return f"({joined})"
