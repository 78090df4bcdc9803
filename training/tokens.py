"""Pairs and sets as token numbers, with the vocabulary that numbers them: one file with all that train.py reads, so
that the machine that trains needs numpy and torch alone."""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import lzma
import multiprocessing
import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cq.embed.words import Vocabulary, split_words
from training.lexical import STOP, stem
from training.sets import OTHER, STYLES, Entry, Set, load_entries, load_sets
from training.vary import vary

LIMITS = {"path": 16, "name": 24, "signature": 64, "body": 224}
ASKED = 31  # tokens of a question
VARIED = 3  # of so many questions one can be put otherwise
_SHARED: dict[str, Any] = {}  # what the processes of `spread` find in place, since they are forks


def spread(work: Callable[[int, int], Any], count: int, piece: int) -> list[Any]:
    """work(low, high) for pieces of 0..count, in order, by as many processes as there are cores."""
    spans = [(low, min(low + piece, count)) for low in range(0, count, piece)]
    with multiprocessing.get_context("fork").Pool(os.cpu_count()) as pool:
        return pool.starmap(work, spans, chunksize=1)


def load_rows(path: Path, share: float, held: set[str]) -> list[Entry]:
    """Every passage (of a `share`, those whose hash says so), without questions of a set that we measure on."""
    entries = []
    for entry in load_entries(path):
        if share >= 1 or int(hashlib.sha1(f"{entry.name}{entry.body}".encode()).hexdigest()[:6], 16) < share * 0xFFFFFF:
            entry.questions = [(style, text) for style, text in entry.questions if text.lower() not in held]
            entries.append(entry)
    return entries


def _count_words(low: int, high: int) -> Counter[str]:
    counts: Counter[str] = Counter()
    for entry in _SHARED["entries"][low:high]:
        for _, text in entry.questions:
            counts.update(split_words(text))
        for text in (entry.path, entry.name, entry.signature, entry.body):
            counts.update(text.split())
    return counts


def train_vocabulary(entries: list[Entry], size: int) -> list[str]:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    _SHARED["entries"] = entries
    counts: Counter[str] = Counter()
    for part in spread(_count_words, len(entries), 10_000):
        counts.update(part)
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordPieceTrainer(vocab_size=size, min_frequency=4, special_tokens=["[UNK]"], limit_alphabet=80,
                                        show_progress=False)  # fmt: skip
    least = max(1, sum(counts.values()) // 30_000_000)
    words = (word[:24] for word in sorted(counts) if counts[word] > least and (word.isascii() or counts[word] > 50))
    tokenizer.train_from_iterator((" ".join([word] * min(counts[word] // least, 2000)) for word in words), trainer)
    return sorted(set(tokenizer.get_vocab()) - {"[UNK]"})


def stems_of(pieces: Sequence[str]) -> list[int]:
    """Of every piece the number of its stem, from 1; 0 for a word that says nothing."""
    ids: dict[str, int] = {}
    return [
        0 if piece in STOP else ids.setdefault(stem(piece) if piece[0] != "#" else piece, len(ids) + 1)
        for piece in pieces
    ]


def _encode_passages(low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
    encode = _SHARED["vocabulary"].encode
    fields = [
        encode(getattr(passage, field), limit)
        for passage in _SHARED["passages"][low:high]
        for field, limit in LIMITS.items()
    ]
    return _flat(fields)


def _encode_texts(low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
    encode = _SHARED["vocabulary"].encode
    return _flat([encode(vary(text, name) if name else text, ASKED) for text, name in _SHARED["texts"][low:high]])


def _flat(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([t for row in rows for t in row], np.uint16), np.array([len(row) for row in rows], np.uint8)


def encode_passages(passages: Sequence[Any], vocabulary: Vocabulary) -> dict[str, np.ndarray]:
    """Tokens one behind the other, and how many of them each field of each passage has."""
    _SHARED.update(passages=passages, vocabulary=vocabulary)
    tokens, sizes = zip(*spread(_encode_passages, len(passages), 4000), strict=True)
    return {"tokens": np.concatenate(tokens), "sizes": np.concatenate(sizes).reshape(-1, len(LIMITS))}


def encode_texts(texts: list[tuple[str, str]], vocabulary: Vocabulary) -> dict[str, np.ndarray]:
    """Questions with the name of what each is about, "" where it shall stay as it is."""
    _SHARED.update(texts=texts, vocabulary=vocabulary)
    tokens, sizes = zip(*spread(_encode_texts, len(texts), 4000), strict=True)
    return {"tokens": np.concatenate(tokens), "sizes": np.concatenate(sizes)}


def number(values: Iterable[str]) -> np.ndarray:
    ids: dict[str, int] = {}
    return np.array([ids.setdefault(value, len(ids)) for value in values], np.int32)


def encode_pairs(entries: list[Entry], vocabulary: Vocabulary) -> dict[str, np.ndarray]:
    asked = [(n, style, text) for n, entry in enumerate(entries) for style, text in entry.questions]
    found = {f"passages.{key}": value for key, value in encode_passages(entries, vocabulary).items()}
    plain = encode_texts([(text, "") for _, _, text in asked], vocabulary)
    varied = [at for at, (_, _, text) in enumerate(asked) if hashlib.sha1(text.encode()).digest()[0] % VARIED == 0]
    other = encode_texts([(asked[at][2], entries[asked[at][0]].name or "x") for at in varied], vocabulary)
    found |= {f"questions.{key}": value for key, value in plain.items()}
    found |= {f"varied.{key}": value for key, value in other.items()}
    return found | {
        "varied.of": np.array(varied, np.int32),
        "packages": number(entry.package for entry in entries),
        "languages": number(entry.language for entry in entries),
        "about": np.array([n for n, _, _ in asked], np.int32),
        "styles": np.array([STYLES.index(style) for _, style, _ in asked], np.uint8),
        "texts": number(text.lower() for _, _, text in asked),
    }


def encode_sets(sets: list[Set], vocabulary: Vocabulary) -> dict[str, np.ndarray]:
    found: dict[str, np.ndarray] = {}
    for at, held in enumerate(sets):
        more = {f"passages.{key}": value for key, value in encode_passages(held.passages, vocabulary).items()}
        plain = encode_texts([(question.text, "") for question in held.queries], vocabulary)
        more |= {f"questions.{key}": value for key, value in plain.items()}
        pairs = [(n, target) for n, question in enumerate(held.queries) for target in question.targets]
        more["targets"] = np.array(pairs, np.int32)
        more["styles"] = np.array([STYLES.index(question.style) for question in held.queries], np.uint8)
        found |= {f"set{at}.{key}": value for key, value in more.items()}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("sets", type=Path)
    parser.add_argument("destination", type=Path)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--size", type=int, default=30_000, help="of the vocabulary")
    parser.add_argument("--vocabulary", type=Path, help="one that was made before")
    parser.add_argument("--reported", default="django,tokio,rxjs,nest", help="sets that nothing is chosen on")
    parser.add_argument("--questions", type=int, default=100, help="of each set, to choose steps and models on")
    parser.add_argument("--largest", type=int, default=4000, help="passages of a set")
    options = parser.parse_args()
    sets = load_sets(options.sets)
    held = {question.text.lower() for found in sets for question in found.queries}
    entries = load_rows(options.pairs, options.share, held)
    if options.vocabulary:
        pieces = options.vocabulary.read_text(encoding="utf-8").splitlines()
    else:
        pieces = train_vocabulary(entries, options.size)
    vocabulary = Vocabulary(pieces)
    reported = set(options.reported.split(","))
    chosen = [
        Set(found.name, found.passages, found.queries[: options.questions])
        for found in sets
        if found.name not in reported and len(found.passages) <= options.largest
    ]
    facts = {
        "pieces": pieces,
        "limits": LIMITS,
        "styles": STYLES,
        "sets": [found.name for found in chosen],
        "other": OTHER,
        "passages": len(entries),
        "questions": dict(sorted(Counter(style for entry in entries for style, _ in entry.questions).items())),
        "pairs_sha256": hashlib.sha256(options.pairs.read_bytes()).hexdigest(),
    }
    arrays = {
        "facts": np.frombuffer(json.dumps(facts).encode(), np.uint8),
        "stems": np.array(stems_of(pieces), np.uint16),
        **encode_pairs(entries, vocabulary),
        **encode_sets(chosen, vocabulary),
    }
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    options.destination.write_bytes(lzma.compress(buffer.getvalue(), preset=6))
    print(len(entries), "passages", dict(Counter(entry.language for entry in entries)), facts["questions"])
    print(len(pieces), "pieces", {key: value.nbytes for key, value in arrays.items() if value.nbytes > 2_000_000})
    print(options.destination.stat().st_size, "bytes", facts["sets"])


if __name__ == "__main__":
    main()
