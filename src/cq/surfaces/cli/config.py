"""`cq config get|set`: the user's own settings. Those of a repository are in its `cq.toml`; `cq status --config`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from difflib import get_close_matches
from pathlib import Path

from cq.model.errors import UsageError
from cq.store.lock import write_file
from cq.surfaces.client import MODES, find_settings, find_socket, read_mode

_EXAMPLES = """\
examples:
  cq config get daemon
  cq config set daemon auto        start the daemon whenever a command finds none
  cq config set daemon manual      use one that runs (the default)
  cq config set daemon off         never use one"""

SETTINGS = {"daemon": MODES}


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("what", choices=("get", "set"), help="show a setting, or change it")
    parser.add_argument("name", choices=tuple(SETTINGS), help="which setting")
    parser.add_argument("value", metavar="VALUE", nargs="?", help=f"for daemon: {', '.join(MODES)}")


def run(args: Namespace) -> int:
    value: str | None = args.value
    if args.what == "get":
        if value is not None:
            raise UsageError(f"unexpected argument {value!r}", hint=f"`cq config set {args.name} {value}` changes it")
        print(read_mode())
        return 0
    known = SETTINGS[args.name]
    if value not in known:
        close = get_close_matches(value or "", known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"e.g. cq config set {args.name} {known[0]}"
        raise UsageError(f"{args.name} is one of {', '.join(known)}", hint=hint)
    path = Path(find_settings())
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_file(path, [f'# written by `cq config`\n{args.name} = "{value}"\n'.encode()])
    idle = "" if find_socket() else "; there is no daemon on this system, so it changes nothing here"
    print(f"{args.name} is {value}{idle}", file=sys.stderr)
    return 0
