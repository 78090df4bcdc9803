"""What only a terminal shows: colours, links, highlighted source. Taken away, the text is the same."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from urllib.parse import quote

from cq.surfaces.printer import ESCAPE
from cq.surfaces.render import has_colour, show_path

root = Path()  # of the answer; links are absolute
_MOST_BYTES = 200_000  # of source that is highlighted
_STRONG, _QUIET, _TEXT, _PLACE = "1;34", "2", "32", "36"


def show_place(path: str, line: int, col: int) -> str:
    """`path:line:col`, on a terminal in colour, and where it can follow links, as one to the file."""
    text = f"{show_path(path)}:{line}:{col}"
    if not has_colour():
        return text
    text = _paint(text, _PLACE)
    if not _follows_links():
        return text
    target = _name_host() + quote(os.fsencode((root / path).as_posix()), safe="/:")
    return f"{ESCAPE}]8;;{target}{ESCAPE}\\{text}{ESCAPE}]8;;{ESCAPE}\\"


def highlight(source: str, language: str) -> str:
    """Keywords, strings and comments by the language's own grammar; as it is where there is no colour or no grammar."""
    if not has_colour() or len(source) > _MOST_BYTES:
        return source
    from cq.languages.registry import get_language
    from cq.syntax.tree import Node, all_child_count_of, end_of, is_named, kind_of, root_of, start_of, walk

    known = get_language(language)
    text = source.encode("utf-8", "surrogateescape")
    tree = known.parse(text) if known else None
    if tree is None:
        return source
    parts: list[str] = []
    done = 0

    def find_style(node: Node) -> str:
        return _find_style(kind_of(node), named=is_named(node), leaf=all_child_count_of(node) == 0)

    for node in walk(root_of(tree), lambda node: not find_style(node)):
        style = find_style(node)
        if style and start_of(node) >= done:
            parts.append(text[done : start_of(node)].decode("utf-8", "surrogateescape"))
            parts.append(_paint(text[start_of(node) : end_of(node)].decode("utf-8", "surrogateescape"), style))
            done = end_of(node)
    return "".join(parts) + text[done:].decode("utf-8", "surrogateescape")


@cache
def _name_host() -> str:
    """What a link begins with. With the host's name a terminal knows that the file is on another machine."""
    return "file:///" if sys.platform == "win32" else f"file://{os.uname().nodename}"


def _find_style(kind: str, *, named: bool, leaf: bool) -> str:
    if "comment" in kind:
        return _QUIET
    if named and "string" in kind and (leaf or kind in ("string", "string_literal", "raw_string_literal")):
        return _TEXT
    return _STRONG if leaf and not named and kind.isalpha() else ""


def _paint(text: str, style: str) -> str:
    """Line by line: a pager shows a line by itself."""
    return "\n".join(f"{ESCAPE}[{style}m{line}{ESCAPE}[0m" if line else line for line in text.split("\n"))


def _follows_links() -> bool:
    """Terminals that say they are one that does (OSC 8); the others would show it as garbage."""
    given = os.environ
    known = given.get("TERM_PROGRAM") in ("iTerm.app", "WezTerm", "vscode", "ghostty")
    known |= given.get("TERM", "").startswith(("xterm-kitty", "foot", "alacritty"))
    known |= bool(given.get("WT_SESSION") or given.get("KONSOLE_VERSION"))
    version = given.get("VTE_VERSION", "")
    return sys.stdout.isatty() and (known or (version.isdecimal() and int(version) >= 5000))
