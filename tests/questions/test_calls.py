"""`cq calls`: what many possible call sites have in common, and what narrows them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cq import Answer, Workspace
from cq.answers.page import Page
from cq.model.answer import CallDetails
from cq.model.errors import UsageError
from cq.questions.calls import CallsOptions

TARGET = """
class Rows:
    def filter(self, x):
        return self
    def first(self):
        return self.filter(1)
"""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    root = tmp_path_factory.mktemp("calls")
    for folder, receiver, count in (
        ("shop/cart", "rows", 30),
        ("shop/pay", "x.objects", 20),
        ("tests/pay", "x.using(a)", 10),
    ):
        (root / folder).mkdir(parents=True)
        body = "".join(f"def f{number}(rows, x, a):\n    {receiver}.filter({number})\n" for number in range(count))
        (root / folder / "use.py").write_text(f"from rows import Rows\n{body}")
    (root / "rows.py").write_text(TARGET)
    (root / "other.py").write_text("class Other:\n    def filter(self, x):\n        return x\n")
    with Workspace.open(root, index_dir=root.with_name("index")) as workspace:
        yield workspace


def groups(answer: Answer) -> dict[str, str]:
    return {
        finding.category: finding.message
        for section in answer.sections
        if section.kind == "groups"
        for finding in section.findings
    }


def receivers(answer: Answer) -> set[str]:
    rows = [finding.details for section in answer.sections for finding in section.findings]
    return {row.receiver for row in rows if isinstance(row, CallDetails)}


def test_many_possible_sites_are_grouped(workspace: Workspace):
    answer = workspace.calls("Rows.filter")
    assert groups(answer) == {
        "receiver": "called on: rows 30, objects 20, using() 10",
        "directory": "in: shop/cart 30, shop/pay 20, tests/pay 10",
        "why": "possible because: only the name fits 60",
    }
    follow = [f.message for section in answer.sections if section.kind == "followups" for f in section.findings]
    assert follow[:2] == ["cq calls Rows.filter --certain", "cq calls Rows.filter --page 2"]
    first = next(section for section in answer.sections if section.kind == "call_sites").findings[0].details
    assert isinstance(first, CallDetails)
    assert first.status == "certain"


def test_few_sites_need_no_groups(workspace: Workspace):
    assert not groups(workspace.calls(CallsOptions("Rows.filter", page=Page(100, 0))))
    assert not groups(workspace.calls(CallsOptions("Rows.filter", certain=True)))


@pytest.mark.parametrize(
    ("receiver", "count", "written"),
    [("objects", 20, "x.objects"), ("x.objects", 20, "x.objects"), ("using()", 10, "x.using(a)"), ("self", 1, "self")],
)
def test_a_receiver_narrows(workspace: Workspace, receiver: str, count: int, written: str):
    answer = workspace.calls(CallsOptions("Rows.filter", receiver=receiver))
    assert (answer.found, receivers(answer)) == (count, {written})


def test_a_receiver_that_nothing_is_called_on_is_refused(workspace: Workspace):
    with pytest.raises(UsageError, match="called on 'objetcs'") as error:
        workspace.calls(CallsOptions("Rows.filter", receiver="objetcs"))
    assert "objects" in error.value.hint


def test_an_overload_without_code_is_not_called_through_its_class(tmp_path: Path):
    (tmp_path / "a.ts").write_text(
        "export class A {\n  go(x: string): string;\n  go(x: number): number;\n  go(x: any) { return x; }\n}\n"
        "new A(); new A(); new A().go(1);\n"
    )
    with Workspace.open(tmp_path, index_dir=tmp_path.with_name("index")) as workspace:
        answer = workspace.calls("A.go")
        assert [
            f.location.start_col for s in answer.sections if s.kind == "call_sites" for f in s.findings if f.location
        ] == [27]
        assert workspace.graph("a.ts:2").found == workspace.graph("a.ts:4").found == 1
