"""What a call does: what is called, by rules and by summaries, and what its arguments become there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from cq.model.code import Site, Spread
from cq.risk.outside import CALLED, RECORD, call_outside, clear_after, fill_record, mark, sanitize
from cq.risk.program import Function
from cq.risk.transfer import Given, Transfer, bind, call_back, make_context, split_callee
from cq.risk.values import (
    NOTHING,
    Closure,
    Ref,
    Shape,
    Value,
    join_all,
)

if TYPE_CHECKING:
    from cq.risk.interpret import Interpreter
    from cq.risk.run import Summary

MAX_TARGETS = 5


def call(run: Interpreter, site: Site) -> Value:
    receiver_form, name = split_callee(site.callee)
    has_receiver = receiver_form is not None
    receiver = run.value(receiver_form) if has_receiver else NOTHING
    if name == "super" and not has_receiver and site.name == "super":
        return _find_self(run)
    callee = run.read_attribute(receiver, name) if has_receiver else run.value(site.callee)
    given = Given(*_read_arguments(run, site), receiver, has_receiver)
    run.at = (site.start, site.end)
    callee, given = _unbind(run, callee, given)
    names = _find_names(run, callee, receiver, name, has_receiver)
    run.asked_with[site.end] = (names, given.args, given.keywords, receiver)
    targets = _find_targets(run, site, callee)
    run.check_sinks(names, site, given.args, given.keywords, receiver)
    fields = () if targets else _find_fields(run, callee)
    if fields:
        return fill_record(run, site, fields, given)
    found = _call_functions(run, site, targets, given) if targets else call_outside(run, site, names, given, name)
    paths = tuple(
        dict.fromkeys(run.rules.settle(f"{one}()") for one in names if not one.startswith("?.") and len(one) < 140)
    )
    if paths:
        found = found._replace(paths=(*found.paths, *(path for path in paths if path not in found.paths))[:4])
    for one in names:
        found = sanitize(run, one, found, given)
        source = run.rules.sources.get(one)
        if source is not None:
            found = run.make_source(found, source)
            for value in () if source.calls is None else run.select(source.calls, given.args, given.keywords, receiver):
                call_back(run, site, value, [run.make_source(NOTHING, source)])
            for argument in source.fills:
                for number, value in enumerate(given.args):
                    if number == argument or argument == "*":
                        form = site.args[number] if number < len(site.args) else None
                        run.write(form, value, None, run.make_source(NOTHING, source))
        clear_after(run, site, one, given)
        found = mark(run, site, one, found, given)
    return found


def _unbind(run: Interpreter, callee: Value, given: Given) -> tuple[Value, Given]:
    """Of a partial function the function, and all that it is given."""
    for ref in callee.refs[:1]:
        fields = run.shape(ref).fields
        if CALLED in fields:
            first = [fields[at] for at in range(len(fields)) if at in fields]
            named = {name: value for name, value in fields.items() if isinstance(name, str) and name != CALLED}
            return fields[CALLED], given._replace(args=[*first, *given.args], keywords={**named, **given.keywords})
    return callee, given


def _find_fields(run: Interpreter, callee: Value) -> Sequence[str]:
    """In their order the fields of a class that is nothing but its fields."""
    for ref in callee.refs[:1]:
        fields = run.shape(ref).fields
        if RECORD in fields:
            return [name for at in range(len(fields)) if at in fields and isinstance(name := fields[at].const, str)]
    for closure in callee.closures[:1]:
        return run.engine.find_fields(closure)
    return ()


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
    known = run.rules.beginnings
    modules = [path for path in receiver.paths if _is_module(path) and ("." in path or path in known)]
    if has_receiver and name and not modules:
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
        elif function.names_receiver or (
            function.takes_receiver and given.has_receiver and not _is_class(given.receiver)
        ):
            receiver = given.receiver
        actuals = bind(run, site, function, given, receiver)
        summary = run.engine.summarize(function, make_context(run, actuals))
        called.append((summary, actuals))
        shift = Transfer(run, site, function, actuals, summary, doubt * (1 if len(targets) == 1 else 0.9))
        shift.apply_effects(strong=len(targets) == 1)
        shift.report_hits()
        shift.assign_outer()
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
