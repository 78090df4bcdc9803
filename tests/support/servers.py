"""Documents and sessions for tests of providers: a fixture on disk, a server that runs and is gone afterwards."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from cq.model.provider import Place
from cq.model.source import SourceFile
from cq.providers.answers import Target
from cq.providers.documents import Document
from cq.providers.session import Budget, ServerSpec, Session
from cq.source.read import read_source
from tests.support.fixture import Fixture, parse_fixture

STUB = Path(__file__).with_name("stub_server.py")
# For answers that come, however loaded the machine is; and for those that do not.
PATIENT = Budget(initialize=20, first=20, point=20, project=20, project_first=20, attempts=1, total=60)
QUICK = Budget(initialize=20, first=0.4, point=0.4, project=0.4, project_first=0.4, attempts=1, total=30)


class Tree(NamedTuple):
    """A fixture that has been written to a directory."""

    root: Path
    fixture: Fixture

    def document(self, path: str) -> Document:
        source = read_source(self.root, path)
        assert isinstance(source, SourceFile)
        return Document.of(source)

    def target(self, label: str = "") -> Target:
        """At the cursor, or at the start of what bears the label."""
        if not label:
            assert self.fixture.cursor
            path, offset = self.fixture.cursor
        else:
            (mark,) = self.fixture.marked(label)
            path, offset = mark.path, mark.start
        return Target(self.document(path), offset)

    def places(self, label: str) -> set[Place]:
        return {Place(mark.path, mark.start, mark.end) for mark in self.fixture.marked(label)}


def write_tree(root: Path, snippet: str) -> Tree:
    fixture = parse_fixture(snippet)
    for path, text in fixture.files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())
    return Tree(root.resolve(), fixture)


def stub_session(root: Path, *mode: str, **more: Any) -> Session:
    command = (sys.executable, "-I", os.fspath(STUB), *mode)
    return Session(root, ServerSpec("stub", command, {"python": "python"}, **more))


def is_gone(group: int, seconds: float = 20.0) -> bool:
    """No process of the group is left. Those a killed leader leaves are reaped by init, a moment later."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False
