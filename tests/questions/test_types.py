"""What declarations say of types, as tests/cases/types-*.md say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.checks import check_types

PAGE = (Path(__file__).parents[1] / "cases" / "types-typescript.md").read_text("utf-8")
CASES = dict(re.findall(r"^## (.+?)$.*?^```(?:tsx?|js)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("title", CASES)
def test_case(title: str, tmp_path: Path):
    check_types(tmp_path, CASES[title])
