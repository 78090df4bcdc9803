"""Python: the marks of tests/cases/python.md, and what a mark cannot say: signatures, docs, flows, chunks."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest

from cq.languages.facts import embedding_text
from cq.model.code import (
    Boolean,
    CallEnd,
    Constant,
    Each,
    Element,
    Integer,
    Joined,
    Listing,
    Name,
    Operated,
    Seen,
    Text,
)
from cq.model.facts import Call, FileFacts, Import, Symbol
from tests.support.fixture import parse_fixture
from tests.support.invariants import check_document

PAGE = (Path(__file__).parents[1] / "cases" / "python.md").read_text("utf-8")
CASES = dict(re.findall(r"^## (.+?)$.*?^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("title", CASES)
def test_case(title: str):
    """The marks are the whole truth about definitions, calls and imports."""
    fixture = parse_fixture(CASES[title])
    facts = check_document(fixture.files["main"].encode(), "python")
    found = {(start, label) for start, _, label in describe(facts)}
    marked = {(mark.start, mark.label.removeprefix("bug: ")) for mark in fixture.marks}
    assert found == marked


def test_a_lambda_with_an_annotation_is_one_symbol():
    facts = read("class A:\n    f: Callable[[int], str] = lambda x: str(x)\n")
    names = [(s.kind, s.qualified_name) for s in facts.symbols if s.kind not in ("lambda", "parameter")]
    assert names == [("class", "A"), ("method", "A.f")]


def test_there_are_as_many_cases_as_promised():
    assert len(CASES) >= 20


def describe(facts: FileFacts) -> list[tuple[int, int, str]]:
    """(start, end, label) of every definition with a name, call and import, as the page writes them."""
    marks = [
        (s.name_start, s.name_end, f"def {s.kind} {s.qualified_name}") for s in facts.symbols if s.kind != "lambda"
    ]
    for call in facts.calls:
        start = call.start if call.name_start < 0 else call.name_start
        end = call.end if call.name_start < 0 else call.name_start + len(call.name.encode())
        marks.append((start, end, f"call {call.kind} {call.callee}({', '.join(_arguments(call))})"))
    return marks + [(item.start, item.end, f"import {_import(item)}") for item in facts.imports]


def _arguments(call: Call) -> list[str]:
    return [f"{argument.name}={argument.kind}" if argument.name else argument.kind for argument in call.args]


def _import(item: Import) -> str:
    names = [f"{binding.local}={binding.imported}" for binding in item.bindings]
    return " ".join([item.kind, "." * item.level + item.module, *names])


def read(source: str) -> FileFacts:
    """Facts of a snippet that keeps every rule."""
    return check_document(dedent(source).encode(), "python")


def symbol(facts: FileFacts, name: str) -> Symbol:
    (found,) = [symbol for symbol in facts.symbols if symbol.qualified_name == name]
    return found


def chunks(facts: FileFacts) -> list[tuple[int, str, str]]:
    return [(chunk.depth, chunk.kind, chunk.name) for chunk in facts.chunks]


def test_heads():
    facts = read('''
        class A(Base, Generic[T], metaclass=M):
            """What it is.

              Indented.
            Not.
            """
            @abstractmethod
            async def _f(self,
                         a: dict[str, int] = {},  # why
                         *, b=(1, 2),
                         ) -> "B": ...
            @staticmethod
            def g(): r"""Raw \\d."""
        ''')  # fmt: skip
    a, f, g = symbol(facts, "A"), symbol(facts, "A._f"), symbol(facts, "A.g")
    assert a.signature == "class A(Base, Generic[T], metaclass=M)"
    assert a.bases == ("Base", "Generic[T]")
    assert a.doc == "What it is.\n\n  Indented.\nNot."
    assert f.signature == 'async def _f(self, a: dict[str, int] = {}, *, b=(1, 2)) -> "B"'
    assert f.decorators == ("abstractmethod",)
    assert set(f.modifiers) == {"async", "abstract", "private"}
    assert (g.modifiers, g.doc) == (("static",), "Raw \\d.")
    assert [symbol(facts, f"A._f.{name}").signature for name in "ab"] == ["a: dict[str, int] = {}", "b=(1, 2)"]


def test_what_is_exported():
    def names(source: str) -> list[str]:
        return [symbol.name for symbol in read(source).symbols if symbol.exported]

    assert names("def a(): x = 1\ndef _b(): ...\nC = 1\nclass D:\n    e = 1\n") == ["a", "C", "D"]
    facts = read('__all__ = ["a", "_b"]\ndef a(): ...\ndef _b(): ...\ndef c(): ...\n')
    assert [symbol.name for symbol in facts.symbols if symbol.exported] == ["a", "_b"]
    assert [(export.name, export.exported) for export in facts.exports] == [("_b", "_b"), ("a", "a")]


def test_scopes_of_calls():
    """Defaults, annotations, bases and decorators run outside the definition they stand in; class bodies inside it."""
    facts = read("""
        @dec(one())
        def f(a=two(), b: three() = 1) -> four():
            five()
        class C(six()):
            seven()
            def m(self): eight()
        g = lambda: nine()
        """)
    scopes = {call.name: facts.symbols[call.scope].qualified_name if call.scope >= 0 else "" for call in facts.calls}
    assert scopes == {
        "dec": "", "one": "", "two": "", "three": "", "four": "", "five": "f", "six": "", "seven": "C", "eight": "C.m",
        "nine": "g",
    }  # fmt: skip


def test_receivers_and_bounded_arguments():
    facts = read(
        f"(a.b\n  .c(x))\nf({', '.join('abcdefghij')}, k=1)\ng('{'s' * 200}', [[[1]]], [1])\nh(\n  1, # one\n)\n"
    )
    chained, many, long, commented = facts.calls
    assert (chained.callee, chained.name, chained.receiver) == ("a.b .c", "c", "a.b")
    assert (len(many.args), many.arg_count, many.keywords) == (8, 10, ("k",))
    assert len(long.args[0].text) == 80
    assert [argument.depth for argument in long.args] == [0, 2, 1]
    assert (commented.arg_count, [argument.text for argument in commented.args]) == (1, ["1"])


def test_flows():
    facts = read("""
        x: Config = Config.load()
        def f(self, p, k: int = 1):
            self.p = p
            a = b = self.make()
            with open(p) as handle: ...
            try: ...
            except (KeyError, errors.Bad) as error:
                raise Failed(error) from None
            yield a
            await task
            return self.p
        """)
    assert {(flow.kind, flow.target, flow.value, flow.value_kind) for flow in facts.flows} >= {
        ("annotate", "x", "Config", "type"),
        ("assign", "x", "Config.load", "call"),
        ("assign", "self.p", "p", "name"),
        ("assign", "a", "self.make", "call"),
        ("assign", "b", "self.make", "call"),
        ("assign", "handle", "open", "call"),
        ("catch", "", "KeyError", "name"),
        ("catch", "", "errors.Bad", "attribute"),
        ("raise", "", "Failed", "call"),
        ("yield", "", "a", "name"),
        ("await", "", "task", "name"),
        ("return", "", "self.p", "attribute"),
    }
    starts = {call.start for call in facts.calls}
    assert all(flow.value_start in starts for flow in facts.flows if flow.value_kind == "call")


def test_roles_of_references():
    facts = read("""
        from m import K
        @deco
        def f(a: K) -> list[K]:
            a.attr = other
            return call(kw=a)
        a = 1
        a = 2
        """)
    roles = {(reference.name, reference.role) for reference in facts.references}
    assert roles == {
        ("m", "import"), ("K", "import"), ("deco", "call"), ("K", "type"), ("list", "type"), ("a", "reference"),
        ("attr", "assignment"), ("other", "reference"), ("call", "call"), ("kw", "keyword"), ("a", "assignment"),
    }  # fmt: skip


def test_chunks_of_a_file():
    facts = read('''
        #!/usr/bin/env python
        """Doc."""

        import os
        import sys; from a import b

        # Stands alone.

        X = 1  # why
        # Two lines,
        # one comment.
        run(X)
        for i in b: os.go(i)
        if X:
            def hidden(): return sys

        @dec
        class C:
            y = 2
            def m(self):
                def inner(): return b
                return inner
        p = 1; q = 2
        ''')
    assert chunks(facts) == [
        (0, "module", ""),
        (0, "comment", "#!/usr/bin/env python"),
        (0, "expression", '"""Doc."""'),
        (0, "import", "import:os"),
        (0, "import", "import:sys"),
        (0, "import", "import:a"),
        (0, "comment", "# Stands alone."),
        (0, "constant", "X"),
        (0, "comment", "# Two lines,"),
        (0, "expression", "run(X)"),
        (0, "control", "for i in b: os.go(i)"),
        (0, "control", "if X: def hidden(): return sys"),
        (1, "function", "hidden"),
        (0, "class", "C"),
        (1, "method", "m"),
        (2, "function", "inner"),
        (0, "variable", "p"),
        (0, "variable", "q"),
    ]


def test_relevant_imports_reach_those_that_hold_their_users():
    facts = read(
        "import os\nimport sys\nfrom a import b as c, d\ndef f():\n    def g(): return c\n    return os.path\nx = 1\n"
    )
    used = {chunk.name: [facts.imports[number].module for number in chunk.imports] for chunk in facts.chunks}
    assert used == {"": [], "import:os": [], "import:sys": [], "import:a": [], "f": ["os", "a"], "g": ["a"], "x": []}


def test_children_are_collapsed_to_signatures():
    source = dedent("""\
        class C(B):
            '''Doc.'''

            x = 1

            @dec
            async def m(self, a: int = 1) -> str:
                return compute(a)

            def n(self): return 2
        """)
    facts = read(source)
    assert embedding_text(source.encode(), facts, 1) == dedent("""\
        class C(B):
            '''Doc.'''

            x = 1

            async def m(self, a: int = 1) -> str: ...

            def n(self): ...""")
    assert embedding_text(source.encode(), facts, 2).endswith("return compute(a)")


def test_a_big_class():
    methods = "".join(
        f"    def m{n}(self, a):\n        total = a * {n}\n        return helper_{n}(total)\n" for n in range(60)
    )
    source = f"class Big:\n    def __init__(self):\n        pass\n{methods}"
    facts = read(source)
    big, *members = facts.chunks[1:]
    assert len(members) == len(big.children) == 61
    assert {member.parent for member in members} == {1}
    collapsed = embedding_text(source.encode(), facts, 1)
    assert all(f"def m{n}(self, a): ..." in collapsed for n in range(60))
    assert "helper_" not in collapsed


def test_a_huge_literal_is_cut_into_parts_at_line_ends():
    rows = "".join(f'    "key {n}": "{"v" * 50}",\n' for n in range(6000))
    source = f"TABLE = {{\n{rows}}}\nafter = 1\n"
    facts = read(source)
    (table,) = [chunk for chunk in facts.chunks if chunk.name == "TABLE"]
    parts = [facts.chunks[number] for number in table.children]
    assert len(parts) >= 3
    assert [part.kind for part in parts] == ["part"] * len(parts)
    assert "".join(source[part.start : part.end] for part in parts) == source[table.start : table.end]
    assert all(source[part.end - 1] == "\n" for part in parts[:-1])
    assert facts.chunks[-1].name == "after"


def test_a_huge_class_keeps_its_methods_under_its_parts():
    methods = "".join(f"    x{n} = '{'v' * 80}'\n    def m{n}(self): return {n}\n" for n in range(2000))
    facts = read(f"class Big:\n{methods}")
    kinds = [chunk.kind for chunk in facts.chunks]
    assert kinds.count("method") == 2000
    assert {facts.chunks[chunk.parent].kind for chunk in facts.chunks if chunk.kind == "method"} == {"part"}


def test_line_ends_do_not_change_what_is_found():
    text = "import os\n\nclass C:\n    '''Doc\n    more.'''\n    def f(self,\n          a): return os\n"
    unix, dos = read(text), check_document(text.replace("\n", "\r\n").encode(), "python")
    assert [chunk.uid_suffix for chunk in dos.chunks] == [chunk.uid_suffix for chunk in unix.chunks]
    assert [(s.kind, s.qualified_name, s.signature, s.doc) for s in dos.symbols] == [
        (s.kind, s.qualified_name, s.signature, s.doc) for s in unix.symbols
    ]


@pytest.mark.parametrize("source", ["", "\n\n  \n", "\ufeff", "# only\n\n# comments\n", "pass\n", "...", "\x0c\n"])
def test_next_to_nothing(source: str):
    facts = check_document(source.encode(), "python")
    assert (facts.symbols, facts.calls, facts.imports) == ((), (), ())
    assert facts.chunks[0].kind == "module"


def test_an_error_has_a_place_and_costs_only_what_it_touches():
    source = "def a(): return one()\n\nx = = 2\n\ndef b(): return two()\n"
    facts = read(source)
    assert {"a", "b"} <= {symbol.name for symbol in facts.symbols}
    assert [call.name for call in facts.calls] == ["one", "two"]
    assert facts.problems
    for problem in facts.problems:
        assert problem.code == "syntax"
        assert 22 <= problem.start <= problem.end <= 32


def test_names_of_the_same_scope_stay_apart():
    facts = read("def f():\n    a = [x for x in y]\n    g(lambda x: 1)\n    g(lambda x: 2)\n")
    names = [symbol.identity_name for symbol in facts.symbols if symbol.name == "x"]
    assert len(names) == 3
    assert len(set(names)) >= 2
    assert {symbol.qualified_name for symbol in facts.symbols if symbol.name == "x"} == {"f.x"}


def test_a_comprehension_variable_is_no_field():
    facts = read("class A:\n    x = [i for i in y]\n")
    kinds = {symbol.name: (symbol.kind, symbol.modifiers) for symbol in facts.symbols}
    assert kinds["x"] == ("field", ())
    assert kinds["i"] == ("variable", ("comprehension",))


def test_a_global_that_only_a_function_binds_is_defined_in_the_module():
    facts = read("def f():\n    global g\n    g = 1\n    g = 2\n")
    assert [symbol.qualified_name for symbol in facts.symbols] == ["f", "g"]
    assert [s.qualified_name for s in read("g = 0\ndef f():\n    global g\n    g = 1\n").symbols] == ["g", "f"]


def test_every_statement_about_all_counts():
    text = '__all__ = ["a"]\n__all__ += ["b"]\n__all__.extend(["c"])\na = b = c = d = 1\n'
    facts = read(text)
    assert sorted(export.name for export in facts.exports) == ["a", "b", "c"]
    assert {symbol.name: symbol.exported for symbol in facts.symbols if len(symbol.name) == 1} == {
        "a": True, "b": True, "c": True, "d": False,
    }  # fmt: skip


def test_names_are_clean():
    assert [chunk.name for chunk in read("import os, sys\n").chunks] == ["", "import:os"]
    assert [call.callee for call in read("a.b \\\n    .c()\n").calls] == ["a.b .c"]
    assert read("@dec  # why\ndef f(): ...\n").symbols[0].decorators == ("dec",)


def test_a_chain_of_twenty_thousand_calls_is_read_whole():
    facts = read("x" + ".a(1)" * 20_000 + "\n")
    assert len(facts.calls) == 20_000
    assert max(len(call.callee) for call in facts.calls) <= 200


def test_a_chain_of_fifty_thousand_subscripts_costs_little():
    code = read("x" + "[0]" * 50_000 + "\n").code
    assert code is not None
    assert code.runs[-1][2:] == ("[]", "x")
    targets = read("x[0] = y[1]\n").code
    assert targets is not None
    assert [run[2:] for run in targets.runs] == [("[]=", "x"), ("[]", "y")]


def test_what_was_read_before_does_not_matter_around_an_error():
    broken = "[c\n  '(b= # c\n 1)"
    before = read(broken)
    read("f(b= # c\n 1)\n")
    assert read(broken) == before


def test_a_comprehension_that_is_passed_twice_is_seen_from_where_it_stands():
    facts = read("show([row.name for row in rows])\nshow([row.name for row in rows])\n")
    assert facts.code is not None
    assert [site.args[0] for site in facts.code.sites] == [
        Each("list", Seen(6, Name("row.name"))),
        Each("list", Seen(39, Name("row.name"))),
    ]


def test_tokens_that_are_no_statement_stay_together_by_line():
    facts = read("def f(:\n  x = (\n")
    assert [(chunk.kind, chunk.name) for chunk in facts.chunks[1:]] == [
        ("statement", "def f(:"),
        ("statement", "x = ("),
    ]
    assert [problem.code for problem in facts.problems] == ["syntax"]


def test_a_missing_name_is_no_value():
    facts = check_document(b"def f(c: Callable[], d: Tuple[int, ]): ...\nx = Tuple[]\n", "python")
    assert facts.code is not None
    assert [p.type for p in facts.code.definitions[0].parameters] == [
        Element(Name("Callable"), (None,)),
        Element(Name("Tuple"), (Name("int"),)),
    ]


def test_a_formatted_text_has_its_parts():
    code = read("""run(f"a{x.y!r:>9}b{{", f'{z()}', "p" f"q{w}", rf"n", shell=True)\n""").code
    assert code is not None
    assert code.sites[0].args == (
        Joined((Text("a"), Name("x.y"), Text("b{{"))),
        Joined((CallEnd(29),)),
        Joined((Text("p"), Text("q"), Name("w"))),
        Constant("str"),
    )
    assert code.sites[0].keywords == (("shell", Boolean(True)),)


def test_branches_know_their_conditions():
    code = read(
        """
        if a and not (b == 1):
            x = 1
        elif f(c):
            x = 2
        else:
            x = 3
        while d in e:
            pass
        for g in h:
            pass
        assert i
        try:
            pass
        except (J, K) as k:
            pass
        finally:
            pass
        match m:
            case 1:
                pass
        """
    ).code
    assert code is not None
    first = Operated("and", Name("a"), Operated("not", Operated("==", Name("b"), Integer(1)), None))
    call = code.branches[1].value
    assert isinstance(call, int)
    assert [(branch.kind, branch.value) for branch in code.branches] == [
        ("if", first),
        ("if", call),
        ("if", Operated("not", Operated("or", first, call), None)),
        ("loop", Operated("in", Name("d"), Name("e"))),
        ("loop", None),
        ("assert", Name("i")),
        ("try", None),
        ("except", Listing("tuple", (Name("J"), Name("K")))),
        ("finally", None),
        ("case", Name("m")),
    ]
