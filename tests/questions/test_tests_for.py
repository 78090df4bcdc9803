from __future__ import annotations

from pathlib import Path

import pytest

from cq import Workspace
from cq.model.answer import Answer, TestDetails
from cq.model.errors import UsageError
from cq.questions.tests_for import TestsForOptions
from cq.surfaces.render.answer import render_arguments
from tests.questions.test_impact_changed import git
from tests.support.fixture import parse_fixture

FILES = """
#- shop/prices.py
def total(rows):
    return sum(map(tax, rows))
def tax(row):
    return row * rate()
def rate():
    return 2
def lonely():
    return 1
#- shop/checks.py
def test_in(value): return value
#- shop/app.py
from shop.checks import test_in
CHECKS = [test_in]
#- tests/conftest.py
import pytest
from shop.prices import total
@pytest.fixture
def bill():
    return total([1])
#- tests/test_prices.py
import unittest
from shop.prices import tax, rate
def test_bill(bill): assert bill
def test_other(): assert True
class TestTax:
    def setup_method(self): self.value = tax(1)
    def test_value(self): assert self.value
class RateCase(unittest.TestCase):
    def helper(self): return rate()
    def test_rate(self): self.assertEqual(self.helper(), 2)
class LowerCase(RateCase):
    def helper(self): return 1
#- web/cart.ts
export function add(a: number) { return a }
export function drop(a: number) { return a }
#- web/cart.test.ts
import { add, drop } from './cart'
function make() { return add(1) }
describe('cart', () => {
  beforeEach(() => { drop(1) })
  it('adds $1', () => { make() })
  describe('when full', () => { test.each([1])('drops %d', (n) => { drop(n) }) })
})
it('stands alone', () => {})
#- src/lib.rs
mod util;
#- src/util.rs
pub fn half(n: u32) -> u32 { n / 2 }
#[cfg(test)]
mod tests {
    use super::half;
    #[test]
    fn halves() { assert_eq!(half(4), 2); }
    fn no_test() { half(1); }
}
"""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory):
    root = tmp_path_factory.mktemp("tests_for")
    for path, text in parse_fixture(FILES).files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    with Workspace.open(root, index_dir=root.parent / "index") as opened:
        yield opened


def list_tests(answer: Answer, by: str = "") -> list[str]:
    rows = [finding.details for section in answer.sections for finding in section.findings]
    return [row.argument for row in rows if isinstance(row, TestDetails) and by in ("", row.by)]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("total", ["tests/test_prices.py::test_bill"]),  # by a fixture
        ("tax", ["tests/test_prices.py::TestTax::test_value", "tests/test_prices.py::test_bill"]),  # by setup_method
        ("web/cart.ts:add", ["cart adds $1"]),  # by a helper
        ("drop", ["cart when full drops %d", "cart adds $1"]),  # by itself, by beforeEach
        ("half", ["util::tests::halves"]),
    ],
)
def test_tests_that_reach_it(workspace: Workspace, target: str, expected: list[str]):
    assert list_tests(workspace.tests_for(target), "links") == expected


def test_tests_of_a_class_run_what_it_inherits(workspace: Workspace):
    found = list_tests(workspace.tests_for("rate"), "links")
    assert "tests/test_prices.py::RateCase::test_rate" in found


def test_functions_that_the_program_uses_are_no_tests(workspace: Workspace):
    assert "shop/checks.py::test_in" not in list_tests(workspace.tests_for("test_in"))


def test_names_choose_where_no_link_leads(workspace: Workspace):
    answer = workspace.tests_for("lonely")
    assert list_tests(answer, "links") == []
    assert {row.split("::")[0] for row in list_tests(answer)} == {"tests/test_prices.py"}
    assert "GRAPH_MISSING" in {event.category for event in answer.degraded}


def test_what_no_test_reaches(workspace: Workspace):
    answer = workspace.tests_for(TestsForOptions(("shop/prices.py",), untested=True))
    assert [finding.message for finding in answer.sections[0].findings] == ["function lonely"]


def test_every_runner_gets_its_own_arguments(workspace: Workspace):
    answer = workspace.tests_for(TestsForOptions(("drop", "half", "tax")))
    assert render_arguments(answer, "cargo") == "util::tests::halves\n"
    assert "tests/test_prices.py::TestTax::test_value\n" in render_arguments(answer, "pytest")
    words = render_arguments(answer, "vitest").split("\n")
    assert words[:2] == ["web/cart.test.ts", "-t"]
    assert "cart when full drops .*" in words[2]
    assert r"cart adds \$1" in words[2]


def test_a_step_beyond_the_depth_is_not_taken(workspace: Workspace):
    near = workspace.tests_for(TestsForOptions(("rate",), depth=1))
    assert "tests/test_prices.py::test_bill" not in list_tests(near, "links")
    far = workspace.tests_for(TestsForOptions(("rate",), depth=6))
    assert "tests/test_prices.py::test_bill" in list_tests(far, "links")


def test_nothing_to_ask_about(workspace: Workspace):
    with pytest.raises(UsageError, match="tests of what"):
        workspace.tests_for(TestsForOptions())
    with pytest.raises(UsageError, match="--depth"):
        workspace.tests_for(TestsForOptions(("rate",), depth=0))
    assert not workspace.tests_for("nosuch").found


def test_changed_lines_choose_the_tests(tmp_path: Path):
    (tmp_path / "a.py").write_text("def f():\n    return 1\ndef g():\n    return 1\n")
    (tmp_path / "test_a.py").write_text("from a import f, g\ndef test_f(): f()\ndef test_g(): g()\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    (tmp_path / "a.py").write_text("def f():\n    return 1\ndef g():\n    return 2\n")
    with Workspace.open(tmp_path, index_dir=tmp_path.parent / "index") as workspace:
        answer = workspace.tests_for(TestsForOptions(since="HEAD"))
        assert list_tests(answer, "links") == ["test_a.py::test_g"]
        with pytest.raises(UsageError, match="nosuch"):
            workspace.tests_for(TestsForOptions(since="nosuch"))


def test_a_test_is_a_test_of_itself(tmp_path: Path):
    (tmp_path / "test_a.py").write_text("def test_f(): assert True\n")
    with Workspace.open(tmp_path, index_dir=tmp_path.parent / "index") as workspace:
        answer = workspace.tests_for(TestsForOptions(("test_f",)))
    assert list_tests(answer, "links") == ["test_a.py::test_f"]
