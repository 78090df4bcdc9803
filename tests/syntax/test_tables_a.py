"""Go, Java, C, C++, C#, Kotlin, PHP: the marks of their pages in tests/cases, and what a mark cannot say."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from cq.languages.facts import embedding_text, extract_facts
from cq.syntax.chunks import full_source
from tests.support.checks import check_page_case, facts_of, symbol
from tests.support.invariants import check_document

pytestmark = pytest.mark.slow

PAGES = Path(__file__).parents[1] / "cases"
LANGUAGES = ("go", "java", "c", "cpp", "csharp", "kotlin", "php")
_BLOCK = re.compile(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_FENCE = re.compile(r"^```(\w+)( parameters)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CASES = [
    pytest.param(language, bool(parameters), snippet, id=f"{language}: {title}")
    for language in LANGUAGES
    for title, block in _BLOCK.findall((PAGES / f"{language}.md").read_text("utf-8"))
    for _, parameters, snippet in _FENCE.findall(block)
]


@pytest.mark.parametrize(("language", "parameters", "snippet"), CASES)
def test_case(language: str, parameters: bool, snippet: str):
    check_page_case(language, snippet, () if parameters else ("parameter", "type_parameter"))


@pytest.mark.parametrize(
    ("language", "source", "name", "signature", "modifiers"),
    [
        ("go", "package p\nfunc (s *T[K]) F(a int,\n\tb ...string,\n) (int, error) {}", "T.F",
         "func (s *T[K]) F(a int, b ...string) (int, error)", ()),
        ("go", "package p\ntype T[K comparable, V any] struct { a int }", "T",
         "type T[K comparable, V any] struct", ()),
        ("go", "package p\nconst (\n\tA = iota\n\tB\n)", "B", "const B", ()),
        ("go", "package p\nvar f = func(a int) int { return a }", "f", "var f = func(a int) int", ()),
        ("java", "class A {\n  @Override public static <T> T f(@X int a,\n    String... b) throws E { }\n}", "A.f",
         "public static <T> T f(@X int a, String... b) throws E", ("public", "static")),
        ("java", "sealed interface A<T> extends B permits C {}", "A", "sealed interface A<T> extends B permits C",
         ("sealed",)),
        ("java", "class A { private static final int X = 1, Y = 2; }", "A.Y", "private static final int Y = 2",
         ("private", "static", "final")),
        ("java", "record P(int x) implements Q { }", "P", "record P(int x) implements Q", ()),
        ("c", "static inline const char *f(int a,\n  void (*then)(int)) { }", "f",
         "static inline const char *f(int a, void (*then)(int))", ("static", "inline")),
        ("c", "typedef struct { int a; } T;", "T", "typedef struct T", ()),
        ("c", "#define MAX(a, b) ((a) > \\\n  (b))", "MAX", "#define MAX(a, b)", ()),
        ("c", "#define LIMIT 10", "LIMIT", "#define LIMIT 10", ()),
        ("c", "static int a = 1, *b[3];", "b", "static int *b[3]", ("static",)),
        ("cpp", "template <class T>\ntemplate <class U>\nint A<T>::f(U u) const noexcept { }", "A.f",
         "template <class T> template <class U> int A<T>::f(U u) const noexcept", ("const", "noexcept")),
        ("cpp", "struct A { virtual int f() const override = 0; };", "A.f", "virtual int f() const override = 0",
         ("virtual", "const", "override", "abstract")),
        ("cpp", "class A { protected: static constexpr int X = 3; };", "A.X", "static constexpr int X = 3",
         ("static", "constexpr", "protected")),
        ("cpp", "class API A final : public B<int>, private C { };", "A",
         "class API A final : public B<int>, private C", ()),
        ("csharp", "class A { [X] public async Task<R> F<R>(int a = 1) where R : struct { } }", "A.F",
         "public async Task<R> F<R>(int a = 1) where R : struct", ("public", "async")),
        ("csharp", "class A { public int P { get; set; } = 3; }", "A.P", "public int P { get; set; } = 3", ("public",)),
        ("csharp", "class A { public int P { get { return 1; } } }", "A.P", "public int P", ("public",)),
        ("csharp", "class A { protected internal int F() => 1; }", "A.F", "protected internal int F()",
         ("protected", "internal")),
        ("kotlin",
         "private suspend inline fun <reified T> List<T>.f(vararg a: Int, b: Int = 1): T where T : Any = g()", "f",
         "private suspend inline fun <reified T> List<T>.f(vararg a: Int, b: Int = 1): T where T : Any",
         ("private", "suspend", "inline", "reified")),
        ("kotlin", "@A data class P(val x: Int) : Q(x), R", "P", "data class P(val x: Int) : Q(x), R", ("data",)),
        ("kotlin", "val f = { x: Int -> x }", "f", "val f = { x: Int -> }", ()),
        ("kotlin", "class A {\n    var p: Int = 1\n        private set(value) { field = value }\n}", "A.p",
         "var p: Int = 1", ()),
        ("php", "<?php class A { #[X] final public static function f(?int $a = null, &...$b): ?static { } }", "A.f",
         "final public static function f(?int $a = null, &...$b): ?static", ("final", "public", "static")),
        ("php", "<?php class A { private readonly ?string $x, $y; }", "A.y", "private readonly ?string $y",
         ("private", "readonly")),
        ("php", "<?php $f = function (int $a) use ($b): int { };", "$f", "$f = function (int $a) use ($b): int", ()),
    ],
)  # fmt: skip
def test_heads(language: str, source: str, name: str, signature: str, modifiers: tuple[str, ...]):
    found = symbol(facts_of(language, source), name)
    assert (found.signature, found.modifiers) == (signature, modifiers)


@pytest.mark.parametrize(
    ("language", "source", "bases"),
    [
        (
            "go",
            "package p\ntype A struct {\n\tsync.Mutex\n\t*B\n\tC[int]\n\tname string\n}",
            ("sync.Mutex", "B", "C[int]"),
        ),
        ("go", "package p\ntype A interface {\n\tio.Reader\n\t~int | ~string\n\tF()\n}", ("io.Reader",)),
        ("java", "class A<T> extends B<T> implements C, d.E<T> {}", ("B<T>", "C", "d.E<T>")),
        ("java", "interface A extends B, C {}", ("B", "C")),
        ("cpp", "struct A : public B<int>, private virtual ns::C { };", ("B<int>", "ns::C")),
        ("cpp", "class API A : public B { };", ("B",)),
        ("cpp", "enum class A : unsigned { X };", ("unsigned",)),
        ("csharp", "class A<T> : B<T>, N.IC where T : D { }", ("B<T>", "N.IC")),
        ("csharp", "record A(int x) : B(x), IC;", ("B", "IC")),
        ("kotlin", "class A<T>(x: Int) : B<T>(x), C, D by x", ("B<T>", "C", "D")),
        ("php", "<?php class A extends B implements C, \\N\\D { use T; }", ("B", "C", "\\N\\D", "T")),
    ],
)
def test_bases(language: str, source: str, bases: tuple[str, ...]):
    assert symbol(facts_of(language, source), "A").bases == bases


@pytest.mark.parametrize(
    ("language", "source", "name", "doc"),
    [
        ("go", "package p\n\n// other\n\n// F does\n// this.\nfunc F() {}", "F", "F does\nthis."),
        ("go", "package p\nconst (\n\t// A first.\n\tA = 1\n\tB = 2 // not B's\n\tC = 3\n)", "A", "A first."),
        ("go", "package p\nconst (\n\tB = 2 // not C's\n\tC = 3\n)", "C", ""),
        ("java", "/** A class.\n * Two lines. */\n@X\nclass A {}", "A", "A class.\nTwo lines."),
        ("java", "// no doc\nclass A {}", "A", ""),
        ("c", "/* Adds. */\nint f(void) { }", "f", "Adds."),
        ("c", "#ifdef X\n// Deep.\nint f(void) { }\n#endif", "f", "Deep."),
        ("cpp", "/// Adds.\ntemplate <class T>\nvoid f(T t) { }", "f", "Adds."),
        ("cpp", "class A {\n  /** Gets. */\n  int get();\n};", "A.get", "Gets."),
        ("csharp",
         '/// <summary>\n/// Finds <see cref="T:B"/>.\n/// </summary>\n'
         '/// <param name="a">what</param>\n[X]\nclass A { }',
         "A", "Finds B.\na: what"),
        ("kotlin", "/** Sells. */\n@X\nclass A", "A", "Sells."),
        ("php", "<?php\n/** Sells. */\n#[X]\nclass A { }", "A", "Sells."),
    ],
)  # fmt: skip
def test_docs(language: str, source: str, name: str, doc: str):
    assert symbol(facts_of(language, source), name).doc == doc


@pytest.mark.parametrize(
    ("language", "source", "decorators"),
    [
        ("java", '@X\n@Y(a = "b")\npublic class A {}', ("X", 'Y(a = "b")')),
        ("java", "public @X class A {}", ("X",)),
        ("c", "__attribute__((pure)) int A(void);", ("pure",)),
        ("cpp", "[[nodiscard]] int A();", ("nodiscard",)),
        ("csharp", "[X, Y(1, 2)]\n[Z]\nclass A { }", ("X", "Y(1, 2)", "Z")),
        ("kotlin", '@X\n@Y("b")\nclass A', ("X", 'Y("b")')),
        ("php", "<?php #[X, Y(1, 2)]\n#[Z]\nclass A { }", ("X", "Y(1, 2)", "Z")),
    ],
)
def test_decorators(language: str, source: str, decorators: tuple[str, ...]):
    found = symbol(facts_of(language, source), "A")
    assert found.decorators == decorators
    assert not found.signature.startswith(("@", "[", "#", "__"))


@pytest.mark.parametrize(
    ("language", "source", "roles"),
    [
        ("go", 'package p\nimport f "fmt"\nfunc F(a T) { f.Print(a.b); goto x }',
         ["f import", "T type", "f reference", "Print call", "a reference", "b attribute", "x label"]),
        ("java", "import a.B;\n@C class D extends E { int f = g.h(i.j); }",
         ["a import", "B import", "C decorator", "E type", "g reference", "h call", "i reference", "j attribute"]),
        ("c", "T f(U *a) { return g(a->b); }", ["T type", "U type", "g call", "a reference", "b attribute"]),
        ("cpp", "using std::x; T n::f() { return g<U>(a.b); }",
         ["std import", "x import", "T type", "n reference", "g call", "U type", "a reference", "b attribute"]),
        ("csharp", "using A.B; [C] class D : E { F f = new G(h.I); }",
         ["A import", "B import", "C decorator", "E type", "F type", "G call", "h reference", "I attribute"]),
        ("kotlin", "import a.B\n@C class D : E() { val f: G = h.i(j.k, true) }",
         ["a import", "B import", "C decorator", "E call", "G type", "h reference", "i call", "j reference",
         "k attribute"]),
        ("php", "<?php use A\\B; #[C] class D extends E { function f(G $g) { h($g->i, J::K, L::$m, n: 1); } }",
         ["A import", "B import", "C decorator", "E type", "G type", "h call", "$g reference", "i attribute",
         "J reference",
          "K attribute", "L reference", "m attribute", "n keyword"]),
    ],
)  # fmt: skip
def test_references(language: str, source: str, roles: list[str]):
    assert [f"{r.name} {r.role}" for r in facts_of(language, source).references] == roles


@pytest.mark.parametrize(
    ("language", "source", "callers"),
    [
        ("go", "package p\nvar a = f()\nfunc (t T) M() { g(); func() { h() }() }", {"f": "", "g": "T.M", "h": "T.M"}),
        ("java", "class A { int a = f(); static { g(); } void m() { h(); } }", {"f": "A", "g": "A", "h": "A.m"}),
        ("c", "int a = f(); void m(void) { g(); }", {"f": "", "g": "m"}),
        ("cpp", "A::A() : x(f()) { auto l = [] { g(); }; h(); }", {"f": "A.A", "g": "A.A.l", "h": "A.A"}),
        ("csharp", "class A { int P { get { return f(); } } int Q => g(); int a = h(); }",
         {"f": "A.P", "g": "A.Q", "h": "A"}),
        ("kotlin", "class A(x: Int = f()) {\n    val p: Int\n        get() = g()\n    val q = h()\n}",
         {"f": "A", "g": "A.p", "h": "A"}),
        ("php", "<?php f(); class A { function m($x = 1) { g(); $l = fn() => h(); } }",
         {"f": "", "g": "A.m", "h": "A.m.$l"}),
    ],
)  # fmt: skip
def test_callers(language: str, source: str, callers: dict[str, str]):
    facts = facts_of(language, source)
    names = ["", *(s.qualified_name for s in facts.symbols)]
    assert {call.name: names[call.scope + 1] for call in facts.calls if call.name in callers} == callers


@pytest.mark.parametrize(
    ("language", "source", "receivers"),
    [
        ("go", "package p\nfunc f() { a.b().c[0].d(1); g[int](2) }", [("b", "a"), ("d", "a.b().c[0]"), ("g", "")]),
        ("java", "class A { { a.b().c(); a.<T>d(); e(); } }", [("b", "a"), ("c", "a.b()"), ("d", "a"), ("e", "")]),
        ("c", "void f() { a->b.c(); (*d)(); }", [("c", "a->b"), ("d", "")]),
        ("cpp", "void f() { a::b::c(); d->e<int>(); ::g(); }", [("c", "a::b"), ("e", "d"), ("g", "")]),
        ("csharp", "a?.B(1).C<int>(2);", [("B", "a"), ("C", "a?.B(1)")]),
        ("kotlin", "val x = a?.b { 1 }.c(2) { 3 }", [("b", "a"), ("c", "a?.b { 1 }")]),
        ("php", "<?php $a->b()?->c(); A::d(); \\N\\e(); $f();",
         [("b", "$a"), ("c", "$a->b()"), ("d", "A"), ("e", "\\N"), ("$f", "")]),
    ],
)  # fmt: skip
def test_receivers(language: str, source: str, receivers: list[tuple[str, str]]):
    calls = sorted(facts_of(language, source).calls, key=lambda call: call.name_start)
    assert [(call.name, call.receiver) for call in calls] == receivers


def test_a_keyword_argument_is_counted_apart():
    sources = {"csharp": "F(1, size: 2);", "kotlin": "val x = f(1, size = 2)", "php": "<?php f(1, size: 2);"}
    for language, source in sources.items():
        (call,) = facts_of(language, source).calls
        assert (call.arg_count, call.keywords, [a.name for a in call.args]) == (1, ("size",), ["", "size"])


@pytest.mark.parametrize(
    ("language", "source", "chunks"),
    [
        ("go", """
            // Package p.
            package p

            import "fmt"

            // F prints.
            func F() { fmt.Print() }

            const (
                A = 1
                B = 2
            )
            """, ["package p", "import import:fmt", "function F", "constant A", "constant B"]),
        ("java", """
            import a.B;

            /** A. */
            @X
            class A {
                int f;
                void m() { }
            }
            """, ["import import:a", "class A", "class A > method m"]),
        ("c", """
            #include <a.h>
            #ifndef H
            #define H
            /* f. */
            int f(void);
            struct s { int a; };
            #endif
            """, ["import import:a.h", "macro H", "function f", "struct s"]),
        ("cpp", """
            namespace n {
            class A {
            public:
                void m() { }
                int x;
            };
            }
            template <class T>
            void f(T t) { }
            """, ["namespace n", "namespace n > class A", "class A > method m", "function f"]),
        ("csharp", """
            using A;
            namespace N
            {
                class B { int P => 1; int Q { get; } }
            }
            """, ["import import:A", "namespace N", "namespace N > class B", "class B > property P"]),
        ("kotlin", """
            import a.B
            class A {
                val p = 1
                fun m() {}
            }
            fun f() = 1
            """, ["import import:a", "class A", "class A > method m", "function f"]),
        ("php", """
            <?php
            use A\\B;
            $x = 1;
            run();
            if ($x) { function f() { } }
            class C { public $p; function m() { } }
            """, ["statement <?php", "import import:A", "variable $x", "expression run();",
                  "control if ($x) { function f() { } }", "if ($x) { function f() { } } > function f", "class C",
                  "class C > method m"]),
    ],
)  # fmt: skip
def test_chunks(language: str, source: str, chunks: list[str]):
    facts = facts_of(language, source)

    def path(index: int) -> str:
        chunk = facts.chunks[index]
        own = f"{chunk.kind} {chunk.name}"
        if chunk.parent < 0:
            return own
        parent = facts.chunks[chunk.parent]
        return f"{parent.name if parent.symbol < 0 else f'{parent.kind} {parent.name}'} > {own}"

    assert [path(index) for index in range(1, len(facts.chunks))] == chunks


def test_a_class_is_embedded_with_its_methods_collapsed():
    text = b"class A {\n    int f;\n    /** Runs. */\n    void m(int a) { go(a); }\n}\n"
    facts = extract_facts(text, "java")
    assert full_source(text, facts.chunks[1]) == text.decode().rstrip()
    assert embedding_text(text, facts, 1) == "class A {\n    int f;\n    void m(int a);\n}"


def test_names_of_one_statement_share_its_chunk():
    facts = facts_of("c", "static int a = 1, *b;\nint c;\n")
    assert [(s.name, s.chunk, (s.start, s.end)) for s in facts.symbols] == [
        ("a", 1, (0, 21)), ("b", 1, (0, 21)), ("c", 2, (22, 28)),
    ]  # fmt: skip


def test_a_php_variable_is_defined_once_in_each_function():
    facts = facts_of("php", "<?php $a = 1; $a = 2; function f($b) { $a = 3; $b = 4; $a = 5; }")
    assert [s.qualified_name for s in facts.symbols] == ["$a", "f", "f.$b", "f.$a"]
    assert [f"{r.name} {r.role}" for r in facts.references] == ["$a assignment", "$b assignment", "$a assignment"]


def test_an_ambiguous_declaration_in_a_function_is_a_variable():
    facts = facts_of("cpp", "Store make(Shelf); void f() { Store store(shelf); }")
    assert [(s.kind, s.qualified_name) for s in facts.symbols] == [
        ("function", "make"), ("function", "f"), ("variable", "f.store"),
    ]  # fmt: skip


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("ending", ["\r\n", "\n"])
def test_line_ends_and_wide_characters(language: str, ending: str):
    sources = {
        "go": "package p\n// é\nfunc Größe() { x(\"ü\") }\n", "java": "// é\nclass A { void größe() { x(\"ü\"); } }\n",
        "c": "// é\nvoid groesse(void) { x(\"ü\"); }\n", "cpp": "// é\nvoid groesse() { x(\"ü\"); }\n",
        "csharp": "// é\nclass A { void Größe() { x(\"ü\"); } }\n", "kotlin": "// é\nfun größe() { x(\"ü\") }\n",
        "php": "<?php\n// é\nfunction größe() { x(\"ü\"); }\n",
    }  # fmt: skip
    text = sources[language].replace("\n", ending).encode()
    facts = check_document(text, language)
    function = next(s for s in facts.symbols if s.kind in ("function", "method"))
    assert text[function.name_start : function.name_end].decode() == function.name
    assert [(call.name, call.args[0].text) for call in facts.calls] == [("x", '"ü"')]
    assert facts.problems == ()


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("go", b"package a\nfunc f(){ x" + b".a()" * 8000 + b"}"),
        ("go", b"package a\nvar " + b",".join(b"a%d" % n for n in range(8000)) + b" int"),
        ("java", b"class A { int " + b",".join(b"a%d" % n for n in range(8000)) + b"; }"),
        ("java", b"class A { void f() { x" + b".a()" * 8000 + b"; } }"),
        ("java", b"@A(" * 3000 + b"class B {}"),
        ("c", b"int " + b"*" * 20000 + b"a;"),
        ("c", b"void f() { x" + b"->a()" * 8000 + b"; }"),
        ("cpp", b"template <class T> " * 3000 + b"class A {};"),
        ("cpp", b"a::" * 10000 + b"b() {}"),
        ("cpp", b"class AAAA " * 3000),
        ("csharp", b"class A { void f() { x" + b".a()" * 8000 + b"; } }"),
        ("kotlin", b"fun f() { x" + b".a()" * 8000 + b" }"),
        ("kotlin", b"val (" + b",".join(b"a%d" % n for n in range(8000)) + b") = x"),
        ("php", b"<?php $x" + b"->a()" * 8000 + b";"),
        ("php", b"<?php " + b"$a = function(private $x) {" * 3000),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_hostile_code_costs_no_more_than_its_size(language: str, source: bytes):
    started = time.process_time()
    extract_facts(source, language)
    # A hundred times what it takes; the square of the length would be minutes.
    assert time.process_time() - started < 30


@pytest.mark.parametrize("end", ["@B", "@", "@B(x)", "@a.b", "@`x", "/* c */@B", "@@B", "@a@B//x", "@B*/"])
def test_a_text_that_stops_in_an_annotation_comes_to_an_end(end: str):
    for text in (f"val a = 1\n{end}", f"class A {{\n  val a = 1\n  {end}"):
        check_document(text.encode(), "kotlin")
