"""Processes that start anew, for systems where forking is missing or unsafe. Only those import this module."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import SpawnContext, SpawnProcess
from types import ModuleType


class Process(SpawnProcess):
    def start(self) -> None:
        with set_apart():
            super().start()


class Context(SpawnContext):
    Process = Process  # pyright: ignore[reportAssignmentType, reportIncompatibleVariableOverride]


@contextmanager
def set_apart() -> Iterator[None]:
    """What starts inside looks for its modules where this process does and not in the working directory, which may be a
    repository, and does not run the caller's script again, which may have no guard against that."""
    main, before = sys.modules["__main__"], os.environ.get("PYTHONSAFEPATH")
    sys.modules["__main__"] = ModuleType("__main__")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        if before is None:
            del os.environ["PYTHONSAFEPATH"]
        else:
            os.environ["PYTHONSAFEPATH"] = before
