"""What a process that lives on keeps from one question to the next, and when it forgets it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from cq import Workspace
from cq.indexing.index import Index
from cq.indexing.refresh import RACY_NS
from cq.indexing.resident import Resident
from cq.model.answer import Answer, Run
from cq.store import warm
from cq.store.trace import Trace
from cq.surfaces import idle


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Iterator[Resident]:
    monkeypatch.setattr(warm, "MOST_BYTES", 1 << 60)  # the process of the tests is larger than one that answers
    resident = Resident()
    monkeypatch.setattr(resident, "is_unchanged", lambda _: False)
    monkeypatch.setattr(resident, "note_refresh", lambda _: None)
    yield resident
    while resident.readers:
        resident.readers.popitem()[1].close()
    for key in list(resident.watches.kept):
        resident.watches.forget(key)


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


def ask(kept: Resident, root: Path, name: str = "save") -> Answer:
    with Workspace.open(root, index_dir=root.parent / "index", resident=kept) as opened:
        return msgspec.structs.replace(opened.calls(name), run=Run())


def test_a_reader_and_what_it_decoded_are_kept(kept: Resident, root: Path):
    first = ask(kept, root)
    (reader,) = kept.readers.values()
    memory = reader.memory
    assert ask(kept, root) == first
    assert list(kept.readers.values()) == [reader]
    assert reader.memory is memory
    assert memory is not None
    assert {"files", ("memory", 1), "answers"} <= memory.keys()


def test_what_was_written_is_seen(kept: Resident, root: Path):
    assert ask(kept, root).summary["call_sites"] == 1
    (reader,) = kept.readers.values()
    before = reader.memory
    (root / "more.py").write_text("from db import save\nsave(2)\nsave(3)\n")
    assert ask(kept, root).summary["call_sites"] == 3
    assert reader.memory is not before


def test_an_index_that_was_made_anew_is_opened_anew(kept: Resident, root: Path):
    ask(kept, root)
    (reader,) = kept.readers.values()
    with Workspace.open(root, index_dir=root.parent / "index", resident=kept) as workspace:
        index = Path(workspace.status().index)
    for path in index.parent.glob(f"{index.name}*"):
        path.unlink()
    assert ask(kept, root).summary["call_sites"] == 1
    (other,) = kept.readers.values()
    assert other is not reader


def test_two_at_once_are_two(kept: Resident, root: Path):
    with Workspace.open(root, index_dir=root.parent / "index", resident=kept) as workspace:
        rows = workspace.symbols()
        first = next(rows)
        assert ask(kept, root).summary["call_sites"] == 1
        assert "save" in {first.symbol.name, *(row.symbol.name for row in rows)}
    assert len(kept.readers) == 1


def test_beyond_a_limit_nothing_is_kept(kept: Resident, root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(warm, "MOST_BYTES", 0)
    assert ask(kept, root).summary["call_sites"] == 1
    assert not kept.readers


def test_what_was_decoded_outlasts_a_change_elsewhere(kept: Resident, root: Path):
    ask(kept, root)
    (reader,) = kept.readers.values()
    assert reader.memory is not None
    (held,) = (held for (path, _, _), held in reader.memory["files"].items() if path == "db.py")
    (root / "more.py").write_text("from db import save\nsave(2)\n")
    (root / "app.py").write_text("from db import save\nsave(1)\nsave(2)\n")
    assert ask(kept, root).summary["call_sites"] == 3
    assert [one for (path, _, _), one in reader.memory["files"].items() if path == "db.py"] == [held]


def test_a_neighborhood_notes_what_it_reads_although_files_are_at_hand(kept: Resident, root: Path):
    def read() -> int:
        with Workspace.open(root, index_dir=root.parent / "index", resident=kept) as workspace:
            return workspace.neighborhood("save").insight.neighborhood["callers"].total

    ask(kept, root)
    assert read() == 1
    (root / "app.py").write_text("from db import save\nsave(1)\n\ndef more():\n    save(2)\n")
    assert read() == 2


def test_few_rows_are_looked_up_by_their_key(kept: Resident, root: Path):
    """Left to itself SQLite would go over every file of the tree to have them in order."""
    ask(kept, root)
    (reader,) = kept.readers.values()
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
def test_between_questions_what_changed_is_taken_up_and_the_index_decoded(
    kept: Resident, root: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("is_unchanged", "note_refresh"):
        monkeypatch.setattr(kept, name, getattr(Resident, name).__get__(kept))
    monkeypatch.setattr(idle, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(warm, "READY_BYTES", 1 << 60)
    ask(kept, root)
    pieces = idle.stay_ready(kept)
    for _ in range(10):
        next(pieces)
    (reader,) = kept.readers.values()
    assert reader.memory is not None
    held = {path: set(file._parts) for (path, _, _), file in reader.memory["files"].items()}
    assert {"text", "symbols", "calls", "lines"} <= held["db.py"] & held["app.py"]
    if not kept.watches.kept:
        pytest.skip("no events on the file system of the temporary directory")
    (root / "more.py").write_text("from db import save\nsave(2)\n")
    for _ in range(10):
        next(pieces)
    pieces.close()
    monkeypatch.setattr(Index, "refresh", lambda *_, **__: pytest.fail("it was looked again"))
    assert ask(kept, root).summary["call_sites"] == 2


def test_beyond_a_limit_half_is_forgotten_first(kept: Resident, root: Path, monkeypatch: pytest.MonkeyPatch):
    ask(kept, root)
    (reader,) = kept.readers.values()
    assert reader.memory is not None
    last = list(reader.memory["files"])[-1]
    sizes = iter([2, 0])
    monkeypatch.setattr(warm, "measure", lambda: next(sizes))
    monkeypatch.setattr(warm, "MOST_BYTES", 1)
    ask(kept, root)
    assert list(kept.readers.values()) == [reader]
    assert list(reader.memory["files"]) == [last]
    assert "answers" not in reader.memory
