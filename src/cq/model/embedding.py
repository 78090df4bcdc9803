"""Which chunks have vectors, and how many of them there are."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from cq.model.facts import CHUNK_KINDS

# What is no definition and says nothing by itself.
QUIET_KINDS = frozenset({"module", "import", "export", "comment", "part"})
# Keys and markup: found by their words.
DATA_LANGUAGES = frozenset({"json", "yaml", "toml", "css", "html", "text"})
_QUIET_BYTES = bytes(number for number, kind in enumerate(CHUNK_KINDS) if kind in QUIET_KINDS)
MAX_MISSING = 0.1  # with more than this share missing, vectors would leave out too much to rank with


class Coverage(msgspec.Struct, frozen=True):
    """Of the chunks that should have vectors: how many have, and the files of the others (path, content)."""

    total: int
    missing: int
    files: tuple[tuple[str, int], ...] = ()
    others: int = 0  # of the missing: chunks that another embedder has read

    @property
    def missing_rate(self) -> float:
        return self.missing / self.total if self.total else 0.0

    @property
    def ready(self) -> bool:
        return self.missing_rate <= MAX_MISSING

    @property
    def percent(self) -> int:
        return int(100 * (1 - self.missing_rate))


def find_coverage(rows: Iterable[tuple[str, str, int, bytes, int | None, str | None]], identity: str) -> Coverage:
    """From (path, language, content, kinds, content of the vectors, identity of the vectors) of every file."""
    total = missing = others = 0
    files: list[tuple[str, int]] = []
    for path, language, content, kinds, has, made_by in rows:
        if language in DATA_LANGUAGES:
            continue
        count = len(kinds) - sum(map(kinds.count, _QUIET_BYTES))
        total += count
        if count and (has != content or made_by != identity):
            missing += count
            others += count if made_by not in (None, identity) else 0
            files.append((path, content))
    return Coverage(total, missing, tuple(files), others)


class EmbeddingState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What `cq status` says about vectors. `mode`: inline (made by the question) or background."""

    enabled: bool
    ready: bool
    mode: str
    reason: str
    identity: str
    dimensions: int
    backends: dict[str, bool]
    chunks: int
    missing_rate: float
    reranker: str = ""
    profile: str = "default"
    leaves: str = ""  # what is sent away, and to whom
    sent: dict[str, int] = {}  # tokens that services have counted since the index is there, by model
    cost: float | None = None  # of them, where the user has told the price
    backend: str = "exact"  # of `backends`, the one that is chosen
    backend_reason: str = ""  # why it is not the one that answers
