"""Whether a program can be run: by running it. A name in the path may be a stub that only says how to install it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path, PurePath

import msgspec

from cq.opening import read_file
from cq.source.program import OUTSIDE, choose_environment, find_in_path, kill_group
from cq.source.repository import find_cache_dir, find_root

TIMEOUT = 5.0
_REMEMBERED = 600.0  # seconds: a stub runs once what it stands for is installed, and looks the same
_MOST_REMEMBERED = 50


class Detection(msgspec.Struct, frozen=True):
    """`reason` says why not, `advice` what to do about it."""

    available: bool
    version: str = ""
    command: tuple[str, ...] = ()
    reason: str = ""
    advice: str = ""


def find_program(name: str, root: Path) -> str | None:
    """Beside the Python that runs cq, then in the path; never one that lies in the repository."""
    own = Path(sys.executable).parent / (f"{name}.exe" if sys.platform == "win32" else name)
    return os.fspath(own) if own.is_file() else find_in_path(name, os.fspath(root))


class Tree(msgspec.Struct, frozen=True):
    """What a program that reads a whole repository would meet in it, beside code."""

    pipe: str = ""  # the first file, by its path, that whoever opens it would wait for, or be made to do something by
    settings: tuple[str, ...] = ()  # files of the names that were asked for, by their full paths
    whole: bool = True  # False: there is more than was looked at

    def find_settings(self, root: Path, names: Collection[str], may_run: Callable[[str], bool]) -> str:
        """The first file of these names by which a repository may have a program run; "" where there is none."""
        paths = [path for path in self.settings if PurePath(path).name.lower() in names]
        if not self.whole or len(paths) > _MAX_SETTINGS:
            return "a file of a tree too large to be looked through"
        named = PurePath(next(filter(may_run, paths), ""))
        if named.is_relative_to(root):
            return named.relative_to(root).as_posix()
        return f"{named.name} outside the root" if named.name else ""


def look_through(root: Path, names: Collection[str]) -> Tree:
    """`names` in lower case, also as found above the root. Links are followed from the root into the repository around
    it; what lies elsewhere is the user's own."""
    base, top = os.path.realpath(root), find_root(os.fspath(root))
    waiting, seen, left = [base], set[str](), _MAX_ENTRIES
    pipes: list[str] = []
    settings: list[str] = []
    while waiting and left > 0:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                left -= 1
                if entry.name.lower() in names:
                    settings.append(entry.path)
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif not entry.is_file():
                    if _blocks(entry.path):
                        pipes.append(os.path.relpath(entry.path, base))
                    target = PurePath(os.path.realpath(entry.path))
                    is_around = target.is_relative_to(top) and not target.is_relative_to(base)
                    if is_around and os.fspath(target) not in seen:
                        seen.add(os.fspath(target))
                        waiting.append(os.fspath(target))
    above = [os.fspath(folder / name) for folder in PurePath(base).parents for name in names]
    settings += filter(os.path.lexists, above)
    return Tree(min(pipes, default=""), tuple(sorted(settings)), not waiting)


_MAX_ENTRIES = 1_000_000
_MAX_SETTINGS = 1000


def _blocks(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
    except OSError:
        return False  # gone, or a link to nothing
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISBLK(mode)


def read_version(command: Sequence[str], root: Path, timeout: float = TIMEOUT) -> Detection:
    """The first line the program prints, run outside of any repository and ended with all it started. That it does not
    run is remembered for a while: some take seconds to say so, and every command would ask again."""
    key = _identify(command)
    known = _load_failures().get(key) if key else None
    if known is not None and 0 <= time.time() - known[0] < _REMEMBERED:
        return Detection(False, reason=known[1])
    found = _run(command, root, timeout)
    if key and found.reason.endswith(")"):  # it ran and failed; one that is slow may only be so now
        _save_failures({**_load_failures(), key: (time.time(), found.reason)})
    return found


def forget_failures() -> None:
    """For who wants to know how it is now."""
    if (path := _find_memory()) is not None:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _identify(command: Sequence[str]) -> str:
    """The program as it is now, and what it is asked; "" where there is none."""
    try:
        stat = Path(command[0]).stat()  # of what a link leads to
    except OSError:
        return ""
    return "\0".join([*command, str(stat.st_size), str(stat.st_mtime_ns), str(stat.st_ino)])


def _find_memory() -> Path | None:
    folder = find_cache_dir()
    return Path(folder) / "programs.json" if folder else None


def _load_failures() -> dict[str, tuple[float, str]]:
    path = _find_memory()
    try:
        return {} if path is None else msgspec.json.decode(read_file(path), type=dict[str, tuple[float, str]])
    except (OSError, msgspec.DecodeError):
        return {}


def _save_failures(known: dict[str, tuple[float, str]]) -> None:
    """Where there is a cache already. The newest few; who writes at the same time costs the other a second look."""
    path = _find_memory()
    if path is None:
        return
    kept = sorted(known.items(), key=lambda item: item[1])[-_MOST_REMEMBERED:]
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_bytes(msgspec.json.encode(dict(kept)))
        draft.replace(path)
    except OSError:
        with suppress(OSError):
            draft.unlink()


def _run(command: Sequence[str], root: Path, timeout: float) -> Detection:
    try:
        process = subprocess.Popen(
            list(command),
            cwd=OUTSIDE,
            env=choose_environment(os.environ, root=os.fspath(root)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        return Detection(False, reason=f"{command[0]} cannot be started ({error.strerror})")
    with process:
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError, PermissionError):
                kill_group(process.pid)
            process.kill()
            process.wait()
            return Detection(False, reason=f"{command[0]} gave no answer in {timeout:g} s")
    if process.returncode:
        return Detection(False, reason=f"{command[0]} does not run (exit code {process.returncode})")
    lines = output[:4096].decode("utf-8", "replace").strip().splitlines()
    return Detection(True, lines[0][:80] if lines else "")
