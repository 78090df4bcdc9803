"""The embedder and the index that are always there."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pytest

from cq.embed import Passage, load_embedder, load_reranker, name_models
from cq.embed.exact import ExactIndex, quantize
from cq.embed.traits import find_traits, is_type
from cq.embed.weights import FOLDER, load_late, load_manifest, load_verbs
from cq.embed.words import Vocabulary, split_words


def test_weights_are_those_of_the_manifest():
    manifest = load_manifest()
    assert {path.name for path in FOLDER.iterdir()} - {"__init__.py", "__pycache__", "manifest.toml"} == set(
        manifest.files
    )
    for name, digest in manifest.files.items():
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == digest, name
    assert sum(path.stat().st_size for path in FOLDER.iterdir() if path.is_file()) < 25_000_000


def test_identifiers_fall_apart():
    assert split_words("HTTPServer2 getURL_of(x_1)  größe") == [
        "http", "server", "2", "get", "url", "of", "x", "1", "größe",
    ]  # fmt: skip


def test_words_are_cut_by_longest_match():
    vocabulary = Vocabulary(["token", "tok", "##en", "##ize", "##r", "a"])
    assert vocabulary.encode("Tokenizer tok a", 10) == [0, 3, 4, 1, 5]
    assert vocabulary.encode("tokizing", 10) == [1]
    assert vocabulary.encode("a " * 50, 7) == [5] * 7


def test_rows_are_normalised_and_the_same_alone_or_together():
    embedder = load_embedder()
    passages = [
        Passage("app/auth.py", "validate_token", "def validate_token(token)", "return jwt.decode(token, key)"),
        Passage("app/files.py", "read_lines", "def read_lines(path)", "with open(path) as f: return f.readlines()"),
        Passage("", "", "", "+-*/"),
    ] * 70
    wholes, heads = embedder.embed(passages)
    assert wholes.shape == heads.shape == (210, embedder.dimensions)
    assert np.allclose(np.linalg.norm(wholes[:2], axis=1), 1, atol=1e-6)
    assert not wholes[2].any()
    for number in range(3):
        alone, head = embedder.embed(passages[number : number + 1])
        assert (alone[0] == wholes[number + 207]).all()
        assert (head[0] == heads[number]).all()
    query = embedder.embed_query("decode a token")
    assert wholes[0] @ query > wholes[1] @ query


@pytest.mark.parametrize("rows", [300, 20_000])
def test_search_finds_the_nearest_allowed_rows(rows: int):
    random = np.random.default_rng(7)
    vectors = random.normal(size=(rows, 64)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    index = ExactIndex(*quantize(vectors))
    query = vectors[5] + 0.4 * vectors[9]
    numbers, scores = index.search(query, 10, None)
    assert numbers[0] == 5
    assert (np.diff(scores) <= 0).all()
    assert scores[0] == pytest.approx(float(vectors[5] @ query), abs=0.01)
    allowed = np.arange(1, rows, 3)  # 5 is not one of them
    numbers, _ = index.search(query, 10, allowed)
    assert len(numbers) == 10
    assert set(numbers.tolist()) <= set(allowed.tolist())
    assert len(index.search(query, 10, np.array([3, 4]))[0]) == 2
    assert len(index.search(query, 10, np.array([], np.int64))[0]) == 0


def test_what_is_no_number_becomes_nothing():
    rows = np.array([[1.0, -2.0], [np.nan, 1.0], [np.inf, 0.0], [0.0, 0.0]], np.float32)
    codes, scales = quantize(rows)
    assert codes.tolist() == [[64, -127], [0, 0], [0, 0], [0, 0]]
    assert scales[1:].tolist() == [0, 0, 0]


def test_the_reranker_reads_question_and_passage_together():
    reranker = load_reranker()
    assert reranker is not None
    passages = [
        Passage("app/files.py", "read_lines", "def read_lines(path)", "with open(path) as f: return f.readlines()"),
        Passage("app/auth.py", "validate_token", "def validate_token(token)", "return jwt.decode(token, key)"),
        Passage("", "", "", "+-*/"),
    ]
    together = reranker.score("check that a token is valid", passages)
    assert together.argmax() == 1
    # What the others hold counts, the order in which they come does not.
    turned = reranker.score("check that a token is valid", passages[::-1])
    assert together[::-1] == pytest.approx(turned, abs=0.002)
    assert len(reranker.score("", passages)) == 3
    assert len(reranker.score("anything", [])) == 0


def test_the_late_interaction_compares_word_by_word():
    late = load_late()
    passages = [
        Passage("app/files.py", "read_lines", "def read_lines(path)", "with open(path) as f: return f.readlines()"),
        Passage("app/auth.py", "validate_token", "def validate_token(token)", "return jwt.decode(token, key)"),
        Passage("app/auth.py", "issue_token", "def issue_token(user)", "return jwt.encode(user, key)"),
        Passage("", "", "", "+-*/"),
    ]
    scores = late.score("validation of the tokens", passages)  # none of these words is there in this form
    assert scores.argsort().tolist() == [3, 0, 2, 1]
    assert scores[3] == 0
    # What the others hold counts, the order in which they come does not.
    assert late.score("validation of the tokens", passages[::-1]).tolist() == scores[::-1].tolist()
    assert late.score("validation of the tokens", passages[1:2])[0] != scores[1]
    # The words of a name that nobody asked for count against it.
    plain, longer = late.score(
        "decode the token",
        [Passage("a.py", name, f"def {name}()", "return 1") for name in ("decode_token", "decode_token_header_safely")],
    )
    assert plain > longer
    assert late.score("", passages).tolist() == [0, 0, 0, 0]
    assert len(late.score("anything", [])) == 0


def test_a_blend_is_a_chance_in_the_order_of_its_scores():
    manifest = load_manifest()
    columns = np.array([[0.9, 0.8, 0.7, 16.0, 9.0], [0.5, 0.4, 0.4, 8.0, 2.0], [0.0, 0.1, 0.0, 1.0, -4.0]])
    for blend, width in ((manifest.first, 3), (manifest.late, 4), (manifest.final, 5)):
        chances = blend.score(columns[:, :width])
        assert 1 > chances[0] > 0.5 > chances[1] > chances[2] > 0
        # The best of a bad lot is not good.
        assert blend.score(columns[:, :width] * 0.2)[0] < chances[0]
        assert len(blend.score(columns[:0, :width])) == 0


def test_what_a_passage_is():
    body = "return " + " + ".join(f"part{number}" for number in range(20))
    passages = [
        Passage("a.py", "Order.pay", "def pay(self, type)", body),
        Passage("a.py", "Order", "class Order(Base)", body),
        Passage("a.rs", "Order", "pub struct Order", body),
        Passage("a.go", "Get", "func (o *Order) Get() interface{}", body),
        Passage("a.ts", "stop", "stop()", "stop();"),
        Passage("a.py", "", "", body),
    ]
    assert [is_type(passage) for passage in passages] == [False, True, True, False, False, False]
    verbs = load_verbs()
    assert find_traits("Pays the order", passages, {"pays"})[:, 1].tolist() == [0, 1, 1, 0, 0, 0]
    assert not find_traits("An order", passages, verbs)[:, 1].any()
    assert find_traits("", passages, verbs)[:, 0].tolist() == [0, 0, 0, 0, 1, 0]
    assert find_traits("", [], verbs).shape == (0, 2)
    assert {"returns", "check", "parse"} <= verbs
    assert verbs.isdisjoint({"a", "the", "represents", "how"})
    for blend in (load_manifest().late, load_manifest().final):
        alike = np.ones((3, len(blend.order)))
        plain, slight, kind = blend.score(alike, None, np.array([[0.0, 0], [1, 0], [0, 1]]))
        assert plain > max(slight, kind)


def test_models_are_named_without_being_loaded():
    embedder, reranker = load_embedder(), load_reranker()
    assert reranker is not None
    assert name_models() == (embedder.identity, embedder.dimensions, reranker.identity)
    code = "import sys; from cq.embed import name_models; name_models(); print('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"False\n"
