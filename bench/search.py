"""How fast a name is found and classed: beside ripgrep over the same files, in the same run."""

from __future__ import annotations

import os
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
from cq.model.answer import Answer
from cq.questions.search import SearchOptions
from cq.workspace import Workspace

_RUNS = 9
_QUERIES = {
    "a method": SearchOptions("get_or_create"),
    "a class": SearchOptions("QuerySet"),
    "a dotted name": SearchOptions("models.Model"),
    "an expression": SearchOptions("process_(request|response)", mode="regex"),
    "a text": SearchOptions("can't", mode="literal"),
    "100,000 mentions": SearchOptions("self"),
}
_MODES = {"identifier": ["-w", "-F"], "auto": ["-w", "-F"], "literal": ["-F"], "regex": []}


def run(results: dict[str, Any]) -> None:
    rg = shutil.which("rg", path=os.fspath(Path(sys.executable).parent)) or shutil.which("rg")
    if rg is None:
        raise SystemExit("bench: search: ripgrep is missing; make installs it")
    rows: list[dict[str, Any]] = []
    ratios: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="cq-bench-") as scratch:
        tree = fetch("django")
        index = Path(scratch)
        with Workspace.open(tree, index_dir=index) as workspace:
            workspace.refresh(wait=True)
            for name, options in _QUERIES.items():
                answer = workspace.search(options)
                stages = [sum(workspace.search(options).run.stages_ms.values()) for _ in range(_RUNS)]
                whole = [_time(lambda options=options: workspace.search(options)) for _ in range(_RUNS)]
                command = [
                    rg,
                    "--no-config",
                    "-S",
                    "--json",
                    *_MODES[options.mode],
                    "--",
                    options.text,
                    os.fspath(tree),
                ]
                floor = [_time(lambda command=command: _call(command)) for _ in range(_RUNS)]
                ratios[name] = statistics.median(stages) / statistics.median(floor)
                rows.append(
                    {
                        "query": f"{name}: {options.text}",
                        "found": answer.found,
                        "search ms": round(statistics.median(stages), 1),
                        "with refresh ms": round(statistics.median(whole), 1),
                        "ripgrep ms": round(statistics.median(floor), 1),
                        "search / ripgrep": round(ratios[name], 2),
                        "json bytes per shown hit": round(len(msgspec.json.encode(answer)) / _shown(answer)),
                    }
                )
        process = [
            sys.executable,
            "-m",
            "cq",
            "search",
            "get_or_create",
            "--root",
            os.fspath(tree),
            "--index-dir",
            os.fspath(index),
        ]
        cold = statistics.median(_time(lambda: _call(process)) for _ in range(_RUNS))
        bare = statistics.median(_time(lambda: _call([sys.executable, "-c", "pass"])) for _ in range(_RUNS))
        lines = subprocess.run(process, capture_output=True, check=True).stdout.count(b"\n")
    results["tables"] = {
        "search on Django, warm, in process": rows,
        "a new process": [{"cq search ms": round(cold), "python -c pass ms": round(bare), "lines": lines}],
    }
    results["goals"] = [
        {
            "goal": "enriched search, warm, in process: at most ripgrep's full scan",
            "measured": f"{ratios['a method']:.2f}×",
            "met": ratios["a method"] <= 1,
        },
        {"goal": "cq as a new process: at most 250 ms", "measured": f"{cold:.0f} ms", "met": cold <= 250},
        {"goal": "the default answer has at most 100 lines", "measured": lines, "met": lines <= 100},
    ]


def _shown(answer: Answer) -> int:
    budget = answer.insight.budget if answer.insight else None
    return max(budget.shown, 1) if budget else 1


def _time(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return (time.perf_counter() - started) * 1000


def _call(command: list[str]) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
