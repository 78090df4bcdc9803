"""Sets to choose and to measure on: every function, class and type of a package without its documentation, and
sentences of its documentation to find the functions by. Reading them needs no syntax."""

from __future__ import annotations

from pathlib import Path

import msgspec

from cq.embed import Passage


class Query(msgspec.Struct, frozen=True):
    text: str
    targets: tuple[int, ...]  # any of them is right: functions that say the same


class Set(msgspec.Struct, frozen=True):
    name: str
    language: str
    passages: tuple[Passage, ...]
    queries: tuple[Query, ...]


def load_sets(path: Path) -> list[Set]:
    return msgspec.msgpack.decode(path.read_bytes(), type=list[Set])
