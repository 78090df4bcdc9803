"""The conformance table: tests/cases/query.md, every token in Python, TypeScript and Rust."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cq.query.parse import get_query
from cq.query.tree import Token, find_tokens
from cq.query.vocabulary import FILE_TOKENS, OPTIONS, SHAPE_TOKENS, TOKENS
from tests.support.checks import check_query_case
from tests.support.samples import TESTS

_BLOCK = re.compile(r"^```(python|typescript|rust)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_QUERY = re.compile(r"^(?:#|//)\? (\w) (.+)\n", re.MULTILINE)
_ENDINGS = {"python": "py", "typescript": "ts", "rust": "rs"}
CASES = [
    pytest.param(language, block, id=f"{language}-{number}")
    for number, (language, block) in enumerate(_BLOCK.findall((TESTS / "cases" / "query.md").read_text()))
]


@pytest.mark.parametrize(("language", "block"), CASES)
def test_case(language: str, block: str, tmp_path: Path):
    queries = dict(_QUERY.findall(block))
    check_query_case(tmp_path, f"main.{_ENDINGS[language]}", _QUERY.sub("", block), queries)


@pytest.mark.parametrize("language", _ENDINGS)
def test_every_token_is_in_the_table(language: str):
    used: set[str] = set()
    for case in CASES:
        own, block = case.values
        if own == language:
            for _, text in _QUERY.findall(str(block)):
                for token in find_tokens(get_query(text).body):
                    assert isinstance(token, Token)
                    used |= {token.key, *(f"{token.key}.{name}" for name, _ in token.modifiers)}
    known = {*TOKENS, *(f"{key}.{name}" for key, rule in TOKENS.items() for name in rule.modifiers)}
    # Files and options are the subject of tests/questions/test_query.py; Rust exports nothing by name.
    known -= FILE_TOKENS | OPTIONS | {"project"}  # which tests/questions/test_projects.py asks about
    known -= SHAPE_TOKENS if language != "typescript" else set()
    assert known - used <= ({"exports"} if language == "rust" else set())
