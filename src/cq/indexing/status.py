"""What a tree of the index holds, and how far the files on disk have moved on. Reads only."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import msgspec

from cq.indexing.location import Place
from cq.indexing.refresh import Settings
from cq.language import describe
from cq.languages.registry import get_language
from cq.model.source import Skip
from cq.model.status import Degraded, Freshness, LanguageStatus, Status
from cq.source.files import FileEntry, find_files
from cq.source.read import content_hash, read_source, show_path
from cq.store.database import measure
from cq.store.read import Reader, Tree

# A comparison that would read more than this counts by size and time alone: it is asked for to be quick.
_MAX_READS = 1000
_COUNTS = ("symbols", "calls", "imports", "references", "chunks", "documents", "problems")


class Changes(msgspec.Struct, frozen=True):
    """Files on disk against files as indexed."""

    added: int = 0
    changed: int = 0
    removed: int = 0

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


def find_changes(reader: Reader, tree: Tree, root: Path, settings: Settings) -> Changes:
    """What a refresh would find, without doing it."""
    listing = find_files(
        root,
        include=settings.include,
        exclude=settings.exclude,
        max_bytes=settings.max_file_bytes,
        max_files=settings.max_files,
    )
    known, skips = reader.stats(tree.id), reader.skips(tree.id)
    added = changed = reads = 0
    for entry in listing.files:
        before = known.get(entry.path)
        if before == (entry.os_path, entry.size, entry.written_ns):
            continue
        if before is None and entry.path in skips and skips[entry.path][1:] == (entry.size, entry.written_ns):
            continue
        reads += 1
        if reads <= _MAX_READS and _is_same(reader, tree, root, entry, settings):
            continue
        added, changed = (added + 1, changed) if before is None else (added, changed + 1)
    return Changes(added, changed, len(known.keys() - {entry.path for entry in listing.files}))


def _is_same(reader: Reader, tree: Tree, root: Path, entry: FileEntry, settings: Settings) -> bool:
    """By text: a file may be touched and equal, or was so new when it was read that its time proved nothing."""
    source = read_source(root, entry, max_bytes=settings.max_file_bytes)
    stored = reader.file(tree.id, entry.path)
    if isinstance(source, Skip):
        return stored is None
    return stored is not None and (stored.hash, stored.language) == (content_hash(source.text), source.language)


def read_status(reader: Reader, tree: Tree, place: Place, freshness: Freshness, events: list[Degraded]) -> Status:
    """`events` is what else there is to say; languages that cannot be loaded are added to it."""
    counts: Counter[str] = Counter()
    totals: dict[str, list[int]] = {}
    files = lines = size = 0
    for file in reader.files(tree.id):
        files, lines, size = files + 1, lines + file.lines, size + file.size
        counts.update(file.counts)
        counts["problems"] += len(file.problems)
        total = totals.setdefault(file.language, [0, 0, 0, 0])
        for at, number in enumerate((1, file.lines, file.size, file.counts["symbols"])):
            total[at] += number
    skipped = Counter(skip.reason for skip, _, _ in reader.skips(tree.id).values())
    languages = [
        LanguageStatus(name, *totals[name], capabilities=_find_capabilities(name, events))
        for name in sorted(totals, key=lambda name: (-totals[name][0], name))
    ]
    return Status(
        show_path(tree.root),
        freshness,
        files,
        lines,
        size,
        {name: counts[name] for name in _COUNTS},
        tuple(languages),
        dict(sorted(skipped.items(), key=lambda item: (-item[1], item[0]))),
        show_path(os.fspath(place.file)),
        measure(place.file),
        place.temporary,
        tuple(events),
        {f"{source} ({version})" if version else source: n for source, version, n in reader.evidence_sources(tree.id)},
        mistakes=tuple(reader.count_mistakes(tree.id)),
    )


def _find_capabilities(name: str, events: list[Degraded]) -> tuple[str, ...]:
    try:
        get_language(name)
    except ImportError as error:
        message = f"{name} is searched as text only: {error} (see `cq doctor`)"
        events.append(Degraded("syntax", "error", "language", message))
        return ()
    return describe(name).offers
