"""Options of the questions that follow links."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from cq.features.relations import KINDS
from cq.model.errors import UsageError


def add_edge_options(parser: ArgumentParser, default: str = "") -> None:
    shown = default or "all"
    parser.add_argument("--edges", metavar="KIND,…", default=default, help=f"{', '.join(KINDS)} (default: {shown})")
    parser.add_argument(
        "--min-confidence", metavar="X", type=float, default=0.0, help="0 to 1; over 0.3 nothing is a guess"
    )


def read_edges(args: Namespace) -> tuple[tuple[str, ...], float]:
    from difflib import get_close_matches

    kinds = tuple(dict.fromkeys(word.strip() for word in args.edges.split(",") if word.strip())) or KINDS
    for kind in kinds:
        if kind not in KINDS:
            close = get_close_matches(kind, KINDS, n=1)
            hint = (f"did you mean {close[0]!r}? " if close else "") + f"kinds: {', '.join(KINDS)}"
            raise UsageError(f"there are no edges of kind {kind!r}", hint=hint)
    if not 0 <= args.min_confidence <= 1:
        raise UsageError(f"--min-confidence {args.min_confidence:g} is out of range", hint="it is 0 to 1")
    return kinds, args.min_confidence
