"""Trains the token table and the reranker from pairs.tsv.xz, and writes their weights. A GPU takes minutes, a CPU
hours (`--share` takes a part of the pairs and of the steps). Seeds are fixed; nothing but our own pairs goes in."""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cq.embed.words import Vocabulary, split_words
from training.lexical import STOP, stem

SEED = 20261116
DIMS = 256
LIMITS = {"path": 16, "name": 24, "signature": 64, "body": 224, "query": 48, "rest": 48}
FIELDS = ("path", "name", "signature", "body")
# What the reranker reads: the question, then each token of a passage once.
ASKED, HEAD_LIMITS, READ = 32, {"path": 10, "name": 16, "signature": 40}, 96
CANDIDATES = 40
STARTED = time.time()


def say(*words: object) -> None:
    print(f"{time.time() - STARTED:6.1f}s", *words, flush=True)


# -- data ------------------------------------------------------------------------------------------------------------


class Data:
    """Pairs as padded token numbers; 0 is nothing, token n stands as n + 1."""

    def __init__(self, rows: list[list[str]], vocabulary: Vocabulary, device: str):
        self.device = device
        self.packages = [row[0] for row in rows]
        self.languages = [row[1] for row in rows]
        queries = {text: number for number, text in enumerate(sorted({row[2] for row in rows}))}
        self.query_ids = torch.tensor([queries[row[2]] for row in rows], device=device)
        columns = {"query": 2, "rest": 3, "path": 4, "name": 5, "signature": 6, "body": 7}
        self.tokens: dict[str, Tensor] = {}
        for field, column in columns.items():
            limit = LIMITS[field]
            table = np.zeros((len(rows), limit), np.int32)
            for number, row in enumerate(rows):
                found = vocabulary.encode(row[column], limit)
                table[number, : len(found)] = found
                table[number, : len(found)] += 1
            self.tokens[field] = torch.from_numpy(table).to(device)
        self.whole = torch.cat([self.tokens[field] for field in FIELDS], 1)
        self.head = self.whole[:, : sum(LIMITS[field] for field in FIELDS[:3])]
        self.fields = torch.cat([torch.full((LIMITS[field],), n) for n, field in enumerate(FIELDS)]).to(device)
        self.rarity = {name: rarities(tokens) for name, tokens in
                       (("whole", self.whole), ("head", self.head), ("query", self.tokens["query"]),
                        ("rest", self.tokens["rest"]))}  # fmt: skip

    def __len__(self) -> int:
        return len(self.packages)


def rarities(tokens: Tensor) -> Tensor:
    """Of each token, its count in its text to the power -1/2; 0 for padding."""
    found = torch.zeros(tokens.shape, dtype=torch.float16, device=tokens.device)
    for at in range(0, len(tokens), 512):
        part = tokens[at : at + 512]
        counts = (part[:, :, None] == part[:, None, :]).sum(2)
        found[at : at + 512] = torch.where(part > 0, counts.float().rsqrt(), 0).half()
    return found


def load_rows(path: Path, share: float, held: set[str]) -> list[list[str]]:
    """Every pair (or, of `share`, those whose hash says so) whose sentence is no question of a set we measure on."""
    rows = []
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            row = line.rstrip("\n").split("\t")
            if len(row) != 8 or row[2].lower() in held:
                continue
            if share >= 1 or int(hashlib.sha1(line.encode()).hexdigest()[:6], 16) < share * 0xFFFFFF:
                rows.append(row)
    return rows


def train_vocabulary(rows: list[list[str]], size: int) -> list[str]:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    counts: Counter[str] = Counter()
    for row in rows:
        counts.update(split_words(row[2]))
        for text in row[3:]:
            counts.update(text.split())
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordPieceTrainer(vocab_size=size, min_frequency=4, special_tokens=["[UNK]"], limit_alphabet=80,
                                        show_progress=False)  # fmt: skip
    words = (word[:24] for word in sorted(counts) if word.isascii() or counts[word] > 50)
    tokenizer.train_from_iterator((" ".join([word] * min(counts[word], 2000)) for word in words), trainer)
    return sorted(set(tokenizer.get_vocab()) - {"[UNK]"})


def batches(data: Data, size: int, group: int, seed: int) -> Iterator[Tensor]:
    """Groups of one package, so that a batch holds neighbours; what is left of a package joins its language."""
    rng = np.random.default_rng(seed)
    owners: dict[str, list[int]] = defaultdict(list)
    for number, package in enumerate(data.packages):
        owners[package].append(number)
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

    def query(self, data: Data, at: Tensor) -> Tensor:
        return self.sum(data.tokens["query"][at], data.rarity["query"][at])

    def head(self, data: Data, at: Tensor) -> Tensor:
        weights = data.rarity["head"][at] * self.weights.exp()[data.fields[: data.head.shape[1]]]
        return self.sum(data.head[at], weights)

    def whole(self, data: Data, at: Tensor, told: Tensor | None = None) -> Tensor:
        weights = data.rarity["whole"][at] * self.weights.exp()[data.fields]
        if told is None:
            return self.sum(data.whole[at], weights)
        # Some passages keep the rest of their documentation, as they do in a real repository.
        more = data.rarity["rest"][at] * told[:, None] * self.weights.exp()[3]
        return self.sum(torch.cat([data.whole[at], data.tokens["rest"][at]], 1), torch.cat([weights, more], 1))


def train_static(data: Data, size: int, epochs: int, batch: int) -> Static:
    torch.manual_seed(SEED)
    model = Static(size).to(data.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3, betas=(0.9, 0.99))
    steps = epochs * max(1, sum(1 for _ in batches(data, batch, 32, 0)))
    step = 0
    for epoch in range(epochs):
        for at in batches(data, batch, 32, SEED + epoch):
            for group in optimizer.param_groups:
                group["lr"] = 4e-3 * min((step + 1) / 50, 0.03 + 0.97 * (1 - step / steps))
            same = data.query_ids[at][:, None] == data.query_ids[at][None]
            same.fill_diagonal_(False)
            query = model.query(data, at)
            told = (torch.rand(len(at), device=data.device) < 0.2).float()
            loss = torch.zeros((), device=data.device)
            for found, share in ((model.whole(data, at, told), 1.0), (model.head(data, at), 0.5)):
                logits = (query @ found.T * model.scale.exp()).masked_fill(same, -1e4)
                target = torch.arange(len(at), device=data.device)
                loss = loss + share * (F.cross_entropy(logits, target) + F.cross_entropy(logits.T, target)) / 2
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % 200 == 0 or step == steps:
                say(f"static {step}/{steps} loss {loss.item():.3f} scale {model.scale.exp().item():.1f}")
    return model.eval()


def quantize_rows(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    scales = np.maximum(np.abs(table).max(1), 1e-9) / 127
    return np.rint(table / scales[:, None]).astype(np.int8), scales.astype(np.float32)


# -- what is hard to tell apart --------------------------------------------------------------------------------------


@torch.no_grad()
def mine(data: Data, static: Static, stems: Tensor, kept: int) -> Tensor:
    """Of every pair the numbers of the passages of its package that words and vectors like best, itself left out."""
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
    found = torch.zeros((len(data), kept), dtype=torch.int64, device=data.device)
    counts = torch.tensor([2.0, 5.0, 1.0, 1.0], device=data.device)[data.fields]
    size = int(stems.max()) + 1
    for pool in pools:
        if len(pool) <= kept:  # too small to be hard: anything of the language
            pool = (pool * (kept // len(pool) + 2))[: kept + 2]
        at = torch.tensor(pool, device=data.device)
        words = stems[data.whole[at]]
        terms = torch.zeros((len(at), size), device=data.device)
        terms.scatter_add_(1, words, counts.expand_as(words) * (words > 0))
        lengths = (words > 0).sum(1, keepdim=True).float()
        inverse = torch.log(1 + len(at) / ((terms > 0).sum(0) + 0.5))
        terms = terms / (terms + 1.2 * (0.25 + 0.75 * lengths / lengths.mean())) * inverse
        asked = torch.zeros((len(at), size), device=data.device)
        asked.scatter_(1, stems[data.tokens["query"][at]], 1.0)
        asked[:, 0] = 0
        scores = _unit(asked @ terms.T) + _unit(static.query(data, at) @ static.whole(data, at).T)
        scores.masked_fill_(data.query_ids[at][:, None] == data.query_ids[at][None], -1)
        found[at] = at[scores.topk(kept, 1).indices]
    return found


def _unit(scores: Tensor) -> Tensor:
    low, high = scores.min(1, keepdim=True).values, scores.max(1, keepdim=True).values
    return (scores - low) / (high - low + 1e-9)


# -- the reranker ----------------------------------------------------------------------------------------------------


def passage_tokens(fields: dict[str, list[int]]) -> tuple[list[int], list[int]]:
    """What the reranker reads of a passage: each token once, where it first stands, and its field (1..4)."""
    tokens: list[int] = []
    places: list[int] = []
    seen: set[int] = set()
    for number, field in enumerate(FIELDS, 1):
        for token in fields[field][: HEAD_LIMITS.get(field, 10_000)]:
            if token not in seen and len(tokens) < READ:
                seen.add(token)
                tokens.append(token)
                places.append(number)
    return tokens, places


class Lists:
    """The passages of the pairs as the reranker reads them."""

    def __init__(self, rows: list[list[str]], vocabulary: Vocabulary, device: str):
        tokens, places = np.zeros((len(rows), READ), np.int32), np.zeros((len(rows), READ), np.int8)
        asked = np.zeros((len(rows), ASKED), np.int32)
        for number, row in enumerate(rows):
            # Every fourth keeps the rest of its documentation, as it would in a real repository.
            texts = [*row[4:7], f"{row[3]} {row[7]}" if number % 4 == 0 else row[7]]
            fields = {field: vocabulary.encode(text, LIMITS[field]) for field, text in zip(FIELDS, texts, strict=True)}
            found, places_found = passage_tokens(fields)
            tokens[number, : len(found)] = np.array(found, np.int32) + 1
            places[number, : len(found)] = places_found
            query = vocabulary.encode(row[2], ASKED - 1)
            asked[number, 1 : len(query) + 1] = np.array(query, np.int32) + 1
        self.tokens, self.places, self.asked = (torch.from_numpy(a).to(device) for a in (tokens, places, asked))


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
        place = torch.cat([torch.zeros_like(asked), places.long()], 1)
        sequence = torch.cat([asked, tokens], 1)
        x = self.lift(self.table(sequence)) + self.position
        # By products, not by look-ups: the gradient of a look-up in six rows adds up one by one.
        x = x + F.one_hot(place, 5).to(x.dtype) @ self.place + F.one_hot(meeting, 6).to(x.dtype) @ self.meeting
        x = F.dropout(x, self.dropout, self.training)
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


def train_reranker(model: Reranker, data: Data, lists: Lists, hard: Tensor, steps: int, queries: int, negatives: int,
                   rate: float, seconds: float, teacher: Reranker | None = None) -> Reranker:  # fmt: skip
    """`seconds` ends the training early, on the way down of the same schedule: by the share of time that has passed."""
    torch.manual_seed(SEED + 1)
    rng = torch.Generator(device=data.device).manual_seed(SEED + 2)
    table = [model.table.weight]
    others = [p for n, p in model.named_parameters() if not n.startswith("table")]
    optimizer = torch.optim.AdamW([{"params": others, "weight_decay": 0.01}, {"params": table, "weight_decay": 0.0}],
                                  lr=rate, betas=(0.9, 0.98))  # fmt: skip
    cuda = data.device == "cuda"
    model.train()
    torch._dynamo.config.suppress_errors = True  # what cannot be compiled runs as it is
    scored = torch.compile(model) if cuda else model
    started, step, smooth, done = time.time(), 0, 0.0, 0.0
    while done < 1:
        done = max(step / steps, (time.time() - started) / seconds)
        for number, group in enumerate(optimizer.param_groups):
            group["lr"] = rate * min((step + 1) / 200, max(1 - done, 0.02)) * (0.5 if number else 1)
        at = torch.randint(len(data), (queries,), generator=rng, device=data.device)
        picks = torch.rand((queries, hard.shape[1]), generator=rng, device=data.device).topk(negatives, 1).indices
        candidates = torch.cat([at[:, None], hard[at].gather(1, picks)], 1)
        asked = lists.asked[at].repeat_interleave(negatives + 1, 0)
        tokens, places = lists.tokens[candidates.view(-1)], lists.places[candidates.view(-1)]
        # A word here and there is hidden: nobody asks in the very words.
        asked = asked * (torch.rand(asked.shape, generator=rng, device=data.device) > 0.05)
        tokens = tokens * (torch.rand(tokens.shape, generator=rng, device=data.device) > 0.08)
        with torch.autocast("cuda", torch.bfloat16, enabled=cuda):
            scores = scored(asked, tokens, places).view(queries, -1)
            loss = F.cross_entropy(scores, torch.zeros(queries, dtype=torch.int64, device=data.device))
            if teacher is not None:
                with torch.no_grad():
                    told = teacher(asked, tokens, places).view(queries, -1)
                loss = 0.4 * loss + 0.6 * F.kl_div(scores.log_softmax(1), told.softmax(1), reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        if step % 20 == 0:
            smooth = 0.9 * smooth + 0.1 * loss.item() if smooth else loss.item()
        if step in (1, 50, 200) or step % 1000 == 0:
            say(f"reranker {step} ({done:.0%}) loss {smooth:.3f}")
    return model.eval()


# -- measuring -------------------------------------------------------------------------------------------------------


class Measured:
    """Sets with the features of the best candidates of every question: words, body, head, and then the reranker."""

    def __init__(self, path: Path, vocabulary: Vocabulary, static: Static, device: str, reported: set[str]):
        from training.lexical import Fielded
        from training.sets import load_sets

        self.reported = reported
        self.pools: dict[str, list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = {}
        self.lists: dict[str, Lists] = {}
        for found in load_sets(path):
            rows = [["", "", "", "", p.path, p.name, p.signature, p.body] for p in found.passages]
            questions = [["", "", q.text, *[""] * 5] for q in found.queries]
            data, asked = Data(rows, vocabulary, device), Data(questions, vocabulary, device)
            with torch.no_grad():
                every = torch.arange(len(rows), device=device).split(2048)
                whole = torch.cat([static.whole(data, at) for at in every])
                head = torch.cat([static.head(data, at) for at in every])
                query = static.query(asked, torch.arange(len(asked), device=device))
                bodies, heads = (query @ whole.T).cpu().numpy(), (query @ head.T).cpu().numpy()
            words = Fielded(found.passages)
            self.pools[found.name] = []
            for number, question in enumerate(found.queries):
                features = np.stack([words.score(question.text), bodies[number], heads[number]], 1)
                pool = np.unique(np.concatenate([np.argsort(-features[:, c], kind="stable")[:200] for c in range(3)]))
                self.pools[found.name].append((pool, features[pool], np.isin(pool, question.targets)))
            self.lists[found.name] = Lists(rows, vocabulary, device)
            self.lists[found.name].asked = Lists(questions, vocabulary, device).asked
        first = self._fit(self.pools)
        self.best: dict[str, list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = {}
        for name, pools in self.pools.items():
            order = [np.argsort(-(unit(x) @ first), kind="stable")[:CANDIDATES] for _, x, _ in pools]
            self.best[name] = [(p[o], x[o], y[o]) for (p, x, y), o in zip(pools, order, strict=True)]
            words, vectors = self._mrr(pools, np.array([1, 0, 0])), self._mrr(pools, first)
            recall = np.mean([y.any() for _, _, y in self.best[name]])
            say(f"{name:22} {len(pools)} questions: words {words:.3f}, with vectors {vectors:.3f}, recall {recall:.3f}")

    def _fit(self, pools: dict) -> np.ndarray:
        return fit([(unit(x), y) for name in pools if name not in self.reported for _, x, y in pools[name]])

    def _mrr(self, pools: list, weights: np.ndarray) -> float:
        return mrr([unit(x) @ weights for _, x, _ in pools], [y for _, _, y in pools])

    @torch.no_grad()
    def report(self, label: str, model: Reranker) -> dict[str, float]:
        """MRR@10 with the reranker, in a blend whose weights are fitted on the sets that are not reported."""
        rows: dict[str, list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = {}
        for name, entries in self.best.items():
            lists, rows[name] = self.lists[name], []
            for number, (best, features, right) in enumerate(entries):
                at = torch.from_numpy(best).to(lists.tokens.device)
                asked = lists.asked[number : number + 1].expand(len(best), -1)
                score = model(asked, lists.tokens[at], lists.places[at]).cpu().numpy()
                rows[name].append((best, np.concatenate([features, score[:, None]], 1), right))
        weights = self._fit(rows)
        result = {name: self._mrr(entries, weights) for name, entries in rows.items()}
        for name, entries in rows.items():
            say(f"{label} {name:22} alone {self._mrr(entries, np.array([0, 0, 0, 1])):.3f} blend {result[name]:.3f}")
        chosen = np.mean([result[name] for name in result if name not in self.reported])
        say(label, np.round(weights, 3).tolist(), f"tuning sets {chosen:.4f}")
        return result


def unit(features: np.ndarray) -> np.ndarray:
    low, high = features.min(0, keepdims=True), features.max(0, keepdims=True)
    return (features - low) / (high - low + 1e-9)


def mrr(scores: list[np.ndarray], labels: list[np.ndarray]) -> float:
    total = 0.0
    for found, right in zip(scores, labels, strict=True):
        ranks = np.flatnonzero(right[np.argsort(-found, kind="stable")])
        total += 1 / (ranks[0] + 1) if len(ranks) and ranks[0] < 10 else 0
    return total / len(scores)


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
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--teacher-seconds", type=float, default=0)
    parser.add_argument("--seconds", type=float, default=270)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--queries", type=int, default=256)
    parser.add_argument("--negatives", type=int, default=9)
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = True
    options.out.mkdir(parents=True, exist_ok=True)
    from training.sets import load_sets

    reported = set(options.reported.split(","))
    held = {q.text.lower() for found in load_sets(options.sets) for q in found.queries}
    rows = load_rows(options.pairs, options.share, held)
    say(len(rows), "pairs", dict(Counter(row[1] for row in rows)))
    pieces = train_vocabulary(rows, options.size)
    (options.out / "vocabulary.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    vocabulary = Vocabulary(pieces)
    say(len(pieces), "pieces")
    data = Data(rows, vocabulary, device)
    say("tokens")
    static = train_static(data, len(pieces), options.epochs, options.batch)
    table = static.table.weight.detach().float().cpu().numpy()[1:]
    table /= np.abs(table).max() / 0.999
    codes, scales = quantize_rows(table)
    np.save(options.out / "static_rows.npy", codes)
    np.save(options.out / "static_scales.npy", scales * 127)
    weights = static.weights.exp().detach().cpu().tolist()
    say("field weights", weights)
    (options.out / "trained.json").write_text(json.dumps({
        "seed": SEED, "pairs": len(rows), "pairs_sha256": hashlib.sha256(options.pairs.read_bytes()).hexdigest(),
        "fields": {field: [LIMITS[field], round(weight, 4)] for field, weight in zip(FIELDS, weights, strict=True)},
    }))  # fmt: skip
    measured = Measured(options.sets, vocabulary, static, device, reported)
    ids: dict[str, int] = {}
    stems = [0] + [0 if piece in STOP else ids.setdefault(stem(piece) if piece[0] != "#" else piece, len(ids) + 1)
                   for piece in pieces]  # fmt: skip
    stem_ids = torch.tensor(stems, device=device)
    hard = mine(data, static, stem_ids, 24)
    lists = Lists(rows, vocabulary, device)
    say("mined")

    def make(dims: int, layers: int, heads: int, inner: int, dropout: float) -> Reranker:
        torch.manual_seed(SEED)
        model = Reranker(len(pieces), stem_ids, dims, layers, heads, inner, dropout).to(device)
        with torch.no_grad():
            model.table.weight.copy_(static.table.weight * (0.5 / static.table.weight.std()))
            model.table.weight[0] = 0
        return model

    teacher = None
    if options.teacher_seconds:
        teacher = make(512, 6, 8, 2048, 0.1)
        teacher = train_reranker(teacher, data, lists, hard, options.steps, options.queries, options.negatives, 3e-4,
                                 options.teacher_seconds)  # fmt: skip
        measured.report("teacher", teacher)
    model = make(256, options.layers, 4, 1024, 0.1)
    model = train_reranker(model, data, lists, hard, options.steps, options.queries, options.negatives, 1e-3,
                           options.seconds, teacher)  # fmt: skip
    save_reranker(model, stems[1:], options.out)
    measured.report("as int8", model)


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
