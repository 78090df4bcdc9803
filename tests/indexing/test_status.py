"""What a workspace says about its index, and how fresh an answer calls itself."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Event

import pytest

from cq import Workspace
from cq.identity import identify
from cq.indexing import watch
from cq.indexing.location import find_cache_dir, find_key
from cq.indexing.refresh import Report
from cq.model.errors import SourceError, StoreError
from cq.store import database


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CQ_INDEX_DIR", raising=False)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    root.mkdir()
    (root / "a.py").write_text("import b\n\ndef a(x):\n    return b.run(x)\n\na(1)\n")
    (root / "b.py").write_text("def run(x): return x\n")
    (root / "doc.md").write_text("# Title\n\n```python\nprint(1)\n```\n")
    (root / "data.bin").write_bytes(b"\0\1\2")
    return root


def test_what_is_indexed(root: Path):
    with Workspace.open(root) as workspace:
        status = workspace.status()
    assert (status.files, status.skipped) == (3, {"binary": 1})
    assert [(row.language, row.files, row.lines) for row in status.languages] == [("python", 2, 7), ("markdown", 1, 5)]
    assert "calls" in status.languages[0].capabilities
    assert status.counts["calls"] == 3
    assert status.counts["documents"] == 4
    assert status.index_bytes > 0
    assert status.degraded == ()
    assert (status.freshness.generation, status.freshness.check, status.freshness.dirty) == (1, "refreshed", False)


def test_an_empty_directory_has_an_empty_index(tmp_path: Path):
    (tmp_path / "empty").mkdir()
    with Workspace.open(tmp_path / "empty") as workspace:
        status = workspace.status()
        assert (status.files, status.languages, status.bytes) == (0, (), 0)
        assert list(workspace.symbols()) == []


def test_every_question_sees_the_files_as_they_are(root: Path):
    with Workspace.open(root) as workspace:
        assert [row.path for row in workspace.files()] == ["a.py", "b.py", "doc.md"]
        (root / "b.py").write_text("def other(x): return x\n")
        (root / "doc.md").unlink()
        assert "other" in [row.symbol.name for row in workspace.symbols()]
        assert workspace.text("b.py") == b"def other(x): return x\n"
        assert workspace.status().files == 2


def test_without_refresh_the_answer_says_how_stale_it_is(root: Path):
    with Workspace.open(root) as workspace:
        workspace.refresh()
    with Workspace.open(root, auto_refresh=False) as workspace:
        # Read within the same tick as written: time stamps prove nothing, the text does.
        assert workspace.status().freshness.dirty is False
        (root / "new.py").write_text("x = 1\n")
        (root / "a.py").write_text("changed = 1\n")
        (root / "b.py").touch()
        (root / "doc.md").unlink()
        (root / "more.bin").write_bytes(b"\0\1")
        found = workspace.status().freshness
        assert (found.added, found.changed, found.removed, found.dirty, found.check) == (1, 1, 1, True, "compared")
        assert workspace.text("doc.md").startswith(b"# Title")
        assert found.generation == workspace.status().freshness.generation == 1


def test_without_refresh_and_without_index_there_is_no_answer(root: Path):
    with Workspace.open(root, auto_refresh=False) as workspace:
        with pytest.raises(StoreError, match="no index"):
            workspace.status()
        with pytest.raises(StoreError, match="no index"):
            next(workspace.symbols())


def test_a_recent_check_is_trusted_when_that_is_allowed(root: Path):
    with Workspace.open(root) as workspace:
        workspace.refresh()
    (root / "b.py").write_text("def other(x): return x\n")
    with Workspace.open(root, max_stale=60) as workspace:
        freshness = workspace.status().freshness
        assert (freshness.check, freshness.dirty) == ("recent", None)
        assert workspace.text("b.py") == b"def run(x): return x\n"
        # Other settings are another check.
    with Workspace.open(root, max_stale=60, exclude=("doc.md",)) as workspace:
        assert workspace.status().freshness.check == "refreshed"
    with Workspace.open(root, max_stale=0.001) as workspace:
        time.sleep(0.01)
        assert workspace.status().freshness.check == "refreshed"
        assert workspace.text("b.py") == b"def other(x): return x\n"


def test_while_another_process_writes_the_last_generation_answers(root: Path):
    with Workspace.open(root) as workspace:
        status = workspace.status()
        (root / "b.py").write_text("def other(x): return x\n")
        with database.writer_lock(Path(status.index), wait=False) as had:
            assert had
            busy = workspace.status()
            assert workspace.text("b.py") == b"def run(x): return x\n"
        assert (busy.freshness.busy, busy.freshness.dirty, busy.freshness.changed) == (True, True, 1)
        assert [event.category for event in busy.degraded] == ["busy"]
        after = workspace.status()
        assert (after.freshness.busy, after.freshness.generation) == (False, 2)


def test_rows_carry_their_identity(root: Path):
    with Workspace.open(root) as workspace:
        source, facts = workspace.facts(root / "a.py")
        names = identify("a.py", source.text, facts)
        symbols = [row for row in workspace.symbols() if row.path == "a.py"]
        calls = [row for row in workspace.call_sites() if row.path == "a.py"]
        chunks = [row for row in workspace.chunks() if row.path == "a.py"]
        assert [row.symbol_id for row in symbols] == list(names.symbol_ids)
        assert [row.symbol for row in symbols] == list(facts.symbols)
        assert [row.chunk_uid for row in chunks] == list(names.chunk_uids)
        # Code at root level belongs to the module chunk, code in a function to that of the function.
        function = next(row.chunk_uid for row in symbols if row.symbol.name == "a")
        assert [(row.call.callee, row.caller_chunk_uid) for row in calls] == [
            ("b.run", function),
            ("a", names.chunk_uids[0]),
        ]
        assert [row.location.start_line for row in calls] == [4, 6]
        assert len({row.call_site_id for row in calls}) == 2
        embedded = [row for row in workspace.call_sites() if row.path == "doc.md"]
        assert [row.call.callee for row in embedded] == ["print"]
        assert embedded[0].document.startswith("doc.md#seg:seg1:")


def test_an_iteration_sees_one_generation_and_may_run_beside_another(root: Path):
    with Workspace.open(root) as workspace:
        first = workspace.files()
        assert next(first).path == "a.py"
        (root / "b.py").unlink()
        assert [row.path for row in workspace.files()] == ["a.py", "doc.md"]
        assert [row.path for row in first] == ["b.py", "doc.md"]


def test_a_closed_workspace_gives_an_error_rather_than_fewer_rows(root: Path):
    with Workspace.open(root) as workspace:
        rows, unread = workspace.files(), workspace.symbols()
        next(rows)
    for ask in (lambda: next(rows), lambda: next(unread), workspace.status, workspace.refresh):
        with pytest.raises(StoreError, match="closed"):
            ask()


def test_a_text_that_is_not_indexed_says_why(root: Path):
    with Workspace.open(root) as workspace:
        with pytest.raises(SourceError, match="not indexed: binary"):
            workspace.text("data.bin")
        with pytest.raises(SourceError, match="not indexed"):
            workspace.text("../a.py")


def test_a_damaged_index_is_made_again_with_a_note(root: Path):
    with Workspace.open(root) as workspace:
        workspace.refresh()
    cache = find_cache_dir()
    assert cache is not None
    (cache / find_key(root) / "index.db").write_bytes(b"no database" * 1000)
    with Workspace.open(root) as workspace:
        status = workspace.status()
    assert status.files == 3
    assert [event.category for event in status.degraded] == ["rebuilt"]


def test_the_doctor_finds_what_is_wrong(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, body in (("git", "echo git version 9"), ("rg", "exit 1"), ("node", "echo v1; echo more")):
        (tools / name).write_text(f"#!/bin/sh\n{body}\n")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    (root / "cq.toml").write_text("[index]\nexlude = []\n")
    (tmp_path / "cache").write_text("in the way")
    with Workspace.open(root) as workspace:
        checks = {(check.area, check.name): check for check in workspace.doctor()}
    assert checks["tools", "git"].detail == "git version 9"
    assert checks["tools", "rg"].state == "missing"
    assert checks["tools", "node"].detail == "v1"
    assert checks["environment", "sqlite"].state == "ok"
    assert checks["configuration", "files"].state == "error"
    assert "exclude" in checks["configuration", "files"].advice
    assert checks["cache", "directory"].state == "warning"
    assert checks["cache", "directory"].advice


def test_the_doctor_finds_indexes_of_repositories_that_are_gone(root: Path, tmp_path: Path):
    gone = tmp_path / "gone"
    gone.mkdir()
    for path in (root, gone):
        with Workspace.open(path) as workspace:
            workspace.refresh()
    gone.rmdir()
    with Workspace.open(root) as workspace:
        old = [check for check in workspace.doctor() if check.name == "old index"]
    assert [find_key(gone) in check.advice for check in old] == [True]


def test_watching_without_events_looks_again_and_again(root: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise RuntimeError("OS file watch limit reached")

    monkeypatch.setattr(watch, "_find_events", fail)
    monkeypatch.setattr(watch, "POLL_SECONDS", 0.01)
    notes: list[str] = []
    stop = Event()
    with Workspace.open(root) as workspace:
        reports = workspace.watch(stop=stop, on_note=notes.append)
        assert next(reports).added == 3
        (root / "b.py").unlink()
        assert next(reports).removed == 1
        stop.set()
        assert list(reports) == []
    assert len(notes) == 1
    assert "watch limit" in notes[0]


def test_watching_does_not_forget_what_moved_while_another_process_wrote(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(watch, "_find_events", lambda *_: iter([True, False, False, False]))
    answers = iter([Report(1, added=1), Report(1, busy=True), Report(1, busy=True), Report(2, changed=1)])
    reports = watch.watch_tree(
        root,
        lambda: next(answers),
        Event(),
        ignore=root / "own",
        find_outside=tuple,
        debounce_ms=1,
        on_note=pytest.fail,
    )
    assert [report.generation for report in reports] == [1, 2]
