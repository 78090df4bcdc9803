"""Fits how scores are joined, and what the joined score means, on the tuning sets: reads weights that train.py wrote
and writes blend.json beside them. Runs on a CPU, with the very code that will rank."""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cq.embed.blend import Blend, stretch
from cq.embed.rerank import CrossEncoder
from cq.embed.static import Fields, StaticEmbedder
from cq.embed.words import Vocabulary
from training.lexical import Fielded
from training.sets import OTHER, Set, load_sets

CANDIDATES, POOL = 40, 200
Lists = list[tuple[NDArray[np.float64], NDArray[np.bool_]]]


def load(folder: Path) -> tuple[StaticEmbedder, CrossEncoder]:
    vocabulary = Vocabulary((folder / "vocabulary.txt").read_text(encoding="utf-8").splitlines())
    fields = Fields(**json.loads((folder / "trained.json").read_text())["fields"])
    return StaticEmbedder("", fields, vocabulary, folder), CrossEncoder("", vocabulary, folder)


def pools(
    found: Set, embedder: StaticEmbedder, texts: list[str]
) -> list[tuple[str, NDArray[np.int64], NDArray[np.float64]]]:
    """Of every question the passages that words, bodies or heads put first, with those three scores."""
    words = Fielded(found.passages)
    wholes, heads = embedder.embed(found.passages)
    rows = []
    for text in texts:
        vector = embedder.embed_query(text)
        scores = np.stack([words.score(text), wholes @ vector, heads @ vector], 1)
        pool = np.unique(np.concatenate([np.argsort(-scores[:, c], kind="stable")[:POOL] for c in range(3)]))
        rows.append((text, pool, scores[pool].astype(np.float64)))
    return rows


def fit_order(lists: Lists) -> list[float]:
    """Weights of the stretched scores by the likelihood of the right one of its list; Newton's steps."""
    lists = [(stretch(x), y) for x, y in lists if y.any()]
    weights = np.ones(lists[0][0].shape[1])
    for _ in range(30):
        slope, bend = -1e-3 * weights, -1e-3 * np.eye(len(weights))
        for x, y in lists:
            chance = np.exp(x @ weights - (x @ weights).max())
            chance /= chance.sum()
            right = chance * y / (chance * y).sum()
            mean = chance @ x
            slope += right @ x - mean
            bend -= (x * chance[:, None]).T @ x - np.outer(mean, mean)
        weights = weights - np.linalg.solve(bend, slope)
    return [round(float(w), 4) for w in weights]


def fit_chance(lists: Lists, order: list[float]) -> tuple[list[float], float, float]:
    """(weights of the best candidate's own scores, slope of the order, bias) of a logistic regression."""
    inputs, labels = [], []
    for x, y in lists:
        joined = stretch(x) @ np.array(order)
        own = np.broadcast_to(x[np.argmax(joined)], x.shape)
        inputs.append(np.column_stack([own, joined, np.ones(len(x))]))
        labels.append(y)
    x, y = np.concatenate(inputs), np.concatenate(labels).astype(float)
    weights = np.zeros(x.shape[1])
    for _ in range(40):
        chance = 1 / (1 + np.exp(-x @ weights))
        bend = (x * (chance * (1 - chance))[:, None]).T @ x + 1e-2 * np.eye(len(weights))
        weights += np.linalg.solve(bend, x.T @ (y - chance) - 1e-2 * weights)
    chance = 1 / (1 + np.exp(-x @ weights))
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        here = (chance >= low) & (chance < low + 0.2)
        print(
            f"said {low:.1f}–{low + 0.2:.1f}: {here.sum()} candidates, right {y[here].mean() if here.any() else 0:.3f}"
        )
    *own, slope, bias = (round(float(w), 4) for w in weights)
    return own, slope, bias


def mrr(ranked: list[NDArray[np.bool_]]) -> float:
    ranks = [np.flatnonzero(right[:10]) for right in ranked]
    return float(np.mean([1 / (found[0] + 1) if len(found) else 0 for found in ranks]))


def _rerank(job: tuple[Path, Set, list[tuple[str, list[int], NDArray[np.float64]]]]) -> list[NDArray[np.float64]]:
    folder, found, questions = job
    _, reranker = load(folder)
    return [
        np.column_stack([x, reranker.score(text, [found.passages[n] for n in best])]) for text, best, x in questions
    ]


def main(folder: Path, sets: Path, reported: set[str], count: int) -> None:
    embedder, _ = load(folder)
    # By documentation alone: what else was said about code is as often about its neighbours, and a chance that is
    # fitted on it is low for everything.
    tuning = [found for found in load_sets(sets) if found.name not in reported and not found.name.endswith(OTHER)]
    first: Lists = []
    kept = []
    for found, other in zip(tuning, [*tuning[1:], tuning[0]], strict=True):
        # A third of the questions is about something else: nothing is right, and the best of it must not look so.
        own = {question.text: question.targets for question in found.queries[:count]}
        texts = [*own, *(question.text for question in other.queries[: count // 2] if question.text not in own)]
        for text, pool, scores in pools(found, embedder, texts):
            right = np.isin(pool, own.get(text, ()))
            first.append((scores, right))
            kept.append((found, text, pool, right))
    order = fit_order(first)
    first_chance = fit_chance(first, order)
    jobs: dict[str, tuple[Path, Set, list[tuple[str, list[int], NDArray[np.float64]]]]] = {}
    rights: list[NDArray[np.bool_]] = []
    for (found, text, pool, right), (scores, _) in zip(kept, first, strict=True):
        best = np.argsort(-(stretch(scores) @ np.array(order)), kind="stable")[:CANDIDATES]
        jobs.setdefault(found.name, (folder, found, []))[2].append((text, pool[best].tolist(), scores[best]))
        rights.append(right[best])
    with ProcessPoolExecutor(os.cpu_count()) as pool_of:
        scored = [x for rows in pool_of.map(_rerank, jobs.values()) for x in rows]
    final: Lists = list(zip(scored, rights, strict=True))
    final_order = fit_order(final)
    final_chance = fit_chance(final, final_order)
    blend = {}
    for name, weights, (own, slope, bias), lists in (
        ("first", order, first_chance, first), ("final", final_order, final_chance, final)
    ):  # fmt: skip
        blend[name] = {"order": weights, "own": own, "slope": slope, "bias": bias}
        joined = Blend(tuple(weights), tuple(own), slope, bias)
        print(
            name,
            f"{mrr([y[np.argsort(-joined.score(x), kind='stable')] for x, y in lists if y.any()]):.4f}",
            blend[name],
        )
    (folder / "blend.json").write_text(json.dumps(blend))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), set(sys.argv[3].split(",")), int(sys.argv[4]))
