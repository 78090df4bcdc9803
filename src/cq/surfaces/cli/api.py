"""`cq api`: exits with 3 where a call cannot fit and that is not allowed."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from cq.model.answer import Answer
from cq.surfaces.cli.options import print_answer

FORBIDDEN = 3  # found, and not allowed; 2 stays "could not answer"


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--fail-on-warn", action="store_true", help="exit with 3 where a call cannot fit")


def write(answer: Answer, args: Namespace) -> int:
    status = print_answer(answer, args)
    return FORBIDDEN if args.fail_on_warn and answer.summary.get("warnings") else status
