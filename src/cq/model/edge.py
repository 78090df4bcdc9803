"""References between definitions, with their doubt kept: how each was resolved, and how sure that is."""

from __future__ import annotations

import msgspec

EDGE_KINDS = (
    "calls", "imports", "usages", "inherits", "overrides", "decorates", "type_uses", "instantiates", "raises",
)  # fmt: skip
STATUSES = ("unresolved", "resolved", "ambiguous", "external")
MAX_CANDIDATES = 25

# How a single link was found, the surest first; the number is how often it is right, measured against type
# checkers (bench part `graph`). `name` is never a single link: the receiver is unknown, only the name fits.
CONFIDENCE: dict[str, float] = {
    "scope": 0.99,
    "import": 0.99,
    "mro": 0.98,
    "constructor": 0.97,
    "annotation": 0.97,
    "attribute": 0.95,
    "inferred": 0.93,
    "element": 0.85,
    "parameter": 0.7,
    "name": 0.3,
    "": 0.0,
}
EVIDENCE = tuple(CONFIDENCE)


class Candidate(msgspec.Struct, frozen=True, gc=False, array_like=True, order=True):
    """A definition by its place: `symbol` is an index into the document's symbols, -1 the module itself."""

    path: str
    document: int
    symbol: int


class SymbolRef(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What a name may mean. One candidate and `resolved`: that one; else the likeliest first."""

    name: str
    status: str
    evidence: str = ""
    confidence: float = 0.0
    candidates: tuple[Candidate, ...] = ()
    module: str = ""  # where it comes from, when that is outside the repository
    omitted: int = 0  # candidates beyond the cap

    @property
    def resolved(self) -> Candidate | None:
        return self.candidates[0] if self.status == "resolved" else None


class Edge(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """`source` refers to what `ref` means, at `start..end` of its file."""

    kind: str
    source: Candidate
    start: int
    end: int
    ref: SymbolRef
