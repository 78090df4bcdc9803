"""The protocol over HTTP: on the loopback for this user's own programs, elsewhere only with a token."""

from __future__ import annotations

import hmac
from typing import Any

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from cq.surfaces.mcp.server import make_server

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_MOST = 1024 * 1024  # bytes of a request


def make_app(root: str, host: str, token: str) -> Any:
    """A page in a browser cannot use it: its Host or Origin gives it away, and it has no token."""
    names = [f"{name}:*" for name in ("127.0.0.1", "localhost", "[::1]", *([] if host in LOOPBACK else [host]))]
    security = TransportSecuritySettings(
        # Behind the token the name of the host does not matter: `0.0.0.0` has many.
        enable_dns_rebinding_protection=not token,
        allowed_hosts=names,
        allowed_origins=[f"http://{name}" for name in names],
    )
    app = make_server(root).streamable_http_app(
        host=host, transport_security=security, max_request_body_size=_MOST, max_sessions=1000
    )
    return _with_token(app, token) if token else app


def serve_http(root: str, host: str, port: int, token: str) -> None:
    uvicorn.Server(uvicorn.Config(make_app(root, host, token), host=host, port=port, log_level="warning")).run()


def _with_token(app: Any, token: str) -> Any:
    wanted = f"Bearer {token}".encode()

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = dict(scope["headers"])
            if b"origin" in headers or not hmac.compare_digest(headers.get(b"authorization", b""), wanted):
                status = 403 if b"origin" in headers else 401
                reply = [(b"www-authenticate", b"Bearer"), (b"content-length", b"0")]
                await send({"type": "http.response.start", "status": status, "headers": reply})
                await send({"type": "http.response.body", "body": b""})
                return
        await app(scope, receive, send)

    return guarded
