"""Trains the token table, a teacher and the reranker from pairs.tsv.xz, and writes their weights. A GPU takes minutes,
a CPU hours (`--share` and the counts of steps make it small). Seeds and steps are fixed; nothing but our own pairs
goes in."""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cq.embed.words import Vocabulary, split_words
from training.lexical import STOP, Fielded, stem
from training.sets import Entry, Set, load_entries, load_sets
from training.vary import vary

SEED = 20261116
DIMS = 256
LIMITS = {"path": 16, "name": 24, "signature": 64, "body": 224}
FIELDS = tuple(LIMITS)
# What the reranker reads: the question, then each token of a passage once.
ASKED, HEAD_LIMITS, READ = 32, {"path": 10, "name": 16, "signature": 40}, 96
# Most steps read less, since most questions and passages are short, and are the quicker; the last eighth reads all.
NARROW, WIDE_FROM = (24, 64), 7 / 8
CANDIDATES, POOL = 40, 200
# How often a question of a style is taken, in parts of every time.
STYLES = {"doc": 1.0, "more": 0.4, "page": 0.8, "change": 0.5, "test": 0.5, "comment": 0.4, "error": 0.5, "module": 0.8}
VARIED = 0.1  # of the questions are put otherwise
BESIDE = 2  # to so many questions of a batch one more passage of their package
STARTED = time.time()


def say(*words: object) -> None:
    print(f"{time.time() - STARTED:6.1f}s", *words, flush=True)


# -- data ------------------------------------------------------------------------------------------------------------

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


def _encode_passages(low: int, high: int) -> tuple[np.ndarray, ...]:
    """(tokens of the fields side by side, what the reranker reads, in which fields); 0 is nothing, token n is n + 1."""
    encode, passages = _SHARED["vocabulary"].encode, _SHARED["passages"][low:high]
    whole = np.zeros((len(passages), sum(LIMITS.values())), np.int16)
    read, places = np.zeros((len(passages), READ), np.int16), np.zeros((len(passages), READ), np.int8)
    for number, passage in enumerate(passages):
        found: dict[int, int] = {}
        at = 0
        for place, (field, limit) in enumerate(LIMITS.items(), 1):
            tokens = [token + 1 for token in encode(getattr(passage, field), limit)]
            whole[number, at : at + len(tokens)] = tokens
            at += limit
            for token in tokens[: HEAD_LIMITS.get(field, limit)]:
                if len(found) < READ:
                    found.setdefault(token, place)
        read[number, : len(found)] = list(found)
        places[number, : len(found)] = list(found.values())
    return whole, read, places


def _encode_questions(low: int, high: int) -> np.ndarray:
    """Of each question, as it is and put otherwise, its tokens behind the place of the answer."""
    encode = _SHARED["vocabulary"].encode
    table = np.zeros((2, high - low, ASKED), np.int16)
    for number, (text, name) in enumerate(_SHARED["questions"][low:high]):
        for form in (0, 1) if name else (0,):
            tokens = encode(vary(text, name) if form else text, ASKED - 1)
            table[form, number, 1 : len(tokens) + 1] = np.array(tokens, np.int16) + 1
    return table


class Passages:
    """Passages as padded token numbers."""

    def __init__(self, passages: Sequence[Any], vocabulary: Vocabulary):
        _SHARED.update(passages=passages, vocabulary=vocabulary)
        parts = spread(_encode_passages, len(passages), 4000)
        self.whole, self.read, self.places = (
            torch.from_numpy(np.concatenate(column)) for column in zip(*parts, strict=True)
        )
        self.fields = torch.cat([torch.full((limit,), n) for n, limit in enumerate(LIMITS.values())])

    def to(self, device: str) -> Passages:
        self.whole, self.read, self.places = self.whole.to(device), self.read.to(device), self.places.to(device)
        self.fields, self.rarity = self.fields.to(device), rarities(self.whole)
        return self


def encode_questions(questions: list[tuple[str, str]], vocabulary: Vocabulary) -> Tensor:
    """Text and name of what is asked about ("": not to be put otherwise) -> [form, question, token]."""
    _SHARED.update(questions=questions, vocabulary=vocabulary)
    return torch.from_numpy(np.concatenate(spread(_encode_questions, len(questions), 4000), 1))


class Data:
    """What is trained on: passages, and questions with the number of the passage each is about."""

    def __init__(self, entries: list[Entry], vocabulary: Vocabulary):
        self.packages = [entry.package for entry in entries]
        self.languages = [entry.language for entry in entries]
        self.passages = Passages(entries, vocabulary)
        asked = [(n, style, text) for n, entry in enumerate(entries) for style, text in entry.questions]
        self.asked = encode_questions([(text, entries[n].name) for n, _, text in asked], vocabulary)
        self.about = torch.tensor([n for n, _, _ in asked])
        texts: dict[str, int] = {}
        self.text_ids = torch.tensor([texts.setdefault(text.lower(), len(texts)) for _, _, text in asked])
        self.chances = torch.tensor([STYLES[style] for _, style, _ in asked])
        # Passages of a package lie together: where it begins and how many there are, of each passage.
        first = {package: n for n, package in reversed(list(enumerate(self.packages)))}
        sizes = Counter(self.packages)
        self.spans = torch.tensor([(first[package], sizes[package]) for package in self.packages])
        self.device = "cpu"

    def to(self, device: str) -> Data:
        self.device = device
        self.passages.to(device)
        for name in ("asked", "about", "text_ids", "chances", "spans"):
            setattr(self, name, getattr(self, name).to(device))
        return self

    def put(self, at: Tensor, rng: torch.Generator) -> Tensor:
        """The tokens of these questions, some of them put otherwise."""
        other = torch.rand(len(at), generator=rng, device=self.device) < VARIED
        return torch.where(other[:, None], self.asked[1, at], self.asked[0, at]).int()

    def __len__(self) -> int:
        return len(self.about)


def rarities(tokens: Tensor) -> Tensor:
    """Of each token, its count in its text to the power -1/2; 0 for padding."""
    found = torch.zeros(tokens.shape, dtype=torch.float16, device=tokens.device)
    for at in range(0, len(tokens), 512):
        part = tokens[at : at + 512]
        counts = (part[:, :, None] == part[:, None, :]).sum(2)
        found[at : at + 512] = torch.where(part > 0, counts.float().rsqrt(), 0).half()
    return found


def batches(data: Data, size: int, group: int, seed: int) -> Iterator[Tensor]:
    """Groups of one package, so that a batch holds neighbours; what is left of a package joins the other leftovers."""
    rng = np.random.default_rng(seed)
    taken = rng.random(len(data)) < data.chances.cpu().numpy()
    owners: dict[str, list[int]] = defaultdict(list)
    about = data.about.tolist()
    for number in np.flatnonzero(taken).tolist():
        owners[data.packages[about[number]]].append(number)
    groups, loose = [], []
    for package in sorted(owners):
        numbers = rng.permutation(owners[package])
        full = len(numbers) // group * group
        groups += [numbers[at : at + group] for at in range(0, full, group)]
        loose.append(numbers[full:])
    rest = rng.permutation(np.concatenate(loose))
    groups += [rest[at : at + group] for at in range(0, len(rest) // group * group, group)]
    order = rng.permutation(len(groups))
    per = size // group
    for at in range(0, len(order) // per * per, per):
        yield torch.from_numpy(np.concatenate([groups[n] for n in order[at : at + per]])).to(data.device)


# -- the token table -------------------------------------------------------------------------------------------------


class Static(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.table = nn.Embedding(size + 1, DIMS, padding_idx=0)
        nn.init.normal_(self.table.weight, std=DIMS**-0.5)
        self.weights = nn.Parameter(torch.tensor([1.0, 1.6, 1.5, 0.5]).log())
        self.scale = nn.Parameter(torch.tensor(20.0).log())

    def sum(self, tokens: Tensor, weights: Tensor) -> Tensor:
        found = F.embedding_bag(tokens, self.table.weight, per_sample_weights=weights.to(self.table.weight.dtype),
                                mode="sum", padding_idx=0)  # fmt: skip
        return F.normalize(found, dim=-1)

    def query(self, asked: Tensor) -> Tensor:
        return self.sum(asked, rarities(asked))

    def head(self, passages: Passages, at: Tensor) -> Tensor:
        size = len(passages.fields) - LIMITS["body"]
        weights = passages.rarity[at, :size] * self.weights.exp()[passages.fields[:size]]
        return self.sum(passages.whole[at, :size].int(), weights)

    def whole(self, passages: Passages, at: Tensor) -> Tensor:
        return self.sum(passages.whole[at].int(), passages.rarity[at] * self.weights.exp()[passages.fields])


def train_static(data: Data, size: int, epochs: int, batch: int) -> Static:
    torch.manual_seed(SEED)
    rng = torch.Generator(device=data.device).manual_seed(SEED + 3)
    model = Static(size).to(data.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3, betas=(0.9, 0.99), fused=data.device == "cuda")
    order = [at for epoch in range(epochs) for at in batches(data, batch, 32, SEED + epoch)]
    target = torch.arange(batch, device=data.device)
    for step, at in enumerate(order):
        for group in optimizer.param_groups:
            group["lr"] = 4e-3 * min((step + 1) / 50, 0.03 + 0.97 * (1 - step / len(order)))
        about, texts = data.about[at], data.text_ids[at]
        same = (about[:, None] == about[None]) | (texts[:, None] == texts[None])
        same.fill_diagonal_(False)
        # And other passages of these packages, asked about or not: real repositories are full of them.
        start, size = data.spans[about[::BESIDE]].T
        beside = start + (torch.rand(len(start), generator=rng, device=data.device) * size).long()
        same = torch.cat([same, about[:, None] == beside[None]], 1)
        query, numbers = model.query(data.put(at, rng)), torch.cat([about, beside])
        loss = torch.zeros((), device=data.device)
        for found, share in ((model.whole(data.passages, numbers), 1.0), (model.head(data.passages, numbers), 0.5)):
            logits = (query @ found.T * model.scale.exp()).masked_fill(same, -1e4)
            back = F.cross_entropy(logits[:, :batch].T, target)
            loss = loss + share * (F.cross_entropy(logits, target) + back) / 2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % 500 == 0 or step + 1 == len(order):
            say(f"static {step + 1}/{len(order)} loss {loss.item():.3f} scale {model.scale.exp().item():.1f}")
    return model.eval()


def quantize_rows(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scales = np.maximum(np.abs(table).max(1), 1e-9) / 127
    return np.rint(table / scales[:, None]).astype(np.int8), scales.astype(np.float32)


# -- what is hard to tell apart --------------------------------------------------------------------------------------


@torch.no_grad()
def mine(data: Data, static: Static, stems: Tensor, kept: int) -> Tensor:
    """Of every question the numbers of the passages of its package that words and vectors like best, but the right
    one."""
    owners: dict[str, list[int]] = defaultdict(list)
    for number, package in enumerate(data.packages):
        owners[package].append(number)
    pools, small = [], defaultdict(list)
    for package in sorted(owners):
        numbers = owners[package]
        if len(numbers) >= 100:
            pools += [numbers[at : at + 3000] for at in range(0, len(numbers), 3000)]
        else:
            small[data.languages[numbers[0]]] += numbers
    for numbers in small.values():
        pools += [numbers[at : at + 400] for at in range(0, len(numbers), 400)]
    device, passages = data.device, data.passages
    found = torch.zeros((len(data), kept), dtype=torch.int32, device=device)
    counts = torch.tensor([2.0, 5.0, 1.0, 1.0], device=device)[passages.fields]
    size = int(stems.max()) + 1
    by_passage = torch.argsort(data.about)
    starts = torch.searchsorted(data.about[by_passage], torch.arange(len(data.packages) + 1, device=device)).tolist()
    for pool in pools:
        asking = [by_passage[starts[n] : starts[n + 1]] for n in pool]
        questions = torch.cat(asking)
        if not len(questions):
            continue
        if len(pool) <= kept + 1:  # too small to be hard: anything
            pool = [*pool, *range(kept + 2)]
        at = torch.tensor(pool, device=device)
        words = stems[passages.whole[at].int()]
        terms = torch.zeros((len(at), size), device=device)
        terms.scatter_add_(1, words, counts.expand_as(words) * (words > 0))
        lengths = (words > 0).sum(1, keepdim=True).float()
        inverse = torch.log(1 + len(at) / ((terms > 0).sum(0) + 0.5))
        terms = terms / (terms + 1.2 * (0.25 + 0.75 * lengths / lengths.mean())) * inverse
        asked = torch.zeros((len(questions), size), device=device)
        asked.scatter_(1, stems[data.asked[0, questions].int()], 1.0)
        asked[:, 0] = 0
        vectors = static.query(data.asked[0, questions].int())
        scores = _unit(asked @ terms.T) + _unit(vectors @ static.whole(passages, at).T)
        scores.masked_fill_(data.about[questions][:, None] == at[None], -1)
        found[questions] = at[scores.topk(kept, 1).indices].int()
    return found


def _unit(scores: Tensor) -> Tensor:
    low, high = scores.min(1, keepdim=True).values, scores.max(1, keepdim=True).values
    return (scores - low) / (high - low + 1e-9)


# -- the reranker ----------------------------------------------------------------------------------------------------


class Layer(nn.Module):
    def __init__(self, dims: int, heads: int, inner: int, dropout: float):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.before, self.between = nn.LayerNorm(dims), nn.LayerNorm(dims)
        self.look, self.join = nn.Linear(dims, 3 * dims), nn.Linear(dims, dims)
        self.widen, self.narrow = nn.Linear(dims, inner), nn.Linear(inner, dims)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        batch, length, dims = x.shape
        q, k, v = self.look(self.before(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=self.dropout * self.training)
        x = x + F.dropout(self.join(seen.transpose(1, 2).reshape(batch, length, dims)), self.dropout, self.training)
        inner = F.relu(self.widen(self.between(x)))
        return x + F.dropout(self.narrow(inner), self.dropout, self.training)


class Reranker(nn.Module):
    """A small cross-encoder: question and passage in one sequence, marks where their words meet, a score out."""

    def __init__(self, size: int, stems: Tensor, dims: int, layers: int, heads: int, inner: int, dropout: float):
        super().__init__()
        self.table = nn.Embedding(size + 1, DIMS, padding_idx=0)
        self.lift = nn.Identity() if dims == DIMS else nn.Linear(DIMS, dims)
        self.position = nn.Parameter(torch.randn(ASKED + READ, dims) * 0.02)
        self.place = nn.Parameter(torch.randn(5, dims) * 0.02)
        self.meeting = nn.Parameter(torch.randn(6, dims) * 0.02)
        self.layers = nn.ModuleList(Layer(dims, heads, inner, dropout) for _ in range(layers))
        self.last = nn.LayerNorm(dims)
        self.sense, self.score = nn.Linear(2 * dims, dims), nn.Linear(dims, 1)
        self.dropout = dropout
        self.register_buffer("stems", stems, persistent=False)

    def forward(self, asked: Tensor, tokens: Tensor, places: Tensor) -> Tensor:
        """Rows of question and passage, token numbers from 1; asked[:, 0] is the place of the answer."""
        words, met = self.stems[asked], self.stems[tokens]
        same = (words[:, :, None] == met[:, None, :]) & (words[:, :, None] > 0)
        best = torch.where(same, RANK.to(tokens.device)[places.long()][:, None, :], 0).amax(2)
        meeting = torch.cat([best, same.any(1).long() * 5], 1)
        place = torch.cat([torch.zeros_like(asked, dtype=torch.int64), places.long()], 1)
        sequence = torch.cat([asked, tokens], 1)
        long, wide = asked.shape[1], tokens.shape[1]
        x = self.lift(self.table(sequence)) + torch.cat([self.position[:long], self.position[ASKED : ASKED + wide]])
        # By products, not by look-ups: the gradient of a look-up in six rows adds up one by one.
        x = x + F.one_hot(place, 5).to(x.dtype) @ self.place + F.one_hot(meeting, 6).to(x.dtype) @ self.meeting
        x = F.dropout(x, self.dropout, self.training)
        if torch.is_autocast_enabled("cuda"):
            x = x.bfloat16()
        there = sequence > 0
        there[:, 0] = True
        mask = there[:, None, None, :]
        for layer in self.layers:
            x = layer(x, mask)
        x = self.last(x)
        share = (there / there.sum(1, keepdim=True)).to(x.dtype)
        mean = (x * share[:, :, None]).sum(1)
        return self.score(torch.tanh(self.sense(torch.cat([mean, x[:, 0]], 1)))).squeeze(1).float()


# How much it says that a word of the question is met in: nothing, path, name, signature, body.
RANK = torch.tensor([0, 2, 4, 3, 1])


def train_reranker(model: Reranker, data: Data, hard: Tensor, steps: int, queries: int, negatives: int, rate: float,
                   told: Tensor | None = None) -> Reranker:  # fmt: skip
    """`told`: what a teacher makes of the right passage and of the hard ones, to be learned beside the labels."""
    torch.manual_seed(SEED + 1)
    device = data.device
    rng = torch.Generator(device=device).manual_seed(SEED + 2)
    table = [model.table.weight]
    others = [p for n, p in model.named_parameters() if not n.startswith("table")]
    cuda = device == "cuda"
    optimizer = torch.optim.AdamW([{"params": others, "weight_decay": 0.01}, {"params": table, "weight_decay": 0.0}],
                                  lr=rate, betas=(0.9, 0.98), fused=cuda)  # fmt: skip
    model.train()
    torch._dynamo.config.suppress_errors = True  # what cannot be compiled runs as it is
    scored = torch.compile(model, dynamic=False) if cuda else model
    target = torch.zeros(queries, dtype=torch.int64, device=device)
    smooth, passages = 0.0, data.passages
    for step in range(steps):
        for number, group in enumerate(optimizer.param_groups):
            group["lr"] = rate * min((step + 1) / 200, max(1 - step / steps, 0.02)) * (0.5 if number else 1)
        at = torch.randint(len(data), (3 * queries,), generator=rng, device=device)
        wanted = torch.rand(len(at), generator=rng, device=device) < data.chances[at]
        at = at[wanted.float().topk(queries).indices]
        picks = torch.rand((queries, hard.shape[1]), generator=rng, device=device).topk(negatives, 1).indices
        candidates = torch.cat([data.about[at][:, None], hard[at].gather(1, picks).long()], 1).view(-1)
        long, wide = NARROW if step < WIDE_FROM * steps else (ASKED, READ)
        asked = data.put(at, rng)[:, :long].repeat_interleave(negatives + 1, 0)
        tokens, places = passages.read[candidates, :wide].int(), passages.places[candidates, :wide]
        # A word here and there is hidden: nobody asks in the very words.
        asked = asked * (torch.rand(asked.shape, generator=rng, device=device) > 0.05)
        tokens = tokens * (torch.rand(tokens.shape, generator=rng, device=device) > 0.08)
        with torch.autocast("cuda", torch.bfloat16, enabled=cuda):
            scores = scored(asked, tokens, places).view(queries, -1)
            loss = F.cross_entropy(scores, target, label_smoothing=0.03)
            if told is not None:
                chances = told[at].float().gather(1, F.pad(picks + 1, (1, 0))).softmax(1)
                loss = 0.4 * loss + 0.6 * F.kl_div(scores.log_softmax(1), chances, reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 20 == 0:
            smooth = 0.9 * smooth + 0.1 * loss.item() if smooth else loss.item()
        if step + 1 in (1, 50, 200, steps) or (step + 1) % 1000 == 0:
            say(f"reranker {step + 1}/{steps} loss {smooth:.3f}")
    return model.eval()


@torch.no_grad()
def ask_teacher(teacher: Reranker, data: Data, hard: Tensor) -> Tensor:
    """Of every question the scores of the right passage and of the hard ones, nothing hidden."""
    cuda, passages = data.device == "cuda", data.passages
    scored = torch.compile(teacher) if cuda else teacher
    told = torch.zeros((len(data), hard.shape[1] + 1), dtype=torch.float16, device=data.device)
    for at in torch.arange(len(data), device=data.device).split(256):
        candidates = torch.cat([data.about[at][:, None], hard[at].long()], 1)
        asked = data.asked[0, at].int().repeat_interleave(candidates.shape[1], 0)
        flat = candidates.view(-1)
        with torch.autocast("cuda", torch.bfloat16, enabled=cuda):
            told[at] = scored(asked, passages.read[flat].int(), passages.places[flat]).view(len(at), -1).half()
    return told


# -- measuring -------------------------------------------------------------------------------------------------------


def _score_words(low: int, high: int) -> list[np.ndarray]:
    return [
        np.stack([words.score(question.text) for question in found.queries]).astype(np.float32)
        for found in _SHARED["sets"][low:high]
        for words in [Fielded(found.passages)]
    ]


class Tokens:
    """The sets to measure on, as tokens and scores of their words: all that needs no GPU."""

    def __init__(self, sets: list[Set], vocabulary: Vocabulary):
        self.sets = sets
        _SHARED["sets"] = sets
        self.words = [scores for part in spread(_score_words, len(sets), 1) for scores in part]
        self.passages = [Passages(found.passages, vocabulary) for found in sets]
        self.asked = [encode_questions([(q.text, "") for q in found.queries], vocabulary)[0].int() for found in sets]


class Measured:
    """Sets with the features of the best candidates of every question: words, body, head, and then the reranker."""

    def __init__(self, tokens: Tokens, static: Static, device: str, reported: set[str]):
        self.reported = reported
        self.pools: dict[str, list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = {}
        self.read: dict[str, tuple[Passages, Tensor]] = {}
        self.styles = {found.name: [question.style for question in found.queries] for found in tokens.sets}
        for found, words, passages, asked in zip(tokens.sets, tokens.words, tokens.passages, tokens.asked, strict=True):
            passages, asked = passages.to(device), asked.to(device)
            with torch.no_grad():
                every = torch.arange(len(found.passages), device=device).split(2048)
                whole = torch.cat([static.whole(passages, at) for at in every])
                head = torch.cat([static.head(passages, at) for at in every])
                query = static.query(asked)
                bodies, heads = (query @ whole.T).cpu().numpy(), (query @ head.T).cpu().numpy()
            self.pools[found.name] = []
            for number, question in enumerate(found.queries):
                features = np.stack([words[number], bodies[number], heads[number]], 1).astype(np.float64)
                pool = np.unique(np.concatenate([np.argsort(-features[:, c], kind="stable")[:POOL] for c in range(3)]))
                self.pools[found.name].append((pool, features[pool], np.isin(pool, question.targets)))
            self.read[found.name] = (passages, asked)
        first = self._fit(self.pools)
        self.best: dict[str, list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = {}
        for name, pools in self.pools.items():
            order = [np.argsort(-(unit(x) @ first), kind="stable")[:CANDIDATES] for _, x, _ in pools]
            self.best[name] = [(p[o], x[o], y[o]) for (p, x, y), o in zip(pools, order, strict=True)]
        self._show("words", self.pools, np.array([1, 0, 0]))
        self._show("words and vectors", self.pools, first)

    def _fit(self, pools: dict) -> np.ndarray:
        return fit([(unit(x), y) for name in pools if name not in self.reported for _, x, y in pools[name]])

    def _show(self, label: str, pools: dict, weights: np.ndarray) -> None:
        """MRR@10 by set and by style, and how many questions have their answer among the candidates."""
        by_set, by_style = {}, defaultdict(list)
        for name, entries in pools.items():
            found = reciprocal([unit(x) @ weights for _, x, _ in entries], [y for _, _, y in entries])
            by_set[name] = np.mean(found)
            for style, value in zip(self.styles[name], found, strict=True):
                if name not in self.reported:
                    by_style[style].append(value)
        say(
            label,
            np.round(weights, 2).tolist(),
            {style: f"{np.mean(v):.4f} ({len(v)})" for style, v in by_style.items()},
        )
        say("   ", {name: round(float(value), 3) for name, value in by_set.items()})

    @torch.no_grad()
    def report(self, label: str, model: Reranker) -> None:
        """With the reranker, in a blend whose weights are fitted on the sets that are not reported."""
        rows: dict[str, list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = {}
        for name, entries in self.best.items():
            passages, asked = self.read[name]
            device = asked.device
            sizes = [len(best) for best, _, _ in entries]
            numbers = torch.from_numpy(np.concatenate([best for best, _, _ in entries])).to(device)
            owners = torch.arange(len(entries), device=device).repeat_interleave(torch.tensor(sizes, device=device))
            scores = [
                model(asked[o], passages.read[n].int(), passages.places[n]).cpu().numpy()
                for o, n in zip(owners.split(2000), numbers.split(2000), strict=True)
            ]
            parts = np.split(np.concatenate(scores), np.cumsum(sizes)[:-1])
            rows[name] = [(p, np.column_stack([x, s]), y) for (p, x, y), s in zip(entries, parts, strict=True)]
        say(label, f"recall@{CANDIDATES}", round(float(np.mean([y.any() for e in rows.values() for _, _, y in e])), 3))
        self._show(f"{label} alone", rows, np.array([0, 0, 0, 1.0]))
        self._show(f"{label} blend", rows, self._fit(rows))


def unit(features: np.ndarray) -> np.ndarray:
    low, high = features.min(0, keepdims=True), features.max(0, keepdims=True)
    return (features - low) / (high - low + 1e-9)


def reciprocal(scores: list[np.ndarray], labels: list[np.ndarray]) -> list[float]:
    found = [np.flatnonzero(y[np.argsort(-x, kind="stable")[:10]]) for x, y in zip(scores, labels, strict=True)]
    return [1 / (ranks[0] + 1) if len(ranks) else 0.0 for ranks in found]


def fit(lists: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Linear weights by the likelihood of the right one of its list."""
    lists = [(x, y) for x, y in lists if y.any()]
    longest = max(len(x) for x, _ in lists)
    inputs = torch.zeros(len(lists), longest, lists[0][0].shape[1], dtype=torch.float64)
    mask = torch.full((len(lists), longest), -1e9, dtype=torch.float64)
    right = torch.zeros(len(lists), longest, dtype=torch.bool)
    for n, (x, y) in enumerate(lists):
        inputs[n, : len(x)], mask[n, : len(x)], right[n, : len(x)] = torch.from_numpy(x), 0, torch.from_numpy(y > 0)
    weights = torch.ones(inputs.shape[2], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([weights], max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        logits = (inputs @ weights + mask).log_softmax(1)
        loss = -logits.masked_fill(~right, -1e9).logsumexp(1).mean() + 1e-4 * weights.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    return weights.detach().numpy()


# -- all of it -------------------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("sets", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--reported", default="django,tokio,rxjs,nest", help="sets that nothing is chosen on")
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--size", type=int, default=30_000)
    parser.add_argument("--vocabulary", type=Path, help="made before, of the same pairs")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--teacher", default="384,6,6", help="dimensions, layers, heads")
    parser.add_argument("--teacher-steps", type=int, default=0)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--steps", type=int, default=15_800)
    parser.add_argument("--queries", type=int, default=256)
    parser.add_argument("--negatives", type=int, default=9)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    sets = load_sets(options.sets)
    held = {q.text.lower() for found in sets for q in found.queries}
    entries = load_rows(options.pairs, options.share, held)
    styles = Counter(style for entry in entries for style, _ in entry.questions)
    say(len(entries), "passages", dict(Counter(entry.language for entry in entries)), dict(styles))
    _SHARED["entries"] = entries
    if options.vocabulary:
        pieces = options.vocabulary.read_text(encoding="utf-8").splitlines()
    else:
        pieces = train_vocabulary(entries, options.size)
    (options.out / "vocabulary.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    vocabulary = Vocabulary(pieces)
    say(len(pieces), "pieces")
    # Forks first, the GPU after them.
    data, tokens = Data(entries, vocabulary), Tokens(sets, vocabulary)
    _SHARED.clear()
    say("tokens of", len(data), "questions")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = True
    data.to(device)
    static = train_static(data, len(pieces), options.epochs, options.batch)
    save_static(static, options.out, {"seed": SEED, "passages": len(entries), "questions": dict(sorted(styles.items())),
                "pairs_sha256": hashlib.sha256(options.pairs.read_bytes()).hexdigest()})  # fmt: skip
    measured = Measured(tokens, static, device, set(options.reported.split(",")))
    ids: dict[str, int] = {}
    stems = [0] + [0 if piece in STOP else ids.setdefault(stem(piece) if piece[0] != "#" else piece, len(ids) + 1)
                   for piece in pieces]  # fmt: skip
    stem_ids = torch.tensor(stems, device=device)
    hard = mine(data, static, stem_ids, 24)
    say("mined")

    def make(dims: int, layers: int, heads: int) -> Reranker:
        torch.manual_seed(SEED)
        model = Reranker(len(pieces), stem_ids, dims, layers, heads, 4 * dims, 0.1).to(device)
        with torch.no_grad():
            model.table.weight.copy_(static.table.weight * (0.5 / static.table.weight.std()))
            model.table.weight[0] = 0
        return model

    told = None
    if options.teacher_steps:
        teacher = make(*map(int, options.teacher.split(",")))
        train_reranker(teacher, data, hard, options.teacher_steps, options.queries, options.negatives, 5e-4)
        measured.report("teacher", teacher)
        told = ask_teacher(teacher, data, hard)
        say("told")
    if options.steps:
        model = make(256, options.layers, 4)
        train_reranker(model, data, hard, options.steps, options.queries, options.negatives, 1e-3, told)
        save_reranker(model, stems[1:], options.out)
        measured.report("reranker as int8", model)


def save_static(static: Static, out: Path, facts: dict[str, Any]) -> None:
    table = static.table.weight.detach().float().cpu().numpy()[1:]
    table /= np.abs(table).max() / 0.999
    codes, scales = quantize_rows(table)
    np.save(out / "static_rows.npy", codes)
    np.save(out / "static_scales.npy", scales * 127)
    weights = static.weights.exp().detach().cpu().tolist()
    say("field weights", weights)
    fields = {field: [limit, round(weight, 4)] for (field, limit), weight in zip(LIMITS.items(), weights, strict=True)}
    (out / "trained.json").write_text(json.dumps({**facts, "fields": fields}))


def save_reranker(model: Reranker, stems: list[int], out: Path) -> None:
    """Matrices as int8 with a scale to each row (and back into the model, to be measured), the rest as they are."""
    arrays: dict[str, np.ndarray] = {}
    for name, tensor in model.state_dict().items():
        value = tensor.float().cpu().numpy()
        if value.ndim == 2 and name not in ("place", "meeting", "score.weight"):
            codes, scales = quantize_rows(value)
            tensor.copy_(torch.from_numpy(codes * scales[:, None]))
            arrays[name], arrays[f"{name}.scale"] = codes, scales
        else:
            arrays[name] = value.astype(np.float32)
    np.save(out / "reranker_rows.npy", arrays.pop("table.weight"))
    np.savez(out / "reranker.npz", stems=np.array(stems, np.uint16), **arrays)


if __name__ == "__main__":
    main()
