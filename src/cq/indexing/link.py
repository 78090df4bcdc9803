"""Links the code of a tree: all of it, or what a change can reach. Both give the same rows."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from sys import intern

from msgspec.structs import force_setattr

from cq.graph.corpus import MAX_DOCUMENTS, Corpus, WholeCorpus
from cq.graph.link import Linker
from cq.graph.links import find_targets, make_links
from cq.graph.parts import find_parts
from cq.graph.resolve import Resolver
from cq.graph.unit import Unit
from cq.model.code import Code
from cq.model.edge import Links
from cq.store.read import Reader
from cq.store.write import LinkRow, Writer

MAX_AFFECTED = 400  # files that are linked one by one; with more, all are
MAX_EMBEDDED = 255  # documents of one file
# Files that decide how modules are named, whatever their text.
_PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg", "tsconfig.json", "package.json", "Cargo.toml")


class StoredCorpus:
    """The documents of a tree as they are asked for; see cq.graph.corpus.Corpus."""

    def __init__(self, reader: Reader, tree: int) -> None:
        self._reader, self._tree = reader, tree
        self._units: dict[str, list[Unit]] = {}
        self._named: dict[tuple[str, int], Sequence[Unit] | None] = {}
        self.paths: Iterable[str] = reader.all_paths(tree)

    def units(self, path: str) -> list[Unit]:
        """Of a file and what is embedded in it, those with code."""
        found = self._units.get(path)
        if found is None:
            found = self._units[path] = make_units(path, self._reader.code(self._tree, path))
        return found

    def unit(self, path: str) -> Unit | None:
        return next((unit for unit in self.units(path) if not unit.document), None)

    def calling(self, name: str) -> Sequence[Unit] | None:
        return self._find(name, 0)

    def storing(self, name: str, most: int = MAX_DOCUMENTS) -> Sequence[Unit] | None:
        return self._find(name, 1, most)

    def _find(self, name: str, kind: int, most: int = MAX_DOCUMENTS) -> Sequence[Unit] | None:
        key = (name, kind)
        if key not in self._named:
            paths = self._reader.find_named(self._tree, name, kind, most + 1)
            found = None
            if len(paths) <= most:
                found = [
                    unit
                    for path in paths
                    for unit in self.units(path)
                    if name in (unit.stores_by_name if kind else unit.sites_by_name)
                ]
            self._named[key] = found if found is None or len(found) <= most else None
        return self._named[key]


def make_units(path: str, codes: Sequence[Code | None]) -> list[Unit]:
    return [Unit(path, code, number) for number, code in enumerate(codes[:MAX_EMBEDDED]) if code is not None]


def update_links(reader: Reader, writer: Writer, tree: int, before: dict[str, list[Code | None]] | None) -> None:
    """Inside the transaction that changes the files. `before` is the code that changed files had; None: all is new."""
    corpus = StoredCorpus(reader, tree)
    was_on = gc.isenabled()
    # Cells and values point at one another in the millions, and all die together.
    gc.disable()
    try:
        paths = None if before is None else _find_affected(reader, tree, corpus, before)
        if paths is None:
            writer.drop_all_links(tree)
            paths = [file.path for file in reader.files(tree) if file.counts.get("code")]
            units = {path: _share_names(corpus.units(path)) for path in paths}
            whole = WholeCorpus((unit for known in units.values() for unit in known), corpus.paths)
            writer.put_links(tree, _link(whole, units))
        else:
            writer.put_links(tree, _link(corpus, {path: corpus.units(path) for path in paths}))
    finally:
        if was_on:
            gc.enable()


def _share_names(units: list[Unit]) -> list[Unit]:
    """A repository calls the same few names again and again: each is kept once."""
    for unit in units:
        for site in unit.code.sites:
            force_setattr(site, "kind", intern(site.kind))
            force_setattr(site, "name", intern(site.name))
            if type(site.callee) is str:
                force_setattr(site, "callee", intern(site.callee))
    return units


def is_structural(path: str) -> bool:
    """Whether a file that comes or goes can change what modules are called."""
    return path.rpartition("/")[2] in _PROJECT_FILES


def _find_affected(
    reader: Reader, tree: int, corpus: StoredCorpus, before: dict[str, list[Code | None]]
) -> list[str] | None:
    changed: set[int] = set()
    for path, codes in before.items():
        old, new = make_units(path, codes), corpus.units(path)
        if [unit.document for unit in old] != [unit.document for unit in new]:
            return None
        for was, now in zip(map(find_parts, old), map(find_parts, new), strict=True):
            if path.endswith("Cargo.toml") and was != now:  # paths anywhere may begin with a crate's name
                return None
            changed |= {key for key in was.keys() | now.keys() if was.get(key) != now.get(key)}
    found = {path for path in before if corpus.units(path)}
    for path in reader.find_dependents(tree, changed) if changed else ():
        found.add(path)
        if len(found) > MAX_AFFECTED:
            return None
    return sorted(found)


def _link(corpus: Corpus, files: dict[str, list[Unit]]) -> Iterator[LinkRow]:
    resolver = Resolver(Linker(corpus))
    for units in files.values():
        for unit in units:
            resolver.visit(unit)
    resolver.linker.settle()
    for path, units in files.items():
        links: list[Links | None] = [None] * (units[-1].document + 1)
        targets: dict[int, list[int]] = {}
        keys: set[int] = set()
        for unit in units:
            made = links[unit.document] = make_links(resolver, unit)
            for key, calls in find_targets(made):
                targets.setdefault(key, []).extend(unit.document << 24 | call for call in calls)
            keys |= resolver.linker.find_keys(unit)
        for unit in units:
            keys.difference_update(unit.part_keys.values())
        yield LinkRow(path, links, sorted(keys), sorted(targets.items()))
