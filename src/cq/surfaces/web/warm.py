"""Answers from processes that stay warm: those of the user's daemon where one runs, else of one that lives as long as
the page is served."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import suppress

from cq.source.program import kill_group
from cq.surfaces.asked import Asked
from cq.surfaces.client import connect, find_socket, list_environment, read_mode
from cq.surfaces.process import Done, Told, ask

_IDLE_SECONDS = 120  # without a question: a server that was killed leaves no process behind for longer
_SERVE = "import sys; from cq.surfaces.daemon import serve; serve(sys.argv[1], idle_seconds=float(sys.argv[2]))"


class Warm:
    """What it started ends with `close`."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Again where it was killed."""
        if not find_socket() or self._has_daemon() or (self._process and self._process.poll() is None):
            return
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="cq-web-", ignore_cleanup_errors=True)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _SERVE, self._socket, str(_IDLE_SECONDS)],
            env=list_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            cwd="/", start_new_session=True,
        )  # fmt: skip

    async def ask(self, asked: Asked, told: Told, *, alone: bool = False) -> Done:
        own = "" if self._has_daemon() else self._socket
        if own:
            self.start()
        return await ask(asked, self.root, told, alone=alone, own=own)

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()  # it ends its workers
            try:
                self._process.wait(0.7)
            except subprocess.TimeoutExpired:
                with suppress(OSError):
                    kill_group(self._process.pid)
                self._process.wait()
        if self._folder is not None:
            self._folder.cleanup()

    @property
    def _socket(self) -> str:
        return os.path.join(self._folder.name, "d", "socket") if self._folder is not None else ""  # noqa: PTH118

    def _has_daemon(self) -> bool:
        path = find_socket()
        link = connect(path) if path and read_mode() != "off" else None
        if link is not None:
            link.close()
        return link is not None
