"""What the engine is told of a code base: documents, functions, and what calls and imports mean."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

from cq.model.code import Bind, Code, Definition, Site, qualify
from cq.model.edge import Candidate
from cq.risk.body import Bodies, Body
from cq.risk.values import Closure


class Callee(NamedTuple):
    place: Candidate
    doubt: float = 1.0  # how likely it is that this is what runs


class Program(Protocol):
    def find_document(self, path: str, number: int) -> Document | None: ...
    def find_callees(self, document: Document, call: int) -> Sequence[Callee]: ...
    def find_import(self, document: Document, bind: Bind) -> Candidate | None: ...


class Function:
    """A definition with its code; `definition` is None for the code of a module itself, which has no name."""

    def __init__(self, document: Document, definition: Definition | None, name: str) -> None:
        self.document, self.definition = document, definition
        self.place = Candidate(document.path, document.number, name)
        self.start = -1 if definition is None else definition.start
        self.scope = -1 if definition is None else definition.symbol
        self.key = (self.place, self.start)

    @cached_property
    def body(self) -> Body:
        return self.document.bodies.get(self.definition)

    @cached_property
    def call_ends(self) -> list[int]:
        """The calls of its code, those of functions without a name inside it as well."""
        document = self.document
        if self.definition is not None and self.definition.anonymous:
            first, last = self.definition.anonymous[1:]
            return [end for end in document.site_at if first < end <= last]
        return [site.end for site in document.code.sites if site.scope == self.scope]

    @property
    def closure(self) -> Closure:
        return Closure(self.document.path, self.document.number, self.start)

    @cached_property
    def parameters(self) -> dict[str, int]:
        made = self.definition
        return {} if made is None else {parameter.name: number for number, parameter in enumerate(made.parameters)}

    @property
    def is_method(self) -> bool:
        holder = self.holder
        return holder is not None and holder.kind == "class"

    @property
    def takes_receiver(self) -> bool:
        made = self.definition
        return made is not None and (self.names_receiver or (self.is_method and "static" not in made.modifiers))

    @cached_property
    def names_receiver(self) -> bool:
        """Whether its first parameter is what it is called on, and never an argument."""
        made = self.definition
        return made is not None and bool(made.parameters) and made.parameters[0].name == "this"

    @cached_property
    def holder(self) -> Definition | None:
        """The definition around it."""
        made = self.definition
        return None if made is None else self.document.by_symbol.get(made.scope)

    @cached_property
    def around(self) -> Function | None:
        """The function around it, past classes."""
        made, document = self.definition, self.document
        while made is not None:
            for start in document.bodies.find_spans(made.start):
                outer = document.by_body[start]
                if outer.scope == made.scope and outer is not made:
                    return document.functions[outer.start]
            made = document.by_symbol.get(made.scope)
            if made is not None and made.kind == "function":
                return document.functions[made.start]
        return None


class Document:
    """One document in detail."""

    def __init__(self, path: str, number: int, code: Code, role: str = "src") -> None:
        self.path, self.number, self.code, self.role = path, number, code, role
        self.language = code.language
        self.bodies = Bodies(code)
        self.site_at: dict[int, int] = {site.end: at for at, site in enumerate(code.sites)}
        self.by_symbol = {made.symbol: made for made in code.definitions if made.symbol >= 0}
        self.definition_at = {made.start: made for made in code.definitions}
        names = qualify(code)
        self.functions: dict[int, Function] = {-1: Function(self, None, "")}
        self.by_name: dict[str, Definition] = {}
        for made in code.definitions:
            name = names.get(made.anonymous[0] if made.anonymous else made.symbol, "")
            self.by_name.setdefault(name, made)
            if made.kind == "function":
                self.functions[made.start] = Function(self, made, name)

    def find_function(self, name: str) -> Function | None:
        if not name:
            return self.functions[-1]
        made = self.by_name.get(name)
        return None if made is None else self.functions.get(made.start)

    def find_member(self, kind: Definition, name: str) -> Function | None:
        """A method that a class defines itself."""
        for made in self.code.definitions:
            if made.scope == kind.symbol and made.name == name and made.kind == "function":
                return self.functions[made.start]
        return None

    @cached_property
    def by_body(self) -> dict[int, Definition]:
        """Functions without a name, by where their bodies begin."""
        return {made.anonymous[1]: made for made in self.code.definitions if made.anonymous}

    @cached_property
    def binds(self) -> dict[tuple[int, str], list[Bind]]:
        """By the scope that has the name: not those of functions without a name."""
        found: dict[tuple[int, str], list[Bind]] = {}
        for bind, span in self._placed:
            if span < 0:
                found.setdefault((bind.scope, bind.name), []).append(bind)
        return found

    @cached_property
    def _placed(self) -> list[tuple[Bind, int]]:
        """With the function without a name that has it, by where its body begins."""
        bodies = {made.start: made.anonymous[1] for made in self.code.definitions if made.anonymous}
        found: list[tuple[Bind, int]] = []
        for bind in self.code.binds:
            span = bodies.get(bind.start, -1) if bind.inner else -1
            if bind.inner and span < 0:
                span = next(self.bodies.find_spans(bind.start), -1)
            found.append((bind, span))
        return found

    @cached_property
    def _inner(self) -> dict[tuple[int, str], list[Bind]]:
        found: dict[tuple[int, str], list[Bind]] = {}
        for bind, span in self._placed:
            if span >= 0:
                found.setdefault((span, bind.name), []).append(bind)
        return found

    @cached_property
    def inner_named(self) -> dict[tuple[int, str], list[Bind]]:
        """Names of functions without a name, by the scope that they stand in."""
        found: dict[tuple[int, str], list[Bind]] = {}
        for bind, span in self._placed:
            if span >= 0:
                found.setdefault((bind.scope, bind.name), []).append(bind)
        return found

    def find_binds(self, function: Function, name: str) -> Sequence[Bind]:
        """What a function binds to a name of its own."""
        made = function.definition
        if made is not None and made.anonymous:
            return self._inner.get((made.anonymous[1], name), ())
        return self.binds.get((function.scope, name), ())

    @cached_property
    def starred(self) -> tuple[Bind, ...]:
        return tuple(bind for bind in self.code.binds if bind.name == "*")

    def site(self, end: int) -> Site | None:
        number = self.site_at.get(end)
        return None if number is None else self.code.sites[number]

    def is_around(self, outer: Function, inner: Function) -> bool:
        """Whether a function stands in the code of another, or is it."""
        at: Function | None = inner
        while at is not None:
            if at.key == outer.key:
                return True
            at = at.around
        return False
