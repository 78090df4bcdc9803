"""What is too heavy for an answer, kept beside the index until newer answers push it out: as files, or in one SQLite
file where `cq.toml` says so."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Protocol

import msgspec
from xxhash import xxh3_64_hexdigest

from cq.model.answer import ArtifactRef
from cq.model.errors import UsageError, suggest
from cq.opening import read_file
from cq.store.lock import write_file

FOLDER = "answers"
KEPT = 200
_SPARE = 50  # beyond those before the oldest go


class StoredArtifact(msgspec.Struct, frozen=True):
    id: str
    kind: str
    command: str
    bytes: int


class _File(msgspec.Struct, frozen=True):
    kind: str
    command: str
    value: Any


class Overflow(msgspec.Struct, frozen=True):
    """An artifact before it is stored. Its name is made from its content: the same answer leaves it once."""

    name: str
    kind: str
    data: bytes

    @classmethod
    def of(cls, command: str, kind: str, value: Any) -> Overflow:
        data = msgspec.json.encode(_File(kind, command, value))
        return cls(f"{kind}-{xxh3_64_hexdigest(data)}", kind, data)


class ArtifactStore(Protocol):
    """Where artifacts lie. OSError for one that cannot be written, KeyError for one that is not there."""

    def store(self, artifact_id: str, payload: bytes) -> str:
        """Returns the storage path that gets it back."""
        ...

    def retrieve(self, storage_path: str) -> bytes: ...

    def names(self) -> list[str]:
        """Sorted."""
        ...


class FileStore:
    """A file each, in a folder of its own."""

    def __init__(self, index: Path) -> None:
        self._folder = index.parent / FOLDER

    def store(self, artifact_id: str, payload: bytes) -> str:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        path = self._folder / f"{artifact_id}.json"
        if path.exists():
            path.touch()
            return artifact_id
        write_file(path, [payload])
        kept = list(self._folder.glob("*.json"))
        if len(kept) > KEPT + _SPARE:  # their ages cost more than the answer
            for old in sorted(kept, key=_age, reverse=True)[KEPT:]:
                old.unlink(missing_ok=True)
        return artifact_id

    def retrieve(self, storage_path: str) -> bytes:
        # A name is looked up, never joined: what the user types leads nowhere else.
        known = {path.stem: path for path in self._folder.glob("*.json")}
        with suppress(OSError):
            return read_file(known[storage_path])
        raise KeyError(storage_path)

    def names(self) -> list[str]:
        return sorted(path.stem for path in self._folder.glob("*.json"))


class SqliteStore:
    """All in one file beside the index. `used` counts up: the smallest have not been wanted for longest."""

    def __init__(self, index: Path) -> None:
        self._path = index.parent / f"{FOLDER}.sqlite"

    def store(self, artifact_id: str, payload: bytes) -> str:
        try:
            with closing(sqlite3.connect(self._path, timeout=2)) as db, db:
                db.execute("CREATE TABLE IF NOT EXISTS artifact (id TEXT PRIMARY KEY, payload BLOB, used INTEGER)")
                db.execute(
                    "INSERT INTO artifact SELECT ?, ?, coalesce(max(used), 0) + 1 FROM artifact WHERE true"
                    " ON CONFLICT(id) DO UPDATE SET used=excluded.used",
                    (artifact_id, payload),
                )
                db.execute(
                    "DELETE FROM artifact WHERE id NOT IN (SELECT id FROM artifact ORDER BY used DESC LIMIT ?)", (KEPT,)
                )
        except sqlite3.Error as error:
            raise OSError(str(error)) from None
        return artifact_id

    def retrieve(self, storage_path: str) -> bytes:
        rows = self._read("SELECT payload FROM artifact WHERE id=?", storage_path)
        if not rows:
            raise KeyError(storage_path)
        return rows[0][0]

    def names(self) -> list[str]:
        return [row[0] for row in self._read("SELECT id FROM artifact ORDER BY id")]

    def _read(self, sql: str, *values: str) -> list[Any]:
        if not self._path.exists():
            return []
        try:
            with closing(sqlite3.connect(self._path, timeout=2)) as db:
                return db.execute(sql, values).fetchall()
        except sqlite3.Error:
            return []


STORES: dict[str, type[FileStore | SqliteStore]] = {"files": FileStore, "sqlite": SqliteStore}


def save(store: ArtifactStore, item: Overflow) -> ArtifactRef | None:
    """None where nothing can be written."""
    try:
        return ArtifactRef(store.store(item.name, item.data), item.kind, len(item.data))
    except OSError:
        return None


def find(store: ArtifactStore) -> Iterator[StoredArtifact]:
    """By name."""
    for name in store.names():
        with suppress(KeyError, msgspec.MsgspecError):
            data = store.retrieve(name)
            stored = msgspec.json.decode(data, type=_File)
            yield StoredArtifact(name, stored.kind, stored.command, len(data))


def load(store: ArtifactStore, name: str) -> Any:
    """Its value, None where there is none of that name."""
    with suppress(KeyError, msgspec.MsgspecError):
        return msgspec.json.decode(store.retrieve(name), type=_File).value
    return None


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def get(store: ArtifactStore, name: str) -> Any:
    """UsageError for a name that is none."""
    value = load(store, name)
    if value is None:
        hint = suggest(name, store.names(), "`cq artifact list` lists them")
        raise UsageError(f"there is no artifact {name!r}", hint=hint)
    return value


def take_page(value: Any, number: int, size: int) -> dict[str, Any]:
    """Some rows of a stored list, or of a slice its nodes with their edges; UsageError for what has no pages."""
    whole: dict[str, Any] = value if isinstance(value, dict) else {"rows": value}
    name = next((name for name in ("preview", "rows") if isinstance(whole.get(name), list)), "")
    if not name:
        raise UsageError("this artifact is no list: it has no pages", hint="without --page all of it is shown")
    rows = whole[name]
    pages = max(-(-len(rows) // size), 1)
    if not 1 <= number <= pages:
        raise UsageError(f"there is no page {number}", hint=f"the last one is --page {pages}")
    shown = rows[(number - 1) * size : number * size]
    cut = {**whole, name: shown, "page": number, "pages": pages}
    if name == "preview":
        kept = {node["node_id"] for node in shown}
        ends = ("source_node_id", "target_node_id")
        cut["edges"] = [edge for edge in whole.get("edges", ()) if any(edge[end] in kept for end in ends)]
    return cut
