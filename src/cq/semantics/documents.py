"""The documents of a tree and who their definitions are: facts, links and code by path and number, each read once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import msgspec

from cq.graph.links import imported_key
from cq.graph.scopes import ROOT
from cq.graph.unit import Unit
from cq.language import describe
from cq.model.code import Bind, Code, Defined, Imported, NamedKind, Parameter, Site, label_type
from cq.model.edge import Candidate, Links, SymbolRef
from cq.model.facts import Call, Import, References, Symbol
from cq.semantics.memory import Memory, remembered
from cq.semantics.mentions import Mentions
from cq.semantics.sources import Source, Sources


class Index(Protocol):
    """The tables of one tree; lists have an entry per document of a file. See cq.store.read.LinkedTree."""

    def links(self, path: str) -> Sequence[Links | None]: ...
    def code(self, path: str) -> Sequence[Code | None]: ...
    def names(self, path: str) -> Sequence[dict[int, str]]: ...
    def calls(self, path: str) -> Sequence[Sequence[Call]]: ...
    def symbols(self, path: str) -> Sequence[Sequence[Symbol]]: ...
    def references(self, path: str) -> Sequence[References]: ...
    def text(self, path: str) -> bytes: ...
    def paths(self) -> Sequence[str]: ...
    def find_users(self, name: str) -> Sequence[str]: ...
    def find_named(self, name: str, kind: NamedKind, limit: int) -> Sequence[str]: ...
    def find_referrers(self, key: int) -> Sequence[tuple[str, Sequence[int]]]: ...
    def has_referrers(self, key: int) -> bool: ...
    def find_methods(self, name: str) -> Sequence[tuple[str, int, str, tuple[Parameter, ...]]]: ...


class _Body(NamedTuple):
    symbol: int
    end: int
    around: int  # the body that it stands in, -1 for none


class Documents:
    """Definitions are known by their place (`Candidate`) to links, by their number to facts."""

    def __init__(self, index: Index, memory: Memory) -> None:
        self.index, self.memory = index, memory

    def load(self, path: str) -> None:
        """Who will be asked about any file may read it beforehand."""
        self.links(path)
        self._names(path)

    def forget(self, path: str) -> None:
        self.memory.forget(path)

    # -- what the index has of a file ------------------------------------------------------------

    @remembered
    def links(self, path: str) -> Sequence[Links | None]:
        """What the code of a file means, of every document."""
        return self.index.links(path)

    def links_of(self, path: str, document: int) -> Links | None:
        """None where the code of a document was not resolved: then only names can be compared."""
        found = self.links(path)
        return found[document] if document < len(found) else None

    def is_linked(self, path: str, document: int) -> bool:
        return self.links_of(path, document) is not None

    @remembered
    def codes(self, path: str) -> Sequence[Code | None]:
        """What the code of each document does with values."""
        return self.index.code(path)

    @remembered
    def unit(self, path: str, document: int) -> Unit | None:
        codes = self.codes(path)
        code = codes[document] if document < len(codes) else None
        return None if code is None else Unit(path, code, document)

    @remembered
    def symbols(self, path: str) -> Sequence[Sequence[Symbol]]:
        return self.index.symbols(path)

    @remembered
    def mentions(self, path: str) -> list[Mentions]:
        """The names that stand in each document."""
        text = self.index.text(path)
        return [Mentions(references, text) for references in self.index.references(path)]

    @remembered
    def call_numbers(self, path: str, document: int) -> dict[int, int]:
        """Where the name of a call stands -> its number."""
        return {call.name_start: number for number, call in enumerate(self.index.calls(path)[document])}

    @remembered
    def fields(self, path: str, document: int) -> set[str]:
        """The dotted names of what is no function or class."""
        return {symbol.qualified_name for symbol in self.symbols(path)[document] if symbol.kind_group == "value"}

    # -- who is it ---------------------------------------------------------------------------------

    def names(self, path: str, document: int) -> dict[int, str]:
        """What links call a document's definitions, by symbol."""
        found = self._names(path)
        return found[document] if document < len(found) else {}

    @remembered
    def _names(self, path: str) -> Sequence[dict[int, str]]:
        return self.index.names(path)

    @remembered
    def _numbers(self, path: str, document: int) -> dict[str, int]:
        names = self.names(path, document)
        return {names[symbol]: symbol for symbol in reversed(names)}

    def find_symbol(self, place: Candidate) -> int | None:
        """The number of a definition in its document's symbols as they are now; -1 for the module."""
        return self._numbers(place.path, place.document).get(place.name) if place.name else -1

    def find_place(self, path: str, document: int, symbol: int) -> Candidate | None:
        """The inverse of find_symbol."""
        name = "" if symbol < 0 else self.names(path, document).get(symbol)
        return None if name is None else Candidate(path, document, name)

    def find_around(self, path: str, document: int, symbol: int) -> Candidate:
        """The place of a symbol, or of the nearest around it that has one; at last the module."""
        place = self.find_place(path, document, symbol)
        while place is None:
            symbol = self.symbols(path)[document][symbol].parent
            place = self.find_place(path, document, symbol)
        return place

    def symbol(self, place: Candidate) -> Symbol | None:
        """None for a module, which is no symbol, and for what is gone."""
        number = self.find_symbol(place)
        return None if number is None or number < 0 else self.symbols(place.path)[place.document][number]

    def find_scope(self, path: str, document: int, offset: int) -> int:
        """The definition whose code holds an offset: the last whose body starts before it, or one around that."""
        starts, bodies = self._bodies(path, document)
        at = bisect_right(starts, offset) - 1
        while at >= 0 and offset >= bodies[at].end:
            at = bodies[at].around
        return bodies[at].symbol if at >= 0 else ROOT

    @remembered
    def _bodies(self, path: str, document: int) -> tuple[list[int], list[_Body]]:
        """Where the bodies of a document start, and what they are. Not by the parents of symbols: of a field that is
        the class, wherever `self.x = …` stands."""
        symbols = self.symbols(path)[document]
        holding = sorted((s.body_start, -s.body_end, number) for number, s in enumerate(symbols) if s.body_start >= 0)
        found: list[_Body] = []
        stack: list[int] = []
        for start, negative_end, number in holding:
            while stack and found[stack[-1]].end <= start:
                stack.pop()
            found.append(_Body(number, -negative_end, stack[-1] if stack else -1))
            stack.append(len(found) - 1)
        return [start for start, _, _ in holding], found

    def find_holder(self, path: str, document: int, offset: int, names: dict[int, str] | None = None) -> Candidate:
        """The definition that an offset stands in, be it in its head; else the module. Of those with these names."""
        names = self.names(path, document) if names is None else names
        symbols, starts = self._outline(path, document)
        number = bisect_right(starts, offset) - 1
        while number >= 0 and number not in names:
            number -= 1  # of a field the parent is the class, wherever `self.x = …` stands
        while number >= 0 and not (number in names and offset < symbols[number].end):
            number = symbols[number].parent
        return Candidate(path, document, names.get(number, ""))

    @remembered
    def _outline(self, path: str, document: int) -> tuple[Sequence[Symbol], list[int]]:
        """The symbols of a document, and where each starts."""
        symbols = self.symbols(path)[document]
        return symbols, [symbol.start for symbol in symbols]

    def find_generic(self, path: str, document: int, name: str, offset: int) -> Symbol | None:
        """The definition whose type parameter a type of this name is at an offset, be it in its head."""
        found: Symbol | None = None
        for around in self._generics(path, document).get(name, ()):
            if around.start <= offset < around.end:  # the innermost is the last
                found = around
        return found

    def find_headed(self, path: str, document: int, name: str, offset: int) -> Symbol | None:
        """The function whose parameter a name is at an offset in its head, in front of the body."""
        heads = self._heads(path, document)
        symbols, starts = self._outline(path, document) if heads else ((), [])
        number = bisect_right(starts, offset) - 1
        while number >= 0:
            if offset < symbols[number].body_start and name in heads.get(number, ()):
                return symbols[number]
            number = symbols[number].parent
        return None

    @remembered
    def _heads(self, path: str, document: int) -> dict[int, set[str]]:
        """The names of the parameters of functions, by number, where code in their heads sees those."""
        unit, symbols = self.unit(path, document), self.symbols(path)[document]
        found: dict[int, set[str]] = {}
        for symbol in symbols if unit is not None and describe(unit.language).has_open_heads else ():
            if symbol.kind == "parameter" and symbol.parent >= 0 and symbol.start < symbols[symbol.parent].body_start:
                found.setdefault(symbol.parent, set()).add(symbol.name)
        return found

    @remembered
    def _generics(self, path: str, document: int) -> dict[str, list[Symbol]]:
        """By the names of type parameters: the definitions that have them."""
        symbols = self.symbols(path)[document]
        found: dict[str, list[Symbol]] = {}
        for symbol in symbols:
            if symbol.kind == "type_parameter" and symbol.parent >= 0:
                found.setdefault(symbol.name, []).append(symbols[symbol.parent])
        return found

    # -- what stands in the code ---------------------------------------------------------------------

    def find_site(self, path: str, document: int, number: int) -> Site | None:
        """What a call is given; `@f` is a call with what it decorates."""
        unit = self.unit(path, document)
        site = None if unit is None else unit.code.sites[number]
        if unit is None or site is None or site.kind != "decorator":
            return site
        decorated, _, called = unit.decorated_at.get(site.end, (None, 0, True))
        return site if called or decorated is None else msgspec.structs.replace(site, args=(Defined(decorated.start),))

    def find_imports(self, path: str, document: int) -> list[tuple[str, SymbolRef]]:
        """The names that imports bind, with what they mean."""
        links = self.links_of(path, document)
        return [] if links is None else [(name, links.refs[number]) for name, number in links.imports]

    def find_bound(self, path: str, document: int) -> Iterator[tuple[Bind, Imported, SymbolRef]]:
        """What imports bind, with what it means, by place."""
        unit = self.unit(path, document) if self.is_linked(path, document) else None
        imports = iter(self.find_imports(path, document))
        for bind in () if unit is None else unit.code.binds:
            if isinstance(bind.value, Imported):
                yield bind, bind.value, self.find_value(next(imports)[1], bind.value.name)

    def find_value(self, ref: SymbolRef, name: str) -> SymbolRef:
        """Links know the module that a value is imported from, not the value."""
        home = self.unit(ref.candidates[0].path, ref.candidates[0].document) if ref.evidence == "value" else None
        if home is None or not {name, label_type(name)} & home.scopes[ROOT].keys():
            return ref
        return msgspec.structs.replace(ref, candidates=(Candidate(home.path, home.document, name),))

    def find_locals(self, path: str, place: Candidate) -> set[str]:
        """The names that imports of a file give to a definition."""
        return {local for local, _ in self.find_renamed(path, place)}

    def find_renamed(self, path: str, place: Candidate) -> list[tuple[str, str]]:
        """The names that imports of a file give to a definition, each with the one they take it by."""
        every = (found for document in range(len(self.links(path))) for found in self.find_bound(path, document))
        return [(bind.name, value.name) for bind, value, ref in every if place in ref.candidates]

    @remembered
    def find_near(self, path: str, document: int) -> set[str]:
        """The files that a document imports, or takes names from."""
        return {place.path for _, ref in self.find_imports(path, document) for place in ref.candidates}

    def find_sources(self, path: str, language: str, items: Iterable[Import]) -> list[list[Source] | None]:
        """The files and modules that each import of a document names; None where its names alone say it."""
        sources = self._open_sources("")
        return [sources.find(path, language, item) for item in items]

    @remembered
    def _open_sources(self, tree: str) -> Sources:
        del tree  # all of it: one for every question
        return Sources(self.index.paths(), lambda path: self.unit(path, 0))

    def find_importing(self, path: str) -> list[str]:
        """The files that import one."""
        return sorted({source for source, _ in self.index.find_referrers(imported_key(path))})

    @remembered
    def is_imported(self, path: str) -> bool:
        return self.index.has_referrers(imported_key(path))
