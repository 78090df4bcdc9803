"""What parts of a document say, free of offsets: a line added above changes nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from xxhash import xxh3_64_intdigest

from cq.graph.engine.tables import CallAt, Contents, Item
from cq.graph.scopes import ROOT, Place, Star, as_key
from cq.graph.unit import Unit
from cq.model.code import (
    Bind,
    Defined,
    Definition,
    Element,
    Form,
    Lambda,
    ParameterOf,
    Seen,
    SeenIn,
    Site,
    Store,
    Text,
    Value,
    find_inner,
    find_plain,
)

Said = object  # plain tuples of text and numbers
_Local = tuple[int, str]  # a function, a name that it binds
_Part = tuple[int, tuple[_Local, ...]]  # a digest in which locals are numbered, and which they are
_WORD = re.compile(r"[^\W\d]\w*")
_MAX_TYPE = 200  # characters of a text that may be a type


def digest(said: Said) -> int:
    return xxh3_64_intdigest(repr(said).encode("utf-8", "surrogatepass"))


class Digests:
    """`closed`: whoever looks into a function from outside says what for. What a variable is bound to is then part of
    what is done with it, whatever its name, and of nothing else. `lasting`: homes that are there before and after a
    change."""

    def __init__(self, unit: Unit, closed: bool, lasting: Collection[int]) -> None:
        self.unit, self.lasting = unit, lasting
        # Functions whose variables no other code can see.
        self.closed = {d.symbol for d in unit.code.definitions if closed and d.kind == "function"}
        self.closed -= {d.scope for d in unit.code.definitions if d.symbol >= 0}
        self._sites: dict[int, _Part] = {}  # by the end of a call
        self._placed: dict[int, Said] = {}
        self._stores: dict[int, Said] = {}
        self._locals: dict[_Local, int] = {}  # those of what is being read, in the order in which they are met
        self._met: list[_Local] = []
        self._bound: dict[_Local, _Part] = {}

    def read_sites(self, left_out: Collection[int]) -> None:
        """First of all, but for those in functions that are left out."""
        # A call's arguments end before it does, so what it holds is known when its turn comes.
        for site in sorted(self.unit.code.sites, key=lambda site: site.end):
            if site.scope not in left_out and site.end not in self._sites:
                self._sites[site.end] = self._part(lambda site=site: self._site(site))

    def say(self, item: Item) -> Said:
        """With what the variables of functions in it are bound to."""
        match item:
            case str():
                return item
            case CallAt():
                return self._place(self.unit.code.sites[item.number])
            case Store():
                known = self._stores.get(id(item))
                if known is None:
                    known = self._stores[id(item)] = self._store(item)
                return known
            case Bind():
                return self.close(lambda: self._bind(item))
            case Star():
                return self._scope(item.scope), find_plain(item.source)
            case Contents(definition=definition):
                is_function = definition.kind == "function"
                return self.close(lambda: self.define(definition) if is_function else self._class(definition))
            case Definition():
                return self.close(lambda: (self._scope(item.symbol), self._head(item)))

    def say_value(self, value: Value, scope: int, position: int) -> Said:
        """An expression as it is seen from a place."""
        return self.close(lambda: self._value(value, scope, position))

    def close(self, say: Callable[[], Said]) -> Said:
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

    def _part(self, say: Callable[[], Said]) -> _Part:
        saved = self._locals, self._met
        self._locals, self._met = {}, []
        try:
            return digest(say()), tuple(self._met)
        finally:
            self._locals, self._met = saved

    def _inside(self, part: _Part) -> Said:
        """A part within another, whose numbers are others."""
        return part[0], [self._local(local) for local in part[1]]

    def _local(self, local: _Local) -> int:
        number = self._locals.get(local)
        if number is None:
            number = self._locals[local] = len(self._met)
            self._met.append(local)
        return number

    # -- calls, bindings, definitions ----------------------------------------------------------------

    def _place(self, site: Site) -> Said:
        """A call, with whose code it stands in."""
        known = self._placed.get(site.end)
        if known is None:
            decorated = self.unit.decorated_at.get(site.end)
            name = None if decorated is None else self.unit.qualified_names[decorated[0].symbol]
            said = digest(self.close(lambda: self._inside(self._sites[site.end])))
            known = self._placed[site.end] = said, self._lasting(site.scope), name
        return known

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
            "" if bind.scope in self.closed else bind.name,
            self._value(bind.value, bind.scope, bind.start - 1),
            self._value(bind.type, bind.scope, bind.start),
            bind.inner,
            bind.end < 0,
        )

    def _store(self, store: Store) -> Said:
        scope, start = store.scope, store.start
        values = (store.base, store.value, store.key, store.type)
        said = self.close(lambda: [self._value(value, scope, start) for value in values])
        return store.name, said, self._scope(scope)

    def define(self, definition: Definition) -> Said:
        scope, start = definition.scope, definition.start
        inner = definition.symbol if definition.symbol >= 0 else scope
        at = -1 if definition.symbol >= 0 else start
        return (
            definition.name,
            self._scope(scope),
            [
                (
                    p.name,
                    p.kind,
                    p.optional,
                    self._value(p.type, scope, -1),
                    self._value(p.default, scope, max(at - 1, -1)),
                )
                for p in definition.parameters
            ],
            self._value(definition.type, scope, -1),
            [self._value(value, inner, at) for value in (*definition.returns, *definition.yields)],
            len(definition.returns),
            [self._value(value, scope, start) for value in definition.decorators],
            definition.modifiers,
            [(name, self._value(value, scope, -1)) for name, value in definition.keywords],
        )

    def _class(self, definition: Definition) -> Said:
        scope, start = definition.scope, definition.start
        return (
            self._head(definition),
            [self._value(value, scope, start) for value in definition.bases],
            [(p.name, self._value(p.type, scope, -1)) for p in definition.parameters],
            self._value(definition.type, scope, -1),
            [(name, self._value(value, scope, start)) for name, value in definition.keywords],
        )

    def _head(self, definition: Definition) -> Said:
        """What it is and how it is reached."""
        return (
            definition.kind,
            definition.modifiers,
            [parameter.name for parameter in definition.parameters[:1]],
            [self._value(value, definition.scope, definition.start) for value in definition.decorators],
        )

    def _scope(self, scope: int) -> tuple[str, int]:
        """With the home: a class may become a function."""
        return self.unit.qualified_names.get(scope, ""), self.unit.home(scope)

    def _lasting(self, scope: int) -> tuple[str, int]:
        """Of a function that comes, goes or gets another name, nothing: who looks at a call in it depends on it by its
        name, and its calls may mean what they meant."""
        found = self._scope(scope)
        return found if found[1] in self.lasting or not self.unit.is_local(scope) else ("", 0)

    # -- values --------------------------------------------------------------------------------------

    def _value(self, value: Value, scope: int, position: int) -> Said:
        """Names with the bindings they reach, calls and lambdas by what they say."""
        match value:
            case None:
                return None
            case str():
                return self._name(value, scope, position)
            case int():
                part = self._sites.get(value)
                return "call", None if part is None else self._inside(part)
            case Text() if scope in self.closed and len(value.value) < _MAX_TYPE:
                names = self.unit.scopes.get(scope, {})
                words = [self._local((scope, word)) for word in _WORD.findall(value.value) if word in names]
                return "Text", value.value, words
            case Lambda() | Defined():
                return self._defined(value, value.start, ())
            case ParameterOf():
                return self._defined(value, value.start, (value.number,))
            case SeenIn():
                return self._value(value.value, value.scope, value.offset)
            case Seen():
                return "Seen", self._value(value.value, scope, value.offset)
            case _:
                seen: list[int] = []
                if isinstance(value, Element) and self.unit.placed and isinstance(value.base, str) and value.keys:
                    key = as_key(value.keys[0])
                    seen = [] if key is None else self._seen_stores(scope, (value.base, key), position)
                inner = [self._value(inner, scope, position) for inner in find_inner(value)]
                return (*find_plain(value), *inner, *seen)

    def _name(self, value: str, scope: int, position: int) -> Said:
        head = value.partition(".")[0]
        binds = self.unit.find(scope, head, position)
        if not binds:
            return value
        at = binds[0].scope
        known = self.unit.scopes[at][binds[0].name]
        reached = [0] if len(known) == 1 else [n for n, b in enumerate(known) if any(b is bind for bind in binds)]
        if self.unit.placed and len(value) > len(head):
            reached += self._seen_stores(scope, (head, value.split(".", 2)[1]), position)
        if at in self.closed:
            return self._local((at, head)), value[len(head) :], reached
        return value, self._scope(at), at == ROOT, reached

    def _defined(self, value: Form, start: int, rest: tuple[int, ...]) -> Said:
        form, definition = type(value).__name__, self.unit.definitions.get(start)
        if definition is None:  # `const A = memo(() => …)`: it is known as A alone
            return form, "", rest
        if definition.symbol >= 0:
            is_own = isinstance(value, ParameterOf) and definition.symbol in self.closed
            holder = self._lasting(definition.symbol) if is_own else self._scope(definition.symbol)
            return form, holder, rest, () if isinstance(value, ParameterOf) else self._head(definition)
        said = self.define(definition) if isinstance(value, Lambda) else ""
        return form, said, self._scope(definition.anonymous[0] if definition.anonymous else ROOT), rest

    def _seen_stores(self, scope: int, place: Place, position: int) -> list[int]:
        """Which of the stores to an attribute or element can be seen."""
        found = self.unit.find_placed(scope, place, position)
        if found is None:
            return []
        known = self.unit.placed[place]
        return [-1 - found[1], *(n for n, store in enumerate(known) if any(store is seen for seen in found[0]))]
