"""Which file imports which, import by import: what the code of a tree says, by the rules for modules alone."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

import msgspec

from cq.language import describe, load_table
from cq.model.edge import SymbolRef
from cq.model.facts import Import
from cq.model.location import Location
from cq.semantics.sources import Source
from cq.snapshot.relations import Relations


class Arrow(msgspec.Struct, frozen=True):
    """One import, with the file that it names, or the module from outside."""

    source: str
    target: str  # a path, or the name of a module from outside
    location: Location
    external: bool
    type_only: bool
    package: str = ""  # that a module from outside comes in
    standard: bool = False  # it comes with the language


def find_arrows(relations: Relations) -> list[Arrow]:
    """All of them, by path and place."""
    arrows: list[Arrow] = []
    for path in relations.paths():
        held = relations.hold(path)
        if held is None:
            continue
        for document, (items, _) in enumerate(held.imports):
            if not items or not relations.documents.is_linked(path, document):
                continue
            language = held.documents[document].language
            named = relations.documents.find_sources(path, language, items)
            meant = _pair_names(items, relations.documents.find_imports(path, document)) if None in named else {}
            for item, sources in zip(items, named, strict=True):
                where = held.locate(item.start, item.end)
                typed = item.type_only or _is_for_types(held.text, item.start, describe(language).type_guard)
                if sources is None:
                    refs = [ref for binding in item.bindings for ref in meant.get((binding.local, binding.start), ())]
                    sources = [Source(place.path) for ref in refs for place in ref.candidates if place.path != path]
                    sources += [Source("", ref.module) for ref in refs if ref.status == "external" and ref.module]
                for source in dict.fromkeys(sources):
                    package, standard = ("", False) if source.path else _find_package(language, source.module)
                    arrows.append(
                        Arrow(
                            path, source.path or source.module, where, not source.path, typed or source.type_only,
                            package, standard,
                        )
                    )  # fmt: skip
    return arrows


def _pair_names(items: Sequence[Import], named: list[tuple[str, SymbolRef]]) -> dict[tuple[str, int], list[SymbolRef]]:
    """What each binding means, by name and place: a name may be imported twice, as two things."""
    refs: dict[str, list[SymbolRef]] = {}
    for name, ref in named:
        refs.setdefault(name, []).append(ref)
    places: dict[str, list[int]] = {}
    for item in items:
        for binding in item.bindings:
            places.setdefault(binding.local, []).append(binding.start)
    return {
        (name, start): found[at : at + 1] if len(found) == len(starts) else found
        for name, starts in places.items()
        for found in (refs.get(name, []),)
        for at, start in enumerate(sorted(starts))
    }


class Packages(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the table `packages` of a language says of modules from outside."""

    pattern: str = r"[^.:]*"  # the beginning of a module's name that is its package
    standard: tuple[str, ...] = ()  # those that come with the language
    scheme: str = ""  # what may be written before these, and is in any case told
    has_domains: bool = False  # a package from elsewhere begins with a domain


def _find_package(language: str, module: str) -> tuple[str, bool]:
    """The package that a module from outside belongs to, and whether it comes with the language."""
    packages = load_table(language, "packages", Packages)
    bare = module.removeprefix(packages.scheme)
    if packages.has_domains:
        return module, "." not in module.partition("/")[0]
    found = re.match(packages.pattern, bare)
    name = found[0] if found else bare
    is_standard = (
        bare != module or name in packages.standard or (describe(language).is_host and name in sys.stdlib_module_names)
    )
    return (f"{packages.scheme}{name}", True) if is_standard else (name, False)


_CONDITION = re.compile(rb"[ \t]*if[ \t]+(?:typing\.|t\.)?(\w+)[ \t]*:")


def _is_for_types(text: bytes, start: int, guard: str) -> bool:
    """Whether an import stands below `if TYPE_CHECKING:`."""
    if not guard:
        return False
    begin = text.rfind(b"\n", 0, start) + 1
    indent = start - begin
    while indent and begin:
        line_end, begin = begin, text.rfind(b"\n", 0, begin - 1) + 1
        line = text[begin:line_end]
        depth = len(line) - len(line.lstrip(b" \t"))
        if line.strip() and depth < indent:
            return (found := _CONDITION.match(line)) is not None and found[1] == guard.encode()
    return False
