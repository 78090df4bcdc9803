"""A revision is asked as the work tree is, and says what a fresh index of its checkout says, row for row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cq import CallsOptions, ImpactOptions, SearchOptions, Workspace
from cq.model.errors import CqError, UsageError
from cq.store.prefix import name_tree
from tests.support.history import commit, git
from tests.support.index import dump


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Seven commits: bodies, signatures, new and removed files, moves, rules, links, odd texts."""
    root = tmp_path / "repo"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    commit(
        root, {"a.py": "def f():\n    return 1\n", "pkg/b.py": "from a import f\n\n\ndef g():\n    return f()\n"}, "1"
    )
    commit(root, {"a.py": "def f(x=2):\n    return x\n"}, "2")
    commit(root, {"pkg/c.py": "from pkg.b import g\n\n\ndef h():\n    g()\n", "pkg/__init__.py": ""}, "3")
    (root / "link.py").symlink_to("a.py")
    (root / "out.py").symlink_to("/etc/passwd")
    commit(
        root, {"crlf.py": b"def w():\r\n    pass\r\n", "bin.dat": b"\0\1\2" * 50, "big.py": "x = 1\n" * 500_000}, "4"
    )
    commit(root, {".ignore": "vendor/\n", "vendor/v.py": "def v(): ...\n", ".gitignore": "*.tmp\n", "t.tmp": "x"}, "5")
    git(root, "mv", "a.py", "core.py")
    commit(root, {"pkg/b.py": "from core import f\n\n\ndef g():\n    return f(3)\n"}, "6")
    commit(root, {"pkg/c.py": None, "latin.py": "# café\ny = 'é'\n".encode("latin-1")}, "7")
    return root


def test_a_revision_is_what_a_fresh_index_of_its_checkout_is(root: Path, tmp_path: Path):
    with Workspace.open(root, index_dir=tmp_path / "i") as workspace:
        workspace.refresh()
        # Newest first, oldest first, and one again: whatever tree is nearest, the rows are the same.
        for back in (0, 1, 2, 6, 5, 3, 4, 0):
            old = workspace.at(f"HEAD~{back}")
            old.index.refresh()
            checkout = tmp_path / f"checkout{back}"
            if not checkout.exists():
                git(tmp_path, "clone", "-q", "-c", "advice.detachedHead=false", str(root), str(checkout))
                git(checkout, "checkout", "-q", old.index.revision.commit)
            with Workspace.open(checkout, index_dir=tmp_path / f"fresh{back}") as fresh:
                fresh.refresh(full=True)
                theirs = dump(fresh.index.place.file, checkout)
            ours = dump(old.index.place.file, name_tree(root, old.index.revision))
            for kind in theirs:
                assert ours[kind] == theirs[kind], (back, kind)
        assert workspace.refresh().generation == 1  # the work tree is as it was


def test_questions_are_asked_of_a_revision(root: Path, tmp_path: Path):
    with Workspace.open(root, index_dir=tmp_path / "i") as workspace:
        old = workspace.at("HEAD~4")
        answer = old.calls(CallsOptions("g"))
        assert "pkg/c.py" in {row.location.path for each in answer.sections for row in each.findings if row.location}
        assert answer.run.as_of is not None
        assert answer.run.as_of.resolved == git(root, "rev-parse", "HEAD~4")
        assert not workspace.calls(CallsOptions("g")).found  # its caller is gone today
        assert workspace.at("latest").search(SearchOptions("f")).run.as_of is None
        with pytest.raises(UsageError, match="--changed is about the work tree"):
            old.impact(ImpactOptions(since="HEAD"))


def test_two_commits_with_the_same_files_are_one_tree(root: Path, tmp_path: Path):
    with Workspace.open(root, index_dir=tmp_path / "i") as workspace:
        first = workspace.at("HEAD")
        first.index.refresh()
        commit(root, {}, "nothing")
        assert first.index.refresh().generation == workspace.at("HEAD").index.refresh().generation == 1
        assert workspace.at("HEAD").index.name == first.index.name


def test_a_folder_of_the_repository_and_a_bare_clone(root: Path, tmp_path: Path):
    with Workspace.open(root / "pkg", index_dir=tmp_path / "i") as workspace:
        assert [row.path for row in workspace.at("HEAD").files()] == ["__init__.py", "b.py"]
        with pytest.raises(UsageError, match="that commit has no folder"):
            Workspace.open(root / "vendor", index_dir=tmp_path / "i").at("HEAD~6")
    git(tmp_path, "clone", "-q", "--bare", str(root), "bare.git")
    with Workspace.open(tmp_path / "bare.git", index_dir=tmp_path / "j") as workspace:
        assert "core.py" in {row.path for row in workspace.at("main").files()}


@pytest.mark.parametrize("ref", ["nosuch", "-x", "", "HEAD~99", "--all", "HEAD:a.py", "main..HEAD"])
def test_a_name_of_no_commit_is_an_error(root: Path, tmp_path: Path, ref: str):
    with Workspace.open(root, index_dir=tmp_path / "i") as workspace, pytest.raises(CqError, match="the revision"):
        workspace.at(ref)


def test_where_there_is_no_repository_or_no_commit(tmp_path: Path):
    (tmp_path / "plain").mkdir()
    with Workspace.open(tmp_path / "plain", index_dir=tmp_path / "i") as workspace, pytest.raises(UsageError):
        workspace.at("HEAD")
    git(tmp_path, "init", "-q", "unborn")
    with (
        Workspace.open(tmp_path / "unborn", index_dir=tmp_path / "i") as workspace,
        pytest.raises(UsageError, match="nothing is committed yet"),
    ):
        workspace.at("HEAD")


def test_what_was_begun_and_killed_is_begun_again(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from cq.indexing import revision

    with Workspace.open(root, index_dir=tmp_path / "i") as workspace:
        workspace.refresh()
        real = revision.read_files

        def fail(*_: object) -> Any:
            raise KeyboardInterrupt

        monkeypatch.setattr(revision, "read_files", fail)
        old = workspace.at("HEAD~3")
        with pytest.raises(KeyboardInterrupt):
            old.index.refresh()
        monkeypatch.setattr(revision, "read_files", real)
        assert old.calls(CallsOptions("f")).found


def test_the_oldest_revisions_go_when_there_is_no_room(root: Path, tmp_path: Path):
    (root / "cq.toml").write_text("[history]\nmax_mb = 0\n")
    with Workspace.open(root, index_dir=tmp_path / "i") as workspace:
        workspace.refresh()
        for back in (3, 1):
            workspace.at(f"HEAD~{back}").index.refresh()
        with workspace.at("HEAD~1").index.reading() as (reader, tree):
            assert reader.list_revisions() == [tree.root]
            assert not [path for path in reader.linked_paths(tree.id - 1)]
        assert workspace.at("HEAD~3").calls(CallsOptions("g")).found
