"""Graphs of the extra `usearch`: hierarchical navigable small worlds over int8, one file each."""

from __future__ import annotations

import contextlib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from cq.embed.exact import quantize

# MiniLM's runtime ends the process if usearch is loaded before it (onnxruntime 1.31, usearch 2.26).
with contextlib.suppress(ImportError):
    import_module("onnxruntime")

from usearch.index import Index

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cq.embed.backend import Neighbors

# Candidates that are kept on the way. Questions lie apart from code: of the best 100 of 46,000 rows 256 miss 13 in 100,
# 2048 miss one.
_SEARCHED = 2048


def build(path: Path, keys: NDArray[np.uint64], codes: NDArray[np.int8]) -> None:
    """By one thread: the same rows are the same file."""
    index = Index(ndim=codes.shape[1], metric="cos", dtype="i8", connectivity=16, expansion_add=128)
    index.add(keys, codes, threads=1)
    index.save(path)


def open_graph(path: Path) -> Neighbors:
    """Of a file that stays where it is; what is not asked for is not read."""
    index = Index.restore(path, view=True)
    if index is None:
        raise ValueError(f"{path.name} is no graph")
    index.expansion_search = _SEARCHED

    def find(query: NDArray[np.float32], count: int) -> NDArray[np.uint64]:
        return index.search(quantize(query[None])[0][0], count, threads=1).keys

    return find
