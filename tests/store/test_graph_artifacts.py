"""What references mean, as exports say it; and that a reference that is wrong in any way is found."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cq.language import all_languages
from cq.model.artifact import MAX_CANDIDATES, MAX_ROW_BYTES
from cq.model.edge import CONFIDENCE, Candidate, Links, SymbolRef
from cq.questions.validate import check_links, validate_index
from cq.store.codec import encode_links
from cq.store.validate import validate_artifacts
from cq.surfaces.render.validate import render_validation
from tests.store.conftest import Index, check, read_rows, write_files
from tests.store.test_validate import codes, edit_lines, run_sql, seal
from tests.support.fixture import parse_fixture
from tests.support.samples import find_snippets

pytestmark = pytest.mark.slow

LINKED = """
#- shop/base.py
class Base:
    def __init__(self): ...
    def open(self, name): ...
    def close(self): ...
class Other:
    def close(self): ...
#- shop/app.py
import os
from shop.base import Base, Other
from shop import base
LIMIT = 3
class App(Base):
    def run(self, thing) -> "Other":
        self.open(LIMIT)
        self.open(LIMIT)
        thing.close()
        os.getcwd()
        unknown()
        x = (NOWHERE, len)
        return App()
#- shop/web.ts
import { helper } from "./util";
export function page() { return helper(); }
#- shop/util.ts
export function helper() {}
#- query.sql
select count(*) from t;
"""


@pytest.fixture
def linked(tmp_path: Path, make_index: Callable[..., Index]) -> Index:
    return make_index(write_files(tmp_path / "repo", parse_fixture(LINKED).files))


@pytest.fixture
def out(linked: Index, tmp_path: Path) -> Path:
    linked.export(tmp_path / "out")
    check(tmp_path / "out")
    return tmp_path / "out"


def key(row: dict[str, Any]) -> str:
    return row["symbolKey"].partition("::")[2]


def test_calls_lead_to_definitions(out: Path):
    calls = {row["calleeRaw"]: row for row in read_rows(out, "call_sites") if row["file"] == "shop/app.py"}
    said = {
        callee: (row["status"], row["evidence"], [(key(found), found["score"]) for found in row["targetCandidates"]])
        for callee, row in calls.items()
    }
    assert said == {
        "self.open": ("resolved", ["syntax", "mro"], [("Base.open::method", 1)]),
        "thing.close": ("ambiguous", ["syntax", "name"], [("Base.close::method", 0.5), ("Other.close::method", 0.5)]),
        "os.getcwd": ("external", ["syntax", "import", "imported"], []),
        "unknown": ("unresolved", ["syntax"], []),
        "App": ("resolved", ["syntax", "scope"], [("App::class", 1)]),
    }
    assert calls["thing.close"]["confidence"] == CONFIDENCE["name"] / 2
    chunks = {row["chunkUid"]: row["qualifiedName"] for row in read_rows(out, "chunks")}
    assert {callee: chunks.get(row["calleeChunkUid"]) for callee, row in calls.items()} == {
        "self.open": "Base.open", "App": "App", "thing.close": None, "os.getcwd": None, "unknown": None,
    }  # fmt: skip
    (counted,) = [row for row in read_rows(out, "call_sites") if row["file"] == "query.sql"]
    assert counted["status"] == "unresolved"


def test_every_place_that_means_something_is_an_occurrence(out: Path):
    rows = [row for row in read_rows(out, "symbol_occurrences") if row["fromFile"] == "shop/app.py"]
    usages = [(row["role"], row["targetName"], row["ref"]["status"]) for row in rows if row["callSiteId"] is None]
    assert usages == [
        ("import", "os", "external"), ("import", "Base", "resolved"), ("import", "Other", "resolved"),
        ("import", "base", "resolved"), ("reference", "Base", "resolved"), ("type", "Other", "resolved"),
        ("reference", "LIMIT", "resolved"), ("reference", "LIMIT", "resolved"), ("reference", "os", "external"),
        ("reference", "NOWHERE", "unresolved"), ("reference", "len", "external"),
    ]  # fmt: skip
    limit = next(row for row in rows if row["targetName"] == "LIMIT")
    assert key(limit["ref"]["candidates"][0]) == "LIMIT::value"
    module = next(row for row in rows if row["targetName"] == "base")
    assert key(module["ref"]["candidates"][0]) == "::module", "a module is what a name can mean"
    calls = {row["targetName"]: row for row in rows if row["callSiteId"]}
    assert calls["getcwd"]["ref"]["importHint"] == {"moduleSpecifier": "os", "resolvedFile": None}
    text = parse_fixture(LINKED).files["shop/app.py"].encode()
    assert {text[row["range"]["start"] : row["range"]["end"]].decode() == row["targetName"] for row in rows} == {True}


def test_edges_say_once_what_a_definition_refers_to(out: Path):
    names = {row["symbolId"]: row["qualifiedName"] for row in read_rows(out, "symbols")}
    edges = {
        (row["kind"], names[row["fromSymbolId"]], key(row["to"]["candidates"][0]), row["occurrences"])
        for row in read_rows(out, "symbol_edges")
        if row["file"] == "shop/app.py" and row["to"]["resolved"]
    }
    assert edges >= {
        ("calls", "App.run", "Base.open::method", 2), ("instantiates", "App.run", "App::class", 1),
        ("calls", "App.run", "Base.__init__::method", 1), ("inherits", "App", "Base::class", 1),
        ("imports", "", "Base::class", 1), ("imports", "", "::module", 1), ("type_uses", "App.run", "Other::class", 1),
    }  # fmt: skip
    graphs = {
        (row["graph"], row["symbolId"] and names[row["symbolId"]], edge["kind"], edge["occurrences"])
        for row in read_rows(out, "graph_relations")
        if row["file"] == "shop/app.py"
        for edge in row["out"]
    }
    assert graphs >= {
        ("calls", "App.run", "calls", 2), ("calls", "App.run", "instantiates", 1), ("inherits", "App", "inherits", 1),
        ("usages", "App.run", "type_uses", 1), ("imports", "", "imports", 1),
    }  # fmt: skip
    assert not any(kind == "calls" and count == 3 for _, _, kind, count in graphs), "what may be is no edge"


def test_imports_lead_to_files(out: Path):
    links = {row["file"]: row["importLinks"] for row in read_rows(out, "file_relations")}
    assert links == {"shop/app.py": ["shop/base.py"], "shop/web.ts": ["shop/util.ts"], "shop/util.ts": []}


def test_many_candidates_are_cut_and_counted(tmp_path: Path, make_index: Callable[..., Index]):
    classes = "\n".join(f"class C{number:03}:\n    def go(self): ..." for number in range(230))
    root = write_files(tmp_path / "repo", {"many.py": classes + "\ndef run(x):\n    x.go()\n"})
    make_index(root).export(tmp_path / "out")
    (call,) = read_rows(tmp_path / "out", "call_sites")
    assert len(call["targetCandidates"]) == MAX_CANDIDATES
    assert call["evidence"] == ["syntax", "name", "capped", "too_many"]
    (occurrence,) = [row for row in read_rows(tmp_path / "out", "symbol_occurrences") if row["callSiteId"]]
    assert (occurrence["ref"]["omitted"], occurrence["ref"]["note"]) == (205, "too_many")
    (rate,) = [rate for rate in check(tmp_path / "out").rates if rate.what == "calls"]
    assert (rate.ambiguous, rate.capped) == (1, 1)


def test_long_names_of_candidates_are_left_out(tmp_path: Path, make_index: Callable[..., Index]):
    long = "x" * 2000
    classes = "\n".join(f"class C{number}:\n    def go(self, {long}=1): ..." for number in range(25))
    root = write_files(tmp_path / "repo", {"long.py": classes + "\ndef run(x):\n    x.go()\n"})
    report = make_index(root).export(tmp_path / "out")
    assert {row.name for row in report.artifacts if row.truncated} >= {"call_sites", "symbol_edges"}
    (call,) = read_rows(tmp_path / "out", "call_sites")
    assert call["truncated"] == ["targetCandidates"]
    (edge,) = [row for row in read_rows(tmp_path / "out", "symbol_edges") if row["kind"] == "calls"]
    assert edge["truncated"] == ["to.candidates"]
    assert 5 < len(edge["to"]["candidates"]) < 25
    assert len(msgspec.json.encode(edge)) <= MAX_ROW_BYTES
    check(tmp_path / "out")


def test_rates_of_an_export_and_of_the_index_agree(linked: Index, out: Path):
    with linked.reading() as (reader, tree):
        validation = validate_index(reader, tree, strict=True)
    assert validation.findings == ()
    assert validation.rates == validate_artifacts(out).rates
    python = next(rate for rate in validation.rates if (rate.language, rate.what) == ("python", "calls"))
    assert (python.total, python.resolved, python.ambiguous, python.external, python.unresolved) == (6, 3, 1, 1, 1)
    assert "| python     | calls      | 6     | 50.0%" in render_validation(validation)


def _change(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(row: dict[str, Any]) -> None:
        *outer, last = path.split(".")
        at: Any = row
        for word in outer:
            at = at[int(word) if word.isdecimal() else word]
        at[last] = value(at[last]) if callable(value) else value

    return change


@pytest.mark.parametrize(
    ("artifact", "wanted", "change", "code"),
    [
        ("call_sites", {"status": "resolved"}, _change("calleeChunkUid", None), "resolution"),
        ("call_sites", {"status": "resolved"}, _change("status", "ambiguous"), "resolution"),
        ("call_sites", {"status": "resolved"}, _change("targetCandidates", []), "resolution"),
        ("call_sites", {"status": "ambiguous"}, _change("targetCandidates", lambda rows: rows[::-1]), "resolution"),
        ("call_sites", {"status": "ambiguous"}, _change("targetCandidates", lambda rows: rows * 13), "schema"),
        ("call_sites", {"status": "unresolved"}, _change("calleeRaw", "other"), "identity"),
        ("call_sites", {"status": "resolved"}, _change("callerChunkUid", None), "schema"),
        ("symbol_occurrences", {"callSiteId": None}, _change("occurrenceKind", "call"), "resolution"),
        ("symbol_occurrences", {"targetName": "Base"}, _change("ref.resolved", None), "resolution"),
        ("symbol_occurrences", {"targetName": "Base"}, _change("ref.resolved.symbolId", "sym1:heur:" + "0" * 40),
         "resolution"),
        ("symbol_occurrences", {"occurrenceKind": "call"}, _change("callSiteId", "sha1:" + "0" * 40), "dangling"),
        ("symbol_edges", {"kind": "inherits"}, _change("to.candidates", lambda rows: [
            {**rows[0], "symbolId": "sym1:heur:" + "0" * 40}]), "dangling"),
        ("symbol_edges", {"kind": "inherits"}, _change("fromChunkUid", "ck64:v1:repo:nowhere:0"), "dangling"),
        ("symbol_edges", {"kind": "inherits"}, _change("to.status", "unresolved"), "resolution"),
        ("graph_relations", {"graph": "inherits"}, _change("out.0.kind", "calls"), "dangling"),
        ("graph_relations", {"graph": "inherits"}, _change("id", "ck64:v1:repo:shop/app.py:zz"), "dangling"),
        ("graph_relations", {"graph": "inherits"}, _change("part", 1), "order"),
        ("file_relations", {"file": "shop/app.py"}, _change("importLinks", ["nowhere.py"]), "dangling"),
    ],
)  # fmt: skip
def test_a_reference_that_is_wrong_is_found(
    out: Path, artifact: str, wanted: dict[str, Any], change: Callable[[dict[str, Any]], None], code: str
):
    part = f"{artifact}.jsonl"
    rows = [msgspec.json.decode(line) for line in (out / part).read_bytes().splitlines()]
    change(next(row for row in rows if wanted.items() <= row.items()))
    edit_lines(out / part, lambda _: [msgspec.json.encode(row) + b"\n" for row in rows])
    seal(out, artifact, part)
    assert code in codes(out)


def test_damage_to_the_links(linked: Index):
    def counts() -> dict[str, int]:
        with linked.reading() as (reader, tree):
            return validate_index(reader, tree).counts

    with linked.reading() as (reader, tree):
        (links,) = reader.links(tree.id, "shop/app.py")
        facts = reader.facts(reader.contents(tree.id, ["shop/app.py"])["shop/app.py"])
    assert links is not None
    assert list(check_links(facts, links)) == []
    ref, gone = links.refs[0], Candidate("shop/base.py", 0, "Gone")
    replace = msgspec.structs.replace

    def first(ref: SymbolRef) -> Links:
        return replace(links, refs=(ref, *links.refs[1:]))

    change = "UPDATE link SET links=? WHERE id=(SELECT link FROM linked WHERE path='shop/app.py')"
    for wrong in (
        replace(links, calls=links.calls[1:]),
        replace(links, imports=(("x", 99),)),
        first(replace(ref, candidates=())),
        first(replace(ref, status="surely")),
        first(replace(ref, evidence="guess")),
        first(replace(ref, candidates=(gone,))),
    ):
        run_sql(linked, change, encode_links([wrong]))
        assert "link" in counts()
    run_sql(linked, change, encode_links([links]))
    assert not counts()
    run_sql(linked, "DELETE FROM target WHERE key=(SELECT key FROM target WHERE calls<>x'' LIMIT 1)")
    assert "link" in counts()
    run_sql(linked, "UPDATE link SET links=x'00'")
    assert "link" in counts()
    run_sql(linked, "DELETE FROM linked")
    assert "link" in counts()


def test_odd_code_of_every_language_is_exported_whole(tmp_path: Path, make_index: Callable[..., Index]):
    files = {
        f"{language}/{number}{described.suffix}": text.decode()
        for language, described in all_languages().items()
        for number, text in enumerate(find_snippets(language))
    }
    deep = "x" + ".f(" * 2_000 + ")" * 2_000
    files |= {"deep.py": deep, "deep.ts": deep, "cycle.py": "from cycle import *\nclass A(A): ...\nA().a.b()\n"}
    index = make_index(write_files(tmp_path / "repo", files))
    with index.reading() as (reader, tree):
        assert validate_index(reader, tree).findings == ()
    index.export(tmp_path / "out")
    assert check(tmp_path / "out").checked["symbol_edges"] > 100


def test_a_callback_edge_bears_the_name_of_what_is_called_back(tmp_path: Path, make_index: Callable[..., Index]):
    text = "function each(x) { return x; }\nexport function all(rows) { rows.map(each); [1].forEach(each); }\n"
    index = make_index(write_files(tmp_path / "repo", {"a.js": text}))
    index.export(tmp_path / "out")
    called = [row["to"] for row in read_rows(tmp_path / "out", "symbol_edges") if row["to"]["resolved"]]
    assert {(to["targetName"], key(to["candidates"][0])) for to in called} == {("each", "each::function")}
