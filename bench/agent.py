"""What an agent pays. Twenty questions about two packages over MCP: does the answer hold the fact, and what does it
cost, all that is sent counted? Beside it what ripgrep would cost: its raw output, and that with the files one would
then read. And thirty tasks about six packages at the command line (agent_tasks.toml): calls and tokens of the shortest
sequence of `cq` commands that tells all facts, and of one of ripgrep and sed.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from bench.corpora import fetch
from cq.answers.page import estimate

_BUDGET = 8000
# Tokens that these questions cost at most: they cost 21,154 when this was set, and 74,587 while answers were sent as
# text and again as structured content.
_MOST = 22_000
# (tool, arguments, what the answer must hold, what one would give ripgrep, the files one would read then)
Question = tuple[str, dict[str, Any], str, str, tuple[str, ...]]
DJANGO: list[Question] = [
    ("codebase_search", {"query": "get_or_create"}, r"query\.py\b[\s\S]*938", "get_or_create",
     ("django/db/models/query.py",)),
    ("codebase_context", {"what": "calls", "target": "QuerySet.get_or_create"}, r"update_or_create", "get_or_create\\(",
     ("django/db/models/query.py",)),
    ("codebase_search", {"query": "how are passwords hashed"}, r"PasswordHasher", "hash.*password|password.*hash",
     ("django/contrib/auth/hashers.py",)),
    ("codebase_context", {"what": "references", "target": "SuspiciousOperation"}, r"core/exceptions\.py",
     "SuspiciousOperation", ("django/core/exceptions.py",)),
    ("codebase_search", {"query": "where is the CSRF token checked"}, r"csrf", "csrf.*token",
     ("django/middleware/csrf.py",)),
    ("codebase_read", {"target": "QuerySet.get_or_create"}, r"self\._extract_model_params", "def get_or_create",
     ("django/db/models/query.py",)),
    ("codebase_context", {"target": "Model.save_base"}, r"Callers[\s\S]*\bsave\b", "save_base",
     ("django/db/models/base.py",)),
    ("codebase_context", {"what": "impact", "target": "constant_time_compare"}, r"check_password|verify|signing",
     "constant_time_compare", ("django/utils/crypto.py",)),
    ("codebase_context", {"what": "types", "target": "BasePasswordHasher"}, r"ScryptPasswordHasher",
     "BasePasswordHasher", ("django/contrib/auth/hashers.py",)),
    ("codebase_search", {"query": "symbol = Atomic > __exit__"}, r"connection\.savepoint_rollback|in_atomic_block",
     "class Atomic", ("django/db/transaction.py",)),
    ("codebase_query", {"query": "entity=class in=django/db/migrations/operations name=~^Add"}, r"AddField",
     "class Add", ("django/db/migrations/operations/fields.py",)),
    ("codebase_read", {"target": "django/db/transaction.py"}, r"def atomic", "def atomic",
     ("django/db/transaction.py",)),
]  # fmt: skip
RXJS: list[Question] = [
    ("codebase_search", {"query": "switchMap"}, r"operators/switchMap\.ts", "switchMap",
     ("internal/operators/switchMap.ts",)),
    ("codebase_read", {"target": "internal/operators/switchMap.ts:switchMap"}, r"innerSubscriber",
     "function switchMap", ("internal/operators/switchMap.ts",)),
    ("codebase_context", {"what": "calls", "target": "internal/operators/mergeInternals.ts:mergeInternals"},
     r"mergeMap", "mergeInternals\\(", ("internal/operators/mergeInternals.ts",)),
    ("codebase_context", {"what": "types", "target": "internal/Subject.ts:Subject"}, r"BehaviorSubject",
     "extends Subject", ("internal/Subject.ts",)),
    ("codebase_context", {"target": "internal/operators/OperatorSubscriber.ts:createOperatorSubscriber"},
     r"Callers", "createOperatorSubscriber", ("internal/operators/OperatorSubscriber.ts",)),
    ("codebase_search", {"query": "retry when the source fails"}, r"retry", "retry",
     ("internal/operators/retry.ts",)),
    ("codebase_read", {"target": "internal/Observable.ts"}, r"subscribe", "class Observable",
     ("internal/Observable.ts",)),
    ("codebase_search", {"query": "ObjectUnsubscribedError"}, r"util/ObjectUnsubscribedError\.ts",
     "ObjectUnsubscribedError", ("internal/util/ObjectUnsubscribedError.ts",)),
]  # fmt: skip
_COMMON = 5  # the first of Django: where it is, who calls it, who uses it, and twice code about an idea


def run(results: dict[str, Any]) -> None:
    base = Path(tempfile.mkdtemp(prefix="cq-bench-"))
    environment = {
        **os.environ,
        **{f"XDG_{name}": str(base / name) for name in ("RUNTIME_DIR", "CACHE_HOME", "CONFIG_HOME")},
    }
    try:
        rows = [
            row
            for name, questions in (("django", DJANGO), ("rxjs", RXJS))
            for row in anyio.run(_ask, name, questions, environment)
        ]
        tasks = _do_tasks(environment)
    finally:
        subprocess.run(
            [sys.executable, "-m", "cq", "daemon", "stop"], env=environment, capture_output=True, check=False
        )
        shutil.rmtree(base, ignore_errors=True)
    right = sum(row["holds it"] == "yes" for row in rows)
    total = {name: sum(row[name] for row in rows) for name in ("tokens", "ripgrep", "ripgrep and files")}
    results["tables"] = {
        "20 questions": rows,
        "30 tasks": tasks,
        "tokens in all": [{**total, "ripgrep and files / cq": total["ripgrep and files"] / total["tokens"]}],
    }
    calls, tokens = ({who: sum(task[f"{who} {what}"] for task in tasks) for who in ("cq", "rg")} for what in _COSTS)
    results["tables"]["tasks in all"] = [
        {"cq calls": calls["cq"], "rg calls": calls["rg"], "cq tokens": tokens["cq"], "rg tokens": tokens["rg"],
         "cq / rg": tokens["cq"] / tokens["rg"]}
    ]  # fmt: skip
    lacking = sum(task["lacks"] for task in tasks)
    common = rows[:_COMMON]
    cheaper = sum(row["tokens"] < row["ripgrep"] for row in common)
    results["goals"] = [
        {"goal": f"≥ 19 of {len(rows)} answers hold the fact within {_BUDGET:,} tokens", "measured": right,
         "met": right >= 19},
        {"goal": f"all that is sent for them costs at most {_MOST:,} tokens", "measured": total["tokens"],
         "met": total["tokens"] <= _MOST},
        {"goal": "the five commonest questions on Django cost fewer tokens than ripgrep's output", "measured": cheaper,
         "met": cheaper == len(common)},
        {"goal": "every fact of the tasks is in the output of cq", "measured": f"{lacking} are not",
         "met": lacking == 0},
        {"goal": "the tasks take no more calls than with ripgrep and sed", "measured": calls["cq"],
         "met": calls["cq"] <= calls["rg"]},
        {"goal": "the tasks cost fewer tokens than with ripgrep and sed", "measured": tokens["cq"],
         "met": tokens["cq"] < tokens["rg"]},
    ]  # fmt: skip


_COSTS = ("calls", "tokens")


def _do_tasks(environment: dict[str, str]) -> list[dict[str, Any]]:
    tasks = tomllib.loads(Path(__file__).with_name("agent_tasks.toml").read_text("utf-8"))["task"]
    return [_do_task(task, environment) for task in tasks]


def _do_task(task: dict[str, Any], environment: dict[str, str]) -> dict[str, Any]:
    tree, programs = fetch(task["package"]), Path(sys.executable).parent

    def run_all(commands: list[str], program: str = "") -> str:
        """As a shell that stands in the package's folder; what is told beside the answer is paid for as well."""
        said = ""
        for command in commands:
            words = [*([program] if program else []), *shlex.split(command)]
            words[0] = str(programs / words[0]) if words[0] in ("cq", "rg") else words[0]
            done = subprocess.run(words, cwd=tree, env=environment, capture_output=True, check=False)
            said += (done.stdout + done.stderr).decode("utf-8", "replace")
        return said

    run_all(["index"], "cq")
    mine, other = run_all(task["cq"], "cq"), run_all(task["rg"])
    return {
        "package": task["package"],
        "question": task["question"],
        "lacks": sum(re.search(fact, mine) is None for fact in task["facts"]),
        "cq calls": len(task["cq"]),
        "cq tokens": estimate(mine),
        "rg calls": len(task["rg"]),
        "rg tokens": estimate(other),
    }


async def _ask(name: str, questions: list[Question], environment: dict[str, str]) -> list[dict[str, Any]]:
    tree = fetch(name)
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "cq", "mcp", "--root", str(tree)], env=environment
    )
    subprocess.run([sys.executable, "-m", "cq", "index", "--root", str(tree)], env=environment, capture_output=True)
    rows: list[dict[str, Any]] = []
    async with Client(command, mode="legacy") as client:
        for tool, arguments, fact, pattern, files in questions:
            answer = await client.call_tool(tool, arguments)
            text = "\n".join(piece.text for piece in answer.content if piece.type == "text")
            tokens = estimate(answer.model_dump_json(by_alias=True, exclude_none=True))
            holds = not answer.is_error and re.search(fact, text) is not None and tokens <= _BUDGET
            raw = _count_ripgrep(tree, pattern)
            read = sum(estimate((tree / file).read_text("utf-8", "replace")) for file in files)
            rows.append(
                {
                    "package": name,
                    "question": f"{tool.removeprefix('codebase_')} {' '.join(map(str, arguments.values()))}"[:60],
                    "holds it": "yes" if holds else "no",
                    "tokens": tokens,
                    "ripgrep": raw,
                    "ripgrep and files": raw + read,
                }
            )
    return rows


def _count_ripgrep(tree: Path, pattern: str) -> int:
    rg = Path(sys.executable).with_name("rg")
    done = subprocess.run([rg, "-n", pattern, "."], cwd=tree, capture_output=True, check=False)
    return -(-len(done.stdout) // 4)
