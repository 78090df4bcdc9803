"""What lists, dictionaries and their like hold, and under which key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cq.graph.callers import find_argument
from cq.graph.cells import Cell
from cq.graph.corpus import stored_key
from cq.graph.things import Bound, Container, Function
from cq.graph.unit import ROOT, Unit
from cq.graph.values import ELEMENT, INFERRED, NOTHING, Values, join, raised
from cq.model.code import Store, Value

if TYPE_CHECKING:
    from cq.graph.link import Linker

MAX_KEYS = 3  # names and parameters on the way to a constant key

# Of what is put into a container: ids of stores, which the unit keeps alive; 0 for the elements as written.
Hidden = tuple[int, ...]

_WRITTEN = frozenset({"list", "tuple", "set"})


class Containers:
    """Elements as written, and those that code puts in later."""

    def __init__(self, linker: Linker) -> None:
        self.linker = linker
        self._elements: dict[tuple[Container, str | None, Hidden], Cell] = {}
        self._made_up: dict[tuple[Container, str | None, str | None], Value] = {}  # what is cut out of others

    def elements(self, container: Container, key: str | None = None, hidden: Hidden = ()) -> Values:
        """Those under a constant key, where there is one and the container says what is there; else all."""
        at = (container, key, hidden)
        cell = self._elements.get(at)
        if cell is None:
            cell = self._elements[at] = Cell(
                container.unit.home(container.scope), Containers._find_elements, self, container, key, hidden
            )
        return self.linker.read(cell)

    def find_hidden(self, unit: Unit, scope: int, base: Value, key: str | None, position: int) -> Hidden:
        """What can no longer be read under a key, since code just above has put something else there."""
        placed = unit.find_placed(scope, f"{base}[{key}", position) if unit.placed and type(base) is str else None
        if placed is None:
            return ()
        gone = [id(s) for s in unit.placed[f"{base}[{key}"] if s.scope == scope and not any(s is x for x in placed[0])]
        return (*gone, 0) if placed[1] else tuple(gone)

    def _find_elements(self, container: Container, key: str | None, hidden: Hidden) -> Values:
        linker = self.linker
        unit, scope, value, position = container.unit, container.scope, container.value, container.position
        if container.typed:
            return linker.make(unit, scope, value, position)
        if key is not None and not hidden:
            found = linker.dialect(unit).find_entry(linker, container, key)
            if found is not None:
                return found
        values: list[Value] = []
        found = NOTHING
        if 0 in hidden:
            pass
        elif value[0] == "each":
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
        for name in unit.find_names(value):
            linker.record(unit.name_key(f"[]{name}"))
        for store in unit.find_items(value):
            if _may_be(store, key) and id(store) not in hidden:
                found = join(found, raised(linker.stored(unit, store), ELEMENT))
        for other, store in (*self._find_passed_items(unit, value), *self._find_foreign_items(container)):
            if _may_be(store, key):
                found = join(found, raised(linker.stored(other, store), ELEMENT))
        for inner in values:
            if type(inner) is list and inner[0] == "*":
                inner = ["iter", inner[1]]
            found = join(found, linker.evaluate(unit, scope, inner, position))
        # What is written as elements may be joined by others later; what a comprehension or generator makes, not.
        return raised(found, INFERRED if value[0] == "each" else ELEMENT)

    def _is_key(self, unit: Unit, scope: int, at: Value, position: int, key: str) -> bool:
        """Whether a name that stands for a key is this constant."""
        is_name = type(at) is str and at[0] not in "'#=("
        return is_name and key in (self.find_keys_of(unit, scope, at, position) or ())

    def _find_passed_items(self, unit: Unit, value: Value) -> Iterator[tuple[Unit, Store]]:
        """What functions put into a container that is handed to them by its name."""
        linker = self.linker
        for number, at in unit.find_passing(value):
            for thing in linker.link(unit, number):
                function = thing.function if isinstance(thing, Bound) else thing
                if not isinstance(function, Function):
                    continue
                place = at + (linker.callers.skipped(thing, function) or 0)
                parameters = function.definition.parameters
                linker.record(function.unit.home_of(function.definition))
                if 0 <= place < len(parameters):
                    name = parameters[place].name
                    linker.record(function.unit.name_key(f"[]{name}"))
                    for store in function.unit.item_stores.get(name, ()):
                        if store.scope == function.definition.symbol:
                            yield function.unit, store

    def _find_foreign_items(self, container: Container) -> Iterator[tuple[Unit, Store]]:
        """What other documents put into a container that they reach by its name: `lib.jobs.append(f)`."""
        linker, unit = self.linker, container.unit
        name, bind = unit.container_names.get(id(container.value), ("", None))
        if not name or (bind is not None and unit.is_local(bind.scope)):
            return
        linker.record(stored_key(f"[]{name}"))
        for other in linker.corpus.storing(f"[]{name}") or ():
            for store in other.stores_by_name.get(f"[]{name}", ()) if other is not unit else ():
                if container in linker.store_base(other, store):
                    yield other, store

    def _find_spread(self, unit: Unit, scope: int, value: Value, position: int, key: str | None) -> Values:
        """What `{**value}` has under a key."""
        linker = self.linker
        found = NOTHING
        for thing, level in linker.evaluate(unit, scope, value, position).items():
            inner = self.elements(thing, key) if isinstance(thing, Container) else linker.unknown
            found = join(found, raised(inner, level))
        return found

    def items(
        self, unit: Unit, scope: int, value: Value, position: int, keys: Sequence[str | None], hidden: Hidden = ()
    ) -> Values:
        """What the same document puts into a container by the name it has here."""
        linker = self.linker
        base = unit.find_base(value)
        if not base:
            return NOTHING
        linker.record(unit.name_key(f"[]{base.rpartition('.')[2]}"))
        found = NOTHING
        head = base.partition(".")[0].partition("[")[0]
        binds = unit.find(scope, head, position)
        for store in unit.item_stores.get(base, ()):
            if any(_may_be(store, key) for key in keys) and id(store) not in hidden:
                # The same name elsewhere is another variable, but for `self`.
                others = unit.find(store.scope, head, store.start)
                if head in ("self", "cls", "this") or not binds or not others or binds[0].scope == others[0].scope:
                    found = join(found, raised(linker.stored(unit, store), ELEMENT))
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
        return self.linker.container(value[0], container.unit, container.scope, container.position, made)

    def find_keys_of(self, unit: Unit, scope: int, value: Value, position: int, depth: int = 0) -> list[str] | None:
        """The constants that a key can be: itself, what its name is bound to, what calls pass; None: nobody knows."""
        linker = self.linker
        if type(value) is list:
            written = as_key(value)
            return None if written is None else [written]
        if type(value) is not str or depth > MAX_KEYS:
            return None
        if value[0] in "'#":
            return [value] if value[0] == "'" or not depth else None  # a number may be counted up
        binds = unit.find(scope, value, position)
        linker.record(unit.scope_key(binds[0].scope if binds else ROOT, value))
        found: list[str] = []
        for bind in binds:
            inner: list[str] | None = None
            if type(bind.value) is list and bind.value[0] == "param":
                function = linker.thing(unit, bind.value[1])
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
        for caller, site, skipped in self.linker.callers.find(function):
            passed = find_argument(function, site, number, skipped)
            is_written = type(passed) is str and passed[0] == "#"
            inner = [passed] if is_written else self.find_keys_of(caller, site.scope, passed, site.start, depth + 1)
            if inner is None:
                return None
            found += inner
        return found or None


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
    if key is None or key[0] != "#" or not key[1:].lstrip("-").isdecimal():
        return None
    at = int(key[1:])
    spread = [number for number, value in enumerate(values) if type(value) is list and value[0] == "*"]
    if spread and (at < 0 or at >= spread[0]):
        return None
    at += len(values) if at < 0 else 0
    return at if 0 <= at < len(values) else -1
