"""What a value can be. Things are compared by identity: a linker makes each of them once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cq.model.code import Value

if TYPE_CHECKING:
    from cq.graph.dialect import Dialect
    from cq.graph.engine.view import View
    from cq.model.code import Definition


APPLIED = -1000  # `skipped` of `f.apply(receiver, [a, b])`: all arguments are in one


class Thing:
    __slots__ = ()


class Function(Thing):
    __slots__ = ("definition", "owner", "unit")

    def __init__(self, unit: View, definition: Definition, owner: Class | None) -> None:
        self.unit, self.definition, self.owner = unit, definition, owner


class Class(Thing):
    __slots__ = (
        "declared", "declared_class", "definition", "instance", "is_line", "self_class", "self_instance", "unit",
    )  # fmt: skip

    def __init__(self, unit: View, definition: Definition) -> None:
        self.unit, self.definition = unit, definition
        self.instance = Instance(self, own=False)
        # `self` and `cls` in a method: of this class or one derived from it, which the caller knows better.
        self.self_instance = Instance(self, own=True)
        self.self_class = OwnClass(self, declared=False)
        # As a type names them: of this class or one derived from it, and nobody knows better.
        self.declared = Instance(self, own=False, declared=True)
        self.declared_class = OwnClass(self, declared=True)
        self.is_line = False  # whether the order is that of its first base, behind itself


class Instance(Thing):
    __slots__ = ("declared", "own", "type")

    def __init__(self, kind: Class, *, own: bool, declared: bool = False) -> None:
        self.type, self.own, self.declared = kind, own, declared


class OwnClass(Thing):
    __slots__ = ("declared", "type")

    def __init__(self, kind: Class, *, declared: bool) -> None:
        self.type, self.declared = kind, declared


class Bound(Thing):
    """A method with its receiver, or a partial application (`receiver` None, `skipped` arguments given)."""

    __slots__ = ("function", "receiver", "skipped")

    def __init__(self, function: Thing, receiver: Thing | None, skipped: int = 0) -> None:
        self.function, self.receiver, self.skipped = function, receiver, skipped


class Super(Thing):
    """`super()` in a method of `type`, where that is known; `receiver` is that method's first parameter."""

    __slots__ = ("method", "receiver", "type")

    def __init__(self, kind: Class, receiver: Thing, method: Function | None) -> None:
        self.type, self.receiver, self.method = kind, receiver, method


class Module(Thing):
    """`unit` is None for a folder of modules; `path` is then the folder."""

    __slots__ = ("path", "unit")

    def __init__(self, unit: View | None, path: str) -> None:
        self.unit, self.path = unit, path


class External(Thing):
    """From outside the repository: `os.path.join`; `open()` for what such a call gives."""

    __slots__ = ("name", "owner")

    def __init__(self, name: str, owner: Container | None = None) -> None:
        self.name = name
        self.owner = owner  # of a container's method: the container


class Container(Thing):
    """A list, dictionary, … as written at one place; `typed` when the place is an annotation."""

    __slots__ = ("kind", "position", "scope", "typed", "unit", "value")

    def __init__(self, kind: str, unit: View, scope: int, position: int, value: Value, *, typed: bool) -> None:
        self.kind, self.unit, self.scope, self.position, self.value, self.typed = (
            kind,
            unit,
            scope,
            position,
            value,
            typed,
        )


class Native(Thing):
    """A type that only its language knows: what it has, and what calling it gives."""

    __slots__ = ("dialect",)

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect


class Argument(Thing):
    """In what a function returns: whatever the caller passed for this parameter."""

    __slots__ = ("function", "number")

    def __init__(self, function: Function, number: int) -> None:
        self.function, self.number = function, number


class Anything(Thing):
    __slots__ = ()


UNKNOWN = Anything()  # some value that nobody can name
TOP = Anything()  # too many values to keep: it takes the place of all others
