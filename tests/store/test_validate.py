"""Validation: a sound index and a sound export pass, and whatever is changed in either is found."""

from __future__ import annotations

import hashlib
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cq.model.artifact import Finding, Validation
from cq.model.errors import StoreError
from cq.model.facts import FileFacts, Symbol
from cq.questions.validate import check_document, validate_index
from cq.store.artifacts import MANIFEST, Caps, json_checksum
from cq.store.codec import decode_facts, encode_facts, pack
from cq.store.head import find_data
from cq.store.read import PARTS
from cq.store.validate import validate_artifacts
from cq.surfaces.render.validate import render_validation
from tests.store.conftest import FILES, Index, check

ENCODE = msgspec.msgpack.encode


@pytest.fixture
def export(index: Index, tmp_path: Path) -> Path:
    index.export(tmp_path / "out", caps=Caps(records=16))
    check(tmp_path / "out")
    return tmp_path / "out"


def codes(folder: Path) -> set[str]:
    return set(validate_artifacts(folder).counts)


def edit_lines(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))


def edit_json(path: Path, change: Callable[[Any], None]) -> None:
    """In the form an export writes, so that only what it says is wrong."""
    value = msgspec.json.decode(path.read_bytes())
    change(value)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")


def seal(folder: Path, name: str, rows: str) -> None:
    """Makes manifest and meta agree with what now lies in a part: a forger's work, not an accident."""
    data = (folder / rows).read_bytes()
    facts: dict[str, Any] = {"bytes": len(data), "checksum": f"sha256:{hashlib.sha256(data).hexdigest()}"}
    records = len(data.splitlines())

    def change_meta(meta: Any) -> None:
        part = next(part for part in meta["parts"] if part["path"] == rows)
        part.update(facts, records=records)
        meta["totalRecords"] = sum(part["records"] for part in meta["parts"])
        meta["totalBytes"] = sum(part["bytes"] for part in meta["parts"])
        meta["maxPartRecords"] = max(part["records"] for part in meta["parts"])
        meta["maxPartBytes"] = max(part["bytes"] for part in meta["parts"])

    edit_json(folder / f"{name}.meta.json", change_meta)
    meta = (folder / f"{name}.meta.json").read_bytes()

    def change_manifest(manifest: Any) -> None:
        for piece in manifest["pieces"]:
            if piece["path"] == rows:
                piece.update(facts, count=records)
            elif piece["path"] == f"{name}.meta.json":
                piece.update(bytes=len(meta), checksum=json_checksum(meta))

    edit_json(folder / MANIFEST, change_manifest)


def test_every_changed_byte_is_found(index: Index, tmp_path: Path):
    index.export(tmp_path / "out", only=("vfs_manifest", "call_sites", "index_state"))
    chance = random.Random(7)
    for path in sorted(path for path in (tmp_path / "out").rglob("*") if path.is_file()):
        data = path.read_bytes()
        for at in sorted(chance.sample(range(len(data)), min(150, len(data)))):
            path.write_bytes(data[:at] + bytes([data[at] ^ 1 << chance.randrange(7)]) + data[at + 1 :])
            assert not validate_artifacts(tmp_path / "out").ok, f"{path.name} at {at}: {data[at - 20 : at + 20]!r}"
        path.write_bytes(data)
    check(tmp_path / "out")


@pytest.mark.parametrize("compress", [None, "zstd"])
def test_a_changed_byte_of_a_part_names_the_part(index: Index, tmp_path: Path, compress: str | None):
    index.export(tmp_path / "out", compress=compress)
    part = next((tmp_path / "out").glob("chunks.jsonl*"))
    data = part.read_bytes()
    part.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])
    first = validate_artifacts(tmp_path / "out").findings[0]
    assert (first.code, first.where) == ("checksum", part.name)


def test_accidents_to_an_export(export: Path):
    part = export / "chunks.parts" / "00000.jsonl"
    data = part.read_bytes()
    edit_lines(part, lambda lines: lines[:-1])
    assert {"checksum", "bytes", "count"} <= codes(export)
    part.write_bytes(data[:-1])
    assert {"checksum", "bytes", "row_size"} <= codes(export)
    part.unlink()
    assert "missing_piece" in codes(export)
    part.mkdir()
    assert "missing_piece" in codes(export)
    part.rmdir()
    part.symlink_to(export / "chunks.parts" / "00001.jsonl")
    assert "missing_piece" in codes(export)
    part.unlink()
    part.write_bytes(data)
    (export / "chunks.parts" / "00099.jsonl").write_bytes(b"")
    assert codes(export) == {"extra_piece"}
    (export / "chunks.parts" / "00099.jsonl").unlink()
    check(export)
    shutil.rmtree(export / "pieces")
    assert codes(export) == {"missing_piece"}
    with pytest.raises(StoreError, match="not a directory"):
        validate_artifacts(export / "nowhere")


@pytest.mark.parametrize("field", ["count", "bytes", "checksum", "path", "name", "type", "format"])
def test_a_wrong_word_in_the_manifest(export: Path, field: str):
    wrong = {
        "count": 1, "bytes": 1, "checksum": "sha256:" + "0" * 64, "path": "chunks.parts/99999.jsonl", "name": "symbols",
        "type": "meta", "format": "jsonl+zstd",
    }  # fmt: skip

    def change(manifest: Any) -> None:
        piece = next(piece for piece in manifest["pieces"] if piece["path"] == "chunks.parts/00000.jsonl")
        piece[field] = wrong[field]

    edit_json(export / MANIFEST, change)
    assert codes(export)


def test_a_manifest_leads_nowhere_outside(export: Path):
    for path in ("../secret", "/etc/passwd", "a/../../b"):
        edit_json(export / MANIFEST, lambda manifest, path=path: manifest["pieces"][0].update(path=path))
        assert codes(export) == {"schema"}


def test_forged_counts_are_found_by_the_state(export: Path):
    """A row taken out with every count and checksum made to fit."""
    part = "file_relations.jsonl"
    edit_lines(export / part, lambda lines: lines[:-1])
    seal(export, "file_relations", part)
    assert validate_artifacts(export).findings == (
        Finding("count", "index_state.json", "file_relations: 3 rows were made, 2 are here"),
    )


def test_rows_out_of_order(export: Path):
    part = "chunks.parts/00000.jsonl"
    edit_lines(export / part, lambda lines: [*lines[:3], lines[4], lines[3], *lines[5:]])
    seal(export, "chunks", part)
    assert codes(export) == {"order"}


def test_rows_that_break_the_schema(export: Path):
    part = "call_sites.jsonl"
    original = (export / part).read_bytes()
    for change in (
        {"unknown": 1}, {"schemaVersion": 2}, {"startLine": 0}, {"file": "/etc/passwd"}, {"file": "a/../b"},
        {"callSiteId": "sha1:zz"}, {"confidence": 2}, {"evidence": ["x"] * 7}, {"argsSummary": ["x" * 81]},
        {"args": [{"kind": "name", "text": "x", "depth": 3, "spread": False, "name": None}]}, {"callerChunkUid": None},
    ):  # fmt: skip
        row = msgspec.json.decode(original.splitlines()[0]) | change
        edit_lines(export / part, lambda lines, row=row: [msgspec.json.encode(row) + b"\n", *lines[1:]])
        seal(export, "call_sites", part)
        assert "schema" in codes(export), change
        (export / part).write_bytes(original)
    row = msgspec.json.decode(original.splitlines()[0])
    del row["snippetHash"]
    edit_lines(export / part, lambda lines: [msgspec.json.encode(row) + b"\n", *lines[1:]])
    seal(export, "call_sites", part)
    assert "schema" in codes(export)


def test_rows_over_the_limit(export: Path):
    part = "call_sites.jsonl"
    row = msgspec.json.decode((export / part).read_bytes().splitlines()[0]) | {"kwargs": ["x" * 40_000]}
    edit_lines(export / part, lambda lines: [msgspec.json.encode(row) + b"\n", *lines[1:]])
    seal(export, "call_sites", part)
    findings = validate_artifacts(export)
    assert findings.counts.keys() == {"row_size", "schema", "dangling"}, "others name the row that is lost"
    assert findings.findings[0].where == f"{part}:1"


@pytest.mark.parametrize(
    ("part", "field", "value", "code"),
    [
        ("call_sites", "callerChunkUid", "ck64:v1:repo:nowhere:0", "dangling"),
        ("call_sites", "segmentUid", "seg1:0123456789abcdef", "dangling"),
        ("call_sites", "file", "README.md.not", "dangling"),
        ("chunks", "parentChunkUid", "ck64:v1:repo:nowhere:0", "dangling"),
        ("chunks", "symbolId", "sym1:heur:" + "0" * 40, "dangling"),
        ("chunks", "childChunkUids", ["ck64:v1:repo:nowhere:0"], "chunk_rule"),
        ("chunks", "endLine", 1, "span"),
        ("symbols", "chunkUid", "ck64:v1:repo:nowhere:0", "dangling"),
        ("vfs_manifest", "segmentEnd", 0, "span"),
    ],
)
def test_rows_that_name_what_is_not_there(index: Index, tmp_path: Path, part: str, field: str, value: Any, code: str):
    index.export(tmp_path / "out")
    rows = (tmp_path / "out" / f"{part}.jsonl").read_bytes().splitlines()
    number = next(
        number for number, line in enumerate(rows)
        if msgspec.json.decode(line).get("kind", "") in ("call", "method", "") and (
            part != "vfs_manifest" or msgspec.json.decode(line)["segmentUid"]
        )
    )  # fmt: skip
    row = msgspec.json.decode(rows[number]) | {field: value}
    edit_lines(
        tmp_path / "out" / f"{part}.jsonl",
        lambda lines: [*lines[:number], msgspec.json.encode(row) + b"\n", *lines[number + 1 :]],
    )
    seal(tmp_path / "out", part, f"{part}.jsonl")
    assert code in codes(tmp_path / "out")


def test_a_row_that_is_there_twice(export: Path):
    part = "call_sites.jsonl"
    edit_lines(export / part, lambda lines: [lines[0], *lines])
    seal(export, "call_sites", part)
    assert codes(export) == {"order", "identity", "count"}


def test_findings_are_capped_and_counted(export: Path):
    part = "chunks.parts/00000.jsonl"
    edit_lines(export / part, lambda lines: [b"{}\n"] * 500)
    validation = validate_artifacts(export)
    assert validation.counts["schema"] == 500
    assert len([item for item in validation.findings if item.code == "schema"]) == 10
    page = render_validation(validation)
    assert f"{sum(validation.counts.values()):,} findings" in page
    assert "500 schema" in page


def validate(index: Index, *, strict: bool = False) -> Validation:
    with index.reading() as (reader, tree):
        return validate_index(reader, tree, strict=strict)


def test_a_sound_index(index: Index):
    validation = validate(index, strict=True)
    assert validation.findings == ()
    assert validation.checked["files"] == len(FILES)
    assert validation.checked["contents"] == len(FILES)
    health = {row.language: row for row in validation.languages}
    assert health["python"].files == 3
    assert sum(validation.kind_groups.values()) == validation.checked["symbols"]
    page = render_validation(validation)
    assert "Nothing wrong" in page
    assert "kind group" in page


def run_sql(index: Index, sql: str, *values: Any) -> None:
    with closing(sqlite3.connect(find_data(index.file))) as connection:
        assert connection.execute(sql, values).rowcount > 0, sql
        connection.commit()


def find_content(index: Index, path: str) -> int:
    with index.reading() as (reader, tree):
        file = reader.file(tree.id, path)
        assert file is not None
        return file.content


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("UPDATE content SET text=x'00' WHERE id=?", "blob"),
        ("UPDATE content SET symbols=substr(symbols, 1, length(symbols) - 3) WHERE id=?", "blob"),
        ("UPDATE content SET chunks=symbols WHERE id=?", "blob"),
        ("UPDATE content SET calls=(SELECT calls FROM content c WHERE c.id<>content.id LIMIT 1) WHERE id=?", "counts"),
        ("UPDATE content SET lines=lines+1 WHERE id=?", "counts"),
        ("UPDATE content SET hash='0' WHERE id=?", "text_hash"),
        ("DELETE FROM content WHERE id=?", "dangling"),
        ("DELETE FROM symbol WHERE name='load' AND content=?", "symbol_table"),
        ("UPDATE symbol SET name='other' WHERE name='load' AND content=?", "symbol_table"),
        ("UPDATE symbol SET number=number+1000 WHERE name='limit' AND content=?", "symbol_table"),
    ],
)
def test_damage_to_the_tables(index: Index, sql: str, code: str):
    run_sql(index, sql, find_content(index, "app/store.py"))
    validation = validate(index)
    assert code in validation.counts
    assert validation.checked["files"] >= len(FILES) - 1, "one damaged file hides no other"


def test_damage_to_the_search_tables(index: Index):
    run_sql(index, "DELETE FROM words_docsize WHERE id=(SELECT max(id) FROM words_docsize)")
    assert "counts" in validate(index).counts
    run_sql(index, "UPDATE content SET chunk_base=1")
    assert "overlap" in validate(index).findings[0].what
    with closing(sqlite3.connect(find_data(index.file))) as connection:
        connection.execute("INSERT INTO name (name) VALUES ('delete-all')")
        connection.execute("UPDATE trigram SET bits=zeroblob(8)")
        connection.commit()
    assert validate(index).counts["search"] >= 4


def test_pages_of_the_file_that_were_overwritten(index: Index):
    with closing(sqlite3.connect(find_data(index.file))) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    file = find_data(index.file)
    data = bytearray(file.read_bytes())
    for at in range(8192 * 7, len(data) - 8192, 8192 * 3):
        data[at : at + 4096] = b"\xff" * 4096
    file.write_bytes(data)
    assert not validate(index).ok


def test_facts_that_do_not_fit_the_text(index: Index):
    """Facts changed in the store, in ways that still decode."""
    content = find_content(index, "app/store.py")
    with index.reading() as (reader, _):
        facts = reader.facts(content)
    symbols, chunks = facts.symbols, facts.chunks
    replace = msgspec.structs.replace
    load = next(number for number, symbol in enumerate(symbols) if symbol.name == "load")
    own = symbols[load].chunk

    def with_symbol(**changes: Any) -> FileFacts:
        return replace(facts, symbols=(*symbols[:load], replace(symbols[load], **changes), *symbols[load + 1 :]))

    def with_chunk(number: int, **changes: Any) -> FileFacts:
        return replace(facts, chunks=(*chunks[:number], replace(chunks[number], **changes), *chunks[number + 1 :]))

    call = facts.calls[0]
    damaged: list[tuple[FileFacts, str]] = [
        (with_symbol(end=10_000), "span"),
        (with_symbol(name_start=0), "span"),
        (with_symbol(parent=len(symbols)), "reference"),
        (with_symbol(chunk=99), "reference"),
        (with_symbol(depth=7), "reference"),
        (with_symbol(name=""), "identity"),
        (with_chunk(own, start=chunks[own].start - 3), "identity"),
        (with_chunk(own, parent=-1), "chunk_rule"),
        (with_chunk(own, symbol=10_000), "reference"),
        (with_chunk(own, uid_suffix=chunks[1].uid_suffix), "identity"),
        (with_chunk(1, end=chunks[2].end), "chunk_rule"),
        (with_chunk(len(chunks) - 1, end=chunks[-1].end - 3), "chunk_rule"),
        (replace(facts, chunks=chunks[1:]), "chunk_rule"),
        (replace(facts, calls=(replace(call, name="nothing"), *facts.calls[1:])), "span"),
        (replace(facts, calls=(replace(call, scope=500), *facts.calls[1:])), "reference"),
        (replace(facts, references=replace(facts.references, offsets=facts.references.offsets[:-1])), "blob"),
        (replace(facts, references=replace(facts.references, names=("x",))), "blob"),
    ]
    text = FILES["app/store.py"].encode()
    assert list(check_document(text, facts)) == []
    for wrong, code in damaged:
        assert code in {found for found, _ in check_document(text, wrong)}
        parts = encode_facts(wrong)
        assert decode_facts(parts) == wrong
        run_sql(index, f"UPDATE content SET {', '.join(f'{part}=?' for part in PARTS)} WHERE id=?",
                *(parts[part] for part in PARTS), content)  # fmt: skip
        assert code in validate(index).counts


def test_strict_wants_kinds_that_are_known(index: Index):
    content = find_content(index, "app/store.py")
    with index.reading() as (reader, _):
        per_document: list[tuple[Symbol, ...]] = reader.symbols(content)
    odd = [tuple(msgspec.structs.replace(symbol, kind="thing") for symbol in symbols) for symbols in per_document]
    run_sql(index, "UPDATE content SET symbols=? WHERE id=?", pack(ENCODE(odd)), content)
    run_sql(index, "UPDATE symbol SET kind='thing' WHERE content=?", content)
    loose = validate(index)
    assert "kind_share" not in loose.counts
    assert loose.kind_groups["other"] > 0
    assert "kind_share" in validate(index, strict=True).counts


def test_files_with_the_same_text_are_looked_at_once(repo: Path, make_index: Callable[..., Index]):
    (repo / "copy.py").write_bytes((repo / "app" / "store.py").read_bytes())
    validation = validate(make_index(repo))
    assert validation.ok, "names differ by path"
    assert validation.checked["files"] == len(FILES) + 1
    assert validation.checked["contents"] == len(FILES)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"body": "AAAA"}, "body is not"),
        ({"signatureScale": 9.0}, "signature has a length of"),
        ({"chunkUid": "ck64:v1:repo:nowhere.py:00"}, "there is no chunk"),
    ],
)
def test_vectors_that_are_no_vectors_of_a_chunk(index: Index, tmp_path: Path, change: dict[str, Any], says: str):
    out = tmp_path / "out"
    index.export(out, embeddings=index.embed())
    check(out)

    def spoil(lines: list[bytes]) -> list[bytes]:
        return [*lines[:-1], msgspec.json.encode(msgspec.json.decode(lines[-1]) | change) + b"\n"]

    edit_lines(out / "dense_vectors.jsonl", spoil)
    seal(out, "dense_vectors", "dense_vectors.jsonl")
    assert any(says in finding.what for finding in validate_artifacts(out).findings)


def test_a_meta_file_without_the_format_of_its_vectors(index: Index, tmp_path: Path):
    index.export(tmp_path / "out", embeddings=index.embed())
    edit_json(tmp_path / "out" / "dense_vectors.meta.json", lambda meta: meta.pop("vectors"))
    assert "meta" in codes(tmp_path / "out")
