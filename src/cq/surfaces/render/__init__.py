"""Answers → text. One module per answer; nothing here decides what is true, only how it is said."""

from __future__ import annotations

import os
import sys
from itertools import zip_longest
from typing import Any

import msgspec

from cq.surfaces.printer import ESCAPE


def render_json(value: Any) -> str:
    """Indented, keys in the order they were given: the same value is the same bytes."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def render_jsonl(values: list[Any]) -> str:
    return "".join(msgspec.json.encode(value).decode() + "\n" for value in values)


def render_heading(text: str, level: int = 2) -> str:
    """A Markdown heading, bold where a terminal shows it."""
    heading = f"{'#' * level} {text}"
    return f"{ESCAPE}[1m{heading}{ESCAPE}[0m" if has_colour() else heading


def render_block(lines: list[str], language: str = "text") -> str:
    """Lines as they are, in a fence longer than any inside: source is never read as markup."""
    bars = "```"
    while any(bars in line for line in lines):
        bars += "`"
    return "\n".join([f"{bars}{language}", *lines, bars])


def render_table(columns: list[str], rows: list[list[str]]) -> str:
    """A Markdown table, aligned so that it also reads as plain text. On a terminal that is too narrow the widest
    columns go on in the next line; nothing is cut."""
    cells = [columns, *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    if sys.stdout.isatty():
        import shutil

        _narrow(widths, shutil.get_terminal_size().columns - 3 * len(widths) - 1)
    lines = [line for row in cells for line in _wrap_row(row, widths)]
    head = len(_wrap_row(columns, widths))
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([*lines[:head], rule, *lines[head:]])


def _narrow(widths: list[int], room: int) -> None:
    """The widest first, down to what a word needs."""
    while sum(widths) > room and max(widths) > _LEAST:
        widths[widths.index(max(widths))] -= 1


def _wrap_row(row: list[str], widths: list[int]) -> list[str]:
    """The lines of a row; words that are longer than their column are broken, none is lost."""
    parts = [_wrap(cell, width) for cell, width in zip(row, widths, strict=True)]
    lines = zip_longest(*parts, fillvalue="")
    return ["| " + " | ".join(map(str.ljust, line, widths)) + " |" for line in lines]


def _wrap(cell: str, width: int) -> list[str]:
    if len(cell) <= width:
        return [cell]
    lines = [""]
    for word in cell.split(" "):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        rest = f"{lines[-1]} {word}" if lines[-1] else word
        while len(rest) > width:
            lines[-1], rest = rest[:width], rest[width:]
            lines.append("")
        lines[-1] = rest
    return lines


_LEAST = 8  # characters of a column


def one_line(text: str) -> str:
    """For rows: a line break inside a name must not begin a new row."""
    return " ".join(text.split()) if "\n" in text or "\r" in text else text


def show_path(path: str) -> str:
    """A path on one line, whatever it is called: control characters and what would turn the line round in escapes."""
    return path if path.isprintable() else "".join(c if c.isprintable() else ascii(c)[1:-1] for c in path)


def has_colour() -> bool:
    """NO_COLOR outranks FORCE_COLOR, which outranks what the terminal says of itself."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (sys.stdout.isatty() and os.environ.get("TERM") != "dumb")
