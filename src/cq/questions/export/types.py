"""Rows of what declarations say of types, and of projects."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import cached_property

from cq.languages.shapes import read_shapes
from cq.model.artifact import (
    SCHEMA_VERSION,
    HandedName,
    NarrowedName,
    PathAlias,
    ProjectRow,
    Row,
    TypedName,
    TypeFactsRow,
)
from cq.model.project import Project
from cq.model.shape import Declared, Predicate, Shapes
from cq.questions.export.document import Document
from cq.snapshot.bodies import Bodies
from cq.snapshot.files import IndexedFiles
from cq.snapshot.projects import KnownProjects
from cq.snapshot.shapes import is_declared
from cq.store.read import Reader, Tree

_MOST = 100  # guards and names handed over of one definition


def make_type_rows(document: Document) -> Iterator[Row]:
    """Of every definition that says anything of types; none in a language that is not read so."""
    facts = document.facts
    shapes = read_shapes(document.text, facts.language, facts.segment)
    if shapes is None:
        return
    inside = _Inside(document, shapes)
    for number, symbol in enumerate(facts.symbols):
        shape = shapes.find(symbol)
        if shape is None or symbol.kind in ("parameter", "type_parameter"):
            continue
        yield TypeFactsRow(
            schema_version=SCHEMA_VERSION,
            symbol_id=document.identity.symbol_ids[number],
            chunk_uid=document.identity.chunk_uids[symbol.chunk],
            virtual_path=document.virtual_path,
            file=document.path,
            lang=facts.language,
            kind=symbol.kind,
            qualified_name=symbol.qualified_name,
            line=document.lines.line(symbol.name_start),
            source="syntax",
            abstract="abstract" in symbol.modifiers,
            ambient=is_declared(document.path, facts.symbols, symbol),
            type_parameters=tuple(
                TypedName(each.name, each.constraint or None, each.default or None, False, False, False)
                for each in shape.type_parameters
            ),
            extends=tuple(each.text for each in shape.extends),
            implements=tuple(each.text for each in shape.implements),
            parameters=_list_parameters(shape),
            returns=shape.returns.text if shape.returns is not None else None,
            returned=shape.returned or None,
            predicate=_write_predicate(shape.predicate),
            type=shape.type.text if shape.type is not None else None,
            type_kind=shape.tree.kind if shape.tree is not None else None,
            value=shape.value or None,
            computed=shape.is_computed,
            guards=inside.list_guards(number),
            hands=inside.list_handed(number),
        )


def _list_parameters(shape: Declared) -> tuple[TypedName, ...] | None:
    if shape.parameters is None:
        return None
    return tuple(
        TypedName(
            each.name,
            each.type.text if each.type is not None else None,
            None,
            each.is_optional,
            each.is_rest,
            each.is_called,
        )
        for each in shape.parameters
    )


def _write_predicate(predicate: Predicate | None) -> str | None:
    if predicate is None:
        return None
    word = "asserts " if predicate.kind == "asserts" else ""
    return f"{word}{predicate.parameter}{f' is {predicate.type.text}' if predicate.type is not None else ''}"


class _Inside:
    """What stands in the own code of a definition."""

    def __init__(self, document: Document, shapes: Shapes) -> None:
        self._document, self._shapes = document, shapes
        self._bodies = Bodies(document.facts.symbols)

    def list_guards(self, number: int) -> tuple[NarrowedName, ...]:
        """Without calls: whether these are of guards is for links to know."""
        symbol, found = self._document.facts.symbols[number], list[NarrowedName]()
        first = bisect_left(self._shapes.guards, symbol.body_start, key=lambda guard: guard.start)
        for guard in self._shapes.guards[first:] if symbol.body_start >= 0 else ():
            if guard.start >= symbol.body_end or len(found) >= _MOST:
                break
            if guard.kind != "call" and not guard.is_return_type and self._is_own(number, guard.start):
                line = self._document.lines.line(guard.start)
                found.append(NarrowedName(guard.kind, guard.subject, guard.narrowed_to, line))
        return tuple(found)

    def list_handed(self, number: int) -> tuple[HandedName, ...]:
        symbol, found = self._document.facts.symbols[number], list[HandedName]()
        first = bisect_left(self._shapes.handed, symbol.body_start, key=lambda handed: handed.start)
        for handed in self._shapes.handed[first:] if symbol.body_start >= 0 else ():
            if handed.start >= symbol.body_end or len(found) >= _MOST:
                break
            if self._is_own(number, handed.start):
                line = self._document.lines.line(handed.start)
                found.append(
                    HandedName(handed.name, handed.callee or handed.attribute, handed.index, handed.bound, line)
                )
        return tuple(found)

    def _is_own(self, number: int, place: int) -> bool:
        return next(self._bodies.around(place), -1) == number


class ProjectSource:
    """Every project, with the file that configures it."""

    def __init__(self, reader: Reader, tree: Tree) -> None:
        self._reader, self._tree = reader, tree

    @cached_property
    def _known(self) -> dict[str, Project]:
        return {each.path: each for each in KnownProjects(IndexedFiles(self._reader, self._tree)).all()}

    def make_rows(self, document: Document) -> Iterator[Row]:
        project = self._known.get(document.path) if document.number == 0 else None
        if project is not None:
            yield ProjectRow(
                schema_version=SCHEMA_VERSION,
                file=project.path,
                name=project.name,
                kind=project.kind,  # pyright: ignore[reportArgumentType]
                composite=project.is_composite,
                references=project.references,
                referenced_by=project.referenced_by,
                extends=project.extends,
                files=project.files,
                file_count=len(project.files),
                out_dir=project.out_dir or None,
                root_dir=project.root_dir or None,
                root_dirs=project.root_dirs,
                conditions=project.conditions,
                aliases=tuple(PathAlias(pattern, targets) for pattern, targets in project.aliases),
                workspaces=project.workspaces,
                problems=project.problems,
            )
