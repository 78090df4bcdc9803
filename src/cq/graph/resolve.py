"""From values to references: what a call, import, base or annotation means, with its doubt."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from cq.graph.link import Linker
from cq.graph.things import (
    UNKNOWN,
    Bound,
    Class,
    External,
    Function,
    Instance,
    Module,
    OwnClass,
    Thing,
)
from cq.graph.unit import ROOT, Unit
from cq.graph.values import IMPORT, INFERRED, NAME, Values, join, raised
from cq.model.code import Definition, Site, Value
from cq.model.edge import EVIDENCE, MAX_CANDIDATES

Place = tuple[Unit, int]  # a document and a symbol in it, -1 for the module


class Meaning(NamedTuple):
    """A reference inside the linker; SymbolRef is the same for everyone else."""

    status: str
    evidence: str
    places: tuple[Place, ...] = ()  # the likeliest first, at most MAX_CANDIDATES
    module: str = ""
    omitted: int = 0


UNRESOLVED = Meaning("unresolved", "")


class Resolver:
    """Asks a settled linker. Every list is in a fixed order."""

    def __init__(self, linker: Linker, units: Iterable[Unit]) -> None:
        self.linker = linker
        self.units = list(units)  # those whose methods are candidates by name
        self._named: dict[tuple[str, str, int, tuple[str, ...]], Meaning] = {}
        self._imports: dict[Unit, frozenset[str]] = {}

    def call(self, unit: Unit, number: int) -> Meaning:
        """What a call runs: a function, or the class it makes an instance of."""
        site = unit.code.sites[number]
        values = self.linker.link(unit, number)
        if len(values) > 1 and UNKNOWN in values and self.linker.dialect(unit).is_static:
            values = {thing: level for thing, level in values.items() if thing is not UNKNOWN}
        meaning = self.mean(values)
        if meaning.status == "unresolved" and site.name and site.name != site.callee:
            return self._by_name(unit, site, site.name)
        return meaning

    def mean(self, values: Values) -> Meaning:
        places: dict[Place, int] = {}
        outside = ""
        is_open = False
        for thing, level in values.items():
            found = self._target(thing)
            if found is not None:
                places[found] = min(level, places.get(found, NAME))
            elif isinstance(thing, External):
                outside = min(outside, thing.name) if outside else thing.name
            else:
                is_open = True
        if not places:
            if outside and not is_open:
                return Meaning("external", EVIDENCE[IMPORT], module=_module_of(outside))
            return UNRESOLVED
        ordered = sorted(places, key=lambda place: (places[place], place[0].path, place[0].document, place[1]))
        level = places[ordered[0]]
        if len(ordered) == 1 and not is_open and not outside and level <= INFERRED:
            return Meaning("resolved", EVIDENCE[level], (ordered[0],))
        return Meaning(
            "ambiguous", EVIDENCE[level], tuple(ordered[:MAX_CANDIDATES]), omitted=max(0, len(ordered) - MAX_CANDIDATES)
        )

    def _target(self, thing: Thing) -> Place | None:
        if isinstance(thing, Bound):
            thing = thing.function
        if isinstance(thing, OwnClass):
            thing = thing.type
        if isinstance(thing, (Function, Class)):
            return (thing.unit, thing.definition.symbol) if thing.definition.symbol >= 0 else None
        if isinstance(thing, Module) and thing.unit is not None:
            return (thing.unit, ROOT)
        if isinstance(thing, Instance):
            name = self.linker.dialect(thing.type.unit).protocols.get("call", "")
            holder, binds, _, _ = self.linker.find_member(thing.type, name)
            if isinstance(holder, Class) and binds and type(binds[0].value) is list and binds[0].value[0] == "def":
                return (holder.unit, holder.unit.definitions[binds[0].value[1]].symbol)
        return None

    def _by_name(self, unit: Unit, site: Site, name: str) -> Meaning:
        """Methods of that name that could take these arguments, nearest first. Never a single link."""
        methods = self.methods.get(name, ())
        key = (unit.path, name, *shape(site))
        found = self._named.get(key)
        if found is None:
            near = self.imports(unit)
            dialect = self.linker.dialect(unit)
            fitting = [
                (distance(unit.path, other.path, near), other.path, other.document, definition.symbol, other)
                for other, definition in methods
                if fits(definition, *shape(site))
                and (other is unit or other.path in self.imported_paths)
                and self.linker.dialect(other) is dialect
                and dialect.is_candidate(site, definition)
            ]
            fitting.sort(key=lambda item: item[:4])
            places = tuple((other, symbol) for *_, symbol, other in fitting[:MAX_CANDIDATES])
            omitted = max(0, len(fitting) - MAX_CANDIDATES)
            found = Meaning("ambiguous", EVIDENCE[NAME], places, omitted=omitted) if places else UNRESOLVED
            self._named[key] = found
        return found

    @cached_property
    def methods(self) -> dict[str, list[tuple[Unit, Definition]]]:
        found: dict[str, list[tuple[Unit, Definition]]] = {}
        for unit in self.units:
            for definition in unit.methods:
                found.setdefault(definition.name, []).append((unit, definition))
        return found

    @cached_property
    def imported_paths(self) -> set[str]:
        """What nobody imports is known in its own file only."""
        return {path for unit in self.units for path in self.imports(unit)}

    def imports(self, unit: Unit) -> frozenset[str]:
        """Paths of the modules that a document imports, or takes names from."""
        found = self._imports.get(unit)
        if found is None:
            paths: set[str] = set()
            dialect = self.linker.dialect(unit)
            for bind in unit.code.binds:
                if type(bind.value) is list and bind.value[0] == "import":
                    _, level, module, name = bind.value
                    for thing in dialect.resolve_import(self.linker, unit, level, module, "*"):
                        if isinstance(thing, Module):
                            paths.add(thing.path)
                    if name != "*":
                        for thing in dialect.resolve_import(self.linker, unit, level, module, name):
                            if isinstance(thing, Module):
                                paths.add(thing.path)
                            elif isinstance(thing, (Class, Function)):
                                paths.add(thing.unit.path)
            found = self._imports[unit] = frozenset(paths)
        return found

    # -- what is no call -------------------------------------------------------------------------

    def imported(self, unit: Unit) -> Iterator[tuple[int, str, Meaning]]:
        """Every import: (bind number, name, what it means)."""
        dialect = self.linker.dialect(unit)
        for number, bind in enumerate(unit.code.binds):
            if type(bind.value) is list and bind.value[0] == "import":
                _, level, module, name = bind.value
                meaning = self.mean(raised(dialect.resolve_import(self.linker, unit, level, module, name), IMPORT))
                yield number, bind.name, meaning

    def bases(self, unit: Unit, definition: Definition) -> list[Meaning]:
        return [self.value(unit, definition.scope, base, definition.start) for base in definition.bases]

    def overridden(self, unit: Unit, definition: Definition) -> Meaning | None:
        """The method of a base that this one takes the place of."""
        function = self.linker.thing(unit, definition.start)
        if not isinstance(function, Function) or function.owner is None:
            return None
        holder, binds, _, _ = self.linker.find_member(function.owner, definition.name, behind=True)
        if not isinstance(holder, Class) or not binds:
            return None
        value = binds[0].value
        if type(value) is not list or value[0] != "def":
            return None
        return Meaning("resolved", "mro", ((holder.unit, holder.unit.definitions[value[1]].symbol),))

    def value(self, unit: Unit, scope: int, value: Value, position: int) -> Meaning:
        return self.mean(self.linker.evaluate(unit, scope, value, position))

    def callbacks(self, unit: Unit, number: int) -> Meaning | None:
        """Functions that a call hands to one of the language's own that calls them: `map(f, …)`."""
        found: Values = {}
        for thing in self.linker.link(unit, number):
            if isinstance(thing, External):
                found = join(found, self.linker.dialect(unit).find_callbacks(self.linker, thing, unit, number))
        meaning = self.mean(found) if found else UNRESOLVED
        return meaning if meaning.places else None

    def construct(self, unit: Unit, number: int) -> Meaning | None:
        """The constructor that runs when a call makes an instance of a class of the repository."""
        places: list[Place] = []
        for thing in self.linker.link(unit, number):
            kind = thing.type if isinstance(thing, OwnClass) else thing
            if isinstance(kind, Class):
                for name in self.linker.dialect(kind.unit).constructors:
                    holder, binds, _, _ = self.linker.find_member(kind, name)
                    if isinstance(holder, Class) and binds and type(binds[0].value) is list:
                        if binds[0].value[0] == "def":
                            places.append((holder.unit, holder.unit.definitions[binds[0].value[1]].symbol))
                        break
        if not places:
            return None
        return Meaning("resolved" if len(places) == 1 else "ambiguous", "constructor", tuple(places))


def shape(site: Site) -> tuple[int, tuple[str, ...]]:
    """How many arguments a call passes by position, -1 when that is open, and the names of the others."""
    spread = any(type(value) is list and value[0] == "*" for value in site.args)
    return -1 if spread else len(site.args), tuple(sorted(key for key, _ in site.keywords))


def distance(path: str, other: str, imports: Collection[str]) -> int:
    """How far a candidate by name is: in the same file, imported, in the same folder, elsewhere."""
    if other == path:
        return 0
    if other in imports:
        return 1
    return 2 if other.rpartition("/")[0] == path.rpartition("/")[0] else 3


def fits(definition: Definition, count: int, keywords: Sequence[str]) -> bool:
    """Whether a method could take so many arguments by position (-1: any number) and these by keyword."""
    parameters = definition.parameters
    skipped = 0 if "static" in definition.modifiers else 1
    by_position = [p for p in parameters if p.kind in ("", "/")][skipped:]
    takes_rest = any(p.kind == "*" for p in parameters)
    takes_keywords = any(p.kind == "**" for p in parameters)
    if count > len(by_position) and not takes_rest:
        return False
    names = {p.name for p in parameters if p.kind in ("", "k")}
    if not takes_keywords and any(key not in names and key != "**" for key in keywords):
        return False
    if count < 0 or "**" in keywords:
        return True
    missing = [p for p in by_position[max(count, 0) :] if not p.optional and p.name not in keywords]
    missing += [p for p in parameters if p.kind == "k" and not p.optional and p.name not in keywords]
    return not missing


def _module_of(name: str) -> str:
    return name.partition("(")[0]
