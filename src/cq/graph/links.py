"""All references of one document, as they are kept; and the definitions they lead to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from cq.graph.corpus import WholeCorpus
from cq.graph.link import Cell, Linker
from cq.graph.names import Method, find_by_name, find_imported, find_methods, find_shape, fits
from cq.graph.resolve import Meaning, Resolver
from cq.graph.unit import Unit, part_key
from cq.model.edge import CONFIDENCE, Candidate, Links, Shape, SymbolRef

BY_NAME = "name"  # evidence of a call whose candidates are looked up when somebody asks


def link_units(units: Sequence[Unit], paths: Iterable[str] = ()) -> dict[Unit, Links]:
    """A whole repository at once."""
    resolver = Resolver(Linker(WholeCorpus(units, paths)))
    for unit in units:
        resolver.visit(unit)
    resolver.linker.settle()
    return {unit: make_links(resolver, unit) for unit in units}


def link_calls(units: Sequence[Unit]) -> dict[str, list[SymbolRef]]:
    """What every call means, by path, with the candidates of those on unknown receivers."""
    all_links = link_units(units)
    methods: dict[str, list[Method]] = {}
    for unit in units:
        for name, method in find_methods(unit):
            methods.setdefault(name, []).append(method)
    imported = {path for links in all_links.values() for path in find_imported(links)}
    found: dict[str, list[SymbolRef]] = {}
    for unit, links in all_links.items():
        near = find_imported(links)
        refs = found[unit.path] = [links.refs[number] for number in links.calls]
        for number, shape in links.shapes.items():
            fitting = [method for method in methods.get(refs[number].name, ()) if fits(method.parameters, *shape)]
            refs[number] = find_by_name(refs[number], unit.path, fitting, near, imported.__contains__)
    return found


def make_links(resolver: Resolver, unit: Unit) -> Links:
    """Once the linker has settled. Calls on unknown receivers keep their name alone: which methods have it is known
    to the index, and changes without this document."""
    refs: dict[SymbolRef, int] = {}
    names = unit.qualified_names

    def add(name: str, meaning: Meaning) -> int:
        return refs.setdefault(make_ref(name, meaning), len(refs))

    calls: list[int] = []
    by_name: set[int] = set()
    shapes: dict[int, Shape] = {}
    decorators: list[int] = []
    constructors: dict[int, int] = {}
    callbacks: dict[int, int] = {}
    runs: dict[int, int] = {}
    replaced: list[int] = []
    cells = resolver.linker.callees(unit)
    calling, running = resolver.find_calling(unit, cells), resolver.find_running(cells)
    # Calls that share a cell are of one callee: they mean the same.
    known: dict[tuple[Cell, str], tuple[int, int]] = {}
    for number, (site, cell) in enumerate(zip(unit.code.sites, cells, strict=True)):
        found = known.get((cell, site.name))
        if found is None:
            values = resolver.linker.read(cell)
            meaning = resolver.call(unit, number, values)
            made = resolver.construct(values) if meaning.places else None
            found = (add(site.name, meaning), -1 if made is None else add(site.name, made))
            known[cell, site.name] = found
            if meaning.evidence == BY_NAME and not meaning.places:
                by_name.add(found[0])
        calls.append(found[0])
        if found[0] in by_name:
            shapes[number] = find_shape(site)
        if site.kind == "decorator":
            decorators.append(number)
        if found[1] >= 0:
            constructors[number] = found[1]
        ran = resolver.run(unit, number, cell.values) if cell in running else None
        if ran is not None:
            runs[number] = add(site.name, ran[0])
            if ran[1]:
                replaced.append(number)
        called = resolver.callbacks(unit, number, cell.values) if number in calling else None
        if called is not None:
            callbacks[number] = add(site.name, called[0])
            if called[1] is not None:
                runs.setdefault(number, add(site.name, called[1]))
    inherits: list[tuple[str, int]] = []
    overrides: list[tuple[str, int]] = []
    type_uses: dict[tuple[str, int], None] = {}
    for definition in unit.code.definitions:
        name = names.get(definition.symbol, names.get(definition.scope, ""))
        if definition.bases or definition.keywords:
            inherits += [(name, add("", meaning)) for meaning in resolver.bases(unit, definition)]
        overridden = resolver.overridden(unit, definition)
        if overridden is not None:
            overrides.append((name, add(definition.name, overridden)))
        types = [definition.type, *(parameter.type for parameter in definition.parameters)]
        for meaning in resolver.types(unit, definition.scope, types, definition.start):
            type_uses[name, add("", meaning)] = None
    for bind in (*unit.code.binds, *unit.code.stores):
        if bind.type is not None:
            for meaning in resolver.types(unit, bind.scope, [bind.type], bind.start):
                type_uses[names.get(bind.scope, ""), add("", meaning)] = None
    raises = [
        (names.get(scope, ""), add("", meaning))
        for scope, start, value in unit.code.raises
        if (meaning := resolver.raised(unit, scope, start, value)).places
    ]
    implied = dict.fromkeys(
        (unit.find_holder(scope, start), add("", meaning)) for scope, start, meaning in resolver.implied(unit)
    )
    imports = [(name, add(name, meaning)) for name, meaning in resolver.imported(unit)]
    return Links(
        tuple(refs), tuple(calls), tuple(names.get(site.scope, "") for site in unit.code.sites), constructors,
        callbacks, tuple(imports), tuple(inherits), tuple(overrides), tuple(type_uses), tuple(raises),
        tuple(decorators), shapes, unit.find_holders(),
        runs, tuple(replaced), tuple(implied),
    )  # fmt: skip


def make_ref(name: str, meaning: Meaning) -> SymbolRef:
    count = max(1, len(meaning.places) + meaning.omitted)
    confidence = CONFIDENCE[meaning.evidence] if meaning.status in ("resolved", "external") else (
        round(CONFIDENCE[meaning.evidence] / count, 3)
    )  # fmt: skip
    candidates = tuple(
        Candidate(unit.path, unit.document, unit.qualified_names.get(symbol, "")) for unit, symbol in meaning.places
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
