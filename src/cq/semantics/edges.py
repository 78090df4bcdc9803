"""What refers to what, read from the links an index keeps: edges out of and into a definition, callers, a place."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from sys import maxsize
from typing import NamedTuple, Protocol

import msgspec

from cq.graph.links import imported_key, is_by_name, name_key, target_key
from cq.graph.names import Method, find_by_name, find_imported, fits
from cq.graph.scopes import ANYWHERE, ROOT
from cq.graph.unit import Unit
from cq.language import describe
from cq.languages.linking import find_dialect
from cq.model.code import (
    NULL,
    Bind,
    Choice,
    Code,
    Defined,
    Element,
    Imported,
    MethodOf,
    Name,
    Operated,
    Parameter,
    ParameterOf,
    Site,
    Store,
    Text,
    Value,
)
from cq.model.edge import CONFIDENCE, RELATIONS, Candidate, Edge, Links, Shape, SymbolRef
from cq.model.facts import Binding, Call, FileFacts, Import, Reference, References, Symbol
from cq.semantics.mentions import BEHIND, Mentions
from cq.semantics.sources import Source, Sources

MAX_BASES = 50  # classes that are asked for an attribute
MAX_GUESSED = 10  # attributes that hold a descriptor: with more, their names alone say nothing
_MEMBER = re.compile(rb"(?<!\.\.)\.\Z|::\Z")
# Methods that run where an attribute holds an instance of their class, and what with it.
_DESCRIPTORS = {"__get__": ("read", "update"), "__set__": ("write", "update")}
_UPDATE = re.compile(rb"\s*(?:[-+*/%@&|^]|//|\*\*|<<|>>>?|&&|\|\||\?\?)=(?!=)|\+\+|--")


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
    def find_referrers(self, key: int) -> Sequence[tuple[str, Sequence[int]]]: ...
    def has_referrers(self, key: int) -> bool: ...
    def find_methods(self, name: str) -> Sequence[tuple[str, int, str, tuple[Parameter, ...]]]: ...


class Read(NamedTuple):
    """A place in the code of `source` where the name of an attribute stands; `first` is where the names begin that it
    is read off, the same as `start` where it is read off something else."""

    source: Candidate
    first: int
    start: int
    end: int
    kind: str  # read write, update for both
    ref: SymbolRef


class Edges:
    """One answer's view: what was read is kept until it is thrown away."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._links: dict[str, Sequence[Links | None]] = {}
        self._code: dict[str, Sequence[Code | None]] = {}
        self._units: dict[tuple[str, int], Unit | None] = {}
        self._methods: dict[str, list[Method]] = {}
        self._fitting: dict[tuple[str, Shape], list[Method]] = {}
        self._imported: dict[str, bool] = {}
        self._qualified: dict[str, Sequence[dict[int, str]]] = {}
        self._numbered: dict[tuple[str, int], dict[str, int]] = {}
        self._near: dict[tuple[str, int], set[str]] = {}
        self._symbols: dict[str, Sequence[Sequence[Symbol]]] = {}
        self._mentioned: dict[tuple[str, int], dict[str, list[int]]] = {}
        self._entered: set[str] = set()  # modules whose names are being looked up: they may import one another
        self._valued: dict[tuple[str, int], set[str]] = {}
        self._mentions: dict[str, list[Mentions]] = {}
        self._outgoing: dict[tuple[str, int], _Outgoing] = {}
        self._related: dict[tuple[str, int], dict[Candidate, list[Edge]] | None] = {}
        self._guessed: dict[str, dict[Candidate, list[tuple[str, int]]]] = {}
        self._calls_at: dict[tuple[str, int], dict[int, int]] = {}
        self._classes: dict[tuple[str, int, int, int, str], tuple[Candidate | None, str] | None] = {}
        self._filled: dict[str, dict[tuple[int, str, Shape], SymbolRef]] = {}
        self._sources: Sources | None = None

    def find_out(self, source: Candidate, *, possible: bool = True) -> list[Edge]:
        """Edges out of a definition; those of the code inside it that is no definition of its own. Of a module too.
        Without `possible`, what only a name speaks for is left out, which is most of the cost."""
        links = self._of(source.path, source.document)
        if links is None:
            return []
        key = (source.path, source.document)
        if key not in self._outgoing:
            self._outgoing[key] = _find_outgoing(*key, links)
        calls, relations = self._outgoing[key]
        found = [edge for number in calls.get(source.name, ()) for edge in self._calls(source, links, number, possible)]
        return found + relations.get(source.name, [])

    def find_all(self, path: str, document: int) -> Iterator[Edge]:
        """Every edge out of a document: its calls in order, then the rest by kind. Calls in a function without a name
        are its own here; elsewhere they are those of the definition around it too."""
        links = self._of(path, document)
        if links is not None:
            for number, scope in enumerate(links.scopes):
                holder = Candidate(path, document, links.lambdas.get(number, scope))
                yield from self._calls(holder, links, number, possible=True)
            yield from _relations(path, document, links)

    def is_linked(self, path: str, document: int) -> bool:
        """Whether the code of a document was resolved; else only names can be compared."""
        return self._of(path, document) is not None

    def find_near(self, path: str, document: int) -> set[str]:
        """The files a document imports."""
        links = self._of(path, document)
        return set() if links is None else find_imported(links)

    def find_import(self, path: str, document: int, number: int) -> tuple[str, str] | None:
        """The module as written, and its file ("" for none of the tree), that the first name of a callee comes from."""
        unit, links = self._unit(path, document), self._of(path, document)
        site = None if unit is None else unit.code.sites[number]
        if unit is None or links is None or site is None:
            return None
        callee = site.callee.receiver if isinstance(site.callee, MethodOf) else site.callee
        if not isinstance(callee, str):
            return None
        name = callee.partition(".")[0]
        binds = unit.find(site.scope, name, site.start)
        imports = [bind.value for bind in binds if isinstance(bind.value, Imported)]
        if not imports or len(imports) < len(binds):
            return None
        files = {c.path for local, at in links.imports if local == name for c in links.refs[at].candidates}
        return "." * imports[0].level + imports[0].module, files.pop() if len(files) == 1 else ""

    def load(self, path: str) -> None:
        """Who will be asked about any file may read it beforehand."""
        self._all(path)
        self._names(path, 0)

    def forget(self, path: str) -> None:
        """Who goes over all files need not hold them all."""
        documents = max(len(self._links.pop(path, ())), len(self._code.pop(path, ())))
        self._filled.pop(path, None)
        self._symbols.pop(path, None)
        self._qualified.pop(path, None)
        self._mentions.pop(path, None)
        for document in range(documents):
            self._units.pop((path, document), None)
            self._numbered.pop((path, document), None)
            self._mentioned.pop((path, document), None)
            self._valued.pop((path, document), None)
            self._outgoing.pop((path, document), None)
            self._related.pop((path, document), None)
            self._calls_at.pop((path, document), None)

    def find_into(self, target: Candidate, *, possible: bool = True) -> list[Edge]:
        """Every edge that means, or may mean, a definition: certain ones and candidates, by path."""
        found = list(self._find_callers(target, possible))
        for path, _ in self._index.find_referrers(target_key(target)):
            for document, links in enumerate(self._all(path)):
                if links is not None:
                    found += self._find_related(path, document, links, target)
        return sorted(found, key=lambda edge: (edge.source.path, edge.source.document))

    def _find_related(self, path: str, document: int, links: Links, target: Candidate) -> Iterable[Edge]:
        """The edges of a document into a definition that are no calls. Most documents are asked about one; those that
        are asked about a second are sorted by what they refer to."""
        key = (path, document)
        if key not in self._related:
            self._related[key] = None
            meant = {number for number, ref in enumerate(links.refs) if target in ref.candidates}
            return _relations(path, document, links, meant) if meant else ()
        found = self._related[key]
        if found is None:
            found = self._related[key] = {}
            for edge in _relations(path, document, links):
                for place in edge.ref.candidates:
                    found.setdefault(place, []).append(edge)
        return found.get(target, ())

    def find_usages_into(self, target: Candidate, known: Iterable[Edge]) -> list[Edge]:
        """Definitions that name the target and have no certain edge to it among those known, as one edge each."""
        if not target.name:
            return []
        if self.find_symbol(target) is None:
            return self._find_users(target)
        taken = {edge.source for edge in known if edge.ref.status == "resolved"} | {target}
        found: list[Edge] = []
        name = target.name.rpartition(".")[2].partition("#")[0]
        # `views.index`: no link of the file leads to more than the module.
        importing = self.find_importing(target.path) if "." not in target.name else []
        through = set(importing).intersection(self._index.find_users(name)) if importing else set[str]()
        referring = {path for path, _ in self._index.find_referrers(target_key(target))}
        for path in sorted({target.path} | referring | through):
            for document, links in enumerate(self._all(path)):
                if links is None:
                    continue
                names = {local for local, number in links.imports if target in links.refs[number].candidates}
                if (path, document) == (target.path, target.document) or path in through:
                    names.add(name)
                usages = self._usages(path, document, names) if names else ()
                found += [edge for edge in usages if target in edge.ref.candidates and edge.source not in taken]
        taken |= {edge.source for edge in found}
        for read in self.find_reads(target, possible=False):
            if read.source not in taken:
                taken.add(read.source)
                found.append(Edge("usages", read.source, read.ref))
        return found

    def _find_users(self, target: Candidate) -> list[Edge]:
        """Definitions that name a value or an alias of a type, which links know no more of than the module."""
        found: dict[Candidate, Edge] = {}
        name = target.name.rpartition(".")[2]
        for path in sorted({target.path, *self._index.find_users(name)}):
            for document, start, _, ref in self.find_mentions(path, name, (target,)):
                if ref is not None and target in ref.candidates:
                    around = _around(self._symbols_of(path)[document], self._names(path, document), start)
                    source = Candidate(path, document, around)
                    found.setdefault(source, Edge("usages", source, ref))
        return list(found.values())

    def find_mentions(
        self, path: str, name: str, wanted: Collection[Candidate]
    ) -> Iterator[tuple[int, int, int, SymbolRef | None]]:
        """As `find_named`, of the name that some definitions have, and of those that the imports of a file give them
        where these surely mean one."""
        taken = {target: self._find_taken(path, target) for target in wanted if self.find_symbol(target) is None}
        others = {local for target in wanted for local in self.find_locals(path, target)}
        others |= {bind.name for binds in taken.values() for bind in binds}
        for local in (name, *sorted(others - {name})):
            for document, start, end, ref in self.find_named(path, local):
                for target, binds in taken.items():
                    if ref is None or target not in ref.candidates:
                        # A call of a value means what it holds: `render = make(); render()`.
                        ref = self._find_value(path, document, local, start, binds, target) or ref
                if local == name or (ref is not None and ref.resolved is not None):
                    yield document, start, end, ref

    def _find_taken(self, path: str, target: Candidate) -> list[Bind]:
        """The imports of a file that take a value by its name from the module that binds it."""
        found: list[Bind] = []
        for document in range(len(self._all(path)) if "." not in target.name else 0):
            unit = self._unit(path, document)
            for bind in () if unit is None else unit.code.binds:
                value, name = bind.value, target.name
                if unit is not None and isinstance(value, Imported) and value.name == name:
                    item = Import("from", value.module, 0, 0, ROOT, (Binding(name, name, 0, 0),), value.level)
                    sources = self.find_sources(path, unit.language, [item])[0] or ()
                    found += [bind] if any(source.path == target.path for source in sources) else []
        return found

    def _find_value(
        self, path: str, document: int, name: str, start: int, taken: list[Bind], target: Candidate
    ) -> SymbolRef | None:
        """A name as the target, a value, where scopes say that it is bound there or taken from there."""
        unit, mentions = self._unit(path, document), self._read_names(path)[document]
        place = mentions.find_at(start)
        if unit is None or place is None or place.role == "keyword":
            return None
        if mentions.is_behind(place):
            ref = self._find_attribute(path, document, name, start)
            return ref if ref is not None and target in ref.candidates else None
        binds = unit.find(_innermost(self._symbols_of(path)[document], start), name, start)
        own = (path, document) == (target.path, target.document) and name == target.name
        if not any(each is bind for bind in binds for each in taken) and not (
            own and any(bind.scope == ROOT for bind in binds)
        ):
            return None
        return SymbolRef(name, "resolved", "scope", CONFIDENCE["scope"], (target,))

    def find_reads(self, target: Candidate, *, possible: bool = True) -> Iterator[Read]:
        """Every place that runs an accessor, or `__get__` and `__set__` of a descriptor, without a call; none for what
        is neither. What is read off something unknown is possible, by its name."""
        number, home = self.find_symbol(target), self._unit(target.path, target.document)
        symbol = self._symbols_of(target.path)[target.document][number] if number is not None and number >= 0 else None
        if symbol is None or home is None:
            return
        on_class = (
            symbol.name in _DESCRIPTORS or "static" in symbol.modifiers or not describe(home.language).has_descriptors
        )
        if symbol.kind == "accessor":
            whole = msgspec.structs.replace(target, name=target.name.partition("#")[0])
            held = {whole: _find_kinds(symbol)}
        elif symbol.name in _DESCRIPTORS and describe(home.language).has_descriptors:
            held = dict.fromkeys(self._find_described(target), _DESCRIPTORS[symbol.name])
        else:
            held = _find_properties(home, number) if number is not None else {}
        guessing = possible and len(held) <= MAX_GUESSED
        for whole, kinds in held.items():
            for read in self._find_mentions_of(whole, home, guessing, "write" in kinds):
                is_wanted = read.kind in kinds and (possible or read.ref.status == "resolved")
                if is_wanted and (on_class or read.ref.evidence != "scope"):
                    yield read

    def _find_mentions_of(self, whole: Candidate, home: Unit, guessing: bool, written: bool) -> Iterator[Read]:
        """Where an attribute of a class is read or, if that is asked for, written. Off `self` it may be that of a class
        above or below. With `guessing`, also what is read off something unknown."""
        wanted = whole.name.rpartition(".")[2]
        above, below = self._find_overridden(whole), self._find_overriding(whole)
        is_abstract = bool(below) and self._is_abstract(whole)
        guessing = guessing and not is_abstract
        for path in self._index.find_users(wanted):
            for document, mentions in enumerate(self._read_names(path)):
                places = [place for place in mentions.find(wanted) if mentions.is_behind(place)]
                if written:
                    places = sorted([*places, *self._find_fields(path, document, wanted)], key=lambda r: r.start)
                read_off = list(map(mentions.find_receiver, places))
                # Without guessing, what is not read off names is nobody's.
                unit = self._unit(path, document) if any(read_off) or (guessing and places) else None
                if unit is None or find_dialect(unit.language) is not find_dialect(home.language):
                    continue
                named: dict[int, str] = {}
                for (name, start, end, role), receiver in zip(places, read_off, strict=True):
                    ref = self._find_attribute(path, document, name, start, receiver)
                    if ref is None and role != "call" and guessing:
                        ref = SymbolRef(name, "ambiguous", "name", CONFIDENCE["name"], (whole,))
                    elif ref is not None and ref.evidence == "mro" and not above.isdisjoint(ref.candidates):
                        ref = SymbolRef(name, "ambiguous", "mro", CONFIDENCE["parameter"], (whole,))
                    elif ref is not None and ref.evidence == "mro" and below and whole in ref.candidates:
                        meant = () if is_abstract else (whole,)
                        ref = SymbolRef(name, "ambiguous", "mro", CONFIDENCE["parameter"], meant)
                    kind = "write" if role == "assignment" else "read"
                    if kind == "read" and _UPDATE.match(mentions.text, end):
                        kind = "update"
                    if ref is not None and whole in ref.candidates:
                        named = named or {at: unit.qualified_names[at] for at in unit.by_symbol}  # a lambda's, too
                        around = _around(self._symbols_of(path)[document], named, start)
                        first = mentions.find_first(start)
                        yield Read(Candidate(path, document, around), first, start, end, kind, ref)

    def _find_fields(self, path: str, document: int, name: str) -> list[Reference]:
        """Where the first `self.x = …` makes a field of the name: that is a definition, and no reference."""
        text = self._index.text(path)
        return [
            Reference(name, symbol.name_start, symbol.name_end, "assignment")
            for symbol in self._symbols_of(path)[document]
            if symbol.name == name and symbol.kind_group == "value" and text[symbol.name_start - 1] == b"."[0]
        ]

    def _find_overridden(self, method: Candidate) -> set[Candidate]:
        """What a method takes the place of, in the classes above."""
        found, todo = set[Candidate](), [method]
        for place in todo:
            for edge in self.find_out(place, possible=False):
                if edge.kind == "overrides" and edge.ref.candidates[0] not in found:
                    found.add(edge.ref.candidates[0])
                    todo.append(edge.ref.candidates[0])
        return found

    def _find_overriding(self, method: Candidate) -> list[Candidate]:
        return [edge.source for edge in self.find_into(method, possible=False) if edge.kind == "overrides"]

    def _is_abstract(self, place: Candidate) -> bool:
        number = self.find_symbol(place)
        symbol = self._symbols_of(place.path)[place.document][number] if number is not None and number >= 0 else None
        return symbol is not None and any(name.endswith("abstractmethod") for name in symbol.decorators)

    def _find_described(self, method: Candidate) -> list[Candidate]:
        """The attributes of classes that hold an instance of the class of a method, or of one that has it from it."""
        name = method.name.rpartition(".")[2]
        kinds = [msgspec.structs.replace(method, name=method.name.rpartition(".")[0])]
        found: dict[Candidate, None] = {}
        for kind in kinds:
            for edge in self.find_into(kind, possible=False):
                unit = self._unit(edge.source.path, edge.source.document)
                if edge.kind == "inherits" and edge.source not in kinds:
                    own = msgspec.structs.replace(edge.source, name=f"{edge.source.name}.{name}")
                    kinds += [edge.source] if self.find_symbol(own) is None else []
                if edge.call < 0 or unit is None or edge.ref.resolved != kind:
                    continue
                site = unit.code.sites[edge.call]
                decorated = unit.decorated_at.get(site.end) if site.kind == "decorator" else None
                owner = unit.by_symbol.get(decorated[0].scope if decorated is not None else site.scope)
                if owner is not None and owner.kind == "class":
                    binds = [bind for bind in unit.code.binds if bind.scope == owner.symbol and bind.value == site.end]
                    names = [bind.name for bind in binds] if decorated is None else [decorated[0].name]
                    holder = unit.qualified_names[owner.symbol]
                    found |= dict.fromkeys(Candidate(unit.path, unit.document, f"{holder}.{each}") for each in names)
        return list(found)

    def _read_names(self, path: str) -> list[Mentions]:
        """Of every document."""
        if path not in self._mentions:
            text = self._index.text(path)
            self._mentions[path] = [Mentions(references, text) for references in self._index.references(path)]
        return self._mentions[path]

    def find_usages_out(self, source: Candidate, known: Iterable[Edge]) -> list[Edge]:
        """What a definition names and has no certain edge to among those known."""
        if self._of(source.path, source.document) is None:
            return []
        taken = {edge.ref.candidates for edge in known if edge.ref.status == "resolved"} | {(source,)}
        number = self.find_symbol(source)
        symbols = self._symbols_of(source.path)[source.document]
        around = (symbols[number].start, symbols[number].end) if number is not None and number >= 0 else None
        usages = self._usages(source.path, source.document, None, around)
        return [edge for edge in usages if edge.source == source and edge.ref.candidates not in taken]

    def _usages(
        self, path: str, document: int, names: set[str] | None, around: tuple[int, int] | None = None
    ) -> Iterator[Edge]:
        """Functions and classes that code names without calling them there: handed over, assigned, compared, read off
        `self`, a class or a module. Of all names or of these, of all the code or of a stretch."""
        mentions = self._find_mentioned(path, document)
        wanted = mentions if names is None else names & mentions.keys()
        if not wanted:
            return
        symbols, own = self._symbols_of(path)[document], self._names(path, document)
        names_read = self._read_names(path)[document]
        defined = set(own.values())
        seen: set[tuple[str, tuple[Candidate, ...]]] = set()
        first, last = around or (0, maxsize)
        for start, name in sorted((at, word) for word in wanted for at in mentions[word] if first <= at < last):
            place = names_read.find_at(start)
            if place is not None and names_read.is_behind(place):
                ref = self._find_attribute(path, document, name, start) or _unknown(name)
            else:
                ref = self._find_name(path, document, _innermost(symbols, start), name, start, "reference")
            places = tuple(
                place for place in ref.candidates
                if place.name and (place.path != path or place.document != document or place.name in defined)
            )  # fmt: skip
            holder = _around(symbols, own, start)
            if places and (holder, places) not in seen:
                seen.add((holder, places))
                used = SymbolRef(name, ref.status, ref.evidence, ref.confidence, places)
                yield Edge("usages", Candidate(path, document, holder), used)

    def _find_mentioned(self, path: str, document: int) -> dict[str, list[int]]:
        """Where a document names what it neither calls, imports nor annotates with, by name."""
        key = (path, document)
        if key not in self._mentioned:
            references = self._index.references(path)[document]
            found: dict[str, list[int]] = {}
            for name, start in references.of_role("reference"):
                found.setdefault(name, []).append(start)
            text = self._index.text(path)
            for name, start in references.of_role("attribute"):
                if text[start - 1 : start] == b".":
                    found.setdefault(name, []).append(start)
            self._mentioned[key] = found
        return self._mentioned[key]

    def find_links(self, path: str) -> Sequence[Links | None]:
        """What the code of a file means, of every document."""
        return self._all(path)

    def find_sources(self, path: str, language: str, items: Iterable[Import]) -> list[list[Source] | None]:
        """The files and modules that each import of a document names; None where its names alone say it."""
        if self._sources is None:
            self._sources = Sources(self._index.paths(), lambda path: self._unit(path, 0))
        return [self._sources.find(path, language, item) for item in items]

    def find_importing(self, path: str) -> list[str]:
        """The files that import one."""
        return sorted({source for source, _ in self._index.find_referrers(imported_key(path))})

    def find_callers(self, target: Candidate, *, possible: bool = True) -> list[Edge]:
        """Calls that run a function, or make an instance of a class; `ref.status` says how sure that is."""
        return list(self._find_callers(target, possible))

    def find_call(self, path: str, document: int, number: int) -> SymbolRef:
        """What a call means, with candidates by name where nobody knows its receiver."""
        links = self._of(path, document)
        if links is None:
            return SymbolRef("", "unresolved")
        return self._fill(path, document, number, links, links.refs[links.calls[number]])

    def find_site(self, path: str, document: int, number: int) -> Site | None:
        """What a call is given; `@f` is a call with what it decorates."""
        unit = self._unit(path, document)
        site = None if unit is None else unit.code.sites[number]
        if unit is None or site is None or site.kind != "decorator":
            return site
        decorated, _, called = unit.decorated_at.get(site.end, (None, 0, True))
        return site if called or decorated is None else msgspec.structs.replace(site, args=(Defined(decorated.start),))

    def find_constructor(self, path: str, document: int, number: int) -> SymbolRef | None:
        """The constructor that a call runs beside the class it means."""
        links = self._of(path, document)
        at = None if links is None else links.constructors.get(number)
        return None if links is None or at is None else links.refs[at]

    def find_handed(self, path: str, document: int, number: int) -> SymbolRef | None:
        """What a call hands on to be called: `map(f, …)`."""
        links = self._of(path, document)
        at = None if links is None else links.callbacks.get(number)
        return None if links is None or at is None else links.refs[at]

    def find_at(self, path: str, offset: int) -> SymbolRef | None:
        """What the name at a byte of a file means: of a call, or by the scopes around it; None: there is no name."""
        for document, calls in enumerate(self._index.calls(path)):
            for number, call in enumerate(calls):
                if call.name_start <= offset < call.name_start + len(call.name.encode()):
                    return self.find_call(path, document, number)
        for document, references in enumerate(self._index.references(path)):
            for name, start, end, role in references:
                if start <= offset < end:
                    return self.find_name(path, document, name, start, role)
        return None

    def find_named(self, path: str, name: str) -> Iterator[tuple[int, int, int, SymbolRef | None]]:
        """(document, start, end, what it means) of every mention of a name in a file's code, one after the other. None
        for a name behind a dot that is not called, unless it is read off `self`, a class or a module."""
        for document, mentions in enumerate(self._read_names(path)):
            references = mentions.find(name)
            numbers = self._find_numbers(path, document) if references else {}
            for place in references:
                _, start, end, role = place
                if start in numbers:
                    yield document, start, end, self.find_call(path, document, numbers[start])
                elif role == "attribute" or mentions.is_behind(place):
                    yield document, start, end, self._find_attribute(path, document, name, start)
                else:
                    yield document, start, end, self.find_name(path, document, name, start, role)

    def _find_numbers(self, path: str, document: int) -> dict[int, int]:
        """Where the name of a call stands -> its number."""
        key = (path, document)
        if key not in self._calls_at:
            calls = self._index.calls(path)[document]
            self._calls_at[key] = {call.name_start: number for number, call in enumerate(calls)}
        return self._calls_at[key]

    def _find_attribute(
        self, path: str, document: int, name: str, start: int, receiver: str | None = None
    ) -> SymbolRef | None:
        """What `receiver.name` means where the receiver is `self`, a class, a module, or a name whose one value has its
        class written beside it; else None."""
        if receiver is None:
            mentions = self._read_names(path)[document]
            place = mentions.find_at(start)
            receiver = "" if place is None else mentions.find_receiver(place)
        unit, links = (self._unit(path, document), self._of(path, document)) if receiver else (None, None)
        if unit is None or links is None:
            return None
        symbols = self._symbols_of(path)[document]
        scope = _innermost(symbols, start)
        while scope >= 0 and scope not in unit.by_symbol:
            scope = symbols[scope].parent  # a function without a name
        head, _, fields = receiver.partition(".")
        binds = unit.find(scope, head, start)
        made = None
        if len(binds) == 1:
            # Of one name in one function, nearly all places mean the same.
            key = (path, document, scope, binds[0].start, receiver)
            if key not in self._classes:
                self._classes[key] = self._find_read_off(unit, links, binds[0], start, fields)
            made = self._classes[key]
        if made is not None:
            kind, evidence = made
            return self._find_member(kind, evidence, name) if kind is not None else None
        if fields:
            return None
        ref = self._find_name(path, document, scope, receiver, start, "reference")
        place = ref.resolved
        if place is None:
            return SymbolRef(name, "external", module=f"{ref.module}.{name}") if ref.status == "external" else None
        if place.name:
            return self._find_member(place, "scope", name)
        found = self.find_dotted(path, document, f"{receiver}.{name}", start)
        return found if found.candidates else None

    def _find_read_off(
        self, unit: Unit, links: Links, bind: Bind, start: int, fields: str
    ) -> tuple[Candidate | None, str] | None:
        """As `_find_class`, of the fields behind what is bound."""
        made = self._find_class(unit, links, bind, start)
        if made is None or not fields:
            return made
        kind = made[0]
        for field in fields.split("."):
            kind = None if kind is None else self._find_held(kind, field)
        return kind, "attribute"

    def _find_held(self, kind: Candidate, field: str) -> Candidate | None:
        """The class that the one assignment to a field of a class makes an instance of, or that its type names."""
        unit, links = self._unit(kind.path, kind.document), self._of(kind.path, kind.document)
        number = self.find_symbol(kind)
        if unit is None or links is None or number is None or number not in unit.by_symbol:
            return None
        places = [*unit.scopes.get(number, {}).get(field, ()), *unit.own_stores(number).get(field, ())]
        if len(places) != 1:
            return None
        made = self._find_class(unit, links, places[0], places[0].start)
        return None if made is None else made[0]

    def _find_class(
        self, unit: Unit, links: Links, bind: Bind | Store, start: int
    ) -> tuple[Candidate | None, str] | None:
        """The class of which a name holds an instance and how that is known; None for a name that is bound to no
        instance: an import, a class."""
        value, written = bind.value, bind.type
        if isinstance(value, ParameterOf):
            definition = unit.definitions[value.start]
            owner = unit.by_symbol.get(definition.scope)
            is_first = value.number == 0 and "static" not in definition.modifiers
            if owner is not None and owner.kind == "class" and is_first:
                return Candidate(unit.path, unit.document, unit.qualified_names[owner.symbol]), "mro"
            written = definition.parameters[value.number].type
        elif isinstance(value, int) and written is None:
            number = unit.site_at[value]
            made = links.refs[links.calls[number]].resolved
            return (made, "constructor") if number in links.constructors or self._is_class(made) else (None, "")
        elif written is None:
            return None
        dotted = _find_written(written)
        symbols = self._symbols_of(unit.path)[unit.document]
        for symbol in symbols:
            if symbol.kind == "type_parameter" and symbol.name == dotted:
                around = symbols[symbol.parent]
                dotted = "" if around.start <= start < around.end else dotted
        if not dotted:
            return None, ""
        return self.find_dotted(unit.path, unit.document, dotted, start).resolved, "annotation"

    def _is_class(self, place: Candidate | None) -> bool:
        number = self.find_symbol(place) if place is not None else None
        if place is None or number is None or number < 0:
            return False
        return self._symbols_of(place.path)[place.document][number].kind_group == "class"

    def _find_member(self, kind: Candidate, evidence: str, name: str) -> SymbolRef | None:
        """In the class itself, else in its bases, the first before the others; None where nobody knows."""
        todo, seen = [kind], set[Candidate]()
        field: SymbolRef | None = None  # an accessor of a base goes before what `self.x = …` writes
        while todo and len(seen) < MAX_BASES:
            here = todo.pop(0)
            if here in seen:
                continue
            seen.add(here)
            inner = Candidate(here.path, here.document, f"{here.name}.{name}")
            found = SymbolRef(name, "resolved", evidence, CONFIDENCE[evidence], (inner,))
            if self.find_symbol(inner) is not None:
                return found
            if field is None and inner.name in self._fields(here.path, here.document):
                field = found
            links = self._of(here.path, here.document)
            bases = [] if links is None else [links.refs[at] for owner, at in links.inherits if owner == here.name]
            if any(base.status != "resolved" for base in bases):
                return field
            todo += [base.candidates[0] for base in bases]
        return field

    def _fields(self, path: str, document: int) -> set[str]:
        """The dotted names of what is no function or class."""
        key = (path, document)
        if key not in self._valued:
            self._valued[key] = {s.qualified_name for s in self._symbols_of(path)[document] if s.kind_group == "value"}
        return self._valued[key]

    def _symbols_of(self, path: str) -> Sequence[Sequence[Symbol]]:
        if path not in self._symbols:
            self._symbols[path] = self._index.symbols(path)
        return self._symbols[path]

    def find_dotted(self, path: str, document: int, dotted: str, start: int) -> SymbolRef:
        """What `a.b.C` means at a byte: through imports, into modules and classes; `module` is set for what comes from
        outside. A name that nothing here binds is unresolved: it may be the language's own."""
        head, *rest = dotted.split(".")
        ref = self.find_name(path, document, head, start, "reference")
        for name in rest:
            place = ref.resolved
            if ref.status == "external":
                ref = SymbolRef(name, "external", ref.evidence, ref.confidence, module=f"{ref.module}.{name}")
            elif place is None:
                return _unknown(name)
            elif place.name:
                inner = Candidate(place.path, place.document, f"{place.name}.{name}")
                known = self.find_symbol(inner) is not None
                ref = SymbolRef(name, "resolved", "scope", ref.confidence, (inner,)) if known else _unknown(name)
            else:
                ref = self.find_name(place.path, place.document, name, ANYWHERE, "reference")
                if ref.status == "unresolved" and place.path.endswith("/__init__.py"):
                    stem = place.path.removesuffix("__init__.py") + name
                    found = next((p for p in (f"{stem}.py", f"{stem}/__init__.py") if self._all(p)), "")
                    ref = SymbolRef(name, "resolved", "import", 0.99, (Candidate(found, 0, ""),)) if found else ref
        return ref

    def find_names(
        self, path: str, document: int, facts: FileFacts, *, unknown: bool = False
    ) -> Iterator[tuple[Reference, int, SymbolRef]]:
        """Every name of a document that scopes bind, with the definition whose code it stands in and what it means.
        Of an import those names that are taken from the module, not those of the module. With `unknown`, names too
        that nothing here binds, and that no parameter bears."""
        if self._unit(path, document) is None:
            return
        known, text = dict(self.find_imports(path, document)), self._index.text(path)
        parameters = _find_parameters(facts.symbols) if unknown else []
        bindings = [binding for item in facts.imports for binding in item.bindings]
        bindings.sort(key=lambda binding: binding.start)
        for reference in facts.references:
            name, start, _, role = reference
            if role in BEHIND and _MEMBER.search(text, max(start - 3, 0), start):
                continue  # of something: no scope binds it
            scope = _innermost(facts.symbols, start)
            if role == "import":
                at = bisect_right(bindings, start, key=lambda binding: binding.start) - 1
                local = bindings[at].local if at >= 0 and start < bindings[at].end else ""
                ref = known.get(local)
            else:
                ref = self._find_name(path, document, scope, name, start, role)
            if (ref is not None and ref.status != "unresolved") or (
                unknown
                and ref is not None  # of an import what it binds, not the words that name the module
                and role not in ("attribute", "keyword", "label")
                and not _has_parameter(parameters, facts.symbols, start, name)
            ):
                yield reference, scope, ref

    def find_imports(self, path: str, document: int) -> list[tuple[str, SymbolRef]]:
        """The names that imports bind, with what they mean."""
        links = self._of(path, document)
        return [] if links is None else [(name, links.refs[number]) for name, number in links.imports]

    def find_symbol(self, place: Candidate) -> int | None:
        """The number of a definition in its document's symbols as they are now; -1 for the module."""
        if not place.name:
            return -1
        key = (place.path, place.document)
        if key not in self._numbered:
            names = self._names(*key)
            self._numbered[key] = {names[symbol]: symbol for symbol in reversed(names)}
        return self._numbered[key].get(place.name)

    def find_place(self, path: str, document: int, symbol: int) -> Candidate | None:
        """The inverse of find_symbol."""
        name = "" if symbol < 0 else self._names(path, document).get(symbol)
        return None if name is None else Candidate(path, document, name)

    # -- inside ----------------------------------------------------------------------------------

    def _all(self, path: str) -> Sequence[Links | None]:
        if path not in self._links:
            self._links[path] = self._index.links(path)
        return self._links[path]

    def _of(self, path: str, document: int) -> Links | None:
        found = self._all(path)
        return found[document] if document < len(found) else None

    def _codes(self, path: str) -> Sequence[Code | None]:
        if path not in self._code:
            self._code[path] = self._index.code(path)
        return self._code[path]

    def _names(self, path: str, document: int) -> dict[int, str]:
        """Of a document's definitions, by symbol."""
        unit = self._units.get((path, document))
        if unit is not None:
            return unit.qualified_names
        if path not in self._qualified:
            self._qualified[path] = self._index.names(path)
        found = self._qualified[path]
        return found[document] if document < len(found) else {}

    def _unit(self, path: str, document: int) -> Unit | None:
        key = (path, document)
        if key not in self._units:
            codes = self._codes(path)
            code = codes[document] if document < len(codes) else None
            self._units[key] = None if code is None else Unit(path, code, document)
        return self._units[key]

    def _find_referrers(self, target: Candidate, possible: bool) -> Iterator[tuple[str, list[int]]]:
        calls: dict[str, set[int]] = {}
        for path, numbers in self._index.find_referrers(target_key(target)):
            calls.setdefault(path, set()).update(numbers)
        name = target.name.rpartition(".")[2].partition("#")[0]
        for path, call in self._find_guessed(name).get(target, ()) if name and possible else ():
            calls.setdefault(path, set()).add(call)
        for path in sorted(calls):
            yield path, sorted(calls[path])

    def _find_guessed(self, name: str) -> dict[Candidate, list[tuple[str, int]]]:
        """Of the calls on unknown receivers, by the methods of the name that they may mean."""
        if name not in self._guessed:
            found = self._guessed[name] = {}
            for path, calls in self._index.find_referrers(name_key(name)):
                every = self._all(path)
                for call in calls:
                    document, number = call >> 24, call & 0xFFFFFF
                    links = every[document] if document < len(every) else None
                    if links is not None and number not in links.replaced:
                        ref = self._fill(path, document, number, links, links.refs[links.calls[number]])
                        for place in ref.candidates if ref.evidence == "name" else ():
                            found.setdefault(place, []).append((path, call))
        return self._guessed[name]

    def _find_callers(self, target: Candidate, possible: bool) -> Iterator[Edge]:
        for path, calls in self._find_referrers(target, possible):
            every = self._all(path)
            for call in calls:
                document, number = call >> 24, call & 0xFFFFFF
                links = every[document] if document < len(every) else None
                if links is not None:
                    source = Candidate(path, document, links.scopes[number])
                    yield from (e for e in self._calls(source, links, number, possible) if target in e.ref.candidates)

    def _calls(self, source: Candidate, links: Links, number: int, possible: bool) -> Iterator[Edge]:
        """The edges of one call: what it runs or makes, the constructor, and what it hands on to be called."""
        ref = links.refs[links.calls[number]]
        if possible and number not in links.replaced:
            ref = self._fill(source.path, source.document, number, links, ref)
        kind = "calls"
        if number in links.constructors:
            kind = "instantiates"
            yield Edge("calls", source, links.refs[links.constructors[number]], number)
        if number in links.decorators:
            kind = "decorates"
        elif number in links.replaced:
            kind = "usages"
        if kind != "usages" or not is_by_name(ref):  # what runs is known where the name alone says nothing
            yield Edge(kind, source, ref, number)
        if number in links.runs:
            yield Edge("calls", source, links.refs[links.runs[number]], number)
        if number in links.callbacks:
            yield Edge("calls", source, links.refs[links.callbacks[number]], number)

    def _fill(self, path: str, document: int, number: int, links: Links, ref: SymbolRef) -> SymbolRef:
        if not is_by_name(ref):
            return ref
        filled = self._filled.setdefault(path, {})
        key = (document, ref.name, links.shapes[number])
        if key not in filled:
            filled[key] = self._find_methods(path, document, links, ref, links.shapes[number])
        return filled[key]

    def _find_methods(self, path: str, document: int, links: Links, ref: SymbolRef, shape: Shape) -> SymbolRef:
        methods = self._fitting.get((ref.name, shape))
        if methods is None:
            methods = self._fitting[ref.name, shape] = [m for m in self._named(ref.name) if fits(m.parameters, *shape)]
        near = self._near.get((path, document))
        if near is None:
            near = self._near[path, document] = find_imported(links)
        return find_by_name(ref, path, methods, near, self._is_imported)

    def _named(self, name: str) -> list[Method]:
        methods = self._methods.get(name)
        if methods is None:
            methods = self._methods[name] = [
                Method(Candidate(at, inner, full), parameters)
                for at, inner, full, parameters in self._index.find_methods(name)
            ]
        return methods

    def _is_imported(self, path: str) -> bool:
        if path not in self._imported:
            self._imported[path] = self._index.has_referrers(imported_key(path))
        return self._imported[path]

    def find_name(self, path: str, document: int, name: str, start: int, role: str) -> SymbolRef:
        """What a reference means by the scopes around it."""
        scope = _innermost(self._index.symbols(path)[document], start)
        return self._find_name(path, document, scope, name, start, role)

    def _find_name(self, path: str, document: int, scope: int, name: str, start: int, role: str) -> SymbolRef:
        unit, links = self._unit(path, document), self._of(path, document)
        if unit is None or links is None or role in ("attribute", "keyword"):
            return SymbolRef(name, "unresolved")
        if role == "import":
            # A binding starts where its statement ends.
            for bind, value, ref in self._imports(unit, links):
                if bind.start >= start and name in (bind.name.removeprefix("export "), value.name):
                    return ref
            return _unknown(name)
        # Types of TypeScript, Rust, … are bound apart from values, and one name may be both.
        labels = (f"<{name}>", name) if role == "type" else (name, f"<{name}>")
        binds = next((binds for label in labels if (binds := unit.find(scope, label, start))), ())
        places: dict[Candidate, None] = {}
        for bind in binds:
            value = bind.value
            if isinstance(value, Imported):
                for local, number in links.imports:
                    ref = self._name_value(links.refs[number], value.name) if local == name else None
                    if ref is not None and len(binds) == 1:
                        return ref
                    if ref is not None:
                        places |= dict.fromkeys(ref.candidates)
            elif isinstance(value, Defined):
                places[Candidate(path, document, unit.qualified_names[unit.definitions[value.start].symbol])] = None
            else:
                holder = unit.qualified_names.get(bind.scope, "") if bind.scope != ROOT else ""
                places[Candidate(path, document, f"{holder}.{name}" if holder else name)] = None
        if not places:
            return self._find_starred(links, name, from_outside=start == ANYWHERE)
        status = "resolved" if len(places) == 1 else "ambiguous"
        return SymbolRef(name, status, "scope", round(CONFIDENCE["scope"] / len(places), 3), tuple(places))

    def find_locals(self, path: str, place: Candidate) -> set[str]:
        """The names that imports of a file give to a definition."""
        found: set[str] = set()
        for document, links in enumerate(self._all(path)):
            unit = self._unit(path, document)
            if unit is not None and links is not None:
                found |= {bind.name for bind, _, ref in self._imports(unit, links) if place in ref.candidates}
        return found

    def _imports(self, unit: Unit, links: Links) -> Iterator[tuple[Bind, Imported, SymbolRef]]:
        """What imports bind, with what it means, by place."""
        numbers = iter(links.imports)
        for bind in unit.code.binds:
            if isinstance(bind.value, Imported):
                _, number = next(numbers)
                yield bind, bind.value, self._name_value(links.refs[number], bind.value.name)

    def _find_starred(self, links: Links, name: str, *, from_outside: bool) -> SymbolRef:
        """A name that only `from m import *` can bind or, for who imports the module, `export * from "m"`; the last one
        that has it wins. Each module is asked once: they may import one another in every way."""
        is_first, found = not self._entered, SymbolRef(name, "unresolved")
        for local, number in reversed(links.imports):
            is_starred = local == "*" or (local == "export *" and from_outside)
            source = links.refs[number].resolved if is_starred else None
            home = self._unit(source.path, source.document) if source is not None else None
            if source is None or home is None or home.path in self._entered:
                continue
            public = home.code.public
            if not {name, "*"} & set(public) if public is not None else name.startswith("_"):
                continue
            self._entered.add(home.path)
            found = self._find_name(source.path, source.document, ROOT, name, ANYWHERE, "reference")
            if found.status != "unresolved":
                break
        if is_first:
            self._entered.clear()
        return found

    def _name_value(self, ref: SymbolRef, name: str) -> SymbolRef:
        """Links know the module that a value is imported from, not the value."""
        home = self._unit(ref.candidates[0].path, ref.candidates[0].document) if ref.evidence == "value" else None
        if home is None or not {name, f"<{name}>"} & home.scopes[ROOT].keys():
            return ref
        return msgspec.structs.replace(ref, candidates=(Candidate(home.path, home.document, name),))


# By name of a definition: the calls that it makes, and what else it refers to.
_Outgoing = tuple[dict[str, list[int]], dict[str, list[Edge]]]


def _find_outgoing(path: str, document: int, links: Links) -> _Outgoing:
    calls: dict[str, list[int]] = {}
    relations: dict[str, list[Edge]] = {}
    for number, scope in enumerate(links.scopes):
        for name in {scope, links.lambdas.get(number, scope)}:
            calls.setdefault(name, []).append(number)
    for edge in _relations(path, document, links):
        relations.setdefault(edge.source.name, []).append(edge)
    return calls, relations


def _find_kinds(accessor: Symbol) -> tuple[str, ...]:
    """What runs it."""
    if "set" in accessor.modifiers or any(name.endswith(".setter") for name in accessor.decorators):
        return ("write", "update")
    return () if any(name.endswith(".deleter") for name in accessor.decorators) else ("read", "update")


def _find_properties(unit: Unit, symbol: int) -> dict[Candidate, tuple[str, ...]]:
    """`size = property(get_size, set_size)`: the attributes that a method of the class stands behind."""
    method = unit.by_symbol.get(symbol)
    owner = None if method is None else unit.by_symbol.get(method.scope)
    found: dict[Candidate, tuple[str, ...]] = {}
    if method is None or owner is None or owner.kind != "class" or not describe(unit.language).has_descriptors:
        return found
    for name, binds in unit.scopes.get(owner.symbol, {}).items():
        for number in [unit.site_at.get(bind.value) for bind in binds if isinstance(bind.value, int)]:
            site = None if number is None else unit.code.sites[number]
            if site is not None and site.callee == "property":
                given = [*zip(_PROPERTY, site.args, strict=False), *site.keywords]
                kinds = {kind for key, value in given if value == method.name for kind in _PROPERTY.get(key, ())}
                if kinds:
                    holder = unit.qualified_names[owner.symbol]
                    found[Candidate(unit.path, unit.document, f"{holder}.{name}")] = (*kinds,)
    return found


# The parameters of `property` in order -> what runs what they are given.
_PROPERTY = {"fget": ("read", "update"), "fset": ("write", "update")}


def _find_written(value: Value) -> str:
    """The one name that a type is, but for None: `Row`, `"Row"`, `Row | None`, `Optional[Row]`; else ""."""
    parts: Sequence[Value]
    match value:
        case Choice():
            parts = value.options
        case Operated(operator="|"):
            parts = (value.left, value.right)
        case Element(base="Optional" | "typing.Optional"):
            parts = value.keys
        case Text():
            parts = [Name(part.strip()) for part in value.value.split("|")]
        case _:
            parts = (value,)
    names = [part for part in parts if part not in (NULL, "None")]
    named = names[0] if len(names) == 1 else None
    if isinstance(named, Text):
        return named.value.strip()
    return named if isinstance(named, str) else ""


def _unknown(name: str) -> SymbolRef:
    return SymbolRef(name, "unresolved")


def _relations(path: str, document: int, links: Links, meant: Collection[int] | None = None) -> Iterator[Edge]:
    """The edges of a document that are no calls, of all or of these references; what it imports is imported by the
    module."""
    for name, number in links.implied:
        if meant is None or number in meant:
            yield Edge("calls", Candidate(path, document, name), links.refs[number])
    for kind in RELATIONS:
        for name, number in getattr(links, kind):
            if meant is not None and number not in meant:
                continue
            yield Edge(kind, Candidate(path, document, "" if kind == "imports" else name), links.refs[number])


def _around(symbols: Sequence[Symbol], names: dict[int, str], offset: int) -> str:
    """The definition that an offset stands in, be it in its head; "" for the module."""
    number = bisect_right(symbols, offset, key=lambda symbol: symbol.start) - 1
    while number >= 0 and number not in names:
        number -= 1  # of a field the parent is the class, wherever `self.x = …` stands
    while number >= 0 and not (number in names and offset < symbols[number].end):
        number = symbols[number].parent
    return names.get(number, "")


_TYPE_PARAMETERS = re.compile(r"[<,]\s*(?:(?:const|in|out)\s+)*([\w$]+)")


def _find_parameters(symbols: Sequence[Symbol]) -> list[set[str]]:
    """By symbol the names of its parameters, those of types included."""
    found = [
        set(_TYPE_PARAMETERS.findall(symbol.signature)) if "<" in symbol.signature else set[str]() for symbol in symbols
    ]
    for symbol in symbols:
        if symbol.kind in ("parameter", "type_parameter") and symbol.parent >= 0:
            found[symbol.parent].add(symbol.name)
    return found


def _has_parameter(parameters: list[set[str]], symbols: Sequence[Symbol], start: int, name: str) -> bool:
    """Whether a definition around a place takes a parameter of that name, also one without code of its own."""
    number = bisect_right(symbols, start, key=lambda symbol: symbol.start) - 1
    while number >= 0:
        if start < symbols[number].end and name in parameters[number]:
            return True
        number = symbols[number].parent
    return False


def _innermost(symbols: Sequence[Symbol], offset: int) -> int:
    """The definition whose code holds an offset: the last to start before it, or one around that."""
    number = bisect_right(symbols, offset, key=lambda symbol: symbol.start) - 1
    while number >= 0:
        symbol = symbols[number]
        if 0 <= symbol.body_start <= offset < symbol.body_end:
            return number
        number = symbol.parent
    return ROOT
