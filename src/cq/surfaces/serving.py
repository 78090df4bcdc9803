"""What serves HTTP: who is answered, and who is hung up on. On the loopback programs and browsers of this machine are,
elsewhere only who bears a token. Everything a client sends is bounded in size and in time."""

from __future__ import annotations

import hmac
import re
import signal
import socket
from asyncio import BaseTransport, TimerHandle
from types import FrameType
from typing import Any

import anyio
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

LOOPBACK = ("127.0.0.1", "localhost", "::1")
MOST_CONNECTIONS = 256
MOST_BODY, _MOST_HEAD = 1024 * 1024, 16 * 1024  # bytes of a request
_HEAD_SECONDS, _BODY_SECONDS, _WRITE_SECONDS, _IDLE_SECONDS = 10.0, 30.0, 60.0, 5
_GRACE_SECONDS = 2  # for streams that are open when the server is told to end

# What says who is asked and who asks: several are a program that hopes another one is looked at.
_ONCE = (b"host", b"origin", b"authorization", b"content-length", b"transfer-encoding", b"sec-fetch-site",
         b"content-type", b"mcp-session-id")  # fmt: skip
_HOST = re.compile(rb"(?P<name>localhost|127\.0\.0\.1|\[::1\])(?::[1-9][0-9]{0,4})?", re.IGNORECASE)

Header = tuple[bytes, bytes]


def serve(
    app: Any, host: str, port: int, *, listener: socket.socket | None = None, grace: int = _GRACE_SECONDS
) -> None:
    """Until it is told to end; on a socket that listens already, where one is given."""
    config = uvicorn.Config(
        app, host=host, port=port, log_level="warning", http=_Connection, ws="none",
        timeout_keep_alive=_IDLE_SECONDS, timeout_graceful_shutdown=grace,
        h11_max_incomplete_event_size=_MOST_HEAD,
    )  # fmt: skip
    _Server(config).run(None if listener is None else [listener])


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._deaf = signal.getsignal(signal.SIGINT) == signal.SIG_IGN

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """What is ignored where the server was started stays so."""
        if sig != signal.SIGINT or not self._deaf:
            super().handle_exit(sig, frame)


def find_refusal(headers: list[Header], port: int, token: str) -> int:
    """The status of a request that is not answered, 0 for one that is. Browsers send Origin and Sec-Fetch-Site, and
    cannot be made to send another Host than the name that they looked up."""
    names = [name for name, _ in headers]
    given = dict(headers)
    if any(names.count(name) > 1 for name in _ONCE) or {b"content-length", b"transfer-encoding"} <= given.keys():
        return 400
    if sum(len(name) + len(value) for name, value in headers) > _MOST_HEAD:
        return 431
    origin = given.get(b"origin")
    if token:
        wanted = f"Bearer {token}".encode()
        known = hmac.compare_digest(given.get(b"authorization", b""), wanted)
        return 403 if origin is not None else 0 if known else 401
    # Another port is one that was forwarded: what counts is that the name is never looked up.
    if not _HOST.fullmatch(given.get(b"host", b"")):
        return 421
    own = [f"http://{name}:{port}".encode() for name in ("127.0.0.1", "localhost", "[::1]")]
    foreign = origin is not None and origin not in own
    return 403 if foreign or given.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin") else 0


def guard(app: Any, port: int, token: str) -> Any:
    """The app, for requests that may be asked and that arrive in full and in time."""

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        status, body = find_refusal(scope["headers"], port, token), b""
        if not status:
            status, body = await _read_body(receive)
        if status:
            await refuse(send, status)
            return
        first = [{"type": "http.request", "body": body, "more_body": False}]

        async def hear() -> Any:
            return first.pop() if first else await receive()

        async def say(message: Any) -> None:
            with anyio.fail_after(_WRITE_SECONDS):  # a client that does not read
                await send(message)

        await app(scope, hear, say)

    return guarded


async def _read_body(receive: Any) -> tuple[int, bytes]:
    """(0, the body), or the status of a request whose body is not taken."""
    body = b""
    with anyio.move_on_after(_BODY_SECONDS):
        while len(body) <= MOST_BODY:
            message = await receive()
            body += message.get("body", b"")
            if message["type"] != "http.request" or not message.get("more_body", False):
                return (413, b"") if len(body) > MOST_BODY else (0, body)
        return 413, b""
    return 408, b""


async def refuse(send: Any, status: int) -> None:
    reply = [(b"content-length", b"0"), (b"connection", b"close")]
    reply += [(b"www-authenticate", b"Bearer")] if status == 401 else []
    await send({"type": "http.response.start", "status": status, "headers": reply})
    await send({"type": "http.response.body", "body": b""})


class _Connection(H11Protocol):
    """Who has begun a request and does not end it is hung up on: in time, and where connections run short the longest
    of them at once, so that nobody can lock the others out by doing nothing."""

    _since = 0.0
    _timer: TimerHandle | None = None

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)  # pyright: ignore[reportArgumentType]
        self._watch()
        if len(self.connections) > MOST_CONNECTIONS:
            asking = [one for one in self.connections if isinstance(one, _Connection) and not one._is_answered()]
            min(asking, key=lambda one: one._since).transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_watching()

    def _watch(self) -> None:
        """Between requests, until the next one's head is there."""
        if self.cycle and not self.cycle.response_complete:
            self._stop_watching()
        elif self._timer is None:
            self._since = self.loop.time()
            self._timer = self.loop.call_later(_HEAD_SECONDS, self.transport.abort)

    def _is_answered(self) -> bool:
        """Whether a request is there in full, and its answer not yet."""
        return bool(self.cycle) and not self.cycle.response_complete and not self.cycle.more_body

    def _stop_watching(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
