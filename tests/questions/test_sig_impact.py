"""What a new signature does to every call site: the label of a line is its verdict, and what the reason must say."""

from __future__ import annotations

from pathlib import Path

import pytest

from cq import Workspace
from cq.languages.facts import extract_facts
from cq.model.answer import NodeDetails
from cq.model.errors import UsageError
from cq.questions.sig_impact import SignatureOptions
from cq.snapshot.signatures import check_call, parse_signature, takes_all
from tests.support.fixture import parse_fixture


@pytest.mark.parametrize(
    ("arguments", "to", "verdict"),
    [
        ("1", "f(self, a)", "ok"),
        ("1, 2", "f(self, a)", "breaks"),
        ("", "f(self, a)", "breaks"),
        ("", "f(self, a=1)", "ok"),
        ("b=1", "f(self, a)", "breaks"),
        ("a=1", "f(self, a, *, b)", "breaks"),
        ("a=1, b=2", "f(self, a, *, b)", "ok"),
        ("1, a=1", "f(self, a)", "breaks"),
        ("1, a=1", "f(self, a, /, **rest)", "ok"),
        ("*x", "f(self, a, b)", "ambiguous"),
        ("*x", "f(self, a, b=1)", "ok"),
        ("**x", "f(self, b)", "ambiguous"),
        ("**x", "f(self, a, *, b=1)", "ok"),
        ("1, **x", "f(self, a, **rest)", "ok"),
        ("1, 2, 3", "f(self, a, *rest)", "ok"),
        ("1", "f(self, b, a=0)", "ambiguous"),
        ("a=1", "f(self, a, /)", "breaks"),
        # More arguments than a fact of a call lists.
        ("1, 2, 3, 4, 5, 6, 7, 8, 9", "f(self, *a)", "ok"),
        ("1, 2, 3, 4, 5, 6, 7, 8, 9", "f(self, a)", "breaks"),
        ("b=1, c=2, d=3, e=4, g=5, h=6, i=7, j=8, **x", "f(self, a, z, **rest)", "ambiguous"),
    ],
)
def test_what_a_new_signature_does_to_a_call(arguments: str, to: str, verdict: str):
    code = extract_facts(f"x.f({arguments})".encode(), "python").code
    assert code is not None
    old = parse_signature("f(self, a)", "python", "f")
    assert check_call(code.sites[0], old, parse_signature(to, "python", "f"), bound=True)[0] == verdict


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("f(a)", "f(a, b=1)", True),
        ("f(a)", "f(a, b)", False),
        ("f(a, b=1)", "f(a, b)", False),
        ("f(a, b)", "f(b, a)", False),
        ("f(a, /)", "f(b)", True),
        ("f(a)", "f(a, /)", False),
        ("f(a, *, b)", "f(a, b)", True),
        ("f(a, b)", "f(a, *, b)", False),
        ("f(*args)", "f(a=1, *args)", False),
        ("f(*args, **kw)", "f(*args, **kw)", True),
        ("f(**kw)", "f(*, a=1, **kw)", False),
    ],
)
def test_whether_every_call_is_taken_as_before(old: str, new: str, expected: bool):
    assert takes_all(*(parse_signature(text, "python", "f") for text in (old, new))) is expected


@pytest.mark.parametrize(
    ("text", "said"),
    [("f", "not a signature"), ("f(a, a)", "twice"), ("f(a=1, b)", "needs a default"), ("f(a,,)", "in python")],
)
def test_what_is_no_signature_is_refused(text: str, said: str):
    with pytest.raises(UsageError, match=said):
        parse_signature(text, "python", "f")


PYTHON = """
#- m.py
def f(a, b=1): ...
#- use.py
import functools
from m import f, f as g
import m
def use(xs, kw):
    f(1)
#< breaks: 'b' is not given
    f(1, 2)
#< ok
    g(1)
#< breaks: 'b' is not given
    m.f(b=1)
#< breaks: 'a' is not given
    f(*xs)
#< ambiguous: what * passes
    list(map(f, xs))
#< ambiguous: handed over
    sorted(xs, key=f)
#< ambiguous: handed over
    h = f
    h(1)
#< ambiguous: called as 'h'
    p = functools.partial(f, 1)
    p(2)
#< ambiguous: called as 'p'
"""
METHOD = """
#- m.py
class Base:
    def save(self, row, deep=False): ...
    @classmethod
    def all(cls, one):
        cls.save(one, 1)
#< breaks: 'deep' is not given
    def again(self, row):
        self.save(row)
#< breaks: 'deep' is not given
        type(self).save(self, row, True)
#< ok
class Sub(Base):
    def again(self, row):
        super().save(row, True)
#< ok
        Base.save(self, row)
#< breaks: 'deep' is not given
class Leaf(Base): ...
#- use.py
from m import Base as B, Leaf
def use(thing):
    Leaf.save(Leaf(), 1)
#< breaks: 'deep' is not given
    B.save(B(), 1, True)
#< ok
    Leaf().save(1)
#< breaks: 'deep' is not given
    thing.save(1)
#< ambiguous: may mean another
"""
CLASS = """
#- datetime.py
class datetime:
    def __init__(self, year, month=1): ...
class day(datetime):
    def __init__(self):
        datetime.__init__(self, 1)
#< breaks: 'month' is not given
        super().__init__(1, 2)
#< ok
#- use.py
import datetime
datetime.datetime(2020)
#< breaks: 'month' is not given
datetime.datetime(2020, 2)
#< ok
"""
DECORATED = """
#- m.py
import functools
from typing import overload
def wrap(fn):
    @functools.wraps(fn)
    def inner(*args, **kwargs):
        return fn(*args, **kwargs)
#< ambiguous: called as 'fn'
    return inner
@wrap
def run(a, b=0): ...
run(1)
#< ambiguous: a decorator gives
run(1, 2)
#< ok
"""
DECORATOR = """
#- m.py
def mark(fn): return fn
@mark
#< breaks: 'level' is not given
def one(): ...
@mark
#< breaks: 'level' is not given
class Two: ...
"""
OVERLOADED = """
#- m.py
from typing import overload
@overload
def f(x: int) -> int: ...
@overload
def f(x: str) -> str: ...
def f(x): return x
f(1)
#< breaks: 'y' is not given
"""
RUST = """
//- lib.rs
pub struct S;
impl S {
    pub fn go(&self, a: u32) -> u32 { a }
}
fn use_it(s: S) {
    s.go(1);
//< breaks: 'b' is not given
    S::go(&s, 1);
//< breaks: 'b' is not given
    S::go(&s, 1, 2);
//< ok
}
"""
TYPESCRIPT = """
//- t.ts
export function plain(a: number, b = 1, c?: string) {}
plain(1)
//< breaks: 'b' is not given
plain(1, 2, 'x')
//< ok
const xs = [1]
plain(...xs)
//< ambiguous: what * passes
xs.map(plain)
//< ambiguous: handed over
"""


@pytest.mark.parametrize(
    ("snippet", "target", "to"),
    [
        (PYTHON, "f", "f(a, b)"),
        (METHOD, "Base.save", "save(self, row, deep)"),
        (METHOD, "Base.save", "save(row, deep)"),
        (CLASS, "datetime", "__init__(self, year, month)"),
        (CLASS, "datetime", "datetime(year, month)"),
        (DECORATED, "run", "run(a, b)"),
        (DECORATOR, "mark", "mark(fn, level)"),
        (OVERLOADED, "f", "f(x, y)"),
        (RUST, "S.go", "go(&self, a: u32, b: u32)"),
        (RUST, "S.go", "go(a: u32, b: u32)"),
        (TYPESCRIPT, "plain", "plain(a: number, b: number, c?: string)"),
    ],
)
def test_every_call_site_has_its_verdict(snippet: str, target: str, to: str, tmp_path: Path):
    fixture = parse_fixture(snippet)
    for path, text in fixture.files.items():
        (tmp_path / path).write_text(text)
    with Workspace.open(tmp_path, index_dir=tmp_path / ".index") as workspace:
        answer = workspace.sig_impact(SignatureOptions(target, to))
    found: dict[tuple[str, str], str] = {}
    for finding in (f for section in answer.sections for f in section.findings):
        assert finding.location is not None
        assert isinstance(finding.details, NodeDetails)
        path = finding.location.path
        line = fixture.files[path].splitlines()[finding.location.start_line - 1].strip()
        found[path, line] = f"{finding.details.verdict}: {finding.details.reason}"
    expected = {(mark.path, fixture.text(mark)): mark.label for mark in fixture.marks}
    assert found.keys() == expected.keys()
    for site, label in expected.items():
        verdict, _, said = label.partition(": ")
        assert found[site].partition(": ")[0] == verdict, (site, found[site])
        assert said in found[site], (site, found[site])


def test_the_same_sites_as_calls_lists(tmp_path: Path):
    (tmp_path / "app.py").write_text(
        "import functools\n"
        "def wrap(f):\n    @functools.wraps(f)\n    def inner(*a):\n        return f(*a)\n    return inner\n"
        "class Box:\n    @property\n    def size(self):\n        return 1\n"
        "    @wrap\n    def run(self, x):\n        return x\n"
        "class Other(Box):\n    def run(self, x):\n        return super().run(x)\n"
        "def main(thing):\n    box = Box()\n    box.run(1)\n    thing.run(2)\n    return box.size + Other().size\n"
    )
    (tmp_path / "ui.js").write_text(
        "const o = { parent: function (a, b) { return a; } };\nDate.prototype.two = function () { return 2; };\n"
        "o.parent(1, 2);\nnew Date().two();\n"
    )
    (tmp_path / "over.ts").write_text(
        "export class Over {\n  pick(a: string): string;\n  pick(a: number): number;\n"
        "  pick(a: any) { return a; }\n}\nnew Over().pick(1);\nnew Over().pick('a');\n"
    )
    with Workspace.open(tmp_path, index_dir=tmp_path.with_name("index")) as workspace:
        for target, to in (
            ("Box.size", "size(self, a)"), ("Box.run", "run(self)"), ("Other.run", "run(self)"),
            ("o.parent", "parent(a)"), ("two", "two(a)"), ("Over.pick", "pick(a: any, b: any)"),
        ):  # fmt: skip
            calls, impact = workspace.calls(target), workspace.sig_impact(SignatureOptions(target, to))
            sites = [
                {(f.location.path, f.location.start_line) for s in answer.sections for f in s.findings if wanted(f)}
                for answer, wanted in (
                    (calls, lambda f: f.category == "callsite"), (impact, lambda f: isinstance(f.details, NodeDetails)),
                )
            ]  # fmt: skip
            assert (calls.found, sites[0]) == (impact.found, sites[1]), target
            assert calls.found or target == "two", target


def test_the_signature_of_a_class_is_that_of_its_constructor(tmp_path: Path):
    (tmp_path / "a.py").write_text(
        "class Base:\n    def __new__(cls, *args, **kwargs): ...\n"
        "class Row(Base):\n    def __init__(self, a, b=1): ...\nRow(1, 2)\nRow(1)\nvalue = 3\n"
    )
    with Workspace.open(tmp_path, index_dir=tmp_path / ".index") as opened:
        answer = opened.sig_impact(SignatureOptions("Row", "Row(self, a)"))
        assert (answer.summary["breaks"], answer.summary["ok"]) == (1, 1)
        assert answer.degraded == ()
        assert "'Line'" in opened.sig_impact(SignatureOptions("Row", "Line(self, a)")).degraded[0].message
        assert "no function" in opened.sig_impact(SignatureOptions("value", "value()")).degraded[0].message
        assert "no class" in opened.types("value").degraded[0].message


def test_several_definitions_are_the_likeliest_for_both(tmp_path: Path):
    (tmp_path / "a.py").write_text(
        "class Row:\n    def save(self, x): ...\n    @property\n    def size(self): ...\n"
        "    @size.setter\n    def size(self, value): ...\nclass Table:\n    def save(self): ...\n"
        "def use(row: Row, table: Table, anything):\n    row.save(1)\n    row.save(2)\n    table.save()\n"
        "    anything.save(3)\n    row.size = row.size\n"
    )
    with Workspace.open(tmp_path, index_dir=tmp_path / ".index") as opened:
        for target, count in (("save", 3), ("Row.save", 3), ("Table.save", 1), ("Row.size", 2)):
            assert opened.calls(target).found == count, target
            assert opened.sig_impact(SignatureOptions(target, "f(self)")).found == count, target
