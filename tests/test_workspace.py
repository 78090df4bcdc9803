"""Which directory is the root, and what a workspace refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from cq import Workspace
from cq.model.errors import SourceError, UsageError


@pytest.fixture(autouse=True)
def no_root_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CQ_ROOT", raising=False)


@pytest.mark.parametrize("mark", [".git", ".jj", ".hg"])
def test_the_root_is_the_nearest_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mark: str):
    inner = tmp_path / "outer" / "inner" / "src" / "deep"
    inner.mkdir(parents=True)
    (tmp_path / "outer" / ".git").mkdir()
    # A worktree's .git is a file.
    (tmp_path / "outer" / "inner" / mark).write_text("gitdir: elsewhere\n")
    monkeypatch.chdir(inner)
    assert Workspace.open().root == tmp_path / "outer" / "inner"


def test_a_given_root_is_taken_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / ".git").mkdir()
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path)
    assert Workspace.open("src").root == tmp_path / "src"
    monkeypatch.setenv("CQ_ROOT", str(tmp_path / "src"))
    assert Workspace.open().root == tmp_path / "src"
    assert Workspace.open(tmp_path).root == tmp_path


def test_facts_of_a_file_and_of_text_that_lies_in_none(tmp_path: Path):
    (tmp_path / "a.py").write_text("def f(): pass\n")
    with Workspace.open(tmp_path) as workspace:
        source, facts = workspace.facts("a.py")
        other, same = workspace.facts("b.py", text=source.text)
    assert (source.path, other.path) == ("a.py", "b.py")
    assert facts == same
    assert [symbol.name for symbol in facts.symbols] == ["f"]


def test_a_linked_root_holds_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.py").write_text("x = 1\n")
    (tmp_path / "link").symlink_to("real")
    monkeypatch.chdir(tmp_path)
    for path in ("a.py", "link/a.py", tmp_path / "link" / "a.py", tmp_path / "real" / "a.py"):
        assert Workspace.open("link").facts(path)[0].path == "a.py"


def test_what_is_not_source_is_refused_with_its_reason(tmp_path: Path):
    (tmp_path / "big.py").write_bytes(b"# x\n" * 600_000)
    workspace = Workspace.open(tmp_path)
    with pytest.raises(SourceError, match="too large"):
        workspace.facts("big.py")
    with pytest.raises(UsageError, match="unknown language"):
        workspace.facts("x", text=b"", language="klingon")
