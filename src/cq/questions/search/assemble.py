"""Mentions → the answer: which are shown, in which section, and the card on top."""

from __future__ import annotations

import shlex
import time
from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec
from xxhash import xxh3_64_hexdigest

from cq.answers.page import count_tokens, take
from cq.answers.words import count
from cq.language import TEXT, describe
from cq.model.answer import (
    EVIDENCE,
    SCHEMA_VERSION,
    Answer,
    Budget,
    Candidate,
    Confidence,
    Degradation,
    Finding,
    Insight,
    MatchDetails,
    Risk,
    Run,
    Section,
    Slice,
    Target,
    bucket,
)
from cq.model.location import Location
from cq.model.status import Degraded
from cq.questions.search.classify import NON_CODE, Hit, classify
from cq.questions.search.enrich import Enricher, clip
from cq.questions.search.scan import Scan, SearchOptions, scan
from cq.snapshot.target import CHOSEN, Definition, last_name, rank_twins

if TYPE_CHECKING:
    from cq.snapshot.files import Files, HeldFile

TOP_CANDIDATES, PREVIEW = 3, 5
MAX_LINE = 400
_SECTIONS = {
    "definition": "Definitions",
    "import": "Imports",
    "from_import": "Imports",
    "callsite": "Callsites",
    "decorator": "Callsites",
}
_CALLS = ("callsite", "decorator")
_USES = ("reference", "assignment", "annotation", "type_use", "keyword_argument")
_VALUES = ("variable", "constant", "field", "property", "enum_member", "key", "column")


def search(files: Files, options: SearchOptions) -> tuple[Answer, dict[str, Any]]:
    """The answer, and what is too heavy for it: diagnostics by kind."""
    options.check()
    found = scan(files, options)
    _add_qualified(files, options, found)
    started = time.perf_counter()
    assembly = _Assembly(files, options, found)
    answer = assembly.build()
    found.stages_ms["assemble"] = round((time.perf_counter() - started) * 1000, 2)
    return msgspec.structs.replace(
        answer, run=Run(generation=files.generation, stages_ms=found.stages_ms)
    ), assembly.diagnostics()


def _add_qualified(files: Files, options: SearchOptions, found: Scan) -> None:
    """`A.b` is also the definition of `b` in `A`, though no line says so."""
    owner, _, name = options.text.replace("::", ".").rpartition(".")
    if not owner or found.mode_chain[0] != "identifier" or (options.kinds and "definition" not in options.kinds):
        return
    known = {(hit.file.path, hit.start) for hit in found.hits}
    added: list[Hit] = []
    for file, document, number in files.definitions(name):
        row = Definition(file, document, number)
        symbol = row.symbol
        if not row.is_called(f"{owner}.{name}") or (file.path, symbol.name_start) in known:
            continue
        hits = classify(file, [(symbol.name_start, symbol.name_end)])
        wanted = options.languages
        if not wanted or hits[0].language in wanted:
            added += hits
    if added:
        found.hits = sorted(found.hits + added, key=lambda hit: hit.order)
        found.total += len(added)
        found.by_file.update(hit.file.path for hit in added)
        message = f"{len(added)} definition{'s' if len(added) > 1 else ''} by qualified name, beside the text itself"
        found.events.append(Degraded("search", "info", "qualified_name", message, options.text))


class _Assembly:
    def __init__(self, files: Files, options: SearchOptions, found: Scan) -> None:
        self.files = files
        self.options = options
        self.found = found
        self.all = found.hits  # what a question about kinds leaves out still tells what the name is
        self.hits = [hit for hit in self.all if not options.kinds or hit.category in options.kinds]
        self.counts = Counter(hit.category for hit in self.hits)
        self.only_text = bool(self.hits) and all(hit.category in NON_CODE for hit in self.hits)
        self.definitions = [hit for hit in self.all if hit.category == "definition"]
        self.named = found.mode_chain[-1] != "regex"  # all mentions are of one name or text
        self._known: dict[str, list[Candidate]] = {}
        self.enricher = Enricher(self._find_candidates, crosscheck=options.crosscheck)

    def build(self) -> Answer:
        options, found = self.options, self.found
        listed = self._list()
        shown, budget, cut = take(listed, options.page, self._finding)
        suggestions: tuple[str, ...] = ()
        if not found.total and options.mode != "regex":
            name = last_name(options.text)
            suggestions = tuple(near for near in self.files.near_names(name) if near != name)
        sections = self._sections(shown, listed) if self.hits else ()
        around = 150 if self.hits and not options.page.is_small else 20
        used = count_tokens(sections, options.page.measure) + around
        budget = msgspec.structs.replace(budget, used=used)
        return Answer(
            SCHEMA_VERSION,
            "search",
            Run(),
            self._summary(),
            found=len(self.hits) if options.kinds else found.total,
            insight=self._insight(budget) if self.hits else None,
            key_findings=(),
            sections=sections,
            degraded=(*found.events, *self._events()),
            truncated=(*found.truncated, *cut),
            suggestions=suggestions,
        )

    # -- what is shown -----------------------------------------------------------------------------

    def _list(self) -> list[Hit]:
        """What a page is cut from: non-code only where it was asked for, or where there is nothing else."""
        everything = self.options.include_strings or self.only_text or bool(self.options.kinds)
        return [hit for hit in self.hits if everything or hit.category not in NON_CODE]

    def _finding(self, hit: Hit) -> Finding:
        location = hit.file.locate(hit.start, hit.end)
        message = hit.file.line_at(hit.start)
        if self.options.enrich:
            details = self.enricher.enrich(hit)
        else:
            match = hit.file.text[hit.start : hit.end].decode("utf-8", "replace")
            scope = hit.file.symbols[hit.document][hit.scope].qualified_name if hit.scope >= 0 else ""
            details = MatchDetails(clip(match, 120), hit.language, hit.file.role, hit.tier, scope=scope)
        if self.options.context:
            first, lines = self._context(hit.file, location)
            details = msgspec.structs.replace(details, context=lines, context_line=first)
        key = f"{hit.category}\0{hit.file.path}\0{hit.start}\0{message}"
        stable = xxh3_64_hexdigest(key.encode("utf-8", "surrogatepass"))
        return Finding(hit.category, message, location, hit.score, hit.confidence, details, stable)

    def _context(self, file: HeldFile, location: Location) -> tuple[int, tuple[str, ...]]:
        starts, text = file.lines.starts, file.text
        first = max(location.start_line - self.options.context, 1)
        last = min(location.end_line + self.options.context, len(starts))
        lines = [
            text[starts[number - 1] : starts[number] if number < len(starts) else len(text)]
            for number in range(first, last + 1)
        ]
        return first, tuple(line.rstrip(b"\r\n").decode("utf-8", "replace")[:MAX_LINE] for line in lines)

    def _find_candidates(self, name: str) -> list[Candidate]:
        """The one definition of this name that could be called. Several are listed once, as target candidates."""
        if name not in self._known:
            found = self.files.definitions(name) if name else []
            rows = [(f, f.symbols[d][n]) for f, d, n in found if f.symbols[d][n].kind not in _VALUES]
            self._known[name] = [
                Candidate(
                    s.qualified_name,
                    s.kind,
                    file.path,
                    file.lines.line(s.name_start),
                    "",
                    EVIDENCE["heuristic"],
                    "name",
                )
                for file, s in (rows if len(rows) == 1 else ())
            ]
        return self._known[name]

    # -- sections ------------------------------------------------------------------------------------

    def _sections(self, shown: list[Finding], listed: list[Hit]) -> tuple[Section, ...]:
        by_title: dict[str, list[Finding]] = {}
        for finding in shown:
            title = "Non-Code" if finding.category in NON_CODE else _SECTIONS.get(finding.category, "Uses by Kind")
            by_title.setdefault(title, []).append(finding)
        if self.options.page.is_small:
            titles = ("Definitions", "Imports", "Callsites", "Uses by Kind", "Non-Code")
            rows = [
                Section(title, title.lower(), len(by_title[title]), tuple(by_title[title]))
                for title in titles
                if title in by_title
            ]
            return (
                *rows,
                Section(
                    "Suggested Follow-ups",
                    "followups",
                    findings=self._follow_ups(len(shown), len(listed))[:1],
                    aside=True,
                ),
            )
        sections = [
            Section("Code Overview", "overview", findings=self._overview(), aside=True),
            Section("Target Candidates", "candidates", len(self.definitions), self._candidates(), aside=True),
            Section("Neighborhood Preview", "neighborhood", findings=self._preview(), aside=True),
            self._listing("Definitions", "definitions", ("definition",), by_title),
            Section("Top Contexts", "contexts", self._count_scopes(), self._contexts(), aside=True),
            self._listing("Imports", "imports", ("import", "from_import"), by_title),
            self._listing("Callsites", "callsites", ("callsite", "decorator"), by_title),
            self._uses(by_title),
            self._non_code(by_title),
            Section("Hot Files", "files", len(self._by_file()), self._hot_files(), aside=True),
            Section(
                "Suggested Follow-ups", "followups", findings=self._follow_ups(len(shown), len(listed)), aside=True
            ),
        ]
        return tuple(section for section in sections if section.findings)

    def _listing(
        self, title: str, kind: str, categories: tuple[str, ...], by_title: dict[str, list[Finding]]
    ) -> Section:
        total = sum(self.counts[category] for category in categories)
        return Section(title, kind, total, tuple(by_title.get(title, ())))

    def _overview(self) -> tuple[Finding, ...]:
        found, options = self.found, self.options
        case = "any case" if found.ignore_case else "case as given"
        languages = Counter(hit.language for hit in self.hits)
        names = Counter(
            hit.file.symbols[hit.document][hit.symbol].qualified_name for hit in self.definitions if hit.symbol >= 0
        )
        total = len(self.hits) if options.kinds else found.total
        where = (
            f"{total:,} mention{'s' * (total != 1)} in {len(self._by_file()):,} file{'s' * (len(self._by_file()) != 1)}"
        )
        if self._is_capped():
            where += f"; the best {len(self.all):,} are classed, and what follows is about them"
        rows = [f"{options.text!r} as {' then '.join(found.mode_chain)}, {case}: {where}"]
        rows.append("languages: " + ", ".join(f"{name} {count}" for name, count in _most(languages, 6)))
        if names:
            rows.append("defined as: " + ", ".join(name for name, _ in _most(names, 5)) + _more(len(names), 5))
        return tuple(Finding("overview", row) for row in rows)

    def _candidates(self) -> tuple[Finding, ...]:
        ranked = self._targets
        rows: list[Finding] = []
        for number, hit in enumerate(ranked[:TOP_CANDIDATES], 1):
            symbol = hit.file.symbols[hit.document][hit.symbol] if hit.symbol >= 0 else None
            name = symbol.qualified_name if symbol else self.options.text
            near = self.found.by_file[hit.file.path]
            kind = symbol.kind if symbol else "definition"
            message = f"{number} of {len(ranked)}: {kind} {name}, {count(near, 'mention')} in its file"
            location = hit.file.locate(hit.start, hit.end)
            rows.append(Finding("candidate", message, location, hit.score, hit.confidence))
        return tuple(rows)

    @cached_property
    def _targets(self) -> list[Hit]:
        """Best first: what is named exactly so, as every question ranks it; of the rest code before values, then the
        score, then who is spoken of most."""
        name = last_name(self.options.text)
        exact: dict[tuple[str, int, int], Hit] = {}
        rest: list[Hit] = []
        for hit in self.definitions:
            symbol = hit.file.symbols[hit.document][hit.symbol] if hit.symbol >= 0 else None
            if symbol is not None and symbol.name == name:
                exact.setdefault((hit.file.path, hit.document, hit.symbol), hit)
            else:
                rest.append(hit)

        def order(hit: Hit) -> tuple[Any, ...]:
            symbol = hit.file.symbols[hit.document][hit.symbol] if hit.symbol >= 0 else None
            value = symbol is None or symbol.kind in _VALUES
            return value, -hit.score, -self.found.by_file[hit.file.path], hit.file.path, hit.start

        twins = rank_twins(self.files, (Definition(hit.file, hit.document, hit.symbol) for hit in exact.values()))
        return [*(exact[row.key] for row in twins), *sorted(rest, key=order)]

    def _preview(self) -> tuple[Finding, ...]:
        rows: list[Finding] = []
        for name, part in self._neighborhood().items():
            named = f": {', '.join(part.preview)}{_more(part.total, len(part.preview))}" if part.preview else ""
            if part.total:
                rows.append(Finding(name, f"{part.total} {part.what}{named}", count=part.total))
        return tuple(rows)

    def _neighborhood(self) -> dict[str, Slice]:
        calls = [hit for hit in self.all if hit.category in _CALLS]
        uses = [hit for hit in self.all if hit.category in _USES]
        what = ("this name" if self.named else "what matches") + (" among those classed" if self._is_capped() else "")
        callers, users = (_most(Counter(map(self._scope_name, hits)), None) for hits in (calls, uses))
        slices = {
            "callers": Slice(
                len(callers),
                f"scopes with {len(calls):,} call sites of {what}",
                tuple(n for n, _ in callers[:PREVIEW]),
            )
        }
        targets = self._targets
        if targets and targets[0].symbol >= 0:
            hit = targets[0]
            symbol = hit.file.symbols[hit.document][hit.symbol]
            inside = [c for c in hit.file.calls[hit.document] if symbol.head <= c.start < symbol.end and c.name]
            names = _most(Counter(call.name for call in inside), None)
            slices["callees"] = Slice(
                len(names), f"names called in {symbol.qualified_name}", tuple(n for n, _ in names[:PREVIEW])
            )
        slices["references"] = Slice(len(uses), f"other uses in {len(users)} scopes", ())
        return slices

    def _scope_name(self, hit: Hit) -> str:
        scope = hit.file.symbols[hit.document][hit.scope].qualified_name if hit.scope >= 0 else ""
        return f"{hit.file.path}:{scope}" if scope else hit.file.path

    def _count_scopes(self) -> int:
        return len({self._scope_name(hit) for hit in self.hits if hit.category not in NON_CODE})

    def _contexts(self) -> tuple[Finding, ...]:
        """The scopes with most mentions in code; tests count by their rank, not by their number."""
        groups: dict[str, list[Hit]] = {}
        for hit in self.hits:
            if hit.category not in NON_CODE and hit.scope >= 0:
                groups.setdefault(self._scope_name(hit), []).append(hit)
        ranked = sorted(groups.items(), key=lambda item: (-sum(max(hit.score, 0) for hit in item[1]), item[0]))
        rows: list[Finding] = []
        for _, hits in ranked[:PREVIEW]:
            kinds = Counter(_WORDS.get(hit.category, hit.category.replace("_", " ")) for hit in hits)
            scope = hits[0].file.symbols[hits[0].document][hits[0].scope]
            location = hits[0].file.locate(scope.name_start, scope.name_end)
            what = ", ".join(count(number, kind) for kind, number in _most(kinds, 4))
            rows.append(
                Finding(
                    "context",
                    f"{scope.qualified_name}: {what}",
                    location,
                    count=len(hits),
                )
            )
        return tuple(rows)

    def _uses(self, by_title: dict[str, list[Finding]]) -> Section:
        others = Counter(
            {kind: total for kind, total in self.counts.items() if kind not in NON_CODE and kind not in _SECTIONS}
        )
        rows = tuple(by_title.get("Uses by Kind", ()))
        counted = tuple(
            Finding("count", count(number, kind.replace("_", " ")), count=number)
            for kind, number in _most(others, None)
        )
        total = sum(others.values())
        return Section("Uses by Kind", "uses", total, (*(counted if len(rows) < total else ()), *rows))

    def _non_code(self, by_title: dict[str, list[Finding]]) -> Section:
        hits = [hit for hit in self.hits if hit.category in NON_CODE]
        kinds = Counter(hit.category for hit in hits)
        files = {kind: len({hit.file.path for hit in hits if hit.category == kind}) for kind in kinds}
        counted = tuple(
            Finding("count", f"{count(number, kind)} in {count(files[kind], 'file')}", count=number)
            for kind, number in _most(kinds, None)
        )
        rows = tuple(by_title.get("Non-Code", ()))
        note = "" if rows else "collapsed; `--include-strings` lists them"
        return Section(
            "Non-Code", "non_code", len(hits), (*counted, *rows), collapsed=not rows, note=note, aside=not rows
        )

    def _hot_files(self) -> tuple[Finding, ...]:
        return tuple(Finding("file", f"{count} {path}", count=count) for path, count in _most(self._by_file(), PREVIEW))

    def _by_file(self) -> Counter[str]:
        return Counter(hit.file.path for hit in self.hits) if self.options.kinds else self.found.by_file

    def _is_capped(self) -> bool:
        return bool(self.found.truncated)

    def _follow_ups(self, shown: int, listed: int) -> tuple[Finding, ...]:
        options = self.options
        commands: list[str] = []
        targets = self._targets
        if targets and targets[0].symbol >= 0:
            symbol = targets[0].file.symbols[targets[0].document][targets[0].symbol]
            if symbol.kind_group in ("function", "method", "class"):
                commands.append(" ".join(["cq calls", shlex.quote(symbol.qualified_name), *options.place]))
            path = targets[0].file.path
            if path.isprintable() and "\\x" not in path:
                commands.append(
                    " ".join(["cq facts", shlex.quote(f"./{path}" if path.startswith("-") else path), *options.place])
                )
        if (options.page.number - 1) * options.page.size + shown < listed:
            commands.insert(0, options.command("search", page=options.page.next()))
        if (
            any(self.counts[kind] for kind in NON_CODE)
            and not options.kinds
            and not options.include_strings
            and not self.only_text
        ):
            commands.append(options.command("search", include_strings=True))
        if self.counts["callsite"] and not options.kinds:
            commands.append(options.command("search", kinds=("callsite",)))
        return tuple(Finding("follow_up", command) for command in commands[:4])

    # -- the card and the summary ----------------------------------------------------------------------

    def _insight(self, budget: Budget) -> Insight:
        targets = self._targets
        target = None
        confidence = max((hit.confidence for hit in self.hits), default=0.0)
        if targets:
            hit = targets[0]
            location = hit.file.locate(hit.start, hit.end)
            symbol = hit.file.symbols[hit.document][hit.symbol] if hit.symbol >= 0 else None
            reason = "the only definition" if len(targets) == 1 else CHOSEN
            target = Target(
                symbol.qualified_name if symbol else self.options.text,
                symbol.kind if symbol else "definition",
                location,
                clip(symbol.signature, 200) if symbol else "",
                reason,
                1,
                len(targets),
            )
            confidence = hit.confidence
        evidence = next((name for name, value in EVIDENCE.items() if value == confidence), "text")
        return Insight(
            target,
            {name: msgspec.structs.replace(part, preview=()) for name, part in self._neighborhood().items()},
            self._risk(),
            Confidence(evidence, confidence, bucket(confidence)),
            self._degradation(),
            budget,
            self._say_found(),
        )

    def _say_found(self) -> str:
        """How many mentions, of what; which of them are not listed."""
        found, files = self.found, len(self._by_file())
        total = len(self.hits) if self.options.kinds else found.total
        said = f"{count(total, 'mention')} in {count(files, 'file')}"
        counts = Counter(_WORDS.get(hit.category, "other use") for hit in self.hits if hit.category not in NON_CODE)
        parts = [count(number, word) for word, number in _most(counts, None)]
        text = sum(1 for hit in self.hits if hit.category in NON_CODE)
        if text and not self.only_text:
            listed = "" if self.options.include_strings or self.options.kinds else " (--include-strings lists them)"
            parts.append(f"{text:,} in comments, strings and text{listed}")
        if self._is_capped():
            parts.append(f"of the best {len(self.all):,}")
        return f"{said}: {', '.join(parts)}" if parts else said

    def _risk(self) -> Risk:
        calls = sum(1 for hit in self.all if hit.category in _CALLS)
        files = len({hit.file.path for hit in self.all if hit.category in _CALLS})
        quoted = sum(1 for hit in self.all if hit.category == "string" and _is_quoted(hit)) if self.named else 0
        tests = sum(1 for hit in self.all if hit.file.role == "test")
        same = len(self._targets) if self.named else 0
        drivers: list[str] = []
        points = 0
        if calls >= 10:
            points += 2 if calls >= 50 else 1
            drivers.append(f"{calls} call sites in {files} files")
        if same > 1:
            points += 1
            drivers.append(f"{same} definitions share the name")
        if quoted:
            points += 1
            drivers.append(f"quoted exactly so {quoted} time{'s' * (quoted != 1)}: it may be used dynamically")
        options = self.options
        is_whole = not (options.inside or options.include or options.exclude or options.languages or self._is_capped())
        if same and not tests and is_whole:
            points += 1
            drivers.append("no test mentions it")
        level = "high" if points >= 3 else "medium" if points else "low"
        counters = {"call_sites": calls, "files": files, "definitions": same, "quoted": quoted, "in_tests": tests}
        return Risk(level, tuple(drivers), counters)

    def _degradation(self) -> Degradation:
        found = self.found
        scan_ = (
            "interrupted"
            if found.interrupted
            else "timed out"
            if found.timed_out
            else "capped"
            if found.truncated
            else "ok"
        )
        dropped = sum(partition.dropped_by_scope for partition in found.partitions.values())
        failed = sum(counts["degraded"] for counts in self.enricher.telemetry.values())
        enrichment = "off" if not self.options.enrich else f"{failed} degraded" if failed else "ok"
        return Degradation(scan_, f"{dropped} dropped by language" if dropped else "ok", "skipped", enrichment)

    def _events(self) -> list[Degraded]:
        events: list[Degraded] = []
        dropped = len(self.all) - len(self.hits)
        if dropped:
            message = f"{dropped} mentions of other kinds are left out by --kind"
            events.append(Degraded("search", "info", "kind_filter", message, "kind"))
        if self.options.crosscheck and self.enricher.conflicts:
            message = f"{len(self.enricher.conflicts)} mentions on which the sources disagree"
            events.append(Degraded("enrichment", "warning", "crosscheck", message, "agreement"))
        return events

    def _summary(self) -> dict[str, Any]:
        found, options = self.found, self.options
        partitions = {
            name: part for name, part in found.partitions.items() if part.total_matches or part.dropped_by_scope
        }
        order = sorted(partitions, key=lambda name: (-partitions[name].total_matches, name))
        totals = Counter[str]()
        for counts in self.enricher.telemetry.values():
            totals.update(counts)
        return {
            "query": options.text,
            "mode": found.mode_chain[-1],
            "mode_chain": found.mode_chain,
            "case": "ignored" if found.ignore_case else "respected",
            "lang_scope": ",".join(options.languages) or "auto",
            "total": found.total,
            "matched_files": len(found.by_file),
            "classed": len(self.all),
            "not_searched": self.files.skipped(),
            "categories": dict(sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))),
            "language_order": order,
            "languages": {name: msgspec.to_builtins(partitions[name]) for name in order},
            "candidates": {"by": found.scanned, "files_read": found.candidates},
            "enrichment": {name: totals[name] for name in ("applied", "degraded", "skipped")},
        }

    def diagnostics(self) -> dict[str, Any]:
        """What an answer only points to."""
        languages = sorted({hit.language for hit in self.hits})
        return {
            "enrichment_telemetry": {
                "languages": {
                    name: dict(sorted(self.enricher.telemetry[name].items()))
                    for name in sorted(self.enricher.telemetry)
                },
                "stages": {name: dict(sorted(counts.items())) for name, counts in self.enricher.stages.items()},
                "conflicts": self.enricher.conflicts,
            },
            "language_capabilities": {name: list(describe(name).offers) or [TEXT] for name in languages},
            "cross_language": self._cross_language(),
        }

    def _cross_language(self) -> list[str]:
        """Names that are defined in one language and used in another: what a rename there would miss."""
        defined = {hit.language for hit in self.definitions}
        used = Counter(
            hit.language for hit in self.hits if hit.category not in NON_CODE and hit.language not in defined
        )
        where = ", ".join(sorted(defined))
        return [f"defined in {where}; {count} uses in {name}" for name, count in _most(used, None)] if defined else []


_WORDS = {
    "definition": "definition", "callsite": "call", "decorator": "call", "import": "import", "from_import": "import",
}  # fmt: skip


def _is_quoted(hit: Hit) -> bool:
    text = hit.file.text
    before, after = text[hit.start - 1 : hit.start], text[hit.end : hit.end + 1]
    return before == after and before in (b"'", b'"', b"`")


def _most(counts: Counter[str], limit: int | None) -> list[tuple[str, int]]:
    """Most first, then by name: a Counter's own order is that of insertion."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:limit]


def _more(total: int, shown: int) -> str:
    return f" and {total - shown} more" if total > shown else ""
