"""What happens when modules are loaded."""

from __future__ import annotations

import ast
import shutil
import sysconfig
from pathlib import Path

from cq import Workspace
from cq.answers.page import Page
from cq.model.answer import Answer, EffectDetails
from cq.questions.side_effects import EffectsOptions
from tests.support.checks import open_fixture
from tests.support.fixture import parse_fixture


def find_rows(answer: Answer) -> list[tuple[str, int, EffectDetails]]:
    rows: list[tuple[str, int, EffectDetails]] = []
    for section in answer.sections:
        for finding in section.findings:
            assert isinstance(finding.details, EffectDetails)
            assert finding.location is not None
            rows.append((finding.location.path, finding.location.start, finding.details))
    return rows


def check_effects(folder: Path, snippet: str) -> list[EffectDetails]:
    """The marks are exactly what happens at load time, pure-looking calls included."""
    fixture = parse_fixture(snippet)
    with open_fixture(folder, snippet) as workspace:
        rows = find_rows(workspace.side_effects(EffectsOptions(pure=True, page=Page(0, 0))))
    found = [(path, start, details.effect) for path, start, details in rows]
    marked = [(mark.path, mark.start, mark.label) for mark in fixture.marks]
    assert sorted(found) == sorted(marked), f"not marked: {set(found) - set(marked)}, only: {set(marked) - set(found)}"
    return [details for _, _, details in rows]


def test_python(tmp_path: Path):
    rows = check_effects(
        tmp_path,
        """
        #- app/shared.py
        TABLE = {}
        def register(f):
            TABLE[f] = 1
            return f
        def count():
            global TABLE
            TABLE = None
        def double(x): return helper(x)
        def helper(x): return x + x
        def load(): return deep()
        def deep():
            with open("x") as f: return f
        class Counter:
            made = 0
            def __init__(self):
                Counter.made += 1
        #- app/main.py
        import os, re, sys, logging, subprocess
        from typing import TYPE_CHECKING
        from app import shared
        from app.shared import register
        HOME = os.environ["HOME"]
        #      ^^^^^^^^^^ environment
        os.environ["A"] = "1"
        #< environment
        sys.path += ["x"]
        #< state
        WORD = re.compile("x")
        #      ^ pure
        LOG = logging.getLogger(__name__)
        #     ^ pure
        shared.CONF = 3
        #< state
        shared.TABLE.update(x=1)
        #< state
        MINE = {}
        MINE["x"] = MINE.get("y")
        #           ^ pure
        @register
        #^ registration
        def f(a=shared.double(1)):
        #       ^ pure
            print("later")
        class Model:
            x = shared.Counter()
        #       ^ state
            @property
        #    ^ pure
            def y(self): return open("z")
        g = later(lambda: open("never"))
        #   ^ unknown
        shared.load()
        #< io
        shared.count()
        #< state
        print("now")
        #< io
        subprocess.run(["x"])
        #< process
        if TYPE_CHECKING:
            print("no")
        if HOME and "__main__" == __name__:
            print("no")
        if __name__ == "__main__":
            print("no")
        else:
            print("yes")
        #   ^ io
        """,
    )
    load = next(row for row in rows if row.what == "shared.load")
    assert load.through == (
        "load calls deep at app/shared.py:10", "deep: calls open at app/shared.py:12",
    )  # fmt: skip
    assert load.evidence == "resolved"


def test_typescript(tmp_path: Path):
    check_effects(
        tmp_path,
        """
        //- registry.ts
        const TABLE = {};
        export function keep(name, f) { TABLE[name] = f; }
        //- main.ts
        import fs from "fs";
        import { keep } from "./registry";
        keep("x", () => { fetch("later"); });
        //< state
        const text = fs.readFileSync("x");
        //           ^ io
        const port = process.env.PORT;
        //           ^ environment
        (function () { fetch("now"); })();
        //             ^ network
        //< network
        export const late = () => fetch("x");
        const seen = new Map();
        //           ^ pure
        seen.set("a", 1);
        //< pure
        class Thing { static one = boot(); two = inst(); go() { fetch("x"); } }
        //                         ^ unknown
        if (require.main === module) { console.log(1); }
        """,
    )


def test_what_is_asked_about(tmp_path: Path):
    snippet = """
        #- app/a.py
        print(1)
        #- app/sub/b.py
        print(len([]))
        def f(): pass
        #- quiet.py
        def g(): print(1)
        #- README.md
        ```python
        print("shown")
        ```
        """
    with open_fixture(tmp_path, snippet) as workspace:
        assert workspace.side_effects().summary["io"] == 2
        assert [row[0] for row in find_rows(workspace.side_effects("app.sub"))] == ["app/sub/b.py"]
        assert [row[0] for row in find_rows(workspace.side_effects("app/a.py"))] == ["app/a.py"]
        only = workspace.side_effects("app.sub.b.f")
        assert (only.summary["io"], only.summary["pure"]) == (1, 1)
        assert [section.collapsed for section in only.sections] == [False, True]
        assert workspace.side_effects("nowhere").found == 0
        quiet = workspace.side_effects("quiet.py")
        assert (quiet.found, quiet.degraded[0].category) == (0, "nothing")


class Loaded(ast.NodeVisitor):
    """Where calls and decorators stand that run as a module is loaded, by Python's own tree."""

    def __init__(self) -> None:
        self.found: set[tuple[int, int]] = set()

    def visit_Call(self, node: ast.Call) -> None:
        self.found.add((node.lineno, node.col_offset))
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for decorator in node.decorator_list:
            self.found.add((decorator.lineno, decorator.col_offset))
            self.visit(decorator)
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.found |= {(decorator.lineno, decorator.col_offset) for decorator in node.decorator_list}
        self.generic_visit(node)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING", "__name__ == '__main__'"):
            for child in node.orelse:
                self.visit(child)
        else:
            self.generic_visit(node)


def test_the_same_calls_as_pythons_own_tree(tmp_path: Path):
    packages = Path(sysconfig.get_paths()["purelib"])
    shutil.copytree(packages / "_pytest" / "config", tmp_path / "repo" / "config")
    shutil.copytree(packages / "_pytest" / "_code", tmp_path / "repo" / "_code")
    with Workspace.open(tmp_path / "repo", index_dir=tmp_path / "index") as workspace:
        answer = workspace.side_effects(EffectsOptions(pure=True, page=Page(0, 0)))
    places = {(f.location.path, f.location.start_line, f.location.start_col - 1)
              for s in answer.sections for f in s.findings
              if f.location and isinstance(f.details, EffectDetails) and f.details.what != "os.environ"}  # fmt: skip
    expected: set[tuple[str, int, int]] = set()
    for path in sorted((tmp_path / "repo").rglob("*.py")):
        visitor = Loaded()
        visitor.visit(ast.parse(path.read_bytes()))
        name = path.relative_to(tmp_path / "repo").as_posix()
        expected |= {(name, *place) for place in visitor.found}
    assert len(expected) > 50
    assert places == expected


def test_an_empty_repository_has_none(tmp_path: Path):
    (tmp_path / "repo").mkdir()
    with Workspace.open(tmp_path / "repo", index_dir=tmp_path / "index") as workspace:
        assert workspace.side_effects().found == 0
        assert workspace.exceptions().found == 0


def test_how_it_happens_and_on_what_condition(tmp_path: Path):
    snippet = """
    //- main.ts
    import "./polyfill";
    import { a } from "./setup";
    console.log("x");
    (function () { console.log(1); })();
    process.env.NODE_ENV = "test";
    await fetch("/x");
    await a;
    if (a) console.log("cond");
    try { console.log("try"); } catch { console.warn("caught"); }
    for (const x of [1]) console.log(x);
    switch (a) { case 1: console.log("case"); }
    function later() { console.log("no"); }
    type T = 1; interface I {} enum E { A }
    //- setup.ts
    export const a = 1;
    //- polyfill.ts
    globalThis.p = 1;
    """
    with open_fixture(tmp_path, snippet) as workspace:
        answer = workspace.side_effects(EffectsOptions("main.ts", page=Page(0, 0)))
    found = sorted(
        (finding.location.start_line, finding.details.form, finding.details.is_conditional)
        for section in answer.sections
        for finding in section.findings
        if isinstance(finding.details, EffectDetails) and finding.location is not None
    )
    assert found == [
        (1, "import", False), (3, "call", False), (4, "call", False), (4, "iife", False), (5, "assignment", False),
        (6, "await", False), (7, "await", False), (8, "call", True), (9, "call", True), (9, "call", True),
        (10, "call", True), (11, "call", True),
    ]  # fmt: skip
