"""What functions give, in words that two linkers share: whether a change of one concerns those that depend on it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from cq.graph.engine.view import View
from cq.graph.link import Linker
from cq.graph.things import (
    TOP,
    UNKNOWN,
    Argument,
    Bound,
    Class,
    Container,
    External,
    Function,
    Instance,
    Module,
    OwnClass,
    Super,
    Thing,
)
from cq.graph.unit import Unit
from cq.graph.values import Values

Given = tuple[object, object, frozenset[int]]  # values, those for what a decorator stands before, keys


def find_given(linker: Linker, places: Sequence[tuple[Unit, str]], moved: Collection[str]) -> list[Given | None]:
    """Of functions, by their names in their documents: what they return, and all that it depends on. `moved` are files
    whose offsets are others than in the linker this is compared with. None where something cannot be named."""
    functions = [_find_function(linker, linker.documents.view(unit), name) for unit, name in places]
    for function in functions:
        linker.calls.returned(function)
    linker.settle()
    found: list[Given | None] = []
    for function in functions:
        home = function.unit.home_of(function.definition)
        values = linker.ask(home, lambda function=function: linker.calls.returned(function))
        others = linker.ask(home, lambda function=function: linker.decorators.find_replacements(function))
        said = [_name_values(each, moved) for each in (values, others)]
        found.append(None if None in said else (said[0], said[1], frozenset(linker.find_keys(home) or ())))
    return found


def _find_function(linker: Linker, unit: View, name: str) -> Function:
    symbol = next(symbol for symbol, known in unit.qualified_names.items() if known == name)
    return linker.function(unit, unit.by_symbol[symbol].start)


def _name_values(values: Values, moved: Collection[str]) -> frozenset[tuple[object, int]] | None:
    found = [(_name(thing, moved), level) for thing, level in values.items()]
    return None if any(name is None for name, _ in found) else frozenset(found)


def _name(thing: Thing, moved: Collection[str]) -> object | None:
    """The same for what is the same; None for what has a place in the text and no name."""
    match thing:
        case Function() | Class():
            unit, definition = thing.unit, thing.definition
            symbol = definition.anonymous[0] if definition.anonymous else definition.symbol
            if symbol < 0 and unit.path in moved:
                return None
            return definition.kind, unit.path, unit.document, unit.qualified_names.get(symbol, definition.start)
        case Instance():
            return _join("instance", thing.own, thing.declared, _name(thing.type, moved))
        case OwnClass():
            return _join("own", thing.declared, _name(thing.type, moved))
        case Bound():
            receiver = "" if thing.receiver is None else _name(thing.receiver, moved)
            return _join("bound", _name(thing.function, moved), receiver, thing.skipped)
        case Super():
            return _join("super", _name(thing.type, moved), _name(thing.receiver, moved))
        case Argument():
            return _join("argument", _name(thing.function, moved), thing.number)
        case Module():
            return "module", thing.path
        case External():
            return _join("external", thing.name, "" if thing.owner is None else _name(thing.owner, moved))
        case Container():
            unit = thing.unit
            if unit.path in moved:
                return None
            return unit.path, unit.document, thing.scope, thing.position, thing.kind, thing.typed, repr(thing.value)
        case _:
            return "?" if thing is UNKNOWN else "*" if thing is TOP else None


def _join(*names: object) -> object | None:
    return None if None in names else names
