"""Summaries of functions, bottom-up along the calls, and the flows that they add up to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

from cq.model.code import Value as Form
from cq.model.edge import Candidate, Mistake, find_mistake
from cq.risk.entries import Entries
from cq.risk.interpret import Interpreter
from cq.risk.program import Document, Function, Program
from cq.risk.rules import OwnRules, Rules
from cq.risk.run import Context, Flow, Summary
from cq.risk.values import UNKNOWN, Place, Ref, RuleSource, Shape, Taint, Value

MAX_CONTEXTS = 6  # summaries of one function, by the constants that it is given
MAX_NESTED = 25  # functions that are followed inside one another
MAX_ROUNDS = 4  # over functions that call one another

_Key = tuple[Candidate, int]


class LateError(Exception):
    """There was no time to follow everything; what was found is a part that depends on the machine."""


class Engine(Entries):
    """Over one program. What was found is kept, so that each function is followed once for what it is given."""

    def __init__(
        self,
        program: Program,
        *,
        own_rules: OwnRules = (),
        is_strict: bool = False,
        goes_on: bool = False,
        weakens: bool = False,
        is_late: Callable[[], bool] = bool,
    ) -> None:
        """`is_strict`: checks of data count for nothing. `goes_on`: a mistake of ours costs one function alone.
        `weakens`: what is escaped is followed with half the confidence. `is_late`: whether to give up; LateError."""
        super().__init__(program, own_rules)
        self.is_strict, self._goes_on, self.weakens, self._is_late = is_strict, goes_on, weakens, is_late
        self.mistakes: dict[_Key, Mistake] = {}
        self._summaries: dict[tuple[_Key, object], Summary] = {}
        self._contexts: Counter[tuple[_Key, bool]] = Counter()  # with constants, and without
        self._running: dict[tuple[_Key, object], bool] = {}  # whether its own summary was asked for
        self._globals: dict[tuple[str, int], Mapping[str, Value]] = {}
        self._objects: dict[Ref, Shape] = {}
        self._forms: dict[int, tuple[int, Form]] = {}
        self.flows: dict[tuple[object, ...], Flow] = {}
        self.unmodelled: Counter[str] = Counter()
        self.sources_seen: Counter[str] = Counter()  # places, by rule
        self.sinks_seen: Counter[str] = Counter()
        self.sanitizers_seen: Counter[str] = Counter()
        self.seen: dict[tuple[str, Place], None] = {}  # rules, with each place that they say something about
        self.entered_unmodelled: dict[tuple[Place, str, str], None] = {}  # place, call, rule of the source
        self.cut: dict[_Key, None] = {}  # functions that were not followed to their end
        self.followed = 0

    # -- asked by surfaces ---------------------------------------------------------------------------

    def run_all(self, documents: Sequence[Document]) -> None:
        for document in documents:
            self.prepare(document)
        self.run(function for document in documents for function in document.functions.values())

    def run(self, functions: Iterable[Function]) -> None:
        """Follows functions, those that they call first."""
        for function in self._order(functions):
            if self._is_late():
                raise LateError
            self.summarize(function, {})

    def _order(self, functions: Iterable[Function]) -> list[Function]:
        """Callees before their callers, without recursion: as far as links tell."""
        done: dict[_Key, Function] = {}
        open_: set[_Key] = set()
        for first in functions:
            stack: list[tuple[Function, list[Function] | None]] = [(first, None)]
            while stack:
                function, below = stack.pop()
                if function.key in done:
                    continue
                if below is None:
                    if function.key in open_:
                        continue
                    open_.add(function.key)
                    stack.append((function, []))
                    stack += [(callee, None) for callee in reversed(self._find_called(function))]
                else:
                    done[function.key] = function
        return list(done.values())

    def _find_called(self, function: Function) -> list[Function]:
        document = function.document
        found: dict[_Key, Function] = {}
        for end in function.call_ends:
            number = document.site_at[end]
            for each in self.find_callees(document, number):
                called = self.find_function(each.place)
                if called is not None and called.document.path == document.path:
                    found[called.key] = called
        return list(found.values())

    # -- summaries -----------------------------------------------------------------------------------

    def summarize(self, function: Function, context: Context) -> Summary:
        """What a function does; of one that is being followed, what is known so far."""
        given = tuple((at, repr((value.const, value.closures, value.paths))) for at, value in context.items())
        key = (function.key, given)
        known = self._summaries.get(key)
        if known is not None and key not in self._running:
            return known
        if key in self._running:
            self._running[key] = True
            return known or Summary()
        if context:
            # Constants are given up first: callers pass hundreds of them, but few kinds of objects and functions.
            has_constants = any(value.is_constant for value in context.values())
            if self._contexts[function.key, has_constants] >= MAX_CONTEXTS:
                kept = {at: value for at, value in context.items() if value.paths or value.closures}
                kept = {at: value._replace(const=UNKNOWN, prefix="") for at, value in kept.items()}
                return self.summarize(function, kept if has_constants else {})
            self._contexts[function.key, has_constants] += 1
        if len(self._running) > MAX_NESTED:
            self.cut[function.key] = None
            return Summary()
        found = Summary()
        for _ in range(MAX_ROUNDS):
            self._running[key] = False
            run = Interpreter(self, function, context)
            running = len(self._running)
            try:
                again = run.run()
            except Exception as error:
                if not self._goes_on:
                    raise
                self.mistakes[function.key] = find_mistake(error)
                for late in list(self._running)[running:]:
                    del self._running[late]
                again = Summary()
            self.followed += 1
            is_recursive = self._running.pop(key)
            if run.is_cut:
                self.cut[function.key] = None
            for name, flow in run.flows.items():
                self._keep(name, flow)
            same = again.result == found.result and len(again.hits) == len(found.hits)
            found = self._summaries[key] = again
            if not is_recursive or same:
                break
        return found

    def _keep(self, key: tuple[object, ...], flow: Flow) -> None:
        known = self.flows.get(key)
        if known is None or _count(flow) < _count(known):
            self.flows[key] = flow

    # -- what the program is ---------------------------------------------------------------------------

    def number_form(self, form: Form) -> int:
        """A number for a form that is told apart by its identity."""
        known = self._forms.get(id(form))
        if known is None:
            known = self._forms[id(form)] = (len(self._forms), form)
        return known[0]

    def find_shape(self, ref: Ref) -> Shape:
        return self._objects.get(ref, _EMPTY)

    def note_unmodelled(self, name: str, place: Place, taints: Iterable[Taint]) -> None:
        self.unmodelled[name] += 1
        for taint in taints:
            if isinstance(taint.source, RuleSource):
                self.entered_unmodelled[place, name, taint.source.rule] = None

    def note_rule(self, counter: Counter[str], rule: str, place: Place) -> None:
        """Once for every place, however often it is followed."""
        if (rule, place) not in self.seen:
            self.seen[rule, place] = None
            counter[rule] += 1

    @property
    def entered(self) -> set[str]:
        """The rules by which functions are called from outside."""
        return set(self.entries_seen)

    def matches(self, pattern: str, text: str) -> bool:
        return _compile(pattern).search(text) is not None

    def find_shown(self, rules: Rules, views: Sequence[str]) -> frozenset[str]:
        """What looking at a view of a value shows of the whole."""
        kinds: set[str] = set()
        for rule in rules.views:
            kept = [part.removeprefix("view:") for part in views if part.removeprefix("view:") not in rule.through]
            if "".join(kept) in rule.names:
                kinds |= set(rule.kinds)
        return frozenset(kinds)

    def load_globals(self, document: Document) -> Mapping[str, Value]:
        key = (document.path, document.number)
        known = self._globals.get(key)
        if known is None:
            self._globals[key] = {}
            run = Interpreter(self, document.functions[-1], {})
            run.run()
            self._objects.update(run.final.objects)
            known = self._globals[key] = dict(run.final.names)
        return known


_EMPTY = Shape()


def _count(flow: Flow) -> int:
    return 0 if flow.taint is None or flow.taint.step is None else flow.taint.step.length


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
