"""Which methods run in the place of the one that a call means: those of classes below that are handed over as `self`,
of what calls pass for a parameter whose type names a class above, and what decorators put around a function."""

from __future__ import annotations

from cq.graph.callers import is_open, is_own
from cq.graph.engine.view import View
from cq.graph.link import Linker
from cq.graph.things import UNKNOWN, Bound, Class, Function, Instance, OwnClass, Thing
from cq.graph.values import NAME, PARAMETER, Values
from cq.model.code import Attribute, ParameterOf, Site, split_receiver


def find_dispatched(linker: Linker, unit: View, site: Site, function: Function | None) -> Values:
    """Methods that take the place of one called on `self` or `super()`, in the classes that calls are known to hand
    over as `self`; itself among them unless it is known that it never runs here. Of a name that the class itself
    does not have (None) those of all classes, or none."""
    around = linker.callers.method_around(unit, site.scope)
    if around is None or around.owner is None or (function is not None and function.owner is None):
        return {}
    found: Values = {}
    name = site.name if function is None else function.definition.name
    behind = around.owner if site.kind == "super" else None
    receivers = linker.callers.receivers(around)
    is_open = UNKNOWN in receivers or not receivers  # nobody is known to call it: then somebody unknown does
    heirs = linker.callers.find_heirs(around.owner) if is_open and function is not None else []
    if is_open and len(receivers) < 2 and not _have_own(linker, heirs, name):
        return {}
    if function is not None and linker.members.find_method(around.owner, name, behind, function) is not function:
        return {}  # of another object, or `super(Other, self)`
    for kind, level in receivers.items():
        if not isinstance(kind, Class) or (level == NAME and _is_only_above(linker, kind, receivers)):
            continue
        other = linker.members.find_method(kind, name, behind, function)
        if other is not None:
            found[other] = PARAMETER
        elif function is None:
            return {}
    if function is None:
        return {} if is_open else found
    if is_open:
        # The class itself, if others stand below it, may be handed over too only where code makes one.
        kinds = [around.owner, *heirs]
        is_likely = around.owner in receivers or not heirs or linker.callers.is_made(around.owner)
        for kind in kinds if is_likely else heirs:
            other = linker.members.find_method(kind, name, behind, function)
            if other is not None:
                found[other] = PARAMETER
    elif found and function not in found and linker.callers.is_made(around.owner):
        found[function] = PARAMETER
    return found


def find_declared(linker: Linker, unit: View, site: Site, receiver: Instance | OwnClass, function: Function) -> Values:
    """The methods that may run in the place of one that is called on what a type names: those of classes below it; of a
    parameter whose callers are known, of what they pass."""
    passed = _find_passed(linker, unit, site, receiver, function)
    if passed:
        return passed
    found: Values = {function: PARAMETER}
    for other in linker.members.find_overrides(receiver.type, function):
        found[other] = PARAMETER
    return found


def find_typed_receiver(linker: Linker, unit: View, site: Site) -> Instance | OwnClass | None:
    """What a static method is read off, which does not know it: where a type says what that is."""
    base = site.callee.base if isinstance(site.callee, Attribute) else split_receiver(site.callee)
    values = {} if base is None else linker.evaluate(unit, site.scope, base, site.start)
    found = [thing for thing in values if is_open(thing) and not is_own(thing)]
    return found[0] if len(found) == 1 else None


def is_only_method(linker: Linker, unit: View, number: int, values: Values) -> bool:
    """Whether a call on what is only partly known means the one method that is known to come there, since nothing else
    has a method of that name."""
    site, dialect = unit.sites[number], linker.dialect(unit)
    known = [thing for thing in values if thing is not UNKNOWN]
    if len(known) != 1 or site.name in dialect.common_members or not dialect.is_method_call(site):
        return False
    thing = known[0]
    function = thing.function if isinstance(thing, Bound) and isinstance(thing.receiver, Instance) else None
    if not isinstance(function, Function) or function.definition.name != site.name:
        return False
    return linker.documents.find_only_method(site.name) == (function.unit, function.definition)


def _find_passed(linker: Linker, unit: View, site: Site, receiver: Instance | OwnClass, function: Function) -> Values:
    """The methods of what calls pass for a parameter that is called on, where its type names a class above; the
    function itself among them if code makes an instance of just that class. None where something else is passed."""
    head, _, rest = site.callee.partition(".") if isinstance(site.callee, str) else ("", "", "")
    binds = unit.find(site.scope, head, site.start) if rest == site.name else ()
    value = binds[0].value if len(binds) == 1 else None
    found: Values = {}
    if not isinstance(value, ParameterOf):
        return found
    holder = linker.thing(unit, value.start)
    for thing in linker.calls.passed(holder, value.number) if isinstance(holder, Function) else ():
        if not isinstance(thing, Instance) or thing.own or thing.declared:
            return {}
        members = linker.member(thing, site.name, PARAMETER)
        for member in members:
            other = member.function if isinstance(member, Bound) else member
            if isinstance(other, Function):
                found[other] = PARAMETER
    if found and linker.callers.is_made(receiver.type):
        found[function] = PARAMETER
    return found


def without_givers(linker: Linker, others: Values) -> Values:
    """Of what a decorator may give, without those that would only give another of it when called: what
    `@trace(n=1)` gives is no wrapper yet."""
    if len(others) < 2:
        return others
    return {
        other: at
        for other, at in others.items()
        if not isinstance(other, Function) or not (linker.calls.returned(other).keys() & others.keys() - {other})
    }


def is_wrapping(linker: Linker, thing: Thing) -> bool:
    """Whether a function calls a parameter of one around it."""
    function = thing.function if isinstance(thing, Bound) else thing
    if not isinstance(function, Function):
        return isinstance(thing, Instance)
    unit, definition = function.unit, function.unit.contents(function.definition)
    around = unit.by_symbol.get(definition.scope)
    while around is not None and around.kind == "function":
        for parameter in around.parameters:
            for number in unit.calls(parameter.name):
                site = unit.sites[number]
                if site.scope == definition.symbol and site.callee == parameter.name:
                    return True
        around = unit.by_symbol.get(around.scope)
    return False


def _have_own(linker: Linker, kinds: list[Class], name: str) -> bool:
    """Whether one of the classes has a name of its own, or may have it from another base."""
    has_own = [bool(kind.unit.bound(kind.definition.symbol, name)) for kind in kinds]
    return any(has_own) or any(len(kind.unit.contents(kind.definition).bases) > 1 for kind in kinds)


def _is_only_above(linker: Linker, kind: Class, receivers: Values) -> bool:
    """Whether another class that is handed over inherits from a class, and no call makes just that one."""
    heirs = (k for k, level in receivers.items() if isinstance(k, Class) and level < NAME and k is not kind)
    return any(kind in linker.members.order(heir) for heir in heirs) and not linker.callers.is_made(kind)
