"""What questions may ask of the index. Read only; one transaction per question sees one generation."""

from __future__ import annotations

import re
import sqlite3
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from copy import copy
from operator import itemgetter
from pathlib import Path
from typing import Any, cast

import msgspec

from cq.model.code import NAMED_KINDS, Code, NamedKind, Parameter
from cq.model.edge import Candidate, Links, Mistake
from cq.model.evidence import Conflict, Statement, merge_evidence
from cq.model.facts import Call, Chunk, FileFacts, References, Symbol
from cq.model.source import Problem, Skip
from cq.model.status import MistakeStatus
from cq.store import prefix as prefix_of
from cq.store.codec import (
    PARTS,
    Document,
    decode_facts,
    decode_homes,
    decode_links,
    decode_names,
    decode_part,
    unpack,
)
from cq.store.database import has_words, open_data
from cq.store.kept import NAMED, RAN
from cq.store.trace import Trace, TracedConnection
from cq.store.trigrams import find_bits

_FEW_KEYS = 32  # fewer are searched for one by one
_FILES = (
    "SELECT f.path, f.os_path, f.content, f.size, f.encoding, c.hash, c.language, c.lines, c.counts, f.problems"
    " FROM file f JOIN content c ON c.id=f.content"
)
_EVIDENCE = (  # that still holds
    "FROM evidence e JOIN asked a ON a.tree=e.tree AND a.path=e.path AND a.source=e.source"
    " JOIN file f ON f.tree=e.tree AND f.path=e.path JOIN content c ON c.id=f.content AND c.hash=a.hash"
    " LEFT JOIN file g ON g.tree=e.tree AND g.path=e.target_path LEFT JOIN content d ON d.id=g.content"
    " WHERE e.tree=? AND (e.target_path='' OR d.hash=e.target_hash)"
)
_MISTAKES = msgspec.msgpack.Decoder(list[Mistake])
_METHODS = msgspec.msgpack.Decoder(list[tuple[int, str, tuple[Parameter, ...]]])
_NAME_WORD = re.compile(r"[A-Za-z0-9_$\x80-\U0010ffff]+")  # as the tokenizer of `name` splits
_MOST_TRIGRAMS = 64_000_000  # bytes of bitmaps that are held
_MOST_LITERALS = 64  # whose contents are remembered
_LASTING = ("files", "decoded")  # in a memory: what is keyed by the very bytes or the hash of what it is made of
_MOST_NAMED = 5  # files that a mistake was made in
_MOST_DECODED = 10_000  # blobs
_BYTES = [bytes(byte for byte in range(256) if byte >> bit & 1) for bit in range(8)]  # that have a bit
_IN = 500  # values per IN list: below every limit of SQLite


class StoredFile(msgspec.Struct, frozen=True, gc=False):
    """A file of the tree as indexed."""

    path: str
    os_path: str
    content: int
    size: int
    encoding: str
    hash: str
    language: str
    lines: int
    counts: dict[str, int]
    problems: tuple[Problem, ...] = ()


class Tree(msgspec.Struct, frozen=True, gc=False):
    id: int
    root: str
    generation: int
    config: str
    listing: bytes
    partial: dict[str, tuple[Problem, ...]] = {}  # files of which facts are lacking that their text would give, and why


class SymbolRow(msgspec.Struct, frozen=True, gc=False):
    path: str
    content: int
    document: int
    number: int
    name: str
    qualified_name: str
    kind: str


class Reader:
    """One tree of the index, as of one generation while `with reader:` holds."""

    def __init__(self, connection: sqlite3.Connection, root: str) -> None:
        self._db = connection
        self._root = prefix_of.tree_key(root)
        self._evidence: dict[int, bool] = {}
        # Of a reader that is kept for the next question: what may be kept with it, while nothing is written.
        self.memory: dict[Any, Any] | None = None
        self._plain: Reader | None = None
        self.inode: tuple[int, int] = (0, 0)
        self._version = -1

    def __enter__(self) -> Reader:
        self._db.execute("BEGIN")
        return self

    def __exit__(self, *_: object) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def close(self) -> None:
        self._db.close()

    @property
    def plain(self) -> Reader:
        """Itself, or the one whose reading this one notes."""
        return self._plain or self

    def traced(self, trace: Trace) -> Reader:
        """The same, noting what is read; it lives as long as this one, and shares of its memory what needs no noting:
        the texts and facts that a content has, and what blobs decode to."""
        other = copy(self)
        other.memory = None if self.memory is None else {name: self.memory[name] for name in _LASTING}
        other._evidence, other._plain = {}, self
        other._db = cast("sqlite3.Connection", TracedConnection(self._db, trace))
        return other

    def check(self, trace: Trace) -> int:
        """See Trace.check."""
        return trace.check(self._db)

    def check_memory(self) -> None:
        """Forgets what may be otherwise once another connection has written."""
        self._db.execute("SELECT count(*) FROM tree")  # only a read begins the transaction that the number is about
        version = self._db.execute("PRAGMA data_version").fetchone()[0]
        if version != self._version:
            self._version = version
            self._evidence = {}
            memory = self.memory or {}
            self.memory = {name: memory.get(name, {}) for name in _LASTING}

    def forget_half(self) -> None:
        """What was not used for longest, and all that may hold on to it."""
        memory = self.memory or {}
        kept = {name: list(memory.get(name, {}).items()) for name in _LASTING}
        self.memory = {name: dict(items[len(items) // 2 :]) for name, items in kept.items()}

    def tree(self) -> Tree | None:
        row = self._db.execute(
            "SELECT id, root, generation, config, listing FROM tree WHERE root=?", (self._root,)
        ).fetchone()
        return Tree(*row, partial=self._find_partial(row[0])) if row else None

    def find_revisions(self, config: str, limit: int) -> list[tuple[int, str, bytes]]:
        """(tree, name, blobs) of the newest revisions that were indexed whole with these settings."""
        rows = self._db.execute(
            "SELECT id, root, blobs FROM tree WHERE blobs IS NOT NULL AND generation>0 AND config=?"
            " ORDER BY id DESC LIMIT ?",
            (config, limit),
        )
        return rows.fetchall()

    def list_revisions(self) -> list[str]:
        """The names of all that were begun, the oldest first."""
        return [name for (name,) in self._db.execute("SELECT root FROM tree WHERE blobs IS NOT NULL ORDER BY id")]

    def measure_revisions(self) -> int:
        """About how many bytes are there for revisions alone: texts and facts that no work tree has, and links."""
        parts = " + ".join(f"length({part})" for part in ("text", *PARTS))
        of = "SELECT content FROM file f JOIN tree t ON t.id=f.tree WHERE t.blobs IS"
        facts = f"SELECT total({parts}) FROM content WHERE id IN ({of} NOT NULL) AND id NOT IN ({of} NULL)"
        of = "SELECT link FROM linked d JOIN tree t ON t.id=d.tree WHERE t.blobs IS"
        links = (
            "SELECT total(length(links) + length(keys) + length(homes) + length(targets)) FROM link"
            f" WHERE id IN ({of} NOT NULL) AND id NOT IN ({of} NULL)"
        )
        return int(sum(self._db.execute(sql).fetchone()[0] for sql in (facts, links)))

    def find_tree(self, root: str) -> int:
        """The number of another tree of this index, 0 where there is none that is whole."""
        row = self._db.execute(
            "SELECT id FROM tree WHERE root=? AND generation>0", (prefix_of.tree_key(root),)
        ).fetchone()
        return row[0] if row else 0

    def _find_partial(self, tree: int) -> dict[str, tuple[Problem, ...]]:
        rows = self._db.execute(
            "SELECT f.path, p.problems FROM partial p CROSS JOIN file f ON f.content=p.content AND f.tree=?"
            " ORDER BY f.path",
            (tree,),
        )
        return {path: msgspec.msgpack.decode(blob, type=tuple[Problem, ...]) for path, blob in rows}

    def meta(self) -> dict[str, str]:
        return dict(self._db.execute("SELECT key, value FROM meta ORDER BY key"))

    def stats(self, tree: int) -> dict[str, tuple[str, int, int]]:
        """path -> (name on disk, size, written_ns) of every file: what a refresh compares."""
        return {
            path: (path if os_path is None else os_path.decode("utf-8", "surrogateescape"), size, written_ns)
            for path, os_path, size, written_ns in self._db.execute(
                "SELECT path, os_path, size, written_ns FROM file WHERE tree=?", (tree,)
            )
        }

    def all_paths(self, tree: int) -> list[str]:
        return [row[0] for row in self._db.execute("SELECT path FROM file WHERE tree=? ORDER BY path", (tree,))]

    def skips(self, tree: int) -> dict[str, tuple[Skip, int, int]]:
        return {
            path: (Skip(path, reason, detail), size, written_ns)
            for path, reason, detail, size, written_ns in self._db.execute(
                "SELECT path, reason, detail, size, written_ns FROM skip WHERE tree=? ORDER BY path", (tree,)
            )
        }

    def count_skips(self, tree: int) -> dict[str, int]:
        """reason -> files."""
        return dict(self._db.execute("SELECT reason, count(*) FROM skip WHERE tree=? GROUP BY 1 ORDER BY 1", (tree,)))

    def known(self) -> dict[tuple[str, str], int]:
        """(hash, language) -> content, of every content ever read and not forgotten."""
        return {
            (h, language): number for number, h, language in self._db.execute("SELECT id, hash, language FROM content")
        }

    def hashes(self, tree: int, paths: Sequence[str]) -> dict[str, tuple[str, str]]:
        """path -> (hash, language) of those that are stored."""
        found: dict[str, tuple[str, str]] = {}
        for at in range(0, len(paths), _IN):
            part = paths[at : at + _IN]
            rows = self._db.execute(
                "SELECT f.path, c.hash, c.language FROM file f JOIN content c ON c.id=f.content"
                f" WHERE f.tree=? AND f.path IN ({','.join('?' * len(part))})",
                (tree, *part),
            )
            found.update({path: (text_hash, language) for path, text_hash, language in rows})
        return found

    def contents(self, tree: int, paths: Sequence[str]) -> dict[str, int]:
        """path -> content of those that are stored."""
        found: dict[str, int] = {}
        for at in range(0, len(paths), _IN):
            part = paths[at : at + _IN]
            rows = self._db.execute(
                f"SELECT path, content FROM file WHERE tree=? AND path IN ({','.join('?' * len(part))})", (tree, *part)
            )
            found.update(dict(rows))
        return found

    def has_code(self, content: int) -> bool:
        counts = self._db.execute("SELECT counts FROM content WHERE id=?", (content,)).fetchone()[0]
        return bool(msgspec.msgpack.decode(counts).get("code"))

    def find_content(self, content_hash: str, language: str) -> int | None:
        row = self._db.execute(
            "SELECT id FROM content WHERE hash=? AND language=?", (content_hash, language)
        ).fetchone()
        return row[0] if row else None

    def files(self, tree: int) -> Iterator[StoredFile]:
        """By path."""
        for row in self._db.execute(f"{_FILES} WHERE f.tree=? ORDER BY f.path", (tree,)):
            yield _file(row)

    def file(self, tree: int, path: str) -> StoredFile | None:
        row = self._db.execute(f"{_FILES} WHERE f.tree=? AND f.path=?", (tree, path)).fetchone()
        return _file(row) if row else None

    def find_files(self, tree: int, contents: Iterable[int] | None) -> Iterator[StoredFile]:
        """Those with one of the contents, or all; by path."""
        if contents is None:
            yield from self.files(tree)
            return
        wanted, rows = sorted(contents), list[Any]()
        for at in range(0, len(wanted), _IN):
            part = wanted[at : at + _IN]
            marks = ",".join("?" * len(part))
            rows += self._db.execute(f"{_FILES} WHERE f.tree=? AND f.content IN ({marks})", (tree, *part))
        yield from map(_file, sorted(rows, key=itemgetter(0)))

    def count_files(self, tree: int) -> dict[str, int]:
        """language -> files, most first."""
        return dict(
            self._db.execute(
                "SELECT c.language, count(*) AS n FROM file f JOIN content c ON c.id=f.content WHERE f.tree=?"
                " GROUP BY c.language ORDER BY n DESC, c.language",
                (tree,),
            )
        )

    def find_similar(self, length: int) -> list[str]:
        """Names of definitions that are about as long."""
        slack = max(2, length // 4)
        rows = self._db.execute(
            "SELECT DISTINCT name FROM symbol WHERE length(name) BETWEEN ? AND ? ORDER BY name",
            (length - slack, length + slack),
        )
        return [row[0] for row in rows]

    def paths(self, tree: int, contents: Iterable[int]) -> dict[int, list[str]]:
        """content -> the paths that have it in this tree; dead content has none."""
        found: dict[int, list[str]] = {}
        wanted = sorted(set(contents))
        for at in range(0, len(wanted), _IN):
            part = wanted[at : at + _IN]
            marks = ",".join("?" * len(part))
            for path, content in self._db.execute(
                f"SELECT path, content FROM file WHERE tree=? AND content IN ({marks}) ORDER BY path", (tree, *part)
            ):
                found.setdefault(content, []).append(path)
        return found

    def text(self, content: int) -> bytes:
        return unpack(self._db.execute("SELECT text FROM content WHERE id=?", (content,)).fetchone()[0])

    def facts(self, content: int) -> FileFacts:
        row = self._db.execute(f"SELECT {', '.join(PARTS)} FROM content WHERE id=?", (content,)).fetchone()
        return decode_facts(dict(zip(PARTS, row, strict=True)))

    def part(self, content: int, part: str) -> Any:
        """One kind of fact, a list with an entry per document; see codec."""
        return decode_part(part, self._db.execute(f"SELECT {part} FROM content WHERE id=?", (content,)).fetchone()[0])

    def documents(self, content: int) -> list[Document]:
        return self.part(content, "documents")

    def symbols(self, content: int) -> list[tuple[Symbol, ...]]:
        return self.part(content, "symbols")

    def calls(self, content: int) -> list[tuple[Call, ...]]:
        return self.part(content, "calls")

    def chunks(self, content: int) -> list[tuple[Chunk, ...]]:
        return self.part(content, "chunks")

    def find_symbols(self, tree: int, name: str) -> list[SymbolRow]:
        """Definitions of exactly this name, parameters and locals apart; by path and place."""
        rows = self._db.execute(
            "SELECT f.path, s.content, s.document, s.number, s.name, s.qualified_name, s.kind FROM symbol s"
            " JOIN file f ON f.content=s.content AND f.tree=? WHERE s.name=? ORDER BY f.path, s.document, s.number",
            (tree, name),
        )
        return [SymbolRow(*row) for row in rows]

    def complete(self, tree: int, prefix: str, limit: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """See store.prefix."""
        return prefix_of.complete(self._db, tree, prefix, limit)

    def find_kinds(self, tree: int, kinds: Sequence[str]) -> list[tuple[int, str, str]]:
        """(content, name, qualified name) of every definition of these kinds, parameters and locals apart."""
        return self._db.execute(
            "SELECT content, name, qualified_name FROM symbol WHERE content IN (SELECT content FROM file WHERE tree=?)"
            f" AND kind IN ({','.join('?' * len(kinds))})",
            (tree, *kinds),
        ).fetchall()

    # -- vectors ---------------------------------------------------------------------------------

    def vector_states(self, tree: int) -> list[tuple[str, str, int, bytes, int | None, str | None]]:
        """(path, language, content, kinds of its chunks, content its vectors are of, their identity); by path."""
        return self._db.execute(
            "SELECT f.path, c.language, c.id, k.kinds, v.content, v.identity FROM file f"
            " JOIN content c ON c.id=f.content JOIN kind k ON k.content=c.id"
            " LEFT JOIN vector v ON v.tree=f.tree AND v.path=f.path WHERE f.tree=? ORDER BY f.path",
            (tree,),
        ).fetchall()

    def vectors(self, tree: int, identity: str) -> Iterator[tuple[str, bytes]]:
        """(path, rows) of every file whose vectors are of its text; by path."""
        return self._db.execute(
            "SELECT v.path, v.rows FROM vector v JOIN file f ON f.tree=v.tree AND f.path=v.path AND f.content=v.content"
            " WHERE v.tree=? AND v.identity=? ORDER BY v.path",
            (tree, identity),
        )

    def vectors_at(self, tree: int, path: str, identity: str) -> bytes | None:
        """The rows of one file, if they are of its text."""
        row = self._db.execute(
            "SELECT v.rows FROM vector v JOIN file f ON f.tree=v.tree AND f.path=v.path AND f.content=v.content"
            " WHERE v.tree=? AND v.path=? AND v.identity=?",
            (tree, path, identity),
        ).fetchone()
        return row[0] if row else None

    def vectors_of(self, tree: int, path: str, identity: str) -> list[bytes]:
        """Rows that were made of this path before, in this tree or another."""
        rows = self._db.execute(
            "SELECT rows FROM vector WHERE tree IN (SELECT id FROM tree) AND path=? AND identity=?"
            " ORDER BY tree<>?, tree LIMIT 4",
            (path, identity, tree),
        )
        return [row for (row,) in rows]

    def last_vector(self, tree: int) -> tuple[int, int]:
        """How many files have vectors, and the number of the newest: another pair, other vectors."""
        return self._db.execute("SELECT count(*), coalesce(max(id), 0) FROM vector WHERE tree=?", (tree,)).fetchone()

    # -- links -----------------------------------------------------------------------------------

    def links(self, tree: int, path: str) -> list[Links | None]:
        """What the code of a file means, of every document; nothing for a file without code."""
        return [found and found[0] for found in self.evaluate(tree, path)]

    def own_links(self, tree: int, path: str) -> list[Links | None]:
        """As our own resolution left them, whatever others say."""
        row = self._db.execute(
            "SELECT l.links FROM linked d JOIN link l ON l.id=d.link WHERE d.tree=? AND d.path=?", (tree, path)
        ).fetchone()
        return self._decode("links", row[0], decode_links) if row else []

    def evaluate(self, tree: int, path: str) -> list[tuple[Links, tuple[Conflict, ...]] | None]:
        """The links completed by what sources outside say, and where they contradict them."""
        links = self.own_links(tree, path)
        said = self.evidence(tree, path) if links and self.has_evidence(tree) else {}
        return [
            each and (merge_evidence(each, said[number]) if number in said else (each, ()))
            for number, each in enumerate(links)
        ]

    def has_evidence(self, tree: int) -> bool:
        """Looked at once: most trees have none."""
        if tree not in self._evidence:
            found = self._db.execute("SELECT 1 FROM evidence WHERE tree=? LIMIT 1", (tree,)).fetchone()
            self._evidence[tree] = found is not None
        return self._evidence[tree]

    def evidence(self, tree: int, path: str) -> dict[int, dict[int, list[tuple[str, Statement]]]]:
        """document -> call -> (source, what it says), by source; of texts that are as they were."""
        found: dict[tuple[str, int], dict[int, tuple[Candidate | None, str]]] = {}
        rows = self._db.execute(
            "SELECT e.source, e.role, e.target_path, e.target_document, e.target_name, e.calls"
            f" {_EVIDENCE} AND e.path=? ORDER BY e.source, e.key",
            (tree, path),
        )
        said: dict[int, dict[int, list[tuple[str, Statement]]]] = {}
        for source, role, target_path, document, name, calls in rows:
            meant = Candidate(target_path, document, name) if target_path else None, "" if target_path else name
            for call in array("I", calls):
                if role == RAN:
                    statement = Statement(call >> 24, call & 0xFFFFFF, meant[0], ran=True)
                    said.setdefault(call >> 24, {}).setdefault(call & 0xFFFFFF, []).append((source, statement))
                    continue
                found.setdefault((source, call), {})[role] = meant
        for (source, place), roles in found.items():
            document, call = place >> 24, place & 0xFFFFFF
            target, module = roles.get(0, (None, ""))
            statement = Statement(document, call, target, module, roles.get(1, (None, ""))[0])
            said.setdefault(document, {}).setdefault(call, []).append((source, statement))
        return said

    def named(self, tree: int, path: str, source: str) -> set[tuple[int, str]]:
        """(document, name) of the definitions of a file that a source knows by a name of its own."""
        rows = self._db.execute(
            f"SELECT e.target_document, e.target_name {_EVIDENCE} AND e.path=? AND e.source=? AND e.role=2",
            (tree, path, source),
        )
        return set(rows.fetchall())

    def asked(self, tree: int, source: str, version: str) -> set[str]:
        """Paths whose text of now a source has been asked about, and of which all it said still holds."""
        rows = self._db.execute(
            "SELECT a.path FROM asked a JOIN file f ON f.tree=a.tree AND f.path=a.path"
            " JOIN content c ON c.id=f.content AND c.hash=a.hash WHERE a.tree=? AND a.source=? AND a.version=?"
            " AND NOT EXISTS (SELECT 1 FROM evidence e LEFT JOIN file g ON g.tree=e.tree AND g.path=e.target_path"
            " LEFT JOIN content d ON d.id=g.content WHERE e.tree=a.tree AND e.path=a.path AND e.source=a.source"
            " AND e.target_path<>'' AND d.hash IS NOT e.target_hash)",
            (tree, source, version),
        )
        return {row[0] for row in rows}

    def evidence_sources(self, tree: int) -> list[tuple[str, str, int]]:
        """(source, version, files), by source."""
        return self._db.execute(
            "SELECT source, version, count(*) FROM asked WHERE tree=? GROUP BY 1, 2 ORDER BY 1, 2",
            (tree,),
        ).fetchall()

    def linked_paths(self, tree: int) -> list[str]:
        return [row[0] for row in self._db.execute("SELECT path FROM linked WHERE tree=? ORDER BY path", (tree,))]

    def mistakes(self, tree: int) -> dict[str, list[Mistake]]:
        """What the links of files lack through mistakes of ours; by path. Under "" those that made a refresh link all,
        each as often as it did."""
        rows = self._db.execute("SELECT path, mistakes FROM mistake WHERE tree=? ORDER BY path", (tree,))
        return {path: _MISTAKES.decode(blob) for path, blob in rows}

    def count_mistakes(self, tree: int) -> list[MistakeStatus]:
        """What each of them costs, the worst first."""
        found: dict[tuple[str, str], tuple[list[str], list[str], list[str]]] = {}
        for path, mistakes in self.mistakes(tree).items():
            for each in mistakes:
                costs = found.setdefault((each.error, each.place), ([], [], []))
                costs[2 if not path else bool(each.homes)].append(path)
        rows = [
            MistakeStatus(*key, len(lost), len(lacking), len(refreshes), (*lost, *lacking)[:_MOST_NAMED])
            for key, (lost, lacking, refreshes) in found.items()
        ]
        return sorted(rows, key=lambda row: (-row.unlinked, -row.incomplete, -row.refreshes, row.error, row.place))

    def homes(self, tree: int, path: str) -> dict[int, list[int]]:
        """What each part of a file's code depends on; see cq.graph.unit.Unit.home."""
        row = self._db.execute(
            "SELECT l.keys, l.homes FROM linked d JOIN link l ON l.id=d.link WHERE d.tree=? AND d.path=?", (tree, path)
        ).fetchone()
        return decode_homes(*row) if row else {}

    def find_dependents(self, tree: int, keys: set[int]) -> dict[str, set[int]]:
        """The files whose links depend on some of these parts of others, with those; by path."""
        wanted = sorted(keys)
        found: dict[str, set[int]] = {}
        rows = self._db.execute(
            "SELECT d.path, l.keys FROM linked d JOIN link l ON l.id=d.link WHERE d.tree=? ORDER BY d.path", (tree,)
        )
        for path, blob in rows:
            known = memoryview(blob).cast("Q")
            last = len(known) - 1
            if len(wanted) > _FEW_KEYS or not blob:
                hit = keys.intersection(known)
            else:
                hit = {key for key in wanted if known[min(bisect_left(known, key), last)] == key}
            if hit:
                found[path] = hit
        return found

    def find_referrers(self, tree: int, key: int) -> list[tuple[str, array[int]]]:
        """(path, calls) of the files that refer to what the key stands for; by path."""
        # CROSS: the few rows of the key first. Left to itself SQLite walks every file, to have them in order.
        rows = self._db.execute(
            "SELECT d.path, t.calls FROM target t CROSS JOIN linked d ON d.link=t.link AND d.tree=?"
            " WHERE t.key=? ORDER BY d.path",
            (tree, key),
        ).fetchall()
        if self.has_evidence(tree):
            # A source that only says it has a name for the definition refers to it nowhere.
            sql = f"SELECT e.path, e.calls {_EVIDENCE} AND e.key=? AND e.role<>?"
            rows = sorted(rows + self._db.execute(sql, (tree, key, NAMED)).fetchall())
        found: dict[str, array[int]] = {}
        for path, calls in rows:
            own, more = found.get(path, array("I")), array("I", calls)
            found[path] = array("I", sorted({*own, *more})) if own and more else own or more  # both may name a call
        return list(found.items())

    def has_referrers(self, tree: int, key: int) -> bool:
        sql = "SELECT 1 FROM target t CROSS JOIN linked d ON d.link=t.link AND d.tree=? WHERE t.key=? LIMIT 1"
        return self._db.execute(sql, (tree, key)).fetchone() is not None

    def find_methods(self, tree: int, name: str) -> list[tuple[str, int, str, tuple[Parameter, ...]]]:
        """(path, document, qualified name, parameters) of every method of that name; by path."""
        rows = self._db.execute(
            "SELECT f.path, m.methods FROM method m CROSS JOIN file f ON f.content=m.content AND f.tree=?"
            " WHERE m.name=? ORDER BY f.path",
            (tree, name),
        )
        return [(path, *method) for path, methods in rows for method in _METHODS.decode(methods)]

    def find_named(self, tree: int, name: str, kind: NamedKind, limit: int) -> list[str]:
        """Paths of files that are found by a name (see NAMED_KINDS of cq.model.code): any `limit`."""
        rows = self._db.execute(
            "SELECT f.path FROM named n CROSS JOIN file f ON f.content=n.content"
            " WHERE n.name=? AND n.kind=? AND +f.tree=? LIMIT ?",
            (name, NAMED_KINDS.index(kind), tree, limit),
        )
        return sorted(row[0] for row in rows)

    def all_named(self) -> Iterator[tuple[str, int, int]]:
        """(name, kind, content), of every tree."""
        return self._db.execute("SELECT name, kind, content FROM named")

    def all_code(self, tree: int) -> dict[str, tuple[int, bytes]]:
        """(content, code as `decode_part` takes it) of every file that has some; by path."""
        rows = self._db.execute(
            "SELECT f.path, f.content, c.counts, c.code FROM file f JOIN content c ON c.id=f.content WHERE f.tree=?"
            " ORDER BY f.path",
            (tree,),
        )
        return {
            path: (content, code) for path, content, counts, code in rows if msgspec.msgpack.decode(counts).get("code")
        }

    def code(self, tree: int, path: str) -> list[Code | None]:
        return self._code(tree, path, "code", lambda blob: decode_part("code", blob))

    def names(self, tree: int, path: str) -> list[dict[int, str]]:
        """What links call the definitions of each document, by symbol."""
        return self._code(tree, path, "names", decode_names)

    def _code(self, tree: int, path: str, kind: str, decode: Callable[[bytes], Any]) -> Any:
        row = self._db.execute(
            "SELECT c.code FROM file f JOIN content c ON c.id=f.content WHERE f.tree=? AND f.path=?", (tree, path)
        ).fetchone()
        return self._decode(kind, row[0], decode) if row else []

    def _decode(self, kind: str, blob: bytes, decode: Callable[[bytes], Any]) -> Any:
        """Once for the same bytes, where there is a memory."""
        if self.memory is None:
            return decode(blob)
        known: dict[tuple[str, bytes], Any] = self.memory["decoded"]
        if (kind, blob) not in known:
            known[kind, blob] = decode(blob)
            if len(known) > _MOST_DECODED:
                del known[next(iter(known))]
        return known[kind, blob]

    def find_trigram(self, literal: str) -> list[int] | None:
        """Contents that may hold the literal, any case; None when it has no three characters on one line."""
        bits = find_bits(literal)
        if not bits:
            return None
        tests = " AND ".join(["instr(?, substr(bits, 1 + (? & (length(bits) - 1)), 1))"] * len(bits))
        values = tuple(value for place, bit in bits for value in (_BYTES[bit], place))
        sql = f"SELECT content FROM trigram WHERE {tests} ORDER BY content"
        rows = self.plain._find_held(literal, bits)
        if rows is None:
            rows = self._db.execute(sql, values).fetchall()
        elif isinstance(self._db, TracedConnection):
            self._db.note(sql, values, rows)
        return [row[0] for row in rows]

    def _find_held(self, literal: str, bits: list[tuple[int, int]]) -> list[tuple[int]] | None:
        """The rows of find_trigram by bitmaps that are held, where there is a memory and they are not too many."""
        if self.memory is None:
            return None
        known: dict[str, list[tuple[int]]] = self.memory.setdefault("holding", {})
        if literal in known:
            return known[literal]
        if "trigrams" not in self.memory:
            size = self._db.execute("SELECT total(length(bits)) FROM trigram").fetchone()[0]
            rows = self._db.execute("SELECT content, bits FROM trigram ORDER BY content")
            self.memory["trigrams"] = rows.fetchall() if size <= _MOST_TRIGRAMS else None
        table: list[tuple[int, bytes]] | None = self.memory["trigrams"]
        if table is None:
            return None
        tests = [(place, 1 << bit) for place, bit in bits]
        found: list[tuple[int]] = []
        for content, held in table:
            last = len(held) - 1
            for place, flag in tests:
                if not held[place & last] & flag:
                    break
            else:
                found.append((content,))
        if len(known) >= _MOST_LITERALS:
            del known[next(iter(known))]
        known[literal] = found
        return found

    def find_names(self, name: str, column: str = "defined called used") -> list[int]:
        """Contents that define, call or use an identifier, any case; of a name of several words, all the words."""
        words = sorted(set(_NAME_WORD.findall(name)))
        if not words:  # an operator: any content may use it
            return [row[0] for row in self._db.execute("SELECT id FROM content")]
        phrase = f"{{{column}}}: ({' AND '.join(map(_phrase, words))})"
        return [row[0] for row in self._db.execute("SELECT rowid FROM name WHERE name MATCH ?", (phrase,))]

    def has_words(self) -> bool:
        """Whether there is an index of words: in the profile `vector_only` there is none."""
        return has_words(self._db)

    def find_words(self, term: str, column: str, limit: int) -> list[int]:
        """Rows of the chunks that have the term in this field of `words`, ascending, the first `limit` of them."""
        phrase = f"{{{column}}}: {_phrase(term)}"
        rows = self._db.execute("SELECT rowid FROM words WHERE words MATCH ? LIMIT ?", (phrase, limit))
        return [row for (row,) in rows]

    def chunk_rows(self, tree: int) -> list[tuple[str, str, int, int, bytes, bytes]]:
        """(path, language, content, row of its first chunk in `words`, kinds and sizes of its chunks) of every file,
        by path."""
        return self._db.execute(
            "SELECT f.path, c.language, c.id, c.chunk_base, k.kinds, k.sizes FROM file f"
            " JOIN content c ON c.id=f.content JOIN kind k ON k.content=c.id WHERE f.tree=? ORDER BY f.path",
            (tree,),
        ).fetchall()

    def integrity(self) -> list[str]:
        """What SQLite itself finds wrong."""
        problems = [row[0] for row in self._db.execute("PRAGMA quick_check(20)") if row[0] != "ok"]
        for table in ("name", "words"):
            try:
                self._db.execute(f"SELECT count(*) FROM {table}_data").fetchone()
            except sqlite3.Error as error:
                problems.append(f"{table}: {error}")
        return problems


class LinkedTree:
    """The links of one tree, as cq.semantics.documents reads them."""

    def __init__(self, reader: Reader, tree: int, load: Callable[[str, str], Any] | None = None) -> None:
        """`load` gives a part of the file at a path, [] where there is none, from what may be at hand already."""
        self._reader, self._tree = reader, tree
        self._load = load or self._read
        self._last: tuple[tuple[str, str], Any] = ("", ""), []  # names of one file are asked about in a row

    def links(self, path: str) -> list[Links | None]:
        return self._reader.links(self._tree, path)

    def code(self, path: str) -> list[Code | None]:
        return self._reader.code(self._tree, path)

    def names(self, path: str) -> list[dict[int, str]]:
        return self._reader.names(self._tree, path)

    def calls(self, path: str) -> list[tuple[Call, ...]]:
        return self._part(path, "calls")

    def symbols(self, path: str) -> list[tuple[Symbol, ...]]:
        return self._part(path, "symbols")

    def references(self, path: str) -> list[References]:
        return self._part(path, "refs")

    def text(self, path: str) -> bytes:
        return self._load(path, "text") or b""

    def paths(self) -> list[str]:
        return self._reader.all_paths(self._tree)

    def find_users(self, name: str) -> list[str]:
        """Paths of files whose code may call or use the name; by path."""
        found = self._reader.paths(self._tree, self._reader.find_names(name, "called used"))
        return sorted(path for paths in found.values() for path in paths)

    def find_named(self, name: str, kind: NamedKind, limit: int) -> list[str]:
        return self._reader.find_named(self._tree, name, kind, limit)

    def find_referrers(self, key: int) -> list[tuple[str, array[int]]]:
        return self._reader.find_referrers(self._tree, key)

    def has_referrers(self, key: int) -> bool:
        return self._reader.has_referrers(self._tree, key)

    def find_methods(self, name: str) -> list[tuple[str, int, str, tuple[Parameter, ...]]]:
        return self._reader.find_methods(self._tree, name)

    def _part(self, path: str, part: str) -> Any:
        if self._last[0] != (path, part):
            self._last = (path, part), self._load(path, part)
        return self._last[1]

    def _read(self, path: str, part: str) -> Any:
        content = self._reader.contents(self._tree, [path]).get(path)
        if content is None:
            return []
        return self._reader.text(content) if part == "text" else self._reader.part(content, part)


def find_vectors(data: Path, root: str) -> list[tuple[str, tuple[str, str], str, bytes]]:
    """(path, hash and language of what they were made of, identity, rows) of a tree, by path, as far as the file can be
    read: it may be damaged, or of another format. Rows have a checksum of their own."""
    sql = (
        "SELECT v.path, coalesce(c.hash, ''), coalesce(c.language, ''), v.identity, v.rows FROM vector v"
        " JOIN tree t ON t.id=v.tree LEFT JOIN content c ON c.id=v.content WHERE t.root=?"
    )
    found: dict[str, tuple[str, tuple[str, str], str, bytes]] = {}
    # A text may be no UTF-8 any more.
    with suppress(sqlite3.Error, ValueError), closing(open_data(data, write=False)) as connection:
        for path, text_hash, language, identity, rows in connection.execute(sql, (prefix_of.tree_key(root),)):
            if type(rows) is bytes and type(path) is str and type(identity) is str:
                found[path] = path, (text_hash, language), identity, rows
    return [found[path] for path in sorted(found)]


def _file(row: tuple[Any, ...]) -> StoredFile:
    path, os_path, content, size, encoding, text_hash, language, lines, counts, problems = row
    return StoredFile(
        path,
        path if os_path is None else os_path.decode("utf-8", "surrogateescape"),
        content,
        size,
        encoding,
        text_hash,
        language,
        lines,
        msgspec.msgpack.decode(counts),
        msgspec.msgpack.decode(problems, type=tuple[Problem, ...]) if problems else (),
    )


def _phrase(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'
