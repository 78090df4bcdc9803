"""Options that every command over the index shares, and the workspace they ask for."""

from __future__ import annotations

import os
import shlex
import sys
import time
from argparse import SUPPRESS, Action, ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from cq.model.errors import UsageError
from cq.surfaces import cli

if TYPE_CHECKING:
    from collections.abc import Callable

    from cq.answers.page import Page
    from cq.indexing.refresh import Progress
    from cq.model.answer import Answer
    from cq.workspace import Workspace


class _Once(Action):
    """Of two places neither is meant more than the other. The MCP server names its root first: no word that follows,
    wherever it comes from, names another."""

    def __call__(self, parser: ArgumentParser, namespace: Namespace, values: Any, option_string: Any = None) -> None:
        if getattr(namespace, self.dest, None) is not None:
            raise UsageError(f"{option_string} is given twice", hint="give it once")
        setattr(namespace, self.dest, values)


def add_place_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--root", metavar="DIR", action=_Once, help="the directory that holds the code (default: the repository)"
    )
    parser.add_argument(
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


def add_freshness_options(parser: ArgumentParser) -> None:
    parser.add_argument("--no-refresh", action="store_true", help="answer from the index as it lies")
    parser.add_argument("--disk-seconds", type=read_seconds, help=SUPPRESS)  # the MCP server does not wait for all
    parser.add_argument(
        "--max-stale", metavar="SECONDS", type=read_seconds, default=0.0, help="trust a check this young"
    )


def add_server_options(parser: ArgumentParser, *, default: bool = True) -> None:
    """`default`: whether language servers are asked without being told to; else only where one runs already."""
    group = parser.add_mutually_exclusive_group()
    if not default:
        group.add_argument(
            "--lsp", action="store_true", default=None, help="ask language servers, start them if need be"
        )
    group.add_argument(
        "--no-lsp", action="store_false", dest="lsp", default=None, help="ask no language server; the index alone"
    )
    parser.add_argument(
        "--trust", action="store_true", help="let the repository say how servers run: that can run its code"
    )


def add_question_options(parser: ArgumentParser, *, formats: tuple[str, ...], limit: int) -> None:
    """Of a question about the whole tree: how much is shown and as what, how fresh, and where."""
    from cq.surfaces.render.progress import MODES

    _add_size_options(parser, formats=formats, limit=limit)
    parser.add_argument("--progress", choices=MODES, default="auto", help="auto (default) draws a bar on a terminal")
    add_freshness_options(parser)
    add_place_options(parser)


def add_report_options(parser: ArgumentParser) -> None:
    """Of several questions at once: how long the whole may be, and as what."""
    from cq.surfaces.render.progress import MODES

    formats = ("md", "json", "jsonl", "plain")
    parser.add_argument("--budget", metavar="TOKENS", type=read_budget, help="of the whole answer (default: 8000)")
    default = os.environ.get("CQ_FORMAT", "")
    chosen = default if default in formats else "md"
    parser.add_argument("--format", choices=formats, default=chosen, help="md (default), for people; …")
    parser.add_argument("--progress", choices=MODES, default="auto", help="auto (default) draws a bar on a terminal")


def ask(args: Namespace, question: Callable[[Workspace], Answer]) -> int:
    """Asks with a progress line while the index is made, and prints."""
    from cq.surfaces.render.progress import ProgressLine

    progress = ProgressLine(args.progress)
    with open_workspace(args, progress) as workspace:
        try:
            answer = question(workspace)
        finally:
            progress.clear()
    return print_answer(answer, args.format, sys.argv[1:])


def add_path_options(parser: ArgumentParser) -> None:
    parser.add_argument("--in", metavar="DIR", action="append", dest="inside", help="only below this directory or file")
    parser.add_argument("--include", metavar="GLOB", action="append", help="only these files, as in .gitignore")
    parser.add_argument("--exclude", metavar="GLOB", action="append", help="not these files; outranks --include")


def add_answer_options(parser: ArgumentParser, *, formats: tuple[str, ...], limit: int) -> None:
    """Which files are asked about, how much is shown, and as what: the same words for every question."""
    add_path_options(parser)
    parser.add_argument("--lang", metavar="LANG,…", action="append", help="only these languages (default: auto, all)")
    _add_size_options(parser, formats=formats, limit=limit)


def _add_size_options(parser: ArgumentParser, *, formats: tuple[str, ...], limit: int) -> None:
    parser.add_argument("--limit", metavar="N", type=read_count, help=f"findings on a page (default: {limit})")
    parser.add_argument(
        "--budget", metavar="TOKENS", type=read_count, help="how long the answer may be (default: 8000)"
    )
    add_measure_option(parser)
    parser.add_argument("--page", metavar="N", type=read_count, default=1, help="the next findings")
    parser.add_argument("--all", action="store_true", help="everything on one page, however long")
    default = os.environ.get("CQ_FORMAT", "")
    if default and default not in _FORMATS:
        raise UsageError(f"CQ_FORMAT={default} is no format", hint=f"formats: {', '.join(formats)}")
    chosen = default if default in formats else formats[0]
    parser.add_argument("--format", choices=formats, default=chosen, help=f"{formats[0]} (default), for people; …")


_FORMATS = ("md", "json", "jsonl", "plain", "mermaid", "dot", "svg", "sarif")


def find_languages(given: list[str] | None) -> tuple[str, ...]:
    """`auto` is every language; UsageError for a name that is none."""
    from cq.source.language import get_language_id

    names = [word.strip() for word in ",".join(given if given is not None else ["auto"]).split(",") if word.strip()]
    if not names:
        raise UsageError("--lang names no language", hint="`cq languages` lists them")
    return () if names == ["auto"] else tuple(dict.fromkeys(map(get_language_id, names)))


def find_folders(given: list[str] | None, root: Path, option: str = "--in") -> tuple[str, ...]:
    """From the working directory, else from the root; as paths below the root. The root itself is no limit."""
    found: list[str] = []
    for name in given or ():
        if not name:
            raise UsageError(f"{option} names nothing", hint="give a directory or a file")
        here = _make_absolute(name)
        chosen = here if here.is_relative_to(root) and here.exists() else root / name
        # Asked first: what lies outside is nobody's to know, not even whether it is there.
        if not Path(os.path.normpath(chosen)).is_relative_to(root) or not _leads_below(chosen, root):
            raise UsageError(
                f"{option} {name} lies outside the root", hint="give --root with a directory that holds it"
            )
        if not chosen.exists():
            raise UsageError(f"{option} {name} does not exist", hint="it counts from the working directory or the root")
        below = Path(os.path.normpath(chosen)).relative_to(root).as_posix()
        found += [below] if below != "." else []
    return tuple(found)


def find_target(text: str, root: Path) -> str:
    """A path in front of a colon may count from the working directory, or be absolute: told as the index tells it."""
    drive, text_below = os.path.splitdrive(text)  # `C:` is no path in front of a colon
    path, colon, rest = text_below.partition(":")
    path = drive + path
    if not colon or rest.startswith(":"):
        return text
    here = _make_absolute(path)
    if here.is_relative_to(root) and here.is_file():
        return f"{here.relative_to(root).as_posix()}:{rest}"
    _refuse_outside(path, root)
    return f"{os.path.normpath(path)}:{rest}".replace(os.sep, "/") if "/" in path or os.sep in path else text


def find_part(text: str, root: Path) -> str:
    """A TARGET, or a path that may count from the working directory: told as the index tells it, `.` for the root."""
    here = _make_absolute(text)
    if text and here.is_relative_to(root) and here.exists():
        return here.relative_to(root).as_posix()
    _refuse_outside(os.path.splitdrive(text)[1].partition(":")[0], root)
    return find_target(text, root)


def _make_absolute(name: str) -> Path:
    """From the working directory, as it is written: a link stays the link that the index knows. A working directory
    that is gone holds nothing: then the name counts from the root alone."""
    try:
        return Path(os.path.abspath(name))  # noqa: PTH100
    except OSError:
        return Path(os.sep)


def _leads_below(path: Path, root: Path) -> bool:
    """Whether no link on the way leads out of the root."""
    try:
        return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))
    except (OSError, ValueError):
        return False


def _refuse_outside(path: str, root: Path) -> None:
    if Path(path).is_absolute() and not Path(path).is_relative_to(root):
        raise UsageError(f"{path} lies outside the root", hint="give --root with a directory that holds it")


def repeat_place(args: Namespace) -> tuple[str, ...]:
    """The options that say which tree is asked, quoted, for commands that are suggested."""
    given = [("--root", args.root), ("--index-dir", args.index_dir)]
    words = [f"{flag} {shlex.quote(value)}" for flag, value in given if value]
    return (*words, *(["--no-refresh"] if args.no_refresh else []))


def read_page(args: Namespace, limit: int) -> Page:
    """UsageError for options that contradict each other. A pipe wants every line; only who reads wants a page."""
    from cq.answers.page import Page

    if args.all and (args.limit is not None or args.budget is not None or args.page != 1):
        raise UsageError("--all leaves nothing for --limit, --budget or --page", hint="give one or the other")
    everything = args.all or args.format == "plain"
    return Page(
        args.limit or (0 if everything else limit),
        args.budget or (0 if everything else Page().budget),
        args.page,
        read_measure(args),
    )


def add_measure_option(parser: ArgumentParser) -> None:
    """For a program that shows an answer as text, which it takes as JSON to have all of it: the MCP server."""
    parser.add_argument("--measure", choices=("text", "json"), help=SUPPRESS)


def read_measure(args: Namespace) -> str:
    """What the budget counts."""
    return args.measure or ("json" if args.format in ("json", "jsonl") else "text")


def print_answer(answer: Answer, form: str, argv: list[str], render: Callable[[Answer], str] | None = None) -> int:
    """Writes the answer, for people by `render` where it has its own; the exit code is grep's, 130 for an answer that
    Ctrl-C cut short."""
    from cq.surfaces.render import render_jsonl
    from cq.surfaces.render.answer import find_rows, render_answer, render_plain

    elapsed = _process_ms() if cli.asker else answer.run.elapsed_ms
    run = msgspec.structs.replace(answer.run, argv=tuple(argv), elapsed_ms=elapsed)
    answer = msgspec.structs.replace(answer, run=run)
    if form == "json":
        sys.stdout.write(render_jsonl([answer]))  # on one line: white space would be a third of it
    elif form == "jsonl":
        sys.stdout.write(render_jsonl(find_rows(answer)))
    elif form == "plain":
        sys.stdout.write(render_plain(answer))
    elif form == "sarif":
        from cq.surfaces.render.sarif import render_sarif

        sys.stdout.write(render_sarif(answer))
    elif form in ("mermaid", "dot", "svg"):
        from cq.surfaces.render.picture import draw

        sys.stdout.write(draw(answer.edges, form))
    else:
        sys.stdout.write((render or render_answer)(answer))
    if form in ("mermaid", "dot", "svg") and not answer.found:
        for event in answer.degraded:
            print(f"cq: {event.message}", file=sys.stderr)
    if form in ("jsonl", "plain"):
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


def read_budget(text: str) -> int:
    """For the tokens of several questions at once."""
    value = read_count(text)
    if not 500 <= value <= 1_000_000:
        raise ArgumentTypeError(f"{text!r} is not a number of 500 to 1,000,000")
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
    if "inside" not in given:  # a question's own filters leave the index as it is
        options |= {name: tuple(given[name]) for name in ("include", "exclude") if given.get(name)}
    options["trusted"] = bool(given.get("trust"))
    options["auto_refresh"] = not given.get("no_refresh")
    options["disk_seconds"] = given.get("disk_seconds") or 0.0
    options["resident"] = cli.resident
    options["max_stale"] = given.get("max_stale") or 0.0
    workspace = Workspace.open(args.root, index_dir=args.index_dir, on_progress=on_progress, **(options | more))
    terminal.root = workspace.root
    return workspace


def note_servers(args: Namespace, workspace: Workspace) -> None:
    """Says why `--lsp` takes seconds, where it is so; asked before the workspace ends them."""
    from cq.providers import sessions

    if args.lsp and not sessions.keep_warm and any(session.pid for session in sessions.find_sessions(workspace.root)):
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
