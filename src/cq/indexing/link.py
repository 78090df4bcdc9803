"""Links the code of a tree: all of it, or what a change can reach. Both give the same rows."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from sys import intern
from typing import NamedTuple

import msgspec
from msgspec.structs import force_setattr

from cq.graph.corpus import MAX_DOCUMENTS, MAX_HOLDERS, StoredCorpus, make_units
from cq.graph.engine import cells
from cq.graph.engine.change import find_difference
from cq.graph.given import find_given
from cq.graph.link import Linker
from cq.graph.links import KeptLinks, find_targets, make_links
from cq.graph.resolve import Resolver
from cq.graph.unit import Unit, find_named
from cq.indexing.pool import COST, FORKS, make_pool
from cq.languages.linking import find_dialect, make_linker
from cq.model.code import NAMED_KINDS, Code, Imported, Name, Named, NamedKind, Value
from cq.model.edge import Links, Mistake, find_mistake
from cq.model.errors import StoreError
from cq.store.codec import decode_part, encode_homes, encode_links
from cq.store.database import DatabaseError
from cq.store.read import Reader
from cq.store.write import LinkRow, Writer

MAX_ASKED = 8  # functions that are asked for what they give before those that depend on them are linked again
MAX_NOTED = 100  # mistakes that made a refresh link all
MAX_AFFECTED = 400  # files that are linked one by one; with more, all are
LEAST_NAMES = 2000  # that a part of the files calls: with fewer, a process costs more than it brings
# Files that decide how modules are named, whatever their text.
_PROJECT_FILES = ("pyproject.toml", "setup.py", "setup.cfg", "tsconfig.json", "package.json", "Cargo.toml")
_ENCODE = msgspec.msgpack.Encoder().encode
_DECODE = msgspec.msgpack.Decoder(LinkRow).decode


class _Tree:
    """What linking all of a tree reads, so that processes need no database; code stays packed until it is asked for."""

    def __init__(self, reader: Reader, tree: int) -> None:
        self.paths = reader.all_paths(tree)
        self.code = reader.all_code(tree)
        self._owners: dict[int, list[str]] = {}
        for path, (content, _) in self.code.items():
            self._owners.setdefault(content, []).append(path)
        self._named: dict[Named, array[int]] = {}
        self._sizes: dict[int, int] = {}
        for name, kind, content in reader.all_named():
            if content in self._owners:
                self._named.setdefault((name, NAMED_KINDS[kind]), array("Q")).append(content)
                self._sizes[content] = self._sizes.get(content, 0) + 1

    def load(self, path: str) -> Sequence[Code | None]:
        found = self.code.get(path)
        return [] if found is None else _share_names(decode_part("code", found[1]))

    def find_named(self, name: str, kind: NamedKind, limit: int) -> list[str]:
        contents = self._named.get((name, kind), ())
        return [] if not contents else sorted(path for each in contents[:limit] for path in self._owners[each])

    def split(self, parts: int) -> list[list[str]]:
        """Files beside one another, so that what they share is looked at once; about the same work each. How many names
        a file calls says best how long it takes."""
        sizes = {path: self._sizes.get(content, 0) + 1 for path, (content, _) in self.code.items()}
        total, done = sum(sizes.values()), 0
        found: list[list[str]] = [[] for _ in range(max(1, min(parts, total // (LEAST_NAMES * COST))))]
        for path, size in sizes.items():
            found[done * len(found) // total].append(path)
            done += size
        return found


def update_links(reader: Reader, writer: Writer, tree: int, before: dict[str, int] | None, jobs: int) -> None:
    """Inside the transaction that changes the files. `before` is the content that changed files had; None: all is
    new."""
    if before is not None:
        corpus = StoredCorpus(reader.all_paths(tree), partial(reader.code, tree), partial(reader.find_named, tree))
        resolver = Resolver(make_linker(corpus))
        try:
            stale = _find_stale(reader, tree, corpus, resolver.linker, before)
        except (MemoryError, StoreError, DatabaseError):
            raise
        except Exception as error:
            if cells.is_strict:
                raise
            stale = None  # what a change reaches is not known: then it may be everything
            noted = [*reader.mistakes(tree).get("", ()), find_mistake(error)]
            writer.put_mistakes(tree, "", noted[-MAX_NOTED:])
        if stale is not None:
            writer.put_links(tree, _link(corpus, sorted(stale), resolver, stale))
            return
    writer.drop_all_links(tree)
    whole = _Tree(reader, tree)
    writer.shrink()
    writer.put_links(tree, _link_all(whole, jobs))


def _link_all(tree: _Tree, jobs: int) -> Iterator[LinkRow]:
    parts = tree.split(jobs)
    # What is linked elsewhere leaves no memory here, and no garbage to collect.
    if len(parts) > 1 or (FORKS and len(tree.code) > MAX_AFFECTED):
        from concurrent.futures.process import BrokenProcessPool

        pool = make_pool(len(parts), _set_up, tree)
        try:
            # What is done is written while the others link.
            for rows in pool.map(_link_part, parts):
                yield from _read_rows(rows)
            return
        except BrokenProcessPool:
            pass  # one was killed: this process does it alone, and what was written is written again
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    yield from _link_new(tree, list(tree.code))


_tree: _Tree | None = None  # of a worker


def _set_up(tree: _Tree) -> None:
    global _tree
    _tree = tree


def _link_new(tree: _Tree, paths: list[str]) -> Iterator[LinkRow]:
    corpus = StoredCorpus(tree.paths, tree.load, tree.find_named)
    return _link(corpus, paths, Resolver(make_linker(corpus)))


def _link_part(paths: list[str]) -> bytearray:
    """Rows behind one another, each with its length: beside the code there is room for them once."""
    assert _tree is not None
    found = bytearray()
    for row in _link_new(_tree, paths):
        packed = _ENCODE(row)
        found += len(packed).to_bytes(4, "little")
        found += packed
    return found


def _read_rows(packed: bytearray) -> Iterator[LinkRow]:
    at = 0
    while at < len(packed):
        end = at + 4 + int.from_bytes(packed[at : at + 4], "little")
        yield _DECODE(memoryview(packed)[at + 4 : end])
        at = end


def _share_names(codes: Sequence[Code | None]) -> Sequence[Code | None]:
    """A repository uses the same few names again and again: where all of it is held, each is kept once."""
    for code in codes:
        if code is None:
            continue
        for site in code.sites:
            force_setattr(site, "kind", intern(site.kind))
            force_setattr(site, "name", intern(site.name))
            force_setattr(site, "callee", _share(site.callee))
            if site.args:
                force_setattr(site, "args", tuple(map(_share, site.args)))
            if site.keywords:
                force_setattr(site, "keywords", tuple([(intern(name), _share(value)) for name, value in site.keywords]))
        for bind in code.binds:
            force_setattr(bind, "name", intern(bind.name))
            value = bind.value
            if isinstance(value, Imported):
                force_setattr(value, "module", intern(value.module))
                force_setattr(value, "name", intern(value.name))
            else:
                force_setattr(bind, "value", _share(value))
        for definition in code.definitions:
            force_setattr(definition, "kind", intern(definition.kind))
            force_setattr(definition, "name", intern(definition.name))
            for parameter in definition.parameters:
                force_setattr(parameter, "name", intern(parameter.name))
        for store in code.stores:
            if store.name is not None:
                force_setattr(store, "name", intern(store.name))
            force_setattr(store, "base", _share(store.base))
        if code.runs:
            runs = [(at, start, intern(operation), _share(value)) for at, start, operation, value in code.runs]
            force_setattr(code, "runs", tuple(runs))
    return codes


def _share(value: Value) -> Value:
    return Name(intern(value)) if isinstance(value, str) else value


def is_structural(path: str) -> bool:
    """Whether a file that comes or goes can change what modules are called."""
    return path.rpartition("/")[2] in _PROJECT_FILES


class _Known(NamedTuple):
    """What an earlier linking of a file found, and how much of it still holds."""

    kept: dict[int, KeptLinks]  # by document
    keys: Mapping[int, Collection[int]]  # of its homes that are kept, what they depend on
    lacking: Mapping[int, Collection[Mistake]]  # of those, what they lack


_NOTHING_KNOWN = _Known({}, {}, {})


def _find_stale(
    reader: Reader, tree: int, corpus: StoredCorpus, linker: Linker, contents: dict[str, int]
) -> dict[str, _Known] | None:
    """The files that a change can reach; None when it can reach all."""
    before: dict[str, list[Code | None]] = {path: reader.part(content, "code") for path, content in contents.items()}
    changed: set[int] = set()
    named: dict[int, Named] = {}
    same: dict[str, dict[int, Unit]] = {}  # of a changed file: homes that say what they said -> the document of before
    returning: dict[int, tuple[str, int, str]] = {}  # see Difference
    for path, codes in before.items():
        old, new = make_units(path, codes), corpus.units(path)
        if [unit.document for unit in old] != [unit.document for unit in new]:
            return None
        same[path] = {}
        for unit, other in zip(old, new, strict=True):
            closed = not find_dialect(unit.language).is_static
            texts = _find_texts(reader, tree, path, contents[path]) if closed and len(codes) == 1 else None
            found = find_difference(unit, other, closed=closed, texts=texts)
            # Paths anywhere may begin with a crate's name.
            if path.endswith("Cargo.toml") and found.changed:
                return None
            changed |= found.changed
            named |= found.named
            same[path] |= dict.fromkeys(found.same, unit)
            returning |= {key: (path, unit.document, name) for key, name in found.returning.items()}
    changed = {key for key in changed if key not in named or not _is_crowd(corpus, *named[key], len(before))}
    depending = {} if not changed else reader.find_dependents(tree, changed)
    away = set[int]().union(*(keys for path, keys in depending.items() if path not in before))
    asked = {key: returning[key] for key in sorted(away & returning.keys())}
    if asked and len(asked) <= MAX_ASKED:
        changed -= _find_same(reader, tree, corpus, linker, before, asked)
    affected = [path for path, keys in depending.items() if not changed.isdisjoint(keys)]
    # What a file depends on that could not be linked is not known.
    mistakes = reader.mistakes(tree)
    lost = [path for path, made in mistakes.items() if path and not all(each.homes for each in made)]
    found = dict.fromkeys([*(path for path in before if corpus.units(path)), *affected, *lost])
    if len(found) > MAX_AFFECTED:
        return None
    return {
        path: _find_known(reader, tree, corpus, path, changed, same.get(path), mistakes.get(path, ())) for path in found
    }


def _find_texts(reader: Reader, tree: int, path: str, content: int) -> tuple[bytes, bytes] | None:
    """What a file said and says, where neither has errors."""
    both = content, reader.contents(tree, [path])[path]
    if any(document.problems for each in both for document in reader.documents(each)):
        return None
    return reader.text(both[0]), reader.text(both[1])


def _find_same(
    reader: Reader,
    tree: int,
    corpus: StoredCorpus,
    linker: Linker,
    before: dict[str, list[Code | None]],
    asked: dict[int, tuple[str, int, str]],
) -> set[int]:
    """Of functions whose code returns something else, by their keys, those that give the same values all the same, by
    way of the same parts of the code: who depends on one need not be linked again."""
    names = {
        path: set[Named]().union(*(find_named(code) for code in codes if code is not None))
        for path, codes in before.items()
    }

    def find_paths(name: str, kind: NamedKind, limit: int) -> list[str]:
        others = [path for path in corpus.find_paths(name, kind, limit + len(before)) if path not in before]
        return sorted([*others, *(path for path in before if (name, kind) in names[path])])[:limit]

    old = StoredCorpus(corpus.paths, lambda path: before.get(path) or reader.code(tree, path), find_paths)
    given = [
        find_given(asking, [(_find_document(documents, *place[:2]), place[2]) for place in asked.values()], before)
        for asking, documents in ((make_linker(old), old), (linker, corpus))
    ]
    return {key for key, was, now in zip(asked, *given, strict=True) if was is not None and was == now}


def _find_document(corpus: StoredCorpus, path: str, document: int) -> Unit:
    return next(unit for unit in corpus.units(path) if unit.document == document)


def _is_crowd(corpus: StoredCorpus, name: str, kind: NamedKind, changed: int) -> bool:
    """Whether so many files are found by a name, also before these changed, that nobody asks about it."""
    most = MAX_DOCUMENTS if kind == "called" else MAX_HOLDERS
    return len(corpus.find_paths(name, kind, most + changed + 1)) > most + changed


def _find_known(
    reader: Reader,
    tree: int,
    corpus: StoredCorpus,
    path: str,
    changed: set[int],
    same: dict[int, Unit] | None,
    mistakes: Iterable[Mistake],
) -> _Known:
    """`same`: of a changed file, its homes that are as they were, each with the document of before."""
    units = corpus.units(path)
    # What a language of written types looks at in its own document it does not always tell.
    if any(find_dialect(unit.language).is_static for unit in units):
        return _NOTHING_KNOWN
    keys = {home: keys for home, keys in reader.homes(tree, path).items() if changed.isdisjoint(keys)}
    links = reader.own_links(tree, path)
    kept: dict[int, KeptLinks] = {}
    for unit in units:
        found = links[unit.document] if unit.document < len(links) else None
        homes = {home for home in unit.all_homes() if home in keys and (same is None or home in same)}
        if found is not None and homes:
            kept[unit.document] = KeptLinks(found, unit if same is None else same[min(homes)], homes)
    homes = {home: keys[home] for known in kept.values() for home in known.homes}
    lacking: dict[int, set[Mistake]] = {}
    for each in mistakes:
        for home in homes.keys() & each.homes:
            lacking.setdefault(home, set()).add(Mistake(each.error, each.place))
    return _Known(kept, homes, lacking)


def _link(
    corpus: StoredCorpus, paths: Sequence[str], resolver: Resolver, known: Mapping[str, _Known] | None = None
) -> Iterator[LinkRow]:
    """A mistake of ours costs the links of the file that it is made in, and is told with them."""
    known, linker = known or {}, resolver.linker
    lost: dict[str, Mistake] = {}

    @contextmanager
    def guard(path: str) -> Iterator[None]:
        try:
            yield
        except (MemoryError, StoreError, DatabaseError):
            raise
        except Exception as error:
            if cells.is_strict:
                raise
            lost[path] = find_mistake(error)
            linker.give_up()

    for path in paths:
        with guard(path):
            kept = known.get(path, _NOTHING_KNOWN).kept
            for unit in corpus.units(path):
                resolver.visit(unit, kept[unit.document].homes if unit.document in kept else ())
    linker.settle()
    made: dict[str, tuple[bytes, list[tuple[int, bytes]]]] = {}
    for path in paths:
        with guard(path):
            if path not in lost:
                made[path] = _make_links(resolver, corpus.units(path), known.get(path, _NOTHING_KNOWN).kept)
    # What something depends on is known when all has been asked.
    for path in paths:
        earlier = known.get(path, _NOTHING_KNOWN)
        homes: dict[int, Collection[int]] = dict(earlier.keys)
        lacking: dict[Mistake, list[int]] = {}
        with guard(path):
            for unit in corpus.units(path) if path not in lost else ():
                for home in unit.all_homes():
                    if home not in homes and (keys := linker.find_keys(home)) is not None:
                        homes[home] = keys
                    for each in linker.lacking.get(home) or earlier.lacking.get(home, ()):
                        lacking.setdefault(each, []).append(home)
        if path in lost:
            yield LinkRow(path, encode_links([]), *encode_homes({}), [], [lost[path]])
            continue
        packed, calls_by_key = made.pop(path)
        mistakes = [Mistake(each.error, each.place, (*sorted(lacking[each]),)) for each in sorted(lacking)]
        yield LinkRow(path, packed, *encode_homes(homes), calls_by_key, mistakes)


def _make_links(
    resolver: Resolver, units: Sequence[Unit], kept: Mapping[int, KeptLinks]
) -> tuple[bytes, list[tuple[int, bytes]]]:
    links: list[Links | None] = [None] * (units[-1].document + 1)
    targets: dict[int, list[int]] = {}
    for unit in units:
        found = links[unit.document] = make_links(resolver, unit, kept.get(unit.document))
        for key, calls in find_targets(found):
            targets.setdefault(key, []).extend(unit.document << 24 | call for call in calls)
    return encode_links(links), [(key, array("I", calls).tobytes()) for key, calls in sorted(targets.items())]
