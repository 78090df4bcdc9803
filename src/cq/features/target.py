"""TARGET, the same everywhere: `path:line[:col]`, `path:Name`, `Name`, `Class.method`, `pkg.mod.Name` or
`symbol = A > b`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from cq.model.answer import SCHEMA_VERSION, Answer, Run
from cq.model.errors import UsageError
from cq.model.facts import Symbol
from cq.model.status import Degraded

if TYPE_CHECKING:
    from cq.features.files import Files, HeldFile
    from cq.model.location import Location

_PLACE = re.compile(r"(?P<path>.+?):(?P<line>\d+)(?::(?P<col>\d+))?\Z")
_NAMED = re.compile(r"(?P<path>[^:]+):(?P<name>[^:].*)\Z", re.DOTALL)
_SYMBOL = re.compile(r"symbol\s*=\s*(?P<chain>.+)\Z", re.DOTALL)
_VALUES = frozenset({"parameter", "type_parameter", "variable", "constant", "field", "property", "key", "enum_member"})
ROLE_ORDER = {"src": 0, "lib": 1, "generated": 2, "test": 3, "doc": 4}


class Definition(msgspec.Struct, frozen=True):
    """A symbol where it stands: file, document in the file, number in the document."""

    file: HeldFile
    document: int
    number: int

    @property
    def symbol(self) -> Symbol:
        return self.file.symbols[self.document][self.number]

    @property
    def key(self) -> tuple[str, int, int]:
        return self.file.path, self.document, self.number

    @property
    def location(self) -> Location:
        return self.file.locate(self.symbol.name_start, self.symbol.name_end)

    @property
    def parent(self) -> Symbol | None:
        symbol = self.symbol
        return self.file.symbols[self.document][symbol.parent] if symbol.parent >= 0 else None

    @property
    def order(self) -> tuple[int, bool, int, str, int]:
        """What people mean most likely first: sources before tests, code before values, outer before inner."""
        symbol = self.symbol
        return (
            ROLE_ORDER.get(self.file.role, 2), symbol.kind in _VALUES, symbol.depth, self.file.path, symbol.name_start,
        )  # fmt: skip

    def is_called(self, dotted: str) -> bool:
        """Whether `a.b.c` names it: by the end of its qualified name behind the module's."""
        full = f"{module_name(self.file.path)}.{self.symbol.qualified_name}"
        return f".{full}".endswith(f".{dotted}")


def find_targets(files: Files, text: str) -> list[Definition]:
    """Best first; nothing found is an empty list, what cannot be read is a UsageError."""
    text = text.strip()
    if not text:
        raise UsageError("the target is empty", hint="give Name, Class.method, path:Name or path:line[:col]")
    if found := _SYMBOL.match(text):
        return _find_chain(files, [part.strip() for part in found["chain"].split(">")], text)
    if (found := _PLACE.match(text)) and "::" not in text:
        return _find_at(files, found["path"], int(found["line"]), int(found["col"] or 0))
    if (found := _NAMED.match(text)) is not None:
        path, name = found["path"], found["name"].replace("::", ".")
        held = files.get(path)
        if held is None:
            raise UsageError(f"{path} is not indexed", hint="paths are named from the root, e.g. src/app.py:main")
        return sorted((d for d in _find_dotted(files, name) if d.file.path == held.path), key=lambda d: d.order)
    return _find_dotted(files, text.replace("::", "."))


def find_point(files: Files, text: str) -> tuple[HeldFile, int] | None:
    """The byte that `path:line:col` names, where a name stands; None for every other TARGET."""
    found = _PLACE.match(text.strip())
    held = files.get(found["path"]) if found and found["col"] else None
    if found is None or held is None or not 1 <= int(found["line"]) <= len(held.lines):
        return None
    offset = held.lines.offset(int(found["line"]), int(found["col"]))
    return (held, offset) if held.text[offset : offset + 1].isalnum() or held.text[offset] in b"_$" else None


def find_part(paths: Sequence[str], text: str) -> list[str]:
    """The files that a path, a directory or the dotted name of a module or package means; none where it is no such."""
    name = text.rstrip("/") or "."
    if name == ".":
        return list(paths)
    found = [path for path in paths if path == name or path.startswith(name + "/")]
    return found or [path for path in paths if module_name(path) == name or module_name(path).startswith(name + ".")]


def last_name(target: str) -> str:
    """The name a TARGET ends with."""
    return target.replace("::", ".").replace(">", ".").rpartition(".")[2].rpartition(":")[2].strip()


def say_nothing(files: Files, command: str, target: str, message: str = "") -> Answer:
    """No definition fits: near names are suggested."""
    name = last_name(target)
    event = Degraded(command, "info", "no_target", message or f"nothing is named {target!r} here", target)
    near = tuple(other for other in files.near_names(name) if other != name)
    run = Run(generation=files.generation)
    return Answer(SCHEMA_VERSION, command, run, {"query": target}, degraded=(event,), suggestions=near)


def _find_dotted(files: Files, dotted: str) -> list[Definition]:
    name = dotted.rpartition(".")[2]
    rows = [Definition(*row) for row in files.definitions(name)]
    return sorted((row for row in rows if "." not in dotted or row.is_called(dotted)), key=lambda d: d.order)


def _find_chain(files: Files, parts: list[str], text: str) -> list[Definition]:
    """`symbol = [path >] [Parent >] name`"""
    if not all(parts):
        raise UsageError(f"{text!r} has an empty part", hint="e.g. symbol = TokenService > validateToken")
    path = parts.pop(0) if len(parts) > 1 and ("/" in parts[0] or files.get(parts[0])) else ""
    dotted = ".".join(parts)
    return [row for row in _find_dotted(files, dotted) if not path or row.file.path.startswith(path)]


def _find_at(files: Files, path: str, line: int, col: int) -> list[Definition]:
    """The definition whose name stands there, else the innermost around it."""
    held = files.get(path)
    if held is None:
        raise UsageError(f"{path} is not indexed", hint="paths are named from the root")
    table = held.lines
    lines = len(table) - held.text.endswith(b"\n")
    if not 1 <= line <= lines:
        raise UsageError(f"{path} has no line {line}", hint=f"it has {lines}")
    first = table.offset(line, col or 1)
    last = first + 1 if col else (table.starts[line] if line < len(table) else len(held.text))
    named: list[Definition] = []
    around: list[Definition] = []
    for document, symbols in enumerate(held.symbols):
        for number, symbol in enumerate(symbols):
            row = Definition(held, document, number)
            if first <= symbol.name_start < last or symbol.name_start <= first < symbol.name_end:
                named.append(row)
            elif symbol.body_start >= 0 and symbol.start <= first < symbol.end:
                around.append(row)
    named = [row for row in named if row.symbol.kind not in ("parameter", "type_parameter")] or named
    return named[:1] or around[-1:]


def module_name(path: str) -> str:
    """`src/app/db/__init__.py` is `app.db`."""
    stem = re.sub(r"\.(?:pyi?|rs|[cm]?[jt]sx?)$", "", path.removeprefix("src/"))
    return re.sub(r"/(?:__init__|mod|index|lib)$", "", stem).replace("/", ".")
