"""An answer as the protocol's content: first the card, then one piece per file, each with its priority."""

from __future__ import annotations

from collections.abc import Callable

from cq.features.find.layout import render_graph
from cq.model.answer import Answer, Finding, Section
from cq.model.find import FindAnswer
from cq.model.status import Status
from cq.surfaces.render import find
from cq.surfaces.render.answer import render_card, render_finding, render_notes, render_section
from cq.surfaces.render.status import render_status

Piece = tuple[str, float]  # text, priority


def count_tokens(text: str) -> int:
    """An estimate, the same as everywhere in cq: a token per four bytes."""
    return -(-len(text.encode("utf-8", "replace")) // 4)


def render_pieces(answer: Answer | Status) -> list[Piece]:
    """The best file first; priorities never rise. The first line counts the tokens of all pieces together."""
    if isinstance(answer, Status):
        return [(render_status(answer), 1.0)]
    if isinstance(answer, FindAnswer) and answer.results:
        _, *pieces = find.render_pieces(answer)
        notes = "\n".join(["", *render_notes(answer)[1:], f"answered by find, {_describe_age(answer)}"])
        budget: int = answer.summary["budget"]
        return _count(pieces, lambda tokens: render_graph(answer, tokens, budget) + notes)
    parts = [part for part in answer.sections if any(row.location for row in part.findings)]
    if answer.command in _BY_FILE:
        files: dict[str, list[Finding]] = {}
        for part in parts:
            for row in part.findings:
                if row.location is not None:
                    files.setdefault(row.location.path, []).append(row)
        texts = [_render_file(path, found) for path, found in files.items()]
    else:
        texts = ["\n".join(render_section(part)) for part in parts]
    card = "\n".join([*render_card(answer), *_render_rest(answer, parts)])
    pieces = [(text, _priority(at)) for at, text in enumerate(texts)]
    shown = len({row.location.path for part in parts for row in part.findings if row.location})
    return _count(pieces, lambda tokens: f"{_render_head(answer, shown, tokens)}\n{card}")


# Answers whose findings are lines of files; in the others it matters what is listed as what.
_BY_FILE = frozenset({"search", "calls", "q", "read", "references", "diagnostics"})


def _count(pieces: list[Piece], render: Callable[[int], str]) -> list[Piece]:
    """With a first piece that is told how much all cost together, itself included."""
    rest = sum(count_tokens(text) for text, _ in pieces)
    tokens, text = -1, ""
    while (used := rest + count_tokens(text)) != tokens:
        tokens, text = used, render(used)
    return [(text, 1.0), *pieces]


def _render_rest(answer: Answer, parts: list[Section]) -> list[str]:
    """What has no place: counts, commands, and sections that are counted only."""
    rows: list[str] = []
    for section in answer.sections:
        if (section in parts and answer.command not in _BY_FILE) or section.kind in _FOR_PEOPLE:
            continue
        words = [finding.message for finding in section.findings if finding.location is None]
        rows += [f"{section.title}: {'; '.join(words)}"] if words else []
        rows += [f"{section.title}: {section.total:,}, not listed"] if section.total and not section.findings else []
    return rows


_FOR_PEOPLE = frozenset({"followups", "suggested_followups", "provenance"})  # commands to paste, and ids


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
    more = f", page={budget.page + 1} has more" if budget and budget.page < budget.pages else ""
    shown = f"{answer.found} found, {files} files shown{page}{more}"
    return f'{answer.command}: "{query}" | {shown} | {tokens:,}{of} tokens | {_describe_age(answer)}'


def _describe_age(answer: Answer) -> str:
    generation = answer.run.generation
    return f"generation {generation}" if generation else "from files on disk, no index yet"
