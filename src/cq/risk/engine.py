"""Summaries of functions, bottom-up along the calls, and the flows that they add up to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from cq.model.code import (
    Attribute,
    Bind,
    Choice,
    Constant,
    Defined,
    Definition,
    Element,
    Imported,
    Lambda,
    MethodOf,
    Name,
    Operated,
    Text,
    label_type,
)
from cq.model.code import Value as Form
from cq.model.edge import Candidate, Mistake, find_mistake
from cq.risk.interpret import Interpreter
from cq.risk.program import Callee, Document, Function, Program
from cq.risk.rules import EntryRule, Rules, load_rules
from cq.risk.run import MODULE, Context, Flow, Run, Summary
from cq.risk.values import NOTHING, UNKNOWN, Closure, ParameterSource, Place, Ref, Shape, Taint, Value

MAX_CONTEXTS = 6  # summaries of one function, by the constants that it is given
MAX_NESTED = 25  # functions that are followed inside one another
MAX_ROUNDS = 4  # over functions that call one another
MAX_STATIC = 8  # steps from a name to what it stands for

_Key = tuple[Candidate, int]


class Entry(NamedTuple):
    """A function that is called from outside."""

    rule: EntryRule
    tainted: frozenset[int]
    types: Mapping[int, tuple[str, ...]]


class Engine:
    """Over one program. What was found is kept, so that each function is followed once for what it is given."""

    def __init__(
        self, program: Program, *, rules: Rules | None = None, is_strict: bool = False, goes_on: bool = False
    ) -> None:
        """`is_strict`: checks of data count for nothing. `goes_on`: a mistake of ours costs one function alone."""
        self.program, self.is_strict, self._goes_on = program, is_strict, goes_on
        self.mistakes: dict[_Key, Mistake] = {}
        self._rules = rules
        self._summaries: dict[tuple[_Key, object], Summary] = {}
        self._contexts: Counter[tuple[_Key, bool]] = Counter()  # with constants, and without
        self._running: dict[tuple[_Key, object], bool] = {}  # whether its own summary was asked for
        self._entries: dict[_Key, Entry | None] = {}
        self._globals: dict[tuple[str, int], Mapping[str, Value]] = {}
        self._objects: dict[Ref, Shape] = {}
        self._fields: dict[Closure, list[str]] = {}
        self._forms: dict[int, tuple[int, Form]] = {}
        self._paths: dict[tuple[str, int, int, object, int], tuple[str, ...]] = {}
        self.flows: dict[tuple[object, ...], Flow] = {}
        self.unmodelled: Counter[str] = Counter()
        self.sources_seen: Counter[str] = Counter()  # places, by rule
        self.sinks_seen: Counter[str] = Counter()
        self.entries_seen: Counter[str] = Counter()
        self._seen: set[tuple[str, Place]] = set()
        self.cut: dict[_Key, None] = {}  # functions that were not followed to their end
        self.followed = 0

    # -- asked by surfaces ---------------------------------------------------------------------------

    def run(self, functions: Iterable[Function]) -> None:
        """Follows functions, those that they call first."""
        for function in self._order(functions):
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

    def rules_of(self, language: str) -> Rules:
        return self._rules or load_rules(language)

    def find_document(self, path: str, number: int) -> Document | None:
        return self.program.find_document(path, number)

    def find_callees(self, document: Document, number: int) -> Sequence[Callee]:
        return self.program.find_callees(document, number)

    def find_function(self, place: Candidate) -> Function | None:
        document = self.program.find_document(place.path, place.document)
        return None if document is None else document.find_function(place.name)

    def number_form(self, form: Form) -> int:
        """A number for a form that is told apart by its identity."""
        known = self._forms.get(id(form))
        if known is None:
            known = self._forms[id(form)] = (len(self._forms), form)
        return known[0]

    def find_shape(self, ref: Ref) -> Shape:
        return self._objects.get(ref, _EMPTY)

    def note_unmodelled(self, name: str) -> None:
        self.unmodelled[name] += 1

    def note_rule(self, counter: Counter[str], rule: str, place: Place) -> None:
        """Once for every place, however often it is followed."""
        if (rule, place) not in self._seen:
            self._seen.add((rule, place))
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

    # -- names -------------------------------------------------------------------------------------------

    def find_outer(self, run: Run, name: str) -> Value:
        """A name that a function does not bind itself: of the functions around it, of the module, of the language."""
        function, document = run.function, run.document
        around = function.around if function.definition is not None else None
        if function.definition is not None and function.definition.anonymous:
            around = around or None
        while around is not None:
            binds = document.binds.get((around.scope, name), ())
            if len(binds) == 1 and isinstance(binds[0].value, (Defined, Imported, Lambda)):
                return self.import_value(document, binds[0])
            if binds or name in around.parameters:
                source = ParameterSource(function.place, function.start, name)
                paths = self.find_paths(document, around.scope, Name(name))
                ref: Ref = ("p", name)
                run.state.objects.setdefault(ref, Shape(source=source))
                return Value(taints=(Taint(source, frozenset(), None),), refs=(ref,), paths=paths, origin=("p", name))
            around = around.around
        if function.definition is None:
            return self._find_builtin(document, name)
        return self.find_global(document, name)

    def find_global(self, document: Document, name: str) -> Value:
        """What a module has under a name when it is loaded."""
        binds = document.binds.get((-1, name), ())
        if not binds:
            return self._find_builtin(document, name)
        if len(binds) == 1 and isinstance(binds[0].value, (Defined, Imported, Lambda)):
            return self.import_value(document, binds[0])
        found = self._load_globals(document).get(name)
        if found is not None:
            return found._replace(taints=(), origin=())
        paths = self.find_paths(document, -1, Name(name))
        return Value(paths=paths)

    def _find_builtin(self, document: Document, name: str) -> Value:
        """Bound nowhere: the language's own, or what a star import brings."""
        for bind in document.starred:
            if isinstance(bind.value, Imported) and self.program.find_import(document, bind) is None:
                path = f"{bind.value.module}.{name}"
                rules = self.rules_of(document.language)
                if path in rules.sinks or path in rules.sources or path in rules.sanitizers:
                    return Value(paths=(rules.settle(path),))
        return Value(paths=(self.rules_of(document.language).settle(name),))

    def _load_globals(self, document: Document) -> Mapping[str, Value]:
        key = (document.path, document.number)
        known = self._globals.get(key)
        if known is None:
            self._globals[key] = {}
            run = Interpreter(self, document.functions[-1], {})
            run.run()
            self._objects.update(run.final.objects)
            known = self._globals[key] = dict(run.final.names)
        return known

    def import_value(self, document: Document, bind: Bind) -> Value:
        """What a definition or an import binds."""
        match bind.value:
            case Defined(start=start) | Lambda(start=start):
                return Value(closures=(Closure(document.path, document.number, start),))
            case Imported() as imported:
                place = self.program.find_import(document, bind)
                if place is None:
                    return Value(paths=(self.rules_of(document.language).settle(_write_import(imported)),))
                other = self.program.find_document(place.path, place.document)
                if other is None:
                    return NOTHING
                if place.name:
                    made = other.by_name.get(place.name)
                    return (
                        NOTHING if made is None else Value(closures=(Closure(place.path, place.document, made.start),))
                    )
                if imported.name not in ("*", "="):
                    return self._find_in(other, imported.name)
                return Value(paths=(f"{MODULE}{place.path}",))
            case _:
                return NOTHING

    def read_module(self, path: str, name: str) -> Value:
        """What `module.name` is: what the module binds, or the module of that name below it."""
        document = self.program.find_document(path, 0)
        if document is not None and (-1, name) in document.binds:
            return self.find_global(document, name)
        folder, _, file = path.rpartition("/")
        stem, dot, suffix = file.partition(".")
        if stem == "__init__":
            for below in (f"{name}{dot}{suffix}", f"{name}/{file}"):
                below = f"{folder}/{below}".lstrip("/")
                if self.program.find_document(below, 0) is not None:
                    return Value(paths=(f"{MODULE}{below}",))
        return NOTHING

    def _find_in(self, document: Document, name: str) -> Value:
        if (-1, name) not in document.binds:
            return NOTHING
        return self.find_global(document, name)

    def find_paths(self, document: Document, scope: int, form: Form, steps: int = MAX_STATIC) -> tuple[str, ...]:
        """What an expression is called, by names and imports alone."""
        if steps <= 0 or form is None:
            return ()
        rules = self.rules_of(document.language)

        def extend(paths: Iterable[str], end: str) -> tuple[str, ...]:
            return tuple(dict.fromkeys(rules.settle(f"{path}{end}") for path in paths if len(path) < 140))

        if isinstance(form, str):
            head, *rest = form.split(".")
            found = self._find_head(document, scope, head, steps)
            for name in rest:
                found = extend(found, f".{name}")
            return found or ((f"?.{rest[-1]}",) if rest else ())
        if isinstance(form, int):
            site = document.site(form)
            if site is None:
                return ()
            return extend(self.find_paths(document, scope, site.callee, steps - 1), "()")
        match form:
            case Attribute(base=base, path=path):
                found = self.find_paths(document, scope, base, steps - 1)
                for name in path.split("."):
                    found = extend(found, f".{name}")
                return found
            case MethodOf(receiver=receiver, name=name):
                return extend(self.find_paths(document, scope, receiver, steps - 1), f".{name}")
            case Element(base=base):
                return self.find_paths(document, scope, base, steps - 1)
            case Choice(options=options):
                return tuple(path for each in options for path in self.find_paths(document, scope, each, steps - 1))[:4]
            case Operated(operator="|", left=left, right=right):
                both = (left, right)
                return tuple(path for each in both for path in self.find_paths(document, scope, each, steps - 1))[:4]
            case Text(value=text) if re.fullmatch(r"[\w.]+", text):
                return self.find_paths(document, scope, Name(text), steps - 1)
            case Imported():
                return (rules.settle(_write_import(form)),)
            case _:
                return ()

    def _find_head(self, document: Document, scope: int, name: str, steps: int) -> tuple[str, ...]:
        at = scope
        for _ in range(20):
            binds = document.binds.get((at, name), ())
            for bind in binds[:3]:
                if isinstance(bind.value, Imported):
                    place = self.program.find_import(document, bind)
                    if place is not None:
                        return self._find_far(place, bind.value, steps)
                    return (self.rules_of(document.language).settle(_write_import(bind.value)),)
                if isinstance(bind.value, (Defined, Lambda, Constant)):
                    return ()
                found = self.find_paths(document, at, bind.value, steps - 1)
                if found:
                    return found
            made = document.by_symbol.get(at)
            if binds or (made is not None and any(parameter.name == name for parameter in made.parameters)):
                if made is not None and not binds:
                    parameter = next(parameter for parameter in made.parameters if parameter.name == name)
                    found = self.find_paths(document, made.scope, parameter.type, steps - 1)
                    return tuple(self.rules_of(document.language).settle(f"{path}()") for path in found)
                return ()
            if at < 0 or made is None:
                break
            at = made.scope
        return (self.rules_of(document.language).settle(name),)

    def _find_far(self, place: Candidate, imported: Imported, steps: int) -> tuple[str, ...]:
        other = self.program.find_document(place.path, place.document)
        if other is None or place.name:
            return ()
        if imported.name in ("*", "="):
            return (f"{MODULE}{place.path}",)
        return self._find_head(other, -1, imported.name, steps - 1) if (-1, imported.name) in other.binds else ()

    # -- what functions are to the outside -----------------------------------------------------------------

    def find_type(self, function: Function, number: int) -> tuple[str, ...]:
        """What a parameter is an instance of, where its annotation or its class says so."""
        made = function.definition
        if made is None:
            return ()
        if number == 0 and function.takes_receiver and function.holder is not None:
            rules = self.rules_of(function.document.language)
            return tuple(rules.settle(f"{path}()") for path in self.find_bases(function.document, function.holder))[:4]
        return self._annotated(function.document, made.scope, made.parameters[number].type)

    def find_annotated(self, function: Function, kind: Form) -> tuple[str, ...]:
        return self._annotated(function.document, function.scope, kind)

    def _annotated(self, document: Document, scope: int, kind: Form) -> tuple[str, ...]:
        if kind is None:
            return ()
        rules = self.rules_of(document.language)
        found = self.find_paths(document, scope, kind)
        return tuple(rules.settle(f"{path}()") for path in found if not path.startswith("?."))

    def find_bases(self, document: Document, kind: Definition, steps: int = 6) -> list[str]:
        """What classes from outside a class extends, through those of the repository."""
        found: dict[str, None] = {}
        for base in kind.bases if steps else ():
            paths = self.find_paths(document, kind.scope, base)
            found.update(dict.fromkeys(path for path in paths if not path.startswith("?.")))
            below = self._find_class(document, kind.scope, base)
            if below is not None:
                found.update(dict.fromkeys(self.find_bases(*below, steps - 1)))
        return list(found)

    def _find_class(self, document: Document, scope: int, base: Form) -> tuple[Document, Definition] | None:
        if not isinstance(base, str):
            return None
        for bind in document.binds.get((-1, base.partition(".")[0]), document.binds.get((-1, label_type(base)), ())):
            value = self.import_value(document, bind)
            for closure in value.closures:
                other = self.program.find_document(closure.path, closure.document)
                made = None if other is None else other.definition_at.get(closure.start)
                if other is not None and made is not None and made.kind == "class":
                    return other, made
        del scope
        return None

    def find_fields(self, kind: Closure) -> Sequence[str]:
        """The fields that a class annotates, where calling it sets nothing else."""
        if kind not in self._fields:
            self._fields[kind] = []  # a class may extend itself in code that is broken
            self._fields[kind] = self._list_fields(kind)
        return self._fields[kind]

    def _list_fields(self, kind: Closure) -> list[str]:
        document = self.program.find_document(kind.path, kind.document)
        made = None if document is None else document.definition_at.get(kind.start)
        if document is None or made is None or made.kind != "class":
            return []
        above = [found for base in made.bases if (found := self._find_class(document, made.scope, base)) is not None]
        bases = [Closure(other.path, other.number, base.start) for other, base in above]
        inherited = [name for base in bases for name in self.find_fields(base)]
        paths = {path for form in made.bases for path in self.find_paths(document, made.scope, form)}
        for decorator in made.decorators:
            site = document.site(decorator) if isinstance(decorator, int) else None
            paths.update(self.find_paths(document, made.scope, decorator if site is None else site.callee))
        if not inherited and not paths & self.rules_of(document.language).records:
            return []
        own = [bind.name for bind in document.code.binds if bind.scope == made.symbol and bind.type is not None]
        return list(dict.fromkeys((*inherited, *own)))

    def find_accessor(self, kind: Closure, name: str, steps: int = 6) -> Function | None:
        """The property of a class, or of a base in the repository, that reading a name runs."""
        document = self.program.find_document(kind.path, kind.document)
        made = None if document is None else document.definition_at.get(kind.start)
        if document is None or made is None or not steps:
            return None
        found = document.find_member(made, name)
        if found is not None:
            holder = found.definition
            return found if holder is not None and "accessor" in holder.modifiers else None
        for base in made.bases:
            below = self._find_class(document, made.scope, base)
            if below is not None:
                other = Closure(below[0].path, below[0].number, below[1].start)
                found = self.find_accessor(other, name, steps - 1)
                if found is not None:
                    return found
        return None

    def find_entry(self, function: Function) -> Entry | None:
        if function.key not in self._entries:
            self._entries[function.key] = self._make_entry(function)
        return self._entries[function.key]

    def _make_entry(self, function: Function) -> Entry | None:
        made, document = function.definition, function.document
        if made is None:
            return None
        rules = self.rules_of(document.language)
        named = self._find_decorators(function) + self._find_handed(document).get(made.start, [])
        bases = self.find_bases(document, function.holder) if function.is_method and function.holder else []
        handed_class = self._find_handed(document).get(function.holder.start, []) if function.holder else []
        for rule in rules.entries:
            fits = any(name in rule.decorators or name in rule.names for name in named)
            if not fits and rule.bases and (not rule.methods or made.name in rule.methods):
                fits = any(base in rule.bases for base in bases)
            if not fits and handed_class and rule.methods:
                fits = made.name in rule.methods and any(name in rule.names for name in handed_class)
            if fits:
                self.entries_seen[rule.id] += 1
                return self._taint_parameters(rule, function, made)
        return None

    def _find_decorators(self, function: Function) -> list[str]:
        made, document = function.definition, function.document
        assert made is not None
        found: list[str] = []
        for decorator in made.decorators:
            form = decorator
            if isinstance(decorator, int):
                site = document.site(decorator)
                form = None if site is None else site.callee
            if form is not None:
                found += self.find_paths(document, made.scope, form)
                if isinstance(form, str) and "." in form:
                    found.append(f"?.{form.rpartition('.')[2]}")
        return found

    def _find_handed(self, document: Document) -> dict[int, list[str]]:
        """By where a function or class starts: the calls that it is passed to."""
        found = document.handed
        if found is None:
            found = document.handed = {}
            for site in document.code.sites:
                for form in (*site.args, *(value for _, value in site.keywords)):
                    for start in self._find_passed(document, site.scope, form):
                        names = self.find_paths(document, site.scope, site.callee)
                        found.setdefault(start, []).extend(names)
        return found

    def _find_passed(self, document: Document, scope: int, form: Form) -> list[int]:
        if isinstance(form, (Lambda, Defined)):
            return [form.start]
        if isinstance(form, int):
            site = document.site(form)
            callee = None if site is None else site.callee
            if site is not None and site.name == "as_view" and isinstance(callee, str):
                return self._find_passed(document, scope, Name(callee.rpartition(".")[0]))
            return []
        if not isinstance(form, str) or "." in form:
            return []
        made = document.by_name.get(form)
        return [made.start] if made is not None and made.scope in (-1, scope) else []

    def _taint_parameters(self, rule: EntryRule, function: Function, made: Definition) -> Entry:
        first = 1 if function.takes_receiver else 0
        numbers = range(first, len(made.parameters))
        types: dict[int, tuple[str, ...]] = {}
        for number, path in rule.types.items():
            types[int(number) + first] = (path,)
        chosen: Iterable[int] = ()
        if rule.taints == "all":
            chosen = numbers
        elif rule.taints == "rest":
            chosen = [number for number in numbers if number not in types]
        elif rule.taints == "plain":
            chosen = [number for number in numbers if not self._is_injected(function, made, number)]
        return Entry(rule, frozenset(chosen), types)

    def _is_injected(self, function: Function, made: Definition, number: int) -> bool:
        """A parameter that the framework makes: `db = Depends(get_db)`, a number, a request object."""
        parameter = made.parameters[number]
        if isinstance(parameter.type, str) and parameter.type.rpartition(".")[2] in _HARMLESS:
            return True
        paths = self.find_type(function, number)
        if any(path in self.rules_of(function.document.language).injected for path in paths):
            return True
        default = parameter.default
        if isinstance(default, int):
            site = function.document.site(default)
            return site is not None and site.name in ("Depends", "Security")
        return False


_EMPTY = Shape()
_HARMLESS = frozenset({"int", "float", "bool", "UUID", "date", "datetime", "Decimal", "Request", "BackgroundTasks"})


def _write_import(imported: Imported) -> str:
    return imported.module if imported.name in ("*", "=") else f"{imported.module}.{imported.name}".lstrip(".")


def _count(flow: Flow) -> int:
    return 0 if flow.taint is None or flow.taint.step is None else flow.taint.step.length


@cache
def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
