"""Offsets, lines and characters: every encoding, every line end, documents inside documents."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cq.identity import segment_uid, tool_path
from cq.model.location import LineTable
from cq.providers.documents import Document, Texts, make_uri, name_external, read_uri
from cq.providers.positions import ENCODINGS, to_offset, to_position
from cq.source.segments import find_segments

LINES = st.text(st.sampled_from("ab é\U0001f600\n\r\t\u2028"), max_size=40)


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(text=LINES)
def test_every_character_has_a_position_and_comes_back(encoding: str, text: str):
    raw = text.encode()
    table = LineTable(raw, lone_returns=True)
    for at in range(len(text) + 1):
        offset = len(text[:at].encode())
        line, character = to_position(table, offset, encoding)
        ends = raw[:offset].replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n")
        if raw[offset - 1 : offset + 1] == b"\r\n" or (raw[offset : offset + 1] in (b"\r", b"\n")):
            continue  # inside or before a line end: a place, but not one of a character
        assert line == ends
        assert to_offset(table, line, character, encoding) == offset


@pytest.mark.parametrize(
    ("encoding", "character"), [("utf-8", 9), ("utf-16", 6), ("utf-32", 5)], ids=["utf-8", "utf-16", "utf-32"]
)
def test_the_same_place_in_three_encodings(encoding: str, character: int):
    text = '"\U0001f600é" x'.encode()
    at = text.index(b"x")
    table = LineTable(text, lone_returns=True)
    assert to_position(table, at, encoding) == (0, character)
    assert to_offset(table, 0, character, encoding) == at


@pytest.mark.parametrize(
    ("line", "character", "encoding"),
    [
        (0, 2, "utf-16"),  # between the halves of a surrogate pair
        (0, 3, "utf-8"),  # inside a character
        (0, 7, "utf-16"),  # behind the line
        (2, 1, "utf-16"),  # behind the text
        (9, 0, "utf-16"),
        (-1, 0, "utf-16"),
        (0, -1, "utf-8"),
    ],
)
def test_what_is_no_place_is_none(line: int, character: int, encoding: str):
    table = LineTable('"\U0001f600é"\n'.encode(), lone_returns=True)
    assert to_offset(table, line, character, encoding) is None


def test_an_end_may_lie_behind_its_line_and_the_text_ends_on_a_line_of_its_own():
    table = LineTable(b"ab\ncd", lone_returns=True)
    assert to_offset(table, 0, 1 << 31, "utf-16", clamp=True) == 2
    assert to_offset(table, 2, 0, "utf-16") == 5


def test_a_quoted_fence_maps_through_its_prefixes():
    container = b"text\n> ```python\n> def f():\n>     return g()\n> ```\n"
    (segment,) = find_segments(container, "markdown")
    document = Document("a.md", "python", container, segment, tool_path("a.md", "seg1:0", ".py"))
    assert document.text == b"def f():\n    return g()\n"
    for word in (b"def", b"f()", b"return", b"g()"):
        at = container.index(word)
        position = document.position(at, "utf-16")
        assert position is not None
        assert document.offset(position, "utf-16") == at
        inner = document.text.index(word)
        assert document.outer(inner) == at
    assert document.position(container.index(b"text"), "utf-16") is None
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 14}}
    assert document.span(whole, "utf-16") == (container.index(b"def"), container.index(b"g()") + 3)


def test_a_virtual_document_has_a_place_below_the_root_where_no_file_is(tmp_path: Path):
    container = b"# 50%\n```ts\nlet x = 1\n```\n"
    (segment,) = find_segments(container, "markdown")
    uid = segment_uid("a#b.md", segment.kind, "typescript", segment.text(container))
    document = Document("a#b.md", "typescript", container, segment, tool_path("a#b.md", uid, ".ts"))
    texts = Texts(tmp_path)
    uri = texts.uri(document)
    assert uri.startswith(make_uri(f"{texts.root}/.cq-vfs/"))
    assert uri.endswith(".ts")
    texts.open[texts.absolute(document)] = document
    x = {"start": {"line": 0, "character": 4}, "end": {"line": 0, "character": 5}}
    place = texts.place(uri, x, "utf-16")
    assert place is not None
    at = container.index(b"x =")
    assert (place.path, place.start, place.end) == ("a#b.md", at, at + 1)


def test_places_outside_are_named_without_the_users_directories(tmp_path: Path):
    texts = Texts(tmp_path)
    span = {"start": {"line": 4, "character": 0}, "end": {"line": 4, "character": 1}}
    place = texts.place("file:///home/me/env/lib/python3.11/site-packages/requests/api.py", span, "utf-16")
    assert place is not None
    assert (place.path, place.external, place.line) == ("", "requests/api.py", 5)
    (tmp_path / "node_modules" / "x").mkdir(parents=True)
    (tmp_path / "node_modules" / "x" / "index.d.ts").write_text("a\n" * 9)
    inside = texts.place(make_uri(f"{texts.root}/node_modules/x/index.d.ts"), span, "utf-16")
    assert inside is not None
    assert (inside.path, inside.external) == ("", "x/index.d.ts")
    assert name_external("/tmp/pyrefly_bundled_typeshed_8bf9/builtins.pyi") == "builtins.pyi"


@given(st.one_of(st.none(), st.integers(), st.text(), st.sampled_from(["file:", "file:///%ff%00", "file://[", "x:y"])))
def test_any_uri_is_read_or_refused(uri: object):
    found = read_uri(uri)
    assert found is None or found.startswith("/")


def test_changed_files_are_read_again(tmp_path: Path):
    texts = Texts(tmp_path)
    span = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 3}}
    (tmp_path / "a.py").write_text("x\n")
    uri = make_uri(f"{texts.root}/a.py")
    assert texts.place(uri, span, "utf-8") is not None  # an end is clamped
    (tmp_path / "a.py").write_text("abcdef\n")
    place = texts.place(uri, span, "utf-8")
    assert place is not None
    assert place.end == 3
