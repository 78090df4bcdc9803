"""Extraction is total and its results hold together, for every registered language and whatever the text is."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cq.language import parsed_languages
from cq.languages.facts import extract_facts
from cq.model.source import SourceFile
from cq.source.read import decode
from cq.source.segments import find_segments
from tests.support.invariants import check_document, check_facts
from tests.support.samples import find_snippets

LANGUAGES = parsed_languages()

pytestmark = pytest.mark.slow

every_language = pytest.mark.parametrize("language", LANGUAGES)

WORDS = st.sampled_from(
    ["def ", "class ", "function ", "fn ", "if", "else", "import ", "from ", "return ", "export ", "async ", "=>", "->",
     "::", ".", ",", ";", ":", "=", "(", ")", "[", "]", "{", "}", "<", ">", "@", "#", "//", "/*", "*/", '"', "'", "`",
     "```py\n", "---\n", "\n", "\r\n", "\n    ", "\t", " ", "\\", "$", "a", "b1", "é", "名", "𝒳", "0", "1.5", "\ufeff",
     "<script>", "</script>", "x = 1", "f(x)", "a.b()", "\x0c", "\u2028"]
)  # fmt: skip


@every_language
@settings(max_examples=60)
@given(pieces=st.lists(WORDS, max_size=40))
def test_any_words(language: str, pieces: list[str]):
    check("".join(pieces).encode(), language)


@every_language
@settings(max_examples=30)
@given(text=st.text(max_size=200))
@example(text="\0")
@example(text="\ufeffx = 1")
def test_any_text(language: str, text: str):
    check(text.encode("utf-8", "replace"), language)


@every_language
@settings(max_examples=30)
@given(raw=st.binary(max_size=200))
def test_any_bytes(language: str, raw: bytes):
    # What is no UTF-8 has no true names; that it does not raise is all that can be asked.
    extract_facts(raw, language, find_segments(raw, language))
    source = decode(raw, "file", language)
    if isinstance(source, SourceFile):
        check(source.text, language)


@every_language
@settings(max_examples=60)
@given(data=st.data())
def test_mutated_source(language: str, data: st.DataObject):
    """Pieces of real source cut out, doubled and swapped: what people's files look like while they type."""
    text = data.draw(st.sampled_from(find_snippets(language)))
    for _ in range(data.draw(st.integers(1, 4))):
        a, b, c, d = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 4)))
        match data.draw(st.sampled_from(["delete", "double", "swap", "insert"])):
            case "delete":
                text = text[:a] + text[b:]
            case "double":
                text = text[:b] + text[a:]
            case "swap":
                text = text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]
            case _:
                text = text[:a] + data.draw(WORDS).encode() + text[a:]
    check(text.decode("utf-8", "replace").encode(), language)


def check(text: bytes, language: str) -> None:
    check_document(text, language, find_segments(text, language))


# Some grammars need seconds for two thousand levels of another language; what is bounded there is the parse itself.
THOROUGH = ("python", "typescript", "rust")


def nest(depth: int) -> dict[str, str]:
    return {
        "parentheses": "(" * depth + ")" * depth,
        "brackets": "x = " + "[" * depth + "]" * depth,
        "braces": "{" * depth + "}" * depth,
        "unclosed parentheses": "f(" * depth,
        "unclosed brackets": "[" * depth,
        "unclosed braces": '{"a":' * depth,
        "brace ifs": "if (x) {" * depth + "}" * depth,
        "indented ifs": "".join(f"{' ' * level}if x:\n" for level in range(depth // 2)) + " " * depth + "pass\n",
        "indented functions": "".join(f"{' ' * level}def f{level}():\n" for level in range(depth // 2))
        + " " * depth
        + "f()",
        "functions": "function f() {" * depth + "}" * depth,
        "arrows": "x => " * depth + "1",
        "rust functions": "fn f() {" * depth + "}" * depth,
        "classes": "class A {" * depth + "}" * depth,
        "modules": "mod a {" * depth + "}" * depth,
        "lambdas": "x = " + "lambda: " * depth + "1",
        "generics": "let x: " + "A<" * depth + "B" + ">" * depth,
        "operators": "x = " + "a + " * depth + "1",
        "negations": "x = " + "not " * depth + "1",
        "else ifs": "if a:\n  b\n" + "elif c:\n  d\n" * depth,
        "brace else ifs": "if (a) { b } " + "else if (c) { d } " * depth,
        "tags": "<div>" * depth + "</div>" * depth,
        "quotes": "> " * depth + "x\n",
        "list items": "- " * depth + "x\n",
        "strings": "f'{" * depth + "}'" * depth,
        "templates": "`${" * depth + "}`" * depth,
    }


@every_language
@pytest.mark.parametrize("shape", nest(1))
def test_deep_nesting(language: str, shape: str):
    check_once(nest(2000 if language in THOROUGH else 300)[shape], language)


LINKS = (".a", "(1)", "[0]", "::a()", "->a()", "?.a()", " + a()", " | a", ", a", ".a(x => y)")


@every_language
def test_long_chains(language: str):
    check_once("x" + ".a()" * (10_000 if language in THOROUGH else 1_000), language)
    for link in LINKS:
        check_once("x" + link * 500, language)


@every_language
@pytest.mark.parametrize("piece", ["x = 1; ", "aé ", "f(a, 1);", '"s",'])
def test_one_long_line(language: str, piece: str):
    """Straight into the extractor: reading a file would call most of these minified."""
    size = 1_000_000 if language in THOROUGH else 50_000
    check_once(piece * (size // len(piece.encode())), language)


@every_language
def test_wide_errors(language: str):
    for piece in "([{<":
        check_once(piece * (100_000 if language in THOROUGH else 2_000), language)


def check_once(text: str, language: str) -> None:
    """Without the second extraction: these are about the first one coming to an end."""
    check_facts(text.encode(), extract_facts(text.encode(), language, find_segments(text.encode(), language)))
