"""What a definition depends on and what depends on it: a bounded walk over the links, and ways between two."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import msgspec

from cq.graph.walk import Link, Reached, Walk, find_paths, walk
from cq.model.answer import (
    SCHEMA_VERSION,
    Answer,
    Confidence,
    Finding,
    GraphEdge,
    Insight,
    NodeDetails,
    Run,
    Section,
    Slice,
    bucket,
)
from cq.model.edge import Candidate
from cq.model.errors import UsageError
from cq.model.status import Degraded
from cq.questions.page import Page, count_tokens, take
from cq.questions.relations import KINDS, POSSIBLE, Relations, check_walk, say_doubt
from cq.questions.target import Definition, describe_target, find_targets, say_nothing

MAX_REACHED = 500
DIRECTIONS = ("dependents", "dependencies", "both")


class GraphOptions(msgspec.Struct, frozen=True):
    """A walk in full. `least` is the confidence a link must have; above .3 nothing is only possible."""

    target: str
    depth: int = 1
    direction: str = "both"
    edges: tuple[str, ...] = KINDS
    least: float = 0.0
    page: Page = Page(40)

    def check(self) -> None:
        self.page.check()
        check_walk(self.depth, self.edges, self.least)
        if self.direction not in DIRECTIONS:
            raise UsageError(f"unknown direction {self.direction!r}", hint=f"one of {', '.join(DIRECTIONS)}")


def find_graph(relations: Relations, options: GraphOptions) -> Answer:
    """Nodes by distance, then confidence, each with one witness path."""
    options.check()
    targets = find_targets(relations.files, options.target)
    if not targets:
        return say_nothing(relations.files, "graph", options.target)
    centers = find_centers(relations, targets[:1])
    walks: dict[str, Walk[Candidate]] = {}
    for direction in DIRECTIONS[:2] if options.direction == "both" else (options.direction,):
        walks[direction] = walk_from(relations, centers, direction, options.depth, options.edges, options.least)
    rows = [(name, reached) for name, found in walks.items() for reached in found.nodes if reached.distance]
    shown, budget, cut = take(rows, options.page, lambda row: relations.describe(row[1]))
    first = (options.page.number - 1) * options.page.size
    names = [name for name, _ in rows[first : first + len(shown)]]
    sections = tuple(
        Section(name.capitalize(), name, sum(1 for row in rows if row[0] == name), findings)
        for name in walks
        if (findings := tuple(finding for finding, at in zip(shown, names, strict=True) if at == name))
    )
    links = list(dict.fromkeys(link for found in walks.values() for link in found.links))
    slices = {
        name: Slice(len(found.nodes) - len(centers), f"{name} within {options.depth}") for name, found in walks.items()
    }
    return Answer(
        SCHEMA_VERSION,
        "graph",
        Run(generation=relations.files.generation),
        {"query": options.target, "depth": options.depth, "direction": options.direction, "edges": list(options.edges)},
        found=len(rows),
        insight=Insight(
            describe_target(targets),
            slices,
            confidence=_confidence([reached for _, reached in rows]),
            budget=msgspec.structs.replace(budget, used=count_tokens(sections, options.page.measure) + 150),
        ),
        sections=sections,
        truncated=(*(cap for found in walks.values() for cap in found.truncated), *cut),
        edges=describe_links(relations, links),
    )


class PathOptions(msgspec.Struct, frozen=True):
    source: str
    target: str
    edges: tuple[str, ...] = ("calls", "instantiates", "decorates")
    least: float = 0.0
    limit: int = 3


def find_path(relations: Relations, options: PathOptions) -> Answer:
    """The shortest chains from one definition to another, certain links first."""
    starts, goals = (find_targets(relations.files, text) for text in (options.source, options.target))
    for text, rows in ((options.source, starts), (options.target, goals)):
        if not rows:
            return say_nothing(relations.files, "path", text)
    ahead = relations.dependencies(options.edges, options.least)
    certain = relations.dependencies(options.edges, max(options.least, POSSIBLE + 0.01))
    wanted = set(find_centers(relations, _drop_overloads(goals)))
    if wanted.issuperset(find_centers(relations, starts)):
        message = f"{options.source!r} and {options.target!r} are the same definition"
        return say_nothing(relations.files, "path", f"{options.source} → {options.target}", message)
    chains: list[tuple[Link[Candidate], ...]] = []
    cut = False
    for row in starts:  # the likeliest first
        centers = find_centers(relations, [row])
        # Where certain links lead there, no shorter way over possible ones is shown.
        for ask in (certain, ahead):
            chains, cut = find_paths(
                centers, wanted.difference(centers), ask, order=relations.order, limit=options.limit
            )
            if chains:
                break
        if chains:
            break
    sections = tuple(
        Section(f"Way {number}", "path", len(chain), tuple(_describe_step(relations, link) for link in chain))
        for number, chain in enumerate(chains[: options.limit], 1)
    )
    events = (Degraded("path", "warning", "cut_short", "the search was cut short: there may be a longer way", ""),)
    return Answer(
        SCHEMA_VERSION,
        "path",
        Run(generation=relations.files.generation),
        {
            "query": f"{options.source} → {options.target}",
            "steps": len(chains[0]) if chains else 0,
            "ways": len(chains),
        },
        found=len(chains),
        insight=Insight(describe_target(starts)) if chains else None,
        sections=sections,
        degraded=events if cut and not chains else (),
        edges=describe_links(relations, [link for chain in chains for link in chain]),
    )


def _drop_overloads(rows: Sequence[Definition]) -> list[Definition]:
    """Of overloads the one that has the code."""
    coded = {(row.file.path, row.document, row.symbol.qualified_name) for row in rows if not row.is_declared}
    return [
        row
        for row in rows
        if not row.is_declared or (row.file.path, row.document, row.symbol.qualified_name) not in coded
    ]


def walk_from(
    relations: Relations,
    centers: Sequence[Candidate],
    direction: str,
    depth: int,
    edges: Sequence[str],
    least: float,
    beside: Sequence[Link[Candidate]] = (),
) -> Walk[Candidate]:
    """`beside` are links into the centers that are known already."""
    forward = direction == "dependencies"
    ask = relations.dependencies(edges, least) if forward else relations.dependents(edges, least)
    room = MAX_REACHED + len(centers)  # a class comes with its methods: they must not use it up

    def ask_all(nodes: Collection[Candidate]) -> Iterable[Link[Candidate]]:
        return [*ask(nodes), *(beside if nodes == centers else ())]

    return walk(centers, ask_all, depth=depth, forward=forward, order=relations.order, max_nodes=room)


def find_centers(relations: Relations, rows: Sequence[Definition]) -> list[Candidate]:
    """What stands for the targets: a class with its methods, since whoever uses one of them uses the class."""
    found: dict[Candidate, None] = {}
    for row in rows:
        node = relations.center(row)
        found[node] = None
        if row.symbol.kind_group in ("class", "type"):
            found |= dict.fromkeys(relations.members(node))
    return list(found)


def describe_links(relations: Relations, links: Iterable[Link[Candidate]]) -> tuple[GraphEdge, ...]:
    """Those of two calls on one line once."""
    found: dict[GraphEdge, None] = {}
    for link in links:
        source, target = relations.label(link.source), relations.label(link.target)
        edge = GraphEdge(source, target, link.kind, link.confidence, link.status, relations.place(link))
        found[edge] = None
    return tuple(found)


def _describe_step(relations: Relations, link: Link[Candidate]) -> Finding:
    step = relations.describe(Reached(link.target, 1, (link,), link.confidence))
    details = step.details
    if isinstance(details, NodeDetails):
        doubt = say_doubt(link.status)
        message = f"{relations.label(link.source)} {link.kind} {details.name} at {relations.place(link)}{doubt}"
        step = msgspec.structs.replace(step, message=message)
    return step


def _confidence(rows: Sequence[Reached[Candidate]]) -> Confidence | None:
    if not rows:
        return None
    lowest = min(row.confidence for row in rows)
    certain = all(link.status == "resolved" for row in rows for link in row.path)
    return Confidence("resolved" if certain else "heuristic", lowest, bucket(lowest))
