"""What tests ask of the product, one `check_x` per kind of page or question."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from textwrap import dedent
from typing import Any

from cq import Workspace
from cq.answers.page import Page
from cq.graph.unit import Unit
from cq.languages.linking import link_calls
from cq.model.answer import Answer, ExceptionDetails, ReferenceDetails
from cq.model.facts import Call, FileFacts, Import, Symbol
from cq.model.neighborhood import Bundle
from cq.questions.exceptions import ExceptionsOptions
from cq.questions.neighborhood import NeighborhoodOptions
from cq.questions.q import QueryOptions
from cq.questions.references import ReferencesOptions
from cq.questions.types import TypesOptions
from cq.source.language import detect_language
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
    files = {main if path == "main" else path: text.encode() for path, text in fixture.files.items()}
    facts = {path: check_document(text, detect_language(path)) for path, text in files.items()}
    found: dict[tuple[str, int], str] = {}
    units = [Unit(path, document.code) for path, document in facts.items() if document.code is not None]
    for path, refs in link_calls(units).items():
        for call, ref in zip(facts[path].calls, refs, strict=True):
            names = ", ".join(
                (f"{place.path}:" if place.path != path else "") + (place.name or "module") for place in ref.candidates
            )
            found[path, call.name_start if call.name_start >= 0 else call.start] = {
                "resolved": f"calls {names}",
                "ambiguous": f"maybe {names}",
                "external": f"external {ref.module}",
                "unresolved": "unknown",
            }[ref.status]
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
            answer = workspace.q(QueryOptions(query, everything=True))
            found = [finding.location for finding in answer.sections[0].findings]
            lines = {letter: [place and (place.start_line, place.start_col) for place in found]}
            assert {place.start for place in found if place} == marked[letter], f"{letter} {query}: {lines}"


def check_neighborhood(root: Path, snippet: str, target: str = "", **options: Any) -> Bundle:
    """A line's label names the slices that hold what stands on it; `callers?` where it is only possible. Every slice
    that is named anywhere holds exactly the lines marked so. The target is the cursor unless it is given."""
    fixture = parse_fixture(snippet)
    for path, text in fixture.files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    if not target:
        assert fixture.cursor is not None
        path, offset = fixture.cursor
        before = fixture.files[path].encode()[:offset].decode()
        target = f"{path}:{before.count(chr(10)) + 1}:{len(before.rpartition(chr(10))[2]) + 1}"
    marked: dict[str, set[tuple[str, int]]] = {}
    for mark in fixture.marks:
        for label in mark.label.split():
            line = fixture.files[mark.path].encode()[: mark.start].count(b"\n") + 1
            marked.setdefault(label, set()).add((mark.path, line))
    with Workspace.open(root, index_dir=root.parent / "index") as workspace:
        answer = workspace.neighborhood(NeighborhoodOptions(target, **{"lsp": False, "top_k": 50} | options))
    assert isinstance(answer.bundle, Bundle)
    bundle = answer.bundle
    found: dict[str, set[tuple[str, int]]] = {}
    for part in bundle.slices:
        doubtful = {
            end
            for edge in part.edges
            if edge.metadata.get("status") == "possible"
            for end in (edge.source_node_id, edge.target_node_id)
        }
        for node in part.preview:
            kind = part.kind + "?" * (node.node_id in doubtful)
            found.setdefault(kind, set()).add((node.file_path, node.line))
    kinds = {label.rstrip("?") for label in marked}
    shown = {label: places for label, places in found.items() if label.rstrip("?") in kinds}
    assert shown == marked, f"{target}: {shown}"
    return bundle


def open_fixture(folder: Path, snippet: str) -> Workspace:
    """A workspace over the files of a snippet."""
    for path, text in parse_fixture(snippet).files.items():
        (folder / "repo" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "repo" / path).write_text(text)
    return Workspace.open(folder / "repo", index_dir=folder / "index")


def check_references(folder: Path, snippet: str) -> None:
    """Every mention of the definition at the cursor is marked with how sure it is, and nothing else is found."""
    fixture = parse_fixture(snippet)
    assert fixture.cursor is not None
    path, offset = fixture.cursor
    before = fixture.files[path].encode()[:offset].decode()
    target = f"{path}:{before.count(chr(10)) + 1}:{len(before.rpartition(chr(10))[2]) + 1}"
    with open_fixture(folder, snippet) as workspace:
        answer = workspace.references(ReferencesOptions(target, page=Page(0, 0), servers=False))
    found: set[tuple[str, int, str]] = set()
    for section in answer.sections:
        for finding in section.findings:
            if isinstance(finding.details, ReferenceDetails) and finding.location is not None:
                found.add((finding.location.path, finding.location.start, finding.details.status))
    marked = {(mark.path, mark.start, mark.label) for mark in fixture.marks}
    assert found == marked, f"not marked: {sorted(found - marked)}, only: {sorted(marked - found)}"


def check_exceptions(folder: Path, snippet: str, target: str = "") -> Answer:
    """Every line that raises says what becomes of it (`uncaught ValueError`), every handler its flags (`handler
    empty`); and nothing else is found."""
    fixture = parse_fixture(snippet)
    with open_fixture(folder, snippet) as workspace:
        answer = workspace.exceptions(ExceptionsOptions(target, page=Page(0, 0)))
    found: list[tuple[str, int, str]] = []
    for section in answer.sections:
        for finding in section.findings:
            details, where = finding.details, finding.location
            assert isinstance(details, ExceptionDetails)
            assert where is not None
            if finding.category == "handler":
                label = " ".join(("handler", *details.flags))
            else:
                label = f"{details.status} {details.exception}".strip()
            if finding.category != "escape":
                found.append((where.path, where.start, label))
    marked = [(mark.path, mark.start, mark.label) for mark in fixture.marks]
    assert sorted(found) == sorted(marked), f"not marked: {set(found) - set(marked)}, only: {set(marked) - set(found)}"
    return answer


def check_types(folder: Path, snippet: str) -> None:
    """Lines `//! SECTION LINE | TEXT` are what `cq types` lists of the definition at the cursor, in their order: all of
    a section that is named. `//! SECTION -` is a section that is empty."""
    said = [match.groups() for match in re.finditer(r"^//! (\w+) (?:(\S+) \| (.*)|-)$", snippet, re.MULTILINE)]
    fixture = parse_fixture(re.sub(r"^//!.*\n?", "", snippet, flags=re.MULTILINE))
    assert fixture.cursor is not None
    path, offset = fixture.cursor
    before = fixture.files[path].encode()[:offset].decode()
    target = f"{path}:{before.count(chr(10)) + 1}:{len(before.rpartition(chr(10))[2]) + 1}"
    depth = re.search(r"^//\? --depth (\d+)$", snippet, re.MULTILINE)
    with open_fixture(folder, re.sub(r"^//!.*\n?", "", snippet, flags=re.MULTILINE)) as workspace:
        answer = workspace.types(TypesOptions(target, depth=int(depth[1]) if depth else 1, page=Page(0, 0)))
    found = {
        section.kind: [
            (f"{finding.location.path}:{finding.location.start_line}", finding.message.partition(", in `")[0].strip())
            for finding in section.findings
            if finding.location is not None
        ]
        for section in answer.sections
    }
    wanted: dict[str, list[tuple[str, str]]] = {}
    for kind, place, text in said:
        rows = wanted.setdefault(kind, [])
        if place:
            rows.append((place if ":" in place else f"{path}:{place}", text.strip()))
    assert wanted, "the case says nothing"
    assert {kind: found.get(kind, []) for kind in wanted} == wanted
