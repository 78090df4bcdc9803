"""Options of the questions that follow links."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from cq.snapshot.relations import KINDS, check_walk


def add_edge_options(parser: ArgumentParser, default: str = "") -> None:
    shown = default or "all"
    parser.add_argument("--edges", metavar="KIND,…", default=default, help=f"{', '.join(KINDS)} (default: {shown})")
    parser.add_argument(
        "--min-confidence", metavar="X", type=float, default=0.0, help="0 to 1; over 0.3 nothing is a guess"
    )


def read_edges(args: Namespace) -> tuple[tuple[str, ...], float]:
    kinds = tuple(dict.fromkeys(word.strip() for word in args.edges.split(",") if word.strip())) or KINDS
    check_walk(1, kinds, args.min_confidence)  # a slip of the pen is told before the index is made
    return kinds, args.min_confidence
