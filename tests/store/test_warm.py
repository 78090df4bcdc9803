"""What a process that lives on keeps from one question to the next, and when it forgets it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from cq import Workspace, workspace
from cq.indexing import events
from cq.indexing.refresh import RACY_NS
from cq.model.answer import Answer, Run
from cq.store import warm
from cq.store.trace import Trace
from cq.workspace import stay_ready


@pytest.fixture(autouse=True)
def _kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(warm, "enabled", True)
    monkeypatch.setattr(warm, "MOST_BYTES", 1 << 60)  # the process of the tests is larger than one that answers
    yield
    while warm._kept:
        warm._kept.popitem()[1].close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    root.mkdir()
    (root / "db.py").write_text("def save(row): ...\n")
    (root / "app.py").write_text("from db import save\nsave(1)\n")
    for path in (*root.iterdir(), root):
        os.utime(path, (1, 1))
    settle(root)
    return root


def settle(root: Path) -> None:
    """Until no file is so young that it is looked at, and noted, again."""
    while time.time_ns() - max(path.stat().st_ctime_ns for path in (root, *root.iterdir())) < 2 * RACY_NS:
        time.sleep(0.02)


def ask(root: Path, name: str = "save") -> Answer:
    with Workspace.open(root, index_dir=root.parent / "index") as opened:
        return msgspec.structs.replace(opened.calls(name), run=Run())


def test_a_reader_and_what_it_decoded_are_kept(root: Path):
    first = ask(root)
    (reader,) = warm._kept.values()
    memory = reader.memory
    assert ask(root) == first
    assert list(warm._kept.values()) == [reader]
    assert reader.memory is memory
    assert memory is not None
    assert {"files", ("memory", 1), "answers"} <= memory.keys()


def test_what_was_written_is_seen(root: Path):
    assert ask(root).summary["call_sites"] == 1
    (reader,) = warm._kept.values()
    before = reader.memory
    (root / "more.py").write_text("from db import save\nsave(2)\nsave(3)\n")
    assert ask(root).summary["call_sites"] == 3
    assert reader.memory is not before


def test_an_index_that_was_made_anew_is_opened_anew(root: Path):
    ask(root)
    (reader,) = warm._kept.values()
    with Workspace.open(root, index_dir=root.parent / "index") as workspace:
        index = Path(workspace.status().index)
    for path in index.parent.glob(f"{index.name}*"):
        path.unlink()
    assert ask(root).summary["call_sites"] == 1
    (other,) = warm._kept.values()
    assert other is not reader


def test_two_at_once_are_two(root: Path):
    with Workspace.open(root, index_dir=root.parent / "index") as workspace:
        rows = workspace.symbols()
        first = next(rows)
        assert ask(root).summary["call_sites"] == 1
        assert "save" in {first.symbol.name, *(row.symbol.name for row in rows)}
    assert len(warm._kept) == 1


def test_beyond_a_limit_nothing_is_kept(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(warm, "MOST_BYTES", 0)
    assert ask(root).summary["call_sites"] == 1
    assert not warm._kept


def test_what_was_decoded_outlasts_a_change_elsewhere(root: Path):
    ask(root)
    (reader,) = warm._kept.values()
    assert reader.memory is not None
    (held,) = (held for (path, _, _), held in reader.memory["files"].items() if path == "db.py")
    (root / "more.py").write_text("from db import save\nsave(2)\n")
    (root / "app.py").write_text("from db import save\nsave(1)\nsave(2)\n")
    assert ask(root).summary["call_sites"] == 3
    assert [one for (path, _, _), one in reader.memory["files"].items() if path == "db.py"] == [held]


def test_a_neighborhood_notes_what_it_reads_although_files_are_at_hand(root: Path):
    def read() -> int:
        with Workspace.open(root, index_dir=root.parent / "index") as workspace:
            return workspace.neighborhood("save").insight.neighborhood["callers"].total

    ask(root)
    assert read() == 1
    (root / "app.py").write_text("from db import save\nsave(1)\n\ndef more():\n    save(2)\n")
    assert read() == 2


def test_few_rows_are_looked_up_by_their_key(root: Path):
    """Left to itself SQLite would go over every file of the tree to have them in order."""
    ask(root)
    (reader,) = warm._kept.values()
    trace = Trace()
    with reader:
        tree = reader.tree()
        assert tree is not None
        traced = reader.traced(trace)
        traced.find_referrers(tree.id, 1)
        traced.has_referrers(tree.id, 1)
        traced.find_methods(tree.id, "save")
        plans = [reader._db.execute(f"EXPLAIN QUERY PLAN {sql}", values).fetchall() for sql, values in trace._asked]
    first = [rows[0][3] for rows in plans]
    assert sum("t USING PRIMARY KEY (key=?" in row for row in first) == 2
    assert sum("m USING PRIMARY KEY (name=?" in row for row in first) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux")
def test_between_questions_what_changed_is_taken_up_and_the_index_decoded(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(events, "enabled", True)
    monkeypatch.setattr(workspace, "_QUIET_SECONDS", 0.0)
    monkeypatch.setattr(warm, "READY_BYTES", 1 << 60)
    ask(root)
    pieces = stay_ready()
    for _ in range(10):
        next(pieces)
    (reader,) = warm._kept.values()
    assert reader.memory is not None
    held = {path: set(file._parts) for (path, _, _), file in reader.memory["files"].items()}
    assert {"text", "symbols", "calls", "lines"} <= held["db.py"] & held["app.py"]
    if not events._watches:
        pytest.skip("no events on the file system of the temporary directory")
    (root / "more.py").write_text("from db import save\nsave(2)\n")
    for _ in range(10):
        next(pieces)
    pieces.close()
    monkeypatch.setattr(Workspace, "refresh", lambda *_, **__: pytest.fail("it was looked again"))
    assert ask(root).summary["call_sites"] == 2
    for key in list(events._watches):
        events.forget(key)


def test_beyond_a_limit_half_is_forgotten_first(root: Path, monkeypatch: pytest.MonkeyPatch):
    ask(root)
    (reader,) = warm._kept.values()
    assert reader.memory is not None
    last = list(reader.memory["files"])[-1]
    sizes = iter([2, 0])
    monkeypatch.setattr(warm, "measure", lambda: next(sizes))
    monkeypatch.setattr(warm, "MOST_BYTES", 1)
    ask(root)
    assert list(warm._kept.values()) == [reader]
    assert list(reader.memory["files"]) == [last]
    assert "answers" not in reader.memory
