"""A question that another part of this program asks: its options as JSON, under the names they are written with. A
worker of the daemon answers it, or a process of its own, which reads it from standard input. No word of it is ever read
as a command line."""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import msgspec

from cq.answers.options import Options, find_written, make_form, read_form, spread
from cq.model.errors import UsageError, suggest
from cq.questions.table import QUESTIONS

MAX_BYTES = 4 * 1024 * 1024


class Asked(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`status` asks for the status of the index. `disk_seconds` reads files where there is no index yet; `measure` says
    what a budget counts: the answer as text, or as JSON."""

    question: str
    root: str = ""
    options: dict[str, Any] = {}
    format: str = "json"
    refresh: bool = True
    disk_seconds: float = 0.0
    measure: str = "text"


def answer(text: bytes) -> int:
    """Writes the answer as the command of the question does, and progress as JSON; returns the exit status."""
    from cq.surfaces.cli import find_command
    from cq.surfaces.cli.question import QuestionCommand

    asked = msgspec.json.decode(text, type=Asked)
    args = Namespace(
        root=asked.root, index_dir=None, no_refresh=not asked.refresh, max_stale=0.0, disk_seconds=asked.disk_seconds,
        trust=False, format=asked.format, progress="json", measure=asked.measure, config=False, explain=False,
        stop_on_error=False, as_of=_take_revision(asked),
    )  # fmt: skip
    if asked.question not in QUESTIONS:
        return find_command("status").run(args)
    command = QuestionCommand(QUESTIONS[asked.question])
    return command.answer(args, lambda root, own: read_options(asked, root, own))


def read_options(asked: Asked, root: Path, own: dict[str, Any]) -> list[Options]:
    """Those of each target; UsageError for what the question does not take."""
    from cq.snapshot.places import Places

    kind = QUESTIONS[asked.question].load_options()
    form = make_form(asked.question, kind)
    places, lines = Places(root, root, on_disk=_take_revision(asked) is None), asked.format == "plain"
    given = {name: value for name, value in asked.options.items() if name != "as_of"}
    try:
        every = [msgspec.convert(each, form) for each in spread(kind, given)]
    except msgspec.ValidationError as error:
        raise _explain(str(error), asked.question, kind, form) from None
    names = {field.name: field.encode_name for field in msgspec.structs.fields(form)}
    words = [{key: getattr(given, name) for name, key in names.items()} for given in every]
    return [read_form(kind, each, places, lines=lines, measure=asked.measure, own=own) for each in words]
    words = [{key: getattr(each, name) for name, key in names.items()} for each in every]
    return [read_form(kind, each, places, lines=lines, measure="text", own=own) for each in words]


def _take_revision(asked: Asked) -> str | None:
    """The state of the repository that is asked. No other tree can be named here: that would lead out of the root."""
    as_of = asked.options.get("as_of")
    if as_of is not None and (not isinstance(as_of, str) or as_of.startswith("path:")):
        raise UsageError("as_of is no revision", hint="give a commit, branch or tag: HEAD~3, main, v1.2")
    return as_of


def _explain(message: str, question: str, kind: type[Options], form: type[msgspec.Struct]) -> UsageError:
    message, _, place = message.partition(" - at ")
    if unknown := re.search(r"unknown field `(.*)`", message):
        names = [field.encode_name for field in msgspec.structs.fields(form)]
        return UsageError(f"{question} has no option {unknown[1]!r}", hint=suggest(unknown[1], names))
    if wrong := re.search(r"Invalid enum value '(.*)'", message):
        choices = next(one.option.choices for one in find_written(kind) if one.key == place.strip("`$."))
        return UsageError(f"{place.strip('`$.')} is not {wrong[1]!r}", hint=suggest(wrong[1], choices))
    where = place.strip("`$").strip(".")
    return UsageError(f"{where}: {message}" if where else message, hint=f"see docs/{question}.md")


if __name__ == "__main__":
    from cq.surfaces import cli

    raise SystemExit(cli.answer(sys.stdin.buffer.read(MAX_BYTES)))
