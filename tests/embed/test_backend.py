"""Vector indexes that are extras: which one answers, and that it answers as the exact one does."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from cq import FindOptions, Workspace
from cq.embed import backend as backends
from cq.embed.backend import ApproximateIndex, choose_backend, open_graphs, publish_graphs, read_graphs
from cq.embed.exact import ExactIndex, quantize
from cq.indexing import embedding
from cq.model.errors import ConfigError
from tests.support.find import write_fixture

EXTRAS = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(find_spec(name) is None, reason=f"the extra {name} is not installed"),
    )
    for name in ("usearch", "lancedb")
]
ROWS, COMPARED = 3000, 500  # rows, and those up to which all are compared


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cq.embed.exact.FEW", COMPARED)
    monkeypatch.setattr("cq.embed.lancedb.INDEXED", 1000)


@pytest.fixture(scope="module")
def rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Keys, and vectors that lie in heaps, as those of code do."""
    generator = np.random.default_rng(3)
    heaps = generator.standard_normal((100, 64))
    table = heaps[generator.integers(0, 100, ROWS)] + generator.standard_normal((ROWS, 64)) * 0.7
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    return generator.permutation(ROWS).astype(np.uint64) * 7, *quantize(table.astype(np.float32))


def publish(place: Path, name: str, keys: np.ndarray, codes: np.ndarray, generation: int = 1) -> None:
    publish_graphs(place, 1, name, "me", generation, keys, {"body": codes})


def reopen(place: Path, name: str, keys: np.ndarray, exact: ExactIndex) -> ApproximateIndex:
    graphs = read_graphs(place, 1, name, "me")
    assert graphs is not None
    found = open_graphs(place, graphs, keys, {"body": exact})
    assert found is not None
    return found[0]


def whole(codes: np.ndarray, scales: np.ndarray, query: np.ndarray) -> np.ndarray:
    scores = (codes.astype(np.float64) * scales[:, None]) @ query
    return np.lexsort((np.arange(len(scores)), -scores))


@pytest.mark.parametrize("name", EXTRAS)
def test_a_graph_finds_what_a_full_comparison_finds(name: str, tmp_path: Path, rows: Any):
    keys, codes, scales = rows
    exact = ExactIndex(codes, scales)
    publish(tmp_path, name, keys, codes)
    index = reopen(tmp_path, name, keys, exact)
    generator = np.random.default_rng(4)
    hits = half = 0
    allowed = np.flatnonzero(np.arange(ROWS) % 5 != 0)
    for _ in range(20):
        query = generator.standard_normal(64).astype(np.float32) + codes[generator.integers(ROWS)] / 40
        query /= np.linalg.norm(query)
        order = whole(codes, scales, query)
        found, scores = index.search(query, 50, None)
        assert len(found) == 50
        assert list(scores) == sorted(scores, reverse=True)
        hits += len(np.intersect1d(found, order[:50]))
        # Filters are part of the question: as many come back, and only from what is allowed.
        found, _ = index.search(query, 50, allowed)
        assert len(found) == 50
        assert np.isin(found, allowed).all()
        half += len(np.intersect1d(found, order[np.isin(order, allowed)][:50]))
        for few in (np.arange(0, ROWS, 40), np.arange(7)):
            assert index.search(query, 50, few)[0].tolist() == exact.search(query, 50, few)[0].tolist()
    assert min(hits, half) / 1000 >= 0.95


@pytest.mark.parametrize("name", EXTRAS)
def test_a_graph_is_made_the_same_twice(name: str, tmp_path: Path, rows: Any):
    keys, codes, scales = rows
    found = []
    for place in (tmp_path / "one", tmp_path / "two"):
        publish(place, name, keys, codes)
        index = reopen(place, name, keys, ExactIndex(codes, scales))
        found.append([index._neighbors(codes[at].astype(np.float32), 100).tolist() for at in range(0, ROWS, 500)])
    assert found[0] == found[1]


def test_what_a_graph_lacks_is_found_and_what_is_gone_is_not(tmp_path: Path, rows: Any):
    keys, codes, scales = rows
    publish(tmp_path, "usearch", keys[:-100], codes[:-100])
    kept = np.arange(100, ROWS)  # the first hundred are gone, the last are new
    index = reopen(tmp_path, "usearch", keys[kept], ExactIndex(codes[kept], scales[kept]))
    for row in (0, 1500, len(kept) - 1, len(kept) - 50):
        query = codes[kept[row]].astype(np.float32) * scales[kept[row]]
        assert index.search(query, 20, None)[0][0] == row
    gone = codes[3].astype(np.float32) * scales[3]
    assert set(index.search(gone, 20, None)[0].tolist()) <= set(range(len(kept)))


def test_equal_keys_are_all_found(tmp_path: Path, rows: Any):
    keys, codes, scales = rows
    keys, codes, scales = (np.concatenate([part, part[:3]]) for part in (keys, codes, scales))
    publish(tmp_path, "usearch", keys, codes)
    index = reopen(tmp_path, "usearch", keys, ExactIndex(codes, scales))
    assert index.search(codes[1].astype(np.float32), 2, None)[0].tolist() == [1, ROWS + 1]


def test_graphs_that_do_not_serve_are_not_asked(tmp_path: Path, rows: Any):
    keys, codes, scales = rows
    exact = {"body": ExactIndex(codes, scales)}
    assert read_graphs(tmp_path, 1, "usearch", "me") is None
    publish(tmp_path, "usearch", keys, codes)
    graphs = read_graphs(tmp_path, 1, "usearch", "me")
    assert graphs is not None
    assert read_graphs(tmp_path, 1, "usearch", "another embedder") is None
    assert read_graphs(tmp_path, 2, "usearch", "me") is None
    assert open_graphs(tmp_path, graphs, keys + np.uint64(1), exact) is None  # other texts
    file = tmp_path / graphs.folder / "body"
    os.truncate(file, file.stat().st_size - 1)
    assert read_graphs(tmp_path, 1, "usearch", "me") is None


def test_a_new_graph_takes_the_place_of_the_old(tmp_path: Path, rows: Any, monkeypatch: pytest.MonkeyPatch):
    keys, codes, scales = rows
    publish(tmp_path, "usearch", keys, codes)
    old = reopen(tmp_path, "usearch", keys, ExactIndex(codes, scales))
    publish(tmp_path, "usearch", keys, codes, generation=2)
    assert len(list(tmp_path.iterdir())) == 2  # one folder, and what names it
    assert len(old.search(codes[0].astype(np.float32), 10, None)[0]) == 10  # its file is open still

    def fail(*_: object) -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr("cq.embed.usearch.build", fail)
    with pytest.raises(OSError, match="no space"):
        publish(tmp_path, "usearch", keys, codes, generation=3)
    graphs = read_graphs(tmp_path, 1, "usearch", "me")
    assert graphs is not None
    assert graphs.generation == 2
    assert len(list(tmp_path.iterdir())) == 2


def test_the_choice_is_by_size_and_what_is_installed(monkeypatch: pytest.MonkeyPatch):
    there = {"exact": True, "usearch": True, "lancedb": False}
    monkeypatch.setattr(backends, "find_backends", lambda: there)
    assert [choose_backend("auto", rows) for rows in (0, backends.LARGE - 1, backends.LARGE)] == [
        "exact", "exact", "usearch",
    ]  # fmt: skip
    assert choose_backend("usearch", 3) == "usearch"
    assert choose_backend("exact", 10**7) == "exact"
    with pytest.raises(ConfigError, match="'lancedb', which is not installed") as caught:
        choose_backend("lancedb", 3)
    assert "cq-code[lancedb]" in caught.value.hint
    there["usearch"] = False
    assert choose_backend("auto", backends.LARGE) == "exact"


CODE = """
    #- keys.py
    def make_key(secret):
        '''Derive a key from a secret.'''
        return hash(secret)

    def send_mail(address):
        '''Send a mail.'''
        return address
    """


@pytest.mark.parametrize("name", EXTRAS)
def test_find_says_which_backend_answered(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    root = tmp_path / "root"
    root.mkdir()
    write_fixture(root, CODE)
    (root / "cq.toml").write_text("[find]\nbackend = 'exact'\n")
    question = FindOptions("derive a key from a secret", mode="hybrid", threshold=0.0, languages=("python",))
    with Workspace.open(root, index_dir=tmp_path / "index") as workspace:
        exact = workspace.find(question)
    assert exact.summary["backend"] == "exact"
    (root / "cq.toml").write_text(f"[find]\nbackend = '{name}'\n")
    started: list[str] = []
    monkeypatch.setattr(embedding, "_start", lambda arguments: started.append(arguments[-1]))
    with Workspace.open(root, index_dir=tmp_path / "index") as workspace:
        before = workspace.find(msgspec.structs.replace(question, background=True))
        assert before.summary["backend"] == "exact"
        assert [event.category for event in before.degraded if event.stage == "semantic"] == ["backend"]
        assert len(started) == 1  # the process that makes the graph
        state = workspace.status(embeddings=True).embeddings
        assert state is not None
        assert (state.backend, state.backends[name]) == (name, True)
        assert "not made yet" in state.backend_reason
        assert workspace.embed().graphs == name
        assert workspace.embed().graphs == ""
        after = workspace.find(msgspec.structs.replace(question, background=True))
        assert (after.summary["backend"], after.results) == (name, exact.results)
        assert len(started) == 1
        state = workspace.status(embeddings=True).embeddings
        assert state is not None
        assert state.backend_reason == ""
    assert not list(root.glob("**/*graph*"))


def test_a_backend_that_is_named_and_missing_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(backends, "find_backends", lambda: {"exact": True, "usearch": True, "lancedb": False})
    write_fixture(tmp_path, CODE)
    (tmp_path / "cq.toml").write_text("[find]\nbackend = 'lancedb'\n")
    with Workspace.open(tmp_path, index_dir=tmp_path / ".index") as workspace:
        with pytest.raises(ConfigError, match="not installed"):
            workspace.find("derive a key from a secret")
        assert workspace.find(FindOptions("make_key", mode="lexical")).found
        state = workspace.status(embeddings=True).embeddings
        assert state is not None
        assert "cq-code[lancedb]" in state.backend_reason


def test_rows_that_are_few_are_compared(rows: Any):
    keys, codes, scales = rows
    exact = ExactIndex(codes[:COMPARED], scales[:COMPARED])

    def refuse(*_: object) -> Any:
        raise AssertionError

    index = ApproximateIndex(exact, keys[:COMPARED], refuse, keys[:COMPARED])
    query = codes[0].astype(np.float32)
    assert index.search(query, 9, None)[0].tolist() == exact.search(query, 9, None)[0].tolist()
