"""`cq risk [PATH|TARGET]`, `cq risk explain ID|TARGET`, `cq risk rules`, `cq risk coverage`: where data goes."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace

from cq.model.errors import UsageError
from cq.questions.risk import ACTIONS, KINDS, MODES, ORIGINS, SEVERITIES, RiskOptions
from cq.surfaces.cli.changes import read_changes
from cq.surfaces.cli.options import add_question_options, ask, find_part, read_page

_EXAMPLES = """\
examples:
  cq risk                              of the whole repository, the worst first
  cq risk src/app --kind sql,command   below a directory, of these kinds
  cq risk --changed main               what passes lines that differ from a branch
  cq risk explain 3f9c2ab41d07         every step of one flow
  cq risk rules --test                 whether each rule finds its own examples
  cq risk coverage                     what was recognised, and what was not"""


def configure(parser: ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "words", metavar="[explain|rules|coverage] [PATH|TARGET|ID]", nargs="*",
        help="flows below a path or through a definition (default: all); one in full; the rules; what is covered",
    )  # fmt: skip
    parser.add_argument("--kind", metavar="KIND,…", action="append", help=f"only these: {', '.join(KINDS)}")
    parser.add_argument("--cwe", metavar="N,…", action="append", help="only weaknesses of these numbers")
    parser.add_argument("--severity", choices=SEVERITIES, default="low", help="the least that is shown (default: low)")
    parser.add_argument(
        "--min-confidence", metavar="C", type=_read_share, default=0.0, help="leave out what is less sure, 0 to 1"
    )
    parser.add_argument(
        "--source", metavar="ORIGIN,…", action="append", help=f"only data that is {', '.join(ORIGINS)} (default: all)"
    )
    parser.add_argument("--from", metavar="TARGET", dest="begin", default="", help="only flows that begin there")
    parser.add_argument("--to", metavar="TARGET", default="", help="only flows that end there")
    parser.add_argument(
        "--changed", metavar="REV", nargs="?", const="HEAD", help="only flows over lines that differ from REV"
    )
    parser.add_argument("--baseline", metavar="FILE", help="only flows that an earlier --format jsonl or sarif lacks")
    parser.add_argument("--mode", choices=MODES, default="default", help="strict: checks of data count for nothing")
    parser.add_argument("--test", action="store_true", help="of `rules`: run the examples of each")
    add_question_options(parser, formats=("md", "json", "jsonl", "plain", "sarif", "mermaid", "dot"), limit=40)


def run(args: Namespace) -> int:
    action, words = "flows", list(args.words)
    if words and words[0] in ACTIONS and words[0] != "flows":
        action, words = words[0], words[1:]
    if len(words) > 1:
        raise UsageError(f"unexpected argument {words[1]!r}", hint="quote a target that has blanks in it")
    if action in ("rules", "coverage") and words:
        raise UsageError(f"`cq risk {action}` takes no {words[0]!r}", hint="it is about everything")
    if action == "explain" and not words:
        raise UsageError("explain what?", hint="give the id of a flow, as `cq risk` lists it, or a TARGET")
    if args.format == "sarif":
        args.all = args.limit is None and args.budget is None and args.page == 1
    text = words[0] if words else ""
    return ask(
        args,
        lambda workspace: workspace.risk(
            RiskOptions(
                action,
                find_part(text, workspace.root) if text and action == "flows" else text,
                _split(args.kind),
                tuple(_read_number(word) for word in _split(args.cwe)),
                args.severity,
                args.min_confidence,
                _split(args.source),
                find_part(args.begin, workspace.root) if args.begin else "",
                find_part(args.to, workspace.root) if args.to else "",
                read_changes(args, workspace.root),
                args.changed is not None,
                _read_baseline(args.baseline),
                args.mode,
                args.test,
                read_page(args, 40),
            )
        ),
    )


def _split(given: list[str] | None) -> tuple[str, ...]:
    return tuple(word.strip() for word in ",".join(given or ()).split(",") if word.strip())


def _read_number(word: str) -> int:
    digits = word.upper().removeprefix("CWE-").removeprefix("CWE")
    if not digits.isdigit():
        raise UsageError(f"--cwe {word} is no number", hint="for example --cwe 89")
    return int(digits)


def _read_share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise ArgumentTypeError(f"{text!r} is not a number from 0 to 1")
    return value


def _read_baseline(name: str | None) -> frozenset[str] | None:
    """The fingerprints in a file that `cq risk` wrote."""
    if name is None:
        return None
    import re

    from cq.opening import read_file

    try:
        text = read_file(name).decode("utf-8", "replace")
    except OSError as error:
        raise UsageError(f"--baseline {name} cannot be read: {error.strerror}", hint="give a file") from None
    found = frozenset(re.findall(r'"(?:fingerprint|cq/v1)":\s*"([0-9a-f]{12,40})"', text))
    if not found and text.strip() and '"results"' not in text:
        raise UsageError(
            f"--baseline {name} holds no flows", hint="write one with cq risk --all --format jsonl, or sarif"
        )
    return found
