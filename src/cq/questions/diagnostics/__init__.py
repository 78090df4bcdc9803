"""What is wrong with code: what its syntax says, names that deceive, and what language servers say of its types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec

from cq.answers.options import AskServers, Languages, Option, Options, Paged
from cq.answers.page import Page, count_tokens, take
from cq.language import describe
from cq.model.answer import (
    SCHEMA_VERSION,
    Answer,
    Degradation,
    DiagnosticDetails,
    Finding,
    Insight,
    Run,
    Section,
    Slice,
    Truncation,
)
from cq.model.errors import UsageError
from cq.model.provider import Diagnostic, Reply
from cq.model.status import Degraded
from cq.providers.answers import Target
from cq.questions.diagnostics.identifiers import Suspect, find_suspects
from cq.snapshot.relations import linked
from cq.snapshot.servers import Servers, find_definition
from cq.source.files import PathFilter

if TYPE_CHECKING:
    from cq.snapshot.files import HeldFile
    from cq.snapshot.snapshot import Snapshot

SEVERITIES = ("error", "warning", "info", "hint")
MAX_ASKED = 200  # files that servers are asked about in one question


class DiagnosticsOptions(Options, frozen=True):
    """`inside` are files and directories, all of the repository where none is named. `severity` is the least."""

    examples: ClassVar[str] = """\
  cq diagnostics src/app.py
  cq diagnostics src tests --severity error
  cq diagnostics --no-lsp                      syntax errors of the whole repository"""

    inside: Annotated[
        tuple[str, ...],
        Option("files or directories (default: the repository)", "paths", "PATH", argument=True, place="folder"),
    ] = ()
    severity: Annotated[str, Option("the least that is shown (default: warning)", choices=SEVERITIES)] = "warning"
    languages: Languages = ()
    page: Paged = Page(50)
    servers: AskServers = True


@linked
def ask(snapshot: Snapshot, options: DiagnosticsOptions) -> Answer:
    """Errors first, then by path and place. Servers are asked about the first files; what is left out is counted."""
    servers = snapshot.open_servers(on=options.servers)
    options.page.check()
    if options.severity not in SEVERITIES:
        raise UsageError(f"--severity {options.severity} is none", hint=f"it is one of {', '.join(SEVERITIES)}")
    is_wanted = PathFilter((), (), options.inside)
    found: dict[tuple[int, str, int, str], Finding] = {}
    todo: list[tuple[HeldFile, int]] = []
    served: dict[str, bool] = {}
    files = 0

    def add(held: HeldFile, start: int, end: int, message: str, details: DiagnosticDetails) -> None:
        rank = SEVERITIES.index(details.severity)
        if rank <= SEVERITIES.index(options.severity):
            row, _ = find_definition(held, start)
            details = msgspec.structs.replace(details, scope=row.symbol.qualified_name if row else "")
            found[rank, held.path, start, message] = Finding(
                details.severity, message, held.locate(start, end), details=details
            )

    for held in servers.files.candidates(None):
        if not is_wanted(held.path):
            continue
        files += 1
        if not held.text.isascii():
            for suspect in _find_suspects(held, options.languages):
                details = DiagnosticDetails(
                    suspect.severity, "index", suspect.code, scripts=suspect.scripts, is_normalized=suspect.normalized
                )
                add(held, suspect.start, suspect.end, suspect.message, details)
        plain = not held.counts.get("problems", 1) and held.counts.get("documents", 2) == 1
        languages = [held.language] if plain else [document.language for document in held.documents]
        for number, language in enumerate(languages):
            if options.languages and language not in options.languages:
                continue
            for problem in () if plain else held.documents[number].problems:
                severity = "warning" if problem.code == "not_linked" else "error"
                details = DiagnosticDetails(severity, "index", problem.code)
                add(held, problem.start, problem.end, problem.message, details)
            if language not in served:
                served[language] = _is_served(servers, language)
            todo += [(held, number)] if served[language] else []
    targets = [Target(servers.document(held, number)) for held, number in todo[:MAX_ASKED]]
    replies = servers.ask("diagnostics", targets) if targets else []
    for reply in replies:
        item: Diagnostic
        for item in reply.items:
            spot = servers.find(item.place)
            if spot is not None:
                related = tuple(
                    f"{each.place.path or each.place.external}: {each.message}" for each in item.related[:5]
                )
                details = DiagnosticDetails(
                    item.severity, item.source or reply.provider, item.code, related=related
                )  # fmt: skip
                add(spot.file, item.place.start, item.place.end, item.message, details)
    ranked = [found[key] for key in sorted(found)]
    shown, budget, cut = take(ranked, options.page, lambda finding: finding)
    if len(todo) > MAX_ASKED:
        cut.append(Truncation("providers", "files", MAX_ASKED, len(todo), len(todo) - MAX_ASKED))
    sections = (
        Section("Diagnostics", "diagnostics", len(ranked), tuple(shown)),
        Section("Asked", "sources", findings=tuple(_describe_sources(servers, replies)), aside=True),
    )
    counts = {name: sum(finding.category == name for finding in ranked) for name in SEVERITIES}
    insight = Insight(
        None,
        {name: Slice(count, f"{name}s" if name != "info" else name) for name, count in counts.items() if count},
        degradation=Degradation(lsp=servers.status),
        budget=msgspec.structs.replace(budget, used=count_tokens(sections, options.page.measure) + 100),
    )
    return Answer(
        SCHEMA_VERSION,
        "diagnostics",
        Run(generation=servers.files.generation),
        {
            "query": ", ".join(options.inside) or ".",
            "files": files,
            "asked_about": len(replies),
            **counts,
            "lsp": msgspec.to_builtins(servers.telemetry()),
        },
        found=len(ranked),
        insight=insight,
        sections=tuple(section for section in sections if section.findings),
        degraded=(*servers.events(), *_advise(servers, [name for name, known in served.items() if not known])),
        truncated=tuple(cut),
    )


def _find_suspects(held: HeldFile, languages: tuple[str, ...]) -> Iterator[Suspect]:
    """Names that may deceive, in the code of a file."""
    for number, document in enumerate(held.documents):
        if "calls" not in describe(document.language).offers or (languages and document.language not in languages):
            continue
        spans = document.segment.ranges if document.segment is not None else ((0, len(held.text)),)
        yield from find_suspects(held.text, held.symbols[number], spans)


def _is_served(servers: Servers, language: str) -> bool:
    """Whether anybody can be asked about files of a language."""
    return servers.registry is not None and next(servers.registry.select(language, "diagnostics"), None) is not None


def _describe_sources(servers: Servers, replies: list[Reply[Any]]) -> list[Finding]:
    """One line per server and coverage, its files added up."""
    groups: dict[tuple[str, str, str], list[Reply[Any]]] = {}
    for reply in replies:
        groups.setdefault((reply.provider, reply.coverage.state, reply.coverage.reason), []).append(reply)
    rows: list[Finding] = []
    for _, group in sorted(groups.items()):
        items = tuple(item for reply in group for item in reply.items)
        files = f"diagnostics in {len(group):,} file{'s' * (len(group) != 1)}"
        rows.append(servers.describe(msgspec.structs.replace(group[0], items=items), files))
    return rows


def _advise(servers: Servers, languages: list[str]) -> list[Degraded]:
    """For languages of these files that a server could check, and none is there to."""
    if servers.registry is None:
        return []
    reasons = {language: servers.registry.explain(language, "diagnostics") for language in sorted(languages)}
    return [
        Degraded("providers", "info", "no_server", f"syntax only for {language}; {reason}", language)
        for language, reason in reasons.items()
        if not reason.startswith("no provider")
    ]
