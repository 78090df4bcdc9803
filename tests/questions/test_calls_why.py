"""`cq calls --why`: by which definitions, imports and calls the target got to each call; or why that is not known."""

from __future__ import annotations

from pathlib import Path

import pytest

from cq import Workspace
from cq.model.answer import CallDetails
from cq.questions.calls import CallsOptions

PYTHON = {
    "a.py": "class C:\n    def run(self): ...\ndef make():\n    return C()\n",
    "b.py": """from a import (
    C as D,
    make,
)
class Box:
    def __init__(self, q):
        self.q = q
    def open(self):
        self.q.run()
def work(q, cb=None):
    q.run()
    cb()
x = make()
Box(x).open()
work(D(), cb=make)
table = {"k": make}
table["k"]()
map(make, [])
def loose(z):
    z.run()
def trace(f):
    def wrapper():
        return f()
    return wrapper
@trace
def traced(): ...
traced()
""",
}
TYPESCRIPT = {
    "a.ts": "export class C { run() {} }\nexport function make() { return new C(); }\n",
    "b.ts": """import {
  C, make as g } from "./a";
function work(q: C, cb) { q.run(); cb(); }
work(new C(), g);
function loose(q) {
  q.run();
}
const x = g();
loose(x);
""",
}
RUST = {
    "src/lib.rs": """mod a;
use a::{C, make as mk};
trait Run { fn run(&self); }
impl Run for C { fn run(&self) {} }
fn main() {
    let c = mk();
    c.run();
}
fn work(q: &C) {
    q.run();
}
""",
    "src/a.rs": "pub struct C { n: i32 }\npub fn make() -> C { C { n: 1 } }\n",
}


def find_ways(root: Path, files: dict[str, str], target: str) -> dict[str, list[str]]:
    """path:line of a call -> its witness, a place each. The text at every place is the name that is said of it."""
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    with Workspace.open(root, index_dir=root.with_name("index")) as workspace:
        answer = workspace.calls(CallsOptions(target, why=True, servers=False))
    found: dict[str, list[str]] = {}
    for section in answer.sections:
        for finding in section.findings:
            if isinstance(finding.details, CallDetails) and finding.location is not None:
                steps: list[str] = []
                for step in finding.details.witness:
                    at, text = step.location, files[step.location.path].encode()
                    if "`" in step.says:
                        names = step.says.split("`")[1::2]
                        assert text[at.start : at.end].decode() == names[0]
                    steps.append(f"{at.path}:{at.start_line} {step.says}")
                assert bool(steps) != bool(finding.details.no_witness)
                place = f"{finding.location.path}:{finding.location.start_line}"
                found[place] = steps or [finding.details.no_witness]
    return found


def test_a_method_is_called_on_what_came_through_constructors_parameters_and_attributes(tmp_path: Path) -> None:
    ways = find_ways(tmp_path / "repo", PYTHON, "C.run")
    assert ways["b.py:9"] == [
        "a.py:1 class `C`",
        "a.py:4 given by the call of `C`",
        "a.py:3 returned by `make`",
        "b.py:13 given by the call of `make`",
        "b.py:13 assigned to `x`",
        "b.py:14 passed by the call of `Box`",
        "b.py:6 the parameter `q` of `__init__`",
        "b.py:7 stored as the attribute `q`",
        "a.py:2 function `run`",
    ]
    assert ways["b.py:11"] == [
        "a.py:1 class `C`",
        "b.py:2 imported as `D`",
        "b.py:15 given by the call of `D`",
        "b.py:15 passed by the call of `work`",
        "b.py:10 the parameter `q` of `work`",
        "a.py:2 function `run`",
    ]
    assert ways["b.py:20"] == ["no witness: nothing is known of what it is called on, only the name fits"]


def test_a_function_is_passed_put_into_a_container_and_called_back(tmp_path: Path) -> None:
    ways = find_ways(tmp_path / "repo", PYTHON, "make")
    imported = ["a.py:3 function `make`", "b.py:3 imported as `make`"]
    assert ways["b.py:13"] == imported
    assert ways["b.py:12"] == [
        *imported,
        "b.py:15 passed by the call of `work`",
        "b.py:10 the parameter `cb` of `work`",
    ]
    assert ways["b.py:17"][:2] == imported
    assert ways["b.py:18"] == imported


def test_what_a_decorator_puts_in_the_place_of_a_function(tmp_path: Path) -> None:
    ways = find_ways(tmp_path / "repo", PYTHON, "trace.wrapper")
    assert ways["b.py:27"][-1] != ""
    assert ways["b.py:27"][0] == "b.py:22 function `wrapper`"


def test_typescript(tmp_path: Path) -> None:
    ways = find_ways(tmp_path / "repo", TYPESCRIPT, "C.run")
    assert ways["b.ts:3"] == ["a.ts:1 class `C`", "b.ts:3 the parameter `q` of `work`", "a.ts:1 function `run`"]
    assert ways["b.ts:6"] == [
        "a.ts:1 class `C`",
        "a.ts:2 given by the call of `C`",
        "a.ts:2 returned by `make`",
        "b.ts:8 given by the call of `g`",
        "b.ts:8 assigned to `x`",
        "b.ts:9 passed by the call of `loose`",
        "b.ts:5 the parameter `q` of `loose`",
        "a.ts:1 function `run`",
    ]


def test_rust(tmp_path: Path) -> None:
    ways = find_ways(tmp_path / "repo", RUST, "C.run")
    assert ways["src/lib.rs:7"] == [
        "src/a.rs:2 function `make`",
        "src/lib.rs:6 given by the call of `mk`",
        "src/lib.rs:6 assigned to `c`",
        "src/lib.rs:4 function `run`",
    ]
    assert ways["src/lib.rs:10"] == [
        "src/a.rs:1 struct `C`",
        "src/lib.rs:9 the parameter `q` of `work`",
        "src/lib.rs:4 function `run`",
    ]


@pytest.mark.parametrize(
    ("files", "target", "why"),
    [
        ({"a.py": "import json\njson.dumps(1)\n"}, "json.dumps", "it is defined outside of this repository"),
        (
            {"a.py": "class C:\n    @property\n    def p(self): ...\nc = C()\nc.p\n"},
            "C.p",
            "what reads or sets an accessor is told by its receiver alone",
        ),
    ],
)
def test_without_a_witness_it_is_said_why(tmp_path: Path, files: dict[str, str], target: str, why: str) -> None:
    ways = find_ways(tmp_path / "repo", files, target)
    assert ways
    assert all(way == [f"no witness: {why}"] for way in ways.values())
