"""How fast a tree becomes an index and stays one: beside reading, stating and parsing the same files, in the same run.

Processor time is that of all processes of one run. Builds run in processes of their own, so that their memory
is theirs; the memory of a build is its writer's peak plus its largest worker's peak for every worker.
"""

from __future__ import annotations

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from bench.corpora import fetch
from cq.indexing.refresh import Settings, refresh
from cq.languages.registry import get_language
from cq.model.source import Skip
from cq.source.files import find_files
from cq.source.read import read_source

JOBS = 2
_BUILD = """
import resource, sys, time
from pathlib import Path
from cq.indexing.refresh import Settings, refresh
started = time.perf_counter()
report = refresh(Path(sys.argv[1]), Path(sys.argv[2]), Settings(jobs=int(sys.argv[3])))
wall = time.perf_counter() - started
own, below = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
cpu = own.ru_utime + own.ru_stime + below.ru_utime + below.ru_stime
print(wall, cpu, own.ru_maxrss, below.ru_maxrss)
"""


class Build(msgspec.Struct, frozen=True):
    wall: float
    cpu: float
    memory_mb: float
    index_mb: float


def run(results: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory(prefix="cq-bench-") as scratch:
        folder = Path(scratch)
        tree = folder / "whole"
        shutil.copytree(fetch("django"), tree, symlinks=True)
        half = folder / "half"
        sources = _read_tree(tree)
        _copy_half(tree, half, sources)
        source_bytes = sum(len(text) for text, _ in sources.values())
        lines = sum(text.count(b"\n") for text, _ in sources.values())

        read = _best(lambda: _read_tree(tree))
        stat = _best(lambda: [os.lstat(tree / path) for path in sources], clock=time.perf_counter)
        parse = _best(lambda: _parse(sources))
        cold = min((build(folder / "i" / "index.db", tree) for _ in range(2)), key=lambda b: b.cpu)
        small = min((build(folder / "h" / "index.db", half) for _ in range(2)), key=lambda b: b.cpu)
        half_lines = sum(text.count(b"\n") for text, _ in _read_tree(half).values())
        growth = lines / half_lines

        index = folder / "i" / "index.db"
        settings = Settings(jobs=JOBS)
        refresh(index, tree, settings)
        time.sleep(0.2)
        refresh(index, tree, settings)
        unchanged = _median(lambda: refresh(index, tree, settings), 10)
        edits = _time_edits(index, tree, settings)
        changed, worst = statistics.median(edits.values()), max(edits, key=lambda name: edits[name])
        peers = _peers(tree)
        starts = _measure_starts(folder, tree)
        results["floors"] = {"read": read, "stat": stat, "parse": parse}
        results["build"] = msgspec.to_builtins(cold)
        results["tables"] = {
            "Django, cold index": [
                {"what": "read every file", "cpu s": read, "of the parse": read / parse},
                {"what": "bare parse of every file with a grammar", "cpu s": parse, "of the parse": 1.0},
                *({"what": name, "cpu s": cpu, "of the parse": cpu / parse} for name, cpu in peers.items()),
                {"what": f"cq, {JOBS} workers", "cpu s": cold.cpu, "of the parse": cold.cpu / parse},
            ],
            "Django, afterwards": [
                {"what": "stat of every file", "ms": stat * 1000, "of the stat": 1.0},
                {"what": "refresh, nothing changed", "ms": unchanged * 1000, "of the stat": unchanged / stat},
                {
                    "what": f"refresh, one file changed, median of {len(edits)} edits",
                    "ms": changed * 1000,
                    "of the stat": changed / stat,
                },
                {
                    "what": f"the slowest of them: {worst}",
                    "ms": edits[worst] * 1000,
                    "of the stat": edits[worst] / stat,
                },
            ],
            "A new process, wall time, median of 7": [
                {"what": name, "ms": seconds * 1000} for name, seconds in starts.items()
            ],
            "Size": [
                {"what": "source", "MB": source_bytes / 1e6, "lines": lines},
                {"what": "index", "MB": cold.index_mb, "of the source": cold.index_mb * 1e6 / source_bytes},
                {"what": "peak memory", "MB": cold.memory_mb},
            ],
        }
        results["goals"] = [
            _goal("cold index in at most 4 times the bare parse's cpu", cold.cpu / parse, 4),
            _goal("cold index within 5 s on 2 cores", cold.wall, 5),
            _goal("peak memory at most 400 MB", cold.memory_mb, 400),
            _goal("index at most 4 times the source", cold.index_mb * 1e6 / source_bytes, 4),
            _goal("nothing changed: at most 100 ms", unchanged * 1000, 100),
            _goal("one file changed: at most 150 ms", changed * 1000, 150),
            _goal("a question in a new process at most 250 ms", starts["cq status, nothing changed"] * 1000, 250),
            _goal("doubling the tree at most 2.2 times the cpu", (cold.cpu / small.cpu) * 2 / growth, 2.2),
            _goal(
                "doubling the tree at most 2.2 times the memory", (cold.memory_mb / small.memory_mb) * 2 / growth, 2.2
            ),
        ]


def build(index: Path, tree: Path) -> Build:
    shutil.rmtree(index.parent, ignore_errors=True)
    done = subprocess.run(
        [sys.executable, "-c", _BUILD, index, tree, str(JOBS)], capture_output=True, text=True, check=True
    )
    wall, cpu, own_kb, worker_kb = map(float, done.stdout.split())
    return Build(wall, cpu, (own_kb + JOBS * worker_kb) / 1024, index.stat().st_size / 1e6)


def _read_tree(tree: Path) -> dict[str, tuple[bytes, str]]:
    found: dict[str, tuple[bytes, str]] = {}
    for entry in find_files(tree).files:
        source = read_source(tree, entry)
        if not isinstance(source, Skip):
            found[entry.path] = (source.text, source.language)
    return found


def _copy_half(tree: Path, half: Path, sources: dict[str, tuple[bytes, str]]) -> None:
    for path in sorted(sources)[::2]:
        target = half / path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(tree / path, target)


def _parse(sources: dict[str, tuple[bytes, str]]) -> None:
    for text, name in sources.values():
        language = get_language(name)
        if language is not None:
            language.parse(text)


def _best(work: Callable[[], object], rounds: int = 3, clock: Callable[[], float] = time.process_time) -> float:
    times: list[float] = []
    for _ in range(rounds):
        started = clock()
        work()
        times.append(clock() - started)
    return min(times)


def _median(work: Callable[[], object], rounds: int) -> float:
    times: list[float] = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def _time_edits(index: Path, tree: Path, settings: Settings) -> dict[str, float]:
    """Seconds of a refresh after each edit of each file; every file is then as it was before, and settled."""
    times: dict[str, float] = {}
    for path in EDITED:
        file = tree / path
        text = file.read_text("utf-8")
        for name, edit in EDITS.items():
            changed = edit(text)
            if changed == text:
                continue
            file.write_text(f"{changed}\n# {name}\n", "utf-8")
            started = time.perf_counter()
            report = refresh(index, tree, settings)
            times[f"{name}, {path}"] = time.perf_counter() - started
            if report.changed != 1:
                raise RuntimeError(f"expected one changed file: {report}")
            file.write_text(text, "utf-8")
            refresh(index, tree, settings)
            time.sleep(0.15)
            refresh(index, tree, settings)
    return times


def _edit_middle(pattern: str, replacement: str) -> Callable[[str], str]:
    """Of the places where a pattern is found, the middle one is changed."""

    def edit(text: str) -> str:
        found = list(re.finditer(pattern, text, re.MULTILINE))
        if not found:
            return text
        place = found[len(found) // 2]
        return text[: place.start()] + place.expand(replacement) + text[place.end() :]

    return edit


EDITED = (
    "django/core/exceptions.py",
    "django/db/backends/base/schema.py",
    "django/db/models/base.py",
    "django/db/models/fields/__init__.py",
    "django/db/models/query.py",
    "django/forms/models.py",
    "django/http/request.py",
    "django/template/base.py",
    "django/utils/encoding.py",
    "django/utils/functional.py",
    "django/utils/text.py",
    "django/views/generic/edit.py",
)
EDITS: dict[str, Callable[[str], str]] = {
    "a function added": lambda text: f"{text}\n\ndef added(value):\n    return str(value).strip()\n",
    "a method added": _edit_middle(r"^class \w+.*:$", r"\g<0>\n    def added(self):\n        return self\n"),
    "a call added": _edit_middle(r"^( +)return \S.*$", r"\1print(repr(3))\n\g<0>"),
    "an import added": _edit_middle(r"^(?:from|import) .*$", r"import wave\n\g<0>"),
    "another value returned": _edit_middle(r"^( +return [a-z]\w*)$", r"\1 or None"),
    "a parameter added": _edit_middle(r"^(    def \w+\(self)\):$", r"\1, added=None):"),
    "a method renamed": _edit_middle(r"^(    def [a-z]\w+)\(", r"\1_renamed("),
}


def _measure_starts(folder: Path, tree: Path) -> dict[str, float]:
    """Cold is the first process after a build, warm the ones behind it."""
    program = [sys.executable, "-m", "cq"]
    where = ["--root", os.fspath(tree), "--index-dir", os.fspath(folder / "starts")]
    subprocess.run([*program, "index", *where, "--progress", "none"], capture_output=True, check=True)
    time.sleep(0.2)
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "cq --version": [*program, "--version"],
        "cq status, first": [*program, "status", *where],
        "cq status, nothing changed": [*program, "status", *where],
        "cq status --no-refresh": [*program, "status", *where, "--no-refresh"],
    }
    rounds = {"cq status, first": 1}
    return {
        name: _median(
            lambda command=command: subprocess.run(command, capture_output=True, check=True), rounds.get(name, 7)
        )
        for name, command in commands.items()
    }


def _peers(tree: Path) -> dict[str, float]:
    """Tools that nobody here wrote, where the machine has them."""
    commands = {
        "ctags, definitions only": [
            "ctags",
            "-R",
            "-f",
            os.devnull,
            "--languages=Python,JavaScript,HTML,CSS",
            os.fspath(tree),
        ],
        "ripgrep, one full scan": ["rg", "--no-ignore", "--count", "zzz_never", os.fspath(tree)],
    }
    found: dict[str, float] = {}
    for name, command in commands.items():
        program = shutil.which(
            command[0], path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        )
        if program is None:
            continue
        before = os.times()
        subprocess.run([program, *command[1:]], capture_output=True, check=False)
        after = os.times()
        found[name] = after.children_user - before.children_user + after.children_system - before.children_system
    return found


def _goal(goal: str, measured: float, limit: float) -> dict[str, Any]:
    return {"goal": goal, "measured": round(measured, 2), "met": measured <= limit}
