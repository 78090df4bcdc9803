"""What language servers add: members of slices, merged one by one with what the index knows, and deep signals.

A server confirms a member, or adds one; it never takes one away. What a complete answer does not confirm stays possible
and says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from cq.model import provider
from cq.model.answer import EVIDENCE
from cq.model.edge import Candidate
from cq.model.neighborhood import SliceKind
from cq.model.provider import Reply
from cq.providers.answers import Target
from cq.providers.session import BUDGETS
from cq.providers.sessions import describe_session
from cq.questions.neighborhood.members import Found, Member, Mention, Place, Subject, count_certain, rank
from cq.snapshot.relations import Relations
from cq.snapshot.servers import Servers, Spot
from cq.snapshot.target import Definition

# slice -> plane, kind of edge, whether it leads away from the subject
_PLANES: dict[SliceKind, tuple[str, str, bool]] = {
    "callers": ("incoming_calls", "calls", False),
    "callees": ("outgoing_calls", "calls", True),
    "references": ("references", "references", False),
    "implementations": ("implementation", "implements", False),
    "type_supertypes": ("supertypes", "extends", True),
    "type_subtypes": ("subtypes", "extends", False),
}
_SIGNALS = ("hover", "hints", "diagnostics", "tokens")
_TYPES = ("class", "type")


def ask_servers(
    relations: Relations,
    servers: Servers,
    subject: Subject,
    found: dict[SliceKind, Found],
    *,
    mode: str = "interactive",
) -> tuple[dict[SliceKind, Found], tuple[dict[str, Any], ...]]:
    """The slices with what servers say, and who said it. All planes are asked at once."""
    row = subject.row
    if row is None or servers.registry is None:
        return found, ()
    planes = [plane for kind, (plane, _, _) in _PLANES.items() if kind in found and _makes_sense(plane, row)]
    if "lsp_deep_signals" in found:
        planes += _SIGNALS
    replies = dict(zip(planes, _ask(servers, row, planes, mode), strict=True))
    merged = dict(found)
    for kind, (plane, edge, outward) in _PLANES.items():
        if plane in replies:
            merged[kind] = _merge(relations, servers, row, found[kind], replies[plane], edge, outward)
    if "lsp_deep_signals" in found:
        merged["lsp_deep_signals"] = _find_signals(row, [replies[plane] for plane in _SIGNALS])
    states: dict[str, list[Reply[Any]]] = {}
    for reply in replies.values():
        states.setdefault(reply.provider, []).append(reply)
    told = tuple(
        {
            "provider": name,
            "state": "ok" if all(reply.coverage.state == "complete" for reply in given) else "partial",
            "planes": sorted(reply.plane for reply in given if reply.answered),
            **describe_session(servers.registry.site.root, name),
        }
        for name, given in sorted(states.items())
        if name
    )
    return merged, told


def _makes_sense(plane: str, row: Definition) -> bool:
    """A value has no callers, a function no subtypes: to ask costs, and servers answer it with errors."""
    group = row.symbol.kind_group
    if plane in ("supertypes", "subtypes"):
        return group in _TYPES
    if plane in ("incoming_calls", "outgoing_calls"):
        return group in ("function", "method")
    return plane != "implementation" or group in (*_TYPES, "method")


def _ask(servers: Servers, row: Definition, planes: Sequence[str], mode: str) -> list[Reply[Any]]:
    registry = servers.registry
    if registry is None or not planes:
        return []
    point, document = servers.target(row), servers.document(row.file, row.document)
    span = Target(document, row.symbol.start, row.symbol.end)
    targets = [
        span if plane in ("hints", "tokens") else Target(document) if plane == "diagnostics" else point
        for plane in planes
    ]
    with ThreadPoolExecutor(len(planes)) as pool:
        asked = [
            pool.submit(registry.ask, plane, [target], BUDGETS[mode])
            for plane, target in zip(planes, targets, strict=True)
        ]
        replies = [future.result()[0] for future in asked]
    servers.replies += replies
    return replies


def _merge(
    relations: Relations,
    servers: Servers,
    subject: Definition,
    found: Found,
    reply: Reply[Any],
    edge: str,
    outward: bool,
) -> Found:
    """With what a server says, but for the subject itself: servers name it among its own implementations, and give
    code that no function holds to the name that is asked about. That it calls itself the index knows."""
    if not reply.answered:
        return found
    itself = subject.file.path, subject.symbol.name_start
    source = f"lsp.{reply.provider}"
    members = list(found.members)
    places = {_key(relations, member.place): at for at, member in enumerate(members)}
    outside: list[str] = list(found.metadata.get("external", ()))
    for item in reply.items:
        is_item = isinstance(item, provider.HierarchyItem)
        place = item.place if is_item else item
        if not place.path:
            if edge == "extends" and item.name not in outside:
                outside.append(item.name)
            continue
        spot = servers.find(place)
        if spot is None:
            continue
        own = _place(spot, place, edge)
        if edge != "references" and _key(relations, own) == itself:
            continue
        at = places.get(_key(relations, own))
        if at is None:
            sites = tuple((site.path, site.start) for site in item.sites if site.path) if is_item else ()
            places[_key(relations, own)] = len(members)
            more = {"role": "reference"} if edge == "references" else {}
            members.append(Member(own, edge, outward, "certain", EVIDENCE["resolved"], source, sites, more=more))
        else:
            known = members[at]
            members[at] = msgspec.structs.replace(
                known, certainty="certain", weight=max(known.weight, EVIDENCE["resolved"]),
                more={**known.more, "confirmed_by": [source]},
            )  # fmt: skip
    if reply.coverage.state == "complete":
        members = [
            msgspec.structs.replace(member, more={**member.more, "unconfirmed_by": [source]})
            if member.certainty == "possible"
            else member
            for member in members
        ]
    metadata: dict[str, Any] = dict(found.metadata)
    if "possible" in metadata:
        metadata |= count_certain(members)
    if outside:
        metadata["external"] = outside
    ranked = (
        sorted(members, key=lambda m: (m.certainty != "certain", m.depth))
        if edge == "calls" and outward
        else rank(members)
    )
    return msgspec.structs.replace(found, members=tuple(ranked), metadata=metadata)


def _place(spot: Spot, place: provider.Place, edge: str) -> Place:
    if edge == "references":
        name = spot.file.text[place.start : place.end].decode("utf-8", "replace")
        return Mention(spot.file.path, place.start, place.end, "reference", name, "reference")
    if spot.definition is None:
        return Candidate(spot.file.path, 0, "")
    return spot.definition


def _key(relations: Relations, place: Place) -> tuple[str, int]:
    if isinstance(place, Mention):
        return place.path, place.start
    row = place if isinstance(place, Definition) else relations.definition(place)
    if row is None:
        return (place.path if isinstance(place, Candidate) else ""), -1
    return row.file.path, row.symbol.name_start


def _find_signals(row: Definition, replies: Sequence[Reply[Any]]) -> Found:
    """Types, hints and diagnostics inside the definition, and what its tokens are."""
    path, symbol, source_text = row.file.path, row.symbol, row.file.text
    members: list[Member] = []
    named: list[Member] = []
    tokens: Counter[str] = Counter()
    for reply in replies:
        source = f"lsp.{reply.provider}"
        for item in reply.items:
            if isinstance(item, provider.Token):
                if symbol.start <= item.start < symbol.end:
                    tokens[item.kind] += 1
                    name = source_text[item.start : item.end].decode("utf-8", "replace")
                    label = " ".join((item.kind, *item.modifiers))
                    mention = Mention(path, item.start, item.end, "token", name, label, name)
                    named.append(Member(mention, "", certainty="certain", evidence=source))
                continue
            if isinstance(item, provider.Hover):
                text = " ".join((item.signature or item.type or item.text).split())
                mention = Mention(path, symbol.name_start, symbol.name_end, "type", symbol.name, item.kind, text)
            elif isinstance(item, provider.Hint):
                mention = Mention(path, item.offset, item.offset, "hint", item.label, item.kind, f"{item.label}")
            else:
                text = f"{item.severity}: {item.message}"
                mention = Mention(path, item.place.start, item.place.end, "diagnostic", item.code, item.severity, text)
            if symbol.start <= mention.start < symbol.end and mention.text:
                members.append(Member(mention, "describes", False, "certain", EVIDENCE["resolved"], source))
    counts = dict(sorted(tokens.items()))
    return Found((*members, *named), {"tokens": counts} if counts else {})
