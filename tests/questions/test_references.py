"""What mentions a definition, as tests/cases/references-*.md say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cq.questions.references import ReferencesOptions
from tests.support.checks import check_references, open_fixture

PAGE = (Path(__file__).parents[1] / "cases" / "references-typescript.md").read_text("utf-8")
CASES = dict(re.findall(r"^## (.+?)$.*?^```tsx?\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("title", CASES)
def test_case(title: str, tmp_path: Path):
    check_references(tmp_path, CASES[title])


ALIASES = """
//- core.ts
export class Widget {}
export type WidgetId = string;
export function create() { return new Widget(); }
export default function factory() { return new Widget(); }
export namespace Inner { export class Special {} }
//- renamed.ts
import { Widget as UIWidget } from "./core";
export const one: UIWidget = new UIWidget();
//- exported.ts
export { Widget as Component, create as build, default as createDefault } from "./core";
export type { WidgetId as ComponentId } from "./core";
//- barrel.ts
export { Component as Element, build as createElement } from "./exported";
export * from "./core";
//- consumer.ts
import { Element, createElement, Widget } from "./barrel";
import type { WidgetId as ReadonlyId } from "./core";
import makeDefault from "./core";
import { Inner } from "./core";
import SW = Inner.Special;
export const start = createElement;
export const use = [Element, Widget, makeDefault, SW];
let id: ReadonlyId;
//- other.ts
class Widget {}
export { Widget as Foreign };
"""


@pytest.mark.parametrize(
    ("target", "names"),
    [
        ("core.ts:Widget", [
            "barrel.ts:1 Element for Component (export)", "exported.ts:1 Component for Widget (export)",
            "renamed.ts:1 UIWidget for Widget (import)",
        ]),
        ("create", [
            "barrel.ts:1 createElement for build (export)", "consumer.ts:6 start for createElement (assignment)",
            "exported.ts:1 build for create (export)",
        ]),
        ("WidgetId", [
            "consumer.ts:2 ReadonlyId for WidgetId (import, a type only)",
            "exported.ts:2 ComponentId for WidgetId (export, a type only)",
        ]),
        ("factory", [
            "consumer.ts:3 makeDefault for default (default)", "core.ts:4 default for factory (default)",
            "exported.ts:1 createDefault for default (export)",
        ]),
        ("Special", ["consumer.ts:5 SW for Inner.Special (assignment)"]),
        ("other.ts:Widget", ["other.ts:2 Foreign for Widget (export)"]),
    ],
)  # fmt: skip
def test_what_else_a_definition_is_called(target: str, names: list[str], tmp_path: Path):
    with open_fixture(tmp_path, ALIASES) as workspace:
        answer = workspace.references(ReferencesOptions(target, servers=False))
    found = [
        f"{finding.location.path}:{finding.location.start_line} {finding.message}"
        for section in answer.sections
        if section.kind == "aliases"
        for finding in section.findings
        if finding.location is not None
    ]
    assert found == names
