"""What a call of a library does, by rules: what it gives comes from its arguments, is a source, is harmless."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cq.model.code import Imported, Site
from cq.risk.containers import call_container
from cq.risk.guards import clear
from cq.risk.transfer import Given, call_back, split_callee
from cq.risk.values import (
    ALL,
    MAX_VIEWS,
    NOTHING,
    UNKNOWN,
    Key,
    Origin,
    Ref,
    Shape,
    Taint,
    Value,
    join_all,
    join_taints,
    literal,
    remove,
    set_field,
)

if TYPE_CHECKING:
    from cq.risk.interpret import Interpreter
    from cq.risk.rules import PropagatorRule

# Fields of objects that are called: what a partial function calls, what tells a class of records.
CALLED, RECORD = "()", "(record)"
_FOLDED = {"lower": str.lower, "upper": str.upper, "strip": str.strip, "title": str.title}


def call_outside(run: Interpreter, site: Site, names: Sequence[str], given: Given, name: str) -> Value:
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
            if rule.calls is None:
                for value in given.args:
                    if value.closures:
                        call_back(run, site, value, [NOTHING])
            return _propagate(run, site, rule, given, names)
    for value in (*given.args, *given.keywords.values()):
        if value.closures:
            call_back(run, site, value, [Value(taints=_all_taints(run, given))])
    taints = _all_taints(run, given)
    if taints and names and not any(run.rules.is_about(one) for one in names):
        run.engine.note_unmodelled(names[0], run.place, taints)
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
                given_back = call_back(run, site, value, inner)
                if rule.keeps:
                    first = next(iter(values), NOTHING)
                    return first if first.refs else Value(taints=first.taints)
                ref: Ref = ("o", run.document.path, site.end)
                run.state.objects[ref] = Shape(rest=given_back)
                return Value(refs=(ref,))
    if rule.into is not None:
        into = list(run.select(rule.into, given.args, given.keywords, given.receiver))
        form = split_callee(site.callee)[0] if rule.into == "receiver" else None
        if isinstance(rule.into, int) and rule.into < len(site.args):
            form = site.args[rule.into]
        if into:
            stored = join_all([Value(taints=run.deep(one), refs=one.refs, const=one.const) for one in values])
            run.write(form, into[0], key, stored)
        return result
    if rule.key:
        return join_all([run.field(given.receiver, key) if key is not None else run.read_any(given.receiver)])
    if not values:
        if not (rule.copies and given.keywords):
            return NOTHING
        values = [NOTHING]
    if rule.reads is not None:
        wanted = next(run.select(rule.reads, given.args, given.keywords, given.receiver), NOTHING).const
        return run.read_attribute(values[0], wanted) if isinstance(wanted, str) else run.read_any(values[0])
    if rule.binds:
        return _bind_first(run, site, values[0], given)
    if rule.loads is not None:
        module = next(run.select(rule.loads, given.args, given.keywords, given.receiver), NOTHING).const
        return Value(paths=(run.rules.write_import(Imported(0, module, "*")),)) if isinstance(module, str) else NOTHING
    if rule.record is not None:
        return _make_record(
            run, site, next(run.select(rule.record, given.args, given.keywords, given.receiver), NOTHING)
        )
    first = next((value for value in values if value.taints), values[0])
    taints = join_taints(taint for value in values for taint in run.deep(value))
    if rule.restores:
        taints = tuple(taint._replace(removed=frozenset()) for taint in taints)
    if rule.whole:
        paths = tuple(path for path in first.paths if path.startswith("flag:"))
        return first._replace(taints=taints, paths=paths, const=first.const if first.is_literal else UNKNOWN)
    origin = _view(run, first, names)
    if rule.copies and (first.refs or given.keywords):
        made: Ref = ("o", run.document.path, site.end, "copy")
        known = run.shape(first.refs[0]) if len(first.refs) == 1 else Shape(rest=run.read_any(first))
        for name, value in given.keywords.items():
            known = set_field(known, None if name == "**" else name, value)
        run.state.objects[made] = known
        return first._replace(refs=(made,), origin=origin)
    refs = first.refs if len(values) == 1 else ()
    return Value(taints=taints, origin=origin, refs=refs, is_literal=all(value.is_literal for value in values))


def _bind_first(run: Interpreter, site: Site, function: Value, given: Given) -> Value:
    """`partial(f, a)`: calling it calls f with a before what it is given then."""
    ref: Ref = ("o", run.document.path, site.end, "partial")
    fields: dict[Key, Value] = {CALLED: function, **dict(enumerate(given.args[1:])), **given.keywords}
    run.state.objects[ref] = Shape(fields)
    return Value(refs=(ref,), taints=_all_taints(run, given))


def _make_record(run: Interpreter, site: Site, listed: Value) -> Value:
    """`namedtuple("P", "a b")`: a class, of which the fields are known in their order."""
    names = listed.const.replace(",", " ").split() if isinstance(listed.const, str) else []
    for ref in listed.refs[:1]:
        shape = run.shape(ref)
        held = [shape.fields.get(number, NOTHING).const for number in range(shape.size)]
        names = [name for name in held if isinstance(name, str)]
    ref = ("o", run.document.path, site.end, "record")
    run.state.objects[ref] = Shape({RECORD: NOTHING, **{number: literal(name) for number, name in enumerate(names)}})
    return Value(refs=(ref,))


def fill_record(run: Interpreter, site: Site, names: Sequence[str], given: Given) -> Value:
    """An object with these fields, by the arguments of the call that makes it."""
    fields: dict[Key, Value] = dict(zip(names, given.args, strict=False))
    fields.update((name, value) for name, value in given.keywords.items() if name != "**")
    numbered: dict[Key, Value] = {at: fields[name] for at, name in enumerate(names) if name in fields}
    ref: Ref = ("new", run.document.path, site.end)
    run.state.objects[ref] = Shape({**fields, **numbered}, given.keywords.get("**", NOTHING))
    return Value(refs=(ref,))


def sanitize(run: Interpreter, name: str, value: Value, given: Given) -> Value:
    for rule in run.rules.sanitizers.get(name, ()):
        if all(run.meets(predicate, given.args, given.keywords, given.receiver) for predicate in rule.when):
            if value.taints:
                run.engine.note_rule(run.engine.sanitizers_seen, rule.id, run.place)
            if run.engine.weakens and rule.kinds != ("*",):
                weaker = run.step_all(value.taints, "sanitizer", rule.id)
                value = value._replace(taints=tuple(taint._replace(doubt=taint.doubt / 2) for taint in weaker))
                continue
            kinds = ALL if "*" in rule.kinds else frozenset(rule.kinds)
            if kinds == ALL:
                value = Value(const=value.const, paths=value.paths, is_literal=False)
            else:
                value = value._replace(taints=tuple(remove(value.taints, kinds)))
    return value


def mark(run: Interpreter, site: Site, name: str, value: Value, given: Given) -> Value:
    for rule in run.rules.marks.get(name, ()):
        if not all(run.meets(predicate, given.args, given.keywords, given.receiver) for predicate in rule.when):
            continue
        flag = f"flag:{rule.flag}"
        form = split_callee(site.callee)[0]
        if rule.into is None:
            value = value._replace(paths=(*value.paths, flag))
        elif isinstance(form, str) and form in run.state.names:
            known = run.state.names[form]
            run.state.names[form] = known._replace(paths=tuple(dict.fromkeys((*known.paths, flag))))
    return value


def clear_after(run: Interpreter, site: Site, name: str, given: Given) -> None:
    """`int(text)` raises for what is no number: behind it the text is one."""
    for rule in run.rules.guards.get(f"{name}!", ()):
        for value in run.select(rule.arg, given.args, given.keywords, given.receiver):
            kinds = ALL if "*" in rule.kinds else frozenset(rule.kinds)
            form = run.forms.get((site.end, rule.arg)) if isinstance(rule.arg, int) else None
            clear(run, run.state, form, value, kinds)
