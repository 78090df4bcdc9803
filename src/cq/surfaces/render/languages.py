"""The capability table."""

from __future__ import annotations

from collections.abc import Sequence

from cq.language import LanguageRow
from cq.surfaces.render import render_table


def render_languages(rows: Sequence[LanguageRow]) -> str:
    """One line per language; the offers as words, so that the table can be searched."""
    cells = [[row.id, " ".join(row.extensions), row.grammar, ", ".join(row.capabilities)] for row in rows]
    return render_table(["language", "extensions", "grammar", "offers"], cells) + "\n"
