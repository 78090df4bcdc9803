"""What a change of a document changes for those who read it: the rows of its tables that say something else."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from msgspec.structs import replace

from cq.graph.engine.digest import Digests, Said, digest
from cq.graph.engine.tables import TABLES, CallAt, Contents, Item, list_named, named_key
from cq.graph.scopes import ROOT, Star
from cq.graph.unit import Unit, find_handed
from cq.language import describe
from cq.model.code import Bind, Code, Definition, Imported, Named, Store

_MAX_NAMES = 100  # that a text is searched for


class Difference(NamedTuple):
    """Of a document before and after a change."""

    changed: set[int]  # keys of the rows that say something else
    same: set[int]  # homes (see Unit.home) in which nothing else is linked
    named: dict[int, Named]  # key of what any document may have under a name -> which
    returning: dict[int, str]  # home of a function that says something else by what it returns alone -> its name


def find_difference(old: Unit, new: Unit, *, closed: bool, texts: tuple[bytes, bytes] | None = None) -> Difference:
    """`closed`: whoever looks into a function from outside says what for. What a variable is bound to is then part of
    what is done with it, whatever its name, and of nothing else. With the texts of two documents that hold no errors,
    functions that a change does not touch are not read."""
    lasting = {*old.all_homes()} & {*new.all_homes()}
    readers = _RowReader(old, closed, lasting), _RowReader(new, closed, lasting)
    same = set[int]() if texts is None else _leave_out(readers, texts)
    said = [reader.read() for reader in readers]
    was, now = [{key: digest(what) for key, what in found.items()} for found in said]
    changed = set(dict(was.items() ^ now.items()))
    if describe(old.language).receiver == "first":
        heads = [reader.read_heads(found, changed) for reader, found in zip(readers, said, strict=True)]
        changed -= {key for key, digests in heads[0].items() if _is_longer(digests, heads[1].get(key, ()))}
    homes = [{home: digest(items) for home, items in reader.read_homes().items()} for reader in readers]
    same |= dict(homes[0].items() & homes[1].items()).keys()
    bare = [reader.read_bare(found, changed) for reader, found in zip(readers, said, strict=True)] if closed else []
    returning = {key: found[0] for key, found in dict(bare[0].items() & bare[1].items()).items()} if bare else {}
    return Difference(changed, same, readers[0].named | readers[1].named, returning)


def _is_longer(one: Sequence[int], other: Sequence[int]) -> bool:
    """Whether of two functions one is the other with more parameters; see read_heads."""
    return bool(one and other) and (one[0] in other or other[0] in one)


# -- what need not be read ------------------------------------------------------------------------


class _ChangedFunction(NamedTuple):
    """A function at root level or in a class, with all that stands in it."""

    start: int  # of a text that holds it
    end: int
    definitions: list[tuple[str, str, str, int]]
    symbols: list[int]
    size: int  # how much is said in it


def _leave_out(readers: tuple[_RowReader, _RowReader], texts: tuple[bytes, bytes]) -> set[int]:
    """Takes functions from both readers whose text is the same, and so are all names around them that it holds. Their
    homes."""
    first, last = _find_change(*texts)
    shift = len(texts[1]) - len(texts[0])
    found = [_find_functions(reader.unit, len(text)) for reader, text in zip(readers, texts, strict=True)]
    others = {function.definitions[0]: function for function in found[1]}
    pairs: list[tuple[_ChangedFunction, _ChangedFunction]] = []
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


def _find_functions(unit: Unit, length: int) -> list[_ChangedFunction]:
    tops: dict[int, int] = {}  # symbol -> that of the outermost function around it
    found: dict[int, _ChangedFunction] = {}
    ends: list[int] = []
    before = 0
    for definition in unit.code.definitions:
        top = tops.get(definition.scope, -1)
        if definition.symbol >= 0:
            if top < 0 and definition.kind == "function":
                top = definition.symbol
                # Decorators stand before the start.
                found[top] = _ChangedFunction(before, 0, [], [], 0)
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


def _find_names(readers: tuple[_RowReader, _RowReader], inner: Sequence[set[int]]) -> set[str]:
    """Names that are not what they were around functions. `inner`: what stands in functions."""
    bound = [reader.read_bound(symbols) for reader, symbols in zip(readers, inner, strict=True)]
    found = {name.strip("<>") for _, name in dict(bound[0].items() ^ bound[1].items())}  # types are bound as <Type>
    codes = [reader.unit.code for reader in readers]
    for sort in (_find_imported, _find_defined):
        found |= sort(codes[0]) ^ sort(codes[1])
    found |= readers[0].unit.held_names ^ readers[1].unit.held_names
    return found


def _find_imported(code: Code) -> set[str]:
    return {bind.name for bind in code.binds if isinstance(bind.value, Imported)}


def _find_defined(code: Code) -> set[str]:
    return {definition.name for definition in code.definitions}


class _RowReader:
    def __init__(self, unit: Unit, closed: bool, lasting: set[int]) -> None:
        self.unit = unit
        self.digests = Digests(unit, closed, lasting)
        self.named: dict[int, Named] = {}
        self.left_out: set[int] = set()  # symbols of functions that are not read, and of all in them

    def read_bound(self, inner: set[int]) -> dict[tuple[str, str], int]:
        """Scope and name -> what is bound to it outside of functions."""
        self.digests.read_sites(inner)
        found: dict[tuple[str, str], list[Said]] = {}
        for bind in self.unit.code.binds:
            if bind.scope not in inner:
                key = self.unit.qualified_names.get(bind.scope, ""), bind.name
                found.setdefault(key, []).append(self.digests.say(bind))
        return {key: digest(said) for key, said in found.items()}

    def read(self) -> dict[int, list[Said]]:
        self.digests.read_sites(self.left_out)
        found: dict[int, list[Said]] = {}
        for table in TABLES:
            for key, items in table.list_rows(self.unit):
                self._add(found, key, items)
        for name, items in list_named(self.unit):
            key = self._add(found, partial(named_key, *name), items)
            if key is not None:
                self.named[key] = name
        for scope, item in self._list_inside():
            self._add(found, partial(self.unit.home, scope), [item])
        # What stands in no function is reached through names; nothing depends on the rest.
        found.pop(self.unit.home(ROOT), None)
        return found

    def _add(self, found: dict[int, list[Said]], find_key: Callable[[], int], items: Iterable[Item]) -> int | None:
        """Under which number; None where all of it is left out."""
        given = list(items)
        kept = [item for item in given if self._scope_of(item) not in self.left_out] if self.left_out else given
        if not kept and given:
            return None
        key = find_key()
        found.setdefault(key, []).extend(map(self.digests.say, kept))
        return key

    def _scope_of(self, item: Item) -> int | None:
        match item:
            case Bind() | Store() | Star():
                return item.scope
            case CallAt():
                return self.unit.code.sites[item.number].scope
            case Contents():
                return item.definition.symbol
            case Definition():
                return item.symbol if item.symbol >= 0 else item.scope
            case str():
                return None

    def _list_inside(self) -> Iterator[tuple[int, Item]]:
        """What others see of the code of functions beside what they return, by scope."""
        unit, code = self.unit, self.unit.code
        for bind in code.binds:
            if unit.is_local(bind.scope) and bind.scope not in self.digests.closed:
                yield bind.scope, bind
        for store in code.stores:
            yield store.scope, store
        # Calls are reached by their names, and by the values that hold what they give; but a function that stands in
        # the arguments of one depends on it.
        for number, site in enumerate(code.sites):
            if any(isinstance(key, int) for key, _ in find_handed(site)):
                yield site.scope, CallAt(number)

    def read_bare(self, found: dict[int, list[Said]], wanted: Collection[int]) -> dict[int, tuple[str, int]]:
        """Home of each function that is wanted -> its name, a digest of what it says beside what it returns; behind
        `read`. What they yield stays."""
        bare: dict[int, tuple[str, int]] = {}
        for definition in self.unit.code.definitions:
            if definition.symbol >= 0 and definition.kind == "function":
                key = self.unit.home_of(definition)
                if key not in wanted:
                    continue
                said = self.digests.say(Contents(replace(definition, returns=())))
                # The first that is said of a function is its definition.
                bare[key] = self.unit.qualified_names[definition.symbol], digest((said, found[key][1:]))
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
                said = self.digests.say(Contents(shorter))
                heads[key].append(digest((said, found[key][1:])))
                last = shorter.parameters[-1] if count > 1 else None
                if last is None or not last.optional or last.kind not in ("", "k"):
                    break
                count -= 1
        return heads

    def read_homes(self) -> dict[int, list[Said]]:
        """All that links are made of, behind `read`."""
        unit, code, left_out, digests = self.unit, self.unit.code, self.left_out, self.digests
        found: dict[int, list[Said]] = {}
        for definition in code.definitions:
            if (definition.symbol if definition.symbol >= 0 else definition.scope) not in left_out:
                bases = [digests.say_value(value, definition.scope, definition.start) for value in definition.bases]
                said = digests.close(lambda d=definition: digests.define(d))
                found.setdefault(unit.home_of(definition), []).append((definition.kind, bases, said))
        for number, site in enumerate(code.sites):
            if site.scope not in left_out:
                found.setdefault(unit.home(site.scope), []).append(digests.say(CallAt(number)))
        for bind in code.binds:
            if bind.scope not in left_out and isinstance(bind.value, Imported):
                found.setdefault(unit.home(bind.scope), []).append((bind.name, bind.value))
        for bind in (*code.binds, *code.stores):
            if bind.type is not None and bind.scope not in left_out:
                said = digests.say_value(bind.type, bind.scope, bind.start)
                found.setdefault(unit.home(bind.scope), []).append((unit.qualified_names.get(bind.scope, ""), said))
        rows = [(scope, start, "raise", value) for scope, start, value in code.raises]
        for scope, start, operation, value in (*rows, *code.runs):
            if scope not in left_out:
                said = digests.say_value(value, scope, start)
                found.setdefault(unit.home(scope), []).append((operation, unit.find_holder(scope, start), said))
        return found
