"""How fast text becomes facts: beside the bare parse of the same files, in the same run.

Times are processor time of one core with the garbage collector off, the best of three rounds; in a round every
file is parsed, then extracted, then extracted with every chunk's embedding text. Reading files is not in them.
"""

from __future__ import annotations

import gc
import multiprocessing
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from bench.corpora import fetch
from cq.languages.facts import embedding_text, extract_facts
from cq.languages.registry import get_language
from cq.model.facts import FileFacts
from cq.model.source import Skip
from cq.source.read import decode

# name -> the corpora it is measured on, and the endings of the files that count
CORPORA = {
    "python": (("django",), (".py",)),
    "typescript": (("rxjs", "zod"), (".ts", ".tsx")),
    "rust": (("ruff",), (".rs",)),
}
GOAL = 2.5
ROUNDS = 3

Document = tuple[bytes, str]  # text, language


def run(results: dict[str, Any]) -> None:
    speed: list[dict[str, Any]] = []
    pools: list[dict[str, Any]] = []
    counts: list[dict[str, Any]] = []
    goals: list[dict[str, Any]] = []
    for name, (corpora, endings) in CORPORA.items():
        documents = [document for corpus in corpora for document in read_documents(fetch(corpus), endings)]
        lines = sum(text.count(b"\n") for text, _ in documents)
        parse, extract, embed = _measure(documents, (_parse, _extract, _embed))
        alone, paired = _measure_processes(documents)
        corpus = "+".join(corpora)
        speed.append(
            {
                "corpus": corpus, "files": len(documents), "lines": lines,
                "bare parse, lines/s": round(lines / parse), "all facts, lines/s": round(lines / extract),
                "ratio": extract / parse, "and embedding texts, lines/s": round(lines / embed),
                "ratio with texts": embed / parse,
            }
        )  # fmt: skip
        pools.append(
            {
                "corpus": corpus, "1 process, lines/s": round(lines / alone),
                "2 processes, lines/s": round(lines / paired), "speed-up": alone / paired,
            }
        )  # fmt: skip
        found = count(extract_facts(*document) for document in documents)
        counts.append({"corpus": corpus, **found})
        goals.append(
            {
                "goal": f"{name}: all facts and chunks in at most {GOAL} times the bare parse",
                "measured": round(extract / parse, 2),
                "met": extract / parse <= GOAL,
            }
        )
        share = found["kind group other"] / max(found["symbols"], 1)
        goals.append(
            {"goal": f"{name}: fewer than 2 % of kinds are other", "measured": f"{share:.2%}", "met": share < 0.02}
        )
    results["tables"] = {
        f"One core: processor time, best of {ROUNDS}, garbage collector off, files already read": speed,
        "Wall time of a pool of processes over the same files; the workers hand back counts, not facts": pools,
        "What was found": counts,
    }
    results["goals"] = goals


def read_documents(tree: Path, endings: tuple[str, ...]) -> list[Document]:
    """The files of a tree that are source, by path; segments play no part in these languages."""
    found: list[Document] = []
    for path in sorted(tree.rglob("*")):
        if path.suffix in endings and path.is_file():
            source = decode(path.read_bytes(), path.relative_to(tree).as_posix())
            if not isinstance(source, Skip):
                found.append((source.text, source.language))
    return found


def count(all_facts: Iterable[FileFacts]) -> dict[str, int]:
    totals: Counter[str] = Counter()
    for facts in all_facts:
        totals.update(
            {
                "symbols": len(facts.symbols), "calls": len(facts.calls), "imports": len(facts.imports),
                "exports": len(facts.exports), "references": len(facts.references), "flows": len(facts.flows),
                "chunks": len(facts.chunks), "problems": len(facts.problems),
                "kind group other": sum(symbol.kind_group == "other" for symbol in facts.symbols),
            }
        )  # fmt: skip
    return dict(totals)


def _parse(document: Document) -> None:
    text, name = document
    language = get_language(name)
    assert language is not None
    language.parse(text)


def _extract(document: Document) -> None:
    extract_facts(*document)


def _embed(document: Document) -> None:
    facts = extract_facts(*document)
    for index in range(1, len(facts.chunks)):
        embedding_text(document[0], facts, index)


def _measure(documents: list[Document], steps: tuple[Callable[[Document], None], ...]) -> list[float]:
    for document in {document[1]: document for document in documents}.values():
        _embed(document)  # grammars and queries are loaded once, before the clock runs
    best = [float("inf")] * len(steps)
    gc.disable()
    try:
        for _ in range(ROUNDS):
            for number, step in enumerate(steps):
                gc.collect()
                started = time.process_time()
                for document in documents:
                    step(document)
                best[number] = min(best[number], time.process_time() - started)
    finally:
        gc.enable()
    return best


def _measure_processes(documents: list[Document]) -> tuple[float, float]:
    """Wall time of one process and of two; the pool is started before the clock, and inherits the texts."""
    global _inherited
    _inherited = documents
    walls: list[float] = []
    for workers in (1, 2):
        with multiprocessing.get_context("fork").Pool(workers) as pool:
            pool.map(_count_one, range(workers), chunksize=1)
            started = time.perf_counter()
            for _ in pool.imap_unordered(_count_one, range(len(documents)), chunksize=16):
                pass
            walls.append(time.perf_counter() - started)
    return walls[0], walls[1]


_inherited: list[Document] = []


def _count_one(number: int) -> int:
    return len(extract_facts(*_inherited[number]).chunks)
