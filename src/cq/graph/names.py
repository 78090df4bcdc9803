"""Candidates by name alone: what a method call on an unknown receiver may mean. Never a link."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import cache

import msgspec

from cq.graph.unit import Unit
from cq.language import all_languages
from cq.model.code import Definition, Parameter, Site, Spread
from cq.model.edge import CONFIDENCE, MAX_CANDIDATES, Candidate, Links, Shape, SymbolRef


class Method(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A member that can be called; `parameters` without those the receiver takes."""

    place: Candidate
    parameters: tuple[Parameter, ...]


def find_methods(unit: Unit) -> Iterable[tuple[str, Method]]:
    """Every method of a document by its plain name."""
    for definition in unit.methods:
        if definition.symbol < 0:
            continue  # `x = property(lambda self: …)`: no one calls it by a name
        place = Candidate(unit.path, unit.document, unit.qualified_names[definition.symbol])
        yield definition.name, Method(place, given_parameters(definition))


def given_parameters(definition: Definition) -> tuple[Parameter, ...]:
    """Those that a call on a receiver gives."""
    parameters = definition.parameters
    is_bare = "static" in definition.modifiers or "member" in definition.modifiers
    is_bare = is_bare and not (parameters and parameters[0].name == "this")
    if parameters and not is_bare and parameters[0].kind in ("", "/"):
        parameters = parameters[1:]
    return tuple(Parameter(p.name, p.kind, optional=p.optional) for p in parameters)


def find_by_name(
    ref: SymbolRef,
    path: str,
    methods: Iterable[Method],
    near: Collection[str],
    is_imported: Callable[[str], bool],
) -> SymbolRef:
    """The reference with those methods, which could take the call, the nearest first: in the same file, in one that it
    imports (`near`), in the same folder. What no file imports is known in its own only."""
    fitting = sorted(
        (distance(path, method.place.path, near), method.place)
        for method in methods
        if (method.place.path == path or is_imported(method.place.path)) and _are_kin(path, method.place.path)
    )
    if not fitting:
        return SymbolRef(ref.name, "unresolved")
    confidence = round(CONFIDENCE[ref.evidence] / len(fitting), 3)
    places = tuple(place for _, place in fitting[:MAX_CANDIDATES])
    return SymbolRef(ref.name, "ambiguous", ref.evidence, confidence, places, "", len(fitting) - len(places))


def distance(path: str, other: str, near: Collection[str]) -> int:
    """How far a file is from one that refers to it: 0 itself, 1 imported by it, 2 in the same folder, 3 elsewhere."""
    if other == path:
        return 0
    return 1 if other in near else 2 if other.rpartition("/")[0] == path.rpartition("/")[0] else 3


def _are_kin(path: str, other: str) -> bool:
    """Whether code of one file can call that of another, as far as their names tell."""
    families = [_find_families().get(name.rpartition(".")[2]) for name in (path, other)]
    return None in families or families[0] == families[1]


@cache
def _find_families() -> dict[str, str]:
    return {suffix: each.family for each in all_languages().values() if each.has_links for suffix in each.suffixes}


def find_imported(links: Links) -> set[str]:
    """Paths that a document imports, or takes names from."""
    return {candidate.path for _, number in links.imports for candidate in links.refs[number].candidates}


def find_shape(site: Site) -> Shape:
    spread = any(isinstance(value, Spread) for value in site.args)
    return -1 if spread else len(site.args), tuple(sorted(key for key, _ in site.keywords))


def fits(parameters: tuple[Parameter, ...], count: int, keywords: Collection[str]) -> bool:
    """Whether a method could take so many arguments by position (-1: any number) and these by keyword."""
    by_position = [p for p in parameters if p.kind in ("", "/")]
    if count > len(by_position) and not any(p.kind == "*" for p in parameters):
        return False
    names = {p.name for p in parameters if p.kind in ("", "k")}
    unknown = [key for key in keywords if key not in names and key != "**"]
    if unknown and not any(p.kind == "**" for p in parameters):
        return False
    if count < 0 or "**" in keywords:
        return True
    missing = [p for p in by_position[count:] if not p.optional and p.name not in keywords]
    missing += [p for p in parameters if p.kind == "k" and not p.optional and p.name not in keywords]
    return not missing
