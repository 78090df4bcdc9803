"""Where data from outside goes: flows from sources to sinks with every step, and what is weak without any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal, get_args

import msgspec

from cq.answers.page import Page, count_tokens, take
from cq.language import all_languages, describe
from cq.model.answer import (
    SCHEMA_VERSION,
    Answer,
    FactDetails,
    Finding,
    GraphEdge,
    Insight,
    PassedAt,
    RiskDetails,
    Run,
    Section,
    Slice,
    Truncation,
)
from cq.model.errors import UsageError
from cq.model.history import Change
from cq.model.status import Degraded
from cq.questions.risk.flows import Analysis, Row, RowStep, analyze
from cq.questions.risk.program import TextProgram
from cq.risk.engine import Engine
from cq.risk.rules import KINDS, ORIGINS, SEVERITIES, Rule, Severity, load_rules
from cq.snapshot.relations import Relations, linked
from cq.snapshot.target import find_part, find_targets, say_nothing

if TYPE_CHECKING:
    from cq.snapshot.snapshot import Snapshot

__all__ = ["ACTIONS", "KINDS", "MODES", "ORIGINS", "SEVERITIES", "RiskOptions", "ask"]

Action = Literal["flows", "explain", "rules", "coverage"]
ACTIONS: tuple[Action, ...] = get_args(Action)
Mode = Literal["default", "strict"]
MODES: tuple[Mode, ...] = get_args(Mode)
_SHOWN = 12  # rows of one list of coverage


class RiskOptions(msgspec.Struct, frozen=True):
    """`target` is a path, a module or a definition that flows pass through, or of `explain` the id of a flow; empty:
    everything. `changed` is how files differ from a revision; it counts where `by_change` is set."""

    action: Action = "flows"
    target: str = ""
    kinds: tuple[str, ...] = ()
    cwes: tuple[int, ...] = ()
    severity: str = "low"
    min_confidence: float = 0.0
    sources: tuple[str, ...] = ()
    begin: str = ""
    end: str = ""
    changed: dict[str, Change] = {}
    by_change: bool = False
    baseline: frozenset[str] | None = None
    mode: str = "default"
    test: bool = False
    page: Page = Page(40)

    def __hash__(self) -> int:
        return hash((self.action, self.target, self.kinds, self.mode))

    def check(self) -> None:
        self.page.check()
        _check_words("action", (self.action,), ACTIONS)
        _check_words("--kind", self.kinds, KINDS)
        _check_words("--source", self.sources, ORIGINS)
        _check_words("--severity", (self.severity,), SEVERITIES)
        _check_words("--mode", (self.mode,), MODES)
        if not 0 <= self.min_confidence <= 1:
            raise UsageError(f"--min-confidence {self.min_confidence:g} is out of range", hint="it is 0 to 1")
        if self.test and self.action != "rules":
            raise UsageError("--test is about rules", hint="cq risk rules --test")
        if self.action in ("rules", "coverage"):
            given = [
                name
                for name, value in (
                    ("--kind", self.kinds), ("--cwe", self.cwes), ("--source", self.sources), ("--from", self.begin),
                    ("--to", self.end), ("--changed", self.by_change), ("--baseline", self.baseline is not None),
                )
                if value and not (self.action == "rules" and name in ("--kind", "--cwe"))
            ]  # fmt: skip
            if given:
                raise UsageError(f"`cq risk {self.action}` takes no {given[0]}", hint="it is about everything")


def _check_words(option: str, given: Sequence[str], known: Sequence[str]) -> None:
    for word in given:
        if word not in known:
            close = get_close_matches(word, known, n=1)
            hint = (f"did you mean {close[0]!r}? " if close else "") + f"there are {', '.join(known)}"
            raise UsageError(f"{option} cannot be {word!r}", hint=hint)


@linked
def ask(snapshot: Snapshot, options: RiskOptions) -> Answer:
    options.check()
    if options.action == "rules":
        return _list_rules(snapshot, options)
    analysis = analyze(snapshot.relations, is_strict=options.mode == "strict")
    if options.action == "coverage":
        return _describe_coverage(snapshot.relations, analysis, options)
    if options.action == "explain":
        return _explain(snapshot.relations, analysis, options)
    return _list_flows(snapshot.relations, analysis, options)


# -- flows -------------------------------------------------------------------------------------------------


def _list_flows(relations: Relations, analysis: Analysis, options: RiskOptions) -> Answer:
    rows = [row for row in analysis.rows if _fits(row, options)]
    for text, part in ((options.target, "any"), (options.begin, "first"), (options.end, "last")):
        if text:
            inside = _find_inside(relations, text)
            if inside is None:
                return say_nothing(relations.files, "risk", text, f"nothing is named {text!r} here")
            rows = [row for row in rows if inside.holds(row, part)]
    if options.by_change:
        rows = [row for row in rows if _is_changed(row, options.changed)]
    known = sum(1 for row in rows if options.baseline is not None and row.fingerprint in options.baseline)
    if options.baseline is not None:
        rows = [row for row in rows if row.fingerprint not in options.baseline]
    open_rows = [row for row in rows if not row.suppressed]
    return _make_answer(relations, analysis, options, rows, open_rows, known)


def _make_answer(
    relations: Relations, analysis: Analysis, options: RiskOptions, rows: Sequence[Row], listed: Sequence[Row],
    known: int = 0, *, is_full: bool = False,
) -> Answer:  # fmt: skip
    shown, budget, cut = take(listed, options.page, lambda row: _describe(row, is_full))
    sections: list[Section] = []
    for severity in reversed(SEVERITIES):
        findings = tuple(
            finding for finding in shown if isinstance(d := finding.details, RiskDetails) and d.severity == severity
        )
        total = sum(1 for row in listed if row.severity == severity)
        if findings:
            sections.append(Section(severity.capitalize(), severity, total, findings))
    hidden = [row for row in rows if row.suppressed]
    if hidden:
        note = "passed over: a comment in the code says so"
        found = tuple(_describe(row, False) for row in hidden)
        sections.append(Section("Suppressed", "suppressed", len(hidden), found, collapsed=True, note=note))
    slices = {
        severity: Slice(count, f"{severity}")
        for severity in reversed(SEVERITIES)
        if (count := sum(1 for row in listed if row.severity == severity))
    }
    if known:
        slices["known"] = Slice(known, "of the baseline")
    events = analysis.note(relations)
    if not listed and not rows:
        events.append(Degraded("risk", "info", "nothing", "no data from outside was seen to reach a sink"))
    cut += [Truncation("risk", cap, limit, observed, observed - limit) for cap, limit, observed in analysis.caps]
    budget = msgspec.structs.replace(budget, used=count_tokens(sections, options.page.measure) + 100)
    counts = Counter(row.kind for row in listed)
    return Answer(
        SCHEMA_VERSION,
        "risk",
        Run(generation=relations.files.generation),
        {
            "query": options.target or "risk", "flows": len(listed), "by_kind": dict(sorted(counts.items())),
            "suppressed": len(hidden), "mode": options.mode,
        },
        found=len(listed),
        insight=Insight(None, slices, budget=budget) if listed or hidden else None,
        sections=tuple(sections),
        degraded=tuple(events),
        truncated=tuple(cut),
        edges=tuple(_find_edges(listed)),
    )  # fmt: skip


def _fits(row: Row, options: RiskOptions) -> bool:
    return (
        (not options.kinds or row.kind in options.kinds)
        and (not options.cwes or row.rule.cwe in options.cwes)
        and SEVERITIES.index(row.severity) >= SEVERITIES.index(_severity(options.severity))
        and row.confidence >= options.min_confidence
        and (not options.sources or row.origin in options.sources)
    )


def _severity(word: str) -> Severity:
    return next(severity for severity in SEVERITIES if severity == word)


def _is_changed(row: Row, changed: dict[str, Change]) -> bool:
    """Whether a step stands on a line that differs, or the code around a step lost one."""
    for step in row.steps:
        change = changed.get(step.path)
        if change is not None and (
            step.line in change.lines or step.line in change.gaps or step.line - 1 in change.gaps
        ):
            return True
    return False


class _Inside:
    """Files, or spans of them."""

    def __init__(self, paths: frozenset[str], spans: Sequence[tuple[str, int, int]]) -> None:
        self._paths, self._spans = paths, spans

    def holds(self, row: Row, part: str) -> bool:
        steps = row.steps[:1] if part == "first" else row.steps[-1:] if part == "last" else row.steps
        for step in steps:
            if step.path in self._paths:
                return True
            if any(path == step.path and start <= step.start < end for path, start, end in self._spans):
                return True
        return False


def _find_inside(relations: Relations, text: str) -> _Inside | None:
    paths = find_part(relations.files, relations.paths(), text)
    if paths:
        return _Inside(frozenset(paths), ())
    targets = find_targets(relations.files, text)
    if not targets:
        return None
    spans = [(row.file.path, row.symbol.start, row.symbol.end) for row in targets[:1]]
    return _Inside(frozenset(), spans)


def _describe(row: Row, is_full: bool) -> Finding:
    way = [f"{step.path}:{step.line}" for step in _find_turns(row)]
    source = f"{way[0]} {row.source_text} → " if row.source_text else ""
    hops = "".join(f"{place} → " for place in way[1:-1])
    message = (
        f"{row.kind} [{row.rule.id}] {source}{hops}{row.line_text[:100]} ({row.confidence:.2f}, {row.fingerprint})"
    )
    witness = tuple(PassedAt(step.says, step.location) for step in row.steps)
    details = RiskDetails(
        row.rule.id, row.kind, row.rule.cwe, row.severity, row.fingerprint, row.language, row.role, row.scope,
        row.source_rule, row.origin, row.rule.fix, row.hops, witness if row.source_rule else (), row.suppressed,
    )  # fmt: skip
    return Finding(
        "steps" if is_full else row.kind,
        message,
        row.location,
        row.confidence,
        row.confidence,
        details,
        row.fingerprint,
    )


def _find_turns(row: Row) -> list[RowStep]:
    """The first step, those that lead into another function, and the last."""
    found = [*row.steps[:1]]
    found += [step for before, step in zip(row.steps, row.steps[1:], strict=False) if before.owner != step.owner]
    return found if found and found[-1] is row.steps[-1] else [*found, *row.steps[-1:]]


def _find_edges(rows: Sequence[Row]) -> list[GraphEdge]:
    """Between the functions that data passes through."""
    found: dict[tuple[str, str], GraphEdge] = {}
    for row in rows:
        for one, other in zip(row.steps, row.steps[1:], strict=False):
            if one.owner != other.owner:
                status = "resolved" if row.doubt >= 0.95 else "ambiguous"
                site = f"{other.path}:{other.line}"
                edge = GraphEdge(one.owner, other.owner, "flows", row.confidence, status, site)
                found.setdefault((one.owner, other.owner), edge)
    return list(found.values())


# -- explain ---------------------------------------------------------------------------------------------


def _explain(relations: Relations, analysis: Analysis, options: RiskOptions) -> Answer:
    text = options.target
    rows = [row for row in analysis.rows if len(text) >= 4 and row.fingerprint.startswith(text.lower())]
    if not rows:
        inside = _find_inside(relations, text)
        if inside is None:
            near = tuple(get_close_matches(text, [row.fingerprint for row in analysis.rows], n=3))
            answer = say_nothing(relations.files, "risk", text, f"no flow and no definition is {text!r} here")
            return msgspec.structs.replace(answer, suggestions=near or answer.suggestions)
        rows = [row for row in analysis.rows if inside.holds(row, "any")]
    rows = [row for row in rows if _fits(row, options)]
    return _make_answer(relations, analysis, options, rows, rows, is_full=True)


# -- rules -------------------------------------------------------------------------------------------------


def _list_rules(snapshot: Snapshot, options: RiskOptions) -> Answer:
    findings: list[Finding] = []
    wrong = 0
    for language in _languages():
        for rule in load_rules(language).by_id.values():
            kind, cwe = getattr(rule, "kind", ""), getattr(rule, "cwe", 0)
            if (options.kinds and kind not in options.kinds) or (options.cwes and cwe not in options.cwes):
                continue
            told = check_rule(rule, language) if options.test else ""
            wrong += bool(told)
            if options.test and not told:
                continue
            sort = type(rule).__name__.removesuffix("Rule").lower()
            what = f"{sort} {kind} CWE-{cwe}" if cwe else sort
            facts = FactDetails(rule.id, {"names": rule.names, "language": (language,)})
            said = f"{rule.id} ({what}): {told or rule.message}"
            findings.append(Finding("rule", said, None, details=facts))
    total = sum(len(load_rules(language).by_id) for language in _languages())
    page = options.page
    shown, budget, cut = take(findings, page, lambda finding: finding)
    title = "Rules that fail their own examples" if options.test else "Rules"
    note = f"{total - wrong} of {total} rules find what their examples say" if options.test else ""
    section = Section(title, "rules", len(findings), tuple(shown), note=note)
    return Answer(
        SCHEMA_VERSION,
        "risk",
        Run(generation=snapshot.files.generation),
        {"query": "rules", "rules": total, "failed": wrong},
        found=(total - wrong if not wrong else 0) if options.test else len(findings),
        insight=Insight(None, {}, budget=budget),
        sections=(section,),
        truncated=tuple(cut),
    )


def check_rule(rule: Rule, language: str) -> str:
    """What is wrong with a rule by its own examples; "" where nothing is."""
    for lines, wanted in ((rule.bad, True), (rule.ok, False)):
        if lines and rule.id not in find_rules(lines, language) and wanted:
            return "its bad example is not found"
        if lines and not wanted and rule.id in find_rules(lines, language):
            return "its ok example is found as well"
    return ""


def find_rules(text: str, language: str) -> set[str]:
    """The rules that say something about a program, those of sources and entries as well."""
    name = f"main.{next(iter(describe(language).suffixes), 'txt')}"
    program = TextProgram({name: (language, text.lstrip("\n").encode())})
    engine = Engine(program)
    engine.run([function for document in program.documents for function in document.functions.values()])
    found = {flow.rule for flow in engine.flows.values()}
    found |= {getattr(flow.taint.source, "rule", "") for flow in engine.flows.values() if flow.taint is not None}
    return found | engine.entered


def _languages() -> list[str]:
    return [name for name, described in all_languages().items() if described.detail and not described.variant_of]


# -- coverage ------------------------------------------------------------------------------------------------


def _describe_coverage(relations: Relations, analysis: Analysis, options: RiskOptions) -> Answer:
    engine = analysis.engine
    sections: list[Section] = []

    def add(title: str, kind: str, rows: Sequence[tuple[str, int]], note: str = "") -> None:
        shown = rows if not options.page.limit else rows[: max(options.page.limit, _SHOWN)]
        findings = tuple(
            Finding("coverage", f"{count:,} {name}", None, details=FactDetails(name, {"count": (str(count),)}))
            for name, count in shown
        )
        sections.append(Section(title, kind, len(rows), findings, note=note))

    add("Sources Seen", "sources", engine.sources_seen.most_common(), "places where data comes in, by rule")
    add("Sinks Seen", "sinks", engine.sinks_seen.most_common(), "places that data must not reach, by rule")
    add("Entry Points", "entries", engine.entries_seen.most_common(), "functions that are called from outside, by rule")
    add(
        "Unmodelled Calls", "unmodelled", engine.unmodelled.most_common(),
        "library calls that data from outside entered, and of which no rule knows: it is taken to pass on",
    )  # fmt: skip
    counts = {"functions": engine.followed, "documents": len(analysis.paths)}
    return Answer(
        SCHEMA_VERSION,
        "risk",
        Run(generation=relations.files.generation),
        {"query": "coverage", **counts},
        found=len(analysis.paths),
        insight=Insight(None, {name: Slice(count, name) for name, count in counts.items()}),
        sections=tuple(sections),
        degraded=tuple(analysis.note(relations)),
    )
