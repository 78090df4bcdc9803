"""The head of an index: which file holds the data, what that file was when it was last written, and a digest of every
page of it.

SQLite notices few kinds of damage: another number in a row is a wrong answer. While the data file and its log are the
very files that the head describes, by inode, size and times, nobody has touched them and nothing is read for it. When
they are not, every page is compared with its digest: pages that are right were copied or touched, and one that is wrong
is damage.

Only the holder of the writer's lock writes the data file, and pages move there from the log only after the head knows
them (`count`). So a writer that is killed leaves a file that the head describes, and a log whose end SQLite checks by
itself.
"""

from __future__ import annotations

import os
import re
import struct
from array import array
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
from xxhash import xxh3_64_hexdigest, xxh3_64_intdigest

from cq.opening import open_file, open_regular, read_file
from cq.store.kept import find_logs
from cq.store.lock import write_file

PAGE = 8192
_MARK = b"cq index"
_MOST_LINE = 1 << 16  # bytes of what precedes the digests
_PIECE = 256  # pages that are read at once
_LOG_HEADER = struct.Struct(">8I")  # magic, version, page size, number of checkpoints, two salts, two checksums
_FRAME = struct.Struct(">6I")  # page, pages of the database behind a commit else 0, two salts, two checksums
_FRAME_SIZE = _FRAME.size + PAGE


class Stamp(msgspec.Struct, frozen=True, array_like=True):
    """What tells a file from another, and from itself once somebody wrote to it."""

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


class Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    file: str  # beside the head
    schema: int
    producer: str
    words: bool
    stamp: Stamp
    log: Stamp | None = None  # None: there is none, or it is empty
    kept: dict[str, Stamp] = {}  # see `kept`: its logs, by name
    salt: int = 0  # of the log that the frames are in
    frames: int = 0  # of the log that the digests are about; what was committed behind them is SQLite's to check
    pages: int = 0
    digest: int = 0  # of the digests


class BadHead(Exception):
    """In a few words, why the head cannot be used."""


def load_head(index: Path) -> Head:
    """BadHead where there is none that is whole; FileNotFoundError where there is none at all."""
    with open_file(index) as file:
        return _decode(index, file.read(_MOST_LINE))


def load_digests(index: Path, head: Head) -> array[int]:
    """Of every page, in order; BadHead where they are not those that the head was written with."""
    data = read_file(index)
    found = array("Q")
    with suppress(ValueError):
        found.frombytes(data[len(data) - 8 * head.pages :])
    if len(found) != head.pages or xxh3_64_intdigest(found.tobytes()) != head.digest:
        raise BadHead("its digests are damaged")
    return found


def save_head(index: Path, head: Head, digests: array[int]) -> None:
    """In one step: whoever reads it sees the one before or this one."""
    packed = digests.tobytes()
    head = msgspec.structs.replace(head, pages=len(digests), digest=xxh3_64_intdigest(packed))
    lines = b"\n".join((_MARK, head.file.encode(), msgspec.json.encode(head), b""))
    write_file(index, (lines, xxh3_64_hexdigest(lines).encode(), b"\n", packed))


def find_data(index: Path) -> Path:
    """The file that holds the data of an index. FileNotFoundError or BadHead where the head does not say."""
    return index.with_name(load_head(index).file)


def name_data(index: Path, number: int) -> Path:
    """No number is used twice: what is left of a file that was removed is never taken for a part of another."""
    return index.with_name(f"{index.stem}-{number}.db")


def find_number(index: Path, name: str) -> int:
    """Of the data file that has this name, or that has a log of this name; 0 for another file."""
    found = re.fullmatch(rf"{re.escape(index.stem)}-([1-9]\d{{0,17}})\.db(-wal|-shm|-journal)?", name)
    return int(found[1]) if found else 0


def stamp(path: Path) -> Stamp | None:
    """None for a file that is not there, and for an empty one."""
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return Stamp(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns) if found.st_size else None


def is_untouched(index: Path, head: Head) -> bool:
    """Whether the files are the very ones that the head describes."""
    data = index.with_name(head.file)
    if stamp(data) != head.stamp or stamp(_log(data)) != head.log:
        return False
    return all(stamp(index.with_name(name)) == known for name, known in head.kept.items())


def describe(index: Path, head: Head) -> Head:
    """The head with what the files are now."""
    data = index.with_name(head.file)
    now, log = stamp(data), stamp(_log(data))
    frames = (head.salt, head.frames) if log is not None else (0, 0)
    kept = {path.name: found for path in find_logs(index) if (found := stamp(path)) is not None}
    return msgspec.structs.replace(
        head, stamp=now or Stamp(0, 0, 0, 0), log=log, kept=kept, salt=frames[0], frames=frames[1]
    )


def digest_file(data: Path) -> array[int]:
    """Of a file that no connection of this process has open: closing it would give back the locks of SQLite."""
    with open_file(data) as file:
        return array("Q", _digest_pages(file.fileno(), data.stat().st_size // PAGE, {}))


def count(index: Path, head: Head) -> tuple[Head, array[int]]:
    """The head and the digests with everything that is in the log. For the holder of the lock, with its transaction
    committed, before anything moves from the log into the data file."""
    digests, log = load_digests(index, head), _log(index.with_name(head.file))
    with suppress(FileNotFoundError), open_file(log) as file:
        salt, frames, pages = _read_frames(file.fileno(), head)
        fresh = dict(frames[head.frames if salt == head.salt else 0 :])
        # Pages that were asked for and given back are in no frame; the file is made longer by zeros.
        zeros = bytes(PAGE)
        del digests[pages or len(digests) :]
        while len(digests) < pages:
            digests.append(_digest(zeros, len(digests) + 1))
        for page, offset in fresh.items():
            if page <= len(digests):
                digests[page - 1] = _digest(_read(file.fileno(), PAGE, offset), page)
        head = msgspec.structs.replace(head, salt=salt, frames=len(frames))
    return head, digests


def find_fault(index: Path, head: Head) -> str:
    """Compares every page with its digest; what is wrong in a few words, "" when all are right. For the holder of the
    lock, or where nobody can write."""
    data = index.with_name(head.file)
    try:
        digests = load_digests(index, head)
        handle = _open_for_good(data)
    except BadHead as error:
        return str(error)
    except OSError as error:
        return f"its data cannot be read: {error.strerror}"
    overlay: dict[int, bytes] = {}
    with suppress(FileNotFoundError), open_file(_log(data)) as file:
        salt, frames, _ = _read_frames(file.fileno(), head)
        if salt == head.salt:
            if len(frames) < head.frames:
                return "its log is damaged"
            overlay = {page: _read(file.fileno(), PAGE, at) for page, at in frames[: head.frames]}
    for page, (found, known) in enumerate(zip(_digest_pages(handle, len(digests), overlay), digests, strict=True), 1):
        if found != known:
            return f"page {page} of {len(digests)} is damaged"
    return ""


def _decode(index: Path, data: bytes) -> Head:
    end = -1
    for _ in range(3):
        end = data.find(b"\n", end + 1)
        if end < 0:
            break
    lines = data[: end + 1]
    if end < 0 or not lines.startswith(_MARK + b"\n"):
        raise BadHead("not an index of cq")
    if data[end + 1 : end + 18] != xxh3_64_hexdigest(lines).encode() + b"\n":
        raise BadHead("its head is damaged")
    try:
        head = msgspec.json.decode(lines.split(b"\n", 2)[2], type=Head)
    except msgspec.DecodeError:
        raise BadHead("written by another version") from None
    if not find_number(index, head.file):  # beside the head and nowhere else
        raise BadHead("not an index of cq")
    return head


def _log(data: Path) -> Path:
    return data.with_name(f"{data.name}-wal")


def _digest(page: bytes | memoryview, number: int) -> int:
    # The number is part of it: pages that change places are damage.
    return xxh3_64_intdigest(page, number)


def _digest_pages(handle: int, pages: int, overlay: dict[int, bytes]) -> Iterator[int]:
    number = 0
    while number < pages:
        wanted = min(_PIECE, pages - number)
        piece = memoryview(_read(handle, wanted * PAGE, number * PAGE).ljust(wanted * PAGE, b"\0"))
        for at in range(wanted):
            number += 1
            yield _digest(overlay.get(number) or piece[at * PAGE : (at + 1) * PAGE], number)


def _read_frames(handle: int, head: Head) -> tuple[int, list[tuple[int, int]], int]:
    """Salt of the log; (page, where it lies) of every frame up to the last commit; and how many pages the database has
    behind it, 0 where there is no commit."""
    header = _read(handle, _LOG_HEADER.size, 0)
    if len(header) < _LOG_HEADER.size:
        return 0, [], 0
    magic, _, _, _, *salts, _, _ = _LOG_HEADER.unpack(header)
    order = ">" if magic & 1 else "<"
    found: list[tuple[int, int]] = []
    whole = pages = at = 0
    before: tuple[int, int] = (0, 0)
    known = head.frames if salts[0] << 32 | salts[1] == head.salt else 0
    while True:
        place = _LOG_HEADER.size + at * _FRAME_SIZE
        frame = _read(handle, _FRAME.size, place)
        if len(frame) < _FRAME.size:
            break
        page, size, first, second, *sums = _FRAME.unpack(frame)
        if [first, second] != salts:
            break
        # Behind a commit there may be frames that a killed writer left in the same log: its sums do not go on there.
        if at and at == whole >= known and not _goes_on(handle, place, order, before, (sums[0], sums[1])):
            break
        before = sums[0], sums[1]
        found.append((page, place + _FRAME.size))
        at += 1
        if size:
            whole, pages = at, size
    return salts[0] << 32 | salts[1], found[:whole], pages


def _goes_on(handle: int, place: int, order: str, before: tuple[int, int], sums: tuple[int, int]) -> bool:
    """Whether the frame's sums are those of the frame before, led on over this one, as SQLite counts them."""
    data = _read(handle, 8, place) + _read(handle, PAGE, place + _FRAME.size)
    if len(data) < 8 + PAGE:
        return False
    first, second = before
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for at in range(0, len(words), 2):
        first = (first + words[at] + second) & 0xFFFFFFFF
        second = (second + words[at + 1] + first) & 0xFFFFFFFF
    return (first, second) == sums


def _read(handle: int, size: int, place: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(handle, size, place)
    os.lseek(handle, place, os.SEEK_SET)  # Windows
    return os.read(handle, size)


# Closing a file gives back every lock that this process has on it, also those of SQLite. Files are compared rarely.
_open: dict[tuple[int, int], int] = {}


def _open_for_good(data: Path) -> int:
    found = os.lstat(data)
    key = found.st_dev, found.st_ino
    if key not in _open:
        _open[key] = open_regular(data, follow=False)
    return _open[key]
