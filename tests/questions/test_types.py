"""What declarations say of types, as tests/cases/types-*.md say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cq import HoverOptions
from cq.model.answer import TypeDetails
from tests.support.checks import check_types, open_fixture

PAGE = (Path(__file__).parents[1] / "cases" / "types-typescript.md").read_text("utf-8")
CASES = dict(re.findall(r"^## (.+?)$.*?^```(?:tsx?|js)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("title", CASES)
def test_case(title: str, tmp_path: Path):
    check_types(tmp_path, CASES[title])


HANDED = """
//- lib.ts
export const double = (x: number) => x * 2;
export function isUser(x: unknown): x is string { return true; }
//- app.tsx
import { double as twice, isUser } from "./lib";
export const all = [1].map(twice);
export function other(double: any) { return [1].map(double); }
export const some = ([] as unknown[]).find(isUser.bind(null));
export const Button = () => <button onClick={twice}>{twice(1)}</button>;
"""


def test_calls_say_where_a_function_is_handed_over(tmp_path: Path):
    with open_fixture(tmp_path, HANDED) as workspace:
        answers = [workspace.calls(name) for name in ("double", "isUser")]
    rows = [
        [
            (finding.location.start_line, finding.details.facts)
            for section in answer.sections
            if section.kind == "handed_over"
            for finding in section.findings
            if isinstance(finding.details, TypeDetails) and finding.location is not None
        ]
        for answer in answers
    ]
    assert rows[0] == [
        (2, {"callee": "map", "parameter_index": 0, "bound_with_bind": False}),
        (5, {"callee": "", "parameter_index": -1, "bound_with_bind": False, "attribute": "onClick"}),
    ]
    guard = {"predicate_kind": "is", "predicate_parameter": "x", "predicate_type": "string"}
    found = {
        "callee": "find",
        "parameter_index": 0,
        "bound_with_bind": True,
        "narrowed_output_type": "string | undefined",
    }
    assert rows[1] == [(4, {**found, **guard})]


def test_hover_says_the_value_of_a_member_of_an_enum(tmp_path: Path):
    with open_fixture(tmp_path, "//- a.ts\nenum Mode { A, B = 4, C, D = 'x', E = 'y'.length }\n") as workspace:
        said = [
            finding.message
            for name in "ACDE"
            for section in workspace.hover(HoverOptions(f"Mode.{name}", servers=False)).sections
            for finding in section.findings
            if section.kind == "contracts"
        ]
    assert said == ["Mode.A = 0", "Mode.C = 5", 'Mode.D = "x"', "E = 'y'.length"]
