"""The protocol over standard input and output. Greets the client at once and imports the SDK behind the greeting:
hosts start every server they know and wait for each."""

from __future__ import annotations

import json
import os
import select
from collections.abc import AsyncIterator
from typing import Any

from cq import __version__
from cq.surfaces.mcp.tools import INSTRUCTIONS

_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
_MOST = 4 * 1024 * 1024  # bytes of a first message
CAPABILITIES: dict[str, Any] = {
    "completions": {},
    "logging": {},
    "prompts": {"listChanged": False},
    "resources": {"subscribe": False, "listChanged": False},
    "tools": {"listChanged": False},
}


def serve_stdio(root: str) -> None:
    """Until the client closes its end. Nothing but the protocol is written to standard output."""
    wire_in, wire_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)  # what a library prints goes astray harmlessly
    first = _read_line(wire_in)
    if not first:
        return
    greeting = greet(first)
    if greeting is not None:
        os.write(wire_out, json.dumps(greeting, separators=(",", ":")).encode() + b"\n")

    import anyio
    from mcp.server.stdio import stdio_server

    from cq.surfaces.mcp.server import make_server

    server = make_server(root)

    async def run() -> None:
        with os.fdopen(wire_in, encoding="utf-8", errors="replace") as source, os.fdopen(wire_out, "wb") as sink:
            open_requests = _Requests(wire_out)
            wire = _Wire(anyio.wrap_file(sink), None if greeting is None else greeting["id"], open_requests)
            lines = _Lines(first, anyio.wrap_file(source), open_requests, wire)
            async with stdio_server(lines, wire) as (read, write):  # pyright: ignore
                await server.run(read, write, server.create_initialization_options())

    anyio.run(run)


def greet(line: bytes) -> dict[str, Any] | None:
    """The answer to `initialize`, as the SDK gives it; None for anything else."""
    try:
        request = json.loads(line)
        number = request["id"]
        version = request["params"]["protocolVersion"]
        if request["method"] != "initialize" or request["jsonrpc"] != "2.0" or not isinstance(version, str):
            return None
        if not isinstance(request["params"]["capabilities"], dict) or not request["params"]["clientInfo"]["name"]:
            return None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not _is_number(number):
        return None
    result = {
        "protocolVersion": version if version in _VERSIONS else _VERSIONS[-1],
        "capabilities": CAPABILITIES,
        "serverInfo": {"name": "cq", "version": __version__},
        "instructions": INSTRUCTIONS,
    }
    return {"jsonrpc": "2.0", "id": number, "result": result}


def _read_line(source: int) -> bytes:
    """Byte by byte: what follows it is not ours."""
    line = bytearray()
    while not line.endswith(b"\n") and len(line) < _MOST:
        byte = os.read(source, 1)
        if not byte:
            break
        line += byte
    return bytes(line)


class _Requests:
    """What the client asked and has no answer to yet. The SDK drops those when the client closes its end, which a
    script that pipes its requests in does at once."""

    def __init__(self, wire_out: int) -> None:
        self._wire_out = wire_out
        self._ids: set[str] = set()

    def note(self, message: dict[str, Any]) -> None:
        if "method" in message and "id" in message:
            self._ids.add(repr(message["id"]))
        elif message.get("method") == "notifications/cancelled" and isinstance(message.get("params"), dict):
            self._ids.discard(repr(message["params"].get("requestId")))

    def settle(self, answer: dict[str, Any]) -> None:
        if "method" not in answer:
            self._ids.discard(repr(answer.get("id")))

    async def wait(self) -> None:
        """Until all are answered, or nobody is left to read the answers."""
        import anyio

        reader = select.poll() if hasattr(select, "poll") else None  # which Windows has not
        if reader is not None:
            reader.register(self._wire_out, 0)
        while self._ids and not (reader is not None and reader.poll(0)):
            await anyio.sleep(0.02)


class _Lines:
    """The first line again, then the others; they end when all is answered. The SDK says nothing to a line that is no
    message, and its sender would wait for good: such a line is answered here and does not reach the SDK."""

    def __init__(self, first: bytes, rest: Any, requests: _Requests, wire: _Wire) -> None:
        self._first = first
        self._rest = rest
        self._requests = requests
        self._wire = wire

    async def __aiter__(self) -> AsyncIterator[str]:
        first = self._first.decode("utf-8", "replace")
        if await self._is_message(first):
            yield first
        async for line in self._rest:
            if await self._is_message(line):
                yield line
        await self._requests.wait()

    async def _is_message(self, line: str) -> bool:
        message, refusal = _parse(line), _find_refusal(line)
        if refusal is None:
            self._requests.note(message)
        elif line.strip() and not {"result", "error"} & message.keys():  # what answers us is not answered
            number = message.get("id")
            error = {"code": refusal[0], "message": refusal[1]}
            said = {"jsonrpc": "2.0", "id": number if _is_number(number) else None, "error": error}
            await self._wire.write(json.dumps(said, separators=(",", ":")) + "\n")
            await self._wire.flush()
        return refusal is None


def _find_refusal(line: str) -> tuple[int, str] | None:
    """The code of JSON-RPC and a sentence, for what the SDK does not take for a message."""
    from mcp_types import jsonrpc_message_adapter
    from pydantic import ValidationError

    try:
        jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        if first["type"] == "json_invalid":
            return -32700, first["msg"]
        return -32600, "this is no message of JSON-RPC 2.0"
    message = _parse(line)
    if "method" in message and "id" in message and not _is_number(message["id"]):
        return -32600, "the id of a request is a string or a whole number"
    return None


def _is_number(value: object) -> bool:
    """What may number a request: the SDK takes one with any other id for no request."""
    return isinstance(value, (int, str)) and not isinstance(value, bool)


class _Wire:
    """What the SDK writes, without its own answer to what was answered already."""

    def __init__(self, sink: Any, greeted: object, requests: _Requests) -> None:
        self._sink = sink
        self._greeted = greeted
        self._requests = requests

    async def write(self, text: str) -> None:
        said = _parse(text)
        self._requests.settle(said)
        if self._greeted is not None and said.get("id") == self._greeted and "method" not in said:
            self._greeted = None
            return
        await self._sink.write(text.encode("utf-8", "replace"))

    async def flush(self) -> None:
        await self._sink.flush()


def _parse(line: str) -> dict[str, Any]:
    """A message; nothing where it is none, which is for the SDK to say."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}
