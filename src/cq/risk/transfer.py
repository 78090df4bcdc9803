"""What a summary of a function says of one call: what parameters get, what comes back, what changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from cq.model.code import Attribute, Boolean, Constant, Integer, MethodOf, Name, Site, Text
from cq.model.code import Value as Form
from cq.risk.guards import clear, clear_origin
from cq.risk.program import Function
from cq.risk.values import (
    MAX_VIEWS,
    NOTHING,
    UNKNOWN,
    Closure,
    Key,
    Origin,
    ParameterSource,
    Ref,
    Shape,
    Step,
    Taint,
    Value,
    add_step,
    join,
    join_all,
    join_shapes,
    join_taints,
    literal,
    set_field,
)

if TYPE_CHECKING:
    from cq.risk.interpret import Interpreter
    from cq.risk.run import Summary

MAX_TEXT = 60  # characters of a constant that is passed on as one


class Given(NamedTuple):
    """What a call is given."""

    args: list[Value]
    keywords: dict[str, Value]
    receiver: Value
    has_receiver: bool


def split_callee(callee: Form) -> tuple[Form, str]:
    """What a method is called on, and the method; None where nothing is."""
    match callee:
        case str() if "." in callee:
            base, _, name = callee.rpartition(".")
            return Name(base), name
        case str():
            return None, callee
        case Attribute(base=base, path=path):
            before, dot, name = path.rpartition(".")
            return (Attribute(base, before) if dot else base), name
        case MethodOf(receiver=receiver, name=name):
            return receiver, name
        case _:
            return None, ""


def bind(run: Interpreter, site: Site, function: Function, given: Given, receiver: Value | None) -> dict[int, Value]:
    """What each parameter gets, by number."""
    made = function.definition
    assert made is not None
    actuals: dict[int, Value] = {}
    args = list(given.args) if receiver is None else [receiver, *given.args]
    keywords = dict(given.keywords)
    spread = keywords.pop("**", None)
    for number, parameter in enumerate(made.parameters):
        if parameter.kind == "*":
            ref: Ref = ("rest", run.document.path, site.end, number)
            fields: dict[Key, Value] = dict(enumerate(args))
            run.state.objects[ref] = Shape(fields, NOTHING, len(args))
            actuals[number], args = Value(refs=(ref,)), []
        elif parameter.kind == "**":
            ref = ("rest", run.document.path, site.end, number)
            run.state.objects[ref] = Shape({**keywords}, spread or NOTHING)
            actuals[number], keywords = Value(refs=(ref,)), {}
        elif parameter.kind != "k" and args:
            actuals[number] = args.pop(0)
        elif parameter.name in keywords:
            actuals[number] = keywords.pop(parameter.name)
        elif spread is not None:
            actuals[number] = spread
        else:
            actuals[number] = _read_default(parameter.default)
    return actuals


def _read_default(form: Form) -> Value:
    match form:
        case Text(value=const) | Integer(value=const) | Boolean(value=const):
            return literal(const)
        case Constant(name="None"):
            return literal(None)
        case Constant():
            return Value(is_literal=True)
        case _:
            return NOTHING


def make_context(run: Interpreter, actuals: Mapping[int, Value]) -> dict[tuple[Key, ...], Value]:
    """What a summary is made for beside its parameters: constants and functions that are passed, and what rules say
    something about, in fields as well."""
    found: dict[tuple[Key, ...], Value] = {}
    for number, value in actuals.items():
        known = _keep_known(run, value)
        if known is not None:
            found[number,] = known
        for ref in value.refs[:1]:
            for key, held in run.shape(ref).fields.items():
                inner = _keep_known(run, held) if isinstance(key, str) and ref[0] != "p" else None
                if inner is not None and (inner.paths or inner.closures):
                    found[number, key] = inner._replace(const=UNKNOWN, prefix="")
    return found


def _keep_known(run: Interpreter, value: Value) -> Value | None:
    paths = tuple(path for path in value.paths if path in run.rules.beginnings)
    is_constant = value.is_constant and (not isinstance(value.const, str) or len(value.const) <= MAX_TEXT)
    if not (paths or is_constant or value.closures):
        return None
    const = value.const if is_constant else UNKNOWN
    return Value(const=const, prefix=value.prefix if is_constant else "", closures=value.closures, paths=paths)


class Transfer:
    """What a summary says, said of the arguments of one call."""

    def __init__(
        self, run: Interpreter, site: Site, function: Function, actuals: Mapping[int, Value], summary: Summary,
        doubt: float,
    ) -> None:  # fmt: skip
        self.run, self.site, self.function, self.actuals = run, site, function, actuals
        self.summary, self.doubt = summary, doubt
        self._moved: dict[Ref, Ref] = {}
        # What parameters are given, and ways that were put together: hits and results name the same again and again.
        self._given: dict[tuple[ParameterSource, bool], tuple[Taint, ...]] = {}
        self._ways: dict[tuple[int, int], Step | None] = {}
        self.text = f"{site.name or 'call'}(…)"

    def translate(self, value: Value, level: int = 3) -> Value:
        if not value.taints and not value.refs and not value.origin:
            return value
        refs: list[Ref] = []
        aliased: set[object] = set()
        for ref in value.refs:
            if ref[0] == "p":
                actual = self._reach(ref)
                refs += actual.refs
                aliased.add(ref)
                if not actual.refs and actual.closures:
                    value = value._replace(closures=actual.closures)
            elif level and ref in self.summary.objects:
                refs.append(self._move(ref, level))
            else:
                refs.append(ref)
        taints: list[Taint] = []
        for taint in value.taints:
            source = taint.source
            is_alias = isinstance(source, ParameterSource) and ("p", source.parameter, *source.fields) in aliased
            taints += self.substitute(taint, shallow=is_alias and taint.step is None)
        origin: Origin = ()
        if value.origin and value.origin[0] == "p" and isinstance(value.origin[1], int):
            actual = self.actuals.get(value.origin[1], NOTHING)
            if actual.origin and len(actual.origin) + len(value.origin) < MAX_VIEWS + 6:
                origin = (*actual.origin, *value.origin[2:])
        paths = value.paths
        number = value.origin[1] if len(value.origin) == 2 and value.origin[0] == "p" else None
        if isinstance(number, int) and not paths:
            paths = self.actuals.get(number, NOTHING).paths
        return value._replace(
            taints=join_taints(taints), refs=tuple(dict.fromkeys(refs))[:6], origin=origin, paths=paths
        )

    def _move(self, ref: Ref, level: int) -> Ref:
        """An object that the function made, as one of the caller."""
        known = self._moved.get(ref)
        if known is not None:
            return known
        number = len(self._moved)
        moved = self._moved[ref] = ("r", self.run.document.path, self.site.end, number)
        shape = self.summary.objects[ref]
        fields = {key: self.translate(held, level - 1) for key, held in shape.fields.items()}
        self.run.state.objects[moved] = Shape(fields, self.translate(shape.rest, level - 1), shape.size)
        return moved

    def _reach(self, ref: Ref) -> Value:
        """What an object of a parameter is to the caller."""
        number = ref[1]
        actual = self.actuals.get(number, NOTHING) if isinstance(number, int) else self._free(str(number))
        for key in ref[2:]:
            if isinstance(key, (str, int)):
                actual = self._read(actual, key)
        return actual

    def _read(self, value: Value, key: Key) -> Value:
        """What the function read off a parameter: `request.args` is a source where a request is passed."""
        return self.run.read_attribute(value, key) if isinstance(key, str) else self.run.field(value, key)

    def _free(self, name: str) -> Value:
        """A variable of a function around the one that is called."""
        around = self.function.around
        if around is not None and self.run.document.is_around(around, self.run.function):
            return self.run.read_name(name)
        return NOTHING

    def substitute(self, taint: Taint, *, shallow: bool = False) -> list[Taint]:
        source = taint.source
        if not isinstance(source, ParameterSource) or source.start != self.function.start:
            return [self._graft(taint, None)] if taint.step is not None else [taint]
        if source.function != self.function.place:
            return [taint]
        known = self._given.get((source, shallow))
        if known is None:
            if isinstance(source.parameter, str):
                actual = self._free(source.parameter)
            else:
                actual = self.actuals.get(source.parameter, NOTHING)
            for key in source.fields:
                actual = self._read(actual, key)
            known = self._given[source, shallow] = actual.taints if shallow else self.run.deep(actual)
        return [self._graft(taint, one) for one in known]

    def _graft(self, inner: Taint, outer: Taint | None) -> Taint:
        """The way in the function behind the way to it."""
        before = None if outer is None else outer.step
        way = (id(inner.step), id(before) if outer is not None else -1)
        if way not in self._ways:
            self._ways[way] = self._join_ways(inner.step, before, has_outer=outer is not None)
        step = self._ways[way]
        source = inner.source if outer is None else outer.source
        removed = inner.removed if outer is None else inner.removed | outer.removed
        doubt = self.doubt * inner.doubt * (1.0 if outer is None else outer.doubt)
        return Taint(source, removed, step, doubt)

    def _join_ways(self, inner: Step | None, before: Step | None, *, has_outer: bool) -> Step | None:
        steps: list[Step] = []
        while inner is not None:
            steps.append(inner)
            inner = inner.before
        step = add_step(before, self.run.place, "call", self.text) if has_outer else before
        for one in reversed(steps):
            step = add_step(step, one.place, one.kind, one.text)
        return step if has_outer else add_step(step, self.run.place, "return", self.text)

    def report_hits(self) -> None:
        run = self.run
        for hit in self.summary.hits:
            rule = run.rules.by_id[hit.rule]
            for taint in self.substitute(hit.taint):
                if getattr(rule, "kind", "") not in taint.removed:
                    run.report(hit.rule, hit.place, taint, hit.what)

    def apply_effects(self, *, strong: bool) -> None:
        run = self.run
        for ref in self.summary.effects:
            shape = self.summary.objects.get(ref)
            actual = self._reach(ref)
            if shape is None:
                continue
            made = {key: self.translate(held) for key, held in shape.fields.items() if not _is_own(held, ref, key)}
            rest = self.translate(shape.rest)
            refs = actual.refs
            number = ref[1]
            form = run.forms.get((self.site.end, number)) if isinstance(number, int) and len(ref) == 2 else None
            if not refs and isinstance(form, str) and "." not in form:
                run.write(form, actual, None, NOTHING)
                refs = run.state.names[form].refs if form in run.state.names else ()
            for held in refs:
                known = run.shape(held)
                for key, value in made.items():
                    known = set_field(known, key, value, strong=strong and len(refs) == 1)
                if rest != NOTHING:
                    known = join_shapes(known, Shape(rest=rest, size=-1))
                run.set_shape(held, known)

    def assign_outer(self) -> None:
        """What a function assigned to the variables of the one that runs, which it stands in."""
        around = self.function.around
        if around is None or around.key != self.run.function.key:
            return
        for name, value in self.summary.outer.items():
            known = self.run.state.names.get(name, NOTHING)
            self.run.assign(name, join(known, self.translate(value)))

    def clear(self, shown: Mapping[Origin, frozenset[str]]) -> None:
        for origin, kinds in shown.items():
            number = origin[1]
            actual = self.actuals.get(number) if isinstance(number, int) else None
            if actual is None or not kinds:
                continue
            if len(origin) == 2:
                clear(self.run, self.run.state, self.run.forms.get((self.site.end, number)), actual, kinds)
            elif actual.origin:
                clear_origin(self.run.state, (*actual.origin, *origin[2:]), kinds)


def _is_own(value: Value, ref: Ref, key: Key) -> bool:
    """A field that was only read."""
    source = value.taints[0].source if len(value.taints) == 1 else None
    return (
        isinstance(source, ParameterSource)
        and value.taints[0].step is None
        and ("p", source.parameter, *source.fields) == (*ref, key)
    )


def read_accessor(run: Interpreter, receiver: Value, kind: Closure, name: str) -> Value | None:
    """`form.text` of a property runs it; None where the class has no such."""
    function = run.engine.find_accessor(kind, name)
    if function is None:
        return None
    site = Site(-1, run.at[0], -2 - run.at[1], None, name=name)
    actuals = {0: receiver}
    summary = run.engine.summarize(function, make_context(run, actuals))
    shift = Transfer(run, site, function, actuals, summary, 1.0)
    shift.report_hits()
    return shift.translate(summary.result)


def call_back(run: Interpreter, site: Site, value: Value, args: list[Value]) -> Value:
    """A function that is handed over to be called."""
    found: list[Value] = []
    for closure in value.closures[:3]:
        document = run.engine.find_document(closure.path, closure.document)
        function = None if document is None else document.functions.get(closure.start)
        if function is None or function.definition is None:
            continue
        count = len(function.definition.parameters)
        given = Given((args * count)[:count] if len(args) == 1 else args, {}, NOTHING, False)
        actuals = bind(run, site, function, given, NOTHING if function.names_receiver else None)
        summary = run.engine.summarize(function, make_context(run, actuals))
        shift = Transfer(run, site, function, actuals, summary, 0.9)
        shift.report_hits()
        shift.apply_effects(strong=False)
        shift.assign_outer()
        found.append(shift.translate(summary.result))
    return join_all(found)
