"""How `cq read` shows its answer."""

from __future__ import annotations

import sys
from argparse import Namespace

from cq.model.answer import Answer
from cq.surfaces.cli.options import print_answer
from cq.surfaces.render.answer import render_source
from cq.surfaces.render.read import render_plain_rows


def write(answer: Answer, args: Namespace) -> int:
    if args.format == "plain" and answer.found:
        sys.stdout.write(
            render_plain_rows(answer) if vars(args).get("links") or vars(args).get("blame") else render_source(answer)
        )
        return 0
    return print_answer(answer, args)
