"""Every option of every question does something: the answer with it is another one than without."""

from __future__ import annotations

import io
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import msgspec
import pytest

import cq
from cq import Answer, Workspace
from cq.answers.options import find_written
from cq.answers.page import estimate
from cq.model.answer import Run
from cq.questions.table import QUESTIONS
from cq.surfaces.asked import Asked, read_options
from cq.surfaces.cli import main

STORE = '''
import os, sys
LIMIT = 3
class Base:
    """What stores have in common: save."""
    def save(self, row): ...
class Store(Base):
    def __init__(self):
        self.rows = []
    def save(self, row, deep=False):
        if not row:
            raise ValueError(row)
        return self.check(row)
    def check(self, row):
        return [other for other in self.rows if bool(row)]
def store(row): return Store().save(row)
'''
USE = """
from app.store import Store, store
print("loaded")
objects = Store()
def write(rows, other: Store):
    for row in rows:
        other.save(row)
        objects.save(row)
        unknown(row).save(row)
def outer():
    def inner():
        return write
    return inner
def main():
    try:
        write([], Store())
    except ValueError:
        pass
"""
TREE = {
    "app/__init__.py": "",
    "app/store.py": STORE,
    "app/use.py": USE,
    "app/many.py": "from app.store import store\n" + "".join(f"def f{n}():\n    store({n})\n" for n in range(70)),
    "app/cycle_a.py": "from app import cycle_b\n",
    "app/cycle_b.py": "from app import cycle_a\nimport json\n",
    "app/web.py": (
        "import os\nimport subprocess\nfrom flask import request\n"
        "def run():\n    subprocess.run(request.args['x'], shell=True)\n    os.system(request.args['y'])\n"
        "    subprocess.run(input(), shell=True)\n    open(request.args['z'])\n"
        "def checked():\n    value = request.args['c']\n    if value in ('a', 'b'):\n        os.system(value)\n"
    ),
    "app/site.py": (
        "from flask import Flask\nsite = Flask(__name__)\n"
        + "".join(f"@site.route('/p{n}')\ndef p{n}(): ...\n" for n in range(70))
        + "@site.post('/send')\ndef send(): ...\n@site.cli.command()\ndef sweep(): ...\n"
    ),
    "rules.toml": (
        '[[rules]]\nid = "a"\nkind = "forbidden"\nfrom = ["app"]\nto = ["os", "sys", "json", "flask"]\n'
        '[[rules]]\nid = "b"\nkind = "acyclic"\n'
    ),
    "seen.json": '{"fingerprints": []}',
    ".importlinter": "[importlinter:contract:1]\nname=A\ntype=layers\nlayers=\n  app.store\n  app.use\n",
    "app/broken.py": "def broken(:\n    pass\n",
    "app/worse.py": "print('worse')\nclass (:\n    pass\n",
    "app/ways.py": (
        "from app.store import Store\n"
        "def first(): left(), right()\ndef left(): last()\ndef right(): last()\ndef last(): fail()\n"
        "def fail(): raise KeyError(1)\ndef guess(thing): thing.check(1)\n"
    ),
    "web/page.ts": "export function save(row: number) { return row }\nexport const twice = () => save(2)\n"
    "export type Row = { a: { b: { c: number } } };\nexport type Deep = { [K in keyof Row]: Row[K] };\n",
    "web/tsconfig.json": '{"references": [{"path": "p1"}]}',
    **{f"web/p{n}/tsconfig.json": "{}" for n in range(70)},
    "tests/test_use.py": (
        "from app.use import main\nfrom app.store import Store\ndef test_main():\n    main()\n    Store().save(1)\n"
        "def test_store():\n    Store().check(1)\ndef test_guess(thing):\n    thing.check(2)\n"
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    base = tmp_path_factory.mktemp("effects")
    root = base / "repo"
    for name, text in TREE.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "one"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    (root / "app/use.py").write_text(USE.replace("other.save(row)", "other.save(row, True)"))
    known = io.StringIO()
    with redirect_stdout(known):
        assert main(["risk", "--format=jsonl", "--limit=2", f"--root={root}", f"--index-dir={base / 'index'}"]) == 0
    (root / "known.jsonl").write_text(known.getvalue())
    with Workspace.open(root, index_dir=base / "index") as opened:
        yield opened


# What is asked, and for some options what is asked beside them.
BASE: dict[str, dict[str, Any]] = {
    "search": {"text": "save"},
    "find": {"query": "check a row before it is saved", "mode": "lexical"},
    "calls": {"target": "Store.save"},
    "neighborhood": {"target": "Store.save", "no_lsp": True},
    "graph": {"target": "write"},
    "path": {"source": "main", "target": "Store.check"},
    "impact": {"target": ["Store.check"]},
    "tests-for": {"target": ["Store.check"]},
    "diff": {},
    "log": {"target": "write"},
    "routes": {},
    "sig-impact": {"target": "Store.save", "to": "save(self)"},
    "imports": {},
    "architecture": {"rules": "rules.toml"},
    "api": {},
    "dead": {},
    "context": {"target": ["Store.check"]},
    "types": {"target": "Base"},
    "references": {"target": "Store.save", "no_lsp": True},
    "hover": {"target": "Store.save", "no_lsp": True},
    "lsp": {"plane": "workspace-symbols", "target": "Store", "no_lsp": True},
    "diagnostics": {"no_lsp": True},
    "exceptions": {},
    "side-effects": {},
    "risk": {},
    "scopes": {"target": "app/use.py"},
    "bytecode": {"target": "app/use.py"},
    "rank": {},
    "projects": {},
    "map": {},
    "run": {"plan": {"steps": [{"type": "imports"}]}},
    "report": {"preset": "dependency-health", "target": "path:app"},
    "q": {"query": "entity=function"},
    "read": {"target": "app/many.py:1-"},
}
# The value of an option, by its key, and by question and key where that is another one.
VALUES: dict[str, Any] = {
    "lang": ["typescript"], "in": ["web"], "include": ["web/*"], "exclude": ["app/"], "limit": 1, "page": 2,
    "budget": 600, "all": True, "count": True, "by": "file", "depth": 2, "edges": ["imports"], "min_confidence": 0.99,
    "certain": True, "family": True, "why": True, "receiver": "objects", "changed": "HEAD", "cycles": True,
    "kind": ["definition"], "severity": "error", "pattern": "/send", "of": "send", "method": "POST", "links": True,
    "blame": True,
}  # fmt: skip
# What is asked with and without the option, where that is more than the option beside BASE.
SPECIAL: dict[tuple[str, str], tuple[dict[str, Any], dict[str, Any]]] = {
    ("search", "mode"): ({"text": "sa.e"}, {"mode": "regex"}),
    ("search", "ignore_case"): ({"text": "Store"}, {"ignore_case": True}),
    ("search", "case_sensitive"): ({"text": "store"}, {"case_sensitive": True}),
    ("search", "include_strings"): ({"text": "save"}, {"include_strings": True}),
    ("search", "context"): ({"text": "save"}, {"context": 2}),
    ("search", "no_enrich"): ({"text": "save"}, {"no_enrich": True}),
    ("find", "kind"): ({"query": "store", "mode": "lexical"}, {"kind": ["class"]}),
    ("find", "path"): ({"query": "store", "mode": "lexical"}, {"path": ["app/use.py"]}),
    ("find", "threshold"): ({"query": "check a row"}, {"threshold": 0.99}),
    ("find", "mode"): ({"query": "check a row"}, {"mode": "lexical"}),
    ("find", "call_depth"): ({"query": "symbol = main"}, {"call_depth": 3}),
    ("find", "type_depth"): ({"query": "symbol = write"}, {"type_depth": 0}),
    ("neighborhood", "top_k"): ({"target": "store"}, {"top_k": 2}),
    ("neighborhood", "slices"): ({"target": "Store.save"}, {"slices": ["callers"]}),
    ("neighborhood", "expand"): ({"target": "Store.check"}, {"expand": ["callers(depth=3)"]}),
    ("graph", "direction"): ({"target": "write"}, {"direction": "dependents"}),
    ("path", "min_confidence"): ({"source": "guess", "target": "Store.check"}, {"min_confidence": 0.9}),
    ("path", "limit"): ({"source": "first", "target": "last"}, {"limit": 1}),
    ("tests-for", "untested"): ({"target": ["app/many.py"]}, {"untested": True}),
    ("tests-for", "min_confidence"): ({"target": ["Store.check"]}, {"min_confidence": 0.99}),
    ("diff", "revisions"): ({}, {"revisions": ["HEAD", "HEAD"]}),
    ("diff", "only"): ({}, {"only": ["removed"]}),
    ("diff", "path"): ({}, {"path": ["web"]}),
    ("diff", "fail_on"): ({}, {"fail_on": ["body"]}),
    ("log", "introduced"): ({"target": "write"}, {"introduced": True}),
    ("sig-impact", "page"): ({"target": "store", "to": "store()", "limit": 1}, {"page": 2}),
    ("imports", "module"): ({}, {"module": "app/use.py"}),
    ("diagnostics", "paths"): ({"no_lsp": True}, {"paths": ["web"]}),
    ("exceptions", "target"): ({}, {"target": "write"}),
    ("exceptions", "depth"): ({"target": "first"}, {"depth": 1}),
    ("side-effects", "path"): ({}, {"path": "app/use.py"}),
    ("side-effects", "pure"): ({}, {"pure": True}),
    ("risk", "target"): ({}, {"target": ["web"]}),
    ("risk", "kind"): ({}, {"kind": ["path"]}),
    ("risk", "cwe"): ({}, {"cwe": ["22"]}),
    ("risk", "severity"): ({}, {"severity": "critical"}),
    ("risk", "source"): ({}, {"source": ["local"]}),
    ("risk", "from"): ({}, {"from": "app/store.py"}),
    ("risk", "to"): ({}, {"to": "app/store.py"}),
    ("risk", "new_since"): ({}, {"new_since": "HEAD"}),
    ("risk", "baseline"): ({}, {"baseline": "known.jsonl"}),
    ("risk", "mode"): ({}, {"mode": "strict"}),
    ("risk", "test"): ({"target": ["rules"]}, {"test": True}),
    ("routes", "kind"): ({}, {"kind": "cli"}),
    ("routes", "budget"): ({}, {"budget": 600}),
    ("types", "depth"): ({"target": "Deep"}, {"depth": 3}),
    ("architecture", "rules"): ({"from": "import-linter"}, {"from": None, "rules": "rules.toml"}),
    ("architecture", "from"): ({"rules": "rules.toml"}, {"rules": None, "from": "import-linter"}),
    ("architecture", "rule"): ({"rules": "rules.toml"}, {"rule": "b"}),
    ("architecture", "baseline"): ({"rules": "rules.toml"}, {"baseline": "seen.json"}),
    ("architecture", "suggest"): ({"rules": "rules.toml"}, {"rules": None, "suggest": True}),
    ("architecture", "budget"): ({"rules": "rules.toml"}, {"budget": 100}),
    ("architecture", "all"): ({"rules": "rules.toml", "limit": 1}, {"limit": None, "all": True}),
    ("api", "part"): ({}, {"part": "web"}),
    ("dead", "part"): ({}, {"part": "web"}),
    ("api", "unused"): ({}, {"unused": True}),
    ("api", "only_exports"): ({}, {"only_exports": True}),
    ("dead", "min_confidence"): ({}, {"min_confidence": 0.9}),
    ("context", "slices"): ({"target": ["Store.check"]}, {"slices": ["primary"]}),
    ("context", "budget"): ({"target": ["Store"]}, {"budget": 300}),
    ("context", "max_types"): ({"target": ["Store"]}, {"max_types": 0}),
    ("context", "max_evidence"): ({"target": ["Store.save"]}, {"max_evidence": 1}),
    ("context", "changed"): ({"target": ["Store.check"]}, {"changed": "HEAD"}),
    ("rank", "tests"): ({}, {"tests": True}),
    ("projects", "project"): ({}, {"project": "web"}),
    ("map", "by"): ({}, {"by": "definition"}),
    ("map", "size"): ({}, {"size": "symbols"}),
    ("map", "heat"): ({}, {"heat": "fan-in"}),
    ("read", "budget"): ({"target": "app/many.py:1-"}, {"budget": 200}),
    ("read", "all"): ({"target": "app/many.py:1-", "budget": 200}, {"budget": None, "all": True}),
    ("lsp", "plane"): (BASE["lsp"], {"plane": "document-symbols", "target": "app/use.py"}),
    ("report", "preset"): (BASE["report"], {"preset": "safety-reliability"}),
    ("report", "target"): (BASE["report"], {"target": "path:web"}),
    ("run", "plan"): (BASE["run"], {"plan": {"steps": [{"type": "rank"}]}}),
    ("sig-impact", "to"): (BASE["sig-impact"], {"to": "save(self, row, deep=False)"}),
    ("path", "source"): (BASE["path"], {"source": "write"}),
    ("q", "query"): (BASE["q"], {"query": "entity=class"}),
    ("find", "query"): (BASE["find"], {"query": "symbol = main"}),
    ("search", "text"): (BASE["search"], {"text": "Store"}),
}  # fmt: skip
_ONE_CHANGE = "one definition is changed here: tests/questions/test_diff.py changes more"
_SERVER = "tests/questions/test_server_questions.py has a server; here is none"
# Where the answer about this small tree is the same, why, or which test shows what changes.
ELSEWHERE: dict[tuple[str, str], str] = {
    ("context", "since"): "tests/questions/test_context.py has a pack that was given before",
    **{("diff", key): _ONE_CHANGE for key in ("public", "limit", "page", "all")},
    ("search", "profile"): "bounds of trees larger than this one: tests/questions/test_search.py",
    ("find", "candidates"): "bounds what is ranked of trees larger than this one: tests/questions/test_find.py",
    ("find", "weights"): "of a reranker, which is not asked for names: tests/questions/test_find_ranking.py",
    ("lsp", "target"): _SERVER,
    ("lsp", "lang"): _SERVER,
    **{("lsp", key): _SERVER for key in ("limit", "page", "count", "by")},
    ("hover", "limit"): "one definition bears the name",
    ("hover", "page"): "one definition bears the name",
    ("diagnostics", "severity"): "syntax errors are errors: tests/questions/test_server_questions.py has warnings",
}


def ask(workspace: Workspace, question: str, given: dict[str, Any]) -> Answer:
    (options,) = read_options(Asked(question, options=given), workspace.root, {})
    options.check()
    answer = workspace.ask(options)
    return msgspec.structs.replace(answer, run=Run())


def find_all() -> list[tuple[str, str]]:
    return [(name, one.key) for name, question in QUESTIONS.items() for one in find_written(question.load_options())]


@pytest.mark.parametrize(("question", "key"), find_all())
def test_an_option_changes_the_answer(workspace: Workspace, question: str, key: str):
    if key in ("lsp", "no_lsp") or (question, key) in ELSEWHERE:
        return
    base, more = SPECIAL.get((question, key), (BASE[question], {}))
    if key == "target" and not more:
        more = {"target": ["app/use.py"] if isinstance(base.get("target"), list) else "app/use.py:write"}
    if key == "page" and not more:
        base, more = {**base, "limit": 1}, {"page": 2}
    if not more:
        more = {key: VALUES[key]}
    assert ask(workspace, question, {**base, **more}) != ask(workspace, question, base)


@pytest.mark.parametrize(
    ("question", "key"),
    [row for row in find_all() if row[0] in BASE and row[1] in ("include", "exclude", "lang")],
)
def test_a_filter_that_no_file_fits_is_said(workspace: Workspace, question: str, key: str):
    if question in ("q", "lsp"):  # queries: tests/questions/test_query.py; of lsp it says whose servers are asked
        return
    base = {name: value for name, value in BASE[question].items() if name not in ("lsp", "no_lsp")}
    answer = ask(workspace, question, {**base, key: ["lua"] if key == "lang" else ["nosuch/**"]})
    said = "--lang lua: no file here is of it" if key == "lang" else f"--{key} nosuch/**: no file fits it"
    assert said in [event.message for event in answer.degraded]
    fitting = ask(workspace, question, {**base, key: ["python"] if key == "lang" else ["app/**"]})
    assert "filter" not in [event.category for event in fitting.degraded]


# Command -> what it is asked about this program.
ASKED: dict[str, list[str]] = {
    "search": ["text"],
    "find": ["how is the daemon asked for an answer", "--mode", "lexical"],
    "calls": ["UsageError"],
    "neighborhood": ["UsageError"],
    "graph": ["UsageError"],
    "impact": ["UsageError"],
    "tests-for": ["UsageError"],
    "routes": [],
    "sig-impact": ["UsageError", "--to", "UsageError(self, a, b, c)"],
    "imports": [],
    "api": [],
    "dead": [],
    "context": ["Daemon"],
    "architecture": ["--suggest"],
    "types": ["CqError"],
    "references": ["UsageError", "--no-lsp"],
    "hover": ["UsageError", "--no-lsp"],
    "diagnostics": ["--no-lsp"],
    "lsp": ["document-symbols", "surfaces/daemon.py", "--no-lsp"],
    "exceptions": [],
    "side-effects": [],
    "risk": [],
    "scopes": ["Daemon"],
    "bytecode": ["Daemon"],
    "rank": [],
    "projects": [],
    "report": ["refactor-impact", "--target", "class:Daemon"],
    "map": [],
    "q": ["pattern='$F($$$A)'"],
    "read": ["surfaces/daemon.py:1-"],
}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("program")
    for part in ("surfaces", "model"):
        shutil.copytree(Path(cq.__file__).parent / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
    return str(root)


@pytest.mark.parametrize("question", ASKED)
def test_json_is_within_the_budget(program: str, question: str, monkeypatch: pytest.MonkeyPatch):
    """Everything in it: edges, snapshots and the card beside the findings."""
    # A bundle has all of its slices, a report all of its steps, however small the budget.
    for budget in (4000,) if question in ("neighborhood", "report") else (1500, 4000):
        written = io.StringIO()
        with redirect_stdout(written):
            words = [*ASKED[question], "--format", "json", "--budget", str(budget)]
            monkeypatch.setattr("sys.argv", ["cq", question, *words])
            status = main([question, *words, "--root", program, "--index-dir", f"{program}-index"])
        assert status in (0, 1)
        assert estimate(written.getvalue()) <= budget
        answer = msgspec.json.decode(written.getvalue())
        assert not answer["found"] or answer["sections"] or answer["results"]
