"""`cq doctor`: what is installed, what is wrong, and what to do about it."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from cq.indexing.doctor import INSTALLABLE, install_tool
from cq.surfaces.cli.options import add_place_options, open_workspace
from cq.surfaces.render import render_json
from cq.surfaces.render.status import render_checks

_EXAMPLES = """\
examples:
  cq doctor
  cq doctor --install typescript     the native TypeScript compiler, 10 MB, from npm; no node needed
  cq doctor --format json"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "--install",
        choices=INSTALLABLE,
        help="fetch a tool into the cache directory, of the one version and hash that cq knows",
    )
    parser.add_argument(
        "--trust", action="store_true", help="let the repository say how servers run: that can run its code"
    )
    parser.add_argument("--format", choices=("md", "json"), default="md", help="md (default) or json")
    add_place_options(parser)


def run(args: Namespace) -> int:
    """2 when something is broken that cq cannot do without."""
    if args.install:
        print(install_tool(args.install))
        return 0
    with open_workspace(args) as workspace:
        checks = workspace.doctor()
    sys.stdout.write(render_json(checks) if args.format == "json" else render_checks(checks))
    return 2 if any(check.state == "error" for check in checks) else 0
