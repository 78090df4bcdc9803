"""Writes the generated parts of the docs; `--check` only says which are stale, and fails if one is.

The manual page `cq.1` is made as a whole. In the pages a generated part stands between `<!-- generated: NAME -->` and
`<!-- end -->`; the rest of a page is written by hand.
"""

from __future__ import annotations

import atexit
import io
import os
import re
import shlex
import shutil
import sys
import tempfile
from argparse import SUPPRESS, ArgumentParser
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import msgspec

from cq import __version__
from cq.query.vocabulary import ATTRIBUTES, METAVARIABLE, TOKENS
from cq.questions.run.steps import find_step, find_step_names
from cq.surfaces.cli import COMMANDS, find_command
from cq.surfaces.render import render_block, render_table
from cq.surfaces.render.languages import render_languages
from cq.workspace import Workspace

DOCS = Path(__file__).parent
_PART = re.compile(r"(<!-- generated: (.+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def main(argv: list[str]) -> int:
    stale: list[str] = []
    for page in sorted((*DOCS.glob("*.md"), DOCS / "cq.1")):
        text = page.read_text("utf-8") if page.exists() else ""
        fresh = _PART.sub(_replace, text) if page.suffix == ".md" else _render_manual()
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
    rows, examples = _read_options(command)
    table = render_table(["option", "meaning"], [[f"`{name}`", line] for name, line in rows])
    return f"{table}\n\n```text\n{_dedent(examples)}\n```\n"


def _read_options(command: str) -> tuple[list[tuple[str, str]], str]:
    """(option, meaning) as the command's own parser knows them, and its examples."""
    _, line = COMMANDS[command]
    parser = ArgumentParser(prog=f"cq {command}", description=line, add_help=False)
    find_command(command).configure(parser)
    rows: list[tuple[str, str]] = []
    for action in parser._actions:
        if action.help != SUPPRESS:
            value = action.metavar or ("|".join(map(str, action.choices)) if action.choices else "")
            name = " ".join(filter(None, [", ".join(action.option_strings), str(value)]))
            rows.append((name, str(action.help or "")))
    # The keys of a query are a table of their own in docs/query.md.
    return rows, (parser.epilog or "").removeprefix("examples:\n").partition("\n\nevery key")[0]


def _render_manual() -> str:
    """`man docs/cq.1`; no date, so that the same program has the same page."""
    lines = [
        f'.TH CQ 1 "" "cq {__version__}" "User Commands"',
        ".SH NAME",
        "cq \\- answers questions about code, with evidence",
        ".SH SYNOPSIS",
        ".B cq",
        "[\\-\\-color WHEN] [COMMAND [OPTION...]]",
        ".SH DESCRIPTION",
        "Reads a repository, keeps an index of it fresh, and answers where a name is, who calls it and what it says.",
        "Without a command it says what is here and what to ask.",
        ".SH COMMANDS",
    ]
    for command, (_, line) in COMMANDS.items():
        options, examples = _read_options(command)
        lines += [f".SS cq {command}", _escape(line)]
        for name, meaning in options:
            lines += [".TP", f".B {_escape(name)}", _escape(meaning)]
        lines += [".PP", ".nf", _escape(_dedent(examples)), ".fi"] if examples else []
    lines += [".SH EXIT STATUS", "0 found, 1 nothing found, 2 error, 130 interrupted."]
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    """For troff: a backslash, a hyphen that can be pasted, and no line that begins as a request."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\n".join(f"\\&{line}" if line.startswith((".", "'")) else line for line in text.splitlines())


def _dedent(text: str) -> str:
    return "\n".join(line.removeprefix("  ") for line in text.splitlines())


def _render_steps(_: str) -> str:
    """What a step of a plan needs and may have."""
    rows: list[list[str]] = []
    for name in find_step_names():
        form = find_step(name)
        fields = [field for field in msgspec.structs.fields(form) if field.name not in ("id", "limit")]
        needed, other = ([f"`{field.encode_name}`" for field in fields if field.required is on] for on in (True, False))
        rows.append([f"`{name}`", " ".join(needed), " ".join(other)])
    return render_table(["type", "needs", "may have"], rows) + "\n"


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


def _render_run(words: str) -> str:
    """What a command prints about the sources of the package `mcp`, whose version is pinned: the same on every run."""
    from cq.surfaces import cli

    argv = shlex.split(words)
    out = io.StringIO()
    before, os.environ["NO_COLOR"] = os.getcwd(), "1"  # noqa: PTH109
    os.chdir(_copy_sample())
    try:
        with redirect_stdout(out):
            sys.argv = ["cq", *argv]
            if cli.main(argv) != 0:
                raise SystemExit(f"docs: `cq {words}` finds nothing")
    finally:
        os.chdir(before)
    text = re.sub(r"; [\d,.]+ ms\b", "", out.getvalue()).replace(str(_copy_sample().parent), "~")
    text = re.sub(r"(?<=[:-])[0-9a-f]{16,32}\b", "…", text)  # names made from the content of answers
    return render_block([f"$ cq {words}", *text.rstrip("\n").split("\n")]) + "\n"


@cache
def _copy_sample() -> Path:
    """A repository of its own, with an index that goes with it."""
    spec = find_spec("mcp")
    if spec is None or spec.origin is None:
        raise SystemExit("docs: the package mcp is not installed")
    base = Path(tempfile.mkdtemp(prefix="cq-docs-"))
    atexit.register(shutil.rmtree, base, ignore_errors=True)
    os.environ["XDG_CACHE_HOME"] = str(base / "cache")
    shutil.copytree(Path(spec.origin).parent, base / "sdk" / "mcp", ignore=shutil.ignore_patterns("__pycache__"))
    (base / "sdk" / ".hg").mkdir()  # where the repository begins
    return base / "sdk"


GENERATORS: dict[str, Callable[[str], str]] = {
    "options": _render_options,
    "languages": _render_languages,
    "steps": _render_steps,
    "tokens": _render_tokens,
    "attributes": _render_attributes,
    "run": _render_run,
}


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
