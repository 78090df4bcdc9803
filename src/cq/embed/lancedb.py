"""Graphs of the extra `lancedb`: a table each, with an index of its own where there are many rows."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cq.embed.backend import Neighbors

INDEXED = 10_000  # rows from which it makes an index; fewer are compared one by one
_SEARCHED = 512


def build(path: Path, keys: NDArray[np.uint64], codes: NDArray[np.int8]) -> None:
    lancedb, pa = _load(), import_module("pyarrow")
    rows = codes.astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), codes.shape[1])
    table = lancedb.connect(path).create_table("rows", pa.table({"key": pa.array(keys), "vector": vectors}))
    if len(keys) >= INDEXED:
        # One partition: several begin at random.
        table.create_index("vector", config=lancedb.index.HnswSq(distance_type="cosine", num_partitions=1))


def open_graph(path: Path) -> Neighbors:
    table = _load().connect(path).open_table("rows")

    def find(query: NDArray[np.float32], count: int) -> NDArray[np.uint64]:
        asked = table.search(query, vector_column_name="vector").distance_type("cosine")
        found = asked.ef(max(_SEARCHED, count)).limit(count).select(["key", "_distance"]).to_arrow()
        return found["key"].to_numpy()

    return find


def _load() -> Any:
    """By name: it is not there where types are checked. Several threads would make another graph every time."""
    os.environ.setdefault("LANCE_CPU_THREADS", "1")
    return import_module("lancedb")
