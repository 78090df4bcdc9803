"""What a change means: between two states of a repository, what breaks and whose calls, what is gone, what has another
name or place, what is new, and what only looks different."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec

from cq.answers.options import Languages, Option, Options, Paged, split
from cq.answers.page import Page, count_tokens, take
from cq.answers.words import count
from cq.language import describe
from cq.model.answer import SCHEMA_VERSION, Answer, ChangeDetails, Finding, Insight, Run, Section, Slice, Truncation
from cq.model.errors import UsageError, suggest
from cq.questions.diff.breaking import FUNCTIONS, find_breaking, read_parameters
from cq.snapshot.pairing import Pair, Side, pair_definitions
from cq.snapshot.relations import Relations, linked
from cq.snapshot.signatures import find_parameters, judge_calls
from cq.snapshot.snapshot import open_snapshot
from cq.snapshot.target import Definition
from cq.source.read import content_hash
from cq.source.role import find_role

if TYPE_CHECKING:
    from cq.snapshot.snapshot import Snapshot

# What may become of a definition, the worst first, and how a section of it is called.
CHANGES = {
    "breaking": "Breaking", "callers": "Callers Broken", "signature": "Signatures", "removed": "Removed",
    "renamed": "Renamed", "moved": "Moved", "added": "Added", "body": "Bodies Changed",
    "text": "Only Comments Or Format", "docs": "Documents That Name What Is Gone",
}  # fmt: skip
_GONE = ("breaking", "removed", "renamed")
MAX_EVENTS = 20_000
MAX_SHOWN_CALLERS = 3
MAX_GONE = 200  # names whose mentions in documents are looked for


def _read_kinds(text: str) -> tuple[str, ...]:
    for name in (names := split(text)):
        if name not in CHANGES:
            raise UsageError(
                f"there is no change {name!r}", hint=suggest(name, CHANGES, f"kinds: {', '.join(CHANGES)}")
            )
    return tuple(names)


class DiffOptions(Options, frozen=True):
    """Without revisions: from the last commit to the files on the disk; with one, from that."""

    examples: ClassVar[str] = """\
  cq diff                              what the files on the disk change since the last commit
  cq diff v1.2 v1.3                    between two releases; v1.2..v1.3 says the same
  cq diff main...                      what this branch changed since it left main
  cq diff v1.2 --only breaking,callers --public --fail-on breaking"""

    revisions: Annotated[
        tuple[str, ...],
        Option("two states: A, A B, A..B, or A...B from where they parted", metavar="REV", argument=True),
    ] = ()
    only: Annotated[tuple[str, ...], Option("only these changes", metavar="KIND,…", parse=_read_kinds)] = ()
    path: Annotated[
        tuple[str, ...], Option("only below this directory or file", metavar="PATH", place="folder", group="files")
    ] = ()
    languages: Languages = ()
    public: Annotated[bool, Option("only what others may use")] = False
    fail_on: Annotated[
        tuple[str, ...], Option("exit 3 where there is such a change", metavar="KIND,…", parse=_read_kinds)
    ] = ()
    page: Paged = Page(60)

    def check(self) -> None:
        self.page.check()
        self.read_range()

    def read_range(self) -> tuple[str, str, bool]:
        """(from, to, from where they parted); "" is the state that is asked."""
        words = [word for word in self.revisions if word]
        if len(words) == 1:
            for dots in ("...", ".."):
                before, found, after = words[0].partition(dots)
                if found:
                    return before or "HEAD", after, dots == "..."
            return words[0], "", False
        if len(words) > 2 or any(".." in word for word in words):
            raise UsageError("diff takes two states", hint="A B, A..B or A...B")
        return (words[0], words[1], False) if words else ("HEAD", "", False)


class _Event(msgspec.Struct, frozen=True):
    """One thing that became of a definition."""

    kind: str
    pair: Pair
    details: ChangeDetails
    message: str

    @property
    def side(self) -> Side:
        side = self.pair.new or self.pair.old
        assert side is not None
        return side

    @property
    def order(self) -> tuple[object, ...]:
        kinds = list(CHANGES)
        hidden = not self.details.public
        is_test = self.side.row.file.role == "test"
        return (
            is_test,
            kinds.index(self.kind),
            hidden,
            -self.details.callers,
            self.side.path,
            self.side.row.symbol.start,
        )


@linked
def ask(snapshot: Snapshot, options: DiffOptions) -> Answer:
    """Tests last, then by how bad it is, what others may use first."""
    options.check()
    begin, end, parted = options.read_range()
    with ExitStack() as stack:
        new = snapshot
        if end:
            if snapshot.index.revision is not None:
                raise UsageError("--as-of names the second state already", hint="give one revision")
            new = _open(stack, snapshot, end)
        if parted:
            begin = snapshot.index.find_parting(begin, end or "HEAD")
        old = _open(stack, snapshot, begin)
        return _compare(old, new, options, f"{begin}..{end}" if end else begin)


def _open(stack: ExitStack, snapshot: Snapshot, ref: str) -> Snapshot:
    index = snapshot.index.at(ref)
    if index.revision is not None:
        index.keep_fresh()
    return stack.enter_context(open_snapshot(index, snapshot.version))


def _compare(before: Snapshot, after: Snapshot, options: DiffOptions, said: str) -> Answer:
    old, new = before.relations, after.relations
    found = pair_definitions(before, after)
    pairs = [pair for pair in found.pairs if _fits(pair, options)]
    judge = _Judge(old, new, found.pairs)
    events = [event for pair in pairs for event in judge.find_events(pair)]
    events += _find_documents(new, [event for event in events if event.details.change in _GONE])
    if options.only:
        events = [event for event in events if event.kind in options.only]
    cut = list(found.cut)
    if len(events) > MAX_EVENTS:
        cut.append(Truncation("diff", "events", MAX_EVENTS, len(events), len(events) - MAX_EVENTS))
    events = sorted(events[:MAX_EVENTS], key=lambda event: event.order)
    counts = Counter(event.kind for event in events)
    shown, budget, more = take(events, options.page, _describe)
    sections = tuple(
        Section(title, kind, counts[kind], rows)
        for kind, title in CHANGES.items()
        if (rows := tuple(finding for finding in shown if finding.category == kind))
    )
    lost = sum(1 for event in events if event.kind in ("renamed", "moved") and event.details.public)
    is_there = {kind: bool(counts[kind] or (kind == "breaking" and lost)) for kind in CHANGES}
    failed = [kind for kind in CHANGES if kind in options.fail_on and is_there[kind]]
    slices = {kind: Slice(counts[kind], title.lower()) for kind, title in CHANGES.items() if counts[kind]}
    lines = _tell(counts, len(found.changed), len(found.files))
    return Answer(
        SCHEMA_VERSION,
        "diff",
        Run(generation=after.tree.generation),
        {
            "query": said, "from": _name(before), "to": _name(after), "files": len(found.changed),
            "files_moved": len(found.files), "public_renamed": lost,
            **{kind: counts[kind] for kind in CHANGES}, "not_allowed": failed,
            "diff_id": _identify(before, after, options),
        },
        found=len(events) + len(found.files),
        insight=Insight(
            neighborhood=slices,
            budget=msgspec.structs.replace(budget, used=count_tokens(sections, options.page.measure) + 60),
            headline=lines,
        ),
        sections=sections,
        truncated=(*cut, *more),
    )  # fmt: skip


def _name(snapshot: Snapshot) -> str:
    revision = snapshot.index.revision
    return revision.commit if revision is not None else "latest"


def _identify(before: Snapshot, after: Snapshot, options: DiffOptions) -> str:
    """Of what was compared and how: the same inputs, the same id."""
    states = [each.index.revision.tree if each.index.revision else _digest(each) for each in (before, after)]
    asked = [*states, *options.only, "", *options.path, "", *options.languages, str(options.public)]
    return f"diff_{content_hash(chr(0).join(asked).encode())[:16]}"


def _digest(snapshot: Snapshot) -> str:
    """Of the files of a work tree, by their paths and texts."""
    reader, tree = snapshot.reader, snapshot.tree.id
    texts = reader.hashes(tree, reader.all_paths(tree))
    return content_hash("\n".join(f"{path} {texts[path][0]}" for path in sorted(texts)).encode())


def _tell(counts: Counter[str], files: int, moved: int) -> str:
    names = {
        "breaking": "breaking", "callers": "broken at its callers", "signature": "with another signature",
        "removed": "removed", "renamed": "renamed", "moved": "moved", "added": "added", "body": "with another body",
        "text": "with other comments or format only",
    }  # fmt: skip
    said = [f"{counts[kind]:,} {words}" for kind, words in names.items() if counts[kind]]
    if not files and not moved:
        return "nothing differs"
    head = f"{count(files, 'file')} changed" + (f", {count(moved, 'file')} moved" if moved else "")
    return f"{head}: " + (", ".join(said) if said else "no definition differs")


def _fits(pair: Pair, options: DiffOptions) -> bool:
    side = pair.new or pair.old
    assert side is not None
    if options.path and not any(
        path == folder or path.startswith(f"{folder}/")
        for folder in options.path
        for path in (side.path, *([pair.old.path] if pair.old else []))
    ):
        return False
    if options.languages and side.row.file.documents[side.row.document].language not in options.languages:
        return False
    return not options.public or any(each is not None and each.is_public for each in (pair.old, pair.new))


class _Judge:
    """What became of each definition, and what that does to its callers."""

    def __init__(self, old: Relations, new: Relations, pairs: Sequence[Pair]) -> None:
        self.old, self.new = old, new
        both = [(pair.old.row.symbol.name, pair.new.row.symbol.name) for pair in pairs if pair.old and pair.new]
        self.holders = {
            (pair.old.path, pair.old.name): (pair.new.path, pair.new.name) for pair in pairs if pair.old and pair.new
        }
        self.names = {one: other for one, other in both if one != other}
        self.lone = {
            (side.path, side.name)
            for pair in pairs
            if not pair.old or not pair.new
            for side in (pair.old, pair.new)
            if side
        }

    def _rename(self, text: str) -> str:
        """With the names that definitions have now."""
        return re.sub(r"[^\W\d]\w*", lambda name: self.names.get(name[0], name[0]), text)

    def find_events(self, pair: Pair) -> Iterator[_Event]:
        old, new = pair.old, pair.new
        if (old is None or new is None) and self._is_part(old or new):
            return  # told with what holds it
        if old is None:
            assert new is not None
            yield self._event("added", pair, _sign(new))
            return
        if new is None:
            yield from self._find_removed(pair, old)
            return
        if (old.name != new.name or old.path != new.path) and not self._follows(old, new):
            yield from self._find_moved(pair, old, new)
        one, other = " ".join(old.row.symbol.signature.split()), " ".join(new.row.symbol.signature.split())
        was, now = read_parameters(self.old, old), read_parameters(self.new, new)
        reasons = find_breaking(old, new, was, now, self._rename)
        if reasons or self._rename(one) != other:
            yield from self._find_signed(pair, old, new, reasons)
        elif old.code != new.code and (old.name == new.name or self._follows(old, new)):
            yield self._event("body", pair, f"{new.name}: {_say_body(old, new)}")
        elif old.code == new.code and not new.members and (old.path, old.name) == (new.path, new.name):
            yield self._event("text", pair, new.name)

    def is_public(self, side: Side) -> bool:
        """Whether others may use it: by a module that is not hidden, or by one that stands for its folder and takes it
        over."""
        if not side.is_public:
            return False
        modules = [part for part in side.path.split("/") if part.startswith("_") and not part.startswith("__")]
        if not modules:
            return True
        relations = self.old if self.old.hold(side.path) is side.row.file else self.new
        symbols, number = side.row.siblings, side.row.number
        while symbols[number].parent >= 0:
            number = symbols[number].parent
        outermost = relations.find_place(Definition(side.row.file, side.row.document, number))
        files = describe(side.row.file.language).module_files
        return outermost is not None and any(
            edge.kind == "imports" and f"/{edge.source.path.rpartition('/')[2]}" in files
            for edge in relations.referrers.find_into(outermost, possible=False)
        )

    def _is_part(self, side: Side | None) -> bool:
        """Whether what holds a definition has come or gone as a whole, too."""
        above = side.name.rpartition(".")[0] if side is not None else ""
        return bool(above) and side is not None and (side.path, above) in self.lone

    def _follows(self, old: Side, new: Side) -> bool:
        """Whether only what holds a definition has another name or place, which is told of that."""
        (above, _, name), (other, _, same) = old.name.rpartition("."), new.name.rpartition(".")
        return bool(above) and name == same and self.holders.get((old.path, above)) == (new.path, other)

    def _find_removed(self, pair: Pair, old: Side) -> Iterator[_Event]:
        left, callers = self._find_left(old)
        kind = "breaking" if self.is_public(old) else "removed"
        message = f"{old.name} removed{_say_callers(callers, left)}"
        yield self._event(kind, pair, message, ("removed",), callers, left)
        if left:
            yield self._event("callers", pair, f"{old.name} is gone, and called {_at(left)}", (), callers, left)

    def _find_moved(self, pair: Pair, old: Side, new: Side) -> Iterator[_Event]:
        left, callers = self._find_left(old)
        kind = "renamed" if old.row.symbol.name != new.row.symbol.name else "moved"
        way = f"{old.name} → {new.name}" if old.name != new.name else old.name
        if old.path != new.path:
            way += f" ({old.path} → {new.path})"
        sure = f" ({pair.score:.2f}: {pair.reason})"
        follow = f", {count(callers - len(left), 'caller')} follow" if callers > len(left) else ""
        yield self._event(kind, pair, f"{way}{sure}{follow}", (pair.reason,), callers, left)
        if left:
            yield self._event(
                "callers", pair, f"{old.name} has another name, and is called {_at(left)}", (), callers, left
            )

    def _find_signed(self, pair: Pair, old: Side, new: Side, reasons: Sequence[str]) -> Iterator[_Event]:
        was, now = find_parameters(self.old, old.row), find_parameters(self.new, new.row)
        broken, tests, callers = list[str](), 0, 0
        if was is not None and now is not None and new.row.symbol.kind_group in FUNCTIONS:
            for verdict in judge_calls(self.new, new.row, was, now):
                callers += 1
                tests += find_role(verdict.edge.source.path) == "test"
                if verdict.verdict == "breaks":
                    broken.append(self.new.place(verdict.edge))
        kind = "breaking" if reasons and self.is_public(old) else "signature"
        what = "; ".join(reasons) or f"`{_sign(old)}` → `{_sign(new)}`"
        said = f"{new.name}: {what}"
        if callers:
            outside = f", {callers - tests} outside tests" if tests else ""
            outside = ", all in tests" if tests == callers else outside
            said += f"   {count(callers, 'caller')}{outside}" + (f", {len(broken)} not edited to fit" if broken else "")
        yield self._event(kind, pair, said, tuple(reasons), callers, broken)
        if broken:
            message = f"{new.name}: {what}; called as before {_at(broken)}"
            yield self._event("callers", pair, message, tuple(reasons), callers, broken)

    def _find_left(self, old: Side) -> tuple[list[str], int]:
        """Places of the new state that still call what is gone by its old name, and how many callers it had."""
        node = self.old.find_place(old.row)
        if node is None:
            return [], 0
        left: list[str] = []
        callers = 0
        name = old.row.symbol.name
        for edge in self.old.referrers.find_callers(node, possible=False):
            call = self.old.call(edge)
            if call is None:
                continue
            callers += 1
            source = edge.source
            held = self.new.hold(source.path)
            if held is None or call.name != name:
                continue
            for document, number in held.calls_named(frozenset((name,))):
                other = held.calls[document][number]
                if other.callee != call.callee or other.receiver != call.receiver:
                    continue
                meant = self.new.calls.find_call(source.path, document, number)
                if meant.candidates or meant.status == "external":
                    continue  # it may mean another now
                around = held.symbols[document][other.scope].qualified_name if other.scope >= 0 else ""
                if around == source.name.partition("#")[0]:
                    left.append(f"{source.path}:{held.lines.line(max(other.name_start, other.start))}")
        return sorted(set(left), key=_split_place), callers

    def _event(
        self,
        kind: str,
        pair: Pair,
        message: str,
        reasons: tuple[str, ...] = (),
        callers: int = 0,
        broken: Sequence[str] = (),
    ) -> _Event:
        side = pair.new or pair.old
        assert side is not None
        symbol = side.row.symbol
        details = ChangeDetails(
            kind, side.name, symbol.kind, side.row.file.role,
            old_name=pair.old.name if pair.old and pair.new else "",
            old_path=pair.old.path if pair.old and pair.new and pair.old.path != side.path else "",
            old_signature=_sign(pair.old) if pair.old else "",
            new_signature=_sign(pair.new) if pair.new else "",
            public=self.is_public(side), score=pair.score, reasons=reasons, callers=callers, broken=tuple(broken),
        )  # fmt: skip
        return _Event(kind, pair, details, message)


def _split_place(place: str) -> tuple[str, int]:
    path, _, line = place.rpartition(":")
    return path, int(line)


def _at(places: Sequence[str]) -> str:
    more = f" and {len(places) - MAX_SHOWN_CALLERS:,} more places" if len(places) > MAX_SHOWN_CALLERS else ""
    return f"at {', '.join(places[:MAX_SHOWN_CALLERS])}{more}"


def _say_callers(callers: int, left: Sequence[str]) -> str:
    if not callers:
        return ""
    return f"   {count(callers, 'caller')}" + (f", {len(left)} still call it" if left else "")


def _say_body(old: Side, new: Side) -> str:
    lines = [{*side.code.splitlines()} for side in (old, new)]
    return f"{len(lines[1] - lines[0])} lines in, {len(lines[0] - lines[1])} out"


def _sign(side: Side) -> str:
    return " ".join(side.row.symbol.signature.split()) or side.name


def _find_documents(new: Relations, events: Sequence[_Event]) -> list[_Event]:
    """Prose of the new state that names what is gone as code, where no other definition has the name."""
    gone = {event.pair.old.row.symbol.name: event for event in events if event.pair.old is not None}
    names = [name for name in sorted(gone) if len(name) > 3 and not new.files.definitions(name)][:MAX_GONE]
    found: list[_Event] = []
    for name in names:
        named = re.compile(rb"`[\w.:]*\b%s\b[^`\n]*`|\b%s\(\)" % ((re.escape(name.encode()),) * 2))
        for held in new.files.candidates((name,)):
            match = named.search(held.text) if held.role == "doc" else None
            if match is not None:
                place = f"{held.path}:{held.lines.line(match.start())}"
                details = msgspec.structs.replace(gone[name].details, change="docs", broken=(place,))
                found.append(_Event("docs", gone[name].pair, details, f"{place} names {name}"))
    return found


def _describe(event: _Event) -> Finding:
    side = event.side
    identity = content_hash("\0".join([event.kind, side.path, side.name, event.message]).encode())[:16]
    return Finding(event.kind, event.message, side.row.location, details=event.details, stable_id=identity)
