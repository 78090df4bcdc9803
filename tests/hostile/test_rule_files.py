"""What decides which files are indexed, edited in place: the next question sees it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cq.indexing import events
from cq.indexing.refresh import Report
from cq.indexing.resident import Resident
from cq.workspace import Workspace

pytestmark = pytest.mark.slow

# Two rules of one length: the first leaves a.py out, the second b.py.
FIRST, SECOND = "a.py\n", "b.py\n"


def git(root: Path, *words: str) -> None:
    names = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *names, *words], cwd=root, check=True, capture_output=True)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    (home / ".config" / "git").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("CQ_INDEX_DIR", str(tmp_path / "index"))
    return home


@pytest.fixture
def root(tmp_path: Path, home: Path) -> Path:
    root = tmp_path / "repo"
    for folder in ("", "sub", "sub/deep"):
        (root / folder).mkdir(exist_ok=True)
        for name in ("a.py", "b.py"):
            (root / folder / name).write_text(f"def in_{name[0]}(): ...\n")
    return root


def indexed(root: Path) -> set[str]:
    with Workspace.open(root) as workspace:
        status = workspace.status()
        assert (status.freshness.check, status.freshness.added, status.freshness.removed) == ("refreshed", 0, 0)
        found = {file.path for file in workspace.files()}
    with Workspace.open(root, index_dir=root.parent / f"fresh-{time.monotonic_ns()}") as fresh:
        fresh.refresh()
        assert found == {file.path for file in fresh.files()}
    return {path for path in found if path.endswith(".py")}


def edit(path: Path, text: str) -> None:
    """In place, and long enough after the last one for the clock of the file system to tell them apart."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        file.write(text)


def settle(root: Path) -> None:
    """Until the index believes what it sees: what was written a moment ago may be written again."""
    time.sleep(0.2)
    with Workspace.open(root) as workspace:
        workspace.refresh()
        workspace.refresh()


def check(root: Path, path: Path, first: str = FIRST, second: str = SECOND, folder: str = "") -> None:
    """`first` leaves a.py of the folder out, `second`, of the same length, b.py."""
    a, b = f"{folder}a.py", f"{folder}b.py"
    assert len(first) == len(second)
    edit(path, first)
    settle(root)
    assert (a in indexed(root), b in indexed(root)) == (False, True)
    edit(path, second)
    assert (a in indexed(root), b in indexed(root)) == (True, False)
    # At once once more: within a tick of the clock the stat may be the same.
    edit(path, first)
    assert (a in indexed(root), b in indexed(root)) == (False, True)
    edit(path, "#\n")
    settle(root)
    assert {a, b} <= indexed(root)
    edit(path, second)
    assert (a in indexed(root), b in indexed(root)) == (True, False)
    edit(path, "#\n")


@pytest.mark.parametrize("name", [".gitignore", ".ignore", ".cqignore"])
@pytest.mark.parametrize("folder", ["", "sub/"])
@pytest.mark.parametrize("by_git", [False, True])
def test_rules_in_the_tree(root: Path, name: str, folder: str, by_git: bool):
    if by_git:
        git(root, "init", "-q")
    check(root, root / folder / name, folder=folder)


@pytest.mark.parametrize("name", ["cq.toml", "pyproject.toml"])
@pytest.mark.parametrize("by_git", [False, True])
def test_our_own_settings(root: Path, name: str, by_git: bool):
    if by_git:
        git(root, "init", "-q")
    table = "index" if name == "cq.toml" else "tool.cq.index"
    first, second = (f'[{table}]\nexclude = ["{each}.py"]\n' for each in "ab")
    check(root, root / name, first, second)


def test_excludes_of_the_repository(root: Path):
    git(root, "init", "-q")
    check(root, root / ".git" / "info" / "exclude")


def test_excludes_of_a_work_tree(root: Path, tmp_path: Path):
    git(root, "init", "-q")
    git(root, "commit", "-q", "--allow-empty", "-m", "x")
    tree = tmp_path / "tree"
    git(root, "worktree", "add", "-q", str(tree))
    for name in ("a.py", "b.py"):
        (tree / name).write_text("x = 1\n")
    check(tree, root / ".git" / "info" / "exclude")


def test_rules_above_a_root_inside_the_repository(root: Path):
    git(root, "init", "-q")
    check(root / "sub", root / ".gitignore")
    check(root / "sub", root / ".git" / "info" / "exclude")


def test_excludes_of_the_user(root: Path, home: Path):
    git(root, "init", "-q")
    check(root, home / ".config" / "git" / "ignore")


@pytest.mark.parametrize("where", ["home", "xdg", "repository", "included", "conditional"])
def test_excludes_that_a_setting_names(root: Path, home: Path, where: str):
    git(root, "init", "-q")
    named = home / "named"
    said = f"[core]\n\texcludesFile = {named}\n"
    target = {
        "home": home / ".gitconfig", "xdg": home / ".config" / "git" / "config",
        "repository": root / ".git" / "config", "included": home / "more", "conditional": home / "more",
    }[where]  # fmt: skip
    if where == "included":
        (home / ".gitconfig").write_text("[include]\n\tpath = more\n")
    if where == "conditional":
        (home / ".gitconfig").write_text(f'[includeIf "gitdir:{root.parent}/"]\n\tpath = ~/more\n')
    settle(root)
    assert {"a.py", "b.py"} <= indexed(root)  # what names them is not there yet
    before = target.read_text() if target.exists() else ""
    (home / "other").write_text(SECOND)
    target.write_text(before + said)
    check(root, named)
    # The setting itself, edited in place.
    edit(named, FIRST)
    settle(root)
    assert "a.py" not in indexed(root)
    edit(target, before + said.replace("named", "other"))
    assert ("a.py" in indexed(root), "b.py" in indexed(root)) == (True, False)


@pytest.mark.parametrize("where", ["excludes of the user", "excludes of the repository", "settings"])
def test_rules_that_lie_elsewhere(root: Path, home: Path, tmp_path: Path, where: str):
    """Many people keep their settings in a repository of their own, and links to it where programs look."""
    git(root, "init", "-q")
    folder = tmp_path / "mine"
    folder.mkdir()
    kept = folder / "kept"
    kept.write_text("")
    link = {
        "excludes of the user": home / ".config" / "git" / "ignore",
        "excludes of the repository": root / ".git" / "info" / "exclude",
        "settings": home / ".gitconfig",
    }[where]
    link.unlink(missing_ok=True)
    link.symlink_to(kept)
    if where != "settings":
        check(root, kept)
        return
    for name, text in (("one", FIRST), ("two", SECOND)):
        (folder / name).write_text(text)
    check(root, kept, *(f"[core]\nexcludesFile = {folder}/{name}\n" for name in ("one", "two")))


def test_a_repository_that_could_not_be_read_is_looked_at_again(root: Path):
    git(root, "init", "-q")
    edit(root / ".git" / "info" / "exclude", FIRST)
    config = root / ".git" / "config"
    plain = config.read_text()
    assert "a.py" not in indexed(root)
    for broken in (plain.replace("bare = false", "bare = true"), plain + "[core]\nworktree = /\n", "#" * (1 << 21)):
        edit(config, broken)
        settle(root)
        assert "a.py" in indexed(root)
        edit(config, plain)
        assert "a.py" not in indexed(root)


@pytest.mark.skipif(sys.platform == "win32", reason="its files have no time that nobody sets")
def test_rules_whose_time_is_set_back(root: Path):
    path = root / ".gitignore"
    path.write_text(FIRST)
    settle(root)
    assert "a.py" not in indexed(root)
    before = path.stat()
    edit(path, SECOND)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert ("a.py" in indexed(root), "b.py" in indexed(root)) == (True, False)


def test_rules_of_a_nested_repository_and_of_a_submodule(root: Path, tmp_path: Path):
    inner = tmp_path / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / ".gitignore").write_text("")
    git(inner, "add", ".")
    git(inner, "commit", "-qm", "x")
    git(root, "init", "-q")
    git(root, "submodule", "add", "-q", str(inner), "module")
    git(root, "init", "-q", "nested")
    for folder in ("module", "nested"):
        for name in ("a.py", "b.py"):
            (root / folder / name).write_text("x = 1\n")
    check(root, root / "module" / ".gitignore", folder="module/")
    check(root, root / ".git" / "modules" / "module" / "info" / "exclude", folder="module/")
    check(root, root / "nested" / ".gitignore", folder="nested/")
    check(root, root / "nested" / ".git" / "info" / "exclude", folder="nested/")


def test_what_is_tracked_and_what_is_a_virtual_environment(root: Path):
    git(root, "init", "-q")
    (root / ".gitignore").write_text("a.py\n")
    settle(root)
    assert "a.py" not in indexed(root)
    git(root, "add", "-f", "a.py")
    assert "a.py" in indexed(root)
    git(root, "rm", "-q", "--cached", "a.py")
    assert "a.py" not in indexed(root)
    (root / "sub" / "pyvenv.cfg").write_text("")
    assert "sub/b.py" not in indexed(root)
    (root / "sub" / "pyvenv.cfg").unlink()
    assert "sub/b.py" in indexed(root)


def test_a_repository_that_comes_and_goes_around_the_root(root: Path):
    (root / ".gitignore").write_text("/sub/a.py\n")
    settle(root / "sub")
    assert indexed(root / "sub") >= {"a.py", "b.py"}
    git(root, "init", "-q")
    assert "a.py" not in indexed(root / "sub")
    (root / ".git").rename(root / "hidden")
    assert "a.py" in indexed(root / "sub")


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux")
def test_a_process_that_lives_on_is_told(root: Path, home: Path, monkeypatch: pytest.MonkeyPatch):
    git(root, "init", "-q")
    (home / ".gitconfig").write_text(f"[core]\n\texcludesFile = {home}/named\n")
    (home / "kept").mkdir()
    (home / "kept" / "rules").write_text("#\n")
    (root / ".git" / "info" / "exclude").unlink()
    (root / ".git" / "info" / "exclude").symlink_to(home / "kept" / "rules")
    monkeypatch.setattr(events, "TRUST_SECONDS", 3600.0)
    kept = Resident()

    def ask() -> set[str]:
        with Workspace.open(root, resident=kept) as workspace:
            return {row.path for row in workspace.files()} & {"a.py", "b.py"}

    paths = [root / ".gitignore", root / ".git" / "info" / "exclude", home / "named", root / ".cqignore"]
    paths.append(home / "kept" / "rules")
    try:
        for path in paths:
            for text, left in ((FIRST, {"b.py"}), (SECOND, {"a.py"}), (FIRST, {"b.py"}), ("#\n", {"a.py", "b.py"})):
                edit(path, text)
                assert (path.name, ask()) == (path.name, left)
                time.sleep(0.15)
                ask()
                ask()
    finally:
        for key in list(kept.watches.kept):
            kept.watches.forget(key)


@pytest.fixture
def watching(root: Path, home: Path) -> Iterator[Callable[[], Report]]:
    """Waits for the next report of `cq watch`."""
    git(root, "init", "-q")
    (home / "named").write_text("#\n")
    (home / "kept").write_text("#\n")
    (root / ".git" / "info" / "exclude").unlink()
    (root / ".git" / "info" / "exclude").symlink_to(home / "kept")
    (home / ".gitconfig").write_text(f"[core]\n\texcludesFile = {home}/named\n")
    stop, arrived = threading.Event(), threading.Condition()
    reports: list[Report] = []

    def watch() -> None:
        with Workspace.open(root) as workspace:
            for report in workspace.watch(stop=stop, debounce_ms=50):
                with arrived:
                    reports.append(report)
                    arrived.notify()

    thread = threading.Thread(target=watch)
    thread.start()

    def take() -> Report:
        with arrived:
            assert arrived.wait_for(lambda: reports, 30)
            return reports.pop(0)

    yield take
    stop.set()
    thread.join()


def test_watching_sees_rules_inside_and_outside_of_the_tree(root: Path, home: Path, watching: Callable[[], Report]):
    assert watching().added
    rules = (root / ".gitignore", home / "kept", home / "named", root / "cq.toml")
    for path in rules:
        time.sleep(0.3)
        edit(path, FIRST if path != rules[-1] else '[index]\nexclude = ["a.py"]\n')
        report = watching()
        while not report.removed:
            report = watching()
        edit(path, "#\n")
        while not report.added:
            report = watching()
