"""Several targets in one call, and counts instead of places."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cq.answers.page import Page
from cq.model.answer import Answer
from cq.model.errors import UsageError
from cq.questions.calls import CallsOptions
from cq.questions.references import ReferencesOptions
from cq.questions.search import SearchOptions
from cq.questions.sig_impact import SignatureOptions
from cq.workspace import Workspace
from tests.support.checks import open_fixture

TREE = """
#- app/store.py
def save(row):
    return row


def load(key):
    return save(key)
#- app/use.py
from app.store import load, save


def main():
    save(1)
    save(2)
    load(3)
#- tests/test_use.py
from app.store import save


def test_it():
    save(4)
"""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with open_fixture(tmp_path_factory.mktemp("several"), TREE) as opened:
        yield opened


def count(workspace: Workspace, by: str) -> dict[str, int]:
    answer = workspace.calls(CallsOptions("save", page=Page(by=by)))
    (section,) = answer.sections
    return {finding.message.partition(" ")[2]: finding.count for finding in section.findings}


def test_calls_are_counted_by_what_is_asked_for(workspace: Workspace):
    assert count(workspace, "file") == {"app/use.py": 2, "app/store.py": 1, "tests/test_use.py": 1}
    assert count(workspace, "directory") == {"app": 3, "tests": 1}
    assert count(workspace, "kind") == {"certain call": 4}
    assert count(workspace, "caller") == {"app/use.py:main": 2, "app/store.py:load": 1, "tests/test_use.py:test_it": 1}


def test_a_count_is_of_all_places_whatever_a_page_holds(workspace: Workspace):
    answer = workspace.calls(CallsOptions("save", page=Page(limit=1, by="count")))
    assert answer.insight is not None
    assert (answer.sections, answer.insight.headline) == ((), "4 call sites in 3 files (1 in 1 test file)")
    pages = [workspace.calls(CallsOptions("save", page=Page(1, 8000, n, by="file"))) for n in (1, 2, 3)]
    assert [p.sections[0].findings[0].message for p in pages] == [
        "2 app/use.py",
        "1 app/store.py",
        "1 tests/test_use.py",
    ]
    assert sum(f.count for f in workspace.search(SearchOptions("save", page=Page(by="kind"))).sections[0].findings) == 7
    assert workspace.references(ReferencesOptions("load", page=Page(by="count"), servers=False)).found == 2


def test_what_lists_no_places_is_not_counted(workspace: Workspace):
    from cq.questions.imports import ImportsOptions

    with pytest.raises(UsageError, match="lists no places"):
        workspace.imports(ImportsOptions(page=Page(by="file")))


def test_several_targets_are_answered_within_one_budget(workspace: Workspace):
    page = Page(budget=7000)
    answer = workspace.ask([CallsOptions("save", page=page), CallsOptions("load", page=page), CallsOptions("lod")])
    assert [(part.summary["query"], part.found) for part in answer.parts] == [("save", 4), ("load", 1), ("lod", 0)]
    assert answer.found == 5
    assert answer.parts[0].sections[0] == workspace.calls(CallsOptions("save")).sections[0]
    assert answer.parts[2].suggestions == ("load",)
    alone = workspace.ask([CallsOptions("save", page=page)])
    assert alone.parts == (alone,)
    with pytest.raises(UsageError, match="about one target"):
        workspace.ask([CallsOptions("save", page=page.next()), CallsOptions("load")])


UNLINKED = """
#- app/store.py
class Store:
    def save(self, row):
        return row


def keep(row):
    return row
#- app/use.py
from app.store import Store, keep
from elsewhere import find


def main(given):
    Store().save(1)
    given.save(1, 2, 3)
    find().save()
#- tests/test_use.py
def test_it(store):
    store.save()
"""


@pytest.fixture(scope="module")
def unlinked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with open_fixture(tmp_path_factory.mktemp("unlinked"), UNLINKED) as opened:
        yield opened


def find_unlinked(answer: Answer) -> list[str]:
    return [event.message for event in answer.degraded if event.category == "unlinked"]


def test_calls_that_no_link_knows_are_said(unlinked: Workspace):
    for answer in (
        unlinked.calls(CallsOptions("Store.save")),
        unlinked.impact("Store.save"),
        unlinked.graph("Store.save"),
        unlinked.ask(SignatureOptions("Store.save", "save(self)")),
    ):
        (said,) = find_unlinked(answer)
        assert said.startswith(
            "2 more calls of 'save' could not be linked to any definition: app/use.py:7, tests/test_use.py:2; "
        )
        assert "`cq search save --kind call" in said
        risk = answer.insight.risk if answer.insight else None
        assert risk is None or "no test is known to reach it" not in risk.drivers
    assert find_unlinked(unlinked.calls("keep")) == []


def test_a_filter_hides_no_test(unlinked: Workspace):
    """`--in app` leaves the tests out: that none mentions it is not known then."""
    for options, said in ((SearchOptions("keep"), True), (SearchOptions("keep", inside=("app",)), False)):
        answer = unlinked.search(options)
        assert answer.insight is not None
        assert answer.insight.risk is not None
        assert ("no test mentions it" in answer.insight.risk.drivers) is said


def test_what_would_break_is_apart_from_what_may_be_another_function(unlinked: Workspace):
    answer = unlinked.ask(SignatureOptions("Store.save", "save(self, row, extra)"))
    assert answer.insight is not None
    assert answer.insight.headline == "1 call site in 1 file would break"
    assert [section.title for section in answer.sections] == ["Would Break"]


def test_a_package_that_is_the_root_itself_is_imported_from_outside(tmp_path: Path):
    """The calls are there; that they mean the definition is not known, and said."""
    tree = "#- _utils.py\ndef check(x):\n    return x\n#- app.py\nfrom pkg._utils import check\n\ncheck(1)\n"
    with open_fixture(tmp_path, tree) as workspace:
        (said,) = find_unlinked(workspace.calls("check"))
        assert said.startswith("1 more call of 'check' could not be linked to any definition: app.py:3; ")
