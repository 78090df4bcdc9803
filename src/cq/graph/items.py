"""What code puts into containers: by what holds them, and which names and calls a container has."""

from __future__ import annotations

from functools import cached_property

from cq.graph.scopes import Scopes
from cq.model.code import (
    NULL,
    Attribute,
    Augmented,
    Bind,
    Choice,
    Code,
    Dictionary,
    Each,
    Element,
    Iterated,
    Listing,
    Literals,
    Name,
    Site,
    Spread,
    Store,
    Text,
    Value,
    find_inner,
    find_updates,
)

# Methods that put arguments into their receiver: which one, and which one is the key.
ADDING: dict[str, tuple[int, int]] = {
    "append": (0, -1), "add": (0, -1), "appendleft": (0, -1), "push": (0, -1), "unshift": (0, -1), "insert": (1, -1),
    "extend": (0, -1), "set": (1, 0), "setdefault": (1, 0), "update": (0, -1),
}  # fmt: skip
MAX_PASSING = 10  # calls that a container is handed to
Written = Listing | Dictionary | Each  # a container as written


def get_kind(written: Written) -> str:
    """The kind of a container: list dict set tuple …"""
    return "dict" if isinstance(written, Dictionary) else written.kind


class Items(Scopes):
    """`item_stores` has the elements that are stored, by what holds them as text."""

    def __init__(self, code: Code) -> None:
        super().__init__(code)
        self.site_at = {site.end: number for number, site in enumerate(code.sites)}
        self.item_stores: dict[str, list[Store]] = {}
        for store in code.stores:
            if store.name is None and (base := self.find_base(store.base)):
                self.item_stores.setdefault(base, []).append(store)
        for site in code.sites:
            if site.name in ADDING and (site.args or site.name == "update") and not find_updates(site):
                self._add_items(site)
        for scope, start, operation, value in code.runs:
            if operation == "+=" and isinstance(value, Augmented) and (base := self.find_base(value.target)):
                stored = Store(scope, start, Name(base), None, Iterated(value.value))
                self.item_stores.setdefault(base, []).append(stored)

    def _add_items(self, site: Site) -> None:
        """`steps.append(f)` stores as `steps[…] = f` does."""
        callee = site.callee
        if isinstance(callee, str):
            base = callee.rpartition(".")[0]
        else:
            base = self.find_base(callee.base) if isinstance(callee, Attribute) else ""
        if not base:
            return
        at, key_at = ADDING[site.name]
        found: list[tuple[Value, Value]] = [(None, Spread(value)) for _, value in site.keywords] if at else []
        if site.name in ("update", "extend"):
            given = site.args[0] if site.args else NULL
            if isinstance(given, Dictionary):
                found = [*zip(given.keys, given.values, strict=True)]
            elif site.name == "extend" or not isinstance(given, (str, Literals)):
                found = [(None, Iterated(given))]
            elif isinstance(given, str):
                found = [(None, Element(given, (None,)))]
            found += [(Text(name), value) for name, value in site.keywords if name != "**"]
        elif len(site.args) > at and (key_at >= 0 or at or len(site.args) == 1):
            found = [(site.args[key_at] if key_at >= 0 else None, site.args[at])]
        stores = self.item_stores.setdefault(base, [])
        stores += [Store(site.scope, site.start, Name(base), None, value, key) for key, value in found]

    def find_base(self, value: Value) -> str:
        """What holds elements, as text: `jobs`, `self.jobs`, `jobs[]` for an element of it that holds others. Also of
        `jobs.setdefault(key, [])`."""
        if isinstance(value, str):
            return value
        if isinstance(value, Element):
            inner = self.find_base(value.base)
            return f"{inner}[]" if inner else ""
        if isinstance(value, Choice):
            return next((inner for choice in value.options if (inner := self.find_base(choice))), "")
        if isinstance(value, int) and value in self.site_at:
            site = self.code.sites[self.site_at[value]]
            if site.name in ("setdefault", "get") and isinstance(site.callee, str) and "." in site.callee:
                return f"{site.callee.rpartition('.')[0]}[]"
        return ""

    @cached_property
    def items_by_name(self) -> dict[str, list[Store]]:
        """Stores of elements by the last name of what holds them."""
        found: dict[str, list[Store]] = {}
        for base, stores in self.item_stores.items():
            found.setdefault(base.rpartition(".")[2], []).extend(stores)
        return found

    @cached_property
    def items_under(self) -> dict[Text, list[Store]]:
        """Stores of elements by their key, where that is a constant text."""
        found: dict[Text, list[Store]] = {}
        for stores in self.item_stores.values():
            for store in stores:
                if isinstance(store.key, Text):
                    found.setdefault(store.key, []).append(store)
        return found

    @cached_property
    def held_names(self) -> set[str]:
        """Names of what may be a container: what a call gives may be one too."""
        binds = self.code.binds
        return {bind.name for bind in binds if bind.value is not None and not isinstance(bind.value, (str, Literals))}

    @cached_property
    def container_names(self) -> dict[int, tuple[str, Bind | None]]:
        """Of a container as written, by its identity: the name it is bound to, None for an attribute."""
        found: dict[int, tuple[str, Bind | None]] = {}
        for bind in self.code.binds:
            if isinstance(bind.value, Written):
                found[id(bind.value)] = (bind.name, bind)
        for definition in self.code.definitions:
            for parameter in definition.parameters if definition.symbol >= 0 else ():
                if isinstance(parameter.default, Written):
                    bind = self.scopes[definition.symbol][parameter.name][0]
                    found[id(parameter.default)] = (parameter.name, bind)
        for store in self.code.stores:
            if isinstance(store.value, Written):
                name = store.name or f"{self.find_base(store.base).rpartition('.')[2]}[]"
                found[id(store.value)] = (name, None)
        for bind in self.code.binds:
            if isinstance(bind.value, Written):
                for inner in find_inner(bind.value):
                    if isinstance(inner, Written):
                        found.setdefault(id(inner), (f"{bind.name}[]", None))
        for base, stores in self.item_stores.items():
            for store in stores:
                if isinstance(store.value, Written):
                    found.setdefault(id(store.value), (f"{base.rpartition('.')[2]}[]", None))
        return found

    @cached_property
    def _result_names(self) -> dict[int, tuple[str, Bind | None]]:
        """End of a call -> the name its result is bound to, None for an attribute."""
        found: dict[int, tuple[str, Bind | None]] = {
            bind.value: (bind.name, bind) for bind in self.code.binds if isinstance(bind.value, int)
        }
        for store in self.code.stores:
            if isinstance(store.value, int):
                found[store.value] = (store.name or f"{self.find_base(store.base).rpartition('.')[2]}[]", None)
        return found

    def name_result(self, end: int, value: Value) -> None:
        """A call that ends there gives a container: `jobs = deque()`."""
        known = self._result_names.get(end)
        if known is not None:
            self.container_names[id(value)] = known

    @cached_property
    def aliases(self) -> dict[str, list[Bind]]:
        """Name -> bindings of others to it."""
        found: dict[str, list[Bind]] = {}
        for bind in self.code.binds:
            if isinstance(bind.value, str) and "." not in bind.value:
                found.setdefault(bind.value, []).append(bind)
        return found

    @cached_property
    def passing(self) -> dict[str | int, list[tuple[int, int]]]:
        """Name, or identity of a container as written -> calls that it is handed to, and at which place."""
        found: dict[str | int, list[tuple[int, int]]] = {}
        for number, site in enumerate(self.code.sites):
            for at, value in enumerate(site.args):
                if isinstance(value, str) and "." not in value:
                    found.setdefault(value, []).append((number, at))
                elif isinstance(value, Written):
                    found[id(value)] = [(number, at)]
        return found

    def find_passing(self, value: Value) -> list[tuple[int, int]]:
        """The calls that get a container by the name it is bound to, with the argument it is; none where many do."""
        name, bind = self.container_names.get(id(value), ("", None))
        if bind is None:
            return self.passing.get(id(value), [])
        places = self.passing.get(name, ())
        if len(places) > MAX_PASSING:
            return []
        sites = self.code.sites
        return [
            (number, at)
            for number, at in places
            if any(known is bind for known in self.find(sites[number].scope, name, sites[number].start))
        ]

    def find_names(self, value: Value) -> list[str]:
        """By which a container as written is filled and handed on."""
        return list(dict.fromkeys(name for name, _ in self._find_bound(value)))

    def find_items(self, value: Value) -> list[Store]:
        """What is put into a container as written, through the names it is bound to."""
        return [store for name, bind in self._find_bound(value) for store in self._find_items(name, bind)]

    def _find_bound(self, value: Value) -> list[tuple[str, Bind | None]]:
        """The names that a container as written is bound to."""
        known = self.container_names.get(id(value))
        if known is None:
            return []
        name, bind = known
        others = [
            (alias.name, alias)
            for alias in (self.aliases.get(name, ()) if bind is not None else ())
            if any(found is bind for found in self.find(alias.scope, name, alias.start - 1))
        ]
        return [known, *others]

    def _find_items(self, name: str, bind: Bind | None) -> list[Store]:
        found: list[Store] = []
        for store in self.items_by_name.get(name, ()):
            base = self.find_base(store.base)
            if bind is None or self._is_class(bind.scope):
                is_same = "." in base or base.endswith("[]")
            else:
                is_same = base == name and any(known is bind for known in self.find(store.scope, name, store.start))
            if is_same:
                found.append(store)
        return found

    def _is_class(self, scope: int) -> bool:
        return scope in self.by_symbol and not self.is_local(scope)
