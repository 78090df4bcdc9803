"""What cannot be computed again, beside the index: what other indexers and language servers said about calls. An index
that is made anew takes it from here, whatever became of the one before.

A log for each source. Every entry has its length and checksum, so that damage to one costs that one. What a source says
later about a file stands in place of what it said before. All but `load` is for the holder of the writer's lock.
"""

from __future__ import annotations

import os
import re
import sqlite3
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from xxhash import xxh3_64_intdigest

from cq.model.edge import Candidate
from cq.opening import read_file
from cq.store.codec import pack, unpack
from cq.store.lock import write_file
from cq.store.prefix import tree_key

_MARK = b"\xffcq1"
_SIZE = len(_MARK) + 4 + 8  # of what precedes an entry: mark, length, checksum
_NAME = re.compile(r"evidence-([\w.-]+)\.log", re.ASCII)
_MOST = 1 << 30  # bytes of a log that are read
NAMED = 2  # the role of a row that only says that the source knows a definition
RAN = 3  # the role of a row about what was seen to run, of which a call may have several


class EvidenceRow(msgspec.Struct, frozen=True, gc=False):
    """Calls that mean one thing, as a source says; see the table `evidence`."""

    key: int
    role: int
    target: Candidate  # outside the repository: no path, and the module for a name
    target_hash: str
    calls: list[int]


class KeptFile(msgspec.Struct, frozen=True, array_like=True):
    """What a source says about one text of one file."""

    path: str
    hash: str
    rows: list[EvidenceRow]


class _Entry(msgspec.Struct, frozen=True, array_like=True):
    root: str
    version: str
    files: list[KeptFile]


class _Log(msgspec.Struct, frozen=True):
    """`lost`: an entry was damaged. `end`: where the next one goes."""

    entries: list[_Entry]
    lost: bool = False
    end: int = 0


_ENCODE = msgspec.msgpack.Encoder().encode
_DECODE = msgspec.msgpack.Decoder(_Entry).decode
_LOST = _Entry("", "lost", [])  # remembers that an entry was damaged, once the log is written anew without it


class Kept(msgspec.Struct, frozen=True):
    """What a source said about the files of a root: (version, file) of each, by path. `lost`: and something else, which
    was damaged."""

    source: str
    files: list[tuple[str, KeptFile]]
    lost: bool


def append(index: Path, root: str, source: str, version: str, files: Sequence[KeptFile]) -> None:
    """Before the index has it: a kill in between leaves too much here, never too little."""
    path = _name(index, source)
    log = _read(path)
    if _LOST in log.entries:  # it is being said again
        _write(path, [entry for entry in log.entries if entry != _LOST])
        log = _read(path)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0), 0o600)
    with os.fdopen(handle, "r+b") as file:
        file.seek(log.end)
        file.write(_encode(_Entry(tree_key(root), version, list(files))))
        file.truncate()


def drop(index: Path, root: str, source: str) -> None:
    """Forgets all that a source said about the files of a root."""
    _rewrite(_name(index, source), lambda entry: entry != _LOST and entry.root != tree_key(root))


def load(index: Path, root: str) -> list[Kept]:
    """By source; those that said nothing are left out."""
    found: list[Kept] = []
    for source in _find_sources(index):
        log = _read(_name(index, source))
        files = {
            file.path: (entry.version, file)
            for entry in log.entries
            if entry.root == tree_key(root)
            for file in entry.files
        }
        if files or log.lost:
            found.append(Kept(source, [files[path] for path in sorted(files)], log.lost))
    return found


def explain_lost(source: str) -> tuple[str, str]:
    """What is lost, and what to do."""
    command = "`cq ingest scip FILE`" if source == "scip" else "`cq index --precise`"
    return f"some of what {source} said about calls is lost to damage", f"{command} brings it back"


def find_lost(index: Path) -> list[str]:
    """Sources of which something was lost to damage and has not been said again."""
    return [source for source in _find_sources(index) if _read(_name(index, source)).lost]


def compact(index: Path) -> None:
    """Writes the logs anew that have damage in them, so that it is remembered and not met again."""
    for source in _find_sources(index):
        log = _read(_name(index, source))
        if log.lost:
            _write(_name(index, source), [*(entry for entry in log.entries if entry != _LOST), _LOST])


def restore(index: Path, connection: sqlite3.Connection) -> None:
    """Writes the logs anew as a sound index has them; what they say about trees that are not in it stays."""
    roots: dict[int, str] = dict(connection.execute("SELECT id, root FROM tree"))
    rows: dict[tuple[int, str, str], list[EvidenceRow]] = {}
    for tree, path, source, key, role, *target, target_hash, calls in connection.execute("SELECT * FROM evidence"):
        row = EvidenceRow(key, role, Candidate(*target), target_hash, array("I", calls).tolist())
        rows.setdefault((tree, path, source), []).append(row)
    files: dict[tuple[str, int, str], list[KeptFile]] = {}
    asked = connection.execute("SELECT source, tree, version, path, hash FROM asked ORDER BY 1, 2, 3, 4")
    for source, tree, version, path, text_hash in asked:
        files.setdefault((source, tree, version), []).append(
            KeptFile(path, text_hash, rows.get((tree, path, source), []))
        )
    for source in sorted({*(source for source, _, _ in files), *_find_sources(index)}):
        entries = [entry for entry in _read(_name(index, source)).entries if entry.root not in roots.values()]
        entries += [_Entry(roots[key[1]], key[2], found) for key, found in files.items() if key[0] == source]
        _write(_name(index, source), entries)


def find_logs(index: Path) -> list[Path]:
    return [_name(index, source) for source in _find_sources(index)]


def _name(index: Path, source: str) -> Path:
    return index.with_name(f"evidence-{source}.log")


def _find_sources(index: Path) -> list[str]:
    try:
        names = os.listdir(index.parent)  # noqa: PTH208  a question asks this
    except OSError:
        return []
    return sorted(found[1] for name in names if (found := _NAME.fullmatch(name)))


def _rewrite(path: Path, keep: Callable[[_Entry], bool]) -> None:
    if path.exists():
        _write(path, [entry for entry in _read(path).entries if keep(entry)])


def _write(path: Path, entries: Sequence[_Entry]) -> None:
    if not entries:
        path.unlink(missing_ok=True)
        return
    write_file(path, map(_encode, entries))


def _encode(entry: _Entry) -> bytes:
    data = pack(_ENCODE(entry))
    return _MARK + len(data).to_bytes(4, "little") + xxh3_64_intdigest(data).to_bytes(8, "little") + data


def _read(path: Path) -> _Log:
    """Total. An entry without its end was being written when its writer was killed; the next is written over it."""
    try:
        data = read_file(path, _MOST)
    except OSError:
        return _Log([])
    entries: list[_Entry] = []
    lost, at = False, 0
    while at < len(data):
        start, length = at + _SIZE, int.from_bytes(data[at + len(_MARK) : at + len(_MARK) + 4], "little")
        body = data[start : start + length]
        known = int.from_bytes(data[start - 8 : start], "little")
        if data.startswith(_MARK, at) and len(body) == length and xxh3_64_intdigest(body) == known:
            entries.append(_DECODE(unpack(body)))
            at = start + length
            continue
        lost = True
        behind = data.find(_MARK, at + 1)
        if behind < 0:
            return _Log(entries, True, at)
        at = behind
    return _Log(entries, lost or _LOST in entries, len(data))
