"""Who calls a function: every call site of its name, with what is passed, and which definition each may mean.

Which one is meant is judged by name and scope: `likely` where the receiver or an import says so, else `possible`.
"""

from __future__ import annotations

import shlex
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from cq.features.page import Page, take
from cq.features.target import Definition, find_targets, module_name
from cq.identity import call_site_id
from cq.model.answer import (
    EVIDENCE,
    SCHEMA_VERSION,
    Answer,
    CallArgument,
    CallDetails,
    Candidate,
    CommandDetails,
    Confidence,
    CountDetails,
    Finding,
    Insight,
    Risk,
    Run,
    Section,
    Slice,
    Target,
    bucket,
)
from cq.model.facts import Call, Symbol
from cq.model.status import Degraded
from cq.source.files import PathFilter

if TYPE_CHECKING:
    from cq.features.files import Files, HeldFile

MAX_CANDIDATES = 25
PREVIEW = 5
_ROLE_ORDER = {"src": 0, "lib": 1, "generated": 2, "test": 3, "doc": 4}
_SELF = frozenset({"self", "cls", "this", "Self"})
_CALLABLE = frozenset({"function", "method", "class", "type"})
# Calls that may reach a function without saying its name as code.
_HAZARDS = {
    "getattr": "getattr", "setattr": "getattr", "hasattr": "getattr", "attrgetter": "getattr",
    "methodcaller": "getattr", "eval": "eval", "exec": "eval", "compile": "eval", "partial": "partial",
    "partialmethod": "partial", "import_module": "importlib", "__import__": "importlib", "import_string": "importlib",
    "apply": "apply", "bind": "apply", "call": "apply", "patch": "patch", "object": "patch",
}  # fmt: skip


class CallsOptions(msgspec.Struct, frozen=True):
    """A question in full; the filters are about the files that call, never about the target."""

    target: str
    languages: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    page: Page = Page()


class Site:
    """One call, and the definitions it may mean."""

    __slots__ = ("call", "candidates", "document", "evidence", "file", "status")

    def __init__(self, file: HeldFile, document: int, call: Call) -> None:
        self.file = file
        self.document = document
        self.call = call
        self.status = "possible"
        self.evidence = "name"
        self.candidates: list[Definition] = []

    @property
    def caller(self) -> Symbol | None:
        return self.file.symbols[self.document][self.call.scope] if self.call.scope >= 0 else None

    @property
    def order(self) -> tuple[bool, int, str, int]:
        return self.status != "likely", _ROLE_ORDER.get(self.file.role, 2), self.file.path, self.call.start


def find_calls(files: Files, options: CallsOptions) -> Answer:
    """Every call site that may mean the target, the likely ones first, sources before tests."""
    options.page.check()
    targets = [row for row in find_targets(files, options.target) if row.symbol.kind_group in _CALLABLE]
    if not targets:
        return _find_nothing(files, options)
    return _Assembly(files, options, targets).build()


def _find_nothing(files: Files, options: CallsOptions) -> Answer:
    name = options.target.replace("::", ".").replace(">", ".").rpartition(".")[2].rpartition(":")[2].strip()
    summary = {"query": options.target, "definitions": 0, "call_sites": 0}
    message = f"nothing that can be called is named {options.target!r} here"
    event = Degraded("calls", "info", "no_target", message, options.target)
    return Answer(
        SCHEMA_VERSION, "calls", Run(generation=files.generation), summary,
        degraded=(event,), suggestions=tuple(files.near_names(name)),
    )  # fmt: skip


class _Assembly:
    def __init__(self, files: Files, options: CallsOptions, targets: list[Definition]) -> None:
        self.files = files
        self.options = options
        self.name = targets[0].symbol.name
        self.targets = targets
        self.chosen = targets[0]
        # A target may name one of several; a call may still mean any of that name.
        self.all = [Definition(*row) for row in files.definitions(self.name)]
        self.all = [row for row in self.all if row.symbol.kind_group in _CALLABLE]
        self.all.sort(key=lambda row: row.order)
        self.sites, self.hazards = self._find_sites()

    def build(self) -> Answer:
        options = self.options
        shown, budget, cut = take(self.sites, options.page, self._finding)
        likely = sum(1 for site in self.sites if site.status == "likely")
        score = EVIDENCE["syntax"] if likely == len(self.sites) and likely else EVIDENCE["heuristic"]
        evidence = "syntax" if score == EVIDENCE["syntax"] else "heuristic"
        insight = Insight(
            self._target(),
            self._neighborhood(likely),
            self._risk(),
            Confidence(evidence, score, bucket(score)),
            budget=budget,
        )
        summary = {
            "query": options.target,
            "name": self.name,
            "definitions": len(self.all),
            "call_sites": len(self.sites),
            "likely": likely,
            "possible": len(self.sites) - likely,
            "callers": len({self._caller_key(site) for site in self.sites}),
            "files": len({site.file.path for site in self.sites}),
            "by_role": dict(_most(Counter(site.file.role for site in self.sites))),
        }
        return Answer(
            SCHEMA_VERSION,
            "calls",
            Run(generation=self.files.generation),
            summary,
            found=len(self.sites),
            insight=insight,
            sections=self._sections(shown),
            truncated=tuple(cut),
        )

    # -- finding ---------------------------------------------------------------------------------------

    def _find_sites(self) -> tuple[list[Site], list[Site]]:
        options = self.options
        is_wanted = PathFilter(options.include, options.exclude, options.inside)
        sites: list[Site] = []
        for file in self.files.calls(self.name):
            if is_wanted(file.path):
                for document, calls in enumerate(file.calls):
                    if options.languages and file.documents[document].language not in options.languages:
                        continue
                    found = [Site(file, document, call) for call in calls if call.name == self.name]
                    for site in found:
                        self._judge(site)
                    sites += found
        wanted = {row.key for row in self.targets}
        # A site that surely means another definition of the name is no call of this one.
        sites = [site for site in sites if site.status != "likely" or any(row.key in wanted for row in site.candidates)]
        sites.sort(key=lambda site: site.order)
        return sites, self._find_hazards(is_wanted)

    def _judge(self, site: Site) -> None:
        """By the receiver, then by what the file defines or imports; else any definition of the name."""
        site.candidates = [row for row in self.all if self._can_be(site, row)] or self.all
        receiver, caller = site.call.receiver, site.caller
        near: list[Definition] = []
        if receiver in _SELF and caller is not None:
            owner = self._owner(site)
            near = [row for row in self._in_file(site) if owner is not None and row.parent is owner]
            site.evidence = "own class"
        elif not receiver:
            near = [row for row in self._in_file(site) if row.symbol.parent < 0]
            site.evidence = "same file"
            if not near:
                near, site.evidence = self._imported(site, self.name), "import"
        elif receiver.replace("::", ".").rpartition(".")[2].isidentifier():
            last = receiver.replace("::", ".").rpartition(".")[2]
            near = [row for row in self.all if (owner := row.parent) is not None and owner.name == last]
            site.evidence = "class named"
            if not near:
                near, site.evidence = self._imported(site, last), "module named"
        if len(near) == 1:
            site.status, site.candidates = "likely", near
        else:
            site.evidence = "name"
            site.candidates = near or site.candidates

    def _can_be(self, site: Site, row: Definition) -> bool:
        """A bare call reaches no method, and `super()` not the method it stands in."""
        if not site.call.receiver:
            return row.symbol.kind_group != "method"
        if site.call.kind == "super":
            caller = site.caller
            same = row.file.path == site.file.path and row.document == site.document
            return not (same and caller is not None and caller is row.symbol)
        return True

    def _in_file(self, site: Site) -> list[Definition]:
        return [row for row in self.all if row.file.path == site.file.path and row.document == site.document]

    def _owner(self, site: Site) -> Symbol | None:
        symbols, place = site.file.symbols[site.document], site.call.scope
        while place >= 0 and symbols[place].kind_group not in ("class", "type"):
            place = symbols[place].parent
        # The same object as a definition's `parent`: a file is held once.
        return symbols[place] if place >= 0 else None

    def _imported(self, site: Site, local: str) -> list[Definition]:
        """Definitions in the module that the file imports a name from."""
        found: list[Definition] = []
        for item in site.file.imports[site.document][0]:
            for bound in item.bindings:
                if bound.local == local:
                    module = item.module.replace("::", ".").strip("./").replace("/", ".")
                    whole = f"{module}.{bound.imported}" if bound.imported not in ("*", "default") else module
                    found += [
                        row
                        for row in self.all
                        if row.symbol.parent < 0 and _is_module(row.file.path, module if local == self.name else whole)
                    ]
        return list({row.key: row for row in found}.values())

    def _find_hazards(self, is_wanted: PathFilter) -> list[Site]:
        """Calls that pass the name as a string or a value to something that may call it later."""
        found: list[Site] = []
        for hazard in sorted(_HAZARDS):
            for file in self.files.calls(hazard):
                if is_wanted(file.path) and self.name.encode() in file.text:
                    for document, calls in enumerate(file.calls):
                        found += [Site(file, document, c) for c in calls if c.name == hazard and self._is_passed(c)]
        unique = {(site.file.path, site.call.start, site.call.name): site for site in found}
        return sorted(unique.values(), key=lambda site: (site.file.path, site.call.start))

    def _is_passed(self, call: Call) -> bool:
        return any(
            argument.text.strip("'\"`") == self.name or argument.text.rpartition(".")[2].strip("'\"`") == self.name
            for argument in call.args
        )

    # -- saying ----------------------------------------------------------------------------------------

    def _sections(self, shown: list[Finding]) -> tuple[Section, ...]:
        sections = [
            Section("Definitions", "definitions", len(self.all), self._definitions()),
            Section("Call Sites", "call_sites", len(self.sites), tuple(shown)),
            Section(
                "Argument Shapes", "shapes", len(self.sites), _count_rows(Counter(_shape(s.call) for s in self.sites))
            ),
            Section(
                "Keywords", "keywords", findings=_count_rows(Counter(k for s in self.sites for k in s.call.keywords))
            ),
            Section(
                "Forwarding",
                "forwarding",
                findings=_count_rows(Counter(f for s in self.sites for f in _forwards(s.call))),
            ),
            Section("Dynamic Hazards", "hazards", len(self.hazards), self._hazard_rows()),
            Section(
                "Calling Contexts",
                "contexts",
                len(self.sites),
                _count_rows(Counter(self._context(s) for s in self.sites)),
            ),
            Section("Suggested Follow-ups", "followups", findings=self._follow_ups(len(shown))),
        ]
        return tuple(section for section in sections if section.findings)

    def _definitions(self) -> tuple[Finding, ...]:
        wanted = {row.key for row in self.targets}
        counts = Counter((row.key, site.status) for site in self.sites for row in site.candidates)
        rows: list[Finding] = []
        for number, row in enumerate(self.all[:MAX_CANDIDATES], 1):
            symbol = row.symbol
            likely, possible = counts[row.key, "likely"], counts[row.key, "possible"]
            mark = "" if row.key in wanted else ", not asked about"
            what = f"{symbol.kind} {symbol.qualified_name}: {likely} likely, {possible} possible{mark}"
            message = f"{number} of {len(self.all)}: {what}"
            rows.append(Finding("definition", message, row.location, details=CountDetails(likely + possible)))
        return tuple(rows)

    def _finding(self, site: Site) -> Finding:
        call, file = site.call, site.file
        location = file.locate(call.start, call.end)
        caller = site.caller
        details = CallDetails(
            call.callee,
            caller.qualified_name if caller else "",
            file.documents[site.document].language,
            file.role,
            site.status,
            call.kind,
            call.receiver,
            tuple(CallArgument(a.kind, a.text, a.name, a.spread) for a in call.args),
            call.arg_count,
            call.keywords,
            _forwards(call),
            self._context(site),
            call_site_id(location, call.callee),
            file.name_chunk(site.document, caller.chunk if caller else 0),
            tuple(self._candidate(row) for row in site.candidates) if 0 < len(site.candidates) < len(self.all) else (),
            (site.evidence,),
        )
        score = EVIDENCE["syntax" if site.status == "likely" else "heuristic"]
        return Finding("callsite", file.line_at(call.start), location, score, score, details, details.call_site_id)

    def _candidate(self, row: Definition) -> Candidate:
        symbol = row.symbol
        return Candidate(symbol.qualified_name, symbol.kind, row.file.path, row.location.start_line)

    def _context(self, site: Site) -> str:
        caller = site.caller
        if caller is None:
            return f"{site.file.role}: at module level"
        what = "async " if "async" in caller.modifiers else ""
        return f"{site.file.role}: in a {what}{caller.kind}"

    def _hazard_rows(self) -> tuple[Finding, ...]:
        rows: list[Finding] = []
        for site in self.hazards[: PREVIEW * 2]:
            location = site.file.locate(site.call.start, site.call.end)
            shown = site.file.text[site.call.start : site.call.end].decode("utf-8", "replace")
            rows.append(Finding(_HAZARDS[site.call.name], " ".join(shown.split())[:120], location))
        return tuple(rows)

    def _target(self) -> Target:
        row, symbol = self.chosen, self.chosen.symbol
        alone = len(self.targets) == len(self.all) == 1
        fitting = f"{len(self.targets)} of {len(self.all)} definitions of that name fit"
        reason = "the only definition of that name" if alone else fitting
        return Target(
            symbol.qualified_name, symbol.kind, row.location, symbol.signature[:200], reason, 1, len(self.targets),
            *row.file.name_symbol(row.document, row.number),
        )  # fmt: skip

    def _neighborhood(self, likely: int) -> dict[str, Slice]:
        callers = {self._caller_key(site) for site in self.sites}
        sites = Slice(len(self.sites), f"call sites: {likely} likely, {len(self.sites) - likely} possible")
        return {"call_sites": sites, "callers": Slice(len(callers), "scopes that call it")}

    def _risk(self) -> Risk:
        counters = {
            "call_sites": len(self.sites), "files": len({site.file.path for site in self.sites}),
            "definitions": len(self.all), "hazards": len(self.hazards),
            "forwarding": sum(1 for site in self.sites if _forwards(site.call)),
        }  # fmt: skip
        drivers: list[str] = []
        if counters["call_sites"] >= 10:
            drivers.append(f"{counters['call_sites']} call sites in {counters['files']} files")
        if counters["definitions"] > 1:
            drivers.append(f"{counters['definitions']} definitions share the name")
        if counters["hazards"]:
            drivers.append(f"{counters['hazards']} dynamic uses")
        if counters["forwarding"]:
            drivers.append(f"{counters['forwarding']} sites forward arguments")
        level = "high" if len(drivers) >= 3 or counters["call_sites"] >= 50 else "medium" if drivers else "low"
        return Risk(level, tuple(drivers), counters)

    def _follow_ups(self, shown: int) -> tuple[Finding, ...]:
        options, page = self.options, self.options.page
        commands = [f"cq search {shlex.quote(self.name)}"]
        if page.limit and (page.number - 1) * page.limit + shown < len(self.sites):
            lists = {"in": options.inside, "include": options.include, "exclude": options.exclude}
            given = [f"--{name} {shlex.quote(value)}" for name, values in lists.items() for value in values]
            given += [f"--lang {','.join(options.languages)}"] if options.languages else []
            paged = page.next().flags() if shown == page.limit else ["--all"]
            commands.append(" ".join(["cq calls", shlex.quote(options.target), *given, *paged]))
        asked = {row.key for row in self.targets}
        others = [row for row in self.all if row.key not in asked][:1]
        commands += [f"cq calls {shlex.quote(f'{row.file.path}:{row.symbol.qualified_name}')}" for row in others]
        return tuple(Finding("follow_up", command, details=CommandDetails(command)) for command in commands)

    def _caller_key(self, site: Site) -> tuple[str, int, int]:
        return site.file.path, site.document, site.call.scope


def _is_module(path: str, module: str) -> bool:
    name = module_name(path)
    return bool(module) and (name == module or name.endswith("." + module) or module.endswith("." + name))


def _shape(call: Call) -> str:
    """`(2, key=, *, **)`: how many by place, which by name, what is spread."""
    plain = call.arg_count - sum(1 for a in call.args if not a.name and (a.spread or a.kind == "spread"))
    parts = [str(plain)] if plain > 0 else []
    parts += [f"{keyword}=" for keyword in sorted(call.keywords)[:6]]
    parts += _forwards(call)
    return f"({', '.join(parts)})"


def _forwards(call: Call) -> tuple[str, ...]:
    spread = [a.text for a in call.args if a.spread or a.kind == "spread"]
    marks = [next(mark for mark in ("**", "...", "*", "") if text.startswith(mark)) or "*" for text in spread]
    return tuple(dict.fromkeys(marks))


def _most(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _count_rows(counts: Counter[str], limit: int = 8) -> tuple[Finding, ...]:
    rows = [Finding("count", f"{count} {name}", details=CountDetails(count)) for name, count in _most(counts)]
    left = rows[limit:]
    if left:
        total = sum(count for _, count in _most(counts)[limit:])
        rows = [*rows[:limit], Finding("count", f"{total} in {len(left)} other ways", details=CountDetails(total))]
    return tuple(rows)
