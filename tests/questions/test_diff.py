"""`cq diff`: what becomes of definitions between two states, and what that does to their callers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cq import Answer, ChangeDetails, DiffOptions, Page, UsageError, Workspace
from tests.support.history import commit, git

STORE = """\
class Store:
    def get(self, key, using=None):
        return self.rows[key] if using is None else using.rows[key]

    def put(self, key, row):
        self.rows[key] = row
        self.count = len(self.rows)
        return row


def parse_ts(text):
    head, _, tail = text.partition(":")
    return int(head) * 60 + int(tail or 0)


def gone(value):
    return [value for value in value if value]


LIMIT = 10
"""
APP = """\
from store import Store, gone, parse_ts


def run(store: Store):
    store.put("a", 1)
    return Store().get("a", using=store), parse_ts("1:2")


def clean(rows):
    return gone(rows)
"""


class Repository:
    def __init__(self, root: Path, index: Path) -> None:
        self.root, self.index = root, index
        root.mkdir()
        git(root, "init", "-q", "-b", "main")

    def commit(self, **files: str | None) -> str:
        return commit(self.root, {name.replace("__", "/") + ".py": text for name, text in files.items()})

    def diff(self, *revisions: str, **options: object) -> Answer:
        with Workspace.open(self.root, index_dir=self.index) as workspace:
            return workspace.diff(DiffOptions(revisions, **options))  # type: ignore[arg-type]


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "repo", tmp_path / "i")
    made.commit(store=STORE, app=APP)
    return made


def rows(answer: Answer, kind: str) -> list[ChangeDetails]:
    found = [finding.details for section in answer.sections if section.kind == kind for finding in section.findings]
    return [details for details in found if isinstance(details, ChangeDetails)]


def names(answer: Answer) -> dict[str, list[str]]:
    return {section.kind: [row.name for row in rows(answer, section.kind)] for section in answer.sections}


def test_nothing_differs(repository: Repository):
    answer = repository.diff("HEAD", "HEAD")
    assert (answer.found, answer.sections) == (0, ())
    assert repository.diff().found == 0


def test_a_parameter_that_goes_breaks_the_calls_that_nobody_edited(repository: Repository):
    (repository.root / "store.py").write_text(
        STORE.replace(", using=None", "").replace(" if using is None else using.rows[key]", "")
    )
    answer = repository.diff()
    assert names(answer) == {"breaking": ["Store.get"], "callers": ["Store.get"]}
    (row,) = rows(answer, "breaking")
    assert (row.reasons, row.broken, row.callers) == (("parameter `using` removed",), ("app.py:6",), 1)
    (repository.root / "app.py").write_text(APP.replace(", using=store", ""))
    assert "callers" not in names(repository.diff())


def test_what_is_gone_and_still_called(repository: Repository):
    commit(repository.root, {"README.md": "Use `gone(rows)` to clean rows; `put` puts.\n"})
    before = git(repository.root, "rev-parse", "HEAD")
    repository.commit(store=STORE.replace("def gone(value):\n    return [value for value in value if value]\n", ""))
    answer = repository.diff(before, "HEAD")
    assert names(answer) == {"breaking": ["gone"], "callers": ["gone"], "docs": ["gone"]}
    assert rows(answer, "callers")[0].broken == ("app.py:10",)
    assert rows(answer, "docs")[0].broken == ("README.md:1",)
    # The other way round it is new.
    assert names(repository.diff("HEAD", before)) == {"added": ["gone"]}


def test_renamed_and_moved_definitions_are_the_same_ones(repository: Repository):
    lines = STORE.partition("def parse_ts")
    repository.commit(
        store=lines[0] + lines[2].partition("\n\n\n")[2],
        times="def parse_timestamp" + lines[2].partition("\n\n\n")[0] + "\n",
        app=APP.replace("gone, parse_ts", "gone\nfrom times import parse_timestamp").replace(
            "parse_ts(", "parse_timestamp("
        ),
    )
    answer = repository.diff("HEAD~1", "HEAD")
    (row,) = rows(answer, "renamed")
    assert (row.old_name, row.name, row.old_path, row.score, row.broken) == (
        "parse_ts",
        "parse_timestamp",
        "store.py",
        1.0,
        (),
    )
    assert names(answer) == {"renamed": ["parse_timestamp"], "body": ["run"]}


def test_members_of_a_renamed_class_follow_it(repository: Repository):
    repository.commit(store=STORE.replace("class Store", "class Shelf"), app=APP.replace("Store", "Shelf"))
    answer = repository.diff("HEAD~1", "HEAD")
    assert set(names(answer)["renamed"]) == {"Shelf"}
    assert "removed" not in names(answer)
    assert "added" not in names(answer)


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("def f(a, b): return 1", "def f(b, a): return 1", "parameter `a` moved"),
        ("def f(a): return 1", "def f(a, b): return 1", "parameter `b` added and required"),
        ("def f(a, b=1): return 1", "def f(a, b): return 1", "parameter `b` became required"),
        ("def f(a, b=1): return 1", "def f(a, *, b=1): return 1", "parameter `b` became keyword-only"),
        ("def f(a, b=1): return 1", "def f(a, /, b=1): return 1", "parameter `a` became positional-only"),
        ("def f(a, b=1): return 1", "def f(a, b=2): return 1", "default of `b` changed"),
        ("def f(a, *rest): return 1", "def f(a): return 1", "`*rest` removed"),
        ("def f(a) -> int: return 1", "def f(a) -> str: return 1", "it returned int and returns str"),
        ("def f(a): return 1", "async def f(a): return 1", "it became async"),
        ("class f(dict): pass", "class f(list): pass", "base 'dict' removed"),
        ("def f(a): return 1", "class f: pass", None),
    ],
)
def test_what_breaks(repository: Repository, before: str, after: str, reason: str | None):
    repository.commit(m=before + "\n")
    repository.commit(m=after + "\n")
    answer = repository.diff("HEAD~1", "HEAD")
    found = rows(answer, "breaking")
    assert found
    assert reason is None or reason in found[0].reasons
    # A hidden one breaks nobody.
    repository.commit(m=before.replace("f(", "_f(", 1) + "\n")
    repository.commit(m=after.replace("f(", "_f(", 1) + "\n")
    assert "breaking" not in names(repository.diff("HEAD~1", "HEAD")) or "f: pass" in after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f(a): return 1", "def f(a, b=1): return 1"),
        ("def f(a): return 1", "def f(a, *, b=1): return 1"),
        ("def f(a, /): return 1", "def f(a): return 1"),
        ("def f(*, a): return 1", "def f(a): return 1"),
        ("def f(a): return 1", "def f(a, *rest, **more): return 1"),
    ],
)
def test_what_does_not_break(repository: Repository, before: str, after: str):
    repository.commit(m=before + "\n")
    repository.commit(m=after + "\n")
    assert set(names(repository.diff("HEAD~1", "HEAD"))) == {"signature"}


def test_comments_and_format_are_told_apart(repository: Repository):
    changed = STORE.replace("    def put(self, key, row):\n", "    # puts\n    def put(self,   key, row):\n")
    changed = changed.replace("def gone(value):\n", 'def gone(value):\n    """Cleans."""\n\n').replace("* 60", "* 61")
    repository.commit(store=changed)
    assert names(repository.diff("HEAD~1", "HEAD")) == {"body": ["parse_ts"], "text": ["Store.put", "gone"]}


def test_a_line_that_is_indented_anew_is_another_body(repository: Repository):
    repository.commit(m="def f(a):\n    if a:\n        go()\n        stop()\n")
    repository.commit(m="def f(a):\n    if a:\n        go()\n    stop()\n")
    assert names(repository.diff("HEAD~1", "HEAD")) == {"body": ["f"]}


def test_files_that_moved_as_they_are(repository: Repository):
    git(repository.root, "mv", "store.py", "shop.py")
    repository.commit(app=APP.replace("from store", "from shop"))
    answer = repository.diff("HEAD~1", "HEAD")
    assert answer.summary["files_moved"] == 1
    assert answer.found == 1


def test_ranges_and_filters(repository: Repository):
    git(repository.root, "checkout", "-q", "-b", "work")
    repository.commit(store=STORE.replace("LIMIT = 10", "LIMIT = 11\nMOST = 3"))
    git(repository.root, "checkout", "-q", "main")
    repository.commit(other="def other(): ...\n")
    assert names(repository.diff("main...work")) == {"breaking": ["LIMIT"], "added": ["MOST"]}
    assert "other" not in str(names(repository.diff("main...work")))
    assert names(repository.diff("main..work"))["breaking"] == ["other", "LIMIT"]
    assert set(names(repository.diff("main...work", only=("added",)))) == {"added"}
    assert repository.diff("main...work", path=("app.py",)).found == 0
    repository.commit(store=STORE.replace("LIMIT = 10", "LIMIT = 12\n_hidden = 4"))
    assert names(repository.diff("HEAD~1", "HEAD")) == {"breaking": ["LIMIT"], "added": ["_hidden"]}
    assert names(repository.diff("HEAD~1", "HEAD", public=True)) == {"breaking": ["LIMIT"]}
    first, second = (repository.diff("HEAD~1", "HEAD", page=Page(1, number=number)) for number in (1, 2))
    assert [list(names(each)) for each in (first, second)] == [["breaking"], ["added"]]
    assert repository.diff("main..work", fail_on=("breaking",)).summary["not_allowed"] == ["breaking"]
    for wrong in (("a", "b", "c"), ("HEAD..HEAD", "HEAD")):
        with pytest.raises(UsageError, match="two states"):
            repository.diff(*wrong)
    with pytest.raises(UsageError, match="no such commit"):
        repository.diff("nosuch")


def test_the_same_two_states_give_the_same_bytes(repository: Repository):
    repository.commit(store=STORE.replace("row):", "row, deep):"))
    first, second = (repository.diff("HEAD~1", "HEAD") for _ in range(2))
    assert (first.summary, first.sections) == (second.summary, second.sections)
    assert first.summary["diff_id"].startswith("diff_")
    assert json.loads(json.dumps(first.summary))["breaking"] == 1
    (repository.root / "app.py").write_text("")
    here = repository.diff("HEAD").summary["diff_id"]
    (repository.root / "app.py").write_text(APP)
    repository.diff("HEAD")
    (repository.root / "app.py").write_text("")
    assert repository.diff("HEAD").summary["diff_id"] == here  # whatever the work tree was meanwhile
