"""Short pieces of source for people and for keys: folded to one line, clipped to a length."""

from __future__ import annotations

ELLIPSIS = "…"


def clip(text: bytes, start: int, end: int, limit: int) -> str:
    """The slice with white space folded, at most `limit` characters; cost is bounded by the limit, not by the slice."""
    if end - start <= limit:
        piece = text[start:end].decode("utf-8", "replace")
        return piece if piece.isidentifier() else " ".join(piece.replace("\\\n", " ").split())
    # Four bytes per character at most, and room for folded white space: a chain of ten thousand
    # calls must not cost the square of its length.
    cut = min(end, start + limit * 8)
    piece = " ".join(text[start:cut].decode("utf-8", "ignore").replace("\\\n", " ").split())
    if len(piece) > limit:
        return piece[: limit - 1] + ELLIPSIS
    return piece + ELLIPSIS if cut < end and len(piece) < limit else piece


def fold_lines(piece: str) -> str:
    """A multi-line signature as one line: `f(\\n  a,\\n)` reads `f(a)`; runs of blanks inside a line stay."""
    if "\n" not in piece:
        return piece.strip()
    folded: list[str] = []
    for line in piece.split("\n"):
        line = line.strip()
        if not line:
            continue
        if folded:
            if line[0] in ")]":
                folded[-1] = folded[-1].removesuffix(",")
            elif folded[-1][-1] not in "([{":
                folded.append(" ")
        folded.append(line)
    return "".join(folded)
