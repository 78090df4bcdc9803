"""Vectors: only what changed is made, jobs are bound to one state of the index, and nothing here fails an index."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent

import msgspec
import numpy as np
import pytest

from cq import Workspace
from cq.embed import Passage
from cq.indexing import embedding
from cq.indexing.embedding import FORMAT_VERSION, JOB_NAME, EmbeddingJob, embed_tree, measure_coverage, run_job
from cq.model.embedding import find_coverage
from cq.questions.find import FindOptions
from cq.store import database
from cq.store.read import Reader
from cq.store.vectors import VectorRows, decode_rows, encode_rows
from tests.support.index import build

pytestmark = pytest.mark.slow


class Counting:
    """An embedder that remembers what it read."""

    identity, dimensions, batch, tokens = "counting", 8, 2000, 0

    def __init__(self, identity: str = "counting") -> None:
        self.identity = identity
        self.read: list[str] = []

    def embed_query(self, text: str) -> np.ndarray:
        return np.ones(8, np.float32)

    def embed(self, passages: Sequence[Passage]) -> tuple[np.ndarray, np.ndarray]:
        self.read += [passage.name for passage in passages]
        rows = np.full((len(passages), 8), 0.5, np.float32)
        return rows, rows


FILE = """
class Store:
    def load(self, key):
        return key

    def save(self, key, value):
        return value

def main():
    return Store()
"""


@pytest.fixture
def tree(tmp_path: Path) -> tuple[Path, Path]:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "a.py").write_text(dedent(FILE))
    (root / "b.py").write_text("def other():\n    return 1\n")
    index = tmp_path / "index.db"
    build(index, root)
    return index, root


def write(root: Path, name: str, text: str) -> None:
    (root / name).write_text(text)
    os.utime(root / name, (1, 1))


def coverage(index: Path, root: Path, identity: str) -> float:
    with contextlib.closing(Reader(database.connect(index), os.fspath(root))) as reader:
        tree = reader.tree()
        assert tree is not None
        return measure_coverage(reader, tree.id, identity).missing_rate


def test_a_second_run_reads_nothing(tree: tuple[Path, Path]):
    first, second = Counting(), Counting()
    assert embed_tree(*tree, first).embedded == 5
    assert sorted(first.read) == ["Store", "Store.load", "Store.save", "main", "other"]
    assert embed_tree(*tree, second).embedded == 0
    assert coverage(*tree, "counting") == 0


def test_a_changed_body_is_read_again_and_nothing_else(tree: tuple[Path, Path]):
    embed_tree(*tree, Counting())
    write(tree[1], "a.py", dedent(FILE).replace("return value", "return key"))
    build(*tree)
    again = Counting()
    report = embed_tree(*tree, again)
    assert again.read == ["Store.save"]
    assert (report.embedded, report.reused) == (1, 3)


def test_a_changed_signature_is_read_again_wherever_it_shows(tree: tuple[Path, Path]):
    embed_tree(*tree, Counting())
    write(tree[1], "a.py", dedent(FILE).replace("def save(self, key, value)", "def save(self, key, value, ttl=0)"))
    build(*tree)
    again = Counting()
    embed_tree(*tree, again)
    assert sorted(again.read) == ["Store", "Store.save"]


def test_a_removed_file_takes_its_vectors_along(tree: tuple[Path, Path]):
    embed_tree(*tree, Counting())
    (tree[1] / "b.py").unlink()
    build(*tree)
    with contextlib.closing(Reader(database.connect(tree[0]), os.fspath(tree[1]))) as reader:
        found = reader.tree()
        assert found is not None
        assert [path for path, _ in reader.vectors(found.id, "counting")] == ["a.py"]


def test_vectors_of_another_embedder_are_none(tree: tuple[Path, Path]):
    embed_tree(*tree, Counting())
    assert coverage(*tree, "another") == 1
    with contextlib.closing(Reader(database.connect(tree[0]), os.fspath(tree[1]))) as reader:
        found = reader.tree()
        assert found is not None
        assert find_coverage(reader.vector_states(found.id), "another").others == 5


def job(tree: tuple[Path, Path], **changes: object) -> Path:
    with contextlib.closing(Reader(database.connect(tree[0]), os.fspath(tree[1]))) as reader:
        found = reader.tree()
        assert found is not None
        made = EmbeddingJob(
            FORMAT_VERSION, os.fspath(tree[0]), os.fspath(tree[1]), found.generation, found.config, "counting"
        )
    path = tree[0].parent / JOB_NAME
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(made, **changes)))
    return path


def test_a_job_does_what_it_was_made_for(tree: tuple[Path, Path]):
    path = job(tree)
    assert run_job(os.fspath(path), Counting()).embedded == 5
    assert not path.exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"generation": 99}, {"config_hash": "other"}, {"identity": "other"}, {"format_version": 0},
        {"root": "/nowhere"}, {"index": "/nowhere/index.db"},
    ],
)  # fmt: skip
def test_a_job_for_another_state_writes_nothing(tree: tuple[Path, Path], changes: dict[str, object]):
    embedder = Counting()
    report = run_job(os.fspath(job(tree, **changes)), embedder)
    assert report.refused
    assert embedder.read == []
    assert coverage(*tree, "counting") == 1


def test_a_job_that_cannot_be_read_is_refused(tree: tuple[Path, Path]):
    path = tree[0].parent / JOB_NAME
    path.write_text("{")
    assert "cannot be read" in run_job(os.fspath(path), Counting()).refused


def test_a_queue_that_cannot_be_written_fails_no_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(embedding, "_start", refuse)
    monkeypatch.setattr("cq.indexing.vectors.INLINE", 0)
    (tmp_path / "a.py").write_text(dedent(FILE))
    with Workspace.open(tmp_path, index_dir=tmp_path / ".index") as workspace:
        answer = workspace.find(FindOptions("load a key from the store", background=True))
    assert answer.found
    assert answer.summary["mode"] == "lexical"
    assert "being made" in str(answer.summary["semantic"])
    assert "No space left" in str(answer.summary["semantic"])


def test_the_state_of_vectors(tmp_path: Path):
    (tmp_path / "a.py").write_text(dedent(FILE))
    with Workspace.open(tmp_path, index_dir=tmp_path / ".index") as workspace:
        before = workspace.status(embeddings=True).embeddings
        workspace.embed()
        after = workspace.status(embeddings=True).embeddings
        assert before is not None
        assert after is not None
        assert (before.ready, before.missing_rate) == (False, 1.0)
        assert "4 of 4 chunks have none yet" in before.reason
        assert (after.enabled, after.ready, after.missing_rate, after.reason) == (True, True, 0.0, "")
        assert after.identity
        assert workspace.find("load a key from the store").summary["mode"] in ("hybrid", "reranked")
    (tmp_path / "cq.toml").write_text('[find]\nprofile = "lexical_only"\n')
    with Workspace.open(tmp_path, index_dir=tmp_path / ".index") as workspace:
        off = workspace.status(embeddings=True).embeddings
        assert off is not None
        assert (off.enabled, off.profile) == (False, "lexical_only")
        assert workspace.find("load a key from the store").summary["mode"] == "lexical"
        assert off.missing_rate == 1.0, "those of the profile before are dropped"


def test_rows_come_back_as_they_were():
    generator = np.random.default_rng(1)
    codes = generator.integers(-127, 128, (3, 8)).astype(np.int8)
    scales = generator.random(3).astype(np.float32)
    rows = VectorRows(np.array([1, 4, 9]), np.array([7, 8, 2**63], np.uint64), codes, scales, codes[::-1], scales)
    back = decode_rows(encode_rows(rows), 8)
    assert back is not None
    for name in VectorRows.__struct_fields__:
        assert (getattr(back, name) == getattr(rows, name)).all()
    assert decode_rows(encode_rows(rows), 16) is None
    assert decode_rows(b"short", 8) is None
    assert decode_rows(encode_rows(rows)[:-1], 8) is None
