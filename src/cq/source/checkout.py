"""What git keeps about a work tree on the disk, read without git: its settings, its index and its exclude files. The
repository is taken as hostile. It is a format that is parsed: nothing in it is run, followed further than is said here,
or written."""

# Names here may be no UTF-8.
# ruff: noqa: PTH111, PTH112, PTH113, PTH118, PTH120

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import lru_cache
from struct import Struct, error, unpack_from
from typing import NamedTuple

from cq.opening import read_file
from cq.source.ignore import Rules
from cq.source.read import real_path
from cq.source.repository import find_common_dir, find_top, read_line

_MAX_SETTINGS = 1024 * 1024  # bytes of all files of settings, each as often as it is included
_LEAST = 4096  # what a file of settings counts, however short
_MAX_DEPTH = 10
_MAX_INDEX = 1 << 30

LINK, DIRECTORY, SUBMODULE = 0o120000, 0o040000, 0o160000


class GitError(Exception):
    """Why a repository cannot be read, as half a sentence. `watched` are the files that this was read from."""

    def __init__(self, why: str, watched: Sequence[str] = ()) -> None:
        super().__init__(why)
        self.watched = watched


class Tracked(NamedTuple):
    """What the index says of a path. `DIRECTORY` stands for all below it, in a sparse index."""

    mode: int
    hash: bytes
    size: int
    mtime_ns: int
    ctime_ns: int
    absent: bool  # outside of a sparse checkout: not on the disk on purpose


class Checkout:
    """One work tree: where it lies and its settings. `watched` are the files it was read from, for who wants to know
    whether it would be read the same again."""

    def __init__(self, top: str, git_dir: str, common: str) -> None:
        self.top, self.git_dir, self.common = top, git_dir, common
        self.watched = [f"{top}/.git", f"{git_dir}/commondir", f"{git_dir}/HEAD"]
        self.settings: dict[str, list[str]] = {}
        reader = _Settings(self)
        reader.read("/etc/gitconfig")
        for path in find_user_settings():
            reader.read(path)
        reader.read(f"{common}/config")
        if self.get("extensions.worktreeconfig").lower() in _TRUE:
            reader.read(f"{git_dir}/config.worktree")
        self.hash_size = 32 if self.get("extensions.objectformat").lower() == "sha256" else 20

    def get(self, name: str) -> str:
        """The last value given to `section.key`, or `section.Subsection.key`."""
        return self.settings.get(name, ("",))[-1]

    def is_set(self, name: str) -> bool:
        return self.get(name).lower() in _TRUE

    def find_excludes(self) -> list[str]:
        """The files of rules beside the tree, the weakest first."""
        named = self.get("core.excludesfile")
        own = _expand(named, self.top) if named else f"{_find_xdg()}/git/ignore"
        return [path for path in (own, f"{self.common}/info/exclude") if path]

    def read_index(self) -> dict[str, Tracked]:
        """By path from the top, as the system spells it; empty where nothing was ever added."""
        path = f"{self.git_dir}/index"
        try:
            entries, split = self._read_index(path)
            if split:
                entries = self._join(entries, split)
        except (error, IndexError, ValueError, OverflowError):
            raise GitError("git's index is damaged") from None
        found: dict[str, Tracked] = {}
        for name, tracked in entries:
            found[os.fsdecode(name)] = tracked
        return found

    def _read_index(self, path: str) -> tuple[_Entries, bytes]:
        try:
            raw = read_file(path, _MAX_INDEX)
        except FileNotFoundError:
            return [], b""
        except OSError as problem:
            raise GitError(f"git's index cannot be read: {(problem.strerror or '').lower()}") from None
        return _parse_index(raw, self.hash_size)

    def _join(self, own: _Entries, link: bytes) -> _Entries:
        """A split index: what it says over the one it was split from, which its link names."""
        name = f"sharedindex.{link[: self.hash_size].hex()}"
        where = next((folder for folder in (self.git_dir, self.common) if os.path.isfile(f"{folder}/{name}")), "")
        if not where:
            raise GitError("git's index is split, and the other part is missing")
        entries, more = self._read_index(f"{where}/{name}")
        if more:
            raise ValueError
        gone, at = _read_bits(link, self.hash_size, len(entries))
        replaced, _ = _read_bits(link, at, len(entries))
        fresh = iter(own)
        for at in replaced:
            entries[at] = entries[at][0], next(fresh)[1]
        dropped = set(gone)
        return [entry for at, entry in enumerate(entries) if at not in dropped] + list(fresh)


_TRUE = ("true", "yes", "on", "1")
_Entries = list[tuple[bytes, Tracked]]


def open_checkout(directory: str, *, bare: bool = False) -> Checkout:
    """Of a directory as it really is; GitError says why there is none to be had. With `bare` a repository without a
    work tree will do."""
    if is_bare(directory):
        if bare:
            return Checkout(directory.rstrip("/"), directory, directory)
        raise GitError("the repository is bare")
    top = find_top(directory)
    found = find_common_dir(top) if top else None
    if not top:
        raise GitError("there is no git repository")
    if found is None or not _is_git_dir(*found):
        places = (f"{found[0]}/HEAD", f"{found[1]}/objects", f"{found[1]}/refs") if found else ()
        raise GitError("its .git leads to no repository", (f"{top}/.git", *places))
    checkout = Checkout(top.rstrip("/"), *found)
    elsewhere = checkout.get("core.worktree")
    if elsewhere and real_path(os.path.join(checkout.git_dir, elsewhere)) != top:
        raise GitError("the repository's work tree lies elsewhere", checkout.watched)
    if not bare and checkout.is_set("core.bare") and checkout.git_dir == checkout.common:
        raise GitError("the repository is bare", checkout.watched)
    return checkout


def is_bare(directory: str) -> bool:
    """A repository without a work tree, or the inside of one."""
    return not os.path.lexists(f"{directory}/.git") and _is_git_dir(directory, directory)


def is_repository(top: str) -> bool:
    """Whether the `.git` in a directory is one: else git takes what is there for a directory like any other."""
    found = find_common_dir(top)
    return found is not None and _is_git_dir(*found)


def _is_git_dir(git_dir: str, common: str) -> bool:
    return os.path.lexists(f"{git_dir}/HEAD") and all(os.path.isdir(f"{common}/{name}") for name in ("objects", "refs"))


def _find_xdg() -> str:
    return os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")


def find_user_settings() -> tuple[str, ...]:
    return f"{_find_xdg()}/git/config", os.path.expanduser("~/.gitconfig")


def _expand(path: str, base: str) -> str:
    return os.path.join(base, os.path.expanduser(path))


# -- settings ------------------------------------------------------------------------------------------

_SECTION = re.compile(r'\[[ \t]*([-.\w]+)(?:[ \t]+"((?:[^"\\\n]|\\.)*)")?[ \t]*\]')
_KEY = re.compile(r"([a-zA-Z][-\w]*)[ \t]*(=?)[ \t]*")
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b"}


class _Settings:
    """Reads files of settings into a Checkout, with those they include."""

    def __init__(self, checkout: Checkout) -> None:
        self.checkout = checkout
        self.left = _MAX_SETTINGS

    def read(self, path: str, depth: int = 0) -> None:
        self.checkout.watched.append(path)
        try:
            raw = read_file(path, self.left + 1)
        except OSError:
            return
        self.left -= max(len(raw), _LEAST)
        if self.left < 0:
            raise GitError("git's settings are too long", self.checkout.watched)
        settings = self.checkout.settings
        for name, value in parse_settings(os.fsdecode(raw)):
            settings.setdefault(name, []).append(value)
            is_include = name == "include.path" or (name.startswith("includeif.") and name.endswith(".path"))
            if not is_include or not value or depth >= _MAX_DEPTH:
                continue
            if name == "include.path" or self._holds(name[len("includeif.") : -len(".path")], os.path.dirname(path)):
                self.read(_expand(value, os.path.dirname(path)), depth + 1)

    def _holds(self, condition: str, folder: str) -> bool:
        kind, _, glob = condition.partition(":")
        if glob.endswith("/"):
            glob += "**"
        match kind:
            case "gitdir" | "gitdir/i":
                glob = f"{folder}/{glob[2:]}" if glob.startswith("./") else os.path.expanduser(glob)
                glob = glob if glob.startswith("/") else f"**/{glob}"
                return _matches(glob, self.checkout.git_dir, ignore_case=kind == "gitdir/i")
            case "onbranch":
                branch = read_line(f"{self.checkout.git_dir}/HEAD").removeprefix("ref: refs/heads/")
                return _matches(glob, branch)
            case "hasconfig":
                key, _, glob = glob.partition(":")
                pairs = self.checkout.settings.items()
                urls = [
                    url for name, urls in pairs if re.fullmatch(r"remote\..*\.url", name, re.DOTALL) for url in urls
                ]
                return key == "remote.*.url" and any(
                    _matches(glob.replace("//", "/"), u.replace("//", "/")) for u in urls
                )
            case _:
                return False


def _matches(glob: str, text: str, *, ignore_case: bool = False) -> bool:
    try:
        rules = Rules(["/" + glob.removeprefix("/")], strict=True, ignore_case=ignore_case)
    except ValueError:
        return False
    text = text.strip("/")
    return rules.match(text, text.rpartition("/")[2], False) is True


@lru_cache(16)  # many repositories below one root may include the same file
def parse_settings(text: str) -> list[tuple[str, str]]:
    """`section.key` and `section.Subsection.key` with their values, as far as the text can be read."""
    found: list[tuple[str, str]] = []
    section, at = "", 1 if text.startswith("\ufeff") else 0
    while at < len(text):
        char = text[at]
        if char.isspace():
            at += 1
        elif char in "#;":
            at = text.find("\n", at) + 1 or len(text)
        elif header := _SECTION.match(text, at):
            section = header[1].lower()
            if header[2] is not None:
                section += "." + re.sub(r"\\(.)", r"\1", header[2])
            at = header.end()
        elif (key := _KEY.match(text, at)) and section:
            value, at = _read_value(text, key.end()) if key[2] else ("true", key.end())
            found.append((f"{section}.{key[1].lower()}", value))
        else:
            break  # git reads no further either
    return found


def _read_value(text: str, at: int) -> tuple[str, int]:
    pieces: list[str] = []
    quoted, kept = False, 0  # the blanks at the end are dropped, but not those in quotes
    while at < len(text):
        char = text[at]
        at += 1
        if char == "\n":
            break
        if char == "\\":
            escaped = text[at : at + 1]
            at += 1
            if escaped != "\n":
                pieces.append(_ESCAPES.get(escaped, escaped))
                kept = len(pieces)
        elif char == '"':
            quoted = not quoted
            kept = len(pieces)
        elif char in "#;" and not quoted:
            at = text.find("\n", at) + 1 or len(text)
            break
        else:
            pieces.append(char)
            if quoted or not char.isspace():
                kept = len(pieces)
    return "".join(pieces[:kept]), at


# -- the index -----------------------------------------------------------------------------------------

_HEAD = Struct(">4sII")
_STAT = Struct(">4I8xI8xI")  # ctime and mtime with their nanoseconds, mode, size
_MAX_GROWTH = 8  # how much longer the paths of version 4, each told by the one before, may be than what tells them


def _parse_index(raw: bytes, hash_size: int) -> tuple[_Entries, bytes]:
    """Its entries, and of a split index the link to the other part."""
    mark, version, count = _HEAD.unpack_from(raw)
    if mark != b"DIRC" or not 2 <= version <= 4:
        raise GitError("git's index is of a format that is not known" if mark == b"DIRC" else "git's index is damaged")
    entries: _Entries = []
    at, end, path = 12, len(raw) - hash_size, b""
    left = len(raw) * _MAX_GROWTH
    behind = 40 + hash_size  # where the flags stand
    for _ in range(count):
        *times, mode, size = _STAT.unpack_from(raw, at)
        (flags,) = unpack_from(">H", raw, at + behind)
        name = at + behind + 2
        more = 0
        if flags & 0x4000:
            (more,) = unpack_from(">H", raw, name)
            name += 2
        if version == 4:
            strip, name = _read_number(raw, name)
            if strip > len(path):
                raise ValueError
            stop = raw.index(b"\0", name, end)
            path = path[: len(path) - strip] + raw[name:stop]
            following = stop + 1
            left -= len(path)
            if left < 0:
                raise ValueError
        else:
            stop = raw.index(b"\0", name, end)
            path = raw[name:stop]
            following = at + (stop - at) // 8 * 8 + 8
        found = Tracked(
            mode & 0o170000,
            raw[at + 40 : at + behind],
            size,
            times[2] * 1_000_000_000 + times[3],
            times[0] * 1_000_000_000 + times[1],
            bool(more & 0x4000),
        )
        entries.append((path, found))
        at = following
    link = b""
    while at + 8 <= end:
        kind, size = unpack_from(">4sI", raw, at)
        if kind == b"link" and any(raw[at + 8 : at + 8 + hash_size]):
            link = raw[at + 8 : at + 8 + size]
        at += 8 + size
    if at != end:
        raise ValueError
    return entries, link


def _read_number(raw: bytes, at: int) -> tuple[int, int]:
    """As the names of version 4 have it: each further byte also adds one."""
    value = raw[at] & 0x7F
    while raw[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (raw[at] & 0x7F)
        if value >> 40:
            raise ValueError
    return value, at + 1


def _read_bits(body: bytes, at: int, most: int) -> tuple[list[int], int]:
    """Which bits of a compressed bitmap (EWAH), of at most so many, are set, and where it ends."""
    if at == len(body):
        return [], at
    size, count = unpack_from(">II", body, at)
    if size > most:
        raise ValueError
    words = unpack_from(f">{count}Q", body, at + 8)
    bits: list[int] = []
    position = index = 0
    while index < count:
        run = words[index]
        same, literal = run >> 1 & 0xFFFFFFFF, run >> 33
        if run & 1:
            if position + same * 64 > size + 64:
                raise ValueError
            bits.extend(range(position, position + same * 64))
        position += same * 64
        for word in words[index + 1 : index + 1 + literal]:
            bits.extend(position + bit for bit in range(64) if word >> bit & 1)
            position += 64
        index += 1 + literal
    return [bit for bit in bits if bit < size], at + 8 + 8 * count + 4
