"""Ruby, Shell, SQL, Scala, Swift, Lua, Elixir, Haskell, Zig, Julia, data, markup: the marks of their pages, and what
none can say."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from cq.languages.facts import embedding_text, extract_facts
from cq.model.source import Segment
from tests.support.checks import check_page_case, facts_of, symbol
from tests.support.invariants import check_document

pytestmark = pytest.mark.slow

PAGES = Path(__file__).parents[1] / "cases"
_BLOCK = re.compile(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_FENCE = re.compile(r"^(`{3,})(\w+)( parameters)?\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
CASES = [
    pytest.param({"sh": "shell"}.get(language, language), bool(parameters), snippet, id=f"{page}: {title}")
    for page in (
        "ruby",
        "shell",
        "sql",
        "scala",
        "swift",
        "lua",
        "elixir",
        "haskell",
        "zig",
        "julia",
        "data",
        "markdown",
    )
    # A page about Markdown holds headings that are none of its own.
    for title, block in _BLOCK.findall(
        re.sub(r"(?m)^(#+ )(?=.*\n# *\^)", "\0\\1", (PAGES / f"{page}.md").read_text("utf-8"))
    )
    for _, language, parameters, snippet in _FENCE.findall(block.replace("\0", ""))
]


@pytest.mark.parametrize(("language", "parameters", "snippet"), CASES)
def test_case(language: str, parameters: bool, snippet: str):
    check_page_case(language, snippet, () if parameters else ("parameter",))


@pytest.mark.parametrize(
    ("language", "source", "name", "signature", "modifiers"),
    [
        ("ruby", "class A\n  def f(a,\n    b: 1)\n    a\n  end\nend", "A.f", "def f(a, b: 1)", ()),
        ("ruby", "class A\n  # about\n  # the body\n  def self.f = 1\nend", "A.f", "def self.f", ("static",)),
        ("ruby", "class A\n  class << self\n    private\n    def f; end\n  end\nend", "A.f", "def f",
         ("static", "private")),
        ("ruby", "class A < B\n  # long\n\n  # comment\n  x\nend", "A", "class A < B", ()),
        ("ruby", "class A\n  attr_reader :f\nend", "A.f", "attr_reader :f", ("readonly",)),
        ("shell", "function f() {\n  :\n}", "f", "function f()", ()),
        ("shell", "declare -rx A=1", "A", "declare -rx A=1", ("readonly", "export")),
        ("sql", "CREATE TABLE t (\n  a int\n);", "t", "CREATE TABLE t", ()),
        ("sql", "CREATE FUNCTION f(a int,\n  b text) RETURNS int AS $$ select 1; $$;", "f",
         "CREATE FUNCTION f(a int, b text) RETURNS int", ()),
        ("scala", "class A {\n  private[p] final override def f[T](a: Int = 1)(b: T): Int = 2\n}", "A.f",
         "private[p] final override def f[T](a: Int = 1)(b: T): Int", ("private", "final", "override")),
        ("scala", "case class A(x: Int)", "A", "case class A(x: Int)", ("case",)),
        ("swift", "struct A {\n  public static func f<T>(_ a: T,\n  b: Int = 1) async throws -> T where T: X { a }\n}",
         "A.f", "public static func f<T>(_ a: T, b: Int = 1) async throws -> T where T: X",
         ("public", "static", "async", "throws")),
        ("swift", "class A { private(set) var f: Int { 1 } }", "A.f", "private(set) var f: Int", ("var",)),
        ("lua", "local f = function(a,\n  b) end", "f", "local f = function(a, b)", ("local",)),
        ("lua", "function M:f(a) end", "M.f", "function M:f(a)", ()),
        ("elixir", "defmodule A do\n  defp f(a) when a do\n    a\n  end\nend", "A.f", "defp f(a) when a",
         ("private",)),
        ("haskell", "f :: Int ->\n  Int\nf 0 = 1\nf x = x", "f", "f :: Int -> Int", ()),
        ("haskell", "class Eq a => A a where\n  -- | about\n  f :: a", "A", "class Eq a => A a", ()),
        ("zig", "pub inline fn f(a: u8) !void {}", "f", "pub inline fn f(a: u8) !void", ("pub", "inline")),
        ("zig", "const A = packed struct(u8) { b: u8 };", "A", "const A = packed struct(u8)", ()),
        ("julia", "function f(a::Int,\n  b=1)::T where T\n  a\nend", "f", "function f(a::Int, b=1)::T where T", ()),
        ("julia", "mutable struct A <: B\nend", "A", "mutable struct A <: B", ("mutable",)),
        ("json", '{"a": {"b": 1}}', "a.b", '"b": 1', ()),
        ("toml", "[a.b]\nc = 1", "a.b", "[a.b]", ()),
        ("markdown", "Title\n=====\n\ntext", "Title", "Title", ()),
    ],
)  # fmt: skip
def test_heads(language: str, source: str, name: str, signature: str, modifiers: tuple[str, ...]):
    found = symbol(facts_of(language, source), name)
    assert (found.signature, found.modifiers) == (signature, modifiers)


@pytest.mark.parametrize(
    ("language", "source", "bases"),
    [
        ("ruby", "class A < B::C\n  include D\n  extend E, F::G\nend", ("B::C", "D", "E", "F::G")),
        ("scala", "class A(x: Int) extends B[Int](x) with C with d.E", ("B[Int]", "C", "d.E")),
        ("swift", "class A: B<Int>, C.D {}", ("B<Int>", "C.D")),
        ("swift", "protocol A: B, C {}", ("B", "C")),
    ],
)
def test_bases(language: str, source: str, bases: tuple[str, ...]):
    assert symbol(facts_of(language, source), "A").bases == bases


@pytest.mark.parametrize(
    ("language", "source", "name", "doc"),
    [
        ("ruby", "# other\n\n# Sells.\n# @param a [Integer]\ndef f(a); end", "f", "Sells.\n@param a [Integer]"),
        ("ruby", "# frozen_string_literal: true\nclass A; end", "A", ""),
        ("ruby", "=begin\nSells.\n=end\nclass A; end", "A", "Sells."),
        ("shell", "#!/bin/sh\n# Greets.\n# Twice.\nf() { :; }", "f", "Greets.\nTwice."),
        ("sql", "-- Users.\nCREATE TABLE t (a int);", "t", "Users."),
        ("sql", "/* Adds. */\nCREATE FUNCTION f() RETURNS int AS $$ x $$;", "f", "Adds."),
        ("scala", "/** Sells.\n  * Two lines. */\n@x class A", "A", "Sells.\nTwo lines."),
        ("scala", "// no doc\nclass A", "A", ""),
        ("swift", "/// Sells.\n/// Twice.\n@objc class A {}", "A", "Sells.\nTwice."),
        ("lua", "--- Opens.\n-- @param a\nfunction M.f(a) end", "M.f", "Opens.\n@param a"),
        ("elixir", 'defmodule A do\n  @moduledoc """\n  Opens.\n  """\nend', "A", "Opens."),
        ("elixir", 'defmodule A do\n  @doc "Opens."\n  @spec f(t) :: t\n  def f(a), do: a\nend', "A.f", "Opens."),
        ("haskell", "-- | Opens.\n-- Twice.\nf :: Int\nf = 1", "f", "Opens.\nTwice."),
        ("haskell", "{-| Opens. -}\ndata A = A", "A", "Opens."),
        ("zig", "/// Opens.\n/// Twice.\npub fn f() void {}", "f", "Opens.\nTwice."),
        ("julia", '"""\n    f()\n\nOpens.\n"""\nfunction f() end', "f", "f()\n\nOpens."),
        ("lua", "--[[ Opens.\n  Twice. ]]\nlocal function f() end", "f", "Opens.\nTwice."),
        ("yaml", "# About a.\na: 1", "a", "About a."),
        ("toml", "[x]\n\n# About a.\n[a]\nb = 1", "a", "About a."),
        ("css", "/* Turns. */\n@keyframes a { from { top: 0 } }", "a", "Turns."),
    ],
)
def test_docs(language: str, source: str, name: str, doc: str):
    assert symbol(facts_of(language, source), name).doc == doc


@pytest.mark.parametrize(
    ("language", "source", "decorators"),
    [
        ("scala", '@x @deprecated("y")\nsealed class A', ("x", 'deprecated("y")')),
        ("swift", "@available(iOS 13, *)\n@objc public class A {}", ("available(iOS 13, *)", "objc")),
        ("swift", "public @objc class A {}", ("objc",)),
    ],
)
def test_decorators(language: str, source: str, decorators: tuple[str, ...]):
    found = symbol(facts_of(language, source), "A")
    assert found.decorators == decorators
    assert not found.signature.startswith("@")


@pytest.mark.parametrize(
    ("language", "source", "roles"),
    [
        ("ruby", "class A < B\n  def f(x) = g(x, @y, C::D)\nend",
         ["B type", "g call", "x reference", "@y reference", "C reference", "D reference"]),
        ("shell", 'f "$a" ${b}', ["f call", "a reference", "b reference"]),
        ("sql", "SELECT f(a) FROM b;", ["f call", "a reference", "b reference"]),
        ("sql", "CREATE PROCEDURE p() BEGIN SELECT f(a) FROM b; END;", ["f call", "a reference", "b reference"]),
        ("scala", "import a.B\nclass C extends D { val e: F = g.h(i.j, k = 1) }",
         ["a import", "B import", "D type", "F type", "g reference", "h call", "i reference", "j attribute",
          "k keyword"]),
        ("swift", "import A\nclass B: C { var d: E = f.g(h: i.j) }",
         ["A import", "C type", "E type", "f reference", "g call", "h keyword", "i reference", "j attribute"]),
        ("lua", 'local a = require("b")\nlocal c = a.d(e.f)',
         ["a import", "require call", "a reference", "d call", "e reference", "f attribute"]),
        ("css", ".a #b:hover { color: var(--c) }", ["a reference", "b reference", "--c reference"]),
        ("lua", "x = a.", ["a reference"]),
    ],
)  # fmt: skip
def test_references(language: str, source: str, roles: list[str]):
    assert [f"{r.name} {r.role}" for r in facts_of(language, source).references] == roles


@pytest.mark.parametrize(
    ("language", "source", "callers"),
    [
        ("ruby", "f()\nclass A\n  g()\n  def m\n    x.each { h() }\n  end\nend", {"f": "", "g": "A", "h": "A.m"}),
        ("shell", "f\nm() { g; n() { h; }; }", {"f": "", "g": "m", "h": "m.n"}),
        ("sql", "SELECT f(); CREATE VIEW v AS SELECT g(); CREATE PROCEDURE p() BEGIN CALL h(); END;",
         {"f": "", "g": "v", "h": "p"}),
        ("scala", "class A { val a = f(); def m() = { g() } }", {"f": "A", "g": "A.m"}),
        ("swift", "class A { var a = f(); var p: Int { g() }; func m() { h() } }", {"f": "A", "g": "A.p", "h": "A.m"}),
        ("lua", "f() function M.m() g() end local t = { n = function() h() end }", {"f": "", "g": "M.m", "h": "t.n"}),
    ],
)  # fmt: skip
def test_callers(language: str, source: str, callers: dict[str, str]):
    facts = facts_of(language, source)
    found = {
        c.name: facts.symbols[c.scope].qualified_name if c.scope >= 0 else "" for c in facts.calls if c.name in callers
    }
    assert found == callers


@pytest.mark.parametrize(
    ("language", "source", "receivers"),
    [
        ("ruby", "a&.b.c!(1)\nD::E.new\nF::g(2)", [("b", "a"), ("c!", "a&.b"), ("new", "D::E"), ("g", "F")]),
        ("sql", "SELECT a.b(1); CALL c.d;", [("b", "a"), ("d", "c")]),
        ("scala", "val x = a.b(1).c[Int](2)", [("b", "a"), ("c", "a.b(1)")]),
        ("swift", "let x = a?.b(1)!.c { 2 }", [("b", "a"), ("c", "a?.b(1)")]),
        ("lua", "a:b(1).c(2)", [("b", "a"), ("c", "a:b(1)")]),
    ],
)
def test_receivers(language: str, source: str, receivers: list[tuple[str, str]]):
    calls = sorted(facts_of(language, source).calls, key=lambda call: call.name_start)
    assert [(call.name, call.receiver) for call in calls] == receivers


@pytest.mark.parametrize(
    ("language", "source", "chunks"),
    [
        ("ruby", 'require "json"\n\n# A.\nclass A\n  X = 1\n  def m; end\nend\nrun(1)\nif x then y end',
         ["import import:json", "class A", "class A > method m", "expression run(1)", "control if x then y end"]),
        ("shell", "#!/bin/sh\nsource a.sh\nf() { :; }\nrun x | y\nfor i in 1; do z; done",
         ["comment #!/bin/sh", "import import:a.sh", "function f", "expression run x | y",
          "control for i in 1; do z; done"]),
        ("sql", "CREATE TABLE t (a int);\nSELECT 1;\nCREATE PROCEDURE p() BEGIN SELECT 1; END;\nGRANT x TO y;",
         ["table t", "statement SELECT 1", "procedure p", "statement GRANT x TO y"]),
        ("scala", "package p\nimport a.B\nclass A { def m() = 1 }\nobject A",
         ["package p", "import import:a", "class A", "class A > method m", "object A"]),
        ("swift", "import A\nclass B { var x = 1; var y: Int { 2 } }\nrun()",
         ["import import:A", "class B", "class B > property y", "expression run()"]),
        ("lua", 'local a = require("a")\nlocal t = { x = 1, f = function() end }\nfunction t.g() end\nrun()\nreturn t',
         ["import import:a", "variable t", "variable t > function f", "function g", "expression run()",
          "statement return t"]),
        ("json", '{\n  "a": 1,\n  "b": { "c": 2 },\n  "d": {\n    "e": {\n      "f": 3\n    }\n  }\n}',
         ["key a", "key b", "key d", "key d > key e"]),
        ("yaml", "a: 1\nb:\n  c:\n    d: 2\n", ["key a", "key b", "key b > key c"]),
        ("yaml", "- a: 1\n  b: 2\n- c: 3\n", ["key 0", "key 1"]),
        ("toml", "a = 1\n# about b\n[b]\nc = 2\n# about d\n[d]\n", ["key a", "key b", "key d"]),
        ("markdown", "intro\n\n# A\n\ntext\n\n## B\n\n- x\n\n# C\n",
         ["statement intro", "heading A", "heading A > heading B", "heading C"]),
        ("html", "<!-- c -->\n<div id=a><p id='b'></p></div>\n<p>x</p>\n",
         ["comment <!-- c -->", "key a", "expression <p>x</p>"]),
        ("vue", "<template><b/></template>\n<script>let x</script>",
         ["expression <template><b/></template>", "expression <script>let x</script>"]),
        ("css", '@import "a.css";\n:root { --x: 1 }\n@keyframes k { from { top: 0 } }\n@media print { a { b: c } }',
         ["import import:a.css", "expression :root { --x: 1 }", "key k", "control @media print { a { b: c } }"]),
    ],
)  # fmt: skip
def test_chunks(language: str, source: str, chunks: list[str]):
    facts = facts_of(language, source)
    names = [f"{chunk.kind} {chunk.name}" for chunk in facts.chunks]
    paths = [
        name if c.parent < 0 else f"{names[c.parent]} > {name}" for c, name in zip(facts.chunks, names, strict=True)
    ]
    assert paths[1:] == chunks


@pytest.mark.parametrize(
    ("language", "text", "collapsed"),
    [
        ("markdown", "# A\n\ntext\n\n## B\n\nmore\n", "# A\n\ntext\n\n## B"),
        ("ruby", "class A\n  def m(x)\n    x\n  end\nend\n", "class A\n  def m(x); end\nend"),
        ("yaml", "a:\n  b:\n    c: 1\n  d: 2\n", "a:\n  b: …\n  d: 2"),
        ("json", '{"a": {\n "b": [\n 1\n ],\n "c": 2\n}}', '{"a": {\n "b": …\n "c": 2\n}}'),
        ("lua", "t = {\n f = function(a) return a end,\n}\n", "t = {\n f = function(a) end,\n}"),
    ],
)
def test_children_collapse(language: str, text: str, collapsed: str):
    assert embedding_text(text.encode(), extract_facts(text.encode(), language), 1) == collapsed


def test_a_section_ends_at_the_next_heading_of_its_level():
    text = "# A\n\n### C\n\nc\n\n## B\n\nb\n\n# D\n"
    facts = facts_of("markdown", text)
    assert {s.qualified_name: text[s.start : s.end] for s in facts.symbols} == {
        "A": "# A\n\n### C\n\nc\n\n## B\n\nb",
        "A.C": "### C\n\nc",
        "A.B": "## B\n\nb",
        "D": "# D",
    }


def test_elements_with_an_id_and_custom_properties():
    found = facts_of("html", '<div id="main"><img src=x id=logo /><script id="s">let id = 1</script></div>')
    assert [(s.kind, s.name, s.signature) for s in found.symbols] == [
        ("key", "main", '<div id="main">'), ("key", "logo", "<img src=x id=logo />"),
    ]  # fmt: skip
    found = facts_of("css", '@import url("a.css");\n:root { --size: 1px; color: red }')
    assert [(s.kind, s.name) for s in found.symbols] == [("variable", "--size")]
    assert [(i.kind, i.module) for i in found.imports] == [("import", "a.css")]


def test_keys_are_read_to_a_depth_and_to_a_number():
    deep = facts_of("json", '{"k": ' * 10 + "1" + "}" * 10)
    assert [s.depth for s in deep.symbols] == [0, 1, 2, 3, 4, 5]
    many = extract_facts(b"".join(b"k%d: 1\n" % n for n in range(20_010)), "yaml")
    assert (len(many.symbols), many.symbols[-1].name) == (20_000, "k19999")


@pytest.mark.parametrize("dialect", ["a + b", "x := 1; y", "IF a THEN b(); END IF", "'; CREATE TABLE no (a int)'; x"])
def test_a_routine_hides_nothing_behind_it(dialect: str):
    facts = facts_of(
        "sql", f"CREATE FUNCTION f() RETURNS int AS $$ BEGIN {dialect}; END $$;\nCREATE TABLE t (a int);\n"
    )
    assert [s.qualified_name for s in facts.symbols] == ["f", "t", "t.a"]
    assert facts.problems == ()


def test_a_dump_is_read_without_its_rows():
    facts = facts_of("sql", "COPY t (a) FROM stdin;\n1\tCREATE TABLE no (x int);\n\\.\n\nCREATE TABLE t (a int);\n")
    assert [s.qualified_name for s in facts.symbols] == ["t", "t.a"]


@pytest.mark.parametrize(
    ("language", "inner"), [("sql", "\\i a.sql\nCREATE PROCEDURE p() BEGIN x(); END;\n"), ("markdown", "# A\n\ntext\n")]
)
def test_a_document_inside_another_reads_no_further(language: str, inner: str):
    text = f"# Page\n\n````x\n{inner}````\n\nCREATE TABLE t (a int); END;\n# Next\n".encode()
    start = text.index(inner.encode())
    segment = Segment("fence", language, ((start, start + len(inner)),))
    (facts,) = check_document(text, "markdown", [segment]).embedded
    (found,) = facts.symbols
    assert found.start >= start
    assert found.end <= segment.end
    assert [c.name for c in facts.calls] == (["x"] if language == "sql" else [])


@pytest.mark.parametrize(
    "language", ["ruby", "shell", "sql", "scala", "swift", "lua", "elixir", "haskell", "zig", "julia"]
)
@pytest.mark.parametrize("ending", ["\r\n", "\n"])
def test_line_ends_and_wide_characters(language: str, ending: str):
    sources = {
        "ruby": "# é\ndef größe\n  x(\"ü\")\nend\n", "shell": "# é\ngross() {\n  x \"ü\"\n}\n",
        "sql": "-- é\nCREATE VIEW gross AS SELECT x('ü');\n", "scala": "// é\ndef größe() = { x(\"ü\") }\n",
        "swift": "// é\nfunc größe() { x(\"ü\") }\n", "lua": "-- é\nfunction gross() x(\"ü\") end\n",
        "elixir": "# é\ndef gross(), do: x(\"ü\")\n", "haskell": "-- é\ngross = x \"ü\"\n",
        "zig": "// é\nfn gross() void { x(\"ü\"); }\n",
        "julia": "# é\nfunction größe()\n  x(\"ü\")\nend\n",
    }  # fmt: skip
    text = sources[language].replace("\n", ending).encode()
    facts = check_document(text, language)
    assert [text[s.name_start : s.name_end].decode() for s in facts.symbols] == [s.name for s in facts.symbols]
    assert [(call.name, call.args[0].text.strip("'\"")) for call in facts.calls] == [("x", "ü")]


@pytest.mark.parametrize(
    ("language", "source"),
    [
        # The YAML grammar ends the process at 254 levels.
        ("yaml", b"- " * 400),
        ("yaml", b"? " * 400),
        ("yaml", b"".join(b" " * level + b"a:\n" for level in range(400))),
        ("yaml", b"".join(b" " * level + b"-\n" for level in range(400))),
        ("yaml", b"- a: &x\n  -\t" + b"- " * 300),
        ("yaml", b"[" * 100_000),
        ("yaml", b"---\n" * 20_000),
        ("json", b"[" * 100_000),
        ("json", b'{"a":' * 50_000),
        ("toml", b"a = " + b"[" * 50_000),
    ],
    ids=lambda value: value if isinstance(value, str) else value[:8].decode().strip(),
)
def test_what_a_grammar_cannot_bear_is_a_problem(language: str, source: bytes):
    started = time.process_time()
    facts = check_document(source, language)
    assert [problem.code for problem in facts.problems] == ["parse"]
    assert time.process_time() - started < 10


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("yaml", b"".join(b" " * level + b"a:\n" for level in range(99))),
        ("yaml", b"a: " + b"- " * 90 + b"b\n" + b"-" * 5000),
        ("json", b'{"a": "' + b"[{" * 5000 + b'"}'),
        ("json", b"[" * 500 + b"]" * 500),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_only_looks_deep_is_read(language: str, source: bytes):
    assert "parse" not in [problem.code for problem in check_document(source, language).problems]


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("markdown", b"#" * 300_000),
        ("markdown", b"# a\n" * 10_000),
        ("markdown", b"> " * 20_000),
        ("markdown", b"".join(b"  " * level + b"- a\n" for level in range(400))),
        ("yaml", b"a: 1\n" * 30_000),
        ("json", b"[" + b'{"a": 1},' * 30_000 + b"1]"),
        ("toml", b"[[a]]\nb = 1\n" * 5_000),
        ("sql", b"CREATE PROCEDURE p AS x;\n" * 2_000),
        ("sql", b"CREATE PROCEDURE p AS " + b"x;" * 20_000),
        ("sql", b"$$ " * 20_000),
        ("sql", b"GRANT a TO b;\n" * 5_000),
        ("ruby", b"x" + b".a(1)" * 8_000),
        ("ruby", b"class A\n" + b"  # c\n" * 5_000 + b"  x\nend\n"),
        ("scala", b"val x = a" + b".b(1)" * 8_000),
        ("swift", b"let x = a" + b".b(1)" * 8_000),
        ("lua", b"x" + b":a(1)" * 8_000),
        ("lua", b"t = {" + b"a = {}," * 10_000 + b"}"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_hostile_text_costs_no_more_than_its_size(language: str, source: bytes):
    started = time.process_time()
    extract_facts(source, language)
    # A hundred times what it takes; the square of the length would be minutes.
    assert time.process_time() - started < 30
