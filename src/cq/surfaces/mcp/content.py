"""An answer as the protocol's content: first the card, then one piece per file, each with its priority."""

from __future__ import annotations

from cq.model.answer import Answer, Finding
from cq.model.status import Status
from cq.surfaces.render.answer import render_card, render_finding
from cq.surfaces.render.status import render_status

Piece = tuple[str, float]  # text, priority


def count_tokens(text: str) -> int:
    """An estimate, the same as everywhere in cq: a token per four bytes."""
    return -(-len(text.encode("utf-8", "replace")) // 4)


def render_pieces(answer: Answer | Status) -> list[Piece]:
    """The best file first; priorities never rise. The first line counts the tokens of all pieces together."""
    if isinstance(answer, Status):
        return [(render_status(answer), 1.0)]
    files: dict[str, list[Finding]] = {}
    loose: list[str] = []
    for section in answer.sections:
        for finding in section.findings:
            if finding.location is not None:
                files.setdefault(finding.location.path, []).append(finding)
        words = [finding.message for finding in section.findings if finding.location is None]
        loose += [f"{section.title}: {'; '.join(words)}"] if words else []
        loose += [f"{section.title}: {section.total:,}, not listed"] if section.collapsed and not words else []
    pieces = [(_render_file(path, found), _priority(at)) for at, (path, found) in enumerate(files.items())]
    card = "\n".join([*render_card(answer), *loose])
    rest = sum(count_tokens(text) for text, _ in pieces)
    head, tokens = "", -1
    while (used := rest + count_tokens(f"{head}\n{card}")) != tokens:  # the number is part of what it counts
        head, tokens = _render_head(answer, len(files), used), used
    return [(f"{head}\n{card}", 1.0), *pieces]


def _render_file(path: str, found: list[Finding]) -> str:
    """The path once, then what is found in it by line and column."""
    rows = [f"// {path}"]
    for finding in found:
        head, *rest = render_finding(finding)
        rows += [head.lstrip(" ").removeprefix(f"{path}:"), *rest]
    return "\n".join(rows)


def _priority(at: int) -> float:
    return max(round(0.95 - 0.05 * at, 2), 0.1)


def _render_head(answer: Answer, files: int, tokens: int) -> str:
    query = answer.summary.get("query", "")
    budget = answer.insight.budget if answer.insight else None
    of = f"/{budget.tokens:,}" if budget and budget.tokens else ""
    page = f" | page {budget.page} of {budget.pages}" if budget and budget.pages > 1 else ""
    fresh = "from files on disk, no index yet" if not answer.run.generation else f"generation {answer.run.generation}"
    shown = f"{answer.found} found, {files} files shown{page}"
    return f'{answer.command}: "{query}" | {shown} | {tokens:,}{of} tokens | {fresh}'
