"""Where data from outside goes: flows from sources to sinks with every step, and what is weak without any."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, get_args

import msgspec
from msgspec import Meta

from cq.answers.options import Option, Options, Paged, split
from cq.answers.page import Page, count_tokens, take
from cq.language import describe
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
from cq.model.errors import ConfigError, UsageError, suggest
from cq.model.history import Change
from cq.model.source import Skip
from cq.model.status import Degraded
from cq.questions.risk.flows import Analysis, Row, RowStep, analyze
from cq.questions.risk.program import TextProgram
from cq.risk.engine import Engine
from cq.risk.rules import KINDS, ORIGINS, SEVERITIES, OwnRules, Rule, Severity, check_own, load_files, load_rules
from cq.snapshot.changes import find_changes
from cq.snapshot.files import IndexedFiles
from cq.snapshot.relations import Relations, linked
from cq.snapshot.target import find_part, find_targets, say_nothing
from cq.source.read import read_bytes

if TYPE_CHECKING:
    from cq.model.config import RiskConfig
    from cq.questions.risk.rows import RiskExport
    from cq.snapshot.snapshot import Snapshot
    from cq.store.read import Reader, Tree

__all__ = ["KINDS", "MODES", "ORIGINS", "SEVERITIES", "RiskOptions", "ask"]

Action = Literal["flows", "explain", "rules", "coverage"]
Mode = Literal["default", "strict"]
MODES: tuple[Mode, ...] = get_args(Mode)
_MAX_RULES = 1024 * 1024  # bytes of a file with rules
_MAX_BASELINE = 64 * 1024 * 1024
_SHOWN = 12  # rows of one list of coverage


def _read_kinds(text: str) -> tuple[str, ...]:
    return _check_words("--kind", split(text), KINDS)


def _read_origins(text: str) -> tuple[str, ...]:
    return _check_words("--source", split(text), ORIGINS)


def _read_weaknesses(text: str) -> tuple[int, ...]:
    """`89`, `CWE-89`."""
    words = [word.upper().removeprefix("CWE").removeprefix("-") for word in split(text)]
    for word in words:
        if not (word.isascii() and word.isdigit() and len(word) < 7):
            raise UsageError(f"--cwe cannot be {word!r}", hint="for example --cwe 89")
    return tuple(map(int, words))


class RiskOptions(Options, frozen=True):
    """`words` name a path, a module or a definition that flows pass through; behind `explain` also the id of a flow.
    `rules` and `coverage` are about everything."""

    examples: ClassVar[str] = """\
  cq risk                              of the whole repository, the worst first
  cq risk src/app --kind sql,command   below a directory, of these kinds
  cq risk --changed main               what passes lines that differ from a branch
  cq risk --new-since main             what a branch adds
  cq risk explain 3f9c2ab41d07         every step of one flow
  cq risk rules --test                 whether each rule finds its own examples
  cq risk coverage                     what was recognised, and what was not"""

    words: Annotated[
        tuple[str, ...],
        Option(
            "flows below a path or through a definition (default: all), or in full; the rules; what is covered",
            "target", "[explain|rules|coverage] [PATH|TARGET|ID]", argument=True, place="part",
        ),
    ] = ()  # fmt: skip
    kinds: Annotated[
        tuple[str, ...], Option(f"only these: {', '.join(KINDS)}", "kind", "KIND,…", parse=_read_kinds)
    ] = ()
    cwes: Annotated[
        tuple[int, ...], Option("only weaknesses of these numbers", "cwe", "N,…", parse=_read_weaknesses)
    ] = ()
    severity: Annotated[str, Option("the least that is shown (default: low)", choices=SEVERITIES)] = "low"
    min_confidence: Annotated[float, Meta(ge=0, le=1), Option("leave out what is less sure, 0 to 1", metavar="X")] = 0.0
    sources: Annotated[
        tuple[str, ...],
        Option("only data that is remote, local, stored (default: all)", "source", "ORIGIN,…", parse=_read_origins),
    ] = ()
    begin: Annotated[str, Option("only flows that begin there", "from", "TARGET", place="part")] = ""
    end: Annotated[str, Option("only flows that end there", "to", "TARGET", place="part")] = ""
    since: Annotated[
        str | None,
        Option("only flows over lines that differ from REV (default: HEAD)", "changed", metavar="REV", bare="HEAD"),
    ] = None
    baseline: Annotated[
        str, Option("only flows that a file of --format jsonl or sarif lacks", metavar="FILE", place="folder")
    ] = ""
    new_since: Annotated[str, Option("only flows that the repository did not have at REV yet", metavar="REV")] = ""
    mode: Annotated[str, Option("strict: checks of data count for nothing", choices=MODES)] = "default"
    test: Annotated[bool, Option("of `rules`: run the examples of each")] = False
    page: Paged = Page(40)

    @property
    def action(self) -> Action:
        match self.words[:1]:
            case ("explain",):
                return "explain"
            case ("rules",):
                return "rules"
            case ("coverage",):
                return "coverage"
            case _:
                return "flows"

    @property
    def target(self) -> str:
        """What the action is about."""
        rest = self.words if self.action == "flows" else self.words[1:]
        return rest[0] if rest else ""

    def check(self) -> None:
        self.page.check()
        action, most = self.action, 1 if self.action == "flows" else 2
        if len(self.words) > most:
            raise UsageError(f"unexpected argument {self.words[most]!r}", hint="one path or TARGET at a time")
        _check_words("--severity", (self.severity,), SEVERITIES)
        _check_words("--mode", (self.mode,), MODES)
        _check_words("--kind", self.kinds, KINDS)
        _check_words("--source", self.sources, ORIGINS)
        if not 0 <= self.min_confidence <= 1:
            raise UsageError(f"--min-confidence {self.min_confidence:g} is out of range", hint="it is 0 to 1")
        if action == "explain" and not self.target:
            raise UsageError("explain what?", hint="give the id of a flow, as `cq risk` lists it, or a TARGET")
        if self.test and action != "rules":
            raise UsageError("--test is about rules", hint="cq risk rules --test")
        if action in ("rules", "coverage"):
            given = {
                self.target: self.target, "--source": self.sources, "--from": self.begin, "--to": self.end,
                "--changed": self.since, "--baseline": self.baseline, "--new-since": self.new_since,
                "--min-confidence": self.min_confidence,
                "--severity": self.severity != "low", "--kind": self.kinds and action != "rules",
                "--cwe": self.cwes and action != "rules", "--mode": action == "rules" and self.mode != "default",
            }  # fmt: skip
            for name, value in given.items():
                if value:
                    raise UsageError(f"`cq risk {action}` takes no {name}", hint="it is about everything")
        elif action == "explain" and (
            self.begin or self.end or self.since is not None or self.baseline or self.new_since
        ):
            raise UsageError(
                "`cq risk explain` takes no --from, --to, --changed, --baseline, --new-since", hint="list flows by them"
            )


def _check_words(option: str, given: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    for word in given:
        if word not in known:
            hint = suggest(word, known)
            raise UsageError(f"{option} cannot be {word!r}", hint=hint)
    return tuple(given)


@linked
def ask(snapshot: Snapshot, options: RiskOptions) -> Answer:
    options.check()
    own_rules = read_own_rules(snapshot.root, snapshot.config.risk.rules)
    if options.action == "rules":
        return _list_rules(snapshot, options, own_rules)
    analysis = analyze(snapshot.relations, own_rules, is_strict=options.mode == "strict")
    if options.action == "coverage":
        return _describe_coverage(snapshot.relations, analysis, options)
    if options.action == "explain":
        return _explain(snapshot.relations, analysis, options)
    return _list_flows(snapshot, analysis, options, own_rules)


# -- flows -------------------------------------------------------------------------------------------------


def _list_flows(snapshot: Snapshot, analysis: Analysis, options: RiskOptions, own_rules: OwnRules) -> Answer:
    relations = snapshot.relations
    seen = _read_baseline(snapshot, options.baseline) if options.baseline else None
    if options.new_since:
        seen = (seen or frozenset()) | _find_earlier(snapshot, options, own_rules)
    rows = [row for row in analysis.rows if _fits(row, options)]
    for text, part in ((options.target, "any"), (options.begin, "first"), (options.end, "last")):
        if text:
            inside = _find_inside(relations, text)
            if inside is None:
                return say_nothing(relations.files, "risk", text, f"nothing is named {text!r} here")
            rows = [row for row in rows if inside.holds(row, part)]
    if options.since is not None:
        changed = find_changes(snapshot, options.since)
        rows = [row for row in rows if _is_changed(row, changed)]
    known = 0
    if seen is not None:
        known = sum(1 for row in rows if row.fingerprint in seen)
        rows = [row for row in rows if row.fingerprint not in seen]
    open_rows = [row for row in rows if not row.suppressed]
    return _make_answer(relations, analysis, options, rows, open_rows, known)


def _find_earlier(snapshot: Snapshot, options: RiskOptions, own_rules: OwnRules) -> frozenset[str]:
    """The fingerprints of the flows that the repository had at a revision, by the rules of today."""
    index = snapshot.index.at(options.new_since)
    index.keep_fresh(wait=True)
    with index.reading() as (reader, tree):
        relations = Relations(IndexedFiles(reader, tree))
        analysis = analyze(relations, own_rules, is_strict=options.mode == "strict")
        return frozenset(row.fingerprint for row in analysis.rows)


def _read_baseline(snapshot: Snapshot, name: str) -> frozenset[str]:
    """The fingerprints in a file that this question wrote."""
    raw = read_bytes(os.fspath(snapshot.root), name, _MAX_BASELINE)
    if isinstance(raw, Skip):
        why = raw.reason.replace("_", " ")
        raise UsageError(f"--baseline {name} is not read: {why}", hint="give a file below the root")
    text = raw.decode("utf-8", "replace")
    found = frozenset(re.findall(r'"(?:fingerprint|cq/v1)":\s*"([0-9a-f]{12})"', text))
    if not found and text.strip() and '"results"' not in text:
        hint = "write one with `cq risk --all --format jsonl`, or sarif"
        raise UsageError(f"--baseline {name} holds no flows", hint=hint)
    return found


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
        slices["known"] = Slice(known, "known before")
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


def _list_rules(snapshot: Snapshot, options: RiskOptions, own_rules: OwnRules) -> Answer:
    findings: list[Finding] = []
    wrong = 0
    every = [(language, rule) for language in _languages() for rule in load_rules(language, own_rules).by_id.values()]
    for language, rule in every:
        kind, cwe = getattr(rule, "kind", ""), getattr(rule, "cwe", 0)
        if (options.kinds and kind not in options.kinds) or (options.cwes and cwe not in options.cwes):
            continue
        told = check_rule(rule, language, own_rules) if options.test else ""
        wrong += bool(told)
        if options.test and not told:
            continue
        sort = type(rule).__name__.removesuffix("Rule").lower()
        what = f"{sort} {kind} CWE-{cwe}" if cwe else sort
        facts = FactDetails(rule.id, {"names": rule.names, "language": (language,)})
        said = f"{rule.id} ({what}): {told or rule.message}"
        findings.append(Finding("rule", said, None, details=facts))
    total = len(every)
    page = options.page
    shown, budget, cut = take(findings, page, lambda finding: finding)
    title = "Rules that fail their own examples" if options.test else "Rules"
    tested = sum(1 for _, rule in every if rule.bad or rule.ok)
    note = f"{tested - wrong} of {tested} rules with examples find what those say" if options.test else ""
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


def check_rule(rule: Rule, language: str, own_rules: OwnRules = ()) -> str:
    """What is wrong with a rule by its own examples; "" where nothing is."""
    for lines, wanted in ((rule.bad, True), (rule.ok, False)):
        if lines and rule.id not in find_rules(lines, language, own_rules) and wanted:
            return "its bad example is not found"
        if lines and not wanted and rule.id in find_rules(lines, language, own_rules):
            return "its ok example is found as well"
    return ""


def find_rules(text: str, language: str, own_rules: OwnRules = ()) -> set[str]:
    """The rules that say something about a program, those of sources and entries as well."""
    name = f"main.{next(iter(describe(language).suffixes), 'txt')}"
    program = TextProgram({name: (language, text.lstrip("\n").encode())})
    engine = Engine(program, own_rules=own_rules)
    engine.run_all(program.documents)
    found = {flow.rule for flow in engine.flows.values()}
    found |= {getattr(flow.taint.source, "rule", "") for flow in engine.flows.values() if flow.taint is not None}
    return found | engine.entered


def read_own_rules(root: Path, names: Sequence[str]) -> OwnRules:
    """The files that `[risk] rules` names; ConfigError for one that cannot be read or is wrong."""
    found: list[tuple[str, str]] = []
    for name in names:
        raw = read_bytes(os.fspath(root), name, _MAX_RULES)
        if isinstance(raw, Skip):
            reason = raw.reason.replace("_", " ")
            hint = f"[risk] rules names files below the root, of at most {_MAX_RULES:,} bytes"
            raise ConfigError(f"{name} is not read: {reason}", hint=hint)
        text = raw.decode("utf-8", "replace")
        check_own(name, text)
        found.append((name, text))
    return tuple(found)


def open_risk(reader: Reader, tree: Tree, root: Path, config: RiskConfig, only: Sequence[str]) -> RiskExport:
    """The rows of an export. Nothing is followed where none of the artifacts that are written holds any of it."""
    from cq.questions.risk.rows import RiskExport

    relations = Relations(IndexedFiles(reader, tree))
    is_needed = not only or any(name == "chunks" or name.startswith("risk_") for name in only)
    return RiskExport(relations, config, read_own_rules(root, config.rules), is_needed=is_needed)


def _languages() -> list[str]:
    """Those that rules are written for; the others of a family share them."""
    return sorted({file.language for file in load_files()})


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
