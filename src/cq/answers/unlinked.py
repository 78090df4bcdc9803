"""Calls of a name that no link says anything about: what a count of links leaves out."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from cq.answers.words import count
from cq.model.status import Degraded
from cq.snapshot.relations import Relations
from cq.snapshot.target import Definition, module_name

MAX_LOOKED_AT = 5000  # calls of one name
_SHOWN = 3


def note_unlinked(
    relations: Relations, command: str, targets: Sequence[Definition], place: Iterable[str] = ()
) -> tuple[Degraded, ...]:
    """What an answer about definitions says of the calls of their names that could not be linked to anything."""
    events: list[Degraded] = []
    for name in dict.fromkeys(row.symbol.name for row in targets if row.symbol.kind_group in ("function", "method")):
        rows = [row for row in targets if row.symbol.name == name]
        places, is_all = _find(relations, name, rows)
        if not places:
            continue
        shown = ", ".join(places[:_SHOWN])
        more = f" and {len(places) - _SHOWN:,} more" if len(places) > _SHOWN else ""
        every = " ".join(["cq search", shlex.quote(name), "--kind call", *place])
        message = (
            f"{'' if is_all else 'at least '}{count(len(places), 'more call')} of {name!r} could not be linked to any"
            f" definition: {shown}{more}; `{every}` lists all calls of that name"
        )
        events.append(Degraded(command, "info", "unlinked", message, name))
    return tuple(events)


def _find(relations: Relations, name: str, rows: Sequence[Definition]) -> tuple[list[str], bool]:
    """Places, sources before tests; and whether all calls of the name were looked at."""
    languages = {row.file.documents[row.document].language for row in rows}
    modules = {f".{module_name(row.file.path)}" for row in rows}
    found: list[tuple[bool, str, int]] = []
    left = MAX_LOOKED_AT
    for file in relations.files.calls(name):
        for document, number in file.calls_named(frozenset({name})):
            if file.documents[document].language not in languages:
                continue
            left -= 1
            if left < 0:
                break
            if not relations.documents.is_linked(file.path, document):
                continue  # these are candidates by name already
            ref = relations.calls.find_call(file.path, document, number)
            # A package whose own folder is the root is imported under a name that the root does not have.
            module = f".{ref.module.removesuffix(f'.{name}')}" if ref.status == "external" else ""
            if ref.status == "unresolved" or any(module.endswith(own) for own in modules):
                call = file.calls[document][number]
                line = file.lines.line(max(call.name_start, call.start))
                found.append((file.role in ("test", "doc"), file.path, line))
    return [f"{path}:{line}" for _, path, line in sorted(found)], left >= 0
