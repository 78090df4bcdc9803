"""One document's code, made ready for lookups: scopes, the bindings that reach a place, members of classes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from cq.graph.things import Class, Function
from cq.model.code import Bind, Code, Definition, Store

ROOT = -1  # the scope of code at root level
ANYWHERE = -1  # a position from which every binding can be seen
_FOREVER = 1 << 60
_ADDING = (".append", ".add", ".appendleft")


class Unit:
    """`scopes` maps a scope (a symbol, or ROOT) to what it binds."""

    def __init__(self, path: str, language: str, code: Code, document: int = 0) -> None:
        self.path, self.language, self.code, self.document = path, language, code, document
        self.definitions: dict[int, Definition] = {}  # by start
        self.by_symbol: dict[int, Definition] = {}
        self.scopes: dict[int, dict[str, list[Bind]]] = {ROOT: {}}
        self.site_at = {site.end: number for number, site in enumerate(code.sites)}
        self.stars: list[Bind] = []
        self.item_stores: dict[str, list[Store]] = {}
        self.things: dict[int, Class | Function] = {}
        self._own_stores: dict[int, dict[str, list[Store]]] | None = None
        for definition in code.definitions:
            self.definitions[definition.start] = definition
            if definition.symbol >= 0:
                self.by_symbol[definition.symbol] = definition
                if definition.parameters:
                    start = definition.start
                    self.scopes[definition.symbol] = {
                        parameter.name: [
                            Bind(definition.symbol, parameter.name, ["param", start, number], start, _FOREVER)
                        ]
                        for number, parameter in enumerate(definition.parameters)
                    }
        scopes = self.scopes
        for bind in code.binds:
            if bind.name == "*":
                self.stars.append(bind)
                continue
            names = scopes.get(bind.scope)
            if names is None:
                names = scopes[bind.scope] = {}
            if bind.name in names:
                names[bind.name].append(bind)
            else:
                names[bind.name] = [bind]
        for store in code.stores:
            if store.name is None and isinstance(store.base, str):
                self.item_stores.setdefault(store.base, []).append(store)
        for site in code.sites:
            # `steps.append(f)` stores as `steps[…] = f` does.
            if type(site.callee) is str and site.callee.endswith(_ADDING) and len(site.args) == 1:
                base = site.callee.rpartition(".")[0]
                store = Store(site.scope, site.start, base, None, site.args[0])
                self.item_stores.setdefault(base, []).append(store)

    def find(self, scope: int, name: str, position: int) -> Sequence[Bind]:
        """The bindings a name can mean at a place, from the innermost scope that has it; class bodies hide from
        the functions inside them."""
        at, is_own = scope, True
        while True:
            names = self.scopes.get(at)
            if names is not None and name in names:
                definition = self.by_symbol.get(at)
                if is_own or definition is None or definition.kind == "function":
                    found = self.reach(names[name], position, at == scope)
                    if found:
                        return found
            if at == ROOT:
                return ()
            definition = self.by_symbol.get(at)
            at = ROOT if definition is None else definition.scope
            # A lambda or comprehension at class level is no scope of its own here, so this is good enough for it.
            is_own = False

    def reach(self, binds: list[Bind], position: int, is_own: bool) -> Sequence[Bind]:
        """Straight-line code hides what was bound before; branches and loops join."""
        if len(binds) == 1 and not binds[0].inner:
            return binds
        inner = [bind for bind in binds if bind.inner and bind.start <= position < bind.end]
        if inner:
            return inner[-1:]
        plain = [bind for bind in binds if not bind.inner]
        if len(plain) < 2 or (position == ANYWHERE and is_own):
            return plain
        if not is_own:
            if plain[0].scope != ROOT:
                return plain
            position = _FOREVER
        found: list[Bind] = []
        for bind in reversed(plain):
            if bind.start <= position:
                found.append(bind)
                if bind.end < 0 or bind.end >= position:
                    break
        loops = [loop for loop in self.code.loops if loop[0] <= position < loop[1]]
        if loops:
            end = max(loop[1] for loop in loops)
            found += [bind for bind in plain if position < bind.start <= end]
        return found or plain

    @cached_property
    def indirect(self) -> list[int]:
        """Calls of plain names that are no definition or import: parameters and variables that hold functions."""
        found: list[int] = []
        for number, site in enumerate(self.code.sites):
            if type(site.callee) is str and "." not in site.callee:
                for bind in self.find(site.scope, site.callee, site.start):
                    if type(bind.value) is not list or bind.value[0] not in ("def", "import"):
                        found.append(number)
                        break
        return found

    def find_class(self, scope: int) -> Definition | None:
        """The class around a function, through functions nested in its methods."""
        definition = self.by_symbol.get(scope)
        while definition is not None:
            if definition.kind != "function":
                return definition
            definition = self.by_symbol.get(definition.scope)
        return None

    def own_stores(self, symbol: int) -> dict[str, list[Store]]:
        """`self.x = …` in the methods of a class, by attribute."""
        if self._own_stores is None:
            self._own_stores = {}
            for store in self.code.stores:
                if store.name is not None and isinstance(store.base, str):
                    method = self.by_symbol.get(store.scope)
                    while method is not None and not (method.parameters and method.parameters[0].name == store.base):
                        method = self.by_symbol.get(method.scope)
                    owner = None if method is None else self.by_symbol.get(method.scope)
                    if owner is not None and owner.kind != "function":
                        self._own_stores.setdefault(owner.symbol, {}).setdefault(store.name, []).append(store)
        return self._own_stores.get(symbol, {})
