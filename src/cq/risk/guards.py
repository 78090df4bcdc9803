"""What a condition shows where it holds, and where it does not: which branch is dead, which values are harmless."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from cq.model.code import Listing, MethodOf, Name, Operated, Slice
from cq.model.code import Value as Form
from cq.risk.fold import fold
from cq.risk.values import ALL, NOTHING, Origin, Shape, State, Value, remove

if TYPE_CHECKING:
    from cq.risk.interpret import Interpreter
    from cq.risk.run import Run

MAX_DEPTH = 30
_NOT = {"not": 1, "!": 1}
_AND, _OR = frozenset({"and", "&&"}), frozenset({"or", "||"})
_OPPOSITE = {"!=": "==", "!==": "===", "is not": "is", "not in": "in"}
# What a text without these characters cannot do.
_NEEDED: tuple[tuple[str, frozenset[str]], ...] = (
    ("..", frozenset({"path", "zip-slip"})),
    ("../", frozenset({"path", "zip-slip"})),
    ("/", frozenset({"path", "zip-slip"})),
    ("'", frozenset({"sql", "xpath", "code"})),
    ('"', frozenset({"code"})),
    ("<", frozenset({"xss"})),
    ("\n", frozenset({"header", "log"})),
    ("\r", frozenset({"header"})),
)


def assume(run: Interpreter, state: State, condition: Form, wanted: bool, depth: int = 0) -> None:
    """Changes the state to what holds where a condition is true, or false; a dead one where it cannot be."""
    if condition is None or depth > MAX_DEPTH or not state.alive:
        return
    if isinstance(condition, Operated):
        operator = condition.operator
        if operator in _NOT and condition.right is None:
            assume(run, state, condition.left, not wanted, depth + 1)
            return
        if operator in _AND or operator in _OR:
            if (operator in _AND) is wanted:
                assume(run, state, condition.left, wanted, depth + 1)
                assume(run, state, condition.right, wanted, depth + 1)
            else:
                _assume_either(run, state, condition, wanted, depth)
            return
        if operator in _OPPOSITE:
            operator, wanted = _OPPOSITE[operator], not wanted
        _assume_compared(run, state, operator, condition, wanted)
        return
    value = run.value(condition)
    if value.is_constant:
        if bool(value.const) is not wanted:
            state.alive = False
        return
    if isinstance(condition, str):
        asked = state.asked.get(condition)
        if asked is not None:
            assume(run, state, asked, wanted, depth + 1)
        if not wanted and all(ref[0] == "p" for ref in value.refs):
            _clear_named(run, state, condition, value, ALL)  # empty, or nothing at all
        return
    if isinstance(condition, int):
        _assume_called(run, state, condition, wanted)


def _assume_either(run: Interpreter, state: State, condition: Operated, wanted: bool, depth: int) -> None:
    """`not (a and b)`, `a or b`: what both ways show."""
    from cq.risk.values import join_states

    first, second = state.copy(), state.copy()
    held = run.state
    run.state = first
    assume(run, first, condition.left, wanted, depth + 1)
    run.state = second
    assume(run, second, condition.left, not wanted, depth + 1)
    assume(run, second, condition.right, wanted, depth + 1)
    run.state = held
    joined = join_states(first, second)
    if not first.alive and not second.alive:
        state.alive = False
        return
    state.take(joined)


def _assume_compared(run: Interpreter, state: State, operator: str, condition: Operated, wanted: bool) -> None:
    left = run.value(condition.left)
    if operator == "case":
        _assume_case(run, state, condition, left, wanted)
        return
    right = run.value(condition.right)
    known = fold(operator, left, right, False)
    if isinstance(known, bool):
        if known is not wanted:
            state.alive = False
        return
    if operator in ("==", "===", "is"):
        if wanted:
            for form, one, other in ((condition.left, left, right), (condition.right, right, left)):
                if one.taints and not other.taints and not _is_null(other):
                    clear(run, state, form, one, ALL if _is_direct(run, one) else _seen_kinds(run, one))
                    if isinstance(form, str) and other.is_constant and form in state.names:
                        state.names[form] = state.names[form]._replace(const=other.const, prefix=other.prefix)
                elif _is_null(other) and isinstance(form, str) and "." not in form and form in state.names:
                    _clear_named(run, state, form, one, ALL)
        elif not wanted:
            for form, one, other in ((condition.left, left, right), (condition.right, right, left)):
                del form
                if one.taints and not other.taints and _is_view(run, one):
                    pass
        return
    if operator == "in":
        if wanted and left.taints and _is_allow_list(run, right):
            clear(run, state, condition.left, left, ALL if _is_direct(run, left) else _seen_kinds(run, left))
        elif not wanted and isinstance(left.const, str) and right.taints:
            kinds = frozenset(kind for text, kinds in _NEEDED if left.const == text for kind in kinds)
            if kinds:
                clear(run, state, condition.right, right, kinds)
                inner = condition.right
                if isinstance(inner, Slice) and inner.bounds == (1, -1):  # between the quotes of a literal
                    clear(run, state, inner.base, run.value(inner.base), kinds)
        return


def _assume_case(run: Interpreter, state: State, condition: Operated, subject: Value, wanted: bool) -> None:
    pattern = condition.right
    if pattern == "_":
        state.alive = state.alive and wanted
        return
    options = pattern.elements if isinstance(pattern, Listing) else (pattern,)
    values = [run.value(option) for option in options if option is not None]
    if len(values) < len(options) or not all(value.is_constant for value in values):
        return
    if subject.is_constant:
        if any(value.const == subject.const for value in values) is not wanted:
            state.alive = False
    elif wanted and subject.taints:
        clear(run, state, condition.left, subject, ALL)


def _assume_called(run: Interpreter, state: State, end: int, wanted: bool) -> None:
    """A question that a guard or a function of the repository answers."""
    for summary, actuals in run.called.get(end, ()):
        shown = summary.true if wanted else summary.false
        if len(run.called[end]) > 1:
            continue  # whichever of several it runs
        for origin, kinds in shown.items():
            number = origin[1]
            actual = actuals.get(number) if isinstance(number, int) else None
            if actual is None:
                continue
            if len(origin) == 2:
                clear(run, state, run.forms.get((end, number)), actual, kinds)
            elif actual.origin:
                clear_origin(state, (*actual.origin, *origin[2:]), kinds)
    site = run.document.site(end)
    if site is None:
        return
    names, args, keywords, receiver = run.asked_with.get(end, ((), (), {}, NOTHING))
    for name in names:
        for rule in run.rules.guards.get(name, ()):
            if rule.holds is not wanted or rule.is_view or run.engine.is_strict:
                continue
            if not all(run.meets(predicate, args, keywords, receiver) for predicate in rule.when):
                continue
            for value in run.select(rule.arg, args, keywords, receiver):
                if rule.views and not any(_has_view(value, view) for view in rule.views):
                    continue
                kinds = ALL if "*" in rule.kinds else frozenset(rule.kinds)
                if not _is_direct(run, value) and not rule.views:
                    kinds = _seen_kinds(run, value)
                form = site.args[rule.arg] if isinstance(rule.arg, int) and rule.arg < len(site.args) else None
                if rule.arg == "receiver":
                    form = _find_receiver(site.callee)
                clear(run, state, form, value, kinds)


def _find_receiver(callee: Form) -> Form:
    if isinstance(callee, str) and "." in callee:
        return Name(callee.rpartition(".")[0])
    return callee.receiver if isinstance(callee, MethodOf) else None


def _is_null(value: Value) -> bool:
    return value.is_constant and value.const is None


def is_settled_container(run: Run, value: Value) -> bool:
    """A container of the program's own elements."""
    if run.deep(value) or isinstance(value.const, str) or value.taints:
        return False
    if value.refs:
        return all(_is_settled(run.shape(ref)) for ref in value.refs)
    return any("(" not in path and path != "text" for path in value.paths)


def _is_allow_list(run: Interpreter, value: Value) -> bool:
    """A container that nobody outside has filled; in a text anything short is found."""
    if run.deep(value) or isinstance(value.const, str):
        return False
    if value.refs:
        return all(_is_settled(run.shape(ref)) for ref in value.refs)
    return bool(value.paths) or not value.is_literal


def _is_settled(shape: Shape) -> bool:
    held = (*shape.fields.values(), shape.rest)
    return not any(value.taints for value in held)


# -- what is shown harmless ----------------------------------------------------------------------------


def _is_direct(run: Interpreter, value: Value) -> bool:
    """Whether the whole of it is looked at, and not a view of something."""
    del run
    return not any(isinstance(part, str) and part.startswith(("view:", ".")) for part in value.origin[2:])


def _is_view(run: Interpreter, value: Value) -> bool:
    return bool(_seen_kinds(run, value))


def _seen_kinds(run: Interpreter, value: Value) -> frozenset[str]:
    """What looking at this view of a value shows of the whole; everything of the view itself."""
    del run
    return ALL if value.origin else frozenset()


def _has_view(value: Value, view: str) -> bool:
    return f"view:{view}" in value.origin or f"flag:{view}" in value.paths


def clear(run: Interpreter, state: State, form: Form, value: Value, kinds: frozenset[str]) -> None:
    """A value is harmless to these kinds, under every name that it has."""
    if run.engine.is_strict or not kinds:
        return
    if isinstance(form, str) and "." not in form:
        _clear_named(run, state, form, value, kinds)
    if not value.origin:
        return
    clear_origin(state, value.origin, kinds)
    for number in range(len(value.origin) - 1, 1, -1):
        # `urlparse(url).netloc in HOSTS`: what the view shows of the whole.
        whole, views = value.origin[:number], tuple(str(part) for part in value.origin[number:])
        shown = run.engine.find_shown(run.rules, views)
        if shown:
            clear_origin(state, whole, shown)


def _clear_named(run: Interpreter, state: State, name: str, value: Value, kinds: frozenset[str]) -> None:
    del value
    known = state.names.get(name)
    if known is not None and not run.engine.is_strict:
        state.names[name] = without(known, kinds)
        if known.origin:
            state.cleared[known.origin] = state.cleared.get(known.origin, frozenset()) | kinds


def clear_origin(state: State, origin: Origin, kinds: frozenset[str]) -> None:
    """Everything that is this value, or was made of it alone."""
    state.cleared[origin] = state.cleared.get(origin, frozenset()) | kinds
    count = len(origin)

    def is_same(value: Value) -> bool:
        return bool(value.taints) and value.origin[:count] == origin

    for name, value in state.names.items():
        if is_same(value):
            state.names[name] = without(value, kinds)
    for ref, shape in state.objects.items():
        if any(is_same(value) for value in (*shape.fields.values(), shape.rest)):
            state.objects[ref] = _change(shape, lambda held: without(held, kinds) if is_same(held) else held)
        elif shape.source is not None and ref[: len(origin)] == origin and ref == origin:
            state.objects[ref] = msgspec.structs.replace(shape, source=None)


def _change(shape: Shape, change: Callable[[Value], Value]) -> Shape:
    fields = {key: change(value) for key, value in shape.fields.items()}
    return msgspec.structs.replace(shape, fields=fields, rest=change(shape.rest))


def without(value: Value, kinds: frozenset[str]) -> Value:
    return value._replace(taints=tuple(remove(value.taints, kinds)))


def is_full_pattern(pattern: str) -> bool:
    """Whether a regular expression lets through only what it names: no dot, no negated class, no blank class."""
    plain = re.sub(r"\\[\\.\[\]\-+*?(){}|^$/]", "", pattern)
    return not re.search(r"(?<!\\)\.|\[\^|\\[SDWs]", plain)
