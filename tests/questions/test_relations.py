"""Questions about links: graph, path, impact, signatures, imports, types, rank."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from cq import Answer, Workspace
from cq.model.answer import CallDetails, NodeDetails
from cq.model.errors import UsageError
from cq.model.history import Change
from cq.questions.graph import GraphOptions
from cq.questions.impact import ImpactOptions
from cq.questions.imports import ImportsOptions
from cq.questions.path import PathOptions
from cq.questions.sig_impact import SignatureOptions
from tests.support.fixture import parse_fixture

TREE = """
#- app/base.py
class Store:
    def save(self, row):
        return self.check(row)
    def check(self, row):
        raise ValueError(row)
class Fast(Store):
    def check(self, row):
        return True
#- app/use.py
from app.base import Fast, Store
def write(rows):
    store = Store()
    for row in rows:
        store.save(row)
def main():
    write([])
def other(thing):
    thing.save(1)
#- app/a.py
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from app.use import main
from app.b import two
def one(): two()
#- app/b.py
import json
from app import a
def two(): a.one(); json.dumps(1)
#- tests/test_use.py
from app.use import main
def test_main():
    main()
"""


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    folder = tmp_path_factory.mktemp("tree")
    for path, text in parse_fixture(TREE).files.items():
        (folder / "repo" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "repo" / path).write_text(text)
    with Workspace.open(folder / "repo", index_dir=folder / "index") as opened:
        yield opened


def nodes(answer: Answer, kind: str) -> dict[str, int]:
    """name -> distance of the section's nodes."""
    rows = [f.details for s in answer.sections if s.kind == kind for f in s.findings]
    return {row.name: row.distance for row in rows if isinstance(row, NodeDetails)}


def test_a_walk_goes_both_ways_with_witnesses(workspace: Workspace):
    answer = workspace.graph(GraphOptions("Store.save", depth=3, edges=("calls",)))
    assert nodes(answer, "dependents") == {"write": 1, "other": 1, "main": 2, "test_main": 3}
    assert nodes(answer, "dependencies") == {"Store.check": 1, "Fast.check": 1}
    deepest = next(f.details for s in answer.sections for f in s.findings if "test_main" in f.message)
    assert isinstance(deepest, NodeDetails)
    assert [step.rpartition(" ")[2] for step in deepest.witness] == [
        "app/use.py:5",
        "app/use.py:7",
        "tests/test_use.py:3",
    ]


def test_confidence_leaves_out_what_is_only_possible(workspace: Workspace):
    answer = workspace.graph(GraphOptions("Store.save", direction="dependents", edges=("calls",), least=0.5))
    assert nodes(answer, "dependents") == {"write": 1}


def test_the_way_from_one_to_another(workspace: Workspace):
    answer = workspace.path(PathOptions("main", "Store.check"))
    assert [edge.target.partition(":")[2] for edge in answer.edges] == ["write", "Store.save", "Store.check"]
    assert workspace.path(PathOptions("Store.check", "main")).found == 0
    assert "the same definition" in workspace.path(PathOptions("main", "use.main")).degraded[0].message


def test_a_way_is_said_to_begin_where_it_does(tmp_path: Path):
    (tmp_path / "a.py").write_text("def go():\n    idle()\ndef idle(): ...\n")
    (tmp_path / "b.py").write_text("def go():\n    end()\ndef end(): ...\n")
    (tmp_path / "c.py").write_text("from a import go\ngo()\ngo()\n")
    with Workspace.open(tmp_path, index_dir=tmp_path / ".index") as workspace:
        target = workspace.path(PathOptions("go", "end")).insight.target
    assert (target.location.path, target.reason) == ("b.py", "the likeliest that leads there")


def test_a_way_says_which_of_its_links_are_only_possible(workspace: Workspace):
    way = workspace.path(PathOptions("other", "Store.check")).sections[0].findings
    assert way[0].message.endswith(" at app/use.py:9, possible")
    reached = workspace.graph(GraphOptions("other", direction="dependencies", depth=1)).sections[0].findings
    assert [node.details.witness for node in reached] == [
        ("app/use.py:other calls app/base.py:Store.save at app/use.py:9, possible",)
    ]


def test_impact_puts_tests_apart(workspace: Workspace):
    answer = workspace.impact(ImpactOptions(("Store.check",), edges=("calls",), depth=5))
    assert set(nodes(answer, "dependents")) == {"Store.save", "write", "main", "other"}
    assert nodes(answer, "tests") == {"test_main": 4}


def test_changed_lines_are_their_definitions(workspace: Workspace):
    answer = workspace.impact(
        ImpactOptions(changed={"app/use.py": Change((5,)), "gone.py": Change((1,))}, edges=("calls",))
    )
    assert answer.summary["definitions"] == 1
    assert set(nodes(answer, "dependents")) == {"main"}
    assert workspace.impact(ImpactOptions(changed={"app/use.py": Change((1,))})).found == 0


def test_call_sites_of_a_new_signature(workspace: Workspace):
    answer = workspace.sig_impact(SignatureOptions("Store.save", "save(self, row, force)"))
    # The second may mean something else: what it would be is said, not claimed.
    assert (answer.summary["breaks"], answer.summary["ambiguous"], answer.summary["ok"]) == (1, 1, 0)
    with pytest.raises(UsageError, match="not a signature"):
        workspace.sig_impact(SignatureOptions("Store.save", "save"))


def test_cycles_are_imports_that_run(workspace: Workspace):
    answer = workspace.imports(ImportsOptions(cycles=True))
    (section,) = answer.sections
    rows = [(f.message, f.location.start_line) for f in section.findings if f.location]
    assert rows == [("app/a.py imports app/b.py", 4), ("app/b.py imports app/a.py", 2)]


def test_imports_of_a_module_and_from_outside(workspace: Workspace):
    answer = workspace.imports(ImportsOptions(module="app.use"))
    assert {s.kind: [f.message for f in s.findings] for s in answer.sections} == {
        "imports": ["imports app/base.py"],
        "imported_by": ["app/a.py imports app/use.py (types only)", "tests/test_use.py imports app/use.py"],
    }
    outside = next(s for s in workspace.imports().sections if s.kind == "external")
    assert [f.message for f in outside.findings] == [
        "1 imports of json (standard library)",
        "1 imports of typing (standard library)",
    ]


def test_types_have_sub_and_supertypes_and_overrides(workspace: Workspace):
    answer = workspace.types("Store")
    assert nodes(answer, "subtypes") == {"Fast": 1}
    members = next(s for s in answer.sections if s.kind == "members")
    assert [f.message for f in members.findings] == ["method Store.save", "method Store.check: overridden 1 time"]


@pytest.mark.parametrize(
    ("target", "overrides", "overridden"),
    [("A.run", [], ["B.run", "C.run"]), ("a.py > B > run", ["A.run"], ["C.run"]), ("C > run", ["B.run", "A.run"], [])],
)
def test_types_of_a_method_are_what_overrides_what(
    tmp_path: Path, target: str, overrides: list[str], overridden: list[str]
):
    (tmp_path / "a.py").write_text(
        "class A:\n    def run(self): ...\nclass B(A):\n    def run(self): ...\nclass C(B):\n    def run(self): ...\n"
    )
    with Workspace.open(tmp_path, index_dir=tmp_path / ".index") as opened:
        answer = opened.types(target)
    assert list(nodes(answer, "overrides")) == overrides
    assert list(nodes(answer, "overridden_by")) == overridden


def test_the_most_depended_on_rank_first(workspace: Workspace):
    answer = workspace.rank()
    names = [f.details.name for s in answer.sections for f in s.findings if isinstance(f.details, NodeDetails)]
    assert names.index("Store.check") < names.index("main")
    assert "other" not in names  # nothing depends on it


def test_an_unknown_target_is_said(workspace: Workspace):
    answer = workspace.graph("Sotre")
    assert (answer.found, answer.suggestions) == (0, ("Store",))


def test_bad_options_are_refused(workspace: Workspace):
    for options in (GraphOptions("Store", depth=0), GraphOptions("Store", edges=("cals",)), GraphOptions("x", least=2)):
        with pytest.raises(UsageError):
            workspace.graph(options)


def test_a_call_of_a_wrapped_function_is_one_of_its_own(tmp_path: Path):
    root = tmp_path / "root"
    root.mkdir()
    code = """
    def count(f):
        def counted(*args):
            return f(*args)
        return counted

    def keep(f=None):
        if f is None:
            def take(g):
                return keep(g)
            return take
        return f

    @count
    def plain(value): ...

    @keep()
    def kept(value): ...

    def use():
        plain(1)
        kept(2)
    """
    (root / "m.py").write_text(textwrap.dedent(code))
    with Workspace.open(root, index_dir=tmp_path / "index") as workspace:
        # What `count` wraps is the one thing that `f(*args)` may run.
        for name, certain in (("plain", 2), ("kept", 1)):
            assert (name, workspace.calls(name).summary["certain"]) == (name, certain)


def test_ids_are_targets(workspace: Workspace, tmp_path: Path):
    workspace.export(tmp_path / "export", only=["symbols", "chunks", "call_sites"])
    symbols, chunks, calls = (
        [msgspec.json.decode(line) for line in (tmp_path / "export" / f"{name}.jsonl").read_bytes().splitlines()]
        for name in ("symbols", "chunks", "call_sites")
    )

    def chosen(target: str) -> str:
        insight = workspace.read(target).insight
        assert insight is not None
        assert insight.target is not None
        return insight.target.name

    for row in symbols:
        if row["kindGroup"] != "module":
            assert chosen(row["symbolId"]) == row["qualifiedName"]
            assert chosen(row["symbolId"].replace(":heur:", ":scip:")) == row["qualifiedName"]
    (save,) = (row for row in chunks if row["name"] == "save")
    assert chosen(save["chunkUid"]) == "Store.save"
    (call,) = (row for row in calls if row["calleeRaw"] == "self.check")
    assert chosen(call["callSiteId"]) == "Store.save"
    module = next(row for row in symbols if row["kindGroup"] == "module" and row["file"] == "app/base.py")
    for whole in (module["symbolId"], module["chunkUid"]):
        by_path = workspace.impact("app/base.py")
        assert nodes(workspace.impact(whole), "dependents") == nodes(by_path, "dependents")
        assert workspace.read(whole).found == workspace.read("app/base.py").found
        with pytest.raises(UsageError, match=r"app/base\.py as a whole"):
            workspace.calls(whole)
    for gone in ("sym1:heur:" + "0" * 40, "sym1:heur:misspelled", "sha1:0"):
        with pytest.raises(UsageError, match="nothing here has the id"):
            workspace.graph(gone)


ACCESSORS = """
#- shop.py
from functools import cached_property
class Order:
    @property
    def total(self): return 1
    @total.setter
    def total(self, value): ...
    @cached_property
    def big(self): return self.total > 10
class Gift(Order):
    def wrap(self): self.total += 1
class Cart:
    total = 3
    def own(self): return self.total
#- use.py
import os
from shop import Cart, Order
def typed(order: Order | None): return order.total
def quoted(order: "Order"): return [order.total for _ in order.rows]
def made():
    order = Order()
    order.total = 2
    return lambda: order.big
def unknown(thing): return thing.total
def other(cart: Cart): return cart.total, os.total
def again(order: Order):
    order = find()
    return order.total
def generic(order: list[Order]): return order.total
def name(total): return total
#- box.ts
export class Box {
  get size(): number { return 1 }
  set size(v: number) {}
  twice() { return [1].map(() => this.size * 2) }
}
export class Big extends Box { grow() { this.size = 4 } }
export function use(box: Box, other: any) { return box.size + other.size }
export function made() { const box = new Box(); box.size++ }
export function generic<Box>(box: Box) { return box.size }
"""


@pytest.mark.parametrize(
    ("target", "certain", "possible"),
    [
        ("Order.total", "Gift.wrap:update Order.big:read made:write quoted:read typed:read", "again generic unknown"),
        ("Order.big", "made:read", ""),
        ("box.ts:3", "Big.grow:write made:update", ""),
        ("box.ts:2", "Box.twice:read made:update use:read", "generic use"),
    ],
)
def test_accessors_are_called_by_what_reads_them(target: str, certain: str, possible: str, tmp_path: Path):
    for path, text in parse_fixture(ACCESSORS).files.items():
        (tmp_path / path).write_text(text)
    with Workspace.open(tmp_path, index_dir=tmp_path / ".index") as opened:
        rows = [
            f.details
            for section in opened.calls(target).sections
            for f in section.findings
            if isinstance(f.details, CallDetails)
        ]
        dependents = nodes(opened.graph(GraphOptions(target, direction="dependents")), "dependents")
    sure = {f"{row.caller}:{row.call_kind}" for row in rows if row.status == "certain"}
    assert " ".join(sorted(sure)) == certain
    assert " ".join(sorted({row.caller for row in rows if row.status == "possible"})) == possible
    reads = {name.split(":")[0] for name in sure} - ({"made"} if target == "Order.total" else set())
    assert reads <= dependents.keys()
    assert not {"unknown", "again", "generic", "other", "Cart.own"} & dependents.keys()


def test_code_blocks_that_are_not_linked_are_named(tmp_path: Path):
    blocks = [f"```python\ndef f{n}(): return g{n}()\ndef g{n}(): ...\n```\n" for n in range(300)]
    (tmp_path / "page.md").write_text("\n".join(blocks))
    with Workspace.open(tmp_path, index_dir=tmp_path / ".index") as opened:
        assert opened.status().counts["problems"] == 1
        (problem,) = (f.message for s in opened.diagnostics().sections for f in s.findings if "linked" in f.message)
        assert problem == "46 code blocks behind the first 254 of the page are not linked"
        for ask in (opened.calls, opened.graph, opened.impact, opened.references, opened.neighborhood):
            assert "not_linked" in [event.category for event in ask("g299").degraded]
            assert "not_linked" not in [event.category for event in ask("g7").degraded]


def test_what_stands_in_impl_blocks_is_the_type_s(tmp_path: Path):
    (tmp_path / "a.rs").write_text(
        "pub trait Shape { fn area(&self) -> u32; }\npub struct Square { side: u32 }\n"
        "impl Square { pub fn new() -> Self { Square { side: 1 } } }\n"
        "impl Shape for Square { fn area(&self) -> u32 { self.side } }\n"
    )
    with Workspace.open(tmp_path, index_dir=tmp_path / ".index") as opened:
        sections = {s.kind: [f.message for f in s.findings] for s in opened.types("Square").sections}
    assert [message.split()[1] for message in sections["supertypes"]] == ["Shape"]
    assert [message.split()[1].rstrip(":") for message in sections["members"]] == [
        "Square.new",
        "Square.area",
        "Square.side",
    ]


def test_a_method_of_something_unknown_is_not_exported_as_the_name_in_scope(tmp_path: Path):
    (tmp_path / "a.ts").write_text(
        "export const blur = () => {}\nexport function go(dom: HTMLElement) { dom.blur(); [...blur()] }\n"
    )
    with Workspace.open(tmp_path, index_dir=tmp_path / ".index") as opened:
        opened.export_scip(tmp_path / "index.scip")
        report = opened.ingest(tmp_path / "index.scip")
    assert (report.calls, report.conflicts) == (1, 0)


TYPES = """
//- t.ts
export interface Shape<T> { area(): T; name?: string }
export interface Both extends Shape<number> { extra(): void }
export abstract class Base<T> implements Shape<T> { abstract area(): T; hello() {} }
export class Square extends Base<number> { side = 1; area() { return 1 } }
export class Other { area() { return 2 } }
interface Shape<T> { later(): void }
export class Mixed extends mix(Square) {}
"""


@pytest.mark.parametrize(
    ("target", "members"),
    [
        (
            "Shape",
            ["method Shape.area(): T; overridden 1 time", "property Shape.name: string", "method Shape.later(): void"],
        ),
        (
            "Base",
            ["abstract method Base.area(): T; overrides t.ts:Shape.area; overridden 1 time", "method Base.hello()"],
        ),
        ("Square", ["field Square.side", "method Square.area(); overrides t.ts:Base.area"]),
        ("Other", ["method Other.area()"]),
        ("Mixed", []),
    ],
)
def test_members_are_fields_too_and_promises_are_kept(target: str, members: list[str], tmp_path: Path):
    for path, text in parse_fixture(TYPES).files.items():
        (tmp_path / path).write_text(text)
    with Workspace.open(tmp_path, index_dir=tmp_path / ".index") as opened:
        answer = opened.types(target)
        assert [f.message for s in answer.sections if s.kind == "members" for f in s.findings] == members
        assert answer.insight is not None
        assert answer.insight.target is not None
        assert answer.insight.target.of == 1
        assert [event.correlation_key for event in answer.degraded] == (["mix(Square)"] if target == "Mixed" else [])


def test_a_way_to_an_overloaded_function_leads_to_its_code(tmp_path: Path):
    (tmp_path / "a.py").write_text(
        "from typing import overload\n@overload\ndef f(x: int) -> int: ...\n@overload\ndef f(x: str) -> str: ...\n"
        "def f(x): return x\ndef main(): f(1)\n"
    )
    with Workspace.open(tmp_path, index_dir=tmp_path / ".index") as opened:
        answer = opened.path(PathOptions("main", "f"))
    assert [finding.location.start_line for s in answer.sections for finding in s.findings if finding.location] == [6]


def test_what_is_no_function_is_said_to_be_none(tmp_path: Path):
    (tmp_path / "a.py").write_text(
        "def text(x): return x\ndef make(): return text\nshow = make()\nshow(1)\nout = print\nout(1)\n"
    )
    with Workspace.open(tmp_path, index_dir=tmp_path / ".index") as opened:
        said = opened.calls("show").degraded[0].message
        assert "is a variable" in said
        assert "cq references show" in said
        assert "is a variable here" in opened.calls("out").degraded[0].message


def test_a_target_with_its_tests_is_tested(tmp_path: Path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "a.py").write_text("def f(): pass\n")
    (tmp_path / "tests/test_a.py").write_text("from a import f\ndef test_f(): f()\n")
    with Workspace.open(tmp_path, index_dir=tmp_path / ".index") as opened:
        answer = opened.impact(".")
    assert answer.insight is not None
    assert answer.insight.risk is not None
    assert answer.insight.risk.drivers == ()


def test_who_imports_a_file_that_passes_names_on_depends_on_it(tmp_path: Path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/index.ts").write_text("export * from './inner';\n")
    (tmp_path / "lib/inner.ts").write_text("export function run() {}\n")
    (tmp_path / "app.ts").write_text("import { run } from './lib';\nexport function main() { run(); }\n")
    with Workspace.open(tmp_path, index_dir=tmp_path / ".index") as opened:
        assert nodes(opened.impact("lib/index.ts"), "dependents") == {"app": 1}
        assert nodes(opened.impact("lib"), "dependents") == {"app": 1, "main": 1}
        assert "is a file" in opened.graph("lib/index.ts").degraded[0].message
