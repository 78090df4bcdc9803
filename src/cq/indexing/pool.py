"""Processes that work for a refresh, and never outlive it."""

from __future__ import annotations

import gc
import os
import time
from typing import TYPE_CHECKING

from cq.store import database

if TYPE_CHECKING:
    # Imported where a pool is made: an unchanged tree needs none.
    from concurrent.futures import ProcessPoolExecutor


def make_pool(workers: int) -> ProcessPoolExecutor:
    """Forked: what this process has loaded and set, they have."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    return ProcessPoolExecutor(workers, get_context("fork"), _start_worker)


def _start_worker() -> None:
    import signal
    import threading

    database.drop_inherited_locks()
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()

    # Ctrl-C is the parent's to handle; it stops the pool.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Facts hold no cycles; the collector would only walk them again and again.
    gc.disable()


def _end_with(parent: int) -> None:
    """A pool whose parent was killed would wait for work forever."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)
