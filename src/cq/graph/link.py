"""Links a repository: which definitions every call can mean. Values flow over all documents to a fixpoint."""

from __future__ import annotations

from collections.abc import Callable, Collection

from cq.graph.callers import Callers
from cq.graph.calls import Calls
from cq.graph.containers import Containers
from cq.graph.corpus import Corpus
from cq.graph.decorators import Decorators
from cq.graph.dialect import Dialect, Dialects
from cq.graph.engine.cells import Cell, Cells
from cq.graph.engine.view import Documents, View
from cq.graph.items import Written, get_kind
from cq.graph.members import Members
from cq.graph.operations import MAX_PATH, evaluate_form
from cq.graph.protocols import Protocols
from cq.graph.scopes import ROOT
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
    Module,
    Native,
    OwnClass,
    Super,
    Thing,
)
from cq.graph.values import ANNOTATION, CONSTRUCTOR, EVERYTHING, IMPORT, MRO, NOTHING, SCOPE, Values, join, raised
from cq.model.code import NULL, Bind, Defined, Item, MethodOf, ParameterOf, Site, Store, Value

MAX_BINDS = 100  # of one name, at one place


class Linker(Cells):
    """Over the documents of one repository. Only what a question leads to is looked at."""

    def __init__(self, corpus: Corpus, find_dialect: Callable[[str], type[Dialect]]) -> None:
        super().__init__()
        self.documents = Documents(corpus, self)
        self.dialects = Dialects(find_dialect, self, corpus.paths)
        self.unknown: Values = {UNKNOWN: SCOPE}
        self._binds: dict[int, Cell] = {}  # by id of the Bind, which the unit keeps alive
        self._stores: dict[int, Cell] = {}
        self._bases: dict[int, Cell] = {}
        self._callees: dict[View, list[Cell | None]] = {}
        self._heads: dict[View, dict[tuple[int, str], Thing | int | None]] = {}  # see _find_head
        self._shared: dict[tuple[View, int, Value] | tuple[Thing, str], Cell] = {}
        self._externals: dict[tuple[str, Container | None], External] = {}
        self._bounds: dict[tuple[Thing, Thing | None, int], Bound] = {}
        self._supers: dict[tuple[Class, Thing, Function | None], Super] = {}
        self._containers: dict[tuple[str, View, int, int, str | int], Container] = {}
        self._made_up: dict[tuple[View, int], Written] = {}  # containers that stand nowhere in the code
        self._arguments: dict[tuple[Function, int], Argument] = {}
        self._modules: dict[str, Module] = {}
        self._paths: dict[str, list[str]] = {}
        self.fetching: dict[Cell, dict[Function, None]] = {}  # cells that a method was asked for
        self.members = Members(self)
        self.calls = Calls(self)
        self.callers = Callers(self)
        self.decorators = Decorators(self)
        self.protocols = Protocols(self)
        self.containers = Containers(self)

    def link(self, unit: View, number: int) -> Values:
        """What the callee of a call can be. Final once `settle` was called."""
        if self._current is not None:
            unit.site(number)  # the cell may be shared with other code
        return self.read(self.callee(unit, number))

    def callee(self, unit: View, number: int) -> Cell:
        cells = self._callees.get(unit)
        if cells is None:
            cells = self._callees[unit] = [None] * len(unit.sites)
        cell = cells[number]
        if cell is None:
            cell = cells[number] = self._find_cell(unit, unit.sites[number])
        return cell

    def callees(self, unit: View, kept: Collection[int] = ()) -> list[Cell | None]:
        """Of the calls of a document, without those in homes that are kept; many share one."""
        known = self._callees.get(unit)
        if known is not None and not kept and None not in known:
            return known
        homes = unit.homes
        found = [
            None if kept and homes[site.scope] in kept else self.callee(unit, number)
            for number, site in enumerate(unit.sites)
        ]
        self._heads.pop(unit, None)
        return found

    def _find_cell(self, unit: View, site: Site) -> Cell:
        callee, scope = site.callee, site.scope
        name = callee.receiver if isinstance(callee, MethodOf) else callee
        if isinstance(callee, Item):
            cell = self._shared.get((unit, scope, callee))
            if cell is None:
                cell = Cell(unit.home(scope), Linker.evaluate, self, unit, scope, callee, site.start)
                self._shared[unit, scope, callee] = cell
            return cell
        if isinstance(name, str):
            head, _, rest = name.partition(".")
            if unit.placed and (head, rest.partition(".")[0]) in unit.placed:
                return Cell(unit.home(scope), Linker.evaluate, self, unit, scope, callee, site.start)
            heads = self._heads.get(unit)
            if heads is None:
                heads = self._heads[unit] = {}
            at = heads.get((scope, head), _UNSEEN)
            if at is _UNSEEN:
                at = heads[scope, head] = self._find_head(unit, scope, head)
            if at is not None:
                key = (unit, at, callee) if isinstance(at, int) else (at, rest)
                cell = self._shared.get(key)
                if cell is None:
                    if isinstance(at, int):
                        cell = Cell(unit.home(at), Linker.evaluate, self, unit, at, callee, site.start)
                    else:
                        cell = Cell(unit.home(ROOT), Linker._follow, self, {at: MRO}, rest)
                    self._shared[key] = cell
                return cell
        return Cell(unit.home(scope), Linker.evaluate, self, unit, scope, callee, site.start)

    def _find_head(self, unit: View, scope: int, name: str) -> Thing | int | None:
        """Most names are bound once: they mean the same wherever they stand. The scope in which all calls share one
        cell, or the receiver: `self` is the same in every method of a class. None where it depends on the place."""
        binds, dialect = unit.find_fixed(scope, name), self.dialects[unit.language]
        if binds is None or dialect.is_static:
            return None if binds is None else scope
        if not binds:
            return scope if name == "__class__" else ROOT
        value = binds[0].value
        if binds[0].scope == scope and isinstance(value, ParameterOf) and not value.number:
            method = self.thing(unit, value.start)
            receiver = dialect.receiver(self, method) if isinstance(method, Function) else None
            if receiver is not None:
                return receiver
        return binds[0].scope

    def is_on_self(self, cell: Cell) -> bool:
        """Whether it is the callee of calls of one name on `self`."""
        return cell.compute is Linker._follow and "." not in str(cell.args[-1])

    def _follow(self, values: Values, path: str) -> Values:
        for name in path.split(".")[: MAX_PATH - 1] if path else ():
            values = self.attribute(values, name)
        return values

    def bound(self, unit: View, bind: Bind) -> Values:
        """What a name has from this binding."""
        value = bind.value
        if bind.type is None:
            if isinstance(value, Defined):
                definition = unit.definitions[value.start]
                if not definition.decorators or definition.kind != "function":
                    return {self.thing(unit, value.start): SCOPE}
                return self.decorators.named(unit, definition)
            if isinstance(value, ParameterOf):
                return self.calls.argued(unit, value.start, value.number)
        cell = self._binds.get(id(bind))
        if cell is None:
            cell = self._binds[id(bind)] = Cell(unit.home(bind.scope), Linker._bound, self, unit, bind)
        return self.read(cell)

    def _bound(self, unit: View, bind: Bind) -> Values:
        if bind.type is not None:
            made = self.make(unit, bind.scope, bind.type, bind.start)
            if made and UNKNOWN not in made:
                return made
        if bind.value is None:
            return self.unknown
        # The name on the right of `x = x or y` is what it was before the statement.
        found = self.evaluate(unit, bind.scope, bind.value, bind.start - 1)
        is_named = isinstance(bind.value, str) or bind.value == NULL
        is_open = is_named and bind.scope == ROOT and self.dialects[unit.language].has_open_modules
        if is_open and unit.calls(bind.name):
            found = join(found, self.members.replaced(unit, bind.name))
        return found

    def stored(self, unit: View, store: Store) -> Values:
        cell = self._stores.get(id(store))
        if cell is None:
            cell = self._stores[id(store)] = Cell(unit.home(store.scope), Linker._stored, self, unit, store)
        return self.read(cell)

    def _stored(self, unit: View, store: Store) -> Values:
        if store.type is not None:
            made = self.make(unit, store.scope, store.type, store.start)
            if made and UNKNOWN not in made:
                return made
        return self.evaluate(unit, store.scope, store.value, store.start)

    def store_base(self, unit: View, store: Store) -> Values:
        """What has the attribute that is assigned. `node.next.next = node` asks for what it assigns."""
        if isinstance(store.base, str) and "." not in store.base:
            return self.evaluate(unit, store.scope, store.base, store.start)
        cell = self._bases.get(id(store))
        if cell is None:
            args = (self, unit, store.scope, store.base, store.start)
            cell = self._bases[id(store)] = Cell(unit.home(store.scope), Linker.evaluate, *args)
        return self.read(cell)

    def dialect(self, unit: View) -> Dialect:
        return self.dialects[unit.language]

    def thing(self, unit: View, start: int) -> Class | Function:
        found = unit.things.get(start)
        if found is None:
            definition = unit.definitions[start]
            if definition.kind == "function":
                holder = unit.find_owner(definition)
                owner = None
                if holder is not None and holder.kind != "function":
                    owner = self.thing(unit, holder.start)
                found = Function(unit, definition, owner if isinstance(owner, Class) else None)
            else:
                found = Class(unit, definition)
            unit.things[start] = found
        return found

    def function(self, unit: View, start: int) -> Function:
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

    def super_of(self, kind: Class, receiver: Thing, method: Function | None = None) -> Super:
        key = (kind, receiver, method)
        found = self._supers.get(key)
        if found is None:
            found = self._supers[key] = Super(kind, receiver, method)
        return found

    def container(
        self, kind: str, unit: View, scope: int, position: int, value: Value, *, typed: bool = False
    ) -> Container:
        # Values are kept by the code they stand in, so their identity lasts; short names in types are equal anyway.
        key = (kind, unit, scope, position, value if typed and isinstance(value, str) else id(value))
        found = self._containers.get(key)
        if found is None:
            found = self._containers[key] = Container(kind, unit, scope, position, value, typed=typed)
        return found

    def held(self, unit: View, number: int, value: Written) -> Container:
        """A container that a call gives, as one written in its place."""
        site = unit.sites[number]
        key = (unit, number)
        known = self._made_up.get(key)
        if known is None:
            known = self._made_up[key] = value
            unit.name_result(site.end, value)
        return self.container(get_kind(known), unit, site.scope, site.start, known)

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
            found = self._modules[path] = Module(self.documents.get(path), path)
        return found

    def evaluate(self, unit: View, scope: int, value: Value, position: int) -> Values:
        """What an expression can be, seen from a place."""
        if value is None:
            return self.unknown
        if isinstance(value, str):
            path = self._paths.get(value)
            if path is None:
                path = self._paths[value] = value.split(".")
            found = self.name(unit, scope, path[0], position)
            if unit.placed and len(path) > 1 and (path[0], path[1]) in unit.placed:
                found = self._find_placed(unit, scope, path, position, found)
                path = path[1:]
            for name in path[1:MAX_PATH]:
                found = self.attribute(found, name)
            return found
        if isinstance(value, int):
            number = unit.site_at.get(value)
            return self.unknown if number is None else self.calls.result(unit, number)
        return evaluate_form(self, unit, scope, value, position)

    def _find_placed(self, unit: View, scope: int, path: list[str], position: int, values: Values) -> Values:
        """An attribute that code just above has assigned, and no other code does: what it was before is gone."""
        name = path[1]
        placed = unit.find_placed(scope, (path[0], name), position)
        if placed is None or not placed[1] or not self.members.is_stored_only(unit, scope, path[0], name):
            return self.attribute(values, name)
        found = NOTHING
        for store in placed[0]:
            found = join(found, self.stored(unit, store))
        return found

    def literal(self, name: str, core: str = "builtins") -> Values:
        return {self.external(f"{core}.{name}()"): SCOPE}

    def name(self, unit: View, scope: int, name: str, position: int) -> Values:
        dialect = self.dialects[unit.language]
        if dialect.is_static:
            return dialect.find_name(self, unit, scope, name, position)
        binds = unit.find(scope, name, position)
        if len(binds) == 1:
            return self.bound(unit, binds[0])
        if binds:
            found = NOTHING if len(binds) <= MAX_BINDS else self.unknown
            for bind in binds if len(binds) <= MAX_BINDS else ():
                found = join(found, self.bound(unit, bind))
            return found
        found = self.members.starred(unit, name, {unit})
        if found is not None:
            return found
        if name in dialect.builtins:
            return {self.external(f"builtins.{name}"): SCOPE}
        if name == "__class__":
            holder = unit.find_class(scope)
            if holder is not None:
                return {self.thing(unit, holder.start): SCOPE}
        return self.unknown

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
                kind = thing.type
                return {kind.self_class if thing.own else kind.declared_class if thing.declared else kind: level}
            return self.members.of_class(thing.type, name, thing, level, on_class=False)
        if isinstance(thing, External):
            if thing.name.count(".") > MAX_PATH or thing.name.count("(") > 3:
                return {thing: level}
            return {self.external(f"{thing.name}.{name}"): max(level, IMPORT)}
        if isinstance(thing, Module):
            return self.members.of_module(thing, name, level)
        if isinstance(thing, Class):
            dialect = self.dialect(thing.unit)
            find = dialect.function_member if thing.definition.kind == "prototype" else dialect.find_beside
            found = find(self, thing, name)
            return self.members.of_class(thing, name, thing, level, on_class=True) if found is None else found
        if isinstance(thing, OwnClass):
            return self.members.of_class(thing.type, name, thing, level, on_class=True)
        if isinstance(thing, Super):
            return self.members.of_super(thing, name, level)
        if isinstance(thing, Container):
            return self.dialect(thing.unit).container_member(self, thing, name, level)
        if isinstance(thing, Function):
            found = self.dialect(thing.unit).function_member(self, thing, name)
            return self.members.stored_from_outside(thing, name) if found is None else found
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

    def method(self, values: Values, name: str) -> Values:
        """What `value.name()` calls, in a language that tells methods from fields."""
        found = NOTHING
        for thing, level in values.items():
            if isinstance(thing, (Instance, Class, OwnClass, Native)):
                owner = thing.type if isinstance(thing, (Instance, OwnClass)) else thing
                dialect = owner.dialect if isinstance(owner, Native) else self.dialect(owner.unit)
                found = join(found, dialect.find_method(self, thing, name, level))
            elif thing is TOP or isinstance(thing, External):
                found = join(found, self.member(thing, name, level))
            else:
                found = join(found, self.unknown)
        return found

    def note_fetched(self, method: Function) -> None:
        """The cell being computed reads an attribute that a method makes up."""
        if self._current is not None:
            self.fetching.setdefault(self._current, {})[method] = None

    def make(self, unit: View, scope: int, kind: Value, position: int) -> Values:
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
                found[thing.type.declared if thing.declared else thing.type.self_instance] = level
            elif isinstance(thing, External):
                found[self.external(f"{thing.name}()")] = level
            elif isinstance(thing, Container):
                found = join(found, self.made(self.containers.elements(thing)))
            else:
                found[UNKNOWN] = SCOPE
        return found


_UNSEEN: Thing = Thing()
