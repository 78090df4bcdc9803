"""What the language's own functions do with the values that they are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from cq.graph.engine.view import View
from cq.graph.items import Written
from cq.graph.scopes import ANYWHERE, find_defined
from cq.graph.things import Bound, Class, Container, External, Function, OwnClass, Thing
from cq.graph.values import NOTHING, PARAMETER, Values, join, raised
from cq.language import load_known
from cq.model.code import (
    Attribute,
    Awaited,
    Constant,
    Dictionary,
    Each,
    Element,
    FunctionType,
    Imported,
    Integer,
    Iterated,
    Listing,
    ParameterOf,
    ReturnOf,
    Site,
    Spread,
    Text,
    Value,
    split_receiver,
)

if TYPE_CHECKING:
    from cq.graph.link import Linker

ContainerKind = Literal["promise", "list", "generator", "set", "map", "dict"]
ANY_TEXT = Constant("str")  # the key of a computed property, and of `[key: string]: T`


class Caller(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    of: tuple[str, ...]
    names: tuple[str, ...]
    arguments: tuple[int, ...]


class Library(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`known/library.toml`, which says what the fields are."""

    globals: frozenset[str]
    same_members: frozenset[str]
    same_value: frozenset[str]
    same_container: frozenset[str]
    one_element: frozenset[str]
    function_members: frozenset[str]
    object_members: frozenset[str]
    containers: dict[ContainerKind, tuple[str, ...]]
    kinds: dict[str, str]
    callers: tuple[Caller, ...]

    def find_container(self, type_name: str) -> ContainerKind | None:
        return next((kind for kind, names in self.containers.items() if type_name in names), None)

    def list_callers(self) -> dict[str, int | str | tuple[int, ...]]:
        """Name -> the argument that it calls, or several."""
        return {
            f"{holder}{name}": each.arguments[0] if len(each.arguments) == 1 else each.arguments
            for each in self.callers
            for holder in each.of
            for name in each.names
        }


LIBRARY = load_known("javascript", "library", Library)


def call_function(linker: Linker, thing: External, unit: View, number: int) -> Values | None:
    """What a call of a function gives, where it passes values on; None: it does not."""
    site = unit.sites[number]
    name = thing.name.removeprefix("builtins.")
    if thing.owner is not None:
        return _call_method(linker, thing.owner, name.rpartition(".")[2], unit, number)
    if name == "Function.bind":
        return _bind(linker, unit, number)
    if name in ("Map().get", "WeakMap().get") and site.args and isinstance(site.callee, str):
        keys = linker.containers.find_keys_of(unit, site.scope, site.args[0], site.start) or [None]
        return linker.containers.items(unit, site.scope, split_receiver(site.callee), site.start, keys) or None
    made = _contain(name, site)
    if made is not None:
        return {linker.held(unit, number, made): 0}
    if not site.args:
        return None
    first = site.args[0]
    if name == "require" and isinstance(first, Text):
        return linker.dialect(unit).resolve_import(linker, unit, 0, first.value, "=")
    if name in ("require", "import"):
        return linker.unknown
    return linker.evaluate(unit, site.scope, first, site.start) if name in LIBRARY.same_value else None


def _contain(name: str, site: Site) -> Written | None:
    """The container that one of the language's own functions gives."""
    first = site.args[0] if site.args else None
    match name:
        case "Set" | "Array" if not site.args:
            return Listing("list")  # made empty, to be filled
        case _ if not site.args:
            return None
        case "import" if isinstance(first, Text):
            return Each("promise", Imported(0, first.value, "*"))
        case "Object.assign" if isinstance(first, Dictionary):
            return Dictionary((None,) * len(site.args), site.args)
        case "Object.keys":
            return Each("list", ANY_TEXT)
        case "Map":
            return Each("map", Element(Iterated(first), (Integer(1),)))
        case "Object.values":
            return Each("list", Element(first, (None,)))
        case "Object.entries":
            return Each("list", Listing("list", (ANY_TEXT, Element(first, (None,)))))
        case "Array.of":
            return Listing("list", site.args)
        case "Array.from" | "Set":
            return Each("list", Iterated(first))
        case "Promise" | "Promise.reject":
            return Each("promise", None)
        case "Promise.resolve":
            return Each("promise", Awaited(first))
        case "Promise.all":
            return Each("promise", Each("list", Awaited(Iterated(first))))
        case _:
            return None


def _bind(linker: Linker, unit: View, number: int) -> Values:
    """`f.bind(receiver, a)` is f with its first parameters given."""
    site = unit.sites[number]
    found: Values = {}
    for thing, level in linker.evaluate(unit, site.scope, _find_receiver(site.callee), site.start).items():
        if isinstance(thing, Function):
            found[linker.bind(thing, None, max(0, len(site.args) - 1))] = level
        else:
            found[thing] = level
    return found


def _call_method(linker: Linker, owner: Container, name: str, unit: View, number: int) -> Values | None:
    site = unit.sites[number]
    first, receiver = site.args[0] if site.args else None, _find_receiver(site.callee)
    made: Written | None = None
    if owner.kind == "promise":
        if name != "then":
            return {owner: 0}
        made = Each("promise", Awaited(ReturnOf(first)))
    elif owner.kind in ("function", "dict"):
        return linker.unknown
    elif name == "map":
        made = Each("list", ReturnOf(first))
    elif name == "flatMap":
        made = Each("list", Iterated(ReturnOf(first)))
    elif name == "entries" and owner.kind == "list":
        made = Each("list", Listing("list", (Constant("int"), Iterated(receiver))))
    elif name == "concat" and owner.kind == "list":
        made = Listing("list", tuple([Spread(part) for part in (receiver, *site.args)]))
    elif name in LIBRARY.same_container or (name == "values" and owner.kind != "map"):
        return {owner: 0}
    elif name in LIBRARY.one_element:
        return linker.containers.elements(owner)
    if made is not None:
        return {linker.held(unit, number, made): 0}
    return linker.unknown if name in ("reduce", "entries", "values", "reduceRight") else None


def find_passed(linker: Linker, thing: Thing, at: int, number: int) -> Values:
    """What a function that is handed over as argument `at` gets for its parameter `number`."""
    if isinstance(thing, External) and thing.owner is not None:
        name = thing.name.rpartition(".")[2]
        is_element = number == (1 if name.startswith("reduce") else 0) or (number == 1 and name == "sort")
        calls = at == 0 and is_element and name in LIBRARY.callers[0].names
        return linker.containers.elements(thing.owner) if calls else linker.unknown
    skipped = 0
    if isinstance(thing, (Class, OwnClass)):
        kind = thing if isinstance(thing, Class) else thing.type
        holder, binds, _, _ = linker.members.find(kind, "constructor")
        starts = find_defined(binds[:1])
        if not isinstance(holder, Class) or not starts:
            return linker.unknown
        thing, skipped = linker.thing(holder.unit, starts[0]), 1
    elif isinstance(thing, Bound):
        thing, skipped = thing.function, thing.skipped if thing.receiver is None else 1
    if not isinstance(thing, Function):
        return linker.unknown
    unit, definition = thing.unit, thing.unit.contents(thing.definition)
    if at + skipped >= len(definition.parameters):
        return linker.unknown
    parameter = definition.parameters[at + skipped]
    found = NOTHING
    for made in linker.make(unit, definition.scope, parameter.type, ANYWHERE):
        kind = made.value if isinstance(made, Container) else None
        if isinstance(made, Container) and isinstance(kind, FunctionType) and len(kind.parameters) > number:
            found = join(found, linker.make(made.unit, made.scope, kind.parameters[number], made.position))
    if parameter.type is None:
        for place in unit.calls(parameter.name):
            site = unit.sites[place]
            binds = unit.find(site.scope, parameter.name, site.start) if site.callee == parameter.name else ()
            passed = site.args[number] if number < len(site.args) else None
            if any(bind.value == ParameterOf(definition.start, at + skipped) for bind in binds):
                found = join(found, raised(linker.evaluate(unit, site.scope, passed, site.start), PARAMETER))
    return found or linker.unknown


def _find_receiver(callee: Value) -> Value:
    """What a method is called on."""
    if not isinstance(callee, Attribute):
        return split_receiver(callee)
    path = callee.path.rpartition(".")[0]
    return Attribute(callee.base, path) if path else callee.base
