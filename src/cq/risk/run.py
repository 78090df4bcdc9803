"""What one run over a function knows: names, objects and what they hold, what is called how, what was found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from cq.model.code import (
    Choice,
    Operated,
)
from cq.model.code import Value as Form
from cq.model.edge import Candidate
from cq.risk.program import Function
from cq.risk.values import (
    MAX_VIEWS,
    NOTHING,
    UNKNOWN,
    Closure,
    Key,
    Origin,
    Place,
    Ref,
    RuleSource,
    Shape,
    State,
    Step,
    Taint,
    Value,
    add_step,
    count_steps,
    join,
    join_all,
    join_shapes,
    join_taints,
    remove,
    set_field,
)

if TYPE_CHECKING:
    from cq.risk.engine import Engine
    from cq.risk.rules import Rule

MODULE = "module:"  # begins the path of a document of the repository
MAX_PATH = 140  # characters of an access path
MAX_FIELDS_DEEP = 2


Context = Mapping[tuple[Key, ...], Value]  # by parameter, and field of it


class Hit(NamedTuple):
    """A parameter reaches a sink; `step` is the last of the way from it."""

    rule: str
    place: Place
    taint: Taint
    what: str


class Flow(NamedTuple):
    """Data from outside reaches a sink, or, without a `taint`, a weakness that needs no flow."""

    rule: str
    place: Place
    function: Candidate
    taint: Taint | None
    what: str


class Summary(NamedTuple):
    result: Value = NOTHING
    objects: Mapping[Ref, Shape] = {}
    effects: tuple[Ref, ...] = ()  # objects of parameters that it changes
    hits: tuple[Hit, ...] = ()
    true: Mapping[Origin, frozenset[str]] = {}  # what is harmless where it gives something true
    false: Mapping[Origin, frozenset[str]] = {}
    after: Mapping[Origin, frozenset[str]] = {}  # where it gives anything
    is_endless: bool = False  # it never comes back
    outer: Mapping[str, Value] = {}  # what it assigns to names of the functions around it


class Run:
    """The base of the interpreter: everything but statements, expressions and sinks."""

    def __init__(self, engine: Engine, function: Function, context: Context) -> None:
        self.engine, self.function, self.context = engine, function, context
        self.document, self.rules = function.document, engine.rules_of(function.document.language)
        self.state = State()
        self.results: dict[int, Value] = {}
        self.hits: dict[tuple[object, ...], Hit] = {}
        self.flows: dict[tuple[object, ...], Flow] = {}
        self.returned: list[tuple[Value, State]] = []
        self.truths: list[tuple[Mapping[Origin, frozenset[str]] | None, Mapping[Origin, frozenset[str]] | None]] = []
        self.at = (0, 0)
        self.effort = 0
        self.touched: dict[Ref, None] = {}
        self.outer: dict[str, None] = {}
        # Of calls, by where they end: what was summarized and passed, what rules may call it and what they see.
        self.called: dict[int, list[tuple[Summary, Mapping[int, Value]]]] = {}
        self.asked_with: dict[int, tuple[Sequence[str], Sequence[Value], Mapping[str, Value], Value]] = {}
        self.forms: dict[tuple[int, object], Form] = {}  # by the end of a call and the number of an argument
        self._depth = 0
        self._tries: list[State] = []
        self._leaving: list[list[State]] = []  # by loop: states at `break` and `continue`
        self._sink_of_result = ""
        self.is_cut = False

    def assign(self, name: str, value: Value, form: Form = None, text: str = "") -> None:
        if value.taints and text:
            value = value._replace(taints=tuple(self._step(taint, "assign", text) for taint in value.taints))
        if value.taints and not value.origin:
            value = value._replace(origin=("v", (name, self.at[1])))
        state = self.state
        state.names[name] = value
        for asked in [key for key, known in state.asked.items() if key == name or _mentions(known, name)]:
            del state.asked[asked]
        if isinstance(form, (Operated, int, Choice)):
            state.asked[name] = form
        for before in self._tries:
            known = before.names.get(name)
            before.names[name] = value if known is None else join(known, value)

    def write(self, form: Form, base: Value, key: Key | None, value: Value) -> None:
        """Stores into the objects that a value may be; what is none becomes one."""
        refs = base.refs
        if not refs:
            if not (isinstance(form, str) and "." not in form):
                return
            ref: Ref = ("made", self.function.start, form)
            shape = Shape(rest=Value(taints=base.taints))
            self.state.objects[ref] = shape
            self.state.names[form] = base._replace(refs=(ref,))
            refs = (ref,)
        strong = len(refs) == 1
        for ref in refs:
            shape = self.shape(ref)
            self.set_shape(ref, set_field(shape, key, value, strong=strong))

    def set_shape(self, ref: Ref, shape: Shape) -> None:
        self.touched[ref] = None
        self.state.objects[ref] = shape
        for before in self._tries:
            known = before.objects.get(ref)
            before.objects[ref] = shape if known is None else join_shapes(known, shape)

    def shape(self, ref: Ref) -> Shape:
        known = self.state.objects.get(ref)
        return self.engine.find_shape(ref) if known is None else known

    def _read_source(self, value: Value) -> Value:
        """With the taint of a source, where what it is called is one."""
        for path in value.paths:
            rule = self.rules.sources.get(path)
            if rule is not None:
                return self.make_source(value, rule)
        return value

    def make_source(self, value: Value, rule: Rule) -> Value:
        place = self.place
        self.engine.note_rule(self.engine.sources_seen, rule.id, place)
        step = Step(place, "source", rule.id, None)
        taint = Taint(RuleSource(rule.id, place), frozenset(), step)
        return value._replace(taints=join_taints((*value.taints, taint)), origin=value.origin or ("s", place))

    def read_attribute(self, value: Value, name: str) -> Value:
        modules = [path for path in value.paths if path.startswith(MODULE)]
        if modules:
            return join_all([self.engine.read_module(path.removeprefix(MODULE), name) for path in modules])
        found = self.field(value, name)
        paths = self._extend(value.paths, f".{name}")
        if paths:
            found = found._replace(paths=paths)
            return self._without_cleared(self._read_source(found))
        return found

    def _without_cleared(self, value: Value) -> Value:
        """What is read again is as harmless as it was found to be."""
        kinds = self.state.cleared.get(value.origin) if value.origin and value.taints else None
        return value if kinds is None else value._replace(taints=tuple(remove(value.taints, kinds)))

    def _extend(self, paths: tuple[str, ...], end: str) -> tuple[str, ...]:
        kept = (path for path in paths if len(path) < MAX_PATH and not path.startswith("flag:") and path != "text")
        return tuple(dict.fromkeys(self.rules.settle(f"{path}{end}") for path in kept))

    def _read_accessor(self, receiver: Value, kind: Closure, name: str) -> Value | None:
        raise NotImplementedError

    def field(self, value: Value, key: Key) -> Value:
        """What an object holds under a key, and what it is itself tainted with."""
        found = self._held(value, key)
        own = value.taints if not self.is_object(value) else tuple(t for t in value.taints if _is_outside(t))
        if own:
            found = found._replace(taints=join_taints((*found.taints, *own)))
        if not found.origin and value.origin and len(value.origin) < MAX_VIEWS + 2:
            found = found._replace(origin=(*value.origin, f".{key}"))
        return self._without_cleared(found)

    def is_object(self, value: Value) -> bool:
        """Whether what it holds is known apart from what it is."""
        return any(ref[0] == "p" for ref in value.refs)

    def _held(self, value: Value, key: Key) -> Value:
        parts: list[Value] = []
        for ref in value.refs:
            shape = self.shape(ref)
            known = shape.fields.get(key)
            if known is None and isinstance(key, int) and key < 0 and shape.size >= 0:
                known = shape.fields.get(shape.size + key)
            if known is None and shape.source is not None:
                known = self._open(ref, shape, key)
            if known is None and shape.size >= 0 and isinstance(key, int):
                continue
            if known is None and shape.kind is not None and isinstance(key, str):
                known = self._read_accessor(Value(refs=(ref,)), shape.kind, key)
            parts.append(shape.rest if known is None else known)
        return join_all(parts)

    def _open(self, ref: Ref, shape: Shape, key: Key) -> Value | None:
        """A field of what came in, as something that came in."""
        source = shape.source
        if source is None or len(source.fields) >= MAX_FIELDS_DEEP:
            return None if source is None else Value(taints=(Taint(source, frozenset(), None),))
        inner = source._replace(fields=(*source.fields, key))
        below: Ref = (*ref, key)
        value = Value(taints=(Taint(inner, frozenset(), None),), refs=(below,), origin=below)
        value = value._replace(taints=join_taints((*value.taints, *shape.rest.taints)))
        self.state.objects.setdefault(below, Shape(source=inner, rest=shape.rest))
        self.state.objects[ref] = msgspec.structs.replace(shape, fields={**shape.fields, key: value})
        return value

    def read_any(self, value: Value) -> Value:
        """Some element of a container; of a text a part of it."""
        parts: list[Value] = []
        for ref in value.refs:
            shape = self.shape(ref)
            parts += shape.fields.values()
            parts.append(shape.rest)
            if shape.source is not None:
                parts.append(Value(taints=(Taint(shape.source, frozenset(), None),)))
        found = join_all(part for part in parts if part != NOTHING)
        return found._replace(
            taints=join_taints((*found.taints, *value.taints)),
            paths=found.paths or self._extend(value.paths, "[]"),
            const=UNKNOWN,
            origin=(),
            is_literal=found.is_literal or (value.is_constant and not value.refs),
        )

    def deep(self, value: Value, level: int = 3) -> tuple[Taint, ...]:
        """What taints a value or anything that it holds. Each object is opened once: they hold one another."""
        if not value.refs or level == 0:
            return value.taints
        taints, opened, inside = list(value.taints), set[Ref](), [value]
        for _ in range(level):
            refs = dict.fromkeys(ref for held in inside for ref in held.refs if ref not in opened)
            opened.update(refs)
            shapes = [self.shape(ref) for ref in refs]
            inside = [held for shape in shapes for held in (*shape.fields.values(), shape.rest)]
            taints += [taint for held in inside for taint in held.taints]
        return join_taints(taints)

    def _allocate(self, form: Form, shape: Shape) -> Ref:
        ref: Ref = ("o", self.document.path, self.function.start, self.engine.number_form(form))
        self.state.objects[ref] = shape
        return ref

    @property
    def place(self) -> Place:
        return Place(self.document.path, self.document.number, *self.at)

    def _step(self, taint: Taint, kind: str, text: str) -> Taint:
        return taint._replace(step=add_step(taint.step, self.place, kind, text))

    def step_all(self, taints: Iterable[Taint], kind: str, text: str) -> tuple[Taint, ...]:
        return tuple(self._step(taint, kind, text) for taint in taints)

    def report(self, rule: str, place: Place, taint: Taint, what: str) -> None:
        """A flow where data comes from outside, a hit where it comes from a parameter."""
        key = (rule, place, taint.source)
        if isinstance(taint.source, RuleSource):
            known = self.flows.get(key)
            if known is None or known.taint is None or count_steps(taint.step) < count_steps(known.taint.step):
                self.flows[key] = Flow(rule, place, self.function.place, taint, what)
        else:
            hit = self.hits.get(key)
            if hit is None or count_steps(taint.step) < count_steps(hit.taint.step):
                self.hits[key] = Hit(rule, place, taint, what)


def _is_outside(taint: Taint) -> bool:
    return isinstance(taint.source, RuleSource)


def _mentions(form: object, name: str) -> bool:
    if isinstance(form, str):
        return form == name or form.startswith(f"{name}.")
    if isinstance(form, Operated):
        return _mentions(form.left, name) or _mentions(form.right, name)
    return False
