"""Settings for every test: hypothesis tries the same examples on every run, no clock decides a result,
and no daemon of the user's answers for us."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from cq.graph.engine import cells
from cq.syntax import extract

# A shell that starts the tests in the background makes them ignore Ctrl-C, and so would every program they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "cq", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("cq")
cells.is_strict = extract.is_strict = True
os.environ["XDG_RUNTIME_DIR"] = os.environ["XDG_CONFIG_HOME"] = tempfile.gettempdir() + "/cq-tests-use-no-daemon"


_MARK = f"XDG_TESTS_OF_CQ={os.getpid()}\0"  # named so that daemons, which get few variables, are given it
os.environ["XDG_TESTS_OF_CQ"] = str(os.getpid())


@pytest.fixture(scope="session", autouse=True)
def _no_daemon_is_left() -> Iterator[None]:
    yield
    left = _find_daemons()
    for process in left:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGTERM)
    assert not left


def _find_daemons() -> set[int]:
    """Those that these tests started: their environment says so."""
    found: set[int] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = os.fsdecode((folder / "cmdline").read_bytes()).split("\0")
            told = (folder / "environ").read_bytes()
            if words[0] == sys.executable and "daemon" in words and _MARK.encode() in told:
                found.add(int(folder.name))
    return found
