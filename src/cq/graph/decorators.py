"""What decorators make of functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cq.graph.engine.view import View
from cq.graph.scopes import ANYWHERE
from cq.graph.things import UNKNOWN, Argument, Bound, Class, External, Function, Instance, OwnClass
from cq.graph.values import INFERRED, NOTHING, SCOPE, Values, join, raised
from cq.model.code import Decorated, Definition, Site

if TYPE_CHECKING:
    from cq.graph.link import Linker


class Decorators:
    """What the name of a decorated function means, and what runs when it is called."""

    def __init__(self, linker: Linker) -> None:
        self.linker = linker

    def named(self, unit: View, definition: Definition) -> Values:
        """A decorated function is itself, also behind a wrapper, unless a decorator of the repository plainly gives
        another function: one that is not defined inside it."""
        linker = self.linker
        for value in definition.decorators:
            if isinstance(value, str):
                decorator = linker.dialect(unit).find_static(linker, unit, definition.scope, value, definition.start)
                if isinstance(decorator, Function) and decorator.definition.returns:
                    others = self.find_replacements(decorator)
                    if others:
                        return others
        return {linker.thing(unit, definition.start): SCOPE}

    def find_replacements(self, decorator: Function) -> Values:
        linker = self.linker
        unit, definition = decorator.unit, decorator.unit.contents(decorator.definition)
        found: Values = {}
        for value in definition.returns:
            if not isinstance(value, str):
                return {}
            other = linker.dialect(unit).find_static(linker, unit, definition.symbol, value, ANYWHERE)
            if not isinstance(other, Function) or other.definition.scope == definition.symbol:
                return {}
            found[other] = INFERRED
        return found

    def site(self, unit: View, definition: Definition, rank: int) -> Site:
        """`@f` over a definition calls f with it, or with what the decorators below gave for it."""
        return Site(definition.scope, definition.start, -1, None, (Decorated(definition.start, rank),))

    def ran(self, function: Function) -> Values:
        """What runs when a decorated function is called: itself, unless a decorator of the repository gives another."""
        return self.linker.hold(function.unit.home(function.definition.scope), Decorators._find_ran, self, function)

    def _find_ran(self, function: Function) -> Values:
        return self.decorate(function.unit, function.definition, 0)

    def decorate(self, unit: View, definition: Definition, rank: int) -> Values:
        """A definition behind its decorators, without the first `rank` of them."""
        linker = self.linker
        # Bound to nothing: what its own decorators get is not behind them.
        found: Values = {linker.bind(linker.thing(unit, definition.start), None): SCOPE}
        decorators = definition.decorators
        for at in range(len(decorators) - 1, rank - 1, -1):
            given = NOTHING
            for thing, level in linker.evaluate(unit, definition.scope, decorators[at], definition.start).items():
                if isinstance(thing, (Class, OwnClass)):
                    given = join(given, linker.made({thing: level}))
                elif isinstance(thing, External):
                    given = join(given, linker.dialect(unit).give_decorated(linker, thing, unit, definition, found))
                for called in (
                    linker.calls.find_called({thing: level}) if linker.dialect(unit).keeps_decorated(thing) else ()
                ):
                    given = join(given, self._give(called, found))
            given = {thing: level for thing, level in given.items() if thing is not UNKNOWN}
            found = given or found
        return found

    def _give(self, thing: Function | Bound, decorated: Values) -> Values:
        """What a decorator gives for `decorated`."""
        linker = self.linker
        function = thing if isinstance(thing, Function) else thing.function
        if not isinstance(function, Function):
            return NOTHING
        found: Values = {}
        for value, level in linker.calls.returned(function).items():
            if isinstance(value, Argument):
                is_passed = value.function is function and value.number == (1 if isinstance(thing, Bound) else 0)
                found = join(found, raised(decorated, level) if is_passed else NOTHING)
            elif isinstance(value, Bound) and value.function is function:
                continue  # `partial(trace, prefix=prefix)` where it is given no function
            elif isinstance(value, (Function, Bound, Instance)):
                found = join(found, {value: level})
        return found
