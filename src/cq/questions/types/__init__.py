"""What a type stands under and over: supertypes, subtypes, members, and which of them override which; of a method what
it overrides and what overrides it. Where the language says it: parameters, results, values, guards, the structure of
types, and functions that are handed over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec

from cq.answers.handed import describe_handed
from cq.answers.options import OneTarget, Option, Options, Paged
from cq.answers.page import Page, count_tokens, take
from cq.graph.walk import Reached, walk
from cq.model.answer import SCHEMA_VERSION, Answer, Finding, Insight, NodeDetails, Run, Section, Slice, Truncation
from cq.model.edge import Candidate
from cq.model.errors import UsageError
from cq.model.facts import is_looked_up
from cq.model.status import Degraded
from cq.questions.types.facts import TypeFacts
from cq.snapshot.relations import Relations, linked
from cq.snapshot.target import Definition, describe_target, find_targets, say_nothing
from cq.source.role import find_role

if TYPE_CHECKING:
    from cq.snapshot.snapshot import Snapshot

MAX_DEPTH = 20
MAX_LEVELS = 12  # of the structure of a type
_COUNTED = {
    "Type Parameters": "parameters of its type", "Referenced Types": "types that it names",
    "Hands Over": "functions that it hands over", "Handed Over": "times handed over",
    "Overrides": "overridden methods", "Overridden By": "overriding methods",
}  # fmt: skip
_SINGLE = frozenset({"Declaration", "Returns", "Type", "Value", "Structure"})


class TypesOptions(Options, frozen=True):
    examples: ClassVar[str] = """\
  cq types QuerySet
  cq types django/db/models/query.py:QuerySet --format json
  cq types describeShape            of a function: its types, its guards, the functions it hands over
  cq types DeepPartial --depth 3    of an alias: its structure, so many levels of it"""

    target: OneTarget
    depth: Annotated[int, Option("levels of the structure of a type (default: 1)", metavar="N")] = 1
    page: Paged = Page(60)


@linked
def ask(snapshot: Snapshot, options: TypesOptions) -> Answer:
    relations = snapshot.relations
    options.page.check()
    if not 1 <= options.depth <= MAX_LEVELS:
        raise UsageError(f"--depth {options.depth} is out of range", hint=f"it is 1 to {MAX_LEVELS}")
    facts = TypeFacts(relations, options.depth)
    named = find_targets(relations.files, options.target)
    rows = [row for row in named if row.symbol.kind_group in ("class", "type")]
    methods = [row for row in named if row.symbol.kind_group == "method"]
    if methods and not rows:
        return _find_overrides(relations, options, methods, facts)
    if not rows and (own := facts.describe(named[0]) if named else []):
        own += _describe_handed(facts, named[0])
        return _make_answer(relations, options, named, own, ())
    if not rows:
        what = f"{named[0].symbol.kind} {named[0].symbol.qualified_name} is no class or type" if named else ""
        return say_nothing(relations.files, "types", options.target, what)
    # What Rust writes in `impl` blocks beside a type is the type's, and TypeScript may declare an interface in parts.
    whole = [row for row in rows if row is rows[0] or (row.symbol.kind in _PARTS and _is_beside(row, rows[0]))]
    nodes = [relations.node(row) for row in whole]
    up = walk(nodes, relations.dependencies(("inherits",), 0), depth=MAX_DEPTH, forward=True, order=relations.order)
    down = walk(nodes, relations.dependents(("inherits",), 0), depth=MAX_DEPTH, forward=False, order=relations.order)
    outside = [
        edge.ref.module or edge.ref.name
        for reached in up.nodes
        for edge in relations.referrers.find_out(reached.node)
        if edge.kind == "inherits" and edge.ref.status == "external"
    ]
    members = [member for node in nodes for member in relations.members(node)]
    overridden = {
        member: [
            c for edge in relations.referrers.find_out(member) if edge.kind == "overrides" for c in edge.ref.candidates
        ]
        for member in members
    }
    overriding = {
        member: [edge.source for edge in relations.referrers.find_into(member) if edge.kind == "overrides"]
        for member in members
    }
    own = facts.describe(rows[0])
    bases = {place: word for row in whole for place, word in facts.shapes.find_heritage(row).items()}
    if own:
        described = [
            facts.describe_member(
                member, _say_overrides(relations, relations.find_place(member), overridden, overriding)
            )
            for row in whole
            for member in facts.list_members(row)
        ]
    else:
        described = [_describe_member(relations, member, overridden, overriding) for member in members]
        described += [_describe_field(field) for row in whole for field in _find_fields(relations, row)]
    parts: list[tuple[str, list[Finding]]] = [
        *own[:2],
        ("Supertypes", [_describe_base(facts, item, bases.get(item.node, "")) for item in up.nodes if item.distance]),
        ("Supertypes Outside", [Finding("external", name) for name in dict.fromkeys(outside)]),
        (
            "Subtypes",
            [_describe_base(facts, item, _say_base(facts, item, whole)) for item in down.nodes if item.distance],
        ),
        ("Members", described),
        *own[2:],
    ]
    lost = [base for row in whole for base in _find_lost(relations, row)]
    notes = tuple(Degraded("types", "info", "unknown_base", f"the base {b} is not known", b) for b in lost)
    targets = [rows[0], *(row for row in rows if row not in whole)]
    return _make_answer(relations, options, targets, parts, (*up.truncated, *down.truncated), notes)


def _make_answer(
    relations: Relations,
    options: TypesOptions,
    targets: list[Definition],
    parts: list[tuple[str, list[Finding]]],
    truncated: tuple[Truncation, ...],
    notes: tuple[Degraded, ...] = (),
    found: int = 1,
) -> Answer:
    everything = [(title, finding) for title, findings in parts for finding in findings]
    shown, budget, cut = take(everything, options.page, lambda item: item[1])
    kept = set(map(id, shown))
    sections = tuple(
        Section(title, title.lower().replace(" ", "_"), len(findings), rows_)
        for title, findings in parts
        if (rows_ := tuple(finding for finding in findings if id(finding) in kept))
    )
    slices = {
        title.lower(): Slice(len(findings), _COUNTED.get(title, title.lower()))
        for title, findings in parts
        if findings and title not in _SINGLE
    }
    return Answer(
        SCHEMA_VERSION,
        "types",
        Run(generation=relations.files.generation),
        {"query": options.target, **{title.lower().replace(" ", "_"): len(findings) for title, findings in parts}},
        found=found,
        insight=Insight(
            describe_target(targets),
            slices,
            budget=msgspec.structs.replace(budget, used=count_tokens(sections, options.page.measure) + 150),
        ),
        sections=sections,
        degraded=notes,
        truncated=(*truncated, *cut),
    )


def _describe_base(facts: TypeFacts, item: Reached[Candidate], word: str) -> Finding:
    """A super- or subtype, with how it is one as far as the source says it: extends, implements."""
    finding, symbol = facts.relations.describe(item), facts.relations.symbol(item.node)
    known: dict[str, str | int | bool | tuple[str, ...]] = {}
    message = finding.message
    if word:
        known["relation"] = word
        message = message.replace("(inherits", f"({word}", 1)
    if symbol is not None and "abstract" in symbol.modifiers:
        known["is_abstract"] = True
        message = f"abstract {message}"
    if not known or not isinstance(finding.details, NodeDetails):
        return finding
    details = msgspec.structs.replace(finding.details, facts=known)
    return msgspec.structs.replace(finding, message=message, details=details)


def _say_base(facts: TypeFacts, item: Reached[Candidate], rows: list[Definition]) -> str:
    """How a direct subtype names what it is one of."""
    row = facts.shapes.find_row(item.node) if item.distance == 1 else None
    bases = facts.shapes.find_heritage(row) if row is not None else {}
    return next((bases[node] for each in rows if (node := facts.relations.node(each)) in bases), "")


def _describe_handed(facts: TypeFacts, row: Definition) -> list[tuple[str, list[Finding]]]:
    """What a function hands to others, and where it is handed over itself."""
    shapes = facts.shapes
    return [
        ("Hands Over", [describe_handed(shapes, item, outwards=True) for item in shapes.find_handed_by(row)]),
        ("Handed Over", [describe_handed(shapes, item, outwards=False) for item in shapes.find_handed_over([row])]),
    ]


def _find_overrides(relations: Relations, options: TypesOptions, rows: list[Definition], facts: TypeFacts) -> Answer:
    """Of a method: what it overrides and what overrides it, over all classes between."""
    node = relations.node(rows[0])
    up = walk([node], relations.dependencies(("overrides",), 0), depth=MAX_DEPTH, forward=True, order=relations.order)
    down = walk([node], relations.dependents(("overrides",), 0), depth=MAX_DEPTH, forward=False, order=relations.order)
    parts = [
        ("Overrides", [relations.describe(item) for item in up.nodes if item.distance]),
        ("Overridden By", [relations.describe(item) for item in down.nodes if item.distance]),
    ]
    if own := facts.describe(rows[0]):
        parts = [*own, *parts, *_describe_handed(facts, rows[0])]
    return _make_answer(
        relations, options, rows, parts, (*up.truncated, *down.truncated), found=sum(len(f) for _, f in parts)
    )


_PARTS = ("impl", "interface")


def _is_beside(row: Definition, other: Definition) -> bool:
    return row.file.path == other.file.path and row.symbol.qualified_name == other.symbol.qualified_name


def _find_fields(relations: Relations, row: Definition) -> list[Definition]:
    """What a type holds that is no function or type."""
    symbols = row.file.symbols[row.document]
    found = [
        Definition(row.file, row.document, number)
        for number, symbol in enumerate(symbols)
        if symbol.parent == row.number and symbol.kind_group == "value" and is_looked_up(symbol, symbols)
    ]
    return [field for field in found if relations.find_place(field) is None]


def _describe_field(row: Definition) -> Finding:
    symbol = row.symbol
    role = find_role(row.file.path)
    symbol_id = row.file.name_symbol(row.document, row.number)[0]
    details = NodeDetails(symbol.qualified_name, symbol.kind, role, symbol_id=symbol_id)
    return Finding("node", f"{symbol.kind} {symbol.qualified_name}", row.location, details=details)


def _find_lost(relations: Relations, row: Definition) -> list[str]:
    """Bases that nobody knows, as they are written."""
    edges = [edge for edge in relations.referrers.find_out(relations.node(row)) if edge.kind == "inherits"]
    bases = row.symbol.bases if len(row.symbol.bases) == len(edges) else ("a base",) * len(edges)
    return [base for base, edge in zip(bases, edges, strict=True) if edge.ref.status == "unresolved"]


def _describe_member(
    relations: Relations,
    member: Candidate,
    overridden: dict[Candidate, list[Candidate]],
    overriding: dict[Candidate, list[Candidate]],
) -> Finding:
    finding = relations.describe(Reached(member, 0, (), 1.0))
    words = _say_overrides(relations, member, overridden, overriding)
    return msgspec.structs.replace(finding, message=f"{finding.message}{': ' if words else ''}{'; '.join(words)}")


def _say_overrides(
    relations: Relations,
    member: Candidate | None,
    overridden: dict[Candidate, list[Candidate]],
    overriding: dict[Candidate, list[Candidate]],
) -> list[str]:
    above = [relations.label(place) for place in overridden.get(member, ())] if member is not None else []
    below = len(overriding.get(member, ())) if member is not None else 0
    words = [f"overrides {', '.join(above[:2])}"] if above else []
    return words + ([f"overridden {below} time{'s' * (below != 1)}"] if below else [])
