"""After any edits, what calls mean is what linking everything anew says, row for row."""

from __future__ import annotations

import asyncio
import random
import re
import shutil
import tempfile
from collections.abc import Collection
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cq.graph.engine.change import find_difference
from cq.graph.engine.view import View
from cq.graph.meaning import Meaning
from cq.graph.resolve import Resolver
from cq.graph.unit import Unit
from cq.graph.values import Values
from cq.indexing.read import extract_source
from cq.model.source import SourceFile
from tests.support.index import build, dump

pytestmark = pytest.mark.slow

PATHS = ["a.py", "b.py", "c.py", "pkg/__init__.py", "pkg/d.py", "setup.py", "doc.md"]
PIECES = [
    "from a import *\n",
    "from b import f, C\n",
    "from c import f as g, D\n",
    "import a, b\n",
    "from pkg import x, D\n",
    "from .d import x\n",
    "from . import d\n",
    "from pkg.d import *\n",
    "def f():\n    return C()\n",
    "def f(p=None):\n    p.run()\n    return p\n",
    "def g(h):\n    h()\n    return D()\n",
    "g(f)\n",
    "f(C())\n",
    "f(g)\n",
    "x = f()\nx.run()\n",
    "x = g(f)\nx.run()\n",
    "x = a.f().run()\n",
    "x = b.x\nx.go()\n",
    "x = a.x\n",
    "class C:\n    def run(self):\n        return self.go()\n    def go(self):\n        return f()\n",
    "class C:\n    def __init__(self, q):\n        self.q = q\n    def run(self):\n        self.q.run()\n",
    "class D(C):\n    def go(self):\n        super().run()\n        return self\n",
    "class D:\n    k = C\n    def run(self):\n        self.k().go()\n",
    "D().run().go()\n",
    "C(D()).run()\n",
    "C.extra = f\n",
    "C.extra()\n",
    "T = {'k': f}\nT['k']()\nT['n'] = g\n",
    "@g\ndef k(): ...\n",
    "def deep(a: 'C', b: D):\n    a.run()\n    b.run()\n    for y in b:\n        y.go()\n",
    "__all__ = ['f', 'x']\n",
    "def gen():\n    yield C()\n",
    "for y in gen():\n    y.run()\n",
    "```python\nfrom a import f\nf().run()\n```\n",
    "z = 1\n",
    "class E(Exception):\n    def __init__(self): ...\n",
    "class C:\n    def __call__(self): ...\n    def __add__(self, o):\n        return self\n",
    "def far():\n    from a import x, E\n    x()\n    x + 1\n    raise E\n",
    "class F(C):\n    def __init__(self, q):\n        super().__init__(q)\n",
    "jobs = []\ndef fill(q):\n    q.append(C())\n",
    "fill(jobs)\n",
    "def work():\n    for job in jobs:\n        job.run()\n",
    "def more():\n    others = jobs\n    others.append(D())\n",
    "def make():\n    made = C()\n    kept = made\n    return kept\n",
    "def make():\n    made = D\n    other = made()\n    return other\n",
    "make().run()\n",
    "def hand_on():\n    first = C()\n    second = first\n    f(second)\n    fill([second])\n",
    "def hand_on():\n    first = g\n    second = first\n    f(second)\n",
    "x.hook = f\nx.hook()\n",
    "C.extra = g\nC.extra().run()\n",
    "def put():\n    t = {'k': C()}\n    t['k'] = D()\n    t['k'].run()\n    t.hook = f\n    t.hook()\n",
    "T['k'] = g\nT['k']()\nT.update({'k': make})\nT['k']()\n",
    "held = f\ndef swap(h):\n    global held\n    held = h\n",
    "swap(g)\nheld()\n",
    "import a\na.held = make\n",
    "import b\nb.held = f\ndef use():\n    held()\n",
    "class M(type):\n    def __call__(cls, *a):\n        return super().__call__(*a)\n",
    "class C(metaclass=M):\n    def __init__(self): ...\n    def __getattr__(self, name):\n        return f\n",
    "from dataclasses import dataclass, field\n@dataclass\nclass D:\n    k: object\n"
    "    m: object = field(default_factory=make)\n    def run(self):\n        self.k()\n",
    "D(f).run()\n",
    "@dataclass\nclass D:\n    m: object\n    k: object\n    def run(self):\n        self.k()\n",
    "class D:\n    k: object\n    m: object\n    def run(self):\n        self.k()\n",
    "D(f, g).run()\n",
    "def with_default(cb=f):\n    cb()\n",
    "with_default(g)\n",
    "with_default()\n",
    "class E2(E):\n    def __init__(self): ...\n    def go(self): ...\n"
    "def fall():\n    try:\n        f()\n    except E as e:\n        e.go()\n",
    "raise E2\n",
    "raise E2()\n",
]
SCRIPT_PATHS = ["a.ts", "b.ts", "c.js", "lib/index.ts", "lib/d.ts", "tsconfig.json", "package.json"]
SCRIPT_PIECES = [
    'import { f, C } from "./b";\n',
    'import { f as g, D } from "./c";\n',
    'import * as a from "./a";\n',
    'import { x, D } from "lib";\n',
    'export * from "./d";\n',
    'export * from "./b";\n',
    'export { f as default, C } from "./lib";\n',
    'import f from "@/a";\n',
    'import { x } from "@/lib";\n',
    'const { f, C } = require("./c");\n',
    "module.exports = { f, C };\n",
    "exports.x = function () { return new C(); };\n",
    "export function f() { return new C(); }\n",
    "export function f(p) { p.run(); return p; }\n",
    "export function g(h) { h(); h(new D()); return new D(); }\n",
    "g(f);\n",
    "f(new C());\n",
    "g((d) => d.run());\n",
    "export const x = f(); x.run();\n",
    "const y = g(f); y.run();\n",
    "a.f().run();\n",
    "export class C { run() { return this.go(); } go() { return f(); } }\n",
    "export class C { constructor(q) { this.q = q; } run() { this.q.run(); } }\n",
    "export class D extends C { go() { super.run(); return this; } }\n",
    "export class D implements I { run() { return [this].map((d) => d.go()); } go() {} }\n",
    "export interface I { run(): void; c: C }\n",
    "export type I = { run(): C };\n",
    "function typed(i: I, c: C, l: D[]) { i.run(); c.go(); l.forEach((d) => { d.run(); }); }\n",
    "new D().run().go();\n",
    "new C(new D()).run();\n",
    "C.extra = f; C.extra();\n",
    "const T = { k: f, m() { return this.k(); } }; T.k(); T.m(); T.n = g; T.n();\n",
    "const S = { ...T, z: 1 }; S.k();\n",
    "function P() { this.c = new C(); }\nP.prototype.run = function () { this.c.run(); };\nnew P().run();\n",
    "let late; function set() { late = new D(); }\nlate.run();\n",
    "test(() => { const z = new C(); const h = () => z.run(); h(); z.go(); });\n",
    "namespace N { export function f() { return new C(); } }\nN.f().run();\n",
    '{"compilerOptions": {"paths": {"@/*": ["./*"]}}}\n',
    '{"compilerOptions": {"baseUrl": "."}}\n',
    '{"name": "lib", "exports": "./lib/d.ts"}\n',
    '{"name": "lib", "main": "c.js"}\n',
    "z = 1;\n",
    "let held = f; function swap(h) { held = h; }\n",
    "swap(g); held(); held = f; held();\n",
    "T.k = g; T.k(); C.extra = g; C.extra().run();\n",
    "function Q() {}\nQ.prototype = Object.create(P.prototype);\nQ.prototype.go = function () {};\nnew Q().run();\n",
    "class S2 extends C { constructor(q) { super(q); this.go(); } go() { return f(); } }\nnew S2(f);\n",
    "P.prototype.run = function (a) { this.go(); a(); };\nP.prototype.go = function () { return f(); };\n",
]


def edits(paths: list[str], pieces: list[str]) -> st.SearchStrategy[list[tuple[str, str, list[str]]]]:
    one = st.lists(st.sampled_from(pieces), min_size=1, max_size=1)
    edit = st.one_of(
        st.tuples(st.just("write"), st.sampled_from(paths), st.lists(st.sampled_from(pieces), max_size=5)),
        st.tuples(st.just("add"), st.sampled_from(paths), one),
        st.tuples(st.just("above"), st.sampled_from(paths), one),
        st.tuples(st.just("delete"), st.sampled_from(paths), st.just([])),
    )
    return st.lists(edit, min_size=1, max_size=6)


def texts(paths: list[str], pieces: list[str]) -> st.SearchStrategy[list[list[str]]]:
    return st.lists(st.lists(st.sampled_from(pieces), max_size=6), min_size=len(paths), max_size=len(paths))


RUNS = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@RUNS
@given(texts(PATHS, PIECES), edits(PATHS, PIECES))
def test_links_after_edits_equal_fresh_links(texts: list[list[str]], edits: list[tuple[str, str, list[str]]]) -> None:
    check_edits(PATHS, texts, edits)


@RUNS
@given(texts(SCRIPT_PATHS, SCRIPT_PIECES), edits(SCRIPT_PATHS, SCRIPT_PIECES))
def test_links_of_scripts_after_edits(texts: list[list[str]], edits: list[tuple[str, str, list[str]]]) -> None:
    check_edits(SCRIPT_PATHS, texts, edits)


@pytest.mark.parametrize(
    ("before", "after", "other"),
    [
        ("class C: ...\n", "class C:\n    def __init__(self): ...\n", "def main():\n    C()\n"),
        ("class C: ...\n", "class C:\n    def __call__(self): ...\n", "def main():\n    c = C()\n    c()\n"),
        ("class C(Exception): ...\n", "class C(Exception):\n    def __init__(self): ...\n", "def f():\n    raise C\n"),
    ],
)
def test_what_a_class_gains_reaches_the_calls_of_it(tmp_path: Path, before: str, after: str, other: str) -> None:
    root = tmp_path / "repo"
    root.mkdir()
    (root / "b.py").write_text(before)
    (root / "a.py").write_text("from b import C\n" + other)
    build(tmp_path / "i" / "index.db", root, jobs=1)
    (root / "b.py").write_text(after)
    build(tmp_path / "i" / "index.db", root, jobs=1)
    build(tmp_path / "f" / "index.db", root, jobs=1)
    assert dump(tmp_path / "i" / "index.db", root) == dump(tmp_path / "f" / "index.db", root)


_TRACE = "def trace(f):\n    def wrapper(*a):\n        return f(*a)\n    return wrapper\n"
_ABSTRACT = "from abc import abstractmethod\nclass C:\n    {}def f(self): ...\n"


@pytest.mark.parametrize(
    ("end", "before", "after", "other"),
    [
        ("py", f"{_TRACE}def f(): ...\n", f"{_TRACE}@trace\ndef f(): ...\n", "from a import f\ndef g():\n    f()\n"),
        (
            "py",
            f"{_TRACE}class C:\n    def f(self): ...\n",
            f"{_TRACE}class C:\n    @trace\n    def f(self): ...\n",
            "from a import C\ndef g():\n    C().f()\n",
        ),
        (
            "py",
            "class D:\n    def run(self): ...\nclass C:\n    def f(self): return D()\n",
            "class D:\n    def run(self): ...\nclass C:\n    @property\n    def f(self): return D()\n",
            "from a import C\ndef g():\n    C().f.run()\n",
        ),
        (
            "py",
            _ABSTRACT.format(""),
            _ABSTRACT.format("@abstractmethod\n    "),
            "from a import C\nclass E(C):\n    def h(self):\n        self.f()\n    def f(self): ...\n",
        ),
        (
            "ts",
            "export class I { run(): void {} }\n",
            "export abstract class I { abstract run(): void }\n",
            'import { I } from "./a";\nclass D extends I { run() {} }\nfunction g(i: I) { i.run(); }\n',
        ),
        (
            "ts",
            "export class D { go() {} }\nexport class I { run() { return new D(); } }\n",
            "export class D { go() {} }\nexport class I { get run() { return new D(); } }\n",
            'import { I } from "./a";\nfunction g(i: I) { i.run(); new I().run.go(); }\n',
        ),
    ],
)
def test_how_a_definition_is_reached_reaches_who_names_it(end: str, before: str, after: str, other: str) -> None:
    paths = [f"a.{end}", f"b.{end}"]
    check_edits(paths, [[before], [other]], [("write", paths[0], [after]), ("write", paths[0], [before])])


def test_only_the_function_that_changed_is_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rest of its file, and of files that do not depend on it, stays as it was."""
    (tmp_path / "repo").mkdir()
    file = tmp_path / "repo" / "a.py"
    text = "import os\n\ndef f():\n    g()\n\ndef g():\n    return os.getcwd()\n\ndef h():\n    g()\n    len(os.sep)\n"
    file.write_text(text)
    build(tmp_path / "i" / "index.db", tmp_path / "repo", jobs=1)
    asked: list[str] = []
    call = Resolver.call

    def note(self: Resolver, unit: View, number: int, values: Values) -> Meaning:
        asked.append(unit.sites[number].name)
        return call(self, unit, number, values)

    monkeypatch.setattr(Resolver, "call", note)
    file.write_text(text.replace("len(os.sep)", "repr(os.sep)"))
    build(tmp_path / "i" / "index.db", tmp_path / "repo", jobs=1)
    assert sorted(asked) == ["g", "repr"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "fill(jobs)\n"),
        ("def more():\n    pass\n", "def more():\n    others = jobs\n    others.append(C())\n"),
    ],
)
def test_what_is_put_into_a_container_elsewhere_reaches_who_takes_it_out(
    tmp_path: Path, before: str, after: str
) -> None:
    root = tmp_path / "repo"
    root.mkdir()
    (root / "b.py").write_text("class C:\n    def run(self): ...\ndef fill(q):\n    q.append(C())\n")
    text = "from b import C, fill\njobs = []\ndef work():\n    for job in jobs:\n        job.run()\n"
    for more in (before, after):
        (root / "a.py").write_text(text + more)
        build(tmp_path / "i" / "index.db", root, jobs=1)
    build(tmp_path / "f" / "index.db", root, jobs=1)
    assert dump(tmp_path / "i" / "index.db", root) == dump(tmp_path / "f" / "index.db", root)


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [("made", "built", 0), ("other = x", "other = len(x)", 1), ("return made", "return x", 2), ("= C()", "= 1", 2)],
)
def test_callers_depend_on_what_a_function_gives_not_on_its_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, count: int
) -> None:
    (tmp_path / "repo").mkdir()
    file = tmp_path / "repo" / "a.py"
    text = "class C: ...\ndef f(x):\n    made = C()\n    other = x\n    return made\ndef g():\n    f(1).run()\n"
    file.write_text(text)
    build(tmp_path / "i" / "index.db", tmp_path / "repo", jobs=1)
    linked: list[int] = []
    visit = Resolver.visit

    def note(self: Resolver, unit: Unit, kept: Collection[int] = ()) -> None:
        linked.append(len({unit.home_of(d) for d in unit.code.definitions if d.kind == "function"} - set(kept)))
        visit(self, unit, kept)

    monkeypatch.setattr(Resolver, "visit", note)
    file.write_text(text.replace(old, new))
    build(tmp_path / "i" / "index.db", tmp_path / "repo", jobs=1)
    assert linked == [count]


@pytest.mark.parametrize(
    ("after", "linked"),
    [
        ("f():\n    x = C()\n    return x or C()", ["a.py"]),
        ("f():\n    return D()", ["a.py", "b.py"]),
        ("f():\n    return [C()]", ["a.py", "b.py"]),
        ("f(x, y=1, *, z=2):\n    return C()", ["a.py", "b.py"]),  # the first may be a receiver
        ("h(x, y=1, *, z=2):\n    return x", ["a.py"]),
        ("h(x, *y):\n    return x", ["a.py", "b.py"]),
        ("h(y=1, x=C):\n    return x", ["a.py", "b.py"]),
    ],
)
def test_who_gets_the_same_as_before_is_not_linked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: str, linked: list[str]
) -> None:
    root = tmp_path / "repo"
    root.mkdir()
    text = "class C:\n    def run(self): ...\nclass D(C): ...\ndef f():\n    return C()\ndef h(x):\n    return x\n"
    (root / "a.py").write_text(text)
    (root / "b.py").write_text("from a import C, f, h\ndef g():\n    f().run()\n    h(C()).run()\n")
    build(tmp_path / "i" / "index.db", root, jobs=1)
    visited: list[str] = []
    visit = Resolver.visit

    def note(self: Resolver, unit: Unit, kept: Collection[int] = ()) -> None:
        visited.append(unit.path)
        visit(self, unit, kept)

    monkeypatch.setattr(Resolver, "visit", note)
    before = f"{after[0]}(" + text.partition(f"def {after[0]}(")[2].partition("\ndef")[0].rstrip("\n")
    (root / "a.py").write_text(text.replace(before, after))
    build(tmp_path / "i" / "index.db", root, jobs=1)
    assert visited == linked
    build(tmp_path / "f" / "index.db", root, jobs=1)
    assert dump(tmp_path / "i" / "index.db", root) == dump(tmp_path / "f" / "index.db", root)


def check_edits(paths: list[str], texts: list[list[str]], edits: list[tuple[str, str, list[str]]]) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        root, index = folder / "repo", folder / "i" / "index.db"
        for path, pieces in zip(paths, texts, strict=True):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text("".join(pieces))
        build(index, root, jobs=1)
        for what, path, pieces in edits:
            file = root / path
            old = file.read_text() if file.exists() else ""
            if what == "delete":
                file.unlink(missing_ok=True)
            else:
                kept = {"write": ("", ""), "add": (old, ""), "above": ("", old)}[what]
                file.write_text("".join(pieces).join(kept))
            build(index, root, jobs=1)
        build(folder / "f" / "index.db", root, jobs=1)
        assert dump(index, root) == dump(folder / "f" / "index.db", root)
    finally:
        shutil.rmtree(folder)


def test_random_edits_of_a_real_package(tmp_path: Path) -> None:
    """Lines that go, come or move, and what people do to functions: as they come to code that people wrote."""
    root, index = tmp_path / "repo", tmp_path / "i" / "index.db"
    shutil.copytree(Path(asyncio.__file__).parent, root / "asyncio", ignore=shutil.ignore_patterns("__pycache__"))
    build(index, root, jobs=1)
    files = sorted(root.rglob("*.py"))
    names = sorted({name for file in files for name in re.findall(r"(?:def|class) (\w+)", file.read_text())})
    chance = random.Random(7)
    for number in range(36):
        file = chance.choice(files)
        lines = file.read_text().splitlines(keepends=True)
        edit_lines(lines, number, names, chance)
        file.write_text("".join(lines))
        build(index, root, jobs=1)
    build(tmp_path / "f" / "index.db", root, jobs=1)
    ours, fresh = dump(index, root), dump(tmp_path / "f" / "index.db", root)
    for rows in (ours, fresh):
        # bug: callees that are too many to keep (TOP) hand nothing to parameters, few do: it matters when they became
        # too many. Here it does for keys, not for what calls mean.
        rows["links"] = [(path, links, targets) for path, links, _, _, targets in rows["links"]]
    assert ours == fresh


def test_functions_that_are_not_read_say_what_they_said() -> None:
    """What a change of a document comes to is the same whether all of it is compared or what the change touches."""
    files = sorted(Path(asyncio.__file__).parent.glob("*.py"))
    chance = random.Random(3)
    left_out = 0
    for number in range(72):
        text = chance.choice(files).read_text()
        lines = text.splitlines(keepends=True)
        edit_lines(lines, number, re.findall(r"(?:def|class) (\w+)", text) or ["run"], chance)
        texts = text.encode(), "".join(lines).encode()
        facts = [extract_source(SourceFile("a.py", "python", each)) for each in texts]
        units = [Unit("a.py", each.code) for each in facts if each.code is not None]
        whole = find_difference(*units, closed=True)
        if not any(each.problems for each in facts):
            part = find_difference(*units, closed=True, texts=texts)
            assert part[:2] == whole[:2]
            assert part.returning == whole.returning
            assert {part.named.get(key) for key in part.changed} == {whole.named.get(key) for key in part.changed}
            left_out += len(part.named) < len(whole.named)
    assert left_out > 30


@pytest.mark.parametrize("other", ["two", "three"])
def test_a_call_that_moves_to_another_function_passes_what_that_one_gets(other: str) -> None:
    before = "from b import work\nclass A: ...\nclass B:\n    def go(self): ...\n"
    both = "def one(x):\n    {}\ndef two(x):\n    {}\none(A())\ntwo(B())\nthree(B())\n"
    after = both.format("pass", "work(x)").replace("two", other)
    texts = [[before, both.format("work(x)", "pass")], ["def work(it):\n    it.go()\n"]]
    check_edits(["a.py", "b.py"], texts, [("write", "a.py", [before, after])])


def test_what_calls_run_beside_what_they_mean_is_kept_in_the_same_order() -> None:
    text = """from collections import defaultdict
class Catalog:
    def __init__(self): ...
def make():
    return defaultdict(Catalog)["x"]
"""
    check_edits(["a.py"], [[text]], [("add", "a.py", ["def other():\n    return make()\n"])])


def test_definitions_that_change_places() -> None:
    first, second = "def one(): ...\n", "def two(): ...\n"
    rest = "def use(x):\n    f = one if x else two\n    f()\n"
    check_edits(["a.py"], [[first, second, rest]], [("write", "a.py", [second, first, rest])])


def test_a_scope_without_a_name() -> None:
    before = "export {};\ndeclare global {\n  interface Window { run(): void }\n}\n"
    check_edits(["a.ts"], [[before]], [("add", "a.ts", ["function f() { window.run(); }\n"])])


def edit_lines(lines: list[str], number: int, names: list[str], chance: random.Random) -> None:
    at, name = chance.randrange(len(lines)), chance.choice(names)
    starts = [place for place, line in enumerate(lines) if re.match(r"\s*(async )?def ", line)] or [0]
    start = chance.choice(starts)
    end = min((place for place in starts if place > start), default=len(lines))
    body = "".join(lines[start:end])
    match number % 9:
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, chance.choice(lines))
        case 2:
            lines.append(f"\ndef probe_{number}(x):\n    return {name}(x, {chance.choice(names)}).run()\n")
        case 3:
            lines[at] = re.sub(r"\b[a-z]\w+", name, lines[at], count=1)
        case 4:
            lines.insert(start + 1, f"        probe = self.{name}({chance.choice(names)})\n")
        case 5:
            for local in re.findall(r"^\s+([a-z]\w+) = ", body, re.MULTILINE)[:1]:
                lines[start:end] = [re.sub(rf"(?<![\w.]){local}\b", f"{local}_x", body)]
        case 6:
            lines[start:end] = [re.sub(r"(return \w.*)$", rf"\1 or {name}", body, count=1, flags=re.MULTILINE)]
        case 7:
            lines[start] = lines[start].replace("(self", "(self, extra=None").replace("()", "(extra)")
        case _:
            lines[start] = re.sub(r"def (\w+)", r"def \1_renamed", lines[start])
