"""A project as its own configuration says: which files it is made of, and which other projects it builds on."""

from __future__ import annotations

import msgspec


class Project(msgspec.Struct, frozen=True):
    """`path` is the file that configures it. Paths are those of the repository."""

    path: str
    name: str  # that of its package, else its folder
    is_solution: bool = False  # only a list of others
    is_base: bool = False  # only there for others to extend
    is_composite: bool = False
    references: tuple[str, ...] = ()
    referenced_by: tuple[str, ...] = ()
    extends: tuple[str, ...] = ()  # the chain, the nearest first
    files: tuple[str, ...] = ()  # its sources; files of declarations apart
    out_dir: str = ""
    root_dir: str = ""
    root_dirs: tuple[str, ...] = ()
    aliases: tuple[tuple[str, tuple[str, ...]], ...] = ()  # `paths`: pattern, what it may stand for
    conditions: tuple[str, ...] = ()  # `customConditions`
    workspaces: tuple[str, ...] = ()  # configurations of the packages that the package beside it names
    problems: tuple[str, ...] = ()  # what could not be followed

    @property
    def kind(self) -> str:
        words = {"solution": self.is_solution, "base": self.is_base, "composite": self.is_composite}
        return next((word for word, holds in words.items() if holds), "plain")

    def is_called(self, name: str) -> bool:
        """By its file, the folder of that, or its name."""
        name = name.removeprefix("./").rstrip("/")
        return name in (self.path, self.path.rpartition("/")[0], self.name) if name else False
