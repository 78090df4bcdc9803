"""What mentions a definition, as tests/cases/references-*.md say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.checks import check_references

PAGE = (Path(__file__).parents[1] / "cases" / "references-typescript.md").read_text("utf-8")
CASES = dict(re.findall(r"^## (.+?)$.*?^```tsx?\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("title", CASES)
def test_case(title: str, tmp_path: Path):
    check_references(tmp_path, CASES[title])
