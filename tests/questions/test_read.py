"""What `cq read --links` says of every name, and `--blame` of every line."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cq import Answer
from cq.model.answer import BlameDetails, NamesDetails, SourceDetails
from cq.questions.read import ReadOptions
from cq.surfaces.render.answer import render_answer
from tests.support.checks import open_fixture

FILES = """
#- db.py
LIMIT = 3
class Store:
    def save(self, row): ...
class Other:
    def save(self, row): ...
def make(): return Store()
#- app.py
import os
from db import LIMIT as most, Store, make
def main(unknown, path):
    store = Store()
    store.save(path)
    unknown.save(most)
    os.remove(path)
    nowhere.gone
"""


def details_of(answer: Answer, kind: type) -> list:
    found = [finding.details for section in answer.sections for finding in section.findings]
    return [details for details in found if isinstance(details, kind)]


def meanings(answer: Answer) -> dict[tuple[int, str], tuple[str, list[str]]]:
    """(line, name) → status and where it leads; of a name that a line has twice the last."""
    (details,) = details_of(answer, NamesDetails)
    return {
        (name.line, name.name): (
            name.status,
            [f"{each.path}:{each.line} {each.name}" for each in map(details.targets.__getitem__, name.targets)],
        )
        for name in details.names
    }


def test_every_name_is_told_with_what_it_means(tmp_path: Path):
    with open_fixture(tmp_path, FILES) as workspace:
        known = meanings(workspace.read(ReadOptions("app.py", links=True)))
    assert known[4, "Store"] == ("certain", ["db.py:2 Store"])
    assert known[5, "save"] == ("certain", ["db.py:3 Store.save"])
    assert known[6, "save"][0] == "possible"
    assert set(known[6, "save"][1]) == {"db.py:3 Store.save", "db.py:5 Other.save"}
    assert known[6, "most"] == ("certain", ["db.py:1 LIMIT"])  # a value under another name
    assert known[5, "store"] == ("certain", ["app.py:4 main.store"])
    assert known[5, "path"] == ("certain", ["app.py:3 main.path"])
    assert known[3, "main"] == ("definition", ["app.py:3 main"])
    assert known[7, "os"] == ("external", [])
    assert known[8, "gone"] == ("unknown", [])


def test_no_identifier_is_missing(tmp_path: Path):
    """Against the compiler's own tree."""
    import ast

    with open_fixture(tmp_path, FILES) as workspace:
        (details,) = details_of(workspace.read(ReadOptions("app.py", links=True)), NamesDetails)
        text = workspace.text("app.py").decode()
    told = {(name.line, name.col - 1) for name in details.names}
    wanted = {(node.lineno, node.col_offset) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    assert wanted <= told
    lines = text.splitlines()
    assert all(lines[name.line - 1][name.col - 1 :].startswith(name.name) for name in details.names)


def test_a_stretch_has_its_own_names_alone(tmp_path: Path):
    with open_fixture(tmp_path, FILES) as workspace:
        known = meanings(workspace.read(ReadOptions("app.py:5-6", links=True)))
        text = render_answer(workspace.read(ReadOptions("app.py:5-5", links=True)))
    assert {line for line, _ in known} == {5, 6}
    assert "  5:11 save: certain db.py:3 Store.save" in text.splitlines()


def test_tokens_are_told_line_by_line_in_embedded_code_too(tmp_path: Path):
    page = "#- a.md\n# Title\n```python\ndef f():\n    '''two\n    lines'''\n```\n"
    with open_fixture(tmp_path, page) as workspace:
        (details,) = details_of(workspace.read(ReadOptions("a.md", links=True)), NamesDetails)
    assert {(3, 1, 3, "keyword"), (4, 5, 6, "string"), (5, 1, 12, "string")} <= set(details.tokens)


def test_a_small_budget_counts_what_it_leaves_out(tmp_path: Path):
    from cq import Page

    with open_fixture(tmp_path, FILES) as workspace:
        answer = workspace.read(ReadOptions("app.py:1-8", links=True, page=Page(0, 100)))
    (details,) = details_of(answer, NamesDetails)
    cut = {each.scope: each for each in answer.truncated}["links"]
    assert len(details.names) == cut.limit
    assert cut.omitted == cut.observed - cut.limit > 0


def git(root: Path, *words: str, name: str = "Ann") -> None:
    names = ("-c", f"user.name={name}", "-c", "user.email=a@b")
    subprocess.run(["git", *names, *words], cwd=root, check=True, capture_output=True)


def test_who_wrote_a_line_is_told(tmp_path: Path):
    with open_fixture(tmp_path, "#- a.py\none = 1\ntwo = 2\n#- sub/b.py\nx = 1\n") as workspace:
        git(workspace.root, "init", "-q")
        (answer,) = [workspace.read(ReadOptions("a.py", blame=True))]
        assert [event.category for event in answer.degraded if event.stage == "blame"] == ["git"]
        git(workspace.root, "add", ".")
        git(workspace.root, "commit", "-qm", "begin")
        (workspace.root / "a.py").write_text("one = 1\ntwo = 22\nthree = 3\n")
        git(workspace.root, "commit", "-qam", "change <two>", name="Bob\u202e")
        (workspace.root / "a.py").write_text("zero = 0\none = 1\ntwo = 22\nthree = 3\n")
        (details,) = details_of(workspace.read(ReadOptions("a.py", blame=True)), BlameDetails)
        told = [(each.first, each.count, each.author, each.summary) for each in details.lines]
        assert told == [(1, 1, "", ""), (2, 1, "Ann", "begin"), (3, 2, "Bob\u202e", "change <two>")]
        (details,) = details_of(workspace.read(ReadOptions("a.py:3-3", blame=True)), BlameDetails)
        assert [(each.first, each.count) for each in details.lines] == [(3, 1)]
        (details,) = details_of(workspace.read(ReadOptions("sub/b.py", blame=True)), BlameDetails)
        assert details.lines[0].author == "Ann"
        (workspace.root / "c.py").write_text("x = 1\ny = 2\n")
        (details,) = details_of(workspace.read(ReadOptions("c.py", blame=True)), BlameDetails)
        assert [(each.first, each.count, each.commit) for each in details.lines] == [(1, 2, "")]


def test_line_ends_of_a_checkout_are_no_change(tmp_path: Path):
    with open_fixture(tmp_path, "#- a.py\none = 1\ntwo = 2\n") as workspace:
        git(workspace.root, "init", "-q")
        git(workspace.root, "add", ".")
        git(workspace.root, "commit", "-qm", "begin")
        (workspace.root / "a.py").write_bytes(b"one = 1\r\ntwo = 2\r\n")
        (details,) = details_of(workspace.read(ReadOptions("a.py", blame=True)), BlameDetails)
    assert [(each.first, each.count, each.author) for each in details.lines] == [(1, 2, "Ann")]


@pytest.mark.parametrize("flags", [{"links": True}, {"blame": True}, {}])
def test_the_source_is_there_whatever_is_asked_beside_it(tmp_path: Path, flags: dict[str, bool]):
    with open_fixture(tmp_path, FILES) as workspace:
        (details,) = details_of(workspace.read(ReadOptions("app.py:1-2", **flags)), SourceDetails)
    assert details.source == "import os\nfrom db import LIMIT as most, Store, make\n"
