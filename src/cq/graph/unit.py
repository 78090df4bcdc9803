"""One document's code, made ready for lookups: its scopes, its containers, what it has under a name, its homes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import cast

from xxhash import xxh3_64_intdigest

from cq.graph.items import ADDING, Items
from cq.graph.scopes import ROOT, is_defined
from cq.language import describe
from cq.model.code import (
    HOLDERS,
    Attribute,
    Code,
    Definition,
    EntryKind,
    Form,
    Imported,
    Lambda,
    Named,
    NamedKind,
    Site,
    Store,
    Value,
    find_inner,
    label_items,
    split_receiver,
)

_CALLING = frozenset({"call", "apply"})
_SELF = ("self", "this")


def part_key(*names: str) -> int:
    """A number for a part of the code that others may depend on; the same on every machine."""
    return xxh3_64_intdigest("\0".join(names).encode("utf-8", "surrogatepass"))


def called_names(site: Site) -> list[str]:
    """The names by which a call may be looked for; `f.call(…)` is also one of f."""
    names = [site.name] if site.name else []
    if site.name in _CALLING and (receiver := split_receiver(site.callee)):
        names += [name for name in receiver.split(".")[-1:] if name != site.name]
    return names


def find_handed(site: Site) -> Iterator[tuple[str | int, int | str]]:
    """What a call is given that may be a function: its last name, or the start of one without a name; and as which
    argument, by position or keyword."""
    for at, value in (*enumerate(site.args), *site.keywords):
        if isinstance(value, str):
            yield value.rpartition(".")[2], at
        elif isinstance(value, Attribute):
            yield value.path.rpartition(".")[2], at
        elif isinstance(value, Lambda):
            yield value.start, at


def find_named(code: Code) -> set[Named]:
    """All names by which a document is found: see `Unit.has_name`."""
    found: set[Named] = {(entry.name, entry.kind) for entry in code.entries}
    found.update((name, "called") for name in find_called(code))
    found.update((name, "stored") for name in find_stored(code))
    found.update((name, "method") for name in find_named_methods(code))
    found.update((name, "imported") for name in find_imported_names(code))
    return found


def find_named_methods(code: Code) -> set[str]:
    """The names of a Unit's `methods_by_name`: of a language in which a call says nothing of its receiver."""
    return {member.name for member in find_members(code)} if describe(code.language).receiver == "first" else set()


def find_imported_names(code: Code) -> set[str]:
    """What a document takes from others by its name, in the same languages."""
    given = [bind.value.name for bind in code.binds if isinstance(bind.value, Imported)]
    return {name for name in given if name != "*"} if describe(code.language).receiver == "first" else set()


def find_mentioned(code: Code) -> set[str]:
    """The last names of all that is passed, bound, stored, put into containers, given back or a default."""
    todo: list[Value] = [bind.value for bind in code.binds]
    todo += [store.value for store in code.stores]
    for site in code.sites:
        todo += site.args
        todo += [value for _, value in site.keywords]
    for definition in code.definitions:
        todo += (*definition.returns, *definition.yields, *(given.default for given in definition.parameters))
    found: set[str] = set()
    for value in todo:
        if isinstance(value, str):
            found.add(value.rpartition(".")[2])
        elif type(value) in HOLDERS:
            if isinstance(value, Attribute):
                found.add(value.path.rpartition(".")[2])
            todo += find_inner(cast("Form", value))
    return found


def find_called(code: Code) -> set[str]:
    """The names of a Unit's `sites_by_name`, at a tenth of its cost."""
    found = {site.name for site in code.sites}
    if not found.isdisjoint(_CALLING):
        found.update(name for site in code.sites if site.name in _CALLING for name in called_names(site))
    found.discard("")
    return found


def find_stored(code: Code) -> set[str]:
    """The names of a Unit's `stores_by_name`."""
    found = {store.name for store in code.stores if store.name is not None and store.base not in _SELF}
    return found | {label_items(base.rpartition(".")[2]) for base in _find_foreign(code)}


def _find_foreign(code: Code) -> set[str]:
    """What code puts elements into that has it from another document: `lib.jobs`, behind `import lib`."""
    imported = {bind.name for bind in code.binds if isinstance(bind.value, Imported)}
    bases = {str(store.base) for store in code.stores if store.name is None and isinstance(store.base, str)}
    adding = (site.callee for site in code.sites if site.name in ADDING and isinstance(site.callee, str))
    bases.update(callee.rpartition(".")[0] for callee in adding)
    return {base for base in bases if base.partition(".")[0] in imported}


def find_members(code: Code) -> list[Definition]:
    """Functions that are members of a class or an object."""
    by_symbol = {definition.symbol: definition for definition in code.definitions if definition.symbol >= 0}
    receiver = describe(code.language).receiver
    found: list[Definition] = []
    for definition in code.definitions:
        if definition.kind != "function" or definition.symbol < 0:
            continue
        holder = by_symbol.get(definition.scope)
        # Where the receiver has a name of its own, only what takes it can be called on one.
        takes_self = receiver != "self" or [p.name for p in definition.parameters[:1]] == [receiver]
        is_held = holder is not None and holder.kind not in ("function", "mod")
        if takes_self and (is_held or "member" in definition.modifiers):
            found.append(definition)
    return found


class _Homes(dict[int, int]):
    def __init__(self, unit: Unit) -> None:
        super().__init__()
        self._unit = unit

    def __missing__(self, scope: int) -> int:
        unit = self._unit
        name = f"{unit.qualified_names[scope]}()" if unit.is_local(scope) else ""
        home = self[scope] = part_key(unit.path, str(unit.document), name)
        return home


class Unit(Items):
    def __init__(self, path: str, code: Code, document: int = 0) -> None:
        super().__init__(code)
        self.path, self.language, self.document = path, code.language, document
        # Homes: numbers that stand for all code of a function, whatever its offsets; what stands in a class or at root
        # level is reached through its names, and has one together.
        self.homes = _Homes(self)
        self.home: Callable[[int], int] = self.homes.__getitem__  # asked a million times: no function of ours

    def home_of(self, definition: Definition) -> int:
        """Where the links of a definition itself belong: with the code inside it."""
        return self.homes[definition.symbol if definition.symbol >= 0 else definition.scope]

    def all_homes(self) -> list[int]:
        return list(dict.fromkeys([self.homes[ROOT], *map(self.home_of, self.code.definitions)]))

    # -- by name ---------------------------------------------------------------------------------

    def has_name(self, name: str, kind: NamedKind) -> bool:
        match kind:
            case "called":
                return name in self.sites_by_name
            case "stored":
                return name in self.stores_by_name
            case "method":
                return name in self.methods_by_name
            case "imported":
                return name in self.imported_names
            case _:
                return (kind, name) in self.entries

    @cached_property
    def sites_by_name(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for number, site in enumerate(self.code.sites):
            for name in called_names(site):
                found.setdefault(name, []).append(number)
        return found

    @cached_property
    def stores_by_name(self) -> dict[str, list[Store]]:
        """Assignments to attributes of what is not `self`; under `label_items` elements that are put into what
        comes from another document."""
        found: dict[str, list[Store]] = {}
        for store in self.code.stores:
            if store.name is not None and store.base not in _SELF:
                found.setdefault(store.name, []).append(store)
        for base in sorted(_find_foreign(self.code)):
            found.setdefault(label_items(base.rpartition(".")[2]), []).extend(self.item_stores.get(base, ()))
        return found

    @cached_property
    def entries(self) -> dict[tuple[EntryKind, str], list[Definition]]:
        """Definitions by how they are entered."""
        found: dict[tuple[EntryKind, str], list[Definition]] = {}
        for entry in self.code.entries:
            if entry.start in self.definitions:
                found.setdefault((entry.kind, entry.name), []).append(self.definitions[entry.start])
        return found

    @cached_property
    def heirs(self) -> dict[str, list[Definition]]:
        """Classes by the names of their bases."""
        found: dict[str, list[Definition]] = {}
        for definition in self.code.definitions:
            is_class = definition.kind in ("class", "prototype")
            for base in dict.fromkeys(b for b in definition.bases if isinstance(b, str)) if is_class else ():
                found.setdefault(base, []).append(definition)
        return found

    @cached_property
    def assigned(self) -> dict[str, list[Store]]:
        """All assignments to attributes, also of `self`."""
        found: dict[str, list[Store]] = {}
        for store in self.code.stores:
            if store.name is not None:
                found.setdefault(store.name, []).append(store)
        return found

    @cached_property
    def defined(self) -> dict[str, list[Definition]]:
        """Definitions by name, wherever they stand."""
        found: dict[str, list[Definition]] = {}
        for definition in self.code.definitions:
            found.setdefault(definition.name, []).append(definition)
        return found

    @cached_property
    def raised_names(self) -> set[str]:
        return {str(value) for _, _, value in self.code.raises if isinstance(value, str)}

    @cached_property
    def held_sites(self) -> dict[int, list[int]]:
        """Class -> the calls whose results its attributes are."""
        found: dict[int, list[int]] = {}
        for bind in self.code.binds:
            if isinstance(bind.value, int) and bind.value in self.site_at and self._is_class(bind.scope):
                found.setdefault(bind.scope, []).append(self.site_at[bind.value])
        return found

    @cached_property
    def methods(self) -> list[Definition]:
        return find_members(self.code)

    @cached_property
    def imported_names(self) -> set[str]:
        return find_imported_names(self.code)

    @cached_property
    def mentioned(self) -> set[str]:
        return find_mentioned(self.code)

    @cached_property
    def methods_by_name(self) -> dict[str, list[Definition]]:
        found: dict[str, list[Definition]] = {name: [] for name in find_named_methods(self.code)}
        for definition in self.methods if found else ():
            found[definition.name].append(definition)
        return found

    @cached_property
    def decorated_at(self) -> dict[int, tuple[Definition, int, bool]]:
        """End of a decorator -> what it decorates, how many decorators it and those above are, whether it is a call:
        then its result is what decorates."""
        decorated = [definition for definition in self.code.definitions if definition.decorators]
        starts = [definition.start for definition in decorated]
        called = {value for definition in decorated for value in definition.decorators if isinstance(value, int)}
        found: dict[int, tuple[Definition, int, bool]] = {}
        ranks: dict[int, int] = {}
        for site in self.code.sites:
            # Calls in the arguments of a decorator are none.
            if site.kind == "decorator":
                at = bisect_left(starts, site.end)
                if at < len(starts):
                    ranks[at] = ranks.get(at, 0) + 1
                    found[site.end] = (decorated[at], ranks[at], site.end in called)
        return found

    @cached_property
    def handed(self) -> dict[int, tuple[int, int]]:
        """Start of an anonymous function that a call is given -> the call, and which argument it is."""
        return {
            value.start: (number, at)
            for number, site in enumerate(self.code.sites)
            for at, value in enumerate(site.args)
            if isinstance(value, Lambda)
        }

    @cached_property
    def handed_over(self) -> dict[str | int, list[tuple[int, int | str]]]:
        """Calls that are given a function of this document (see find_handed), and as which argument."""
        functions = {d.name if d.name else d.start for d in self.code.definitions if d.kind == "function"}
        found: dict[str | int, list[tuple[int, int | str]]] = {}
        for number, site in enumerate(self.code.sites):
            for key, at in find_handed(site):
                if key in functions:
                    found.setdefault(key, []).append((number, at))
        return found

    @cached_property
    def indirect(self) -> list[int]:
        """Calls of plain names that are no definition or import: parameters and variables that hold functions; and of
        functions that stand there."""
        found: list[int] = []
        for number, site in enumerate(self.code.sites):
            if isinstance(site.callee, Lambda):
                found.append(number)
            elif isinstance(site.callee, str) and "." not in site.callee:
                for bind in self.find(site.scope, site.callee, site.start):
                    if not is_defined(bind):
                        found.append(number)
                        break
        return found
