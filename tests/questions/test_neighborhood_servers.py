"""What language servers add to a neighborhood, and that one which fails takes nothing away."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cq import Workspace
from cq.model.neighborhood import Bundle, BundleEdge, NeighborhoodSlice
from cq.model.provider import Coverage, Diagnostic, HierarchyItem, Hint, Hover, Place, Reply, Token
from cq.providers.answers import Target
from cq.providers.programs import Detection
from cq.providers.registry import SERVER_KINDS, Provider, Registry, serve
from cq.providers.session import ServerSpec
from cq.questions.neighborhood import NeighborhoodOptions
from cq.snapshot import servers
from tests.support.servers import QUICK, STUB, Tree, write_tree

pytestmark = pytest.mark.slow

TREE = """
#- app.py
def ta$0rget(x):
    return x + 1
def known():
    return target(1)
def hidden(call):
    return call(2)
    #      ^^^^ server
class Box:
    def target(self, x): ...
def maybe(box):
    return box.target(3)
"""


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return write_tree(tmp_path / "repo", TREE)


def ask(tree: Tree, provider: Provider, target: str = "app.py:target") -> Bundle:
    with Workspace.open(tree.root, index_dir=tree.root.parent / "index") as workspace:
        workspace.index._registry = Registry(tree.root, providers=[provider])
        answer = workspace.neighborhood(NeighborhoodOptions(target, lsp=True))
    assert isinstance(answer.bundle, Bundle)
    return answer.bundle


def slice_of(bundle: Bundle, kind: str) -> NeighborhoodSlice:
    (part,) = [part for part in bundle.slices if part.kind == kind]
    return part


def edges_of(bundle: Bundle, kind: str) -> dict[str, BundleEdge]:
    """By the name of the other side's node."""
    return {edge.source_node_id.rpartition(":")[2]: edge for edge in slice_of(bundle, kind).edges}


def make_provider(items: dict[str, Sequence[Any]], state: str = "complete") -> Provider:
    def run(_site: Any, _detection: Any, plane: str, targets: Sequence[Target], _budget: Any) -> list[Reply[Any]]:
        if plane not in items:
            return [Reply("fake", plane, Coverage("unresolved", "not offered"))] * len(targets)
        return [Reply("fake", plane, Coverage(state), tuple(items[plane]))] * len(targets)

    return Provider("fake", "fake", 1, ("python",), SERVER_KINDS, "fake", lambda _: Detection(True, "fake 1"), run)


def test_members_are_confirmed_added_and_never_taken_away(tree: Tree):
    text = tree.fixture.files["app.py"].encode()

    def item(name: str) -> HierarchyItem:
        start = text.index(f"def {name}".encode()) + 4
        return HierarchyItem(name, "function", Place("app.py", start, start + len(name)))

    provider = make_provider({"incoming_calls": [item("known"), item("hidden")]})
    bundle = ask(tree, provider)
    callers = edges_of(bundle, "callers")
    assert set(callers) == {"known", "hidden"}
    assert callers["known"].evidence_source == "graph.scope"
    assert callers["known"].metadata["confirmed_by"] == ["lsp.fake"]
    assert callers["hidden"].evidence_source == "lsp.fake"
    assert slice_of(bundle, "callers").total == 2

    method = ask(tree, provider, "app.py:Box.target")
    callers = edges_of(method, "callers")
    # The complete answer does not name `maybe`: it stays, only possible, and says so.
    assert callers["maybe"].metadata["status"] == "possible"
    assert callers["maybe"].metadata["unconfirmed_by"] == ["lsp.fake"]
    assert {name for name, edge in callers.items() if "status" not in edge.metadata} == {"known", "hidden"}


def test_a_partial_answer_hides_nothing(tree: Tree):
    bundle = ask(tree, make_provider({"references": []}, "partial"))
    assert [node.line for node in slice_of(bundle, "references").preview] == [4]
    assert bundle.meta.lsp_servers[0]["state"] == "partial"


def test_references_are_merged_by_place(tree: Tree):
    text = tree.fixture.files["app.py"].encode()
    (mark,) = tree.fixture.marked("server")
    known = text.index(b"target(1)")
    bundle = ask(
        tree, make_provider({"references": [Place("app.py", known, known + 6), Place("app.py", mark.start, mark.end)]})
    )
    references = slice_of(bundle, "references")
    assert [(node.line, node.col) for node in references.preview] == [(4, 12), (6, 12)]
    assert [edge.evidence_source for edge in references.edges] == ["graph.scope", "lsp.fake"]


def test_deep_signals(tree: Tree):
    bundle = ask(
        tree,
        make_provider(
            {
                "hover": [Hover("def target(x: int) -> int", signature="def target(x: int) -> int")],
                "hints": [Hint(12, ": int", "type"), Hint(900, "elsewhere")],
                "diagnostics": [Diagnostic(Place("app.py", 25, 26), "error", "no such operator", "op")],
                "tokens": [
                    Token(4, 10, "function", ("definition",)),
                    Token(11, 12, "parameter"),
                    Token(26, 27, "parameter"),
                    Token(900, 910, "function"),
                ],
            }
        ),
    )
    part = slice_of(bundle, "lsp_deep_signals")
    assert [(node.kind, node.line, node.signature, node.display_label) for node in part.preview] == [
        ("type", 1, "def target(x: int) -> int", ""),
        ("hint", 1, ": int", "type"),
        ("diagnostic", 2, "error: no such operator", "error"),
        ("token", 1, "target", "function definition"),
        ("token", 1, "x", "parameter"),
        ("token", 2, "x", "parameter"),
    ]
    assert [node.byte_span for node in part.preview][3:] == [(4, 10), (11, 12), (26, 27)]
    assert part.metadata["tokens"] == {"function": 1, "parameter": 2}
    assert all(edge.evidence_source == "lsp.fake" for edge in part.edges)


def test_servers_that_name_the_subject_add_nothing(tree: Tree):
    start = tree.fixture.files["app.py"].index("def target") + 4
    itself = Place("app.py", start, start + 6)
    item = HierarchyItem("target", "function", itself)
    bundle = ask(tree, make_provider({"incoming_calls": [item], "outgoing_calls": [item]}))
    assert set(edges_of(bundle, "callers")) == {"known"}
    assert slice_of(bundle, "callees").total == 0
    box = tree.fixture.files["app.py"].index("def target(self") + 4
    method = ask(tree, make_provider({"implementation": [Place("app.py", box, box + 6)]}), "app.py:Box.target")
    assert slice_of(method, "implementations").total == 0


def test_how_a_server_stands_is_in_the_document(tree: Tree):
    def spec(_site: Any, _detection: Any) -> ServerSpec:
        return ServerSpec("stub", (sys.executable, "-I", os.fspath(STUB), "good"), {"python": "python"})

    stub = Provider(
        "stub", "stub", 1, ("python",), SERVER_KINDS, "stub", lambda _: Detection(True, "stub 1"), serve(spec)
    )  # fmt: skip
    (told,) = ask(tree, stub).meta.lsp_servers
    assert {name: told[name] for name in ("position_encoding", "health", "quiescent")} == {
        "position_encoding": "utf-16", "health": "unknown", "quiescent": True,
    }  # fmt: skip


@pytest.mark.parametrize("mode", ["crash", "silent", "dies", "garbage"])
def test_a_server_that_fails_takes_nothing_away(tree: Tree, mode: str, monkeypatch: pytest.MonkeyPatch):
    def spec(_site: Any, _detection: Any) -> ServerSpec:
        return ServerSpec("stub", (sys.executable, "-I", os.fspath(STUB), mode), {"python": "python"})

    stub = Provider(
        "stub", "stub", 1, ("python",), SERVER_KINDS, "stub", lambda _: Detection(True, "stub 1"), serve(spec)
    )  # fmt: skip
    monkeypatch.setitem(servers.BUDGETS, "interactive", QUICK)
    bundle = ask(tree, stub)
    assert [node.name for node in slice_of(bundle, "callers").preview] == ["known"]
    assert any(event.stage == "providers.stub" for event in bundle.diagnostics)


def test_without_a_server_nobody_is_asked_and_the_bundle_is_the_same(tree: Tree):
    with Workspace.open(tree.root, index_dir=tree.root.parent / "index") as workspace:
        workspace.index._registry = Registry(tree.root, providers=[])
        absent, off = (
            workspace.neighborhood(NeighborhoodOptions("app.py:target", lsp=lsp)).bundle for lsp in (True, False)
        )
    assert isinstance(absent, Bundle)
    assert isinstance(off, Bundle)
    assert absent.slices == off.slices
    assert {event.category for event in absent.diagnostics} >= {"references", "hover"}
    assert off.diagnostics == ()
