"""What language servers say about definitions of the index, told in the index's own terms: locations and definitions.

    servers = Servers(files, workspace.providers)
    (reply,) = servers.ask("incoming_calls", [row])
    for item in reply.items:
        spot = servers.find(item.place)  # where that is, and which definition stands there
    servers.telemetry(), servers.events()  # for the answer

A server reads files from the disk and the index has its own text: what differs is not joined, and counted.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from cq.identity import tool_path
from cq.language import describe
from cq.model.answer import Finding
from cq.model.provider import Coverage, Place, Reply, Telemetry
from cq.model.source import SourceFile
from cq.model.status import Degraded
from cq.providers.answers import Target
from cq.providers.documents import Document
from cq.providers.registry import Registry, find_degraded, summarize
from cq.providers.session import BUDGETS
from cq.snapshot.target import Definition
from cq.source.read import content_hash, read_source

if TYPE_CHECKING:
    from cq.model.location import Location
    from cq.snapshot.files import Files, HeldFile

OFF = Coverage("unresolved", "language servers were not to be asked")


class Spot(msgspec.Struct, frozen=True):
    """A place that a server named. `definition` is named there (`named`) or holds it; None at the top of a file."""

    file: HeldFile
    location: Location
    definition: Definition | None
    named: bool


class Servers:
    """One question's view of the providers; `registry` None: they are not to be asked, and say so."""

    def __init__(self, files: Files, registry: Registry | None) -> None:
        self.files, self.registry = files, registry
        self.replies: list[Reply[Any]] = []
        self.stale = 0  # places in files that are not as the index has them
        self._documents: dict[tuple[str, int], Document] = {}
        self._held: dict[str, HeldFile | None] = {}

    def ask(
        self, plane: str, subjects: Sequence[Definition | Target], mode: str = "interactive", *, bulk: bool = False
    ) -> list[Reply[Any]]:
        """One reply per subject, in order. Print that there is none of something only if its coverage is complete."""
        if self.registry is None:
            replies = [Reply[Any]("", plane, OFF)] * len(subjects)
        else:
            targets = [row if isinstance(row, Target) else self.target(row) for row in subjects]
            replies = self.registry.ask(plane, targets, BUDGETS[mode], bulk=bulk)
        self.replies += replies
        return replies

    def target(self, row: Definition) -> Target:
        return Target(self.document(row.file, row.document), row.symbol.name_start)

    def document(self, file: HeldFile, number: int = 0) -> Document:
        """The file itself, or a document embedded in it, with the text that the index has."""
        key = file.path, number
        if key not in self._documents:
            segment, language = file.documents[number].segment, file.documents[number].language
            path = ""
            if segment is not None:
                uid = file.identities[number].segment_uid
                path = tool_path(file.path, uid, describe(language).suffix)
            self._documents[key] = Document(file.path, language, file.text, segment, path)
        return self._documents[key]

    def find(self, place: Place) -> Spot | None:
        """None for a place outside the repository, and for one in a file that is not as the index has it."""
        held = self._hold(place.path) if place.path else None
        if held is None:
            self.stale += bool(place.path)
            return None
        row, named = find_definition(held, place.start)
        return Spot(held, held.locate(place.start, place.end), row, named)

    def describe(self, reply: Reply[Any], what: str) -> Finding:
        """One line: who was asked, how far the answer can be trusted, and why not further."""
        state, reason = reply.coverage.state, reply.coverage.reason
        known = {each.id: each for each in self.registry.providers} if self.registry else {}
        version = self.registry.detect(known[reply.provider]).version if self.registry and reply.provider else ""
        who = reply.provider or "no server"
        who = version if version.startswith(who) else f"{who} {version}".strip()
        count = "" if state == "unresolved" else f", {len(reply.items):,} {what}"
        return Finding("source", f"{who}: {state}{count}" + (f" ({reason})" if reason else ""), count=len(reply.items))

    @property
    def status(self) -> str:
        """One word for the card."""
        return "off" if self.registry is None else self.telemetry().status

    def telemetry(self) -> Telemetry:
        asked = [reply for reply in self.replies if reply.provider]
        return summarize(asked, available=bool(asked), skipped=len(self.replies) - len(asked))

    def events(self) -> tuple[Degraded, ...]:
        """What was not complete, and why. A plane that nobody offers is no news to who has a server for others."""
        if self.registry is None:
            return ()
        events = find_degraded(self.replies)
        if self.stale:
            message = f"{self.stale} places are in files that changed since they were indexed, and left out"
            events = (*events, Degraded("providers", "warning", "stale", message))
        return events

    def _hold(self, path: str) -> HeldFile | None:
        """A file of the index, if its text on the disk is still the same: offsets mean nothing otherwise."""
        if path not in self._held:
            held = self.files.get(path)
            if held is not None and self.registry is not None:
                source = read_source(self.registry.site.root, path)
                if not isinstance(source, SourceFile) or content_hash(source.text) != held.hash:
                    held = None
            self._held[path] = held
        return self._held[path]


def find_document(file: HeldFile, offset: int) -> int:
    """The innermost document that holds a byte: documents are listed outer before inner."""
    found = 0
    for number, document in enumerate(file.documents if file.counts.get("documents", 2) > 1 else ()):
        if document.segment and any(start <= offset < end for start, end in document.segment.ranges):
            found = number
    return found


def find_definition(file: HeldFile, offset: int) -> tuple[Definition | None, bool]:
    """What is named at a byte (True), else the innermost function or class around it (False)."""
    around: Definition | None = None
    for document, symbols in enumerate(file.symbols):
        at = bisect_right(symbols, offset, key=lambda symbol: symbol.start)
        for number in range(at - 1, -1, -1):
            symbol = symbols[number]
            if symbol.name_start <= offset < symbol.name_end:
                return Definition(file, document, number), True
            if symbol.body_start >= 0 and symbol.head <= offset < symbol.end:
                around = Definition(file, document, number)
                break
    return around, False
