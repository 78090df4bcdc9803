"""How `cq q` shows its answer."""

from __future__ import annotations

import sys
from argparse import Namespace

from cq.model.answer import Answer
from cq.model.errors import UsageError
from cq.surfaces.cli.options import print_answer
from cq.surfaces.render.query import render_query


def write(answer: Answer, args: Namespace) -> int:
    """1 when nothing matches."""
    if answer.command == "search":
        if args.format in ("mermaid", "dot"):
            raise UsageError(
                f"--format {args.format} draws what expand= finds, and there is no query",
                hint="a query has parts like entity=function",
            )
        return print_answer(answer, args)
    if args.format == "json":
        return print_answer(answer, args)
    sys.stdout.write(render_query(answer, args.format))
    return 0 if answer.found else 1
