"""`cq init CLIENT`: what an agent's client must be told to use cq; `--write` puts it where the client looks."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

import msgspec

from cq.model.errors import UsageError
from cq.opening import NotRegularError, read_file
from cq.surfaces.cli.options import add_place_options, open_workspace

_EXAMPLES = """\
examples:
  cq init claude                   print the configuration and the guidance
  cq init cursor --write           add both to the files of this repository"""


class Client(msgspec.Struct, frozen=True):
    config: str  # where its servers are listed
    key: str  # under which key
    guidance: str  # the file its agent reads first
    entry: dict[str, Any]
    head: str = ""  # what a new guidance file begins with


_ENTRY: dict[str, Any] = {"command": "cq", "args": ["mcp"]}
CLIENTS = {
    "claude": Client(".mcp.json", "mcpServers", "CLAUDE.md", _ENTRY),
    "cursor": Client(
        ".cursor/mcp.json", "mcpServers", ".cursor/rules/cq.mdc", _ENTRY, "---\nalwaysApply: true\n---\n"
    ),
    "vscode": Client(".vscode/mcp.json", "servers", ".github/copilot-instructions.md", {"type": "stdio", **_ENTRY}),
}  # fmt: skip
_MARKS = ("<!-- cq: begin -->", "<!-- cq: end -->")
GUIDANCE = """\
## Finding code

This repository is indexed by cq (tools `codebase_*`, or the command `cq`). Prefer them to grep and to whole files:

- where a name is defined and used, or code about an idea: `codebase_search` (`cq search NAME`, `cq find 'words'`)
- everything around a symbol: `codebase_context` (`cq neighborhood NAME`); who calls it, with what: what=calls
  (`cq calls NAME`); what may break when it changes: what=impact (`cq impact NAME`)
- exact source of a symbol, outline of a file: `codebase_read` (`cq read Class.method`, `cq read path`)
- code by structure: `codebase_query` (`cq q 'entity=function has="await $X"'`)
- after an edit, what is wrong with it: `codebase_check` (`cq diagnostics path`)

Answers are fresh, ranked and within a token budget; what is left out is counted, `page` gets the rest.
"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("client", choices=tuple(CLIENTS), help="whose configuration")
    parser.add_argument("--write", action="store_true", help="add it to the files of the repository")
    add_place_options(parser)


def run(args: Namespace) -> int:
    client = CLIENTS[args.client]
    with open_workspace(args) as workspace:
        root = workspace.root
    files = {client.config: _add_server(root, client), client.guidance: _add_guidance(root, client)}
    for name, text in files.items():
        if not args.write:
            entry = json.dumps({client.key: {"cq": client.entry}}, indent=2) + "\n"
            print(f"# {name}\n{entry if name == client.config else GUIDANCE}")
        elif text == _read(root, name):
            print(f"{name}: up to date", file=sys.stderr)
        else:
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
            print(f"{name}: written", file=sys.stderr)
    return 0


def _add_server(root: Path, client: Client) -> str:
    """The client's file with our server in it, whatever else it holds."""
    text = _read(root, client.config)
    try:
        settings = json.loads(text) if text.strip() else {}
        servers = settings.setdefault(client.key, {})
        before = servers.get("cq")
        servers["cq"] = client.entry
    except (ValueError, AttributeError, TypeError, RecursionError):
        hint = f"put {json.dumps({'cq': client.entry})} under {client.key!r} yourself"
        raise UsageError(f"{client.config} is not JSON that can be changed", hint=hint) from None
    return text if before == client.entry else json.dumps(settings, indent=2, ensure_ascii=False) + "\n"


def _add_guidance(root: Path, client: Client) -> str:
    text = _read(root, client.guidance)
    ours = f"{_MARKS[0]}\n{GUIDANCE}{_MARKS[1]}\n"
    before, mark, rest = text.partition(_MARKS[0])
    if mark:
        return before + ours + rest.partition(f"{_MARKS[1]}\n")[2]
    return (f"{text.rstrip()}\n\n" if text.strip() else client.head) + ours


def _read(root: Path, name: str) -> str:
    """ "" where there is none; a link that leaves the repository is not followed."""
    path = root / name
    if not path.resolve().is_relative_to(root):
        raise UsageError(f"{name} leads out of the repository", hint="write it yourself")
    try:
        return read_file(path).decode()
    except FileNotFoundError:
        return ""
    except ValueError:
        raise UsageError(f"{name} is not UTF-8", hint="write it yourself") from None
    except NotRegularError:
        raise UsageError(f"{name} is not a regular file", hint="write it yourself") from None
