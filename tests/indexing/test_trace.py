"""What really ran is evidence beside the links, of the texts of now."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cq.model.answer import CallDetails
from cq.model.errors import StoreError, UsageError
from cq.model.evidence import TraceReport
from cq.workspace import Workspace
from tests.store.conftest import write_files
from tests.support.fixture import parse_fixture

JOBS = """
#- jobs.py
class Jobs:
    def run(self, name):
        return getattr(self, name)(known())
    def mail(self, one):
        return self.size
    @property
    def size(self):
        return 2
def known(): ...
def other(): ...
"""
RUN = {"path": "jobs.py", "line": 3, "column": 16, "end_line": 3, "end_column": 44}


@pytest.fixture
def jobs(tmp_path: Path) -> Workspace:
    root = write_files(tmp_path / "repo", parse_fixture(JOBS).files)
    return Workspace.open(root, index_dir=tmp_path / "index")


def make(line: int, name: str, call: dict[str, Any] = RUN, home: str = "jobs.py") -> dict[str, Any]:
    return {**call, "callee": {"path": home, "line": line, "name": name}}


def write(folder: Path, *rows: dict[str, Any]) -> Path:
    file = folder / "calls.jsonl"
    file.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    return file


def find_sites(workspace: Workspace, target: str) -> list[tuple[str, ...]]:
    answer = workspace.calls(target)
    rows = [f.details for section in answer.sections for f in section.findings if isinstance(f.details, CallDetails)]
    return [(row.status, *row.evidence) for row in rows]


def test_what_ran_is_shown_beside_links(jobs: Workspace, tmp_path: Path):
    assert find_sites(jobs, "Jobs.mail") == []
    report = jobs.ingest(write(tmp_path, make(4, "mail")), "trace")
    assert isinstance(report, TraceReport)
    assert (report.rows, report.edges, report.calls, report.lacking) == (1, 1, 1, 1)
    assert [row[0] for row in find_sites(jobs, "Jobs.mail")] == ["certain"]
    assert [row[0] for row in find_sites(jobs, "known")] == ["certain"]
    assert jobs.validate().ok


def test_what_links_are_sure_of_stands(jobs: Workspace, tmp_path: Path):
    inner = {"path": "jobs.py", "line": 3, "column": 36, "end_line": 3, "end_column": 43}
    jobs.ingest(write(tmp_path, make(9, "known", inner), make(10, "other", inner)), "trace")
    assert [row[0] for row in find_sites(jobs, "known")] == ["certain"]
    assert [row[0] for row in find_sites(jobs, "other")] == ["certain"]


def test_several_that_ran_are_possible(jobs: Workspace, tmp_path: Path):
    jobs.ingest(write(tmp_path, make(4, "mail"), make(10, "other")), "trace")
    assert [row[0] for row in find_sites(jobs, "Jobs.mail")] == ["possible"]
    assert [row[0] for row in find_sites(jobs, "other")] == ["possible"]


def test_a_call_is_found_by_its_line_and_name(jobs: Workspace, tmp_path: Path):
    report = jobs.ingest(write(tmp_path, make(9, "known", {"path": "jobs.py", "line": 3})), "trace")
    assert isinstance(report, TraceReport)
    assert (report.calls, report.certain) == (1, 1)


def test_validate_lists_what_links_lack_and_keeps_nothing(jobs: Workspace, tmp_path: Path):
    size = {"path": "jobs.py", "line": 5, "column": 16, "end_line": 5, "end_column": 25}
    file = write(
        tmp_path, make(4, "mail"), make(6, "size", size), make(4, "gone"), make(1, "f", home="away.py"),
    )  # fmt: skip
    trace = jobs.validate(trace=file).trace
    assert trace is not None
    assert (trace.rows, trace.unknown, trace.unplaced, trace.elsewhere) == (4, 1, 1, 1)
    assert [(row.place, row.caller, row.callee) for row in trace.first_lacking] == [
        ("jobs.py:3", "Jobs.run", "jobs.py:Jobs.mail")
    ]
    assert trace.possible == 1  # a property that is read
    assert find_sites(jobs, "Jobs.mail") == []
    jobs.ingest(file, "trace")
    assert jobs.validate(trace=file).trace == trace


def test_it_is_forgotten_when_asked_and_where_the_text_changes(jobs: Workspace, tmp_path: Path):
    file = write(tmp_path, make(4, "mail"))
    jobs.ingest(file, "trace")
    jobs.ingest(None)
    assert find_sites(jobs, "Jobs.mail") == []
    jobs.ingest(file, "trace")
    source = tmp_path / "repo" / "jobs.py"
    source.write_text(source.read_text() + "x = 1\n")
    assert find_sites(jobs, "Jobs.mail") == []


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"path": "a", "line": "1", "callee": {}}', "[" * 100_000, '{"path": "a", "line": 1, "x": 2}']
)
def test_a_line_that_is_none_is_named(jobs: Workspace, tmp_path: Path, text: str):
    file = tmp_path / "bad.jsonl"
    file.write_text(f"\n{text}\n")
    with pytest.raises(UsageError, match=r"bad\.jsonl, line 2 is no line of a trace"):
        jobs.ingest(file, "trace")
    with pytest.raises(StoreError):
        jobs.ingest(tmp_path / "nothing", "trace")


def test_numbers_beyond_the_file_are_no_place(jobs: Workspace, tmp_path: Path):
    rows = [make(4, "mail", {**RUN, "line": line}) for line in (0, -3, 10**15)]
    report = jobs.ingest(write(tmp_path, *rows, make(-1, "mail")), "trace")
    assert isinstance(report, TraceReport)
    assert (report.unplaced, report.edges) == (4, 0)
