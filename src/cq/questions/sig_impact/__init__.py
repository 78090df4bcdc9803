"""Call sites that a new signature would not fit: would break, may break, or ok, each with the reason."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec

from cq.answers.options import OneTarget, Option, Options, Paged
from cq.answers.page import Page, count_tokens, take
from cq.answers.unlinked import note_unlinked
from cq.answers.words import count_places
from cq.model.answer import SCHEMA_VERSION, Answer, Finding, Insight, NodeDetails, Risk, Run, Section, Slice
from cq.model.edge import Candidate
from cq.model.status import Degraded
from cq.snapshot.relations import Relations, linked
from cq.snapshot.signatures import (
    ELSEWHERE,
    VERDICTS,
    Verdict,
    find_parameters,
    judge_calls,
    parse_signature,
    takes_receiver,
)
from cq.snapshot.target import Definition, describe_target, find_same, find_targets, say_nothing
from cq.source.role import find_role

if TYPE_CHECKING:
    from cq.snapshot.snapshot import Snapshot


class SignatureOptions(Options, frozen=True):
    examples: ClassVar[str] = """\
  cq sig-impact save --to 'save(row, *, deep=False)'
  cq sig-impact Store.save --to 'save(self, row)' --format json"""

    target: OneTarget
    to: Annotated[str, Option("the new one, as it would be written", metavar="SIGNATURE")]
    page: Paged = Page(40)


@linked
def ask(snapshot: Snapshot, options: SignatureOptions) -> Answer:
    """Per call site whether a new signature takes the call: breaks, ambiguous, ok; in this order."""
    relations = snapshot.relations
    options.page.check()
    named = find_targets(relations.files, options.target)
    rows = [row for row in named if row.symbol.kind_group in _FUNCTIONS]
    rows = rows or [maker for row in named for maker in _find_constructors(row)]  # a class is called by it
    if not rows:
        what = named[0].symbol if named else None
        message = f"{what.kind} {what.qualified_name} has no signature: it is no function" if what else ""
        return say_nothing(relations.files, "sig-impact", options.target, message)
    row = rows[0]
    language = row.file.documents[row.document].language
    old = find_parameters(relations, row)
    if old is None:
        old = parse_signature(row.symbol.signature.removeprefix("async "), language, row.symbol.name)
    new = parse_signature(options.to, language, row.symbol.name)
    if takes_receiver(row) and old and not (new and new[0].name in (old[0].name, *_RECEIVERS)):
        new = (old[0], *new)  # `save(row)` for a method: who calls it need not name the receiver either
    # A call may lead to it in two ways, say as what a decorator wraps and as what it returns: the worse one counts.
    judged: dict[tuple[Candidate, int], Verdict] = {}
    for verdict in (each for one in find_same(rows) for each in judge_calls(relations, one, old, new)):
        key = verdict.edge.source, verdict.call.name_start if verdict.edge.call < 0 else verdict.edge.call
        if key not in judged or verdict.order < judged[key].order:
            judged[key] = verdict
    verdicts = sorted(judged.values(), key=lambda item: item.order)
    shown, budget, cut = take(verdicts, options.page, lambda item: _describe(relations, item))
    counts = {name: sum(1 for item in verdicts if item.kind == name) for name in VERDICTS}
    sections = tuple(
        Section(_TITLES[name], name, counts[name], findings)
        for name in VERDICTS
        if (findings := tuple(finding for finding in shown if finding.category == name))
    )
    drivers = tuple(f"{counts[name]} {_SAID[name]}" for name in VERDICTS[:-1] if counts[name])
    level = "high" if counts["breaks"] else "medium" if counts["ambiguous"] or counts["elsewhere"] else "low"
    ambiguous = counts["ambiguous"] + counts["elsewhere"]
    breaking = count_places((item.edge.source.path for item in verdicts if item.kind == "breaks"), "call site")
    said = [f"{breaking} would break" if counts["breaks"] else "no call site is known to break"]
    said += [f"{counts[name]:,} {_SAID[name]}" for name in VERDICTS[1:] if counts[name]]
    return Answer(
        SCHEMA_VERSION,
        "sig-impact",
        Run(generation=relations.files.generation),
        {"query": options.target, "from": row.symbol.signature, "to": options.to, **counts, "ambiguous": ambiguous},
        found=len(verdicts),
        insight=Insight(
            describe_target(rows),
            {"call_sites": Slice(len(verdicts), "call sites")},
            Risk(level, drivers, counts),
            budget=msgspec.structs.replace(budget, used=count_tokens(sections, options.page.measure) + 150),
            headline="; ".join(said),
        ),
        sections=sections,
        degraded=(*_note_name(row, options), *note_unlinked(relations, "sig-impact", rows[:1])),
        truncated=tuple(cut),
    )


def _note_name(row: Definition, options: SignatureOptions) -> tuple[Degraded, ...]:
    """Where the new signature bears another name: that alone would break every call."""
    words = options.to.partition("(")[0].split()
    name = re.split(r"\.|::", words[-1])[-1].partition("<")[0] if words else ""
    parent = row.parent
    if not name.isidentifier() or name in (row.symbol.name, parent.name if parent is not None else ""):
        return ()
    message = f"the new signature is that of {name!r}: what a new name breaks is not judged, only the parameters are"
    return (Degraded("sig-impact", "warning", "renamed", message, options.target),)


def _find_constructors(row: Definition) -> list[Definition]:
    symbols = row.file.symbols[row.document]
    return [
        Definition(row.file, row.document, number)
        for number, symbol in enumerate(symbols)
        if symbol.kind == "constructor" and symbol.parent == row.number
    ]


_TITLES = {
    "breaks": "Would Break", "ambiguous": "May Break", "elsewhere": "May Be Another Function", "ok": "Ok",
}  # fmt: skip
_SAID = {"breaks": "would break", "ambiguous": "may break", "elsewhere": "may be another function", "ok": "ok"}
_FUNCTIONS = ("function", "method")
_RECEIVERS = ("self", "cls", "mcs")


def _describe(relations: Relations, item: Verdict) -> Finding:
    edge, call = item.edge, item.call
    held = relations.hold(edge.source.path)
    place = max(call.name_start, call.start)
    details = NodeDetails(
        edge.source.shown_name, "call", find_role(edge.source.path), 1, edge.ref.status, edge.kind,
        verdict=item.verdict, reason=item.reason,
    )  # fmt: skip
    location = held.locate(place, call.end) if held else None
    line = held.line_at(place).strip() if held else ""
    reason = item.reason.removesuffix(ELSEWHERE)  # which the section says
    message = f"{reason}: {line}" if reason else line
    return Finding(item.kind, message, location, edge.ref.confidence, edge.ref.confidence, details)
