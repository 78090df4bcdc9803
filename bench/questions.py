"""Whether the files that answer a question are found: NDCG@10 on a public annotated set (bench/labels/public) and on
our own (bench/labels/questions.toml, chosen-on.toml, held-out.toml), by plain BM25, by BM25 of fields, by `cq find`
without models and with.

`CQ_BENCH_HALF=tuning` leaves the reported half alone: ranking is tuned without looking at it.
"""

from __future__ import annotations

import hashlib
import math
import os
import statistics
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.corpora import fetch
from cq.indexing.vectors import find_semantic
from cq.model.config import FindConfig
from cq.questions.find import FindOptions, load_catalog, rank
from cq.questions.find.semantic import read_passages
from cq.workspace import Workspace
from training.lexical import Fielded

_LABELS = Path(__file__).with_name("labels")
_DEPTH = 10
Question = dict[str, Any]


def run(results: dict[str, Any]) -> None:
    wanted = os.environ.get("CQ_BENCH_HALF")
    files: dict[tuple[str, str, str], list[float]] = {}
    chunks: dict[tuple[str, str, str], list[float]] = {}
    rankers: dict[str, None] = {}
    for group, corpus, part, questions in _sets():
        if wanted and group != wanted:
            continue
        for question, ranker, found in _ask(fetch(corpus) / part, questions):
            rankers[ranker] = None
            right = [*question["files"], *question.get("secondary", ())]
            for row in (corpus, question["category"], "all"):
                files.setdefault((group, row, ranker), []).append(ndcg(list(dict.fromkeys(found)), right))
                chunks.setdefault((group, row, ranker), []).append(ndcg(found, right))
    groups = list(dict.fromkeys(group for group, _, _ in files))
    results["tables"] = {
        f"NDCG@10 of {what}, {group}": [
            {"questions of": row, "count": len(scores[group, row, next(iter(rankers))])}
            | {ranker: statistics.mean(scores[group, row, ranker]) for ranker in rankers}
            for row in dict.fromkeys(row for g, row, _ in scores if g == group)
        ]
        for group in groups
        for what, scores in (("files", files), ("results", chunks))
    }
    results["goals"] = [
        {"goal": f"NDCG@10 of files, {group}: ≥ .85", "measured": mean, "met": mean >= 0.85}
        for group in groups
        if group not in ("tuning", "chosen-on")
        for mean in [statistics.mean(files[group, "all", "auto"])]
    ]


def ndcg(found: Sequence[str], right: Sequence[str]) -> float:
    """Every right file is worth the same, where it first stands; the best order has them all in front."""
    places = [found.index(path) for path in right if path in found[:_DEPTH]]
    return sum(1 / math.log2(at + 2) for at in places) / sum(1 / math.log2(at + 2) for at in range(min(len(right), 10)))


def find_half(repository: str) -> str:
    """Fixed before any result was seen."""
    return "tuning" if int(hashlib.sha256(repository.encode()).hexdigest(), 16) % 2 else "reported"


def _sets() -> Iterator[tuple[str, str, str, list[Question]]]:
    """(half, `own`, `chosen-on` or `held-out`, corpus, the part of its tree that is indexed, questions)."""
    for path in sorted((_LABELS / "public").glob("*.toml")):
        page = tomllib.loads(path.read_text())
        yield find_half(path.stem), path.stem, page.get("part", ""), page["questions"]
    for group, name in (("own", "questions.toml"), ("chosen-on", "chosen-on.toml"), ("held-out", "held-out.toml")):
        page = tomllib.loads((_LABELS / name).read_text())
        for corpus in dict.fromkeys(question["corpus"] for question in page["question"]):
            own = [question for question in page["question"] if question["corpus"] == corpus]
            yield group, corpus, page.get("parts", {}).get(corpus, ""), own


def _ask(folder: Path, questions: Sequence[Question]) -> Iterator[tuple[Question, str, list[str]]]:
    """(question, ranker, path of each result, best first)."""
    with (
        tempfile.TemporaryDirectory(prefix="cq-bench-") as scratch,
        Workspace.open(folder, index_dir=Path(scratch)) as workspace,
    ):
        workspace.refresh(wait=True)
        workspace.embed()
        with workspace.index.reading() as (reader, tree):
            semantic = find_semantic(workspace.index, reader, tree, background=False)
            catalog = load_catalog(reader, tree, semantic)
            passages = read_passages(reader, catalog, np.flatnonzero(catalog.allow((), (), ())).tolist())
            peers = {"BM25": Fielded(passages, fields=False), "BM25F": Fielded(passages)}
            for question in questions:
                for name, peer in peers.items():
                    order = np.argsort(-peer.score(question["text"]), kind="stable")[:200]
                    yield question, name, [passages[number].path for number in order]
                for name, mode in (("words", "lexical"), ("auto", "auto")):
                    options = FindOptions(question["text"], mode=mode, threshold=0.0, limit=0, budget=0)
                    ranked, _ = rank(reader, catalog, options.settle(FindConfig()), FindConfig(), semantic)
                    yield question, name, [catalog.locate(row.chunk)[0] for row in ranked]
