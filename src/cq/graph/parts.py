"""Which parts of a document changed: every part that code can depend on, with what it says. Free of offsets, so
that a line added above changes nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from msgspec.structs import replace
from xxhash import xxh3_64_intdigest

from cq.graph.corpus import called_key, stored_key
from cq.graph.unit import ROOT, Unit, called_names, find_handed
from cq.model.code import Bind, Definition, Site, Store, Value

Said = object  # plain tuples of text and numbers
_Local = tuple[int, str]  # a function, a name that it binds
_Part = tuple[int, tuple[_Local, ...]]  # a digest in which locals are numbered, and which they are
_WORD = re.compile(r"[^\W\d]\w*")
_MAX_TYPE = 200  # characters of a text that may be a type


class Parts(NamedTuple):
    digests: dict[int, int]  # key of each part (see Unit.name_key) -> a digest of what it says
    homes: dict[int, int]  # home (see Unit.home) -> a digest of all that is linked in it
    named: dict[int, tuple[str, int]]  # key of what stands for a name anywhere -> the name, 0 called or 1 stored
    bare: dict[int, tuple[str, int]]  # home of a function -> its name, a digest of what it says beside what it returns


def find_parts(unit: Unit, *, closed: bool) -> Parts:
    """`closed`: whoever looks into a function from outside says what for. What a variable is bound to is then part of
    what is done with it, whatever its name, and of nothing else."""
    reader = _Reader(unit, closed)
    said = reader.read()
    homes = {home: _digest(items) for home, items in reader.read_homes().items()}
    return Parts({key: _digest(what) for key, what in said.items()}, homes, reader.named, reader.read_bare(said))


class _Reader:
    def __init__(self, unit: Unit, closed: bool) -> None:
        self.unit = unit
        self.sites: dict[int, _Part] = {}  # by the end of a call
        self.placed: dict[int, Said] = {}
        self.named: dict[int, tuple[str, int]] = {}
        # Functions whose variables no other code can see.
        self._closed = {d.symbol for d in unit.code.definitions if closed and d.kind == "function"}
        self._closed -= {d.scope for d in unit.code.definitions if d.symbol >= 0}
        self._locals: dict[_Local, int] = {}  # those of what is being read, in the order in which they are met
        self._met: list[_Local] = []
        self._bound: dict[_Local, _Part] = {}

    def read(self) -> dict[int, list[Said]]:
        unit, code = self.unit, self.unit.code
        # A call's arguments end before it does, so what it holds is known when its turn comes.
        for site in sorted(code.sites, key=lambda site: site.end):
            self.sites[site.end] = self._part(lambda site=site: self._site(site))
        for site in code.sites:
            self.placed[site.end] = self._placed(site)
        found: dict[int, list[Said]] = {}
        for definition in code.definitions:
            if definition.symbol >= 0 and definition.kind == "function":
                found.setdefault(unit.home_of(definition), []).append(
                    self._close(lambda d=definition: self._definition(d))
                )
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
                    found.setdefault(key, []).extend(map(self._store, stores))
        for bind in code.binds:
            if bind.scope not in self._closed:
                found.setdefault(unit.scope_key(bind.scope, bind.name), []).append(self._bind(bind))
        for name, stores in unit.stores_by_name.items():
            key = stored_key(name)
            self.named[key] = (name, 1)
            found.setdefault(key, []).extend(map(self._store, stores))
        for store in code.stores:
            found.setdefault(unit.home(store.scope), []).append(self._store(store))
        self._add_items(found)
        for number in unit.indirect:
            found.setdefault(unit.name_key("()"), []).append(self.placed[code.sites[number].end])
        defined = {definition.name for definition in code.definitions}
        for site in code.sites:
            said = self.placed[site.end]
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

    def read_bare(self, found: dict[int, list[Said]]) -> dict[int, tuple[str, int]]:
        """Of functions, behind `read`. What they yield stays."""
        bare: dict[int, tuple[str, int]] = {}
        for definition in self.unit.code.definitions:
            if definition.symbol >= 0 and definition.kind == "function":
                key = self.unit.home_of(definition)
                said = self._close(lambda d=definition: self._definition(replace(d, returns=())))
                # The first that is said of a function is its definition.
                bare[key] = self.unit.qualified_names[definition.symbol], _digest((said, found[key][1:]))
        return bare

    def _add_items(self, found: dict[int, list[Said]]) -> None:
        """What is put into containers, by the last name of what holds it and by its key; who else gets a container."""
        unit = self.unit
        for name, stores in unit.items_by_name.items():
            for store in stores:
                said = self._store(store)
                found.setdefault(unit.name_key(f"[]{name}"), []).append(said)
                if type(store.key) is str:
                    found.setdefault(unit.name_key(f"[]{store.key}"), []).append(said)
        # What a call gives may be a container too.
        held = {b.name for b in unit.code.binds if type(b.value) is int or type(b.value) is list}
        for name in sorted(held):
            said = [self._close(lambda alias=alias: self._bind(alias)) for alias in unit.aliases.get(name, ())]
            said += [self.placed[unit.code.sites[number].end] for number, _ in unit.passing.get(name, ())]
            if said:
                found.setdefault(unit.name_key(f"[]{name}"), []).extend(said)

    def read_homes(self) -> dict[int, list[Said]]:
        """All that links are made of, behind `read`."""
        unit, code = self.unit, self.unit.code
        found: dict[int, list[Said]] = {}
        for definition in code.definitions:
            bases = [self._value(value, definition.scope, definition.start) for value in definition.bases]
            said = self._close(lambda d=definition: self._definition(d))
            found.setdefault(unit.home_inside(definition), []).append((definition.kind, bases, said))
        for site in code.sites:
            found.setdefault(unit.home(site.scope), []).append(self.placed[site.end])
        for bind in code.binds:
            if type(bind.value) is list and bind.value[0] == "import":
                found.setdefault(unit.home(bind.scope), []).append((bind.name, bind.value))
        for bind in (*code.binds, *code.stores):
            if bind.type is not None:
                said = self._close(lambda b=bind: self._value(b.type, b.scope, b.start))
                found.setdefault(unit.home(bind.scope), []).append((self._scope(bind.scope), said))
        for scope, start, *values in (*code.raises, *code.runs):
            said = self._close(lambda v=values, at=scope, start=start: [self._value(value, at, start) for value in v])
            found.setdefault(unit.home(scope), []).append((unit.find_holder(scope, start), said))
        return found

    # -- variables of functions: known by what they are bound to ---------------------------------------

    def _part(self, say: Callable[[], Said]) -> _Part:
        saved = self._locals, self._met
        self._locals, self._met = {}, []
        try:
            return _digest(say()), tuple(self._met)
        finally:
            self._locals, self._met = saved

    def _inside(self, part: _Part) -> Said:
        """A part within another, whose numbers are others."""
        return part[0], [self._local(local) for local in part[1]]

    def _close(self, say: Callable[[], Said]) -> Said:
        """With what the variables in it are bound to, and the variables in that."""
        saved = self._locals, self._met
        self._locals, self._met = {}, []
        try:
            said = [say()]
            for local in self._met:  # grows
                part = self._bound.get(local)
                if part is None:
                    binds = self.unit.scopes[local[0]][local[1]]
                    part = self._bound[local] = self._part(lambda binds=binds: [self._bind(bind) for bind in binds])
                said.append(self._inside(part))
            return said
        finally:
            self._locals, self._met = saved

    def _local(self, local: _Local) -> int:
        number = self._locals.get(local)
        if number is None:
            number = self._locals[local] = len(self._met)
            self._met.append(local)
        return number

    # -- what is said ----------------------------------------------------------------------------

    def _placed(self, site: Site) -> Said:
        decorated = self.unit.decorated_at.get(site.end)
        name = None if decorated is None else self.unit.qualified_names[decorated[0].symbol]
        said = _digest(self._close(lambda: self._inside(self.sites[site.end])))
        return said, self._scope(site.scope), name

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
            "" if bind.scope in self._closed else bind.name,
            self._value(bind.value, bind.scope, bind.start - 1),
            self._value(bind.type, bind.scope, bind.start),
            bind.inner,
            bind.end < 0,
        )

    def _store(self, store: Store) -> Said:
        scope, start = store.scope, store.start
        values = (store.base, store.value, store.key, store.type)
        said = self._close(lambda: [self._value(value, scope, start) for value in values])
        return store.name, said, self._scope(scope)

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

    def _scope(self, scope: int) -> tuple[str, int]:
        """With the home: a class may become a function."""
        return self.unit.qualified_names.get(scope, ""), self.unit.home(scope)

    def _value(self, value: Value, scope: int, position: int) -> Said:
        """Names with the bindings they reach, calls and lambdas by what they say."""
        if type(value) is str:
            if value[0] in "'#=":
                if value[0] == "'" and scope in self._closed and len(value) < _MAX_TYPE:
                    names = self.unit.scopes.get(scope, {})
                    return value, [self._local((scope, word)) for word in _WORD.findall(value) if word in names]
                return value
            head = value.partition(".")[0]
            binds = self.unit.find(scope, head, position)
            if not binds:
                return value
            at = binds[0].scope
            known = self.unit.scopes[at][binds[0].name]
            reached = [0] if len(known) == 1 else [n for n, b in enumerate(known) if any(b is bind for bind in binds)]
            if at in self._closed:
                return self._local((at, head)), value[len(head) :], reached
            return value, self._scope(at), at == ROOT, reached
        if type(value) is int:
            part = self.sites.get(value)
            return "call", None if part is None else self._inside(part)
        if type(value) is not list:
            return value
        operation = value[0]
        if operation in ("lambda", "def", "param"):
            definition = self.unit.definitions.get(value[1])
            if definition is None:  # `const A = memo(() => …)`: it is known as A alone
                return operation, "", value[2:]
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
