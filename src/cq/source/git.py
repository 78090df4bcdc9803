"""The one module that runs git, and only to read objects: it is shown a directory of our own in place of the
repository's, so that nothing the repository says in its configuration, its attributes or its hooks is known to it. What
lies in the work tree is read and compared here. Nothing is written, nothing is fetched."""

# Names here may be no UTF-8, and a Path per file costs more than the look.
# ruff: noqa: PTH116, PTH118, PTH120, PTH208

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from cq.model.history import Blamed, Change
from cq.model.source import Skip
from cq.opening import read_file
from cq.source.checkout import DIRECTORY, LINK, SUBMODULE, Checkout, GitError, Tracked, open_checkout
from cq.source.files import FileEntry, find_files
from cq.source.ignore import Rules
from cq.source.program import choose_environment, find_in_path
from cq.source.read import find_codec, read_bytes, real_path, show_path
from cq.source.repository import find_common_dir, find_top, read_line

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

TIMEOUT = 30  # seconds for one command
_MAX_MEMORY = 2 * 1024**3  # bytes that it may take for itself, where the system counts them
_MAX_OUTPUT = 256 * 1024 * 1024  # bytes of one answer: a few objects can stand for more files than any disk holds
_MAX_BLOB = 8 * 1024 * 1024  # a longer text is not compared line by line
_CHUNK = 64 * 1024 * 1024  # of old texts at once
_MAX_REFS = 64 * 1024 * 1024
_MAX_LOG = 16 * 1024 * 1024
_MAX_ALTERNATES = 100

# Of the repository's settings only these are handed on, which name no program: `@{upstream}` is read from them.
_HANDED = re.compile(r"branch\..*\.(?:remote|merge)|remote\..*\.fetch", re.DOTALL)
_SETTINGS = "[core]\nrepositoryformatversion = 1\nbare = true\nquotePath = false\n"


class GitLimitError(GitError):
    """It takes more than it is worth, and would do so the next time."""


def find_changes(directory: str | os.PathLike[str], revision: str) -> dict[str, Change]:
    """path below the directory -> what differs from a revision. Files that git does not know yet, or by another name,
    count as a whole. The CR at the ends of lines does not count where the revision has none: a checkout adds it."""
    base = real_path(os.fspath(directory))
    checkout = open_checkout(base)
    before = base[len(checkout.top) + 1 :]
    before += "/" if before else ""
    with Git(checkout, base) as git:
        commit = git.find_commit(revision)
        old: dict[str, tuple[int, str]] = {}
        listed = git.run("ls-tree", "-r", "-z", "--full-tree", "--", commit, *filter(None, [before]))
        for record in os.fsdecode(listed).split("\0")[:-1]:
            head, _, path = record.partition("\t")
            mode, _, name = head.split(" ")
            if path.startswith(before):
                old[path[len(before) :]] = int(mode, 8) & 0o170000, name
        return _Comparison(git, checkout, base, before, old).run()


def find_head(directory: str) -> str:
    """What the current commit is known by, without asking git; "" where there is none. Another commit, another text."""
    top = find_top(directory)
    found = find_common_dir(top) if top else None
    if found is None:
        return ""
    head = read_line(os.path.join(found[0], "HEAD"))
    name = head.removeprefix("ref: ")
    if name == head or name.startswith("/") or ".." in name:
        return head
    return f"{head} {read_line(os.path.join(found[1], name)) or _stamp(found[1])}"


def _stamp(common: str) -> str:
    """Of the file that holds the references which have none of their own."""
    for name in ("reftable/tables.list", "packed-refs"):
        try:
            status = os.stat(os.path.join(common, name))
        except OSError:
            continue
        return f"{status.st_mtime_ns} {status.st_size}"
    return ""


def find_commits(directory: str | os.PathLike[str], limit: int) -> list[tuple[str, ...]]:
    """The paths below the directory that each of the newest commits touched, merges left out, the newest first."""
    base = real_path(os.fspath(directory))
    checkout = open_checkout(base)
    before = base[len(checkout.top) + 1 :]
    with Git(checkout, base) as git:
        output = git.run(
            "log", f"--max-count={limit}", "--no-merges", "--name-only", "--no-renames", "--format=%x01",
            "--no-ext-diff", "--no-textconv", "--no-color", *([f"--relative={before}/"] if before else []),
        )  # fmt: skip
    texts = output.decode("utf-8", "replace").split("\1")[1:]
    # A name in quotes is one with control characters; what is indexed has none.
    return [tuple(line for line in text.split("\n") if line and line[0] != '"') for text in texts]


def find_authors(directory: str | os.PathLike[str], path: str, text: bytes) -> list[Blamed]:
    """Who wrote the lines of a text that a file below the directory has now, in order. A line that was not committed
    yet has no commit. GitError where that cannot be said."""
    base = real_path(os.fspath(directory))
    checkout = open_checkout(base)
    within = f"{base}/{path}"[len(checkout.top) + 1 :]
    if not os.path.lexists(f"{base}/{path}"):  # its name is no UTF-8
        raise GitError("git knows it by another name")
    with Git(checkout, base) as git:
        commit, status = git.run_any("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
        if status:
            raise GitError("nothing is committed yet")
        old, status = git.run_any("cat-file", "blob", f"{commit.decode().strip()}:{within}")
        if status:
            return [Blamed(1, max(text.count(b"\n") + (not text.endswith(b"\n")), 1))]
        if b"\r\n" in text and b"\r\n" not in old:
            text = text.replace(b"\r\n", b"\n")
        _write(f"{git.folder}/text", text)
        _write(f"{git.folder}/tree/{within}", b"")  # git wants to see the file where it would lie
        output = git.run(
            f"--work-tree={git.folder}/tree", "blame", "--porcelain", "--contents", f"{git.folder}/text", "--", within
        )
    return _read_blame(output)


_NOT_YET = re.compile(rb"0{40,64}")


def _read_blame(output: bytes) -> list[Blamed]:
    """A header of a commit stands where it is met first."""
    known: dict[bytes, dict[bytes, bytes]] = {}
    found: list[Blamed] = []
    name, line = b"", 0
    for row in output.split(b"\n"):
        if row[:1] == b"\t":
            said = known[name]
            commit = "" if _NOT_YET.fullmatch(name) else name.decode()
            last = found[-1] if found else None
            if last is not None and last.commit == commit and last.first + last.count == line:
                found[-1] = msgspec.structs.replace(last, count=last.count + 1)
            elif not commit:
                found.append(Blamed(line, 1))
            else:
                author, summary = (said.get(key, b"").decode("utf-8", "replace") for key in (b"author", b"summary"))
                found.append(Blamed(line, 1, commit, author, int(said.get(b"author-time", b"0")), summary))
        elif (heading := re.match(rb"([0-9a-f]{40}|[0-9a-f]{64}) \d+ (\d+)", row)) is not None:
            name, line = heading[1], int(heading[2])
            known.setdefault(name, {})
        else:
            key, _, value = row.partition(b" ")
            known.get(name, {})[key] = value
    return found


# -- comparing -----------------------------------------------------------------------------------------


class _Old(NamedTuple):
    """A file that may have changed, with the name of its old text."""

    path: str
    hash: str
    text: bytes | None  # as it lies now; None when it is gone


class _Comparison:
    def __init__(self, git: Git, checkout: Checkout, base: str, before: str, old: dict[str, tuple[int, str]]) -> None:
        self.git, self.checkout, self.base, self.before, self.old = git, checkout, base, before, old
        self.index = checkout.read_index()
        self.sparse = tuple(path for path, tracked in self.index.items() if tracked.mode == DIRECTORY)
        try:
            self.written_ns = os.stat(f"{checkout.git_dir}/index").st_mtime_ns
        except OSError:
            self.written_ns = 0
        self.attributes = Attributes(checkout)
        self.found: dict[str, Change] = {}

    def run(self) -> dict[str, Change]:
        asked: list[_Old] = []
        listed: set[str] = set()
        tops: dict[str, bool] = {}  # a directory -> whether it belongs to this repository
        for entry in find_files(Path(self.base), max_bytes=_MAX_BLOB).files:
            listed.add(entry.os_path)
            mode, name = self.old.get(entry.os_path, (0, ""))
            if mode in (0, LINK, SUBMODULE, DIRECTORY):
                folder = os.path.dirname(f"{self.base}/{entry.os_path}")
                if folder not in tops:
                    tops[folder] = find_top(folder).rstrip("/") == self.checkout.top
                if tops[folder]:
                    self._add_whole(entry)
            elif not self._is_clean(entry, name):
                raw = read_bytes(self.base, entry.os_path, _MAX_BLOB)
                if isinstance(raw, bytes) and not self._is_same(entry.os_path, raw, name):
                    asked.append(_Old(entry.os_path, name, raw))
        for path in sorted(self.old.keys() - listed):
            mode, name = self.old[path]
            if mode not in (LINK, SUBMODULE) and self._is_gone(path):
                asked.append(_Old(path, name, None))
        self._compare(sorted(asked))
        return dict(sorted(self.found.items()))

    def _add_whole(self, entry: FileEntry, note: str = "") -> None:
        raw = read_bytes(self.base, entry.os_path, _MAX_BLOB)
        if not isinstance(raw, Skip):
            self.found[entry.path] = _count_whole(raw, note)

    def _find_tracked(self, path: str) -> Tracked | None:
        return self.index.get(self.before + path)

    def _is_clean(self, entry: FileEntry, name: str) -> bool:
        """Whether git has seen the file as it is now, and it was that text then: filters and line ends included."""
        tracked = self._find_tracked(entry.os_path)
        if tracked is None or tracked.hash.hex() != name or tracked.size != entry.size & 0xFFFFFFFF:
            return False
        if not (_is_same_time(entry.mtime_ns, tracked.mtime_ns) and _is_same_time(entry.ctime_ns, tracked.ctime_ns)):
            return False
        # What was written in the moment the index was may have been written once more.
        return entry.written_ns < self.written_ns // 1_000_000_000 * 1_000_000_000

    def _is_same(self, path: str, raw: bytes, name: str) -> bool:
        if self._hash(raw) == name or (b"\r\n" in raw and self._hash(raw.replace(b"\r\n", b"\n")) == name):
            return True
        attributes = self.attributes.find(self.before + path)
        return bool(attributes) and self._hash(_check_in(raw, attributes)) == name

    def _hash(self, text: bytes) -> str:
        make = hashlib.sha256 if self.checkout.hash_size == 32 else hashlib.sha1
        return make(b"blob %d\0" % len(text) + text, usedforsecurity=False).hexdigest()

    def _is_gone(self, path: str) -> bool:
        """Not merely left out of the listing, or of a sparse checkout."""
        tracked = self._find_tracked(path)
        if (tracked is not None and tracked.absent) or (self.before + path).startswith(self.sparse):
            return False
        try:
            return not stat.S_ISREG(os.lstat(f"{self.base}/{path}").st_mode)
        except OSError:
            return True

    def _compare(self, asked: list[_Old]) -> None:
        sizes = self.git.measure([each.hash for each in asked])
        chunk: list[_Old] = []
        total = 0
        for each, size in zip(asked, sizes, strict=True):
            if size < 0:
                note = "the old text is not in the repository, a partial clone, and nothing is fetched"
                self.found[show_path(each.path)] = _count_whole(each.text or b"", note)
            elif size <= _MAX_BLOB:
                if total + size > _CHUNK and chunk:
                    self._compare_texts(chunk)
                    chunk, total = [], 0
                chunk.append(each)
                total += size
        self._compare_texts(chunk)

    def _compare_texts(self, asked: list[_Old]) -> None:
        pairs: list[tuple[bytes, bytes]] = []
        paths: list[str] = []
        notes: dict[str, str] = {}
        for (path, _, text), old in zip(asked, self.git.read_blobs([each.hash for each in asked]), strict=True):
            shown = show_path(path)
            if text is None:
                if old and not _is_binary(old):
                    self.found[shown] = Change(removed=(old,))
                continue
            attributes = self.attributes.find(self.before + path)
            text = _check_in(text, attributes)
            if _points_to(old, text) or _is_binary(old) or _is_binary(text):
                continue
            if name := attributes.get("filter", ""):
                notes[shown] = f"the filter {name!r} of .gitattributes is not run: the text is compared as it lies here"
            if b"\r\n" in text and b"\r\n" not in old:
                text = text.replace(b"\r\n", b"\n")
            paths.append(shown)
            pairs.append((old, text))
        for number, change in self.git.compare(pairs).items():
            path = paths[number]
            self.found[path] = Change(change.lines, change.gaps, change.removed, notes.get(path, ""))


def _is_same_time(now: int, seen: int) -> bool:
    """`seen` may be in whole seconds, as some programs write them."""
    return now == seen or (seen % 1_000_000_000 == 0 and now // 1_000_000_000 * 1_000_000_000 == seen)


def _count_whole(text: bytes, note: str = "") -> Change:
    count = text.count(b"\n") + (not text.endswith(b"\n"))
    return Change(tuple(range(1, max(count, 1) + 1)), note=note)


def _is_binary(text: bytes) -> bool:
    return b"\0" in text[:8000]  # as git decides it


def _check_in(text: bytes, attributes: dict[str, str]) -> bytes:
    """As git would store it, where no program is needed for that."""
    if codec := find_codec(attributes.get("working-tree-encoding", "")):
        try:
            text = text.decode(codec).encode()
        except (LookupError, UnicodeError, ValueError):
            return text
    if "ident" in attributes:
        text = re.sub(rb"\$Id:[^\n$]*\$", b"$Id$", text)
    return text


_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n.*?oid sha256:([0-9a-f]{64})\nsize (\d+)\n", re.DOTALL
)


def _points_to(old: bytes, text: bytes) -> bool:
    """Whether what is stored is a pointer of Git LFS to this text."""
    pointer = _POINTER.match(old) if len(old) < 1024 else None
    return pointer is not None and hashlib.sha256(text).hexdigest().encode() == pointer[1]


class Attributes:
    """What .gitattributes says of a path about how its text is stored."""

    _KNOWN = ("filter", "working-tree-encoding", "ident")

    def __init__(self, checkout: Checkout) -> None:
        self._checkout = checkout
        self._folders: dict[str, list[tuple[Rules, dict[str, str]]]] = {}
        self._macros: dict[str, dict[str, str]] = {}
        self._load("")  # where git lets macros be defined
        self._last = self._parse(_read_text(f"{checkout.common}/info/attributes"))

    def find(self, path: str) -> dict[str, str]:
        found: dict[str, str] = {}
        above = ""
        for name in path.split("/"):
            if above not in self._folders:
                self._load(above)
            self._apply(self._folders[above], path[len(above) :], found)
            above += name + "/"
        self._apply(self._last, path, found)
        return {name: value for name, value in found.items() if value}

    def _apply(self, lines: list[tuple[Rules, dict[str, str]]], path: str, found: dict[str, str]) -> None:
        for rules, values in lines:
            if rules.match(path, path.rpartition("/")[2], False):
                found.update(values)

    def _load(self, above: str) -> None:
        raw = read_bytes(self._checkout.top, f"{above}.gitattributes", _MAX_BLOB)
        self._folders[above] = self._parse(b"" if isinstance(raw, Skip) else raw)

    def _parse(self, text: bytes) -> list[tuple[Rules, dict[str, str]]]:
        found: list[tuple[Rules, dict[str, str]]] = []
        for line in os.fsdecode(text).split("\n"):
            pattern, *words = line.split() or [""]
            values: dict[str, str] = {}
            for word in words:
                name, equals, value = word.lstrip("-!").partition("=")
                if name in self._KNOWN:
                    values[name] = "" if word[0] in "-!" else value if equals else "set"
                elif word == name:
                    values |= self._macros.get(name, {})
            if pattern.startswith("[attr]"):
                self._macros[pattern[len("[attr]") :]] = values
            elif values and pattern[0] not in "#!":
                found.append((Rules([pattern.strip('"')]), values))
        return found


def _read_text(path: str, most: int = _MAX_BLOB) -> bytes:
    try:
        return read_file(path, most)
    except OSError:
        return b""


# -- running -------------------------------------------------------------------------------------------


class Git:
    """git over the objects of a repository, in a directory of ours that holds its references and nothing else of it."""

    def __init__(self, checkout: Checkout, base: str) -> None:
        self.checkout, self.base = checkout, base
        self.objects = f"{checkout.common}/objects"

    def __enter__(self) -> Self:
        from tempfile import TemporaryDirectory

        _check_objects(self.objects)
        self._scratch = TemporaryDirectory(prefix="cq-git-", ignore_cleanup_errors=True)
        self.folder = self._scratch.name
        try:
            self._write()
        except BaseException:
            self._scratch.cleanup()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._scratch.cleanup()

    def run(self, *arguments: str, given: bytes = b"") -> bytes:
        output, status = self.run_any(*arguments, given=given)
        if status:
            raise GitError(f"git cannot read the repository (exit code {status})")
        return output

    def run_any(self, *arguments: str, given: bytes = b"", directory: str = "git") -> tuple[bytes, int]:
        """What git says, and its exit status. `directory` is what it takes for the repository."""
        import subprocess  # costs more than most questions, which do not ask git
        from threading import Timer

        program = find_in_path("git", self.base)
        if program is None:
            raise GitError("git is not installed")
        environment = choose_environment(os.environ, root=self.base) | {
            "LC_ALL": "C",
            "HOME": self.folder,
            "XDG_CONFIG_HOME": self.folder,
            "GIT_DIR": f"{self.folder}/{directory}",
            "GIT_OBJECT_DIRECTORY": self.objects,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            # It has nowhere to fetch from; these say so once more.
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_ALLOW_PROTOCOL": "none",
            "GIT_TERMINAL_PROMPT": "0",
        }
        # From a file: git need not have read all of it before it answers.
        _write(f"{self.folder}/given", given)
        try:
            with open(f"{self.folder}/given", "rb") as asked:  # noqa: PTH123
                process = subprocess.Popen(
                    [program, "--no-pager", *arguments],
                    cwd=self.folder,
                    env=environment,
                    stdin=asked,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
        except OSError:
            raise GitError("git cannot be started") from None
        assert process.stdout is not None
        timer = Timer(TIMEOUT, process.kill)
        with process:
            if sys.platform == "linux":
                import resource

                with suppress(OSError):  # it has ended
                    resource.prlimit(process.pid, resource.RLIMIT_DATA, (_MAX_MEMORY, _MAX_MEMORY))
            timer.start()
            pieces: list[bytes] = []
            left = _MAX_OUTPUT
            while left >= 0 and (piece := process.stdout.read(1 << 20)):
                pieces.append(piece)
                left -= len(piece)
            if left < 0:
                process.kill()
            in_time = timer.is_alive()
            timer.cancel()
        if left < 0:
            raise GitLimitError(f"git says more than {_MAX_OUTPUT // 1024**2} MB of it")
        if not in_time:
            raise GitLimitError(f"git gave no answer in {TIMEOUT} s")
        return b"".join(pieces), process.returncode

    def find_commit(self, revision: str) -> str:
        """The name of a commit; GitError where there is none of that name."""
        if revision.startswith("-") or not revision:
            raise GitError("that is no revision")
        if "@{" in revision:
            self.copy_logs()
        commit, status = self.run_any("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
        if status:
            raise GitError("there is no such commit" if revision != "HEAD" else "nothing is committed yet")
        return commit.decode().strip()

    def measure(self, hashes: list[str]) -> list[int]:
        """The sizes of objects; -1 of those that are not here."""
        if not hashes:
            return []
        given = "".join(f"{name}\n" for name in hashes).encode()
        rows = self.run("cat-file", "--batch-check=%(objectsize)", given=given).decode().splitlines()
        return [int(row) if row.isdigit() else -1 for row in rows]

    def read_blobs(self, hashes: list[str]) -> Iterator[bytes]:
        if not hashes:
            return
        given = "".join(f"{name}\n" for name in hashes).encode()
        output = self.run("cat-file", "--batch=%(objectsize)", given=given)
        at = 0
        for _ in hashes:
            end = output.index(b"\n", at)
            size = int(output[at:end])
            yield output[end + 1 : end + 1 + size]
            at = end + 2 + size

    def compare(self, pairs: list[tuple[bytes, bytes]]) -> dict[int, Change]:
        """Of texts before and after, by their number: the lines that differ, as `git diff` finds them."""
        if not pairs:
            return {}
        from tempfile import TemporaryDirectory

        with TemporaryDirectory(prefix="compare-", dir=self.folder) as folder:
            name = os.path.basename(folder)  # noqa: PTH119
            for side, when in enumerate(("old", "new")):
                for number, pair in enumerate(pairs):
                    _write(f"{folder}/{when}/{number}", pair[side])
            # In no repository: some versions take the attributes of a bare one from its newest commit.
            output, status = self.run_any(
                "diff", "--no-index", "--unified=0", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames",
                "--text", "--", f"{name}/old", f"{name}/new", directory="none",
            )  # fmt: skip
        if status not in (0, 1):
            raise GitError(f"git cannot compare (exit code {status})")
        return _read_diff(output)

    def copy_logs(self) -> None:
        """What references were: `main@{1}`."""
        for source in {self.checkout.common, self.checkout.git_dir}:
            for folder, _, names in os.walk(f"{source}/logs"):
                there = f"{self.folder}/git/{os.path.relpath(folder, source)}"
                for name in names:
                    if source == self.checkout.git_dir or name != "HEAD":
                        _write(f"{there}/{name}", _read_text(f"{folder}/{name}", _MAX_LOG))

    def _write(self) -> None:
        checkout, to = self.checkout, f"{self.folder}/git"
        os.makedirs(f"{to}/refs")  # noqa: PTH103
        settings = _SETTINGS
        if checkout.hash_size == 32:
            settings += "[extensions]\nobjectFormat = sha256\n"
        if checkout.get("extensions.refstorage"):
            settings += "[extensions]\nrefStorage = reftable\n"
            for name in os.listdir(f"{checkout.common}/reftable"):
                _write(f"{to}/reftable/{name}", _read_text(f"{checkout.common}/reftable/{name}", _MAX_REFS))
        for name, values in checkout.settings.items():
            if _HANDED.fullmatch(name):
                section, _, key = name.rpartition(".")
                kind, _, of = section.partition(".")
                settings += f"[{kind} {_quote(of)}]\n" + "".join(f"{key} = {_quote(value)}\n" for value in values)
        _write(f"{to}/config", os.fsencode(settings))
        _write(f"{to}/shallow", _read_text(f"{checkout.common}/shallow", _MAX_REFS), empty=False)
        for name in os.listdir(checkout.git_dir):
            if re.fullmatch(r"[A-Z_]*HEAD", name):
                _write(f"{to}/{name}", _read_text(f"{checkout.git_dir}/{name}", 1 << 16), empty=False)
        packed = _read_packed(_read_text(f"{checkout.common}/packed-refs", _MAX_REFS))
        for source in dict.fromkeys((checkout.common, checkout.git_dir)):
            for folder, _, names in os.walk(f"{source}/refs"):
                for name in names:
                    value = os.fsencode(read_line(f"{folder}/{name}"))
                    ref = os.path.relpath(f"{folder}/{name}", source).replace(os.sep, "/")
                    if _HASH.fullmatch(value):
                        packed[os.fsencode(ref)] = value
                    elif value.startswith(b"ref: refs/"):
                        packed.pop(os.fsencode(ref), None)
                        _write(f"{to}/{ref}", value + b"\n")
        _write(f"{to}/packed-refs", b"".join(b"%s %s\n" % (value, ref) for ref, value in sorted(packed.items())))


_HASH = re.compile(rb"[0-9a-f]{40}|[0-9a-f]{64}")


def _read_packed(text: bytes) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for line in text.splitlines():
        value, _, ref = line.partition(b" ")
        if _HASH.fullmatch(value) and ref:
            found[ref] = value
    return found


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _write(path: str, text: bytes, *, empty: bool = True) -> None:
    if text or empty:
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103
        with open(path, "wb") as file:  # noqa: PTH123
            file.write(text)


def _check_objects(objects: str) -> None:
    """git would wait at a pipe among them, behind links as well. GitError where one is no file."""
    waiting, stores = [objects], 0
    seen = set[str]()
    while waiting:
        top = os.path.realpath(waiting.pop())
        folders = [top]
        while folders:
            folder = folders.pop()
            if folder in seen:
                continue
            seen.add(folder)
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if entry.is_dir():
                            folders.append(os.path.realpath(entry.path) if entry.is_symlink() else entry.path)
                        elif not entry.is_file():
                            raise GitError("what should be objects of git are no files")
            except OSError:
                continue
        alternates = _read_text(f"{top}/info/alternates", _MAX_BLOB + 1)
        lines = [line for line in os.fsdecode(alternates).split("\n") if line and line[0] != "#"]
        stores += len(lines)
        # In quotes a path may be spelled in ways that only git knows.
        if len(alternates) > _MAX_BLOB or stores > _MAX_ALTERNATES or any(line[0] == '"' for line in lines):
            raise GitError("its objects lie in too many places, or in odd ones")
        waiting += [os.path.join(top, line) for line in lines]


def _read_diff(text: bytes) -> dict[int, Change]:
    found: dict[int, Change] = {}
    number = 0
    # What git says of a missing line end is no line of a file; those begin with one of its marks.
    rows = iter([row for row in text.split(b"\n") if row[:1] != b"\\"])
    for row in rows:
        if row.startswith(b"+++ "):
            number = int(row.rpartition(b"/")[2])
        elif row.startswith(b"@@ "):
            (_, gone), (first, many) = (_read_range(word) for word in row.split(b" ")[1:3])
            # A line of a file may look like a line of the diff: as many are taken as are announced.
            removed = b"".join(line[1:] + b"\n" for line in islice(rows, gone))
            for _ in islice(rows, many):
                pass
            known = found.get(number, Change())
            found[number] = Change(
                known.lines + tuple(range(first, first + many)),
                known.gaps + (() if many else (first,)),
                known.removed + ((removed,) if gone else ()),
            )
    return found


def _read_range(word: bytes) -> tuple[int, int]:
    """`-12,3`: the first line and how many; of none, the line before."""
    first, _, many = word[1:].partition(b",")
    return int(first), int(many or 1)
