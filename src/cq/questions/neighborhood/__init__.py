"""Everything around one symbol: structure → links → providers → merge → artifacts and layout.

`find_neighborhood` is the whole way; each step is a module. Nothing is written here: what is too long for the answer is
handed back as artifacts.
"""

from __future__ import annotations

from cq.questions.neighborhood.bundle import Neighborhood, NeighborhoodOptions, Sources, find_neighborhood
from cq.questions.neighborhood.members import Found

__all__ = ["Found", "Neighborhood", "NeighborhoodOptions", "Sources", "find_neighborhood"]
