"""What nothing reaches, and how sure that is."""

from __future__ import annotations

from pathlib import Path

import pytest

from cq import DeadDetails, DeadOptions, Workspace
from cq.model.errors import UsageError
from tests.support.fixture import parse_fixture

FILES = """
#- app/main.py
from threading import Thread
from flask import Flask
from app.kinds import Base, Low
site = Flask(__name__)
@site.get("/")
def page(): return used()
def used(): return Low().run()
def _alone(): return _chained()
def _chained(): return 1
def lonely(): return 1
def _named(): return 1
def _visit_rows(self): return 1
def save(): return 1
def find(kind): return getattr(find, f"_visit_{kind}"), find
class Worker(Thread):
    def run_it(self): return 1
print(find, Worker, "_named")
#- app/kinds.py
class Base:
    def run(self): return self.step()
    def step(self): return 1
    def _over(self): return 1
class Low(Base):
    def step(self): return 1
    def _never(self): return 1
def helper():
    def _inner(): return 1
    return 1
#- app/other.py
from app import kinds
class save: ...
value = kinds.helper() + save()
#- tests/test_a.py
from app.main import lonely_in_tests
"""


def ask(tmp_path: Path, **asked: float) -> dict[str, tuple[str, float]]:
    root = tmp_path / "repo"
    for path, text in parse_fixture(FILES).files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    with Workspace.open(root, index_dir=tmp_path / "index") as workspace:
        answer = workspace.dead(DeadOptions(**asked))  # pyright: ignore[reportArgumentType]
    found: dict[str, tuple[str, float]] = {}
    for finding in (each for section in answer.sections for each in section.findings):
        assert isinstance(finding.details, DeadDetails)
        found[finding.details.name] = finding.details.why, finding.confidence
    return found


def test_what_nothing_reaches(tmp_path: Path):
    found = ask(tmp_path)
    assert {name: confidence for name, (_, confidence) in found.items()} == {
        "_alone": 0.9, "_chained": 0.9, "Base._over": 0.9, "Low._never": 0.9, "helper._inner": 0.9, "lonely": 0.6,
        "save": 0.6,
    }  # fmt: skip
    assert found["_chained"][0] == "only what is dead names it"
    assert found["save"][0].startswith("every mention of its name means something else")
    assert found["lonely"][0] == "nothing names it here, but it is public"


def test_what_a_text_or_getattr_may_name(tmp_path: Path):
    found = ask(tmp_path, least=0.0)
    assert found["_named"][1] == found["_visit_rows"][1] == 0.3
    assert "a text at app/main.py" in found["_named"][0]
    assert "'_visit_'" in found["_visit_rows"][0]
    assert "Worker.run_it" not in found  # its base is from outside, and may call it
    with pytest.raises(UsageError, match="out of range"):
        ask(tmp_path, least=2.0)
