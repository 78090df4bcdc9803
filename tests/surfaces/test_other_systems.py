"""Windows and macOS as far as they can be had here: processes that find nothing of POSIX but its paths (see
tests/support/other_system), and the parts that differ by themselves."""

from __future__ import annotations

import json
import ntpath
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path, PureWindowsPath
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from cq.indexing import location
from cq.providers import documents
from cq.snapshot import places
from cq.source import program, repository
from cq.source.read import read_bytes
from cq.store import database, prefix
from tests.support.agents import environment, make_repository

pytestmark = pytest.mark.slow

STAND_IN = Path(__file__).parents[1] / "support" / "other_system"
QUESTIONS = (
    ["search", "save"],
    ["search", "größe"],
    ["calls", "save"],
    ["find", "store a row"],
    ["read", "src/db.py"],
    ["neighborhood", "save", "--no-lsp"],
    ["q", "entity=function"],
    ["impact", "save"],
    ["completion", "words", "--", "calls", "sa"],
    ["search", "nothing_of_the_kind"],
    ["search"],
    ["validate"],
)


@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_answers_are_the_same_bytes(tmp_path: Path, system: str):
    root = make_repository(tmp_path / "repo")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / "src" / "text.py").write_text('def größe():\n    return "…"\n', "utf-8")
    there, here = pretend(root, system), environment(root) | {"XDG_CACHE_HOME": str(tmp_path / "here")}
    made, own = (json.loads(run(root, env, "index", "--format", "json")[1]) for env in (there, here))
    assert made["report"] == own["report"]
    assert made["status"]["counts"] == own["status"]["counts"]
    assert (made["cost"]["peak_bytes"] > 0) is (system != "win32")
    (root / "src" / "app.py").write_text("from db import save\n\n\ndef main():\n    save(1)\n    save(2)\n", "utf-8")
    for question in QUESTIONS:
        assert run(root, there, *question) == run(root, here, *question), question
    for env, name in ((there, "a"), (here, "b")):
        assert run(root, env, "export", "--out", str(tmp_path / name))[0] == 0
    assert read_tree(tmp_path / "a") == read_tree(tmp_path / "b")


@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_there_is_no_daemon_and_that_is_said_in_one_line(tmp_path: Path, system: str):
    root = make_repository(tmp_path / "repo")
    env = pretend(root, system)
    for what in ("start", "status"):
        status, out, err = run(root, env, "daemon", what)
        assert (status, out) == (2, "")
        assert err.startswith("cq: daemon: there is no daemon on this system (")
        assert err.count("\n") == 1
    status, _, err = run(root, env, "config", "set", "daemon", "auto")
    assert status == 0
    assert "changes nothing here" in err
    assert run(root, env, "search", "save")[0] == 0
    assert not (tmp_path / "RUNTIME_DIR").exists()


def test_agents_are_answered_on_windows(tmp_path: Path):
    root = make_repository(tmp_path / "repo")
    # The commands that the server starts are given no PYTHONPATH, so they know where they really are.
    env = pretend(root, "win32", "off")
    command = StdioServerParameters(command=sys.executable, args=["-m", "cq", "mcp"], env=env, cwd=str(root))

    async def ask() -> None:
        with anyio.fail_after(90):
            async with Client(command, mode="legacy") as client:
                found = await client.call_tool("codebase_context", {"what": "calls", "target": "save"})
                assert not found.is_error
                assert "src/app.py" in str(found.content)

    anyio.run(ask)


def test_processes_that_start_anew_make_the_same_index(tmp_path: Path):
    """From a script without a guard, in a directory whose modules are not ours to run."""
    root = tmp_path / "repo"
    root.mkdir()
    for number in range(30):
        (root / f"m{number}.py").write_text(
            f"from m{number // 2} import f{number // 2}\n\n\ndef f{number}():\n    f{number // 2}()\n"
        )
    for name in ("pickle", "signal", "struct", "multiprocessing", "json"):
        (root / f"{name}.py").write_text("import os\nos._exit(66)\n")
    script = tmp_path / "ask.py"
    script.write_text(
        "import sys\nprint('begun')\n"
        "from cq.indexing import link, pool, refresh\nfrom cq.indexing.spawn import Context\nfrom pathlib import Path\n"
        "pool.FORKS = sys.argv[2] == 'forks'\nrefresh.BATCH_BYTES = refresh.POOL_BYTES = link.LEAST_NAMES = 1\n"
        "refresh.COST = link.COST = 1\nstarted = []\nfrom multiprocessing.process import BaseProcess\n"
        "start = BaseProcess.start\nBaseProcess.start = lambda self: (started.append(self), start(self))\n"
        "settings = refresh.Settings(jobs=2)\n"
        "refresh.refresh(Path(sys.argv[1]), Path.cwd(), settings)\n"
        "print(len(started), {type(each).__name__ for each in started})\n"
    )
    rows: list[Any] = []
    for way, kind in (("forks", "ForkProcess"), ("anew", "Process")):
        index = tmp_path / way / "index.db"
        done = subprocess.run(
            [sys.executable, str(script), str(index), way], cwd=root, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == f"begun\n4 {{'{kind}'}}\n"
        connection = database.connect(index)
        rows.append(
            [connection.execute(f"SELECT * FROM {name} ORDER BY 1, 2").fetchall() for name in ("content", "link")]
        )
        connection.close()
    assert rows[0] == rows[1]
    assert len(rows[0][0]) == 31  # five of the files say the same


def test_a_search_for_programs_passes_over_what_is_named_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        for name in ("tool", "tool.exe"):
            (tmp_path / folder / name).write_text("")
            (tmp_path / folder / name).chmod(0o755)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("PATH", os.pathsep.join(["", ".", "../here", str(tmp_path / "there")]))
    assert program.find_in_path("tool", "/repo") == str(tmp_path / "there" / "tool")
    assert program.find_in_path("absent", "/repo") is None
    monkeypatch.setattr(program, "sys", SimpleNamespace(platform="win32"))
    monkeypatch.setenv("PATHEXT", ".COM:.EXE")
    assert program.find_in_path("tool", "/repo") == str(tmp_path / "there" / "tool.exe")


def test_files_are_read_below_the_root_without_directory_handles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Where directories cannot be gone through step by step, links are seen all the same."""
    monkeypatch.setattr("cq.source.read._CAN_STEP", False)
    monkeypatch.setattr("cq.opening._READ", os.O_RDONLY)
    (tmp_path / "root" / "in").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "secret.py").write_text("1")
    (tmp_path / "root" / "in" / "a.py").write_text("2")
    (tmp_path / "root" / "in" / "link.py").symlink_to(tmp_path / "out" / "secret.py")
    (tmp_path / "root" / "away").symlink_to(tmp_path / "out")
    (tmp_path / "alias").symlink_to(tmp_path / "root")
    for base in (tmp_path / "root", tmp_path / "alias"):
        assert read_bytes(str(base), "in/a.py", 100) == b"2"
        for path in ("in/link.py", "away/secret.py"):
            found = read_bytes(str(base), path, 100)
            assert getattr(found, "reason", "") == "link_out", path


@pytest.mark.parametrize(
    ("system", "given", "expected"),
    [
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/cq/cache"),
        ("win32", {}, "/home/me/.cache/cq"),
        ("win32", {"LOCALAPPDATA": "/local", "XDG_CACHE_HOME": "/xdg"}, "/xdg/cq"),
        ("darwin", {}, "/home/me/Library/Caches/cq"),
        ("darwin", {"XDG_CACHE_HOME": "/xdg"}, "/xdg/cq"),
        ("linux", {"LOCALAPPDATA": "/local"}, "/home/me/.cache/cq"),
    ],
)
def test_the_cache_lies_where_the_system_keeps_caches(
    monkeypatch: pytest.MonkeyPatch, system: str, given: dict[str, str], expected: str
):
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/me", **given}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(repository, "sys", SimpleNamespace(platform=system))
    assert location.find_cache_dir() == Path(expected)


def test_drives_and_backslashes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(prefix, "os", SimpleNamespace(sep="\\", fsencode=os.fsencode))
    assert prefix.name_file(r"C:\Users\a b\50%?#\index.db") == b"file:///C:/Users/a b/50%25%3f%23/index.db"
    monkeypatch.setattr(documents, "os", SimpleNamespace(sep="\\", path=ntpath, fsencode=os.fsencode))
    uri = documents.make_uri(r"C:\work\a b\x.py")
    assert uri == "file:///C%3A/work/a%20b/x.py"
    assert documents.read_uri(uri) == documents.read_uri("file:///c:/work/a%20b/x.py") == r"C:\work\a b\x.py"
    monkeypatch.setattr(places, "os", SimpleNamespace(sep="\\", path=ntpath))
    root: Any = PureWindowsPath(r"C:\work")
    monkeypatch.setattr(places, "Path", Windows)
    read = places.Places(root).read
    assert read(r"C:\work\src\db.py:3", "target", "TARGET") == "src/db.py:3"
    assert read(r"src\db.py:3:1", "target", "TARGET") == "src/db.py:3:1"
    assert read("a::b", "target", "TARGET") == "a::b"


class Windows(PureWindowsPath):
    """Where only `C:\\work\\src\\db.py` is a file."""

    def is_file(self) -> bool:
        return str(self) == r"C:\work\src\db.py"

    exists = is_file


def pretend(root: Path, system: str, daemon: str = "auto") -> dict[str, str]:
    """Also in a locale that knows no UTF-8: what is opened without saying how would show."""
    more = {"TESTS_OF_CQ_SYSTEM": system, "PYTHONPATH": str(STAND_IN), "PATHEXT": ""}
    return environment(root, daemon) | more | {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def run(root: Path, env: dict[str, str], *words: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "cq", *words], cwd=root, env=env, capture_output=True, timeout=120, check=False
    )
    out, err = (re.sub(r"[\d,]+ ms", "N ms", text.decode("utf-8")) for text in (done.stdout, done.stderr))
    return done.returncode, out, err


def read_tree(folder: Path) -> dict[str, bytes]:
    found = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    texts = {name: path.read_bytes() for name, path in found.items() if not name.endswith("manifest.json")}
    shutil.rmtree(folder)
    return {
        name: re.sub(rb'"generatedAt": *"[^"]*"|"timingsMs": *\{[^}]*\}', b"", text) for name, text in texts.items()
    }
