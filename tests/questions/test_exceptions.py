"""What is raised, what catches it, and what nobody does."""

from __future__ import annotations

import ast
import types
from pathlib import Path

import pytest

from cq import Workspace
from cq.languages.facts import extract_facts
from cq.model.answer import ExceptionDetails
from cq.model.errors import UsageError
from cq.questions.exceptions import ExceptionsOptions
from cq.questions.exceptions.handlers import Handlers, find_handlers
from tests.support.checks import check_exceptions, open_fixture
from tests.support.samples import read_installed


def test_along_the_calls_to_who_catches_it(tmp_path: Path):
    answer = check_exceptions(
        tmp_path,
        """
        #- app/base.py
        class Problem(Exception): pass
        class Small(Problem): pass
        class Other(KeyError): pass
        def save(row):
            if not row:
                raise Small(row)
                #< caught Small
            raise Other(row) from None
            #< uncaught Other
        class Loader:
            def load(self):
                try:
                    self.x = find(1)
                    raise ValueError(self.x)
                    #< handled ValueError
                except ValueError:
                #< handler
                    self.z = 1
                    raise OSError
                    #< leaves OSError
        #- app/use.py
        from app import base
        from app.base import save
        def write(rows):
            try:
                save(rows)
            except base.Problem:
            #< handler
                return None
        def main():
            write([])
        """,
    )
    assert answer.summary["by_status"] == {"uncaught": 1, "leaves": 1, "caught": 1, "handled": 1}
    rows = [finding.details for section in answer.sections for finding in section.findings]
    caught = next(row for row in rows if isinstance(row, ExceptionDetails) and row.status == "caught")
    assert caught.caught_at == ("app/use.py:6 except",)
    uncaught = next(row for row in rows if isinstance(row, ExceptionDetails) and row.status == "uncaught")
    assert uncaught.witness == (
        "app/use.py:write calls app/base.py:save at app/use.py:5",
        "app/use.py:main calls app/use.py:write at app/use.py:9",
    )


def test_tests_and_examples_are_no_callers(tmp_path: Path):
    check_exceptions(
        tmp_path,
        """
        #- app.py
        def f():
            x = 1
            raise ValueError
            #< leaves ValueError
        #- tests/test_app.py
        from app import f
        def test_f():
            f()
            raise KeyError
            #< uncaught KeyError
        def test_all():
            test_f()
        """,
    )
    with open_fixture(tmp_path / "again", "#- app.py\ndef f():\n    x = 1\n    raise ValueError") as workspace:
        answer = workspace.exceptions("app.py:2")  # x stands in f
        assert answer.insight is not None
        assert answer.insight.target is not None
        assert answer.insight.target.name == "f"


def test_what_a_try_protects_and_what_it_does_not(tmp_path: Path):
    check_exceptions(
        tmp_path,
        """
        #- a.py
        def f(x):
            try:
                raise KeyError(x)
                #< handled KeyError
            except LookupError:
            #< handler empty
                pass
            else:
                raise ValueError
                #< leaves ValueError
            finally:
                raise OSError
                #< leaves OSError
        def g():
            try:
                raise IndexError
                #< leaves IndexError
            except (IndexError, TypeError) as error:
            #< handler reraises
                if x: raise error
                #     ^^^^^^^^^^^ again error
                raise RuntimeError from error
                #< leaves RuntimeError
            except:
            #< handler bare broad
                def inner():
                    raise
                    #< leaves
        def h():
            try:
                raise SystemExit
                #< leaves SystemExit
            except Exception:
            #< handler broad
                log()
        def swallow():
            try:
                raise SystemExit
                #< handled SystemExit
            finally:
                return 1
        def group():
            try:
                raise ValueError
                #< handled ValueError
            except* ValueError:
            #< handler empty
                ...
        """,
    )


def test_context_managers_that_suppress(tmp_path: Path):
    check_exceptions(
        tmp_path,
        """
        #- managers.py
        from contextlib import contextmanager
        @contextmanager
        def quiet():
            try:
                yield
            except ValueError:
            #< handler empty
                pass
        class Silent:
            def __enter__(self): return self
            def __exit__(self, *args):
                return True
        class Open:
            def __enter__(self): return self
            def __exit__(self, *args):
                close()
        #- use.py
        import contextlib
        from contextlib import suppress
        from managers import Open, Silent, quiet
        def f():
            with suppress(KeyError, OSError):
                raise FileNotFoundError
                #< handled FileNotFoundError
            with open("x"), contextlib.suppress(KeyError):
                raise ValueError
                #< leaves ValueError
            with quiet():
                raise UnicodeError
                #< handled UnicodeError
            with quiet():
                raise TypeError
                #< leaves TypeError
            with Silent():
                raise TypeError
                #< handled TypeError
            with Open():
                raise AttributeError
                #< leaves AttributeError
        """,
    )


def test_a_target_says_what_may_leave_it(tmp_path: Path):
    snippet = """
        #- a.py
        def deep(): raise KeyError(1)
        def middle():
            try:
                deep()
            except ValueError:
                pass
            raise TypeError
        def top():
            try:
                middle()
            except KeyError:
                pass
        """
    with open_fixture(tmp_path, snippet) as workspace:
        answer = workspace.exceptions("middle")
        rows = [finding.details for finding in answer.sections[0].findings]
        escapes = {row.exception: row for row in rows if isinstance(row, ExceptionDetails)}
        assert {name: row.status for name, row in escapes.items()} == {"TypeError": "uncaught", "KeyError": "caught"}
        assert escapes["KeyError"].witness == ("a.py:middle calls a.py:deep at a.py:4",)
        assert escapes["TypeError"].witness == ("a.py:top calls a.py:middle at a.py:10",)
        assert (answer.summary["raised"], answer.summary["handlers"]) == (1, 1)
        nothing = workspace.exceptions("nowhere")
        assert nothing.found == 0
        with pytest.raises(UsageError, match="--depth 0"):
            workspace.exceptions(ExceptionsOptions("middle", depth=0))


def test_typescript_and_rust(tmp_path: Path):
    answer = check_exceptions(
        tmp_path,
        """
        //- a.ts
        export function f(x: number) {
            if (x) throw new TypeError("x");
        //         ^^^^^^^^^^^^^^^^^^^^^^^^^ uncaught TypeError
        }
        export function g() {
            try { f(1); } catch (e) { }
        //                ^^^^^^^^^^^^^ handler empty
            try { f(2); } catch (e) { throw e; }
        //                ^^^^^^^^^^^^^^^^^^^^^^ handler reraises
        //                            ^^^^^^^^ again e
        }
        //- b.rs
        fn f(x: Option<u8>) -> Result<u8, E> {
            let y = x.unwrap();
        //          ^^^^^^^^^^ uncaught panic
            let z = h()?;
            assert_eq!(z, x.unwrap());
        //  ^^^^^^^^^^^^^^^^^^^^^^^^^ uncaught panic
        //                ^^^^^^^^^^ uncaught panic
            Err(E::Bad)
        //  ^^^^^^^^^^^ value E::Bad
        }
        fn main() { f(None); panic!("no") }
        //                   ^^^^^^^^^^^^ leaves panic
        """,
    )
    assert answer.summary["passed"] == 1


def test_a_language_that_is_not_covered_is_said(tmp_path: Path):
    (tmp_path / "main.go").write_text('package main\nfunc main() { panic("x") }\n')
    (tmp_path / "data.json").write_text("{}")
    with Workspace.open(tmp_path, index_dir=tmp_path.with_name("index")) as workspace:
        for target in ("main.go", "main", ""):
            (event,) = workspace.exceptions(target).degraded
            assert (event.category, "go (1 file)" in event.message) == ("language", True)
        (event,) = workspace.side_effects("main.go").degraded
        assert event.category == "language"  # and not that loading it only defines things


def test_a_language_without_links_is_said(tmp_path: Path):
    (tmp_path / "main.hs").write_text("module Main where\nimport Data.List\nf x = error x\nmain = f 1\n")
    with Workspace.open(tmp_path, index_dir=tmp_path.with_name("index")) as workspace:
        for target in ("main.hs", "f", ""):
            (event,) = workspace.exceptions(target).degraded
            assert (event.category, "haskell (1 file)" in event.message) == ("language", True)
        assert "language" in {event.category for event in workspace.side_effects("main.hs").degraded}
        for answer in (workspace.impact("f"), workspace.graph("f"), workspace.imports(), workspace.rank()):
            assert "not_linked" in {event.category for event in answer.degraded}, answer.command


def test_the_same_as_pythons_own_tree():
    """Every raise and every handler of real packages, which are bare and which are empty."""
    for source in read_installed(limit=250):
        try:
            tree = ast.parse(source.text)
        except SyntaxError:
            continue
        found = read_handlers(source.text)
        starts = [0, *(at + 1 for at, byte in enumerate(source.text) if byte == 10)]
        raises = sorted(starts[n.lineno - 1] + n.col_offset for n in ast.walk(tree) if isinstance(n, ast.Raise))
        tries = [node for node in ast.walk(tree) if isinstance(node, ast.Try | ast.TryStar)]
        handlers = sorted(
            (starts[h.lineno - 1] + h.col_offset, h.type is None, all(map(_is_nothing, h.body)))
            for node in tries
            for h in node.handlers
        )
        assert [item.start for item in found.raised] == raises, source.path
        guards = [guard for guard in found.guards if guard.kind == "try"]
        assert sorted((h.start, not h.types, h.empty) for g in guards for h in g.handlers) == handlers, source.path
        bodies = sorted(_find_start(node.body[0], starts) for node in tries if node.handlers)
        assert sorted(guard.start for guard in guards) == bodies, source.path


def read_handlers(text: bytes) -> Handlers:
    facts = extract_facts(text, "python")
    assert facts.code is not None
    return find_handlers(text, facts.code, facts.flows, facts.calls)


def _find_start(node: ast.stmt, starts: list[int]) -> int:
    decorators = getattr(node, "decorator_list", ())
    if decorators:
        return starts[decorators[0].lineno - 1] + decorators[0].col_offset - 1  # the @
    return starts[node.lineno - 1] + node.col_offset


def _is_nothing(node: ast.stmt) -> bool:
    match node:
        case ast.Pass() | ast.Expr(value=ast.Constant(value=str() | types.EllipsisType())):
            return True
        case _:
            return False


def test_hostile_nesting_is_bounded():
    deep = b"".join(b" " * n + b"try:\n" for n in range(300)) + b" " * 300 + b"raise X\n"
    deep += b"".join(b" " * n + b"except: raise\n" for n in reversed(range(300)))
    found = read_handlers(deep)
    assert sum(item.kind == "raise" for item in found.raised) >= 1
    assert read_handlers(b"\xff\x00raise (((").guards == ()
