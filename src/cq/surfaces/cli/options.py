"""Options that every command over the index shares, and the workspace they ask for."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from cq.indexing.refresh import Progress
    from cq.workspace import Workspace


def add_place_options(parser: ArgumentParser) -> None:
    parser.add_argument("--root", metavar="DIR", help="the directory that holds the code (default: the repository)")
    parser.add_argument("--index-dir", metavar="DIR", help="keep the index below DIR (default: the cache directory)")


def add_file_options(parser: ArgumentParser) -> None:
    parser.add_argument("--include", metavar="GLOB", action="append", help="only these files, as in .gitignore")
    parser.add_argument("--exclude", metavar="GLOB", action="append", help="not these files; outranks --include")
    parser.add_argument("--max-file-bytes", metavar="N", type=int, help="leave out files over N bytes")
    parser.add_argument("--max-files", metavar="N", type=int, help="stop after N files")


def add_worker_options(parser: ArgumentParser) -> None:
    parser.add_argument("--jobs", metavar="N", type=int, help="worker processes (default: one per core)")
    parser.add_argument("--memory", metavar="MB", type=int, dest="memory_mb", help="hold back work beyond this much")


def add_freshness_options(parser: ArgumentParser) -> None:
    parser.add_argument("--no-refresh", action="store_true", help="answer from the index as it lies")
    parser.add_argument("--max-stale", metavar="SECONDS", type=_seconds, default=0.0, help="trust a check this young")


def open_workspace(args: Namespace, on_progress: Callable[[Progress], None] | None = None, **more: Any) -> Workspace:
    """What is not among the command's options keeps its default."""
    from cq.workspace import Workspace

    given = vars(args)
    options: dict[str, Any] = {
        name: given.get(name) for name in ("max_file_bytes", "max_files", "jobs", "memory_mb") if name in given
    }
    options |= {name: tuple(given[name]) for name in ("include", "exclude") if given.get(name)}
    options["auto_refresh"] = not given.get("no_refresh")
    options["max_stale"] = given.get("max_stale") or 0.0
    return Workspace.open(args.root, index_dir=args.index_dir, on_progress=on_progress, **(options | more))


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value
