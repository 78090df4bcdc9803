"""What the forms of expressions mean (see cq.model.code), one function each."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cq.graph.protocols import OWN_CONTAINERS
from cq.graph.things import TOP, UNKNOWN, Class, Container, External, Instance, Module, OwnClass
from cq.graph.unit import Unit
from cq.graph.values import EVERYTHING, INFERRED, NOTHING, PARAMETER, SCOPE, Values, join, raised
from cq.model.code import Value

if TYPE_CHECKING:
    from cq.graph.link import Linker

MAX_PATH = 12  # attributes in one chain of names


def _dotted(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    found = linker.evaluate(unit, scope, value[1], position)
    for name in value[2].split(".")[:MAX_PATH]:
        found = linker.attribute(found, name)
    return found


def _element(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    found = NOTHING
    values = linker.evaluate(unit, scope, value[1], position)
    keys: list[str] | list[None] = [None]
    if len(value) > 2 and any(isinstance(thing, (Container, Module)) for thing in values):
        key = value[2] if len(value) == 3 else ["tuple", *value[2:]]
        keys = linker.containers.find_keys_of(unit, scope, key, position) or keys
    hidden = linker.containers.find_hidden(unit, scope, value[1], keys[0], position) if len(keys) == 1 else ()
    for thing, level in values.items():
        if isinstance(thing, Container):
            for key in keys:
                found = join(found, raised(linker.containers.elements(thing, key, hidden), level))
        elif isinstance(thing, Module) and keys[0] is not None:
            for key in keys:
                found = join(found, linker.member(thing, str(key)[1:], level))
        elif isinstance(thing, (Class, OwnClass)):
            found = join(found, {thing: level})  # a generic with its parameters
        elif isinstance(thing, Instance):
            found = join(found, linker.protocols.run(thing, "item", level))
        elif isinstance(thing, External) and not thing.name.startswith(OWN_CONTAINERS):
            found = join(found, {thing: level})
        else:
            found = join(found, EVERYTHING if thing is TOP else linker.unknown)
    return join(found, linker.containers.items(unit, scope, value[1], position, keys, hidden))


def _contain(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    kind = value[1] if value[0] == "each" else value[0]
    return {linker.container(kind, unit, scope, position, value): SCOPE}


def _choose(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    found = NOTHING
    for inner in value[1:]:
        found = join(found, linker.evaluate(unit, scope, inner, position))
    return found


def _iterate(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    found = linker.protocols.iterate(linker.evaluate(unit, scope, value[1], position))
    return join(found, linker.containers.items(unit, scope, value[1], position, [None]))


def _enter(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    found = NOTHING
    for thing, level in linker.evaluate(unit, scope, value[1], position).items():
        if isinstance(thing, Instance):
            found = join(found, _enter_instance(linker, thing, level))
        elif isinstance(thing, Container) and thing.kind == "generator":
            found = join(found, raised(linker.containers.elements(thing), level))
        else:
            found = join(found, EVERYTHING if thing is TOP else {thing: level})
    return found


def _enter_instance(linker: Linker, thing: Instance, level: int) -> Values:
    for operation in ("enter", "aenter"):
        name = linker.dialect(thing.type.unit).protocols.get(operation)
        holder = None if name is None else linker.members.find(thing.type, name)[0]
        if isinstance(holder, External):  # of a base from outside: most give themselves
            return {thing: PARAMETER, UNKNOWN: PARAMETER}
        if holder is not None:
            return linker.protocols.run(thing, operation, level)
    return linker.unknown


def _same(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    return linker.evaluate(unit, scope, value[1], position)


def _make(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    return linker.made(linker.evaluate(unit, scope, value[1], position))


def _catch(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    """An instance of a class that is caught, or of one below it."""
    found: Values = {}
    for thing, level in linker.made(linker.evaluate(unit, scope, value[1], position)).items():
        is_raised = linker.callers.is_raised
        heirs = linker.callers.find_heirs(thing.type) if isinstance(thing, Instance) else []
        if not isinstance(thing, Instance) or not any(map(is_raised, heirs)) or is_raised(thing.type):
            found = join(found, {thing: level})
        for heir in heirs:
            found = join(found, {heir.instance: PARAMETER})
    return found


def _operate(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    found = NOTHING
    for thing, level in linker.evaluate(unit, scope, value[2], position).items():
        if isinstance(thing, Instance):
            found = join(found, linker.protocols.run(thing, value[1], level))
        elif isinstance(thing, Container) and value[1] in ("+", "|", "*", "-", "&", "^"):
            found = join(found, {thing: max(level, INFERRED)})
            for other, at in linker.evaluate(unit, scope, value[3], position).items() if value[1] in "+|^" else ():
                found = join(found, {other: max(at, INFERRED)} if isinstance(other, Container) else NOTHING)
        elif isinstance(thing, External):
            found = join(found, {thing: level})
        else:
            found = join(found, EVERYTHING if thing is TOP else linker.unknown)
    return found


def _all_of(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    return linker.containers.elements(value[1])


def _slice(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    found: Values = {}
    for thing, level in linker.evaluate(unit, scope, value[1], position).items():
        if isinstance(thing, Instance):
            found.update(linker.protocols.run(thing, "item", level))
        else:
            found[linker.containers.cut(thing, value[2], value[3]) if isinstance(thing, Container) else thing] = level
    return found


def _sent(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    return linker.calls.sent(unit, scope)


def _seen(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    return linker.evaluate(unit, scope, value[2], value[1])


def _at(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    return linker.evaluate(unit, value[1], value[3], value[2])


def _give(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    return linker.calls.called(linker.evaluate(unit, scope, value[1], position))


def _decorate(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    return linker.decorators.decorate(unit, unit.definitions[value[1]], value[2])


def _lambda(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    return {linker.function(unit, value[1]): SCOPE}


def _import(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    return linker.dialect(unit).resolve_import(linker, unit, value[1], value[2], value[3])


def _defined(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    return {linker.thing(unit, value[1]): SCOPE}


def _passed(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    return linker.calls.argued(unit, value[1], value[2])


OPERATIONS: dict[str, Callable[[Linker, Unit, int, Value, int], Values]] = {
    ".": _dotted,
    "[]": _element,
    "list": _contain,
    "tuple": _contain,
    "set": _contain,
    "dict": _contain,
    "each": _contain,
    "|": _choose,
    "iter": _iterate,
    "enter": _enter,
    "await": _same,
    "*": _same,
    "made": _make,
    "caught": _catch,
    "op": _operate,
    "slice": _slice,
    "all": _all_of,
    "sent": _sent,
    "seen": _seen,
    "at": _at,
    "gives": _give,
    "decorated": _decorate,
    "lambda": _lambda,
    "import": _import,
    "def": _defined,
    "param": _passed,
}
