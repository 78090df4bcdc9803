"""What lists, dictionaries and their like hold, and under which key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cq.graph.callers import find_argument
from cq.graph.engine.view import View
from cq.graph.scopes import as_key
from cq.graph.things import Bound, Container, Function
from cq.graph.values import ELEMENT, INFERRED, NOTHING, PASSED, Values, join, raised
from cq.model.code import (
    Dictionary,
    Each,
    ElementsOf,
    Integer,
    Iterated,
    Key,
    Listing,
    ParameterOf,
    Spread,
    Store,
    Text,
    Value,
    label_items,
    split_receiver,
)

if TYPE_CHECKING:
    from cq.graph.link import Linker

MAX_KEYS = 3  # names and parameters on the way to a constant key

# Of what is put into a container: ids of stores, which the unit keeps alive; 0 for the elements as written.
Hidden = tuple[int, ...]


class Containers:
    """Elements as written, and those that code puts in later."""

    def __init__(self, linker: Linker) -> None:
        self.linker = linker
        self._made_up: dict[tuple[Container, tuple[int | None, int | None]], Listing] = {}  # what is cut out of others
        self._numbers: dict[Container, int] = {}
        self._numbered: list[Container] = []

    def name_elements(self, container: Container) -> ElementsOf:
        """All its elements, as a value that can stand in another."""
        number = self._numbers.setdefault(container, len(self._numbers))
        if number == len(self._numbered):
            self._numbered.append(container)
        return ElementsOf(number)

    def get_numbered(self, number: int) -> Container:
        return self._numbered[number]

    def elements(self, container: Container, key: Key | None = None, hidden: Hidden = ()) -> Values:
        """Those under a constant key, where there is one and the container says what is there; else all."""
        home = container.unit.home(container.scope)
        return self.linker.hold(home, Containers._find_elements, self, container, key, hidden)

    def find_hidden(self, unit: View, scope: int, base: Value, key: Key | None, position: int) -> Hidden:
        """What can no longer be read under a key, since code just above has put something else there."""
        if not unit.placed or key is None or not isinstance(base, str):
            return ()
        placed = unit.find_placed(scope, (base, key), position)
        if placed is None:
            return ()
        gone = [id(s) for s in unit.placed[base, key] if s.scope == scope and not any(s is x for x in placed[0])]
        return (*gone, 0) if placed[1] else tuple(gone)

    def _find_elements(self, container: Container, key: Key | None, hidden: Hidden) -> Values:
        linker = self.linker
        unit, scope, value, position = container.unit, container.scope, container.value, container.position
        if container.typed:
            return linker.make(unit, scope, value, position)
        if key is not None and not hidden:
            found = linker.dialect(unit).find_entry(linker, container, key)
            if found is not None:
                return found
        values: Sequence[Value] = ()
        found = NOTHING
        if 0 in hidden:
            pass
        elif isinstance(value, Each):
            values = (value.element,)
        elif isinstance(value, Dictionary):
            pairs = list(zip(value.keys, value.values, strict=True))
            values = [inner for at, inner in pairs if at is not None and (key is None or as_key(at) == key)]
            if not values and key is not None:  # `{START: f}`
                values = [inner for at, inner in pairs if self._is_key(unit, scope, at, position, key)]
            for at, inner in pairs if key is None or not values else ():
                if at is None:
                    found = join(found, self._find_spread(unit, scope, inner, position, key))
        elif isinstance(value, Listing):
            at = find_index(value.elements, key)
            values = value.elements if at is None else (value.elements[at],) if at >= 0 else ()
        is_alone = True  # nothing is known to be put in later
        for store in unit.find_items(value):
            if _may_be(store, key) and id(store) not in hidden:
                is_alone = False
                found = join(found, raised(linker.stored(unit, store), PASSED))
        for other, store in (*self._find_passed_items(unit, value), *self._find_foreign_items(container)):
            if _may_be(store, key):
                is_alone = False
                found = join(found, raised(linker.stored(other, store), ELEMENT))
        for inner in values:
            if isinstance(inner, Spread):
                inner = Iterated(inner.value)
            found = join(found, linker.evaluate(unit, scope, inner, position))
        # What is written as elements may be joined by others later; what a comprehension or generator makes, not, nor
        # what a tuple holds or stands under a constant key of a dictionary; in a list, it may change its place.
        is_tuple = isinstance(value, Listing) and value.kind == "tuple"
        is_fixed = is_tuple or (isinstance(value, Dictionary) and len(values) == 1 and not self._is_open(unit, value))
        is_sure = isinstance(value, Each) or (is_alone and is_fixed and (is_tuple or key is not None))
        # What a variable holds is put there by code that goes by its name; who gets an attribute is not known.
        name, bind = unit.container_name(value)
        is_named = (bind is not None or not name) and not name.endswith("[]")
        return raised(found, INFERRED if is_sure else PASSED if is_named else ELEMENT)

    def _is_open(self, unit: View, value: Value) -> bool:
        """Whether other elements may take the place of those that are written: what is spread, what `update` gets."""
        if isinstance(value, Dictionary) and None in value.keys:
            return True
        name = unit.container_name(value)[0].rpartition(".")[2]
        receivers = (split_receiver(unit.sites[number].callee) for number in unit.calls("update") if name)
        return any(receiver is not None and receiver.rpartition(".")[2] == name for receiver in receivers)

    def _is_key(self, unit: View, scope: int, at: Value, position: int, key: Key) -> bool:
        """Whether a name that stands for a key is this constant."""
        return isinstance(at, str) and key in (self.find_keys_of(unit, scope, at, position) or ())

    def _find_passed_items(self, unit: View, value: Value) -> Iterator[tuple[View, Store]]:
        """What functions put into a container that is handed to them by its name."""
        linker = self.linker
        for number, at in unit.find_passing(value):
            for thing in linker.link(unit, number):
                function = thing.function if isinstance(thing, Bound) else thing
                if not isinstance(function, Function):
                    continue
                place = at + (linker.callers.skipped(thing, function) or 0)
                parameters = function.unit.contents(function.definition).parameters
                if 0 <= place < len(parameters):
                    for store in function.unit.items_of(parameters[place].name):
                        if store.scope == function.definition.symbol:
                            yield function.unit, store

    def _find_foreign_items(self, container: Container) -> Iterator[tuple[View, Store]]:
        """What other documents put into a container that they reach by its name: `lib.jobs.append(f)`."""
        linker, unit = self.linker, container.unit
        name, bind = unit.container_name(container.value)
        if not name or (bind is not None and unit.is_local(bind.scope)):
            return
        for other, store in linker.documents.stores(label_items(name)) or ():
            if other is not unit and container in linker.store_base(other, store):
                yield other, store

    def _find_spread(self, unit: View, scope: int, value: Value, position: int, key: Key | None) -> Values:
        """What `{**value}` has under a key."""
        linker = self.linker
        found = NOTHING
        for thing, level in linker.evaluate(unit, scope, value, position).items():
            inner = self.elements(thing, key) if isinstance(thing, Container) else linker.unknown
            found = join(found, raised(inner, level))
        return found

    def items(
        self, unit: View, scope: int, value: Value, position: int, keys: Sequence[Key | None], hidden: Hidden = ()
    ) -> Values:
        """What the same document puts into a container by the name it has here."""
        linker = self.linker
        base = unit.find_base(value)
        if not base:
            return NOTHING
        found = NOTHING
        head = base.partition(".")[0].partition("[")[0]
        binds = unit.find(scope, head, position)
        for store in unit.items_of(base):
            if any(_may_be(store, key) for key in keys) and id(store) not in hidden:
                # The same name elsewhere is another variable, but for `self`.
                others = unit.find(store.scope, head, store.start)
                if head in ("self", "cls", "this") or not binds or not others or binds[0].scope == others[0].scope:
                    found = join(found, raised(linker.stored(unit, store), ELEMENT))
        return found

    def cut(self, container: Container, bounds: tuple[int | None, int | None] | None) -> Container:
        """Some elements of a container, where it says which there are; else itself."""
        value = container.value
        if container.typed or bounds is None or not isinstance(value, Listing) or value.kind == "set":
            return container
        if any(isinstance(inner, Spread) for inner in value.elements):
            return container
        made = self._made_up.setdefault((container, bounds), Listing(value.kind, value.elements[slice(*bounds)]))
        return self.linker.container(value.kind, container.unit, container.scope, container.position, made)

    def find_keys_of(self, unit: View, scope: int, value: Value, position: int, depth: int = 0) -> list[Key] | None:
        """The constants that a key can be: itself, what its name is bound to, what calls pass; None: nobody knows."""
        linker = self.linker
        if isinstance(value, Listing):
            written = as_key(value)
            return None if written is None else [written]
        if depth > MAX_KEYS:
            return None
        if isinstance(value, (Text, Integer)):
            return [value] if isinstance(value, Text) or not depth else None  # a number may be counted up
        if not isinstance(value, str):
            return None
        binds = unit.find(scope, value, position)
        found: list[Key] = []
        for bind in binds:
            inner: list[Key] | None = None
            if isinstance(bind.value, ParameterOf):
                function = linker.thing(unit, bind.value.start)
                if isinstance(function, Function):
                    inner = self._find_passed_keys(function, bind.value.number, depth)
            elif isinstance(bind.value, Iterated) and isinstance(bind.value.value, Listing):
                given = [as_key(part) for part in bind.value.value.elements]
                inner = [key for key in given if key is not None]
                inner = inner if inner and len(inner) == len(given) else None
            elif isinstance(bind.value, (str, Text, Integer)):
                inner = self.find_keys_of(unit, bind.scope, bind.value, bind.start - 1, depth + 1)
            if inner is None:
                return None
            found += inner
        return found or None

    def _find_passed_keys(self, function: Function, number: int, depth: int) -> list[Key] | None:
        found: list[Key] = []
        for caller, site, skipped in self.linker.callers.find(function):
            passed = find_argument(function, site, number, skipped)
            inner = (
                [passed]
                if isinstance(passed, Integer)
                else self.find_keys_of(caller, site.scope, passed, site.start, depth + 1)
            )
            if inner is None:
                return None
            found += inner
        return found or None


def _may_be(store: Store, key: Key | None) -> bool:
    """Whether an element that is put into a container may be the one under a key."""
    known = as_key(store.key)
    return key is None or known is None or known == key


def find_index(values: Sequence[Value], key: Key | None) -> int | None:
    """Which of the elements as written a key means, -1 for none; None: any of them."""
    if not isinstance(key, Integer):
        return None
    at = key.value
    spread = [number for number, value in enumerate(values) if isinstance(value, Spread)]
    if spread and (at < 0 or at >= spread[0]):
        return None
    at += len(values) if at < 0 else 0
    return at if 0 <= at < len(values) else -1
