"""What queries ask of types: parameters, results, guards, callbacks, values of enums, structure of aliases."""

from __future__ import annotations

import re
from functools import cached_property

from cq.model.shape import Declared, Handed, TypeText
from cq.query.tree import Token
from cq.questions.q.matches import Match
from cq.snapshot.files import IndexedFiles
from cq.snapshot.relations import Relations
from cq.snapshot.shapes import KnownShapes, find_augmented, is_ambient, takes_function
from cq.snapshot.target import Definition
from cq.store.read import Reader, Tree

_WORD = re.compile(r"[\w$.]+")


class ShapeTests:
    """Documents are read when one is asked for that fits in all other ways."""

    def __init__(self, reader: Reader, tree: Tree) -> None:
        self._reader, self._tree = reader, tree

    @cached_property
    def _shapes(self) -> KnownShapes:
        return KnownShapes(Relations(IndexedFiles(self._reader, self._tree)))

    def holds(self, token: Token, match: Match) -> bool:
        held = self._shapes.relations.hold(match.path)
        if held is None:
            return False
        if match.symbol < 0:
            return token.key == "passes" and self._is_passed_at(token, match)
        row = Definition(held, match.document, match.symbol)
        if token.key == "ambient":
            return is_ambient(row) is (token.text == "true")
        if token.key == "augments":
            module = find_augmented(row)
            return bool(module) and _fits(token, module)
        shape = self._shapes.find(row)
        if token.key == "value":
            return self._has_value(token, row, shape)
        if shape is None:
            return token.key == "takes_callback" and token.text == "false"
        match token.key:
            case "param_type":
                return any(self._has_type(token, row, each.type) for each in shape.parameters or ())
            case "returns":
                return self._has_type(token, row, shape.returns)
            case "guard":
                return any(guard.kind == token.text for guard in self._shapes.find_guards(row))
            case "narrows":
                narrowed = [guard.narrowed_to for guard in self._shapes.find_guards(row)]
                return any(_fits(token, word) for text in narrowed for word in _WORD.findall(text))
            case "passes":
                return any(self._is_called(token, item.handed) for item in self._shapes.find_handed_by(row))
            case "takes_callback":
                takes = any(takes_function(self._shapes, row, each) for each in shape.parameters or ())
                return takes is (token.text == "true")
            case _:
                return shape.tree is not None and shape.tree.kind == token.text

    def _has_type(self, token: Token, row: Definition, written: TypeText | None) -> bool:
        """By the names that the type is written with, and those of what they mean."""
        if written is None:
            return False
        if any(_fits(token, word) for word in _WORD.findall(written.text)):
            return True
        places = self._shapes.resolve(row.file.path, row.document, written)
        return any(_fits(token, place.shown_name) for place in places)

    def _is_passed_at(self, token: Token, match: Match) -> bool:
        """Whether a call itself is given such a function, not a call inside it."""
        shapes = self._shapes.read_document(match.path, match.document)
        for handed in shapes.handed if shapes is not None else ():
            if handed.call == match.start and self._is_called(token, handed):
                return self._shapes.find_function(match.path, match.document, handed) is not None
        return False

    def _is_called(self, token: Token, handed: Handed) -> bool:
        return _fits(token, handed.name)

    def _has_value(self, token: Token, row: Definition, shape: Declared | None) -> bool:
        values = [] if shape is None else [shape.value]
        if row.symbol.kind == "enum":
            members = [
                Definition(row.file, row.document, number)
                for number, symbol in enumerate(row.siblings)
                if symbol.parent == row.number and symbol.kind == "enum_member"
            ]
            values = [known.value for member in members if (known := self._shapes.find(member)) is not None]
        return any(value and _has_text(token, value.strip('"')) for value in values)


def _has_text(token: Token, text: str) -> bool:
    return re.search(token.text, text) is not None if token.op == "=~" else token.text.strip("\"'") == text


def _fits(token: Token, name: str) -> bool:
    """Exact, or qualified from the right, or a regular expression that is found in the name."""
    if token.op == "=~":
        return re.search(token.text, name) is not None
    return name == token.text or name.endswith(f".{token.text}")
