"""What a reference means and a call runs, as the resolver answers it."""

from __future__ import annotations

from typing import NamedTuple

from cq.graph.engine.view import View
from cq.graph.values import NAME
from cq.model.edge import EVIDENCE

Place = tuple[View, int]  # a document and a symbol in it, -1 for the module


class Meaning(NamedTuple):
    """A reference inside the linker; SymbolRef is the same for everyone else."""

    status: str
    evidence: str
    places: tuple[Place, ...] = ()  # the likeliest first, at most MAX_CANDIDATES
    module: str = ""
    omitted: int = 0


class Run(NamedTuple):
    """What a call runs beside what it means."""

    meaning: Meaning
    is_instead: bool  # what it means does not run
    is_family: bool  # methods of several classes, of which the receiver may be any


UNRESOLVED = Meaning("unresolved", "")
BY_NAME = Meaning("ambiguous", EVIDENCE[NAME])
