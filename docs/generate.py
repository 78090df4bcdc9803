"""Writes the generated parts of the docs; `--check` only says which are stale, and fails if one is.

A generated part stands between `<!-- generated: NAME -->` and `<!-- end -->`; the rest of a page is written by hand.
"""

from __future__ import annotations

import re
import sys
from argparse import SUPPRESS, ArgumentParser
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from cq.query.vocabulary import ATTRIBUTES, METAVARIABLE, TOKENS
from cq.surfaces.cli import COMMANDS
from cq.surfaces.render import render_table
from cq.surfaces.render.languages import render_languages
from cq.workspace import Workspace

DOCS = Path(__file__).parent
_PART = re.compile(r"(<!-- generated: (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def main(argv: list[str]) -> int:
    stale: list[str] = []
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text("utf-8")
        fresh = _PART.sub(_replace, text)
        if fresh != text:
            stale.append(f"docs/{page.name}")
            if "--check" not in argv:
                page.write_text(fresh, "utf-8")
    if not stale:
        return 0
    if "--check" in argv:
        print(f"stale: {', '.join(stale)}: run make docs", file=sys.stderr)
        return 1
    print(f"written: {', '.join(stale)}")
    return 0


def _replace(part: re.Match[str]) -> str:
    kind, _, argument = part[2].partition(" ")
    if kind not in GENERATORS:
        raise SystemExit(f"docs: no generated part {part[2]!r}; there are: {', '.join(GENERATORS)}")
    return f"{part[1]}\n{GENERATORS[kind](argument)}\n{part[3]}"


def _render_options(command: str) -> str:
    """The options of a command as its own parser knows them."""
    module, line = COMMANDS[command]
    parser = ArgumentParser(prog=f"cq {command}", description=line, add_help=False)
    import_module(module).configure(parser)
    rows: list[list[str]] = []
    for action in parser._actions:
        value = action.metavar or ("|".join(map(str, action.choices)) if action.choices else "")
        name = " ".join(filter(None, [", ".join(action.option_strings), str(value)]))
        rows.append([f"`{name}`", "" if action.help in (None, SUPPRESS) else str(action.help)])
    examples = (parser.epilog or "").removeprefix("examples:\n")
    return f"{render_table(['option', 'meaning'], rows)}\n\n```text\n{_dedent(examples)}\n```\n"


def _dedent(text: str) -> str:
    return "\n".join(line.removeprefix("  ") for line in text.splitlines())


def _render_languages(_: str) -> str:
    return render_languages(Workspace(DOCS).languages())


def _render_tokens(_: str) -> str:
    rows: list[list[str]] = []
    for key, rule in [*TOKENS.items(), ("$X", METAVARIABLE)]:
        modifiers = "".join(f" `.{name}=`" for name in rule.modifiers)
        rows.append([f"`{key}=`{modifiers}", rule.meaning, f"`{rule.example}`"])
    return render_table(["token", "meaning", "example"], rows) + "\n"


def _render_attributes(_: str) -> str:
    rows = [
        [f"`{name}`", meaning, ", ".join(entities) if entities is not None else "every match"]
        for name, (_, entities, meaning) in ATTRIBUTES.items()
    ]
    return render_table(["attribute", "meaning", "of"], rows) + "\n"


GENERATORS: dict[str, Callable[[str], str]] = {
    "options": _render_options,
    "languages": _render_languages,
    "tokens": _render_tokens,
    "attributes": _render_attributes,
}


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
