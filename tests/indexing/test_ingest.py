"""An index that another program made is evidence: of the texts it was made from, and of what we left open."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cq.model.answer import CallDetails
from cq.model.errors import StoreError
from cq.questions.references import ReferencesOptions
from cq.workspace import Workspace
from tests.store.conftest import write_files
from tests.support.fixture import parse_fixture
from tests.support.scip import new_index

SHOP = """
#- base.py
class Base:
    def close(self): ...
class Other:
    def close(self): ...
def known(): ...
#- app.py
from base import known
def run(thing):
    "ä"; thing.close()
    known()
"""


@pytest.fixture
def shop(tmp_path: Path) -> Workspace:
    root = write_files(tmp_path / "repo", parse_fixture(SHOP).files)
    return Workspace.open(root, index_dir=tmp_path / "index")


def make(**changes: Any) -> Any:
    """As a compiler would say it: `thing` is an Other."""
    index = new_index()
    base = index.documents.add(relative_path="base.py")
    base.occurrences.add(range=[0, 6, 10], symbol="x . . . base/Base#", symbol_roles=1)
    base.occurrences.add(range=[1, 8, 13], symbol="x . . . base/Base#close().", symbol_roles=1)
    base.occurrences.add(range=[2, 6, 11], symbol="x . . . base/Other#", symbol_roles=1)
    base.occurrences.add(range=[3, 8, 13], symbol="x . . . base/Other#close().", symbol_roles=1)
    app = index.documents.add(relative_path=changes.get("path", "app.py"))
    app.occurrences.add(range=[1, 4, 7], symbol="x . . . app/run().", symbol_roles=1)
    app.occurrences.add(range=[2, 15, 20], symbol="x . . . base/Other#close().")
    app.occurrences.add(range=[3, 4, 9], symbol=changes.get("known", "x . . . base/nothing()."))
    return index


def write(index: Any, path: Path) -> Path:
    path.write_bytes(index.SerializeToString())
    return path


def say(workspace: Workspace, target: str) -> list[tuple[str, ...]]:
    answer = workspace.calls(target)
    rows = [f.details for section in answer.sections for f in section.findings if isinstance(f.details, CallDetails)]
    return [(row.status, *row.evidence) for row in rows]


def test_what_was_open_is_settled(shop: Workspace, tmp_path: Path):
    assert say(shop, "Other.close") == [("possible", "name")]
    report = shop.ingest(write(make(), tmp_path / "index.scip"))
    assert (report.documents, report.taken, report.stale, report.unknown) == (2, 2, 0, 0)
    assert (report.definitions, report.calls, report.conflicts) == (5, 1, 0)
    assert say(shop, "Other.close") == [("certain", "scip")]
    assert say(shop, "Base.close") == []
    assert shop.validate(strict=True).ok
    shop.export(tmp_path / "out")
    assert shop.validate(artifacts=tmp_path / "out").ok
    shop.ingest(None)
    assert say(shop, "Other.close") == [("possible", "name")]


def test_the_index_outranks_us_and_says_so(shop: Workspace, tmp_path: Path):
    report = shop.ingest(write(make(known="x . . . base/Base#close()."), tmp_path / "index.scip"))
    assert [(row.place, row.ours, row.theirs) for row in report.first_conflicts] == [
        ("app.py:4", "base.py:known", "base.py:Base.close")
    ]
    assert say(shop, "known") == []
    assert say(shop, "Base.close") == [("certain", "scip")]


def test_what_was_taken_outlives_a_full_build_and_names_definitions(shop: Workspace, tmp_path: Path):
    shop.ingest(write(make(), tmp_path / "index.scip"))
    shop.refresh(full=True)
    assert say(shop, "Other.close") == [("certain", "scip")]
    shop.export(tmp_path / "out")
    text = "".join(path.read_text() for path in sorted((tmp_path / "out").rglob("symbols*.jsonl")))
    rows = [json.loads(line) for line in text.splitlines()]
    by_name = {
        name: sorted(row["symbolId"][:10] for row in rows if row["qualifiedName"] == name)
        for name in ("Other.close", "known")
    }
    assert by_name == {"Other.close": ["sym1:heur:", "sym1:scip:"], "known": ["sym1:heur:"]}
    assert shop.validate(artifacts=tmp_path / "out").ok


def test_another_text_is_no_evidence(shop: Workspace, tmp_path: Path):
    app = shop.root / "app.py"
    text = app.read_text()
    for changed in ("\n\n" + text, text.replace("run", "walk"), text[:20]):
        app.write_text(changed)
        report = shop.ingest(write(make(), tmp_path / "index.scip"))
        assert (report.taken, report.stale, report.calls) == (1, 1, 0)
    app.write_text(text)
    assert shop.ingest(write(make(path="gone.py"), tmp_path / "index.scip")).unknown == 1
    assert shop.ingest(tmp_path / "index.scip").calls == 0, "the second takes the place of the first"
    shop.ingest(write(make(), tmp_path / "index.scip"))
    (shop.root / "base.py").write_text("# new\n" + (shop.root / "base.py").read_text())
    assert say(shop, "Other.close") == [("possible", "name")], "what it was said about is gone"


def test_files_that_are_none(shop: Workspace, tmp_path: Path):
    (tmp_path / "bad.scip").write_bytes(b"\xff" * 40)
    for name in ("bad.scip", "none.scip"):
        with pytest.raises(StoreError, match="SCIP"):
            shop.ingest(tmp_path / name)


def test_our_own_index_handed_back_changes_no_references(tmp_path: Path):
    files = {
        "a.ts": "export class Base { constructor(x?: number) {} go() {} }\n"
        "export class Sub extends Base { constructor() { super(1); } go() { super.go(); } }\n"
        "export function make() { return new Sub(); }\n",
        "b.py": "class Base:\n    def __init__(self): ...\nclass Sub(Base):\n    def __init__(self):\n"
        "        super().__init__()\ndef make():\n    return Sub()\n",
    }
    root = write_files(tmp_path / "repo", files)
    targets = ("a.ts:Base", "a.ts:Sub", "b.py:Base", "b.py:Sub", "a.ts:make")

    def count(workspace: Workspace) -> dict[str, tuple[int, int, dict[str, int]]]:
        return {
            target: (
                workspace.references(ReferencesOptions(target, servers=False)).found,
                workspace.calls(target).found,
                workspace.find(f"symbol = {target.replace(':', ' > ')}").graph.nodes[0].references,
            )
            for target in targets
        }

    with Workspace.open(root, index_dir=tmp_path / "index") as workspace:
        before = count(workspace)
        workspace.export_scip(tmp_path / "own.scip")
        workspace.ingest(tmp_path / "own.scip")
        assert count(workspace) == before


@pytest.mark.parametrize(("encoding", "size"), [(0, 2), (1, 4), (2, 2), (3, 1)])
def test_columns_count_what_the_index_says(shop: Workspace, tmp_path: Path, encoding: int, size: int):
    """Behind a character of four bytes, two units or one; a column within a character, or behind the line, is none."""
    (shop.root / "app.py").write_text("def f(): ...\n'\U0001f600'; f(); f()\n")
    index = new_index()
    app = index.documents.add(relative_path="app.py", position_encoding=encoding)
    app.occurrences.add(range=[0, 4, 5], symbol="x . . . app/f().", symbol_roles=1)
    for start in (4 + size, 9 + size):
        app.occurrences.add(range=[1, start, start + 1], symbol="x . . . app/f().")
    assert shop.ingest(write(index, tmp_path / "index.scip")).calls == 2
    app.occurrences.add(range=[1, 4 + size, 14 + size], symbol="x . . . app/f().")
    assert shop.ingest(write(index, tmp_path / "index.scip")).stale == 1
