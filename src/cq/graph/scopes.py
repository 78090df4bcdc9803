"""Which bindings reach a place in a document, and which definitions stand around it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import accumulate
from operator import attrgetter, itemgetter
from typing import NamedTuple

from cq.model.code import (
    Bind,
    Code,
    Defined,
    Definition,
    Imported,
    Integer,
    Key,
    Listing,
    ParameterOf,
    Store,
    Text,
    Value,
    qualify,
)

ROOT = -1  # the scope of code at root level
ANYWHERE = -1  # a position from which every binding can be seen
_FOREVER = 1 << 60
_MOST_BINDS = 256  # of a name at one place; more are as good as anything
# A name, and the attribute or the element under a constant key that is stored to; see Scopes.placed.
Place = tuple[str, str | Key]
_start = attrgetter("start")
_OPEN = frozenset({"function", "namespace", "prototype"})  # what code inside sees the names of


class Star(NamedTuple):
    """`from m import *`."""

    scope: int
    source: Imported


def find_defined(binds: Iterable[Bind]) -> list[int]:
    """The starts of the definitions among what bindings bind."""
    return [bind.value.start for bind in binds if isinstance(bind.value, Defined)]


def is_defined(bind: Bind) -> bool:
    return isinstance(bind.value, (Defined, Imported))


class _Order(NamedTuple):
    """What is asked again and again of the bindings of one name, of which there may be thousands."""

    plain: list[Bind]
    # Up to each, the last place that one of comprehensions and lambdas is known at; empty where there is none of those.
    ends: list[int]
    has_definition: bool


def _find_order(binds: Sequence[Bind]) -> _Order:
    plain = [bind for bind in binds if not bind.inner]
    ends: list[int] = []
    if len(plain) < len(binds):
        ends = list(accumulate((bind.end if bind.inner else -1 for bind in binds), max))
    return _Order(plain, ends, any(map(is_defined, plain)))


class Scopes:
    """`scopes` maps a scope (a symbol, or ROOT) to what it binds."""

    def __init__(self, code: Code) -> None:
        self.code = code
        self.definitions: dict[int, Definition] = {}  # by start
        self.by_symbol: dict[int, Definition] = {}
        self.scopes: dict[int, dict[str, list[Bind]]] = {ROOT: {}}
        self.stars: list[Star] = []
        self.placed: dict[Place, list[Store]] = {}  # stores whose order is known
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
                self.stars.append(Star(bind.scope, bind.value))
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

    @cached_property
    def qualified_names(self) -> dict[int, str]:
        return qualify(self.code)

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

    def reach(self, binds: Sequence[Bind], position: int, is_own: bool) -> Sequence[Bind]:
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
        for start, end in [(branch.start, branch.end) for branch in self.code.branches if branch.kind == "loop"]:
            if not found or start >= found[-1][1]:
                found.append((start, end))
            elif end > found[-1][1]:  # broken code may have them overlap
                found[-1] = (found[-1][0], end)
        return found

    def find_class(self, scope: int) -> Definition | None:
        """The class around a function, through functions nested in its methods."""
        definition = self.by_symbol.get(scope)
        while definition is not None:
            if definition.kind != "function":
                return definition
            definition = self.by_symbol.get(definition.scope)
        return None

    def find_owner(self, function: Definition) -> Definition | None:
        """What a function is a method of; a function around it is its owner too."""
        if function.within and function.parameters and function.parameters[0].name == "this":
            return self._find_prototype(function.scope, function.within)
        return self.by_symbol.get(function.scope)

    def _find_prototype(self, scope: int, name: str) -> Definition | None:
        """`A.prototype.f = …` belongs to A."""
        starts = find_defined(self.find(scope, name.removesuffix(".prototype"), ANYWHERE))
        return self.definitions[starts[0]] if starts else None

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

    def find_fields(self, symbol: int) -> list[str]:
        """The names that a class gives a type, in order."""
        names = self.scopes.get(symbol, {})
        return [name for name, binds in names.items() if any(bind.type is not None for bind in binds)]

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


def as_key(value: Value) -> Key | None:
    """A constant by which elements are told apart; None for what is none."""
    if isinstance(value, (Text, Integer)):
        return value
    if isinstance(value, Listing) and value.kind == "tuple" and None not in map(as_key, value.elements):
        return value
    return None
