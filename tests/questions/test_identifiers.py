"""Names that deceive, as `cq diagnostics` tells of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cq.answers.page import Page
from cq.model.answer import DiagnosticDetails
from cq.questions.diagnostics import DiagnosticsOptions
from cq.questions.diagnostics.identifiers import find_scripts, find_skeleton
from tests.support.checks import open_fixture

# What deceives is written as escapes here: this file must not deceive either.
LINES = {
    "const plain = 1; function normal() {}": [],
    "const caf\u00e9 = 1;": ["info non_ascii Latin"],
    "const \u0434\u0430\u043d\u043d\u044b\u0435 = 1;": ["info non_ascii Cyrillic"],
    "const p\u0430yment = 1;": ["warning mixed_scripts Latin,Cyrillic"],
    "const \u03b1lpha_value = 1;": ["warning mixed_scripts Greek,Latin"],
    "const score = 1, s\u0441ore = 2;": ["error confusable Latin,Cyrillic"],
    "const port = 1, \u0440ort = 2;": ["error confusable Cyrillic,Latin"],
    "const foo\u200cbar = 1;": ["error zero_width Latin"],
    "const test\u200dname = 1;": ["error zero_width Latin"],
    "const \u03c0 = 3, \u4e16\u754c = 1;": ["info non_ascii Greek", "info non_ascii CJK"],
    "const \u4e16abc = 1;": ["info non_ascii CJK,Latin"],
    "const caf\u0065\u0301 = 1;": ["warning not_normalized Latin"],
    "const caf\u0065\u0301 = 1, caf\u00e9 = 2;": ["error confusable Latin", "error confusable Latin"],
    "/* \u202e turned */ const a = 1;": ["error bidi "],
    "enum \u00c9tat { A }": ["info non_ascii Latin"],
    'const s = "\u0430 \U0001f44d\u200d\u00e9";': [],
}


@pytest.mark.parametrize("line", LINES)
def test_names_of_a_line(line: str, tmp_path: Path):
    assert _find(tmp_path, f"//- a.ts\n{line}\n") == LINES[line]


def test_every_language_and_only_code(tmp_path: Path):
    fixture = '//- a.py\nsc\u043ere = 1\nscore = 2\n//- b.md\n# Titl\u0435\n//- c.json\n{"n\u0430me": 1}\n'
    assert _find(tmp_path, fixture) == ["error confusable Latin,Cyrillic"]


def test_where_a_name_stands(tmp_path: Path):
    with open_fixture(tmp_path, "//- a.ts\nclass Data { \u00e9tat = 1; }\n") as workspace:
        answer = workspace.diagnostics(DiagnosticsOptions(severity="info", servers=False))
    assert [
        f.details.scope for s in answer.sections for f in s.findings if isinstance(f.details, DiagnosticDetails)
    ] == ["Data.\u00e9tat"]


def test_looks_and_scripts():
    assert find_skeleton("s\u0441ore") == find_skeleton("score") == find_skeleton("sco\u200dre")
    assert find_skeleton("store") != find_skeleton("score")
    assert find_scripts("a1_\u0301$") == ("Latin",)


def _find(folder: Path, fixture: str) -> list[str]:
    with open_fixture(folder, fixture) as workspace:
        answer = workspace.diagnostics(DiagnosticsOptions(severity="info", page=Page(0, 0), servers=False))
    rows = [finding for section in answer.sections for finding in section.findings]
    rows.sort(key=lambda row: (row.location.path, row.location.start) if row.location else ("", 0))
    return [
        f"{row.details.severity} {row.details.code} {','.join(row.details.scripts)}"
        for row in rows
        if isinstance(row.details, DiagnosticDetails)
    ]
