"""hover, references and diagnostics: with pyrefly and ty, with a server that fails, and with none at all."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cq import Answer, Page, Workspace
from cq.model.answer import DiagnosticDetails, HoverDetails, ReferenceDetails
from cq.model.errors import UsageError
from cq.providers.programs import Detection
from cq.providers.registry import SERVER_KINDS, Provider, Registry, serve
from cq.providers.session import ServerSpec
from cq.questions.diagnostics import DiagnosticsOptions
from cq.questions.hover import HoverOptions
from cq.questions.references import ReferencesOptions
from cq.snapshot import servers
from tests.support.servers import QUICK, STUB, Tree, write_tree

pytestmark = pytest.mark.slow

TREE = """
#- shapes.py
class Shape:
    '''Anything with an area.'''
    def area(self):
        return 2.5
#- use.py
from shapes import Shape
#                  ^^^^^ links
from shapes import Shape as S
#                  ^^^^^ links
#                           ^ links
def total(shape: Shape, thing):
#                ^^^^^ links
    S()
#   ^ links
    made = Shape()
#          ^^^^^ links
    thing.Shape
#         ^^^^^ name
    return made.area() + shape.area()
#- other.py
Shape = 1
def use():
    return Shape
#- bad.py
def broken(:
    pass
def wrong() -> int:
    return 'text'
"""
ALL_OFF = "[providers]\ndeny = ['pyrefly', 'ty', 'basedpyright']\n"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return write_tree(tmp_path_factory.mktemp("tree"), TREE)


@pytest.fixture(scope="module")
def workspace(tree: Tree) -> Iterator[Workspace]:
    with Workspace.open(tree.root, index_dir=tree.root / ".index") as workspace:
        yield workspace


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Workspace]:
    """No server can be asked."""
    write_tree(tmp_path, TREE)
    (tmp_path / "cq.toml").write_text(ALL_OFF)
    with Workspace.open(tmp_path, index_dir=tmp_path / ".index") as workspace:
        yield workspace


def details(answer: Answer, kind: type[Any]) -> list[Any]:
    rows = [finding.details for section in answer.sections for finding in section.findings]
    return [row for row in rows if isinstance(row, kind)]


def mentions(answer: Answer) -> dict[tuple[str, int], tuple[str, tuple[str, ...]]]:
    return {
        (finding.location.path, finding.location.start): (finding.details.status, finding.details.sources)
        for section in answer.sections
        for finding in section.findings
        if isinstance(finding.details, ReferenceDetails) and finding.location
    }


def test_hover_knows_what_nobody_wrote(workspace: Workspace):
    answer = workspace.hover("Shape.area")
    (row,) = details(answer, HoverDetails)
    assert (row.name, row.symbol_kind, row.source, row.returns) == ("Shape.area", "method", "lsp.pyrefly", "float")
    assert answer.summary["lsp"]["applied"] == 1
    assert answer.degraded == ()


def test_hover_of_a_use_is_about_what_stands_there(workspace: Workspace, tree: Tree):
    text = (tree.root / "use.py").read_text().split("\n")
    line = next(number for number, row in enumerate(text, 1) if "made.area" in row)
    (row,) = details(workspace.hover(f"use.py:{line}:{text[line - 1].index('made') + 1}"), HoverDetails)
    assert (row.type, row.source) == ("shapes.Shape", "lsp.pyrefly")
    (row,) = details(workspace.hover(f"use.py:{line}:{text[line - 1].index('area') + 1}"), HoverDetails)
    assert (row.name, row.returns) == ("Shape.area", "float")


def test_hover_inside_a_name_is_about_all_of_it(workspace: Workspace, tree: Tree):
    text = (tree.root / "use.py").read_text().split("\n")
    line = next(number for number, row in enumerate(text, 1) if "made.area" in row)
    col = text[line - 1].index("made") + 1
    answer = workspace.hover(f"use.py:{line}:{col + 2}")
    ((finding,),) = (section.findings for section in answer.sections if section.kind == "contracts")
    assert finding.location is not None
    assert (finding.location.start_col, finding.location.end_col) == (col, col + 4)
    (row,) = details(answer, HoverDetails)
    assert (row.name, row.type) == ("made", "shapes.Shape")


def test_hover_of_a_keyword_is_about_the_definition_around_it(workspace: Workspace):
    (row,) = details(workspace.hover("shapes.py:4:10"), HoverDetails)
    assert (row.name, row.returns) == ("Shape.area", "float")


def test_hover_without_a_server_is_as_written_and_says_what_would_help(alone: Workspace):
    answer = alone.hover("shapes.py:Shape")
    (row,) = details(answer, HoverDetails)
    assert (row.signature, row.doc, row.source) == ("class Shape", "Anything with an area.", "index")
    (note,) = answer.degraded
    assert "denied by the configuration" in note.message


def test_references_are_what_ty_says_and_what_links_say(workspace: Workspace, tree: Tree):
    answer = workspace.references("shapes.py:Shape")
    found = mentions(answer)
    marks = {(mark.path, mark.start): mark.label for mark in tree.fixture.marks}
    assert {place for place, row in found.items() if row[0] == "certain"} == {
        place for place, label in marks.items() if label != "name"
    }
    assert {place for place, row in found.items() if row == ("possible", ("name",))} == {
        place for place, label in marks.items() if label == "name"
    }
    # What stands under another name is known to links alone.
    assert [sources for status, sources in found.values() if status == "certain" and "lsp.ty" not in sources] == [
        ("links",), ("links",),
    ]  # fmt: skip
    assert answer.summary["coverage"] == [{"provider": "ty", "state": "complete", "reason": ""}]


def test_references_without_a_server_are_links_and_names(alone: Workspace, tree: Tree):
    answer = alone.references("shapes.py:Shape")
    labels = {(mark.path, mark.start): (mark.label,) for mark in tree.fixture.marks}
    assert {place: sources for place, (_, sources) in mentions(answer).items()} == labels
    assert [row["state"] for row in answer.summary["coverage"]] == ["unresolved"]
    assert "denied by the configuration" in answer.degraded[0].message
    certain = alone.references(ReferencesOptions("shapes.py:Shape", certain=True))
    assert {status for status, _ in mentions(certain).values()} == {"certain"}


def test_switched_off_no_server_is_asked_and_nothing_is_wrong_with_that(workspace: Workspace):
    for answer in (
        workspace.hover(HoverOptions("Shape", servers=False)),
        workspace.references(ReferencesOptions("Shape", servers=False)),
        workspace.diagnostics(DiagnosticsOptions(servers=False)),
    ):
        assert answer.insight is not None
        assert answer.insight.degradation.lsp == "off"
        assert answer.degraded == ()


def test_diagnostics_are_of_syntax_and_of_types(workspace: Workspace, alone: Workspace):
    answer = workspace.diagnostics(DiagnosticsOptions(("bad.py",)))
    rows = details(answer, DiagnosticDetails)
    assert ("error", "index", "syntax") in {(row.severity, row.source, row.code) for row in rows}
    (typed,) = [row for row in rows if row.code == "invalid-return-type"]
    assert (typed.source, typed.scope) == ("ty", "wrong")
    assert workspace.diagnostics(DiagnosticsOptions(("shapes.py",))).found == 0
    answer = alone.diagnostics()
    assert {row.source for row in details(answer, DiagnosticDetails)} == {"index"}
    assert [note.correlation_key for note in answer.degraded] == ["python"]
    with pytest.raises(UsageError, match="--severity"):
        workspace.diagnostics(DiagnosticsOptions(severity="fatal"))


def test_many_definitions_of_a_name_are_capped_and_the_next_page_asks_the_same(tmp_path: Path):
    body = "".join(f"class C{n}:\n    def twin(self): ...\n" for n in range(25))
    (tmp_path / "a.py").write_text(body + "def use(x):\n" + "    x.twin()\n" * 9)
    with Workspace.open(tmp_path, index_dir=tmp_path / ".index") as workspace:
        answer = workspace.hover(HoverOptions("twin", servers=False))
        assert ("definitions", 20, 5) in {(cut.cap, cut.limit, cut.omitted) for cut in answer.truncated}
        options = ReferencesOptions("twin", inside=("a.py",), page=Page(4), servers=False)
        answer = workspace.references(options)
        target = answer.insight.target if answer.insight else None
        assert target is not None
        assert (target.index, target.of) == (1, 25)  # of the likeliest, as every question
        assert answer.sections[-1].findings[0].message == (
            "cq references twin --no-lsp --in a.py --limit 4 --page 2"
        )  # fmt: skip


@pytest.mark.parametrize("mode", ["crash", "silent", "dies", "garbage"])
def test_a_server_that_fails_takes_nothing_away(tree: Tree, tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch):
    def spec(_site: Any, _detection: Any) -> ServerSpec:
        return ServerSpec("stub", (sys.executable, "-I", os.fspath(STUB), mode), {"python": "python"})

    stub = Provider(
        "stub", "stub", 1, ("python",), SERVER_KINDS, "stub", lambda _: Detection(True, "stub 1"), serve(spec)
    )  # fmt: skip
    monkeypatch.setitem(servers.BUDGETS, "interactive", QUICK)
    with Workspace.open(tree.root, index_dir=tmp_path) as workspace:
        workspace.index._registry = Registry(tree.root, providers=[stub])
        answer = workspace.hover("shapes.py:Shape")
        (row,) = details(answer, HoverDetails)
        if mode == "garbage":  # it answers after all, in words that are no contract
            assert row.source == "lsp.stub"
        else:
            assert (row.signature, row.source) == ("class Shape", "index")
            assert answer.summary["lsp"]["failed"] == 1
        answer = workspace.references("shapes.py:Shape")
        assert answer.summary["coverage"][0]["state"] == "unresolved"
        assert len(mentions(answer)) == 7
