"""What a change can break, as git tells it: lines belong to definitions, and what is gone is still named."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from cq import Answer, Workspace
from cq.model.answer import NodeDetails
from cq.model.history import Change
from cq.questions.impact import ImpactOptions
from cq.source.checkout import GitError
from cq.source.git import find_changes

A = """LIMIT = 3

def run(x):
    return x + LIMIT

def last():
    first = 0
    return 1

class K:
    size = 1

    def go(self):
        return run(self.size)
"""
B = """from a import run, LIMIT
import a
def main():
    return run(1)
def limit():
    return LIMIT
def read():
    return a.last
"""


def git(root: Path, *words: str) -> None:
    names = ("-c", "user.name=t", "-c", "user.email=t@t")
    subprocess.run(["git", *names, *words], cwd=root, check=True, capture_output=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    root.mkdir()
    git(root, "init", "-q")
    (root / "a.py").write_text(A)
    (root / "b.py").write_text(B)
    git(root, "add", ".")
    git(root, "commit", "-qm", "x")
    return root


def ask(root: Path) -> Answer:
    with Workspace.open(root, index_dir=root.parent / "index") as workspace:
        return workspace.impact(ImpactOptions(changed=find_changes(root, "HEAD"), depth=1))


def names(answer: Answer, kind: str) -> set[str]:
    rows = [f for s in answer.sections if s.kind == kind for f in s.findings]
    return {f.details.name if isinstance(f.details, NodeDetails) else f.message for f in rows}


def test_lines_by_git(root: Path):
    (root / "a.py").write_text("+++ b/x\n" + A.replace("LIMIT = 3\n", "").replace("return 1", "return 2"))
    (root / "new.py").write_text("a\nb\n")
    (root / "\u00e9 t.py").write_text("x = 1\n")
    git(root, "add", "\u00e9 t.py")
    for name, value in (("diff.noprefix", "true"), ("diff.mnemonicPrefix", "true"), ("diff.renames", "copies")):
        git(root, "config", name, value)
    assert find_changes(root, "HEAD") == {
        "a.py": Change((1, 8), (), (b"LIMIT = 3\n", b"    return 1\n")),
        "new.py": Change((1, 2)),
        "\u00e9 t.py": Change((1,)),
    }


def test_what_is_no_revision_is_said(root: Path, tmp_path: Path):
    with pytest.raises(GitError, match="no such commit"):
        find_changes(root, "nowhere")
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q")
    with pytest.raises(GitError, match="nothing is committed"):
        find_changes(empty, "HEAD")


@pytest.mark.parametrize(
    ("before", "after", "changed", "dependents"),
    [
        ("x + LIMIT", "x - LIMIT", {"function run"}, {"K.go", "b", "main"}),
        ("LIMIT = 3", "LIMIT = 4", {"constant LIMIT"}, {"run", "b", "limit"}),
        ("size = 1", "size = 2", {"field K.size"}, {"K.go"}),
        ("return 1", "return 2", {"function last"}, {"read"}),
        # A line that is gone belongs to what is around it.
        ("    first = 0\n", "", {"function last"}, {"read"}),
    ],
)
def test_changed_lines_are_what_they_belong_to(
    root: Path, before: str, after: str, changed: set[str], dependents: set[str]
):
    (root / "a.py").write_text(A.replace(before, after))
    answer = ask(root)
    assert (names(answer, "changed"), names(answer, "dependents")) == (changed, dependents)


def test_what_is_gone_is_still_named(root: Path):
    (root / "a.py").write_text(A.replace("def run(x):\n    return x + LIMIT\n\n", ""))
    answer = ask(root)
    assert names(answer, "changed") == set()  # its neighbours did not change
    (section,) = (s for s in answer.sections if s.kind == "left")
    found = [(f.location.path, f.location.start_line, f.details.status) for f in section.findings if f.location]
    assert found == [("b.py", 1, "resolved"), ("a.py", 11, "ambiguous"), ("b.py", 4, "ambiguous")]


def test_a_file_under_another_name_is_all_new(root: Path):
    git(root, "mv", "a.py", "c.py")
    answer = ask(root)
    assert {"function run", "class K"} <= names(answer, "changed")
    assert "run" in names(answer, "left")


def test_lines_of_no_definition_are_counted(root: Path):
    (root / "b.py").write_text("import os\n" + B)
    answer = ask(root)
    assert answer.found == 0
    assert "1 changed lines stand in no definition" in answer.degraded[0].message


@pytest.mark.skipif(os.name == "nt", reason="its files have no time that nobody sets")
def test_a_time_that_is_set_back_hides_no_change(root: Path):
    os.utime(root / "b.py", (1, 1))
    git(root, "add", ".")
    path = root / ".git" / "index"
    os.utime(path, (path.stat().st_mtime + 9,) * 2)  # long after, so that no entry counts as written just then
    (root / "b.py").write_text(B.replace("limit", "timil"))
    os.utime(root / "b.py", (1, 1))
    assert [*find_changes(root, "HEAD")] == ["b.py"]
