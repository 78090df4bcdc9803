"""Which definition of one state of a repository is which of another: by name where it stayed, by text where it
moved."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from cq.language import describe
from cq.model.answer import Truncation
from cq.model.facts import QUIET, is_looked_up
from cq.snapshot.target import Definition

if TYPE_CHECKING:
    from cq.snapshot.files import HeldFile
    from cq.snapshot.snapshot import Snapshot

MAX_FILES = 200  # changed files whose definitions are compared
MAX_DEFINITIONS = 500  # of one file
MAX_SEARCHED = 2000  # definitions on one side that are compared with others by text
LEAST_WORDS = 6  # of a definition that is found by its text
LEAST_SCORE = 0.6  # below, two definitions are not one that was changed
LEAST_MARGIN = 0.05  # by which the best must be better than the second: else nobody knows which it is
_WORD = re.compile(rb"[^\W\d]\w*|\d+|[^\w\s]")
_FUNCTIONS = ("function", "method")
_STRING = QUIET.index("string")


class Side:
    """One definition, with its own code: without what stands in definitions inside of it, which are its members."""

    def __init__(self, row: Definition, members: Sequence[int]) -> None:
        self.row = row
        self.members = tuple(row.siblings[number].name for number in members)
        self._inner = sorted((row.siblings[number].start, row.siblings[number].end) for number in members)

    @property
    def path(self) -> str:
        return self.row.file.path

    @property
    def name(self) -> str:
        return self.row.symbol.qualified_name

    @property
    def is_public(self) -> bool:
        """Whether others may use it, if they may use its module: neither it nor what holds it is hidden."""
        symbol: int = self.row.number
        symbols, outermost = self.row.siblings, self.row.symbol
        while symbol >= 0:
            outermost = symbols[symbol]
            name = outermost.name
            if name.startswith("_") and not (name.startswith("__") and name.endswith("__")):
                return False
            if "private" in outermost.modifiers or name.startswith("#"):
                return False
            symbol = outermost.parent
        return outermost.exported and self.row.file.role != "test"

    @cached_property
    def text(self) -> bytes:
        """Its own text as it stands."""
        symbol, text, pieces = self.row.symbol, self.row.file.text, list[bytes]()
        at = symbol.start
        for start, end in self._inner:
            pieces.append(text[at:start])
            at = max(at, end)
        return b"".join([*pieces, text[at : symbol.end]])

    @cached_property
    def code(self) -> bytes:
        """Without comments, documentation and the blanks between words; what is in quotes stays as it is. Where
        indents are brackets, they are kept."""
        symbol, file = self.row.symbol, self.row.file
        left_out = [*self._inner]
        quoted: list[tuple[int, int]] = []
        for kind, start, end in _find_quiet(file, self.row.document, symbol.start, symbol.end):
            (quoted if kind == _STRING else left_out).append((start, end))
        indented = describe(file.documents[self.row.document].language).is_indented
        pieces: list[bytes] = []
        at, text = symbol.start, file.text
        kept = [(start, end, True) for start, end in quoted] + [(start, end, False) for start, end in left_out]
        for start, end, is_kept in sorted(kept):
            if start < at:
                continue
            pieces.append(_fold(text[at:start], indented=indented))
            pieces.append(text[start:end] if is_kept else b"")
            at = end
        pieces.append(_fold(text[at : symbol.end], indented=indented))
        folded = b"".join(pieces)
        return (
            re.sub(rb"\n[\n ]*(?=\n)|[\n ]+\Z", b"", folded)
            if indented
            else re.sub(rb" *\n *| +", b" ", folded).strip()
        )

    @cached_property
    def words(self) -> Counter[bytes]:
        """Of its code, without its own name, and with those of its members."""
        own = self.row.symbol.name.encode()
        found = Counter(word for word in _WORD.findall(self.code) if word != own)
        found.update(b"." + name.encode() for name in self.members)
        return found

    @property
    def is_short(self) -> bool:
        """Whether many say the same by chance."""
        return sum(self.words.values()) < LEAST_WORDS and not self.members


class Pair(msgspec.Struct, frozen=True):
    """A definition before and after; one of them is lacking where it was added or removed."""

    old: Side | None
    new: Side | None
    score: float = 1.0
    reason: str = ""


class Pairing(msgspec.Struct):
    """What differs between two states, as definitions, and what was left out."""

    pairs: list[Pair] = []
    files: dict[str, str] = {}  # a path that is new -> the one that it was
    changed: list[str] = []  # paths of either side
    cut: list[Truncation] = []


def pair_definitions(before_it: Snapshot, after_it: Snapshot) -> Pairing:
    """Of files that differ. Equal texts are not looked into."""
    before, after = _find_hashes(before_it), _find_hashes(after_it)
    old, new = before_it.relations, after_it.relations
    gone = [path for path in before if path not in after]
    come = [path for path in after if path not in before]
    found = Pairing(files=_pair_files(gone, come, before, after))
    moved = {*found.files, *found.files.values()}  # as they are: told with the files
    paths = [path for path in after if path not in before or before[path] != after[path]]
    found.changed = sorted({*paths, *gone} - moved)
    if len(found.changed) > MAX_FILES:
        omitted = len(found.changed) - MAX_FILES
        found.cut.append(Truncation("diff", "files", MAX_FILES, len(found.changed), omitted))
    lost: list[Side] = []
    made: list[Side] = []
    for path in found.changed[:MAX_FILES]:
        left = list_sides(old.hold(path), found.cut) if path in before else {}
        right = list_sides(new.hold(path), found.cut) if path in after else {}
        for key, side in left.items():
            if key in right:
                if side.text != right[key].text or side.path != right[key].path:
                    found.pairs.append(Pair(side, right[key]))
            else:
                lost.append(side)
        made += [side for key, side in right.items() if key not in left]
    found.pairs += pair_moved(lost, made)
    return found


def _find_hashes(snapshot: Snapshot) -> dict[str, str]:
    reader, tree = snapshot.reader, snapshot.tree.id
    return {path: text for path, (text, _) in reader.hashes(tree, reader.all_paths(tree)).items()}


def _pair_files(
    gone: Sequence[str], come: Sequence[str], before: Mapping[str, str], after: Mapping[str, str]
) -> dict[str, str]:
    """Files that have another path and the same text; of several the one with the most similar path."""
    by_text: dict[str, list[str]] = {}
    for path in gone:
        by_text.setdefault(before[path], []).append(path)
    found: dict[str, str] = {}
    for path in come:
        twins = by_text.get(after[path], [])
        if twins:
            name = path.rpartition("/")[2]
            best = min(twins, key=lambda twin: (twin.rpartition("/")[2] != name, twin))
            found[path] = best
            twins.remove(best)
    return found


Key = tuple[int, str, str, int]


def list_sides(held: HeldFile | None, cut: list[Truncation]) -> dict[Key, Side]:
    """The definitions of a file that others may name, by what tells them apart in it."""
    found: dict[Key, Side] = {}
    if held is None or held.role == "doc":
        return found
    count = 0
    for document, symbols in enumerate(held.symbols):
        if (
            describe(held.documents[document].language).is_data
            or "calls" not in describe(held.documents[document].language).offers
        ):
            continue
        # What stands in a function is a part of it.
        inside: set[int] = set()
        for number, symbol in enumerate(symbols):
            if symbol.parent >= 0 and (symbol.parent in inside or symbols[symbol.parent].kind_group in _FUNCTIONS):
                inside.add(number)
        rows = [
            number for number, symbol in enumerate(symbols) if is_looked_up(symbol, symbols) and number not in inside
        ]
        definitions = {number: Definition(held, document, number) for number in rows}
        # Overloads say what the one with the code does.
        coded = {symbols[number].qualified_name for number, row in definitions.items() if not row.is_declared}
        rows = [
            number
            for number, row in definitions.items()
            if not row.is_declared or symbols[number].body_start < 0 or symbols[number].qualified_name not in coded
        ]
        inner: dict[int, list[int]] = {}
        for number in rows:
            parent = symbols[number].parent
            if parent >= 0 and symbols[parent].start <= symbols[number].start < symbols[parent].end:
                inner.setdefault(parent, []).append(number)
        seen: Counter[tuple[str, str]] = Counter()
        for number in rows:
            symbol = symbols[number]
            kind = "code" if symbol.kind_group in _FUNCTIONS else symbol.kind_group
            seen[kind, symbol.qualified_name] += 1
            count += 1
            if count <= MAX_DEFINITIONS:
                key = (document, kind, symbol.qualified_name, seen[kind, symbol.qualified_name])
                found[key] = Side(definitions[number], inner.get(number, ()))
    if count > MAX_DEFINITIONS:
        cut.append(Truncation(held.path, "definitions", MAX_DEFINITIONS, count, count - MAX_DEFINITIONS))
    return found


def pair_moved(lost: Sequence[Side], made: Sequence[Side]) -> list[Pair]:
    """What has another name or place: first what has the same code, then what is most alike, each time with what stands
    by the same name in what was paired. What could be several is a removal and an addition."""
    found: list[Pair] = []
    for find in (_pair_equal(_same_code, "the same code"), _pair_equal(_same_body, "the same body"), _pair_similar):
        found += find(*_find_left(found, lost, made))
        found += _pair_members(found, *_find_left(found, lost, made))
    left, right = _find_left(found, lost, made)
    return [*found, *(Pair(side, None) for side in left), *(Pair(None, side) for side in right)]


def _find_left(found: Sequence[Pair], lost: Sequence[Side], made: Sequence[Side]) -> tuple[list[Side], list[Side]]:
    taken = {id(side) for pair in found for side in (pair.old, pair.new)}
    return [side for side in lost if id(side) not in taken], [side for side in made if id(side) not in taken]


_Find = Callable[[Sequence[Side], Sequence[Side]], list[Pair]]


def _pair_equal(alike: Callable[[Side], object], reason: str) -> _Find:
    """Where just one of each side has something, which None is not."""

    def find(left: Sequence[Side], right: Sequence[Side]) -> list[Pair]:
        groups: dict[object, tuple[list[Side], list[Side]]] = {}
        for at, sides in enumerate((left, right)):
            for side in sides:
                key = alike(side)
                if key is not None:
                    groups.setdefault(key, ([], []))[at].append(side)
        return [Pair(old[0], new[0], 1.0, reason) for old, new in groups.values() if len(old) == len(new) == 1]

    return find


def _pair_members(found: Sequence[Pair], left: Sequence[Side], right: Sequence[Side]) -> list[Pair]:
    """Of classes that are one: what has the same name in both."""
    holders = {
        (pair.old.path, pair.old.name): pair.new for pair in found if pair.old is not None and pair.new is not None
    }
    known = {(side.path, side.name): side for side in right}
    members: list[Pair] = []
    for side in left:
        above, dot, name = side.name.rpartition(".")
        holder = holders.get((side.path, above)) if dot else None
        other = known.get((holder.path, f"{holder.name}.{name}")) if holder is not None else None
        if other is not None and other.row.symbol.kind == side.row.symbol.kind:
            members.append(Pair(side, other, 1.0, "the same member"))
    return members


def _same_code(side: Side) -> object:
    """Its whole code but for its name; None for what is too short to mean anything."""
    if side.is_short:
        return None
    own = rb"\b%s\b" % re.escape(side.row.symbol.name.encode())
    return side.row.symbol.kind_group, re.sub(own, b"", side.code), side.members


def _same_body(side: Side) -> object:
    """By its last name, with the same words: it moved into another class or file and was indented anew."""
    if side.is_short:
        return None
    return side.row.symbol.kind_group, side.row.symbol.name, frozenset(side.words.items())


def _pair_similar(left: Sequence[Side], right: Sequence[Side]) -> list[Pair]:
    if len(left) > MAX_SEARCHED or len(right) > MAX_SEARCHED:
        return []
    rows: list[tuple[float, int, int]] = []
    for at, old in enumerate(left):
        for to, new in enumerate(right):
            score = _compare(old, new)
            if score >= LEAST_SCORE:
                rows.append((score, at, to))
    rows.sort(key=lambda row: (-row[0], row[1], row[2]))
    best: dict[tuple[str, int], list[float]] = {}
    for score, at, to in rows:
        best.setdefault(("old", at), []).append(score)
        best.setdefault(("new", to), []).append(score)
    found: list[Pair] = []
    taken: set[tuple[str, int]] = set()
    for score, at, to in rows:
        keys = ("old", at), ("new", to)
        if not taken.isdisjoint(keys):
            continue
        # A second that is as good makes it a guess.
        if any(sum(1 for other in best[key] if other > score - LEAST_MARGIN) > 1 for key in keys):
            continue
        taken.update(keys)
        found.append(Pair(left[at], right[to], round(score, 2), "alike"))
    return found


def _compare(old: Side, new: Side) -> float:
    """From 0 to 1: how much of their words two definitions share, and their names."""
    one, other = old.row.symbol, new.row.symbol
    if (one.kind_group in _FUNCTIONS) != (other.kind_group in _FUNCTIONS):
        return 0.0
    if one.kind_group not in _FUNCTIONS and one.kind_group != other.kind_group:
        return 0.0
    mine, yours = old.words, new.words
    sizes = sum(mine.values()), sum(yours.values())
    if old.is_short or new.is_short or min(sizes) * 2 < max(sizes):
        return 0.0
    shared = sum((mine & yours).values()) * 2 / sum(sizes)
    names = 1.0 if one.name == other.name else _share(one.name, other.name)
    place = 1.0 if old.path == new.path else 0.5
    return 0.75 * shared + 0.2 * names + 0.05 * place


def _share(one: str, other: str) -> float:
    mine, yours = (set(re.findall(r"[a-z]+|[A-Z][a-z]*|\d+", name)) for name in (one, other))
    return 2 * len(mine & yours) / (len(mine) + len(yours)) if mine and yours else 0.0


def _find_quiet(file: HeldFile, document: int, start: int, end: int) -> Iterable[tuple[int, int, int]]:
    """(kind, start, end) of what is no code there, in order."""
    quiet = file.references[document].quiet
    if quiet is None:
        return
    starts, ends = array("I", quiet.starts), array("I", quiet.ends)
    for at, kind in enumerate(quiet.kinds):
        if start <= starts[at] and ends[at] <= end:
            yield kind, starts[at], ends[at]


def _fold(text: bytes, *, indented: bool) -> bytes:
    if not indented:
        return re.sub(rb"\s+", b" ", text)
    return re.sub(rb"[ \t]*(\r?\n)", b"\n", re.sub(rb"(?<=\S)[ \t\f]+", b" ", text))
