"""What a definition depends on and what depends on it: a bounded walk over the links, and ways between two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec

from cq.answers.edges import Edges, Least
from cq.answers.options import OneTarget, Option, Options, Paged
from cq.answers.page import Page, count_tokens, take
from cq.answers.unlinked import note_unlinked
from cq.answers.words import count
from cq.graph.walk import Reached, Walk
from cq.model.answer import SCHEMA_VERSION, Answer, Confidence, Insight, Run, Section, Slice, bucket
from cq.model.edge import Candidate
from cq.model.errors import UsageError
from cq.snapshot.relations import KINDS, check_walk, linked
from cq.snapshot.target import describe_target, find_targets, say_nothing
from cq.snapshot.walks import describe_links, find_centers, walk_from

if TYPE_CHECKING:
    from cq.snapshot.snapshot import Snapshot

DIRECTIONS = ("dependents", "dependencies", "both")


class GraphOptions(Options, frozen=True):
    """A walk in full. `least` is the confidence a link must have; above .3 nothing is only possible."""

    examples: ClassVar[str] = """\
  cq graph QuerySet.get --depth 2                         both ways, two steps
  cq graph save --direction dependents --edges calls      who calls it
  cq graph Parser --format mermaid                        a picture"""

    target: OneTarget
    depth: Annotated[int, Option("how many steps (default: 1)", metavar="N")] = 1
    direction: Annotated[str, Option("both (default), or one way", choices=DIRECTIONS)] = "both"
    edges: Edges = KINDS
    least: Least = 0.0
    page: Paged = Page(40)

    def check(self) -> None:
        self.page.check()
        check_walk(self.depth, self.edges, self.least)
        if self.direction not in DIRECTIONS:
            raise UsageError(f"unknown direction {self.direction!r}", hint=f"one of {', '.join(DIRECTIONS)}")


@linked
def ask(snapshot: Snapshot, options: GraphOptions) -> Answer:
    """Nodes by distance, then confidence, each with one witness path."""
    relations = snapshot.relations
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
        name: Slice(len(found.nodes) - len(centers), f"{name} within {count(options.depth, 'step')}")
        for name, found in walks.items()
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
        degraded=note_unlinked(relations, "graph", targets[:1]) if "dependents" in walks else (),
        truncated=(*(cap for found in walks.values() for cap in found.truncated), *cut),
        edges=describe_links(relations, links),
    )


def _confidence(rows: Sequence[Reached[Candidate]]) -> Confidence | None:
    if not rows:
        return None
    lowest = min(row.confidence for row in rows)
    certain = all(link.status == "resolved" for row in rows for link in row.path)
    return Confidence("resolved" if certain else "heuristic", lowest, bucket(lowest))
