"""What packages offer to who uses them: by `__all__` and underscores, by `exports` of package.json and barrels, by what
`pub` makes reachable from the root of a crate."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from posixpath import dirname, normpath
from typing import Any, NamedTuple, cast

import msgspec

from cq.graph.scopes import ROOT
from cq.graph.unit import Unit
from cq.language import describe
from cq.model.code import Bind, Caught, Element, Entered, Imported, Iterated, Operated, Value
from cq.model.edge import Candidate
from cq.model.facts import Export
from cq.snapshot.files import HeldFile
from cq.snapshot.relations import Relations
from cq.snapshot.target import Definition, module_name
from cq.source.role import find_role

MAX_STEPS = 12  # modules that a name passes on its way out
_VALUES = ("variable", "constant", "type", "field")


class Offered(NamedTuple):
    """`public` is how users write it; `how` says why it is offered: `__all__`, defined, reexported, exported, pub."""

    public: str
    row: Definition
    how: str


def find_offered(relations: Relations, paths: Collection[str]) -> list[Offered]:
    """Every name that the files of a part offer, the shortest first; one definition may have several names."""
    found: dict[tuple[str, tuple[str, int, int]], Offered] = {}
    finder = _Finder(relations)
    crates: set[str] = set()
    packages: set[str] = set()
    for path in sorted(paths):
        held = relations.hold(path)
        if held is None or not finder.is_source(held):
            continue
        described = describe(held.language)
        offered: Iterator[Offered] = iter(())
        if described.is_host:
            offered = finder.find_python(held)
        elif described.receiver == "self":
            root = finder.find_crate(path)
            if root and root not in crates:
                crates.add(root)
                offered = finder.find_rust(root, finder.name_crate(root), frozenset())
        elif described.has_prototypes is False and "exports" in described.offers:
            package = finder.find_package(path)
            if package not in packages:
                packages.add(package)
                offered = finder.find_script(package)
        for each in offered:
            if each.row.file.path in paths or not paths:
                found.setdefault((each.public, each.row.key), each)
    return sorted(found.values(), key=lambda each: (len(re.split(r"[.:/]+", each.public)), each.public))


class _Finder:
    def __init__(self, relations: Relations) -> None:
        self._relations = relations

    def is_source(self, held: HeldFile) -> bool:
        """Whether it is code that others use, be it called like tests, as jinja2/tests.py is."""
        if held.role != "test":
            return held.role in ("src", "lib")
        users = self._relations.referrers.find_files(Candidate(held.path, 0, ""))
        return any(find_role(user) == "src" for user, _ in users)

    # -- Python --------------------------------------------------------------------------------------

    def find_python(self, held: HeldFile) -> Iterator[Offered]:
        module = module_name(held.path)
        parts = module.split(".")
        if any(part.startswith("_") for part in parts) or parts[-1] in ("conftest", "setup"):
            return
        unit = self._relations.documents.unit(held.path, 0)
        if unit is None:
            return
        public = unit.code.public
        names = _list_bound(unit) if public is None else list(public)
        is_package = held.path.endswith("/__init__.py")
        for name in dict.fromkeys(names):
            binds = unit.scopes[ROOT].get(name, ())
            imported = [bind.value for bind in binds if isinstance(bind.value, Imported)]
            if public is None and (_is_hidden(name) or (imported and not is_package)):
                continue
            row = self._find_row(held, name, Candidate(held.path, 0, name))
            if public is None and imported and (row is None or row.file.path == held.path or not _is_beside(row, held)):
                continue
            if row is not None:
                how = "__all__" if public is not None else "reexported" if imported else "defined"
                yield Offered(f"{module}.{name}", row, how)

    def _find_row(self, held: HeldFile, name: str, place: Candidate) -> Definition | None:
        """The definition that a name of a module means, be it imported from another."""
        for _ in range(MAX_STEPS):
            row = self._find_own(place)
            if row is not None:
                return row
            unit = self._relations.documents.unit(place.path, place.document)
            binds = unit.scopes[ROOT].get(place.name, ()) if unit is not None else ()
            if not any(isinstance(bind.value, Imported) for bind in binds) and binds:
                return None
            ref = self._relations.meanings.find_dotted(place.path, place.document, place.name, len(held.text))
            if ref.resolved is None or ref.resolved == place:
                return None
            place = ref.resolved
        return None

    def _find_own(self, place: Candidate) -> Definition | None:
        found = self._relations.definition(place)
        if found is not None:
            return found
        held = self._relations.hold(place.path)
        symbols = held.symbols[place.document] if held is not None else ()
        for number, symbol in enumerate(symbols):
            if held is not None and symbol.qualified_name == place.name and symbol.parent < 0:
                return Definition(held, place.document, number)
        return None

    # -- TypeScript and JavaScript ---------------------------------------------------------------------

    def find_package(self, path: str) -> str:
        """The nearest package.json around a file; "" for none."""
        folder = dirname(path)
        while True:
            name = f"{folder}/package.json".removeprefix("/")
            if self._relations.hold(name) is not None:
                return name
            if not folder:
                return ""
            folder = dirname(folder)

    def find_script(self, package: str) -> Iterator[Offered]:
        held = self._relations.hold(package) if package else None
        table: Any = {}
        if held is not None:
            try:
                table = msgspec.json.decode(held.text)
            except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
                return
        if not isinstance(table, dict):
            return
        folder = dirname(package)
        name = table.get("name") if isinstance(table.get("name"), str) else ""
        for entry, target in _list_entries(cast("dict[str, Any]", table)):
            path = self._find_entry(folder, target)
            if path:
                label = (name or folder or ".") + entry.removeprefix(".")
                yield from self._find_exported(path, label, frozenset())

    def _find_entry(self, folder: str, target: str) -> str:
        """The source of an entry: the file itself, or what it is built from."""
        path = normpath(f"{folder}/{target}").removeprefix("./").lstrip("/")
        stem = re.sub(r"(?:\.d)?\.[cm]?[jt]sx?$", "", path)
        below = stem.removeprefix(f"{folder}/") if folder else stem
        parts = below.split("/")
        stems = [stem]
        for at, part in enumerate(parts[:-1]):
            if part in ("dist", "lib", "build", "out", "esm", "cjs", "types", "es"):
                rest = "/".join(p for p in parts[at + 1 :] if p not in ("esm", "cjs", "types", "src"))
                stems += [f"{folder}/{base}/{rest}".replace("//", "/").lstrip("/") for base in ("src", "lib", "source")]
                stems.append(f"{folder}/{rest}".lstrip("/"))
        if len(parts) == 1 or parts[0] in ("dist", "lib", "build", "out"):
            stems += [f"{folder}/src/{parts[-1]}".lstrip("/")]
        for each in dict.fromkeys(stems):
            for suffix in (
                ".ts",
                ".tsx",
                ".mts",
                ".cts",
                ".js",
                ".jsx",
                ".mjs",
                ".cjs",
                ".d.ts",
                "/index.ts",
                "/index.js",
            ):
                if self._relations.hold(each + suffix) is not None:
                    return each + suffix
        return ""

    def _find_exported(self, path: str, label: str, seen: frozenset[str]) -> Iterator[Offered]:
        held = self._relations.hold(path)
        if held is None or path in seen or len(seen) > MAX_STEPS:
            return
        for export in held.imports[0][1] if held.imports else ():
            for source in self._find_sources(held, export) if export.module else ():
                if export.name == "*" and export.exported == "*":
                    yield from self._find_exported(source, label, seen | {path})
                elif export.name == "*":
                    yield from self._find_exported(source, f"{label}:{export.exported}", seen | {path})
                else:
                    row = self._find_script_row(source, export.name, seen | {path})
                    if row is not None:
                        yield Offered(f"{label}:{export.exported}", row, "reexported")
            if not export.module:
                row = self._find_script_row(path, export.exported, frozenset())
                if row is not None:
                    how = "exported" if row.file.path == path else "reexported"
                    yield Offered(f"{label}:{export.exported}", row, how)

    def _find_script_row(self, path: str, name: str, seen: frozenset[str]) -> Definition | None:
        """What a module exports under a name."""
        held = self._relations.hold(path)
        if held is None or path in seen or len(seen) > MAX_STEPS:
            return None
        exports = held.imports[0][1] if held.imports else ()
        for export in exports:
            if export.exported != name:
                continue
            if not export.module:
                own = self._find_own(Candidate(path, 0, export.name))
                if own is not None:
                    return own
                if export.name == "default" or name == "default":
                    numbers = [n for n, s in enumerate(held.symbols[0]) if "default" in s.modifiers]
                    return Definition(held, 0, numbers[0]) if numbers else None
                for item in held.imports[0][0]:
                    for binding in item.bindings:
                        if binding.local == export.name and item.module:
                            passed = Export(binding.imported, name, item.start, item.end, item.module)
                            for source in self._find_sources(held, passed):
                                return self._find_script_row(source, binding.imported, seen | {path})
            for source in self._find_sources(held, export) if export.module else ():
                return self._find_script_row(source, export.name, seen | {path})
        for export in exports:
            if export.exported == "*" and export.module:
                for source in self._find_sources(held, export):
                    found = self._find_script_row(source, name, seen | {path})
                    if found is not None:
                        return found
        return None

    def _find_sources(self, held: HeldFile, export: Export) -> list[str]:
        items = [item for item in held.imports[0][0] if item.module == export.module]
        every = self._relations.documents.find_sources(held.path, held.documents[0].language, items[:1])
        return [source.path for sources in every for source in sources or () if source.path]

    # -- Rust ----------------------------------------------------------------------------------------

    def find_crate(self, path: str) -> str:
        """The root of the crate that a file is of: the nearest `lib.rs` beside or above it."""
        folder = dirname(path)
        while True:
            name = f"{folder}/lib.rs".removeprefix("/")
            if self._relations.hold(name) is not None:
                return name
            if not folder:
                return ""
            folder = dirname(folder)

    def name_crate(self, root: str) -> str:
        held = self._relations.hold(normpath(f"{dirname(root)}/../Cargo.toml").removeprefix("../"))
        found = re.search(rb'^\s*name\s*=\s*"([^"]+)"', held.text, re.MULTILINE) if held is not None else None
        return found[1].decode().replace("-", "_") if found else "crate"

    def find_rust(self, path: str, label: str, seen: frozenset[str]) -> Iterator[Offered]:
        """What `pub` makes reachable: items, modules, and what `pub use` takes from elsewhere."""
        held = self._relations.hold(path)
        if held is None or path in seen or len(seen) > MAX_STEPS:
            return
        yield from self._find_inside(held, -1, label, path, seen | {path})
        for local, ref in self._relations.documents.find_imports(path, 0):
            items = [item for item in held.imports[0][0] if item.kind == "reexport"]
            named = any(local in (binding.local for binding in item.bindings) for item in items)
            starred = local == "*" and any(not item.bindings for item in items)
            for place in ref.candidates[:1] if named or starred else ():
                row = self._relations.definition(place)
                if starred and row is not None and row.symbol.kind == "module":
                    yield from self._find_inside(row.file, row.number, label, row.file.path, seen | {path})
                elif starred and not place.name:
                    yield from self.find_rust(place.path, label, seen | {path})
                elif row is not None and row.symbol.kind == "module":
                    yield from self._find_inside(
                        row.file, row.number, f"{label}::{local}", row.file.path, seen | {path}
                    )
                elif row is not None:
                    yield Offered(f"{label}::{local}", row, "reexported")
                elif not place.name:
                    yield from self.find_rust(place.path, f"{label}::{local}", seen | {path})

    def _find_inside(
        self, held: HeldFile, parent: int, label: str, path: str, seen: frozenset[str]
    ) -> Iterator[Offered]:
        for number, symbol in enumerate(held.symbols[0]):
            if symbol.parent != parent or not symbol.exported or symbol.kind in ("field", "enum_member"):
                continue
            if symbol.kind == "module" and symbol.body_start < 0:
                for local, ref in self._relations.documents.find_imports(path, 0):
                    if local == symbol.name and ref.resolved is not None and not ref.resolved.name:
                        yield from self.find_rust(ref.resolved.path, f"{label}::{symbol.name}", seen)
            elif symbol.kind == "module":
                yield from self._find_inside(held, number, f"{label}::{symbol.name}", path, seen)
            else:
                yield Offered(f"{label}::{symbol.name}", Definition(held, 0, number), "pub")


def _is_hidden(name: str) -> bool:
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def _list_bound(unit: Unit) -> list[str]:
    """The names that a module binds for others: not those of loops, and of what runs where a program begins."""
    started = [
        (branch.start, branch.end)
        for branch in unit.code.branches
        if branch.kind == "if" and isinstance(branch.value, Operated) and branch.value.left == "__name__"
    ]

    def is_meant(bind: Bind) -> bool:
        inside = any(start <= bind.start <= end for start, end in started)
        return not inside and not bind.inner and not _is_passing(bind.value)

    return [
        name for name, binds in unit.scopes[ROOT].items() if name not in ("*", "__all__") and any(map(is_meant, binds))
    ]


def _is_passing(value: Value) -> bool:
    """Whether a value is what a loop, a `with` or an `except` binds, or a part of it."""
    while isinstance(value, Element):
        value = value.base
    return isinstance(value, Iterated | Entered | Caught)


def _is_beside(row: Definition, held: HeldFile) -> bool:
    """Whether what a package imports into its own name is from inside of it."""
    return row.file.path.startswith(f"{dirname(held.path)}/")


def _list_entries(table: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(`.` or `./util`, a file), types before code."""
    exports = table.get("exports")
    if isinstance(exports, str | dict):
        tree: dict[str, Any] = exports if isinstance(exports, dict) else {".": exports}
        if not any(str(key).startswith(".") for key in tree):
            tree = {".": tree}
        for entry, value in tree.items():
            targets = list(_list_targets(value, 0))
            for target in targets[:1]:
                if "*" not in target and not target.endswith((".json", ".css")):
                    yield str(entry), target
        return
    for key in ("types", "typings", "module", "main"):
        if isinstance(table.get(key), str):
            yield ".", table[key]
            return
    yield ".", "index.js"


def _list_targets(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict) and depth < 5:
        tree = cast("dict[str, Any]", value)
        for key in sorted(tree, key=lambda each: (each not in ("types", "source"), [*tree].index(each))):
            yield from _list_targets(tree[key], depth + 1)


def order_names(offered: Sequence[Offered]) -> dict[tuple[str, int, int], list[Offered]]:
    """By definition, the names that it is offered under, the shortest first."""
    found: dict[tuple[str, int, int], list[Offered]] = {}
    for each in offered:
        found.setdefault(each.row.key, []).append(each)
    return found
