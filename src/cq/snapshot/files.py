"""The files a search looks at: those of the index, or, where there is none yet, those on disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from cq.identity import Identity, chunk_uid, identify, scoped_id, symbol_id
from cq.model.location import LineTable, Location
from cq.model.source import LACKING, Problem, Skip, SourceFile
from cq.semantics.memory import open_memory, remembered
from cq.source.language import detect_language
from cq.source.read import content_hash, read_source
from cq.source.role import find_role
from cq.store.codec import Document, as_parts

if TYPE_CHECKING:
    from pathlib import Path

    from cq.indexing.refresh import Settings
    from cq.model.edge import Mistake
    from cq.model.facts import Call, Chunk, Export, FileFacts, Flow, Import, References, Symbol
    from cq.semantics.tree import Semantics
    from cq.snapshot.target import Definition
    from cq.source.files import FileEntry
    from cq.store.read import Reader, StoredFile, Tree


class HeldFile:
    """One file with its text and, part by part as they are asked for, its facts."""

    __slots__ = ("_load", "_named", "_parts", "counts", "hash", "language", "path", "role")

    def __init__(
        self, path: str, language: str, text_hash: str, counts: dict[str, int], load: Callable[[str], Any]
    ) -> None:
        self.path = path
        self.language = language
        self.hash = text_hash
        self.counts = counts  # empty where nothing was extracted yet
        self.role = find_role(path)
        self._load = load
        self._parts: dict[str, Any] = {}
        self._named: dict[frozenset[str], list[tuple[int, int]]] = {}

    def load(self, name: str) -> Any:
        if name not in self._parts:
            self._parts[name] = LineTable(self.text) if name == "lines" else self._load(name)
        return self._parts[name]

    @property
    def text(self) -> bytes:
        return self.load("text")

    def forget_text(self) -> None:
        """A scan of everything must not hold everything; the text comes back when it is asked for."""
        self._parts.pop("text", None)

    @property
    def documents(self) -> list[Document]:
        return self.load("documents")

    @property
    def symbols(self) -> list[tuple[Symbol, ...]]:
        return self.load("symbols")

    @property
    def calls(self) -> list[tuple[Call, ...]]:
        return self.load("calls")

    def calls_named(self, names: frozenset[str]) -> list[tuple[int, int]]:
        """(document, number) of the calls of these names."""
        if names not in self._named:
            self._named[names] = [
                (document, number)
                for document, calls in enumerate(self.calls)
                for number, call in enumerate(calls)
                if call.name in names
            ]
        return self._named[names]

    @property
    def imports(self) -> list[tuple[tuple[Import, ...], tuple[Export, ...]]]:
        return self.load("imports")

    @property
    def flows(self) -> list[tuple[Flow, ...]]:
        return self.load("flows")

    @property
    def references(self) -> list[References]:
        return self.load("refs")

    @property
    def facts(self) -> FileFacts:
        return self.load("facts")

    @property
    def lines(self) -> LineTable:
        return self.load("lines")

    @property
    def identities(self) -> list[Identity]:
        """The names of each document, in their order."""
        if "identities" not in self._parts:
            todo, found = [identify(self.path, self.text, self.facts)], list[Identity]()
            while todo:
                identity = todo.pop()
                found.append(identity)
                todo += reversed(identity.embedded)
            self._parts["identities"] = found
        return self._parts["identities"]

    @property
    def chunks(self) -> list[tuple[Chunk, ...]]:
        return self.load("chunks")

    def name_symbol(self, document: int, number: int) -> tuple[str, str]:
        """(symbol id, chunk uid) of one symbol, without naming all the others."""
        if document:
            identity, chunk = self.identities[document], self.symbols[document][number].chunk
            return identity.symbol_ids[number], identity.chunk_uids[chunk]
        symbol = self.symbols[0][number]
        uid = self.name_chunk(0, symbol.chunk)
        scoped = scoped_id(self.path, symbol.identity_name, symbol.kind_group, symbol.signature, uid)
        return symbol_id(scoped), uid

    def name_chunk(self, document: int, number: int) -> str:
        if document:
            return self.identities[document].chunk_uids[number]
        return chunk_uid(self.path, self.chunks[0][number].uid_suffix)

    def locate(self, start: int, end: int) -> Location:
        return self.lines.location(self.path, start, end)

    def line_at(self, offset: int, most: int = 400) -> str:
        """The line as it is; of a very long one the part around the offset."""
        text = self.text
        start = text.rfind(b"\n", 0, offset) + 1
        end = text.find(b"\n", offset)
        line = text[start : len(text) if end < 0 else end].rstrip(b"\r").decode("utf-8", "replace")
        if len(line) <= most:
            return line
        first = max(len(text[start:offset].decode("utf-8", "replace")) - most // 4, 0)
        last = first + most
        return ("…" if first else "") + line[first:last] + ("…" if last < len(line) else "")


_MOST_HELD = 3000  # files from one question to the next
_MOST_TEXT = 64_000_000  # bytes of text that are read once for a question without an index
_READY = ("text", "lines", "documents", "symbols", "calls", "imports", "refs")  # of a file: what most questions ask for
_UNREAD = ("minified", "generated", "too_large", "unreadable")


class Files(Protocol):
    """Where files come from. `candidates` may hold files without a match, but leaves none out that has one."""

    source: str
    generation: int
    ids: dict[str, tuple[HeldFile, int, int] | None]  # that a TARGET named, looked for once

    def count(self) -> dict[str, int]: ...
    def candidates(self, literals: tuple[str, ...] | None) -> Iterator[HeldFile]: ...
    def definitions(self, name: str) -> list[tuple[HeldFile, int, int]]: ...
    def calls(self, name: str) -> Iterator[HeldFile]: ...
    def calls_beside(self, names: Iterable[str], literal: str) -> Iterator[HeldFile]: ...
    def get(self, path: str, /) -> HeldFile | None: ...
    def near_names(self, name: str) -> list[str]: ...
    def count_links(self, row: Definition) -> tuple[int, int]: ...
    def skipped(self) -> dict[str, int]: ...


class IndexedFiles:
    """The files of one tree of the index."""

    source = "index"

    def __init__(self, reader: Reader, tree: Tree) -> None:
        self._reader = reader
        self._tree = tree
        self._held: dict[tuple[str, int, str], HeldFile] | None = (
            None if reader.memory is None else reader.memory["files"]
        )
        self.memory = open_memory(reader, tree.id)
        self.generation = tree.generation
        self.ids: dict[str, tuple[HeldFile, int, int] | None] = {}

    @cached_property
    def semantics(self) -> Semantics:
        """The links of this tree; who asks about files alone need not import what reads them."""
        from cq.semantics.tree import Semantics
        from cq.store.read import LinkedTree

        return Semantics(LinkedTree(self._reader, self._tree.id, self.load), self.memory)

    def linked_paths(self) -> list[str]:
        """The files whose code is linked."""
        return self._reader.linked_paths(self._tree.id)

    def count_links(self, row: Definition) -> tuple[int, int]:
        """How many links surely lead to a definition, and how many may; calls that share only its name apart."""
        place = self.semantics.documents.find_place(*row.key)
        edges = self.semantics.referrers.find_into(place, possible=False) if place is not None else ()
        certain = sum(edge.ref.resolved == place for edge in edges)
        return certain, len(edges) - certain

    def stats(self) -> dict[str, tuple[str, int, int]]:
        """path -> (name on disk, size, written_ns), as they were indexed."""
        return self._reader.stats(self._tree.id)

    def mistakes(self) -> dict[str, list[Mistake]]:
        """Of the files whose links lack something for them; see Reader.mistakes."""
        found = self._reader.mistakes(self._tree.id)
        return {path: made for path, made in found.items() if path}

    def count(self) -> dict[str, int]:
        return self._count("")

    @remembered
    def _count(self, tree: str) -> dict[str, int]:
        del tree  # all of it
        return self._reader.count_files(self._tree.id)

    def candidates(self, literals: tuple[str, ...] | None) -> Iterator[HeldFile]:
        found: set[int] | None = set()
        for literal in literals or ("",):
            contents = self._reader.find_trigram(literal)
            if contents is None:
                found = None
                break
            found.update(contents)
        return map(self._hold, self._reader.find_files(self._tree.id, found))

    def definitions(self, name: str) -> list[tuple[HeldFile, int, int]]:
        """(file, document, number) of every symbol of this name but parameters and locals; by path and place."""
        rows = self._reader.find_symbols(self._tree.id, name)
        held = {
            file.path: file
            for file in map(self._hold, self._reader.find_files(self._tree.id, {r.content for r in rows}))
        }
        return [(held[row.path], row.document, row.number) for row in rows]

    def calls(self, name: str) -> Iterator[HeldFile]:
        """Files that may call something of this name."""
        return map(self._hold, self._reader.find_files(self._tree.id, self._reader.find_names(name, "called")))

    def calls_beside(self, names: Iterable[str], literal: str) -> Iterator[HeldFile]:
        """Files that may call something of one of these names, and may hold the literal."""
        found = self._find_called(*sorted(names))
        holding = self._reader.find_trigram(literal)
        if holding is not None:
            found = found.intersection(holding)
        return map(self._hold, self._reader.find_files(self._tree.id, found))

    @remembered
    def _find_called(self, first: str, *more: str) -> frozenset[int]:
        return frozenset(content for name in (first, *more) for content in self._reader.find_names(name, "called"))

    def users(self, name: str) -> Iterator[HeldFile]:
        """Files whose code has exactly this identifier, other than to define it."""
        contents = self._reader.find_names(name, "used")
        held = map(self._hold, self._reader.find_files(self._tree.id, contents))
        return (file for file in held if any(name in references.names for references in file.references))

    @remembered
    def get(self, path: str) -> HeldFile | None:
        file = self._reader.file(self._tree.id, path)
        return None if file is None else self._hold(file)

    def load(self, path: str, part: str) -> Any:
        """One kind of fact of a file, an entry per document; [] for one that is not here."""
        held = self.get(path)
        return [] if held is None else held.load(part)

    def hold_all(self) -> Iterator[str]:
        """Decodes what questions will ask for, file after file, sources first; yields the paths as they are done."""
        files = [
            file for file in self._reader.files(self._tree.id) if file.counts.get("symbols") or file.counts.get("calls")
        ]
        files.sort(key=lambda file: find_role(file.path) not in ("src", "lib"))
        for held in map(self._hold, files[:_MOST_HELD]):
            for part in _READY:
                held.load(part)
            yield held.path

    def near_names(self, name: str) -> list[str]:
        return _nearest(name, self._reader.find_similar(len(name)))

    def near_paths(self, path: str, limit: int = 5) -> list[str]:
        """Paths that end so, or are called so; then those that are spelled alike."""
        name = path.rpartition("/")[2].lower()
        paths = [file.path for file in self._reader.files(self._tree.id)]
        same = [other for other in paths if f"/{other}".endswith(f"/{path}")]
        same += [other for other in paths if other.rpartition("/")[2].lower() == name]
        near = same or _nearest(path, paths)
        return list(dict.fromkeys(near))[:limit]

    def skipped(self) -> dict[str, int]:
        """Reason -> how many text files were not read."""
        counts = self._reader.count_skips(self._tree.id)
        return {reason: counts[reason] for reason in _UNREAD if counts.get(reason)}

    def _hold(self, file: StoredFile) -> HeldFile:
        if self._held is None:
            return self._make(file)
        key = (file.path, file.content, file.hash)  # the number of a content may be another's after it
        held = self._held.pop(key, None) or self._make(file)
        self._held[key] = held  # the last used is the last to go
        if len(self._held) > _MOST_HELD:
            del self._held[next(iter(self._held))]
        return held

    def _make(self, file: StoredFile) -> HeldFile:
        reader, content = self._reader.plain, file.content

        def load(part: str) -> Any:
            if part == "text":
                return reader.text(content)
            return reader.facts(content) if part == "facts" else reader.part(content, part)

        return HeldFile(file.path, file.language, file.hash, file.counts, load)


class DiskFiles:
    """The files as they lie on disk; their facts are worked out for those that match, and kept for one question."""

    source = "disk"
    generation = 0

    def __init__(
        self,
        root: Path,
        entries: Iterable[FileEntry],
        extract: Callable[[SourceFile], FileFacts],
        max_bytes: int,
        *,
        seconds: float = 0.0,
    ) -> None:
        """After `seconds`, if any, no further file is read; `unread` counts those."""
        self._root = root
        # Sources first: who has no time for all has those.
        self._entries = tuple(sorted(entries, key=lambda entry: find_role(entry.path) != "src"))
        self._extract = extract
        self._max_bytes = max_bytes
        self._until = time.monotonic() + seconds if seconds else float("inf")
        self.unread = 0
        self.partial: dict[str, tuple[Problem, ...]] = {}  # as Tree.partial, of what was extracted
        self._room = _MOST_TEXT
        self._held: dict[str, HeldFile] = {}
        self.ids: dict[str, tuple[HeldFile, int, int] | None] = {}

    def count_bytes(self) -> int:
        return sum(entry.size for entry in self._entries)

    def count(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for entry in self._entries:
            language = detect_language(entry.path, b"")
            counts[language] = counts.get(language, 0) + 1
        return counts

    def candidates(self, literals: tuple[str, ...] | None) -> Iterator[HeldFile]:
        del literals  # every file is read
        for number, entry in enumerate(self._entries):
            held = self._held.get(entry.path)
            if held is None and time.monotonic() > self._until:
                self.unread = max(self.unread, len(self._entries) - number)
                return
            source = read_source(self._root, entry, max_bytes=self._max_bytes) if held is None else None
            if source is not None and not isinstance(source, Skip):
                held = self._hold(source)
                self._room -= len(source.text)
                if self._room > 0:
                    self._held[entry.path] = held
            if held is not None:
                yield held

    def definitions(self, name: str) -> list[tuple[HeldFile, int, int]]:
        found: list[tuple[HeldFile, int, int]] = []
        for file in self.candidates(None):
            if name.encode() in file.text:
                for document, symbols in enumerate(file.symbols):
                    numbers = [number for number, symbol in enumerate(symbols) if symbol.name == name]
                    found += [(file, document, number) for number in numbers]
        return found

    def calls(self, name: str) -> Iterator[HeldFile]:
        return (file for file in self.candidates(None) if name.encode() in file.text)

    def calls_beside(self, names: Iterable[str], literal: str) -> Iterator[HeldFile]:
        del names
        return self.calls(literal)

    def get(self, path: str) -> HeldFile | None:
        return next((file for file in self.candidates(None) if file.path == path), None)

    def count_links(self, row: Definition) -> tuple[int, int]:
        """Links are in an index and nowhere else."""
        del row
        return 0, 0

    def near_names(self, name: str) -> list[str]:
        del name
        return []  # only an index knows all names

    def skipped(self) -> dict[str, int]:
        return {}  # nobody counted

    def _hold(self, source: SourceFile) -> HeldFile:
        return hold_source(source, self._extract, self.partial)


def hold_source(
    source: SourceFile, extract: Callable[[SourceFile], FileFacts], partial: dict[str, tuple[Problem, ...]]
) -> HeldFile:
    """A text that is in no index; its facts are worked out when they are asked for, and `partial` told what lacks."""
    parts: dict[str, Any] = {}

    def load(part: str) -> Any:
        if part == "text":
            return source.text
        if not parts:
            parts.update(as_parts(extract(source)))
            lacking = [p for each in parts["documents"] for p in each.problems if p.code in LACKING]
            if lacking:
                partial[source.path] = tuple(lacking)
        return parts[part]

    return HeldFile(source.path, source.language, content_hash(source.text), {}, load)


def open_disk(root: Path, settings: Settings, seconds: float) -> DiskFiles:
    """The files that an index with these settings would hold."""
    from cq.indexing.read import extract_source
    from cq.source.files import find_files

    listing = find_files(
        root,
        include=settings.include,
        exclude=settings.exclude,
        max_bytes=settings.max_file_bytes,
        max_files=settings.max_files,
    )
    return DiskFiles(root, listing.files, extract_source, settings.max_file_bytes, seconds=seconds)


def _nearest(name: str, names: Iterable[str], limit: int = 5) -> list[str]:
    """Most alike first; capitals and underscores count little."""
    from difflib import SequenceMatcher

    scored: list[tuple[float, str]] = []
    matcher = SequenceMatcher(None, "", name.lower().replace("_", ""))
    for other in names:
        matcher.set_seq1(other.lower().replace("_", ""))
        if matcher.real_quick_ratio() >= _ALIKE and matcher.quick_ratio() >= _ALIKE and matcher.ratio() >= _ALIKE:
            scored.append((-matcher.ratio(), other))
    return [other for _, other in sorted(scored)[:limit]]


_ALIKE = 0.7
