"""From values to references: what a call, import, base or annotation means, with its doubt."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from cq.graph.callers import is_open, is_own
from cq.graph.dialect import Dialect
from cq.graph.dispatch import (
    find_declared,
    find_dispatched,
    find_typed_receiver,
    is_only_method,
    is_wrapping,
    without_givers,
)
from cq.graph.engine.cells import Cell
from cq.graph.engine.view import View
from cq.graph.link import Linker
from cq.graph.meaning import BY_NAME, UNRESOLVED, Meaning, Place, Run
from cq.graph.scopes import ROOT, find_defined
from cq.graph.things import (
    TOP,
    UNKNOWN,
    Bound,
    Class,
    External,
    Function,
    Instance,
    Module,
    OwnClass,
    Thing,
)
from cq.graph.unit import Unit
from cq.graph.values import IMPORT, INFERRED, NAME, PARAMETER, PASSED, Values, join, raised
from cq.model.code import (
    Augmented,
    Bind,
    Definition,
    Element,
    Imported,
    Literals,
    Site,
    Value,
    split_receiver,
)
from cq.model.edge import EVIDENCE, MAX_CANDIDATES

_TEXTS = ("builtins.str().", "builtins.bytes().")
_TEXT_METHODS = frozenset(dir(str)) | frozenset(dir(bytes))
_NOWHERE = (None, (), 0, False)
_OWN_NAMES = ("self", "cls", "this")


class Resolver:
    """Asks a settled linker. Every list is in a fixed order.

    More than 400 lines: it is a list of questions that stand beside one another and share nothing but the linker.
    """

    def __init__(self, linker: Linker) -> None:
        self.linker = linker
        self._defined: dict[tuple[View, int], list[Place]] = {}  # by the start of a class

    def visit(self, document: Unit, kept: Collection[int] = ()) -> None:
        """Asks everything once, so that settling makes all answers final; but for homes that are kept."""
        unit, code = self.linker.documents.view(document), document.code
        cells = self.read_callees(unit, kept)
        calling, running = self.find_calling(unit, cells), self.find_running(cells)
        for number, cell in enumerate(cells):
            if cell is not None:
                if number in calling:
                    self.callbacks(unit, number, cell.values)
                if cell in running:
                    self.run(unit, number, cell.values)
        for scope, start, value in code.raises:
            if unit.home(scope) not in kept:
                self.raised(unit, scope, start, value)
        for _ in self.implied(unit, kept):
            pass
        for definition in code.definitions:
            if definition.bases and unit.home_of(definition) not in kept:
                self.bases(unit, definition)
        for _ in self.imported(unit, kept):
            pass

    def read_callees(self, unit: View, kept: Collection[int]) -> list[Cell | None]:
        """Of the calls of a document, but for homes that are kept."""
        cells = self.linker.callees(unit, kept)
        homes = unit.homes
        by_home: dict[int, dict[Cell, None]] = {}
        for site, cell in zip(unit.sites, cells, strict=True):
            if cell is not None:
                by_home.setdefault(homes[site.scope], {})[cell] = None
        for home, asked in by_home.items():
            self.linker.ask(home, lambda asked=asked: [self.linker.read(cell) for cell in asked])
        return cells

    def call(self, unit: View, number: int, values: Values) -> Meaning:
        """What a call runs: a function, or the class it makes an instance of. On a receiver that nobody knows any
        method of the name may be meant: see cq.graph.names."""
        dialect = self.linker.dialect(unit)
        if dialect.is_static and len(values) > 1 and UNKNOWN in values:
            values = {thing: level for thing, level in values.items() if thing is not UNKNOWN}
        meaning = self.mean(values)
        if meaning.status == "ambiguous" and is_only_method(self.linker, unit, number, values):
            meaning = meaning._replace(status="resolved")
        if meaning.module:
            meaning = meaning._replace(module=_name_own(meaning.module, dialect))
        if meaning.status == "unresolved":
            site = unit.sites[number]
            if site.name in _TEXT_METHODS and any(
                isinstance(thing, External) and thing.name.startswith(_TEXTS) for thing in values
            ):
                return meaning  # `text.split()`: wherever the receiver is known, it is a text
            if site.name and site.name != site.callee and dialect.is_method_call(site):
                return BY_NAME
        return meaning

    def call_and_construct(self, unit: View, number: int, values: Values) -> tuple[Meaning, list[Meaning]]:
        """What a call runs, and the constructors of what it makes."""
        meaning = self.call(unit, number, values)
        return meaning, self.construct(values, meaning.status) if meaning.places else []

    def mean(self, values: Values) -> Meaning:
        if len(values) == 1:
            ((thing, level),) = values.items()
            place = self.find_place(thing)
            if place is not None and level <= PASSED:
                return Meaning("resolved", EVIDENCE[level], (place,))
            if place is None and not isinstance(thing, External):
                return UNRESOLVED
        places: dict[Place, int] = {}
        outside = ""
        is_open = False
        for thing, level in values.items():
            found = self.find_place(thing)
            if found is not None:
                places[found] = min(level, places.get(found, NAME))
            elif isinstance(thing, External):
                outside = min(outside, thing.name) if outside else thing.name
            else:
                is_open = True
        if not places:
            if outside and not is_open:
                return Meaning("external", EVIDENCE[IMPORT], module=_module_of(outside))
            return UNRESOLVED
        # By name, not by where they stand: definitions that change places change no link.
        ordered = sorted(places, key=lambda place: (places[place], *_name_place(place)))
        level = places[ordered[0]]
        if len(ordered) == 1 and not is_open and not outside and level <= PASSED:
            return Meaning("resolved", EVIDENCE[level], (ordered[0],))
        return Meaning(
            "ambiguous", EVIDENCE[level], tuple(ordered[:MAX_CANDIDATES]), omitted=max(0, len(ordered) - MAX_CANDIDATES)
        )

    def find_place(self, thing: Thing) -> Place | None:
        if type(thing) is Bound:
            thing = thing.function
        if type(thing) is OwnClass:
            thing = thing.type
        if type(thing) is Function or type(thing) is Class:
            definition = thing.definition
            symbol = definition.anonymous[0] if definition.anonymous else definition.symbol
            return (thing.unit, symbol) if symbol >= 0 else None
        if type(thing) is External:
            return None
        if isinstance(thing, Module) and thing.unit is not None:
            return (thing.unit, ROOT)
        if isinstance(thing, Instance):
            name = self.linker.dialect(thing.type.unit).protocols.get("call", "")
            holder, binds, _, _ = self.linker.members.find(thing.type, name)
            return _place(holder, binds)
        return None

    # -- what is no call -------------------------------------------------------------------------

    def imported(self, unit: View, kept: Collection[int] = ()) -> Iterator[tuple[Bind, Meaning | None]]:
        """Every binding by an import, with what it means; None in homes that are kept."""
        for bind in unit.raw.code.binds:
            if isinstance(bind.value, Imported):
                home = unit.home(bind.scope)
                yield (
                    bind,
                    None
                    if home in kept
                    else self.linker.ask(home, lambda bind=bind, value=bind.value: self._import(unit, bind, value)),
                )

    def _import(self, unit: View, bind: Bind, value: Imported) -> Meaning:
        meaning = self.mean(raised(self.linker.bound(unit, bind), IMPORT))
        origin = None if meaning.places else self.linker.dialect(unit).find_origin(self.linker, unit, value)
        if isinstance(origin, Module) and origin.unit is not None:
            return Meaning("resolved", "value", ((origin.unit, ROOT),))
        return meaning if origin is None else self.mean({origin: IMPORT})

    def bases(self, unit: View, definition: Definition) -> list[Meaning]:
        """What a class or an interface stands under; what an interface extends or a class implements is a type."""
        scope, start, home = definition.scope, definition.start, unit.home_of(definition)
        is_interface = definition.kind == "interface"
        found = [
            self._ask(home, lambda base=base: self.linker.evaluate(unit, scope, base, start))
            for base in (() if is_interface else definition.bases)
        ]
        typed = [value for name, value in definition.keywords if name == "implements"]
        for base in (*definition.bases, *typed) if is_interface else typed:
            named = base.base if isinstance(base, Element) else base
            found += self.types(unit, home, scope, [named], start)[:1]
        return found

    def overridden(self, unit: View, definition: Definition) -> Meaning | None:
        """The method of a base that this one takes the place of."""
        holder = unit.by_symbol.get(definition.scope)
        if holder is None or holder.kind == "function" or definition.kind != "function":
            return None
        function = self.linker.thing(unit, definition.start)
        if not isinstance(function, Function) or function.owner is None:
            return None
        owner = function.owner
        home = unit.home_of(definition)
        holder, binds, _, _ = self.linker.ask(
            home, lambda: self.linker.members.find_behind(owner, definition.name, owner)
        )
        if not isinstance(holder, Class) or not binds:
            holder, binds = self.linker.ask(home, lambda: self._find_promised(owner, definition.name))
        place = _place(holder, binds)
        return None if place is None else Meaning("resolved", "mro", (place,))

    def _find_promised(self, owner: Class, name: str) -> tuple[Thing | None, Sequence[Bind]]:
        """The member of an interface that a class, or one that it stands under, says to implement."""
        linker = self.linker
        for kind in linker.members.order(owner):
            for word, value in kind.definition.keywords if isinstance(kind, Class) else ():
                if word == "implements" and isinstance(kind, Class):
                    named = value.base if isinstance(value, Element) else value
                    dialect, definition = linker.dialect(kind.unit), kind.definition
                    made = dialect.find_static(linker, kind.unit, definition.scope, named, definition.start)
                    holder, binds, _, _ = linker.members.find(made, name) if isinstance(made, Class) else _NOWHERE
                    if binds:
                        return holder, binds
        return None, ()

    def types(self, unit: View, home: int, scope: int, kinds: Iterable[Value], position: int) -> list[Meaning]:
        """Classes of the repository that annotations name, for the code of a home."""
        kinds = [kind for kind in kinds if kind is not None]
        if not kinds:
            return []
        linker, dialect = self.linker, self.linker.dialect(unit)
        found: dict[Meaning, None] = {}
        for name in dialect.find_type_names(kinds):
            meaning = self._ask(
                home, lambda name=name: _single(dialect.find_static(linker, unit, scope, name, position))
            )
            if meaning.places:
                found[meaning] = None
        return list(found)

    def raised(self, unit: View, scope: int, start: int, value: Value) -> Meaning:
        """The class of what is raised, be it made there or not."""
        linker, home = self.linker, unit.home(scope)
        if isinstance(value, int) and value in unit.site_at:
            return linker.ask(home, lambda: self.mean(linker.link(unit, unit.site_at[value])))
        return self._ask(home, lambda: linker.evaluate(unit, scope, value, start))

    def _ask(self, home: int, question: Callable[[], Values]) -> Meaning:
        return self.linker.ask(home, lambda: self.mean(raised(question(), IMPORT)))

    def find_calling(self, unit: View, cells: Sequence[Cell | None]) -> set[int]:
        """Calls that may call what they are given: of the language's own functions that do, and decorators."""
        dialect = self.linker.dialects[unit.language]
        names = {*dialect.callers, *dialect.builtin_runs, *dialect.element_runs, *dialect.external_runs}
        found = {
            cell
            for cell in (dict.fromkeys(cells) if names else ())
            if cell is not None and any(type(thing) is External and thing.name in names for thing in cell.values)
        }
        return {
            number
            for number, (site, cell) in enumerate(zip(unit.sites, cells, strict=True))
            if cell is not None and (site.kind == "decorator" or cell in found)
        }

    def callbacks(self, unit: View, number: int, values: Values) -> tuple[Meaning, list[Meaning]] | None:
        """Functions that a call of these hands over: `map(f, …)`; of classes among them the constructors as well."""
        home = unit.home(unit.sites[number].scope)
        return self.linker.ask(home, lambda: self._find_callbacks(unit, number, values))

    def _find_callbacks(self, unit: View, number: int, values: Values) -> tuple[Meaning, list[Meaning]] | None:
        linker = self.linker
        found: Values = {}
        dialect = self.linker.dialects[unit.language]
        callers = dialect.callers
        site = unit.sites[number]

        def imply(names: Collection[str], value: Value) -> Values:
            found: Values = {}
            for methods in linker.protocols.imply(unit, site.scope, site.start, names, value):
                found |= methods
            return found

        for thing in values:
            if type(thing) is not External:
                continue
            given: list[Value] = []
            places = callers.get(thing.name)
            if isinstance(places, str):
                given = [value for name, value in site.keywords if name == places]
            elif places is not None:
                at = places if isinstance(places, tuple) else (places,)
                given = [site.args[place] for place in at if len(site.args) > place]
            for value in given:
                found = join(found, linker.evaluate(unit, site.scope, value, site.start))
            if thing.name in dialect.external_runs:
                found = join(found, dialect.find_ran(linker, thing, unit, number))
            if thing.name in dialect.element_runs and not given:
                passed = dialect.find_handed(thing, unit, number, "key")
                found = join(found, imply(dialect.element_runs[thing.name], passed.args[0]) if passed else {})
            elif thing.name in dialect.builtin_runs and site.args:
                found = join(found, imply(dialect.builtin_runs[thing.name], site.args[0]))
        decorated = unit.decorated_at(site.end) if site.kind == "decorator" else None
        if decorated is not None and decorated[2]:
            # `@f(x)`: what the call gives is called with what it decorates.
            found = join(found, {**linker.calls.find_called(linker.calls.result(unit, number))})
        if not found:
            return None
        meaning = self.mean(found)
        return (meaning, self.construct(found, meaning.status)) if meaning.places else None

    def find_running(self, cells: Sequence[Cell | None]) -> set[Cell]:
        """Callees that `run` has something to say about; few of all."""
        return {
            cell
            for cell in dict.fromkeys(cells)
            if cell is not None
            and (
                any(map(_runs_more, cell.values))
                or cell in self.linker.fetching
                or (UNKNOWN in cell.values and self.linker.is_on_self(cell))
            )
        }

    def run(self, unit: View, number: int, values: Values) -> Run | None:
        """What a call runs beside what it means: a wrapper that a decorator put around a function; methods of the
        classes that the receiver may be of."""
        home = unit.home(unit.sites[number].scope)
        return self.linker.ask(home, lambda: self._run(unit, number, values))

    def _run(self, unit: View, number: int, values: Values) -> Run | None:
        found: Values = {}
        declared: dict[Place, None] = {}  # methods that others run in the place of, or they themselves
        kept: set[Thing] = set()
        called = self.linker.calls.find_called(values) if any(map(_is_called, values)) else values
        for thing, level in called.items():
            if type(thing) is External:
                continue
            function = thing.function if isinstance(thing, Bound) else thing
            if not isinstance(function, Function):
                continue
            is_bare = isinstance(thing, Bound) and thing.receiver is None
            if function.definition.decorators and not is_bare:
                ran = self.linker.decorators.ran(function)
                others = {
                    o: max(at, level, INFERRED) for o, at in ran.items() if self.find_place(o) != self.find_place(thing)
                }
                others = without_givers(self.linker, others)
                if others:
                    found |= others
                    # Of several that a decorator may give it is not known that the function itself is not one, unless
                    # all of them call what they are wrapped around.
                    wrapping = [is_wrapping(self.linker, other) for other in others]
                    if any(_is_disguised(other) for other in others) or (len(ran) > 1 and not any(wrapping)):
                        kept.add(function)
                    elif len(ran) > 1 and not all(wrapping):
                        found[function] = PARAMETER
                    continue
            others: Values = {}
            receiver = thing.receiver if isinstance(thing, Bound) else None
            if receiver is None and "static" in function.definition.modifiers:
                receiver = find_typed_receiver(self.linker, unit, unit.sites[number])
            if is_own(receiver) or (receiver is None and _is_read_off(unit.sites[number], function)):
                others = find_dispatched(self.linker, unit, unit.sites[number], function)
            elif is_open(receiver):
                others = find_declared(self.linker, unit, unit.sites[number], receiver, function)
            is_abstract = "abstract" in function.definition.modifiers
            if others.keys() - {function}:
                # Another may run in its place: then it is one of several.
                found |= {other: at for other, at in others.items() if other is not function or not is_abstract}
                declared |= _single_place(self.find_place(function))
            elif is_open(receiver) and unit.sites[number].kind != "super" and self._may_be_others(receiver, function):
                found[function] = PARAMETER
                declared |= _single_place(self.find_place(function))
            elif not is_abstract:
                kept.add(function)
        fetched = self.linker.fetching.get(self.linker.callee(unit, number))
        if fetched:
            found |= dict.fromkeys(fetched, INFERRED)
            kept |= values.keys()
        elif len(values) == 1 and UNKNOWN in values:
            found = find_dispatched(self.linker, unit, unit.sites[number], None)
        if not found:
            return None
        meaning = self.mean(found)
        is_partly_known = len(values) > 1 and (UNKNOWN in values or TOP in values)
        if meaning.status == "resolved" and (is_partly_known or (len(kept) > 0 and not fetched)):
            meaning = meaning._replace(status="ambiguous")
        places = tuple(sorted(meaning.places, key=lambda place: place not in declared))  # the others as they were
        return Run(meaning._replace(places=places), not kept, bool(declared)) if places else None

    def _may_be_others(self, receiver: Instance | OwnClass, function: Function) -> bool:
        """Whether what runs in the place of a method is not known: it has no code of its own, or so many classes stand
        below that nobody looks."""
        linker, owner = self.linker, function.owner
        is_promise = owner is not None and linker.members.is_promise(owner)
        return is_promise or "abstract" in function.definition.modifiers or linker.callers.has_more_heirs(receiver.type)

    def implied(self, unit: View, kept: Collection[int] = ()) -> Iterator[tuple[int, int, Meaning]]:
        """Scope, place and methods of what runs without a call: `with x`, `for … in x`, `x + y`."""
        linker, names = self.linker, self.linker.dialects[unit.language].runs
        for scope, start, operation, value in unit.raw.code.runs:
            home = unit.home(scope)
            if home in kept:
                continue
            if isinstance(value, Augmented):
                value = value.target
            imply = linker.protocols.imply_of_key if operation.startswith("key") else linker.protocols.imply
            found = linker.ask(
                home, lambda i=imply, s=scope, v=value, at=start, o=operation: i(unit, s, at, names.get(o, ()), v)
            )
            for methods in found:
                meaning = linker.ask(home, lambda methods=methods: self.mean(methods))
                if meaning.places:
                    yield scope, start, meaning
        for definition in unit.raw.code.definitions:
            if definition.kind == "class" and unit.home(definition.scope) not in kept:
                places = self._define(unit, definition) if definition.bases or definition.keywords else []
                held = linker.ask(unit.home(definition.scope), lambda d=definition: self._find_held(unit, d))
                for place in dict.fromkeys([*places, *held]):
                    yield definition.scope, definition.start, Meaning("resolved", "mro", (place,))
        for scope, start, value in unit.raw.code.raises:
            home = unit.home(scope)
            if home not in kept and isinstance(value, (str, Literals)):  # `raise Wrong` makes one
                made = linker.ask(home, lambda s=scope, v=value, at=start: self._make(linker.evaluate(unit, s, v, at)))
                yield from ((scope, start, meaning) for meaning in made)

    def _make(self, values: Values) -> list[Meaning]:
        return self.construct(values, self.mean(values).status)

    def _define(self, unit: View, definition: Definition) -> list[Place]:
        """What a class statement runs: methods of its bases and of its metaclass that the language calls."""
        known = self._defined.get((unit, definition.start))
        if known is not None:
            return known
        linker, kind = self.linker, self.linker.thing(unit, definition.start)
        places: list[Place | None] = []

        def find() -> Values:
            if not isinstance(kind, Class):
                return {}
            dialect = linker.dialect(unit)
            for name in dialect.class_hooks:
                base = linker.members.order(kind)[1] if kind.is_line else None
                is_line = isinstance(base, Class)
                places.append(self._find_method(base if is_line else kind, name, behind=not is_line))
            meta = dialect.find_metaclass(linker, kind)
            places.extend([] if meta is None else [self._find_method(meta, name) for name in dialect.constructors])
            return {}

        linker.ask(unit.home(definition.scope), find)
        found = self._defined[unit, definition.start] = [place for place in places if place is not None]
        return found

    def _find_held(self, unit: View, definition: Definition) -> list[Place]:
        """Methods that run when a class is defined of what its attributes are instances of: `x = Field()`."""
        linker, hooks = self.linker, self.linker.dialects[unit.language].attribute_hooks
        found: list[Place] = []
        for number in unit.held_sites(definition.symbol) if hooks else ():
            things = linker.link(unit, number)
            kinds = [thing for thing in things if isinstance(thing, Class) and len(things) == 1]
            methods = [self._find_method(kind, hook) for kind in kinds for hook in hooks]
            found += [place for place in methods if place is not None]
        return found

    def construct(self, values: Values, status: str) -> list[Meaning]:
        """The constructors that run when a call makes an instance of a class of the repository: of a class that is
        certain (by the status of the call) all of them, `__init__` and `__new__`; else they are possible."""
        places: dict[Place, None] = {}  # several classes may have one of a base
        below: dict[Place, None] = {}
        for thing in values:
            kind = thing.type if isinstance(thing, OwnClass) else thing
            for heir in self.linker.callers.find_heirs(thing.type) if isinstance(thing, OwnClass) else ():
                names = self.linker.dialect(heir.unit).constructors
                below |= {place: None for name in names if (place := self._find_method(heir, name)) is not None}
            if isinstance(kind, Class):
                meta = self.linker.dialect(kind.unit).find_metaclass(self.linker, kind)
                called = None if meta is None else self._find_method(meta, "__call__")
                dialect = self.linker.dialect(kind.unit)
                found = [self._find_method(kind, name) for name in dialect.constructors if called is None]
                if not any(found) and called is None:
                    found = [self._find_method(kind, name) for name in dialect.made_constructors]
                for held in dialect.find_factories(self.linker, kind):
                    if isinstance(held, Class):
                        found += [self._find_method(held, name) for name in dialect.constructors]
                    else:
                        found.append(self.find_place(held))
                for place in (called, *found):
                    if place is not None:
                        places[place] = None
        if below.keys() - places.keys():
            status, places = "ambiguous", places | below
        if status == "resolved" and len(places) < 3:  # as many as are kept
            return [Meaning("resolved", "constructor", (place,)) for place in places]
        return [Meaning("ambiguous", "constructor", tuple(places))] if places else []

    def _find_method(self, kind: Class, name: str, *, behind: bool = False) -> Place | None:
        holder, binds, _, _ = self.linker.members.find(kind, name, behind=behind)
        return _place(holder, binds)


def _name_place(place: Place) -> tuple[str, int, str]:
    unit, symbol = place
    return unit.path, unit.document, unit.qualified_names.get(symbol, "")


def _place(holder: Thing | None, binds: Sequence[Bind]) -> Place | None:
    """Of a member of a class, where that is a definition."""
    starts = find_defined(binds[:1])
    if not starts or not isinstance(holder, Class):
        return None
    return (holder.unit, holder.unit.definitions[starts[0]].symbol)


def _runs_more(thing: Thing) -> bool:
    if type(thing) is Bound:
        if is_open(thing.receiver):
            return True
        thing = thing.function
    if type(thing) is Function:
        return bool(thing.definition.decorators)
    return _is_called(thing)


def _is_called(thing: Thing) -> bool:
    """Whether it is an instance of a class of which others may stand below."""
    return type(thing) is Instance and is_open(thing)


def _is_read_off(site: Site, function: Function) -> bool:
    """Whether a call names a method that gets no receiver on `self` or its class: `cls.helper()`."""
    is_named = function.owner is not None and function.definition.name == site.name
    receiver = split_receiver(site.callee)
    return is_named and receiver is not None and receiver.partition(".")[0] in _OWN_NAMES


def _is_disguised(thing: Thing) -> bool:
    """Whether a wrapper is decorated itself, by more than `@wraps(f)`: something else may run."""
    function = thing.function if isinstance(thing, Bound) else thing
    if not isinstance(function, Function):
        return False
    unit = function.unit
    names = [unit.sites[unit.site_at[v]].name if v in unit.site_at else "" for v in _numbers(function.definition)]
    return any(name != "wraps" for name in names)


def _numbers(definition: Definition) -> list[int]:
    """Decorators that are calls; -1 for others."""
    return [value if isinstance(value, int) else -1 for value in definition.decorators]


def _single_place(place: Place | None) -> dict[Place, None]:
    return {} if place is None else {place: None}


def _single(thing: Thing | None) -> Values:
    return {} if thing is None else {thing: IMPORT}


def _name_own(module: str, dialect: Dialect) -> str:
    """`builtins.list` is the linker's word: an array of JavaScript is an `Array`."""
    parts = module.split(".", 2)
    if len(parts) > 1 and parts[0] == "builtins" and parts[1] in dialect.own_kinds:
        parts[1] = dialect.own_kinds[parts[1]]
    return ".".join(parts)


def _module_of(name: str) -> str:
    return name.partition("(")[0]
