"""Running servers of this process, one per root and way of running it, shared by every question and ended at exit."""

from __future__ import annotations

import atexit
import os
import threading
from pathlib import Path
from typing import Any

import msgspec

from cq.providers.session import ServerSpec, Session

_lock = threading.Lock()
_sessions: dict[tuple[str, str, bytes], Session] = {}
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


def _drop_inherited() -> None:
    """After a fork the servers are the parent's: the child neither uses nor ends them."""
    global _owner
    if _owner != os.getpid():
        _sessions.clear()
        _owner = os.getpid()


atexit.register(close_sessions)
