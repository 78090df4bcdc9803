"""Which module depends on which, by how many links of each kind, and where these stand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from cq.model.edge import RELATIONS, Candidate, Links, SymbolRef
from cq.questions.map.modules import Modules
from cq.snapshot.relations import Relations

MOST_SITES = 20  # of a dependency
Site = tuple[str, int, str, int | str]  # path, document, kind, and the number of a call or the name that says it


class Arrow(msgspec.Struct):
    """A dependency. `sites` are the first of its certain links, or of its possible ones where there are no others."""

    certain: Counter[str] = msgspec.field(default_factory=Counter[str])
    possible: Counter[str] = msgspec.field(default_factory=Counter[str])
    sites: list[Site] = msgspec.field(default_factory=list[Site])
    doubtful: list[Site] = msgspec.field(default_factory=list[Site])

    @property
    def total(self) -> int:
        return sum(self.certain.values()) + sum(self.possible.values())

    @property
    def kinds(self) -> Counter[str]:
        return self.certain or self.possible


def find_arrows(relations: Relations, modules: Modules) -> dict[tuple[str, str], Arrow]:
    """Between different modules; links inside one are counted there. Calls on unknown receivers, for which only a name
    speaks, are no links of modules."""
    found: dict[tuple[str, str], Arrow] = {}
    for path in relations.paths():
        if path not in modules.paths:
            continue
        for document, links in enumerate(relations.documents.links(path)):
            for kind, name, ref, by in _find_links(links) if links is not None else ():
                source = modules.find(Candidate(path, document, name))
                if source is None:
                    continue
                targets = {module.name: module for place in ref.candidates if (module := modules.find(place))}
                for target in targets.values():
                    if target is source:
                        source.inside += 1
                        continue
                    arrow = found.setdefault((source.name, target.name), Arrow())
                    is_certain = ref.status == "resolved"
                    (arrow.certain if is_certain else arrow.possible)[kind] += 1
                    sites = arrow.sites if is_certain else arrow.doubtful
                    if len(sites) < MOST_SITES:
                        sites.append((path, document, kind, by))
    return found


def _find_links(links: Links) -> Iterator[tuple[str, str, SymbolRef, int | str]]:
    """(kind, definition, what it means, the call or name that says so)."""
    for number, (scope, at) in enumerate(zip(links.scopes, links.calls, strict=True)):
        if links.refs[at].candidates:
            yield "calls", scope, links.refs[at], number
    for kind in RELATIONS:
        for name, at in getattr(links, kind):
            if links.refs[at].candidates:
                yield kind, "" if kind == "imports" else name, links.refs[at], name


def locate_sites(relations: Relations, arrow: Arrow) -> tuple[str, ...]:
    """As `path:line`, each once."""
    return tuple(dict.fromkeys(_locate(relations, *site) for site in arrow.sites or arrow.doubtful))


def _locate(relations: Relations, path: str, document: int, kind: str, by: int | str) -> str:
    held = relations.hold(path)
    if held is None:
        return path
    if isinstance(by, int):
        call = held.calls[document][by]
        return f"{path}:{held.lines.line(max(call.name_start, call.start))}"
    if kind == "imports":
        bindings = (binding for item in held.imports[document][0] for binding in item.bindings)
        start = next((binding.start for binding in bindings if binding.local == by.removeprefix("export ")), -1)
    else:
        symbol = relations.symbol(Candidate(path, document, by))
        start = -1 if symbol is None else symbol.name_start
    return path if start < 0 else f"{path}:{held.lines.line(start)}"
