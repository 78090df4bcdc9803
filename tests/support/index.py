"""Everything an index says about one tree, with row numbers taken out, so that two indexes can be compared."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import Any

from cq.indexing.refresh import Report, Settings, refresh
from cq.store import database
from cq.store.codec import decode_homes, decode_links
from cq.store.read import Reader


def build(index: Path, root: Path, **options: Any) -> Report:
    return refresh(index, root, Settings(**options), wait=True)


def dump(index: Path, root: Path | str) -> dict[str, Any]:
    """Of the tree of that root, or name."""
    with contextlib.closing(database.connect(index)) as connection:
        with Reader(connection, os.fspath(root)) as reader:
            tree = reader.tree()
            assert tree is not None
            files = list(reader.files(tree.id))
            rows: dict[str, Any] = {
                "files": [
                    (f.path, f.size, f.encoding, f.hash, f.language, f.lines, f.counts, f.problems) for f in files
                ],
                "skips": [skip for skip, _, _ in reader.skips(tree.id).values()],
                "facts": {f.path: reader.facts(f.content) for f in files},
                "texts": {f.path: reader.text(f.content) for f in files},
            }
        contents = {f.content: f.hash for f in files}
        rows["symbols"] = sorted(
            (contents[row[0]], *row[1:]) for row in connection.execute("SELECT * FROM symbol") if row[0] in contents
        )
        rows["terms"] = _terms(connection, contents)
        rows["trigrams"] = sorted(
            (contents[number], bits)
            for number, bits in connection.execute("SELECT * FROM trigram")
            if number in contents
        )
        rows |= _links(connection, contents, tree.id)
        return rows


def _links(connection: sqlite3.Connection, contents: dict[int, str], tree: int) -> dict[str, Any]:
    return {
        "links": [
            (path, decode_links(links), keys, decode_homes(keys, homes), targets)
            for path, links, keys, homes, targets in connection.execute(
                "SELECT path, links, keys, homes, targets FROM linked JOIN link ON id=link WHERE tree=? ORDER BY path",
                (tree,),
            )
        ],
        "targets": connection.execute(
            "SELECT key, path, calls FROM linked l JOIN target t ON t.link=l.link WHERE tree=? ORDER BY key, path",
            (tree,),
        ).fetchall(),
        "mistakes": connection.execute(
            "SELECT path, mistakes FROM mistake WHERE tree=? AND path<>'' ORDER BY path", (tree,)
        ).fetchall(),
        "named": sorted(
            (name, kind, contents[number])
            for name, kind, number in connection.execute("SELECT * FROM named")
            if number in contents
        ),
        "methods": sorted(
            (name, contents[number], methods)
            for name, number, methods in connection.execute("SELECT * FROM method")
            if number in contents
        ),
    }


def _terms(connection: sqlite3.Connection, contents: dict[int, str]) -> list[tuple[Any, ...]]:
    chunk_owner: dict[int, tuple[str, int]] = {}
    for number, base, count in connection.execute(
        "SELECT id, chunk_base, lead(chunk_base, 1, 1 << 60) OVER (ORDER BY id) FROM content"
    ):
        if number in contents:
            chunk_owner |= {row: (contents[number], row - base) for row in range(base, min(count, base + 5000))}
    found: list[tuple[Any, ...]] = []
    for table in ("name", "words"):
        connection.execute(f"CREATE VIRTUAL TABLE temp.{table}_terms USING fts5vocab(main, '{table}', 'instance')")
        for term, row, column in connection.execute(f"SELECT term, doc, col FROM temp.{table}_terms"):
            owner = chunk_owner.get(row) if table == "words" else contents.get(row)
            if owner is not None:
                found.append((table, term, owner, column))
        connection.execute(f"DROP TABLE temp.{table}_terms")
    return sorted(found, key=repr)
