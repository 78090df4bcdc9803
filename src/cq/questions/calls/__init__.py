"""Who calls a function: every call site that means it or may mean it, with what is passed and from where. An accessor
is called by what reads it, or assigns to it.

A site is `certain` where resolution leaves one meaning, `possible` where several remain or only the name fits.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec

from cq.answers import ask_servers
from cq.answers.handed import describe_handed
from cq.answers.options import AskWarmServers, Exclude, Include, Inside, Languages, OneTarget, Option, Options, Paged
from cq.answers.page import Page, count_tokens, take
from cq.answers.unlinked import note_unlinked
from cq.answers.words import count_places
from cq.identity import call_site_id
from cq.model.answer import (
    EVIDENCE,
    READS,
    SCHEMA_VERSION,
    Answer,
    CallArgument,
    CallDetails,
    Candidate,
    Confidence,
    Finding,
    Insight,
    PassedAt,
    Risk,
    Run,
    Section,
    Slice,
    Target,
    bucket,
)
from cq.model.edge import Certainty, SymbolRef
from cq.model.errors import UsageError
from cq.model.facts import Call, Symbol
from cq.model.status import Degraded
from cq.snapshot.relations import Relations, linked
from cq.snapshot.shapes import KnownShapes
from cq.snapshot.target import (
    ROLE_ORDER,
    Definition,
    describe_target,
    find_same,
    find_targets,
    last_name,
    rank_twins,
    say_nothing,
)
from cq.source.files import PathFilter

if TYPE_CHECKING:
    from cq.semantics.origins import Origins
    from cq.snapshot.files import Files, HeldFile
    from cq.snapshot.snapshot import Snapshot

MAX_LISTED = 10
MAX_CANDIDATES = 5
MAX_HANDED = 20
MAX_GROUPS = 8  # of a kind that are told apart
_CALLABLE = frozenset({"function", "method", "class", "type"})
# Calls that may run a function which they are given by name or as a value.
_HAZARDS = frozenset({"attrgetter", "eval", "exec", "getattr", "methodcaller", "partial", "partialmethod"})
_PLAIN = ("", "operator", "functools", "builtins")


class CallsOptions(Options, frozen=True):
    """A question in full; the filters are about the files that call, never about the target. `family` takes the
    methods that override the target, and those it overrides, for the target."""

    examples: ClassVar[str] = """\
  cq calls get_or_create                     every definition of that name
  cq calls QuerySet.get_or_create            one of them
  cq calls django/db/models/query.py:938     what is defined there
  cq calls save --in django/contrib --all    only these callers, all of them
  cq calls QuerySet.filter --receiver objects   only those on something called so
  cq calls Field.clean --why                 by which definitions, imports and calls it got there"""

    target: OneTarget
    languages: Languages = ()
    inside: Inside = ()
    include: Include = ()
    exclude: Exclude = ()
    family: Annotated[bool, Option("with the methods that override it, and those it overrides")] = False
    certain: Annotated[bool, Option("only what resolution is sure of")] = False
    page: Paged = Page()
    servers: AskWarmServers = None
    place: tuple[str, ...] = ()  # what suggested commands must repeat to be about the same tree, quoted
    # The last name, `objects`, `using()`, or all of it, `Entry.objects`.
    receiver: Annotated[str, Option("only what is called on this: objects, self, using()", metavar="NAME")] = ""
    why: Annotated[bool, Option("how the target got to each call, place by place")] = False

    def for_lines(self) -> CallsOptions:
        return msgspec.structs.replace(self, servers=bool(self.servers))


class Site:
    """One call, and the definitions it may mean. What runs an accessor is a call of kind read, write or update."""

    __slots__ = ("call", "candidates", "confidence", "document", "evidence", "file", "number", "status")

    def __init__(
        self, file: HeldFile, document: int, number: int, read: Call | None = None, ref: SymbolRef | None = None
    ) -> None:
        self.file = file
        self.document = document
        self.number = number
        self.call: Call = read or file.calls[document][number]
        self.status: Certainty = "possible" if ref is None else ref.certainty
        self.evidence = "name" if ref is None else ref.evidence
        self.confidence = EVIDENCE["unresolved"] if ref is None else ref.confidence
        self.candidates: list[Definition] = []

    @property
    def key(self) -> tuple[str, int, int]:
        return self.file.path, self.document, self.number

    @property
    def caller(self) -> Symbol | None:
        return self.file.symbols[self.document][self.call.scope] if self.call.scope >= 0 else None

    @property
    def start(self) -> int:
        """Where the name of what is called stands; a chain begins lines above."""
        return max(self.call.name_start, self.call.start)

    @property
    def order(self) -> tuple[int, int, float, str, int]:
        rank = {"certain": 0, "external": 0}.get(self.status, 1)
        return rank, ROLE_ORDER.get(self.file.role, 2), -self.confidence, self.file.path, self.start


@linked
def ask(snapshot: Snapshot, options: CallsOptions) -> Answer:
    enrich = ask_servers(snapshot, options.target, options.servers, options.page)
    relations = snapshot.relations if snapshot.is_indexed else None
    answer, _ = snapshot.remember(options, lambda: (find_calls(snapshot.files, options, relations), {}))
    return enrich(answer)


def find_calls(files: Files, options: CallsOptions, relations: Relations | None = None) -> Answer:
    """The certain call sites first, sources before tests. Without `relations` only names can be compared."""
    options.page.check()
    named = find_targets(files, options.target)
    named = [row for row in named if row.symbol.kind_group in _CALLABLE] or named
    targets = find_same(named) if named and named[0].symbol.kind_group in _CALLABLE else []
    if targets and options.family and relations is not None:
        targets = _find_family(relations, targets)
    sites = _find_sites(files, options, targets, relations)
    if not targets and not sites:
        message = f"nothing that can be called is named {options.target!r} here, and nothing of that name is called"
        if named:
            message = (
                f"{options.target!r} is a {named[0].symbol.kind}, no function: what it holds is called, if anything;"
                f" `cq references {shlex.quote(options.target)}` lists where it is used"
            )
        return say_nothing(files, "calls", options.target, message)
    return _Assembly(files, options, named, targets, sites, relations).build()


def _find_family(relations: Relations, targets: list[Definition]) -> list[Definition]:
    """With all methods that stand in their place along the inheritance, either way."""
    found = {row.key: row for row in targets}
    todo = list(targets)
    while todo:
        node = relations.node(todo.pop())
        below = [edge.source for edge in relations.referrers.find_into(node) if edge.kind == "overrides"]
        above = [
            c for edge in relations.referrers.find_out(node) if edge.kind == "overrides" for c in edge.ref.candidates
        ]
        for place in (*below, *above):
            row = relations.definition(place)
            if row is not None and row.key not in found:
                found[row.key] = row
                todo.append(row)
    return rank_twins(relations.files, found.values())


def _find_sites(
    files: Files, options: CallsOptions, targets: list[Definition], relations: Relations | None
) -> list[Site]:
    is_wanted = PathFilter(options.include, options.exclude, options.inside)
    found: dict[tuple[str, int, int], Site] = {}

    def add(site: Site, row: Definition | None) -> None:
        known = found.setdefault(site.key, site)
        if known is not site and site.status == "certain" and known.status != "certain":
            known.status, known.evidence, known.confidence = site.status, site.evidence, site.confidence
        if row is not None and row.key not in {other.key for other in known.candidates}:
            known.candidates.append(row)

    def accepts(file: HeldFile, document: int) -> bool:
        languages = options.languages
        return is_wanted(file.path) and (not languages or file.documents[document].language in languages)

    if relations is not None:
        for row in targets:
            # What has no place of its own, as an overload without code, is called through what has the code.
            node = relations.find_place(row)
            for edge in relations.referrers.find_into(node) if node is not None else ():
                held = relations.hold(edge.source.path)
                if edge.call < 0 or held is None or not accepts(held, edge.source.document):
                    continue  # `usages` of a call: it names the function and runs a wrapper of it
                site = Site(held, edge.source.document, edge.call, ref=edge.ref)
                add(site, row)
            for read in relations.usages.find_reads(node) if node is not None else ():
                held = relations.hold(read.source.path)
                if held is not None and accepts(held, read.source.document):
                    site = Site(
                        held, read.source.document, -1 - read.start, relations.read_as_call(held, read), read.ref
                    )
                    add(site, row)
    for name in sorted({row.symbol.name for row in targets} or {last_name(options.target)}):
        for file in files.calls(name):
            for document, calls in enumerate(file.calls):
                linked = relations is not None and relations.documents.is_linked(file.path, document)
                if (linked and targets) or not accepts(file, document):
                    continue
                for number, call in enumerate(calls):
                    if call.name == name:
                        site = Site(file, document, number)
                        if targets:
                            for row in targets:
                                if row.file.documents[row.document].language == file.documents[document].language:
                                    add(site, row)
                        elif _is_outside(relations, site, options.target, linked):
                            site.status, site.evidence = "external", "import"
                            site.confidence = EVIDENCE["resolved" if linked else "heuristic"]
                            add(site, None)
    sites = [site for site in found.values() if not options.certain or site.status != "possible"]
    if options.receiver and sites:
        fitting = [site for site in sites if _is_called_on(site.call, options.receiver)]
        if not fitting:
            names = [name for name, _ in _most(Counter(_name_receiver(site.call) for site in sites))][:6]
            raise UsageError(
                f"nothing of that name is called on {options.receiver!r} here", hint=f"but on {', '.join(names)}"
            )
        sites = fitting
    return sorted(sites, key=lambda site: site.order)


_NO_RECEIVER = "nothing"  # a bare `f()`


def _name_receiver(call: Call) -> str:
    """The last name of what is called on: `objects` of `Entry.objects`, `using()` of `Entry.objects.using(alias)`."""
    text = call.receiver
    depth = end = 0
    if text.endswith((")", "]")):  # back over the brackets at the end
        for end in range(len(text) - 1, -1, -1):
            depth += (text[end] in ")]") - (text[end] in "([")
            if not depth:
                break
        brackets = "()" if text.endswith(")") else "[]"
        found = re.search(r"([\w$]+)\s*\Z", text[:end])
        return f"{found[1]}{brackets}" if found else brackets
    found = re.search(r"[\w$]+\Z", text)
    return found[0] if found else text[-20:] or _NO_RECEIVER


def _is_called_on(call: Call, receiver: str) -> bool:
    return receiver in (call.receiver, _name_receiver(call)) or call.receiver.endswith(f".{receiver}")


def _is_outside(relations: Relations | None, site: Site, target: str, linked: bool) -> bool:
    """Whether a call means something of that name which is not defined here: `json.dumps`, `print`."""
    dotted = target.replace("::", ".")
    if linked and relations is not None:
        ref = relations.calls.find_call(site.file.path, site.document, site.number)
        full = f"{ref.module}.{ref.name}" if ref.module and not ref.module.endswith(f".{ref.name}") else ref.module
        return ref.status == "external" and (f".{full}".endswith(f".{dotted}") or site.call.callee == dotted)
    return site.call.callee.replace("::", ".") == dotted


def find_hazards(files: Files, options: CallsOptions, name: str) -> list[Site]:
    """Calls that are given the name as a string or a value and may call it later; by path and place."""
    is_wanted = PathFilter(options.include, options.exclude, options.inside)
    found: dict[tuple[str, int, int], Site] = {}
    for file in files.calls_beside(_HAZARDS, name):
        if not is_wanted(file.path) or name.encode() not in file.text:
            continue
        for document, number in file.calls_named(_HAZARDS):
            if options.languages and file.documents[document].language not in options.languages:
                continue
            call = file.calls[document][number]
            if call.receiver in _PLAIN and _is_passed(call, name):
                site = Site(file, document, number)
                found[site.key] = site
    return [found[key] for key in sorted(found)]


def _is_passed(call: Call, name: str) -> bool:
    texts = (argument.text for argument in call.args)
    return any(name in (text.strip("'\"`"), text.rpartition(".")[2].strip("'\"`")) for text in texts)


class _Assembly:
    def __init__(
        self,
        files: Files,
        options: CallsOptions,
        named: list[Definition],
        targets: list[Definition],
        sites: list[Site],
        relations: Relations | None,
    ) -> None:
        self.files = files
        self.relations = relations
        self.options = options
        self.named = named  # all that the target may mean; `targets` is the likeliest that can be called
        self.targets = targets
        self.sites = sites
        self.name = targets[0].symbol.name if targets else last_name(options.target)
        # A target may name one of several; who reads wants to know of the others.
        rows = [Definition(*row) for row in files.definitions(self.name)]
        self.all = rank_twins(files, (row for row in rows if row.symbol.kind_group in _CALLABLE))
        self.counts = Counter((row.key, site.status) for site in sites for row in site.candidates)
        self.hazards = find_hazards(files, options, self.name)

    def build(self) -> Answer:
        options = self.options
        shown, budget, cut = take(self.sites, options.page, self._finding)
        sections = self._sections(shown)
        budget = msgspec.structs.replace(budget, used=count_tokens(sections, options.page.measure) + 150)
        certain = sum(1 for site in self.sites if site.status != "possible")
        score = min(
            (site.confidence for site in self.sites if site.status != "possible"), default=EVIDENCE["unresolved"]
        )
        evidence = "resolved" if certain == len(self.sites) and certain else "heuristic"
        insight = Insight(
            self._target(),
            self._neighborhood(certain),
            self._risk(),
            Confidence(evidence, score, bucket(score)),
            budget=budget,
            headline=self._say_found(certain),
        )
        summary = {
            "query": options.target,
            "name": self.name,
            "definitions": len(self.all),
            "targets": len(self.targets),
            "call_sites": len(self.sites),
            "certain": certain,
            "possible": len(self.sites) - certain,
            "callers": len({self._caller_key(site) for site in self.sites}),
            "files": len({site.file.path for site in self.sites}),
            "by_role": dict(_most(Counter(site.file.role for site in self.sites))),
        }
        events: list[Degraded] = []
        if not self.targets:
            what = f"is a {self.named[0].symbol.kind} here" if self.named else "is not defined here"
            message = f"{options.target!r} {what}; these calls mean something from outside"
            events.append(Degraded("calls", "info", "external", message, options.target))
        if self.relations is not None and not options.receiver:
            events += note_unlinked(self.relations, "calls", self.targets[:1], options.place)
        return Answer(
            SCHEMA_VERSION,
            "calls",
            Run(generation=self.files.generation),
            summary,
            found=len(self.sites),
            insight=insight,
            sections=sections,
            degraded=tuple(events),
            truncated=tuple(cut),
        )

    def _sections(self, shown: list[Finding]) -> tuple[Section, ...]:
        follow_ups = Section("Suggested Follow-ups", "followups", findings=self._follow_ups(len(shown)), aside=True)
        listed = Section("Call Sites", "call_sites", len(self.sites), tuple(shown))
        if self.options.page.is_small:
            return (listed, follow_ups)
        sites = self.sites
        sections = [
            Section(
                "Definitions",
                "definitions",
                len(self.all),
                self._definitions(),
                note=_left_out(len(self.all), self._listed),
                aside=True,
            ),
            *self._groups(),
            listed,
            *self._handed(),
            Section(
                "Argument Shapes",
                "shapes",
                len(sites),
                _count_rows(_shape(site.call) for site in sites if site.call.kind not in READS),
                aside=True,
            ),
            Section(
                "Keywords",
                "keywords",
                findings=_count_rows(k for site in sites for k in site.call.keywords),
                aside=True,
            ),
            Section(
                "Forwarding",
                "forwarding",
                findings=_count_rows(f for site in sites for f in _forwards(site.call)),
                aside=True,
            ),
            Section(
                "Dynamic Hazards",
                "hazards",
                len(self.hazards),
                self._hazard_rows(),
                note=_left_out(len(self.hazards), MAX_LISTED),
            ),
            Section(
                "Calling Contexts",
                "contexts",
                len(sites),
                _count_rows(self._context(site) for site in sites),
                aside=True,
            ),
            follow_ups,
        ]
        return tuple(section for section in sections if section.findings)

    def _handed(self) -> list[Section]:
        """Where the target is given to a call, by name: who runs it then is the function that is called."""
        if self.relations is None:
            return []
        shapes, is_wanted = (
            KnownShapes(self.relations),
            PathFilter(self.options.include, self.options.exclude, self.options.inside),
        )
        found = [item for item in shapes.find_handed_over(self.targets) if is_wanted(item.path)]
        rows = tuple(describe_handed(shapes, item, outwards=False) for item in found[:MAX_HANDED])
        return [Section("Handed Over", "handed_over", len(found), rows, note=_left_out(len(found), MAX_HANDED))]

    @property
    def _possible(self) -> list[Site]:
        """What is told in groups: possible sites that do not fit on the page."""
        possible = [site for site in self.sites if site.status == "possible"]
        size = self.options.page.size
        return possible if size and len(possible) > size else []

    @property
    def _listed(self) -> int:
        """Groups need the room of definitions that are not asked about."""
        return MAX_LISTED // 2 if self._possible else MAX_LISTED

    def _groups(self) -> list[Section]:
        """What many possible sites have in common, and what leaves how many of them."""
        possible = self._possible
        if not possible:
            return []
        parts = (
            ("receiver", "called on", Counter(_name_receiver(site.call) for site in possible)),
            ("directory", "in", Counter(_find_directory(site.file.path) for site in possible)),
            ("why", "possible because", Counter(_say_why(site.evidence) for site in possible)),
        )
        rows: list[Finding] = []
        for kind, words, counts in parts:
            ranked = _most(counts)
            told = [f"{name} {count:,}" for name, count in ranked[:MAX_GROUPS]]
            left = sum(count for _, count in ranked[MAX_GROUPS:])
            told += [f"{len(ranked) - MAX_GROUPS:,} others {left:,}"] if left else []
            rows.append(Finding(kind, f"{words}: {', '.join(told)}", count=len(ranked)))
        narrow = self._find_narrowest()
        note = f"narrow them with {narrow}; also --receiver NAME, --in DIR" if narrow else ""
        return [Section("Possible Sites, Grouped", "groups", len(possible), tuple(rows), note=note, aside=True)]

    def _find_narrowest(self) -> dict[str, Any]:
        """The one option that leaves most out and still something."""
        possible = self._possible
        if not possible:
            return {}
        if len(possible) < len(self.sites):
            return {"certain": True}
        sources = [site for site in possible if site.file.role not in ("test", "doc")]
        name, count = _most(Counter(_find_directory(site.file.path) for site in sources or possible))[0]
        if count < len(possible) and name != "." and name not in self.options.inside:
            return {"inside": (*self.options.inside, name)}
        name, count = _most(Counter(_name_receiver(site.call) for site in possible))[0]
        return {"receiver": name} if count < len(possible) and name != _NO_RECEIVER else {}

    def _definitions(self) -> tuple[Finding, ...]:
        wanted = {row.key for row in self.targets}
        ranked = sorted(self.all, key=lambda row: row.key not in wanted)
        rows: list[Finding] = []
        for number, row in enumerate(ranked[: self._listed], 1):
            symbol = row.symbol
            certain, possible = self.counts[row.key, "certain"], self.counts[row.key, "possible"]
            mark = f"{certain} certain, {possible} possible" if row.key in wanted else "not asked about"
            message = f"{number} of {len(self.all)}: {symbol.kind} {symbol.qualified_name}: {mark}"
            rows.append(Finding("definition", message, row.location, count=certain + possible))
        return tuple(rows)

    def _finding(self, site: Site) -> Finding:
        call, file = site.call, site.file
        span = file.locate(call.start, call.end)
        caller = site.caller
        candidates = sorted(site.candidates, key=lambda row: row.order)
        witness, no_witness = self._find_witness(site, candidates) if self.options.why else ((), "")
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
            "" if call.kind in READS else call_site_id(span, call.callee),
            file.name_chunk(site.document, caller.chunk if caller else 0),
            tuple(_candidate(row) for row in candidates[:MAX_CANDIDATES]) if len(self.targets) > 1 else (),
            (site.evidence,),
            witness,
            no_witness,
        )
        location = file.locate(site.start, call.end)
        return Finding(
            "callsite", file.line_at(site.start), location, site.confidence, site.confidence, details,
            details.call_site_id,
        )  # fmt: skip

    @cached_property
    def _origins(self) -> Origins | None:
        from cq.semantics.origins import Origins

        return None if self.relations is None else Origins(self.relations.documents)

    def _find_witness(self, site: Site, candidates: list[Definition]) -> tuple[tuple[PassedAt, ...], str]:
        """How one of the candidates got to a call, the first that has a witness; else why there is none."""
        relations, origins = self.relations, self._origins
        if relations is None or origins is None or not relations.documents.is_linked(site.file.path, site.document):
            return (), "no witness: code of this language is compared by names alone"
        if site.status == "external":
            return (), "no witness: it is defined outside of this repository"
        if site.evidence == "name":
            return (), "no witness: nothing is known of what it is called on, only the name fits"
        if site.number < 0:
            return (), "no witness: what reads or sets an accessor is told by its receiver alone"
        for row in candidates:
            place = relations.find_place(row)
            passed = () if place is None else origins.find(site.file.path, site.document, site.number, place)
            steps: list[PassedAt] = []
            for step in passed:
                held = relations.hold(step.path)
                if held is not None:
                    steps.append(PassedAt(step.says, held.locate(step.start, step.end)))
            if steps:
                return tuple(steps), ""
        return (
            (),
            f"no witness: it follows from rules of the language ({site.evidence}), not from values that are passed on",
        )

    def _context(self, site: Site) -> str:
        caller = site.caller
        if caller is None:
            return f"{site.file.role}: at module level"
        what = "async " if "async" in caller.modifiers else ""
        article = "an" if f"{what}{caller.kind}"[0] in "aeiou" else "a"
        return f"{site.file.role}: in {article} {what}{caller.kind}"

    def _hazard_rows(self) -> tuple[Finding, ...]:
        rows: list[Finding] = []
        for site in self.hazards[: None if self.options.page.limit == 0 else MAX_LISTED]:
            shown = site.file.text[site.call.start : site.call.end].decode("utf-8", "replace")
            location = site.file.locate(site.call.start, site.call.end)
            rows.append(Finding(site.call.name, " ".join(shown.split())[:120], location))
        return tuple(rows)

    def _target(self) -> Target | None:
        if not self.targets:
            return None
        return describe_target(self.named)

    def _say_found(self, certain: int) -> str:
        """How many sites, where, and how many of them are sure."""
        sites, reads = self.sites, sum(1 for site in self.sites if site.call.kind in READS)
        parts = [f"{certain:,} certain", f"{len(sites) - certain:,} possible"] if certain < len(sites) else []
        parts += [f"{reads:,} of them read or set it"] if reads else []
        said = count_places((site.file.path for site in sites), "call site")
        return f"{said}: {', '.join(parts)}" if parts else said

    def _neighborhood(self, certain: int) -> dict[str, Slice]:
        callers = {self._caller_key(site) for site in self.sites}
        reads = sum(1 for site in self.sites if site.call.kind in READS)
        said = f"call sites{f' ({reads} read or set it)' if reads else ''}"
        sites = Slice(len(self.sites), f"{said}: {certain} certain, {len(self.sites) - certain} possible")
        return {"call_sites": sites, "callers": Slice(len(callers), "callers")}

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
        commands: list[str] = []
        if (page.number - 1) * page.size + shown < len(self.sites):
            if narrow := self._find_narrowest():
                commands.append(options.command("calls", page=msgspec.structs.replace(page, number=1), **narrow))
            commands.append(options.command("calls", page=page.next()))
        commands.append(" ".join(["cq search", shlex.quote(self.name), *options.place]))
        asked = {row.key for row in self.targets}
        others = [row for row in self.all if row.key not in asked and row.file.path.isprintable()][:1]
        for row in others:
            other = shlex.quote(f"{row.file.path}:{row.symbol.qualified_name}")
            commands.append(" ".join(["cq calls", other, *options.place]))
        return tuple(Finding("follow_up", command) for command in commands)

    def _caller_key(self, site: Site) -> tuple[str, int, int]:
        return site.file.path, site.document, site.call.scope


def _find_directory(path: str) -> str:
    """The first two folders: deep enough to tell packages apart."""
    return "/".join(path.split("/")[:-1][:2]) or "."


def _say_why(evidence: str) -> str:
    return _WHY.get(evidence, f"several fit by {evidence}")


_WHY = {
    "name": "only the name fits",
    "parameter": "a parameter may hold it",
    "element": "an element of something may be it",
}


def _candidate(row: Definition) -> Candidate:
    symbol = row.symbol
    return Candidate(symbol.qualified_name, symbol.kind, row.file.path, row.location.start_line)


def _left_out(total: int, listed: int) -> str:
    return f"the first {listed}" if total > listed else ""


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


def _count_rows(names: Iterable[str], limit: int = 6) -> tuple[Finding, ...]:
    ranked = _most(Counter(names))
    rows = [Finding("count", f"{count} {name}", count=count) for name, count in ranked[:limit]]
    left = ranked[limit:]
    if left:
        total = sum(count for _, count in left)
        rows.append(Finding("count", f"{total} in {len(left)} other ways", count=total))
    return tuple(rows)
