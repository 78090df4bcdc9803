"""How `cq neighborhood` shows its answer."""

from __future__ import annotations

from argparse import Namespace

from cq.model.answer import Answer
from cq.model.errors import UsageError
from cq.surfaces.cli.options import print_answer


def write(answer: Answer, args: Namespace) -> int:
    from cq.surfaces.render.neighborhood import render_neighborhood

    for part in answer.parts:
        if part.summary["resolution_kind"] == "invalid":
            raise UsageError(part.degraded[0].message, hint="give Name, Class.method, path:Name or path:line[:col]")
    return print_answer(answer, args, render_neighborhood)
