"""An agent's arguments: whatever they say, the MCP server answers about the root it was started for, with the
options it chose itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp_types import PromptReference, ResourceTemplateReference

from cq.answers.options import find_written
from cq.model.errors import CqError
from cq.questions.table import QUESTIONS
from cq.surfaces.asked import Asked, read_options
from cq.surfaces.mcp.tools import TOOLS, parse_arguments
from tests.support.agents import environment, make_repository

pytestmark = pytest.mark.slow

SECRET = "the_secret_of_elsewhere"

# Words that are more than a value wherever they are heeded.
WORDS = [
    "s.py\0--root=/elsewhere\0secret", "LD_PRELOAD=/repo/evil.so", "\0LD_PRELOAD=/repo/evil.so", "--root=/", "--root",
    "--index-dir=/tmp", "--", "-", "-x", "--all", "--format=plain", "--lsp", "--trust", "@/etc/passwd", "..", "../..",
    "../secret.py", "/etc/passwd", "/", "~", "a,b", "a\n--root=/", "*", "**", "src/../../secret.py", "%2e%2e/secret.py",
    "link/secret.py", "file.py:1-9", "../secret.py:1", "--lang=--root=/", "in=..", "in=../", "\x1b[31m", "\ud800", "",
]  # fmt: skip

_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
_text = st.sampled_from(WORDS) | st.text(min_size=1, max_size=40)
_texts = st.lists(_text, max_size=4)
_options = st.dictionaries(
    st.sampled_from(["depth", "lsp", "trust", "root", "index_dir", "format", "place", "changed", "all", "edges"])
    | st.text(max_size=5),
    _values,
    max_size=3,
)
_arguments = st.one_of(
    st.dictionaries(st.sampled_from(["query", "target", "path", "languages", "to", "what", "budget", "root"]), _values),
    st.fixed_dictionaries({"query": _text}, optional={"path": _texts, "languages": _texts, "page": st.integers(1, 9)}),
    st.fixed_dictionaries(
        {"target": _text, "what": st.sampled_from(["calls", "references", "impact", "graph", "types", "path"])},
        optional={"to": _text, "path": _texts, "languages": _texts, "options": _options},
    ),
    st.fixed_dictionaries({"target": _text}),
    st.fixed_dictionaries({"path": _texts}, optional={"severity": st.sampled_from(["error", "hint"])}),
)


@pytest.mark.parametrize("tool", TOOLS)
@given(arguments=_arguments)
def test_no_argument_becomes_an_option(tool: str, arguments: dict[str, Any]):
    try:
        asked = parse_arguments(tool, arguments)
    except ValueError:
        return
    # The root, the format and how fresh the answer is are the server's to say.
    assert msgspec.structs.replace(asked, question="", options={}) == Asked("")
    said = {str(value) for value in _flatten(arguments)}
    usual = {"budget", "page", "severity", "why", "count"}
    for key, value in asked.options.items():
        assert key in usual or all(str(leaf) in said for leaf in _flatten(value)), key
    again = msgspec.json.decode(msgspec.json.encode(asked), type=Asked)
    assert again == asked
    if asked.question not in QUESTIONS:
        return
    try:
        every = read_options(again, Path("/given"), {"place": ("--root", "/given")})
    except CqError:
        return  # said in a sentence
    for options in every:
        fields = {one.field for one in find_written(type(options))}
        for field in msgspec.structs.fields(options):
            if field.name not in fields and field.name not in ("place", "measure"):
                assert getattr(options, field.name) == field.default, field.name


def _flatten(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for each in value.values() for leaf in _flatten(each)]
    return [leaf for each in value for leaf in _flatten(each)] if isinstance(value, list) else [value]


class World:
    """A repository, and beside it what nobody asked about."""

    def __init__(self, base: Path, daemon: str) -> None:
        self.root = make_repository(base / "repo")
        (base / "secret.py").write_text(f"def {SECRET}():\n    return 1\n")
        (self.root / "link").symlink_to(base)
        (self.root / "link.py").symlink_to(base / "secret.py")
        self.daemon = daemon
        self.environment = environment(self.root, daemon)

    def cq(self, *words: str) -> bytes:
        return subprocess.run(
            [sys.executable, "-m", "cq", *words], cwd=self.root, env=self.environment, capture_output=True, check=False
        ).stdout


@pytest.fixture(params=["off", "manual"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    base = Path(tempfile.mkdtemp(prefix="cq-test-"))  # a socket's path is short
    world = World(base, request.param)
    if request.param != "off":
        world.cq("daemon", "start")
    yield world
    if request.param != "off":
        served = json.loads(world.cq("daemon", "status", "--format=json"))["served"]
        world.cq("daemon", "stop")
        assert served > 20  # it was the daemon that was attacked
    shutil.rmtree(base)


@pytest.mark.skipif(sys.platform != "linux", reason="the daemon needs Linux")
def test_nothing_leads_out_of_the_root(world: World):
    out = os.fspath(world.root.parent)
    places = [
        f"s.py\0--root={out}\0{SECRET}", "../secret.py", "link/secret.py", "..", f"{out}/secret.py", "link.py",
        "/etc/passwd", "src/../../secret.py",
        f"--root={out}", f"src,--root={out}", f"src\n--root={out}", "link", "~",
    ]  # fmt: skip
    if world.daemon == "off":  # a process for each question: a few of them
        places = places[:3]
    calls: list[tuple[str, dict[str, Any]]] = []
    for place in places:
        calls += [
            ("codebase_search", {"query": SECRET[:-1], "path": [place]}),
            ("codebase_search", {"query": "the secret elsewhere", "path": [place]}),
            ("codebase_search", {"query": place}),
            ("codebase_search", {"query": f"symbol = {place} > {SECRET[:-1]}"}),
            ("codebase_search", {"query": "save", "languages": [f"python,{place}"]}),
            ("codebase_context", {"target": f"{place}:1", "what": "calls"}),
            ("codebase_context", {"target": place}),
            ("codebase_context", {"target": "save", "what": "calls", "path": [place]}),
            ("codebase_context", {"target": "save", "what": "path", "to": f"{place}:1"}),
            ("codebase_query", {"query": f"entity=function in={place}"}),
            ("codebase_read", {"target": place}),
            ("codebase_read", {"target": f"{place}:1-9"}),
            ("codebase_check", {"path": [place]}),
        ]
    uris = [
        f"cq://{kind}/{name}"
        for kind in ("file", "symbol", "artifact")
        for name in (
            "../secret.py",
            "%2e%2e/secret.py",
            "..%2fsecret.py",
            f"{out}/secret.py",
            f"/{out}/secret.py",
            "link/secret.py",
            "link.py",
            "src/../../secret.py",
            "../../../../../../etc/passwd",
            "%00",
            "..",
            "../answers/x",
            f"--root={out}",
            "secret.py%00.json",
            SECRET,
        )
    ] + [f"file://{out}/secret.py", "cq://file/", "cq://../secret.py"]

    async def run() -> None:
        command = StdioServerParameters(
            command=sys.executable, args=["-m", "cq", "mcp"], env=world.environment, cwd=str(world.root)
        )
        async with Client(command, mode="legacy") as client:
            for tool, arguments in calls:
                answer = await client.call_tool(tool, arguments)
                _check(answer.model_dump_json(), json.dumps([tool, arguments]))
            for uri in uris:
                with pytest.raises(MCPError) as caught:
                    await client.read_resource(uri)
                _check(str(caught.value), uri)
            for place in places:
                for reference in (
                    ResourceTemplateReference(uri="cq://file/{+path}"), PromptReference(name="explain_symbol")
                ):  # fmt: skip
                    for name in ("path", "symbol"):
                        done = await client.complete(reference, {"name": name, "value": place})
                        _check(done.model_dump_json(), place)
            # The server answers still, about its own root.
            found = await client.call_tool("codebase_search", {"query": "save"})
            assert "src/db.py" in found.content[1].text or "src/db.py" in found.content[2].text

    anyio.run(run)


def _check(answer: str, asked: str) -> None:
    """No source from outside: the secret may be said only as it was asked for."""
    assert "return 1" not in answer, asked
    assert "root:x:" not in answer, asked
    assert f"{SECRET}(" not in answer, asked
    assert "INTERNAL" not in answer, (asked, answer)


def test_what_lies_outside_is_not_even_said_to_be_there(tmp_path: Path):
    world = World(tmp_path, "off")

    async def run() -> None:
        command = StdioServerParameters(
            command=sys.executable, args=["-m", "cq", "mcp"], env=world.environment, cwd=str(world.root)
        )
        async with Client(command, mode="legacy") as client:
            for there, missing in (
                (f"{tmp_path}/secret.py", f"{tmp_path}/nothin.py"), ("../secret.py", "../nothin.py"),
                ("link/secret.py", "link/nothin.py"),
            ):  # fmt: skip
                for tool, make in (
                    ("codebase_search", lambda place: {"query": "save", "path": [place]}),
                    ("codebase_read", lambda place: {"target": place}),
                    ("codebase_read", lambda place: {"target": f"{place}:1"}),
                    ("codebase_context", lambda place: {"target": f"{place}:1"}),
                    ("codebase_check", lambda place: {"path": [place]}),
                ):
                    texts = [(await client.call_tool(tool, make(place))).content[0].text for place in (there, missing)]
                    assert texts[0].replace(there, "X") == texts[1].replace(missing, "X")

    anyio.run(run)


# A line, and the id of its answer; "" is for a line that has none.
LINES: dict[str, Any] = {
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"index_status","arguments":{"a":"\\ud800"}}}': 1,
    '{"jsonrpc":"2.0","id":2}': 2,
    '{"jsonrpc":"1.0","id":3,"method":"ping"}': 3,
    '{"jsonrpc":"2.0","id":4,"method":["ping"]}': 4,
    '{"jsonrpc":"2.0","id":1.5,"method":"ping"}': None,
    '{"jsonrpc":"2.0","id":true,"method":"ping"}': None,
    '{"jsonrpc":"2.0","id":{},"method":"ping"}': None,
    "{not json": None,
    "[" * 50_000: None,
    "[]": None,
    '{"jsonrpc":"2.0","id":5,"result":7}': "",
    " ": "",
    '{"jsonrpc":"2.0","id":"last","method":"ping"}': "last",
}
GREETING = (
    '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    '"clientInfo":{"name":"t","version":"1"}}}'
)


INITIALIZED = '{"jsonrpc":"2.0","method":"notifications/initialized"}'


def talk(root: Path, *lines: str) -> list[dict[str, Any]]:
    """The answers to lines that are written at once, by a client that then closes its end."""
    done = subprocess.run(
        [sys.executable, "-m", "cq", "mcp", "--root", str(root)], input="\n".join([*lines, ""]),
        env=environment(root), capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return [answer for line in done.stdout.splitlines() if "method" not in (answer := json.loads(line))]


@pytest.mark.parametrize("first", [GREETING, GREETING.replace('"id":0,', ""), "[" * 50_000])
def test_a_line_that_is_no_message_is_answered(first: str, tmp_path: Path):
    """Else its sender waits for good, and the server for the answer, after the sender has gone."""
    said = talk(make_repository(tmp_path / "repo"), first, INITIALIZED, *LINES)
    if first == GREETING:
        expected = [number for number in LINES.values() if number != ""]
        assert sorted(repr(each["id"]) for each in said) == sorted(map(repr, [0, *expected]))
        assert all("error" in each for each in said if each["id"] not in (0, "last"))


def test_a_uri_holds_no_more_than_an_argument(tmp_path: Path):
    uris = ("cq://file/a.py%00", "cq://symbol/%1b[31m", "cq://artifact/a%0A/1", "cq://symbol/" + "a" * 200_000)
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": at, "method": "resources/read", "params": {"uri": uri}})
        for at, uri in enumerate(uris, 1)
    ]
    _, *said = talk(make_repository(tmp_path / "repo"), GREETING, INITIALIZED, *lines)
    messages = [each["error"]["message"] for each in sorted(said, key=lambda each: each["id"])]
    assert [message.partition(" (")[0] for message in messages] == [
        *["uri: a control character"] * 3, "uri: it is longer than 2,000 characters",
    ]  # fmt: skip
    assert {each["error"]["data"]["code"] for each in said} == {"INVALID_REQUEST"}
