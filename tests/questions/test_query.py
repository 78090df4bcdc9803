"""What a query answers beside its matches: files, captures, fields, expansions, pages, plans, and what it left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from ast_grep_py import SgRoot

from bench.patterns import compare, make_patterns
from cq import Workspace, query
from cq.model.answer import Answer, FactDetails, LinkDetails, QueryDetails, Run, Section
from cq.model.errors import QueryError, UsageError
from cq.query.plan import make_plan
from cq.query.vocabulary import METAVARIABLE, TOKENS
from cq.questions.q import QueryOptions, documents
from cq.questions.q.run import run_plans
from tests.support.samples import TESTS

pytestmark = pytest.mark.slow

Open = Callable[..., Workspace]


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Open]:
    opened: list[Workspace] = []

    def make(**files: str | bytes) -> Workspace:
        """`src__a_py="…"` is the file src/a.py."""
        for name, text in files.items():
            stem, _, ending = name.replace("__", "/").rpartition("_")
            path = tmp_path / "root" / f"{stem}.{ending}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        opened.append(Workspace.open(tmp_path / "root", index_dir=tmp_path / "index"))
        return opened[-1]

    yield make
    for workspace in opened:
        workspace.close()


def places(answer: Answer) -> list[str]:
    found = [finding.location for finding in answer.sections[0].findings]
    return [f"{place.path}:{place.start_line}:{place.start_col}" for place in found if place]


def section(answer: Answer, kind: str) -> Section:
    return next(section for section in answer.sections if section.kind == kind)


def messages(answer: Answer, kind: str) -> list[str]:
    return [finding.message for finding in section(answer, kind).findings]


def details(answer: Answer) -> list[QueryDetails]:
    return [d for finding in answer.sections[0].findings if isinstance(d := finding.details, QueryDetails)]


# -- files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tokens", "paths"),
    [
        ("in=src", ["src/a.py", "src/deep/b.py", "src/c.ts"]),
        ("in=src/", ["src/a.py", "src/deep/b.py", "src/c.ts"]),
        ("in=src/a.py", ["src/a.py"]),
        ("in=sr", []),
        ("exclude=deep", ["lib/d.rs", "src/a.py", "src/c.ts", "tests/e.py"]),
        ("exclude='src/**' exclude='*.rs'", ["tests/e.py"]),
        ("globs='*.py'", ["src/a.py", "src/deep/b.py", "tests/e.py"]),
        ("globs='*.ts','lib/'", ["lib/d.rs", "src/c.ts"]),
        ("lang=python", ["src/a.py", "src/deep/b.py", "tests/e.py"]),
        ("lang=ts,rs", ["lib/d.rs", "src/c.ts"]),
        ("(in=lib or in=tests)", ["lib/d.rs", "tests/e.py"]),
        ("not in=src", ["lib/d.rs", "tests/e.py"]),
        ("not (in=src or lang=rust)", ["tests/e.py"]),
    ],
)
def test_files(tree: Open, tokens: str, paths: list[str]):
    workspace = tree(
        src__a_py="def f(): pass\n", src__deep__b_py="def f(): pass\n", src__c_ts="function f() {}\n",
        lib__d_rs="fn f() {}\n", tests__e_py="def f(): pass\n",
    )  # fmt: skip
    answer = workspace.q(f"entity=function name=f {tokens}")
    assert sorted(place.partition(":")[0] for place in places(answer)) == sorted(paths)


def test_tests_come_after_source(tree: Open):
    workspace = tree(tests__a_py="def f(): pass\n", zoo_py="def f(): pass\n", b_test_ts="function f() {}\n")
    assert places(workspace.q("entity=function")) == ["zoo.py:1:1", "tests/a.py:1:1", "b_test.ts:1:1"]


def test_options_beside_a_query_narrow_it(tree: Open):
    workspace = tree(a_py="def f(): pass\n", b_ts="function f() {}\n", c_py="def f(): pass\n")
    assert places(workspace.q(QueryOptions("entity=function", include=("*.py",), exclude=("c.py",)))) == ["a.py:1:1"]
    assert places(workspace.q(QueryOptions("entity=function - entity=function in=c.py", languages=("python",)))) == [
        "a.py:1:1"
    ]


# -- captures and offsets --------------------------------------------------------------------------


def test_captures_have_text_and_place_in_bytes(tree: Open):
    workspace = tree(a_py="s = 'häß€𝄞'\nf('é', [1, 2], ü)  # ✓\n")
    (found,) = details(workspace.q("pattern='f($A, $$$REST)'"))
    assert found.match == "f('é', [1, 2], ü)"
    assert [(c.name, c.text, c.location.start_col, c.location.end_col) for c in found.captures] == [
        ("A", "'é'", 3, 6),
        ("REST", "[1, 2], ü", 8, 17),
    ]
    text = workspace.text("a.py")
    for capture in found.captures:
        assert text[capture.location.start : capture.location.end].decode() == capture.text


def test_a_list_that_captures_nothing_is_empty(tree: Open):
    workspace = tree(a_py="f()\nf(1)\n")
    assert [c.text for d in details(workspace.q("pattern='f($$$A)'")) for c in d.captures] == ["", "1"]


def test_what_stands_behind_a_list_is_not_of_it(tree: Open):
    workspace = tree(a_py="f(1)\nf(1, 2,  # three\n  3)\nf(1, k=2)\n", b_ts="{ a(); b(); return c; }\n")
    found = details(workspace.q("pattern='f($$$A, $B)'"))
    assert [[c.text for c in d.captures] for d in found] == [["", "1"], ["1, 2,  # three", "3"], ["1", "k=2"]]
    (found,) = details(workspace.q("pattern='f($$$A, k=$V)'"))
    assert [c.text for c in found.captures] == ["1", "2"]
    (found,) = details(workspace.q("pattern='{ $$$A; return $X }'"))
    assert [c.text for c in found.captures] == ["a(); b();", "c"]


def test_relations_capture_too(tree: Open):
    workspace = tree(a_py="class K:\n    def m(self): f(1)\nf(2)\n")
    (found,) = details(workspace.q("pattern='f($X)' inside='class $C' inside='def $M($$$)'"))
    assert [(c.name, c.text) for c in found.captures] == [("X", "1"), ("C", "K"), ("M", "m")]
    assert found.scope == "K.m"


def test_documents_inside_files(tree: Open):
    page = "# Title\n\n```python\ndef f(): g(1)\n```\n\n> ```python\n> g(2)\n> ```\n"
    workspace = tree(a_md=page, b_vue="<template>x</template>\n<script lang='ts'>\ng(3)\n</script>\n")
    assert places(workspace.q("pattern='g($X)'")) == ["b.vue:3:1", "a.md:4:10", "a.md:8:3"]
    assert places(workspace.q("entity=function")) == ["a.md:4:1"]


def test_scopes_of_lambdas_and_of_documents_with_a_prefix(tree: Open):
    source = "def f(n):\n    return map(lambda x: x, 1), map(lambda x: x + n, 2)\n"
    workspace = tree(a_py=source, b_md="text\n\n> ```python\n> def g(k):\n>     def h(): return k\n> ```\n")
    assert places(workspace.q("pattern='lambda $X: $B' captures=n")) == ["a.py:2:37"]
    assert places(workspace.q("entity=function captures=k")) == ["b.md:5:7"]


# -- fields and expansions -------------------------------------------------------------------------

CHAIN = {
    "a_py": "import os\nfrom b import mid\n\ndef top(x):\n    os.getpid()\n    return mid(x)\n",
    "b_py": "from c import low\n\n@dec\ndef mid(x):\n    return low(x)\n",
    "c_py": "def low(x):\n    if x: raise ValueError(x)\n    return 1\n",
}


@pytest.mark.parametrize(
    ("depth", "callers"), [(1, ["mid → low"]), (2, ["mid → low", "top → mid"]), (3, ["mid → low", "top → mid"])]
)
def test_callers_by_depth_in_the_whole_repository(tree: Open, depth: int, callers: list[str]):
    answer = tree(**CHAIN).q(f"entity=function name=low in=c.py expand=callers(depth={depth})")
    assert messages(answer, "expand.callers") == callers
    assert answer.degraded == ()
    links = [f.details for f in section(answer, "expand.callers").findings]
    assert [link.depth for link in links if isinstance(link, LinkDetails)] == list(range(1, len(callers) + 1))


def test_callees_and_what_they_may_mean(tree: Open):
    workspace = tree(**CHAIN, d_py="class A:\n    def low(self, y): pass\nclass B:\n    def low(self, y): pass\n"
                     "def any(x):\n    x.low(1)\ndef low(y): A().low(y)\n")  # fmt: skip
    answer = workspace.q("entity=function name=mid expand=callees")
    assert messages(answer, "expand.callees") == ["mid → low"], "the imported one, not every one of that name"
    answer = workspace.q("entity=function name=any expand=callees")
    assert messages(answer, "expand.callees") == ["any → A.low (possible, 1 of 2)", "any → B.low (possible, 1 of 2)"]
    assert section(answer, "expand.callees").note == "0 certain, 2 possible"
    assert [event.category for event in answer.degraded] == ["possible"]
    answer = workspace.q("entity=method name=low expand=callers")
    assert messages(answer, "expand.callers") == [
        "any → A.low (possible, 1 of 2)", "low → A.low", "any → B.low (possible, 1 of 2)",
    ]  # fmt: skip


def test_uses_are_certain_or_possible(tree: Open):
    workspace = tree(
        a_py="from b import LIMIT, one\nimport b\nclass C:\n    field = 1\n    def two(self): ...\n"
        "def use(x):\n    one()\n    x.two()\n    return LIMIT, x.field, b\n",
        b_py="LIMIT = 1\ndef one(): ...\ndef two(): ...\n",
        c_py="LIMIT = 2\ndef one(): ...\n",
    )
    found = [workspace.q(f"entity={kind} used_by=use") for kind in ("function", "method", "variable")]
    said = [
        (f.location.path, f.details.name, f.details.attributes["used"])
        for answer in found
        for f in section(answer, "matches").findings
        if f.location and isinstance(f.details, QueryDetails)
    ]
    assert said == [
        ("b.py", "one", "certain"), ("a.py", "two", "possible"), ("a.py", "field", "possible"),
        ("b.py", "LIMIT", "certain"),
    ]  # fmt: skip


def test_a_constructor_is_called_by_its_class(tree: Open):
    workspace = tree(a_py="class K:\n    def __init__(self): pass\ndef make(): return K()\n")
    assert messages(workspace.q("entity=method name=__init__ expand=callers"), "expand.callers") == [
        "make → K.__init__"
    ]


def test_imports_raises_scope_and_bytecode(tree: Open):
    workspace = tree(**CHAIN)
    answer = workspace.q("entity=function name=top expand=imports(depth=2)")
    assert messages(answer, "expand.imports") == ["a.py → os", "a.py → b", "b.py → c"]
    answer = workspace.q("entity=function name=low expand=raises,scope,bytecode_surface")
    assert messages(answer, "expand.raises") == ["low raises ValueError"]
    (scope,) = section(answer, "expand.scope").findings
    assert isinstance(scope.details, FactDetails)
    assert scope.details.facts == {"kind": ("toplevel",), "captures": (), "cells": (), "locals": ("x",)}
    (surface,) = section(answer, "expand.bytecode_surface").findings
    assert isinstance(surface.details, FactDetails)
    assert surface.details.facts["globals"] == ("ValueError",)
    assert surface.details.facts["calls"] == ("ValueError",)
    assert "1" in surface.details.facts["constants"]


def test_the_bytecode_names_what_is_called(tree: Open):
    source = "def f(a):\n    b = a.b.c(g(1), key=h)\n    return [k.m(x) for x in b]\n"
    (found,) = section(
        tree(a_py=source).q("entity=function expand=bytecode_surface"), "expand.bytecode_surface"
    ).findings
    assert isinstance(found.details, FactDetails)
    facts = found.details.facts
    assert facts["calls"] == ("a.b.c", "g", "k.m")
    assert facts["attributes"] == ("b", "c", "m")
    assert set(facts["globals"]) == {"g", "h", "k"}


def test_code_that_this_python_cannot_compile_is_said(tree: Open):
    answer = tree(a_py="def f():\n    return 1\nprint 'x'\n").q("entity=function name=f expand=bytecode_surface,scope")
    assert [event.category for event in answer.degraded] == ["bytecode", "scope"]
    assert answer.found == 1


def test_fields_fill_their_sections(tree: Open):
    workspace = tree(**CHAIN)
    answer = workspace.q("entity=function name=mid fields=def,loc,callers,callees,imports,decorators,evidence")
    assert messages(answer, "field.loc") == ["mid: 2 lines, 29 bytes"]
    assert messages(answer, "expand.callers") == ["top → mid"]
    assert messages(answer, "expand.callees") == ["mid → low"]
    assert messages(answer, "field.imports") == ["b.py → c"]
    assert messages(answer, "field.decorators") == ["@dec"]
    (evidence,) = section(answer, "field.evidence").findings
    assert isinstance(evidence.details, FactDetails)
    assert {"syntax", "scope.kind", "bytecode.globals"} <= set(evidence.details.facts)
    answer = workspace.q("entity=decorator name=dec fields=decorated_functions")
    assert messages(answer, "field.decorated_functions") == ["mid bears dec"]
    assert answer.sections[0].findings == ()
    assert answer.sections[0].collapsed


# -- pages, limits, plans --------------------------------------------------------------------------


def test_pages_hold_everything_once(tree: Open):
    workspace = tree(a_py="".join(f"def f{n}(): pass\n" for n in range(25)))
    whole = places(workspace.q(QueryOptions("entity=function", everything=True)))
    pages = [workspace.q(QueryOptions("entity=function", limit=10, page=page)) for page in (1, 2, 3, 4)]
    assert [len(places(page)) for page in pages] == [10, 10, 5, 0]
    assert [place for page in pages for place in places(page)] == whole
    budget = pages[0].insight.budget if pages[0].insight else None
    assert budget
    assert (budget.total, budget.shown, budget.pages) == (25, 10, 3)
    small = workspace.q(QueryOptions("entity=function", budget=100))
    assert 0 < len(places(small)) < 10
    for wrong in ({"limit": -1}, {"page": 0}, {"budget": -1}):
        with pytest.raises(UsageError):
            workspace.q(QueryOptions("entity=function", **wrong))


def test_a_limit_is_said(tree: Open):
    answer = tree(a_py="f(1)\nf(2)\nf(3)\n").q("pattern='f($X)' limit=2")
    assert (answer.found, [(cut.limit, cut.observed, cut.omitted) for cut in answer.truncated]) == (2, [(2, 3, 1)])


def test_explain_says_how(tree: Open):
    workspace = tree(a_py="getattr(a, b)\n", b_py="x = 1\n", c_rs="fn f() {}\n", d_toml="a = 1\n")
    plan = messages(workspace.q("pattern='getattr($X, $Y)' lang=python explain"), "explain")
    assert plan == [
        "group 1: pattern='getattr($X, $Y)' lang=python",
        "text index: files with getattr",
        "estimated 1 files, came to 1 of 2 in reach (0 in languages left out)",
        "parsed 1 documents, skipped 0, found 1",
        "1 after sets and stages",
    ]
    answer = workspace.q("pattern='x = $V' explain")
    assert "left out: there is no grammar for patterns" in " ".join(messages(answer, "languages"))


def test_languages_that_cannot_serve_are_named(tree: Open):
    workspace = tree(a_py="def f(): pass\n", b_rs="fn f() {}\n", c_go="package p\nfunc f() {}\n")
    answer = workspace.q("pattern='def $F($$$)'")
    assert places(answer) == ["a.py:1:1"]
    assert [event.correlation_key for event in answer.degraded] == ["go", "rust"]
    answer = workspace.q("entity=trait")
    assert [event.message for event in answer.degraded] == ["python is left out: it has no trait"]
    answer = workspace.q("entity=function scope=toplevel")
    assert [event.message for event in answer.degraded] == ["go is left out: its scopes are not known"]


@pytest.mark.parametrize(
    "text",
    [
        "pattern='def ('",
        "pattern='kind=no_such_kind'",
        "pattern='('",
        "pattern='f($X'",
        "pattern='f($X)' not='a b c'",
        "any='f($X)','g('",
        "pattern='$x + 1' lang=python",
        "pattern='f($X)' has='(' ",
        "pattern='f($X)' inside='class $C' inside.field=no_such_field",
        "pattern='a = 1' pattern.selector=no_such_kind",
        "pattern='throws $E' lang=java",
        "pattern='else if ($X) { $$$ }' lang=java",
    ],
)
def test_a_pattern_that_means_nothing_is_an_error(tree: Open, text: str):
    workspace = tree(a_py="f(1)\n", b_rs="fn f() {}\n", C_java="class C {}\n")
    with pytest.raises(QueryError, match="means nothing"):
        workspace.q(text)


def test_words_are_code_where_any_words_are(tree: Open):
    workspace = tree(a_py="f(1)\n", b_sh="ls foo\n", c_css="a b {}\n")
    with pytest.raises(QueryError, match=r"as in python: .* at character 15 "):
        workspace.q("pattern='export { $A } form $B'")
    assert places(workspace.q("pattern='ls $X'")) == ["b.sh:1:1"]
    assert places(workspace.q("pattern='rm $X' lang=shell")) == []
    assert places(workspace.q("pattern='ls $X' not='ls foo'")) == []


def test_alternatives_of_several_languages(tree: Open):
    workspace = tree(a_py="print(1)\n", b_rs="fn f() { println!(1); }\n")
    assert places(workspace.q("any='print($X)','println!($$$)'")) == ["a.py:1:1", "b.rs:1:10"]
    assert places(workspace.q("pattern='def $F($$$)' or pattern='impl $T'")) == []


def test_an_error_says_where_a_pattern_ends(tree: Open):
    # YAML and prose take any words for text: that is no reading of code.
    workspace = tree(a_py="f(1)\n", b_md="---\ntitle: x\n---\n\n```json\n{}\n```\n", c_yaml="a: b\n")
    for pattern, place in (("def (", 5), ("(", 1), ("f($X", 2), ("a b c", 3), ("x = = 3", 5), ("f(1))", 5)):
        with pytest.raises(QueryError, match=f"means nothing .* at character {place} ") as raised:
            workspace.q(f"pattern='{pattern}'")
        line, caret, *_ = raised.value.details
        assert (line.strip(), caret.index("^") - 2) == (pattern, place - 1)


def test_a_pattern_that_is_read_in_part_says_so(tree: Open):
    workspace = tree(a_rs="struct P { a: u8, b: u16 }\n")
    answer = workspace.q("pattern='$N: $T'")
    assert places(answer) == ["a.rs:1:12", "a.rs:1:19"]
    assert [event.category for event in answer.degraded] == ["read_in_part"]
    with pytest.raises(QueryError, match="means nothing in rust"):
        tree(a_rs="fn f() {}\n").q("pattern='$N: $T'")


def test_a_language_without_a_grammar_is_left_out(tree: Open):
    # The matcher panics on a language that it does not know.
    workspace = tree(a_toml="a = 1\n", b_sql="CREATE FUNCTION f() RETURNS int;\n", c_py="def f(): pass\n")
    for text in (
        "entity=function nthChild=1",
        "entity=function nthChild=1 nthChild.ofRule='kind=identifier'",
        "pattern='$X'",
    ):
        assert all(place.startswith("c.py") for place in places(workspace.q(text)))


def test_what_matches_everything_says_so(tree: Open):
    workspace = tree(a_py="f(1)\n")
    for pattern in ("$X", "$_"):
        for files in ("", " lang=python", " in=a.py"):
            answer = workspace.q(f"pattern='{pattern}'{files}")
            assert [event.category for event in answer.degraded] == ["matches_everything"]
    assert workspace.q("pattern='$X' nthChild=1 inside='f($$$)'").degraded == ()


def test_code_comes_before_data_and_prose(tree: Open):
    page = "---\ntitle: x\n---\n\n```python\nz = 1\n```\n"
    workspace = tree(
        a_md=page, b_toml="a = 1\n", c_yaml="k: v\n", d_json='{"a": 1}\n', m_ts="a: 1;\n", n_py="b: c\n", o_py="d: e\n",
        tests__p_py="f: g\n",
    )  # fmt: skip
    assert [p.partition(":")[0] for p in places(workspace.q("pattern='$A: $B'"))] == [
        "n.py", "o.py", "m.ts", "tests/p.py", "a.md", "c.yaml",
    ]  # fmt: skip
    modules = [p.partition(":")[0] for p in places(workspace.q("entity=module"))]
    assert modules[:4] == ["n.py", "o.py", "m.ts", "tests/p.py"]
    assert set(modules[4:]) == {"a.md", "b.toml", "c.yaml", "d.json"}


def test_matches_of_a_pattern_lead_to_their_definitions(tree: Open):
    source = (
        "class K:\n    @property\n    def p(self): return low(1)\n    def q(self): return self.p\n"
        "def low(x):\n    raise ValueError(x)\ndef top():\n    return low(2), K().q()\nlow(3)\n"
    )
    workspace = tree(a_py=source)
    answer = workspace.q("pattern='return $X' expand=callers")
    assert messages(answer, "expand.callers") == ["top → K.q"]
    assert messages(workspace.q("pattern='def low($X): $$$' expand=callers"), "expand.callers") == [
        "K.p → low", "top → low", "a.py → low",
    ]  # fmt: skip
    assert messages(workspace.q("pattern='raise $X' expand=raises,scope"), "expand.raises") == ["low raises ValueError"]
    assert messages(workspace.q("pattern='low($X)' fields=def,callees"), "expand.callees")[0] == "K.p → low"
    assert places(workspace.q("pattern='low($X)' decorated_by=property")) == ["a.py:3:25"]
    assert places(workspace.q("pattern='low($X)' decorator_count_max=0")) == ["a.py:8:12"]
    assert (
        messages(workspace.q("pattern='low(3)' expand=callers,raises,scope,bytecode_surface"), "expand.callers") == []
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("entity=function in=scr", "in=scr: no file is below it (did you mean 'src'?)"),
        ("entity=function (in=scr or in=src)", "in=scr: no file is below it (did you mean 'src'?)"),
        ("entity=function globs='*.go'", "globs=*.go: no file fits it"),
        ("entity=function exclude='tets/**'", "exclude=tets/**: no file fits it"),
        ("entity=function lang=go", "lang=go: no file here is of it"),
        ("entity=function lang=go,python", "lang=go: no file here is of it"),
        ("entity=function not name=halper", "name=halper: nothing here fits that (did you mean 'helper'?)"),
        (
            "entity=function not used_by=nosuch",
            "used_by=nosuch: no definition here is called that (did you mean 'nosu'?)",
        ),
        ("entity=function decorator_count_min=2", "decorator_count_min=2: none of the 2 matches fits that"),
        ("entity=function | filter(name = nosuch)", "filter(name = nosuch): none of the 2 matches fits that"),
        ("entity=method name=Store::sve", "name=Store::sve: nothing here fits that (did you mean 'Store.save'?)"),
        (
            "entity=function used_by=halper",
            "used_by=halper: no definition here is called that (did you mean 'helper'?)",
        ),
        ("entity=function name=halper", "name=halper: nothing here fits that (did you mean 'helper'?)"),
        ("entity=function name=~^zz", "name=~^zz: nothing here fits that"),
        ("entity=method name=Stor.save", "name=Stor.save: nothing here fits that (did you mean 'Store.save'?)"),
        ("entity=function decorated_by=cached", "decorated_by=cached: nothing here fits that (did you mean 'cache'?)"),
        ("entity=decorator name=cach", "name=cach: nothing here fits that (did you mean 'cache'?)"),
        ("entity=import name=functool", "name=functool: nothing here fits that (did you mean 'functools'?)"),
        ("entity=callsite name=sve", "name=sve: nothing here fits that (did you mean 'save'?)"),
        ("entity=function not in=scr", "in=scr: no file is below it (did you mean 'src'?)"),
        ("pattern='$X' decorated_by=no_such", "decorated_by=no_such: nothing here fits that"),
        ("entity=function raises=ValueEror", "raises=ValueEror: nothing here fits that"),
        ("entity=function raises=KeyEror", "raises=KeyEror: nothing here fits that (did you mean 'KeyError'?)"),
        ("entity=function used_by=~^halp", "used_by=~^halp: no definition here is called that"),
        ("entity=function inside='class Nosuch'", "no file here holds Nosuch, which inside= needs"),
        ("pattern='f($X)' $X=3", "$X=3: none of the 1 matches fits that"),
        ("entity=class defines=sav", "defines=sav: nothing here fits that (did you mean 'save'?)"),
        ("entity=function captures=nobody", "captures=nobody: nothing here fits that"),
        ("entity=module exports=nobody", "exports=nobody: nothing here fits that"),
        ("pattern='nowhere($X)'", "no file here holds nowhere, which pattern= needs"),
        ("entity=function has='nowhere($X)'", "no file here holds nowhere, which has= needs"),
        ("entity=function inside='class Store'", "no function fits, but 1 with entity=method"),
        ("entity=class name=helper", "no class fits, but 1 with entity=function"),
    ],
)
def test_a_value_that_nothing_fits_is_said(tree: Open, text: str, said: str):
    workspace = tree(
        src__a_py="import functools\nclass Store:\n    def save(self): ...\n@functools.cache\ndef helper(x): raise E\n",
        b_py="def other(): raise KeyError\n# no such thing\nnosu, uch = f(1)\n",
    )
    assert said in [event.message for event in workspace.q(text).degraded]


def test_what_is_there_is_not_said_to_be_missing(tree: Open):
    workspace = tree(src__a_py="class Store:\n    def save(self): f(1)\ndef helper(x): raise E\n")
    for text in ("entity=method in=src", "entity=method inside='class Store'", "entity=function raises=E",
                 "entity=function name=helper has='g'", "entity=function (name=helper or raises=E)"):  # fmt: skip
        assert [e for e in workspace.q(text).degraded if "helper" in e.message or "Store" in e.message] == []


# -- one scan, bounds, the same bytes --------------------------------------------------------------


def test_several_queries_parse_a_file_once(tree: Open, monkeypatch: pytest.MonkeyPatch):
    workspace = tree(a_py="f(1)\ng(2)\n", b_py="f(3)\n")
    parsed: list[str] = []

    def count(text: str, language: str) -> Any:
        parsed.append(text)
        return SgRoot(text, language)

    workspace.status()
    monkeypatch.setattr(documents, "SgRoot", count)
    plans = [
        make_plan(text)
        for text in ("pattern='f($X)'", "pattern='g($X)' or pattern='$A($B)'", "entity=callsite has='1'")
    ]
    with workspace.index.reading() as (reader, root):
        results = run_plans(reader, root, plans, {file.path: file for file in reader.files(root.id)})
    assert [result.total for result in results] == [2, 3, 1]
    assert sorted(parsed) == ["f(1)\ng(2)\n", "f(3)\n"]


@pytest.mark.parametrize(
    ("name", "source", "reason"),
    [
        ("long", "f(1)\nx = '" + "x" * 30_000 + "'\n", "a line over"),
        ("deep", "f(1)\nx = " + "(" * 3000 + ")" * 3000 + "\n", "nested over"),
        ("chain", "f(1)\nx = (1\n" + "+ f\n" * 9000 + ")\n", "nested over"),
        ("other", "f(1)\nx = (" + '("]",\n' * 3000 + "1" + ")" * 3001 + "\n", "nested over"),
        ("large", "f(1)\n" + "y = [1, 2]\n" * 110_000, "over 1024 KiB"),
    ],
)
def test_what_would_choke_the_matcher_is_left_out_and_counted(tree: Open, name: str, source: str, reason: str):
    workspace = tree(**{f"{name}_py": source, "ok_py": "f(1)\n"})
    answer = workspace.q("pattern='f($X)'")
    assert places(answer) == ["ok.py:1:1"]
    assert [reason in event.message for event in answer.degraded] == [True]


def test_two_workers_of_the_same_query_say_the_same(tree: Open):
    workspace = tree(**CHAIN, d_md="```python\nlow(1)\n```\n")
    text = "entity=function or pattern='low($X)' | sort(lines desc)"
    queries = (text, text, query.parse(text))
    first, *others = (msgspec.structs.replace(workspace.q(each), run=Run()) for each in queries)  # pyright: ignore[reportArgumentType]
    assert others == [first, first]


def test_queries_of_the_configuration(tree: Open, tmp_path: Path):
    workspace = tree(a_py="@old\ndef f(): pass\ndef g(): pass\n")
    (tmp_path / "root" / "cq.toml").write_text(
        "[queries]\nold = 'entity=function decorated_by=%{by=old}'\nall = 'entity=function'\n"
    )
    assert places(workspace.q("@old")) == ["a.py:2:1"]
    assert places(workspace.q("@all - @old")) == ["a.py:3:1"]
    assert places(workspace.q("@old(other)")) == []


# -- against the matcher itself --------------------------------------------------------------------

SOURCES = {
    "python": "class A(B):\n    x = 1\n    async def f(self, a=1):\n        if a:\n            await g(a, b)\n"
    "        return [h(a) for a in g(1)]\n@d\ndef g(*a): return a[0] == a[0] or g(a, a)\n",
    "typescript": "export class A extends B { x = 1; async f(a = 1) { if (a) { await g(a, b); }"
    " return g(1).map(a => h(a)); } }\n"
    "function g(...a) { return a[0] === a[0] || g(a, a); }\n",
    "rust": "impl A { async fn f(&self, a: u8) { if a { g(a, b).await; } return g(1).map(|a| h(a)); } }\n"
    "fn g(a: u8) -> bool { a == a || g(a, a) }\n",
}
END = {"stopBy": "end"}
RULES: list[tuple[str, dict[str, Any]]] = [
    ("pattern='g($A, $B)'", {"pattern": "g($A, $B)"}),
    ("pattern='g($A, $A)'", {"pattern": "g($A, $A)"}),
    ("pattern='g($$$)'", {"pattern": "g($$$)"}),
    ("pattern='$F($$$)' inside='return $X'", {"pattern": "$F($$$)", "inside": {"pattern": "return $X", **END}}),
    ("pattern='$F($$$)' has='a'", {"pattern": "$F($$$)", "has": {"pattern": "a", **END}}),
    ("pattern='$F($$$)' has='a' has.stopBy=neighbor", {"pattern": "$F($$$)", "has": {"pattern": "a"}}),
    ("pattern='$F($$$)' not='g($$$)'", {"all": [{"pattern": "$F($$$)"}, {"not": {"pattern": "g($$$)"}}]}),
    ("any='g($$$)','h($$$)'", {"any": [{"pattern": "g($$$)"}, {"pattern": "h($$$)"}]}),
    ("pattern='kind=identifier' nthChild=2", {"kind": "identifier", "nthChild": 2}),
    (
        "pattern='kind=identifier' (inside='return $X' or nthChild=1)",
        {"kind": "identifier", "any": [{"inside": {"pattern": "return $X", **END}}, {"nthChild": 1}]},
    ),
    ("pattern='g($A)' pattern.strictness=signature", {"pattern": {"context": "g($A)", "strictness": "signature"}}),
]  # fmt: skip


@pytest.mark.parametrize("language", SOURCES)
@pytest.mark.parametrize(("text", "rule"), RULES, ids=[text for text, _ in RULES])
def test_equal_to_a_rule_given_to_the_matcher(tree: Open, language: str, text: str, rule: dict[str, Any]):
    source = SOURCES[language]
    ending = {"python": "py", "typescript": "ts", "rust": "rs"}[language]
    answer = tree(**{f"a_{ending}": source}).q(QueryOptions(text, everything=True))
    found = sorted((f.location.start, f.location.end) for f in answer.sections[0].findings if f.location)
    nodes = SgRoot(source, language).root().find_all({"rule": rule})  # pyright: ignore[reportArgumentType]
    assert found == sorted((node.range().start.index, node.range().end.index) for node in nodes)


SNIPPETS = dict(re.findall(r"^```(\w+)\n(.*?)^```$", (TESTS / "cases" / "patterns.md").read_text(), re.M | re.S))
ENDINGS = {"python": "py", "typescript": "ts", "rust": "rs", "go": "go", "java": "java", "cpp": "cpp"}


@pytest.mark.parametrize("language", ENDINGS)
def test_generated_patterns_find_what_the_matcher_finds(tree: Open, language: str):
    source = SNIPPETS[ending := ENDINGS[language]]
    again = source.replace("1", "7").replace("x", "xs")
    workspace = tree(**{f"a_{ending}": source, f"b_{ending}": again})
    workspace.refresh()
    found = compare(workspace, language, make_patterns([source], language, 40), program=False)
    assert found.patterns == 40
    assert found.matches > 20
    assert [d for d in found.differences if not d.explained] == []


# How the matcher's own error recovery and grammar read these, ours did not.
@pytest.mark.parametrize(
    ("language", "pattern"),
    [
        ("rust", "impl $T for $S { $$$ }"), ("rust", "macro_rules! $M { $$$ }"), ("rust", "struct $N { $$$ }"),
        ("rust", "fn $F($$$A) { $$$B }"), ("rust", "$A: $B"), ("typescript", "import { $$$ } from $M"),
        ("typescript", "class $C { $$$ }"), ("python", "lambda $$$: $X"), ("python", "def $F($$$A)"),
        ("python", "class $C($$$B)"), ("python", "class $C: $$$"), ("go", "if $E != nil { $$$ }"),
        ("python", "try:\n    $$$A\nexcept $E:\n    $$$B\nelse:\n    $$$C"),
        ("python", "try:\n    $$$\nexcept $E:\n    $$$"),
        ("java", "class $C extends $B { $$$ }"), ("cpp", "$A->$B"), ("cpp", "class $C { $$$ }"),
    ],
)  # fmt: skip
def test_a_pattern_means_what_the_matcher_makes_of_it(tree: Open, language: str, pattern: str):
    source = SNIPPETS[ending := ENDINGS[language]]
    workspace = tree(**{f"a_{ending}": source})
    workspace.refresh()
    assert compare(workspace, language, [pattern], program=False).differences == ()


@pytest.mark.parametrize(
    ("file", "source", "pattern", "lines"),
    [
        (
            "a.ts",
            "switch (a) {\n  case 1: f(); g();\n  case 'x': return 3;\n  default:\n}",
            "case $X: $$$",
            [2, 3],
        ),
        ("a.ts", "const o = { default: 3 };\nswitch (a) {\n  default: h();\n}", "default: $$$", [3]),
        ("a.ts", "if (a) {\n  b();\n} else {\n  c();\n}", "else { $$$ }", [3]),
        ("a.js", "try {\n  f();\n} catch (e) {\n  g();\n}", "catch ($E) { $$$ }", [3]),
        ("a.py", "if a:\n    b()\nelif c:\n    d()\n    e()\n", "elif $X: $$$", [3]),
        ("A.java", "class C { void m() {\n  try { f(); }\n  finally { h(); }\n} }", "finally { $$$ }", [3]),
        ("a.cpp", "void m() {\n  try { f(); }\n  catch (E e) { h(); }\n}", "catch ($E $X) { $$$ }", [3]),
        ("a.rs", "fn m() {\n  if a { b(); }\n  else { c(); }\n}", "else { $$$ }", [3]),
        *(
            ("a.go", f"package p\nfunc f() {{\n{cases}\n}}\n", pattern, lines)
            for cases in (
                "select {\ncase v := <-c: g(v)\ncase <-c: h()\ncase c <- 1: i()\ndefault:\n}\n"
                "switch x.(type) {\ncase int: g()\n}\nswitch x {\ncase 1, 2: g()\ndefault: h()\n}",
            )
            for pattern, lines in (
                ("case <-$C: $$$", [5]),
                ("case $V := <-$C: $$$", [4]),
                ("case $C <- $V: $$$", [6]),
                ("case int: $$$", [10]),
                ("case $A, $B: $$$", [13]),
                ("default: $$$", [7, 14]),
            )
        ),
        ("A.java", "class C {\n  private int a = 1;\n  void m() { int b = 2; }\n}", "private $T $N = $V;", [2]),
        ("a.ts", "export { a } from \"x\";\nexport { b };\nexport * from 'y';", "export { $$$ } from $M", [1]),
        ("a.ts", "export { a } from \"x\";\nexport { b };\nexport * from 'y';", "export * from $M", [3]),
        ("a.ts", 'import a = require("x");\n', "import $A = require($M)", [1]),
    ],
)
def test_a_part_of_a_statement_is_found_as_what_it_is(
    tree: Open, file: str, source: str, pattern: str, lines: list[int]
):
    workspace = tree(**{file.replace(".", "_"): source})
    answer = workspace.q(f"pattern={pattern!r}")
    found = [f.location for f in answer.sections[0].findings if f.location]
    assert [workspace.text(place.path)[: place.start].count(b"\n") + 1 for place in found] == lines


def test_a_part_of_a_statement_may_be_pasted_with_the_end_of_its_line(tree: Open):
    workspace = tree(a_go="package p\nfunc f() {\n\tswitch x {\n\tcase 1:\n\t\treturn g(2)\n\t}\n}\n")
    answer = workspace.q("pattern='case 1:\n\t\treturn g($A)\n'")
    assert [f.location.start_line for f in answer.sections[0].findings if f.location] == [4]


def test_every_example_of_the_docs_is_taken(tree: Open, tmp_path: Path):
    page = (TESTS.parent / "docs" / "query.md").read_text()
    examples = [rule.example for rule in (*TOKENS.values(), METAVARIABLE)]
    cookbook = page.partition("## Cookbook")[2].partition("##")[0]
    examples += [line.replace("\\|", "|") for line in re.findall(r"\| `([^`]+)` \|$", cookbook, re.MULTILINE)]
    examples += re.findall(r"^cq q '([^@].*)'(?: --format \w+)?$", page, re.MULTILINE)
    assert len(examples) > 40
    workspace = tree(**CHAIN, d_rs="fn f() {}\n", e_ts="f()\n", f_json="{}\n")
    (workspace.root / "packages/app").mkdir(parents=True)
    (workspace.root / "packages/app/tsconfig.json").write_text("{}")  # what an example names
    for example in examples:
        workspace.q(example)
