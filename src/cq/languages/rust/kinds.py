"""What the types that are written in code mean: with their parameters, what traits and bounds say, and their fields."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from cq.graph.engine.view import View
from cq.graph.scopes import ROOT, find_defined
from cq.graph.things import Class, External, Instance, Native, Thing
from cq.languages.rust.items import MAX_STEPS
from cq.languages.rust.std import KINDS, STD
from cq.languages.rust.things import Applied, Env, Type, Variable, class_of
from cq.model.code import Bounds, Constant, Element, FunctionType, Listing, NamedType, Value

if TYPE_CHECKING:
    from cq.languages.rust.linking import RustDialect

MAX_DEREFS = 4


class Kinds:
    def __init__(self, rust: RustDialect) -> None:
        self._rust, self._linker, self._apply = rust, rust.linker, rust.things.apply

    def find_self(self, unit: View, scope: int) -> Type:
        while scope != ROOT:
            definition = unit.by_symbol.get(scope)
            if definition is None:
                return None
            if definition.kind == "impl":
                impl = self._linker.thing(unit, definition.start)
                assert isinstance(impl, Class)
                return self._rust.impls.find_target(impl)
            if definition.kind in ("trait", "struct", "enum", "union"):
                kind = self._linker.thing(unit, definition.start)
                assert isinstance(kind, Class)
                return kind.self_instance if definition.kind == "trait" else kind.instance
            scope = definition.scope
        return None

    def read(self, unit: View, scope: int, kind: Value, env: Env, steps: int = MAX_STEPS) -> Type:
        """A type as written, seen from a scope. Static: reads no cell."""
        if kind is None or steps <= 0:
            return None
        return self._rust.lookups.nest(self._read, unit, scope, kind, env, steps)

    def _read(self, unit: View, scope: int, kind: Value, env: Env, steps: int) -> Type:
        args: tuple[Value, ...] = ()
        match kind:
            case Listing():
                parts = [self.read(unit, scope, part, env, steps - 1) for part in kind.elements]
                return self._apply("tuple", tuple(parts))
            case FunctionType():
                given = (kind.result, *kind.parameters)
                return self._apply("fn", tuple(self.read(unit, scope, part, env, steps - 1) for part in given))
            case Bounds():
                return self._join_bounds(unit, scope, kind.types, env, steps)
            case Element(base=Constant()):  # a slice
                return self._apply("Vec", (self.read(unit, scope, kind.keys[0], env, steps - 1),))
            case Element():
                kind, args = kind.base, kind.keys
            case _:
                pass
        if not isinstance(kind, str):
            return None
        if kind in env:
            return env[kind]
        if kind == "Self":
            return self.find_self(unit, scope)
        found = self._rust.items.find(unit, scope, kind.split("::"), "type")
        if len(found) != 1:
            return None
        thing = found[0]
        if isinstance(thing, Class):
            inner = tuple(
                self.read(unit, scope, part, env, steps - 1) for part in args if not isinstance(part, NamedType)
            )
            if thing.definition.kind == "alias":
                names = [name for name, _ in thing.unit.contents(thing.definition).keywords]
                inner_env = dict(zip(names, inner, strict=False))
                return self.read(thing.unit, thing.definition.symbol, thing.definition.type, inner_env, steps - 1)
            if thing.definition.kind in ("mod", "variant", "const", "macro"):
                return None
            return self._apply(thing, inner)
        if isinstance(thing, External):
            return self._read_std(unit, scope, thing, args, env, steps)
        return thing if isinstance(thing, (Instance, Native)) else None

    def _read_std(self, unit: View, scope: int, thing: External, args: Sequence[Value], env: Env, steps: int) -> Type:
        name = thing.name.rpartition("::")[2]

        def inner(at: int) -> Type:
            plain = [part for part in args if not isinstance(part, NamedType)]
            return self.read(unit, scope, plain[at], env, steps - 1) if at < len(plain) else None

        if name in STD.transparent:
            return inner(0)
        if name in KINDS:
            kind = KINDS[name]
            if kind == "Iterator":
                for part in args:
                    if isinstance(part, NamedType) and part.name == "Item":
                        bounds = part.kind.types if isinstance(part.kind, Bounds) else ()
                        item = bounds[0] if len(bounds) == 1 else part.kind
                        return self._apply(kind, (self.read(unit, scope, item, env, steps - 1),))
            return self._apply(kind, tuple(inner(at) for at in range(STD.count_parameters(kind))))
        return self._linker.external(f"{thing.name}()")

    def _join_bounds(self, unit: View, scope: int, bounds: Iterable[Value], env: Env, steps: int) -> Type:
        """What satisfies all bounds: the trait of the repository among them, or several."""
        found: list[Type] = []
        for bound in bounds:
            kind = self.read(unit, scope, bound, env, steps - 1)
            if kind is not None and kind not in found:
                found.append(kind)
        own = [
            kind
            for kind in found
            if class_of(kind) is not None or (isinstance(kind, Applied) and kind.kind == "Iterator")
        ]
        if len(own) > 1:
            return self._apply("dyn", tuple(own))
        return own[0] if own else found[0] if found else None

    def find_alias(self, thing: Thing, name: str) -> Type:
        """An associated type."""
        kind = class_of(thing)
        if kind is None:
            if isinstance(thing, Variable):
                bound = self.find_bound(thing)
                return None if bound is None or isinstance(bound, Variable) else self.find_alias(bound, name)
            if isinstance(thing, Applied) and thing.kind == "Iterator" and name == "Item":
                return thing.args[0]
            return None
        holders: Iterable[Class] = self._rust.impls.list_of(kind)
        if kind.definition.kind == "trait":
            holders = self._rust.impls.list_supers(kind)
        for holder in holders:
            unit, symbol = holder.unit, holder.definition.symbol
            for start in find_defined(unit.bound(symbol, name)):
                definition = unit.definitions[start]
                if definition.kind == "alias":
                    unit.contents(definition)
                    env = self.find_parameters(holder, thing)
                    return self.read(unit, symbol, definition.type, env)
        return None

    def find_bound(self, variable: Variable) -> Type:
        holder = variable.unit.by_symbol.get(variable.scope)
        if holder is not None:
            variable.unit.contents(holder)
        if variable.bound is None:
            return None
        given = (variable.unit, variable.scope, variable.bound)
        return self._rust.lookups.guard(("bound", variable), self.read, *given, {})

    def find_parameters(self, holder: Class, receiver: Type) -> Env:
        """What the type parameters of an impl, trait or class stand for, given a receiver."""
        definition = holder.definition
        env: Env = {}
        if definition.kind == "impl":
            value = definition.type
            if isinstance(receiver, Applied) and isinstance(value, Element):
                names = {name for name, _ in definition.keywords}
                for part, arg in zip(value.keys, receiver.args, strict=False):
                    if isinstance(part, str) and part in names and arg is not None:
                        env[part] = arg
            elif isinstance(value, str) and any(name == value for name, _ in definition.keywords):
                env[value] = receiver  # impl<T> Trait for T
        elif definition.kind == "trait":
            if receiver is not None:
                env["Self"] = receiver
        elif isinstance(receiver, Applied):
            names = (name for name, _ in definition.keywords)
            env.update((name, arg) for name, arg in zip(names, receiver.args, strict=False) if arg is not None)
        return env

    def find_field(self, thing: Thing, name: str, derefs: int = 0) -> Type:
        if isinstance(thing, Applied) and thing.kind == "tuple":
            number = int(name) if name.isdecimal() and len(name) < 10 else len(thing.args)
            return thing.args[number] if number < len(thing.args) else None
        kind = class_of(thing)
        if kind is None or derefs > MAX_DEREFS:
            return None
        found = self.find_own_field(kind, name, thing)
        if found is None and kind.definition.kind != "trait":
            target = self.find_alias(thing, "Target")
            if target is not None:
                return self.find_field(target, name, derefs + 1)
        return found

    def find_own_field(self, kind: Class, name: str, receiver: Type) -> Type:
        definition = kind.unit.contents(kind.definition)
        for parameter in definition.parameters:
            if parameter.name == name:
                env = self.find_parameters(kind, receiver)
                if definition.kind == "variant" and isinstance(receiver, Applied) and isinstance(receiver.kind, Class):
                    env = self.find_parameters(receiver.kind, receiver)
                return self.read(kind.unit, definition.symbol, parameter.type, env)
        return None
