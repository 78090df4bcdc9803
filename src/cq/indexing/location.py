"""Where the index of a repository lies. Nothing is put into the repository unless the user names a place there."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path

import msgspec

from cq.opening import read_file
from cq.source import repository
from cq.source.repository import INDEX_NAME
from cq.store.database import measure
from cq.store.head import BadHead, is_untouched, load_head
from cq.store.kept import find_logs

_REPOSITORY = "repository"  # names the repository, so that a leftover can be told from what is in use
_COPY_TRIES = 3


class Place(msgspec.Struct, frozen=True):
    """The index file. `note` says why it is not where it was wanted; a temporary one is the caller's to remove."""

    file: Path
    note: str = ""
    temporary: bool = False


class Leftover(msgspec.Struct, frozen=True):
    """An index in the cache directory. `repository` is empty where it is unknown."""

    folder: Path
    repository: str
    bytes: int
    used: float  # when it was last written, seconds since the epoch
    exists: bool  # its repository is still there


def find_key(root: Path) -> str:
    """The name of the index's directory: readable, and different for every repository."""
    return repository.find_key(os.fspath(root))


def find_cache_dir() -> Path | None:
    """The user's own, None where there is no home directory."""
    found = repository.find_cache_dir()
    return Path(found) if found else None


def find_base(root: Path, given: str, source: str) -> Path | None:
    """The directory that holds indexes, each under its key: as given, else the cache directory.

    A file names it from the root; a flag or the environment from the working directory.
    """
    if not given:
        return find_cache_dir()
    if source.partition(" ")[0] in ("flag", "environment"):
        return Path(given).expanduser().resolve()
    return (root / given).resolve()


def open_place(base: Path | None, root: Path) -> Place:
    """The index file of `root` below `base`, its directory made; where that cannot be, a private temporary one."""
    if base is None:
        return _open_temporary(None, "there is no home directory for a cache")
    folder = base / find_key(root)
    try:
        _make_writable(folder, root)
    except OSError as error:
        return _open_temporary(folder / INDEX_NAME, f"{base} cannot be written ({error.strerror or error})")
    return Place(folder / INDEX_NAME)


def find_leftovers(base: Path) -> list[Leftover]:
    """Every index below `base`, by name."""
    found: list[Leftover] = []
    try:
        folders = sorted(path for path in base.iterdir() if (path / INDEX_NAME).is_file())
    except OSError:
        return found
    for folder in folders:
        try:
            of = os.fsdecode(read_file(folder / _REPOSITORY, 4096))
        except OSError:
            of = ""
        exists = bool(of) and os.path.lexists(of)
        used = (folder / INDEX_NAME).stat().st_mtime
        found.append(Leftover(folder, of, measure(folder / INDEX_NAME), used, exists))
    return found


def _make_writable(folder: Path, root: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if folder.is_symlink():  # a repository that holds its own index may have laid it there
        raise NotADirectoryError(errno.ENOTDIR, "it is a link")
    if folder.is_relative_to(root) and (foreign := _find_foreign(folder)):
        raise OSError(errno.EINVAL, f"a repository may have laid {foreign} there")
    # The lock is what a writer opens first; whoever may do that may write. Permissions alone do not tell.
    os.close(os.open(f"{folder / INDEX_NAME}.lock", os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600))
    index = folder / INDEX_NAME
    if index.exists() and not os.access(index, os.W_OK):
        raise PermissionError(13, "the index belongs to someone else")
    name = folder / _REPOSITORY
    # Written where nothing lies: a link that somebody laid there is not followed.
    with suppress(FileExistsError), name.open("xb") as file:
        file.write(os.fsencode(repository.find_repository(os.fspath(root))))
    if folder.is_relative_to(root):
        # Neither git nor a later listing shall take the index for a part of the repository.
        with suppress(FileExistsError), (folder / ".gitignore").open("xb") as file:
            file.write(b"*\n")


def _find_foreign(folder: Path) -> str:
    """The first of what cq makes none of: writing to a link would write elsewhere, to a pipe, wait."""
    for above, folders, files in os.walk(folder):
        for name in sorted(folders + files):
            mode = os.lstat(f"{above}/{name}").st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                return name
    return ""


def _open_temporary(existing: Path | None, why: str) -> Place:
    import tempfile

    folder = Path(tempfile.mkdtemp(prefix="cq-"))
    index = folder / INDEX_NAME
    if existing is not None and _copy(existing, index):
        return Place(index, f"{why}; a private copy of the index there is used and forgotten afterwards", True)
    return Place(index, f"{why}; the index is temporary and forgotten afterwards", True)


def _copy(source: Path, target: Path) -> bool:
    """An index that may be read only; SQLite cannot open one in a directory where it can make no files.

    A writer may be at work on it: a copy counts only when nothing moved meanwhile.
    """
    for _ in range(_COPY_TRIES):
        with suppress(OSError, BadHead):
            head = load_head(source)
            if not is_untouched(source, head):
                continue
            data = source.with_name(head.file)
            for path in (source, data, data.with_name(f"{data.name}-wal"), *find_logs(source)):
                if path.exists():
                    shutil.copyfile(path, target.with_name(path.name))
            if load_head(source) == head and is_untouched(source, head):
                return True
    for path in target.parent.iterdir():
        path.unlink(missing_ok=True)
    return False
