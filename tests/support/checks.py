"""What tests ask of the product, one `check_x` per kind of page or question."""

from __future__ import annotations

from collections.abc import Collection
from textwrap import dedent

from cq.graph.corpus import WholeCorpus
from cq.graph.link import Linker
from cq.graph.resolve import Resolver
from cq.graph.unit import Unit
from cq.model.facts import Call, FileFacts, Import, Symbol
from cq.source.language import detect_language
from cq.syntax import extract_facts
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


def check_calls(snippet: str, main: str = "main.py") -> None:
    """Every mark under a call's name says what it means: `calls a.f` or `calls b.py:a.f`, `maybe f, g` in this order,
    `external os.path.join`, `unknown`. Calls without a mark may mean anything."""
    fixture = parse_fixture(snippet)
    units, names = [], {}
    for path, text in fixture.files.items():
        path = main if path == "main" else path
        facts = check_document(text.encode(), detect_language(path, b""))
        assert facts.code is not None
        units.append(Unit(path, facts.language, facts.code))
        names |= {(path, number): symbol.qualified_name for number, symbol in enumerate(facts.symbols)}
        names[path, -1] = "module"
    linker = Linker(WholeCorpus(units))
    for unit in units:
        for number in range(len(unit.code.sites)):
            linker.link(unit, number)
    linker.settle()
    resolver = Resolver(linker, units)
    found = {}
    for unit in units:
        text = fixture.files.get(unit.path, fixture.files.get("main", "")).encode()
        for number, call in enumerate(extract_facts(text, unit.language).calls):
            meaning = resolver.call(unit, number)
            places = [
                (f"{at.path}:" if at is not unit else "") + names[at.path, symbol] for at, symbol in meaning.places
            ]
            said = {
                "resolved": f"calls {', '.join(places)}",
                "ambiguous": f"maybe {', '.join(places)}",
                "external": f"external {meaning.module}",
                "unresolved": "unknown",
            }[meaning.status]
            found[unit.path, call.name_start if call.name_start >= 0 else call.start] = said
    marked = {(main if mark.path == "main" else mark.path, mark.start): mark.label for mark in fixture.marks}
    said = {place: found.get(place, "no call") for place in marked}
    assert said == marked, "\n".join(
        f"{at}: {said[at]!r}, not {marked[at]!r}" for at in marked if said[at] != marked[at]
    )


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
