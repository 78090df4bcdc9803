"""Python's symbol tables and bytecode as providers, exactly, against marked code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cq.model.provider import Reply
from cq.model.source import Segment
from cq.providers.answers import Target
from cq.providers.documents import Document
from cq.providers.registry import Registry
from tests.support.fixture import parse_fixture

SCOPES = """
import os
LIMIT = 3
def outer(items, *, key: str = "x"):
    global COUNT
    COUNT = LIMIT
    total = 0
    def inner():
        nonlocal total
        total += key
        return os
    return inner
class Box:
    size: int = LIMIT
"""


def ask(plane: str, text: bytes) -> Reply[Any]:
    (reply,) = Registry(Path("/")).ask(plane, [Target(Document("a.py", "python", text))])
    return reply


def test_scopes_say_how_every_name_is_bound():
    reply = ask("scopes", SCOPES.lstrip().encode())
    found = {scope.qualified_name: {name.name: set(name.flags) for name in scope.names} for scope in reply.items}
    assert [(scope.kind, scope.qualified_name, scope.line) for scope in reply.items] == [
        ("module", "", 0),
        ("function", "outer", 3),
        ("function", "outer.inner", 7),
        ("class", "Box", 12),
    ]
    assert found[""]["os"] >= {"imported", "local"}
    assert found["outer"]["items"] >= {"parameter", "local"}
    assert found["outer"]["COUNT"] >= {"declared_global", "assigned"}
    assert found["outer"]["total"] >= {"local", "cell"}
    assert "cell" in found["outer"]["key"]
    assert found["outer.inner"]["total"] >= {"nonlocal", "free"}
    assert found["outer.inner"]["os"] == {"global", "referenced"}
    assert found["Box"]["size"] >= {"annotated", "assigned"}


BYTECODE = """
import os
#< import os
def run(path, *, log):
    x = "é"; total = os.path.join(path, x)
    #                ^^ load_global os
    #                ^^^^^^^ attribute path
    #                ^^^^^^^^^^^^ attribute join
    #                ^^^^^^^^^^^^^^^^^^^^^ call 2
    raise ValueError(total)
    #< raise
    #     ^^^^^^^^^^ load_global ValueError
    #     ^^^^^^^^^^^^^^^^^ call 1
"""


def test_bytecode_says_what_is_done_with_names_and_where():
    fixture = parse_fixture(BYTECODE)
    (text,) = (source.encode() for source in fixture.files.values())
    reply = ask("bytecode", text)
    assert [code.qualified_name for code in reply.items] == ["", "run"]
    kinds = ("load_global", "attribute", "call", "raise", "import")
    found = {
        (operation.start, operation.end, f"{operation.kind} {operation.argument}".strip())
        for code in reply.items
        for operation in code.operations
        if operation.kind in kinds
    }
    assert found == {(mark.start, mark.end, mark.label) for mark in fixture.marks}


def test_offsets_are_those_of_the_file_that_holds_the_code():
    container = b"> a = b\n> c = d\n"
    document = Document("a.md", "python", container, Segment("fence", "python", ((2, 8), (10, 16))), "x")
    (reply,) = Registry(Path("/")).ask("bytecode", [Target(document)])
    (code,) = reply.items
    words = {container[each.start : each.end] for each in code.operations if each.start >= 0}
    assert words == {b"a", b"b", b"c", b"d"}


@pytest.mark.parametrize("plane", ["scopes", "bytecode"])
@pytest.mark.parametrize(
    "text",
    [b"def f(:\n", b"x = 1\0\n", b"(" * 5000, b"-" * 100_000 + b"1", b"x" * 3_000_000, b"a=" * 50_000 + b"1"],
    ids=["syntax", "nul", "nested", "minus", "large", "chain"],
)
def test_what_python_cannot_read_is_unresolved(plane: str, text: bytes):
    reply = ask(plane, text)
    assert reply.answered or reply.coverage.reason


def test_nothing_is_run(tmp_path: Path):
    text = f"import pathlib\npathlib.Path({str(tmp_path / 'ran')!r}).touch()\n".encode()
    assert ask("bytecode", text).answered
    assert ask("scopes", text).answered
    assert not (tmp_path / "ran").exists()


def test_a_coding_comment_changes_no_offset():
    text = "# -*- coding: latin-1 -*-\nx = 'é'; y\n".encode()
    (code,) = ask("bytecode", text).items
    assert any(each.argument == "y" and text[each.start : each.end] == b"y" for each in code.operations)
