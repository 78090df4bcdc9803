"""Follows one function, statement by statement, over values that stand for many: what it returns, what of its
parameters reaches a sink, what it changes. What it calls is known by summaries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from cq.model.code import (
    Bind,
    CallEnd,
    Defined,
    Element,
    Exit,
    Imported,
    Site,
    Store,
)
from cq.model.code import Value as Form
from cq.risk import body as code
from cq.risk.calls import call
from cq.risk.expressions import MAX_EFFORT, Expressions
from cq.risk.guards import assume
from cq.risk.run import Summary
from cq.risk.transfer import read_accessor
from cq.risk.values import (
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
    Value,
    join_all,
    join_states,
    literal,
)

MAX_TURNS = 4  # of one loop, until nothing new is found


class Interpreter(Expressions):
    """One run over one function."""

    def _call(self, site: Site) -> Value:
        return call(self, site)

    def _assume(self, state: State, condition: Form, wanted: bool) -> None:
        assume(self, state, condition, wanted)

    def _read_accessor(self, receiver: Value, kind: Closure, name: str) -> Value | None:
        return read_accessor(self, receiver, kind, name)

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
        if self.function.around is not None and not self.document.find_binds(self.function, bind.name):
            self.outer[bind.name] = None
        self.assign(bind.name, value, bind.value, f"{bind.name} = …" if not bind.inner else bind.name)

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
        self._check_store(store, base, key_value if store.name is None else literal(store.name), value)
        self.write(store.base, base, key, value)

    def _check_store(self, store: Store, base: Value, key: Value, value: Value) -> None:
        """By what the object is called, by the name alone, and whoever chose the keys of a key below a key."""
        names: list[str] = []
        for path in base.paths:
            names += [f"{path}.{store.name}=", f"{path}.*="] if store.name is not None else [f"{path}[]="]
        if store.name is not None:
            names.append(f"?.{store.name}=")
        elif isinstance(store.base, Element) and all(self.deep(self.value(form)) for form in store.base.keys):
            names.append("?[][]=")
        self.check_sinks(names, None, [value, key], {}, base)

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
        outer = {name: end.names[name] for name in self.outer if name in end.names}
        inner = [ref for value in outer.values() for ref in value.refs]
        kept = _find_reachable(end.objects, (*result.refs, *effects, *inner))
        true, false = (_intersect([truth[side] for truth in self.truths]) for side in (0, 1))
        after = {origin: kinds for origin, kinds in end.cleared.items() if origin and origin[0] == "p"}
        return Summary(result, kept, effects, tuple(self.hits.values()), true, false, after, not self.returned, outer)


def _find_reachable(objects: Mapping[Ref, Shape], refs: Iterable[Ref]) -> dict[Ref, Shape]:
    """Of the objects of a function those that callers can get hold of."""
    found: dict[Ref, Shape] = {}
    todo = list(refs)
    while todo:
        ref = todo.pop()
        shape = objects.get(ref)
        if shape is None or ref in found:
            continue
        found[ref] = shape
        todo += [inner for held in (*shape.fields.values(), shape.rest) for inner in held.refs]
    return found


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
