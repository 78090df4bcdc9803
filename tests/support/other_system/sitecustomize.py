"""Makes a process of ours believe that it runs on another system, named by TESTS_OF_CQ_SYSTEM (win32, darwin).

For the modules of cq `sys.platform` is that system. What only POSIX has is really gone from the standard library, as
far as that itself can do without; paths stay as they are. This is a stand-in: it shows that nothing is asked for that
is not there, and not how the system behaves.
"""

from __future__ import annotations

import ast
import os
import sys
import types
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from typing import Any

SYSTEM = os.environ.get("TESTS_OF_CQ_SYSTEM", "")
MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "readline")
CALLS = (
    "fork", "forkpty", "register_at_fork", "getuid", "geteuid", "getgid", "getegid", "getgroups", "setsid", "killpg",
    "getpgid", "setpgid", "nice", "sysconf", "waitid", "environb", "mkfifo", "mknod", "fchmod", "fchown", "chown",
    "lchown", "statvfs", "fstatvfs", "getloadavg", "sched_getaffinity", "sched_setaffinity", "pread", "pwrite",
    "posix_spawn", "posix_spawnp", "getresuid", "initgroups", "chroot", "sync", "ttyname", "ctermid", "tcgetpgrp",
    "openpty", "O_CLOEXEC", "O_NOFOLLOW", "O_DIRECTORY", "O_NONBLOCK", "O_NOCTTY", "O_SYNC",
)  # fmt: skip
SIGNALS = ("SIGKILL", "SIGALRM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGCHLD", "SIGPIPE", "SIGQUIT", "setitimer", "alarm")


class Loader(SourceFileLoader):
    """Compiles from the source each time: what is cached was made for this system."""

    def path_stats(self, path: str) -> Any:
        raise OSError(path)

    def source_to_code(self, data: Any, path: Any, **more: Any) -> Any:  # pyright: ignore
        tree = ast.parse(data, path)
        for node in ast.walk(tree):
            for name, value in ast.iter_fields(node):
                if is_platform(value):
                    setattr(node, name, ast.copy_location(ast.Constant(SYSTEM), value))
                elif isinstance(value, list):
                    value[:] = [
                        ast.copy_location(ast.Constant(SYSTEM), item) if is_platform(item) else item for item in value
                    ]
        return super().source_to_code(tree, path, **more)


class Finder:
    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name.partition(".")[0] != "cq":
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            with open(spec.loader.path, "rb") as file:  # noqa: PTH123
                if b"sys.platform" in file.read():
                    spec.loader = Loader(name, spec.loader.path)
        return spec


def is_platform(node: Any) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "platform" and getattr(node.value, "id", "") == "sys"


def lock_byte(fcntl: Any, handle: int, mode: int, size: int) -> None:
    """As Windows does it: of the open file, from where it stands, and only if that is free."""
    import struct

    kind = fcntl.F_UNLCK if mode == 0 else fcntl.F_WRLCK
    flock = struct.pack("hhqqi4x", kind, os.SEEK_CUR, 0, size, 0)
    fcntl.fcntl(handle, 37, flock)  # F_OFD_SETLK


def pretend() -> None:
    import _socket
    import asyncio
    import concurrent.futures.process
    import multiprocessing.popen_spawn_posix
    import multiprocessing.resource_tracker
    import multiprocessing.synchronize
    import shutil
    import signal
    import ssl
    import subprocess
    import tempfile

    del asyncio, concurrent, multiprocessing, shutil, ssl, tempfile
    sys.meta_path.insert(0, Finder)  # pyright: ignore
    if SYSTEM == "darwin":
        return
    import fcntl

    if "mcp" in sys.orig_argv:  # which is the SDK's to bring to Windows, not ours
        from importlib import import_module

        for name in ("mcp.server.lowlevel", "mcp.server.stdio"):
            import_module(name)

    keeping = types.SimpleNamespace(**vars(signal))
    vars(subprocess)["signal"] = keeping
    for name in MODULES:
        sys.modules[name] = None  # pyright: ignore
    for place, names in ((os, CALLS), (signal, SIGNALS), (_socket, ("AF_UNIX",))):
        for name in names:
            vars(place).pop(name, None)
    os.supports_dir_fd.clear()
    windows: Any = types.ModuleType("msvcrt")
    windows.LK_UNLCK, windows.LK_LOCK, windows.LK_NBLCK = 0, 1, 2
    windows.locking = lambda handle, mode, size: lock_byte(fcntl, handle, mode, size)
    sys.modules["msvcrt"] = windows


if SYSTEM:
    pretend()
