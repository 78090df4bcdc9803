"""The MCP server with the official client, over real stdio and HTTP, and what must not be possible."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp_types import ListRootsResult, PromptReference, ResourceTemplateReference, Root

from cq.answers.page import estimate
from cq.model.errors import REGISTRY, CqError
from cq.questions.lsp import ABOUT
from cq.questions.table import QUESTIONS
from cq.surfaces.asked import Asked
from cq.surfaces.mcp import server
from cq.surfaces.mcp.server import make_server
from cq.surfaces.mcp.stdio import greet
from cq.surfaces.mcp.tools import SCHEMA_VERSION, TOOLS, CodebaseContext, describe_tools, find_around, parse_arguments
from cq.surfaces.process import Done
from tests.support.agents import environment, make_repository, serving

pytestmark = pytest.mark.slow

_HELLO = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}'  # noqa: E501
SNAPSHOT = Path(__file__).parent / "mcp_tools.json"
DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo")


def ask(
    root: Path, question: Callable[[Client], Awaitable[None]], *, mode: Any = "legacy", daemon: str = "off",
    **options: Any,
) -> None:  # fmt: skip
    async def run() -> None:
        command = StdioServerParameters(
            command=sys.executable, args=["-m", "cq", "mcp"], env=environment(root, daemon), cwd=str(root)
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
    assert [plane for plane in ABOUT if plane not in " ".join((CodebaseContext.__doc__ or "").split())] == []
    own = {"search", "find", "q", "read", "diagnostics"}
    assert {*find_around(), *own} == QUESTIONS.keys()
    assert estimate(json.dumps(describe_tools(), separators=(",", ":"))) <= 1500


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
        assert "\nsrc/db.py:1:5: def save(row, *, deep=False):\n" in texts[1]
        assert "confidence" not in "".join(texts)
        said = re.search(r"\| ([\d,]+)/8,000 tokens", texts[0])
        assert said
        assert _count_sent(found) <= int(said[1]) < _count_sent(found) + 40
        priorities = [piece.annotations.priority for piece in found.content]
        assert priorities[0] == 1.0
        assert priorities == sorted(priorities, reverse=True)
        calls = await client.call_tool("codebase_context", {"what": "calls", "target": "save", "path": ["src/*.py"]})
        assert calls.content[0].text.startswith('calls: "save" | 1 found')
        source = await client.call_tool("codebase_read", {"target": "db.save"})
        assert "def save(row, *, deep=False):\n    return row[save]" in source.content[1].text
        same = await client.call_tool("codebase_search", {"query": "symbol = save"})
        assert same.content[0].text.startswith('Search: "symbol = save" | 1 result')
        assert "def save(row, *, deep=False):" in same.content[1].text
        idea = await client.call_tool("codebase_search", {"query": "saving a row"})
        assert "answered by find, generation " in idea.content[0].text
        assert any("def save" in piece.text for piece in idea.content[1:])
        around = await client.call_tool("codebase_context", {"target": "save"})
        assert around.content[0].text.startswith('neighborhood: "')
        assert any("## Callers (1" in piece.text for piece in around.content[1:])
        way = await client.call_tool("codebase_context", {"what": "path", "target": "main", "to": "save"})
        assert way.content[0].text.startswith('path: "main → save" | 1 found')
        shaped = await client.call_tool("codebase_query", {"query": "entity=function name=save"})
        assert " | 1 found" in shaped.content[0].text
        broken = {"what": "sig-impact", "target": "save", "to": "save(row)"}
        assert "deep" in (await client.call_tool("codebase_context", broken)).content[1].text
        checked = await client.call_tool("codebase_check", {"path": ["src"]})
        assert checked.content[0].text.startswith("diagnostics: ")
        status = await client.call_tool("index_status", {})
        assert "2 files" in status.content[0].text
        assert all(tool.output_schema is None for tool in listed.values())
        assert all(answer.structured_content is None for answer in (found, calls, source, idea, around, status))

    ask(root, question, mode=mode)


def _count_sent(answer: Any) -> int:
    """Tokens of all that a client gets."""
    sent = answer.model_dump(mode="json", by_alias=True, exclude_none=True)
    return estimate(json.dumps(sent, ensure_ascii=False, separators=(",", ":")))


@pytest.mark.skipif(sys.platform != "linux", reason="the daemon needs Linux")
def test_all_that_is_sent_is_within_the_budget():
    """Every tool and every `what=`, about a repository of some size: this program."""
    base = Path(tempfile.mkdtemp(prefix="cq-test-"))  # a socket's path is short
    root = base / "repo"
    for part in ("surfaces", "model"):
        source = Path(server.__file__).parents[2] / part
        shutil.copytree(source, root / "cq" / part, ignore=shutil.ignore_patterns("__pycache__"))
    environ = environment(root, "manual")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("codebase_search", {"query": "text"}),
        ("codebase_search", {"query": "how is the daemon asked for an answer"}),
        ("codebase_search", {"query": "symbol = ArgumentParser"}),
        ("codebase_search", {"query": "symbol = Daemon"}),
        ("codebase_query", {"query": "entity=function"}),
        ("codebase_query", {"query": "pattern='$F($$$)' lang=python"}),
        ("codebase_read", {"target": "cq/surfaces/daemon.py"}),
        ("codebase_read", {"target": "Daemon"}),
        ("codebase_read", {"target": "cq/surfaces/daemon.py:1-400"}),
        ("codebase_check", {"severity": "hint"}),
        ("codebase_context", {"what": "path", "target": "Daemon.run", "to": "_kill"}),
        ("codebase_context", {"what": "sig-impact", "target": "UsageError", "to": "UsageError(self, a, b, c)"}),
        ("index_status", {}),
    ]
    calls += [
        (
            "codebase_context",
            {"what": "lsp", "target": {"all": ".", "file": "cq/surfaces/daemon.py"}.get(about, "Daemon"), "to": plane},
        )
        for plane, (_, about) in ABOUT.items()
    ]
    suggested = {"architecture": {"options": {"suggest": True}}}  # there are no rules here
    everything = ("architecture", "imports", "map", "projects", "rank", "side-effects")
    calls += [
        ("codebase_context", {"what": what, "target": target})
        for what in find_around()
        if what not in ("path", "sig-impact", "lsp", "report", "run", *everything)
        if what not in ("diff", "log")  # of a history, which is not here
        for target in ("UsageError", "Daemon")
    ]
    calls += [("codebase_context", {"what": what, "target": ".", **suggested.get(what, {})}) for what in everything]
    plan = {"steps": [{"type": "calls", "target": "Daemon"}]}
    calls += [
        ("codebase_context", {"what": "report", "target": "class:Daemon", "to": "refactor-impact"}),
        ("codebase_context", {"what": "run", "target": ".", "options": {"plan": plan}}),
    ]

    async def run() -> None:
        command = StdioServerParameters(command=sys.executable, args=["-m", "cq", "mcp"], env=environ, cwd=str(root))
        async with Client(command, mode="legacy") as client:
            for tool, arguments in calls:
                for budget in (200, 700, 2500):
                    given = "budget" in describe[tool] and arguments.get("what") not in ("path", "run", "report")
                    answer = await client.call_tool(tool, arguments | ({"budget": budget} if given else {}))
                    assert not answer.is_error, (arguments, answer.content[0].text)
                    assert _count_sent(answer) <= (budget if given else 8000), (arguments, budget)
                    assert len(answer.content[0].text) > 40

    describe = {tool["name"]: tool["inputSchema"]["properties"] for tool in describe_tools()}
    try:
        subprocess.run([sys.executable, "-m", "cq", "daemon", "start"], cwd=root, env=environ, check=True)
        subprocess.run([sys.executable, "-m", "cq", "index"], cwd=root, env=environ, check=True, capture_output=True)
        anyio.run(run)
    finally:
        subprocess.run([sys.executable, "-m", "cq", "daemon", "stop"], cwd=root, env=environ, check=True)
        shutil.rmtree(base)


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
        ("codebase_search", {"query": "x", "pth": ["a"]}, "unknown argument 'pth' (did you mean 'path'? "),
        ("codebase_search", {"query": "x", "budget": 1}, "budget: "),
        ("codebase_search", {"query": "x", "path": ["a"] * 21}, "path: "),
        ("codebase_search", {"query": "symbol = x", "page": 2}, "takes no page"),
        ("codebase_context", {"target": "x", "what": "sig-impact"}, "what=sig-impact needs `to`: the new signature"),
        ("codebase_context", {"target": "x", "what": "lsp"}, "what=lsp needs `to`: what is asked"),
        ("codebase_search", {"query": "how is it done", "page": 2}, "takes no page"),
        ("codebase_context", {"what": "callers", "target": "x"}, "what: "),
        ("codebase_context", {"target": "x", "path": ["a"]}, "what=neighborhood takes no path"),
        ("codebase_context", {"target": "x", "to": "y"}, "takes no to"),
        ("codebase_context", {"target": "x", "what": "path"}, "needs `to`"),
        ("codebase_context", {"target": "x", "what": "calls", "to": "y"}, "what=calls takes `to`: why"),
        ("index_status", {"x": 1}, "unknown argument 'x'"),
    ],
)
def test_arguments_that_change_nothing_are_refused(tool: str, arguments: dict[str, Any], words: str):
    with pytest.raises(ValueError, match=re.escape(words)):
        parse_arguments(tool, arguments)


@pytest.mark.parametrize(
    ("query", "command"),
    [
        ("how are passwords hashed?", "find"),
        ("password hashing", "find"),
        ("where the CSRF token is checked", "find"),
        ("class QuerySet", "search"),
        ("raise ValueError", "search"),
        ("get_or_create", "search"),
        ("QuerySet.filter", "search"),
        ("save the_row", "search"),
        ("password", "search"),
        ("symbol = A > b", "find"),
    ],
)
def test_what_is_asked_in_words_is_found_by_meaning(query: str, command: str):
    assert parse_arguments("codebase_search", {"query": query}).question == command


def test_no_argument_is_taken_for_an_option():
    for text in ("--all", "-x", "--root=/", "--"):
        assert parse_arguments("codebase_search", {"query": text}).options["text"] == text
        assert parse_arguments("codebase_read", {"target": text}).options["target"] == text
    assert parse_arguments("codebase_search", {"query": "x", "path": ["--all"]}).options["in"] == ["--all"]


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
        for query, words in (
            ("entity=functoin", "INVALID_REQUEST: "),
            ('pattern="(', "INVALID_REQUEST: "),
            ("nmae=x", "did you mean"),
        ):
            answer = await client.call_tool("codebase_query", {"query": query})
            done = subprocess.run(
                [sys.executable, "-m", "cq", "q", query],
                cwd=root,
                env=environment(root),
                capture_output=True,
                check=False,
            )
            assert answer.is_error
            assert words in answer.content[0].text
            _, _, said = done.stderr.decode().strip().split(": ", 2)  # cq: CODE: the rest
            assert answer.content[0].text.partition(": ")[2] == said
        with pytest.raises(MCPError, match="there is no tool"):
            await client.call_tool("codebase_write", {})
        for uri in ("cq://file/../secret", "cq://file//etc/passwd", "cq://symbol/nothing", "file:///etc/passwd"):
            with pytest.raises(MCPError):
                await client.read_resource(uri)

    ask(root, question)


def test_resources_and_prompts(root: Path):
    rows = "".join(f"def many{number:02}():\n    return many()\n" for number in range(60))
    (root / "src/many.py").write_text(f"def many(): ...\n{rows}")

    async def question(client: Client) -> None:
        await client.call_tool("codebase_search", {"query": "save"})
        assert (await client.read_resource("cq://file/src/db.py")).contents[0].text == (root / "src/db.py").read_text()
        assert (await client.read_resource("cq://symbol/main")).contents[0].text.startswith("def main():")
        (artifact, *_) = (await client.list_resources()).resources
        assert json.loads((await client.read_resource(artifact.uri)).contents[0].text)
        await client.call_tool("codebase_context", {"target": "many"})
        (members,) = (r for r in (await client.list_resources()).resources if r.name.startswith("slice_callers"))
        page = json.loads((await client.read_resource(f"{members.uri}/2")).contents[0].text)
        assert len(json.loads((await client.read_resource(members.uri)).contents[0].text)["preview"]) == 60
        assert [node["name"] for node in page["preview"]] == [f"many{number}" for number in range(50, 60)]
        with pytest.raises(MCPError, match="there is no page 3"):
            await client.read_resource(f"{members.uri}/3")
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
        assert "1 found" in (await client.call_tool("codebase_search", {"query": "only_there"})).content[0].text

    ask(root, question, list_roots_callback=roots)


def test_a_symbol_that_is_several_is_not_guessed(root: Path):
    (root / "src" / "other.py").write_text("def save(): ...\n")

    async def question(client: Client) -> None:
        with pytest.raises(MCPError, match="2 definitions bear this name") as error:
            await client.read_resource("cq://symbol/save")
        assert error.value.data["code"] == "AMBIGUOUS"
        assert error.value.data["candidates"] == ["src/db.py:1", "src/other.py:1"]
        (one,) = (await client.read_resource("cq://symbol/src/other.py:save")).contents
        assert one.text == "def save(): ..."

    ask(root, question)


def test_arguments_are_completed(root: Path):
    async def question(client: Client) -> None:
        await client.call_tool("index_status", {})
        prompt = PromptReference(type="ref/prompt", name="explain_symbol")
        for argument, expected in (("symbol", ["save"]), ("change", [])):
            done = await client.complete(prompt, {"name": argument, "value": "sa"})
            assert done.completion.values == expected
        file = ResourceTemplateReference(type="ref/resource", uri="cq://file/{+path}")
        done = await client.complete(file, {"name": "path", "value": "src/d"})
        assert done.completion.values == ["src/db.py"]

    ask(root, question)


def test_what_was_not_done_is_logged_from_the_level_the_client_sets(root: Path):
    heard: list[tuple[str, Any]] = []

    async def hear(message: Any) -> None:
        heard.append((message.level, message.data))

    async def question(client: Client) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for level in ("info", "error"):
                await client.set_logging_level(level)
                await client.call_tool("codebase_context", {"what": "calls", "target": "nowhere"})

    ask(root, question, logging_callback=hear)
    assert [level for level, _ in heard] == ["info", "info"]
    assert heard[0][1] == "the index is being made"
    assert "named 'nowhere'" in heard[1][1]


def test_what_a_changed_list_of_roots_says_is_heard(root: Path, tmp_path: Path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "x.py").write_text("def only_there(): ...\n")
    now = [root]

    async def roots(_: Any) -> ListRootsResult:
        return ListRootsResult(roots=[Root(uri=now[0].as_uri())])

    async def question(client: Client) -> None:
        assert "2 file" in (await client.call_tool("index_status", {})).content[0].text
        now[0] = other
        assert "2 file" in (await client.call_tool("index_status", {})).content[0].text
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            await client.send_roots_list_changed()
        assert "1 file" in (await client.call_tool("index_status", {})).content[0].text

    ask(root, question, list_roots_callback=roots)


def test_one_registry_of_errors():
    # One of the page says what a command said, with its code.
    codes = {kind.code for kind in _find_errors(CqError) if not kind.__name__.startswith("_")}
    assert codes <= set(REGISTRY)
    assert set(REGISTRY) - codes == {"io", "internal", "interrupted"}
    assert set(REGISTRY.values()) <= set(re.findall(r"`([A-Z_]+)`", (DOCS / "mcp.md").read_text()))


def _find_errors(kind: type[CqError]) -> list[type[CqError]]:
    return [found for one in kind.__subclasses__() for found in (one, *_find_errors(one))]


def test_more_calls_than_can_be_answered_are_told_so(root: Path, monkeypatch: pytest.MonkeyPatch):
    async def ask_slowly(*_: Any) -> Done:
        await anyio.sleep(0.5)
        return Done(2, b"", "cq: usage: x")

    answers: list[str] = []

    async def run() -> None:
        async with Client(make_server(str(root)), mode="legacy") as client, anyio.create_task_group() as group:

            async def one() -> None:
                answers.append((await client.call_tool("index_status", {})).content[0].text.partition(":")[0])

            for _ in range(3):
                group.start_soon(one)

    monkeypatch.setattr(server, "ask", ask_slowly)
    monkeypatch.setattr(server, "_MOST_CALLS", 2)
    anyio.run(run)
    assert sorted(answers) == ["BUSY", "INVALID_REQUEST", "INVALID_REQUEST"]


@pytest.mark.skipif(sys.platform != "linux", reason="the daemon needs Linux")
def test_calls_are_answered_by_the_daemon(root: Path):
    """Which `cq mcp` starts; what is cancelled stops there, and the next call is answered."""
    environ = environment(root, "manual")
    short = Path(tempfile.mkdtemp(prefix="cq-test-"))  # a socket's path is
    environ["XDG_RUNTIME_DIR"] = str(short)

    def cq(*words: str) -> bytes:
        command = [sys.executable, "-m", "cq", *words]
        return subprocess.run(command, cwd=root, env=environ, capture_output=True, timeout=60, check=False).stdout

    def served() -> tuple[int, int]:
        status = json.loads(cq("daemon", "status", "--format", "json")) or {"served": -1, "running": 0}
        return status["served"], status["running"]

    for number in range(200):
        (root / f"m{number}.py").write_text("".join(f"value_{at} = save({at})\n" for at in range(300)))

    async def run() -> None:
        command = StdioServerParameters(command=sys.executable, args=["-m", "cq", "mcp"], env=environ, cwd=str(root))
        with anyio.fail_after(90):
            async with Client(command, mode="legacy") as client:
                while served()[0] < 0:
                    await anyio.sleep(0.2)
                with pytest.raises(MCPError):
                    await client.call_tool("codebase_search", {"query": "value"}, read_timeout_seconds=0.3)
                while served()[1]:
                    await anyio.sleep(0.2)
                before = served()[0]
                found = await client.call_tool("codebase_search", {"query": "main"})
                assert not found.is_error, found.content[0].text
                assert "1 found" in found.content[0].text
                answer = await client.call_tool("codebase_search", {"query": "x", "languages": ["pyhton"]})
                assert answer.content[0].text.startswith("INVALID_REQUEST: unknown language 'pyhton'")
                assert served()[0] > before

    try:
        anyio.run(run)
    finally:
        cq("daemon", "stop")
        shutil.rmtree(short)


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


_READ_MAIN = {"name": "codebase_read", "arguments": {"target": "main"}}


def test_a_client_is_greeted_once(root: Path):
    process, greeting = greeted(root)
    assert process.stdin is not None
    assert process.stdout is not None
    assert (greeting["id"], greeting["result"]["protocolVersion"]) == (1, "2025-06-18")
    for message in (
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 8, "method": "ping"},
        {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": _READ_MAIN},
    ):
        process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.close()  # what was asked before is answered all the same
    rest = process.stdout.read().splitlines()
    assert sorted(json.loads(line)["id"] for line in rest) == [8, 9]  # the SDK's own greeting is not heard
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
    async def ask_and_wait(asked: Asked, _: str, told: Any, **__: Any) -> Done:
        if asked.refresh:
            for done in range(9):
                await told("read", done, 9)
                await anyio.sleep(0.02)
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
                assert "the index is being made, read: 8 of 9 files" in answer.content[0].text
                answer = await client.call_tool("codebase_context", {"target": "x"})
                assert "these are calls by name, not yet neighborhood" in answer.content[0].text
                answer = await client.call_tool("codebase_query", {"query": "entity=function"})
                assert answer.content[0].text.startswith("BUSY: the index is being made, read: 8 of 9 files")

    monkeypatch.setattr(server, "ask", ask_and_wait)
    monkeypatch.setattr(server, "_FEW", 5)
    monkeypatch.setattr(server, "_SOON", 0.5)
    monkeypatch.setattr(server, "_AT_ONCE", 0.05)
    anyio.run(run)
    assert heard == [f"read: {done} of 9 files" for done in range(9)]


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
    with serving(root) as number:
        yield number


def test_http_with_several_clients(port: int):
    async def one() -> None:
        async with Client(f"http://127.0.0.1:{port}/mcp") as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == list(TOOLS)
            for _ in range(2):
                assert "4 found" in (await client.call_tool("codebase_search", {"query": "save"})).content[0].text

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
    with serving(root, "--token-file", str(token), host="0.0.0.0") as number:
        assert _post(number, {}) == 401
        assert _post(number, {"Authorization": "Bearer 0123456789abcdeF"}) == 401
        assert _post(number, {"Authorization": "Bearer 0123456789abcdef"}) == 200
        assert _post(number, {"Authorization": "Bearer 0123456789abcdef", "Origin": "http://evil.example"}) == 403
