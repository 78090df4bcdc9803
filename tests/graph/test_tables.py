"""The table languages: who calls whom, as tests/cases/graph-tables.md says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.checks import check_calls

PAGE = (Path(__file__).parents[1] / "cases" / "graph-tables.md").read_text("utf-8")
CASES = {
    title: (f"main.{extension}", snippet)
    for title, extension, snippet in re.findall(r"^## (.+?)$.*?^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
}


@pytest.mark.parametrize("title", CASES)
def test_case(title: str):
    main, snippet = CASES[title]
    check_calls(snippet, main)
