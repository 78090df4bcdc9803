"""Searches over fixtures and over loose sources, without an index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from cq.indexing.read import extract_source
from cq.model.answer import Answer, Finding, MatchDetails
from cq.model.source import SourceFile
from cq.questions.search import SearchOptions, search
from cq.questions.search.scan import Scan, scan
from cq.snapshot.files import DiskFiles, HeldFile
from cq.source.read import decode
from tests.support.fixture import parse_fixture


class LooseFiles(DiskFiles):
    """Sources that lie nowhere."""

    def __init__(self, sources: Iterable[SourceFile]) -> None:
        super().__init__(Path(), (), extract_source, 1 << 30)
        self._sources = tuple(sources)

    def count(self) -> dict[str, int]:
        return {"python": len(self._sources)}

    def candidates(self, literals: tuple[str, ...] | None) -> Iterator[HeldFile]:
        return map(self._hold, self._sources)


def hold(source: SourceFile) -> HeldFile:
    return next(LooseFiles([source]).candidates(None))


def read_fixture(snippet: str) -> LooseFiles:
    sources = [decode(text.encode(), path) for path, text in parse_fixture(snippet).files.items()]
    return LooseFiles(source for source in sources if isinstance(source, SourceFile))


def search_fixture(snippet: str, text: str, **options: Any) -> Answer:
    return search(read_fixture(snippet), SearchOptions(text, **options))[0]


def scan_fixture(snippet: str, text: str, **options: Any) -> Scan:
    return scan(read_fixture(snippet), SearchOptions(text, **options))


def check_search(snippet: str, text: str, **options: Any) -> None:
    """The marks are exactly the mentions, each labelled with what it is."""
    found = scan_fixture(snippet, text, **options)
    expected = sorted((mark.path, mark.start, mark.end, mark.label) for mark in parse_fixture(snippet).marks)
    assert sorted((hit.file.path, hit.start, hit.end, hit.category) for hit in found.hits) == expected


def rows(answer: Answer) -> list[tuple[Finding, MatchDetails]]:
    """The mentions that are shown, in the order of the sections."""
    findings = [finding for section in answer.sections for finding in section.findings]
    return [(finding, finding.details) for finding in findings if isinstance(finding.details, MatchDetails)]
