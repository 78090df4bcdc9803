"""Patterns made of a tree's own code, and what two programs and `cq` find for each: they must find the same."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from ast_grep_py import SgNode, SgRoot

from cq import Workspace
from cq.model.errors import QueryError
from cq.query.vocabulary import LANGUAGES
from cq.questions.q import QueryOptions
from cq.questions.q.rules import MISREAD, Reading, find_frames, is_clause

Place = tuple[str, int, int]  # a path, and characters of its text
MAX_PATTERN = 300
_GLUED = re.compile(r"\w\$|\$\$\$[ABC]?\w|\$[ABC]\w")  # a metavariable that is a part of a word
_HEADERS = (".h",)  # these are C to the program, whatever language is asked for


class Difference(msgspec.Struct, frozen=True):
    """`explained` says which rule of docs/query.md lets cq find more, "" where none does."""

    pattern: str
    more: tuple[Place, ...]  # what cq finds beyond the matcher
    missed: tuple[Place, ...]
    explained: str


class Comparison(msgspec.Struct, frozen=True):
    """Of the patterns of one language; `refused` are those that cq says mean nothing, and why: a difference where the
    matcher finds something."""

    language: str
    patterns: int
    matches: int
    differences: tuple[Difference, ...]
    refused: tuple[tuple[str, str], ...]
    program: tuple[str, ...]  # patterns of which the ast-grep program finds something else than ast-grep-py


class _Match(msgspec.Struct):
    file: str
    range: dict[str, dict[str, int]]


def make_patterns(texts: Iterable[str], language: str, count: int, *, seed: int = 0) -> list[str]:
    """Pieces of the code with up to three of their nodes replaced by metavariables; the same for the same texts."""
    chance = random.Random(f"{language} {seed}")
    nodes: list[tuple[str, SgNode]] = []
    for text in texts:
        todo = [SgRoot(text, LANGUAGES[language]).root()]
        while todo:
            node = todo.pop()
            children = node.children()
            if node.is_named() and any(child.is_named() for child in children) and 6 <= len(node.text()) <= MAX_PATTERN:
                nodes.append((text, node))
            todo += children
    by_kind: dict[str, list[tuple[str, SgNode]]] = {}
    for text, node in nodes:
        by_kind.setdefault(node.kind(), []).append((text, node))
    kinds = sorted(by_kind)
    patterns: dict[str, None] = {}
    for _ in range(count * 20):
        if len(patterns) >= count or not kinds:
            break
        text, node = chance.choice(by_kind[chance.choice(kinds)])
        pattern = _abstract(text, node, chance)
        if "$" in pattern and not _GLUED.search(pattern):
            patterns.setdefault(pattern)
    return list(patterns)


def _abstract(text: str, node: SgNode, chance: random.Random) -> str:
    """The text of a node with parts of it replaced; a whole list becomes `$$$`."""
    start, end = node.range().start.index, node.range().end.index
    below: list[SgNode] = []
    todo = list(node.children())
    while todo:
        child = todo.pop(0)
        below.append(child)
        todo += child.children()
    named = [child for child in below if child.is_named() and any(map(str.isalnum, child.text()))]
    chance.shuffle(named)
    taken: list[tuple[int, int, str]] = []
    for child in named[: chance.randint(1, 3)]:
        own = child.range()
        first, last, name = own.start.index, own.end.index, "$" + "ABC"[len(taken)]
        inner = child.children()
        if len(inner) > 2 and inner[0].text() in "([{" and chance.random() < 0.6:
            first, last = inner[0].range().end.index, inner[-1].range().start.index
            name = chance.choice(["$$$", "$$$" + "ABC"[len(taken)]])
            if inner[0].text() == "{":
                name = f" {name} "
        if all(last <= a or b <= first for a, b, _ in taken) and first < last and (first, last) != (start, end):
            taken.append((first, last, name))
    made = text[start:end]
    for first, last, name in sorted(taken, reverse=True):
        made = made[: first - start] + name + made[last - start :]
    return made if "'" not in made or '"' not in made else ""


def find_own(workspace: Workspace, pattern: str, language: str) -> set[Place]:
    """What `cq q` finds, in characters."""
    quote = "'" if "'" not in pattern else '"'
    answer = workspace.q(QueryOptions(f"pattern={quote}{pattern}{quote} lang={language}", everything=True))
    found: set[Place] = set()
    for finding in answer.sections[0].findings:
        if place := finding.location:
            text = workspace.text(place.path)
            found.add((place.path, len(text[: place.start].decode()), len(text[: place.end].decode())))
    return found


def find_by_matcher(roots: Mapping[str, SgNode], pattern: str) -> set[Place] | str:
    """What ast-grep-py finds for the bare pattern; why it cannot take it."""
    found: set[Place] = set()
    for path, root in roots.items():
        try:
            places = [node.range() for node in root.find_all(pattern=pattern)]
        except RuntimeError as error:
            return str(error).strip().splitlines()[-1].strip()
        found |= {(path, place.start.index, place.end.index) for place in places}
    return found


def find_by_program(folder: Path, pattern: str, language: str) -> set[tuple[str, int, int]] | None:
    """What the ast-grep program finds: a path, and where it begins by line and character; None where it refuses."""
    program = shutil.which("ast-grep", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if program is None:
        raise FileNotFoundError("ast-grep is not installed: make install")
    command = [program, "run", "--lang", LANGUAGES[language], "--json=stream", "--no-ignore", "hidden"]
    done = subprocess.run(
        [*command, "--no-ignore", "vcs", "--pattern", pattern, "."], cwd=folder, capture_output=True, check=False
    )
    if done.returncode > 1:
        return None
    rows = [msgspec.json.decode(line, type=_Match) for line in done.stdout.splitlines() if line.startswith(b"{")]
    return {(row.file.removeprefix("./"), row.range["start"]["line"], row.range["start"]["column"]) for row in rows}


def compare(workspace: Workspace, language: str, patterns: Iterable[str], *, program: bool = True) -> Comparison:
    """Every pattern over the files of the language in the workspace, three times."""
    paths = [file.path for file in workspace.files() if file.language == language]
    texts = {path: workspace.text(path).decode("utf-8", "replace") for path in paths}
    roots = {path: SgRoot(text, LANGUAGES[language]).root() for path, text in texts.items()}
    differences: list[Difference] = []
    refused: list[tuple[str, str]] = []
    other: list[str] = []
    count = matches = 0
    for pattern in patterns:
        count += 1
        theirs = find_by_matcher(roots, pattern)
        try:
            own = find_own(workspace, pattern, language)
        except QueryError as error:
            refused.append((pattern, error.message))
            if theirs and not isinstance(theirs, str):
                differences.append(Difference(pattern, (), tuple(sorted(theirs)), ""))
            continue
        expected = set() if isinstance(theirs, str) else theirs
        matches += len(own)
        if own != expected:
            more, missed = tuple(sorted(own - expected)), tuple(sorted(expected - own))
            differences.append(Difference(pattern, more, missed, "" if missed else explain(pattern, language)))
        if program:
            found = find_by_program(workspace.root, pattern, language)
            expected = {place for place in expected if not place[0].endswith(_HEADERS)}
            if found is not None and found != {(path, *_place(texts[path], start)) for path, start, _ in expected}:
                other.append(pattern)
    return Comparison(language, count, matches, tuple(differences), tuple(refused), tuple(other))


def explain(pattern: str, language: str) -> str:
    """Why cq may find more than the matcher for a pattern; see "Code" in docs/query.md."""
    reading = Reading(pattern, language)
    if reading.fault is not None or is_clause(pattern):
        return "needs code around it"
    if reading.kind in MISREAD or find_frames(pattern, language):
        return "alone it is read as something else"
    if "$$$" in pattern:
        return "a list that may be empty, or goes on behind its $$$"
    return ""


def _place(text: str, index: int) -> tuple[int, int]:
    return text.count("\n", 0, index), index - text.rfind("\n", 0, index) - 1
