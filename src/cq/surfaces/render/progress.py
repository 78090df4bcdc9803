"""Progress on stderr: a bar on a terminal, lines, or JSON. Quiet for what is done within a second."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import msgspec

from cq.surfaces.printer import ESCAPE, RETURN

if TYPE_CHECKING:
    from cq.indexing.refresh import Progress

MODES = ("auto", "plain", "json", "none")
_QUIET = 1.0  # seconds
_PAUSE = {"bar": 0.1, "plain": 1.0, "json": 0.1}
_WORDS = {
    "list": "finding files", "read": "reading", "write": "writing", "link": "linking", "embed": "making vectors",
    "precise": "asking about", "graph": "making the graph of vectors", "wait": "another process is making the index",
}  # fmt: skip


class ProgressLine:
    """Called with every step of a refresh; `clear` before anything else is printed."""

    def __init__(self, mode: str = "auto", pause: float | None = None) -> None:
        if mode == "auto":
            mode = "bar" if sys.stderr.isatty() else "none"
        self._mode = mode
        self._pause = _PAUSE.get(mode, 0.0) if pause is None else pause
        self._started = self._shown = time.monotonic()
        self._read_from: float | None = None  # when reading began: the listing before it says nothing about speed
        self._stage = ""
        self._drawn = False

    def __call__(self, progress: Progress) -> None:
        if self._mode == "none":
            return
        now = time.monotonic()
        if progress.stage == "list":
            self._started, self._read_from = now, None
        elif progress.stage == "read" and self._read_from is None:
            self._read_from = now
        # A program wants every stage and the end of each; people want to be left alone.
        turn = self._mode == "json" and (progress.stage != self._stage or progress.done == progress.total)
        self._stage = progress.stage
        if not turn and now - self._shown < self._pause:
            return
        if self._mode == "bar" and now - self._started < _QUIET:
            return
        self._shown = now
        self._show(progress, now)

    def clear(self) -> None:
        if self._drawn:
            sys.stderr.write(f"{RETURN}{ESCAPE}[K")
            sys.stderr.flush()
            self._drawn = False

    def _show(self, progress: Progress, now: float) -> None:
        rate, left = measure_speed(progress, 0.0 if self._read_from is None else now - self._read_from)
        if self._mode == "json":
            sys.stderr.write(_to_json(progress, rate, left, now - self._started) + "\n")
        elif self._mode == "plain":
            sys.stderr.write(_to_text(progress, rate, left) + "\n")
        else:
            import shutil

            width = shutil.get_terminal_size().columns - 1
            sys.stderr.write(f"{RETURN}{ESCAPE}[K" + draw_bar(progress, _to_text(progress, rate, left), width))
            self._drawn = True
        sys.stderr.flush()


def measure_speed(progress: Progress, seconds: float) -> tuple[float, float | None]:
    """(files per second, seconds left or None). Time goes with bytes, not with files."""
    if seconds <= 0 or not progress.done:
        return 0.0, None
    share = progress.done_bytes / progress.total_bytes if progress.total_bytes else progress.done / progress.total
    # The first files wait for the workers to start; a guess from those would be off by minutes.
    return progress.done / seconds, seconds * (1 - share) / share if share > 0.02 else None


def draw_bar(progress: Progress, text: str, width: int) -> str:
    room = min(30, width - len(text) - 3)
    if room < 5 or not progress.total:
        return text[:width]
    filled = room * progress.done // progress.total
    return f"[{'#' * filled}{' ' * (room - filled)}] {text}"


def _to_text(progress: Progress, rate: float, left: float | None) -> str:
    words = _WORDS.get(progress.stage, progress.stage)
    if not progress.total:
        return words
    text = f"{words} {progress.done:,}/{progress.total:,} {'calls' if progress.stage == 'precise' else 'files'}"
    if rate:
        text += f", {rate:,.0f}/s"
    if left is not None and progress.stage == "read":
        text += f", {int(left) // 60}:{int(left) % 60:02d} left"
    return text


def _to_json(progress: Progress, rate: float, left: float | None, elapsed: float) -> str:
    row = {
        "stage": progress.stage,
        "done": progress.done,
        "total": progress.total,
        "done_bytes": progress.done_bytes,
        "total_bytes": progress.total_bytes,
        "files_per_second": round(rate, 1),
        "seconds": round(elapsed, 3),
        "seconds_left": None if left is None else round(left, 1),
    }
    return msgspec.json.encode(row).decode()
