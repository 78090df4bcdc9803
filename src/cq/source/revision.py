"""A revision of a repository as git has stored it: which commit a name means, which files it holds, and their texts. No
file of the work tree is read, nothing is checked out, nothing is fetched."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from cq.model.history import Revision
from cq.source.checkout import GitError, Tracked, open_checkout
from cq.source.git import Attributes, Git
from cq.source.read import real_path

_CHUNK = 64 * 1024 * 1024  # of texts at once
# Names of a tree that no checkout can make, or that lead out of the folder they stand in.
_ODD = frozenset({"", ".", ".."})


class StoredRevision:
    """The files of one revision below the root, while it is open."""

    def __init__(self, git: Git, revision: Revision) -> None:
        self._git, self.revision = git, revision
        self.missing: list[str] = []  # paths of which the repository lacks the text, as a partial clone may
        self.files = self._list()

    def _list(self) -> dict[str, Tracked]:
        found: dict[str, Tracked] = {}
        listed = self._git.run("ls-tree", "-r", "-l", "-z", "--full-tree", self.revision.tree)
        for record in os.fsdecode(listed).split("\0")[:-1]:
            head, _, path = record.partition("\t")
            mode, _, name, size = head.split()
            if not _ODD.isdisjoint(path.split("/")):
                continue
            if not size.isdigit() and size != "-":
                self.missing.append(path)
                continue
            found[path] = Tracked(int(mode, 8), bytes.fromhex(name), int(size) if size != "-" else 0, 0, 0, False)
        return found

    def read(self, path: str) -> bytes:
        """The text of one small file, or where a link leads."""
        (text,) = self._git.read_blobs([self.files[path].hash.hex()])
        return text

    def read_all(self, paths: Sequence[str]) -> Iterator[dict[str, bytes]]:
        """The texts of files, in chunks that memory has room for; all of a chunk's paths in order."""
        chunk: list[str] = []
        total = 0
        for path in paths:
            size = self.files[path].size
            if total + size > _CHUNK and chunk:
                yield self._read_chunk(chunk)
                chunk, total = [], 0
            chunk.append(path)
            total += size
        if chunk:
            yield self._read_chunk(chunk)

    def _read_chunk(self, paths: list[str]) -> dict[str, bytes]:
        return dict(zip(paths, self._git.read_blobs([self.files[path].hash.hex() for path in paths]), strict=True))


def find_revision(root: str, ref: str) -> Revision:
    """What a name means now; GitError where it means no commit, or the commit lacks the folder that is the root."""
    with _open(root) as (git, before):
        return _find(git, before, ref)


@contextmanager
def open_revision(root: str, revision: Revision) -> Iterator[StoredRevision]:
    with _open(root) as (git, _):
        yield StoredRevision(git, revision)


def find_known(root: str, stored: Mapping[str, Tracked], stats: Mapping[str, tuple[str, int, int]]) -> set[str]:
    """The paths below the root whose indexed text is surely the one that is stored: the work tree has it as git saw it
    last, with no rule that stores another text than it checks out. `stats` says how the files lay when they were
    indexed; see Reader.stats."""
    base = real_path(root)
    try:
        checkout = open_checkout(base)
        index = checkout.read_index()
        written_ns = os.stat(f"{checkout.git_dir}/index").st_mtime_ns  # noqa: PTH116
    except (GitError, OSError):
        return set()
    before = base[len(checkout.top) + 1 :]
    before += "/" if before else ""
    settled = written_ns // 1_000_000_000 * 1_000_000_000
    attributes = Attributes(checkout)
    found: set[str] = set()
    for path, (os_path, size, written) in stats.items():
        tracked, here = index.get(before + os_path), stored.get(os_path)
        if tracked is None or here is None or tracked.hash != here.hash or not 0 < written < settled:
            continue
        # Where the sizes agree no line end was changed.
        if tracked.size != size or here.size != size or max(tracked.mtime_ns, tracked.ctime_ns) != written:
            continue
        if not attributes.find(before + os_path):
            found.add(path)
    return found


def _find(git: Git, before: str, ref: str) -> Revision:
    commit = git.find_commit(ref)
    tree, status = git.run_any("rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}:{before}")
    if status:
        raise GitError(f"that commit has no folder {before.rstrip('/')}" if before else "its files are not here")
    return Revision(ref, commit, tree.decode().strip())


@contextmanager
def _open(root: str) -> Iterator[tuple[Git, str]]:
    base = real_path(root)
    checkout = open_checkout(base, bare=True)
    before = base[len(checkout.top) + 1 :]
    with Git(checkout, base) as git:
        yield git, before
