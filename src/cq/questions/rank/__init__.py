"""Where to start in a repository: the definitions that most of it depends on, directly or through others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec

from cq.answers.options import Exclude, Include, Inside, Option, Options, Paged
from cq.answers.page import Page, count_tokens, take
from cq.answers.words import count
from cq.graph.walk import Reached, rank
from cq.model.answer import SCHEMA_VERSION, Answer, Finding, Insight, Run, Section, Slice
from cq.model.edge import Candidate
from cq.snapshot.relations import linked
from cq.source.files import PathFilter
from cq.source.role import find_role

if TYPE_CHECKING:
    from cq.snapshot.snapshot import Snapshot


class RankOptions(Options, frozen=True):
    """`tests` counts what tests depend on too."""

    examples: ClassVar[str] = """\
  cq rank                     where to start in a repository
  cq rank --in src/db         of one part of it
  cq rank --tests             what tests depend on counts too"""

    inside: Inside = ()
    include: Include = ()
    exclude: Exclude = ()
    tests: Annotated[bool, Option("count what tests depend on too")] = False
    page: Paged = Page(20)


@linked
def ask(snapshot: Snapshot, options: RankOptions) -> Answer:
    """PageRank over the certain links; the score is the share of all attention."""
    relations = snapshot.relations
    options.page.check()
    is_wanted = PathFilter(options.include, options.exclude, options.inside)
    numbers: dict[Candidate, int] = {}
    links: list[tuple[int, int]] = []
    for edge in relations.certain_edges():
        if not options.tests and find_role(edge[0].path) == "test":
            continue
        pair = tuple(numbers.setdefault(node, len(numbers)) for node in edge)
        links.append((pair[0], pair[1]))
    scores = rank(len(numbers), links)
    incoming = [0] * len(numbers)
    for _, target in set(links):
        incoming[target] += 1
    nodes = sorted(
        (node for node in numbers if node.name and incoming[numbers[node]] and is_wanted(node.path)),
        key=lambda node: (-scores[numbers[node]], node),
    )

    def make(node: Candidate) -> Finding:
        finding = relations.describe(Reached(node, 0, (), 1.0))
        users, score = incoming[numbers[node]], scores[numbers[node]]
        depend = f"{count(users, 'definition')} depend{'s' * (users == 1)} on it"
        message = f"{finding.message}: {score:.2%}, {depend}"
        return msgspec.structs.replace(finding, message=message, score=round(score, 6), count=users)

    shown, budget, cut = take(nodes, options.page, make)
    sections = (Section("Most Depended On", "rank", len(nodes), tuple(shown)),) if shown else ()
    return Answer(
        SCHEMA_VERSION,
        "rank",
        Run(generation=relations.files.generation),
        {"query": "the most depended-on definitions", "definitions": len(nodes), "links": len(set(links))},
        found=len(nodes),
        insight=Insight(
            None,
            {"links": Slice(len(set(links)), "certain links")},
            headline=f"ranked by the share of {count(len(set(links)), 'certain link')} that leads to it",
            budget=msgspec.structs.replace(budget, used=count_tokens(sections, options.page.measure) + 100),
        )
        if nodes
        else None,
        sections=sections,
        truncated=tuple(cut),
    )
