"""How often a call in TypeScript is linked right, beside the definitions that its own compiler gives.

The truth is what the language server of TypeScript 7 says, where that is a function, method or class of the tree. `tsc`
is taken from CQ_BENCH_TSC, or found on the PATH. A sample of calls with a fixed seed.
"""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.corpora import CorpusError, fetch
from bench.graph import Document, Question, Server, position, sample
from cq.graph.unit import Unit
from cq.languages.facts import extract_facts
from cq.languages.linking import link_calls
from cq.model.edge import SymbolRef
from cq.model.facts import Symbol
from cq.model.source import Skip
from cq.source.language import detect_language
from cq.source.read import decode

CORPORA = {"zod": 6_000, "rxjs": 6_000}
LANGUAGES = ("typescript", "tsx", "javascript", "jsx", "json")
Place = tuple[str, int, str]  # path, the definition around, name: overloads are one


def run(results: dict[str, Any]) -> None:
    tsc = os.environ.get("CQ_BENCH_TSC") or shutil.which("tsc")
    if tsc is None:
        raise CorpusError("TypeScript 7 is needed: npm install typescript@7.0.2, then CQ_BENCH_TSC=…/tsc")
    tables: dict[str, Any] = {}
    goals: list[dict[str, Any]] = []
    for corpus, size in CORPORA.items():
        tree = fetch(corpus)
        documents = read_documents(tree)
        started = time.process_time()
        links = link(documents)
        seconds = time.process_time() - started
        questions = sample([d for d in documents if d.facts.calls], size)
        with Server([tsc, "--lsp", "--stdio"], tree) as server:
            answers = server.ask(questions, "typescript")
        rows, right, wrong = compare(documents, questions, links, find_truth(documents, answers))
        tables[f"{corpus}: calls by what they were resolved with"] = rows
        tables[f"{corpus}: every call of the tree"] = count(links)
        goals += [
            _goal(f"{corpus}: the right target is among the candidates in at least 90 %", f"{right:.1%}", right >= 0.9),
            _goal(f"{corpus}: at most 2 % of single links are wrong", f"{wrong:.2%}", wrong <= 0.02),
            _goal(f"{corpus}: linked within 3 s of processor time", round(seconds, 2), seconds <= 3),
        ]
    results["tables"] = tables
    results["goals"] = goals


def _goal(goal: str, measured: str | float, met: bool) -> dict[str, Any]:
    return {"goal": goal, "measured": measured, "met": met}


def read_documents(tree: Path) -> list[Document]:
    found: list[Document] = []
    for path in sorted(tree.rglob("*")):
        name = path.relative_to(tree).as_posix()
        language = detect_language(name) if path.is_file() else ""
        if language in LANGUAGES:
            source = decode(path.read_bytes(), name)
            if not isinstance(source, Skip):
                found.append(Document(name, source.text, extract_facts(source.text, language)))
    return found


def link(documents: Sequence[Document]) -> dict[str, list[SymbolRef]]:
    """What every call means, with the candidates of those on unknown receivers."""
    return link_calls([Unit(d.path, d.facts.code) for d in documents if d.facts.code is not None])


def find_truth(documents: Sequence[Document], answers: Sequence[Sequence[tuple[str, int, int]]]) -> list[set[Place]]:
    """Per answer the functions, methods and classes that the compiler names; overloads count as one."""
    by_path = {document.path: document for document in documents}
    symbols: dict[str, dict[tuple[int, int], Symbol]] = {}
    truth: list[set[Place]] = []
    for places in answers:
        found: set[Place] = set()
        for path, line, column in places:
            document = by_path.get(path)
            if document is None:
                continue
            if path not in symbols:
                symbols[path] = {position(document.text, s.name_start): s for s in document.facts.symbols}
            symbol = symbols[path].get((line, column))
            if symbol is not None and symbol.kind_group in ("function", "method", "class"):
                found.add(place_of(document, symbol))
        truth.append(found)
    return truth


def place_of(document: Document, symbol: Symbol) -> Place:
    if symbol.kind == "constructor":  # the compiler may name it for `new A()`
        symbol = document.facts.symbols[symbol.parent]
    return document.path, symbol.parent, symbol.name


def compare(
    documents: Sequence[Document],
    questions: Sequence[Question],
    links: dict[str, list[SymbolRef]],
    truth: Sequence[set[Place]],
) -> tuple[list[dict[str, Any]], float, float]:
    places: dict[tuple[str, str], Place] = {}
    for document in documents:
        if document.facts.code is not None:
            for number, name in Unit(document.path, document.facts.code).qualified_names.items():
                places[document.path, name] = place_of(document, document.facts.symbols[number])
    rows: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    total: Counter[str] = Counter()
    for question, known in zip(questions, truth, strict=True):
        if known:
            ref = links[question.document.path][question.number]
            for counter in (rows[ref.status, ref.evidence], total):
                counter.update(judge(ref, known, places))
    table = [
        {"status": status, "evidence": evidence, **_rates(counter)}
        for (status, evidence), counter in sorted(rows.items())
    ]
    table.append({"status": "all", "evidence": "", **_rates(total)})
    return table, total["right"] / total["asked"], total["wrong single"] / max(total["single"], 1)


def judge(ref: SymbolRef, known: set[Place], all_places: dict[tuple[str, str], Place]) -> dict[str, int]:
    places = [all_places[candidate.path, candidate.name] for candidate in ref.candidates if candidate.name]
    single = ref.status == "resolved"
    return {
        "asked": 1,
        "right": any(place in known for place in places),
        "first": bool(places) and places[0] in known,
        "single": single,
        "wrong single": single and not known.intersection(places),
        "candidates": len(places),
    }


def _rates(counter: Counter[str]) -> dict[str, Any]:
    asked = counter["asked"]
    return {
        "calls": asked,
        "right among candidates": f"{counter['right'] / asked:.1%}",
        "right first": f"{counter['first'] / asked:.1%}",
        "single": counter["single"],
        "wrong single": counter["wrong single"],
        "mean candidates": counter["candidates"] / asked,
    }


def count(links: dict[str, list[SymbolRef]]) -> list[dict[str, Any]]:
    found = Counter((ref.status, ref.evidence) for refs in links.values() for ref in refs)
    total = sum(found.values())
    return [
        {"status": status, "evidence": evidence, "calls": number, "share": f"{number / total:.1%}"}
        for (status, evidence), number in sorted(found.items())
    ]
