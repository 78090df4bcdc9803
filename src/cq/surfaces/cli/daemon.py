"""`cq daemon start|stop|status|run`: the process that keeps answers warm."""

from __future__ import annotations

import os
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path

import msgspec

from cq.model.errors import DaemonError, UsageError
from cq.opening import read_file
from cq.surfaces.cli.options import read_count
from cq.surfaces.client import connect, find_socket, pack_request, read_mode, spawn_daemon
from cq.surfaces.daemon import IDLE_SECONDS, MEMORY_MB, DaemonStatus, serve
from cq.surfaces.render import render_json, render_table

_EXAMPLES = """\
examples:
  cq daemon start                  commands of this user are answered by it from now on
  cq daemon status                 what it does and holds; exit status 1 where none runs
  cq daemon stop
  cq config set daemon auto        start it whenever a command finds none"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("what", choices=("start", "stop", "status", "run"), help="run: start, but in the foreground")
    parser.add_argument("--idle", metavar="SECONDS", type=read_count, help=f"end after so long without a question "
                        f"(default: {IDLE_SECONDS:.0f})")  # fmt: skip
    parser.add_argument("--memory", metavar="MB", type=read_count, help=f"let warm workers go beyond this much "
                        f"(default: {MEMORY_MB})")  # fmt: skip
    parser.add_argument("--format", choices=("md", "json"), default="md", help="of the status: md (default) or json")


def run(args: Namespace) -> int:
    path = find_socket()
    if not path:
        raise DaemonError("there is no daemon on this system", hint="commands work without one; see docs/daemon.md")
    if args.what in ("stop", "status") and (args.idle or args.memory):
        raise UsageError(f"--idle and --memory mean nothing to `cq daemon {args.what}`", hint="see `cq daemon --help`")
    if args.what == "run":
        serve(path, idle_seconds=args.idle or IDLE_SECONDS, memory_mb=args.memory or MEMORY_MB)
        return 0
    if args.what == "start":
        return _start(path, args)
    status = _tell(path, "status")
    if args.what == "stop":
        if status is None or _tell(path, "stop") is None:
            print("no daemon runs")
            return 1
        _wait(lambda: not Path(f"/proc/{status.pid}").exists(), "it did not end")
        print("stopped")
        return 0
    if args.format == "json":
        sys.stdout.write(render_json(status))
    else:
        sys.stdout.write(f"no daemon runs (mode: {read_mode()})\n" if status is None else _render(status))
    return 0 if status else 1


def _start(path: str, args: Namespace) -> int:
    if _tell(path, "status") is not None:
        print("it runs already")
        return 0
    options = [f"--{name}={value}" for name, value in (("idle", args.idle), ("memory", args.memory)) if value]
    pid = spawn_daemon(path, tuple(options))
    _wait(lambda: _tell(path, "status") is not None or _has_ended(pid), "it did not start")
    if _tell(path, "status") is None:
        why = read_file(f"{path}.log").decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise DaemonError(f"it did not start: {why.removeprefix('cq: ') or 'it said nothing'}")
    print("started")
    return 0


def _has_ended(pid: int) -> bool:
    return os.waitpid(pid, os.WNOHANG)[0] == pid


def _tell(path: str, verb: str) -> DaemonStatus | None:
    """What the daemon answers, None where none does."""
    link = connect(path)
    if link is None:
        return None
    said = b""
    try:
        link.settimeout(5)
        link.sendall(pack_request(verb, [], cwd="/"))
        while part := link.recv(1 << 16):
            said += part
        return msgspec.json.decode(said, type=DaemonStatus) if verb == "status" else _STOPPED
    except (OSError, msgspec.DecodeError):
        return None
    finally:
        link.close()


_STOPPED = DaemonStatus(0, "", "", 0.0, 0, 0, 0, 0.0, 0, ())


def _wait(is_so: Callable[[], bool], otherwise: str) -> None:
    for _ in range(200):
        if is_so():
            return
        time.sleep(0.05)
    raise DaemonError(otherwise, hint="see `cq daemon status`")


def _render(status: DaemonStatus) -> str:
    lines = [
        f"daemon {status.version}, process {status.pid}, up {status.seconds:,.0f} s, mode {read_mode()}",
        f"{status.served:,} commands served, {status.running} running, {status.queued} queued",
        f"ends after {status.idle_seconds:,.0f} s without a question; lets workers go beyond {status.memory_mb:,} MB",
        "",
    ]
    rows = [
        ["running" if row["running"] else "idle", *(str(row[name]) for name in ("pid", "served", "memory_mb", "place"))]
        for row in status.workers
    ]
    return "\n".join(lines) + render_table(["worker", "pid", "served", "MB", "last directory"], rows) + "\n"
