"""Other programs of this system: where they are, where they are started, which variables of the environment they get,
and how they are ended with all they began."""

# Names here may be no UTF-8.
# ruff: noqa: PTH100, PTH113, PTH117, PTH118

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping

# Where they are started: in a repository a program may take what lies there for its settings, or for itself.
OUTSIDE = os.path.abspath(os.sep)

# The variables that cq reads, and those that tell a program where its user keeps things and how they want to see them.
# Whatever names code for a program to load (LD_*, PYTHON*, GIT_*, NODE_OPTIONS, RUSTC_WRAPPER) is none of them.
_FAMILIES = ("CQ_", "LC_", "XDG_")
_NAMES = """
    HOME USER LOGNAME PATH TMPDIR TZ LANG LANGUAGE
    NO_COLOR FORCE_COLOR TERM COLORTERM COLUMNS LINES TERM_PROGRAM VTE_VERSION KONSOLE_VERSION
    HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY http_proxy https_proxy all_proxy no_proxy SSL_CERT_FILE SSL_CERT_DIR
    NPM_CONFIG_REGISTRY NPM_CONFIG_CAFILE NPM_CONFIG_USERCONFIG npm_config_registry npm_config_cafile
    npm_config_userconfig SOURCE_DATE_EPOCH OPENBLAS_NUM_THREADS LANCE_CPU_THREADS
    VIRTUAL_ENV CARGO_HOME RUSTUP_HOME RUSTUP_TOOLCHAIN GOPATH GOROOT GOCACHE GOMODCACHE JAVA_HOME
    SYSTEMROOT SYSTEMDRIVE WINDIR COMSPEC PATHEXT TEMP TMP APPDATA LOCALAPPDATA PROGRAMDATA PROGRAMFILES USERPROFILE
    HOMEDRIVE HOMEPATH USERNAME NUMBER_OF_PROCESSORS PROCESSOR_ARCHITECTURE WT_SESSION
"""
_VARIABLES = frozenset(_NAMES.split())
_NEVER = ("LD_", "DYLD_", "PYTHON", "GIT_")


def choose_environment(given: Mapping[str, str], more: Iterable[str] = (), root: str = "") -> dict[str, str]:
    """What another process gets of an environment: the variables above, and `more` that the user has named. A program
    that is about a repository is told its root, so that it finds no others there."""
    known = _VARIABLES.union(name for name in more if not name.startswith(_NEVER))
    chosen = {name: value for name, value in given.items() if name in known or name.startswith(_FAMILIES)}
    # An empty PATH would mean the working directory.
    if folders := _list_folders(chosen.pop("PATH", ""), root):
        chosen["PATH"] = os.pathsep.join(folders)
    return chosen


def find_in_path(name: str, root: str) -> str | None:
    """By the directories of PATH that are named in full: neither the working directory, where Windows looks first, nor
    one that is named from there, nor one in the repository: what lies there is not to be run."""
    endings = os.environ.get("PATHEXT", ".EXE").lower().split(os.pathsep) if sys.platform == "win32" else [""]
    for folder in _list_folders(os.environ.get("PATH", os.defpath), root):
        for ending in endings:
            path = os.path.join(folder, name + ending)
            if os.path.isfile(path) and os.access(path, os.X_OK) and not _lies_in(path, root):
                return path
    return None


def _list_folders(path: str, root: str) -> list[str]:
    entries = [entry.strip('"') if sys.platform == "win32" else entry for entry in path.split(os.pathsep)]
    return [entry for entry in entries if os.path.isabs(entry) and not _lies_in(entry, root)]


def _lies_in(path: str, root: str) -> bool:
    inside = tuple(os.path.join(folder, "") for folder in {root, os.path.realpath(root)}) if root else ()
    return any(os.path.join(each, "").startswith(inside) for each in (os.path.normpath(path), os.path.realpath(path)))


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
