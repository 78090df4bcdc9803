"""Which files a root holds: what git would list where there is a repository, else all. No program is asked, no link is
followed, nothing outside the root is opened but the rules that git knows, and what is left out on purpose is listed
with its reason."""

# Names here may be no UTF-8, and a Path per file costs more than the listing.
# ruff: noqa: PTH112

from __future__ import annotations

import os
import stat
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import msgspec
from xxhash import xxh3_64_intdigest

from cq.model.errors import SourceError, UsageError
from cq.model.source import Skip
from cq.opening import read_file
from cq.source.checkout import SUBMODULE, GitError, Tracked, is_bare, is_repository, open_checkout
from cq.source.ignore import MAX_RULES, Rules, parse_rules
from cq.source.read import MAX_BYTES, classify_link, describe_error, is_missing, read_bytes, real_path, show_path
from cq.source.repository import find_top

MAX_FILES = 1_000_000

# Never source, or someone else's; a directory with a pyvenv.cfg is one of these too.
SKIPPED_DIRS = frozenset({".git", ".hg", ".svn", ".jj", "node_modules", "__pycache__", ".venv"})
_WALK_RULES = (".gitignore", ".ignore", ".cqignore")  # later ones outrank earlier ones of the same directory
_GIT_RULES = _WALK_RULES[1:]  # of these git knows nothing: what they leave out may be tracked
_MAX_RULES_BYTES = 1024 * 1024


class FileEntry(msgspec.Struct, frozen=True, gc=False):
    """`path` is for people: POSIX, NFC, bytes that are not UTF-8 as `\\xNN`. `os_path` opens it."""

    path: str
    os_path: str  # relative to the root, with the system's own spelling
    size: int
    mtime_ns: int
    ctime_ns: int

    @property
    def written_ns(self) -> int:
        return max(self.mtime_ns, self.ctime_ns)


class Listing(msgspec.Struct, frozen=True):
    """`files` and `skips` are sorted by path. Ignored files are in neither.

    It stays true while nothing in `directories` and `watched` changes, and `top` is where git would look.
    """

    files: tuple[FileEntry, ...]
    skips: tuple[Skip, ...]
    via: str  # "git" or "walk"
    notes: tuple[str, ...] = ()
    truncated: bool = False  # max_files was reached
    # Every directory a listed file could newly appear in, as the system spells it -> see stat_directory.
    directories: dict[str, tuple[int, int]] = {}
    watched: dict[str, tuple[int, int]] = {}  # the files that decide what is listed, in full -> see stat_file
    top: str = ""  # see find_top


def find_files(
    root: Path,
    *,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    max_bytes: int = MAX_BYTES,
    max_files: int = MAX_FILES,
) -> Listing:
    """Every file that could be source. `include` and `exclude` are gitignore patterns; exclude wins."""
    base = real_path(root)
    if not os.path.isdir(base):
        raise SourceError(f"{root} is not a directory", hint="give the directory that holds the code")
    wanted, unwanted = parse_globs("include", include), parse_globs("exclude", exclude)
    return _Finder(base, wanted, unwanted, max_bytes, max_files).find()


def find_stored_files(
    stored: Mapping[str, Tracked],
    read: Callable[[str], bytes],
    *,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    max_bytes: int = MAX_BYTES,
    max_files: int = MAX_FILES,
) -> Listing:
    """What `find_files` would list in a fresh checkout of what git has stored, by path; `read` gives the text of a
    path. The disk is not looked at."""
    wanted, unwanted = parse_globs("include", include), parse_globs("exclude", exclude)
    return _StoredFinder(stored, read, wanted, unwanted, max_bytes, max_files).find()


def find_written(status: os.stat_result) -> int:
    """When somebody last wrote to a file, or set its time: who sets the time of a file back, as archives and `rsync -t`
    do, sets that of its inode anew."""
    return max(status.st_mtime_ns, status.st_ctime_ns)


def stat_directory(path: str) -> tuple[int, int]:
    """(when it was last written to, hash of its names): a file saved by renaming changes the first, not the second."""
    try:
        with os.scandir(path) as entries:
            names = _hash_names([(entry.name, _find_kind(entry)) for entry in entries])
        return find_written(os.lstat(path)), names
    except OSError:
        return -1, -1


_FOLDER, _FILE = "1", "0"


def _find_kind(entry: os.DirEntry[str]) -> str:
    """A link or a device is the one that it is: another of its name leads elsewhere."""
    if entry.is_file(follow_symlinks=False):
        return _FILE
    return _FOLDER if entry.is_dir(follow_symlinks=False) else f"2 {entry.inode()}"


def _hash_names(names: list[tuple[str, str]]) -> int:
    joined = "/".join(name + kind for name, kind in sorted(names))
    return xxh3_64_intdigest(os.fsencode(joined)) >> 1  # fits a signed integer


def stat_file(path: str) -> tuple[int, int]:
    """The size, and when somebody last wrote to it or to a link that leads there."""
    try:
        found = [os.lstat(path)]
        if stat.S_ISLNK(found[0].st_mode):
            found.append(os.stat(path))  # noqa: PTH116
    except OSError:
        return -1, -1
    return found[-1].st_size, max(map(find_written, found))


def parse_globs(option: str, globs: Sequence[str]) -> Rules:
    patterns: list[str] = []
    for glob in globs:
        body = glob.removeprefix("!")
        hint = "patterns are written as in .gitignore: src/**/*.py, *.ts, tests/"
        if ".." in body.split("/") or "\0" in body:
            raise UsageError(f"--{option} {glob!r} leaves the root", hint=hint)
        if "{" in body and "," in body.partition("{")[2].partition("}")[0]:
            raise UsageError(f"--{option} {glob!r} has braces, which are not expanded", hint="give the option twice")
        pattern = glob[: len(glob) - len(body)] + unicodedata.normalize("NFC", body.removeprefix("./"))
        try:
            Rules([pattern], strict=True)
        except ValueError as error:
            raise UsageError(f"--{option} {glob!r} is not a pattern: {error}", hint=hint) from None
        patterns.append(pattern)
    if len(patterns) > MAX_RULES:
        raise UsageError(f"--{option} is given {len(patterns)} times", hint=f"at most {MAX_RULES} patterns")
    return Rules(patterns)


class PathFilter:
    """Which paths a question is about; globs mean what they mean for a listing. `inside` names folders or files."""

    def __init__(self, include: Sequence[str] = (), exclude: Sequence[str] = (), inside: Sequence[str] = ()) -> None:
        self._include, self._exclude = parse_globs("include", include), parse_globs("exclude", exclude)
        self._inside = tuple(unicodedata.normalize("NFC", folder) for folder in inside)
        self._folders: dict[str, bool | None] = {"": None if self._include else True}

    def __call__(self, path: str) -> bool:
        if self._inside and not any(path == folder or path.startswith(folder + "/") for folder in self._inside):
            return False
        folder, _, name = path.rpartition("/")
        included = self._check_folder(folder)
        if included is False or (self._exclude and self._exclude.match(path, name, False)):
            return False
        return included is True or self._include.match(path, name, False) is True

    def _check_folder(self, folder: str) -> bool | None:
        """True: taken as a whole. False: left out as a whole. None: its files decide."""
        if folder not in self._folders:
            parent, _, name = folder.rpartition("/")
            verdict = self._check_folder(parent)
            if verdict is not False:
                if self._exclude and self._exclude.match(folder, name, True):
                    verdict = False
                elif verdict is None and self._include.match(folder, name, True):
                    verdict = True
            self._folders[folder] = verdict
        return self._folders[folder]


_Entry = tuple[str, str, Callable[[], os.stat_result]]  # a name, its kind and what the system says of it


class _Directory:
    """One directory on the way: the rules that hold in it, outermost first."""

    __slots__ = ("git_rules", "ignored", "included", "os_path", "path", "repository", "rules", "skipped")

    def __init__(
        self,
        os_path: str,
        path: str,
        *,
        included: bool,
        rules: tuple[_Placed, ...] = (),
        git_rules: tuple[_Placed, ...] = (),
        repository: _Repository | None = None,
    ) -> None:
        self.os_path = os_path  # "" for the root, else with a slash at its end
        self.path = path
        self.included = included
        self.rules = rules
        self.git_rules = git_rules  # which say nothing about what is tracked
        self.repository = repository
        self.ignored = self.skipped = False  # by git's rules, or below one of SKIPPED_DIRS: only what is tracked counts


class _Placed(NamedTuple):
    """Rules, and the length of the prefix that ends where they stand."""

    rules: Rules
    prefix: int


class _Repository(NamedTuple):
    """The repository that a directory of the listing belongs to."""

    ignores_case: bool
    tracked: dict[str, Tracked]  # by path from the top
    paths: list[str]  # those of `tracked`, sorted
    strip: int  # what makes a path of the listing one from the top
    before: str

    def locate(self, os_path: str) -> str:
        """A path of the listing, from the top."""
        return self.before + os_path[self.strip :]


def _ignores(placed: tuple[_Placed, ...], path: str, name: str, is_dir: bool) -> bool:
    for rules, prefix in reversed(placed):
        verdict = rules.match(path[prefix:], name, is_dir)
        if verdict is not None:
            return verdict
    return False


def _read_outside(path: str) -> bytes | Skip:
    """Rules that the user, or git, keeps beside the tree."""
    try:
        raw = read_file(path, _MAX_RULES_BYTES + 1)
    except OSError as error:
        return Skip(path, "missing" if is_missing(error) else "unreadable", describe_error(error))
    return raw if len(raw) <= _MAX_RULES_BYTES else Skip(path, "too_large")


class _Finder:
    def __init__(self, base: str, include: Rules, exclude: Rules, max_bytes: int, max_files: int) -> None:
        self.base = base.rstrip("/")
        self.include = include
        self.exclude = exclude
        self.max_bytes = max_bytes
        self.max_files = max_files
        self.files: list[FileEntry] = []
        self.skips: list[Skip] = []
        self.notes: list[str] = []
        self.directories: dict[str, tuple[int, int]] = {}
        self.watched: dict[str, tuple[int, int]] = {}
        self.omitted = 0  # files beyond max_files
        self.root = _Directory("", "", included=not include)

    def find(self) -> Listing:
        top = find_top(self.base or "/")
        via = "walk"
        if top or is_bare(self.base or "/"):
            try:
                self._open_repository(self.root)
                via = "git"
            except GitError as error:
                self.notes.append(f"{error}; every file counts that no rule of the tree leaves out")
        self._walk()
        if self.omitted:
            self.notes.append(f"the first {self.max_files} files are taken, {self.omitted} more are left out")
        files = self._unique(sorted(self.files, key=lambda entry: entry.path))
        skips = sorted(set(self.skips), key=lambda skip: (skip.path, skip.reason, skip.detail))
        return Listing(
            files, tuple(skips), via, tuple(dict.fromkeys(self.notes)), bool(self.omitted), self.directories,
            self.watched, top,
        )  # fmt: skip

    def _unique(self, files: list[FileEntry]) -> tuple[FileEntry, ...]:
        kept: list[FileEntry] = []
        for entry in files:
            if kept and kept[-1].path == entry.path:
                # The name that is spelled as shown stays; between two odd spellings the order of their code points.
                first, second = sorted((kept[-1], entry), key=lambda e: (e.os_path != e.path, e.os_path))
                kept[-1] = first
                spelling = os.fsencode(second.os_path).decode("ascii", "backslashreplace")
                self.skips.append(Skip(second.path, "name_collision", f"spelled {spelling}"))
            else:
                kept.append(entry)
        return tuple(kept)

    def _open_repository(self, start: _Directory) -> None:
        """Lets git's rules hold from here on; GitError where there is no repository to be read, and then nothing is
        changed."""
        where = f"{self.base}/{start.os_path}".rstrip("/")
        try:
            checkout = open_checkout(where or "/")
        except GitError as error:
            for path in error.watched:
                self._watch(path)
            raise
        if start is not self.root and checkout.top != where:
            raise GitError("its work tree lies elsewhere")
        excludes, index = checkout.find_excludes(), f"{checkout.git_dir}/index"
        for path in (*checkout.watched, *excludes, index):
            self._watch(path)
        tracked = checkout.read_index()
        before = where[len(checkout.top) + 1 :]
        before += "/" if before else ""
        ignores_case = checkout.is_set("core.ignorecase")
        repository = _Repository(ignores_case, tracked, sorted(tracked), len(start.os_path), before)
        placed: tuple[_Placed, ...] = ()
        for path in excludes:
            placed = self._place(placed, path, self._take_text(path, _read_outside(path)), 0, ignores_case)
        # Between the top and a root below it: their rules hold, and may leave the root itself out.
        above, ignored = "", False
        for name in before.split("/")[:-1]:
            path = f"{above}.gitignore"
            self._watch(f"{checkout.top}/{path}")
            texts = self._take_text(path, read_bytes(checkout.top, path, _MAX_RULES_BYTES))
            placed = self._place(placed, path, texts, len(above), ignores_case)
            ignored = ignored or _ignores(placed, above + name, name, True)
            above += name + "/"
        start.repository, start.git_rules, start.ignored = repository, placed, ignored
        if ignored and not self._has_tracked(start):
            # Who names it as the root wants to see it all the same.
            start.repository, start.git_rules, start.ignored = None, (), False
            raise GitError("git ignores this directory")

    def _walk(self) -> None:
        stack = [self.root]
        while stack:
            directory = stack.pop()
            try:
                entries = self._scan(directory)
            except OSError as error:
                self.directories[directory.os_path] = (-1, -1)
                self.skips.append(Skip(directory.path.rstrip("/"), "unreadable", describe_error(error)))
                continue
            names = {name for name, _, _ in entries}
            if directory is not self.root and "pyvenv.cfg" in names and not directory.skipped:
                self._skip_directory(directory, "a virtual environment")
                if not self._has_tracked(directory):
                    continue
            self._add_rules(directory, names)
            below: list[_Directory] = []
            for name, kind, entry in entries:
                if kind == _FOLDER:
                    if child := self._descend(directory, name):
                        below.append(child)
                elif self._counts(directory, name):
                    try:
                        status = entry()
                    except OSError as error:
                        if not is_missing(error):
                            self._skip(directory, name, "unreadable", describe_error(error))
                        continue
                    self._add_file(directory, name, status)
            stack.extend(reversed(below))

    def _scan(self, directory: _Directory) -> list[_Entry]:
        where = f"{self.base}/{directory.os_path}"
        # Taken before its names: what appears in between makes the next look list again.
        written_ns = find_written(os.lstat(where))
        with os.scandir(where) as found:
            entries = [(entry.name, _find_kind(entry), partial(entry.stat, follow_symlinks=False)) for entry in found]
        entries.sort(key=itemgetter(0))
        self.directories[directory.os_path] = (written_ns, _hash_names([entry[:2] for entry in entries]))
        return entries

    def _counts(self, directory: _Directory, name: str) -> bool:
        """Whether git lists a file."""
        repository = directory.repository
        if repository is None:
            return True
        path = repository.locate(directory.os_path + name)
        if path in repository.tracked:
            return True
        return not (directory.ignored or directory.skipped or _ignores(directory.git_rules, path, name, False))

    def _descend(self, directory: _Directory, name: str) -> _Directory | None:
        """The directory `name`, if there may be files to be listed in it."""
        repository = directory.repository
        if repository is not None and name.lower() == ".git":
            return None
        child = self._enter(directory, name)
        if child is None:
            return None
        if repository is None:
            if name in SKIPPED_DIRS:
                self._skip_directory(child, name)
                return None
            return child
        path = repository.locate(directory.os_path + name)
        tracked = repository.tracked.get(path)
        if tracked is not None and tracked.mode == SUBMODULE:
            return self._open_nested(child)
        has_tracked = self._has_tracked(child)
        child.ignored = directory.ignored or _ignores(directory.git_rules, path, name, True)
        child.skipped = directory.skipped
        if child.ignored and not has_tracked:
            return None
        if not has_tracked and not child.skipped and is_repository(f"{self.base}/{child.os_path}"):
            return self._open_nested(child)
        if name in SKIPPED_DIRS and not child.skipped:
            self._skip_directory(child, name)
        return child if has_tracked or not child.skipped else None

    def _has_tracked(self, directory: _Directory) -> bool:
        repository = directory.repository
        if repository is None:
            return False
        below = repository.locate(directory.os_path)
        at = bisect_left(repository.paths, below)
        return not below or (at < len(repository.paths) and repository.paths[at].startswith(below))

    def _skip_directory(self, directory: _Directory, why: str) -> None:
        directory.skipped = True
        # What is tracked is there on purpose.
        detail = f"{why}, its untracked files" if directory.repository else why
        self.skips.append(Skip(directory.path.rstrip("/"), "skipped_dir", detail))

    def _open_nested(self, directory: _Directory) -> _Directory:
        """A submodule, or a repository inside of another one: its own rules hold in it."""
        directory.repository, directory.git_rules = None, ()
        if os.path.lexists(f"{self.base}/{directory.os_path}.git"):
            try:
                self._open_repository(directory)
            except GitError as error:
                where = directory.path.rstrip("/")
                self.notes.append(f"{where}: {error}; every file counts that no rule of the tree leaves out")
        return directory

    def _add_rules(self, directory: _Directory, names: set[str]) -> None:
        repository, prefix = directory.repository, len(directory.os_path)
        own = _WALK_RULES if repository is None else _GIT_RULES
        directory.rules = self._read_rules(directory, directory.rules, [name for name in own if name in names], prefix)
        if repository is not None and not directory.ignored and ".gitignore" in names:
            prefix = len(repository.locate(directory.os_path))
            placed, ignores_case = directory.git_rules, repository.ignores_case
            directory.git_rules = self._read_rules(directory, placed, [".gitignore"], prefix, ignores_case)

    def _read_rules(
        self,
        directory: _Directory,
        placed: tuple[_Placed, ...],
        names: list[str],
        prefix: int,
        ignores_case: bool = False,
    ) -> tuple[_Placed, ...]:
        texts: list[str] = []
        for name in names:
            os_path = directory.os_path + name
            self._watch(f"{self.base}/{os_path}")
            texts += self._take_text(f"{directory.path}{name}", self._read(os_path))
        return self._place(placed, directory.path or "./", texts, prefix, ignores_case)

    def _read(self, os_path: str) -> bytes | Skip:
        return read_bytes(self.base, os_path, _MAX_RULES_BYTES)

    def _take_text(self, shown: str, raw: bytes | Skip) -> list[str]:
        if isinstance(raw, bytes):
            return [os.fsdecode(raw).removeprefix("\ufeff")]
        if raw.reason != "missing":
            self.notes.append(f"{shown} is not read: {raw.reason}")
        return []

    def _place(
        self, placed: tuple[_Placed, ...], shown: str, texts: list[str], prefix: int, ignores_case: bool
    ) -> tuple[_Placed, ...]:
        if not texts:
            return placed
        rules = parse_rules("\n".join(texts), ignore_case=ignores_case)
        if rules.dropped:
            self.notes.append(f"{shown}: only the first {MAX_RULES} ignore rules are taken")
        return (*placed, _Placed(rules, prefix)) if rules else placed

    def _watch(self, path: str) -> None:
        self.watched.setdefault(path, stat_file(path))

    def _enter(self, parent: _Directory, name: str) -> _Directory | None:
        """The directory `name` of `parent`; None when rules leave it out."""
        if parent.rules and _ignores(parent.rules, parent.os_path + name, name, True):
            return None
        path = parent.path + show_path(name)
        included = parent.included
        if self.exclude or not included:
            shown = path.rpartition("/")[2]
            if self.exclude and self.exclude.match(path, shown, True):
                return None
            included = included or self.include.match(path, shown, True) is True
        return _Directory(
            f"{parent.os_path}{name}/", path + "/", included=included, rules=parent.rules, git_rules=parent.git_rules,
            repository=parent.repository,
        )  # fmt: skip

    def _wanted(self, directory: _Directory, name: str, path: str) -> bool:
        if directory.rules and _ignores(directory.rules, directory.os_path + name, name, False):
            return False
        if self.exclude or not directory.included:
            shown = path.rpartition("/")[2]
            if self.exclude and self.exclude.match(path, shown, False):
                return False
            return directory.included or self.include.match(path, shown, False) is True
        return True

    def _add_file(self, directory: _Directory, name: str, status: os.stat_result) -> None:
        path = directory.path + show_path(name)
        if name == ".git" or not self._wanted(directory, name, path):
            return
        if stat.S_ISREG(status.st_mode):
            if status.st_size > self.max_bytes:
                self._watch(f"{self.base}/{directory.os_path}{name}")
                self.skips.append(Skip(path, "too_large", f"{status.st_size} bytes, over {self.max_bytes}"))
            elif len(self.files) >= self.max_files:
                self.omitted += 1
            else:
                os_path = directory.os_path + name
                self.files.append(FileEntry(path, os_path, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
        elif stat.S_ISLNK(status.st_mode):
            self.skips.append(Skip(path, *self._classify_link(directory.os_path + name)))
        else:
            self.skips.append(Skip(path, "special", "neither a file nor a directory"))

    def _classify_link(self, os_path: str) -> tuple[str, str]:
        return classify_link(self.base, os_path)

    def _skip(self, directory: _Directory, name: str, reason: str, detail: str) -> None:
        path = directory.path + show_path(name)
        if self._wanted(directory, name, path):
            self.skips.append(Skip(path, reason, detail))


class _StoredFinder(_Finder):
    """Lists what git has stored: all of it is tracked, and only rules that git does not know leave something out."""

    def __init__(
        self,
        stored: Mapping[str, Tracked],
        read: Callable[[str], bytes],
        include: Rules,
        exclude: Rules,
        max_bytes: int,
        max_files: int,
    ) -> None:
        super().__init__("", include, exclude, max_bytes, max_files)
        self.stored, self.read = stored, read
        # By the path of each folder, with a slash at its end: its names.
        self.folders: dict[str, dict[str, Tracked | None]] = {"": {}}
        for path, tracked in stored.items():
            folder, name = _split(path)
            if folder not in self.folders:
                self.folders[folder] = {}
                self._add_above(folder)
            self.folders[folder][name] = tracked

    def _add_above(self, folder: str) -> None:
        while folder:
            above, name = _split(folder[:-1])
            known = above in self.folders
            self.folders.setdefault(above, {})[name] = None
            if known:
                return
            folder = above

    def find(self) -> Listing:
        self.root.repository = _Repository(False, dict(self.stored), sorted(self.stored), 0, "")
        self._walk()
        if self.omitted:
            self.notes.append(f"the first {self.max_files} files are taken, {self.omitted} more are left out")
        files = self._unique(sorted(self.files, key=lambda entry: entry.path))
        skips = sorted(set(self.skips), key=lambda skip: (skip.path, skip.reason, skip.detail))
        return Listing(files, tuple(skips), "revision", tuple(dict.fromkeys(self.notes)), bool(self.omitted))

    def _scan(self, directory: _Directory) -> list[_Entry]:
        return [
            (name, _FOLDER if tracked is None else _FILE, partial(_make_status, tracked))
            for name, tracked in sorted(self.folders.get(directory.os_path, {}).items())
            if tracked is None or tracked.mode != SUBMODULE
        ]

    def _add_rules(self, directory: _Directory, names: set[str]) -> None:
        own = [name for name in _GIT_RULES if name in names]
        directory.rules = self._read_rules(directory, directory.rules, own, len(directory.os_path))

    def _read(self, os_path: str) -> bytes | Skip:
        tracked = self.stored.get(os_path)
        if tracked is None or stat.S_ISLNK(tracked.mode) or tracked.size > _MAX_RULES_BYTES:
            return Skip(os_path, "too_large" if tracked and not stat.S_ISLNK(tracked.mode) else "link")
        return self.read(os_path)

    def _watch(self, path: str) -> None:
        """Nothing that is stored changes."""

    def _classify_link(self, os_path: str) -> tuple[str, str]:
        target = os.fsdecode(self.read(os_path))
        path = os.path.normpath(os.path.join(os.path.dirname(os_path), target)).replace(os.sep, "/")  # noqa: PTH118, PTH120
        if os.path.isabs(target) or path == ".." or path.startswith("../"):  # noqa: PTH117
            return "link_out", "its target lies outside the root"
        if path == os_path or os_path.startswith(path + "/") or path == ".":
            return "link_loop", "it leads to a directory it lies in" if path != os_path else "it leads to itself"
        if path not in self.stored and path + "/" not in self.folders:
            return "link_broken", "its target is missing"
        return "link", f"the same as {show_path(path)}"


def _split(path: str) -> tuple[str, str]:
    above, slash, name = path.rpartition("/")
    return above + slash, name


def _make_status(tracked: Tracked | None) -> os.stat_result:
    mode, size = (0, 0) if tracked is None else (tracked.mode, tracked.size)
    return os.stat_result((mode, 0, 0, 0, 0, 0, size, 0, 0, 0), {"st_mtime_ns": 0, "st_ctime_ns": 0})
