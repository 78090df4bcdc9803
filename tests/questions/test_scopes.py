"""Names by their scopes, and by the compiled code."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cq import Answer, Workspace
from cq.model.answer import FactDetails
from tests.support.checks import open_fixture

TREE = """
#- a.py
import os
LIMIT = 3
def outer(items, *, key="x"):
    global COUNT
    COUNT = LIMIT
    total = 0
    def inner(n):
        nonlocal total
        total += key
        try:
            return os.path.join(len(items), n)
        except ValueError as error:
            print(error)
    return inner
class Box:
    size = LIMIT
    def get(self): return super().get() + missing
early = lambda x: x + LIMIT
#- broken.py
def f(:
    pass
#- b.ts
const LIMIT = 3;
function outer(items: string[], key = "x") {
  let total = 0;
  const inner = (n: number) => { total += n; return key + LIMIT + this.items; };
  return inner;
}
#- c.rs
fn outer(x: u8) -> u8 {
    let y = 2;
    let inner = |n: u8| n + x + y;
    inner(1)
}
#- d.go
package d
func f() {}
#- notes.md
# Notes

```python
def shown():
    try:
        return g(1)
    except KeyError:
        return 2
```
"""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with open_fixture(tmp_path_factory.mktemp("scopes"), TREE) as opened:
        yield opened


def facts(answer: Answer) -> dict[str, dict[str, tuple[str, ...]]]:
    rows = [finding.details for section in answer.sections for finding in section.findings]
    return {row.subject: row.facts for row in rows if isinstance(row, FactDetails)}


def test_python_by_its_own_tables(workspace: Workspace):
    found = facts(workspace.scopes("a.py:outer"))
    assert list(found) == ["outer", "outer.inner"]
    assert found["outer"] == {
        "cells": ("items", "key", "total"),
        "declared_globals": ("COUNT",),
        "globals": ("LIMIT",),
        "locals": ("inner", "total"),
        "parameters": ("items", "key"),
    }
    assert found["outer.inner"] == {
        "captures": ("items", "key"),
        "nonlocals": ("total",),
        "globals": ("os",),
        "builtins": ("ValueError", "len", "print"),
        "parameters": ("n",),
        "locals": ("error",),
    }
    assert facts(workspace.scopes("Box.get"))["Box.get"]["unknown"] == ("missing",)
    assert list(facts(workspace.scopes("early"))) == ["lambda"]
    assert list(facts(workspace.scopes("a.py:6"))) == ["outer", "outer.inner"]  # the function that `total` stands in
    assert len(facts(workspace.scopes("a.py"))) == 6
    assert workspace.scopes("a.py").summary["closures"] == 1


def test_closures_of_other_languages_by_facts(workspace: Workspace):
    found = facts(workspace.scopes("b.ts:outer"))
    assert found["outer"]["cells"] == ("key", "total")
    assert found["outer.inner"]["captures"] == ("key", "total")
    assert found["outer.inner"]["globals"] == ("LIMIT",)
    rust = facts(workspace.scopes("c.rs"))
    assert rust["outer"]["parameters"] == ("x",)
    assert rust["outer"]["cells"] == rust["outer.inner"]["captures"] == ("x", "y")


def test_what_cannot_be_told_says_why(workspace: Workspace):
    go = workspace.scopes("d.go:f")
    assert (go.found, go.degraded[0].category) == (0, "language")
    broken = workspace.scopes("broken.py")
    assert (broken.found, broken.degraded[0].category) == (0, "syntax")
    assert workspace.bytecode("broken.py").degraded[0].category == "syntax"
    assert workspace.bytecode("b.ts:outer").degraded[0].category == "language"
    value = workspace.scopes("a.py:LIMIT")
    assert value.found == 0
    assert "no scope of its own" in value.degraded[0].message
    assert workspace.bytecode("nowhere").found == 0


def test_bytecode_says_what_is_really_loaded(workspace: Workspace):
    found = facts(workspace.bytecode("a.py:outer"))
    assert list(found) == ["outer", "outer.<locals>.inner"]
    assert found["outer"]["stores_global"] == ("COUNT",)
    assert found["outer"]["globals"] == ("LIMIT",)
    inner = found["outer.<locals>.inner"]
    assert inner["calls"] == ("len", "os.path.join", "print")
    assert inner["captures"] == ("items", "key", "total")
    assert inner["stores_captured"] == ("total",)
    assert inner["locals"] == ("n", "error")
    assert "lines 11 to 11, handled at line 12" in inner["exception_table"]
    whole = workspace.bytecode("a.py")
    assert whole.found == 6
    assert facts(whole)["a.py"]["imports"] == ("os",)


def test_code_inside_other_documents_has_lines_of_the_file(workspace: Workspace):
    found = facts(workspace.bytecode("notes.md:shown"))
    assert "lines 6 to 6, handled at line 7" in found["shown"]["exception_table"]
    answer = workspace.bytecode("notes.md:shown")
    assert answer.sections[0].findings[0].location is not None
    assert answer.sections[0].findings[0].location.start_line == 4
