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
        return self.is_method and made is not None and "static" not in made.modifiers

    @cached_property
    def holder(self) -> Definition | None:
        """The definition around it."""
        made = self.definition
        return None if made is None else self.document.by_symbol.get(made.scope)

    @cached_property
    def around(self) -> Function | None:
        """The function around it, past classes."""
        made = self.holder
        while made is not None and made.kind != "function":
            made = self.document.by_symbol.get(made.scope)
        return None if made is None else self.document.functions[made.start]


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
        self.handed: dict[int, list[str]] | None = None  # found when somebody asks
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
    def binds(self) -> dict[tuple[int, str], list[Bind]]:
        found: dict[tuple[int, str], list[Bind]] = {}
        for bind in self.code.binds:
            found.setdefault((bind.scope, bind.name), []).append(bind)
        return found

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
