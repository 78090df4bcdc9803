"""Rust: the marks of tests/cases/rust.md, and what a mark cannot say."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest

from cq.languages.facts import embedding_text, extract_facts
from cq.model.code import (
    Boolean,
    CallEnd,
    Code,
    Integer,
    Joined,
    MethodOf,
    Name,
    Operated,
    Text,
    Unwrapped,
)
from cq.model.facts import FileFacts, Symbol
from cq.syntax.chunks import full_source
from tests.support.fixture import Fixture, Mark, parse_fixture
from tests.support.invariants import check_document

PAGE = (Path(__file__).parents[1] / "cases" / "rust.md").read_text("utf-8")
CASES = re.findall(r"^## (.+?)\n.*?^```rust\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("snippet", [case[1] for case in CASES], ids=[case[0] for case in CASES])
def test_case(snippet: str):
    fixture = parse_fixture(snippet)
    (text,) = (source.encode() for source in fixture.files.values())
    facts = check_document(text, "rust")
    wrong = [f"{mark.label}: {fixture.text(mark)!r} is {said}" for mark, said in _read_marks(fixture, facts) if said]
    assert wrong == []


def test_there_are_enough_cases():
    assert len(CASES) >= 20
    assert len(PAGE.split("```rust")) == len(CASES) + 1


def _read_marks(fixture: Fixture, facts: FileFacts) -> list[tuple[Mark, str]]:
    """Every mark with what the facts say instead, "" where it is true."""
    return [(mark, _contradict(mark, facts)) for mark in fixture.marks]


def _contradict(mark: Mark, facts: FileFacts) -> str:
    what, _, wanted = mark.label.partition(" ")
    if what == "no":
        found = _describe(wanted, mark, facts)
        return ", ".join(found)
    found = _describe(what, mark, facts)
    return "" if wanted in found else ", ".join(found) or f"no {what}"


def _describe(what: str, mark: Mark, facts: FileFacts) -> list[str]:
    if what == "def":
        return [f"{s.kind} {s.qualified_name}" for s in facts.symbols if (s.name_start, s.name_end) == mark[1:3]]
    if what == "call":
        return [f"{c.kind} {c.callee}" for c in facts.calls if c.name_start == mark.start]
    if what == "ref":
        return [r.role for r in facts.references if (r.start, r.end) == mark[1:3]]
    if what == "flow":
        return [f"{f.kind} {f.target} = {f.value}" for f in facts.flows if f.start == mark.start]
    if what == "chunk":
        return [f"{c.kind} {c.name}" for c in facts.chunks[1:] if c.start == mark.start]
    if what == "import":
        made = [i for i in facts.imports if i.start == mark.start]
        parts = [" ".join([i.kind, i.module, *(f"{b.local}={b.imported}" for b in i.bindings)]) for i in made]
        return [" | ".join(parts)]
    raise AssertionError(f"unknown mark {mark.label!r}")


def facts_of(source: str) -> FileFacts:
    return check_document(dedent(source).lstrip("\n").encode(), "rust")


def symbol(facts: FileFacts, name: str, kind: str = "") -> Symbol:
    (found,) = (s for s in facts.symbols if s.qualified_name == name and kind in ("", s.kind))
    return found


def outline(facts: FileFacts) -> list[str]:
    return [f"{s.kind} {s.qualified_name}" for s in facts.symbols]


@pytest.mark.parametrize(
    ("source", "signature", "modifiers", "exported"),
    [
        ("fn f() {}", "fn f()", (), False),
        ("pub fn f<T>(a: T,\n  b: &str,\n) -> T\nwhere\n    T: Copy,\n{ a }",
         "pub fn f<T>(a: T, b: &str) -> T where T: Copy", ("pub",), True),
        ("pub(crate) async unsafe fn f() {}", "pub(crate) async unsafe fn f()",
         ("pub(crate)", "async", "unsafe"), False),
        ("pub(in crate::a) fn f() {}", "pub(in crate::a) fn f()", ("pub(in crate::a)",), False),
        ('extern "C" fn f(/* none */) {}', 'extern "C" fn f(/* none */)', ("extern",), False),
        ("pub const fn f() -> u8 { 1 }", "pub const fn f() -> u8", ("pub", "const"), True),
        ("pub struct f<T>(pub T, u8) where T: Copy;", "pub struct f<T>(pub T, u8) where T: Copy", ("pub",), True),
        ("pub struct f;", "pub struct f", ("pub",), True),
        ("pub(super) enum f { A }", "pub(super) enum f", ("pub(super)",), False),
        ("pub unsafe trait f: A + B {}", "pub unsafe trait f: A + B", ("pub", "unsafe"), True),
        ("unsafe impl<T> Send for f<T> {}", "unsafe impl<T> Send for f<T>", ("unsafe",), False),
        ("pub const f: u8 = 1 + 2;", "pub const f: u8 = 1 + 2", ("pub",), True),
        ("static mut f: u8 = 0;", "static mut f: u8 = 0", ("static", "mut"), False),
        ("pub static f: &str = \"" + "x" * 100 + "\";", "pub static f: &str", ("pub", "static"), True),
        ("pub type f<T> = Vec<T>;", "pub type f<T> = Vec<T>", ("pub",), True),
        ("macro_rules! f { () => {} }", "macro_rules! f", (), False),
        ("#[macro_export]\nmacro_rules! f { () => {} }", "macro_rules! f", (), True),
        ("pub macro f($x:expr) { $x }", "pub macro f($x:expr)", ("pub",), True),
        ("pub mod f;", "pub mod f", ("pub",), True),
    ],
)  # fmt: skip
def test_heads(source: str, signature: str, modifiers: tuple[str, ...], exported: bool):
    found = symbol(facts_of(source), "f")
    assert (found.signature, found.modifiers, found.exported) == (signature, modifiers, exported)


def test_bases():
    facts = facts_of("""
        trait Shape: Send + fmt::Debug + 'static + for<'a> Fn(&'a u8) {}
        impl Shape for Circle {}
        impl<T> From<Vec<T>> for Circle<T> {}
        impl !Sync for Circle {}
        impl Circle {}
    """)
    assert [s.bases for s in facts.symbols if s.depth == 0] == [
        ("Send", "fmt::Debug", "for<'a> Fn(&'a u8)"),
        ("Shape",),
        ("From<Vec<T>>",),
        (),
        (),
    ]


def test_the_names_of_impls():
    facts = facts_of("""
        impl a::b::Foo<T> {}
        impl T for &'a mut Foo {}
        impl T for Box<dyn Foo> {}
        impl dyn Foo {}
        impl T for (A, B) {}
        impl T for fn(u8) -> u8 {}
        impl T for u8 {}
        impl T for *const Foo {}
    """)
    assert [s.name for s in facts.symbols] == ["Foo", "Foo", "Box", "Foo", "(A, B)", "fn(u8) -> u8", "u8", "Foo"]


def test_methods_of_several_impls_of_one_type():
    facts = facts_of("""
        struct A;
        impl A { fn x(&self) {} }
        impl Clone for A { fn clone(&self) -> A { A } }
        impl Debug for A { fn fmt(&self) {} }
        fn x() {}
    """)
    assert [name for name in outline(facts) if "parameter" not in name] == [
        "struct A", "impl A", "method A.x", "impl A", "method A.clone", "impl A", "method A.fmt", "function x",
    ]  # fmt: skip
    assert [s.bases for s in facts.symbols if s.kind == "impl"] == [(), ("Clone",), ("Debug",)]


def test_documentation_and_decorators():
    facts = facts_of("""
        /// One.
        ///
        /// # Two
        ///     indented
        #[inline]
        #[must_use = "why"]
        fn lines() {}

        /**
         * Starred,
         * twice.
         */
        fn block() {}

        #[doc = "First."]
        /// Second.
        #[doc = r#"Third "quoted"."#]
        #[doc(hidden)]
        fn attributes() {}

        // Plain.
        fn none() {}

        /// Far away.

        fn apart() {}

        mod inside {
            //! Of the module,
            //! not of the function.
            fn first() {}
        }

        struct Fields {
            /// Of the field.
            #[serde(skip)]
            one: u8,
            two: u8, // not of this one
        }
        enum Variants {
            /// Of the variant.
            A,
        }
    """)
    assert symbol(facts, "lines").doc == "One.\n\n# Two\n    indented"
    assert symbol(facts, "lines").decorators == ("inline", 'must_use = "why"')
    assert symbol(facts, "block").doc == "Starred,\ntwice."
    assert symbol(facts, "attributes").doc == 'First.\nSecond.\nThird "quoted".'
    assert symbol(facts, "attributes").decorators == ("doc(hidden)",)
    assert symbol(facts, "none").doc == ""
    assert symbol(facts, "apart").doc == ""
    assert symbol(facts, "inside").doc == "Of the module,\nnot of the function."
    assert symbol(facts, "inside.first").doc == ""
    assert symbol(facts, "Fields.one").doc == "Of the field."
    assert symbol(facts, "Fields.one").decorators == ("serde(skip)",)
    assert symbol(facts, "Fields.two").doc == ""
    assert symbol(facts, "Variants.A").doc == "Of the variant."


def test_arguments():
    facts = facts_of("""
        fn f() {
            g(a, &b.c, "s", 1, -2.5, true, h(i(1)), |x| x, [1, 2], Point { x: 1 }, (), &mut k?, A::B);
        }
    """)
    call = next(c for c in facts.calls if c.name == "g")
    assert [(a.kind, a.text, a.depth) for a in call.args] == [
        ("name", "a", 0),
        ("attribute", "&b.c", 0),
        ("string", '"s"', 0),
        ("number", "1", 0),
        ("number", "-2.5", 0),
        ("boolean", "true", 0),
        ("call", "h(i(1))", 2),
        ("function", "|x| x", 0),
    ]
    assert call.arg_count == 13


def test_arguments_read_from_text_are_those_of_the_tree():
    plain = facts_of('fn f() { g(a, &b.c, "s", 1, self, x::y, true, &mut z); }').calls[0]
    # The comment keeps the call from being read as plain text.
    tree = facts_of('fn f() { g(/**/ a, &b.c, "s", 1, self, x::y, true, &mut z); }').calls[0]
    tokens = facts_of('fn f() { g!(/**/ a, &b.c, "s", 1, self, x::y, true, &mut z); }').calls[0]
    assert plain.args == tree.args == tokens.args
    assert plain.arg_count == tree.arg_count == tokens.arg_count == 8
    ranges = facts_of("fn f() { g(0..n, x.await, r#in); }").calls[0]
    assert [a.kind for a in ranges.args] == ["other", "name", "name"]


def test_receivers():
    facts = facts_of("""
        fn f() {
            a.b().c(); Vec::<u8>::new(); <T as U>::v(); x?.y(); w(); m![n.o::<P>()]; self.0.q(); (r)(1);
        }
    """)
    assert [(c.callee, c.name, c.receiver) for c in facts.calls] == [
        ("a.b", "b", "a"),
        ("a.b().c", "c", "a.b()"),
        ("Vec::<u8>::new", "new", "Vec::<u8>"),
        ("<T as U>::v", "v", "<T as U>"),
        ("x?.y", "y", "x?"),
        ("w", "w", ""),
        ("m!", "m", ""),
        ("n.o::<P>", "o", "n"),
        ("self.0.q", "q", "self.0"),
        ("(r)", "", ""),
    ]


def test_struct_literals_and_macros_have_keywords():
    facts = facts_of("""
        fn f() {
            let p = a::Point { x: 1, y, ..Default::default() };
            println!("{} {z}", g(1, 2), z = 3,);
            vec![];
        }
    """)
    literal, _, text, _, empty = facts.calls
    assert (literal.kind, literal.callee, literal.name, literal.receiver) == ("new", "a::Point", "Point", "a")
    assert [(a.name, a.kind, a.text, a.spread) for a in literal.args] == [
        ("x", "number", "1", False), ("y", "name", "y", False), ("", "spread", "..Default::default()", True),
    ]  # fmt: skip
    assert literal.keywords == ("x", "y")
    assert [(a.name, a.kind, a.text) for a in text.args] == [
        ("", "string", '"{} {z}"'), ("", "call", "g(1, 2)"), ("z", "number", "3"),
    ]  # fmt: skip
    assert (text.arg_count, text.keywords, empty.arg_count) == (2, ("z",), 0)


def test_scopes_of_calls():
    facts = facts_of("""
        static A: u8 = first();
        #[outer]
        impl B {
            const C: u8 = second();
            #[inner]
            fn d(&self) { third(); let e = || fourth(); fifth!(sixth()); }
        }
        root!();
        macro_rules! m { () => { seventh() } }
    """)
    assert [(c.name, facts.symbols[c.scope].qualified_name if c.scope >= 0 else "") for c in facts.calls] == [
        ("first", "A"), ("outer", ""), ("second", "B.C"), ("inner", "B"), ("third", "B.d"), ("fourth", "B.d.e"),
        ("fifth", "B.d"), ("sixth", "B.d"), ("root", ""), ("seventh", "m"),
    ]  # fmt: skip


def test_patterns_in_macros_call_nothing():
    facts = facts_of("""
        fn f() {
            m! {
                match x { A(B(c)) | D(_) if e(1) => g(h(2)), I { .. } => j(3), }
                let K(l) = n(4);
                fn o(p: u8) -> impl Fn(u8) { q(5) }
                struct R(u8);
            }
            matches!(s(6), T(_) | U(V(_)));
        }
    """)
    assert [c.name for c in facts.calls] == ["m", "e", "g", "h", "j", "n", "q", "matches", "s"]


def test_imports_and_exports():
    facts = facts_of("""
        use a::{b as c, d::{self as e, *}};
        pub use f::{g, h as i, self};
        pub use j::*;
        fn k() { use l::m; }
    """)
    assert [(i.kind, i.module, [(b.local, b.imported) for b in i.bindings]) for i in facts.imports] == [
        ("use", "a", [("c", "b")]),
        ("use", "a::d", [("e", "*")]),
        ("star", "a::d", []),
        ("reexport", "f", [("g", "g"), ("i", "h"), ("f", "*")]),
        ("reexport", "j", []),
        ("use", "l", [("m", "m")]),
    ]
    assert [(e.name, e.exported, e.module) for e in facts.exports] == [
        ("g", "g", "f"), ("h", "i", "f"), ("*", "f", "f"), ("*", "*", "j"),
    ]  # fmt: skip
    assert [facts.symbols[i.scope].name if i.scope >= 0 else "" for i in facts.imports] == ["", "", "", "", "", "k"]
    assert {r.role for r in facts.references if r.name in "abcdefghijlm"} == {"import"}


def flows(source: str) -> list[tuple[str, str, str, str]]:
    return [(f.kind, f.target, f.value, f.value_kind) for f in facts_of(source).flows]


def test_assignments():
    assert flows("""
        fn f() {
            let a = Foo::new();
            let b: Vec<u8> = a;
            let (c, d) = pair()?;
            let e = &mut g.h;
            let i = make!(1).await;
            self.j = b;
            if let Some(k) = l.m() {}
            let n = Foo { o: b, p };
            let q = |r| r;
        }
    """) == [
        ("assign", "a", "Foo::new", "call"),
        ("annotate", "b", "Vec<u8>", "type"),
        ("assign", "b", "a", "name"),
        ("assign", "(c, d)", "pair", "call"),
        ("raise", "?", "pair", "call"),
        ("assign", "e", "g.h", "attribute"),
        ("assign", "i", "make!", "call"),
        ("await", "", "make!", "call"),
        ("assign", "self.j", "b", "name"),
        ("assign", "Some(k)", "l.m", "call"),
        ("assign", "n", "Foo", "call"),
        ("assign", "Foo.o", "b", "name"),
        ("assign", "Foo.p", "p", "name"),
        ("assign", "q", "", "function"),
        ("return", "", "r", "name"),
    ]


def test_annotations_and_returns():
    assert flows("""
        struct S { a: u8 }
        fn f(b: &str) -> Result<S, E> {
            if b { return Ok(S::new()); }
            if c { return Err(E::Bad(1)); }
            if d { return; }
            if g { panic!("no") }
            Err(h)
        }
        fn last() { stop(); }
        fn value() -> u8 { match x { _ => 1 } }
    """) == [
        ("annotate", "a", "u8", "type"),
        ("annotate", "b", "&str", "type"),
        ("annotate", "return", "Result<S, E>", "type"),
        ("return", "", "Ok", "call"),
        ("raise", "", "E::Bad", "call"),
        ("return", "", "Err", "call"),
        ("return", "", "", ""),
        ("raise", "", "panic!", "call"),
        ("raise", "", "h", "name"),
        ("return", "", "Err", "call"),
        ("annotate", "return", "u8", "type"),
        ("return", "", "", "other"),
    ]


def test_a_value_that_is_a_call_starts_where_the_call_starts():
    facts = facts_of("fn f() { let a = &g()?; let b = h!(1); let c = I { j: 1 }; }")
    starts = {call.start for call in facts.calls}
    assert all(flow.value_start in starts for flow in facts.flows if flow.value_kind == "call")


def test_references_leave_out_keywords_types_of_the_language_and_strings():
    facts = facts_of("""
        fn f(str: u8) -> bool { let s = b"word"; g!("{other}", 'c', r#"raw"#, 1u8); h(str); union(default) }
    """)
    assert [(r.name, r.role) for r in facts.references] == [
        ("g", "call"), ("h", "call"), ("str", "reference"), ("union", "call"), ("default", "reference"),
    ]  # fmt: skip


def test_chunks_of_a_file():
    source = dedent("""
        //! About.
        use std::io;

        /// Doc.
        #[derive(Debug)]
        pub struct A { x: u8 } // behind

        impl A {
            const K: u8 = 1;

            /// Runs.
            #[inline]
            pub fn run(&self) -> io::Result<u8> {
                let go = |y: u8| { y + 1 };
                Ok(go(self.x))
            }
        }
        setup!();
    """).lstrip()
    text = source.encode()
    facts = check_document(text, "rust")
    chunks = facts.chunks
    assert [(c.depth, c.kind, c.name) for c in chunks[1:]] == [
        (0, "comment", "//! About."),
        (0, "import", "import:std"),
        (0, "struct", "A"),
        (0, "impl", "A"),
        (1, "method", "run"),
        (2, "function", "go"),
        (0, "expression", "setup!();"),
    ]
    assert full_source(text, chunks[3]) == "/// Doc.\n#[derive(Debug)]\npub struct A { x: u8 } // behind"
    assert embedding_text(text, facts, 4) == (
        "impl A {\n    const K: u8 = 1;\n\n    pub fn run(&self) -> io::Result<u8>;\n}"
    )
    assert "let go = |y: u8|;\n" in embedding_text(text, facts, 5)
    assert [c.imports for c in chunks[1:]] == [(), (), (), (0,), (0,), (), ()]


def test_a_large_impl():
    methods = "".join(
        f"    /// Number {n}.\n    pub fn method_{n}(&self) -> u32 {{ self.helper({n}) }}\n" for n in range(60)
    )
    text = f"impl Large {{\n{methods}}}\n".encode()
    facts = check_document(text, "rust")
    assert len(facts.chunks[1].children) == 60
    stubs = embedding_text(text, facts, 1)
    assert stubs.count("pub fn method_") == 60
    assert "helper" not in stubs


@pytest.mark.parametrize(
    "source", ["", "\n\n", "// only\n", ";", "}", "fn", "impl", "use ;", "#[", "mod", "r#", "macro x{"]
)
def test_next_to_nothing(source: str):
    facts = check_document(source.encode(), "rust")
    assert not facts.calls


def test_an_error_costs_only_what_it_touches():
    facts = facts_of("fn a() { b() }\nfn c( {\nstruct D { e: u8 }\nfn f() { g() }\n")
    assert facts.problems
    assert {"function a", "function f"} <= set(outline(facts))
    assert {"b", "g"} <= {call.name for call in facts.calls}


@pytest.mark.parametrize(
    "source",
    [
        "fn f() { " + "(" * 5000 + ")" * 5000 + " }",
        "fn f() { x" + "?" * 5000 + "; }",
        "fn f() { x" + ".y(1)" * 5000 + "; }",
        "use " + "a::{" * 3000 + "b" + "}" * 3000 + ";",
        "m!(" + "a(" * 5000 + ")" * 5000 + ");",
        "m! {" + "A(x) => b(y), " * 5000 + "}",
        "fn f(" + "(" * 3000 + "a" + ")" * 3000 + ": u8) {}",
        "impl " + "&" * 5000 + "Foo {}",
        "macro x {\n" * 3000,
        "mod a {" * 3000 + "}" * 3000,
    ],
    ids=range(10),
)
def test_hostile_nesting_ends(source: str):
    assert extract_facts(source.encode(), "rust").language == "rust"


def test_arguments_have_values():
    code = _read_code(b'fn f() { a.run("x", &mut b.c, true, 1, r#"y"#, g(2)?, &h[0]); P { d: 1, e } }')
    run, _, new = code.sites
    assert run.args[:6] == (Text("x"), Name("b.c"), Boolean(True), Integer(1), Text("y"), Unwrapped(CallEnd(51)))
    assert new.keywords == (("d", Integer(1)), ("e", Name("e")))


def test_a_format_string_has_its_parts():
    code = _read_code(b'fn f() { format!("a{} {x:?} {0} {k} {{", m.n, k = g(1)); m::custom!("{x}", h(2).await?); }')
    by_name = {site.name: site for site in code.sites}
    call = CallEnd(by_name["g"].end)
    parts = (Text("a"), Name("m.n"), Text(" "), Name("x"), Text(" "), Name("m.n"), Text(" "), call, Text(" {{"))
    assert by_name["format"].args == (Joined(parts), Name("m.n"))
    assert by_name["format"].keywords == (("k", call),)
    assert by_name["custom"].args == (Text("{x}"), Unwrapped(CallEnd(by_name["h"].end)))


def test_branches_know_their_conditions():
    code = _read_code(
        b"fn f() { if a && !b.c() { 1 } else if let Some(q) = d { 2 } else { 3 }; while n < 3 {} "
        b"for i in v {} match z { A(x) => 1, _ => {} } }"
    )
    matched = Operated("matches", Name("d"), None)
    assert [(branch.kind, branch.value) for branch in code.branches] == [
        ("if", Operated("and", Name("a"), Operated("not", CallEnd(code.sites[0].end), None))),
        ("if", matched),
        ("if", Operated("not", matched, None)),
        ("loop", Operated("<", Name("n"), Integer(3))),
        ("loop", None),
        ("case", Name("z")),
        ("case", Name("z")),
    ]
    assert code.sites[0].callee == MethodOf(Name("b"), "c")


def _read_code(text: bytes) -> Code:
    code = check_document(text, "rust").code
    assert code is not None
    return code
