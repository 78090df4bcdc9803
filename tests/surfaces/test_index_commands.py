"""`cq index`, `cq status`, `cq watch` and `cq doctor` as real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from cq.indexing.refresh import Progress
from cq.surfaces.printer import Printer
from cq.surfaces.render.progress import ProgressLine, draw_bar, measure_speed
from tests.support.agents import hear_ctrl_c, ignore_ctrl_c

pytestmark = pytest.mark.slow


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    root.mkdir()
    (root / "a.py").write_text("def a():\n    return b()\n")
    (root / "b.ts").write_text("export const b = () => a();\n")
    (root / "x.bin").write_bytes(b"\0\0")
    return root


@pytest.fixture
def large(tmp_path: Path) -> Path:
    root = tmp_path / "large"
    for number in range(2000):
        folder = root / f"p{number % 40}"
        folder.mkdir(parents=True, exist_ok=True)
        body = "\n".join(f"def f{number}_{at}(a, b):\n    return g{at}(a) + b\n" for at in range(10))
        (folder / f"m{number}.py").write_text(body)
    return root


def start(
    *arguments: str, root: Path, ctrl_c: Callable[[], None] = hear_ctrl_c, **options: int
) -> subprocess.Popen[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("CQ_")}
    return subprocess.Popen(
        [sys.executable, "-m", "cq", *arguments],
        cwd=root,
        env={**environment, "XDG_CACHE_HOME": str(root.parent / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=ctrl_c,
        **options,
    )


def run(*arguments: str, root: Path) -> tuple[int, str, str]:
    process = start(*arguments, root=root)
    try:
        out, err = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        _end_group(process)
        process.communicate()
        raise
    return process.returncode, out, err


def _end_group(process: subprocess.Popen[str]) -> None:
    """Whatever a failed test left running."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def ask(*arguments: str, root: Path) -> dict:
    status, out, err = run(*arguments, "--format", "json", root=root)
    assert (status, err) == (0, "")
    return json.loads(out)


def test_status_works_at_once_where_nothing_was_indexed(root: Path):
    code, out, err = run("status", root=root)
    assert (code, err) == (0, "")
    assert "generation 1, up to date" in out
    assert "2 files" in out
    assert "binary" in out
    assert "\x1b" not in out
    assert len(out.splitlines()) <= 100
    assert run("status", root=root)[1] == out


def test_the_summary_of_an_indexing_run(root: Path):
    answer = ask("index", str(root), root=root.parent)
    assert (answer["report"]["added"], answer["report"]["parsed"]) == (2, 2)
    assert [row["language"] for row in answer["status"]["languages"]] == ["python", "typescript"]
    assert answer["status"]["skipped"] == {"binary": 1}
    assert answer["cost"]["peak_bytes"] > 1_000_000
    code, out, _ = run("index", "--full", "--jobs", "1", "--memory", "200", root=root)
    assert code == 0
    assert "2 parsed" in out
    assert "peak memory" in out


def test_without_refresh_the_status_is_stale_and_says_so(root: Path):
    run("index", root=root)
    (root / "c.py").write_text("c = 1\n")
    code, out, _ = run("status", "--no-refresh", root=root)
    assert code == 0
    assert "stale: 1 new" in out
    assert ask("status", "--max-stale", "600", root=root)["freshness"]["check"] == "recent"
    assert ask("status", root=root)["freshness"] == {
        "generation": 2,
        "check": "refreshed",
        "added": 0,
        "changed": 0,
        "removed": 0,
        "dirty": False,
        "busy": False,
    }


def test_the_configuration_with_its_sources(root: Path):
    (root / "cq.toml").write_text("[index]\nmax_files = 7\n")
    code, out, _ = run("status", "--config", "--index-dir", "../own", root=root)
    assert code == 0
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in out.splitlines()]
    assert ["index.max_files", "7", "cq.toml:2"] in rows
    assert ["index.dir", "../own", "flag"] in rows
    assert ["index.jobs", "0", "default"] in rows
    assert not (root.parent / "cache").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("status", "--max-stale", "soon"), "'soon' is not a number of seconds"),
        (("index", "--jobs", "-1"), "--jobs -1: expected int >= 0"),
        (("index", "--progress", "jso"), "did you mean 'json'?"),
        (("index", ".", "--root", "."), "PATH and --root are the same"),
        (("index", "nowhere"), "does not exist"),
        (("index", "--exclude", "../x"), "leaves the root"),
        (("watch", "--debounce", "0"), "milliseconds"),
        (("status", "--no-refresh"), "no index"),
        (("doctor", "--index-dri", "x"), "did you mean '--index-dir'?"),
    ],
)
def test_a_misuse_is_one_line(root: Path, arguments: tuple[str, ...], says: str):
    code, out, err = run(*arguments, root=root)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def test_an_unknown_key_is_one_line(root: Path):
    (root / "cq.toml").write_text("[index]\nmax_fils = 1\n")
    code, _, err = run("status", root=root)
    assert code == 2
    assert err == "cq: config: cq.toml:2: unknown key 'index.max_fils' (did you mean 'max_files'?)\n"


def test_the_doctor(root: Path):
    (root / "cq.toml").write_text("[providers]\ndeny = ['basedpyright', 'pyrefly', 'typescript']\n")
    code, out, _ = run("doctor", "--format", "json", root=root)
    checks = {(row["area"], row["name"]): row for row in json.loads(out)}
    assert checks["environment", "python"]["state"] == "ok"
    assert checks["tools", "git"]["state"] == "ok"
    ty = checks["providers", "ty"]
    assert (ty["state"], ty["provider"]["languages"]) == ("ok", ["python"])
    assert "subtypes" in ty["provider"]["planes"]
    other = checks["providers", "pyrefly"]
    assert (other["state"], other["provider"]["available"], other["provider"]["enabled"]) == ("missing", True, False)
    assert other["provider"]["reasons"] == ["denied by the configuration"]
    assert code == (2 if any(row["state"] == "error" for row in checks.values()) else 0)
    assert not (root.parent / "cache").exists()


def test_progress_for_programs(root: Path):
    code, _, err = run("index", "--progress", "json", root=root)
    assert code == 0
    rows = [json.loads(line) for line in err.splitlines()]
    stages = [row["stage"] for row in rows]
    assert stages == sorted(stages, key=["list", "read", "write", "link"].index)
    ends = {row["stage"]: (row["done"], row["total"]) for row in rows}
    assert (ends["read"], ends["link"]) == ((3, 3), (2, 2))


def test_ctrl_c_leaves_a_valid_index(large: Path):
    process = start("index", "--progress", "json", root=large)
    _wait_for_reading(process)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the index is valid" in err
    assert ask("status", root=large)["files"] == 2000


def test_a_killed_run_leaves_a_valid_index(large: Path):
    process = start("index", "--progress", "json", root=large)
    _wait_for_reading(process)
    try:
        process.kill()  # its workers get no signal: they have to notice, and to let go of the lock
        process.wait(timeout=60)
        status = ask("status", root=large)
    finally:
        _end_group(process)
        process.communicate()
    assert (status["files"], status["freshness"]["busy"]) == (2000, False)


def _wait_for_reading(process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if json.loads(line)["done"] > 100:
            return


def test_watch_that_is_started_with_ctrl_c_ignored_says_what_ends_it(root: Path):
    process = start("watch", root=root, ctrl_c=ignore_ctrl_c)
    assert process.stderr is not None
    try:
        assert process.stderr.readline().endswith("SIGTERM ends it: it was started with Ctrl-C ignored\n")
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    finally:
        _end_group(process)
    assert (process.returncode, err) == (0, "")


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_watch_follows_the_files_and_ends_when_told(root: Path, ending: signal.Signals):
    (root / ".git").mkdir()
    process = start("watch", "--debounce", "20", "--format", "jsonl", "--index-dir", "own", root=root)
    assert process.stdout is not None
    timer = threading.Timer(60, process.kill)
    timer.start()
    try:
        first = json.loads(process.stdout.readline())
        assert (first["generation"], first["added"]) == (1, 2)
        time.sleep(0.3)
        (root / ".git" / "noise").write_text("x")
        (root / "a.py").write_text("def changed(): pass\n")
        second = json.loads(process.stdout.readline())
        assert (second["generation"], second["changed"], second["added"]) == (2, 1, 0)
        (root / "a.py").unlink()
        third = json.loads(process.stdout.readline())
        assert (third["generation"], third["removed"]) == (3, 1)
        process.send_signal(ending)
        out, err = process.communicate(timeout=30)
    finally:
        timer.cancel()
        _end_group(process)
    assert (process.returncode, out) == (0, "")
    assert err.count("\n") == 1


def test_a_bar_is_drawn_on_a_terminal_after_a_second_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", Printer(sys.stderr))
    line = ProgressLine()
    line(Progress("list", 0, 0))
    line(Progress("read", 0, 100, 0, 1000))
    clock[0] = 0.9
    line(Progress("read", 40, 100, 400, 1000))
    assert capsys.readouterr().err == ""
    clock[0] = 2.0
    line(Progress("read", 50, 100, 500, 1000))
    drawn = capsys.readouterr().err
    assert "50/100 files, 25/s, 0:02 left" in drawn
    assert "\n" not in drawn
    line.clear()
    assert capsys.readouterr().err == "\r\x1b[K"
    line.clear()
    assert capsys.readouterr().err == ""


def test_a_bar_fits_its_line_and_the_time_left_goes_with_bytes():
    progress = Progress("read", 50, 100, 900, 1000)
    assert measure_speed(progress, 9.0) == (pytest.approx(50 / 9), pytest.approx(1.0))
    assert measure_speed(Progress("read", 1, 100, 1, 1000), 9.0)[1] is None
    assert draw_bar(progress, "text", 20) == "[######       ] text"
    assert all(len(draw_bar(progress, "text" * 10, width)) <= width for width in range(1, 80))
