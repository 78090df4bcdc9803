"""What names and types mean by declarations, imports and aliases alone, without any flow of values."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from cq.graph.engine.view import View
from cq.graph.scopes import ANYWHERE, ROOT
from cq.graph.things import UNKNOWN, Class, Container, External, Function, Instance, Module, Thing
from cq.graph.values import NOTHING, Values, join
from cq.languages.ecmascript.exports import WHOLE_NAMES, Exported, Exports
from cq.languages.ecmascript.library import ANY_TEXT, LIBRARY
from cq.model.code import (
    NULL,
    AliasOf,
    Attribute,
    Bounds,
    Choice,
    Constant,
    Defined,
    Element,
    FunctionType,
    Imported,
    Lambda,
    Listing,
    MemberType,
    Name,
    ObjectType,
    SeenIn,
    Text,
    TypeOf,
    Value,
    label_type,
)

if TYPE_CHECKING:
    from cq.graph.link import Linker

MAX_STEPS = 30  # from a name to what it stands for
MAX_LOOKUPS = 500  # for one question: `type A = B | B; type B = C | C; …` doubles with every step


class Alias(NamedTuple):
    """A type that is called by a name: to be read where it stands."""

    unit: View
    scope: int
    type: Value


class Declarations:
    """Answers one question, with a bounded number of lookups."""

    def __init__(self, linker: Linker, exports: Exports, unions: dict[tuple[View, int], Choice]) -> None:
        self._linker, self._exports, self._unions = linker, exports, unions
        self._left = MAX_LOOKUPS

    # -- names -----------------------------------------------------------------------------------

    def find(
        self, unit: View, scope: int, value: Value, *, as_type: bool = True, steps: int = MAX_STEPS
    ) -> Thing | Alias | None:
        self._left -= 1
        if steps <= 0 or self._left < 0:
            return None
        steps -= 1
        match value:
            case str():
                return self._find_name(unit, scope, value, as_type, steps)
            case Defined():
                return self._linker.thing(unit, value.start)
            case Lambda():
                return self._linker.function(unit, value.start)
            case Element():
                return self.find(unit, scope, value.base, as_type=as_type, steps=steps)
            case SeenIn():
                return self.find(unit, value.scope, value.value, as_type=as_type, steps=steps)
            case AliasOf():
                return Alias(unit, scope, value.kind)
            case Imported():
                return self._find_imported(unit, value, as_type, steps)
            case Attribute(base=Imported() as source, path=path):
                return self._find_inner(self._find_imported(unit, source, as_type, steps), path, as_type, steps)
            case _:
                return None

    def _find_name(self, unit: View, scope: int, name: Name, as_type: bool, steps: int) -> Thing | Alias | None:
        first, _, path = name.partition(".")
        found: Thing | Alias | None = None
        for label in (label_type(first), first) if as_type and not path else (first,):
            if binds := unit.find(scope, label, ANYWHERE):
                for bind in binds:
                    found = found or self.find(unit, bind.scope, bind.value, as_type=as_type, steps=steps)
                break
        else:
            if first in LIBRARY.globals:
                found = self._linker.external(f"builtins.{first}")
        return self._find_inner(found, path, as_type, steps)

    def _find_imported(self, unit: View, value: Imported, as_type: bool, steps: int) -> Thing | Alias | None:
        source, name = self._exports.find_module(self._linker, unit, value.module), value.name
        if isinstance(source, External):
            return source if name in WHOLE_NAMES else self._linker.external(f"{value.module}.{name}")
        if source is None or source.unit is None or name == "*":
            return source
        if name == "=":
            return (
                self._find_first(Exported(source.unit, source.unit.bound(ROOT, "export =")), as_type, steps) or source
            )
        return self.find_member(source.unit, name, as_type=as_type, steps=steps)

    def find_member(self, unit: View, name: str, *, as_type: bool, steps: int = MAX_STEPS) -> Thing | Alias | None:
        """What a module exports under a name."""
        exported = self._exports.find_exported(self._linker, unit, name, as_type=as_type) if steps > 0 else None
        if not isinstance(exported, Exported):
            return exported
        found = self._find_first(exported, as_type, steps)
        return self._find_inner(found, name, as_type, steps) if exported.is_whole and name != "default" else found

    def _find_first(self, exported: Exported, as_type: bool, steps: int) -> Thing | Alias | None:
        found: Thing | Alias | None = None
        for bind in exported.binds:
            found = found or self.find(exported.unit, ROOT, bind.value, as_type=as_type, steps=steps - 1)
        return found

    def _find_inner(self, found: Thing | Alias | None, path: str, as_type: bool, steps: int) -> Thing | Alias | None:
        """What is read off something."""
        for name in path.split(".") if path else ():
            if isinstance(found, External):
                found = self._linker.external(f"{found.name}.{name}")
            elif isinstance(found, Module):
                unit = found.unit
                found = unit and self.find_member(unit, name, as_type=as_type, steps=steps - 1)
            elif isinstance(found, Class):
                unit, symbol = found.unit, found.definition.symbol
                found = None
                for label in (label_type(name), name) if as_type else (name,):
                    for bind in unit.bound(symbol, label):
                        found = found or self.find(unit, symbol, bind.value, as_type=as_type, steps=steps - 1)
            else:
                return None
        return found

    def add_bases(
        self, order: dict[Thing | None, None], unit: View, scope: int, value: Value, *, as_type: bool
    ) -> None:
        """A base with those above it, behind what stands in the order already."""
        todo: list[tuple[View, int, Value]] = [(unit, scope, value)]
        for _ in range(MAX_STEPS):
            if not todo:
                return
            unit, scope, value = todo.pop()
            match value:
                case Bounds():
                    todo += [(unit, scope, inner) for inner in reversed(value.types)]
                    continue
                case Element(base=str() as base, keys=(first, *_)) if base in LIBRARY.same_members:
                    todo.append((unit, scope, first))
                    continue
                case _:
                    base = self.find(unit, scope, value, as_type=as_type)
            if isinstance(base, Alias):
                todo.append(base)
            elif isinstance(base, Class):
                order.update(dict.fromkeys(self._linker.members.order(base)))
            else:
                order[base] = None

    # -- types -----------------------------------------------------------------------------------

    def make(self, unit: View, scope: int, kind: Value, position: int, steps: int = MAX_STEPS) -> Values:
        """Instances of a type as written."""
        linker = self._linker
        self._left -= 1
        if kind is None or steps <= 0 or self._left < 0:
            return linker.unknown
        match kind:
            case "this":
                holder = unit.find_class(scope)
                thing = None if holder is None else linker.thing(unit, holder.start)
                return {thing.self_instance: 0} if isinstance(thing, Class) else linker.unknown
            case str() | Imported() | Attribute():
                return self._make_named(unit, scope, kind, steps)
            case Constant():
                return NOTHING if kind == NULL else {linker.external(f"builtins.{kind.name}()"): 0}
            case Choice():
                found = NOTHING
                for inner in kind.options:
                    found = join(found, self.make(unit, scope, inner, position, steps - 1))
                return found
            case Bounds():
                found = NOTHING
                for inner in kind.types:
                    made = self.make(unit, scope, inner, position, steps - 1)
                    # What is unknown in `A & B` takes nothing from what is known.
                    found = join(found, made if UNKNOWN not in made else NOTHING)
                return found or linker.unknown
            case Element():
                return self._make_generic(unit, scope, kind, position, steps)
            case FunctionType():
                return {linker.container("function", unit, scope, position, kind, typed=True): 0}
            case ObjectType():
                return {linker.container("dict", unit, scope, position, kind, typed=True): 0}
            case Listing():
                element = self._unions.setdefault((unit, id(kind)), Choice(kind.elements))
                return {linker.container("list", unit, scope, position, element, typed=True): 0}
            case TypeOf():
                thing = self.find(unit, scope, kind.value, as_type=False)
                return {thing: 0} if isinstance(thing, (Class, Function, Module, External)) else linker.unknown
            case MemberType():
                found = NOTHING
                for thing in self.make(unit, scope, kind.kind, position, steps - 1):
                    found = join(found, self._make_member(thing, kind.name, steps - 1))
                return found
            case _:
                return linker.unknown

    def _make_named(self, unit: View, scope: int, name: Name | Imported | Attribute, steps: int) -> Values:
        thing = self.find(unit, scope, name)
        if isinstance(thing, Alias):
            return self.make(thing.unit, thing.scope, thing.type, ANYWHERE, steps - 1)
        if isinstance(thing, Class):
            if thing.definition.kind == "enum":
                return {self._linker.external("builtins.int()"): 0}
            return {thing.declared if thing.definition.kind == "class" else thing.instance: 0}
        return {self._linker.external(f"{thing.name}()"): 0} if isinstance(thing, External) else self._linker.unknown

    def _make_generic(self, unit: View, scope: int, kind: Element, position: int, steps: int) -> Values:
        linker, given = self._linker, kind.keys
        thing = self.find(unit, scope, kind.base) if isinstance(kind.base, str) else None
        if not isinstance(thing, External) or not given:
            return self.make(unit, scope, kind.base, position, steps - 1)
        label = thing.name.removeprefix("builtins.")
        if label in LIBRARY.same_members:
            return self.make(unit, scope, given[0], position, steps - 1)
        holder = LIBRARY.find_container(label)
        if holder is not None:
            inner = given[:2][-1] if holder in ("map", "dict") else given[0]
            return {linker.container(holder, unit, scope, position, inner, typed=True): 0}
        if label not in ("InstanceType", "ReturnType"):
            return {linker.external(f"{thing.name}()"): 0}
        found = NOTHING
        for inner in self.make(unit, scope, given[0], position, steps - 1):
            if isinstance(inner, Class) and label == "InstanceType":
                found = join(found, {inner.instance: 0})
            elif isinstance(inner, Function) and label == "ReturnType":
                definition = inner.unit.contents(inner.definition)
                made = self.make(inner.unit, definition.scope, definition.type, ANYWHERE, steps - 1)
                found = join(found, made)
            else:
                found = join(found, linker.unknown)
        return found

    def _make_member(self, thing: Thing, name: str, steps: int) -> Values:
        """`T["name"]`."""
        if isinstance(thing, Container) and thing.typed and isinstance(thing.value, ObjectType):
            return self.make_property(thing, thing.value, name, steps)
        if not isinstance(thing, Instance):
            return self._linker.unknown
        holder, binds, stores, _ = self._linker.members.find(thing.type, name)
        for member in (*binds, *stores):
            if isinstance(holder, Class) and member.type is not None:
                return self.make(holder.unit, member.scope, member.type, member.start, steps)
        return self._linker.unknown

    def make_property(self, container: Container, kind: ObjectType, name: str, steps: int = MAX_STEPS) -> Values:
        """Of a type written as an object."""
        for key, inner in zip(kind.keys, kind.types, strict=True):
            if key in (Text(name), ANY_TEXT):
                return self.make(container.unit, container.scope, inner, container.position, steps)
        return self._linker.unknown


def is_erased(found: Thing | Alias | None) -> bool:
    """Whether something is a type and nothing else: the compiler leaves it out."""
    return isinstance(found, Alias) or (isinstance(found, Class) and found.definition.kind == "interface")
