"""Small programs and the calls they make, as tests/cases/calls-*.md say."""

from __future__ import annotations

import pytest

from tests.support.programs import Linked, Program, read_programs

PAGES = ("calls-python.md", "calls-javascript.md")
PROGRAMS = {f"{page} {program.category}: {program.title}": program for page in PAGES for program in read_programs(page)}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_program(program: Program):
    found, _ = Linked(program.files).find_calls()
    assert found == (program.expected - program.missed) | program.surplus


def test_there_are_as_many_programs_as_promised():
    assert [len(read_programs(page)) >= wanted for page, wanted in zip(PAGES, (120, 80), strict=True)] == [True, True]
