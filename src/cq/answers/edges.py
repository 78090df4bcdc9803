"""The options of questions that follow links: which kinds of them, and how certain they must be."""

from __future__ import annotations

from typing import Annotated

from cq.answers.options import Option, split
from cq.snapshot.relations import KINDS


def read_edges(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(split(text))) or KINDS


def edges_option(default: str) -> Option:
    return Option(f"{', '.join(KINDS)} (default: {default})", metavar="KIND,…", parse=read_edges)


Edges = Annotated[tuple[str, ...], edges_option("all")]
Least = Annotated[float, Option("0 to 1; over 0.3 nothing is a guess", "min-confidence", "X")]
