"""`cq facts PATH`: what one file says about itself."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from cq.model.errors import UsageError, suggest
from cq.surfaces.render.facts import FORMATS, SECTIONS, count_facts, render_facts
from cq.workspace import Workspace

_EXAMPLES = """\
examples:
  cq facts src/app.py                        a page to read
  cq facts src/app.py --only calls           every call, and nothing else
  cq facts src/app.py --format json          everything, for a program
  git show HEAD~1:app.py | cq facts - --lang python"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("path", metavar="PATH", help="a file, from the working directory or the root; - reads stdin")
    parser.add_argument("--format", choices=FORMATS, default="md", help="md (default), json, jsonl or plain")
    parser.add_argument("--root", metavar="DIR", help="the directory paths are named from (default: the repository)")
    parser.add_argument("--only", metavar="LIST", default="", help=f"some of it, by comma: {', '.join(SECTIONS)}")
    parser.add_argument("--lang", metavar="NAME", help="read it as this language, whatever its name says")


def run(args: Namespace) -> int:
    """1 when the file says nothing of what was asked for."""
    only = _parse_sections(args.only)
    text = None
    if args.path == "-":
        if not args.lang:
            raise UsageError("stdin has no name to tell its language by", hint="give --lang, for example --lang python")
        text = sys.stdin.buffer.read()
    with Workspace.open(args.root) as workspace:
        source, facts = workspace.facts(args.path, language=args.lang, text=text)
    sys.stdout.write(render_facts(source, facts, args.format, only))
    counts = count_facts(facts)
    return 0 if any(counts[section] for section in only or SECTIONS) else 1


def _parse_sections(text: str) -> list[str]:
    only = [word.strip() for word in text.split(",") if word.strip()]
    for word in only:
        if word not in SECTIONS:
            hint = suggest(word, SECTIONS, "see `cq facts --help`")
            raise UsageError(f"--only: {word!r} is not one of {', '.join(SECTIONS)}", hint=hint)
    return only
