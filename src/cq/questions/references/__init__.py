"""Every mention that means a definition: by the links of the index, by language servers, and by its name alone.

Sources add to each other. A mention is `certain` where links or a server say what it means, `possible` where only the
name fits; one that links say means something else is left out, unless a server says otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec

from cq.answers.options import AskServers, Exclude, Include, Inside, Languages, OneTarget, Option, Options, Paged
from cq.answers.page import Page, count_tokens, take
from cq.answers.words import count_places
from cq.model.answer import (
    EVIDENCE,
    SCHEMA_VERSION,
    Answer,
    Confidence,
    Degradation,
    Finding,
    Insight,
    ReferenceDetails,
    Run,
    Section,
    Slice,
    TypeDetails,
    bucket,
)
from cq.model.edge import Candidate, Certainty
from cq.snapshot.aliases import find_aliases
from cq.snapshot.relations import Relations, can_mention, linked
from cq.snapshot.servers import find_definition, find_document
from cq.snapshot.target import ROLE_ORDER, Definition, describe_target, find_same, find_targets, say_nothing
from cq.source.files import PathFilter

if TYPE_CHECKING:
    from cq.snapshot.snapshot import Snapshot


MAX_ALIASES = 50


class ReferencesOptions(Options, frozen=True):
    """The filters are about the files that refer. `servers` False: the index alone."""

    examples: ClassVar[str] = """\
  cq references QuerySet
  cq references src/app.py:Config.load --certain   only what links or a server are sure of
  cq references save --in tests --no-lsp           by the index alone"""

    target: OneTarget
    languages: Languages = ()
    inside: Inside = ()
    include: Include = ()
    exclude: Exclude = ()
    certain: Annotated[bool, Option("not those of which only the name fits")] = False
    page: Paged = Page()
    servers: AskServers = True
    place: tuple[str, ...] = ()  # what suggested commands must repeat to be about the same tree, quoted


class _Mention(msgspec.Struct):
    path: str
    document: int
    start: int
    end: int
    sources: set[str]

    @property
    def status(self) -> Certainty:
        return "possible" if self.sources == {"name"} else "certain"

    @property
    def order(self) -> tuple[str, int]:
        return self.path, self.start


@linked
def ask(snapshot: Snapshot, options: ReferencesOptions) -> Answer:
    """The certain ones first, sources before tests."""
    relations, servers = snapshot.relations, snapshot.open_servers(on=options.servers)
    options.page.check()
    every = find_targets(relations.files, options.target)
    targets = find_same(every)
    if not targets:
        return say_nothing(relations.files, "references", options.target)
    found: dict[tuple[str, int], _Mention] = {}
    replies = servers.ask("references", targets)
    _add_known(relations, targets, found)
    for reply in replies:
        for place in reply.items:
            spot = servers.find(place)
            if spot is not None:
                document = find_document(spot.file, place.start)
                mention = _Mention(place.path, document, place.start, place.end, set())
                found.setdefault((place.path, place.start), mention).sources.add(reply.source)
    for mention in found.values():
        if len(mention.sources) > 1:
            mention.sources.discard("name")  # which goes without saying
    own = {(row.file.path, row.symbol.name_start) for row in targets}
    is_wanted = PathFilter(options.include, options.exclude, options.inside)
    mentions: list[tuple[tuple[object, ...], _Mention]] = []
    for key, mention in found.items():
        held = relations.hold(mention.path)
        wanted = key not in own and is_wanted(mention.path) and not (options.certain and mention.status == "possible")
        if held is None or not wanted:
            continue
        if not options.languages or held.documents[mention.document].language in options.languages:
            order = (mention.status != "certain", ROLE_ORDER.get(held.role, 2), *mention.order)
            mentions.append((order, mention))
    ranked = [mention for _, mention in sorted(mentions, key=lambda item: item[0])]
    shown, budget, cut = take(ranked, options.page, lambda mention: _describe(relations, mention))
    certain = sum(mention.status == "certain" for mention in ranked)
    asked = tuple(dict.fromkeys(servers.describe(reply, "references") for reply in replies))
    aliases = [] if options.page.is_small else _list_aliases(relations, targets)
    sections = [
        Section("Also Called", "aliases", len(aliases), tuple(aliases[:MAX_ALIASES])),
        Section("References", "references", len(ranked), tuple(shown)),
        Section("Asked", "sources", 0, asked, aside=True),
    ]
    if len(shown) < len(ranked) and options.page.number * options.page.size < len(ranked):
        following = Finding("follow_up", options.command("references", page=options.page.next()))
        sections.append(Section("Suggested Follow-ups", "followups", 0, (following,), aside=True))
    score = EVIDENCE["resolved" if certain == len(ranked) else "heuristic"]
    slices = {
        "references": Slice(len(ranked), f"references: {certain} certain, {len(ranked) - certain} by name only"),
        "files": Slice(len({mention.path for mention in ranked}), "files"),
    }
    by_source = {name: sum(name in mention.sources for mention in ranked) for name in sorted(_sources(ranked))}
    return Answer(
        SCHEMA_VERSION,
        "references",
        Run(generation=relations.files.generation),
        {
            "query": options.target,
            "targets": len(targets),
            "references": len(ranked),
            "certain": certain,
            "possible": len(ranked) - certain,
            "by_source": by_source,
            "coverage": [
                {"provider": reply.provider, "state": reply.coverage.state, "reason": reply.coverage.reason}
                for reply in replies
            ],
            "lsp": msgspec.to_builtins(servers.telemetry()),
        },
        found=len(ranked),
        insight=Insight(
            describe_target(every),
            slices,
            confidence=Confidence("resolved" if certain == len(ranked) else "heuristic", score, bucket(score)),
            degradation=Degradation(lsp=servers.status),
            budget=msgspec.structs.replace(budget, used=count_tokens(sections, options.page.measure) + 150),
            headline=count_places((mention.path for mention in ranked), "reference")
            + (f": {certain:,} certain, {len(ranked) - certain:,} by name only" if certain < len(ranked) else ""),
        ),
        sections=tuple(section for section in sections if section.findings),
        degraded=servers.events(),
        truncated=tuple(cut),
    )


def _list_aliases(relations: Relations, targets: list[Definition]) -> list[Finding]:
    """The other names that imports, exports and assignments give to the definition."""
    rows: list[Finding] = []
    for place in dict.fromkeys(relations.named(row) for row in targets):
        for alias in find_aliases(relations, place):
            held = relations.hold(alias.path)
            if held is None:
                continue
            words = [
                f"{alias.name} for {alias.original}",
                f"({alias.kind}{', a type only' if alias.type_only else ''})",
            ]
            facts: dict[str, str | int | bool | tuple[str, ...]] = {
                "alias_kind": alias.kind,
                "original": alias.original,
            }
            if alias.type_only:
                facts["type_only"] = True
            details = TypeDetails("alias", alias.name, "links", facts=facts)
            rows.append(Finding("alias", " ".join(words), held.locate(alias.start, alias.end), details=details))
    return rows


def _sources(mentions: list[_Mention]) -> set[str]:
    return {source for mention in mentions for source in mention.sources}


def _add_known(relations: Relations, targets: list[Definition], found: dict[tuple[str, int], _Mention]) -> None:
    """What links say of every mention of the names, and of calls under another name."""
    places: dict[str, dict[Candidate, str]] = {}  # by name: what is wanted, and the languages that can mention it

    def add(path: str, document: int, start: int, end: int, source: str) -> None:
        found.setdefault((path, start), _Mention(path, document, start, end, set())).sources.add(source)

    for row in targets:
        place = relations.named(row)
        places.setdefault(row.symbol.name, {})[place] = row.file.documents[row.document].language
        for edge in relations.referrers.find_into(place):
            call = relations.call(edge) if edge.ref.resolved == place else None
            if edge.ref == relations.calls.find_handed(edge.source.path, edge.source.document, edge.call):
                continue  # the call is given the name, which is a mention where it stands
            if call is not None and call.name_start >= 0:
                end = call.name_start + len(call.name.encode())
                add(edge.source.path, edge.source.document, call.name_start, end, "links")
    for name, wanted in sorted(places.items()):
        files = {file.path: file for file in relations.files.candidates((name,))}
        # `export { Row as Line }`, `export default class Row`: who imports that need not say the name.
        linked = {path for place in wanted for path, _ in relations.referrers.find_files(place)}
        files |= {path: file for path in linked - files.keys() if (file := relations.hold(path)) is not None}
        for _, file in sorted(files.items()):
            for document, start, end, ref in relations.meanings.find_mentions(file.path, name, wanted):
                if ref is not None and ref.candidates and wanted.keys().isdisjoint(ref.candidates):
                    continue
                if ref is not None and ref.resolved is not None:
                    add(file.path, document, start, end, "links")
                elif ref is None or ref.status != "external":
                    language = file.documents[document].language
                    if any(can_mention(language, other) for other in wanted.values()):
                        add(file.path, document, start, end, "name")


def _describe(relations: Relations, mention: _Mention) -> Finding:
    held = relations.hold(mention.path)
    assert held is not None
    row, _ = find_definition(held, mention.start)
    details = ReferenceDetails(
        mention.status,
        tuple(sorted(mention.sources)),
        held.documents[mention.document].language,
        held.role,
        row.symbol.qualified_name if row else "",
        held.name_chunk(row.document if row else mention.document, row.symbol.chunk if row else 0),
    )
    confidence = EVIDENCE["resolved" if mention.status == "certain" else "unresolved"]
    location = held.locate(mention.start, mention.end)
    return Finding("reference", held.line_at(mention.start), location, confidence, confidence, details)
