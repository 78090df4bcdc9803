"""What nothing reaches: definitions that no code names, or only code that is dead itself, and how sure that is."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, NamedTuple

import msgspec

from cq.answers.options import Option, Options, Paged
from cq.answers.page import Page, count_tokens, take
from cq.language import describe
from cq.model.answer import SCHEMA_VERSION, Answer, DeadDetails, Finding, Insight, Run, Section, Slice, bucket
from cq.model.edge import Candidate, SymbolRef
from cq.model.errors import UsageError
from cq.model.status import Degraded
from cq.snapshot.exports import Offered, find_offered
from cq.snapshot.files import HeldFile
from cq.snapshot.relations import Relations, linked, note_uncovered
from cq.snapshot.routes import find_routes
from cq.snapshot.target import Definition, find_part, say_nothing

if TYPE_CHECKING:
    from cq.snapshot.snapshot import Snapshot

MAX_MEANT = 40  # mentions of one name whose meanings are looked at
MAX_ROUNDS = 20  # dead code that keeps other code dead, one after the other
_KINDS = ("function", "method", "class")
# How sure: nothing outside can reach it; who imports the package may use it; a text names it.
_PRIVATE, _PUBLIC, _NAMED = 0.9, 0.6, 0.3
_SURE = 0.9  # of a link that leads elsewhere
# Decorators that leave a definition to be reached by its name alone.
_PLAIN = frozenset({
    "property", "cached_property", "staticmethod", "classmethod", "contextmanager", "asynccontextmanager", "lru_cache",
    "cache", "wraps", "dataclass", "define", "frozen", "final", "override", "total_ordering", "no_type_check",
    "inline", "must_use", "derive", "allow", "cold", "deprecated", "unique",
})  # fmt: skip


class DeadOptions(Options, frozen=True):
    """Of a part of the repository; everything else may reach it all the same."""

    examples: ClassVar[str] = """\
  cq dead                          what nothing reaches, the surest first
  cq dead src/shop                 of one part
  cq dead --min-confidence 0.9     only what nothing outside can reach either
  cq dead --min-confidence 0       with what texts or getattr may name"""

    part: Annotated[
        str, Option("a directory, a file or a module (default: all)", "", "PATH", argument=True, place="part")
    ] = ""
    least: Annotated[float, Option("0 to 1; default 0.6 leaves out what a text names", "min-confidence", "X")] = 0.6
    page: Paged = Page(60)

    def check(self) -> None:
        self.page.check()
        if not 0 <= self.least <= 1:
            raise UsageError(f"--min-confidence {self.least:g} is out of range", hint="it is 0 to 1")


class _Mention(NamedTuple):
    path: str
    document: int
    start: int


class _Dead(NamedTuple):
    row: Definition
    why: str
    confidence: float
    lines: int


@linked
def ask(snapshot: Snapshot, options: DeadOptions) -> Answer:
    """The surest first, then the longest."""
    options.check()
    relations = snapshot.relations
    paths = find_part(relations.files, relations.paths(), options.part) if options.part else relations.paths()
    if not paths:
        return say_nothing(relations.files, "dead", options.part, f"nothing here is {options.part!r}")
    found = [each for each in _Search(relations).find() if each.row.file.path in set(paths)]
    hidden = [each for each in found if each.confidence < options.least]
    rows = [each for each in found if each.confidence >= options.least]
    rows.sort(key=lambda each: (-each.confidence, -each.lines, each.row.key))
    shown, budget, cut = take(rows, options.page, _describe)
    sections = (Section("Not Reached", "dead", len(rows), tuple(shown)),) if shown else ()
    lines = sum(each.lines for each in rows)
    levels = Counter(bucket(each.confidence) for each in rows)
    slices = {
        "dead": Slice(len(rows), f"definitions that nothing reaches, {lines:,} lines"),
        "hidden": Slice(len(hidden), f"below --min-confidence {options.least:g} are not listed"),
    }
    events = note_uncovered(relations, "dead", paths, "links")
    if not rows:
        events.append(Degraded("dead", "info", "nothing", "everything is reached, as far as names and links say"))
    budget = msgspec.structs.replace(budget, used=count_tokens(sections, options.page.measure) + 100)
    return Answer(
        SCHEMA_VERSION,
        "dead",
        Run(generation=relations.files.generation),
        {
            "query": options.part or "dead code",
            "lines": lines,
            "hidden": len(hidden),
            "by": dict(sorted(levels.items())),
        },
        found=len(rows),
        insight=Insight(None, slices, budget=budget) if rows else None,
        sections=sections,
        degraded=tuple(events),
        truncated=tuple(cut),
    )


def _describe(each: _Dead) -> Finding:
    symbol = each.row.symbol
    count = f"{each.lines} line{'s' * (each.lines != 1)}"
    message = f"{symbol.kind} {symbol.qualified_name}: {each.why} ({count}, {bucket(each.confidence)})"
    details = DeadDetails(
        symbol.qualified_name,
        symbol.kind,
        each.why,
        each.lines,
        each.row.file.name_symbol(each.row.document, each.row.number)[0],
    )
    return Finding("dead", message, each.row.location, each.confidence, each.confidence, details)


class _Search:
    """Names first: what no code names cannot be reached by code. What is named is dead where every mention means
    something else, or stands in what is dead."""

    def __init__(self, relations: Relations) -> None:
        self._relations = relations
        self._handlers = {route.handler for route in find_routes(relations) if route.handler is not None}
        self._outside: dict[Candidate, bool] = {}

    def find(self) -> list[_Dead]:
        rows = [row for row in self._find_candidates() if not self._is_kept(row)]
        mentions = self._find_mentions({row.symbol.name for row in rows})
        offered = {each.row.key for each in self._find_offered() if each.how != "defined"}
        rows = [row for row in rows if row.key not in offered]
        texts = self._find_texts({row.symbol.name for row in rows})
        prefixes = self._find_prefixes()
        spans: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
        dead: dict[tuple[str, int, int], tuple[Definition, str]] = {}
        left = rows
        for number in range(MAX_ROUNDS):
            now = [row for row in left if not self._is_reached(row, mentions, spans)]
            if not now:
                break
            for row in now:
                why = "nothing names it" if not number else "only what is dead names it"
                if not number and self._is_named_elsewhere(row, mentions):
                    why = "every mention of its name means something else"
                dead[row.key] = (row, why)
                # What a text may name keeps alive what it names itself.
                if row.symbol.name not in texts and not _find_prefix(row, prefixes):
                    spans[row.file.path, row.document].append((row.symbol.start, row.symbol.end))
            for held in spans.values():
                held.sort()
            left = [row for row in left if row.key not in dead]
        inside = {key for key in dead if self._has_dead_parent(key, dead)}
        return [self._judge(row, why, texts, prefixes) for key, (row, why) in dead.items() if key not in inside]

    def _find_candidates(self) -> Iterator[Definition]:
        for path in self._relations.paths():
            held = self._relations.hold(path)
            if held is None or held.role not in ("src", "lib"):
                continue
            for document, symbols in enumerate(held.symbols):
                stored = held.documents[document]
                if stored.segment is not None or not describe(stored.language).has_links:
                    continue
                for number, symbol in enumerate(symbols):
                    if symbol.kind_group in _KINDS and symbol.body_start >= 0 and symbol.kind != "lambda":
                        yield Definition(held, document, number)

    def _is_kept(self, row: Definition) -> bool:
        """What others reach by other ways than its name: the language, a framework, a decorator, a base."""
        symbol, name = row.symbol, row.symbol.name
        if not name or (name.startswith("__") and name.endswith("__")) or name in ("main", "setup", "teardown"):
            return True
        if symbol.kind in ("constructor", "destructor", "impl", "operator", "macro", "accessor"):
            return True
        if any(_name_mark(mark) not in _PLAIN for mark in symbol.decorators) or "abstract" in symbol.modifiers:
            return True
        place = self._relations.find_place(row)
        if place is None or place in self._handlers or row.is_stub:
            return True
        holder = row.parent
        if symbol.kind_group == "method" or (holder is not None and holder.kind_group in ("class", "type")):
            if holder is not None and holder.kind in ("impl", "trait", "interface"):
                return "impl" in holder.kind and " for " in holder.signature
            around = self._relations.find_place(Definition(row.file, row.document, symbol.parent))
            return around is not None and self._comes_from_outside(around, 0)
        return False

    def _comes_from_outside(self, kind: Candidate, depth: int) -> bool:
        """Whether a class has a base that is not of the repository: that may call its methods."""
        if kind not in self._outside:
            self._outside[kind] = False
            links = self._relations.documents.links_of(kind.path, kind.document)
            refs = [links.refs[at] for owner, at in links.inherits if owner == kind.name] if links is not None else []
            symbol = self._relations.symbol(kind)
            written = [
                base
                for base in (symbol.bases if symbol is not None else ())
                if base not in ("object", "ABC", "abc.ABC")
            ]
            known = [ref for ref in refs if ref.resolved is not None]
            outside = len(known) < len(written)
            below = any(ref.resolved is not None and self._comes_from_outside(ref.resolved, depth + 1) for ref in known)
            self._outside[kind] = outside or (depth < 20 and below)
        return self._outside[kind]

    def _find_offered(self) -> list[Offered]:
        return find_offered(self._relations, set(self._relations.paths()))

    def _find_mentions(self, names: set[str]) -> dict[str, list[_Mention]]:
        """Where code names them, other than to define them."""
        found: dict[str, list[_Mention]] = defaultdict(list)
        for path in self._relations.paths():
            held = self._relations.hold(path)
            for document, references in enumerate(held.references if held is not None else ()):
                if names.isdisjoint(references.names):
                    continue
                for name, start, _, _ in references:
                    if name in names:
                        found[name].append(_Mention(path, document, start))
        return found

    def _is_reached(
        self, row: Definition, mentions: dict[str, list[_Mention]], spans: dict[tuple[str, int], list[tuple[int, int]]]
    ) -> bool:
        symbol, path = row.symbol, row.file.path
        outer = [
            each
            for each in mentions.get(symbol.name, ())
            if not (each.path == path and each.document == row.document and symbol.start <= each.start < symbol.end)
        ]
        outer = [each for each in outer if not _is_within(each, spans)]
        if not outer or len(outer) > MAX_MEANT:
            return bool(outer)
        return any(self._may_mean(row, each) for each in outer)

    def _may_mean(self, row: Definition, mention: _Mention) -> bool:
        """Whether a mention may mean a definition: not where it surely means another."""
        place = self._relations.named(row)
        for document, start, _, ref in self._named(mention.path, row.symbol.name):
            if (document, start) == (mention.document, mention.start):
                if ref is None or ref.status in ("unresolved", "ambiguous"):
                    return True
                if ref.status == "external":
                    # A method that is thought to come from outside may be called on a value of ours.
                    held = self._relations.hold(mention.path)
                    return held is not None and held.text[max(start - 1, 0) : start] == b"."
                if ref.confidence < _SURE:
                    return True
                target = ref.candidates[0]
                return target == place or self._is_family(target, place)
        return True

    def _named(self, path: str, name: str) -> Sequence[tuple[int, int, int, SymbolRef | None]]:
        known = self._relations.memory.known.setdefault(path, {})
        key = ("dead", name)
        if key not in known:
            known[key] = list(self._relations.meanings.find_named(path, name))
        return known[key]

    def _is_family(self, target: Candidate, place: Candidate) -> bool:
        """Whether a method overrides what is meant, at whatever distance: then it runs where that is called."""
        if target.name.rpartition(".")[2] != place.name.rpartition(".")[2] or "." not in place.name:
            return False
        todo, seen = [place], set[Candidate]()
        while todo:
            here = todo.pop()
            if here == target:
                return True
            if here in seen:
                continue
            seen.add(here)
            edges = self._relations.referrers.find_out(here, possible=False)
            todo += [edge.ref.candidates[0] for edge in edges if edge.kind == "overrides" and edge.ref.candidates]
        return False

    def _is_named_elsewhere(self, row: Definition, mentions: dict[str, list[_Mention]]) -> bool:
        symbol = row.symbol
        return any(
            not (each.path == row.file.path and symbol.start <= each.start < symbol.end)
            for each in mentions.get(symbol.name, ())
        )

    def _has_dead_parent(
        self, key: tuple[str, int, int], dead: dict[tuple[str, int, int], tuple[Definition, str]]
    ) -> bool:
        row = dead[key][0]
        number = row.symbol.parent
        while number >= 0:
            if (key[0], key[1], number) in dead:
                return True
            number = row.siblings[number].parent
        return False

    def _find_texts(self, names: set[str]) -> dict[str, str]:
        """Names that stand in a text, or in a file that is no code, with where."""
        found: dict[str, str] = {}
        words = re.compile(rb"(?<![\w])[A-Za-z_]\w*(?![\w])")
        wanted = {name.encode() for name in names}
        for held in self._relations.files.candidates(None):
            is_code = describe(held.language).has_links
            for match in words.finditer(held.text) if not is_code and held.role != "doc" else ():
                if match[0] in wanted:
                    found.setdefault(match[0].decode(), f"{held.path}:{held.lines.line(match.start())}")
            for match in _TEXT.finditer(held.text) if is_code else ():
                for word in words.findall(match[0]):
                    if word in wanted:
                        found.setdefault(word.decode(), f"{held.path}:{held.lines.line(match.start())}")
        return found

    def _find_prefixes(self) -> dict[str, str]:
        """Beginnings of names that `getattr` is given, with where: `getattr(self, f"visit_{kind}")`."""
        found: dict[str, str] = {}
        for path in self._relations.paths():
            held: HeldFile | None = self._relations.hold(path)
            for calls in held.calls if held is not None else ():
                for call in calls:
                    if call.name in ("getattr", "methodcaller", "attrgetter") and call.args:
                        for argument in call.args[:2]:
                            start = re.match(r"""f?["'](\w+)(?:\{|%|["']\s*\+)""", argument.text)
                            if start is not None and held is not None:
                                found.setdefault(start[1], f"{path}:{held.lines.line(call.start)}")
        return found

    def _judge(self, row: Definition, why: str, texts: dict[str, str], prefixes: dict[str, str]) -> _Dead:
        symbol = row.symbol
        lines = row.file.lines.line(max(symbol.end - 1, 0)) - row.file.lines.line(symbol.start) + 1
        prefix = _find_prefix(row, prefixes)
        if symbol.name in texts:
            return _Dead(row, f"{why} but a text at {texts[symbol.name]}", _NAMED, lines)
        if prefix:
            return _Dead(
                row, f"{why}, but names that begin with {prefix!r} are looked up at {prefixes[prefix]}", _NAMED, lines
            )
        around = [row.siblings[at] for at in _find_around(row)]
        root = around[-1] if around else symbol
        is_inner = any(each.kind_group in ("function", "method") for each in around)
        parts = [symbol.name, *(each.name for each in around), *row.file.path.split("/")]
        seals = describe(row.file.documents[row.document].language).receiver == "self"  # members are hidden one by one
        hidden = is_inner or not root.exported or "private" in symbol.modifiers or (seals and not symbol.exported)
        hidden = hidden or any(name.startswith("_") and not name.startswith("__") for name in parts)
        if hidden:
            return _Dead(row, why, _PRIVATE, lines)
        return _Dead(row, f"{why} here, but it is public", _PUBLIC, lines)


_TEXT = re.compile(rb"""(?<![\w])[bru]{0,2}(?:"[^"\n]{1,200}"|'[^'\n]{1,200}')""")


def _find_prefix(row: Definition, prefixes: dict[str, str]) -> str:
    return next((each for each in prefixes if row.symbol.name.startswith(each)), "")


def _name_mark(mark: str) -> str:
    return re.split(r"[(<\[]", mark)[0].strip().rpartition(".")[2].rpartition("::")[2]


def _find_around(row: Definition) -> Iterator[int]:
    number = row.symbol.parent
    while number >= 0:
        yield number
        number = row.siblings[number].parent


def _is_within(mention: _Mention, spans: dict[tuple[str, int], list[tuple[int, int]]]) -> bool:
    """Whether a mention stands in what is dead."""
    held = spans.get((mention.path, mention.document), ())
    at = bisect_right(held, (mention.start, 1 << 62)) - 1
    return any(start <= mention.start < end for start, end in held[max(at - 8, 0) : at + 1])
