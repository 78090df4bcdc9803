"""The `cq` command: finds the command, and turns every failure into one line and an exit code.

Exit codes are grep's: 0 found, 1 nothing found, 2 error. One module per command; nothing else is imported
before the command is known, because starting up is most of what a short answer costs.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn, Protocol, cast

from cq.model.errors import CqError, UsageError, suggest
from cq.questions.table import QUESTIONS
from cq.surfaces.printer import Printer

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Iterable, Sequence
    from typing import TextIO

    from cq.indexing.resident import Resident

# name -> (module, one line of help). The commands of questions are all made by one module, from their options.
COMMANDS: dict[str, tuple[str, str]] = {
    **{name: ("cq.surfaces.cli.question", question.line) for name, question in QUESTIONS.items()},
    "index": ("cq.surfaces.cli.index", "bring the index of a repository up to date"),
    "status": ("cq.surfaces.cli.status", "what is indexed, how fresh, where, and what is degraded"),
    "watch": ("cq.surfaces.cli.watch", "keep the index fresh while files change"),
    "validate": ("cq.surfaces.cli.validate", "whether the index, or an export of it, is whole"),
    "ingest": ("cq.surfaces.cli.ingest", "take what another indexer knows as evidence (SCIP)"),
    "export": ("cq.surfaces.cli.export", "the index as artifacts, for other programs"),
    "artifact": ("cq.surfaces.cli.artifact", "what recent answers were too short for"),
    "facts": ("cq.surfaces.cli.facts", "what one file says about itself: symbols, calls, imports, chunks"),
    "languages": ("cq.surfaces.cli.languages", "the languages that are read, and what each offers"),
    "schema": ("cq.surfaces.cli.schema", "the JSON Schema of what cq writes"),
    "doctor": ("cq.surfaces.cli.doctor", "what is installed, what is wrong, and what to do about it"),
    "web": ("cq.surfaces.cli.web", "the answers as pages in a browser"),
    "mcp": ("cq.surfaces.cli.mcp", "answer an agent over the Model Context Protocol"),
    "daemon": ("cq.surfaces.cli.daemon", "a process that keeps answers warm: start, stop, status"),
    "config": ("cq.surfaces.cli.config", "your own settings"),
    "init": ("cq.surfaces.cli.init", "let an agent use cq: configuration for its client"),
    "completion": ("cq.surfaces.cli.completion", "complete commands, names and paths in your shell"),
}

ALIASES = {"nb": "neighborhood"}

# How --help sorts them; a command that is in none of these is a question.
GROUPS = {
    "the index": ("index", "status", "watch", "validate", "export", "ingest", "doctor", "languages"),
    "for programs": ("mcp", "schema", "artifact"),
    "to feel at home": ("web", "init", "completion", "daemon", "config"),
}

# The process whose user waits, as /proc names it; the daemon sets it to its client's, "" where that goes on.
asker = "self"
resident: Resident | None = None  # what the daemon keeps between questions
started = time.perf_counter()  # where the system does not say when a process began

EXAMPLES = """\
  cq                                   what is here, and where to start
  cq search get_or_create              where a name is defined, called, used
  cq find 'how are passwords hashed'   code about an idea, within a budget
  cq calls QuerySet.get_or_create      who calls it, with what
  cq read src/app.py                   the outline of a file
  cq search save --format json         the same, for a program
  cq q 'entity=function has="await $X"'  functions that await something
  cq impact save                       what depends on it"""


class Command(Protocol):
    """What answers a command. `configure` may set the parser's epilog to examples."""

    def configure(self, parser: ArgumentParser) -> None: ...
    def run(self, args: Namespace) -> int: ...


def main(argv: Sequence[str] | None = None) -> int:
    return _run(lambda: _dispatch([_read_word(word) for word in (sys.argv[1:] if argv is None else argv)]))


def answer(asked: bytes) -> int:
    """What another part of this program asks; see `surfaces/asked`."""
    from cq.surfaces.asked import answer

    return _run(lambda: answer(asked))


def _run(work: Callable[[], int]) -> int:
    streams = sys.stdout, sys.stderr
    _prepare_streams()
    try:
        return _catch(work)
    finally:
        sys.stdout, sys.stderr = streams


def _catch(work: Callable[[], int]) -> int:
    try:
        status = work()
        sys.stdout.flush()
    except CqError as error:
        return _fail(str(error), details=error.details)
    except KeyboardInterrupt:
        return _fail("interrupted", status=130)
    except BrokenPipeError:
        # The reader has seen enough (`cq … | head`); that is no error.
        _abandon_stdout()
        return 0
    except Exception as error:  # noqa: BLE001  a surface is where everything is caught
        return _fail(_explain(error))
    return status


def _read_word(word: str) -> str:
    """As UTF-8, whatever the locale says: so is what is compared with it. File names may be anything, and are checked
    where they are used."""
    return word if word.isascii() else os.fsencode(word).decode("utf-8", "surrogateescape")


def _dispatch(argv: list[str]) -> int:
    if argv and argv[0].startswith("--color"):
        argv = _take_color(argv)
    name, rest = (argv[0], argv[1:]) if argv else ("", [])
    if name == "help":
        if len(rest) > 1:
            raise UsageError(f"unexpected argument {rest[1]!r}", hint="see `cq --help`")
        if rest == ["query"]:
            return _print_query_help()
        name, rest = (rest[0], ["--help"]) if rest else ("--help", [])
    name = ALIASES.get(name, name)
    if not name or name == "--root" or name.startswith("--root="):
        return _run_command("", argv)
    if name in ("-V", "--version"):
        return _print_version()
    if name == "-h":
        return _print_short_help()
    if name == "--help":
        return _print_help()
    if name not in COMMANDS:
        what = "option" if name.startswith("-") else "command"
        known = ["--help", "--version", "--color", "--root"] if what == "option" else COMMANDS
        raise UsageError(f"unknown {what} {name!r}", hint=_did_you_mean(name, known, "cq"))
    return _run_command(name, rest)


def _take_color(argv: list[str]) -> list[str]:
    """For the colours of this command; in the environment, where what it starts sees it too."""
    option, equals, when = argv[0].partition("=")
    rest = argv[1:] if equals else argv[2:]
    when = when if equals else argv[1] if len(argv) > 1 else ""
    if option != "--color" or when not in ("auto", "always", "never"):
        raise UsageError(f"--color is auto, always or never, not {when!r}", hint="see `cq --help`")
    if when != "auto":
        os.environ.pop("NO_COLOR", None)
        os.environ |= {"FORCE_COLOR": "1"} if when == "always" else {"NO_COLOR": "1"}
    return rest


def _print_version() -> int:
    from cq import __version__

    print(f"cq {__version__}")
    return 0


def _find_groups() -> dict[str, Sequence[str]]:
    grouped = {name for names in GROUPS.values() for name in names}
    return {"questions": tuple(name for name in COMMANDS if name not in grouped), **GROUPS}


_FIRST = 8  # questions that help on one screen explains


def _print_short_help() -> int:
    from textwrap import shorten, wrap

    groups = _find_groups()
    first = groups["questions"][:_FIRST]
    groups = {"more questions": groups.pop("questions")[_FIRST:], **groups}
    width = max(map(len, first))
    rows = [f"  {name:<{width}}  {shorten(COMMANDS[name][1], 76 - width, placeholder=' …')}" for name in first]
    names = [
        line
        for title, group in groups.items()
        for line in wrap(f"{f'{title}:':<18}{' '.join(group)}", 78, subsequent_indent=" " * 18, break_on_hyphens=False)
    ]
    print(
        "usage: cq [COMMAND [OPTION…]]    answers questions about code, with evidence\n\n"
        + "\n".join([*rows, "", *names, ""])
        + "\n`cq` alone says where to start, `cq COMMAND -h` what a command takes, `cq --help` all."
    )
    return 0


def _print_help() -> int:
    width = max(map(len, COMMANDS))
    groups = _find_groups()
    commands = "\n\n".join(
        f"{title}:\n" + "\n".join(f"  {name:<{width}}  {COMMANDS[name][1]}" for name in names)
        for title, names in groups.items()
    )
    print(
        f"usage: cq [--color WHEN] [COMMAND [OPTION…]]\n\n"
        f"Answers questions about code, with evidence.\n\n{commands}\n\n"
        f"options:\n  -h             help on one screen; `cq COMMAND -h` for one command\n"
        f"  --help         this text; `cq COMMAND --help` or `cq help COMMAND` for one command\n"
        f"  -V, --version  the version\n  --color WHEN   auto (default: on a terminal), always or never\n\n"
        f"environment:\n  CQ_ROOT        the directory that holds the code\n"
        f"  CQ_INDEX_DIR   where indexes are kept\n"
        f"  CQ_FORMAT      the format of answers\n"
        f"  CQ_VERBOSE=1   show the traceback of an internal error\n  NO_COLOR       no colours\n\n"
        f"examples:\n{EXAMPLES}\n\nexit status: 0 found, 1 nothing found, 2 error"
    )
    return 0


def _print_query_help() -> int:
    """The language of `cq q`, word by word."""
    from cq.query.vocabulary import ATTRIBUTES, TOKENS

    width = max(map(len, TOKENS)) + 1
    print(
        "A query is words of the form key=value, all of which must hold; quotes keep spaces together, `~` begins a\n"
        "regular expression, `$X` in a pattern stands for one expression and `$$$` for any number.\n"
    )
    for key, rule in TOKENS.items():
        example = rule.example.replace("'", '"')  # the shell has the others
        print(f"  {key + '=':<{width}}  {rule.meaning}\n  {'':<{width}}    cq q '{example}'")
    print(
        "\nStages follow behind `|`: filter(ATTRIBUTE > 20), sort(ATTRIBUTE desc), limit 5, and more.\n"
        f"Attributes: {', '.join(ATTRIBUTES)}.\n\n"
        "`cq q --help` has the options, docs/query.md every rule, docs/cookbook.md queries with their answers."
    )
    return 0


def _run_command(name: str, argv: list[str]) -> int:
    line = COMMANDS[name][1] if name else "what is here, and what to ask next"
    command = find_command(name)
    key = name, os.environ.get("CQ_FORMAT", "")  # which is among the defaults
    parser = _parsers.get(key)
    if parser is None:
        parser = _parsers[key] = _make_parser(command, name, line)
    try:
        args, unknown = parser.parse_known_args(argv)
        if unknown and "--" not in argv:  # `artifact get --page 2 ID`: argparse has no place left for ID
            args, unknown = parser.parse_known_intermixed_args(argv)
    except SystemExit:
        return 0  # only --help leaves this way; errors raise UsageError
    if unknown:
        word = unknown[0].partition("=")[0]
        what = "unknown option" if word.startswith("-") else "unexpected argument"
        options = [part.strip(" ,[]()|") for part in parser.format_usage().split() if "--" in part]
        if word == "--lsp" and "--no-lsp" in options:
            raise UsageError(f"unknown option {word!r}", hint=f"cq {name} asks language servers anyway")
        raise UsageError(f"{what} {word!r}", hint=_did_you_mean(word, options, f"cq {name}"))
    for action in parser._actions:
        # `-- x --`: argparse takes the second mark for one as well, and leaves the argument empty.
        if not action.option_strings and action.nargs is None and vars(args)[action.dest] == []:
            raise UsageError(f"{action.metavar or action.dest} cannot be `--`", hint=f"see `cq {name} --help`")
    for asked, given in vars(args).items():
        words = [given] if isinstance(given, str) else given if isinstance(given, list) else []
        if asked in _TEXTS and not all(word.isascii() or _is_text(word) for word in words):
            raise UsageError(f"{asked} is no UTF-8", hint="names and text are compared as UTF-8")
        if asked in _TEXTS or asked in _FILTERS:
            for character in find_controls("".join(words)):
                hint = "a file that is called so is reached by its folder, or by ? in a glob"
                raise UsageError(f"{asked} holds a control character (U+{ord(character):04X})", hint=hint)
    return command.run(args)


def find_command(name: str) -> Command:
    """By its name; the welcome page has none. Imports what the command needs and no more."""
    if name in QUESTIONS:
        from cq.surfaces.cli.question import QuestionCommand

        return QuestionCommand(QUESTIONS[name])
    module = COMMANDS[name][0] if name else "cq.surfaces.cli.welcome"
    return cast("Command", cast("object", import_module(module)))


def _make_parser(command: Command, name: str, line: str) -> ArgumentParser:
    from argparse import Action, ArgumentParser, RawDescriptionHelpFormatter

    class Parser(ArgumentParser):
        def error(self, message: str) -> NoReturn:
            raise _usage_error(message, name)

    class Short(Action):
        def __call__(self, parser: ArgumentParser, *_: object) -> NoReturn:
            print(_shorten_help(parser, name))
            parser.exit()

    # An abbreviated option would change its meaning the day a longer one is added.
    parser = Parser(
        prog=f"cq {name}".strip(), description=line, formatter_class=RawDescriptionHelpFormatter, allow_abbrev=False,
        add_help=False,
    )  # fmt: skip
    parser.add_argument("-h", action=Short, nargs=0, help="help on one screen")
    parser.add_argument("--help", action="help", help="all of it")
    command.configure(parser)
    return parser


def _shorten_help(parser: ArgumentParser, name: str) -> str:
    """What is this command's own, and of the options that others have too the names."""
    from textwrap import wrap

    formatter = parser.formatter_class(prog=parser.prog)
    arguments = [action.metavar or action.dest for action in parser._actions if not action.option_strings]
    usage = f"usage: {parser.prog} [OPTION…] {' '.join(map(str, arguments))}"
    shared: list[str] = []
    for group in parser._action_groups:
        if group.title in ("positional arguments", "options"):
            formatter.add_arguments(action for action in group._group_actions if action.dest not in ("h", "help"))
        else:
            flags = [action.option_strings[0] for action in group._group_actions]
            shared += wrap(
                f"{f'{group.title}:':<18}{' '.join(flags)}", 78, subsequent_indent=" " * 18, break_on_hyphens=False
            )
    examples = (parser.epilog or "").partition("\n\n")[0].splitlines()[:4]
    parts = [usage.rstrip(), parser.description or "", formatter.format_help().strip("\n"), "\n".join(shared)]
    parts += ["\n".join(examples), f"`cq {name} --help` says what every option does."]
    return "\n\n".join(part for part in parts if part.strip())


# A process of the daemon runs the same command again and again.
_parsers: dict[tuple[str, str], ArgumentParser] = {}

# What is asked about; the others are names of files, which may be anything.
_TEXTS = ("text", "query", "target", "targets", "source", "to")
_FILTERS = (
    "in", "include", "exclude", "paths", "lang", "kind", "id", "edges", "expand", "module", "plane", "receiver",
    "slices",
)  # fmt: skip


def find_controls(text: str) -> list[str]:
    """The characters that steer a terminal or end a string in C; line breaks and tabs are text."""
    found = "" if text.isprintable() else text
    return [char for char in found if (char < " " and char not in "\n\t\r") or char == "\x7f"]


def _is_text(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def _usage_error(message: str, name: str) -> UsageError:
    """argparse's own words, and for a value out of a list the nearest one of the list."""
    head, given, choices = message.partition("invalid choice: ")
    if not given:
        return UsageError(message, hint=f"see `cq {name} --help`")
    value, _, names = choices.partition(" (choose from ")
    value, known = value.strip("'\""), [choice.strip(" '\"") for choice in names.rstrip(")").split(",")]
    suggestion = _did_you_mean(value, known, f"cq {name}")
    return UsageError(f"{head}{value!r} is not one of {', '.join(known)}", hint=suggestion)


def _did_you_mean(word: str, known: Iterable[str], command: str) -> str:
    return suggest(word, list(known), f"see `{command} --help`")


def _explain(error: Exception) -> str:
    if os.environ.get("CQ_VERBOSE"):
        from traceback import print_exception

        print_exception(error)
    if isinstance(error, OSError):
        if isinstance(error, FileNotFoundError) and _cwd_is_gone():
            return "io: the working directory no longer exists (change to one that does)"
        # A full disk, a closed terminal, a file that vanished: the system's words are the user's.
        where = f": {os.fsdecode(error.filename)}" if isinstance(error.filename, str | bytes) else ""
        return f"io: {error.strerror or error}{where}"
    return f"internal: {type(error).__name__}: {error} (set CQ_VERBOSE=1 for the traceback)"


def _cwd_is_gone() -> bool:
    try:
        os.getcwd()  # noqa: PTH109  pathlib would be one more import at start
    except OSError:
        return True
    return False


def _fail(message: str, *, details: tuple[str, ...] = (), status: int = 2) -> int:
    # Lines are ours, whatever a file is called: control characters and undecodable bytes are shown escaped.
    lines = [
        "".join(char if char.isprintable() else ascii(char)[1:-1] for char in line) for line in (message, *details)
    ]
    try:
        sys.stdout.flush()
    except OSError:
        _abandon_stdout()
    with suppress(OSError):  # where no one listens, the exit code still says it
        print("cq: " + "\n".join(lines), file=sys.stderr, flush=True)
    return status


def _abandon_stdout() -> None:
    """What is left in the buffer goes nowhere; else the interpreter would complain about it when it ends."""
    with suppress(OSError, ValueError):  # a stream without a descriptor is not the interpreter's to flush
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _prepare_streams() -> None:
    """Source text and file names leave as they came in, in any locale: UTF-8, and undecodable bytes unchanged."""
    # A stream that the caller closed (`cq … >&-`) is None.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    for stream, errors in ((sys.stdout, "surrogateescape"), (sys.stderr, "backslashreplace")):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors=errors, newline="\n")  # on Windows as well: source is not changed
    sys.stdout, sys.stderr = cast("TextIO", Printer(sys.stdout)), cast("TextIO", Printer(sys.stderr))
