"""How one definition reaches another: the shortest chains of links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec

from cq.answers.edges import Least, edges_option
from cq.answers.options import Option, Options, Positive
from cq.answers.words import count
from cq.graph.walk import Link, Reached, find_paths
from cq.model.answer import SCHEMA_VERSION, Answer, Finding, Insight, NodeDetails, Run, Section
from cq.model.edge import Candidate
from cq.model.status import Degraded
from cq.snapshot.relations import POSSIBLE, Relations, linked, say_doubt
from cq.snapshot.target import Definition, describe_target, find_targets, say_nothing
from cq.snapshot.walks import describe_links, find_centers

if TYPE_CHECKING:
    from cq.snapshot.snapshot import Snapshot


_USUAL = ("calls", "instantiates", "decorates")


class PathOptions(Options, frozen=True):
    examples: ClassVar[str] = """\
  cq path main save                         the shortest chains of calls
  cq path main save --min-confidence 0.5    over certain links only"""

    source: Annotated[
        str, Option("where the way begins: a TARGET as for cq graph", metavar="A", argument=True, place="target")
    ]
    target: Annotated[str, Option("where it ends", metavar="B", argument=True, place="target")]
    edges: Annotated[tuple[str, ...], edges_option(",".join(_USUAL))] = _USUAL
    least: Least = 0.0
    limit: Annotated[Positive, Option("how many ways are shown (default: 3)", metavar="N", group="answer")] = 3


@linked
def ask(snapshot: Snapshot, options: PathOptions) -> Answer:
    """The shortest chains from one definition to another, certain links first."""
    relations = snapshot.relations
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
    cut, target = False, describe_target(starts)
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
            target = describe_target([row, *(other for other in starts if other is not row)])
            if row is not starts[0]:
                target = msgspec.structs.replace(target, reason="the likeliest that leads there")
            break
    sections = tuple(
        Section(f"Way {number}", "path", len(chain), tuple(_describe_step(relations, link) for link in chain))
        for number, chain in enumerate(chains[: options.limit], 1)
    )
    if cut:
        event = Degraded("path", "warning", "cut_short", "the search was cut short: there may be a longer way", "")
    else:
        event = Degraded("path", "info", "no_way", f"no way to {options.target} is known", options.target)
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
        insight=Insight(target, headline=_count(chains[: options.limit])),
        sections=sections,
        degraded=() if chains else (event,),
        edges=describe_links(relations, [link for chain in chains for link in chain]),
    )


def _count(chains: Sequence[Sequence[Link[Candidate]]]) -> str:
    return f"{count(len(chains), 'way')} of {count(len(chains[0]), 'step')}" if chains else ""


def _drop_overloads(rows: Sequence[Definition]) -> list[Definition]:
    """Of overloads the one that has the code."""
    coded = {(row.file.path, row.document, row.symbol.qualified_name) for row in rows if not row.is_declared}
    return [
        row
        for row in rows
        if not row.is_declared or (row.file.path, row.document, row.symbol.qualified_name) not in coded
    ]


def _describe_step(relations: Relations, link: Link[Candidate]) -> Finding:
    step = relations.describe(Reached(link.target, 1, (link,), link.confidence))
    details = step.details
    if isinstance(details, NodeDetails):
        # Where the link stands says which file its source is of.
        by = f"{link.source.shown_name or 'its module'} {link.kind} it at {relations.place(link)}"
        message = f"{details.symbol_kind} {details.name}: {by}{say_doubt(link.status)}"
        step = msgspec.structs.replace(step, message=message)
    return step
