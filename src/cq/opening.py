"""The one place that opens what a repository or an argument names: only regular files are ever opened. A named pipe
would block until somebody writes to it, and opening a device may do something."""

from __future__ import annotations

import os
import stat
from errno import EINVAL

TYPE_CHECKING = False  # of `typing`, which costs a start more than this module
if TYPE_CHECKING:
    from io import BufferedReader

    StrPath = str | os.PathLike[str]


class NotRegularError(OSError):
    """A directory, a pipe, a socket or a device where a file was expected."""

    def __init__(self, path: StrPath) -> None:
        super().__init__(EINVAL, "not a regular file", os.fspath(path))


def open_regular(path: StrPath, *, dir_fd: int | None = None, follow: bool = True) -> int:
    """A descriptor to read from. OSError as from the system, NotRegularError for what is no file."""
    mode = os.stat(path, dir_fd=dir_fd, follow_symlinks=follow).st_mode
    # A link that is not to be followed is left to `open`, which says so in the system's words.
    if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
        raise NotRegularError(path)
    # It may have been replaced since it was looked at: then opening must not block.
    handle = os.open(path, _READ if follow else _READ | _NO_FOLLOW, dir_fd=dir_fd)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise NotRegularError(path)
    return handle


def open_file(path: StrPath) -> BufferedReader:
    """A file that is read piece by piece."""
    return os.fdopen(open_regular(path), "rb")


def read_file(path: StrPath, most: int = -1) -> bytes:
    """All of it, or the first `most` bytes."""
    with open_file(path) as file:
        if most < 0:
            return file.read()
        # What is asked for at once is also made room for at once.
        pieces: list[bytes] = []
        while most > 0 and (piece := file.read(min(most, _PIECE))):
            pieces.append(piece)
            most -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _flags(*names: str) -> int:
    return sum(getattr(os, name, 0) for name in names)  # not every system has them all


_PIECE = 1024 * 1024
_READ = os.O_RDONLY | _flags("O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY", "O_BINARY")
_NO_FOLLOW = _flags("O_NOFOLLOW")
