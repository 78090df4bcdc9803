"""Packs: never over budget, source byte for byte, and only what is new since another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cq import Answer, ContextOptions, PackDetails, Page, Workspace
from cq.model.errors import UsageError
from cq.surfaces.render.answer import render_answer
from tests.support.fixture import parse_fixture

BODY = "".join(f"        if row == {number}:\n            value += tax({number})\n" for number in range(60))
FILES = f"""
#- shop/prices.py
from shop.rates import rate, unused
class Bill:
    \"\"\"What is to be paid.\"\"\"
    def total(self, rows: list) -> int:
        value = 0
        for row in rows:
            value += tax(row)
        return value
    def long(self, row):
        value = 0
{BODY}        return value
def tax(row):
    \"\"\"What the state gets. More.\"\"\"
    return row * rate()
#- shop/rates.py
def rate(): return 2
def unused(): return 1
#- shop/app.py
from shop.prices import Bill
def pay(rows):
    bill = Bill()
    return bill.total(rows)
#- tests/test_prices.py
from shop.prices import Bill
def test_total(): assert Bill().total([]) == 0
#- README.md
Call `Bill.total` with rows.
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    root = tmp_path / "repo"
    for path, text in parse_fixture(FILES).files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    with Workspace.open(root, index_dir=tmp_path / "index") as opened:
        yield opened


def list_items(answer: Answer) -> list[tuple[str, str]]:
    found = [finding.details for section in answer.sections for finding in section.findings]
    return [(each.relation, each.name) for each in found if isinstance(each, PackDetails)]


def test_a_pack_holds_what_is_next_to_it(workspace: Workspace):
    answer = workspace.context("Bill.total")
    source = answer.sections[0].findings[0].details
    assert isinstance(source, PackDetails)
    text = (workspace.root / "shop/prices.py").read_text()
    head, _, body = source.source.partition("\n")
    assert head == "class Bill:"
    assert f"{body}\n" in text
    assert body.startswith("    def total(")
    items = list_items(answer)
    for each in (("callees", "tax"), ("callers", "pay"), ("tests", "test_total"), ("docs", "Bill.total")):
        assert each in items
    assert ("callees", "rate") not in items  # two calls away
    line = next(f for f in answer.sections[1].findings if f.message == "tax").details
    assert isinstance(line, PackDetails)
    assert line.source == "def tax(row)  # What the state gets."
    assert "shop/prices.py:7" in line.why


@pytest.mark.parametrize("budget", [200, 300, 500, 900, 2000, 8000])
@pytest.mark.parametrize("target", ["Bill.total", "Bill.long", "Bill", "shop/prices.py", "tax"])
def test_a_pack_never_costs_more_than_its_budget(workspace: Workspace, target: str, budget: int):
    answer = workspace.context(ContextOptions((target,), page=Page(0, budget)))
    assert answer.insight is not None
    assert answer.insight.budget is not None
    assert answer.insight.budget.used <= budget
    assert len(render_answer(answer).encode()) / 4 <= budget
    shown, total = answer.insight.budget.shown, answer.insight.budget.total
    assert total - shown == sum(each.omitted for each in answer.truncated if each.cap == "budget")


def test_a_long_source_is_shown_in_short(workspace: Workspace):
    answer = workspace.context(ContextOptions(("Bill.long",), page=Page(0, 400)))
    details = answer.sections[0].findings[0].details
    assert isinstance(details, PackDetails)
    assert details.why == "what is asked about, in short"
    assert "def long(self, row):" in details.source
    assert "… 60 lines" in details.source or "… 121 lines" in details.source or "lines" in details.source


def test_only_what_is_new_since_another_pack(workspace: Workspace):
    first = workspace.context("Bill.total")
    name = first.summary["pack_id"]
    assert workspace.context("Bill.total").summary["pack_id"] == name
    again = workspace.context(ContextOptions(("Bill.total",), since=name))
    assert list_items(again) == []
    assert again.found == 1
    rates = (workspace.root / "shop/prices.py").read_text().replace("def tax(row):", "def tax(row, more=0):")
    (workspace.root / "shop/prices.py").write_text(rates)
    changed = workspace.context(ContextOptions(("Bill.total",), since=name))
    assert {each for _, each in list_items(changed)} == {"tax"}
    assert all(f.details.is_changed for s in changed.sections for f in s.findings if isinstance(f.details, PackDetails))
    with pytest.raises(UsageError, match="there is no pack 'pack-0'"):
        workspace.context(ContextOptions(("Bill.total",), since="pack-0"))


def test_slices_and_words(workspace: Workspace):
    only = workspace.context(ContextOptions(("Bill.total",), slices=("callers",)))
    assert {relation for relation, _ in list_items(only)} == {"callers"}
    risk = workspace.context(ContextOptions(("Bill.total",), slices=("primary", "risk")))
    assert [event.category for event in risk.degraded if event.stage == "context"] == ["skipped"]
    words = workspace.context("what is to be paid by the bill")
    assert any(event.category == "words" for event in words.degraded)
    assert workspace.context("nobody").found == 0
    with pytest.raises(UsageError, match="context of what"):
        workspace.context(ContextOptions())
    with pytest.raises(UsageError, match="at least 150"):
        workspace.context(ContextOptions(("tax",), page=Page(0, 20)))
