"""What operators, loops and `with` do with instances: they call members that the language names."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from cq.graph.callers import is_open
from cq.graph.engine.view import View
from cq.graph.things import UNKNOWN, Bound, Class, Container, External, Function, Instance
from cq.graph.values import EVERYTHING, INFERRED, NOTHING, PARAMETER, Values, join, raised
from cq.model.code import (
    Awaited,
    Choice,
    Constant,
    Element,
    Entered,
    Iterated,
    Listing,
    Operated,
    ParameterOf,
    Value,
)

if TYPE_CHECKING:
    from cq.graph.link import Linker

_NEXT = {"__next__": "iter", "__anext__": "aiter"}  # called on what another operation gives
_GIVEN = (int, Element, Iterated, Entered, Awaited, Choice, Operated, ParameterOf)  # may be an instance
# What they hold is written elsewhere: as a Container, or nowhere.
OWN_CONTAINERS = ("builtins.list()", "builtins.dict()", "builtins.set()", "builtins.tuple()", "builtins.frozenset()")


class Protocols:
    """A dialect names the members: see Dialect.protocols."""

    def __init__(self, linker: Linker) -> None:
        self.linker = linker
        self._pairs: dict[Container, Listing] = {}  # what going over a map gives

    def run(self, thing: Instance, operation: str, level: int) -> Values:
        """What the member gives that the language calls for an operation."""
        linker = self.linker
        name = linker.dialect(thing.type.unit).protocols.get(operation)
        if name is None:
            return linker.unknown
        found = NOTHING
        for member, at in linker.member(thing, name, level).items():
            found = join(found, raised(linker.calls.invoke(member, None, -1), at))
        return raised(found, INFERRED)

    def iterate(self, values: Values) -> Values:
        linker = self.linker
        if values is EVERYTHING:
            return values
        found = NOTHING
        for thing, level in values.items():
            if isinstance(thing, Container):
                if thing.kind == "dict":
                    found = join(found, linker.literal("str"))
                elif thing.kind == "map":
                    elements = linker.containers.name_elements(thing)
                    pair = self._pairs.setdefault(thing, Listing("list", (Constant("str"), elements)))
                    held = linker.container("list", thing.unit, thing.scope, thing.position, pair)
                    found = join(found, {held: level})
                else:
                    found = join(found, raised(linker.containers.elements(thing), level))
            elif isinstance(thing, Instance):
                given = self.run(thing, "iter", level)
                if UNKNOWN in given and self._iterates_by_number(thing):
                    found, given = join(found, self.run(thing, "item", level)), NOTHING
                for inner, at in given.items():
                    if isinstance(inner, Instance):
                        found = join(found, self.run(inner, "next", at))
                    else:
                        found = join(found, self.iterate({inner: at}))
            elif isinstance(thing, External) and not thing.name.startswith(OWN_CONTAINERS):
                found = join(found, {thing: level})
            else:
                found = join(found, linker.unknown)
        return found

    def advance(self, values: Values) -> Values:
        """What `next` gives."""
        found = NOTHING
        for thing, level in values.items():
            is_made = isinstance(thing, Instance)
            found = join(found, self.run(thing, "next", level) if is_made else self.iterate({thing: level}))
        return found

    def imply(self, unit: View, scope: int, start: int, names: Collection[str], value: Value) -> list[Values]:
        """The methods of those names that the values of an expression have, each apart: all of them run. Most operators
        are between numbers and texts: they are looked at only where it is an attribute, a call or a variable that may
        be something else."""
        linker = self.linker
        if "__iter__" not in names and "__enter__" not in names and not self._may_be_made(unit, scope, start, value):
            return []
        values = linker.evaluate(unit, scope, value, start)
        things = [(thing, level) for thing, level in values.items() if isinstance(thing, Instance)]
        found: list[Values] = []
        for name in names if things else ():
            methods: Values = {}
            way = _NEXT.get(name) if len(names) > 1 else None  # `next(x)` does not ask for an iterator first
            for thing, level in things:
                inner = {thing: level} if way is None else self.run(thing, way, level)
                for other, at in inner.items():
                    if isinstance(other, Instance):
                        methods |= self._find_first(other, name, at)
            if methods:
                if len(things) < len(values):
                    methods[UNKNOWN] = PARAMETER  # what else it may be runs something else, or nothing
                found.append(methods)
        return found

    def imply_of_key(self, unit: View, scope: int, start: int, names: Collection[str], value: Value) -> list[Values]:
        """The methods of a key that a container runs: of a dictionary or a set both, of others only those that compare;
        none where the container has methods of its own. What compares runs only where it must."""
        linker, key = self.linker, value.keys[0] if isinstance(value, Element) else None
        if not isinstance(value, Element) or not self._may_be_made(unit, scope, start, key):
            return []
        if not any(isinstance(thing, Instance) for thing in linker.evaluate(unit, scope, key, start)):
            return []
        holders = linker.evaluate(unit, scope, value.base, start)
        kinds = {thing.kind if isinstance(thing, Container) else "?" for thing in holders}
        if holders and all(isinstance(thing, (Instance, External, Class)) for thing in holders):
            return []
        found: list[Values] = []
        for name in names:
            if name == "__hash__" and kinds <= {"list", "tuple", "generator"} and kinds:
                continue
            for methods in self.imply(unit, scope, start, (name,), key):
                is_sure = name == "__hash__" and kinds and kinds <= {"dict", "set"}
                found.append(methods if is_sure else {**methods, UNKNOWN: PARAMETER})
        return found

    def _find_first(self, thing: Instance, names: str, level: int) -> Values:
        """The first of these methods, `__str__|__repr__`, that an instance has."""
        for name in names.split("|"):
            members = self.linker.member(thing, name, level)
            if name == "__iter__" and UNKNOWN in members and self._iterates_by_number(thing):
                members = self.linker.member(thing, "__getitem__", level)
            found: Values = {}
            for member, at in members.items():
                if isinstance(member, (Bound, Function)):
                    found[member] = at
                if isinstance(member, Bound) and isinstance(member.function, Function) and is_open(member.receiver):
                    others = self.linker.members.find_overrides(member.receiver.type, member.function)
                    found |= {self.linker.bind(other, thing): PARAMETER for other in others}
            if found:
                return found
        return {}

    def _iterates_by_number(self, thing: Instance) -> bool:
        """What has no `__iter__` is asked for elements by number."""
        linker = self.linker
        dialect = linker.dialect(thing.type.unit)
        name, other = dialect.protocols.get("iter", ""), dialect.protocols.get("item", "")
        has_none = not name or linker.members.find(thing.type, name)[0] is None
        return has_none and bool(other) and isinstance(linker.members.find(thing.type, other)[0], Class)

    def _may_be_made(self, unit: View, scope: int, start: int, value: Value) -> bool:
        """Whether a value is an attribute or what a call gives, directly or through a variable or parameter."""
        if isinstance(value, Operated):
            return self._may_be_made(unit, scope, start, value.left)
        if not isinstance(value, str) or "." in value:
            return isinstance(value, (str, int, Iterated))
        return any(isinstance(bind.value, _GIVEN) for bind in unit.find(scope, value, start))
