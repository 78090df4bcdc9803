"""Links a repository: which definitions every call can mean. Values flow over the code of all documents to a fixpoint.

A `Cell` is a place that holds values: a binding, the callee or the result of a call, what a function returns, a
parameter, a stored attribute. Cells are computed when first read, and again when what they read has grown; all
steps only ever add values, so the result is the same in whatever order they are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from cq.graph.corpus import Corpus, called_key, stored_key
from cq.graph.dialect import Dialect
from cq.graph.python import PythonDialect
from cq.graph.rust import RustDialect
from cq.graph.tables import TablesDialect
from cq.graph.things import (
    APPLIED,
    TOP,
    UNKNOWN,
    Argument,
    Bound,
    Class,
    Container,
    External,
    Function,
    Instance,
    Keys,
    Module,
    Native,
    OwnClass,
    Super,
    Thing,
)
from cq.graph.typescript import TypeScriptDialect
from cq.graph.unit import ANYWHERE, ROOT, Unit
from cq.graph.values import (
    ANNOTATION,
    ATTRIBUTE,
    CONSTRUCTOR,
    ELEMENT,
    EVERYTHING,
    IMPORT,
    INFERRED,
    MRO,
    NOTHING,
    PARAMETER,
    SCOPE,
    Values,
    join,
    raised,
)
from cq.model.code import Bind, Definition, Site, Store, Value

DIALECTS: tuple[type[Dialect], ...] = (PythonDialect, TypeScriptDialect, RustDialect, TablesDialect)


# The class that has a member, its bindings and stores there, and how sure that is.
Member = tuple[Class | External | None, Sequence[Bind], Sequence[Store], int]

_Answer = TypeVar("_Answer")

MAX_VALUES = 24  # of one cell; more are as good as anything
MAX_CALLERS = 24  # call sites of a name that are asked for a parameter's values
MAX_STORES = 10  # assignments to an attribute of that name, outside its class
MAX_PULL = 24  # cells computed inside one another; deeper ones wait in the list of work
MAX_BINDS = 100  # of one name, at one place
MAX_BASES = 100  # classes above one another
MAX_LINE = 30  # classes of one line that ask one another for a member
MAX_KEYS = 3  # names and parameters on the way to a constant key
MAX_PATH = 12  # attributes in one chain of names


def find_dialect(language: str) -> type[Dialect]:
    return next(kind for kind in DIALECTS if language in kind.languages)


class _Dialects(dict[str, Dialect]):
    """By language, made when first asked for: each looks at the paths of all files."""

    def __init__(self, paths: list[str]) -> None:
        super().__init__()
        self._paths = paths

    def __missing__(self, language: str) -> Dialect:
        kind = find_dialect(language)
        self.update(dict.fromkeys(kind.languages, kind(self._paths)))
        return self[language]

    def all(self) -> list[Dialect]:
        return [self[kind.languages[0]] for kind in DIALECTS]


class Cell:
    __slots__ = ("args", "compute", "home", "is_queued", "keys", "readers", "reads", "state", "values")

    def __init__(self, home: int, compute: Callable[..., Values], *args: object) -> None:
        self.compute, self.args = compute, args
        self.home = home  # the code it stands in
        # What it depends on beside that and other cells: one, or a plain set of them.
        self.keys: int | Keys | set[int | Keys] | None = None
        self.values: Values = NOTHING
        self.readers: Cell | dict[Cell, None] | None = None  # most have one, and there are many cells
        self.reads: list[Cell] | None = None  # when it was last computed, as `keys`: values that grow lead elsewhere
        self.state = 0  # 0 never computed, 1 being computed, 2 computed
        self.is_queued = False


class Linker:
    """Over the documents of one repository. Only what a question leads to is looked at."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self.dialects = _Dialects(sorted(corpus.paths))
        self.unknown: Values = {UNKNOWN: SCOPE}
        self._current: Cell | None = None
        self._depth = 0
        self._work: list[Cell] = []
        self._binds: dict[int, Cell] = {}  # by id of the Bind, which the unit keeps alive
        self._stores: dict[int, Cell] = {}
        self._callees: dict[Unit, list[Cell | None]] = {}
        self._heads: dict[Unit, dict[tuple[int, str], Thing | int | None]] = {}  # see _find_head
        self._shared: dict[tuple[Unit, int, str] | tuple[Thing, str], Cell] = {}
        self._results: dict[tuple[Unit, int], Cell] = {}
        self._returns: dict[Function, Cell] = {}
        self._parameters: dict[tuple[Function, int], Cell] = {}
        self._externals: dict[tuple[str, Container | None], External] = {}
        self._bounds: dict[tuple[Thing, Thing | None, int], Bound] = {}
        self._supers: dict[tuple[Class, Thing], Super] = {}
        self._containers: dict[tuple[str, Unit, int, int, str | int], Container] = {}
        self._generators: dict[Function, Value] = {}
        self._made_up: dict[tuple[object, ...], Value] = {}  # containers that stand nowhere in the code
        self._ran: dict[Function, Cell] = {}
        self._receivers: dict[Function, Cell] = {}
        self._elements: dict[tuple[Container, str | None], Cell] = {}
        self._arguments: dict[tuple[Function, int], Argument] = {}
        self._modules: dict[str, Module] = {}
        self._members: dict[tuple[Class, str, bool], tuple[Member, Keys]] = {}
        self._paths: dict[str, list[str]] = {}
        self._recording: list[tuple[Keys, Cell | None]] = []  # with the cell that asked
        self._flat: dict[Keys, tuple[int, ...]] = {}  # what Keys come to, once all has been asked
        self._askers: dict[int, Cell] = {}  # by home: see ask

    # -- asking ----------------------------------------------------------------------------------

    def link(self, unit: Unit, number: int) -> Values:
        """What the callee of a call can be. Final once `settle` was called."""
        if self._current is not None:
            self.record(unit.home(unit.code.sites[number].scope))  # the cell may be shared with other code
        return self.read(self.callee(unit, number))

    def settle(self) -> None:
        """Computes until nothing grows. What was asked until then is forgotten: answers were not yet final."""
        work = self._work
        while work:
            batch, self._work = work, []
            for cell in batch:
                cell.is_queued = False
                self._run(cell)
            work = self._work
        self._askers.clear()

    # -- cells -----------------------------------------------------------------------------------

    def read(self, cell: Cell) -> Values:
        if not cell.state:
            if self._depth < MAX_PULL:
                self._run(cell)
            elif not cell.is_queued:
                cell.is_queued = True
                self._work.append(cell)
        # Told only of what comes later: what the cell has by now is read here.
        current = self._current
        if current is not None:
            if current.reads is None:
                current.reads = [cell]
            else:
                current.reads.append(cell)
            readers = cell.readers
            if readers is None:
                cell.readers = current
            elif isinstance(readers, dict):
                readers[current] = None
            elif readers is not current:
                cell.readers = {readers: None, current: None}
        return cell.values

    def _run(self, cell: Cell) -> None:
        saved, self._current = self._current, cell
        self._depth += 1
        cell.state = 1
        cell.keys = cell.reads = None
        values = cell.compute(self, *cell.args)
        cell.state = 2
        self._depth -= 1
        self._current = saved
        old = cell.values
        if values is old or old is EVERYTHING:
            return
        if old:
            grown = join(old, values)
            if grown is old:
                return
            values = grown
        elif not values:
            return
        if len(values) > MAX_VALUES:
            values = EVERYTHING
        cell.values = values
        for reader in find_readers(cell):
            if reader.state and not reader.is_queued:
                reader.is_queued = True
                self._work.append(reader)

    def callee(self, unit: Unit, number: int) -> Cell:
        cells = self._callees.get(unit)
        if cells is None:
            cells = self._callees[unit] = [None] * len(unit.code.sites)
        cell = cells[number]
        if cell is None:
            cell = cells[number] = self._find_cell(unit, unit.code.sites[number])
        return cell

    def callees(self, unit: Unit, kept: Collection[int] = ()) -> list[Cell | None]:
        """Of the calls of a document, without those in homes that are kept; many share one."""
        known = self._callees.get(unit)
        if known is not None and not kept and None not in known:
            return known
        homes = unit.homes
        found = [
            None if kept and homes[site.scope] in kept else self.callee(unit, number)
            for number, site in enumerate(unit.code.sites)
        ]
        self._heads.pop(unit, None)
        return found

    def _find_cell(self, unit: Unit, site: Site) -> Cell:
        name, scope = site.callee, site.scope
        if type(name) is str:
            head, _, rest = name.partition(".")
            heads = self._heads.get(unit)
            if heads is None:
                heads = self._heads[unit] = {}
            at = heads.get((scope, head), _UNSEEN)
            if at is _UNSEEN:
                at = heads[scope, head] = self._find_head(unit, scope, head)
            if at is not None:
                key = (unit, at, name) if isinstance(at, int) else (at, rest)
                cell = self._shared.get(key)
                if cell is None:
                    if isinstance(at, int):
                        cell = Cell(unit.home(at), Linker.evaluate, unit, at, name, site.start)
                    else:
                        cell = Cell(unit.home(ROOT), Linker._follow, {at: MRO}, rest)
                    self._shared[key] = cell
                return cell
        return Cell(unit.home(scope), Linker.evaluate, unit, scope, name, site.start)

    def _find_head(self, unit: Unit, scope: int, name: str) -> Thing | int | None:
        """Most names are bound once: they mean the same wherever they stand. The scope in which all calls share one
        cell, or the receiver: `self` is the same in every method of a class. None where it depends on the place."""
        binds, dialect = unit.find_fixed(scope, name), self.dialects[unit.language]
        if binds is None or dialect.is_static:
            return None if binds is None else scope
        if not binds:
            return scope if name == "__class__" else ROOT
        value = binds[0].value
        if binds[0].scope == scope and type(value) is list and value[0] == "param" and not value[2]:
            method = self.thing(unit, value[1])
            receiver = dialect.receiver(self, method) if isinstance(method, Function) else None
            if receiver is not None:
                return receiver
        return binds[0].scope

    def _follow(self, values: Values, path: str) -> Values:
        for name in path.split(".")[: MAX_PATH - 1] if path else ():
            values = self.attribute(values, name)
        return values

    def result(self, unit: Unit, number: int) -> Values:
        key = (unit, number)
        cell = self._results.get(key)
        if cell is None:
            cell = self._results[key] = Cell(unit.home(unit.code.sites[number].scope), Linker._call, unit, number)
        return self.read(cell)

    def bound(self, unit: Unit, bind: Bind) -> Values:
        """What a name has from this binding."""
        value = bind.value
        if type(value) is list and bind.type is None:
            operation = value[0]
            if operation == "def":
                definition = unit.definitions[value[1]]
                if not definition.decorators or definition.kind != "function":
                    return {self.thing(unit, value[1]): SCOPE}
                return self._decorated(unit, definition)
            if operation == "param":
                return self.argued(unit, value[1], value[2])
        cell = self._binds.get(id(bind))
        if cell is None:
            cell = self._binds[id(bind)] = Cell(unit.home(bind.scope), Linker._bound, unit, bind)
        return self.read(cell)

    def _bound(self, unit: Unit, bind: Bind) -> Values:
        if bind.type is not None:
            made = self.make(unit, bind.scope, bind.type, bind.start)
            if made and UNKNOWN not in made:
                return made
        if bind.value is None:
            return self.unknown
        # The name on the right of `x = x or y` is what it was before the statement.
        return self.evaluate(unit, bind.scope, bind.value, bind.start - 1)

    def _decorated(self, unit: Unit, definition: Definition) -> Values:
        """A decorated function is itself, also behind a wrapper, unless a decorator of the repository plainly gives
        another function: one that is not defined inside it."""
        for value in definition.decorators:
            if isinstance(value, str):
                decorator = self.dialect(unit).find_static(self, unit, definition.scope, value, definition.start)
                if isinstance(decorator, Function) and decorator.definition.returns:
                    others = self._find_replacements(decorator)
                    if others:
                        return others
        return {self.thing(unit, definition.start): SCOPE}

    def _find_replacements(self, decorator: Function) -> Values:
        unit, definition = decorator.unit, decorator.definition
        self.record(unit.home_of(definition))
        found: Values = {}
        for value in definition.returns:
            if not isinstance(value, str):
                return {}
            other = self.dialect(unit).find_static(self, unit, definition.symbol, value, ANYWHERE)
            if not isinstance(other, Function) or other.definition.scope == definition.symbol:
                return {}
            found[other] = INFERRED
        return found

    def stored(self, unit: Unit, store: Store) -> Values:
        cell = self._stores.get(id(store))
        if cell is None:
            cell = self._stores[id(store)] = Cell(unit.home(store.scope), Linker._stored, unit, store)
        return self.read(cell)

    def _stored(self, unit: Unit, store: Store) -> Values:
        if store.type is not None:
            made = self.make(unit, store.scope, store.type, store.start)
            if made and UNKNOWN not in made:
                return made
        return self.evaluate(unit, store.scope, store.value, store.start)

    def returned(self, function: Function) -> Values:
        """What a function returns, its parameters standing for themselves (`Argument`)."""
        cell = self._returns.get(function)
        if cell is None:
            cell = self._returns[function] = Cell(
                function.unit.home_of(function.definition), Linker._returned, function
            )
        return self.read(cell)

    def _returned(self, function: Function) -> Values:
        unit, definition = function.unit, function.definition
        if definition.type is not None:
            made = self.make(unit, definition.scope, definition.type, ANYWHERE)
            if made and UNKNOWN not in made:
                return made
        if "generator" in definition.modifiers:
            value = self._generators.get(function)
            if value is None:
                value = self._generators[function] = ["each", "generator", ["|", *definition.yields]]
            return {self.container("generator", unit, definition.symbol, ANYWHERE, value): SCOPE}
        found = NOTHING
        scope = definition.symbol if definition.symbol >= 0 else definition.scope
        for value in definition.returns:
            if isinstance(value, str) and "." not in value:
                # `return x`: when x is only ever the parameter, the caller knows best what it is.
                binds = unit.find(scope, value, ANYWHERE if definition.symbol >= 0 else definition.start)
                only = binds[0].value if len(binds) == 1 else None
                if type(only) is list and only[:2] == ["param", definition.start]:
                    number = only[2]
                    if number or self.dialect(unit).receiver(self, function) is None:
                        found = join(found, {self.argument(function, number): INFERRED})
                        continue
            position = ANYWHERE if definition.symbol >= 0 else definition.start
            found = join(found, self.evaluate(unit, scope, value, position))
        return raised(found, INFERRED)

    def argued(self, unit: Unit, start: int, number: int) -> Values:
        """A parameter of what is defined there: a function, or one that is made with `new`."""
        thing = self.thing(unit, start)
        if isinstance(thing, Function):
            return self.parameter(thing, number)
        return self.unknown if number else {thing.self_instance: MRO}

    def parameter(self, function: Function, number: int) -> Values:
        dialect = self.dialect(function.unit)
        if not number and not dialect.is_static:
            receiver = dialect.receiver(self, function)
            if receiver is not None:
                self.record(function.unit.home_of(function.definition))
                return {receiver: MRO}
        key = (function, number)
        cell = self._parameters.get(key)
        if cell is None:
            cell = self._parameters[key] = Cell(
                function.unit.home_of(function.definition), Linker._parameter, function, number
            )
        return self.read(cell)

    def _parameter(self, function: Function, number: int) -> Values:
        unit, definition = function.unit, function.definition
        dialect = self.dialect(unit)
        parameter = definition.parameters[number]
        if dialect.is_static:
            return dialect.find_parameter(self, function, number)
        if parameter.type is not None:
            made = self.make(unit, definition.scope, parameter.type, ANYWHERE)
            if made and UNKNOWN not in made and parameter.kind not in ("*", "**"):
                return made
        if parameter.kind in ("*", "**"):
            return self._rest(function, number)
        passed = dialect.find_passed(self, function, number)
        if passed is not None:
            return passed
        found = dict(self.unknown)
        if parameter.default is not None:
            found = join(found, raised(self.evaluate(unit, definition.scope, parameter.default, ANYWHERE), PARAMETER))
        for caller, site, skipped in self._find_callers(function):
            passed = find_argument(function, site, number, skipped)
            if passed is not None:
                values = self.evaluate(caller, site.scope, passed, site.start)
                found = join(found, raised(values, PARAMETER))
        return found

    def _rest(self, function: Function, number: int) -> Values:
        """`*args` and `**kwargs`: what each call passes beyond the other parameters."""
        found = dict(self.unknown)
        for caller, site, skipped in self._find_callers(function):
            value = find_rest(function, site, number, skipped)
            if len(value) > 1:
                value = self._made_up.setdefault((function, number, caller, site.start, site.end, skipped), value)
                held = self.container(value[0], caller, site.scope, site.start, value)
                found = join(found, {held: PARAMETER})
        return found

    def _find_callers(self, function: Function) -> list[tuple[Unit, Site, int]]:
        """Calls whose callee is this function, with how many parameters the receiver takes; by name, so that
        few must be asked. None at all where there are too many."""
        found: list[tuple[Unit, Site, int]] = []
        for unit, number in self._find_places(function):
            site = unit.code.sites[number]
            values: Values
            if site.kind == "decorator" and site.end in unit.decorated_at:
                decorated, rank, is_called = unit.decorated_at[site.end]
                values = self.result(unit, number) if is_called else self.link(unit, number)
                site = self._decorator_site(unit, decorated, rank)
            else:
                values = self.link(unit, number)
            skips = {self._skipped(thing, function) for thing in values} - {None}
            found += [(unit, site, skipped) for skipped in sorted(skips)]  # pyright: ignore[reportArgumentType]
        return found

    def _find_places(self, function: Function) -> list[tuple[Unit, int]]:
        """Calls that may run a function, by its name; none where there are too many. A constructor runs by the names of
        its class and of those below it, and by its own from below; what a decorator gives, by the decorator's."""
        unit, definition = function.unit, function.definition
        names = [definition.name]
        if function.owner is not None and definition.name in self.dialect(unit).constructors:
            self.record(unit.name_key(f"<{function.owner.definition.name}"))
            names = [function.owner.definition.name, *self._find_heirs(function.owner)]
        holder = unit.by_symbol.get(definition.scope)
        giver = holder.name if holder is not None and holder.kind == "function" else ""
        if function.owner is not None and definition.name == self.dialect(unit).protocols.get("call"):
            giver = function.owner.definition.name  # `@Retry(3)` over a function calls what it makes
        names += [giver] if giver and giver not in names else []
        self.record(unit.name_key("()"))
        places: list[tuple[Unit, int]] = []
        for rank, name in enumerate(names):
            self.record(called_key(name))
            units = self.corpus.calling(name) if name else ()
            if units is None:
                if rank:
                    continue
                return []
            for caller in units:
                numbers = caller.sites_by_name.get(name, ())
                if name == giver and rank:
                    numbers = [n for n in numbers if caller.code.sites[n].end in caller.decorated_at]
                places += [(caller, number) for number in numbers]
        places += [(unit, number) for number in unit.indirect]
        if len(places) > MAX_CALLERS:
            return []
        if definition.name != names[0]:
            above = [number for number in unit.sites_by_name.get(definition.name, ())]
            self.record(unit.name_key(f"(){definition.name}"))
            places += [(unit, number) for number in above] if len(above) + len(places) <= MAX_CALLERS else []
        return places

    def receivers(self, method: Function) -> Values:
        """The classes below its own that calls are known to hand to a method as `self`."""
        cell = self._receivers.get(method)
        if cell is None:
            cell = self._receivers[method] = Cell(
                method.unit.home_of(method.definition), Linker._find_receivers, method
            )
        return self.read(cell)

    def _find_receivers(self, method: Function) -> Values:
        """UNKNOWN among them: there may be others."""
        found: Values = {}
        places = self._find_places(method)
        for unit, number in places:
            for thing in self.link(unit, number):
                kind: Class | None = None
                if isinstance(thing, Bound) and thing.function is method:
                    receiver = thing.receiver if isinstance(thing.receiver, Instance) else None
                    around = self.method_around(unit, unit.code.sites[number].scope)
                    if receiver is not None and receiver.own:
                        if around is not None and around is not method:
                            # Whatever `self` is there it is here too.
                            below = (k for k in self.receivers(around) if k is UNKNOWN or self._is_below(k, method))
                            found |= dict.fromkeys(below, PARAMETER)
                        if receiver.type is method.owner:
                            continue
                    kind = None if receiver is None else receiver.type
                elif (
                    type(thing) is Bound and type(thing.receiver) is Instance and thing.receiver.own
                    and self._is_overridden(thing.function, method)
                ):  # fmt: skip
                    # `self.f()` above runs it where `self` is of its class.
                    around = self.method_around(unit, unit.code.sites[number].scope)
                    below = self.receivers(around) if around is not None and around is not method else ()
                    found |= dict.fromkeys((k for k in below if self._is_below(k, method)), PARAMETER)
                elif self._skipped(thing, method) == 1:
                    kind = thing if isinstance(thing, Class) else None
                elif thing is UNKNOWN or thing is TOP:
                    found[UNKNOWN] = PARAMETER
                if kind is not None:
                    found[kind] = PARAMETER
        return found if places else self.unknown

    def _is_overridden(self, other: Thing, method: Function) -> bool:
        """Whether a method takes the place of another in a class below."""
        if not isinstance(other, Function) or other.definition.name != method.definition.name:
            return False
        return method.owner is not None and other.owner in self.order(method.owner)[1:]

    def _is_below(self, kind: Thing, method: Function) -> bool:
        """Whether a class has a method from the class that it is defined in."""
        return isinstance(kind, Class) and self.find_member(kind, method.definition.name)[0] is method.owner

    def method_around(self, unit: Unit, scope: int) -> Function | None:
        """The method whose code holds a scope, through functions in it."""
        method = unit.by_symbol.get(scope)
        while method is not None and (method.kind != "function" or unit.by_symbol.get(method.scope) is None):
            method = unit.by_symbol.get(method.scope)
        around = None if method is None else self.thing(unit, method.start)
        return around if isinstance(around, Function) and around.owner is not None else None

    def is_made(self, kind: Class) -> bool:
        """Whether a call may make an instance of just this class."""
        name = kind.definition.name
        self.record(called_key(name))
        units = self.corpus.calling(name)
        if units is None:
            return True
        sites = [(unit, number) for unit in units for number in unit.sites_by_name.get(name, ())]
        return len(sites) > MAX_CALLERS or any(kind in self.link(unit, number) for unit, number in sites)

    def imply(self, unit: Unit, scope: int, start: int, names: Iterable[str], value: Value) -> Values:
        """The methods of those names that the values of an expression have. Most operators are between numbers and
        texts: they are looked at only where it is a variable or a call that may give something else."""
        found: Values = {}
        if "__iter__" not in names and "__enter__" not in names and not self._may_be_made(unit, scope, start, value):
            return found
        for thing, level in self.evaluate(unit, scope, value, start).items():
            if isinstance(thing, Instance):
                for name in names:
                    way = _NEXT.get(name)
                    inner = {thing: level} if way is None else self.protocol(thing, way, level)
                    for other, at in inner.items():
                        if isinstance(other, Instance):
                            members = self.member(other, name, at)
                            if name == "__iter__" and UNKNOWN in members and self._iterates_by_number(other):
                                members = self.member(other, "__getitem__", at)
                            found.update({m: x for m, x in members.items() if isinstance(m, (Bound, Function))})
        return found

    def _iterates_by_number(self, thing: Instance) -> bool:
        """What has no `__iter__` is asked for elements by number."""
        dialect = self.dialect(thing.type.unit)
        name, other = dialect.protocols.get("iter", ""), dialect.protocols.get("item", "")
        has_none = not name or self.find_member(thing.type, name)[0] is None
        return has_none and bool(other) and isinstance(self.find_member(thing.type, other)[0], Class)

    def _may_be_made(self, unit: Unit, scope: int, start: int, value: Value) -> bool:
        """Whether a value is what a call gives, directly or through a variable."""
        if type(value) is list and value[0] == "op":
            return self._may_be_made(unit, scope, start, value[2])
        if type(value) is not str or "." in value:
            return type(value) is int
        binds = unit.find(scope, value, start)
        self.record(unit.scope_key(binds[0].scope if binds else ROOT, value))
        values = [bind.value for bind in binds]
        return any(type(inner) is int or (type(inner) is list and inner[0] in _GIVEN) for inner in values)

    def _find_heirs(self, kind: Class) -> list[str]:
        """The names of classes of the same document that have a class as their base."""
        name = kind.definition.name
        definitions = kind.unit.code.definitions
        return [d.name for d in definitions if d.kind == "class" and name in d.bases and d.name != name]

    def _decorator_site(self, unit: Unit, definition: Definition, rank: int) -> Site:
        """`@f` over a definition calls f with it, or with what the decorators below gave for it."""
        value = self._made_up.setdefault((unit, definition.start, rank), ["decorated", definition.start, rank])
        return Site(definition.scope, definition.start, -1, None, (value,))

    def ran(self, function: Function) -> Values:
        """What runs when a decorated function is called: itself, unless a decorator of the repository gives another."""
        cell = self._ran.get(function)
        if cell is None:
            cell = self._ran[function] = Cell(
                function.unit.home(function.definition.scope), Linker.decorate, function.unit, function.definition, 0
            )
        return self.read(cell)

    def decorate(self, unit: Unit, definition: Definition, rank: int) -> Values:
        """A definition behind its decorators, without the first `rank` of them."""
        # Bound to nothing: what its own decorators get is not behind them.
        found: Values = {self.bind(self.thing(unit, definition.start), None): SCOPE}
        decorators = definition.decorators
        for at in range(len(decorators) - 1, rank - 1, -1):
            site = self._decorator_site(unit, definition, at + 1)
            given = NOTHING
            for thing, level in self.evaluate(unit, definition.scope, decorators[at], definition.start).items():
                if isinstance(thing, (Class, OwnClass)):
                    given = join(given, self.made({thing: level}))
                elif isinstance(thing, External):
                    given = join(given, self.dialect(unit).give_decorated(self, thing, unit, definition, found))
                for called in self.find_called({thing: level}) if self.dialect(unit).keeps_decorated(thing) else ():
                    given = join(given, self._give_decorated(called, unit, site))
            given = {thing: level for thing, level in given.items() if thing is not UNKNOWN}
            found = given or found
        return found

    def find_called(self, values: Values) -> dict[Function | Bound, int]:
        """The functions among values, and the methods that calling an instance among them runs."""
        found: dict[Function | Bound, int] = {}
        for thing, level in values.items():
            if isinstance(thing, (Function, Bound)):
                found[thing] = level
            elif isinstance(thing, Instance):
                name = self.dialect(thing.type.unit).protocols.get("call")
                inner = self.member(thing, name, level) if name is not None else NOTHING
                found |= {m: at for m, at in inner.items() if isinstance(m, (Function, Bound))}
        return found

    def _give_decorated(self, thing: Function | Bound, unit: Unit, site: Site) -> Values:
        function = thing if isinstance(thing, Function) else thing.function
        if not isinstance(function, Function):
            return NOTHING
        found: Values = {}
        for value, level in self.returned(function).items():
            if isinstance(value, Argument):
                is_passed = value.function is function and value.number == (1 if isinstance(thing, Bound) else 0)
                values = self.evaluate(unit, site.scope, site.args[0], site.start) if is_passed else NOTHING
                found = join(found, raised(values, level))
            elif isinstance(value, (Function, Bound, Instance)):
                found = join(found, {value: level})
        return found

    def _skipped(self, thing: Thing, function: Function) -> int | None:
        """How many parameters come from elsewhere when `thing` is called and that runs `function`; None: it does not
        run it."""
        if thing is function:
            return 0
        if isinstance(thing, Bound) and thing.function is function:
            return thing.skipped if thing.receiver is None else 1
        if isinstance(thing, (Class, OwnClass)) and function.owner is not None:
            kind = thing if isinstance(thing, Class) else thing.type
            if function.definition.name in self.dialect(kind.unit).constructors:
                return 1 if self.find_member(kind, function.definition.name)[0] is function.owner else None
        name = function.definition.name
        if isinstance(thing, Instance) and name == self.dialect(thing.type.unit).protocols.get("call"):
            return 1 if function.owner and self.find_member(thing.type, name)[0] is function.owner else None
        return None

    # -- what was looked at ----------------------------------------------------------------------

    def record(self, key: int | Keys) -> None:
        """The cell being computed, or what is being remembered for many, depends on what the key stands for."""
        current = self._current
        if self._recording:
            keys, asker = self._recording[-1]
            keys.add(key)
            if asker is current:
                return  # it gets them all in the end
        if current is not None and key != current.home:
            known = current.keys
            if known is None:
                current.keys = key
            elif not isinstance(known, (int, Keys)):
                known.add(key)
            elif known != key:
                current.keys = {known, key}

    @contextmanager
    def recording(self, keys: Keys) -> Iterator[None]:
        """Everything that is recorded meanwhile is put into `keys`, for an answer that is remembered: whoever gets it
        records those."""
        self._recording.append((keys, self._current))
        try:
            yield
        finally:
            self._recording.pop()
            self.record(keys)

    def find_keys(self, home: int) -> set[int] | None:
        """Everything that the meaning of the code of one home depends on; None where nothing was asked for it. Once
        settled, and all that is to be asked has been asked."""
        asker = self._askers.get(home)
        if asker is None:
            return None
        found: set[int] = set()
        seen = {asker}
        todo = [asker]
        for cell in todo:
            found.add(cell.home)
            keys = cell.keys
            if isinstance(keys, int):
                found.add(keys)
            elif isinstance(keys, Keys):
                found.update(self._flatten(keys))
            elif keys is not None:
                for key in keys:
                    if isinstance(key, int):
                        found.add(key)
                    else:
                        found.update(self._flatten(key))
            if cell.reads is not None:
                for inner in cell.reads:
                    if inner not in seen:
                        seen.add(inner)
                        todo.append(inner)
        return found

    def _flatten(self, keys: Keys) -> tuple[int, ...]:
        found = self._flat.get(keys)
        if found is None:
            found = self._flat[keys] = tuple(flatten(keys))
        return found

    def ask(self, home: int, question: Callable[[], _Answer]) -> _Answer:
        """Answers a question for the code of a home, whose meaning then depends on all that the answer does."""
        cell = self._askers.get(home)
        if cell is None:
            cell = self._askers[home] = Cell(home, _no_values)
        saved, self._current = self._current, cell
        try:
            return question()
        finally:
            self._current = saved

    # -- things ----------------------------------------------------------------------------------

    def dialect(self, unit: Unit) -> Dialect:
        return self.dialects[unit.language]

    def thing(self, unit: Unit, start: int) -> Class | Function:
        found = unit.things.get(start)
        if found is None:
            definition = unit.definitions[start]
            if definition.kind == "function":
                holder = unit.by_symbol.get(definition.scope)
                owner = None
                if holder is not None and holder.kind != "function":
                    owner = self.thing(unit, holder.start)
                found = Function(unit, definition, owner if isinstance(owner, Class) else None)
            else:
                found = Class(unit, definition)
            unit.things[start] = found
        return found

    def function(self, unit: Unit, start: int) -> Function:
        found = self.thing(unit, start)
        assert isinstance(found, Function)
        return found

    def external(self, name: str, owner: Container | None = None) -> External:
        key = (name, owner)
        found = self._externals.get(key)
        if found is None:
            found = self._externals[key] = External(name, owner)
        return found

    def bind(self, function: Thing, receiver: Thing | None, skipped: int = 0) -> Bound:
        key = (function, receiver, skipped)
        found = self._bounds.get(key)
        if found is None:
            found = self._bounds[key] = Bound(function, receiver, skipped)
        return found

    def super_of(self, kind: Class, receiver: Thing) -> Super:
        key = (kind, receiver)
        found = self._supers.get(key)
        if found is None:
            found = self._supers[key] = Super(kind, receiver)
        return found

    def container(
        self, kind: str, unit: Unit, scope: int, position: int, value: Value, *, typed: bool = False
    ) -> Container:
        # Values are kept by the code they stand in, so their identity lasts; short names in types are equal anyway.
        key = (kind, unit, scope, position, value if typed and type(value) is str else id(value))
        found = self._containers.get(key)
        if found is None:
            found = self._containers[key] = Container(kind, unit, scope, position, value, typed=typed)
        return found

    def held(self, unit: Unit, number: int, value: Value) -> Container:
        """A container that a call gives, as one written in its place."""
        site = unit.code.sites[number]
        key = (unit, number)
        known = self._made_up.get(key)
        if known is None:
            known = self._made_up[key] = value
            unit.name_result(site.end, value)
        return self.container(known[1] if known[0] == "each" else known[0], unit, site.scope, site.start, known)

    def argument(self, function: Function, number: int) -> Argument:
        key = (function, number)
        found = self._arguments.get(key)
        if found is None:
            found = self._arguments[key] = Argument(function, number)
        return found

    def module(self, path: str) -> Module:
        """Of a file, or of a folder."""
        found = self._modules.get(path)
        if found is None:
            found = self._modules[path] = Module(self.corpus.unit(path), path)
        return found

    # -- expressions -----------------------------------------------------------------------------

    def evaluate(self, unit: Unit, scope: int, value: Value, position: int) -> Values:
        """What an expression can be, seen from a place."""
        if value is None:
            return self.unknown
        kind = type(value)
        if kind is str:
            mark = value[0]
            if mark in "'#=":
                if value == "=None":
                    return NOTHING
                name = "str" if mark == "'" else "int" if mark == "#" else value[1:]
                return self._literal(name, self.dialects[unit.language].core)
            path = self._paths.get(value)
            if path is None:
                path = self._paths[value] = value.split(".")
            found = self.name(unit, scope, path[0], position)
            for name in path[1:MAX_PATH]:
                found = self.attribute(found, name)
            return found
        if kind is int:
            number = unit.site_at.get(value)
            return self.unknown if number is None else self.result(unit, number)
        operation = _OPERATIONS.get(value[0])
        if operation is None:
            return self.dialect(unit).operate(self, unit, scope, value, position)
        return operation(self, unit, scope, value, position)

    def _literal(self, name: str, core: str = "builtins") -> Values:
        return {self.external(f"{core}.{name}()"): SCOPE}

    def name(self, unit: Unit, scope: int, name: str, position: int) -> Values:
        dialect = self.dialects[unit.language]
        if dialect.is_static:
            return dialect.find_name(self, unit, scope, name, position)
        binds = unit.find(scope, name, position)
        self.record(unit.scope_key(binds[0].scope if binds else ROOT, name))
        if len(binds) == 1:
            return self.bound(unit, binds[0])
        if binds:
            found = NOTHING if len(binds) <= MAX_BINDS else self.unknown
            for bind in binds if len(binds) <= MAX_BINDS else ():
                found = join(found, self.bound(unit, bind))
            return found
        found = self._starred(unit, name, {unit})
        if found is not None:
            return found
        if name in dialect.builtins:
            return {self.external(f"builtins.{name}"): SCOPE}
        if name == "__class__":
            holder = unit.find_class(scope)
            if holder is not None:
                return {self.thing(unit, holder.start): SCOPE}
        return self.unknown

    def exported(self, unit: Unit, name: str, seen: set[Unit] | None = None) -> Values | None:
        """What a module has under a name; None when it has no such name."""
        binds = unit.scopes[ROOT].get(name)
        self.record(unit.name_key(name))
        if binds is not None:
            reached = unit.reach(binds, ANYWHERE, is_own=False)
            if reached:
                found = NOTHING
                for bind in reached:
                    found = join(found, self.bound(unit, bind))
                return raised(found, IMPORT)
        return self._starred(unit, name, seen or {unit})

    def _starred(self, unit: Unit, name: str, seen: set[Unit]) -> Values | None:
        """Through `from m import *`; the last one wins."""
        self.record(unit.name_key("*"))
        for bind in reversed(unit.stars):
            _, level, module, _ = bind.value
            for thing in self.dialect(unit).resolve_import(self, unit, level, module, "*"):
                if isinstance(thing, Module) and thing.unit is not None and thing.unit not in seen:
                    inner = thing.unit
                    self.record(inner.name_key("__all__"))
                    public = inner.code.public
                    if name not in public if public is not None else name.startswith("_"):
                        continue
                    found = self.exported(inner, name, seen | {inner})
                    if found is not None:
                        return found
                    module = None if public is None else self.dialect(unit).find_submodule(self, thing.path, name)
                    if module is not None:  # named in `__all__`, it is imported too
                        return {module: IMPORT}
                elif isinstance(thing, External) and name not in self.dialect(unit).builtins:
                    # Nothing in the repository has the name, so it can only come from there.
                    return {self.external(f"{thing.name}.{name}"): IMPORT}
        return None

    def attribute(self, values: Values, name: str) -> Values:
        if len(values) == 1:
            ((thing, level),) = values.items()
            return self.member(thing, name, level)
        found = NOTHING
        for thing, level in values.items():
            found = join(found, self.member(thing, name, level))
        return found

    def member(self, thing: Thing, name: str, level: int) -> Values:
        """What `thing.name` can be."""
        if thing is TOP:
            return EVERYTHING
        if isinstance(thing, Instance):
            if name == "__class__":
                return {thing.type.self_class if thing.own else thing.type: level}
            return self._class_member(thing.type, name, thing, level, on_class=False)
        if isinstance(thing, External):
            if thing.name.count(".") > MAX_PATH or thing.name.count("(") > 3:
                return {thing: level}
            return {self.external(f"{thing.name}.{name}"): max(level, IMPORT)}
        if isinstance(thing, Module):
            return self.module_member(thing, name, level)
        if isinstance(thing, Class):
            found = (
                self.dialect(thing.unit).function_member(self, thing, name)
                if thing.definition.kind == "prototype"
                else None
            )
            return self._class_member(thing, name, thing, level, on_class=True) if found is None else found
        if isinstance(thing, OwnClass):
            return self._class_member(thing.type, name, thing, level, on_class=True)
        if isinstance(thing, Super):
            holder = self.find_member(thing.type, name, behind=True)[0]
            if holder is None and name in self.dialect(thing.type.unit).root_members:
                order = self.order(thing.type)
                if all(isinstance(base, Class) or (base is not None and _is_plain(base)) for base in order):
                    return {self.external(f"builtins.object.{name}"): level}
            return self._class_member(
                thing.type, name, thing.receiver, level, on_class=isinstance(thing.receiver, OwnClass), behind=True
            )
        if isinstance(thing, Container):
            return self.dialect(thing.unit).container_member(self, thing, name, level)
        if isinstance(thing, Function):
            found = self.dialect(thing.unit).function_member(self, thing, name)
            return self._foreign_stores(thing, name) if found is None else found
        if isinstance(thing, Bound):
            if name == "__func__":
                return {thing.function: level}
            function = thing.function
            found = (
                self.dialect(function.unit).function_member(self, function, name)
                if isinstance(function, Function)
                else None
            )
            return self.unknown if found is None else found
        if isinstance(thing, Native):
            return thing.dialect.find_member(self, thing, name, level)
        return self.unknown

    def module_member(self, module: Module, name: str, level: int) -> Values:
        if module.unit is not None:
            dialect = self.dialect(module.unit)
            found = dialect.find_exported(self, module.unit, name)
            if found is not None:
                return raised(found, level)
            inner = dialect.find_submodule(self, module.path, name)
            if inner is not None:
                return {inner: max(level, IMPORT)}
            return self._foreign_stores(module, name)
        for dialect in self.dialects.all():
            inner = dialect.find_submodule(self, module.path, name)
            if inner is not None:
                return {inner: max(level, IMPORT)}
        return self.unknown

    def _class_member(
        self, kind: Class, name: str, receiver: Thing, level: int, *, on_class: bool, behind: bool = False
    ) -> Values:
        if self.dialects[kind.unit.language].is_static:
            return self.dialect(kind.unit).find_member(self, receiver, name, level)
        holder, binds, stores, doubt = self.find_member(kind, name, behind=behind)
        level = max(level, doubt)
        if holder is None:
            return raised(self._foreign_stores(kind, name), max(level, ATTRIBUTE))
        if isinstance(holder, External):
            return {self.external(f"{holder.name}.{name}"): max(level, IMPORT)}
        found = NOTHING
        dialect = self.dialect(holder.unit)
        step = max(level, MRO) if isinstance(receiver, (Instance, OwnClass)) else level
        for bind in binds:
            if type(bind.value) is list and bind.value[0] == "def":
                thing = self.thing(holder.unit, bind.value[1])
                if isinstance(thing, Function):
                    found = join(found, raised(dialect.access(self, thing, receiver, on_class=on_class), step))
                else:
                    found = join(found, {thing: step})
            else:
                values = raised(self.bound(holder.unit, bind), max(level, ATTRIBUTE))
                if not on_class and values is not EVERYTHING and any(isinstance(thing, Function) for thing in values):
                    bound: Values = {}
                    for thing, at in values.items():
                        if isinstance(thing, Function) and isinstance(receiver, Instance):
                            bound.update(raised(dialect.access(self, thing, receiver, on_class=False), at))
                        else:
                            bound[thing] = at
                    values = bound
                found = join(found, values)
        for store in stores:
            found = join(found, raised(self.stored(holder.unit, store), max(level, ATTRIBUTE)))
        return found

    def find_member(self, kind: Class, name: str, *, behind: bool = False) -> Member:
        """The class in the order of lookup that has the name, how it gets it, and how sure that is. Bindings to nothing
        (`x = None`) count only when there are no others. `behind`: what stands behind the class itself."""
        key = (kind, name, behind)
        known = self._members.get(key)
        if known is None:
            keys = Keys()
            self._recording.append((keys, self._current))
            order = self.order(kind)
            base = order[1] if kind.is_line and not behind else None
            if isinstance(base, Class):
                found = self._find_in_line(kind, base, name)
            else:
                found = self._find_in_order(order[behind:], name)
            self._recording.pop()
            known = self._members[key] = (found, keys)
        self.record(known[1])
        return known[0]

    def find_overridden(self, kind: Class, name: str) -> Member:
        """What stands behind the class itself. Not remembered: most names are asked for once."""
        return self._find_in_order(self.order(kind)[1:], name)

    def _find_in_line(self, kind: Class, base: Class, name: str) -> Member:
        """Of a class whose order is that of its base, behind it: what the base has is found only once."""
        binds, stores = self._own_members(kind, name)
        found = _only_solid(kind, binds, stores, SCOPE)
        if found is None:
            found = self.find_member(base, name)
            if (binds or stores) and _only_solid(*found) is None:
                return (kind, binds, (), SCOPE)
        return found

    def _find_in_order(self, order: Sequence[Class | External | None], name: str) -> Member:
        blank: tuple[Class, Sequence[Bind]] | None = None
        outside: External | None = None
        is_open = False
        for holder in order:
            if not isinstance(holder, Class):
                is_open = is_open or holder is None
                if outside is None and holder is not None and not _is_plain(holder):
                    outside = holder
                continue
            binds, stores = self._own_members(holder, name)
            # A base nobody knows may have the name too, and stands before this one.
            found = _only_solid(holder, binds, stores, PARAMETER if is_open else SCOPE)
            if found is not None:
                return found
            if (binds or stores) and blank is None:
                blank = (holder, binds)
        if blank is not None:
            return (blank[0], blank[1], (), SCOPE)
        return (None if is_open else outside, (), (), SCOPE)

    def _own_members(self, kind: Class, name: str) -> tuple[Sequence[Bind], Sequence[Store]]:
        unit, symbol = kind.unit, kind.definition.symbol
        self.record(unit.member_key(symbol, name))
        # What a function binds that is made with `new` are its variables.
        is_function = kind.definition.kind == "prototype"
        binds: Sequence[Bind] = () if is_function else unit.scopes.get(symbol, {}).get(name, ())
        if binds:
            binds = _last_definition(unit, unit.reach(list(binds), ANYWHERE, is_own=True))
        return binds, unit.own_stores(symbol).get(name, ())

    def order(self, kind: Class) -> tuple[Class | External | None, ...]:
        if kind.mro is None:
            if len(self._recording) > MAX_BASES:
                return (kind, None)  # deeper than any code: no end of it is in sight
            kind.mro = (kind,)  # what a class sees of itself while its bases are looked up
            kind.keys.add(kind.unit.member_key(kind.definition.symbol, ""))
            self._recording.append((kind.keys, self._current))
            order = self.dialect(kind.unit).order_bases(self, kind)
            kind.mro = tuple(thing if isinstance(thing, (Class, External)) else None for thing in order)
            base = kind.mro[1] if len(kind.mro) > 1 else None
            kind.is_line = isinstance(base, Class) and base.mro == kind.mro[1:] and len(kind.mro) <= MAX_LINE
            self._recording.pop()
        self.record(kind.keys)
        return kind.mro

    def _foreign_stores(self, thing: Thing, name: str) -> Values:
        """`thing.name = value` from anywhere: only what few places do is worth asking about. Nobody knows the rest."""
        self.record(stored_key(name))
        units = self.corpus.storing(name)
        places = [(unit, store) for unit in units or () for store in unit.stores_by_name.get(name, ())]
        found = self.unknown
        if len(places) <= MAX_STORES:
            for unit, store in places:
                for base in self.evaluate(unit, store.scope, store.base, store.start):
                    if isinstance(base, Bound) and base.receiver is None:
                        base = base.function  # what a decorator gets
                    if base is thing or (isinstance(base, (Instance, OwnClass)) and base.type is thing):
                        found = join(found, raised(self.stored(unit, store), ATTRIBUTE))
                        break
        return found

    # -- operations ------------------------------------------------------------------------------

    def make(self, unit: Unit, scope: int, kind: Value, position: int) -> Values:
        return raised(self.dialect(unit).make(self, unit, scope, kind, position), ANNOTATION)

    def made(self, values: Values) -> Values:
        """Instances of classes."""
        if values is EVERYTHING:
            return values
        found: Values = {}
        for thing, level in values.items():
            if isinstance(thing, Class):
                found[thing.instance] = max(level, CONSTRUCTOR)
            elif isinstance(thing, OwnClass):
                found[thing.type.self_instance] = level
            elif isinstance(thing, External):
                found[self.external(f"{thing.name}()")] = level
            elif isinstance(thing, Container):
                found = join(found, self.made(self.elements(thing)))
            else:
                found[UNKNOWN] = SCOPE
        return found

    def elements(self, container: Container, key: str | None = None) -> Values:
        """Those under a constant key, where there is one and the container says what is there; else all."""
        at = (container, key)
        cell = self._elements.get(at)
        if cell is None:
            cell = self._elements[at] = Cell(
                container.unit.home(container.scope), Linker._find_elements, container, key
            )
        return self.read(cell)

    def _find_elements(self, container: Container, key: str | None) -> Values:
        unit, scope, value, position = container.unit, container.scope, container.value, container.position
        if container.typed:
            return self.make(unit, scope, value, position)
        if key is not None:
            found = self.dialect(unit).find_entry(self, container, key)
            if found is not None:
                return found
        values: list[Value] = []
        found = NOTHING
        if value[0] == "each":
            values = [value[2]]
        elif value[0] == "dict":
            pairs = list(zip(value[1::2], value[2::2], strict=True))
            values = [inner for at, inner in pairs if at is not None and (key is None or as_key(at) == key)]
            if not values and key is not None:  # `{START: f}`
                values = [inner for at, inner in pairs if self._is_key(unit, scope, at, position, key)]
            for at, inner in pairs if key is None or not values else ():
                if at is None:
                    found = join(found, self._find_spread(unit, scope, inner, position, key))
        else:
            at = find_index(value[1:], key)
            values = value[1:] if at is None else [value[at + 1]] if at >= 0 else []
        if unit.item_stores:
            self.record(unit.name_key(f"[]{unit.container_names.get(id(value), ('',))[0]}"))
            for store in unit.find_items(value):
                if _may_be(store, key):
                    found = join(found, raised(self.stored(unit, store), ELEMENT))
        for other, store in self._find_passed_items(unit, value):
            if _may_be(store, key):
                found = join(found, raised(self.stored(other, store), ELEMENT))
        for inner in values:
            if type(inner) is list and inner[0] == "*":
                inner = ["iter", inner[1]]
            found = join(found, self.evaluate(unit, scope, inner, position))
        # What is written as elements may be joined by others later; what a comprehension or generator makes, not.
        return raised(found, INFERRED if value[0] == "each" else ELEMENT)

    def _is_key(self, unit: Unit, scope: int, at: Value, position: int, key: str) -> bool:
        """Whether a name that stands for a key is this constant."""
        is_name = type(at) is str and at[0] not in "'#=("
        return is_name and key in (self.find_keys_of(unit, scope, at, position) or ())

    def _find_passed_items(self, unit: Unit, value: Value) -> Iterator[tuple[Unit, Store]]:
        """What functions put into a container that is handed to them by its name."""
        for number, at in unit.find_passing(value):
            for thing in self.link(unit, number):
                function = thing.function if isinstance(thing, Bound) else thing
                if not isinstance(function, Function) or not function.unit.item_stores:
                    continue
                at += self._skipped(thing, function) or 0
                parameters = function.definition.parameters
                if 0 <= at < len(parameters):
                    self.record(function.unit.home_of(function.definition))
                    for store in function.unit.item_stores.get(parameters[at].name, ()):
                        if store.scope == function.definition.symbol:
                            yield function.unit, store

    def _find_spread(self, unit: Unit, scope: int, value: Value, position: int, key: str | None) -> Values:
        """What `{**value}` has under a key."""
        found = NOTHING
        for thing, level in self.evaluate(unit, scope, value, position).items():
            inner = self.elements(thing, key) if isinstance(thing, Container) else self.unknown
            found = join(found, raised(inner, level))
        return found

    def items(self, unit: Unit, scope: int, value: Value, position: int, keys: Sequence[str | None]) -> Values:
        """What the same document puts into a container by the name it has here."""
        base = unit.find_base(value) if unit.item_stores else ""
        if not base:
            return NOTHING
        self.record(unit.name_key(f"[]{base.rpartition('.')[2]}"))
        found = NOTHING
        head = base.partition(".")[0].partition("[")[0]
        binds = unit.find(scope, head, position)
        for store in unit.item_stores.get(base, ()):
            if any(_may_be(store, key) for key in keys):
                # The same name elsewhere is another variable, but for `self`.
                others = unit.find(store.scope, head, store.start)
                if head in ("self", "cls", "this") or not binds or not others or binds[0].scope == others[0].scope:
                    found = join(found, raised(self.stored(unit, store), ELEMENT))
        return found

    def cut(self, container: Container, first: str | None, last: str | None) -> Container:
        """Some elements of a container, where it says which there are; else itself."""
        value = container.value
        if container.typed or value[0] not in ("list", "tuple") or "?" in (first, last):  # None: there is no bound
            return container
        if any(type(inner) is list and inner[0] == "*" for inner in value[1:]):
            return container
        found = value[1:][int(first[1:]) if first else None : int(last[1:]) if last else None]
        made = self._made_up.setdefault((container, first, last), [value[0], *found])
        return self.container(value[0], container.unit, container.scope, container.position, made)

    def find_keys_of(self, unit: Unit, scope: int, value: Value, position: int, depth: int = 0) -> list[str] | None:
        """The constants that a key can be: itself, what its name is bound to, what calls pass; None: nobody knows."""
        if type(value) is list:
            written = as_key(value)
            return None if written is None else [written]
        if type(value) is not str or depth > MAX_KEYS:
            return None
        if value[0] in "'#":
            return [value] if value[0] == "'" or not depth else None  # a number may be counted up
        binds = unit.find(scope, value, position)
        self.record(unit.scope_key(binds[0].scope if binds else ROOT, value))
        found: list[str] = []
        for bind in binds:
            inner: list[str] | None = None
            if type(bind.value) is list and bind.value[0] == "param":
                function = self.thing(unit, bind.value[1])
                inner = (
                    self._find_passed_keys(function, bind.value[2], depth) if isinstance(function, Function) else None
                )
            elif type(bind.value) is list and bind.value[0] == "iter" and type(bind.value[1]) is list:
                given = [as_key(part) for part in bind.value[1][1:]] if bind.value[1][0] in _WRITTEN else []
                inner = [key for key in given if key is not None and key[0] in "'#("]
                inner = inner if inner and len(inner) == len(given) else None
            elif type(bind.value) is str and bind.value[0] != "=":
                inner = self.find_keys_of(unit, bind.scope, bind.value, bind.start - 1, depth + 1)
            if inner is None:
                return None
            found += inner
        return found or None

    def _find_passed_keys(self, function: Function, number: int, depth: int) -> list[str] | None:
        found: list[str] = []
        for caller, site, skipped in self._find_callers(function):
            passed = find_argument(function, site, number, skipped)
            is_written = type(passed) is str and passed[0] == "#"
            inner = [passed] if is_written else self.find_keys_of(caller, site.scope, passed, site.start, depth + 1)
            if inner is None:
                return None
            found += inner
        return found or None

    def iterate(self, values: Values) -> Values:
        if values is EVERYTHING:
            return values
        found = NOTHING
        for thing, level in values.items():
            if isinstance(thing, Container):
                if thing.kind == "dict":
                    found = join(found, self._literal("str"))
                else:
                    found = join(found, raised(self.elements(thing), level))
            elif isinstance(thing, Instance):
                given = self.protocol(thing, "iter", level)
                if UNKNOWN in given and self._iterates_by_number(thing):
                    found, given = join(found, self.protocol(thing, "item", level)), NOTHING
                for inner, at in given.items():
                    if isinstance(inner, Instance):
                        found = join(found, self.protocol(inner, "next", at))
                    else:
                        found = join(found, self.iterate({inner: at}))
            elif isinstance(thing, External) and not thing.name.startswith(_OWN_CONTAINERS):
                found = join(found, {thing: level})
            else:
                found = join(found, self.unknown)
        return found

    def protocol(self, thing: Instance, operation: str, level: int) -> Values:
        """What the member gives that the language calls for an operation."""
        name = self.dialect(thing.type.unit).protocols.get(operation)
        if name is None:
            return self.unknown
        found = NOTHING
        for member, at in self.member(thing, name, level).items():
            found = join(found, raised(self._invoke(member, None, -1), at))
        return raised(found, INFERRED)

    def called(self, values: Values) -> Values:
        """What calling gives, with arguments that nobody knows."""
        found = NOTHING
        for thing, level in values.items():
            found = join(found, raised(self._invoke(thing, None, -1), level))
        return raised(found, INFERRED)

    def _call(self, unit: Unit, number: int) -> Values:
        found = NOTHING
        for thing, level in self.read(self.callee(unit, number)).items():
            found = join(found, raised(self._invoke(thing, unit, number), level))
        return found

    def _invoke(self, thing: Thing, unit: Unit | None, number: int) -> Values:
        """What calling a thing gives; with `unit` None nothing is known of the arguments."""
        if thing is TOP:
            return EVERYTHING
        if isinstance(thing, Class):
            return {thing.instance: CONSTRUCTOR}
        if isinstance(thing, OwnClass):
            return {thing.type.self_instance: MRO}
        if isinstance(thing, Function):
            return self.give(thing, None, unit, number, 0)
        if isinstance(thing, Bound):
            if isinstance(thing.function, Function):
                skipped = thing.skipped if thing.receiver is None else 1
                return self.give(thing.function, thing.receiver, unit, number, skipped)
            return self._invoke(thing.function, unit, number)
        if isinstance(thing, Instance):
            return self.protocol(thing, "call", SCOPE)
        if isinstance(thing, External):
            given: Values | None = None
            if unit is not None:
                given = self.dialect(unit).call_external(self, thing, unit, number)
            if given is not None:
                return given
            return {self.external(f"{thing.name}()"): SCOPE} if thing.name.count("(") < 3 else {thing: SCOPE}
        if isinstance(thing, Container):
            return self.dialect(thing.unit).call_container(self, thing)
        if isinstance(thing, Native):
            return thing.dialect.give(self, thing, None, unit, number)
        return self.unknown

    def give(self, function: Function, receiver: Thing | None, unit: Unit | None, number: int, skipped: int) -> Values:
        """What a function returns to this caller: `self` is the receiver, an argument what was passed."""
        dialect = self.dialect(function.unit)
        if dialect.is_static:
            return dialect.give(self, function, receiver, unit, number)
        returned = self.returned(function)
        if not any(
            isinstance(thing, (Argument, OwnClass)) or (isinstance(thing, Instance) and thing.own) for thing in returned
        ):
            return returned
        found: Values = {}
        for thing, level in returned.items():
            if isinstance(thing, Argument):
                passed = None
                if unit is not None and thing.function is function:
                    site = unit.code.sites[number]
                    passed = find_argument(function, site, thing.number, skipped)
                if passed is not None and unit is not None:
                    site = unit.code.sites[number]
                    values = self.evaluate(unit, site.scope, passed, site.start)
                else:
                    values = self.unknown
                found = join(found, raised(values, level))
            elif isinstance(thing, Instance) and thing.own and isinstance(receiver, Instance):
                found = join(found, {receiver: level})
            elif isinstance(thing, (Instance, OwnClass)) and isinstance(receiver, (Instance, Class, OwnClass)):
                found = join(found, {_as_seen(thing, receiver): level})
            else:
                found = join(found, {thing: level})
        return found


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
        return ["[]", site.args[1], f"#{at}"] if len(site.args) > 1 and at >= 0 else None
    at = number - skipped
    if at < 0:
        return None
    args = _written_out(site.args)
    for place, value in enumerate(args[: at + 1]):
        if type(value) is list and value[0] == "*":
            if place < len(args) - 1:
                return None
            named = _spread(site, parameter.name) if parameter.kind != "/" else None
            inner: Value = ["[]", value[1], f"#{at - place}"]
            return inner if named is None else ["|", inner, named]
    if at < len(args):
        return args[at]
    return None if parameter.kind == "/" else _spread(site, parameter.name)


def _written_out(args: tuple[Value, ...]) -> tuple[Value, ...]:
    """Arguments with those in their places that are spread as written: `f(*[a, b], c)`."""
    for at, value in enumerate(args):
        if type(value) is list and value[0] == "*":
            inner = value[1]
            if type(inner) is not list or inner[0] not in ("list", "tuple"):
                return args
            return (*args[:at], *_written_out((*inner[1:], *args[at + 1 :])))
    return args


def _spread(site: Site, name: str) -> Value:
    """What `f(**options)` passes under a name."""
    spread = next((value for key, value in site.keywords if key == "**"), None)
    return None if spread is None else ["[]", spread, f"'{name}"]


def find_rest(function: Function, site: Site, number: int, skipped: int) -> Value:
    """What a call passes beyond the other parameters, as a container; empty when nothing."""
    parameters = function.definition.parameters
    if parameters[number].kind == "*":
        return ["list", *_written_out(site.args)[max(0, number - skipped) :]]
    names = {parameter.name for parameter in parameters if parameter.kind not in ("*", "**", "/")}
    found: list[Value] = ["dict"]
    for name, value in site.keywords:
        if name not in names:
            found += [None if name == "**" else f"'{name}", value]
    return found


def find_readers(cell: Cell) -> Iterable[Cell]:
    readers = cell.readers
    return () if readers is None else readers if isinstance(readers, dict) else (readers,)


def flatten(keys: Iterable[int | Keys]) -> set[int]:
    found: set[int] = set()
    seen: set[Keys] = set()
    todo = list(keys)
    for key in todo:
        if isinstance(key, int):
            found.add(key)
        elif key not in seen:
            seen.add(key)
            todo += key
    return found


_UNSEEN: Thing = Thing()


def _no_values(_: Linker) -> Values:
    return NOTHING


def _as_seen(thing: Instance | OwnClass, receiver: Instance | Class | OwnClass) -> Thing:
    """`self` or `cls` of a method, as the caller sees them through the receiver."""
    is_class = isinstance(thing, OwnClass)
    if isinstance(receiver, Instance):
        kind, own = receiver.type, receiver.own
    elif isinstance(receiver, OwnClass):
        kind, own = receiver.type, True
    else:
        kind, own = receiver, False
    if isinstance(thing, Instance) and not thing.own:
        return thing
    if is_class:
        return kind.self_class if own else kind
    return kind.self_instance if own else kind.instance


def _is_plain(base: External) -> bool:
    """Bases that have no names of their own that anyone would call."""
    return base.name in (
        "builtins.object",
        "abc.ABC",
        "typing.Generic",
        "typing.Protocol",
        "typing_extensions.Protocol",
    )


def _is_blank(value: Value) -> bool:
    return value is None or value == "=None"


def _only_solid(
    holder: Class | External | None, binds: Sequence[Bind], stores: Sequence[Store], doubt: int
) -> Member | None:
    """Without bindings to nothing; None where there are no others."""
    if not binds and not stores:
        return None
    solid = tuple([bind for bind in binds if bind.type is not None or not _is_blank(bind.value)])
    kept = tuple([store for store in stores if store.type is not None or not _is_blank(store.value)])
    return (holder, solid, kept, doubt) if solid or kept else None


def _last_definition(unit: Unit, binds: Sequence[Bind]) -> Sequence[Bind]:
    """Of several definitions in one class body the last one counts (overloads); of an accessor's the first: it gets."""
    if len(binds) > 1 and all(type(bind.value) is list and bind.value[0] == "def" for bind in binds):
        is_accessor = "accessor" in unit.definitions[binds[0].value[1]].modifiers
        return binds[:1] if is_accessor else binds[-1:]
    return binds


_NEXT = {"__next__": "iter", "__anext__": "aiter"}  # called on what another operation gives
_WRITTEN = frozenset({"list", "tuple", "set"})
_GIVEN = frozenset({"[]", "iter", "enter", "await", "|"})
_OWN_CONTAINERS = ("builtins.list()", "builtins.dict()", "builtins.set()", "builtins.tuple()", "builtins.frozenset()")


def _dotted(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    found = linker.evaluate(unit, scope, value[1], position)
    for name in value[2].split(".")[:MAX_PATH]:
        found = linker.attribute(found, name)
    return found


def _element(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    found = NOTHING
    values = linker.evaluate(unit, scope, value[1], position)
    keys: list[str] | list[None] = [None]
    if len(value) == 3 and any(isinstance(thing, (Container, Module)) for thing in values):
        keys = linker.find_keys_of(unit, scope, value[2], position) or keys
    for thing, level in values.items():
        if isinstance(thing, Container):
            for key in keys:
                found = join(found, raised(linker.elements(thing, key), level))
        elif isinstance(thing, Module) and keys[0] is not None:
            for key in keys:
                found = join(found, linker.member(thing, str(key)[1:], level))
        elif isinstance(thing, (Class, OwnClass)):
            found = join(found, {thing: level})  # a generic with its parameters
        elif isinstance(thing, Instance):
            found = join(found, linker.protocol(thing, "item", level))
        elif isinstance(thing, External) and not thing.name.startswith(_OWN_CONTAINERS):
            found = join(found, {thing: level})
        else:
            found = join(found, EVERYTHING if thing is TOP else linker.unknown)
    return join(found, linker.items(unit, scope, value[1], position, keys))


def as_key(value: Value) -> str | None:
    """A constant by which elements are told apart: a text, a number, a tuple of such; None for what is none."""
    if type(value) is str:
        return value
    if type(value) is list and value[0] == "tuple":
        parts = [as_key(inner) for inner in value[1:]]
        if all(part is not None and part[0] in "'#(" for part in parts):
            return f"({', '.join(map(str, parts))})"
    return None


def _may_be(store: Store, key: str | None) -> bool:
    """Whether an element that is put into a container may be the one under a key."""
    if key is None or store.key == key:
        return True
    known = as_key(store.key)
    return known is None or known[0] not in "'#(" or known == key


def find_index(values: Sequence[Value], key: str | None) -> int | None:
    """Which of the elements as written a key means, -1 for none; None: any of them."""
    if key is None or key[0] != "#" or not key[1:].lstrip("-").isdigit():
        return None
    at = int(key[1:])
    spread = [number for number, value in enumerate(values) if type(value) is list and value[0] == "*"]
    if spread and (at < 0 or at >= spread[0]):
        return None
    at += len(values) if at < 0 else 0
    return at if 0 <= at < len(values) else -1


def _contain(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    kind = value[1] if value[0] == "each" else value[0]
    return {linker.container(kind, unit, scope, position, value): SCOPE}


def _choose(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    found = NOTHING
    for inner in value[1:]:
        found = join(found, linker.evaluate(unit, scope, inner, position))
    return found


def _iterate(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    found = linker.iterate(linker.evaluate(unit, scope, value[1], position))
    return join(found, linker.items(unit, scope, value[1], position, [None]))


def _enter(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    found = NOTHING
    for thing, level in linker.evaluate(unit, scope, value[1], position).items():
        if isinstance(thing, Instance):
            found = join(found, linker.protocol(thing, "enter", level))
        elif isinstance(thing, Container) and thing.kind == "generator":
            found = join(found, raised(linker.elements(thing), level))
        else:
            found = join(found, EVERYTHING if thing is TOP else {thing: level})
    return found


def _same(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    return linker.evaluate(unit, scope, value[1], position)


def _make(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    return linker.made(linker.evaluate(unit, scope, value[1], position))


def _operate(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    found = NOTHING
    for thing, level in linker.evaluate(unit, scope, value[2], position).items():
        if isinstance(thing, Instance):
            found = join(found, linker.protocol(thing, value[1], level))
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
    return linker.elements(value[1])


def _slice(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    found: Values = {}
    for thing, level in linker.evaluate(unit, scope, value[1], position).items():
        if isinstance(thing, Instance):
            found.update(linker.protocol(thing, "item", level))
        else:
            found[linker.cut(thing, value[2], value[3]) if isinstance(thing, Container) else thing] = level
    return found


def _seen(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    return linker.evaluate(unit, scope, value[2], value[1])


def _give(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    return linker.called(linker.evaluate(unit, scope, value[1], position))


def _decorate(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    return linker.decorate(unit, unit.definitions[value[1]], value[2])


def _lambda(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    return {linker.function(unit, value[1]): SCOPE}


def _import(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    return linker.dialect(unit).resolve_import(linker, unit, value[1], value[2], value[3])


def _defined(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    return {linker.thing(unit, value[1]): SCOPE}


def _passed(linker: Linker, unit: Unit, scope: int, value: Value, position: int) -> Values:
    return linker.argued(unit, value[1], value[2])


_OPERATIONS: dict[str, Callable[[Linker, Unit, int, Value, int], Values]] = {
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
    "op": _operate,
    "slice": _slice,
    "all": _all_of,
    "seen": _seen,
    "gives": _give,
    "decorated": _decorate,
    "lambda": _lambda,
    "import": _import,
    "def": _defined,
    "param": _passed,
}
