"""Which files a root holds: through git where there is a repository, else by walking. Nothing outside the root is
opened, no link is followed, and what is left out on purpose is listed with its reason."""

# Names here may be no UTF-8, and a Path per file costs more than the listing.
# ruff: noqa: PTH112

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from xxhash import xxh3_64_intdigest

from cq.model.errors import SourceError, UsageError
from cq.model.source import Skip
from cq.source import git
from cq.source.ignore import MAX_RULES, Rules, parse_rules
from cq.source.read import MAX_BYTES, classify_link, describe, read_bytes, real_path, show_path

MAX_FILES = 1_000_000

# Never source, or someone else's; a directory with a pyvenv.cfg is one of these too.
SKIPPED_DIRS = frozenset({".git", ".hg", ".svn", ".jj", "node_modules", "__pycache__", ".venv"})
_WALK_RULES = (".gitignore", ".ignore", ".cqignore")  # later ones outrank earlier ones of the same directory
_GIT_RULES = (".ignore", ".cqignore")
_MAX_RULES_BYTES = 1024 * 1024


class FileEntry(msgspec.Struct, frozen=True, gc=False):
    """`path` is for people: POSIX, NFC, bytes that are not UTF-8 as `\\xNN`. `os_path` opens it."""

    path: str
    os_path: str  # relative to the root, with the system's own spelling
    size: int
    mtime_ns: int
    ctime_ns: int


class Listing(msgspec.Struct, frozen=True):
    """`files` and `skips` are sorted by path. Ignored files are in neither."""

    files: tuple[FileEntry, ...]
    skips: tuple[Skip, ...]
    via: str  # "git" or "walk"
    notes: tuple[str, ...] = ()
    truncated: bool = False  # max_files was reached


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


def find_directories(
    root: Path, *, include: Sequence[str] = (), exclude: Sequence[str] = ()
) -> dict[str, tuple[int, int]]:
    """Every directory a listed file could newly appear in, as the system spells it → (mtime_ns, hash of its names).

    A listing stays true while none of these and none of `find_watched` changes. Rules of git that lie
    outside the tree are not applied here: a directory too many costs one stat.
    """
    base = real_path(root)
    finder = _Finder(base, parse_globs("include", include), parse_globs("exclude", exclude), 0, 0)
    return finder.find_directories()


def find_watched(root: Path) -> dict[str, tuple[int, int]]:
    """Files beside the tree that decide what is listed (git's index and excludes) → (size, mtime_ns), -1 if absent."""
    return {path: stat_file(path) for path in git.find_rule_files(real_path(root))}


def stat_directory(path: str) -> tuple[int, int]:
    """(mtime_ns, hash of its names): a file saved by renaming changes the first, not the second."""
    try:
        with os.scandir(path) as entries:
            names = _hash_names([(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries])
        return os.lstat(path).st_mtime_ns, names
    except OSError:
        return -1, -1


def _hash_names(names: list[tuple[str, bool]]) -> int:
    joined = "/".join(f"{name}{is_dir:d}" for name, is_dir in sorted(names))
    return xxh3_64_intdigest(os.fsencode(joined)) >> 1  # fits a signed integer


def stat_file(path: str) -> tuple[int, int]:
    try:
        status = os.lstat(path)
    except OSError:
        return -1, -1
    return status.st_size, status.st_mtime_ns


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


class _Directory:
    """One directory on the way: the rules that hold in it, outermost first, each with the length of its own prefix."""

    __slots__ = ("included", "os_path", "path", "rules", "skipped")

    def __init__(
        self, os_path: str, path: str, rules: tuple[tuple[Rules, int], ...], *, included: bool, skipped: bool = False
    ) -> None:
        self.os_path = os_path  # "" for the root, else with a slash at its end
        self.path = path
        self.rules = rules
        self.included = included
        self.skipped = skipped  # below one of SKIPPED_DIRS

    def ignores(self, name: str, is_dir: bool) -> bool:
        os_path = self.os_path + name
        for rules, prefix in reversed(self.rules):
            verdict = rules.match(os_path[prefix:], name, is_dir)
            if verdict is not None:
                return verdict
        return False


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
        self.omitted = 0  # files beyond max_files
        self.root = _Directory("", "", (), included=not include)

    def find(self) -> Listing:
        via = "walk"
        if git.has_repository(self.base or "/"):
            try:
                self._list_git()
                via = "git"
            except git.GitError as error:
                self.notes.append(f"{error}; files are found by walking")
        if via == "walk":
            self._walk(self.root)
        if self.omitted:
            self.notes.append(f"the first {self.max_files} files are taken, {self.omitted} more are left out")
        files = self._unique(sorted(self.files, key=lambda entry: entry.path))
        skips = sorted(set(self.skips), key=lambda skip: (skip.path, skip.reason, skip.detail))
        return Listing(files, tuple(skips), via, tuple(dict.fromkeys(self.notes)), bool(self.omitted))

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

    def _walk(self, start: _Directory) -> None:
        stack = [start]
        while stack:
            directory = stack.pop()
            try:
                with os.scandir(f"{self.base}/{directory.os_path}") as found:
                    entries = sorted(found, key=lambda entry: entry.name)
            except OSError as error:
                self.skips.append(Skip(directory.path.rstrip("/"), "unreadable", describe(error)))
                continue
            names = {entry.name for entry in entries}
            if directory is not start and "pyvenv.cfg" in names:
                self.skips.append(Skip(directory.path.rstrip("/"), "skipped_dir", "a virtual environment"))
                continue
            self._add_rules(directory, [name for name in _WALK_RULES if name in names])
            below: list[_Directory] = []
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except OSError as error:
                        self._skip(directory, entry.name, "unreadable", describe(error))
                        continue
                    self._add_file(directory, entry.name, status)
                elif child := self._enter(directory, entry.name):
                    if entry.name in SKIPPED_DIRS:
                        self.skips.append(Skip(child.path.rstrip("/"), "skipped_dir", entry.name))
                    else:
                        below.append(child)
            stack.extend(reversed(below))

    def find_directories(self) -> dict[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        stack = [self.root]
        while stack:
            directory = stack.pop()
            where = f"{self.base}/{directory.os_path}"
            try:
                with os.scandir(where) as entries:
                    names = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
                found[directory.os_path] = (os.lstat(where).st_mtime_ns, _hash_names(names))
            except OSError:
                found[directory.os_path] = (-1, -1)
                continue
            present = {name for name, _ in names}
            self._add_rules(directory, [name for name in _WALK_RULES if name in present])
            for name, is_dir in names:
                if is_dir and name not in SKIPPED_DIRS and (child := self._enter(directory, name)):
                    stack.append(child)
        return found

    def _list_git(self) -> None:
        """Raises GitError before anything is collected, or not at all: a nested repository that fails is walked."""
        tree = git.list_files(self.base or "/")
        if not tree.files and tree.top != self.base:
            # Most likely the root is itself ignored, and who asks about it wants to see it all the same.
            raise git.GitError("git lists no file here")
        repositories = [(self.root, tree)]
        while repositories:
            start, tree = repositories.pop(0)
            if tree.warned:
                self.notes.append(f"{start.path or './'}: git could not open every directory")
            self._add_rules(start, _GIT_RULES)
            # None: not on disk as a real directory, or ignored; what the index says of its content is moot.
            known: dict[str, _Directory | None] = {"": start}
            for path, tracked, nested in tree.files:
                above, _, name = path.rpartition("/")
                directory = known[above] if above in known else self._enter_all(known, above)
                if directory is None or name in ("", ".", "..") or name.lower() == ".git":
                    continue
                if directory.skipped and not tracked:
                    continue
                try:
                    status = os.lstat(f"{self.base}/{directory.os_path}{name}")
                except (FileNotFoundError, NotADirectoryError):
                    continue  # deleted, or outside a sparse checkout
                except OSError as error:
                    self._skip(directory, name, "unreadable", describe(error))
                    continue
                if not stat.S_ISDIR(status.st_mode):
                    self._add_file(directory, name, status)
                elif nested and (inner := self._enter(directory, name)) and (found := self._list_nested(inner)):
                    repositories.append((inner, found))

    def _list_nested(self, directory: _Directory) -> git.WorkTree | None:
        where = f"{self.base}/{directory.os_path}".rstrip("/")
        if os.path.lexists(where + "/.git"):
            try:
                tree = git.list_files(where)
                if tree.top == where:
                    return tree
                error = "its work tree lies elsewhere"
            except git.GitError as problem:
                error = str(problem)
            self.notes.append(f"{directory.path.rstrip('/')}: {error}; files are found by walking")
        self._walk(directory)
        return None

    def _enter_all(self, known: dict[str, _Directory | None], path: str) -> _Directory | None:
        at = 0
        directory = known[""]
        while at < len(path):
            end = path.find("/", at)
            end = len(path) if end < 0 else end
            part = path[:end]
            if part not in known:
                name = path[at:end]
                child = None
                if directory and name not in ("", ".", "..") and name.lower() != ".git":
                    child = self._enter(directory, name)
                if directory and child:
                    child = self._check_directory(directory, child, name)
                known[part] = child
            directory = known[part]
            at = end + 1
        return directory

    def _check_directory(self, parent: _Directory, child: _Directory, name: str) -> _Directory | None:
        where = f"{self.base}/{child.os_path}"
        try:
            if not stat.S_ISDIR(os.lstat(where.rstrip("/")).st_mode):
                return None
        except OSError:
            return None
        child.skipped = parent.skipped
        if not child.skipped and (name in SKIPPED_DIRS or os.path.lexists(where + "pyvenv.cfg")):
            # Only untracked files below are left out: what is tracked is there on purpose.
            child.skipped = True
            detail = name if name in SKIPPED_DIRS else "a virtual environment"
            self.skips.append(Skip(child.path.rstrip("/"), "skipped_dir", f"{detail}, its untracked files"))
        self._add_rules(child, _GIT_RULES)
        return child

    def _add_rules(self, directory: _Directory, names: Iterable[str]) -> None:
        texts: list[str] = []
        for name in names:
            # Opening goes step by step; most directories have no rules, and one look tells.
            if not os.path.lexists(f"{self.base}/{directory.os_path}{name}"):
                continue
            raw = read_bytes(self.base, directory.os_path + name, _MAX_RULES_BYTES)
            if isinstance(raw, bytes):
                texts.append(raw.decode("utf-8", "surrogateescape").removeprefix("\ufeff"))
            elif raw.reason != "missing":
                self.notes.append(f"{directory.path}{name} is not read: {raw.reason}")
        if texts and (rules := parse_rules("\n".join(texts))):
            directory.rules = (*directory.rules, (rules, len(directory.os_path)))
            if rules.dropped:
                self.notes.append(f"{directory.path or './'}: only the first {MAX_RULES} ignore rules are taken")

    def _enter(self, parent: _Directory, name: str) -> _Directory | None:
        """The directory `name` of `parent`; None when rules leave it out."""
        if parent.rules and parent.ignores(name, True):
            return None
        path = parent.path + show_path(name)
        included = parent.included
        if self.exclude or not included:
            shown = path.rpartition("/")[2]
            if self.exclude and self.exclude.match(path, shown, True):
                return None
            included = included or self.include.match(path, shown, True) is True
        return _Directory(f"{parent.os_path}{name}/", path + "/", parent.rules, included=included)

    def _wanted(self, directory: _Directory, name: str, path: str) -> bool:
        if directory.rules and directory.ignores(name, False):
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
                self.skips.append(Skip(path, "too_large", f"{status.st_size} bytes, over {self.max_bytes}"))
            elif len(self.files) >= self.max_files:
                self.omitted += 1
            else:
                os_path = directory.os_path + name
                self.files.append(FileEntry(path, os_path, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
        elif stat.S_ISLNK(status.st_mode):
            self.skips.append(Skip(path, *classify_link(self.base, directory.os_path + name)))
        else:
            self.skips.append(Skip(path, "special", "neither a file nor a directory"))

    def _skip(self, directory: _Directory, name: str, reason: str, detail: str) -> None:
        path = directory.path + show_path(name)
        if self._wanted(directory, name, path):
            self.skips.append(Skip(path, reason, detail))
