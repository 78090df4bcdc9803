"""A pack to change something with: its source, one line of contract for everything next to it, then excerpts by rank,
within a budget of tokens that is never exceeded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec

from cq.answers.options import Budgeted, Option, Options, split
from cq.answers.page import Page
from cq.model.answer import (
    SCHEMA_VERSION,
    Answer,
    ArtifactRef,
    Budget,
    Finding,
    Insight,
    PackDetails,
    Run,
    Section,
    Slice,
    Truncation,
)
from cq.model.errors import UsageError, suggest
from cq.model.status import Degraded
from cq.questions.context.items import SLICES, Item, collapse, collect_items, read_primary
from cq.snapshot.changes import find_changed, find_changes, find_defined
from cq.snapshot.relations import Relations, linked
from cq.snapshot.target import Definition, describe_target, find_file, find_part, find_targets, say_nothing
from cq.store.overflow import Overflow, load

if TYPE_CHECKING:
    from cq.snapshot.snapshot import Snapshot

MAX_PRIMARY = 12
_AROUND = {"text": 120, "json": 450}  # tokens of what stands around the items: counts, headings, the id
_TITLES = {
    "primary": "Source", "contracts": "Next To It", "excerpts": "Excerpts",
}  # fmt: skip


def _read_slices(text: str) -> tuple[str, ...]:
    names = split(text)
    for name in names:
        if name not in SLICES:
            raise UsageError(f"there is no slice {name!r}", hint=suggest(name, SLICES, f"slices: {', '.join(SLICES)}"))
    return tuple(dict.fromkeys(names)) or SLICES


class ContextOptions(Options, frozen=True):
    """Of definitions, paths or modules; of what changed; or of words, which are looked for first."""

    examples: ClassVar[str] = """\
  cq context QuerySet.get                       what to read to change it safely
  cq context --changed main                     of what differs from a branch
  cq context 'retry failed payments'            of the code that words mean
  cq context save --budget 2000 --slices primary,callers,tests
  cq context save --since pack-0123456789abcdef only what that pack did not hold"""

    targets: Annotated[
        tuple[str, ...],
        Option("a definition, a path or a module; or words", "target", "TARGET", argument=True, place="part"),
    ] = ()
    changed: Annotated[
        str | None, Option("what differs from REV (default: HEAD)", "changed", metavar="REV", bare="HEAD")
    ] = None
    since: Annotated[str, Option("leave out what a pack held that was given before", metavar="PACK_ID")] = ""
    slices: Annotated[
        tuple[str, ...], Option(f"{', '.join(SLICES)} (default: all but risk)", metavar="SLICE,…", parse=_read_slices)
    ] = SLICES[:-1]
    max_types: Annotated[int, Option("types that are shown", metavar="N"), msgspec.Meta(ge=0, le=200)] = 12
    max_evidence: Annotated[
        int, Option("places that are told of one neighbour", metavar="N"), msgspec.Meta(ge=1, le=50)
    ] = 3
    page: Budgeted = Page(0)

    def check(self) -> None:
        self.page.check()
        if not self.targets and self.changed is None:
            raise UsageError("context of what?", hint="give a TARGET, words, or --changed")
        least = {"text": 150, "json": 600}[self.page.measure]
        if 0 < self.page.budget < least:
            raise UsageError(f"--budget {self.page.budget} is too small", hint=f"it is at least {least}")


@linked
def ask(snapshot: Snapshot, options: ContextOptions) -> Answer:
    """Sources first, then contracts, then excerpts, until the budget is used; never more, and never filled up."""
    options.check()
    relations = snapshot.relations
    rows, twins, events = _find_primary(snapshot, relations, options)
    query = ", ".join(options.targets) or "changed lines"
    if not rows:
        if events:
            run = Run(generation=relations.files.generation)
            return Answer(SCHEMA_VERSION, "context", run, {"query": query}, degraded=tuple(events))
        return say_nothing(relations.files, "context", query)
    limit = options.page.budget or 1_000_000
    around = _AROUND[options.page.measure]
    seen = _read_pack(snapshot, options.since) if options.since else {}
    primary, chosen = list[Item](), rows[:MAX_PRIMARY]
    share = max((limit - around) * (3 if "callers" in options.slices else 4) // 4 // len(chosen), 60)
    for row in chosen if "primary" in options.slices else ():
        primary.append(read_primary(relations, row, share, limit - around))
    contracts, excerpts, counts = collect_items(snapshot, relations, chosen, options)
    used, shown, left = around, dict[str, list[Item]](), dict[str, int]()
    known = changed = 0
    stored: dict[str, str] = {}
    for name, items in (("primary", primary), ("contracts", contracts), ("excerpts", excerpts)):
        for item in items:
            mark = item.mark
            if seen.get(item.key) == mark:
                known += 1
                stored[item.key] = mark
                continue
            cost = _count(item, options.page.measure)
            if used + cost > limit:
                room = limit - used - (cost - item.cost)
                shorter = collapse(item, room) if name == "primary" else None
                if shorter is None:
                    left[item.relation] = left.get(item.relation, 0) + 1
                    continue
                item, cost = shorter, _count(shorter, options.page.measure)
                if used + cost > limit:
                    left[item.relation] = left.get(item.relation, 0) + 1
                    continue
            changed += item.key in seen
            used += cost
            stored[item.key] = mark
            shown.setdefault(name, []).append(item)
    overflow = Overflow.of("context", "pack", {"query": query, "items": stored})
    refs: tuple[ArtifactRef, ...] = snapshot.save([overflow])
    if not refs:
        events.append(
            Degraded("context", "warning", "not_kept", "the pack could not be kept: --since cannot refer to it")
        )
    sections = tuple(
        Section(_TITLES[name], name, len(items), tuple(_describe(item, item.key in seen) for item in items))
        for name, items in shown.items()
    )
    total = len(primary) + len(contracts) + len(excerpts)
    count = sum(map(len, shown.values()))
    slices = {name: Slice(number, what) for name, (number, what) in counts.items() if number}
    slices |= {"seen": Slice(known, f"items that {options.since} held are left out")} if known else {}
    slices |= {"changed": Slice(changed, f"items that changed since {options.since}")} if changed else {}
    if "risk" in options.slices:
        events.append(
            Degraded("context", "info", "skipped", "risk: not part of a pack yet; `cq risk TARGET` shows flows")
        )
    cut = [
        Truncation(
            f"context.{relation}",
            "budget",
            limit,
            number + sum(1 for s in shown.values() for i in s if i.relation == relation),
            number,
        )
        for relation, number in sorted(left.items())
    ]
    if len(rows) > MAX_PRIMARY:
        cut.append(Truncation("context", "definitions", MAX_PRIMARY, len(rows), len(rows) - MAX_PRIMARY))
    return Answer(
        SCHEMA_VERSION,
        "context",
        Run(generation=relations.files.generation),
        {"query": query, "pack_id": overflow.name, "definitions": len(rows), "since": options.since},
        found=count or int(bool(known)),
        insight=Insight(
            describe_target(twins or rows) if len(rows) == 1 else None,
            slices,
            budget=Budget(options.page.budget, used, count, total),
            headline=f"pack {overflow.name}: {count} items of {total}, about {used:,} tokens",
        ),
        sections=sections,
        artifacts=refs,
        degraded=tuple(events),
        truncated=tuple(cut),
    )


def _find_primary(
    snapshot: Snapshot, relations: Relations, options: ContextOptions
) -> tuple[list[Definition], list[Definition], list[Degraded]]:
    """What the pack is about; the twins of a single target; what there is to say."""
    rows: list[Definition] = []
    twins: list[Definition] = []
    events: list[Degraded] = []
    if options.changed is not None:
        rows, _ = find_changed(relations, find_changes(snapshot, options.changed))
        if not rows and not options.targets:
            events.append(
                Degraded("context", "info", "changed", f"nothing that differs from {options.changed} is code")
            )
    for text in options.targets:
        held = find_file(relations.files, text)
        found = [] if held is not None else find_targets(relations.files, text) if " " not in text else []
        part = [] if found else find_part(relations.files, relations.paths(), text) if " " not in text else []
        if found:
            twins = found
            rows.append(found[0])
        elif part:
            rows += find_defined(relations, part)
        else:
            rows += _find_by_words(snapshot, relations, text, events)
    unique = {row.key: row for row in rows}
    return list(unique.values()), twins if len(options.targets) == 1 else [], events


def _find_by_words(snapshot: Snapshot, relations: Relations, text: str, events: list[Degraded]) -> list[Definition]:
    """The definitions that `cq find` ranks first for words."""
    if " " not in text:
        return []
    from cq.questions.table import QUESTIONS

    question = QUESTIONS["find"]
    answer = question.ask(snapshot, question.make_options(text))
    rows: list[Definition] = []
    for result in getattr(answer, "results", ())[:3]:
        rows += find_targets(relations.files, f"{result.file}:{result.start_line}:{result.start_col}")[:1]
    if rows:
        named = ", ".join(row.symbol.qualified_name for row in rows)
        events.append(Degraded("context", "info", "words", f"{text!r} is taken for {named}: `cq find` shows others"))
    return rows


def _read_pack(snapshot: Snapshot, name: str) -> dict[str, str]:
    """What a pack held: items by key, with the mark of their content; UsageError for one that is gone."""
    value = load(snapshot.index.artifacts, name)
    if not isinstance(value, dict) or not isinstance(value.get("items"), dict):
        hint = "packs are kept until newer answers push them out: ask without --since"
        raise UsageError(f"there is no pack {name!r}", hint=hint)
    return dict(value["items"])


def _count(item: Item, measure: str) -> int:
    """What an item costs, as it is written."""
    return item.cost if measure == "text" else len(msgspec.json.encode(_describe(item, False))) // 4 + 1


def _describe(item: Item, is_changed: bool) -> Finding:
    details = PackDetails(
        item.relation, item.why, item.cost, item.language, item.name, item.text, item.more, is_changed
    )
    return Finding(item.relation, item.name, item.location, item.rank, item.rank, details, stable_id=item.mark)
