"""Which file of a repository a Python module is: packages, source roots, submodules."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from cq.graph.engine.view import View
from cq.graph.things import Module, Thing

if TYPE_CHECKING:
    from cq.graph.link import Linker


class Modules:
    """Over the paths of a repository."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.files: set[str] = set()
        self._folders: set[str] = set()
        self._projects = {"", "src", "lib", "python"}  # folders that modules are named from, wherever they are imported
        self._found: dict[tuple[str, str], str | None] = {}
        for path in paths:
            folder, _, name = path.rpartition("/")
            if name.endswith((".py", ".pyi")):
                self.files.add(path)
                while folder and folder not in self._folders:
                    self._folders.add(folder)
                    folder = folder.rpartition("/")[0]
            if name in ("pyproject.toml", "setup.py", "setup.cfg"):
                folder = path.rpartition("/")[0]
                self._projects |= {folder, f"{folder}/src" if folder else "src"}

    def find_module(self, linker: Linker, unit: View, dotted: str) -> Thing | None:
        """The module of that name as the unit would import it; an External when the repository has none."""
        here = unit.path.rpartition("/")[0]
        key = (here, dotted)
        if key not in self._found:
            self._found[key] = self._find_path(here, dotted)
        path = self._found[key]
        if path is not None:
            return linker.module(path)
        top = dotted.partition(".")[0]
        if top != dotted and isinstance(self.find_module(linker, unit, top), Module):
            return None
        return linker.external(dotted)

    def _find_path(self, here: str, dotted: str) -> str | None:
        """Of a file, else of a folder. A module is named from a project's folder, or from the first folder above it
        that is no package; those are roots for what lies inside them only. The nearest root wins."""
        stem, top = dotted.replace(".", "/"), dotted.partition(".")[0]
        roots = list(self._projects)
        above = here
        while above:
            if above not in self._projects and (above == here or top not in sys.stdlib_module_names):
                roots.append(above)
            above = above.rpartition("/")[0]
        roots.sort(key=lambda root: (-_common(here, root), root))
        folder: str | None = None
        for root in roots:
            base = f"{root}/{stem}" if root else stem
            for path in (f"{base}/__init__.py", f"{base}.py", f"{base}/__init__.pyi", f"{base}.pyi"):
                if path in self.files and (root in self._projects or self._root_of(path) == root):
                    return path
            if folder is None and base in self._folders and root in self._projects:
                folder = base
        return folder

    def _root_of(self, path: str) -> str:
        folder = path.rpartition("/")[0]
        while folder and f"{folder}/__init__.py" in self.files:
            folder = folder.rpartition("/")[0]
        return folder

    def find_submodule(self, linker: Linker, folder: str, name: str) -> Thing | None:
        """`folder` may also be the path of a package's own file."""
        if folder in self.files:
            if not folder.endswith(("/__init__.py", "/__init__.pyi")):
                return None
            folder = folder.rpartition("/")[0]
        stem = f"{folder}/{name}" if folder else name
        for path in (f"{stem}/__init__.py", f"{stem}.py", f"{stem}.pyi"):
            if path in self.files:
                return linker.module(path)
        return linker.module(stem) if stem in self._folders else None

    def find_source(self, linker: Linker, unit: View, level: int, module: str) -> Thing | None:
        if not level:
            return self.find_module(linker, unit, module)
        folder = unit.path.rpartition("/")[0]
        for _ in range(level - 1):
            folder = folder.rpartition("/")[0]
        found: Thing | None = None
        if not module:
            package = f"{folder}/__init__.py" if folder else "__init__.py"
            return linker.module(package if package in self.files else folder)
        for name in module.split("."):
            found = self.find_submodule(linker, folder, name)
            if found is None:
                return None
            assert isinstance(found, Module)
            folder = found.path.removesuffix("/__init__.py")
        return found


def _common(one: str, other: str) -> int:
    """How many folders two paths share."""
    count = 0
    for left, right in zip(one.split("/"), other.split("/"), strict=False):
        if left != right:
            break
        count += 1
    return count
