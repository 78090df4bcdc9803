"""One shape for every answer: a card, sections of findings, and what was left out or not done.

`details` of a finding is typed by its `kind`, of the registry `cq.<area>.<thing>.v1`. Defaults are not written,
so that an answer costs what it says.
"""

from __future__ import annotations

from typing import Any

import msgspec

from cq.model.history import Blamed
from cq.model.location import Location
from cq.model.neighborhood import Bundle
from cq.model.status import Degraded

SCHEMA_VERSION = 1

# Confidence by evidence, and the buckets people read.
EVIDENCE = {"resolved": 0.95, "bytecode": 0.90, "syntax": 0.85, "heuristic": 0.60, "text": 0.45, "unresolved": 0.30}


def bucket(confidence: float) -> str:
    return "high" if confidence >= 0.7 else "medium" if confidence >= 0.4 else "low"


class Truncation(msgspec.Struct, frozen=True):
    """A cap that fired."""

    scope: str
    cap: str
    limit: int
    observed: int
    omitted: int


class AsOf(msgspec.Struct, frozen=True):
    """Which state of the repository an answer is about: what was asked for, the commit that this meant, and git's name
    of the files below the root."""

    ref: str
    resolved: str
    identity_hash: str


class Run(msgspec.Struct, frozen=True, omit_defaults=True):
    """`elapsed_ms` is of the whole process so far where a process answers one question, else of the question."""

    argv: tuple[str, ...] = ()
    version: str = ""
    generation: int = 0
    elapsed_ms: float = 0.0
    stages_ms: dict[str, float] = {}
    root: str = ""  # on request only
    as_of: AsOf | None = None  # of a revision


class Target(msgspec.Struct, frozen=True, omit_defaults=True):
    """The definition an answer is about, `index` of `of` that fit; `reason` says why this one."""

    name: str
    kind: str
    location: Location
    signature: str = ""
    reason: str = ""
    index: int = 1
    of: int = 1
    symbol_id: str = ""
    chunk_uid: str = ""
    others: tuple[Candidate, ...] = ()  # the first of the rest


class Slice(msgspec.Struct, frozen=True, omit_defaults=True):
    """`total` says how many there are of `what`; `preview` shows the first few of them."""

    total: int
    what: str
    preview: tuple[str, ...] = ()
    source: str = "index"


class Risk(msgspec.Struct, frozen=True):
    level: str  # "low" "medium" "high"
    drivers: tuple[str, ...]
    counters: dict[str, int]


class Confidence(msgspec.Struct, frozen=True):
    evidence: str  # a key of EVIDENCE
    score: float
    bucket: str


class Degradation(msgspec.Struct, frozen=True):
    """One word per stage: `ok`, `skipped`, or what was lost; the events say more."""

    scan: str = "ok"
    scope: str = "ok"
    lsp: str = "skipped"
    enrichment: str = "ok"


class Budget(msgspec.Struct, frozen=True, omit_defaults=True):
    """`tokens` of 0 is no limit. `used` estimates what the shown findings cost, a token per four bytes."""

    tokens: int
    used: int
    shown: int
    total: int
    page: int = 1
    pages: int = 1
    top_candidates: int = 3
    preview_per_slice: int = 5
    lsp_targets: int = 1


class Insight(msgspec.Struct, frozen=True, omit_defaults=True):
    """The card. Every slice says of what it counts. `headline` is the answer in a sentence, if the slices are not."""

    target: Target | None = None
    neighborhood: dict[str, Slice] = {}
    risk: Risk | None = None
    confidence: Confidence | None = None
    degradation: Degradation = Degradation()
    budget: Budget | None = None
    headline: str = ""


class CallArgument(msgspec.Struct, frozen=True, omit_defaults=True):
    kind: str
    text: str
    name: str = ""
    spread: bool = False


class Candidate(msgspec.Struct, frozen=True, omit_defaults=True):
    """A definition that a name may mean."""

    name: str
    kind: str
    path: str
    line: int
    symbol_id: str = ""
    confidence: float = 0.0
    evidence: str = ""


class ImportDetails(msgspec.Struct, frozen=True, omit_defaults=True):
    module: str
    imported: str = ""
    alias: str = ""
    level: int = 0
    type_only: bool = False


class NameBinding(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a name is bound to where it stands. `kind`: local, global, free, parameter, imported or builtin."""

    kind: str
    qualified_names: tuple[str, ...] = ()
    alias_chain: tuple[str, ...] = ()


class Agreement(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether independent sources say the same: `full` (three do), `partial` (fewer), `conflict`."""

    status: str
    sources: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()


class MatchDetails(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="cq.search.match.v1"):
    """One mention. `tier` says what classed it: facts, tree or text."""

    match: str
    language: str
    role: str  # src lib test doc generated
    tier: str
    node_kind: str = ""
    scope: str = ""  # qualified, "" at the top of a file
    symbol_kind: str = ""
    symbol_id: str = ""
    chunk_uid: str = ""
    signature: str = ""
    modifiers: tuple[str, ...] = ()
    decorators: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    scope_chain: tuple[str, ...] = ()  # the kinds of the names in `scope`
    class_context: str = ""
    behaviour: tuple[str, ...] = ()
    call_target: str = ""
    call_receiver: str = ""
    candidates: tuple[Candidate, ...] = ()
    import_details: ImportDetails | None = msgspec.field(default=None, name="import")
    binding: NameBinding | None = None
    parse_quality: str = ""  # "" is clean; "errors" near the mention, "errors in file" elsewhere
    agreement: Agreement | None = None
    context: tuple[str, ...] = ()  # lines around it, as asked; the first is line `context_line`
    context_line: int = 0
    degraded: tuple[str, ...] = ()
    truncated_fields: tuple[str, ...] = ()


READS = ("read", "write", "update")  # `call_kind` of what runs an accessor without a call


class PassedAt(msgspec.Struct, frozen=True, omit_defaults=True):
    """A place that a value passed on its way to a call, and what became of it there."""

    says: str
    location: Location


class CallDetails(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="cq.calls.site.v1"):
    """One call site. `status` is how sure it is that the target is meant."""

    callee: str
    caller: str
    language: str
    role: str
    status: str
    call_kind: str = "call"
    receiver: str = ""
    arguments: tuple[CallArgument, ...] = ()
    arg_count: int = 0
    keywords: tuple[str, ...] = ()
    forwards: tuple[str, ...] = ()
    context: str = ""  # what the call stands in: test, async, loop, …
    call_site_id: str = ""
    caller_chunk_uid: str = ""
    candidates: tuple[Candidate, ...] = ()
    evidence: tuple[str, ...] = ()
    witness: tuple[PassedAt, ...] = ()  # how the target got here, from its definition on, where that was asked
    no_witness: str = ""  # why there is none


class NodeDetails(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="cq.graph.node.v1"):
    """A definition that was reached. `witness` is one way to it, link by link, with where each stands."""

    name: str
    symbol_kind: str
    role: str
    distance: int = 0
    status: str = ""  # of the weakest link on the way
    edge: str = ""  # kind of the last link
    witness: tuple[str, ...] = ()
    symbol_id: str = ""
    verdict: str = ""  # of sig-impact: ok, breaks, ambiguous
    reason: str = ""
    facts: dict[str, str | int | bool | tuple[str, ...]] = {}  # of a member or a base: what its declaration says


class ProjectDetails(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="cq.projects.project.v1"):
    """A project as its configuration says; see cq.model.project.Project."""

    name: str
    project_kind: str  # solution base composite plain
    is_composite: bool = False
    references: tuple[str, ...] = ()
    referenced_by: tuple[str, ...] = ()
    extends: tuple[str, ...] = ()
    file_count: int = 0
    out_dir: str = ""
    root_dir: str = ""
    root_dirs: tuple[str, ...] = ()
    aliases: dict[str, tuple[str, ...]] = {}
    workspaces: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


class TypeDetails(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="cq.types.fact.v1"):
    """One thing that a declaration says. `source` says by what it is known: syntax, links or compiler."""

    fact: str  # declaration type_parameter parameter return referenced structure value guard takes hands handed alias
    name: str
    source: str
    type: str = ""
    resolved: tuple[Candidate, ...] = ()  # the types of the repository that it names
    facts: dict[str, str | int | bool | tuple[str, ...]] = {}


class TestDetails(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="cq.tests.test.v1"):
    """One test. `argument` names it to the program that runs it; `by` says what speaks for it: links to the definition
    itself, to its class or to others of its file, or only its name."""

    __test__ = False

    name: str
    runner: str
    argument: str
    by: str
    distance: int = 0  # calls on the way
    status: str = ""  # of the weakest link on the way
    witness: tuple[str, ...] = ()


class GraphEdge(msgspec.Struct, frozen=True, omit_defaults=True):
    """`source` depends on `target`; both are `path:name`."""

    source: str
    target: str
    kind: str
    confidence: float
    status: str
    site: str = ""


class Capture(msgspec.Struct, frozen=True):
    """What a metavariable stood for."""

    name: str
    text: str
    location: Location


class QueryDetails(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="cq.query.match.v1"):
    """One match of a query: an entity of the index, or a node that a pattern found."""

    match: str  # its text: a definition up to its body, anything else whole as far as it is short
    language: str
    node: str  # the kind of the definition, call, import or syntax node
    name: str = ""
    qualified_name: str = ""
    scope: str = ""  # the definition it stands in, "" at the top of a file
    captures: tuple[Capture, ...] = ()
    attributes: dict[str, str | int] = {}  # what filters and sorts looked at
    clipped: bool = False  # the text goes on


class LinkDetails(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="cq.query.link.v1"):
    """Something that leads from one definition or module to another. `status` is how sure that is."""

    relation: str
    source: str
    target: str
    status: str
    depth: int = 1
    source_path: str = ""
    target_path: str = ""
    candidates: int = 1  # how many definitions it may mean


class FactDetails(msgspec.Struct, frozen=True, tag_field="kind", tag="cq.query.facts.v1"):
    """What is known about a match, in named lists: a scope, a bytecode surface, its evidence."""

    subject: str
    facts: dict[str, tuple[str, ...]]


class ExceptionDetails(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="cq.exceptions.site.v1"):
    """Something raised, or a handler. `witness` is one way, call by call, along which nothing surely catches it."""

    event: str  # raise reraise throw panic unwrap error, or a handler: except except* catch
    exception: str  # its type, as far as known; of a handler what it catches, "" is everything
    scope: str
    language: str
    role: str
    status: str = ""  # of what is raised: uncaught leaves open caught handled again value
    caught_at: tuple[str, ...] = ()
    witness: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()  # bare empty broad reraises cause maybe_caught abstract


class EffectDetails(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="cq.effects.site.v1"):
    """What happens when a module is loaded. `through` leads from the call to what has the effect."""

    effect: str  # io network process environment state registration import unknown pure
    what: str  # the callee, or what is written
    scope: str
    language: str
    role: str
    evidence: str  # external: a known function from outside; resolved: by its code; syntax, name: by how it reads
    through: tuple[str, ...] = ()
    form: str = "call"  # import call iife assignment await read
    is_conditional: bool = False  # on a condition, in a loop, or as part of a `try`


class RiskDetails(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="cq.risk.flow.v1"):
    """Data from outside that reaches a place where it harms, or, without a `source`, a weakness that needs none.
    `witness` leads from the source to the sink. `fingerprint` stays when lines move."""

    rule: str
    risk: str  # the kind of sink: sql command xss path …
    cwe: int
    severity: str
    fingerprint: str
    language: str
    role: str
    scope: str = ""
    source: str = ""  # the rule that says where data comes in
    origin: str = ""  # remote local stored
    fix: str = ""
    hops: int = 0  # calls and returns between functions on the way
    witness: tuple[PassedAt, ...] = ()
    suppressed: str = ""  # the reason in `# cq: ignore[rule] reason`
    is_new: bool = True  # not in the baseline


class CommitDetails(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="cq.log.commit.v1"):
    """A commit and what it made of a definition: introduced, renamed, moved, signature, body, or comments or format.
    Without a hash it is what is not committed yet."""

    commit: str
    author: str
    time: int  # of the author, in seconds since 1970
    subject: str
    changes: tuple[str, ...]
    name: str  # as it was called then
    path: str
    old_name: str = ""
    old_path: str = ""


class ChangeDetails(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="cq.diff.change.v1"):
    """What became of a definition between two states. `change` is a key of CHANGES in cq.questions.diff; `score` how
    sure it is that the old definition and the new are one; `broken` the places that call it as it was."""

    change: str
    name: str
    symbol_kind: str
    role: str
    old_name: str = ""
    old_path: str = ""
    old_signature: str = ""
    new_signature: str = ""
    public: bool = False
    score: float = 1.0
    reasons: tuple[str, ...] = ()
    callers: int = 0
    broken: tuple[str, ...] = ()


class RouteDetails(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="cq.routes.route.v1"):
    """Something that comes in from outside. `path` is that of a request, or the name of a command, task or signal; what
    of it nobody knows stands in braces."""

    route: str  # http websocket graphql cli task schedule signal ffi
    framework: str
    path: str
    method: str = ""  # "*": any
    handler: str = ""  # what runs, or how it is written where nobody knows
    handler_path: str = ""
    handler_line: int = 0
    handler_id: str = ""
    status: str = ""  # ambiguous: only names speak for it
    middleware: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    gives: str = ""


class ViolationDetails(
    msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="cq.architecture.violation.v1"
):
    """An edge, or a way of several, that a rule forbids. `cut`: the fewest arrows without which a cycle is none."""

    rule: str
    rule_kind: str  # forbidden layers independent acyclic only_through
    severity: str  # error warning info
    source: str
    target: str
    fingerprint: str  # stays when lines move
    reason: str = ""
    edge: str = "imports"
    witness: tuple[PassedAt, ...] = ()
    cut: tuple[str, ...] = ()
    is_new: bool = True  # not in the baseline


class ApiDetails(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="cq.api.export.v1"):
    """A name that a package offers, with how it is called here; or a call of it that cannot fit (`warning`)."""

    public: str  # as users write it
    symbol_kind: str
    how: str  # __all__ defined reexported exported pub
    signature: str = ""
    symbol_id: str = ""
    also: tuple[str, ...] = ()  # other names of the same
    deprecated: str = ""
    calls: int = 0
    sampled: int = 0  # of them were looked at
    shapes: dict[str, int] = {}  # `(2, key)`: arguments by place, keywords, spreads
    users: int = 0  # files that use it, tests left out
    tests: int = 0
    warning: str = ""


class DeadDetails(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="cq.dead.definition.v1"):
    """A definition that nothing reaches."""

    name: str
    symbol_kind: str
    why: str
    lines: int = 0
    symbol_id: str = ""


class PackDetails(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="cq.context.item.v1"):
    """One item of a pack. `source` is as it stands, or one line of contract where `language` is empty."""

    relation: str  # primary callees callers types tests imports docs
    why: str
    cost: int  # tokens, with what is written around it
    language: str
    name: str
    source: str
    more: str = ""  # the command that shows more
    is_changed: bool = False  # since the pack that was named


class CountDetails(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="cq.answer.count.v1"):
    """How many of something, in how many files, and of what else how many."""

    count: int
    files: int = 0
    counts: dict[str, int] = {}


class SourceDetails(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="cq.read.source.v1"):
    """Source as it is. `more` is what to read next where it was too long; `others` bear the same name."""

    source: str
    language: str
    name: str = ""
    more: str = ""
    others: tuple[Candidate, ...] = ()


class MeantName(msgspec.Struct, frozen=True, array_like=True):
    """An identifier where it stands. `status`: definition, certain, possible, external or
    unknown. `targets` are numbers of candidates, the likeliest first; `module` is where it comes from when that is
    outside the repository."""

    line: int
    col: int
    name: str
    status: str
    targets: tuple[int, ...] = ()
    evidence: str = ""
    confidence: float = 0.0
    module: str = ""


class NamesDetails(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="cq.read.names.v1"):
    """Every identifier of a source, in order, with what it may mean; and its tokens, each as line, column, length and
    class: comment, string, keyword, … A token of several lines is one for each."""

    language: str
    hash: str  # of the whole file's text
    names: tuple[MeantName, ...] = ()
    targets: tuple[Candidate, ...] = ()
    tokens: tuple[tuple[int, int, int, str], ...] = ()


class BlameDetails(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="cq.read.blame.v1"):
    """Who wrote the lines, those of one commit together."""

    lines: tuple[Blamed, ...] = ()


class ModuleDetails(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="cq.map.module.v1"):
    """A directory, file or definition of a map. `fan_in` counts the modules that depend on it, `inside` the links that
    do not leave it; `heat` is 1 for the hottest, `value` what was measured."""

    name: str
    module_kind: str
    lines: int
    symbols: int
    files: int
    fan_in: int = 0
    fan_out: int = 0
    inside: int = 0
    heat: float = 0.0
    heat_by: str = ""
    value: float = 0.0


class DependencyDetails(
    msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="cq.map.dependency.v1"
):  # fmt: skip
    """That one module depends on another: how many links of each kind, `total` in all, and where the first stand."""

    source: str
    target: str
    certain: dict[str, int] = {}
    possible: dict[str, int] = {}
    sites: tuple[str, ...] = ()
    total: int = 0


class HoverDetails(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="cq.hover.contract.v1"):
    """What a name stands for. `source` is the server that said it, or `index`: then it is as written."""

    name: str
    symbol_kind: str
    source: str
    signature: str = ""
    parameters: tuple[str, ...] = ()
    returns: str = ""
    type: str = ""
    doc: str = ""
    value: str = ""  # of a member of an enum, where the source says it


class ServerDetails(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="cq.lsp.item.v1"):
    """One thing that a language server says, `about` what plane; `flags` are its own words for it."""

    about: str
    source: str
    name: str
    item_kind: str = ""
    text: str = ""
    flags: tuple[str, ...] = ()


class ReferenceDetails(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="cq.references.site.v1"):
    """One mention that means the target, or may. `sources` say so: links, a server (lsp.ty), or only the name."""

    status: str  # certain possible
    sources: tuple[str, ...]
    language: str
    role: str
    scope: str = ""
    chunk_uid: str = ""  # of what it stands in


class DiagnosticDetails(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="cq.diagnostics.row.v1"):
    severity: str  # error warning info hint
    source: str  # index, or the server
    code: str = ""
    scope: str = ""
    related: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()  # of a name that is not ASCII
    is_normalized: bool = True  # in the form NFC


Details = (
    MatchDetails
    | CallDetails
    | NodeDetails
    | TypeDetails
    | ProjectDetails
    | TestDetails
    | QueryDetails
    | LinkDetails
    | FactDetails
    | CountDetails
    | SourceDetails
    | NamesDetails
    | BlameDetails
    | ModuleDetails
    | DependencyDetails
    | HoverDetails
    | ServerDetails
    | ReferenceDetails
    | DiagnosticDetails
    | ExceptionDetails
    | EffectDetails
    | RiskDetails
    | RouteDetails
    | ChangeDetails
    | CommitDetails
    | ViolationDetails
    | ApiDetails
    | DeadDetails
    | PackDetails
)


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """`message` is what people read: a line of source, a count, or a command that can be pasted (`follow_up`)."""

    category: str
    message: str
    location: Location | None = None
    score: float = 0.0
    confidence: float = 0.0
    details: Details | None = None
    stable_id: str = ""  # of the content, so that two runs can be compared
    count: int = 0


class Section(msgspec.Struct, frozen=True, omit_defaults=True):
    """`total` counts what the section is about; `findings` are the ones shown. Collapsed: counted, not listed. `aside`:
    known beside the answer, and shown as text only with the card."""

    title: str
    kind: str
    total: int = 0
    findings: tuple[Finding, ...] = ()
    collapsed: bool = False
    note: str = ""
    aside: bool = False


class ArtifactRef(msgspec.Struct, frozen=True):
    """What was too heavy for the answer: `cq artifact get ID` prints it."""

    id: str
    kind: str
    bytes: int


class Answer(msgspec.Struct, frozen=True):
    schema_version: int
    command: str
    run: Run
    summary: dict[str, Any]
    found: int = 0  # how many there are in all; 0 is exit code 1
    insight: Insight | None = None
    key_findings: tuple[Finding, ...] = ()
    sections: tuple[Section, ...] = ()
    artifacts: tuple[ArtifactRef, ...] = ()
    degraded: tuple[Degraded, ...] = ()
    truncated: tuple[Truncation, ...] = ()
    edges: tuple[GraphEdge, ...] = ()  # for pictures; empty where the question has none
    suggestions: tuple[str, ...] = ()  # near names, where nothing was found
    bundle: Bundle | msgspec.UnsetType = msgspec.UNSET  # of a neighborhood only
    answers: tuple[Answer, ...] | msgspec.UnsetType = msgspec.UNSET  # of several targets, one each

    @property
    def parts(self) -> tuple[Answer, ...]:
        """One for every target."""
        return (self,) if isinstance(self.answers, msgspec.UnsetType) else self.answers
