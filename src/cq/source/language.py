"""The language of a file: by its name, then its shebang, then its modeline."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from cq.language import TEXT, all_languages
from cq.model.errors import UsageError, suggest

_SHEBANG = re.compile(rb"#![ \t]*([^\s]+)([^\r\n]*)")
_EMACS = re.compile(rb"-\*-[ \t]*(?:(?:[^\r\n]*?[; \t])?mode:[ \t]*([\w+#-]+)|([\w+#-]+)[ \t]*-\*-)", re.IGNORECASE)
_VIM = re.compile(rb"(?:^|[ \t])(?:vim?|ex):[^\r\n]*?\b(?:ft|filetype|syntax)=([\w+#-]+)", re.MULTILINE)


class _Tables(NamedTuple):
    suffixes: dict[str, str]
    files: dict[str, str]
    lower_files: dict[str, str]
    names: dict[str, str]
    runners: dict[str, str]
    claims: dict[str, list[tuple[str, re.Pattern[bytes]]]]  # by suffix


@cache
def _load() -> _Tables:
    tables = _Tables({}, {}, {}, {}, {}, {})
    for language, each in all_languages().items():
        tables.suffixes.update(dict.fromkeys(each.suffixes, language))
        tables.files.update(dict.fromkeys(each.files, language))
        if language != TEXT:
            tables.lower_files.update((name.lower(), language) for name in each.files)
            tables.names.update(dict.fromkeys((language, *each.names), language))
        tables.runners.update(dict.fromkeys(each.runners, language))
        for claim in each.claims:
            for suffix in claim.suffixes:
                tables.claims.setdefault(suffix, []).append((language, re.compile(claim.pattern.encode())))
    return tables


def detect_language(path: str, head: bytes = b"") -> str:
    """A language id, `text` for prose and for everything unknown. `head` is the file's first bytes, if at hand."""
    head = head[:8192]
    name = path.rpartition("/")[2]
    tables = _load()
    if language := tables.files.get(name):
        return language
    stem, dot, suffix = name.rpartition(".")
    if dot and stem and (language := tables.suffixes.get(suffix) or tables.suffixes.get(suffix.lower())):
        claims = tables.claims.get(suffix, ())
        # A modeline says it as well as the words that only the other language has.
        told = _language_of_modeline(head) if claims else None
        return next((other for other, pattern in claims if other == told or pattern.search(head)), language)
    return tables.lower_files.get(name.lower()) or _language_of_shebang(head) or _language_of_modeline(head) or TEXT


def find_language(name: str) -> str | None:
    """The language people mean by a name (`py`, `TypeScript`, `c++`, `language-js`); None when it is not ours."""
    name, names = name.lower(), _load().names
    return names.get(name) or names.get(name.removeprefix("language-").removeprefix("lang-"))


def _language_of_shebang(head: bytes) -> str | None:
    match = _SHEBANG.match(head)
    if not match:
        return None
    words = [match[1].decode("latin-1"), *match[2].decode("latin-1").split()]
    program = words.pop(0).rpartition("/")[2]
    if program == "env":
        # `env -S A=1 python3 -u` and `env -S uv run --script` are both in use.
        words = [word for word in words if not word.startswith("-") and "=" not in word]
        program = words.pop(0).rpartition("/")[2] if words else ""
    runner = _load().runners.get(f"{program} {words[0]}") if words else None
    return runner or find_language(program) or find_language(program.rstrip("0123456789.-"))


def _language_of_modeline(head: bytes) -> str | None:
    lines = [line[:500] for line in head.split(b"\n", 5)[:5]]
    match = _EMACS.search(b"\n".join(lines[:2]))
    if not match:
        match = _VIM.search(b"\n".join(lines))
        return find_language(match[1].decode()) if match else None
    return find_language((match[1] or match[2]).decode())


def get_language_id(name: str) -> str:
    """The id people mean by a name (`py`, `c++`); UsageError with the nearest one for a name that is none."""
    found = name if name in all_languages() else find_language(name)
    if found is None:
        hint = suggest(name.lower(), all_languages(), "`cq languages` lists them")
        raise UsageError(f"unknown language {name!r}", hint=hint)
    return found
