"""All references of one document, as they are kept; and the definitions they lead to."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from operator import itemgetter
from typing import NamedTuple

from cq.graph.engine.cells import Cell, Remembered
from cq.graph.engine.view import View
from cq.graph.meaning import UNRESOLVED, Meaning
from cq.graph.names import find_imported, find_shape
from cq.graph.resolve import Resolver
from cq.graph.scopes import ROOT
from cq.graph.unit import Unit, part_key
from cq.model.code import Imported, Site
from cq.model.edge import CONFIDENCE, Candidate, Links, Shape, SymbolRef, show_name

BY_NAME = "name"  # evidence of a call whose candidates are looked up when somebody asks


class KeptLinks(NamedTuple):
    """What an earlier linking of a document found, and the homes (see View.home) of which it still holds: they say the
    same, and nothing that they depend on has changed."""

    links: Links
    unit: Unit  # that it was found of
    homes: Collection[int]


def make_links(resolver: Resolver, document: Unit, kept: KeptLinks | None = None) -> Links:
    """Once the linker has settled. Calls on unknown receivers keep their name alone: which methods have it is known
    to the index, and changes without this document. Homes that are kept need not have been visited."""
    linker, names, code = resolver.linker, document.qualified_names, document.code
    unit = linker.documents.view(document)
    old = None if kept is None else _Old(kept, document)
    homes: Collection[int] = () if kept is None else kept.homes
    refs: dict[SymbolRef, int] = {}

    def add(ref: SymbolRef) -> int:
        return refs.setdefault(ref, len(refs))

    calls: list[int] = []
    by_name: set[int] = set()
    shapes: dict[int, Shape] = {}
    beside: dict[str, dict[int, int]] = {"constructors": {}, "runs": {}, "callbacks": {}}
    replaced: list[int] = []
    cells = resolver.read_callees(unit, homes)
    calling, running = resolver.find_calling(unit, cells), resolver.find_running(cells)
    # Calls that share a cell are of one callee: they mean the same.
    known: dict[tuple[Cell, str], tuple[SymbolRef, list[SymbolRef], _Meant]] = {}
    recalled: dict[int, dict[_Meant, None]] = {}  # by home
    for number, (site, cell) in enumerate(zip(code.sites, cells, strict=True)):
        if cell is None:
            assert old is not None
            at = old.next_call(unit.home(site.scope))
            calls.append(add(old.refs[old.links.calls[at]]))
            if is_by_name(old.refs[old.links.calls[at]]):
                by_name.add(calls[-1])
            for kind, found in beside.items():
                ref = old.beside[kind].get(at)
                if ref is not None:
                    found[number] = add(old.refs[ref])
            if at in old.replaced:
                replaced.append(number)
        else:
            found = known.get((cell, site.name))
            if found is None:
                meant = linker.remember(resolver.call_and_construct, unit, number, cell.values)
                ref = make_ref(site.name, meant.answer[0])
                found = (ref, [make_ref(site.name, each) for each in meant.answer[1]], meant)
                known[cell, site.name] = found
            recalled.setdefault(unit.home(site.scope), {})[found[2]] = None
            ran = resolver.run(unit, number, cell.values) if cell in running else None
            called = resolver.callbacks(unit, number, cell.values) if number in calling else None
            ref, meant = found[0], found[2].answer[0]
            if ran is not None and ran.is_family and ran.meaning.status == "ambiguous":
                # What the receiver's own class has is one of several that may run, or none of them.
                is_among = set(meant.places) <= set(ran.meaning.places)
                ref = make_ref(site.name, ran.meaning if is_among else meant._replace(status="ambiguous"))
                ran = None if is_among else ran
            calls.append(add(ref))
            if is_by_name(ref):
                by_name.add(calls[-1])
            runs = [] if ran is None else [make_ref(site.name, ran.meaning)]
            runs += found[1][1:]
            runs += () if called is None else (make_ref(_name_callback(site, each), each) for each in called[1])
            # In the order of `beside`, and only what is kept of them: as where they are kept from before.
            for kind, each in (("constructors", found[1]), ("runs", runs)):
                if each:
                    beside[kind][number] = add(each[0])
            if ran is not None and ran.is_instead:
                replaced.append(number)
            if called is not None:
                beside["callbacks"][number] = add(make_ref(_name_callback(site, called[0]), called[0]))
        if calls[-1] in by_name:
            shapes[number] = find_shape(site)
    for home, meant in recalled.items():
        linker.ask(home, lambda meant=meant: [linker.recall(each) for each in meant])
    relations = _find_relations(resolver, unit, homes)
    for kind, pairs in () if old is None else old.relations.items():
        relations[kind] += pairs
    # What one definition refers to stands together, so that it does not matter which of them were kept.
    numbered = {
        kind: tuple([(name, add(ref)) for name, ref in sorted(pairs, key=_first)]) for kind, pairs in relations.items()
    }
    imports: list[tuple[str, int]] = []
    for bind, meaning in resolver.imported(unit, homes):
        if meaning is not None:
            imports.append((bind.name, add(make_ref(bind.name, meaning))))
        elif old is not None:
            imports.append((bind.name, add(old.next_import(unit.home(bind.scope)))))
    return Links(
        tuple(refs), tuple(calls), tuple([names.get(site.scope, "") for site in code.sites]), beside["constructors"],
        beside["callbacks"], tuple(imports), numbered["inherits"], numbered["overrides"], numbered["type_uses"],
        numbered["raises"], tuple([number for number, site in enumerate(code.sites) if site.kind == "decorator"]),
        shapes, document.find_holders(), beside["runs"], tuple(replaced), numbered["implied"],
    )  # fmt: skip


_first = itemgetter(0)


_Meant = Remembered[tuple[Meaning, list[Meaning]]]  # by a call, and by the constructors of what it makes
Pairs = list[tuple[str, SymbolRef]]  # the name of a definition, what it refers to


def _find_relations(resolver: Resolver, unit: View, kept: Collection[int]) -> dict[str, Pairs]:
    """What refers to something without a call; in homes that are kept, nothing."""
    names, code = unit.qualified_names, unit.raw.code
    inherits: Pairs = []
    overrides: Pairs = []
    type_uses: dict[tuple[str, SymbolRef], None] = {}
    for definition in code.definitions:
        home = unit.home_of(definition)
        if home in kept:
            continue
        name = names.get(definition.symbol, names.get(definition.scope, ""))
        if definition.bases or definition.keywords:
            inherits += [(name, make_ref("", meaning)) for meaning in resolver.bases(unit, definition)]
        overridden = resolver.overridden(unit, definition)
        if overridden is not None:
            overrides.append((name, make_ref(definition.name, overridden)))
        types = [definition.type, *(parameter.type for parameter in definition.parameters)]
        for meaning in resolver.types(unit, home, definition.scope, types, definition.start):
            type_uses[name, make_ref("", meaning)] = None
    for bind in (*code.binds, *code.stores):
        if bind.type is not None and (home := unit.home(bind.scope)) not in kept:
            for meaning in resolver.types(unit, home, bind.scope, [bind.type], bind.start):
                type_uses[names.get(bind.scope, ""), make_ref("", meaning)] = None
    raises = [
        (names.get(scope, ""), make_ref("", meaning))
        for scope, start, value in code.raises
        if unit.home(scope) not in kept and (meaning := resolver.raised(unit, scope, start, value)).places
    ]
    implied = dict.fromkeys(
        (unit.raw.find_holder(scope, start), make_ref("", meaning))
        for scope, start, meaning in resolver.implied(unit, kept)
    )
    return {"inherits": inherits, "overrides": overrides, "type_uses": list(type_uses), "raises": raises,
            "implied": list(implied)}  # fmt: skip


class _Old:
    """What is kept, by home: the calls and imports of a home are the same as before, in the same order."""

    def __init__(self, kept: KeptLinks, unit: Unit) -> None:
        self.links, self.refs, before = kept.links, kept.links.refs, kept.unit
        self.beside: dict[str, dict[int, int]] = {
            "constructors": self.links.constructors, "runs": self.links.runs, "callbacks": self.links.callbacks,
        }  # fmt: skip
        self.replaced = frozenset(self.links.replaced)
        self._calls: dict[int, deque[int]] = {}
        for number, site in enumerate(before.code.sites):
            self._calls.setdefault(before.home(site.scope), deque()).append(number)
        self._imports: dict[int, deque[int]] = {}
        binds = [bind for bind in before.code.binds if isinstance(bind.value, Imported)]
        for bind, (_, number) in zip(binds, self.links.imports, strict=True):
            self._imports.setdefault(before.home(bind.scope), deque()).append(number)
        homes = {"": unit.home(ROOT)}
        for definition in unit.code.definitions:
            symbol = definition.anonymous[0] if definition.anonymous else definition.symbol
            if symbol >= 0:
                homes[unit.qualified_names[symbol]] = unit.home_of(definition)
        self.relations: dict[str, Pairs] = {
            kind: [
                (name, self.refs[number]) for name, number in getattr(self.links, kind) if homes.get(name) in kept.homes
            ]
            for kind in ("inherits", "overrides", "type_uses", "raises", "implied")
        }

    def next_call(self, home: int) -> int:
        return self._calls[home].popleft()

    def next_import(self, home: int) -> SymbolRef:
        return self.refs[self._imports[home].popleft()]


def _name_callback(site: Site, meaning: Meaning) -> str:
    """What is called back, where that is one name; else what it is handed to."""
    names = {unit.qualified_names.get(symbol, "") for unit, symbol in meaning.places}
    last = {show_name(name).rpartition(".")[2] for name in names}
    return last.pop() or site.name if len(last) == 1 else site.name


def make_ref(name: str, meaning: Meaning) -> SymbolRef:
    """What is no definition of its document any more, for broken code, is not meant: a link leads to what is there."""
    places = [(unit, symbol) for unit, symbol in meaning.places if symbol == ROOT or symbol in unit.qualified_names]
    if len(places) < len(meaning.places) and not places:
        meaning = UNRESOLVED
    count = max(1, len(places) + meaning.omitted)
    confidence = CONFIDENCE[meaning.evidence] if meaning.status in ("resolved", "external") else (
        round(CONFIDENCE[meaning.evidence] / count, 3)
    )  # fmt: skip
    candidates = tuple(
        Candidate(unit.path, unit.document, unit.qualified_names.get(symbol, "")) for unit, symbol in places
    )
    return SymbolRef(name, meaning.status, meaning.evidence, confidence, candidates, meaning.module, meaning.omitted)


def is_by_name(ref: SymbolRef) -> bool:
    """Whether its candidates are all methods of its name, to be looked up."""
    return ref.evidence == BY_NAME and not ref.candidates


def find_targets(links: Links) -> Iterator[tuple[int, list[int]]]:
    """(key of a definition or of a name, the calls that may mean it), by key; no calls: it is referred to otherwise."""
    by_ref: dict[int, list[int]] = {}
    numbered: Iterable[tuple[int, int]] = (
        *enumerate(links.calls), *links.constructors.items(), *links.callbacks.items(),
        *links.runs.items(),
    )  # fmt: skip
    for call, number in numbered:
        by_ref.setdefault(number, []).append(call)
    found: dict[int, set[int]] = {}
    for number, ref in enumerate(links.refs):
        calls = by_ref.get(number, ())
        for candidate in ref.candidates:
            found.setdefault(target_key(candidate), set()).update(calls)
        if is_by_name(ref):
            found.setdefault(name_key(ref.name), set()).update(calls)
    for path in find_imported(links):
        found.setdefault(imported_key(path), set())
    for key in sorted(found):
        yield key, sorted(found[key])


def target_key(candidate: Candidate) -> int:
    """As SQLite keeps it: signed."""
    return _signed(part_key("target", candidate.path, str(candidate.document), candidate.name))


def name_key(name: str) -> int:
    """Of the calls on unknown receivers that may mean any method of that name."""
    return _signed(part_key("method", name))


def imported_key(path: str) -> int:
    """Of the documents that import a file."""
    return _signed(part_key("imported", path))


def _signed(key: int) -> int:
    return key - (1 << 64) if key >> 63 else key
