"""Opening, checking and rebuilding the index, and the writer's lock. An index is two files: its head (see `head`) and
the data it names. A new index is built beside the one there is and takes its place when it is whole; who reads the old
one goes on reading it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from cq.model.errors import StoreError
from cq.store import head as heads
from cq.store import kept
from cq.store.head import PAGE, BadHead, Head, Stamp, find_data, find_fault, find_number, load_head, save_head
from cq.store.lock import DRAFT, remove_file, take_lock
from cq.store.prefix import name_file

SCHEMA = 15
Connection = sqlite3.Connection
DatabaseError = sqlite3.DatabaseError
BUSY_MS = 10_000
_TRIES = 20  # to open what a writer replaces in the same moment


def connect(index: Path, *, write: bool = False) -> sqlite3.Connection:
    """A connection to an existing index. Readers see one generation per transaction and never wait for the writer."""
    for tries in range(_TRIES):
        data = _find_data(index)
        connection: sqlite3.Connection | None = None
        try:
            connection = open_data(data, write=write)
            # The log is opened by the first read. It belongs to this data as long as the head names it.
            connection.execute("SELECT count(*) FROM meta").fetchone()
            if _find_data(index) == data and data.exists():
                return connection
        except sqlite3.Error as error:
            if tries == _TRIES - 1 or _find_data(index) == data:
                if connection is not None:
                    connection.close()
                raise explain(error, index) from None
        if connection is not None:
            connection.close()
    raise StoreError(f"{index} is being replaced again and again", hint="ask again")


def _find_data(index: Path) -> Path:
    try:
        return find_data(index)
    except (OSError, BadHead) as error:
        raise StoreError(f"{index} cannot be opened: {error}", hint="`cq index` makes it anew") from None


def open_data(data: Path, *, write: bool) -> sqlite3.Connection:
    uri = name_file(os.fspath(data.absolute())) + (b"?mode=rw" if write else b"?mode=ro")
    connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    connection.execute(f"PRAGMA busy_timeout={BUSY_MS}")
    connection.execute("PRAGMA cache_size=-32768")
    # Of a file that somebody brought here: what its schema says is not trusted with anything, nor are its cells.
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.execute("PRAGMA cell_size_check=ON")
    # It is not mapped: of a file that is cut while somebody reads it that would be the end of the reader.
    if write:
        # A power cut may lose the last commit, never the file; the index can be made again.
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA temp_store=MEMORY")
        connection.execute("PRAGMA wal_autocheckpoint=0")  # see `writing`
    return connection


@contextlib.contextmanager
def build(index: Path, producer: str, *, words: bool = True) -> Iterator[sqlite3.Connection]:
    """A new, empty index beside whatever lies there; it takes its place once the block ends well. For the holder of the
    lock. Without `words` it never gets an index of them."""
    index.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    numbers = [find_number(index, path.name) for path in index.parent.iterdir()]
    data = heads.name_data(index, max(numbers, default=0) + 1)
    _clear(index)
    # A name that somebody laid there, a link perhaps, is not followed.
    os.close(os.open(data, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        with contextlib.closing(sqlite3.connect(data, isolation_level=None, check_same_thread=False)) as connection:
            # Until it is whole nobody reads it, and after a kill nobody wants it: it needs no journal.
            connection.executescript(
                f"PRAGMA page_size={PAGE}; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA temp_store=MEMORY;"
                "PRAGMA cache_size=-32768; PRAGMA locking_mode=EXCLUSIVE; BEGIN IMMEDIATE;"
            )
            for statement in _statements():
                connection.execute(statement)
            connection.execute("INSERT INTO meta VALUES ('producer', ?)", (producer,))
            connection.execute("INSERT INTO meta VALUES ('words', ?)", ("yes" if words else "no",))
            connection.execute("COMMIT")
            yield connection
            connection.execute("PRAGMA locking_mode=NORMAL")
            connection.execute("PRAGMA journal_mode=WAL")
        digests = heads.digest_file(data)
        head = heads.describe(index, Head(data.name, SCHEMA, producer, words, Stamp(0, 0, 0, 0)))
        save_head(index, head, digests)
    except BaseException:
        _remove_data(data)
        raise
    _clear(index)


@contextlib.contextmanager
def writing(index: Path) -> Iterator[sqlite3.Connection]:
    """A connection that writes, for the holder of the lock. What was committed is in the head when the block ends."""
    try:
        # SQLite moves the log into the data when the last connection is closed; one that only reads cannot.
        with contextlib.closing(connect(index)), contextlib.closing(connect(index, write=True)) as connection:
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                _settle(index, connection)
    except sqlite3.Error as error:
        if is_damage(error):
            raise
        raise explain(error, index) from None


def _settle(index: Path, connection: sqlite3.Connection) -> None:
    """First the head knows the pages in the log, then they may move: whenever this is killed, head and data agree."""
    head = load_head(index)
    if heads.is_untouched(index, head):
        return
    head, digests = heads.count(index, head)
    save_head(index, heads.describe(index, head), digests)
    connection.execute("PRAGMA busy_timeout=0")  # readers of an older generation keep their part of the log
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    save_head(index, heads.describe(index, head), digests)


def explain(error: sqlite3.Error, path: Path) -> StoreError:
    """What SQLite said, in the words of the user."""
    text = str(error)
    if "disk is full" in text:
        hint = "make room, or set CQ_INDEX_DIR; the last index stands"
        return StoreError(f"the disk that holds {path.parent} is full", hint=hint)
    if "disk I/O error" in text:
        hint = "look at the disk, and at limits on the size of files; the last index stands"
        return StoreError(f"{path.parent} cannot be read or written ({text})", hint=hint)
    if "readonly" in text or "unable to open" in text:
        return StoreError(f"{path.parent} cannot be written", hint="set CQ_INDEX_DIR to a directory of yours")
    return StoreError(f"{path}: {text}", hint="`cq index` looks for damage, and makes a damaged index anew")


def is_damage(error: sqlite3.Error) -> bool:
    """Whether this may come of a damaged file, and not of a full disk, a lock or a permission."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH)


def damage(
    index: Path,
    root: str | Path,
    producer: str = "",
    *,
    words: bool | None = None,
    locked: bool = False,
    deep: bool = False,
    wait: bool = False,
) -> str | None:
    """Why the index cannot be used, in a few words, or None when it can. Without a producer, whosever facts serve;
    `words` says whether the profile that is asked for has an index of them; `locked`, that the caller has the lock.
    Pages are compared where somebody else wrote to the files, and with `deep` in any case; while another process
    writes only with `wait`, once it is done."""
    try:
        head = load_head(index)
    except FileNotFoundError:
        return "missing"
    except BadHead as error:
        return str(error)
    except OSError as error:
        return f"damaged: {error.strerror}"
    if head.schema != SCHEMA:
        return f"written by another version (format {head.schema}, this is {SCHEMA})"
    if producer and head.producer != producer:
        return "made by another version of cq or of a grammar"
    if words is not None and words != head.words:
        return f"made for another profile, {'without' if words else 'with'} an index of words"
    if not deep and heads.is_untouched(index, head):
        return None
    return _find_damage(index, index.is_relative_to(root), locked=locked, wait=wait)


def _find_damage(index: Path, inside: bool, *, locked: bool, wait: bool) -> str | None:
    with contextlib.ExitStack() as stack:
        if not locked:
            try:
                if not stack.enter_context(writer_lock(index, wait=wait)):
                    return None  # a writer is at work: what moves is its doing
            except OSError:
                pass  # where nobody can take the lock nobody can write
        try:
            head = load_head(index)
            if inside and not heads.is_untouched(index, head):
                # A repository may bring any file with it, and say in its cq.toml that this is the index.
                return "damaged: it lies in the repository and was not written here"
            fault = find_fault(index, head) or _find_foreign(index)
            if not fault and not heads.is_untouched(index, head):
                with contextlib.suppress(OSError):
                    with contextlib.closing(connect(index)) as connection:
                        kept.restore(index, connection)
                    save_head(index, heads.describe(index, head), heads.load_digests(index, head))
        except (OSError, BadHead, sqlite3.Error, StoreError) as error:
            fault = str(error)
    return f"damaged: {fault}" if fault else None


def _find_foreign(index: Path) -> str:
    """What its schema has that ours has not: a trigger or a view in a file from elsewhere."""
    sql = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY 1, 2"
    with contextlib.closing(sqlite3.connect(":memory:")) as ours, contextlib.closing(connect(index)) as theirs:
        for statement in _statements():
            ours.execute(statement)
        known = set(ours.execute(sql))
        return next((f"it has a {row[0]} of its own" for row in theirs.execute(sql) if row not in known), "")


def has_words(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT value FROM meta WHERE key='words'").fetchone() != ("no",)


def check(index: Path, root: str) -> None:
    """StoreError for what is no index that can be read."""
    why = damage(index, root)
    if why:
        raise StoreError(f"there is no index of {root} ({why})", hint="`cq index` makes one")


def identify(index: Path) -> tuple[int, int]:
    """The same for the same data file, as long as it is open somewhere; (0, 0) where there is none."""
    with contextlib.suppress(OSError, BadHead):
        found = find_data(index).stat()
        return found.st_dev, found.st_ino
    return 0, 0


def measure(index: Path) -> int:
    """Bytes of the index with its journal."""
    total = 0
    with contextlib.suppress(OSError, BadHead):
        data = find_data(index)
        for path in (index, data, Path(f"{data}-wal")):
            with contextlib.suppress(OSError):
                total += path.stat().st_size
    return total


def _clear(index: Path) -> None:
    """Removes what killed builds left, and data that the head does not name any more."""
    current = 0
    with contextlib.suppress(OSError, BadHead):
        current = find_number(index, load_head(index).file)
    for path in list(index.parent.iterdir()):
        # Of a writer that was killed, and of a format before this one.
        old = path.name.startswith(DRAFT) or path.name in (f"{index.name}-wal", f"{index.name}-shm")
        if old or find_number(index, path.name) not in (0, current):
            # Where a file that is open cannot be removed, the next writer does it; a directory is nothing of ours.
            with contextlib.suppress(PermissionError, IsADirectoryError):
                remove_file(path, 0)


def _remove_data(data: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        with contextlib.suppress(OSError):
            remove_file(Path(f"{data}{suffix}"), BUSY_MS / 1000)


@contextlib.contextmanager
def writer_lock(path: Path, *, wait: bool) -> Iterator[bool]:
    """The one writer's lock; yields whether it was had. The system drops it with the process that held it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # A link that somebody laid there would have another file emptied.
    handle = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
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
