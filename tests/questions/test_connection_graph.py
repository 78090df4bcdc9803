"""The connection graph: the examples of the design, and marks exactly where they belong."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from cq import Workspace
from cq.model.answer import SCHEMA_VERSION, Run
from cq.model.find import CallNode, FindAnswer, Node, Result, ScoreParts, TypeUse
from cq.questions.find import FindOptions
from cq.questions.find.connect import connect
from cq.questions.find.layout import render_graph
from cq.questions.references import ReferencesOptions
from cq.semantics.meanings import Meanings
from tests.support.find import find_fixture, write_fixture

JWT = TypeUse("JwtPayload", origin="src/models/auth.ts")
VALIDATE = Node(
    1, "TokenService.validateToken", "src/auth/tokenService.ts", "method", ("async",), True, 8,
    signature="async validateToken(token: string): Promise<JwtPayload | null>",
    extends=(TypeUse("BaseValidator", origin="src/base.ts"),),
    calls=(CallNode("jwt.verify"), CallNode("AuthConfig.getSecret", "src/config/auth.ts")),
    callers=(
        CallNode("AuthMiddleware.verify", "src/middleware/auth.ts"),
        CallNode("LoginController.handle", "src/controllers/login.ts"),
    ),
    types_in=(TypeUse("string", "token"),), types_out=(JWT,), types=(JWT,),
)  # fmt: skip
CALLS_VALIDATE = CallNode("TokenService.validateToken", "src/auth/tokenService.ts")


def render(query: str, nodes: list[Node], depth: int = 1, tokens: int = 820) -> str:
    """As an answer with these results prints it."""
    results = tuple(Result(n.rank, 1.0, ScoreParts(), n.file, n.name, n.name, n.kind, 1, 1, "") for n in nodes)
    graph = connect(query, depth, nodes)
    answer = FindAnswer(SCHEMA_VERSION, "find", Run(), {"query": query}, results=results, graph=graph)
    return render_graph(answer, tokens, 8000)


def test_several_results():
    verify = Node(
        2, "AuthMiddleware.verify", "src/middleware/auth.ts", "method", ("async",), True, 12,
        signature="async verify(req: Request, res: Response, next: NextFunction): Promise<void>",
        calls=(CALLS_VALIDATE,), uses=("src/config/auth.ts:AuthConfig.getSecret",),
        types_in=(TypeUse("Request", "req", "express"), TypeUse("Response", "res", "express")),
        types=(JWT,),
    )  # fmt: skip
    handle = Node(
        3, "LoginController.handle", "src/controllers/login.ts", "method", ("async",), True, 3,
        signature="async handle(req: LoginRequest): Promise<AuthResponse>", calls=(CALLS_VALIDATE,),
        types_in=(TypeUse("LoginRequest", "req", "src/models/auth.ts"),),
        types_out=(TypeUse("AuthResponse", origin="src/models/auth.ts"),), types=(JWT,),
    )  # fmt: skip
    config = Node(
        4, "AuthConfig", "src/config/auth.ts", "class", (), True, 14,
        implements=(TypeUse("ConfigProvider", origin="src/interfaces/config.ts"),),
        members=("getSecret()", "getExpiry()", "getIssuer()"),
    )  # fmt: skip
    expiry = Node(5, "AUTH_TOKEN_EXPIRY", "src/config/constants.ts", "const", (), True, 6, value="number (value: 3600)")
    shown = render("authentication token validation", [VALIDATE, verify, handle, config, expiry], tokens=3240)
    assert shown == (
        """\
Search: "authentication token validation" | 5 results across 5 files | 3,240/8,000 tokens

Graph:
  [2] AuthMiddleware.verify → [1] TokenService.validateToken → [4] AuthConfig.getSecret
  [3] LoginController.handle → [1] TokenService.validateToken
  [5] AUTH_TOKEN_EXPIRY (standalone constant)

Patterns:
  Hub: [1] TokenService.validateToken — called by [2], [3]
  Shared dep: [4] AuthConfig.getSecret — used by [1], [2]
  Shared type: JwtPayload (src/models/auth.ts) — used by 3/5 results

[1] TokenService.validateToken — src/auth/tokenService.ts
    async method | exported | refs: 8 files
    Signature: async validateToken(token: string): Promise<JwtPayload | null>
    Extends: BaseValidator (src/base.ts)
    Types in: token (string) | Types out: JwtPayload (src/models/auth.ts)

[2] AuthMiddleware.verify — src/middleware/auth.ts
    async method | exported | refs: 12 files
    Signature: async verify(req: Request, res: Response, next: NextFunction): Promise<void>
    Types in: Request (express), Response (express)

[3] LoginController.handle — src/controllers/login.ts
    async method | exported | refs: 3 files
    Signature: async handle(req: LoginRequest): Promise<AuthResponse>
    Types in: LoginRequest (src/models/auth.ts) | Types out: AuthResponse (src/models/auth.ts)

[4] AuthConfig — src/config/auth.ts
    class | exported | refs: 14 files
    Implements: ConfigProvider (src/interfaces/config.ts)
    Members: getSecret(), getExpiry(), getIssuer()

[5] AUTH_TOKEN_EXPIRY — src/config/constants.ts
    const | exported | refs: 6 files
    Type: number (value: 3600)"""
    )


def test_one_result_stands_for_itself():
    assert render("jwt token validation", [VALIDATE]) == (
        """\
Search: "jwt token validation" | 1 result | 820/8,000 tokens

TokenService.validateToken — src/auth/tokenService.ts
    async method | exported | refs: 8 files
    Signature: async validateToken(token: string): Promise<JwtPayload | null>
    Extends: BaseValidator (src/base.ts)
    Calls: jwt.verify, AuthConfig.getSecret (src/config/auth.ts)
    Called by: AuthMiddleware.verify (src/middleware/auth.ts), LoginController.handle (src/controllers/login.ts)
    Types in: token (string) | Types out: JwtPayload (src/models/auth.ts)"""
    )


def graph_of(shown: str) -> str:
    return shown.split("Graph:\n")[1].split("\n\n")[0]


def test_a_tree_of_calls_marks_results_and_what_they_share():
    sanitize = CallNode("sanitize", "helper.ts")
    trees = (CallNode("validate", "validator.ts", (sanitize,)), CallNode("format", "formatter.ts", (sanitize,)))
    nodes = [
        Node(1, "processRequest", "service.ts", "function", calls=trees),
        Node(2, "validate", "validator.ts", "function", calls=(sanitize,)),
        Node(3, "format", "formatter.ts", "function", calls=(sanitize,)),
    ]
    shown = render("q", nodes, depth=2)
    assert graph_of(shown) == (
        """\
  [1] processRequest (service.ts)
    → validate (validator.ts) ★
      → sanitize (helper.ts) ◆
    → format (formatter.ts) ★
      → sanitize (helper.ts) ◆"""
    )
    assert "Shared dep: sanitize (helper.ts) ◆ — used by [1], [2], [3]" in shown
    assert "Diamond: [1] processRequest → format, validate → sanitize" in shown


def test_a_cycle_ends_the_tree():
    back = CallNode("alpha", "alpha.ts", cycle=True)
    node = Node(1, "alpha", "alpha.ts", "function", calls=(CallNode("beta", "beta.ts", (back,)),))
    shown = render("q", [node], depth=2)
    assert graph_of(shown) == "  [1] alpha (alpha.ts)\n    → beta (beta.ts)\n      → alpha (alpha.ts) [cycle]"
    assert "Cycle: alpha → beta → alpha" in shown


def test_a_tree_says_where_it_was_cut():
    calls = (CallNode("process", "middleware.ts", depth_limit=True),)
    shown = render("q", [Node(1, "handle", "entry.ts", "function", calls=calls)], depth=2)
    assert graph_of(shown) == "  [1] handle (entry.ts)\n    → process (middleware.ts) [depth limit]"


def test_results_without_connections_bear_no_marks():
    shown = render("q", [Node(n, f"f{n}", f"f{n}.ts", "function") for n in (1, 2, 3)])
    assert "Graph:" not in shown
    assert "★" not in shown
    assert "◆" not in shown
    assert "Patterns" not in shown


def test_a_type_that_several_results_use():
    nodes = [Node(n, f"f{n}", f"f{n}.ts", "function", types_in=(JWT,)) for n in (1, 2, 3, 4)]
    assert "  Shared type: JwtPayload (src/models/auth.ts) — used by 4/4 results" in render("q", nodes)


CALLS = """
    #- service.py
    from validator import validate
    def process(request):
        return validate(request)
    #- validator.py
    from helper import sanitize
    class Rule:
        def __init__(self, name: str): ...
    def validate(value):
        Rule("x")
        return sanitize(value)
    #- helper.py
    def sanitize(value):
        return deeper(value)
    def deeper(value):
        return sanitize(value)
    """


def test_calls_come_from_the_graph_as_deep_as_asked(tmp_path: Path):
    shallow = find_fixture(tmp_path, CALLS, "symbol = process", call_depth=1).graph
    deep = find_fixture(tmp_path, CALLS, "symbol = process", call_depth=-1).graph
    limited = find_fixture(tmp_path, CALLS, "symbol = process", call_depth=2).graph
    assert all(graph is not None for graph in (shallow, deep, limited))
    assert [call.name for call in shallow.nodes[0].calls] == ["validate"]
    (validate,) = deep.nodes[0].calls
    assert [call.name for call in validate.calls] == ["Rule.__init__", "sanitize"]
    (deeper,) = validate.calls[1].calls
    assert [(call.name, call.cycle) for call in deeper.calls] == [("sanitize", True)]
    assert [call.depth_limit for call in limited.nodes[0].calls[0].calls] == [False, True]


def test_callers_and_the_files_that_refer_to_it(tmp_path: Path):
    graph = find_fixture(tmp_path, CALLS, "symbol = sanitize").graph
    assert graph is not None
    node = graph.nodes[0]
    assert sorted(call.name for call in node.callers) == ["deeper", "validate"]
    assert node.refs == 2
    assert set(node.references) == {"helper.py", "validator.py"}


def test_types_lead_to_their_definitions(tmp_path: Path):
    snippet = """
    #- models.py
    class Claim: ...
    class Payload:
        claim: Claim
    #- app.py
    from models import Payload
    def read(text: str, more: Payload) -> Payload: ...
    """
    graph = find_fixture(tmp_path, snippet, "symbol = read", type_depth=2).graph
    assert graph is not None
    node = graph.nodes[0]
    assert [(use.name, use.type, use.origin) for use in node.types_in] == [
        ("text", "str", ""), ("more", "Payload", "models.py"),
    ]  # fmt: skip
    assert [(use.type, use.origin) for use in node.types_out] == [("Payload", "models.py")]


ALIASES = """
    //- types.ts
    export type Rect = { kind: "rect" };
    export type Shape = Rect | { kind: "text" };
    export type Both = Rect & { more: number };
    export type Draw = (shape: Shape) => void;
    export type Id = string;
    export enum Side { Left, Right }
    export const LIMIT = 5;
    const own = (shape: Shape, rest: [...Id[]]) => LIMIT;
    //- more.ts
    export * from "./types";
    //- use.ts
    import { Shape as Form, Id } from "./types";
    import * as all from "./more";
    export function draw(form: Form, id: Id): Both { return form as all.Both; }
    const side: all.Side = all.LIMIT;
    //- other.ts
    import type { Draw } from "./more";
    type Shape = number;
    export let drawn: Draw, shape: Shape;
    """


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("types.ts > Shape", {"types.ts", "use.ts"}),
        ("other.ts > Shape", {"other.ts"}),
        ("Rect", {"types.ts"}),
        ("Both", {"use.ts"}),
        ("Draw", {"other.ts"}),
        ("Id", {"types.ts", "use.ts"}),
        ("Side", {"use.ts"}),
        ("LIMIT", {"types.ts", "use.ts"}),
    ],
)
def test_aliases_of_types_are_referred_to_as_references_says(tmp_path: Path, name: str, files: set[str]):
    write_fixture(tmp_path, ALIASES)
    with Workspace.open(tmp_path, index_dir=tmp_path / ".index") as workspace:
        graph = workspace.find(FindOptions(f"symbol = {name}")).graph
        assert graph is not None
        target = name.replace(" > ", ":")
        answer = workspace.references(ReferencesOptions(target, certain=True, servers=False))
    (node,) = graph.nodes
    assert (set(node.references), node.by_name) == (files, False)
    (section,) = (section for section in answer.sections if section.kind == "references")
    assert {finding.location.path for finding in section.findings if finding.location is not None} == files


def test_types_of_parameters_that_are_aliases_have_a_place(tmp_path: Path):
    source = ALIASES.replace("Form, id: Id): Both", "Form, id: Id): Id")
    graph = find_fixture(tmp_path, source, "symbol = draw").graph
    assert graph is not None
    (node,) = graph.nodes
    assert [(use.type, use.origin) for use in node.types_in] == [("Form", "types.ts"), ("Id", "types.ts")]
    assert [(use.type, use.origin) for use in node.types_out] == [("Id", "types.ts")]


FORWARD = """
    #- model.py
    from typing import Annotated, Literal, Union
    class Node: ...
    class Leaf: ...
    Either = Union[Node, Leaf]
    type Both = Node | Leaf
    #- use.py
    from __future__ import annotations
    from typing import TYPE_CHECKING, Annotated, Literal, Optional
    if TYPE_CHECKING:
        from model import Both, Either, Leaf, Node
    def walk(node: "Node", inner: "Optional[Either]", mode: Literal["Leaf"]) -> "list[Both]": ...
    """


def test_annotations_written_as_strings_are_references(tmp_path: Path):
    write_fixture(tmp_path, FORWARD)
    with Workspace.open(tmp_path, index_dir=tmp_path / ".index") as workspace:
        found: dict[str, list[int]] = {}
        for name in ("Node", "Leaf", "Either", "Both"):
            answer = workspace.references(ReferencesOptions(name, certain=True, servers=False))
            places = [finding.location for finding in answer.sections[0].findings if finding.location is not None]
            found[name] = sorted(place.start_line for place in places if place.path == "use.py")
        graph = workspace.find(FindOptions("symbol = walk")).graph
    assert found == {"Node": [4, 5], "Leaf": [4], "Either": [4, 5], "Both": [4, 5]}
    assert graph is not None
    assert {use.type: use.origin for use in (*graph.nodes[0].types_in, *graph.nodes[0].types_out)} == {
        "Node": "model.py", "Either": "model.py", "Both": "model.py", 'Literal["Leaf"]': "",
    }  # fmt: skip


def test_star_exports_of_one_another_are_each_asked_once(tmp_path: Path):
    """Sixteen modules that all export all of one another: the ways through them are countless."""
    for number in range(16):
        others = "".join(f'export * from "./m{other}";\n' for other in range(16) if other != number)
        (tmp_path / f"m{number}.ts").write_text(others)
    (tmp_path / "use.ts").write_text('import * as m from "./m0";\nexport let it: m.Nowhere, that: m.Somewhere;\n')
    (tmp_path / "m9.ts").write_text((tmp_path / "m9.ts").read_text() + "export type Somewhere = string;\n")
    asked = 0
    find_name = Meanings._find_name

    def count(*args: Any) -> Any:
        nonlocal asked
        asked += 1
        return find_name(*args)

    with (
        Workspace.open(tmp_path, index_dir=tmp_path / ".index") as workspace,
        patch.object(Meanings, "_find_name", count),
    ):
        graph = workspace.find(FindOptions("symbol = Somewhere")).graph
    assert graph is not None
    assert list(graph.nodes[0].references) == ["use.ts"]
    assert asked < 100
