"""docs/security.md names a test for every promise."""

from __future__ import annotations

import re
from pathlib import Path

_TESTS = Path(__file__).parents[1]


def test_every_test_that_the_page_names_exists():
    page = (_TESTS.parent / "docs" / "security.md").read_text("utf-8")
    named = set(re.findall(r"`(test_\w+(?:\.py)?)`", page))
    files = {path.name: path.read_text("utf-8") for path in _TESTS.rglob("test_*.py")}
    known = set(files) | {name for text in files.values() for name in re.findall(r"^def (test_\w+)", text, re.M)}
    assert len(named) > 20
    assert named - known == set()
