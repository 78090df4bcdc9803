"""A first answer before there is an index: files that hold the words of a question, straight from the disk."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from cq.model.embedding import QUIET_KINDS, find_kind, is_data
from cq.questions.find.candidates import K1, LENGTH, PATH_WEIGHT, WEIGHTS, split_terms
from cq.questions.find.scoring import calibrate_alone
from cq.questions.find.words import stem
from cq.source.files import PathFilter
from cq.source.role import find_role
from cq.store.terms import Terms

if TYPE_CHECKING:
    from cq.model.facts import Chunk, Symbol
    from cq.questions.find import FindOptions
    from cq.snapshot.files import HeldFile

MAX_FILES = 12  # that are parsed


def find_on_disk(files: Iterable[HeldFile], options: FindOptions) -> list[tuple[HeldFile, int, int, float]]:
    """(file, document, chunk, score) of the best chunks of the files that hold most of the words; best first."""
    terms = split_terms(options.query)
    stems = {stem(term): term.encode() for term in terms}
    is_wanted = PathFilter(include=options.paths)
    counts = dict.fromkeys(stems, 0)
    hits: list[tuple[HeldFile, dict[str, float]]] = []
    total = 0
    for file in files:
        if is_data(file.path, file.language) or not is_wanted(file.path):
            continue
        if options.languages and file.language not in options.languages:
            continue
        total += 1
        text = file.text.lower()
        path = {stem(word) for word in Terms().expand(file.path.encode()).lower().split()}
        found = {
            name: count / (count + 4 * (0.5 + len(text) / 20_000)) + (1.0 if name in path else 0.0)
            for name in stems
            if (count := text.count(name.encode())) or name in path
        }
        for name in found:
            counts[name] += 1
        if found:
            hits.append((file, found))
        file.forget_text()
    worth = {name: math.log(1 + (total - count + 0.5) / (count + 0.5)) for name, count in counts.items()}
    ranked = sorted(
        hits, key=lambda hit: (-_prior(hit[0]) * sum(worth[name] * n for name, n in hit[1].items()), hit[0].path)
    )
    rows = [row for file, _ in ranked[:MAX_FILES] for row in _score_chunks(file, worth, options)]
    rows.sort(key=lambda row: (-row[3], row[0].path, row[1], row[2]))
    return rows[: options.candidates or 40]


def _score_chunks(
    file: HeldFile, worth: dict[str, float], options: FindOptions
) -> list[tuple[HeldFile, int, int, float]]:
    expand = Terms().expand
    path = _stems(expand(file.path.encode()))
    most = max(sum(worth.values()), 1e-9)
    rows: list[tuple[HeldFile, int, int, float]] = []
    for document, chunks in enumerate(file.chunks):
        symbols = file.symbols[document]
        for number, chunk in enumerate(chunks):
            symbol = symbols[chunk.symbol] if chunk.symbol >= 0 else None
            kind, group = find_kind(file.text, chunks, symbols, number), symbol.kind_group if symbol else ""
            if (kind not in options.kinds and group not in options.kinds) if options.kinds else kind in QUIET_KINDS:
                continue
            words = expand(_own_text(file.text, chunk, chunks)).lower().split()
            body = {stem(word) for word in words}
            length = 1 - LENGTH + LENGTH * min(len(words) / 80, 1)
            fields = _fields(symbol, expand)
            score = 0.0
            for name, rarity in worth.items():
                weight = sum(WEIGHTS[field] for field, found in fields.items() if name in found)
                weight += WEIGHTS["body"] / length if name in body else 0.0
                weight += PATH_WEIGHT if name in path and weight else 0.0
                score += rarity * weight / (weight + K1)
            if score:
                rows.append((file, document, number, calibrate_alone(min(score / most, 1.0)) * _prior(file)))
    return rows


def _own_text(text: bytes, chunk: Chunk, chunks: tuple[Chunk, ...]) -> bytes:
    """Without its children, which stand for themselves."""
    at, parts = chunk.start, list[bytes]()
    for child in chunk.children:
        parts.append(text[at : chunks[child].start])
        at = chunks[child].end
    return b" ".join([*parts, text[at : chunk.end]])


def _fields(symbol: Symbol | None, expand: Callable[[bytes], str]) -> dict[str, set[str]]:
    if symbol is None:
        return {}
    texts = {
        "name": symbol.name, "qualified_name": symbol.qualified_name, "signature": symbol.signature, "docs": symbol.doc,
    }  # fmt: skip
    return {field: _stems(expand(text.encode("utf-8", "replace"))) for field, text in texts.items()}


def _stems(words: str) -> set[str]:
    return {stem(word) for word in words.lower().split()}


def _prior(file: HeldFile) -> float:
    return 1.0 if find_role(file.path) == "src" else 0.8
