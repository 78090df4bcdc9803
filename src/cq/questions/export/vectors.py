"""Rows of what an embedder made of chunks, as far as it has come."""

from __future__ import annotations

from collections.abc import Iterator

from cq.model.artifact import SCHEMA_VERSION, DenseVectorRow, Row, VectorFormat
from cq.model.embedding import EmbeddingState
from cq.questions.export.document import Document
from cq.store.read import Reader, Tree
from cq.store.vectors import LEVELS, VectorRows, decode_rows, to_levels


class VectorSource:
    """Documents must come in their order: chunks are counted through all of a file's."""

    def __init__(self, reader: Reader, tree: Tree, state: EmbeddingState | None) -> None:
        self._reader, self._tree = reader, tree
        self._identity, self._dims = (state.identity, state.dimensions) if state and state.enabled else ("", 0)
        self._rows: VectorRows | None = None
        self._base = 0

    def describe(self) -> VectorFormat | None:
        """None where there are no vectors of this embedder."""
        if not self._identity or next(self._reader.vectors(self._tree.id, self._identity), None) is None:
            return None
        return VectorFormat(self._dims, self._identity, LEVELS, "l2")

    def make_rows(self, document: Document) -> Iterator[Row]:
        if document.number == 0:
            blob = self._reader.vectors_at(self._tree.id, document.path, self._identity)
            self._rows, self._base = decode_rows(blob, self._dims) if blob else None, 0
        uids, base, rows = document.identity.chunk_uids, self._base, self._rows
        self._base += len(document.facts.chunks)
        if rows is None:
            return
        for at, chunk in enumerate(rows.chunks.tolist()):
            if base <= chunk < self._base:
                yield DenseVectorRow(
                    schema_version=SCHEMA_VERSION,
                    file=document.path,
                    chunk_uid=uids[chunk - base],
                    body=to_levels(rows.body[at]),
                    body_scale=_scale(rows.body_scales[at]),
                    signature=to_levels(rows.signature[at]),
                    signature_scale=_scale(rows.signature_scales[at]),
                )


def _scale(stored: float) -> float:
    """Codes go to 127, levels to 1. Nine digits name a float32."""
    return float(f"{float(stored) * 127:.9g}")
