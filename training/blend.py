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
from cq.embed.late import LateInteraction
from cq.embed.rerank import CrossEncoder
from cq.embed.static import Fields, StaticEmbedder
from cq.embed.traits import find_traits
from cq.embed.words import Vocabulary
from cq.questions.find.semantic import READ, RERANKED
from training.lexical import Fielded
from training.sets import OTHER, Set, load_sets

POOL = 200  # of the best by words, by bodies and by heads
# Of each question the scores of its candidates, what they are, and which of them are right.
Lists = list[tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]]


def load_vocabulary(folder: Path) -> Vocabulary:
    return Vocabulary((folder / "vocabulary.txt").read_text(encoding="utf-8").splitlines())


def load_embedder(folder: Path) -> StaticEmbedder:
    fields = Fields(**json.loads((folder / "trained.json").read_text())["fields"])
    return StaticEmbedder("", fields, load_vocabulary(folder), folder)


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


def fit_order(lists: Lists) -> tuple[list[float], list[float]]:
    """Weights of stretched scores and of traits, by the likelihood of the right one of its list; Newton's steps."""
    known = [(np.column_stack([stretch(x), traits]), y) for x, traits, y in lists if y.any()]
    scores = lists[0][0].shape[1]
    weights = np.where(np.arange(known[0][0].shape[1]) < scores, 1.0, 0.0)
    for _ in range(30):
        slope, bend = -1e-3 * weights, -1e-3 * np.eye(len(weights))
        for x, y in known:
            chance = np.exp(x @ weights - (x @ weights).max())
            chance /= chance.sum()
            right = chance * y / (chance * y).sum()
            mean = chance @ x
            slope += right @ x - mean
            bend -= (x * chance[:, None]).T @ x - np.outer(mean, mean)
        weights = weights - np.linalg.solve(bend, slope)
    found = [round(float(w), 4) for w in weights]
    return found[:scores], found[scores:]


def fit_chance(lists: Lists, order: list[float], traits: list[float]) -> tuple[list[float], float, float]:
    """(weights of the best candidate's own scores, slope of the order, bias) of a logistic regression."""
    inputs, labels = [], []
    unfitted = Blend(tuple(order), (), 0.0, 0.0, tuple(traits))
    for x, are, y in lists:
        joined = unfitted.join(x, are)
        own = np.broadcast_to(x[np.argmax(joined)], x.shape)
        inputs.append(np.column_stack([own, joined, np.ones(len(x))]))
        labels.append(y)
    x, y = np.concatenate(inputs), np.concatenate(labels).astype(float)
    weights = np.zeros(x.shape[1])
    for _ in range(40):
        chance = 1 / (1 + np.exp(-x @ weights))
        bend = (x * (chance * (1 - chance))[:, None]).T @ x + 1e-2 * np.eye(len(weights))
        weights += np.linalg.solve(bend, x.T @ (y - chance) - 1e-2 * weights)
    *own, slope, bias = (round(float(w), 4) for w in weights)
    return own, slope, bias


def tell(lists: Lists, blend: Blend) -> None:
    """How often what it says is right."""
    chance = np.concatenate([blend.score(x, None, traits) for x, traits, _ in lists])
    right = np.concatenate([y for _, _, y in lists])
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        here = right[(chance >= low) & (chance < low + 0.2)]
        print(f"said {low:.1f}–{low + 0.2:.1f}: {len(here)} candidates, right {here.sum() / max(len(here), 1):.3f}")


def mrr(ranked: list[NDArray[np.bool_]]) -> float:
    ranks = [np.flatnonzero(right[:10]) for right in ranked]
    return float(np.mean([1 / (found[0] + 1) if len(found) else 0 for found in ranks]))


# A question, the numbers of its best candidates in their order, their scores, what they are, and which are right.
Asked = tuple[str, NDArray[np.int64], NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]


def take_best(asked: Asked, blend: Blend, count: int) -> Asked:
    text, numbers, scores, traits, right = asked
    best = np.argsort(-blend.join(scores, traits), kind="stable")[:count]
    return text, numbers[best], scores[best], traits[best], right[best]


def _score_more(job: tuple[Path, type[CrossEncoder | LateInteraction], Set, list[Asked]]) -> list[Asked]:
    """With one more score of each candidate, and what it is."""
    folder, kind, found, questions = job
    vocabulary = load_vocabulary(folder)
    verbs = frozenset((folder / "verbs.txt").read_text(encoding="utf-8").split())
    model = CrossEncoder("", vocabulary, folder) if kind is CrossEncoder else LateInteraction(vocabulary, folder)
    scored: list[Asked] = []
    for text, best, x, _, right in questions:
        read = [found.passages[n] for n in best]
        traits = find_traits(text, read, verbs)
        scored.append((text, best, np.column_stack([x, model.score(text, read)]), traits, right))
    return scored


def score_more(
    folder: Path, kind: type[CrossEncoder | LateInteraction], asked: list[tuple[Set, list[Asked]]]
) -> list[tuple[Set, list[Asked]]]:
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        scored = pool.map(_score_more, [(folder, kind, found, questions) for found, questions in asked])
        return [(found, rows) for (found, _), rows in zip(asked, scored, strict=True)]


def main(folder: Path, sets: Path, reported: set[str], count: int) -> None:
    embedder = load_embedder(folder)
    # By documentation alone: what else was said about code is as often about its neighbours, and a chance that is
    # fitted on it is low for everything.
    tuning = [found for found in load_sets(sets) if found.name not in reported and not found.name.endswith(OTHER)]
    asked: list[tuple[Set, list[Asked]]] = []
    for found, other in zip(tuning, [*tuning[1:], tuning[0]], strict=True):
        # A third of the questions is about something else: nothing is right, and the best of it must not look so.
        own = {question.text: question.targets for question in found.queries[:count]}
        texts = [*own, *(question.text for question in other.queries[: count // 2] if question.text not in own)]
        rows: list[Asked] = [
            (text, pool, scores, np.zeros((len(pool), 0)), np.isin(pool, own.get(text, ())))
            for text, pool, scores in pools(found, embedder, texts)
        ]
        asked.append((found, rows))
    blend, joined = {}, Blend((1.0, 1.0, 1.0), (), 0.0, 0.0)
    for name, more, most in (
        ("first", None, 0),
        ("late", LateInteraction, READ),
        ("final", CrossEncoder, RERANKED),
    ):
        if more is not None:
            best = [(found, [take_best(row, joined, most) for row in rows]) for found, rows in asked]
            asked = score_more(folder, more, best)
        lists: Lists = [row[2:] for _, rows in asked for row in rows]
        order, traits = fit_order(lists)
        own, slope, bias = fit_chance(lists, order, traits)
        blend[name] = {"order": order, "own": own, "slope": slope, "bias": bias, "traits": traits}
        joined = Blend(tuple(order), tuple(own), slope, bias, tuple(traits))
        ranked = [y[np.argsort(-joined.score(x, None, are), kind="stable")] for x, are, y in lists if y.any()]
        print(name, f"{mrr(ranked):.4f} of {len(ranked)} questions", blend[name])
        tell(lists, joined)
        print("without words")
        tell(lists, joined.without_words())
    (folder / "blend.json").write_text(json.dumps(blend))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), set(sys.argv[3].split(",")), int(sys.argv[4]))
