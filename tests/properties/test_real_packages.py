"""The invariants hold on real code: every rule on every chunk of every file."""

from __future__ import annotations

import pytest

from cq.model.source import SourceFile
from cq.source.segments import find_segments
from tests.support.invariants import check_document
from tests.support.samples import read_corpus, read_installed

pytestmark = pytest.mark.slow


def test_the_installed_packages():
    check_all(read_installed(limit=400), at_least=300)


@pytest.mark.parametrize(
    ("corpus", "endings", "step", "at_least"),
    [
        ("django", (".py",), 10, 200),
        ("rxjs", (".ts",), 3, 50),
        ("zod", (".ts", ".tsx"), 3, 50),
        ("ruff", (".rs",), 10, 100),
        ("ruff", (".py", ".pyi"), 20, 50),
        ("ruff", (".md", ".toml", ".json", ".yaml", ".yml"), 10, 20),
        ("django", (".js", ".html", ".json", ".css"), 10, 50),
    ],
)
def test_a_corpus(corpus: str, endings: tuple[str, ...], step: int, at_least: int):
    check_all(read_corpus(corpus, endings, step=step), at_least=at_least)


def check_all(sources: list[SourceFile], *, at_least: int) -> None:
    assert len(sources) >= at_least
    for source in sources:
        try:
            check_document(source.text, source.language, find_segments(source.text, source.language))
        except AssertionError as error:
            raise AssertionError(f"{source.path}: {error}") from error
