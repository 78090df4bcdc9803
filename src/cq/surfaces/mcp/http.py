"""The protocol over HTTP; a page in a browser cannot use it: its Host or Origin gives it away, and it has no token."""

from __future__ import annotations

from typing import Any

from mcp.server.transport_security import TransportSecuritySettings

from cq.surfaces.mcp.server import make_server
from cq.surfaces.serving import MOST_BODY, guard, serve


def make_app(root: str, host: str, port: int, token: str) -> Any:
    # The guard has looked at Host and Origin before.
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = make_server(root).streamable_http_app(
        host=host, transport_security=security, max_request_body_size=MOST_BODY, max_sessions=1000
    )
    return guard(app, port, token)


def serve_http(root: str, host: str, port: int, token: str) -> None:
    serve(make_app(root, host, port, token), host, port)
