"""An answer of `cq find` as text or as the protocol's content: the connection graph first, then the snapshots."""

from __future__ import annotations

from typing import Any

from cq.model.find import FindAnswer
from cq.questions.find.layout import render_graph, render_snapshot
from cq.surfaces.render import render_block, render_heading, show_path
from cq.surfaces.render.answer import render_notes, render_nothing

Piece = tuple[str, float]  # text, priority


def render_find(answer: FindAnswer, *, explain: bool = False) -> str:
    """For people: the graph as it is, every snapshot in a fence."""
    if not answer.results:
        return "\n".join([*render_nothing(answer), *render_notes(answer)]) + "\n"
    lines = [_graph(answer), ""]
    lines += [*_explain(answer), ""] if explain else []
    for snapshot in answer.snapshots:
        lines += [render_heading(show_path(snapshot.file)), ""]
        lines += [render_block(snapshot.source.rstrip("\n").split("\n"), snapshot.language), ""]
    lines += render_notes(answer)
    return "\n".join(lines).rstrip("\n") + "\n"


def render_plain(answer: FindAnswer) -> str:
    """`path:line:col: text`, one per line, for pipes and editors."""
    return "".join(
        f"{show_path(row.file)}:{row.start_line}:{row.start_col}: {row.kind} {row.qualified_name}\n"
        for row in answer.results
    )


def render_pieces(answer: FindAnswer) -> list[Piece]:
    """The graph, then a piece per file; priorities fall with the score and never rise."""
    if not answer.results:
        return [("\n".join([*render_nothing(answer), *render_notes(answer)]), 1.0)]
    pieces = [(_graph(answer), 1.0)]
    priority = 0.99
    for snapshot in answer.snapshots:
        priority = round(min(priority - 0.01, max(snapshot.score, 0.1)), 2) if priority > 0.02 else 0.01
        pieces.append((render_snapshot(snapshot), priority))
    return pieces


def make_content(answer: FindAnswer) -> dict[str, Any]:
    """As a tool of the Model Context Protocol answers."""
    return {
        "content": [
            {"type": "text", "text": text, "annotations": {"audience": ["assistant"], "priority": priority}}
            for text, priority in render_pieces(answer)
        ]
    }


def _graph(answer: FindAnswer) -> str:
    return render_graph(answer, answer.summary["tokens"], answer.summary["budget"])


def _explain(answer: FindAnswer) -> list[str]:
    rows = [render_heading("Scores"), f"    mode {answer.summary['mode']}, {answer.summary['candidates']} candidates"]
    for result in answer.results:
        parts = result.parts
        kinds = ("rerank", "vector") if parts.vector else ("lexical", "body", "signature", "late", "rerank", "file")
        words = {kind: getattr(parts, kind) for kind in kinds}
        shown = ", ".join(f"{name} {value:.2f}" for name, value in words.items() if value)
        prior = f", × {parts.prior:g}" if parts.prior != 1 else ""
        rows.append(f"    [{result.rank}] {result.score:.2f} = {shown}{prior}  {result.qualified_name}")
    return rows
