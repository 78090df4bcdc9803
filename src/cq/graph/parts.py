"""Which parts of a document changed: every part that code can depend on, with what it says. Free of offsets, so
that a line added above changes nothing."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from msgspec.structs import replace
from xxhash import xxh3_64_intdigest

from cq.graph.corpus import called_key, entry_key, stored_key
from cq.graph.unit import ROOT, Place, Unit, as_key, called_names, find_handed
from cq.language import describe
from cq.model.code import (
    Bind,
    Code,
    Defined,
    Definition,
    Element,
    Form,
    Imported,
    Lambda,
    Literals,
    Named,
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
_MAX_NAMES = 100  # that a text is searched for


class Difference(NamedTuple):
    """Of a document before and after a change."""

    changed: set[int]  # keys (see Unit.name_key) of the parts that say something else
    same: set[int]  # homes (see Unit.home) in which nothing else is linked
    named: dict[int, Named]  # key of what stands for a name anywhere -> which
    returning: dict[int, str]  # home of a function that says something else by what it returns alone -> its name


def find_difference(old: Unit, new: Unit, *, closed: bool, texts: tuple[bytes, bytes] | None = None) -> Difference:
    """`closed`: whoever looks into a function from outside says what for. What a variable is bound to is then part of
    what is done with it, whatever its name, and of nothing else. With the texts of two documents that hold no errors,
    functions that a change does not touch are not read."""
    lasting = {*old.all_homes()} & {*new.all_homes()}
    readers = _Reader(old, closed, lasting), _Reader(new, closed, lasting)
    same = set[int]() if texts is None else _leave_out(readers, texts)
    said = [reader.read() for reader in readers]
    was, now = [{key: _digest(what) for key, what in found.items()} for found in said]
    changed = set(dict(was.items() ^ now.items()))
    if describe(old.language).receiver == "first":
        heads = [reader.read_heads(found, changed) for reader, found in zip(readers, said, strict=True)]
        changed -= {key for key, digests in heads[0].items() if _is_longer(digests, heads[1].get(key, ()))}
    homes = [{home: _digest(items) for home, items in reader.read_homes().items()} for reader in readers]
    same |= dict(homes[0].items() & homes[1].items()).keys()
    bare = [reader.read_bare(found, changed) for reader, found in zip(readers, said, strict=True)] if closed else []
    returning = {key: found[0] for key, found in dict(bare[0].items() & bare[1].items()).items()} if bare else {}
    return Difference(changed, same, readers[0].named | readers[1].named, returning)


def _is_longer(one: Sequence[int], other: Sequence[int]) -> bool:
    """Whether of two functions one is the other with more parameters; see read_heads."""
    return bool(one and other) and (one[0] in other or other[0] in one)


# -- what need not be read ------------------------------------------------------------------------


class _Function(NamedTuple):
    """A function at root level or in a class, with all that stands in it."""

    start: int  # of a text that holds it
    end: int
    definitions: list[tuple[str, str, str, int]]
    symbols: list[int]
    size: int  # how much is said in it


def _leave_out(readers: tuple[_Reader, _Reader], texts: tuple[bytes, bytes]) -> set[int]:
    """Takes functions from both readers whose text is the same, and so are all names around them that it holds. Their
    homes."""
    first, last = _find_change(*texts)
    shift = len(texts[1]) - len(texts[0])
    found = [_find_functions(reader.unit, len(text)) for reader, text in zip(readers, texts, strict=True)]
    others = {function.definitions[0]: function for function in found[1]}
    pairs: list[tuple[_Function, _Function]] = []
    for function in found[0]:
        # Behind the change with the end of the line before, so that it is indented alike.
        is_behind = texts[0].rfind(b"\n", 0, function.start) >= last
        if is_behind or function.end < first:
            moved = shift if is_behind else 0
            places = [(kind, name, known, start + moved) for kind, name, known, start in function.definitions]
            other = others.get(places[0])
            if other is not None and other.definitions == places and other.size == function.size:
                pairs.append((function, other))
    if not pairs:
        return set()
    names = _find_names(readers, [{s for f in functions for s in f.symbols} for functions in found])
    if len(names) > _MAX_NAMES:
        pairs = []
    elif names:
        words = re.compile(
            rb"(?<![\w\x80-\xff])(?:%s)(?![\w\x80-\xff])"
            % b"|".join(re.escape(name.encode("utf-8", "surrogatepass")) for name in sorted(names))
        )
        pairs = [pair for pair in pairs if not words.search(texts[0], pair[0].start, pair[0].end)]
    for at, reader in enumerate(readers):
        reader.left_out = {symbol for pair in pairs for symbol in pair[at].symbols}
    unit = readers[0].unit
    return {unit.home(symbol) for symbol in readers[0].left_out if unit.is_local(symbol)}


def _find_change(old: bytes, new: bytes) -> tuple[int, int]:
    """Where two texts begin to differ, and where in the old one they do no more."""
    most = min(len(old), len(new))
    first = _bisect(most, lambda size: old[:size] == new[:size])
    rest = most - first
    return first, len(old) - _bisect(rest, lambda size: old[len(old) - size :] == new[len(new) - size :])


def _bisect(most: int, holds: Callable[[int], bool]) -> int:
    """The largest number that holds; all below it do."""
    low = 0
    while low < most:
        middle = (low + most + 1) // 2
        if holds(middle):
            low = middle
        else:
            most = middle - 1
    return low


def _find_functions(unit: Unit, length: int) -> list[_Function]:
    tops: dict[int, int] = {}  # symbol -> that of the outermost function around it
    found: dict[int, _Function] = {}
    ends: list[int] = []
    before = 0
    for definition in unit.code.definitions:
        top = tops.get(definition.scope, -1)
        if definition.symbol >= 0:
            if top < 0 and definition.kind == "function":
                top = definition.symbol
                # Decorators stand before the start.
                found[top] = _Function(before, 0, [], [], 0)
                ends.append(definition.start)
            elif top < 0:
                ends.append(definition.start)
            if top >= 0:
                tops[definition.symbol] = top
                found[top].symbols.append(definition.symbol)
            before = definition.start
        if top >= 0:
            name = unit.qualified_names.get(definition.symbol, definition.name)
            found[top].definitions.append((definition.kind, definition.name, name, definition.start))
    code = unit.code
    scopes = [*(item.scope for item in (*code.sites, *code.binds, *code.stores)), *(at for at, *_ in code.raises)]
    sizes = Counter(tops[at] for at in (*scopes, *(at for at, *_ in code.runs)) if at in tops)
    ends.append(length + 1)
    return [
        function._replace(end=ends[bisect_right(ends, function.definitions[0][3])], size=sizes[top])
        for top, function in found.items()
    ]


def _find_names(readers: tuple[_Reader, _Reader], inner: Sequence[set[int]]) -> set[str]:
    """Names that are not what they were around functions. `inner`: what stands in functions."""
    bound = [reader.read_bound(symbols) for reader, symbols in zip(readers, inner, strict=True)]
    found = {name.strip("<>") for _, name in dict(bound[0].items() ^ bound[1].items())}  # types are bound as <Type>
    codes = [reader.unit.code for reader in readers]
    for sort in (_find_held, _find_imported, _find_defined):
        found |= sort(codes[0]) ^ sort(codes[1])
    return found


def _find_held(code: Code) -> set[str]:
    """Names of what may be a container: what a call gives may be one too."""
    return {bind.name for bind in code.binds if bind.value is not None and not isinstance(bind.value, (str, Literals))}


def _find_imported(code: Code) -> set[str]:
    return {bind.name for bind in code.binds if isinstance(bind.value, Imported)}


def _find_defined(code: Code) -> set[str]:
    return {definition.name for definition in code.definitions}


class _Reader:
    def __init__(self, unit: Unit, closed: bool, lasting: set[int]) -> None:
        self.unit, self.lasting = unit, lasting  # homes that are in both documents
        self.sites: dict[int, _Part] = {}  # by the end of a call
        self.placed: dict[int, Said] = {}
        self.named: dict[int, Named] = {}
        # Functions whose variables no other code can see.
        self._closed = {d.symbol for d in unit.code.definitions if closed and d.kind == "function"}
        self._closed -= {d.scope for d in unit.code.definitions if d.symbol >= 0}
        self._locals: dict[_Local, int] = {}  # those of what is being read, in the order in which they are met
        self._met: list[_Local] = []
        self._bound: dict[_Local, _Part] = {}
        self.left_out: set[int] = set()  # symbols of functions that are not read, and of all in them

    def read_bound(self, inner: set[int]) -> dict[tuple[int, str], int]:
        """Scope and name -> what is bound to it outside of functions."""
        self._read_sites(inner)
        found: dict[tuple[int, str], list[Said]] = {}
        for bind in self.unit.code.binds:
            if bind.scope not in inner:
                found.setdefault((self.unit.scope_key(bind.scope, bind.name), bind.name), []).append(self._bind(bind))
        return {key: _digest(said) for key, said in found.items()}

    def _read_sites(self, left_out: set[int]) -> None:
        # A call's arguments end before it does, so what it holds is known when its turn comes.
        for site in sorted(self.unit.code.sites, key=lambda site: site.end):
            if site.scope not in left_out and site.end not in self.sites:
                self.sites[site.end] = self._part(lambda site=site: self._site(site))

    def read(self) -> dict[int, list[Said]]:
        unit, code, left_out = self.unit, self.unit.code, self.left_out
        self._read_sites(left_out)
        definitions = [d for d in code.definitions if (d.symbol if d.symbol >= 0 else d.scope) not in left_out]
        sites = [site for site in code.sites if site.scope not in left_out]
        for site in sites:
            self.placed[site.end] = self._placed(site)
        found: dict[int, list[Said]] = {}
        for definition in definitions:
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
                decorators = [self._value(value, definition.scope, definition.start) for value in definition.decorators]
                typed = unit.find_fields(definition.symbol) if decorators or definition.bases else []
                found.setdefault(unit.member_key(definition.symbol, "@"), []).append((decorators, typed))
                metaclasses = [f"metaclass {value}" for word, value in definition.keywords if word == "metaclass"]
                for base in (*definition.bases, *metaclasses):
                    if isinstance(base, str):
                        found.setdefault(unit.name_key(f"<{base}"), []).append(definition.name)
                for name, stores in unit.own_stores(definition.symbol).items():
                    key = unit.member_key(definition.symbol, name)
                    self._add_stores(found, key, stores)
        for bind in code.binds:
            if bind.scope not in self._closed and bind.scope not in left_out:
                found.setdefault(unit.scope_key(bind.scope, bind.name), []).append(self._bind(bind))
        for name, stores in unit.stores_by_name.items():
            key = stored_key(name)
            self.named[key] = (name, "stored")
            self._add_stores(found, key, stores)
        for (kind, name), entered in unit.entries.items():
            key = entry_key(kind, name)
            self.named[key] = (name, kind)
            found.setdefault(key, []).extend(self._scope(d.symbol) for d in entered if d.symbol not in left_out)
        for store in code.stores:
            if store.scope not in left_out:
                found.setdefault(unit.home(store.scope), []).append(self._store(store))
        self._add_items(found)
        for number in unit.indirect:
            if code.sites[number].scope not in left_out:
                found.setdefault(unit.name_key("()"), []).append(self.placed[code.sites[number].end])
        defined = _find_defined(code)
        for site in sites:
            said = self.placed[site.end]
            for name in called_names(site):
                key = called_key(name)
                self.named[key] = (name, "called")
                found.setdefault(key, []).append(said)
                if name in defined or (name == "super" and site.kind == "super"):
                    found.setdefault(unit.name_key(f"(){name}"), []).append(said)
            for key, _ in find_handed(site):
                if key in defined:
                    found.setdefault(unit.name_key(f"(){key}"), []).append(said)
            # Calls are reached by their names, and by the values that hold what they give; but what is handed to one
            # depends on it.
            if any(isinstance(key, int) for key, _ in find_handed(site)):
                found.setdefault(unit.home(site.scope), []).append(said)
        for name in sorted({str(value) for _, _, value in code.raises if isinstance(value, str)}):
            found.setdefault(unit.name_key(f"raise {name}"), []).append(name)
        found.setdefault(unit.name_key("__all__"), []).append(code.public)
        # What stands in no function is reached through names; nothing depends on the rest.
        found.pop(unit.home(ROOT), None)
        return found

    def _add_stores(self, found: dict[int, list[Said]], key: int, stores: Sequence[Store]) -> None:
        kept = [store for store in stores if store.scope not in self.left_out]
        if kept or not stores:
            found.setdefault(key, []).extend(map(self._store, kept))

    def read_bare(self, found: dict[int, list[Said]], wanted: Collection[int]) -> dict[int, tuple[str, int]]:
        """Home of each function that is wanted -> its name, a digest of what it says beside what it returns; behind
        `read`. What they yield stays."""
        bare: dict[int, tuple[str, int]] = {}
        for definition in self.unit.code.definitions:
            if definition.symbol >= 0 and definition.kind == "function":
                key = self.unit.home_of(definition)
                if key not in wanted:
                    continue
                said = self._close(lambda d=definition: self._definition(replace(d, returns=())))
                # The first that is said of a function is its definition.
                bare[key] = self.unit.qualified_names[definition.symbol], _digest((said, found[key][1:]))
        return bare

    def read_heads(self, found: dict[int, list[Said]], wanted: Collection[int]) -> dict[int, list[int]]:
        """Home of each function that is wanted -> digests of what it says, with all of its parameters, then with less
        and less of the optional ones at the end: who looks into a function asks for parameters by their place, and the
        first may be its receiver."""
        heads: dict[int, list[int]] = {}
        for definition in self.unit.code.definitions:
            key = self.unit.home_of(definition) if definition.symbol >= 0 and definition.kind == "function" else 0
            if key not in wanted:
                continue
            count = len(definition.parameters)
            heads[key] = []
            while True:
                shorter = replace(definition, parameters=definition.parameters[:count])
                said = self._close(lambda d=shorter: self._definition(d))
                heads[key].append(_digest((said, found[key][1:])))
                last = shorter.parameters[-1] if count > 1 else None
                if last is None or not last.optional or last.kind not in ("", "k"):
                    break
                count -= 1
        return heads

    def _add_items(self, found: dict[int, list[Said]]) -> None:
        """What is put into containers, by the last name of what holds it and by its key; who else gets a container."""
        unit = self.unit
        for name, stores in unit.items_by_name.items():
            for store in stores:
                if store.scope in self.left_out:
                    continue
                said = self._store(store)
                found.setdefault(unit.name_key(f"[]{name}"), []).append(said)
                if isinstance(store.key, Text):
                    found.setdefault(unit.item_key(store.key), []).append(said)
        for name in sorted(_find_held(unit.code)):
            said = [
                self._close(lambda alias=alias: self._bind(alias))
                for alias in unit.aliases.get(name, ())
                if alias.scope not in self.left_out
            ]
            passing = [unit.code.sites[number] for number, _ in unit.passing.get(name, ())]
            said += [self.placed[site.end] for site in passing if site.scope not in self.left_out]
            if said:
                found.setdefault(unit.name_key(f"[]{name}"), []).extend(said)

    def read_homes(self) -> dict[int, list[Said]]:
        """All that links are made of, behind `read`."""
        unit, code, left_out = self.unit, self.unit.code, self.left_out
        found: dict[int, list[Said]] = {}
        for definition in code.definitions:
            if (definition.symbol if definition.symbol >= 0 else definition.scope) not in left_out:
                bases = [self._value(value, definition.scope, definition.start) for value in definition.bases]
                said = self._close(lambda d=definition: self._definition(d))
                found.setdefault(unit.home_inside(definition), []).append((definition.kind, bases, said))
        for site in code.sites:
            if site.scope not in left_out:
                found.setdefault(unit.home(site.scope), []).append(self.placed[site.end])
        for bind in code.binds:
            if bind.scope not in left_out and isinstance(bind.value, Imported):
                found.setdefault(unit.home(bind.scope), []).append((bind.name, bind.value))
        for bind in (*code.binds, *code.stores):
            if bind.type is not None and bind.scope not in left_out:
                said = self._close(lambda b=bind: self._value(b.type, b.scope, b.start))
                found.setdefault(unit.home(bind.scope), []).append((self._scope(bind.scope), said))
        rows = [(scope, start, "raise", value) for scope, start, value in code.raises]
        for scope, start, operation, value in (*rows, *code.runs):
            if scope not in left_out:
                said = self._close(lambda v=value, at=scope, start=start: self._value(v, at, start))
                found.setdefault(unit.home(scope), []).append((operation, unit.find_holder(scope, start), said))
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
        return said, self._lasting(site.scope), name

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

    def _scope(self, scope: int) -> tuple[str, int]:
        """With the home: a class may become a function."""
        return self.unit.qualified_names.get(scope, ""), self.unit.home(scope)

    def _lasting(self, scope: int) -> tuple[str, int]:
        """Of a function that comes, goes or gets another name, nothing: who looks at a call in it depends on it by its
        name, and its calls may mean what they meant."""
        found = self._scope(scope)
        return found if found[1] in self.lasting or not self.unit.is_local(scope) else ("", 0)

    def _value(self, value: Value, scope: int, position: int) -> Said:
        """Names with the bindings they reach, calls and lambdas by what they say."""
        match value:
            case None:
                return None
            case str():
                return self._name(value, scope, position)
            case int():
                part = self.sites.get(value)
                return "call", None if part is None else self._inside(part)
            case Text() if scope in self._closed and len(value.value) < _MAX_TYPE:
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
        if at in self._closed:
            return self._local((at, head)), value[len(head) :], reached
        return value, self._scope(at), at == ROOT, reached

    def _defined(self, value: Form, start: int, rest: tuple[int, ...]) -> Said:
        form, definition = type(value).__name__, self.unit.definitions.get(start)
        if definition is None:  # `const A = memo(() => …)`: it is known as A alone
            return form, "", rest
        if definition.symbol >= 0:
            is_own = isinstance(value, ParameterOf) and definition.symbol in self._closed
            holder = self._lasting(definition.symbol) if is_own else self._scope(definition.symbol)
            seen = [word for word in definition.modifiers if word.startswith("pub")]
            return form, holder, rest, seen
        said = self._definition(definition) if isinstance(value, Lambda) else ""
        return form, said, self._scope(definition.anonymous[0] if definition.anonymous else ROOT), rest

    def _seen_stores(self, scope: int, place: Place, position: int) -> list[int]:
        """Which of the stores to an attribute or element can be seen."""
        found = self.unit.find_placed(scope, place, position)
        if found is None:
            return []
        known = self.unit.placed[place]
        return [-1 - found[1], *(n for n, store in enumerate(known) if any(store is seen for seen in found[0]))]


def _digest(said: Said) -> int:
    return xxh3_64_intdigest(repr(said).encode("utf-8", "surrogatepass"))
