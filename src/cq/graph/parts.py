"""Which parts of a document changed: every part that code can depend on, with what it says. Free of offsets, so
that a line added above changes nothing."""

from __future__ import annotations

from typing import NamedTuple

from xxhash import xxh3_64_intdigest

from cq.graph.corpus import called_key, stored_key
from cq.graph.unit import ROOT, Unit, called_names, find_handed
from cq.model.code import Bind, Definition, Site, Store, Value

Said = object  # plain tuples of text and numbers


class Parts(NamedTuple):
    digests: dict[int, int]  # key of each part (see Unit.name_key) -> a digest of what it says
    homes: dict[int, int]  # home (see Unit.home) -> a digest of all that is linked in it
    named: dict[int, tuple[str, int]]  # key of what stands for a name anywhere -> the name, 0 called or 1 stored


def find_parts(unit: Unit) -> Parts:
    reader = _Reader(unit)
    said = reader.read()
    homes = {home: _digest(items) for home, items in reader.read_homes().items()}
    return Parts({key: _digest(what) for key, what in said.items()}, homes, reader.named)


class _Reader:
    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.sites: dict[int, int] = {}  # end of a call -> digest
        self.named: dict[int, tuple[str, int]] = {}

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
                found.setdefault(unit.member_key(definition.symbol, "*"), []).append(
                    sorted(unit.scopes.get(definition.symbol, ()))
                )
                for base in definition.bases:
                    if type(base) is str:
                        found.setdefault(unit.name_key(f"<{base}"), []).append(definition.name)
                for name, stores in unit.own_stores(definition.symbol).items():
                    key = unit.member_key(definition.symbol, name)
                    found.setdefault(key, []).extend(self._store(store) for store in stores)
        for bind in code.binds:
            found.setdefault(unit.scope_key(bind.scope, bind.name), []).append(self._bind(bind))
        for name, stores in unit.stores_by_name.items():
            key = stored_key(name)
            self.named[key] = (name, 1)
            found.setdefault(key, []).extend(self._store(store) for store in stores)
        for store in code.stores:
            found.setdefault(unit.home(store.scope), []).append(self._store(store))
        for name, stores in unit.items_by_name.items():
            found.setdefault(unit.name_key(f"[]{name}"), []).extend(self._store(store) for store in stores)
        for number in unit.indirect:
            found.setdefault(unit.name_key("()"), []).append(self.sites[code.sites[number].end])
        defined = {definition.name for definition in code.definitions}
        for site in code.sites:
            said = self._placed(site)
            for name in called_names(site):
                key = called_key(name)
                self.named[key] = (name, 0)
                found.setdefault(key, []).append(said)
                if name in defined:
                    found.setdefault(unit.name_key(f"(){name}"), []).append(said)
            for key, _ in find_handed(site):
                if key in defined:
                    found.setdefault(unit.name_key(f"(){key}"), []).append(said)
            # Calls are reached by their names, and by the values that hold what they give; but what is handed to one
            # depends on it.
            if any(isinstance(key, int) for key, _ in find_handed(site)):
                found.setdefault(unit.home(site.scope), []).append(said)
        found.setdefault(unit.name_key("__all__"), []).append(code.public)
        # What stands in no function is reached through names; nothing depends on the rest.
        found.pop(unit.home(ROOT), None)
        return found

    def read_homes(self) -> dict[int, list[Said]]:
        """All that links are made of, behind `read`."""
        unit, code = self.unit, self.unit.code
        found: dict[int, list[Said]] = {}
        for definition in code.definitions:
            bases = [self._value(value, definition.scope, definition.start) for value in definition.bases]
            found.setdefault(unit.home_inside(definition), []).append(
                (definition.kind, bases, self._definition(definition))
            )
        for site in code.sites:
            found.setdefault(unit.home(site.scope), []).append(self._placed(site))
        for bind in code.binds:
            if type(bind.value) is list and bind.value[0] == "import":
                found.setdefault(unit.home(bind.scope), []).append((bind.name, bind.value))
        for bind in (*code.binds, *code.stores):
            if bind.type is not None:
                said = (self._scope(bind.scope), self._value(bind.type, bind.scope, bind.start))
                found.setdefault(unit.home(bind.scope), []).append(said)
        for scope, start, *values in (*code.raises, *code.runs):
            said = (unit.find_holder(scope, start), [self._value(value, scope, start) for value in values])
            found.setdefault(unit.home(scope), []).append(said)
        return found

    def _placed(self, site: Site) -> Said:
        decorated = self.unit.decorated_at.get(site.end)
        name = None if decorated is None else self.unit.qualified_names[decorated[0].symbol]
        return self.sites[site.end], self._scope(site.scope), name

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
