"""What declarations say of types is read of any text, broken or hostile, and every place is in the text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cq.languages.projects import find_projects
from cq.languages.shapes import read_shapes
from tests.support.work import count_steps

PAGE = (Path(__file__).parents[1] / "cases" / "types-typescript.md").read_text("utf-8")
SNIPPETS = [block.encode() for block in re.findall(r"^```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)]
PIECES = [
    b"<",
    b">",
    b"(",
    b"{",
    b"}",
    b"type ",
    b"enum ",
    b"infer ",
    b"\xff",
    b'"',
    b"`${",
    b" is ",
    b"/** @param {",
    b"*/",
]


@given(st.sampled_from(SNIPPETS), st.lists(st.tuples(st.floats(0, 1), st.sampled_from(PIECES), st.integers(0, 30))))
def test_broken_text_never_raises(text: bytes, edits: list[tuple[float, bytes, int]]):
    for share, piece, gone in edits:
        at = int(share * len(text))
        text = text[:at] + piece + text[at + gone :]
    for language in ("typescript", "tsx", "javascript"):
        shapes = read_shapes(text, language)
        assert shapes is not None
        places = [guard.start for guard in shapes.guards] + [handed.start for handed in shapes.handed]
        assert all(0 <= place <= len(text) for place in (*places, *shapes.declared))


@given(st.binary(max_size=200))
def test_projects_of_any_bytes(text: bytes):
    assert len(find_projects(["tsconfig.json", "a/tsconfig.b.json"], lambda _: text)) == 2


HOSTILE = {
    "members of a union": lambda size: "type A = " + " | ".join(f'"{n}"' for n in range(size)),
    "nested types": lambda size: "type A = " + "(" * size + "string" + ")" * size,
    "guards": lambda size: "if (" + " && ".join(f'typeof a{n} === "x"' for n in range(size)) + ") {}",
    "functions": lambda size: "function a(x) {" * size + "x()" + "}" * size,
    "braces of JSDoc": lambda size: "/** " + "@param {{" * size + " */\nfunction f(a) {}",
    "members of an enum": lambda size: "enum A {" + ",".join(f"m{n} = m{n - 1} + 1" for n in range(size)) + "}",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_twice_the_text_is_twice_the_work(what: str):
    language = "javascript" if "JSDoc" in what else "typescript"
    first, second = (HOSTILE[what](size).encode() for size in (300, 600))
    read_shapes(first, language)
    steps = [count_steps(lambda text=text: read_shapes(text, language)) for text in (first, second)]
    assert steps[1] <= 2.3 * steps[0]
