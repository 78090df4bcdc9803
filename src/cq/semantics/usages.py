"""Who uses a definition without calling it there: names it, reads it as an attribute, runs an accessor by a read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from sys import maxsize
from typing import NamedTuple

import msgspec

from cq.graph.unit import Unit
from cq.language import describe
from cq.languages.linking import find_dialect
from cq.model.edge import CONFIDENCE, Candidate, Edge, SymbolRef
from cq.model.facts import Reference, Symbol
from cq.semantics.documents import Documents
from cq.semantics.meanings import Meanings
from cq.semantics.memory import Memory, remembered
from cq.semantics.referrers import Referrers

MAX_GUESSED = 10  # attributes that hold a descriptor: with more, their names alone say nothing
# Methods that run where an attribute holds an instance of their class, and what with it.
_DESCRIPTORS = {"__get__": ("read", "update"), "__set__": ("write", "update")}
_UPDATE = re.compile(rb"\s*(?:[-+*/%@&|^]|//|\*\*|<<|>>>?|&&|\|\||\?\?)=(?!=)|\+\+|--")


class Read(NamedTuple):
    """A place in the code of `source` where the name of an attribute stands; `first` is where the names begin that it
    is read off, the same as `start` where it is read off something else."""

    source: Candidate
    first: int
    start: int
    end: int
    kind: str  # read write, update for both
    ref: SymbolRef


class Usages:
    """Found in the text, by scopes, when somebody asks: the index keeps none of them."""

    def __init__(self, documents: Documents, meanings: Meanings, referrers: Referrers, memory: Memory) -> None:
        self._documents, self._meanings, self._referrers, self.memory = documents, meanings, referrers, memory

    def find_usages_into(self, target: Candidate, known: Iterable[Edge]) -> list[Edge]:
        """Definitions that name the target and have no certain edge to it among those known, as one edge each."""
        if not target.name:
            return []
        if self._documents.find_symbol(target) is None:
            return self._find_users(target)
        taken = {edge.source for edge in known if edge.ref.status == "resolved"} | {target}
        found: list[Edge] = []
        name = target.name.rpartition(".")[2].partition("#")[0]
        # `views.index`: no link of the file leads to more than the module.
        importing = self._documents.find_importing(target.path) if "." not in target.name else []
        through = set(importing).intersection(self._documents.index.find_users(name)) if importing else set[str]()
        referring = {path for path, _ in self._referrers.find_files(target)}
        for path in sorted({target.path} | referring | through):
            for document, links in enumerate(self._documents.links(path)):
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
        for path in sorted({target.path, *self._documents.index.find_users(name)}):
            for document, start, _, ref in self._meanings.find_mentions(path, name, (target,)):
                if ref is not None and target in ref.candidates:
                    source = self._documents.find_holder(path, document, start)
                    found.setdefault(source, Edge("usages", source, ref))
        return list(found.values())

    def find_usages_out(self, source: Candidate, known: Iterable[Edge]) -> list[Edge]:
        """What a definition names and has no certain edge to among those known."""
        if not self._documents.is_linked(source.path, source.document):
            return []
        taken = {edge.ref.candidates for edge in known if edge.ref.status == "resolved"} | {(source,)}
        symbol = self._documents.symbol(source)
        around = (symbol.start, symbol.end) if symbol is not None else None
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
        names_read = self._documents.mentions(path)[document]
        defined = set(self._documents.names(path, document).values())
        seen: set[tuple[Candidate, tuple[Candidate, ...]]] = set()
        first, last = around or (0, maxsize)
        for start, name in sorted((at, word) for word in wanted for at in mentions[word] if first <= at < last):
            place = names_read.find_at(start)
            if place is not None and names_read.is_behind(place):
                ref = self._meanings.find_attribute(path, document, name, start) or SymbolRef(name, "unresolved")
            else:
                ref = self._meanings.find_name(path, document, name, start, "reference")
            places = tuple(
                place for place in ref.candidates
                if place.name and (place.path != path or place.document != document or place.name in defined)
            )  # fmt: skip
            holder = self._documents.find_holder(path, document, start)
            if places and (holder, places) not in seen:
                seen.add((holder, places))
                used = SymbolRef(name, ref.status, ref.evidence, ref.confidence, places)
                yield Edge("usages", holder, used)

    @remembered
    def _find_mentioned(self, path: str, document: int) -> dict[str, list[int]]:
        """Where a document names what it neither calls, imports nor annotates with, by name."""
        references, text = self._documents.index.references(path)[document], self._documents.index.text(path)
        found: dict[str, list[int]] = {}
        for name, start in references.of_role("reference"):
            found.setdefault(name, []).append(start)
        for name, start in references.of_role("attribute"):
            if text[start - 1 : start] == b".":
                found.setdefault(name, []).append(start)
        return found

    def find_reads(self, target: Candidate, *, possible: bool = True) -> Iterator[Read]:
        """Every place that runs an accessor, or `__get__` and `__set__` of a descriptor, without a call; none for what
        is neither. What is read off something unknown is possible, by its name."""
        number, home = self._documents.find_symbol(target), self._documents.unit(target.path, target.document)
        symbol = self._documents.symbol(target)
        if symbol is None or home is None or number is None:
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
            held = _find_properties(home, number)
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
        symbol = self._documents.symbol(whole) if below else None
        is_abstract = symbol is not None and any(name.endswith("abstractmethod") for name in symbol.decorators)
        guessing = guessing and not is_abstract
        for path in self._documents.index.find_users(wanted):
            for document, mentions in enumerate(self._documents.mentions(path)):
                places = [place for place in mentions.find(wanted) if mentions.is_behind(place)]
                if written:
                    places = sorted([*places, *self._find_fields(path, document, wanted)], key=lambda r: r.start)
                read_off = list(map(mentions.find_receiver, places))
                # Without guessing, what is not read off names is nobody's.
                unit = self._documents.unit(path, document) if any(read_off) or (guessing and places) else None
                if unit is None or find_dialect(unit.language) is not find_dialect(home.language):
                    continue
                named: dict[int, str] = {}
                for (name, start, end, role), receiver in zip(places, read_off, strict=True):
                    ref = self._meanings.find_attribute(path, document, name, start, receiver)
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
                        source = self._documents.find_holder(path, document, start, named)
                        yield Read(source, mentions.find_first(start), start, end, kind, ref)

    def _find_fields(self, path: str, document: int, name: str) -> list[Reference]:
        """Where the first `self.x = …` makes a field of the name: that is a definition, and no reference."""
        text = self._documents.index.text(path)
        return [
            Reference(name, symbol.name_start, symbol.name_end, "assignment")
            for symbol in self._documents.symbols(path)[document]
            if symbol.name == name and symbol.kind_group == "value" and text[symbol.name_start - 1] == b"."[0]
        ]

    def _find_overridden(self, method: Candidate) -> set[Candidate]:
        """What a method takes the place of, in the classes above."""
        found, todo = set[Candidate](), [method]
        for place in todo:
            for edge in self._referrers.find_out(place, possible=False):
                if edge.kind == "overrides" and edge.ref.candidates[0] not in found:
                    found.add(edge.ref.candidates[0])
                    todo.append(edge.ref.candidates[0])
        return found

    def _find_overriding(self, method: Candidate) -> list[Candidate]:
        return [edge.source for edge in self._referrers.find_into(method, possible=False) if edge.kind == "overrides"]

    def _find_described(self, method: Candidate) -> list[Candidate]:
        """The attributes of classes that hold an instance of the class of a method, or of one that has it from it."""
        name = method.name.rpartition(".")[2]
        kinds = [msgspec.structs.replace(method, name=method.name.rpartition(".")[0])]
        found: dict[Candidate, None] = {}
        for kind in kinds:
            for edge in self._referrers.find_into(kind, possible=False):
                unit = self._documents.unit(edge.source.path, edge.source.document)
                if edge.kind == "inherits" and edge.source not in kinds:
                    own = msgspec.structs.replace(edge.source, name=f"{edge.source.name}.{name}")
                    kinds += [edge.source] if self._documents.find_symbol(own) is None else []
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
