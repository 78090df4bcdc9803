"""SCIP: what is written is read by others, and says what the source says."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cq.model.errors import StoreError, UsageError
from cq.questions.export.scip import export_scip
from cq.store.scip import DEFINITION, decode_index, descriptor, last_name
from tests.store.conftest import FILES, Index, write_files
from tests.support.fixture import parse_fixture
from tests.support.scip import new_index

pytestmark = pytest.mark.slow

SHOP = """
#- shop/base.py
class Base:
    def open(self, größe): ...
    def close(self): ...
def help(): ...
def help(x): ...
#- shop/app.py
from shop.base import Base as B, help
class App(B):
    '''Ändert.'''
    def open(self, x):
        y = "ä"; self.close(); help()
        return y
#- shop/web.ts
class Shapes { area() {} }
class Box extends Shapes { area() { return 1 } }
"""


def write(index: Index, out: Path) -> Any:
    with index.reading() as (reader, tree):
        export_scip(reader, tree, out, version="1.2")
    found = new_index()
    data = out.read_bytes()
    assert found.ParseFromString(data) == len(data)
    return found


@pytest.fixture
def shop(tmp_path: Path, make_index: Callable[..., Index]) -> Index:
    return make_index(write_files(tmp_path / "repo", parse_fixture(SHOP).files))


def span_text(source: bytes, span: list[int]) -> str:
    first, start, last, end = (span[0], span[1], span[0], span[2]) if len(span) == 3 else span
    lines = source.split(b"\n")
    assert first == last
    return lines[first][start:end].decode()


def test_another_program_reads_definitions_and_references(shop: Index, tmp_path: Path):
    found = write(shop, tmp_path / "index.scip")
    assert (found.metadata.tool_info.name, found.metadata.tool_info.version) == ("cq", "1.2")
    assert (found.metadata.text_document_encoding, found.metadata.project_root) == (1, "file:///")
    assert [(d.relative_path, d.language, d.position_encoding) for d in found.documents] == [
        ("shop/app.py", "python", 1), ("shop/base.py", "python", 1), ("shop/web.ts", "typescript", 1),
    ]  # fmt: skip
    source = parse_fixture(SHOP).files["shop/app.py"].encode()
    app = found.documents[0]
    said = [
        (span_text(source, list(o.range)), o.symbol.removeprefix("cq . . . shop/"), o.symbol_roles)
        for o in app.occurrences[1:]
    ]
    assert said == [
        ("B", "`base.py`/Base#", 2), ("help", "`base.py`/help(+1).", 2),
        ("App", "`app.py`/App#", 1), ("B", "`base.py`/Base#", 8), ("open", "`app.py`/App#open().", 1),
        ("self", "local 0_2", 1), ("x", "local 0_3", 1), ("y", "local 0_4", 1), ("self", "local 0_2", 8),
        ("close", "`base.py`/Base#close().", 8), ("help", "`base.py`/help(+1).", 8), ("y", "local 0_4", 8),
    ]  # fmt: skip
    symbols = {info.symbol: info for document in found.documents for info in document.symbols}
    opened = symbols["cq . . . shop/`app.py`/App#open()."]
    assert [(r.symbol, r.is_implementation, r.is_reference) for r in opened.relationships] == [
        ("cq . . . shop/`base.py`/Base#open().", True, True)
    ]
    shown = symbols["cq . . . shop/`app.py`/App#"]
    assert (shown.kind, shown.display_name, list(shown.documentation)) == (7, "App", ["Ändert."])
    assert "cq . . . shop/`base.py`/help()." in symbols, "each of two of one name"
    box = symbols["cq . . . shop/`web.ts`/Box#"]
    assert [row.symbol for row in box.relationships] == ["cq . . . shop/`web.ts`/Shapes#"]


def test_every_symbol_is_of_the_grammar_and_defined_once(index: Index, tmp_path: Path):
    found = write(index, tmp_path / "index.scip")
    simple, escaped = r"[\w+$-]+", r"`(?:[^`]|``)+`"
    name = f"(?:{simple}|{escaped})"
    step = rf"(?:{name}[/#.:!]|{name}\((?:{simple})?\)\.|\[{name}\]|\({name}\))"
    grammar = re.compile(rf"cq \. \. \. {step}+|local {simple}", re.ASCII)
    defined, used = set[tuple[str, str]](), set[tuple[str, str]]()
    for document in found.documents:
        source = FILES[document.relative_path].encode()
        described = [info.symbol for info in document.symbols]
        assert len(described) == len(set(described))
        for occurrence in document.occurrences:
            assert grammar.fullmatch(occurrence.symbol), occurrence.symbol
            home = document.relative_path if occurrence.symbol.startswith("local") else ""
            (defined if occurrence.symbol_roles & DEFINITION else used).add((home, occurrence.symbol))
            text = span_text(source, list(occurrence.range))
            assert text in ("", last_name(occurrence.symbol)) or occurrence.symbol.startswith("local") or text == "B"
    assert used <= defined


def test_two_exports_are_equal_and_none_is_half_there(shop: Index, tmp_path: Path):
    write(shop, tmp_path / "one.scip")
    write(shop, tmp_path / "two.scip")
    assert (tmp_path / "one.scip").read_bytes() == (tmp_path / "two.scip").read_bytes()
    with pytest.raises(UsageError, match="is a directory"):
        write(shop, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["indexes", "one.scip", "repo", "two.scip"]


def test_what_others_write_is_read(shop: Index, tmp_path: Path):
    index = new_index()
    document = index.documents.add(relative_path="a.py", language="python", text="x")
    document.occurrences.add(range=[3, 4, 9], symbol="s `a`/B#", symbol_roles=1, enclosing_range=[1, 2, 3])
    document.occurrences.add(range=[3, 4, 5, 6], symbol="local 1")
    document.occurrences.add(range=[1], symbol="nowhere")
    info = document.symbols.add(symbol="s `a`/B#", kind=7, documentation=["one", "two"])
    info.relationships.add(symbol="t", is_implementation=True)
    (read,) = decode_index(index.SerializeToString())
    assert (read.path, read.language, read.encoding, read.text) == ("a.py", "python", 0, "x")
    assert [(o.range, o.symbol, o.roles) for o in read.occurrences] == [
        ((3, 4, 3, 9), "s `a`/B#", 1), ((3, 4, 5, 6), "local 1", 0),
    ]  # fmt: skip
    assert (read.symbols[0].documentation, read.symbols[0].relationships[0].is_implementation) == ("one\ntwo", True)
    with pytest.raises(StoreError, match="ends too early"):
        list(decode_index(index.SerializeToString()[:-1]))
    for data in (b"\x07", b"\xff" * 20, b"{}"):
        with pytest.raises(StoreError, match="SCIP"):
            list(decode_index(data))


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("f", "function", "f()."), ("a b", "class", "`a b`#"), ("a`b", "module", "`a``b`/"),
        ("T", "type_parameter", "[T]"), ("p", "parameter", "(p)"), ("m", "macro", "m!"), ("x", "variable", "x."),
        ("é", "field", "`é`."),
    ],
)  # fmt: skip
def test_descriptors(name: str, kind: str, text: str):
    assert descriptor(name, kind) == text
    assert last_name("s . . . a/" + text) == name


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("", ""), ("local 1", ""), ("s . . . ", ""), (".", ""), ("``.", ""), ("a(+1).", "a"), ("a(+é).", ""),
        ("`a b`(+1).", "a b"), ("a/````.", "`"), ("a/``````.", "``"), ("a/```b`.", "`b"), ("`a`#(x)", "x"), ("é.", ""),
    ],
)  # fmt: skip
def test_names_of_symbols_that_nobody_writes(symbol: str, name: str):
    assert last_name(symbol) == name
