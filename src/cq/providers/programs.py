"""Whether a program can be run: by running it. A name in the path may be a stub that only says how to install it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePath

import msgspec

from cq.source.program import OUTSIDE, choose_environment, find_in_path, kill_group

TIMEOUT = 5.0


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
    if own.is_file():
        return os.fspath(own)
    found = find_in_path(name)
    if found is None:
        return None
    places = (PurePath(found), PurePath(os.path.realpath(found)))
    return None if any(place.is_relative_to(root) for place in places) else found


def find_pipe(root: Path) -> str:
    """The first file below a directory, by its path, that whoever opens it would wait for, or be made to do something
    by: a pipe or a device, also behind a link."""
    waiting, left = [os.fspath(root)], _MAX_ENTRIES
    found: list[str] = []
    while waiting and left > 0:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                left -= 1
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif not entry.is_file() and _blocks(entry.path):
                    found.append(os.path.relpath(entry.path, root))
    return min(found, default="")


_MAX_ENTRIES = 1_000_000


def _blocks(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
    except OSError:
        return False  # gone, or a link to nothing
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISBLK(mode)


def read_version(command: Sequence[str], timeout: float = TIMEOUT) -> Detection:
    """The first line the program prints, run outside of any repository and ended with all it started."""
    try:
        process = subprocess.Popen(
            list(command),
            cwd=OUTSIDE,
            env=choose_environment(os.environ),
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
