"""The command of a question, made from its options: what it takes, how its words are read, and how its answer is
written. A question whose command is more than that has a module of its own beside this one, named in SPECIAL."""

from __future__ import annotations

import os
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from cq.answers.options import find_written, read_form, spread
from cq.model.errors import UsageError
from cq.surfaces.cli.options import (
    add_freshness_options,
    add_look_options,
    add_place_options,
    add_progress_option,
    add_revision_option,
    find_group,
    note_servers,
    open_workspace,
    print_answer,
    repeat_place,
)
from cq.surfaces.render.progress import ProgressLine

if TYPE_CHECKING:
    from pathlib import Path

    from cq.answers.options import Options, Written
    from cq.model.answer import Answer
    from cq.questions.table import Question

SPECIAL = ("api", "architecture", "find", "neighborhood", "q", "read", "run")
_GROUPS = {"": "", "servers": "language servers", "files": "which files", "answer": "the answer"}
_FORMATS = ("md", "json", "jsonl", "plain", "mermaid", "dot", "svg", "sarif")


class Special(Protocol):
    """What a module named in SPECIAL may offer, each with what happens otherwise."""

    def configure(self, parser: ArgumentParser) -> None:
        """Adds options that are about how the answer is shown: none."""

    def check(self, args: Namespace) -> None:
        """UsageError for options that contradict each other: nothing is wrong."""

    def make_options(self, args: Namespace, own: dict[str, Any]) -> Options:
        """By the words of the command line: by the declarations of the question."""
        ...

    def write(self, answer: Answer, args: Namespace) -> int:
        """The answer; returns the exit status: `print_answer`."""
        ...


class QuestionCommand:
    def __init__(self, question: Question) -> None:
        self._question = question
        name = f"cq.surfaces.cli.{question.name}"
        self._special = cast("Special", import_module(name)) if question.name in SPECIAL else None

    def configure(self, parser: ArgumentParser) -> None:
        kind = self._question.load_options()
        written = find_written(kind)
        parser.epilog = f"examples:\n{kind.examples}" if kind.examples else None
        exclusive: dict[str, Any] = {}
        several = {one.field for one in written for other in written if one.field == other.field and one != other}
        for one in written:
            if one.option.json is not None:
                continue
            title = _GROUPS[one.option.group]
            into = find_group(parser, title) if title else parser
            if one.option.flags and one.field in several:
                into = exclusive.get(one.field) or into.add_mutually_exclusive_group()
                exclusive[one.field] = into
            _add(into, one)
        if any(one.option.group == "servers" for one in written):
            find_group(parser, _GROUPS["servers"]).add_argument(
                "--trust", action="store_true", help="let the repository say how servers run: that can run its code"
            )
        self._offer("configure", lambda _: None)(parser)
        _add_format(parser, self._question.formats)
        if self._question.name not in ("find", "q"):  # which have pages of their own
            add_look_options(parser)
        add_progress_option(parser)
        add_revision_option(parser)
        add_freshness_options(parser)
        add_place_options(parser)

    def run(self, args: Namespace) -> int:
        self._offer("check", lambda _: None)(args)
        return self.answer(args, lambda root, own: self._read_options(args, root, own))

    def answer(self, args: Namespace, make: Callable[[Path, dict[str, Any]], list[Options]]) -> int:
        """Asks with the options that `make` gives for the root and for what the program settles itself."""
        measure = vars(args).get("measure") or ("json" if args.format in ("json", "jsonl") else "text")
        crosscheck = os.environ.get("CQ_PY_ENRICHMENT_CROSSCHECK") == "1"
        own = {"place": repeat_place(args), "background": True, "crosscheck": crosscheck, "measure": measure}
        progress = ProgressLine(args.progress)
        with open_workspace(args, progress) as workspace:
            options = make(workspace.root, own)
            for one in options:
                one.check()
            try:
                answer = workspace.ask(options)
                note_servers(args, workspace)
            finally:
                progress.clear()
        return self._offer("write", _write)(answer, args)

    def _read_options(self, args: Namespace, root: Path, own: dict[str, Any]) -> list[Options]:
        """One of each target."""
        if self._special is not None and hasattr(self._special, "make_options"):
            return [self._special.make_options(args, own)]
        from cq.snapshot.places import Places

        kind = self._question.load_options()
        words = {one.key: _join(one, vars(args).get(one.key)) for one in find_written(kind)}
        lines, places = args.format in ("plain", "sarif"), Places(root, on_disk=not vars(args).get("as_of"))
        return [
            read_form(kind, each, places, lines=lines, measure=own["measure"], own=own) for each in spread(kind, words)
        ]

    def _offer(self, name: str, otherwise: Callable[..., Any]) -> Callable[..., Any]:
        return getattr(self._special, name, otherwise)


def _write(answer: Answer, args: Namespace) -> int:
    return print_answer(answer, args)


def _join(one: Written, value: Any) -> Any:
    return " ".join(value) if one.option.joined and isinstance(value, list) else value


def _add(parser: Any, one: Written) -> None:
    option = one.option
    if one.shape == "flag":
        names = [one.short, f"--{one.name}"] if one.short else [f"--{one.name}"]
        parser.add_argument(*names, action="store_true", dest=one.key, help=one.help)
        return
    more: dict[str, Any] = {"metavar": option.metavar or None, "help": one.help}
    if option.choices:
        more["choices"] = option.choices
    if one.shape in ("count", "share"):
        more["type"] = _make_reader(one)
    if option.argument:
        several = (
            "+" if option.joined or option.several else "*" if one.shape == "texts" else None if one.required else "?"
        )
        parser.add_argument(one.key, nargs=several, **more)
    elif one.shape == "texts":
        parser.add_argument(f"--{one.name}", action="append", dest=one.key, **more)
    else:
        bare = {"nargs": "?", "const": option.bare} if option.bare is not None else {}
        parser.add_argument(f"--{one.name}", dest=one.key, required=one.required, **bare, **more)


def _make_reader(one: Written) -> Callable[[str], float]:
    """What reads a number for argparse, whose own words name its type in errors."""
    kind = int if one.shape == "count" else float
    if one.least is None:
        return kind
    least, most = one.least, one.most
    if most is None:
        bounds = "above 0" if least == 1 else f"from {least:g}"
    else:
        bounds = f"from {least:g} to {most:,g}" if most < 1e6 else f"from {least:g} to {int(most):,}"

    def read(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = least - 1
        if not least <= value or (most is not None and value > most):
            raise ArgumentTypeError(f"{text!r} is not a number {bounds}")
        return value

    return read


def _add_format(parser: ArgumentParser, formats: tuple[str, ...]) -> None:
    given = os.environ.get("CQ_FORMAT", "")
    if given and given not in _FORMATS:
        raise UsageError(f"CQ_FORMAT={given} is no format", hint=f"formats: {', '.join(formats)}")
    chosen = given if given in formats else formats[0]
    find_group(parser, _GROUPS["answer"]).add_argument(
        "--format", choices=formats, default=chosen, help=f"{formats[0]} (default), for people; …"
    )
