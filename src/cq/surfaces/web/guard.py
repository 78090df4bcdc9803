"""Who may see a page: a browser on this machine that has opened the address which the terminal showed. Nothing that a
page holds can run, load or be shown elsewhere."""

from __future__ import annotations

import hmac
import secrets
from http.cookies import CookieError, SimpleCookie
from typing import Any

from cq.surfaces.serving import find_refusal, refuse

# Files of our own alone; nothing inline, nothing evaluated, no frame, no plugin, no form that leads elsewhere.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
OPEN = "/open"
_MOST_ADDRESS = 32 * 1024


class Keys:
    """A token is good for one browser; whoever has used one has a cookie, which bears the name of this server: browsers
    send cookies to every port of a host."""

    def __init__(self) -> None:
        self.name = f"cq-{secrets.token_hex(8)}"
        self._value = secrets.token_urlsafe(32)
        self.token = secrets.token_urlsafe(32)

    def take(self, token: str) -> bool:
        """Whether it is the token that nobody has used yet; the next one is another."""
        known = hmac.compare_digest(token.encode(), self.token.encode())
        if known:
            self.token = secrets.token_urlsafe(32)
        return known

    @property
    def cookie(self) -> str:
        return f"{self.name}={self._value}; HttpOnly; SameSite=Strict; Path=/"

    def is_held(self, header: str) -> bool:
        try:
            found = SimpleCookie(header).get(self.name)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(found.value.encode(), self._value.encode())


def guard_pages(app: Any, keys: Keys, port: int) -> Any:
    """The app, for requests that it may answer, with the headers that every answer has."""

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return

        async def say(message: Any) -> None:
            if message["type"] == "http.response.start":
                names = {name for name, _ in HEADERS}
                kept = [pair for pair in message["headers"] if pair[0].lower() not in names]
                message = {**message, "headers": [*kept, *HEADERS]}
            await send(message)

        headers: list[tuple[bytes, bytes]] = scope["headers"]
        status = find_refusal(headers, port, "")
        if not status and scope["method"] not in ("GET", "HEAD"):
            status = 405
        if not status and len(scope["raw_path"]) + len(scope["query_string"]) > _MOST_ADDRESS:
            status = 414
        if status:
            await refuse(say, status)
            return
        cookies = [value.decode("latin-1") for name, value in headers if name == b"cookie"]
        scope["cq_known"] = any(map(keys.is_held, cookies))
        await app(scope, receive, say)

    return guarded
