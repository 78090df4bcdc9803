"""`cq log`: the commits that changed one definition."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cq import Answer, CommitDetails, LogOptions, UsageError, Workspace
from tests.support.history import commit, git

ONE = (
    "def load(path):\n    rows = []\n    for line in open(path):\n        rows.append(line.strip())\n    return rows\n"
)
OTHER = "def other():\n    return 1\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    commit(root, {"a.py": ONE}, "made")
    commit(root, {"a.py": ONE + "\n\n" + OTHER}, "beside")
    commit(root, {"a.py": ONE.replace("rows = []", "# kept\n    rows = []") + "\n\n" + OTHER}, "comment")
    commit(root, {"a.py": ONE.replace("(path)", "(path, mode)", 1) + "\n\n" + OTHER}, "signature")
    changed = ONE.replace("(path)", "(path, mode)", 1).replace("strip", "rstrip")
    commit(root, {"a.py": changed + "\n\n" + OTHER}, "body")
    commit(root, {"a.py": OTHER, "b.py": changed.replace("load", "load_rows")}, "moved")
    commit(root, {"a.py": OTHER + "x = 1\n"}, "elsewhere")
    return root


def ask(root: Path, target: str, **options: bool) -> Answer:
    with Workspace.open(root, index_dir=root.parent / "i") as workspace:
        return workspace.log(LogOptions(target, **options))


def tell(answer: Answer) -> list[tuple[str, tuple[str, ...]]]:
    rows = [finding.details for section in answer.sections for finding in section.findings]
    return [(row.subject, row.changes) for row in rows if isinstance(row, CommitDetails)]


def test_a_definition_is_followed_through_names_and_files(root: Path):
    answer = ask(root, "load_rows")
    assert tell(answer) == [
        ("moved", ("renamed", "moved")), ("body", ("body",)), ("signature", ("signature",)),
        ("comment", ("comments or format",)), ("made", ("introduced",)),
    ]  # fmt: skip
    assert answer.summary["introduced"] == git(root, "rev-parse", "HEAD~6")
    assert tell(ask(root, "load_rows", introduced=True)) == [("made", ("introduced",))]
    assert tell(ask(root, "other")) == [("beside", ("introduced",))]


def test_what_is_not_committed_comes_first(root: Path):
    (root / "a.py").write_text(OTHER.replace("1", "2") + "\n\ndef new(): ...\n")
    assert tell(ask(root, "other")) == [("", ("body",)), ("beside", ("introduced",))]
    assert tell(ask(root, "new")) == [("", ("introduced",))]


def test_a_merge_that_takes_it_over_is_not_listed(root: Path):
    git(root, "checkout", "-q", "-b", "side", "HEAD~2")
    commit(root, {"c.py": "def side(a):\n    go(a)\n    return a + 1\n"}, "on the side")
    git(root, "checkout", "-q", "main")
    git(root, "merge", "-q", "--no-ff", "-m", "merge", "side")
    assert tell(ask(root, "side")) == [("on the side", ("introduced",))]


def test_it_names_the_commits_that_git_finds_by_lines(root: Path):
    """Beside `git log -L`, which follows neither names nor files."""
    shown = git(root, "log", "--format=commit %s", "-L", ":load:a.py", "HEAD~2")
    subjects = [line[7:] for line in shown.splitlines() if line.startswith("commit ")]
    subjects.remove("beside")  # to git the blank lines behind a function are a part of it
    with Workspace.open(root, index_dir=root.parent / "i") as workspace:
        found = tell(workspace.at("HEAD~2").log("load"))
    assert [subject for subject, _ in found] == subjects


def test_where_there_is_nothing_to_tell(root: Path, tmp_path: Path):
    assert ask(root, "nosuch").found == 0
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "a.py").write_text(ONE)
    with pytest.raises(UsageError, match="git"):
        ask(plain, "load")
    assert subprocess.run(["git", "status", "--porcelain"], cwd=root, capture_output=True, check=True).stdout == b""
