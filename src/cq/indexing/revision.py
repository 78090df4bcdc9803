"""A revision as one more tree of the index: it begins as the nearest tree that is known, and only what differs from
that is read and linked. Nothing is checked out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from cq.indexing.refresh import Changes, Listed, Progress, Read, Report, Settings, TreeRefresh, read_files
from cq.model.errors import UsageError
from cq.model.history import Revision
from cq.source.checkout import GitError
from cq.source.files import FileEntry, find_stored_files
from cq.source.read import show_path
from cq.source.revision import StoredRevision, find_known, find_parting, find_revision, open_revision
from cq.store import database
from cq.store.codec import pack, unpack
from cq.store.prefix import name_tree
from cq.store.read import Tree

NEAREST = 8  # revisions that are looked at for the nearest


def resolve_revision(root: Path, ref: str) -> Revision:
    """What a revision of the repository around `root` means now; UsageError where it means nothing."""
    try:
        return find_revision(os.fspath(root), ref)
    except GitError as error:
        hint = "give a commit, branch or tag of the repository, as git names them: HEAD~3, main, v1.2"
        raise UsageError(f"the revision {ref!r}: {error}", hint=hint) from None


def resolve_parting(root: Path, one: str, other: str) -> str:
    """The best common ancestor of two revisions; UsageError where there is none."""
    try:
        return find_parting(os.fspath(root), one, other)
    except GitError as error:
        raise UsageError(f"{one}...{other}: {error}", hint="give two revisions of one history") from None


def refresh_revision(
    connection: database.Connection,
    index: Path,
    root: Path,
    revision: Revision,
    settings: Settings,
    tell: Callable[[Progress], None],
    rebuilt: str,
) -> Report:
    """Of who holds the lock of the writer."""
    try:
        with open_revision(os.fspath(root), revision) as stored:
            work = _RevisionRefresh(connection, index, root, settings, tell, rebuilt, stored)
            report = work.run(None, None)
            work.forget_oldest()
            return report
    except GitError as error:
        raise UsageError(f"the revision {revision.ref!r}: {error}", hint="`git fsck` looks at the repository") from None


class _RevisionRefresh(TreeRefresh):
    def __init__(
        self,
        connection: database.Connection,
        index: Path,
        root: Path,
        settings: Settings,
        tell: Callable[[Progress], None],
        rebuilt: str,
        stored: StoredRevision,
    ) -> None:
        super().__init__(connection, index, root, settings, tell, rebuilt, name_tree(root, stored.revision))
        self.stored = stored
        self.same = self._begin()

    def _begin(self) -> set[str]:
        """Makes the tree, as the nearest one is. The paths whose text is the same there."""
        tree = self.reader.tree()
        if tree is not None and tree.generation and tree.config == self.settings.key():
            return set(self.reader.stats(tree.id)) | set(self.reader.skips(tree.id))  # another process was first
        base, same = 0, set[str]()
        for number, known in self._find_bases():
            if len(known) > len(same):
                base, same = number, known
        names = {path: tracked.hash for path, tracked in self.stored.files.items()}
        self.writer.begin()
        try:
            encoded = pack(msgspec.msgpack.encode([(os.fsencode(path), name) for path, name in names.items()]))
            self.writer.begin_tree(self.name, self.settings.key(), encoded, base)
            self.writer.commit()
        except BaseException:
            self.writer.rollback()
            raise
        return same

    def _find_bases(self) -> Iterator[tuple[int, set[str]]]:
        """Trees that are known, each with the paths, as people see them, whose text is the same here."""
        files = self.stored.files
        for number, _, blobs in self.reader.find_revisions(self.settings.key(), NEAREST):
            known = dict(msgspec.msgpack.decode(unpack(blobs), type=list[tuple[bytes, bytes]]))
            same = [path for path, tracked in files.items() if known.get(os.fsencode(path)) == tracked.hash]
            yield number, set(map(show_path, same))
        number = self.reader.find_tree(os.fspath(self.root))
        if number:
            skips = self.reader.skips(number)
            stats = {path: (path, size, written) for path, (_, size, written) in skips.items() if written}
            yield number, find_known(os.fspath(self.root), files, stats | self.reader.stats(number))

    def list_files(self, tree: Tree | None, now: int) -> Changes:
        self.tell(Progress("list", 0, 0))
        settings, stored = self.settings, self.stored
        listing = find_stored_files(
            stored.files, stored.read, include=settings.include, exclude=settings.exclude,
            max_bytes=settings.max_file_bytes, max_files=settings.max_files,
        )  # fmt: skip
        notes = listing.notes
        if stored.missing:
            notes += (f"{len(stored.missing):,} files are not in the repository, a partial clone: {stored.missing[0]}",)
        known_files = self.reader.stats(tree.id) if tree else {}
        known_skips = self.reader.skips(tree.id) if tree else {}
        listed = Listed({}, {}, "", listing.via, notes, listing.truncated, True)
        current = {entry.path for entry in listing.files}
        decided = {skip.path for skip in listing.skips}
        todo = [
            entry
            for entry in listing.files
            if entry.path not in self.same or (entry.path not in known_files and entry.path not in known_skips)
        ]
        return Changes(
            todo, known_files, known_skips, msgspec.msgpack.encode(listed), notes,
            sorted(known_files.keys() - current), sorted(known_skips.keys() - current - decided), listing.skips,
        )  # fmt: skip

    def read_files(self, todo: Sequence[FileEntry], known: dict[tuple[str, str], int]) -> Iterator[Read]:
        from tempfile import TemporaryDirectory

        entries = {entry.os_path: entry for entry in todo}
        with TemporaryDirectory(prefix="cq-revision-", ignore_cleanup_errors=True) as folder:
            for texts in self.stored.read_all(list(entries)):
                numbered: list[FileEntry] = []
                for number, (path, text) in enumerate(texts.items()):
                    # By number: names in a repository may be any.
                    Path(folder, str(number)).write_bytes(text)
                    numbered.append(msgspec.structs.replace(entries[path], os_path=str(number)))
                yield from read_files(Path(folder), numbered, known, self.settings)

    def forget_oldest(self) -> None:
        """While revisions take more than the room they have; never the one that was just asked for."""
        names = [name for name in self.reader.list_revisions() if name != self.name]
        while names and self.reader.measure_revisions() > self.settings.history_mb * 1_000_000:
            self.writer.begin()
            self.writer.drop_tree(names.pop(0))
            self.writer.commit()

    def take_kept(self, tree: int) -> None:
        """What others said is about the work tree."""
