"""How a value came to a call. A linker that has settled is asked again, one cell after the other, and notes meanwhile
who gave what to whom: only who asks for a witness pays for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from cq.graph.calls import Calls
from cq.graph.corpus import Corpus
from cq.graph.dialect import Dialect
from cq.graph.engine.cells import Cell
from cq.graph.engine.view import View
from cq.graph.link import Linker
from cq.graph.resolve import Resolver
from cq.graph.things import Bound, Class, Function, Instance, OwnClass, Thing
from cq.graph.values import SCOPE, Values
from cq.model.code import Bind, Defined, Imported, ParameterOf, Site, Store, Value
from cq.model.edge import Candidate

MAX_CELLS = 60  # that are asked again for one witness


class Step(NamedTuple):
    """One place on the way of a value, and the name that stands in the text there."""

    kind: str  # defined imported exported assigned stored passed parameter called returned
    unit: View
    start: int
    name: str
    about: str = ""  # of a parameter or what is passed: the function; of a definition: its kind
    side: str = "behind"  # where the name stands: behind the start, "before" it, or "beside" it


class _Event:
    """Something that was asked while a cell was computed again, with all that was asked for it."""

    __slots__ = ("cell", "given", "inner", "place", "step", "values")

    def __init__(
        self,
        *,
        step: Step | None = None,
        cell: Cell | None = None,
        given: Callable[[Thing], Thing | None] | None = None,
        place: tuple[View, int, Value] | None = None,
    ) -> None:
        self.step, self.cell, self.given, self.place = step, cell, given, place
        self.values: Values = {}
        self.inner: list[_Event] = []


class _TracedCalls(Calls):
    linker: Tracer

    def invoke(self, thing: Thing, unit: View | None, number: int) -> Values:
        event = _Event(given=lambda _: thing)
        return self.linker.note_event(event, lambda: super(_TracedCalls, self).invoke(thing, unit, number))


class Tracer(Linker):
    """A linker that notes who gave a value, while it is told to."""

    def __init__(self, corpus: Corpus, find_dialect: Callable[[str], type[Dialect]]) -> None:
        super().__init__(corpus, find_dialect)
        self.calls = _TracedCalls(self)
        self._events: list[_Event] | None = None

    def trace(self, find: Callable[[], Values]) -> _Event:
        event = _Event()
        saved, self._events = self._events, event.inner
        try:
            event.values = find()
        finally:
            self._events = saved
        return event

    def note_event(self, event: _Event, find: Callable[[], Values]) -> Values:
        events = self._events
        if events is None:
            return find()
        self._events = event.inner
        try:
            event.values = find()
        finally:
            self._events = events
        events.append(event)
        return event.values

    def read(self, cell: Cell) -> Values:
        events, self._events = self._events, None
        try:
            values = super().read(cell)
        finally:
            self._events = events
        if events is not None:
            event = _Event(cell=cell)
            event.values = values
            events.append(event)
        return values

    def evaluate(self, unit: View, scope: int, value: Value, position: int) -> Values:
        event = _Event(place=(unit, position, value))
        return self.note_event(event, lambda: super(Tracer, self).evaluate(unit, scope, value, position))

    def bound(self, unit: View, bind: Bind) -> Values:
        event = _Event(step=_describe_bind(unit, bind))
        return self.note_event(event, lambda: super(Tracer, self).bound(unit, bind))

    def stored(self, unit: View, store: Store) -> Values:
        event = _Event(step=Step("stored", unit, store.start, store.name or ""))
        return self.note_event(event, lambda: super(Tracer, self).stored(unit, store))

    def member(self, thing: Thing, name: str, level: int) -> Values:
        event = _Event(given=lambda _: thing)
        return self.note_event(event, lambda: super(Tracer, self).member(thing, name, level))

    def method(self, values: Values, name: str) -> Values:
        def find_given(method: Thing) -> Thing | None:
            return next((t for t, at in values.items() if method in super(Tracer, self).method({t: at}, name)), None)

        return self.note_event(_Event(given=find_given), lambda: super(Tracer, self).method(values, name))


class Witnesses:
    """The witnesses of calls, one after the other."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer, self._resolver = tracer, Resolver(tracer)

    def link(self, unit: View, number: int) -> None:
        """First, so that all that `find` asks for is computed."""
        tracer, site = self._tracer, unit.sites[number]
        tracer.link(unit, number)
        for value in _list_given(site):
            tracer.evaluate(unit, site.scope, value, site.start)
        tracer.settle()
        for thing in tracer.link(unit, number):
            self._is_target(thing, Candidate("", 0, ""))
            if isinstance(core := _find_core(thing), Function) and core.definition.decorators:
                tracer.decorators.ran(core)
        tracer.settle()

    def find(self, unit: View, number: int, target: Candidate) -> list[Step]:
        """From the definition to the call, a place each; none where no value that is the target leads there."""
        for event, thing in self._find_ends(unit, number, target):
            steps = self._explain(event, thing)
            if steps:
                # What is asked in the same place twice is one step.
                return list(dict.fromkeys(reversed(steps)))
        return []

    def _find_ends(self, unit: View, number: int, target: Candidate) -> Iterator[tuple[_Event, Thing]]:
        """What a call can run that leads to the target: itself, what is made of it, what it is given."""
        tracer, site = self._tracer, unit.sites[number]
        called = tracer.trace(lambda: tracer.read(tracer.callee(unit, number)))
        for thing in called.values:
            if self._is_target(thing, target):
                yield called, thing
        for value in _list_given(site):
            event = tracer.trace(lambda value=value: tracer.evaluate(unit, site.scope, value, site.start))
            yield from ((event, thing) for thing in event.values if self._is_target(thing, target))
        for thing in called.values:
            function = _find_core(thing)
            if isinstance(function, Function) and function.definition.decorators:
                event = tracer.trace(lambda function=function: tracer.decorators.ran(function))
                yield from ((event, thing) for thing in event.values if self._is_target(thing, target))

    def _is_target(self, thing: Thing, target: Candidate) -> bool:
        places = [self._resolver.find_place(thing)]
        places += [place for meaning in self._resolver.construct({thing: SCOPE}, "") for place in meaning.places]
        return any(
            Candidate(place[0].path, place[0].document, place[0].qualified_names.get(place[1], "")) == target
            for place in places
            if place is not None
        )

    def _explain(self, event: _Event, thing: Thing) -> list[Step]:
        """The last step first."""
        found = self._follow(event, thing, set())
        if found is None:
            return []
        steps, rest = found
        return steps if rest is None else [*steps, *_define(rest)]

    def _follow(self, event: _Event, thing: Thing, seen: set[Cell]) -> tuple[list[Step], Thing | None] | None:
        """How an event came to have a thing. With the steps what it was made of, where nothing that was asked for the
        event says how that came; None where the way leads in a circle."""
        steps = [] if event.step is None else [event.step]
        inner, cell = event.inner, event.cell
        if cell is not None:
            if cell in seen or len(seen) > MAX_CELLS:
                return None
            seen.add(cell)
            steps += _describe_cell(cell)
            inner = self._tracer.trace(lambda: cell.compute(*cell.args)).inner
        rest: Thing | None = thing
        is_found = False
        # What something is made of was asked for before it.
        for other in reversed(inner):
            same = None if rest is None else _find_same(other.values, rest)
            way = None if same is None else self._follow(other, same, seen)
            if way is not None:
                is_found = True
                if cell is not None and other.place is not None:
                    steps += _describe_passing(cell, other.place)
                steps += way[0]
                rest = way[1]
        if not is_found:
            rest = None if event.given is None else event.given(thing)
            if event.step is None or event.step.kind != "defined":
                steps += [] if isinstance(thing, (Instance, OwnClass)) and rest is not None else _define(thing)
        return steps, rest


def _find_core(thing: Thing) -> Thing:
    return thing.function if isinstance(thing, Bound) else thing


def _find_same(values: Values, thing: Thing) -> Thing | None:
    """A thing among values, be it with another receiver."""
    if thing in values:
        return thing
    core = _find_core(thing)
    return next((other for other in values if _find_core(other) is core), None) if isinstance(core, Function) else None


def _define(thing: Thing) -> list[Step]:
    core = _find_core(thing)
    if isinstance(core, (Instance, OwnClass)):
        core = core.type
    if not isinstance(core, (Function, Class)):
        return []
    return [Step("defined", core.unit, core.definition.start, core.definition.name, core.definition.kind)]


def _describe_bind(unit: View, bind: Bind) -> Step | None:
    match bind.value:
        case ParameterOf():
            return None  # its cell tells more
        case Defined():
            definition = unit.definitions[bind.value.start]
            return Step("defined", unit, definition.start, definition.name, definition.kind)
        case value:
            # What modules and types are bound as has a word or a mark more: `export f`, `<T>`.
            name = bind.name.rpartition(" ")[2].strip("<>")
            kind = "exported" if bind.name.startswith("export ") else "assigned"
            kind = "imported" if isinstance(value, Imported) and kind == "assigned" else kind
            return Step(kind, unit, bind.start, name, side="beside" if bind.inner else "before")


def _describe_cell(cell: Cell) -> list[Step]:
    match cell.args:
        case (Calls(), Function() as function, int() as number):
            definition = function.definition
            name = definition.parameters[number].name
            return [Step("parameter", function.unit, definition.start, name, definition.name)]
        case (Calls(), Function() as function):
            return [Step("returned", function.unit, function.definition.start, function.definition.name)]
        case (Calls(), View() as unit, int() as number):
            site = unit.sites[number]
            return [Step("called", unit, site.start, site.name)]
        case _:
            return []


def _describe_passing(cell: Cell, place: tuple[View, int, Value]) -> list[Step]:
    """Of what is evaluated for a parameter: the call that passes it."""
    unit, position, value = place
    match cell.args:
        case (Calls(), Function() as function, int()):
            for site in unit.sites:
                if site.start == position and any(value is given for given in _list_given(site)):
                    return [Step("passed", unit, site.start, site.name, function.definition.name)]
            return []
        case _:
            return []


def _list_given(site: Site) -> Iterator[Value]:
    yield from site.args
    yield from (value for _, value in site.keywords)
