"""Which chunks have vectors, and how many of them there are."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from cq.language import TEXT, describe
from cq.model.facts import CHUNK_KINDS, Chunk, Symbol

# What is no definition and says nothing by itself.
QUIET_KINDS = frozenset({"file", "import", "export", "part"})
# Code that is read as plain text.
_UNREAD = re.compile(
    r"\.(?:mli?|clj[cs]?|erl|hrl|jl|nim|dart|r|pl|pm|f90|groovy|gradle|fs|d|v|sv|vhdl?|el|rkt|elm|cr|proto|thrift|"
    r"graphql|gql|tf|hcl|nix|sol|ps1|pas|tcl|cmake|mk|bzl)$"
    r"|(?:^|/)(?:GNUm|M)akefile[^/]*$|(?:^|/)(?:Docker|Container|Just|Jenkins)file[^/]*$|(?:^|/)CMakeLists\.txt$",
    re.IGNORECASE,
)
_QUIET_BYTES = bytes(number for number, kind in enumerate(CHUNK_KINDS) if kind in QUIET_KINDS)
_SAID = re.compile(r"[\u3040-\u9fff\uac00-\ud7a3]|[^\W\d_]\S*")  # a word, or a letter where words are not set apart
_LEAST_SAID = 5  # of a comment: `eslint-disable-next-line no-console` and the title of a section say nothing of code
MAX_MISSING = 0.1  # with more than this share missing, vectors would leave out too much to rank with


def is_data(path: str, language: str) -> bool:
    return not describe(language).has_vectors and not (language == TEXT and _UNREAD.search(path))


def find_kind(text: bytes, chunks: Sequence[Chunk], symbols: Sequence[Symbol], number: int) -> str:
    """As what a chunk of a document is found: its own kind, but for the document as a whole, for `mod x;`, which brings
    in a file, and for comments that say nothing."""
    chunk = chunks[number]
    if number == 0:
        return "file"
    if chunk.kind == "module" and (chunk.symbol < 0 or symbols[chunk.symbol].body_start < 0):
        return "import"
    if chunk.kind == "comment":
        said = _SAID.findall(text[chunk.start : chunk.end].decode("utf-8", "replace"))
        return "comment" if len(said) >= _LEAST_SAID else "part"
    return chunk.kind


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
        if is_data(path, language):
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
