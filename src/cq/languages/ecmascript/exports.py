"""Which module an import means, and what a module gives under a name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from cq.graph.dialect import MAX_IMPORTS
from cq.graph.engine.view import View
from cq.graph.scopes import ROOT
from cq.graph.things import External, Module
from cq.graph.values import IMPORT, NOTHING, Values, join, raised
from cq.languages.ecmascript.modules import Modules
from cq.model.code import Bind, Imported, label_type

if TYPE_CHECKING:
    from cq.graph.link import Linker

WHOLE_NAMES = ("*", "=", "default")  # that mean all of a module from outside


class Exported(NamedTuple):
    """What a module binds an exported name to, or `module.exports`, off which the name is then read."""

    unit: View
    binds: Sequence[Bind]
    is_whole: bool = False


class Exports:
    def __init__(self, paths: Iterable[str]) -> None:
        self._modules = Modules(paths)

    def find_module(self, linker: Linker, unit: View, module: str) -> Module | External | None:
        """None for a module that should be in the repository and is not."""
        path = self._modules.find(linker, unit.path, module)
        return None if path is None else linker.module(path) if path else linker.external(module)

    def list_binds(self, unit: View, name: str, *, as_type: bool = False) -> Sequence[Bind]:
        """The bindings that leave a module under a name."""
        found = unit.bound(ROOT, f"export {name}")
        if not found and name in (unit.public() or ()):
            found = unit.bound(ROOT, label_type(name)) if as_type else ()
            found = found or [bind for bind in unit.bound(ROOT, name) if not bind.inner]
        return found

    def find_exported(
        self, linker: Linker, unit: View, name: str, *, as_type: bool = False
    ) -> Exported | External | None:
        """Along `export * from` too; where no module of the repository has the name, a package may have it."""
        outside: External | None = None
        todo, seen = [unit], {unit}
        while todo:
            unit = todo.pop()
            if binds := self.list_binds(unit, name, as_type=as_type):
                return Exported(unit, binds)
            if whole := unit.bound(ROOT, "export ="):
                return Exported(unit, whole, is_whole=True)
            inner: list[View] = []
            for bind in unit.bound(ROOT, "export *") if name != "default" else ():
                value = bind.value
                source = self.find_module(linker, unit, value.module) if isinstance(value, Imported) else None
                if isinstance(source, External):
                    outside = outside or linker.external(f"{source.name}.{name}")
                elif source is not None and source.unit is not None and source.unit not in seen:
                    seen.add(source.unit)
                    inner.append(source.unit)
            todo += reversed(inner)
        return outside

    def evaluate(self, linker: Linker, unit: View, name: str) -> Values | None:
        """The values of an exported name; None where a module has no such name."""
        exported = self.find_exported(linker, unit, name)
        if not isinstance(exported, Exported):
            return None if exported is None else {exported: IMPORT}
        found = _join_binds(linker, exported.unit, exported.binds)
        if exported.is_whole and name != "default":
            found = linker.attribute(found, name)
        return raised(found, IMPORT)

    def evaluate_import(self, linker: Linker, unit: View, module: str, name: str) -> Values:
        source = self.find_module(linker, unit, module)
        if source is None:
            return linker.unknown
        if isinstance(source, External):
            return {source if name in WHOLE_NAMES else linker.external(f"{module}.{name}"): IMPORT}
        if name == "*" or source.unit is None:
            return {source: IMPORT}
        if name == "=":
            return _join_binds(linker, source.unit, source.unit.bound(ROOT, "export =")) or {source: IMPORT}
        found = self.evaluate(linker, source.unit, name)
        return linker.unknown if found is None else found

    def find_home(self, linker: Linker, unit: View, name: str) -> View | None:
        """The module that binds an exported name to a value, along exports of it under the same name."""
        for _ in range(MAX_IMPORTS):
            exported = self.find_exported(linker, unit, name)
            if not isinstance(exported, Exported) or exported.is_whole:
                return None
            unit, bind = exported.unit, exported.binds[0]
            value = bind.value
            if isinstance(value, str) and bind.name.startswith("export ") and value.isidentifier():
                inner = unit.bound(ROOT, value)
                value = inner[0].value if len(inner) == 1 and value == name else None
            if not isinstance(value, Imported):
                return None if value is None else unit
            source = self.find_module(linker, unit, value.module)
            if value.name != name or not isinstance(source, Module) or source.unit is None:
                return None
            unit = source.unit
        return None


def _join_binds(linker: Linker, unit: View, binds: Iterable[Bind]) -> Values:
    found = NOTHING
    for bind in binds:
        found = join(found, linker.bound(unit, bind))
    return found
