"""The documents a linker works on: all of them in memory, or only those it asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from cq.graph.unit import Unit
from cq.model.code import Code, NamedKind

MAX_EMBEDDED = 255  # documents of one file that are linked
MAX_DOCUMENTS = 12  # that call or store a name: with more, nobody is asked
MAX_HOLDERS = 60  # of languages with written types: documents that define a name, or have impls of a type or trait


class Corpus(Protocol):
    @property
    def paths(self) -> Iterable[str]:
        """Of all files of the repository, also those without code."""
        ...

    def unit(self, path: str) -> Unit | None:
        """The document that is the file itself."""
        ...

    def calling(self, name: str) -> Sequence[Unit] | None:
        """Documents that call something of that name, by path; None when there are more than MAX_DOCUMENTS."""
        ...

    def storing(self, name: str, most: int = MAX_DOCUMENTS) -> Sequence[Unit] | None:
        """Documents that assign to an attribute of that name."""
        ...

    def entering(self, kind: NamedKind, name: str, most: int = MAX_DOCUMENTS) -> Sequence[Unit] | None:
        """Documents that are found so, as those that have a definition entered so: see NamedKind in cq.model.code."""
        ...


class WholeCorpus:
    """Every document of the repository, in memory."""

    def __init__(self, units: Iterable[Unit], paths: Iterable[str] = ()) -> None:
        self.units = {(unit.path, unit.document): unit for unit in units}
        self.paths = {path for path, _ in self.units} | set(paths)
        self._calling: dict[str, list[Unit]] = {}
        self._storing: dict[str, list[Unit]] = {}
        self._entering: dict[tuple[str, str], list[Unit]] = {}
        for _, unit in sorted(self.units.items()):
            for name in unit.sites_by_name:
                self._calling.setdefault(name, []).append(unit)
            for name in unit.stores_by_name:
                self._storing.setdefault(name, []).append(unit)
            for entry in unit.entries:
                self._entering.setdefault(entry, []).append(unit)
            for name in unit.methods_by_name:
                self._entering.setdefault(("method", name), []).append(unit)
            for name in unit.imported_names:
                self._entering.setdefault(("imported", name), []).append(unit)

    def unit(self, path: str) -> Unit | None:
        return self.units.get((path, 0))

    def calling(self, name: str) -> Sequence[Unit] | None:
        found = self._calling.get(name, ())
        return found if len(found) <= MAX_DOCUMENTS else None

    def storing(self, name: str, most: int = MAX_DOCUMENTS) -> Sequence[Unit] | None:
        found = self._storing.get(name, ())
        return found if len(found) <= most else None

    def entering(self, kind: NamedKind, name: str, most: int = MAX_DOCUMENTS) -> Sequence[Unit] | None:
        found = self._entering.get((kind, name), ())
        return found if len(found) <= most else None


class StoredCorpus:
    """The documents of a tree as they are asked for. `load` gives the code of a file, `find_named` the paths of files
    that are found by a name of some kind, at most as many as it is told."""

    def __init__(
        self,
        paths: Iterable[str],
        load: Callable[[str], Sequence[Code | None]],
        find_named: Callable[[str, NamedKind, int], Sequence[str]],
    ) -> None:
        self.paths, self._load, self.find_paths = paths, load, find_named
        self._units: dict[str, list[Unit]] = {}
        self._named: dict[tuple[str, str, int], Sequence[Unit] | None] = {}

    def units(self, path: str) -> list[Unit]:
        """Of a file and what is embedded in it, those with code."""
        found = self._units.get(path)
        if found is None:
            found = self._units[path] = make_units(path, self._load(path))
        return found

    def unit(self, path: str) -> Unit | None:
        return next((unit for unit in self.units(path) if not unit.document), None)

    def calling(self, name: str) -> Sequence[Unit] | None:
        return self._find(name, "called")

    def storing(self, name: str, most: int = MAX_DOCUMENTS) -> Sequence[Unit] | None:
        return self._find(name, "stored", most)

    def entering(self, kind: NamedKind, name: str, most: int = MAX_DOCUMENTS) -> Sequence[Unit] | None:
        return self._find(name, kind, most)

    def _find(self, name: str, kind: NamedKind, most: int = MAX_DOCUMENTS) -> Sequence[Unit] | None:
        key = (name, kind, most)
        if key not in self._named:
            paths = self.find_paths(name, kind, most + 1)
            found = None
            if len(paths) <= most:
                found = [unit for path in paths for unit in self.units(path) if unit.has_name(name, kind)]
            self._named[key] = found if found is None or len(found) <= most else None
        return self._named[key]


def make_units(path: str, codes: Sequence[Code | None]) -> list[Unit]:
    return [Unit(path, code, number) for number, code in enumerate(codes[:MAX_EMBEDDED]) if code is not None]
