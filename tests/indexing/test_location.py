"""Where the index lies, what shares it, and what happens where it cannot lie there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cq import Workspace
from cq.indexing import location
from cq.indexing.location import find_base, find_cache_dir, find_key, find_leftovers, open_place
from cq.source import repository


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CQ_INDEX_DIR", raising=False)
    return tmp_path / "cache" / "cq"


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    repo = tmp_path / "repo"
    (repo / "src").mkdir(parents=True)
    (repo / "a.py").write_text("def a(): pass\n")
    (repo / "src" / "b.py").write_text("def b(): pass\n")
    return repo


def git(directory: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=directory, check=True, capture_output=True, timeout=60)


def test_the_cache_directory_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    assert find_cache_dir() == tmp_path / "cache" / "cq"
    monkeypatch.setenv("HOME", str(tmp_path))
    for value in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        monkeypatch.setattr(repository.sys, "platform", "linux")
        assert find_cache_dir() == tmp_path / ".cache" / "cq"
        monkeypatch.setattr(repository.sys, "platform", "darwin")
        assert find_cache_dir() == tmp_path / "Library" / "Caches" / "cq"


def test_a_file_names_a_place_from_the_root_and_knows_no_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path
):
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "repo"
    assert find_base(root, "x", "flag") == tmp_path / "x"
    assert find_base(root, "x", "environment CQ_INDEX_DIR") == tmp_path / "x"
    assert find_base(root, "~/x", "cq.toml:1") == root / "~" / "x"
    assert find_base(root, "", "default") == cache


def test_every_directory_has_a_key_of_its_own(repo: Path, tmp_path: Path):
    other = tmp_path / "elsewhere" / "repo"
    other.mkdir(parents=True)
    assert find_key(repo).startswith("repo-")
    assert len({find_key(repo), find_key(repo / "src"), find_key(other)}) == 3


def test_a_repository_has_one_key_for_all_its_roots(repo: Path, tmp_path: Path):
    git(repo, "init", "-q")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "x")
    git(repo, "worktree", "add", "-q", str(tmp_path / "second"))
    assert find_key(repo) == find_key(repo / "src") == find_key(tmp_path / "second")


def test_a_second_worktree_parses_only_its_differences(repo: Path, tmp_path: Path):
    git(repo, "init", "-q")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "x")
    second = tmp_path / "second"
    git(repo, "worktree", "add", "-q", str(second))
    with Workspace.open(repo) as one, Workspace.open(second) as two:
        assert one.refresh().parsed == 2
        report = two.refresh()
        assert (report.added, report.parsed, report.reused) == (2, 0, 2)
        assert one.status().index == two.status().index
        (second / "a.py").write_text("def other(): pass\n")
        assert two.refresh().parsed == 1
        # What changed in one is not seen in the other.
        assert [row.symbol.name for row in one.symbols()] == ["a", "b"]
        assert [row.symbol.name for row in two.symbols()] == ["other", "b"]


def test_nothing_is_put_into_the_repository(repo: Path, cache: Path):
    before = sorted(repo.rglob("*"))
    with Workspace.open(repo) as workspace:
        status = workspace.status()
    assert sorted(repo.rglob("*")) == before
    assert Path(status.index) == cache / find_key(repo) / "index.db"
    assert Path(status.index).parent.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("with_git", [False, True])
@pytest.mark.parametrize("directory", [".cq", ".", "odd [name]!"])
def test_an_index_inside_the_repository_is_not_part_of_it(
    repo: Path, monkeypatch: pytest.MonkeyPatch, with_git: bool, directory: str
):
    if with_git:
        git(repo, "init", "-q")
    monkeypatch.chdir(repo)
    with Workspace.open(repo, index_dir=directory) as workspace:
        status = workspace.status()
        assert (status.files, status.skipped) == (2, {})
        assert Path(status.index).is_relative_to(repo / directory)
        assert workspace.refresh().generation == 1
    # Nor does one that keeps its index elsewhere take it for code.
    with Workspace.open(repo) as workspace:
        assert (workspace.status().files, workspace.status().skipped) == (2, {})


def test_where_no_cache_can_be_made_the_index_is_temporary(repo: Path, cache: Path):
    cache.parent.write_text("a file where a directory is wanted")
    with Workspace.open(repo) as workspace:
        status = workspace.status()
        assert status.temporary
        assert status.files == 2
        assert [(event.stage, event.severity) for event in status.degraded] == [("location", "warning")]
        assert Path(status.index).exists()
    assert not Path(status.index).parent.exists()


def test_a_temporary_index_ends_with_its_workspace(repo: Path, cache: Path):
    cache.parent.write_text("")
    workspace = Workspace.open(repo)
    folder = Path(workspace.status().index).parent
    del workspace
    assert not folder.exists()


def test_an_index_that_cannot_be_written_is_still_read(repo: Path, cache: Path):
    with Workspace.open(repo) as workspace:
        workspace.refresh()
    lock = cache / find_key(repo) / "index.db.lock"
    lock.unlink()
    lock.mkdir()  # as good as a read-only disk, also for root
    stored = (cache / find_key(repo) / "index.db").read_bytes()
    (repo / "c.py").write_text("def c(): pass\n")
    with Workspace.open(repo) as workspace:
        report = workspace.refresh()
        assert (report.added, report.parsed) == (1, 1)
        (event,) = workspace.status().degraded
        assert "private copy" in event.message
    assert (cache / find_key(repo) / "index.db").read_bytes() == stored


def test_a_copy_taken_while_the_index_moves_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    root, base = tmp_path / "repo", tmp_path / "base"
    root.mkdir(exist_ok=True)
    index = open_place(base, root).file
    index.write_bytes(b"x" * 100)
    (index.parent / "index.db.lock").unlink()
    (index.parent / "index.db.lock").mkdir()
    copy = location.shutil.copyfile

    def copy_and_move(source: Path, target: Path) -> None:
        copy(source, target)
        with Path(source).open("ab") as file:
            file.write(b"y")

    monkeypatch.setattr(location.shutil, "copyfile", copy_and_move)
    place = open_place(base, root)
    assert place.temporary
    assert not place.file.exists()
    place.file.parent.rmdir()


def test_leftovers_name_their_repository(repo: Path, cache: Path, tmp_path: Path):
    gone = tmp_path / "gone"
    gone.mkdir()
    for root in (repo, gone):
        with Workspace.open(root) as workspace:
            workspace.refresh()
    gone.rmdir()
    found = {leftover.repository: leftover.exists for leftover in find_leftovers(cache)}
    assert found == {str(repo): True, str(gone): False}
    assert find_leftovers(tmp_path / "nothing") == []
