"""A file as read: its UTF-8 text, its language, and the documents embedded in it."""

from __future__ import annotations

import msgspec


class Problem(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Something about a file that could not be done in full: where, and why in one sentence."""

    code: str
    message: str
    start: int = 0
    end: int = 0


# Codes of problems for which facts are lacking that the text would give. Of what is itself broken (`syntax`) none are.
LACKING = frozenset({"internal", "crash", "parse", "depth"})


class Segment(msgspec.Struct, frozen=True, array_like=True):
    """A document inside a document: a script of a Vue file, a fenced block of Markdown.

    `ranges` are byte ranges of the container, in order; more than one where every line carries a
    prefix that is not part of the code (`> ` of a quoted fence, the indent of a list item).
    """

    kind: str  # "script", "style", "frontmatter", "fence", "template"
    language: str  # effective language: `tsx` stays `tsx`
    ranges: tuple[tuple[int, int], ...]
    segments: tuple[Segment, ...] = ()  # embedded in this one; their offsets are the file's too

    @property
    def start(self) -> int:
        return self.ranges[0][0]

    @property
    def end(self) -> int:
        return self.ranges[-1][1]

    def text(self, container: bytes) -> bytes:
        if len(self.ranges) == 1:
            start, end = self.ranges[0]
            return container[start:end]
        return b"".join(container[start:end] for start, end in self.ranges)


class SourceFile(msgspec.Struct, frozen=True):
    """`text` is the file as UTF-8 without a byte-order mark; every offset in the product refers to it."""

    path: str  # relative to the root, POSIX, NFC
    language: str
    text: bytes
    encoding: str = "utf-8"
    problems: tuple[Problem, ...] = ()


class Skip(msgspec.Struct, frozen=True):
    """A file that is not read, and why: binary, too_large, minified, generated, unreadable, link_out, link_loop, ..."""

    path: str
    reason: str
    detail: str = ""


def explain_skip(skip: Skip) -> str:
    """Why, in a few words."""
    return skip.reason.replace("_", " ") + (f", {skip.detail}" if skip.detail else "")
