"""A repository with a daemon of its own, as real processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from cq.surfaces.daemon import DaemonStatus
from tests.support.agents import hear_ctrl_c


class Place:
    """A repository, and an environment of its own."""

    def __init__(self, base: Path) -> None:
        self.root = base / "repo"
        (self.root / "src").mkdir(parents=True)
        (self.root / "src" / "db.py").write_text("def save(row, *, deep=False):\n    return row[save]\n")
        (self.root / "src" / "app.py").write_text("from db import save\n\n\ndef main():\n    save(1, deep=True)\n")
        clean = {key: value for key, value in os.environ.items() if not key.startswith("CQ_")}
        self.environment = clean | {f"XDG_{name}": str(base / name) for name in ("RUNTIME_DIR", "CACHE_HOME")}
        self.environment["XDG_CONFIG_HOME"] = str(base / "config")
        self.socket = base / "RUNTIME_DIR" / "cq" / "daemon" / "socket"

    def start(self, *arguments: str, **more: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "cq", *arguments], cwd=self.root, env={**self.environment, **more},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=hear_ctrl_c,
        )  # fmt: skip

    def cq(self, *arguments: str, text: bytes = b"", **more: str) -> tuple[int, bytes, bytes]:
        done = subprocess.run(
            [sys.executable, "-m", "cq", *arguments], cwd=self.root, env={**self.environment, **more}, input=text,
            capture_output=True, timeout=60, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    def status(self) -> DaemonStatus | None:
        return msgspec.json.decode(self.cq("daemon", "status", "--format", "json")[1], type=DaemonStatus | None)

    def served(self) -> int:
        status = self.status()
        assert status is not None
        return status.served


@contextmanager
def make_place() -> Iterator[Place]:
    """Ends its daemon, and asserts that nothing of it is left."""
    base = Path(tempfile.mkdtemp(prefix="cq-test-"))  # a socket's path is short
    place = Place(base)
    try:
        yield place
    finally:
        status = place.status()
        place.cq("daemon", "stop")
        shutil.rmtree(base)
    if status is not None:
        assert not Path(f"/proc/{status.pid}").exists()
        assert not any(Path(f"/proc/{worker['pid']}").exists() for worker in status.workers)
