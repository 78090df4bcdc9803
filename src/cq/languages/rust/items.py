"""Which items a path of Rust names: modules, `use` and globs, definitions in and around a scope."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from cq.graph.corpus import MAX_HOLDERS
from cq.graph.engine.view import View
from cq.graph.scopes import ROOT, find_defined
from cq.graph.things import Class, External, Function, Module, Thing
from cq.languages.rust.crates import join_path
from cq.languages.rust.std import STD
from cq.languages.rust.things import Applied, class_of
from cq.model.code import Defined, Imported

if TYPE_CHECKING:
    from cq.languages.rust.linking import RustDialect

MAX_STEPS = 24  # imports and aliases on the way to one item
_MAX_GLOBS = 60  # modules that one name is looked for in, through `use m::*`

Space = Literal["type", "value", "macro", "any"]  # a name may stand for one thing in each of the first three
_TYPES = frozenset({"struct", "enum", "union", "trait", "alias", "mod"})
_VALUES = frozenset({"function", "const", "struct", "variant"})


class ItemFinder:
    def __init__(self, rust: RustDialect) -> None:
        self._rust, self._linker, self._crates, self._lookups = rust, rust.linker, rust.crates, rust.lookups

    def module(self, path: str | None) -> list[Thing]:
        if path is None:
            return []
        module = self._linker.module(path)
        return [module] if module.unit is not None else []

    def _crate(self, unit: View, name: str) -> list[Thing]:
        return self.module(self._crates.find(unit.path, name))

    def _find_home(self, unit: View, scope: int) -> int:
        """The inline module around a scope, ROOT for the file itself."""
        while scope != ROOT:
            definition = unit.by_symbol.get(scope)
            if definition is None:
                return ROOT
            if definition.kind == "mod":
                return scope
            scope = definition.scope
        return ROOT

    def _here(self, unit: View, scope: int) -> Thing:
        return (
            self._linker.module(unit.path) if scope == ROOT else self._linker.thing(unit, unit.by_symbol[scope].start)
        )

    def _find_above(self, thing: Thing) -> list[Thing]:
        if isinstance(thing, Class):
            return [self._here(thing.unit, self._find_home(thing.unit, thing.definition.scope))]
        return self.module(self._crates.parent(thing.path)) if isinstance(thing, Module) else []

    def find_import(self, unit: View, scope: int, module: str, name: str, space: Space) -> list[Thing]:
        if module.startswith("mod "):
            return self.module(self._crates.child(unit.path, module[4:]))
        if module.startswith("path "):
            folder = unit.path.rpartition("/")[0]
            path = join_path(folder, module[5:])
            return self.module(path if path in self._crates.files else None)
        segments = module.split("::")
        if name != "*":
            segments.append(name)
        return self.find(unit, scope, segments, "type" if name == "*" else space)

    def find(self, unit: View, scope: int, segments: Sequence[str], space: Space) -> list[Thing]:
        """What a path names, in one of the spaces of names."""
        if len(segments) > MAX_STEPS:
            return []
        head, rest = segments[0], list(segments[1:])
        found = self._find_head(unit, scope, head, rest, space if not rest else "type")
        while rest:
            name = rest.pop(0)
            inner = space if not rest else "type"
            following: list[Thing] = []
            for thing in found:
                following += [other for other in self._find_inner(thing, name, inner) if other not in following]
            found = following
        return found

    def _find_head(self, unit: View, scope: int, head: str, rest: list[str], space: Space) -> list[Thing]:
        if head == "crate" or head == "$crate":
            return self.module(self._crates.root(unit.path))
        if head == "%":
            return [self._linker.module(unit.path)]
        if head == "self" or head == "super":
            found = [self._here(unit, self._find_home(unit, scope))]
            if head == "super":
                found = self._find_above(found[0])
            while rest and rest[0] == "super":
                rest.pop(0)
                found = self._find_above(found[0]) if found else []
            return found
        if head == "Self":
            kind = self._rust.kinds.find_self(unit, scope)
            return [] if kind is None else [kind]
        if head == "":
            return self._crate(unit, rest[0]) and self._crate(unit, rest.pop(0)) if rest else []
        found = self.look_up(unit, scope, head, space)
        if not found and space == "macro" and head not in STD.macros:
            found = self._find_macros(self._crates.root(unit.path), head)
        if found:
            return found
        if space == "type":
            crate = self._crate(unit, head)
            if crate:
                return crate
        outside = self.find_outside(unit, scope, head, space, is_head=bool(rest))
        return [self._linker.external(outside)] if outside else []

    def _find_macros(self, root: str | None, name: str) -> list[Thing]:
        """`macro_rules!` of a crate, wherever they stand: exported ones are items of its root, and others are known
        in the text behind them."""
        return [
            self._linker.thing(unit, definition.start)
            for unit, definition in self._linker.documents.entries("macro", name, MAX_HOLDERS) or ()
            if self._crates.root(unit.path) == root and definition.kind in ("macro", "function")
        ]

    def find_outside(self, unit: View, scope: int, name: str, space: Space, *, is_head: bool) -> str:
        """What needs no binding, and crates that the repository does not hold."""
        if name in STD.crates:
            return name
        if space == "macro":
            return f"std::{name}" if name in STD.macros else ""
        if name in STD.prelude or (space != "value" and name in STD.primitives):
            return f"std::{name}"
        # Nothing of that name is in scope, so a path that begins with it begins with a crate.
        return name if is_head and space == "type" and name[:1].islower() else ""

    def look_up(self, unit: View, scope: int, name: str, space: Space) -> list[Thing]:
        """A name as seen from a scope: items and imports of the functions around it, then those of its module."""
        while scope != ROOT:
            definition = unit.by_symbol.get(scope)
            if definition is None:
                scope = ROOT
                break
            if definition.kind == "mod":
                break
            if space == "type":
                unit.contents(definition)
                for known, bound in definition.keywords:
                    if known == name:
                        return [self._rust.things.variable(unit, scope, name, bound)]
            if definition.kind not in ("impl", "trait", "enum"):
                found = self._find_in(unit, scope, name, space)
                if found:
                    return list(found)
            scope = definition.scope
        return list(self._find_in(unit, scope, name, space))

    def _find_in(self, unit: View, scope: int, name: str, space: Space) -> tuple[Thing, ...]:
        """Items and imports of one module or function, then what its globs bring."""
        asked = (unit, scope, name, space)
        return self._lookups.find(asked, (), self._find_items, *asked)

    def _find_items(self, unit: View, scope: int, name: str, space: Space) -> tuple[Thing, ...]:
        found = self._find_bound(unit, scope, name, space)
        return tuple(self._find_globbed(unit, scope, name, space) if found is None else found)

    def _find_globbed(self, unit: View, scope: int, name: str, space: Space) -> list[Thing]:
        # Modules may import all of one another: each is asked once, the nearest first.
        outside = ""
        seen = [(unit, scope)]
        for module in seen:
            for source in self._globs(*module):
                if isinstance(source, External):
                    outside = outside or source.name
                    continue
                inner = (source.unit, ROOT) if isinstance(source, Module) and source.unit is not None else None
                if isinstance(source, Class):
                    if source.definition.kind != "mod":
                        found = self._find_inner(source, name, space, is_glob=True)
                        if found:
                            return found
                        continue
                    inner = (source.unit, source.definition.symbol)
                if inner is not None and inner not in seen and len(seen) < _MAX_GLOBS:
                    seen.append(inner)
                    found = self._find_bound(*inner, name, space)
                    if found and not _is_below(*module, *inner):
                        found = [thing for thing in found if not _is_private(thing, *inner)]
                    if found:
                        return found
        # Nothing of the repository has the name, so a type or variant can only come from there.
        is_free = name[:1].isupper() and not self.find_outside(unit, scope, name, space, is_head=False)
        return [self._linker.external(f"{outside}::{name}")] if outside and is_free else []

    def _find_bound(self, unit: View, scope: int, name: str, space: Space) -> list[Thing] | None:
        """What a module or function defines or imports by name; None where globs may bring it."""
        own: list[Thing] = []
        imported: list[Thing] | None = None
        for bind in unit.bound(scope, name):
            value = bind.value
            if isinstance(value, Defined) and _is_in(unit.definitions[value.start].kind, space):
                own.append(self._thing(unit, value.start))
            elif isinstance(value, Imported):
                found = self.find_import(unit, scope, value.module, value.name, space)
                imported = imported or []
                imported += [thing for thing in found if thing not in imported and _fits(thing, space)]
        return own or imported

    def _globs(self, unit: View, scope: int) -> list[Thing]:
        """The modules and types whose items a module or function imports all."""
        return self._lookups.find((unit, scope), [], self._find_globs, unit, scope) if unit.stars() else []

    def _find_globs(self, unit: View, scope: int) -> list[Thing]:
        return [
            source
            for at, star in unit.stars()
            if at == scope
            for source in self.find_import(unit, scope, star.module, "*", "type")
        ]

    def _thing(self, unit: View, start: int) -> Class | Function:
        thing = self._linker.thing(unit, start)
        if isinstance(thing, Class) and thing.definition.kind == "variant" and thing.instance.type is thing:
            holder = self._linker.thing(unit, unit.by_symbol[thing.definition.scope].start)
            assert isinstance(holder, Class)
            thing.instance = holder.instance  # `E::A(x)` gives an E
        return thing

    def _find_inner(self, thing: Thing, name: str, space: Space, *, is_glob: bool = False) -> list[Thing]:
        """`thing::name`."""
        if isinstance(thing, External):
            return [self._linker.external(f"{thing.name}::{name}")]
        if isinstance(thing, Module):
            if thing.unit is None:
                return []
            found = self._find_in(thing.unit, ROOT, name, space)
            if not found and space in ("macro", "any") and self._crates.root(thing.path) == thing.path:
                return self._find_macros(thing.path, name)
            return list(found)
        if isinstance(thing, Class):
            definition = thing.definition
            if definition.kind == "mod":
                return list(self._find_in(thing.unit, definition.symbol, name, space))
            if definition.kind == "alias":
                kind = self._rust.kinds.read(thing.unit, definition.symbol, definition.type, {})
                return [] if kind is None else self._find_inner(kind, name, space)
            if definition.kind == "enum":
                variant = self._find_variant(thing, name)
                if variant is not None:
                    return [variant]
            if is_glob:
                return []
            thing = thing.instance
        elif (kind := class_of(thing)) is not None and kind.definition.kind == "enum":
            variant = self._find_variant(kind, name)
            if variant is not None:
                return [variant]
        if isinstance(thing, Applied) and isinstance(thing.kind, str):
            extended = self._rust.impls.find_extension(thing, name, dotted=False)
            return [*extended] if extended else [self._linker.external(f"std::{thing.kind}::{name}")]
        if space == "type":
            alias = self._rust.kinds.find_alias(thing, name)
            return [] if alias is None else [alias]
        return list(self._rust.impls.find(thing, name, dotted=False))

    def _find_variant(self, kind: Class, name: str) -> Thing | None:
        starts = find_defined(kind.unit.bound(kind.definition.symbol, name))
        return self._thing(kind.unit, starts[0]) if starts else None


def _is_in(kind: str, space: Space) -> bool:
    if kind == "impl":
        return False
    if space == "type":
        return kind in _TYPES
    if space == "value":
        return kind in _VALUES
    return kind == "macro" if space == "macro" else True


def _fits(thing: Thing, space: Space) -> bool:
    if space == "any" or isinstance(thing, External):
        return True
    if isinstance(thing, Function):
        return space != "type"
    if isinstance(thing, Class):
        # Literals of variants are looked up among types.
        return _is_in(thing.definition.kind, space) or thing.definition.kind == "variant"
    return space == "type"


def _is_private(thing: Thing, unit: View, scope: int) -> bool:
    """Whether a module's own item is for it and the modules inside it alone."""
    if not isinstance(thing, (Class, Function)) or thing.unit is not unit or thing.definition.scope != scope:
        return False
    words = thing.definition.modifiers
    return thing.definition.kind != "macro" and not any(word.startswith("pub") for word in words)


def _is_below(unit: View, scope: int, other: View, around: int) -> bool:
    """Whether a module stands inside another, or may do so: then it sees what is private there."""
    if unit is not other:
        folder, _, name = other.path.rpartition("/")
        stem = name.removesuffix(".rs")
        inside = folder if stem in ("mod", "lib", "main") else f"{folder}/{stem}" if folder else stem
        return around != ROOT or not inside or unit.path.startswith(f"{inside}/")
    while scope != around and scope in unit.by_symbol:
        scope = unit.by_symbol[scope].scope
    return scope == around
