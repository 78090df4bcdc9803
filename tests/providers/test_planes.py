"""Answers of every shape, also those no server should send: read or left out, never an exception."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cq.model.provider import Expansion, Hint, Hover, Parameter, Place, Reply, Runnable, Signature, Token
from cq.providers.answers import Target, apply_token_edits, decode_tokens
from cq.providers.documents import Document
from cq.providers.hover import parse_hover
from cq.providers.planes import PLANES, ask
from cq.providers.rpc import ServerError
from cq.providers.session import ServerSpec, Session, parse_capabilities

pytestmark = pytest.mark.slow

TEXT = b"class A:\n    def f(self): ...\n"
URI = "file:///root/a.py"
SPAN = {"start": {"line": 0, "character": 6}, "end": {"line": 0, "character": 7}}
KEYS = [
    "uri", "range", "contents", "name", "kind", "location", "items", "diagnostics", "message", "position", "label",
    "data", "edits", "selectionRange", "children", "from", "to", "fromRanges", "title", "command", "edit", "changes",
    "documentChanges", "relatedDocuments", "targetUri", "value", "targetSelectionRange", "relatedInformation", "tags",
    "code", "severity", "start", "end", "resultId",
]  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from([URI, SPAN]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(KEYS),
            inner,
            max_size=6,
        )
    ),
    max_leaves=25,
)


class Scripted(Session):
    """A session whose server answers every request with the same."""

    def __init__(self, result: Any) -> None:
        every = frozenset(each.capability for each in PLANES.values())
        super().__init__(Path("/root"), ServerSpec("scripted", (), {}, unadvertised=every))
        self.capabilities = parse_capabilities(deepcopy(CAPABILITIES), {})
        self.result = result

    def connect(self, budget: Any, deadline: float) -> Any:
        return SimpleNamespace(notify=lambda *_: None)

    def call(self, connection: Any, method: str, many: Any, **_: Any) -> list[Any]:
        return [self.result.get(method) if isinstance(self.result, Methods) else self.result for _ in many]


class Methods(dict[str, Any]):
    """Answers by method."""


CAPABILITIES = {
    "semanticTokensProvider": {
        "legend": {"tokenTypes": ["class", "method"], "tokenModifiers": ["static"]},
        "full": True,
    },
    "workspaceSymbolProvider": {"resolveProvider": True},
    "codeActionProvider": {"resolveProvider": True},
    "signatureHelpProvider": {},
    "inlayHintProvider": {"resolveProvider": True},
    "diagnosticProvider": {"workspaceDiagnostics": True},
}


def read(plane: str, result: Any) -> Reply[Any]:
    (reply,) = ask(Scripted(result), plane, [Target(Document("a.py", "python", TEXT), 6)])
    return reply


@pytest.mark.parametrize("plane", PLANES)
@given(result=JSON)
def test_any_answer_is_read(plane: str, result: Any):
    reply = read(plane, result)
    assert reply.coverage.state in ("complete", "partial", "unresolved")
    for item in reply.items:
        start, end = getattr(item, "start", 0), getattr(item, "end", 0)
        assert -1 <= start <= end <= len(TEXT)


def test_an_error_is_its_reason():
    reply = read("hover", ServerError("it panicked", code=-32603))
    assert (reply.coverage.state, reply.coverage.reason) == ("unresolved", "it panicked")


def test_places_that_cannot_be_mapped_are_dropped_and_counted():
    far = {"start": {"line": 99, "character": 0}, "end": {"line": 99, "character": 1}}
    good, link = {"uri": URI, "range": SPAN}, {"targetUri": URI, "targetSelectionRange": SPAN}
    reply = read("definition", [good, link, {"uri": URI, "range": far}, {"uri": "file:///root/gone.py", "range": SPAN}])
    assert [(place.path, place.start, place.end) for place in reply.items] == [("a.py", 6, 7)]
    assert reply.dropped == 2


def test_references_without_a_definition_to_take_out_are_partial():
    places = [{"uri": URI, "range": SPAN}]
    found = Methods({"textDocument/references": places, "textDocument/definition": ServerError("no")})
    assert (read("references", found).coverage.state, len(read("references", found).items)) == ("partial", 1)
    found["textDocument/definition"] = places
    assert read("references", found).items == ()


def test_a_hint_is_resolved_where_the_server_leaves_something_for_later():
    bare = {"position": SPAN["start"], "label": ": int", "kind": 1, "data": 7}
    found = Methods({"textDocument/inlayHint": [bare], "inlayHint/resolve": {**bare, "tooltip": "a **whole** number"}})
    assert read("hints", found).items == (Hint(6, ": int", "type", "a **whole** number"),)
    found = Methods({"textDocument/inlayHint": [bare], "inlayHint/resolve": ServerError("no")})
    assert read("hints", found).items == (Hint(6, ": int", "type"),)


def test_a_signature_names_its_parameters_and_the_active_one():
    one = {"label": "f(a, b)", "parameters": [{"label": [2, 3]}, {"label": "b"}], "documentation": {"value": "Does."}}
    found = {"signatures": [{"label": "f()"}, one, 7], "activeSignature": 1, "activeParameter": 1}
    reply = read("signature_help", found)
    assert reply.items == (Signature("f()"), Signature("f(a, b)", ("a", "b"), 1, "Does.", True))
    assert (reply.dropped, read("signature_help", None).coverage.state) == (1, "unresolved")


def test_what_rust_analyzer_alone_offers():
    expanded = {"name": "vec", "expansion": "Vec::new()"}
    assert read("macro", expanded).items == (Expansion("vec", "Vec::new()"),)
    assert read("macro", None).coverage.state == "unresolved"
    where = {"targetUri": URI, "targetRange": SPAN, "targetSelectionRange": SPAN}
    row = {
        "label": "test f",
        "kind": "cargo",
        "location": where,
        "args": {"cargoArgs": ["test"], "executableArgs": [1]},
    }
    reply = read("runnables", [row, {"label": "run", "kind": "shell"}, 7])
    assert reply.items == (
        Runnable("test f", "cargo", Place("a.py", 6, 7), ("test", "1")), Runnable("run", "shell"),
    )  # fmt: skip
    assert reply.dropped == 1


ROW = {"range": SPAN, "message": "m", "severity": 2, "code": 7}
REPORTS: dict[str, Any] = {
    "document": {"kind": "full", "items": [ROW]},
    "workspace": {"items": [{"uri": URI, "kind": "full", "items": [ROW]}]},
    "related": {"kind": "full", "items": [], "relatedDocuments": {URI: {"items": [ROW | {"code": {"value": 7}}]}}},
    "pushed": {"uri": URI, "diagnostics": [ROW | {"message": {"kind": "markdown", "value": "m"}}]},
    "list": [{"uri": URI, "items": [ROW]}],
}


@pytest.mark.parametrize("report", REPORTS.values(), ids=REPORTS)
def test_every_shape_of_a_report(report: Any):
    (found,) = read("diagnostics", report).items
    assert (found.place.start, found.severity, found.message, found.code) == (6, "warning", "m", "7")


def test_an_unchanged_report_is_not_all_clear():
    assert read("diagnostics", {"kind": "unchanged", "resultId": "1"}).coverage.state == "partial"


def test_symbols_without_a_range_are_resolved():
    bare = {"name": "A", "kind": 5, "location": {"uri": URI}}
    full = {"name": "A", "kind": 5, "location": {"uri": URI, "range": SPAN}, "containerName": "m"}
    (found,) = read("workspace_symbols", Methods({"workspace/symbol": [bare], "workspaceSymbol/resolve": full})).items
    assert (found.name, found.kind, found.container, found.place.start) == ("A", "class", "m", 6)


def test_tokens_are_told_from_each_other():
    document = Document("a.py", "python", TEXT)
    legend = {"tokenTypes": ["class", "method"], "tokenModifiers": ["static"]}
    found = decode_tokens([0, 6, 1, 0, 0, 1, 8, 1, 1, 1, 0, 2, 1, 9, 0, 70, 0, 1, 0, 0], legend, document, "utf-16")
    assert found.items == [Token(6, 7, "class"), Token(17, 18, "method", ("static",))]
    assert found.dropped == 2
    assert decode_tokens([0, 6, 1, 0, 0], None, document, "utf-16").partial


def test_token_edits_apply_to_the_data_before():
    edits = [{"start": 5, "deleteCount": 0, "data": [9]}, {"start": 0, "deleteCount": 2, "data": [7]}]
    assert apply_token_edits([1, 2, 3, 4, 5], {"edits": edits}) == {"edits": edits, "data": [7, 3, 4, 5, 9]}
    assert apply_token_edits([1], {"edits": [{"start": 5, "deleteCount": 1}]}) is None
    assert apply_token_edits([1], {"data": [2]}) == {"data": [2]}
    assert apply_token_edits([1], None) is None


def test_changed_tokens_are_asked_for_as_changes():
    edits = [{"start": 4, "deleteCount": 1, "data": [1]}]
    found = Methods({"textDocument/semanticTokens/full": {"resultId": "1", "data": [0, 6, 1, 0, 0]}})
    found["textDocument/semanticTokens/full/delta"] = {"resultId": "2", "edits": edits}
    session = Scripted(found)
    session.capabilities.server["semanticTokensProvider"]["full"] = {"delta": True}
    target = Target(Document("a.py", "python", TEXT))
    assert ask(session, "tokens", [target, target])[1].items == (Token(6, 7, "class"),)
    assert ask(session, "tokens", [target])[0].items == (Token(6, 7, "class", ("static",)),)
    assert session.kept_tokens == {"file:///root/a.py": ("2", [0, 6, 1, 0, 1])}


HOVERS = {
    "(function) f: def f(\n    a: int,\n    *rest: str,\n    k: dict[str, int] = {}\n) -> int: ...": (
        ("function", "def f( a: int, *rest: str, k: dict[str, int] = {} ) -> int", "a *rest k", "int", "")
    ),
    "def f(x: (a: int) -> str) -> None": ("function", "def f(x: (a: int) -> str) -> None", "x", "None", ""),
    "bound method A.f(n: int = 3) -> Self@A": ("method", "bound method A.f(n: int = 3) -> Self@A", "n", "Self@A", ""),
    "function f<T extends object>(a: T, b?: (x: T) => void): Promise<T>": (
        ("function", "function f<T extends object>(a: T, b?: (x: T) => void): Promise<T>", "a b?", "Promise<T>", "")
    ),
    "(method) A.f(): number": ("method", "A.f(): number", "", "number", ""),
    "const x: Map<string, number>": ("const", "", "", "", "Map<string, number>"),
    "(variable) x: list[int]": ("variable", "", "", "", "list[int]"),
    "(property) A.b?: string": ("property", "", "", "", "string"),
    "class A": ("class", "", "", "", ""),
    "int | None": ("", "", "", "", "int | None"),
}


@pytest.mark.parametrize("code", HOVERS)
def test_hovers_of_each_server_are_contracts(code: str):
    hover = parse_hover(f"```python\n{code}\n```\n---\nDoc.")
    names = " ".join(parameter.name for parameter in hover.parameters)
    assert (hover.kind, hover.signature, names, hover.returns, hover.type) == HOVERS[code]
    assert hover.doc == "Doc."


def test_a_module_before_the_contract_is_not_the_contract():
    hover = parse_hover("```rust\ntoy::Cell<i32>\n```\n\n```rust\nfn bump(&mut self) -> i32\n```\n---\nDoc.")
    assert (hover.signature, hover.returns, hover.doc) == ("fn bump(&mut self) -> i32", "i32", "Doc.")
    assert parse_hover("```rust\nmod toy\n```").kind == "mod"


def test_defaults_and_types_of_parameters():
    hover = parse_hover("```ts\nfunction f(a: number = 3, b = () => 1)\n```")
    assert hover.parameters == (Parameter("a", "number", "3"), Parameter("b", "", "() => 1"))


@given(st.text())
def test_any_hover_text_is_read(text: str):
    assert isinstance(parse_hover(text), Hover)
    assert isinstance(parse_hover(f"```x\n{text}\n```"), Hover)
