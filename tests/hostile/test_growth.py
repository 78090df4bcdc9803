"""A text that grows in one construct costs what it grows by, in every language and every step from text to links.

`exports.a = exports.a = … = 1` once cost the cube of its length, and 48 kB of it kept an index busy for minutes. No
test saw it: those that try long chains only ask that they come to an end, and a clock says nothing on a machine that
does something else. What sees it is counting work by what it goes through (tests/support/work.py says how) for texts
that grow in each thing a language can have many of (tests/support/growth.py), and asking that twice the text costs at
most 2.3 times the work.

Windows, excerpts and caps of so many bytes or names make a small text cost its square up to where they end; what grows
too much is therefore measured again at eight times the size, where it must not.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cq.graph.unit import Unit
from cq.language import parsed_languages
from cq.languages.facts import extract_facts
from cq.languages.linking import link_units
from cq.languages.registry import get_language
from cq.source.segments import find_segments
from cq.store.codec import encode_facts, flatten
from cq.syntax import tree
from tests.support.growth import TEXTS, Text, find_texts
from tests.support.work import CountedText, count_steps

LANGUAGES = parsed_languages()

pytestmark = pytest.mark.slow

MOST = 2.3  # times the work for twice the text
SIZE = 1_500  # bytes, about
LARGE = 12_000
# No C: from some size on the parser's recovery takes it for one node of another kind. It costs milliseconds either way.
NO_CODE = {("c", "brackets")}
SAMPLE = 6  # texts of a language that every run tries; `make hostile` tries all


@pytest.fixture(autouse=True)
def no_clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a slow machine would not parse in time is no small piece of work."""
    parsed = [get_language(language) for language in LANGUAGES]
    for language in parsed:
        vars(language).pop("grammar", None)
    monkeypatch.setattr(tree, "SMALL_MICROS", 10**9)
    yield
    for language in parsed:
        vars(language).pop("grammar", None)


@pytest.mark.parametrize("language", LANGUAGES)
def test_twice_the_text_is_twice_the_work(language: str) -> None:
    texts = list(find_texts(language))
    check_growth(language, texts[LANGUAGES_IN_ORDER.index(language) % 3 :: max(1, len(texts) // SAMPLE)])


@pytest.mark.full
@pytest.mark.parametrize("language", LANGUAGES)
def test_twice_the_text_is_twice_the_work_for_all(language: str) -> None:
    check_growth(language, list(find_texts(language)))


@pytest.mark.parametrize(
    ("language", "name"),
    [
        ("javascript", "exports of one name"),
        ("javascript", "member assignments"),
        ("javascript", "nested functions"),
        ("javascript", "news"),
        ("python", "assignments"),
        ("python", "annotations"),
        ("python", "named once"),
        ("python", "nonlocals"),
        ("python", "call chain"),
        ("python", "elifs"),
        ("rust", "nested macro rules"),
        ("go", "methods of one name"),
        ("markdown", "fences of C"),
        ("markdown", "fences of broken TypeScript"),
        ("html", "scripts of JSON"),
        ("haskell", "applications"),
        ("ruby", "modules"),
    ],
)
def test_what_once_grew_too_much(language: str, name: str) -> None:
    check_growth(language, [(name, dict(find_texts(language))[name])])


LANGUAGES_IN_ORDER = sorted(LANGUAGES)


def check_growth(language: str, texts: list[tuple[str, Text]]) -> None:
    assert language in TEXTS
    extract_facts(b"x", language)  # what is loaded once
    grown: dict[str, str] = {}
    for name, make in texts:
        if (language, name) in NO_CODE:
            continue
        for size in (SIZE, LARGE):
            count = max(8, size * 100 // len(make(100).encode()))
            small, large = (count_all(make(times * count), language) for times in (1, 2))
            if large <= MOST * small:
                break
        else:
            grown[name] = f"{small:,} -> {large:,}: {large / small:.2f}"
    assert grown == {}


def count_all(text: str, language: str) -> int:
    counted = CountedText(text.encode())

    def read() -> None:
        facts = extract_facts(counted, language, find_segments(counted, language))
        encode_facts(facts)
        documents = [document.code for document, _ in flatten(facts)]
        link_units([Unit(f"a.{language}", code, at) for at, code in enumerate(documents) if code is not None])

    read()  # what is kept by its text is known the second time, small or large
    return count_steps(read)
