"""Names and paths that begin with a word. Imports next to nothing: a shell that completes a word waits for it."""

from __future__ import annotations

import os
import sqlite3
from typing import TYPE_CHECKING

from cq.opening import read_file

if TYPE_CHECKING:
    from cq.model.history import Revision

_LAST = "\U0010ffff"


def complete(
    connection: sqlite3.Connection, tree: int, prefix: str, limit: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names of definitions, and paths, each up to its next directory; both in their order."""
    names = connection.execute(
        "SELECT DISTINCT s.name FROM symbol s WHERE s.name>=? AND s.name<? AND EXISTS"
        " (SELECT 1 FROM file f WHERE f.content=s.content AND f.tree=?) ORDER BY s.name LIMIT ?",
        (prefix, prefix + _LAST, tree, limit),
    )
    deep = connection.execute(
        "SELECT path FROM file WHERE tree=? AND path>=? AND path<? ORDER BY path LIMIT ?",
        (tree, prefix, prefix + _LAST, limit * 20),
    )
    paths = dict.fromkeys(path[: path.find("/", len(prefix)) + 1 or len(path)] for (path,) in deep)
    return tuple(name for (name,) in names), tuple(paths)[:limit]


def complete_at(index: str, root: str, prefix: str, limit: int) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """By the index file as it lies, unchecked: nothing where there is none, None where it cannot be read."""
    try:
        name = os.path.basename(os.fsdecode(read_file(index, 4096).split(b"\n", 2)[1]))  # noqa: PTH119
    except FileNotFoundError:
        return (), ()
    except (OSError, IndexError):
        return None
    try:
        data = os.path.join(os.path.dirname(index), name)  # noqa: PTH118, PTH120
        connection = sqlite3.connect(name_file(data) + b"?mode=ro", uri=True)
        try:
            row = connection.execute("SELECT id FROM tree WHERE root=?", (tree_key(root),)).fetchone()
            return complete(connection, row[0], prefix, limit) if row else ((), ())
        finally:
            connection.close()
    except sqlite3.Error:
        return None


def tree_key(root: str) -> str:
    """The root as it is stored: a name that is no UTF-8 in escapes."""
    return root.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


_REVISION = "revision:"


def name_tree(root: str | os.PathLike[str], revision: Revision | None = None) -> str:
    """What the tree of a root, or of a revision below it, is called: no root begins like a revision. Two commits with
    the same files are one tree."""
    return os.fspath(root) if revision is None else f"{_REVISION}{revision.tree}"


def is_revision(name: str) -> bool:
    return name.startswith(_REVISION)


def name_file(path: str) -> bytes:
    """As SQLite names a file in a URI; a name need not be UTF-8."""
    name = os.fsencode(path if os.sep == "/" else path.replace(os.sep, "/"))
    for char in b"%?#":
        name = name.replace(b"%c" % char, b"%%%02x" % char)
    return b"file://" + (name if name.startswith(b"/") else b"/" + name)
