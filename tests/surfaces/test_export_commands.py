"""`cq export`, `cq validate` and `cq schema` as they are typed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from cq.surfaces import cli

SOURCE = "def main():\n    print('x')\n"


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "repo" / ".git").mkdir(parents=True)
    (tmp_path / "repo" / "app.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path / "repo")
    monkeypatch.delenv("CQ_ROOT", raising=False)
    monkeypatch.setenv("CQ_INDEX_DIR", str(tmp_path / "indexes"))
    return tmp_path / "repo"


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    status = cli.main(argv)
    return status, *capsys.readouterr()


def load(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, Any]:
    status, out, err = run(capsys, *argv, "--format", "json")
    assert err == ""
    return status, msgspec.json.decode(out)


@pytest.mark.usefixtures("repo")
def test_export_then_validate(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    out = str(tmp_path / "out")
    status, report = load(capsys, "export", "--out", out)
    assert (status, report["out"]) == (0, out)
    assert {row["name"]: row["records"] for row in report["artifacts"]}["call_sites"] == 1
    assert run(capsys, "validate", "--artifacts", out)[0] == 0
    status, page, _ = run(capsys, "export", "--out", out, "--only", "chunks, symbols", "--compress", "zstd")
    assert status == 0
    assert "| symbols " in page
    assert not (tmp_path / "out" / "call_sites.jsonl").exists()
    (tmp_path / "out" / "symbols.jsonl.zst").write_bytes(b"")
    status, page, err = run(capsys, "validate", "--artifacts", out)
    assert (status, err) == (2, "")
    assert "checksum  symbols.jsonl.zst" in page
    status, validation = load(capsys, "validate", "--artifacts", out)
    assert status == 2
    assert validation["counts"]["checksum"] == 1


@pytest.mark.usefixtures("repo")
def test_validate_the_index(capsys: pytest.CaptureFixture[str]):
    status, validation = load(capsys, "validate", "--strict")
    assert (status, validation["findings"], validation["strict"]) == (0, [], True)
    assert validation["checked"]["files"] == 1
    assert "Nothing wrong" in run(capsys, "validate")[1]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("export",), "--out"),
        (("export", "--out", "x", "--only", "chunk"), "did you mean 'chunks'"),
        (("export", "--out", "."), "other things than an export"),
        (("export", "--out", "x", "--compress", "gzip"), "'gzip' is not one of"),
        (("validate", "--artifacts", "nowhere"), "not a directory"),
        (("schema", "chunk"), "did you mean 'chunks'"),
    ],
)
@pytest.mark.usefixtures("repo")
def test_mistakes_are_one_line(capsys: pytest.CaptureFixture[str], argv: tuple[str, ...], message: str):
    status, out, err = run(capsys, *argv)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message in err


def test_schema(capsys: pytest.CaptureFixture[str]):
    assert "call_sites" in run(capsys, "schema")[1]
    status, out, _ = run(capsys, "schema", "call_sites")
    assert status == 0
    assert msgspec.json.decode(out)["$ref"] == "#/$defs/CallSiteRow"
