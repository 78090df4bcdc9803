"""What is known of a value while a function is followed: a constant, its taints, what it holds, what it is called."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, TypeVar

import msgspec

from cq.model.code import Value as Form
from cq.model.edge import Candidate
from cq.risk.rules import KINDS

_Item = TypeVar("_Item")
MAX_TAINTS = 8  # of one value; the others stand for them
MAX_PATHS = 4
MAX_REFS = 6
MAX_FIELDS = 60  # of one object; what is stored under more keys is in its rest
MAX_PREFIX = 200
MAX_STEPS = 60  # of one flow
MAX_VIEWS = 10


ALL = frozenset(KINDS)  # of sinks


class Unknown:
    """The constant that nobody knows."""

    def __repr__(self) -> str:
        return "?"


UNKNOWN: Final = Unknown()
Constant = str | int | float | bool | None
Key = str | int


class Place(NamedTuple):
    """A stretch of a document."""

    path: str
    document: int
    start: int
    end: int


class Step(NamedTuple):
    """One step of a flow, the last of those before it."""

    place: Place
    kind: str  # source assign call argument return guard sink
    text: str
    before: Step | None
    length: int = 1  # of the way


class RuleSource(NamedTuple):
    """Where a rule says that data comes in."""

    rule: str
    place: Place


class ParameterSource(NamedTuple):
    """What a function is given: a parameter by its number, or a name of the functions around it; `fields` of it."""

    function: Candidate
    start: int  # of the definition: a function without a name has no other
    parameter: int | str
    fields: tuple[Key, ...] = ()


Source = RuleSource | ParameterSource


class Taint(NamedTuple):
    source: Source
    removed: frozenset[str]  # kinds of sinks that it is harmless to
    step: Step | None
    doubt: float = 1.0  # how likely it is that it came this way, as far as calls are concerned


class Closure(NamedTuple):
    """A function as a value: the definition that starts there."""

    path: str
    document: int
    start: int


Ref = tuple[object, ...]  # where an object was made: the same place is the same object
Origin = tuple[object, ...]  # what a value is a view of: a place, then the views


class Value(NamedTuple):
    const: Constant | Unknown = UNKNOWN
    prefix: str = ""  # of a text whose rest is not known
    taints: tuple[Taint, ...] = ()
    refs: tuple[Ref, ...] = ()
    paths: tuple[str, ...] = ()  # `sqlite3.connect().cursor()`
    closures: tuple[Closure, ...] = ()
    origin: Origin = ()
    is_literal: bool = False  # written in the source, whether its characters are kept or not

    @property
    def is_constant(self) -> bool:
        return self.const is not UNKNOWN


NOTHING = Value()


class Shape(msgspec.Struct, frozen=True):
    """An object: what it holds by key, and what it holds under keys that nobody knows. A list of known length has
    exactly the keys below its size. `source`: it came in from outside, fields that are not there are made when read."""

    fields: dict[Key, Value] = {}
    rest: Value = NOTHING
    size: int = -1  # of a list; -1: nobody knows
    source: ParameterSource | None = None
    kind: Closure | None = None  # the class it is an instance of, where the repository defines that


def literal(const: Constant) -> Value:
    prefix = const[:MAX_PREFIX] if isinstance(const, str) else ""
    return Value(const=const, prefix=prefix, is_literal=True)


def tainted(taints: Iterable[Taint], origin: Origin = ()) -> Value:
    return Value(taints=join_taints(taints), origin=origin)


def join_taints(taints: Iterable[Taint]) -> tuple[Taint, ...]:
    """One for each source: what is removed on every way is removed, and the shorter way is kept."""
    found: dict[Source, Taint] = {}
    for taint in taints:
        known = found.get(taint.source)
        if known is None:
            found[taint.source] = taint
        elif known is not taint:
            first = min((known, taint), key=_order_way)
            found[taint.source] = Taint(
                taint.source, known.removed & taint.removed, first.step, max(known.doubt, taint.doubt)
            )
    if len(found) <= MAX_TAINTS:
        return tuple(found.values())
    return tuple(sorted(found.values(), key=_order_source)[:MAX_TAINTS])


def remove(taints: Iterable[Taint], kinds: frozenset[str]) -> Iterable[Taint]:
    """What is harmless to everything is no taint."""
    for taint in taints:
        removed = taint.removed | kinds
        if not removed >= ALL:
            yield taint._replace(removed=removed)


def _order_way(taint: Taint) -> tuple[int, Place]:
    step = taint.step
    return (0, _NOWHERE) if step is None else (step.length, step.place)


def _order_source(taint: Taint) -> tuple[bool, str]:
    return isinstance(taint.source, ParameterSource), repr(taint.source)


_NOWHERE = Place("", 0, 0, 0)


def add_step(before: Step | None, place: Place, kind: str, text: str) -> Step:
    count = 1 if before is None else before.length + 1
    if before is not None and (before.place == place and before.kind == kind):
        return before
    if count > MAX_STEPS and before is not None:
        return before
    return Step(place, kind, text[:80], before, count)


def count_steps(step: Step | None) -> int:
    return 0 if step is None else step.length


def join(left: Value, right: Value) -> Value:
    """What holds whichever of the two it is."""
    if left is right or left == right:
        return left
    same = left.const == right.const and type(left.const) is type(right.const)
    return Value(
        left.const if same else UNKNOWN,
        left.prefix if left.prefix == right.prefix else _common(left.prefix, right.prefix),
        join_taints((*left.taints, *right.taints)) if left.taints != right.taints else left.taints,
        _merge(left.refs, right.refs, MAX_REFS),
        _merge(left.paths, right.paths, MAX_PATHS),
        _merge(left.closures, right.closures, MAX_PATHS),
        left.origin if left.origin == right.origin else (),
        left.is_literal and right.is_literal,
    )


def join_all(values: Iterable[Value]) -> Value:
    found: Value | None = None
    for value in values:
        found = value if found is None else join(found, value)
    return NOTHING if found is None else found


def _common(left: str, right: str) -> str:
    count = 0
    for one, other in zip(left, right, strict=False):
        if one != other:
            break
        count += 1
    return left[:count]


def _merge(left: tuple[_Item, ...], right: tuple[_Item, ...], most: int) -> tuple[_Item, ...]:
    if left == right or not right:
        return left
    if not left:
        return right
    return (*left, *(one for one in right if one not in left))[:most]


def join_shapes(left: Shape, right: Shape) -> Shape:
    if left is right or left == right:
        return left
    fields: dict[Key, Value] = {}
    for key in (*left.fields, *(key for key in right.fields if key not in left.fields)):
        one, other = left.fields.get(key), right.fields.get(key)
        if one is None:
            fields[key] = join(left.rest, other) if other is not None else left.rest
        elif other is None:
            fields[key] = join(one, right.rest)
        else:
            fields[key] = join(one, other)
    source = left.source if left.source == right.source else left.source or right.source
    kind = left.kind if left.kind == right.kind else None
    found = Shape(fields, join(left.rest, right.rest), left.size, source, kind)
    return found if left.size == right.size else blur(found)


def blur(shape: Shape) -> Shape:
    """Elements of a list whose places are not known any more; those under names stay."""
    numbered = [value for key, value in shape.fields.items() if isinstance(key, int)]
    if not numbered:
        return msgspec.structs.replace(shape, size=-1)
    named: dict[Key, Value] = {key: value for key, value in shape.fields.items() if not isinstance(key, int)}
    return Shape(named, join_all((*numbered, shape.rest) if shape.rest != NOTHING else numbered), -1, shape.source)


def set_field(shape: Shape, key: Key | None, value: Value, *, strong: bool = True) -> Shape:
    """With a value under a key; under None it may be any, so that what was there may still be."""
    if key is None or (key not in shape.fields and len(shape.fields) >= MAX_FIELDS):
        fields = {name: join(held, value) for name, held in shape.fields.items()}
        return msgspec.structs.replace(shape, fields=fields, rest=join(shape.rest, value))
    known = shape.fields.get(key)
    if not strong and known is None:
        known = shape.rest
    kept = value if strong or known is None else join(known, value)
    return msgspec.structs.replace(shape, fields={**shape.fields, key: kept})


class State(msgspec.Struct):
    """What holds at a place: variables, objects, what conditions have shown harmless. Copied where ways part."""

    names: dict[str, Value] = {}
    objects: dict[Ref, Shape] = {}
    cleared: dict[Origin, frozenset[str]] = {}  # kinds by what the value is a view of
    asked: dict[str, Form] = {}  # by variable: the condition whose answer it holds
    alive: bool = True

    def copy(self) -> State:
        return State(dict(self.names), dict(self.objects), dict(self.cleared), dict(self.asked), self.alive)

    def take(self, other: State) -> None:
        self.names, self.objects, self.cleared = other.names, other.objects, other.cleared
        self.asked, self.alive = other.asked, other.alive


def join_states(left: State, right: State) -> State:
    if not left.alive:
        return right
    if not right.alive:
        return left
    names = dict(left.names)
    for name, value in right.names.items():
        known = names.get(name)
        names[name] = value if known is None else join(known, value)
    objects = dict(left.objects)
    for ref, shape in right.objects.items():
        known_shape = objects.get(ref)
        objects[ref] = shape if known_shape is None else join_shapes(known_shape, shape)
    cleared = {
        origin: kinds & right.cleared[origin] for origin, kinds in left.cleared.items() if origin in right.cleared
    }
    asked = {name: form for name, form in left.asked.items() if right.asked.get(name) is form}
    return State(names, objects, cleared, asked)
