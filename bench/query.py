"""Queries over Django: patterns against the ast-grep program with the same rule, and entities, in one run. Then
patterns made of the code of six languages: what cq, ast-grep-py and the program find for each."""

from __future__ import annotations

import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec

from bench.corpora import CorpusError, fetch
from bench.patterns import compare, make_patterns
from cq import Workspace

_ROUNDS = 5
_CORPORA = {
    "python": (("django",), (".py",)),
    "typescript": (("rxjs", "zod"), (".ts",)),
    "rust": (("ruff",), (".rs",)),
    "go": (("gin", "cobra", "chi"), (".go",)),
    "java": (("capacitor-android",), (".java",)),
    "cpp": (("nlohmann-json", "fmtlib", "spdlog"), (".hpp", ".h")),
}
_COUNT = 60
_FILES = 80
_MAX_FILE = 60_000  # bytes
# What is asked, as a query and as a rule of the program.
_PATTERNS: dict[str, tuple[str, dict[str, Any]]] = {
    "a rare call": ("pattern='import_string($X)' lang=python", {"pattern": "import_string($X)"}),
    "getattr inside a class": (
        "pattern='getattr($X, $Y)' inside='kind=class_definition' lang=python",
        {"pattern": "getattr($X, $Y)", "inside": {"kind": "class_definition", "stopBy": "end"}},
    ),
    "functions that await": (
        "pattern='kind=function_definition' has='await $X' lang=python",
        {"kind": "function_definition", "has": {"pattern": "await $X", "stopBy": "end"}},
    ),
    "no words to look up": ("pattern='$A == $A' lang=python", {"pattern": "$A == $A"}),
}
_ENTITIES = {
    "by exact name": "entity=method name=get_queryset",
    "by a regular expression": "entity=function,method name=~^get_",
    "by decorator": "entity=function,method decorated_by=property",
    "by what they raise": "entity=function,method raises=ValueError",
}


def run(results: dict[str, Any]) -> None:
    program = shutil.which("ast-grep", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if program is None:
        raise CorpusError("ast-grep is not installed: make install")
    root = fetch("django")
    with (
        tempfile.TemporaryDirectory(prefix="cq-bench-") as scratch,
        Workspace.open(root, index_dir=scratch) as workspace,
    ):
        workspace.refresh()
        rows: list[dict[str, Any]] = []
        for name, (query, rule) in _PATTERNS.items():
            file = Path(scratch) / "rule.json"
            file.write_bytes(msgspec.json.encode({"id": "x", "language": "python", "rule": rule}))
            command = [program, "scan", "--rule", os.fspath(file), "--json=stream", os.fspath(root)]
            theirs, ours = [], []
            lines = found = 0
            for _ in range(_ROUNDS):  # turn by turn: another load on the machine meets both
                started = time.perf_counter()
                lines = subprocess.run(command, capture_output=True, check=False).stdout.count(b"\n")
                theirs.append(time.perf_counter() - started)
                started = time.perf_counter()
                found = workspace.q(query).found
                ours.append(time.perf_counter() - started)
            one, other = statistics.median(ours), statistics.median(theirs)
            rows.append(
                {
                    "pattern": name,
                    "matches": found,
                    "same": found == lines,
                    "cq ms": one * 1000,
                    "ast-grep ms": other * 1000,
                    "ratio": one / other,
                }
            )
        entities = [
            {
                "entities": name,
                "matches": workspace.q(query).found,
                "ms": _median(lambda query=query: workspace.q(query)) * 1000,
            }
            for name, query in _ENTITIES.items()
        ]
    same = [_compare(language, *where) for language, where in _CORPORA.items()]
    results["tables"] = {
        "Django, patterns over the whole tree": rows,
        "Django, entities, warm": entities,
        "patterns made of code, against ast-grep": same,
    }
    results["goals"] = [
        {
            "goal": f"{row['pattern']}: at most the program's wall time",
            "measured": round(row["ratio"], 2),
            "met": row["ratio"] <= 1,
        }
        for row in rows
    ]
    results["goals"].append(
        {
            "goal": "the same matches",
            "measured": sum(row["same"] for row in rows),
            "met": all(row["same"] for row in rows),
        }
    )
    results["goals"].append(
        {
            "goal": "no difference to ast-grep that docs/query.md does not explain",
            "measured": sum(row["unexplained"] + row["program differs"] for row in same),
            "met": not any(row["unexplained"] + row["program differs"] for row in same),
        }
    )


def _compare(language: str, names: tuple[str, ...], endings: tuple[str, ...]) -> dict[str, Any]:
    """Sixty patterns over some files of the corpora, in a tree of their own."""
    with tempfile.TemporaryDirectory(prefix="cq-bench-") as scratch:
        root = Path(scratch) / "tree"
        files = [(name, fetch(name), path) for name in names for path in sorted(fetch(name).rglob("*"))]
        files = [file for file in files if file[2].suffix in endings and 0 < file[2].stat().st_size < _MAX_FILE]
        random.Random(1).shuffle(files)
        for name, base, path in files[:_FILES]:
            copy = root / name / path.relative_to(base)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
        with Workspace.open(root, index_dir=Path(scratch) / "index") as workspace:
            workspace.refresh()
            paths = [file.path for file in workspace.files() if file.language == language]
            texts = [workspace.text(path).decode("utf-8", "replace") for path in paths[: _FILES // 2]]
            found = compare(workspace, language, make_patterns(texts, language, _COUNT))
    return {
        "language": language,
        "files": len(paths),
        "patterns": found.patterns,
        "matches": found.matches,
        "same": found.patterns - len(found.differences) - len(found.refused),
        "explained": sum(bool(difference.explained) for difference in found.differences),
        "unexplained": sum(not difference.explained for difference in found.differences),
        "program differs": len(found.program),
        "refused by both": len(found.refused),
    }


def _median(work: Any) -> float:
    times: list[float] = []
    for _ in range(_ROUNDS):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.median(times)
