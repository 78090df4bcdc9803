"""The MCP server with the official client, over real stdio and HTTP, and what must not be possible."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args, get_type_hints

import anyio
import pytest
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp_types import ListRootsResult, Root

from cq.surfaces.cli import COMMANDS
from cq.surfaces.mcp import server
from cq.surfaces.mcp.content import count_tokens
from cq.surfaces.mcp.process import Done
from cq.surfaces.mcp.server import make_server
from cq.surfaces.mcp.stdio import greet
from cq.surfaces.mcp.tools import SCHEMA_VERSION, TOOLS, CodebaseContext, describe_tools, parse_arguments

_HELLO = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}'  # noqa: E501
SNAPSHOT = Path(__file__).parent / "mcp_tools.json"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    (root / "src").mkdir(parents=True)
    (root / "src" / "db.py").write_text("def save(row, *, deep=False):\n    return row[save]\n")
    (root / "src" / "app.py").write_text("from db import save\n\n\ndef main():\n    save(1, deep=True)\n")
    return root


def environment(root: Path) -> dict[str, str]:
    """Of its own, without a daemon."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("CQ_")}
    config = root.parent / "config"
    (config / "cq").mkdir(parents=True, exist_ok=True)
    (config / "cq" / "settings.toml").write_text('daemon = "off"\n')
    return clean | {"XDG_CACHE_HOME": str(root.parent / "cache"), "XDG_CONFIG_HOME": str(config)}


def ask(root: Path, question: Callable[[Client], Awaitable[None]], *, mode: Any = "legacy", **options: Any) -> None:
    async def run() -> None:
        command = StdioServerParameters(
            command=sys.executable, args=["-m", "cq", "mcp"], env=environment(root), cwd=str(root)
        )
        with anyio.fail_after(60):
            async with Client(command, mode=mode, **options) as client:
                await question(client)

    anyio.run(run)


def test_the_tools_are_the_ones_published():
    """A change of the tools is a change for every client: raise SCHEMA_VERSION, then write the copy anew."""
    now = {"schema_version": SCHEMA_VERSION, "tools": describe_tools()}
    assert json.loads(SNAPSHOT.read_text()) == now
    assert len(TOOLS) <= 6
    assert set(get_args(get_type_hints(CodebaseContext)["what"])) <= set(COMMANDS)
    assert count_tokens(json.dumps(describe_tools(), separators=(",", ":"))) <= 1500


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_every_tool_over_stdio(root: Path, mode: str):
    async def question(client: Client) -> None:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert list(listed) == list(TOOLS)
        assert all(tool.annotations and tool.annotations.read_only_hint for tool in listed.values())
        found = await client.call_tool("codebase_search", {"query": "save"})
        assert not found.is_error
        texts = [piece.text for piece in found.content]
        assert texts[0].startswith('search: "save" | 4 found, 2 files shown | ')
        assert {text.splitlines()[0] for text in texts[1:]} == {"// src/db.py", "// src/app.py"}
        assert f"| {sum(map(count_tokens, texts)):,}/8,000 tokens" in texts[0]
        priorities = [piece.annotations.priority for piece in found.content]
        assert priorities[0] == 1.0
        assert priorities == sorted(priorities, reverse=True)
        assert (found.structured_content["command"], found.structured_content["found"]) == ("search", 4)
        calls = await client.call_tool("codebase_context", {"what": "calls", "target": "save", "path": ["src/*.py"]})
        assert calls.structured_content["summary"]["call_sites"] == 1
        source = await client.call_tool("codebase_read", {"target": "db.save"})
        assert "def save(row, *, deep=False):\n    return row[save]" in source.content[1].text
        same = await client.call_tool("codebase_search", {"query": "symbol = save"})
        assert same.structured_content["command"] == "read"
        status = await client.call_tool("index_status", {})
        assert status.structured_content["files"] == 2

    ask(root, question, mode=mode)


def test_nothing_found_is_an_answer(root: Path):
    async def question(client: Client) -> None:
        answer = await client.call_tool("codebase_search", {"query": "svae"})
        assert not answer.is_error
        assert "near names: save" in answer.content[0].text

    ask(root, question)


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("codebase_search", {}, "missing required field `query`"),
        ("codebase_search", {"query": ""}, "query: "),
        ("codebase_search", {"query": 7}, "query: Expected `str`"),
        ("codebase_search", {"query": "x", "pth": ["a"]}, "unknown argument 'pth' (did you mean 'path'?)"),
        ("codebase_search", {"query": "x", "budget": 1}, "budget: "),
        ("codebase_search", {"query": "x", "path": ["a"] * 21}, "path: "),
        ("codebase_search", {"query": "symbol = x", "page": 2}, "takes no page"),
        ("codebase_context", {"what": "callers", "target": "x"}, "what: "),
        ("index_status", {"x": 1}, "unknown argument 'x'"),
    ],
)
def test_arguments_that_change_nothing_are_refused(tool: str, arguments: dict[str, Any], words: str):
    with pytest.raises(ValueError, match=re.escape(words)):
        parse_arguments(tool, arguments)


def test_no_argument_is_taken_for_an_option():
    for text in ("--all", "-x", "--root=/", "--"):
        assert parse_arguments("codebase_search", {"query": text})[-2:] == ["--", text]
        assert parse_arguments("codebase_read", {"target": text})[-2:] == ["--", text]
    assert parse_arguments("codebase_search", {"query": "x", "path": ["--all"]})[1] == "--in=--all"


def test_errors_bear_codes(root: Path):
    async def question(client: Client) -> None:
        for arguments, code in (
            ({"query": "x", "languages": ["pyhton"]}, "INVALID_REQUEST: unknown language 'pyhton' (did you mean"),
            ({"query": "--nothing-of-this-kind"}, ""),
            ({"query": "x", "path": ["../.."]}, "INVALID_REQUEST: --in ../.. lies outside the root"),
        ):
            answer = await client.call_tool("codebase_search", arguments)
            assert answer.is_error == bool(code)
            assert answer.content[0].text.startswith(code)
        with pytest.raises(MCPError, match="there is no tool"):
            await client.call_tool("codebase_write", {})
        for uri in ("cq://file/../secret", "cq://file//etc/passwd", "cq://symbol/nothing", "file:///etc/passwd"):
            with pytest.raises(MCPError):
                await client.read_resource(uri)

    ask(root, question)


def test_resources_and_prompts(root: Path):
    async def question(client: Client) -> None:
        await client.call_tool("codebase_search", {"query": "save"})
        assert (await client.read_resource("cq://file/src/db.py")).contents[0].text == (root / "src/db.py").read_text()
        assert (await client.read_resource("cq://symbol/main")).contents[0].text.startswith("def main():")
        (artifact, *_) = (await client.list_resources()).resources
        assert json.loads((await client.read_resource(artifact.uri)).contents[0].text)
        for prompt in (await client.list_prompts()).prompts:
            given = {argument.name: "{symbol} main" for argument in prompt.arguments or ()}
            text = (await client.get_prompt(prompt.name, given)).messages[0].content.text
            assert all(value in text for value in given.values())
        with pytest.raises(MCPError, match="takes symbol"):
            await client.get_prompt("explain_symbol", {})

    ask(root, question)


def test_the_client_s_root_is_asked_about(root: Path, tmp_path: Path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "x.py").write_text("def only_there(): ...\n")

    async def roots(_: Any) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri="file:///nowhere"), Root(uri=other.as_uri())])

    async def question(client: Client) -> None:
        assert (await client.call_tool("codebase_search", {"query": "only_there"})).structured_content["found"] == 1

    ask(root, question, list_roots_callback=roots)


def test_the_greeting_is_the_sdk_s_own():
    async def run() -> None:
        async with Client(make_server(""), mode="legacy") as client:
            line = json.loads(_HELLO)
            line["params"]["protocolVersion"] = client.protocol_version
            ours = greet(json.dumps(line).encode())
            assert ours is not None
            assert ours["result"]["protocolVersion"] == client.protocol_version
            theirs = client.server_capabilities.model_dump(by_alias=True, exclude_none=True)
            assert ours["result"]["capabilities"] == theirs
            assert ours["result"]["serverInfo"] == client.server_info.model_dump(by_alias=True, exclude_none=True)
            assert ours["result"]["instructions"] == client.instructions

    anyio.run(run)
    for line in (b"{}", b"x", b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}', b"[]", b"null"):
        assert greet(line) is None


def greeted(root: Path, **more: str) -> tuple[subprocess.Popen[bytes], dict[str, Any]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "cq", "mcp"], cwd=root, env=environment(root) | more,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(_HELLO + b"\n")
    process.stdin.flush()
    return process, json.loads(process.stdout.readline())


def test_the_greeting_does_not_wait_for_the_sdk(root: Path, tmp_path: Path):
    (tmp_path / "slow" / "mcp").mkdir(parents=True)
    (tmp_path / "slow" / "mcp" / "__init__.py").write_text("import time\ntime.sleep(600)\n")
    process, greeting = greeted(root, PYTHONPATH=str(tmp_path / "slow"))
    with process:
        assert "result" in greeting
        process.kill()


def test_a_client_is_greeted_once(root: Path):
    process, greeting = greeted(root)
    assert process.stdin is not None
    assert process.stdout is not None
    assert (greeting["id"], greeting["result"]["protocolVersion"]) == (1, "2025-06-18")
    for message in (
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 8, "method": "ping"},
    ):
        process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.close()
    rest = process.stdout.read().splitlines()
    assert [json.loads(line)["id"] for line in rest] == [8]  # the SDK's own greeting is not heard
    assert process.wait(30) == 0
    process.stdout.close()
    assert process.stderr is not None
    process.stderr.close()


def test_cancelling_leaves_no_process(root: Path):
    for number in range(300):
        (root / f"m{number}.py").write_text("".join(f"value_{at} = save({at})\n" for at in range(400)))

    async def question(client: Client) -> None:
        with pytest.raises(MCPError):
            await client.call_tool("codebase_search", {"query": "value"}, read_timeout_seconds=1.0)
        await anyio.sleep(0.5)
        with anyio.fail_after(20):
            while _count_processes(root):
                await anyio.sleep(0.2)
        assert not (await client.call_tool("codebase_search", {"query": "main"})).is_error

    ask(root, question)


def test_while_the_first_index_is_made_the_answer_comes_soon(root: Path, monkeypatch: pytest.MonkeyPatch):
    async def run_command(argv: list[str], _: str, told: Any) -> Done:
        if "--no-refresh" not in argv:
            await told(1, 9, "read: 1 of 9 files")
            await anyio.sleep(3600)
        event = {"stage": "scan", "severity": "warning", "category": "no_index", "message": "from disk"}
        answer = {"schema_version": 1, "command": "search", "run": {}, "summary": {"query": "x"}, "degraded": [event]}
        return Done(1, json.dumps(answer).encode(), "")

    heard: list[str] = []

    async def hear(_: float, __: float | None, message: str | None) -> None:
        heard.append(message or "")

    async def run() -> None:
        with anyio.fail_after(30):
            async with Client(make_server(str(root)), mode="legacy") as client:
                answer = await client.call_tool("codebase_search", {"query": "x"}, progress_callback=hear)
                assert "no index yet" in answer.content[0].text
                assert "from disk" in answer.content[0].text

    monkeypatch.setattr(server, "run_command", run_command)
    monkeypatch.setattr(server, "_SOON", 0.1)
    anyio.run(run)
    assert heard == ["read: 1 of 9 files"]


def _count_processes(root: Path) -> int:
    """Of commands that work on this root."""
    count = 0
    for folder in Path("/proc").iterdir():
        with suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0") if folder.name.isdecimal() else []
            if b"search" in words and (folder / "cwd").readlink() == root:
                count += 1
    return count


@pytest.fixture
def port(root: Path) -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "cq", "mcp", "--http", f"127.0.0.1:{number}"], cwd=root, env=environment(root)
    )
    _await_port(number)
    yield number
    process.terminate()
    process.wait(20)


def _await_port(number: int) -> None:
    for _ in range(300):
        with suppress(OSError), socket.create_connection(("127.0.0.1", number), 1):
            return
        time.sleep(0.1)
    pytest.fail("the server does not listen")


def test_http_with_several_clients(port: int):
    async def one() -> None:
        async with Client(f"http://127.0.0.1:{port}/mcp") as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == list(TOOLS)
            for _ in range(2):
                assert (await client.call_tool("codebase_search", {"query": "save"})).structured_content["found"] == 4

    async def run() -> None:
        with anyio.fail_after(90):
            async with anyio.create_task_group() as group:
                for _ in range(4):
                    group.start_soon(one)

    anyio.run(run)


def _post(port: int, headers: dict[str, str], body: bytes = _HELLO) -> int:
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    link.request("POST", "/mcp", body, accept | headers)
    status = link.getresponse().status
    link.close()
    return status


def test_a_page_cannot_ask(port: int):
    own = {"Host": f"127.0.0.1:{port}"}
    assert _post(port, own) == 200
    assert _post(port, own | {"Origin": "http://evil.example"}) == 403
    assert _post(port, own | {"Origin": "null"}) == 403
    assert _post(port, {"Host": "evil.example"}) == 421
    assert _post(port, {"Host": f"evil.example:{port}"}) == 421
    assert _post(port, own, b"x" * 2_000_000) == 413


def test_off_loopback_needs_a_token(root: Path, tmp_path: Path):
    def cq(*arguments: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "cq", "mcp", *arguments], cwd=root, env=environment(root), capture_output=True,
            timeout=30, check=False,
        )  # fmt: skip

    refused = cq("--http", "0.0.0.0:7878")
    assert (refused.returncode, b"give --token-file" in refused.stderr) == (2, True)
    short = tmp_path / "short"
    short.write_text("x")
    assert b"holds no token" in cq("--http", "127.0.0.1:7878", "--token-file", str(short)).stderr
    assert b"means nothing without --http" in cq("--token-file", str(short)).stderr
    assert b"is no HOST:PORT" in cq("--http", "7878").stderr
    token = tmp_path / "token"
    token.write_text("0123456789abcdef\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "cq", "mcp", "--http", f"0.0.0.0:{number}", "--token-file", str(token)],
        cwd=root, env=environment(root),
    )  # fmt: skip
    try:
        _await_port(number)
        assert _post(number, {}) == 401
        assert _post(number, {"Authorization": "Bearer 0123456789abcdeF"}) == 401
        assert _post(number, {"Authorization": "Bearer 0123456789abcdef"}) == 200
        assert _post(number, {"Authorization": "Bearer 0123456789abcdef", "Origin": "http://evil.example"}) == 403
    finally:
        process.terminate()
        process.wait(20)
