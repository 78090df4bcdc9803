"""The pages for those who work on cq name real functions, in the order in which a trace enters them."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import pytest

from cq.graph.unit import Unit
from cq.languages.facts import extract_facts
from cq.languages.linking import link_units

PAGE = Path(__file__).parents[1] / "docs" / "contributing" / "how-a-call-finds-its-target.md"
_EXAMPLE = re.compile(r"^```(\w+) (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Walk(NamedTuple):
    """One section of the page: an example, and the functions that are named below it."""

    title: str
    language: str
    path: str
    text: str
    steps: list[str]


def _read_walks() -> list[Walk]:
    found: list[Walk] = []
    for section in PAGE.read_text("utf-8").split("\n## ")[1:]:
        example = _EXAMPLE.search(section)
        assert example is not None
        steps = [name for name in re.findall(r"`(cq\.[\w.]+)`", section[example.end() :]) if name != "cq.model.code"]
        found.append(Walk(section.partition("\n")[0], *example.groups(), steps))
    return found


def _trace(walk: Walk) -> list[str]:
    """The functions of cq in the order in which they are first entered."""
    entered: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("cq."):
            entered.setdefault(f"{module}.{frame.f_code.co_qualname}")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        facts = extract_facts(walk.text.encode(), walk.language)
        assert facts.code is not None
        links = link_units([unit := Unit(walk.path, facts.code)])[unit]
    finally:
        sys.setprofile(before)
    last = links.refs[links.calls[-1]]
    assert (last.status, len(last.candidates)) == ("resolved", 1)
    return list(entered)


@pytest.mark.parametrize("walk", _read_walks(), ids=lambda walk: walk.language)
def test_a_page_follows_a_call_through_real_functions(walk: Walk):
    assert len(walk.steps) > 4
    entered = _trace(walk)
    assert [step for step in walk.steps if step not in entered] == []
    assert sorted(walk.steps, key=entered.index) == walk.steps
