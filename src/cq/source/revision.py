"""A revision of a repository as git has stored it: which commit a name means, which files it holds, and their texts. No
file of the work tree is read, nothing is checked out, nothing is fetched."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from cq.model.history import Commit, Revision
from cq.source.checkout import GitError, Tracked, open_checkout
from cq.source.git import Attributes, Git
from cq.source.read import MAX_BYTES, real_path

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


def find_parting(root: str, one: str, other: str) -> str:
    """The best common ancestor of two commits; GitError where there is none."""
    with _open(root) as (git, _):
        found, status = git.run_any("merge-base", git.find_commit(one), git.find_commit(other))
    if status or not found:
        raise GitError("they have no common history")
    return found.decode().split("\n")[0]


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


class Log:
    """The commits of a repository and what they made of files, while it is open; paths count from the root."""

    def __init__(self, git: Git, before: str) -> None:
        self._git, self._before = git, f"{before}/" if before else ""

    def find_commits(self, ref: str, path: str, limit: int) -> list[Commit]:
        """Those that touched a file, the newest first, at or before a commit."""
        output = self._git.run(
            "log", "-z", f"--max-count={limit}", "--no-renames", "--no-color", "--format=%H%x01%P%x01%an%x01%at%x01%s",
            self._git.find_commit(ref), "--", self._before + path,
        )  # fmt: skip
        found: list[Commit] = []
        for record in output.decode("utf-8", "replace").split("\0"):
            fields = record.strip("\n").split("\1", 4)
            if len(fields) == 5:
                name, parents, author, time, subject = fields
                found.append(Commit(name, tuple(parents.split()), author, int(time), subject))
        return found

    def list_changed(self, commit: str) -> list[str]:
        """The files that a commit changed against its first parent."""
        output = self._git.run(
            "diff-tree", "-r", "-z", "--root", "--no-commit-id", "--name-only", "-m", "--first-parent", commit
        )
        names = os.fsdecode(output).split("\0")[:-1]
        return [name[len(self._before) :] for name in names if name.startswith(self._before)]

    def read(self, places: Sequence[tuple[str, str]]) -> list[bytes | None]:
        """The texts of files at commits; None where there is none, or it is too large to be a source."""
        asked = [f"{commit}:{self._before}{path}" for commit, path in places]
        known = [number for number, name in enumerate(asked) if "\n" not in name]
        given = "".join(f"{asked[number]}\n" for number in known)
        sizes = self._git.run(
            "cat-file", "--batch-check=%(objecttype) %(objectsize) %(objectname)", given=os.fsencode(given)
        )
        found: list[bytes | None] = [None] * len(places)
        blobs: list[tuple[int, str]] = []
        for number, row in zip(known, os.fsdecode(sizes).split("\n"), strict=False):
            kind, _, rest = row.partition(" ")
            size, _, name = rest.partition(" ")
            if kind == "blob" and size.isdigit() and int(size) <= MAX_BYTES:
                blobs.append((number, name))
        for (number, _), text in zip(blobs, self._git.read_blobs([name for _, name in blobs]), strict=True):
            found[number] = text
        return found


@contextmanager
def open_log(root: str) -> Iterator[Log]:
    with _open(root) as (git, before):
        yield Log(git, before)


@contextmanager
def _open(root: str) -> Iterator[tuple[Git, str]]:
    base = real_path(root)
    checkout = open_checkout(base, bare=True)
    before = base[len(checkout.top) + 1 :]
    with Git(checkout, base) as git:
        yield git, before
