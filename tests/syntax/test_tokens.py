"""The classes of tokens: every language has some, and none lies in another."""

from __future__ import annotations

from itertools import pairwise

import pytest

from cq.language import parsed_languages
from cq.languages.registry import get_language
from cq.syntax.language import Language
from cq.syntax.tokens import CLASSES, Token, find_tokens


def read(language: str, text: bytes) -> list[Token]:
    found = get_language(language)
    assert isinstance(found, Language)
    return find_tokens(found, text)


@pytest.mark.parametrize("language", parsed_languages())
def test_the_queries_of_every_grammar_compile_and_their_tokens_do_not_overlap(language: str):
    text = b'<p class="a">"text" /* x */ if (a) { return 1 } # y</p>\n// z\n'
    tokens = read(language, text)
    assert {token.kind for token in tokens} <= set(CLASSES)
    assert all(0 <= token.start < token.end <= len(text) for token in tokens)
    assert all(one.end <= other.start for one, other in pairwise(tokens))


@pytest.mark.parametrize(
    ("language", "text", "wanted"),
    [
        ("python", b"def f(): return 'a'  # b", {"def": "keyword", "f": "function", "'a'": "string", "# b": "comment"}),
        (
            "typescript",
            b"class A { x: number = 1 }",
            {"class": "keyword", "A": "type", "number": "type", "1": "number"},
        ),
        ("tsx", b"const a = <b c={1}/>", {"const": "keyword", "b": "tag", "c": "attribute", "1": "number"}),
        ("rust", b"fn f() -> u8 { 1 }", {"fn": "keyword", "f": "function", "u8": "type"}),
        ("kotlin", b'fun f() = "a" // b', {"fun": "keyword", "// b": "comment"}),  # has no query
        ("cpp", b"class A : B { int x; };", {"class": "keyword", "int": "type"}),  # builds on that of C
    ],
)
def test_what_a_reader_tells_apart_has_a_class(language: str, text: bytes, wanted: dict[str, str]):
    found = {text[token.start : token.end].decode(): token.kind for token in read(language, text)}
    assert {name: found.get(name) for name in wanted} == wanted


def test_what_stands_in_a_string_cuts_it():
    found = [(token.start, token.end, token.kind) for token in read("javascript", b"x = `a${1}b`")]
    assert (4, 6, "string") in found
    assert (8, 9, "number") in found
    assert found[-1][1:] == (12, "string")
