"""Mistakes of cq itself while it links: what they cost, and that they are told."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection
from pathlib import Path

import pytest

from cq import Workspace
from cq.graph.calls import Calls
from cq.graph.engine import cells
from cq.graph.resolve import Resolver
from cq.graph.things import Function
from cq.graph.unit import Unit
from cq.graph.values import Values
from cq.indexing import link as linking
from cq.model.edge import Mistake
from cq.store import database
from cq.store.read import Reader
from tests.support.index import build, dump

FILES = {
    "lib.py": "def f():\n    pass\ndef give():\n    return f\n",
    "use.py": "from lib import f, give\ndef one():\n    give()()\ndef two():\n    f()\n",
    "other.py": "from use import one, two\none()\ntwo()\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "repo", FILES)
    return tmp_path / "repo"


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return tmp_path / "index.db"


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What a function called `odd` returns, and a file that defines `worse`, is more than this linker can take."""
    find, visit = Calls._find_returned, Resolver.visit

    def fail_value(calls: Calls, function: Function) -> Values:
        if function.definition.name == "odd":
            raise IndexError("a case that nobody thought of")
        return find(calls, function)

    def fail_file(resolver: Resolver, unit: Unit, kept: Collection[int] = ()) -> None:
        visit(resolver, unit, kept)
        if any(each.name == "worse" for each in unit.code.definitions):
            raise KeyError("a case that nobody thought of")

    monkeypatch.setattr(cells, "is_strict", False)
    monkeypatch.setattr(Calls, "_find_returned", fail_value)
    monkeypatch.setattr(Resolver, "visit", fail_file)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CQ_INDEX_DIR", raising=False)


def write(root: Path, files: dict[str, str]) -> None:
    root.mkdir(exist_ok=True)
    for path, text in files.items():
        (root / path).write_text(text)


def find_statuses(index: Path, root: Path, path: str) -> list[str]:
    """Of the calls of a file; none where it was not linked."""
    (every,) = [links for at, links, *_ in dump(index, root)["links"] if at == path]
    return [links.refs[number].status for links in every if links is not None for number in links.calls]


def find_mistakes(index: Path, root: Path) -> dict[str, list[Mistake]]:
    with contextlib.closing(database.connect(index)) as connection, Reader(connection, os.fspath(root)) as reader:
        tree = reader.tree()
        assert tree is not None
        return reader.mistakes(tree.id)


def test_a_mistake_about_a_value_costs_that_value(root: Path, index: Path) -> None:
    write(root, {"lib.py": FILES["lib.py"].replace("give", "odd"), "use.py": FILES["use.py"].replace("give", "odd")})
    build(index, root, jobs=1)
    assert find_statuses(index, root, "use.py") == ["resolved", "unresolved", "resolved"]
    ((path, (mistake,)),) = find_mistakes(index, root).items()
    assert (path, mistake.error, len(mistake.homes)) == ("use.py", "IndexError", 1)
    assert mistake.place.startswith("cq.graph.")


def test_a_mistake_about_a_file_costs_the_links_of_that_file(root: Path, index: Path) -> None:
    write(root, {"use.py": FILES["use.py"] + "def worse():\n    pass\n"})
    build(index, root, jobs=1)
    assert find_statuses(index, root, "use.py") == []
    assert find_statuses(index, root, "other.py") == ["resolved", "resolved"]
    ((path, (mistake,)),) = find_mistakes(index, root).items()
    assert (path, mistake.error, mistake.homes) == ("use.py", "KeyError", ())


def test_strict_means_that_a_mistake_ends_everything(root: Path, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, {"use.py": "def worse():\n    pass\n"})
    monkeypatch.setattr(cells, "is_strict", True)
    with pytest.raises(KeyError):
        build(index, root, jobs=1)


_ODD = {"lib.py": FILES["lib.py"] + "def odd():\n    return f\n"}
_ASKS = {"use.py": FILES["use.py"].replace("f, give", "f, give, odd") + "def three():\n    odd()()\n"}
_WORSE = {"use.py": FILES["use.py"] + "def worse():\n    pass\n"}
_BESIDE = {"other.py": FILES["other.py"] + "def here():\n    two()\n"}


@pytest.mark.parametrize(
    "edits",
    [
        [_ODD, _ASKS, _BESIDE, FILES],
        [_ODD | _ASKS, {"use.py": _ASKS["use.py"].replace("    f()", "    f()\n    f()")}, _BESIDE],
        [_WORSE, _BESIDE, {"lib.py": "\n" + FILES["lib.py"]}, FILES],
        [_WORSE | _ODD, _ASKS, _WORSE],
    ],
)
def test_after_every_edit_the_index_is_as_a_fresh_one(
    root: Path, index: Path, tmp_path: Path, edits: list[dict[str, str]]
) -> None:
    build(index, root, jobs=1)
    seen: list[object] = []
    for number, edit in enumerate(edits):
        write(root, edit)
        build(index, root)
        fresh = tmp_path / f"{number}.db"
        build(fresh, root, jobs=1)
        rows = dump(index, root)
        assert rows == dump(fresh, root)
        seen += rows["mistakes"]
    assert seen


def test_mistakes_are_the_same_with_many_workers(
    root: Path, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, _ODD | _ASKS | {"a.py": "def worse():\n    pass\n", "z.py": "from lib import odd\nodd()()\n"})
    build(index, root, jobs=1)
    monkeypatch.setattr(linking, "LEAST_NAMES", 1)
    build(tmp_path / "many.db", root, jobs=3)
    assert dump(index, root) == dump(tmp_path / "many.db", root)
    assert [path for path, _ in dump(index, root)["mistakes"]] == ["a.py", "use.py", "z.py"]


def test_where_it_is_not_known_what_a_change_reaches_all_is_linked(
    root: Path, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(index, root)

    def fail(*_: object, **__: object) -> None:
        raise KeyError("a case that nobody thought of")

    monkeypatch.setattr(linking, "find_difference", fail)
    for text in ("two()\n", "one()\n"):
        write(root, {"other.py": f"from use import one, two\n{text}"})
        build(index, root)
    build(tmp_path / "fresh.db", root)
    assert dump(index, root) == dump(tmp_path / "fresh.db", root)
    assert [mistake.error for mistake in find_mistakes(index, root)[""]] == ["KeyError", "KeyError"]


def test_what_it_costs_is_told(root: Path) -> None:
    write(root, _ODD | _ASKS | {"a.py": "from lib import f\ndef worse():\n    f()\n"})
    with Workspace.open(root) as workspace:
        status, answer, checks = workspace.status(), workspace.calls("f"), workspace.doctor()
        validation = workspace.validate(strict=True)
    assert [(row.error, row.unlinked, row.incomplete, row.paths) for row in status.mistakes] == [
        ("KeyError", 1, 0, ("a.py",)),
        ("IndexError", 0, 1, ("use.py",)),
    ]
    assert [event.category for event in answer.degraded] == ["mistake"]
    assert "1 files without links and 1 with a part" in answer.degraded[0].message
    # Of a file that is not linked, names are compared.
    sites = next(section for section in answer.sections if section.kind == "call_sites").findings
    assert [(f.location.path, f.details.status) for f in sites if f.location and f.location.path == "a.py"] == [
        ("a.py", "possible")
    ]
    assert [check.state for check in checks if check.name == "links"] == ["warning", "warning"]
    assert {finding.code for finding in validation.findings} == {"mistake"}


def test_nothing_is_told_where_nothing_went_wrong(root: Path) -> None:
    with Workspace.open(root) as workspace:
        assert workspace.status().mistakes == ()
        assert workspace.calls("f").degraded == ()
        assert [check for check in workspace.doctor() if check.name == "links"] == []
