"""`cq architecture`: exits with 3 where a rule is broken and that is not allowed, and keeps the baseline as short as
what it lists."""

from __future__ import annotations

import json
import os
from argparse import ArgumentParser, Namespace
from pathlib import Path

from cq.model.answer import Answer
from cq.model.errors import UsageError
from cq.opening import read_file
from cq.surfaces.cli.options import print_answer

FORBIDDEN = 3  # found, and not allowed; 2 stays "could not answer"


def configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--fail-on-violation", action="store_true", help="exit with 3 where a rule of severity error is broken anew"
    )


def write(answer: Answer, args: Namespace) -> int:
    status = print_answer(answer, args)
    if args.baseline:
        _keep(answer, Path(args.baseline))
    return FORBIDDEN if args.fail_on_violation and answer.summary["failing"] else status


def _keep(answer: Answer, file: Path) -> None:
    """Writes a baseline that is not there yet, and takes out of one what is mended."""
    here: list[str] = answer.summary["fingerprints"]
    try:
        old = set(json.loads(read_file(file))["fingerprints"]) if file.exists() else None
        kept = here if old is None else sorted(old & set(here))
        if old is None or set(kept) != old:
            made = file.with_name(f"{file.name}.new")
            made.write_text(json.dumps({"fingerprints": kept}, indent=1) + "\n", "utf-8")
            os.replace(made, file)  # noqa: PTH105
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"--baseline {file} cannot be written: {error}", hint="give a file that may be written"
        ) from None
