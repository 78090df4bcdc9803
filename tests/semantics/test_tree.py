"""Questions about links, asked of a real index."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cq.model.edge import Candidate
from cq.semantics.tree import Semantics, open_semantics
from cq.store import database
from cq.store.read import Reader
from tests.support.fixture import parse_fixture
from tests.support.index import build

SNIPPET = """
#- shapes.py
class Shape:
    def area(self): ...
class Square(Shape):
    def __init__(self, side: "int"): ...
    def area(self):
        return super().area()
def make() -> Shape:
    raise Broken
class Broken(Exception): ...
#- app.py
from shapes import Square, make
def main(unknown, names):
    Square(1).area()
    make().area()
    unknown.area()
    print(make)
    sorted(names, key=rank)
def rank(name): ...
@make
def decorated(): ...
"""


USAGES = """
#- base.py
def handler(): ...
class Kind: ...
class Other(Kind): ...
def alone(): ...
#- use.py
import base
from base import handler as run, Kind, Other
TABLE = {"run": run}
def picked():
    return [run]
def handed(call, run=None):
    call(Kind)
    return run
def compared(x):
    return type(x) is Kind or isinstance(x, Other)
def called():
    run()
    return run
def default(kind=Kind): ...
class Under(Kind): ...
def raising():
    raise Other
def typed(kind: Kind): ...
def read():
    return base.alone
"""


@pytest.fixture
def semantics(tmp_path: Path) -> Iterator[Semantics]:
    with open_edges(tmp_path, SNIPPET) as found:
        yield found


@contextlib.contextmanager
def open_edges(folder: Path, snippet: str) -> Iterator[Semantics]:
    root, index = folder / "repo", folder / "i" / "index.db"
    root.mkdir()
    for path, text in parse_fixture(snippet).files.items():
        (root / path).write_text(text)
    build(index, root, jobs=1)
    with contextlib.closing(database.connect(index)) as connection:
        reader = Reader(connection, os.fspath(root))
        tree = reader.tree()
        assert tree is not None
        yield open_semantics(reader, tree.id)


def test_callers_certain_and_possible(semantics: Semantics):
    found = [
        (edge.source.name, edge.call, edge.ref.status, edge.ref.evidence)
        for edge in semantics.referrers.find_callers(Candidate("shapes.py", 0, "Shape.area"))
    ]
    assert found == [
        ("main", 3, "ambiguous", "parameter"),
        ("main", 4, "ambiguous", "name"),
        ("Square.area", 1, "resolved", "mro"),
    ]


def test_a_class_is_made_and_its_constructor_called(semantics: Semantics):
    made = semantics.referrers.find_callers(Candidate("shapes.py", 0, "Square"))
    assert [(edge.kind, edge.source.name) for edge in made] == [("instantiates", "main")]
    called = semantics.referrers.find_callers(Candidate("shapes.py", 0, "Square.__init__"))
    assert [(edge.kind, edge.source.name) for edge in called] == [("calls", "main")]


def test_edges_out(semantics: Semantics):
    def out(name: str, path: str = "shapes.py") -> list[tuple[str, list[str]]]:
        found = semantics.referrers.find_out(Candidate(path, 0, name))
        return [(edge.kind, [place.name for place in edge.ref.candidates]) for edge in found if edge.ref.candidates]

    assert out("Square") == [("inherits", ["Shape"])]
    assert out("Square.area") == [("calls", ["Shape.area"]), ("overrides", ["Shape.area"])]
    assert out("make") == [("type_uses", ["Shape"]), ("raises", ["Broken"])]
    assert out("", "app.py") == [("decorates", ["make"]), ("imports", ["Square"]), ("imports", ["make"])]
    assert ("calls", ["rank"]) in out("main", "app.py")


def test_edges_into(semantics: Semantics):
    found = semantics.referrers.find_into(Candidate("shapes.py", 0, "make"))
    assert [(edge.kind, edge.source.name) for edge in found] == [
        ("calls", "main"), ("decorates", ""), ("imports", ""),
    ]  # fmt: skip


def test_what_stands_at_a_place(semantics: Semantics):
    text = parse_fixture(SNIPPET).files["app.py"].encode()

    def at(piece: bytes, skip: int = 0) -> tuple[str, list[str]] | None:
        ref = semantics.meanings.find_at("app.py", text.index(piece) + skip)
        return None if ref is None else (ref.status, [place.name for place in ref.candidates])

    assert at(b"area()") == ("resolved", ["Square.area"])
    assert at(b"unknown.area", 8) == ("ambiguous", ["Shape.area", "Square.area"])
    assert at(b"print(make)", 6) == ("resolved", ["make"])
    assert at(b"unknown.area") == ("resolved", ["main.unknown"])
    assert at(b"import Square", 7) == ("resolved", ["Square"])
    assert at(b"key=rank", 4) == ("resolved", ["rank"])
    assert at(b"(1)") is None


def test_places_and_symbols_are_inverse(semantics: Semantics):
    place = Candidate("shapes.py", 0, "Square.area")
    number = semantics.documents.find_symbol(place)
    assert number is not None
    assert semantics.documents.find_place("shapes.py", 0, number) == place
    assert semantics.documents.find_place("shapes.py", 0, -1) == Candidate("shapes.py", 0, "")


def test_usages_name_a_definition_without_any_other_edge_to_it(tmp_path: Path):
    found: dict[str, list[str]] = {}
    with open_edges(tmp_path, USAGES) as semantics:
        for name in ("handler", "Kind", "Other", "alone"):
            target = Candidate("base.py", 0, name)
            usages = semantics.usages.find_usages_into(target, semantics.referrers.find_into(target))
            found[name] = [f"{edge.source.path}:{edge.source.name} {edge.ref.status}" for edge in usages]
        out = Candidate("use.py", 0, "compared")
        named = [edge.ref.name for edge in semantics.usages.find_usages_out(out, semantics.referrers.find_out(out))]
    assert found == {
        "handler": ["use.py:picked resolved"],
        "Kind": ["use.py:handed resolved", "use.py:compared resolved", "use.py:default resolved"],
        "Other": ["use.py:compared resolved"],
        "alone": ["use.py:read resolved"],
    }
    assert named == ["Kind", "Other"]


VALUES = """
#- limits.py
LIMIT = 3
#- again.py
from limits import LIMIT as MOST
#- app.py
from limits import LIMIT
from again import MOST
from os import sep
print(LIMIT, MOST, sep)
#- lim.ts
export const TOP = 4
#- app.ts
import { TOP } from "./lim"
console.log(TOP)
"""


def test_an_imported_value_is_of_the_module_that_binds_it(tmp_path: Path):
    files = parse_fixture(VALUES).files
    with open_edges(tmp_path, VALUES) as semantics:

        def at(path: str, piece: str) -> tuple[str, list[Candidate]] | None:
            ref = semantics.meanings.find_at(path, files[path].rindex(piece))
            return None if ref is None else (ref.status, list(ref.candidates))

        assert at("app.py", "LIMIT") == ("resolved", [Candidate("limits.py", 0, "LIMIT")])
        assert at("app.py", "MOST") == ("resolved", [Candidate("limits.py", 0, "")])  # it has another name there
        assert at("app.py", "sep") == ("external", [])
        assert at("app.ts", "TOP") == ("resolved", [Candidate("lim.ts", 0, "TOP")])
        assert semantics.documents.find_near("app.py", 0) == {"limits.py"}


ATTRIBUTES = """
#- base.py
LIMIT = 3
class Base:
    size = 1
    def __init__(self):
        self.rows = []
    @property
    def parts(self): return self.rows
    def count(self): return len(self.parts) + self.size
class Other:
    parts = 2
    def show(self, it): return self.parts, it.parts
#- app.py
from base import *
import base
class Child(Base):
    def all(self): return self.parts
def most(): return LIMIT + base.LIMIT + Base.size
"""


def test_attributes_read_off_self_a_class_or_a_module(tmp_path: Path):
    with open_edges(tmp_path, ATTRIBUTES) as semantics:
        mentions = (
            ("base.py", "parts"), ("base.py", "size"), ("base.py", "rows"), ("app.py", "parts"), ("app.py", "LIMIT"),
            ("app.py", "size"),
        )  # fmt: skip
        meant = {
            (path, name): [
                getattr(ref and ref.resolved, "name", None) for *_, ref in semantics.meanings.find_named(path, name)
            ]
            for path, name in mentions
        }
        target = Candidate("base.py", 0, "Base.parts")
        usages = semantics.usages.find_usages_into(target, semantics.referrers.find_into(target))
    assert meant == {
        ("base.py", "parts"): ["Base.parts", "Other.parts", None],
        ("base.py", "size"): ["Base.size"],
        ("base.py", "rows"): ["Base.rows"],
        ("app.py", "parts"): ["Base.parts"],
        ("app.py", "LIMIT"): ["LIMIT", "LIMIT"],
        ("app.py", "size"): ["Base.size"],
    }
    users = [f"{edge.source.path}:{edge.source.name} {edge.kind}" for edge in usages]
    assert users == ["base.py:Base.count usages", "app.py:Child.all usages"]


def test_classes_that_are_each_the_base_of_the_other(tmp_path: Path):
    """No Python runs that, but a file that has it must not end the index."""
    snippet = """
    #- main.py
    class A(B):
        def f(self):
            self.g()
    class B(A):
        def g(self):
            self.f()
    """
    with open_edges(tmp_path, snippet) as semantics:
        callers = semantics.referrers.find_callers(Candidate("main.py", 0, "B.g"))
        assert [edge.source.name for edge in callers] == ["A.f"]


def test_a_namespace_inside_declare_global(tmp_path: Path):
    snippet = """
    #- types.d.ts
    export {};
    declare global {
        namespace Shop {
            interface Cart { total(): number }
        }
    }
    #- app.ts
    import "./types";
    export function pay(cart: Shop.Cart) { return cart.total(); }
    """
    with open_edges(tmp_path, snippet) as semantics:
        assert semantics.referrers.find_callers(Candidate("types.d.ts", 0, "global.Shop.Cart.total")) == []


def test_who_calls_what_a_value_holds_names_the_value(tmp_path: Path):
    snippet = """
    #- lib.py
    def lazy(f):
        def wrapper(*args): return f(*args)
        return wrapper
    def text(s): return s
    text_lazy = lazy(text)
    def own(): return text_lazy("a")
    #- use.py
    from lib import text_lazy as _
    def one(): return _("x")
    def parameter(_): return _("y")
    #- dotted.py
    import lib
    def two(): return lib.text_lazy("z")
    #- other.py
    from elsewhere import text_lazy
    def foreign(): return text_lazy("x")
    """
    with open_edges(tmp_path, snippet) as semantics:
        usages = semantics.usages.find_usages_into(Candidate("lib.py", 0, "text_lazy"), ())
    named = {f"{edge.source.path}:{edge.source.name}" for edge in usages}
    assert named == {"lib.py:own", "use.py:", "use.py:one", "dotted.py:two"}


def test_who_calls_what_a_constant_of_typescript_holds_names_the_constant(tmp_path: Path):
    snippet = """
    #- plain.ts
    import { isPlain as _is } from "outside";
    export const isPlain: (x: any) => boolean = _is;
    #- copy.ts
    import { isPlain } from "./plain";
    export function copy(x: any) { return isPlain(x) ? x : null; }
    export function other(isPlain: any) { return isPlain(1); }
    """
    with open_edges(tmp_path, snippet) as semantics:
        usages = semantics.usages.find_usages_into(Candidate("plain.ts", 0, "isPlain"), ())
    assert "copy.ts:copy" in {f"{edge.source.path}:{edge.source.name}" for edge in usages}
    assert "copy.ts:other" not in {f"{edge.source.path}:{edge.source.name}" for edge in usages}


def test_code_behind_a_field_is_code_of_the_method(tmp_path: Path):
    """Of `self.x = …` the parent is the class."""
    text = "class A:\n    def set(self, value):\n        self.x = 1\n        helper = value\n        helper()\n"
    with open_edges(tmp_path, f"#- a.py\n{text}") as found:
        scope = found.documents.find_scope("a.py", 0, text.index("helper()"))
        assert found.documents.symbols("a.py")[0][scope].qualified_name == "A.set"
        assert found.documents.find_scope("a.py", 0, text.index("def")) == scope - 1
