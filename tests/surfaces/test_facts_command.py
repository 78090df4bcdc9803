"""`cq facts` and `cq languages`: every format says the same, every mistake is one line with a hint."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cq.surfaces import cli

SOURCE = '''\
"""Doc."""
from .base import Base as B

class Store(B):
    """Keeps things | [red]."""

    async def load(self, name: str = "```", *rest) -> bytes:
        return await self.open(name, *rest, mode="rb")

STORE = Store()
'''


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one module; the working directory is a folder in it."""
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "src").mkdir()
    (tmp_path / "repo" / "src" / "app.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path / "repo" / "src")
    monkeypatch.delenv("CQ_ROOT", raising=False)
    return tmp_path / "repo"


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    status = cli.main(argv)
    return status, *capsys.readouterr()


def load(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    status, out, err = run(capsys, *argv, "--format", "json")
    assert (status, err) == (0, "")
    return msgspec.json.decode(out)


@pytest.mark.parametrize("path", ["app.py", "src/app.py", "./../src/app.py"])
def test_a_path_counts_from_here_or_from_the_root(repo: Path, capsys: pytest.CaptureFixture[str], path: str):
    assert load(capsys, "facts", path)["path"] == "src/app.py"
    assert load(capsys, "facts", str(repo / "src" / "app.py"))["path"] == "src/app.py"


def test_json_names_rows_by_id_and_places_them(repo: Path, capsys: pytest.CaptureFixture[str]):
    facts = load(capsys, "facts", "app.py")
    symbols = {symbol["qualified_name"]: symbol for symbol in facts["symbols"]}
    chunks = {chunk["chunk_uid"]: chunk for chunk in facts["chunks"]}
    loader = symbols["Store.load"]
    assert (loader["kind"], loader["kind_group"], loader["modifiers"]) == ("method", "method", ["async"])
    assert loader["parent_id"] == symbols["Store"]["symbol_id"]
    assert (loader["name_line"], loader["name_col"]) == (7, 15)
    assert (loader["start_line"], loader["start_col"], loader["end_line"], loader["end_col"]) == (7, 5, 8, 55)
    assert SOURCE[loader["start"] : loader["end"]].startswith("async def load")

    (call,) = [call for call in facts["calls"] if call["callee"] == "self.open"]
    assert (call["scope"], call["scope_id"]) == ("Store.load", loader["symbol_id"])
    assert chunks[call["chunk_uid"]]["name"] == "load"
    assert [argument["text"] for argument in call["args"]] == ["name", "*rest", '"rb"']

    whole = chunks[symbols["Store"]["chunk_uid"]]
    part = chunks[loader["chunk_uid"]]
    assert part["breadcrumb"] == "src/app.py > Store > load"
    assert whole["child_chunk_uids"] == [part["chunk_uid"]]
    assert part["parent_chunk_uid"] == whole["chunk_uid"]
    assert "await" in part["full_source"]
    assert "await" not in whole["embedding_text"]
    assert loader["signature"] in whole["embedding_text"]
    assert whole["relevant_imports"] == ["from .base import Base as B"]

    (item,) = facts["imports"]
    assert (item["module"], item["level"]) == ("base", 1)
    assert [(b["local"], b["imported"]) for b in item["bindings"]] == [("B", "Base")]
    assert {"references", "flows", "exports", "segments", "problems"} < facts.keys()


def test_the_same_file_is_the_same_bytes(repo: Path):
    def output(seed: str) -> bytes:
        command = [sys.executable, "-m", "cq", "facts", "app.py", "--format", "json"]
        return subprocess.run(command, env={"PYTHONHASHSEED": seed}, capture_output=True, check=True).stdout

    assert output("1") == output("2")


def test_jsonl_is_the_same_rows_one_per_line(repo: Path, capsys: pytest.CaptureFixture[str]):
    facts = load(capsys, "facts", "app.py")
    _, out, _ = run(capsys, "facts", "app.py", "--format", "jsonl")
    first, *rows = map(msgspec.json.decode, out.splitlines())
    assert (first["fact"], first["path"]) == ("file", "src/app.py")
    assert [row for row in rows if row.pop("fact") == "symbol"] == facts["symbols"]
    assert len(rows) == sum(len(value) for value in facts.values() if isinstance(value, list))


def test_only_narrows_every_format(repo: Path, capsys: pytest.CaptureFixture[str]):
    narrowed = load(capsys, "facts", "app.py", "--only", "calls, imports")
    assert [key for key, value in narrowed.items() if isinstance(value, list)] == ["calls", "imports"]
    _, page, _ = run(capsys, "facts", "app.py", "--only", "flows")
    assert "## Flows" in page
    assert "## Symbols" not in page
    _, plain, _ = run(capsys, "facts", "app.py", "--only", "imports", "--format", "plain")
    assert plain == "src/app.py:2:1: from .base: Base as B\n"


def test_a_page_shows_source_as_it_is(repo: Path, capsys: pytest.CaptureFixture[str]):
    status, out, _ = run(capsys, "facts", "app.py")
    assert status == 0
    assert "\x1b" not in out
    assert 'async def load(self, name: str = "```", *rest) -> bytes' in out
    assert "````text" in out  # a fence inside must not end the block
    _, plain, _ = run(capsys, "facts", "app.py", "--format", "plain")
    assert 'src/app.py:7:15: method Store.load async def load(self, name: str = "```", *rest) -> bytes' in plain


def test_a_long_page_is_a_preview_and_says_so(repo: Path, capsys: pytest.CaptureFixture[str]):
    (repo / "src" / "long.py").write_text("".join(f"call_{n}()\n" for n in range(100)))
    _, out, _ = run(capsys, "facts", "long.py")
    assert "40 of 100; `--only calls` shows all" in out
    assert "call_99()" not in out.partition("## Calls")[2].partition("##")[0]
    _, out, _ = run(capsys, "facts", "long.py", "--only", "calls")
    assert "call_99()" in out


def test_stdin_is_read_as_the_named_language(
    repo: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"def f(): pass\n")))
    facts = load(capsys, "facts", "-", "--lang", "py")
    assert (facts["path"], facts["language"]) == ("-", "python")
    assert [symbol["name"] for symbol in facts["symbols"]] == ["f"]


def test_lang_overrules_the_name(repo: Path, capsys: pytest.CaptureFixture[str]):
    (repo / "src" / "tool").write_text("def f(): pass\n")
    assert load(capsys, "facts", "tool", "--lang", "python")["symbols"][0]["name"] == "f"


def test_nothing_found_is_1(repo: Path, capsys: pytest.CaptureFixture[str]):
    (repo / "src" / "empty.py").write_text("")
    status, out, _ = run(capsys, "facts", "empty.py")
    assert (status, "0 lines" in out) == (1, True)
    assert run(capsys, "facts", "app.py", "--only", "problems")[0] == 1
    (repo / "src" / "broken.py").write_text("def f(:\n")
    assert run(capsys, "facts", "broken.py", "--only", "problems")[0] == 0


@pytest.mark.parametrize(
    ("argv", "code", "says"),
    [
        (["gone.py"], "source", "gone.py does not exist"),
        (["."], "source", "is a directory"),
        (["../../outside.py"], "source", "outside the root"),
        (["data.bin"], "source", "binary"),
        (["away.py"], "source", "link"),
        (["app.py", "--lang", "pyton"], "usage", "unknown language 'pyton' (did you mean 'python'?"),
        (["app.py", "--only", "symbol"], "usage", "did you mean 'symbols'?"),
        (["app.py", "--format", "jsn"], "usage", "did you mean 'json'?"),
        (["app.py", "--root", "nowhere"], "source", "the root nowhere does not exist"),
        (["app.py", "--root", "app.py"], "source", "is not a directory"),
        (["-"], "usage", "give --lang"),
        ([], "usage", "PATH"),
    ],
)
def test_a_mistake_is_one_line_with_a_hint(
    repo: Path, capsys: pytest.CaptureFixture[str], argv: list[str], code: str, says: str
):
    (repo.parent / "outside.py").write_text("x = 1\n")
    (repo / "src" / "data.bin").write_bytes(bytes(range(256)) * 8)
    (repo / "src" / "away.py").symlink_to("../../outside.py")
    status, out, err = run(capsys, "facts", *argv)
    assert (status, out) == (2, "")
    assert err.startswith(f"cq: {code}: ")
    assert err.count("\n") == 1
    assert says in err


def test_a_bug_in_one_language_costs_the_facts_of_one_file(
    repo: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def fail(*_: object) -> None:
        raise KeyError("oops")

    monkeypatch.setattr("cq.indexing.read.extract_facts", fail)
    monkeypatch.setattr("cq.syntax.extract.is_strict", False)
    facts = load(capsys, "facts", "app.py")
    (problem,) = facts["problems"]
    assert problem["code"] == "internal"
    assert "KeyError" in problem["message"]
    assert [(chunk["kind"], chunk["full_source"]) for chunk in facts["chunks"]] == [("module", SOURCE)]


def test_decoding_problems_are_told(repo: Path, capsys: pytest.CaptureFixture[str]):
    (repo / "src" / "latin.py").write_bytes(b"s = 'caf\xe9'\n")
    facts = load(capsys, "facts", "latin.py")
    assert facts["problems"][0]["code"] == "encoding"
    assert facts["problems"][0]["start_col"] == 9


def test_languages_lists_every_registered_one(capsys: pytest.CaptureFixture[str]):
    from cq.language import parsed_languages

    status, out, _ = run(capsys, "languages", "--format", "json")
    rows = {row["id"]: row for row in msgspec.json.decode(out)}
    assert status == 0
    assert list(rows) == parsed_languages()
    assert ".py" in rows["python"]["extensions"]
    assert {"symbols", "calls", "flows"} <= set(rows["python"]["capabilities"])
    _, page, _ = run(capsys, "languages")
    assert len(page.splitlines()) == len(rows) + 2
