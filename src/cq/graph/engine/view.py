"""Documents as the linker reads them. Each accessor notes what was read, for the cell or the answer that is being
computed: a reader cannot forget to, and outside of this package nobody knows how reads are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from cq.graph.corpus import MAX_DOCUMENTS, Corpus
from cq.graph.engine import tables
from cq.graph.engine.cells import Cells, Keys
from cq.graph.engine.tables import Arg, Table, named_key
from cq.graph.scopes import ROOT, Star
from cq.graph.things import Class, Function
from cq.graph.unit import Unit
from cq.model.code import Bind, Definition, EntryKind, Site, Store, Text, Value

_Arg = TypeVar("_Arg", bound=Arg)
_Row = TypeVar("_Row")


class View:
    """One document. What is read by a place in its text (`sites`, `definitions`, `placed`, the scopes around) needs no
    note: who has the place has it from something read before, and that says all that is written there.

    More than 400 lines would be no reason to split it: it is a list of accessors.
    """

    def __init__(self, unit: Unit, cells: Cells) -> None:
        # The document itself, for those who link its own code: all of that is linked again when it changes.
        self.raw = unit
        self.path, self.language, self.document = unit.path, unit.language, unit.document
        self.sites = unit.code.sites
        self.site_at, self.definitions, self.by_symbol, self.placed = (
            unit.site_at, unit.definitions, unit.by_symbol, unit.placed,
        )  # fmt: skip
        self.home, self.homes = unit.home, unit.homes
        self.home_of = unit.home_of
        self.is_local, self.reach = unit.is_local, unit.reach
        self.find_placed, self.find_fixed = unit.find_placed, unit.find_fixed
        self.find_base, self.find_class, self.find_owner = unit.find_base, unit.find_class, unit.find_owner
        self.qualified_names = unit.qualified_names
        self.things: dict[int, Class | Function] = {}
        self._cells, self._note = cells, cells.note
        self._keys: dict[tuple[str, Arg], int] = {}
        self._bound_keys: dict[tuple[int, str], int] = {}
        self._held_keys: dict[int, Keys] = {}  # by class

    def _ask(self, table: Table[_Arg, _Row], arg: _Arg) -> _Row:
        self._note_row(table, arg)
        return table.read(self.raw, arg)

    def _note_row(self, table: Table[_Arg, _Row], arg: _Arg) -> None:
        place = (table.name, arg)
        key = self._keys.get(place)
        if key is None:
            key = self._keys[place] = table.key(self.raw, arg)
        self._note(key)

    def _note_bound(self, scope: int, name: str) -> None:
        """As `_note_row`, with less ado: most of what is read is that."""
        place = (scope, name)
        key = self._bound_keys.get(place)
        if key is None:
            key = self._bound_keys[place] = tables.BOUND.key(self.raw, place)
        self._note(key)

    # -- names and what they are bound to ----------------------------------------------------------------

    def find(self, scope: int, name: str, position: int) -> Sequence[Bind]:
        """See Unit.find."""
        found = self.raw.find(scope, name, position)
        self._note_bound(found[0].scope if found else ROOT, name)
        return found

    def bound(self, scope: int, name: str) -> Sequence[Bind]:
        """All that a scope binds to a name."""
        self._note_bound(scope, name)
        return self.raw.scopes.get(scope, {}).get(name, ())

    def member(self, symbol: int, name: str) -> tuple[Sequence[Bind], Sequence[Store]]:
        """What a class binds to a name, and what its methods store under it."""
        self._note_bound(symbol, name)
        return self.raw.scopes.get(symbol, {}).get(name, ()), self.raw.own_stores(symbol).get(name, ())

    def names(self, symbol: int) -> Sequence[str]:
        """Those that a class has."""
        return self._ask(tables.NAMES, symbol)

    def fields(self, symbol: int) -> Sequence[str]:
        """The names that a class gives a type, in order."""
        return self._ask(tables.FIELDS, symbol)

    def stars(self) -> Sequence[Star]:
        """`from m import *`, of any scope."""
        return self._ask(tables.STARS, "")

    def public(self) -> tuple[str, ...] | None:
        """What `import *` takes, where the document says so."""
        return self._ask(tables.PUBLIC, "")

    # -- definitions -------------------------------------------------------------------------------------

    def contents(self, definition: Definition) -> Definition:
        """The definition, for who asks more of it than what it is and how it is reached (its kind, its modifiers and
        decorators, what its first parameter is called): parameters, types, bases, what it returns."""
        if definition.symbol < 0:
            self._note(self.raw.home_of(definition))
            return definition
        return self._ask(tables.CONTENTS, definition.symbol)

    def defined(self, name: str) -> Sequence[Definition]:
        """Definitions of a name, wherever in the document they stand."""
        return self._ask(tables.DEFINED, name)

    def heirs(self, name: str) -> Sequence[Definition]:
        """Classes by the name of a base."""
        return self._ask(tables.HEIRS, name)

    def is_raised(self, name: str) -> bool:
        """Whether something is raised by that name alone."""
        return self._ask(tables.RAISED, name)

    # -- calls -------------------------------------------------------------------------------------------

    def site(self, number: int) -> Site:
        """A call, for who depends on all code of its function."""
        site = self.sites[number]
        self._note(self.home(site.scope))
        return site

    def calls(self, name: str) -> Sequence[int]:
        """The document's own; see Documents.calls for those of all."""
        return self._ask(tables.CALLS, name)

    def indirect(self) -> Sequence[int]:
        """Calls of plain names that are no definition or import: parameters and variables that hold functions."""
        return self._ask(tables.INDIRECT, "")

    def handed_over(self, name: str) -> Sequence[tuple[int, int | str]]:
        """Calls that are given a function of the document by its name, and as which argument."""
        return self._ask(tables.HANDED, name)

    def find_handed(self, definition: Definition) -> Sequence[tuple[int, int | str]]:
        """Calls that are given a function by its name or as it stands."""
        if definition.name:
            return self.handed_over(definition.name)
        self._note(self.raw.home_of(definition))
        return self.raw.handed_over.get(definition.start, ())

    def handed(self, definition: Definition) -> tuple[int, int] | None:
        """The call that gets an anonymous function, and as which argument."""
        self._note(self.raw.home_of(definition))
        return self.raw.handed.get(definition.start)

    def decorated_at(self, end: int) -> tuple[Definition, int, bool] | None:
        """See Unit.decorated_at."""
        return self.raw.decorated_at.get(end)

    def held_sites(self, symbol: int) -> Sequence[int]:
        """The calls whose results the attributes of a class are."""
        keys = self._held_keys.get(symbol)
        if keys is None:
            rows = [(symbol, name) for name in self.names(symbol)]
            keys = self._held_keys[symbol] = Keys(tables.BOUND.key(self.raw, row) for row in rows)
            keys.add(tables.NAMES.key(self.raw, symbol))
        self._note(keys)
        return self.raw.held_sites.get(symbol, ())

    # -- stores ------------------------------------------------------------------------------------------

    def stores(self, name: str) -> Sequence[Store]:
        """The document's own to an attribute of that name, but on `self`; see Documents.stores for those of all."""
        return self._ask(tables.STORES, name)

    def assigned(self, name: str) -> Sequence[Store]:
        """All of the document to an attribute of that name."""
        return self._ask(tables.ASSIGNED, name)

    # -- containers --------------------------------------------------------------------------------------

    def find_items(self, value: Value) -> list[Store]:
        """What is put into a container as written, through the names it is bound to."""
        for name in self.raw.find_names(value):
            self._ask(tables.FILLED, name)
        return self.raw.find_items(value)

    def find_passing(self, value: Value) -> list[tuple[int, int]]:
        """See Unit.find_passing."""
        for name in self.raw.find_names(value):
            self._ask(tables.FILLED, name)
        return self.raw.find_passing(value)

    def is_mentioned(self, name: str) -> bool:
        """Whether code does something with what has that name beside calling it."""
        return self._ask(tables.MENTIONED, name)

    def items_of(self, base: str) -> Sequence[Store]:
        """What is put into what a text names: `jobs`, `self.jobs`."""
        self._ask(tables.FILLED, base.rpartition(".")[2])
        return self.raw.item_stores.get(base, ())

    def items_under(self, key: Text) -> Sequence[Store]:
        """What is put into any container under a constant text."""
        return self._ask(tables.UNDER, key)

    def container_name(self, value: Value) -> tuple[str, Bind | None]:
        """The name that a container as written is bound to, None for an attribute."""
        return self.raw.container_names.get(id(value), ("", None))

    def name_result(self, end: int, value: Value) -> None:
        self.raw.name_result(end, value)


class Documents:
    """All documents that a linker can ask for, and what they have under names."""

    def __init__(self, corpus: Corpus, cells: Cells) -> None:
        self.paths = corpus.paths
        self._corpus, self._cells = corpus, cells
        self._views: dict[Unit, View] = {}
        self._calls: dict[str, tuple[int, list[tuple[View, int]] | None]] = {}
        self._stores: dict[str, tuple[int, list[tuple[View, Store]] | None]] = {}

    def view(self, unit: Unit) -> View:
        found = self._views.get(unit)
        if found is None:
            found = self._views[unit] = View(unit, self._cells)
        return found

    def get(self, path: str) -> View | None:
        """The document that is the file itself. That it comes or goes relinks everything."""
        unit = self._corpus.unit(path)
        return None if unit is None else self.view(unit)

    def calls(self, name: str) -> list[tuple[View, int]] | None:
        """The calls of a name; None where too many documents have some."""
        known = self._calls.get(name)
        if known is None:
            units = self._corpus.calling(name) if name else ()
            found = None if units is None else [(self.view(u), n) for u in units for n in u.sites_by_name.get(name, ())]
            known = self._calls[name] = named_key(name, "called"), found
        self._cells.note(known[0])
        return known[1]

    def stores(self, name: str) -> list[tuple[View, Store]] | None:
        """The stores to an attribute of that name, but on `self`; None where too many documents have some."""
        known = self._stores.get(name)
        if known is None:
            units = self._corpus.storing(name)
            found = (
                None if units is None else [(self.view(u), s) for u in units for s in u.stores_by_name.get(name, ())]
            )
            known = self._stores[name] = named_key(name, "stored"), found
        self._cells.note(known[0])
        return known[1]

    def find_only_method(self, name: str) -> tuple[View, Definition] | None:
        """The method of that name; None where there are several, or an attribute of that name is assigned."""
        self._cells.note(named_key(name, "method"))
        units = self._corpus.entering("method", name, 1)
        methods = units[0].methods_by_name[name] if units else ()
        if len(methods) != 1 or units is None or self.stores(name) != []:
            return None
        return self.view(units[0]), methods[0]

    def is_imported(self, name: str) -> bool:
        """Whether a document imports something under that name."""
        self._cells.note(named_key(name, "imported"))
        return self._corpus.entering("imported", name, 0) is None

    def entries(self, kind: EntryKind, name: str, most: int = MAX_DOCUMENTS) -> list[tuple[View, Definition]] | None:
        """The definitions that are so entered (see EntryKind in cq.model.code); None where there are too many."""
        self._cells.note(named_key(name, kind))
        units = self._corpus.entering(kind, name, most)
        if units is None:
            return None
        return [(self.view(unit), known) for unit in units for known in unit.entries.get((kind, name), ())]
