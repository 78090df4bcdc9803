"""Code as it is while somebody types it. Facts hold together, linking comes to an end, and nothing is swallowed: tests
are strict. Mutating bytes (test_extraction) hardly ever ends a file with `def f():`, so these cut between tokens, take
one out or say it twice, and open what is never closed, in real code of every language."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import pytest

from cq import Workspace
from cq.graph.unit import Unit
from cq.language import parsed_languages
from cq.languages.facts import extract_facts
from cq.languages.linking import link_units
from cq.languages.python.facts import Python
from cq.languages.registry import get_language
from cq.model.facts import FileFacts
from cq.questions.calls import CallsOptions
from cq.questions.search import SearchOptions
from cq.source.segments import find_segments
from cq.store.codec import encode_links, flatten
from cq.syntax import code as codes
from cq.syntax import extract
from tests.support.invariants import check_facts
from tests.support.samples import find_snippets

pytestmark = pytest.mark.slow
LANGUAGES = parsed_languages()

LARGE = 3000  # bytes of a sample, about
MOST = 40  # variants of a language and a kind of change

OPENED = (
    "(", "[", "{", "<", '"', "'", "`", '"""', "'''", '${', 'f"{', 'r#"', "/*", "<<EOF\n", "#", "\\", "@", "#[", "<div>",
    "-- -", "-", "!", "&", ".", "?.", "::", "->", "=>", ",", ":", "=",
)  # fmt: skip
UNFINISHED = (
    "def f():", "def f(", "def f(self, *,", "async def f():", "class A:", "class A(", "class A {", "class A extends",
    "class A { b =", "class A { get", "function f(", "function f() {", "async function* f", "fn f() ->", "fn f<T: ",
    "impl", "impl X for", "impl<T> X<T> for Y<", "struct S {", "struct S<", "enum E {", "trait T: ", "mod m {",
    "use a::{", "macro_rules! m {", "m!(", "#[derive(", "pub(crate)", "let x: ", "let x =", "const x = y =>",
    "const { a, b:", "var", "x =", "x = y =", "x +=", "x: ", "x.", "x.y(", "x().()", "x[", "x ? y :", "not", "await",
    "lambda x:", "lambda", "if x:", "if (x) {", "elif", "else", "for x in", "for (const x of", "while", "match x {",
    "match x:\n    case", "switch (x) { case", "try:", "try {", "except E as", "catch (e) {", "finally:", "with x as",
    "raise", "throw", "return", "yield", "yield from", "import", "import {", "import * as", "import a from",
    "from x import", "from . import (", "export", "export default", "export {", "export * from", "module.exports =",
    "exports.a = exports.", "require(", "new", "type A =", "type A<", "interface A {", "interface A extends",
    "namespace N {", "declare", "@d\n", "@d(", "package p", "func f(", "func (r *R)", "go func() {", "select {",
    "public static", "void f(", "int x[", "#define", "#if", "template <", "operator", "using", "record R(", "fun f(",
    "val x by", "when (x) {", "object", "data class", "<?php", "<?php $x->", "<?php function", "def f\n", "begin",
    "do |x|", "end", "case x in", "local function", "function f()", "SELECT", "SELECT * FROM", "CREATE TABLE t (",
    "INSERT INTO", "WITH x AS (", "defmodule M do", "|>", "fn ->", "data A =", "where", "instance", "pub fn",
    "comptime", "<script>", "<style>", "<!--", "<div {", "{#if", "---\n", "```py\n", "- [", "> ", "| a", "key:",
    "key: [", "key: |", "[table", "[[table]]\nk =", "k = {", ".a {", "@media (", "x => {", "x match {", "given",
    "extension", "protocol P {", "init", "guard let", "super(", "super.", "this.", "self.", "global", "nonlocal",
    "del", "assert", "static", "unsafe {", 'extern "C" {', "async move {", "|x|", "'a: loop", "where T:", "dyn",
    "&mut", "..=", "...",
)  # fmt: skip


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("way", ["cut", "drop", "double", "open"])
def test_real_code_that_is_not_finished(language: str, way: str) -> None:
    texts = [text[: text.find(b"\n", LARGE) + 1] if len(text) > LARGE else text for text in find_snippets(language)]
    samples = [(text, span) for text in texts for span in _find_tokens(text, language)]
    for number, (text, span) in enumerate(samples[:: len(samples) // MOST + 1]):
        check(_change(text, *span, way, number), language, text)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_statement_that_is_begun(language: str) -> None:
    """Alone, behind other code, and in the middle of it."""
    original = min(find_snippets(language), key=len)
    line = original.find(b"\n", len(original) // 2) + 1
    for number, begun in enumerate(dict.fromkeys(UNFINISHED)):
        text = begun.encode()
        check(text, language, original)
        if number % 8 == 0:
            check(original.rstrip() + b"\n" + text, language, original)
            check(original[:line] + text + b"\n" + original[line:], language, original)


def _change(text: bytes, start: int, end: int, way: str, number: int) -> bytes:
    """The code with one change at a token."""
    match way:
        case "cut":
            return text[:end]
        case "drop":
            return text[:start] + text[end:]
        case "double":
            return text[:end] + b" " * (number % 2) + text[start:]
        case _:
            return text[:end] + OPENED[number % len(OPENED)].encode() + (text[end:] if number % 3 else b"")


@cache
def _find_tokens(text: bytes, language: str) -> list[tuple[int, int]]:
    """The leaves of the tree."""
    spoken = get_language(language)
    tree = None if spoken is None else spoken.parse(text)
    if tree is None:
        return []
    found: list[tuple[int, int]] = []
    cursor = tree.walk()
    while True:
        if cursor.goto_first_child():
            continue
        node = cursor.node
        if node is not None and node.start_byte < node.end_byte:
            found.append(node.byte_range)
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return found


def check(text: bytes, language: str, other: bytes) -> None:
    """Facts that hold together, and links in a repository of this file and one that is finished."""
    text = text.decode("utf-8", "ignore").encode()
    try:
        facts = extract_facts(text, language, find_segments(text, language))
        check_facts(text, facts)
        check_links(facts, _extract(other, language))
    except Exception as error:
        error.add_note(f"{language}: {text!r}")
        raise


@lru_cache(maxsize=64)
def _extract(text: bytes, language: str) -> FileFacts:
    return extract_facts(text, language)


def check_links(*files: FileFacts) -> None:
    """They lead to definitions that are there."""
    units = [
        Unit(f"f{number}", document.code, place)
        for number, facts in enumerate(files)
        for place, (document, _) in enumerate(flatten(facts))
        if document.code is not None
    ]
    names = {(unit.path, unit.document): {"", *unit.qualified_names.values()} for unit in units}
    for links in link_units(units).values():
        encode_links([links])
        for ref in links.refs:
            for place in ref.candidates:
                assert place.name in names[place.path, place.document], place


# -- what a mistake of ours costs ----------------------------------------------------------------

TEXT = """import os
from b import c as d

LANGUAGES = parsed_languages()


class A(B):
    "Doc."

    def run(self, x):
        return d(x)


def main():
    a = A()
    a.run(os.name)
"""
# What fails -> which facts may be lacking.
STEPS: dict[str, tuple[object, str, set[str]]] = {
    "one definition": (Python, "on_symbol", {"symbols", "chunks", "code"}),
    "all calls": (Python, "each_call", {"calls", "code"}),
    "assignments": (Python, "each_assignment", {"symbols", "flows", "code"}),
    "imports": (Python, "on_import", {"imports", "code", "symbols"}),
    "what the root says": (Python, "on_root", set()),
    "the end": (Python, "finish", {"symbols", "exports", "code"}),
    "nesting": (extract, "_nest", {"symbols", "chunks", "code", "calls"}),
    "after nesting": (Python, "finish_nested", {"exports", "code"}),
    "leads": (extract, "_attach_leads", set()),
    "references": (extract, "_pack_references", {"references"}),
    "packed imports": (extract, "_build_imports", {"imports"}),
    "chunks": (extract, "build_chunks", {"chunks"}),
    "packed calls": (extract, "_build_calls", {"calls", "code"}),
    "flows": (extract, "_build_flows", {"flows"}),
    "exports": (extract, "_build_exports", {"exports"}),
    "code": (codes.CodeDraft, "build", {"code"}),
}


@pytest.fixture
def lenient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extract, "is_strict", False)


def fail_once(step: Callable[..., Any]) -> Callable[..., Any]:
    """After it has done its work: what it did stays, as of a step that fails in the middle."""
    calls = 0

    def failing(*args: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        found = step(*args, **options)
        if calls == 1:
            raise IndexError("a case that nobody thought of")
        return found

    return failing


@pytest.mark.usefixtures("lenient")
@pytest.mark.parametrize("name", STEPS)
def test_a_step_that_fails_costs_what_it_finds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, step, lacking = STEPS[name]
    whole = extract_facts(TEXT.encode(), "python")
    monkeypatch.setattr(where, step, fail_once(getattr(where, step)))
    facts = extract_facts(TEXT.encode(), "python")
    check_facts(TEXT.encode(), facts)
    check_links(facts)
    (problem,) = facts.problems
    assert (problem.code, problem.end > problem.start) == ("internal", True)
    assert "IndexError" in problem.message
    for kind in {"symbols", "calls", "imports", "exports", "flows", "references", "chunks"} - lacking:
        assert len(getattr(facts, kind)) == len(getattr(whole, kind)), kind
    assert facts.code is not None or "code" in lacking


def test_strict_means_that_a_mistake_ends_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Python, "on_symbol", fail_once(Python.on_symbol))
    with pytest.raises(IndexError):
        extract_facts(TEXT.encode(), "python")


@pytest.mark.usefixtures("lenient")
def test_answers_say_which_files_are_understood_only_in_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    root = tmp_path / "repo"
    root.mkdir()
    (root / "a.py").write_text(TEXT)
    (root / "b.py").write_text("def c(): ...\ndef factory():")
    define = Python.on_symbol

    def fail(self: Python, collector: Any, kind: str, node: Any, captures: Any) -> Any:
        if b"odd" in collector.text:
            raise IndexError("a case that nobody thought of")
        return define(self, collector, kind, node, captures)

    monkeypatch.setattr(Python, "on_symbol", fail)
    with Workspace.open(root) as workspace:
        assert workspace.calls(CallsOptions("c")).degraded == ()
        assert workspace.status().degraded == ()
    (root / "b.py").write_text("from a import main\ndef odd(): ...\ndef c(): ...\nmain()\n")
    with Workspace.open(root) as workspace:
        answers = [workspace.search(SearchOptions("main")), workspace.calls(CallsOptions("main")), workspace.status()]
        checks = [check for check in workspace.doctor() if check.name == "b.py"]
    for answer in answers:
        (event,) = answer.degraded
        assert (event.category, event.correlation_key) == ("partial", "b.py")
    # The other facts of the file are there.
    sites = next(section for section in answers[1].sections if section.kind == "call_sites").findings  # pyright: ignore
    assert [site.location.path for site in sites] == ["b.py"]
    assert [check.state for check in checks] == ["warning"]
