"""Names that look like others or hide something: letters of several scripts, letters that look alike, characters of no
width, characters that turn the direction of text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from cq.model.facts import Symbol

ZERO_WIDTH = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u180e\u115f\u1160\u3164\uffa0"
# What may hide where code ends and a comment begins; the marks of direction alone hide nothing.
_TURNING = re.compile(rb"\xe2\x80[\xaa-\xae]|\xe2\x81[\xa6-\xa9]")
# Scripts with letters that look like those of Latin: mixed with it they deceive, where Han and Latin do not.
_ALIKE = frozenset({"Cyrillic", "Greek", "Armenian", "Cherokee", "Coptic", "Lisu"})
_LOOKS = {
    **dict(zip("аеорсухіјѕԁһԛԝѵꙇӏ", "aeopcyxijsdhqwvil", strict=True)),
    **dict(zip("АВЕКМНОРСТХІЈЅҮԌԚԜ", "ABEKMHOPCTXIJSYGQW", strict=True)),
    **dict(zip("ονιαρυκτχεωγ", "ovlapuktxewy", strict=True)),
    **dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABEZHIKMNOPTYX", strict=True)),
    **dict(zip("օոսցհքզ", "onughpq", strict=True)),
    "ı": "i", "ɡ": "g", "ɑ": "a", "ℓ": "l",
}  # fmt: skip
_NAMED = {
    "CJK": "CJK",
    "HIRAGANA": "CJK",
    "KATAKANA": "CJK",
    "KATAKANA-HIRAGANA": "CJK",
    "MODIFIER": "",
    "COMBINING": "",
}
# Kinds of definitions whose names are no identifiers.
_TEXTS = frozenset({"heading", "key", "table", "column", "index", "trigger", "view", "schema", "lambda"})


class Suspect(NamedTuple):
    """One name, with why it may deceive. `severity` is info, warning or error."""

    start: int
    end: int
    severity: str
    code: str  # non_ascii mixed_scripts confusable zero_width bidi
    message: str
    scripts: tuple[str, ...] = ()
    normalized: bool = True
    scope: str = "file"


def find_suspects(text: bytes, symbols: Sequence[Symbol], spans: Sequence[tuple[int, int]]) -> list[Suspect]:
    """In the order of the text: of names that are defined, and of what turns the direction anywhere in these spans."""
    found: list[Suspect] = []
    named: dict[str, dict[str, int]] = {}  # what a name looks like -> the names that do, with where each stands first
    for symbol in symbols:
        if symbol.kind not in _TEXTS and symbol.name_end > symbol.name_start:
            name = text[symbol.name_start : symbol.name_end].decode("utf-8", "replace")
            named.setdefault(find_skeleton(name), {}).setdefault(name, symbol.name_start)
    for symbol in symbols:
        name = text[symbol.name_start : symbol.name_end]
        if symbol.kind not in _TEXTS and not name.isascii():
            written = name.decode("utf-8", "replace")
            others = [other for other in named.get(find_skeleton(written), ()) if other != written]
            found.append(_judge(symbol, written, others, find_scope(symbols, symbol)))
    for match in (match for start, end in spans for match in _TURNING.finditer(text, start, end)):
        character = unicodedata.name(match[0].decode(), "a control character").lower()
        message = f"{character}: what stands here is not read in the order that it is shown in"
        found.append(Suspect(match.start(), match.end(), "error", "bidi", message))
    return sorted(found)


def _judge(symbol: Symbol, name: str, others: list[str], scope: str) -> Suspect:
    scripts, is_normal = find_scripts(name), unicodedata.is_normalized("NFC", name)
    hidden = sorted({character for character in name if character in ZERO_WIDTH})
    if hidden:
        names = ", ".join(unicodedata.name(each, "?").lower() for each in hidden)
        severity, code, said = "error", "zero_width", f"holds a character that is not seen: {names}"
    elif others:
        severity, code, said = "error", "confusable", _say_alike(name, others[0])
    elif len(scripts) > 1 and _ALIKE & set(scripts):
        severity, code, said = "warning", "mixed_scripts", f"mixes letters of {' and '.join(scripts)}"
    elif not is_normal:
        severity, code, said = "warning", "not_normalized", "is not written in the normal form NFC"
    else:
        severity, code, said = "info", "non_ascii", f"has letters of {', '.join(scripts) or 'no script'}"
    message = f"{show(name)} {said}"
    return Suspect(symbol.name_start, symbol.name_end, severity, code, message, scripts, is_normal, scope)


def _say_alike(name: str, other: str) -> str:
    if unicodedata.normalize("NFC", name) == unicodedata.normalize("NFC", other):
        return f"is another name than {show(other)} only by how it is composed"
    letters = [
        f"{unicodedata.name(each, '?').lower()} for {_LOOKS[each]}" for each in dict.fromkeys(name) if each in _LOOKS
    ]
    return f"looks like {show(other)}" + (f": {', '.join(letters)}" if letters else "")


def show(name: str) -> str:
    """With what is not seen written out."""
    return "".join(
        f"\\u{ord(each):04x}" if each in ZERO_WIDTH or unicodedata.category(each) == "Cf" else each for each in name
    )


@lru_cache(maxsize=10_000)
def find_skeleton(name: str) -> str:
    """Equal for names that look alike."""
    plain = unicodedata.normalize("NFC", name)
    return "".join(_LOOKS.get(each, each) for each in plain if each not in ZERO_WIDTH)


def find_scripts(name: str) -> tuple[str, ...]:
    """The scripts of its letters, in the order they come."""
    return tuple(dict.fromkeys(script for each in name if each.isalpha() and (script := _find_script(each))))


@lru_cache(maxsize=10_000)
def _find_script(character: str) -> str:
    word = unicodedata.name(character, "").partition(" ")[0]
    return _NAMED.get(word, word.capitalize())


def find_scope(symbols: Sequence[Symbol], symbol: Symbol) -> str:
    """`file`, or the function, class or other definition around: `function:run`."""
    if symbol.parent < 0:
        return "file"
    around = symbols[symbol.parent]
    return f"{around.kind}:{around.name}"
