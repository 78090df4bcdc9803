"""`cq risk` over an index: filters, explanations, comments that pass flows over, and what stays when lines move."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from cq import Workspace
from cq.model.answer import Answer, RiskDetails
from cq.model.errors import ConfigError, UsageError
from cq.questions.risk import RiskOptions
from cq.surfaces.render.sarif import render_sarif

APP = """\
import os
import hashlib
import lib
from flask import Flask, request
app = Flask(__name__)

@app.route("/run")
def run():
    lib.start(request.args["name"])
    return "done"

def sign(text):
    return hashlib.md5(text)
"""
LIB = """\
import os

def start(name):
    os.system("start " + name)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    root.mkdir()
    (root / "app.py").write_text(APP)
    (root / "lib.py").write_text(LIB)
    return root


def ask(root: Path, *words: str, **more: object) -> Answer:
    with Workspace.open(root, index_dir=root.parent / "index") as workspace:
        return workspace.risk(RiskOptions(words, **more))  # pyright: ignore[reportArgumentType]


def list_flows(answer: Answer) -> list[RiskDetails]:
    found = [finding.details for section in answer.sections for finding in section.findings]
    return [details for details in found if isinstance(details, RiskDetails)]


def test_the_worst_comes_first_with_every_step(root: Path):
    command, weak = list_flows(ask(root))
    assert (command.risk, command.severity, command.source) == ("command", "critical", "python-flask-request")
    assert [(step.location.path, step.location.start_line) for step in command.witness] == [
        ("app.py", 9), ("app.py", 9), ("lib.py", 4)
    ]  # fmt: skip
    assert (weak.risk, weak.witness) == ("hash", ())


@pytest.mark.parametrize(
    ("options", "kinds"),
    [
        ({"kinds": ("sql",)}, []),
        ({"kinds": ("hash",)}, ["hash"]),
        ({"cwes": (78,)}, ["command"]),
        ({"severity": "high"}, ["command"]),
        ({"min_confidence": 0.85}, ["hash"]),
        ({"sources": ("local",)}, []),
        ({"sources": ("remote",)}, ["command"]),
        ({"begin": "app.py"}, ["command", "hash"]),
        ({"begin": "lib.py"}, []),
        ({"end": "lib.py:start"}, ["command"]),
        ({"end": "app.py:run"}, []),
    ],
)
def test_filters(root: Path, options: dict[str, object], kinds: list[str]):
    assert [details.risk for details in list_flows(ask(root, **options))] == kinds


def test_a_path_or_a_definition_that_flows_pass_through(root: Path):
    assert [details.risk for details in list_flows(ask(root, "lib.py"))] == ["command"]
    assert [details.risk for details in list_flows(ask(root, "sign"))] == ["hash"]
    assert ask(root, "nothing_like_it").found == 0


def test_an_id_stays_when_lines_move_and_a_baseline_knows_it(root: Path):
    before = [details.fingerprint for details in list_flows(ask(root))]
    (root / "known.jsonl").write_text("".join(f'{{"fingerprint":"{name}"}}\n' for name in before))
    (root / "app.py").write_text(f"# a line\n\n{APP}")
    (root / "lib.py").write_text(f'"""A module."""\n{LIB}\ndef other(name):\n    os.popen(name)\n')
    assert [details.fingerprint for details in list_flows(ask(root))] == before
    assert ask(root, baseline="known.jsonl").found == 0
    (root / "app.py").write_text(APP.replace("lib.start", "lib.other"))
    assert [details.risk for details in list_flows(ask(root, baseline="known.jsonl"))] == ["command"]


def test_explain_shows_a_flow_by_its_id(root: Path):
    command, weak = list_flows(ask(root))
    explained = ask(root, "explain", command.fingerprint)
    assert [details.fingerprint for details in list_flows(explained)] == [command.fingerprint]
    assert [details.fingerprint for details in list_flows(ask(root, "explain", "sign"))] == [weak.fingerprint]
    assert ask(root, "explain", "ffffffffffff").found == 0


def test_a_comment_passes_a_flow_over(root: Path):
    (root / "lib.py").write_text(LIB.replace(" + name)", " + name)  # cq: ignore[python-command] names are checked"))
    answer = ask(root)
    assert answer.found == 1
    assert [details.suppressed for details in list_flows(answer)] == ["", "names are checked"]
    (root / "lib.py").write_text(LIB.replace("def start", "# cq: ignore[python-sql] why not\ndef start"))
    told = [event.category for event in ask(root).degraded]
    assert "unused_ignore" in told
    (root / "lib.py").write_text(LIB.replace(" + name)", " + name)  # cq: ignore[*]"))
    assert "no_reason" in [event.category for event in ask(root).degraded]


def test_only_changed_lines(root: Path):
    run = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "a"]):
        subprocess.run([*run, *words], cwd=root, check=True)
    assert ask(root, since="HEAD").found == 0
    (root / "lib.py").write_text(LIB.replace('"start "', '"begin "'))
    assert [details.risk for details in list_flows(ask(root, since="HEAD"))] == ["command"]


def test_coverage_tells_what_was_seen(root: Path):
    (root / "lib.py").write_text(LIB.replace("os.system(", "os.system(strange(").replace("name)", "name))"))
    (root / "lib.py").write_text("from unknown import strange\n" + (root / "lib.py").read_text())
    answer = ask(root, "coverage")
    said = {section.kind: [finding.message for finding in section.findings] for section in answer.sections}
    assert said["sources"] == ["1 python-flask-request"]
    assert said["entries"] == ["1 python-flask-route"]
    assert "1 unknown.strange" in said["unmodelled"]


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (("explain",), {}), (("rules", "x"), {}), (("a", "b"), {}), (("coverage",), {"kinds": ("sql",)}),
        ((), {"kinds": ("sqll",)}), ((), {"test": True}), ((), {"severity": "bad"}), ((), {"min_confidence": 2.0}),
        ((), {"since": "no-such-revision"}), ((), {"baseline": "missing.json"}),
    ],
)  # fmt: skip
def test_what_cannot_be_asked(root: Path, words: tuple[str, ...], options: dict[str, object]):
    with pytest.raises(UsageError):
        ask(root, *words, **options)


def test_sarif_has_steps_rules_and_weaknesses(root: Path):
    log = json.loads(render_sarif(ask(root)))
    (run,) = log["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["python-command", "python-weak-hash"]
    first, second = run["results"]
    steps = first["codeFlows"][0]["threadFlows"][0]["locations"]
    assert [step["location"]["physicalLocation"]["region"]["startLine"] for step in steps] == [9, 9, 4]
    assert first["partialFingerprints"]["cq/v1"] != second["partialFingerprints"]["cq/v1"]
    assert [taxon["id"] for taxon in run["taxonomies"][0]["taxa"]] == ["78", "328"]
    assert "codeFlows" not in second


def test_two_runs_say_the_same(root: Path):
    one, other = ask(root), ask(root)
    assert (one.sections, one.edges, one.degraded) == (other.sections, other.edges, other.degraded)


OWN_RULES = """
language = "python"

[[sink]]
id = "our-runner"
kind = "command"
cwe = 78
message = "our runner runs what it gets"
fix = "pass a list"
names = ["runner.go"]
args = [0]
"""


def test_rules_of_the_user(root: Path):
    (root / "rules.toml").write_text(OWN_RULES)
    (root / "cq.toml").write_text('[risk]\nrules = ["rules.toml"]\n')
    (root / "app.py").write_text("import runner\nfrom flask import request\nrunner.go(request.args['a'])\n")
    assert [details.rule for details in list_flows(ask(root))] == ["our-runner"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (OWN_RULES.replace('"command"', '"comand"'), "rules.toml:6: kind cannot be 'comand'"),
        (OWN_RULES.replace("our-runner", "python-sql"), "rules.toml:5: there are two rules 'python-sql'"),
        (OWN_RULES.replace('"python"', '"pyton"'), "rules.toml:2: language cannot be 'pyton'"),
        (None, "rules.toml is not read: missing"),
    ],
)
def test_rules_of_the_user_that_are_wrong(root: Path, wrong: str | None, message: str):
    if wrong is not None:
        (root / "rules.toml").write_text(wrong)
    (root / "cq.toml").write_text('[risk]\nrules = ["rules.toml"]\n')
    with pytest.raises(ConfigError, match=re.escape(message)):
        ask(root)


def test_flows_that_a_revision_did_not_have(root: Path):
    def git(*words: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=root, check=True, capture_output=True
        )

    git("init", "-q")
    git("add", "-A")
    git("commit", "-q", "-m", "first")
    (root / "app.py").write_text("\n" + APP + "\ndef more():\n    eval(request.args['code'])\n")
    assert [details.risk for details in list_flows(ask(root, new_since="HEAD"))] == ["code"]
    with pytest.raises(UsageError):
        ask(root, new_since="nothing")
