"""What language servers say beside hover, references and diagnostics, one plane a question. Nothing they offer is done:
actions and runnables are listed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec

from cq.answers.options import AskServers, Option, Options, Paged, find_languages
from cq.answers.page import Page, count_tokens, take
from cq.model.answer import SCHEMA_VERSION, Answer, Degradation, Finding, Insight, Run, Section, ServerDetails, Target
from cq.model.errors import UsageError, suggest
from cq.model.provider import (
    Action,
    Diagnostic,
    Expansion,
    Hint,
    Outline,
    Place,
    Reply,
    Runnable,
    Signature,
    Token,
)
from cq.providers import answers
from cq.snapshot.relations import linked
from cq.snapshot.servers import Servers, find_document
from cq.snapshot.target import Definition, describe_target, find_byte, find_file, find_targets, say_nothing

if TYPE_CHECKING:
    from cq.snapshot.snapshot import Snapshot

# The word of a question -> the plane, and what it is about: a place, a definition's span, a file, words, everything.
ABOUT: dict[str, tuple[str, str]] = {
    "actions": ("actions", "span"),
    "declaration": ("declaration", "point"),
    "definition": ("definition", "point"),
    "document-symbols": ("document_symbols", "file"),
    "hints": ("hints", "span"),
    "implementation": ("implementation", "point"),
    "macro": ("macro", "point"),
    "runnables": ("runnables", "file"),
    "signature-help": ("signature_help", "point"),
    "tokens": ("tokens", "span"),
    "type-definition": ("type_definition", "point"),
    "workspace-diagnostics": ("workspace_diagnostics", "all"),
    "workspace-symbols": ("workspace_symbols", "words"),
}
_LINE = re.compile(r"(?P<path>.+?):(?P<line>\d+)\Z")
_NAME = re.compile(rb"[\w$\x80-\xff]+")
_LONGEST_NAME = 500
_MOST_TEXT = 4000


class LspOptions(Options, frozen=True):
    """`target` is a TARGET; of `document-symbols` and `runnables` a file as well, of `workspace-symbols` words, of
    `workspace-diagnostics` nothing. `languages` are whose servers are asked about the whole workspace."""

    examples: ClassVar[str] = """\
  cq lsp signature-help src/app.py:12:20       what the call there may be given
  cq lsp type-definition src/app.py:12:8       where the type of a value is defined
  cq lsp actions src/app.py:12                 changes that are offered; none is made
  cq lsp document-symbols src/app.py
  cq lsp workspace-symbols Store --lang python"""

    plane: Annotated[str, Option(", ".join(ABOUT), metavar="PLANE", argument=True)]
    target: Annotated[str, Option("a TARGET, a file, or words", metavar="TARGET", argument=True, place="target")] = ""
    languages: Annotated[
        tuple[str, ...],
        Option("whose servers are asked about everything", "lang", "LANG,…", parse=find_languages, group="files"),
    ] = ()
    page: Paged = Page(50)
    servers: AskServers = True

    def check(self) -> None:
        self.page.check()
        if self.plane not in ABOUT:
            hint = suggest(self.plane, ABOUT)
            raise UsageError(f"there is no plane {self.plane!r}", hint=hint)
        scope = ABOUT[self.plane][1]
        if scope == "all" and self.target:
            raise UsageError(f"{self.plane} takes no TARGET", hint="it is about the whole repository")
        if scope != "all" and not self.target.strip():
            what = "words" if scope == "words" else "a TARGET"
            raise UsageError(
                f"{self.plane} needs {what}", hint=f"e.g. cq lsp {self.plane} {_EXAMPLE.get(scope, 'main')}"
            )
        if self.languages and scope not in ("all", "words"):
            raise UsageError(f"{self.plane} takes no language", hint="its TARGET has one")


_EXAMPLE = {"file": "src/app.py", "words": "Store", "point": "src/app.py:12:8", "span": "src/app.py:12"}


@linked
def ask(snapshot: Snapshot, options: LspOptions) -> Answer:
    """In the server's own order, which is the order of the code or of its own judgement."""
    servers = snapshot.open_servers(on=options.servers)
    options.check()
    plane, scope = ABOUT[options.plane]
    rows: list[Definition] = []
    if scope in ("all", "words"):
        targets = list(_find_workspaces(servers, plane, options))
    else:
        rows, targets = _find_places(servers, scope, options.target)
        if not targets:
            return say_nothing(servers.files, "lsp", options.target)
    replies = servers.ask(plane, targets) if targets else []
    found = [
        finding
        for target, reply in zip(targets, replies, strict=True)
        for item in reply.items
        if not (plane == "implementation" and _is_at(item, target))  # some servers count it among its own
        if (finding := _describe(servers, options.plane, target, reply, item)) is not None
    ]
    shown, budget, cut = take(found, options.page, lambda finding: finding)
    title = options.plane.replace("-", " ").title()
    sections = (
        Section(title, "lsp", len(found), tuple(shown)),
        Section(
            "Asked", "sources", findings=tuple(dict.fromkeys(servers.describe(r, "items") for r in replies)), aside=True
        ),
    )
    about: Target | None = describe_target(rows) if rows else None
    return Answer(
        SCHEMA_VERSION,
        "lsp",
        Run(generation=servers.files.generation),
        {
            "query": f"{options.plane} {options.target}".strip(),
            "plane": options.plane,
            "items": len(found),
            "coverage": [
                {"provider": reply.provider, "state": reply.coverage.state, "reason": reply.coverage.reason}
                for reply in replies
            ],
            "lsp": msgspec.to_builtins(servers.telemetry()),
        },
        found=len(found),
        insight=Insight(
            about,
            degradation=Degradation(lsp=servers.status),
            budget=msgspec.structs.replace(budget, used=count_tokens(sections, options.page.measure) + 100),
        ),
        sections=tuple(section for section in sections if section.findings),
        degraded=servers.events(),
        truncated=tuple(cut),
    )


def _find_places(servers: Servers, scope: str, text: str) -> tuple[list[Definition], list[answers.Target]]:
    """What a TARGET means to a server: a file, a span or a point."""
    files = servers.files
    held = find_file(files, text)
    if held is not None:
        if scope == "point":
            raise UsageError(f"{text} is a file", hint=f"give a place in it: {text}:LINE:COL")
        return [], [answers.Target(servers.document(held))]
    if (point := find_byte(files, text)) is not None:
        file, offset = point
        document = servers.document(file, find_document(file, offset))
        if scope == "point":
            return [], [answers.Target(document, offset)]
        # Of a span without width servers say nothing: the name that stands there is meant.
        names = _NAME.finditer(file.text, file.lines.offset(file.lines.line(offset)), offset + _LONGEST_NAME)
        spans = [name.span() for name in names if name.start() <= offset < name.end()]
        return [], [answers.Target(document, *(spans[0] if spans else (offset, offset)))]
    line = _LINE.fullmatch(text) if scope == "span" else None
    held = files.get(line["path"]) if line is not None else None
    if line is not None and held is not None:
        number, count = int(line["line"]), len(held.lines) - held.text.endswith(b"\n")
        if not 1 <= number <= count:
            raise UsageError(f"{held.path} has no line {number}", hint=f"it has {count}")
        start = held.lines.offset(number)
        end = start + len(held.lines.text(number).rstrip(b"\r\n"))
        return [], [answers.Target(servers.document(held, find_document(held, start)), start, end)]
    rows = find_targets(files, text)
    if not rows:
        return [], []
    row = rows[0]
    document = servers.document(row.file, row.document)
    if scope == "file":
        return rows, [answers.Target(document)]
    if scope == "span":
        return rows, [answers.Target(document, row.symbol.start, row.symbol.end)]
    return rows, [servers.target(row)]


def _find_workspaces(servers: Servers, plane: str, options: LspOptions) -> Iterator[answers.Target]:
    """One file of each language that somebody answers for: a server is asked by way of a document."""
    if servers.registry is None:
        return
    seen: set[str] = set()
    for held in servers.files.candidates(None):
        language = held.language
        if language in seen or (options.languages and language not in options.languages):
            continue
        seen.add(language)
        able = any(language in each.languages and each.answers(plane) for each in servers.registry.providers)
        if able:
            yield answers.Target(servers.document(held), query=options.target)


def _is_at(item: Any, target: answers.Target) -> bool:
    return isinstance(item, Place) and item.path == target.document.path and item.start <= target.offset < item.end


def _describe(servers: Servers, word: str, target: answers.Target, reply: Reply[Any], item: Any) -> Finding | None:
    """None for a place in a file that is not as the index has it."""
    file = servers.files.get(target.document.path)
    assert file is not None
    here = file.locate(target.offset, target.offset)
    flags: tuple[str, ...] = ()
    kind = text = ""
    match item:
        case Place():
            spot = servers.find(item)
            if spot is None and item.path:
                return None
            name = item.external or item.path
            if spot is not None:
                row = spot.definition
                name = row.symbol.qualified_name if row is not None else spot.file.path
                kind = row.symbol.kind if row is not None and spot.named else ""
                here = spot.location
            message = f"{kind} {name}".strip() + ("" if spot is not None else " (outside)")
        case Outline():
            spot = servers.find(item.place)
            if spot is None:
                return None
            name, kind, here = item.name, item.kind, spot.location
            within = f" in {item.container}" if item.container else ""
            message = f"{'  ' * item.depth}{kind} {name}{within}" + (f": {item.detail}" if item.detail else "")
        case Action():
            name, kind = item.title, item.kind
            flags = tuple(filter(None, ("preferred" * item.preferred, "disabled" * bool(item.disabled))))
            edits = f"{item.edits} edit{'s' * (item.edits != 1)}" if item.edits else ""
            said = (kind, *flags, item.disabled, edits, f"runs {item.command}" if item.command else "")
            message = f"{name} ({', '.join(filter(None, said))})" if any(said) else name
        case Signature():
            name, text = item.label, item.doc[:_MOST_TEXT]
            flags = ("chosen",) if item.chosen else ()
            at = f" (at {item.parameters[item.active]})" if item.active >= 0 else ""
            message = f"{item.label}{at}"
        case Expansion():
            name, text, message = item.name, item.text[:_MOST_TEXT], f"{item.name}! becomes"
        case Runnable():
            spot = servers.find(item.place) if item.place is not None else None
            here = spot.location if spot is not None else here
            name, kind, flags = item.label, item.kind, item.args
            message = f"{item.label} ({' '.join((kind, *item.args))}); not run"
        case Diagnostic():
            spot = servers.find(item.place)
            if spot is None:
                return None
            name, kind, here = item.code, item.severity, spot.location
            message = f"{item.severity}: {item.message}"
        case Token():
            here = file.locate(item.start, item.end)
            name, kind, flags = file.text[item.start : item.end].decode("utf-8", "replace"), item.kind, item.modifiers
            message = f"{name}: {' '.join((kind, *flags))}"
        case Hint():
            here = file.locate(item.offset, item.offset)
            name, kind = item.label, item.kind
            message = f"{kind} {name}".strip()
        case _:
            return None
    details = ServerDetails(word, reply.source, name, kind, text, flags)
    return Finding(word, message, here, details=details)
