"""What may go into a pack, in the order in which it does: every item with why it is here, what it costs and how to get
more."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from cq.answers.page import estimate
from cq.graph.walk import Link
from cq.model.answer import TestDetails
from cq.model.edge import Candidate
from cq.model.location import Location
from cq.snapshot.relations import KINDS, Relations, say_doubt
from cq.snapshot.target import Definition
from cq.source.role import find_role

if TYPE_CHECKING:
    from cq.questions.context import ContextOptions
    from cq.snapshot.files import HeldFile
    from cq.snapshot.snapshot import Snapshot

SLICES = ("primary", "callees", "callers", "types", "tests", "imports", "docs", "risk")
MAX_NEIGHBOURS = 200  # of one definition
MAX_EXCERPT = 24  # lines of one
MAX_TESTS = 12
MAX_DOCS = 5
_PART = re.compile(r"\s*(?:and|or|not|if|else|elif|for|in)\b|\s*[)\]}.,|&+]")
_SAID = {
    "callees": "runs", "callers": "run it", "types": "types that it is made with", "tests": "tests that reach it",
    "imports": "imports that it uses", "docs": "pages that name it",
}  # fmt: skip


class Item(msgspec.Struct, frozen=True):
    """`text` is source, byte for byte, or one line of contract; `key` tells what it is about from pack to pack."""

    relation: str
    name: str
    why: str
    text: str
    location: Location | None
    language: str = ""  # of source; "" is a line
    rank: float = 0.0
    more: str = ""

    @property
    def key(self) -> str:
        path = self.location.path if self.location is not None else ""
        return f"{self.relation}:{path}:{self.name}:{'source' if self.language else 'line'}"

    @property
    def mark(self) -> str:
        return hashlib.sha256(self.text.encode("utf-8", "replace")).hexdigest()[:12]

    @property
    def cost(self) -> int:
        """In tokens, with what is written around it."""
        path = self.location.path if self.location is not None else ""
        return estimate(f"{self.text}{self.name}{self.why}{self.more}{path}") + (18 if self.language else 12)


def read_primary(relations: Relations, row: Definition, share: int, most: int) -> Item:
    """The source of a definition inside the head of its class; collapsed where it alone takes more than its share."""
    held, symbol = row.file, row.symbol
    text = _cut_lines(held, symbol.start, symbol.end)
    heads: list[str] = []
    parent = symbol.parent
    while parent >= 0 and row.siblings[parent].body_start >= 0:
        around = row.siblings[parent]
        end = held.text.find(b"\n", around.head, around.body_start + 1)
        last = max(around.body_start, around.head) if end < 0 else max(end, around.body_start)
        heads.insert(0, _cut_lines(held, around.head, min(last, around.end)).split("\n")[0].rstrip())
        parent = around.parent
    language = held.documents[row.document].language
    whole = "\n".join([*heads, text]) if heads else text
    item = Item(
        "primary", symbol.qualified_name, "what is asked about", whole, held.locate(symbol.start, symbol.end), language,
        1.0, f"cq read {relations.label(relations.node(row))}",
    )  # fmt: skip
    if item.cost <= min(share, most):
        return item
    return collapse(item, min(share, most)) or item


def collapse(item: Item, room: int) -> Item | None:
    """The same source with its deepest blocks left out, each with how many lines it had, until it fits; None where
    nothing of it does."""
    lines = item.text.split("\n")
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    for limit in sorted(set(indents), reverse=True):
        shorter = msgspec.structs.replace(item, text="\n".join(_fold(lines, limit)), why=f"{item.why}, in short")
        if shorter.cost <= room:
            return shorter
    for count in range(min(len(lines), 40), 0, -1):
        folded = [*lines[:count], f"… {len(lines) - count} lines"]
        shorter = msgspec.structs.replace(item, text="\n".join(folded), why=f"{item.why}, its beginning")
        if shorter.cost <= room:
            return shorter
    return None


def _fold(lines: Sequence[str], limit: int) -> Iterator[str]:
    """Lines that stand further in than a limit, or as far, are counted instead of shown."""
    hidden, indent = 0, ""
    for line in lines:
        depth = len(line) - len(line.lstrip())
        if line.strip() and depth < limit:
            if hidden:
                yield f"{indent}… {hidden} lines"
                hidden = 0
            yield line
        elif line.strip() or hidden:
            indent = indent if hidden else line[:depth]
            hidden += bool(line.strip())
        else:
            yield line
    if hidden:
        yield f"{indent}… {hidden} lines"


def collect_items(
    snapshot: Snapshot, relations: Relations, rows: Sequence[Definition], options: ContextOptions
) -> tuple[list[Item], list[Item], dict[str, tuple[int, str]]]:
    """Lines of contract for all direct neighbours, excerpts by rank, and how many neighbours there are of each kind."""
    own = {relations.node(row) for row in rows}
    neighbours: dict[tuple[str, Candidate], list[Link[Candidate]]] = {}
    for row in rows:
        for relation, link, other in _find_neighbours(relations, row, own):
            if relation in options.slices:
                neighbours.setdefault((relation, other), []).append(link)
    ranked = sorted(neighbours.items(), key=lambda item: _rate(item[0], item[1]))
    contracts: list[Item] = []
    excerpts: list[Item] = []
    types = 0
    for (relation, place), links in ranked:
        if relation == "types":
            types += 1
            if types > options.max_types:
                continue
        contracts.append(_make_contract(relations, relation, place, links, options.max_evidence))
    for (relation, place), links in ranked:
        if relation == "callers":
            excerpts += _cut_calls(relations, place, links[:1])
        elif relation in ("callees", "types"):
            excerpts += _cut_definition(relations, relation, place, links)
    if "tests" in options.slices:
        contracts += _find_tests(snapshot, relations, rows)
    if "imports" in options.slices:
        contracts += _find_imports(relations, rows)
    if "docs" in options.slices:
        contracts += _find_docs(relations, rows)
    counts = {
        name: (sum(1 for item in contracts if item.relation == name), _SAID[name]) for name in SLICES[1:-1]
    }  # fmt: skip
    counts["types"] = (types, _SAID["types"])
    return contracts, excerpts, counts


def _find_neighbours(
    relations: Relations, row: Definition, own: set[Candidate]
) -> Iterator[tuple[str, Link[Candidate], Candidate]]:
    """What it runs, what runs it, and its types, each with the link that says so."""
    node = relations.center(row)
    inside = [node, *relations.members(node)] if row.symbol.kind_group == "class" else [node]
    mine = own | set(inside)
    out = relations.dependencies(KINDS, 0.0)(inside)
    for link in out:
        if link.target not in mine and link.target.name:
            is_type = link.kind in ("type_uses", "inherits")
            yield ("types" if is_type else "callees"), link, link.target
    for link in relations.dependents(KINDS, 0.0)(inside):
        if link.source not in mine:
            role = find_role(link.source.path)
            if link.kind == "inherits":
                yield "types", link, link.source
            elif link.source.name and role != "test":
                yield "callers", link, link.source


def _rate(key: tuple[str, Candidate], links: Sequence[Link[Candidate]]) -> tuple[Any, ...]:
    """The surest and most used first; what is only named alike last."""
    relation, place = key
    best = max(link.confidence for link in links)
    return -round(best, 1), SLICES.index(relation), -len(links), find_role(place.path) in ("test", "doc"), place


def _make_contract(
    relations: Relations, relation: str, place: Candidate, links: Sequence[Link[Candidate]], most: int
) -> Item:
    row = relations.definition(place)
    held = relations.hold(place.path)
    name = row.symbol.qualified_name if row is not None else place.shown_name or place.path
    signature = " ".join(row.symbol.signature.split()) if row is not None else name
    signature = signature if len(signature) <= 200 else f"{signature[:199]}…"
    doc = _first_sentence(row.symbol.doc) if row is not None and relation != "callers" else ""
    first = links[0]
    places = list(dict.fromkeys(relations.place(link) for link in links))
    more = f" and {len(places) - most} more" if len(places) > most else ""
    doubt = say_doubt(first.status)
    verb = {"callers": f"{first.kind} it", "callees": "used", "types": first.kind}[relation]
    text = f"{signature}{f'  # {doc}' if doc else ''}"
    location = row.location if row is not None else held.locate(0, 0) if held is not None else None
    return Item(
        relation, name, f"{verb} at {', '.join(places[:most])}{more}{doubt}", text, location, "",
        max(link.confidence for link in links), f"cq read {relations.label(place)}",
    )  # fmt: skip


def _first_sentence(doc: str) -> str:
    line = " ".join(doc.strip().strip("\"'").split())
    return re.split(r"(?<=[.!?])\s", line)[0][:160]


def _cut_calls(relations: Relations, place: Candidate, links: Iterable[Link[Candidate]]) -> Iterator[Item]:
    """The call where it stands: the whole of a short caller, else the statement."""
    row = relations.definition(place)
    for link in links:
        call, held = relations.call(link), relations.hold(place.path)
        if call is None or held is None or link.status == "unresolved" or link.confidence <= 0.3:
            continue
        start, end = call.start, call.end
        if row is not None and _count_lines(held, row.symbol.start, row.symbol.end) <= MAX_EXCERPT:
            start, end = row.symbol.start, row.symbol.end
        text = _cut_lines(held, start, end)
        # The head of a block, or a part of a condition, is no statement: the line of contract says where it is.
        if text.count("\n") >= MAX_EXCERPT or text.rstrip().endswith((":", "{")) or _PART.match(text):
            continue
        language = held.documents[place.document].language
        name = row.symbol.qualified_name if row is not None else place.path
        yield Item(
            "callers", name, f"{link.kind} it at {relations.place(link)}", text, held.locate(start, end), language,
            link.confidence, f"cq calls {link.target.shown_name}",
        )  # fmt: skip


def _cut_definition(
    relations: Relations, relation: str, place: Candidate, links: Sequence[Link[Candidate]]
) -> Iterator[Item]:
    row = relations.definition(place)
    if (
        row is None
        or links[0].confidence <= 0.3
        or row.symbol.kind_group not in ("function", "method", "class", "type")
    ):
        return
    held, symbol = row.file, row.symbol
    text = _cut_lines(held, symbol.start, symbol.end)
    language = held.documents[row.document].language
    item = Item(
        relation, symbol.qualified_name, f"{links[0].kind} at {relations.place(links[0])}", text,
        held.locate(symbol.start, symbol.end), language, links[0].confidence, f"cq read {relations.label(place)}",
    )  # fmt: skip
    if text.count("\n") < MAX_EXCERPT:
        yield item


def _find_tests(snapshot: Snapshot, relations: Relations, rows: Sequence[Definition]) -> Iterator[Item]:
    """Those that `cq tests-for` ranks first."""
    from cq.questions.table import QUESTIONS

    question = QUESTIONS["tests-for"]
    targets = tuple(f"{row.file.path}:{row.location.start_line}:{row.location.start_col}" for row in rows)
    answer = question.ask(snapshot, question.make_options(targets))
    for section in answer.sections:
        for finding in section.findings[:MAX_TESTS]:
            details = finding.details
            if isinstance(details, TestDetails):
                yield Item(
                    "tests", details.name, finding.message.partition("(")[2].rstrip(")"), details.argument,
                    finding.location, "", finding.score, "cq tests-for",
                )  # fmt: skip


def _find_imports(relations: Relations, rows: Sequence[Definition]) -> Iterator[Item]:
    """The imports of its file whose names it uses."""
    seen: set[tuple[str, int]] = set()
    for row in rows:
        held, symbol = row.file, row.symbol
        named = {
            name
            for name, start, _, _ in held.references[row.document]
            if symbol.start <= start < symbol.end
        }  # fmt: skip
        for item in held.imports[row.document][0]:
            names = {binding.local.partition(".")[0] for binding in item.bindings} | {item.module.partition(".")[0]}
            if not (symbol.start <= item.start < symbol.end) and names & named and (held.path, item.start) not in seen:
                seen.add((held.path, item.start))
                text = " ".join(_cut_lines(held, item.start, item.end).split())[:300]
                used = ", ".join(sorted(names & named))
                yield Item("imports", used, f"{symbol.name} uses {used}", text, held.locate(item.start, item.end))


def _find_docs(relations: Relations, rows: Sequence[Definition]) -> Iterator[Item]:
    """Lines of prose that name it in full."""
    for row in rows[:3]:
        name, count = row.symbol.qualified_name, 0
        word = re.compile(rb"(?<![\w.])" + re.escape(name.encode()) + rb"(?![\w])")
        if len(row.symbol.name) < 4:
            continue
        for file in relations.files.candidates((row.symbol.name,)):
            if file.role != "doc" or count >= MAX_DOCS:
                continue
            found = word.search(file.text)
            if found is not None:
                count += 1
                yield Item(
                    "docs", name, "named in a page", file.line_at(found.start(), 200).strip(),
                    file.locate(found.start(), found.end()), "", 0.3, f"cq read {file.path}",
                )  # fmt: skip


def _cut_lines(held: HeldFile, start: int, end: int) -> str:
    """Whole lines, byte for byte, with their indentation."""
    first = held.text.rfind(b"\n", 0, start) + 1
    last = held.text.find(b"\n", max(end - 1, start))
    return held.text[first : len(held.text) if last < 0 else last].decode("utf-8", "replace")


def _count_lines(held: HeldFile, start: int, end: int) -> int:
    return held.lines.line(max(end - 1, start)) - held.lines.line(start) + 1
