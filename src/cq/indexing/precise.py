"""Asks language servers what the calls mean that our own resolution left open, and writes down what they say.

File after file in the order of their paths, many places at once; what is answered is written as it comes, so a run that
was stopped goes on where it was. What was asked of one text in one version of a server is not asked again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec

from cq.identity import Identity, identify, tool_path
from cq.indexing.evidence import Said, put_evidence
from cq.indexing.refresh import Progress
from cq.language import describe
from cq.model.edge import Candidate
from cq.model.evidence import Statement
from cq.model.facts import Call
from cq.model.provider import Place, Reply, name_source
from cq.providers.answers import Target
from cq.providers.documents import Document
from cq.providers.registry import Registry
from cq.providers.session import BUDGETS
from cq.semantics.tree import open_semantics
from cq.store import database
from cq.store.read import Reader, StoredFile

OPEN = ("unresolved", "ambiguous")
# Places in one question. One that is asked over its own interface loads the whole project for each.
_BATCH, _WHOLE = 2000, 100_000
_CONSTRUCTORS = ("__init__", "__new__", "constructor")


class SourceReport(msgspec.Struct, frozen=True):
    """What one server did for the calls it was asked about."""

    source: str
    version: str
    asked: int = 0
    resolved: int = 0  # to a definition of the repository
    external: int = 0  # to one outside
    unknown: int = 0  # it says nothing, or several things, or something that is no definition
    failed: int = 0  # no answer; they are asked again the next time
    files: int = 0


class PreciseReport(msgspec.Struct, frozen=True):
    """`known` files were asked about before. `left` are calls that the budget had no room for."""

    calls: int = 0  # that our own resolution left open, of languages that some server knows
    known: int = 0
    sources: tuple[SourceReport, ...] = ()
    left: int = 0
    notes: tuple[str, ...] = ()  # why a language has no server, why one stopped


class _Question(msgspec.Struct, frozen=True):
    """The open calls of one document, by their numbers."""

    file: StoredFile
    number: int
    language: str
    calls: list[tuple[int, Call]]


def resolve_precisely(
    index: Path,
    root: Path,
    registry: Registry,
    *,
    seconds: float = 0.0,
    most: int = 0,
    tell: Callable[[Progress], None] = lambda _: None,
) -> PreciseReport:
    """Within `seconds` and `most` calls, 0 for no limit. Nothing a server does makes it fail."""
    return _Run(index, root, registry, seconds, most, tell).run()


class _Run:
    def __init__(
        self, index: Path, root: Path, registry: Registry, seconds: float, most: int, tell: Callable[[Progress], None]
    ) -> None:
        self.index, self.root, self.registry, self.tell = index, root, registry, tell
        self.deadline = time.monotonic() + seconds if seconds else float("inf")
        self.most = most or 1 << 60
        self.counts: dict[str, dict[str, int]] = {}
        self.versions: dict[str, str] = {}
        self.notes: dict[str, None] = {}
        self.known: set[str] = set()

    def run(self) -> PreciseReport:
        with closing(Reader(database.connect(self.index), os.fspath(self.root))) as reader, reader:
            tree = reader.tree()
            if tree is None:
                return PreciseReport()
            self.reader, self.tree = reader, tree.id
            self.semantics = open_semantics(reader, tree.id)
            self._names: dict[str, dict[int, tuple[int, int]]] = {}
            by_language = self._find_questions()
            total = sum(len(question.calls) for questions in by_language.values() for question in questions)
            done = 0
            for language, questions in by_language.items():
                whole = any(each.resolve for each in self.registry.select(language, "definition"))
                for batch in _split(questions, min(_WHOLE if whole else _BATCH, self.most)):
                    size = sum(len(question.calls) for question in batch)
                    # A file is asked about as a whole, also one with more calls than the budget has room for.
                    if time.monotonic() >= self.deadline or (done and done + size > self.most):
                        break
                    self.tell(Progress("precise", done, total))
                    if not self._ask(batch):
                        break
                    done += size
            self.tell(Progress("precise", done, total))
        sources = tuple(
            SourceReport(source, self.versions[source], **counts) for source, counts in sorted(self.counts.items())
        )
        return PreciseReport(total, len(self.known), sources, total - done, tuple(self.notes))

    def _find_questions(self) -> dict[str, list[_Question]]:
        """By language, of files that no server of it has been asked about as they are; by path."""
        asked: dict[str, set[str]] = {}
        found: dict[str, list[_Question]] = {}
        for file in self.reader.files(self.tree):
            path, links = file.path, self.reader.own_links(self.tree, file.path)
            if not any(links):
                continue
            documents, calls = self.reader.documents(file.content), self.reader.calls(file.content)
            for number, own in enumerate(links):
                if own is None:
                    continue
                language = documents[number].language
                if language not in asked:
                    asked[language] = self._find_asked(language)
                pairs = enumerate(zip(own.calls, calls[number], strict=True))
                open_ = [(at, call) for at, (ref, call) in pairs if own.refs[ref].status in OPEN]
                open_ = [(at, call) for at, call in open_ if call.name_start >= 0]
                if not open_ or not self._can_ask(language):
                    continue
                if path in asked[language]:
                    self.known.add(path)
                else:
                    found.setdefault(language, []).append(_Question(file, number, language, open_))
        return dict(sorted(found.items()))

    def _can_ask(self, language: str) -> bool:
        if next(self.registry.select(language, "definition"), None) is not None:
            return True
        self.notes[f"{language}: {self.registry.explain(language, 'definition')}"] = None
        return False

    def _find_asked(self, language: str) -> set[str]:
        """Paths that are settled: in this version, by any of the servers that could be asked."""
        found: set[str] = set()
        for provider in self.registry.select(language, "definition"):
            version = self.registry.detect(provider).version
            found |= self.reader.asked(self.tree, name_source(provider.id), version)
        return found

    def _ask(self, batch: list[_Question]) -> bool:
        """Asks, and writes down; False when nobody answers any more."""
        targets = [
            Target(document, call.name_start)
            for question in batch
            if (document := self._open(question))
            for _, call in question.calls
        ]
        budget = BUDGETS["precise"]
        left = min(budget.total, max(self.deadline - time.monotonic(), 1.0))
        replies = self.registry.ask("definition", targets, msgspec.structs.replace(budget, total=left), bulk=True)
        said: dict[str, list[Said]] = {}
        at = 0
        for file, questions in _by_file(batch):
            size = sum(len(question.calls) for question in questions)
            mine = replies[at : at + size]
            at += size
            source = next((reply.source for reply in mine if reply.provider and not reply.failed), "")
            if not source:
                self._count(mine[0].source, asked=size, failed=size)
                continue
            statements, counts = self._read(questions, mine)
            self._count(source, **counts)
            if not counts["failed"]:
                self._count(source, files=1)
                said.setdefault(source, []).append((file.path, file.hash, statements))
        for source, rows in said.items():
            put_evidence(self.index, self.root, source, self.versions[source], rows)
        failed = [reply for reply in replies if reply.failed]
        if len(failed) == len(replies):
            self.notes[f"{failed[0].provider}: {failed[0].coverage.reason}"] = None
        return len(failed) < len(replies)

    def _open(self, question: _Question) -> Document:
        file, text = question.file, self.reader.text(question.file.content)
        segment, name = self.reader.documents(file.content)[question.number].segment, ""
        if segment is not None:
            identity = _flatten(identify(file.path, text, self.reader.facts(file.content)))[question.number]
            name = tool_path(file.path, identity.segment_uid, describe(question.language).suffix)
        return Document(file.path, question.language, text, segment, name)

    def _count(self, source: str, **counts: int) -> None:
        if source not in self.counts:
            provider = next(each for each in self.registry.providers if name_source(each.id) == source)
            self.versions[source], self.counts[source] = self.registry.detect(provider).version, {}
        mine = self.counts[source]
        for name, count in counts.items():
            mine[name] = mine.get(name, 0) + count

    def _read(self, questions: list[_Question], replies: list[Reply[Any]]) -> tuple[list[Statement], dict[str, int]]:
        counts: dict[str, int] = dict.fromkeys(("asked", "resolved", "external", "unknown", "failed"), 0)
        statements: list[Statement] = []
        calls = [(question.number, at, call) for question in questions for at, call in question.calls]
        for (document, at, call), reply in zip(calls, replies, strict=True):
            counts["asked"] += 1
            statement = None if reply.failed else self._state(document, at, call, reply.items)
            if reply.failed:
                counts["failed"] += 1
            elif statement is None:
                counts["unknown"] += 1
            else:
                counts["external" if statement.target is None else "resolved"] += 1
                statements.append(statement)
        return statements, counts

    def _state(self, document: int, at: int, call: Call, places: Sequence[Place]) -> Statement | None:
        outside = {_module(place.external) for place in places if place.external}
        if outside and len(outside) == 1 and all(place.external for place in places):
            return Statement(document, at, module=outside.pop())
        found = [self._find(place) for place in places]
        if not found or None in found:
            return None
        # Overloads stand one below the other; the last is the one that runs.
        first, last = found[0], found[-1]
        if (
            first is None
            or last is None
            or {(c.path, c.name.partition("#")[0]) for c in found if c} != {(first.path, first.name.partition("#")[0])}
        ):
            return None
        owner, _, name = last.name.rpartition(".")
        if owner and name in _CONSTRUCTORS and call.name != name:
            return Statement(document, at, Candidate(last.path, last.document, owner), constructor=last)
        return Statement(document, at, last)

    def _find(self, place: Place) -> Candidate | None:
        """The definition whose name stands exactly there."""
        if not place.path:
            return None
        if place.path not in self._names:
            content = self.reader.contents(self.tree, [place.path]).get(place.path)
            symbols = [] if content is None else self.reader.symbols(content)
            self._names[place.path] = {
                symbol.name_start: (document, number)
                for document, each in enumerate(symbols)
                for number, symbol in enumerate(each)
            }
        found = self._names[place.path].get(place.start)
        return None if found is None else self.semantics.documents.find_place(place.path, *found)


def _split(questions: list[_Question], size: int) -> Iterator[list[_Question]]:
    """Whole files, about so many calls."""
    batch: list[_Question] = []
    count = 0
    for _, group in _by_file(questions):
        batch += group
        count += sum(len(question.calls) for question in group)
        if count >= size:
            yield batch
            batch, count = [], 0
    if batch:
        yield batch


def _by_file(questions: Sequence[_Question]) -> Iterator[tuple[StoredFile, list[_Question]]]:
    group: list[_Question] = []
    for question in questions:
        if group and group[0].file.path != question.file.path:
            yield group[0].file, group
            group = []
        group.append(question)
    if group:
        yield group[0].file, group


def _flatten(identity: Identity) -> list[Identity]:
    """In the order of documents: outer before inner."""
    found: list[Identity] = []
    todo = [identity]
    while todo:
        found.append(todo.pop())
        todo += reversed(found[-1].embedded)
    return found


def _module(external: str) -> str:
    """`requests/api.py` is `requests.api`."""
    stem, _, ending = external.rpartition(".")
    return stem.removesuffix("/__init__").replace("/", ".") if ending in ("py", "pyi") else external
