"""Risk as rows of artifacts: what stands in each chunk, flows between chunks, where data was followed no further."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from hashlib import sha1
from itertools import pairwise
from typing import Literal, NamedTuple

from cq.identity import call_site_id, snippet_hash
from cq.model.artifact import (
    SCHEMA_VERSION,
    ChunkRisk,
    CompactRisk,
    FlowEndpoint,
    FlowNotes,
    FlowPath,
    Interprocedural,
    LocalFlows,
    PlainCount,
    RiskCaps,
    RiskCounts,
    RiskEvidence,
    RiskFlowRow,
    RiskLimits,
    RiskLocalFlowRow,
    RiskPartialFlowRow,
    RiskSettings,
    RiskSignal,
    RiskSummaryRow,
    RiskSymbol,
    RulePair,
    SignalCount,
    SinkCount,
)
from cq.model.config import RiskConfig
from cq.model.facts import Call
from cq.questions.risk.flows import Analysis, Row, analyze
from cq.risk.engine import LateError
from cq.risk.program import Document
from cq.risk.rules import SEVERITIES, EntryRule, OwnRules, Rule, SanitizerRule, Severity, SinkRule, SourceRule
from cq.risk.values import Place, RuleSource, Step
from cq.snapshot.files import HeldFile
from cq.snapshot.relations import Relations

MAX_SIGNALS, MAX_EVIDENCE, MAX_PAIRS = 50, 3, 50
_DECAY = 0.85
_Status = Literal["ok", "disabled", "timed_out"]


class _Signal(NamedTuple):
    rule: Rule
    places: list[Place]


class _Chunk(NamedTuple):
    path: str
    document: int
    number: int  # among the chunks of the document
    uid: str


class RiskExport:
    """The rows of one generation, by file. What caps and the clock left out is counted."""

    def __init__(self, relations: Relations, config: RiskConfig, own_rules: OwnRules, *, is_needed: bool) -> None:
        caps = config.caps
        self.settings = RiskSettings(
            config.enabled, config.summary_only, config.strictness, config.emit_artifacts, config.sanitizer_policy,
            RiskCaps(
                caps.max_depth, caps.max_paths_per_pair, caps.max_total_flows, caps.max_call_sites_per_edge, caps.max_ms
            ),
        )  # fmt: skip
        self.status: _Status = "disabled"
        self.reason: str | None = None if config.enabled else "risk.enabled is false"
        self.caps_hit: dict[str, None] = {}
        self.counts = RiskCounts()
        self.seconds = (0.0, 0.0)  # of following functions, of making rows
        self._relations = relations
        self._calls: dict[tuple[str, int], dict[tuple[int, int], Call]] = {}
        self._signals: dict[tuple[str, int], dict[int, dict[str, _Signal]]] = {}
        self._pairs: dict[str, list[RulePair]] = {}
        self._flows: dict[str, list[RiskFlowRow]] = {}
        self._local: dict[str, list[RiskLocalFlowRow]] = {}
        self._partial: dict[str, list[RiskPartialFlowRow]] = {}
        self._edges = 0
        if config.enabled and is_needed:
            self._compute(config, own_rules)

    # -- rows, by file and document ------------------------------------------------------------------------

    @property
    def is_written(self) -> bool:
        return self.settings.emit_artifacts == "jsonl" and self.status != "disabled"

    def summarize(self, path: str, document: int) -> dict[str, ChunkRisk]:
        """By chunkUid."""
        found: dict[str, ChunkRisk] = {}
        for number, signals in self._signals.get((path, document), {}).items():
            uid = self._name(path, document, number)
            parts = {sort: self._select(signals, sort) for sort in ("source", "sink", "sanitizer")}
            severities: list[Severity] = [one.rule.severity for one in parts["sink"] if isinstance(one.rule, SinkRule)]
            counts = {sort: sum(len(one.places) for one in of_sort) for sort, of_sort in parts.items()}
            worst = max(severities, key=SEVERITIES.index) if severities else None
            compact = CompactRisk(
                SCHEMA_VERSION,
                SignalCount(counts["source"], _list_top(parts["source"])),
                SinkCount(counts["sink"], worst, _list_top(parts["sink"])),
                PlainCount(counts["sanitizer"]),
                PlainCount(len(self._pairs.get(uid, ()))),
                Interprocedural(self.settings.enabled, self.settings.summary_only),
            )
            found[uid] = ChunkRisk(compact)
        return found

    def make_summaries(self, path: str, document: int) -> Iterator[RiskSummaryRow]:
        held = self._relations.hold(path)
        if held is None or not self.is_written:
            return
        for number, signals in self._signals.get((path, document), {}).items():
            chunk = held.chunks[document][number]
            uid = self._name(path, document, number)
            symbol = held.symbols[document][chunk.symbol] if chunk.symbol >= 0 else None
            pairs = self._pairs.get(uid, [])
            distinct = sorted(set(pairs), key=lambda pair: (pair.source_rule_id, pair.sink_rule_id))
            sorts = [self._list_signals(signals, sort) for sort in ("source", "sink", "sanitizer")]
            yield RiskSummaryRow(
                schema_version=SCHEMA_VERSION,
                chunk_id=uid,
                file=path,
                symbol=RiskSymbol(
                    symbol.qualified_name if symbol else chunk.name, chunk.kind, held.documents[document].language
                ),
                sources=sorts[0],
                sinks=sorts[1],
                sanitizers=sorts[2],
                local_flows=LocalFlows(len(pairs), bool(pairs), tuple(distinct[:MAX_PAIRS])),
                limits=RiskLimits(MAX_EVIDENCE, MAX_SIGNALS, any(map(self._is_cut, signals.values())), ()),
            )

    def make_flows(self, path: str, document: int) -> Iterator[RiskFlowRow]:
        return iter(self._flows.get(path, ()) if self.is_written and not document else ())

    def make_local_flows(self, path: str, document: int) -> Iterator[RiskLocalFlowRow]:
        return iter(self._local.get(path, ()) if self.is_written and not document else ())

    def make_partial_flows(self, path: str, document: int) -> Iterator[RiskPartialFlowRow]:
        return iter(self._partial.get(path, ()) if self.is_written and not document else ())

    # -- how they are found --------------------------------------------------------------------------------

    def _compute(self, config: RiskConfig, own_rules: OwnRules) -> None:
        began = time.monotonic()
        most = config.caps.max_ms
        try:
            analysis = analyze(
                self._relations, own_rules, weakens=config.sanitizer_policy == "weaken",
                is_late=bool if most is None else lambda: (time.monotonic() - began) * 1000 > most,
            )  # fmt: skip
        except LateError:
            self.status, self.reason = "timed_out", f"risk.caps.maxMs = {most}"
            self.caps_hit["maxMs"] = None
            self.seconds = (time.monotonic() - began, 0.0)
            return
        followed = time.monotonic()
        self.status = "ok"
        self._note_signals(analysis)
        rows = sorted(analysis.rows, key=lambda row: (row.location.path, row.location.start, row.fingerprint))
        between: list[RiskFlowRow] = []
        for row in rows:
            between += self._take(row)
        if config.strictness == "conservative":
            between = list(self._reach(analysis))
        if config.summary_only:
            between, self._local, self._partial = [], {}, {}
        else:
            self._note_partial(analysis)
        between = self._bound(between)
        for flow in between:
            self._flows.setdefault(flow.file, []).append(flow)
        used = {site for flow in between for step in flow.path.call_site_ids_by_step for site in step}
        summaries = sum(len(signals) for signals in self._signals.values())
        roots = sum(
            len(self._select(signals, "source")) for chunks in self._signals.values() for signals in chunks.values()
        )
        edges = self._edges or len({pair for flow in between for pair in pairwise(flow.path.chunk_ids)})
        chunks = sum(len(held.chunks[number]) for held, number in self._documents(analysis))
        self.counts = RiskCounts(chunks, summaries, roots, edges, len(between), len(used))
        self.seconds = (followed - began, time.monotonic() - followed)

    def _documents(self, analysis: Analysis) -> Iterator[tuple[HeldFile, int]]:
        for path in analysis.paths:
            held = self._relations.hold(path)
            if held is not None:
                yield from ((held, number) for number in range(len(held.documents)))

    def _note_signals(self, analysis: Analysis) -> None:
        for rule_id, place in analysis.engine.seen:
            self._note_signal(analysis, rule_id, place)
        for flow in analysis.engine.flows.values():
            if flow.taint is not None and isinstance(flow.taint.source, RuleSource):
                self._note_signal(analysis, flow.taint.source.rule, flow.taint.source.place)

    def _note_signal(self, analysis: Analysis, rule_id: str, place: Place) -> None:
        rule = self._find_rule(analysis, rule_id, place)
        chunk = self._find_chunk(place)
        if rule is None or chunk is None:
            return
        signals = self._signals.setdefault((chunk.path, chunk.document), {}).setdefault(chunk.number, {})
        known = signals.setdefault(rule_id, _Signal(rule, []))
        if place not in known.places:
            known.places.append(place)

    def _find_rule(self, analysis: Analysis, rule_id: str, place: Place) -> Rule | None:
        document = analysis.engine.find_document(place.path, place.document)
        return None if document is None else analysis.engine.rules_of(document.language).by_id.get(rule_id)

    def _take(self, row: Row) -> Iterator[RiskFlowRow]:
        """A flow inside one chunk, or one between chunks."""
        flow = row.flow
        if flow.taint is None or not isinstance(flow.taint.source, RuleSource) or row.source is None:
            return
        path, sites = self._walk(flow.taint.step)
        if not path:
            return
        if len(path) == 1:
            place, chunk = flow.taint.source.place, path[0]
            self._pairs.setdefault(chunk.uid, []).append(RulePair(row.source_rule, row.rule.id))
            local = RiskLocalFlowRow(
                schema_version=SCHEMA_VERSION,
                chunk_id=chunk.uid,
                file=chunk.path,
                source_rule_id=row.source_rule,
                sink_rule_id=row.rule.id,
                category=row.kind,
                severity=row.severity,
                confidence=row.confidence,
                source=self._describe_place(place),
                sink=self._describe_place(flow.place),
                fingerprint=row.fingerprint,
            )
            self._local.setdefault(chunk.path, []).append(local)
            return
        hops = len(path) - 1
        if hops > self.settings.caps.max_depth:
            self.caps_hit["maxDepth"] = None
            chunk = path[-1]
            evidence = self._describe_place(flow.place)
            self._add_partial(chunk, evidence, "maxDepth", row.rule.id, row.source_rule)
            return
        barriers = sum(1 for step in _list_steps(flow.taint.step) if step.kind == "sanitizer")
        yield self._make_flow(row.source, row.rule, path, sites, row.confidence, barriers, row.fingerprint)

    def _make_flow(
        self, source: SourceRule | EntryRule, sink: SinkRule, path: list[_Chunk], sites: list[tuple[str, ...]],
        confidence: float, barriers: int, fingerprint: str | None,
    ) -> RiskFlowRow:  # fmt: skip
        uids = tuple(chunk.uid for chunk in path)
        told = "|".join((uids[0], source.id, uids[-1], sink.id, ">".join(uids)))
        return RiskFlowRow(
            schema_version=SCHEMA_VERSION,
            flow_id=f"sha1:{sha1(told.encode('utf-8', 'surrogateescape'), usedforsecurity=False).hexdigest()}",
            file=path[0].path,
            source=FlowEndpoint(
                uids[0], source.id, source.message, "source", source.origin, None, source.confidence
            ),
            sink=FlowEndpoint(uids[-1], sink.id, sink.message, "sink", sink.kind, sink.severity, sink.confidence),
            path=FlowPath(uids, tuple(sites)),
            confidence=confidence,
            notes=FlowNotes(
                self.settings.strictness, self.settings.sanitizer_policy, len(path) - 1, barriers, ()
            ),
            fingerprint=fingerprint,
        )  # fmt: skip

    def _walk(self, last: Step | None) -> tuple[list[_Chunk], list[tuple[str, ...]]]:
        """The chunks that a flow passes, and the calls by which it goes from one to the next."""
        path: list[_Chunk] = []
        sites: list[tuple[str, ...]] = []
        before: Step | None = None
        for step in _list_steps(last):
            chunk = self._find_chunk(step.place)
            if chunk is None:
                continue
            if path and path[-1].uid != chunk.uid:
                # Into a function by the call before it, back from one by the return behind it.
                calls = [one.place for one, kind in ((before, "call"), (step, "return")) if one and one.kind == kind]
                found = [self._find_site(place) for place in calls]
                sites.append(tuple([site for site in found if site is not None][: self._most_sites]))
            if not path or path[-1].uid != chunk.uid:
                path.append(chunk)
            before = step
        return path, sites

    @property
    def _most_sites(self) -> int:
        return self.settings.caps.max_call_sites_per_edge

    def _bound(self, flows: Iterable[RiskFlowRow]) -> list[RiskFlowRow]:
        """In their order, each way once, as many as the caps let through."""
        distinct = {
            flow.flow_id: flow for flow in sorted(flows, key=lambda flow: (flow.flow_id, -flow.confidence))[::-1]
        }
        ordered = sorted(distinct.values(), key=RiskFlowRow.key)
        pairs: Counter[tuple[str, str, str, str]] = Counter()
        kept: list[RiskFlowRow] = []
        for flow in ordered:
            pair = (flow.source.chunk_id, flow.source.rule_id, flow.sink.chunk_id, flow.sink.rule_id)
            pairs[pair] += 1
            if pairs[pair] > self.settings.caps.max_paths_per_pair:
                self.caps_hit["maxPathsPerPair"] = None
            elif len(kept) >= self.settings.caps.max_total_flows:
                self.caps_hit["maxTotalFlows"] = None
            else:
                kept.append(flow)
        return kept

    # -- what calls alone let reach one another (conservative) -----------------------------------------------

    def _reach(self, analysis: Analysis) -> Iterator[RiskFlowRow]:
        """From every source along every call to every sink, whatever is passed."""
        edges = self._find_edges(analysis)
        self._edges = sum(map(len, edges.values()))
        held: dict[str, tuple[_Chunk, dict[str, _Signal]]] = {}
        for (path, document), chunks in self._signals.items():
            for number, signals in chunks.items():
                uid = self._name(path, document, number)
                held[uid] = (_Chunk(path, document, number, uid), signals)
        terminates = self.settings.sanitizer_policy == "terminate"
        limit = self.settings.caps.max_total_flows
        count = 0
        for uid in sorted(held):
            chunk, signals = held[uid]
            for one in self._select(signals, "source"):
                source = one.rule
                assert isinstance(source, (SourceRule, EntryRule))
                todo = deque([([chunk], list[tuple[str, ...]](), 0)])
                seen = {uid}
                while todo:
                    way, sites, barriers = todo.popleft()
                    here = held.get(way[-1].uid)
                    stops = here is not None and bool(self._select(here[1], "sanitizer"))
                    if len(way) > 1 and here is not None:
                        barriers += stops
                        for found in self._select(here[1], "sink"):
                            sink = found.rule
                            assert isinstance(sink, SinkRule)
                            decay = _DECAY ** (len(way) - 2) * (1.0 if terminates else 0.5**barriers)
                            confidence = round(min(1.0, 0.1 + 0.9 * source.confidence * sink.confidence) * decay, 3)
                            yield self._make_flow(source, sink, way, sites, confidence, barriers, None)
                            count += 1
                    if stops and terminates:
                        continue
                    if len(way) > self.settings.caps.max_depth:
                        if edges.get(way[-1].uid):
                            self.caps_hit["maxDepth"] = None
                        continue
                    if count > 20 * limit:
                        self.caps_hit["maxTotalFlows"] = None
                        return
                    for target, (after, calls) in sorted(edges.get(way[-1].uid, {}).items()):
                        if target not in seen:
                            seen.add(target)
                            todo.append(([*way, after], [*sites, tuple(calls)], barriers))

    def _find_edges(self, analysis: Analysis) -> dict[str, dict[str, tuple[_Chunk, list[str]]]]:
        """By chunk: the chunks that its calls lead to for certain, with the first calls."""
        found: dict[str, dict[str, tuple[_Chunk, list[str]]]] = {}
        for held, number in self._documents(analysis):
            document = analysis.engine.find_document(held.path, number)
            if document is None:
                continue
            for at, site in enumerate(document.code.sites):
                callees = analysis.engine.find_callees(document, at)
                function = analysis.engine.find_function(callees[0].place) if len(callees) == 1 else None
                caller = self._find_chunk(Place(held.path, number, site.start, site.end)) if function else None
                callee = self._find_definition(function.document, function.start) if function else None
                if caller is None or callee is None or caller.uid == callee.uid:
                    continue
                _, calls = found.setdefault(caller.uid, {}).setdefault(callee.uid, (callee, []))
                call = self._find_site(Place(held.path, number, site.start, site.end))
                if call is not None and len(calls) < self._most_sites:
                    calls.append(call)
        return found

    def _find_definition(self, document: Document, start: int) -> _Chunk | None:
        return self._find_chunk(Place(document.path, document.number, max(start, 0), max(start, 0) + 1))

    # -- where nothing goes on ---------------------------------------------------------------------------------

    def _note_partial(self, analysis: Analysis) -> None:
        for place, name, source in analysis.engine.entered_unmodelled:
            chunk = self._find_chunk(place)
            if chunk is not None:
                self._add_partial(chunk, self._describe_place(place), "unmodelled", name, source)
        for place, start in analysis.engine.cut:
            at = Place(place.path, place.document, max(start, 0), max(start, 0) + 1)
            chunk = self._find_chunk(at)
            if chunk is not None:
                self._add_partial(chunk, self._describe_place(at), "tooLarge", place.name, None)
        for rows in self._partial.values():
            distinct = {row.key(): row for row in rows}
            rows[:] = [distinct[key] for key in sorted(distinct)]
        for local in self._local.values():
            distinct_local = {row.key(): row for row in local}
            local[:] = [distinct_local[key] for key in sorted(distinct_local)]

    def _add_partial(
        self, chunk: _Chunk, at: RiskEvidence, reason: Literal["unmodelled", "tooLarge", "maxDepth"], name: str,
        source: str | None,
    ) -> None:  # fmt: skip
        row = RiskPartialFlowRow(
            schema_version=SCHEMA_VERSION,
            chunk_id=chunk.uid,
            file=chunk.path,
            line=at.line,
            column=at.column,
            reason=reason,
            name=name,
            source_rule_id=source,
        )
        self._partial.setdefault(chunk.path, []).append(row)

    # -- names and places ----------------------------------------------------------------------------------------

    def _find_chunk(self, place: Place) -> _Chunk | None:
        """The innermost chunk that holds a place."""
        held = self._relations.hold(place.path)
        if held is None or place.document >= len(held.documents):
            return None
        chunks = held.chunks[place.document]
        best, size = 0, 1 << 62
        for number, chunk in enumerate(chunks):
            if chunk.start <= place.start < max(chunk.end, chunk.start + 1) and chunk.end - chunk.start < size:
                best, size = number, chunk.end - chunk.start
        return _Chunk(place.path, place.document, best, self._name(place.path, place.document, best))

    def _name(self, path: str, document: int, number: int) -> str:
        held = self._relations.hold(path)
        assert held is not None
        return held.name_chunk(document, number)

    def _find_site(self, place: Place) -> str | None:
        held = self._relations.hold(place.path)
        if held is None:
            return None
        key = (place.path, place.document)
        if key not in self._calls:
            self._calls[key] = {(call.start, call.end): call for call in held.calls[place.document]}
        call = self._calls[key].get((place.start, place.end))
        return None if call is None else call_site_id(held.locate(call.start, call.end), call.callee)

    def _describe_place(self, place: Place) -> RiskEvidence:
        held = self._relations.hold(place.path)
        assert held is not None
        where = held.locate(place.start, max(place.end, place.start))
        return RiskEvidence(
            place.path, where.start_line, where.start_col, snippet_hash(held.line_at(place.start).strip()) or None
        )

    def _select(self, signals: dict[str, _Signal], sort: str) -> list[_Signal]:
        kinds = {"source": (SourceRule, EntryRule), "sink": (SinkRule,), "sanitizer": (SanitizerRule,)}[sort]
        return [signals[name] for name in sorted(signals) if isinstance(signals[name].rule, kinds)]

    def _list_signals(self, signals: dict[str, _Signal], sort: str) -> tuple[RiskSignal, ...]:
        found: list[RiskSignal] = []
        for one in self._select(signals, sort)[:MAX_SIGNALS]:
            rule = one.rule
            places = sorted(map(self._describe_place, one.places), key=lambda at: (at.file, at.line, at.column))
            is_sink = isinstance(rule, SinkRule)
            category = rule.kind if is_sink else rule.origin if isinstance(rule, (SourceRule, EntryRule)) else None
            found.append(
                RiskSignal(
                    rule.id, rule.message, sort, category,  # pyright: ignore[reportArgumentType]
                    rule.severity if is_sink else None, getattr(rule, "confidence", None),
                    (f"CWE-{rule.cwe}",) if is_sink else (), tuple(places[:MAX_EVIDENCE]),
                )
            )  # fmt: skip
        return tuple(found)

    def _is_cut(self, signal: _Signal) -> bool:
        return len(signal.places) > MAX_EVIDENCE


def _list_top(signals: Iterable[_Signal]) -> tuple[str, ...]:
    counts: Counter[str] = Counter()
    for one in signals:
        counts[getattr(one.rule, "kind", "") or getattr(one.rule, "origin", "")] += len(one.places)
    return tuple(sorted(counts, key=lambda name: (-counts[name], name))[:3])


def _list_steps(last: Step | None) -> list[Step]:
    steps: list[Step] = []
    while last is not None:
        steps.append(last)
        last = last.before
    return steps[::-1]
