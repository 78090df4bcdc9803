"""What a document's code does with values: the input of resolution. Pure syntax, made by `syntax`, read by `graph`.

A `Value` is an expression or a type as written, reduced to what can lead to a definition. None stands for what nobody
can follow, a `Name` for a name with the attributes read off it, a `CallEnd` for what a call gives; everything else is
one of the forms below. Who reads values does so with `match`, so that the type checker names every form that was
forgotten. A value is known by its identity as well (two empty lists are two lists): one that was decoded must not be
shared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Literal, NewType, get_args

import msgspec

LAMBDA = "<lambda>"  # how a function without a name is called
_NOTHING = msgspec.Raw()

if TYPE_CHECKING:
    Name = NewType("Name", str)  # `a.b.c`
    CallEnd = NewType("CallEnd", int)  # the call that ends at this byte: ends are unique among a document's calls
else:
    # Calling a NewType costs three times as much, and every name of a repository is one.
    Name, CallEnd = str, int


class BaseForm(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A form of Value. Its tag is how it is stored."""


# -- literals and containers ------------------------------------------------------------------------


class Text(BaseForm, frozen=True, tag=1):
    """A short text as written: `"name"`."""

    value: str


class Integer(BaseForm, frozen=True, tag=2):
    """A whole number as written: `3`, `-1`."""

    value: int


class Constant(BaseForm, frozen=True, tag=3):
    """A literal of which its type alone is kept: `1.5` is a float, `null` is None."""

    name: Literal["str", "bytes", "int", "float", "bool", "None", "symbol", "module", "Range", "slice"]  # of the type


class Listing(BaseForm, frozen=True, tag=4):
    """A container as written: `[a, b]`, `(a, b)`, `{a, b}`; in a type the same, `[A, B]` of TypeScript."""

    kind: Literal["list", "tuple", "set"]
    elements: tuple[Value, ...] = ()


class Dictionary(BaseForm, frozen=True, tag=5):
    """A dictionary or an object as written: `{"a": f, **rest}`; the key of `**rest` is None."""

    keys: tuple[Value, ...] = ()
    values: tuple[Value, ...] = ()


class Each(BaseForm, frozen=True, tag=6):
    """A container of unknown size with elements that are this: `[f(x) for x in xs]`."""

    kind: Literal["list", "dict", "set", "tuple", "generator", "promise", "map"]
    element: Value


class Boolean(BaseForm, frozen=True, tag=7):
    """`True`, `False`."""

    value: bool


class Joined(BaseForm, frozen=True, tag=8):
    """A text with values in it: `f"a{x}"`, `` `a${x}` ``, `format!("a{x}")`. What is too long for a Text is a str."""

    parts: tuple[Value, ...]


# -- what is read off other values --------------------------------------------------------------------


class Attribute(BaseForm, frozen=True, tag=10):
    """Attributes of what is no name: `f().a.b`."""

    base: Value
    path: str  # `a.b`


class Element(BaseForm, frozen=True, tag=11):
    """`a[key]`; in a type its parameters: `list[int]`."""

    base: Value
    keys: tuple[Value, ...]


class Slice(BaseForm, frozen=True, tag=12):
    """Some elements of a container, in their order: `a[1:]`."""

    base: Value
    bounds: tuple[int | None, int | None] | None  # as written; None: nobody knows which elements


class Choice(BaseForm, frozen=True, tag=13):
    """One of these: `a or b`, `a if c else b`; the type `A | B`. Detailed code keeps the `condition`: where it holds it
    is the first, elsewhere the second, or nothing."""

    options: tuple[Value, ...]
    condition: Value = None


class Operated(BaseForm, frozen=True, tag=14):
    """`a + b`; of one operand the operator is `-x`, and `right` is None."""

    operator: str
    left: Value
    right: Value


class Spread(BaseForm, frozen=True, tag=15):
    """All elements as arguments or elements of their own: `*a`."""

    value: Value


class Iterated(BaseForm, frozen=True, tag=16):
    """What iterating gives, one at a time: x in `for x in value`."""

    value: Value


class Entered(BaseForm, frozen=True, tag=17):
    """What `with value as x` binds."""

    value: Value


class Awaited(BaseForm, frozen=True, tag=18):
    """`await value`; what a promise holds."""

    value: Value


class Caught(BaseForm, frozen=True, tag=19):
    """What `except kind as x` binds: an instance of the class or of one below it."""

    kind: Value


class Sent(BaseForm, frozen=True, tag=20):
    """What `yield` gives in a generator."""


class InstanceOf(BaseForm, frozen=True, tag=21):
    """An instance of a class."""

    kind: Value


class Seen(BaseForm, frozen=True, tag=22):
    """A value as seen from another place of the same scope: `[y for x in xs for y in x]`."""

    offset: int
    value: Value


class SeenIn(BaseForm, frozen=True, tag=23):
    """A value as seen from a place of another scope: what a function assigns to a name that is declared around it."""

    scope: int  # NOWHERE until the scopes of a document are known
    offset: int
    value: Value


class Typed(BaseForm, frozen=True, tag=24):
    """A value that is said to be of a type: `value as T`."""

    kind: Value
    value: Value


class Augmented(BaseForm, frozen=True, tag=25):
    """`target += value`, in Code.runs alone."""

    target: Value
    value: Value


# -- what leads to definitions ------------------------------------------------------------------------


class Lambda(BaseForm, frozen=True, tag=30):
    """The function without a name that starts there; its Definition has the same start."""

    start: int


class Defined(BaseForm, frozen=True, tag=31):
    """The Definition that starts there."""

    start: int


class ParameterOf(BaseForm, frozen=True, tag=32):
    """What the n-th parameter of the Definition that starts there gets."""

    start: int
    number: int


class Imported(BaseForm, frozen=True, tag=33):
    """What an import binds: `from module import name`."""

    level: int  # dots before the module
    module: str
    name: str  # "*" is the module itself; "=" what a module of CommonJS gives as a whole


class SuperObject(BaseForm, frozen=True, tag=34):
    """ECMAScript's `super`: the members of the base; its constructor where it is called."""

    is_called: bool = False


# -- types --------------------------------------------------------------------------------------------


class FunctionType(BaseForm, frozen=True, tag=40):
    """`(a: A) => R`, `new (a: A) => R`, `Fn(A) -> R`."""

    result: Value
    parameters: tuple[Value, ...]
    is_constructor: bool = False


class ObjectType(BaseForm, frozen=True, tag=41):
    """`{a: A; [key: string]: B}`."""

    keys: tuple[Value, ...]
    types: tuple[Value, ...]


class Bounds(BaseForm, frozen=True, tag=42):
    """All of these at once: `A & B`, `dyn A + B`."""

    types: tuple[Value, ...]


class TypeOf(BaseForm, frozen=True, tag=43):
    """`typeof value`."""

    value: Value


class MemberType(BaseForm, frozen=True, tag=44):
    """`T["name"]`."""

    kind: Value
    name: str


class AliasOf(BaseForm, frozen=True, tag=45):
    """What a name of a type stands for: `type A = kind`."""

    kind: Value


class NamedType(BaseForm, frozen=True, tag=46):
    """A type that is passed by name: `Item = kind` in `Iterator<Item = kind>`."""

    name: str
    kind: Value


# -- Rust ---------------------------------------------------------------------------------------------


class MethodOf(BaseForm, frozen=True, tag=50):
    """The method in `receiver.name()`, as told apart from a field that holds a function."""

    receiver: Value
    name: str


class Item(BaseForm, frozen=True, tag=51):
    """A path that is looked up in a namespace of its own: `name!()`, `Path { … }`, `#[derive(Path)]`."""

    path: str
    namespace: Literal["macro", "literal", "attribute"]


class Unwrapped(BaseForm, frozen=True, tag=52):
    """`value?`: what an Option or Result holds."""

    value: Value


class PartOf(BaseForm, frozen=True, tag=53):
    """A field of the variant or struct that a pattern names: x in `Some(x)`."""

    value: Value
    path: str | None  # of the variant or struct; None where it is not plain
    field: str


class TuplePart(BaseForm, frozen=True, tag=54):
    """The n-th part of a tuple, taken apart by a pattern."""

    value: Value
    number: int


class Indexed(BaseForm, frozen=True, tag=55):
    """`value[key]`, `value[a..b]`."""

    value: Value
    is_range: bool


class ClosureParameter(BaseForm, frozen=True, tag=56):
    """A parameter of a closure that is an argument of a call."""

    call: Value  # a CallEnd
    argument: int
    number: int


class OperatorMethod(BaseForm, frozen=True, tag=57):
    """`receiver + …`, by the method that runs: `add`."""

    method: str
    receiver: Value


# -- languages that are read by tables ------------------------------------------------------------------


class OnReceiver(BaseForm, frozen=True, tag=60):
    """The method in `receiver.name()`, the receiver as written."""

    receiver: str
    name: str


# -- what resolution makes up: none of these stands in a document's code -------------------------------------


class ResultOf(BaseForm, frozen=True, tag=70):
    """What calling a value gives, whatever it is given."""

    function: Value


class ReturnOf(BaseForm, frozen=True, tag=71):
    """What the functions among values return."""

    function: Value


class Decorated(BaseForm, frozen=True, tag=72):
    """A definition behind its decorators, without the first `rank` of them."""

    start: int
    rank: int


class ElementsOf(BaseForm, frozen=True, tag=73):
    """All elements of a container that resolution knows by this number: what is written here is not looked through
    for cycles, so that a form which held the container itself would keep all that resolution found forever."""

    container: int


Form = (
    Text | Integer | Constant | Listing | Dictionary | Each | Boolean | Joined | Attribute | Element | Slice | Choice
    | Operated | Spread | Iterated | Entered | Awaited | Caught | Sent | InstanceOf | Seen | SeenIn | Typed | Augmented
    | Lambda | Defined | ParameterOf | Imported | SuperObject | FunctionType | ObjectType | Bounds | TypeOf | MemberType
    | AliasOf | NamedType | MethodOf | Item | Unwrapped | PartOf | TuplePart | Indexed | ClosureParameter
    | OperatorMethod | OnReceiver | ResultOf | ReturnOf | Decorated | ElementsOf
)  # fmt: skip
Literals = Text | Integer | Boolean | Joined | Constant
Value = Name | CallEnd | Form | None
Key = Text | Integer | Listing  # a constant by which elements are told apart: a text, a number, a tuple of such
NOWHERE = -2  # a scope that is not known yet
NULL = Constant("None")  # `None`, `null`, `undefined`


def read_attribute(base: Value, path: str) -> Value:
    """What is read off a value; of a name it is a longer name."""
    if base is None or not path:
        return None  # the parser makes up a name that is not written yet
    if isinstance(base, str):
        return Name(f"{base}.{path}")
    if isinstance(base, Attribute):
        return Attribute(base.base, f"{base.path}.{path}")
    return Attribute(base, path)


def read_integer(text: bytes) -> Integer | None:
    """A number as written, `0x1f` and `1_000` too; None for a long one, and for what is none."""
    try:
        return Integer(int(text, 0)) if len(text) < 10 else None
    except ValueError:
        return None


def _list_fields(kind: type[BaseForm], annotation: str) -> tuple[str, ...]:
    return tuple(name for name in kind.__struct_fields__ if kind.__annotations__[name] == annotation)


_KINDS: tuple[type[BaseForm], ...] = tuple(BaseForm.__subclasses__())
_VALUE_FIELDS = {kind: _list_fields(kind, "Value") for kind in _KINDS}
_TUPLE_FIELDS = {kind: _list_fields(kind, "tuple[Value, ...]") for kind in _KINDS}
HOLDERS = frozenset(kind for kind in _KINDS if _VALUE_FIELDS[kind] or _TUPLE_FIELDS[kind])  # of other values


def find_inner(form: Form) -> Iterator[Value]:
    """The values that a form is made of, field by field."""
    kind = type(form)
    for name in _VALUE_FIELDS[kind]:
        yield getattr(form, name)
    for name in _TUPLE_FIELDS[kind]:
        yield from getattr(form, name)


def replace_inner(form: Form, change: Callable[[Value], Value]) -> Form:
    """The form with every value that it is made of changed."""
    kind = type(form)
    changed: dict[str, Value | tuple[Value, ...]] = {name: change(getattr(form, name)) for name in _VALUE_FIELDS[kind]}
    for name in _TUPLE_FIELDS[kind]:
        changed[name] = tuple(map(change, getattr(form, name)))
    return msgspec.structs.replace(form, **changed) if changed else form


def find_plain(form: Form) -> tuple[object, ...]:
    """What a form says beside the values that it is made of, behind the form's own name."""
    kind = type(form)
    skipped = (*_VALUE_FIELDS[kind], *_TUPLE_FIELDS[kind])
    return kind.__name__, *(getattr(form, name) for name in kind.__struct_fields__ if name not in skipped)


class Parameter(msgspec.Struct, frozen=True, gc=False, array_like=True):
    name: str
    kind: str = ""  # "" either way, "/" by position only, "k" by keyword only, "*" the rest, "**" the rest by keyword
    type: Value = None
    default: Value = None
    optional: bool = False


class Definition(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A function, a class, or a lambda (`symbol` -1, unless it is bound to a name)."""

    kind: str  # function class, or what the language adds: interface trait impl enum
    name: str
    symbol: int  # index into FileFacts.symbols
    scope: int  # the definition whose code holds it: a symbol, -1 at root level
    start: int  # where the definition itself begins, behind decorators: its name inside values
    parameters: tuple[Parameter, ...] = ()
    type: Value = None  # of what it returns
    returns: tuple[Value, ...] = ()
    yields: tuple[Value, ...] = ()
    bases: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()  # of the class statement: metaclass=…
    decorators: tuple[Value, ...] = ()
    modifiers: tuple[str, ...] = ()  # async generator static class abstract accessor …
    within: str = ""  # the object that holds it, where that is no definition: `api.nested`
    # Of a function without a name, which opens no scope (`symbol` -1): its symbol, where its code begins and ends.
    anonymous: tuple[int, ...] = ()


class Bind(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A name gets a value. `end` is where the block of the binding ends: inside, it hides what was bound before."""

    scope: int
    name: str
    value: Value
    start: int
    end: int = -1  # -1: the end of its scope; always so for the only binding of a name
    type: Value = None
    inner: bool = False  # known from start to end only: variables of comprehensions, parameters of lambdas


class Store(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """`base.name = value`; with `name` None `base[key] = value`. From `since` to `end`, where its block ends, it hides
    what was stored there before."""

    scope: int
    start: int
    base: Value
    name: str | None
    value: Value
    key: Value = None
    type: Value = None
    since: int = -1  # -1: that is not known
    end: int = 0  # as of a Bind


class Site(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A call: the entry of the same number in FileFacts.calls, with values for texts."""

    scope: int
    start: int
    end: int
    callee: Value
    args: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()
    kind: str = "call"
    name: str = ""  # the last name of the callee


def find_updates(site: Site) -> list[tuple[Key, Value]]:
    """Keys and values that `table.update({"a": f}, b=g)` stores, where all of them stand there."""
    base = split_receiver(site.callee)
    given = site.args[0] if site.args else Dictionary()
    if site.name != "update" or base is None or "." in base or not isinstance(given, Dictionary):
        return []
    found: list[tuple[Key, Value]] = []
    for key, value in zip(given.keys, given.values, strict=True):
        if not isinstance(key, (Text, Integer)):
            return []
        found.append((key, value))
    for name, value in site.keywords:
        if name == "**":
            return []
        found.append((Text(name), value))
    return found


def split_receiver(callee: Value) -> Name | None:
    """The name that a callee is read off: `a.b` of `a.b.c`; None where there is no such name."""
    if isinstance(callee, MethodOf):
        return callee.receiver if isinstance(callee.receiver, str) else None
    base = callee.rpartition(".")[0] if isinstance(callee, str) else ""
    return Name(base) if base else None


ExitKind = Literal["return", "break", "continue"]


class Exit(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A statement behind which the code of its block does not go on."""

    scope: int
    kind: ExitKind
    start: int
    end: int
    value: Value = None


BranchKind = Literal["if", "case", "loop", "assert", "with", "try", "except", "except*", "finally"]


class Branch(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A stretch of code that runs on a condition, more than once, when something is raised, or protected.

    The value of an `if` (its `else` has one too), of a `while` and an `assert` is the condition under which the code
    runs: comparisons, `and`, `or` and `not` are an Operated. That of a `case` is what is matched, that of an `except`
    the class that is caught, that of a `with` what is entered. An `except` and a `finally` are the whole clause; of
    `try` and `with` it is the body. In detailed code a `case` says what it is compared with as well (`Operated` of
    "case"), and what stands side by side (`if`, `elif`, `else`; the cases of one `match`) has the same `tried`.
    """

    scope: int
    kind: BranchKind
    start: int
    end: int
    value: Value = None
    tried: int = -1  # of an `except` and a `finally`: where the body of their `try` begins; else see above
    is_empty: bool = False  # of an `except`: nothing stands in it but `pass`, texts and comments


def label_type(name: str) -> str:
    """Under which name is bound what only types can name; a value may have the name itself."""
    return f"<{name}>"


def label_items(name: str) -> str:
    """Under which name a document stores the elements that it puts into what another one calls so."""
    return f"[]{name}"


# How definitions are entered: by their own name (a table language), as a class or interface by the name of what it
# extends or implements, as a class by the name of its metaclass, as an impl of Rust by its type ("*" for any type) and
# by its trait, as a macro by its name.
EntryKind = Literal["definition", "heir", "instance", "impl of type", "impl of trait", "macro"]
# For what documents are found by a name: they call it, they store to an attribute of that name, they enter it, a class
# has a method of that name, they import it.
NamedKind = Literal["called", "stored", EntryKind, "method", "imported"]
NAMED_KINDS: tuple[NamedKind, ...] = get_args(NamedKind)
Named = tuple[str, NamedKind]  # with the name


class Entry(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A definition as others find it, wherever it stands."""

    kind: EntryKind
    name: str
    start: int  # of the Definition


class Code(msgspec.Struct, frozen=True, gc=False, array_like=True):
    language: str
    definitions: tuple[Definition, ...] = ()  # by start
    binds: tuple[Bind, ...] = ()  # by start
    stores: tuple[Store, ...] = ()
    sites: tuple[Site, ...] = ()
    raises: tuple[tuple[int, int, Value], ...] = ()  # scope, start, what is raised
    # Scope, start, operation and receiver of what runs a method without a call: with iter + < [] …; of `a += v` both,
    # as an Augmented.
    runs: tuple[tuple[int, int, str, Value], ...] = ()
    branches: tuple[Branch, ...] = ()  # by start; in a loop what stands below may have run before
    public: tuple[str, ...] | None = None  # what `import *` takes, where the document says so
    entries: tuple[Entry, ...] = ()
    exits: tuple[Exit, ...] = ()  # by start; in detailed code alone


def find_outer(code: Code) -> list[Form]:
    """The forms that stand in code, without those inside of others."""
    todo = [value for bind in code.binds for value in (bind.value, bind.type)]
    todo += [value for store in code.stores for value in (store.base, store.value, store.key, store.type)]
    todo += [value for site in code.sites for value in (site.callee, *site.args)]
    todo += [value for site in code.sites for _, value in site.keywords]
    todo += [value for *_, value in (*code.raises, *code.runs)]
    todo += [part.value for part in (*code.branches, *code.exits)]
    for made in code.definitions:
        todo += (made.type, *made.returns, *made.yields, *made.bases, *made.decorators)
        todo += [value for _, value in made.keywords]
        todo += [value for parameter in made.parameters for value in (parameter.type, parameter.default)]
    return [value for value in todo if isinstance(value, BaseForm)]


def replace_values(code: Code, change: Callable[[Value], Value]) -> Code:
    """Code with every value changed that stands in it; those inside others are for `change`."""
    replace = msgspec.structs.replace

    def change_named(pairs: tuple[tuple[str, Value], ...]) -> tuple[tuple[str, Value], ...]:
        return tuple([(name, change(value)) for name, value in pairs])

    def change_all(values: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple(map(change, values))

    return replace(
        code,
        definitions=tuple([
            replace(
                made, type=change(made.type), returns=change_all(made.returns), yields=change_all(made.yields),
                bases=change_all(made.bases), keywords=change_named(made.keywords),
                decorators=change_all(made.decorators),
                parameters=tuple([replace(p, type=change(p.type), default=change(p.default)) for p in made.parameters]),
            )
            for made in code.definitions
        ]),
        binds=tuple([replace(bind, value=change(bind.value), type=change(bind.type)) for bind in code.binds]),
        stores=tuple([
            replace(s, base=change(s.base), value=change(s.value), key=change(s.key), type=change(s.type))
            for s in code.stores
        ]),
        sites=tuple([
            replace(s, callee=change(s.callee), args=change_all(s.args), keywords=change_named(s.keywords))
            for s in code.sites
        ]),
        raises=tuple([(scope, start, change(value)) for scope, start, value in code.raises]),
        runs=tuple([(scope, start, operation, change(value)) for scope, start, operation, value in code.runs]),
        branches=tuple([replace(branch, value=change(branch.value)) for branch in code.branches]),
        exits=tuple([replace(leave, value=change(leave.value)) for leave in code.exits]),
    )  # fmt: skip


class NamedDefinition(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Of a Definition what names it; the rest is not decoded."""

    kind: str
    name: str
    symbol: int
    scope: int
    start: int
    parameters: msgspec.Raw = _NOTHING
    type: msgspec.Raw = _NOTHING
    returns: msgspec.Raw = _NOTHING
    yields: msgspec.Raw = _NOTHING
    bases: msgspec.Raw = _NOTHING
    keywords: msgspec.Raw = _NOTHING
    decorators: msgspec.Raw = _NOTHING
    modifiers: msgspec.Raw = _NOTHING
    within: str = ""
    anonymous: tuple[int, ...] = ()


class Outline(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Of a Code its definitions; decoding it costs a tenth."""

    language: str
    definitions: tuple[NamedDefinition, ...] = ()


def qualify(code: Code | Outline) -> dict[int, str]:
    """By symbol: dotted names that stay when lines move; the second of a name is `f#2`."""
    names: dict[int, str] = {}
    prefixes: dict[int, str] = {}  # members of an impl are named as those of the type itself
    seen: dict[str, int] = {}
    for definition in code.definitions:
        symbol = definition.anonymous[0] if definition.anonymous else definition.symbol
        if symbol >= 0:
            holder = prefixes.get(definition.scope) or names.get(definition.scope)
            name = ".".join(part for part in (holder, definition.within, definition.name or LAMBDA) if part)
            if definition.kind == "impl":
                prefixes[symbol] = name
            count = seen[name] = seen.get(name, 0) + 1
            names[symbol] = name if count == 1 else f"{name}#{count}"
    return names
