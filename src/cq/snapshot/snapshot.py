"""One generation of a repository, as every question reads it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from cq.model.answer import Answer
from cq.model.errors import StoreError
from cq.model.source import Problem
from cq.model.status import Degraded

if TYPE_CHECKING:
    from pathlib import Path

    from cq.indexing.index import Index
    from cq.model.answer import ArtifactRef
    from cq.model.config import Configuration
    from cq.model.history import History
    from cq.snapshot.files import DiskFiles, Files, IndexedFiles
    from cq.snapshot.relations import Relations
    from cq.snapshot.servers import Servers
    from cq.store.overflow import Overflow
    from cq.store.read import Reader, Tree

Made = tuple[Answer, dict[str, Any]]  # an answer, and what is too heavy for it, by kind
MOST_ANSWERS = 50  # kept from one question to the next


class Snapshot(msgspec.Struct, frozen=True, dict=True, eq=False):
    """An immutable value; any number may be open at once. `stored` is the index as of one generation, or why there is
    none to read: then only files can be asked for, and they come from the disk.

    `busy`: another process was writing, and this is its last generation. `rebuilt` says why the index was made anew.
    """

    index: Index
    stored: tuple[Reader, Tree] | StoreError
    busy: bool = False
    rebuilt: str = ""
    version: str = ""  # of the program, for answers that tell it

    @property
    def root(self) -> Path:
        return self.index.root

    @property
    def config(self) -> Configuration:
        return self.index.config()

    @property
    def reader(self) -> Reader:
        return self._stored[0]

    @property
    def tree(self) -> Tree:
        return self._stored[1]

    @property
    def _stored(self) -> tuple[Reader, Tree]:
        if isinstance(self.stored, StoreError):
            raise self.stored
        return self.stored

    @property
    def is_indexed(self) -> bool:
        return not isinstance(self.stored, StoreError)

    @property
    def state(self) -> tuple[object, ...]:
        """Differs where anything in the tree, or the index itself, is another."""
        return self.index.name_state(self.tree)

    @property
    def files(self) -> Files:
        return self.indexed if self.is_indexed else self._disk

    @cached_property
    def indexed(self) -> IndexedFiles:
        from cq.snapshot.files import IndexedFiles

        return IndexedFiles(self.reader, self.tree)

    @cached_property
    def _disk(self) -> DiskFiles:
        from cq.snapshot.files import open_disk

        return open_disk(self.root, self.index.settings, self.index.policy.disk_seconds)

    @cached_property
    def relations(self) -> Relations:
        """Links are in the index and nowhere else."""
        from cq.snapshot.relations import Relations

        return Relations(self.indexed)

    def open_servers(self, *, on: bool = True) -> Servers:
        """For one question; not `on`: the answers say that nobody was asked. A server knows the work tree only."""
        from cq.snapshot.servers import Servers

        on = on and self.index.revision is None
        if on:
            from cq.providers.sessions import tell_changes

            tell_changes(self.root, self.indexed.generation, self.indexed.stats)
        return Servers(self.indexed, self.index.providers if on else None)

    def has_warm_servers(self) -> bool:
        """Whether one runs already, so that asking it costs milliseconds."""
        if self.index.revision is not None:
            return False
        sessions = sys.modules.get("cq.providers.sessions")  # not loaded: none was started
        return sessions is not None and any(session.pid for session in sessions.find_sessions(self.root))

    def read_history(self) -> History:
        """Which files changed together."""
        from cq.indexing.history import read_history

        return read_history(self.root, self.index.place)

    def remember(self, options: msgspec.Struct, ask: Callable[[], Made]) -> Made:
        """What was answered to the same question, where the reader is kept and nothing was written since."""
        memory = self.reader.memory if self.is_indexed else None
        if memory is None:
            return ask()
        answers: dict[msgspec.Struct, Made] = memory.setdefault("answers", {})
        made = answers.pop(options, None) or ask()
        if not any(event.category in ("interrupted", "timeout") for event in made[0].degraded):
            answers[options] = made
        for old in list(answers)[:-MOST_ANSWERS]:
            del answers[old]
        return made

    def save(self, items: Sequence[Overflow]) -> tuple[ArtifactRef, ...]:
        """Keeps what is too heavy for an answer; those that could be stored."""
        if not items or self.index.place.temporary:
            return ()
        from cq.store.overflow import save

        store = self.index.artifacts
        return tuple(ref for item in items if (ref := save(store, item)))

    def find_degraded(self) -> tuple[Degraded, ...]:
        """What holds for every answer, asked for when it is made."""
        if not self.is_indexed:
            return tuple(self._find_degraded_disk())
        from cq.store.kept import explain_lost, find_lost

        place, tree = self.index.place, self.tree
        events = [Degraded("config", "info", "configuration", note) for note in self.config.notes]
        if place.note:
            events.append(Degraded("location", "warning", "temporary_index", place.note))
        listed = msgspec.msgpack.decode(tree.listing, type=_Notes)
        category = "file_cap" if listed.truncated else "listing"
        events += [Degraded("listing", "warning", category, note) for note in listed.notes]
        events += _note_partial(tree.partial)
        if self.rebuilt:
            events.append(Degraded("refresh", "info", "rebuilt", f"the index was made anew: {self.rebuilt}"))
        lost = [": ".join(explain_lost(source)) for source in find_lost(place.file)]
        events += [Degraded("evidence", "warning", "lost", message) for message in lost]
        if self.busy:
            message = "another process is writing the index; this is the last generation"
            events.append(Degraded("refresh", "info", "busy", message))
        return tuple(events)

    def _find_degraded_disk(self) -> list[Degraded]:
        message = "there is no index yet: files were read from disk"
        events = [Degraded("index", "warning", "no_index", message, "index")]
        if self._disk.unread:
            message = f"{self._disk.unread:,} files were not read in time"
            events.append(Degraded("index", "warning", "unread", message, "index"))
        return events + _note_partial(self._disk.partial)


@contextmanager
def open_snapshot(index: Index, version: str = "") -> Iterator[Snapshot]:
    """The generation that the index has now; of the files on the disk where there is none and none may be made."""
    with ExitStack() as stack:
        try:
            stored = stack.enter_context(index.reading())
        except StoreError as error:
            if index.policy.auto_refresh:
                raise
            stored = error
        busy = index.last is not None and index.last.busy
        yield Snapshot(index, stored, busy, index.rebuilt, version)


class _Notes(msgspec.Struct, frozen=True):
    """What a stored listing has to say for itself; the rest of it is the pipeline's."""

    notes: tuple[str, ...] = ()
    truncated: bool = False


def _note_partial(partial: Mapping[str, Sequence[Problem]]) -> list[Degraded]:
    """Any answer may lack what such a file says."""
    if not partial:
        return []
    path, problems = next(iter(partial.items()))
    others = f", and {len(partial) - 1:,} more, which `cq doctor` lists" if len(partial) > 1 else ""
    message = f"{len(partial):,} files were understood only in part: {path} ({problems[0].message}){others}"
    message = message if len(partial) > 1 else message.replace("1 files were", "1 file was")
    return [Degraded("syntax", "warning", "partial", message, path)]
