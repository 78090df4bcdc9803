"""`cq lsp`: every plane that has no command of its own, as a server says it, and honest where none does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from cq import Answer, Workspace
from cq.model.answer import Finding, ServerDetails
from cq.model.errors import UsageError
from cq.model.provider import (
    Action,
    Coverage,
    Diagnostic,
    Expansion,
    Hint,
    Outline,
    Place,
    Reply,
    Runnable,
    Signature,
    Token,
)  # fmt: skip
from cq.providers.answers import Target
from cq.providers.planes import PLANES
from cq.providers.programs import Detection
from cq.providers.registry import SERVER_KINDS, Provider, Registry
from cq.questions.lsp import ABOUT, LspOptions

TEXT = "class Box:\n    def put(self, x):\n        return x\nBox().put(1)\n"
NAME = Place("app.py", 6, 9)
SAID: dict[str, Sequence[Any]] = {
    "actions": [Action("Import it", "quickfix", True, "", 2, ""), Action("Fix all", command="server.fix")],
    "declaration": [NAME],
    "definition": [NAME],
    "document_symbols": [
        Outline("Box", "class", NAME, 0, 50),
        Outline("put", "method", Place("app.py", 19, 22), depth=1),
    ],
    "hints": [Hint(9, ": int", "type")],
    "implementation": [NAME, Place("app.py", 19, 22)],
    "macro": [Expansion("vec", "Vec::new()\nlet x;")],
    "runnables": [Runnable("test put", "cargo", NAME, ("test",))],
    "signature_help": [Signature("put(x)", ("x",), 0, "Puts it.", True)],
    "tokens": [Token(6, 9, "class", ("declaration",))],
    "type_definition": [Place("", external="typeshed/builtins.pyi", line=3)],
    "workspace_diagnostics": [Diagnostic(NAME, "error", "it is wrong", "bad")],
    "workspace_symbols": [Outline("Box", "class", NAME, 0, 50)],
}
TARGETS = {"file": "app.py", "all": "", "words": "Bo", "point": "app.py:1:7", "span": "app.py:1"}


@pytest.fixture
def asked() -> list[tuple[str, Target]]:
    return []


@pytest.fixture
def workspace(tmp_path: Path, asked: list[tuple[str, Target]]) -> Iterator[Workspace]:
    def run(_site: Any, _detection: Any, plane: str, targets: Sequence[Target], _budget: Any) -> list[Reply[Any]]:
        asked.extend((plane, target) for target in targets)
        return [Reply("fake", plane, Coverage("complete"), tuple(SAID[plane]))] * len(targets)

    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "app.py").write_text(TEXT)
    kinds = (*SERVER_KINDS, "macros", "runnables")
    fake = Provider("fake", "fake", 1, ("python",), kinds, "fake", lambda _: Detection(True, "fake 1"), run)
    with Workspace.open(tmp_path / "repo", index_dir=tmp_path / "index") as workspace:
        workspace.index._registry = Registry(tmp_path / "repo", providers=[fake])
        yield workspace


def rows(answer: Answer) -> list[Finding]:
    return [f for section in answer.sections for f in section.findings if isinstance(f.details, ServerDetails)]


@pytest.mark.parametrize("word", ABOUT)
def test_every_plane_has_a_word(workspace: Workspace, word: str):
    plane, scope = ABOUT[word]
    answer = workspace.lsp(LspOptions(word, TARGETS[scope]))
    assert answer.found == len(SAID[plane]) - (word == "implementation")  # what is asked about implements nothing
    assert all(row.location is not None for row in rows(answer))
    assert {row.details.source for row in rows(answer) if isinstance(row.details, ServerDetails)} == {"lsp.fake"}


def test_every_plane_of_servers_can_be_asked_for():
    # hover, references, hierarchies and diagnostics have commands of their own.
    other = {"hover", "references", "incoming_calls", "outgoing_calls", "supertypes", "subtypes", "diagnostics"}
    assert {plane for plane, _ in ABOUT.values()} | other == set(PLANES)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("actions", "Import it (quickfix, preferred, 2 edits)"),
        ("signature-help", "put(x) (at x)"),
        ("runnables", "test put (cargo test); not run"),
        ("type-definition", "typeshed/builtins.pyi (outside)"),
        ("tokens", "Box: class declaration"),
    ],
)
def test_what_is_said(workspace: Workspace, word: str, message: str):
    assert rows(workspace.lsp(LspOptions(word, TARGETS[ABOUT[word][1]])))[0].message == message


def test_what_servers_are_asked_about(workspace: Workspace, asked: list[tuple[str, Target]]):
    workspace.lsp(LspOptions("actions", "app.py:4"))
    workspace.lsp(LspOptions("signature-help", "app.py:4:11"))  # behind the bracket, where no name stands
    workspace.lsp(LspOptions("tokens", "Box.put"))
    workspace.lsp(LspOptions("tokens", "app.py:1:8"))  # the name that stands there
    workspace.lsp(LspOptions("document-symbols", "Box"))
    assert [(plane, target.offset, target.end) for plane, target in asked] == [
        ("actions", 50, 62), ("signature_help", 60, -1), ("tokens", 15, 49), ("tokens", 6, 9),
        ("document_symbols", 0, -1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (LspOptions("action", "app.py"), "there is no plane 'action'"),
        (LspOptions("actions"), "needs a TARGET"),
        (LspOptions("workspace-diagnostics", "app.py"), "takes no TARGET"),
        (LspOptions("hints", "app.py", ("python",)), "takes no language"),
        (LspOptions("definition", "app.py"), "app.py is a file"),
        (LspOptions("actions", "app.py:99"), "has no line 99"),
        (LspOptions("definition", "app.py:99:1"), "has no line 99"),
    ],
)
def test_what_cannot_be_asked(workspace: Workspace, options: LspOptions, said: str):
    with pytest.raises(UsageError, match=said):
        workspace.lsp(options)


def test_without_a_server_that_offers_it_nothing_is_said_and_why(workspace: Workspace):
    workspace.index._registry = Registry(workspace.root, providers=[])
    answer = workspace.lsp(LspOptions("macro", "app.py:1:7"))
    assert (answer.found, [event.message for event in answer.degraded]) == (0, ["no provider answers macro for python"])
    off = workspace.lsp(LspOptions("actions", "app.py", servers=False))
    assert (off.found, off.summary["coverage"][0]["reason"]) == (0, "language servers were not to be asked")
