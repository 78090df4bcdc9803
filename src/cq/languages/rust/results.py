"""What calls give that run code of the standard library, what closures get that are passed to it, and what its types
hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cq.graph.engine.view import View
from cq.graph.things import UNKNOWN, Bound, Class, External, Function, Instance, Native, Thing
from cq.graph.values import ANNOTATION, EVERYTHING, INFERRED, NOTHING, SCOPE, Values, join
from cq.languages.rust.std import KINDS, STD, find_given, find_handed
from cq.languages.rust.things import Applied, StdMethod, Type, Variable, as_type, class_of, std_kind
from cq.model.code import ClosureParameter, Element, Lambda, Listing, Site, Typed, Value

if TYPE_CHECKING:
    from cq.languages.rust.linking import RustDialect

_MAX_COLUMN, _MAX_ROWS = 3, 6  # values of one parameter, types made of all


class Results:
    def __init__(self, rust: RustDialect) -> None:
        self._rust, self._linker, self._kinds, self._apply = rust, rust.linker, rust.kinds, rust.things.apply

    def call(self, thing: External, unit: View, number: int) -> Values | None:
        site = unit.sites[number]
        if isinstance(thing, StdMethod):
            return self._call_method(thing, unit, site)
        holder, _, name = thing.name.rpartition("::")
        holder = holder.rpartition("::")[2]
        if name in ("Some", "Ok", "Err") and len(site.args) == 1:
            kind = "Option" if name == "Some" else "Result"
            return self._wrap(kind, self._evaluate_argument(unit, site, 0), at=int(name == "Err"))
        if name == "new" and holder in STD.transparent and site.args:
            return self._evaluate_argument(unit, site, 0)
        if name in ("Borrowed", "Owned") and site.args:
            return self._evaluate_argument(unit, site, 0)
        if holder in KINDS and name in ("new", "with_capacity", "default", "from", "from_iter"):
            kind = KINDS[holder]
            if kind == "Cell" and site.args:
                return self._wrap(kind, self._evaluate_argument(unit, site, 0))
            return {self._apply(kind, (None,) * STD.count_parameters(kind)): SCOPE}
        if name in ("take", "replace") and holder == "mem" and site.args:
            return self._evaluate_argument(unit, site, 0)
        if site.kind == "macro":
            kind = {"vec": "Vec", "format": "str"}.get(name)
            if kind:
                return {self._apply(kind, (None,) if kind == "Vec" else ()): SCOPE}
            return self._linker.unknown
        return None

    def _evaluate_argument(self, unit: View, site: Site, at: int) -> Values:
        if at >= len(site.args):
            return self._linker.unknown
        return self._linker.evaluate(unit, site.scope, site.args[at], site.start)

    def _wrap(self, kind: str, values: Values, at: int = 0) -> Values:
        found: Values = {}
        for thing, level in values.items():
            inner = None if thing is UNKNOWN else as_type(thing)
            args = (inner,) if kind not in ("Result", "Map") else (None, inner) if at else (inner, None)
            found[self._apply(kind, args)] = max(level, INFERRED if inner is not None else SCOPE)
        return EVERYTHING if values is EVERYTHING else found

    def _call_method(self, thing: StdMethod, unit: View, site: Site) -> Values:
        """What a method of the standard library gives, by known/std.toml."""
        given = find_given(std_kind(thing.receiver), thing.method)
        values = None if given is None else self._read_given(given, thing.receiver, unit, site)
        return self._linker.unknown if values is None else values

    def _read_given(self, given: Value, receiver: Thing, unit: View, site: Site) -> Values | None:
        """What a type stands for in known/std.toml, at a call; None where nothing is known of it."""
        match given:
            case Element():
                return self._apply_all(str(given.base), given.keys, receiver, unit, site)
            case Listing(elements=()):
                return None
            case Listing():
                return self._apply_all("tuple", given.elements, receiver, unit, site)
            case "Arg::Item":
                return self.iterate(self._evaluate_argument(unit, site, 0))
            case "Arg":
                return self._evaluate_argument(unit, site, 0)
            case "R":
                return self._find_closure_results(unit, site)
            case "R::Item":
                return self.iterate(self._find_closure_results(unit, site))
            case "Self":
                return {receiver: SCOPE}
            case "usize":
                return {self._linker.external("std::usize()"): SCOPE}
            case _:
                pass
        args = receiver.args if isinstance(receiver, Applied) else ()
        if given == "Turbofish":
            return self._collect(args[0] if args else None, unit, site)
        at = 1 if given == "U" else 0
        inner = args[at] if at < len(args) else None
        if inner is None:
            return None
        return self.iterate({inner: INFERRED}) if given == "T::Item" else {inner: INFERRED}

    def _apply_all(self, kind: str, parts: tuple[Value, ...], receiver: Thing, unit: View, site: Site) -> Values:
        """A type with every combination of what its parameters may be, as far as they are few."""
        rows: list[tuple[Type, ...]] = [()]
        for part in parts:
            column = self._read_given(part, receiver, unit, site) or self._linker.unknown
            inner = [None if thing is UNKNOWN else as_type(thing) for thing in column][:_MAX_COLUMN]
            rows = [(*row, each) for row in rows for each in inner][:_MAX_ROWS]
        return {self._apply(kind, row): INFERRED for row in rows}

    def _collect(self, item: Type, unit: View, site: Site) -> Values | None:
        """`collect::<Vec<_>>()`: the hole is what is iterated."""
        if not site.args or not isinstance(site.args[0], Typed):
            return {self._apply("Collected", (item,)): INFERRED}
        made = self._kinds.read(unit, site.scope, site.args[0].kind, {})
        return None if made is None else {self.fill(made, item): ANNOTATION}

    def fill(self, made: Thing, item: Type) -> Thing:
        if isinstance(made, Applied) and isinstance(made.kind, str) and made.args and made.args[0] is None:
            if made.kind == "Map" and isinstance(item, Applied) and item.kind == "tuple" and len(item.args) == 2:
                return self._apply("Map", item.args)
            if made.kind in ("Vec", "Iterator"):
                return self._apply(made.kind, (item, *made.args[1:]))
            if made.kind in ("Option", "Result") and isinstance(item, Applied) and item.kind == made.kind:
                return self._apply(made.kind, (self._apply("Vec", item.args[:1]), *made.args[1:]))
        return made

    def _find_closure_results(self, unit: View, site: Site) -> Values:
        found = NOTHING
        for value in site.args:
            if isinstance(value, Lambda):
                found = join(found, self._linker.calls.returned(self._linker.function(unit, value.start)))
            elif isinstance(value, str):
                for thing, level in self._linker.evaluate(unit, site.scope, value, site.start).items():
                    if isinstance(thing, Function):
                        found = join(found, self._rust.give(self._linker, thing, None, None, -1))
                    elif isinstance(thing, Class):
                        found = join(found, {thing.instance: level})
        return found

    def iterate(self, values: Values) -> Values:
        """What iterating over values, or opening them, gives."""
        if values is EVERYTHING:
            return values
        found = NOTHING
        for thing, level in values.items():
            inner: Type = None
            if isinstance(thing, Applied) and isinstance(thing.kind, str):
                if thing.kind == "Map":
                    inner = self._apply("tuple", thing.args)
                elif thing.args and thing.kind not in ("tuple", "fn", "dyn"):
                    inner = thing.args[0]
                elif thing.kind == "dyn":
                    inner = next(
                        (k.args[0] for k in thing.args if isinstance(k, Applied) and k.kind == "Iterator"), None
                    )
            elif isinstance(thing, (Instance, Native)):
                inner = self._kinds.find_alias(thing, "Item")
            found = join(found, self._linker.unknown if inner is None else {inner: max(level, INFERRED)})
        return found

    def index(self, values: Values, *, is_range: bool) -> Values:
        found = NOTHING
        for thing, level in values.items():
            inner: Type = None
            if isinstance(thing, Applied) and thing.kind in ("Vec", "Map"):
                inner = thing if is_range else thing.args[-1]
            elif class_of(thing) is not None:
                for method in self._rust.impls.find(thing, "index", dotted=True):
                    if isinstance(method, Function):
                        for given in self._rust.give(self._linker, method, thing, None, -1):
                            inner = None if given is UNKNOWN else given
            found = join(found, self._linker.unknown if inner is None else {inner: max(level, INFERRED)})
        return found

    def find_closure_parameter(self, unit: View, form: ClosureParameter) -> Values:
        """What a closure's parameter is: the callee that it is passed to says so."""
        number, at = form.argument, form.number
        site_number = unit.site_at.get(form.call) if isinstance(form.call, int) else None
        if site_number is None:
            return self._linker.unknown
        site = unit.sites[site_number]
        found = NOTHING
        for thing, level in self._linker.link(unit, site_number).items():
            kind: Type = None
            if isinstance(thing, StdMethod):
                handed = find_handed(std_kind(thing.receiver), thing.method, at)
                given = None if handed is None else self._read_given(handed, thing.receiver, unit, site)
                if given is not None:
                    found = join(found, given)
                    continue
            else:
                kind = self._find_callback_type(thing, number, at)
            found = join(found, self._linker.unknown if kind is None else {kind: max(level, ANNOTATION)})
        return found

    def _find_callback_type(self, thing: Thing, number: int, at: int) -> Type:
        receiver: Thing | None = None
        function = thing
        if isinstance(thing, Bound):
            function, receiver = thing.function, thing.receiver
        if not isinstance(function, Function):
            return None
        parameters = function.definition.parameters
        number += receiver is not None
        if number >= len(parameters):
            return None
        env = {} if function.owner is None else self._kinds.find_parameters(function.owner, receiver)
        scope = function.definition.symbol if function.definition.symbol >= 0 else function.definition.scope
        kind = parameters[number].type
        made = self._kinds.read(function.unit, scope, kind, env)
        if isinstance(made, Variable) and made.unit is function.unit:
            made = self._kinds.read(made.unit, made.scope, made.bound, env)
        if isinstance(made, Applied) and made.kind == "fn" and at + 1 < len(made.args):
            return made.args[at + 1]
        return None
