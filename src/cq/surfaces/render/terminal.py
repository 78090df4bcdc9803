"""What only a terminal shows: colours, links, highlighted source. Taken away, the text is the same."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from urllib.parse import quote

from cq.model.errors import UsageError
from cq.surfaces.printer import ESCAPE
from cq.surfaces.render import has_colour, show_path

root = Path()  # of the answer; links are absolute
link_format: str | None = None  # as asked for; None: by what the terminal says of itself
_MOST_BYTES = 200_000  # of source that is highlighted
_PLACE, _MATCH = "36", "1;31"
_STYLES = {"keyword": "1;34", "comment": "2", "string": "32"}


def show_place(path: str, line: int = 0, col: int = 0, *, named: bool = True) -> str:
    """`path:line:col`, or without its path where that stands above; on a terminal in colour, and where it can follow
    links, as one to the line."""
    text = ":".join([*([show_path(path)] if named else []), *([f"{line}:{col}"] if line else [])])
    if not has_colour():
        return text
    text = _paint(text, _PLACE)
    target = _make_link(path, line, col)
    return f"{ESCAPE}]8;;{target}{ESCAPE}\\{text}{ESCAPE}]8;;{ESCAPE}\\" if target else text


def highlight(source: str, language: str) -> str:
    """Keywords, strings and comments by the language's own grammar; as it is where there is no colour or no grammar."""
    return _style(source, _find_spans(source, language)) if has_colour() else source


def highlight_hit(line: str, language: str, start: int, length: int) -> str:
    """A line of source with what was found in it marked."""
    if not has_colour():
        return line
    first, last = (start, start + length) if start >= 0 and length else (0, 0)
    spans = [span for span in _find_spans(line, language) if span[1] <= first or span[0] >= last]
    return _style(line, sorted([*spans, (first, last, _MATCH)]) if last else spans)


def _find_spans(source: str, language: str) -> list[tuple[int, int, str]]:
    """(start, end, style) of what has one, in characters, in order."""
    if len(source) > _MOST_BYTES:
        return []
    from cq.languages.registry import get_language
    from cq.syntax.tokens import find_plain_tokens

    known = get_language(language)
    text = source.encode("utf-8", "surrogateescape")
    spans: list[tuple[int, int, str]] = []
    done = at = 0  # in bytes, in characters

    def count(end: int) -> int:
        return at + len(text[done:end].decode("utf-8", "surrogateescape"))

    for start, end, kind in find_plain_tokens(known, text) if known else ():
        first = count(start)
        at, done = first, start
        at, done = count(end), end
        spans.append((first, at, _STYLES[kind]))
    return spans


def _style(source: str, spans: list[tuple[int, int, str]]) -> str:
    parts: list[str] = []
    done = 0
    for start, end, style in spans:
        parts += [source[done:start], _paint(source[start:end], style)]
        done = end
    return "".join([*parts, source[done:]])


def fit_width(lines: Iterable[str]) -> list[str]:
    """On a terminal, rows that are too long go on below, further in; no word is broken, and blocks of source stay as
    they are."""
    if not sys.stdout.isatty():
        return list(lines)
    import shutil

    width, fence, fitted = shutil.get_terminal_size().columns, "", list[str]()
    for line in lines:
        if fence or line.startswith("```"):
            fitted.append(line)
            fence = ("" if line == fence else fence) if fence else "`" * (len(line) - len(line.lstrip("`")))
        else:
            fitted += _fit(line, width)
    return fitted


_OWN = re.compile(rf"{ESCAPE}\[[\d;]*m|{ESCAPE}\]8;;.*?{ESCAPE}\\\\")  # what shows nothing


def _fit(line: str, width: int) -> list[str]:
    if len(_OWN.sub("", line)) <= width:
        return [line]
    indent = " " * (len(line) - len(line.lstrip(" ")) + 4)
    rows, used = [""], 0
    for word in re.split(r"(?<=[^ ]) (?=[^ ])", line):
        shown = len(_OWN.sub("", word))
        if rows[-1].strip() and used + 1 + shown > width:
            rows.append(indent + word)
            used = len(indent) + shown
        else:
            rows[-1] += f" {word}" if rows[-1] else word
            used += shown + (used > 0)
    return rows


def read_link_format(text: str) -> str:
    """The format that a name stands for, or one that is written out; UsageError for what leads nowhere."""
    known = LINK_FORMATS.get(text, text)
    words = set(re.findall(r"\{(\w*)\}", known))
    if known and ("path" not in words or not words <= {"host", "path", "line", "column"} or ":" not in known):
        raise UsageError(
            f"--hyperlink-format {text!r} is no format",
            hint=f"{', '.join(LINK_FORMATS)}, or a link with {{path}}, {{line}}, {{column}} and {{host}}",
        )
    return known


# As ripgrep and other programs call them; "" is none.
LINK_FORMATS = {
    "none": "",
    "file": "file://{host}{path}",
    "kitty": "file://{host}{path}#{line}",
    "vscode": "vscode://file{path}:{line}:{column}",
    "vscode-insiders": "vscode-insiders://file{path}:{line}:{column}",
    "vscodium": "vscodium://file{path}:{line}:{column}",
    "cursor": "cursor://file{path}:{line}:{column}",
    "zed": "zed://file{path}:{line}:{column}",
    "textmate": "txmt://open?url=file://{path}&line={line}&column={column}",
    "macvim": "mvim://open?url=file://{path}&line={line}&column={column}",
    "grep+": "grep+://{path}:{line}",
}


def _make_link(path: str, line: int, col: int) -> str:
    """ "" where the terminal follows none."""
    form = _guess_format() if link_format is None else link_format
    if not form or not sys.stdout.isatty():
        return ""
    full = quote(os.fsencode((root / path).as_posix()), safe="/:")
    full = full if full.startswith("/") else f"/{full}"  # C:/ on Windows
    values = {"host": _name_host(), "path": full, "line": str(line or 1), "column": str(col or 1)}
    return re.sub(r"\{(\w+)\}", lambda found: values[found[1]], form)


@cache
def _name_host() -> str:
    """With the host's name a terminal knows that the file is on another machine."""
    return "" if sys.platform == "win32" else os.uname().nodename


def _paint(text: str, style: str) -> str:
    """Line by line: a pager shows a line by itself."""
    return "\n".join(f"{ESCAPE}[{style}m{line}{ESCAPE}[0m" if line else line for line in text.split("\n"))


def _guess_format() -> str:
    """Of terminals that say they are one that follows links (OSC 8); the others would show them as garbage."""
    given = os.environ
    if given.get("TERM", "").startswith("xterm-kitty"):
        return LINK_FORMATS["kitty"]
    if given.get("TERM_PROGRAM") == "vscode":
        return LINK_FORMATS["vscode"]
    known = given.get("TERM_PROGRAM") in ("iTerm.app", "WezTerm", "ghostty")
    known |= given.get("TERM", "").startswith(("foot", "alacritty"))
    known |= bool(given.get("WT_SESSION") or given.get("KONSOLE_VERSION"))
    version = given.get("VTE_VERSION", "")
    known |= version.isdecimal() and int(version) >= 5000
    return LINK_FORMATS["file"] if known else ""
