"""Opening, checking and rebuilding the index file, and the writer's lock."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

from cq.model.errors import StoreError
from cq.store.lock import remove_file, take_lock
from cq.store.prefix import name_file

SCHEMA = 10
Connection = sqlite3.Connection
DatabaseError = sqlite3.DatabaseError
_APPLICATION_ID = 0x63715F31  # "cq_1": another program's file is never taken for ours
BUSY_MS = 10_000


def connect(path: Path, *, write: bool = False) -> sqlite3.Connection:
    """A connection to an existing index. Readers see one generation per transaction and never wait for the writer."""
    uri = name_file(os.fspath(path.absolute())) + (b"?mode=rw" if write else b"?mode=ro")
    try:
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be opened: {error}", hint="see `cq doctor`") from None
    connection.execute(f"PRAGMA busy_timeout={BUSY_MS}")
    connection.execute("PRAGMA cache_size=-32768")
    if not write:
        if sys.platform != "win32":  # there nobody could shorten a file that someone has mapped
            connection.execute("PRAGMA mmap_size=268435456")
    else:
        # A power cut may lose the last commit, never the file; the index can be made again.
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA temp_store=MEMORY")
    return connection


def create(path: Path, producer: str, *, words: bool = True) -> sqlite3.Connection:
    """A new, empty index in place of whatever lies there; without `words` it never gets an index of them."""
    remove(path)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.executescript(
        f"PRAGMA page_size=8192; PRAGMA journal_mode=WAL; PRAGMA application_id={_APPLICATION_ID};"
        f"PRAGMA user_version={SCHEMA};"
    )
    connection.execute("BEGIN IMMEDIATE")
    for statement in _statements():
        connection.execute(statement)
    connection.execute("INSERT INTO meta VALUES ('producer', ?)", (producer,))
    connection.execute("INSERT INTO meta VALUES ('words', ?)", ("yes" if words else "no",))
    connection.execute("COMMIT")
    connection.close()
    return connect(path, write=True)


def explain(error: DatabaseError, path: Path) -> StoreError:
    """What SQLite said, in the words of the user."""
    text = str(error)
    if "disk is full" in text:
        hint = "make room, or set CQ_INDEX_DIR; the last index stands"
        return StoreError(f"the disk that holds {path.parent} is full", hint=hint)
    if "readonly" in text or "unable to open" in text:
        return StoreError(f"{path.parent} cannot be written", hint="set CQ_INDEX_DIR to a directory of yours")
    return StoreError(f"{path}: {text}", hint="remove the file: it is made again")


def damage(path: Path, producer: str = "", *, words: bool | None = None) -> str | None:
    """Why the file cannot be used, in a few words, or None when it can. Without a producer, whosever facts serve;
    `words` says whether the profile that is asked for has an index of them."""
    try:
        with contextlib.closing(connect(path)) as connection:
            if connection.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
                return "not an index of cq"
            number = connection.execute("PRAGMA user_version").fetchone()[0]
            if number != SCHEMA:
                return f"written by another version (format {number}, this is {SCHEMA})"
            row = connection.execute("SELECT value FROM meta WHERE key='producer'").fetchone()
            if producer and (row is None or row[0] != producer):
                return "made by another version of cq or of a grammar"
            if words is not None and words != has_words(connection):
                return f"made for another profile, {'without' if words else 'with'} an index of words"
            connection.execute("SELECT max(id) FROM content").fetchone()
    except (sqlite3.Error, StoreError) as error:
        return f"damaged: {error}"
    return None


def has_words(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT value FROM meta WHERE key='words'").fetchone() != ("no",)


def check(path: Path, root: str) -> None:
    """StoreError for what is no index that can be read."""
    why = damage(path) if path.exists() else "missing"
    if why:
        raise StoreError(f"there is no index of {root} ({why})", hint="`cq index` makes one")


def remove(path: Path) -> None:
    for name in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        remove_file(name, BUSY_MS / 1000)


@contextlib.contextmanager
def writer_lock(path: Path, *, wait: bool) -> Iterator[bool]:
    """The one writer's lock; yields whether it was had. The system drops it with the process that held it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        had = take_lock(handle, wait=wait)
        _held.add(handle)
        if had:
            os.ftruncate(handle, 0)
            os.write(handle, f"{os.getpid()}\n".encode())
        yield had
    finally:
        _held.discard(handle)
        os.close(handle)


def is_writing(path: Path) -> bool:
    """Whether another process has the lock now."""
    if not path.parent.is_dir():
        return False
    with writer_lock(path, wait=False) as had:
        return not had


def drop_inherited_locks() -> None:
    """For a forked worker: a lock lives as long as any process has its file open, so a killed writer's would stay."""
    for handle in _held:
        with contextlib.suppress(OSError):
            os.close(handle)
    _held.clear()


_held: set[int] = set()


def _statements() -> Iterator[str]:
    from importlib import resources

    script = resources.files("cq.store").joinpath("schema.sql").read_text("utf-8")
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
