"""What tests ask of the product, one `check_x` per kind of page or question."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from textwrap import dedent

from cq import Workspace
from cq.model.facts import Call, FileFacts, Import, Symbol
from tests.support.fixture import parse_fixture
from tests.support.invariants import check_document


def check_page_case(language: str, snippet: str, hidden: Collection[str] = ()) -> None:
    """The marks are exactly what is found: nothing else in strings, comments or broken code.

    `hidden` are the kinds of symbols that a page leaves out.
    """
    fixture = parse_fixture(snippet)
    (text,) = (source.encode() for source in fixture.files.values())
    facts = check_document(text, language)
    found = [
        *((s.name_start, _describe_symbol(s)) for s in facts.symbols if s.kind not in hidden),
        *((c.name_start if c.name_start >= 0 else c.start, _describe_call(c)) for c in facts.calls),
        *((i.start, _describe_import(i)) for i in facts.imports),
    ]
    assert sorted((mark.start, mark.label) for mark in fixture.marks if mark.label != "problem") == sorted(found)
    lines = {text.count(b"\n", 0, mark.start) for mark in fixture.marked("problem")}
    assert {text.count(b"\n", 0, problem.start) for problem in facts.problems} == lines


def facts_of(language: str, source: str) -> FileFacts:
    return check_document(dedent(source).lstrip("\n").encode(), language)


def symbol(facts: FileFacts, name: str, kind: str = "") -> Symbol:
    """The one symbol of that qualified name."""
    found = [s for s in facts.symbols if s.qualified_name == name and kind in ("", s.kind)]
    assert len(found) == 1, [s.qualified_name for s in facts.symbols]
    return found[0]


def _describe_symbol(symbol: Symbol) -> str:
    return f"def {symbol.kind} {symbol.qualified_name}{' exported' if symbol.exported else ''}"


def _describe_call(call: Call) -> str:
    arguments = ", ".join((f"{argument.name}=" if argument.name else "") + argument.kind for argument in call.args)
    return f"call {call.kind} {call.callee}({arguments})"


def _describe_import(item: Import) -> str:
    return " ".join(["import", item.kind, item.module, *(f"{b.local}={b.imported}" for b in item.bindings)])


def check_query_case(root: Path, path: str, snippet: str, queries: dict[str, str]) -> None:
    """Every query finds exactly what is marked with its letter, by where matches begin."""
    fixture = parse_fixture(f"#- {path}\n{snippet}")
    for name, text in fixture.files.items():
        (root / name).write_text(text)
    marked: dict[str, set[int]] = {letter: set() for letter in queries}
    for mark in fixture.marks:
        for letter in mark.label.split():
            if letter in marked:
                marked[letter].add(mark.start)
    with Workspace.open(root, index_dir=root / ".index") as workspace:
        for letter, query in queries.items():
            answer = workspace.q(query, everything=True)
            found = [finding.location for finding in answer.sections[0].findings]
            lines = {letter: [place and (place.start_line, place.start_col) for place in found]}
            assert {place.start for place in found if place} == marked[letter], f"{letter} {query}: {lines}"
