"""What a slice is made of: members with the evidence that puts them there; and nodes, made only for what is kept."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

import msgspec
from xxhash import xxh3_64_hexdigest

from cq.model.edge import Candidate, Certainty
from cq.model.neighborhood import BundleEdge, Node, SliceKind
from cq.model.status import Degraded
from cq.snapshot.target import ROLE_ORDER, Definition, module_name
from cq.source.role import find_role

if TYPE_CHECKING:
    from cq.model.answer import Truncation
    from cq.model.facts import Symbol
    from cq.snapshot.files import HeldFile
    from cq.snapshot.relations import Relations

MAX_MEMBERS = 5000  # of a slice that are told apart; the rest is counted
MAX_SITES = 5  # of an edge
LOCAL = frozenset({"parameter", "type_parameter"})
_MAX_TEXT = 200


class Mention(msgspec.Struct, frozen=True):
    """A place in a file that is no definition: a use of a name, an import, what a server says about a span."""

    path: str
    start: int
    end: int
    kind: str
    name: str
    label: str = ""
    text: str = ""  # "" is the line it stands on


Place = Candidate | Definition | Mention


class Member(msgspec.Struct, frozen=True):
    """`edge_kind` "" is no link: two that stand side by side have none. `outward`: the subject refers to it; else it
    refers to the subject. `via` is the node it was reached through, None for the subject itself. `sites` are (path,
    offset) of what makes the link."""

    place: Place
    edge_kind: str
    outward: bool = False
    certainty: Certainty = "certain"
    weight: float = 1.0
    evidence: str = "syntax"
    sites: tuple[tuple[str, int], ...] = ()
    depth: int = 1
    via: Candidate | None = None
    more: dict[str, Any] = {}


def count_certain(members: Collection[Member]) -> dict[str, Any]:
    """Nothing to say of none."""
    certain = sum(member.certainty == "certain" for member in members)
    return {"certain": certain, "possible": len(members) - certain} if members else {}


class Found(msgspec.Struct, frozen=True):
    """The members of one slice, best first, and what there is to say about it."""

    members: tuple[Member, ...] = ()
    metadata: dict[str, Any] = {}
    truncated: tuple[Truncation, ...] = ()
    events: tuple[Degraded, ...] = ()
    total: int = 0  # where more were counted than are members


class WholeSlice(msgspec.Struct, frozen=True):
    """A slice with all its nodes."""

    kind: SliceKind
    found: Found
    nodes: tuple[Node, ...]
    edges: tuple[BundleEdge, ...]

    @property
    def total(self) -> int:
        return max(len(self.nodes), self.found.total)


class Subject(msgspec.Struct, frozen=True):
    """What the neighborhood is of: a definition, or with `row` None a module. `place` is what links know it by; None
    for a value, which they do not follow."""

    file: HeldFile
    document: int
    row: Definition | None
    place: Candidate | None

    @property
    def symbol(self) -> Symbol | None:
        return self.row.symbol if self.row is not None else None

    @property
    def candidate(self) -> Candidate:
        """As a reference by scope would name it."""
        return self.place or Candidate(self.file.path, self.document, self.symbol.qualified_name if self.symbol else "")


class Nodes:
    """Makes nodes, each once."""

    def __init__(self, relations: Relations, subject: Subject) -> None:
        self.relations = relations
        self.subject = subject
        self._known: dict[str, Node] = {}

    @property
    def subject_node(self) -> Node:
        row = self.subject.row
        found = self.make(row if row is not None else Candidate(self.subject.file.path, self.subject.document, ""))
        assert found is not None  # it was resolved in this very index
        return found

    def id(self, place: Place) -> str:
        """A TARGET: the name of what links know, the place of anything else."""
        if isinstance(place, Definition):
            known = self.relations.find_place(place)
            if known is None:
                return self._at(place.file, place.symbol.name_start)
            place = known
        if isinstance(place, Mention):
            held = self.relations.hold(place.path)
            return self._at(held, place.start) if held is not None else place.path
        row = self.relations.definition(place) if place.document else None
        if row is not None:  # a document inside a file has no name that a TARGET could give it
            return self._at(row.file, row.symbol.name_start)
        return self.relations.label(place)

    def make(self, place: Place) -> Node | None:
        """None for what is gone from the index."""
        node_id = self.id(place)
        if isinstance(place, Mention):
            node_id = f"{node_id}:{place.kind}" if place.kind != "reference" else node_id
        if node_id not in self._known:
            node = self._make(place, node_id)
            if node is None:
                return None
            self._known[node_id] = node
        return self._known[node_id]

    def edge(self, kind: SliceKind, member: Member, node: Node) -> BundleEdge:
        near = self.subject_node.node_id if member.via is None else self.id(member.via)
        source, target = (near, node.node_id) if member.outward else (node.node_id, near)
        metadata: dict[str, Any] = {"status": member.certainty} if member.certainty != "certain" else {}
        if member.sites:
            metadata["sites"] = [self.show_site(*site) for site in member.sites[:MAX_SITES]]
        if len(member.sites) > MAX_SITES:
            metadata["site_count"] = len(member.sites)
        if member.depth > 1:
            metadata["depth"] = member.depth
        digest = xxh3_64_hexdigest(f"{source}->{target}".encode("utf-8", "surrogatepass"))
        return BundleEdge(
            f"{kind}:{digest}", source, target, member.edge_kind, member.weight, member.evidence,
            metadata | member.more,
        )  # fmt: skip

    def show_site(self, path: str, offset: int) -> str:
        held = self.relations.hold(path)
        return f"{path}:{held.lines.line(offset)}" if held is not None else path

    def _at(self, held: HeldFile, offset: int) -> str:
        line, col = held.lines.position(offset)
        return f"{held.path}:{line}:{col}"

    def _make(self, place: Place, node_id: str) -> Node | None:
        path = place.file.path if isinstance(place, Definition) else place.path
        held = self.relations.hold(path)
        if held is None:
            return None
        if isinstance(place, Mention):
            line, col = held.lines.position(place.start)
            text = place.text or held.line_at(place.start).strip()
            return Node(
                node_id,
                place.kind,
                place.name,
                place.label,
                path,
                line,
                col,
                (place.start, place.end),
                text[:_MAX_TEXT],
            )
        row = place if isinstance(place, Definition) else self.relations.definition(place)
        if row is None:
            if isinstance(place, Candidate) and place.name:
                return None
            name = module_name(path)
            return Node(node_id, "module", name, "", path, 1, 1, (0, len(held.text)), f"module {name}", name)
        symbol = row.symbol
        line, col = held.lines.position(symbol.name_start)
        text = symbol.signature or held.line_at(symbol.name_start).strip()
        return Node(
            node_id, symbol.kind, symbol.name, "", path, line, col, (symbol.start, symbol.end),
            " ".join(text.split())[:_MAX_TEXT], symbol.qualified_name,
        )  # fmt: skip


def find_path(place: Place) -> str:
    return place.file.path if isinstance(place, Definition) else place.path


def rank(members: Iterable[Member]) -> list[Member]:
    """The certain first, then the near, sources before tests, the surest, then by place."""

    def order(member: Member) -> tuple[Any, ...]:
        place = member.place
        at = place.start if isinstance(place, Mention) else place.symbol.start if isinstance(place, Definition) else 0
        name = place.name if isinstance(place, Candidate) else ""
        path = find_path(place)
        role = ROLE_ORDER.get(find_role(path), 2)
        return member.certainty != "certain", member.depth, role, -member.weight, path, at, name

    return sorted(members, key=order)
