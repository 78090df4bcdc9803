"""The daemon: one process per user that keeps workers warm and hands commands to them.

A command runs in a worker as it would run alone: with the caller's streams, directory, environment and arguments,
one at a time, in the main thread. So nothing but time tells the two ways apart, and what a crash takes with it is
one answer. The first process only passes things on; it reads no repository.
"""

from __future__ import annotations

import gc
import io
import os
import select
import selectors
import signal
import socket
import struct
import sys
import time
from collections import deque
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, cast

import msgspec

from cq.model.errors import DaemonError
from cq.store.lock import take_lock
from cq.surfaces.client import DONE, IDENTITY, MAX_REQUEST, REFUSE, REPLACE, WRITING, list_environment

if TYPE_CHECKING:
    from cq.indexing.resident import Resident

IDLE_SECONDS = 1800.0
MEMORY_MB = 1024
_MAX_QUEUE = 200  # each holds four descriptors; who comes on top helps itself
_HEAD_SECONDS = 5.0  # for a request to be complete
_GRACE_SECONDS = 2.0  # for a worker whose client left
_PAUSE_SECONDS = 0.1  # without a request, until a worker makes ready for the next
_STOP_SECONDS = 5.0  # for what runs when the daemon is told to stop
_BEGUN = b"b"  # what a worker says when an interrupt would reach the command
_PACKAGE = Path(__file__).parents[1]


class DaemonStatus(msgspec.Struct, frozen=True):
    pid: int
    socket: str
    version: str
    seconds: float
    served: int
    running: int
    queued: int
    idle_seconds: float
    memory_mb: int  # the ceiling
    workers: tuple[dict[str, Any], ...]


class Request(msgspec.Struct, frozen=True):
    """What the client says of itself; see client.pack_request."""

    identity: str
    verb: str
    pid: int
    umask: int
    cwd: str
    argv: list[str]
    environment: dict[str, str]


class _Worker:
    def __init__(self, pid: int, channel: socket.socket) -> None:
        self.pid = pid
        self.channel = channel
        self.job: _Job | None = None
        self.served = 0
        self.place = ""  # what it answered last: it is warm there
        self.used = time.monotonic()


class _Job:
    """One client: first its request as it comes, then the worker that has it."""

    def __init__(self, link: socket.socket) -> None:
        self.link = link
        self.body = b""
        self.streams: list[int] = []
        self.since = time.monotonic()
        self.worker: _Worker | None = None
        self.place = ""
        self.left: float | None = None  # when the client did
        self.begun = self.interrupted = False


def serve(path: str, *, idle_seconds: float = IDLE_SECONDS, memory_mb: int = MEMORY_MB) -> None:
    """Until it is told to stop, has been idle for so long, or is not the current code any more."""
    Daemon(path, idle_seconds, memory_mb).run()


def parse_request(body: bytes) -> Request:
    """ValueError for what no client of ours sends."""
    head, rest = _take_fields(body)
    argv, rest = _take_fields(rest)
    variables, rest = _take_fields(rest)
    if rest or len(head) != 5 or len(variables) % 2:
        raise ValueError("not a request")
    identity, verb, pid, umask, cwd = head
    if not cwd.startswith("/") or not 0 <= int(umask) <= 0o777 or int(pid) < 0:
        raise ValueError("not a request")
    environment = dict(zip(variables[::2], variables[1::2], strict=True))
    if environment != list_environment(environment):
        raise ValueError("variables that no command sees")
    return Request(identity, verb, int(pid), int(umask), cwd, argv, environment)


def _take_fields(body: bytes) -> tuple[list[str], bytes]:
    """The first list of fields and what follows it."""
    fields: list[str] = []
    count, at = int.from_bytes(body[:4], "big"), 4
    # A field costs four bytes at least: what says it has more than fit has not to be counted to its end.
    if len(body) < 4 or count > len(body) // 4:
        raise ValueError("cut short")
    for _ in range(count):
        start = at + 4
        end = start + int.from_bytes(body[at:start], "big")
        field = body[start:end]
        if end > len(body) or b"\0" in field:
            raise ValueError("cut short")
        fields.append(os.fsdecode(field))
        at = end
    return fields, body[at:]


def is_own(link: socket.socket) -> bool:
    """Whether the process at the other end belongs to this user, as the system says."""
    size = struct.calcsize("3i")
    _, uid, _ = struct.unpack("3i", link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return uid == os.getuid()


class Daemon:
    def __init__(self, path: str, idle_seconds: float, memory_mb: int) -> None:
        self._path = path
        self._idle_seconds = idle_seconds
        self._memory_mb = memory_mb
        self._most_workers = max(4, os.cpu_count() or 4)  # some only wait: for a lock, for a language server
        self._selector = selectors.DefaultSelector()
        self._workers: list[_Worker] = []
        self._reading: list[_Job] = []
        self._queue: deque[_Job] = deque()
        self._started = self._used = time.monotonic()
        self._served = 0
        self._leaving = False
        self._stop_at = float("inf")

    def run(self) -> None:
        folder = Path(self._path).parent
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if folder.stat().st_uid != os.getuid():
            raise DaemonError(f"{folder} belongs to someone else", hint="remove it, or set XDG_RUNTIME_DIR")
        folder.chmod(0o700)
        lock = _take_lock(f"{self._path}.lock")
        import resource  # not everywhere; where there is no daemon its command still says so

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        self._stamp = _stamp_code()
        _preload()
        gc.collect()
        gc.freeze()  # what is loaded now stays shared with every worker
        self._listener = _listen(self._path)
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        for number in (signal.SIGTERM, signal.SIGINT):
            if signal.getsignal(number) != signal.SIG_IGN:  # what is ignored where it was started stays so
                signal.signal(number, self._leave)
        self._start_worker()  # the first question finds one ready
        try:
            while not self._is_over():
                for key, _ in self._selector.select(1.0):
                    if cast("socket.socket", key.fileobj).fileno() >= 0:  # not closed by an event before it
                        key.data()
                self._look_after()
        finally:
            self._stop_listening()
            for worker in self._workers:
                worker.channel.close()  # which ends it
            until = time.monotonic() + _GRACE_SECONDS
            for worker in self._workers:
                while os.waitpid(worker.pid, os.WNOHANG) == (0, 0):
                    if time.monotonic() > until:
                        _kill(worker, signal.SIGKILL)
                    time.sleep(0.005)
            os.close(lock)

    def _is_over(self) -> bool:
        if time.monotonic() > self._stop_at and not self._workers:
            return True
        working = self._queue or self._reading or any(worker.job for worker in self._workers)
        return not working and (self._leaving or time.monotonic() - self._used > self._idle_seconds)

    def _leave(self, *_: object) -> None:
        """What runs is finished; nothing new is taken, so that a successor can begin at once."""
        self._leaving = True
        self._stop_listening()

    def _stop_listening(self) -> None:
        if self._listener.fileno() >= 0:
            self._selector.unregister(self._listener)
            Path(self._path).unlink(missing_ok=True)
            self._listener.close()

    def _accept(self) -> None:
        try:
            link, _ = self._listener.accept()
        except OSError:
            return
        if not is_own(link) or len(self._reading) >= _MAX_QUEUE:
            link.close()
            return
        link.setblocking(False)
        job = _Job(link)
        self._reading.append(job)
        self._selector.register(link, selectors.EVENT_READ, lambda: self._read(job))

    def _read(self, job: _Job) -> None:
        try:
            data, streams, flags, _ = socket.recv_fds(job.link, 1 << 16, 3)
        except BlockingIOError:
            return
        except OSError:
            data, streams, flags = b"", [], 0
        job.streams += streams
        job.body += data
        size = int.from_bytes(job.body[:4], "big") if len(job.body) >= 4 else MAX_REQUEST
        if not data or (len(job.body) >= 4 and size > MAX_REQUEST) or len(job.streams) > 3 or flags & socket.MSG_CTRUNC:
            self._drop(job)
        elif len(job.body) == 4 + size:
            self._take(job)
        elif len(job.body) > 4 + size:
            self._drop(job)

    def _take(self, job: _Job) -> None:
        self._reading.remove(job)
        self._selector.modify(job.link, selectors.EVENT_READ, lambda: self._hear(job))
        try:
            request = parse_request(job.body[4:])
        except ValueError:
            self._drop(job)
            return
        if request.verb == "status":
            self._reply(job, msgspec.json.encode(self._describe()))
        elif request.verb == "stop":
            self._leave()
            self._stop_at = time.monotonic() + _STOP_SECONDS
            self._reply(job, b"{}")
        elif request.verb not in ("run", "ask") or (request.verb == "ask" and len(request.argv) != 1):
            self._drop(job)
        elif request.identity != IDENTITY or _stamp_code() != self._stamp:
            self._leave()
            self._reply(job, REPLACE)
        elif self._leaving or len(job.streams) != 3 or len(self._queue) >= _MAX_QUEUE:
            self._reply(job, REFUSE)
        else:
            self._used = time.monotonic()
            job.place = request.cwd
            self._queue.append(job)
            self._hand_out()

    def _hear(self, job: _Job) -> None:
        """From a client that waits: an interrupt, or that it is gone."""
        try:
            said = job.link.recv(64)
        except BlockingIOError:
            return
        except OSError:
            said = b""
        if job.worker is None:
            self._queue.remove(job)
            self._drop(job)
            return
        if not said:
            job.left = time.monotonic()
            self._selector.unregister(job.link)
        job.interrupted = True
        if job.begun:  # before, the worker would not hear it
            _kill(job.worker, signal.SIGINT)

    def _hand_out(self) -> None:
        while self._queue and time.monotonic() <= self._stop_at:
            idle = [worker for worker in self._workers if worker.job is None]
            job = self._queue[0]
            worker = next((one for one in idle if one.place == job.place), None)
            if worker is None and len(self._workers) < self._most_workers and all(one.place for one in idle):
                worker = self._start_worker()
            worker = worker or next(iter(idle), None)
            if worker is None:
                return
            self._queue.popleft()
            worker.job, job.worker = job, worker
            try:
                socket.send_fds(worker.channel, [job.body[:4]], [job.link.fileno(), *job.streams])
                worker.channel.sendall(job.body[4:])
            except OSError:
                self._lose(worker)
                continue
            _close(job.streams)

    def _start_worker(self) -> _Worker:
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if not pid:
            _work(theirs.fileno())
        theirs.close()
        worker = _Worker(pid, ours)
        self._workers.append(worker)
        self._selector.register(ours, selectors.EVENT_READ, lambda: self._finish(worker))
        return worker

    def _finish(self, worker: _Worker) -> None:
        try:
            said = worker.channel.recv(1)
        except OSError:
            said = b""
        job = worker.job
        if not said or job is None:
            self._lose(worker)
            return
        if said == _BEGUN:
            job.begun = True
            if job.interrupted:
                _kill(worker, signal.SIGINT)
            return
        self._served += 1
        worker.served += 1
        worker.place, worker.used, worker.job = job.place, time.monotonic(), None
        self._used = worker.used
        self._drop(job)
        self._evict()
        self._hand_out()

    def _lose(self, worker: _Worker) -> None:
        """A worker that ended: its client hears the connection close and helps itself."""
        self._workers.remove(worker)
        self._selector.unregister(worker.channel)
        worker.channel.close()
        _kill(worker, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(worker.pid, 0)
        if worker.job is not None:
            self._drop(worker.job)
        self._hand_out()

    def _evict(self) -> None:
        """Idle workers go, the longest unused first, until the rest is below the ceiling."""
        total = sum(_measure(worker.pid) for worker in self._workers)
        for worker in sorted(self._workers, key=lambda worker: worker.used):
            if total <= self._memory_mb * 1_000_000:
                return
            if worker.job is None:
                total -= _measure(worker.pid)
                self._lose(worker)

    def _look_after(self) -> None:
        now = time.monotonic()
        self._evict()
        for job in [job for job in self._reading if now - job.since > _HEAD_SECONDS]:
            self._drop(job)
        for worker in list(self._workers):
            job = worker.job
            left = job is not None and job.left is not None and now - job.left > _GRACE_SECONDS
            if left or now > self._stop_at:
                self._lose(worker)

    def _reply(self, job: _Job, said: bytes) -> None:
        with suppress(OSError):
            job.link.setblocking(True)
            job.link.sendall(said)
        self._drop(job)

    def _drop(self, job: _Job) -> None:
        if job in self._reading:
            self._reading.remove(job)
        with suppress(KeyError, ValueError):
            self._selector.unregister(job.link)
        job.link.close()
        _close(job.streams)

    def _describe(self) -> DaemonStatus:
        rows = tuple(
            {
                "pid": worker.pid,
                "running": worker.job is not None,
                "served": worker.served,
                "memory_mb": round(_measure(worker.pid) / 1e6, 1),
                "place": worker.place,
            }
            for worker in self._workers
        )
        return DaemonStatus(
            os.getpid(), self._path, IDENTITY.partition(" ")[0], round(time.monotonic() - self._started, 1),
            self._served, sum(worker.job is not None for worker in self._workers), len(self._queue), self._idle_seconds,
            self._memory_mb, rows,
        )  # fmt: skip


class _Tell(io.FileIO):
    """Standard output that tells the client before the first byte: from then on it cannot start over by itself."""

    def __init__(self, link: socket.socket) -> None:
        super().__init__(1, "wb", closefd=False)
        self._link: socket.socket | None = link

    def write(self, data: Any, /) -> int:
        if self._link is not None:
            link, self._link = self._link, None
            with suppress(OSError):
                link.sendall(WRITING)
        return super().write(data)


def _work(channel: int) -> NoReturn:
    """The life of a worker: requests one by one, until the daemon closes the channel."""
    from cq.indexing.resident import Resident
    from cq.providers import sessions
    from cq.surfaces import cli

    os.setsid()
    sessions.keep_warm, resident = True, Resident()
    cli.resident = resident
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208  clients must hear it when the daemon dies
        if int(name) > 2 and int(name) != channel:
            with suppress(OSError):
                os.close(int(name))
    parent = socket.socket(fileno=channel)
    # What the daemon was started with: no request's variables reach the work between requests.
    own, umask = dict(os.environ), os.umask(0o77)
    os.umask(umask)
    status = 1
    try:
        while True:
            _await(parent, resident)
            head, (link, *streams), _, _ = socket.recv_fds(parent, 4, 4)
            size, body = int.from_bytes(head, "big"), b""
            while len(body) < size:
                body += parent.recv(size - len(body))
            try:
                _answer(parse_request(body), socket.socket(fileno=link), streams, parent)
            finally:
                _take_up(own, "/", umask)
            parent.sendall(DONE)
    except (ValueError, OSError):
        status = 0  # the daemon is gone
    finally:
        sessions.close_sessions()
        os._exit(status)


def _await(parent: socket.socket, resident: Resident) -> None:
    """For the next request; meanwhile the worker makes ready for it."""
    from cq.surfaces.idle import stay_ready

    if select.select([parent], [], [], _PAUSE_SECONDS)[0]:
        return  # who asks in a row is not kept waiting
    gc.collect()
    with closing(stay_ready(resident)) as pieces:
        for seconds in pieces:
            gc.freeze()  # what is kept is not looked through again and again
            if select.select([parent], [], [], seconds)[0]:
                return


def _answer(request: Request, link: socket.socket, streams: list[int], parent: socket.socket) -> None:
    from cq.surfaces import cli

    try:
        _take_up(request.environment, request.cwd, request.umask)
    except OSError:
        with suppress(OSError):
            link.sendall(REFUSE)
        link.close()
        _close(streams)
        return
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    _close(streams)
    sys.argv = ["cq", *(request.argv if request.verb == "run" else ())]
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8", "surrogateescape")
    out = sys.stdout = io.TextIOWrapper(io.BufferedWriter(_Tell(link)), "utf-8", "surrogateescape")
    err = sys.stderr = io.TextIOWrapper(
        io.FileIO(2, "wb", closefd=False), "utf-8", "backslashreplace", write_through=True
    )
    cli.asker = str(request.pid or "")
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        parent.sendall(_BEGUN)
        status = cli.main(request.argv) if request.verb == "run" else cli.answer(os.fsencode(request.argv[0]))
    except KeyboardInterrupt:
        status = 130
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError, ValueError):
        out.flush()
    with suppress(OSError):
        link.sendall(DONE + bytes([status & 0xFF]))
    link.close()
    # What could not be written must not reach the next client.
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    os.close(nothing)
    for stream in (out, err, sys.stdin):
        with suppress(OSError, ValueError):
            stream.close()


def _take_up(environment: dict[str, str], cwd: str, umask: int) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.umask(umask)
    os.chdir(cwd)


def _take_lock(path: str) -> int:
    """Held while the daemon lives, and dropped by the system when it dies: whoever has it may replace the socket."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    for _ in range(50):  # a predecessor that was told to leave may need a moment
        if take_lock(lock, wait=False):
            return lock
        time.sleep(0.1)
    os.close(lock)
    raise DaemonError("a daemon runs already", hint="`cq daemon status` shows it")


def _listen(path: str) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    fresh = f"{path}.new"
    Path(fresh).unlink(missing_ok=True)
    listener.bind(fresh)
    Path(fresh).chmod(0o600)
    listener.listen(256)
    listener.setblocking(False)
    Path(fresh).rename(path)  # a client meets the old one, this one or none, never half of one
    return listener


def _preload() -> None:
    """What most commands need; the rest a worker loads when it first meets it."""
    from importlib import import_module

    from cq.questions.table import QUESTIONS
    from cq.surfaces.cli import COMMANDS
    from cq.surfaces.client import AT_HOME

    names = [module for name, (module, _) in COMMANDS.items() if name not in AT_HOME]
    names += [question.module for question in QUESTIONS.values()]
    for name in (*names, "cq.workspace", "cq.indexing.config", "cq.snapshot.snapshot", "cq.snapshot.files",
                 "cq.store.read", "cq.store.overflow", "cq.surfaces.render.answer"):  # fmt: skip
        import_module(name)


def _stamp_code() -> int:
    """Changes when a file of this program does."""
    return hash(tuple(
        (entry.name, entry.stat().st_mtime_ns)
        for folder in _FOLDERS
        for entry in os.scandir(folder)
        if entry.name.endswith((".py", ".scm", ".sql", ".toml"))
    ))  # fmt: skip


_FOLDERS = [_PACKAGE, *(path for path in sorted(_PACKAGE.rglob("*")) if path.is_dir() and path.name != "__pycache__")]


def _measure(pid: int) -> int:
    """Bytes of memory that are a process's own, and those of the language servers that it runs."""
    total = 0
    for each in (pid, *_find_children(pid)):
        with suppress(OSError):
            fields = Path(f"/proc/{each}/statm").read_text().split()
            total += (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")
    return total


def _find_children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _kill(worker: _Worker, number: int) -> None:
    """A worker leads a group: the processes it started hear it as well, as they would on a terminal. Language servers
    lead groups of their own, and go with a worker that is killed."""
    for group in (worker.pid, *(_find_children(worker.pid) if number == signal.SIGKILL else ())):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)


def _close(streams: list[int]) -> None:
    while streams:
        with suppress(OSError):
            os.close(streams.pop())
