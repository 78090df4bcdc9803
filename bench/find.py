"""How fast `cq find` ranks and answers, what vectors cost, how soon a first answer comes, and whether the files that
answer a question are found: questions of bench/labels/questions.toml, by words alone and with vectors."""

from __future__ import annotations

import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from bench.corpora import fetch
from cq.embed.backend import find_backends, open_graphs, publish_graphs, read_graphs
from cq.embed.exact import ExactIndex, quantize
from cq.indexing.embedding import measure_coverage
from cq.indexing.vectors import find_semantic
from cq.model.config import FindConfig
from cq.questions.find import FindOptions, load_catalog, rank
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
                if corpus == "django":
                    vectors = _read_vectors(workspace)
            languages = {"python"} if corpus == "django" else {"typescript", "rust"}
            rows[-1]["snapshots checked"] = check_random_snapshots(tree, Path(scratch), languages, 400)
    first = _measure_first()
    categories = list(dict.fromkeys(category for _, category in scores))
    results["tables"] = {
        "speed, CPU in one process": rows,
        "NDCG@10 of files": [
            {"ranked by": mode} | {c: statistics.mean(scores[mode, c]) for c in categories} for mode in _MODES
        ],
        "one comparison with vectors of Django, and with half a million like them": _measure_backends(*vectors),
        "a repository never seen (django)": [first],
        "snapshots of random definitions that hold what they must, nothing else": [
            {row["corpus"]: row.pop("snapshots checked") for row in rows}
        ],
    }
    django = rows[0]
    results["goals"] = [
        {
            "goal": "ranking without the reranker, 50,000 chunks, warm: ≤ 30 ms",
            "measured": django["rank ms"],
            "met": django["rank ms"] <= 30,
        },
        {"goal": "… and with it: ≤ 200 ms", "measured": django["rerank ms"], "met": django["rerank ms"] <= 200},
        {"goal": "embedding ≥ 2,000 chunks/s", "measured": django["chunks/s"], "met": django["chunks/s"] >= 2000},
        {"goal": "a first answer in under 3 s", "measured": first["wall s"], "met": first["wall s"] < 3},
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
    with workspace.index.reading() as (reader, tree):
        semantic = find_semantic(workspace.index, reader, tree, background=False)
        catalog = load_catalog(reader, tree, semantic)
        ranked, _ = rank(reader, catalog, options.settle(FindConfig()), FindConfig(), semantic)
    return list(dict.fromkeys(catalog.locate(row.chunk)[0] for row in ranked))


def _measure(workspace: Workspace, texts: Sequence[str]) -> dict[str, Any]:
    """Medians over questions, each asked before: what a daemon costs."""
    workspace.index.policy = msgspec.structs.replace(workspace.index.policy, max_stale=1e6)
    for text in texts:
        workspace.find(FindOptions(text))
    with workspace.index.reading() as (reader, tree):
        semantic = find_semantic(workspace.index, reader, tree, background=False)
        catalog = load_catalog(reader, tree, semantic)
        settled = [FindOptions(text).settle(FindConfig()) for text in texts]
        fast = msgspec.structs.replace(semantic, reranker=None)
        ranking = [_cost(lambda o=o: rank(reader, catalog, o, FindConfig(), fast)) for o in settled]
        reranking = [_cost(lambda o=o: rank(reader, catalog, o, FindConfig(), semantic)) for o in settled]
        assert semantic.embedder is not None
        coverage = measure_coverage(reader, tree.id, semantic.embedder.identity)
        blobs = [blob for _, blob in reader.vectors(tree.id, semantic.embedder.identity)]
        whole = sum(map(len, blobs))
        assert all(decode_rows(blob, semantic.embedder.dimensions) is not None for blob in blobs)
    answering = [_cost(lambda text=text: workspace.find(FindOptions(text))) for text in texts]
    return {
        "chunks": len(catalog),
        "rank ms": statistics.median(ranking) * 1000,
        "rerank ms": statistics.median(reranking) * 1000,
        "answer ms": statistics.median(answering) * 1000,
        "bytes/chunk": whole / max(coverage.total, 1),
    }


def _measure_first() -> dict[str, Any]:
    """A process of its own, as a user starts it, without the one that goes on to make the index."""
    code = (
        "import sys, cq.indexing.embedding as e; e.start_index = lambda *_: ''\n"
        "from cq.surfaces.cli import main\n"
        "sys.exit(main(['find', 'how are passwords hashed', '--format', 'json']))"
    )
    with tempfile.TemporaryDirectory(prefix="cq-bench-") as scratch:
        before, started = _cpu(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", code], cwd=fetch("django"), env=os.environ | {"XDG_CACHE_HOME": scratch},
            capture_output=True, check=True,
        )  # fmt: skip
        wall = time.perf_counter() - started
    answer = msgspec.json.decode(done.stdout)
    return {
        "wall s": wall, "CPU s": _cpu(resource.RUSAGE_CHILDREN) - before, "results": len(answer["results"]),
        "best": answer["results"][0]["qualified_name"], "mode": answer["summary"]["mode"],
    }  # fmt: skip


def _read_vectors(workspace: Workspace) -> tuple[NDArray[np.int8], NDArray[np.float32], list[NDArray[np.float32]]]:
    """Rows of bodies with their scales, and the questions."""
    with workspace.index.reading() as (reader, tree):
        embedder = find_semantic(workspace.index, reader, tree, background=False).embedder
        assert embedder is not None
        found = [decode_rows(blob, embedder.dimensions) for _, blob in reader.vectors(tree.id, embedder.identity)]
        rows = [row for row in found if row is not None]
    asked = [embedder.embed_query(q["text"]) for q in tomllib.loads(_QUESTIONS.read_text())["question"]]
    return np.concatenate([row.body for row in rows]), np.concatenate([row.body_scales for row in rows]), asked


def _measure_backends(
    codes: NDArray[np.int8], scales: NDArray[np.float32], asked: list[NDArray[np.float32]]
) -> list[dict[str, Any]]:
    """Every backend that is installed; the graphs of half a million would take ten minutes and are left out."""
    truth = [np.argsort(-((codes.astype(np.float32) * scales[:, None]) @ query), kind="stable")[:10] for query in asked]
    exact, keys = ExactIndex(codes, scales), np.arange(len(codes), dtype=np.uint64)
    rows: list[dict[str, Any]] = []

    def add(name: str, count: int, index: Any, **more: Any) -> None:
        index.search(asked[0], 100, None)
        before = _cpu()
        found = [index.search(query, 100, None)[0] for query in asked]
        spent = (_cpu() - before) / len(asked)
        rows.append({"backend": name, "vectors": count, "search ms": spent * 1000, **more})
        if count == len(codes):
            right = [np.isin(want, got[:10]).mean() for want, got in zip(truth, found, strict=True)]
            rows[-1]["recall@10"] = float(np.mean(right))

    add("exact", len(codes), exact)
    for name, is_there in find_backends().items():
        if name == "exact" or not is_there:
            continue
        with tempfile.TemporaryDirectory(prefix="cq-bench-") as scratch:
            before = _cpu()
            publish_graphs(Path(scratch), 1, name, "bench", 1, keys, {"body": codes})
            built = _cpu() - before
            graphs = read_graphs(Path(scratch), 1, name, "bench")
            assert graphs is not None
            opened = open_graphs(Path(scratch), graphs, keys, {"body": exact})
            assert opened is not None
            more = {"made in s": built, "more bytes/chunk": 2 * graphs.bytes / len(codes)}
            add(name, len(codes), opened[0], **more)
    generator, many = np.random.default_rng(1), 500_000
    wide = np.zeros((many, codes.shape[1]), np.int8)
    sizes = np.zeros(many, np.float32)
    for start in range(0, many, 20_000):
        pairs = generator.integers(0, len(codes), (2, 20_000))
        mixed = sum(part * codes[at] * scales[at, None] for part, at in zip((0.7, 0.3), pairs, strict=True))
        wide[start : start + 20_000], sizes[start : start + 20_000] = quantize(np.asarray(mixed, np.float32))
    add("exact", many, ExactIndex(wide, sizes))
    return rows


def _cost(ask: Callable[[], object]) -> float:
    before = _cpu()
    ask()
    return _cpu() - before


def _cpu(who: int = resource.RUSAGE_SELF) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    os.nice(10)
    found: dict[str, Any] = {}
    run(found)
    print(found)
