"""The pipeline: what is read when, what stays, and what a reader sees meanwhile."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cq.indexing import link as linking
from cq.indexing import read as extraction
from cq.indexing import refresh as pipeline
from cq.model.errors import StoreError
from cq.store import database
from cq.store import write as store
from cq.store.head import find_data
from cq.store.read import Reader
from tests.support.index import build, dump

pytestmark = pytest.mark.slow


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    write(root, "a.py", "def a():\n    return b()\n")
    write(root, "pkg/b.py", "from a import a\n\nclass B:\n    def run(self):\n        return a()\n")
    write(root, "README.md", "# Title\n\n```python\nx = a()\n```\n")
    write(root, "blob.bin", b"\0\1\2")
    return root


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "index.db"


def write(root: Path, path: str, text: str | bytes) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)


def settle(index: Path, root: Path) -> None:
    """Past the window in which a time stamp may still hide a change."""
    time.sleep(pipeline.RACY_NS / 1e9 + 0.02)
    build(index, root)


def test_first_build_reads_everything(root: Path, index: Path) -> None:
    report = build(index, root)
    assert (report.added, report.parsed, report.generation) == (3, 3, 1)
    rows = dump(index, root)
    assert [row[0] for row in rows["files"]] == ["README.md", "a.py", "pkg/b.py"]
    assert [(skip.path, skip.reason) for skip in rows["skips"]] == [("blob.bin", "binary")]
    assert rows["facts"]["README.md"].embedded[0].calls[0].name == "a"


def test_nothing_changed_reads_nothing(root: Path, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(index, root)
    settle(index, root)

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("a file was listed or read")

    monkeypatch.setattr(pipeline, "read_source", fail)
    monkeypatch.setattr(pipeline, "find_files", fail)
    assert build(index, root).generation == 1


def test_touched_but_equal_file_is_not_parsed(root: Path, index: Path) -> None:
    build(index, root)
    settle(index, root)
    os.utime(root / "a.py", ns=(1, 1))
    report = build(index, root)
    assert (report.touched, report.parsed, report.changed, report.generation) == (1, 0, 0, 1)


def test_moved_and_reverted_files_are_not_parsed(root: Path, index: Path) -> None:
    build(index, root)
    (root / "a.py").rename(root / "moved.py")
    report = build(index, root)
    assert (report.added, report.removed, report.parsed, report.reused) == (1, 1, 0, 1)
    old = (root / "moved.py").read_text()
    write(root, "moved.py", "other = 1\n")
    assert build(index, root).parsed == 1
    write(root, "moved.py", old)
    report = build(index, root)
    assert (report.changed, report.parsed) == (1, 0)


def test_file_saved_by_renaming_is_seen(root: Path, index: Path) -> None:
    build(index, root)
    settle(index, root)
    write(root, "a.py.tmp", "def renamed(): ...\n")
    (root / "a.py.tmp").rename(root / "a.py")
    assert build(index, root).changed == 1
    assert dump(index, root)["facts"]["a.py"].symbols[0].name == "renamed"


def test_file_that_is_away_for_a_moment_is_found_again(
    root: Path, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(index, root)
    settle(index, root)
    text = (root / "a.py").read_text()
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "_still_listed", lambda *_: True)  # the folder was looked at just before
        (root / "a.py").unlink()
        assert build(index, root).removed == 1
    write(root, "a.py", text)
    assert build(index, root).added == 1


def test_edit_within_the_same_tick_is_seen(root: Path, index: Path) -> None:
    tick = time.time_ns() + 60 * 10**9  # not over when it is read, however long that takes
    os.utime(root / "a.py", ns=(tick, tick))
    build(index, root)
    write(root, "a.py", "def c():\n    return d()\n")  # the same size
    os.utime(root / "a.py", ns=(tick, tick))
    assert build(index, root).changed == 1


@pytest.mark.skipif(sys.platform == "win32", reason="its files have no time that nobody sets")
def test_times_that_are_set_back_hide_nothing(root: Path, index: Path) -> None:
    """As archives and `rsync -t` leave them, where all files have the time of the release."""
    build(index, root)
    settle(index, root)
    folder, file = (root / "pkg").stat(), (root / "a.py").stat()
    write(root, "a.py", "def c():\n    return d()\n")  # the same size
    write(root, "pkg/new.py", "x = 1\n")
    for path, before in ((root / "pkg", folder), (root / "a.py", file)):
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    report = build(index, root)
    assert (report.changed, report.added) == (1, 1)


def test_a_large_file_that_is_cut_in_place_is_seen(root: Path, index: Path) -> None:
    write(root, "large.py", b"x = 1\n" * 100)
    build(index, root, max_file_bytes=100)
    time.sleep(pipeline.RACY_NS / 1e9 + 0.02)
    build(index, root, max_file_bytes=100)
    os.truncate(root / "large.py", 6)
    assert build(index, root, max_file_bytes=100).added == 1
    (root / "large.py").write_bytes(b"x = 1\n" * 100)
    build(index, root, max_file_bytes=100)
    assert "large.py" not in dump(index, root)["texts"]


@pytest.mark.skipif(sys.platform == "win32", reason="no links without a privilege, no pipes")
@pytest.mark.parametrize("kind", ["link", "link to nothing", "pipe"])
def test_a_file_in_place_of_a_link_or_a_pipe_is_seen(root: Path, index: Path, kind: str) -> None:
    def put(make: Callable[[Path], object]) -> None:
        make(root / "draft")
        (root / "draft").replace(root / "odd.py")

    def make_odd(path: Path) -> None:
        os.mkfifo(path) if kind == "pipe" else path.symlink_to("a.py" if kind == "link" else "nothing")

    put(make_odd)
    build(index, root)
    settle(index, root)
    put(lambda path: path.write_text("def odd(): ...\n"))
    assert build(index, root).added == 1
    settle(index, root)
    put(make_odd)
    build(index, root)
    assert "odd.py" not in dump(index, root)["texts"]
    settle(index, root)
    put(lambda path: path.symlink_to("pkg/b.py"))
    build(index, root)
    assert {skip.path: skip.detail for skip in dump(index, root)["skips"]}["odd.py"] == "the same as pkg/b.py"


def test_new_file_in_a_directory_that_was_empty(root: Path, index: Path) -> None:
    (root / "empty").mkdir()
    build(index, root)
    settle(index, root)
    write(root, "empty/new.py", "x = 1\n")
    assert build(index, root).added == 1


def test_a_directory_whose_name_is_no_text(root: Path, index: Path) -> None:
    folder = root / os.fsdecode(b"d\xff")
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("the file system wants names in UTF-8")
    (folder / "x.py").write_text("def oddly(): ...\n")
    assert build(index, root).added == 4
    assert build(index, root).added == 0
    (folder / "y.py").write_text("def later(): ...\n")
    assert build(index, root).added == 1


def test_ignore_rules_that_change_take_files_away(root: Path, index: Path) -> None:
    build(index, root)
    settle(index, root)
    write(root, ".cqignore", "pkg/\n")
    assert build(index, root).removed == 1
    (root / ".cqignore").unlink()
    assert build(index, root).added == 1


def test_skipped_file_becomes_source_and_back(root: Path, index: Path) -> None:
    build(index, root)
    write(root, "blob.bin", "now text\n")
    build(index, root)
    rows = dump(index, root)
    assert "blob.bin" in rows["texts"]
    assert not rows["skips"]
    write(root, "a.py", b"\0\1\2binary")
    build(index, root)
    rows = dump(index, root)
    assert "a.py" not in rows["texts"]
    assert [skip.path for skip in rows["skips"]] == ["a.py"]


def test_other_settings_change_the_tree_not_the_contents(root: Path, index: Path) -> None:
    build(index, root)
    report = build(index, root, include=("pkg/",))
    assert (report.removed, report.parsed) == (2, 0)
    report = build(index, root)
    assert (report.added, report.parsed) == (2, 0)


def test_one_worker_and_two_write_the_same_bytes(tmp_path: Path) -> None:
    root = tmp_path / "repo"
    for number in range(300):
        write(root, f"d{number % 7}/m{number}.py", f"def f{number}(x):\n    return g{number % 11}(x)\n" * 60)
    one, two = tmp_path / "1/index.db", tmp_path / "2/index.db"
    build(one, root, jobs=1)
    build(two, root, jobs=2)
    assert dump(one, root) == dump(two, root)
    with sqlite3.connect(find_data(one)) as a, sqlite3.connect(find_data(two)) as b:
        assert list(a.execute("SELECT id, hash FROM content")) == list(b.execute("SELECT id, hash FROM content"))


def test_a_worker_that_dies_costs_one_file(tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "repo"
    for number in range(200):
        write(root, f"m{number}.py", f"def f{number}(): ...\n" * 200)
    write(root, "killer.py", "KILL = 1\n")
    real = extraction.extract_source

    def crash(source: object) -> object:
        if b"KILL" in source.text:  # type: ignore[attr-defined]
            os.kill(os.getpid(), signal.SIGKILL)
        return real(source)  # type: ignore[arg-type]

    monkeypatch.setattr(extraction, "extract_source", crash)
    report = build(index, root, jobs=2)
    assert report.added == 201
    facts = dump(index, root)["facts"]
    assert [problem.code for problem in facts["killer.py"].problems] == ["crash"]
    assert all(facts[f"m{number}.py"].symbols for number in range(200))


@pytest.mark.parametrize("dies", ["", "m0.py", "m9.py"])
def test_linked_in_parts_it_means_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies: str) -> None:
    """Also where one of the processes is killed: then all is linked by the one that is left, whatever was written."""
    root = tmp_path / "repo"
    for number in range(40):
        other = (number * 7 + 3) % 40
        text = f"from m{other} import K{other}\n\nclass K{number}:\n    def run(self, x): return x.go{other}()\n"
        text += f"    def go{number}(self): return K{other}().run(self).run(K{other})\n"
        write(root, f"m{number}.py", text)
    one, many = tmp_path / "1/index.db", tmp_path / "2/index.db"
    build(one, root, jobs=1)
    parts: list[int] = []
    here, real, split = os.getpid(), linking._link_new, linking._Tree.split

    def link(tree: linking._Tree, paths: list[str]) -> object:
        if os.getpid() != here and dies in paths:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(tree, paths)

    monkeypatch.setattr(linking, "LEAST_NAMES", 10)
    monkeypatch.setattr(linking, "_link_new", link)
    monkeypatch.setattr(linking._Tree, "split", lambda tree, most: parts.append(most) or split(tree, most))
    build(many, root, jobs=3)
    assert parts == [3]
    assert dump(one, root) == dump(many, root)
    assert any(ref.status == "resolved" for _, links, *_ in dump(many, root)["links"] for ref in links[0].refs)


def test_two_trees_share_contents(root: Path, index: Path, tmp_path: Path) -> None:
    build(index, root)
    twin = tmp_path / "twin"
    write(twin, "pkg/b.py", (root / "pkg/b.py").read_text())
    write(twin, "own.py", "own = 1\n")
    report = build(index, twin)
    assert (report.added, report.parsed, report.reused) == (2, 1, 1)
    assert len(dump(index, root)["files"]) == 3


def test_full_makes_everything_anew(root: Path, index: Path) -> None:
    build(index, root)
    before = dump(index, root)
    report = pipeline.refresh(index, root, pipeline.Settings(), full=True)
    assert report.parsed == 3
    assert dump(index, root) == before


def test_full_is_full_also_where_another_tree_shares_the_index(root: Path, index: Path, tmp_path: Path) -> None:
    build(index, root)
    twin = tmp_path / "twin"
    write(twin, "a.py", (root / "a.py").read_text())
    build(index, twin)
    before = dump(index, twin)
    assert pipeline.refresh(index, root, pipeline.Settings(), full=True).parsed == 3
    assert build(index, twin).added == 1
    assert dump(index, twin) == before


@pytest.mark.parametrize("how", ["empty", "garbage", "truncated", "another's", "a table more", "no data"])
def test_damage_is_repaired_without_being_told(root: Path, index: Path, how: str) -> None:
    build(index, root)
    before = dump(index, root)
    if how == "empty":
        index.write_bytes(b"")
    elif how == "garbage":
        index.write_bytes(b"garbage" * 1000)
    elif how == "truncated":
        index.write_bytes(index.read_bytes()[:90])
    elif how == "no data":
        find_data(index).unlink()
    else:
        if how == "another's":
            index.unlink()
        with sqlite3.connect(index if how == "another's" else find_data(index)) as connection:
            connection.execute("CREATE TABLE theirs (x)")
    report = build(index, root)
    assert report.rebuilt
    assert dump(index, root) == before


def test_a_reader_keeps_its_generation_while_the_index_changes(root: Path, index: Path) -> None:
    build(index, root)
    reader = Reader(database.connect(index), os.fspath(root))
    with reader:
        tree = reader.tree()
        assert tree is not None
        before = [file.hash for file in reader.files(tree.id)]
        write(root, "a.py", "changed = 1\n")
        assert build(index, root).generation == 2
        assert [file.hash for file in reader.files(tree.id)] == before
    with reader:
        assert [file.hash for file in reader.files(tree.id)] != before
    reader.close()


def test_a_taken_lock_answers_from_the_last_generation(root: Path, index: Path) -> None:
    build(index, root)
    write(root, "a.py", "changed = 1\n")
    with database.writer_lock(index, wait=False) as had:
        assert had
        report = pipeline.refresh(index, root, pipeline.Settings())
        assert report.busy
        assert report.generation == 1
    assert not build(index, root).busy


def test_the_lock_of_a_dead_process_is_free(root: Path, index: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from cq.store import database\n"
        "with database.writer_lock(Path(sys.argv[1]), wait=False): print('held', flush=True); time.sleep(60)"
    )
    index.parent.mkdir(parents=True)
    with subprocess.Popen([sys.executable, "-c", code, index], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        holder.kill()
        holder.wait()
    assert build(index, root).generation == 1


def test_writers_and_readers_at_once(root: Path, index: Path) -> None:
    build(index, root)
    stop = threading.Event()
    errors: list[Exception] = []

    def read() -> None:
        try:
            while not stop.is_set():
                reader = Reader(database.connect(index), os.fspath(root))
                with reader:
                    tree = reader.tree()
                    assert tree is not None
                    files = list(reader.files(tree.id))
                    # Every generation has all three files; a mixture would not.
                    assert [f.path for f in files] == ["README.md", "a.py", "pkg/b.py"]
                    assert all(reader.text(f.content) is not None for f in files)
                reader.close()
        except Exception as error:  # noqa: BLE001  whatever it is, the test must see it
            errors.append(error)

    def change(path: str) -> None:
        try:
            for number in range(15):
                write(root, path, f"def f{number}(): return {number}\n")
                pipeline.refresh(index, root, pipeline.Settings(jobs=1), wait=True)
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    readers = [threading.Thread(target=read) for _ in range(8)]
    writers = [threading.Thread(target=change, args=(path,)) for path in ("a.py", "pkg/b.py")]
    for thread in readers + writers:
        thread.start()
    for thread in writers:
        thread.join()
    stop.set()
    for thread in readers:
        thread.join()
    assert not errors
    fresh = index.parent / "fresh" / "index.db"
    build(index, root)
    build(fresh, root)
    assert dump(index, root) == dump(fresh, root)


def test_killed_at_random_points_the_next_run_is_right(tmp_path: Path, index: Path) -> None:
    root = tmp_path / "repo"
    for number in range(250):
        write(root, f"p{number % 5}/m{number}.py", f"class C{number}:\n    def m(self): return h{number}()\n" * 30)
    fresh = tmp_path / "fresh" / "index.db"
    build(fresh, root, jobs=2)
    expected = dump(fresh, root)
    code = (
        "import sys; from pathlib import Path; from cq.indexing import refresh as p\n"
        "p.COMMIT_BYTES = 50_000; p.BATCH_BYTES = 20_000; p.POOL_BYTES = 1\n"
        "p.refresh(Path(sys.argv[1]), Path(sys.argv[2]), p.Settings(jobs=2))"
    )
    for attempt in range(8):
        child = subprocess.Popen([sys.executable, "-c", code, index, root], start_new_session=True)
        time.sleep(0.12 + attempt * 0.09)
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        if database.damage(index, root) is None:
            with contextlib.closing(database.connect(index)) as connection:
                assert connection.execute("PRAGMA quick_check").fetchone()[0] == "ok"
    build(index, root)
    assert dump(index, root) == expected


def test_full_disk_says_so_and_keeps_the_last_index(root: Path, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(index, root)
    before = dump(index, root)
    real = database.connect

    def small(path: Path, *, write: bool = False) -> sqlite3.Connection:
        connection = real(path, write=write)
        if write:
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            connection.execute(f"PRAGMA max_page_count={pages + 2}")
        return connection

    monkeypatch.setattr(database, "connect", small)
    # Text that does not compress, so that it needs pages.
    write(root, "big.py", "".join(f"x = '{os.urandom(30).hex()}'\n" for _ in range(5000)))
    with pytest.raises(StoreError, match="full"):
        build(index, root)
    monkeypatch.undo()
    (root / "big.py").unlink()
    assert dump(index, root) == before


def test_index_directory_that_cannot_be_made(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="file"):
        build(tmp_path / "file" / "index.db", root)


def test_dead_contents_are_forgotten_in_the_end(root: Path, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "KEPT_DEAD", 5)
    for number in range(20):
        write(root, "a.py", f"value_{number} = {number}\n")
        build(index, root, jobs=1)
    with contextlib.closing(database.connect(index)) as connection:
        dead = connection.execute("SELECT count(*) FROM content WHERE id NOT IN (SELECT content FROM file)").fetchone()[
            0
        ]
        assert dead <= 5
        hits = connection.execute("SELECT count(*) FROM name WHERE name MATCH 'value_1'").fetchone()[0]
    assert hits == 0
    fresh = index.parent / "fresh" / "index.db"
    build(fresh, root)
    assert dump(index, root) == dump(fresh, root)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.ts", "declare global {\n  interface Extra { run(): void }\n}\nexport {}\n"),
        ("a.rs", 'extern "C" {\n    fn outside(x: u32);\n}\nfn f() { unsafe { outside(1); } }\n'),
        ("a.tsx", "const Guard = memo(() => 1)\nexport const Ref = forwardRef(function () { return Guard })\n"),
        ("b.rs", "fn f() {\n    let made = {\n        struct Guard;\n        1\n    };\n}\n"),
    ],
)
def test_blocks_and_functions_that_are_no_definitions_can_change(name: str, text: str, tmp_path: Path):
    root = tmp_path / "repo"
    root.mkdir()
    (root / name).write_text(text)
    build(tmp_path / "old.db", root)
    (root / name).write_text(text.replace("Extra", "Other").replace("outside", "beyond").replace("Guard", "Lock"))
    assert build(tmp_path / "old.db", root).changed == 1
    build(tmp_path / "new.db", root)
    assert dump(tmp_path / "old.db", root) == dump(tmp_path / "new.db", root)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # What is bound moves to a class beside it: both say as much as before.
        ("class A:\n    run = go\nclass B:\n    pass\n", "class A:\n    pass\nclass B:\n    run = go\n"),
        ("class A:\n    run = go\nclass B:\n    run = halt\n", "class A:\n    run = halt\nclass B:\n    run = go\n"),
        ("class A:\n    run = go\nclass B:\n    pass\n", "run = go\nclass A:\n    pass\nclass B:\n    pass\n"),
    ],
)
def test_members_that_move_between_classes_of_a_file(before: str, after: str, tmp_path: Path):
    root = tmp_path / "repo"
    root.mkdir()
    (root / "f.py").write_text("def go(): ...\ndef halt(): ...\n")
    (root / "user.py").write_text("from m import A, B\ndef use():\n    A.run()\n    B.run()\n")
    for text in (before, after):
        (root / "m.py").write_text(f"from f import go, halt\n{text}")
        build(tmp_path / "old.db", root)
    build(tmp_path / "new.db", root)
    assert dump(tmp_path / "old.db", root) == dump(tmp_path / "new.db", root)
