"""Vectors of a file's chunks as one blob: numbers, keys of what was read, and two rows of int8 with a scale each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from numpy import float32, int8, int64, uint64
    from numpy.typing import NDArray

FORMAT = 1


class VectorRows(msgspec.Struct, frozen=True):
    """`keys` are hashes of what the embedder read: a chunk that reads the same keeps its rows."""

    chunks: NDArray[int64]  # numbers of the chunks, counted through all documents of the file
    keys: NDArray[uint64]
    body: NDArray[int8]
    body_scales: NDArray[float32]
    signature: NDArray[int8]
    signature_scales: NDArray[float32]


def encode_rows(rows: VectorRows) -> bytes:
    import numpy as np

    head = np.array([FORMAT, len(rows.chunks), rows.body.shape[1] if rows.body.ndim == 2 else 0], "<u4")
    parts = (
        head, rows.chunks.astype("<u4"), rows.keys.astype("<u8"), rows.body_scales.astype("<f4"),
        rows.signature_scales.astype("<f4"), rows.body, rows.signature,
    )  # fmt: skip
    return b"".join(part.tobytes() for part in parts)


def decode_rows(blob: bytes, dimensions: int) -> VectorRows | None:
    """None for a blob of another format or of other dimensions."""
    import numpy as np

    head = np.frombuffer(blob, "<u4", 3) if len(blob) >= 12 else np.zeros(3, "<u4")
    count, at = int(head[1]), 12
    if int(head[0]) != FORMAT or int(head[2]) != dimensions or len(blob) != 12 + count * (4 + 8 + 8 + 2 * dimensions):
        return None

    def take(kind: str, length: int) -> NDArray[Any]:
        nonlocal at
        found = np.frombuffer(blob, kind, length, at)
        at += found.nbytes
        return found

    chunks, keys = take("<u4", count).astype(np.int64), take("<u8", count)
    body_scales, signature_scales = take("<f4", count), take("<f4", count)
    body, signature = (take("i1", count * dimensions).reshape(count, dimensions) for _ in range(2))
    return VectorRows(chunks, keys, body, body_scales, signature, signature_scales)
