"""Which rules of architecture hold: what may depend on what, by the table [architecture] of cq.toml."""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec

from cq.answers.options import Option, Options, Paged
from cq.answers.page import Page, count_tokens, take
from cq.model.answer import (
    SCHEMA_VERSION,
    Answer,
    Finding,
    GraphEdge,
    Insight,
    PassedAt,
    Run,
    Section,
    Slice,
    SourceDetails,
    ViolationDetails,
)
from cq.model.config import ArchitectureConfig, ArchitectureRule
from cq.model.errors import ConfigError, UsageError
from cq.model.location import Location
from cq.model.source import Skip
from cq.model.status import Degraded
from cq.questions.architecture.check import Tie, Violation, check_rule, make_ties
from cq.questions.architecture.contracts import read_contracts
from cq.questions.architecture.rules import Groups, read_rules
from cq.questions.architecture.suggest import suggest_rules
from cq.snapshot.arrows import find_arrows
from cq.snapshot.relations import Relations, linked
from cq.snapshot.target import module_name
from cq.source.language import detect_language
from cq.source.read import read_bytes

if TYPE_CHECKING:
    from cq.snapshot.snapshot import Snapshot

_CONFIG = "cq.toml"
MAX_BASELINE = 16 * 1024 * 1024


class ArchitectureOptions(Options, frozen=True):
    """The rules of the configuration, of a file, or of import-linter; or those that hold today."""

    examples: ClassVar[str] = """\
  cq architecture                            what breaks a rule, with the line and the way
  cq architecture --fail-on-violation        exit 3 where something does
  cq architecture --baseline known.json      only what is new
  cq architecture --from import-linter       contracts that are there already
  cq architecture --suggest                  rules that hold today, to begin with"""

    rules: Annotated[
        str, Option("a TOML file with the rules (default: [architecture] of cq.toml)", metavar="FILE", place="part")
    ] = ""
    source: Annotated[
        str, Option("read contracts of another tool: import-linter", "from", "TOOL", choices=("import-linter",))
    ] = ""
    rule: Annotated[str, Option("only the rule of this id", metavar="ID")] = ""
    baseline: Annotated[
        str, Option("what is listed there is known: only the rest is new", metavar="FILE", place="part")
    ] = ""
    suggest: Annotated[bool, Option("write the rules that hold today")] = False
    page: Paged = Page(40)

    def check(self) -> None:
        self.page.check()
        if self.source and self.rules:
            raise UsageError("--rules and --from contradict each other", hint="the rules come from one place")
        if self.source and self.source != "import-linter":
            raise UsageError(f"nothing is known of contracts of {self.source!r}", hint="--from import-linter")
        if self.suggest and (self.source or self.rules or self.rule or self.baseline):
            raise UsageError("--suggest asks for no rules: it takes none", hint="leave the other options out")


@linked
def ask(snapshot: Snapshot, options: ArchitectureOptions) -> Answer:
    """Rule by rule, in the order they are written."""
    options.check()
    relations = snapshot.relations
    every = [*_find_imports(relations)]
    if options.suggest:
        return _suggest(relations, make_ties(tie for tie, is_typed in every if not is_typed))
    packages = sorted({tie.target for tie, _ in every if tie.target.startswith("<")})
    notes: list[str] = []
    if options.source:
        groups = Groups(relations.paths(), packages, {})
        config, notes = read_contracts(snapshot.root, groups.match)
    else:
        config = read_rules(snapshot, options.rules)
        groups = Groups(relations.paths(), packages, config.groups)
    rules = _choose(config, options.rule)
    checker = _Checker(relations, every, groups)
    violations: list[tuple[Violation, str]] = []
    counts: dict[str, int] = {}
    for rule in rules:
        found = checker.check(rule)
        counts[rule.id] = len(found)
        violations += [(each, _mark(each)) for each in found]
    known = _read_baseline(snapshot, options.baseline) if options.baseline else None
    new = [each for each in violations if known is None or each[1] not in known]
    shown, budget, cut = take(new, options.page, lambda each: _describe(*each))
    sections = tuple(
        Section(
            rule.id,
            "violations",
            sum(1 for each, _ in new if each.rule is rule),
            findings,
            note=rule.reason,
        )
        for rule in rules
        if (findings := tuple(finding for finding in shown if finding.category == rule.id))
    )
    slices = {
        "violations": Slice(
            len(new), f"edges and ways that break {sum(1 for n in counts.values() if n)} of {len(rules)} rules"
        )
    }
    if known is not None:
        here = {mark for _, mark in violations}
        slices["known"] = Slice(len(violations) - len(new), "of the baseline")
        slices["mended"] = Slice(len(known - here), "of the baseline that are gone")
    events = [Degraded("architecture", "warning", "not_read", note) for note in notes]
    events += [Degraded("architecture", "info", "exception", note) for note in checker.notes]
    if not new and not events:
        events.append(Degraded("architecture", "info", "holds", f"{len(rules)} rules hold"))
    budget = msgspec.structs.replace(budget, used=count_tokens(sections, options.page.measure) + 100)
    failing = sum(1 for each, _ in new if each.rule.severity == "error")
    return Answer(
        SCHEMA_VERSION,
        "architecture",
        Run(generation=relations.files.generation),
        {
            "query": options.rule or "architecture", "rules": counts, "failing": failing,
            "fingerprints": sorted({mark for _, mark in violations}) if options.baseline else [],
        },
        found=len(new),
        insight=Insight(None, slices, budget=budget) if new else None,
        sections=sections,
        degraded=tuple(events),
        truncated=tuple(cut),
        edges=tuple(
            GraphEdge(tie.source, tie.target, tie.kind, 1.0, "resolved", f"{tie.source}:{tie.location.start_line}")
            for tie in dict.fromkeys(tie for each, _ in new for tie in each.way)
        ),
    )  # fmt: skip


def _choose(config: ArchitectureConfig, wanted: str) -> list[ArchitectureRule]:
    if not config.rules:
        hint = "write [[architecture.rules]] into cq.toml; `cq architecture --suggest` shows what holds today"
        raise ConfigError("there are no rules of architecture", hint=hint)
    rules = [rule for rule in config.rules if wanted in ("", rule.id)]
    if not rules:
        raise UsageError(
            f"no rule is called {wanted!r}", hint=f"there are {', '.join(r.id for r in config.rules[:20])}"
        )
    return rules


class _Checker:
    """Checks rules over the edges of a tree, each kind of which is gathered once."""

    def __init__(self, relations: Relations, imports: Sequence[tuple[Tie, bool]], groups: Groups) -> None:
        self._relations, self._imports, self._groups = relations, imports, groups
        self._others: dict[str, list[Tie]] | None = None
        self.notes: list[str] = []

    def check(self, rule: ArchitectureRule) -> list[Violation]:
        ties = list(self._find_ties(rule))
        kept = [tie for tie in ties if not self._is_excepted(rule, tie)]
        self._note_exceptions(rule, ties)
        return check_rule(rule, make_ties(kept), lambda name: self._find_group(name, rule.id))

    def _find_group(self, name: str, rule: str) -> frozenset[str]:
        if not name.startswith("!"):
            return self._groups.find(name, rule)
        outside = set(self._relations.paths())  # of import-linter: all but these
        for each in name[1:].split():
            outside -= self._groups.match(each)
        return frozenset(outside)

    def _find_ties(self, rule: ArchitectureRule) -> Iterator[Tie]:
        if "imports" in rule.edges:
            yield from (tie for tie, is_typed in self._imports if rule.types or not is_typed)
        for kind in rule.edges:
            if kind != "imports":
                yield from self._find_others().get(kind, ())

    def _find_others(self) -> dict[str, list[Tie]]:
        """The certain links from file to file, by kind."""
        if self._others is None:
            self._others = defaultdict(list)
            relations = self._relations
            for path in relations.paths():
                held = relations.hold(path)
                for document in range(len(held.documents) if held is not None else 0):
                    for edge in relations.referrers.find_all(path, document):
                        target = edge.ref.resolved
                        if held is None or target is None or target.path == path or edge.kind == "imports":
                            continue
                        call = relations.call(edge)
                        row = relations.symbol(edge.source)
                        start = call.start if call is not None else row.name_start if row is not None else 0
                        says = f"{relations.label(edge.source)} {edge.kind} {relations.label(target)}"
                        self._others[edge.kind].append(
                            Tie(path, target.path, edge.kind, held.locate(start, start + 1), says)
                        )
            for ties in self._others.values():
                ties.sort(key=lambda tie: (tie.source, tie.location.start_line, tie.target))
        return self._others

    def _is_excepted(self, rule: ArchitectureRule, tie: Tie) -> bool:
        return any(
            not _has_expired(each.until) and self._fits(each.source, tie.source) and self._fits(each.target, tie.target)
            for each in rule.exceptions
        )

    def _fits(self, pattern: str, path: str) -> bool:
        """`=a.b` of import-linter is that module alone; else a group, a module with what is below it, or a path."""
        if pattern.startswith("="):
            name = path.strip("<>") if path.startswith("<") else module_name(path)
            part = pattern[1:].replace(".", r"\.").replace("**", "\0").replace("*", r"[^.]+").replace("\0", ".+")
            return re.fullmatch(part, name) is not None
        return path in self._groups.find(pattern, "")

    def _note_exceptions(self, rule: ArchitectureRule, ties: Sequence[Tie]) -> None:
        """Exceptions that have expired, and those that nothing needs any more."""
        for each in rule.exceptions:
            way = f"{each.source.removeprefix('=')} -> {each.target.removeprefix('=')}"
            if _has_expired(each.until):
                self.notes.append(f"rule {rule.id!r}: the exception {way} ended on {each.until}")
            elif not each.source.startswith("=") and not any(
                self._fits(each.source, tie.source) and self._fits(each.target, tie.target) for tie in ties
            ):
                self.notes.append(f"rule {rule.id!r}: nothing needs the exception {way} any more")


def _has_expired(until: str) -> bool:
    return bool(until) and dt.date.today().isoformat() > until


def _find_imports(relations: Relations) -> Iterator[tuple[Tie, bool]]:
    """Every import, and whether it is for types alone. What a package inside imports of itself counts as well."""
    for arrow in find_arrows(relations):
        target = f"<{arrow.target}>" if arrow.external else arrow.target
        yield Tie(arrow.source, target, "imports", arrow.location, f"imports {arrow.target}"), arrow.type_only


def _mark(each: Violation) -> str:
    ends = sorted({tie.source for tie in each.way}) if each.size else [each.way[0].source, each.way[-1].target]
    return hashlib.sha256("\0".join([each.rule.id, each.way[0].kind, *ends]).encode("utf-8", "replace")).hexdigest()[
        :12
    ]


def _describe(each: Violation, mark: str) -> Finding:
    rule, way = each.rule, each.way
    first, last = next(iter(way)), way[-1]
    target = last.target.strip("<>")
    through = f", through {', '.join(tie.target for tie in way[:-1])}" if len(way) > 1 and not each.size else ""
    if each.size:
        said = " -> ".join([*(tie.source for tie in way), first.source])
        cut = "; ".join(f"{tie.source} -> {tie.target} (line {tie.location.start_line})" for tie in each.cut)
        few = "the fewest arrows to cut" if each.size <= 14 else "arrows to cut"
        message = f"{each.says}: {said}; {few}: {cut}"
    else:
        what = f"reaches {target}" if through else f"imports {target}" if first.kind == "imports" else first.says
        message = f"{what}{through} ({each.says})"
    details = ViolationDetails(
        rule.id,
        rule.kind,
        rule.severity,
        first.source,
        target if not each.size else first.source,
        mark,
        rule.reason,
        first.kind,
        tuple(PassedAt(tie.says, tie.location) for tie in way),
        tuple(f"{tie.source} -> {tie.target}" for tie in each.cut),
    )
    return Finding(rule.id, message, first.location, 1.0, 0.99, details, stable_id=mark)


def _read_baseline(snapshot: Snapshot, name: str) -> frozenset[str]:
    """The fingerprints that a file lists; none where it is not there yet."""
    raw = read_bytes(os.fspath(snapshot.root), name, MAX_BASELINE)
    if isinstance(raw, Skip):
        if raw.reason == "missing":
            return frozenset()
        why = raw.reason.replace("_", " ")
        raise UsageError(f"--baseline {name} is not read: {why}", hint="give a file below the root")
    text = raw.decode("utf-8", "replace")
    found = frozenset(re.findall(r'"([0-9a-f]{12})"', text))
    if not found and text.strip() not in ("", "[]") and '"fingerprints"' not in text:
        raise UsageError(
            f"--baseline {name} is no baseline", hint="`--baseline` of a file that is not there writes one"
        )
    return found


def _suggest(relations: Relations, ties: Mapping[str, Mapping[str, Tie]]) -> Answer:
    text = suggest_rules([path for path in relations.paths() if _is_source(relations, path)], ties)
    location = Location(_CONFIG, 0, len(text.encode()), 1, 1, text.count("\n"), 1)
    details = SourceDetails(text, detect_language(_CONFIG, b""), "architecture")
    sections = (
        Section(
            "Suggested", "suggested", 1, (Finding("suggested", "rules that hold today", location, details=details),)
        ),
    )
    return Answer(
        SCHEMA_VERSION,
        "architecture",
        Run(generation=relations.files.generation),
        {"query": "suggested rules", "rules": {}, "failing": 0, "fingerprints": []},
        found=int(bool(text)),
        insight=Insight(None, {"rules": Slice(text.count("[[architecture.rules]]"), "rules that hold today")}),
        sections=sections if text else (),
        degraded=() if text else (Degraded("architecture", "info", "nothing", "there are no packages to keep apart"),),
    )


def _is_source(relations: Relations, path: str) -> bool:
    held = relations.hold(path)
    return held is not None and held.role in ("src", "lib")
