"""What a map is made of: directories, files or definitions, each with its size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from cq.model.edge import Candidate
from cq.model.errors import UsageError
from cq.snapshot.relations import Relations
from cq.snapshot.rows import find_files
from cq.source.files import PathFilter

if TYPE_CHECKING:
    from cq.snapshot.snapshot import Snapshot


class Module(msgspec.Struct):
    name: str  # its path, or `path:Name` of a definition
    kind: str  # directory file, or that of the definition
    path: str
    line: int = 1
    files: int = 1
    lines: int = 0
    symbols: int = 0
    inside: int = 0  # links that do not leave it


class Modules:
    """By name; `paths` are the files that are mapped, with the module of each unless definitions are."""

    def __init__(self, by: str, relations: Relations) -> None:
        self.by_name: dict[str, Module] = {}
        self.paths: dict[str, str] = {}
        self._by, self._relations = by, relations

    def find(self, place: Candidate) -> Module | None:
        """The module that a definition is in; None for one that is not mapped."""
        home = self.paths.get(place.path)
        if home is None:
            return None
        if self._by != "definition":
            return self.by_name[home]
        first = place.name.partition(".")[0]
        name = f"{place.path}:{first}"
        if first and name not in self.by_name:
            return self.by_name.get(f"{place.path}:{first.partition('#')[0]}") or self.by_name.get(place.path)
        return self.by_name.get(name if first else place.path)


def find_modules(
    snapshot: Snapshot, inside: Sequence[str], include: Sequence[str], exclude: Sequence[str], by: str
) -> Modules:
    relations = snapshot.relations
    modules = Modules(by, relations)
    is_wanted = PathFilter(include, exclude, inside)
    base = inside[0].strip("/") if len(inside) == 1 and inside[0] not in (".", "") else ""
    linked = set(relations.paths())
    for file in find_files(snapshot.reader, snapshot.tree):
        if not is_wanted(file.path) or (not file.counts.get("symbols") and file.path not in linked):
            continue
        if by == "definition":
            modules.paths[file.path] = file.path
            if file.path in linked:
                _add_definitions(modules.by_name, relations, file.path, file.lines)
            continue
        name = file.path if by == "file" else _name_directory(file.path, base)
        modules.paths[file.path] = name
        kind = "file" if name == file.path else "directory"
        module = modules.by_name.setdefault(name, Module(name, kind, name, files=0))
        module.files += 1
        module.lines += file.lines
        module.symbols += file.counts.get("symbols", 0)
    if not modules.by_name and inside and not any(is_wanted(path) for path in linked):
        raise UsageError(f"--in {' '.join(inside)} holds no code that is indexed", hint="`cq map` shows what there is")
    return modules


def _name_directory(path: str, base: str) -> str:
    """What lies in the directory that is mapped."""
    rest = path[len(base) + 1 :] if base and path.startswith(f"{base}/") else path
    first = rest.partition("/")[0]
    return f"{base}/{first}" if rest is not path else first


def _add_definitions(found: dict[str, Module], relations: Relations, path: str, lines: int) -> None:
    """Those at the root of a file, and the file itself for the rest of its code."""
    held = relations.hold(path)
    if held is None:
        return
    rest = Module(path, "file", path, 1, 1, lines)
    for document, symbols in enumerate(held.symbols):
        for number, name in sorted(relations.documents.names(path, document).items()):
            symbol = symbols[number] if number >= 0 else None
            if symbol is None or not name or "." in name:
                continue
            size = held.lines.line(max(symbol.end - 1, symbol.start)) - held.lines.line(symbol.start) + 1
            within = sum(symbol.start <= each.start < symbol.end for each in symbols)
            line = held.lines.line(symbol.name_start)
            found[f"{path}:{name}"] = Module(f"{path}:{name}", symbol.kind, path, line, 1, size, within)
            rest.lines -= size
    rest.lines = max(rest.lines, 0)
    found[path] = rest
