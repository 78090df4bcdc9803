"""Writes down what outside sources say that calls mean; readers find it merged into the links (cq.model.evidence)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from cq.graph.links import target_key
from cq.model.edge import Candidate
from cq.model.evidence import Statement
from cq.store import database, kept
from cq.store.kept import NAMED, RAN, EvidenceRow, KeptFile
from cq.store.read import Reader
from cq.store.write import Writer

Said = tuple[str, str, Sequence[Statement]]  # path, hash of the text it is said about, what


def put_evidence(
    index: Path,
    root: Path,
    source: str,
    version: str,
    said: Iterable[Said],
    named: Iterable[Candidate] = (),
    *,
    replace: bool = False,
) -> int:
    """In place of what the source said about these files before, and with `replace` about any; returns how many
    statements were kept. `named` are the definitions that the source has a name for.

    One transaction, under the writer's lock: a kill leaves what was there. A statement whose target is no file of the
    tree is left out; one about a text that is not the file's any more is kept and has no effect.
    """
    known: dict[str, set[Candidate]] = {}
    for place in named:
        known.setdefault(place.path, set()).add(place)
    with database.writer_lock(index, wait=True), database.writing(index) as connection:
        reader, writer = Reader(connection, os.fspath(root)), Writer(connection)
        tree = reader.tree()
        if tree is None:
            return 0
        files: list[KeptFile] = []
        for path, text_hash, statements in said:
            rows = _make_rows(reader, tree.id, statements)
            rows += [
                EvidenceRow(target_key(place), NAMED, place, text_hash, []) for place in sorted(known.get(path, ()))
            ]
            files.append(KeptFile(path, text_hash, rows))
        if replace:
            kept.drop(index, os.fspath(root), source)
        if files:
            kept.append(index, os.fspath(root), source, version, files)
        writer.begin()
        try:
            if replace:
                writer.drop_evidence(tree.id, source)
            for file in files:
                writer.put_evidence(tree.id, file.path, source, version, file.hash, file.rows)
            writer.forget_evidence(tree.id)
            writer.note_change(tree.id)
            writer.commit()
        except BaseException:
            writer.rollback()
            raise
    return sum(len(row.calls) for file in files for row in file.rows if not row.role)


def _make_rows(reader: Reader, tree: int, statements: Sequence[Statement]) -> list[EvidenceRow]:
    calls: dict[tuple[Candidate, int], list[int]] = {}
    for each in statements:
        place = each.document << 24 | each.call
        meant = each.target or (Candidate("", 0, each.module) if each.module else None)
        if meant is not None:
            calls.setdefault((meant, RAN if each.ran else 0), []).append(place)
        if each.constructor is not None:
            calls.setdefault((each.constructor, 1), []).append(place)
    hashes = reader.hashes(tree, sorted({meant.path for meant, _ in calls if meant.path}))
    return [
        EvidenceRow(target_key(meant), role, meant, hashes[meant.path][0] if meant.path else "", sorted(numbers))
        for (meant, role), numbers in sorted(calls.items())
        if not meant.path or meant.path in hashes
    ]
