"""Who calls a function, on which receivers, and what they pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeGuard

from cq.graph.corpus import MAX_HOLDERS
from cq.graph.engine.view import View
from cq.graph.things import APPLIED, TOP, UNKNOWN, Bound, Class, External, Function, Instance, OwnClass, Thing
from cq.graph.values import NAME, NOTHING, PARAMETER, Values, join
from cq.language import describe
from cq.model.code import (
    Choice,
    Defined,
    Dictionary,
    Element,
    Integer,
    Lambda,
    Listing,
    Literals,
    Name,
    ParameterOf,
    Site,
    Spread,
    Text,
    Value,
)

if TYPE_CHECKING:
    from cq.graph.link import Linker

_APPLYING = frozenset({"call", "apply"})
_PLAIN = frozenset({"async", "generator"})  # what is exported may be imported under another name
MAX_CALLERS = 24  # call sites of a name that are asked for a parameter's values


class Callers:
    """Found by the names that may stand for a function; nobody is asked about names that many use."""

    def __init__(self, linker: Linker) -> None:
        self.linker = linker

    def find(self, function: Function) -> list[tuple[View, Site, int]]:
        """Calls whose callee is this function, with how many parameters the receiver takes; by name, so that
        few must be asked. None at all where there are too many."""
        linker = self.linker
        found: list[tuple[View, Site, int]] = []
        for unit, number in self._find_places(function):
            site = unit.sites[number]
            values: Values
            known = unit.decorated_at(site.end) if site.kind == "decorator" else None
            if known is not None:
                decorated, rank, is_called = known
                values = linker.calls.result(unit, number) if is_called else linker.link(unit, number)
                site = linker.decorators.site(unit, decorated, rank)
            else:
                values = linker.link(unit, number)
            found += [(unit, site, skipped) for skipped in self._find_skipped(values, function)]
        return [*found, *self._find_handed(function)]

    def _find_handed(self, function: Function) -> Iterator[tuple[View, Site, int]]:
        """What the language's own functions pass to one that they are given: `map(f, rows)`."""
        linker, unit = self.linker, function.unit
        places = unit.find_handed(function.definition)
        for number, at in places if len(places) <= MAX_CALLERS else ():
            site = unit.sites[number]
            for thing in linker.link(unit, number):
                passed = linker.dialect(unit).find_handed(thing, unit, number, at) if type(thing) is External else None
                if passed is not None:
                    value = site.args[at] if isinstance(at, int) else dict(site.keywords)[at]
                    values = linker.evaluate(unit, site.scope, value, site.start)
                    for skipped in self._find_skipped(values, function):
                        yield unit, passed, skipped

    def _find_skipped(self, values: Values, function: Function) -> list[int]:
        return sorted({skipped for thing in values if (skipped := self.skipped(thing, function)) is not None})

    def _find_places(self, function: Function) -> list[tuple[View, int]]:
        """Calls that may run a function, by its name; none where there are too many. A constructor runs by the names of
        its class and of those below it, and by its own from below; what a decorator gives, by the decorator's."""
        linker = self.linker
        unit, definition = function.unit, function.definition
        names = [definition.name]
        if function.owner is not None and definition.name in linker.dialect(unit).constructors:
            own = function.owner.definition.name
            names = [own, *(heir.name for heir in unit.heirs(own) if heir.name != own)]
        holder = unit.by_symbol.get(definition.scope)
        giver = holder.name if holder is not None and holder.kind == "function" else ""
        if function.owner is not None and definition.name == linker.dialect(unit).protocols.get("call"):
            giver = function.owner.definition.name  # `@Retry(3)` over a function calls what it makes
        names += [giver] if giver and giver not in names else []
        places: list[tuple[View, int]] = []
        for rank, name in enumerate(names):
            known = linker.documents.calls(name)
            if known is None:
                if rank:
                    continue
                return []
            if name == giver and rank:
                known = [place for place in known if place[0].decorated_at(place[0].sites[place[1]].end) is not None]
            places += known
        places += [(unit, number) for number in unit.indirect()]
        if len(places) > MAX_CALLERS:
            return []
        if definition.name != names[0]:
            name = linker.dialect(unit).base_constructor or definition.name
            above = unit.calls(name)
            places += [(unit, number) for number in above] if len(above) + len(places) <= MAX_CALLERS else []
        return places

    def is_closed(self, function: Function) -> bool:
        """Whether all calls of a function may be known: no other document imports it, its own calls it and does nothing
        else with it. By what is written alone; see `knows_callers`."""
        linker, unit, definition = self.linker, function.unit, function.definition
        name, dialect = definition.name, linker.dialect(unit)
        if function.owner is not None and name in dialect.constructors:
            name = function.owner.definition.name
            if function.owner.definition.decorators or self.find_heirs(function.owner):
                return False
        elif name in dialect.implied_names or name == dialect.protocols.get("call"):
            return False
        if not name or definition.symbol < 0 or definition.decorators or not _PLAIN.issuperset(definition.modifiers):
            return False
        places = linker.documents.calls(name) or ()
        if not 0 < len(places) <= MAX_CALLERS or name in (unit.public() or ()):
            return False
        if unit.is_mentioned(name) or linker.documents.is_imported(name):
            return False
        return any(
            caller is unit and self._is_call_of(caller, caller.sites[number], function) for caller, number in places
        )

    def _is_call_of(self, unit: View, site: Site, function: Function) -> bool:
        """Whether what is written is a call of a function: by its name, on `self`, on what is made just so."""
        owner, definition = function.owner, function.definition
        itself = (Defined(definition.start), Lambda(definition.start))
        head, _, rest = site.callee.partition(".") if isinstance(site.callee, str) else ("", "", "")
        binds = unit.find(site.scope, head, site.start) if head else ()
        value = binds[0].value if len(binds) == 1 else None
        if owner is None:
            return not rest and value in itself
        if not rest:
            return value == Defined(owner.definition.start) and definition.name != head
        if rest != definition.name:
            return False
        if isinstance(value, ParameterOf) and not value.number:
            around = self.method_around(unit, site.scope)
            return around is not None and around.owner is owner and around.definition.start == value.start
        made = unit.sites[unit.site_at[value]] if isinstance(value, int) and value in unit.site_at else None
        if made is None or not isinstance(made.callee, str):
            return False
        binds = unit.find(made.scope, made.callee, made.start)
        return len(binds) == 1 and binds[0].value == Defined(owner.definition.start)

    def knows_callers(self, function: Function) -> bool:
        """Whether no call of its name is of something that nobody knows. For a function that is closed."""
        linker, name = self.linker, function.definition.name
        if function.owner is not None and name in linker.dialect(function.unit).constructors:
            return True  # by the name of the class
        places = linker.documents.calls(name) or ()
        return not any(UNKNOWN in values or TOP in values for values in (linker.link(*place) for place in places))

    def is_always_given(self, function: Function, number: int) -> bool:
        """Whether every call of the function's name passes the parameter, by what is written alone, and nobody gets the
        function to call it otherwise."""
        linker, unit, definition = self.linker, function.unit, function.definition
        name = definition.name
        is_method = function.owner is not None
        if function.owner is not None and name in linker.dialect(unit).constructors:
            if unit.heirs(function.owner.definition.name):
                return False
            name = function.owner.definition.name
        default = definition.parameters[number].default
        if not name or definition.decorators or not isinstance(default, (str, Literals)):
            return False
        places = linker.documents.calls(name) or ()
        return (
            0 < len(places) <= MAX_CALLERS
            # What other files call may be called by files that are not here, and those need not pass it.
            and all(caller is unit for caller, _ in places)
            and not unit.handed_over(name)
            and all(self._gives(unit.sites[n], function, number, int(is_method)) for _, n in places)
        )

    def _gives(self, site: Site, function: Function, number: int, skipped: int) -> bool:
        is_spread = any(isinstance(value, Spread) for value in site.args)
        named = {name for name, _ in site.keywords}
        is_plain = site.kind in ("call", "new") and not is_spread and "**" not in named and site.name not in _APPLYING
        return is_plain and find_argument(function, site, number, skipped) is not None

    def receivers(self, method: Function) -> Values:
        """The classes below its own that calls are known to hand to a method as `self`; as NAME those that only have
        the method that calls it on its own `self`. UNKNOWN among them: there may be others."""
        return self.linker.hold(method.unit.home_of(method.definition), Callers._find_receivers, self, method)

    def _find_receivers(self, method: Function) -> Values:
        linker = self.linker
        found: Values = {}
        places = self._find_places(method)
        for unit, number in places:
            site = unit.sites[number]
            for thing in linker.link(unit, number):
                receiver = thing.receiver if isinstance(thing, Bound) else thing
                function = thing.function if isinstance(thing, Bound) else thing
                kind = receiver.type if isinstance(receiver, Instance) else receiver
                if thing is UNKNOWN or thing is TOP:
                    found = join(found, {UNKNOWN: PARAMETER})
                elif is_own(receiver) and (function is method or self._is_overridden(function, method)):
                    found = join(found, self._find_own(unit, site, receiver, method, is_same=function is method))
                elif is_own(thing) and self.skipped(thing, method) == 1:  # `cls()`
                    found = join(found, self._find_own(unit, site, thing, method, is_same=True))
                elif thing is method:  # `Base.f(self)`
                    around = self.method_around(unit, site.scope)
                    own = around.definition.parameters[:1] if around is not None else ()
                    if around is not None and own and site.args[:1] == (Name(own[0].name),):
                        owner: Values = {} if around.owner is None else {around.owner: NAME}
                        found = join(join(found, owner), self.receivers(around) if around is not method else owner)
                    elif describe(method.unit.language).receiver == "first":  # `Base.f(other)`
                        given = linker.evaluate(unit, site.scope, site.args[0], site.start) if site.args else {}
                        kinds = [each.type for each in given if isinstance(each, Instance)]
                        found = join(found, dict.fromkeys(kinds or [UNKNOWN], PARAMETER))
                elif isinstance(kind, Class) and (function is method or self.skipped(thing, method) == 1):
                    found = join(found, {UNKNOWN: PARAMETER} if is_open(receiver) else {kind: PARAMETER})
        if method.definition.name in linker.dialect(method.unit).implied_names:
            found = join(found, {UNKNOWN: PARAMETER})  # operators, loops and the like call it too
        return found if places else linker.unknown

    def _find_own(
        self, unit: View, site: Site, receiver: Instance | OwnClass, method: Function, *, is_same: bool
    ) -> Values:
        """The classes of `self` at a call of a method on it, on `super()` or on its class, and so in the method; where
        what is called is above (not `is_same`), those that have the method in its place."""
        around = self.method_around(unit, site.scope)
        if around is method:
            return {}
        behind = around.owner if around is not None and site.kind == "super" else None
        is_below = is_same and method.owner in self.linker.members.order(receiver.type)[1:]
        found: Values = {receiver.type: NAME} if is_below else {}
        known = self.receivers(around) if around is not None else NOTHING
        return join(
            found,
            {k: level for k, level in known.items() if (k is UNKNOWN and is_same) or self._has(k, method, behind)},
        )

    def _is_overridden(self, other: Thing, method: Function) -> bool:
        """Whether a method takes the place of another in a class below."""
        if not isinstance(other, Function) or other.definition.name != method.definition.name:
            return False
        return method.owner is not None and other.owner in self.linker.members.order(method.owner)[1:]

    def _has(self, kind: Thing, method: Function, behind: Class | None) -> bool:
        """Whether a class has a method from the class that it is defined in; `behind`: on `super()` in that one."""
        if not isinstance(kind, Class):
            return False
        name = method.definition.name
        if behind is None:
            return self.linker.members.find(kind, name)[0] is method.owner
        return self.linker.members.find_behind(kind, name, behind)[0] is method.owner

    def method_around(self, unit: View, scope: int) -> Function | None:
        """The method whose code holds a scope, through functions in it."""
        method = unit.by_symbol.get(scope)
        while method is not None and (method.kind != "function" or unit.find_owner(method) is None):
            method = unit.by_symbol.get(method.scope)
        around = None if method is None else self.linker.thing(unit, method.start)
        return around if isinstance(around, Function) and around.owner is not None else None

    def is_made(self, kind: Class) -> bool:
        """Whether a call may make an instance of just this class."""
        linker = self.linker
        name = kind.definition.name
        places = linker.documents.calls(name)
        if places is None or len(places) > MAX_CALLERS:
            return True
        return any(kind in linker.link(unit, number) for unit, number in places)

    def is_raised(self, kind: Class) -> bool:
        """Whether anyone may make an instance of just this class, by its name alone."""
        name = kind.definition.name
        places = self.linker.documents.calls(name)
        return places is None or bool(places) or kind.unit.is_raised(name)

    def find_heirs(self, kind: Class) -> list[Class]:
        """The classes that inherit from a class, as far as they are found; see `has_more_heirs`."""
        return self.linker.know(Callers._find_heirs, self, kind)[0]

    def has_more_heirs(self, kind: Class) -> bool:
        """Whether so many documents have classes below a class that only those of its own are looked at."""
        return self.linker.know(Callers._find_heirs, self, kind)[1]

    def _find_heirs(self, kind: Class) -> tuple[list[Class], bool]:
        linker, found, is_crowd = self.linker, dict[Class, None](), False
        todo: list[Class] = [kind]
        for base in todo:
            name = base.definition.name
            entered = linker.documents.entries("heir", name, MAX_HOLDERS)
            if entered is None:
                entered = [(base.unit, definition) for definition in base.unit.heirs(name)]
                is_crowd = True
            for unit, definition in entered:
                heir = linker.thing(unit, definition.start)
                if isinstance(heir, Class) and heir not in found and kind in linker.members.order(heir)[1:]:
                    found[heir] = None
                    todo.append(heir)
        return list(found), is_crowd

    def find_instances(self, meta: Class) -> list[Class]:
        """The classes that have a metaclass, by their own words or through a base; none where many documents do."""
        linker, found = self.linker, dict[Class, None]()
        for unit, definition in linker.documents.entries("instance", meta.definition.name) or ():
            kind = linker.thing(unit, definition.start)
            if isinstance(kind, Class):
                found |= dict.fromkeys([kind, *self.find_heirs(kind)])
        return [kind for kind in found if linker.dialect(kind.unit).find_metaclass(linker, kind) is meta]

    def skipped(self, thing: Thing, function: Function) -> int | None:
        """How many parameters come from elsewhere when `thing` is called and that runs `function`; None: it does not
        run it."""
        linker = self.linker
        if thing is function:
            return 0
        if type(thing) is External:
            return None  # most are
        if type(thing) is Bound:
            if thing.function is function:
                return thing.skipped if thing.receiver is None else 1
            if function.owner is None or not self._is_overridden(thing.function, function):
                return None
            is_below = is_open(thing.receiver) and thing.receiver.type in linker.members.order(function.owner)
            return 1 if is_below else None
        if isinstance(thing, (Class, OwnClass)) and function.owner is not None:
            kind = thing if isinstance(thing, Class) else thing.type
            if function.definition.name in linker.dialect(kind.unit).constructors:
                return 1 if linker.members.find(kind, function.definition.name)[0] is function.owner else None
        name = function.definition.name
        if isinstance(thing, Instance) and name == linker.dialect(thing.type.unit).protocols.get("call"):
            return 1 if function.owner and linker.members.find(thing.type, name)[0] is function.owner else None
        return None


def is_own(thing: Thing | None) -> TypeGuard[Instance | OwnClass]:
    """Whether it is `self` or `cls`: of a class, or of one below it that the caller knows."""
    return (isinstance(thing, OwnClass) and not thing.declared) or (isinstance(thing, Instance) and thing.own)


def is_open(thing: Thing | None) -> TypeGuard[Instance | OwnClass]:
    """Whether it may be of a class below the one that is known."""
    return type(thing) is OwnClass or (type(thing) is Instance and (thing.own or thing.declared))


def find_argument(function: Function, site: Site, number: int, skipped: int) -> Value:
    """What a call passes for a parameter; None when that cannot be told."""
    parameter = function.definition.parameters[number]
    if parameter.kind != "/":
        for name, value in site.keywords:
            if name == parameter.name:
                return value
    if parameter.kind not in ("", "/"):
        return _spread(site, parameter.name) if parameter.kind == "k" else None
    if skipped <= APPLIED + 1:
        at = number - skipped + APPLIED
        return Element(site.args[1], (Integer(at),)) if len(site.args) > 1 and at >= 0 else None
    at = number - skipped
    if at < 0:
        return None
    args = _written_out(site.args)
    for place, value in enumerate(args[: at + 1]):
        if isinstance(value, Spread):
            if place < len(args) - 1:
                return None
            named = _spread(site, parameter.name) if parameter.kind != "/" else None
            inner = Element(value.value, (Integer(at - place),))
            return inner if named is None else Choice((inner, named))
    if at < len(args):
        return args[at]
    return None if parameter.kind == "/" else _spread(site, parameter.name)


def _written_out(args: tuple[Value, ...]) -> tuple[Value, ...]:
    """Arguments with those in their places that are spread as written: `f(*[a, b], c)`."""
    for at, value in enumerate(args):
        if isinstance(value, Spread):
            inner = value.value
            if not isinstance(inner, Listing) or inner.kind == "set":
                return args
            return (*args[:at], *_written_out((*inner.elements, *args[at + 1 :])))
    return args


def _spread(site: Site, name: str) -> Value:
    """What `f(**options)` passes under a name."""
    spread = next((value for key, value in site.keywords if key == "**"), None)
    return None if spread is None else Element(spread, (Text(name),))


def find_rest(function: Function, site: Site, number: int, skipped: int) -> Listing | Dictionary | None:
    """What a call passes beyond the other parameters, as a container; None when that is nothing."""
    parameters = function.definition.parameters
    if parameters[number].kind == "*":
        args = _written_out(site.args)[max(0, number - skipped) :]
        return Listing("list", args) if args else None
    names = {parameter.name for parameter in parameters if parameter.kind not in ("*", "**", "/")}
    given = [(name, value) for name, value in site.keywords if name not in names]
    keys = tuple([None if name == "**" else Text(name) for name, _ in given])
    return Dictionary(keys, tuple([value for _, value in given])) if given else None
