"""The fixture language itself: what a mistake here would make every other test believe."""

from __future__ import annotations

import pytest

from tests.support.fixture import FixtureError, parse_fixture


def test_files_cursor_and_marks_of_the_example():
    fixture = parse_fixture("""
    #- db.py
    def ru$0n(sql): ...
    #- app.py
    from db import run as go
    def main():
        go("x")
    #   ^^ ref
    """)
    assert fixture.files == {
        "db.py": "def run(sql): ...\n",
        "app.py": 'from db import run as go\ndef main():\n    go("x")\n',
    }
    assert fixture.cursor == ("db.py", len("def ru"))
    (mark,) = fixture.marks
    assert (mark.path, mark.label, fixture.text(mark)) == ("app.py", "ref", "go")


def test_slash_comments_several_groups_and_several_lines_of_marks():
    fixture = parse_fixture("""
    //- lib.rs
    let total = add(one, two);
    //  ^^^^^ def   ^^^ 1^^^ 2
    //          ^^^ call
    //< statement
    """)
    assert [(mark.label, fixture.text(mark)) for mark in fixture.marks] == [
        ("def", "total"),
        ("1", "one"),
        ("2", "two"),
        ("call", "add"),
        ("statement", "let total = add(one, two);"),
    ]
    assert [fixture.text(mark) for mark in fixture.marked("call")] == ["add"]
    assert fixture.files == {"lib.rs": "let total = add(one, two);\n"}


def test_a_line_mark_leaves_out_indent_and_line_end():
    fixture = parse_fixture("if x:\n    go()  \r\n#< body\n")
    assert fixture.text(fixture.marks[0]) == "go()"


def test_offsets_are_bytes():
    fixture = parse_fixture("""
    naïve = "→" + x$0y
    #             ^^^^ name
    """)
    assert fixture.files["main"] == 'naïve = "→" + xy\n'
    assert fixture.cursor == ("main", len('naïve = "→" + x'.encode()))
    assert fixture.text(fixture.marks[0]) == "xy"


def test_columns_after_the_cursor_are_those_the_eye_sees():
    fixture = parse_fixture("""
    f$0oo(bar)
    #     ^^^ arg
    """)
    assert fixture.text(fixture.marks[0]) == "bar"
    assert fixture.marks[0].start == len("foo(")


def test_indent_blank_lines_and_a_missing_final_newline_are_kept():
    fixture = parse_fixture("""
        class A:

            x = 1
        y = 2""")
    assert fixture.files == {"main": "class A:\n\n    x = 1\ny = 2"}
    assert (fixture.cursor, fixture.marks) == (None, [])


def test_a_file_may_be_empty_named_main_and_hold_odd_line_separators():
    fixture = parse_fixture("#- main\n#- sub dir/b.py\ns = 'a\u2028b\x0cc'\n")
    assert fixture.files == {"main": "", "sub dir/b.py": "s = 'a\u2028b\x0cc'\n"}


def test_ordinary_comments_are_text():
    text = "# a - b\n#!/bin/sh\n// x < y\n#: ^ not a mark\n"
    assert parse_fixture(text).files == {"main": text}


@pytest.mark.parametrize(
    ("snippet", "complaint"),
    [
        ("", "empty"),
        ("$0a$0\n", "line 1 .* second cursor"),
        ("$0a\n#- b\n", "line 2 .* before the first file"),
        ("#- a\n$0\n#- b\n$0\n", "line 4 .* second cursor"),
        ("#- a\n#- b\n#- a\n", "line 3 .* begun before"),
        ("#< whole\n", "line 1 .* no line above"),
        ("#- a\nx\n#- b\n#   ^ x\n", "line 4 .* no line above"),
        ("    \n#   ^ x\n", "no line above"),
        ("name\n#  ^^\n", "no label"),
        ("name\n#<\n", "no label"),
        ("name\n#  ^^^ x\n", "ends before column 6"),
    ],
)
def test_a_malformed_fixture_says_what_and_where(snippet: str, complaint: str):
    with pytest.raises(FixtureError, match=complaint):
        parse_fixture(snippet)
