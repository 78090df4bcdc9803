"""`cq mcp`: answer an agent over the Model Context Protocol, on stdio or over HTTP."""

from __future__ import annotations

import os
import re
import sys
from argparse import ArgumentParser, Namespace
from importlib.util import find_spec
from pathlib import Path

from cq.model.errors import UsageError
from cq.opening import read_file
from cq.surfaces.cli.options import describe_end
from cq.surfaces.client import connect, find_socket, read_mode, spawn_daemon

_EXAMPLES = """\
examples:
  cq mcp                                          on stdio, as agents start it; see `cq init`
  cq mcp --root ~/work/app                        always this repository
  cq mcp --http 127.0.0.1:7878                    for programs of this machine, at /mcp
  cq mcp --http 0.0.0.0:7878 --token-file FILE    for others, who must bear the token"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("--root", metavar="DIR", help="the directory that holds the code (default: the client says)")
    parser.add_argument("--http", metavar="HOST:PORT", help="serve over HTTP instead of stdio")
    parser.add_argument("--token-file", metavar="FILE", help="clients must bear what FILE holds; needed off loopback")


def run(args: Namespace) -> int:
    if find_spec("mcp") is None:
        raise UsageError("cq mcp needs the package mcp", hint="pip install 'cq-code[mcp]'")
    root = str(Path(args.root).resolve()) if args.root else ""
    if root and not Path(root).is_dir():
        raise UsageError(f"--root {args.root} is not a directory")
    if args.token_file and not args.http:
        raise UsageError("--token-file means nothing without --http", hint="see `cq mcp --help`")
    address = _read_address(args.http) if args.http else None
    token = _read_token(args.token_file) if args.token_file else ""
    os.environ["NO_COLOR"] = "1"  # answers are for a program, whatever this one was started in
    _start_daemon()
    try:
        if address is None:
            from cq.surfaces.mcp.stdio import serve_stdio

            serve_stdio(root)
            return 0
        from cq.surfaces.mcp.http import serve_http
        from cq.surfaces.serving import LOOPBACK

        if address[0] not in LOOPBACK and not token:
            raise UsageError(f"{address[0]} can be reached by others", hint="give --token-file, or use 127.0.0.1")
        print(f"cq: answering at http://{args.http}/mcp; {describe_end()}", file=sys.stderr, flush=True)
        serve_http(root, *address, token)
    except KeyboardInterrupt:
        return 130
    return 0


def _start_daemon() -> None:
    """Questions of an agent come in rows: they are worth a warm process, unless the user wants none."""
    path = find_socket()
    if path and read_mode() != "off":
        link = connect(path)
        if link is None:
            spawn_daemon(path)
        else:
            link.close()


def _read_address(text: str) -> tuple[str, int]:
    found = re.fullmatch(r"(?:\[(?P<six>[0-9a-fA-F:]+)\]|(?P<host>[^:\s]+)):(?P<port>\d{1,5})", text)
    if not found or not 0 < int(found["port"]) < 65536:
        raise UsageError(f"--http {text} is no HOST:PORT", hint="e.g. --http 127.0.0.1:7878")
    return found["six"] or found["host"], int(found["port"])


def _read_token(name: str) -> str:
    try:
        token = read_file(name, 4096).decode().strip()
    except (OSError, ValueError) as error:
        raise UsageError(f"--token-file {name} cannot be read: {error}") from None
    if len(token) < 16 or not token.isascii() or not token.isprintable():
        raise UsageError(f"--token-file {name} holds no token", hint="at least 16 printable ASCII characters")
    return token
