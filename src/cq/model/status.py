"""What is known about the index itself: how much, how fresh, where, and what it lacks."""

from __future__ import annotations

import msgspec

from cq.model.embedding import EmbeddingState
from cq.model.provider import ProviderStatus


class Degraded(msgspec.Struct, frozen=True):
    """Something that was not done, or done in a lesser way."""

    stage: str  # "config" "location" "listing" "syntax" "refresh"
    severity: str  # "info" "warning" "error"
    category: str
    message: str
    correlation_key: str = ""  # what it happened to: a path, a language, a stage


class Freshness(msgspec.Struct, frozen=True):
    """How the index stands to the files on disk.

    `check` says how that is known: `refreshed` (brought up to date for this answer), `recent` (a check was
    young enough; changes since are unknown) or `compared` (looked at, not updated).
    """

    generation: int
    check: str
    added: int | None = None  # files that are not indexed yet; None where nobody looked
    changed: int | None = None
    removed: int | None = None
    dirty: bool | None = None  # the files differ from the generation
    busy: bool = False  # another process is writing the next generation


class LanguageStatus(msgspec.Struct, frozen=True):
    language: str
    files: int
    lines: int
    bytes: int
    symbols: int
    capabilities: tuple[str, ...]


class MistakeStatus(msgspec.Struct, frozen=True):
    """A mistake of cq itself in linking code, and what it costs until it is mended."""

    error: str  # the kind of exception
    place: str  # the line of cq that failed
    unlinked: int = 0  # files whose code is not linked: only names are known of what it refers to
    incomplete: int = 0  # files of whose references some are unknown that need not be
    refreshes: int = 0  # that linked everything anew, since the index was made; they cost nothing but time
    paths: tuple[str, ...] = ()  # the first of these files


class Status(msgspec.Struct, frozen=True):
    """One tree of the index. Counts are of this tree's files; `index_bytes` is the whole file, other trees included."""

    root: str
    freshness: Freshness
    files: int
    lines: int
    bytes: int
    counts: dict[str, int]  # symbols calls imports references chunks problems documents
    languages: tuple[LanguageStatus, ...]  # most files first
    skipped: dict[str, int]  # reason -> files and directories, most first
    index: str
    index_bytes: int
    temporary: bool
    degraded: tuple[Degraded, ...] = ()
    evidence: dict[str, int] = {}  # who has been asked what calls mean -> files, as they are now or were
    embeddings: EmbeddingState | None = None  # where it was asked for
    mistakes: tuple[MistakeStatus, ...] = ()  # by the files they cost


class Check(msgspec.Struct, frozen=True, omit_defaults=True):
    """One finding of the doctor. `state`: ok, missing (does without), warning, error. `provider`: all about one that
    can be asked beside the index."""

    area: str
    name: str
    state: str
    detail: str
    advice: str = ""
    provider: ProviderStatus | None = None
