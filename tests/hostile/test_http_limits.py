"""MCP over HTTP, asked by who is no client of ours: pages of other places, requests that never end, several of what
must be one. Raw sockets, to the loopback alone."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
import uvicorn

from cq.surfaces import serving as bounds
from cq.surfaces.mcp.http import make_app
from cq.surfaces.serving import find_refusal
from tests.support.agents import make_repository, serving

pytestmark = pytest.mark.slow

_BODY = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}'  # noqa: E501
_PORT = 7878


def _head(port: int, *more: str, host: str = "", length: int | None = len(_BODY)) -> bytes:
    lines = ["POST /mcp HTTP/1.1", f"Host: {host or f'127.0.0.1:{port}'}", "Content-Type: application/json",
             "Accept: application/json, text/event-stream", *more]  # fmt: skip
    lines += [] if length is None else [f"Content-Length: {length}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _ask(port: int, sent: bytes) -> int:
    """The status, 0 for a connection that is closed without one."""
    with socket.create_connection(("127.0.0.1", port), 20) as link, suppress(ConnectionError):
        link.sendall(sent)
        said = b""
        while b"\r\n" not in said and (part := link.recv(4096)):
            said += part
        return int(said.split()[1]) if said else 0
    return 0


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with serving(make_repository(tmp_path_factory.mktemp("http") / "repo")) as number:
        yield number


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({}, 200),
        ({"Host": "LOCALHOST:7878"}, 200),
        ({"Host": "[::1]:7878"}, 200),
        ({"Host": "127.0.0.1:9000"}, 200),  # a forwarded port
        ({"Origin": "http://localhost:7878"}, 200),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Origin": "http://localhost:3000"}, 403),  # another program's page
        ({"Origin": "http://LOCALHOST:7878"}, 403),
        ({"Origin": "http://localhost:7878."}, 403),
        ({"Origin": "http://localhost:7878/"}, 403),
        ({"Origin": "http://localhost.:7878"}, 403),
        ({"Origin": "http://localhost:78780"}, 403),
        ({"Origin": "http://localhost:7878.evil.example"}, 403),
        ({"Origin": "http://localhost:7878@evil.example"}, 403),
        ({"Origin": "http://evil.example:7878"}, 403),
        ({"Origin": "https://localhost:7878"}, 403),
        ({"Origin": "http://localhost:7878 http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": ""}, 403),
        ({"Origin": "file://"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),  # an image or a script of a page has no Origin
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Host": ""}, 421),
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example:7878"}, 421),
        ({"Host": "localhost.:7878"}, 421),
        ({"Host": "localhost.evil.example"}, 421),
        ({"Host": "127.0.0.1.nip.io:7878"}, 421),  # a name that an attacker lets lead here
        ({"Host": "localhost:7878@evil.example"}, 421),
        ({"Host": "user@localhost:7878"}, 421),
        ({"Host": "localhost:"}, 421),
        ({"Host": "localhost:0x1ec6"}, 421),
        ({"Host": "0.0.0.0:7878"}, 421),
        ({"Host": "127.1:7878"}, 421),
        ({"Host": "2130706433:7878"}, 421),
        ({"Host": "[::ffff:127.0.0.1]:7878"}, 421),
        ({"Host": "localhost\t:7878"}, 421),
    ],
)
def test_who_is_asked_and_who_asks(more: dict[str, str], status: int):
    given = {"Host": "127.0.0.1:7878"} | more
    headers = [(name.lower().encode(), value.encode()) for name, value in given.items()]
    assert find_refusal(headers, _PORT, "") == (status if status != 200 else 0)
    behind = [*headers, (b"authorization", b"Bearer 0123456789abcdef")]
    assert find_refusal(behind, _PORT, "0123456789abcdef") == (403 if "Origin" in more else 0)
    assert find_refusal(headers, _PORT, "0123456789abcdef") in (401, 403)


@pytest.mark.parametrize("name", ["host", "origin", "authorization", "content-length", "sec-fetch-site"])
def test_several_of_what_must_be_one_are_refused(name: str):
    once = {"host": "localhost:7878", "origin": "http://localhost:7878", "content-length": "3"}
    headers = [(key.encode(), value.encode()) for key, value in once.items()]
    for token in ("", "0123456789abcdef"):
        assert find_refusal([*headers, (name.encode(), b"x"), (name.encode(), b"x")], _PORT, token) == 400


def test_over_the_wire(port: int):
    good = _head(port) + _BODY
    assert _ask(port, good) == 200
    assert _ask(port, _head(port, f"Origin: http://127.0.0.1:{port}") + _BODY) == 200
    for more, status in (
        (("Origin: http://evil.example",), 403),
        ((f"Origin: http://127.0.0.1:{port + 1}",), 403),
        ((f"Origin: http://127.0.0.1:{port}", "Origin: http://evil.example"), 400),
        ((f"Host: 127.0.0.1:{port}",), 400),
        (("Host: evil.example",), 400),
        (("Content-Length: 7",), 400),
        (("Transfer-Encoding: chunked",), 400),
        (("X" * 40_000 + ": y",), 431),
        (("Sec-Fetch-Site: cross-site",), 403),
    ):
        assert _ask(port, _head(port, *more) + _BODY) == status, more
    for host in ("evil.example", f"localhost.:{port}", f"evil.example:{port}", "[::1"):
        assert _ask(port, _head(port, host=host) + _BODY) == 421
    assert _ask(port, _head(port, length=2_000_000) + b"x" * 1_500_000) in (413, 0)
    chunked = _head(port, "Transfer-Encoding: chunked", length=None)
    assert _ask(port, chunked + b"100000\r\n" + b"x" * 0x100000 + b"\r\n1\r\nx\r\n0\r\n\r\n") == 413
    for garbage in (b"\0" * 100, b"GET\r\n\r\n", b"POST /mcp HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"\x16\x03\x01"):
        assert _ask(port, garbage + b"\r\n\r\n") in (0, 400)
    assert _ask(port, good) == 200


@pytest.mark.skipif(sys.platform == "win32", reason="counts descriptors")
@pytest.mark.parametrize("begun", [b"", b"POST /mcp HTTP/1.1\r\nHost: 127", "body"])
def test_half_open_connections_lock_nobody_out(port: int, begun: bytes | str):
    import resource

    most, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2048:
        pytest.skip("too few descriptors on this system")
    resource.setrlimit(resource.RLIMIT_NOFILE, (2048, hard))
    sent = begun if isinstance(begun, bytes) else _head(port) + _BODY[:10]
    try:
        with ExitStack() as stack:
            for at in range(1100):
                link = stack.enter_context(socket.create_connection(("127.0.0.1", port), 20))
                with suppress(ConnectionError):
                    link.sendall(sent)
                if at % 200 == 0:
                    assert _ask(port, _head(port) + _BODY) == 200
            assert _ask(port, _head(port) + _BODY) == 200
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def test_who_does_not_end_a_request_is_hung_up_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Also after an answer, on a connection that stays, and one byte at a time."""
    for name in ("_HEAD_SECONDS", "_BODY_SECONDS"):
        monkeypatch.setattr(bounds, name, 0.3)
    app = make_app(str(make_repository(tmp_path / "repo")), "127.0.0.1", _PORT, "")
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error", http=bounds._Connection, ws="none")
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        for begun in (b"", b"POST /mcp HT", _head(port)[:-2]):
            assert _ask(port, begun) == 0
        assert _ask(port, _head(port) + _BODY[:20]) == 408
        assert _ask(port, _head(port, "Transfer-Encoding: chunked", length=None) + b"5\r\nab") == 408
        with socket.create_connection(("127.0.0.1", port), 20) as link:
            link.sendall(_head(port) + _BODY)
            assert b" 200 " in link.recv(1 << 16)
            with suppress(ConnectionError):
                while link.recv(1 << 16):  # the rest, and then the end
                    link.sendall(b"P")
    finally:
        server.should_exit = True
        thread.join(20)
        listener.close()
