"""`cq neighborhood`: what stands in every slice, how targets are read, how the answer is laid out."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cq import Answer, Workspace
from cq.answers.page import Page
from cq.model.errors import UsageError
from cq.model.neighborhood import KINDS, SECTION_ORDER, SLICE_KINDS, Bundle, Node, decode_kind
from cq.questions.neighborhood import NeighborhoodOptions, Sources, find_neighborhood
from cq.questions.neighborhood.bundle import parse_expand
from cq.questions.neighborhood.near import LEAST
from cq.questions.neighborhood.reuse import find_again
from cq.snapshot.files import IndexedFiles
from cq.snapshot.relations import Relations
from cq.store.overflow import FileStore
from tests.support.checks import check_neighborhood, open_fixture
from tests.support.fixture import parse_fixture

pytestmark = pytest.mark.slow

# -- slices in Python ------------------------------------------------------------------------------


def test_python_method(tmp_path: Path):
    check_neighborhood(
        tmp_path / "repo",
        """
        #- app/store.py
        import json
        #< parents
        from app.rows import Row, check
        #< imports
        class Store:
        #< parents enclosing_context
            LIMIT = 3
            #< siblings
            def save(self, row):
            #< siblings callers
                return self.put(row)
                #< references
            def pu$0t(self, row: Row):
                def wrap(x):
                #< children callees
                    return x
                check(row)
                return wrap(row)
            def drop(self, row):
            #< siblings
                return json.dumps(self.put)
                #< references
        #- app/rows.py
        class Row: ...
        def check(row): ...
        #< callees
        #- app/use.py
        from app.store import Store
        #< importers
        def write():
        #< callers
            Store().put(1)
            #< references
        def maybe(thing):
        #< callers?
            thing.put(1)
            #< references?
        #- tests/test_use.py
        from app.use import write
        def test_write():
        #< tests
            write()
        """,
    )


def test_python_class(tmp_path: Path):
    bundle = check_neighborhood(
        tmp_path / "repo",
        """
        #- shape.py
        from abc import ABC, abstractmethod
        class Thing(ABC): ...
        #< type_supertypes
        class Sha$0pe(Thing):
            @abstractmethod
            def area(self): ...
            #< children
            name = ""
            #< children
        #- round.py
        from shape import Shape
        #< references importers
        class Round(Shape):
        #< type_subtypes implementations references
            def area(self): return 3
        class Circle(Round): ...
        #< type_subtypes implementations
        def make() -> Shape:
        #< references
            return Round()
        """,
    )
    assert {part.kind: part.metadata for part in bundle.slices}["type_supertypes"]["external"] == ["abc.ABC"]


def test_python_overriding_methods_are_above_and_below(tmp_path: Path):
    check_neighborhood(
        tmp_path / "repo",
        """
        #- a.py
        class A:
            def run(self): ...
            #< type_supertypes
        class B(A):
            def ru$0n(self): ...
        class C(B):
            def run(self): ...
            #< type_subtypes implementations
        """,
    )


def test_python_module(tmp_path: Path):
    check_neighborhood(
        tmp_path / "repo",
        """
        #- pkg/__init__.py
        VERSION = 1
        #< parents
        #- pkg/db.py
        import os
        #< imports
        from pkg import VERSION
        #< imports
        def connect(): ...
        #< children
        LIMIT = 2
        #< children
        #- pkg/app.py
        from pkg.db import connect
        #< importers
        import pkg.db as database
        #< importers
        """,
        target="pkg.db",
    )


def test_python_value(tmp_path: Path):
    """What links do not follow has no callers, but its uses are known by scope."""
    bundle = check_neighborhood(
        tmp_path / "repo",
        """
        #- conf.py
        LIM$0IT = 3
        def check(n):
            return n < LIMIT
            #< references
        def hide(LIMIT):
            return LIMIT
        #- use.py
        import conf
        from conf import LIMIT
        #< references importers
        def f():
            return conf.LIMIT
            #< references
        """,
    )
    assert {part.kind: part.total for part in bundle.slices}["callers"] == 0


# -- TypeScript and Rust ---------------------------------------------------------------------------


def test_typescript(tmp_path: Path):
    check_neighborhood(
        tmp_path / "repo",
        """
        //- src/store.ts
        import { Row, check } from "./rows";
        //< parents imports
        export interface Sink { put(row: Row): void }
        export class Store implements Sink {
        //< parents enclosing_context
          limit = 3;
          //< siblings
          save(row: Row) { return this.put(row); }
          //< siblings callers? references?
          pu$0t(row: Row) { check(row); }
        }
        export class Fast extends Store {
          put(row: Row) {}
          //< type_subtypes implementations
        }
        //- src/rows.ts
        export class Row {}
        export function check(row: Row) {}
        //< callees
        //- src/use.ts
        import { Store } from "./store";
        //< importers
        export function write() {
        //< callers
          new Store().put(null);
          //< references
        }
        //- src/use.test.ts
        import { write } from "./use";
        //< tests
        it("writes", () => { write(); });
        """,
    )


def test_typescript_interface(tmp_path: Path):
    check_neighborhood(
        tmp_path / "repo",
        """
        //- a.ts
        export interface Base {}
        //< type_supertypes
        export interface Si$0nk extends Base { put(): void }
        //< children
        export class File implements Sink { put() {} }
        //< type_subtypes implementations
        """,
    )


def test_rust(tmp_path: Path):
    check_neighborhood(
        tmp_path / "repo",
        """
        //- Cargo.toml
        [package]
        name = "shop"
        //- src/lib.rs
        pub mod rows;
        //< parents
        use crate::rows::check;
        //< imports
        pub struct Store { limit: u32 }
        impl Store {
        //< parents enclosing_context
            pub fn save(&self, row: u32) -> u32 { self.put(row) }
            //< siblings callers references
            pub fn pu$0t(&self, row: u32) -> u32 { check(row) }
        }
        pub fn write() -> u32 {
        //< callers
            let store = Store { limit: 3 };
            store.put(1)
            //< references
        }
        #[cfg(test)]
        mod tests {
            #[test]
            fn writes() { super::write(); }
            //< tests
        }
        //- src/rows.rs
        pub fn check(row: u32) -> u32 { row }
        //< callees
        """,
    )


def test_rust_trait(tmp_path: Path):
    check_neighborhood(
        tmp_path / "repo",
        """
        //- src/lib.rs
        pub trait Base {}
        //< type_supertypes
        pub trait Sh$0ape: Base { fn area(&self) -> u32; }
        //< children
        pub struct Round;
        impl Shape for Round { fn area(&self) -> u32 { 3 } }
        //< type_subtypes implementations
        """,
    )


def test_rust_type(tmp_path: Path):
    """Its `impl` blocks are its own, in whichever file; tests that reach their methods reach it. The crate at the root
    has the name that its manifest says."""
    bundle = check_neighborhood(
        tmp_path / "repo",
        """
        //- Cargo.toml
        [package]
        name = "text-size"
        //- src/lib.rs
        mod range;
        mod show;
        pub use range::Range;
        //- src/range.rs
        pub struct Ran$0ge { start: u32 }
        //< children
        impl Range {
            pub fn new(start: u32) -> Self { Self { start } }
            //< children
        }
        impl Default for Range {
            fn default() -> Self { Self { start: least() } }
            //< children
        }
        fn least() -> u32 { 0 }
        //< callees
        //- src/show.rs
        use crate::range::Range;
        impl Range {
            pub fn show(&self) -> u32 { 1 }
        }
        //- tests/all.rs
        use text_size::Range;
        fn make() -> Range { Range::new(1) }
        #[test]
        fn shows(range: Range) { range.show(); }
        //< tests
        #[test]
        fn makes() { make(); }
        //< tests
        #[test]
        fn other() {}
        """,
        target="src/range.rs:Range",
    )
    assert (bundle.meta.of, bundle.meta.others, bundle.diagnostics) == (1, (), ())


def test_a_crate_that_is_renamed_is_linked_again(tmp_path: Path):
    tree = """
    //- Cargo.toml
    [package]
    name = "old"
    //- src/lib.rs
    pub fn run() {}
    //- tests/all.rs
    #[test]
    fn runs() { new::run(); }
    """
    with open_fixture(tmp_path, tree) as workspace:

        def find() -> list[str]:
            (part,) = bundle_of(ask(workspace, "run", slices=("tests",))).slices
            return [node.name for node in part.preview]

        assert find() == []
        (workspace.root / "Cargo.toml").write_text('[package]\nname = "new"\n')
        assert find() == ["runs"]
        (workspace.root / "Cargo.toml").write_text("[package]\nname = \"old\"\n[lib]\nname = 'new'\n")
        assert find() == ["runs"]


# -- one tree for the rest -------------------------------------------------------------------------

TREE = """
#- app/store.py
class Store:
    def save(self, row):
        return self.check(row)
    def check(self, row):
        return step(row)
def step(row):
    return last(row)
def last(row):
    return step(row)
#- app/use.py
from app.store import Store
def write(rows):
    Store().save(rows)
def main():
    write([])
def again():
    write([])
def save():
    ...
"""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    folder = tmp_path_factory.mktemp("tree")
    for path, text in parse_fixture(TREE).files.items():
        (folder / "repo" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "repo" / path).write_text(text)
    with Workspace.open(folder / "repo", index_dir=folder / "index") as workspace:
        yield workspace


def ask(workspace: Workspace, target: str, **options: object) -> Answer:
    return workspace.neighborhood(NeighborhoodOptions(target, **{"lsp": False} | options))  # pyright: ignore[reportArgumentType]


def bundle_of(answer: Answer) -> Bundle:
    assert isinstance(answer.bundle, Bundle)
    return answer.bundle


@pytest.mark.parametrize(
    ("target", "kind", "subject", "categories"),
    [
        ("app/store.py:5:9", "anchor", "app/store.py:Store.check", []),
        ("app/store.py:3", "anchor", "app/store.py:Store.save", []),
        ("app/store.py:3:28", "anchor", "app/store.py:Store.save", []),
        ("app/store.py:Store.check", "file_symbol", "app/store.py:Store.check", []),
        ("app/store.py", "file_symbol", "app/store.py", []),
        ("Store", "symbol_fallback", "app/store.py:Store", []),
        ("Store.save", "symbol_fallback", "app/store.py:Store.save", []),
        ("app.use.main", "symbol_fallback", "app/use.py:main", []),
        ("app.use", "symbol_fallback", "app/use.py", []),
        ("symbol = Store > check", "symbol_fallback", "app/store.py:Store.check", []),
        ("save", "symbol_fallback", "app/store.py:Store.save", ["ambiguous"]),
        ("app/use.py:check", "symbol_fallback", "app/store.py:Store.check", ["not_found"]),
        ("gone.py:check", "symbol_fallback", "app/store.py:Store.check", ["not_found"]),
        ("app/store.py:99", "invalid", None, ["invalid"]),
        ("app/use.py:1", "file_anchor_unresolved", "app/use.py", ["not_found"]),
        ("gone.py:3", "unresolved", None, ["not_found"]),
        ("nothing_of_that_name", "unresolved", None, ["not_found"]),
        ("", "invalid", None, ["invalid"]),
        ("symbol = A > > b", "invalid", None, ["invalid"]),
    ],
)
def test_targets(workspace: Workspace, target: str, kind: str, subject: str | None, categories: list[str]):
    answer = ask(workspace, target)
    bundle = bundle_of(answer)
    assert bundle.meta.resolution_kind == kind
    assert (bundle.subject.node_id if bundle.subject else None) == subject
    assert [event.category for event in bundle.diagnostics] == categories
    assert bool(answer.found) == (subject is not None)


def test_an_ambiguous_target_names_the_others(workspace: Workspace):
    answer = ask(workspace, "save")
    bundle = bundle_of(answer)
    assert (bundle.meta.index, bundle.meta.of) == (1, 2)
    assert [node.node_id for node in bundle.meta.others] == ["app/use.py:save"]
    assert "1 of 2" in bundle.diagnostics[0].message


def test_expanding_marks_depth_and_cycles(workspace: Workspace):
    bundle = bundle_of(ask(workspace, "Store.save", expand=parse_expand("callers(depth=2),callees(depth=4)")))
    edges = {
        (edge.source_node_id.rpartition(":")[2], edge.target_node_id.rpartition(":")[2]): edge.metadata
        for part in bundle.slices
        if part.kind in ("callers", "callees")
        for edge in part.edges
    }
    assert set(edges) == {
        ("write", "Store.save"), ("main", "write"), ("again", "write"), ("Store.save", "Store.check"),
        ("Store.check", "step"), ("step", "last"),
    }  # fmt: skip
    assert edges["main", "write"]["depth"] == 2
    assert edges["step", "last"]["depth"] == 3
    assert edges["step", "last"]["cycle"]


def test_a_recursive_function_says_so(workspace: Workspace):
    bundle = bundle_of(ask(workspace, "step", expand=(("callees", 3),)))
    callees = {part.kind: part for part in bundle.slices}["callees"]
    assert [node.name for node in callees.preview] == ["last"]
    assert callees.edges[0].metadata["cycle"]


def test_text_shows_as_many_as_are_asked_for_where_the_budget_has_room(tmp_path: Path):
    (tmp_path / "a.py").write_text("class A:\n" + "".join(f"    def m{n}(self): pass\n" for n in range(60)))
    shown: dict[int, int] = {}
    with Workspace.open(tmp_path) as workspace:
        for top_k in (10, 30, 200):
            answer = ask(workspace, "A", top_k=top_k, slices=("children",), page=Page(0, 3500))
            (children,) = bundle_of(answer).slices
            shown[top_k] = len(children.preview)
    assert (shown[10], shown[30]) == (10, 30)
    assert 30 < shown[200] < 60


def test_counts_are_true_and_the_rest_is_an_artifact(workspace: Workspace):
    answer = ask(workspace, "app/store.py", top_k=1)
    children = {part.kind: part for part in bundle_of(answer).slices}["children"]
    assert (children.total, len(children.preview)) == (3, 1)
    (pointer,) = [p for p in bundle_of(answer).artifacts if p.metadata["slice"] == "children"]
    whole = workspace.artifact(pointer.artifact_id)
    assert [node["name"] for node in whole["preview"]] == ["Store", "step", "last"]
    assert [ref.id for ref in answer.artifacts] == [p.artifact_id for p in bundle_of(answer).artifacts]
    assert {cut.scope: (cut.limit, cut.omitted) for cut in answer.truncated}["children"] == (1, 2)


def test_json_shows_about_what_text_does_and_the_rest_in_pages(tmp_path: Path):
    (tmp_path / "repo").mkdir()
    callers = "".join(f"def caller_{number:03}():\n    return target({number})\n" for number in range(333))
    (tmp_path / "repo" / "app.py").write_text(f"def target(x):\n    return x\n{callers}")
    with Workspace.open(tmp_path / "repo", index_dir=tmp_path / "index") as workspace:
        found = {
            measure: workspace.neighborhood(NeighborhoodOptions("target", page=Page(0, budget, measure=measure)))
            for measure, budget in (("text", 8000), ("json", 8000))
        }
        small = workspace.neighborhood(NeighborhoodOptions("target", page=Page(0, 4000, measure="json")))
        wide = workspace.neighborhood(NeighborhoodOptions("target", 333, slices=("callers",), page=Page(0, 0)))
        shown = {name: sum(len(part.preview) for part in bundle_of(answer).slices) for name, answer in found.items()}
        assert shown["json"] >= shown["text"]
        assert len(msgspec.json.encode(found["json"])) // 4 <= 8000
        assert len(msgspec.json.encode(small)) // 4 <= 4000
        ids = {bundle_of(answer).bundle_id for answer in (*found.values(), small)}
        assert len(ids) == 1  # what is shown of it makes no other bundle
        assert [len(part.preview) for part in bundle_of(wide).slices] == [333]
        (pointer,) = [p for p in bundle_of(found["json"]).artifacts if p.metadata["slice"] == "callers"]
        whole = workspace.artifact(pointer.artifact_id)
        assert (len(whole["preview"]), len(whole["edges"])) == (333, 333)
        paged = [workspace.artifact(pointer.artifact_id, page=number) for number in range(1, 8)]
        assert [(len(page["preview"]), len(page["edges"]), page["pages"]) for page in paged[-2:]] == [
            (50, 50, 7),
            (33, 33, 7),
        ]
        assert [node for page in paged for node in page["preview"]] == whole["preview"]
        with pytest.raises(UsageError, match="there is no page 8"):
            workspace.artifact(pointer.artifact_id, page=8)


def test_what_could_not_be_stored_is_not_pointed_to(workspace: Workspace, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> str:
        raise OSError("full")

    monkeypatch.setattr(FileStore, "store", refuse)
    answer = ask(workspace, "app/store.py", top_k=1)
    bundle = bundle_of(answer)
    assert (bundle.artifacts, answer.artifacts) == ((), ())
    assert [event.message for event in answer.degraded if event.stage == "artifacts"] == [
        "what is not shown could not be stored: children"
    ]
    assert not any("cq artifact get" in section.note for section in answer.sections)


def test_only_the_slices_that_are_wanted(workspace: Workspace):
    answer = ask(workspace, "Store.save", slices=("callers", "siblings"))
    assert [part.kind for part in bundle_of(answer).slices] == ["siblings", "callers"]


def test_every_slot_is_in_the_answer_in_its_order(workspace: Workspace):
    answer = ask(workspace, "Store.save")
    assert tuple(section.kind for section in answer.sections) == SECTION_ORDER
    assert tuple(part.kind for part in bundle_of(answer).slices) == SLICE_KINDS
    open_ = [section.kind for section in answer.sections if not section.collapsed]
    assert open_ == ["target_tldr", "neighborhood_summary", "enclosing_context", "parents", "suggested_followups"]
    assert [finding.message for finding in answer.key_findings] == [
        "called by 1 definition", "calls 1 definition", "used at 1 place in 1 file", "no test is known to reach it",
    ]  # fmt: skip


def test_the_order_of_sections_can_be_configured(tmp_path: Path):
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "a.py").write_text("def f(): ...\n")
    (tmp_path / "repo" / "cq.toml").write_text(
        '[neighborhood.section_order]\norder = ["callers", "target_tldr"]\n[artifacts]\nstore = "sqlite"\n'
    )
    with Workspace.open(tmp_path / "repo", index_dir=tmp_path / "index") as workspace:
        answer = ask(workspace, "a.py", top_k=1)
        kinds = [section.kind for section in answer.sections]
        assert kinds[:3] == ["callers", "target_tldr", "neighborhood_summary"]
        assert sorted(kinds) == sorted(SECTION_ORDER)


def test_every_node_has_a_place_and_a_signature(workspace: Workspace):
    for target in ("Store", "Store.save", "app/use.py", "write"):
        bundle = bundle_of(ask(workspace, target))
        for node in (*bundle.node_index.values(), *(node for part in bundle.slices for node in part.preview)):
            assert node.file_path
            assert node.line > 0
            assert node.signature


def test_every_edge_leads_between_nodes_that_are_told(workspace: Workspace):
    bundle = bundle_of(ask(workspace, "Store.save", expand=(("callers", 3), ("callees", 3))))
    ends = {e for part in bundle.slices for edge in part.edges for e in (edge.source_node_id, edge.target_node_id)}
    shown = {node.node_id for part in bundle.slices for node in part.preview}
    assert bundle.subject is not None
    assert ends <= shown | {bundle.subject.node_id, *bundle.node_index}
    assert shown.isdisjoint(bundle.node_index)  # what a slice shows is not told twice
    assert all(edge.evidence_source for part in bundle.slices for edge in part.edges)
    names = {node.name for part in bundle.slices if part.kind == "siblings" for node in part.preview}
    assert names == {"check"}
    assert not any(part.edges for part in bundle.slices if part.kind == "siblings")


def test_the_bundle_survives_json_and_is_the_same_twice(workspace: Workspace):
    first, second = (bundle_of(ask(workspace, "Store.save")) for _ in range(2))
    data = msgspec.json.encode(first)
    assert msgspec.json.decode(data, type=Bundle) == first
    assert msgspec.json.encode(second) == data
    assert bundle_of(ask(workspace, "Store.check")).bundle_id != first.bundle_id


def test_the_registry_decodes_what_it_names(workspace: Workspace):
    bundle = bundle_of(ask(workspace, "Store"))
    assert bundle.subject is not None
    plain = msgspec.to_builtins(bundle.subject)
    assert decode_kind({"schema": "cq.snb.node.v1", **plain}) == bundle.subject
    assert decode_kind({"schema": "cq.snb.nothing.v1"}) is None
    assert decode_kind({"schema": "cq.snb.node.v1", "node_id": 3}) is None
    assert KINDS["cq.snb.node.v1"] is Node


def test_a_small_budget_shows_less_and_says_so(workspace: Workspace):
    answer = ask(workspace, "Store.check", page=Page(0, 1300))
    shown = sum(len(part.preview) for part in bundle_of(answer).slices)
    assert shown < sum(part.total for part in bundle_of(answer).slices)
    assert answer.truncated


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top_k": 0}, "--top-k 0 is out of range"),
        ({"slices": ("caller",)}, "did you mean 'callers'"),
        ({"expand": (("children", 2),)}, "--expand does not know 'children'"),
        ({"depth": 11}, "a depth of 11 is out of range"),
        ({"slices": ("tests",), "expand": (("callers", 2),)}, "--expand callers is about a slice that --slices leaves"),
        ({"slices": ("tests",), "depth": 2}, "--depth is about a slice"),
    ],
)
def test_options_that_cannot_be(workspace: Workspace, options: dict[str, object], message: str):
    with pytest.raises(UsageError) as caught:
        ask(workspace, "Store", **options)
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["callers", "callers(2)", "callers(depth=2", "callers(depth=2);callees(depth=2)"])
def test_an_expansion_that_cannot_be_read(text: str):
    with pytest.raises(UsageError):
        parse_expand(text)


def test_a_language_narrows_what_a_target_may_mean(tmp_path: Path):
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "a.py").write_text("def run(): ...\n")
    (tmp_path / "repo" / "b.ts").write_text("export function run() {}\n")
    with Workspace.open(tmp_path / "repo", index_dir=tmp_path / "index") as workspace:
        subjects = [bundle_of(ask(workspace, "run", languages=(name,))).subject for name in ("typescript", "python")]
        assert [node and node.file_path for node in subjects] == ["b.ts", "a.py"]
        assert bundle_of(ask(workspace, "run", languages=("rust",))).meta.resolution_kind == "unresolved"


# -- history ---------------------------------------------------------------------------------------


def test_what_changed_in_the_same_commits_is_related(tmp_path: Path):
    root = tmp_path / "repo"
    root.mkdir()

    def git(*words: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=x", "-c", "user.email=x@y", *words], cwd=root, check=True, capture_output=True
        )

    def commit(**files: str) -> None:
        for name, text in files.items():
            (root / f"{name}.py").write_text(text)
        git("add", "-A")
        git("commit", "-qm", "x")

    git("init", "-q")
    commit(a="def f(): ...\n", b="1\n", c="1\n")
    commit(a="def f(): pass\n", b="2\n")
    commit(a="def f(): return\n", b="3\n", gone="1\n")
    with Workspace.open(root, index_dir=tmp_path / "index") as workspace:
        related = {part.kind: part for part in bundle_of(ask(workspace, "f")).slices}["related"]
        assert [node.file_path for node in related.preview] == ["b.py"]
        assert (related.edges[0].evidence_source, related.edges[0].weight) == ("git.history", 1.0)
        commit(a="def f(): return 1\n", c="2\n")
        related = {part.kind: part for part in bundle_of(ask(workspace, "f")).slices}["related"]
        assert [(node.file_path, edge.weight) for node, edge in zip(related.preview, related.edges, strict=True)] == [
            ("b.py", 0.75), ("c.py", 0.5),
        ]  # fmt: skip


# -- vectors ---------------------------------------------------------------------------------------


def test_what_is_about_the_same_is_related_once_there_are_vectors(tmp_path: Path):
    tree = """
    #- a.py
    class Store:
        def send_mail(self, address, subject):
            return self.smtp.deliver(address, subject)
    #- b.py
    LIMIT = 3
    def send_mail_again(address, subject):
        return smtp.deliver(address, subject)
    #- c.py
    def parse_tree(text): ...
    """
    with open_fixture(tmp_path, tree) as workspace:

        def find() -> list[tuple[str, str, float]]:
            (part,) = bundle_of(ask(workspace, "send_mail", slices=("related",))).slices
            return [(e.target_node_id, e.evidence_source, e.metadata["similarity"]) for e in part.edges]

        assert find() == []
        workspace.embed()
        ((target, evidence, similarity),) = find()
        assert (target, evidence) == ("b.py:send_mail_again", "vector")
        assert LEAST <= similarity < 1
        assert find() == [(target, evidence, similarity)]
        (workspace.root / "b.py").write_text("def parse(): ...\n")
        assert find() == []  # its vectors are of another text


# -- what is found again ---------------------------------------------------------------------------


def test_an_edit_elsewhere_leaves_slices_standing(tmp_path: Path):
    root = tmp_path / "repo"
    root.mkdir()
    files = {
        "store.py": "def save(x):\n    return check(x)\ndef check(x): ...\n",
        "use.py": "from store import save\ndef go():\n    save(1)\n",
        "other.py": "def far(): ...\n",
    }
    for name, text in files.items():
        (root / name).write_text(text)
    structure = {"enclosing_context", "parents", "children", "siblings", "imports"}
    with Workspace.open(root, index_dir=tmp_path / "index") as workspace:
        memory: dict[str, Any] = {}

        def find() -> tuple[Bundle, set[str]]:
            workspace.refresh()
            options = NeighborhoodOptions("store.py:save", lsp=False)
            with workspace.index.reading() as (reader, tree):
                found, reused = find_again(reader, tree, tmp_path, options, Sources(), memory)
                fresh = find_neighborhood(Relations(IndexedFiles(reader, tree)), options)
            assert found.bundle == fresh.bundle
            return found.bundle, set(reused)

        first, reused = find()
        assert reused == set()
        assert find() == (first, set(SLICE_KINDS))
        os.utime(root / "store.py", (1, 1))  # a file that is as it was is another in nothing but its age
        (root / "other.py").write_text("def far(): return 1\n")
        assert find() == (first, set(SLICE_KINDS))
        (root / "use.py").write_text("from store import save\n\ndef went():\n    save(1)\n")
        changed, reused = find()
        assert reused >= structure
        assert "callers" not in reused
        assert [node.name for part in changed.slices if part.kind == "callers" for node in part.preview] == ["went"]
        (root / "store.py").write_text("# moved\n" + files["store.py"])
        moved, reused = find()
        assert reused == set()
        assert moved.subject
        assert moved.subject.line == 2
