"""The bundle: which slices are asked for, their nodes and edges, what is shown and what goes to artifacts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec

from cq.answers.options import AskWarmServers, Budgeted, Option, Options, Positive, find_languages
from cq.answers.page import Page
from cq.model.answer import Truncation
from cq.model.edge import Candidate
from cq.model.errors import UsageError, suggest
from cq.model.neighborhood import (
    SLICE_KINDS,
    ArtifactPointer,
    Bundle,
    BundleEdge,
    BundleMeta,
    GraphSummary,
    NeighborhoodSlice,
    Node,
    SliceKind,
)
from cq.model.status import Degraded
from cq.questions.neighborhood import links, structure
from cq.questions.neighborhood.foreign import find_foreign
from cq.questions.neighborhood.history import find_changed_together
from cq.questions.neighborhood.members import MAX_MEMBERS, Found, Nodes, Subject, WholeSlice, count_certain
from cq.snapshot.relations import MAX_DEPTH, Relations
from cq.snapshot.target import Definition, Resolution, resolve_target
from cq.store.overflow import Overflow

if TYPE_CHECKING:
    from cq.model.history import History
    from cq.snapshot.servers import Servers
    from cq.store.trace import Trace

TITLES: dict[SliceKind, str] = {
    "enclosing_context": "Enclosing Context",
    "parents": "Parents",
    "children": "Children",
    "siblings": "Siblings",
    "callers": "Callers",
    "callees": "Callees",
    "references": "References",
    "implementations": "Implementations",
    "type_supertypes": "Supertypes",
    "type_subtypes": "Subtypes",
    "imports": "Imports",
    "importers": "Importers",
    "related": "Related",
    "tests": "Tests",
    "lsp_deep_signals": "Deep Signals",
}
EXPANDABLE = ("callers", "callees")
COMMAND = "neighborhood"
_DYNAMIC = {"parents": 3, "enclosing_context": 1}  # collapsed beyond so many
_EXPAND = re.compile(r"\s*(?P<kind>[a-z_]+)\s*\(\s*depth\s*=\s*(?P<depth>\d+)\s*\)\s*\Z")
# Tokens of one node as text, with its edge: text is held to a hundred lines, unless more nodes are asked for than
# go by default. And of everything around.
_COST, _LINE = 150, 50
TOP_K = 10
_AROUND = {"text": 1200, "json": 2600}
_MAX_OTHERS = 10


def parse_expand(text: str) -> tuple[tuple[str, int], ...]:
    """`callers(depth=2),callees(depth=3)`; UsageError for anything else."""
    found: list[tuple[str, int]] = []
    for part in re.split(r",(?![^()]*\))", text):
        match = _EXPAND.match(part)
        if match is None:
            raise UsageError(f"--expand cannot read {part.strip()!r}", hint="e.g. --expand 'callers(depth=2)'")
        found.append((match["kind"], int(match["depth"])))
    return tuple(found)


def _parse_slices(text: str) -> tuple[str, ...]:
    slices = [name.strip() for name in text.split(",")]
    if not all(slices):
        raise UsageError("--slices names an empty kind", hint="e.g. --slices callers,tests")
    return tuple(dict.fromkeys(slices))


class NeighborhoodOptions(Options, frozen=True):
    """`slices` () is all of them; `expand` are (kind, depth), which outrank `depth`. `languages` are those of the
    definitions that the target may mean."""

    examples: ClassVar[str] = """\
  cq neighborhood QuerySet.get_or_create                   everything around it
  cq nb django/db/models/query.py:938:9 --no-lsp           what is defined there, without language servers
  cq nb save --slices callers,tests --top-k 30             only these
  cq nb Parser --expand 'callers(depth=2)' --format dot    a picture, two steps far"""
    in_plans: ClassVar[Mapping[str, Any]] = {"top_k": 5, "lsp": True}
    least_tokens: ClassVar[int] = 3000

    target: Annotated[
        str,
        Option(
            "Name, Class.method, path:Name, path:line[:col], pkg.mod.Name, or a module",
            metavar="TARGET", argument=True, place="target", several=True,
        ),
    ]  # fmt: skip
    top_k: Annotated[Positive, Option(f"nodes per slice (default: {TOP_K})", metavar="N")] = TOP_K
    languages: Annotated[
        tuple[str, ...], Option("languages of what TARGET may mean", "lang", "LANG,…", parse=find_languages)
    ] = ()
    lsp: AskWarmServers = None
    slices: Annotated[
        tuple[str, ...], Option("only these: callers, callees, tests, …", metavar="KIND,…", parse=_parse_slices)
    ] = ()
    depth: Annotated[Positive, Option("steps of callers and callees (1)", metavar="N")] = 1
    expand: Annotated[
        tuple[tuple[str, int], ...], Option("steps of one of them", metavar="KIND(depth=N),…", parse=parse_expand)
    ] = ()
    page: Budgeted = Page(0)
    order: tuple[str, ...] = ()  # of the sections, as configured
    place: tuple[str, ...] = ()  # what suggested commands must repeat to be about the same tree, quoted

    def check(self) -> None:
        self.page.check()
        if not 1 <= self.top_k <= MAX_MEMBERS:
            raise UsageError(f"--top-k {self.top_k} is out of range", hint=f"it is 1 to {MAX_MEMBERS}")
        for depth in (self.depth, *(depth for _, depth in self.expand)):
            if not 1 <= depth <= MAX_DEPTH:
                raise UsageError(f"a depth of {depth} is out of range", hint=f"it is 1 to {MAX_DEPTH}")
        for kinds, known, flag in ((self.slices, SLICE_KINDS, "--slices"), (dict(self.expand), EXPANDABLE, "--expand")):
            for kind in kinds:
                if kind not in known:
                    hint = suggest(kind, known)
                    raise UsageError(f"{flag} does not know {kind!r}", hint=hint)

        unused = [kind for kind, _ in self.expand if not self.wants(kind)]
        if unused or (self.depth > 1 and not any(map(self.wants, EXPANDABLE))):
            what = f"--expand {unused[0]}" if unused else "--depth"
            raise UsageError(f"{what} is about a slice that --slices leaves out", hint="name it in --slices too")

    def wants(self, kind: str) -> bool:
        return not self.slices or kind in self.slices

    def find_depth(self, kind: str) -> int:
        return dict(self.expand).get(kind, self.depth)


class Sources(msgspec.Struct, frozen=True):
    """What an index alone does not know. Each is asked only for slices that are wanted, and None is not there."""

    history: Callable[[], History] | None = None  # which files changed together
    near: Callable[[Definition], Found] | None = None  # definitions that are about the same
    servers: Servers | None = None
    mode: str = "interactive"  # how long servers may take


class Neighborhood(msgspec.Struct, frozen=True):
    """A bundle with what an answer needs beside it: caps that fired, what overflowed."""

    bundle: Bundle
    truncated: tuple[Truncation, ...] = ()
    overflow: tuple[Overflow, ...] = ()


class Collected(msgspec.Struct, frozen=True):
    """All there is, in plain data, before it is cut to size. `read` says for every slice how many questions to the
    index it and those before it have cost: while their answers stand, so does the slice."""

    meta: BundleMeta
    subject: Node | None = None
    slices: dict[SliceKind, WholeSlice] = {}
    events: tuple[Degraded, ...] = ()
    read: dict[str, int] = {}
    reused: tuple[SliceKind, ...] = ()


_COLLECT: dict[SliceKind, Callable[[Relations, Subject], Found]] = {
    "enclosing_context": structure.find_enclosing,
    "parents": structure.find_parents,
    "children": structure.find_children,
    "siblings": structure.find_siblings,
    "references": links.find_references,
    "implementations": links.find_implementations,
    "type_supertypes": links.find_supertypes,
    "type_subtypes": links.find_subtypes,
    "imports": links.find_imports,
    "importers": links.find_importers,
    "tests": links.find_tests,
}


# What reads little before what reads much: a change far away then leaves the most standing.
_ORDER: tuple[SliceKind, ...] = (
    "enclosing_context", "parents", "children", "siblings", "imports", "type_supertypes", "callees", "type_subtypes",
    "implementations", "importers", "callers", "references", "tests", "related", "lsp_deep_signals",
)  # fmt: skip


def find_neighborhood(
    relations: Relations, options: NeighborhoodOptions, sources: Sources | None = None, *, version: str = ""
) -> Neighborhood:
    return assemble(collect(relations, options, sources or Sources(), version=version), options)


def collect(
    relations: Relations,
    options: NeighborhoodOptions,
    sources: Sources,
    *,
    version: str = "",
    trace: Trace | None = None,
    kept: dict[SliceKind, tuple[WholeSlice, int]] | None = None,
) -> Collected:
    """`kept` are slices that need not be looked for again."""
    options.check()
    kept = kept or {}
    resolution = resolve_target(relations.files, options.target)
    if options.languages:
        resolution = _keep_languages(resolution, options)
    subject = find_subject(relations, resolution)
    meta = BundleMeta(
        tool_version=version, query_text=options.target, resolution_kind=resolution.kind,
        limits={"top_k": options.top_k, "members": MAX_MEMBERS, "depth": options.depth} | dict(options.expand),
        of=max(len(resolution.rows), 1),
    )  # fmt: skip
    if subject is None:
        return Collected(meta, events=resolution.events)
    nodes = Nodes(relations, subject)
    node = nodes.subject_node
    others = (nodes.make(row) for row in resolution.rows[1 : _MAX_OTHERS + 1])
    meta = msgspec.structs.replace(meta, others=tuple(other for other in others if other is not None))
    read = {"": min((count for _, count in kept.values()), default=len(trace or ()))}  # of the target itself
    found: dict[SliceKind, Found] = {}
    whole: dict[SliceKind, WholeSlice] = {}
    foreign: dict[SliceKind, Found] | None = None
    for kind in _ORDER:
        if not options.wants(kind):
            continue
        if kind in kept:
            whole[kind], read[kind] = kept[kind]
            continue
        found[kind] = _find_slice(relations, subject, options, sources, kind)
        if kind in _CROSSING:
            foreign = find_foreign(relations, subject) if foreign is None else foreign
            found[kind] = _cross(kind, found[kind], foreign)
        if sources.servers is None:
            whole[kind], read[kind] = _make_slice(nodes, kind, found[kind]), len(trace or ())
    events = resolution.events
    if sources.servers is not None:
        from cq.questions.neighborhood.signals import ask_servers

        found, told = ask_servers(relations, sources.servers, subject, found, mode=sources.mode)
        meta = msgspec.structs.replace(meta, lsp_servers=told)
        events = (*events, *sources.servers.events())
        whole = {kind: _make_slice(nodes, kind, part) for kind, part in found.items()}
    slices: dict[SliceKind, WholeSlice] = {kind: whole[kind] for kind in SLICE_KINDS if kind in whole}
    return Collected(meta, node, slices, events, read, tuple(kind for kind in slices if kind in kept))


def find_subject(relations: Relations, resolution: Resolution) -> Subject | None:
    if resolution.rows:
        row = resolution.rows[0]
        place = relations.find_place(row)
        return Subject(row.file, row.document, row, place)
    if resolution.module is not None:
        return Subject(resolution.module, 0, None, Candidate(resolution.module.path, 0, ""))
    return None


def _keep_languages(resolution: Resolution, options: NeighborhoodOptions) -> Resolution:
    rows = tuple(
        row for row in resolution.rows if row.file.documents[row.document].language in options.languages
    )  # fmt: skip
    module = resolution.module if resolution.module and resolution.module.language in options.languages else None
    if rows == resolution.rows and module == resolution.module:
        return resolution
    if rows or module:
        return msgspec.structs.replace(resolution, rows=rows, module=module)
    message = f"nothing is named {options.target!r} in {', '.join(options.languages)}"
    event = Degraded("structural.target_resolution", "error", "not_found", message, options.target)
    return Resolution("unresolved", events=(event,))


_CROSSING = ("callees", "implementations", "callers", "tests", "related")


def _find_slice(
    relations: Relations, subject: Subject, options: NeighborhoodOptions, sources: Sources, kind: SliceKind
) -> Found:
    if kind == "callers":
        return links.find_callers(relations, subject, options.find_depth(kind))
    if kind == "callees":
        return links.find_callees(relations, subject, options.find_depth(kind))
    if kind == "related":
        return _relate(subject, sources)
    return _COLLECT[kind](relations, subject) if kind in _COLLECT else Found()


def _cross(kind: SliceKind, found: Found, foreign: dict[SliceKind, Found]) -> Found:
    """With what stands on the other side of a language boundary."""
    if kind not in foreign:
        return found
    found = _join(foreign[kind], found)
    if kind not in ("callers", "callees", "tests"):
        return found
    return msgspec.structs.replace(found, metadata=found.metadata | count_certain(found.members))


def _relate(subject: Subject, sources: Sources) -> Found:
    parts = [find_changed_together(sources.history(), subject.file.path)] if sources.history is not None else []
    if sources.near is not None and subject.row is not None:
        parts.insert(0, sources.near(subject.row))
    whole = Found()
    for part in parts:
        whole = _join(whole, part)
    return whole


def _join(first: Found, second: Found) -> Found:
    return Found(
        (*first.members, *second.members), first.metadata | second.metadata, (*first.truncated, *second.truncated),
        (*first.events, *second.events), max(first.total, second.total),
    )  # fmt: skip


def assemble(collected: Collected, options: NeighborhoodOptions) -> Neighborhood:
    """Cut to what the budget holds; the rest becomes artifacts."""
    subject, meta = collected.subject, collected.meta
    if subject is None:
        bundle = Bundle(_name_bundle(options, collected), None, options.target, meta, diagnostics=collected.events)
        return Neighborhood(bundle)
    whole = list(collected.slices.values())
    sizes = _share(collected, options)
    overflow = [
        (slice_, Overflow.of(COMMAND, f"slice_{slice_.kind}", _full(slice_)))
        for slice_, size in zip(whole, sizes, strict=True)
        if len(slice_.nodes) > size
    ]
    shown = tuple(_cut(slice_, size) for slice_, size in zip(whole, sizes, strict=True))
    told = {subject.node_id, *(node.node_id for part in shown for node in part.preview)}
    everything = {node.node_id: node for slice_ in whole for node in slice_.nodes} | {subject.node_id: subject}
    ends = {end for part in shown for edge in part.edges for end in (edge.source_node_id, edge.target_node_id)}
    # What an edge leads through is told too.
    index = {end: everything[end] for end in sorted(ends - told) if end in everything}
    arrows = {(e.source_node_id, e.target_node_id, e.edge_kind) for slice_ in whole for e in slice_.edges}
    caps = tuple(cut for slice_ in whole for cut in slice_.found.truncated)
    caps += tuple(
        Truncation(slice_.kind, "members", MAX_MEMBERS, slice_.total, slice_.total - MAX_MEMBERS)
        for slice_ in whole
        if slice_.total > MAX_MEMBERS
    )
    caps += tuple(
        Truncation(slice_.kind, "preview", size, slice_.total, slice_.total - size)
        for slice_, size in zip(whole, sizes, strict=True)
        if slice_.total > size
    )
    label = f"{subject.kind} {subject.qualname or subject.name}"
    bundle = Bundle(
        _name_bundle(options, collected), subject, label, meta, shown,
        GraphSummary(len(everything), len(arrows)), index,
        tuple(_point(item, slice_) for slice_, item in overflow),
        (*collected.events, *(event for slice_ in whole for event in slice_.found.events)),
    )  # fmt: skip
    return Neighborhood(bundle, caps, tuple(item for _, item in overflow))


def keep_stored(found: Neighborhood, stored: Collection[str]) -> Neighborhood:
    """Without pointers to artifacts that are not there."""
    bundle = found.bundle
    kept = tuple(pointer for pointer in bundle.artifacts if pointer.artifact_id in stored)
    lost = ", ".join(p.metadata["slice"] for p in bundle.artifacts if p.artifact_id not in stored)
    if not lost:
        return found
    event = Degraded("artifacts", "warning", "not_stored", f"what is not shown could not be stored: {lost}")
    bundle = msgspec.structs.replace(bundle, artifacts=kept, diagnostics=(*bundle.diagnostics, event))
    return msgspec.structs.replace(found, bundle=bundle)


def _make_slice(nodes: Nodes, kind: SliceKind, found: Found) -> WholeSlice:
    made: dict[str, Node] = {}
    edges: dict[str, BundleEdge] = {}
    for member in found.members[:MAX_MEMBERS]:
        node = nodes.make(member.place)
        if node is None:
            continue
        made.setdefault(node.node_id, node)
        if member.edge_kind:
            edge = nodes.edge(kind, member, node)
            edges.setdefault(edge.edge_id, edge)
    if len(found.members) > MAX_MEMBERS:
        found = msgspec.structs.replace(found, total=max(found.total, len(found.members)))
    # Members hold on to the index they came from; what is kept is plain.
    found = msgspec.structs.replace(found, members=())
    return WholeSlice(kind, found, tuple(made.values()), tuple(edges.values()))


def _share(collected: Collected, options: NeighborhoodOptions) -> list[int]:
    """How many nodes of each slice are shown: at most top_k, and so that all together keep to the budget: one for
    each, then a second, and so on; three fit any budget."""
    whole, page = list(collected.slices.values()), options.page
    cost = _COST if options.top_k <= TOP_K else _LINE
    costs = [[cost] * min(len(slice_.nodes), options.top_k) for slice_ in whole]
    if not page.budget:
        return [len(each) for each in costs]
    room = page.budget - _AROUND[page.measure]
    if page.measure == "json":
        costs = [_weigh(slice_, options.top_k) for slice_ in whole]
        room -= _count((collected.subject, collected.meta, [slice_.found.metadata for slice_ in whole]))
    given, least = [0] * len(costs), 3
    ended: set[int] = set()
    while len(ended) < len(costs):
        for at, each in enumerate(costs):
            if at in ended:
                continue
            if given[at] == len(each) or (each[given[at]] > room and not least):
                ended.add(at)
                continue
            room -= each[given[at]]
            given[at] += 1
            least = max(least - 1, 0)
    return given


def _weigh(slice_: WholeSlice, most: int) -> list[int]:
    """What each of the first nodes costs as JSON, with its edges."""
    edges: dict[str, int] = {}
    for edge in slice_.edges:
        cost = _count(edge)
        for end in (edge.source_node_id, edge.target_node_id):
            edges[end] = edges.get(end, 0) + cost
    return [_count(node) + edges.get(node.node_id, 0) for node in slice_.nodes[:most]]


def _count(value: object) -> int:
    return len(msgspec.json.encode(value)) // 4 + 1


def _cut(slice_: WholeSlice, size: int) -> NeighborhoodSlice:
    preview = slice_.nodes[:size]
    kept = {node.node_id for node in preview}
    edges = tuple(e for e in slice_.edges if e.source_node_id in kept or e.target_node_id in kept)
    collapsed = slice_.total > _DYNAMIC[slice_.kind] if slice_.kind in _DYNAMIC else True
    return NeighborhoodSlice(
        slice_.kind, TITLES[slice_.kind], slice_.total, preview, edges, collapsed, slice_.found.metadata
    )


def _full(slice_: WholeSlice) -> NeighborhoodSlice:
    return NeighborhoodSlice(
        slice_.kind, TITLES[slice_.kind], slice_.total, slice_.nodes, slice_.edges, True, slice_.found.metadata
    )


def _point(item: Overflow, slice_: WholeSlice) -> ArtifactPointer:
    digest = hashlib.sha256(item.data).hexdigest()
    return ArtifactPointer(
        "snb.slice",
        item.name,
        f"sha256:{digest}",
        len(item.data),
        metadata={"slice": slice_.kind, "nodes": len(slice_.nodes)},
    )


def _name_bundle(options: NeighborhoodOptions, collected: Collected) -> str:
    """By what was asked and all that was found, however much of it is shown."""
    asked = (
        options.target,
        options.top_k,
        options.languages,
        options.lsp,
        options.slices,
        options.depth,
        options.expand,
    )
    found = collected.subject, collected.meta, [_full(slice_) for slice_ in collected.slices.values()], collected.events
    return f"snb1:{hashlib.sha256(msgspec.json.encode((asked, found))).hexdigest()[:32]}"


def find_sources(slices: Sequence[NeighborhoodSlice]) -> Iterator[str]:
    """Every source of evidence, by name."""
    yield from sorted({edge.evidence_source for part in slices for edge in part.edges if edge.evidence_source})
