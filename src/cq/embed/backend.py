"""Which vector index answers, and the graphs that the approximate ones keep as files.

A graph knows rows by the keys of what was read, so it stays good while a few of them change: those it does not have are
compared one by one, and it is made anew where they are many. A folder holds it; a small file beside says which folder
counts, and is put in place last.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from cq.model.config import EXTRA_BACKENDS
from cq.model.errors import ConfigError
from cq.opening import read_file

if TYPE_CHECKING:
    from numpy import float32, int8, int64, uint64
    from numpy.typing import NDArray

    from cq.embed.exact import ExactIndex

# The keys of the rows most like a query, the best first.
Neighbors = Callable[["NDArray[float32]", int], "NDArray[uint64]"]
FOLDER = "graphs"
# Rows from which a graph is worth its minutes: 25 ms to compare them all, 1 ms to ask it (bench/find.md).
LARGE = 200_000
_FORMAT = 1
_STALE = 0.1  # the share of rows that a graph may lack, or have too many
_MORE = 2  # asked for each row that is wanted: those of a graph are compared again, exactly
_MOST = 5000  # rows that are asked of a graph; a filter that needs more leaves few enough to compare


class Graphs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is in `folder`: graphs of these rows, made by this embedder for that generation of the index."""

    format: int
    backend: str
    identity: str
    generation: int
    rows: int
    bytes: int
    folder: str


def find_backends() -> dict[str, bool]:
    """Every backend there is, and whether it is installed."""
    return {"exact": True, **{name: find_spec(name) is not None for name in EXTRA_BACKENDS}}


def choose_backend(wanted: str, rows: int) -> str:
    """By what is installed and how many rows there are, nothing else; ConfigError for one that is named and missing."""
    there = find_backends()
    if wanted == "auto":
        return "usearch" if rows >= LARGE and there["usearch"] else "exact"
    if not there[wanted]:
        hint = f"pip install 'cq-code[{wanted}]', or set backend in [find] of cq.toml to 'auto'"
        raise ConfigError(f"find.backend is {wanted!r}, which is not installed", hint=hint)
    return wanted


def read_graphs(place: Path, tree: int, backend: str, identity: str) -> Graphs | None:
    """What was published last, if it is whole and of this embedder."""
    try:
        found = msgspec.json.decode(read_file(_pointer(place, tree, backend)), type=Graphs)
    except (OSError, msgspec.DecodeError):
        return None
    if (found.format, found.backend, found.identity) != (_FORMAT, backend, identity):
        return None
    # A graph that is cut short may take the process down with it.
    return found if _measure(place / found.folder) == found.bytes else None


def is_stale(place: Path, graphs: Graphs | None, keys: NDArray[uint64]) -> bool:
    import numpy as np

    known = _read_keys(place, graphs) if graphs else None
    if known is None:
        return True
    rows = np.unique(keys)
    return len(np.setxor1d(known, rows, assume_unique=True)) > _STALE * max(len(rows), 1)


def publish_graphs(
    place: Path, tree: int, backend: str, identity: str, generation: int,
    keys: NDArray[uint64], kinds: Mapping[str, NDArray[int8]],
) -> None:  # fmt: skip
    """Makes a graph of each kind of rows. Whoever reads sees those before or these. One process at a time."""
    import numpy as np

    module = import_module(f"cq.embed.{backend}")
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    pointer = _pointer(place, tree, backend)
    unique, first = np.unique(keys, return_index=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{pointer.stem}-", dir=place))
    try:
        for kind, codes in kinds.items():
            rows = codes[first]
            said = rows.any(axis=1)  # a row of zeros is like nothing
            module.build(folder / kind, unique[said], rows[said])
        np.save(folder / "keys.npy", unique)
        found = Graphs(_FORMAT, backend, identity, generation, len(unique), _measure(folder), folder.name)
        draft = folder.with_suffix(".draft")
        draft.write_bytes(msgspec.json.encode(found))
        os.replace(draft, pointer)  # noqa: PTH105
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    for old in place.glob(f"{pointer.stem}-*"):
        if old != folder:
            shutil.rmtree(old, ignore_errors=True)


def open_graphs(
    place: Path, graphs: Graphs, keys: NDArray[uint64], exact: Mapping[str, ExactIndex]
) -> list[ApproximateIndex] | None:
    """One for each kind of rows; None where they do not serve: stale, taken away, or of another version."""
    known = _read_keys(place, graphs)
    if known is None or is_stale(place, graphs, keys):
        return None
    try:
        module = import_module(f"cq.embed.{graphs.backend}")
        return [
            ApproximateIndex(index, keys, module.open_graph(place / graphs.folder / kind), known)
            for kind, index in exact.items()
        ]
    except (ImportError, OSError, RuntimeError, ValueError):
        return None


class ApproximateIndex:
    """Asks a graph for more than is wanted, then compares those, and the rows it does not have, exactly."""

    def __init__(self, exact: ExactIndex, keys: NDArray[uint64], neighbors: Neighbors, known: NDArray[uint64]) -> None:
        import numpy as np

        self._exact, self._neighbors = exact, neighbors
        self._order = np.argsort(keys, kind="stable")
        self._keys = keys[self._order]
        self._fresh = np.flatnonzero(~np.isin(keys, known)).astype(np.int64)

    def search(
        self, query: NDArray[float32], count: int, allowed: NDArray[int64] | None
    ) -> tuple[NDArray[int64], NDArray[float32]]:
        """Best first, ties by number."""
        import numpy as np

        from cq.embed.exact import FEW

        total = len(self._keys)
        rows = total if allowed is None else len(allowed)
        asked = min(_MORE * count * total // max(rows, 1), total)
        if rows <= FEW or asked > _MOST:
            return self._exact.search(query, count, allowed)
        try:
            found = self._neighbors(query, asked)
        except (OSError, RuntimeError, ValueError):  # its files were taken away
            return self._exact.search(query, count, allowed)
        first, last = np.searchsorted(self._keys, found, "left"), np.searchsorted(self._keys, found, "right")
        near = [self._order[start:end] for start, end in zip(first.tolist(), last.tolist(), strict=True)]
        pool = np.unique(np.concatenate([self._fresh, *near]))
        if allowed is not None:
            pool = np.intersect1d(pool, allowed)
        return self._exact.search(query, count, pool if len(pool) >= count else allowed)


def _pointer(place: Path, tree: int, backend: str) -> Path:
    return place / f"{backend}-{tree}.json"


def _read_keys(place: Path, graphs: Graphs) -> NDArray[uint64] | None:
    import numpy as np

    try:
        return np.load(place / graphs.folder / "keys.npy", allow_pickle=False)
    except (OSError, ValueError):
        return None


def _measure(folder: Path) -> int:
    """Bytes of all files in it; -1 where it cannot be read."""
    try:
        return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    except OSError:
        return -1
