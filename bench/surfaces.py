"""From the start of a process to its answer, with and without the daemon, beside the bare start of an interpreter."""

from __future__ import annotations

import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.corpora import fetch
from cq.surfaces.client import find_socket, pack_request

_RUNS = 15
_COMMANDS = {
    "calls": ["calls", "get_or_create"],
    "search": ["search", "get_or_create"],
    "read": ["read", "QuerySet.get_or_create"],
    "status": ["status"],
    "completion": ["completion", "words", "--", "calls", "get_or"],
}
_HELLO = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}\n'  # noqa: E501


def run(results: dict[str, Any]) -> None:
    tree = fetch("django")
    base = Path(tempfile.mkdtemp(prefix="cq-bench-"))  # short: a socket's path is
    environment = {
        **os.environ,
        **{f"XDG_{name}": str(base / name) for name in ("RUNTIME_DIR", "CACHE_HOME", "CONFIG_HOME")},
    }
    os.environ |= {key: value for key, value in environment.items() if key.startswith("XDG_")}
    try:
        _measure(results, tree, environment)
    finally:
        subprocess.run(
            [sys.executable, "-m", "cq", "daemon", "stop"], env=environment, capture_output=True, check=False
        )
        shutil.rmtree(base, ignore_errors=True)


def _measure(results: dict[str, Any], tree: Path, environment: dict[str, str]) -> None:
    def cq(*words: str) -> Callable[[], object]:
        command = [os.fspath(Path(sys.executable).with_name("cq")), *words]
        return lambda: subprocess.run(command, cwd=tree, env=environment, capture_output=True, check=False)

    cq("index")()
    floor = _median(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True))
    alone = {name: _median(cq(*words)) for name, words in _COMMANDS.items()}
    cq("daemon", "start")()
    rows: list[dict[str, Any]] = []
    for name, words in _COMMANDS.items():
        cq(*words)()
        through, server = _median(cq(*words)), _median(lambda words=words: _ask(words, tree))
        rows.append(
            {
                "command": " ".join(words),
                "alone ms": alone[name],
                "daemon ms": through,
                "in the server ms": server,
                "alone / daemon": alone[name] / through,
                "daemon / python -c pass": through / floor,
            }
        )
    with ThreadPoolExecutor(50) as pool:
        times = sorted(pool.map(lambda _: _time(lambda: _ask(_COMMANDS["calls"], tree)), range(500)))
    hello = _median(lambda: _greet(tree, environment), runs=5)
    results["tables"] = {
        f"process to answer, median of {_RUNS}; python -c pass: {floor:.1f} ms": rows,
        "50 clients, 500 requests": [
            {"median ms": times[250], "99th percentile ms": times[495], "longest ms": times[-1]}
        ],
        "MCP": [{"first answer to initialize ms": hello, "/ python -c pass": hello / floor}],
    }
    slowest = max(row["daemon ms"] for row in rows)
    asked = next(row for row in rows if row["command"].startswith("calls"))
    results["goals"] = [
        {"goal": "≤ 40 ms for the whole process through the daemon", "measured": slowest, "met": slowest <= 40},
        {"goal": "≤ 5 ms in the server for calls", "measured": asked["in the server ms"],
         "met": asked["in the server ms"] <= 5},
        {"goal": "≤ 150 ms to the first answer of the MCP server", "measured": hello, "met": hello <= 150},
    ]  # fmt: skip


def _ask(words: list[str], tree: Path) -> None:
    """A client without the start of a process."""
    os.chdir(tree)
    with socket.socket(socket.AF_UNIX) as link, open(os.devnull, "r+b") as nothing:  # noqa: PTH123
        link.connect(find_socket())
        request, number = pack_request("run", words), nothing.fileno()
        sent = socket.send_fds(link, [request], [number, number, number])
        if sent < len(request):
            link.sendall(request[sent:])
        while link.recv(16)[-2:-1] != b"x":
            pass


def _greet(tree: Path, environment: dict[str, str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "cq", "mcp"], cwd=tree, env=environment,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(_HELLO)
        process.stdin.flush()
        process.stdout.readline()
        process.kill()


def _median(work: Callable[[], object], runs: int = _RUNS) -> float:
    return statistics.median(_time(work) for _ in range(runs))


def _time(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000
