"""Running servers of this process, one per root and way of running it, shared by every question and ended at exit."""

from __future__ import annotations

import atexit
import os
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from cq.providers.session import ServerSpec, Session

_lock = threading.Lock()
_sessions: dict[tuple[str, str, bytes], Session] = {}
_holders: Counter[str] = Counter()
keep_warm = False  # a process that lives on sets it: then servers outlive the question they were started for
_owner = os.getpid()


def get_session(root: Path, spec: ServerSpec) -> Session:
    """Not started yet, if it is new: the first question does that."""
    how: list[Any] = [spec.command, spec.settings, spec.options, spec.env]
    key = os.fspath(root.resolve()), spec.id, msgspec.json.encode(how, order="deterministic")
    with _lock:
        _drop_inherited()
        if key not in _sessions:
            _sessions[key] = Session(root, spec)
        return _sessions[key]


def find_sessions(root: Path) -> list[Session]:
    path = os.fspath(root.resolve())
    with _lock:
        return [session for (where, _, _), session in _sessions.items() if where == path]


def close_sessions(root: Path | None = None) -> None:
    """Those of one root, or all. Leaves no process behind."""
    path = os.fspath(root.resolve()) if root else None
    with _lock:
        _drop_inherited()
        gone = [key for key in _sessions if path in (None, key[0])]
        closing = [_sessions.pop(key) for key in gone]
    for session in closing:
        session.close()


def hold_sessions(root: Path) -> None:
    """Until as many calls of release_sessions, unless the process ends before."""
    with _lock:
        _holders[os.fspath(root.resolve())] += 1


def release_sessions(root: Path) -> None:
    """The last holder ends the servers of a root, where nothing keeps them warm."""
    path = os.fspath(root.resolve())
    with _lock:
        _holders[path] -= 1
        last = _holders[path] <= 0
        if last:
            del _holders[path]
    if last and not keep_warm:
        close_sessions(root)


def _drop_inherited() -> None:
    """After a fork the servers are the parent's: the child neither uses nor ends them."""
    global _owner
    if _owner != os.getpid():
        _sessions.clear()
        _owner = os.getpid()


atexit.register(close_sessions)


Stats = dict[str, tuple[str, int, int]]  # of the files of a tree, by path


def tell_changes(root: Path, generation: int, find_stats: Callable[[], Stats]) -> None:
    """Tells running servers which files an index has found changed since they were last told."""
    key = os.fspath(root)
    before = _told.get(key)
    if before is not None and before[0] == generation:
        return
    stats = find_stats()
    _told[key] = generation, stats
    if before is None:
        return
    old = before[1]
    kinds = {path: "changed" if path in old else "created" for path in stats if stats[path] != old.get(path)}
    kinds |= dict.fromkeys(old.keys() - stats.keys(), "deleted")
    for session in find_sessions(root) if kinds else ():
        session.tell_changed(dict(sorted(kinds.items())))


_told: dict[str, tuple[int, Stats]] = {}  # by root: generation, and its files


def describe_session(root: Path, name: str) -> dict[str, Any]:
    """How a running server stands: how it counts columns, whether it is well and has read everything, as it says."""
    session = next((each for each in find_sessions(root) if each.spec.id == name and each.pid), None)
    if session is None:
        return {}
    status = session.server_status
    return {
        "position_encoding": session.encoding,
        "health": status.get("health", "unknown") if not session.complaint else "warning",
        "quiescent": session.spec.ready(session),
    }
