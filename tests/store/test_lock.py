"""The lock and the names of files in use, as POSIX has them and as Windows does, whose own calls are stood in for."""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from cq.store import lock


class Bytes:
    """`msvcrt`, of which a lock is a byte of a file, where the file stands, and belongs to the one who opened it."""

    LK_NBLCK = 2

    def __init__(self) -> None:
        self.locked: dict[tuple[int, int], int] = {}  # (inode, place) → handle

    def locking(self, handle: int, mode: int, size: int) -> None:
        assert (mode, size) == (self.LK_NBLCK, 1)
        key = os.fstat(handle).st_ino, os.lseek(handle, 0, os.SEEK_CUR)
        if key in self.locked and self.locked[key] != handle:
            raise OSError(errno.EACCES, "Permission denied")
        self.locked[key] = handle

    def close(self, handle: int) -> None:
        self.locked = {key: held for key, held in self.locked.items() if held != handle}
        os.close(handle)


@pytest.fixture(params=["posix", "windows"])
def close(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    if request.param == "posix":
        return os.close
    windows = Bytes()
    monkeypatch.setitem(sys.modules, "msvcrt", windows)  # pyright: ignore
    monkeypatch.setattr(lock, "sys", SimpleNamespace(platform="win32"))
    return windows.close


def open_file(tmp_path: Path) -> int:
    return os.open(tmp_path / "x.lock", os.O_RDWR | os.O_CREAT, 0o600)


def test_one_has_it_until_the_file_is_closed(tmp_path: Path, close: Callable[[int], None]):
    first, second = open_file(tmp_path), open_file(tmp_path)
    assert lock.take_lock(first, wait=False)
    assert lock.take_lock(first, wait=False)  # it has it already
    assert not lock.take_lock(second, wait=False)
    os.write(first, b"123\n")  # from the beginning, wherever the lock lies
    assert (tmp_path / "x.lock").read_bytes() == b"123\n"
    close(first)
    assert lock.take_lock(second, wait=False)
    close(second)


def test_who_waits_gets_it_when_it_is_free(tmp_path: Path, close: Callable[[int], None]):
    first, second = open_file(tmp_path), open_file(tmp_path)
    assert lock.take_lock(first, wait=False)
    done = threading.Event()
    waiting = threading.Thread(target=lambda: lock.take_lock(second, wait=True) and done.set())
    waiting.start()
    assert not done.wait(0.1)
    close(first)
    waiting.join(20)
    assert done.is_set()
    close(second)


def test_a_file_that_is_open_elsewhere_is_replaced_a_moment_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "draft").write_text("new")
    (tmp_path / "file").write_text("old")
    failing = [PermissionError(13, "in use")] * 3
    replace = os.replace

    def try_replace(source: Path, target: Path) -> None:
        if failing:
            raise failing.pop()
        replace(source, target)

    monkeypatch.setattr(lock.os, "replace", try_replace)
    with pytest.raises(PermissionError):  # where that is no matter of time
        lock.replace_file(tmp_path / "draft", tmp_path / "file")
    monkeypatch.setattr(lock, "sys", SimpleNamespace(platform="win32"))
    lock.replace_file(tmp_path / "draft", tmp_path / "file")
    assert (tmp_path / "file").read_text() == "new"
    assert not failing


def test_a_file_that_stays_open_is_not_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lock, "sys", SimpleNamespace(platform="win32"))

    class Held:
        tries = 0

        def unlink(self, *, missing_ok: bool) -> None:
            self.tries += 1
            raise PermissionError(13, "in use")

    held = Held()
    with pytest.raises(PermissionError):
        lock.remove_file(held, 0.1)  # pyright: ignore
    assert held.tries > 1
