"""What test runners take for a test, by the table `tests` of each language, and what runs beside the code of one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from posixpath import dirname

import msgspec

from cq.graph.walk import Link
from cq.language import load_table
from cq.model.edge import CONFIDENCE, Candidate
from cq.model.facts import Call
from cq.snapshot.relations import Relations
from cq.snapshot.target import Definition
from cq.source.role import find_role


class TestRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Every field is a regular expression that a whole name fits; an empty one fits nothing."""

    __test__ = False

    runner: str = ""  # whose arguments name these tests; the only field that is no expression
    functions: str = ""  # at the root level of a file of tests
    methods: str = ""  # of a class of tests
    classes: str = ""  # names of classes of tests
    bases: str = ""  # the last name of a base that makes a class one of tests
    marks: str = ""  # decorators, attributes and annotations that make a function a test, in any file
    hooks: str = ""  # names of methods and functions that run with every test beside them
    hook_marks: str = ""  # the same by decorators
    fixtures: str = ""  # decorators of functions that tests take by naming a parameter like them
    shared: str = ""  # names of files whose fixtures serve all tests of their folder
    calls: str = ""  # callees that are given a title and the code of a test
    groups: str = ""  # callees that are given a title and tests
    hook_calls: str = ""  # callees whose code runs with every test of the group


class Test(msgspec.Struct, frozen=True, order=True):
    """`argument` is what the runner is given to run it; `name` is how people call it."""

    __test__ = False

    path: str
    start: int
    name: str
    runner: str
    argument: str


class Suites:
    """The tests of a tree, as far as they are asked for."""

    def __init__(self, relations: Relations) -> None:
        self._relations = relations
        self._titled: dict[tuple[str, int], list[_Titled]] = {}

    def find_test(self, node: Candidate) -> Test | None:
        """The test that a definition is."""
        row = self._relations.definition(node)
        return _make_test(row) if row is not None and _is_test(row) and self.is_suite(row.file.path) else None

    @cache  # noqa: B019  as long as the answer is made
    def is_suite(self, path: str) -> bool:
        """Whether no code outside of tests uses a file: jinja2/tests.py holds what templates can test."""
        users = self._relations.referrers.find_files(Candidate(path, 0, ""))
        return not any(find_role(user) == "src" for user, _ in users) or find_role(path) != "test"

    def find_titled(self, link: Link[Candidate]) -> list[Test]:
        """The tests that hold the code of a link, where tests are calls with a title; of code that runs with every test
        of a group, all of them."""
        call = self._relations.call(link)
        titled = self._find_titled(link.source.path, link.source.document)
        if call is None or not titled:
            return []
        around = [each for each in titled if each.start <= call.start < each.end]
        if any(each.is_test for each in around):
            return [each.test for each in around if each.is_test][-1:]
        if not around:
            return []  # code of the file itself
        first, last = around[-1].start, around[-1].end
        if around[-1].is_hook:  # the group that the hook stands in, or the whole file
            first, last = (around[-2].start, around[-2].end) if len(around) > 1 else (0, titled[-1].end)
        return [each.test for each in titled if each.is_test and first <= each.start < last]

    def find_all(self, path: str) -> list[Test]:
        """Every test of a file, as it stands there."""
        held = self._relations.hold(path) if self.is_suite(path) else None
        found: list[Test] = []
        for document, symbols in enumerate(held.symbols if held is not None else ()):
            if held is not None:
                rows = (Definition(held, document, number) for number in range(len(symbols)))
                found += [_make_test(row) for row in rows if _is_test(row)]
                found += [each.test for each in self._find_titled(path, document) if each.is_test]
        return sorted(found, key=lambda test: test.start)

    def find_beside(self, node: Candidate) -> Iterator[Link[Candidate]]:
        """Of code that runs with tests which do not call it, a link from each: `setUp`, a fixture that a test takes."""
        row = self._relations.definition(node)
        if row is None:
            return
        rules = find_rules(row)
        if _fits(rules.fixtures, *_marks(row)):
            yield from self._find_takers(row, node)
        elif _fits(rules.hooks, row.symbol.name) or _fits(rules.hook_marks, *_marks(row)):
            yield from self._find_siblings(row, node)

    def _find_siblings(self, row: Definition, node: Candidate) -> Iterator[Link[Candidate]]:
        """Tests of the same class or module, and of the classes below it."""
        relations = self._relations
        holders = [(row, row.symbol.parent)]
        if row.parent is not None:
            holder = relations.find_place(Definition(row.file, row.document, row.symbol.parent))
            below = relations.dependents(("inherits",), 0.0)([holder]) if holder is not None else ()
            found = (relations.definition(link.source) for link in below)
            holders += [(each, each.number) for each in found if each is not None]
        for around, number in holders:
            for at, symbol in enumerate(around.siblings):
                if symbol.parent == number:
                    yield from self._link(Definition(around.file, around.document, at), node, "calls", "mro")

    def _find_takers(self, row: Definition, node: Candidate) -> Iterator[Link[Candidate]]:
        """Functions with a parameter of the fixture's name, where it serves: its own file, or a folder."""
        relations, name = self._relations, _fixture_name(row)
        serves_folder = _fits(find_rules(row).shared, row.file.path.rpartition("/")[2])
        folder = f"{dirname(row.file.path)}/".removeprefix("/")
        for file in relations.files.candidates(None if _is_automatic(row) else (name,)):
            if file.path != row.file.path and not (serves_folder and file.path.startswith(folder)):
                continue
            held = relations.hold(file.path)
            for document, symbols in enumerate(held.symbols if held is not None else ()):
                if held is None:
                    continue
                for at, symbol in enumerate(symbols):
                    taker = Definition(held, document, symbol.parent if symbol.kind == "parameter" else at)
                    if symbol.kind == "parameter" and symbol.name == name and symbol.parent >= 0:
                        is_meant = _is_test(taker) or _fits(find_rules(taker).fixtures, *_marks(taker))
                    else:
                        is_meant = _is_test(taker) and (_is_automatic(row) or _uses(taker, name))
                    if is_meant:
                        yield from self._link(taker, node, "fixture", "parameter")

    def _link(self, row: Definition, node: Candidate, kind: str, evidence: str) -> Iterator[Link[Candidate]]:
        place = self._relations.find_place(row)
        if place is not None and place != node and (_is_test(row) or kind == "fixture"):
            yield Link(place, node, kind, CONFIDENCE[evidence])

    def _find_titled(self, path: str, document: int) -> list[_Titled]:
        if (path, document) not in self._titled:
            held = self._relations.hold(path)
            self._titled[path, document] = (
                []
                if held is None
                else list(_read_titled(path, held.documents[document].language, held.calls[document]))
            )
        return self._titled[path, document]


class _Titled(msgspec.Struct, frozen=True):
    start: int
    end: int
    test: Test
    is_test: bool
    is_hook: bool


def find_rules(row: Definition) -> TestRules:
    return _load(row.file.documents[row.document].language)


@cache
def _load(language: str) -> TestRules:
    return load_table(language, "tests", TestRules)


def _fits(pattern: str, *names: str) -> bool:
    return bool(pattern) and any(re.fullmatch(pattern, name) for name in names)


def _marks(row: Definition) -> Iterable[str]:
    """Decorators without what they are given."""
    return [mark.partition("(")[0].strip() for mark in row.symbol.decorators]


def _is_test(row: Definition) -> bool:
    symbol, rules = row.symbol, find_rules(row)
    if not rules.runner or symbol.body_start < 0 or symbol.kind_group not in ("function", "method"):
        return False
    if _fits(rules.marks, *_marks(row)):
        return True
    if row.file.role != "test":
        return False
    parent = row.parent
    if parent is None:
        return _fits(rules.functions, symbol.name)
    return _fits(rules.methods, symbol.name) and (
        _fits(rules.classes, parent.name)
        or any(_fits(rules.bases, re.split(r"[.\[(]", base)[0 if "." not in base else -1]) for base in parent.bases)
    )


def _make_test(row: Definition) -> Test:
    symbol, rules, path = row.symbol, find_rules(row), row.file.path
    name = symbol.qualified_name
    if rules.runner == "cargo":
        argument = "::".join((*_find_module(path), *name.split(".")))
    elif rules.runner == "pytest":
        argument = f"{path}::{name.replace('.', '::')}"
    else:
        argument = name
    return Test(path, symbol.name_start, name, rules.runner, argument)


def _find_module(path: str) -> list[str]:
    """The module of a file of Rust inside its crate: that of `crates/a/src/b/mod.rs` is `b`. A file beside `src` is a
    crate of its own."""
    below = f"/{path}".rpartition("/src/")[2] if "/src/" in f"/{path}" else ""
    parts = below.removesuffix(".rs").split("/") if below else []
    return parts[:-1] if parts and parts[-1] in ("lib", "main", "mod") else parts


def _fixture_name(row: Definition) -> str:
    given = [re.search(r"""\bname\s*=\s*["'](\w+)["']""", mark) for mark in row.symbol.decorators]
    return next((found[1] for found in given if found), row.symbol.name)


def _is_automatic(row: Definition) -> bool:
    return any(re.search(r"\bautouse\s*=\s*True\b", mark) for mark in row.symbol.decorators)


def _uses(row: Definition, name: str) -> bool:
    """`@pytest.mark.usefixtures("name")` of a test or its class."""
    around = row.parent
    marks = (*row.symbol.decorators, *(around.decorators if around is not None else ()))
    return any("usefixtures" in mark and re.search(rf"""["']{re.escape(name)}["']""", mark) for mark in marks)


def _read_titled(path: str, language: str, calls: Iterable[Call]) -> Iterator[_Titled]:
    """Tests, groups and hooks of a document that are calls, by where they begin: `describe("a", () => it("b", …))`."""
    rules = _load(language)
    if not rules.calls:
        return
    around: list[tuple[int, str]] = []
    for call in sorted(calls, key=lambda call: (call.start, -call.end)):
        root = call.callee.partition("(")[0]
        is_group, is_hook = _fits(rules.groups, root), _fits(rules.hook_calls, root)
        is_test = _fits(rules.calls, root) and not is_group
        if not (is_test or is_group or is_hook) or (not is_hook and (call.arg_count < 2 or not call.args)):
            continue
        around = [each for each in around if each[0] > call.start]
        title = call.args[0].text.strip("'\"`") if call.args and not is_hook else ""
        name = " ".join([*(text for _, text in around), title])
        yield _Titled(call.start, call.end, Test(path, call.start, name, rules.runner, name), is_test, is_hook)
        if is_group:
            around.append((call.end, title))
