"""The linked code as a graph of definitions: who depends on whom, by which calls, with what doubt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import wraps
from typing import TYPE_CHECKING, TypeVar

import msgspec

from cq.graph.corpus import MAX_EMBEDDED
from cq.graph.walk import Link, Neighbors, Reached
from cq.language import Offer, all_languages, describe
from cq.model.answer import Answer, Finding, NodeDetails
from cq.model.edge import RELATIONS, Candidate, Edge
from cq.model.errors import UsageError, suggest
from cq.model.facts import Call, is_looked_up
from cq.model.status import Degraded
from cq.semantics.memory import remembered
from cq.snapshot.target import Definition, find_part, module_name
from cq.source.role import find_role

if TYPE_CHECKING:
    from cq.model.facts import Symbol
    from cq.model.location import Location
    from cq.semantics.usages import Read
    from cq.snapshot.files import HeldFile, IndexedFiles
    from cq.snapshot.snapshot import Snapshot

_Options = TypeVar("_Options")
KINDS = ("calls", "instantiates", "decorates", "imports", "usages", "inherits", "overrides", "type_uses", "raises")
CALLS = ("calls", "instantiates", "decorates")
MAX_DEPTH = 10
POSSIBLE = 0.3  # a link at or below this confidence is only possible


def can_mention(language: str, other: str) -> bool:
    """Whether code of a language can name a definition of another."""
    return describe(language).family == describe(other).family


def linked(ask: Callable[[Snapshot, _Options], Answer]) -> Callable[[Snapshot, _Options], Answer]:
    """For a question that is answered from links: its answer says where they lack something."""

    @wraps(ask)
    def asking(snapshot: Snapshot, options: _Options) -> Answer:
        answer = ask(snapshot, options)
        return note_unlinked(snapshot.indexed, answer) if snapshot.is_indexed else answer

    return asking


def note_unlinked(files: IndexedFiles, answer: Answer) -> Answer:
    """With an event where code could not be linked by a mistake of ours, where the target stands in a code block behind
    those of a page that are linked, and where it is of a language whose links nobody knows."""
    if mistakes := files.mistakes():
        lost = sum(1 for made in mistakes.values() if not all(each.homes for each in made))
        message = (
            f"mistakes of cq, which `cq status` lists, left {lost:,} files without links"
            f" and {len(mistakes) - lost:,} with a part of them"
        )
        event = Degraded(answer.command, "warning", "mistake", message, min(mistakes))
        answer = msgspec.structs.replace(answer, degraded=(*answer.degraded, event))
    where = answer.insight.target.location if answer.insight is not None and answer.insight.target is not None else None
    held = files.get(where.path) if where is not None else None
    if answer.command in _BY_LINKS and (names := _find_unlinked(files, answer, held)):
        message = f"what refers to what is not known in {', '.join(names)}: none found is not that there is none"
        event = Degraded(answer.command, "warning", "not_linked", message)
        answer = msgspec.structs.replace(answer, degraded=(*answer.degraded, event))
    if where is None or held is None or held.counts.get("documents", 0) <= MAX_EMBEDDED:
        return answer
    late = [span for document in held.documents[MAX_EMBEDDED:] if document.segment for span in document.segment.ranges]
    if not any(start <= where.start < end for start, end in late):
        return answer
    message = f"of a page the first {MAX_EMBEDDED - 1} code blocks are linked; of this one only names are known"
    event = Degraded(answer.command, "warning", "not_linked", message, where.path)
    return msgspec.structs.replace(answer, degraded=(*answer.degraded, event))


_BY_LINKS = frozenset({"graph", "impact", "imports", "neighborhood", "path", "rank", "tests-for", "types"})


def _find_unlinked(files: IndexedFiles, answer: Answer, held: HeldFile | None) -> list[str]:
    """The languages without links that an answer is about: that of the target, or of all files where nothing is found
    among them."""
    if held is None and (answer.found or answer.command not in ("imports", "rank")):
        return []
    names = {held.language} if held is not None else {each.language for each in files.candidates(None)}
    return sorted(
        name
        for name in names
        if "calls" in describe(name).offers and not {"links", "candidates"} & {*describe(name).offers}
    )


def note_uncovered(relations: Relations, command: str, paths: Iterable[str], offer: Offer) -> list[Degraded]:
    """An event for code in languages that a question does not cover: nothing found there is not "none"."""
    counts = Counter(held.language for path in paths if (held := relations.hold(path)) is not None)
    lost = {
        name: count
        for name, count in sorted(counts.items())
        if offer not in describe(name).offers and "calls" in describe(name).offers
    }
    if not lost:
        return []
    said = ", ".join(f"{name} ({count:,} file{'s' * (count != 1)})" for name, count in lost.items())
    covered = sorted(name for name, each in all_languages().items() if offer in each.offers)
    message = f"not covered: {said}; `cq {command}` reads {', '.join(covered)}"
    return [Degraded(command, "warning", "language", message)]


def say_doubt(status: str) -> str:
    """What is added to a link that may mean something else."""
    return {"resolved": "", "ambiguous": ", possible"}.get(status, f", {status}")


def check_walk(depth: int, edges: Collection[str], least: float) -> None:
    """UsageError for a walk that cannot be."""
    if not 1 <= depth <= MAX_DEPTH:
        raise UsageError(f"--depth {depth} is out of range", hint=f"it is 1 to {MAX_DEPTH}")
    if not 0 <= least <= 1:
        raise UsageError(f"--min-confidence {least:g} is out of range", hint="it is 0 to 1")
    for name in edges:
        if name not in KINDS:
            hint = suggest(name, KINDS, f"kinds: {', '.join(KINDS)}")
            raise UsageError(f"there are no edges of kind {name!r}", hint=hint)


class Relations:
    """What the files of a tree and its links say together. Everything it remembers is in the memory of its files."""

    def __init__(self, files: IndexedFiles) -> None:
        semantics = files.semantics
        self.files, self.memory = files, files.memory
        self.documents, self.calls, self.meanings = semantics.documents, semantics.calls, semantics.meanings
        self.referrers, self.usages = semantics.referrers, semantics.usages

    def find_place(self, definition: Definition) -> Candidate | None:
        """The name that links know a definition by; None for a value, and for an overload without code."""
        return self.documents.find_place(*definition.key)

    def node(self, definition: Definition) -> Candidate:
        """The same; that of the function, class or module around it for a value."""
        path, document, number = definition.key
        own = definition.symbol
        if own.kind_group in ("function", "method") and own.body_start < 0:
            # An overload without code: what has the code stands for it.
            for at, other in enumerate(definition.siblings):
                if other.qualified_name == own.qualified_name and other.body_start >= 0:
                    number = at
        return self.documents.find_around(path, document, number)

    def center(self, definition: Definition) -> Candidate:
        """As `node`, but for a value that others can name: it is a node of its own, with what names it."""
        is_value = self.find_place(definition) is None and is_looked_up(definition.symbol, definition.siblings)
        return self.named(definition) if is_value else self.node(definition)

    def named(self, definition: Definition) -> Candidate:
        """What a mention of a definition leads to."""
        return self.meanings.find_own(*definition.key)

    def is_named_in(self, path: str, definition: Definition) -> bool:
        """Whether the code of a file names a definition for certain, besides where it is defined."""
        place, symbol = self.named(definition), definition.symbol
        own = (definition.file.path, definition.document, symbol.name_start)
        return any(
            ref is not None and ref.resolved == place and (path, document, start) != own
            for document, start, _, ref in self.meanings.find_mentions(path, symbol.name, (place,))
        )

    @remembered
    def definition(self, node: Candidate) -> Definition | None:
        """None for a module, which is no symbol, and for what is gone."""
        held, number = self.hold(node.path), self.documents.find_symbol(node)
        return None if held is None or number is None or number < 0 else Definition(held, node.document, number)

    def find_named(self, node: Candidate) -> Definition | None:
        """As `definition`, but for what links know by its name alone as well: a value, a parameter, a local."""
        found, held = self.definition(node), self.hold(node.path)
        if found is not None or held is None or not node.name:
            return found
        number = self._values(node.path, node.document).get(node.name)
        return None if number is None else Definition(held, node.document, number)

    @remembered
    def _values(self, path: str, document: int) -> dict[str, int]:
        held, found = self.hold(path), dict[str, int]()
        symbols = held.symbols[document] if held is not None and document < len(held.symbols) else ()
        for number in range(len(symbols)):
            found.setdefault(self.meanings.find_own(path, document, number).name, number)
        return found

    def symbol(self, node: Candidate) -> Symbol | None:
        found = self.definition(node)
        return found.symbol if found else None

    def members(self, node: Candidate) -> list[Candidate]:
        """The functions and classes that a class holds directly."""
        number = self.documents.find_symbol(node)
        numbers = () if number is None or number < 0 else self._children(node.path, node.document).get(number, ())
        places = [self.documents.find_place(node.path, node.document, number) for number in numbers]
        return [place for place in places if place is not None]

    @remembered
    def _children(self, path: str, document: int) -> dict[int, list[int]]:
        held, children = self.hold(path), dict[int, list[int]]()
        for number, symbol in enumerate(held.symbols[document] if held is not None else ()):
            children.setdefault(symbol.parent, []).append(number)
        return children

    def hold(self, path: str) -> HeldFile | None:
        return self.files.get(path)

    def paths(self) -> list[str]:
        """The files whose code is linked."""
        return self.files.linked_paths()

    def find_part(self, text: str) -> tuple[list[str], list[str]]:
        """The files whose code is linked, of all or of a path, directory or module; then those of all languages."""
        linked = self.paths()
        everything = sorted(held.path for held in self.files.candidates(None))
        if not text:
            return linked, everything
        part = find_part(self.files, everything, text)
        return sorted(set(linked).intersection(part)), part

    def call(self, edge: Edge | Link[Candidate]) -> Call | None:
        """The call site behind an edge, None for an edge that is no call."""
        held = self.hold(edge.source.path) if edge.call >= 0 else None
        return held.calls[edge.source.document][edge.call] if held else None

    def place(self, edge: Edge | Link[Candidate]) -> str:
        """Where, as path and line."""
        call, held = self.call(edge), self.hold(edge.source.path)
        if held is None:
            return edge.source.path
        if call is not None:
            return f"{edge.source.path}:{held.lines.line(max(call.name_start, call.start))}"
        symbol = self.symbol(edge.source)
        return f"{edge.source.path}:{held.lines.line(symbol.name_start)}" if symbol else edge.source.path

    def read_as_call(self, held: HeldFile, read: Read) -> Call:
        """What runs an accessor, `self.total`, as a call without arguments."""
        around = self.definition(read.source)
        spans = (read.first, read.end), (read.first, max(read.start - 1, read.first)), (read.start, read.end)
        callee, receiver, name = (held.text[start:end].decode("utf-8", "replace") for start, end in spans)
        scope = around.number if around is not None else -1
        return Call(read.kind, callee, name, receiver, read.first, read.end, read.start, scope)

    def dependents(self, kinds: Collection[str], least: float) -> Neighbors[Candidate]:
        """Links into each node of a round; those below `least` confidence are left out."""

        def ask(nodes: Collection[Candidate]) -> Iterable[Link[Candidate]]:
            for node in sorted(nodes):
                edges = self.referrers.find_into(node)
                usages = self.usages.find_usages_into(node, edges) if "usages" in kinds else ()
                for edge in (*edges, *usages):
                    if edge.kind in kinds and edge.ref.confidence >= least:
                        yield self._link(edge, node)

        return ask

    def dependencies(self, kinds: Collection[str], least: float) -> Neighbors[Candidate]:
        """Links out of each node of a round."""

        def ask(nodes: Collection[Candidate]) -> Iterable[Link[Candidate]]:
            for node in sorted(nodes):
                edges = self.referrers.find_out(node)
                usages = self.usages.find_usages_out(node, edges) if "usages" in kinds else ()
                for edge in (*edges, *usages):
                    if edge.kind in kinds and edge.ref.confidence >= least:
                        for target in edge.ref.candidates:
                            yield self._link(edge, target)

        return ask

    def certain_edges(self) -> Iterator[tuple[Candidate, Candidate]]:
        """Every resolved pair of source and target, by path."""
        for path in self.paths():
            for document, links in enumerate(self.documents.links(path)):
                if links is None:
                    continue
                sure = [ref.candidates[0] if ref.status == "resolved" else None for ref in links.refs]
                pairs = [*zip(links.scopes, links.calls, strict=True)]
                for kind in RELATIONS:
                    pairs += [("" if kind == "imports" else name, number) for name, number in getattr(links, kind)]
                for name, number in dict.fromkeys(pairs):
                    target = sure[number]
                    if target is not None:
                        yield Candidate(path, document, name), target

    def label(self, node: Candidate) -> str:
        """`path:name`, as a TARGET is written; the place of one that shares its name with another of the file."""
        row = self.definition(node) if node.shown_name != node.name else None
        if row is not None:
            return f"{node.path}:{row.location.start_line}:{row.location.start_col}"
        return f"{node.path}:{node.shown_name}" if node.name else node.path

    def describe(self, reached: Reached[Candidate]) -> Finding:
        """A node with its distance and one way to it."""
        node, row = reached.node, self.definition(reached.node)
        held = self.hold(node.path)
        location = row.location if row is not None else held.locate(0, 0) if held is not None else None
        last = reached.path[-1] if reached.path else None
        statuses = [link.status for link in reached.path]
        status = next((status for status in ("ambiguous", "unresolved") if status in statuses), "resolved")
        name = row.symbol.qualified_name if row is not None else module_name(node.path)
        details = NodeDetails(
            name,
            row.symbol.kind if row is not None else "module",
            find_role(node.path),
            reached.distance,
            status if last else "",
            last.kind if last else "",
            self.say_path(reached.path),
            row.file.name_symbol(row.document, row.number)[0] if row is not None else "",
        )
        way = f" ({last.kind}{self._say_where(last, location)}{say_doubt(status)})" if last else ""
        message = f"{details.symbol_kind} {name}{way}"
        return Finding("node", message, location, reached.confidence, reached.confidence, details)

    def say_path(self, path: Sequence[Link[Candidate]]) -> tuple[str, ...]:
        """Link by link, with where each stands."""
        return tuple(map(self._say, path))

    def _say_where(self, link: Link[Candidate], location: Location | None) -> str:
        """Where a link stands, as far as the place of the definition does not say it already."""
        place = self.place(link)
        if location is None or not f"{place}:".startswith(f"{location.path}:"):
            return f" at {place}"
        line = place.removeprefix(location.path).lstrip(":")
        return f" in line {line}" if line and line != str(location.start_line) else ""

    def _say(self, link: Link[Candidate]) -> str:
        doubt = say_doubt(link.status)
        return f"{self.label(link.source)} {link.kind} {self.label(link.target)} at {self.place(link)}{doubt}"

    def order(self, node: Candidate) -> tuple[int, Candidate]:
        """Sources before tests, then by name."""
        return (find_role(node.path) in ("test", "doc"), node)

    def _link(self, edge: Edge, target: Candidate) -> Link[Candidate]:
        return Link(edge.source, target, edge.kind, edge.ref.confidence, edge.ref.status, edge.call)
