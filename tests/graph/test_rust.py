"""Rust: who calls whom, as tests/cases/graph-rust.md says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cq.graph.corpus import WholeCorpus
from cq.graph.dialect import Dialect
from cq.languages.linking import make_linker
from cq.model.code import Name, Text
from tests.support.checks import check_calls

PAGE = (Path(__file__).parents[1] / "cases" / "graph-rust.md").read_text("utf-8")
CASES = dict(re.findall(r"^## (.+?)$.*?^```rust\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("title", CASES)
def test_case(title: str):
    check_calls(CASES[title], "main.rs")


def test_a_type_without_a_name_has_none():
    assert Dialect(make_linker(WholeCorpus([])), []).find_type_names([Name(""), Name("Foo"), Text("a")]) == ["Foo"]
