"""What the one writer does: add contents, then say in one transaction which files a tree has."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterable, Sequence
from functools import cached_property

import msgspec

from cq.model.edge import Mistake
from cq.model.source import Problem, Skip
from cq.store.codec import unpack
from cq.store.database import has_words
from cq.store.kept import EvidenceRow
from cq.store.prefix import tree_key

_ENCODE = msgspec.msgpack.Encoder().encode
KEPT_DEAD = 500  # contents of no file that are kept at least: branches are come back to


class Content(msgspec.Struct, frozen=True, gc=False):
    """One text with everything that is stored about it, made ready in a worker."""

    hash: str
    language: str
    lines: int
    counts: dict[str, int]
    text: bytes  # packed
    trigrams: bytes
    parts: dict[str, bytes]
    symbols: list[tuple[int, int, str, str, str]]  # document, number, name, qualified_name, kind
    names: tuple[str, str, str]  # defined, called, used
    words: list[tuple[str, str, str, str, str]]  # per chunk: name, qualified_name, signature, docs, body
    kinds: bytes  # per chunk
    sizes: bytes
    named: list[tuple[str, int]]  # what its code calls and stores: see the table
    methods: list[tuple[str, bytes]]  # by name: see the table
    partial: list[Problem]  # for which facts are lacking


class FileRow(msgspec.Struct, frozen=True, gc=False):
    path: str
    os_path: str
    content: int
    size: int
    written_ns: int
    encoding: str = "utf-8"
    problems: tuple[Problem, ...] = ()


class SkipRow(msgspec.Struct, frozen=True, gc=False):
    """A skip with the stat it was decided on; zero where the listing itself decided."""

    skip: Skip
    size: int = 0
    written_ns: int = 0


class LinkRow(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What the code of one file means; see the tables `link` and `target`."""

    path: str
    links: bytes
    keys: bytes
    homes: bytes
    targets: list[tuple[int, bytes]]  # key, calls
    mistakes: list[Mistake] = []


class Writer:
    """Holds the connection of the process that has the writer's lock."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._db, self._has_words = connection, has_words(connection)
        self._next_content = self._value("SELECT coalesce(max(id), 0) + 1 FROM content")
        self._next_chunk = 1
        row = connection.execute("SELECT chunk_base, counts FROM content ORDER BY id DESC LIMIT 1").fetchone()
        if row is not None:
            self._next_chunk = row[0] + msgspec.msgpack.decode(row[1])["chunks"]

    def _value(self, sql: str) -> int:
        return self._db.execute(sql).fetchone()[0]

    def begin(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self._db.execute("COMMIT")

    def rollback(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def add_content(self, content: Content) -> int:
        """Inside a transaction. It may be committed before any file has it: content is only found through files."""
        number, chunk = self._next_content, self._next_chunk
        self._next_content += 1
        self._next_chunk += content.counts["chunks"]
        parts = content.parts
        self._db.execute(
            "INSERT INTO content VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
            (
                number, content.hash, content.language, content.lines, _ENCODE(content.counts), chunk,
                content.text, parts["documents"], parts["symbols"], parts["calls"], parts["imports"],
                parts["flows"], parts["refs"], parts["chunks"], parts["code"],
            ),
        )  # fmt: skip
        self._db.executemany(
            "INSERT INTO symbol VALUES (?,?,?,?,?,?)", [(number, *symbol) for symbol in content.symbols]
        )
        self._db.execute("INSERT INTO kind VALUES (?,?,?)", (number, content.kinds, content.sizes))
        self._db.executemany("INSERT INTO named VALUES (?,?,?)", [(*named, number) for named in content.named])
        self._db.executemany(
            "INSERT INTO method VALUES (?,?,?)", [(name, number, methods) for name, methods in content.methods]
        )
        if content.partial:
            self._db.execute("INSERT INTO partial VALUES (?,?)", (number, _ENCODE(content.partial)))
        self._db.execute("INSERT INTO trigram VALUES (?,?)", (number, content.trigrams))
        self._db.execute("INSERT INTO name (rowid, defined, called, used) VALUES (?,?,?,?)", (number, *content.names))
        self._db.executemany(
            "INSERT INTO words (rowid, name, qualified_name, signature, docs, body) VALUES (?,?,?,?,?,?)",
            [(chunk + index, *fields) for index, fields in enumerate(content.words if self._has_words else ())],
        )
        return number

    def remove_content(self, number: int, chunk: int, content: Content) -> None:
        """`content` made again from the stored text: a contentless index forgets only what it is told again."""
        self._db.execute(
            "INSERT INTO name (name, rowid, defined, called, used) VALUES ('delete',?,?,?,?)", (number, *content.names)
        )
        self._db.executemany(
            "INSERT INTO words (words, rowid, name, qualified_name, signature, docs, body)"
            " VALUES ('delete',?,?,?,?,?,?)",
            [(chunk + index, *fields) for index, fields in enumerate(content.words if self._has_words else ())],
        )
        self._db.execute("DELETE FROM symbol WHERE content=?", (number,))
        self._db.executemany(
            "DELETE FROM named WHERE name=? AND kind=? AND content=?", [(*named, number) for named in content.named]
        )
        self._db.executemany(
            "DELETE FROM method WHERE name=? AND content=?", [(name, number) for name, _ in content.methods]
        )
        for table in ("trigram", "kind", "vector", "partial"):
            self._db.execute(f"DELETE FROM {table} WHERE content=?", (number,))
        self._db.execute("DELETE FROM content WHERE id=?", (number,))

    def find_dead(self, limit: int) -> list[tuple[int, int, str, bytes]]:
        """Contents no file has, oldest first, beyond what is kept for branches one may come back to."""
        live, dead = (
            self._value("SELECT count(DISTINCT content) FROM file"),
            self._value("SELECT count(*) FROM content WHERE id NOT IN (SELECT content FROM file)"),
        )
        excess = dead - max(KEPT_DEAD, live)
        if excess <= 0:
            return []
        rows = self._db.execute(
            "SELECT id, chunk_base, language, text FROM content WHERE id NOT IN (SELECT content FROM file)"
            " ORDER BY id LIMIT ?",
            (min(excess, limit),),
        )
        return [(number, chunk, language, unpack(text)) for number, chunk, language, text in rows]

    def set_tree(self, root: str, config: str) -> int:
        root = tree_key(root)
        self._db.execute(
            "INSERT INTO tree (root, generation, config, listing) VALUES (?,0,?,x'')"
            " ON CONFLICT (root) DO UPDATE SET config=excluded.config",
            (root, config),
        )
        return self._db.execute("SELECT id FROM tree WHERE root=?", (root,)).fetchone()[0]

    def begin_tree(self, root: str, config: str, blobs: bytes, base: int) -> int:
        """A tree that begins as another one is, 0 for none: its files, and what they mean there. Inside a transaction;
        nobody takes it for whole before `update_files`. What was begun before under this name is forgotten."""
        self.drop_tree(root)
        tree = self.set_tree(root, config)
        self._db.execute("UPDATE tree SET blobs=? WHERE id=?", (blobs, tree))
        if base:
            self._db.execute(
                "INSERT INTO file SELECT ?, path, os_path, content, size, 0, encoding, problems FROM file WHERE tree=?",
                (tree, base),
            )
            self._db.execute(
                "INSERT INTO skip SELECT ?, path, reason, detail, size, 0 FROM skip WHERE tree=?", (tree, base)
            )
            self._db.execute("INSERT INTO linked SELECT ?, path, link FROM linked WHERE tree=?", (tree, base))
            self._db.execute("INSERT INTO mistake SELECT ?, path, mistakes FROM mistake WHERE tree=?", (tree, base))
        return tree

    def drop_tree(self, root: str) -> None:
        """Forgets a tree with all that is known of its files; their contents may be another's."""
        row = self._db.execute("SELECT id FROM tree WHERE root=?", (tree_key(root),)).fetchone()
        if row is None:
            return
        self.drop_all_links(row[0])
        for table in ("file", "skip", "mistake", "evidence", "asked", "vector"):
            self._db.execute(f"DELETE FROM {table} WHERE tree=?", row)
        self._db.execute("DELETE FROM tree WHERE id=?", row)

    def update_files(
        self,
        tree: int,
        *,
        put: Iterable[FileRow],
        drop: Sequence[str],
        put_skips: Iterable[SkipRow],
        drop_skips: Sequence[str],
        listing: bytes,
        changed: bool,
    ) -> None:
        """Inside a transaction: readers see all of it or none."""
        self._db.executemany("DELETE FROM file WHERE tree=? AND path=?", [(tree, path) for path in drop])
        self._db.executemany("DELETE FROM vector WHERE tree=? AND path=?", [(tree, path) for path in drop])
        self._db.executemany("DELETE FROM skip WHERE tree=? AND path=?", [(tree, path) for path in drop_skips])
        self._db.executemany(
            "INSERT OR REPLACE INTO file VALUES (?,?,?,?,?,?,?,?)",
            [
                (
                    tree, row.path, None if row.os_path == row.path else row.os_path.encode("utf-8", "surrogateescape"),
                    row.content, row.size, row.written_ns, row.encoding,
                    _ENCODE(row.problems) if row.problems else None,
                )
                for row in put
            ],
        )  # fmt: skip
        self._db.executemany(
            "INSERT OR REPLACE INTO skip VALUES (?,?,?,?,?,?)",
            [(tree, r.skip.path, r.skip.reason, r.skip.detail, r.size, r.written_ns) for r in put_skips],
        )
        self._db.execute("UPDATE tree SET generation=generation+?, listing=? WHERE id=?", (int(changed), listing, tree))

    def put_links(self, tree: int, rows: Iterable[LinkRow]) -> None:
        """Inside a transaction, behind update_files. What a file meant before is forgotten."""
        for row in rows:
            self.drop_links(tree, [row.path])
            self._db.execute(
                "INSERT INTO linked VALUES (?,?,?)", (tree, row.path, self._find_link(row) or self._add_link(row))
            )
            if row.mistakes:
                self.put_mistakes(tree, row.path, row.mistakes)

    def _find_link(self, row: LinkRow) -> int | None:
        """The row of another tree that says the same of a file at this path."""
        if not self._is_shared:
            return None
        found = self._db.execute(
            "SELECT l.id FROM tree t CROSS JOIN linked d ON d.tree=t.id AND d.path=? JOIN link l ON l.id=d.link"
            " WHERE l.links=? AND l.keys=? AND l.homes=? AND l.targets=? LIMIT 1",
            (row.path, row.links, row.keys, row.homes, _pack_targets(row)),
        ).fetchone()
        return found[0] if found else None

    @cached_property
    def _is_shared(self) -> bool:
        """Whether there is another tree that could mean the same."""
        return self._value("SELECT count(*) FROM tree") > 1

    def _add_link(self, row: LinkRow) -> int:
        number = self._db.execute(
            "INSERT INTO link (links, keys, homes, targets) VALUES (?,?,?,?)",
            (row.links, row.keys, row.homes, _pack_targets(row)),
        ).lastrowid
        assert number is not None
        self._db.executemany("INSERT INTO target VALUES (?,?,?)", [(key, number, calls) for key, calls in row.targets])
        return number

    def put_mistakes(self, tree: int, path: str, mistakes: Sequence[Mistake]) -> None:
        self._db.execute("INSERT OR REPLACE INTO mistake VALUES (?,?,?)", (tree, path, _ENCODE(mistakes)))

    def drop_all_links(self, tree: int) -> None:
        self._db.execute("DELETE FROM linked WHERE tree=?", (tree,))
        self._db.execute("DELETE FROM target WHERE link NOT IN (SELECT link FROM linked)")
        self._db.execute("DELETE FROM link WHERE id NOT IN (SELECT link FROM linked)")
        self._db.execute("DELETE FROM mistake WHERE tree=? AND path<>''", (tree,))

    def drop_links(self, tree: int, paths: Iterable[str]) -> None:
        for path in paths:
            found = self._db.execute(
                "SELECT l.id, l.targets FROM linked d JOIN link l ON l.id=d.link WHERE d.tree=? AND d.path=?",
                (tree, path),
            ).fetchone()
            if found is None:
                continue
            number, targets = found
            self._db.execute("DELETE FROM linked WHERE tree=? AND path=?", (tree, path))
            self._db.execute("DELETE FROM mistake WHERE tree=? AND path=?", (tree, path))
            if self._db.execute("SELECT 1 FROM linked WHERE link=?", (number,)).fetchone() is None:
                self._db.executemany(
                    "DELETE FROM target WHERE key=? AND link=?", [(key, number) for key in array("q", targets)]
                )
                self._db.execute("DELETE FROM link WHERE id=?", (number,))

    def put_evidence(
        self, tree: int, path: str, source: str, version: str, text_hash: str, rows: Iterable[EvidenceRow]
    ) -> None:
        """Inside a transaction. What the source said about this file before is forgotten."""
        for table in ("evidence", "asked"):
            self._db.execute(f"DELETE FROM {table} WHERE tree=? AND path=? AND source=?", (tree, path, source))
        self._db.execute("INSERT INTO asked VALUES (?,?,?,?,?)", (tree, path, source, version, text_hash))
        self._db.executemany(
            "INSERT INTO evidence VALUES (?,?,?,?,?,?,?,?,?,?)",
            [
                (
                    tree, path, source, row.key, row.role, row.target.path, row.target.document, row.target.name,
                    row.target_hash, array("I", row.calls).tobytes(),
                )
                for row in rows
            ],
        )  # fmt: skip

    def forget_evidence(self, tree: int) -> None:
        """Of files that are gone."""
        for table in ("evidence", "asked"):
            self._db.execute(
                f"DELETE FROM {table} WHERE tree=? AND path NOT IN (SELECT path FROM file WHERE tree=?)", (tree, tree)
            )

    def drop_evidence(self, tree: int, source: str) -> None:
        """All that a source has said."""
        for table in ("evidence", "asked"):
            self._db.execute(f"DELETE FROM {table} WHERE tree=? AND source=?", (tree, source))

    def note_change(self, tree: int) -> None:
        """What is known of a tree changed, though its files did not."""
        self._db.execute("UPDATE tree SET generation=generation+1 WHERE id=?", (tree,))

    def put_vectors(self, tree: int, identity: str, rows: Iterable[tuple[str, int, bytes]]) -> None:
        """(path, content, rows) of files, in place of what they had; inside a transaction."""
        self._db.executemany(
            "INSERT OR REPLACE INTO vector (tree, path, content, identity, rows) VALUES (?,?,?,?,?)",
            [(tree, path, content, identity, blob) for path, content, blob in rows],
        )

    def drop_vectors(self, tree: int) -> None:
        self._db.execute("DELETE FROM vector WHERE tree=?", (tree,))

    def shrink(self) -> None:
        """Lets go of pages that were read: processes that are forked would begin with them."""
        self._db.execute("PRAGMA shrink_memory")


def _pack_targets(row: LinkRow) -> bytes:
    return array("q", [key for key, _ in row.targets]).tobytes()
