"""`cq find` as a process: exit codes, JSON by rank, and the content of a tool's answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    (root / "auth.py").write_text(
        "import jwt\n\nclass Tokens:\n    def validate(self, token):\n        return jwt.decode(token)\n"
    )
    (root / "web.py").write_text(
        "from auth import Tokens\n\ndef handle(request):\n    return Tokens().validate(request.token)\n"
    )
    return root


def cq(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cq", "find", "--root", os.fspath(root), "--index-dir", f"{root}/.index"]
    return subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=120, check=False)


def test_json_has_results_by_rank_then_graph_and_snapshots(tree: Path):
    done = cq(tree, "validate a token", "--format", "json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert [result["rank"] for result in answer["results"]] == list(range(1, len(answer["results"]) + 1))
    first = answer["results"][0]
    assert {"score", "parts", "file", "name", "qualified_name", "kind", "start_line", "end_line", "chunk_uid"} <= set(
        first
    )
    assert (first["file"], first["qualified_name"], first["start_line"]) == ("auth.py", "Tokens.validate", 4)
    keys = list(answer)
    assert keys.index("results") < keys.index("graph") < keys.index("snapshots")


def test_the_content_of_a_tool_begins_with_the_graph(tree: Path):
    content = json.loads(cq(tree, "symbol = validate", "--format", "mcp").stdout)["content"]
    assert content[0]["text"].startswith('Search: "symbol = validate" | 1 result | ')
    assert content[1]["text"].startswith("// auth.py\n\nimport jwt\n\nclass Tokens:\n")
    priorities = [piece["annotations"]["priority"] for piece in content]
    assert priorities[0] == 1.0
    assert priorities == sorted(priorities, reverse=True)
    assert all(piece["annotations"]["audience"] == ["assistant"] for piece in content)


def test_nothing_found_is_exit_code_one_and_a_wrong_option_two(tree: Path):
    missing = cq(tree, "symbol = Validate")
    assert missing.returncode == 1
    assert "did you mean 'validate' (auth.py:4)" in missing.stdout
    wrong = cq(tree, "token", "--kind", "functon")
    assert wrong.returncode == 2
    assert "did you mean 'function'" in wrong.stderr


def test_numpy_has_one_thread_unless_it_is_told_otherwise():
    code = "import os, sys; from cq.surfaces.client import main; main(); print(os.environ['OPENBLAS_NUM_THREADS'])"
    own = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    said = [
        subprocess.run(
            [sys.executable, "-c", code, "--version"], env=environment, capture_output=True, text=True, check=True
        ).stdout.splitlines()[-1]
        for environment in (own, own | {"OPENBLAS_NUM_THREADS": "3"})
    ]
    assert said == ["1", "3"]


def test_plain_is_one_line_a_result(tree: Path):
    done = cq(tree, "symbol = validate", "--format", "plain")
    assert (done.returncode, done.stdout) == (0, "auth.py:4:5: method Tokens.validate\n")
    refused = cq(tree, "validate a token", "--format", "plain", "--explain")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--explain" in refused.stderr


def test_what_is_not_here_is_exit_code_one_and_says_why(tree: Path):
    done = cq(tree, "kubernetes pod autoscaling")
    assert done.returncode == 1
    assert "no code here mentions 'kubernetes', 'pod', 'autoscaling'" in done.stdout
