"""Definitions about the same as another, by the vectors that the index has already: kin that no link shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from cq.questions.neighborhood.members import Found, Member
from cq.snapshot.target import Definition
from cq.store.vectors import decode_rows

if TYPE_CHECKING:
    from numpy import float32, int8, int64
    from numpy.typing import NDArray

    from cq.embed import Embedder
    from cq.embed.exact import ExactIndex
    from cq.snapshot.files import Files
    from cq.snapshot.snapshot import Snapshot

LEAST = 0.6  # similarity; below it chunks of any two modules of a project are alike
_KEPT = 10
_ASKED = 30  # for those that are kept: what lies around or inside does not count


class _Bodies(msgspec.Struct, frozen=True):
    """All vectors of a tree, file by file; `firsts` are the rows that files begin at, `chunks` numbers in the file."""

    paths: list[str]
    firsts: NDArray[int64]
    chunks: NDArray[int64]
    codes: NDArray[int8]
    scales: NDArray[float32]
    index: ExactIndex


def find_near(snapshot: Snapshot, embedder: Embedder, subject: Definition) -> Found:
    """The most alike first. What was loaded for this state of the tree is kept for the next question."""
    import numpy as np

    own = subject.file.chunks[subject.document]
    number = subject.symbol.chunk
    bodies = _load(snapshot, embedder)
    if bodies is None or own[number].symbol != subject.number or subject.file.path not in bodies.paths:
        return Found()
    number += sum(len(subject.file.chunks[document]) for document in range(subject.document))
    first, last = bodies.firsts[(at := bodies.paths.index(subject.file.path)) : at + 2].tolist()
    rows = np.flatnonzero(bodies.chunks[first:last] == number) + first
    if not len(rows):
        return Found()
    query = bodies.codes[rows[0]].astype(np.float32) * bodies.scales[rows[0]]
    found, scores = bodies.index.search(query, _ASKED, None)
    members: list[Member] = []
    for row, score in zip(found.tolist(), scores.tolist(), strict=True):
        if score < LEAST or len(members) == _KEPT:
            break
        path = bodies.paths[int(np.searchsorted(bodies.firsts, row, "right")) - 1]
        other = _locate(snapshot.indexed, path, int(bodies.chunks[row]))
        if other is not None and not _overlap(subject, other):
            similarity = round(min(score, 1.0), 3)
            more = {"similarity": similarity, "note": f"similarity {similarity:.2f}"}
            members.append(Member(other, "similar", True, "certain", similarity, "vector", more=more))
    return Found(tuple(members))


def _overlap(one: Definition, other: Definition) -> bool:
    inner, outer = one.symbol, other.symbol
    return one.key[:2] == other.key[:2] and inner.start < outer.end and outer.start < inner.end


def _locate(files: Files, path: str, number: int) -> Definition | None:
    """The definition that a chunk is, counted through all documents; None for what defines nothing."""
    held = files.get(path)
    for document, chunks in enumerate(held.chunks if held is not None else ()):
        if held is not None and number < len(chunks):
            symbol = chunks[number].symbol
            return Definition(held, document, symbol) if symbol >= 0 else None
        number -= len(chunks)
    return None


def _load(snapshot: Snapshot, embedder: Embedder) -> _Bodies | None:
    import numpy as np

    from cq.embed.exact import ExactIndex

    reader, tree = snapshot.reader, snapshot.tree.id
    key = (*snapshot.state, embedder.identity, reader.last_vector(tree))
    loaded: dict[tuple[object, ...], _Bodies] = snapshot.index.kept.setdefault("bodies", {})
    bodies = loaded.get(key)
    if bodies is None:
        parts = [
            (path, rows)
            for path, blob in reader.vectors(tree, embedder.identity)
            if (rows := decode_rows(blob, embedder.dimensions)) is not None and len(rows.chunks)
        ]
        loaded.clear()
        if not parts:
            return None
        firsts = np.cumsum([0, *(len(rows.chunks) for _, rows in parts)])
        codes = np.concatenate([rows.body for _, rows in parts])
        scales = np.concatenate([rows.body_scales for _, rows in parts])
        chunks = np.concatenate([rows.chunks for _, rows in parts])
        paths = [path for path, _ in parts]
        bodies = loaded[key] = _Bodies(paths, firsts, chunks, codes, scales, ExactIndex(codes, scales))
    return bodies
