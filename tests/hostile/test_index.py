"""The index is the old one or the new one, whole, whatever is killed or damaged, and nothing that was handed over is
lost. The full size of what runs here for a few rounds is marked slow."""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
import sqlite3
import threading
from pathlib import Path

import msgspec
import pytest

from cq.indexing import refresh as pipeline
from cq.indexing.index import Index
from cq.indexing.refresh import Settings, refresh
from cq.model.errors import StoreError
from cq.questions.lsp import LspOptions
from cq.questions.path import PathOptions
from cq.questions.run.options import ReportOptions
from cq.questions.run.plan import parse_plan
from cq.questions.sig_impact import SignatureOptions
from cq.store import database, kept
from cq.store import head as heads
from cq.store.head import find_data, load_digests, load_head, save_head
from cq.store.lock import DRAFT
from cq.store.read import Reader
from cq.workspace import Workspace
from tests.support.index import build, dump
from tests.support.stress import COMMANDS, SOURCES, Bench, damage, edit, kill, make_root, race, write_scip

pytestmark = pytest.mark.slow

PACKAGES = ("pluggy", "iniconfig", "packaging", "_pytest")


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "bench", make_root(tmp_path / "repo"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_root(tmp_path / "repo", 4)


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return tmp_path / "i" / "index.db"


@pytest.mark.parametrize("name", ["full", "ingest"])
def test_killed_at_any_point(bench: Bench, name: str):
    kill(bench, name, 2)


@pytest.mark.full
@pytest.mark.parametrize("name", COMMANDS)
def test_a_hundred_kills(bench: Bench, name: str):
    kill(bench, name, 100)


def test_damage_costs_one_rebuild(bench: Bench):
    damage(bench, 4)


@pytest.mark.full
def test_a_hundred_damaged_indexes(bench: Bench):
    damage(bench, 100)


def test_damage_that_keeps_the_time_of_the_file(bench: Bench):
    damage(bench, 2, same_time=True)


def test_edits_of_any_kind(bench: Bench):
    edit(bench, 30, 15)


@pytest.mark.full
@pytest.mark.parametrize("name", PACKAGES)
def test_edits_of_real_packages(tmp_path: Path, name: str):
    source = Path(importlib.import_module(name).__file__ or "").parent
    shutil.copytree(source, tmp_path / "repo", ignore=shutil.ignore_patterns("__pycache__"))
    assert edit(Bench(tmp_path / "bench", tmp_path / "repo", scip=False), 250, 10) == 25


def test_readers_beside_writers(bench: Bench):
    counts = race(bench, 3, readers=3)
    assert counts["full"]
    assert counts["answers"]


@pytest.mark.full
def test_readers_beside_writers_for_two_minutes(bench: Bench):
    race(bench, 120)


def test_a_full_index_is_built_beside_the_old_one(root: Path, index: Path, monkeypatch: pytest.MonkeyPatch):
    build(index, root)
    before, old = dump(index, root), find_data(index)
    reader = Reader(database.connect(index), os.fspath(root))
    with contextlib.closing(reader), reader:
        tree = reader.tree()
        assert tree is not None
        real = pipeline.content_hash

        def look(text: bytes) -> str:
            assert dump(index, root) == before, "whoever asks meanwhile has the old one"
            return real(text)

        monkeypatch.setattr(pipeline, "content_hash", look)
        assert refresh(index, root, Settings(jobs=1), full=True).parsed == len(before["files"])
        monkeypatch.undo()
        assert find_data(index) != old
        assert not old.exists()
        assert len(list(reader.files(tree.id))) == len(before["files"]), "who reads the old one goes on reading it"
    assert dump(index, root) == before


def test_what_a_killed_build_left_is_removed(root: Path, index: Path):
    build(index, root)
    left = heads.name_data(index, 77)
    left.write_bytes(b"x" * 8192)
    draft = index.with_name(f"{DRAFT}index.db.1")
    draft.write_bytes(b"x")
    build(index, root)
    refresh(index, root, Settings(), full=True)
    assert not left.exists()
    assert not draft.exists()
    assert find_data(index) == heads.name_data(index, 78), "a number is never used twice"
    assert sorted(path.name for path in index.parent.glob("index-*.db")) == ["index-78.db"]


def test_a_directory_in_place_of_the_data_is_passed_over(root: Path, index: Path):
    build(index, root)
    before, data = dump(index, root), find_data(index)
    for path in (data, heads.name_data(index, 7)):
        path.unlink(missing_ok=True)
        path.mkdir()
    assert build(index, root).rebuilt
    assert find_data(index) == heads.name_data(index, 8)
    assert dump(index, root) == before


def test_a_failed_build_leaves_the_old_index(root: Path, index: Path, monkeypatch: pytest.MonkeyPatch):
    build(index, root)
    before = dump(index, root)

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(heads, "save_head", fail)
    monkeypatch.setattr(database, "save_head", fail)
    with pytest.raises(StoreError, match="No space"):
        refresh(index, root, Settings(), full=True)
    monkeypatch.undo()
    assert dump(index, root) == before
    assert len(list(index.parent.glob("index-*.db"))) == 1


def ingest(root: Path, index: Path, tmp_path: Path) -> list[tuple[object, ...]]:
    from cq.indexing.ingest import ingest_scip

    assert ingest_scip(index, root, write_scip(tmp_path / "x.scip")).calls == 1
    return read_evidence(index)


def read_evidence(index: Path) -> list[tuple[object, ...]]:
    with contextlib.closing(database.connect(index)) as connection:
        return sorted(connection.execute("SELECT * FROM evidence").fetchall())


@pytest.mark.parametrize("why", ["full", "format", "producer", "profile", "damage", "no data", "no head"])
def test_what_was_handed_over_survives_every_rebuild(root: Path, index: Path, tmp_path: Path, why: str):
    build(index, root)
    before = ingest(root, index, tmp_path)
    head = load_head(index)
    if why in ("format", "producer"):
        change = {"schema": 1} if why == "format" else {"producer": "another"}
        save_head(index, msgspec.structs.replace(head, **change), load_digests(index, head))
    elif why == "damage":
        with find_data(index).open("r+b") as file:
            file.seek(9000)
            file.write(b"\xff" * 20000)
    elif why == "no data":
        find_data(index).unlink()
    elif why == "no head":
        index.unlink()
    report = refresh(index, root, Settings(words=why != "profile"), full=why == "full")
    assert report.parsed
    assert read_evidence(index) == before


def test_what_was_handed_over_about_another_tree_survives(root: Path, index: Path, tmp_path: Path):
    build(index, root)
    before = ingest(root, index, tmp_path)
    twin = tmp_path / "twin"
    shutil.copytree(root, twin)
    refresh(index, twin, Settings(), full=True)
    assert read_evidence(index) == []
    build(index, root)
    assert [row[1:] for row in read_evidence(index)] == [row[1:] for row in before]


def test_a_damaged_log_is_written_anew_from_the_index(root: Path, index: Path, tmp_path: Path):
    build(index, root)
    before = ingest(root, index, tmp_path)
    (log,) = kept.find_logs(index)
    log.write_bytes(log.read_bytes()[:-5])
    build(index, root)
    find_data(index).write_bytes(b"")
    build(index, root)
    assert read_evidence(index) == before


def test_what_is_lost_is_said_until_it_is_back(root: Path, tmp_path: Path):
    with Workspace.open(root, index_dir=tmp_path / "cache") as workspace:
        workspace.ingest(write_scip(tmp_path / "x.scip"))
        index = next((tmp_path / "cache").glob("*/index.db"))
        for path in (find_data(index), *kept.find_logs(index)):
            path.write_bytes(path.read_bytes()[:-5])
        for _ in range(2):
            said = [event.message for event in workspace.status().degraded if event.category == "lost"]
            assert len(said) == 1
            assert "cq ingest" in said[0]
        workspace.ingest(tmp_path / "x.scip")
        assert not [event for event in workspace.status().degraded if event.category == "lost"]


@pytest.mark.slow
def test_the_doctor_says_what_is_lost(root: Path, tmp_path: Path):
    with Workspace.open(root, index_dir=tmp_path / "cache") as workspace:
        workspace.ingest(write_scip(tmp_path / "x.scip"))
        index = next((tmp_path / "cache").glob("*/index.db"))
        for path in (find_data(index), *kept.find_logs(index)):
            path.write_bytes(path.read_bytes()[:-5])
        workspace.refresh()
        assert any("cq ingest" in check.advice for check in workspace.doctor() if check.name == "evidence")


def test_vectors_survive_a_full_index(root: Path, tmp_path: Path):
    with Workspace.open(root, index_dir=tmp_path / "cache") as workspace:
        made = workspace.embed().embedded
        assert made
        workspace.refresh(full=True)
        assert workspace.embed().embedded == 0
        index = next((tmp_path / "cache").glob("*/index.db"))
        data = find_data(index)
        with contextlib.closing(database.connect(index)) as connection:
            (bits,) = connection.execute("SELECT max(bits) FROM trigram").fetchone()
        data.write_bytes(data.read_bytes().replace(bits, bytes(len(bits))))
        assert workspace.embed().embedded == 0, "rows have a checksum and the hash of what was read"


def test_damage_that_no_stat_tells_is_met_while_reading(root: Path, tmp_path: Path):
    """A disk that forgets: the file is what it was by every time and size, and a text is not."""
    with Workspace.open(root, index_dir=tmp_path / "cache") as workspace:
        expected = workspace.text("app.py")
        index = next((tmp_path / "cache").glob("*/index.db"))
        forget_text(index)
        assert workspace.text("app.py") == expected
        assert any(event.category == "rebuilt" for event in workspace.status().degraded)
        forget_text(index)
        assert workspace.refresh(verify=True).rebuilt.startswith("damaged")
        assert workspace.text("app.py") == expected


def test_damage_that_another_process_mends_first(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    mend, cache = Index.mend, tmp_path / "cache"

    def mend_late(self: Index) -> object:
        with Workspace.open(root, index_dir=cache) as other:
            assert other.refresh(verify=True).rebuilt
        return mend(self)

    with Workspace.open(root, index_dir=cache) as workspace:
        expected = workspace.text("app.py")
        forget_text(next(cache.glob("*/index.db")))
        monkeypatch.setattr(Index, "mend", mend_late)
        assert workspace.text("app.py") == expected


def forget_text(index: Path) -> None:
    head = load_head(index)
    digests = load_digests(index, head)
    with contextlib.closing(sqlite3.connect(find_data(index))) as connection:
        connection.execute("UPDATE content SET text=x'28b52ffd' || text")
        connection.commit()
    save_head(index, heads.describe(index, head), digests)


def test_an_index_that_a_repository_brings_is_not_believed(tmp_path: Path):
    """Its cq.toml says where the index is, and there lies one that says something else about the code."""
    theirs = make_root(tmp_path / "theirs", 2)
    (theirs / "cq.toml").write_text('[index]\ndir = ".idx"\n')
    with Workspace.open(theirs) as workspace:
        workspace.refresh()
        folder = next((theirs / ".idx").glob("*/index.db")).parent
    ours = tmp_path / "ours" / "theirs"
    shutil.copytree(theirs, ours)
    (ours / "app.py").write_text("def other(): ...\n")
    os.utime(ours / "app.py", ns=((theirs / "app.py").stat().st_mtime_ns,) * 2)
    with Workspace.open(ours) as workspace:
        place = workspace.index.place.file.parent
        shutil.rmtree(place)
        shutil.copytree(folder, place)
        assert workspace.refresh().rebuilt.startswith("damaged")


@pytest.mark.parametrize("what", ["TRIGGER t AFTER INSERT ON file BEGIN SELECT 1; END", "VIEW v AS SELECT 1"])
def test_a_schema_that_is_not_ours_is_refused(root: Path, index: Path, what: str):
    build(index, root)
    with contextlib.closing(sqlite3.connect(find_data(index))) as connection:
        connection.execute(f"CREATE {what}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    save_head(index, load_head(index), heads.digest_file(find_data(index)))
    why = database.damage(index, root)
    assert why is not None
    assert "of its own" in why


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_a_link_in_place_of_a_file_is_not_followed_to_write(root: Path, index: Path, tmp_path: Path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    index.parent.mkdir()
    index.symlink_to(victim)
    for name in ("index-1.db", f"{DRAFT}index.db.{os.getpid()}", "evidence-scip.log", "repository"):
        (index.parent / name).symlink_to(victim)
    build(index, root)
    assert victim.read_text() == "mine"
    assert not index.is_symlink()
    lock = Path(f"{index}.lock")
    lock.unlink()
    lock.symlink_to(victim)
    with pytest.raises(StoreError):
        refresh(index, root, Settings(), full=True)
    assert victim.read_text() == "mine"


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
@pytest.mark.parametrize("name", ["answers", "embedding.json", "deep/er", "pipe"])
def test_links_that_a_repository_lays_beside_its_index_are_not_written_through(root: Path, tmp_path: Path, name: str):
    """Its cq.toml puts the index where it has laid them; old answers, for one, are removed."""
    (root / "cq.toml").write_text('[index]\ndir = ".idx"\n')
    with Workspace.open(root) as workspace:
        workspace.refresh()
        folder = workspace.index.place.file.parent
        assert folder.is_relative_to(root)
    (folder / name).parent.mkdir(exist_ok=True)
    if name == "pipe":
        os.mkfifo(folder / name)
    else:
        (folder / name).symlink_to(tmp_path)
    with Workspace.open(root) as workspace:
        workspace.refresh()
        assert not workspace.index.place.file.is_relative_to(root)
        assert "laid" in workspace.index.place.note


def test_an_error_of_the_disk_is_said_in_a_sentence(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    """Also by what writes nothing but evidence or vectors; it was called a mistake of cq."""
    bench.prepare()
    monkeypatch.setattr(database, "_settle", _fail_to_write)
    with bench.open() as workspace, pytest.raises(StoreError, match="cannot be read or written"):
        workspace.ingest(bench.scip)


def _fail_to_write(*_: object) -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    raise error


def test_a_cache_that_is_removed_while_somebody_reads(root: Path, tmp_path: Path):
    with Workspace.open(root, index_dir=tmp_path / "cache") as workspace:
        rows = workspace.symbols()
        first = next(rows)
        shutil.rmtree(tmp_path / "cache")
        assert first.path
        assert list(rows), "what was begun ends"
    with Workspace.open(root, index_dir=tmp_path / "cache") as workspace:
        assert workspace.status().files


def test_a_file_that_is_cut_while_somebody_reads_it(root: Path, tmp_path: Path):
    with Workspace.open(root, index_dir=tmp_path / "cache") as workspace:
        expected = [row.symbol_id for row in workspace.symbols()]
        rows = workspace.symbols()
        next(rows)
        os.truncate(find_data(next((tmp_path / "cache").glob("*/index.db"))), 20000)
        with contextlib.suppress(Exception):  # an iteration that was begun may end with an error, and no sooner
            list(rows)
        assert [row.symbol_id for row in workspace.symbols()] == expected


def test_an_export_waits_for_another_writer(root: Path, tmp_path: Path):
    with Workspace.open(root, index_dir=tmp_path / "cache") as workspace:
        workspace.refresh()
        (root / "app.py").write_text("def other(): ...\n")
        held, go = threading.Event(), threading.Event()
        index = next((tmp_path / "cache").glob("*/index.db"))

        def hold() -> None:
            with database.writer_lock(index, wait=True):
                held.set()
                go.wait(60)

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait(60)
        assert workspace.search("other").degraded, "an answer says that it is old"
        timer = threading.Timer(0.2, go.set)
        timer.start()
        workspace.export(tmp_path / "out")
        thread.join()
    assert "other" in (tmp_path / "out" / "symbols.jsonl").read_text()


def test_an_index_that_is_copied_is_taken(root: Path, index: Path, tmp_path: Path):
    """A cache of a build server: other inodes and times, the same bytes."""
    build(index, root)
    before = dump(index, root)
    copied = tmp_path / "c" / "index.db"
    shutil.copytree(index.parent, copied.parent)
    assert not build(copied, root).rebuilt
    assert heads.is_untouched(copied, load_head(copied))
    assert dump(copied, root) == before


def test_nothing_is_read_twice_while_nobody_writes(root: Path, index: Path, monkeypatch: pytest.MonkeyPatch):
    build(index, root)
    (root / "app.py").write_text("def other(): ...\n")
    build(index, root)

    def fail(*_: object) -> str:
        raise AssertionError("pages are compared")

    monkeypatch.setattr(database, "find_fault", fail)
    assert not build(index, root).rebuilt
    (root / "app.py").write_text("def again(): ...\n")
    assert build(index, root).changed == 1
    assert not build(index, root).rebuilt


# What is asked by who needs more than a name.
QUESTIONS: dict[str, tuple[object, ...]] = {
    "path": (PathOptions("run", "known"),),
    "sig_impact": (SignatureOptions("run", "run(thing, other)"),),
    "lsp": (LspOptions("declaration", "run", servers=False),),
    "imports": (), "diagnostics": (), "rank": (), "projects": (),
    "bytecode": ("run",), "q": ("entity=function",),
    "run": (parse_plan(b'[[steps]]\ntype = "q"\nquery = "entity=class"\n', "p.toml"),),
    "report": (ReportOptions("refactor-impact", "function:run"),),
}  # fmt: skip
ASKED = [
    name
    for name, ask in vars(Workspace).items()
    if not name.startswith("_") and name != "ask" and "Answer" in str(getattr(ask, "__annotations__", {}).get("return"))
]


@pytest.mark.parametrize("name", ASKED)
def test_every_answer_says_that_it_is_old(root: Path, tmp_path: Path, name: str):
    with Workspace.open(root, index_dir=tmp_path / "cache") as workspace:
        workspace.refresh()
        (root / "app.py").write_text(SOURCES["app.py"] + "def other(): ...\n")
        with database.writer_lock(next((tmp_path / "cache").glob("*/index.db")), wait=True):
            answer = getattr(workspace, name)(*QUESTIONS.get(name, ("run",)))
        assert "busy" in {event.category for event in answer.degraded}
