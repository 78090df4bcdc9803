"""The names and paths of the index that may stand in place of a word, for a shell that waits at a key. Where the index
lies without a look into any settings this is all that is imported."""

from __future__ import annotations

import os

from cq.opening import read_file
from cq.source.repository import INDEX_NAME, find_cache_dir, find_key, find_root
from cq.store.prefix import complete_at

# Commands whose argument is a symbol or a path: the names of the index are offered.
_NAMES = frozenset({"search", "calls", "read", "neighborhood", "nb", "graph", "impact", "path", "types", "context"})
_PATHS = frozenset({"facts", "read"})
MOST = 50
_MARKS = frozenset("_./@+,:=-")


def find_names(command: str, prefix: str) -> list[str] | None:
    """None where the settings of the repository must be asked, or the index cannot be read so simply."""
    given, place = os.environ.get("CQ_ROOT"), os.environ.get("CQ_INDEX_DIR")
    try:
        root = os.path.realpath(given) if given else find_root(os.getcwd())  # noqa: PTH109
    except OSError:  # the working directory is gone
        return None
    if place:
        base = os.path.realpath(os.path.expanduser(place))  # noqa: PTH111
    elif _may_name_place(root):
        return None
    else:
        base = find_cache_dir()
    found = complete_at(f"{base}/{find_key(root)}/{INDEX_NAME}", root, prefix, MOST) if base else None
    return None if found is None else choose_names(command, *found)


def choose_names(command: str, names: tuple[str, ...], paths: tuple[str, ...]) -> list[str]:
    """What the command takes. What a shell would read as more than a word is not offered, nor are keys, which are no
    code."""
    known = [name for name in names if name.isidentifier()] if command in _NAMES else []
    if command not in _PATHS and command not in _NAMES:
        return known
    return [*known, *(path for path in paths if all(char.isalnum() or char in _MARKS for char in path))]


def _may_name_place(root: str) -> bool:
    for name, mark in (("cq.toml", b"dir"), ("pyproject.toml", b"tool.cq")):
        try:
            if mark in read_file(f"{root}/{name}", 256 * 1024):  # no more is read of it elsewhere
                return True
        except OSError:
            continue
    return False
