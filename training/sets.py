"""Sets to choose and to measure on: every function, class and type of a package without its documentation, and
questions to find them by; and the pairs that models are trained on. Reading them needs no syntax."""

from __future__ import annotations

import lzma
from collections.abc import Iterator
from pathlib import Path

import msgspec

from cq.embed import Passage

STYLES = ("doc", "more", "page", "change", "test", "comment", "error", "module")
OTHER = ", other styles"  # ends the name of a set whose questions are no documentation


class Query(msgspec.Struct, frozen=True):
    text: str
    targets: tuple[int, ...]  # any of them is right: functions that say the same
    style: str = "doc"


class Set(msgspec.Struct, frozen=True):
    name: str
    passages: tuple[Passage, ...]
    queries: tuple[Query, ...]


class Entry(msgspec.Struct, array_like=True):
    """A passage to train on, its fields in lower-case words, with the questions about it: style and text."""

    package: str
    language: str
    path: str
    name: str
    signature: str
    body: str
    questions: list[tuple[str, str]] = []

    def to_lines(self) -> str:
        fields = (self.package, self.language, self.path, self.name, self.signature, self.body)
        return "\n".join(["\t".join(fields), *(f"{style}\t{text}" for style, text in self.questions), ""])


def load_sets(path: Path) -> list[Set]:
    return msgspec.msgpack.decode(path.read_bytes(), type=list[Set])


def load_entries(path: Path) -> Iterator[Entry]:
    """A line of six fields is a passage, one of two a question about the passage above it."""
    entry: Entry | None = None
    with lzma.open(path, "rt", encoding="utf-8", newline="\n") as file:
        for line in file:
            fields = line.rstrip("\n").split("\t")
            if len(fields) == 6:
                if entry is not None:
                    yield entry
                entry = Entry(*fields)
            elif entry is not None:
                entry.questions.append((fields[0], fields[1]))
    if entry is not None:
        yield entry
