"""What a type stands under and over: supertypes, subtypes, members, and which of them override which."""

from __future__ import annotations

import msgspec

from cq.features.graph import describe_target
from cq.features.page import Page, count_tokens, take
from cq.features.relations import Relations
from cq.features.target import find_targets, say_nothing
from cq.graph.walk import Reached, walk
from cq.model.answer import SCHEMA_VERSION, Answer, Finding, Insight, Run, Section, Slice
from cq.model.edge import Candidate

MAX_DEPTH = 20


class TypesOptions(msgspec.Struct, frozen=True):
    target: str
    page: Page = Page(60)


def find_types(relations: Relations, options: TypesOptions) -> Answer:
    options.page.check()
    named = find_targets(relations.files, options.target)
    rows = [row for row in named if row.symbol.kind_group in ("class", "type")]
    if not rows:
        what = f"{named[0].symbol.kind} {named[0].symbol.qualified_name} is no class or type" if named else ""
        return say_nothing(relations.files, "types", options.target, what)
    # What Rust writes in `impl` blocks beside a type is the type's.
    blocks = [row for row in rows[1:] if row.symbol.kind == "impl" and row.file.path == rows[0].file.path]
    nodes = [relations.node(row) for row in (rows[0], *blocks)]
    up = walk(nodes, relations.dependencies(("inherits",), 0), depth=MAX_DEPTH, forward=True, order=relations.order)
    down = walk(nodes, relations.dependents(("inherits",), 0), depth=MAX_DEPTH, forward=False, order=relations.order)
    outside = [
        edge.ref.module or edge.ref.name
        for reached in up.nodes
        for edge in relations.edges.find_out(reached.node)
        if edge.kind == "inherits" and edge.ref.status == "external"
    ]
    members = [member for node in nodes for member in relations.members(node)]
    overridden = {
        member: [
            c for edge in relations.edges.find_out(member) if edge.kind == "overrides" for c in edge.ref.candidates
        ]
        for member in members
    }
    overriding = {
        member: [edge.source for edge in relations.edges.find_into(member) if edge.kind == "overrides"]
        for member in members
    }
    parts: list[tuple[str, list[Finding]]] = [
        ("Supertypes", [relations.describe(item) for item in up.nodes if item.distance]),
        ("Supertypes Outside", [Finding("external", name) for name in dict.fromkeys(outside)]),
        ("Subtypes", [relations.describe(item) for item in down.nodes if item.distance]),
        ("Members", [_describe_member(relations, member, overridden, overriding) for member in members]),
    ]
    everything = [(title, finding) for title, findings in parts for finding in findings]
    shown, budget, cut = take(everything, options.page, lambda item: item[1])
    kept = set(map(id, shown))
    sections = tuple(
        Section(title, title.lower().replace(" ", "_"), len(findings), rows_)
        for title, findings in parts
        if (rows_ := tuple(finding for finding in findings if id(finding) in kept))
    )
    slices = {title.lower(): Slice(len(findings), title.lower()) for title, findings in parts if findings}
    return Answer(
        SCHEMA_VERSION,
        "types",
        Run(generation=relations.files.generation),
        {"query": options.target, **{title.lower(): len(findings) for title, findings in parts}},
        found=1,
        insight=Insight(
            describe_target(rows),
            slices,
            budget=msgspec.structs.replace(budget, used=count_tokens(sections, options.page.measure) + 150),
        ),
        sections=sections,
        truncated=(*up.truncated, *down.truncated, *cut),
    )


def _describe_member(
    relations: Relations,
    member: Candidate,
    overridden: dict[Candidate, list[Candidate]],
    overriding: dict[Candidate, list[Candidate]],
) -> Finding:
    finding = relations.describe(Reached(member, 0, (), 1.0))
    above = [relations.label(place) for place in overridden[member]]
    below = len(overriding[member])
    words = [f"overrides {', '.join(above[:2])}"] if above else []
    words += [f"overridden {below} time{'s' * (below != 1)}"] if below else []
    return msgspec.structs.replace(finding, message=f"{finding.message}{': ' if words else ''}{'; '.join(words)}")
