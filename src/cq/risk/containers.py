"""Methods of lists and dictionaries, of which it is known what they hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from cq.model.code import Site
from cq.risk.values import NOTHING, UNKNOWN, Key, Ref, Shape, Value, blur, join, join_all, literal, set_field

if TYPE_CHECKING:
    from cq.risk.interpret import Interpreter

MAX_SIZE = 60  # of a list whose elements are known one by one

_GIVES_ITSELF = frozenset({"sort", "reverse"})  # in JavaScript; nobody uses what they give in Python

Change = Callable[["Interpreter", Shape, Sequence[Value]], tuple[Shape, Value | None]]


def call_container(
    run: Interpreter, site: Site, name: str, args: Sequence[Value], keywords: Mapping[str, Value], receiver: Value
) -> Value | None:
    """What a method of a container gives; None where it is none."""
    if name in _READS:
        return _READS[name](run, site, args, receiver)
    change = _CHANGES.get(name)
    if change is None:
        return None
    results: list[Value] = []
    for ref in receiver.refs:
        shape = run.shape(ref)
        after, result = change(run, shape, args)
        if name == "update":
            for key, value in keywords.items():
                after = set_field(after, key, value)
        if len(receiver.refs) > 1:
            after = Shape(rest=join(run.read_any(Value(refs=(ref,))), join_all(list(args))))
        run.set_shape(ref, after)
        if result is not None:
            results.append(result)
    if name in _GIVES_ITSELF:
        return receiver
    found = join_all(results)
    own = tuple(taint for taint in receiver.taints if not run.is_object(receiver))
    return found._replace(taints=(*found.taints, *(t for t in own if t not in found.taints))) if own else found


def _append(run: Interpreter, shape: Shape, args: Sequence[Value]) -> tuple[Shape, Value | None]:
    del run
    value = args[0] if args else NOTHING
    if 0 <= shape.size < MAX_SIZE:
        fields = {**shape.fields, shape.size: value}
        return msgspec.structs.replace(shape, fields=fields, size=shape.size + 1), None
    return set_field(blur(shape), None, value), None


def _prepend(run: Interpreter, shape: Shape, args: Sequence[Value]) -> tuple[Shape, Value | None]:
    return _place(run, shape, 0, args[0] if args else NOTHING)


def _insert(run: Interpreter, shape: Shape, args: Sequence[Value]) -> tuple[Shape, Value | None]:
    at = args[0].const if args else UNKNOWN
    value = args[1] if len(args) > 1 else NOTHING
    if isinstance(at, int):
        return _place(run, shape, at, value)
    return set_field(blur(shape), None, value), None


def _place(run: Interpreter, shape: Shape, at: int, value: Value) -> tuple[Shape, Value | None]:
    del run
    if not 0 <= shape.size < MAX_SIZE:
        return set_field(blur(shape), None, value), None
    held = [shape.fields.get(number, NOTHING) for number in range(shape.size)]
    held.insert(at, value)
    return _relist(shape, held), None


def _relist(shape: Shape, held: Sequence[Value]) -> Shape:
    fields: dict[Key, Value] = {key: value for key, value in shape.fields.items() if not isinstance(key, int)}
    fields.update(enumerate(held))
    return Shape(fields, shape.rest, len(held), shape.source)


def _extend(run: Interpreter, shape: Shape, args: Sequence[Value]) -> tuple[Shape, Value | None]:
    value = args[0] if args else NOTHING
    if shape.size >= 0 and len(value.refs) == 1 and not value.taints:
        other = run.shape(value.refs[0])
        if other.size >= 0 and shape.size + other.size < MAX_SIZE:
            held = [shape.fields.get(number, NOTHING) for number in range(shape.size)]
            held += [other.fields.get(number, NOTHING) for number in range(other.size)]
            return _relist(shape, held), None
    return set_field(blur(shape), None, run.read_any(value)), None


def _pop(run: Interpreter, shape: Shape, args: Sequence[Value]) -> tuple[Shape, Value | None]:
    at = args[0].const if args else -1
    if shape.size > 0 and isinstance(at, int) and -shape.size <= at < shape.size:
        held = [shape.fields.get(number, NOTHING) for number in range(shape.size)]
        taken = held.pop(at)
        return _relist(shape, held), taken
    if isinstance(at, str) and at in shape.fields:
        fields = {key: value for key, value in shape.fields.items() if key != at}
        return msgspec.structs.replace(shape, fields=fields), shape.fields[at]
    found = join_all([*shape.fields.values(), shape.rest])
    if shape.source is not None and isinstance(at, str):
        return shape, None
    del run
    return (blur(shape) if shape.size >= 0 else shape), join(found, args[1]) if len(args) > 1 else found


def _shift(run: Interpreter, shape: Shape, args: Sequence[Value]) -> tuple[Shape, Value | None]:
    del args
    return _pop(run, shape, [literal(0)])


def _remove(run: Interpreter, shape: Shape, args: Sequence[Value]) -> tuple[Shape, Value | None]:
    del run
    wanted = args[0].const if args else UNKNOWN
    if shape.size >= 0 and wanted is not UNKNOWN:
        held = [shape.fields.get(number, NOTHING) for number in range(shape.size)]
        at = next((number for number, value in enumerate(held) if value.const == wanted), None)
        if at is not None and all(value.is_constant for value in held[:at]):
            del held[at]
            return _relist(shape, held), None
    return blur(shape), None


def _clear(run: Interpreter, shape: Shape, args: Sequence[Value]) -> tuple[Shape, Value | None]:
    del run, args
    return Shape(size=0 if shape.size >= 0 else -1), None


def _update(run: Interpreter, shape: Shape, args: Sequence[Value]) -> tuple[Shape, Value | None]:
    for value in args:
        for ref in value.refs:
            other = run.shape(ref)
            for key, held in other.fields.items():
                shape = set_field(shape, key, held)
            if other.rest != NOTHING:
                shape = set_field(shape, None, other.rest)
        if value.taints:
            shape = set_field(shape, None, Value(taints=value.taints))
    return shape, None


def _set_default(run: Interpreter, shape: Shape, args: Sequence[Value]) -> tuple[Shape, Value | None]:
    del run
    key = args[0].const if args else UNKNOWN
    value = args[1] if len(args) > 1 else NOTHING
    if isinstance(key, (str, int)):
        known = shape.fields.get(key)
        return (shape, known) if known is not None else (set_field(shape, key, value), value)
    return set_field(shape, None, value), join_all([*shape.fields.values(), shape.rest, value])


def _turn(run: Interpreter, shape: Shape, args: Sequence[Value]) -> tuple[Shape, Value | None]:
    del run, args
    if shape.size < 0:
        return shape, None
    return _relist(shape, [shape.fields.get(number, NOTHING) for number in range(shape.size)][::-1]), None


def _sort(run: Interpreter, shape: Shape, args: Sequence[Value]) -> tuple[Shape, Value | None]:
    del run, args
    return blur(shape), None


_CHANGES: dict[str, Change] = {
    "append": _append, "add": _append, "push": _append, "appendleft": _prepend, "unshift": _prepend,
    "insert": _insert, "extend": _extend, "pop": _pop, "remove": _remove, "clear": _clear, "update": _update,
    "setdefault": _set_default, "shift": _shift, "popleft": _shift, "reverse": _turn, "sort": _sort, "discard": _sort,
}  # fmt: skip


def _get(run: Interpreter, site: Site, args: Sequence[Value], receiver: Value) -> Value:
    del site
    key = args[0].const if args else UNKNOWN
    default = args[1] if len(args) > 1 else NOTHING
    if isinstance(key, (str, int)):
        found = run.field(receiver, key)
        known = all(key in run.shape(ref).fields for ref in receiver.refs)
        return found if known else join(found, default) if found != NOTHING else default
    return join(run.read_any(receiver), default) if default != NOTHING else run.read_any(receiver)


def _read_values(run: Interpreter, site: Site, args: Sequence[Value], receiver: Value) -> Value:
    del args
    ref: Ref = ("o", run.document.path, site.end)
    run.state.objects[ref] = Shape(rest=run.read_any(receiver))
    return Value(refs=(ref,))


def _read_items(run: Interpreter, site: Site, args: Sequence[Value], receiver: Value) -> Value:
    """Pairs whose second part is a value, and whose first is tainted where the whole is."""
    del args
    pair: Ref = ("o", run.document.path, site.end, "pair")
    outside = Value(taints=receiver.taints)
    run.state.objects[pair] = Shape({0: outside, 1: run.read_any(receiver)}, NOTHING, 2)
    ref: Ref = ("o", run.document.path, site.end)
    run.state.objects[ref] = Shape(rest=Value(refs=(pair,)))
    return Value(refs=(ref,))


def _read_keys(run: Interpreter, site: Site, args: Sequence[Value], receiver: Value) -> Value:
    del run, site, args
    return Value(taints=receiver.taints)


def _copy(run: Interpreter, site: Site, args: Sequence[Value], receiver: Value) -> Value:
    del args
    if len(receiver.refs) != 1:
        return receiver
    ref: Ref = ("o", run.document.path, site.end)
    run.state.objects[ref] = run.shape(receiver.refs[0])
    return receiver._replace(refs=(ref,))


_READS: dict[str, Callable[[Interpreter, Site, Sequence[Value], Value], Value]] = {
    "get": _get, "values": _read_values, "items": _read_items, "keys": _read_keys, "copy": _copy,
}  # fmt: skip
