"""What modules, classes and instances have under a name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cq.graph.callers import is_open
from cq.graph.engine.cells import Remembered
from cq.graph.engine.view import View
from cq.graph.scopes import ANYWHERE, ROOT, find_defined
from cq.graph.things import Bound, Class, External, Function, Instance, Module, OwnClass, Super, Thing
from cq.graph.values import ATTRIBUTE, EVERYTHING, IMPORT, MRO, NOTHING, PARAMETER, SCOPE, Values, join, raised
from cq.model.code import NULL, Bind, Defined, Imported, Lambda, Store, Value

if TYPE_CHECKING:
    from cq.graph.link import Linker

Order = tuple[Class | External | None, ...]  # None: a base nobody knows
# The class that has a member, its bindings and stores there, and how sure that is.
Member = tuple[Class | External | None, Sequence[Bind], Sequence[Store], int]

_NOWHERE: Member = (None, (), (), SCOPE)

MAX_HEIRS = 8  # classes below that have an attribute of their own
MAX_STORES = 10  # assignments to an attribute of that name, outside its class
MAX_BASES = 100  # classes above one another
MAX_BEGUN = 20  # members whose names begin and end as a text that is put together
MAX_ORDER = 200  # classes of which one is made; what lies behind those is not known
MAX_LINE = 30  # classes of one line that ask one another for a member


class Members:
    """By the order of lookup of classes, by the names that modules export, by what is assigned from elsewhere."""

    def __init__(self, linker: Linker) -> None:
        self.linker = linker
        self._orders: dict[Class, Remembered[Order]] = {}

    def exported(self, unit: View, name: str, seen: set[View] | None = None) -> Values | None:
        """What a module has under a name; None when it has no such name."""
        linker = self.linker
        binds = unit.bound(ROOT, name)
        reached = unit.reach(binds, ANYWHERE, is_own=False) if binds else ()
        if reached:
            found = NOTHING
            for bind in reached:
                found = join(found, linker.bound(unit, bind))
            return raised(found, IMPORT)
        return self.starred(unit, name, seen or {unit})

    def starred(self, unit: View, name: str, seen: set[View]) -> Values | None:
        """Through `from m import *`; the last one wins. Of two ways to a module one is gone, lest many of them that
        import one another be gone through in every order."""
        linker = self.linker
        for _, star in reversed(unit.stars()):
            for thing in linker.dialect(unit).resolve_import(linker, unit, star.level, star.module, "*"):
                if isinstance(thing, Module) and thing.unit is not None and thing.unit not in seen:
                    inner = thing.unit
                    public = inner.public()
                    if name not in public if public is not None else name.startswith("_"):
                        continue
                    seen.add(inner)
                    found = self.exported(inner, name, seen)
                    if found is not None:
                        return found
                    module = None if public is None else linker.dialect(unit).find_submodule(linker, thing.path, name)
                    if module is not None:  # named in `__all__`, it is imported too
                        return {module: IMPORT}
                elif isinstance(thing, External) and name not in linker.dialect(unit).builtins:
                    # Nothing in the repository has the name, so it can only come from there.
                    return {linker.external(f"{thing.name}.{name}"): IMPORT}
        return None

    def of_module(self, module: Module, name: str, level: int) -> Values:
        linker = self.linker
        if module.unit is not None:
            dialect = linker.dialect(module.unit)
            found = dialect.find_exported(linker, module.unit, name)
            if found is not None:
                return raised(found, level)
            inner = dialect.find_submodule(linker, module.path, name)
            if inner is not None:
                return {inner: max(level, IMPORT)}
            return self.stored_from_outside(module, name)
        for dialect in linker.dialects.all():
            inner = dialect.find_submodule(linker, module.path, name)
            if inner is not None:
                return {inner: max(level, IMPORT)}
        return linker.unknown

    def of_class(
        self, kind: Class, name: str, receiver: Thing, level: int, *, on_class: bool, behind: bool = False
    ) -> Values:
        linker = self.linker
        if linker.dialects[kind.unit.language].is_static:
            return linker.dialect(kind.unit).find_member(linker, receiver, name, level)
        holder, binds, stores, doubt = self.find(kind, name, behind=behind)
        level = max(level, doubt)
        if holder is None:
            found = raised(self.stored_from_outside(kind, name), max(level, ATTRIBUTE))
            return join(found, self._fetch(receiver, name)) if isinstance(receiver, Instance) and not behind else found
        if isinstance(holder, External):
            return {linker.external(f"{holder.name}.{name}"): max(level, IMPORT)}
        found = NOTHING
        dialect = linker.dialect(holder.unit)
        step = max(level, MRO) if isinstance(receiver, (Instance, OwnClass)) else level
        for bind in binds:
            if isinstance(bind.value, Defined):
                thing = linker.thing(holder.unit, bind.value.start)
                if isinstance(thing, Function):
                    found = join(found, raised(dialect.access(linker, thing, receiver, on_class=on_class), step))
                else:
                    found = join(found, {thing: step})
            else:
                values = raised(dialect.read_field(linker, holder, bind), max(level, ATTRIBUTE))
                if not on_class and values is not EVERYTHING and any(isinstance(thing, Function) for thing in values):
                    bound: Values = {}
                    for thing, at in values.items():
                        if isinstance(thing, Function) and isinstance(receiver, Instance):
                            bound.update(raised(dialect.access(linker, thing, receiver, on_class=False), at))
                        else:
                            bound[thing] = at
                    values = bound
                found = join(found, values)
        for store in stores:
            values = raised(linker.stored(holder.unit, store), max(level, ATTRIBUTE))
            for thing, at in values.items():
                if isinstance(thing, Function) and thing.owner is holder and not on_class:  # through its prototype
                    found = join(found, raised(dialect.access(linker, thing, receiver, on_class=False), at))
                else:
                    found = join(found, {thing: at})
        if is_open(receiver) and not behind and len(find_defined(binds)) < len(binds):
            found = join(found, self._find_in_heirs(kind, name))
        if stores:
            # `lamp.state = On()` beside the class; what others put there, as tests do, is not what code here means.
            places = [(holder.unit, store) for store in holder.unit.stores(name)]
            beside = self._find_stored(holder, name, places, own=stores)
            found = join(found, raised(only_known(beside), level))
        return found

    def _fetch(self, receiver: Instance, name: str) -> Values:
        """What the method gives that a class has for attributes it does not have: `__getattr__`."""
        linker, found = self.linker, NOTHING
        hook = linker.dialect(receiver.type.unit).missing_hook
        if not hook or name.startswith("__"):
            return found
        holder, binds, _, _ = self.find(receiver.type, hook)
        for start in find_defined(binds):
            method = linker.thing(holder.unit, start) if isinstance(holder, Class) else None
            if isinstance(method, Function):
                linker.note_fetched(method)
                found = join(found, linker.calls.give(method, receiver, None, -1, 1))
        return found

    def _find_in_heirs(self, kind: Class, name: str) -> Values:
        """What classes below have in the place of an attribute: `form_class = BigForm`. None where many have one."""
        linker, found = self.linker, NOTHING
        places: list[tuple[Class, Bind | Store]] = []
        for heir in linker.callers.find_heirs(kind):
            binds, stores = self._own_members(heir, name)
            places += [(heir, place) for place in (*binds, *stores) if not _is_blank(place.value)]
        for heir, place in places if len(places) <= MAX_HEIRS else ():
            read = linker.bound(heir.unit, place) if isinstance(place, Bind) else linker.stored(heir.unit, place)
            found = join(found, raised(only_known(read), PARAMETER))
        return found

    def is_promise(self, kind: Class) -> bool:
        """Whether a class only says what others have, which need not inherit from it."""
        return any(isinstance(base, External) and base.name.endswith(".Protocol") for base in self.order(kind))

    def find_overrides(self, kind: Class, function: Function) -> list[Function]:
        """The methods that run in the place of one of a class in the classes below, in the order of those."""
        return self.linker.know(Members._find_overrides, self, kind, function)

    def _find_overrides(self, kind: Class, function: Function) -> list[Function]:
        name = function.definition.name
        found: dict[Function, None] = {}
        for heir in self.linker.callers.find_heirs(kind):
            other = self.find_method(heir, name, None, function)
            if other is not None and other is not function:
                found[other] = None
        return list(found)

    def find_method(self, kind: Class, name: str, behind: Class | None, function: Function | None) -> Function | None:
        """The method of that name that an instance of a class has, or that stands behind another of its classes;
        `function` where a class of the order is not known."""
        order = self.order(kind)
        for holder in order[order.index(behind) + 1 if behind is not None and behind in order else 0 :]:
            if not isinstance(holder, Class):
                return function
            other = self._find_own_method(holder, name)
            if other is not None:
                return other
        return None

    def _find_own_method(self, holder: Class, name: str) -> Function | None:
        """The method of that name that a class defines itself, be it through its prototype."""
        unit, symbol = holder.unit, holder.definition.symbol
        binds, stores = unit.member(symbol, name)
        for place in (*(binds if holder.definition.kind != "prototype" else ()), *stores)[-1:]:
            value = place.value
            other = self.linker.thing(unit, value.start) if isinstance(value, (Defined, Lambda)) else None
            return other if isinstance(other, Function) else None
        return None

    def of_super(self, thing: Super, name: str, level: int) -> Values:
        linker, kind = self.linker, thing.type
        holder = self.find(kind, name, behind=True)[0]
        if holder is None:
            below = self._find_below(thing, name)
            if below:
                return raised(below, level)
            is_closed = all(isinstance(b, Class) or (b is not None and _is_plain(b)) for b in self.order(kind))
            if is_closed and name in linker.dialect(kind.unit).root_members:
                return {linker.external(f"builtins.object.{name}"): level}
        on_class = isinstance(thing.receiver, OwnClass)
        return self.of_class(kind, name, thing.receiver, level, on_class=on_class, behind=True)

    def _find_below(self, thing: Super, name: str) -> Values:
        """What `super().name` means in a class that does not inherit it: what stands behind that class in the order of
        those that calls hand over as `self`."""
        linker, found = self.linker, NOTHING
        on_class = isinstance(thing.receiver, OwnClass)
        for kind in linker.callers.receivers(thing.method) if thing.method is not None else ():
            holder, binds, _, _ = self.find_behind(kind, name, thing.type) if isinstance(kind, Class) else _NOWHERE
            if isinstance(holder, Class):
                for start in find_defined(binds):
                    method = linker.thing(holder.unit, start)
                    if isinstance(method, Function):
                        values = linker.dialect(holder.unit).access(linker, method, thing.receiver, on_class=on_class)
                        found = join(found, raised(values, PARAMETER))
        return found

    def find(self, kind: Class, name: str, *, behind: bool = False) -> Member:
        """The class in the order of lookup that has the name, how it gets it, and how sure that is. Bindings to nothing
        (`x = None`) count only when there are no others. `behind`: what stands behind the class itself."""
        return self.linker.know(Members._find, self, kind, name, behind)

    def _find(self, kind: Class, name: str, behind: bool) -> Member:
        order = self.order(kind)
        base = order[1] if kind.is_line and not behind else None
        return (
            self._find_in_line(kind, base, name)
            if isinstance(base, Class)
            else self._find_in_order(order[behind:], name)
        )

    def find_begun(self, values: Values, begin: str, end: str = "") -> Values:
        """The members of instances, and of the classes below that they may be of, whose names begin and end so; of
        many the first, in the order of classes."""
        linker, found = self.linker, NOTHING
        for thing, level in values.items():
            names: dict[Function, None] = {}
            if not isinstance(thing, Instance):
                continue
            heirs = linker.callers.find_heirs(thing.type) if is_open(thing) else []
            for kind in dict.fromkeys(base for heir in (thing.type, *heirs) for base in self.order(heir)):
                for name in kind.unit.names(kind.definition.symbol) if isinstance(kind, Class) else ():
                    if name.startswith(begin) and name.endswith(end) and len(name) >= len(begin) + len(end):
                        method = self._find_own_method(kind, name) if isinstance(kind, Class) else None
                        names |= {} if method is None else {method: None}
            for method in [*names][:MAX_BEGUN]:
                found = join(
                    found,
                    raised(
                        linker.dialect(method.unit).access(linker, method, thing, on_class=False), max(level, PARAMETER)
                    ),
                )
        return found

    def find_behind(self, kind: Class, name: str, other: Class) -> Member:
        """What stands behind another class in the order of a class. Not remembered: most names are asked for once."""
        order = self.order(kind)
        return self._find_in_order(order[order.index(other) + 1 :], name) if other in order else _NOWHERE

    def _find_in_line(self, kind: Class, base: Class, name: str) -> Member:
        """Of a class whose order is that of its base, behind it: what the base has is found only once."""
        binds, stores = self._own_members(kind, name)
        found = _only_solid(kind, binds, stores, SCOPE)
        if found is None:
            found = self.find(base, name)
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
        unit = kind.unit
        binds, stores = unit.member(kind.definition.symbol, name)
        if kind.definition.kind == "prototype":
            return (), stores  # what a function binds that is made with `new` are its variables
        if any(_is_promised(unit, bind) for bind in binds):
            # `if TYPE_CHECKING: def f(self): ...` says what a base or the outside has.
            binds = [bind for bind in binds if not _is_promised(unit, bind)]
        if binds:
            binds = _last_definition(unit, unit.reach(binds, ANYWHERE, is_own=True))
        return binds, stores

    def order(self, kind: Class) -> Order:
        """The classes that a member is looked up in, one behind the other."""
        linker = self.linker
        known = self._orders.get(kind)
        if known is None:
            if linker.nesting > MAX_BASES:
                return (kind, None)  # deeper than any code: no end of it is in sight
            # What a class sees of itself while its bases are looked up.
            alone: Order = (kind,)
            known = self._orders[kind] = Remembered(alone)
            linker.fill(known, self._find_bases, kind)
            order = known.answer
            # `class A(B)` and `class B(A)`, which no Python runs, have no line: each would be behind the other.
            base = order[1] if len(order) > 1 and kind not in order[1:] else None
            above = self._orders.get(base) if isinstance(base, Class) else None
            kind.is_line = above is not None and above.answer == order[1:] and len(order) <= MAX_LINE
        return linker.recall(known)

    def _find_bases(self, kind: Class) -> Order:
        kind.unit.contents(kind.definition)
        order = self.linker.dialect(kind.unit).order_bases(self.linker, kind)
        known = tuple([thing if isinstance(thing, (Class, External)) else None for thing in order[:MAX_ORDER]])
        return known if len(order) <= MAX_ORDER else (*known, None)

    def stored_from_outside(self, thing: Thing, name: str) -> Values:
        """`thing.name = value` from anywhere: only what few places do is worth asking about. Nobody knows the rest."""
        linker = self.linker
        return join(linker.unknown, self._find_stored(thing, name, linker.documents.stores(name) or ()))

    def replaced(self, unit: View, name: str) -> Values:
        """What other modules put in the place of a variable: `import conf; conf.hook = mine`."""
        linker, found = self.linker, NOTHING
        module = linker.module(unit.path)
        for other, store in linker.documents.stores(name) or ():
            head = store.base.partition(".")[0] if isinstance(store.base, str) and other is not unit else ""
            binds = other.find(store.scope, head, store.start) if head else ()
            is_imported = any(isinstance(bind.value, Imported) for bind in binds)
            if is_imported and module in linker.store_base(other, store):
                found = join(found, raised(linker.stored(other, store), ATTRIBUTE))
        return found

    def is_stored_only(self, unit: View, scope: int, base: str, name: str) -> bool:
        """Whether the code of one scope alone assigns to an attribute of that name, by one name of what has it."""
        stores = self.linker.documents.stores(name)
        is_here = all(store.scope == scope and store.base == base for store in unit.assigned(name))
        return is_here and stores is not None and all(other is unit for other, _ in stores)

    def _find_stored(
        self, thing: Thing, name: str, places: Sequence[tuple[View, Store]], own: Sequence[Store] = ()
    ) -> Values:
        """Without those that are known to be its own."""
        linker, found = self.linker, NOTHING
        for unit, store in places if len(places) <= MAX_STORES else ():
            if any(store is known for known in own):
                continue
            for base in linker.store_base(unit, store):
                if isinstance(base, Bound) and base.receiver is None:
                    base = base.function  # what a decorator gets
                if base is thing or (isinstance(base, (Instance, OwnClass)) and base.type is thing):
                    found = join(found, raised(linker.stored(unit, store), ATTRIBUTE))
                    break
        return found


def only_known(values: Values) -> Values:
    return {thing: at for thing, at in values.items() if isinstance(thing, (Function, Bound, Class, Instance))}


def _is_plain(base: External) -> bool:
    """Bases that have no names of their own that anyone would call."""
    return base.name in (
        "builtins.object",
        "abc.ABC",
        "typing.Generic",
        "typing.Protocol",
        "typing_extensions.Protocol",
    )


def _is_promised(unit: View, bind: Bind) -> bool:
    return isinstance(bind.value, Defined) and "promised" in unit.definitions[bind.value.start].modifiers


def _is_blank(value: Value) -> bool:
    return value is None or value == NULL


def _only_solid(
    holder: Class | External | None, binds: Sequence[Bind], stores: Sequence[Store], doubt: int
) -> Member | None:
    """Without bindings to nothing; None where there are no others."""
    if not binds and not stores:
        return None
    solid = tuple([bind for bind in binds if bind.type is not None or not _is_blank(bind.value)])
    kept = tuple([store for store in stores if store.type is not None or not _is_blank(store.value)])
    return (holder, solid, kept, doubt) if solid or kept else None


def _last_definition(unit: View, binds: Sequence[Bind]) -> Sequence[Bind]:
    """Of several definitions in one class body the last one counts (overloads); of an accessor's the first: it gets."""
    starts = find_defined(binds)
    if len(starts) == len(binds) > 1:
        is_accessor = "accessor" in unit.definitions[starts[0]].modifiers
        return binds[:1] if is_accessor else binds[-1:]
    return binds
