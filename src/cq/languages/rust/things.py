"""What a value of Rust can be, beside the linker's own things: types with their parameters, type parameters, methods
of the standard library."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cq.graph.engine.view import View
from cq.graph.things import Class, External, Instance, Native, Thing
from cq.model.code import Value

if TYPE_CHECKING:
    from cq.graph.dialect import Dialect

MAX_DEPTH = 5  # of parameters inside parameters

Type = Thing | None
Env = dict[str, Type]  # what type parameters stand for


class Applied(Native):
    """A type with its parameters: a class of the repository, or one of the standard library's by its kind."""

    __slots__ = ("args", "kind")

    def __init__(self, dialect: Dialect, kind: Class | str, args: tuple[Type, ...]) -> None:
        super().__init__(dialect)
        self.kind, self.args = kind, args


class Variable(Native):
    """A type parameter where nobody said what it stands for: it has what its bounds have."""

    __slots__ = ("bound", "name", "scope", "unit")

    def __init__(self, dialect: Dialect, unit: View, scope: int, name: str, bound: Value) -> None:
        super().__init__(dialect)
        self.unit, self.scope, self.name, self.bound = unit, scope, name, bound


class StdMethod(External):
    """A method of the standard library on a receiver whose type is known."""

    __slots__ = ("method", "receiver")

    def __init__(self, name: str, method: str, receiver: Thing) -> None:
        super().__init__(name)
        self.method, self.receiver = method, receiver


class Things:
    """Makes each of them once."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._applied: dict[tuple[Class | str, tuple[Type, ...]], Applied] = {}
        self._variables: dict[tuple[View, int, str], Variable] = {}
        self._methods: dict[tuple[Thing, str], StdMethod] = {}

    def apply(self, kind: Class | str, args: tuple[Type, ...]) -> Thing:
        if isinstance(kind, Class) and all(arg is None for arg in args):
            return kind.instance
        if any(_measure_depth(arg) >= MAX_DEPTH for arg in args):
            args = (None,) * len(args)
        key = (kind, args)
        made = self._applied.get(key)
        if made is None:
            made = self._applied[key] = Applied(self._dialect, kind, args)
        return made

    def variable(self, unit: View, scope: int, name: str, bound: Value) -> Variable:
        key = (unit, scope, name)
        made = self._variables.get(key)
        if made is None:
            made = self._variables[key] = Variable(self._dialect, unit, scope, name, bound)
        return made

    def std_method(self, receiver: Thing, name: str) -> StdMethod:
        key = (receiver, name)
        made = self._methods.get(key)
        if made is None:
            kind = std_kind(receiver)
            made = self._methods[key] = StdMethod(f"std::{kind}.{name}" if kind else f"std::{name}", name, receiver)
        return made


def class_of(thing: Type) -> Class | None:
    """The class of the repository that a type is made of."""
    if isinstance(thing, Instance):
        return thing.type
    return thing.kind if isinstance(thing, Applied) and isinstance(thing.kind, Class) else None


def std_kind(thing: Type) -> str:
    """Which of the standard library's kinds a type is of, if any: see KINDS in cq.languages.rust.std."""
    return thing.kind if isinstance(thing, Applied) and isinstance(thing.kind, str) else ""


def as_type(thing: Thing) -> Type:
    if isinstance(thing, Class):
        return thing.instance
    return thing if isinstance(thing, (Instance, Native, External)) else None


def is_generic(kind: Class) -> bool:
    definition = kind.definition
    if definition.kind == "variant":
        definition = kind.unit.by_symbol[definition.scope]
    return bool(definition.keywords)


def _measure_depth(thing: Type) -> int:
    deepest, todo = 0, [(thing, 1)]
    while todo:
        inner, depth = todo.pop()
        if isinstance(inner, Applied) and depth <= MAX_DEPTH:
            deepest = max(deepest, depth)
            todo += [(arg, depth + 1) for arg in inner.args]
    return deepest
