"""The projects of one tree of the index."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cq.languages.projects import find_projects
from cq.model.project import Project
from cq.semantics.memory import remembered

if TYPE_CHECKING:
    from cq.snapshot.files import IndexedFiles


class KnownProjects:
    def __init__(self, files: IndexedFiles) -> None:
        self.files, self.memory = files, files.memory

    def all(self) -> list[Project]:
        return self._find("")

    @remembered
    def _find(self, _: str) -> list[Project]:
        return find_projects(self.files.stats().keys(), self._read)

    def _read(self, path: str) -> bytes | None:
        held = self.files.get(path)
        return None if held is None else held.text

    def find_files(self, name: str) -> frozenset[str] | None:
        """Those of all projects that are called so; None where none is."""
        projects = [each for each in self.all() if each.is_called(name)]
        if not projects:
            return None
        known = {each.path: each for each in self.all()}
        found: set[str] = set()
        for project in projects:
            # A list of others stands for these.
            for each in (project, *(known[path] for path in project.references if project.is_solution)):
                found |= set(each.files)
        return frozenset(found)
