"""Which tests reach definitions, and which of them are likeliest to fail when these change."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from posixpath import basename, dirname

import msgspec

from cq.graph.walk import Link, Reached, walk
from cq.model.answer import Truncation
from cq.model.edge import Candidate
from cq.questions.tests_for.suites import Suites, Test
from cq.snapshot.relations import Relations
from cq.snapshot.target import Definition
from cq.snapshot.walks import find_centers
from cq.source.role import find_role

# Imports and annotations run nothing of what they name.
EDGES = ("calls", "instantiates", "decorates", "usages", "inherits", "raises")
MAX_NODES = 800
MAX_LINKS = 20_000
ENOUGH = 20  # tests; where fewer reach a definition itself, those of what is around it are added
_AROUND = 0.4  # what is left of the nearness of a test that reaches the class, the file of a definition
_STEP = 0.75  # what each further call leaves of the chance that a test fails
_BESIDE = 0.95
_LONG = 4  # letters of a word that may be the beginning of another
_NAMED = 0.9  # what a test gains whose name, class and file are all called like what is tested


class Ranked(msgspec.Struct, frozen=True):
    """A test with one way to it, which is None where only names and places speak for it. `around`: the way leads to the
    class of the definition (1), to others of its file (2)."""

    test: Test
    reached: Reached[Candidate] | None
    score: float
    around: int = 0


class Found(msgspec.Struct, frozen=True):
    tests: list[Ranked]
    reached: int  # how many of them lead to the definitions themselves
    truncated: tuple[Truncation, ...]


def find_tests(
    relations: Relations, rows: Sequence[Definition], *, depth: int, least: float, widens: bool = True
) -> Found:
    """Best first: how near, how certain, and how much names and places say that this is the test of it. Where links
    lead to few tests, those of what is around the definitions are added, unless told not to."""
    suites, words = Suites(relations), [_Words(row) for row in rows]
    found: dict[Test, Ranked] = {}
    truncated: tuple[Truncation, ...] = ()
    reached = 0
    for around, centers in enumerate(_find_rings(relations, rows)):
        if around == 1:
            reached = len(found)
        if around and (len(found) >= ENOUGH or not widens):
            break
        ways, cut = _walk(relations, suites, centers, depth, least)
        truncated += cut if not around else ()
        for test, item in ways.items():
            if test not in found:
                found[test] = _rate(test, item, words, around)
    if len(found) < ENOUGH and widens:
        found = {each.test: each for each in _find_named(relations, suites, words)} | found
    return Found(_spread(found.values()), reached, truncated)


def _spread(found: Iterable[Ranked]) -> list[Ranked]:
    """Best first; of tests beside each other, which mostly fail together, each further one counts a little less."""
    before: Counter[tuple[str, str]] = Counter()
    scored: list[tuple[float, Ranked]] = []
    for each in sorted(found, key=lambda each: (-each.score, each.test)):
        home = each.test.path, each.test.name.rpartition(".")[0]
        scored.append((each.score * _BESIDE ** before[home], each))
        before[home] += 1
    return [each for _, each in sorted(scored, key=lambda item: (-item[0], item[1].test))]


def _find_rings(relations: Relations, rows: Sequence[Definition]) -> Iterator[list[Candidate]]:
    """What is changed; the classes it stands in; all that its files define."""
    yield find_centers(relations, rows)
    holders = [Definition(row.file, row.document, row.symbol.parent) for row in rows if row.symbol.parent >= 0]
    yield find_centers(relations, holders) if holders else []
    yield [
        place
        for file in {row.file.path: row.file for row in rows}.values()
        for document, symbols in enumerate(file.symbols)
        for number, symbol in enumerate(symbols)
        if symbol.body_start >= 0 and (place := relations.documents.find_place(file.path, document, number)) is not None
    ]


def _walk(
    relations: Relations, suites: Suites, centers: Sequence[Candidate], depth: int, least: float
) -> tuple[dict[Test, Reached[Candidate]], tuple[Truncation, ...]]:
    ask, first = relations.dependents(EDGES, least), set(centers)

    def neighbors(nodes: Collection[Candidate]) -> Iterable[Link[Candidate]]:
        # Nobody calls a test.
        todo = [node for node in sorted(nodes) if node in first or suites.find_test(node) is None]
        yield from ask(todo)
        for node in todo:
            yield from suites.find_beside(node)

    def order(node: Candidate) -> tuple[bool, Candidate]:
        """Tests first: should there be too many nodes, they are the ones to keep."""
        return find_role(node.path) != "test", node

    found = walk(
        centers, neighbors, depth=depth, forward=False, order=order, max_nodes=MAX_NODES + len(centers),
        max_links=MAX_LINKS,
    )  # fmt: skip
    nodes = {item.node: item for item in found.nodes}
    ways: dict[Test, Reached[Candidate]] = {}
    for item in found.nodes:
        test = suites.find_test(item.node)
        if test is not None:
            _keep(ways, test, item)
    for link in found.links:
        base = nodes.get(link.target)
        if base is not None:
            weakest = min(base.confidence, link.confidence)
            here = Reached(link.source, base.distance + 1, (*base.path, link), weakest)
            for test in suites.find_titled(link):
                _keep(ways, test, here)
    return ways, found.truncated


def _find_named(relations: Relations, suites: Suites, words: Sequence[_Words]) -> list[Ranked]:
    """Tests that are called like a definition, in files that are called like its file."""
    files = [path for path in relations.paths() if find_role(path) == "test" and any(w.rate_file(path) for w in words)]
    return [_rate(test, None, words) for path in files for test in suites.find_all(path)]


def _keep(ways: dict[Test, Reached[Candidate]], test: Test, item: Reached[Candidate]) -> None:
    known = ways.get(test)
    if known is None or _nearness(item) > _nearness(known):
        ways[test] = item


def _nearness(item: Reached[Candidate]) -> float:
    return item.confidence * _STEP ** max(item.distance - 1, 0)


def _rate(test: Test, item: Reached[Candidate] | None, words: Sequence[_Words], around: int = 0) -> Ranked:
    affinity = max((each.rate(test) for each in words), default=0.0)
    near = _nearness(item) * _AROUND**around if item is not None else 0.0
    return Ranked(test, item, round(near + _NAMED * affinity, 6), around)


class _Words:
    """What a definition and its file are called, as words."""

    def __init__(self, row: Definition) -> None:
        symbol = row.symbol
        self._path = row.file.path
        self._name = _split(symbol.name)
        self._around = _split(symbol.qualified_name.rpartition(".")[0])
        stem = basename(row.file.path).partition(".")[0]
        self._file = _split(
            stem if stem not in ("__init__", "index", "mod", "lib") else basename(dirname(row.file.path))
        )

    def rate(self, test: Test) -> float:
        """0 to 1: the name counts half, what is around it and the file the rest."""
        said = _split(test.name)
        name = _share(self._name, said)
        around = _share(self._around, said | _split(basename(test.path).partition(".")[0]))
        return round(0.5 * name + 0.2 * around + 0.3 * self.rate_file(test.path), 6)

    def rate_file(self, path: str) -> float:
        own = _split(basename(path).partition(".")[0]) - {"test", "tests", "spec"} or _split(basename(dirname(path)))
        if path == self._path:
            return 1.0
        return max(_share(words, own) * _share(own, words) for words in (self._file, self._name))


def _share(wanted: set[str], given: set[str]) -> float:
    """How many of the words are among others; `filter` is among `filters`."""
    fitting = [word for word in wanted if word in given or any(_is_akin(word, other) for other in given)]
    return len(fitting) / len(wanted) if wanted else 0.0


def _is_akin(one: str, other: str) -> bool:
    return min(len(one), len(other)) >= _LONG and (one.startswith(other) or other.startswith(one))


def _split(name: str) -> set[str]:
    """`HTTPServer.run_once` is http, server, run, once."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name)
    return {part.lower() for part in parts if len(part) > 1 or part.isdigit()}
