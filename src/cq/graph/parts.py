"""Which parts of a document changed: every part that others can depend on, with what it says. Free of offsets, so
that a line added above changes nothing."""

from __future__ import annotations

from xxhash import xxh3_64_intdigest

from cq.graph.corpus import called_key, stored_key
from cq.graph.unit import ROOT, Unit, called_names
from cq.model.code import Bind, Definition, Site, Store, Value

Said = object  # plain tuples of text and numbers


def find_parts(unit: Unit) -> dict[int, int]:
    """Key of each part (see Unit.name_key) -> a digest of what it says."""
    return {key: _digest(said) for key, said in _Reader(unit).read().items()}


class _Reader:
    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.sites: dict[int, int] = {}  # end of a call -> digest

    def read(self) -> dict[int, list[Said]]:
        unit, code = self.unit, self.unit.code
        # A call's arguments end before it does, so what it holds is known when its turn comes.
        for site in sorted(code.sites, key=lambda site: site.end):
            self.sites[site.end] = _digest(self._site(site))
        found: dict[int, list[Said]] = {}
        for definition in code.definitions:
            if definition.symbol >= 0 and definition.kind == "function":
                found.setdefault(unit.home_of(definition), []).append(self._definition(definition))
            elif definition.symbol >= 0:
                said = (
                    definition.kind,
                    [self._value(value, definition.scope, definition.start) for value in definition.bases],
                    [(p.name, self._value(p.type, definition.scope, -1)) for p in definition.parameters],
                    self._value(definition.type, definition.scope, -1),
                    [(n, self._value(value, definition.scope, definition.start)) for n, value in definition.keywords],
                )
                found.setdefault(unit.member_key(definition.symbol, ""), []).append(said)
                for name, stores in unit.own_stores(definition.symbol).items():
                    key = unit.member_key(definition.symbol, name)
                    found.setdefault(key, []).extend(self._store(store) for store in stores)
        for bind in code.binds:
            found.setdefault(unit.scope_key(bind.scope, bind.name), []).append(self._bind(bind))
        for store in code.stores:
            if store.name is not None and store.base not in ("self", "this"):
                found.setdefault(stored_key(store.name), []).append(self._store(store))
            found.setdefault(unit.home(store.scope), []).append(self._store(store))
        for name, stores in unit.items_by_name.items():
            found.setdefault(unit.name_key(f"[]{name}"), []).extend(self._store(store) for store in stores)
        for number in unit.indirect:
            found.setdefault(unit.name_key("()"), []).append(self.sites[code.sites[number].end])
        for site in code.sites:
            said = (self.sites[site.end], self._scope(site.scope))
            decorated = unit.decorated_at.get(site.end)
            if decorated is not None:
                said = (*said, unit.qualified_names[decorated[0].symbol])
            for name in called_names(site):
                found.setdefault(called_key(name), []).append(said)
            found.setdefault(unit.home(site.scope), []).append(said)
        found.setdefault(unit.name_key("__all__"), []).append(code.public)
        # What stands in no function is reached through names; nothing depends on the rest.
        found.pop(unit.home(ROOT), None)
        return found

    def _site(self, site: Site) -> Said:
        scope, start = site.scope, site.start
        return (
            site.kind,
            site.name,
            self._value(site.callee, scope, start),
            [self._value(value, scope, start) for value in site.args],
            [(name, self._value(value, scope, start)) for name, value in site.keywords],
        )

    def _bind(self, bind: Bind) -> Said:
        return (
            bind.name,
            self._value(bind.value, bind.scope, bind.start - 1),
            self._value(bind.type, bind.scope, bind.start),
            bind.inner,
            bind.end < 0,
        )

    def _store(self, store: Store) -> Said:
        scope, start = store.scope, store.start
        values = [self._value(value, scope, start) for value in (store.base, store.value, store.key, store.type)]
        return store.name, values, self._scope(scope)

    def _definition(self, definition: Definition) -> Said:
        scope, start = definition.scope, definition.start
        inner = definition.symbol if definition.symbol >= 0 else scope
        at = -1 if definition.symbol >= 0 else start
        return (
            definition.name,
            self._scope(scope),
            [
                (p.name, p.kind, p.optional, self._value(p.type, scope, -1), self._value(p.default, scope, -1))
                for p in definition.parameters
            ],
            self._value(definition.type, scope, -1),
            [self._value(value, inner, at) for value in (*definition.returns, *definition.yields)],
            len(definition.returns),
            [self._value(value, scope, start) for value in definition.decorators],
            definition.modifiers,
            [(name, self._value(value, scope, -1)) for name, value in definition.keywords],
        )

    def _scope(self, scope: int) -> str:
        return self.unit.qualified_names.get(scope, "")

    def _value(self, value: Value, scope: int, position: int) -> Said:
        """Names with the bindings they reach, calls and lambdas by what they say."""
        if type(value) is str:
            if value[0] in "'#=":
                return value
            binds = self.unit.find(scope, value.partition(".")[0], position)
            if not binds:
                return value
            at = binds[0].scope
            known = self.unit.scopes[at][binds[0].name]
            reached = [0] if len(known) == 1 else [n for n, b in enumerate(known) if any(b is bind for bind in binds)]
            return value, self._scope(at), at == ROOT, reached
        if type(value) is int:
            return "call", self.sites.get(value)
        if type(value) is not list:
            return value
        operation = value[0]
        if operation in ("lambda", "def", "param"):
            definition = self.unit.definitions[value[1]]
            if definition.symbol >= 0:
                return operation, self._scope(definition.symbol), value[2:]
            said = self._definition(definition) if operation == "lambda" else ""
            return operation, said, self._scope(definition.anonymous[0] if definition.anonymous else ROOT), value[2:]
        if operation == "import":
            return tuple(value)
        if operation == "at":
            return self._value(value[3], value[1], value[2])
        if operation == "seen":
            return operation, self._value(value[2], scope, value[1])
        return (operation, *(self._value(inner, scope, position) for inner in value[1:]))


def _digest(said: Said) -> int:
    return xxh3_64_intdigest(repr(said).encode("utf-8", "surrogatepass"))
