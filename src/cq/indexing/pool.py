"""Processes that work for a refresh, and never outlive it. Where forking is safe they are forked; elsewhere they start
anew, which costs more and gives the same. And the collector of garbage, which sleeps while work is done."""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from cq.store import database

if TYPE_CHECKING:
    # Imported where a pool is made: an unchanged tree needs none.
    from concurrent.futures import ProcessPoolExecutor

# On macOS a fork of a process that has used the system's libraries may hang; Windows has none.
FORKS = hasattr(os, "fork") and sys.platform != "darwin"
# How much more there must be to do for a process to be worth it: one that starts anew imports everything again.
COST = 1 if FORKS else 8
_MOST = 61  # that Windows can wait for at once


@contextmanager
def collect_later() -> Iterator[None]:
    """What is made meanwhile has no cycles, or dies together: to look through it again and again is a third of a
    question's time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def make_pool(workers: int, start: Callable[..., None], *given: Any) -> ProcessPoolExecutor:
    """Each process first calls `start` with what is given: forked ones have it already, the others are sent it."""
    from concurrent.futures import ProcessPoolExecutor

    if FORKS:
        from multiprocessing import get_context

        return ProcessPoolExecutor(workers, get_context("fork"), _start_worker, (start, given))
    from cq.indexing.spawn import Context, set_apart

    with set_apart():
        return ProcessPoolExecutor(min(workers, _MOST), Context(), _start_worker, (start, given))


def _start_worker(start: Callable[..., None], given: tuple[Any, ...]) -> None:
    import signal
    import threading

    database.drop_inherited_locks()
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    start(*given)

    # Ctrl-C is the parent's to handle; it stops the pool.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Facts hold no cycles; the collector would only walk them again and again.
    gc.disable()


def _end_with(parent: int) -> None:
    """A pool whose parent was killed would wait for work forever."""
    if FORKS:
        while os.getppid() == parent:
            time.sleep(0.2)
    else:
        from multiprocessing import parent_process

        if (above := parent_process()) is not None:
            above.join()
    os._exit(1)
