"""What a map says of modules: sizes, dependencies with their sites, cycles and what breaks them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cq import Answer, UsageError
from cq.model.answer import DependencyDetails, ModuleDetails
from cq.questions.map import MapOptions
from cq.surfaces.render.answer import render_answer
from tests.support.checks import open_fixture

FILES = """
#- core/db.py
from ui import page
LIMIT = 1
def run():
    return page.draw()
class Row: ...
#- core/rows.py
from core.db import Row
def make(): return Row()
#- ui/__init__.py
#- ui/page.py
from core.rows import make
from core.db import run
def draw(): return make()
def redraw():
    run()
    return run()
#- main.py
from ui.page import draw
draw()
"""


def modules(answer: Answer) -> dict[str, ModuleDetails]:
    return {row.name: row for row in details(answer, "modules") if isinstance(row, ModuleDetails)}


def arrows(answer: Answer, kind: str = "dependencies") -> dict[tuple[str, str], DependencyDetails]:
    return {(row.source, row.target): row for row in details(answer, kind) if isinstance(row, DependencyDetails)}


def details(answer: Answer, kind: str) -> list:
    return [finding.details for section in answer.sections if section.kind == kind for finding in section.findings]


def test_directories_are_counted_as_a_whole(tmp_path: Path):
    with open_fixture(tmp_path, FILES) as workspace:
        answer = workspace.map()
    rows = modules(answer)
    assert {name: (row.module_kind, row.files, row.lines) for name, row in rows.items()} == {
        "core": ("directory", 2, 7), "ui": ("directory", 2, 6), "main.py": ("file", 1, 2),
    }  # fmt: skip
    assert (rows["core"].fan_in, rows["core"].fan_out, rows["main.py"].fan_in) == (1, 1, 0)
    found = arrows(answer)
    assert set(found) == {("core", "ui"), ("ui", "core"), ("main.py", "ui")}
    assert found["ui", "core"].certain["calls"] == 3
    assert found["ui", "core"].certain["imports"] == 2
    assert {"ui/page.py:1", "ui/page.py:3", "ui/page.py:5"} <= set(found["ui", "core"].sites)
    assert found["ui", "core"].total == sum(found["ui", "core"].certain.values())


def test_the_fewest_dependencies_that_break_a_cycle_are_told(tmp_path: Path):
    with open_fixture(tmp_path, FILES) as workspace:
        answer = workspace.map()
        text = render_answer(answer)
    assert list(arrows(answer, "cycle")) == [("core", "ui")]  # has fewer sites than the other
    assert answer.summary["cycles"] == 1
    assert "the fewest dependencies" in text


def test_in_a_directory_lie_its_files(tmp_path: Path):
    with open_fixture(tmp_path, FILES) as workspace:
        inside = workspace.map(MapOptions(inside=("core",)))
        files = workspace.map(MapOptions(by="file"))
    assert set(modules(inside)) == {"core/db.py", "core/rows.py"}
    assert set(arrows(inside)) == {("core/rows.py", "core/db.py")}  # what leads out of it is not mapped
    assert ("core/db.py", "ui/page.py") in arrows(files)
    assert set(arrows(files)) >= {("ui/page.py", "core/rows.py"), ("ui/page.py", "core/db.py")}


def test_definitions_are_modules_too(tmp_path: Path):
    with open_fixture(tmp_path, FILES) as workspace:
        answer = workspace.map(MapOptions(inside=("core",), by="definition"))
    assert ("core/rows.py:make", "core/db.py:Row") in arrows(answer)
    assert modules(answer)["core/db.py:Row"].module_kind == "class"
    assert modules(answer)["core/db.py:run"].lines == 2


@pytest.mark.parametrize(("heat", "hottest"), [("fan-in", {"ui"}), ("fan-out", {"core", "ui", "main.py"})])
def test_heat_is_what_is_asked_for(tmp_path: Path, heat: str, hottest: set[str]):
    with open_fixture(tmp_path, FILES) as workspace:
        rows = modules(workspace.map(MapOptions(heat=heat)))
    assert {name for name, row in rows.items() if row.heat == 1} == hottest


def test_churn_counts_commits_and_says_when_there_are_none(tmp_path: Path):
    with open_fixture(tmp_path, FILES) as workspace:
        none = workspace.map(MapOptions(heat="churn"))
        assert [event.category for event in none.degraded if event.stage == "map"] == ["history"]
        names = ("-c", "user.name=t", "-c", "user.email=t@t")
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
            subprocess.run(["git", *names, *words], cwd=workspace.root, check=True, capture_output=True)
        (workspace.root / "core" / "db.py").write_text("LIMIT = 2\ndef run(): ...\n")
        subprocess.run(["git", *names, "commit", "-qam", "y"], cwd=workspace.root, check=True, capture_output=True)
        rows = modules(workspace.map(MapOptions(heat="churn")))
    assert (rows["core"].value, rows["ui"].value) == (2, 1)


def test_what_is_possible_alone_is_no_cycle(tmp_path: Path):
    files = """
    #- a.py
    from b import g
    def f(x): return g()
    #- b.py
    try:
        from a import f as h
    except ImportError:
        from c import f as h
    def g(): return h(1)
    #- c.py
    def f(x): ...
    """
    with open_fixture(tmp_path, files) as workspace:
        answer = workspace.map(MapOptions(by="file"))
    found = arrows(answer)
    assert found["b.py", "a.py"].possible["calls"] == 1
    assert "calls" not in found["b.py", "a.py"].certain


def test_a_directory_without_code_is_said_to_be_none(tmp_path: Path):
    with open_fixture(tmp_path, FILES) as workspace, pytest.raises(UsageError, match="holds no code"):
        workspace.map(MapOptions(inside=("nothing",)))
