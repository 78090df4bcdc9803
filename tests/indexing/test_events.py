"""A process that lives on is told what moved, and misses nothing of it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cq.indexing import events
from cq.indexing.resident import Resident
from cq.workspace import Workspace

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux")


@pytest.fixture
def kept() -> Iterator[Resident]:
    resident = Resident()
    yield resident
    for key in list(resident.watches.kept):
        resident.watches.forget(key)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "repo"
    (root / "a" / "b").mkdir(parents=True)
    for name in ("a/b/one.py", "a/two.py"):
        (root / name).write_text("def first(): ...\n")
    monkeypatch.setenv("CQ_INDEX_DIR", str(tmp_path / "index"))
    monkeypatch.setattr(events, "TRUST_SECONDS", 3600.0)
    return root


def ask(kept: Resident, root: Path) -> tuple[bool, set[str]]:
    """(whether the files were left alone, every name defined in them)"""
    with Workspace.open(root, resident=kept) as workspace:
        names = {row.symbol.name for row in workspace.symbols()}
        return workspace.index.last is None, names


def settle(kept: Resident, root: Path) -> None:
    """The first question sets the watches, a later one finds nothing new: from then on events are trusted."""
    for _ in range(3):
        if ask(kept, root)[0]:
            return
    if events._find_system(str(root)) in events._LOCAL:
        pytest.fail("events are not trusted")
    pytest.skip("no events on the file system of the temporary directory")


def test_an_unchanged_tree_is_not_looked_at(kept: Resident, tree: Path):
    assert not ask(kept, tree)[0]
    settle(kept, tree)
    assert ask(kept, tree) == (True, {"first"})


def _replace(root: Path) -> None:
    (root / "new.tmp").write_text("def later(): ...\n")
    (root / "new.tmp").rename(root / "a" / "two.py")


def _rewrite(root: Path) -> None:
    path = root / "a" / "b" / "one.py"
    before = path.stat()
    path.write_text("def later(): ...\n")  # as long as before
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))


def _move_in(root: Path) -> None:
    (root.parent / "apart").mkdir()
    (root.parent / "apart" / "deep.py").write_text("def later(): ...\n")
    (root.parent / "apart").rename(root / "apart")


def _add_deep(root: Path) -> None:
    (root / "x" / "y").mkdir(parents=True)
    (root / "x" / "y" / "z.py").write_text("def later(): ...\n")


@pytest.mark.parametrize("change", [_replace, _rewrite, _move_in, _add_deep])
def test_whatever_moves_is_seen_at_once(kept: Resident, tree: Path, change: Callable[[Path], None]):
    settle(kept, tree)
    change(tree)
    assert "later" in ask(kept, tree)[1]
    settle(kept, tree)
    (tree / "a" / "two.py").unlink()
    shutil.rmtree(tree / "a" / "b")
    (tree / "end.py").write_text("def last(): ...\n")
    assert "last" in ask(kept, tree)[1]


def test_a_directory_that_came_without_files_is_watched(kept: Resident, tree: Path):
    settle(kept, tree)
    (tree / "x").mkdir()
    settle(kept, tree)
    (tree / "x" / "new.py").write_text("def later(): ...\n")
    assert "later" in ask(kept, tree)[1]
    settle(kept, tree)
    shutil.rmtree(tree / "x")
    (tree / "x").mkdir()
    settle(kept, tree)
    (tree / "x" / "new.py").write_text("def again(): ...\n")
    assert "again" in ask(kept, tree)[1]


def test_rules_that_decide_what_is_listed_are_watched(kept: Resident, tree: Path):
    settle(kept, tree)
    (tree / ".gitignore").write_text("a/two.py\n")
    (tree / "a" / "b" / "one.py").write_text("def other(): ...\n")
    assert ask(kept, tree)[1] <= {"other", "first"}
    assert "other" in ask(kept, tree)[1]


def test_an_index_that_was_removed_is_made_again(kept: Resident, tree: Path):
    settle(kept, tree)
    shutil.rmtree(tree.parent / "index")
    assert ask(kept, tree)[1] == {"first"}


def test_trust_ends(kept: Resident, tree: Path, monkeypatch: pytest.MonkeyPatch):
    settle(kept, tree)
    for watch in kept.watches.kept.values():
        watch.sure_until = 0.0
    assert not ask(kept, tree)[0]


def test_few_trees_are_watched_at_a_time(kept: Resident, tree: Path):
    for number in range(6):
        other = tree.parent / f"other{number}"
        shutil.copytree(tree, other)
        ask(kept, other)
    assert len(kept.watches.kept) <= 4
