"""From a query to classed mentions: candidates, verified against the text, filtered, capped, counted."""

from __future__ import annotations

import time
from collections import Counter
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec

from cq.answers.options import AskWarmServers, Exclude, Flag, Include, Inside, Languages, Option, Options, Paged, split
from cq.answers.page import Page
from cq.language import all_languages
from cq.model.answer import Truncation
from cq.model.errors import UsageError, suggest
from cq.model.status import Degraded
from cq.questions.search.classify import ROLE_WEIGHTS, WEIGHTS, Hit, classify
from cq.questions.search.pattern import MODES, Pattern, TimedOut, make_pattern
from cq.source.files import PathFilter

if TYPE_CHECKING:
    from cq.snapshot.files import Files, HeldFile

MAX_CONTEXT = 50
CASES = ("smart", "ignore", "respect")


class Limits(msgspec.Struct, frozen=True):
    """Beyond these, mentions are counted and no longer classed. The time bounds regular expressions only."""

    max_files: int
    max_total_matches: int
    timeout_seconds: float
    max_matches_per_file: int = 1000


PROFILES: dict[str, Limits] = {
    "interactive": Limits(1000, 10_000, 10.0),
    "default": Limits(5000, 10_000, 30.0),
    "audit": Limits(50_000, 100_000, 300.0, 100_000),
    "literal": Limits(2000, 10_000, 30.0),
}


# Words people use for kinds.
_KINDS = {
    "call": ("callsite",), "calls": ("callsite",), "definitions": ("definition",), "def": ("definition",),
    "import": ("import", "from_import"), "imports": ("import", "from_import"), "references": ("reference",),
    "type": ("type_use", "annotation"), "keyword": ("keyword_argument",), "comments": ("comment",),
    "strings": ("string",),
}  # fmt: skip


def _read_kinds(text: str) -> tuple[str, ...]:
    kinds: list[str] = []
    for word in split(text):
        if word not in WEIGHTS and word not in _KINDS:
            hint = suggest(word, [*WEIGHTS, *_KINDS], f"kinds: {', '.join(WEIGHTS)}")
            raise UsageError(f"unknown kind {word!r}", hint=hint)
        kinds += _KINDS.get(word, (word,))
    if not kinds:
        raise UsageError("--kind names no kind", hint=f"kinds: {', '.join(WEIGHTS)}")
    return tuple(dict.fromkeys(kinds))


class SearchOptions(Options, frozen=True):
    """A question in full. `inside`, `include` and `exclude` name files."""

    examples: ClassVar[str] = """\
  cq search get_or_create                                 a name: where it is defined, called, used
  cq search QuerySet.get_or_create                        of one class
  cq search 'handle_(request|response)' --mode regex      an expression, as Python writes them
  cq search "can't" --mode literal --include-strings      a text, strings and comments listed too
  cq search save --kind definition,call --in django/db    some kinds, in one directory
  cq search save --format plain | head                    path:line:col: text, best first"""

    text: Annotated[str, Option("a name, a dotted name, or any text", metavar="TEXT", argument=True)]
    mode: Annotated[str, Option("auto (default): a name whole, else as text", choices=MODES)] = "auto"
    case: Annotated[
        str,
        Option(
            flags=(
                Flag("ignore-case", "ignore", "any case (default: only without capitals)", "-i"),
                Flag("case-sensitive", "respect", "case as given", "-s"),
            )
        ),
    ] = "smart"
    languages: Languages = ()
    inside: Inside = ()
    include: Include = ()
    exclude: Exclude = ()
    kinds: Annotated[
        tuple[str, ...], Option(f"only these: {', '.join(WEIGHTS)}", "kind", "KIND,…", parse=_read_kinds)
    ] = ()
    include_strings: Annotated[bool, Option("list comments, strings and text as well")] = False
    page: Paged = Page()
    context: Annotated[int, Option("N lines before and after each mention", metavar="N")] = 0
    # None: interactive, or audit for bare lines.
    profile: Annotated[
        str | None,
        Option("how much is classed (default: interactive; audit for plain)", choices=tuple(PROFILES)),
    ] = None
    enrich: Annotated[bool, Option(flags=(Flag("no-enrich", False, "places and kinds only"),))] = True
    crosscheck: bool = False
    servers: AskWarmServers = None
    place: tuple[str, ...] = ()  # what suggested commands must repeat to be about the same tree, quoted

    def for_lines(self) -> SearchOptions:
        if self.context:
            raise UsageError("--format plain has one line per mention, --context more", hint="give one or the other")
        return msgspec.structs.replace(
            self, include_strings=not self.kinds, profile=self.profile or "audit", enrich=False,
            servers=bool(self.servers),
        )  # fmt: skip

    def check(self) -> None:
        """UsageError for values that are none; the surfaces check what only they know."""
        for name, value, known in (
            ("mode", self.mode, MODES),
            ("case", self.case, CASES),
            *((("profile", self.profile, tuple(PROFILES)),) if self.profile else ()),
            *(("kind", kind, tuple(WEIGHTS)) for kind in self.kinds),
        ):
            if value not in known:
                raise UsageError(f"{name} {value!r} is not one of {', '.join(known)}", hint=_near(value, known))
        if self.kinds and self.include_strings:
            raise UsageError(
                "--kind says what is listed, and so does --include-strings", hint="add string,comment to --kind"
            )
        self.page.check()
        if not 0 <= self.context <= MAX_CONTEXT:
            raise UsageError(f"--context {self.context} is out of range", hint=f"it is 0 to {MAX_CONTEXT}")


class Partition(msgspec.Struct):
    """What one language had."""

    matches: int = 0
    files_scanned: int = 0
    matched_files: int = 0
    total_matches: int = 0
    truncated: bool = False
    timed_out: bool = False
    caps_hit: str = "none"
    dropped_by_scope: int = 0


class Scan:
    """The mentions of one query, and how they were found."""

    def __init__(self) -> None:
        self.hits: list[Hit] = []
        self.total = 0  # all that match the text and the filters on files; some may be counted only
        self.by_file: Counter[str] = Counter()
        self.mode_chain: list[str] = []
        self.ignore_case = False
        self.partitions: dict[str, Partition] = {}
        self.candidates = 0
        self.scanned = "index"  # or "scan": every file was read
        self.events: list[Degraded] = []
        self.truncated: list[Truncation] = []
        self.interrupted = False
        self.timed_out = False
        self.stages_ms: dict[str, float] = {}


def scan(files: Files, options: SearchOptions) -> Scan:
    limits = PROFILES[options.profile or "interactive"]
    found = Scan()
    pattern = make_pattern(options.text, options.mode, options.case, limits.timeout_seconds)
    found.mode_chain.append(pattern.mode)
    _scan_pattern(files, options, pattern, limits, found)
    if options.mode == "auto" and pattern.mode == "identifier" and not found.total and not found.interrupted:
        pattern = make_pattern(options.text, "literal", options.case, limits.timeout_seconds)
        found.mode_chain.append("literal")
        _scan_pattern(files, options, pattern, limits, found)
        if found.total:
            message = f"no identifier is called {options.text!r}; these are places where the text occurs"
            found.events.append(Degraded("search", "info", "mode_fallback", message, "mode"))
    found.ignore_case = pattern.ignore_case
    found.hits.sort(key=lambda hit: hit.order)
    return found


def _scan_pattern(files: Files, options: SearchOptions, pattern: Pattern, limits: Limits, found: Scan) -> None:
    is_wanted = PathFilter(options.include, options.exclude, options.inside)
    # A language people name stands for its variants too.
    wanted = {name for name, each in all_languages().items() if {name, each.variant_of} & set(options.languages)}
    started = time.perf_counter()
    usable = pattern.literals and all(len(literal) >= 3 for literal in pattern.literals)
    found.scanned = "index" if usable and files.source == "index" else "scan"
    matched: list[tuple[HeldFile, list[tuple[int, int]]]] = []
    for language, count in files.count().items():
        if not wanted or language in wanted:
            found.partitions.setdefault(language, Partition()).files_scanned = count
    try:
        for file in files.candidates(pattern.literals if usable else None):
            if not is_wanted(file.path):
                continue
            found.candidates += 1
            spans = pattern.find(file.text)
            if spans:
                matched.append((file, spans))
                if found.scanned == "scan":
                    file.forget_text()
    except TimedOut:
        found.timed_out = True
        message = f"the expression ran past {limits.timeout_seconds:g} s; later files were not searched"
        found.events.append(Degraded("search", "error", "timeout", message, "regex"))
    except KeyboardInterrupt:
        found.interrupted = True
    found.stages_ms["match"] = _since(started)
    started = time.perf_counter()
    # Where not all can be classed, tests and documents wait: what a name is stands in the sources.
    matched.sort(key=lambda item: (-ROLE_WEIGHTS.get(item[0].role, 0.8), item[0].path))
    try:
        _classify(matched, pattern.last, wanted, limits, found)
    except KeyboardInterrupt:
        found.interrupted = True
    if found.interrupted:
        message = "stopped by the user; this is what was found so far"
        found.events.append(Degraded("search", "warning", "interrupted", message, "search"))
    found.stages_ms["classify"] = _since(started)


def _classify(
    matched: list[tuple[HeldFile, list[tuple[int, int]]]],
    last: int,
    wanted: set[str],
    limits: Limits,
    found: Scan,
) -> None:
    observed = {"files": 0, "matches_per_file": 0, "total_matches": 0}
    omitted = {"files": 0, "matches_per_file": 0, "total_matches": 0}
    classed = 0
    for number, (file, spans) in enumerate(matched):
        partition = found.partitions.setdefault(file.language, Partition())
        cap, kept = "none", spans
        if number >= limits.max_files:
            cap, kept = "files", []
            observed["files"] += 1
        elif len(spans) > limits.max_matches_per_file:
            cap, kept = "matches_per_file", spans[: limits.max_matches_per_file]
            observed["matches_per_file"] = max(observed["matches_per_file"], len(spans))
        if classed + len(kept) > limits.max_total_matches:
            cap, kept = "total_matches", kept[: max(limits.max_total_matches - classed, 0)]
        classed += len(kept)
        if cap != "none":
            omitted[cap] += len(spans) - len(kept)
            partition.truncated, partition.caps_hit = True, cap
            if not wanted or file.language in wanted:
                partition.total_matches += len(spans) - len(kept)
                found.total += len(spans) - len(kept)
                found.by_file[file.path] += len(spans) - len(kept)
        seen: set[str] = set()
        for hit in classify(file, kept, last) if kept else ():
            if wanted and hit.language not in wanted:
                partition.dropped_by_scope += 1
                continue
            own = found.partitions.setdefault(hit.language, Partition())
            own.total_matches += 1
            found.total += 1
            found.by_file[file.path] += 1
            own.matches += 1
            if hit.language not in seen:
                seen.add(hit.language)
                own.matched_files += 1
            found.hits.append(hit)
    bounds = {
        "files": (limits.max_files, len(matched)),
        "matches_per_file": (limits.max_matches_per_file, observed["matches_per_file"]),
        "total_matches": (limits.max_total_matches, sum(len(spans) for _, spans in matched)),
    }
    found.truncated += [
        Truncation("search", cap, *bounds[cap], omitted=count) for cap, count in omitted.items() if count
    ]
    for partition in found.partitions.values():
        partition.timed_out = found.timed_out


def _since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 2)


def _near(value: str, known: tuple[str, ...]) -> str:

    close = get_close_matches(value, known, n=1)
    return f"did you mean {close[0]!r}?" if close else ""
