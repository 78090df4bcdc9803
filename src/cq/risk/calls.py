"""What a call does: what is called, by rules and by summaries, and what its arguments become there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from cq.model.code import Attribute, Boolean, Constant, Integer, MethodOf, Name, Site, Spread, Text
from cq.model.code import Value as Form
from cq.risk.containers import call_container
from cq.risk.guards import ALL, clear, clear_origin, remove
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
    join_all,
    join_shapes,
    join_taints,
    literal,
    set_field,
)

if TYPE_CHECKING:
    from cq.risk.interpret import Interpreter
    from cq.risk.rules import PropagatorRule
    from cq.risk.run import Summary

MAX_TEXT = 60  # characters of a constant that is passed on as one
MAX_TARGETS = 5
_FOLDED = {"lower": str.lower, "upper": str.upper, "strip": str.strip, "title": str.title}


class Given(NamedTuple):
    """What a call is given."""

    args: list[Value]
    keywords: dict[str, Value]
    receiver: Value
    has_receiver: bool


def call(run: Interpreter, site: Site) -> Value:
    receiver_form, name = _split(site.callee)
    has_receiver = receiver_form is not None
    receiver = run.value(receiver_form) if has_receiver else NOTHING
    if name == "super" and not has_receiver and site.name == "super":
        return _find_self(run)
    callee = run.read_attribute(receiver, name) if has_receiver else run.value(site.callee)
    given = Given(*_read_arguments(run, site), receiver, has_receiver)
    run.at = (site.start, site.end)
    names = _find_names(run, callee, receiver, name, has_receiver)
    run.asked_with[site.end] = (names, given.args, given.keywords, receiver)
    targets = _find_targets(run, site, callee)
    run.check_sinks(names, site, given.args, given.keywords, receiver)
    found = _call_functions(run, site, targets, given) if targets else _call_outside(run, site, names, given, name)
    paths = tuple(
        dict.fromkeys(run.rules.settle(f"{one}()") for one in names if not one.startswith("?.") and len(one) < 140)
    )
    if paths:
        found = found._replace(paths=(*found.paths, *(path for path in paths if path not in found.paths))[:4])
    for one in names:
        found = _sanitize(run, one, found, given)
        source = run.rules.sources.get(one)
        if source is not None:
            found = run.make_source(found, source)
            for argument in source.fills:
                for number, value in enumerate(given.args):
                    if number == argument or argument == "*":
                        form = site.args[number] if number < len(site.args) else None
                        run.write(form, value, None, run.make_source(NOTHING, source))
        _clear_after(run, site, one, given)
        found = _mark(run, site, one, found, given)
    return found


def _split(callee: Form) -> tuple[Form, str]:
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


def _find_self(run: Interpreter) -> Value:
    made = run.function.definition
    if made is None or not made.parameters or not run.function.takes_receiver:
        return NOTHING
    return run.state.names.get(made.parameters[0].name, NOTHING)


def _read_arguments(run: Interpreter, site: Site) -> tuple[list[Value], dict[str, Value]]:
    args: list[Value] = []
    for number, form in enumerate(site.args):
        value = run.value(form)
        if isinstance(form, Spread):
            shapes = [run.shape(ref) for ref in value.refs]
            if len(shapes) == 1 and shapes[0].size >= 0:
                args += [shapes[0].fields.get(at, NOTHING) for at in range(shapes[0].size)]
            else:
                inner = run.read_any(value)
                args += [inner] * 3  # any of those that follow
            continue
        run.forms[site.end, number] = form
        args.append(value)
    keywords: dict[str, Value] = {}
    for name, form in site.keywords:
        value = run.value(form)
        if name == "**":
            for ref in value.refs:
                shape = run.shape(ref)
                keywords.update((str(key), held) for key, held in shape.fields.items())
                if shape.rest.taints:
                    keywords["**"] = shape.rest
            if value.taints or not value.refs or any(run.shape(ref).source for ref in value.refs):
                keywords["**"] = Value(taints=value.taints)  # what else there is nobody knows
        else:
            keywords[name] = value
    return args, keywords


def _find_names(run: Interpreter, callee: Value, receiver: Value, name: str, has_receiver: bool) -> tuple[str, ...]:
    """How rules may call what is called, the surest first."""
    found = list(callee.paths)
    if has_receiver and name and not any(map(_is_module, receiver.paths)):
        found.append(f"?.{name}")
    return tuple(dict.fromkeys(found))


def _is_module(path: str) -> bool:
    """A path that is no call and no element: of a module, or of what it offers."""
    return "()" not in path and not path.endswith("]") and path != "text" and not path.startswith("flag:")


def _find_targets(run: Interpreter, site: Site, callee: Value) -> list[tuple[Function, float, bool]]:
    """Functions of the repository that may run, how likely, and whether they make an object."""
    found: dict[object, tuple[Function, float, bool]] = {}
    for closure in callee.closures:
        document = run.engine.find_document(closure.path, closure.document)
        made = None if document is None else document.definition_at.get(closure.start)
        if document is None or made is None:
            continue
        if made.kind == "function":
            function = document.functions[made.start]
            found[function.key] = (function, 1.0, False)
        else:
            maker = document.find_member(made, "__init__") or document.find_member(made, "constructor")
            if maker is not None:
                found[maker.key] = (maker, 1.0, True)
    if found:
        return list(found.values())
    number = run.document.site_at.get(site.end)
    for each in () if number is None else run.engine.find_callees(run.document, number):
        function = run.engine.find_function(each.place)
        if function is not None:
            is_made = function.definition is not None and function.definition.name in ("__init__", "constructor")
            explicit = site.name in ("__init__", "constructor") or site.kind == "super"
            found[function.key] = (function, each.doubt, is_made and not explicit)
    return list(found.values())[:MAX_TARGETS]


# -- the repository's own functions --------------------------------------------------------------------


def _call_functions(
    run: Interpreter, site: Site, targets: Sequence[tuple[Function, float, bool]], given: Given
) -> Value:
    results: list[Value] = []
    ends = 0
    called: list[tuple[Summary, Mapping[int, Value]]] = []
    for function, doubt, is_made in targets:
        receiver: Value | None = None
        made_value: Value | None = None
        if is_made:
            ref: Ref = ("new", run.document.path, site.end)
            holder = function.holder
            kind = None if holder is None else Closure(function.document.path, function.document.number, holder.start)
            run.state.objects[ref] = Shape(kind=kind)
            receiver = made_value = Value(refs=(ref,))
        elif function.takes_receiver and given.has_receiver and not _is_class(given.receiver):
            receiver = given.receiver
        actuals = _bind(run, site, function, given, receiver)
        summary = run.engine.summarize(function, _make_context(run, actuals))
        called.append((summary, actuals))
        shift = _Transfer(run, site, function, actuals, summary, doubt * (1 if len(targets) == 1 else 0.9))
        shift.apply_effects(strong=len(targets) == 1)
        shift.report_hits()
        ends += summary.is_endless
        results.append(made_value if made_value is not None else shift.translate(summary.result))
        if len(targets) == 1:
            shift.clear(summary.after)
    run.called[site.end] = called
    if ends == len(targets) and ends:
        run.state.alive = False
    return join_all(results)


def _is_class(value: Value) -> bool:
    return bool(value.closures) and not value.refs


def _bind(run: Interpreter, site: Site, function: Function, given: Given, receiver: Value | None) -> dict[int, Value]:
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


def _make_context(run: Interpreter, actuals: Mapping[int, Value]) -> dict[tuple[Key, ...], Value]:
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


class _Transfer:
    """What a summary says, said of the arguments of one call."""

    def __init__(
        self, run: Interpreter, site: Site, function: Function, actuals: Mapping[int, Value], summary: Summary,
        doubt: float,
    ) -> None:  # fmt: skip
        self.run, self.site, self.function, self.actuals = run, site, function, actuals
        self.summary, self.doubt = summary, doubt
        self._moved: dict[Ref, Ref] = {}
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
        if isinstance(source.parameter, str):
            actual = self._free(source.parameter)
        else:
            actual = self.actuals.get(source.parameter, NOTHING)
        for key in source.fields:
            actual = self._read(actual, key)
        taints = actual.taints if shallow else self.run.deep(actual)
        return [self._graft(taint, one) for one in taints]

    def _graft(self, inner: Taint, outer: Taint | None) -> Taint:
        """The way in the function behind the way to it."""
        step = None if outer is None else outer.step
        kind = "call" if outer is not None else "return"
        steps: list[Step] = []
        at = inner.step
        while at is not None:
            steps.append(at)
            at = at.before
        if outer is not None:
            step = add_step(step, self.run.place, kind, self.text)
        for one in reversed(steps):
            step = add_step(step, one.place, one.kind, one.text)
        if outer is None:
            step = add_step(step, self.run.place, kind, self.text)
        source = inner.source if outer is None else outer.source
        removed = inner.removed if outer is None else inner.removed | outer.removed
        doubt = self.doubt * inner.doubt * (1.0 if outer is None else outer.doubt)
        return Taint(source, removed, step, doubt)

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
    summary = run.engine.summarize(function, _make_context(run, actuals))
    shift = _Transfer(run, site, function, actuals, summary, 1.0)
    shift.report_hits()
    return shift.translate(summary.result)


# -- what comes from outside ---------------------------------------------------------------------------


def _call_outside(run: Interpreter, site: Site, names: Sequence[str], given: Given, name: str) -> Value:
    receiver = given.receiver
    known = _FOLDED.get(name)
    if known is not None and isinstance(receiver.const, str) and not given.args:
        return literal(known(receiver.const))
    for one in names:
        rule = run.rules.propagators.get(one)
        if one.startswith("?.") and receiver.refs:
            held = call_container(run, site, name, given.args, given.keywords, receiver)
            if held is not None:
                return held
        if rule is not None:
            return _propagate(run, site, rule, given, names)
    for value in (*given.args, *given.keywords.values()):
        if value.closures:
            _call_back(run, site, value, [Value(taints=_all_taints(run, given))])
    taints = _all_taints(run, given)
    if taints and names and not any(run.rules.is_about(one) for one in names):
        run.engine.note_unmodelled(names[0])
    origin = _view(run, receiver if given.has_receiver and receiver.taints else _first(given), names)
    return Value(taints=run.step_all(taints, "call", f"{site.name}(…)"), origin=origin)


def _first(given: Given) -> Value:
    return next((value for value in given.args if value.taints), NOTHING)


def _view(run: Interpreter, value: Value, names: Sequence[str]) -> Origin:
    """What a call gives of a value is a view of it."""
    if not value.taints or not names or len(value.origin) >= MAX_VIEWS + 2:
        return ()
    return (
        *(value.origin or ("call", run.place)),
        f"view:{names[0] if not names[0].startswith('text') else names[-1]}",
    )


def _all_taints(run: Interpreter, given: Given) -> tuple[Taint, ...]:
    taints = [taint for value in (*given.args, *given.keywords.values()) for taint in run.deep(value)]
    if given.has_receiver:
        taints += run.deep(given.receiver)
    return join_taints(taints)


def _propagate(run: Interpreter, site: Site, rule: PropagatorRule, given: Given, names: Sequence[str]) -> Value:
    values = [
        value for argument in rule.takes for value in run.select(argument, given.args, given.keywords, given.receiver)
    ]
    key: Key | None = None
    if rule.key:
        consts = [
            value.const
            for argument in rule.key
            for value in run.select(argument, given.args, given.keywords, given.receiver)
        ]
        if len(consts) == len(rule.key) and all(isinstance(const, (str, int)) for const in consts):
            key = "\0".join(map(str, consts)) if len(consts) > 1 else consts[0]  # pyright: ignore[reportAssignmentType]
    result = NOTHING
    if rule.calls is not None:
        for value in run.select(rule.calls, given.args, given.keywords, given.receiver):
            inner = [run.read_any(one) if one.refs else one for one in values]
            if value.closures:
                given_back = _call_back(run, site, value, inner)
                ref: Ref = ("o", run.document.path, site.end)
                run.state.objects[ref] = Shape(rest=given_back)
                return Value(refs=(ref,))
    if rule.into is not None:
        into = list(run.select(rule.into, given.args, given.keywords, given.receiver))
        form = _split(site.callee)[0] if rule.into == "receiver" else None
        if isinstance(rule.into, int) and rule.into < len(site.args):
            form = site.args[rule.into]
        if into:
            stored = join_all([Value(taints=run.deep(one), refs=one.refs, const=one.const) for one in values])
            run.write(form, into[0], key, stored)
        return result
    if rule.key:
        return join_all([run.field(given.receiver, key) if key is not None else run.read_any(given.receiver)])
    if not values:
        return NOTHING
    first = next((value for value in values if value.taints), values[0])
    taints = join_taints(taint for value in values for taint in run.deep(value))
    if rule.whole:
        paths = tuple(path for path in first.paths if path.startswith("flag:"))
        return first._replace(taints=taints, paths=paths, const=first.const if first.is_literal else UNKNOWN)
    origin = _view(run, first, names)
    if rule.copies and first.refs:
        made: Ref = ("o", run.document.path, site.end, "copy")
        known = run.shape(first.refs[0]) if len(first.refs) == 1 else Shape(rest=run.read_any(first))
        run.state.objects[made] = known
        return first._replace(refs=(made,), origin=origin)
    refs = first.refs if len(values) == 1 else ()
    return Value(taints=taints, origin=origin, refs=refs, is_literal=all(value.is_literal for value in values))


def _call_back(run: Interpreter, site: Site, value: Value, args: list[Value]) -> Value:
    """A function that is handed over to be called."""
    found: list[Value] = []
    for closure in value.closures[:3]:
        document = run.engine.find_document(closure.path, closure.document)
        function = None if document is None else document.functions.get(closure.start)
        if function is None or function.definition is None:
            continue
        count = len(function.definition.parameters)
        given = Given((args * count)[:count] if len(args) == 1 else args, {}, NOTHING, False)
        actuals = _bind(run, site, function, given, None)
        summary = run.engine.summarize(function, {})
        shift = _Transfer(run, site, function, actuals, summary, 0.9)
        shift.report_hits()
        shift.apply_effects(strong=False)
        found.append(shift.translate(summary.result))
    return join_all(found)


def _sanitize(run: Interpreter, name: str, value: Value, given: Given) -> Value:
    for rule in run.rules.sanitizers.get(name, ()):
        if all(run.meets(predicate, given.args, given.keywords, given.receiver) for predicate in rule.when):
            kinds = ALL if "*" in rule.kinds else frozenset(rule.kinds)
            if kinds == ALL:
                value = Value(const=value.const, paths=value.paths, is_literal=False)
            else:
                value = value._replace(taints=tuple(remove(value.taints, kinds)))
    return value


def _mark(run: Interpreter, site: Site, name: str, value: Value, given: Given) -> Value:
    for rule in run.rules.marks.get(name, ()):
        if not all(run.meets(predicate, given.args, given.keywords, given.receiver) for predicate in rule.when):
            continue
        flag = f"flag:{rule.flag}"
        form = _split(site.callee)[0]
        if rule.into is None:
            value = value._replace(paths=(*value.paths, flag))
        elif isinstance(form, str) and form in run.state.names:
            known = run.state.names[form]
            run.state.names[form] = known._replace(paths=tuple(dict.fromkeys((*known.paths, flag))))
    return value


def _clear_after(run: Interpreter, site: Site, name: str, given: Given) -> None:
    """`int(text)` raises for what is no number: behind it the text is one."""
    for rule in run.rules.guards.get(f"{name}!", ()):
        for value in run.select(rule.arg, given.args, given.keywords, given.receiver):
            kinds = ALL if "*" in rule.kinds else frozenset(rule.kinds)
            form = run.forms.get((site.end, rule.arg)) if isinstance(rule.arg, int) else None
            clear(run, run.state, form, value, kinds)
