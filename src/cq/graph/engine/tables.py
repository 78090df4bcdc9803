"""The questions that a document can be asked. What a table answers is what readers see of a document (see
cq.graph.engine.view), and what a change of it is told by (see cq.graph.engine.change): nobody can read what is not
compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Generic, NamedTuple, Protocol, TypeVar

from cq.graph.scopes import ROOT, Star
from cq.graph.unit import Unit, part_key
from cq.model.code import Bind, Definition, Named, NamedKind, Store, Text

Arg = str | int | Text | tuple[int, str]  # a name, a symbol, a constant key, a name in a scope
_Arg = TypeVar("_Arg", bound=Arg)
_Row = TypeVar("_Row")


class Contents(NamedTuple):
    """All that a definition says; beside it, a definition stands for what it is and how it is reached."""

    definition: Definition


class CallAt(NamedTuple):
    number: int


Item = Bind | Store | Definition | Contents | CallAt | Star | str  # what answers are made of


class Rows(Protocol):
    def list_rows(self, unit: Unit) -> Iterator[tuple[Callable[[], int], Iterable[Item]]]:
        """Everything that a document answers, each with what gives the number that stands for the question."""
        ...


class Table(Generic[_Arg, _Row]):
    """One question: `args` are those for which a document may have an answer, `items` what an answer is made of."""

    def __init__(
        self,
        name: str,
        args: Callable[[Unit], Iterable[_Arg]],
        read: Callable[[Unit, _Arg], _Row],
        items: Callable[[_Row], Iterable[Item]],
    ) -> None:
        self.name, self.args, self.read, self.items = name, args, read, items

    def key(self, unit: Unit, arg: _Arg) -> int:
        """The same for the same question, whatever the offsets. All that stands in a function is one."""
        scope = arg[0] if isinstance(arg, tuple) else arg
        if isinstance(scope, int) and unit.is_local(scope):
            return unit.home(scope)
        return part_key(unit.path, str(unit.document), self.name, *_spell(unit, arg))

    def list_rows(self, unit: Unit) -> Iterator[tuple[Callable[[], int], Iterable[Item]]]:
        for arg in self.args(unit):
            yield partial(self.key, unit, arg), self.items(self.read(unit, arg))


def _spell(unit: Unit, arg: Arg) -> tuple[str, ...]:
    match arg:
        case str():
            return (arg,)
        case int():
            return (unit.qualified_names[arg],)
        case Text():
            return (arg.value,)
        case (scope, name):
            # Who asks for a member asks the same of every class of a line, and of all classes below: the classes of a
            # document answer as one.
            return "" if scope == ROOT else "member", name


def named_key(name: str, kind: NamedKind) -> int:
    """Stands for what any document has under a name; see NAMED_KINDS of cq.model.code."""
    return part_key("named", kind, name)


def _list_bound(unit: Unit) -> Iterable[tuple[int, str]]:
    found: dict[tuple[int, str], None] = {}
    for scope, names in unit.scopes.items():
        if not unit.is_local(scope):
            found |= dict.fromkeys((scope, name) for name in names)
    for symbol in unit.by_symbol:
        found |= dict.fromkeys((symbol, name) for name in unit.own_stores(symbol))
    return found


def _read_bound(unit: Unit, arg: tuple[int, str]) -> list[Item]:
    scope, name = arg
    found = *unit.scopes.get(scope, {}).get(name, ()), *unit.own_stores(scope).get(name, ())
    return [unit.qualified_names.get(scope, ""), *found] if found else []


def _list_classes(unit: Unit) -> list[int]:
    return [symbol for symbol in unit.by_symbol if not unit.is_local(symbol)]


def _read_filled(unit: Unit, name: str) -> list[Item]:
    found: list[Item] = [*unit.items_by_name.get(name, ())]
    if name in unit.held_names:
        found += unit.aliases.get(name, ())
        found += [CallAt(number) for number, _ in unit.passing.get(name, ())]
    return found


def _as_calls(numbers: Iterable[int]) -> list[CallAt]:
    return [CallAt(number) for number in numbers]


# All that a definition says: of a function the first under its key.
CONTENTS = Table(
    "contents", lambda unit: unit.by_symbol, lambda unit, symbol: unit.by_symbol[symbol], lambda row: [Contents(row)]
)
# What a scope binds to a name; of a class also what its methods store under it.
BOUND = Table("bound", _list_bound, _read_bound, lambda row: row)
NAMES = Table("names", _list_classes, lambda unit, symbol: sorted(unit.scopes.get(symbol, ())), lambda row: row)
# The names that a class gives a type.
FIELDS = Table("fields", _list_classes, lambda unit, symbol: unit.find_fields(symbol), lambda row: row)
STARS = Table("stars", lambda unit: [""] * bool(unit.stars), lambda unit, _: unit.stars, lambda row: row)
PUBLIC = Table(
    "public", lambda unit: [""], lambda unit, _: unit.code.public, lambda row: ["*"] if row is None else ["", *row]
)
# Definitions of a name, wherever in the document they stand.
DEFINED = Table("defined", lambda unit: unit.defined, lambda unit, name: unit.defined.get(name, ()), lambda row: row)
HEIRS = Table("heirs", lambda unit: unit.heirs, lambda unit, name: unit.heirs.get(name, ()), lambda row: row)
CALLS = Table("calls", lambda unit: unit.sites_by_name, lambda unit, name: unit.sites_by_name.get(name, ()), _as_calls)
INDIRECT = Table("indirect", lambda unit: [""] * bool(unit.indirect), lambda unit, _: unit.indirect, _as_calls)
# Calls that are given a function of a name.
HANDED = Table(
    "handed",
    lambda unit: [name for name in unit.handed_over if isinstance(name, str)],
    lambda unit, name: unit.handed_over.get(name, ()),
    lambda row: [CallAt(number) for number, _ in row],
)
STORES = Table(
    "stores", lambda unit: unit.stores_by_name, lambda unit, name: unit.stores_by_name.get(name, ()), lambda row: row
)
ASSIGNED = Table(
    "assigned", lambda unit: unit.assigned, lambda unit, name: unit.assigned.get(name, ()), lambda row: row
)
# What is put into containers, by the last name of what holds them, and who else gets the container of that name.
FILLED = Table(
    "filled", lambda unit: {**unit.items_by_name, **dict.fromkeys(unit.held_names)}, _read_filled, lambda row: row
)
# What is put into containers under a constant text.
UNDER = Table("under", lambda unit: unit.items_under, lambda unit, key: unit.items_under.get(key, ()), lambda row: row)
RAISED = Table(
    "raised", lambda unit: unit.raised_names, lambda unit, name: name in unit.raised_names, lambda row: [str(row)]
)
MENTIONED = Table(
    "mentioned", lambda unit: unit.mentioned, lambda unit, name: name in unit.mentioned, lambda row: [str(row)]
)
TABLES: tuple[Rows, ...] = (
    CONTENTS, BOUND, NAMES, FIELDS, STARS, PUBLIC, DEFINED, HEIRS, CALLS, INDIRECT, HANDED, STORES, ASSIGNED, FILLED,
    UNDER, RAISED, MENTIONED,
)  # fmt: skip


def list_named(unit: Unit) -> Iterator[tuple[Named, Iterable[Item]]]:
    """What a document has under the names by which all documents are asked at once."""
    for name, numbers in unit.sites_by_name.items():
        yield (name, "called"), _as_calls(numbers)
    for name, stores in unit.stores_by_name.items():
        yield (name, "stored"), stores
    for (kind, name), entered in unit.entries.items():
        yield (name, kind), entered
    for name, methods in unit.methods_by_name.items():
        yield (name, "method"), [unit.qualified_names[method.symbol] for method in methods]
    for name in unit.imported_names:
        yield (name, "imported"), [name]
