"""`cq web`: the answers as pages in a browser on this machine."""

from __future__ import annotations

import os
import socket
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace

from cq.model.errors import UsageError
from cq.surfaces.cli.options import describe_end
from cq.workspace import Workspace

_EXAMPLES = """\
examples:
  cq web                    opens a browser; only that browser may see the pages
  cq web --port 8000        at this port, or at another where it is taken
  cq web --no-open          prints the address alone, for `ssh -L`"""
_HOST = "127.0.0.1"


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("--root", metavar="DIR", help="the directory that holds the code (default: the repository)")
    parser.add_argument("--port", metavar="N", type=_read_port, default=0, help="where to answer (default: any port)")
    parser.add_argument("--no-open", action="store_true", help="open no browser")


def run(args: Namespace) -> int:
    with Workspace.open(args.root) as workspace:
        workspace.config()
        root = os.fspath(workspace.root)
    os.environ["NO_COLOR"] = "1"  # answers are for pages
    listener = _listen(args.port)
    port = listener.getsockname()[1]
    from cq.surfaces.serving import serve
    from cq.surfaces.web.app import make_site
    from cq.surfaces.web.guard import OPEN, Keys

    keys = Keys()

    def tell(token: str, said: str = "for another browser:") -> None:
        print(f"cq: {said} http://{_HOST}:{port}{OPEN}?token={token}", file=sys.stderr, flush=True)

    if args.port and port != args.port:
        print(f"cq: port {args.port} is taken", file=sys.stderr)
    tell(keys.token, "open")
    print(f"cq: the pages of {root}; {describe_end()}", file=sys.stderr, flush=True)
    if not args.no_open:
        _open_browser(f"http://{_HOST}:{port}{OPEN}?token={keys.token}")
    try:
        serve(make_site(root, keys, port, tell), _HOST, port, listener=listener, grace=0)
    except KeyboardInterrupt:
        return 130
    finally:
        listener.close()
    return 0


def _listen(port: int) -> socket.socket:
    """At the port, or at any other where it is taken."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    for number in (port, 0) if port else (0,):
        try:
            listener.bind((_HOST, number))
            return listener
        except OSError:
            continue
    raise UsageError(f"no port of {_HOST} can be used", hint="is the loopback network there?")


def _open_browser(address: str) -> None:
    """A machine without one is none to complain about: the address stands above."""
    import webbrowser
    from threading import Thread

    Thread(target=webbrowser.open, args=(address,), daemon=True).start()


def _read_port(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or not 0 < int(text) < 65536:
        raise ArgumentTypeError(f"{text!r} is no port")
    return int(text)
