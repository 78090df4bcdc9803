"""What calls give that run code of the standard library, what closures get that are passed to it, and what its types
hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cq.graph.engine.view import View
from cq.graph.things import UNKNOWN, Bound, Class, External, Function, Instance, Native, Thing
from cq.graph.values import ANNOTATION, EVERYTHING, INFERRED, NOTHING, SCOPE, Values, join
from cq.languages.rust.std import ARITIES, CLOSURE_TAKES, KINDS, TRANSPARENT, Shape, find_rule
from cq.languages.rust.things import Applied, StdMethod, Type, Variable, as_type, class_of, std_kind
from cq.model.code import ClosureParameter, Lambda, Site, Typed

if TYPE_CHECKING:
    from cq.languages.rust.linking import RustDialect


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
        if name == "new" and holder in TRANSPARENT and site.args:
            return self._evaluate_argument(unit, site, 0)
        if name in ("Borrowed", "Owned") and site.args:
            return self._evaluate_argument(unit, site, 0)
        if holder in KINDS and name in ("new", "with_capacity", "default", "from", "from_iter"):
            kind = KINDS[holder]
            if kind == "Cell" and site.args:
                return self._wrap(kind, self._evaluate_argument(unit, site, 0))
            return {self._apply(kind, (None,) * ARITIES.get(kind, 1)): SCOPE}
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
        """What a method of the standard library gives, by a table of shapes: see cq.languages.rust.std."""
        rule = find_rule(std_kind(thing.receiver), thing.method)
        found = None if rule is None else self._shape(rule, thing.receiver, unit, site)
        return self._linker.unknown if found is None else found

    def _shape(self, shape: Shape, receiver: Thing, unit: View, site: Site) -> Values | None:
        if shape == "same":
            return {receiver: SCOPE}
        args = receiver.args if isinstance(receiver, Applied) else ()
        if shape == "written":
            return self._collect(args[0] if args else None, unit, site)
        if type(shape) is int:
            inner = args[shape] if shape < len(args) else None
            return None if inner is None else {inner: INFERRED}
        if type(shape) is str:
            if shape == "none":
                return None
            results = self._find_closure_results(unit, site)
            if shape == "result":
                return results
            if shape == "flat":
                return self.iterate({args[0]: INFERRED}) if args and args[0] is not None else None
            inner_of = {"result.inner": "Option", "result.item": "Iterator"}.get(shape)
            return self.iterate(results) if inner_of else None
        kind, *parts = shape
        columns: list[Values] = []
        for part in parts:
            if part == "other":
                given = self._evaluate_argument(unit, site, 0)
                columns.append(self.iterate(given))
            elif part == "int":
                columns.append({self._linker.external("std::usize()"): SCOPE})
            else:
                columns.append(self._shape(part, receiver, unit, site) or self._linker.unknown)
        first: list[tuple[Type, ...]] = [()]
        for column in columns:
            kinds = [None if thing is UNKNOWN else as_type(thing) for thing in column][:3] or [None]
            first = [(*row, inner) for row in first for inner in kinds][:6]
        return {self._apply(kind, row): INFERRED for row in first}

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
                shape = CLOSURE_TAKES.get((std_kind(thing.receiver), thing.method), {}).get(at)
                if shape is not None:
                    given = self._shape(shape, thing.receiver, unit, site)
                    if given is not None:
                        found = join(found, given)
                        continue
                elif thing.method == "fold" and at == 0:
                    found = join(found, self._evaluate_argument(unit, site, 0))
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
