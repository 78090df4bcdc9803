"""What others wrote to check servers: the protocol's conformance suite, and the Inspector without its browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cq.indexing.location import find_cache_dir
from cq.surfaces.mcp.tools import TOOLS
from tests.support.agents import environment, make_repository, serving

pytestmark = pytest.mark.slow

PACKAGES = ("@modelcontextprotocol/conformance@0.1.16", "@modelcontextprotocol/inspector@2.12.0", "node@22")
# One call for every tool.
CALLS = {
    "codebase_search": ["query=save"],
    "codebase_query": ["query=entity=function"],
    "codebase_context": ["what=calls", "target=save", 'path=["src/"]'],
    "codebase_read": ["target=src/db.py"],
    "codebase_check": ['path=["src/db.py"]'],
    "index_status": [],
}
DOCS = Path(__file__).parents[2] / "docs" / "mcp.md"


@pytest.fixture(scope="module")
def modules() -> Path:
    """node_modules in the user's cache, fetched once."""
    cache = find_cache_dir()
    if cache is None or shutil.which("npm") is None:
        pytest.skip("no npm, or no home directory, to have the MCP Inspector and the conformance suite")
    folder = cache / "tools" / "mcp-peers"
    wanted = " ".join(PACKAGES)
    if not (folder / "installed").exists() or (folder / "installed").read_text() != wanted:
        folder.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", str(folder), *PACKAGES]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode:
            pytest.skip(f"npm cannot fetch {PACKAGES[0]}: {done.stderr.strip()[-200:]!r}")
        (folder / "installed").write_text(wanted)
    return folder / "node_modules"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_repository(tmp_path_factory.mktemp("peers") / "repo")


@pytest.fixture(scope="module")
def port(root: Path) -> Iterator[int]:
    with serving(root) as number:
        yield number


def node(modules: Path, root: Path, script: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [str(modules / "node" / "bin" / "node"), str(modules / "@modelcontextprotocol" / script), *words]
    return subprocess.run(
        command, cwd=root, env=environment(root), capture_output=True, text=True, timeout=300, check=False
    )


def test_every_scenario_that_needs_no_tools_of_its_own_passes(modules: Path, root: Path, port: int):
    done = node(modules, root, "conformance/dist/index.js", "server", "--url", f"http://127.0.0.1:{port}/mcp")
    summary = done.stdout.partition("=== SUMMARY ===")[2]
    results = {name: mark == "✓" for mark, name in re.findall(r"^([✓✗]) ([\w-]+):", summary, re.MULTILINE)}
    _, _, listed = DOCS.read_text().partition("<!-- conformance -->")
    listed, _, _ = listed.partition("<!-- end -->")
    needing = set(re.findall(r"`([\w-]+)`", listed))  # the docs say which, and are checked so
    assert {name for name, passed in results.items() if not passed} == needing
    assert sum(results.values()) >= 9, summary


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_inspector_lists_and_calls_every_tool(modules: Path, root: Path, port: int, transport: str):
    server = [f"http://127.0.0.1:{port}/mcp", "--transport", "http"] if transport == "http" else [
        # The Inspector hands on little of the environment.
        "env", *(f"{key}={value}" for key, value in environment(root).items() if key.startswith("XDG_")),
        sys.executable, "-m", "cq", "mcp", "--root", str(root),
    ]  # fmt: skip

    def inspect(*words: str) -> dict[str, object]:
        done = node(modules, root, "inspector/clients/launcher/build/index.js", "--cli", *server, "--method", *words)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    listed = inspect("tools/list", "--strict")
    assert isinstance(listed["tools"], list)
    assert [tool["name"] for tool in listed["tools"]] == list(TOOLS) == list(CALLS)
    for name, arguments in CALLS.items():
        words = ["--tool-arg", *arguments] if arguments else []
        answer = inspect("tools/call", "--tool-name", name, *words)
        assert answer["content"]
