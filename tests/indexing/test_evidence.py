"""What outside sources say about calls: it closes what was open, lasts as long as the texts, and overrules nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cq import Workspace
from cq.indexing.evidence import put_evidence
from cq.model.answer import CallDetails
from cq.model.edge import Candidate
from cq.model.evidence import CONFIDENCE, Statement
from cq.questions.calls import CallsOptions
from cq.source.read import content_hash
from tests.support.servers import write_tree

TREE = """
#- a.py
class A:
    def go(self): ...
class B:
    def go(self): ...
    def __init__(self): ...
#- b.py
import a
def use(thing, make):
    thing.go()
    make()
    known()
def known(): ...
"""
GO, MAKE, KNOWN = 0, 1, 2  # the calls of b.py
A_GO, B_GO = Candidate("a.py", 0, "A.go"), Candidate("a.py", 0, "B.go")
B, B_INIT = Candidate("a.py", 0, "B"), Candidate("a.py", 0, "B.__init__")


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    (tmp_path / "repo").mkdir()
    root = write_tree(tmp_path / "repo", TREE).root
    with Workspace.open(root, index_dir=tmp_path / "index") as workspace:
        workspace.refresh()
        yield workspace


def say(workspace: Workspace, *statements: Statement, source: str = "scip") -> int:
    text_hash = content_hash((workspace.root / "b.py").read_bytes())
    return put_evidence(
        workspace.index.place.file, workspace.root, source, "1", [("b.py", text_hash, statements)]
    )  # fmt: skip


def callers(workspace: Workspace, target: str) -> list[tuple[str, str, tuple[str, ...]]]:
    answer = workspace.calls(CallsOptions(target))
    details = [finding.details for section in answer.sections for finding in section.findings]
    return [(d.callee, d.status, d.evidence) for d in details if isinstance(d, CallDetails)]


def test_a_call_that_was_open_is_certain_by_who_said_it(workspace: Workspace):
    assert callers(workspace, "A.go") == [("thing.go", "possible", ("name",))]
    generation = workspace.status().freshness.generation
    assert say(workspace, Statement(0, GO, A_GO), Statement(0, MAKE, B, constructor=B_INIT)) == 2
    assert workspace.status().freshness.generation == generation + 1
    assert callers(workspace, "A.go") == [("thing.go", "certain", ("scip",))]
    assert callers(workspace, "B.go") == []
    assert callers(workspace, "B") == [("make", "certain", ("scip",))]
    assert callers(workspace, "B.__init__") == [("make", "certain", ("scip",))]
    answer = workspace.graph("use")
    assert {edge.target: edge.confidence for edge in answer.edges if edge.kind == "calls"} == {
        "a.py:A.go": CONFIDENCE, "a.py:B.__init__": CONFIDENCE, "b.py:known": 0.99,
    }  # fmt: skip


def test_a_call_that_leads_outside_means_nothing_here(workspace: Workspace):
    say(workspace, Statement(0, GO, module="vendor"))
    assert callers(workspace, "A.go") == []


@pytest.mark.parametrize("path", ["a.py", "b.py"])
def test_it_lasts_as_long_as_both_texts(workspace: Workspace, path: str):
    say(workspace, Statement(0, GO, A_GO))
    (workspace.root / "c.py").write_text("x = 1\n")
    assert callers(workspace, "A.go") == [("thing.go", "certain", ("scip",))]
    text = (workspace.root / path).read_text()
    (workspace.root / path).write_text(f"{text}# more\n")
    assert callers(workspace, "A.go") == [("thing.go", "possible", ("name",))]
    (workspace.root / path).write_text(text)
    assert callers(workspace, "A.go") == [("thing.go", "certain", ("scip",))]


def test_what_a_source_says_again_replaces_what_it_said(workspace: Workspace):
    say(workspace, Statement(0, GO, A_GO))
    say(workspace, Statement(0, GO, B_GO))
    assert callers(workspace, "A.go") == []
    assert callers(workspace, "B.go") == [("thing.go", "certain", ("scip",))]
    say(workspace)
    assert callers(workspace, "A.go") == [("thing.go", "possible", ("name",))]


def test_the_status_tells_who_was_asked_and_a_file_that_is_gone_is_forgotten(workspace: Workspace):
    say(workspace, Statement(0, GO, A_GO), source="lsp.ty")
    assert workspace.status().evidence == {"lsp.ty (1)": 1}
    (workspace.root / "b.py").unlink()
    workspace.refresh()
    put_evidence(workspace.index.place.file, workspace.root, "scip", "", [("a.py", "", [])])
    assert workspace.status().evidence == {"scip": 1}


def test_a_target_that_is_no_file_of_the_tree_is_left_out(workspace: Workspace):
    assert say(workspace, Statement(0, GO, Candidate("gone.py", 0, "f"))) == 0
    assert callers(workspace, "A.go") == [("thing.go", "possible", ("name",))]


def conflicts(workspace: Workspace) -> list[tuple[str, str]]:
    validation = workspace.validate()
    assert validation.ok
    assert validation.conflict_count == len(validation.conflicts)
    return [(found.where, found.what) for found in validation.conflicts]


def test_what_we_are_sure_of_stands_and_the_contradiction_is_listed(workspace: Workspace):
    say(workspace, Statement(0, KNOWN, A_GO), Statement(0, GO, A_GO), source="lsp.ty")
    assert callers(workspace, "known") == [("known", "certain", ("scope",))]
    assert conflicts(workspace) == [("b.py:5", "known is b.py:known; lsp.ty says a.py:A.go")]


def test_an_index_that_was_handed_over_outranks_us_and_servers(workspace: Workspace):
    say(workspace, Statement(0, KNOWN, A_GO), Statement(0, GO, B_GO))
    say(workspace, Statement(0, GO, A_GO), source="lsp.ty")
    assert callers(workspace, "known") == []
    assert callers(workspace, "A.go") == [("known", "certain", ("scip",))]
    assert callers(workspace, "B.go") == [("thing.go", "certain", ("scip",))]
    assert [where for where, _ in conflicts(workspace)] == ["b.py:3", "b.py:5"]


def test_sources_that_contradict_each_other_close_nothing(workspace: Workspace):
    say(workspace, Statement(0, GO, A_GO), source="lsp.ty")
    say(workspace, Statement(0, GO, A_GO), source="lsp.x")
    assert callers(workspace, "A.go") == [("thing.go", "certain", ("lsp.ty",))]
    assert conflicts(workspace) == []
    say(workspace, Statement(0, GO, B_GO), source="lsp.x")
    assert callers(workspace, "A.go") == [("thing.go", "possible", ("name",))]
    assert conflicts(workspace) == [("b.py:3", "thing.go is a.py:A.go for lsp.ty; lsp.x says a.py:B.go")]


def test_who_agrees_is_no_contradiction(workspace: Workspace):
    say(workspace, Statement(0, KNOWN, Candidate("b.py", 0, "known#2")))
    assert conflicts(workspace) == []
