"""How fast `cq find` ranks and answers, what vectors cost, how soon a first answer comes, and whether the files that
answer a question are found: questions of bench/labels/questions.toml, by words alone and with vectors."""

from __future__ import annotations

import math
import os
import resource
import statistics
import tempfile
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from bench.corpora import fetch
from cq.embed.exact import ExactIndex
from cq.features.find import FindOptions, load_catalog, rank
from cq.indexing.embedding import measure_coverage
from cq.model.config import FindConfig
from cq.store.vectors import decode_rows
from cq.workspace import Workspace
from tests.support.find import check_random_snapshots

_QUESTIONS = Path(__file__).with_name("labels") / "questions.toml"
_MODES = ("lexical", "auto")
_TIMED = 12  # questions that are timed


def run(results: dict[str, Any]) -> None:
    questions = tomllib.loads(_QUESTIONS.read_text())["question"]
    rows: list[dict[str, Any]] = []
    scores: dict[tuple[str, str], list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="cq-bench-") as scratch:
        for corpus in dict.fromkeys(question["corpus"] for question in questions):
            tree, asked = fetch(corpus), [q for q in questions if q["corpus"] == corpus]
            with Workspace.open(tree, index_dir=Path(scratch)) as workspace:
                workspace.refresh(wait=True)
                before = _cpu()
                report = workspace.embed()
                seconds = _cpu() - before
                for question in asked:
                    for mode in _MODES:
                        found = _find_files(workspace, question["text"], mode)
                        score = ndcg(found, question["files"])
                        scores.setdefault((mode, question["category"]), []).append(score)
                        scores.setdefault((mode, "all"), []).append(score)
                rows.append(
                    {"corpus": corpus, "chunks with vectors": report.embedded, "chunks/s": report.embedded / seconds}
                    | _measure(workspace, [q["text"] for q in asked][:_TIMED])
                )
            rows[-1]["snapshots checked"] = (
                check_random_snapshots(tree, Path(scratch), {"python"}, 350)
                if (corpus == "django")
                else check_random_snapshots(tree, Path(scratch), {"typescript", "rust"}, 250)
            )
    first = _measure_first()
    synthetic = _measure_synthetic(500_000)
    categories = list(dict.fromkeys(category for _, category in scores))
    results["tables"] = {
        "speed, CPU in one process": rows,
        "NDCG@10 of files": [
            {"ranked by": mode} | {c: statistics.mean(scores[mode, c]) for c in categories} for mode in _MODES
        ],
        "500,000 chunks, random vectors": [synthetic],
        "a repository never seen (django)": [first],
    }
    django = rows[0]
    results["goals"] = [
        {
            "goal": "ranking, 50,000 chunks, warm: ≤ 30 ms",
            "measured": django["rank ms"],
            "met": django["rank ms"] <= 30,
        },
        {"goal": "embedding ≥ 2,000 chunks/s", "measured": django["chunks/s"], "met": django["chunks/s"] >= 2000},
        {"goal": "a first answer in under 3 s", "measured": first["CPU s"], "met": first["CPU s"] < 3},
        {
            "goal": "NDCG@10 of files ≥ .85",
            "measured": statistics.mean(scores["auto", "all"]),
            "met": statistics.mean(scores["auto", "all"]) >= 0.85,
        },
    ]


def ndcg(found: Sequence[str], wanted: Sequence[str], depth: int = 10) -> float:
    """Every wanted file is worth the same; the best order has them all in front."""
    gains = sum(1 / math.log2(at + 2) for at, path in enumerate(found[:depth]) if path in wanted)
    return gains / sum(1 / math.log2(at + 2) for at in range(min(len(wanted), depth)))


def _find_files(workspace: Workspace, text: str, mode: str) -> list[str]:
    options = FindOptions(text, mode=mode, threshold=0.0, limit=0, budget=0, candidates=60)
    with workspace._reading() as (reader, tree):
        semantic = workspace._prepare_vectors(reader, tree, False)
        catalog = load_catalog(reader, tree, semantic.key)
        ranked, _ = rank(reader, catalog, options.settle(FindConfig()), FindConfig(), semantic)
    return list(dict.fromkeys(catalog.locate(row.chunk)[0] for row in ranked))


def _measure(workspace: Workspace, texts: Sequence[str]) -> dict[str, Any]:
    """Medians over questions, each asked before: what a daemon costs."""
    workspace._max_stale = 1e6
    for text in texts:
        workspace.find(FindOptions(text))
    with workspace._reading() as (reader, tree):
        semantic = workspace._prepare_vectors(reader, tree, False)
        catalog = load_catalog(reader, tree, semantic.key)
        settled = [FindOptions(text).settle(FindConfig()) for text in texts]
        ranking = [_cost(lambda o=o: rank(reader, catalog, o, FindConfig(), semantic)) for o in settled]
        assert semantic.embedder is not None
        coverage = measure_coverage(reader, tree.id, semantic.embedder.identity)
        blobs = [blob for _, blob in reader.vectors(tree.id, semantic.embedder.identity)]
        whole = sum(map(len, blobs))
        assert all(decode_rows(blob, semantic.embedder.dimensions) is not None for blob in blobs)
    answering = [_cost(lambda text=text: workspace.find(FindOptions(text))) for text in texts]
    return {
        "chunks": len(catalog),
        "rank ms": statistics.median(ranking) * 1000,
        "answer ms": statistics.median(answering) * 1000,
        "bytes/chunk": whole / max(coverage.total, 1),
    }


def _measure_first() -> dict[str, Any]:
    """Without the process that goes on to make the index."""
    with (
        tempfile.TemporaryDirectory(prefix="cq-bench-") as scratch,
        patch("cq.indexing.embedding.start_index", return_value=""),
        Workspace.open(fetch("django"), index_dir=Path(scratch)) as workspace,
    ):
        before = _cpu()
        answer = workspace.find(FindOptions("how are passwords hashed"), background=True)
        return {"CPU s": _cpu() - before, "results": answer.found, "best": answer.results[0].qualified_name}


def _measure_synthetic(count: int) -> dict[str, Any]:
    generator = np.random.default_rng(1)
    codes = generator.integers(-127, 128, (count, 256), np.int8)
    index = ExactIndex(codes, np.full(count, 1 / 127, np.float32))
    query = generator.standard_normal(256).astype(np.float32)
    index.search(query, 100, None)
    costs = [_cost(lambda: index.search(query, 100, None)) for _ in range(5)]
    return {"vectors": count, "search ms": statistics.median(costs) * 1000, "MB": codes.nbytes / 1e6}


def _cost(ask: Callable[[], object]) -> float:
    before = _cpu()
    ask()
    return _cpu() - before


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    os.nice(10)
    found: dict[str, Any] = {}
    run(found)
    print(found)
