"""`cq artifact list|get ID`: what recent answers were too short for."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from cq.model.errors import UsageError
from cq.surfaces.cli.options import add_place_options, open_workspace, read_count
from cq.surfaces.render import render_json, render_table

_EXAMPLES = """\
examples:
  cq artifact list                               the newest 200
  cq artifact get enrichment_telemetry-1f2e…     one, as JSON
  cq artifact get slice_callers-c31a… --page 2   the second fifty members of a slice"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("what", choices=("list", "get"), help="list them, or get one")
    parser.add_argument("id", metavar="ID", nargs="?", help="as an answer names it")
    parser.add_argument("--page", metavar="N", type=read_count, default=0, help="of a list: one page of it")
    parser.add_argument("--limit", metavar="N", type=read_count, default=50, help="rows of a page (default: 50)")
    parser.add_argument("--format", choices=("md", "json"), default="md", help="of the list: md (default) or json")
    add_place_options(parser)


def run(args: Namespace) -> int:
    name: str | None = args.id
    if args.what == "get" and name is None:
        raise UsageError("which artifact?", hint="`cq artifact list` lists them")
    if args.what == "list" and name is not None:
        raise UsageError(f"unexpected argument {name!r}", hint=f"`cq artifact get {name}` shows it")
    if args.what == "list" and (args.page or args.limit != 50):
        raise UsageError("--page and --limit are for `cq artifact get`", hint="`cq artifact list` shows all there are")
    with open_workspace(args) as workspace:
        if name is not None:
            sys.stdout.write(render_json(workspace.artifact(name, page=args.page, limit=args.limit)))
            return 0
        rows = workspace.artifacts()
    if args.format == "json":
        sys.stdout.write(render_json(rows))
    elif rows:
        table = [[row.id, row.command, f"{row.bytes:,}"] for row in rows]
        sys.stdout.write(render_table(["id", "of", "bytes"], table) + "\n")
    else:
        sys.stdout.write("no answer has left anything yet\n")
    return 0 if rows else 1
