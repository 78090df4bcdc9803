"""Exports: rows say what the source says, every export of a tree is the same, and none is ever half there."""

from __future__ import annotations

import filecmp
import hashlib
import os
import subprocess
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from cq.embed.exact import quantize
from cq.indexing import refresh as refresh_module
from cq.indexing.embedding import get_embedder, read_passages
from cq.model.artifact import (
    ARTIFACTS,
    MAX_ROW_BYTES,
    ROWS,
    STATS,
    ArtifactMeta,
    DenseVectorRow,
    Quantization,
    VectorFormat,
)
from cq.model.edge import CONFIDENCE
from cq.model.errors import UsageError
from cq.questions import export as export_module
from cq.source.files import find_files
from cq.store.artifacts import Caps
from cq.store.vectors import LEVELS, from_levels, to_levels
from tests.store.conftest import FILES, Index, check, read_rows, write_files

WHEN = "2024-05-06T07:08:09Z"


def test_a_call_site_says_who_calls_what_where(index: Index, tmp_path: Path):
    index.export(tmp_path / "out")
    chunks = {row["chunkUid"]: row for row in read_rows(tmp_path / "out", "chunks")}
    calls = {
        (row["file"], row["calleeRaw"], row["startLine"]): row for row in read_rows(tmp_path / "out", "call_sites")
    }
    call = calls["app/store.py", "self.open", 11]
    assert chunks[call["callerChunkUid"]]["qualifiedName"] == "Store.load"
    source = FILES["app/store.py"].encode()
    snippet = 'self.open(name, *rest, mode="rb")'
    assert source[call["start"] : call["end"]].decode() == snippet
    where = f"app/store.py:11:{call['startCol']}:11:{call['endCol']}:self.open"
    assert call["startCol"] == 22
    assert call["callSiteId"] == f"sha1:{hashlib.sha1(where.encode()).hexdigest()}"
    assert call["snippetHash"] == f"sha1:{hashlib.sha1(snippet.encode()).hexdigest()}"
    assert (call["receiver"], call["calleeNormalized"], call["kwargs"]) == ("self", "open", ["mode"])
    assert [(arg["text"], arg["spread"], arg["name"]) for arg in call["args"]] == [
        ("name", False, None), ("*rest", True, None), ('"rb"', False, "mode"),
    ]  # fmt: skip
    assert call["argsSummary"] == ["name", "*rest", 'mode="rb"']
    assert (call["calleeChunkUid"], call["targetCandidates"], call["segmentUid"]) == (None, [], None)
    run = calls["app/store.py", "main", 16]
    assert (run["status"], run["evidence"], run["confidence"]) == ("resolved", ["syntax", "scope"], CONFIDENCE["scope"])
    assert chunks[run["calleeChunkUid"]]["qualifiedName"] == "main"
    assert [row["symbolKey"] for row in run["targetCandidates"]] == ["app/store.py::main::function"]
    assert chunks[calls["app/store.py", "main", 16]["callerChunkUid"]]["kind"] == "module", "root level"


def test_what_declarations_say_of_types_and_the_projects(index: Index, tmp_path: Path):
    index.export(tmp_path / "out")
    symbols = {row["symbolId"]: row["qualifiedName"] for row in read_rows(tmp_path / "out", "symbols")}
    rows = {row["qualifiedName"]: row for row in read_rows(tmp_path / "out", "type_facts")}
    assert {name: symbols[row["symbolId"]] for name, row in rows.items()} == {name: name for name in rows}
    run = rows["App.run"]
    assert (run["file"], run["line"], run["returns"], run["source"]) == ("web/app.ts", 3, "void", "syntax")
    assert [(each["name"], each["type"]) for each in run["parameters"]] == [("x", "number")]
    assert [(each["name"], each["callee"], each["index"]) for each in run["hands"]] == [("x", "ref", 0)]
    (project,) = read_rows(tmp_path / "out", "projects")
    assert (project["file"], project["files"], project["kind"]) == ("web/tsconfig.json", ["web/app.ts"], "plain")
    assert project["aliases"] == [{"pattern": "@/*", "targets": ["web/*"]}]
    check(tmp_path / "out")


def test_embedded_documents_have_names_of_their_own(index: Index, tmp_path: Path):
    index.export(tmp_path / "out")
    documents = read_rows(tmp_path / "out", "vfs_manifest")
    fences = [row for row in documents if row["containerPath"] == "README.md" and row["segmentUid"]]
    assert [row["languageId"] for row in fences] == ["python", "python", "javascript"]
    assert len({row["virtualPath"] for row in fences}) == 3, "also of two equal ones"
    assert all(row["toolPath"] == f".cq-vfs/{row['virtualPath']}{row['effectiveExt']}" for row in fences)
    source = FILES["README.md"].encode()
    assert b"".join(source[start:end] for start, end in fences[2]["ranges"]) == b"f(1)\ng(2)\n"
    assert {row["containerPath"] for row in documents if row["segmentUid"] is None} == set(FILES)
    page = next(row for row in documents if row["containerPath"] == "web/Page.vue" and row["segmentUid"])
    calls = [row for row in read_rows(tmp_path / "out", "call_sites") if row["file"] == "web/Page.vue"]
    assert [(row["calleeRaw"], row["segmentUid"], row["languageId"]) for row in calls] == [
        ("ref", page["segmentUid"], "typescript")
    ]


def test_relations_and_symbols(index: Index, tmp_path: Path):
    index.export(tmp_path / "out")
    relations = {row["file"]: row for row in read_rows(tmp_path / "out", "file_relations")}
    bound = [
        (item["module"], item["level"], [(b["local"], b["imported"]) for b in item["bindings"]])
        for item in relations["app/store.py"]["imports"]
    ]
    assert bound == [("os.path", 0, [("p", "*")]), ("base", 1, [("B", "Base"), ("other", "other")])]
    exports = {(item["exported"], item["module"]) for item in relations["web/app.ts"]["exports"]}
    assert exports == {("*", "./other"), ("App", None), ("app", None)}
    assert "empty.py" not in relations
    symbols = {row["symbolKey"]: row for row in read_rows(tmp_path / "out", "symbols")}
    load = symbols["app/store.py::Store.load::method"]
    assert load["symbolId"] == f"sym1:heur:{hashlib.sha1(load['scopedId'].encode()).hexdigest()}"
    assert load["scopedId"] == f"method|{load['symbolKey']}|{load['signatureKey']}|{load['chunkUid']}"
    field = symbols["app/store.py::Store.limit::value"]
    assert field["chunkUid"] == symbols["app/store.py::Store::class"]["chunkUid"], (
        "small ones belong to what holds them"
    )


def test_every_row_has_its_schema_and_order(index: Index, tmp_path: Path):
    index.export(tmp_path / "out")
    for name, kind in ROWS.items():
        if kind is DenseVectorRow or name.startswith("risk_"):  # there only where something is found
            continue
        rows = [msgspec.convert(row, kind) for row in read_rows(tmp_path / "out", name)]
        assert rows, name
        assert [row.key() for row in rows] == sorted({row.key() for row in rows})
    assert check(tmp_path / "out").checked["chunks"] > 20
    for file in (tmp_path / "out").rglob("*.json*"):
        assert str(tmp_path) not in file.read_text(), "no absolute path leaves the machine"


def test_exports_do_not_depend_on_workers_order_or_history(
    repo: Path, make_index: Callable[..., Index], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(refresh_module, "POOL_BYTES", 0)
    monkeypatch.setattr(refresh_module, "BATCH_BYTES", 100)
    make_index(repo, "one", jobs=1).export(tmp_path / "one", generated_at=WHEN)
    make_index(repo, "two", jobs=2).export(tmp_path / "two", generated_at="2031-01-01T00:00:00Z")
    # Half of the files first, one of them different, one that goes away again.
    late = {path: (repo / path).read_bytes() for path in sorted(FILES)[::2]}
    for path in late:
        (repo / path).unlink()
    write_files(repo, {"app/store.py": "x = 1\n", "gone.py": "def gone(): ...\n"})
    steps = make_index(repo, "steps", jobs=1)
    (repo / "gone.py").unlink()
    for path, data in {**late, "app/store.py": FILES["app/store.py"].encode()}.items():
        (repo / path).write_bytes(data)
    steps.refresh(jobs=2)
    steps.export(tmp_path / "steps", generated_at=WHEN)
    assert read_tree(tmp_path / "steps") == read_tree(tmp_path / "one")
    strip = {path: without_time(data) for path, data in read_tree(tmp_path / "two").items()}
    assert strip == {path: without_time(data) for path, data in read_tree(tmp_path / "one").items()}
    assert read_tree(tmp_path / "two") != read_tree(tmp_path / "one")
    check(tmp_path / "two")


def read_tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def without_time(data: bytes) -> bytes:
    return b"".join(line for line in data.splitlines(keepends=True) if b'"generatedAt"' not in line)


@pytest.mark.parametrize("compress", [None, "zstd"])
@pytest.mark.parametrize("caps", [Caps(records=3), Caps(bytes=2_000), Caps(records=1, bytes=1)])
def test_large_artifacts_are_sharded(index: Index, tmp_path: Path, caps: Caps, compress: str | None):
    index.export(tmp_path / "whole")
    index.export(tmp_path / "parts", caps=caps, compress=compress)
    for name in ROWS:
        assert read_rows(tmp_path / "parts", name) == read_rows(tmp_path / "whole", name)
        assert not (tmp_path / "whole" / f"{name}.parts").exists()
    meta = msgspec.json.decode((tmp_path / "parts" / "chunks.meta.json").read_bytes())
    suffix = ".jsonl.zst" if compress else ".jsonl"
    assert meta["format"] == "jsonl-sharded"
    assert [part["path"] for part in meta["parts"]] == [
        f"chunks.parts/{number:05}{suffix}" for number in range(len(meta["parts"]))
    ]
    assert all(part["records"] <= caps.records for part in meta["parts"])
    assert not (tmp_path / "parts" / f"chunks{suffix}").exists()
    if not compress:
        assert all(part["bytes"] <= caps.bytes or part["records"] == 1 for part in meta["parts"])
    check(tmp_path / "parts")


def test_compressed_rows_are_smaller_and_equal(index: Index, tmp_path: Path):
    plain, packed = index.export(tmp_path / "plain"), index.export(tmp_path / "packed", compress="zstd")
    assert packed.bytes < plain.bytes / 2
    assert all(
        read_rows(tmp_path / "plain", name) == read_rows(tmp_path / "packed", name) for name in ROWS
    )  # fmt: skip
    check(tmp_path / "packed")


def test_rows_that_are_too_large_are_cut_then_dropped(repo: Path, make_index: Callable[..., Index], tmp_path: Path):
    methods = "\n".join(f"    def method_{number:04}(self): return {number}" for number in range(1500))
    names = ", ".join(f"imported_name_{number:04}" for number in range(2000))
    write_files(
        repo,
        {
            "doc.py": f'def f():\n    """{"é" * 20_000}"""\n',
            "wide.py": f"class Wide:\n{methods}\n",
            "imports.py": f"from somewhere import {names}\n",
            "name.py": f"def {'k' * 40_000}(): ...\n",
        },
    )
    report = make_index(repo).export(tmp_path / "out")
    lines = [line for file in (tmp_path / "out").glob("*.jsonl") for line in file.read_bytes().splitlines()]
    assert max(map(len, lines)) <= MAX_ROW_BYTES
    chunks = {(row["file"], row["kind"]): row for row in read_rows(tmp_path / "out", "chunks")}
    shortened = chunks["doc.py", "function"]
    assert shortened["doc"].endswith("é…")
    assert len(shortened["doc"]) == 1_000
    assert shortened["truncated"] == ["doc"]
    wide = chunks["wide.py", "class"]
    assert wide["truncated"] == ["childChunkUids"]
    assert 100 < len(wide["childChunkUids"]) < 1500
    assert (
        wide["childChunkUids"]
        == [
            row["chunkUid"]
            for row in read_rows(tmp_path / "out", "chunks")
            if row["parentChunkUid"] == wide["chunkUid"]
        ][: len(wide["childChunkUids"])]
    ), "the first ones, in source order"
    parts = [row for row in read_rows(tmp_path / "out", "file_relations") if row["file"] == "imports.py"]
    assert [row["part"] for row in parts] == list(range(len(parts)))
    assert len(parts) > 1
    bound = [binding["local"] for row in parts for item in row["imports"] for binding in item["bindings"]]
    assert bound == [f"imported_name_{number:04}" for number in range(2000)], "nothing is lost"
    dropped = {artifact.name: artifact.dropped for artifact in report.artifacts}
    assert dropped["symbols"] == 1
    meta = msgspec.json.decode((tmp_path / "out" / "symbols.meta.json").read_bytes())
    assert meta["droppedRecords"] == 1
    (record,) = meta["truncations"]
    assert (record["cap"], record["limit"], record["omitted"]) == ("maxRowBytes", MAX_ROW_BYTES, 1)
    assert record["observed"] > 40_000
    check(tmp_path / "out")


def test_an_export_is_replaced_and_nothing_else_is(index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    out = tmp_path / "deep" / "out"
    index.export(out, only=("chunks",))
    assert not (out / "symbols.jsonl").exists()
    index.export(out)
    check(out)
    (out / "mine.txt").write_text("keep")
    with pytest.raises(UsageError, match="other things"):
        index.export(out)
    (out / "mine.txt").unlink()
    other = write_files(tmp_path / "other", {"mine.txt": "keep"})
    with pytest.raises(UsageError, match="other things"):
        index.export(other)
    with pytest.raises(UsageError, match="is a file"):
        index.export(other / "mine.txt")
    assert read_tree(other) == {"mine.txt": b"keep"}
    (tmp_path / "empty").mkdir()
    index.export(tmp_path / "empty")
    check(tmp_path / "empty")
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    index.export(tmp_path / "link", only=("chunks",))
    assert (tmp_path / "link").is_symlink()
    assert not (tmp_path / "empty" / "symbols.jsonl").exists()

    def fail(*_: Any) -> None:
        raise OSError(28, "no space")

    before = read_tree(out)
    monkeypatch.setattr(export_module, "write_manifest", fail)
    for target in (out, tmp_path / "new"):
        with pytest.raises(OSError, match="no space"):
            index.export(target)
    assert read_tree(out) == before
    assert sorted(path.name for path in out.parent.iterdir()) == ["out"], "nothing is left behind"
    assert not (tmp_path / "new").exists()


def test_without_a_swap_the_old_export_steps_aside(index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("cq.store.artifacts._exchange", lambda *_: False)
    index.export(tmp_path / "out" / "x", only=("chunks",))
    index.export(tmp_path / "out" / "x")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["x"]
    check(tmp_path / "out" / "x")


def test_an_export_inside_the_repository_is_not_indexed(repo: Path, make_index: Callable[..., Index]):
    index = make_index(repo)
    before = [entry.path for entry in find_files(repo).files]
    index.export(repo / "build" / "export")
    check(repo / "build" / "export")
    assert [entry.path for entry in find_files(repo).files] == before
    (repo / ".git").rmdir()
    subprocess.run(["git", "init", "-q", str(repo)], check=True, env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull})
    assert [entry.path for entry in find_files(repo).files] == before


def test_only_some_artifacts(index: Index, tmp_path: Path):
    report = index.export(tmp_path / "out", only=("call_sites", "index_state"))
    assert [artifact.name for artifact in report.artifacts] == ["call_sites", "index_state"]
    assert set(read_tree(tmp_path / "out")) == {
        "call_sites.jsonl", "call_sites.meta.json", "index_state.json", "pieces/manifest.json",
    }  # fmt: skip
    check(tmp_path / "out")
    with pytest.raises(UsageError, match="did you mean 'call_sites'"):
        index.export(tmp_path / "other", only=("callsites",))
    with pytest.raises(UsageError, match="compression 'gzip'"):
        index.export(tmp_path / "other", compress="gzip")
    assert not (tmp_path / "other").exists()


def test_the_manifest_lists_every_file(index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    report = index.export(tmp_path / "out")
    assert [artifact.name for artifact in report.artifacts] == [
        name for name in ARTIFACTS if name not in ("dense_vectors", STATS)
    ]
    manifest = msgspec.json.decode((tmp_path / "out" / "pieces" / "manifest.json").read_bytes())
    assert manifest["generatedAt"] == "1970-01-01T00:00:00Z"
    files = read_tree(tmp_path / "out")
    assert {piece["path"] for piece in manifest["pieces"]} == files.keys() - {"pieces/manifest.json"}
    for piece in manifest["pieces"]:
        data = files[piece["path"]]
        assert piece.keys() == {"name", "type", "format", "path", "bytes", "checksum", "count"}
        assert piece["bytes"] == len(data)
        assert piece["checksum"] == f"sha256:{hashlib.sha256(without_time(data)).hexdigest()}"
    assert sum(piece["bytes"] for piece in manifest["pieces"]) == report.bytes
    index.export(tmp_path / "again")
    assert filecmp.cmp(tmp_path / "out/pieces/manifest.json", tmp_path / "again/pieces/manifest.json", shallow=False)


@pytest.mark.parametrize(
    ("files", "head"),
    [
        ({"HEAD": "ref: refs/heads/main\n", "refs/heads/main": "a" * 40 + "\n"}, "a" * 40),
        ({"HEAD": "ref: refs/heads/main\n", "packed-refs": f"# x\n{'b' * 40} refs/heads/main\n"}, "b" * 40),
        ({"HEAD": "c" * 64 + "\n"}, "c" * 64),
        ({"HEAD": "ref: refs/../../secret\n", "../secret": "d" * 40}, None),
        ({"HEAD": "ref: refs/heads/none\n"}, None),
        ({}, None),
    ],
)
def test_the_state_says_what_it_was_made_from(
    repo: Path, make_index: Callable[..., Index], tmp_path: Path, files: dict[str, str], head: str | None
):
    write_files(repo / ".git", files)
    index = make_index(repo)
    index.export(tmp_path / "out", only=("index_state",))
    state = msgspec.json.decode((tmp_path / "out" / "index_state.json").read_bytes())
    assert state["provenance"]["scmHead"] == head
    assert {name: row["enabled"] for name, row in state["features"].items()} == {
        "facts": True, "graph": True, "risk": False,
    }  # fmt: skip
    assert state["languages"]["python"] == 3
    assert "generation" not in state


def test_vectors_are_exported_where_there_are_any_and_nothing_is_lost(index: Index, tmp_path: Path):
    with pytest.raises(UsageError, match="no vectors to export"):
        index.export(tmp_path / "none", only=("dense_vectors",))
    state = index.embed()
    index.export(tmp_path / "out", embeddings=state)
    checked = check(tmp_path / "out").checked
    assert checked["dense_vectors"] == state.chunks > 10
    meta = msgspec.json.decode((tmp_path / "out" / "dense_vectors.meta.json").read_bytes(), type=ArtifactMeta)
    form = meta.vectors
    assert isinstance(form, VectorFormat)
    assert (form.dims, form.model, form.normalize) == (state.dimensions, state.identity, "l2")
    rows = {row["chunkUid"]: row for row in read_rows(tmp_path / "out", "dense_vectors")}
    chunks = {row["qualifiedName"]: row for row in read_rows(tmp_path / "out", "chunks")}
    row = rows[chunks["Store.load"]["chunkUid"]]
    with index.reading() as (reader, tree):
        file = reader.file(tree.id, "app/store.py")
        assert file is not None
        numbers, passages = read_passages(file.path, reader.text(file.content), reader.facts(file.content))
    passage = next(passage for passage in passages if passage.name == "Store.load")
    assert len(numbers) == sum(row["file"] == "app/store.py" for row in rows.values())
    for name, (codes, scales) in zip(
        ("body", "signature"), map(quantize, get_embedder().embed([passage])), strict=True
    ):
        read = from_levels(b64decode(row[name]), form.quantization) * row[f"{name}Scale"]
        assert read == pytest.approx(codes[0] * scales[0].astype(float), abs=1e-7)


def test_levels_do_not_wrap():
    codes = np.array([-128, -127, 0, 127], np.int8)
    assert from_levels(to_levels(codes), LEVELS).tolist() == [-1, -1, 0, 1]
    assert from_levels(bytes([0, 255]), Quantization(0.0, 3.0, 4)).tolist() == [0, 3]
    assert from_levels(bytes([0, 255]), Quantization(0.0, 3.0, 9999)).tolist() == [0, 3]
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"min": 0.0, "max": 1.0, "levels": 1}, Quantization)
