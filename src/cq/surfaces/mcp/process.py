"""Runs a command of ours in a process of its own: through the daemon where one runs, and stopped when the client says
so, with everything it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import anyio
import msgspec
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

Told = Callable[[float, float, str], Awaitable[None]]
_MOST = 64 * 1024 * 1024  # bytes of one answer


class Done(msgspec.Struct, frozen=True):
    status: int
    out: bytes
    errors: str


async def run_command(argv: list[str], root: str, told: Told) -> Done:
    """`told` hears the progress of an index that is made."""
    name, *rest = argv
    process = await anyio.open_process(
        [sys.executable, "-P", "-m", "cq", name, f"--root={root}", *rest],
        cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    out: list[bytes] = []
    errors: list[str] = []
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_collect, process, out)
            group.start_soon(_listen, process, errors, told)
        return Done(await process.wait(), b"".join(out), "\n".join(errors))
    finally:
        if process.returncode is None:
            with anyio.CancelScope(shield=True):
                await _end(process)


async def _collect(process: Process, out: list[bytes]) -> None:
    assert process.stdout is not None
    size = 0
    async for part in process.stdout:
        size += len(part)
        if size <= _MOST:
            out.append(part)


async def _listen(process: Process, errors: list[str], told: Told) -> None:
    assert process.stderr is not None
    rest = ""
    async for part in TextReceiveStream(process.stderr, errors="replace"):
        *lines, rest = (rest + part).split("\n")
        for line in lines:
            if line.startswith('{"stage"'):
                step: dict[str, Any] = msgspec.json.decode(line)
                await told(step["done"], step["total"], f"{step['stage']}: {step['done']} of {step['total']} files")
            else:
                errors.append(line)
    errors += [rest] if rest else []


async def _end(process: Process) -> None:
    for number in (signal.SIGINT, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with anyio.move_on_after(2):
            await process.wait()
            return
