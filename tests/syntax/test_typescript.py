"""TypeScript and JavaScript: the marks of tests/cases/typescript.md, and what a mark cannot say."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from cq.languages.facts import embedding_text, extract_facts
from cq.languages.registry import get_language
from cq.model.facts import Call, FileFacts, Import, Symbol
from cq.model.source import Segment
from cq.syntax.chunks import full_source
from tests.support.fixture import parse_fixture
from tests.support.invariants import check_document

if TYPE_CHECKING:
    from tree_sitter import Node

PAGE = (Path(__file__).parents[1] / "cases" / "typescript.md").read_text("utf-8")
CASES = {
    title: (language, snippet)
    for title, language, snippet in re.findall(r"^## (.+?)$.*?^```(\w+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
}


@pytest.mark.parametrize("title", CASES)
def test_case(title: str):
    """The marks are the whole truth about definitions, calls and imports."""
    language, snippet = CASES[title]
    fixture = parse_fixture(snippet)
    facts = check_document(fixture.files["main"].encode(), language)
    marked = {(mark.start, mark.label.removeprefix("bug: ")) for mark in fixture.marks}
    assert describe(facts) == marked


def test_there_are_as_many_cases_as_promised():
    assert len(CASES) >= 20
    assert len(re.findall(r"^```\w", PAGE, re.MULTILINE)) == len(CASES)
    assert {language for language, _ in CASES.values()} == {"typescript", "tsx", "javascript"}


def describe(facts: FileFacts) -> set[tuple[int, str]]:
    """Every definition with a name, call and import as the page writes it."""
    named = [symbol for symbol in facts.symbols if symbol.kind != "lambda"]
    found = {(symbol.name_start, f"def {symbol.kind} {symbol.qualified_name}") for symbol in named}
    for call in facts.calls:
        start = call.start if call.name_start < 0 else call.name_start
        found.add((start, f"call {call.kind} {call.callee}({', '.join(_arguments(call))})"))
    return found | {(item.start, f"import {_import(item)}") for item in facts.imports}


def _arguments(call: Call) -> list[str]:
    return [f"{argument.name}={argument.kind}" if argument.name else argument.kind for argument in call.args]


def _import(item: Import) -> str:
    return " ".join([item.kind, item.module, *(f"{binding.local}={binding.imported}" for binding in item.bindings)])


def read(source: str, language: str = "typescript") -> FileFacts:
    """Facts of a snippet that keeps every rule."""
    return check_document(dedent(source).encode(), language)


def symbol(facts: FileFacts, name: str) -> Symbol:
    (found,) = [symbol for symbol in facts.symbols if symbol.qualified_name == name]
    return found


def chunks(facts: FileFacts) -> list[tuple[int, str, str]]:
    return [(chunk.depth, chunk.kind, chunk.name) for chunk in facts.chunks[1:]]


def collapsed(source: str, name: str, language: str = "typescript") -> str:
    text = dedent(source).encode()
    facts = check_document(text, language)
    return embedding_text(text, facts, symbol(facts, name).chunk)


def exports(facts: FileFacts) -> list[tuple[str, str, str]]:
    return [(export.name, export.exported, export.module) for export in facts.exports]


# -- heads -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "name", "signature", "modifiers"),
    [
        (
            "export default async function* gen<T extends A = B>(a: string,\n  b = [1, 2], // w\n  ...c: T[]\n): X {}",
            "gen",
            "export default async function* gen<T extends A = B>(a: string, b = [1, 2], ...c: T[]): X",
            ("exported", "default", "async", "generator"),
        ),
        ("const f = async <T>(x: T): P<T> => { return x; };", "f", "const f = async <T>(x: T): P<T>", ("async",)),
        ("export const g = function* () {};", "g", "export const g = function* ()", ("exported", "generator")),
        ("function f(a: string): void;", "f", "function f(a: string): void", ("overload",)),
        ("export declare function f(a?: string): asserts a is X;", "f",
         "export declare function f(a?: string): asserts a is X", ("exported", "declare")),
        ("export abstract class A<T> extends B<T> {}", "A",
         "export abstract class A<T> extends B<T>", ("exported", "abstract")),
        ("class A { protected static override readonly x?: number = 1; }", "A.x",
         "protected static override readonly x?: number = 1", ("protected", "static", "override", "readonly")),
        ("class A { private async *m?<T>(x: T): void {} }", "A.m",
         "private async *m?<T>(x: T): void", ("private", "async", "generator")),
        ("class A { static set v(x: number) {} }", "A.v", "static set v(x: number)", ("static", "set")),
        ("class A { abstract m(): void }", "A.m", "abstract m(): void", ("abstract",)),
        ("class A { m(x: string): void; m(x: any) {} }", "A.m", "m(x: string): void", ("overload",)),
        ("declare class A { m(): void }", "A.m", "m(): void", ()),
        ("class A { on = async (e: E) => {}; }", "A.on", "on = async (e: E)", ("async",)),
        ("class A { constructor(protected readonly x: X) {} }", "A.x",
         "protected readonly x: X", ("protected", "readonly")),
        ("export const enum E { A }", "E", "export const enum E", ("exported", "const")),
        ("interface I<T> extends A, B<T> { x: T }", "I", "interface I<T> extends A, B<T>", ()),
        ("export type T<K> = { a: K };", "T", "export type T<K>", ("exported",)),
        ("type U<K> = K | null;", "U", "type U<K> = K | null", ()),
        ("declare module 'x' { let y: 1 }", "x", "declare module 'x'", ("declare",)),
        ("export const big = 1;", "big", "export const big = 1", ("exported",)),
        ("const F = memo(forwardRef((p, r) => p));", "F", "const F = memo(forwardRef((p, r)))", ()),
    ],
)  # fmt: skip
def test_signatures_and_modifiers(source: str, name: str, signature: str, modifiers: tuple[str, ...]):
    found = next(symbol for symbol in read(source).symbols if symbol.qualified_name == name)
    assert (found.signature, found.modifiers) == (signature, modifiers)
    assert found.exported == ("exported" in modifiers)


def test_bases():
    facts = read("""
        class A extends mixin(B)<C> implements D, E<F> {}
        interface G extends H.I, J<K> {}
        const L = class extends M {};
        """)
    assert symbol(facts, "A").bases == ("mixin(B)<C>", "D", "E<F>")
    assert symbol(facts, "G").bases == ("H.I", "J<K>")
    assert symbol(facts, "L").bases == ("M",)
    assert symbol(read("class A extends B.C {}", "javascript"), "A").bases == ("B.C",)


def test_docs_that_tell_of_parameters_may_stand_apart():
    facts = read("""
        /**
         * Sends it.
         * @param {string} to
         */

        function send(to) {}

        /**
         * @callback Done
         * @param {Error} error
         */

        function other() {}

        /** Routes. */

        const routes = 1;

        /** @returns nothing, far away */


        function far() {}
        """)
    assert [(s.name, s.doc) for s in facts.symbols if s.depth == 0] == [
        ("send", "Sends it.\n@param {string} to"), ("other", ""), ("routes", ""), ("far", ""),
    ]  # fmt: skip


def test_docs_and_decorators_belong_to_what_they_stand_before():
    source = """
        /** Licence. */

        /**
         * What it is.
         *   Indented.
         */
        @Injectable()
        export class Service {
          /** The name. */
          @Input({ required: true }) readonly name: string;
          // no doc
          plain = 1;
          /** Runs. */
          @Bind @Log("x")
          async run() {}
        }
        /** Twice. */
        export const a = 1, b = 2;
        """
    text = dedent(source).encode()
    facts = read(source)
    service, name, run = symbol(facts, "Service"), symbol(facts, "Service.name"), symbol(facts, "Service.run")
    assert (service.doc, service.decorators) == ("What it is.\n  Indented.", ("Injectable()",))
    assert (name.doc, name.decorators) == ("The name.", ("Input({ required: true })",))
    assert (run.doc, run.decorators) == ("Runs.", ("Bind", 'Log("x")'))
    assert symbol(facts, "Service.plain").doc == ""
    assert service.signature == "export class Service"
    assert (name.signature, run.signature) == ("readonly name: string", "async run()")
    assert text[service.start :].startswith(b"/**\n * What it is.")
    assert text[service.head :].startswith(b"export class")
    assert chunks(facts)[0] == (0, "comment", "/** Licence. */")
    decorators = [call for call in facts.calls if call.kind == "decorator"]
    assert [call.callee for call in decorators] == ["Injectable", "Input", "Bind", "Log"]
    scopes = [facts.symbols[call.scope].name if call.scope >= 0 else "" for call in decorators]
    assert scopes == ["", "Service", "Service", "Service"]


def test_export_after_decorator_and_before():
    facts = read("@a export class A {}\nexport @b class B {}\n")
    assert [(s.name, s.decorators, s.exported) for s in facts.symbols] == [("A", ("a",), True), ("B", ("b",), True)]


# -- modules ---------------------------------------------------------------------------------------


def test_exports():
    facts = read("""
        import { x } from "m";
        export const a = 1, { b, c: d } = y;
        export default class Main {}
        export interface I {}
        export { a as e, Main as default, x };
        export { f as g, type H } from "n";
        export * from "o";
        export * as p from "q";
        function later() {}
        export { later };
        namespace N { export const inner = 1; }
        """)
    assert exports(facts) == [
        ("a", "a", ""), ("b", "b", ""), ("d", "d", ""), ("Main", "default", ""), ("I", "I", ""), ("a", "e", ""),
        ("Main", "default", ""), ("x", "x", ""), ("f", "g", "n"), ("H", "H", "n"), ("*", "*", "o"), ("*", "p", "q"),
        ("later", "later", ""),
    ]  # fmt: skip
    assert [export.exported for export in facts.exports if export.type_only] == ["I", "H"]
    assert [s.qualified_name for s in facts.symbols if s.exported] == ["a", "b", "d", "Main", "I", "later", "N.inner"]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("export default foo;", [("foo", "default", "")]),
        ("export default foo.bar as Baz;", [("foo.bar", "default", "")]),
        ("export default connect(foo);", [("default", "default", "")]),
        ("export default () => 1;", [("default", "default", "")]),
        ("export default { name: 1 };", [("default", "default", "")]),
        ("export = foo;", [("foo", "export=", "")]),
        ("export {};", []),
        ("export as namespace X;", []),
    ],
)
def test_default_exports(source: str, expected: list[tuple[str, str, str]]):
    assert exports(read(source)) == expected


def test_commonjs_exports():
    facts = read(
        """
        exports.a = exports.b = void 0;
        exports.a = local;
        exports.b = () => {};
        Object.defineProperty(exports, "__esModule", { value: true });
        Object.defineProperty(exports, "c", { get: function () { return m.c; } });
        module.exports = { d, "e": f, g() {}, ...rest };
        function local() {}
        """,
        "javascript",
    )
    assert exports(facts) == [
        ("local", "a", ""), ("b", "b", ""), ("c", "c", ""), ("d", "d", ""), ("f", "e", ""), ("g", "g", ""),
    ]  # fmt: skip
    assert {s.qualified_name for s in facts.symbols if s.exported} == {"b", "exports", "local"}
    assert exports(read("module.exports = main;", "javascript")) == [("main", "export=", "")]
    assert exports(read("module.exports = function () {};", "javascript")) == [("exports", "export=", "")]


def test_type_only_imports():
    facts = read('import type { A } from "a";\nimport B, { type C, D, type as } from "b";\n')
    whole, mixed = facts.imports
    assert (whole.type_only, [binding.type_only for binding in whole.bindings]) == (True, [True])
    assert not mixed.type_only
    assert [(b.local, b.type_only) for b in mixed.bindings] == [("B", False), ("C", True), ("D", False), ("as", True)]


def test_bindings_stand_where_the_name_stands():
    text = b'import a, { b as c, d } from "m";\nconst { e: f } = require("n");\n'
    facts = check_document(text, "javascript")
    spans = [(b.local, text[b.start : b.end].decode()) for item in facts.imports for b in item.bindings]
    assert spans == [("a", "a"), ("c", "c"), ("d", "d"), ("f", "f")]


def test_relevant_imports():
    facts = read("""
        import used, { other } from "a";
        import * as ns from "b";
        import "c";
        export function f(): other.T { return () => used(); }
        const g = ns.x;
        """)
    found = {chunk.name: [facts.imports[i].module for i in chunk.imports] for chunk in facts.chunks[1:]}
    assert found == {"import:a": [], "import:b": [], "import:c": [], "f": ["a"], "g": ["b"]}


# -- calls, flows and references -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "kind", "callee", "name", "receiver"),
    [
        ("f()", "call", "f", "f", ""),
        ("a.b.c()", "call", "a.b.c", "c", "a.b"),
        ("a()\n  .b\n  .c()", "call", "a() .b .c", "c", "a() .b"),
        ("a?.b()", "optional", "a?.b", "b", "a"),
        ("a.b?.()", "optional", "a.b", "b", "a"),
        ("a?.[0]?.()", "optional", "a?.[0]", "", "a"),
        ("a['b-c']()", "call", "a['b-c']", "b-c", "a"),
        ("a[b]()", "call", "a[b]", "", "a"),
        ("a!.b!()", "call", "a!.b!", "b", "a!"),
        ("(a.b)()", "call", "(a.b)", "b", "a"),
        ("(a || b)()", "call", "(a || b)", "", ""),
        ("f()()", "call", "f()", "", ""),
        ("a.catch(e)", "call", "a.catch", "catch", "a"),
        ("$.ajax()", "call", "$.ajax", "ajax", "$"),
        ("new a.B<C>(1)", "new", "a.B", "B", "a"),
        ("a.t`x`", "template", "a.t", "t", "a"),
        ("import('x')", "import", "import", "import", ""),
        ("f<A, B>(x)", "call", "f", "f", ""),
    ],
)
def test_callees(source: str, kind: str, callee: str, name: str, receiver: str):
    found = max(read(source).calls, key=lambda call: call.end - call.start)
    assert (found.kind, found.callee, found.name, found.receiver) == (kind, callee, name, receiver)


def test_super_and_private_callees():
    calls = read("class A { m() { super.m(); this.#p(); super(1); this?.#p(); } }").calls
    assert [(c.kind, c.name, c.receiver) for c in calls] == [
        ("super", "m", "super"), ("call", "#p", "this"), ("super", "super", ""), ("optional", "#p", "this"),
    ]  # fmt: skip


def test_bounded_arguments():
    def args_of(source: str) -> Call:
        return max(read(source).calls, key=lambda call: call.end - call.start)

    assert len(args_of(f"f('{'s' * 200}')").args[0].text) == 80
    many = args_of(f"f({', '.join('abcdefghij')})")
    assert (len(many.args), many.arg_count) == (8, 10)
    nested = args_of("f(p(q(1)), [1], { a: [1] }, { a: '(' }, k(1))")
    assert [a.depth for a in nested.args] == [2, 1, 2, 1, 1]
    odd = args_of("f(/* c */ ...xs, x => x, `a${b}`, -1, !y, a[0], async () => {}, class {})")
    kinds = ["spread", "function", "string", "number", "other", "attribute", "function", "other"]
    assert [a.kind for a in odd.args] == kinds
    assert [a.text for a in odd.args if a.spread] == ["...xs"]


def test_jsx_is_a_call_with_keywords():
    facts = read("const a = <Row.Cell key='1' on {...rest} go={f(1)}><b c={d}/></Row.Cell>;", "tsx")
    row, inner = facts.calls
    assert (row.kind, row.callee, row.name, row.receiver) == ("jsx", "Row.Cell", "Cell", "Row")
    assert row.keywords == ("key", "on", "go")
    assert [(a.name, a.kind, a.text) for a in row.args] == [
        ("key", "string", "'1'"), ("on", "boolean", ""), ("", "spread", "...rest"), ("go", "call", "f(1)"),
    ]  # fmt: skip
    assert inner.name == "f"
    assert [(r.name, r.role) for r in facts.references if r.name in ("b", "c", "Row", "Cell")] == [
        ("Row", "reference"), ("Cell", "call"), ("c", "keyword"), ("Row", "reference"), ("Cell", "attribute"),
    ]  # fmt: skip


def test_scopes_of_calls():
    """Defaults run in the function, decorators and bases around the class; an anonymous function opens no scope."""
    facts = read("""
        @one() class A extends two() {
          x = three();
          static { four(); }
          m(a = five()) { six(() => seven()); }
          h = () => eight();
        }
        const f = (a = nine()) => ten();
        const o = { p: eleven(), q() { twelve(); } };
        thirteen(() => fourteen());
        """)
    scopes = {call.name: facts.symbols[call.scope].qualified_name if call.scope >= 0 else "" for call in facts.calls}
    assert scopes == {
        "one": "", "two": "", "three": "A", "four": "A", "five": "A.m", "six": "A.m", "seven": "A.m", "eight": "A.h",
        "nine": "f", "ten": "f", "eleven": "", "twelve": "o.q", "thirteen": "", "fourteen": "",
    }  # fmt: skip


def test_flows():
    facts = read("""
        const a: Foo<T> = new Foo(1);
        let b = await load(), c = (d as E).f, g = h!;
        class K { x?: Bar = make(); constructor(private p: P, q?: Q) { this.r = p; } get s(): S { return this.x; } }
        const { t, u: v } = w.z;
        const [m] = list();
        function* n(o: O): R { yield o; return new Foo(); }
        try {} catch (err) { throw err; }
        i = j = k;
        """)
    found = [(flow.kind, flow.target, flow.value, flow.value_kind) for flow in facts.flows]
    assert found == [
        ("assign", "a", "Foo", "call"), ("annotate", "a", "Foo<T>", "type"), ("assign", "b", "load", "call"),
        ("await", "", "load", "call"), ("assign", "c", "(d as E).f", "attribute"), ("assign", "g", "h", "name"),
        ("assign", "x", "make", "call"), ("annotate", "x", "Bar", "type"), ("annotate", "p", "P", "type"),
        ("annotate", "q", "Q", "type"), ("assign", "this.r", "p", "name"), ("annotate", "s", "S", "type"),
        ("return", "", "this.x", "attribute"), ("assign", "t", "w.z.t", "attribute"),
        ("assign", "v", "w.z.u", "attribute"), ("assign", "[m]", "list", "call"), ("annotate", "o", "O", "type"),
        ("annotate", "n", "R", "type"), ("yield", "", "o", "name"), ("return", "", "Foo", "call"),
        ("catch", "err", "", ""), ("raise", "", "err", "name"), ("assign", "i", "", "other"),
        ("assign", "j", "k", "name"),
    ]  # fmt: skip
    starts = {call.start for call in facts.calls}
    assert all(flow.value_start in starts for flow in facts.flows if flow.value_kind == "call")


def test_roles_of_references():
    facts = read("""
        import { a } from "m";
        @dec class A extends B { x: T = a.b; }
        label: for (;;) { n = 1; n++; continue label; }
        f({ key: a, short }, (p: U) => p.q?.r);
        const { from: to } = obj;
        type F = (arg: V) => W; interface I { [k: string]: X }
        """)
    roles = [(reference.name, reference.role) for reference in facts.references]
    assert roles == [
        ("a", "import"), ("dec", "call"), ("B", "reference"), ("T", "type"), ("a", "reference"), ("b", "attribute"),
        ("label", "label"), ("n", "assignment"), ("n", "assignment"), ("label", "label"), ("f", "call"),
        ("key", "keyword"), ("a", "reference"), ("short", "reference"), ("U", "type"), ("p", "reference"),
        ("q", "attribute"), ("r", "attribute"), ("from", "keyword"), ("obj", "reference"), ("V", "type"), ("W", "type"),
        ("X", "type"),
    ]  # fmt: skip


# -- chunks ----------------------------------------------------------------------------------------


def test_every_root_statement_is_a_chunk():
    facts = read("""
        #!/usr/bin/env node
        "use strict";
        import a from "a";
        // About
        // the next.

        export * from "b";
        export { a };
        if (a) { a(); }
        a();
        const b = 1, c = () => 2;
        export default a;
        """)
    kinds = [(kind, name) for depth, kind, name in chunks(facts) if depth == 0]
    assert ("import", "import:a") in kinds
    assert ("comment", "// About") in kinds
    assert [name for kind, name in kinds if kind == "export"][:2] == ['export * from "b";', "export { a };"]
    assert ("export", "export default a;") in kinds
    assert ("control", "if (a) { a(); }") in kinds
    assert ("expression", "a();") in kinds
    assert [kind for kind in kinds if kind[1] in ("b", "c")] == [("constant", "b"), ("function", "c")]


def test_a_class_shows_signatures_only():
    source = """
        export class Store<T> {
          private items: T[] = [];
          constructor(private readonly size: number) { this.check(size); }
          async find(id: string): Promise<T | null> {
            return this.items.find((item) => item.id === id) ?? null;
          }
          readonly log = (line: string) => { console.log(line); };
          get count(): number { return this.items.length; }
        }
        """
    assert collapsed(source, "Store") == dedent("""\
        export class Store<T> {
          private items: T[] = [];
          constructor(private readonly size: number);
          async find(id: string): Promise<T | null>;
          readonly log = (line: string);
          get count(): number;
        }""")
    assert collapsed(source, "Store.count") == "get count(): number { return this.items.length; }"


def test_data_stays_with_the_function_that_holds_it():
    source = """
        function f() {
          const options = { a: 1, b: { c: 2 } };
          const actions = { go() { run(); } };
        }
        """
    facts = read(source)
    assert [(s.kind, s.qualified_name) for s in facts.symbols] == [
        ("function", "f"), ("variable", "f.options"), ("variable", "f.actions"), ("method", "f.actions.go"),
    ]  # fmt: skip
    assert "const options = { a: 1, b: { c: 2 } };" in collapsed(source, "f")
    assert "const actions;" in collapsed(source, "f")


def test_hierarchy_of_deep_nesting():
    facts = read("function a() { const b = () => { class C { d() { function e() {} } } }; }")
    assert chunks(facts) == [
        (0, "function", "a"),
        (1, "function", "b"),
        (2, "class", "C"),
        (3, "method", "d"),
        (4, "function", "e"),
    ]
    assert [s.depth for s in facts.symbols] == [0, 1, 2, 3, 4]


def test_a_large_class():
    methods = "\n".join(
        f"  method{i}(x: number): number {{\n    return this.value{i % 12} + x * {i};\n  }}" for i in range(60)
    )
    fields = "\n".join(f"  private value{i} = {i};" for i in range(12))
    source = f"export class Big {{\n{fields}\n  constructor(readonly id: string) {{}}\n{methods}\n}}\n"
    facts = read(source)
    big = facts.chunks[symbol(facts, "Big").chunk]
    assert len(big.children) == 61
    assert sum(s.kind == "field" for s in facts.symbols) == 13
    assert "method59(x: number): number;" in collapsed(source, "Big")
    assert "return" not in collapsed(source, "Big")


def test_a_component_keeps_its_hooks():
    facts = read(
        """
        export const Page: FC<Props> = memo(function Page({ id }) {
          const onClick = useCallback(() => open(id), [id]);
          return <Layout><a onClick={onClick} /></Layout>;
        });
        class Old extends Component { render() { return <p />; } }
        """,
        "tsx",
    )
    page, old = symbol(facts, "Page"), symbol(facts, "Old")
    assert (page.kind, page.signature) == ("component", "export const Page: FC<Props> = memo(function Page({ id }))")
    assert (old.kind, old.modifiers) == ("class", ("component",))
    assert {call.name for call in facts.calls if call.scope >= 0 and facts.symbols[call.scope] is page} == {
        "useCallback", "open", "Layout",
    }  # fmt: skip


@pytest.mark.parametrize("text", ["", "\n\n", "// only\n", "/* a */ // b\n", "export {};\n", ";", "#!/bin/node\n"])
def test_nearly_empty_files(text: str):
    facts = check_document(text.encode(), "typescript")
    assert (facts.symbols, facts.calls, facts.imports, facts.problems) == ((), (), (), ())


@pytest.mark.parametrize("language", ["typescript", "tsx", "javascript", "jsx"])
@pytest.mark.parametrize(
    "text",
    [
        "class {", "class A extends {", "function (", "const = ;", "const {", "import {", "import from", "export",
        "export default", "a.", "new", "a?.", "f(", "@", "@x", "x = ", "({", "enum {", "declare module 'x",
        "class A { constructor(private) {} }", "<A", "`${", "import { a as } from", "module.exports =",
        "for (const of", "é\u2028",
    ],
)  # fmt: skip
def test_broken_code_still_gives_facts(language: str, text: str):
    facts = check_document(f"{text}\nfunction good() {{ run(); }}\n".encode(), language)
    assert facts.problems or facts.symbols


def test_a_broken_file_keeps_what_is_whole():
    facts = read("export class A { ok() { go(); } broken(x y) {} }\nlet = = 3;\nfunction after() { return new B(); }\n")
    assert facts.problems
    assert {"A", "ok", "after"} <= {s.name for s in facts.symbols}
    assert {"go", "B"} <= {call.name for call in facts.calls}


@pytest.mark.parametrize(
    "text",
    [
        b"x" + b".a(1)" * 4000,
        b"x" + b"?.[0]" * 4000 + b"()",
        b"const x = " + b"{a:" * 4000 + b"f()" + b"}" * 4000,
        b"const " + b"{a:" * 4000 + b"b" + b"}" * 4000 + b" = c",
        b"exports.a = " * 4000 + b"1",
        b"const f = " + b"x => " * 4000 + b"1",
        b"const A = " + b"memo(" * 4000 + b"x => 1" + b")" * 4000,
    ],
)
def test_deep_code_costs_little(text: bytes):
    """No recursion, no square of the depth that a test would feel."""
    facts = extract_facts(text, "tsx")
    assert all(len(call.callee) <= 200 for call in facts.calls)


# -- against an independent walk of the tree -------------------------------------------------------

FUNCTIONS = {
    "function_declaration", "generator_function_declaration", "function_expression", "generator_function",
    "arrow_function", "method_definition",
}  # fmt: skip
DECLARATIONS = {
    "function_declaration", "generator_function_declaration", "class_declaration", "abstract_class_declaration",
    "interface_declaration", "type_alias_declaration", "enum_declaration", "method_definition", "function_signature",
    "public_field_definition", "field_definition", "internal_module", "abstract_method_signature", "enum_assignment",
}  # fmt: skip
PATTERNS = {"object_pattern", "array_pattern", "rest_pattern"}


TYPE_IMPORT = re.compile(rb"(?:: |typeof | as |[<|] ?)import\(\"[^\"]*\"\)\Z")


def walk(text: bytes, root: Node) -> tuple[set[tuple[int, int]], set[int]]:
    """Spans of all calls and offsets of all defined names, by node types alone."""
    calls: set[tuple[int, int]] = set()
    names: set[int] = set()
    todo: list[tuple[Node, str, str]] = [(root, "", "")]
    while todo:
        node, above, far = todo.pop()
        kind = node.type
        todo += [(child, kind, above) for child in node.children]
        field = node.child_by_field_name
        is_type = kind == "call_expression" and TYPE_IMPORT.search(text, 0, node.end_byte) is not None
        if kind in ("call_expression", "new_expression") and not is_type:
            calls.add((node.start_byte, node.end_byte))
        elif kind == "decorator" and node.named_children[0].type != "call_expression":
            calls.add((node.named_children[0].start_byte, node.named_children[0].end_byte))
        elif kind in ("jsx_opening_element", "jsx_self_closing_element") and _is_component(text, field("name")):
            calls.add((node.start_byte, node.end_byte))
        member = kind in ("property_signature", "method_signature") and (
            above in ("interface_body", "class_body") or (above, far) == ("object_type", "type_alias_declaration")
        )
        if kind in DECLARATIONS or (kind == "module" and node.is_named) or member:
            name = field("name") or field("property")
            while name is not None and name.type == "nested_identifier":
                name = name.children[-1]
            if name is not None:
                names.add(_key(text, name))
        if kind == "enum_body":
            names |= {
                _key(text, child) for child in node.named_children if child.type not in ("comment", "enum_assignment")
            }
        if kind in FUNCTIONS and (params := field("parameters") or field("parameter")) is not None:
            for child in [params] if params.type == "identifier" else params.named_children:
                names |= _bound(child.child_by_field_name("pattern") or child)
        if kind in FUNCTIONS | {"class_declaration", "interface_declaration", "type_alias_declaration"}:
            generic = field("type_parameters")
            for child in generic.named_children if generic is not None else ():
                names |= {name.start_byte for name in child.children_by_field_name("name")}
        binder = {"variable_declarator": "name", "catch_clause": "parameter"}.get(kind)
        if kind == "for_in_statement" and field("kind") is not None:
            binder = "left"
        value = field("value") if kind == "variable_declarator" else None
        imported = value is not None and re.match(
            rb"(await )?(require|import)\(", text[value.start_byte : value.end_byte]
        )
        if binder and not imported and (target := field(binder)) is not None:
            names |= _bound(target)
    return calls, names


def _is_component(text: bytes, name: Node | None) -> bool:
    return name is not None and (
        name.type == "member_expression" or text[name.start_byte : name.start_byte + 1].isupper()
    )


def _key(text: bytes, name: Node) -> int:
    written = text[name.start_byte : name.end_byte]
    return name.start_byte + len(written) - len(written.lstrip(b"['\"" if written[1:2] in b"'\"" else b"'\""))


def _bound(pattern: Node) -> set[int]:
    found: set[int] = set()
    todo: list[Node | None] = [pattern]
    while todo:
        node = todo.pop()
        if node is None:
            continue
        if node.type in ("identifier", "shorthand_property_identifier_pattern"):
            found.add(node.start_byte)
        elif node.type == "pair_pattern":
            todo.append(node.child_by_field_name("value"))
        elif node.type in ("assignment_pattern", "object_assignment_pattern"):
            todo.append(node.child_by_field_name("left"))
        elif node.type in PATTERNS:
            todo += node.named_children
    return found


SAMPLES = {
    "observable": (
        "typescript",
        """
        export class Observable<T> implements Subscribable<T> {
          source: Observable<any> | undefined;
          constructor(subscribe?: (this: Observable<T>, subscriber: Subscriber<T>) => TeardownLogic) {
            if (subscribe) { this._subscribe = subscribe; }
          }
          static create: (...args: any[]) => any = <T>(subscribe?: (s: S<T>) => Logic) => new Observable<T>(subscribe);
          lift<R>(operator?: Operator<T, R>): Observable<R> {
            const observable = new Observable<R>();
            observable.operator = operator;
            return observable;
          }
          forEach(next: (value: T) => void, promiseCtor?: PromiseConstructorLike): Promise<void> {
            return new promiseCtor!<void>((resolve, reject) => {
              const subscriber = new SafeSubscriber<T>({
                next: (value) => { try { next(value); } catch (err) { reject(err); } },
                error: reject,
                complete: resolve,
              });
              this.subscribe(subscriber);
            });
          }
          pipe(): Observable<T>;
          pipe<A>(op1: OperatorFunction<T, A>): Observable<A>;
          pipe(...operations: OperatorFunction<any, any>[]): Observable<any> { return pipeFromArray(operations)(this); }
        }
        """,
    ),
    "schema": (
        "typescript",
        """
        import * as core from "../core.js";
        export interface Issue<T = unknown> { readonly code: string; path?: PropertyKey[]; at(index: number): T }
        export type Parsed<T> = { ok: true; value: T } | { ok: false; issues: Issue[] };
        export const Type = /*@__PURE__*/ core.$constructor("Type", (inst, def) => {
          core.$Type.init(inst, def);
          inst.check = (...checks) => inst.clone({ ...def, checks: [...(def.checks ?? []), ...checks.map((ch) =>
            typeof ch === "function" ? { run: ch, onattach: [] } : ch)] });
          inst.parse = (data, params) => parse(inst, data, params, { callee: inst.parse });
          for (const [key, value] of Object.entries(def)) { defineLazy(inst, key, () => value?.inner?.()); }
        });
        export function refine<T>({ message, path: [head, ...tail] = [] }: Params, fn = async (x: T) => !!x): Check<T> {
          return new core.$Check({ abort: true, fn })!;
        }
        const messages: Record<string, () => string> = {
          en: () => "Invalid",
          "pt-BR": function invalid() { return tr`x`; },
        };
        """,
    ),
    "component": (
        "tsx",
        """
        @observer
        export class List<P> extends React.Component<P> {
          render() { return this.props.rows.map((r) => <Row.Item key={r.id} {...r} />); }
        }
        export const Select = forwardRef<HTMLDivElement, Props>(function Select({ options, onChange = noop }, ref) {
          const [value, setValue] = useState<string>(() => options[0]!.value);
          const items = options.map(({ label }) => <li>{label}</li>);
          return <Menu ref={ref} items={items} onPick={async v => { await save?.(v); }} />;
        });
        """,
    ),
    "server": (
        "javascript",
        """
        "use strict";
        const http = require("http"), { inspect: show } = require("util");
        var Router = module.exports = function Router(options) {
          if (!(this instanceof Router)) return new Router(options);
        };
        Router.prototype.use = function use(path, ...handlers) {
          this.stack.push({ path, handle: handlers.flat() });
          return this;
        };
        class Server extends http.Server {
          #port;
          static defaults = { port: 80 };
          get port() { return this.#port; }
          async listen() { await super.listen(this.#port); }
        }
        for (let i = 0, n = methods.length; i < n; i++) exports[methods[i]] = (path) => route(methods[i], path);
        process.on("exit", function onExit(code) { try { show(code); } catch { } });
        """,
    ),
}  # fmt: skip


@pytest.mark.parametrize("title", [*SAMPLES, *CASES])
def test_nothing_is_missed_that_the_tree_shows(title: str):
    language, text = SAMPLES.get(title) or CASES[title]
    source = parse_fixture(text).files["main"].encode()
    facts = check_document(source, language)
    spoken = get_language(language)
    tree = spoken.parse(source) if spoken else None
    assert tree is not None
    calls, names = walk(source, tree.root_node)
    assert {(call.start, call.end) for call in facts.calls} == calls
    assert len(facts.calls) == len(calls)
    assert names <= {s.name_start for s in facts.symbols}


def test_facts_are_in_the_file_that_holds_them():
    """A document embedded in another keeps the offsets of the file."""
    text = b"<script>\n" + b"export const f = (a) => g(a);\n" + b"</script>\n"
    segment = Segment("script", "typescript", ((9, 39),))
    (inner,) = extract_facts(text, "html", [segment]).embedded
    assert [full_source(text, chunk) for chunk in inner.chunks[1:]] == ["export const f = (a) => g(a);"]
    assert [(s.name, text[s.name_start : s.name_end]) for s in inner.symbols] == [("f", b"f"), ("a", b"a")]
