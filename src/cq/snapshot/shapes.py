"""What the text of a definition says of types and of functions as values, with what its names mean by links."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from cq.graph.scopes import ANYWHERE
from cq.language import describe
from cq.languages.shapes import read_shapes
from cq.model.edge import Candidate
from cq.model.facts import Binding, Import, Symbol
from cq.model.shape import Declared, Guard, Handed, Predicate, ShapeParameter, Shapes, TypeText
from cq.semantics.memory import remembered
from cq.snapshot.bodies import Bodies
from cq.snapshot.target import Definition

if TYPE_CHECKING:
    from cq.snapshot.relations import Relations

_IMPORT = re.compile(r"""import\(\s*["']([^"']*)["'][^)]*\)\s*\.\s*""")
# What stands behind a name that is an argument, or the value of an attribute.
_HANDED = re.compile(rb"\s*(?:/\*.{0,200}?\*/\s*)?(?:[,)}!]|\.\s*bind\b|as\b|satisfies\b)", re.DOTALL)
MAX_TYPES = 200  # that one type leads to, through aliases
_FUNCTIONS = frozenset({"function", "method", "constructor", "accessor", "component"})


class HandedOver(NamedTuple):
    """A function that a call is given. `row` is the definition around the call, None at root level."""

    path: str
    document: int
    handed: Handed
    target: Candidate
    row: Definition | None


class KnownShapes:
    def __init__(self, relations: Relations) -> None:
        self.relations, self.memory = relations, relations.memory

    @remembered
    def read(self, path: str) -> tuple[Shapes | None, ...]:
        """Of every document of a file; None for one in a language that is not read so."""
        held = self.relations.hold(path)
        if held is None:
            return ()
        return tuple(read_shapes(held.text, each.language, each.segment) for each in held.documents)

    def read_document(self, path: str, document: int) -> Shapes | None:
        found = self.read(path)
        return found[document] if document < len(found) else None

    def find(self, row: Definition) -> Declared | None:
        shapes = self.read_document(row.file.path, row.document)
        return None if shapes is None else shapes.find(row.symbol)

    # -- names in types --------------------------------------------------------------------------

    def resolve(self, path: str, document: int, written: TypeText | None) -> list[Candidate]:
        """The types of the repository that a type names, those behind aliases too; in the order of the text, each
        once. Parameters of types are none."""
        found: dict[Candidate, None] = {}
        todo = [(path, document, written)]
        while todo and len(found) < MAX_TYPES:
            path, document, each = todo.pop()
            for name, start in each.names if each is not None else ():
                place = self._find_named(path, document, name, start)
                if place is None or place in found:
                    continue
                found[place] = None
                row = self.find_row(place)
                shape = self.find(row) if row is not None else None
                if row is not None and shape is not None and shape.tree is not None:
                    todo.append((row.file.path, row.document, shape.type))
        return list(found)

    def _find_named(self, path: str, document: int, name: str, start: int) -> Candidate | None:
        meanings = self.relations.meanings
        if (imported := _IMPORT.match(name)) is not None:
            return self._find_imported(path, document, imported[1], name[imported.end() :])
        if "." in name:
            ref = meanings.find_dotted(path, document, name, start)
        else:
            ref = meanings.find_name(path, document, name, start, "type")
        place = ref.resolved
        if place is None and len(ref.candidates) > 1 and len({each.path for each in ref.candidates}) == 1:
            place = ref.candidates[0]  # a class beside an interface of its name
        row = self.find_row(place) if place is not None else None
        return place if row is not None and row.symbol.kind not in ("type_parameter", "parameter") else None

    def _find_imported(self, path: str, document: int, module: str, name: str) -> Candidate | None:
        """`import("./m").T`."""
        held = self.relations.hold(path)
        if held is None:
            return None
        first = name.partition(".")[0]
        item = Import("from", module, 0, 0, -1, (Binding(first, first, 0, 0),))
        language = held.documents[document].language
        sources = self.relations.documents.find_sources(path, language, [item])[0] or ()
        for source in sources:
            place = self._find_named(source.path, 0, name, ANYWHERE)
            if place is not None:
                return place
        return None

    def find_row(self, place: Candidate) -> Definition | None:
        """A definition by its place, a type that is an alias too."""
        row = self.relations.definition(place)
        if row is not None or not place.name:
            return row
        held = self.relations.hold(place.path)
        name = place.shown_name
        for number, symbol in enumerate(held.symbols[place.document] if held is not None else ()):
            if symbol.qualified_name == name and symbol.kind != "type_parameter" and held is not None:
                return Definition(held, place.document, number)
        return None

    def find_heritage(self, row: Definition) -> dict[Candidate, str]:
        """What a class or interface names as its bases: extends or implements."""
        shape, found = self.find(row), dict[Candidate, str]()
        for word in ("implements", "extends"):
            for written in getattr(shape, word) if shape is not None else ():
                names = [(name, start) for name, start in written.names[:1]]
                for name, start in names:
                    place = self._find_named(row.file.path, row.document, name, start)
                    if place is not None:
                        found[place] = word
        return found

    # -- guards ----------------------------------------------------------------------------------

    def find_guards(self, row: Definition) -> Iterator[Guard]:
        """Those of a definition's own code, in the order of the text, not of functions with a name inside it; a call
        only of what is known to be a guard."""
        shapes, symbol = self.read_document(row.file.path, row.document), row.symbol
        if shapes is None or symbol.body_start < 0:
            for guard in shapes.guards if shapes is not None else ():
                if guard.is_return_type and guard.start == symbol.name_start:
                    yield guard
            return
        bodies = Bodies(row.siblings)
        first = bisect_left(shapes.guards, symbol.body_start, key=lambda guard: guard.start)
        for guard in shapes.guards[first:]:
            if guard.start >= symbol.body_end:
                return
            if next(bodies.around(guard.start), -1) != row.number and not guard.is_return_type:
                continue
            if guard.is_return_type and guard.start != symbol.body_start:
                continue
            known = self.settle(row.file.path, row.document, guard)
            if known is not None:
                yield known

    def settle(self, path: str, document: int, guard: Guard) -> Guard | None:
        """A guard whose kind is known; None for a call of something else."""
        if guard.kind != "call":
            return guard
        predicate = self.find_predicate(self.find_called(path, document, guard.call))
        if predicate is None:
            return None
        kind = "assertion" if predicate.kind == "asserts" else "user-defined"
        narrowed = "truthy" if predicate.type is None else predicate.type.text
        return Guard(kind, guard.start, guard.end, guard.subject, narrowed, call=guard.call)

    def find_called(self, path: str, document: int, name_start: int) -> Candidate | None:
        number = self.relations.documents.call_numbers(path, document).get(name_start)
        return None if number is None else self.relations.calls.find_call(path, document, number).resolved

    def find_predicate(self, place: Candidate | None) -> Predicate | None:
        row = self.find_row(place) if place is not None else None
        shape = self.find(row) if row is not None else None
        return None if shape is None else shape.predicate

    # -- functions handed over -------------------------------------------------------------------

    def find_handed_by(self, row: Definition) -> list[HandedOver]:
        """The functions of the repository that the code of a definition hands to calls."""
        path, document, symbol = row.file.path, row.document, row.symbol
        shapes = self.read_document(path, document)
        if shapes is None or symbol.body_start < 0:
            return []
        first = bisect_left(shapes.handed, symbol.body_start, key=lambda handed: handed.start)
        last = bisect_right(shapes.handed, symbol.body_end, key=lambda handed: handed.start)
        bodies, found = Bodies(row.siblings), list[HandedOver]()
        for handed in shapes.handed[first:last]:
            if next(bodies.around(handed.start), -1) == row.number:
                place = self.find_function(path, document, handed)
                found += [HandedOver(path, document, handed, place, row)] if place is not None else []
        return found

    def find_function(self, path: str, document: int, handed: Handed) -> Candidate | None:
        """The function that a name handed over surely means."""
        meanings = self.relations.meanings
        name = handed.name.rpartition(".")[2]
        if "." in handed.name:
            ref = meanings.find_attribute(path, document, name, handed.start)
        else:
            ref = meanings.find_name(path, document, name, handed.start, "reference")
        place = ref.resolved if ref is not None else None
        symbol = self.relations.symbol(place) if place is not None else None
        return place if symbol is not None and symbol.kind_group in ("function", "method") else None

    def find_handed_over(self, targets: Iterable[Definition]) -> list[HandedOver]:
        """Where functions are handed to calls, by path and place."""
        found: dict[tuple[str, int], HandedOver] = {}
        for row in targets:
            place = self.relations.find_place(row)
            if place is None or row.symbol.kind not in _FUNCTIONS or not describe(_language(row)).shapes:
                continue
            paths = {file.path for file in self.relations.files.candidates((row.symbol.name,))}
            paths |= {path for path, _ in self.relations.referrers.find_files(place)}
            for path in sorted(paths):
                for handed in self._find_handed_in(path, row.symbol.name, place):
                    found[path, handed.handed.start] = handed
        return [found[key] for key in sorted(found)]

    def _find_handed_in(self, path: str, name: str, place: Candidate) -> Iterator[HandedOver]:
        """In one file, which is read only where something is mentioned in a way that may hand it over."""
        held = self.relations.hold(path)
        if held is None or not any(describe(each.language).shapes for each in held.documents):
            return
        documents = self.relations.documents
        names = {name, *documents.find_locals(path, place)}
        for document, mentions in enumerate(documents.mentions(path)):
            for _, start, end, role in (mention for each in sorted(names) for mention in mentions.find(each)):
                if role in ("import", "call", "type", "keyword") or not _HANDED.match(held.text, end):
                    continue
                shapes = self.read_document(path, document)
                for handed in shapes.handed if shapes is not None else ():
                    if handed.start == start and self.find_function(path, document, handed) == place:
                        yield HandedOver(path, document, handed, place, self._find_holder(path, document, start))

    def _find_holder(self, path: str, document: int, start: int) -> Definition | None:
        held = self.relations.hold(path)
        if held is None:
            return None
        number = next(Bodies(held.symbols[document]).around(start), -1)
        return Definition(held, document, number) if number >= 0 else None


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, … 11th."""
    ending = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def say_handed(handed: Handed) -> str:
    """`handed to retry as 1st`."""
    if handed.attribute:
        return f"handed over as `{handed.attribute}`"
    bound = ", bound" if handed.bound else ""
    return f"handed to `{handed.callee or 'a function'}` as {ordinal(handed.index + 1)}{bound}"


def takes_function(shapes: KnownShapes, row: Definition, each: ShapeParameter) -> bool:
    """Whether a parameter is a function: by its type, if that is an alias too, or because it is called."""
    if each.is_called or each.type is None or each.type.is_function:
        return each.is_called or each.type is not None
    name, path, document = each.type.names[:1], row.file.path, row.document
    first = shapes.resolve(path, document, each.type)[:1] if name and each.type.text.startswith(name[0][0]) else []
    other = shapes.find_row(first[0]) if first else None
    known = shapes.find(other) if other is not None else None
    is_alias = name and each.type.text.partition("<")[0] == name[0][0]
    return bool(is_alias and known is not None and known.tree is not None and known.tree.kind == "function")


def is_ambient(row: Definition) -> bool:
    return is_declared(row.file.path, row.siblings, row.symbol)


def is_declared(path: str, symbols: Sequence[Symbol], symbol: Symbol) -> bool:
    """Whether something is declared rather than defined: `declare`, or in a file of declarations."""
    while "declare" not in symbol.modifiers:
        if symbol.parent < 0:
            return path.endswith((".d.ts", ".d.mts", ".d.cts"))
        symbol = symbols[symbol.parent]
    return True


def find_augmented(row: Definition) -> str:
    """The module that a definition adds to by `declare module "m"`, `global` by `declare global`; "" for none."""
    symbol = row.symbol
    while symbol.parent >= 0:
        symbol = row.siblings[symbol.parent]
        if symbol.kind == "namespace" and "declare" in symbol.modifiers:
            is_quoted = row.file.text[symbol.name_start - 1 : symbol.name_start] in (b"'", b'"')
            is_named = row.file.text[symbol.name_start : symbol.name_start + 1] in (b"'", b'"')
            if is_quoted or is_named or symbol.name == "global":
                return symbol.name.strip("'\"")
    return ""


def _language(row: Definition) -> str:
    return row.file.documents[row.document].language
