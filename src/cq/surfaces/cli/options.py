"""Options that every command over the index shares, and the workspace they ask for."""

from __future__ import annotations

import os
import shlex
import sys
import time
from argparse import Action, ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from cq.model.errors import UsageError
from cq.surfaces import cli

if TYPE_CHECKING:
    from argparse import _ArgumentGroup
    from collections.abc import Callable

    from cq.indexing.refresh import Progress
    from cq.model.answer import Answer
    from cq.workspace import Workspace


EVERYWHERE = "every command"


def find_group(parser: ArgumentParser, title: str) -> _ArgumentGroup:
    """The group of options that has this title, made where there is none."""
    for group in parser._action_groups:
        if group.title == title:
            return group
    return parser.add_argument_group(title)


class _Once(Action):
    """Of two places neither is meant more than the other. The MCP server names its root first: no word that follows,
    wherever it comes from, names another."""

    def __call__(self, parser: ArgumentParser, namespace: Namespace, values: Any, option_string: Any = None) -> None:
        if getattr(namespace, self.dest, None) is not None:
            raise UsageError(f"{option_string} is given twice", hint="give it once")
        setattr(namespace, self.dest, values)


def add_place_options(parser: ArgumentParser) -> None:
    everywhere = find_group(parser, EVERYWHERE)
    everywhere.add_argument(
        "--root", metavar="DIR", action=_Once, help="the directory that holds the code (default: the repository)"
    )
    everywhere.add_argument(
        "--index-dir", metavar="DIR", action=_Once, help="keep the index below DIR (default: the cache directory)"
    )


def add_file_options(parser: ArgumentParser) -> None:
    parser.add_argument("--include", metavar="GLOB", action="append", help="only these files, as in .gitignore")
    parser.add_argument("--exclude", metavar="GLOB", action="append", help="not these files; outranks --include")
    parser.add_argument("--max-file-bytes", metavar="N", type=int, help="leave out files over N bytes")
    parser.add_argument("--max-files", metavar="N", type=int, help="stop after N files")


def add_worker_options(parser: ArgumentParser) -> None:
    parser.add_argument("--jobs", metavar="N", type=int, help="worker processes (default: one per core)")
    parser.add_argument("--memory", metavar="MB", type=int, dest="memory_mb", help="hold back work beyond this much")


def add_progress_option(parser: ArgumentParser) -> None:
    from cq.surfaces.render.progress import MODES

    find_group(parser, EVERYWHERE).add_argument(
        "--progress", choices=MODES, default="auto", help="auto (default) draws a bar on a terminal"
    )


def add_freshness_options(parser: ArgumentParser) -> None:
    everywhere = find_group(parser, EVERYWHERE)
    everywhere.add_argument("--no-refresh", action="store_true", help="answer from the index as it lies")
    everywhere.add_argument(
        "--max-stale", metavar="SECONDS", type=read_seconds, default=0.0, help="trust a check this young"
    )


def add_revision_option(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--as-of",
        metavar="REF",
        help="ask the repository as it was: a commit, branch, tag, or path:DIR for another tree",
    )


def add_look_options(parser: ArgumentParser) -> None:
    """How an answer is shown to people."""
    shown = find_group(parser, "the answer")
    shown.add_argument(
        "--card", action="store_true", help="also show what is known beside the answer: risk, confidence, next commands"
    )
    shown.add_argument(
        "--hyperlink-format", metavar="FORMAT", help="where links of a terminal lead: vscode, kitty, file, none, …"
    )


def repeat_place(args: Namespace) -> tuple[str, ...]:
    """The options that say which tree is asked, quoted, for commands that are suggested."""
    given = [("--root", args.root), ("--index-dir", args.index_dir), ("--as-of", vars(args).get("as_of"))]
    words = [f"{flag} {shlex.quote(value)}" for flag, value in given if value]
    return (*words, *(["--no-refresh"] if args.no_refresh else []))


def print_answer(answer: Answer, args: Namespace, render: Callable[..., str] | None = None) -> int:
    """Writes the answer, for people by `render` where it has its own; the exit code is grep's, 3 where what was found
    is not allowed, 130 for an answer that Ctrl-C cut short."""
    from cq.answers.fit import fit_json
    from cq.questions.table import RUNNERS
    from cq.surfaces.render import render_jsonl
    from cq.surfaces.render.answer import find_rows, render_answer, render_arguments, render_plain

    form, argv, card = args.format, sys.argv[1:], bool(vars(args).get("card"))
    elapsed = _process_ms() if cli.asker else answer.run.elapsed_ms
    run = msgspec.structs.replace(answer.run, argv=tuple(argv), elapsed_ms=elapsed)
    answer = msgspec.structs.replace(answer, run=run)
    if form == "json":
        sys.stdout.write(render_jsonl([fit_json(answer)]))  # on one line: white space would be a third of it
    elif form == "jsonl":
        sys.stdout.write(render_jsonl(find_rows(answer)))
    elif form == "plain":
        sys.stdout.write(render_plain(answer))
    elif form in RUNNERS:
        sys.stdout.write(render_arguments(answer, form))
    elif form == "sarif":
        from cq.surfaces.render.sarif import render_sarif

        sys.stdout.write(render_sarif(answer))
    elif form in ("mermaid", "dot", "svg"):
        from cq.surfaces.render.picture import draw

        sys.stdout.write(draw(answer.edges, form))
    else:
        sys.stdout.write((render or render_answer)(answer, card=card))
    if form in ("mermaid", "dot", "svg") and not answer.found:
        for event in answer.degraded:
            print(f"cq: {event.message}", file=sys.stderr)
    if form in ("jsonl", "plain", *RUNNERS):
        # Rows have no room for what else there is to say.
        notes = [event.message for event in answer.degraded if event.severity != "info"]
        notes += [f"{cut.cap} capped at {cut.limit}: {cut.omitted} left out" for cut in answer.truncated]
        if not answer.found and answer.suggestions:
            notes.append(f"nothing found; near names: {', '.join(answer.suggestions)}")
        for note in notes:
            print(f"cq: {note}", file=sys.stderr)
    categories = {event.category for event in answer.degraded}
    if "interrupted" in categories:
        return 130
    if answer.summary.get("not_allowed"):  # found, and not allowed
        return 3
    # What was stopped has not found nothing.
    return 0 if answer.found else 2 if "timeout" in categories else 1


def _process_ms() -> float:
    """Since the process began, as its user sees it."""
    try:
        stat = Path(f"/proc/{cli.asker}/stat").read_text().rpartition(")")[2].split()
        started = int(stat[19]) / os.sysconf("SC_CLK_TCK")
        return round((time.clock_gettime(time.CLOCK_BOOTTIME) - started) * 1000, 1)
    except (OSError, ValueError, IndexError, AttributeError):
        return round((time.perf_counter() - cli.started) * 1000, 1)


def read_count(text: str) -> int:
    """For options: a number above 0."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise ArgumentTypeError(f"{text!r} is not a number above 0")
    return value


def open_workspace(args: Namespace, on_progress: Callable[[Progress], None] | None = None, **more: Any) -> Workspace:
    """What is not among the command's options keeps its default."""
    from cq.surfaces.render import terminal
    from cq.workspace import Workspace

    given = vars(args)
    if given.get("no_refresh") and given.get("max_stale"):
        raise UsageError("--no-refresh never looks, --max-stale says when to", hint="give one or the other")
    options: dict[str, Any] = {
        name: given.get(name) for name in ("max_file_bytes", "max_files", "jobs", "memory_mb") if name in given
    }
    if "max_files" in given:  # a question's own filters leave the index as it is
        options |= {name: tuple(given[name]) for name in ("include", "exclude") if given.get(name)}
    options["trusted"] = bool(given.get("trust"))
    options["auto_refresh"] = not given.get("no_refresh")
    options["disk_seconds"] = given.get("disk_seconds") or 0.0
    options["resident"] = cli.resident
    options["max_stale"] = given.get("max_stale") or 0.0
    as_of = "latest" if given.get("as_of") is None else given["as_of"]
    root, another = args.root, as_of.removeprefix("path:")
    if another != as_of:
        if root:
            raise UsageError("--root and --as-of path:DIR name two trees", hint="give one of them")
        root, as_of = another, "latest"
    workspace = Workspace.open(root, index_dir=args.index_dir, on_progress=on_progress, **(options | more))
    if as_of != "latest":
        workspace = workspace.at(as_of)
    terminal.root = workspace.root
    asked = given.get("hyperlink_format")
    terminal.link_format = None if asked is None else terminal.read_link_format(asked)
    return workspace


def note_servers(args: Namespace, workspace: Workspace) -> None:
    """Says why `--lsp` takes seconds, where it is so; asked before the workspace ends them."""
    if not vars(args).get("lsp"):
        return
    from cq.providers import sessions

    if not sessions.keep_warm and any(session.pid for session in sessions.find_sessions(workspace.root)):
        note = "language servers were started for this command alone (`cq daemon start` keeps them for the next)"
        print(f"cq: {note}", file=sys.stderr)


def describe_end() -> str:
    """Of a command that runs until it is told to end. Started with Ctrl-C ignored (`cmd &` in a script) it goes on
    ignoring it, as grep does."""
    import signal

    ignored = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    return "SIGTERM ends it: it was started with Ctrl-C ignored" if ignored else "Ctrl-C ends it"


def read_seconds(text: str) -> float:
    """For options: a number of seconds, 0 included."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value
