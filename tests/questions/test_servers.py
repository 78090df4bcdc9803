"""Language servers at the questions: what they say is told in locations and definitions of the index."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cq import Answer, CallsOptions, Finding, SearchOptions, Workspace
from cq.answers.enrichment import _doubt
from cq.model.provider import Coverage, Reply, Telemetry
from cq.providers import sessions
from cq.providers.session import BUDGETS
from cq.providers.sessions import find_sessions
from cq.snapshot.servers import Servers
from cq.snapshot.snapshot import open_snapshot
from cq.snapshot.target import find_targets
from tests.support.servers import is_gone, write_tree

TREE = """
#- db.py
class Base:
    def run(self, sql: str) -> list[int]:
        '''Runs it.'''
        return []
#- app.py
from db import Base
def main(base: Base):
    return base.run("x")
#- notes.md
```python
def lone(a: int) -> str: ...
lone(1)
```
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write_tree(tmp_path, TREE).root


@contextmanager
def asking(workspace: Workspace, *, on: bool = True) -> Iterator[Servers]:
    workspace.refresh()
    with open_snapshot(workspace.index) as snapshot:
        yield snapshot.open_servers(on=on)


def open_workspace(root: Path) -> Workspace:
    return Workspace.open(root, index_dir=root / ".index")


def test_what_a_server_says_is_joined_by_place(root: Path):
    with open_workspace(root) as workspace, asking(workspace) as servers:
        (row,) = find_targets(servers.files, "Base.run")
        (reply,) = servers.ask("incoming_calls", [row], "precise")
        (caller,) = reply.items
        spot = servers.find(caller.place)
        assert spot is not None
        assert spot.named
        assert spot.definition is not None
        assert (spot.location.path, spot.definition.symbol.qualified_name) == ("app.py", "main")
        site = servers.find(caller.sites[0])
        assert site is not None
        assert (site.named, site.definition, site.location.start_line) == (False, spot.definition, 3)
        assert servers.telemetry() == Telemetry(True, 1, 1)
        assert servers.events() == ()
        groups = [session.pid for session in find_sessions(root) if session.pid]
        assert groups
    assert all(map(is_gone, groups))


def test_an_embedded_document_is_asked_about_in_its_own_text(root: Path):
    with open_workspace(root) as workspace, asking(workspace) as servers:
        (row,) = find_targets(servers.files, "notes.md:lone")
        (hover,) = servers.ask("hover", [row], "precise")[0].items
        assert hover.returns == "str"


def test_with_servers_switched_off_nothing_is_started_and_nothing_is_complete(root: Path):
    with open_workspace(root) as workspace, asking(workspace, on=False) as servers:
        (reply,) = servers.ask("hover", find_targets(servers.files, "main"))
        assert reply.coverage.state == "unresolved"
        assert servers.telemetry() == Telemetry(skipped=1)
        assert find_sessions(root) == []


def test_a_file_that_is_not_as_indexed_is_not_joined(root: Path):
    with open_workspace(root) as workspace, asking(workspace) as servers:
        (row,) = find_targets(servers.files, "Base.run")
        (root / "app.py").write_text("# one line more\n" + (root / "app.py").read_text())
        (reply,) = servers.ask("incoming_calls", [row], "precise")
        assert [servers.find(item.place) for item in reply.items] == [None]
        assert [event.category for event in servers.events()] == ["stale"]


def test_servers_kept_warm_hear_what_changed(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sessions, "keep_warm", True)
    try:
        for count, text in ((1, None), (2, "from db import Base\ndef second(b: Base): b.run('')\n")):
            if text:
                (root / "more.py").write_text(text)
            with open_workspace(root) as workspace, asking(workspace) as servers:
                (reply,) = servers.ask("incoming_calls", find_targets(servers.files, "Base.run"), "precise")
                assert len(reply.items) == count
                with open_snapshot(workspace.index) as snapshot:
                    assert snapshot.has_warm_servers()
        assert [session.generation for session in find_sessions(root)] == [1]
    finally:
        sessions.close_sessions(root)


def lines(answer: Answer) -> dict[str, str]:
    (section,) = [section for section in answer.sections if section.kind == "lsp"] or [None]
    return {finding.category: finding.message for finding in section.findings} if section else {}


def findings(answer: Answer) -> list[Finding]:
    return [row for section in answer.sections for row in section.findings if row.category != "follow_up"]


@pytest.mark.parametrize("command", ["search", "calls"])
def test_the_target_is_enriched_where_a_server_runs_or_is_asked_for(
    root: Path, command: str, monkeypatch: pytest.MonkeyPatch
):
    # What is said is tested, not how fast a busy machine starts a server.
    for mode in ("interactive", "prefetch"):
        monkeypatch.setitem(BUDGETS, mode, BUDGETS["precise"])

    def ask(workspace: Workspace, servers: bool | None) -> Answer:
        if command == "search":
            return workspace.search(SearchOptions("run", servers=servers))
        return workspace.calls(CallsOptions("run", servers=servers))

    with open_workspace(root) as workspace:
        cold = ask(workspace, None)
        assert lines(cold) == {}
        assert find_sessions(root) == []
        told = ask(workspace, True)
        assert lines(told) == {
            "type": "def run( self: Self@Base, sql: str ) -> list[int]",
            "incoming_calls": "called by 1: main",
            "outgoing_calls": "calls none",
        }
        assert told.insight is not None
        assert told.insight.degradation.lsp == "ok"
        assert told.insight.neighborhood["incoming"].preview == ("main",)
        assert told.summary["lsp"]["applied"] == 4
        warm = ask(workspace, None)
        assert lines(warm) == lines(told)
        again = ask(workspace, False)
        assert again.insight is not None
        assert cold.insight is not None
        assert (lines(again), again.summary) == ({}, cold.summary)
        assert again.insight.degradation == cold.insight.degradation
        assert again.insight.neighborhood == cold.insight.neighborhood
        # Only the commands that lead on differ: they keep what was asked for.
        assert findings(again) == findings(cold)


def test_another_target_than_the_likely_one_is_asked_about_all_the_same(root: Path):
    (root / "other.py").write_text("def go(x: int):\n    '''say run'''\n    return undefined_name\n")
    with open_workspace(root) as workspace:
        answer = workspace.search(SearchOptions("def go", servers=True))
        assert "error" not in lines(answer)  # no definition is the target of a text
        answer = workspace.search(SearchOptions("go", servers=True))
        assert "undefined_name" in lines(answer)["error"]


def test_partial_is_never_shown_as_all():
    reply = Reply[Any]("pyrefly", "incoming_calls", Coverage("partial", "still indexing"))
    assert _doubt(reply) == ", at least (still indexing)"
