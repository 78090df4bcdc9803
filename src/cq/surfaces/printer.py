"""The one place where text leaves for standard output and standard error. On a terminal nothing but cq's own escapes
steers it: whatever a file, a name or a server says is shown there with its control characters spelled out. Anywhere
else text leaves as it is, byte for byte."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TextIO

# What cq itself writes to steer a terminal. Halves of surrogate pairs stand for the two: text that was decoded from
# UTF-8 or JSON holds neither, so what was read can never be taken for what was meant.
ESCAPE, RETURN = "\ud91b", "\ud90d"
_OWN = {ord(ESCAPE): "\x1b", ord(RETURN): "\r"}
# Letters and marks that show nothing, beside what Unicode calls control and format characters: names that look alike.
_UNSEEN = frozenset({
    0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, *range(0x180B, 0x1810), *range(0xFE00, 0xFE0E),
    *range(0xE0100, 0xE01F0),
})  # fmt: skip


class _Spelling(dict[int, str]):
    """Code point → how it is shown. Filled as characters come; the same for all."""

    def __missing__(self, code: int) -> str:
        from unicodedata import category

        kind = category(chr(code))
        # Spaces of other scripts are text, and so are the private characters of fonts for terminals.
        hidden = kind in ("Cc", "Cf", "Cs", "Cn", "Zl", "Zp") or code in _UNSEEN
        self[code] = shown = _spell(code) if hidden else chr(code)
        return shown


def _spell(code: int) -> str:
    """As JSON does, so that an answer in JSON means the same on a terminal."""
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\u{0xD7C0 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


_SPELLING = _Spelling({ord("\n"): "\n", ord("\t"): "\t", **_OWN})


def escape(text: str) -> str:
    """For a terminal: one that gets the text can be steered by nothing in it but ESCAPE and RETURN."""
    if text.isascii() and text.isprintable():
        return text
    return text.replace("\r\n", "\n").translate(_SPELLING)


class Printer:
    """A text stream like the one it is given."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_terminal = stream.isatty()

    def write(self, text: str) -> int:
        if self._is_terminal:
            self._stream.write(escape(text))
        else:
            own = ESCAPE in text or RETURN in text  # colours that were asked for
            self._stream.write(text.translate(_OWN) if own else text)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
