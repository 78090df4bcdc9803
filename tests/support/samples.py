"""Real source to test on: the installed packages, the cases of every language, and the corpora of the benchmarks."""

from __future__ import annotations

import sysconfig
from functools import cache
from pathlib import Path

import pytest

from bench.corpora import CorpusError, fetch
from cq.model.source import SourceFile
from cq.source.read import decode
from cq.source.segments import find_segments

TESTS = Path(__file__).parents[1]


def read_tree(tree: Path, endings: tuple[str, ...], *, step: int = 1, limit: int = 1_000_000) -> list[SourceFile]:
    """Every `step`th file with one of the endings, by path; what is not read as source is left out."""
    paths = [path for path in sorted(tree.rglob("*")) if path.suffix in endings and path.is_file()]
    read = (decode(path.read_bytes(), path.relative_to(tree).as_posix()) for path in paths[::step][:limit])
    return [source for source in read if isinstance(source, SourceFile)]


def read_corpus(name: str, endings: tuple[str, ...], *, step: int = 1) -> list[SourceFile]:
    """Skips the test, with the reason, where the corpus cannot be had."""
    try:
        tree = fetch(name)
    except (CorpusError, OSError) as error:
        pytest.skip(f"no corpus {name}: {error}")
    return read_tree(tree, endings, step=step)


def read_installed(*, limit: int) -> list[SourceFile]:
    """The first Python files of the installed packages, by path."""
    return read_tree(Path(sysconfig.get_paths()["purelib"]), (".py",), limit=limit)


@cache
def find_snippets(language: str) -> tuple[bytes, ...]:
    """The fenced blocks of this language in tests/cases and the docs; for Python some installed files too."""
    found: list[bytes] = []
    for page in sorted([*TESTS.glob("cases/*.md"), *TESTS.parent.glob("*.md")]):
        text = page.read_bytes()
        if language == "markdown":
            found.append(text)
        found += [segment.text(text) for segment in find_segments(text, "markdown") if segment.language == language]
    if language == "python":
        found += [source.text for source in read_installed(limit=400) if 500 < len(source.text) < 6000][::10]
    return tuple(dict.fromkeys(found)) or (_FALLBACK,)


# Brackets, strings, comments and words of many languages at once, for a language without cases of its own.
_FALLBACK = b"""\
import a.b from "c"; use d::e; #include <f>
class A<T> extends B { x: int = 1; fn(y, z = "s") { return this.x?.(y) + `t${z}`; } }
def g(h, *i, **j): # comment /* and */ // more
  if (k) { l[m] = n->o::p() } else: q.r("\\u00e9", 'v' => w)
<div :s="t">{{ u }}</div> --- [link](x) | key: [1, 2, {"a": null}]
"""
