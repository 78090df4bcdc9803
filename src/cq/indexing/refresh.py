"""The one pipeline: find changes, read and parse them in workers, write in order. A full build is large change."""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from cq.indexing.pool import COST, collect_later, make_pool
from cq.indexing.producer import producer
from cq.model.errors import CqError, StoreError
from cq.model.facts import FileFacts, References
from cq.model.source import Problem, Skip, SourceFile
from cq.source.files import FileEntry, find_files, find_written, stat_directory, stat_file
from cq.source.read import content_hash, read_source
from cq.source.repository import find_top
from cq.store import database, kept, trigrams
from cq.store.head import BadHead, find_data, stamp
from cq.store.prefix import is_revision, name_tree
from cq.store.read import Reader, Tree, find_vectors
from cq.store.write import Content, FileRow, SkipRow, Writer

if TYPE_CHECKING:
    # Imported where a pool is made: an unchanged tree needs none.
    from concurrent.futures import Future

    from cq.model.history import Revision

BATCH_BYTES = 400_000
COMMIT_BYTES = 48_000_000
# Below this a pool costs more than it brings.
POOL_BYTES = 600_000
FEW_FILES = 8  # read in this process
MAX_LINKERS = 8  # each looks at what all need
LINKER_MB = 256
# A file or directory that changed this close to a look at it may change again within the same tick of the clock.
RACY_NS = 100_000_000


class Settings(msgspec.Struct, frozen=True):
    """What decides which files are indexed and how. Jobs and memory decide only how fast, the room
    for history only for how long."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_file_bytes: int = 2 * 1024 * 1024
    max_files: int = 1_000_000
    jobs: int = 0  # 0: one per core
    memory_mb: int = 0  # 0: no limit beyond the batches
    words: bool = True  # whether chunks can be found by their words
    history_mb: int = 512  # of what only revisions have; the oldest are forgotten beyond it

    def key(self) -> str:
        """Changes when the set of files could, or what is kept of them."""
        return content_hash(
            msgspec.json.encode([self.include, self.exclude, self.max_file_bytes, self.max_files, self.words])
        )


class Progress(msgspec.Struct, frozen=True):
    stage: str  # "wait" (for another writer) "list" "read" "write" "link", and "precise", which counts calls
    done: int
    total: int
    done_bytes: int = 0
    total_bytes: int = 0


class Report(msgspec.Struct, frozen=True):
    """What a refresh did. `busy`: another process is writing, and the last generation stands."""

    generation: int
    added: int = 0
    changed: int = 0
    removed: int = 0
    touched: int = 0  # stat differed, text did not
    parsed: int = 0
    reused: int = 0  # text known from another file, branch or time
    busy: bool = False
    rebuilt: str = ""  # why the index was made anew
    notes: tuple[str, ...] = ()


class Listed(msgspec.Struct, frozen=True):
    """The last listing, kept so that an unchanged tree costs only stats."""

    directories: dict[str, tuple[int, int]]  # these three as in Listing
    watched: dict[str, tuple[int, int]]
    top: str
    via: str
    notes: tuple[str, ...]
    truncated: bool
    settled: bool


class Changes(msgspec.Struct, frozen=True):
    """What is to be read or forgotten; what is known is that of these paths, or of all."""

    todo: Sequence[FileEntry]
    known_files: dict[str, tuple[str, int, int]]
    known_skips: dict[str, tuple[Skip, int, int]]
    listing: bytes  # a Listed
    notes: tuple[str, ...]
    drop: Sequence[str] = ()
    drop_skips: Sequence[str] = ()
    skips: Sequence[Skip] = ()  # that the listing decided on


class Read(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What a worker makes of one file."""

    skip: Skip | None = None
    hash: str = ""
    language: str = ""
    encoding: str = ""
    problems: tuple[Problem, ...] = ()
    content: Content | None = None  # None: known already


_ENCODE = msgspec.msgpack.Encoder().encode
_DECODE = msgspec.msgpack.Decoder(list[Read]).decode


def refresh(
    index: Path,
    root: Path,
    settings: Settings,
    *,
    full: bool = False,
    wait: bool = False,
    verify: bool = False,
    revision: Revision | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Report:
    """Brings the tree `root` in the index file up to date, or that of one of its revisions. Cheap when nothing changed;
    safe to kill at any point. `verify` first compares every page of the index with its digest; else that is done where
    something points to damage."""
    tell = on_progress or (lambda _: None)
    before = stamp(index)
    why = database.damage(index, root, producer(), words=settings.words, deep=verify, wait=wait and verify) or ""
    with collect_later():
        try:
            return _refresh(index, root, settings, why, full, wait, tell, revision)
        except MemoryError:
            raise
        except Exception as error:
            # A mistake of ours, or an index that says what it never said: its digests tell.
            asks = not why and (isinstance(error, StoreError) or not isinstance(error, CqError))
            why = (database.damage(index, root, deep=True, wait=True) or "") if asks else ""
            if not why and not (asks and stamp(index) != before):  # another process may have mended it first
                raise
            return _refresh(index, root, settings, why, full, wait, tell, revision)


def _refresh(
    index: Path,
    root: Path,
    settings: Settings,
    rebuilt: str,
    full: bool,
    wait: bool,
    tell: Callable[[Progress], None],
    revision: Revision | None,
) -> Report:
    tree, changes = None, None
    name = name_tree(root, revision)
    try:
        if not rebuilt and not full:
            # No lock, no write where nothing at all changed.
            with (
                contextlib.closing(database.connect(index)) as connection,
                Reader(connection, name) as reader,
            ):
                tree = reader.tree()
                changes = _look(reader, root, tree, settings)
            if tree is not None and changes is not None and not changes.todo:
                return Report(tree.generation, notes=changes.notes)
        # Where there is no index the first one is waited for; one that is only old answers meanwhile.
        wait = wait or bool(rebuilt)
        if wait and database.is_writing(index):
            tell(Progress("wait", 0, 0))
        with database.writer_lock(index, wait=wait) as had:
            if not had:
                return Report(_generation(index, root, name), busy=True)
            # Another process may have done the work while we waited.
            if rebuilt:
                rebuilt = database.damage(index, root, producer(), words=settings.words, locked=True, deep=True) or ""
            # `full` also drops what other trees of the repository share: they are read again when asked about.
            anew = rebuilt or full
            earlier = index.with_name(name) if anew and (name := _find_earlier(index)) else None
            opened = database.build(index, producer(), words=settings.words) if anew else database.writing(index)
            with opened as connection:
                # Before workers are forked: what they need is loaded once. A look that finds nothing new loads none.
                from cq.indexing import link, prepare, read

                del link, prepare, read
                reason = rebuilt if rebuilt != "missing" else ""
                if revision is not None:
                    from cq.indexing.revision import refresh_revision

                    return refresh_revision(connection, index, root, revision, settings, tell, reason)
                work = TreeRefresh(connection, index, root, settings, tell, reason)
                report = work.run(tree, changes)
                if earlier is not None:
                    work.carry_vectors(earlier, sound=not rebuilt.startswith("damaged"))
                return report
    except database.DatabaseError as error:
        if database.is_damage(error):
            raise
        raise database.explain(error, index) from None
    except OSError as error:
        raise StoreError(
            f"{index.parent}: {error.strerror or error}", hint="set CQ_INDEX_DIR to a directory with room"
        ) from None


def _find_earlier(index: Path) -> str:
    """The data of the index that is made anew, "" where there is none."""
    with contextlib.suppress(OSError, BadHead):
        return find_data(index).name
    return ""


def _generation(index: Path, root: Path, name: str) -> int:
    if database.damage(index, root):
        return 0
    with contextlib.closing(database.connect(index)) as connection:
        tree = Reader(connection, name).tree()
        return tree.generation if tree else 0


def _look(reader: Reader, root: Path, tree: Tree | None, settings: Settings) -> Changes | None:
    """The files whose stat differs, by the names of the last listing; None when those must be listed again."""
    if tree is None or tree.config != settings.key() or not tree.generation:
        return None
    if is_revision(tree.root):
        return Changes([], {}, {}, tree.listing, ())  # nothing that is committed changes
    listed = msgspec.msgpack.decode(tree.listing, type=Listed)
    if not _still_listed(root, listed):
        return None
    base = f"{root}/"
    changes = Changes([], {}, {}, tree.listing, listed.notes)
    todo: list[FileEntry] = []
    for path, known in reader.stats(tree.id).items():
        os_path, size, written_ns = known
        try:
            status = os.lstat(base + os_path)
        except OSError:
            return None  # gone since the folder was looked at
        if find_written(status) != written_ns or status.st_size != size:
            if status.st_size > settings.max_file_bytes:
                return None
            changes.known_files[path] = known
            todo.append(_make_entry(path, os_path, status))
    for path, known in reader.skips(tree.id).items():
        _, size, written_ns = known
        if not written_ns:
            continue
        try:
            entry = _make_entry(path, path, os.lstat(base + path))
        except OSError:
            return None
        if (entry.size, entry.written_ns) != (size, written_ns):
            todo.append(entry)
            changes.known_skips[path] = known
    return msgspec.structs.replace(changes, todo=sorted(todo, key=lambda entry: entry.path))


def _make_entry(path: str, os_path: str, status: os.stat_result) -> FileEntry:
    return FileEntry(path, os_path, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _still_listed(root: Path, listed: Listed) -> bool:
    base = f"{root}/"
    if not listed.settled or find_top(os.fspath(root)) != listed.top:
        return False
    for path, before in listed.watched.items():
        if stat_file(path) != tuple(before):
            return False
    try:
        for path, (written_ns, names) in listed.directories.items():
            if find_written(os.lstat(base + path)) != written_ns and stat_directory(base + path)[1] != names:
                return False
    except OSError:
        return False
    return True


def _is_text(name: str) -> bool:
    return name.isascii() or not any("\udc80" <= char <= "\udcff" for char in name)


class TreeRefresh:
    def __init__(
        self,
        connection: database.Connection,
        index: Path,
        root: Path,
        settings: Settings,
        tell: Callable[[Progress], None],
        rebuilt: str,
        name: str = "",
    ) -> None:
        """`name`: what the tree is called in the index, where it is not the root."""
        self.index, self.root, self.settings, self.tell, self.rebuilt = index, root, settings, tell, rebuilt
        self.name = name or os.fspath(root)
        self.reader = Reader(connection, self.name)
        self.writer = Writer(connection)

    def run(self, seen: Tree | None, changes: Changes | None) -> Report:
        """`changes` are those that a look at the tree `seen` found a moment ago."""
        now = time.time_ns()
        tree = self.reader.tree()
        if tree != seen:
            changes = _look(self.reader, self.root, tree, self.settings)
        changes = changes or self.list_files(tree, now)
        known_files, known_skips = changes.known_files, changes.known_skips
        tree_id = tree.id if tree else 0
        rows, skip_rows, report = self._read_all(changes.todo, known_files, tree_id, now)
        skip_rows += [
            SkipRow(skip) for skip in changes.skips if skip.path not in known_skips or known_skips[skip.path][0] != skip
        ]
        # What was skipped and now is read, or was read and now is skipped, leaves its old place.
        read_paths, skipped_paths = {row.path for row in rows}, {row.skip.path for row in skip_rows}
        drop = [*changes.drop, *sorted(skipped_paths & known_files.keys())]
        gone_skips = [*changes.drop_skips, *sorted(read_paths & known_skips.keys())]
        new_skips = [
            row for row in skip_rows if row.skip.path not in known_skips or known_skips[row.skip.path][0] != row.skip
        ]
        changed = bool(report.added or report.changed or drop or gone_skips or new_skips)
        changed = changed or tree is None or not tree.generation
        generation = tree.generation if tree else 0
        is_same = tree is not None and (tree.config, tree.listing) == (self.settings.key(), changes.listing)
        if rows or drop or skip_rows or gone_skips or not is_same:
            self.writer.begin()
            try:
                before = self._find_before(tree_id, rows, drop) if tree else None
                tree_id = self.writer.set_tree(self.name, self.settings.key())
                self.writer.update_files(
                    tree_id, put=rows, drop=drop, put_skips=skip_rows, drop_skips=gone_skips, listing=changes.listing,
                    changed=changed,
                )  # fmt: skip
                if before is None or before:
                    from cq.indexing.link import update_links

                    self.tell(Progress("link", 0, len(rows)))
                    self.writer.drop_links(tree_id, drop)
                    update_links(self.reader, self.writer, tree_id, before, self._count_jobs())
                    self.tell(Progress("link", len(rows), len(rows)))
                self._forget_dead()
                if tree is None:
                    self.take_kept(tree_id)
                self.writer.commit()
            except BaseException:
                self.writer.rollback()
                raise
            generation += int(changed)
        return msgspec.structs.replace(
            report,
            generation=generation,
            removed=len(set(drop) - skipped_paths),
            rebuilt=self.rebuilt,
            notes=changes.notes,
        )

    def _count_jobs(self) -> int:
        """Processes that link at once: each holds much of the code."""
        jobs, memory = self.settings.jobs or os.cpu_count() or 1, self.settings.memory_mb
        return min(jobs, MAX_LINKERS) if not memory else max(1, min(jobs, MAX_LINKERS, memory // LINKER_MB))

    def _find_before(self, tree: int, rows: list[FileRow], drop: list[str]) -> dict[str, int] | None:
        """The contents that files had before this change, where only texts changed; None when files came or went."""
        from cq.indexing.link import is_structural

        contents = self.reader.contents(tree, [row.path for row in rows])
        before: dict[str, int] = {}
        for row in rows:
            old = contents.get(row.path)
            if old is None and (is_structural(row.path) or self.reader.has_code(row.content)):
                return None
            if old is not None and old != row.content:
                before[row.path] = old
        gone = self.reader.contents(tree, drop)
        if any(is_structural(path) or self.reader.has_code(content) for path, content in gone.items()):
            return None
        return before

    def list_files(self, tree: Tree | None, now: int) -> Changes:
        self.tell(Progress("list", 0, 0))
        settings = self.settings
        known_files = self.reader.stats(tree.id) if tree else {}
        known_skips = self.reader.skips(tree.id) if tree else {}
        listing = find_files(
            self.root, include=settings.include, exclude=settings.exclude, max_bytes=settings.max_file_bytes,
            max_files=settings.max_files,
        )  # fmt: skip
        stamps = [at for at, _ in listing.directories.values()] + [at for _, at in listing.watched.values()]
        # Names that are no UTF-8 cannot be kept: who has one lists again every time.
        directories = {name: value for name, value in listing.directories.items() if _is_text(name)}
        watched = {name: value for name, value in listing.watched.items() if _is_text(name)}
        settled = max(stamps, default=0) < now - RACY_NS and len(stamps) == len(directories) + len(watched)
        listed = Listed(
            directories, watched, listing.top, listing.via, listing.notes, listing.truncated,
            settled and _is_text(listing.top),
        )  # fmt: skip
        todo = [
            entry
            for entry in listing.files
            if not _is_same(known_files.get(entry.path), entry)
            and not _is_same_skip(known_skips.get(entry.path), entry)
        ]
        current = {entry.path for entry in listing.files}
        drop = sorted(known_files.keys() - current)
        drop_skips = sorted(known_skips.keys() - current - {skip.path for skip in listing.skips})
        encoded = msgspec.msgpack.encode(listed)
        return Changes(todo, known_files, known_skips, encoded, listing.notes, drop, drop_skips, listing.skips)

    def _read_all(
        self, todo: Sequence[FileEntry], known_files: dict[str, tuple[str, int, int]], tree_id: int, now: int
    ) -> tuple[list[FileRow], list[SkipRow], Report]:
        """Contents are committed as they come; the files that name them only at the end, all at once."""
        rows: list[FileRow] = []
        skips: list[SkipRow] = []
        counts = {"added": 0, "changed": 0, "touched": 0, "parsed": 0, "reused": 0}
        if not todo:
            return rows, skips, Report(0)
        # A few are looked up one by one.
        known = self.reader.known() if len(todo) > FEW_FILES else _Lookup(self.reader)
        stored_hash = self.reader.hashes(tree_id, [entry.path for entry in todo if entry.path in known_files])
        total_bytes = sum(entry.size for entry in todo)
        done = done_bytes = pending = 0
        self.tell(Progress("read", 0, len(todo), 0, total_bytes))
        self.writer.begin()
        try:
            for entry, read in zip(todo, self.read_files(todo, known), strict=True):
                done += 1
                done_bytes += entry.size
                written_ns = entry.written_ns if entry.written_ns < now - RACY_NS else -1
                if read.skip is not None:
                    skips.append(SkipRow(read.skip, entry.size, written_ns))
                else:
                    key = (read.hash, read.language)
                    number = known.get(key)
                    if number is None:
                        assert read.content is not None
                        number = known[key] = self.writer.add_content(read.content)
                        counts["parsed"] += 1
                        pending += entry.size
                    elif stored_hash.get(entry.path) != key:
                        counts["reused"] += 1
                    if entry.path not in known_files:
                        counts["added"] += 1
                    elif stored_hash.get(entry.path) == key:
                        counts["touched"] += 1
                    else:
                        counts["changed"] += 1
                    rows.append(
                        FileRow(entry.path, entry.os_path, number, entry.size, written_ns, read.encoding, read.problems)
                    )
                if pending > COMMIT_BYTES:
                    self.writer.commit()
                    self.writer.begin()
                    pending = 0
                self.tell(Progress("read", done, len(todo), done_bytes, total_bytes))
            self.writer.commit()
        except BaseException:
            self.writer.rollback()
            raise
        self.tell(Progress("write", done, len(todo), done_bytes, total_bytes))
        return (
            rows,
            skips,
            Report(0, counts["added"], counts["changed"], 0, counts["touched"], counts["parsed"], counts["reused"]),
        )

    def read_files(self, todo: Sequence[FileEntry], known: dict[tuple[str, str], int]) -> Iterator[Read]:
        return read_files(self.root, todo, known, self.settings)

    def take_kept(self, tree: int) -> None:
        """What others said about the files of a tree that is new to this index; it was said about the same texts."""
        paths = set(self.reader.all_paths(tree))
        kept.compact(self.index)
        for each in kept.load(self.index, os.fspath(self.root)):
            for version, file in each.files:
                if file.path in paths:
                    self.writer.put_evidence(tree, file.path, each.source, version, file.hash, file.rows)

    def carry_vectors(self, earlier: Path, *, sound: bool) -> None:
        """Those of an index that was made anew, for they may have cost money. Rows carry the hash of what was read, so
        that they are only taken for what reads the same; only those of a sound index are known to be of their file."""
        tree = self.reader.tree()
        if tree is None:
            return
        now = self.reader.hashes(tree.id, self.reader.all_paths(tree.id))
        contents = self.reader.contents(tree.id, list(now))
        self.writer.begin()
        for path, key, identity, rows in find_vectors(earlier, os.fspath(self.root)):
            if path in now:
                is_same = sound and now[path] == key
                self.writer.put_vectors(tree.id, identity, [(path, contents[path] if is_same else 0, rows)])
        self.writer.commit()

    def _forget_dead(self) -> None:
        from cq.indexing.prepare import prepare_content
        from cq.indexing.read import extract_source

        for number, chunk, language, text in self.writer.find_dead(2000):
            source = SourceFile("", language, text)
            self.writer.remove_content(number, chunk, prepare_content(source, extract_source(source)))


def _is_same(stored: tuple[str, int, int] | None, entry: FileEntry) -> bool:
    return stored == (entry.os_path, entry.size, entry.written_ns)


def _is_same_skip(stored: tuple[Skip, int, int] | None, entry: FileEntry) -> bool:
    return stored is not None and bool(stored[2]) and stored[1:] == (entry.size, entry.written_ns)


# -- reading, here or in workers -------------------------------------------------------------------


class _Lookup(dict[tuple[str, str], int]):
    """Reader.known for those that are asked for. Not for workers: they have no database."""

    def __init__(self, reader: Reader) -> None:
        super().__init__()
        self._reader = reader

    def get(self, key: tuple[str, str], default: Any = None) -> Any:
        found = super().get(key) or self._reader.find_content(*key)
        return default if found is None else found


# What reading needs, here and in every worker.
_known: dict[tuple[str, str], int] = {}
_root = Path()
_max_bytes = 0


def read_files(
    root: Path, todo: Sequence[FileEntry], known: dict[tuple[str, str], int], settings: Settings
) -> Iterator[Read]:
    """Results in the order of `todo`, whatever the number of workers."""
    given = known, root, settings.max_file_bytes
    _set_up(*given)
    jobs = settings.jobs or os.cpu_count() or 1
    batches = _make_batches(todo)
    is_large = sum(entry.size for entry in todo) >= POOL_BYTES * COST
    if is_large:
        trigrams.load()  # once, before workers are forked
    if jobs < 2 or len(todo) <= FEW_FILES or len(batches) < 2 or not is_large:
        for batch in batches:
            yield from _read_batch(batch)
        return
    from concurrent.futures.process import BrokenProcessPool

    window = jobs * 3 if not settings.memory_mb else max(jobs, min(jobs * 3, settings.memory_mb // 64))
    waiting: deque[tuple[list[FileEntry], Future[bytes]]] = deque()
    pool = make_pool(min(jobs, len(batches)), _set_up, *given)
    try:
        queue = deque(batches)
        while queue or waiting:
            while queue and len(waiting) < window:
                batch = queue.popleft()
                waiting.append((batch, pool.submit(_send_batch, batch)))
            batch, future = waiting.popleft()
            try:
                yield from _DECODE(future.result())
            except BrokenProcessPool:
                # A worker died: a grammar crashed, or the system took its memory. Find the file that does it.
                pool.shutdown(wait=False, cancel_futures=True)
                for lost in [batch, *(rest for rest, _ in waiting)]:
                    yield from _read_alone(lost)
                waiting.clear()
                pool = make_pool(min(jobs, len(batches)), _set_up, *given)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _set_up(known: dict[tuple[str, str], int], root: Path, max_bytes: int) -> None:
    global _known, _root, _max_bytes
    _known, _root, _max_bytes = known, root, max_bytes


def _make_batches(todo: Sequence[FileEntry]) -> list[list[FileEntry]]:
    batches: list[list[FileEntry]] = []
    size = BATCH_BYTES
    for entry in todo:
        if size >= BATCH_BYTES:
            batches.append([])
            size = 0
        batches[-1].append(entry)
        size += entry.size + 500
    return batches


def _read_batch(batch: list[FileEntry]) -> list[Read]:
    return [_read_one(entry) for entry in batch]


def _send_batch(batch: list[FileEntry]) -> bytes:
    # A third of what pickling costs, there and here.
    return _ENCODE(_read_batch(batch))


def _read_one(entry: FileEntry) -> Read:
    from cq.indexing.prepare import prepare_content
    from cq.indexing.read import extract_source

    source = read_source(_root, entry, max_bytes=_max_bytes)
    if isinstance(source, Skip):
        return Read(source)
    text_hash = content_hash(source.text)
    content = None
    if _known.get((text_hash, source.language)) is None:
        content = prepare_content(source, extract_source(source), text_hash)
    return Read(None, text_hash, source.language, source.encoding, source.problems, content)


def _read_alone(batch: list[FileEntry]) -> list[Read]:
    """Each file in a process of its own; one that kills it is kept as text with a problem."""
    from concurrent.futures.process import BrokenProcessPool

    results: list[Read] = []
    for entry in batch:
        with make_pool(1, _set_up, _known, _root, _max_bytes) as pool:
            try:
                results += _DECODE(pool.submit(_send_batch, [entry]).result())
            except BrokenProcessPool:
                results.append(_read_text_only(entry))
    return results


def _read_text_only(entry: FileEntry) -> Read:
    from cq.indexing.prepare import prepare_content
    from cq.syntax.chunks import build_chunks

    source = read_source(_root, entry, max_bytes=_max_bytes)
    if isinstance(source, Skip):
        return Read(source)
    span = (0, len(source.text))
    problem = Problem("crash", "the parser crashed on this file; it is searched as text only", *span)
    facts = FileFacts(
        source.language, chunks=build_chunks(source.text, span, [], [], None, References()), problems=(problem,)
    )
    content = prepare_content(source, facts)
    return Read(None, content.hash, source.language, source.encoding, source.problems, content)
