"""How `cq read` shows its answer."""

from __future__ import annotations

import sys
from argparse import Namespace

from cq.model.answer import Answer
from cq.surfaces.cli.options import print_answer
from cq.surfaces.render.answer import render_source


def write(answer: Answer, args: Namespace) -> int:
    if args.format == "plain" and answer.found:
        sys.stdout.write(render_source(answer))
        return 0
    return print_answer(answer, args)
