"""Other names that a definition has: what imports, exports and assignments call it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from cq.graph.scopes import ROOT
from cq.model.edge import Candidate

if TYPE_CHECKING:
    from cq.snapshot.relations import Relations


class Alias(NamedTuple):
    """`name` stands for `original`, which may be an alias itself. kind: import export default namespace assignment."""

    path: str
    start: int
    end: int
    kind: str
    name: str
    original: str
    type_only: bool = False


def find_aliases(relations: Relations, place: Candidate) -> list[Alias]:
    """By path and place. An import or export under the own name is none."""
    documents = relations.documents
    own = place.shown_name.rpartition(".")[2]
    paths = {place.path, *documents.find_importing(place.path)}
    paths |= {path for path, _ in relations.referrers.find_files(place)}
    found: set[Alias] = set()
    for path in paths:
        for document in range(len(documents.links(path))):
            found.update(_find_imported(relations, path, document, place, own))
            found.update(_find_assigned(relations, path, document, place, own))
    return sorted(found)


def _find_imported(relations: Relations, path: str, document: int, place: Candidate, own: str) -> Iterator[Alias]:
    held = relations.hold(path)
    if held is None or document >= len(held.imports):
        return
    imports, exports = held.imports[document]
    meant = {bind.name for bind, _, ref in relations.documents.find_bound(path, document) if place in ref.candidates}
    for item in imports:
        for binding in item.bindings:
            if binding.local in meant and binding.local not in (own, binding.imported):
                kind = {"*": "namespace", "default": "default"}.get(binding.imported, "import")
                type_only = item.type_only or binding.type_only
                yield Alias(path, binding.start, binding.end, kind, binding.local, binding.imported, type_only)
    for export in exports:
        if export.exported in (own, "*", "export=") or export.exported == export.name:
            continue
        if export.module:
            is_meant = f"export {export.exported}" in meant
        elif export.name in meant:
            is_meant = True
        else:
            ref = relations.meanings.find_name(path, document, export.name, export.end, "reference")
            is_meant = place in ref.candidates
        if is_meant:
            kind = "namespace" if export.name == "*" else "default" if export.exported == "default" else "export"
            yield Alias(path, export.start, export.end, kind, export.exported, export.name, export.type_only)


def _find_assigned(relations: Relations, path: str, document: int, place: Candidate, own: str) -> Iterator[Alias]:
    """`export const start = run`, `import Short = Long.Name`."""
    unit, held = relations.documents.unit(path, document), relations.hold(path)
    if unit is None or held is None or not relations.documents.is_linked(path, document):
        return
    names = {symbol.name: symbol for symbol in held.symbols[document] if symbol.parent < 0}
    for bind in unit.code.binds:
        symbol = names.get(bind.name)
        if bind.scope != ROOT or not isinstance(bind.value, str) or symbol is None or bind.name == own:
            continue
        if symbol.kind not in ("variable", "constant"):
            continue
        if relations.meanings.find_dotted(path, document, bind.value, bind.start).resolved == place:
            yield Alias(path, symbol.name_start, symbol.name_end, "assignment", bind.name, bind.value)
