"""A lock on an open file that dies with the process that has it, and names that are moved over others: the two things
that systems do differently with files that are in use."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_PAUSE = 0.02  # seconds between two tries where the system cannot wait
# Far behind what is written: on Windows nobody else can read a byte that is locked.
_PLACE = 1 << 30
DRAFT = ".draft-"
_PATIENCE = 2.0  # seconds for someone who has a file open where that keeps it from being replaced


def take_lock(handle: int, *, wait: bool) -> bool:
    """The one lock of the file; False where someone else has it and `wait` is not asked for. Closing the file, or the
    end of the process, gives it back."""
    if sys.platform == "win32":
        return _take_windows(handle, wait=wait)
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def replace_file(draft: Path, path: Path) -> None:
    """`draft` takes the name, whatever had it: in one step. Where a file that is open cannot be replaced, that is tried
    for a moment: what reads these files reads them whole and closes them."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            os.replace(draft, path)  # noqa: PTH105
            return
        except PermissionError:
            if sys.platform != "win32" or time.monotonic() > until:
                raise
        time.sleep(_PAUSE)


def write_file(path: Path, pieces: Iterable[bytes]) -> None:
    """In one step: whoever reads it sees the one before or this one. What a killed writer leaves is named by DRAFT."""
    draft = path.with_name(f"{DRAFT}{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    # A name that somebody laid there, a link perhaps, is not followed.
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            for piece in pieces:
                file.write(piece)
        replace_file(draft, path)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def remove_file(path: Path, seconds: float = _PATIENCE) -> None:
    """Gone, if it was there; see replace_file."""
    until = time.monotonic() + seconds
    while True:
        try:
            path.unlink(missing_ok=True)
            return
        except PermissionError:
            if sys.platform != "win32" or time.monotonic() > until:
                raise
        time.sleep(_PAUSE)


def _take_windows(handle: int, *, wait: bool) -> bool:
    import msvcrt

    while True:
        os.lseek(handle, _PLACE, os.SEEK_SET)  # what is locked is what comes next, and it need not exist
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # pyright: ignore
            return True
        except OSError:
            if not wait:
                return False
        finally:
            os.lseek(handle, 0, os.SEEK_SET)
        time.sleep(_PAUSE)
