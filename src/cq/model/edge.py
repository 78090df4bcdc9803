"""References between definitions, with their doubt kept: how each was resolved, and how sure that is."""

from __future__ import annotations

import re
from types import TracebackType
from typing import Literal

import msgspec

EDGE_KINDS = (
    "calls", "imports", "usages", "inherits", "overrides", "decorates", "type_uses", "instantiates", "raises",
)  # fmt: skip
# Of a reference: one definition is meant; several may be, or only the name fits; it is outside the repository.
Certainty = Literal["certain", "possible", "external"]
STATUSES = ("unresolved", "resolved", "ambiguous", "external")
MAX_CANDIDATES = 25

# How a single link was found, the surest first; the number is how often it is right: measured (bench part `graph`)
# on Django, Sphinx and SQLAlchemy where pyrefly and ty agree. Behind it, how many links were looked at and how many
# were wrong; nothing is believed more than .99. `parameter` is a single link only where no other class has a method of
# that name; `element` and `name` never are: `name` means that the receiver is unknown and only the name fits.
CONFIDENCE: dict[str, float] = {
    "scope": 0.99,  # 852, 0
    "import": 0.99,  # 2,688, 0
    "mro": 0.99,  # 1,733, 0
    "constructor": 0.99,  # 604, 0
    "annotation": 0.99,  # 1,521, 0
    "attribute": 0.99,  # 2,332, 20: all but one of a class whose attribute is set to another
    "inferred": 0.94,  # 16, 0
    "passed": 0.94,  # by the only calls there are
    "element": 0.85,
    "parameter": 0.7,
    "name": 0.3,
    "": 0.0,
    # Not one of the steps above: an import of what is no function, class or module. The module that binds it is meant.
    "value": 0.99,
}
EVIDENCE = tuple(CONFIDENCE)


class Candidate(msgspec.Struct, frozen=True, gc=False, array_like=True, order=True):
    """A definition by its place. `name` is dotted, `f#2` for the second of that name, "" for the module itself: it
    stays when lines move, which a symbol's number does not."""

    path: str
    document: int
    name: str

    @property
    def shown_name(self) -> str:
        """As people write it: which of several of that name is for links to know."""
        return show_name(self.name)


def show_name(name: str) -> str:
    return re.sub(r"#\d+", "", name) if "#" in name else name


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

    @property
    def certainty(self) -> Certainty:
        return "certain" if self.status == "resolved" else "external" if self.status == "external" else "possible"

    @property
    def count(self) -> int:
        """How many definitions it may mean."""
        return len(self.candidates) + self.omitted


class Edge(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """`source` refers to what `ref` means. `call` is the number of the call in its document that does, else -1."""

    kind: str
    source: Candidate
    ref: SymbolRef
    call: int = -1


# Of a call: how many arguments it passes by position, -1 when that is open, and the names of the others.
Shape = tuple[int, tuple[str, ...]]


class Links(msgspec.Struct, frozen=True, array_like=True):
    """All references of one document. Numbers are indices into `refs`, where every meaning stands once; names are those
    of Candidate. Calls with evidence `name` have no candidates here: methods of that name are looked up by who asks."""

    refs: tuple[SymbolRef, ...]
    calls: tuple[int, ...]  # of every call, in order
    scopes: tuple[str, ...]  # of every call: the definition whose code holds it
    constructors: dict[int, int]  # call -> the constructor it runs, beside the class
    callbacks: dict[int, int]  # call -> the functions that it hands to one that calls them
    imports: tuple[tuple[str, int], ...]  # name that is bound, what it means
    inherits: tuple[tuple[str, int], ...]  # class, a base
    overrides: tuple[tuple[str, int], ...]  # method, the one it takes the place of
    type_uses: tuple[tuple[str, int], ...]  # definition, a type in its annotations
    raises: tuple[tuple[str, int], ...]  # definition, what it raises
    decorators: tuple[int, ...]  # the calls that are decorators
    shapes: dict[int, Shape]  # call with evidence `name` -> what it passes
    lambdas: dict[int, str]  # call in a function without a name, which is a part of `scopes` -> that function
    # Call -> what runs beside what the call means: a wrapper, a method of a class below. `replaced`: it runs instead.
    runs: dict[int, int]
    replaced: tuple[int, ...]
    implied: tuple[tuple[str, int], ...]  # definition, a method that an operator, a loop, … in its code runs


class Mistake(msgspec.Struct, frozen=True, gc=False, array_like=True, order=True):
    """Where code of ours failed while a file was linked, and what the links of that file lack for it."""

    error: str  # the kind of exception
    place: str  # cq.graph.members:120
    homes: tuple[int, ...] = ()  # the parts of the file (see Unit.home) that depend on the value; none: all is lacking


def find_mistake(error: Exception) -> Mistake:
    """By where it was made; of endless recursion, by where that began: its end depends on what was asked before."""
    places: list[str] = []
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__", ""))
        places += [f"{module}:{trace.tb_lineno}"] if module.startswith("cq.") else []
        trace = trace.tb_next
    at = min(1, len(places) - 1) if isinstance(error, RecursionError) else -1  # the first is who caught it
    return Mistake(type(error).__name__, places[at])


# The fields of Links that are (definition, reference) pairs; each is called what its edges are.
RELATIONS = tuple(name for name in Links.__struct_fields__ if name in EDGE_KINDS and name != "calls")
