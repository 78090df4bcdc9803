"""What a name stands for: its signature or type, what it returns, its documentation. A language server knows types that
nobody wrote down; without one the index tells what is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from cq.answers.options import AskServers, OneTarget, Options, Paged
from cq.answers.page import Page, count_tokens, take
from cq.model.answer import (
    SCHEMA_VERSION,
    Answer,
    Degradation,
    Finding,
    HoverDetails,
    Insight,
    Run,
    Section,
    Truncation,
)
from cq.model.provider import Hover, Parameter, Reply
from cq.model.status import Degraded
from cq.providers.answers import Target
from cq.snapshot.relations import linked
from cq.snapshot.servers import Servers, find_definition, find_document
from cq.snapshot.shapes import KnownShapes
from cq.snapshot.target import Definition, describe_target, find_point, find_targets, say_nothing

if TYPE_CHECKING:
    from cq.snapshot.snapshot import Snapshot

MAX_TARGETS = 20  # asked about, however many share a name
MAX_DOC = 2000


class HoverOptions(Options, frozen=True):
    """`servers` False: the index alone."""

    examples: ClassVar[str] = """\
  cq hover QuerySet.get_or_create
  cq hover django/db/models/query.py:938:9     what stands there, a use as well
  cq hover QuerySet --no-lsp                   as it is written, without a language server"""

    target: OneTarget
    page: Paged = Page(5)
    servers: AskServers = True


@linked
def ask(snapshot: Snapshot, options: HoverOptions) -> Answer:
    """Of what stands at `path:line:col`, be it a use, or of every definition that fits."""
    relations, servers = snapshot.relations, snapshot.open_servers(on=options.servers)
    options.page.check()
    files, point = relations.files, find_point(relations.files, options.target)
    subjects: list[tuple[Target, Definition | None]] = []
    capped: list[Truncation] = []
    ref = relations.meanings.find_at(point[0].path, point[1]) if point else None
    own, is_named = find_definition(*point) if point else (None, False)
    # At a keyword nothing is named: then the definition around it is asked about.
    if point is not None and (ref is not None or is_named):
        held, offset = point
        document = servers.document(held, find_document(held, offset))
        meant = relations.definition(ref.resolved) if ref and ref.resolved else own if is_named else None
        subjects.append((Target(document, offset), meant))
    else:
        every = find_targets(files, options.target)
        subjects += [(servers.target(row), row) for row in every[:MAX_TARGETS]]
        if len(every) > MAX_TARGETS:
            capped.append(Truncation("targets", "definitions", MAX_TARGETS, len(every), len(every) - MAX_TARGETS))
    shapes = KnownShapes(relations)
    replies = servers.ask("hover", [target for target, _ in subjects]) if subjects else []
    found = [
        finding
        for (target, row), reply in zip(subjects, replies, strict=True)
        if (finding := _describe(servers, target, row, reply, _find_value(shapes, row))) is not None
    ]
    if not found:
        return say_nothing(files, "hover", options.target)
    shown, budget, cut = take(found, options.page, lambda finding: finding)
    sections = (
        Section("Contracts", "contracts", len(found), tuple(shown)),
        Section(
            "Asked",
            "sources",
            findings=tuple(dict.fromkeys(servers.describe(r, "contracts") for r in replies)),
            aside=True,
        ),
    )
    rows = [row for _, row in subjects if row is not None]
    return Answer(
        SCHEMA_VERSION,
        "hover",
        Run(generation=files.generation),
        {"query": options.target, "contracts": len(found), "lsp": msgspec.to_builtins(servers.telemetry())},
        found=len(found),
        insight=Insight(
            describe_target(rows) if rows else None,
            degradation=Degradation(lsp=servers.status),
            budget=msgspec.structs.replace(budget, used=count_tokens(sections, options.page.measure) + 100),
        ),
        sections=sections,
        degraded=_advise(replies) if servers.registry else (),
        truncated=(*capped, *cut),
    )


def _find_value(shapes: KnownShapes, row: Definition | None) -> str:
    """Of a member of an enum, also where it only counts on."""
    shape = shapes.find(row) if row is not None and row.symbol.kind == "enum_member" else None
    return shape.value if shape is not None else ""


def _describe(
    servers: Servers, target: Target, row: Definition | None, reply: Reply[Any], value: str
) -> Finding | None:
    said: Hover | None = reply.items[0] if reply.items else None
    symbol = row.symbol if row else None
    if said is None and symbol is None:
        return None
    held = servers.files.get(target.document.path)
    assert held is not None
    text, start, end = held.text, target.offset, target.offset
    while start > 0 and _is_word(text[start - 1]):  # a place may be inside a name
        start -= 1
    while end < len(text) and _is_word(text[end]):
        end += 1
    name = text[start:end].decode("utf-8", "replace")
    written = symbol.signature if symbol else ""
    details = HoverDetails(
        symbol.qualified_name if symbol else name,
        (symbol.kind if symbol else "") or (said.kind if said else ""),
        reply.source if said else "index",
        (said.signature if said else "") or written,
        tuple(_show(each) for each in said.parameters) if said else (),
        said.returns if said else "",
        said.type if said else "",
        ((said.doc if said else "") or (symbol.doc if symbol else ""))[:MAX_DOC],
        value,
    )
    plain = f"{details.name} = {value}" if value and not said else ""
    message = plain or details.type or details.signature or (said.text if said else "") or details.name
    return Finding("contract", message, held.locate(start, end), details=details)


def _is_word(byte: int) -> bool:
    return byte >= 0x80 or byte in b"_$" or chr(byte).isalnum()


def _show(parameter: Parameter) -> str:
    words = parameter.name + (f": {parameter.type}" if parameter.type else "")
    return words + (f" = {parameter.default}" if parameter.default else "")


def _advise(replies: list[Reply[Any]]) -> tuple[Degraded, ...]:
    """Once per reason, what would make the answer better."""
    reasons = dict.fromkeys(reply.coverage.reason for reply in replies if not reply.answered and not reply.provider)
    return tuple(Degraded("providers", "info", "no_server", f"as written; {reason}") for reason in reasons)
