"""`Workspace.resolve`, `cq index --precise`: calls that the index leaves open, closed by servers, once per text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cq import Workspace
from cq.indexing import precise
from cq.model.answer import CallDetails
from cq.model.provider import Coverage, Place, Reply
from cq.providers.programs import Detection
from cq.providers.registry import SERVER_KINDS, Provider, Registry
from cq.questions.calls import CallsOptions
from tests.support.servers import write_tree

pytestmark = pytest.mark.slow

TREE = """
#- box.py
class Box:
    def open(self): ...
class Door:
    def __init__(self): ...
    def open(self): ...
#- use.py
from typing import Generic, TypeVar
import box
T = TypeVar("T")
class Holder(Generic[T]):
    def get(self) -> T: ...
def generic(h: Holder[box.Box]):
    h.get().open()
def made(kind: Holder[type[box.Door]]):
    kind.get()().open()
def outside(x: Holder[str]):
    x.get().upper()
def unknown(x):
    x.open()
#- more.py
import box
def other(x):
    x.open()
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    (tmp_path / "repo").mkdir()
    root = write_tree(tmp_path / "repo", TREE).root
    with Workspace.open(root, index_dir=tmp_path / "index") as workspace:
        yield workspace


def callers(workspace: Workspace, target: str) -> dict[str, tuple[str, str]]:
    answer = workspace.calls(CallsOptions(target))
    rows = [finding.details for section in answer.sections for finding in section.findings]
    return {row.caller: (row.status, row.evidence[0]) for row in rows if isinstance(row, CallDetails)}


class Fake:
    """Says that every call means Box.open; fails for the files it is told to."""

    def __init__(self, workspace: Workspace, name: str = "fake", version: str = "1", fails: str = "") -> None:
        self.asked: list[str] = []
        at = (workspace.root / "box.py").read_text().index("open")
        place = Place("box.py", at, at + 4)

        def run(_site: Any, _detection: Any, plane: str, targets: Any, _budget: Any) -> list[Reply[Any]]:
            self.asked += [target.document.path for target in targets]
            return [
                Reply(name, plane, Coverage("unresolved", "no"), failed=True)
                if fails and target.document.path.startswith(fails)
                else Reply(name, plane, Coverage("complete"), (place,))
                for target in targets
            ]

        self.provider = Provider(
            name, name, 1, ("python",), SERVER_KINDS, name, lambda _: Detection(True, version), run
        )  # fmt: skip
        workspace.index._registry = Registry(workspace.root, providers=[self.provider])


def test_what_pyrefly_knows_is_certain_and_says_so(workspace: Workspace):
    assert {status for status, _ in callers(workspace, "Box.open").values()} == {"possible"}
    report = workspace.resolve()
    (source,) = report.sources
    assert (source.source, source.files, source.failed) == ("lsp.pyrefly", 2, 0)
    assert callers(workspace, "Box.open") == {
        "generic": ("certain", "lsp.pyrefly"), "unknown": ("possible", "name"), "other": ("possible", "name"),
    }  # fmt: skip
    assert callers(workspace, "Door.open")["made"] == ("certain", "lsp.pyrefly")
    assert "outside" not in callers(workspace, "Door.open")
    assert report.calls == source.asked == source.resolved + source.external + source.unknown
    again = workspace.resolve()
    assert (again.calls, again.known, again.sources) == (0, 2, ())


def test_typescript_is_asked_over_its_own_interface(tmp_path: Path, tools: Path):
    del tools  # it is installed
    root = write_tree(
        tmp_path,
        """
        //- tsconfig.json
        {"compilerOptions": {"strict": true}}
        //- box.ts
        export class Box { open() {} }
        export class Door { open() {} }
        //- use.ts
        import { Box, Door } from "./box";
        export function narrowed(value: unknown) {
          if (value instanceof Box) value.open();
        }
        """,
    ).root
    with Workspace.open(root, index_dir=tmp_path / ".index") as workspace:
        assert set(callers(workspace, "Box.open").values()) == {("possible", "name")}
        report = workspace.resolve()
        assert [row.source for row in report.sources] == ["lsp.typescript"]
        assert callers(workspace, "Box.open") == {"narrowed": ("certain", "lsp.typescript")}
        assert callers(workspace, "Door.open") == {}


def test_a_text_is_asked_about_once_per_version(workspace: Workspace):
    fake = Fake(workspace)
    workspace.resolve()
    assert set(fake.asked) == {"more.py", "use.py"}
    (workspace.root / "more.py").write_text((workspace.root / "more.py").read_text() + "# changed\n")
    fake.asked.clear()
    workspace.resolve()
    assert set(fake.asked) == {"more.py"}
    newer = Fake(workspace, version="2")
    workspace.resolve()
    assert set(newer.asked) == {"more.py", "use.py"}


def test_a_target_that_changed_is_asked_for_again(workspace: Workspace):
    fake = Fake(workspace)
    workspace.resolve()
    (workspace.root / "box.py").write_text((workspace.root / "box.py").read_text() + "# changed\n")
    assert callers(workspace, "Box.open")["other"] == ("possible", "name")
    fake.asked.clear()
    workspace.resolve()
    assert set(fake.asked) == {"more.py", "use.py"}
    assert callers(workspace, "Box.open")["other"] == ("certain", "lsp.fake")


def test_a_budget_stops_it_and_the_next_run_goes_on(workspace: Workspace, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(precise, "_BATCH", 1)
    fake = Fake(workspace)
    report = workspace.resolve(most=1)
    assert (set(fake.asked), report.left) == ({"more.py"}, report.calls - 1)
    assert callers(workspace, "Box.open")["other"] == ("certain", "lsp.fake")
    fake.asked.clear()
    report = workspace.resolve()
    assert (set(fake.asked), report.known, report.left) == ({"use.py"}, 1, 0)


def test_what_failed_is_asked_again_and_a_server_that_never_answers_is_given_up(workspace: Workspace):
    Fake(workspace, fails="use")
    (source,) = workspace.resolve().sources
    assert source.failed > 0
    assert source.files == 1
    fake = Fake(workspace)
    workspace.resolve()
    assert set(fake.asked) == {"use.py"}
    (workspace.root / "more.py").write_text("import box\ndef other(y):\n    y.open()\n")
    Fake(workspace, fails="m")
    report = workspace.resolve()
    assert report.left == report.calls == 1
    assert report.notes == ("fake: no",)


def test_a_kill_between_two_writes_keeps_what_was_written(workspace: Workspace, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(precise, "_BATCH", 1)
    fake = Fake(workspace)

    def stop(progress: Any) -> None:
        if progress.stage == "precise" and progress.done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        workspace.resolve(on_progress=stop)
    assert callers(workspace, "Box.open")["other"] == ("certain", "lsp.fake")
    fake.asked.clear()
    workspace.resolve()
    assert set(fake.asked) == {"use.py"}


def test_without_a_server_nothing_is_asked_and_the_reason_is_told(workspace: Workspace):
    workspace.index._registry = Registry(workspace.root, providers=[])
    report = workspace.resolve()
    assert (report.calls, report.notes) == (0, ("python: no provider answers definition for python",))
