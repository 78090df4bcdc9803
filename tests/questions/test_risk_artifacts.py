"""What `cq risk` finds as artifacts: rows on chunkUid, caps that are told, and a clock that drops all or nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cq import Workspace
from cq.store.validate import validate_artifacts

APP = """\
import os
import lib
from flask import Flask, request
app = Flask(__name__)

@app.route("/run")
def run():
    lib.start(request.args["name"])

@app.route("/constant")
def constant():
    name = request.args["name"]
    lib.start("ls")
    os.system(lib.keep(name))
    unknown.thing(name)
"""
LIB = """\
import os
import shlex

def start(name):
    helper(name)

def helper(name):
    os.system("start " + name)

def keep(name):
    return name
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    root.mkdir()
    (root / "app.py").write_text(APP)
    (root / "lib.py").write_text(LIB)
    return root


def export(root: Path, config: str = "", only: tuple[str, ...] = ()) -> Path:
    (root / "cq.toml").write_text(config)
    out = root.parent / "out"
    with Workspace.open(root, index_dir=root.parent / "index") as workspace:
        workspace.export(out, only=only)
    assert validate_artifacts(out).counts == {}
    return out


def read_rows(out: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / f"{name}.jsonl").read_text().splitlines()]


def read_stats(out: Path) -> dict[str, Any]:
    return json.loads((out / "risk_interprocedural_stats.json").read_text())


def test_flows_lead_from_chunk_to_chunk_by_calls(root: Path):
    out = export(root)
    names = {row["chunkUid"]: row["qualifiedName"] for row in read_rows(out, "chunks")}
    calls = {row["callSiteId"]: row["calleeRaw"] for row in read_rows(out, "call_sites")}
    (flow,) = read_rows(out, "risk_flows")
    assert [names[uid] for uid in flow["path"]["chunkIds"]] == ["run", "start", "helper"]
    assert [[calls[site] for site in step] for step in flow["path"]["callSiteIdsByStep"]] == [["lib.start"], ["helper"]]
    assert (flow["sink"]["category"], flow["notes"]["hopCount"], flow["confidence"]) == ("command", 2, 0.705)
    (local,) = read_rows(out, "risk_local_flows")
    assert (names[local["chunkId"]], local["source"]["line"], local["sink"]["line"]) == ("constant", 12, 14)
    (partial,) = read_rows(out, "risk_partial_flows")
    assert (names[partial["chunkId"]], partial["reason"], partial["name"]) == (
        "constant",
        "unmodelled",
        "unknown.thing",
    )
    assert (read_stats(out)["status"], read_stats(out)["counts"]["flowsEmitted"]) == ("ok", 1)


def test_summaries_stand_in_chunks_too(root: Path):
    out = export(root)
    summaries = {row["symbol"]["name"]: row for row in read_rows(out, "risk_summaries")}
    assert sorted(summaries) == ["constant", "helper", "run"]
    assert [signal["ruleId"] for signal in summaries["helper"]["sinks"]] == ["python-command"]
    found = {row["qualifiedName"]: row["risk"] for row in read_rows(out, "chunks") if row["risk"]}
    assert sorted(found) == ["constant", "helper", "run"]
    assert found["constant"]["summary"]["localFlows"]["count"] == 1
    assert found["helper"]["summary"]["sinks"]["maxSeverity"] == "critical"


def test_a_constant_argument_is_a_flow_where_calls_alone_count(root: Path):
    out = export(root, '[risk]\nstrictness = "conservative"\n')
    names = {row["chunkUid"]: row["qualifiedName"] for row in read_rows(out, "chunks")}
    assert sorted(names[flow["source"]["chunkId"]] for flow in read_rows(out, "risk_flows")) == ["constant", "run"]


@pytest.mark.parametrize(
    ("config", "status", "caps", "flows"),
    [
        ("[risk]\nenabled = false\n", "disabled", [], 0),
        ("[risk]\nsummaryOnly = true\n", "ok", [], 0),
        ("[risk.caps]\nmaxDepth = 1\n", "ok", ["maxDepth"], 0),
        ("[risk.caps]\nmaxTotalFlows = 1\n", "ok", [], 1),
    ],
)
def test_settings_and_caps_are_in_the_statistics(root: Path, config: str, status: str, caps: list[str], flows: int):
    out = export(root, config)
    stats = read_stats(out)
    assert (stats["status"], stats["capsHit"], stats["counts"]["flowsEmitted"]) == (status, caps, flows)
    assert len(read_rows(out, "risk_flows")) == flows


def test_what_takes_too_long_is_dropped_whole(root: Path, monkeypatch: pytest.MonkeyPatch):
    moments = iter(range(10_000))
    monkeypatch.setattr("cq.questions.risk.rows.time.monotonic", lambda: float(next(moments)))
    out = export(root, "[risk.caps]\nmaxMs = 1\n")
    assert (read_stats(out)["status"], read_rows(out, "risk_flows")) == ("timed_out", [])


def test_escaping_weakens_where_that_is_the_policy(root: Path):
    (root / "lib.py").write_text(LIB.replace('"start " + name', '"start " + shlex.quote(name)'))
    assert read_rows(export(root), "risk_flows") == []
    (flow,) = read_rows(export(root, '[risk]\nsanitizerPolicy = "weaken"\n'), "risk_flows")
    assert (flow["notes"]["sanitizerBarriersHit"], flow["confidence"]) == (1, 0.352)


def test_other_artifacts_do_not_pay(root: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("cq.questions.risk.rows.analyze", refuse)
    export(root, only=("symbols", "call_sites"))
