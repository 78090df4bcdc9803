"""The flows of a repository as rows: where each begins and ends, how sure it is, and a name that stays."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha1
from typing import NamedTuple

from cq.language import describe
from cq.model.edge import show_name
from cq.model.location import Location
from cq.model.status import Degraded
from cq.questions.risk.program import IndexedProgram
from cq.risk.engine import Engine
from cq.risk.program import Document, Function
from cq.risk.rules import SEVERITIES, EntryRule, OwnRules, Severity, SinkRule, SourceRule
from cq.risk.run import Flow
from cq.risk.values import Place, RuleSource, Step
from cq.snapshot.bodies import Bodies
from cq.snapshot.files import HeldFile
from cq.snapshot.relations import Relations, note_uncovered

MAX_FLOWS = 20_000  # of one repository
MAX_DOCUMENTS = 20_000
_DECAY = 0.85  # for every call on the way behind the first
_OWN_RIGHTS = frozenset({"path", "ssrf", "zip-slip", "redos", "log"})
_SUPPRESSION = re.compile(rb"(?:#|//)\s*cq:\s*ignore\[([\w\-*, ]*)\][ \t]*([^\r\n]*)")


class RowStep(NamedTuple):
    path: str
    line: int
    start: int
    says: str
    location: Location
    owner: str  # path:name of the function it stands in


class Row(NamedTuple):
    """A flow as it is told."""

    rule: SinkRule
    kind: str
    severity: Severity
    confidence: float
    doubt: float
    origin: str
    source_rule: str
    source_text: str
    steps: tuple[RowStep, ...]
    location: Location
    line_text: str
    scope: str
    language: str
    role: str
    hops: int
    fingerprint: str
    suppressed: str
    flow: Flow
    source: SourceRule | EntryRule | None


class Suppression(NamedTuple):
    path: str
    line: int
    rules: frozenset[str]
    reason: str


class Analysis:
    """What was found in one generation of a tree."""

    def __init__(self, engine: Engine, paths: Sequence[str]) -> None:
        self.engine, self.paths = engine, paths
        self.rows: list[Row] = []
        self.caps: list[tuple[str, int, int]] = []
        self.suppressions: dict[Suppression, bool] = {}  # whether it hides anything

    def note(self, relations: Relations) -> list[Degraded]:
        """What was not followed, and comments that hide nothing or say no reason."""
        events = note_uncovered(relations, "risk", relations.find_part("")[1], "risk")
        if self.engine.cut:
            place = next(iter(self.engine.cut))[0]
            message = (
                f"{len(self.engine.cut):,} functions were not followed to their end, for their size:"
                f" {place.path}:{show_name(place.name) or 'the module'}"
            )
            events.append(Degraded("risk", "warning", "effort", message, place.path))
        if self.engine.mistakes:
            (place, _), made = next(iter(self.engine.mistakes.items()))
            message = (
                f"mistakes of cq left {len(self.engine.mistakes):,} functions unread:"
                f" {place.path}:{show_name(place.name) or 'the module'} ({made.error} at {made.place})"
            )
            events.append(Degraded("risk", "warning", "mistake", message, place.path))
        for comment, is_used in self.suppressions.items():
            where = f"{comment.path}:{comment.line}"
            if not is_used:
                events.append(Degraded("risk", "info", "unused_ignore", f"{where}: this ignore hides nothing", where))
            elif not comment.reason:
                events.append(Degraded("risk", "info", "no_reason", f"{where}: this ignore gives no reason", where))
        return events


def analyze(
    relations: Relations,
    own_rules: OwnRules = (),
    *,
    is_strict: bool = False,
    weakens: bool = False,
    is_late: Callable[[], bool] = bool,
) -> Analysis:
    """Every flow of the tree, the worst first; kept as long as nothing else is written to the index."""
    kept = relations.memory.known.setdefault("", {})
    key = ("risk", is_strict, weakens, own_rules)
    found = kept.get(key)
    if not isinstance(found, Analysis):
        found = kept[key] = _analyze(relations, own_rules, is_strict, weakens, is_late)
    return found


def _analyze(
    relations: Relations,
    own_rules: OwnRules,
    is_strict: bool,
    weakens: bool,
    is_late: Callable[[], bool],
) -> Analysis:
    paths = [path for path in relations.paths() if (held := relations.hold(path)) and _is_read(held)]
    program = IndexedProgram(relations, most=MAX_DOCUMENTS)
    engine = Engine(program, own_rules=own_rules, is_strict=is_strict, goes_on=True, weakens=weakens, is_late=is_late)
    for path in paths:
        for document in _find_documents(relations, program, path):
            engine.prepare(document)
    for path in paths:
        engine.run(_find_functions(relations, program, path))
    analysis = Analysis(engine, paths)
    maker = _Maker(relations, engine, analysis)
    rows = [maker.make(flow) for flow in engine.flows.values()]
    known = [row for row in rows if row is not None]
    if len(known) > MAX_FLOWS:
        analysis.caps.append(("flows", MAX_FLOWS, len(known)))
    known.sort(key=_order)
    analysis.rows = _number_alike(known[:MAX_FLOWS])
    return analysis


def _is_read(held: HeldFile) -> bool:
    return any(describe(document.language).detail for document in held.documents)


def _find_functions(relations: Relations, program: IndexedProgram, path: str) -> Iterable[Function]:
    for document in _find_documents(relations, program, path):
        yield from document.functions.values()


def _find_documents(relations: Relations, program: IndexedProgram, path: str) -> Iterable[Document]:
    held = relations.hold(path)
    for number in range(len(held.documents) if held is not None else 0):
        document = program.find_document(path, number)
        if document is not None:
            yield document


def _order(row: Row) -> tuple[bool, int, float, str, int, str]:
    return (
        row.role in ("test", "doc"), -SEVERITIES.index(row.severity), -row.confidence, row.location.path,
        row.location.start, row.rule.id,
    )  # fmt: skip


def _number_alike(rows: Sequence[Row]) -> list[Row]:
    """Flows that are told in the same words are told apart by their order."""
    seen: Counter[str] = Counter()
    found: list[Row] = []
    for row in sorted(
        rows, key=lambda row: (row.location.path, row.location.start, row.steps[0].path, row.steps[0].start)
    ):
        seen[row.fingerprint] += 1
        count = seen[row.fingerprint]
        name = (
            row.fingerprint
            if count == 1
            else sha1(f"{row.fingerprint}:{count}".encode(), usedforsecurity=False).hexdigest()
        )
        found.append(row._replace(fingerprint=name[:12]))
    return sorted(found, key=_order)


class _Maker:
    """Turns flows into rows."""

    def __init__(self, relations: Relations, engine: Engine, analysis: Analysis) -> None:
        self._relations, self._engine, self._analysis = relations, engine, analysis
        self._bodies: dict[tuple[str, int], Bodies] = {}
        self._ignored: dict[str, list[Suppression]] = {}

    def make(self, flow: Flow) -> Row | None:
        held = self._relations.hold(flow.place.path)
        document = self._engine.find_document(flow.place.path, flow.place.document)
        if held is None or document is None:
            return None
        rule = self._engine.rules_of(document.language).by_id[flow.rule]
        assert isinstance(rule, SinkRule)
        steps = self._list_steps(flow)
        location = held.locate(flow.place.start, flow.place.end)
        scope = self._owner(flow.place)
        source_rule, origin, certainty, source_text, doubt = "", "", 1.0, "", 1.0
        came: SourceRule | EntryRule | None = None
        if flow.taint is not None and isinstance(flow.taint.source, RuleSource):
            source_rule, doubt = flow.taint.source.rule, flow.taint.doubt
            source = self._engine.rules_of(document.language).by_id[source_rule]
            if isinstance(source, (SourceRule, EntryRule)):
                came, origin, certainty = source, source.origin, source.confidence
            source_text = self._line(flow.taint.source.place)
        hops = sum(1 for one, other in itertools.pairwise(steps) if one.owner != other.owner)
        base = 0.1 + 0.9 * certainty * rule.confidence if flow.taint is not None else rule.confidence
        confidence = round(min(1.0, base) * _DECAY ** max(0, hops - 1) * doubt, 3)
        severity = rule.severity
        if origin != "remote" and origin:
            # Who runs a program may open files and hosts anyway.
            steps_down = 2 if origin == "local" and rule.kind in _OWN_RIGHTS else 1
            severity = SEVERITIES[max(SEVERITIES.index(severity) - steps_down, 0)]
        line_text = self._line(flow.place)
        first = steps[0].owner if steps else ""
        told = "|".join((
            source_rule, first, re.sub(r"\s+", "", source_text), rule.id, scope, re.sub(r"\s+", "", line_text),
        ))  # fmt: skip
        fingerprint = sha1(told.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
        return Row(
            rule, rule.kind, severity, confidence, doubt, origin, source_rule, source_text[:80], tuple(steps), location,
            line_text, scope.rpartition(":")[2], document.language, self._find_role(steps, held), hops, fingerprint,
            self._find_suppression(held, location.start_line, rule.id), flow, came,
        )  # fmt: skip

    def _find_role(self, steps: Sequence[RowStep], held: HeldFile) -> str:
        """Data that begins in a test is the test's."""
        first = self._relations.hold(steps[0].path) if steps else None
        return first.role if first is not None and first.role in ("test", "doc") else held.role

    def _list_steps(self, flow: Flow) -> list[RowStep]:
        if flow.taint is None or flow.taint.step is None:
            step = self._make_step(flow.place, "sink", flow.what)
            return [step] if step is not None else []
        steps: list[Step] = []
        at: Step | None = flow.taint.step
        while at is not None:
            steps.append(at)
            at = at.before
        found: list[RowStep] = []
        for one in reversed(steps):
            step = self._make_step(one.place, one.kind, one.text)
            if step is not None and not (
                found and found[-1].line == step.line and found[-1].path == step.path and one.kind == "assign"
            ):
                found.append(step)
        return found

    def _make_step(self, place: Place, kind: str, text: str) -> RowStep | None:
        held = self._relations.hold(place.path)
        if held is None:
            return None
        location = held.locate(place.start, max(place.end, place.start))
        shown = self._line(place)[:120]
        says = f"{kind}: {shown}" if kind in ("source", "sink", "assign") else f"{kind} {text}: {shown}"
        return RowStep(place.path, location.start_line, place.start, says, location, self._owner(place))

    def _line(self, place: Place) -> str:
        held = self._relations.hold(place.path)
        return "" if held is None else held.line_at(place.start).strip()

    def _owner(self, place: Place) -> str:
        key = (place.path, place.document)
        held = self._relations.hold(place.path)
        if held is None:
            return place.path
        if key not in self._bodies:
            self._bodies[key] = Bodies(held.symbols[place.document])
        for number in self._bodies[key].around(place.start):
            symbol = held.symbols[place.document][number]
            if symbol.kind_group in ("function", "method"):
                return f"{place.path}:{symbol.qualified_name}"
        return place.path

    def _find_suppression(self, held: HeldFile, line: int, rule: str) -> str:
        """The reason, where a comment on the line or on the one above says that this is to be passed over."""
        if held.path not in self._ignored:
            found = self._ignored[held.path] = _read_suppressions(held)
            self._analysis.suppressions.update(dict.fromkeys(found, False))
        for comment in self._ignored[held.path]:
            if comment.line in (line, line - 1) and ("*" in comment.rules or rule in comment.rules):
                self._analysis.suppressions[comment] = True
                return comment.reason or "no reason"
        return ""


def _read_suppressions(held: HeldFile) -> list[Suppression]:
    found: list[Suppression] = []
    for match in _SUPPRESSION.finditer(held.text):
        rules = frozenset(word.strip() for word in match[1].decode().split(",") if word.strip())
        reason = match[2].decode("utf-8", "replace").strip()
        found.append(Suppression(held.path, held.lines.line(match.start()), rules, reason))
    return found
