"""What the forms of expressions mean (see cq.model.code), one function each."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from cq.graph.engine.view import View
from cq.graph.protocols import OWN_CONTAINERS
from cq.graph.things import TOP, UNKNOWN, Class, Container, External, Instance, Module, OwnClass
from cq.graph.values import EVERYTHING, INFERRED, NOTHING, PARAMETER, SCOPE, Values, join, raised
from cq.model.code import (
    NULL,
    AliasOf,
    Attribute,
    Augmented,
    Awaited,
    Boolean,
    Bounds,
    Caught,
    Choice,
    ClosureParameter,
    Constant,
    Decorated,
    Defined,
    Dictionary,
    Each,
    Element,
    ElementsOf,
    Entered,
    Form,
    FunctionType,
    Imported,
    Indexed,
    InstanceOf,
    Integer,
    Item,
    Iterated,
    Joined,
    Key,
    Lambda,
    Listing,
    Literals,
    MemberType,
    MethodOf,
    NamedType,
    ObjectType,
    OnReceiver,
    Operated,
    OperatorMethod,
    ParameterOf,
    PartOf,
    ResultOf,
    ReturnOf,
    Seen,
    SeenIn,
    Sent,
    Slice,
    Spread,
    SuperObject,
    Text,
    TuplePart,
    Typed,
    TypeOf,
    Unwrapped,
)

if TYPE_CHECKING:
    from cq.graph.link import Linker

MAX_PATH = 12  # attributes in one chain of names


def evaluate_form(linker: Linker, unit: View, scope: int, form: Form, position: int) -> Values:
    """What an expression can be that is neither a name nor a call. The most frequent forms come first."""
    match form:
        case Constant() | Text() | Integer() | Boolean() | Joined():
            return _find_literal(linker, unit, form)
        case Attribute():
            return _read_attribute(linker, unit, scope, form, position)
        case Defined():
            return {linker.thing(unit, form.start): SCOPE}
        case Imported():
            return linker.dialect(unit).resolve_import(linker, unit, form.level, form.module, form.name)
        case ParameterOf():
            return linker.calls.argued(unit, form.start, form.number)
        case Element():
            return _find_element(linker, unit, scope, form, position)
        case Choice():
            found = NOTHING
            for inner in form.options:
                found = join(found, linker.evaluate(unit, scope, inner, position))
            return found
        case Listing() | Dictionary() | Each():
            return linker.dialect(unit).contain(linker, unit, scope, form, position)
        case Iterated():
            return linker.dialect(unit).iterate(linker, unit, scope, form.value, position)
        case Lambda():
            return {linker.function(unit, form.start): SCOPE}
        case Operated():
            return _operate(linker, unit, scope, form, position)
        case Seen():
            return linker.evaluate(unit, scope, form.value, form.offset)
        case SeenIn():
            return linker.evaluate(unit, form.scope, form.value, form.offset)
        case Typed():
            return linker.dialect(unit).cast(linker, unit, scope, form, position)
        case Entered():
            return _enter(linker, unit, scope, form, position)
        case Awaited():
            return _await(linker, unit, scope, form, position)
        case Spread():
            return linker.evaluate(unit, scope, form.value, position)
        case InstanceOf():
            return linker.made(linker.evaluate(unit, scope, form.kind, position))
        case Caught():
            return _catch(linker, unit, scope, form, position)
        case Slice():
            return _slice(linker, unit, scope, form, position)
        case Sent():
            return linker.calls.sent(unit, scope)
        case ResultOf():
            return linker.calls.called(linker.evaluate(unit, scope, form.function, position))
        case Decorated():
            return linker.decorators.decorate(unit, unit.definitions[form.start], form.rank)
        case ElementsOf():
            return linker.containers.elements(linker.containers.get_numbered(form.container))
        case (
            SuperObject() | ReturnOf() | MethodOf() | Item() | Unwrapped() | PartOf() | TuplePart() | Indexed()
            | ClosureParameter() | OperatorMethod() | OnReceiver()
        ):  # fmt: skip
            return linker.dialect(unit).operate(linker, unit, scope, form, position)
        case FunctionType() | ObjectType() | Bounds() | TypeOf() | MemberType() | AliasOf() | NamedType() | Augmented():
            return linker.unknown  # a type; what stands in Code.runs alone
        case _:
            assert_never(form)


_LITERALS = {Text: "str", Joined: "str", Integer: "int", Boolean: "bool"}


def _find_literal(linker: Linker, unit: View, form: Literals) -> Values:
    if form == NULL:
        return NOTHING
    name = form.name if isinstance(form, Constant) else _LITERALS[type(form)]
    return linker.dialects[unit.language].find_literal(linker, name)


def _read_attribute(linker: Linker, unit: View, scope: int, form: Attribute, position: int) -> Values:
    found = linker.evaluate(unit, scope, form.base, position)
    for name in form.path.split(".")[:MAX_PATH]:
        found = linker.attribute(found, name)
    return found


def _find_element(linker: Linker, unit: View, scope: int, form: Element, position: int) -> Values:
    found = NOTHING
    values = linker.evaluate(unit, scope, form.base, position)
    keys: list[Key] | list[None] = [None]
    if form.keys and any(isinstance(thing, (Container, Module)) for thing in values):
        key = form.keys[0] if len(form.keys) == 1 else Listing("tuple", form.keys)
        keys = linker.containers.find_keys_of(unit, scope, key, position) or keys
    hidden = linker.containers.find_hidden(unit, scope, form.base, keys[0], position) if len(keys) == 1 else ()
    for thing, level in values.items():
        if isinstance(thing, Container):
            for key in keys:
                found = join(found, raised(linker.containers.elements(thing, key, hidden), level))
        elif isinstance(thing, Module) and keys[0] is not None:
            for key in keys:
                named = linker.member(thing, key.value, level) if isinstance(key, Text) else linker.unknown
                found = join(found, named)
        elif isinstance(thing, (Class, OwnClass)):
            found = join(found, {thing: level})  # a generic with its parameters
        elif isinstance(thing, Instance):
            found = join(found, linker.protocols.run(thing, "item", level))
        elif isinstance(thing, External) and not thing.name.startswith(OWN_CONTAINERS):
            found = join(found, {thing: level})
        else:
            found = join(found, EVERYTHING if thing is TOP else linker.unknown)
    return join(found, linker.containers.items(unit, scope, form.base, position, keys, hidden))


def _await(linker: Linker, unit: View, scope: int, form: Awaited, position: int) -> Values:
    """What promises hold; everything else is itself."""
    values = linker.evaluate(unit, scope, form.value, position)
    if not any(isinstance(thing, Container) and thing.kind == "promise" for thing in values):
        return values
    found = NOTHING
    for thing, level in values.items():
        if isinstance(thing, Container) and thing.kind == "promise":
            found = join(found, raised(linker.containers.elements(thing), level))
        else:
            found = join(found, {thing: level})
    return found


def _enter(linker: Linker, unit: View, scope: int, form: Entered, position: int) -> Values:
    found = NOTHING
    for thing, level in linker.evaluate(unit, scope, form.value, position).items():
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


def _catch(linker: Linker, unit: View, scope: int, form: Caught, position: int) -> Values:
    """An instance of a class that is caught, or of one below it."""
    found: Values = {}
    for thing, level in linker.made(linker.evaluate(unit, scope, form.kind, position)).items():
        is_raised = linker.callers.is_raised
        heirs = linker.callers.find_heirs(thing.type) if isinstance(thing, Instance) else []
        if not isinstance(thing, Instance) or not any(map(is_raised, heirs)) or is_raised(thing.type):
            found = join(found, {thing: level})
        for heir in heirs:
            found = join(found, {heir.instance: PARAMETER})
    return found


def _operate(linker: Linker, unit: View, scope: int, form: Operated, position: int) -> Values:
    found = NOTHING
    for thing, level in linker.evaluate(unit, scope, form.left, position).items():
        if isinstance(thing, Instance):
            found = join(found, linker.protocols.run(thing, form.operator, level))
        elif isinstance(thing, Container) and form.operator in ("+", "|", "*", "-", "&", "^"):
            found = join(found, {thing: max(level, INFERRED)})
            others = linker.evaluate(unit, scope, form.right, position) if form.operator in "+|^" else NOTHING
            for other, at in others.items():
                found = join(found, {other: max(at, INFERRED)} if isinstance(other, Container) else NOTHING)
        elif isinstance(thing, External):
            found = join(found, {thing: level})
        else:
            found = join(found, EVERYTHING if thing is TOP else linker.unknown)
    return found


def _slice(linker: Linker, unit: View, scope: int, form: Slice, position: int) -> Values:
    found: Values = {}
    for thing, level in linker.evaluate(unit, scope, form.base, position).items():
        if isinstance(thing, Instance):
            found.update(linker.protocols.run(thing, "item", level))
        else:
            found[linker.containers.cut(thing, form.bounds) if isinstance(thing, Container) else thing] = level
    return found
