"""Vectors of a file's chunks as one blob: a checksum, numbers, keys of what was read, and two rows of int8 with a scale
each; in exports as bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from xxhash import xxh3_64_digest

from cq.model.artifact import Quantization

if TYPE_CHECKING:
    from numpy import float32, float64, int8, int64, uint64
    from numpy.typing import NDArray

FORMAT = 2
# Of exported rows: -127..127 as 0..254, so that nothing is lost.
LEVELS = Quantization(-1.0, 1.0, 255)


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
    data = b"".join(part.tobytes() for part in parts)
    return xxh3_64_digest(data) + data


def decode_rows(blob: bytes, dimensions: int) -> VectorRows | None:
    """None for a blob of another format or of other dimensions, or a damaged one."""
    import numpy as np

    checksum, blob = blob[:8], blob[8:]
    if xxh3_64_digest(blob) != checksum:
        return None
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


def to_levels(codes: NDArray[int8]) -> bytes:
    """Codes as `LEVELS` has them; -128, which no quantizer of ours writes, is the least."""
    import numpy as np

    return np.clip(codes.astype(np.int16) + 127, 0, LEVELS.levels - 1).astype(np.uint8).tobytes()


def from_levels(data: bytes, quantization: Quantization) -> NDArray[float64]:
    """Counted in floats: no byte wraps around, and one above the last level is the last."""
    import numpy as np

    last = min(max(quantization.levels, 2), 256) - 1
    levels = np.minimum(np.frombuffer(data, np.uint8).astype(np.float64), last)
    return quantization.min + levels * ((quantization.max - quantization.min) / last)
