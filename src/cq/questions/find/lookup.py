"""`symbol = [path >] [Parent >] name`: exactly that, in its own case; else what is near and where."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

import msgspec

from cq.model.errors import UsageError
from cq.snapshot.target import Definition, rank_twins

if TYPE_CHECKING:
    from cq.snapshot.files import IndexedFiles

_PREFIX = re.compile(r"\s*symbol\s*=\s*(?P<chain>.*)\Z", re.DOTALL | re.IGNORECASE)
_JOINT = re.compile(r"\.|::|#|->|/")
_AROUND = "='\"`() "  # what is written around a name elsewhere: `'f'`, `f()`, `== f`
_MAX_HINTS = 5


class Lookup(msgspec.Struct, frozen=True):
    """What was found; if nothing, why in a sentence, and names or paths that are near."""

    rows: tuple[Definition, ...] = ()
    message: str = ""
    near: tuple[str, ...] = ()


def parse_lookup(query: str) -> list[str] | None:
    """The parts between the `>`, None for a query in words; UsageError for an empty part."""
    found = _PREFIX.match(query)
    if found is None:
        return None
    parts = [part.strip() for part in found["chain"].split(">")]
    if not all(parts):
        raise UsageError(f"{query.strip()!r} has an empty part", hint="e.g. symbol = TokenService > validateToken")
    return parts


def look_up(files: IndexedFiles, parts: list[str]) -> Lookup:
    """Every definition that fits, the likeliest first."""
    found = _look_up(files, parts)
    if found.rows:
        return found
    *holders, last = parts
    names = [part.strip(_AROUND) for part in (*holders, *_JOINT.split(last.strip(_AROUND)))]
    if names != parts and all(names):
        other, chain = _look_up(files, names), " > ".join(names)
        if other.rows:
            return Lookup((), f"no symbol {' > '.join(parts)!r}; write it as `symbol = {chain}`", (chain,))
        found = other
    if len(parts) == 1 and files.get(parts[0]):
        return Lookup((), f"{parts[0]!r} is a file: name what it holds, `symbol = {parts[0]} > name`")
    return found


def _look_up(files: IndexedFiles, parts: list[str]) -> Lookup:
    path = ""
    if len(parts) > 1 and ("/" in parts[0] or re.search(r"\.\w{1,5}\Z", parts[0]) or files.get(parts[0])):
        path, *parts = parts
        if files.get(path) is None:
            near = files.near_paths(path)
            hint = f"similar paths: {', '.join(near)}" if near else ""
            return Lookup((), f"no file {path!r}{'; ' if hint else ''}{hint}", tuple(near))
    *parents, name = parts
    rows = [Definition(*row) for row in files.definitions(name)]
    rows = [row for row in rows if not path or row.file.path == path]
    if found := rank_twins(files, (row for row in rows if _has_parents(row, parents))):
        return Lookup(tuple(found))
    chain = " > ".join(parts)
    where = f" in {path}" if path else ""
    if parents:
        holders = [Definition(*row) for row in files.definitions(parents[-1])]
        holders = [row for row in holders if (not path or row.file.path == path) and _has_parents(row, parents[:-1])]
        if holders:
            place = ", ".join(_place(row) for row in holders[:_MAX_HINTS])
            members = _members(holders)
            close = _find_close(name, members)
            hint = f"; did you mean {', '.join(close)}?" if close else ""
            parent = " > ".join(parents)
            return Lookup((), f"{parent!r} is there ({place}) but holds no {name!r}{hint}", tuple(close))
        near = _near(files, parents[-1])
        other = f"; {name!r} is defined elsewhere: {', '.join(map(_place, rows[:_MAX_HINTS]))}" if rows else ""
        return Lookup(
            (), f"no symbol {parents[-1]!r}{where} that could hold {name!r}{_suggest(near)}{other}", _words(near)
        )
    near = _near(files, name)
    return Lookup((), f"no symbol {chain!r}{where}{_suggest(near)}", _words(near))


def _has_parents(row: Definition, parents: list[str]) -> bool:
    symbols, number = row.file.symbols[row.document], row.symbol.parent
    for name in reversed(parents):
        if number < 0 or symbols[number].name != name:
            return False
        number = symbols[number].parent
    return True


def _near(files: IndexedFiles, name: str) -> list[tuple[str, str]]:
    """(name, where), the same letters in another case first."""
    names = sorted(files.near_names(name), key=lambda other: other.lower() != name.lower())
    found: list[tuple[str, str]] = []
    for other in names:
        if other != name:
            found += [(other, _place(Definition(*row))) for row in files.definitions(other)[:1]]
    return found[:_MAX_HINTS]


def _suggest(near: list[tuple[str, str]]) -> str:
    return f"; did you mean {', '.join(f'{name!r} ({place})' for name, place in near)}?" if near else ""


def _words(near: list[tuple[str, str]]) -> tuple[str, ...]:
    return tuple(name for name, _ in near)


def _find_close(name: str, names: list[str]) -> list[str]:
    same = [other for other in names if other.lower() == name.lower()]
    return list(dict.fromkeys([*same, *get_close_matches(name, names, n=3)]))


def _members(holders: list[Definition]) -> list[str]:
    return sorted(
        {
            symbol.name
            for row in holders
            for symbol in row.file.symbols[row.document]
            if symbol.parent == row.number and symbol.kind not in ("parameter", "type_parameter")
        }
    )


def _place(row: Definition) -> str:
    return f"{row.file.path}:{row.location.start_line}"
