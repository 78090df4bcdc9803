"""Other programs of this system: where they are, where they are started, and how they are ended with all they began."""

# Names here may be no UTF-8.
# ruff: noqa: PTH100, PTH113, PTH117, PTH118

from __future__ import annotations

import os
import sys

# Where they are started: in a repository a program may take what lies there for its settings, or for itself.
OUTSIDE = os.path.abspath(os.sep)


def find_in_path(name: str) -> str | None:
    """By the directories of PATH that are named in full: neither the working directory, where Windows looks first, nor
    one that is named from there, for what lies in a repository is not to be run."""
    endings = os.environ.get("PATHEXT", ".EXE").lower().split(os.pathsep) if sys.platform == "win32" else [""]
    for entry in os.environ.get("PATH", os.defpath).split(os.pathsep):
        folder = entry.strip('"') if sys.platform == "win32" else entry
        if not os.path.isabs(folder):
            continue
        for ending in endings:
            path = os.path.join(folder, name + ending)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return path
    return None


def kill_group(pid: int) -> None:
    """The process that leads a group, and the group. ProcessLookupError or PermissionError where that cannot be."""
    if sys.platform == "win32":
        import subprocess

        # There are no groups: who began whom is all that is known.
        killer = os.path.join(os.environ.get("SYSTEMROOT", r"C:\Windows"), "System32", "taskkill.exe")
        asked = [killer, "/T", "/F", "/PID", str(pid)]
        try:
            done = subprocess.run(asked, cwd=OUTSIDE, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        except OSError:
            raise ProcessLookupError(pid) from None
        if done.returncode:
            raise ProcessLookupError(pid)
        return
    import signal

    os.killpg(pid, signal.SIGKILL)
