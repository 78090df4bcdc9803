"""What surrounds a definition in its own file: the scopes that hold it, what it holds, what stands beside it."""

from __future__ import annotations

from collections.abc import Iterator

from cq.model.edge import Candidate
from cq.model.facts import Symbol
from cq.questions.neighborhood.members import LOCAL, Found, Member, Subject
from cq.snapshot.relations import Relations
from cq.snapshot.target import Definition

_CODE = frozenset({"function", "method"})  # kind groups whose values are locals


def find_parents(relations: Relations, subject: Subject) -> Found:
    """The scopes around it, the innermost first, the module last; of a module the package that holds it."""
    return Found(tuple(Member(place, "contains") for place in _find_scopes(relations, subject)))


def find_enclosing(relations: Relations, subject: Subject) -> Found:
    return Found(find_parents(relations, subject).members[:1])


def find_children(relations: Relations, subject: Subject) -> Found:
    """Definitions directly inside, code before values; those of `impl` blocks belong to their type."""
    del relations
    symbols = subject.file.symbols[subject.document]
    holders = {-1 if subject.row is None else subject.row.number}
    own = subject.symbol
    if own is not None and own.kind in ("struct", "enum", "union"):
        holders |= {at for at, symbol in enumerate(symbols) if symbol.kind == "impl" and symbol.name == own.name}
    inside = own is not None and own.kind_group in _CODE
    rows = [
        Definition(subject.file, subject.document, number)
        for number, symbol in enumerate(symbols)
        if symbol.parent in holders and _is_told(symbol, inside)
    ]
    if own is not None and own.kind in ("struct", "enum", "union"):
        rows = [row for row in rows if row.symbol.kind != "impl"]
    rows.sort(key=lambda row: row.symbol.kind_group == "value")
    return Found(tuple(Member(row, "contains", outward=True) for row in rows))


def find_siblings(relations: Relations, subject: Subject) -> Found:
    """What stands in the same scope: its own kind first, each in the order of the code."""
    del relations
    own = subject.symbol
    if own is None or subject.row is None:
        return Found()
    symbols = subject.file.symbols[subject.document]
    inside = own.parent >= 0 and symbols[own.parent].kind_group in _CODE
    rows = [
        Definition(subject.file, subject.document, number)
        for number, symbol in enumerate(symbols)
        if symbol.parent == own.parent
        and number != subject.row.number
        and _is_told(symbol, inside)
        # `impl T` is T's own.
        and not (symbol.kind == "impl" and symbol.name == own.name)
    ]
    rows.sort(key=lambda row: row.symbol.kind_group != own.kind_group)
    return Found(tuple(Member(row, "", outward=True) for row in rows))


def _find_scopes(relations: Relations, subject: Subject) -> Iterator[Definition | Candidate]:
    path = subject.file.path
    if subject.row is not None:
        symbols, number = subject.file.symbols[subject.document], subject.row.symbol.parent
        while number >= 0:
            yield Definition(subject.file, subject.document, number)
            number = symbols[number].parent
        yield Candidate(path, subject.document, "")
        return
    folder = path.rpartition("/")[0]
    if path.endswith(("/__init__.py", "/mod.rs", "/index.ts", "/index.js")):
        folder = folder.rpartition("/")[0]
    for name in ("__init__.py", "mod.rs", "lib.rs", "index.ts", "index.js"):
        package = f"{folder}/{name}" if folder else name
        if package != path and relations.hold(package) is not None:
            yield Candidate(package, 0, "")
            return


def _is_told(symbol: Symbol, inside_code: bool) -> bool:
    """Parameters and local variables are no neighbours."""
    return symbol.kind not in LOCAL and not (inside_code and symbol.kind_group == "value")
