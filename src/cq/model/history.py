"""What the commits of a repository touched, and what names one."""

from __future__ import annotations

import msgspec


class History(msgspec.Struct, frozen=True, array_like=True):
    """`commits` are the paths each of at most `limit` commits touched, the newest first. `note`: why there are none."""

    head: str = ""
    limit: int = 0
    commits: tuple[tuple[str, ...], ...] = ()
    note: str = ""


class Change(msgspec.Struct, frozen=True):
    """How a file differs from a revision."""

    lines: tuple[int, ...] = ()  # that are new or other, as they are numbered now
    gaps: tuple[int, ...] = ()  # lines behind which something is gone
    removed: tuple[bytes, ...] = ()  # the lines that are gone, together as they stood
    note: str = ""  # what keeps this from being all that git would say


class Blamed(msgspec.Struct, frozen=True, array_like=True):
    """Lines of a file that one commit wrote; no commit: they are not committed yet. `time` is when the author wrote
    them, in seconds of Unix."""

    first: int
    count: int
    commit: str = ""
    author: str = ""
    time: int = 0
    summary: str = ""


class Revision(msgspec.Struct, frozen=True):
    """What a name meant when it was looked up. `tree` is git's name of what the root holds: equal where the contents of
    two commits are."""

    ref: str
    commit: str
    tree: str


class Commit(msgspec.Struct, frozen=True):
    """One commit as its author wrote it. `time` is that of the author, in seconds since 1970."""

    hash: str
    parents: tuple[str, ...]
    author: str
    time: int
    subject: str
