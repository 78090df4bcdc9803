"""Which functions are called from outside, and what they are given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from cq.model.code import (
    Constant,
    Defined,
    Definition,
    Dictionary,
    Imported,
    Lambda,
    Listing,
    Name,
    SeenIn,
    split_receiver,
)
from cq.model.code import Value as Form
from cq.model.edge import Candidate
from cq.risk.names import Names
from cq.risk.program import Document, Function, Program
from cq.risk.rules import EntryRule, OwnRules
from cq.risk.run import MODULE
from cq.risk.values import NOTHING, Closure, Ref, Shape, Value


class Entry(NamedTuple):
    """A function that is called from outside."""

    rule: EntryRule
    tainted: frozenset[int]
    types: Mapping[int, tuple[str, ...]]


class Entries(Names):
    """Over one program."""

    def __init__(self, program: Program, own_rules: OwnRules) -> None:
        super().__init__(program, own_rules)
        self._entries: dict[tuple[Candidate, int], Entry | None] = {}
        self._handed: dict[Closure, list[str]] = {}  # functions and classes, with the calls that they are passed to
        self.entries_seen: Counter[str] = Counter()

    def prepare(self, document: Document) -> None:
        """Notes which functions a document hands to the calls that entry points are known by, wherever they stand."""
        wanted = self.rules_of(document.language).handed
        for site in document.code.sites:
            if site.name not in wanted or site.kind == "decorator":
                continue
            names = [name for name in self.find_paths(document, site.scope, site.callee) if name in wanted[site.name]]
            if not names:
                continue
            for form in (*site.args, *(value for _, value in site.keywords)):
                for closure in self._find_passed(document, site.scope, form):
                    self._handed.setdefault(closure, []).extend(names)

    def find_entry(self, function: Function) -> Entry | None:
        if function.key not in self._entries:
            self._entries[function.key] = self._make_entry(function)
        return self._entries[function.key]

    def _make_entry(self, function: Function) -> Entry | None:
        made, document = function.definition, function.document
        if made is None:
            return None
        rules = self.rules_of(document.language)
        named = self._find_decorators(function) + self._handed.get(function.closure, [])
        bases = self.find_bases(document, function.holder) if function.is_method and function.holder else []
        holder = function.holder
        handed_class = (
            self._handed.get(Closure(document.path, document.number, holder.start), []) if holder is not None else []
        )
        for rule in rules.entries:
            fits = any(name in rule.decorators or name in rule.names for name in named)
            if not fits and rule.bases and (not rule.methods or made.name in rule.methods):
                fits = any(base in rule.bases for base in bases)
            if not fits and handed_class and rule.methods:
                fits = made.name in rule.methods and any(name in rule.names for name in handed_class)
            first = 1 if function.takes_receiver else 0
            if rule.parameters:
                given = tuple(parameter.name for parameter in made.parameters[first:])
                fits = (fits or not (rule.names or rule.decorators or rule.bases)) and given[
                    : len(rule.parameters)
                ] == rule.parameters
            if fits and rule.count:
                fits = len(made.parameters) - first == rule.count
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

    def _find_passed(self, document: Document, scope: int, form: Form, steps: int = 4) -> Iterable[Closure]:
        """The functions and classes that an argument is, or holds, or wraps."""
        match form:
            case None:
                return ()
            case _ if not steps:
                return ()
            case Lambda(start=start) | Defined(start=start):
                return (Closure(document.path, document.number, start),)
            case str():
                return self._find_named(document, scope, form, steps)
            case int():
                site = document.site(form)
                if site is None:
                    return ()
                inner: list[Form] = [*site.args]
                if site.name == "as_view" and isinstance(site.callee, str):
                    inner = [Name(site.callee.rpartition(".")[0])]
                elif site.name == "bind":  # `controller.show.bind(controller)`
                    inner = [split_receiver(site.callee)]
                passed = [self._find_passed(document, scope, each, steps - 1) for each in inner[:10]]
                return [closure for each in passed for closure in each]
            case Listing(elements=held) | Dictionary(values=held):
                passed = [self._find_passed(document, scope, each, steps - 1) for each in held[:40]]
                return [closure for each in passed for closure in each]
            case _:
                return ()

    def _find_named(self, document: Document, scope: int, name: str, steps: int) -> Iterable[Closure]:
        head, *rest = name.split(".")
        at = scope
        while True:
            binds = document.binds.get((at, head)) or document.inner_named.get((at, head), ())
            if binds or at < 0:
                break
            made = document.by_symbol.get(at)
            at = -1 if made is None else made.scope
        for bind in binds[:1]:
            form = bind.value.value if isinstance(bind.value, SeenIn) else bind.value
            if not rest and not isinstance(form, (Imported, Defined, Lambda)):
                return self._find_passed(document, at, form, steps - 1)
            value = self.import_value(document, bind)
            for attribute in rest:
                value = self._read_static(value, attribute)
            return value.closures
        return ()

    def _read_static(self, value: Value, name: str) -> Value:
        for path in value.paths:
            if path.startswith(MODULE):
                return self.read_module(path.removeprefix(MODULE), name)
        for closure in value.closures:
            document = self.program.find_document(closure.path, closure.document)
            made = None if document is None else document.definition_at.get(closure.start)
            member = document.find_member(made, name) if document is not None and made is not None else None
            if member is not None:
                return Value(closures=(member.closure,))
        for ref in value.refs:
            return self.find_shape(ref).fields.get(name, NOTHING)
        return NOTHING

    def find_shape(self, ref: Ref) -> Shape:
        raise NotImplementedError

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
        if isinstance(parameter.type, Constant) and parameter.type.name in ("int", "float", "bool"):
            return True
        paths = self.find_type(function, number)
        if any(path in self.rules_of(function.document.language).injected for path in paths):
            return True
        default = parameter.default
        if isinstance(default, int):
            site = function.document.site(default)
            return site is not None and site.name in ("Depends", "Security")
        return False


_HARMLESS = frozenset({"int", "float", "bool", "UUID", "date", "datetime", "Decimal", "Request", "BackgroundTasks"})
