"""Questions as forms: what may be asked, from the declarations of their options, and what was filled in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from cq.answers.options import Written, find_written, write_command
from cq.model.errors import UsageError
from cq.questions.table import QUESTIONS


class Field(msgspec.Struct, frozen=True):
    key: str
    label: str
    help: str
    shape: str
    value: str = ""
    choices: tuple[str, ...] = ()
    required: bool = False
    names: bool = False  # names and paths are offered


def make_fields(question: str, given: Mapping[str, Sequence[str]]) -> list[Field]:
    return [
        Field(
            one.key, one.label, one.help, "json" if one.option.json is not None else one.shape,
            " ".join(given.get(one.key, ())), one.option.choices, one.required, bool(one.option.place),
        )
        for one in find_written(QUESTIONS[question].load_options())
    ]  # fmt: skip


def read_fields(question: str, given: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The options as JSON; UsageError for a value that is none. Options that there are not are refused by who is
    asked."""
    written = {one.key: one for one in find_written(QUESTIONS[question].load_options())}
    return {key: _read(written.get(key), key, values) for key, values in given.items() if any(values)}


def _read(one: Written | None, key: str, values: Sequence[str]) -> Any:
    text = " ".join(values)
    if one is None:
        return text
    if one.option.json is not None:
        try:
            return msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            raise UsageError(f"{key}: {error}", hint="it is JSON") from None
    if one.shape == "flag":
        if text not in ("1", "on", "true"):
            raise UsageError(f"{key} is not {text!r}", hint="1, or nothing")
        return True
    if one.shape in ("count", "share"):
        try:
            return int(text) if one.shape == "count" else float(text)
        except ValueError:
            raise UsageError(f"{key} is no number: {text!r}") from None
    if one.shape == "texts":
        return [word for value in values for word in (value.split(",") if one.option.parse else [value]) if word]
    return text


def write_line(question: str, options: Mapping[str, Any]) -> str:
    """The command line that asks the same."""
    written = {one.key: one for one in find_written(QUESTIONS[question].load_options())}
    return write_command(question, [(written[key], value) for key, value in options.items() if key in written])
