"""What the linker reads of documents is what a change of them is told by."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cq.graph.engine.tables import BOUND, TABLES, Arg, Table
from cq.graph.engine.view import View
from cq.graph.unit import Unit
from cq.indexing.read import extract_source
from cq.languages.linking import link_units
from cq.model.source import SourceFile


def read_units(paths: list[Path], language: str) -> list[Unit]:
    facts = [extract_source(SourceFile(path.name, language, path.read_bytes())) for path in paths]
    return [
        Unit(f"{path.parent.name}/{path.name}", each.code)
        for path, each in zip(paths, facts, strict=True)
        if each.code is not None
    ]


def test_no_answer_is_left_out_of_what_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that readers see and the list of all rows has not would be a change that nobody notices."""
    asked: set[tuple[View, str, int]] = set()
    ask, note_bound = View._ask, View._note_bound

    def spy(self: View, table: Table[Arg, object], arg: Arg) -> object:
        row = ask(self, table, arg)
        if row and [*table.items(row)]:
            asked.add((self, table.name, table.key(self.raw, arg)))
        return row

    def spy_bound(self: View, scope: int, name: str) -> None:
        note_bound(self, scope, name)
        if not self.is_local(scope) and [*BOUND.items(BOUND.read(self.raw, (scope, name)))]:
            asked.add((self, BOUND.name, BOUND.key(self.raw, (scope, name))))

    monkeypatch.setattr(View, "_ask", spy)
    monkeypatch.setattr(View, "_note_bound", spy_bound)
    units = read_units(sorted(Path(asyncio.__file__).parent.glob("*.py")), "python")
    link_units(units)
    listed = {unit: {find_key() for table in TABLES for find_key, _ in table.list_rows(unit)} for unit in units}
    assert [(view.path, name) for view, name, key in asked if key not in listed[view.raw]] == []
    assert len({name for _, name, _ in asked}) > 9
