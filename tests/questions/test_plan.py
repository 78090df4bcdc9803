"""Plans of several steps, and reports by name."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cq import Answer, Workspace
from cq.answers.page import Page
from cq.model.answer import SCHEMA_VERSION, Run
from cq.model.errors import SourceError, UsageError
from cq.model.plan import Plan, Step
from cq.questions.run import ReportOptions
from cq.questions.run.plan import FIELDS, MAX_BYTES, command_of, make_plan, parse_plan, read_field, run_plan
from cq.questions.run.presets import PRESETS
from cq.questions.run.steps import find_step_names
from cq.questions.table import QUESTIONS
from cq.surfaces.cli import main
from tests.support.checks import open_fixture

TREE = """
#- app/store.py
class Store:
    def save(self, row):
        if not row:
            raise ValueError(row)
        return self.check(row)
    def check(self, row):
        return bool(row)
#- app/use.py
from app.store import Store
print("loaded")
def write(rows):
    store = Store()
    for row in rows:
        store.save(row)
def main():
    try:
        write([])
    except ValueError:
        pass
#- tests/test_use.py
from app.use import main
def test_main():
    main()
#- web/tsconfig.json
{}
"""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with open_fixture(tmp_path_factory.mktemp("plan"), TREE) as opened:
        yield opened


def steps(*given: dict[str, Any], **more: Any) -> Plan:
    return make_plan({"steps": list(given), **more})


def states(answer: Answer) -> dict[str, str]:
    return {step["id"]: step["status"] for step in answer.summary["steps"]}


def test_one_text_stands_for_a_list_of_one():
    plan = parse_plan(
        b"[[steps]]\ntype = 'q'\nquery = 'entity=class'\nlang = 'python'\n"
        b"[[steps]]\ntype = 'neighborhood'\ntarget = 'save'\nexpand = 'callers(depth=2)'\nlang = ['rust', 'go']\n"
        b"[[steps]]\ntype = 'search'\ntext = 'save'\nin = 'src'\nkind = 'definition'\n"
    )
    assert [getattr(step, "lang", ()) for step in plan.steps] == [("python",), ("rust", "go"), ()]
    assert getattr(plan.steps[1], "expand", ()) == ("callers(depth=2)",)
    assert (getattr(plan.steps[2], "inside", ()), getattr(plan.steps[2], "kind", ())) == (("src",), ("definition",))
    for wrong in ({"lang": ""}, {"lang": 3}, {"query": ["entity=class"]}):
        with pytest.raises(UsageError):
            steps({"type": "q", "query": "entity=class", **wrong})


def test_steps_take_from_earlier_ones(workspace: Workspace):
    plan = steps(
        {"type": "search", "text": "save", "kind": ["definition"]},
        {"type": "calls", "id": "who", "target": "{{s1.top}}"},
        {"type": "impact", "target": "{{ who.target }}", "edges": ["calls"]},
        {"type": "exceptions", "target": "{{s1.path}}"},
        {"type": "q", "query": "entity=function name={{who.name}}"},
        {"type": "side-effects", "path": "{{who.path}}"},
    )
    answer = workspace.run(plan)
    assert set(states(answer).values()) == {"done"}
    asked = {step["id"]: step["summary"]["query"] for step in answer.summary["steps"]}
    assert asked == {
        "s1": "save",
        "who": "app/store.py:2:9",
        "s3": "app/store.py:Store.save",
        "s4": "app/store.py",
        "s5": "entity=function name=write",
        "s6": "app/use.py",
    }
    assert answer.found == 6
    titles = [section.title for section in answer.sections]
    assert titles[0] == "Steps"
    assert "who: Call Sites" in titles
    assert "s6: Files and Streams" in titles
    assert [finding.count for finding in answer.key_findings] == [step["found"] for step in answer.summary["steps"]]


def test_a_step_that_cannot_run_says_why(workspace: Workspace):
    given = (
        {"type": "calls", "target": "no_such_name"},
        {"type": "scopes", "target": "{{s1.top}}"},
        {"type": "bytecode", "target": "{{s2.top}}"},
        {"type": "calls", "target": "save", "in": ["nowhere"]},
        {"type": "imports"},
    )
    answer = workspace.run(steps(*given))
    assert states(answer) == {
        "s1": "done", "s2": "skipped", "s3": "skipped", "s4": "failed", "s5": "done",
    }  # fmt: skip
    reasons = {event.correlation_key: event.message for event in answer.degraded if event.stage == "plan"}
    assert "s1 found none" in reasons["s2"]
    assert "s2, which was skipped" in reasons["s3"]
    assert "nowhere does not exist" in reasons["s4"]
    stopped = workspace.run(steps(*given, stop_on_error=True))
    assert states(stopped)["s5"] == "skipped"
    assert (stopped.summary["failed"], answer.summary["done"]) == (1, 2)


def test_one_refresh_and_one_generation_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with open_fixture(tmp_path, TREE) as workspace:
        calls: list[int] = []
        refresh = workspace.index.refresh
        monkeypatch.setattr(workspace.index, "refresh", lambda **more: (calls.append(1), refresh(**more))[1])
        answer = workspace.run(
            steps({"type": "imports"}, {"type": "search", "text": "save"}, {"type": "q", "query": "entity=class"})
        )
        assert len(calls) == 1
        assert answer.run.generation == 1
        assert workspace.imports().found  # and the next question asks for itself
        assert len(calls) == 2


def test_the_same_answers_as_alone_and_twice(workspace: Workspace):
    plan = steps({"type": "calls", "target": "save"}, {"type": "exceptions"}, {"type": "impact", "target": "save"})
    first, second = workspace.run(plan), workspace.run(plan)
    assert msgspec.structs.replace(first, run=Run()) == msgspec.structs.replace(second, run=Run())
    alone = workspace.calls("save")
    assert [f for s in first.sections if s.title == "s1: Call Sites" for f in s.findings] == [
        f for s in alone.sections if s.title == "Call Sites" for f in s.findings
    ]


WRONG = {
    "unknown key": ('[[steps]]\ntype="calls"\ntargt="x"', "steps[0] (line 1): there is no key 'targt'", "'target'"),
    "unknown step": ('\n[[steps]]\ntype="cals"', "steps[0].type (line 2): there is no step 'cals'", "'calls'"),
    "no type": ('[[steps]]\ntarget="x"', "the key 'type' is missing", "search, find, calls"),
    "no target": ('[[steps]]\ntype="calls"', "the key 'target' is missing", "calls needs it"),
    "plan key": ('stop_on_eror=true\n[[steps]]\ntype="imports"', "there is no key 'stop_on_eror'", "'stop_on_error'"),
    "wrong type": ('[[steps]]\ntype="calls"\ntarget=3', "steps[0].target (line 1): expected `str`", "docs/run.md"),
    "odd type": ("[[steps]]\ntype=[1]", "steps[0].type (line 1): expected `str`", "docs/run.md"),
    "no object": ("steps=[3]", "steps[0]: expected `object`", "docs/run.md"),
    "too small": ('[[steps]]\ntype="imports"\nlimit=0', "steps[0].limit (line 1): expected `int` >= 1", "docs/run.md"),
    "nothing": ("", "the key 'steps' is missing", "a plan needs it"),
    "no steps": ("steps=[]", "steps: expected `array` of length >= 1", "docs/run.md"),
    "broken": ("a==", "is not TOML: Invalid value (at line 1, column 3)", "docs/run.md"),
    "forward": (
        '[[steps]]\ntype="calls"\ntarget="{{s2.top}}"',
        "steps[0].target (line 1), character 1: no earlier",
        "none",
    ),
    "no step": (
        '[[steps]]\nid="one"\ntype="imports"\n[[steps]]\ntype="scopes"\ntarget="a {{onee.top}}"',
        "character 3",
        "'one'",
    ),
    "no field": (
        '[[steps]]\ntype="imports"\n[[steps]]\ntype="scopes"\ntarget="{{s1.tap}}"',
        "a step has no 'tap'",
        "'top'",
    ),
    "no name": ('[[steps]]\ntype="scopes"\ntarget="{{}}"', "names no step", "top, target"),
    "twice": (
        '[[steps]]\ntype="imports"\n[[steps]]\nid="s1"\ntype="imports"',
        "there is a step 's1' already",
        "another id",
    ),
}


@pytest.mark.parametrize(("text", "message", "hint"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_with_a_plan(text: str, message: str, hint: str):
    with pytest.raises(UsageError) as raised:
        parse_plan(text.encode(), "p.toml")
    assert message in raised.value.message
    assert raised.value.message.startswith("p.toml")
    assert hint in raised.value.hint


@pytest.mark.parametrize(
    "text",
    [b"\xff", b"a=" + b"[" * 100_000, b"#" * (MAX_BYTES + 1), b'[[steps]]\ntype="imports"\n' * 51,
     b'[[steps]]\ntype="scopes"\ntarget="' + b"x" * 20_000 + b'"'],
)  # fmt: skip
def test_hostile_plans_are_refused(text: bytes):
    with pytest.raises(UsageError):
        parse_plan(text)


def test_what_fails_is_told_apart_from_what_finds_nothing():
    def ask(step: Step, page: Page) -> Answer | str:
        if step.id == "s1":
            raise SourceError("it is gone", hint="look elsewhere")
        return "not here" if step.id == "s2" else Answer(SCHEMA_VERSION, "imports", Run(), {"query": page.limit})

    answer = run_plan(steps({"type": "imports"}, {"type": "imports"}, {"type": "imports", "limit": 3}), ask)
    assert states(answer) == {"s1": "failed", "s2": "skipped", "s3": "done"}
    assert answer.summary["steps"][0]["reason"] == "source: it is gone (look elsewhere)"
    assert answer.summary["steps"][2]["summary"] == {"query": 3}
    assert answer.found == 0


def test_fields_of_an_answer(workspace: Workspace):
    answer = workspace.calls("save")
    assert {field: read_field(answer, field) for field in FIELDS} == {
        "top": "app/use.py:6:15", "target": "app/store.py:Store.save", "path": "app/use.py", "name": "write",
        "line": "6", "found": "1",
    }  # fmt: skip
    nothing = workspace.calls("no_such_name")
    assert [read_field(nothing, field) for field in FIELDS] == ["", "", "", "", "", "0"]


EVERY: dict[str, dict[str, Any]] = {
    "find": {"query": "check a row", "mode": "lexical", "path": ["app/"]},
    "search": {"text": "save", "mode": "identifier", "in": ["app"], "kind": ["definition", "callsite"]},
    "q": {"query": "entity=class", "lang": ["python"]},
    "calls": {"target": "save", "family": True, "in": ["app"]},
    "neighborhood": {"target": "save", "top_k": 3, "no_lsp": True, "slices": ["callers", "tests"], "depth": 2},
    "tests-for": {"target": ["Store.save"], "depth": 4, "min_confidence": 0.1},
    "impact": {"target": "app/store.py", "depth": 2, "edges": ["calls"], "min_confidence": 0.2},
    "sig-impact": {"target": "Store.save", "to": "save(self, row, *, fast)"},
    "imports": {"module": "app/use.py"},
    "exceptions": {"target": "write", "depth": 3},
    "side-effects": {"path": "app", "pure": True},
    "scopes": {"target": "write"},
    "bytecode": {"target": "write"},
    "graph": {"target": "write", "depth": 2, "direction": "dependencies"},
    "path": {"source": "main", "target": "Store.check", "edges": ["calls"]},
    "types": {"target": "Store"},
    "references": {"target": "Store.save", "certain": True},
    "hover": {"target": "Store.save"},
    "rank": {"in": ["app"], "tests": True},
    "projects": {"project": "web"},
    "read": {"target": "app/store.py"},
    "report": {"preset": "dependency-health", "target": "path:app"},
}


@pytest.mark.parametrize("kind", EVERY)
def test_every_step_is_the_command_it_says_it_is(kind: str, workspace: Workspace, capfd: pytest.CaptureFixture[str]):
    plan = steps({"type": kind, **EVERY[kind]})
    answer = workspace.run(plan)
    assert states(answer) == {"s1": "done"}
    assert answer.found == 1
    place = (
        "--root",
        shlex.quote(str(workspace.root)),
        "--index-dir",
        shlex.quote(str(workspace.root.parent / "index")),
    )
    words = shlex.split(command_of(plan.steps[0], place))
    assert words[:2] == ["cq", kind]
    assert main(words[1:]) == 0
    out = capfd.readouterr().out
    found = next(f for s in answer.sections[1:] for f in s.findings if f.location)
    assert found.location is not None
    assert found.location.path in out
    # In its file's block, or beside its path; `find` shows source, not places.
    assert kind == "find" or re.search(rf"^(  |.*:){found.location.start_line}:\d", out, re.MULTILINE)


# Nothing is wrong with the tree, and what a language server says is not the same everywhere.
ANSWERED_OTHERWISE: dict[str, dict[str, Any]] = {
    "routes": {"pattern": "/"},
    "map": {"size": "symbols"},
    "architecture": {"suggest": True},
    "api": {"part": "app"},
    "dead": {"part": "app"},
    "context": {"target": ["Store.save"]},
    "diagnostics": {"paths": ["app"], "severity": "error", "no_lsp": True},
    "lsp": {"plane": "workspace-symbols", "target": "Store", "no_lsp": True},
    "risk": {"severity": "high", "target": "app"},
}


def test_every_question_is_a_step(workspace: Workspace):
    asked = EVERY.keys() | ANSWERED_OTHERWISE.keys()
    of_a_history = {"diff", "log"}  # which is not here
    assert set(find_step_names()) == asked | of_a_history == QUESTIONS.keys() - {"run"}
    answer = workspace.run(steps(*({"type": kind, **given} for kind, given in ANSWERED_OTHERWISE.items())))
    assert set(states(answer).values()) == {"done"}


TARGETS = ("function:Store.save", "class:Store", "module:app.use", "path:app")


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("preset", PRESETS)
def test_reports(preset: str, target: str, workspace: Workspace):
    answer = workspace.report(ReportOptions(preset, target))
    assert answer.command == "report"
    assert set(states(answer).values()) == {"done"}
    assert answer.found >= 2
    assert answer.sections[-1].kind == "followups"
    commands = [finding.message for finding in answer.sections[-1].findings]
    assert len(commands) == answer.found
    target_card = answer.insight.target if answer.insight else None
    assert (target_card.name if target_card else "") == {"function": "Store.save", "class": "Store"}.get(
        target.partition(":")[0], ""
    )


def test_a_report_about_nothing(workspace: Workspace):
    assert workspace.report(ReportOptions("refactor-impact", "function:Store")).found == 0  # it is a class
    assert workspace.report(ReportOptions("refactor-impact", "path:nowhere")).found == 0
    with pytest.raises(UsageError, match=r"function:…, class:…") as raised:
        workspace.report(ReportOptions("refactor-impact", "funtion:save"))
    assert "'function'" in raised.value.hint
    with pytest.raises(UsageError, match="no report") as raised:
        workspace.report(ReportOptions("refactor", "function:save"))
    assert "refactor-impact" in raised.value.hint


def test_the_commands(workspace: Workspace, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    place = ["--root", str(workspace.root), "--index-dir", str(workspace.root.parent / "index")]
    file = tmp_path / "plan.toml"
    file.write_text('[[steps]]\ntype = "calls"\ntarget = "save"\n')
    assert main(["run", str(file), *place]) == 0
    assert "Call Sites" in capfd.readouterr().out
    assert main(["run", "--step", '{"type":"calls","target":"nope"}', *place, "--format", "json"]) == 1
    assert msgspec.json.decode(capfd.readouterr().out)["summary"]["done"] == 1
    failing = ["run", "--steps", '[{"type":"calls","target":"gone.py:1"}]', *place]
    assert main(failing) == 1
    assert main([*failing, "--stop-on-error"]) == 2
    capfd.readouterr()
    for wrong, message in (
        (["run"], "nothing to run"),
        (["run", str(file), "--steps", "[]"], "its own steps"),
        (["run", "--step", "{"], "--step is not JSON"),
        (["run", "--steps", "{}"], "--steps is a list"),
        (["run", str(tmp_path)], "not a regular file"),
        (["run", str(tmp_path / "none.toml")], "cannot be read"),
        (["run", "--step", '{"type":"cals"}'], "the command line, steps[0].type: there is no step 'cals'"),
        (["report", "refactor", "--target", "path:app"], "not one of refactor-impact"),
        (["report", "refactor-impact"], "--target"),
    ):
        assert main(wrong) == 2
        assert message in capfd.readouterr().err
    assert main(["report", "safety-reliability", "--target", "path:app", *place, "--format", "plain"]) == 0
    assert "app/store.py:4:" in capfd.readouterr().out
    assert main(["schema", "plan"]) == 0
    assert "stop_on_error" in capfd.readouterr().out
