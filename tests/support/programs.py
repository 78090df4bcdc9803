"""Small programs with the calls they make: pages tests/cases/calls-*.md, and what the graph says of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from cq.graph.links import find_targets
from cq.graph.names import Method, find_imported, find_methods
from cq.graph.unit import Unit
from cq.languages.linking import link_units
from cq.model.code import Code, Parameter, qualify
from cq.model.edge import Candidate, Links
from cq.model.facts import Call, References, Symbol
from cq.semantics.memory import Memory
from cq.semantics.tree import Semantics
from cq.source.language import detect_language
from tests.support.fixture import parse_fixture
from tests.support.invariants import check_document

CASES = Path(__file__).parents[1] / "cases"
_CASE = re.compile(r"^## (\w+): ([^\n]+)\n```(\w+)\n(.*?)^```\n((?:[^\n]+\n)*)", re.MULTILINE | re.DOTALL)

_ENDINGS = {"python": "py"}

Calls = set[tuple[str, str]]  # caller, callee


class Program(NamedTuple):
    category: str
    title: str
    files: dict[str, str]
    expected: Calls
    missed: Calls  # `bug: not …`: calls that are wrongly not found
    surplus: Calls  # `bug: also …`: calls that are wrongly found


def read_programs(page: str) -> list[Program]:
    text = (CASES / page).read_text("utf-8")
    found: list[Program] = []
    for category, title, language, snippet, says in _CASE.findall(text):
        files = {
            f"main.{_ENDINGS.get(language, language)}" if path == "main" else path: source
            for path, source in parse_fixture(snippet).files.items()
        }
        lines = says.splitlines()
        right = " ".join(line for line in lines if not line.startswith("bug:"))
        missed = [line.removeprefix("bug: not ") for line in lines if line.startswith("bug: not ")]
        surplus = [line.removeprefix("bug: also ") for line in lines if line.startswith("bug: also ")]
        found.append(Program(category, title, files, *map(_read_calls, (right, "; ".join(missed), "; ".join(surplus)))))
    return found


def _read_calls(says: str) -> Calls:
    """`a → b, c; d → e`."""
    calls: Calls = set()
    for part in says.split(";"):
        caller, _, callees = part.partition("→")
        calls |= {(caller.strip(), callee.strip()) for callee in callees.split(",") if callee.strip()}
    return calls


def name_of(path: str, name: str) -> str:
    """As a page writes it: `lib:f`, without the module in the main one."""
    stem = PurePosixPath(path).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    if stem == "main":
        return name or "main"
    return f"{stem}:{name}" if name else stem


class Linked:
    """The links of some files as a question sees them; the Index of cq.semantics.documents."""

    def __init__(self, files: dict[str, str]) -> None:
        self._files = files
        self.facts = {path: check_document(text.encode(), detect_language(path)) for path, text in files.items()}
        units = [Unit(path, facts.code) for path, facts in self.facts.items() if facts.code is not None]
        self._links = {unit.path: links for unit, links in link_units(units, files).items()}
        self._methods: list[tuple[str, Method]] = [method for unit in units for method in find_methods(unit)]
        self._imported = {path for links in self._links.values() for path in find_imported(links)}
        self.semantics = Semantics(self, Memory())

    def links(self, path: str) -> Sequence[Links | None]:
        return [self._links.get(path)]

    def code(self, path: str) -> Sequence[Code | None]:
        return [self.facts[path].code]

    def names(self, path: str) -> Sequence[dict[int, str]]:
        return [{} if code is None else qualify(code) for code in self.code(path)]

    def calls(self, path: str) -> Sequence[Sequence[Call]]:
        return [self.facts[path].calls]

    def symbols(self, path: str) -> Sequence[Sequence[Symbol]]:
        return [self.facts[path].symbols]

    def references(self, path: str) -> Sequence[References]:
        return [self.facts[path].references]

    def text(self, path: str) -> bytes:
        return self._files[path].encode()

    def paths(self) -> Sequence[str]:
        return sorted(self.facts)

    def find_users(self, name: str) -> Sequence[str]:
        return sorted(self.facts)

    def find_referrers(self, key: int) -> Sequence[tuple[str, Sequence[int]]]:
        return [(path, calls) for path, links in self._links.items() for at, calls in find_targets(links) if at == key]

    def has_referrers(self, key: int) -> bool:
        return True

    def find_methods(self, name: str) -> Sequence[tuple[str, int, str, tuple[Parameter, ...]]]:
        found = [method for known, method in self._methods if known == name]
        return [(m.place.path, m.place.document, m.place.name, m.parameters) for m in found]

    def find_functions(self) -> set[str]:
        """Everything that can be a callee."""
        found: set[str] = set()
        for path, facts in self.facts.items():
            if facts.code is not None:
                unit = Unit(path, facts.code)
                for definition in facts.code.definitions:
                    if definition.kind in ("function", "prototype"):
                        symbol = definition.anonymous[0] if definition.anonymous else definition.symbol
                        found.add(name_of(path, unit.qualified_names.get(symbol, "")))
        return found

    def find_calls(self) -> tuple[Calls, Calls]:
        """All calls, and those among them that are certain."""
        functions = self.find_functions()
        every: Calls = set()
        certain: Calls = set()
        for path in self.facts:
            for edge in self.semantics.referrers.find_all(path, 0):
                if edge.kind in ("calls", "decorates"):
                    for place in edge.ref.candidates:
                        call = (name_of(path, edge.source.name), name_of(place.path, place.name))
                        if call[1] in functions:
                            every.add(call)
                            if edge.ref.status == "resolved":
                                certain.add(call)
            for target in (Candidate(path, 0, name) for name in self.names(path)[0].values()):
                for read in self.semantics.usages.find_reads(target):
                    call = (name_of(read.source.path, read.source.name), name_of(path, target.name))
                    every.add(call)
                    if read.ref.status == "resolved":
                        certain.add(call)
        return every, certain
