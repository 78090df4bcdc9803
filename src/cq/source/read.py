"""Bytes of one file → its UTF-8 text, or the reason why it is not read as source."""

# Names here may be no UTF-8, and a Path per file costs more than the read.
# ruff: noqa: PTH100, PTH114, PTH118

from __future__ import annotations

import codecs
import errno
import os
import re
import unicodedata
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import xxhash

from cq.language import describe
from cq.model.errors import SourceError
from cq.model.source import Problem, Skip, SourceFile
from cq.opening import NotRegularError, open_regular
from cq.source.language import detect_language

MAX_BYTES = 2 * 1024 * 1024


class Entry(Protocol):
    """A listed file: the path people see, and the one that opens it."""

    @property
    def path(self) -> str: ...
    @property
    def os_path(self) -> str: ...


def read_source(root: Path, entry_or_path: Entry | str | Path, *, max_bytes: int = MAX_BYTES) -> SourceFile | Skip:
    """One file below `root`, decoded. A path is relative to the root, or absolute inside it; SourceError if neither."""
    if isinstance(entry_or_path, (str, Path)):
        os_path = _relative(root, os.fspath(entry_or_path))
        path = show_path(os_path)
    else:
        path, os_path = entry_or_path.path, entry_or_path.os_path
    raw = read_bytes(os.fspath(root), os_path, max_bytes)
    if isinstance(raw, Skip):
        return Skip(path, "unreadable" if raw.reason == "missing" else raw.reason, raw.detail)
    return decode(raw, path)


def decode(raw: bytes, path: str, language: str | None = None) -> SourceFile | Skip:
    """Pure and total. UTF-8 passes through as the same object; everything else is turned into it."""
    language = language or detect_language(path, raw[:8192])
    decoded = _decode_marked(raw) or _decode_plain(raw, language)
    if decoded is None:
        return Skip(path, "binary", "it holds NUL or control bytes")
    text, encoding, problems = decoded
    if why := _why_generated(text, path, language):
        return Skip(path, "generated", why)
    if why := _why_minified(text, path, language):
        return Skip(path, "minified", why)
    return SourceFile(path, language, text, encoding, problems)


def content_hash(text: bytes) -> str:
    return xxhash.xxh3_128_hexdigest(text)


def show_path(os_path: str) -> str:
    """A path as the system spells it → the path people see: NFC, with `\\xNN` for bytes that are not UTF-8."""
    if os_path.isascii():
        return os_path
    return unicodedata.normalize("NFC", os.fsencode(os_path).decode("utf-8", "backslashreplace"))


def real_path(path: str | Path, *, strict: bool = False) -> str:
    """Without links, and with `/` between its parts on every system; all of them open it."""
    found = os.path.realpath(path, strict=strict)
    return found if os.sep == "/" else found.replace(os.sep, "/")


def read_bytes(base: str, os_path: str, max_bytes: int) -> bytes | Skip:
    """A regular file below the directory `base`, no link followed on the way; `missing` is among the skips."""
    if os_path.startswith("/") or (".." in os_path and ".." in os_path.split("/")):
        return Skip(os_path, "outside", "it lies outside the root")
    try:
        file = _open_below(base, os_path)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EMLINK, errno.ENOTDIR):
            parts = os_path.split("/")
            for count in range(1, len(parts) + 1):
                prefix = "/".join(parts[:count])
                if os.path.islink(f"{base}/{prefix}"):
                    return Skip(os_path, *classify_link(base, prefix))
        if isinstance(error, NotRegularError):
            return Skip(os_path, "special", "not a regular file")
        return Skip(os_path, "missing" if is_missing(error) else "unreadable", describe_error(error))
    try:
        status = os.fstat(file)
        # It may grow while it is read: never more than one byte over the limit is taken in.
        pieces: list[bytes] = []
        left = max_bytes + 1
        if status.st_size < left:
            while left > 0 and (piece := os.read(file, min(left, status.st_size + 1))):
                pieces.append(piece)
                left -= len(piece)
        if status.st_size > max_bytes or left <= 0:
            return Skip(os_path, "too_large", f"{max(status.st_size, max_bytes + 1)} bytes, over {max_bytes}")
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
    except OSError as error:
        return Skip(os_path, "unreadable", describe_error(error))
    finally:
        os.close(file)


def classify_link(base: str, os_path: str) -> tuple[str, str]:
    """Where a link below `base` leads: a reason for a Skip, and its detail."""
    base = real_path(base).rstrip("/")
    try:
        target = real_path(f"{base}/{os_path}", strict=True)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return "link_loop", "it leads to itself"
        return ("link_broken", "its target is missing") if is_missing(error) else ("unreadable", describe_error(error))
    if target != base and not target.startswith(base + "/"):
        return "link_out", "its target lies outside the root"
    if f"{base}/{os_path}".startswith(target + "/"):
        return "link_loop", "it leads to a directory it lies in"
    return "link", f"the same as {show_path(target[len(base) + 1 :])}"


def is_missing(error: OSError) -> bool:
    return error.errno in (errno.ENOENT, errno.ENOTDIR)


def describe_error(error: OSError) -> str:
    return (error.strerror or "cannot be read").lower()


def _relative(root: Path, path: str) -> str:
    top = os.path.abspath(root)
    relative = os.path.relpath(os.path.join(top, path), top).replace(os.sep, "/")
    if relative == ".." or relative.startswith("../"):
        real = os.path.realpath(root)
        relative = os.path.relpath(os.path.join(real, path), real).replace(os.sep, "/")
        if relative == ".." or relative.startswith("../"):
            raise SourceError(f"{path} lies outside the root", hint="give a path below the root")
    return relative


def _flags(*names: str) -> int:
    return sum(getattr(os, name, 0) for name in names)  # not every system has them all


_STEP = os.O_RDONLY | _flags("O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC")
_CAN_STEP = os.open in os.supports_dir_fd


def _open_below(base: str, os_path: str) -> int:
    # O_NOFOLLOW guards the last name only. One step per directory leaves no moment in which
    # a directory swapped for a link could lead us out.
    *above, name = os_path.split("/")
    if not _CAN_STEP:
        here = os.path.join(base, *above)
        leads_astray = above and real_path(here) != "/".join((_real_base(base), *above))
        if leads_astray or os.path.islink(os.path.join(here, name)):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        return open_regular(os.path.join(here, name), follow=False)
    directory = os.open(base or "/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        for step in above:
            below = os.open(step, _STEP, dir_fd=directory)
            os.close(directory)
            directory = below
        return open_regular(name, dir_fd=directory, follow=False)
    finally:
        os.close(directory)


@lru_cache(4)
def _real_base(base: str) -> str:
    return real_path(base).rstrip("/")


_Decoded = tuple[bytes, str, tuple[Problem, ...]]

_MARKS = (  # the mark of UTF-32 begins like that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\x1b")) + b"\x7f"
_COOKIE = re.compile(rb"[ \t\f]*#[^\n]*?coding[:=][ \t]*([-\w.]+)")
_BLANK = re.compile(rb"[ \t\f]*(?:#[^\n]*)?\r?\n")
# Text encodings by name only: no one writes source in them, and some take quadratic time.
_REFUSED_CODECS = frozenset({"idna", "punycode", "undefined", "unicode_escape", "unicode-escape", "raw_unicode_escape",
                             "raw-unicode-escape"})  # fmt: skip


def find_codec(name: str) -> str:
    """What Python calls an encoding that a repository names; "" for one that is not known or not for text."""
    try:
        codec = codecs.lookup(name).name
    except (LookupError, ValueError, ImportError):
        return ""
    return "" if codec in _REFUSED_CODECS else codec


def _decode_marked(raw: bytes) -> _Decoded | None:
    if raw.startswith(codecs.BOM_UTF8):
        text = raw[3:]
        try:
            text.decode()
        except UnicodeDecodeError as error:
            problem = Problem("encoding", "a UTF-8 mark, but not UTF-8; bad bytes are replaced", error.start, error.end)
            text = text.decode("utf-8", "replace").encode()
            return None if b"\0" in text else (text, "utf-8-sig", (problem,))
        return None if b"\0" in text else (text, "utf-8-sig", ())
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            decoded = _decode_as(raw[len(mark) :], encoding)
            if decoded is not None and b"\0" not in decoded[0]:
                return decoded
    return None


def _decode_as(raw: bytes, encoding: str) -> _Decoded | None:
    """With bad sequences replaced and said; None when the codec is not one."""
    try:
        return raw.decode(encoding).encode(), encoding, ()
    except UnicodeEncodeError:  # a codec that yields lone surrogates
        text = raw.decode(encoding).encode("utf-8", "replace")
        return text, encoding, (Problem("encoding", f"{encoding} gives code points that are no characters"),)
    except UnicodeDecodeError as error:
        at = len(raw[: error.start].decode(encoding, "replace").encode("utf-8", "replace"))
        problem = Problem("encoding", f"not all of it is {encoding}; what is not is replaced", at, at + 3)
        return raw.decode(encoding, "replace").encode("utf-8", "replace"), encoding, (problem,)
    except (LookupError, ValueError):
        return None


def _decode_plain(raw: bytes, language: str) -> _Decoded | None:
    """None: binary."""
    if b"\0" in raw:
        return _decode_unmarked_utf16(raw)
    problems: tuple[Problem, ...] = ()
    if describe(language).declares_encoding and b"coding" in raw[:1024]:
        declared = _decode_declared(raw)
        if isinstance(declared, Problem):
            problems = (declared,)
        elif declared:
            return declared
    if raw.isascii():
        # A file of control bytes alone is ASCII by the letter.
        return None if _is_mostly_control(raw) else (raw, "utf-8", problems)
    try:
        raw.decode()
        return raw, "utf-8", problems
    except UnicodeDecodeError as error:
        start = error.start
    if _is_mostly_control(raw):
        return None
    if (mixed := _decode_mixed(raw)) is not None:
        return mixed[0], "utf-8", (*problems, mixed[1])
    try:
        encoding = "cp1252"
        text = raw.decode(encoding)
    except UnicodeDecodeError:
        encoding = "latin-1"
        text = raw.decode(encoding)
    # One byte is one character in both, so the first bad byte is the character of the same number.
    at, end = len(text[:start].encode()), len(text[: start + 1].encode())
    return text.encode(), encoding, (*problems, Problem("encoding", f"not UTF-8; read as {encoding}", at, end))


_BAD_BYTE = re.compile("[\udc80-\udcff]")


def _decode_mixed(raw: bytes) -> tuple[bytes, Problem] | None:
    """UTF-8 with a few bytes of something else, as careless merges make it: the rest must not suffer for them."""
    text = raw.decode("utf-8", "surrogateescape")
    bad = len(_BAD_BYTE.findall(text))
    good = len(text) - bad - sum(map(str.isascii, text))
    if good < bad:
        return None
    first = _BAD_BYTE.search(text)
    at = len(text[: first.start()].encode()) if first else 0
    repaired = _BAD_BYTE.sub(lambda found: chr(ord(found[0]) - 0xDC00), text)
    message = f"{bad} bytes are not UTF-8; read as latin-1"
    return repaired.encode(), Problem("encoding", message, at, at + 2)


def _decode_unmarked_utf16(raw: bytes) -> _Decoded | None:
    if len(raw) < 4 or len(raw) % 2:
        return None
    for zeros, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        # Source is mostly ASCII: one byte of a pair is zero, the other one never.
        if raw[zeros::2].count(0) * 10 >= len(raw) * 3 and 0 not in raw[1 - zeros :: 2]:
            try:
                text = raw.decode(encoding).encode()
            except UnicodeDecodeError:
                return None
            return text, encoding, (Problem("encoding", f"no byte-order mark; read as {encoding}"),)
    return None


def _decode_declared(raw: bytes) -> _Decoded | Problem | None:
    """PEP 263: a comment of the first or second line names the encoding. None: none is named, or it is UTF-8."""
    first = _COOKIE.match(raw)
    blank = None if first else _BLANK.match(raw)
    match = first or (_COOKIE.match(raw, blank.end()) if blank else None)
    if not match:
        return None
    name = match[1].decode("ascii").lower()
    codec = find_codec(name)
    if codec in ("utf-8", "utf-8-sig"):
        return None
    where = match.span(1)
    if codec:
        decoded = _decode_as(raw, codec)
        # A codec that loses its own declaration (UTF-16 over ASCII) is not the one the file is written in.
        if decoded and not decoded[2] and match[1] in decoded[0][: 3 * match.end()]:
            text = raw if decoded[0] == raw else decoded[0]
            return text, codec, ()
        if decoded:
            return Problem("encoding", f"declared {name}, but it is not", *where)
    return Problem("encoding", f"the declared encoding {name} is not known", *where)


def _is_mostly_control(raw: bytes) -> bool:
    return (len(raw) - len(raw.translate(None, _CONTROLS))) * 30 > len(raw)


_LOCK_FILES = frozenset({
    "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "deno.lock", "Cargo.lock",
    "poetry.lock", "uv.lock", "pdm.lock", "pixi.lock", "Pipfile.lock", "composer.lock", "Gemfile.lock",
    "Podfile.lock", "mix.lock", "pubspec.lock", "flake.lock", "go.sum", "gradle.lockfile", "packages.lock.json",
    "Package.resolved",
})  # fmt: skip
_QUOTED = re.compile(rb'"[^"\n]*"|`[^`\n]*`')
_GENERATED_LINE = re.compile(
    rb"^[\s/*#;%!<-]*(?:(?:this (?:file|code) (?:is|was) )?(?:automatically |auto-?)?@generated\b"
    rb"|auto-?generated[ \t]*/?>|code generated [^\n]*do not edit\.?[ \t\r]*(?:\*/|-->)?[ \t\r]*$)",
    re.IGNORECASE | re.MULTILINE,
)
_NOT_BY_HAND = re.compile(rb"do not (?:hand-?)?(?:edit|modify)|don't edit|not be edited", re.IGNORECASE)
_BY_MACHINE = re.compile(
    rb"generated (?:by|from|with|using|file|code)|auto-?generated|automatically generated", re.IGNORECASE
)


def _why_generated(text: bytes, path: str, language: str) -> str:
    name = path.rpartition("/")[2]
    if name in _LOCK_FILES:
        return "a lock file"
    if name.endswith((".js.map", ".css.map", ".mjs.map", ".cjs.map", ".d.ts.map")):
        return "a source map"
    head = text[:1024]
    lower = head.lower()
    if b"generated" not in lower:
        return ""
    comment = _QUOTED.sub(b"", _leading_comment(head, language))
    if _GENERATED_LINE.search(comment) or (_NOT_BY_HAND.search(comment) and _BY_MACHINE.search(comment)):
        return "its header says so"
    return ""


def _leading_comment(head: bytes, language: str) -> bytes:
    """The comment lines before the first line of code: a marker further down is only a mention."""
    described = describe(language)
    leaders = tuple(word.encode() for word in described.line_comments)
    blocks = [(start.encode(), close.encode()) for start, close in described.block_comments]
    kept: list[bytes] = []
    until = b""
    for line in head.split(b"\n"):
        bare = line.strip()
        if until:
            kept.append(line)
            until = b"" if until in bare else until
            continue
        opened = next((close for start, close in blocks if bare.startswith(start)), b"")
        if opened:
            kept.append(line)
            until = b"" if opened in bare[2:] else opened
        elif bare.startswith(leaders):
            kept.append(line)
        elif bare and not bare.startswith((b"<?", b"<!", b"#", b"'use ", b'"use ', b"package ", b"---")):
            break
    return b"\n".join(kept)


_MINIFIED_NAME = re.compile(r"[.-]min\.(?:js|mjs|cjs|css|html)$", re.IGNORECASE)


def _why_minified(text: bytes, path: str, language: str) -> str:
    if _MINIFIED_NAME.search(path):
        return "its name says so"
    if len(text) < 5000:
        return ""
    if describe(language).is_minified:
        average = len(text) // (text.count(b"\n") + 1)
        lines = [line for line in text.split(b"\n") if len(line) > 1000]
        share = sum(map(len, lines)) * 2
        longest = max(map(len, lines), default=0)
        if average > 300 or (longest > 5000 and share > len(text)):
            # A picture or a font in one long string is not minified code: code has brackets and semicolons.
            sample = text[:20000] if average > 300 else max(lines, key=len)[:20000]
            if (len(sample) - len(sample.translate(None, b"(){};"))) * 50 > len(sample):
                return f"lines of {max(longest, average)} bytes"
    bound = 256 * 1024 if describe(language).has_long_lines else 64 * 1024
    if len(text) > bound:
        longest = max(map(len, text.split(b"\n")))
        if longest > bound and longest * 2 > len(text):
            return f"a line of {longest} bytes"
    return ""
