"""JSON-RPC with one process over its standard streams: frames, ids, threads, bounds. Knows nothing of any method.

The process is not trusted: whatever it writes, or does not write, a request ends at its time-out, memory stays
bounded, and `close` leaves no process of its group behind.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

from cq.source.program import OUTSIDE, choose_environment, kill_group

MAX_FRAME = 64 * 1024 * 1024
MAX_QUEUED = 64 * 1024 * 1024  # written to a process that does not read
MAX_PENDING = 8192
MAX_GARBAGE = 16 * 1024 * 1024
MAX_STDERR = 16 * 1024
_MAX_LINE = 8 * 1024
_LENGTH = re.compile(rb"Content-Length:\s*(\d{1,12})\s*$", re.IGNORECASE)
_RESPONSE_ID = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18})\s*,')
_METHOD_NOT_FOUND = -32601
_ENDED = "the server ended"
_KILLED = -9  # by `kill_group`


class ServerError(Exception):
    """A request that got no result. Its text is one line for people."""

    def __init__(self, message: str, *, timed_out: bool = False, code: int = 0) -> None:
        super().__init__(message)
        self.timed_out = timed_out
        self.code = code


class Request(NamedTuple):
    id: int
    method: str
    future: Future[Any]


class Connection:
    """One process for as long as it lives; a restart is another Connection, so no answer can reach the wrong one.

    `answer` is given the server's requests and returns their result, or NotImplemented; `notice` is given its
    notifications. Both are called in the reader's thread and must neither block nor raise.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        root: Path,
        answer: Callable[[str, Any], Any],
        notice: Callable[[str, Any], None],
        env: Mapping[str, str] | None = None,
        first_id: int = 1,
    ) -> None:
        self._answer, self._notice = answer, notice
        self.reason = ""  # why it ended; empty while it lives
        self.unmatched = 0  # answers to nothing that is asked: late, doubled or invented
        self.garbage = 0  # bytes and frames that are no JSON-RPC
        self.next_id = first_id
        self._pending: dict[int, Future[Any]] = {}
        self._lock = threading.Lock()
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._to_write = threading.Condition(self._lock)
        self._stderr = bytearray()
        try:
            self._process = subprocess.Popen(
                list(command),
                # Not in the repository: a server that starts Python would import the repository's modules.
                cwd=OUTSIDE,
                env={**choose_environment(os.environ, root=os.fspath(root)), **(env or {})},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise ServerError(f"{command[0]} cannot be started: {error}") from None
        self.pid = self._process.pid
        self._stderr_reader = _start(self._read_stderr)
        for work in (self._read, self._write):
            _start(work)

    @property
    def alive(self) -> bool:
        return not self.reason

    @property
    def stderr(self) -> str:
        """The last of what it wrote there."""
        return bytes(self._stderr).decode("utf-8", "replace")

    def request(self, method: str, params: Any) -> Request:
        """Sends and does not wait. The answer is taken with `wait`."""
        future: Future[Any] = Future()
        with self._lock:
            if self.reason:
                raise ServerError(self.reason)
            if len(self._pending) >= MAX_PENDING:
                raise ServerError("too many requests are waiting")
            number, self.next_id = self.next_id, self.next_id + 1
            self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
            self._pending[number] = future
        return Request(number, method, future)

    def wait(self, request: Request, timeout: float) -> Any:
        try:
            return request.future.result(max(timeout, 0))
        except FutureTimeout:
            self.cancel(request)
            raise ServerError(f"{request.method} gave no answer in {timeout:.3g} s", timed_out=True) from None

    def cancel(self, request: Request) -> None:
        """Its answer, should one come, is dropped."""
        with self._lock:
            if self._pending.pop(request.id, None) is not None and not self.reason:
                with suppress(ServerError):
                    self._send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": request.id}})

    def notify(self, method: str, params: Any) -> None:
        with self._lock:
            if self.reason:
                raise ServerError(self.reason)
            self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def close(self, reason: str = "closed", *, grace: float = 0.0) -> None:
        """Ends every process of the group; `grace` is the time to leave by itself once its input ends."""
        if grace > 0 and self.alive:
            with self._lock:
                self._queue.append(b"")  # the writer closes the stream behind everything written so far
                self._to_write.notify()
            until = time.monotonic() + grace
            while self.alive and time.monotonic() < until:
                time.sleep(0.005)
        self._end(reason)

    def _send(self, message: dict[str, Any]) -> None:
        """Under the lock. Never blocks: a thread of its own writes."""
        try:
            body = msgspec.json.encode(message)
        except RecursionError:  # a server's own words, which some questions repeat to it
            raise ServerError("what is to be sent is nested too deep") from None
        frame = b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
        if self._queued + len(frame) > MAX_QUEUED:
            raise ServerError("the server does not read what is sent to it")
        self._queued += len(frame)
        self._queue.append(frame)
        self._to_write.notify()

    def _write(self) -> None:
        stream = self._process.stdin
        assert stream is not None
        try:
            while True:
                with self._lock:
                    while not self._queue and not self.reason:
                        self._to_write.wait()
                    if self.reason:
                        break
                    frame = self._queue.popleft()
                    self._queued -= len(frame)
                if not frame:
                    break
                stream.write(frame)
                stream.flush()
        except (OSError, ValueError):
            self._end("the server closed its input")
        with suppress(OSError, ValueError):
            stream.close()

    def _read(self) -> None:
        why = _ENDED
        stream = self._process.stdout
        assert stream is not None
        try:
            why = self._read_frames(stream) or why
        finally:
            self._end(why)
            stream.close()

    def _read_frames(self, stream: IO[bytes]) -> str:
        """Until the stream ends, or why it is not read to its end."""
        length = -1
        while self.alive:
            line = stream.readline(_MAX_LINE)
            if not line:
                break
            if found := _LENGTH.search(line):
                length = int(found[1])
            elif line.strip():
                # Other headers, or noise before the next frame: either is left behind.
                self.garbage += len(line)
            elif length > MAX_FRAME:
                # An answer that is too large is an answer: whoever waits for it need not wait longer.
                head = stream.read(min(length, 256))
                if found := _RESPONSE_ID.match(head):
                    self._settle(int(found[1]), ServerError(f"an answer of {length:,} bytes is too large"))
                rest = length - len(head)
                while rest > 0 and (skipped := stream.read(min(rest, 1024 * 1024))):
                    rest -= len(skipped)
                length = -1
            elif length >= 0:
                body = stream.read(length)
                if len(body) < length:
                    break
                length = -1
                try:
                    message = msgspec.json.decode(body)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                    self.garbage += len(body)
                else:
                    self._dispatch(message)
            if self.garbage > MAX_GARBAGE:
                return "the server does not speak JSON-RPC"
        return ""

    def _dispatch(self, message: Any) -> None:
        match message:
            case {"method": str(method), "id": int() | str() as number}:
                result = self._answer(method, message.get("params"))
                reply: dict[str, Any] = {"jsonrpc": "2.0", "id": number}
                if result is NotImplemented:
                    reply["error"] = {"code": _METHOD_NOT_FOUND, "message": f"cq does not know {method[:100]}"}
                else:
                    reply["result"] = result
                with self._lock:
                    if not self.reason:
                        try:
                            self._send(reply)
                        except ServerError:
                            return  # what it does not read it does not miss
            case {"method": str(method)}:
                self._notice(method, message.get("params"))
            case {"id": int(number), "error": dict(error)}:
                code = error.get("code")
                text = str(error.get("message", "")).strip().partition("\n")[0][:300]
                self._settle(number, ServerError(text or "error", code=code if isinstance(code, int) else 0))
            case {"id": int(number)}:
                self._settle(number, message.get("result"))
            case _:
                self.garbage += 1

    def _settle(self, number: int, result: Any) -> None:
        with self._lock:
            future = self._pending.pop(number, None)
        if future is None:
            self.unmatched += 1
        elif isinstance(result, ServerError):
            future.set_exception(result)
        else:
            future.set_result(result)

    def _read_stderr(self) -> None:
        stream = self._process.stderr
        assert stream is not None
        while chunk := os.read(stream.fileno(), 4096):
            self._stderr += chunk
            del self._stderr[:-MAX_STDERR]
        stream.close()

    def _end(self, reason: str) -> None:
        """Once: everything that waits is told, and the whole group is killed before its leader is reaped."""
        with self._lock:
            if self.reason:
                return
            self.reason = reason
            pending, self._pending = self._pending, {}
            self._queue.clear()
            self._to_write.notify()
        if reason == _ENDED:
            until = time.monotonic() + 0.2  # streams close a moment before there is an exit code
            while not _has_ended(self.pid) and time.monotonic() < until:
                time.sleep(0.002)
        # The leader stays a zombie until it is waited for, so its group's number is still its own.
        try:
            kill_group(self.pid)
        except (ProcessLookupError, PermissionError):
            self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            code = self._process.wait(5)
            if reason == _ENDED and code != _KILLED:
                self._stderr_reader.join(1)  # its last words may not have been read yet
                last = self.stderr.strip().rpartition("\n")[2][:200]
                self.reason = reason = f"{_ENDED} with exit code {code}" + (f": {last}" if last else "")
        for future in pending.values():
            future.set_exception(ServerError(reason))


def _start(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True, name=f"cq-{work.__name__.strip('_')}")
    thread.start()
    return thread


def _has_ended(pid: int) -> bool:
    """Without reaping it: the number of a process that is waited for may become another's."""
    if not hasattr(os, "waitid"):  # some systems have no way to look
        return False
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
