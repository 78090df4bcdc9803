"""`cq watch`: keep the index fresh while files change."""

from __future__ import annotations

import signal
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from threading import Event

from cq.surfaces.cli.options import add_place_options, describe_end, open_workspace
from cq.surfaces.render import render_jsonl
from cq.surfaces.render.progress import ProgressLine
from cq.surfaces.render.status import render_update

_EXAMPLES = """\
examples:
  cq watch                         a line per update, until Ctrl-C
  cq watch --format jsonl          an object per update, for a program
  cq watch --debounce 1000         wait for a second of rest before every update"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "--debounce", metavar="MS", type=_milliseconds, default=200, help="rest before an update (default: 200)"
    )
    parser.add_argument("--format", choices=("plain", "jsonl"), default="plain", help="plain (default) or jsonl")
    add_place_options(parser)


def run(args: Namespace) -> int:
    """Ends with 0 when it is told to: that is how it is meant to end."""
    progress = ProgressLine()
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        with open_workspace(args, progress) as workspace:
            _tell(f"watching {workspace.root}; {describe_end()}")
            for report in workspace.watch(stop=Event(), debounce_ms=args.debounce, on_note=_tell):
                progress.clear()
                line = render_jsonl([report]) if args.format == "jsonl" else render_update(report) + "\n"
                sys.stdout.write(line)
                sys.stdout.flush()
    except KeyboardInterrupt:
        pass
    finally:
        progress.clear()
        signal.signal(signal.SIGTERM, before)
    return 0


def _interrupt(_: int, __: object) -> None:
    raise KeyboardInterrupt


def _tell(note: str) -> None:
    print(f"cq: {note}", file=sys.stderr, flush=True)


def _milliseconds(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 1 <= int(text[:9]) <= 60_000:
        raise ArgumentTypeError(f"{text!r} is not a number of milliseconds from 1 to 60000")
    return int(text)
