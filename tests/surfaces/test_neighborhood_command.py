"""`cq neighborhood` as a real process: formats, exit codes, commands that can be pasted, artifacts."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from cq.model.neighborhood import Bundle


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("command") / "repo"
    (root / "tests").mkdir(parents=True)
    (root / "db.py").write_text(
        "class Store:\n    def save(self, row):\n        return check(row)\n\n    def drop(self): ...\n\n\n"
        "def check(row):\n    return row\n"
    )
    (root / "app.py").write_text("from db import Store\n\n\ndef main():\n    Store().save(1)\n")
    (root / "tests" / "test_app.py").write_text("from app import main\n\n\ndef test_main():\n    main()\n")
    (root / "cq.toml").write_text('[artifacts]\nstore = "sqlite"\n')
    return root


def cq(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("CQ_")}
    return subprocess.run(
        [sys.executable, "-m", "cq", *arguments],
        cwd=root,
        env={**clean, "XDG_CACHE_HOME": str(root.parent / "cache")},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_text_leaves_out_what_is_empty_and_its_commands_run(root: Path):
    done = cq(root, "nb", "Store.save", "--no-lsp", "--top-k", "1", "--card")
    assert (done.returncode, done.stderr) == (0, "")
    headings = [line.removeprefix("## ") for line in done.stdout.splitlines() if line.startswith("## ")]
    parents, _, artifact = headings.pop(3).partition(" the rest: ")
    assert parents == "Parents (1 of 2)"
    assert headings == [
        "Key Findings", "Neighborhood", "Enclosing Context (1)", "Siblings (1)", "Callers (1)", "Callees (1)",
        "References (1)", "Importers (1)", "Tests (1)", "Suggested Follow-ups", "Provenance", "Card",
    ]  # fmt: skip
    assert "\napp.py:4:5: def main() (in line 5)" in done.stdout
    commands = [artifact, *(line.strip() for line in done.stdout.splitlines() if line.startswith("  cq "))]
    assert len(commands) >= 5
    for command in commands:
        assert cq(root, *shlex.split(command)[1:]).returncode == 0, command


def test_json_holds_the_bundle_the_same_twice(root: Path):
    first, second = (
        json.loads(cq(root, "neighborhood", "Store.save", "--no-lsp", "--format", "json").stdout) for _ in range(2)
    )
    assert first["bundle"] == second["bundle"]
    bundle = msgspec.convert(first["bundle"], Bundle)
    assert bundle.schema_version == "cq.snb.v1"
    assert json.loads(msgspec.json.encode(bundle)) == first["bundle"]
    assert {section["kind"] for section in first["sections"]} >= {"implementations", "related", "lsp_deep_signals"}
    assert all(key["message"] for key in first["key_findings"])


def test_artifacts_are_kept_in_sqlite_where_configured(root: Path):
    done = cq(root, "nb", "db.py", "--no-lsp", "--top-k", "1", "--slices", "children", "--format", "json")
    (pointer,) = json.loads(done.stdout)["bundle"]["artifacts"]
    whole = json.loads(cq(root, "artifact", "get", pointer["artifact_id"]).stdout)
    assert [node["name"] for node in whole["preview"]] == ["Store", "check"]
    assert list((root.parent / "cache").rglob("answers.sqlite"))
    assert pointer["artifact_id"] in cq(root, "artifact", "list").stdout


def test_a_picture_has_the_links_and_no_others(root: Path):
    done = cq(root, "nb", "check", "--no-lsp", "--format", "dot", "--expand", "callers(depth=2)")
    assert "db.py:Store.save" in done.stdout
    assert "app.py:main" in done.stdout
    assert "db.py:Store.drop" not in done.stdout
    assert cq(root, "nb", "check", "--no-lsp", "--format", "mermaid").stdout.startswith("flowchart LR")


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["nothing_here"], 1, "nothing found"),
        ([""], 2, "the target is empty"),
        (["Store", "--slices", "caller"], 2, "did you mean 'callers'"),
        (["Store", "--expand", "callers=2"], 2, "--expand cannot read"),
        (["Store", "--lang", "pyton"], 2, "did you mean 'python'"),
    ],
)
def test_what_cannot_be_answered(root: Path, arguments: list[str], status: int, said: str):
    done = cq(root, "neighborhood", "--no-lsp", *arguments)
    assert done.returncode == status
    assert said in done.stdout + done.stderr


def test_a_section_order_that_cannot_be(root: Path, tmp_path: Path):
    (tmp_path / "a.py").write_text("def f(): ...\n")
    (tmp_path / "cq.toml").write_text('[neighborhood.section_order]\norder = ["caller"]\n')
    done = cq(root, "nb", "f", "--root", str(tmp_path))
    assert done.returncode == 2
    assert "neighborhood.section_order.order" in done.stderr
