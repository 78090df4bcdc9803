"""Rust for the linker: items by their paths, types with their parameters, impls and traits, the standard library.

Items are found by paths alone; what a variable is follows from its type, written or inferred inside one function.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from cq.graph.dialect import Dialect, OwnForm
from cq.graph.engine.view import View
from cq.graph.items import Written, get_kind
from cq.graph.scopes import ROOT
from cq.graph.things import UNKNOWN, Bound, Class, External, Function, Instance, OwnClass, Thing
from cq.graph.values import (
    ANNOTATION,
    ATTRIBUTE,
    IMPORT,
    INFERRED,
    MRO,
    NOTHING,
    PARAMETER,
    SCOPE,
    Values,
    join,
)
from cq.languages.rust.crates import Crates
from cq.languages.rust.impls import Impls, takes_self
from cq.languages.rust.items import ItemFinder
from cq.languages.rust.kinds import Kinds
from cq.languages.rust.lookups import Lookups
from cq.languages.rust.results import Results
from cq.languages.rust.std import STD, find_given
from cq.languages.rust.things import Applied, Things, Type, Variable, as_type, class_of, is_generic
from cq.model.code import (
    Attribute,
    Bind,
    ClosureParameter,
    Defined,
    Imported,
    Indexed,
    Item,
    MethodOf,
    OperatorMethod,
    PartOf,
    Site,
    TuplePart,
    Typed,
    Unwrapped,
    Value,
    find_inner,
)

if TYPE_CHECKING:
    from cq.graph.link import Linker


class RustDialect(Dialect):
    core = "std"
    is_static = True

    def __init__(self, linker: Linker, paths: Iterable[str]) -> None:
        self.linker = linker
        self.crates = Crates(linker, paths)
        self.things = Things(self)
        self.lookups = Lookups(linker)
        self.items = ItemFinder(self)
        self.kinds = Kinds(self)
        self.impls = Impls(self)
        self.results = Results(self)

    def resolve_import(self, linker: Linker, unit: View, level: int, module: str, name: str) -> Values:
        found = self.items.find_import(unit, ROOT, module, name, "any")
        return dict.fromkeys(found, IMPORT) if found else linker.unknown

    def find_name(self, linker: Linker, unit: View, scope: int, name: str, position: int) -> Values:
        if "::" in name:
            return self._as_values(unit, self._find_path(unit, scope, name))
        at = scope
        while at != ROOT:
            definition = unit.by_symbol.get(at)
            if definition is None or definition.kind == "mod":
                break
            binds = unit.bound(at, name) if definition.kind == "function" else ()
            if binds:
                reached = [bind for bind in unit.reach(binds, position, at == scope) if _is_local(bind)]
                if reached:
                    found = NOTHING
                    for bind in reached:
                        found = join(found, linker.bound(unit, bind))
                    return found
            at = definition.scope
        if name == "Self":
            return self._as_values(unit, self.items.find(unit, scope, ["Self"], "value"))
        # Bases and types are asked for here too: no value has the name of a trait or an enum.
        found = self.items.look_up(unit, scope, name, "value") or self.items.look_up(unit, scope, name, "type")
        if not found:
            outside = self.items.find_outside(unit, scope, name, "value", is_head=False)
            found = [linker.external(outside)] if outside else []
        return self._as_values(unit, found)

    def _find_path(self, unit: View, scope: int, written: str) -> list[Thing]:
        path = written.split("::")
        return self.items.find(unit, scope, path, "value") or self.items.find(unit, scope, path, "type")

    def _find_item(self, unit: View, scope: int, form: Item) -> Values:
        path, is_literal = form.path.split("::"), form.namespace == "literal"
        found = self.items.find(unit, scope, path, "type" if is_literal else "macro")
        if is_literal and not found:
            found = self.items.find(unit, scope, path, "value")
        if form.namespace == "attribute" and not found:
            return (
                {self.linker.external(f"std::{path[-1]}"): SCOPE} if path[-1] in STD.attributes else self.linker.unknown
            )
        return self._as_values(unit, found, literal=is_literal)

    def _as_values(self, unit: View, found: Sequence[Thing], *, literal: bool = False) -> Values:
        values: Values = {}
        doubt = PARAMETER if len(found) > 1 and any(_is_declared(thing) for thing in found) else SCOPE
        for thing in found:
            level = max(SCOPE if getattr(thing, "unit", None) is unit else IMPORT, doubt)
            if isinstance(thing, Class) and thing.definition.kind in ("const", "alias"):
                scope, kind = thing.definition.scope, thing.unit.contents(thing.definition).type
                made = self.kinds.read(thing.unit, scope, kind, {})
                if literal and made is not None:
                    made = class_of(made) or made
                if made is not None:
                    values[made] = max(level, ANNOTATION if not literal else level)
            elif isinstance(thing, Instance):
                values[thing.type if thing.type.definition.kind != "trait" else thing] = max(level, MRO)
            elif isinstance(thing, Applied) and isinstance(thing.kind, Class):
                values[thing.kind] = max(level, MRO)
            elif isinstance(thing, External) and thing.name == "std::None":
                values[self.things.apply("Option", (None,))] = level
            else:
                values[thing] = level
        return values or self.linker.unknown

    def find_static(self, linker: Linker, unit: View, scope: int, value: Value, position: int) -> Thing | None:
        found = self.items.find(unit, scope, value.split("::"), "type") if isinstance(value, str) else []
        thing = found[0] if len(found) == 1 else None
        return class_of(thing) or thing

    def make(self, linker: Linker, unit: View, scope: int, kind: Value, position: int) -> Values:
        found = self.kinds.read(unit, scope, kind, {})
        return linker.unknown if found is None else {found: ANNOTATION}

    def order_bases(self, linker: Linker, kind: Class) -> tuple[Thing | None, ...]:
        if kind.definition.kind == "impl":
            trait = self.impls.find_trait(kind)
            return (kind, *(self.impls.list_supers(trait) if isinstance(trait, Class) else [trait]))
        if kind.definition.kind == "trait":
            return tuple(self.impls.list_supers(kind))
        return (kind,)

    def find_member(self, linker: Linker, thing: Thing, name: str, level: int) -> Values:
        thing = _as_receiver(thing)
        found = self.kinds.find_field(thing, name)
        return linker.unknown if found is None else {found: max(level, ATTRIBUTE)}

    def find_method(self, linker: Linker, thing: Thing, name: str, level: int) -> Values:
        thing = _as_receiver(thing)
        if isinstance(thing, Applied) and isinstance(thing.kind, str) and thing.kind not in ("dyn", "fn"):
            if find_given(thing.kind, name) is None:
                extended = self.impls.find_extension(thing, name, dotted=True)
                if extended:
                    return {linker.bind(own, thing): max(level, at) for own, at in extended.items()}
                blanket = NOTHING if name in STD.common_methods else self.impls.find_blanket(thing, name, dotted=True)
                if blanket:
                    return {linker.bind(own, thing): max(level, PARAMETER) for own in blanket}
            return {self.things.std_method(thing, name): max(level, IMPORT)}
        found = self.impls.find(thing, name, dotted=True)
        values: Values = {}
        for own, at in found.items():
            values[linker.bind(own, thing) if isinstance(own, Function) else own] = max(level, at)
        return values or linker.unknown

    def find_parameter(self, linker: Linker, function: Function, number: int) -> Values:
        definition = function.definition
        parameter = definition.parameters[number]
        if parameter.name == "self" and not number:
            found = self.kinds.find_self(function.unit, definition.scope)
            level = MRO
        else:
            scope = definition.symbol if definition.symbol >= 0 else definition.scope
            found, level = self.kinds.read(function.unit, scope, parameter.type, {}), ANNOTATION
        return linker.unknown if found is None else {found: level}

    def receiver(self, linker: Linker, function: Function) -> Thing | None:
        if not takes_self(function.definition):
            return None
        return self.kinds.find_self(function.unit, function.definition.scope)

    def give(self, linker: Linker, thing: Thing, receiver: Thing | None, unit: View | None, number: int) -> Values:
        found: Type = None
        if isinstance(thing, Function):
            definition = thing.unit.contents(thing.definition)
            if definition.type is None:
                return linker.calls.returned(thing)  # a closure
            env = {} if thing.owner is None else self.kinds.find_parameters(thing.owner, receiver)
            found = self.kinds.read(thing.unit, definition.symbol, definition.type, env)
        elif isinstance(thing, Applied) and thing.kind == "fn":
            found = thing.args[0]
        elif isinstance(thing, Variable):
            bound = self.kinds.find_bound(thing)
            found = bound.args[0] if isinstance(bound, Applied) and bound.kind == "fn" else None
        return linker.unknown if found is None else {found: ANNOTATION}

    def call_external(self, linker: Linker, thing: External, unit: View, number: int) -> Values | None:
        return self.results.call(thing, unit, number)

    def operate(self, linker: Linker, unit: View, scope: int, form: OwnForm, position: int) -> Values:
        match form:
            case MethodOf():
                return linker.method(linker.evaluate(unit, scope, form.receiver, position), form.name)
            case Item():
                return self._find_item(unit, scope, form)
            case ClosureParameter():
                return self.results.find_closure_parameter(unit, form)
            case PartOf():
                return self._find_part(unit, scope, form, position)
            case Unwrapped():
                found = NOTHING
                for thing, level in linker.evaluate(unit, scope, form.value, position).items():
                    opened = isinstance(thing, Applied) and thing.kind in ("Option", "Result")
                    found = join(found, self.results.iterate({thing: level}) if opened else linker.unknown)
                return found
            case TuplePart():
                found = NOTHING
                for thing, level in linker.evaluate(unit, scope, form.value, position).items():
                    part = self.kinds.find_field(thing, str(form.number)) if isinstance(thing, Applied) else None
                    found = join(found, linker.unknown if part is None else {part: max(level, INFERRED)})
                return found
            case Indexed():
                values = linker.evaluate(unit, scope, form.value, position)
                return self.results.index(values, is_range=form.is_range)
            case OperatorMethod():
                return self._run_operator(unit, scope, form, position)
            case _:
                return linker.unknown

    def cast(self, linker: Linker, unit: View, scope: int, form: Typed, position: int) -> Values:
        """A type may leave a hole, which the value fills: `let x: Vec<_> = …`."""
        made = self.kinds.read(unit, scope, form.kind, {})
        if made is None:
            return linker.evaluate(unit, scope, form.value, position)
        found: Values = {made: ANNOTATION}
        if isinstance(made, Applied) and made.args and made.args[0] is None and form.value is not None:
            for thing, level in linker.evaluate(unit, scope, form.value, position).items():
                if isinstance(thing, Applied) and thing.args:
                    found = join(found, {self.results.fill(made, thing.args[0]): max(level, INFERRED)})
        return found

    def iterate(self, linker: Linker, unit: View, scope: int, value: Value, position: int) -> Values:
        return self.results.iterate(linker.evaluate(unit, scope, value, position))

    def _run_operator(self, unit: View, scope: int, form: OperatorMethod, position: int) -> Values:
        found = NOTHING
        for thing, level in self.linker.evaluate(unit, scope, form.receiver, position).items():
            if isinstance(thing, External):
                found = join(found, {thing: level})
                continue
            for method in self.linker.method({thing: level}, form.method):
                if isinstance(method, Bound) and isinstance(method.function, Function):
                    found = join(found, self.give(self.linker, method.function, method.receiver, None, -1))
        return found or self.linker.unknown

    def find_literal(self, linker: Linker, kind: str) -> Values:
        # Traits of the repository may give methods to texts.
        return {self.things.apply("str", ()): ANNOTATION} if kind == "str" else super().find_literal(linker, kind)

    def contain(self, linker: Linker, unit: View, scope: int, form: Written, position: int) -> Values:
        kinds: list[Type] = []
        for part in find_inner(form):
            known = [t for t in linker.evaluate(unit, scope, part, position) if t is not UNKNOWN]
            kinds.append(as_type(known[0]) if len(known) == 1 else None)
        return {self.things.apply("tuple" if get_kind(form) == "tuple" else "Vec", tuple(kinds)): INFERRED}

    def _find_part(self, unit: View, scope: int, form: PartOf, position: int) -> Values:
        inner, path = form.value, form.path
        if path is None:
            return self.linker.unknown
        found = NOTHING
        if path in ("Some", "Ok", "Err"):
            for thing, level in self.linker.evaluate(unit, scope, inner, position).items():
                kind: Type = None
                if isinstance(thing, Applied) and thing.kind in ("Option", "Result"):
                    at = int(path == "Err")
                    kind = thing.args[at] if at < len(thing.args) else None
                found = join(found, self.linker.unknown if kind is None else {kind: max(level, INFERRED)})
            return found
        for thing in self._find_path(unit, scope, path):
            kind = class_of(thing) if not isinstance(thing, Class) else thing
            if kind is None:
                continue
            receivers: list[Type] = [None]
            if is_generic(kind):
                receivers = list(self.linker.evaluate(unit, scope, inner, position))
            for receiver in receivers:
                part = self.kinds.find_own_field(kind, form.field, receiver)
                if part is not None:
                    found = join(found, {part: ANNOTATION})
        return found or self.linker.unknown

    def is_method_call(self, site: Site) -> bool:
        # A path says what it means, or is not known. What any value may have is most likely not ours.
        return not isinstance(site.callee, (str, Item, Attribute)) and site.name not in STD.common_methods


def _is_local(bind: Bind) -> bool:
    """A variable or parameter; items and imports of a function are found by path."""
    return not isinstance(bind.value, (Defined, Imported))


def _is_declared(thing: Thing) -> bool:
    """A method of a trait, whose other candidates are those that implement it."""
    return isinstance(thing, Function) and thing.owner is not None


def _as_receiver(thing: Thing) -> Thing:
    """A unit struct or variant is its own value."""
    if isinstance(thing, OwnClass):
        return thing.type.self_instance
    return thing.instance if isinstance(thing, Class) else thing
