"""One document's code, made ready for lookups: scopes, the bindings that reach a place, members of classes."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from operator import attrgetter, itemgetter
from typing import NamedTuple

from xxhash import xxh3_64_intdigest

from cq.graph.things import Class, Function
from cq.language import describe
from cq.model.code import (
    NULL,
    Attribute,
    Augmented,
    Bind,
    Choice,
    Code,
    Defined,
    Definition,
    Dictionary,
    Each,
    Element,
    Imported,
    Integer,
    Iterated,
    Key,
    Lambda,
    Listing,
    Literals,
    Name,
    Named,
    ParameterOf,
    Site,
    Spread,
    Store,
    Text,
    Value,
    find_inner,
    find_updates,
    qualify,
    split_receiver,
)

ROOT = -1  # the scope of code at root level
ANYWHERE = -1  # a position from which every binding can be seen
_FOREVER = 1 << 60
# Methods that put arguments into their receiver: which one, and which one is the key.
_ADDING: dict[str, tuple[int, int]] = {
    "append": (0, -1), "add": (0, -1), "appendleft": (0, -1), "push": (0, -1), "unshift": (0, -1), "insert": (1, -1),
    "extend": (0, -1), "set": (1, 0), "setdefault": (1, 0), "update": (0, -1),
}  # fmt: skip
_MOST_BINDS = 256  # of a name at one place; more are as good as anything
MAX_PASSING = 10  # calls that a container is handed to
Written = Listing | Dictionary | Each  # a container as written
# A name, and the attribute or the element under a constant key that is stored to; see Unit.placed.
Place = tuple[str, str | Key]
_CALLING = frozenset({"call", "apply"})
_SELF = ("self", "this")
_start = attrgetter("start")
_OPEN = frozenset({"function", "namespace", "prototype"})  # what code inside sees the names of


def _is_defined(bind: Bind) -> bool:
    return isinstance(bind.value, (Defined, Imported))


def find_defined(binds: Iterable[Bind]) -> list[int]:
    """The starts of the definitions among what bindings bind."""
    return [bind.value.start for bind in binds if isinstance(bind.value, Defined)]


def part_key(*names: str) -> int:
    """A number for a part of the code that others may depend on; the same on every machine."""
    return xxh3_64_intdigest("\0".join(names).encode("utf-8", "surrogatepass"))


def called_names(site: Site) -> list[str]:
    """The names by which a call may be looked for; `f.call(…)` is also one of f."""
    names = [site.name] if site.name else []
    if site.name in _CALLING and (receiver := split_receiver(site.callee)):
        names += [name for name in receiver.split(".")[-1:] if name != site.name]
    return names


def find_handed(site: Site) -> Iterator[tuple[str | int, int | str]]:
    """What a call is given that may be a function: its last name, or the start of one without a name; and as which
    argument, by position or keyword."""
    for at, value in (*enumerate(site.args), *site.keywords):
        if isinstance(value, str):
            yield value.rpartition(".")[2], at
        elif isinstance(value, Attribute):
            yield value.path.rpartition(".")[2], at
        elif isinstance(value, Lambda):
            yield value.start, at


def find_named(code: Code) -> set[Named]:
    """All names by which a document is found: see `Unit.has_name`."""
    entered = {(entry.name, entry.kind) for entry in code.entries}
    return entered | {(name, "called") for name in find_called(code)} | {(name, "stored") for name in find_stored(code)}


def find_called(code: Code) -> set[str]:
    """The names of a Unit's `sites_by_name`, at a tenth of its cost."""
    found = {site.name for site in code.sites}
    if not found.isdisjoint(_CALLING):
        found.update(name for site in code.sites if site.name in _CALLING for name in called_names(site))
    found.discard("")
    return found


def find_stored(code: Code) -> set[str]:
    """The names of a Unit's `stores_by_name`."""
    found = {store.name for store in code.stores if store.name is not None and store.base not in _SELF}
    return found | {f"[]{base.rpartition('.')[2]}" for base in _find_foreign(code)}


def _find_foreign(code: Code) -> set[str]:
    """What code puts elements into that has it from another document: `lib.jobs`, behind `import lib`."""
    imported = {bind.name for bind in code.binds if isinstance(bind.value, Imported)}
    bases = {str(store.base) for store in code.stores if store.name is None and isinstance(store.base, str)}
    adding = (site.callee for site in code.sites if site.name in _ADDING and isinstance(site.callee, str))
    bases.update(callee.rpartition(".")[0] for callee in adding)
    return {base for base in bases if base.partition(".")[0] in imported}


def find_members(code: Code) -> list[Definition]:
    """Functions that are members of a class or an object."""
    by_symbol = {definition.symbol: definition for definition in code.definitions if definition.symbol >= 0}
    receiver = describe(code.language).receiver
    found: list[Definition] = []
    for definition in code.definitions:
        if definition.kind != "function" or definition.symbol < 0:
            continue
        holder = by_symbol.get(definition.scope)
        # Where the receiver has a name of its own, only what takes it can be called on one.
        takes_self = receiver != "self" or [p.name for p in definition.parameters[:1]] == [receiver]
        is_held = holder is not None and holder.kind not in ("function", "mod")
        if takes_self and (is_held or "member" in definition.modifiers):
            found.append(definition)
    return found


class _Order(NamedTuple):
    """What is asked again and again of the bindings of one name, of which there may be thousands."""

    plain: list[Bind]
    ends: list[
        int
    ]  # up to each, the last place that one of comprehensions and lambdas is known at; none: there is none
    has_definition: bool


def _find_order(binds: Sequence[Bind]) -> _Order:
    plain = [bind for bind in binds if not bind.inner]
    ends: list[int] = []
    if len(plain) < len(binds):
        ends = list(accumulate((bind.end if bind.inner else -1 for bind in binds), max))
    return _Order(plain, ends, any(map(_is_defined, plain)))


class _Homes(dict[int, int]):
    def __init__(self, unit: Unit) -> None:
        super().__init__()
        self._unit = unit

    def __missing__(self, scope: int) -> int:
        unit = self._unit
        definition = unit.by_symbol.get(scope)
        is_function = definition is not None and definition.kind == "function"
        key = self[scope] = unit.home_of(definition) if definition and is_function else unit.name_key("")
        return key


class Unit:
    """`scopes` maps a scope (a symbol, or ROOT) to what it binds."""

    def __init__(self, path: str, code: Code, document: int = 0) -> None:
        self.path, self.language, self.code, self.document = path, code.language, code, document
        self.definitions: dict[int, Definition] = {}  # by start
        self.by_symbol: dict[int, Definition] = {}
        self.scopes: dict[int, dict[str, list[Bind]]] = {ROOT: {}}
        self.site_at = {site.end: number for number, site in enumerate(code.sites)}
        self.stars: list[tuple[int, Imported]] = []  # `from m import *`, with its scope
        self.item_stores: dict[str, list[Store]] = {}
        self.things: dict[int, Class | Function] = {}
        self.placed: dict[Place, list[Store]] = {}  # stores whose order is known
        self.part_keys: dict[str, int] = {}  # those of its own parts that were asked for
        self._nowhere = self.name_key("")
        self.homes = _Homes(self)  # `home`, for loops over all of a document
        self._orders: dict[int, _Order] = {}  # by the identity of a list of `scopes`
        self._own_stores: dict[int, dict[str, list[Store]]] | None = None
        for definition in code.definitions:
            self.definitions[definition.start] = definition
            if definition.symbol >= 0:
                self.by_symbol[definition.symbol] = definition
                if definition.parameters:
                    start = definition.start
                    self.scopes[definition.symbol] = {
                        parameter.name: [
                            Bind(definition.symbol, parameter.name, ParameterOf(start, number), start, _FOREVER)
                        ]
                        for number, parameter in enumerate(definition.parameters)
                    }
        scopes = self.scopes
        for bind in code.binds:
            if bind.name == "*" and isinstance(bind.value, Imported):  # not an operator of that name
                self.stars.append((bind.scope, bind.value))
                continue
            names = scopes.get(bind.scope)
            if names is None:
                names = scopes[bind.scope] = {}
            if bind.name in names:
                names[bind.name].append(bind)
            else:
                names[bind.name] = [bind]
        for store in code.stores:
            if store.since >= 0 and isinstance(store.base, str):
                place = store.name or as_key(store.key)
                if place is not None:
                    self.placed.setdefault((store.base, place), []).append(store)
            if store.name is None and (base := self.find_base(store.base)):
                self.item_stores.setdefault(base, []).append(store)
        for site in code.sites:
            if site.name in _ADDING and (site.args or site.name == "update") and not find_updates(site):
                self._add_items(site)
        for scope, start, operation, value in code.runs:
            if operation == "+=" and isinstance(value, Augmented) and (base := self.find_base(value.target)):
                stored = Store(scope, start, Name(base), None, Iterated(value.value))
                self.item_stores.setdefault(base, []).append(stored)

    def _add_items(self, site: Site) -> None:
        """`steps.append(f)` stores as `steps[…] = f` does."""
        callee = site.callee
        if isinstance(callee, str):
            base = callee.rpartition(".")[0]
        else:
            base = self.find_base(callee.base) if isinstance(callee, Attribute) else ""
        if not base:
            return
        at, key_at = _ADDING[site.name]
        found: list[tuple[Value, Value]] = [(None, Spread(value)) for _, value in site.keywords] if at else []
        if site.name in ("update", "extend"):
            given = site.args[0] if site.args else NULL
            if isinstance(given, Dictionary):
                found = [*zip(given.keys, given.values, strict=True)]
            elif site.name == "extend" or not isinstance(given, (str, Literals)):
                found = [(None, Iterated(given))]
            elif isinstance(given, str):
                found = [(None, Element(given, (None,)))]
            found += [(Text(name), value) for name, value in site.keywords if name != "**"]
        elif len(site.args) > at and (key_at >= 0 or at or len(site.args) == 1):
            found = [(site.args[key_at] if key_at >= 0 else None, site.args[at])]
        stores = self.item_stores.setdefault(base, [])
        stores += [Store(site.scope, site.start, Name(base), None, value, key) for key, value in found]

    def find_base(self, value: Value) -> str:
        """What holds elements, as text: `jobs`, `self.jobs`, `jobs[]` for an element of it that holds others. Also of
        `jobs.setdefault(key, [])`."""
        if isinstance(value, str):
            return value
        if isinstance(value, Element):
            inner = self.find_base(value.base)
            return f"{inner}[]" if inner else ""
        if isinstance(value, Choice):
            return next((inner for choice in value.options if (inner := self.find_base(choice))), "")
        if isinstance(value, int) and value in self.site_at:
            site = self.code.sites[self.site_at[value]]
            if site.name in ("setdefault", "get") and isinstance(site.callee, str) and "." in site.callee:
                return f"{site.callee.rpartition('.')[0]}[]"
        return ""

    @cached_property
    def items_by_name(self) -> dict[str, list[Store]]:
        """Stores of elements by the last name of what holds them."""
        found: dict[str, list[Store]] = {}
        for base, stores in self.item_stores.items():
            found.setdefault(base.rpartition(".")[2], []).extend(stores)
        return found

    @cached_property
    def container_names(self) -> dict[int, tuple[str, Bind | None]]:
        """Of a container as written, by its identity: the name it is bound to, None for an attribute."""
        found: dict[int, tuple[str, Bind | None]] = {}
        for bind in self.code.binds:
            if isinstance(bind.value, Written):
                found[id(bind.value)] = (bind.name, bind)
        for definition in self.code.definitions:
            for parameter in definition.parameters if definition.symbol >= 0 else ():
                if isinstance(parameter.default, Written):
                    bind = self.scopes[definition.symbol][parameter.name][0]
                    found[id(parameter.default)] = (parameter.name, bind)
        for store in self.code.stores:
            if isinstance(store.value, Written):
                name = store.name or f"{self.find_base(store.base).rpartition('.')[2]}[]"
                found[id(store.value)] = (name, None)
        for bind in self.code.binds:
            if isinstance(bind.value, Written):
                for inner in find_inner(bind.value):
                    if isinstance(inner, Written):
                        found.setdefault(id(inner), (f"{bind.name}[]", None))
        for base, stores in self.item_stores.items():
            for store in stores:
                if isinstance(store.value, Written):
                    found.setdefault(id(store.value), (f"{base.rpartition('.')[2]}[]", None))
        return found

    @cached_property
    def _result_names(self) -> dict[int, tuple[str, Bind | None]]:
        """End of a call -> the name its result is bound to, None for an attribute."""
        found: dict[int, tuple[str, Bind | None]] = {
            bind.value: (bind.name, bind) for bind in self.code.binds if isinstance(bind.value, int)
        }
        for store in self.code.stores:
            if isinstance(store.value, int):
                found[store.value] = (store.name or f"{self.find_base(store.base).rpartition('.')[2]}[]", None)
        return found

    def name_result(self, end: int, value: Value) -> None:
        """A call that ends there gives a container: `jobs = deque()`."""
        known = self._result_names.get(end)
        if known is not None:
            self.container_names[id(value)] = known

    @cached_property
    def aliases(self) -> dict[str, list[Bind]]:
        """Name -> bindings of others to it."""
        found: dict[str, list[Bind]] = {}
        for bind in self.code.binds:
            if isinstance(bind.value, str) and "." not in bind.value:
                found.setdefault(bind.value, []).append(bind)
        return found

    @cached_property
    def passing(self) -> dict[str | int, list[tuple[int, int]]]:
        """Name, or identity of a container as written -> calls that it is handed to, and at which place."""
        found: dict[str | int, list[tuple[int, int]]] = {}
        for number, site in enumerate(self.code.sites):
            for at, value in enumerate(site.args):
                if isinstance(value, str) and "." not in value:
                    found.setdefault(value, []).append((number, at))
                elif isinstance(value, Written):
                    found[id(value)] = [(number, at)]
        return found

    def find_passing(self, value: Value) -> list[tuple[int, int]]:
        """The calls that get a container by the name it is bound to, with the argument it is; none where many do."""
        name, bind = self.container_names.get(id(value), ("", None))
        if bind is None:
            return self.passing.get(id(value), [])
        places = self.passing.get(name, ())
        if len(places) > MAX_PASSING:
            return []
        sites = self.code.sites
        return [
            (number, at)
            for number, at in places
            if any(known is bind for known in self.find(sites[number].scope, name, sites[number].start))
        ]

    def find_names(self, value: Value) -> list[str]:
        """By which a container as written is filled and handed on."""
        return list(dict.fromkeys(name for name, _ in self._find_bound(value)))

    def find_items(self, value: Value) -> list[Store]:
        """What is put into a container as written, through the names it is bound to."""
        return [store for name, bind in self._find_bound(value) for store in self._find_items(name, bind)]

    def _find_bound(self, value: Value) -> list[tuple[str, Bind | None]]:
        """The names that a container as written is bound to."""
        known = self.container_names.get(id(value))
        if known is None:
            return []
        name, bind = known
        others = [
            (alias.name, alias)
            for alias in (self.aliases.get(name, ()) if bind is not None else ())
            if any(found is bind for found in self.find(alias.scope, name, alias.start - 1))
        ]
        return [known, *others]

    def _find_items(self, name: str, bind: Bind | None) -> list[Store]:
        found: list[Store] = []
        for store in self.items_by_name.get(name, ()):
            base = self.find_base(store.base)
            if bind is None or self._is_class(bind.scope):
                is_same = "." in base or base.endswith("[]")
            else:
                is_same = base == name and any(known is bind for known in self.find(store.scope, name, store.start))
            if is_same:
                found.append(store)
        return found

    def _is_class(self, scope: int) -> bool:
        return scope in self.by_symbol and not self.is_local(scope)

    def is_local(self, scope: int) -> bool:
        """Whether what is bound there is known to a function alone."""
        definition = self.by_symbol.get(scope)
        return definition is not None and definition.kind == "function"

    def find(self, scope: int, name: str, position: int) -> Sequence[Bind]:
        """The bindings a name can mean at a place, from the innermost scope that has it; class bodies hide from
        the functions inside them."""
        at, is_own = scope, True
        while True:
            names = self.scopes.get(at)
            if names is not None and name in names:
                definition = self.by_symbol.get(at)
                if is_own or definition is None or definition.kind in _OPEN:
                    found = self.reach(names[name], position, at == scope)
                    if found and (
                        not is_own
                        or definition is None
                        or definition.kind != "class"
                        # `fmt = staticmethod(fmt)`: what stands there is not bound yet.
                        or not ANYWHERE < position < found[0].start
                    ):
                        return found
            if at == ROOT:
                return ()
            definition = self.by_symbol.get(at)
            at = ROOT if definition is None else definition.scope
            # A lambda or comprehension at class level is no scope of its own here, so this is good enough for it.
            is_own = False

    def find_placed(self, scope: int, place: Place, position: int) -> tuple[list[Store], bool] | None:
        """Of stores to an attribute or element by one name (see `placed`), those of the same code that can be seen at a
        place, and whether nothing older can; None where nothing is known of their order."""
        own = [store for store in self.placed.get(place, ()) if store.scope == scope]
        if not own or position == ANYWHERE:
            return None
        head = place[0]
        binds = self.find(scope, head, position)
        found: list[Store] = []
        is_last = False
        for store in reversed(own):
            if store.since <= position:
                known = self.find(scope, head, store.start)
                if len(binds) != 1 or len(known) != 1 or known[0] is not binds[0]:
                    return None  # another variable, or what it was before
                found.append(store)
                if store.end < 0 or store.end >= position:
                    is_last = True
                    break
        end = self._find_loop_end(position)
        if end >= 0:
            found += [store for store in own if position < store.since <= end]
        return found, is_last

    def find_fixed(self, scope: int, name: str) -> Sequence[Bind] | None:
        """The binding that a name has at every place of a scope, if any; None where it depends on the place."""
        found: Sequence[Bind] = ()
        at = scope
        while True:
            names = self.scopes.get(at)
            definition = None if at == ROOT else self.by_symbol.get(at)
            if names is not None and name in names:
                binds = names[name]
                if len(binds) > 1 or binds[0].inner:
                    return None
                if not found and (at == scope or definition is None or definition.kind in _OPEN):
                    found = binds
            if at == ROOT:
                return found
            at = ROOT if definition is None else definition.scope

    def reach(self, binds: list[Bind], position: int, is_own: bool) -> Sequence[Bind]:
        """Straight-line code hides what was bound before; branches and loops join."""
        if len(binds) == 1 and not binds[0].inner:
            return binds
        order = self._orders.get(id(binds)) if position != ANYWHERE else None
        if order is None:
            order = _find_order(binds)
            if position != ANYWHERE:  # else the list may be made for this question
                self._orders[id(binds)] = order
        # By start: the last one that is not over is the innermost.
        at = bisect_right(binds, position, key=_start)
        while at and order.ends and order.ends[at - 1] > position:
            at -= 1
            last = binds[at]
            if last.inner and position < last.end:
                same = binds[bisect_left(binds, last.start, key=_start) : at + 1]
                return [bind for bind in same if bind.inner and bind.end == last.end]
        plain = order.plain
        if len(plain) < 2 or (position == ANYWHERE and is_own):
            return plain
        if not is_own:
            # A function may run between two assignments; definitions of one name take each other's place.
            if plain[0].scope != ROOT or not order.has_definition:
                return plain
            position = _FOREVER
        found: list[Bind] = []
        behind = bisect_right(plain, position, key=_start)
        for at in range(behind - 1, -1, -1):
            bind = plain[at]
            found.append(bind)
            if bind.end < 0 or bind.end >= position or len(found) > _MOST_BINDS:
                break
        end = self._find_loop_end(position)
        if end >= 0:
            found += plain[behind : bisect_right(plain, end, key=_start)]
        return found or plain

    def _find_loop_end(self, position: int) -> int:
        """Where the outermost loop around a place ends, -1 where there is none."""
        at = bisect_right(self._loops, position, key=itemgetter(0)) - 1
        return self._loops[at][1] if at >= 0 and position < self._loops[at][1] else -1

    @cached_property
    def _loops(self) -> list[tuple[int, int]]:
        """Those that are in no other."""
        found: list[tuple[int, int]] = []
        for start, end in self.code.loops:
            if not found or start >= found[-1][1]:
                found.append((start, end))
            elif end > found[-1][1]:  # broken code may have them overlap
                found[-1] = (found[-1][0], end)
        return found

    # -- what can be depended on: numbers that stand for a part of the code, whatever its offsets -----------------

    def name_key(self, name: str) -> int:
        """What the document binds to a name at root level; `*`, `__all__` and `[]x` for what is near it."""
        key = self.part_keys.get(name)
        if key is None:
            key = self.part_keys[name] = part_key(self.path, str(self.document), name)
        return key

    def item_key(self, key: Text) -> int:
        """What the document puts into containers under a constant text."""
        return self.name_key(f"[]'{key.value}")

    def member_key(self, symbol: int, name: str) -> int:
        """What a class has under a name; with "" what it inherits, with "*" which names it has, with "@" what decorates
        it and which of its names have a type."""
        return self.name_key(f"{self.qualified_names[symbol]}:{name}")

    def home(self, scope: int) -> int:
        """All code of a function; what stands in a class or at root level is reached through its names."""
        return self.homes[scope]

    def home_inside(self, definition: Definition) -> int:
        """Where the links of a definition itself belong: with the code inside it."""
        return self.home(definition.symbol if definition.symbol >= 0 else definition.scope)

    def all_homes(self) -> list[int]:
        return list(dict.fromkeys([self._nowhere, *map(self.home_inside, self.code.definitions)]))

    def scope_key(self, scope: int, name: str) -> int:
        """What a scope binds to a name; `declare global` is none that has a name."""
        if scope not in self.by_symbol:
            return self.name_key(name)
        home = self.home(scope)
        return self.member_key(scope, name) if home == self._nowhere else home

    def home_of(self, definition: Definition) -> int:
        if definition.symbol < 0:
            return self.home(definition.scope)
        return self.name_key(f"{self.qualified_names[definition.symbol]}()")

    @cached_property
    def qualified_names(self) -> dict[int, str]:
        return qualify(self.code)

    # -- by name ---------------------------------------------------------------------------------

    def has_name(self, name: str, kind: str) -> bool:
        match kind:
            case "called":
                return name in self.sites_by_name
            case "stored":
                return name in self.stores_by_name
            case _:
                return (kind, name) in self.entries

    @cached_property
    def sites_by_name(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for number, site in enumerate(self.code.sites):
            for name in called_names(site):
                found.setdefault(name, []).append(number)
        return found

    @cached_property
    def stores_by_name(self) -> dict[str, list[Store]]:
        """Assignments to attributes of what is not `self`; under `[]jobs` elements that are put into what comes from
        another document."""
        found: dict[str, list[Store]] = {}
        for store in self.code.stores:
            if store.name is not None and store.base not in _SELF:
                found.setdefault(store.name, []).append(store)
        for base in sorted(_find_foreign(self.code)):
            found.setdefault(f"[]{base.rpartition('.')[2]}", []).extend(self.item_stores.get(base, ()))
        return found

    @cached_property
    def entries(self) -> dict[tuple[str, str], list[Definition]]:
        """Definitions by how they are entered (see ENTRY_KINDS)."""
        found: dict[tuple[str, str], list[Definition]] = {}
        for entry in self.code.entries:
            if entry.start in self.definitions:
                found.setdefault((entry.kind, entry.name), []).append(self.definitions[entry.start])
        return found

    @cached_property
    def heirs(self) -> dict[str, list[Definition]]:
        """Classes by the names of their bases; under `metaclass M` those that have M for one."""
        found: dict[str, list[Definition]] = {}
        for definition in self.code.definitions:
            is_class = definition.kind in ("class", "prototype")
            for base in dict.fromkeys(b for b in definition.bases if isinstance(b, str)) if is_class else ():
                found.setdefault(base, []).append(definition)
            for word, value in definition.keywords:
                if word == "metaclass" and isinstance(value, str):
                    found.setdefault(f"metaclass {value}", []).append(definition)
        return found

    @cached_property
    def held_sites(self) -> dict[int, list[int]]:
        """Class -> the calls whose results its attributes are."""
        found: dict[int, list[int]] = {}
        for bind in self.code.binds:
            if isinstance(bind.value, int) and bind.value in self.site_at and self._is_class(bind.scope):
                found.setdefault(bind.scope, []).append(self.site_at[bind.value])
        return found

    def find_fields(self, symbol: int) -> list[str]:
        """The names that a class gives a type, in order."""
        names = self.scopes.get(symbol, {})
        return [name for name, binds in names.items() if any(bind.type is not None for bind in binds)]

    @cached_property
    def methods(self) -> list[Definition]:
        return find_members(self.code)

    @cached_property
    def decorated_at(self) -> dict[int, tuple[Definition, int, bool]]:
        """End of a decorator -> what it decorates, how many decorators it and those above are, whether it is a call:
        then its result is what decorates."""
        decorated = [definition for definition in self.code.definitions if definition.decorators]
        starts = [definition.start for definition in decorated]
        called = {value for definition in decorated for value in definition.decorators if isinstance(value, int)}
        found: dict[int, tuple[Definition, int, bool]] = {}
        ranks: dict[int, int] = {}
        for site in self.code.sites:
            # Calls in the arguments of a decorator are none.
            if site.kind == "decorator":
                at = bisect_left(starts, site.end)
                if at < len(starts):
                    ranks[at] = ranks.get(at, 0) + 1
                    found[site.end] = (decorated[at], ranks[at], site.end in called)
        return found

    @cached_property
    def handed(self) -> dict[int, tuple[int, int]]:
        """Start of an anonymous function that a call is given -> the call, and which argument it is."""
        return {
            value.start: (number, at)
            for number, site in enumerate(self.code.sites)
            for at, value in enumerate(site.args)
            if isinstance(value, Lambda)
        }

    @cached_property
    def handed_over(self) -> dict[str | int, list[tuple[int, int | str]]]:
        """Calls that are given a function of this document (see find_handed), and as which argument."""
        functions = {d.name if d.name else d.start for d in self.code.definitions if d.kind == "function"}
        found: dict[str | int, list[tuple[int, int | str]]] = {}
        for number, site in enumerate(self.code.sites):
            for key, at in find_handed(site):
                if key in functions:
                    found.setdefault(key, []).append((number, at))
        return found

    @cached_property
    def indirect(self) -> list[int]:
        """Calls of plain names that are no definition or import: parameters and variables that hold functions; and of
        functions that stand there."""
        found: list[int] = []
        for number, site in enumerate(self.code.sites):
            if isinstance(site.callee, Lambda):
                found.append(number)
            elif isinstance(site.callee, str) and "." not in site.callee:
                for bind in self.find(site.scope, site.callee, site.start):
                    if not _is_defined(bind):
                        found.append(number)
                        break
        return found

    def find_holders(self) -> dict[int, str]:
        """Calls in a function without a name -> the name of that function."""
        found: dict[int, str] = {}
        for number, site in enumerate(self.code.sites) if self._anonymous else ():
            name = self.find_holder(site.scope, site.start)
            if name != self.qualified_names.get(site.scope, ""):
                found[number] = name
        return found

    def find_holder(self, scope: int, offset: int) -> str:
        """The name of the innermost function whose code holds a place, also of one that has none."""
        at = bisect_right(self._anonymous, (offset, _FOREVER)) - 1
        around = self.by_symbol.get(scope)
        while at >= 0:
            start, end, symbol, outer = self._anonymous[at]
            if around is not None and around.start > start:
                break  # it holds what holds the place
            if offset < end:
                return self.qualified_names[symbol]
            at = outer
        return self.qualified_names.get(scope, "")

    @cached_property
    def _anonymous(self) -> list[tuple[int, int, int, int]]:
        """Functions without a name: where their code begins and ends, their symbol, the one around each."""
        found: list[tuple[int, int, int, int]] = []
        stack: list[int] = []
        for symbol, start, end in sorted(
            (d.anonymous for d in self.code.definitions if d.anonymous), key=lambda place: place[1]
        ):
            while stack and found[stack[-1]][1] <= start:
                stack.pop()
            found.append((start, end, symbol, stack[-1] if stack else -1))
            stack.append(len(found) - 1)
        return found

    def find_class(self, scope: int) -> Definition | None:
        """The class around a function, through functions nested in its methods."""
        definition = self.by_symbol.get(scope)
        while definition is not None:
            if definition.kind != "function":
                return definition
            definition = self.by_symbol.get(definition.scope)
        return None

    def own_stores(self, symbol: int) -> dict[str, list[Store]]:
        """`self.x = …` in the methods of a class, by attribute."""
        if self._own_stores is None:
            self._own_stores = {}
            for store in self.code.stores:
                if store.name is not None and isinstance(store.base, str):
                    method = self.by_symbol.get(store.scope)
                    while method is not None and not (method.parameters and method.parameters[0].name == store.base):
                        method = self.by_symbol.get(method.scope)
                    owner = None if method is None else self.find_owner(method)
                    if method is not None and method.kind == "prototype":
                        owner = method
                    elif method is None and store.base.endswith(".prototype"):
                        owner = self._find_prototype(store.scope, store.base)
                    if owner is not None and owner.kind != "function":
                        stores = self._own_stores.setdefault(owner.symbol, {}).setdefault(store.name, [])
                        stores[:] = [known for known in stores if not self._is_over(known, store)]
                        stores.append(store)
        return self._own_stores.get(symbol, {})

    def _is_over(self, old: Store, new: Store) -> bool:
        """Whether nobody sees what `self.x = …` assigns, since the same code does so again before it calls anything."""
        if old.since < 0 or new.since < 0 or old.scope != new.scope or old.base != new.base:
            return False
        first = bisect_left(self.code.sites, old.since, key=_start)
        is_called = first < len(self.code.sites) and self.code.sites[first].start < new.since
        return not is_called and new.end < 0

    def find_owner(self, function: Definition) -> Definition | None:
        """What a function is a method of; a function around it is its owner too."""
        if function.within and function.parameters and function.parameters[0].name == "this":
            return self._find_prototype(function.scope, function.within)
        return self.by_symbol.get(function.scope)

    def _find_prototype(self, scope: int, name: str) -> Definition | None:
        """`A.prototype.f = …` belongs to A."""
        starts = find_defined(self.find(scope, name.removesuffix(".prototype"), ANYWHERE))
        return self.definitions[starts[0]] if starts else None


def get_kind(written: Written) -> str:
    """The kind of a container: list dict set tuple …"""
    return "dict" if isinstance(written, Dictionary) else written.kind


def as_key(value: Value) -> Key | None:
    """A constant by which elements are told apart; None for what is none."""
    if isinstance(value, (Text, Integer)):
        return value
    if isinstance(value, Listing) and value.kind == "tuple" and None not in map(as_key, value.elements):
        return value
    return None
