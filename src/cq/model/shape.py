"""What one document says about types and about functions as values, beyond its facts: read again from the text when
somebody asks, and kept in no index. Offsets are those of the file."""

from __future__ import annotations

import msgspec

from cq.model.facts import Symbol

# How something narrows what a name may be.
GUARDS = (
    "user-defined", "assertion", "typeof", "instanceof", "in", "discriminant", "nullish", "equality", "array",
    "early-return", "exhaustive", "compound",
)  # fmt: skip
# What the body of an alias of a type is.
TYPE_KINDS = (
    "conditional", "mapped", "template", "utility", "union", "intersection", "indexed", "keyof", "typeof", "infer",
    "function", "tuple", "array", "object", "literal", "simple",
)  # fmt: skip


class TypeText(msgspec.Struct, frozen=True):
    """A type as written; `names` are the names in it with where they start, `A.B` as a whole."""

    text: str
    start: int
    end: int
    names: tuple[tuple[str, int], ...] = ()
    is_function: bool = False


class TypeParameter(msgspec.Struct, frozen=True):
    name: str
    constraint: str = ""
    default: str = ""
    modifiers: tuple[str, ...] = ()  # const in out


class Predicate(msgspec.Struct, frozen=True):
    """`x is User`, `asserts x is User`, `asserts x`."""

    kind: str  # is asserts
    parameter: str
    type: TypeText | None = None


class ShapeParameter(msgspec.Struct, frozen=True):
    name: str
    start: int
    type: TypeText | None = None
    is_optional: bool = False
    is_rest: bool = False
    is_called: bool = False  # in the body, or handed on by `.call`, `.apply`
    decorators: tuple[str, ...] = ()
    predicate: Predicate | None = None  # of the function that it is


class TypeTree(msgspec.Struct, frozen=True):
    """The structure of a type down to a bounded depth."""

    kind: str  # of TYPE_KINDS
    text: str
    name: str = ""  # of a utility type, a key of a mapped type, a name that `infer` binds
    modifiers: tuple[str, ...] = ()  # of a mapped type: +readonly -readonly +? -?
    parts: tuple[tuple[str, TypeTree], ...] = ()  # (what it is there: check, extends, true, false, member, …)
    omitted: int = 0  # parts over the bound


class Declared(msgspec.Struct, frozen=True):
    """One declaration."""

    type_parameters: tuple[TypeParameter, ...] = ()
    extends: tuple[TypeText, ...] = ()
    implements: tuple[TypeText, ...] = ()
    parameters: tuple[ShapeParameter, ...] | None = None  # of what can be called
    returns: TypeText | None = None
    predicate: Predicate | None = None
    returned: str = ""  # the function that it returns: its type as far as it is written
    type: TypeText | None = None  # of a value
    tree: TypeTree | None = None  # of an alias
    value: str = ""  # of a member of an enum, as the compiler would write it; "" where nobody knows
    is_computed: bool = False


class Guard(msgspec.Struct, frozen=True):
    """A place that narrows `subject`. `call` is where the name of a called function stands that has to be a guard
    itself; then `kind` is open until somebody knows that function."""

    kind: str
    start: int
    end: int
    subject: str = ""
    narrowed_to: str = ""
    is_return_type: bool = False
    call: int = -1


class Handed(msgspec.Struct, frozen=True):
    """A name that a call is given as an argument, `index` from 0 on; of an element of JSX an attribute, at -1."""

    name: str  # dotted, as written
    start: int  # of its last part
    end: int
    callee: str
    receiver: str
    index: int
    call: int  # where the call begins, or the attribute
    attribute: str = ""
    bound: bool = False  # by `.bind(…)`


class Shapes(msgspec.Struct, frozen=True):
    declared: dict[int, Declared] = {}  # by where the body begins, else the name
    guards: tuple[Guard, ...] = ()  # in the order of the text
    handed: tuple[Handed, ...] = ()

    def find(self, symbol: Symbol) -> Declared | None:
        found = self.declared.get(symbol.body_start) if symbol.body_start >= 0 else None
        return found or self.declared.get(symbol.name_start)
