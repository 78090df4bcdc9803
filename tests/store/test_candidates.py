"""The text indexes give candidates: never too few."""

from __future__ import annotations

import os
import re
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cq.store import database, trigrams
from cq.store.read import Reader
from cq.store.terms import Terms
from cq.store.trigrams import fold
from tests.support.index import build

FILES = {
    "a.py": "def getUserName(x):\n    return x.first_name\n",
    "b.py": "# the user's name\nvalue = getUserName(1)\n",
    "c.txt": "same\nsame\nother line\nsame\n",
}


@pytest.fixture
def reader(tmp_path: Path):
    root = tmp_path / "repo"
    root.mkdir()
    for name, text in FILES.items():
        (root / name).write_text(text)
    build(tmp_path / "i" / "index.db", root)
    with closing(Reader(database.connect(tmp_path / "i" / "index.db"), os.fspath(root))) as opened, opened:
        yield opened


def find_paths(reader: Reader, contents: list[int]) -> list[str]:
    tree = reader.tree()
    assert tree is not None
    return sorted(path for paths in reader.paths(tree.id, contents).values() for path in paths)


@pytest.mark.parametrize(
    ("literal", "paths"),
    [
        ("getUserName", ["a.py", "b.py"]),
        ("USERNAME", ["a.py", "b.py"]),
        ("the user's", ["b.py"]),
        ("same\nother line\nsa", ["c.txt"]),
        ("nowhere", []),
    ],
)
def test_trigrams(reader: Reader, literal: str, paths: list[str]):
    found = reader.find_trigram(literal)
    assert found is not None
    assert find_paths(reader, found) == paths


def test_trigrams_know_every_case_of_a_letter():
    """All that `re` takes for each other without case has one bit."""
    casefix: Any = import_module("re._casefix")
    for letter, others in casefix._EXTRA_CASES.items():
        assert {fold(chr(other)) for other in others} == {fold(chr(letter))}
    for letter in map(chr, range(0x10000)):
        for other in (letter.lower(), letter.upper()):
            assert len(other) > 1 or fold(other) == fold(letter), letter


@given(st.text(st.sampled_from("abKs_ .\nſK\u0130\u0131σςΣßẞéЖж中\r😀𐐀\0"), max_size=300), st.binary(max_size=4))
def test_both_ways_to_make_trigrams_give_the_same(text: str, rest: bytes):
    raw = text.encode() + rest
    bits = trigrams._make_alone(raw)
    assert bits == trigrams._make_quickly(raw)
    piece = text[3:20].swapcase()
    if re.search(re.escape(piece), text, re.IGNORECASE):
        assert all(bits[place % len(bits)] >> bit & 1 for place, bit in trigrams.find_bits(piece))


def test_what_is_too_short_to_look_up(reader: Reader):
    assert reader.find_trigram("ab") is None
    assert reader.find_trigram("ab\ncd") is None


def test_names_by_what_is_done_with_them(reader: Reader):
    assert find_paths(reader, reader.find_names("getUserName")) == ["a.py", "b.py"]
    assert find_paths(reader, reader.find_names("getUserName", "defined")) == ["a.py"]
    assert find_paths(reader, reader.find_names("getUserName", "called")) == ["b.py"]
    assert find_paths(reader, reader.find_names("username")) == []


def test_words_split_kept_whole_and_stemmed(reader: Reader):
    assert reader.find_words("user", "name", 10)
    assert reader.find_words("getusername", "name", 10)
    assert reader.find_words("users", "body", 10)
    assert not reader.find_words("absent", "body", 10)


def test_terms():
    assert Terms().expand(b"getUserName x_1 HTTPServer plain") == (
        "get User Name getUserName x 1 x1 HTTP Server HTTPServer plain"
    )


def test_a_long_body_says_each_word_once_and_counts_all():
    terms = Terms()
    few, many = b"getUserName plain plain", b"getUserName plain plain " * 100
    assert terms.expand_body(few) == ("get User Name getUserName plain plain", 6)
    assert terms.expand_body(many) == ("get User Name getUserName plain", 600)
    assert terms.expand_body(b"") == ("", 1)
