"""How each language is linked: the dialects of the registry's languages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module

from cq.graph.corpus import Corpus, WholeCorpus
from cq.graph.dialect import Dialect
from cq.graph.link import Linker
from cq.graph.links import make_links
from cq.graph.names import Method, find_by_name, find_imported, find_methods, fits
from cq.graph.resolve import Resolver
from cq.graph.unit import Unit
from cq.language import describe
from cq.model.edge import Links, SymbolRef


@cache
def find_dialect(language: str) -> type[Dialect]:
    module, _, name = describe(language).dialect.partition(":")
    return getattr(import_module(f"cq.languages.{module}"), name)


def make_linker(corpus: Corpus) -> Linker:
    """One that knows every language."""
    return Linker(corpus, find_dialect)


def link_units(units: Sequence[Unit], paths: Iterable[str] = ()) -> dict[Unit, Links]:
    """A whole repository at once."""
    resolver = Resolver(make_linker(WholeCorpus(units, paths)))
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
