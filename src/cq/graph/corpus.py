"""The documents a linker works on: all of them in memory, or only those it asks for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from cq.graph.unit import Unit

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

    def entering(self, kind: str, name: str, most: int = MAX_DOCUMENTS) -> Sequence[Unit] | None:
        """Documents that have a definition so entered: see ENTRY_KINDS of cq.model.code."""
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

    def unit(self, path: str) -> Unit | None:
        return self.units.get((path, 0))

    def calling(self, name: str) -> Sequence[Unit] | None:
        found = self._calling.get(name, ())
        return found if len(found) <= MAX_DOCUMENTS else None

    def storing(self, name: str, most: int = MAX_DOCUMENTS) -> Sequence[Unit] | None:
        found = self._storing.get(name, ())
        return found if len(found) <= most else None

    def entering(self, kind: str, name: str, most: int = MAX_DOCUMENTS) -> Sequence[Unit] | None:
        found = self._entering.get((kind, name), ())
        return found if len(found) <= most else None
