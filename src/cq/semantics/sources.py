"""Which files an import names, by the rules for modules alone. What its names mean in the end is another question: of
`from pkg import f` the file is that of pkg, wherever f is defined."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from cq.graph.engine.view import View
from cq.graph.things import External, Module, Thing
from cq.graph.unit import Unit
from cq.languages.linking import make_linker
from cq.model.code import Code
from cq.model.facts import Import


class Source(NamedTuple):
    """A file of the repository, or a module from outside under the name that the language has for it."""

    path: str
    module: str = ""
    type_only: bool = False  # the names that are taken from it are types: nothing is loaded


class Sources:
    """Over the paths of a repository; documents are asked for where configuration or a package's own names decide."""

    def __init__(self, paths: Iterable[str], unit: Callable[[str], Unit | None]) -> None:
        self._linker = make_linker(_ImportCorpus(paths, unit))

    def find(self, path: str, language: str, item: Import) -> list[Source] | None:
        """In the order of its names; None in languages whose imports name definitions."""
        # What else the document says does not matter.
        unit = View(Unit(path, Code(language)), self._linker)
        found = self._linker.dialect(unit).find_sources(self._linker, unit, item)
        if found is None:
            return None
        sources = [_describe(thing, typed) for thing, typed in found]
        running = {source.path for source in sources if not source.type_only}
        return list(dict.fromkeys(s for s in sources if not (s.type_only and s.path in running) and s.path != path))


def _describe(thing: Thing, typed: bool) -> Source:
    if isinstance(thing, Module):
        return Source(thing.path, type_only=typed)
    assert isinstance(thing, External)
    return Source("", thing.name, typed)


class _ImportCorpus:
    """A corpus that nobody asks about calls."""

    def __init__(self, paths: Iterable[str], unit: Callable[[str], Unit | None]) -> None:
        self.paths, self._unit = paths, unit

    def unit(self, path: str) -> Unit | None:
        # Reading a document is all the cost. Of Python only a package has names that may be modules as well.
        is_plain = path.endswith((".py", ".pyi")) and not path.rpartition("/")[2].startswith("__init__.")
        return None if is_plain else self._unit(path)

    def calling(self, name: str) -> Sequence[Unit] | None:
        return None

    def storing(self, name: str, most: int = 0) -> Sequence[Unit] | None:
        return None

    def entering(self, kind: str, name: str, most: int = 0) -> Sequence[Unit] | None:
        return None
