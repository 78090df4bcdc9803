"""Results → Answer: the page that is asked for, with its texts, captures and scopes, and the sections around it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any

import msgspec
import xxhash

from cq.language import describe
from cq.model.answer import (
    EVIDENCE,
    SCHEMA_VERSION,
    Answer,
    Budget,
    Capture,
    CountDetails,
    FactDetails,
    Finding,
    Insight,
    LinkDetails,
    QueryDetails,
    Run,
    Section,
    Truncation,
)
from cq.model.location import Location
from cq.model.status import Degraded
from cq.query.patterns import METAVARIABLE
from cq.query.plan import Plan, find_selections
from cq.query.tree import Token, find_tokens
from cq.query.vocabulary import ENTITIES, FILE_TOKENS
from cq.questions.q.absent import explain_absence
from cq.questions.q.bytecode import NotCompiled, compile_document, find_surface
from cq.questions.q.documents import Document, OpenFile
from cq.questions.q.entities import find_raised
from cq.questions.q.links import Definition, Link, Links, define
from cq.questions.q.matches import Match, Result
from cq.questions.q.options import QueryOptions
from cq.questions.q.run import MAX_MATCHES, run_plans
from cq.questions.q.scopes import Scopes, UnknownScopes
from cq.store.read import Reader, StoredFile, Tree

MAX_TEXT, MAX_LINES = 600, 8  # of a match that is shown
MAX_CAPTURE = 200
_AROUND = 800  # tokens of what stands around the matches as JSON
MAX_PAGE = 90  # lines of matches, where no limit is given
MAX_LINKS = 1000  # of one expansion
_DEFINITION = frozenset(kind for kinds in ENTITIES.values() for kind in kinds)


def answer_query(reader: Reader, tree: Tree, plan: Plan, options: QueryOptions) -> Answer:
    files = {file.path: file for file in reader.files(tree.id)}
    (result,) = run_plans(reader, tree, [plan], files)
    run = Run(generation=tree.generation)
    answer = _make_answer(result, _Writer(reader, tree, files), options, run)
    notes = explain_absence(result, reader, tree, files)
    return msgspec.structs.replace(answer, degraded=(*answer.degraded, *notes)) if notes else answer


def _make_answer(result: Result, writer: _Writer, options: QueryOptions, run: Run) -> Answer:
    plan, matches = result.plan, result.matches
    pages = _split_pages(matches, options)
    shown = pages[min(options.page, len(pages)) - 1] if options.page <= len(pages) else []
    findings = tuple(writer.describe(match) for match in shown)
    found = len(matches)
    sections = [
        Section("Matches", "matches", found, findings if "def" in plan.fields else (), "def" not in plan.fields)
    ]
    degraded: list[Degraded] = []
    truncated: list[Truncation] = []
    sections += [writer.field(name, shown, degraded) for name in plan.fields if name != "def"]
    sections += [writer.expand(name, depth, shown, degraded, truncated) for name, depth in plan.expand]
    sections.append(_language_section(result))
    if plan.explain:
        sections.append(_plan_section(result))
    degraded += _find_degraded(result)
    if writer.possible:
        message = f"{writer.possible:,} of these links are possible: several definitions fit, or only the name is known"
        degraded.append(Degraded("links", "info", "possible", message))
    if result.total > found:
        truncated.append(Truncation("matches", "limit=", plan.limit, result.total, result.total - found))
    if result.dropped:
        truncated.append(Truncation("matches", "memory", MAX_MATCHES, found + result.dropped, result.dropped))
    used = sum(_cost(match, options.measure) for match in shown)
    budget = Budget(0 if options.everything else options.budget, used, len(shown), found, options.page, len(pages))
    return Answer(
        SCHEMA_VERSION,
        "q",
        run,
        {
            "query": plan.text,
            "matches": found,
            "files": len({match.path for match in matches}),
            "languages": _count_languages(matches),
        },
        found,
        Insight(budget=budget),
        (),
        tuple(sections),
        (),
        tuple(degraded),
        tuple(truncated),
    )


def _split_pages(matches: list[Match], options: QueryOptions) -> list[list[Match]]:
    """By what matches are likely to cost, which their spans tell: no text is read for a page that is not shown."""
    if options.everything:
        return [matches]
    pages: list[list[Match]] = [[]]
    around = min(_AROUND, options.budget * 2 // 3) if options.measure == "json" else 0
    spent = lines = 0
    for match in matches:
        cost, height = _cost(match, options.measure), _height(match)
        full = len(pages[-1]) >= options.limit if options.limit else lines + height > MAX_PAGE
        if pages[-1] and (full or (options.budget and spent + cost > options.budget - around)):
            pages.append([])
            spent = lines = 0
        pages[-1].append(match)
        spent, lines = spent + cost, lines + height
    return pages


def _cost(match: Match, measure: str) -> int:
    """Tokens: a token per four bytes of the line, the text and the captures; as JSON each has its place as well, and
    the text is there twice."""
    text = 100 if match.symbol >= 0 else min(match.end - match.start, MAX_TEXT)
    captures = sum(min(len(capture.text), MAX_CAPTURE) + 10 for capture in match.captures)
    cost = len(match.path) + len(match.qualified_name) + text + captures + 40
    if measure == "json":
        cost += 400 + text // 2 + len(match.qualified_name) + sum(130 + len(match.path) for _ in match.captures)
    return cost // 4


def _height(match: Match) -> int:
    """Lines: its place, its text, its captures."""
    text = 1 if match.symbol >= 0 else min((match.end - match.start) // 60 + 1, MAX_LINES)
    return 1 + text + len(match.captures)


def _count_languages(matches: Iterable[Match]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for match in matches:
        counts[match.language] = counts.get(match.language, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


class _Writer:
    """Turns matches into findings; files are opened once for all sections."""

    def __init__(self, reader: Reader, tree: Tree, files: dict[str, StoredFile]) -> None:
        self._files = files
        self._reader = reader
        self._open: dict[str, OpenFile] = {}
        self._links = Links(reader, tree, files)
        self._scopes: dict[tuple[str, int], Scopes] = {}
        self._codes: dict[tuple[str, int], list[CodeType]] = {}
        self.possible = 0  # links that are only that

    def open(self, path: str) -> OpenFile:
        if path not in self._open:
            self._open[path] = OpenFile(self._reader, self._files[path])
        return self._open[path]

    def document(self, match: Match) -> Document:
        return self.open(match.path).documents[match.document]

    def locate(self, path: str, start: int, end: int) -> Location:
        return self.open(path).lines.location(path, start, end)

    def describe(self, match: Match) -> Finding:
        document = self.document(match)
        symbols = document.symbols
        text, clipped = _excerpt(match, document)
        around = document.enclosing(match.start, match.end)
        if match.symbol >= 0 and match.kind != "decorator":
            around = symbols[match.symbol].parent
        captures = tuple(
            Capture(capture.name, capture.text[:MAX_CAPTURE], self.locate(match.path, capture.start, capture.end))
            for capture in match.captures
        )
        details = QueryDetails(
            text,
            match.language,
            match.kind,
            match.name,
            match.qualified_name,
            symbols[around].qualified_name if around >= 0 else "",
            captures,
            match.attributes,
            clipped,
        )
        label = match.qualified_name or text.partition("\n")[0]
        stable = xxhash.xxh64_hexdigest(f"q\0{match.path}\0{match.start}\0{match.end}\0{match.kind}\0{text}".encode())
        return Finding(
            match.kind, label, self.locate(match.path, match.start, match.end),
            confidence=EVIDENCE["syntax"], details=details, stable_id=stable,
        )  # fmt: skip

    def definition(self, match: Match) -> int:
        return self.document(match).definition_of(match)

    def subject(self, match: Match) -> str:
        """What facts about a match are said of: a definition by its name."""
        number = self.definition(match)
        symbols = self.document(match).symbols
        return match.qualified_name or (symbols[number].qualified_name if number >= 0 else match.kind)

    # -- fields ----------------------------------------------------------------------------------

    def field(self, name: str, shown: list[Match], degraded: list[Degraded]) -> Section:
        if name in ("callers", "callees"):
            return self.links(name, 1, shown, [])
        findings: list[Finding] = []
        for match in shown:
            if name == "imports":
                findings += self.imports(match, 1)
            elif name == "loc":
                findings.append(self.size(match))
            elif name == "decorators" and (number := self.definition(match)) >= 0:
                decorators = self.document(match).symbols[number].decorators
                findings += [self.note(match, "decorator", f"@{text}") for text in decorators]
            elif name == "decorated_functions":
                symbol = self.document(match).symbols[match.symbol]
                findings.append(self.note(match, symbol.kind, f"{symbol.qualified_name} bears {match.qualified_name}"))
            elif name == "evidence":
                findings.append(self.evidence(match, degraded))
        findings = _unique(findings)
        return Section(name, f"field.{name}", len(findings), tuple(findings))

    def note(
        self, match: Match, category: str, message: str, facts: dict[str, tuple[str, ...]] | None = None
    ) -> Finding:
        details = FactDetails(self.subject(match), facts) if facts is not None else None
        return Finding(
            category, message, self.locate(match.path, match.start, match.end),
            confidence=EVIDENCE["syntax"], details=details,
        )  # fmt: skip

    def size(self, match: Match) -> Finding:
        place = self.locate(match.path, match.start, max(match.end - 1, match.start))
        count = place.end_line - place.start_line + 1
        message = f"{match.qualified_name or match.kind}: {count} lines, {match.end - match.start} bytes"
        return self.note(match, "loc", message, {"lines": (str(count),), "bytes": (str(match.end - match.start),)})

    def evidence(self, match: Match, degraded: list[Degraded]) -> Finding:
        """What the match rests on, and what other sources say about it."""
        document = self.document(match)
        facts: dict[str, tuple[str, ...]] = {"syntax": (f"{match.kind} in the tree of {match.language}",)}
        if match.symbol >= 0 and match.kind in (*ENTITIES["function"], *ENTITIES["method"]):
            scope = self.scope_facts(match, document, degraded)
            facts |= {f"scope.{name}": values for name, values in scope.items() if values}
            if describe(document.language).is_host:
                surface = self.surface_facts(match, document, degraded)
                facts |= {f"bytecode.{name}": values for name, values in surface.items() if values}
        return self.note(match, "evidence", f"{match.qualified_name or match.kind}: {', '.join(facts)}", facts)

    def scope_facts(self, match: Match, document: Document, degraded: list[Degraded]) -> dict[str, tuple[str, ...]]:
        key = (match.path, match.document)
        try:
            if key not in self._scopes:
                self._scopes[key] = Scopes(document)
        except UnknownScopes as reason:
            _degrade(degraded, "scope", f"{match.path} is among the {reason}", match.path)
            return {}
        number = self.definition(match)
        scope = self._scopes[key].of_symbol(number) if number >= 0 else None
        if scope is None:
            return {}
        return {
            "kind": (scope.kind,), "captures": tuple(sorted(scope.captures)), "cells": tuple(sorted(scope.cells)),
            "locals": scope.locals,
        }  # fmt: skip

    def surface_facts(self, match: Match, document: Document, degraded: list[Degraded]) -> dict[str, tuple[str, ...]]:
        if not describe(document.language).is_host:
            _degrade(degraded, "bytecode", f"{document.language} has no bytecode", document.language)
            return {}
        key = (match.path, match.document)
        try:
            if key not in self._codes:
                self._codes[key] = compile_document(document)
        except NotCompiled as reason:
            _degrade(degraded, "bytecode", f"{match.path}: {reason}", match.path)
            return {}
        number = self.definition(match)
        if number < 0:
            return {}
        surface = find_surface(document, document.symbols[number], self._codes[key])
        return dict(zip(("globals", "attributes", "calls", "constants"), surface, strict=True)) if surface else {}

    # -- expansions ------------------------------------------------------------------------------

    def expand(
        self, name: str, depth: int, shown: list[Match], degraded: list[Degraded], truncated: list[Truncation]
    ) -> Section:
        if name in ("callers", "callees"):
            return self.links(name, depth, shown, truncated)
        findings: list[Finding] = []
        for match in shown:
            document = self.document(match)
            if name == "imports":
                findings += self.imports(match, depth)
            elif name == "raises":
                number = self.definition(match)
                values = find_raised(document, number) if number >= 0 or not match.is_code else []
                raised = dict.fromkeys(value or "(again)" for value in values)
                findings += [self.note(match, "raise", f"{self.subject(match)} raises {value}") for value in raised]
            else:
                facts = (self.scope_facts if name == "scope" else self.surface_facts)(match, document, degraded)
                if facts:
                    said = "; ".join(f"{key} {', '.join(values)}" for key, values in facts.items() if values)
                    findings.append(self.note(match, name, f"{self.subject(match)}: {said}", facts))
        findings = _unique(findings)
        return Section(name, f"expand.{name}", len(findings), tuple(findings))

    def links(self, name: str, depth: int, shown: list[Match], truncated: list[Truncation]) -> Section:
        """Breadth first over the whole repository, whatever in= the query has; a definition is visited once."""
        step: Callable[[Definition], list[Link]] = getattr(self._links, f"find_{name}")
        frontier = list(
            dict.fromkeys(
                define(match.path, match.document, self.document(match).symbols, number)
                for match in shown
                if (number := self.definition(match)) >= 0
            )
        )
        seen = set(frontier)
        findings: dict[tuple[Any, ...], Finding] = {}
        omitted = 0
        for level in range(1, depth + 1):
            following: list[Definition] = []
            for definition in frontier:
                for link in step(definition):
                    key = (link.source, link.target, link.path, link.start)
                    if key in findings:
                        continue
                    if len(findings) >= MAX_LINKS:
                        omitted += 1
                        continue
                    findings[key] = self.link(name, link, level)
                    other = link.source if name == "callers" else link.target
                    if other not in seen and other.number >= 0:
                        seen.add(other)
                        following.append(other)
            frontier = following
        if omitted:
            truncated.append(Truncation(name, "links", MAX_LINKS, MAX_LINKS + omitted, omitted))
        possible = sum(finding.category == "possible" for finding in findings.values())
        self.possible += possible
        note = f"{len(findings) - possible:,} certain" + (f", {possible:,} possible" if possible else "")
        return Section(name, f"expand.{name}", len(findings) + omitted, tuple(findings.values()), note=note)

    def link(self, name: str, link: Link, level: int) -> Finding:
        source, target = (self.label(definition) for definition in (link.source, link.target))
        evidence = "resolved" if link.status == "certain" else "heuristic"
        details = LinkDetails(name, source, target, link.status, level, link.source.path, link.target.path, link.of)
        doubt = "" if link.status == "certain" else f" (possible, 1 of {link.of})" if link.of > 1 else " (possible)"
        return Finding(
            link.status, f"{source} → {target}{doubt}", self.locate(link.path, link.start, link.end),
            confidence=EVIDENCE[evidence], details=details,
        )  # fmt: skip

    def label(self, definition: Definition) -> str:
        if definition.number < 0:
            return definition.path
        return self.open(definition.path).documents[definition.document].symbols[definition.number].qualified_name

    def imports(self, match: Match, depth: int) -> list[Finding]:
        """Imports that the code of the match uses or holds, then those of the files they name."""
        findings: list[Finding] = []
        todo: list[tuple[str, Match | None]] = [(match.path, match)]
        seen = {match.path}
        for level in range(1, depth + 1):
            following: list[tuple[str, Match | None]] = []
            for path, own in todo:
                for document in self.open(path).documents:
                    if own is not None and document.number != own.document:
                        continue
                    for item in document.imports:
                        if own is not None and not _uses(document, own, item):
                            continue
                        module = "." * item.level + item.module
                        target = _find_module(self._files, path, document.language, item.level, item.module)
                        details = LinkDetails(
                            "imports", path, module, "by path" if target else "external", level, path, target
                        )
                        findings.append(
                            Finding(
                                "import", f"{path} → {module}", self.locate(path, item.start, item.end), details=details
                            )
                        )
                        if target and target not in seen:
                            seen.add(target)
                            following.append((target, None))
            todo = following
        return findings


def _unique(findings: list[Finding]) -> list[Finding]:
    return list({(finding.category, finding.message, finding.location): finding for finding in findings}.values())


def _uses(document: Document, match: Match, item: Any) -> bool:
    if match.start <= item.start < match.end or match.kind == "module":
        return True
    names = {binding.local for binding in item.bindings}
    return any(name in names and match.start <= at < match.end for name, at, _, _ in document.references)


def _find_module(files: dict[str, StoredFile], path: str, language: str, level: int, module: str) -> str:
    """The file an import names, by its path alone; "" where none of the tree has it."""
    folder = path.rpartition("/")[0]
    style = describe(language)
    if style.imports_by == ".":
        parts = module.split(".") if module else []
        if level:
            above = folder.split("/") if folder else []
            above = above[: len(above) - level + 1]
            bases = ["/".join([*above, *parts])]
        else:
            bases = ["/".join(parts), *(f"{top}/{'/'.join(parts)}" for top in ("src", "lib"))]
        endings = style.module_files
    elif module.startswith("."):
        steps = [*(folder.split("/") if folder else [])]
        for part in module.split("/"):
            if part == "..":
                steps = steps[:-1]
            elif part != ".":
                steps.append(part)
        bases = ["/".join(steps)]
        endings = ("", ".ts", ".tsx", ".js", ".jsx", ".mjs", "/index.ts", "/index.tsx", "/index.js", ".d.ts")
    elif style.imports_by == "::":
        parts = [part for part in module.split("::") if part not in ("crate", "self")]
        bases = ["/".join([*([folder] if folder else []), *parts[:end]]) for end in range(len(parts), 0, -1)]
        endings = style.module_files
    else:
        return ""
    return next((base + ending for base in bases for ending in endings if base + ending in files), "")


def _excerpt(match: Match, document: Document) -> tuple[str, bool]:
    """A definition up to its body; anything else as far as it is short."""
    text = document.file.text
    if match.symbol >= 0 and match.kind in _DEFINITION:
        symbol = document.symbols[match.symbol]
        end = symbol.body_start if symbol.body_start > match.start else match.end
        line = text.find(b"\n", match.start)
        if symbol.body_start < 0 and 0 <= line < end:
            end = line
        lines = text[match.start : end].decode("utf-8", "replace").rstrip().removesuffix("{").rstrip().split("\n")
        while len(lines) > 1 and lines[-1].strip().startswith(("#", "//", "/*", "*")):
            lines.pop()  # a comment between the head and the body
        return "\n".join(lines).rstrip()[:MAX_TEXT], end < match.end
    if match.kind == "module":
        line = text.find(b"\n", match.start)
        return text[match.start : line if line >= 0 else match.end][:MAX_TEXT].decode("utf-8", "replace"), True
    shown = text[match.start : match.end][:MAX_TEXT].decode("utf-8", "ignore")
    lines = shown.split("\n")
    kept = "\n".join(lines[:MAX_LINES])
    return kept, len(kept.encode()) < match.end - match.start


def _language_section(result: Result) -> Section:
    """What was looked at and left out, per language and selection."""
    findings: list[Finding] = []
    for number, statistics in enumerate(result.statistics, 1):
        which = f"group {number}, " if len(result.statistics) > 1 else ""
        for language, part in sorted(statistics.languages.items()):
            if not part.files and not part.opened:
                continue
            counts = {
                "files": part.files,
                "candidates": part.candidates,
                "looked at": part.opened,
                "parsed": part.parsed,
                **part.skipped,
            }
            if part.reason:
                findings.append(
                    Finding(
                        "skipped", f"{which}{language}: left out: {part.reason}", details=CountDetails(0, part.files)
                    )
                )
            else:
                message = f"{which}{language}: {part.matches:,} matches in {part.candidates:,} of {part.files:,} files"
                findings.append(Finding("searched", message, details=CountDetails(part.matches, part.files, counts)))
    return Section("Languages", "languages", len(findings), tuple(findings))


def _plan_section(result: Result) -> Section:
    """How the answer was found: what each group asks, what was looked up first, what that left, what it came to."""
    findings: list[Finding] = []
    for number, statistics in enumerate(result.statistics, 1):
        parts = statistics.languages.values()
        files, candidates, parsed = (
            sum(getattr(part, name) for part in parts) for name in ("files", "candidates", "parsed")
        )
        served = sum(part.files for part in parts if not part.reason)
        findings.append(Finding("group", f"group {number}: {statistics.selection}"))
        if statistics.names:
            findings.append(Finding("names", f"table of names: {statistics.names}"))
        words = (
            f"text index: files with {statistics.prefilter}"
            if statistics.prefilter
            else "text index: nothing to look up, every file is read"
        )
        if statistics.prefilter or not statistics.names:
            findings.append(Finding("prefilter", words))
        skipped = sum(sum(part.skipped.values()) for part in parts)
        message = (
            f"estimated {statistics.estimated:,} files, came to {candidates:,} of {served:,} in reach"
            f" ({files - served:,} in languages left out)"
        )
        findings.append(Finding("estimate", message, details=CountDetails(statistics.estimated, files)))
        matches = sum(part.matches for part in parts)
        findings.append(
            Finding(
                "actual",
                f"parsed {parsed:,} documents, skipped {skipped:,}, found {matches:,}",
                details=CountDetails(matches, parsed),
            )
        )
    findings.append(Finding("total", f"{result.total:,} after sets and stages"))
    return Section("Plan", "explain", len(findings), tuple(findings))


def _find_degraded(result: Result) -> list[Degraded]:
    events: dict[tuple[str, str], Degraded] = {}
    for selection, statistics in zip(find_selections(result.plan.root), result.statistics, strict=True):
        tokens = [token for item in selection.where for token in find_tokens(item)]
        is_free = all(isinstance(token, Token) and token.key in FILE_TOKENS for token in tokens)
        if selection.subject is not None and is_free and METAVARIABLE.fullmatch(selection.subject.text):
            message = f"{selection.subject} alone matches every node: inside=, nthChild= or $X=~regex narrow it"
            events.setdefault(("", "everything"), Degraded("query", "warning", "matches_everything", message))
        for language, reason in statistics.read_in_part.items():
            message = f"{language} reads the pattern only in part ({reason}): shown is what looks like it"
            events.setdefault((language, reason), Degraded("query", "warning", "read_in_part", message, language))
        for language, part in sorted(statistics.languages.items()):
            if part.reason and part.files:
                event = Degraded(
                    "query", "info", "language_skipped", f"{language} is left out: {part.reason}", language
                )
                events.setdefault((language, part.reason), event)
            for reason, count in sorted(part.skipped.items()):
                event = Degraded(
                    "query",
                    "warning",
                    "document_skipped",
                    f"{count:,} {reason} of {language} are not looked at",
                    language,
                )
                events.setdefault((language, reason), event)
    return list(events.values())


def _degrade(degraded: list[Degraded], category: str, message: str, key: str) -> None:
    event = Degraded("enrichment", "warning", category, message, key)
    if event not in degraded:
        degraded.append(event)
