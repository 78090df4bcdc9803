"""Follows one function, statement by statement, over values that stand for many: what it returns, what of its
parameters reaches a sink, what it changes. What it calls is known by summaries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from cq.model.code import (
    Attribute,
    Augmented,
    Awaited,
    Bind,
    Boolean,
    CallEnd,
    Caught,
    Choice,
    Constant,
    Defined,
    Dictionary,
    Each,
    Element,
    Entered,
    Exit,
    Imported,
    Integer,
    Item,
    Iterated,
    Joined,
    Lambda,
    Listing,
    MethodOf,
    Operated,
    Seen,
    SeenIn,
    Site,
    Slice,
    Spread,
    Store,
    Text,
    Typed,
    Unwrapped,
)
from cq.model.code import Value as Form
from cq.model.edge import Candidate
from cq.risk import body as code
from cq.risk.fold import fold
from cq.risk.guards import assume
from cq.risk.program import Function
from cq.risk.values import (
    MAX_VIEWS,
    NOTHING,
    UNKNOWN,
    Closure,
    Key,
    Origin,
    ParameterSource,
    Place,
    Ref,
    RuleSource,
    Shape,
    State,
    Step,
    Taint,
    Unknown,
    Value,
    add_step,
    blur,
    count_steps,
    join,
    join_all,
    join_shapes,
    join_states,
    join_taints,
    literal,
    set_field,
)

if TYPE_CHECKING:
    from cq.risk.engine import Engine
    from cq.risk.rules import Predicate, Rule, SinkRule

MAX_EFFORT = 60_000  # expressions of one function that are evaluated, again in loops
MAX_TURNS = 4  # of one loop, until nothing new is found
MAX_NESTED = 90  # expressions inside one another
MAX_PATH = 140  # characters of an access path
MAX_FIELDS_DEEP = 2
_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh", "cmd", "cmd.exe", "powershell", "pwsh"})


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


class Interpreter:
    """One run over one function."""

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
        # Of calls, by where they end: what was summarized and passed, what rules may call it and what they see.
        self.called: dict[int, list[tuple[Summary, Mapping[int, Value]]]] = {}
        self.asked_with: dict[int, tuple[Sequence[str], Sequence[Value], Mapping[str, Value], Value]] = {}
        self.forms: dict[tuple[int, object], Form] = {}  # by the end of a call and the number of an argument
        self._depth = 0
        self._tries: list[State] = []
        self._leaving: list[list[State]] = []  # by loop: states at `break` and `continue`
        self._sink_of_result = ""
        self.is_cut = False

    # -- the run -----------------------------------------------------------------------------------

    def run(self) -> Summary:
        made = self.function.definition
        self._enter()
        self._run(self.function.body.block)
        self.is_cut = self.is_cut or self.function.body.is_cut
        if self.state.alive:
            exits = any(
                isinstance(item, Exit) and item.kind == "return" for item in code.walk(self.function.body.block)
            )
            if made is not None and made.returns and not exits:  # a function that is an expression
                for form in made.returns:
                    self._leave(form, made.start, made.start)
            else:
                self.returned.append((literal(None), self.state))
                self.truths.append((None, self.state.cleared))
        return self._summarize(self.state)

    def _enter(self) -> None:
        made = self.function.definition
        if made is None:
            return
        entry = self.engine.find_entry(self.function)
        if entry is not None:
            self._sink_of_result = entry.rule.returns
        for number, parameter in enumerate(made.parameters):
            source = ParameterSource(self.function.place, self.function.start, number)
            given = self.context.get((number,))
            ref: Ref = ("p", number)
            taints = (Taint(source, frozenset(), None),)
            value = Value(taints=taints, refs=(ref,), origin=("p", number))
            self.state.objects[ref] = Shape(source=source)
            if parameter.kind == "*":
                value = value._replace(taints=())
            if given is not None:
                # A constant says what it is; texts may be all the same, so that the taint stays.
                value = value._replace(
                    const=given.const,
                    prefix=given.prefix,
                    closures=given.closures,
                    paths=given.paths,
                    is_literal=given.is_constant,
                )
            paths = self.engine.find_type(self.function, number)
            if entry is not None:
                paths = (*entry.types.get(number, ()), *paths)
                if number in entry.tainted:
                    place = Place(self.document.path, self.document.number, made.start, made.start)
                    step = Step(place, "source", f"parameter {parameter.name}", None)
                    outside = Taint(RuleSource(entry.rule.id, place), frozenset(), step)
                    value = value._replace(taints=(*value.taints, outside))
                    self.state.objects[ref] = Shape(source=source, rest=Value(taints=(outside,)))
            if paths:
                value = value._replace(paths=paths)
            self.state.names[parameter.name] = value
            for key, given in self.context.items():
                if key[0] == number and len(key) == 2 and isinstance(key[1], str):
                    field = self.field(value, key[1])
                    held = self.shape(ref)
                    kept = field._replace(paths=given.paths, closures=given.closures)
                    self.state.objects[ref] = msgspec.structs.replace(held, fields={**held.fields, key[1]: kept})

    def _run(self, block: code.Block) -> None:
        waiting: dict[int, Value] = {}  # values of a statement that binds several names, made before any is bound
        for number, item in enumerate(block):
            if not self.state.alive:
                return
            if self.effort > MAX_EFFORT:
                self.is_cut = True
                return
            match item:
                case Bind():
                    if id(item) not in waiting:
                        waiting = self._read_binds(block, number)
                    self._bind(item, waiting.get(id(item)))
                case Store():
                    self.at = (item.start, max(item.since, item.start))
                    self._store(item)
                case Site():
                    self.at = (item.start, item.end)
                    self.value(CallEnd(item.end))
                case Exit():
                    self.at = (item.start, item.end)
                    self._exit(item)
                case code.Raised():
                    self.at = (item.start, item.start)
                    self.value(item.value)
                    self.state.alive = False
                case code.Asserted():
                    assume(self, self.state, item.condition, True)
                case code.Group():
                    self._run_group(item)
                case code.Loop():
                    self._run_loop(item)
                case code.Protected():
                    self._run_protected(item)

    def _run_group(self, group: code.Group) -> None:
        rest, outcomes = self.state, list[State]()
        for condition, block in group.branches:
            if not rest.alive:
                break
            self.state = rest.copy()
            if condition is not None:
                assume(self, self.state, condition, True)
            if self.state.alive:
                self._run(block)
                outcomes.append(self.state)
            self.state = rest
            if condition is not None:
                assume(self, rest, condition, False)
            else:
                rest.alive = False
        if group.is_whole:
            rest.alive = False
        outcomes.append(rest)
        joined = outcomes[0]
        for outcome in outcomes[1:]:
            joined = join_states(joined, outcome)
        self.state = joined

    def _run_loop(self, loop: code.Loop) -> None:
        before = self.state
        left: list[State] = []
        self._leaving.append(left)
        out = before.copy()
        if loop.condition is not None:
            assume(self, out, loop.condition, False)
        for _ in range(MAX_TURNS):
            for end in [end for end in self.results if loop.start <= end <= loop.end]:
                del self.results[end]
            self.state = before.copy()
            if loop.condition is not None:
                assume(self, self.state, loop.condition, True)
            if self.state.alive:
                self._run(loop.body)
            after = self.state
            if loop.condition is not None and after.alive:
                done = after.copy()
                self.state = done
                assume(self, done, loop.condition, False)
                out = join_states(out, done)
            else:
                out = join_states(out, after)
            joined = join_states(before, after)
            for state in left:
                joined, out = join_states(joined, state), join_states(out, state)
            left.clear()
            if joined.names == before.names and joined.objects == before.objects:
                break
            before = joined
        self._leaving.pop()
        self.state = out

    def _run_protected(self, item: code.Protected) -> None:
        before = self.state.copy()
        self._tries.append(before)
        self._run(item.body)
        self._tries.pop()
        after = self.state
        outcomes = [after]
        for handler in item.handlers:
            self.state = before.copy()
            self.state.alive = True
            self._run(handler)
            outcomes.append(self.state)
        joined = outcomes[0]
        for outcome in outcomes[1:]:
            joined = join_states(joined, outcome)
        self.state = joined

    # -- statements ----------------------------------------------------------------------------------

    def _read_binds(self, block: code.Block, number: int) -> dict[int, Value]:
        """`a, b = b, a`: what each name of the statement gets."""
        first, found = block[number], dict[int, Value]()
        assert isinstance(first, Bind)
        self.at = (first.start, first.start)
        for item in block[number : number + 60]:
            if not (isinstance(item, Bind) and item.start == first.start):
                break
            found[id(item)] = self.value(item.value)
        return found

    def _bind(self, bind: Bind, value: Value | None) -> None:
        start = max(bind.start, 0)
        self.at = (start, start)
        value = NOTHING if value is None else value
        if isinstance(bind.value, Imported):
            value = self.engine.import_value(self.document, bind)
        elif isinstance(bind.value, Defined):
            value = Value(closures=(Closure(self.document.path, self.document.number, bind.value.start),))
        if bind.type is not None and not value.paths:
            paths = self.engine.find_annotated(self.function, bind.type)
            value = value._replace(paths=paths) if paths else value
        self.assign(bind.name, value, bind.value, f"{bind.name} = …" if not bind.inner else bind.name)

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

    def _store(self, store: Store) -> None:
        value = self.value(store.value)
        base = self.value(store.base)
        key_value = self.value(store.key) if store.key is not None else NOTHING
        key: Key | None = store.name
        if store.name is None:
            key = key_value.const if isinstance(key_value.const, (str, int)) else None
        if value.taints:
            target = f".{store.name}" if store.name is not None else "[…]"
            value = value._replace(taints=tuple(self._step(taint, "assign", f"{target} = …") for taint in value.taints))
        for path in base.paths:
            name = f"{path}.{store.name}=" if store.name is not None else f"{path}[]="
            self.check_sinks((name,), None, [value, key_value], {}, base)
        self.write(store.base, base, key, value)

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

    def _exit(self, item: Exit) -> None:
        if item.kind == "return":
            self._leave(item.value, item.start, item.end)
        elif self._leaving:
            self._leaving[-1].append(self.state.copy())
        self.state.alive = False

    def _leave(self, form: Form, start: int, end: int) -> None:
        self.at = (start, end)
        value = self.value(form)
        if not self.state.alive:
            return
        if self._sink_of_result and value.taints:
            self._report_result(value)
        known = value.const
        yes, no = (None if known is not UNKNOWN and bool(known) is not wanted else wanted for wanted in (True, False))
        truth: list[Mapping[Origin, frozenset[str]] | None] = []
        for wanted, possible in ((True, yes), (False, no)):
            if possible is None:
                truth.append(None)
                continue
            held = self.state
            self.state = held.copy()
            if form is not None:
                assume(self, self.state, form, wanted)
            truth.append(self.state.cleared if self.state.alive else None)
            self.state = held
        self.truths.append((truth[0], truth[1]))
        self.returned.append((value, self.state.copy()))

    def _report_result(self, value: Value) -> None:
        for rule in self.rules.sinks.get(self._sink_of_result, ()):
            self._report(rule, value.taints, "returned")

    # -- expressions -----------------------------------------------------------------------------------

    def value(self, form: Form) -> Value:
        """What an expression gives."""
        if form is None:
            return NOTHING
        self.effort += 1
        if self._depth > MAX_NESTED or self.effort > MAX_EFFORT:
            self.is_cut = True
            return NOTHING
        self._depth += 1
        try:
            if isinstance(form, str):
                return self._name(form)
            if isinstance(form, int):
                return self._result(form)
            return self._form(form)
        finally:
            self._depth -= 1

    def _form(self, form: Form) -> Value:
        match form:
            case Text(value=const) | Integer(value=const) | Boolean(value=const):
                return literal(const)
            case Constant(name="None"):
                return literal(None)
            case Constant():
                return Value(is_literal=True)
            case Listing(elements=elements):
                return self._listing(form, elements)
            case Dictionary():
                return self._dictionary(form)
            case Each(element=element):
                return self._each(form, element)
            case Joined(parts=parts):
                return self._concatenate([self.value(part) for part in parts])
            case Attribute(base=base, path=path):
                found = self.value(base)
                for name in path.split("."):
                    found = self.read_attribute(found, name)
                return found
            case MethodOf(receiver=receiver, name=name):
                return self.read_attribute(self.value(receiver), name)
            case Element(base=base, keys=keys):
                return self._element(self.value(base), keys)
            case Slice(base=base, bounds=bounds):
                return self._slice(self.value(base), bounds)
            case Choice():
                return self._choice(form)
            case Operated():
                return self._operated(form)
            case Iterated(value=inner):
                return self.read_any(self.value(inner))
            case Entered(value=inner) | Awaited(value=inner) | Unwrapped(value=inner):
                return self.value(inner)
            case Spread(value=inner) | Typed(value=inner) | Seen(value=inner):
                return self.value(inner)
            case SeenIn() | Caught() | Augmented():
                return NOTHING
            case Lambda(start=start) | Defined(start=start):
                return Value(closures=(Closure(self.document.path, self.document.number, start),))
            case Imported() | Item():
                return NOTHING
            case _:
                return NOTHING

    def _name(self, form: str) -> Value:
        head, *rest = form.split(".")
        found = self.read_name(head)
        for name in rest:
            found = self.read_attribute(found, name)
        return found

    def read_name(self, name: str) -> Value:
        known = self.state.names.get(name)
        if known is not None:
            return known
        made = self.function.definition
        if made is not None and not made.anonymous and (self.function.scope, name) in self.document.binds:
            return NOTHING  # not bound yet
        found = self.engine.find_outer(self, name)
        return self._read_source(found) if found.paths else found

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
        found = self.field(value, name)
        paths = self._extend(value.paths, f".{name}")
        if paths:
            found = found._replace(paths=paths)
            return self._read_source(found)
        return found

    def _extend(self, paths: tuple[str, ...], end: str) -> tuple[str, ...]:
        kept = (path for path in paths if len(path) < MAX_PATH and not path.startswith("flag:") and path != "text")
        return tuple(dict.fromkeys(self.rules.settle(f"{path}{end}") for path in kept))

    def field(self, value: Value, key: Key) -> Value:
        """What an object holds under a key, and what it is itself tainted with."""
        found = self._held(value, key)
        own = value.taints if not self.is_object(value) else tuple(t for t in value.taints if _is_outside(t))
        if own:
            found = found._replace(taints=join_taints((*found.taints, *own)))
        if not found.origin and value.origin and len(value.origin) < MAX_VIEWS + 2:
            found = found._replace(origin=(*value.origin, f".{key}"))
        return found

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
                from cq.risk.calls import read_accessor

                known = read_accessor(self, Value(refs=(ref,)), shape.kind, key)
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
        """What taints a value or anything that it holds."""
        if not value.refs or level == 0:
            return value.taints
        taints = list(value.taints)
        for ref in value.refs:
            shape = self.shape(ref)
            for held in (*shape.fields.values(), shape.rest):
                taints += self.deep(held, level - 1)
        return join_taints(taints)

    def _listing(self, form: Form, elements: Sequence[Form]) -> Value:
        fields: dict[Key, Value] = {}
        rest, size = NOTHING, 0
        for element in elements:
            value = self.value(element)
            if isinstance(element, Spread):
                rest, size = join(rest, self.read_any(value)) if rest != NOTHING else self.read_any(value), -1
            elif size >= 0 and size < 60:
                fields[size] = value
                size += 1
            else:
                rest, size = join(rest, value), -1
        shape = Shape(fields, rest, size)
        if size < 0:
            shape = blur(shape)
        ref = self._allocate(form, shape)
        return Value(refs=(ref,))

    def _dictionary(self, form: Dictionary) -> Value:
        shape = Shape()
        for key, element in zip(form.keys, form.values, strict=True):
            value = self.value(element)
            if key is None:
                for ref in value.refs:
                    inner = self.shape(ref)
                    for name, held in inner.fields.items():
                        shape = set_field(shape, name, held)
                    if inner.rest != NOTHING:
                        shape = set_field(shape, None, inner.rest)
                if value.taints:
                    shape = set_field(shape, None, Value(taints=value.taints))
                continue
            known = self.value(key)
            name = known.const if isinstance(known.const, (str, int)) else None
            shape = set_field(shape, name, value)
            if known.taints:
                shape = set_field(shape, None, Value(taints=known.taints))
        return Value(refs=(self._allocate(form, shape),))

    def _each(self, form: Each, element: Form) -> Value:
        if form.kind == "dict" and isinstance(element, Seen) and isinstance(element.value, Dictionary):
            return self.value(element.value)
        value = self.value(element)
        return Value(refs=(self._allocate(form, Shape(rest=value)),))

    def _allocate(self, form: Form, shape: Shape) -> Ref:
        ref: Ref = ("o", self.document.path, self.function.start, self.engine.number_form(form))
        self.state.objects[ref] = shape
        return ref

    def _concatenate(self, parts: Sequence[Value]) -> Value:
        text = ""
        for part in parts:
            if isinstance(part.const, (str, int)) and not isinstance(part.const, bool):
                text += str(part.const)
            else:
                break
        else:
            return literal(text) if len(text) < 4000 else Value(prefix=text[:200], is_literal=True)
        stop = next(part for part in parts if not isinstance(part.const, (str, int)))
        taints = join_taints(taint for part in parts for taint in self.deep(part))
        is_literal = all(part.is_literal for part in parts)
        return Value(prefix=(text + stop.prefix)[:200], taints=taints, is_literal=is_literal, paths=("text",))

    def _element(self, base: Value, keys: Sequence[Form]) -> Value:
        key = self.value(keys[0]) if len(keys) == 1 else NOTHING
        if (
            isinstance(base.const, str)
            and isinstance(key.const, int)
            and -len(base.const) <= key.const < len(base.const)
        ):
            return literal(base.const[key.const])
        found = self.field(base, key.const) if isinstance(key.const, (str, int)) else self.read_any(base)
        # A table of constants gives one of them, whoever chose it.
        paths = self._extend(base.paths, "[]")
        found = found._replace(paths=paths or found.paths)
        return self._read_source(found) if paths else found

    def _slice(self, base: Value, bounds: tuple[int | None, int | None] | None) -> Value:
        if isinstance(base.const, str) and bounds is not None:
            return literal(base.const[slice(*bounds)])
        if not base.refs:
            return base._replace(const=UNKNOWN, prefix="", origin=(), is_literal=base.is_literal)
        if len(base.refs) == 1 and bounds is not None:
            shape = self.shape(base.refs[0])
            if shape.size >= 0:
                kept = [shape.fields.get(at, NOTHING) for at in range(shape.size)][slice(*bounds)]
                fields: dict[Key, Value] = dict(enumerate(kept))
                ref = ("slice", *base.refs[0], bounds)[:9]
                self.state.objects[ref] = Shape(fields, NOTHING, len(kept))
                return Value(refs=(ref,), taints=base.taints)
        return Value(taints=join_taints((*base.taints, *self.read_any(base).taints)), refs=base.refs)

    def _choice(self, form: Choice) -> Value:
        if form.condition is None:
            return join_all([self.value(option) for option in form.options])
        held, found = self.state, list[Value]()
        outcomes: list[State] = []
        for option, wanted in zip(form.options, (True, False), strict=False):
            self.state = held.copy()
            assume(self, self.state, form.condition, wanted)
            if self.state.alive:
                found.append(self.value(option))
                self.state.alive = True
                outcomes.append(self.state)
        self.state = held
        for outcome in outcomes:
            held.objects.update((ref, shape) for ref, shape in outcome.objects.items() if ref not in held.objects)
        return join_all(found)

    def _operated(self, form: Operated) -> Value:
        if form.operator in ("and", "or", "??", "&&", "||"):
            return self._combine(form)
        left, right = self.value(form.left), self.value(form.right)
        known = fold(form.operator, left, right, form.right is None)
        if not isinstance(known, Unknown):
            return literal(known)
        match form.operator:
            case "+":
                if any(ref[0] != "p" for ref in (*left.refs, *right.refs)):  # of what comes in nobody knows: a text
                    shape = Shape(rest=join(self.read_any(left), self.read_any(right)))
                    return Value(refs=(self._allocate(form, shape),))
                return self._concatenate([left, right])
            case "%" if left.prefix or left.is_literal or left.paths == ("text",):
                before = left.prefix.partition("%")[0]
                taints = join_taints((*left.taints, *self.deep(right)))
                literal_all = left.is_literal and right.is_literal
                return Value(prefix=before, taints=taints, is_literal=literal_all, paths=("text",))
            case "/" if left.paths or left.refs or left.taints or right.taints:  # pathlib
                taints = join_taints((*left.taints, *right.taints))
                return Value(prefix=left.prefix, taints=taints, paths=left.paths)
            case "*" | "|" | "&" if left.taints or right.taints or left.refs or right.refs:
                refs = (*left.refs, *right.refs)[:4]
                return Value(taints=join_taints((*left.taints, *right.taints)), refs=refs)
            case _:
                return Value()  # a number, or true or false

    def _combine(self, form: Operated) -> Value:
        """`a and b`, `a or b`: the second is asked where the first leaves it open."""
        left = self.value(form.left)
        is_and = form.operator in ("and", "&&")
        if left.is_constant:
            if bool(left.const) is is_and and form.operator != "??":
                return self.value(form.right)
            return left
        held = self.state
        self.state = held.copy()
        assume(self, self.state, form.left, is_and)
        right = self.value(form.right) if self.state.alive else None
        held.objects.update((ref, shape) for ref, shape in self.state.objects.items() if ref not in held.objects)
        self.state = held
        if right is None:
            return left
        if is_and:  # where it is the first, it is false: nothing that harms
            return right._replace(const=UNKNOWN, is_literal=right.is_literal)
        return join(left, right)

    # -- calls -----------------------------------------------------------------------------------------

    def _result(self, end: int) -> Value:
        known = self.results.get(end)
        if known is None:
            site = self.document.site(end)
            if site is None:
                return NOTHING
            self.results[end] = NOTHING  # code that is broken may name itself
            before, self.at = self.at, (site.start, site.end)
            known = self.results[end] = self._call(site)
            self.at = before
        return known

    def _call(self, site: Site) -> Value:
        from cq.risk.calls import call

        return call(self, site)

    # -- what is found -----------------------------------------------------------------------------------

    @property
    def place(self) -> Place:
        return Place(self.document.path, self.document.number, *self.at)

    def _step(self, taint: Taint, kind: str, text: str) -> Taint:
        return taint._replace(step=add_step(taint.step, self.place, kind, text))

    def step_all(self, taints: Iterable[Taint], kind: str, text: str) -> tuple[Taint, ...]:
        return tuple(self._step(taint, kind, text) for taint in taints)

    def check_sinks(
        self,
        names: Sequence[str],
        site: Site | None,
        args: Sequence[Value],
        keywords: Mapping[str, Value],
        receiver: Value,
    ) -> None:
        told: set[str] = set()  # kinds that a surer rule has told already
        for name in names:
            for rule in self.rules.sinks.get(name, ()):
                if rule.kind in told:
                    continue
                if not all(self.meets(predicate, args, keywords, receiver) for predicate in rule.when):
                    continue
                self.engine.note_rule(self.engine.sinks_seen, rule.id, self.place)
                if not rule.args:
                    self._report_fact(rule, site)
                    told.add(rule.kind)
                for argument in rule.args:
                    for value in self.select(argument, args, keywords, receiver):
                        taints = () if rule.needs_prefix and has_host(value.prefix) else self.deep(value)
                        if taints and self._report(rule, taints, site.name if site is not None else name):
                            told.add(rule.kind)

    def select(
        self, argument: int | str, args: Sequence[Value], keywords: Mapping[str, Value], receiver: Value
    ) -> Iterator[Value]:
        if argument == "receiver":
            yield receiver
        elif argument == "*":
            yield from args
            yield from keywords.values()
        elif isinstance(argument, int):
            if argument < len(args):
                yield args[argument]
            elif args and args[-1].paths == ("*",):
                yield args[-1]
        elif argument == "own-0":
            yield from [value._replace(refs=()) for value in args[:1]]
        elif argument == "shell-text":
            for value in args[:1]:
                yield from self._find_shell_text(value)
        elif argument in keywords:
            yield keywords[argument]

    def _find_shell_text(self, value: Value) -> Iterator[Value]:
        """What a shell is told to run: `["sh", "-c", text]`."""
        for ref in value.refs:
            shape = self.shape(ref)
            words = [shape.fields.get(at, NOTHING).const for at in (0, 1)]
            if isinstance(words[0], str) and words[0].rpartition("/")[2] in _SHELLS and words[1] in ("-c", "/c", "/C"):
                yield shape.fields.get(2, shape.rest)

    def meets(
        self, predicate: Predicate, args: Sequence[Value], keywords: Mapping[str, Value], receiver: Value
    ) -> bool:
        names = (predicate.arg, *((predicate.name,) if predicate.name else ()))
        value = next((found for name in names for found in self.select(name, args, keywords, receiver)), None)
        if value is None and "**" in keywords and isinstance(predicate.arg, str):
            value = NOTHING
        if predicate.has and not any(self._fits(value, wanted) for wanted in predicate.has):
            return False
        if any(self._fits(value, wanted) for wanted in predicate.lacks):
            return False
        if predicate.matches:
            return value is not None and self.engine.matches(predicate.matches, value.prefix)
        return True

    def _fits(self, value: Value | None, wanted: str | int | bool) -> bool:
        if value is None:
            return wanted == "absent"
        if isinstance(wanted, str):
            if wanted == "absent":
                return False
            if wanted == "list":
                return bool(value.refs)
            if wanted == "text":
                return not value.refs
            if wanted == "unknown":
                return not value.is_constant
            if wanted == "constant":
                return value.is_literal
            if wanted == "null":
                return value.is_constant and value.const is None
            if wanted.startswith("path:"):
                return wanted[5:] in value.paths
            if wanted.startswith("flag:"):
                return any(wanted[5:] in path for path in value.paths)
            return isinstance(value.const, str) and value.const.lower() == wanted.lower()
        return value.const == wanted and type(value.const) is type(wanted)

    def _report_fact(self, rule: SinkRule, site: Site | None) -> None:
        place = self.place if site is None else self.place._replace(start=site.start, end=site.end)
        self.flows.setdefault((rule.id, place), Flow(rule.id, place, self.function.place, None, ""))

    def _report(self, rule: SinkRule, taints: Iterable[Taint], what: str) -> bool:
        harmful = [taint for taint in taints if rule.kind not in taint.removed]
        for taint in harmful:
            self.report(rule.id, self.place, self._step(taint, "sink", what), what)
        return bool(harmful)

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

    # -- the summary ---------------------------------------------------------------------------------------

    def _summarize(self, final: State) -> Summary:
        states = [state for _, state in self.returned]
        result = join_all([value for value, _ in self.returned])
        end = states[0] if states else final
        for state in states[1:]:
            end = join_states(end, state)
        made = self.function.definition
        if made is not None and made.yields:
            self.state = end.copy()
            self.state.alive = True
            given = [self.value(form) for form in made.yields]
            ref: Ref = ("yielded", self.function.start)
            end = self.state
            end.objects[ref] = Shape(rest=join_all(given))
            result = Value(refs=(ref,))
        self.final = end
        effects = tuple(ref for ref in self.touched if ref[0] == "p")
        true, false = (_intersect([truth[side] for truth in self.truths]) for side in (0, 1))
        after = {origin: kinds for origin, kinds in end.cleared.items() if origin and origin[0] == "p"}
        return Summary(result, end.objects, effects, tuple(self.hits.values()), true, false, after, not self.returned)


def _intersect(cleared: list[Mapping[Origin, frozenset[str]] | None]) -> dict[Origin, frozenset[str]]:
    """What holds wherever the answer can be this one."""
    known = [each for each in cleared if each is not None]
    if not known:
        return {}
    first, *others = known
    found = {origin: kinds for origin, kinds in first.items() if origin and origin[0] == "p"}
    for other in others:
        found = {origin: kinds & other[origin] for origin, kinds in found.items() if origin in other}
    return {origin: kinds for origin, kinds in found.items() if kinds}


def _is_outside(taint: Taint) -> bool:
    return isinstance(taint.source, RuleSource)


def has_host(prefix: str) -> bool:
    """Whether a text begins with a host, or with a path on the same one: `https://a.example/`, `/next`."""
    scheme, found, rest = prefix.partition("://")
    if found:
        return "/" in rest and bool(scheme)
    return prefix.startswith("/") and len(prefix) > 1 and prefix[1] not in "/\\"


def _mentions(form: object, name: str) -> bool:
    if isinstance(form, str):
        return form == name or form.startswith(f"{name}.")
    if isinstance(form, Operated):
        return _mentions(form.left, name) or _mentions(form.right, name)
    return False
