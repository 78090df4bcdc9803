"""What functions of Python's standard library do with the values that they are given: `known/functions.toml` says it
of most, this module of those that do something of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import msgspec

from cq.graph.engine.view import View
from cq.graph.items import Written
from cq.graph.scopes import ROOT
from cq.graph.things import Bound, Class, Container, External, Function, Instance
from cq.graph.values import EVERYTHING, NOTHING, PARAMETER, Values, join
from cq.language import load_known
from cq.languages.python.declarations import Declarations
from cq.languages.python.modules import Modules
from cq.model.code import (
    Attribute,
    Choice,
    Constant,
    Dictionary,
    Each,
    Element,
    Entered,
    Integer,
    Iterated,
    Joined,
    Listing,
    Name,
    Operated,
    ResultOf,
    Site,
    Spread,
    Text,
    Value,
    split_receiver,
)

if TYPE_CHECKING:
    from cq.graph.link import Linker

MAKING = "builtins.type.__call__"
CONSTRUCTORS = ("__init__", "__new__")
_NAMESPACES = ("builtins.locals", "builtins.vars")
_DEFAULTS = frozenset({"default", "default_factory", "factory"})
_FILLED = frozenset({"builtins.list", "builtins.set", "collections.deque"})  # made empty, to be filled
ContainerKind = Literal["list", "tuple", "set"]
Passed = tuple[tuple[Value, ...], tuple[tuple[str, Value], ...]]  # arguments by place and by keyword


class KnownFunctions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`known/functions.toml`, which says what the fields are."""

    same_value: frozenset[str]
    entering: frozenset[str]
    passing: frozenset[str]
    passing_elements: frozenset[str]
    records: frozenset[str]
    common: frozenset[str]
    containers: dict[ContainerKind, tuple[str, ...]]
    callers: dict[str, tuple[str, ...]]
    templates: dict[str, tuple[str, ...]]
    runs: dict[str, tuple[str, ...]]
    element_runs: dict[str, tuple[str, ...]]

    def list_callers(self) -> dict[str, int | str | tuple[int, ...]]:
        """Function -> the argument that it calls."""
        return {name: int(at) if at.isdigit() else at for at, names in self.callers.items() for name in names}


KNOWN = load_known("python", "functions", KnownFunctions)
TEMPLATES = {name: method for method, names in KNOWN.templates.items() for name in names}
_CONTAINERS: dict[str, ContainerKind] = {name: kind for kind, names in KNOWN.containers.items() for name in names}


class LibraryCalls:
    """Calls of functions that no file of the repository defines."""

    def __init__(self, modules: Modules, declarations: Declarations) -> None:
        self._modules, self._declarations = modules, declarations
        self._made_up: dict[tuple[View, int], Each] = {}
        self._handed: dict[tuple[View, int, int | str], Site | None] = {}

    def call(self, linker: Linker, thing: External, unit: View, number: int) -> Values | None:
        """What a call gives; None where nothing is known of it."""
        site = unit.sites[number]
        if thing.owner is not None:
            return self._call_container(linker, thing, thing.owner, unit, number)
        name, args = thing.name, site.args

        def value(at: int) -> Values:
            return linker.evaluate(unit, site.scope, args[at], site.start)

        made = _contain(name, site)
        if made is not None:
            return {linker.held(unit, number, made): 0}
        match name, args:
            case "builtins.super", _:
                return self._super(linker, unit, number)
            case _, _ if name == MAKING:
                return {kind.instance: PARAMETER for kind in _find_made(linker, unit, site)} or None
            case "builtins.dict", _:
                return {linker.held(unit, number, _copy_dictionary(linker, unit, site)): 0}
            case "builtins.globals", _:
                return {linker.module(unit.path): 1}
            case _, () if name in _NAMESPACES and site.scope == ROOT:
                return {linker.module(unit.path): 1}
            case "dataclasses.field" | "attrs.field" | "attr.field", _:
                found = NOTHING
                for key, inner in site.keywords:
                    given = linker.evaluate(unit, site.scope, inner, site.start) if key in _DEFAULTS else NOTHING
                    found = join(found, given if key == "default" else linker.calls.called(given))
                return found or linker.unknown
            case _, ():
                return None
            case "builtins.getattr", (_, key, *_):
                return _get_attribute(linker, unit, site, key, value)
            case "builtins.object.__new__", _:
                return linker.made(value(0))
            case "builtins.type", (_,):
                found = NOTHING
                for inner, level in value(0).items():
                    found = join(found, linker.member(inner, "__class__", level))
                return found
            case "functools.reduce", _:
                return linker.calls.called(value(0))
            case "builtins.next", _:
                return linker.protocols.advance(value(0))
            case ("builtins.sum", _) | ("builtins.max" | "builtins.min", (_,)):
                return linker.protocols.iterate(value(0))
            case "builtins.max" | "builtins.min", _:
                found = NOTHING
                for at in range(len(args)):
                    found = join(found, value(at))
                return found
            case _, _ if name in KNOWN.same_value:
                return value(0)
            case _, _ if name in KNOWN.entering:
                return linker.evaluate(unit, site.scope, Entered(args[0]), site.start)
            case "typing.cast" | "typing_extensions.cast", (kind, _):
                return linker.make(unit, site.scope, kind, site.start)
            case "functools.partial" | "functools.partialmethod", _:
                return _give_first(linker, value(0), len(args) - 1)
            case "builtins.staticmethod" | "builtins.classmethod", _:
                return _give_first(linker, value(0), int(name.endswith("classmethod")))
            case "importlib.import_module" | "builtins.__import__", _:
                found = NOTHING
                for text in linker.containers.find_keys_of(unit, site.scope, args[0], site.start) or [None]:
                    module = self._modules.find_module(linker, unit, text.value) if isinstance(text, Text) else None
                    found = join(found, linker.unknown if module is None else {module: 1})
                return found
            case "builtins.eval", (Text(value=text), *_) if text.isidentifier():
                return linker.evaluate(unit, site.scope, Name(text), site.start)
            case "builtins.vars" | "builtins.eval" | "builtins.property", _:
                return linker.unknown
            case _:
                return None

    def _super(self, linker: Linker, unit: View, number: int) -> Values:
        site = unit.sites[number]
        method = unit.by_symbol.get(site.scope)
        while method is not None:
            holder = unit.by_symbol.get(method.scope)
            if holder is not None and holder.kind == "class" and method.kind == "function":
                break
            method = holder
        if method is None:
            return linker.unknown
        function = linker.thing(unit, method.start)
        assert isinstance(function, Function)
        receiver, kind = linker.dialect(unit).receiver(linker, function), function.owner
        if site.args:
            named = self._declarations.find_static(linker, unit, site.scope, site.args[0], site.start)
            kind = named if isinstance(named, Class) else None
        if receiver is None or kind is None:
            return linker.unknown
        return {linker.super_of(kind, receiver, function): 2}

    def _call_container(
        self, linker: Linker, thing: External, owner: Container, unit: View, number: int
    ) -> Values | None:
        name = thing.name.rpartition(".")[2]
        site = unit.sites[number]
        if name in ("get", "pop", "setdefault", "popleft", "__getitem__", "__next__"):
            key = site.args[0] if owner.kind == "dict" and site.args else None
            found = NOTHING
            for constant in linker.containers.find_keys_of(unit, site.scope, key, site.start) or [None]:
                found = join(found, linker.containers.elements(owner, constant))
            if len(site.args) > 1:
                found = join(found, linker.evaluate(unit, site.scope, site.args[1], site.start))
            return found
        if name == "popitem":
            pair = Listing("tuple", (Constant("str"), Element(_read_holder(site), (None,))))
            return {linker.held(unit, number, pair): 0}
        if name in ("copy", "difference", "intersection", "union", "symmetric_difference"):
            return {owner: 0}
        if owner.kind == "dict" and name in ("values", "items") and not owner.typed:
            inner = linker.containers.name_elements(owner)
            value = Each("list", Listing("tuple", (Constant("str"), inner)) if name == "items" else inner)
            value = self._made_up.setdefault((unit, number), value)
            return {linker.container("list", owner.unit, owner.scope, owner.position, value): 0}
        if owner.kind == "dict" and name == "values":
            return {linker.container("list", owner.unit, owner.scope, owner.position, owner.value, typed=True): 0}
        return linker.unknown if owner.kind in ("dict", "generator") or owner.typed else None

    def find_handed(self, thing: External, unit: View, number: int, at: int | str) -> Site | None:
        """A call as a function makes it of the argument `at` that it is handed."""
        key = (unit, number, at)
        if key not in self._handed:
            site = unit.sites[number]
            passed, keywords = _find_passed(thing.name, site, at)
            self._handed[key] = Site(site.scope, site.start, -1, None, passed, keywords) if passed or keywords else None
        return self._handed[key]


def find_ran(linker: Linker, thing: External, unit: View, number: int) -> Values:
    """The methods of the repository's classes that a function of the language runs."""
    found, site = NOTHING, unit.sites[number]
    for kind in _find_made(linker, unit, site) if thing.name == MAKING else ():
        for name in CONSTRUCTORS:
            found = join(found, linker.member(kind.instance, name, PARAMETER))
    name = TEMPLATES.get(thing.name)
    if name is not None:
        given = linker.evaluate(unit, site.scope, _read_holder(site), site.start)
        held: Values = {inner: PARAMETER for inner in given if isinstance(inner, Instance)}
        is_begun = name.endswith("_")
        found = join(found, linker.members.find_begun(held, name) if is_begun else linker.attribute(held, name))
    return {method: PARAMETER for method in found if isinstance(method, (Bound, Function))}


def _contain(name: str, site: Site) -> Written | None:
    """The container that a function of the language gives."""
    args = site.args
    match name, args:
        case _, () if name in _FILLED:
            return Listing(_CONTAINERS[name])
        case "itertools.chain", (_, _, *_):
            given = [Iterated(arg.value if isinstance(arg, Spread) else arg) for arg in args]
            return Each("list", Choice(tuple(given)))
        case _, (first, *_) if name in _CONTAINERS:
            return Each(_CONTAINERS[name], Iterated(first))
        case "collections.defaultdict", (first, *_):
            return Each("dict", ResultOf(first))
        case "itertools.chain.from_iterable", (first, *_):
            return Each("list", Iterated(Iterated(first)))
        case "builtins.filter", (_, second):
            return Each("list", Iterated(second))
        case "builtins.enumerate", (first, *_):
            return Each("list", Listing("tuple", (Constant("int"), Iterated(first))))
        case "builtins.zip", (_, *_):
            return Each("list", Listing("tuple", tuple([Iterated(arg) for arg in args])))
        case "builtins.map" | "itertools.starmap", (first, *_):
            return Each("list", ResultOf(first))
        case _:
            return None


def _get_attribute(linker: Linker, unit: View, site: Site, name: Value, value: Callable[[int], Values]) -> Values:
    """`getattr(holder, name)`, with what is given for one that is not there."""
    found = value(2) if len(site.args) > 2 else NOTHING
    for text in linker.containers.find_keys_of(unit, site.scope, name, site.start) or [None]:
        if isinstance(text, Text) and text.value.isidentifier():
            found = join(found, linker.attribute(value(0), text.value))
        else:
            found = join(found, linker.unknown)
            begin, end = _find_ends(unit, site.scope, name, site.start)
            found = join(found, linker.members.find_begun(value(0), begin, end)) if begin or end else found
    return found


def _copy_dictionary(linker: Linker, unit: View, site: Site) -> Written:
    """`dict(x)` copies a dictionary, or is made of pairs; `dict(a=1)`."""
    args = site.args
    if len(args) == 1:
        given = linker.evaluate(unit, site.scope, args[0], site.start)
        if any(isinstance(thing, Container) and thing.kind != "dict" for thing in given):
            return Each("dict", Element(Iterated(args[0]), (Integer(1),)))
    keys = [None if key == "**" else Text(key) for key, _ in site.keywords]
    return Dictionary((*(None for _ in args), *keys), (*args, *(value for _, value in site.keywords)))


def _find_made(linker: Linker, unit: View, site: Site) -> list[Class]:
    """The classes that `super().__call__()` in a metaclass makes instances of."""
    method = linker.callers.method_around(unit, site.scope)
    return [] if method is None or method.owner is None else linker.callers.find_instances(method.owner)


def _find_ends(unit: View, scope: int, value: Value, position: int) -> tuple[str, str]:
    """How a text begins and ends that is put together: `"visit_" + kind`, also under a name."""
    if isinstance(value, str) and "." not in value:
        binds = unit.find(scope, value, position)
        value = binds[0].value if len(binds) == 1 else None
    match value:
        case Operated(operator="+", left=Text(value=begin)) | Operated(operator="%", left=Text(value=begin)):
            return begin.partition("%")[0], ""
        case Operated(operator="+", right=Text(value=end)):
            return "", end
        case Joined(parts=(first, *_, last)):
            ends = [part.value if isinstance(part, Text) else "" for part in (first, last)]
            return ends[0], ends[1]
        case _:
            return "", ""


def _give_first(linker: Linker, values: Values, skipped: int) -> Values:
    """Functions of which the first parameters are given already."""
    if values is EVERYTHING:
        return values
    found: Values = {}
    for thing, level in values.items():
        if isinstance(thing, Function):
            found[linker.bind(thing, None, skipped)] = level
        elif isinstance(thing, Bound) and thing.receiver is None:
            found[linker.bind(thing.function, None, thing.skipped + skipped)] = level
        else:
            found[thing] = level
    return found


def _find_passed(name: str, site: Site, at: int | str) -> Passed:
    """What a function passes to the one that it is handed."""
    args, rest = site.args, site.args[1:]
    if at == "key":
        if name == "builtins.list().sort":
            receiver = split_receiver(site.callee)
            args = () if receiver is None else (receiver,)
        elif name in ("builtins.max", "builtins.min") and rest:
            args = (Listing("list", args),)
        return tuple([Iterated(value) for value in args[:1]]), ()
    if at == "target":
        return tuple([Spread(value) for name, value in site.keywords if name == "args"]), ()
    if at:
        return (), ()
    if name in ("functools.partial", "functools.partialmethod"):
        return rest, site.keywords
    if name in KNOWN.passing:
        return rest, ()
    if name == "functools.reduce":
        elements = [Iterated(value) for value in rest[:1]]
        return (*(Choice((value, *rest[1:])) for value in elements), *elements), ()
    return (tuple([Iterated(value) for value in rest]), ()) if name in KNOWN.passing_elements else ((), ())


def _read_holder(site: Site) -> Value:
    """What the method that a call names is read off."""
    return site.callee.base if isinstance(site.callee, Attribute) else split_receiver(site.callee)
