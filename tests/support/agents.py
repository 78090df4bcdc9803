"""The MCP server as a process, in an environment of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


def make_repository(root: Path) -> Path:
    (root / "src").mkdir(parents=True)
    (root / "src" / "db.py").write_text("def save(row, *, deep=False):\n    return row[save]\n")
    (root / "src" / "app.py").write_text("from db import save\n\n\ndef main():\n    save(1, deep=True)\n")
    return root


def environment(root: Path, daemon: str = "off") -> dict[str, str]:
    """Beside the repository."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("CQ_")}
    config = root.parent / "config"
    (config / "cq").mkdir(parents=True, exist_ok=True)
    (config / "cq" / "settings.toml").write_text(f'daemon = "{daemon}"\n')
    own = {f"XDG_{name}": str(root.parent / name) for name in ("CACHE_HOME", "RUNTIME_DIR")}
    return clean | own | {"XDG_CONFIG_HOME": str(config)}


def hear_ctrl_c() -> None:
    """For `preexec_fn`: also where the tests themselves were started with Ctrl-C ignored (`make test &`)."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def ignore_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def on_terminal(root: Path, *arguments: str, **more: str) -> str:
    """What a terminal gets, of standard output and standard error."""
    import pty  # not on every system

    main, child = pty.openpty()
    clean = {name: value for name, value in environment(root).items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    with subprocess.Popen(
        [sys.executable, "-m", "cq", *arguments], cwd=root, env=clean | more, stdin=subprocess.DEVNULL,
        stdout=child, stderr=child,
    ) as process:  # fmt: skip
        os.close(child)
        said = b""
        with suppress(OSError):  # the end of a terminal
            while part := os.read(main, 1 << 16):
                said += part
        process.wait()
    os.close(main)
    return said.decode()


@contextmanager
def serving(root: Path, *options: str, host: str = "127.0.0.1") -> Iterator[int]:
    """The port of a server over HTTP."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    command = [sys.executable, "-m", "cq", "mcp", "--http", f"{host}:{number}", *options]
    with subprocess.Popen(command, cwd=root, env=environment(root)) as process:
        try:
            _await_port(number)
            yield number
        finally:
            process.terminate()
            process.wait(20)


def _await_port(number: int) -> None:
    for _ in range(300):
        with suppress(OSError), socket.create_connection(("127.0.0.1", number), 1):
            return
        time.sleep(0.1)
    pytest.fail("the server does not listen")
