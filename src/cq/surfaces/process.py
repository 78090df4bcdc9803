"""Has a question answered: by the daemon where one runs, else by a process of its own. Stopped when the client says
so, with everything it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, suppress
from typing import Any

import anyio
import msgspec
from anyio.abc import Process

from cq.source.program import kill_group
from cq.surfaces.asked import Asked
from cq.surfaces.client import (
    DONE,
    INTERRUPT,
    REPLACE,
    WRITING,
    connect,
    find_socket,
    list_environment,
    pack_request,
    read_mode,
    send_request,
    spawn_daemon,
)

Told = Callable[[str, int, int], Awaitable[None]]  # stage, done, total
_MOST = 64 * 1024 * 1024  # bytes of one answer


class Done(msgspec.Struct, frozen=True):
    status: int
    out: bytes
    errors: str


async def ask(asked: Asked, root: str, told: Told, *, alone: bool = False, own: str = "") -> Done:
    """`told` hears the progress of an index that is made. `alone`: not by the daemon, whose workers may all wait. `own`
    is the socket of a daemon that the caller keeps."""
    asked = msgspec.structs.replace(asked, root=root)
    try:
        return (None if alone else await _ask_daemon(asked, root, told, own)) or await _run_process(asked, root, told)
    except OSError as error:
        return Done(2, b"", f"cq: io: {error.strerror or error}: {root}")


async def _ask_daemon(asked: Asked, root: str, told: Told, own: str) -> Done | None:
    """None where there is none, or it has not said a word: then the work is to be done here."""
    path, mode = own or find_socket(), "manual" if own else read_mode()
    link = connect(path) if path and mode != "off" else None
    if link is None:
        if path and mode == "auto":
            spawn_daemon(path)
        return None
    with ExitStack() as stack:
        stack.callback(link.close)
        out, out_end = os.pipe()
        errors, errors_end = os.pipe()
        nothing = os.open(os.devnull, os.O_RDONLY)
        stack.callback(os.close, out)
        stack.callback(os.close, errors)
        try:
            request = pack_request("ask", [msgspec.json.encode(asked).decode()], cwd=root, pid=0)
            sent = send_request(link, request, (nothing, out_end, errors_end))
        finally:
            for number in (nothing, out_end, errors_end):
                os.close(number)
        if not sent:
            return None
        heard = _Heard(told)
        said = b""
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(heard.collect, out)
                group.start_soon(heard.listen, errors)
                while said[-2:-1] != DONE:
                    await anyio.wait_readable(link)  # pyright: ignore[reportArgumentType]  a socket, without its module
                    try:
                        part = link.recv(16)
                    except OSError:  # it was killed; as an error it would leave the group as one of several
                        part = b""
                    if not part:
                        break
                    said += part
        except anyio.get_cancelled_exc_class():
            with suppress(OSError):
                link.sendall(INTERRUPT)  # the worker stops; hanging up ends it where it does not
            raise
        except OSError:
            said = b""
        if REPLACE in said:  # it is another version of this program
            if not own:
                spawn_daemon(path)
            return None
        if said[-2:-1] != DONE:
            return Done(2, b"", "cq: daemon: it ended before the answer did (ask again)") if WRITING in said else None
        return heard.done(said[-1])


async def _run_process(asked: Asked, root: str, told: Told) -> Done:
    process = await anyio.open_process(
        [sys.executable, "-P", "-m", "cq.surfaces.asked", asked.question],
        cwd=root, env=list_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    heard = _Heard(told)
    try:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # what ended at once says why
            await process.stdin.send(msgspec.json.encode(asked))
            await process.stdin.aclose()
        async with anyio.create_task_group() as group:
            group.start_soon(heard.collect, process.stdout)
            group.start_soon(heard.listen, process.stderr)
        return heard.done(await process.wait())
    finally:
        if process.returncode is None:
            with anyio.CancelScope(shield=True):
                await _end(process)


class _Heard:
    """What a command writes, as it comes; what it says of its progress is told at once."""

    def __init__(self, told: Told) -> None:
        self._told = told
        self._out: list[bytes] = []
        self._errors: list[str] = []

    def done(self, status: int) -> Done:
        return Done(status, b"".join(self._out), "\n".join(self._errors))

    async def collect(self, stream: Any) -> None:
        size = 0
        async for part in _read(stream):
            size += len(part)
            if size <= _MOST:
                self._out.append(part)

    async def listen(self, stream: Any) -> None:
        rest = b""
        async for part in _read(stream):
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                if line.startswith(b'{"stage"'):
                    step: dict[str, Any] = msgspec.json.decode(line)
                    await self._told(step["stage"], step["done"], step["total"])
                else:
                    self._errors.append(line.decode("utf-8", "replace"))
        self._errors += [rest.decode("utf-8", "replace")] if rest else []


async def _read(stream: Any) -> AsyncIterator[bytes]:
    """The parts of a stream, or of a descriptor."""
    if not isinstance(stream, int):
        async for part in stream:
            yield part
        return
    while True:
        await anyio.wait_readable(stream)
        part = os.read(stream, 1 << 16)
        if not part:
            return
        yield part


async def _end(process: Process) -> None:
    """Asked first, where the system lets one process ask another; then with all that it started."""
    for end in (_interrupt, kill_group):
        with suppress(ProcessLookupError, PermissionError):
            end(process.pid)
            with anyio.move_on_after(2):
                await process.wait()
                return
    with suppress(ProcessLookupError):
        process.kill()
    await process.wait()


def _interrupt(pid: int) -> None:
    if sys.platform == "win32":
        raise PermissionError(pid)
    os.killpg(pid, signal.SIGINT)
