"""Refreshing as files change: on events of the file system, else by looking again and again."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from pathlib import Path, PurePath
from threading import Event

from cq.indexing.index import Index
from cq.indexing.refresh import Report
from cq.source.files import SKIPPED_DIRS, stat_file

POLL_SECONDS = 2.0
# Of everything below .git only these decide what is listed.
_GIT_FILES = frozenset({"index", "HEAD", "exclude", "config", "config.worktree", "commondir"})


def watch_index(index: Index, stop: Event | None, debounce_ms: int, on_note: Callable[[str], None]) -> Iterator[Report]:
    """See Workspace.watch."""

    def refresh() -> Report:
        if error := index.reload_config():
            on_note(f"{error}; what was set before holds")
        return index.refresh()

    index.config()  # what is wrong from the beginning is an error
    return watch_tree(
        index.root,
        refresh,
        stop or Event(),
        ignore=index.place.file.parent,
        find_outside=index.find_outside,
        debounce_ms=debounce_ms,
        on_note=on_note,
    )


def watch_tree(
    root: Path,
    refresh: Callable[[], Report],
    stop: Event,
    *,
    ignore: Path,
    find_outside: Callable[[], Collection[str]],
    debounce_ms: int,
    on_note: Callable[[str], None],
) -> Iterator[Report]:
    """A report for every refresh that changed something, until `stop`. `ignore` is the index's own directory;
    `find_outside` names the files beside the tree that decide what is listed: those are looked at once a second."""
    report = refresh()
    if _is_news(report):
        yield report
    unsure = True  # what moved between that refresh and the first event was seen by neither
    outside: dict[str, tuple[int, int]] = {}
    for moved in _find_moves(root, stop, ignore, debounce_ms, on_note):
        now = {path: stat_file(path) for path in find_outside()}
        if moved or unsure or now != outside:
            report = refresh()
            outside = now
            unsure = report.busy  # while another process writes, it is tried again at the next tick
            if _is_news(report):
                yield report


def _is_news(report: Report) -> bool:
    return bool(report.added or report.changed or report.removed or report.rebuilt)


def _find_moves(
    root: Path, stop: Event, ignore: Path, debounce_ms: int, on_note: Callable[[str], None]
) -> Iterator[bool]:
    """True when something moved that may matter; False about once a second when not."""
    try:
        yield from _find_events(root, stop, ignore, debounce_ms)
        return
    except (ImportError, OSError, RuntimeError) as error:
        # No events in some containers and on some network disks, or no watches left.
        on_note(f"no file-system events here ({error}); looking every {POLL_SECONDS:g} s")
    while not stop.wait(POLL_SECONDS):
        yield True


def _find_events(root: Path, stop: Event, ignore: Path, debounce_ms: int) -> Iterator[bool]:
    import watchfiles

    base, own = os.path.join(root, ""), os.fspath(ignore)  # noqa: PTH118  with a separator at its end

    def matters(_: watchfiles.Change, path: str) -> bool:
        if path == own or path.startswith(own + os.sep):
            return False
        parts = PurePath(path.removeprefix(base)).parts
        if ".git" in parts:
            return parts[-1] in _GIT_FILES
        return SKIPPED_DIRS.isdisjoint(parts)

    quiet = max(debounce_ms, 1)
    for moves in watchfiles.watch(
        root,
        watch_filter=matters,
        step=quiet,
        debounce=quiet * 10,  # a tree that never rests is refreshed all the same
        stop_event=stop,
        rust_timeout=1000,
        yield_on_timeout=True,
        ignore_permission_denied=True,
    ):
        yield bool(moves)
