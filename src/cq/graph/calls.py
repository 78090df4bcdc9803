"""What calls give: what functions return, and what their parameters get."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cq.graph.callers import find_argument, find_rest, is_open, is_own
from cq.graph.engine.view import View
from cq.graph.items import get_kind
from cq.graph.members import only_known
from cq.graph.scopes import ANYWHERE
from cq.graph.things import (
    TOP,
    UNKNOWN,
    Argument,
    Bound,
    Class,
    Container,
    External,
    Function,
    Instance,
    Native,
    OwnClass,
    Thing,
)
from cq.graph.values import (
    CONSTRUCTOR,
    EVERYTHING,
    INFERRED,
    MRO,
    NOTHING,
    PARAMETER,
    PASSED,
    SCOPE,
    Values,
    join,
    raised,
)
from cq.model.code import Choice, Dictionary, Each, Listing, ParameterOf, Spread, split_receiver

if TYPE_CHECKING:
    from cq.graph.link import Linker


MAX_OVERRIDES = 8  # methods in the place of one that are asked for what they give


class Calls:
    """Results with the receiver and the arguments of a call in their places."""

    def __init__(self, linker: Linker) -> None:
        self.linker = linker
        self._generators: dict[Function, Each] = {}
        self._made_up: dict[tuple[object, ...], Listing | Dictionary] = {}  # containers that stand nowhere in the code

    def returned(self, function: Function) -> Values:
        """What a function returns, its parameters standing for themselves (`Argument`)."""
        return self.linker.hold(function.unit.home_of(function.definition), Calls._find_returned, self, function)

    def _find_returned(self, function: Function) -> Values:
        linker = self.linker
        unit, definition = function.unit, function.definition
        if definition.type is not None:
            made = linker.make(unit, definition.scope, definition.type, ANYWHERE)
            if made and UNKNOWN not in made:
                promised = (thing for thing in made if isinstance(thing, Instance) and thing.declared)
                if not any(linker.members.is_promise(thing.type) for thing in promised):
                    return made
                return join(made, only_known(self._find_given(function)))
        return self._find_given(function)

    def _find_given(self, function: Function) -> Values:
        """By what it says to return, whatever its type."""
        linker, unit, definition = self.linker, function.unit, function.definition
        if "generator" in definition.modifiers:
            value = self._generators.get(function)
            if value is None:
                value = self._generators[function] = Each("generator", Choice(definition.yields))
            return {linker.container("generator", unit, definition.symbol, ANYWHERE, value): SCOPE}
        found = NOTHING
        scope = definition.symbol if definition.symbol >= 0 else definition.scope
        for value in definition.returns:
            if isinstance(value, str) and "." not in value:
                # `return x`: when x is only ever the parameter, the caller knows best what it is.
                binds = unit.find(scope, value, ANYWHERE if definition.symbol >= 0 else definition.start)
                only = binds[0].value if len(binds) == 1 else None
                if isinstance(only, ParameterOf) and only.start == definition.start:
                    number = only.number
                    if number or linker.dialect(unit).receiver(linker, function) is None:
                        found = join(found, {linker.argument(function, number): INFERRED})
                        continue
            position = ANYWHERE if definition.symbol >= 0 else definition.start
            found = join(found, linker.evaluate(unit, scope, value, position))
        return raised(found, INFERRED)

    def sent(self, unit: View, scope: int) -> Values:
        """What `yield` gives in a generator: what calls of its `send` or `next` hand over."""
        linker, found, definition = self.linker, dict(self.linker.unknown), unit.by_symbol.get(scope)
        function = None if definition is None else linker.thing(unit, definition.start)
        if not isinstance(function, Function):
            return found
        for caller, number in linker.documents.calls(linker.dialect(unit).sending) or ():
            site = caller.sites[number]
            base = split_receiver(site.callee)
            held = linker.evaluate(caller, site.scope, base, site.start) if base and site.args else NOTHING
            if any(thing in held for thing in self.returned(function)):
                values = linker.evaluate(caller, site.scope, site.args[0], site.start)
                found = join(found, raised(values, PARAMETER))
        return found

    def argued(self, unit: View, start: int, number: int) -> Values:
        """A parameter of what is defined there: a function, or one that is made with `new`."""
        linker = self.linker
        thing = linker.thing(unit, start)
        if isinstance(thing, Function):
            return self.parameter(thing, number)
        return linker.unknown if number else {thing.self_instance: MRO}

    def parameter(self, function: Function, number: int) -> Values:
        linker = self.linker
        dialect = linker.dialect(function.unit)
        if not number and not dialect.is_static:
            receiver = dialect.receiver(linker, function)
            if receiver is not None:
                function.unit.contents(function.definition)
                if function.owner is not None and function.definition.name in dialect.class_hooks:
                    heirs = linker.callers.find_heirs(function.owner)  # it never runs for the class itself
                    return dict.fromkeys(heirs, PARAMETER) if heirs else {receiver: MRO}
                return {receiver: MRO}
        return linker.hold(function.unit.home_of(function.definition), Calls._find_parameter, self, function, number)

    def _find_parameter(self, function: Function, number: int) -> Values:
        linker = self.linker
        unit, definition = function.unit, function.definition
        dialect = linker.dialect(unit)
        parameter = definition.parameters[number]
        if dialect.is_static:
            return dialect.find_parameter(linker, function, number)
        if parameter.type is not None:
            made = linker.make(unit, definition.scope, parameter.type, ANYWHERE)
            if made and UNKNOWN not in made and parameter.kind not in ("*", "**"):
                if any(isinstance(value, Container) and value.kind == "function" for value in made):
                    return join(made, self.passed(function, number))  # the type says no more than that it is called
                return made
        if parameter.kind in ("*", "**"):
            return self._find_rest(function, number)
        passed = dialect.find_passed(linker, function, number)
        if passed is not None:
            return passed
        if linker.callers.is_closed(function):
            return self._find_all_passed(function, number)
        found = dict(linker.unknown)
        if parameter.default is not None and not linker.callers.is_always_given(function, number):
            at = ANYWHERE if definition.symbol >= 0 else definition.start - 1  # behind it, the parameter has the name
            found = join(found, raised(linker.evaluate(unit, definition.scope, parameter.default, at), PARAMETER))
        return join(found, self._find_passed(function, number))

    def _find_all_passed(self, function: Function, number: int) -> Values:
        """What a parameter can be at most, since all calls are known."""
        linker, found = self.linker, NOTHING
        parameter, definition = function.definition.parameters[number], function.definition
        for caller, site, skipped in linker.callers.find(function):
            given = find_argument(function, site, number, skipped)
            if given is not None:
                found = join(found, raised(linker.evaluate(caller, site.scope, given, site.start), PASSED))
            elif parameter.default is None or any(isinstance(value, Spread) for value in site.args):
                found = join(found, linker.unknown)
            else:
                at = ANYWHERE if definition.symbol >= 0 else definition.start - 1
                values = linker.evaluate(function.unit, definition.scope, parameter.default, at)
                found = join(found, raised(values, PASSED))
        return found if linker.callers.knows_callers(function) else join(found, linker.unknown)

    def passed(self, function: Function, number: int) -> Values:
        """What calls pass for a parameter, whatever its type says."""
        return self.linker.hold(function.unit.home_of(function.definition), Calls._find_passed, self, function, number)

    def _find_passed(self, function: Function, number: int) -> Values:
        linker, found = self.linker, NOTHING
        for caller, site, skipped in linker.callers.find(function):
            passed = find_argument(function, site, number, skipped)
            if passed is not None:
                values = linker.evaluate(caller, site.scope, passed, site.start)
                found = join(found, raised(values, PARAMETER))
        return found

    def _find_rest(self, function: Function, number: int) -> Values:
        """`*args` and `**kwargs`: what each call passes beyond the other parameters."""
        linker = self.linker
        is_closed = linker.callers.is_closed(function)
        is_known = is_closed and linker.callers.knows_callers(function)
        found = NOTHING if is_known else dict(linker.unknown)
        for caller, site, skipped in linker.callers.find(function):
            value = find_rest(function, site, number, skipped)
            if value is not None:
                value = self._made_up.setdefault((function, number, caller, site.start, site.end, skipped), value)
                held = linker.container(get_kind(value), caller, site.scope, site.start, value)
                found = join(found, {held: PASSED if is_closed else PARAMETER})
        return found

    def result(self, unit: View, number: int) -> Values:
        return self.linker.hold(unit.home(unit.sites[number].scope), Calls._find_result, self, unit, number)

    def _find_result(self, unit: View, number: int) -> Values:
        linker = self.linker
        found = NOTHING
        for thing, level in linker.read(linker.callee(unit, number)).items():
            found = join(found, raised(self.invoke(thing, unit, number), level))
            if isinstance(thing, Bound) and unit.sites[number].kind != "super":
                found = join(found, self._invoke_below(thing, unit, number))
        return found

    def _invoke_below(self, thing: Bound, unit: View, number: int) -> Values:
        """What methods give that may run in the place of one, in classes below. None where many may."""
        function, receiver, found = thing.function, thing.receiver, NOTHING
        if isinstance(function, Function) and is_open(receiver):
            others = self.linker.members.find_overrides(receiver.type, function)
            for other in others if len(others) <= MAX_OVERRIDES else ():
                given = self.give(other, receiver, unit, number, 1)
                found = join(found, raised(only_known(given), PARAMETER))
        return found

    def called(self, values: Values) -> Values:
        """What calling gives, with arguments that nobody knows."""
        found = NOTHING
        for thing, level in values.items():
            found = join(found, raised(self.invoke(thing, None, -1), level))
        return raised(found, INFERRED)

    def invoke(self, thing: Thing, unit: View | None, number: int) -> Values:
        """What calling a thing gives; with `unit` None nothing is known of the arguments."""
        linker = self.linker
        if thing is TOP:
            return EVERYTHING
        if isinstance(thing, Class):
            return {thing.instance: CONSTRUCTOR}
        if isinstance(thing, OwnClass):
            return {thing.type.declared if thing.declared else thing.type.self_instance: MRO}
        if isinstance(thing, Function):
            return self.give(thing, None, unit, number, 0)
        if isinstance(thing, Bound):
            if isinstance(thing.function, Function):
                skipped = thing.skipped if thing.receiver is None else 1
                return self.give(thing.function, thing.receiver, unit, number, skipped)
            return self.invoke(thing.function, unit, number)
        if isinstance(thing, Instance):
            return linker.protocols.run(thing, "call", SCOPE)
        if isinstance(thing, External):
            given: Values | None = None
            if unit is not None:
                given = linker.dialect(unit).call_external(linker, thing, unit, number)
            if given is not None:
                return given
            return {linker.external(f"{thing.name}()"): SCOPE} if thing.name.count("(") < 3 else {thing: SCOPE}
        if isinstance(thing, Container):
            return linker.dialect(thing.unit).call_container(linker, thing)
        if isinstance(thing, Native):
            return thing.dialect.give(linker, thing, None, unit, number)
        return linker.unknown

    def give(self, function: Function, receiver: Thing | None, unit: View | None, number: int, skipped: int) -> Values:
        """What a function returns to this caller: `self` is the receiver, an argument what was passed."""
        linker = self.linker
        dialect = linker.dialect(function.unit)
        if dialect.is_static:
            return dialect.give(linker, function, receiver, unit, number)
        returned = self.returned(function)
        if not any(isinstance(thing, Argument) or is_own(thing) for thing in returned):
            return returned
        found: Values = {}
        for thing, level in returned.items():
            if isinstance(thing, Argument):
                passed = None
                if unit is not None and thing.function is function:
                    site = unit.sites[number]
                    passed = find_argument(function, site, thing.number, skipped)
                if passed is not None and unit is not None:
                    site = unit.sites[number]
                    values = linker.evaluate(unit, site.scope, passed, site.start)
                else:
                    values = join(linker.unknown, self._find_default(thing))
                found = join(found, raised(values, level))
            elif isinstance(thing, Instance) and thing.own and isinstance(receiver, Instance):
                found = join(found, {receiver: level})
            elif isinstance(thing, (Instance, OwnClass)) and isinstance(receiver, (Instance, Class, OwnClass)):
                found = join(found, {_as_seen(thing, receiver): level})
            else:
                found = join(found, {thing: level})
        return found

    def _find_default(self, argument: Argument) -> Values:
        unit, definition = argument.function.unit, argument.function.definition
        value = definition.parameters[argument.number].default
        at = ANYWHERE if definition.symbol >= 0 else definition.start - 1
        return NOTHING if value is None else self.linker.evaluate(unit, definition.scope, value, at)

    def find_called(self, values: Values) -> dict[Function | Bound, int]:
        """The functions among values, and the methods that calling an instance among them runs."""
        linker = self.linker
        found: dict[Function | Bound, int] = {}
        for thing, level in values.items():
            if isinstance(thing, (Function, Bound)):
                found[thing] = level
            elif isinstance(thing, Instance):
                name = linker.dialect(thing.type.unit).protocols.get("call")
                inner = linker.member(thing, name, level) if name is not None else NOTHING
                found |= {m: at for m, at in inner.items() if isinstance(m, (Function, Bound))}
        return found


def _as_seen(thing: Instance | OwnClass, receiver: Instance | Class | OwnClass) -> Thing:
    """`self` or `cls` of a method, as the caller sees them through the receiver."""
    if not is_own(thing):
        return thing
    if isinstance(receiver, Class):
        return receiver if isinstance(thing, OwnClass) else receiver.instance
    kind, own = receiver.type, is_own(receiver)
    if isinstance(thing, OwnClass):
        return kind.self_class if own else kind.declared_class if receiver.declared else kind
    return kind.self_instance if own else kind.declared if receiver.declared else kind.instance
