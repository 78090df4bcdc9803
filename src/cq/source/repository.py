"""Where a repository is and what its index is called. Imports next to nothing: shells that complete a word ask it."""

# Names here may be no UTF-8.
# ruff: noqa: PTH110, PTH111, PTH112, PTH117, PTH118, PTH119, PTH120

from __future__ import annotations

import os
import sys

from xxhash import xxh3_64_hexdigest

from cq.opening import read_file

INDEX_NAME = "index.db"
_MARKS = (".git", ".jj", ".hg")
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_MOST = 40  # characters of a name that are kept


def is_repository(folder: str) -> bool:
    return any(os.path.exists(os.path.join(folder, mark)) for mark in _MARKS)


def find_root(start: str) -> str:
    """The nearest directory at or above that holds a repository, else `start` itself, as it really is."""
    folder = start = os.path.realpath(start)
    while not is_repository(folder):
        parent = os.path.dirname(folder)
        if parent == folder:
            return start
        folder = parent
    return folder


def check_root(root: str) -> str:
    """UsageError for what nobody means: all that a user has, or the whole disk, because that is where they happen to
    be."""
    home = os.path.join(os.path.realpath(os.path.expanduser("~")), "")
    whole = root == os.path.dirname(root)
    if (whole or home.startswith(os.path.join(root, ""))) and not is_repository(root):
        from cq.model.errors import UsageError

        raise UsageError(f"{root} is no repository", hint="go into one, or name a directory with --root")
    return root


def find_top(directory: str) -> str:
    """The nearest directory at or above in which there is a `.git`, "" where there is none."""
    while not os.path.lexists(os.path.join(directory, ".git")):
        parent = os.path.dirname(directory)
        if parent == directory:
            return ""
        directory = parent
    return directory


def find_common_dir(top: str) -> tuple[str, str] | None:
    """(the work tree's own git directory, the one that all work trees of the repository share)."""
    path = os.path.join(top, ".git")
    if not os.path.isdir(path):
        line = read_line(path)
        if not line.startswith("gitdir:"):
            return None
        path = os.path.join(top, line[7:].strip())
        if not os.path.isdir(path):
            return None
    common = os.path.join(path, read_line(os.path.join(path, "commondir")))
    return os.path.realpath(path), os.path.realpath(common)


def read_line(path: str) -> str:
    """What a small file says, without the blanks around it; "" where there is none."""
    try:
        return os.fsdecode(read_file(path, 4096)).strip()
    except OSError:
        return ""


def find_repository(root: str) -> str:
    """What the roots that share one index have in common: git's common directory, else the root itself."""
    top = find_top(root)
    found = find_common_dir(top) if top else None
    return found[1] if found else root


def find_key(root: str) -> str:
    """The name of the index's directory: readable, and different for every repository."""
    repository = find_repository(root)
    above, name = os.path.split(repository)
    plain = ""
    for char in os.path.basename(above) if name == ".git" else name:
        if char in _PLAIN:
            plain += char
        elif not plain.endswith("\0"):
            plain += "\0"  # a run of others, which is told by one dash
    plain = plain.replace("\0", "-")[:_MOST].strip(".-")
    return f"{plain or 'root'}-{xxh3_64_hexdigest(os.fsencode(repository))}"


def find_cache_dir() -> str:
    """The user's own, "" where there is no home directory."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(given):  # a relative one is to be ignored, says the XDG standard
        return os.path.join(given, "cq")
    if sys.platform == "win32" and os.path.isabs(local := os.environ.get("LOCALAPPDATA", "")):
        return os.path.join(local, "cq", "cache")
    home = os.path.expanduser("~")
    if not os.path.isabs(home):
        return ""
    return os.path.join(home, "Library/Caches" if sys.platform == "darwin" else ".cache", "cq")
